//! Struct fields of scalar types and their optionals. Plain scalars and `Optional<T>` are read and written in place.
//! `Option<T>` has no guaranteed layout, so it is copied through slots of the frame, the block of memory that compiled
//! code works on.

use crate::binding::fields::sealed::Sealed;
use crate::binding::fields::single;
use crate::derived::OutputField;
use crate::{InputValue, Output, OutputValue};
use cembra_runtime::{FramePtr, Optional, Plain, QType, Scalar, Slot, for_each_scalar};
use cembra_value::{ScalarValue, Value};
use std::hint::select_unpredictable;
use std::mem::MaybeUninit;

macro_rules! in_place {
    ($($ty:ty as $bits:ty => $scalar:ident;)*) => { $(
        in_place!(@impl $ty, QType::Scalar(Scalar::$scalar), |field| Value::from(*field), |value| match value {
            Value::Scalar(ScalarValue::$scalar(value)) => Some(*value),
            _ => None,
        }, {});
        in_place!(@impl Optional<$ty>, QType::Optional(Scalar::$scalar), |field| Value::from(field.get()),
            |value| Option::<$ty>::of_value(value).map(Self::from), {
            // SAFETY: FIELD-TABLE, as the trait says.
            #[inline]
            unsafe fn take(place: *const Self) -> Self {
                let mut taken = MaybeUninit::<Self>::uninit();
                let from = FramePtr::from_raw(place.cast_mut().cast());
                let to = FramePtr::from_raw(taken.as_mut_ptr().cast());
                // The bytes after the presence of a missing value need not be a value of the type, so its bits are moved. They are moved as a number,
                // because a copied block may be read together with the presence.
                let (presence, value) = (Slot::<u8>::at(0), Slot::<$bits>::at(align_of::<$ty>() as u32));
                // SAFETY: FIELD-TABLE, promised by the caller: the presence byte is first, the value at its alignment. Both are copied, whether the
                // value is used or not.
                unsafe {
                    to.write(presence, from.read(presence));
                    to.write(value, from.read(value));
                    taken.assume_init()
                }
            }
        });

        impl<S> Sealed<S> for Option<$ty> {}

        impl InputValue for Option<$ty> {
            fn qtype() -> QType { QType::Optional(Scalar::$scalar) }
            // SAFETY: FRAME-SLOT, as the trait says.
            unsafe fn write(&self, frame: FramePtr, offset: u32) {
                // Missing values are unpredictable, so there must be no branch on the presence.
                let bits = select_unpredictable(self.is_some(), self.map_or(0, Plain::to_word), 0);
                let value = Optional::present_if(self.is_some(), <$ty>::from_word(bits));
                // SAFETY: FRAME-SLOT, promised by the caller.
                unsafe { frame.write(Slot::at(offset), value) }
            }
            fn value(&self) -> Value { Value::from(*self) }
        }

        impl OutputValue for Option<$ty> {
            fn qtype() -> QType { QType::Optional(Scalar::$scalar) }
            // SAFETY: FRAME-SLOT, as the trait says.
            unsafe fn read(frame: FramePtr, offset: u32) -> Option<Self> {
                // SAFETY: FRAME-SLOT, promised by the caller.
                Some(unsafe { frame.read(Slot::<Optional<$ty>>::at(offset)) }.get())
            }
            fn of_value(value: &Value) -> Option<Self> {
                match value {
                    Value::Present(ScalarValue::$scalar(value)) => Some(Some(*value)),
                    Value::Missing(Scalar::$scalar) => Some(None),
                    _ => None,
                }
            }
        }

        single!(Option<$ty>);
    )* };
    (@impl $ty:ty, $qtype:expr, |$field:ident| $value:expr, |$from:ident| $of:expr, { $($take:item)? }) => {
        impl<S> Sealed<S> for $ty {}

        impl InputValue for $ty {
            fn qtype() -> QType { $qtype }
            const IN_PLACE: bool = true;
            // SAFETY: FRAME-SLOT, as the trait says.
            unsafe fn write(&self, frame: FramePtr, offset: u32) {
                // SAFETY: FRAME-SLOT, promised by the caller.
                unsafe { frame.write(Slot::at(offset), *self) }
            }
            fn value(&self) -> Value {
                let $field = self;
                $value
            }
        }

        impl OutputValue for $ty {
            fn qtype() -> QType { $qtype }
            const IN_PLACE: bool = true;
            // SAFETY: FRAME-SLOT, as the trait says.
            unsafe fn read(frame: FramePtr, offset: u32) -> Option<Self> {
                // SAFETY: FRAME-SLOT, promised by the caller.
                Some(unsafe { frame.read(Slot::at(offset)) })
            }
            fn of_value($from: &Value) -> Option<Self> {
                $of
            }
            $($take)?
        }

        single!($ty);
    };
}

macro_rules! plain_in_place {
    ([] $unit:ident $unit_rows:tt plain { $($(#[$doc:meta])* $plain:ident($rust:ty) $facts:tt)* } $($rest:tt)*) => {
        in_place! { $($rust as <$rust as Plain>::Stored => $plain;)* }
    };
}

for_each_scalar!(plain_in_place []);

impl<S> Sealed<S> for Mask {}

/// A mask as an output: true where the condition holds.
impl OutputValue for Mask {
    fn qtype() -> QType {
        QType::MASK
    }
    const IN_PLACE: bool = true;
    // SAFETY: FRAME-SLOT, as the trait says.
    unsafe fn read(frame: FramePtr, offset: u32) -> Option<Self> {
        // SAFETY: FRAME-SLOT, promised by the caller.
        Some(Mask(unsafe { frame.read(Slot::at(offset)) }))
    }
    fn of_value(value: &Value) -> Option<Self> {
        match value {
            Value::Present(ScalarValue::Unit) => Some(Mask(true)),
            Value::Missing(Scalar::Unit) => Some(Mask(false)),
            _ => None,
        }
    }
}

impl InputValue for Mask {
    fn qtype() -> QType {
        QType::MASK
    }
    const IN_PLACE: bool = true;
    // SAFETY: FRAME-SLOT, as the trait says.
    unsafe fn write(&self, frame: FramePtr, offset: u32) {
        // SAFETY: FRAME-SLOT, promised by the caller.
        unsafe { frame.write(Slot::at(offset), self.0) }
    }
    fn value(&self) -> Value {
        (*self).into()
    }
}

single!(Mask);

/// A field for a value of type `unit?` in models, such as a condition: true if the value is present.
#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Mask(pub bool);

impl From<Mask> for Value {
    fn from(mask: Mask) -> Self {
        Value::optional(Scalar::Unit, mask.0.then_some(ScalarValue::Unit))
    }
}

/// Serializes a condition that holds as `true`, and one that does not hold as null.
#[cfg(feature = "json")]
impl serde::Serialize for Mask {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serde::Serialize::serialize(&self.0.then_some(true), serializer)
    }
}

/// Deserializes `true` as a condition that holds. `false`, null and a missing field mean that it does not hold.
#[cfg(feature = "json")]
impl<'de> serde::Deserialize<'de> for Mask {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let holds: Option<bool> = serde::Deserialize::deserialize(deserializer)?;
        Ok(Mask(holds.unwrap_or(false)))
    }
}
