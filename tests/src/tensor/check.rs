//! What a case about tensors expects, and how near a result has to be.

use super::array::array;
use super::{Fields, text};
use crate::problem::Malformed;
use cembra::tensor::same_bits;
use cembra::{Error, Scalar, Tensor};

/// What a case expects.
#[derive(Debug)]
pub(super) enum Expected {
    /// These bits; any NaN is any other, and zeros are alike if that is said.
    Bits { value: Tensor, zeros_alike: bool },
    /// No farther from these elements than from one to the other.
    Within { value: Tensor, bounds: Tensor },
    /// No farther from these elements than so much of the largest, or of 1.
    Near { value: Tensor, tolerance: f64 },
    /// An error of this kind, as the data write it.
    Error(String),
}

impl Expected {
    pub(super) const fn near(value: Tensor, tolerance: f64) -> Expected {
        Expected::Near { value, tolerance }
    }

    pub(super) fn of(fields: &Fields) -> Result<Expected, Malformed> {
        let value = || array(fields.get("expected").ok_or(Malformed::Field("expected"))?);
        Ok(match text(fields, "check")? {
            "bits" => {
                let ignored = fields.get("signed_zero").is_some_and(|sign| sign == "ignore");
                Expected::Bits { value: value()?, zeros_alike: ignored || text(fields, "kind")? == "einsum" }
            }
            "atol" => Expected::Within {
                value: value()?,
                bounds: array(fields.get("atol").ok_or(Malformed::Field("atol"))?)?,
            },
            "error" => Expected::Error(match text(fields, "error")? {
                // Addends need not have all labels, so a label that the target lacks is what is wrong.
                "addend_label_mismatch" => "implicit-reduction".to_owned(),
                kind => kind.replace('_', "-"),
            }),
            _ => return Err(Malformed::Field("check")),
        })
    }

    /// The extents of the value; none of an error.
    pub(super) fn extents(&self) -> &[usize] {
        match self {
            Expected::Bits { value, .. } | Expected::Within { value, .. } | Expected::Near { value, .. } => {
                value.extents()
            }
            Expected::Error(_) => &[],
        }
    }

    /// What was expected and what was found instead, if it is something else.
    pub(super) fn check(&self, found: &Result<Tensor, Error>) -> Result<(), (String, String)> {
        let fits = match (self, found) {
            (Expected::Bits { value, zeros_alike: false }, Ok(found)) => same_bits(value, found),
            (Expected::Bits { value, zeros_alike: true }, Ok(found)) => {
                same_kind(value, found) && distances(value, found).all(|d| d == 0.0)
            }
            (Expected::Within { value, bounds }, Ok(found)) => {
                let bounds = floats(bounds);
                same_kind(value, found)
                    && distances(value, found).zip(bounds).all(|(distance, bound)| distance <= bound)
            }
            (Expected::Near { value, tolerance }, Ok(found)) => {
                let largest = floats(value).into_iter().fold(1.0, |largest: f64, x| largest.max(x.abs()));
                same_kind(value, found) && distances(value, found).all(|distance| distance <= tolerance * largest)
            }
            (Expected::Error(kind), Err(error)) => *kind == kind_of(error),
            _ => false,
        };
        if fits {
            return Ok(());
        }
        let expected = match self {
            Expected::Bits { value, .. } | Expected::Within { value, .. } | Expected::Near { value, .. } => {
                format!("{value:?}")
            }
            Expected::Error(kind) => format!("an error `{kind}`"),
        };
        let found = match found {
            Ok(found) => format!("{found:?}"),
            Err(error) => format!("{}: {error}", kind_of(error)),
        };
        Err((expected, found))
    }
}

/// The name that the data have for an error: the kind of an error of tensors, or the code of any other.
pub(super) fn kind_of(error: &Error) -> &str {
    error.tensor_kind().map_or_else(|| error.code(), cembra::tensor::TensorErrorKind::as_str)
}

fn same_kind(a: &Tensor, b: &Tensor) -> bool {
    a.scalar_type() == b.scalar_type() && a.extents() == b.extents()
}

/// How far elements are apart: not at all if they are equal or both NaN.
fn distances(a: &Tensor, b: &Tensor) -> impl Iterator<Item = f64> {
    floats(a).into_iter().zip(floats(b)).map(|(a, b)| {
        let is_same = a == b || (a.is_nan() && b.is_nan());
        let distance = (a - b).abs();
        if is_same {
            0.0
        } else if distance.is_nan() {
            f64::INFINITY
        } else {
            distance
        }
    })
}

/// The elements as floats. Integers beyond 53 bits are told apart by their bits elsewhere.
pub(super) fn floats(tensor: &Tensor) -> Vec<f64> {
    fn wide<T: cembra::tensor::Element>(tensor: &Tensor, widen: impl Fn(T) -> f64) -> Vec<f64> {
        tensor.to_vec::<T>().unwrap_or_default().into_iter().map(widen).collect()
    }
    match tensor.scalar_type() {
        Scalar::Boolean => wide(tensor, |x: bool| f64::from(u8::from(x))),
        Scalar::Int32 => wide(tensor, |x: i32| f64::from(x)),
        Scalar::Int64 => wide(tensor, |x: i64| x as f64),
        Scalar::Float32 => wide(tensor, |x: f32| f64::from(x)),
        _ => wide(tensor, |x: f64| x),
    }
}
