//! How near two results must be to count as equal: the tolerance classes of the golden data.

use cembra_value::{ScalarValue, Value};

/// A pair of bounds, for FLOAT32 and for FLOAT64.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Bounds {
    /// For FLOAT32.
    pub float32: f64,
    /// For FLOAT64 and WEAK_FLOAT.
    pub float64: f64,
}

/// How near is near enough. NaN is like any NaN everywhere.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Closeness {
    /// The same bits.
    Exact,
    /// NaN, infinities and zeros as they are; otherwise at most this many units in the last place apart.
    Ulps(u64),
    /// A relative or an absolute error within bounds; infinities as they are.
    Within {
        /// Relative to the expected value.
        relative: Bounds,
        /// Absolute.
        absolute: Bounds,
    },
}

const LIBM: Closeness = Closeness::Ulps(4);
const COMPOSED: Closeness = Closeness::Within {
    relative: Bounds { float32: 1e-5, float64: 1e-12 },
    absolute: Bounds { float32: 1e-6, float64: 1e-14 },
};
const SPECIAL: Closeness = Closeness::Within {
    relative: Bounds { float32: 1e-4, float64: 1e-9 },
    absolute: Bounds { float32: 0.0, float64: 0.0 },
};

impl Closeness {
    /// The class of expressions that hold libm operators.
    pub const EXPRESSION: Closeness = Closeness::Within {
        relative: Bounds { float32: 1e-4, float64: 1e-9 },
        absolute: Bounds { float32: 1e-5, float64: 1e-12 },
    };

    /// The class of an operator.
    #[must_use]
    pub fn of_operator(name: &str) -> Closeness {
        match name.strip_prefix("math.").unwrap_or("") {
            "exp" | "expm1" | "log" | "log2" | "log10" | "log1p" | "pow" => LIBM,
            "trig.sin" | "trig.cos" | "trig.sinh" | "tanh" | "trig.atan" => LIBM,
            "symlog1p" | "logit" | "log_sigmoid" | "sigmoid" => COMPOSED,
            "std" | "skew" | "kurtosis" | "correlation" | "covariance" => COMPOSED,
            "softmax" | "cdf" | "weighted_average" | "var" => COMPOSED,
            name if name.ends_with("_distribution_inverse_cdf") => SPECIAL,
            _ => Closeness::Exact,
        }
    }

    /// True if `found` is near enough to `expected`; both must be of one type, and both missing or both present.
    #[must_use]
    pub fn accepts(self, expected: &Value, found: &Value) -> bool {
        if expected.same(found) {
            return true;
        }
        match (expected, found) {
            (Value::Scalar(a), Value::Scalar(b)) | (Value::Present(a), Value::Present(b)) => self.accepts_scalar(a, b),
            (Value::Tuple(a), Value::Tuple(b)) => {
                a.len() == b.len() && a.names() == b.names() && a.iter().zip(b.iter()).all(|(a, b)| self.accepts(a, b))
            }
            (Value::Array(a_kind, a), Value::Array(b_kind, b)) => {
                let accepts = |(a, b): (Option<ScalarValue>, Option<ScalarValue>)| match (a, b) {
                    (Some(a), Some(b)) => a.same(&b) || self.accepts_scalar(&a, &b),
                    (None, None) => true,
                    _ => false,
                };
                a_kind == b_kind
                    && a.scalar() == b.scalar()
                    && a.len() == b.len()
                    && a.iter().zip(b.iter()).all(accepts)
            }
            _ => false,
        }
    }

    fn accepts_scalar(self, expected: &ScalarValue, found: &ScalarValue) -> bool {
        match (expected, found) {
            (ScalarValue::Float32(a), ScalarValue::Float32(b)) => {
                let ulps = ordered(a.to_bits().into(), 31).abs_diff(ordered(b.to_bits().into(), 31));
                self.accepts_numbers(f64::from(*a), f64::from(*b), ulps, |bounds| bounds.float32)
            }
            (ScalarValue::Float64(a), ScalarValue::Float64(b))
            | (ScalarValue::WeakFloat(a), ScalarValue::WeakFloat(b)) => {
                let ulps = ordered(a.to_bits(), 63).abs_diff(ordered(b.to_bits(), 63));
                self.accepts_numbers(*a, *b, ulps, |bounds| bounds.float64)
            }
            _ => false,
        }
    }

    fn accepts_numbers(self, expected: f64, found: f64, ulps: u64, bound: fn(Bounds) -> f64) -> bool {
        if !(expected.is_finite() && found.is_finite()) {
            // Equal ones were accepted before; an infinity is near nothing else.
            return false;
        }
        match self {
            Closeness::Exact => false,
            Closeness::Ulps(most) => expected != 0.0 && found != 0.0 && ulps <= most,
            Closeness::Within { relative, absolute } => {
                let error = (expected - found).abs();
                error <= bound(absolute) || error <= bound(relative) * expected.abs()
            }
        }
    }
}

/// The position of a float among all floats of its width, from its bits and the number of its sign bit.
fn ordered(bits: u64, sign: u32) -> i64 {
    let magnitude = (bits & !(1 << sign)).cast_signed();
    if bits >> sign == 0 { magnitude } else { -magnitude }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moved(x: f32, by: i32) -> f32 {
        f32::from_bits(x.to_bits().strict_add_signed(by))
    }

    #[test]
    fn exact_is_of_bits_but_for_nan() {
        let exact = Closeness::of_operator("math.add");
        assert_eq!(exact, Closeness::Exact);
        assert!(exact.accepts(&Value::from(f64::NAN), &Value::from(-f64::NAN)));
        assert!(!exact.accepts(&Value::from(0.0), &Value::from(-0.0)));
        assert!(!exact.accepts(&Value::from(1.0_f32), &Value::from(moved(1.0, 1))));
        assert!(!exact.accepts(&Value::from(1.0_f32), &Value::from(1.0)));
        assert!(!exact.accepts(&Value::from(1.0), &Value::from(Some(1.0))));
    }

    #[test]
    fn libm_operators_may_be_four_ulps_off() {
        let libm = Closeness::of_operator("math.trig.sin");
        let accepts = |a: f32, b: f32| libm.accepts(&Value::from(Some(a)), &Value::from(Some(b)));
        assert!(accepts(1.0, moved(1.0, 4)) && accepts(-1.0, moved(-1.0, -4)));
        assert!(!accepts(1.0, moved(1.0, 5)) && !accepts(1.0, moved(1.0, -5)));
        // Zeros and infinities keep their class, however near the next number is.
        assert!(!accepts(0.0, 1e-45) && !accepts(1e-45, 0.0) && !accepts(0.0, -0.0));
        assert!(!accepts(f32::INFINITY, f32::MAX) && !accepts(f32::MAX, f32::INFINITY));
        assert!(!accepts(f32::NAN, 1.0) && !accepts(1.0, f32::NAN));
        assert!(!libm.accepts(&Value::from(1.0), &Value::from(f64::from_bits(1.0_f64.to_bits() + 5))));
        assert!(!libm.accepts(&Value::from(Some(1.0)), &Value::from(None::<f64>)));
        assert!(!libm.accepts(&Value::from(1), &Value::from(2)));
    }

    #[test]
    fn composed_operators_may_be_off_by_a_relative_or_an_absolute_error() {
        let composed = Closeness::of_operator("math.sigmoid");
        let f32s = |a: f32, b: f32| composed.accepts(&Value::from(a), &Value::from(b));
        let f64s = |a: f64, b: f64| composed.accepts(&Value::from(a), &Value::from(b));
        assert!(f32s(1000.0, 1000.009) && !f32s(1000.0, 1000.011));
        assert!(f32s(0.0, 9e-7) && !f32s(0.0, 1.1e-6));
        assert!(f64s(1.0, 1.0 + 9e-13) && !f64s(1.0, 1.0 + 1.1e-12));
        assert!(f64s(0.0, -9e-15) && !f64s(0.0, 2e-14));
        assert!(!f64s(f64::INFINITY, 1e308) && !f64s(f64::NAN, 0.0) && !f64s(1.0, f64::INFINITY));
        let expression = |a: f64, b: f64| Closeness::EXPRESSION.accepts(&Value::from(a), &Value::from(b));
        assert!(expression(1.0, 1.0 + 9e-10) && !expression(1.0, 1.0 + 1.1e-9));
        let special = Closeness::of_operator("math.normal_distribution_inverse_cdf");
        assert!(special.accepts(&Value::from(1.0_f32), &Value::from(1.00009_f32)));
        assert!(!special.accepts(&Value::from(0.0_f32), &Value::from(1e-30_f32)));
    }

    #[test]
    fn fields_of_tuples_are_compared_one_by_one() {
        let pair = |x: f32, y: i32| Value::Tuple([Value::from(x), Value::from(y)].into());
        assert!(LIBM.accepts(&pair(1.0, 2), &pair(moved(1.0, 1), 2)));
        assert!(!LIBM.accepts(&pair(1.0, 2), &pair(1.0, 3)));
    }
}
