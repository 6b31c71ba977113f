//! QTypes: the types of values, and their layout in a frame. `type_names` writes them.
//!
//! A type whose values are in frames is a scalar, an optional scalar, a tuple or a shape. Arrays of scalars, their shapes and edges between
//! them are stored outside of frames, in array programs. Tensors are in no frame either. Other types exist only while a model is prepared:
//! those of a type literal, of an untyped `missing`, of an unspecified argument, of a function, of a dictionary and of a sequence.

mod fields;

use crate::{Layout, Scalar};
pub use fields::{Fields, Form, NameError, Names, TableForm};
use std::sync::Arc;

/// The shape of a scalar or an optional: whether the value may be missing. Each shape has a type of its own, which has one value.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ShapeType {
    /// The shape of a scalar: one value.
    Scalar,
    /// The shape of an optional: one value, which may be missing.
    OptionalScalar,
}

impl ShapeType {
    /// Every shape.
    pub const ALL: [ShapeType; 2] = [ShapeType::Scalar, ShapeType::OptionalScalar];

    /// Arolla's name for the type of this shape.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            ShapeType::Scalar => "SCALAR_SHAPE",
            ShapeType::OptionalScalar => "OPTIONAL_SCALAR_SHAPE",
        }
    }
}

/// The two array types that Arolla distinguishes. Both are stored densely here: a value per element, and a bit for its presence.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ArrayKind {
    /// Arolla's dense arrays: `DENSE_ARRAY_FLOAT32`, `DENSE_ARRAY_INT32` and so on.
    Dense,
    /// Arolla's other arrays, which it may store sparsely: `ARRAY_FLOAT32`, `ARRAY_INT32` and so on.
    Sparse,
}

impl ArrayKind {
    /// Both kinds of arrays.
    pub const ALL: [ArrayKind; 2] = [ArrayKind::Dense, ArrayKind::Sparse];

    /// The prefix of the type names of this kind of array.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            ArrayKind::Dense => "DENSE_ARRAY",
            ArrayKind::Sparse => "ARRAY",
        }
    }
}

/// The type of an edge (the grouping of an array's elements), given by its two sides. An edge connects each element of its child side with at most
/// one element (group) of its parent side.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum EdgeType {
    /// The edge connects a scalar with a scalar.
    Scalars,
    /// The edge connects all elements of an array with one scalar, so that they are one group.
    ToScalar(ArrayKind),
    /// The edge connects the elements of an array with the elements of another array, which stand for groups.
    Arrays(ArrayKind),
}

impl EdgeType {
    /// The types of edges (groupings of an array's elements).
    pub const ALL: [EdgeType; 5] = [
        EdgeType::Scalars,
        EdgeType::ToScalar(ArrayKind::Dense),
        EdgeType::ToScalar(ArrayKind::Sparse),
        EdgeType::Arrays(ArrayKind::Dense),
        EdgeType::Arrays(ArrayKind::Sparse),
    ];

    /// Arolla's name of this type of edges.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            EdgeType::Scalars => "SCALAR_TO_SCALAR_EDGE",
            EdgeType::ToScalar(ArrayKind::Dense) => "DENSE_ARRAY_TO_SCALAR_EDGE",
            EdgeType::ToScalar(ArrayKind::Sparse) => "ARRAY_TO_SCALAR_EDGE",
            EdgeType::Arrays(ArrayKind::Dense) => "DENSE_ARRAY_EDGE",
            EdgeType::Arrays(ArrayKind::Sparse) => "ARRAY_EDGE",
        }
    }
}

/// The type of a value. The list of variants is exhaustive, so that the compiler reports a new variant to every `match`.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum QType {
    /// The type of a scalar value that is always present.
    Scalar(Scalar),
    /// The type of a scalar value that may be missing.
    Optional(Scalar),
    /// The type of a fixed sequence of values, laid out like a C struct; the fields of a named tuple have names.
    Tuple(Fields<QType>),
    /// The type of a shape: it has one value, which takes no space.
    Shape(ShapeType),
    /// The type of an array of scalars that may be missing. Stored outside of frames.
    Array(ArrayKind, Scalar),
    /// The type of an array's shape: its number of elements. Stored outside of frames.
    ArrayShape(ArrayKind),
    /// The type of an edge, which groups an array's elements. Stored outside of frames.
    Edge(EdgeType),
    /// The type of a type literal such as the `f32` of `core.cast(x, f32)`. Compile time only.
    Meta,
    /// The type of an untyped `missing`: it has a common type with every scalar type. Compile time only.
    Nothing,
    /// The type of the value that stands for an argument that is not given. Compile time only.
    Unspecified,
    /// The type of a function that is an operand. Compile time only.
    Function,
    /// The type of a dictionary: the types of its keys and of its values, which may be missing. Compile time only: lookups are compiled from
    /// the dictionary itself.
    Dict(Scalar, Scalar),
    /// The type of a sequence of elements of one type. Compile time only: loops are applied to it.
    Sequence(Arc<QType>),
    /// The type of a tensor: its element type, and its number of axes, at most [`MOST_AXES`]. Tensors are not in frames, because a model with
    /// tensors is evaluated as a whole, not row by row.
    Tensor(Scalar, u8),
}

/// The most axes that a tensor may have.
pub const MOST_AXES: usize = 16;

/// The part of a value that is stored in a frame, by the value's type.
#[derive(Clone, Copy, Debug)]
pub enum InFrame<'a> {
    /// The frame contains a value of this scalar type.
    Scalar(Scalar),
    /// The frame contains a presence byte and a value of this scalar type; the value is meaningful if the byte is set.
    Optional(Scalar),
    /// The frame contains a tuple: the parts of its fields that are stored in a frame.
    Tuple(&'a Fields<QType>),
    /// The frame contains nothing: the type has one value, or its values are stored outside of frames, or exist only while a model is prepared.
    Nothing,
}

/// The complexity of a type: how many fields it has and how deeply they are nested.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Extent {
    /// The number of fields in all tuples of the type, including inner tuples; 0 for a type that is not a tuple.
    pub fields: usize,
    /// The depth to which tuples and sequences of the type are nested; 0 for a type that is neither, 1 for a tuple of scalars.
    pub nesting: usize,
}

/// The offset of a part of a value, in bytes from the start of the value.
pub type FieldOffset = u32;

impl QType {
    /// The type `OPTIONAL_UNIT`, which conditions have.
    pub const MASK: QType = QType::Optional(Scalar::Unit);
    /// The type `UNIT`.
    pub const UNIT: QType = QType::Scalar(Scalar::Unit);
    /// The type `BOOLEAN`.
    pub const BOOLEAN: QType = QType::Scalar(Scalar::Boolean);
    /// The type `INT32`.
    pub const INT32: QType = QType::Scalar(Scalar::Int32);
    /// The type `INT64`.
    pub const INT64: QType = QType::Scalar(Scalar::Int64);
    /// The type `FLOAT32`.
    pub const FLOAT32: QType = QType::Scalar(Scalar::Float32);
    /// The type `FLOAT64`.
    pub const FLOAT64: QType = QType::Scalar(Scalar::Float64);
    /// The type `WEAK_FLOAT`.
    pub const WEAK_FLOAT: QType = QType::Scalar(Scalar::WeakFloat);
    /// The type `UINT64`.
    pub const UINT64: QType = QType::Scalar(Scalar::UInt64);
    /// The type `BYTES`.
    pub const BYTES: QType = QType::Scalar(Scalar::Bytes);
    /// The type `TEXT`.
    pub const TEXT: QType = QType::Scalar(Scalar::Text);

    /// The part of a value of this type that is stored in a frame.
    #[inline]
    #[must_use]
    pub const fn in_frame(&self) -> InFrame<'_> {
        match self {
            QType::Scalar(scalar) => InFrame::Scalar(*scalar),
            QType::Optional(scalar) => InFrame::Optional(*scalar),
            QType::Tuple(fields) => InFrame::Tuple(fields),
            QType::Shape(_)
            | QType::Array(..)
            | QType::ArrayShape(_)
            | QType::Edge(_)
            | QType::Meta
            | QType::Nothing
            | QType::Unspecified
            | QType::Function
            | QType::Dict(..)
            | QType::Sequence(_)
            | QType::Tensor(..) => InFrame::Nothing,
        }
    }

    /// The size and alignment in a frame of a value of this type. Shapes, compile-time types and values outside of frames take no space.
    #[must_use]
    pub fn layout(&self) -> Layout {
        match self.in_frame() {
            InFrame::Scalar(scalar) => scalar.layout(),
            InFrame::Optional(Scalar::Unit) => Layout { size: 1, align: 1 },
            InFrame::Optional(scalar) => {
                let value = scalar.layout();
                Layout { size: value.align + value.size, align: value.align }
            }
            InFrame::Tuple(fields) => {
                let mut whole = Layout { size: 0, align: 1 };
                for field in fields.iter() {
                    let part = field.layout();
                    whole.size = part.align_up(whole.size) + part.size;
                    whole.align = whole.align.max(part.align);
                }
                whole.size = whole.align_up(whole.size);
                whole
            }
            InFrame::Nothing => Layout { size: 0, align: 1 },
        }
    }

    /// The offset of an optional's value; its presence byte is at offset 0. `None` for every other type.
    #[inline]
    #[must_use]
    pub fn optional_value_offset(&self) -> Option<FieldOffset> {
        match self {
            QType::Optional(scalar) => Some(scalar.layout().align),
            _ => None,
        }
    }

    /// The offset of field `index` of a tuple. `None` if this is not a tuple or has no such field. To visit all fields, use
    /// [`field_offsets`](QType::field_offsets), which is faster.
    #[must_use]
    pub fn field_offset(&self, index: usize) -> Option<FieldOffset> {
        self.field_offsets().nth(index)
    }

    /// The offsets of a tuple's fields, in order; empty for other types.
    pub fn field_offsets(&self) -> impl Iterator<Item = FieldOffset> + '_ {
        let fields = match self {
            QType::Tuple(fields) => &fields[..],
            _ => &[],
        };
        fields.iter().scan(0, |end, field| {
            let part = field.layout();
            let start = part.align_up(*end);
            *end = start + part.size;
            Some(start)
        })
    }

    /// Counts the fields of the type and measures how deeply they are nested. A tuple that is used several times is counted each time. Counting stops
    /// soon after a number exceeds the one in `most`, so `most` bounds the time.
    #[must_use]
    pub fn extent(&self, most: Extent) -> Extent {
        let mut extent = Extent { fields: 0, nesting: 0 };
        let mut open = vec![std::slice::from_ref(self).iter()];
        while let Some(level) = open.last_mut() {
            match level.next() {
                None => drop(open.pop()),
                Some(QType::Tuple(fields)) => {
                    extent.fields = extent.fields.saturating_add(fields.len());
                    extent.nesting = extent.nesting.max(open.len());
                    if extent.fields > most.fields || extent.nesting > most.nesting {
                        break;
                    }
                    open.push(fields.iter());
                }
                // A sequence has no fields, but it adds to the depth, because types are compared, shown and dropped by recursive functions.
                Some(QType::Sequence(element)) => {
                    extent.nesting = extent.nesting.max(open.len());
                    if extent.nesting > most.nesting {
                        break;
                    }
                    open.push(std::slice::from_ref(&**element).iter());
                }
                Some(_) => {}
            }
        }
        extent
    }

    /// The scalar type of a scalar or an optional; `None` for other types.
    #[must_use]
    pub const fn scalar(&self) -> Option<Scalar> {
        match self {
            QType::Scalar(scalar) | QType::Optional(scalar) => Some(*scalar),
            _ => None,
        }
    }

    /// Returns true for optionals, including an untyped `missing`.
    #[must_use]
    pub const fn is_optional(&self) -> bool {
        matches!(self, QType::Optional(_) | QType::Nothing)
    }

    /// The optional type for a scalar or optional type; any other type is returned unchanged.
    #[must_use]
    pub fn to_optional(&self) -> QType {
        match self {
            QType::Scalar(scalar) => QType::Optional(*scalar),
            other => other.clone(),
        }
    }

    /// Returns true for types whose values exist at run time, not only while a model is prepared. Tensors are not included.
    #[must_use]
    pub fn is_run_time(&self) -> bool {
        // The recursion is bounded: types nest only as deep as the text that spelled them.
        match self {
            QType::Scalar(_)
            | QType::Optional(_)
            | QType::Shape(_)
            | QType::Array(..)
            | QType::ArrayShape(_)
            | QType::Edge(_) => true,
            QType::Tuple(fields) => fields.iter().all(QType::is_run_time),
            QType::Meta
            | QType::Nothing
            | QType::Unspecified
            | QType::Function
            | QType::Dict(..)
            | QType::Sequence(_)
            | QType::Tensor(..) => false,
        }
    }

    /// Returns true for types with which a model's text may declare an input: run-time types, and tensors.
    #[must_use]
    pub fn is_declarable(&self) -> bool {
        matches!(self, QType::Tensor(..)) || self.is_run_time()
    }

    /// Returns true for types that a field of a data row may have: scalars, optionals, and tuples of them.
    #[must_use]
    pub fn is_data(&self) -> bool {
        // The recursion is bounded: types nest only as deep as the text that spelled them.
        match self.in_frame() {
            InFrame::Scalar(_) | InFrame::Optional(_) => true,
            InFrame::Tuple(fields) => fields.iter().all(QType::is_data),
            InFrame::Nothing => false,
        }
    }

    /// Returns true for types without arrays, array shapes (sizes) and edges (groupings). A model with such types only is a scalar model.
    #[must_use]
    pub fn is_framed(&self) -> bool {
        // The recursion is bounded: types nest only as deep as the text that spelled them.
        match self {
            QType::Tuple(fields) => fields.all_once(QType::is_framed),
            other => !other.is_beside_frames(),
        }
    }

    /// Returns true for an array, an array shape (size) and an edge (grouping), whose values are stored outside of frames.
    #[must_use]
    pub const fn is_beside_frames(&self) -> bool {
        matches!(self, QType::Array(..) | QType::ArrayShape(_) | QType::Edge(_))
    }

    /// The type at a single index for a value of this type in an array program: for an array, the optional of the element type. For another type it
    /// is the type itself, because the value is the same at each index.
    #[must_use]
    pub fn of_each(&self) -> QType {
        match self {
            QType::Array(_, scalar) => QType::Optional(*scalar),
            other => other.clone(),
        }
    }

    /// The shape of a scalar or an optional; `None` for other types.
    #[must_use]
    pub const fn shape(&self) -> Option<ShapeType> {
        match self {
            QType::Scalar(_) => Some(ShapeType::Scalar),
            QType::Optional(_) => Some(ShapeType::OptionalScalar),
            _ => None,
        }
    }

    /// Makes the tuple type with these field types.
    #[must_use]
    pub fn tuple(fields: impl IntoIterator<Item = QType>) -> QType {
        QType::Tuple(fields.into_iter().collect())
    }

    /// The fields of a tuple or a struct that cannot be missing. `None` for other types, including those that are represented by a tuple in
    /// another [`Form`].
    #[must_use]
    pub fn as_tuple(&self) -> Option<&Fields<QType>> {
        match self {
            QType::Tuple(fields) if *fields.form() == Form::Tuple => Some(fields),
            _ => None,
        }
    }

    /// The struct type of an optional struct; `None` for other types.
    #[must_use]
    pub fn as_optional_struct(&self) -> Option<&QType> {
        match self {
            QType::Tuple(fields) if *fields.form() == Form::Optional => fields.get(1),
            _ => None,
        }
    }

    /// The element type of a list of structs, or the entry type of a dictionary that is an input; `None` for other types.
    #[must_use]
    pub fn element(&self) -> Option<&QType> {
        match self {
            QType::Tuple(fields) => match fields.form() {
                Form::List(element) | Form::Map(element) => Some(element),
                Form::Tuple | Form::Optional | Form::Table(_) => None,
            },
            _ => None,
        }
    }

    /// The key and value types of a dictionary that is an input; `None` for other types.
    #[must_use]
    pub fn as_map(&self) -> Option<(Scalar, Scalar)> {
        let QType::Tuple(members) = self else { return None };
        match (members.form(), &members[..]) {
            (Form::Map(_), [QType::Array(_, key), QType::Array(_, value)]) => Some((*key, *value)),
            _ => None,
        }
    }

    /// The type of an input that is declared with this type: the list of entries for a dictionary, else the type itself.
    #[must_use]
    pub fn as_input(&self) -> QType {
        let QType::Dict(key, value) = self else { return self.clone() };
        let entry = QType::tuple([QType::Scalar(*key), QType::Optional(*value)]);
        match entry.list_of() {
            Some(QType::Tuple(members)) => QType::Tuple(members.in_form(Form::Map(Arc::new(entry)))),
            _ => self.clone(),
        }
    }

    /// The type for a value of this type that may be missing: an optional struct for a struct, the result of
    /// [`to_optional`](QType::to_optional) for other types. A type whose values may be missing already is returned unchanged.
    #[must_use]
    pub fn optional_struct(&self) -> QType {
        match self.as_tuple() {
            Some(_) => QType::Tuple(Fields::from([QType::MASK, self.clone()]).in_form(Form::Optional)),
            None => self.to_optional(),
        }
    }

    /// The type of a list with elements of this type: an array of scalars or optionals, a list of structs or optional structs. `None` for
    /// elements that contain arrays or lists, and for structs without fields, because a list of them would have no size.
    #[must_use]
    pub fn list_of(&self) -> Option<QType> {
        // The recursion is bounded: types nest only as deep as the text that spelled them.
        match self {
            QType::Scalar(scalar) | QType::Optional(scalar) => Some(QType::Array(ArrayKind::Dense, *scalar)),
            QType::Tuple(fields) if !fields.is_empty() && matches!(fields.form(), Form::Tuple | Form::Optional) => {
                let lists = fields.iter().map(QType::list_of).collect::<Option<Vec<QType>>>()?;
                Some(QType::Tuple(fields.with(lists).in_form(Form::List(Arc::new(self.clone())))))
            }
            _ => None,
        }
    }

    /// The type `scalar`, or its optional type if `optional` is true.
    #[must_use]
    pub const fn of(scalar: Scalar, optional: bool) -> QType {
        if optional { QType::Optional(scalar) } else { QType::Scalar(scalar) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layouts_are_those_of_the_documented_table() {
        let expected = [
            ("UNIT", 1, 1),
            ("BOOLEAN", 1, 1),
            ("INT32", 4, 4),
            ("INT64", 8, 8),
            ("UINT64", 8, 8),
            ("FLOAT32", 4, 4),
            ("FLOAT64", 8, 8),
            ("DATE", 4, 4),
            ("TIMESTAMP", 8, 8),
            ("DURATION", 8, 8),
            ("WEAK_FLOAT", 8, 8),
            ("BYTES", 16, 8),
            ("TEXT", 16, 8),
            ("OPTIONAL_UNIT", 1, 1),
            ("OPTIONAL_BOOLEAN", 2, 1),
            ("OPTIONAL_INT32", 8, 4),
            ("OPTIONAL_INT64", 16, 8),
            ("OPTIONAL_UINT64", 16, 8),
            ("OPTIONAL_FLOAT32", 8, 4),
            ("OPTIONAL_FLOAT64", 16, 8),
            ("OPTIONAL_DATE", 8, 4),
            ("OPTIONAL_TIMESTAMP", 16, 8),
            ("OPTIONAL_DURATION", 16, 8),
            ("OPTIONAL_WEAK_FLOAT", 16, 8),
            ("OPTIONAL_BYTES", 24, 8),
            ("OPTIONAL_TEXT", 24, 8),
        ];
        let all = Scalar::ALL.iter().map(|s| QType::Scalar(*s)).chain(Scalar::ALL.iter().map(|s| QType::Optional(*s)));
        let found: Vec<_> = all.map(|t| (t.name().to_string(), t.layout().size, t.layout().align)).collect();
        let expected: Vec<_> = expected.iter().map(|(n, s, a)| ((*n).to_string(), *s, *a)).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn tuples_are_laid_out_like_c_structs() {
        let inner = QType::tuple([QType::BOOLEAN, QType::Optional(Scalar::Int32)]);
        let outer = QType::tuple([QType::MASK, inner.clone(), QType::FLOAT64, QType::BOOLEAN]);
        assert_eq!(inner.layout(), Layout { size: 12, align: 4 });
        assert_eq!(inner.field_offset(1), Some(4));
        assert_eq!(outer.field_offset(1), Some(4));
        assert_eq!(outer.field_offset(2), Some(16));
        assert_eq!(outer.field_offset(3), Some(24));
        assert_eq!(outer.field_offset(4), None);
        assert_eq!(outer.layout(), Layout { size: 32, align: 8 });
        assert_eq!(outer.to_string(), "(unit?, (bool, i32?), f64, bool)");
        assert_eq!(QType::tuple([]).layout(), Layout { size: 0, align: 1 });
        assert_eq!(QType::Shape(ShapeType::Scalar).layout(), Layout { size: 0, align: 1 });
        let names = Names::parse("a,b").unwrap();
        let named = QType::Tuple(Fields::named(names, [QType::BOOLEAN, inner.clone()]).unwrap());
        let same = QType::tuple([QType::BOOLEAN, inner]);
        assert_ne!(named, same);
        assert_eq!((named.layout(), named.field_offset(1)), (same.layout(), same.field_offset(1)));
        assert_eq!(named.to_string(), "{a: bool, b: (bool, i32?)}");
        // Types are copied in many places of a compiler.
        assert_eq!(size_of::<QType>(), 16);
        assert_eq!(outer.field_offsets().collect::<Vec<_>>(), [0, 4, 16, 24]);
        assert_eq!(QType::TEXT.field_offsets().count(), 0);
    }

    #[test]
    fn a_type_is_measured_no_further_than_asked() {
        let most = |fields, nesting| Extent { fields, nesting };
        let pair = QType::tuple([QType::INT32, QType::tuple([QType::TEXT, QType::tuple([])])]);
        assert_eq!(pair.extent(most(100, 100)), Extent { fields: 4, nesting: 3 });
        assert_eq!(pair.extent(most(100, 2)), Extent { fields: 4, nesting: 3 });
        assert_eq!(pair.extent(most(3, 3)), Extent { fields: 4, nesting: 2 });
        assert_eq!(QType::MASK.extent(most(0, 0)), Extent { fields: 0, nesting: 0 });
        // 2^64 fields in 64 nodes of memory.
        let doubled = (0..64).fold(QType::INT32, |inner, _| QType::tuple([inner.clone(), inner]));
        assert!((1001..1100).contains(&doubled.extent(most(1000, 100)).fields));
        assert!(doubled.to_string().len() < 10_000);
    }
}
