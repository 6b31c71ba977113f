//! The values of a row as C passes them. Each value has a kind, which selects the member of its union.

use crate::failure::Failure;
use crate::layouts::{Payload, Value};
use crate::memory::slice;
use std::fmt;

/// Returns the value of the input `field` if the caller left it out: its default, or missing. Fails if the input has no default and is not optional.
pub(crate) fn not_given(field: &compiler::Field) -> Result<compiler::Value, Failure> {
    let value = field.left_out();
    value.ok_or_else(|| Failure::values(format!("input `{}` must be given, because it has no default", field.name)))
}

/// The path to a value in a row, for messages: the name of an input, or of a field inside of an input, such as ``input `order.items.price` ``.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RowPath<'p> {
    /// The struct or list that has the field; `None` for an input.
    outer: Option<&'p RowPath<'p>>,
    name: &'p str,
}

impl<'p> RowPath<'p> {
    /// Returns the path to an input.
    pub(crate) const fn input(name: &'p str) -> Self {
        RowPath { outer: None, name }
    }

    /// Returns the path to the field `name` of the value at this path.
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

/// An input value of a row, as C passes it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RowValue<'a>(&'a Value<'a>);

impl<'a> RowValue<'a> {
    /// Returns the `count` values of a row, which are at a C pointer. Fails with an error that names `what` if the pointer cannot be valid.
    ///
    /// # Safety
    /// C-MEMORY (`docs/safety.md`): unless `first` is null, `count` values must be at `first`. In each value, the union member that the kind selects
    /// must be set, and the pointers in that member must be valid.
    pub(crate) unsafe fn row(
        first: *const Value<'a>,
        count: usize,
        what: &str,
    ) -> Result<impl ExactSizeIterator<Item = RowValue<'a>>, Failure> {
        // SAFETY: C-MEMORY, promised by the caller.
        Ok(unsafe { slice(first, count, what) }?.iter().map(RowValue))
    }

    /// Returns the kind of the value: one of `CEMBRA_KIND_*`, or any other number if C passed one.
    pub(crate) const fn kind(self) -> u32 {
        self.0.kind
    }

    /// Returns true if C marked the value as present.
    pub(crate) const fn is_present(self) -> bool {
        self.0.present.is_set()
    }

    /// Calls `member` on the value's union and returns the result. `member` must read the union's member that the kind selects.
    pub(crate) fn payload<T>(self, member: impl FnOnce(&'a Payload<'a>) -> T) -> T {
        member(&self.0.r#as)
    }
}

/// Reads a member of a value's union. It must be the one that the kind selects, or any of the number members for a number.
macro_rules! member {
    ($given:expr, $name:ident) => {
        $given.payload(|payload| {
            // SAFETY: C-MEMORY: the caller wrote the member that the kind says.
            unsafe { payload.$name }
        })
    };
}

pub(crate) use member;
