//! `docs/values.md`: what values look like in each form, made of values that were written.

use super::every_type::{all, carried, kind};
use super::*;
use ::parquet::basic::ConvertedType;
use ::parquet::file::reader::{FileReader as _, SerializedFileReader};
use arrow_schema::DataType;
use cembra::tensor::Tensor;
use cembra_runtime::{Date, Duration, Timestamp};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;

/// Set to rewrite what is generated instead of comparing it.
const REWRITE: &str = "CEMBRA_REWRITE";

const HEAD: &str = "\
# Values in files

What a value of a model looks like in each form of data, and what becomes of the values of Arrow's types. The tables are made, and held
against what is written and read, by a test (`crates/table/src/tests/values.rs`). How files are read and written is in [tables.md](tables.md).

## Types of models

A missing value is an empty field of CSV, `null` of JSON, and null in Arrow and Parquet. A mask that holds is `true`; one that does not is missing. A float
of JSON always has a fraction or an exponent. A tuple `p` is an array of JSON, one with names an object, in CSV columns `p.0`, `p.1` or
`p.x`, in Arrow and Parquet a struct. An array is an array of JSON, also as a field of CSV, and in Arrow and Parquet a `LargeList`. Texts and bytes that
were made are `Utf8` and `Binary`; `LargeUtf8` and `LargeBinary` are read too.

";

const BETWEEN: &str = "
## Types of Arrow

The type of an input that is declared nowhere, and what is written of a column that is carried through (`--keep`). A declared input takes more: one of floats
also decimals, one of days also `date64`. Arrow files keep every type. Parquet keeps all that it has
a form for: seconds become milliseconds, and of runs their values are written. What it has no form for, or a value that its form does not
have (a day of `date64` that is none, seconds beyond 64 bits of milliseconds), is an error that names the column.

Integers have the width of their column: `int32` and what is narrower is `i32`, and what is computed of it wraps around beyond 2,147,483,647. CSV,
JSON and `-s` say no width: their integers are `i64`. A model that is to give the same results from both declares `input x: i64`.

";

/// A value of each scalar type.
fn sample(scalar: Scalar) -> ScalarValue {
    match scalar {
        Scalar::Unit => ScalarValue::Unit,
        Scalar::Boolean => ScalarValue::Boolean(true),
        Scalar::Int32 => ScalarValue::Int32(-7),
        Scalar::Int64 => ScalarValue::Int64(9_007_199_254_740_993),
        Scalar::UInt64 => ScalarValue::UInt64(u64::MAX),
        Scalar::Float32 => ScalarValue::Float32(1.0),
        Scalar::Float64 => ScalarValue::Float64(f64::NAN),
        Scalar::WeakFloat => ScalarValue::WeakFloat(1.5),
        Scalar::Text => ScalarValue::Text("a \"b\"".into()),
        Scalar::Bytes => ScalarValue::Bytes([0xff, 0].as_slice().into()),
        Scalar::Date => ScalarValue::Date(Date(20_000)),
        Scalar::Timestamp => ScalarValue::Timestamp(Timestamp(1_700_000_000_123_000)),
        Scalar::Duration => ScalarValue::Duration(Duration(129_600_500_000)),
    }
}

/// How NumPy calls the elements of a tensor's file.
fn numpy(scalar: Scalar) -> Option<String> {
    let tensor = match scalar {
        Scalar::Boolean => Tensor::scalar(true),
        Scalar::Int32 => Tensor::scalar(1_i32),
        Scalar::Int64 => Tensor::scalar(1_i64),
        Scalar::Float32 => Tensor::scalar(1_f32),
        Scalar::Float64 => Tensor::scalar(1_f64),
        _ => return None,
    };
    let mut bytes = Vec::new();
    crate::numpy::write_npy(&mut bytes, &tensor).expect("a file");
    let text = String::from_utf8_lossy(&bytes[10..]).into_owned();
    Some(text.split('\'').nth(3).expect("a type").to_owned())
}

/// One value in a file.
fn file(value: &Value, qtype: &QType, format: Format) -> Vec<u8> {
    let schema = types::schema([types::field("x", qtype).expect("data")]);
    let named = [Named { name: "x".to_owned(), form: Form::Values(qtype.clone()) }];
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("rows");
    let options = WriteOptions { format, null: None, delimiter: None, decimal_comma: false, most_bytes: u64::MAX };
    let mut sink = sink::open(&options, Output::create(&path).expect("a file"), &named, &schema).expect("a sink");
    let rows = crate::batch(&schema, vec![array_of(value).expect("data")], 1).expect("a row");
    sink.write(&rows).expect("a row");
    sink.finish().and_then(Output::commit).expect("a file");
    std::fs::read(path).expect("bytes")
}

fn code(text: &str) -> String {
    // No text here has a sign that would end it.
    format!("`{}`", text.replace('|', "\\|"))
}

fn type_of_models(scalar: Scalar) -> String {
    let value = Value::Present(sample(scalar));
    let qtype = QType::Optional(scalar);
    let text = |format| String::from_utf8(file(&value, &qtype, format)).expect("UTF-8");
    let csv = text(Format::Csv);
    let json = text(Format::JsonLines);
    let json = json.trim().trim_start_matches("{\"x\":").trim_end_matches('}');
    let arrow = file(&value, &qtype, Format::Arrow);
    let mut read = Dataset::open(Input::new("x", std::io::Cursor::new(arrow)), &options(Format::Arrow, &[]))
        .and_then(|data| data.bind(&Request { keep: Keep::All, ..Request::default() }))
        .expect("a table");
    let rows = read.source.next().expect("rows").expect("rows").decode().batch.rows;
    let bytes = file(&value, &qtype, Format::Parquet);
    let parquet = SerializedFileReader::new(bytes::Bytes::from(bytes)).expect("a file");
    let column = parquet.metadata().file_metadata().schema_descr().column(0);
    let stored = match column.converted_type() {
        ConvertedType::NONE => code(&column.physical_type().to_string()),
        of => code(&format!("{} {of}", column.physical_type())),
    };
    let csv = csv.split_once('\n').map_or("", |(_, row)| row).trim_end().to_owned();
    let numpy = numpy(scalar).map_or_else(|| "none".to_owned(), |of| code(&of));
    let arrow = code(&rows.column(0).data_type().to_string());
    format!(
        "| {} | {} | {} | {arrow} | {stored} | {numpy} |\n",
        code(&spelled(&QType::Scalar(scalar))),
        code(json),
        code(&csv)
    )
}

fn type_of_arrow(columns: &[(&'static str, arrow_array::ArrayRef, &'static str, &'static str)]) -> String {
    let (name, array, text, json) = &columns[0];
    let input = types::to_qtype(array.data_type(), true);
    let input = input.map_or_else(|| "none".to_owned(), |qtype| code(&spelled(&qtype)));
    let shown = |text: &str| if text.is_empty() { "nothing".to_owned() } else { code(text) };
    assert_eq!(carried(name, array, Format::Arrow).expect("it is kept").data_type(), array.data_type());
    let parquet = match carried(name, array, Format::Parquet) {
        Ok(read) if read.data_type() == array.data_type() => "kept".to_owned(),
        Ok(read) => format!("as {}", kind(read.data_type())),
        Err(error) if error.contains("no form") => "an error".to_owned(),
        // Its value is at the end of what there is.
        Err(_) => return type_of_arrow(&columns[1..]),
    };
    format!("| {} | {input} | {} | {} | {parquet} |\n", kind(array.data_type()), shown(text), shown(json))
}

#[test]
fn the_page_of_values_is_up_to_date() {
    let mut page = HEAD.to_owned();
    page += "| type | JSON | CSV | Arrow | Parquet | NumPy |\n|---|---|---|---|---|---|\n";
    for scalar in Scalar::ALL.into_iter().filter(|scalar| *scalar != Scalar::WeakFloat) {
        page += &type_of_models(scalar);
    }
    page += BETWEEN;
    page += "| Arrow | input | CSV | JSON | Parquet |\n|---|---|---|---|---|\n";
    let mut kinds: BTreeMap<&str, Vec<_>> = BTreeMap::new();
    for column in all() {
        kinds.entry(kind(column.1.data_type())).or_default().push(column);
    }
    for columns in kinds.values() {
        write!(page, "{}", type_of_arrow(columns)).expect("a text");
    }
    assert!(kinds.contains_key(kind(&DataType::Date64)));
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/values.md");
    if std::env::var_os(REWRITE).is_some() {
        std::fs::write(&path, &page).expect("the page is written");
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(found == page, "docs/values.md is out of date: run this test with {REWRITE}=1");
}
