//! Tests columns with another type than the input's. They are accepted if the input's type can hold each value;
//! otherwise the error names the first value that does not fit.

use arrow_array::cast::AsArray;
use arrow_array::types::{Date32Type, Float32Type, Float64Type, Int64Type, UInt64Type};
use arrow_array::{
    Array, ArrayRef, Date64Array, DictionaryArray, Float32Array, Int8Array, Int32Array, Int64Array, RecordBatch,
    TimestampMicrosecondArray, TimestampNanosecondArray, TimestampSecondArray, UInt32Array, UInt64Array,
};
use cembra::doors::OutputRoom;
use cembra::{Limits, Model, Options, RunOptions, Scalar};
use cembra_arrow::{Error, float_has, to_model_as};
use std::sync::Arc;

/// Returns the output column of the model `input x: <qtype>; output y = x` for the input `column`.
fn through(qtype: &str, column: ArrayRef) -> Result<ArrayRef, Error> {
    let model = Model::parse(&format!("input x: {qtype}; output y = x")).expect("a model");
    let batch = model.batch(&Options::default()).expect("a batch");
    let table = RecordBatch::try_from_iter([("x", column)]).expect("a table");
    Ok(cembra_arrow::run(&batch, &RunOptions::new(), &table)?.table.column(0).clone())
}

fn message(qtype: &str, column: ArrayRef) -> String {
    through(qtype, column).expect_err("a value that the type has not").to_string()
}

#[test]
fn integers_go_into_floats_that_have_them() {
    const EXACT: i64 = (1 << 53) + 2;
    let numbers: ArrayRef = Arc::new(Int64Array::from(vec![Some(-3), None, Some(EXACT), Some(i64::MIN)]));
    let made = through("f64?", numbers).expect("floats");
    let made: Vec<Option<f64>> = made.as_primitive::<Float64Type>().iter().collect();
    assert_eq!(made, [Some(-3.0), None, Some(9_007_199_254_740_994.0), Some(-9_223_372_036_854_775_808.0)]);
    // The number that is stored for a null is not checked.
    let hidden = Int64Array::new(vec![(1 << 53) + 1, 7].into(), Some(vec![false, true].into()));
    assert_eq!(through("f64?", Arc::new(hidden)).expect("floats").null_count(), 1);
    for (column, value) in [
        (Arc::new(Int64Array::from(vec![0, EXACT - 1])) as ArrayRef, "9007199254740993"),
        (Arc::new(Int64Array::from(vec![0, i64::MAX])), "9223372036854775807"),
        (Arc::new(UInt64Array::from(vec![1 << 63, u64::MAX])), "18446744073709551615"),
    ] {
        assert_eq!(message("f64", column), format!("column `x` has {value} in row 1, which is not a value of f64"));
    }
    let single = through("f32", Arc::new(Int32Array::from(vec![1 << 24, -(1 << 30)]))).expect("floats");
    assert_eq!(single.as_primitive::<Float32Type>().values(), &[16_777_216.0, -1_073_741_824.0]);
    assert!(message("f32", Arc::new(UInt32Array::from(vec![(1 << 24) + 1]))).contains("16777217 in row 0"));
}

#[test]
fn numbers_go_into_wider_types_and_not_into_narrower_ones() {
    let small: ArrayRef = Arc::new(Int8Array::from(vec![-128, 127]));
    assert_eq!(through("i64", small.clone()).expect("integers").as_primitive::<Int64Type>().values(), &[-128, 127]);
    let unsigned: ArrayRef = Arc::new(UInt32Array::from(vec![u32::MAX]));
    let made = through("u64", unsigned).expect("integers");
    assert_eq!(made.as_primitive::<UInt64Type>().values(), &[u64::from(u32::MAX)]);
    let single: ArrayRef = Arc::new(Float32Array::from(vec![0.1_f32]));
    assert_eq!(through("f64", single).expect("floats").as_primitive::<Float64Type>().values(), &[f64::from(0.1_f32)]);
    for (qtype, column) in [
        ("i32", Arc::new(Int64Array::from(vec![1])) as ArrayRef),
        ("f32", Arc::new(arrow_array::Float64Array::from(vec![1.0]))),
        ("u64", small),
        ("i64", Arc::new(UInt64Array::from(vec![1]))),
        ("i64", Arc::new(Float32Array::from(vec![1.0]))),
    ] {
        assert!(through(qtype, column).is_err(), "{qtype}");
    }
}

#[test]
fn moments_at_midnight_are_dates() {
    const DAY: i64 = 86_400_000_000_000;
    for midnights in [
        Arc::new(TimestampNanosecondArray::from(vec![Some(-DAY), None, Some(DAY)])) as ArrayRef,
        Arc::new(TimestampSecondArray::from(vec![Some(-86_400), None, Some(86_400)])),
        Arc::new(Date64Array::from(vec![Some(-86_400_000), None, Some(86_400_000)])),
    ] {
        let made = through("date?", midnights).expect("dates");
        assert_eq!(made.as_primitive::<Date32Type>().iter().collect::<Vec<_>>(), [Some(-1), None, Some(1)]);
    }
    let late: ArrayRef = Arc::new(TimestampNanosecondArray::from(vec![0, 1 - DAY]));
    assert!(message("date", late).contains("in row 1, which is not a value of date"));
    let far: ArrayRef = Arc::new(TimestampSecondArray::from(vec![86_400 << 32]));
    assert!(message("date", far).contains("not a value of date"));
    // A zone says which day a moment is in.
    let zoned: ArrayRef = Arc::new(TimestampMicrosecondArray::from(vec![0]).with_timezone("UTC"));
    assert!(through("date", zoned).is_err());
}

#[test]
fn values_of_dictionaries_and_elements_of_lists_are_converted() {
    let values: ArrayRef = Arc::new(Int64Array::from(vec![10, 20]));
    let keys = Int32Array::from(vec![Some(1), None, Some(0)]);
    let made = through("f64?", Arc::new(DictionaryArray::new(keys, values))).expect("floats");
    assert_eq!(made.as_primitive::<Float64Type>().iter().collect::<Vec<_>>(), [Some(20.0), None, Some(10.0)]);

    let room = OutputRoom::of(Limits::default().array_bytes);
    let made = to_model_as(Arc::new(Int64Array::from(vec![Some(3), None])), Scalar::Float64, &room).expect("an array");
    assert_eq!((made.numbers::<f64>(), made.first_missing()), (Some(&[3.0, 0.0][..]), Some(1)));
    assert!(to_model_as(Arc::new(Int64Array::from(vec![i64::MAX])), Scalar::Float64, &room).is_err());
}

#[test]
fn a_float_has_integers_of_its_digits() {
    for (magnitude, digits, has) in [
        (0, 24, true),
        (1 << 63, 24, true),
        ((1 << 53) - 1, 53, true),
        ((1 << 53) + 1, 53, false),
        (u64::MAX, 53, false),
        ((1 << 24) + 2, 24, true),
        ((1 << 24) + 1, 24, false),
    ] {
        assert_eq!(float_has(magnitude, digits), has, "{magnitude}");
    }
}
