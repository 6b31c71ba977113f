//! Tests that Arrow arrays of every type keep their values on the way through a model, and that slices, offsets and
//! dictionaries are read as Arrow reads them.

use arrow_array::builder::{
    BinaryBuilder, BinaryViewBuilder, ListBuilder, StringBuilder, StringDictionaryBuilder, StringViewBuilder,
};
use arrow_array::cast::AsArray;
use arrow_array::types::{
    DurationMicrosecondType, Float64Type, Int8Type, Int32Type, Int64Type, TimestampMicrosecondType, UInt16Type,
    UInt32Type,
};
use arrow_array::{
    Array, ArrayRef, BinaryArray, BinaryViewArray, BooleanArray, Date32Array, DictionaryArray, DurationNanosecondArray,
    FixedSizeListArray, Float32Array, Float64Array, Int8Array, Int16Array, Int32Array, Int64Array, LargeListArray,
    LargeStringArray, ListArray, NullArray, RecordBatch, RecordBatchIterator, RecordBatchOptions, RecordBatchReader,
    StringArray, StringViewArray, TimestampMicrosecondArray, TimestampMillisecondArray, TimestampNanosecondArray,
    TimestampSecondArray, UInt8Array, UInt16Array, UInt32Array, UInt64Array,
};
use arrow_schema::{DataType, Field, Schema};
use cembra::doors::OutputRoom;
use cembra::explain::RowPlayer;
use cembra::{Backend, Limits, Model, Options, RunOptions};
use cembra_arrow::{
    Error, Strings, data_type, evaluated, from_model, from_model_with, input_types, relaid, run, run_as, run_with,
    to_model,
};
use std::sync::Arc;

fn identity(column: &ArrayRef, wanted: Option<&DataType>) -> Result<ArrayRef, Error> {
    let table = RecordBatch::try_from_iter_with_nullable([("x", column.clone(), true)])?;
    let model = Model::parse("output y = x")?;
    let batch = model.batch(&input_types(Options::default(), &table.schema()))?;
    let schema = wanted.map(|wanted| Schema::new(vec![Field::new("y", wanted.clone(), true)]));
    let made = run_as(&batch, &RunOptions::new(), &table, schema.as_ref())?;
    Ok(made.table.column(0).clone())
}

/// Nanoseconds are rounded down to microseconds, also for timestamps before 1970 and negative durations: -1 ns becomes
/// -1 µs.
#[test]
fn nanoseconds_are_rounded_down() {
    let nanos = vec![-1_001_i64, -1_000, -999, -1, 0, 999, 1_000];
    let micros: Vec<i64> = vec![-2, -1, -1, -1, 0, 0, 1];
    let moments: ArrayRef = Arc::new(TimestampNanosecondArray::from(nanos.clone()));
    let made = identity(&moments, None).expect("timestamps");
    assert_eq!(made.as_primitive::<TimestampMicrosecondType>().values(), &micros[..]);
    let lengths: ArrayRef = Arc::new(DurationNanosecondArray::from(nanos));
    let made = identity(&lengths, None).expect("durations");
    assert_eq!(made.as_primitive::<DurationMicrosecondType>().values(), &micros[..]);
}

fn all_types(rows: usize) -> Vec<ArrayRef> {
    let there = |row: &usize| row % 3 != 1;
    let row = |row: usize| there(&row).then_some(row);
    let texts: Vec<Option<String>> = (0..rows).map(|at| row(at).map(|row| "é".repeat(row % 20))).collect();
    let (mut views, mut bytes, mut byte_views) =
        (StringViewBuilder::new(), BinaryBuilder::new(), BinaryViewBuilder::new());
    let mut dictionary = StringDictionaryBuilder::<Int8Type>::new();
    for (at, text) in texts.iter().enumerate() {
        views.append_option(text.as_deref());
        bytes.append_option(text.as_deref());
        byte_views.append_option(text.as_deref());
        dictionary.append_option(row(at).map(|row| ["a", "bb", "a long text of a dictionary"][row % 3]));
    }
    macro_rules! numbers {
        ($array:ident as $ty:ty) => {
            Arc::new((0..rows).map(|at| row(at).map(|row| row as $ty)).collect::<$array>()) as ArrayRef
        };
    }
    vec![
        numbers!(Int8Array as i8),
        numbers!(Int16Array as i16),
        numbers!(Int32Array as i32),
        numbers!(Int64Array as i64),
        numbers!(UInt8Array as u8),
        numbers!(UInt16Array as u16),
        numbers!(UInt32Array as u32),
        numbers!(UInt64Array as u64),
        numbers!(Float32Array as f32),
        numbers!(Float64Array as f64),
        numbers!(Date32Array as i32),
        Arc::new((0..rows).map(|at| row(at).map(|row| row % 2 == 0)).collect::<BooleanArray>()),
        numbers!(TimestampSecondArray as i64),
        numbers!(TimestampMillisecondArray as i64),
        Arc::new((0..rows).map(|at| row(at).map(|row| row as i64)).collect::<TimestampMicrosecondArray>()),
        numbers!(TimestampNanosecondArray as i64),
        Arc::new(StringArray::from(texts.clone())),
        Arc::new(LargeStringArray::from(texts)),
        Arc::new(views.finish()),
        Arc::new(bytes.finish()),
        Arc::new(byte_views.finish()),
        Arc::new(dictionary.finish()),
    ]
}

/// Returns the values of an array as text; `None` for null.
fn shown(array: &dyn Array) -> Vec<Option<String>> {
    let one = |row: usize| -> String {
        macro_rules! of {
            ($($get:expr),*) => { $(if let Some(values) = $get { return format!("{:?}", values.value(row)); })* };
        }
        let any = array.as_any();
        of!(
            any.downcast_ref::<Int8Array>(),
            any.downcast_ref::<Int16Array>(),
            any.downcast_ref::<Int32Array>(),
            any.downcast_ref::<Int64Array>(),
            any.downcast_ref::<UInt8Array>(),
            any.downcast_ref::<UInt16Array>(),
            any.downcast_ref::<UInt32Array>(),
            any.downcast_ref::<UInt64Array>(),
            any.downcast_ref::<Float32Array>(),
            any.downcast_ref::<Float64Array>(),
            any.downcast_ref::<Date32Array>(),
            any.downcast_ref::<BooleanArray>(),
            any.downcast_ref::<TimestampMicrosecondArray>(),
            array.as_string_opt::<i32>(),
            array.as_string_opt::<i64>(),
            array.as_string_view_opt(),
            array.as_binary_opt::<i32>(),
            array.as_binary_view_opt()
        );
        if let Some(seconds) = any.downcast_ref::<TimestampSecondArray>() {
            return format!("{:?}", seconds.value(row) * 1_000_000);
        }
        if let Some(ms) = any.downcast_ref::<TimestampMillisecondArray>() {
            return format!("{:?}", ms.value(row) * 1_000);
        }
        if let Some(nanos) = any.downcast_ref::<TimestampNanosecondArray>() {
            return format!("{:?}", nanos.value(row).div_euclid(1_000));
        }
        let dictionary = array.as_dictionary::<Int8Type>();
        format!("{:?}", dictionary.values().as_string::<i32>().value(dictionary.keys().value(row) as usize))
    };
    (0..array.len()).map(|row| array.is_valid(row).then(|| one(row))).collect()
}

#[test]
fn every_type_goes_through_a_model_and_back() {
    for column in all_types(200) {
        for (start, len) in [(0, 200), (1, 100), (7, 64), (8, 129), (64, 0), (199, 1)] {
            let slice = column.slice(start, len);
            let back = identity(&slice, None).unwrap();
            assert_eq!(shown(&back), shown(&slice), "{} from {start}", column.data_type());
        }
    }
}

#[test]
fn texts_come_in_the_layout_that_is_asked_for() {
    let texts: ArrayRef =
        Arc::new(StringArray::from(vec![Some("short"), None, Some("a text of more than twelve bytes")]));
    for wanted in [DataType::Utf8, DataType::LargeUtf8, DataType::Utf8View] {
        let back = identity(&texts, Some(&wanted)).unwrap();
        assert_eq!((back.data_type(), shown(&back)), (&wanted, shown(&texts)));
    }
    let error = identity(&texts, Some(&DataType::Int32)).unwrap_err().to_string();
    assert_eq!(error, "output `y` is text?, but must be Int32");
}

/// Texts and bytes of results are `Utf8` and `Binary`, which other programs can filter and sort; views only if
/// requested. A missing row takes no bytes.
#[test]
fn texts_and_bytes_are_plain_unless_views_are_asked_for() {
    let long = "a text of more than twelve bytes";
    let texts = vec![Some("é"), None, Some(long), Some("")];
    let bytes = || texts.iter().map(|text| text.map(str::as_bytes));
    let table = RecordBatch::try_from_iter([
        ("t", Arc::new(StringViewArray::from(texts.clone())) as ArrayRef),
        ("b", Arc::new(bytes().collect::<BinaryViewArray>())),
    ]);
    let table = table.unwrap();
    let model = Model::parse("input t: text?; input b: bytes?; output u = t; output c = b; output d = 'x' + (t ?? '')");
    let batch = model.unwrap().batch(&Options::default()).unwrap();
    let made = run(&batch, &RunOptions::new(), &table).unwrap().table;
    assert_eq!(**made.column(0), StringArray::from(texts.clone()));
    assert_eq!(made.column(0).as_string::<i32>().value_data().len(), 2 + long.len());
    assert_eq!(**made.column(1), bytes().collect::<BinaryArray>());
    assert_eq!(**made.column(2), StringArray::from(vec!["xé", "x", "xa text of more than twelve bytes", "x"]));
    let schema: Vec<_> = batch.outputs().iter().map(|output| data_type(&output.qtype)).collect();
    assert_eq!(schema, made.columns().iter().map(|column| Some(column.data_type().clone())).collect::<Vec<_>>());
    let views = run_with(&batch, &RunOptions::new(), &table, Strings::Views).unwrap().table;
    assert_eq!((**views.column(0)).as_string_view(), &StringViewArray::from(texts.clone()));
    assert_eq!(**views.column(1), bytes().collect::<BinaryViewArray>());
    // Lists of texts, and texts of one evaluation.
    let mut lists = ListBuilder::new(StringBuilder::new());
    lists.append_value([Some("a"), None]);
    let lists = RecordBatch::try_from_iter([("t", Arc::new(lists.finish()) as ArrayRef)]).unwrap();
    let batch = Model::parse("input t: [text?]; output y = strings.upper(t)").unwrap();
    let batch = batch.batch(&Options::default()).unwrap();
    let element = |made: RecordBatch| made.column(0).as_list::<i64>().value_type();
    assert_eq!(element(run(&batch, &RunOptions::new(), &lists).unwrap().table), DataType::Utf8);
    assert_eq!(
        element(run_with(&batch, &RunOptions::new(), &lists, Strings::Views).unwrap().table),
        DataType::Utf8View
    );
    let array = to_model(table.column(0).clone()).unwrap();
    assert_eq!(*from_model(array.clone()).unwrap(), StringArray::from(texts.clone()));
    let nothing = OutputRoom::of(0);
    assert_eq!(*from_model_with(array, Strings::Views, &nothing).unwrap(), StringViewArray::from(texts));
}

/// Texts of more than 2 GiB in one array need 64-bit offsets. The test shares one text of 1 MiB between many rows.
#[test]
fn texts_of_more_than_two_gibibytes_have_long_offsets() {
    let one = "x".repeat(1 << 20);
    let many = |count: usize| -> ArrayRef {
        let mut views = StringViewBuilder::new();
        let block = views.append_block(one.clone().into_bytes().into());
        (0..count).for_each(|_| views.try_append_view(block, 0, 1 << 20).unwrap());
        Arc::new(views.finish())
    };
    let laid_out = |count, wanted| relaid(&many(count), &wanted, &OutputRoom::of(4 << 30)).unwrap();
    assert!(laid_out(2_048, DataType::Utf8).is_none());
    assert_eq!(laid_out(3, DataType::Utf8).unwrap().as_string::<i32>().value_data().len(), 3 << 20);
    assert_eq!(laid_out(3, DataType::LargeUtf8).unwrap().as_string::<i64>().value_offsets()[3], 3 << 20);
}

/// A dictionary's string counts once per row that has it, before it is copied for these rows, in every function that
/// makes arrays.
#[test]
fn strings_that_rows_share_are_counted_before_they_are_copied() {
    let is_limit = |error: Error| matches!(&error, Error::Model(error) if error.fault_kind().is_some() && error.message().contains("the limit `array_bytes`"));
    let limits = Limits::default().array_bytes(1 << 20);
    let texts: ArrayRef = Arc::new(StringArray::from(vec!["x".repeat(1_000)]));
    let column =
        |rows: usize| -> ArrayRef { Arc::new(DictionaryArray::new(Int32Array::from(vec![0; rows]), texts.clone())) };
    let table =
        |rows| RecordBatch::try_from_iter([("x", column(rows)), ("n", Arc::new(Int64Array::from(vec![0; rows])))]);
    for text in ["input x: text; output y = strings.upper(x)", "input x: text, n: i64; output y = [strings.upper(x)]"] {
        let batch = Model::parse(text).unwrap();
        let batch = batch.batch(&Options::default().limits(limits)).unwrap();
        let few = run(&batch, &RunOptions::new(), &table(500).unwrap()).unwrap().table;
        assert!(few.column(0).get_buffer_memory_size() >= 500_000);
        assert!(is_limit(run(&batch, &RunOptions::new(), &table(2_000).unwrap()).unwrap_err()), "{text}");
    }
    let model = Model::parse("input x: text; output y = strings.upper(x)").unwrap();
    let batch = model.batch(&Options::default().limits(limits)).unwrap();
    let of_run = limits.array_bytes(1 << 18);
    let options = RunOptions::new().limits(of_run);
    assert!(is_limit(run(&batch, &options, &table(500).unwrap()).unwrap_err()));
    // Another layout, which names the same limit; views and dictionaries copy nothing.
    let as_type = |wanted| {
        run_as(
            &batch,
            &RunOptions::new(),
            &table(2_000).unwrap(),
            Some(&Schema::new(vec![Field::new("y", wanted, true)])),
        )
    };
    assert!(is_limit(as_type(DataType::LargeUtf8).unwrap_err()));
    let dictionary = |values| DataType::Dictionary(DataType::Int32.into(), Box::new(values));
    assert_eq!(as_type(DataType::Utf8View).unwrap().table.num_rows(), 2_000);
    assert_eq!(as_type(dictionary(DataType::Utf8)).unwrap().table.num_rows(), 2_000);
    assert_eq!(
        run_with(&batch, &RunOptions::new(), &table(2_000).unwrap(), Strings::Views).unwrap().table.num_rows(),
        2_000
    );
    // A stream, and an array by itself.
    let reader = RecordBatchIterator::new(table(2_000).into_iter().map(Ok), table(1).unwrap().schema());
    let error = evaluated(&batch, reader).unwrap().next().unwrap().unwrap_err();
    assert!(error.to_string().contains("the limit `array_bytes`"), "{error}");
    let array = to_model(column(2_000)).unwrap();
    let room = OutputRoom::of(1 << 20);
    assert!(is_limit(from_model_with(array.clone(), Strings::Plain, &room).unwrap_err()));
    assert_eq!(from_model(array).unwrap().as_string::<i32>().value_data().len(), 2_000_000);
    let mut views = StringViewBuilder::new();
    let block = views.append_block(vec![b'x'; 1_000].into());
    (0..2_000).for_each(|_| views.try_append_view(block, 0, 1_000).unwrap());
    let views: ArrayRef = Arc::new(views.finish());
    assert!(is_limit(relaid(&views, &DataType::Utf8, &room).unwrap_err()));
    // A refused copy claims no bytes.
    assert!(relaid(&views.slice(0, 1_000), &DataType::Utf8, &room).unwrap().is_some());
    let missing: ArrayRef = Arc::new(StringViewArray::from(vec![None::<&str>; 3]));
    let laid_out = relaid(&missing, &DataType::LargeUtf8, &room).unwrap().unwrap();
    assert_eq!((laid_out.data_type(), laid_out.null_count()), (&DataType::LargeUtf8, 3));
}

#[test]
fn what_has_no_place_in_a_model_is_said() {
    let times: ArrayRef = Arc::new(TimestampSecondArray::from(vec![Some(1), None, Some(i64::MAX)]));
    let error = identity(&times, None).unwrap_err().to_string();
    assert_eq!(error, "column `x` has a value in row 2 that does not fit into microseconds");
    let table = RecordBatch::try_from_iter([("y", times)]).unwrap();
    let batch = Model::parse("input x: i64; x").unwrap().batch(&Options::default()).unwrap();
    assert_eq!(
        run(&batch, &RunOptions::new(), &table).unwrap_err().to_string(),
        "the table has no column for input `x`"
    );
    let times: ArrayRef = arrow_array::new_empty_array(&DataType::Time32(arrow_schema::TimeUnit::Second));
    let table = RecordBatch::try_from_iter_with_nullable([("x", times, true)]).unwrap();
    assert_eq!(
        run(&batch, &RunOptions::new(), &table).unwrap_err().to_string(),
        "column `x` has the type Time32(s), which an input cannot have"
    );
}

/// An input that is not optional accepts a nullable column if the column has no null.
#[test]
fn nulls_are_refused_where_they_are() {
    let batch = Model::parse("input x: i64; x * 2").unwrap().batch(&Options::default()).unwrap();
    let full: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), Some(2)]));
    let table = RecordBatch::try_from_iter_with_nullable([("x", full, true)]).unwrap();
    let made = run(&batch, &RunOptions::new(), &table).unwrap();
    assert_eq!(made.table.column(0).as_primitive::<Int64Type>().values(), &[2, 4]);
    let holes: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), Some(2), None]));
    let table = RecordBatch::try_from_iter_with_nullable([("x", holes, true)]).unwrap();
    assert_eq!(run(&batch, &RunOptions::new(), &table).unwrap_err().to_string(), "input `x` is missing in row 2");
    let none: ArrayRef = Arc::new(NullArray::new(3));
    let table = RecordBatch::try_from_iter_with_nullable([("x", none, true)]).unwrap();
    let optional = Model::parse("input x: i64?; x ?? 7").unwrap().batch(&Options::default()).unwrap();
    let made = run(&optional, &RunOptions::new(), &table).unwrap();
    assert_eq!(made.table.column(0).as_primitive::<Int64Type>().values(), &[7, 7, 7]);
}

#[test]
fn masks_are_truth_values() {
    let flags: ArrayRef = Arc::new(BooleanArray::from(vec![Some(true), None, Some(false), Some(true)]));
    let table = RecordBatch::try_from_iter_with_nullable([("m", flags, true)]).unwrap();
    let model = Model::parse("input m: unit?; output yes = m; output no = not m").unwrap();
    let batch = model.batch(&Options::default()).unwrap();
    let made = run(&batch, &RunOptions::new(), &table).unwrap().table;
    let bits = |at: usize| made.column(at).as_boolean().iter().collect::<Vec<_>>();
    assert_eq!(bits(0), [true, false, false, true].map(Some));
    assert_eq!(bits(1), [false, true, true, false].map(Some));
}

/// Compares `where` with Arrow's kernel for selection by a condition, on slices of random arrays with and without
/// nulls.
#[test]
fn nulls_are_those_of_arrow() {
    let source = "input c: bool?; input x: f64?; input y: f64?; output z = where(c == true, x, y)";
    let model = Model::parse(source).unwrap();
    let batches = RowPlayer::ALL.map(|player| model.batch(&Options::default().row_player(player)).unwrap());
    let mut random = fastrand::Rng::with_seed(12);
    for round in 0..1000 {
        let rows = random.usize(..300);
        let share = random.u8(..4);
        let mut numbers =
            || -> Float64Array { (0..rows).map(|_| (random.u8(..4) >= share).then(|| random.f64())).collect() };
        let (x, y) = (numbers(), numbers());
        let c: BooleanArray = (0..rows).map(|_| (random.u8(..4) > 0).then(|| random.bool())).collect();
        let start = random.usize(..=rows);
        let len = random.usize(..=rows - start);
        let columns = [("c", Arc::new(c) as ArrayRef), ("x", Arc::new(x)), ("y", Arc::new(y))];
        let table = RecordBatch::try_from_iter_with_nullable(columns.map(|(name, array)| (name, array, true)));
        let table = table.unwrap().slice(start, len);
        let condition = table.column(0).as_boolean();
        let expected = arrow_select::zip::zip(condition, table.column(1), table.column(2)).unwrap();
        // Where the condition is null, Arrow selects the second operand, as `where` does.
        let expected = expected.as_primitive::<Float64Type>();
        for batch in &batches {
            let Ok(made) = run(batch, &RunOptions::new(), &table) else { continue };
            assert_eq!(made.table.column(0).as_primitive::<Float64Type>(), expected, "round {round}");
        }
    }
}

#[test]
fn streams_are_evaluated_table_by_table() {
    let table = |from: i32| {
        let column: ArrayRef = Arc::new(Int32Array::from_iter_values(from..from + 5));
        RecordBatch::try_from_iter([("n", column)]).unwrap()
    };
    let schema = table(0).schema();
    let reader = RecordBatchIterator::new([table(0), table(10), table(20)].map(Ok), schema);
    let batch = Model::parse("input n: i32; output m = n * n").unwrap().batch(&Options::default()).unwrap();
    let stream = evaluated(&batch, reader).unwrap();
    assert_eq!(*stream.schema(), Schema::new(vec![Field::new("m", DataType::Int32, false)]));
    let squares: Vec<i32> =
        stream.flat_map(|table| table.unwrap().column(0).as_primitive::<Int32Type>().values().to_vec()).collect();
    assert_eq!(squares, [0..5, 10..15, 20..25].into_iter().flatten().map(|n| n * n).collect::<Vec<i32>>());
}

#[test]
fn keys_may_be_of_any_width_and_null_twice() {
    let values: ArrayRef = Arc::new(StringArray::from(vec![Some("a"), None, Some("c")]));
    let keys = UInt16Array::from(vec![Some(2), None, Some(1), Some(0)]);
    let dictionary: ArrayRef = Arc::new(DictionaryArray::<UInt16Type>::try_new(keys, values).unwrap());
    let back = identity(&dictionary, None).unwrap();
    assert_eq!(shown(&back), [Some("\"c\"".to_owned()), None, None, Some("\"a\"".to_owned())]);
}

#[test]
fn what_depends_on_a_dictionary_alone_keeps_its_keys() {
    let values: ArrayRef =
        Arc::new(StringArray::from(vec![Some("Zug"), None, Some("A text longer than a view"), Some("Not used")]));
    let keys: Int8Array = (0..1100).map(|row| if row % 11 == 5 { None } else { Some([0, 2, 1, 2][row % 4]) }).collect();
    let dictionary: ArrayRef = Arc::new(DictionaryArray::<Int8Type>::try_new(keys.clone(), values).unwrap());
    let table = RecordBatch::try_from_iter([("s", dictionary)]).unwrap();
    let model =
        Model::parse("input s: text?; output t = strings.lower(s); output u = strings.upper(s ?? 'none')").unwrap();
    let batch = model.batch(&Options::default()).unwrap();
    let of = |keys: DataType, values: DataType| DataType::Dictionary(Box::new(keys), Box::new(values));
    let expected = |row: usize| match (row % 11, row % 4) {
        (5, _) | (_, 2) => None,
        (_, 0) => Some("zug"),
        _ => Some("a text longer than a view"),
    };
    for (wanted, is_kept) in [
        (of(DataType::Int8, DataType::Utf8View), true),
        (of(DataType::Int8, DataType::Utf8), true),
        (of(DataType::UInt32, DataType::LargeUtf8), false),
    ] {
        let fields = ["t", "u"].map(|name| Field::new(name, wanted.clone(), true));
        let schema = Schema::new(fields.to_vec());
        let made = run_as(&batch, &RunOptions::new(), &table, Some(&schema)).unwrap().table;
        for (column, is_first) in [(made.column(0), true), (made.column(1), false)] {
            assert_eq!(column.data_type(), &wanted);
            let (keys_made, values): (Vec<Option<usize>>, &ArrayRef) = match column.as_dictionary_opt::<Int8Type>() {
                Some(made) => (made.keys().iter().map(|key| key.map(|key| key as usize)).collect(), made.values()),
                None => {
                    let made = column.as_dictionary::<UInt32Type>();
                    (made.keys().iter().map(|key| key.map(|key| key as usize)).collect(), made.values())
                }
            };
            let text = |at: usize| match values.data_type() {
                _ if values.is_null(at) => None,
                DataType::Utf8 => Some(values.as_string::<i32>().value(at).to_owned()),
                DataType::LargeUtf8 => Some(values.as_string::<i64>().value(at).to_owned()),
                _ => Some(values.as_string_view().value(at).to_owned()),
            };
            for (row, key) in keys_made.iter().enumerate() {
                let expected = match expected(row) {
                    expected if is_first => expected.map(str::to_owned),
                    expected => Some(expected.unwrap_or("none").to_uppercase()),
                };
                assert_eq!(key.and_then(text), expected, "row {row} as {wanted}");
            }
            if is_kept && is_first {
                let same = |row: usize| expected(row).is_none() || keys_made[row] == Some(keys.value(row) as usize);
                assert!((0..1100).all(same), "{keys_made:?}");
                assert!(values.is_null(3), "what no row has is not computed");
            }
        }
        // Without a schema texts are texts.
        let made = run(&batch, &RunOptions::new(), &table).unwrap().table;
        assert_eq!(made.column(0).data_type(), &DataType::Utf8);
        let texts: Vec<_> = made.column(0).as_string::<i32>().iter().collect();
        assert!((0..1100).all(|row| texts[row] == expected(row)));
    }
}

/// Arrow arrays that take no memory, such as nulls or empty lists, may have any length. If their conversion would need
/// more memory than allowed, it is an error, in both directions.
#[test]
fn lengths_without_memory_are_refused() {
    let batch = |text: &str| Model::parse(text).unwrap().batch(&Options::default()).unwrap();
    let item = || Arc::new(Field::new_list_field(DataType::Float64, true));
    let none: ArrayRef = Arc::new(Float64Array::from(Vec::<f64>::new()));
    for rows in [usize::MAX, 1 << 61, 1 << 50, 1 << 40] {
        // A table without columns: each row has the default.
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let table = RecordBatch::try_new_with_options(Arc::new(Schema::empty()), vec![], &options).unwrap();
        let error = run(&batch("input x: f64? = 1.5; x * 2.0"), &RunOptions::new(), &table).unwrap_err().to_string();
        assert!(error.contains("array_bytes"), "{error}");
        // Nulls, and lists without elements.
        let nulls: ArrayRef = Arc::new(NullArray::new(rows));
        let table = RecordBatch::try_from_iter_with_nullable([("x", nulls, true)]).unwrap();
        let error = run(&batch("input x: f64?; x ?? 2.0"), &RunOptions::new(), &table).unwrap_err().to_string();
        assert!(error.contains("array_bytes"), "{error}");
        let empty = FixedSizeListArray::try_new_with_length(item(), 0, none.clone(), None, rows).unwrap();
        let table = RecordBatch::try_from_iter([("x", Arc::new(empty) as ArrayRef)]).unwrap();
        let error = run(&batch("input x: [f64?]; math.sum(x)"), &RunOptions::new(), &table).unwrap_err().to_string();
        assert!(error.contains("array_bytes"), "{error}");
    }
    // Units of a model take no memory, truth values of Arrow do.
    for len in [usize::MAX, 1 << 61, 1 << 50] {
        let units =
            cembra::Array::from_parts(cembra::Scalar::Unit, len, cembra::values::ArrayData::Units, None).unwrap();
        let error = from_model(units).unwrap_err().to_string();
        assert!(error.contains("the limit `array_bytes`"), "{error}");
    }
}

/// `from_model` does not check the texts of model arrays. So no model array may have texts that are not UTF-8, or views
/// that Arrow would reject.
#[test]
fn texts_of_models_are_texts_of_arrow() {
    use cembra::columns::StringViews;
    use cembra::values::{ArrayBuilder, ArrayData};
    use cembra::{Array, Scalar};
    for broken in [&b"\xFF\xFE"[..], b"a long text that ends within a letter \xF0\x9F\x92"] {
        let mut strings = StringViews::default();
        assert!(strings.push(broken));
        let data = ArrayData::Strings(strings);
        assert!(Array::from_parts(Scalar::Text, 1, data.clone(), None).is_none());
        let bytes = from_model(Array::from_parts(Scalar::Bytes, 1, data, None).unwrap()).unwrap();
        assert_eq!(bytes.as_binary::<i32>().value(0), broken);
        let mut texts = ArrayBuilder::new(Scalar::Text, 2);
        texts.push_bytes(Some(broken));
        texts.push_text(Some("é is a letter, and this a long text"));
        let texts = from_model(texts.finish()).unwrap();
        let found: Vec<_> = texts.as_string::<i32>().iter().collect();
        assert_eq!(found, [None, Some("é is a letter, and this a long text")]);
        assert_eq!(to_model(texts).unwrap().text(1), Some("é is a letter, and this a long text"));
    }
    // Views that Arrow's check rejects are not accepted as strings of models: a view whose prefix differs from its
    // text, and a short view that is not padded with zeros.
    let buffers = || vec![b"thirteen byte".to_vec()];
    let view = |len: u32, begins: &[u8; 4]| u128::from(len) | u128::from(u32::from_le_bytes(*begins)) << 32;
    for (view, is_right) in [
        (view(13, b"thir"), true),
        (view(13, b"THIR"), false),
        (view(14, b"thir"), false),
        (view(2, b"ab\0\0"), true),
        (view(2, b"abc\0"), false),
        (view(u32::MAX, b"thir"), false),
    ] {
        let strings = StringViews::from_parts(vec![view], buffers());
        assert_eq!(strings.is_some(), is_right, "{view:x}");
        if let Some(strings) = strings {
            let array = Array::from_parts(Scalar::Text, 1, ArrayData::Strings(strings), None).unwrap();
            from_model(array).unwrap().to_data().validate_full().expect("an array as Arrow wants it");
        }
    }
}

#[test]
fn a_column_of_an_input_with_a_default_may_be_absent() {
    let model = Model::parse("input x: i32?, y: i32? = 7; x * y").unwrap();
    let batch = model.batch(&Options::default()).unwrap();
    let made = |table: RecordBatch| run(&batch, &RunOptions::new(), &table).unwrap().table.column(0).clone();
    let x: ArrayRef = Arc::new(Int32Array::from(vec![Some(2), None, Some(3)]));
    let y: ArrayRef = Arc::new(Int32Array::from(vec![None, Some(1), Some(5)]));
    let without = RecordBatch::try_from_iter([("x", x.clone())]).unwrap();
    assert_eq!(made(without).as_primitive::<Int32Type>(), &Int32Array::from(vec![Some(14), None, Some(21)]));
    let with = RecordBatch::try_from_iter([("x", x), ("y", y.clone())]).unwrap();
    assert_eq!(made(with).as_primitive::<Int32Type>(), &Int32Array::from(vec![Some(14), None, Some(15)]));
    let neither = RecordBatch::try_from_iter([("y", y)]).unwrap();
    assert!(matches!(run(&batch, &RunOptions::new(), &neither), Err(Error::NoColumn { name }) if name == "x"));
}

#[test]
fn lists_that_are_null_are_empty_by_default() {
    let model = Model::parse("input k: f64, a: [f64] = []; k + sum(a)").unwrap();
    let batch = model.batch(&Options::default()).unwrap();
    let made = |table: RecordBatch| run(&batch, &RunOptions::new(), &table).unwrap().table.column(0).clone();
    let k: ArrayRef = Arc::new(Float64Array::from(vec![1.0, 2.0, 3.0]));
    let lists = [Some(vec![Some(10.0), Some(20.0)]), None, Some(vec![])];
    let short: ArrayRef = Arc::new(ListArray::from_iter_primitive::<Float64Type, _, _>(lists.clone()));
    let large: ArrayRef = Arc::new(LargeListArray::from_iter_primitive::<Float64Type, _, _>(lists));
    for a in [short, large] {
        let table = RecordBatch::try_from_iter([("k", k.clone()), ("a", a)]).unwrap();
        assert_eq!(made(table).as_primitive::<Float64Type>().values(), &[31.0, 2.0, 3.0]);
    }
    // A table need not have the column, whatever the list is of.
    let without = RecordBatch::try_from_iter([("k", k.clone())]).unwrap();
    assert_eq!(made(without.clone()).as_primitive::<Float64Type>().values(), &[1.0, 2.0, 3.0]);
    let text = "input k: f64, rates: dict[text, f64] = {}, items: [{v: f64}] = []; k + lookup(\"a\", rates, 0.5) + sum(items.v)";
    for backend in [Backend::Native, Backend::Interpreter] {
        let batch = Model::parse(text).unwrap().batch(&Options::default().backend(backend)).unwrap();
        let made = run(&batch, &RunOptions::new(), &without).unwrap().table.column(0).clone();
        assert_eq!(made.as_primitive::<Float64Type>().values(), &[1.5, 2.5, 3.5]);
    }
    let strict = Model::parse("input k: f64, a: [f64]; k + sum(a)").unwrap().batch(&Options::default()).unwrap();
    assert!(matches!(run(&strict, &RunOptions::new(), &without), Err(Error::NoColumn { name }) if name == "a"));
}
