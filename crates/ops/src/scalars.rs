//! The list of the Rust types for which overloads on scalars are written. A derived type, such as `DATE`, is not in the
//! list: typing uses the overload for the base type, `INT32`.

/// Calls a macro with the given tokens followed by the types.
macro_rules! for_scalars {
    ($then:ident!($($given:tt)*)) => {
        $then!($($given)* (), bool, i32, i64, u64, f32, f64, Text<'static>, Bytes<'static>)
    };
    // UINT64 has an order only in comparisons that return a boolean, as in Arolla, and these have a rule of their own.
    (ordered $then:ident!($($given:tt)*)) => {
        $then!($($given)* (), bool, i32, i64, f32, f64, Text<'static>, Bytes<'static>)
    };
}

pub(crate) use for_scalars;
