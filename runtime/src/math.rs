//! The mathematical functions of the language: one algorithm each, shared by all backends, so that every backend and
//! every machine gives the same bits. binary64 functions are those of the `libm` crate (pure Rust, no host library). The
//! binary32 ones compute in binary64, with plain multiplications and additions, and round once: a hair over half an ulp.

macro_rules! functions {
    ($($(#[$doc:meta])* $f32:ident, $f64:ident, $libm:path;)*) => { $(
        $(#[$doc])*
        #[must_use]
        pub fn $f64(x: f64) -> f64 { $libm(x) }
        $(#[$doc])*
        #[must_use]
        pub fn $f32(x: f32) -> f32 { narrow::$f32(x) }
    )* };
}

functions! {
    /// e to the power of `x`; overflows to infinity, underflows to 0.
    exp_f32, exp_f64, libm::exp;
    /// e to the power of `x`, less 1, without cancellation near 0.
    expm1_f32, expm1_f64, libm::expm1;
    /// Natural logarithm: -inf at 0, NaN below.
    log_f32, log_f64, libm::log;
    /// Natural logarithm of `1 + x`, without cancellation near 0.
    log1p_f32, log1p_f64, libm::log1p;
    /// Logarithm to base 2.
    log2_f32, log2_f64, libm::log2;
    /// Logarithm to base 10.
    log10_f32, log10_f64, libm::log10;
    /// Sine of an angle in radians; NaN for an infinity.
    sin_f32, sin_f64, libm::sin;
    /// Cosine of an angle in radians; NaN for an infinity.
    cos_f32, cos_f64, libm::cos;
    /// Hyperbolic sine; overflows to an infinity.
    sinh_f32, sinh_f64, libm::sinh;
    /// The angle between -pi/2 and pi/2 whose tangent is `x`.
    atan_f32, atan_f64, libm::atan;
}

/// The binary32 functions. Series are cut where the rest is below a hundredth of an ulp of the result.
mod narrow {
    use std::f64::consts::{LN_2, LN_10, LOG2_E};

    /// Adding and subtracting it rounds to a whole number, which then stands in the low bits.
    const ROUND: f64 = 6_755_399_441_055_744.0;

    /// The sum of x^n/n! from n = 1 on, for |x| below 0.35; the rest is below 1e-10 of it.
    fn exp_less_one(x: f64) -> f64 {
        let x2 = x * x;
        let x4 = x2 * x2;
        let low = (1.0 + x * 0.5) + x2 * (1.0 / 6.0 + x * (1.0 / 24.0));
        let high = (1.0 / 120.0 + x * (1.0 / 720.0)) + x2 * (1.0 / 5040.0 + x * (1.0 / 40320.0));
        x * (low + x4 * high)
    }

    /// e^x in binary64, good for a result in binary32; `x` is NaN or between -150 and 130.
    fn exp_wide(x: f64) -> f64 {
        let shifted = x * LOG2_E + ROUND;
        let k = shifted - ROUND;
        let r = x - k * LN_2;
        // The low bits of `shifted` are k in two's complement: with the bias added, an exponent.
        let scale = f64::from_bits((shifted.to_bits().wrapping_add(1023)) << 52);
        scale + scale * exp_less_one(r)
    }

    pub(super) fn exp_f32(x: f32) -> f32 {
        let wide = f64::from(x);
        // Beyond these the result is infinite, or zero, after rounding anyway. A NaN passes.
        let wide = if wide > 130.0 { 130.0 } else { wide };
        let wide = if wide < -150.0 { -150.0 } else { wide };
        exp_wide(wide) as f32
    }

    pub(super) fn expm1_f32(x: f32) -> f32 {
        let wide = f64::from(x);
        if wide.abs() < 0.34 {
            // Keeps -0.0, which the sum would lose.
            return if x == 0.0 { x } else { exp_less_one(wide) as f32 };
        }
        let wide = if wide > 130.0 { 130.0 } else { wide };
        let wide = if wide < -150.0 { -150.0 } else { wide };
        (exp_wide(wide) - 1.0) as f32
    }

    /// The exponent and the natural logarithm of the mantissa, in [sqrt(1/2), sqrt(2)), of a positive normal number.
    fn split_log(x: f64) -> (f64, f64) {
        const SQRT_HALF: u64 = 0x3FE6_A09E_667F_3BCD;
        let bits = x.to_bits();
        let exponent = (bits.wrapping_sub(SQRT_HALF)).cast_signed() >> 52;
        let mantissa = f64::from_bits(bits.wrapping_sub((exponent << 52).cast_unsigned()));
        // ln m = 2 atanh(s), s = (m - 1) / (m + 1), |s| < 0.172.
        let s = (mantissa - 1.0) / (mantissa + 1.0);
        let z = s * s;
        let z2 = z * z;
        let series =
            (1.0 / 3.0 + z * (1.0 / 5.0)) + z2 * ((1.0 / 7.0 + z * (1.0 / 9.0)) + z2 * (1.0 / 11.0 + z * (1.0 / 13.0)));
        (exponent as f64, 2.0 * (s + s * (z * series)))
    }

    /// What a logarithm gives where its argument is not a positive finite number.
    fn special(x: f64) -> f32 {
        if x == 0.0 {
            f32::NEG_INFINITY
        } else if x > 0.0 {
            f32::INFINITY
        } else {
            f32::NAN
        }
    }

    fn ordinary(x: f64) -> bool {
        x > 0.0 && x < f64::INFINITY
    }

    pub(super) fn log_f32(x: f32) -> f32 {
        let wide = f64::from(x);
        if !ordinary(wide) {
            return special(wide);
        }
        let (exponent, log) = split_log(wide);
        (exponent * LN_2 + log) as f32
    }

    pub(super) fn log2_f32(x: f32) -> f32 {
        let wide = f64::from(x);
        if !ordinary(wide) {
            return special(wide);
        }
        let (exponent, log) = split_log(wide);
        (exponent + log * LOG2_E) as f32
    }

    pub(super) fn log10_f32(x: f32) -> f32 {
        let wide = f64::from(x);
        if !ordinary(wide) {
            return special(wide);
        }
        let (exponent, log) = split_log(wide);
        ((exponent * LN_2 + log) / LN_10) as f32
    }

    pub(super) fn log1p_f32(x: f32) -> f32 {
        let wide = f64::from(x);
        // Near 0 the sum 1 + x would not be exact.
        if wide.abs() < 1.0 / 4096.0 {
            return if x == 0.0 { x } else { (wide - wide * wide * (0.5 - wide * (1.0 / 3.0 - wide * 0.25))) as f32 };
        }
        let sum = 1.0 + wide;
        if !ordinary(sum) {
            return special(sum);
        }
        let (exponent, log) = split_log(sum);
        (exponent * LN_2 + log) as f32
    }

    pub(super) fn sin_f32(x: f32) -> f32 {
        libm::sin(f64::from(x)) as f32
    }

    pub(super) fn cos_f32(x: f32) -> f32 {
        libm::cos(f64::from(x)) as f32
    }

    pub(super) fn sinh_f32(x: f32) -> f32 {
        libm::sinh(f64::from(x)) as f32
    }

    pub(super) fn atan_f32(x: f32) -> f32 {
        libm::atan(f64::from(x)) as f32
    }

    #[cfg(test)]
    mod tests {
        /// A function of ours and the binary64 one it is compared with.
        type Pair = (&'static str, fn(f32) -> f32, fn(f64) -> f64);

        const PAIRS: [Pair; 10] = [
            ("exp", super::exp_f32, libm::exp),
            ("expm1", super::expm1_f32, libm::expm1),
            ("log", super::log_f32, libm::log),
            ("log2", super::log2_f32, libm::log2),
            ("log10", super::log10_f32, libm::log10),
            ("log1p", super::log1p_f32, libm::log1p),
            ("sin", super::sin_f32, libm::sin),
            ("cos", super::cos_f32, libm::cos),
            ("sinh", super::sinh_f32, libm::sinh),
            ("atan", super::atan_f32, libm::atan),
        ];

        #[test]
        fn results_are_within_a_hair_of_half_an_ulp() {
            for (name, ours, truth) in PAIRS {
                for bits in (0..=u32::MAX).step_by(8191).chain((0x3F70_0000..0x3F90_0000).step_by(7)) {
                    let x = f32::from_bits(bits);
                    let (found, exact) = (ours(x), truth(f64::from(x)));
                    let rounded = exact as f32;
                    if found.to_bits() == rounded.to_bits() || (found.is_nan() && rounded.is_nan()) {
                        continue;
                    }
                    let ulp = f64::from(f32::from_bits(rounded.to_bits() ^ 1) - rounded).abs();
                    let off = (f64::from(found) - exact).abs() / ulp;
                    assert!(off < 0.51, "{name}({x:e}) = {found:e}, exactly {exact:e}: {off} ulp");
                }
            }
        }

        #[test]
        fn special_values_are_those_of_c() {
            let inf = f32::INFINITY;
            assert_eq!((super::exp_f32(inf), super::exp_f32(-inf), super::exp_f32(89.0)), (inf, 0.0, inf));
            assert_eq!((super::expm1_f32(-inf), super::expm1_f32(inf)), (-1.0, inf));
            assert_eq!(super::expm1_f32(-0.0).to_bits(), (-0.0_f32).to_bits());
            assert_eq!(super::log1p_f32(-0.0).to_bits(), (-0.0_f32).to_bits());
            assert_eq!((super::log_f32(0.0), super::log_f32(-0.0), super::log_f32(inf)), (-inf, -inf, inf));
            assert_eq!((super::log1p_f32(-1.0), super::log2_f32(8.0), super::log10_f32(1000.0)), (-inf, 3.0, 3.0));
            for nan in
                [super::log_f32(-1.0), super::log1p_f32(-1.5), super::exp_f32(f32::NAN), super::log_f32(f32::NAN)]
            {
                assert!(nan.is_nan());
            }
        }
    }
}

/// `x` to the power of `y`, with C's special cases: `pow(NaN, 0) = pow(1, NaN) = 1`.
#[must_use]
pub fn pow_f64(x: f64, y: f64) -> f64 {
    libm::pow(x, y)
}

/// `x` to the power of `y`, with C's special cases.
#[must_use]
pub fn pow_f32(x: f32, y: f32) -> f32 {
    libm::pow(f64::from(x), f64::from(y)) as f32
}

/// The remainder of `x / y` truncated, with the sign of `x`; NaN for `y = 0`. Exact.
#[must_use]
pub fn fmod_f64(x: f64, y: f64) -> f64 {
    x % y
}

/// The remainder of `x / y` truncated, with the sign of `x`; NaN for `y = 0`. Exact.
#[must_use]
pub fn fmod_f32(x: f32, y: f32) -> f32 {
    x % y
}

/// True if the thread rounds to nearest and keeps subnormal numbers, as "the same bits everywhere" needs.
#[must_use]
pub fn default_float_mode() -> bool {
    use std::hint::black_box;
    let subnormal = black_box(f64::MIN_POSITIVE) * black_box(0.5);
    // Rounded down or towards zero, the first sum would be 1; rounded up, the second would not.
    let three_quarters = black_box(1.0_f64) + black_box(f64::EPSILON * 0.75);
    let quarter = black_box(1.0_f64) + black_box(f64::EPSILON * 0.25);
    subnormal > 0.0 && three_quarters > 1.0 && quarter == 1.0
}
