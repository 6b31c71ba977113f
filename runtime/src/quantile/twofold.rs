//! Numbers of twice the precision: the sum of a binary64 number and its rounding error, 106 bits together. Products are
//! exact by splitting the factors (Dekker), not by a fused instruction, so that all machines give the same bits at the same
//! speed. Errors are a few units in the 104th bit; for logarithms and gamma functions, in the 100th.

use std::f64::consts::{FRAC_1_SQRT_2, LOG2_E};
use std::ops::{Add, Div, Mul, Neg, Sub};

/// A number of twice the precision: the sum of `high` and `low`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Twofold {
    high: f64,
    low: f64,
}

/// ln 2. The next constant is half of ln 2 pi.
const LN_2: Twofold = Twofold { high: std::f64::consts::LN_2, low: 2.319_046_813_846_299_6e-17 };
const HALF_LN_TAU: Twofold = Twofold { high: 0.918_938_533_204_672_8, low: -3.878_294_158_067_242e-17 };

/// The sum of two numbers and its rounding error.
fn sum(a: f64, b: f64) -> Twofold {
    let high = a + b;
    let part = high - a;
    Twofold { high, low: (a - (high - part)) + (b - part) }
}

/// The sum of two numbers and its rounding error, if the magnitude of `a` is not smaller than that of `b`.
fn ordered_sum(a: f64, b: f64) -> Twofold {
    let high = a + b;
    Twofold { high, low: b - (high - a) }
}

/// Splits a number into the sum of two numbers of 26 bits.
fn halves(x: f64) -> (f64, f64) {
    let shifted = 134_217_729.0 * x;
    let high = shifted - (shifted - x);
    (high, x - high)
}

/// The product of two numbers and its rounding error.
fn product(a: f64, b: f64) -> Twofold {
    let high = a * b;
    let ((a, a_low), (b, b_low)) = (halves(a), halves(b));
    Twofold { high, low: ((a * b - high) + a * b_low + a_low * b) + a_low * b_low }
}

/// `2^k` as two factors, for a `k` within 2000 of zero.
fn powers(k: i32) -> (f64, f64) {
    let power = |k: i32| f64::from_bits(u64::from((k + 1023).unsigned_abs()) << 52);
    (power(k / 2), power(k - k / 2))
}

impl From<f64> for Twofold {
    fn from(high: f64) -> Twofold {
        Twofold { high, low: 0.0 }
    }
}

impl Add for Twofold {
    type Output = Twofold;
    fn add(self, other: Twofold) -> Twofold {
        let (high, low) = (sum(self.high, other.high), sum(self.low, other.low));
        let both = ordered_sum(high.high, high.low + low.high);
        ordered_sum(both.high, both.low + low.low)
    }
}

impl Neg for Twofold {
    type Output = Twofold;
    fn neg(self) -> Twofold {
        Twofold { high: -self.high, low: -self.low }
    }
}

impl Sub for Twofold {
    type Output = Twofold;
    fn sub(self, other: Twofold) -> Twofold {
        self.add(-other)
    }
}

impl Mul for Twofold {
    type Output = Twofold;
    fn mul(self, other: Twofold) -> Twofold {
        let high = product(self.high, other.high);
        ordered_sum(high.high, high.low + (self.high * other.low + self.low * other.high))
    }
}

impl Mul<f64> for Twofold {
    type Output = Twofold;
    fn mul(self, other: f64) -> Twofold {
        let high = product(self.high, other);
        ordered_sum(high.high, high.low + self.low * other)
    }
}

impl Div for Twofold {
    type Output = Twofold;
    fn div(self, other: Twofold) -> Twofold {
        let first = self.high / other.high;
        let rest = self - other * first;
        let second = rest.high / other.high;
        let rest = rest - other * second;
        let quotient = ordered_sum(first, second);
        ordered_sum(quotient.high, quotient.low + rest.high / other.high)
    }
}

impl Twofold {
    /// The square root of 2.
    pub(super) const ROOT_2: Twofold = Twofold { high: std::f64::consts::SQRT_2, low: -9.667_293_313_452_913e-17 };

    /// The exact sum of `a` and `b`.
    pub(super) fn sum(a: f64, b: f64) -> Twofold {
        sum(a, b)
    }

    /// The binary64 number that is nearest to this number.
    pub(super) fn rounded(self) -> f64 {
        self.high
    }

    /// The product with `2^k`, for a `k` within 2000 of zero.
    fn scaled(self, k: i32) -> Twofold {
        let (first, second) = powers(k);
        Twofold { high: self.high * first * second, low: self.low * first * second }
    }

    /// e to the power of this number. The remainder of the number modulo ln 2 is divided by 512. The exponential series of the result is then squared
    /// nine times.
    pub(super) fn exp(self) -> Twofold {
        if self.high.abs() > 1380.0 || self.high.is_nan() {
            return Twofold::from(if self.high < 0.0 { 0.0 } else { self.high + f64::INFINITY });
        }
        let k = (self.high * LOG2_E).round();
        let rest = (self - LN_2 * k).scaled(-9);
        let (mut above, mut term) = (rest, rest);
        for n in 2..=9 {
            term = term * rest / Twofold::from(f64::from(n));
            above = above + term;
        }
        for _ in 0..9 {
            above = above.scaled(1) + above * above;
        }
        (above + Twofold::from(1.0)).scaled(k as i32)
    }

    /// The natural logarithm of this number, which must be positive: the logarithm in binary64, corrected by a step of Newton's method.
    pub(super) fn ln(self) -> Twofold {
        let (mantissa, exponent) = libm::frexp(self.high);
        let exponent = if mantissa < FRAC_1_SQRT_2 { exponent - 1 } else { exponent };
        let mantissa = self.scaled(-exponent);
        let near = libm::log(mantissa.high);
        let off = mantissa * Twofold::from(-near).exp() - Twofold::from(1.0);
        let lacking = off - (off * off).scaled(-1);
        LN_2 * f64::from(exponent) + (lacking + Twofold::from(near))
    }

    /// ln Γ of this number, which must be positive, by Stirling's series. A number below 40 is first increased to at least 40, by the recurrence of
    /// Γ.
    pub(super) fn ln_gamma(self) -> Twofold {
        /// The coefficients of the series, as numerators and denominators.
        const SERIES: [(f64, f64); 11] = [
            (1.0, 12.0),
            (-1.0, 360.0),
            (1.0, 1260.0),
            (-1.0, 1680.0),
            (1.0, 1188.0),
            (-691.0, 360_360.0),
            (1.0, 156.0),
            (-3617.0, 122_400.0),
            (43_867.0, 244_188.0),
            (-174_611.0, 125_400.0),
            (77_683.0, 5796.0),
        ];
        let one = Twofold::from(1.0);
        let (mut x, mut below) = (self, one);
        while x.high < 40.0 {
            below = below * x;
            x = x + one;
        }
        let inverse = one / x;
        let square = inverse * inverse;
        let series = SERIES.iter().rev().fold(Twofold::from(0.0), |series, (above, below)| {
            series * square + Twofold::from(*above) / Twofold::from(*below)
        });
        let ln = (x - Twofold::from(0.5)) * x.ln() - x + HALF_LN_TAU + series * inverse;
        if below.high == 1.0 { ln } else { ln - below.ln() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_have_twice_the_digits() {
        let near = |found: Twofold, high: f64, low: f64| {
            assert_eq!(found.high, high);
            assert!((found.low - low).abs() <= high.abs() * 2f64.powi(-98), "{found:?} {low:e}");
        };
        // The expected values were computed with 60 digits by another program.
        near(Twofold::from(1.0).exp(), std::f64::consts::E, 1.4456468917292502e-16);
        near(Twofold::from(-600.5).exp(), 1.6075467697937942e-261, 3.537726127764541e-279);
        near(Twofold::from(1e-9).exp(), 1.000000001, -8.224037093664211e-17);
        near(Twofold::from(0.3).ln(), -1.2039728043259361, 8.935521583403776e-17);
        near(Twofold::from(1e300).ln(), 690.7755278982137, 2.3747660028800243e-14);
        near(Twofold::from(5e-324).ln(), -744.4400719213812, -4.422444340918698e-14);
        near(Twofold::from(0.001).ln_gamma(), 6.907178885383853, 2.777556825107376e-16);
        near(Twofold::from(3.7).ln_gamma(), 1.428072326665388, 4.823204321026723e-17);
        near(Twofold::from(12345.6).ln_gamma(), 103959.18506616846, 5.75978115390412e-13);
        near(Twofold::sum(1e8, 1e-3).ln_gamma(), 1742068066.1222553, 6.469779105613648e-08);
        near(Twofold::from(1.0) / Twofold::from(3.0), 0.3333333333333333, 1.850371707708594e-17);
    }
}
