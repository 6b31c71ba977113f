//! Borrowed values, as they are passed from a row into a slot of a frame or from a slot to a listener. Texts are
//! borrowed, so passing a value allocates nothing.

use crate::{ScalarValue, Value};
use cembra_runtime::{FramePtr, Optional, Plain, QType, Scalar, Slot, for_each_scalar};
use std::borrow::Cow;
use std::fmt;

macro_rules! value_refs {
    (
        []
        unit { $(#[$unit_doc:meta])* $unit:ident $unit_facts:tt }
        plain { $($(#[$doc:meta])* $plain:ident($rust:ty) $facts:tt)* }
        weak { $($(#[$weak_doc:meta])* $weak:ident($weak_rust:ty) $weak_facts:tt)* }
        view { $($(#[$view_doc:meta])* $view:ident($viewed:ty) $view_facts:tt)* }
    ) => {
        /// A value that may borrow its text. It does not tell whether its type is optional: a number stands for a value of a plain type, and for a
        /// present value of an optional type. A `Float64` also stands for a `WEAK_FLOAT`.
        ///
        /// ```
        /// use cembra_value::ValueRef;
        ///
        /// assert_eq!(ValueRef::from(Some(2.5)), ValueRef::Float64(2.5));
        /// assert_eq!(ValueRef::from(None::<&str>), ValueRef::Missing);
        /// ```
        #[derive(Clone, PartialEq, Debug)]
        #[non_exhaustive]
        pub enum ValueRef<'a> {
            /// A missing value of any optional type.
            Missing,
            $(#[$unit_doc])* $unit,
            $($(#[$doc])* $plain($rust),)*
            $($(#[$view_doc])* $view(Cow<'a, $viewed>),)*
            /// A value that is not a scalar.
            Composite(Cow<'a, Value>),
        }

        impl<'a> ValueRef<'a> {
            /// The type of the value if it is a present scalar; `None` for a missing value and for values that are not
            /// scalars.
            #[must_use]
            pub fn scalar(&self) -> Option<Scalar> {
                Some(match self {
                    ValueRef::Missing | ValueRef::Composite(_) => return None,
                    ValueRef::$unit => Scalar::$unit,
                    $(ValueRef::$plain(_) => Scalar::$plain,)*
                    $(ValueRef::$view(_) => Scalar::$view,)*
                })
            }

            /// The value of type `scalar` with these bits; missing for a string, which has no bits.
            #[inline]
            #[must_use]
            pub fn from_bits(scalar: Scalar, bits: u64) -> Self {
                match scalar {
                    Scalar::$unit => ValueRef::$unit,
                    Scalar::WeakFloat => ValueRef::Float64(f64::from_bits(bits)),
                    $(Scalar::$plain => ValueRef::$plain(Plain::from_word(bits)),)*
                    $(Scalar::$view)|* => ValueRef::Missing,
                }
            }

            /// Writes the value as a text that [`ScalarValue::spelled`] reads back as the same value, except for the
            /// bits of a NaN. Writes nothing for units, strings, missing values and values that are not scalars.
            ///
            /// # Errors
            /// If writing to `out` fails.
            pub fn write_spelled(&self, out: &mut impl fmt::Write) -> fmt::Result {
                match self {
                    $(ValueRef::$plain(v) => write!(out, "{v}"),)*
                    ValueRef::Missing | ValueRef::Composite(_) | ValueRef::$unit $(| ValueRef::$view(_))* => Ok(()),
                }
            }

            /// Returns the value with copies of everything that it borrows.
            #[must_use]
            pub fn into_owned(self) -> ValueRef<'static> {
                match self {
                    ValueRef::Missing => ValueRef::Missing,
                    ValueRef::$unit => ValueRef::$unit,
                    $(ValueRef::$plain(v) => ValueRef::$plain(v),)*
                    $(ValueRef::$view(v) => ValueRef::$view(Cow::Owned(v.into_owned())),)*
                    ValueRef::Composite(v) => ValueRef::Composite(Cow::Owned(v.into_owned())),
                }
            }

            #[inline(always)]
            fn to_scalar(&self, scalar: Scalar) -> Option<ScalarValue> {
                let value = match self {
                    ValueRef::Missing | ValueRef::Composite(_) => return None,
                    ValueRef::Float64(v) if scalar == Scalar::WeakFloat => ScalarValue::WeakFloat(*v),
                    ValueRef::$unit => ScalarValue::$unit,
                    $(ValueRef::$plain(v) => ScalarValue::$plain(*v),)*
                    $(ValueRef::$view(v) => ScalarValue::$view((&**v).into()),)*
                };
                (value.scalar() == scalar).then_some(value)
            }

            /// Writes the scalar to `frame` at `offset` as a plain value, without a presence byte.
            ///
            /// # Safety
            /// FRAME-SLOT and STRING-VIEW (`docs/safety.md`): `frame` and `offset` must be as `write_to` requires.
            #[inline(always)]
            pub(crate) unsafe fn write_bare(&self, frame: FramePtr, offset: u32) {
                // SAFETY: FRAME-SLOT, promised by the caller, for the one slot written.
                unsafe {
                    match self {
                        ValueRef::$unit => frame.write(Slot::at(offset), 1_u8),
                        $(ValueRef::$plain(v) => frame.write(Slot::at(offset), *v),)*
                        $(ValueRef::$view(v) => frame.write(Slot::at(offset), cembra_runtime::$view::new(v)),)*
                        ValueRef::Missing | ValueRef::Composite(_) => {}
                    }
                }
            }

            /// Reads a plain value of type `scalar` from `frame` at `offset`, where no presence byte precedes it.
            ///
            /// # Safety
            /// FRAME-SLOT and STRING-VIEW (`docs/safety.md`): `frame` and `offset` must be as `read_from` requires.
            #[inline(always)]
            pub(crate) unsafe fn read_bare(scalar: Scalar, frame: FramePtr, offset: u32) -> Self {
                // SAFETY: FRAME-SLOT, promised by the caller, for the one slot read.
                unsafe {
                    match scalar {
                        Scalar::WeakFloat => ValueRef::Float64(frame.read(Slot::at(offset))),
                        Scalar::$unit => ValueRef::$unit,
                        $(Scalar::$plain => {
                            let stored = frame.read(Slot::<<$rust as Plain>::Stored>::at(offset));
                            ValueRef::$plain(Plain::from_stored(stored))
                        })*
                        $(Scalar::$view => {
                            ValueRef::$view(Cow::Borrowed(frame.read(Slot::<cembra_runtime::$view<'a>>::at(offset)).into()))
                        })*
                    }
                }
            }
        }

        impl<'a> From<&'a ScalarValue> for ValueRef<'a> {
            #[inline]
            fn from(value: &'a ScalarValue) -> Self {
                match value {
                    ScalarValue::$unit => ValueRef::$unit,
                    ScalarValue::WeakFloat(v) => ValueRef::Float64(*v),
                    $(ScalarValue::$plain(v) => ValueRef::$plain(*v),)*
                    $(ScalarValue::$view(v) => ValueRef::$view(Cow::Borrowed(v)),)*
                }
            }
        }

        from_rust! { $($rust => |v| ValueRef::$plain(v);)* }
    };
}

macro_rules! from_rust {
    ($($ty:ty => |$value:ident| $made:expr;)*) => { $(
        impl<'a> From<$ty> for ValueRef<'a> {
            fn from($value: $ty) -> Self { $made }
        }
        impl<'a> From<Option<$ty>> for ValueRef<'a> {
            fn from(value: Option<$ty>) -> Self { value.map_or(ValueRef::Missing, ValueRef::from) }
        }
    )* };
}

for_each_scalar!(value_refs []);

impl<'a> ValueRef<'a> {
    /// Returns true if the value owns the data that its views would point to. Then it must be kept as long as these views are read.
    #[must_use]
    pub fn is_owned(&self) -> bool {
        match self {
            ValueRef::Text(text) => matches!(text, Cow::Owned(_)),
            ValueRef::Bytes(bytes) => matches!(bytes, Cow::Owned(_)),
            ValueRef::Composite(value) => matches!(value, Cow::Owned(_)),
            _ => false,
        }
    }

    /// Converts the value to a `Value` of type `qtype`, with texts copied; `None` if the value is not of this type.
    #[must_use]
    pub fn to_value(&self, qtype: &QType) -> Option<Value> {
        if let ValueRef::Composite(value) = self {
            return value.is_of(qtype).then(|| Value::clone(value));
        }
        if let (ValueRef::Missing, Some(of)) = (self, qtype.as_optional_struct()) {
            return Value::optional_struct(of, None);
        }
        let scalar = qtype.scalar()?;
        match self.to_scalar(scalar) {
            Some(value) if qtype.is_optional() => Some(Value::Present(value)),
            Some(value) => Some(Value::Scalar(value)),
            None => (*self == ValueRef::Missing && qtype.is_optional()).then_some(Value::Missing(scalar)),
        }
    }

    /// Returns true if the value can stand for one of this scalar type.
    fn stands_for(&self, scalar: Scalar) -> bool {
        let own = if scalar == Scalar::WeakFloat { Scalar::Float64 } else { scalar };
        self.scalar() == Some(own)
    }

    /// Writes the value to `frame` at `offset` as one of type `qtype`. Returns false, and writes nothing, if the value
    /// is not of this type. Texts become views of this value.
    ///
    /// # Safety
    /// FRAME-SLOT (`docs/safety.md`): `frame` must have room for the type at `offset`, and a text of this value must outlive every read of the view.
    #[must_use]
    pub unsafe fn write_to(&self, qtype: &QType, frame: FramePtr, offset: u32) -> bool {
        match (self, qtype) {
            (ValueRef::Composite(value), _) => {
                let fits = value.is_of(qtype);
                if fits {
                    // SAFETY: FRAME-SLOT and STRING-VIEW, promised by the caller for this type.
                    unsafe { value.write_to(frame, offset) };
                }
                fits
            }
            (ValueRef::Missing, QType::Optional(_)) => {
                // SAFETY: FRAME-SLOT; the presence byte is at the start of an optional.
                unsafe { frame.write(Slot::at(offset), 0_u8) };
                true
            }
            (ValueRef::Missing, QType::Tuple(members)) if qtype.as_optional_struct().is_some() => {
                for (member, inside) in members.iter().zip(qtype.field_offsets()) {
                    // SAFETY: FRAME-SLOT, promised by the caller: the member lies inside of the struct.
                    unsafe { write_nothing(member, frame, offset + inside) };
                }
                true
            }
            (_, QType::Scalar(scalar) | QType::Optional(scalar)) if self.stands_for(*scalar) => {
                let inside = qtype.optional_value_offset();
                // SAFETY: FRAME-SLOT; the presence byte is at the start of an optional, its value at the documented
                // offset; the type was just compared. A unit is its presence.
                unsafe {
                    if qtype.is_optional() {
                        frame.write(Slot::at(offset), 1_u8);
                    }
                    if *scalar != Scalar::Unit || inside.is_none() {
                        self.write_bare(frame, offset + inside.unwrap_or(0));
                    }
                }
                true
            }
            _ => false,
        }
    }

    /// Reads a value of type `qtype` from `frame` at `offset`. Values that are not scalars are copied.
    ///
    /// # Safety
    /// FRAME-SLOT (`docs/safety.md`): a value of type `qtype` must have been written at `offset`, and the texts that it views must live as long as
    /// the result.
    #[must_use]
    pub unsafe fn read_from(qtype: &QType, frame: FramePtr, offset: u32) -> Self {
        // SAFETY: FRAME-SLOT, promised by the caller; a presence byte is at the start of an optional, its value at the
        // documented offset, and there if it is present (a unit has no bytes to read).
        unsafe {
            match qtype {
                QType::Scalar(scalar) => ValueRef::read_bare(*scalar, frame, offset),
                QType::Optional(_) if frame.read(Slot::<u8>::at(offset)) == 0 => ValueRef::Missing,
                QType::Optional(scalar) => {
                    ValueRef::read_bare(*scalar, frame, offset + qtype.optional_value_offset().unwrap_or(0))
                }
                _ => ValueRef::Composite(Cow::Owned(Value::read_from(qtype, frame, offset))),
            }
        }
    }

    /// Reads a plain value of type `scalar` from `frame` at `offset`, as an owned value.
    ///
    /// # Safety
    /// FRAME-SLOT and STRING-VIEW (`docs/safety.md`): `frame` and `offset` must be as `read_from` requires.
    #[inline(always)]
    pub(crate) unsafe fn read_scalar(scalar: Scalar, frame: FramePtr, offset: u32) -> ScalarValue {
        // SAFETY: FRAME-SLOT and STRING-VIEW, promised by the caller.
        let value = unsafe { ValueRef::read_bare(scalar, frame, offset) };
        value.to_scalar(scalar).unwrap_or(ScalarValue::Unit)
    }
}

/// Writes the data of a missing value: zeros, empty strings, missing optionals.
///
/// # Safety
/// FRAME-SLOT for the type at `offset`.
unsafe fn write_nothing(qtype: &QType, frame: FramePtr, offset: u32) {
    // Types nest only as deep as the text that spelled them.
    match qtype {
        // SAFETY: FRAME-SLOT; the presence byte is at the start of an optional.
        QType::Optional(_) => unsafe { frame.write(Slot::at(offset), 0_u8) },
        QType::Scalar(scalar) => {
            let empty = match scalar {
                Scalar::Text => ValueRef::from(""),
                Scalar::Bytes => ValueRef::Bytes(Cow::Borrowed(&[])),
                scalar => ScalarValue::from_bits(*scalar, 0).map_or(ValueRef::Unit, |zero| Value::Scalar(zero).into()),
            };
            // SAFETY: FRAME-SLOT, promised by the caller. STRING-VIEW: an empty string is static.
            unsafe { empty.write_bare(frame, offset) };
        }
        QType::Tuple(members) => {
            for (member, inside) in members.iter().zip(qtype.field_offsets()) {
                // SAFETY: FRAME-SLOT, promised by the caller: the member lies inside of the struct.
                unsafe { write_nothing(member, frame, offset + inside) };
            }
        }
        // Values of other types take no space.
        _ => {}
    }
}

impl<'a> From<&'a Value> for ValueRef<'a> {
    fn from(value: &'a Value) -> Self {
        match value {
            Value::Scalar(v) | Value::Present(v) => v.into(),
            Value::Missing(_) => ValueRef::Missing,
            other => ValueRef::Composite(Cow::Borrowed(other)),
        }
    }
}

from_rust! {
    &'a str => |v| ValueRef::Text(v.into());
    String => |v| ValueRef::Text(v.into());
    &'a [u8] => |v| ValueRef::Bytes(v.into());
    Vec<u8> => |v| ValueRef::Bytes(v.into());
}

impl From<Value> for ValueRef<'_> {
    fn from(value: Value) -> Self {
        match value {
            Value::Scalar(_) | Value::Present(_) | Value::Missing(_) => ValueRef::from(&value).into_owned(),
            other => ValueRef::Composite(Cow::Owned(other)),
        }
    }
}

impl<'a, T: Copy + Into<ValueRef<'a>>> From<Optional<T>> for ValueRef<'a> {
    fn from(value: Optional<T>) -> Self {
        value.get().map_or(ValueRef::Missing, Into::into)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cembra_runtime::Frame;

    #[test]
    fn every_type_goes_through_a_frame_and_back() {
        let scalars: [ValueRef<'_>; 9] = [
            ValueRef::Unit,
            true.into(),
            (-5_i32).into(),
            i64::MIN.into(),
            u64::MAX.into(),
            1.5_f32.into(),
            (-0.0_f64).into(),
            "text".into(),
            vec![0_u8, 255].into(),
        ];
        for value in &scalars {
            let scalar = value.scalar().unwrap();
            for qtype in [QType::Scalar(scalar), QType::Optional(scalar)] {
                let mut frame = Frame::from_bytes(&[0xAA; 64]);
                // SAFETY: FRAME-SLOT: every type used here fits into 64 bytes.
                let back = unsafe {
                    assert!(value.write_to(&qtype, frame.ptr(), 8));
                    ValueRef::read_from(&qtype, frame.ptr(), 8)
                };
                assert_eq!(back, *value);
                let owned = value.to_value(&qtype).unwrap();
                assert_eq!((owned.qtype(), ValueRef::from(&owned)), (qtype, value.clone()));
            }
        }
    }

    #[test]
    fn what_does_not_fit_is_not_written() {
        let tuple = Value::Tuple([Value::from(1_i32)].into());
        let cases: [(ValueRef<'_>, QType); 5] = [
            (ValueRef::Missing, QType::FLOAT64),
            (1_i32.into(), QType::INT64),
            (1_i32.into(), QType::tuple([QType::INT32])),
            ((&tuple).into(), QType::INT32),
            (ValueRef::Unit, QType::BOOLEAN),
        ];
        for (value, qtype) in cases {
            let mut frame = Frame::from_bytes(&[7; 16]);
            // SAFETY: FRAME-SLOT: every type used here fits into 16 bytes.
            assert!(!unsafe { value.write_to(&qtype, frame.ptr(), 0) }, "{value:?}");
            // SAFETY: FRAME-SLOT: these are its 16 bytes.
            let bytes = unsafe { frame.ptr().read(Slot::<[u8; 16]>::at(0)) };
            assert_eq!((bytes, value.to_value(&qtype)), ([7; 16], None));
        }
    }

    #[test]
    fn missing_and_weak_values_take_the_wanted_type() {
        let missing = ValueRef::Missing.to_value(&QType::Optional(Scalar::Text));
        assert_eq!(missing, Some(Value::Missing(Scalar::Text)));
        let weak = ValueRef::from(0.5).to_value(&QType::Scalar(Scalar::WeakFloat));
        assert_eq!(weak, Some(Value::Scalar(ScalarValue::WeakFloat(0.5))));
    }
}
