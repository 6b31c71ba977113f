//! User-defined field types, and integer types that models do not have, such as `u8`. Each field type stands for a type
//! of models. If both have the same memory layout, fields are read and written in place. Otherwise their values are
//! converted when they are copied to or from the frame, the block of memory that compiled code works on.

use crate::binding::fields::single;
use crate::derived::OutputField;
use crate::{InputValue, Output, OutputValue};
use cembra_runtime::{FramePtr, Slot, Text, for_each_scalar};
use cembra_value::ScalarValue;
use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher, Hash};

/// Restricts the trait [`ModelScalar`] to the types that implement it here.
mod sealed {
    pub trait Model {}
}

/// A type of models that a user-defined type can stand for: `bool`, `i32`, `i64`, `u64`, `f32`, `f64`, [`Date`](crate::Date),
/// [`Timestamp`](crate::Timestamp), [`Duration`](crate::Duration) and `String`. The trait is sealed.
#[diagnostic::on_unimplemented(
    message = "`cembra::FieldType` cannot be derived for a struct with a field of type `{Self}`",
    label = "not a type that models have",
    note = "the type must be `bool`, `i32`, `i64`, `u64`, `f32`, `f64`, `Date`, `Timestamp`, `Duration` or `String`"
)]
pub trait ModelScalar: InputValue + OutputValue + sealed::Model {
    /// The type in which a value is passed while it is converted: `&str` for a text, `Self` for other types.
    type View<'a>: InputValue + Copy;

    /// Returns the value as its [`View`](Self::View).
    fn view(&self) -> Self::View<'_>;

    /// Makes a value from its [`View`](Self::View).
    fn of_view(view: Self::View<'_>) -> Self;

    /// Reads the value in a slot.
    ///
    /// # Safety
    /// FRAME-SLOT (`docs/safety.md`): `frame` must have a value of this type at `offset`. STRING-VIEW: the text must live for `'a`.
    unsafe fn read_view<'a>(frame: FramePtr, offset: u32) -> Self::View<'a>;

    /// Returns the value of `scalar` as a view; `None` if `scalar` is of another type.
    fn scalar_view(scalar: &ScalarValue) -> Option<Self::View<'_>>;

    /// Looks up `key` in a hash map, without making a `String` for a text.
    fn find_in_table<'m, V, H: BuildHasher>(map: &'m HashMap<Self, V, H>, key: Self::View<'_>) -> Option<&'m V>
    where
        Self: Eq + Hash,
    {
        map.get(&Self::of_view(key))
    }

    /// Looks up `key` in a `BTreeMap`, without making a `String` for a text.
    fn find_in_tree<'m, V>(map: &'m BTreeMap<Self, V>, key: Self::View<'_>) -> Option<&'m V>
    where
        Self: Ord,
    {
        map.get(&Self::of_view(key))
    }
}

macro_rules! plain_models {
    ([] $unit:ident $unit_rows:tt plain { $($(#[$doc:meta])* $plain:ident($rust:ty) $facts:tt)* } $($rest:tt)*) => { $(
        impl sealed::Model for $rust {}

        impl ModelScalar for $rust {
            type View<'a> = $rust;

            #[inline]
            fn view(&self) -> $rust {
                *self
            }

            #[inline]
            fn of_view(view: $rust) -> $rust {
                view
            }

            // SAFETY: FRAME-SLOT, as the trait says.
            #[inline]
            unsafe fn read_view<'a>(frame: FramePtr, offset: u32) -> Self::View<'a> {
                // SAFETY: FRAME-SLOT, promised by the caller.
                unsafe { frame.read(Slot::at(offset)) }
            }

            fn scalar_view(scalar: &ScalarValue) -> Option<$rust> {
                match scalar {
                    ScalarValue::$plain(value) => Some(*value),
                    _ => None,
                }
            }
        }
    )* };
}

for_each_scalar!(plain_models []);

impl sealed::Model for String {}

impl ModelScalar for String {
    type View<'a> = &'a str;

    #[inline]
    fn view(&self) -> &str {
        self
    }

    fn of_view(view: &str) -> String {
        view.to_owned()
    }

    // SAFETY: FRAME-SLOT and STRING-VIEW, as the trait says.
    #[inline]
    unsafe fn read_view<'a>(frame: FramePtr, offset: u32) -> &'a str {
        // SAFETY: FRAME-SLOT and STRING-VIEW, promised by the caller.
        unsafe { frame.read(Slot::<Text<'a>>::at(offset)) }.as_str()
    }

    fn scalar_view(scalar: &ScalarValue) -> Option<&str> {
        match scalar {
            ScalarValue::Text(text) => Some(text),
            _ => None,
        }
    }

    fn find_in_table<'m, V, H: BuildHasher>(map: &'m HashMap<String, V, H>, key: &str) -> Option<&'m V> {
        map.get(key)
    }

    fn find_in_tree<'m, V>(map: &'m BTreeMap<String, V>, key: &str) -> Option<&'m V> {
        map.get(key)
    }
}

#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a type of fields",
    label = "not a type of fields",
    note = "write `#[derive(cembra::FieldType)]` before an enum or a struct of one field, and `#[derive(cembra::Input)]` or `#[derive(cembra::Output)]` before a struct of several"
)]
/// A user-defined type that struct fields may have. Derive it for a struct of one field of a model's type, or for an enum without fields. Then inputs
/// and outputs can have this type and `Option` of it. If the type is `Copy`, they can also have [`Optional`](crate::Optional) of it.
///
/// ```
/// use cembra::{Model, Options};
///
/// #[derive(cembra::FieldType, Clone, Copy, PartialEq, Debug)]
/// struct Cents(i64);
///
/// #[derive(cembra::FieldType, Clone, Copy, PartialEq, Debug)]
/// #[cembra(rename_all = "lowercase")]
/// enum Card { Debit, Credit, #[cembra(rename = "gift card")] Gift }
///
/// #[derive(cembra::FieldType, Clone, Copy, PartialEq, Debug)]
/// #[cembra(repr = "i32")]
/// enum Risk { Low = 1, High = 7 }
///
/// #[derive(cembra::Input)]
/// struct Payment { amount: Cents, card: Card, before: Option<Risk> }
///
/// #[derive(cembra::Output, PartialEq, Debug)]
/// struct Decision { fee: Cents, risk: Risk }
///
/// let model = Model::parse(
///     "input amount: i64; input card: text; input before: i32?
///      output fee = if card == \"gift card\" then 0i64 else amount // 100
///      output risk = before ?? (if amount > 100000 then 7 else 1)",
/// )?;
/// let mut decide = model.executor::<Payment, Decision>(&Options::default())?;
/// let payment = Payment { amount: Cents(250_000), card: Card::Credit, before: None };
/// assert_eq!(decide.run(&payment)?, Decision { fee: Cents(2_500), risk: Risk::High });
/// let payment = Payment { card: Card::Gift, before: Some(Risk::Low), ..payment };
/// assert_eq!(decide.run(&payment)?, Decision { fee: Cents(0), risk: Risk::Low });
///
/// let mut card = Model::parse("\"cash\"")?.executor::<(), Card>(&Options::default())?;
/// let error = card.run(&()).unwrap_err();
/// assert_eq!(error.code(), "values");
/// assert_eq!(error.to_string(), "output `result` is \"cash\", expected \"debit\", \"credit\" or \"gift card\"");
/// # Ok::<(), cembra::Error>(())
/// ```
///
/// # Safety
/// FIELD-TABLE (`docs/safety.md`): if `IN_PLACE` is true, the type must have the memory layout of `Model`, and every value of `Model` must be a value
/// of this type. `of` must return the same result for equal views. A panic in `view` or `of` becomes an error of the call.
pub unsafe trait FieldType: Sized {
    /// The type that models use for values of this Rust type.
    type Model: ModelScalar;

    /// True if a value may be read and written in place as a `Model`.
    const IN_PLACE: bool;

    /// A text for messages that lists the possible values of this type, if not every value of `Model` is possible; otherwise empty.
    const EXPECTED: &'static str;

    /// False if `view` and `of` are known not to panic, as the derived ones are.
    #[doc(hidden)]
    const MAY_PANIC: bool = true;

    /// Converts the value to the type `Model`, or to `&str` if that is `String`.
    fn view(&self) -> <Self::Model as ModelScalar>::View<'_>;

    /// Converts a value of models to this type; `None` if it is not a valid value of this type.
    fn of(view: <Self::Model as ModelScalar>::View<'_>) -> Option<Self>;
}

single!(T, T: FieldType);

/// Implements [`FieldType`] for integers with fewer bits than models have, by the narrowest model type that holds all their values.
macro_rules! narrow {
    ($($ty:ty as $model:ty, $expected:literal;)*) => { $(
        // SAFETY: FIELD-TABLE: it is always converted.
        unsafe impl FieldType for $ty {
            type Model = $model;
            const IN_PLACE: bool = false;
            const EXPECTED: &'static str = $expected;
            const MAY_PANIC: bool = false;

            #[inline]
            fn view(&self) -> $model {
                (*self).into()
            }

            #[inline]
            fn of(view: $model) -> Option<Self> {
                view.try_into().ok()
            }
        }
    )* };
}

narrow! {
    u32 as i64, "0 to 4294967295";
    u16 as i32, "0 to 65535";
    i16 as i32, "-32768 to 32767";
    u8 as i32, "0 to 255";
    i8 as i32, "-128 to 127";
}

/// Types of `chrono` that stand for model types. Nanoseconds are rounded down to microseconds.
#[cfg(feature = "chrono")]
mod with_chrono {
    use super::FieldType;
    use crate::{Date, Duration, Timestamp};
    use chrono::{DateTime, FixedOffset, NaiveDate, TimeDelta, Utc};

    macro_rules! fields {
        ($($ty:ty as $model:ty, $expected:literal, |$field:ident| $view:expr, |$found:ident| $of:expr;)*) => { $(
            // SAFETY: FIELD-TABLE: it is always converted.
            unsafe impl FieldType for $ty {
                type Model = $model;
                const IN_PLACE: bool = false;
                const EXPECTED: &'static str = $expected;
                const MAY_PANIC: bool = false;

                fn view(&self) -> $model {
                    let $field = *self;
                    $view
                }

                fn of($found: $model) -> Option<Self> {
                    $of
                }
            }
        )* };
    }

    fields! {
        NaiveDate as Date, "a date that `chrono` can hold", |date| date.into(), |date| date.try_into().ok();
        DateTime<Utc> as Timestamp, "a timestamp that `chrono` can hold", |moment| moment.into(), |moment| moment.try_into().ok();
        DateTime<FixedOffset> as Timestamp, "a timestamp that `chrono` can hold", |moment| moment.into(), |moment| {
            DateTime::<Utc>::try_from(moment).ok().map(|moment| moment.fixed_offset())
        };
        TimeDelta as Duration, "", |length| length.try_into().unwrap_or_else(|_| longest(length)), |length| Some(length.into());
    }

    /// Returns the longest duration with the sign of `length`, for a length beyond 64 bits of microseconds, which is about 292,000 years.
    fn longest(length: TimeDelta) -> Duration {
        Duration(if length < TimeDelta::zero() { i64::MIN } else { i64::MAX })
    }
}
