//! The Rust types that overloads on every scalar type are written for, in one list. A type that is made of another needs none:
//! typing finds the overload on what it is made of.

/// Gives a macro the types, behind what it is given here.
macro_rules! for_scalars {
    ($then:ident!($($given:tt)*)) => {
        $then!($($given)* (), bool, i32, i64, u64, f32, f64, Text<'static>, Bytes<'static>)
    };
    // UINT64 is in order only where the answer is a boolean, as in Arolla, and by a rule of its own.
    (ordered $then:ident!($($given:tt)*)) => {
        $then!($($given)* (), bool, i32, i64, f32, f64, Text<'static>, Bytes<'static>)
    };
}

pub(crate) use for_scalars;
