//! Writing: the text of each format, and that it is read back as the same values.

use super::*;
use arrow_array::types::Int8Type;
use arrow_array::{ArrayRef, DictionaryArray, Float64Array, PrimitiveArray, RecordBatch};
use std::sync::Arc;

fn written(format: Format, null: &str, columns: &[(&str, QType)], rows: &[Vec<Value>]) -> String {
    let fields = columns.iter().map(|(name, qtype)| types::field(name, qtype).expect("data"));
    let schema = types::schema(fields);
    let named =
        columns.iter().map(|(name, qtype)| Named { name: (*name).to_owned(), form: Form::Values(qtype.clone()) });
    let named: Vec<_> = named.collect();
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("out");
    let output = Output::create(&path).expect("a file");
    let options = WriteOptions {
        format,
        null: (!null.is_empty()).then_some(null),
        delimiter: None,
        decimal_comma: false,
        most_bytes: u64::MAX,
    };
    let mut sink = sink::open(&options, output, &named, &schema).expect("a header");
    for row in rows {
        let arrays = row.iter().map(|value| array_of(value).expect("data")).collect();
        sink.write(&super::super::batch(&schema, arrays, 1).expect("a row")).expect("a row");
    }
    sink.finish().expect("an end").commit().expect("a file");
    std::fs::read_to_string(path).expect("UTF-8")
}

#[test]
fn dictionaries_of_floats_have_a_decimal_comma_too() {
    let values: ArrayRef = Arc::new(Float64Array::from(vec![1.5]));
    let keys = PrimitiveArray::<Int8Type>::from(vec![Some(0), None]);
    let column: ArrayRef = Arc::new(DictionaryArray::try_new(keys, values).expect("a dictionary"));
    let rows = RecordBatch::try_from_iter([("c", column)]).expect("rows");
    let named = [Named { name: "c".to_owned(), form: Form::Foreign(rows.column(0).data_type().clone()) }];
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("out");
    let options =
        WriteOptions { format: Format::Csv, null: None, delimiter: None, decimal_comma: true, most_bytes: u64::MAX };
    let mut sink =
        sink::open(&options, Output::create(&path).expect("a file"), &named, &rows.schema()).expect("a sink");
    sink.write(&rows).expect("rows");
    sink.finish().expect("an end").commit().expect("a file");
    assert_eq!(std::fs::read_to_string(path).expect("UTF-8"), "c\n\"1,5\"\n\"\"\n");
}

fn named<T>(fields: [T; 2]) -> Fields<T> {
    Fields::named(Names::parse("a,b \"c").expect("names"), fields).expect("as many fields")
}

fn columns() -> Vec<(&'static str, QType)> {
    vec![
        ("f", QType::FLOAT32),
        ("d", OPTIONAL_F64),
        ("l", QType::INT64),
        ("t", QType::TEXT),
        ("u", QType::MASK),
        ("p", QType::Tuple(named([QType::BOOLEAN, QType::tuple([OPTIONAL_F64])]))),
    ]
}

fn some_rows() -> Vec<Vec<Value>> {
    let tuple = |a: bool, b: Option<f64>| Value::Tuple(named([Value::from(a), Value::Tuple([b.into()].into())]));
    vec![
        vec![
            Value::from(0.1_f32),
            Value::from(Some(-0.0)),
            Value::from(i64::MIN),
            Value::from("a \"b\",\nc\u{1b}"),
            Value::Present(ScalarValue::Unit),
            tuple(true, Some(f64::NEG_INFINITY)),
        ],
        vec![
            Value::from(f32::NAN),
            Value::from(None::<f64>),
            Value::from(7_i64),
            Value::from("é"),
            Value::Missing(Scalar::Unit),
            tuple(false, Some(1e300)),
        ],
    ]
}

#[test]
fn csv_is_what_csv_reads() {
    let text = written(Format::Csv, "", &columns(), &some_rows());
    assert_eq!(
        text,
        "f,d,l,t,u,p.a,\"p.b \"\"c.0\"\n\
         0.1,-0,-9223372036854775808,\"a \"\"b\"\",\nc\u{1b}\",true,true,-inf\n\
         nan,,7,é,,false,1e300\n"
    );
    let wanted: Vec<_> = columns().into_iter().map(|(name, qtype)| (name, Some(qtype))).collect();
    assert_eq!(csv(text, &wanted), Ok(some_rows()));
}

#[test]
fn a_null_string_is_written_for_missing() {
    let columns = [("t", QType::Optional(Scalar::Text))];
    let rows = [vec![Value::Missing(Scalar::Text)], vec![Value::Present(ScalarValue::Text("".into()))]];
    assert_eq!(written(Format::Csv, "NA", &columns, &rows), "t\nNA\n\"\"\n");
    assert_eq!(written(Format::Csv, "", &columns, &rows[..1]), "t\n\"\"\n");
}

#[test]
fn tsv_is_separated_by_tabs() {
    let columns = [("a", QType::TEXT), ("b", QType::INT32)];
    let rows = [vec![Value::from("x\ty"), Value::from(1)]];
    assert_eq!(written(Format::Tsv, "", &columns, &rows), "a\tb\n\"x\ty\"\t1\n");
}

#[test]
fn json_is_what_json_reads() {
    let first = r#"{"f":0.1,"d":-0.0,"l":-9223372036854775808,"t":"a \"b\",\nc\u001b","u":true,"p":{"a":true,"b \"c":["-Infinity"]}}"#;
    let second = r#"{"f":"NaN","d":null,"l":7,"t":"é","u":null,"p":{"a":false,"b \"c":[1e300]}}"#;
    assert_eq!(written(Format::JsonLines, "", &columns(), &some_rows()), format!("{first}\n{second}\n"));
    let array = written(Format::Json, "", &columns(), &some_rows());
    assert_eq!(array, format!("[\n{first},\n{second}\n]\n"));
    let wanted: Vec<_> = columns().into_iter().map(|(name, qtype)| (name, Some(qtype))).collect();
    assert_eq!(json(&array, &wanted), Ok(some_rows()));
    assert_eq!(written(Format::Json, "", &columns(), &[]), "[]\n");
    assert_eq!(written(Format::JsonLines, "", &columns(), &[]), "");
    assert_eq!(written(Format::Json, "", &[], &[vec![]]), "[\n{}\n]\n");
}

#[test]
fn a_float_stays_a_float_in_json() {
    let rows = [vec![Value::from(1.0_f64)], vec![Value::from(1e20_f64)], vec![Value::from(1e21_f64)]];
    let text = written(Format::JsonLines, "", &[("x", QType::FLOAT64)], &rows);
    assert_eq!(text, "{\"x\":1.0}\n{\"x\":100000000000000000000.0}\n{\"x\":1e21}\n");
    assert_eq!(inferred(Format::JsonLines, &text, &["x"]), Ok(vec!["f64".to_owned()]));
}

#[test]
fn a_table_aligns_numbers_and_shows_what_is_missing() {
    let columns = [("x", OPTIONAL_F64), ("name", QType::TEXT)];
    let rows = [
        vec![Value::from(Some(1.5)), Value::from("é\n\u{1b}[31m")],
        vec![Value::from(None::<f64>), Value::from("b")],
        vec![Value::from(Some(-20.25)), Value::from("")],
    ];
    assert_eq!(
        written(Format::Table, "", &columns, &rows),
        "\
┌────────┬───────────────┐
│      x ┆ name          │
╞════════╪═══════════════╡
│    1.5 ┆ é\\n\\u{1b}[31m │
│     NA ┆ b             │
│ -20.25 ┆               │
└────────┴───────────────┘
"
    );
}

#[test]
fn a_long_table_starts_again() {
    let rows = vec![vec![Value::from(7)]; 10_001];
    let text = written(Format::Table, "", &[("x", QType::INT32)], &rows);
    assert_eq!(text.lines().filter(|line| line.contains('x')).count(), 2);
    assert_eq!(text.lines().filter(|line| line.contains('7')).count(), 10_001);
}
