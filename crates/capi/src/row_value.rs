//! The values of a row as C gives them: each has a kind, and the member of a union that the kind says.

use crate::failure::Failure;
use crate::layouts::{Payload, Value};
use crate::memory::slice;
use std::fmt;

/// Returns the value of an input that is not given.
pub(crate) fn not_given(field: &compiler::Field) -> Result<compiler::Value, Failure> {
    let value = field.left_out();
    value.ok_or_else(|| Failure::values(format!("input `{}` is not given, and has no default", field.name)))
}

/// The path to a value in a row, as messages call it: an input, or a field inside of one, such as ``input `order.items.price` ``.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RowPath<'p> {
    /// The struct or list that has the field; `None` for an input.
    outer: Option<&'p RowPath<'p>>,
    name: &'p str,
}

impl<'p> RowPath<'p> {
    /// The place of an input.
    pub(crate) const fn input(name: &'p str) -> Self {
        RowPath { outer: None, name }
    }

    /// The place of a field inside.
    pub(crate) const fn field(&'p self, name: &'p str) -> Self {
        RowPath { outer: Some(self), name }
    }

    /// Writes the names from the input to the field.
    fn write_path(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Types nest only as deep as the text that spelled them.
        if let Some(outer) = self.outer {
            outer.write_path(f)?;
            f.write_str(".")?;
        }
        f.write_str(self.name)
    }
}

impl fmt::Display for RowPath<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("input `")?;
        self.write_path(f)?;
        f.write_str("`")
    }
}

/// A value of a row, as C gave it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RowValue<'a>(&'a Value<'a>);

impl<'a> RowValue<'a> {
    /// The values of a row.
    ///
    /// # Safety
    /// C-MEMORY: `count` values are at the pointer, or it is null. Each value has the union member of its kind, and the pointers of that are valid.
    pub(crate) unsafe fn row(
        first: *const Value<'a>,
        count: usize,
        what: &str,
    ) -> Result<impl ExactSizeIterator<Item = RowValue<'a>>, Failure> {
        // SAFETY: C-MEMORY, promised by the caller.
        Ok(unsafe { slice(first, count, what) }?.iter().map(RowValue))
    }

    /// One of `CEMBRA_KIND_*`, or any other number.
    pub(crate) const fn kind(self) -> u32 {
        self.0.kind
    }

    /// True if there is a value.
    pub(crate) const fn is_present(self) -> bool {
        self.0.present.is_set()
    }

    /// What the value holds, as the member of the union that its kind says.
    pub(crate) fn payload<T>(self, member: impl FnOnce(&'a Payload<'a>) -> T) -> T {
        member(&self.0.r#as)
    }
}

/// Reads a member of a value's union: the one that its kind says, or any other of numbers.
macro_rules! member {
    ($given:expr, $name:ident) => {
        $given.payload(|payload| {
            // SAFETY: C-MEMORY: the caller wrote the member that the kind says.
            unsafe { payload.$name }
        })
    };
}

pub(crate) use member;
