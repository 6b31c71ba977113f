//! Files that other programs write, in forms that the libraries used here do not write: INT96 timestamps in Parquet, and Arrow files with
//! their schema only in the footer.

use super::*;
use crate::conversion::Conversion;
use ::parquet::arrow::arrow_writer::ArrowWriterOptions;
use ::parquet::arrow::{ArrowWriter, add_encoded_arrow_schema_to_metadata};
use ::parquet::basic::Compression;
use ::parquet::column::writer::ColumnWriter;
use ::parquet::data_type::Int96;
use ::parquet::file::properties::WriterProperties;
use ::parquet::file::writer::SerializedFileWriter;
use ::parquet::schema::parser::parse_message_type;
use arrow_array::{
    ArrayRef, BooleanArray, FixedSizeBinaryArray, Int64Array, IntervalDayTimeArray, RecordBatch, StringArray,
    TimestampNanosecondArray,
};
use arrow_buffer::IntervalDayTime;
use arrow_ipc::writer::FileWriter;
use arrow_schema::{DataType, Field, Schema};
use std::io::Cursor;
use std::sync::Arc;

/// An INT96 timestamp, from days since 1970-01-01 and nanoseconds of the day.
fn int96(day: i64, nanoseconds: u64) -> Int96 {
    let mut value = Int96::new();
    let day = u32::try_from(day + 2_440_588).expect("a day");
    value.set_data(nanoseconds as u32, (nanoseconds >> 32) as u32, day);
    value
}

/// A file with timestamps in a column `t`, in a struct `s` of one field, and twice in a list `l`. The second row is missing; the others have
/// `values`.
fn of_int96(values: &[Int96], properties: WriterProperties) -> Vec<u8> {
    let schema = "message m { optional int96 t; required group s { optional int96 at; }
        required group l (LIST) { repeated group list { optional int96 element; } } }";
    let schema = Arc::new(parse_message_type(schema).expect("a schema"));
    let mut bytes = Vec::new();
    let mut file = SerializedFileWriter::new(&mut bytes, schema, Arc::new(properties)).expect("a writer");
    let mut group = file.next_row_group().expect("rows");
    let rows = values.len() + 1;
    let there: Vec<i16> = (0..rows).map(|row| i16::from(row != 1)).collect();
    let mut column = 0;
    while let Some(mut writer) = group.next_column().expect("a column") {
        let ColumnWriter::Int96ColumnWriter(typed) = writer.untyped() else { panic!("another column") };
        let twice: Vec<Int96> = values.iter().flat_map(|value| [*value; 2]).collect();
        if column < 2 {
            typed.write_batch(values, Some(&there), None).expect("values");
        } else {
            // A missing value is an empty list in `l`.
            let (mut definitions, mut repetitions) = (Vec::new(), Vec::new());
            for row in 0..rows {
                definitions.extend_from_slice(if row == 1 { &[0] } else { &[2, 2] });
                repetitions.extend_from_slice(if row == 1 { &[0] } else { &[0, 1] });
            }
            typed.write_batch(&twice, Some(&definitions), Some(&repetitions)).expect("values");
        }
        writer.close().expect("an end");
        column += 1;
    }
    group.close().expect("an end");
    file.close().expect("an end");
    bytes
}

fn read(format: Format, bytes: &[u8], wanted: &[(&str, Option<QType>)]) -> Result<Vec<Vec<String>>, String> {
    let said = |error: crate::error::DataError| error.to_string();
    let data = Dataset::open(Input::new("rows", Cursor::new(bytes.to_vec())), &options(format, &[])).map_err(said)?;
    let read = rows(data.bind(&request(wanted)).map_err(said)?)?;
    Ok(read.iter().map(|row| row.iter().map(ToString::to_string).collect()).collect())
}

/// The library itself would read nanoseconds, which wrap around outside of the years 1677 to 2262.
#[test]
fn timestamps_of_twelve_bytes_are_of_any_year() {
    let values = [
        int96(2_932_896, 86_399_999_999_999),
        int96(-354_285, 0),
        int96(-1, 86_399_999_999_999),
        int96(19_875, 43_200_000_000_000),
    ];
    let expected = [
        Some("9999-12-31T23:59:59.999999Z"),
        None,
        Some("1000-01-01T00:00:00Z"),
        Some("1969-12-31T23:59:59.999999Z"),
        Some("2024-06-01T12:00:00Z"),
    ];
    for has_dictionary in [true, false] {
        let properties = WriterProperties::builder().set_dictionary_enabled(has_dictionary).build();
        let bytes = of_int96(&values, properties);
        let found = read(Format::Parquet, &bytes, &[("t", None), ("s", None), ("l", None)]).expect("rows");
        for (row, expected) in found.iter().zip(expected) {
            let told = expected.unwrap_or("Z");
            let counts = row.iter().map(|cell| cell.matches(told).count());
            let wanted = if expected.is_some() { [1, 1, 2] } else { [0; 3] };
            assert_eq!(counts.collect::<Vec<_>>(), wanted, "{row:?}");
        }
        assert_eq!(found.len(), expected.len());
    }
    // A timestamp that does not fit into microseconds is an error and not a wrapped time.
    for has_dictionary in [true, false] {
        let properties = WriterProperties::builder().set_dictionary_enabled(has_dictionary).build();
        let bytes = of_int96(&[int96(200_000_000, 0)], properties);
        let error = read(Format::Parquet, &bytes, &[("t", None)]).expect_err("too far");
        assert!(error.contains("a timestamp is more than 106000000 days from 1970"), "{error}");
    }
}

#[test]
fn a_codec_that_is_not_read_is_named() {
    let column: ArrayRef = Arc::new(Int64Array::from(vec![1, 2, 3]));
    let rows = RecordBatch::try_from_iter([("a", column.clone()), ("b", column)]).expect("rows");
    let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
    let bytes = hostile::parquet_with(&rows, properties);
    assert_eq!(read(Format::Parquet, &bytes, &[("b", None)]).map(|rows| rows.len()), Ok(3));
    // The codec of a column in the footer, after its path, which is a list of one name.
    let changed = hostile::replaced(&bytes, &[0x18, 1, b'b', 0x15, 2], &[0x18, 1, b'b', 0x15, 8]);
    let told = changed.iter().filter_map(|bytes| read(Format::Parquet, bytes, &[("b", None)]).err());
    let expected = "rows: column `b`: the pages are compressed with brotli, but only snappy, zstd, lz4 or no compression is supported; \
        write the file with another codec, such as `compression=\"zstd\"` in pandas and pyarrow";
    assert!(told.into_iter().any(|error| error == expected), "{}", changed.len());
    // The codec of a column that is not read does not matter.
    assert!(changed.iter().any(|bytes| read(Format::Parquet, bytes, &[("a", None)]).is_ok_and(|rows| rows.len() == 3)));
}

#[test]
fn nanoseconds_are_rounded_down_before_1970_too() {
    let counts: ArrayRef =
        Arc::new(TimestampNanosecondArray::from(vec![-1, 1, -1_001, 999, i64::MIN]).with_timezone("UTC"));
    let rows = RecordBatch::try_from_iter([("t", counts)]).expect("rows");
    let mut bytes = Vec::new();
    let mut writer = FileWriter::try_new(&mut bytes, &rows.schema()).expect("a writer");
    writer.write(&rows).and_then(|()| writer.finish()).expect("an end");
    drop(writer);
    let found = read(Format::Arrow, &bytes, &[("t", None)]).expect("rows").concat();
    let expected = [
        "1969-12-31T23:59:59.999999Z",
        "1970-01-01T00:00:00Z",
        "1969-12-31T23:59:59.999998Z",
        "1970-01-01T00:00:00Z",
        "1677-09-21T00:12:43.145224Z",
    ];
    assert!(found.iter().zip(expected).all(|(found, of)| found.contains(of)) && found.len() == 5, "{found:?}");
}

/// A broken file may have a map that the library panics on.
#[test]
fn maps_without_a_key_and_a_value_are_refused() {
    let map = |fields: Vec<Field>| {
        DataType::Map(Arc::new(Field::new("entries", DataType::Struct(fields.into()), false)), false)
    };
    let pair = ["key", "value"].map(|name| Field::new(name, DataType::Int64, name == "value")).to_vec();
    let plan = |of: DataType| {
        let inside = DataType::List(Arc::new(Field::new_list_field(of, true)));
        let schema = Schema::new(vec![Field::new("m", inside, true)]);
        let request = Request { keep: Keep::All, ..Request::default() };
        let planned = Conversion::plan(&schema, &request, false, u64::MAX, Spelling::default());
        planned.map(drop).map_err(|error| error.to_string())
    };
    assert_eq!(plan(map(pair.clone())), Ok(()));
    for fields in [vec![], pair[..1].to_vec()] {
        assert_eq!(plan(map(fields)), Err("column `m`: the type has a map without a key and a value".to_owned()));
    }
}

/// pandas writes a category of booleans as booleans, and declares a dictionary.
#[test]
fn dictionaries_of_other_values_than_strings_are_read_as_these() {
    let flags: ArrayRef = Arc::new(BooleanArray::from(vec![Some(true), None, Some(false)]));
    let codes = [Some([1_u8, 2]), None, Some([3, 4])];
    let codes: ArrayRef =
        Arc::new(FixedSizeBinaryArray::try_from_sparse_iter_with_size(codes.into_iter(), 2).expect("bytes"));
    let rows = RecordBatch::try_from_iter([("flag", flags), ("code", codes)]).expect("rows");
    let dictionary = |field: &Arc<Field>| {
        let of = DataType::Dictionary(DataType::Int8.into(), field.data_type().clone().into());
        Field::clone(field).with_data_type(of)
    };
    let said = Schema::new(rows.schema().fields().iter().map(dictionary).collect::<Vec<_>>());
    let mut properties = WriterProperties::default();
    add_encoded_arrow_schema_to_metadata(&said, &mut properties);
    let written = ArrowWriterOptions::new().with_properties(properties).with_skip_arrow_metadata(true);
    let mut bytes = Vec::new();
    let mut writer = ArrowWriter::try_new_with_options(&mut bytes, rows.schema(), written).expect("a writer");
    writer.write(&rows).and_then(|()| writer.finish()).expect("an end");
    drop(writer);
    let found = read(Format::Parquet, &bytes, &[("flag", None), ("code", None)]).expect("rows");
    assert_eq!(found.len(), 3, "{found:?}");
    assert!(found[0][0].contains("true") && found[1][0].contains("NA") && found[2][0].contains("false"), "{found:?}");
}

/// The library reads either the months or the days of Parquet's intervals, so the other part would be lost silently.
#[test]
fn intervals_are_refused_unless_a_schema_says_their_parts() {
    let spans: ArrayRef = Arc::new(IntervalDayTimeArray::from(vec![IntervalDayTime::new(2, 3_000)]));
    let numbers: ArrayRef = Arc::new(Int64Array::from(vec![1]));
    let rows = RecordBatch::try_from_iter([("span", spans), ("n", numbers)]).expect("rows");
    let read = |skips: bool, keep: Keep| {
        let written = ArrowWriterOptions::new().with_skip_arrow_metadata(skips);
        let mut bytes = Vec::new();
        let mut writer = ArrowWriter::try_new_with_options(&mut bytes, rows.schema(), written).expect("a writer");
        writer.write(&rows).and_then(|()| writer.finish()).expect("an end");
        drop(writer);
        let data =
            Dataset::open(Input::new("rows", Cursor::new(bytes)), &options(Format::Parquet, &[])).expect("a schema");
        data.bind(&Request { keep, ..request(&[("n", None)]) }).map(drop).map_err(|error| error.to_string())
    };
    let told = "rows: column `span`: a Parquet INTERVAL cannot be read: it has months besides days; \
        write the interval as text, as in SQL `CAST(span AS VARCHAR)`, or leave the column out";
    assert_eq!(read(true, Keep::All), Err(told.to_owned()));
    assert_eq!((read(true, Keep::None), read(false, Keep::All)), (Ok(()), Ok(())));
}

/// Polars writes the first schema without its length, so the schema is read from the footer, which may begin at any byte.
#[test]
fn arrow_files_are_read_by_their_table_of_contents() {
    let numbers: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), None, Some(3)]));
    let texts: ArrayRef = Arc::new(StringArray::from(vec![Some("x"), Some("yy"), None]));
    let rows = RecordBatch::try_from_iter([("a", numbers), ("s", texts)]).expect("rows");
    let mut bytes = Vec::new();
    let mut writer = FileWriter::try_new(&mut bytes, &rows.schema()).expect("a writer");
    for _ in 0..3 {
        writer.write(&rows).expect("rows");
    }
    writer.finish().expect("an end");
    drop(writer);
    let wanted = [("a", None), ("s", None)];
    let expected = read(Format::Arrow, &bytes, &wanted);
    assert_eq!(expected.as_ref().map(Vec::len), Ok(9));
    // The first message without its marker and its length.
    let at = bytes.windows(4).position(|word| word == [0xff; 4]).expect("a message");
    let len = u32::from_le_bytes(bytes[at + 4..at + 8].try_into().expect("four bytes")) as usize;
    bytes.copy_within(at + 8..at + 8 + len, at);
    bytes[at + len..at + len + 8].fill(0);
    let footer = u32::from_le_bytes(bytes[bytes.len() - 10..bytes.len() - 6].try_into().expect("four bytes")) as usize;
    let footer = bytes.len() - 10 - footer;
    for moved in 0..9 {
        let mut file = bytes.clone();
        file.splice(footer..footer, vec![0; moved]);
        assert_eq!(read(Format::Arrow, &file, &wanted), expected, "{moved}");
    }
    let cut = read(Format::Arrow, &bytes[..bytes.len() - 1], &wanted);
    assert_eq!(cut, Err("rows: not Arrow: the file ends in the middle".to_owned()));
}
