//! Tests of columns copied to Arrow files whose dictionaries differ between batches: the file has one dictionary per column.

use super::*;
use arrow_array::cast::AsArray;
use arrow_array::types::{Int8Type, Int32Type};
use arrow_array::{
    ArrayRef, DictionaryArray, Float64Array, Int8Array, Int32Array, ListArray, RecordBatch, StringArray, StructArray,
};
use arrow_buffer::OffsetBuffer;
use arrow_schema::{DataType, Field};
use std::sync::Arc;

fn rows_of(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    let of = |(name, array): (&str, ArrayRef)| (name.to_owned(), array, true);
    RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(of)).expect("rows")
}

/// Writes batches as an Arrow file, and reads the file back.
fn through(batches: &[RecordBatch]) -> Result<Vec<RecordBatch>, String> {
    let said = |error: crate::error::DataError| error.to_string();
    let schema = batches[0].schema();
    let named = schema.fields().iter();
    let named = named.map(|of| Named { name: of.name().clone(), form: Form::Foreign(of.data_type().clone()) });
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("rows.arrow");
    let write =
        WriteOptions { format: Format::Arrow, null: None, delimiter: None, decimal_comma: false, most_bytes: u64::MAX };
    let output = Output::create(&path).expect("a file");
    let mut sink = sink::open(&write, output, &named.collect::<Vec<_>>(), &schema).map_err(said)?;
    for batch in batches {
        sink.write(batch).map_err(said)?;
    }
    sink.finish().and_then(Output::commit).map_err(said)?;
    let data = Dataset::open(Input::file(&path).expect("a file"), &options(Format::Arrow, &[])).map_err(said)?;
    let mut table = data.bind(&Request { keep: Keep::All, ..Request::default() }).map_err(said)?;
    let mut read = Vec::new();
    while let Some(piece) = table.source.next().map_err(said)? {
        let decoded = piece.decode();
        assert!(decoded.error.is_none(), "{:?}", decoded.error);
        read.push(decoded.batch.rows);
    }
    // The whole file, as readers that use its footer see it.
    let file = arrow_ipc::reader::FileReader::try_new(std::fs::File::open(&path).expect("a file"), None);
    let whole: Vec<RecordBatch> = file.expect("a file").map(|rows| rows.expect("rows")).collect();
    assert_eq!(whole, read);
    Ok(read)
}

fn texts(values: &[&str], keys: &[Option<i32>]) -> ArrayRef {
    let values = Arc::new(StringArray::from(values.to_vec()));
    Arc::new(DictionaryArray::<Int32Type>::try_new(Int32Array::from(keys.to_vec()), values).expect("a dictionary"))
}

#[test]
fn dictionaries_that_differ_become_one() {
    let floats = |values: &[f64], keys: &[i8]| -> ArrayRef {
        let values = Arc::new(Float64Array::from(values.to_vec()));
        Arc::new(DictionaryArray::<Int8Type>::try_new(Int8Array::from(keys.to_vec()), values).expect("a dictionary"))
    };
    let nested = |of: ArrayRef| -> ArrayRef {
        let item = Arc::new(Field::new_list_field(of.data_type().clone(), true));
        let lists: ArrayRef = Arc::new(ListArray::new(item, OffsetBuffer::from_lengths([2, 0, 1]), of.clone(), None));
        let field = |name: &str, of: &ArrayRef| Arc::new(Field::new(name, of.data_type().clone(), true));
        Arc::new(StructArray::from(vec![(field("l", &lists), lists), (field("t", &of), of)]))
    };
    let batches: Vec<RecordBatch> = [
        (texts(&["a", "b"], &[Some(1), None, Some(0)]), floats(&[0.5, -0.0], &[0, 1, 1])),
        (texts(&["b", "c", "unused"], &[Some(1), Some(0), None]), floats(&[-0.0, 0.0, 0.5], &[1, 2, 0])),
        // The values so far with a new one after them, and the first dictionary again.
        (texts(&["a", "b", "c", "d"], &[Some(3), Some(2), Some(0)]), floats(&[7.0], &[0, 0, 0])),
        (texts(&["a", "b"], &[Some(1), None, Some(0)]), floats(&[0.5, -0.0], &[0, 1, 1])),
    ]
    .into_iter()
    .map(|(text, float)| rows_of(vec![("t", text.clone()), ("x", float), ("n", nested(text))]))
    .collect();
    let read = through(&batches).expect("a file");
    assert_eq!(read.len(), 4);
    for (read, batch) in read.iter().zip(&batches) {
        assert_eq!(read.schema(), batch.schema());
        assert_eq!(read, batch);
    }
    let last = read[3].column(0).as_dictionary::<Int32Type>();
    let values: Vec<Option<&str>> = last.values().as_string::<i32>().iter().collect();
    assert_eq!(values, ["a", "b", "c", "d"].map(Some));
}

#[test]
fn dictionaries_with_more_values_than_keys_are_refused() {
    let of = |first: i32, count: i32| {
        let values = Arc::new((first..first + count).map(|at| Some(at.to_string())).collect::<StringArray>());
        let keys = (0..count).map(|at| i8::try_from(at).ok()).collect::<Int8Array>();
        rows_of(vec![("t", Arc::new(DictionaryArray::<Int8Type>::try_new(keys, values).expect("a dictionary")))])
    };
    assert_eq!(through(&[of(0, 100), of(100, 28)]).map(|read| read.len()), Ok(2));
    let error = through(&[of(0, 100), of(100, 29)]).expect_err("128 is no key");
    assert_eq!(
        error,
        "column `t`: the dictionaries of the column have more values together than one dictionary of an Arrow file can have; write Parquet, JSON or CSV, which need no common dictionary"
    );
}

/// If all rows have their own dictionaries, every row copies all values before it.
#[test]
fn dictionaries_that_differ_from_row_to_row_have_an_end() {
    let first: Vec<String> = (0..500_000).map(|at| at.to_string()).collect();
    let first: Vec<&str> = first.iter().map(String::as_str).collect();
    let mut batches = vec![rows_of(vec![("t", texts(&first, &[Some(0)]))])];
    let other: Vec<String> = (0..40).map(|at| format!("other {at}")).collect();
    batches.extend(other.iter().map(|other| rows_of(vec![("t", texts(&[other], &[Some(0)]))])));
    assert_eq!(through(&batches[..20]).map(|read| read.len()), Ok(20));
    let error = through(&batches).expect_err("too often");
    assert!(
        error.starts_with("column `t`: the dictionary of the column changes too often for an Arrow file"),
        "{error}"
    );
    assert!(matches!(batches[0].column(0).data_type(), DataType::Dictionary(..)));
}
