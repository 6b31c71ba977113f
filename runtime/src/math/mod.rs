//! The mathematical functions of the language. All backends share one algorithm for each function, so every backend and every machine gives the
//! same bits. A result is the exact value rounded, or a number next to it; `docs/language.md` states the errors. Exponentials and logarithms of
//! binary32 numbers compute in binary32; the other binary32 functions compute in binary64 and round once.
//!
//! An algorithm is written over [`Arithmetic`], without branches. The functions here run it on plain numbers, with the processor's fused
//! multiply-add or an exact rule that replaces it. [`record`] runs it on a machine that records the operations.
//!
//! The coefficients are those of minimax polynomials, computed by Remez' algorithm in 200 bits, and weighted so that the error of the result is the
//! one that their comments state. The remaining error is that of the last few roundings; `runtime/tests/functions/ulp.rs` tests it.

mod arithmetic;
mod division;
mod exponential;
mod fused;
mod logarithm;
mod normal;
mod plane;
mod power;
mod rare;
mod single;
mod trigonometric;

pub use arithmetic::{Arithmetic, Narrowing};
pub use division::{floor_divide_f32, floor_divide_f64, remainder_f32, remainder_f64};
pub use fused::{in_software_f32, in_software_f64};

use crate::RuntimeFn;
use arithmetic::Plain;

/// The revision of the results of the mathematical functions. It must be raised whenever any bit of any result changes, because files with machine
/// code contain the algorithms and outlive the process. `runtime/tests/functions/interface.rs` notices a change.
pub const MATHEMATICS: u32 = 2;

macro_rules! functions {
    ($($(#[$doc:meta])* $variant:ident: $name:ident($($arg:ident),*: $ty:ty) = $text:path;)*) => {
        $(
            $(#[$doc])*
            #[must_use]
            pub fn $name($($arg: $ty),*) -> $ty {
                #[cfg(target_arch = "x86_64")]
                {
                    #[target_feature(enable = "fma")]
                    fn fused($($arg: $ty),*) -> $ty {
                        $text(&mut Plain::<true>, $($arg),*)
                    }
                    if fused::in_hardware() {
                        // SAFETY: FEATURE: the processor has the instruction.
                        return unsafe { fused($($arg),*) };
                    }
                }
                if cfg!(target_arch = "aarch64") {
                    return $text(&mut Plain::<true>, $($arg),*);
                }
                $text(&mut Plain::<false>, $($arg),*)
            }
        )*

        /// Runs the algorithm of a function on a machine whose numbers have one type for both formats (binary32 and binary64). `None` if this module
        /// has no algorithm for `function`.
        pub fn record<V, A>(machine: &mut A, function: RuntimeFn, arguments: &[V]) -> Option<V>
        where
            V: Copy,
            A: Arithmetic<f32, Number = V> + Arithmetic<f64, Number = V> + Narrowing<Single = V>,
        {
            match (function, arguments) {
                $((RuntimeFn::$variant, [$($arg),*]) => Some($text(machine, $(*$arg),*)),)*
                _ => None,
            }
        }
    };
}

functions! {
    /// e to the power of `x`, in binary32; overflows to infinity, underflows to 0.
    ExpF32: exp_f32(x: f32) = single::exp;
    /// e to the power of `x`, in binary64; overflows to infinity, underflows to 0.
    ExpF64: exp_f64(x: f64) = exponential::exp_double;
    /// 2 to the power of `x`; overflows to infinity, underflows to 0.
    Exp2F32: exp2_f32(x: f32) = exponential::exp2_single;
    /// 2 to the power of `x`; overflows to infinity, underflows to 0.
    Exp2F64: exp2_f64(x: f64) = exponential::exp2_double;
    /// e to the power of `x`, minus 1, without cancellation near 0.
    Expm1F32: expm1_f32(x: f32) = single::expm1;
    /// e to the power of `x`, minus 1, without cancellation near 0.
    Expm1F64: expm1_f64(x: f64) = exponential::expm1_double;
    /// The natural logarithm of `x`: -inf at 0, NaN for negative numbers.
    LogF32: log_f32(x: f32) = single::log;
    /// The natural logarithm of `x`: -inf at 0, NaN for negative numbers.
    LogF64: log_f64(x: f64) = logarithm::log_double;
    /// The natural logarithm of `1 + x`, without cancellation near 0.
    Log1pF32: log1p_f32(x: f32) = single::log1p;
    /// The natural logarithm of `1 + x`, without cancellation near 0.
    Log1pF64: log1p_f64(x: f64) = logarithm::log1p_double;
    /// The logarithm of `x` to base 2: -inf at 0, NaN for negative numbers.
    Log2F32: log2_f32(x: f32) = single::log2;
    /// The logarithm of `x` to base 2: -inf at 0, NaN for negative numbers.
    Log2F64: log2_f64(x: f64) = logarithm::log2_double;
    /// The logarithm of `x` to base 10: -inf at 0, NaN for negative numbers.
    Log10F32: log10_f32(x: f32) = single::log10;
    /// The logarithm of `x` to base 10: -inf at 0, NaN for negative numbers.
    Log10F64: log10_f64(x: f64) = logarithm::log10_double;
    /// `x` to the power of `y`, with C's special cases: `pow(NaN, 0) = pow(1, NaN) = 1`.
    PowF32: pow_f32(x, y: f32) = power::pow_single;
    /// `x` to the power of `y`, with C's special cases: `pow(NaN, 0) = pow(1, NaN) = 1`.
    PowF64: pow_f64(x, y: f64) = power::pow_double;
    /// The sine of `x`, an angle in radians; NaN for an infinity.
    SinF32: sin_f32(x: f32) = trigonometric::sin_single;
    /// The sine of `x`, an angle in radians; NaN for an infinity.
    SinF64: sin_f64(x: f64) = trigonometric::sin_double;
    /// The cosine of `x`, an angle in radians; NaN for an infinity.
    CosF32: cos_f32(x: f32) = trigonometric::cos_single;
    /// The cosine of `x`, an angle in radians; NaN for an infinity.
    CosF64: cos_f64(x: f64) = trigonometric::cos_double;
    /// The hyperbolic sine of `x`; overflows to an infinity.
    SinhF32: sinh_f32(x: f32) = exponential::sinh_single;
    /// The hyperbolic sine of `x`; overflows to an infinity.
    SinhF64: sinh_f64(x: f64) = exponential::sinh_double;
    /// The hyperbolic tangent of `x`; 1 with the sign of an infinity.
    TanhF32: tanh_f32(x: f32) = exponential::tanh_single;
    /// The hyperbolic tangent of `x`; 1 with the sign of an infinity.
    TanhF64: tanh_f64(x: f64) = exponential::tanh_double;
    /// The angle between -pi/2 and pi/2 whose tangent is `x`.
    AtanF32: atan_f32(x: f32) = trigonometric::atan_single;
    /// The angle between -pi/2 and pi/2 whose tangent is `x`.
    AtanF64: atan_f64(x: f64) = trigonometric::atan_double;
    /// The angle, from -pi to pi, of the point with the coordinates `x` and `y`, with C's special cases.
    Atan2F32: atan2_f32(y, x: f32) = plane::atan2_single;
    /// The angle, from -pi to pi, of the point with the coordinates `x` and `y`, with C's special cases.
    Atan2F64: atan2_f64(y, x: f64) = plane::atan2_double;
    /// The square root of `x^2 + y^2`, without overflow of the squares: infinite if one of the two is, even beside a NaN.
    HypotF32: hypot_f32(x, y: f32) = plane::hypot_single;
    /// The square root of `x^2 + y^2`, without overflow of the squares: infinite if one of the two is, even beside a NaN.
    HypotF64: hypot_f64(x, y: f64) = plane::hypot_double;
    /// The error function of `x`: -1 and 1 at the infinities.
    ErfF32: erf_f32(x: f32) = normal::erf_single;
    /// The error function of `x`: -1 and 1 at the infinities.
    ErfF64: erf_f64(x: f64) = normal::erf_double;
    /// 1 minus the error function of `x`, without cancellation: 2 and 0 at the infinities.
    ErfcF32: erfc_f32(x: f32) = normal::erfc_single;
    /// 1 minus the error function of `x`, without cancellation: 2 and 0 at the infinities.
    ErfcF64: erfc_f64(x: f64) = normal::erfc_double;
    /// The probability that a standard normal variable is at most `x`: 0 and 1 at the infinities.
    NormalCdfF32: normal_cdf_f32(x: f32) = normal::normal_cdf_single;
    /// The probability that a standard normal variable is at most `x`: 0 and 1 at the infinities.
    NormalCdfF64: normal_cdf_f64(x: f64) = normal::normal_cdf_double;
}

/// The exact remainder of dividing `x` by `y` with a truncated quotient. It has the sign of `x`; NaN for `y = 0`.
#[must_use]
pub fn fmod_f64(x: f64, y: f64) -> f64 {
    x % y
}

/// The exact remainder of dividing `x` by `y` with a truncated quotient. It has the sign of `x`; NaN for `y = 0`.
#[must_use]
pub fn fmod_f32(x: f32, y: f32) -> f32 {
    x % y
}

/// Returns true if the thread rounds to nearest and does not flush subnormal numbers to zero, as equal bits on all machines require.
///
/// The mode is found out from the results of sums, because reading the control register waits for all earlier computations. These sums are
/// inexact, and one has a subnormal result; a thread that traps such exceptions traps here.
#[inline]
#[must_use]
pub fn default_float_mode() -> bool {
    /// 1, two numbers to add to 1, and two numbers whose difference is subnormal.
    static PROBES: [f64; 5] =
        [1.0, f64::EPSILON * 0.75, f64::EPSILON * 0.25, f64::MIN_POSITIVE * 1.5, f64::MIN_POSITIVE];
    let [one, most, little, normal, least] = *std::hint::black_box(&PROBES);
    // If sums are rounded down or towards zero, the first sum is 1; if they are rounded up, the second sum is not 1. Half of the least normal
    // number is zero if subnormal results are flushed, and twice that half is zero if subnormal arguments are.
    let half = normal - least;
    one + most > one && one + little == one && half + half == least
}
