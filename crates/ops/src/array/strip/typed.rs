//! Converts the elements and the results of strips (blocks of elements) to slices of one type. `StripData` and
//! `StripValues` are enums with a variant per type; code for one type uses the trait `Element`.

use super::{StripData, StripValues};
use cembra_value::Number;
use std::fmt::Debug;

/// A numeric type that the elements of strips may have.
pub(crate) trait Element: Number + PartialOrd + Debug {
    /// The least value of the type, apart from NaN.
    const LEAST: Self;
    /// The greatest value of the type, apart from NaN.
    const GREATEST: Self;

    /// Returns true if the number is a NaN.
    fn is_nan(self) -> bool;

    /// Returns true if the number is a zero of a type with two zeros.
    fn may_be_either_zero(self) -> bool;

    /// The elements of a strip (a block of elements) as a slice of this type; `None` if the elements are of another type.
    fn of(data: StripData<'_>) -> Option<&[Self]>;

    /// The memory for results as a slice of this type; `None` if the results are of another type.
    fn of_values<'a>(values: &'a mut StripValues<'_>) -> Option<&'a mut [Self]>;
}

macro_rules! elements {
    ($($ty:ident $variant:ident $least:ident $greatest:ident $is_nan:expr, $is_zero:expr;)*) => { $(
        impl Element for $ty {
            const LEAST: Self = $ty::$least;
            const GREATEST: Self = $ty::$greatest;

            #[inline(always)]
            fn is_nan(self) -> bool {
                let is_nan: fn(Self) -> bool = $is_nan;
                is_nan(self)
            }

            #[inline(always)]
            fn may_be_either_zero(self) -> bool {
                let is_zero: fn(Self) -> bool = $is_zero;
                is_zero(self)
            }

            fn of(data: StripData<'_>) -> Option<&[Self]> {
                if let StripData::$variant(all) = data { Some(all) } else { None }
            }

            fn of_values<'a>(values: &'a mut StripValues<'_>) -> Option<&'a mut [Self]> {
                if let StripValues::$variant(all) = values { Some(all) } else { None }
            }
        }
    )* };
}

elements! {
    i32 Int32 MIN MAX |_| false, |_| false;
    i64 Int64 MIN MAX |_| false, |_| false;
    f32 Float32 NEG_INFINITY INFINITY f32::is_nan, |value| value == 0.0;
    f64 Float64 NEG_INFINITY INFINITY f64::is_nan, |value| value == 0.0;
}

/// Writes to `values` one result per group, which `value` computes from the group's state. `values` must be of type
/// `T`.
#[inline(always)]
pub(super) fn write<S, T: Element>(states: &[S], values: &mut StripValues<'_>, value: impl Fn(&S) -> T) {
    let values = T::of_values(values);
    debug_assert!(values.is_some(), "the results have another type");
    if let Some(values) = values {
        for (to, state) in values[..states.len()].iter_mut().zip(states) {
            *to = value(state);
        }
    }
}
