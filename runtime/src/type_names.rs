//! The names of types. A type has two: that of the text language (`f64?`, `[f32?]`, `(i32, text)`), which `Display` writes and people
//! read, and Arolla's (`OPTIONAL_FLOAT64`), which golden data, the agreement with object files and model files contain. This module
//! writes them; the parser reads both.

use crate::{ArrayKind, EdgeType, Excerpt, Form, QType, Scalar};
use std::fmt;

/// The word that a dictionary and its type, such as `dict[text, f64]`, begin with in the text language. In other positions the word is not reserved.
pub const DICT_WORD: &str = "dict";

/// The word for the type of edges (groupings of an array's elements) in the text language.
pub const EDGE_WORD: &str = "edge";

/// The word that the type of a tensor, such as `tensor[f32, 2]`, begins with in the text language. In other positions the word is not reserved.
pub const TENSOR_WORD: &str = "tensor";

/// Options for writing types in the notation of the text language.
#[derive(Clone, Copy, Debug)]
pub struct TypeSpelling {
    /// The most tuple fields that are written. The next field is replaced by `..`, which no parser accepts.
    pub most_fields: u32,
    /// A function that returns the name to write for a scalar type.
    pub scalar: fn(Scalar) -> &'static str,
    /// A function that writes the name of a tuple's field.
    pub field_name: fn(&mut dyn fmt::Write, &str) -> fmt::Result,
}

impl TypeSpelling {
    /// The options for types in messages and listings. Only the first fields of a type with very many fields are written, because a
    /// listing may have a type in every line. Long field names are cut.
    pub const SHOWN: TypeSpelling = TypeSpelling {
        most_fields: 1000,
        scalar: Scalar::short_name,
        field_name: |out, name| write!(out, "{}", Excerpt::quoted(name)),
    };
}

impl fmt::Display for QType {
    /// Writes the type in the text language: `f32`, `i64?`, `[f64?]`, `(f32, text)`, `{x: f32}`. Of a type with very many fields only
    /// the first are written: `(f32, ..)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write_spelled(f, &TypeSpelling::SHOWN)
    }
}

impl QType {
    /// Writes the type in the notation of the text language. Types without such a notation keep Arolla's name, which the language
    /// reads too. Types of functions and sequences, which models cannot write, are `function` and `sequence[T]`.
    ///
    /// # Errors
    /// If writing to `out` fails.
    pub fn write_spelled(&self, out: &mut dyn fmt::Write, spelling: &TypeSpelling) -> fmt::Result {
        self.write_part(out, spelling, &mut { spelling.most_fields })
    }

    /// Writes a part of a type, with at most `left` fields.
    fn write_part(&self, out: &mut dyn fmt::Write, spelling: &TypeSpelling, left: &mut u32) -> fmt::Result {
        let name = spelling.scalar;
        // Types nest only as deep as `Limits::nesting` allows, so this recursion is bounded.
        match self {
            QType::Scalar(scalar) => out.write_str(name(*scalar)),
            QType::Optional(scalar) => write!(out, "{}?", name(*scalar)),
            QType::Array(ArrayKind::Dense, scalar) => write!(out, "[{}?]", name(*scalar)),
            QType::Edge(EdgeType::Arrays(ArrayKind::Dense)) => out.write_str(EDGE_WORD),
            QType::Dict(key, value) => write!(out, "{DICT_WORD}[{}, {}]", name(*key), name(*value)),
            QType::Tuple(fields) if *fields.form() != Form::Tuple => {
                if let Some((key, value)) = self.as_map() {
                    return write!(out, "{DICT_WORD}[{}, {}]", name(key), name(value));
                }
                if let Some(element) = self.element() {
                    out.write_str("[")?;
                    element.write_part(out, spelling, left)?;
                    return out.write_str("]");
                }
                if let Form::Table(_) = fields.form() {
                    return out.write_str("table");
                }
                if let Some(of) = self.as_optional_struct() {
                    of.write_part(out, spelling, left)?;
                }
                out.write_str("?")
            }
            QType::Tuple(fields) => {
                let names = fields.names();
                out.write_str(if names.is_some() { "{" } else { "(" })?;
                for (index, field) in fields.iter().enumerate() {
                    if index > 0 {
                        out.write_str(", ")?;
                    }
                    if *left == 0 {
                        out.write_str("..")?;
                        break;
                    }
                    *left -= 1;
                    if let Some(name) = names.and_then(|names| names.get(index)) {
                        (spelling.field_name)(out, name)?;
                        out.write_str(": ")?;
                    }
                    field.write_part(out, spelling, left)?;
                }
                out.write_str(match names {
                    Some(_) => "}",
                    None if fields.len() == 1 => ",)",
                    None => ")",
                })
            }
            QType::Function => out.write_str("function"),
            QType::Sequence(element) => {
                out.write_str("sequence[")?;
                element.write_part(out, spelling, left)?;
                out.write_str("]")
            }
            QType::Tensor(scalar, rank) => write!(out, "{TENSOR_WORD}[{}, {rank}]", name(*scalar)),
            QType::Shape(_)
            | QType::Array(ArrayKind::Sparse, _)
            | QType::ArrayShape(_)
            | QType::Edge(_)
            | QType::Meta
            | QType::Nothing
            | QType::Unspecified => write!(out, "{}", self.name()),
        }
    }

    /// Arolla's name of the type: `FLOAT32`, `OPTIONAL_INT64`, `tuple<FLOAT32,TEXT>`, `namedtuple<x=FLOAT32>`.
    #[must_use]
    pub const fn name(&self) -> TypeName<'_> {
        TypeName(self)
    }
}

/// Arolla's name of a type, to be formatted.
#[derive(Clone, Copy, Debug)]
pub struct TypeName<'t>(&'t QType);

impl fmt::Display for TypeName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write_part(f, &mut { TypeSpelling::SHOWN.most_fields })
    }
}

impl TypeName<'_> {
    /// Writes the name, with at most `left` fields.
    fn write_part(self, f: &mut fmt::Formatter<'_>, left: &mut u32) -> fmt::Result {
        // Types nest only as deep as `Limits::nesting` allows, so this recursion is bounded.
        match self.0 {
            QType::Scalar(scalar) => f.write_str(scalar.name()),
            QType::Optional(scalar) => write!(f, "OPTIONAL_{}", scalar.name()),
            QType::Tuple(_) if let Some((key, value)) = self.0.as_map() => {
                write!(f, "DICT_{}_{}", key.name(), value.name())
            }
            // Arolla has neither optional structs nor lists of structs.
            QType::Tuple(fields) if *fields.form() != Form::Tuple => fmt::Display::fmt(self.0, f),
            QType::Tuple(fields) => {
                f.write_str(if fields.names().is_some() { "namedtuple<" } else { "tuple<" })?;
                for (index, field) in fields.iter().enumerate() {
                    if index > 0 {
                        f.write_str(",")?;
                    }
                    if *left == 0 {
                        f.write_str("..")?;
                        break;
                    }
                    *left -= 1;
                    if let Some(name) = fields.names().and_then(|names| names.get(index)) {
                        write!(f, "{}=", Excerpt::quoted(name))?;
                    }
                    field.name().write_part(f, left)?;
                }
                f.write_str(">")
            }
            QType::Shape(shape) => f.write_str(shape.name()),
            QType::Array(kind, scalar) => write!(f, "{}_{}", kind.name(), scalar.name()),
            QType::ArrayShape(kind) => write!(f, "{}_SHAPE", kind.name()),
            QType::Edge(edge) => f.write_str(edge.name()),
            QType::Meta => f.write_str("QTYPE"),
            QType::Nothing => f.write_str("NOTHING"),
            QType::Unspecified => f.write_str("UNSPECIFIED"),
            QType::Function => f.write_str("OPERATOR"),
            QType::Dict(key, value) => write!(f, "DICT_{}_{}", key.name(), value.name()),
            QType::Sequence(element) => write!(f, "SEQUENCE[{}]", element.name()),
            QType::Tensor(scalar, rank) => write!(f, "TENSOR[{},{rank}]", scalar.name()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Fields, Names, ShapeType};

    #[test]
    fn types_have_the_name_of_the_text_language_and_that_of_arolla() {
        let named =
            |names: &str, types: Vec<QType>| QType::Tuple(Fields::named(Names::parse(names).unwrap(), types).unwrap());
        for (qtype, own, arolla) in [
            (QType::FLOAT32, "f32", "FLOAT32"),
            (QType::WEAK_FLOAT, "weak_float", "WEAK_FLOAT"),
            (QType::MASK, "unit?", "OPTIONAL_UNIT"),
            (QType::Array(ArrayKind::Dense, Scalar::Int64), "[i64?]", "DENSE_ARRAY_INT64"),
            (QType::Array(ArrayKind::Sparse, Scalar::Int64), "ARRAY_INT64", "ARRAY_INT64"),
            (QType::ArrayShape(ArrayKind::Dense), "DENSE_ARRAY_SHAPE", "DENSE_ARRAY_SHAPE"),
            (QType::Edge(EdgeType::Arrays(ArrayKind::Dense)), "edge", "DENSE_ARRAY_EDGE"),
            (QType::Edge(EdgeType::Scalars), "SCALAR_TO_SCALAR_EDGE", "SCALAR_TO_SCALAR_EDGE"),
            (QType::Shape(ShapeType::Scalar), "SCALAR_SHAPE", "SCALAR_SHAPE"),
            (QType::Dict(Scalar::Text, Scalar::Float64), "dict[text, f64]", "DICT_TEXT_FLOAT64"),
            (QType::tuple([]), "()", "tuple<>"),
            (QType::tuple([QType::TEXT]), "(text,)", "tuple<TEXT>"),
            (
                QType::tuple([QType::TEXT, named("a,b", vec![QType::BOOLEAN, QType::tuple([])])]),
                "(text, {a: bool, b: ()})",
                "tuple<TEXT,namedtuple<a=BOOLEAN,b=tuple<>>>",
            ),
            (
                QType::Sequence(QType::tuple([QType::INT32, QType::Scalar(Scalar::Date)]).into()),
                "sequence[(i32, date)]",
                "SEQUENCE[tuple<INT32,DATE>]",
            ),
            (QType::Function, "function", "OPERATOR"),
            (QType::Tensor(Scalar::Float32, 2), "tensor[f32, 2]", "TENSOR[FLOAT32,2]"),
            (QType::Nothing, "NOTHING", "NOTHING"),
        ] {
            assert_eq!((qtype.to_string(), qtype.name().to_string()), (own.to_owned(), arolla.to_owned()));
        }
    }

    #[test]
    fn of_many_fields_the_first_are_shown() {
        let wide = QType::tuple(vec![QType::INT32; 1001]);
        let shown = wide.to_string();
        assert!(shown.starts_with("(i32, i32, ") && shown.ends_with(", i32, ..)"), "{shown}");
        assert_eq!(shown.matches("i32").count(), 1000);
        assert_eq!(wide.name().to_string().matches("INT32").count(), 1000);
    }
}
