//! Values: literals, inputs and results of a model. Equality compares bits: `-0.0` differs from `0.0`, and a NaN equals
//! itself, as hash-consing and comparisons of results require.

use crate::{Array, Dict, Edge, Tensor, ValueRef};
use cembra_runtime::{
    ArrayKind, Duration, Excerpt, Fields, Form, FramePtr, InFrame, Plain, QType, Scalar, ShapeType, Slot, Timestamp,
    for_each_scalar,
};
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

macro_rules! scalar_values {
    (
        []
        unit { $(#[$unit_doc:meta])* $unit:ident $unit_facts:tt }
        plain { $($(#[$doc:meta])* $plain:ident($rust:ty) $facts:tt)* }
        weak { $($(#[$weak_doc:meta])* $weak:ident($weak_rust:ty) $weak_facts:tt)* }
        view { $($(#[$view_doc:meta])* $view:ident($viewed:ty) $view_facts:tt)* }
    ) => {
        /// A present scalar. The variants are in the order of [`Scalar`], so their numbers are the same, as `ValueRun` requires.
        #[derive(Clone, Debug)]
        #[repr(u8)]
        pub enum ScalarValue {
            $(#[$unit_doc])* $unit,
            $($(#[$doc])* $plain($rust),)*
            $($(#[$weak_doc])* $weak($weak_rust),)*
            $($(#[$view_doc])* $view(Arc<$viewed>),)*
        }

        impl ScalarValue {
            /// The scalar type of the value.
            #[inline]
            #[must_use]
            pub const fn scalar(&self) -> Scalar {
                match self {
                    ScalarValue::$unit => Scalar::$unit,
                    $(ScalarValue::$plain(_) => Scalar::$plain,)*
                    $(ScalarValue::$weak(_) => Scalar::$weak,)*
                    $(ScalarValue::$view(_) => Scalar::$view,)*
                }
            }

            /// The bits of a number, a boolean or a unit, extended with zeros to 64 bits; 0 for a string.
            #[must_use]
            pub fn bits(&self) -> u64 {
                match self {
                    $(ScalarValue::$plain(v) => v.to_word(),)*
                    $(ScalarValue::$weak(v) => v.to_word(),)*
                    ScalarValue::$unit $(| ScalarValue::$view(_))* => 0,
                }
            }

            /// The value of type `scalar` with these bits; `None` for a string, which has no bits.
            #[must_use]
            pub fn from_bits(scalar: Scalar, bits: u64) -> Option<ScalarValue> {
                Some(match scalar {
                    Scalar::$unit => ScalarValue::$unit,
                    $(Scalar::$plain => ScalarValue::$plain(Plain::from_word(bits)),)*
                    $(Scalar::$weak => ScalarValue::$weak(Plain::from_word(bits)),)*
                    $(Scalar::$view)|* => return None,
                })
            }

            /// Prints the value without its type: digits, `true`, `'text'`.
            pub(crate) fn fmt_bare(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self {
                    _ if self.is_nan() => f.write_str("nan"),
                    ScalarValue::Unit => f.write_str("unit"),
                    ScalarValue::Text(v) => write!(f, "'{}'", v.escape_debug()),
                    ScalarValue::Bytes(v) => write!(f, "b'{}'", v.escape_ascii()),
                    ScalarValue::Duration(v) => write!(f, "{}", v.literal()),
                    spelled => spelled.write_spelled(f),
                }
            }

            /// Parses `text` as a value of type `scalar`: a number (for a float also with an exponent, `inf` or `nan`),
            /// `true` or `false`, or a date, timestamp or duration. `None` for other texts, and for units and strings,
            /// for which there is no common spelling.
            #[must_use]
            pub fn spelled(scalar: Scalar, text: &str) -> Option<ScalarValue> {
                match scalar {
                    $(Scalar::$plain => text.parse().ok().map(ScalarValue::$plain),)*
                    $(Scalar::$weak => text.parse().ok().map(ScalarValue::$weak),)*
                    Scalar::$unit $(| Scalar::$view)* => None,
                }
            }
        }

        $(
            impl From<$rust> for ScalarValue {
                #[inline]
                fn from(value: $rust) -> Self { ScalarValue::$plain(value) }
            }
        )*
        $(
            impl From<Arc<$viewed>> for ScalarValue {
                #[inline]
                fn from(value: Arc<$viewed>) -> Self { ScalarValue::$view(value) }
            }
        )*
        $(from_rust!($rust, $plain);)*
        $(from_rust!(Arc<$viewed>, $view);)*
    };
}

macro_rules! from_rust {
    ($ty:ty, $variant:ident) => {
        impl From<$ty> for Value {
            #[inline]
            fn from(value: $ty) -> Self {
                Value::Scalar(value.into())
            }
        }
        impl From<Option<$ty>> for Value {
            // Inlined, so that callers write the parts directly to their place: moving parts that were just written stalls.
            #[inline]
            fn from(value: Option<$ty>) -> Self {
                Value::optional(Scalar::$variant, value.map(ScalarValue::$variant))
            }
        }
    };
}

for_each_scalar!(scalar_values []);

impl ScalarValue {
    /// Writes the value as a text that [`spelled`](ScalarValue::spelled) reads back as the same value, except for the
    /// bits of a NaN. Writes nothing for units and strings.
    ///
    /// # Errors
    /// If writing to `out` fails.
    pub fn write_spelled(&self, out: &mut impl fmt::Write) -> fmt::Result {
        ValueRef::from(self).write_spelled(out)
    }

    /// Parses `text`, from a data file, as a value of type `scalar`. It accepts what [`spelled`](ScalarValue::spelled)
    /// accepts, and for a timestamp or a duration also the further forms of [`Timestamp::from_data_text`] and
    /// [`Duration::from_data_text`]. `None` if the text is not of the type.
    #[must_use]
    pub fn spelled_in_data(scalar: Scalar, text: &str) -> Option<ScalarValue> {
        match scalar {
            Scalar::Timestamp => Timestamp::from_data_text(text).ok().map(ScalarValue::from),
            Scalar::Duration => Duration::from_data_text(text).ok().map(ScalarValue::from),
            _ => ScalarValue::spelled(scalar, text),
        }
    }

    /// Returns true if the value is a NaN.
    #[must_use]
    pub const fn is_nan(&self) -> bool {
        match self {
            ScalarValue::Float32(v) => v.is_nan(),
            ScalarValue::Float64(v) | ScalarValue::WeakFloat(v) => v.is_nan(),
            _ => false,
        }
    }

    /// Returns true if both values have the same type and the same bits, or are both NaN. Strings are compared by their
    /// bytes.
    #[must_use]
    pub fn same(&self, other: &ScalarValue) -> bool {
        self == other || (self.scalar() == other.scalar() && self.is_nan() && other.is_nan())
    }
}

impl PartialEq for ScalarValue {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (ScalarValue::Text(a), ScalarValue::Text(b)) => a == b,
            (ScalarValue::Bytes(a), ScalarValue::Bytes(b)) => a == b,
            _ => self.scalar() == other.scalar() && self.bits() == other.bits(),
        }
    }
}

impl Eq for ScalarValue {}

impl Hash for ScalarValue {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.scalar().hash(state);
        match self {
            ScalarValue::Text(text) => text.hash(state),
            ScalarValue::Bytes(bytes) => bytes.hash(state),
            other => other.bits().hash(state),
        }
    }
}

impl fmt::Display for ScalarValue {
    /// Prints the value as listings do: `f64{1}`, `4.`, `5`, `i64{5}`, `true`, `'text'`. These are Arolla's forms, with the type
    /// names of the text language.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ScalarValue::Float32(v) if v.is_finite() && v.fract() == 0.0 => {
                self.fmt_bare(f)?;
                f.write_str(".")
            }
            // The bare forms of these values show their types.
            ScalarValue::Unit
            | ScalarValue::Boolean(_)
            | ScalarValue::Int32(_)
            | ScalarValue::Float32(_)
            | ScalarValue::Duration(_)
            | ScalarValue::Text(_)
            | ScalarValue::Bytes(_) => self.fmt_bare(f),
            _ => {
                write!(f, "{}{{", self.scalar())?;
                self.fmt_bare(f)?;
                f.write_str("}")
            }
        }
    }
}

/// A typed value. The list of variants is exhaustive, so that the compiler reports every match that misses a new one.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[repr(C, u8)]
pub enum Value {
    /// A value of a scalar type.
    Scalar(ScalarValue),
    /// A present value of an optional type. The scalar is its content.
    Present(ScalarValue),
    /// A missing value. Its type is the optional type of this scalar type.
    Missing(Scalar),
    /// A tuple, or a struct with named fields.
    Tuple(Fields<Value>),
    /// The only value of a shape type.
    Shape(ShapeType),
    /// An array of scalars. The kind says which of Arolla's two array types it has.
    Array(ArrayKind, Arc<Array>),
    /// The shape of an array of this kind: the number of its elements.
    ArrayShape(ArrayKind, usize),
    /// An edge: the grouping of an array's elements, which gives the group of each element.
    Edge(Arc<Edge>),
    /// A dictionary, which is known while a model is prepared.
    Dict(Arc<Dict>),
    /// A type, as an operand of `core.cast`.
    Type(QType),
    /// The literal `missing` without a type.
    Nothing,
    /// An argument that a call explicitly leaves unspecified.
    Unspecified,
    /// A tensor, with any number of axes.
    Tensor(Arc<Tensor>),
}

impl Value {
    /// The type of the value.
    #[must_use]
    pub fn qtype(&self) -> QType {
        // Tuples nest only as deep as their types do, which the parser limits.
        match self {
            Value::Scalar(v) => QType::Scalar(v.scalar()),
            Value::Present(v) => QType::Optional(v.scalar()),
            Value::Missing(scalar) => QType::Optional(*scalar),
            Value::Tuple(fields) => QType::Tuple(fields.map(Value::qtype)),
            Value::Shape(shape) => QType::Shape(*shape),
            Value::Array(kind, array) => QType::Array(*kind, array.scalar()),
            Value::ArrayShape(kind, _) => QType::ArrayShape(*kind),
            Value::Edge(edge) => QType::Edge(edge.edge_type()),
            Value::Dict(dict) => dict.qtype(),
            Value::Type(_) => QType::Meta,
            Value::Nothing => QType::Nothing,
            Value::Unspecified => QType::Unspecified,
            Value::Tensor(tensor) => tensor.qtype(),
        }
    }

    /// Returns true if the value is of type `qtype`: like a comparison with [`qtype`](Value::qtype), but without making
    /// a type where none is needed. For a list of structs, it also checks that the arrays have one size, and that
    /// scalars are not missing.
    #[inline]
    #[must_use]
    pub fn is_of(&self, qtype: &QType) -> bool {
        match (self, qtype) {
            (Value::Scalar(v), QType::Scalar(scalar)) | (Value::Present(v), QType::Optional(scalar)) => {
                v.scalar() == *scalar
            }
            (Value::Missing(found), QType::Optional(scalar)) => found == scalar,
            (Value::Array(found, array), QType::Array(kind, scalar)) => found == kind && array.scalar() == *scalar,
            (Value::Edge(edge), QType::Edge(wanted)) => edge.edge_type() == *wanted,
            (Value::Tensor(tensor), QType::Tensor(scalar, rank)) => {
                tensor.scalar_type() == *scalar && tensor.extents().len() == usize::from(*rank)
            }
            (Value::Tuple(values), QType::Tuple(types)) => {
                let are_alike =
                    values.len() == types.len() && values.names() == types.names() && values.form() == types.form();
                let is_list = matches!(types.form(), Form::List(_) | Form::Map(_));
                are_alike
                    && values.iter().zip(types.iter()).all(|(value, qtype)| value.is_of(qtype))
                    && (!is_list || self.is_well_formed())
            }
            _ => self.qtype() == *qtype,
        }
    }

    /// The scalar inside of this value, if it is a scalar or a present optional; `None` for other values.
    #[must_use]
    pub fn as_scalar(&self) -> Option<&ScalarValue> {
        match self {
            Value::Scalar(v) | Value::Present(v) => Some(v),
            _ => None,
        }
    }

    /// The value as a tensor; `None` for values of other types.
    #[must_use]
    pub fn as_tensor(&self) -> Option<&Tensor> {
        if let Value::Tensor(tensor) = self { Some(tensor) } else { None }
    }

    /// Makes a value of an optional type: present if `value` is `Some`, else missing.
    #[inline]
    #[must_use]
    pub fn optional(scalar: Scalar, value: Option<ScalarValue>) -> Value {
        // Not `map_or`: its default would be made and dropped even if there is a value.
        match value {
            Some(value) => Value::Present(value),
            None => Value::Missing(scalar),
        }
    }

    /// Makes a value of type text.
    #[must_use]
    pub fn text(text: impl Into<Arc<str>>) -> Value {
        Value::Scalar(ScalarValue::Text(text.into()))
    }

    /// Returns true if both values have the same type and the same bits. All NaNs count as the same, and the data of
    /// missing values are ignored. Tests and fuzzing compare results in this way.
    #[must_use]
    pub fn same(&self, other: &Value) -> bool {
        match (self, other) {
            (Value::Scalar(a), Value::Scalar(b)) | (Value::Present(a), Value::Present(b)) => a.same(b),
            (Value::Tuple(a), Value::Tuple(b)) => {
                // The data of a missing struct are ignored.
                let is_missing = || self.as_optional_struct() == Some(None) && other.as_optional_struct() == Some(None);
                let are_alike = a.len() == b.len() && a.names() == b.names() && a.form() == b.form();
                are_alike && (is_missing() || a.iter().zip(b.iter()).all(|(a, b)| a.same(b)))
            }
            (Value::Array(a_kind, a), Value::Array(b_kind, b)) => a_kind == b_kind && a.same(b),
            (Value::Edge(a), Value::Edge(b)) => a.same(b),
            (Value::Dict(a), Value::Dict(b)) => a.same(b),
            (Value::Tensor(a), Value::Tensor(b)) => a.same(b),
            _ => self == other,
        }
    }

    /// Converts an operand of an operator on arrays to the operand of the corresponding operator on single elements. An
    /// array type becomes its element type; other values are unchanged.
    #[must_use]
    pub fn of_each(&self) -> Value {
        match self {
            Value::Type(qtype) => Value::Type(qtype.of_each()),
            other => other.clone(),
        }
    }

    /// Writes the value to `frame` at `offset`, in the layout of its type. Texts become views of this value.
    ///
    /// # Safety
    /// FRAME-SLOT (`docs/safety.md`): the memory of the frame must be alive and writable, and have room for the type at
    /// `offset`; a text of this value must outlive every read of the view. Shapes, compile-time values (`Type`, `Nothing`,
    /// `Unspecified`) and values that are stored outside of frames write nothing.
    #[inline]
    pub unsafe fn write_to(&self, frame: FramePtr, offset: u32) {
        match self {
            // SAFETY: FRAME-SLOT, promised by the caller.
            Value::Scalar(v) => unsafe { ValueRef::from(v).write_bare(frame, offset) },
            // SAFETY: FRAME-SLOT; the presence byte is at the start of an optional, its value at the documented offset.
            Value::Present(v) => unsafe {
                frame.write(Slot::at(offset), 1_u8);
                let qtype = QType::Optional(v.scalar());
                if let Some(value) = qtype.optional_value_offset().filter(|_| v.scalar() != Scalar::Unit) {
                    ValueRef::from(v).write_bare(frame, offset + value);
                }
            },
            // SAFETY: FRAME-SLOT; the presence byte is at the start of an optional.
            Value::Missing(_) => unsafe { frame.write(Slot::at(offset), 0_u8) },
            // SAFETY: FRAME-SLOT, promised by the caller.
            Value::Tuple(fields) => unsafe { self.write_fields(fields, frame, offset) },
            Value::Shape(_)
            | Value::Array(..)
            | Value::ArrayShape(..)
            | Value::Edge(_)
            | Value::Dict(_)
            | Value::Type(_)
            | Value::Nothing
            | Value::Unspecified
            | Value::Tensor(_) => {}
        }
    }

    /// Writes the fields of a tuple; a separate function, so that `write_to` is short.
    ///
    /// # Safety
    /// FRAME-SLOT, as for `write_to`; `fields` must be the fields of this value.
    #[inline(never)]
    unsafe fn write_fields(&self, fields: &Fields<Value>, frame: FramePtr, offset: u32) {
        let qtype = self.qtype();
        for (field, inside) in fields.iter().zip(qtype.field_offsets()) {
            // SAFETY: FRAME-SLOT; the field lies inside the tuple.
            unsafe { field.write_to(frame, offset + inside) };
        }
    }

    /// Reads a value of type `qtype` from `frame` at `offset`. Texts are copied.
    ///
    /// # Safety
    /// FRAME-SLOT (`docs/safety.md`): a value of type `qtype` must have been written at `offset`, and the texts that it views
    /// must be alive.
    #[inline]
    #[must_use]
    pub unsafe fn read_from(qtype: &QType, frame: FramePtr, offset: u32) -> Value {
        match qtype.in_frame() {
            // SAFETY: FRAME-SLOT, promised by the caller.
            InFrame::Scalar(scalar) => Value::Scalar(unsafe { ValueRef::read_scalar(scalar, frame, offset) }),
            InFrame::Optional(scalar) => {
                // SAFETY: FRAME-SLOT; the presence byte is at the start of an optional.
                let present = unsafe { frame.read(Slot::<u8>::at(offset)) } != 0;
                let value = qtype.optional_value_offset().unwrap_or(0);
                // SAFETY: FRAME-SLOT; a present optional's value was written (a unit has no bytes to read).
                Value::optional(
                    scalar,
                    present.then(|| unsafe { ValueRef::read_scalar(scalar, frame, offset + value) }),
                )
            }
            // SAFETY: FRAME-SLOT, promised by the caller.
            InFrame::Tuple(fields) => unsafe { Value::read_fields(qtype, fields, frame, offset) },
            InFrame::Nothing if let QType::Shape(shape) = qtype => Value::Shape(*shape),
            InFrame::Nothing => Value::Nothing,
        }
    }

    /// Reads the fields of a tuple; a separate function, so that `read_from` is short.
    ///
    /// # Safety
    /// FRAME-SLOT and STRING-VIEW, as for `read_from`; `fields` must be the fields of the type.
    #[inline(never)]
    unsafe fn read_fields(qtype: &QType, fields: &Fields<QType>, frame: FramePtr, offset: u32) -> Value {
        let values = fields.iter().zip(qtype.field_offsets());
        // SAFETY: FRAME-SLOT; the field lies inside the tuple.
        let values = values.map(|(field, inside)| unsafe { Value::read_from(field, frame, offset + inside) });
        Value::Tuple(fields.with(values.collect()))
    }
}

impl Value {
    /// Prints an optional struct, a list of structs or a dictionary. Of a long one, the first ten elements are printed.
    fn fmt_formed(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 10;
        let Some(len) = self.list_len() else {
            return match self.as_optional_struct() {
                Some(Some(of)) => write!(f, "{of}"),
                _ => write!(f, "{}{{NA}}", self.qtype()),
            };
        };
        let is_map = matches!(self, Value::Tuple(fields) if matches!(fields.form(), Form::Map(_)));
        f.write_str(if is_map { "dict{" } else { "[" })?;
        for (at, element) in (0..len.min(SHOWN)).filter_map(|at| Some((at, self.element(at)?))) {
            f.write_str(if at > 0 { ", " } else { "" })?;
            if let (true, Value::Tuple(entry)) = (is_map, &element) {
                let bare = |f: &mut fmt::Formatter<'_>, value: &Value| match value.as_scalar() {
                    Some(scalar) => scalar.fmt_bare(f),
                    None => f.write_str("NA"),
                };
                bare(f, &entry[0])?;
                f.write_str(": ")?;
                bare(f, &entry[1])?;
                continue;
            }
            match element.as_optional_struct() {
                Some(None) => f.write_str("NA")?,
                Some(Some(of)) => write!(f, "{of}")?,
                None => write!(f, "{element}")?,
            }
        }
        if len > SHOWN {
            write!(f, ", ... ({len} elements)")?;
        }
        f.write_str(if is_map { "}" } else { "]" })
    }
}

impl fmt::Display for Value {
    /// Prints the value as listings do: `f64?{NA}`, `present`, `(1, 2.)`, `{x: 1}`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Scalar(v) => write!(f, "{v}"),
            Value::Present(ScalarValue::Unit) => f.write_str("present"),
            Value::Missing(Scalar::Unit) => f.write_str("missing"),
            Value::Present(v) => {
                write!(f, "{}?{{", v.scalar())?;
                v.fmt_bare(f)?;
                f.write_str("}")
            }
            Value::Missing(scalar) => write!(f, "{scalar}?{{NA}}"),
            Value::Tuple(fields) if *fields.form() != Form::Tuple => self.fmt_formed(f),
            Value::Tuple(fields) => {
                let names = fields.names();
                f.write_str(if names.is_some() { "{" } else { "(" })?;
                for (index, field) in fields.iter().enumerate() {
                    if index > 0 {
                        f.write_str(", ")?;
                    }
                    if let Some(name) = names.and_then(|names| names.get(index)) {
                        write!(f, "{}: ", Excerpt::quoted(name))?;
                    }
                    write!(f, "{field}")?;
                }
                f.write_str(if names.is_some() { "}" } else { ")" })
            }
            Value::Shape(shape) => f.write_str(&shape.name().to_ascii_lowercase()),
            Value::Array(_, array) => write!(f, "{array}"),
            Value::ArrayShape(kind, size) => write!(f, "{}_shape{{{size}}}", kind.name().to_ascii_lowercase()),
            Value::Edge(edge) => write!(f, "{edge}"),
            Value::Dict(dict) => write!(f, "{dict}"),
            Value::Type(qtype) => write!(f, "{qtype}"),
            Value::Nothing => f.write_str("missing"),
            Value::Unspecified => f.write_str("unspecified"),
            Value::Tensor(tensor) => write!(f, "{tensor}"),
        }
    }
}

impl From<Tensor> for Value {
    fn from(tensor: Tensor) -> Self {
        Value::Tensor(tensor.into())
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Self {
        Value::text(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cembra_runtime::{Frame, Names};

    fn named<const N: usize>(names: &str, values: [Value; N]) -> Value {
        Value::Tuple(Fields::named(Names::parse(names).unwrap(), values).unwrap())
    }

    #[test]
    fn values_print_as_listings_have_them() {
        let shown: Vec<_> = [
            Value::from(1.0_f64),
            Value::from(4.0_f32),
            Value::from(1.5_f32),
            Value::from(-0.0_f32),
            Value::from(f32::NAN),
            Value::from(f64::NEG_INFINITY),
            Value::from(5_i32),
            Value::from(5_i64),
            Value::from(true),
            Value::Scalar(ScalarValue::WeakFloat(0.5)),
            Value::from(None::<f64>),
            Value::from(Some(2_i32)),
            Value::Present(ScalarValue::Unit),
            Value::Missing(Scalar::Unit),
            Value::from("it's"),
            Value::Tuple([Value::from(1_i32), Value::from(2.0_f32)].into()),
            named("x,y", [Value::from(1_i32), Value::from(2.0_f32)]),
            Value::Shape(ShapeType::OptionalScalar),
        ]
        .iter()
        .map(Value::to_string)
        .collect();
        assert_eq!(
            shown,
            [
                "f64{1}",
                "4.",
                "1.5",
                "-0.",
                "nan",
                "f64{-inf}",
                "5",
                "i64{5}",
                "true",
                "weak_float{0.5}",
                "f64?{NA}",
                "i32?{2}",
                "present",
                "missing",
                "'it\\'s'",
                "(1, 2.)",
                "{x: 1, y: 2.}",
                "optional_scalar_shape"
            ]
        );
    }

    /// Lists of values are moved and compared everywhere, so large parts are behind pointers.
    #[test]
    fn a_value_is_four_words() {
        assert_eq!(size_of::<Value>(), 4 * size_of::<u64>());
    }

    #[test]
    fn equality_is_of_bits() {
        assert_ne!(Value::from(0.0_f64), Value::from(-0.0_f64));
        assert_eq!(Value::from(f64::NAN), Value::from(f64::NAN));
        assert!(Value::from(f32::NAN).same(&Value::from(-f32::NAN)));
        assert!(!Value::from(1.0_f64).same(&Value::Scalar(ScalarValue::WeakFloat(1.0))));
        assert!(named("x", [Value::from(f32::NAN)]).same(&named("x", [Value::from(-f32::NAN)])));
        assert!(!named("x", [Value::from(1_i32)]).same(&named("y", [Value::from(1_i32)])));
        assert_ne!(named("x", [Value::from(1_i32)]), Value::Tuple([Value::from(1_i32)].into()));
    }

    #[test]
    fn a_value_is_of_its_own_type_alone() {
        let values = [
            Value::from(1_i32),
            Value::from(1_i64),
            Value::from(Some(1_i32)),
            Value::from(None::<i32>),
            Value::from(None::<f64>),
            Value::from(1.0),
            Value::Scalar(ScalarValue::WeakFloat(1.0)),
            Value::from("x"),
            Value::Tuple([Value::from(1_i32)].into()),
            Value::Tuple([Value::from(Some(1_i32))].into()),
            named("x", [Value::from(1_i32)]),
            named("y", [Value::from(1_i32)]),
            Value::Type(QType::INT32),
            Value::Nothing,
            Value::Unspecified,
            Tensor::scalar(1.0).into(),
            Tensor::scalar(1.0_f32).into(),
            Tensor::new(&[1], vec![1.0]).unwrap().into(),
            Tensor::new(&[1, 1], vec![1.0]).unwrap().into(),
        ];
        for value in &values {
            for other in &values {
                let qtype = other.qtype();
                assert_eq!(value.is_of(&qtype), value.qtype() == qtype, "{value} of {qtype}");
            }
        }
    }

    #[test]
    fn values_survive_a_frame() {
        let values = [
            Value::from("text"),
            Value::from(None::<Arc<str>>),
            Value::from(Some(2.5_f64)),
            Value::Present(ScalarValue::Unit),
            Value::Tuple([Value::from(true), Value::from(Some(7_i64)), Value::Tuple([Value::from("x")].into())].into()),
            Value::Tuple(
                [Value::Shape(ShapeType::Scalar), Value::from(1_i32), Value::Shape(ShapeType::OptionalScalar)].into(),
            ),
            named("b,n", [Value::from(true), named("t", [Value::from("x")])]),
        ];
        for value in values {
            let mut frame = Frame::from_bytes(&[0xAA; 64]);
            // SAFETY: FRAME-SLOT: every type used here fits into 64 bytes.
            let back = unsafe {
                value.write_to(frame.ptr(), 8);
                Value::read_from(&value.qtype(), frame.ptr(), 8)
            };
            assert_eq!(back, value);
        }
    }
}
