//! The two spellings of types and values: that of texts, which people read and write, and that of files of models, which is what it
//! was when the first file was written. The parser reads both.

use super::types::write_field_name;
use super::written_literal::write_value;
use cembra_runtime::{QType, Scalar, TypeSpelling};
use cembra_value::Value;

/// Where a type or a value is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Spelling {
    /// In a text or a message: `weak_float`, `f64?{1.5}`, `[i32?]{1, NA}`.
    Text,
    /// In a file of a model, with Arolla's names: `WEAK_FLOAT`, `OPTIONAL_FLOAT64{1.5}`, `DENSE_ARRAY_INT32{1, NA}`.
    File,
}

impl Spelling {
    /// The name of a scalar type where it stands by itself. Files have only one that is not the text language's.
    pub(super) const fn scalar(self, scalar: Scalar) -> &'static str {
        match self {
            Spelling::File if matches!(scalar, Scalar::WeakFloat) => scalar.name(),
            _ => scalar.short_name(),
        }
    }

    /// Writes a type.
    pub(super) fn write_type(self, out: &mut String, qtype: &QType) {
        let scalar = match self {
            Spelling::Text => |scalar| Spelling::Text.scalar(scalar),
            Spelling::File => |scalar| Spelling::File.scalar(scalar),
        };
        let spelling = TypeSpelling { most_fields: u32::MAX, scalar, field_name: write_field_name };
        let _never_fails = qtype.write_spelled(out, &spelling);
    }

    /// A type, written.
    pub(crate) fn type_text(self, qtype: &QType) -> String {
        let mut out = String::new();
        self.write_type(&mut out, qtype);
        out
    }

    /// A value as a literal.
    pub(crate) fn value_text(self, value: &Value) -> String {
        let mut out = String::new();
        let _never_fails = write_value(&mut out, value, self);
        out
    }

    /// The name of a type as it stands before the bracket of `TYPE{v}`.
    pub(super) fn before_brace(self, qtype: &QType) -> String {
        match self {
            Spelling::Text => self.type_text(qtype),
            Spelling::File => qtype.name().to_string(),
        }
    }
}
