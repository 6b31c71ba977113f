//! The functions that generated code calls. They are in one table, whose address is in the context. So generated code contains no
//! addresses, and can be moved and cached. One list defines the number, the signature and the implementation of each function.

use crate::preserving::call_preserving;
use crate::{Bytes, Context, MachineType, compare, math};

/// An entry of the function table: the address of a function. Only generated code casts it back to its signature.
pub(crate) type Address = *const ();

macro_rules! runtime_functions {
    ($($(#[$doc:meta])* $variant:ident = $symbol:literal $(in $context:ident)? ($($arg:ident: $argty:ident),*) -> $ret:ident $body:block)*) => {
        /// A function that generated code may call.
        #[repr(u32)]
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub enum RuntimeFn { $($(#[$doc])* $variant),* }

        impl RuntimeFn {
            /// Every function, in table order.
            pub const ALL: &[RuntimeFn] = &[$(RuntimeFn::$variant),*];

            /// The function's name in listings and symbol tables.
            #[must_use]
            pub const fn symbol(self) -> &'static str {
                match self { $(RuntimeFn::$variant => $symbol),* }
            }

            /// The index in the table of the function that calls another function and preserves all registers. It is the last entry.
            ///
            /// Its arguments are the address of a function of one or two floats, and the address of two words that hold the operands
            /// and receive the result.
            pub const CALL_PRESERVING: usize = RuntimeFn::ALL.len();

            /// Returns true if the function takes the address of the context before its arguments.
            #[must_use]
            pub const fn takes_context(self) -> bool {
                match self { $(RuntimeFn::$variant => false $(|| is_there!($context))?),* }
            }

            /// Returns true if the function may be called through [`CALL_PRESERVING`](RuntimeFn::CALL_PRESERVING).
            #[must_use]
            pub const fn is_preserving(self) -> bool {
                let (takes, ret) = self.signature();
                match takes {
                    [x] => x.is_float() && ret.is_float(),
                    [x, y] => x.is_float() && y.is_float() && ret.is_float(),
                    _ => false,
                }
            }

            /// The types of the function's arguments, without the context, and the type of its result.
            #[must_use]
            pub const fn signature(self) -> (&'static [MachineType], MachineType) {
                match self { $(RuntimeFn::$variant => (&[$(MachineType::$argty),*], MachineType::$ret)),* }
            }

            /// Calls the function on the bits of its arguments, zero-extended, without a context, for the evaluator of tapes.
            ///
            /// # Safety
            /// STRING-VIEW (`docs/safety.md`): arguments that the function takes as the view of a text must be a valid view.
            #[must_use]
            pub unsafe fn call_on_bits(self, bits: &[u64]) -> u64 {
                match self { $(RuntimeFn::$variant => {
                    let mut next = bits.iter().copied();
                    $(let $arg = <rust_type!($argty) as Bits>::from_bits64(next.next().unwrap_or(0));)*
                    $(let $context = std::ptr::null_mut();)?
                    entry::$variant($($context,)? $($arg),*).to_bits64()
                }),* }
            }
        }

        #[expect(non_snake_case, reason = "one function per variant, under its name")]
        mod entry {
            use super::*;
            $(pub(super) extern "C" fn $variant(
                $($context: *mut Context,)?
                $($arg: rust_type!($argty)),*
            ) -> rust_type!($ret) $body)*
        }

        struct Table([Address; RuntimeFn::ALL.len() + 1]);
        // SAFETY: FUNCTION-TABLE.
        unsafe impl Sync for Table {}
        static TABLE: Table = Table([$(entry::$variant as Address,)* call_preserving as Address]);
    };
}

macro_rules! is_there {
    ($name:ident) => {
        true
    };
}

macro_rules! rust_type {
    (I32) => {
        i32
    };
    (I64) => {
        i64
    };
    (F32) => {
        f32
    };
    (F64) => {
        f64
    };
    (Flag) => {
        u8
    };
}

trait Bits: Sized {
    fn from_bits64(bits: u64) -> Self;
    fn to_bits64(self) -> u64;
}

macro_rules! bits {
    ($($ty:ty: $from:expr, $to:expr;)*) => { $(impl Bits for $ty {
        fn from_bits64(bits: u64) -> Self { ($from)(bits) }
        fn to_bits64(self) -> u64 { ($to)(self) }
    })* };
}

bits! {
    i32: |b| b as u32 as i32, |v| v as u32 as u64;
    i64: |b| b as i64, |v| v as u64;
    f32: |b| f32::from_bits(b as u32), |v| u64::from(f32::to_bits(v));
    f64: f64::from_bits, f64::to_bits;
    u8: |b| b as u8, u64::from;
}

/// The address of the table of functions that generated code calls. Each context stores this address.
pub(crate) fn table() -> *const Address {
    TABLE.0.as_ptr()
}

runtime_functions! {
    /// e to the power of x.
    ExpF32 = "exp_f32" (x: F32) -> F32 { math::exp_f32(x) }
    /// e to the power of x.
    ExpF64 = "exp_f64" (x: F64) -> F64 { math::exp_f64(x) }
    /// e to the power of x, minus 1, without cancellation near 0.
    Expm1F32 = "expm1_f32" (x: F32) -> F32 { math::expm1_f32(x) }
    /// e to the power of x, minus 1, without cancellation near 0.
    Expm1F64 = "expm1_f64" (x: F64) -> F64 { math::expm1_f64(x) }
    /// The natural logarithm of x.
    LogF32 = "log_f32" (x: F32) -> F32 { math::log_f32(x) }
    /// The natural logarithm of x.
    LogF64 = "log_f64" (x: F64) -> F64 { math::log_f64(x) }
    /// The natural logarithm of 1 + x.
    Log1pF32 = "log1p_f32" (x: F32) -> F32 { math::log1p_f32(x) }
    /// The natural logarithm of 1 + x.
    Log1pF64 = "log1p_f64" (x: F64) -> F64 { math::log1p_f64(x) }
    /// The logarithm of x to base 2.
    Log2F32 = "log2_f32" (x: F32) -> F32 { math::log2_f32(x) }
    /// The logarithm of x to base 2.
    Log2F64 = "log2_f64" (x: F64) -> F64 { math::log2_f64(x) }
    /// The logarithm of x to base 10.
    Log10F32 = "log10_f32" (x: F32) -> F32 { math::log10_f32(x) }
    /// The logarithm of x to base 10.
    Log10F64 = "log10_f64" (x: F64) -> F64 { math::log10_f64(x) }
    /// x to the power of y.
    PowF32 = "pow_f32" (x: F32, y: F32) -> F32 { math::pow_f32(x, y) }
    /// x to the power of y.
    PowF64 = "pow_f64" (x: F64, y: F64) -> F64 { math::pow_f64(x, y) }
    /// The remainder of the truncating division x / y, with the sign of x.
    FmodF32 = "fmod_f32" (x: F32, y: F32) -> F32 { math::fmod_f32(x, y) }
    /// The remainder of the truncating division x / y, with the sign of x.
    FmodF64 = "fmod_f64" (x: F64, y: F64) -> F64 { math::fmod_f64(x, y) }
    /// The floor of the exact quotient x / y.
    FloorDivideF32 = "floor_divide_f32" (x: F32, y: F32) -> F32 { math::floor_divide_f32(x, y) }
    /// The floor of the exact quotient x / y.
    FloorDivideF64 = "floor_divide_f64" (x: F64, y: F64) -> F64 { math::floor_divide_f64(x, y) }
    /// The remainder of the floor division x / y, with the sign of y.
    RemainderF32 = "remainder_f32" (x: F32, y: F32) -> F32 { math::remainder_f32(x, y) }
    /// The remainder of the floor division x / y, with the sign of y.
    RemainderF64 = "remainder_f64" (x: F64, y: F64) -> F64 { math::remainder_f64(x, y) }
    /// The sine of x, an angle in radians.
    SinF32 = "sin_f32" (x: F32) -> F32 { math::sin_f32(x) }
    /// The sine of x, an angle in radians.
    SinF64 = "sin_f64" (x: F64) -> F64 { math::sin_f64(x) }
    /// The cosine of x, an angle in radians.
    CosF32 = "cos_f32" (x: F32) -> F32 { math::cos_f32(x) }
    /// The cosine of x, an angle in radians.
    CosF64 = "cos_f64" (x: F64) -> F64 { math::cos_f64(x) }
    /// The hyperbolic sine of x.
    SinhF32 = "sinh_f32" (x: F32) -> F32 { math::sinh_f32(x) }
    /// The hyperbolic sine of x.
    SinhF64 = "sinh_f64" (x: F64) -> F64 { math::sinh_f64(x) }
    /// The hyperbolic tangent of x.
    TanhF32 = "tanh_f32" (x: F32) -> F32 { math::tanh_f32(x) }
    /// The hyperbolic tangent of x.
    TanhF64 = "tanh_f64" (x: F64) -> F64 { math::tanh_f64(x) }
    /// The arc tangent of x, in radians.
    AtanF32 = "atan_f32" (x: F32) -> F32 { math::atan_f32(x) }
    /// The arc tangent of x, in radians.
    AtanF64 = "atan_f64" (x: F64) -> F64 { math::atan_f64(x) }
    /// The angle of the point (x, y), from -pi to pi.
    Atan2F32 = "atan2_f32" (y: F32, x: F32) -> F32 { math::atan2_f32(y, x) }
    /// The angle of the point (x, y), from -pi to pi.
    Atan2F64 = "atan2_f64" (y: F64, x: F64) -> F64 { math::atan2_f64(y, x) }
    /// The distance of the point (x, y) from the origin.
    HypotF32 = "hypot_f32" (x: F32, y: F32) -> F32 { math::hypot_f32(x, y) }
    /// The distance of the point (x, y) from the origin.
    HypotF64 = "hypot_f64" (x: F64, y: F64) -> F64 { math::hypot_f64(x, y) }
    /// 2 to the power of x.
    Exp2F32 = "exp2_f32" (x: F32) -> F32 { math::exp2_f32(x) }
    /// 2 to the power of x.
    Exp2F64 = "exp2_f64" (x: F64) -> F64 { math::exp2_f64(x) }
    /// The error function of x.
    ErfF32 = "erf_f32" (x: F32) -> F32 { math::erf_f32(x) }
    /// The error function of x.
    ErfF64 = "erf_f64" (x: F64) -> F64 { math::erf_f64(x) }
    /// 1 minus the error function of x, without cancellation.
    ErfcF32 = "erfc_f32" (x: F32) -> F32 { math::erfc_f32(x) }
    /// 1 minus the error function of x, without cancellation.
    ErfcF64 = "erfc_f64" (x: F64) -> F64 { math::erfc_f64(x) }
    /// The probability that a standard normal variable is at most x.
    NormalCdfF32 = "normal_cdf_f32" (x: F32) -> F32 { math::normal_cdf_f32(x) }
    /// The probability that a standard normal variable is at most x.
    NormalCdfF64 = "normal_cdf_f64" (x: F64) -> F64 { math::normal_cdf_f64(x) }
    /// `x * y + z`, rounded once, for machines without the instruction.
    FmaF32 = "fma_f32" (x: F32, y: F32, z: F32) -> F32 { math::in_software_f32(x, y, z) }
    /// `x * y + z`, rounded once, for machines without the instruction.
    FmaF64 = "fma_f64" (x: F64, y: F64, z: F64) -> F64 { math::in_software_f64(x, y, z) }
    /// The largest integer that is not above x, for machines without the instruction.
    FloorF32 = "floor_f32" (x: F32) -> F32 { x.floor() }
    /// The largest integer that is not above x, for machines without the instruction.
    FloorF64 = "floor_f64" (x: F64) -> F64 { x.floor() }
    /// The smallest integer that is not below x, for machines without the instruction.
    CeilF32 = "ceil_f32" (x: F32) -> F32 { x.ceil() }
    /// The smallest integer that is not below x, for machines without the instruction.
    CeilF64 = "ceil_f64" (x: F64) -> F64 { x.ceil() }
    /// x rounded to an integer towards zero, for machines without the instruction.
    TruncF32 = "trunc_f32" (x: F32) -> F32 { x.trunc() }
    /// x rounded to an integer towards zero, for machines without the instruction.
    TruncF64 = "trunc_f64" (x: F64) -> F64 { x.trunc() }
    /// Compares two texts byte by byte: returns -1, 0 or 1 if the first one is before, equal to or after the second.
    CompareText = "compare_text" in context (xp: I64, xn: I64, yp: I64, yn: I64) -> I32 {
        // SAFETY: STRING-VIEW, CHECKED-RULE: lowering passes the pointer and length of live views, with length 0 for a missing text,
        // and so do rules of users.
        let (x, y) = unsafe { (Bytes::from_raw(xp as *const u8, xn as usize), Bytes::from_raw(yp as *const u8, yn as usize)) };
        let (x, y) = (x.as_slice(), y.as_slice());
        // SAFETY: FUNCTION-TABLE: generated code passes the context of its call, the evaluator of tapes passes null.
        let order = unsafe { context.as_mut() }.map_or_else(|| compare::order(x, y), |context| context.compare(x, y));
        order as i32
    }
    /// Returns 0 if two texts of length `n` are equal, else 1. If the tape that calls this knows the length, the second text is always present.
    TextsDiffer = "texts_differ" in context (xp: I64, yp: I64, n: I64) -> I32 {
        // SAFETY: STRING-VIEW: lowering passes the pointers of live views of one length, with length 0 for a missing text.
        let (x, y) = unsafe { (Bytes::from_raw(xp as *const u8, n as usize), Bytes::from_raw(yp as *const u8, n as usize)) };
        let (x, y) = (x.as_slice(), y.as_slice());
        // SAFETY: FUNCTION-TABLE, as above.
        let equal = unsafe { context.as_mut() }.map_or_else(|| compare::equal(x, y), |context| context.equal(x, y));
        (!equal).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interface::fingerprint;
    use std::fmt::Write as _;

    /// Numbers of all magnitudes, of the magnitudes that functions are used for, and special values.
    fn operands(ty: MachineType, state: &mut u64) -> u64 {
        *state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        let (bits, kind) = (*state >> 8, *state >> 60);
        let usual = (bits % 2_000_003) as f64 / 20_000.0 - 50.0;
        let special = [0.0, -0.0, 1.0, -1.0, 0.5, f64::INFINITY, f64::NEG_INFINITY, f64::NAN][bits as usize % 8];
        match (ty, kind) {
            (MachineType::F32, 0..6) => u64::from((usual as f32).to_bits()),
            (MachineType::F32, 6..8) => u64::from((special as f32).to_bits()),
            (MachineType::F32, _) => bits & 0xffff_ffff,
            (_, 0..6) => usual.to_bits(),
            (_, 6..8) => special.to_bits(),
            _ => *state ^ (*state << 17),
        }
    }

    /// A hash of a function's results for many operands. All NaNs are treated as equal.
    fn digest(function: RuntimeFn, points: usize) -> u64 {
        let (takes, ret) = function.signature();
        let (mut state, mut results) = (1, String::new());
        for _ in 0..points {
            let operands: Vec<u64> = takes.iter().map(|ty| operands(*ty, &mut state)).collect();
            // SAFETY: STRING-VIEW: the function takes no texts.
            let bits = unsafe { function.call_on_bits(&operands) };
            let nan = if ret == MachineType::F32 {
                f32::from_bits(bits as u32).is_nan()
            } else {
                f64::from_bits(bits).is_nan()
            };
            let _ = if nan { results.write_str("nan ") } else { write!(results, "{bits:x} ") };
        }
        fingerprint(&results)
    }

    #[test]
    fn the_bits_of_functions_are_those_of_their_number() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/mathematics.txt");
        let mut text = format!("mathematics {}\n", math::MATHEMATICS);
        let mut count = 0;
        for function in RuntimeFn::ALL.iter().filter(|function| function.signature().1.is_float()) {
            let _ = writeln!(text, "{} {:016x}", function.symbol(), digest(*function, 4000));
            count += 1;
        }
        assert!(count > 30, "{count}");
        if std::env::var_os("CEMBRA_REWRITE").is_some() {
            std::fs::write(path, &text).expect("written");
        }
        let known = std::fs::read_to_string(path).expect("the known bits");
        assert!(
            known == text,
            "a function's bits changed: raise `math::MATHEMATICS`, then write the file with CEMBRA_REWRITE=1.\n{text}"
        );
    }
}
