//! Columns that are copied to the results although models do not have their types: no cell is lost, whatever its type and the format of the file.

use super::*;
use crate::casts::converted;
use arrow_array::types::Int32Type;
use arrow_array::{
    ArrayRef, Date64Array, Decimal128Array, DictionaryArray, DurationMillisecondArray, Float16Array, Int8Array,
    Int64Array, IntervalMonthDayNanoArray, ListArray, MapArray, RecordBatch, StringArray, StructArray,
    Time64NanosecondArray, TimestampMillisecondArray, TimestampSecondArray, UInt16Array, new_null_array,
};
use arrow_schema::{DataType, Field, Schema};
use std::sync::Arc;

/// A column of each Arrow type that models do not have, with its name, and the value of its first row as text and as JSON. The second row
/// is missing.
pub(super) fn columns() -> Vec<(&'static str, ArrayRef, &'static str, &'static str)> {
    let zoned = |zone: &str| -> ArrayRef {
        Arc::new(TimestampMillisecondArray::from(vec![Some(1_700_000_000_123), None]).with_timezone(zone))
    };
    let lists = ListArray::from_iter_primitive::<Int32Type, _, _>([Some(vec![Some(1), None, Some(3)]), None]);
    let inner: ArrayRef = Arc::new(TimestampSecondArray::from(vec![Some(0), None]).with_timezone("GMT"));
    let there = arrow_buffer::NullBuffer::from(vec![true, false]);
    let fields = vec![Field::new("at", inner.data_type().clone(), true), Field::new("n\"", DataType::Int8, true)];
    let structs = StructArray::new(fields.into(), vec![inner, Arc::new(Int8Array::from(vec![7, 0]))], Some(there));
    let map = {
        let keys: ArrayRef = Arc::new(StringArray::from(vec!["a", "b"]));
        let values: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), None]));
        let fields = vec![Field::new("keys", DataType::Utf8, false), Field::new("values", DataType::Int64, true)];
        let entries = StructArray::new(fields.into(), vec![keys, values], None);
        let field = Arc::new(Field::new("entries", entries.data_type().clone(), false));
        let ends = arrow_buffer::OffsetBuffer::new(vec![0, 2, 2].into());
        MapArray::new(field, ends, entries, Some(vec![true, false].into()), false)
    };
    let decimals = Decimal128Array::from(vec![Some(-123_456_789_012_345_678_901_i128), None]);
    let decimals = decimals.with_precision_and_scale(30, 4).expect("a scale");
    let interval = arrow_buffer::IntervalMonthDayNano::new(14, -3, 1_500_000_000);
    let dictionary: DictionaryArray<Int32Type> = [Some("x"), None].into_iter().collect();
    vec![
        ("zurich", zoned("Europe/Zurich"), "2023-11-14T22:13:20.123Z", "\"2023-11-14T22:13:20.123Z\""),
        ("gmt", zoned("GMT"), "2023-11-14T22:13:20.123Z", "\"2023-11-14T22:13:20.123Z\""),
        ("z", zoned("Z"), "2023-11-14T22:13:20.123Z", "\"2023-11-14T22:13:20.123Z\""),
        ("east", zoned("+01:00"), "2023-11-14T22:13:20.123Z", "\"2023-11-14T22:13:20.123Z\""),
        (
            "far",
            Arc::new(TimestampSecondArray::from(vec![Some(i64::MAX), None])),
            "+292277026596-12-04T15:30:07",
            "\"+292277026596-12-04T15:30:07\"",
        ),
        ("date64", Arc::new(Date64Array::from(vec![Some(-86_400_000), None])), "1969-12-31", "\"1969-12-31\""),
        (
            "time",
            Arc::new(Time64NanosecondArray::from(vec![Some(3_723_000_000_001), None])),
            "01:02:03.000000001",
            "\"01:02:03.000000001\"",
        ),
        ("duration", Arc::new(DurationMillisecondArray::from(vec![Some(-1_500), None])), "PT-1.5S", "\"PT-1.5S\""),
        (
            "interval",
            Arc::new(IntervalMonthDayNanoArray::from(vec![Some(interval), None])),
            "P1Y2M-3DT1.5S",
            "\"P1Y2M-3DT1.5S\"",
        ),
        ("decimal", Arc::new(decimals), "-12345678901234567.8901", "-12345678901234567.8901"),
        ("small", Arc::new(Int8Array::from(vec![Some(-128), None])), "-128", "-128"),
        ("word", Arc::new(UInt16Array::from(vec![Some(65_535), None])), "65535", "65535"),
        ("half", halves(), "0.5", "0.5"),
        ("list", Arc::new(lists), "[1,null,3]", "[1,null,3]"),
        (
            "struct",
            Arc::new(structs),
            "{\"at\":\"1970-01-01T00:00:00Z\",\"n\\\"\":7}",
            "{\"at\":\"1970-01-01T00:00:00Z\",\"n\\\"\":7}",
        ),
        ("map", Arc::new(map), "{\"a\":1,\"b\":null}", "{\"a\":1,\"b\":null}"),
        ("dictionary", Arc::new(dictionary), "x", "\"x\""),
        ("nothing", new_null_array(&DataType::Null, 2), "", "null"),
    ]
}

/// The text that the command writes for `columns` if they are copied to the results from an Arrow file.
pub(super) fn carried_as_text(columns: Vec<(&str, ArrayRef)>, format: Format) -> String {
    let folder = tempfile::tempdir().expect("a folder");
    let (file, text) = (folder.path().join("rows"), folder.path().join("out"));
    let write = |to: &std::path::Path, format, named: &[Named], rows: &RecordBatch| {
        let options = WriteOptions { format, null: None, delimiter: None, decimal_comma: false, most_bytes: u64::MAX };
        let output = Output::create(to).expect("a file");
        let mut sink = sink::open(&options, output, named, &rows.schema()).expect("a sink");
        sink.write(rows).and_then(|()| sink.finish()).and_then(Output::commit).expect("a file");
    };
    let of = |name: &str, array: &ArrayRef| Field::new(name, array.data_type().clone(), true);
    let fields: Vec<Field> = columns.iter().map(|(name, array)| of(name, array)).collect();
    let named = fields
        .iter()
        .map(|of| Named { name: of.name().clone(), form: Form::Foreign(of.data_type().clone()) })
        .collect::<Vec<_>>();
    let arrays = columns.into_iter().map(|(_, array)| array).collect();
    write(&file, Format::Arrow, &named, &RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).expect("rows"));
    let data = Dataset::open(Input::file(&file).expect("a file"), &options(Format::Arrow, &[])).expect("a table");
    let mut table = data.bind(&Request { keep: Keep::All, ..Request::default() }).expect("columns");
    let decoded = table.source.next().expect("rows").expect("rows").decode();
    assert!(decoded.error.is_none(), "{:?}", decoded.error);
    write(&text, format, &table.kept, &decoded.batch.rows);
    std::fs::read_to_string(&text).expect("a text")
}

/// Structs of types that models have, within another struct. Some are null but have field values behind the null.
#[test]
fn structs_that_are_null_have_no_fields() {
    let of =
        |name: &str, array: &ArrayRef| (Arc::new(Field::new(name, array.data_type().clone(), true)), array.clone());
    let numbers: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), Some(2), None, Some(4)]));
    let floats: ArrayRef = Arc::new(arrow_array::Float64Array::from(vec![0.5, 1.5, 2.5, 3.5]));
    let pair = |there: Option<Vec<bool>>| -> ArrayRef {
        let (fields, arrays): (Vec<_>, Vec<_>) = vec![of("a", &numbers), of("c", &floats)].into_iter().unzip();
        Arc::new(StructArray::new(fields.into(), arrays, there.map(Into::into)))
    };
    let null = pair(Some(vec![true, false, true, true]));
    let inner = pair(None);
    let fields = vec![of("n", &numbers).0, Arc::new(Field::new("p", inner.data_type().clone(), false))];
    let there = Some(vec![true, true, true, false].into());
    let outer: ArrayRef = Arc::new(StructArray::new(fields.into(), vec![numbers.clone(), inner], there));
    let columns = || vec![("p", null.clone()), ("q", outer.clone())];
    assert_eq!(
        carried_as_text(columns(), Format::JsonLines),
        "{\"p\":{\"a\":1,\"c\":0.5},\"q\":{\"n\":1,\"p\":{\"a\":1,\"c\":0.5}}}\n\
         {\"p\":null,\"q\":{\"n\":2,\"p\":{\"a\":2,\"c\":1.5}}}\n\
         {\"p\":{\"a\":null,\"c\":2.5},\"q\":{\"n\":null,\"p\":{\"a\":null,\"c\":2.5}}}\n\
         {\"p\":{\"a\":4,\"c\":3.5},\"q\":null}\n"
    );
    assert_eq!(
        carried_as_text(columns(), Format::Csv),
        "p.a,p.c,q.n,q.p.a,q.p.c\n1,0.5,1,1,0.5\n,,2,2,1.5\n,2.5,,,2.5\n4,3.5,,,\n"
    );
    let shown = carried_as_text(columns(), Format::Table);
    assert_eq!(shown.matches("NA").count(), 8, "{shown}");
}

/// A column with the half-precision float 0.5 and a null.
fn halves() -> ArrayRef {
    type Half = <arrow_array::types::Float16Type as arrow_array::ArrowPrimitiveType>::Native;
    Arc::new(Float16Array::from(vec![Some(Half::from_f32(0.5)), None]))
}

#[test]
fn every_type_has_a_cell_in_every_form() {
    let columns = columns();
    let named: Vec<Named> = columns
        .iter()
        .map(|(name, array, ..)| Named { name: (*name).to_owned(), form: Form::Foreign(array.data_type().clone()) })
        .chain([Named { name: "behind".to_owned(), form: Form::Values(QType::Optional(Scalar::Int64)) }])
        .collect();
    let mut arrays: Vec<ArrayRef> = columns.iter().map(|(_, array, ..)| array.clone()).collect();
    arrays.push(Arc::new(Int64Array::from(vec![1, 2])));
    let fields: Vec<Field> = named
        .iter()
        .zip(&arrays)
        .map(|(named, array)| Field::new(&named.name, array.data_type().clone(), true))
        .collect();
    let rows = RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).expect("rows");
    let written = |format: Format| {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("out");
        let options = WriteOptions { format, null: None, delimiter: None, decimal_comma: false, most_bytes: u64::MAX };
        let output = Output::create(&path).expect("a file");
        let mut sink = sink::open(&options, output, &named, &rows.schema()).expect("a sink");
        sink.write(&rows).expect("rows");
        sink.finish().expect("an end").commit().expect("a file");
        std::fs::read_to_string(&path).expect("a text")
    };
    let json: Vec<String> = columns.iter().map(|(name, _, _, json)| format!("\"{name}\":{json}")).collect();
    let missing: Vec<String> = columns.iter().map(|(name, ..)| format!("\"{name}\":null")).collect();
    let expected = format!("{{{},\"behind\":1}}\n{{{},\"behind\":2}}\n", json.join(","), missing.join(","));
    assert_eq!(written(Format::JsonLines), expected);
    let mut reader = ::csv::Reader::from_reader(std::io::Cursor::new(written(Format::Csv)));
    let cells: Vec<Vec<String>> =
        reader.records().map(|row| row.expect("a row").iter().map(str::to_owned).collect()).collect();
    let texts: Vec<&str> = columns.iter().map(|(_, _, text, _)| *text).chain(["1"]).collect();
    assert_eq!(cells[0], texts);
    assert_eq!(cells[1].iter().filter(|cell| !cell.is_empty()).collect::<Vec<_>>(), ["2"]);
}

/// Decimals of 18 digits. For a quarter of them, dividing by a power of ten would not give the nearest float.
#[test]
fn decimals_are_rounded_once() {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let numbers: Vec<i128> = (0..2_000)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            i128::from(state % 1_000_000_000_000_000_000)
        })
        .collect();
    let decimals = Decimal128Array::from(numbers.clone()).with_precision_and_scale(18, 7).expect("a scale");
    let floats = converted(&(Arc::new(decimals) as ArrayRef), Scalar::Float64, &Spelling::default()).expect("floats");
    let floats = floats.as_any().downcast_ref::<arrow_array::Float64Array>().expect("floats");
    for (number, float) in numbers.iter().zip(floats.values()) {
        let digits = format!("{number:08}");
        let (whole, part) = digits.split_at(digits.len() - 7);
        let nearest: f64 = format!("{whole}.{part}").parse().expect("a number");
        assert_eq!(float.to_bits(), nearest.to_bits(), "{number}");
    }
}

/// A scale may be negative, and a file may have more digits than its precision.
#[test]
fn decimals_have_all_digits() {
    let of = |digits: Vec<i128>, precision, scale| -> ArrayRef {
        Arc::new(Decimal128Array::from(digits).with_precision_and_scale(precision, scale).expect("a scale"))
    };
    let columns = [
        (of(vec![0, 12, -7], 5, -2), ["0", "1200", "-700"], [0.0, 1200.0, -700.0]),
        (
            of(vec![123_456_789, -123_456_789, 5], 3, 2),
            ["1234567.89", "-1234567.89", "0.05"],
            [1_234_567.89, -1_234_567.89, 0.05],
        ),
        (of(vec![123_456, 0, -1], 3, 0), ["123456", "0", "-1"], [123_456.0, 0.0, -1.0]),
        (
            of(vec![0, -1, i128::MAX], 38, 38),
            [
                "0.00000000000000000000000000000000000000",
                "-0.00000000000000000000000000000000000001",
                "1.70141183460469231731687303715884105727",
            ],
            [0.0, -1e-38, 1.7014118346046923],
        ),
    ];
    for (column, texts, floats) in columns {
        let csv = carried_as_text(vec![("x", column.clone())], Format::Csv);
        assert_eq!(csv.lines().skip(1).collect::<Vec<_>>(), texts);
        let json = carried_as_text(vec![("x", column.clone())], Format::JsonLines);
        assert_eq!(json, texts.map(|text| format!("{{\"x\":{text}}}\n")).concat());
        let made = converted(&column, Scalar::Float64, &Spelling::default()).expect("floats");
        let made = made.as_any().downcast_ref::<arrow_array::Float64Array>().expect("floats");
        assert_eq!(made.values().as_ref(), floats);
    }
    let large: ArrayRef = Arc::new(
        arrow_array::Decimal256Array::from(vec![arrow_buffer::i256::MIN])
            .with_precision_and_scale(4, -1)
            .expect("a scale"),
    );
    let digits = "57896044618658097711785492504343953926634992332820282019728792003956564819968";
    assert_eq!(carried_as_text(vec![("x", large)], Format::Csv), format!("x\n-{digits}0\n"));
}

#[test]
fn numbers_become_integers_only_where_no_value_changes() {
    let floats: ArrayRef = Arc::new(arrow_array::Float64Array::from(vec![
        1.0,
        1.5,
        -0.0,
        f64::NAN,
        9_223_372_036_854_775_808.0,
        -9_223_372_036_854_775_808.0,
        f64::INFINITY,
    ]));
    let made = converted(&floats, Scalar::Int64, &Spelling::default()).expect("integers");
    let made = made.as_any().downcast_ref::<Int64Array>().expect("integers");
    let made: Vec<Option<i64>> = made.iter().collect();
    assert_eq!(made, [Some(1), None, Some(0), None, None, Some(i64::MIN), None]);
    let wide: ArrayRef = Arc::new(Int64Array::from(vec![Some(7), Some(-1), None, Some(i64::MAX)]));
    let made = converted(&wide, Scalar::UInt64, &Spelling::default()).expect("integers");
    let made = made.as_any().downcast_ref::<arrow_array::UInt64Array>().expect("integers");
    assert_eq!(made.iter().collect::<Vec<_>>(), [Some(7), None, None, Some(i64::MAX as u64)]);
    let days: ArrayRef = Arc::new(Date64Array::from(vec![-1, 86_399_999, i64::MAX]));
    let made = converted(&days, Scalar::Date, &Spelling::default()).expect("days");
    let made = made.as_any().downcast_ref::<arrow_array::Date32Array>().expect("days");
    assert_eq!(made.iter().collect::<Vec<_>>(), [Some(-1), Some(0), None]);
}
