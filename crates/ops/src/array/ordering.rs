//! Encodes elements of arrays as unsigned integers with the same order and equality, so that sorting and grouping need
//! code for one type only. As in comparisons, zeros with different signs are equal, and false is below true. Here a NaN
//! is above all other values and equals any other NaN; code for which NaNs must differ checks for NaNs first. Strings
//! are not encoded: their bytes are compared.

use cembra_runtime::Scalar;
use cembra_value::{Array, Number};
use std::ops::Range;

/// Encodes a signed integer as an unsigned integer with the same order.
const fn of_integer(value: i64) -> u64 {
    value.cast_unsigned() ^ 1 << 63
}

/// The code of any NaN. No other float has this code, but an integer may.
const NAN: u64 = u64::MAX;

/// Encodes a float as an unsigned integer with the same order.
fn of_float(value: f64) -> u64 {
    if value.is_nan() {
        return NAN;
    }
    // The sum turns -0 into 0.
    let bits = (value + 0.0).to_bits();
    if bits >> 63 == 0 { bits ^ 1 << 63 } else { !bits }
}

/// Returns the order-preserving bits of each element of an array. The bits of a missing element are arbitrary. `None` for an array of strings.
pub(crate) fn bits(array: &Array) -> Option<Vec<u64>> {
    bits_in(array, 0..array.len())
}

/// Returns the order-preserving bits of an array's elements in the range `part` of indices, which must be within the array. The bits of a missing
/// element are arbitrary. `None` for an array of strings.
pub(crate) fn bits_in(array: &Array, part: Range<usize>) -> Option<Vec<u64>> {
    fn of<T: Number>(array: &Array, part: Range<usize>, bits: impl Fn(T) -> u64) -> Vec<u64> {
        array.numbers().unwrap_or_default()[part].iter().map(|value| bits(*value)).collect()
    }
    Some(match array.scalar().representation() {
        Scalar::Unit => vec![0; part.len()],
        Scalar::Boolean => {
            let bits = array.bits().unwrap_or_default();
            part.map(|at| bits[at / 64] >> (at % 64) & 1).collect()
        }
        Scalar::Int32 => of(array, part, |value: i32| of_integer(value.into())),
        Scalar::Int64 => of(array, part, of_integer),
        Scalar::UInt64 => of(array, part, |value: u64| value),
        Scalar::Float32 => of(array, part, |value: f32| of_float(value.into())),
        Scalar::Float64 => of(array, part, of_float),
        _ => return None,
    })
}

/// Returns true if `bits`, the order-preserving bits of an element of `array`, encode a NaN.
pub(crate) const fn is_nan(array: &Array, bits: u64) -> bool {
    bits == NAN && array.scalar().is_float()
}

#[cfg(test)]
mod tests {
    use super::*;
    use cembra_value::ScalarValue;

    #[test]
    fn bits_are_ordered_as_elements_are() {
        let orders: [&[ScalarValue]; 6] = [
            &[i32::MIN.into(), (-1).into(), 0.into(), 1.into(), i32::MAX.into()],
            &[i64::MIN.into(), (-1_i64).into(), 0_i64.into(), i64::MAX.into()],
            &[0_u64.into(), 1_u64.into(), u64::MAX.into()],
            &[
                f64::NEG_INFINITY.into(),
                (-1.5).into(),
                (-0.0).into(),
                1e-310.into(),
                f64::INFINITY.into(),
                f64::NAN.into(),
            ],
            &[f32::MIN.into(), (-1e-45_f32).into(), 0.0_f32.into(), f32::MAX.into(), (-f32::NAN).into()],
            &[false.into(), true.into()],
        ];
        for order in orders {
            let array = Array::from_scalars(order[0].scalar(), order.iter().cloned().map(Some));
            let bits = bits(&array).unwrap();
            assert!(bits.is_sorted_by(|a, b| a < b), "{array}: {bits:?}");
            let nans = bits.iter().filter(|bits| is_nan(&array, **bits)).count();
            assert_eq!(nans, usize::from(array.to_string().contains("nan")), "{array}");
        }
        let zeros = Array::from_scalars(Scalar::Float32, [0.0_f32, -0.0].map(|zero| Some(zero.into())));
        let bits = bits(&zeros).unwrap();
        assert_eq!(bits[0], bits[1]);
    }

    #[test]
    fn strings_have_none() {
        assert_eq!(bits(&Array::from_scalars(Scalar::Text, [None])), None);
        assert_eq!(bits(&Array::from_scalars(Scalar::Unit, [None, Some(ScalarValue::Unit)])), Some(vec![0, 0]));
    }
}
