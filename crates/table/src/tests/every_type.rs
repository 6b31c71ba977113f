//! Every Arrow type is written in every format: the result must be the value, or an error that names the column, so no cell is lost silently. When
//! Arrow gets a new type, this module does not compile until the type is added to it.

use super::*;
use arrow_array::types::{
    Int8Type, Int32Type, Int64Type, TimestampMicrosecondType, TimestampNanosecondType, TimestampSecondType,
};
use arrow_array::{
    ArrayRef, BinaryArray, BinaryViewArray, BooleanArray, Date32Array, Date64Array, Decimal32Array, Decimal64Array,
    Decimal256Array, DictionaryArray, DurationMicrosecondArray, DurationNanosecondArray, DurationSecondArray,
    FixedSizeBinaryArray, FixedSizeListArray, Float32Array, Float64Array, Int16Array, Int32Array, Int64Array,
    IntervalDayTimeArray, IntervalYearMonthArray, LargeBinaryArray, LargeListArray, LargeListViewArray,
    LargeStringArray, ListArray, ListViewArray, PrimitiveArray, RecordBatch, RunArray, StringArray, StringViewArray,
    Time32MillisecondArray, Time32SecondArray, Time64MicrosecondArray, UInt8Array, UInt32Array, UInt64Array,
    UnionArray,
};
use arrow_buffer::{IntervalDayTime, ScalarBuffer, i256};
use arrow_schema::{DataType, Field, Schema, TimeUnit, UnionFields};
use std::collections::BTreeSet;
use std::sync::Arc;

/// A column with its cell in the first row as text and as JSON; the second row is missing.
type Column = (&'static str, ArrayRef, &'static str, &'static str);

/// Columns of every type that `foreign` does not have.
fn more() -> Vec<Column> {
    fn moments<T: arrow_array::types::ArrowTimestampType>(count: i64, zone: Option<&str>) -> ArrayRef {
        Arc::new(PrimitiveArray::<T>::from_iter([Some(count), None]).with_timezone_opt(zone))
    }
    let lists = |of: [Option<i32>; 2]| [Some(of.to_vec()), None];
    let fields: UnionFields =
        UnionFields::from_fields([Field::new("n", DataType::Int32, true), Field::new("t", DataType::Utf8, true)]);
    let sparse = {
        let parts: Vec<ArrayRef> =
            vec![Arc::new(Int32Array::from(vec![Some(7), None])), Arc::new(StringArray::from(vec![Some("x"), None]))];
        UnionArray::try_new(fields.clone(), ScalarBuffer::from(vec![1_i8, 0]), None, parts).expect("a union")
    };
    let dense = {
        let parts: Vec<ArrayRef> =
            vec![Arc::new(Int32Array::from(vec![None])), Arc::new(StringArray::from(vec![Some("x")]))];
        let (kinds, places) = (ScalarBuffer::from(vec![1_i8, 0]), ScalarBuffer::from(vec![0_i32, 0]));
        UnionArray::try_new(fields, kinds, Some(places), parts).expect("a union")
    };
    let ends = Int32Array::from(vec![1, 2]);
    let runs = RunArray::<Int32Type>::try_new(&ends, &Int64Array::from(vec![Some(5), None])).expect("runs");
    let views = ListArray::from_iter_primitive::<Int32Type, _, _>(lists([Some(1), None]));
    let large_views = LargeListArray::from_iter_primitive::<Int32Type, _, _>(lists([Some(1), None]));
    let bytes = || [Some(b"\xff\x00".as_slice()), None];
    let time = IntervalDayTime::new(2, -1_500);
    let dates: DictionaryArray<Int8Type> = {
        let keys = PrimitiveArray::<Int8Type>::from(vec![Some(0), None]);
        DictionaryArray::try_new(keys, Arc::new(Date64Array::from(vec![86_400_000]))).expect("a dictionary")
    };
    let words = |values: ArrayRef| -> ArrayRef {
        let keys = PrimitiveArray::<Int8Type>::from(vec![Some(0), None]);
        Arc::new(DictionaryArray::try_new(keys, values).expect("a dictionary"))
    };
    let fixed = FixedSizeBinaryArray::try_from_iter([b"\xff\x00".as_slice()].into_iter()).expect("bytes");
    vec![
        ("words", words(Arc::new(StringViewArray::from(vec!["x"]))), "x", "\"x\""),
        ("codes", words(Arc::new(fixed)), "/wA=", "\"/wA=\""),
        ("spans", words(Arc::new(DurationMicrosecondArray::from(vec![1_500_000]))), "PT1.5S", "\"PT1.5S\""),
        ("flag", Arc::new(BooleanArray::from(vec![Some(false), None])), "false", "false"),
        ("i16", Arc::new(Int16Array::from(vec![Some(-5), None])), "-5", "-5"),
        ("i32", Arc::new(Int32Array::from(vec![Some(i32::MIN), None])), "-2147483648", "-2147483648"),
        ("i64", Arc::new(Int64Array::from(vec![Some(i64::MIN), None])), "-9223372036854775808", "-9223372036854775808"),
        ("u8", Arc::new(UInt8Array::from(vec![Some(255), None])), "255", "255"),
        ("u32", Arc::new(UInt32Array::from(vec![Some(u32::MAX), None])), "4294967295", "4294967295"),
        (
            "u64",
            Arc::new(UInt64Array::from(vec![Some(u64::MAX), None])),
            "18446744073709551615",
            "18446744073709551615",
        ),
        ("f32", Arc::new(Float32Array::from(vec![Some(0.1), None])), "0.1", "0.1"),
        ("f64", Arc::new(Float64Array::from(vec![Some(f64::NEG_INFINITY), None])), "-inf", "\"-Infinity\""),
        ("second", moments::<TimestampSecondType>(-1, None), "1969-12-31T23:59:59", "\"1969-12-31T23:59:59\""),
        (
            "second_gmt",
            moments::<TimestampSecondType>(0, Some("GMT")),
            "1970-01-01T00:00:00Z",
            "\"1970-01-01T00:00:00Z\"",
        ),
        (
            "micro",
            moments::<TimestampMicrosecondType>(1, Some("UTC")),
            "1970-01-01T00:00:00.000001Z",
            "\"1970-01-01T00:00:00.000001Z\"",
        ),
        (
            "nano",
            moments::<TimestampNanosecondType>(1, Some("Asia/Tokyo")),
            "1970-01-01T00:00:00.000000001Z",
            "\"1970-01-01T00:00:00.000000001Z\"",
        ),
        (
            "local",
            moments::<TimestampNanosecondType>(-1, None),
            "1969-12-31T23:59:59.999999999",
            "\"1969-12-31T23:59:59.999999999\"",
        ),
        ("day", Arc::new(Date32Array::from(vec![Some(-719_529), None])), "-0001-12-31", "\"-0001-12-31\""),
        (
            "micro_far",
            moments::<TimestampMicrosecondType>(-62_198_755_200_000_000, Some("UTC")),
            "-0001-01-01T00:00:00Z",
            "\"-0001-01-01T00:00:00Z\"",
        ),
        (
            "micro_half",
            moments::<TimestampMicrosecondType>(500_000, Some("UTC")),
            "1970-01-01T00:00:00.5Z",
            "\"1970-01-01T00:00:00.5Z\"",
        ),
        ("day_far", Arc::new(Date32Array::from(vec![Some(2_932_897), None])), "+10000-01-01", "\"+10000-01-01\""),
        ("days", Arc::new(dates), "1970-01-02", "\"1970-01-02\""),
        ("clock", Arc::new(Time32SecondArray::from(vec![Some(86_399), None])), "23:59:59", "\"23:59:59\""),
        ("clock_ms", Arc::new(Time32MillisecondArray::from(vec![Some(1), None])), "00:00:00.001", "\"00:00:00.001\""),
        (
            "clock_us",
            Arc::new(Time64MicrosecondArray::from(vec![Some(1), None])),
            "00:00:00.000001",
            "\"00:00:00.000001\"",
        ),
        (
            "span_s",
            Arc::new(DurationSecondArray::from(vec![Some(i64::MIN), None])),
            "PT-9223372036854775808S",
            "\"PT-9223372036854775808S\"",
        ),
        ("span_us", Arc::new(DurationMicrosecondArray::from(vec![Some(0), None])), "PT0S", "\"PT0S\""),
        (
            "span_ns",
            Arc::new(DurationNanosecondArray::from(vec![Some(1), None])),
            "PT0.000000001S",
            "\"PT0.000000001S\"",
        ),
        ("months", Arc::new(IntervalYearMonthArray::from(vec![Some(-13), None])), "P-1Y-1M", "\"P-1Y-1M\""),
        ("day_time", Arc::new(IntervalDayTimeArray::from(vec![Some(time), None])), "P2DT-1.5S", "\"P2DT-1.5S\""),
        ("binary", Arc::new(BinaryArray::from_iter(bytes())), "/wA=", "\"/wA=\""),
        ("large_binary", Arc::new(LargeBinaryArray::from_iter(bytes())), "/wA=", "\"/wA=\""),
        ("binary_view", Arc::new(BinaryViewArray::from_iter(bytes())), "/wA=", "\"/wA=\""),
        (
            "fixed_binary",
            Arc::new(FixedSizeBinaryArray::try_from_sparse_iter_with_size(bytes().into_iter(), 2).expect("a width")),
            "/wA=",
            "\"/wA=\"",
        ),
        ("text", Arc::new(StringArray::from(vec![Some("é"), None])), "é", "\"é\""),
        ("large_text", Arc::new(LargeStringArray::from(vec![Some("a\"b"), None])), "a\"b", "\"a\\\"b\""),
        (
            "text_view",
            Arc::new(StringViewArray::from(vec![Some("a text of more than twelve bytes"), None])),
            "a text of more than twelve bytes",
            "\"a text of more than twelve bytes\"",
        ),
        ("list_view", Arc::new(ListViewArray::from(views)), "[1,null]", "[1,null]"),
        ("large_list_view", Arc::new(LargeListViewArray::from(large_views)), "[1,null]", "[1,null]"),
        (
            "large_list",
            Arc::new(LargeListArray::from_iter_primitive::<Int64Type, _, _>([Some([Some(1), None]), None])),
            "[1,null]",
            "[1,null]",
        ),
        (
            "fixed_list",
            Arc::new(FixedSizeListArray::from_iter_primitive::<Int32Type, _, _>(lists([Some(1), None]), 2)),
            "[1,null]",
            "[1,null]",
        ),
        ("sparse", Arc::new(sparse), "x", "\"x\""),
        ("dense", Arc::new(dense), "x", "\"x\""),
        ("runs", Arc::new(runs), "5", "5"),
        (
            "decimal32",
            Arc::new(Decimal32Array::from(vec![Some(-5), None]).with_precision_and_scale(9, 2).expect("a scale")),
            "-0.05",
            "-0.05",
        ),
        (
            "decimal64",
            Arc::new(Decimal64Array::from(vec![Some(12_345), None]).with_precision_and_scale(18, 0).expect("a scale")),
            "12345",
            "12345",
        ),
        (
            "decimal256",
            Arc::new(
                Decimal256Array::from(vec![Some(i256::from_i128(1)), None])
                    .with_precision_and_scale(76, 3)
                    .expect("a scale"),
            ),
            "0.001",
            "0.001",
        ),
    ]
}

/// The name of the Arrow type `of`, without its parameters.
pub(super) fn kind(of: &DataType) -> &'static str {
    match of {
        DataType::Null => "null",
        DataType::Boolean => "bool",
        DataType::Int8 => "int8",
        DataType::Int16 => "int16",
        DataType::Int32 => "int32",
        DataType::Int64 => "int64",
        DataType::UInt8 => "uint8",
        DataType::UInt16 => "uint16",
        DataType::UInt32 => "uint32",
        DataType::UInt64 => "uint64",
        DataType::Float16 => "float16",
        DataType::Float32 => "float32",
        DataType::Float64 => "float64",
        DataType::Timestamp(TimeUnit::Second, _) => "timestamp[s]",
        DataType::Timestamp(TimeUnit::Millisecond, _) => "timestamp[ms]",
        DataType::Timestamp(TimeUnit::Microsecond, _) => "timestamp[us]",
        DataType::Timestamp(TimeUnit::Nanosecond, _) => "timestamp[ns]",
        DataType::Date32 => "date32",
        DataType::Date64 => "date64",
        DataType::Time32(TimeUnit::Second) => "time32[s]",
        DataType::Time32(_) => "time32[ms]",
        DataType::Time64(TimeUnit::Microsecond) => "time64[us]",
        DataType::Time64(_) => "time64[ns]",
        DataType::Duration(TimeUnit::Second) => "duration[s]",
        DataType::Duration(TimeUnit::Millisecond) => "duration[ms]",
        DataType::Duration(TimeUnit::Microsecond) => "duration[us]",
        DataType::Duration(TimeUnit::Nanosecond) => "duration[ns]",
        DataType::Interval(arrow_schema::IntervalUnit::YearMonth) => "interval[months]",
        DataType::Interval(arrow_schema::IntervalUnit::DayTime) => "interval[days]",
        DataType::Interval(arrow_schema::IntervalUnit::MonthDayNano) => "interval[all]",
        DataType::Binary => "binary",
        DataType::FixedSizeBinary(_) => "fixed binary",
        DataType::LargeBinary => "large binary",
        DataType::BinaryView => "binary view",
        DataType::Utf8 => "utf8",
        DataType::LargeUtf8 => "large utf8",
        DataType::Utf8View => "utf8 view",
        DataType::List(_) => "list",
        DataType::ListView(_) => "list view",
        DataType::FixedSizeList(..) => "fixed list",
        DataType::LargeList(_) => "large list",
        DataType::LargeListView(_) => "large list view",
        DataType::Struct(_) => "struct",
        DataType::Union(_, arrow_schema::UnionMode::Sparse) => "sparse union",
        DataType::Union(_, arrow_schema::UnionMode::Dense) => "dense union",
        DataType::Dictionary(..) => "dictionary",
        DataType::Decimal32(..) => "decimal32",
        DataType::Decimal64(..) => "decimal64",
        DataType::Decimal128(..) => "decimal128",
        DataType::Decimal256(..) => "decimal256",
        DataType::Map(..) => "map",
        DataType::RunEndEncoded(..) => "runs",
    }
}

/// The number of kinds of types.
const KINDS: usize = 52;

pub(super) fn all() -> Vec<Column> {
    foreign::columns().into_iter().chain(more()).collect()
}

/// Writes the column `array` to a file in `format`, as a column that is copied to the results, and reads it back.
pub(super) fn carried(name: &str, array: &ArrayRef, format: Format) -> Result<ArrayRef, String> {
    let said = |error: crate::error::DataError| error.to_string();
    // A second column shows whether rows keep their places.
    let behind: ArrayRef = Arc::new(Int64Array::from(vec![1, 2]));
    let fields = [Field::new(name, array.data_type().clone(), true), Field::new("behind", DataType::Int64, true)];
    let rows = RecordBatch::try_new(Arc::new(Schema::new(fields.to_vec())), vec![array.clone(), behind.clone()]);
    let rows = rows.expect("rows");
    let named = fields.map(|of| Named { name: of.name().clone(), form: Form::Foreign(of.data_type().clone()) });
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("rows");
    let write = WriteOptions { format, null: None, delimiter: None, decimal_comma: false, most_bytes: u64::MAX };
    let mut sink = sink::open(&write, Output::create(&path).expect("a file"), &named, &rows.schema()).map_err(said)?;
    sink.write(&rows).map_err(said)?;
    sink.finish().and_then(Output::commit).map_err(said)?;
    let read = Dataset::open(Input::file(&path).expect("a file"), &options(format, &[])).map_err(said)?;
    let mut table = read.bind(&Request { keep: Keep::All, ..Request::default() }).map_err(said)?;
    let batch = table.source.next().map_err(said)?.expect("rows").decode();
    assert!(batch.error.is_none(), "{name}");
    assert_eq!(batch.batch.rows.column(1), &behind, "{name}");
    Ok(batch.batch.rows.column(0).clone())
}

#[test]
fn every_type_is_shown_as_text_as_json_and_in_tables() {
    let columns = all();
    let kinds: BTreeSet<&str> = columns.iter().map(|(_, array, ..)| kind(array.data_type())).collect();
    assert_eq!(kinds.len(), KINDS, "{kinds:?}");
    // As in the command, the type of a column copied to the results is the type in the file.
    let carried = |format| {
        let columns = columns.iter().map(|(name, array, ..)| (*name, array.clone()));
        foreign::carried_as_text(columns.collect(), format)
    };
    let json: Vec<String> = columns.iter().map(|(name, _, _, json)| format!("\"{name}\":{json}")).collect();
    let missing: Vec<String> = columns.iter().map(|(name, ..)| format!("\"{name}\":null")).collect();
    let expected = format!("{{{}}}\n{{{}}}\n", json.join(","), missing.join(","));
    assert_eq!(carried(Format::JsonLines), expected);
    let csv = carried(Format::Csv);
    let mut reader = ::csv::Reader::from_reader(csv.as_bytes());
    let names: Vec<&str> = columns.iter().map(|(name, ..)| *name).collect();
    assert_eq!(reader.headers().expect("names").iter().collect::<Vec<_>>(), names);
    let mut cells = reader.records().map(|row| row.expect("a row"));
    let texts: Vec<&str> = columns.iter().map(|(_, _, text, _)| *text).collect();
    assert_eq!(cells.next().expect("a row").iter().collect::<Vec<_>>(), texts);
    assert!(cells.next().expect("a row").iter().all(str::is_empty));
    let shown = carried(Format::Table);
    let lost = texts.iter().find(|text| !shown.contains(**text));
    assert_eq!((lost, shown.matches("NA ").count()), (None, texts.len() + 1), "{shown}");
}

#[test]
fn every_type_is_kept_by_arrow() {
    for (name, array, ..) in all() {
        let read = carried(name, &array, Format::Arrow).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!((read.data_type(), &read), (array.data_type(), &array), "{name}");
    }
}

#[test]
fn every_type_is_kept_by_parquet_or_refused() {
    let mut found = Vec::new();
    for (name, array, text, _) in all() {
        match carried(name, &array, Format::Parquet) {
            Ok(read) if read.data_type() == array.data_type() => assert_eq!(&read, &array, "{name}"),
            Ok(read) => {
                // The same values in another layout.
                assert_eq!((crate::foreign::text(&read, 0).as_str(), read.is_null(1)), (text, true), "{name}");
                found.push(format!("{name}: {}", read.data_type()));
            }
            Err(error) => found.push(format!("{name}: {error}")),
        }
    }
    let hint = "; write Arrow, JSON or CSV instead of Parquet";
    let union = |mode: &str| format!("Parquet cannot hold Union({mode}, 0: (\"n\": Int32), 1: (\"t\": Utf8)){hint}");
    let expected = [
        format!("far: column `far`: {} seconds do not fit into milliseconds, which Parquet requires", i64::MAX),
        format!("interval: column `interval`: Parquet cannot hold Interval(MonthDayNano){hint}"),
        "struct: Struct(\"at\": Timestamp(ms, \"GMT\"), \"n\\\"\": Int8)".to_owned(),
        "words: Utf8View".to_owned(),
        "codes: BinaryView".to_owned(),
        "spans: Duration(µs)".to_owned(),
        "second: Timestamp(ms)".to_owned(),
        "second_gmt: Timestamp(ms, \"GMT\")".to_owned(),
        "days: Date64".to_owned(),
        "clock: Time32(ms)".to_owned(),
        format!("sparse: column `sparse`: {}", union("Sparse")),
        format!("dense: column `dense`: {}", union("Dense")),
        "runs: Int64".to_owned(),
    ];
    assert_eq!(found, expected);
}

#[test]
fn types_without_a_form_of_parquet_are_refused_by_column_and_type() {
    let empty: ArrayRef = Arc::new(arrow_array::StructArray::new_empty_fields(2, None));
    let lists = ListArray::from_iter_primitive::<Int64Type, _, _>([Some(vec![Some(1)]), None]);
    let dictionary: ArrayRef = Arc::new(DictionaryArray::new(Int32Array::from(vec![0, 1]), Arc::new(lists)));
    let inside: ArrayRef = Arc::new(arrow_array::StructArray::from(vec![(
        Arc::new(Field::new("e", empty.data_type().clone(), true)),
        empty.clone(),
    )]));
    for array in [empty, dictionary, inside] {
        let error = carried("x", &array, Format::Parquet).expect_err("no form");
        let said = format!("column `x`: Parquet cannot hold {}", array.data_type());
        assert_eq!(error, format!("{said}; write Arrow, JSON or CSV instead of Parquet"));
    }
}

/// A date in milliseconds that is not a whole day cannot be a Parquet date; others are read as dates by every reader.
#[test]
fn days_that_are_counted_in_milliseconds_are_days_of_parquet() {
    let within: ArrayRef = Arc::new(Date64Array::from(vec![Some(86_400_001), None]));
    let error = carried("x", &within, Format::Parquet).expect_err("no day");
    assert_eq!(error, "column `x`: 86400001 milliseconds are not a whole number of days, which Parquet requires");
    assert_eq!(&carried("x", &within, Format::Arrow).expect("a moment"), &within);
    let day: ArrayRef = Arc::new(Date64Array::from(vec![Some(-86_400_000), None]));
    let lists: ArrayRef = Arc::new(FixedSizeListArray::new(
        Arc::new(Field::new_list_field(DataType::Date64, true)),
        1,
        day.clone(),
        None,
    ));
    assert_eq!(&carried("x", &lists, Format::Parquet).expect("days"), &lists);
    let far: ArrayRef = Arc::new(arrow_array::TimestampSecondArray::from(vec![Some(i64::MAX), None]));
    let error = carried("x", &far, Format::Parquet).expect_err("too far");
    assert_eq!(error, "column `x`: 9223372036854775807 seconds do not fit into milliseconds, which Parquet requires");
}

/// Computed texts are contiguous in files; views copied to the results stay views.
#[test]
fn texts_of_files_are_plain_unless_they_were_views() {
    let text = "a text of more than twelve bytes";
    let views = |texts: Vec<Option<&str>>| -> ArrayRef { Arc::new(StringViewArray::from(texts)) };
    let bytes: ArrayRef = Arc::new(BinaryViewArray::from_iter([Some(text.as_bytes()), None]));
    let (tuple, array) = ("{a: text?, b: [text?]}", "[text?]");
    let qtypes = ["text?", "bytes?", array, tuple].map(|of| cembra::values::parse_type(of).expect("a type"));
    let ends = || arrow_buffer::OffsetBuffer::new(vec![0_i64, 2, 2].into());
    let item = |of: DataType| Arc::new(Field::new_list_field(of, true));
    let list =
        |of: ArrayRef| -> ArrayRef { Arc::new(LargeListArray::new(item(of.data_type().clone()), ends(), of, None)) };
    let both = |text: ArrayRef, list: ArrayRef| -> ArrayRef {
        let parts = [("a", text), ("b", list)];
        let parts = parts.map(|(name, part)| (Arc::new(Field::new(name, part.data_type().clone(), true)), part));
        Arc::new(arrow_array::StructArray::from(parts.to_vec()))
    };
    let texts = vec![Some(text), None];
    let made = [
        views(texts.clone()),
        bytes.clone(),
        list(views(texts.clone())),
        both(views(texts.clone()), list(views(texts.clone()))),
        views(texts.clone()),
    ];
    let plain: ArrayRef = Arc::new(StringArray::from(texts.clone()));
    let expected = [
        plain.clone(),
        Arc::new(BinaryArray::from_iter([Some(text.as_bytes()), None])) as ArrayRef,
        list(plain.clone()),
        both(plain.clone(), list(plain.clone())),
        views(texts),
    ];
    let mut named: Vec<Named> =
        qtypes.into_iter().enumerate().map(|(at, of)| Named { name: at.to_string(), form: Form::Values(of) }).collect();
    named.push(Named { name: "carried".to_owned(), form: Form::Foreign(DataType::Utf8View) });
    let fields: Vec<Field> =
        named.iter().zip(&made).map(|(of, array)| Field::new(&of.name, array.data_type().clone(), true)).collect();
    let rows = RecordBatch::try_new(Arc::new(Schema::new(fields)), made.to_vec()).expect("rows");
    for format in [Format::Arrow, Format::Parquet] {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("rows");
        let write = WriteOptions { format, null: None, delimiter: None, decimal_comma: false, most_bytes: u64::MAX };
        let mut sink =
            sink::open(&write, Output::create(&path).expect("a file"), &named, &rows.schema()).expect("a sink");
        // A slice of the rows has a slice of the texts.
        sink.write(&rows.slice(1, 1)).and_then(|()| sink.write(&rows)).expect("rows");
        sink.finish().and_then(Output::commit).expect("an end");
        let read = Dataset::open(Input::file(&path).expect("a file"), &options(format, &[])).expect("a table");
        let mut table = read.bind(&Request { keep: Keep::All, ..Request::default() }).expect("columns");
        let mut batches = Vec::new();
        while let Some(piece) = table.source.next().expect("rows") {
            batches.push(piece.decode().batch.rows);
        }
        let all = arrow_select::concat::concat_batches(&batches[0].schema(), &batches).expect("one");
        assert_eq!(all.num_rows(), 3);
        for (read, expected) in all.columns().iter().zip(&expected) {
            assert_eq!((read.data_type(), &read.slice(1, 2)), (expected.data_type(), expected), "{format:?}");
        }
    }
}
