//! Tests columns of lists as inputs and outputs of models with arrays, in all of Arrow's list layouts.

use arrow_array::builder::{Float64Builder, ListBuilder, StringBuilder, StringViewBuilder};
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int32Type, Int64Type};
use arrow_array::{
    Array, ArrayRef, BooleanArray, Date32Array, DictionaryArray, FixedSizeListArray, Float32Array, Float64Array,
    Int8Array, Int32Array, Int64Array, LargeListArray, ListArray, RecordBatch, RecordBatchIterator, RecordBatchReader,
    StringArray, TimestampMicrosecondArray, TimestampSecondArray, UInt32Array, UInt64Array,
};
use arrow_buffer::OffsetBuffer;
use arrow_schema::{DataType, Field, Schema};
use cembra::doors::OutputRoom;
use cembra::{Limits, Model, OnError, Options, RunOptions};
use cembra_arrow::{Error, data_type, evaluated, from_model, input_types, run, run_as, to_model, to_model_with};
use std::sync::Arc;

type Row<T> = Option<Vec<Option<T>>>;

fn doubles(rows: Vec<Row<f64>>) -> ListArray {
    ListArray::from_iter_primitive::<Float64Type, _, _>(rows)
}

fn table(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, array)| (name, array, true)))
        .expect("a table")
}

/// Returns the output of the model `text` for the column `x`, as an array of type `wanted`; `None` for the default
/// type.
fn made(text: &str, x: ArrayRef, wanted: Option<DataType>) -> Result<ArrayRef, Error> {
    let table = table(vec![("x", x)]);
    let batch = Model::parse(text)?.batch(&input_types(Options::default(), &table.schema()))?;
    let schema = wanted.map(|wanted| Schema::new(vec![Field::new("y", wanted, true)]));
    Ok(run_as(&batch, &RunOptions::new(), &table, schema.as_ref())?.table.column(0).clone())
}

#[test]
fn lists_of_any_layout_go_in() {
    let lists = doubles(vec![Some(vec![Some(1.0), None]), Some(vec![]), Some(vec![Some(2.0), Some(4.0), Some(-1.0)])]);
    let large: LargeListArray = LargeListArray::from_iter_primitive::<Float64Type, _, _>(vec![
        Some(vec![Some(1.0), None]),
        Some(vec![]),
        Some(vec![Some(2.0), Some(4.0), Some(-1.0)]),
    ]);
    for x in [Arc::new(lists) as ArrayRef, Arc::new(large)] {
        let sums = made("output y = math.sum(x)", x.clone(), None).unwrap();
        assert_eq!(*sums, Float64Array::from(vec![1.0, 0.0, 5.0]));
        assert!(!sums.is_nullable());
        // From the middle of another.
        let sums = made("output y = math.sum(x)", x.slice(1, 2), None).unwrap();
        assert_eq!(*sums, Float64Array::from(vec![0.0, 5.0]));
        let twice = made("output y = x * 2.0", x.slice(1, 2), None).unwrap();
        let twice = twice.as_list::<i64>();
        assert_eq!(twice.value_offsets(), [0, 0, 3]);
        assert_eq!(**twice.values(), Float64Array::from(vec![4.0, 8.0, -2.0]));
        assert_eq!(Some(twice.data_type()), data_type(&cembra::values::parse_type("[f64]").unwrap()).as_ref());
    }
    let values = Arc::new(Int32Array::from(vec![Some(1), Some(2), None, Some(4), Some(5), Some(6)]));
    let fixed = FixedSizeListArray::new(Arc::new(Field::new_list_field(DataType::Int32, true)), 2, values, None);
    let sums = made("output y = math.sum(x)", Arc::new(fixed.clone()), None).unwrap();
    assert_eq!(*sums, Int32Array::from(vec![3, 4, 11]));
    let sums = made("output y = math.sum(x)", Arc::new(fixed.slice(1, 2)), None).unwrap();
    assert_eq!(*sums, Int32Array::from(vec![4, 11]));
    let mut texts = ListBuilder::new(StringBuilder::new());
    texts.append_value([Some("a"), None, Some("a text that is longer")]);
    texts.append_value([Some("é")]);
    let joined = made("output y = strings.agg_join(x, edge.to_scalar(x), \"+\")", Arc::new(texts.finish()), None);
    assert_eq!(*joined.unwrap(), StringArray::from(vec!["a+a text that is longer", "é"]));
}

/// A text that several list elements share counts once per element before it is copied: when rows are evaluated
/// together, row by row, and when a single array is converted.
#[test]
fn texts_that_elements_share_are_counted_before_they_are_copied() {
    let shared = |count: usize| -> [ArrayRef; 2] {
        let mut views = StringViewBuilder::new();
        let block = views.append_block(vec![b'x'; 1 << 20].into());
        (0..count).for_each(|_| views.try_append_view(block, 0, 1 << 20).unwrap());
        let texts = Arc::new(StringArray::from(vec!["x".repeat(1 << 20)]));
        [Arc::new(views.finish()), Arc::new(DictionaryArray::new(Int32Array::from(vec![0; count]), texts))]
    };
    let lists = |elements: &ArrayRef, rows: usize| -> ArrayRef {
        let field = Arc::new(Field::new_list_field(elements.data_type().clone(), true));
        let size = elements.len() / rows;
        Arc::new(ListArray::new(field, OffsetBuffer::from_lengths(vec![size; rows]), elements.clone(), None))
    };
    let limits = Limits::default().array_bytes(8 << 20);
    let options = Options::default().limits(limits);
    let [views, dictionary] = shared(20_000);
    for (text, rows) in [("output o = x", 1), ("output o = math.sum(strings.length(x))", 4)] {
        let table = table(vec![("x", lists(&views, rows))]);
        let batch = Model::parse(text).unwrap().batch(&input_types(options.clone(), &table.schema())).unwrap();
        let error = run(&batch, &RunOptions::new(), &table).unwrap_err().to_string();
        assert!(error.contains("the limit `array_bytes`"), "{text}: {error}");
    }
    for elements in [views, dictionary] {
        let error = to_model(elements.clone()).unwrap_err().to_string();
        assert!(error.contains("the limit `array_bytes`"), "{error}");
        assert_eq!(to_model_with(elements.slice(0, 2), &OutputRoom::of(2 << 20)).unwrap().len(), 2);
        assert!(to_model_with(elements.slice(0, 3), &OutputRoom::of(2 << 20)).is_err());
    }
    // Rows that have no room together are evaluated one by one, and a text of rows beside lists counts too.
    let [views, dictionary] = shared(40);
    let table = table(vec![("x", lists(&views, 10)), ("t", dictionary.slice(0, 10))]);
    let text = "output o = math.sum(strings.length(x)) + strings.length(t)";
    let batch = Model::parse(text).unwrap().batch(&input_types(options, &table.schema())).unwrap();
    let made = run(&batch, &RunOptions::new(), &table).unwrap().table;
    assert_eq!(made.column(0).as_primitive::<Int64Type>().values(), &[5 << 20; 10]);
}

#[test]
fn lists_come_out_in_the_layout_that_is_asked_for() {
    let rows = vec![Some(vec![Some(1.0), None]), Some(vec![Some(3.0), Some(4.0)])];
    let x = Arc::new(doubles(rows.clone()));
    let field = |data_type, nullable| Arc::new(Field::new("each", data_type, nullable));
    let found = made("output y = x", x.clone(), Some(DataType::List(field(DataType::Float64, true)))).unwrap();
    assert_eq!(found.as_list::<i32>().value(1).as_primitive::<Float64Type>().values(), &[3.0, 4.0]);
    assert_eq!(found.data_type(), &DataType::List(field(DataType::Float64, true)));
    let found =
        made("output y = x", x.clone(), Some(DataType::FixedSizeList(field(DataType::Float64, true), 2))).unwrap();
    assert_eq!(found.as_fixed_size_list().value_length(), 2);
    let texts = DataType::LargeList(field(DataType::Utf8, true));
    let found = made("output y = strings.as_text(x)", x.clone(), Some(texts.clone())).unwrap();
    assert_eq!(found.data_type(), &texts);
    assert_eq!(*found.as_list::<i64>().value(0), StringArray::from(vec![Some("1"), None]));
    // Others cannot be had.
    for wanted in [
        DataType::FixedSizeList(field(DataType::Float64, true), 3),
        DataType::LargeList(field(DataType::Float64, false)),
        DataType::LargeList(field(DataType::Int32, true)),
        DataType::Float64,
    ] {
        assert!(made("output y = x", x.clone(), Some(wanted.clone())).is_err(), "{wanted}");
    }
}

#[test]
fn rows_without_a_list_are_refused_and_rows_that_fail_have_none() {
    let x = Arc::new(doubles(vec![Some(vec![Some(1.0)]), None]));
    let error = made("output y = math.sum(x)", x, None).unwrap_err();
    assert_eq!(error.to_string(), "input `x` is missing in row 1");
    let mut nested = ListBuilder::new(ListBuilder::new(Float64Builder::new()));
    nested.append(true);
    let nested: ArrayRef = Arc::new(nested.finish());
    let table = table(vec![("x", nested)]);
    let batch = Model::parse("input x: [f64?]; math.sum(x)").unwrap().batch(&Options::default()).unwrap();
    assert!(matches!(run(&batch, &RunOptions::new(), &table).unwrap_err(), Error::Type { .. }));
    let x: ArrayRef = Arc::new(doubles(vec![Some(vec![Some(1.0), Some(2.0)]), Some(vec![Some(1.0), Some(0.0)])]));
    let table = self::table(vec![("x", x)]);
    let batch = Model::parse("input x: [f64?]; output y = 6.0 // x; output n = array.size(x)").unwrap();
    let batch = batch.batch(&Options::default()).unwrap();
    let made = run(&batch, &RunOptions::new().on_error(OnError::Missing), &table).unwrap();
    assert_eq!(made.failed, [1]);
    let y = made.table.column(0).as_list::<i64>();
    assert_eq!((y.is_null(1), y.value_offsets()), (true, &[0, 2, 2][..]));
    assert_eq!(made.table.column(1).as_primitive::<Int64Type>().iter().collect::<Vec<_>>(), [Some(2), None]);
    let error = run(&batch, &RunOptions::new(), &table).unwrap_err();
    let expected = "math.floor_divide: division by zero, in element 1 of row 1 (line 1, column 29: `6.0 // x`)";
    assert_eq!(error.to_string(), expected);
}

#[test]
fn streams_of_tables_have_the_schema_that_they_say() {
    let x: ArrayRef = Arc::new(doubles(vec![Some(vec![Some(2.0), None])]));
    let table = table(vec![("x", x)]);
    let batch = Model::parse("input x: [f64?]; output y = x; output s = math.sum(x)").unwrap();
    let batch = batch.batch(&Options::default()).unwrap();
    let reader = RecordBatchIterator::new([Ok(table.clone())], table.schema());
    let mut stream = evaluated(&batch, reader).unwrap();
    let schema = stream.schema();
    assert_eq!(stream.next().unwrap().unwrap().schema(), schema);
}

#[test]
fn arrays_of_one_evaluation_are_arrows() {
    let pairs: Vec<(ArrayRef, ArrayRef)> = vec![
        (Arc::new(Float64Array::from(vec![Some(1.5), None])), Arc::new(Float64Array::from(vec![Some(1.5), None]))),
        (Arc::new(Float32Array::from(vec![1.5, 2.5, 3.5])), Arc::new(Float32Array::from(vec![1.5, 2.5, 3.5]))),
        (Arc::new(Int8Array::from(vec![Some(-3), None])), Arc::new(Int32Array::from(vec![Some(-3), None]))),
        (Arc::new(UInt32Array::from(vec![u32::MAX])), Arc::new(Int64Array::from(vec![i64::from(u32::MAX)]))),
        (Arc::new(UInt64Array::from(vec![u64::MAX])), Arc::new(UInt64Array::from(vec![u64::MAX]))),
        (Arc::new(BooleanArray::from(vec![Some(true), None])), Arc::new(BooleanArray::from(vec![Some(true), None]))),
        (Arc::new(Date32Array::from(vec![5])), Arc::new(Date32Array::from(vec![5]))),
        (
            Arc::new(TimestampSecondArray::from(vec![Some(3), None])),
            Arc::new(TimestampMicrosecondArray::from(vec![Some(3_000_000), None]).with_timezone("UTC")),
        ),
        (
            Arc::new(StringArray::from(vec![Some("a"), None, Some("a text that is longer")])),
            Arc::new(StringArray::from(vec![Some("a"), None, Some("a text that is longer")])),
        ),
        (
            Arc::new(DictionaryArray::<Int32Type>::from_iter([Some("a"), None, Some("a")])),
            Arc::new(StringArray::from(vec![Some("a"), None, Some("a")])),
        ),
        (Arc::new(Float64Array::from(Vec::<f64>::new())), Arc::new(Float64Array::from(Vec::<f64>::new()))),
    ];
    for (from, expected) in pairs {
        let found = from_model(to_model(from.clone()).unwrap()).unwrap();
        assert_eq!(*found, *expected);
        let part = from_model(to_model(from.slice(from.len().min(1), 0)).unwrap()).unwrap();
        assert_eq!(part.len(), 0);
    }
    let lists: ArrayRef = Arc::new(doubles(vec![Some(vec![])]));
    assert!(matches!(to_model(lists), Err(Error::Type { .. })));
    // A part of one is that part.
    let numbers: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), None, Some(3), Some(4)]));
    let part = from_model(to_model(numbers.slice(1, 2)).unwrap()).unwrap();
    assert_eq!(*part, Int64Array::from(vec![None, Some(3)]));
}

#[test]
fn memory_that_nobody_else_has_is_not_copied() {
    let numbers: Vec<f64> = (0..1000).map(f64::from).collect();
    let at = numbers.as_ptr().addr();
    let array: ArrayRef = Arc::new(Float64Array::from(numbers));
    let shared = array.clone();
    let copied = from_model(to_model(array).unwrap()).unwrap();
    assert_ne!(copied.as_primitive::<Float64Type>().values().as_ptr().addr(), at);
    let kept = from_model(to_model(shared).unwrap()).unwrap();
    assert_eq!(kept.as_primitive::<Float64Type>().values().as_ptr().addr(), at);
    assert_eq!(*kept, *copied);
}
