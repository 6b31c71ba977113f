//! Defines `math.searchsorted`: binary search in a sorted array. The search makes the same steps as Arolla's, so that
//! the results are equal even for arrays that are not sorted or have NaNs.

use super::{ARRAY, ArrayForm, ArrayOperands, ArrayOperator, FullRule, array_argument, array_of, invalid, made};
use crate::definition::{OpDef, OverArrays, ex, param, param_or};
use crate::typing::{Argument, Signature, TypeFault, common_type, refuse};
use cembra_runtime::{Fault, FaultKind, QType, Scalar};
use cembra_value::{Array, ScalarValue, Value};

/// The numbers that are compared, in one type. FLOAT32 numbers are converted to FLOAT64, which represents all of them
/// exactly.
enum Numbers {
    Integers(Vec<i64>),
    Floats(Vec<f64>),
}

/// The type in which the array's elements and the number searched for are compared; `None` if they have no common
/// numeric type.
fn common(haystack: Scalar, needle: Scalar) -> Option<Scalar> {
    common_type(&QType::Scalar(haystack), &QType::Scalar(needle))?.scalar().filter(|scalar| is_number(*scalar))
}

fn is_number(scalar: Scalar) -> bool {
    matches!(scalar, Scalar::Int32 | Scalar::Int64 | Scalar::Float32 | Scalar::Float64 | Scalar::WeakFloat)
}

fn types(operator: &'static str, args: &[Argument<'_>]) -> Result<Signature, TypeFault> {
    let (_, haystack) = array_argument(operator, args, 0)?;
    let numbers =
        |found: &QType, at| TypeFault::mismatch(format!("{operator} expects numbers, found {found}"), Some(at));
    let needle = args[1].qtype;
    let scalar = match needle {
        QType::Array(_, scalar) => Some(*scalar),
        other => other.scalar(),
    };
    if !is_number(haystack) {
        return Err(numbers(args[0].qtype, 0));
    }
    if scalar.and_then(|scalar| common(haystack, scalar)).is_none() {
        return Err(numbers(needle, 1));
    }
    if args[2].qtype.scalar() != Some(Scalar::Boolean) {
        return refuse(2, format!("{operator} expects a boolean for `right`, found {}", args[2].qtype));
    }
    let ret = match needle {
        QType::Array(kind, _) => QType::Array(*kind, Scalar::Int64),
        other => QType::of(Scalar::Int64, other.is_optional()),
    };
    Ok(Signature::unchanged(args, ret))
}

/// The numbers of an array, converted to the type `common`; `None` if they do not convert.
fn numbers(array: &Array, common: Scalar) -> Option<Numbers> {
    let is_single = common == Scalar::Float32;
    let float = |number: f64| if is_single { f64::from(number as f32) } else { number };
    Some(match (array.scalar().representation(), common) {
        (Scalar::Int32, Scalar::Int32 | Scalar::Int64) => {
            Numbers::Integers(array.numbers::<i32>()?.iter().map(|number| i64::from(*number)).collect())
        }
        (Scalar::Int64, Scalar::Int64) => Numbers::Integers(array.numbers::<i64>()?.to_vec()),
        (Scalar::Int32, _) => {
            Numbers::Floats(array.numbers::<i32>()?.iter().map(|number| float((*number).into())).collect())
        }
        // Rounded once: a 64-bit integer is cast to the common type directly.
        (Scalar::Int64, _) if is_single => {
            Numbers::Floats(array.numbers::<i64>()?.iter().map(|number| f64::from(*number as f32)).collect())
        }
        (Scalar::Int64, _) => Numbers::Floats(array.numbers::<i64>()?.iter().map(|number| *number as f64).collect()),
        (Scalar::Float32, _) => {
            Numbers::Floats(array.numbers::<f32>()?.iter().map(|number| (*number).into()).collect())
        }
        (Scalar::Float64, _) => Numbers::Floats(array.numbers::<f64>()?.iter().map(|number| float(*number)).collect()),
        _ => return None,
    })
}

/// The index of the first element for which `goes_on` returns false, by binary search.
fn halved<T: Copy>(haystack: &[T], goes_on: impl Fn(T) -> bool) -> usize {
    let (mut first, mut len) = (0, haystack.len());
    while len > 0 {
        let half = len / 2;
        if goes_on(haystack[first + half]) {
            first += half + 1;
            len -= half + 1;
        } else {
            len = half;
        }
    }
    first
}

fn place<T: PartialOrd + Copy>(haystack: &[T], needle: T, right: bool, is_nan: fn(T) -> bool) -> i64 {
    let at = if !right {
        halved(haystack, |element| element < needle)
    } else if haystack.len() <= 2 {
        haystack
            .iter()
            .take_while(|element| !matches!(needle.partial_cmp(element), Some(std::cmp::Ordering::Less)))
            .count()
    } else if is_nan(needle) {
        haystack.len()
    } else {
        halved(haystack, |element| element <= needle)
    };
    at as i64
}

fn searched(args: &ArrayOperands<'_>, ret: &QType) -> Result<Value, Fault> {
    let haystack = array_of(&args[0])?;
    let invalid_types = Fault::new(FaultKind::Invalid);
    if (0..haystack.len()).any(|at| !haystack.is_present(at)) {
        return Err(invalid("an element of `haystack` is missing"));
    }
    let right = matches!(args[2].as_scalar(), Some(ScalarValue::Boolean(true)));
    let one;
    let needles: &Array = match &args[1] {
        Value::Array(_, needles) => needles,
        Value::Missing(_) => return Ok(Value::Missing(Scalar::Int64)),
        scalar => {
            let scalar = scalar.as_scalar().ok_or(invalid_types)?;
            one = Array::from_scalars(scalar.scalar(), [Some(scalar.clone())]);
            &one
        }
    };
    let common = common(haystack.scalar(), needles.scalar()).ok_or(invalid_types)?;
    // The converted numbers, and per needle its index, twice.
    args.room_for_bytes(8 * haystack.len() as u64 + 24 * needles.len() as u64)?;
    let (from, wanted) = (numbers(haystack, common), numbers(needles, common));
    let mut places = Vec::with_capacity(needles.len());
    for at in 0..needles.len() {
        args.poll_at(at)?;
        places.push(match (&from, &wanted) {
            (Some(Numbers::Integers(from)), Some(Numbers::Integers(wanted))) => {
                place(from, wanted[at], right, |_| false)
            }
            (Some(Numbers::Floats(from)), Some(Numbers::Floats(wanted))) => place(from, wanted[at], right, f64::is_nan),
            _ => return Err(invalid_types),
        });
    }
    match ret {
        QType::Array(..) => {
            let presence = needles.presence().map(<[u64]>::to_vec);
            let all = Array::of_numbers(Scalar::Int64, places.len(), presence, |all: &mut [i64]| {
                all.copy_from_slice(&places);
            });
            made(all.ok_or(invalid_types)?, ret)
        }
        other => {
            let place = ScalarValue::Int64(*places.first().ok_or(invalid_types)?);
            Ok(if other.is_optional() { Value::Present(place) } else { Value::Scalar(place) })
        }
    }
}

pub(crate) static SEARCHSORTED: OpDef = OpDef {
    name: "math.searchsorted",
    aliases: &["searchsorted"],
    summary: "The position at which `needle`, or each of its elements, can be inserted into the sorted array `haystack` so that it stays sorted: before equal elements, or after them if `right` is true. Missing for a missing `needle`. No element of `haystack` may be missing.",
    params: &[param("haystack"), param("needle"), param_or("right", Value::Scalar(ScalarValue::Boolean(false)))],
    faults: &[FaultKind::Invalid, FaultKind::ArenaLimit],
    over_arrays: OverArrays::Kernel(&ArrayOperator { form: ArrayForm::Index, typing: types, evaluate: searched }),
    full: FullRule::Operands,
    examples: &[
        ex("math.searchsorted([1.0, 2.0, 2.0, 5.0], [0.0, 2.0, 9.0])", "[0, 1, 4]"),
        ex("math.searchsorted([1, 2, 2, 5], 2, true)", "i64{3}"),
    ],
    ..ARRAY
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::array::ArrayOperands;
    use cembra_runtime::ArrayKind;

    /// Results equal Arolla's, also for arrays that are not sorted or have NaNs.
    #[test]
    fn places_are_those_of_arolla() {
        let (nan, inf) = (f64::NAN, f64::INFINITY);
        let needles = [0.0, 1.0, 2.5, 4.0, nan, inf, -inf];
        let cases: [(&[f64], [i64; 7], [i64; 7]); 9] = [
            (&[], [0; 7], [0; 7]),
            (&[1.0, 2.0, 3.0], [0, 0, 2, 3, 0, 3, 0], [0, 1, 2, 3, 3, 3, 0]),
            (&[1.0, nan], [0, 0, 1, 1, 0, 1, 0], [0, 2, 2, 2, 2, 2, 0]),
            (&[nan], [0; 7], [1; 7]),
            (&[nan, nan], [0; 7], [2; 7]),
            (&[1.0, nan, 3.0], [0, 0, 1, 1, 0, 1, 0], [0, 1, 1, 1, 3, 1, 0]),
            (&[nan, 1.0, 2.0], [0, 0, 3, 3, 0, 3, 0], [0, 2, 3, 3, 3, 3, 0]),
            (&[1.0, 2.0, nan, nan, nan], [0, 0, 2, 2, 0, 2, 0], [0, 1, 2, 2, 5, 2, 0]),
            (&[1.0, 1.0, 1.0, 1.0, nan, nan, nan, nan], [0, 0, 4, 4, 0, 4, 0], [0, 4, 4, 4, 8, 4, 0]),
        ];
        let array = |scalar, values: &[ScalarValue]| {
            Value::Array(ArrayKind::Dense, Array::from_scalars(scalar, values.iter().cloned().map(Some)).into())
        };
        let floats = |values: &[f64]| {
            array(Scalar::Float64, &values.iter().map(|value| ScalarValue::Float64(*value)).collect::<Vec<_>>())
        };
        let of = |haystack: Value, needle: Value, right: bool, ret: QType| {
            searched(&ArrayOperands::of_call(&[haystack, needle, Value::from(right)]), &ret)
        };
        let ret = || QType::Array(ArrayKind::Dense, Scalar::Int64);
        for (haystack, left, right) in cases {
            for (side, expected) in [(false, left), (true, right)] {
                let Value::Array(_, found) = of(floats(haystack), floats(&needles), side, ret()).unwrap() else {
                    panic!()
                };
                assert_eq!(found.numbers::<i64>(), Some(&expected[..]), "{haystack:?} {side}");
            }
        }
        let integers = |values: &[i32]| {
            array(Scalar::Int32, &values.iter().map(|value| ScalarValue::Int32(*value)).collect::<Vec<_>>())
        };
        // As FLOAT32 both are equal.
        let near = integers(&[16_777_216, 16_777_217]);
        assert_eq!(of(near, Value::from(16_777_216_f32), true, QType::INT64), Ok(Value::from(2_i64)));
        let unsorted = of(integers(&[3, 1, 2]), integers(&[2, 0, 4]), false, ret()).unwrap();
        assert_eq!(unsorted.to_string(), "[2, 0, 3]");
        let hole = Array::from_scalars(Scalar::Int32, [Some(1.into()), None]);
        let fault = of(Value::Array(ArrayKind::Dense, hole.into()), Value::from(1), false, QType::INT64).unwrap_err();
        assert_eq!(fault.kind, FaultKind::Invalid);
    }
}
