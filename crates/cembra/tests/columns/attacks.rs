//! Tests that constructors reject lengths whose size in bytes overflows, and texts that are not UTF-8. Such calls once
//! wrote after the end of an allocation, or read after the end of a text.

use cembra::columns::{InputColumn, Keys, ListOffsets, OutputColumn, StringViews};
use cembra::tensor::{
    CompileGraph, Element, HalfTensor, Layout, Reduction, Slice, Tensor, TensorGraph, TensorMut, f16,
};
use cembra::values::{ArrayBuilder, ArrayData, ArrayKind};
use cembra::{Array, Batch, FaultKind, Model, Options, QType, RunOptions, Scalar, Session, Value};
use cembra_engine::matrices;
use cembra_engine::{MatrixLayout, Multiplication};

fn batch(text: &str) -> Batch {
    Model::parse(text).and_then(|model| model.batch(&Options::default())).expect("a model for many rows")
}

/// Lengths of arrays of 8-byte values: the size in bytes is 2^64 or more, so it overflows, or is more than any memory
/// has.
const LENGTHS: [usize; 6] = [1 << 61, (1 << 61) + 1, (1 << 62) + 2, isize::MAX as usize, 1 << 50, 1 << 44];

fn session(text: &str) -> Session {
    Model::parse(text).and_then(|model| model.compile(&Options::default())).expect("a model").session()
}

#[test]
fn arrays_have_memory_for_all_elements() {
    for len in LENGTHS {
        for scalar in [Scalar::Int32, Scalar::Int64, Scalar::UInt64, Scalar::Float32, Scalar::Float64] {
            let numbers = ArrayData::Numbers(vec![0; 1].into());
            assert!(Array::from_parts(scalar, len, numbers, None).is_none(), "{scalar} {len}");
        }
        let bits = ArrayData::Bits(vec![0; 1].into());
        assert!(Array::from_parts(Scalar::Boolean, len, bits, None).is_none());
        let strings = ArrayData::Strings(StringViews::default());
        assert!(Array::from_parts(Scalar::Bytes, len, strings, None).is_none());
        assert!(Array::from_parts(Scalar::Unit, len, ArrayData::Units, Some(vec![0])).is_none());
        let write = |_: &mut [f64]| panic!("memory for {len} numbers");
        assert!(Array::of_numbers(Scalar::Float64, len, None, write).is_none());
    }
    // The type is compared before memory is given away.
    let write = |_: &mut [f64]| panic!("numbers of 8 bytes for those of 4");
    assert!(Array::of_numbers(Scalar::Int32, 2, None, write).is_none());
}

#[test]
fn texts_of_arrays_are_utf8() {
    // The first half of a letter at the end, where the second half would be read behind it.
    for broken in [&b"abc\xC3"[..], b"\xFF", b"a text that is no longer in its view \xF0\x9F"] {
        let mut strings = StringViews::default();
        assert!(strings.push(broken));
        let data = ArrayData::Strings(strings);
        assert!(Array::from_parts(Scalar::Text, 1, data.clone(), None).is_none());
        assert!(Array::from_parts(Scalar::Text, 1, data.clone(), Some(vec![0])).is_none());
        let bytes = Array::from_parts(Scalar::Bytes, 1, data, None).expect("bytes may be anything");
        let mut texts = ArrayBuilder::new(Scalar::Text, 1);
        texts.push_bytes(Some(broken));
        texts.push_from(&bytes, Some(0));
        let texts = texts.finish();
        assert_eq!((texts.present_count(), texts.text(0)), (0, None));
        let made = session("input x: [text?]; strings.upper(x)")
            .evaluate(&[Value::Array(ArrayKind::Dense, texts.into())])
            .expect("no text is there");
        assert_eq!(made[0].to_string(), "[NA, NA]");
        // The same bytes as texts of columns.
        let offsets = [0, broken.len() as i32];
        assert!(InputColumn::checked_offsets(&offsets, broken).is_none());
    }
    for offsets in [[0, 5], [-1, 2], [3, 2], [i32::MIN, i32::MAX]] {
        assert!(InputColumn::checked_offsets(&offsets, b"abcd").is_none(), "{offsets:?}");
    }
}

#[test]
fn a_value_at_step_0_is_copied_only_as_often_as_there_is_memory_for() {
    let numbers = [1.5_f64, 2.5];
    for rows in LENGTHS {
        let one = InputColumn::stepped(&numbers, 1, 0, rows).expect("a column that takes no memory");
        assert!(one.array(Scalar::Float64, 0..rows).is_none(), "{rows}");
        assert!(one.array(Scalar::Float64, 0..rows - 1).is_none(), "{rows}");
        assert_eq!(one.value(&QType::FLOAT64, rows - 1), Some(Value::from(2.5)));
        assert!(
            InputColumn::stepped(&numbers, 0, 1, rows).is_none()
                && InputColumn::stepped(&numbers, 1, -1, rows).is_none()
        );
        // As rows, and as the elements of one row or of several.
        let refused = |text: &str, column: InputColumn<'_>| {
            let error = batch(text).run(&[column]).expect_err("too many");
            assert_eq!(error.fault_kind(), Some(FaultKind::ArenaLimit), "{text} {rows}: {error}");
            assert!(batch(text).player(&[column]).is_err(), "{text} {rows}");
        };
        refused("input x: f64; x * 2.0", one);
        refused("input x: f64; x > 2.0", one);
        let of_one = InputColumn::lists(ListOffsets::Fixed { size: rows, rows: 1 }, &one);
        let of_two = InputColumn::lists(ListOffsets::Fixed { size: rows / 2, rows: 2 }, &one);
        let points = [0, rows as i64 / 2, rows as i64];
        let by_points = InputColumn::lists(&points[..], &one);
        for text in ["input x: [f64]; math.sum(x)", "input x: [f64]; x * 2.0", "input x: [f64]; x[0]"] {
            for lists in [of_one, of_two, by_points] {
                refused(text, lists);
            }
        }
    }
    // A few rows are rows as others are.
    let three = InputColumn::stepped(&numbers, 1, 0, 6).expect("a column");
    let lists = InputColumn::lists(ListOffsets::Fixed { size: 3, rows: 2 }, &three);
    assert_eq!(batch("input x: [f64]; math.sum(x)").run(&[lists]).unwrap()[0].values::<f64>(), Some(&[7.5; 2][..]));
}

/// Lists whose elements take no memory, such as units: the memory for the results of all rows is counted together, not
/// only that of each row.
#[test]
fn elements_that_lie_nowhere_are_counted_for_all_rows() {
    let units = InputColumn::units(1 << 37);
    let one = InputColumn::stepped(&[2.5], 0, 0, 1 << 37).expect("a column");
    let few = [0, 4, 6];
    for (text, elements) in [("input x: [unit]; where(x, 1.0)", &units), ("input x: [f64]; x + 1.0", &one)] {
        let all: Vec<i64> = (0..=1 << 10).map(|row| row << 27).collect();
        let error = batch(text).run(&[InputColumn::lists(&all[..], elements)]).expect_err("too many");
        assert_eq!((error.fault_kind(), error.row()), (Some(FaultKind::ArenaLimit), None), "{text}");
        let message = "the elements of the lists of all rows exceed the limit `array_bytes`";
        assert_eq!(error.message(), message);
        assert_eq!(batch(text).run(&[InputColumn::lists(&few[..], elements)]).unwrap()[0].rows(), 2);
    }
}

#[test]
fn threads_that_there_are_not_take_no_memory() {
    let numbers: Vec<f64> = (0..200_000).map(f64::from).collect();
    let elements = InputColumn::values(&numbers);
    let lists = InputColumn::lists(ListOffsets::Fixed { size: 2, rows: 100_000 }, &elements);
    let (sums, doubled) = (batch("input x: [f64]; math.sum(x)"), batch("input x: f64; x * 2.0"));
    let x = Value::Array(ArrayKind::Dense, elements.array(Scalar::Float64, 0..200_000).expect("numbers").into());
    let mut g = TensorGraph::standard();
    let leaf = g.leaf("x", Scalar::Float64, &[200_000]).expect("a leaf");
    let (e, total) = (g.apply("exp", &[leaf]).expect("a map"), g.reduce(Reduction::Sum, leaf, &[0]));
    let nodes = [e, total.expect("a sum")];
    let tensor = Tensor::new(&[200_000], numbers.clone()).expect("a tensor");
    let executor = g.compile(&nodes, &Options::default().min_parallel_elements(1)).expect("an executor");
    let values = |made: &[OutputColumn]| made[0].values::<f64>().expect("numbers").to_vec();
    let one = (sums.run(&[lists]).unwrap(), doubled.run(&[elements]).unwrap());
    for threads in [0, 1 << 62, (1 << 62) + 1, usize::MAX] {
        let many = sums.run_with(&RunOptions::new().threads(threads), &[lists]).unwrap();
        assert_eq!(values(&many.columns), values(&one.0), "{threads}");
        let many = doubled.run_with(&RunOptions::new().threads(threads).strip_rows(threads), &[elements]).unwrap();
        assert_eq!(values(&many.columns), values(&one.1), "{threads}");
        let mut session = session("input x: [f64]; math.sum(x * x)");
        let alone = session.evaluate(std::slice::from_ref(&x)).unwrap();
        session.set_threads(threads);
        assert_eq!(session.evaluate(std::slice::from_ref(&x)).unwrap(), alone, "{threads}");
        let of = |threads: usize| {
            let mut session = executor.session();
            session.set_threads(threads);
            let made = session.run_tensors(std::slice::from_ref(&tensor)).unwrap();
            made.iter().map(|tensor| tensor.to_vec::<f64>().unwrap()).collect::<Vec<_>>()
        };
        assert_eq!(of(threads), of(1), "{threads}");
    }
}

#[test]
fn shapes_and_strides_beyond_all_memory_are_refused() {
    let three = || f64::data(vec![1.0, 2.0, 3.0]);
    // As many elements as there are addresses are none, if extents are multiplied without a look.
    for extents in [&[1 << 61][..], &[1 << 31, 1 << 33], &[1 << 32, 1 << 32], &[usize::MAX, 0], &[usize::MAX; 2]] {
        assert!(Layout::row_major(extents).is_err(), "{extents:?}");
        assert!(Tensor::new::<f64>(extents, vec![]).is_err() && HalfTensor::<f16>::new(extents, vec![]).is_err());
        assert!(Tensor::zeros(Scalar::Float64, extents).is_err(), "{extents:?}");
        assert!(Tensor::scalar(1.0).broadcast_to(extents).is_err(), "{extents:?}");
        assert!(TensorGraph::standard().leaf("x", Scalar::Float64, extents).is_err(), "{extents:?}");
    }
    assert!(Tensor::zeros(Scalar::Int32, &[1 << 50]).is_err());
    let many = Tensor::scalar(1.0).broadcast_to(&[1 << 25, 1 << 25]).expect("a view, which takes no memory");
    assert!(many.to_vec::<f64>().is_err() && many.transposed(&[1, 0]).unwrap().to_vec::<f64>().is_err());
    let mixed = Tensor::new(&[2, 1], vec![1.0, 2.0]).unwrap().broadcast_to(&[2, 1 << 50]).unwrap();
    assert!(mixed.transposed(&[1, 0]).unwrap().reshaped(&[1 << 51]).is_err());
    for (extents, strides, offset) in [
        (&[2][..], &[isize::MAX][..], 0),
        (&[2], &[isize::MIN], 0),
        (&[3], &[-1], 1),
        (&[4], &[1], 0),
        (&[3], &[1], usize::MAX),
        (&[2, 2], &[isize::MAX, isize::MAX], 1),
        (&[2, 2], &[isize::MIN, isize::MAX], 0),
        (&[1 << 59, 2], &[32, 0], 0),
    ] {
        assert!(Layout::strided(extents, strides, offset, 3).is_err(), "{extents:?} {strides:?} {offset}");
        // A layout of other memory, which is larger than all.
        let Ok(layout) = Layout::strided(extents, strides, offset, usize::MAX) else { continue };
        assert!(Tensor::from_parts(three(), layout.clone()).is_err(), "{layout:?}");
        assert!(Tensor::new(&[3], vec![0.0; 3]).unwrap().under(layout.clone()).is_err(), "{layout:?}");
        assert!(TensorMut::new(&mut three(), layout).is_err());
    }
    let tensor = Tensor::from_parts(three(), Layout::row_major(&[3]).unwrap()).unwrap();
    for (start, step, count) in [(0, 1, usize::MAX), (2, -1, 4), (usize::MAX, isize::MIN, 3), (1, isize::MAX, 2)] {
        assert!(tensor.sliced(&[Slice { start, step, count }]).is_err(), "{start} {step} {count}");
    }
    let matrix = |offset, rows, columns, row_stride, column_stride| MatrixLayout {
        offset,
        rows,
        columns,
        row_stride,
        column_stride,
    };
    let (mut to, from) = (vec![7.0; 4], vec![1.0; 4]);
    let square = matrix(0, 2, 2, 2, 1);
    for wrong in [
        matrix(1, 2, 2, 2, 1),
        matrix(usize::MAX, 2, 2, 2, 1),
        matrix(0, 2, 2, isize::MAX, 1),
        matrix(0, 2, 2, isize::MIN, isize::MAX),
        matrix(3, 2, 2, -2, -2),
    ] {
        assert!(Multiplication::new((&mut to, wrong), (&from, square), (&from, square), false).is_err(), "{wrong:?}");
        assert!(Multiplication::new((&mut to, square), (&from, wrong), (&from, square), false).is_err(), "{wrong:?}");
    }
    // Without terms there are no factors, wherever they are said to be: the result is zeros.
    let (no_columns, no_rows) = (matrix(usize::MAX, 2, 0, isize::MIN, 1), matrix(usize::MAX, 0, 2, 1, isize::MAX));
    let product =
        Multiplication::new((&mut to, square), (&from, no_columns), (&from, no_rows), false).expect("a product");
    matrices().multiply_f64(product);
    assert_eq!(to, [0.0; 4]);
}

/// A dictionary with values that take no memory may have more values than 32-bit numbers can index. Results per value
/// are not cached in a table then.
#[test]
fn dictionaries_of_values_that_lie_nowhere_have_no_tables() {
    let keys: Vec<u64> = (0..3_000).map(|row| row % 7).collect();
    for values in [1 << 32, (1 << 32) - 2, u32::MAX as usize, 1 << 40, 1 << 61, isize::MAX as usize] {
        let one = InputColumn::stepped(&[2.5], 0, 0, values).expect("a column");
        let of_one = InputColumn::dictionary(Keys::U64(&keys), &one);
        let made = batch("input x: f64; math.exp(x * 0.0) + x").run(&[of_one]).expect("numbers");
        assert_eq!(made[0].values::<f64>(), Some(&[3.5; 3_000][..]), "{values}");
        let units = InputColumn::units(values);
        let made = batch("input x: unit?; where(x, 1.0)").run(&[InputColumn::dictionary(Keys::U64(&keys), &units)]);
        assert_eq!(made.expect("numbers")[0].values::<f64>(), Some(&[1.0; 3_000][..]), "{values}");
        let wrong = [0, values as u64];
        assert!(batch("input x: f64; x").run(&[InputColumn::dictionary(Keys::U64(&wrong), &one)]).is_err());
    }
}
