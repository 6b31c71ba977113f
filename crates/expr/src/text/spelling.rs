//! The two spellings of types and values: one for texts that people read, and one for model files. The spelling in model files never changes, so that
//! old files stay readable. The parser reads both spellings.

use super::types::write_field_name;
use super::written_literal::write_value;
use cembra_runtime::{QType, Scalar, TypeSpelling};
use cembra_value::Value;

/// The kind of document that a type or a value is written to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Spelling {
    /// The type or value is written to a text or a message: `weak_float`, `f64?{1.5}`, `[i32?]{1, NA}`.
    Text,
    /// The type or value is written to a model file, with Arolla's names: `WEAK_FLOAT`, `OPTIONAL_FLOAT64{1.5}`, `DENSE_ARRAY_INT32{1, NA}`.
    File,
}

impl Spelling {
    /// Returns the name of a scalar type in this spelling. The only type with different names in texts and in files is the weak float.
    pub(super) const fn scalar(self, scalar: Scalar) -> &'static str {
        match self {
            Spelling::File if matches!(scalar, Scalar::WeakFloat) => scalar.name(),
            _ => scalar.short_name(),
        }
    }

    /// Appends a type in this spelling to `out`.
    pub(super) fn write_type(self, out: &mut String, qtype: &QType) {
        let scalar = match self {
            Spelling::Text => |scalar| Spelling::Text.scalar(scalar),
            Spelling::File => |scalar| Spelling::File.scalar(scalar),
        };
        let spelling = TypeSpelling { most_fields: u32::MAX, scalar, field_name: write_field_name };
        let _never_fails = qtype.write_spelled(out, &spelling);
    }

    /// Returns a type as text in this spelling.
    pub(crate) fn type_text(self, qtype: &QType) -> String {
        let mut out = String::new();
        self.write_type(&mut out, qtype);
        out
    }

    /// Returns a value as a literal in this spelling.
    pub(crate) fn value_text(self, value: &Value) -> String {
        let mut out = String::new();
        let _never_fails = write_value(&mut out, value, self);
        out
    }

    /// Returns the name of a type before the brace of `TYPE{v}`.
    pub(super) fn before_brace(self, qtype: &QType) -> String {
        match self {
            Spelling::Text => self.type_text(qtype),
            Spelling::File => qtype.name().to_string(),
        }
    }
}
