//! Elements as keys, which say their order and which of them are equal: as comparisons do, zeros are equal whatever their sign,
//! false is below true, strings are compared by their bytes. A NaN is behind all others, and whoever cares that it equals
//! nothing, not even itself, asks for it first.

use cembra_runtime::Scalar;
use cembra_value::{Array, ArrayData};

/// An element of an array, among others of the same.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum Key<'a> {
    /// A number, a truth value or a unit: a larger one has larger bits.
    Bits(u64),
    /// A text or bytes.
    String(&'a [u8]),
    /// A NaN.
    Nan,
}

/// Bits of a signed integer that are ordered as it is.
const fn of_integer(value: i64) -> Key<'static> {
    Key::Bits(value.cast_unsigned() ^ 1 << 63)
}

/// Bits of a float that are ordered as it is.
fn of_float(value: f64) -> Key<'static> {
    if value.is_nan() {
        return Key::Nan;
    }
    // Of a zero that is negative this makes a positive one.
    let bits = (value + 0.0).to_bits();
    Key::Bits(if bits >> 63 == 0 { bits ^ 1 << 63 } else { !bits })
}

/// The key of each element of an array that is there.
pub(crate) fn keys<'a>(array: &'a Array) -> impl Fn(usize) -> Key<'a> {
    // All of one type: which it is is found out once.
    let key: fn(&'a Array, usize) -> Key<'a> = match (array.data(), array.scalar().representation()) {
        (ArrayData::Units, _) => |_, _| Key::Bits(0),
        (ArrayData::Bits(_), _) => |array, at| Key::Bits(array.bits().map_or(0, |bits| bits[at / 64] >> (at % 64) & 1)),
        (ArrayData::Strings(_), _) => |array, at| Key::String(array.string(at).unwrap_or_default()),
        (_, Scalar::Int32) => |array, at| of_integer(array.numbers::<i32>().map_or(0, |all| all[at]).into()),
        (_, Scalar::Int64) => |array, at| of_integer(array.numbers::<i64>().map_or(0, |all| all[at])),
        (_, Scalar::UInt64) => |array, at| Key::Bits(array.numbers::<u64>().map_or(0, |all| all[at])),
        (_, Scalar::Float32) => |array, at| of_float(array.numbers::<f32>().map_or(0.0, |all| all[at]).into()),
        _ => |array, at| of_float(array.numbers::<f64>().map_or(0.0, |all| all[at])),
    };
    move |at| key(array, at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use cembra_value::ScalarValue;

    #[test]
    fn keys_are_ordered_as_elements_are() {
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
            &[
                ScalarValue::Text("".into()),
                ScalarValue::Text("Z".into()),
                ScalarValue::Text("a".into()),
                ScalarValue::Text("ä".into()),
            ],
        ];
        for order in orders {
            let array = Array::from_scalars(order[0].scalar(), order.iter().cloned().map(Some));
            let key = keys(&array);
            assert!((1..order.len()).all(|at| key(at - 1) < key(at)), "{array}");
        }
        let zeros = Array::from_scalars(Scalar::Float32, [0.0_f32, -0.0].map(|zero| Some(zero.into())));
        assert_eq!(keys(&zeros)(0), keys(&zeros)(1));
        let flags = Array::from_scalars(Scalar::Boolean, [false, true].map(|flag| Some(flag.into())));
        assert!(keys(&flags)(0) < keys(&flags)(1));
    }
}
