//! Calls on registers: how machine code calls the function of an overload whose types are all numbers, booleans or units.
//! Such a call costs what a call costs; others go through the frame, by their kernel.
//!
//! A direct function is `extern "C" fn(context, data, present, arguments..) -> RegisterResult`. Bit `i` of `present` says whether
//! argument `i` is there, and each argument travels as its type's `Machine`, with anything in place of a missing one.

use cembra_runtime::{Bytes, Date, Duration, RegisterResult, Text, Timestamp};

/// A direct function, whatever its arguments are.
///
/// # Safety
/// DIRECT-CALL: the true signature is that of the module's head, for the overload's types. OPERATOR-DATA: the data is the
/// overload's.
pub type RegisterFn = unsafe extern "C" fn();

/// A `WEAK_FLOAT`, where it must be told from a `FLOAT64`.
#[derive(Clone, Copy)]
pub(crate) struct Weak(pub(crate) f64);

/// How a type travels in registers.
pub trait Register: Sized {
    /// What one register holds of it.
    type Machine: Copy;
    /// False for what does not fit one register.
    const FITS: bool;

    /// The value from a register.
    fn arrive(machine: Self::Machine, present: bool) -> Self;

    /// The value as the answer of a call.
    fn leave(self) -> RegisterResult;
}

macro_rules! registers {
    ($($ty:ty as $machine:ty, $fits:literal, |$from:pat_param| $value:expr, |$to:pat_param| $bits:expr;)*) => { $(
        impl Register for $ty {
            type Machine = $machine;
            const FITS: bool = $fits;

            #[inline]
            fn arrive($from: $machine, _: bool) -> Self {
                $value
            }

            #[inline]
            fn leave(self) -> RegisterResult {
                let $to = self;
                RegisterResult::value($bits)
            }
        }

        impl Register for Option<$ty> {
            type Machine = $machine;
            const FITS: bool = $fits;

            #[inline]
            fn arrive(machine: $machine, present: bool) -> Self {
                present.then(|| <$ty>::arrive(machine, true))
            }

            #[inline]
            fn leave(self) -> RegisterResult {
                self.map_or(RegisterResult::MISSING, <$ty>::leave)
            }
        }
    )* };
}

// A boolean is widened: conventions differ on what is in the rest of a register. Strings take two registers; their
// functions are never called so.
registers! {
    () as u64, true, |_| (), |()| 1;
    bool as u64, true, |v| v != 0, |v| u64::from(v);
    i32 as i32, true, |v| v, |v| u64::from(v.cast_unsigned());
    i64 as i64, true, |v| v, |v| v.cast_unsigned();
    u64 as u64, true, |v| v, |v| v;
    f32 as f32, true, |v| v, |v| u64::from(v.to_bits());
    f64 as f64, true, |v| v, |v| v.to_bits();
    Date as i32, true, |v| Date(v), |v| u64::from(v.0.cast_unsigned());
    Timestamp as i64, true, |v| Timestamp(v), |v| v.0.cast_unsigned();
    Duration as i64, true, |v| Duration(v), |v| v.0.cast_unsigned();
    Weak as f64, true, |v| Weak(v), |v| v.0.to_bits();
    Text<'static> as u64, false, |_| Text::new(""), |_| 0;
    Bytes<'static> as u64, false, |_| Bytes::new(b""), |_| 0;
}

/// The function as a direct one, if its types fit and the answer comes back in two registers.
///
/// # Safety
/// DIRECT-CALL: the function has the signature of the module's head for exactly these types.
pub(crate) const unsafe fn direct(fits: &[bool], function: RegisterFn) -> Option<RegisterFn> {
    let mut at = 0;
    while at < fits.len() {
        if !fits[at] {
            return None;
        }
        at += 1;
    }
    // There, a struct of two words comes back in memory.
    if cfg!(windows) { None } else { Some(function) }
}

/// The next bit of a set.
#[inline]
pub(crate) fn next_bit(bits: &mut u64) -> bool {
    let bit = *bits & 1 != 0;
    *bits >>= 1;
    bit
}
