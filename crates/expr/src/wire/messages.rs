//! The messages of the binary form. The field numbers are part of the form: a number is never changed or reused.
//!
//! Nodes are stored in columns, not as one message per node, so a node takes a few bytes in the file and no memory of its own while it is read. Each
//! name occurs once in the file, and nodes refer to it by index.

use cembra_runtime::{Plain, for_each_scalar};
use cembra_value::ScalarValue;
use prost::DecodeError;
use prost::bytes::{Buf, BufMut};
use prost::encoding::{self, DecodeContext, WireType};

/// The header of a file of any version. It is read before the rest, to learn the version.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Header {
    #[prost(string, tag = "1")]
    pub(super) format: String,
    #[prost(uint32, tag = "2")]
    pub(super) version: u32,
}

/// A program of versions 1 to 5.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Program {
    #[prost(string, tag = "1")]
    pub(super) format: String,
    #[prost(uint32, tag = "2")]
    pub(super) version: u32,
    #[prost(message, repeated, tag = "3")]
    pub(super) inputs: Vec<Input>,
    #[prost(message, repeated, tag = "4")]
    pub(super) outputs: Vec<Output>,
    /// The names of the program's leaves, placeholders and operators.
    #[prost(string, repeated, tag = "5")]
    pub(super) names: Vec<String>,
    /// The program's literals, one per literal node, in the order of the nodes.
    #[prost(message, repeated, tag = "6")]
    pub(super) literals: Vec<Literal>,
    /// The kind of each node, one of [`Kind`].
    #[prost(enumeration = "Kind", repeated, tag = "7")]
    pub(super) kinds: Vec<i32>,
    /// For each node that is not a literal, the index of its name in `names`.
    #[prost(uint32, repeated, tag = "8")]
    pub(super) subjects: Vec<u32>,
    /// For each operator node, the number of its operands.
    #[prost(uint32, repeated, tag = "9")]
    pub(super) arities: Vec<u32>,
    /// The operands of all operator nodes. Each operand is stored as a distance: the operator's number minus the operand's number, at least 1.
    #[prost(uint32, repeated, tag = "10")]
    pub(super) operands: Vec<u32>,
    /// For each node, the number of its spans in the source; empty in a file without spans.
    #[prost(uint32, repeated, tag = "11")]
    pub(super) span_counts: Vec<u32>,
    /// For each span, the offset of its first byte.
    #[prost(uint32, repeated, tag = "12")]
    pub(super) span_starts: Vec<u32>,
    /// For each span, its length in bytes.
    #[prost(uint32, repeated, tag = "13")]
    pub(super) span_lengths: Vec<u32>,
    /// The operators of the host application that the text declares; from version 2 on.
    #[prost(message, repeated, tag = "14")]
    pub(super) externs: Vec<Extern>,
    /// The rules that cut axes into tiles; from version 4 on.
    #[prost(message, repeated, tag = "15")]
    pub(super) tiles: Vec<TileRule>,
}

/// A `tile` statement, which cuts axes into tiles: its text and its span.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct TileRule {
    /// The statement as the text language writes it.
    #[prost(string, tag = "1")]
    pub(super) cut: String,
    #[prost(message, optional, tag = "2")]
    pub(super) span: Option<Span>,
}

/// An operator of the host application, as the text declares it.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Extern {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    /// The types of the operator's parameters, as a tuple type in the spelling of the text language.
    #[prost(string, tag = "2")]
    pub(super) parameters: String,
    #[prost(string, tag = "3")]
    pub(super) result: String,
    #[prost(message, optional, tag = "4")]
    pub(super) span: Option<Span>,
}

/// The kind of a node in [`Program::kinds`]: a leaf, a placeholder, a literal or an operator.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, prost::Enumeration)]
#[repr(i32)]
pub(super) enum Kind {
    Leaf = 1,
    Placeholder = 2,
    Literal = 3,
    Operator = 4,
}

/// A declared input.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Input {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    /// The type of the input with its promise, in the spelling of the text language.
    #[prost(string, optional, tag = "2")]
    pub(super) qtype: Option<String>,
    #[prost(message, optional, tag = "3")]
    pub(super) span: Option<Span>,
    /// The value that is used where the input is missing; from version 2 on.
    #[prost(message, optional, tag = "4")]
    pub(super) default: Option<Scalar>,
    /// True if the input's default is the empty list or dictionary; from version 5 on.
    #[prost(bool, tag = "5")]
    pub(super) is_empty: bool,
}

/// An output, with its node and its span in the source.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Output {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    /// The number of the output's node in the file.
    #[prost(uint32, tag = "2")]
    pub(super) node: u32,
    #[prost(message, optional, tag = "3")]
    pub(super) span: Option<Span>,
}

/// A span in the source, in bytes.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub(super) struct Span {
    #[prost(uint32, tag = "1")]
    pub(super) start: u32,
    #[prost(uint32, tag = "2")]
    pub(super) length: u32,
}

/// A value, as a flat list of parts. A tuple is one part that is followed by the parts of its fields in order. Messages do not nest, so reading
/// does not recurse.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Literal {
    #[prost(message, repeated, tag = "1")]
    pub(super) parts: Vec<LiteralPart>,
}

/// A part of a literal: a value, or the beginning of a tuple.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct LiteralPart {
    #[prost(oneof = "PartKind", tags = "1, 2, 3, 4, 5, 6, 7, 8, 9, 10")]
    pub(super) kind: Option<PartKind>,
}

/// The content of a [`LiteralPart`].
#[derive(Clone, PartialEq, prost::Oneof)]
pub(super) enum PartKind {
    /// A value of a scalar type.
    #[prost(message, tag = "1")]
    Scalar(Scalar),
    /// A present value of an optional type.
    #[prost(message, tag = "2")]
    Present(Scalar),
    /// A missing value of an optional type, given by its scalar type in the spelling of the text language.
    #[prost(string, tag = "3")]
    Missing(String),
    /// A tuple with this number of fields.
    #[prost(uint32, tag = "4")]
    Tuple(u32),
    /// A type in the spelling of the text language.
    #[prost(string, tag = "5")]
    Type(String),
    /// The untyped `missing`.
    #[prost(message, tag = "6")]
    Nothing(()),
    /// A named tuple with these field names.
    #[prost(message, tag = "7")]
    NamedTuple(FieldNames),
    /// The only value of a shape type, given by the type in the spelling of the text language.
    #[prost(string, tag = "8")]
    Shape(String),
    /// An argument that is explicitly unspecified.
    #[prost(message, tag = "9")]
    Unspecified(()),
    /// An array, an array shape, an edge or a dictionary, in the spelling of the text language.
    #[prost(string, tag = "10")]
    Array(String),
}

/// The field names of a named tuple.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct FieldNames {
    #[prost(string, repeated, tag = "1")]
    pub(super) names: Vec<String>,
}

/// A present scalar: one field, whose field number determines the scalar type. Field numbers and codecs are defined in the table of scalar types.
#[derive(Clone, PartialEq, Default, Debug)]
pub(super) struct Scalar {
    pub(super) value: Option<ScalarValue>,
}

macro_rules! scalar_messages {
    (
        []
        unit { $(#[$unit_doc:meta])* $unit:ident { $un:tt, $us:tt, $uk:tt, $um:tt, message = $unit_tag:literal } }
        plain { $($(#[$doc:meta])* $plain:ident($rust:ty) {
            $n:tt, $s:tt, $k:ident $(like $l:ident)?, $m:expr, $codec:ident = $tag:literal
        })* }
        weak { $($(#[$weak_doc:meta])* $weak:ident($weak_rust:ty) {
            $wn:tt, $ws:tt, $wk:ident $(like $wl:ident)?, $wm:expr, $weak_codec:ident = $weak_tag:literal
        })* }
        view { $($(#[$view_doc:meta])* $view:ident($viewed:ty) {
            $vn:tt, $vs:tt, $vk:ident, $vm:expr, $view_codec:ident = $view_tag:literal
        })* }
    ) => {
        impl prost::Message for Scalar {
            fn encode_raw(&self, buf: &mut impl BufMut) {
                match &self.value {
                    None => {}
                    Some(ScalarValue::$unit) => encoding::message::encode($unit_tag, &(), buf),
                    $(Some(ScalarValue::$plain(v)) => encoding::$codec::encode($tag, &v.raw(), buf),)*
                    $(Some(ScalarValue::$weak(v)) => encoding::$weak_codec::encode($weak_tag, &v.raw(), buf),)*
                    $(Some(ScalarValue::$view(v)) => encoding::$view_codec::encode($view_tag, &(&**v).to_owned(), buf),)*
                }
            }

            fn merge_field(
                &mut self,
                tag: u32,
                wire_type: WireType,
                buf: &mut impl Buf,
                ctx: DecodeContext,
            ) -> Result<(), DecodeError> {
                // As in every such message, the last of several fields counts.
                self.value = Some(match tag {
                    $unit_tag => {
                        encoding::message::merge(wire_type, &mut (), buf, ctx)?;
                        ScalarValue::$unit
                    }
                    $($tag => {
                        let mut raw = Default::default();
                        encoding::$codec::merge(wire_type, &mut raw, buf, ctx)?;
                        ScalarValue::$plain(Plain::from_raw(raw))
                    })*
                    $($weak_tag => {
                        let mut raw = Default::default();
                        encoding::$weak_codec::merge(wire_type, &mut raw, buf, ctx)?;
                        ScalarValue::$weak(Plain::from_raw(raw))
                    })*
                    $($view_tag => {
                        let mut owned = <$viewed as ToOwned>::Owned::default();
                        encoding::$view_codec::merge(wire_type, &mut owned, buf, ctx)?;
                        ScalarValue::$view(owned.into())
                    })*
                    _ => return encoding::skip_field(wire_type, tag, buf, ctx),
                });
                Ok(())
            }

            fn encoded_len(&self) -> usize {
                match &self.value {
                    None => 0,
                    Some(ScalarValue::$unit) => encoding::message::encoded_len($unit_tag, &()),
                    $(Some(ScalarValue::$plain(v)) => encoding::$codec::encoded_len($tag, &v.raw()),)*
                    $(Some(ScalarValue::$weak(v)) => encoding::$weak_codec::encoded_len($weak_tag, &v.raw()),)*
                    $(Some(ScalarValue::$view(v)) => encoding::$view_codec::encoded_len($view_tag, &(&**v).to_owned()),)*
                }
            }

            fn clear(&mut self) {
                self.value = None;
            }
        }
    };
}

for_each_scalar!(scalar_messages []);
