//! Elements of strips and results as slices of one type.

use super::{StripData, StripValues};
use cembra_value::Number;
use std::fmt::Debug;

/// A type of elements that are numbers.
pub(super) trait Element: Number + PartialOrd + Debug {
    /// What is not below anything but a NaN.
    const LEAST: Self;
    /// What is not above anything but a NaN.
    const GREATEST: Self;

    /// Elements, if they are of this type.
    fn of(data: StripData<'_>) -> Option<&[Self]>;

    /// Where results are written, if they are of this type.
    fn of_values<'a>(values: &'a mut StripValues<'_>) -> Option<&'a mut [Self]>;
}

macro_rules! elements {
    ($($ty:ident $variant:ident $least:ident $greatest:ident;)*) => { $(
        impl Element for $ty {
            const LEAST: Self = $ty::$least;
            const GREATEST: Self = $ty::$greatest;

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
    i32 Int32 MIN MAX;
    i64 Int64 MIN MAX;
    f32 Float32 NEG_INFINITY INFINITY;
    f64 Float64 NEG_INFINITY INFINITY;
}

/// Writes a value for each state.
#[inline(always)]
pub(super) fn write<S, T: Element>(states: &[S], values: &mut StripValues<'_>, value: impl Fn(&S) -> T) {
    let values = T::of_values(values);
    debug_assert!(values.is_some(), "results of another type");
    if let Some(values) = values {
        for (to, state) in values[..states.len()].iter_mut().zip(states) {
            *to = value(state);
        }
    }
}
