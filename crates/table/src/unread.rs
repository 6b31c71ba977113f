//! Columns of a file with Arrow types that the Arrow library does not support, such as Polars' integers of 128 bits. Using such a column or copying
//! it to the results is an error; the other columns of the file are read.

use super::guard::guarded;
use super::{Keep, Request};
use crate::error::{DataCode, DataError};
use arrow_ipc::convert::fb_to_schema;
use arrow_schema::{DataType, Field, Schema};
use std::collections::BTreeMap;

/// The names of the file's columns that cannot be read, each with the name of its type.
#[derive(Default)]
pub(crate) struct UnreadableColumns(BTreeMap<String, String>);

impl UnreadableColumns {
    /// Returns true if the file has no column that cannot be read.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Checks that `request` needs only columns that can be read.
    ///
    /// # Errors
    /// If a column that cannot be read is an input, is a field of an input that is a tuple (`p.x` for the input `p`), or is copied to the results.
    pub(crate) fn check(&self, request: &Request) -> Result<(), DataError> {
        let used = request.leaves.iter().find_map(|leaf| self.of_leaf(&leaf.name));
        let kept = match &request.keep {
            Keep::None => None,
            Keep::These(names) => names.iter().find_map(|name| self.0.get_key_value(name)),
            Keep::All => self.0.first_key_value(),
        };
        match used.or(kept) {
            Some((column, of)) if request.keep == Keep::All => {
                Err(refusal(column, of).hint("use `--keep` with the names of other columns"))
            }
            Some((column, of)) => Err(refusal(column, of)),
            None => Ok(()),
        }
    }

    /// The unreadable column of the input `leaf`, with its type: the input's own column, or one of a field of its tuple. `None` if all can
    /// be read.
    fn of_leaf(&self, leaf: &str) -> Option<(&String, &String)> {
        let fields = format!("{leaf}.");
        let first_field = || self.0.range(fields.clone()..).next().filter(|(column, _)| column.starts_with(&fields));
        self.0.get_key_value(leaf).or_else(first_field)
    }
}

/// Converts the schema of a file, and finds its columns that cannot be read. In the converted schema, these columns have the types that
/// `stand_in` returns for their index and field.
///
/// # Errors
/// If `stand_in` has no type for a column that cannot be read, or the schema is invalid for another reason.
pub(crate) fn schema_of(
    schema: arrow_ipc::Schema<'_>,
    stand_in: impl Fn(usize, arrow_ipc::Field<'_>) -> Option<DataType>,
) -> Result<(Schema, UnreadableColumns), DataError> {
    let broken = match guarded("Arrow", || Ok(fb_to_schema(schema))) {
        Ok(schema) => return Ok((schema, UnreadableColumns::default())),
        Err(broken) => broken,
    };
    let (mut fields, mut unread) = (Vec::new(), BTreeMap::new());
    for (at, field) in schema.fields().into_iter().flatten().enumerate() {
        if let Ok(field) = guarded("Arrow", || Ok(Field::from(field))) {
            fields.push(field);
            continue;
        }
        let (name, of) = (field.name().unwrap_or_default(), type_name(field));
        let stand_in = stand_in(at, field).ok_or_else(|| refusal(name, &of))?;
        fields.push(Field::new(name, stand_in, true));
        unread.insert(name.to_owned(), of);
    }
    if unread.is_empty() { Err(broken) } else { Ok((Schema::new(fields), UnreadableColumns(unread))) }
}

/// The Arrow type that stands in for the unreadable integer type of `field` in an Arrow stream: bytes of the size that the integers have. `None` if
/// the type of `field` is not an integer with a multiple of 8 bits.
pub(crate) fn of_same_bytes(field: arrow_ipc::Field<'_>) -> Option<DataType> {
    let bits = field.type_as_int().filter(|_| field.dictionary().is_none())?.bitWidth();
    (bits > 0 && bits % 8 == 0).then_some(DataType::FixedSizeBinary(bits / 8))
}

/// The error that a column has a type that cannot be read.
fn refusal(column: &str, of: &str) -> DataError {
    DataError::new(DataCode::ColumnType, format!("the type {of} cannot be read")).in_column(column)
}

/// The name of the unreadable type: of the field, or of the nested field that has it.
fn type_name(field: arrow_ipc::Field<'_>) -> String {
    let mut inner = field;
    // Fields nest only to a limit (`check_schema`).
    while let Some(child) =
        inner.children().into_iter().flatten().find(|child| guarded("Arrow", || Ok(Field::from(*child))).is_err())
    {
        inner = child;
    }
    match inner.type_as_int() {
        Some(int) => format!("{}{}", if int.is_signed() { "Int" } else { "UInt" }, int.bitWidth()),
        None => inner.type_type().variant_name().unwrap_or("of an unknown kind").to_owned(),
    }
}
