//! Files with a column of a type that the library does not support: the other columns are read.

use super::*;
use ::parquet::arrow::arrow_writer::ArrowWriterOptions;
use ::parquet::arrow::{ARROW_SCHEMA_META_KEY, ArrowWriter, encode_arrow_schema};
use ::parquet::file::metadata::KeyValue;
use ::parquet::file::properties::WriterProperties;
use arrow_array::{ArrayRef, FixedSizeBinaryArray, Float64Array, Int64Array, RecordBatch};
use arrow_ipc::writer::StreamWriter;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use std::sync::Arc;

fn file(i: ArrayRef) -> RecordBatch {
    let x: ArrayRef = Arc::new(Float64Array::from(vec![1.5, 2.5]));
    RecordBatch::try_from_iter_with_nullable([("x", x, true), ("i", i, true)]).expect("rows")
}

/// Copies of the bytes, each with one 64 that may be a count of bits replaced by 128.
fn patched(bytes: &[u8]) -> impl Iterator<Item = Vec<u8>> + '_ {
    (0..bytes.len().saturating_sub(3)).filter(move |at| bytes[*at..].starts_with(&[64, 0, 0, 0])).map(move |at| {
        let mut patched = bytes.to_vec();
        patched[at] = 128;
        patched
    })
}

fn read(format: Format, bytes: &[u8], request: &Request) -> Result<Vec<Vec<Value>>, String> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("rows");
    std::fs::write(&path, bytes).expect("a file");
    let data = Dataset::open(Input::file(&path).expect("a file"), &options(format, &[]));
    let table = data.and_then(|data| data.bind(request)).map_err(|error| error.message())?;
    rows(table)
}

/// The first file whose column `i` is an integer of 128 bits.
fn with_wide_integers(format: Format, mut files: impl Iterator<Item = Vec<u8>>) -> Vec<u8> {
    let is_one = |bytes: &Vec<u8>| {
        let refused = read(format, bytes, &request(&[("i", None)]));
        refused == Err("the type Int128 cannot be read".to_owned())
    };
    files.find(is_one).expect("a file with a column that cannot be read")
}

#[test]
fn a_column_that_cannot_be_read_is_an_error_only_where_it_is_used() {
    let rows = file(Arc::new(Int64Array::from(vec![1, 2])));
    let mut stream = Vec::new();
    let mut writer = StreamWriter::try_new(&mut stream, &rows.schema()).expect("a writer");
    writer.write(&rows).and_then(|()| writer.finish()).expect("a file");
    let schema = BASE64_STANDARD.decode(encode_arrow_schema(&rows.schema())).expect("bytes");
    let parquet = |schema: Vec<u8>| {
        let wide = FixedSizeBinaryArray::try_from_iter([[1_u8; 16], [2; 16]].into_iter()).expect("bytes");
        let (rows, mut bytes) = (file(Arc::new(wide)), Vec::new());
        let said = KeyValue::new(ARROW_SCHEMA_META_KEY.to_owned(), BASE64_STANDARD.encode(schema));
        let properties = WriterProperties::builder().set_key_value_metadata(Some(vec![said])).build();
        let options = ArrowWriterOptions::new().with_properties(properties).with_skip_arrow_metadata(true);
        let mut writer = ArrowWriter::try_new_with_options(&mut bytes, rows.schema(), options).expect("a writer");
        writer.write(&rows).expect("rows");
        writer.close().expect("a file");
        bytes
    };
    for (format, bytes) in [
        (Format::Arrow, with_wide_integers(Format::Arrow, patched(&stream))),
        (Format::Parquet, with_wide_integers(Format::Parquet, patched(&schema).map(parquet))),
    ] {
        let x = |keep: Keep| Request { keep, ..request(&[("x", None)]) };
        let expected = [1.5, 2.5].map(|x| vec![Value::from(Some(x))]);
        assert_eq!(read(format, &bytes, &x(Keep::None)), Ok(expected.to_vec()));
        let these = Keep::These(vec!["i".to_owned()]);
        for keep in [these, Keep::All] {
            assert_eq!(read(format, &bytes, &x(keep)), Err("the type Int128 cannot be read".to_owned()));
        }
        let declared = request(&[("i", Some(QType::INT64))]);
        assert_eq!(read(format, &bytes, &declared), Err("the type Int128 cannot be read".to_owned()));
    }
}
