//! Functions with arguments in registers. Machine code calls such a function of an overload if the overload's types are all numbers, booleans or
//! units. The call costs no more than any C call. Other overloads are called by their kernel, with arguments in the frame.
//!
//! A direct function is `extern "C" fn(context, data, present, arguments..) -> RegisterResult`. Bit `i` of `present` is set if argument `i` is
//! present. Each argument is passed in one register, as the type [`Machine`](Register::Machine) of its own type. A missing argument has an arbitrary
//! value.

use cembra_runtime::{Bytes, Date, Duration, RegisterResult, Text, Timestamp};

/// A function with arguments in registers, of any signature.
///
/// # Safety
/// The function must be called with the signature that the module's documentation gives for the overload's types (rule
/// DIRECT-CALL in `docs/safety.md`).
/// Its argument `data` must be the data of the overload (rule OPERATOR-DATA).
pub type RegisterFn = unsafe extern "C" fn();

/// A value of type `WEAK_FLOAT`, for code that must distinguish this type from `FLOAT64`.
#[derive(Clone, Copy)]
pub(crate) struct WeakF64(pub(crate) f64);

/// A type that arguments and results of overloads may have, with the conversions between a value and a register.
pub trait Register: Sized {
    /// The type of one register that holds a value.
    type Machine: Copy;
    /// False if a value does not fit one register.
    const FITS: bool;

    /// Converts an argument in a register to a value; `present` is false for a missing argument.
    fn arrive(machine: Self::Machine, present: bool) -> Self;

    /// Converts the value to the result of a call.
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

// A boolean is widened, because calling conventions differ about the rest of a register. Strings take two registers; their
// functions are never called this way.
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
    WeakF64 as f64, true, |v| WeakF64(v), |v| v.0.to_bits();
    Text<'static> as u64, false, |_| Text::new(""), |_| 0;
    Bytes<'static> as u64, false, |_| Bytes::new(b""), |_| 0;
}

/// Returns `function` if machine code can call it with arguments in registers. `None` if one of its types does not fit a register (false in `fits`),
/// or if the platform does not return a result in two registers.
///
/// # Safety
/// The function must have the signature that the module's documentation gives for exactly these types (rule DIRECT-CALL in `docs/safety.md`).
pub(crate) const unsafe fn direct(fits: &[bool], function: RegisterFn) -> Option<RegisterFn> {
    let mut at = 0;
    while at < fits.len() {
        if !fits[at] {
            return None;
        }
        at += 1;
    }
    // On Windows, a struct of two words is returned in memory.
    if cfg!(windows) { None } else { Some(function) }
}

/// Removes the lowest bit of `bits`, shifting the other bits down, and returns true if it was set.
#[inline]
pub(crate) fn next_bit(bits: &mut u64) -> bool {
    let bit = *bits & 1 != 0;
    *bits >>= 1;
    bit
}
