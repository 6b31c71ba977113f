//! Promotion of scalars: the common type to which two types are implicitly cast, and the conversion of literals to it.

use crate::ScalarValue;
use cembra_runtime::Scalar;

/// The scalar type to which values of the types `a` and `b` are both cast implicitly; `None` if the language requires
/// an explicit cast.
#[must_use]
pub fn common_scalar(a: Scalar, b: Scalar) -> Option<Scalar> {
    use Scalar::{Float32, Float64, Int32, Int64, WeakFloat};
    Some(match (a, b) {
        _ if a == b => a,
        (Int32, Int64) | (Int64, Int32) => Int64,
        _ if !(a.is_numeric() && b.is_numeric()) => return None,
        (Float64, _) | (_, Float64) => Float64,
        (Float32 | WeakFloat, _) | (_, Float32 | WeakFloat) => Float32,
        _ => return None,
    })
}

/// Returns the scalar type for values of the types `a` and `b` that are combined outside of a model's text. The type is
/// found as in [`common_scalar`], except for an integer and a float: their type is FLOAT64, because FLOAT32 cannot
/// represent the digits of an integer. `None` if the types have no common type.
#[must_use]
pub fn lossless_scalar(a: Scalar, b: Scalar) -> Option<Scalar> {
    match common_scalar(a, b)? {
        Scalar::Float32 if a.is_whole() || b.is_whole() => Some(Scalar::Float64),
        common => Some(common),
    }
}

impl ScalarValue {
    /// Converts the value to the type `to`, which must be the common type of the value's type and some other type.
    /// Digits that floats of that type cannot hold are rounded. `None` if the language requires an explicit cast.
    #[must_use]
    pub fn promoted(self, to: Scalar) -> Option<ScalarValue> {
        if self.scalar() == to {
            return Some(self);
        }
        if common_scalar(self.scalar(), to) != Some(to) {
            return None;
        }
        Some(match (self, to) {
            (ScalarValue::Int32(x), Scalar::Int64) => ScalarValue::Int64(x.into()),
            (ScalarValue::Int32(x), Scalar::Float32) => ScalarValue::Float32(x as f32),
            (ScalarValue::Int64(x), Scalar::Float32) => ScalarValue::Float32(x as f32),
            (ScalarValue::UInt64(x), Scalar::Float32) => ScalarValue::Float32(x as f32),
            (ScalarValue::WeakFloat(x), Scalar::Float32) => ScalarValue::Float32(x as f32),
            (ScalarValue::Int32(x), Scalar::Float64) => ScalarValue::Float64(x.into()),
            (ScalarValue::Int64(x), Scalar::Float64) => ScalarValue::Float64(x as f64),
            (ScalarValue::UInt64(x), Scalar::Float64) => ScalarValue::Float64(x as f64),
            (ScalarValue::Float32(x), Scalar::Float64) => ScalarValue::Float64(x.into()),
            (ScalarValue::WeakFloat(x), Scalar::Float64) => ScalarValue::Float64(x),
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_has_a_type_in_common_becomes_one_of_it() {
        for from in Scalar::ALL {
            let Some(value) = ScalarValue::from_bits(from, 0) else { continue };
            for to in Scalar::ALL {
                let promoted = value.clone().promoted(to);
                assert_eq!(promoted.is_some(), common_scalar(from, to) == Some(to), "{from} to {to}");
                assert!(promoted.is_none_or(|promoted| promoted.scalar() == to), "{from} to {to}");
            }
        }
        assert_eq!(ScalarValue::WeakFloat(0.1).promoted(Scalar::Float32), Some(ScalarValue::Float32(0.1)));
        assert_eq!(ScalarValue::Int64(16_777_217).promoted(Scalar::Float32), Some(ScalarValue::Float32(16_777_216.0)));
        assert_eq!(ScalarValue::Int32(-3).promoted(Scalar::Int64), Some(ScalarValue::Int64(-3)));
    }
}
