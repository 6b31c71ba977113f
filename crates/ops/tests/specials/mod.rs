//! Special values for tests, which reveal wrong operators: zeros of both signs, the ends of ranges, halves, NaN,
//! infinities.

use cembra_runtime::Scalar;
use cembra_value::ScalarValue;

/// The special values of a scalar type.
pub(crate) fn specials(scalar: Scalar) -> Vec<ScalarValue> {
    let f64s = [
        0.0,
        -0.0,
        1.0,
        -1.0,
        0.5,
        -0.5,
        2.5,
        -2.5,
        0.1,
        -0.4,
        3.0,
        1e-20,
        -1e-20,
        1e20,
        1e300,
        -1e300,
        5e-324,
        2147483647.9,
        2147483648.0,
        -2147483648.9,
        -2147483649.0,
        9223372036854775807.0,
        -9223372036854775808.0,
        709.0,
        -745.0,
        0.49999999999999994,
        4503599627370497.0,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::NAN,
    ];
    let f32s = [
        0.0,
        -0.0,
        1.0,
        -1.0,
        0.5,
        -0.5,
        2.5,
        -2.5,
        0.1,
        3.0,
        1e-20,
        -1e-20,
        1e20,
        3e38,
        1e-45,
        2147483520.0,
        2147483648.0,
        -2147483648.0,
        9.223372e18,
        -9.223372e18,
        88.0,
        0.49999997,
        8388609.0,
        f32::INFINITY,
        f32::NEG_INFINITY,
        f32::NAN,
    ];
    let of_representation = match scalar.representation() {
        Scalar::Unit => vec![ScalarValue::Unit],
        Scalar::Boolean => vec![ScalarValue::Boolean(false), ScalarValue::Boolean(true)],
        Scalar::Int32 => [0, 1, -1, 2, -2, 3, -7, 10, 65536, 46341, i32::MAX, i32::MIN, i32::MIN + 1]
            .map(ScalarValue::Int32)
            .to_vec(),
        Scalar::Int64 => [0, 1, -1, 2, -3, 7, 1 << 31, (1 << 31) - 1, -(1 << 31), -(1 << 31) - 1, i64::MAX, i64::MIN]
            .map(ScalarValue::Int64)
            .to_vec(),
        Scalar::Float32 => f32s.map(ScalarValue::Float32).to_vec(),
        Scalar::Float64 => f64s.map(ScalarValue::Float64).to_vec(),
        Scalar::UInt64 => [
            0,
            1,
            2,
            7,
            1 << 31,
            16_777_217,
            (1 << 53) + 1,
            i64::MAX as u64,
            1 << 63,
            (1 << 63) + 1025,
            u64::MAX - 1024,
            u64::MAX,
        ]
        .map(ScalarValue::UInt64)
        .to_vec(),
        Scalar::Bytes => [&b""[..], b"a", b"ab", &[0xFF, 0]].map(|b| ScalarValue::Bytes(b.into())).to_vec(),
        Scalar::Text => ["", "a", "ab", "b", "\u{e9}", "\u{1f600}"].map(|t| ScalarValue::Text(t.into())).to_vec(),
        made => unreachable!("{made} represents itself"),
    };
    let made = |value: ScalarValue| ScalarValue::from_bits(scalar, value.bits()).unwrap_or(value);
    of_representation.into_iter().map(made).collect()
}
