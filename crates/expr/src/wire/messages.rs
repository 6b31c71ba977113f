//! The messages of the binary form. Their numbers are part of the form: a number is never changed, and never used again
//! for something else.
//!
//! Nodes are kept in columns, not as a message each: a node of a long model takes a few bytes in the file and no memory
//! of its own while it is read. Names stand once in the file, and nodes refer to them by position.

/// What is read first, of a file of any version.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Header {
    #[prost(string, tag = "1")]
    pub(super) format: String,
    #[prost(uint32, tag = "2")]
    pub(super) version: u32,
}

/// A program of version 1.
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
    /// Names of leaves, placeholders and operators.
    #[prost(string, repeated, tag = "5")]
    pub(super) names: Vec<String>,
    /// The literals, one for each node of that kind, in the order of the nodes.
    #[prost(message, repeated, tag = "6")]
    pub(super) literals: Vec<Literal>,
    /// What each node is.
    #[prost(enumeration = "Kind", repeated, tag = "7")]
    pub(super) kinds: Vec<i32>,
    /// For each node that is not a literal, the position of its name in `names`.
    #[prost(uint32, repeated, tag = "8")]
    pub(super) subjects: Vec<u32>,
    /// For each operator, how many operands it has.
    #[prost(uint32, repeated, tag = "9")]
    pub(super) arities: Vec<u32>,
    /// The operands of all operators, each as its distance: how many nodes it is before the operator, at least 1.
    #[prost(uint32, repeated, tag = "10")]
    pub(super) operands: Vec<u32>,
    /// For each node, how many places of the source it was written at; empty in a file without spans.
    #[prost(uint32, repeated, tag = "11")]
    pub(super) span_counts: Vec<u32>,
    /// The first byte of each of these places.
    #[prost(uint32, repeated, tag = "12")]
    pub(super) span_starts: Vec<u32>,
    /// The length of each of these places, in bytes.
    #[prost(uint32, repeated, tag = "13")]
    pub(super) span_lengths: Vec<u32>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, prost::Enumeration)]
#[repr(i32)]
pub(super) enum Kind {
    Leaf = 1,
    Placeholder = 2,
    Literal = 3,
    Operator = 4,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Input {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    /// The type as the text language writes it.
    #[prost(string, optional, tag = "2")]
    pub(super) qtype: Option<String>,
    #[prost(message, optional, tag = "3")]
    pub(super) span: Option<Span>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Output {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    /// The number of its node.
    #[prost(uint32, tag = "2")]
    pub(super) node: u32,
    #[prost(message, optional, tag = "3")]
    pub(super) span: Option<Span>,
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
pub(super) struct Span {
    #[prost(uint32, tag = "1")]
    pub(super) start: u32,
    #[prost(uint32, tag = "2")]
    pub(super) length: u32,
}

/// A value: one part, or a tuple and behind it the parts of its fields in order. Nothing nests, so nothing recurses.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Literal {
    #[prost(message, repeated, tag = "1")]
    pub(super) parts: Vec<Part>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Part {
    #[prost(oneof = "PartKind", tags = "1, 2, 3, 4, 5, 6, 7, 8, 9")]
    pub(super) kind: Option<PartKind>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
pub(super) enum PartKind {
    /// A value of a scalar type.
    #[prost(message, tag = "1")]
    Scalar(Scalar),
    /// A present value of an optional type.
    #[prost(message, tag = "2")]
    Present(Scalar),
    /// A missing value of the optional type of this scalar type, as the text language writes it.
    #[prost(string, tag = "3")]
    Missing(String),
    /// A tuple of this many fields.
    #[prost(uint32, tag = "4")]
    Tuple(u32),
    /// A type, as the text language writes it.
    #[prost(string, tag = "5")]
    Type(String),
    /// The untyped `missing`.
    #[prost(message, tag = "6")]
    Nothing(()),
    /// A named tuple of fields with these names.
    #[prost(message, tag = "7")]
    NamedTuple(FieldNames),
    /// The value of the type of a shape, as the text language writes the type.
    #[prost(string, tag = "8")]
    Shape(String),
    /// An argument that is given as not given.
    #[prost(message, tag = "9")]
    Unspecified(()),
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct FieldNames {
    #[prost(string, repeated, tag = "1")]
    pub(super) names: Vec<String>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Scalar {
    #[prost(oneof = "ScalarKind", tags = "1, 2, 3, 4, 5, 6, 7, 8, 9, 10")]
    pub(super) kind: Option<ScalarKind>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
pub(super) enum ScalarKind {
    #[prost(message, tag = "1")]
    Unit(()),
    #[prost(bool, tag = "2")]
    Boolean(bool),
    #[prost(sint32, tag = "3")]
    Int32(i32),
    #[prost(sint64, tag = "4")]
    Int64(i64),
    #[prost(uint64, tag = "5")]
    UInt64(u64),
    #[prost(float, tag = "6")]
    Float32(f32),
    #[prost(double, tag = "7")]
    Float64(f64),
    #[prost(double, tag = "8")]
    WeakFloat(f64),
    #[prost(string, tag = "9")]
    Text(String),
    #[prost(bytes = "vec", tag = "10")]
    Bytes(Vec<u8>),
}
