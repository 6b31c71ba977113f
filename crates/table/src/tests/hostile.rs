//! Files that declare wrong lengths or types: each gives rows, or an error that names the fault. No file ends the process or takes more
//! memory than the limit. Known attacks have their own tests; other tests change bytes at random.

use super::*;
use ::parquet::arrow::ArrowWriter;
use ::parquet::basic::{Compression, Encoding, ZstdLevel};
use ::parquet::file::properties::{WriterProperties, WriterVersion};
use ::parquet::schema::types::ColumnPath;
use arrow_array::builder::{Int64Builder, MapBuilder, StringBuilder};
use arrow_array::types::Int32Type;
use arrow_array::{
    ArrayRef, BinaryArray, BooleanArray, Decimal128Array, DictionaryArray, FixedSizeBinaryArray, FixedSizeListArray,
    Float64Array, Int32Array, Int64Array, LargeStringArray, ListArray, NullArray, RecordBatch, RunArray, StringArray,
    StringViewArray, StructArray, TimestampMillisecondArray, UInt8Array,
};
use arrow_buffer::{Buffer, OffsetBuffer};
use arrow_ipc::CompressionType;
use arrow_ipc::writer::{FileWriter, IpcWriteOptions, StreamWriter};
use arrow_schema::{DataType, Field, Schema};
use cembra::tensor::Tensor;
use cembra_runtime::ArrayKind;
use std::io::Cursor;
use std::path::Path;
use std::sync::Arc;

/// The memory limit of these tests, in bytes.
const MOST: u64 = 64 << 20;

/// The result of reading a file: the number of rows, or an error.
type RowCount = Result<usize, String>;

/// A table with a column of each kind.
fn table(rows: usize) -> RecordBatch {
    let texts: Vec<Option<String>> =
        (0..rows).map(|row| (row % 7 != 3).then(|| format!("text {}", row % 50))).collect();
    let numbers = (0..rows as i64).map(|row| (row % 5 != 1).then_some(row * 1_000_003));
    let lists = (0..rows).map(|row| Some((0..row % 6).map(|at| Some(at as i32)).collect::<Vec<_>>()));
    let dictionary: DictionaryArray<Int32Type> = texts.iter().map(Option::as_deref).collect();
    let bytes = texts.iter().map(|text| text.as_ref().map(String::as_bytes));
    let moments = TimestampMillisecondArray::from_iter_values((0..rows as i64).map(|row| row * 86_400_000));
    let fixed = FixedSizeListArray::from_iter_primitive::<Int32Type, _, _>(
        (0..rows).map(|row| Some([Some(row as i32), None])),
        2,
    );
    let widths = (0..rows).map(|row| [row as u8; 3]);
    let ends = Int32Array::from(vec![rows as i32 / 2, rows as i32]);
    let parts: Vec<(&str, ArrayRef)> = vec![
        ("n", Arc::new(numbers.collect::<Int64Array>())),
        ("x", Arc::new((0..rows).map(|row| Some(row as f64 * 0.25)).collect::<Float64Array>())),
        ("t", Arc::new(texts.iter().map(Option::as_deref).collect::<StringArray>())),
        ("large", Arc::new(texts.iter().map(Option::as_deref).collect::<LargeStringArray>())),
        ("view", Arc::new(texts.iter().map(Option::as_deref).collect::<StringViewArray>())),
        ("b", Arc::new(bytes.collect::<BinaryArray>())),
        ("flag", Arc::new((0..rows).map(|row| Some(row % 3 == 0)).collect::<BooleanArray>())),
        ("list", Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>(lists))),
        ("coded", Arc::new(dictionary)),
        ("at", Arc::new(moments.with_timezone("Europe/Zurich"))),
        ("fixed", Arc::new(fixed)),
        ("three", Arc::new(FixedSizeBinaryArray::try_from_iter(widths).expect("a width"))),
    ];
    let mut parts = parts;
    let decimals = Decimal128Array::from_iter_values((0..rows as i128).map(|row| row * 1_000_000_007 - 5));
    parts.push(("money", Arc::new(decimals.with_precision_and_scale(30, 4).expect("a scale"))));
    let of =
        |name: &str, array: &ArrayRef| (Arc::new(Field::new(name, array.data_type().clone(), true)), array.clone());
    parts.push(("struct", Arc::new(StructArray::from(vec![of("n", &parts[0].1), of("t", &parts[2].1)]))));
    parts.push(("runs", Arc::new(RunArray::<Int32Type>::try_new(&ends, &UInt8Array::from(vec![1, 2])).expect("runs"))));
    parts.push(("nothing", Arc::new(NullArray::new(rows))));
    let fields: Vec<Field> =
        parts.iter().map(|(name, array)| Field::new(*name, array.data_type().clone(), true)).collect();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), parts.into_iter().map(|(_, array)| array).collect())
        .expect("a table")
}

/// The table without the column `name`.
fn without(table: &RecordBatch, name: &str) -> RecordBatch {
    let columns: Vec<usize> = (0..table.num_columns()).filter(|at| table.schema().field(*at).name() != name).collect();
    table.project(&columns).expect("columns")
}

fn parquet(table: &RecordBatch, compression: Compression, version: WriterVersion) -> Vec<u8> {
    let properties = WriterProperties::builder().set_compression(compression).set_writer_version(version);
    parquet_with(table, properties.build())
}

pub(super) fn parquet_with(table: &RecordBatch, properties: WriterProperties) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut bytes, table.schema(), Some(properties)).expect("a writer");
    writer.write(table).expect("rows");
    writer.close().expect("an end");
    bytes
}

fn arrow(table: &RecordBatch, compression: Option<CompressionType>, is_file: bool) -> Vec<u8> {
    let options = IpcWriteOptions::default().try_with_compression(compression).expect("options");
    let (mut bytes, schema) = (Vec::new(), table.schema());
    if is_file {
        let mut writer = FileWriter::try_new_with_options(&mut bytes, &schema, options).expect("a writer");
        writer.write(table).and_then(|()| writer.finish()).expect("rows");
    } else {
        let mut writer = StreamWriter::try_new_with_options(&mut bytes, &schema, options).expect("a writer");
        writer.write(table).and_then(|()| writer.finish()).expect("rows");
    }
    bytes
}

fn text(table: &RecordBatch, format: Format) -> Vec<u8> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("rows");
    write(table, format, Output::create(&path).expect("a file"));
    std::fs::read(&path).expect("bytes")
}

fn write(rows: &RecordBatch, format: Format, output: Output) {
    let schema = rows.schema();
    let fields = schema.fields().iter();
    let named = fields.map(|of| Named { name: of.name().clone(), form: Form::Foreign(of.data_type().clone()) });
    let named: Vec<Named> = named.collect();
    let options = WriteOptions { format, null: None, delimiter: None, decimal_comma: false, most_bytes: u64::MAX };
    let mut sink = sink::open(&options, output, &named, &schema).expect("a sink");
    sink.write(rows).expect("rows");
    sink.finish().and_then(Output::commit).expect("an end");
}

/// Reads all columns of a table, as inputs where possible and copied to the results, and writes the latter.
fn read_table(format: Format, bytes: &[u8]) -> RowCount {
    // The caller knows the file, so its name is left out.
    let said = |error: crate::error::DataError| error.to_string().trim_start_matches("rows: ").to_owned();
    let options = ReadOptions { most_bytes: MOST, batch_rows: 100, ..options(format, &[]) };
    let input = |bytes: &[u8]| Input::new("rows", Cursor::new(bytes.to_vec()));
    let open = || Dataset::open(input(bytes), &options).map_err(said);
    let wanted = |name: &&str| open().and_then(|data| data.bind(&request(&[(name, None)])).map_err(said)).is_ok();
    let leaves: Vec<(&str, Option<QType>)> =
        ["n", "t", "list", "coded", "at"].iter().filter(|name| wanted(name)).map(|name| (*name, None)).collect();
    let mut table = open()?.bind(&Request { keep: Keep::All, ..request(&leaves) }).map_err(said)?;
    let mut rows = 0;
    // A file may declare endless rows, if its columns take no memory.
    for _ in 0..50 {
        let Some(piece) = table.source.next().map_err(said)? else { break };
        let Decoded { batch, error, .. } = piece.decode();
        rows += batch.rows.num_rows();
        for format in [Format::Csv, Format::JsonLines] {
            write(&batch.rows, format, Output::create(Path::new("/dev/null")).expect("a device"));
        }
        if let Some(error) = error {
            return Err(said(error));
        }
    }
    Ok(rows)
}

fn read_arrays(bytes: &[u8]) -> RowCount {
    let read = if crate::numpy::is_npz(bytes) {
        crate::numpy::read_npz(Cursor::new(bytes), |_| true, MOST).map(|arrays| arrays.len())
    } else {
        crate::numpy::read_npy(bytes).map(|tensor| tensor.extents().iter().product())
    };
    read.map_err(|error| error.to_string())
}

fn npz(options: zip::CompressionMethod) -> Vec<u8> {
    let mut archive = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for (name, elements) in [("a.npy", 300), ("b.npy", 1)] {
        let of = zip::write::SimpleFileOptions::default().compression_method(options);
        archive.start_file(name, of).expect("a file");
        let numbers: Vec<f64> = (0..elements).map(f64::from).collect();
        let tensor = Tensor::new(&[elements as usize], numbers).expect("a tensor");
        crate::numpy::write_npy(&mut archive, &tensor).expect("an array");
    }
    archive.finish().expect("an archive").into_inner()
}

/// A function that reads a file.
type Reader = Box<dyn Fn(&[u8]) -> RowCount>;

/// Files of every format, with their readers.
fn files() -> Vec<(String, Vec<u8>, Reader)> {
    let (whole, mut files) = (table(240), Vec::<(String, Vec<u8>, Reader)>::new());
    // Parquet has no run-end encoding, and JSON does not declare the type of lists that differ in length.
    let parquet_rows = without(&whole, "runs");
    let text_rows = without(&parquet_rows, "list");
    let of = |format| -> Reader { Box::new(move |bytes| read_table(format, bytes)) };
    for format in [Format::Csv, Format::Json, Format::JsonLines] {
        files.push((format!("{format:?}"), text(&text_rows, format), of(format)));
    }
    let zstd = Compression::ZSTD(ZstdLevel::default());
    for (compression, version) in [
        (Compression::UNCOMPRESSED, WriterVersion::PARQUET_1_0),
        (Compression::SNAPPY, WriterVersion::PARQUET_1_0),
        (Compression::LZ4_RAW, WriterVersion::PARQUET_2_0),
        (Compression::LZ4, WriterVersion::PARQUET_1_0),
        (zstd, WriterVersion::PARQUET_2_0),
        (zstd, WriterVersion::PARQUET_1_0),
    ] {
        let bytes = parquet(&parquet_rows, compression, version);
        files.push((format!("Parquet {compression} {version:?}"), bytes, of(Format::Parquet)));
    }
    for encoding in [Encoding::DELTA_LENGTH_BYTE_ARRAY, Encoding::DELTA_BYTE_ARRAY] {
        let strings = ["t", "large", "view", "b"].map(|name| (ColumnPath::from(name), encoding));
        let properties = WriterProperties::builder().set_compression(zstd).set_dictionary_enabled(false);
        let properties = strings.into_iter().fold(properties, |all, (name, of)| all.set_column_encoding(name, of));
        let bytes = parquet_with(&parquet_rows, properties.build());
        files.push((format!("Parquet {encoding}"), bytes, of(Format::Parquet)));
    }
    for is_file in [true, false] {
        for compression in [None, Some(CompressionType::LZ4_FRAME), Some(CompressionType::ZSTD)] {
            files.push((
                format!("Arrow {is_file} {compression:?}"),
                arrow(&whole, compression, is_file),
                of(Format::Arrow),
            ));
        }
    }
    let mut npy = Vec::new();
    let tensor = Tensor::new(&[20, 15], (0..300).collect::<Vec<i32>>()).expect("a tensor");
    crate::numpy::write_npy(&mut npy, &tensor).expect("an array");
    files.push(("npy".to_owned(), npy, Box::new(read_arrays)));
    for method in [zip::CompressionMethod::Stored, zip::CompressionMethod::Deflated] {
        files.push((format!("npz {method}"), npz(method), Box::new(read_arrays)));
    }
    files
}

/// Changes bytes at random: single bytes, the number of bytes, or values that may be lengths.
fn changed(bytes: &[u8], random: &mut fastrand::Rng) -> Vec<u8> {
    const LENGTHS: [u64; 9] = [0, 1, 0x7f, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff, 1 << 40, i64::MAX as u64, u64::MAX];
    let mut bytes = bytes.to_vec();
    for _ in 0..random.usize(1..4) {
        if bytes.is_empty() {
            break;
        }
        let at = random.usize(..bytes.len());
        match random.u8(..10) {
            0..=4 => bytes[at] = random.u8(..),
            5 => bytes[at] ^= 1 << random.u8(..8),
            6 | 7 => {
                let number = LENGTHS[random.usize(..LENGTHS.len())].to_le_bytes();
                let width = if random.bool() { 4 } else { 8 };
                let at = if random.bool() { at & !3 } else { at };
                for (place, byte) in bytes[at..].iter_mut().zip(&number[..width]) {
                    *place = *byte;
                }
            }
            8 => {
                let end = at + random.usize(..64.min(bytes.len() - at));
                let piece = bytes[at..end].to_vec();
                if random.bool() {
                    bytes.drain(at..end);
                } else {
                    bytes.splice(at..at, piece);
                }
            }
            _ if random.u8(..4) == 0 => bytes.truncate(at),
            _ => bytes[at] = 0xff,
        }
    }
    bytes
}

/// Reads files after `count` random changes; returns how many were read and how many failed.
fn changes(count: usize, seed: u64) -> (usize, usize) {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        if !crate::is_guarded() {
            usual(info);
        }
    }));
    let files = files();
    for (name, bytes, read) in &files {
        assert!(read(bytes).is_ok(), "{name}: {:?}", read(bytes));
    }
    let mut random = fastrand::Rng::with_seed(seed);
    let (mut rows, mut errors) = (0, 0);
    for at in 0..count {
        let (_, bytes, read) = &files[at % files.len()];
        match read(&changed(bytes, &mut random)) {
            Ok(_) => rows += 1,
            Err(_) => errors += 1,
        }
    }
    (rows, errors)
}

#[test]
fn files_whose_bytes_were_changed_are_rows_or_errors() {
    let (rows, errors) = changes(1_000, 1);
    // Most changes are in values; the others break the structure.
    assert!(rows > 100 && errors > 100, "{rows} read, {errors} errors");
}

#[test]
fn other_files_whose_bytes_were_changed_are_rows_or_errors() {
    let (rows, errors) = changes(1_000, 3);
    assert!(rows > 100 && errors > 100, "{rows} read, {errors} errors");
}

#[test]
#[ignore = "minutes: run for a release"]
fn a_hundred_thousand_changed_files_are_rows_or_errors() {
    let (rows, errors) = changes(100_000, 2);
    assert!(rows > 10_000 && errors > 10_000, "{rows} read, {errors} errors");
    #[cfg(target_os = "linux")]
    {
        let taken = most_memory();
        // The memory limit for a file, a quarter more, and the process's own memory.
        assert!(taken < MOST as usize * 5 / 4 + (200 << 20), "{} MiB", taken >> 20);
    }
}

/// A Parquet footer with the columns `columns`, given by their numbers of children.
fn footer(columns: &[u32]) -> Vec<u8> {
    let varint = |mut number: u64| {
        let mut bytes = Vec::new();
        while number > 0x7f {
            bytes.push(number as u8 | 0x80);
            number >>= 7;
        }
        bytes.push(number as u8);
        bytes
    };
    let mut metadata = vec![0x15, 2, 0x19, 0xfc];
    metadata.extend(varint(columns.len() as u64));
    for children in columns {
        match children {
            // A required integer called `x`.
            0 => metadata.extend([0x15, 2, 0x25, 0, 0x18, 1, b'x', 0]),
            _ => {
                metadata.extend([0x35, 0, 0x18, 1, b'x', 0x15]);
                metadata.extend(varint(2 * u64::from(*children)));
                metadata.push(0);
            }
        }
    }
    // No rows and no row groups.
    metadata.extend([0x16, 0, 0x19, 0x0c, 0]);
    let len = metadata.len() as u32;
    [b"PAR1", metadata.as_slice(), &len.to_le_bytes(), b"PAR1"].concat()
}

fn refused(format: Format, bytes: &[u8]) -> String {
    read_table(format, bytes).expect_err("it is refused")
}

#[test]
fn parquet_that_nests_too_deep_is_refused_before_it_is_read() {
    let nested = |depth: usize| [vec![1; depth], vec![0]].concat();
    assert_eq!(
        refused(Format::Parquet, &footer(&nested(100_000))),
        "not Parquet: columns are nested more than 128 deep, which is the limit"
    );
    assert_eq!(
        refused(Format::Parquet, &footer(&nested(129))),
        "not Parquet: columns are nested more than 128 deep, which is the limit"
    );
    assert!(read_table(Format::Parquet, &footer(&[2, 0, 1, 0])).expect_err("one name").contains("two columns"));
    assert_eq!(read_table(Format::Parquet, &footer(&nested(40))), Ok(0));
    // Columns that nest too deep to be shown are not a fault of the file.
    assert!(refused(Format::Parquet, &footer(&nested(128))).contains("the type is nested too deep to be written"));
    assert_eq!(
        refused(Format::Parquet, &footer(&[1 << 30])),
        "not Parquet: the schema has fewer columns than it declares"
    );
    assert_eq!(
        refused(Format::Parquet, &footer(&[1, 0, 0])),
        "not Parquet: the schema has more columns than it declares"
    );
}

#[test]
fn the_lengths_of_parquet_are_looked_at() {
    let mut bytes = footer(&[1, 0]);
    let end = bytes.len();
    bytes[end - 8..end - 4].copy_from_slice(&0x7fff_ffff_u32.to_le_bytes());
    assert_eq!(refused(Format::Parquet, &bytes), "not Parquet: the file is shorter than its footer");
    assert_eq!(refused(Format::Parquet, b"PAR1"), "not Parquet: the file is shorter than its footer");
    // A list of two billion columns in ten bytes.
    let metadata = [0x15, 2, 0x19, 0xfc, 0xff, 0xff, 0xff, 0xff, 0x07];
    let bytes = [b"PAR1", metadata.as_slice(), &9_u32.to_le_bytes(), b"PAR1"].concat();
    assert_eq!(
        refused(Format::Parquet, &bytes),
        "not Parquet: its footer: the length of a list is not valid in Thrift"
    );
    // Equal values: a page of a few bytes becomes a large one.
    let same: ArrayRef = Arc::new(StringArray::from(vec!["x".repeat(900_000)]));
    let rows = RecordBatch::try_from_iter([("x", same)]).expect("rows");
    let bytes = parquet(&rows, Compression::ZSTD(ZstdLevel::default()), WriterVersion::PARQUET_1_0);
    assert!(bytes.len() < 20_000, "{}", bytes.len());
    let read = |most_bytes| {
        let options = ReadOptions { most_bytes, ..options(Format::Parquet, &[]) };
        let data = Dataset::open(Input::new("rows", Cursor::new(bytes.clone())), &options)
            .map_err(|error| error.to_string())?;
        rows_of(data.bind(&Request { keep: Keep::All, ..Request::default() }).map_err(|error| error.to_string())?)
    };
    assert_eq!(read(4 << 20), Ok(1));
    let error = read(1 << 20).expect_err("more than may be");
    assert!(error.contains("the pages of the next rows have"), "{error}");
    assert!(error.ends_with("; raise the limit: `--set-limit array_bytes=..`"), "{error}");
}

/// A string of many rows is in the file once. Rows share it if the column is an input. A column copied to the results has a copy for each
/// row, so the copies must fit the limit.
#[test]
fn strings_of_parquet_take_no_more_than_they_may() {
    let read = |bytes: &[u8], most_bytes, request: &Request| {
        let options = ReadOptions { most_bytes, ..options(Format::Parquet, &[]) };
        let input = Input::new("rows", Cursor::new(bytes.to_vec()));
        let data = Dataset::open(input, &options).map_err(|error| error.to_string())?;
        let mut table = data.bind(request).map_err(|error| error.to_string())?;
        let mut rows = 0;
        while let Some(piece) = table.source.next().map_err(|error| error.to_string())? {
            let decoded = piece.decode();
            if let Some(error) = decoded.error {
                return Err(error.to_string());
            }
            let bytes = decoded.batch.rows.get_array_memory_size();
            assert!(bytes as u64 <= most_bytes, "{bytes} bytes");
            rows += decoded.batch.rows.num_rows();
        }
        Ok(rows)
    };
    let input = |qtype: QType| Request {
        leaves: vec![RequestedLeaf { name: "x".to_owned(), qtype: Some(qtype), is_empty_by_default: false }],
        ..Request::default()
    };
    let carried = || Request { keep: Keep::All, ..Request::default() };
    let packed = |column: ArrayRef| {
        let rows = RecordBatch::try_from_iter([("x", column)]).expect("rows");
        let bytes = parquet(&rows, Compression::ZSTD(ZstdLevel::default()), WriterVersion::PARQUET_1_0);
        assert!(bytes.len() < 20_000, "{}", bytes.len());
        bytes
    };
    let long = "y".repeat(500_000);
    let shared = packed(Arc::new(StringArray::from(vec![long.as_str(); 60])));
    assert_eq!(read(&shared, 8 << 20, &input(QType::Scalar(Scalar::Text))), Ok(60));
    let error = read(&shared, 8 << 20, &carried()).expect_err("thirty megabytes");
    assert!(
        error.starts_with("column `x`: the strings of the rows that are read at once have 30000000 bytes"),
        "{error}"
    );
    assert_eq!(read(&shared, 32 << 20, &carried()), Ok(60));
    let bytes = packed(Arc::new(BinaryArray::from(vec![long.as_bytes(); 60])));
    assert_eq!(read(&bytes, 8 << 20, &input(QType::Scalar(Scalar::Bytes))), Ok(60));
    assert!(read(&bytes, 8 << 20, &carried()).is_err());
    // Elements of lists are counted too.
    let element = Arc::new(Field::new_list_field(DataType::Utf8, true));
    let texts: ArrayRef = Arc::new(StringArray::from(vec![long.as_str(); 60]));
    let lists = packed(Arc::new(ListArray::new(element, OffsetBuffer::from_lengths([20; 3]), texts, None)));
    assert_eq!(read(&lists, 8 << 20, &input(QType::Array(ArrayKind::Dense, Scalar::Text))), Ok(3));
    assert_eq!(read(&lists, 32 << 20, &carried()), Ok(3));
    let error = read(&lists, 8 << 20, &carried()).expect_err("thirty megabytes");
    assert!(
        error.starts_with("column `x`: the strings of the rows that are read at once have 30000000 bytes"),
        "{error}"
    );
    // Strings in structs and maps are counted too.
    let texts: ArrayRef = Arc::new(StringArray::from(vec![long.as_str(); 60]));
    let structs = StructArray::from(vec![(Arc::new(Field::new("t", DataType::Utf8, true)), texts)]);
    let mut maps = MapBuilder::new(None, Int64Builder::new(), StringBuilder::new());
    for key in 0..60 {
        maps.keys().append_value(key);
        maps.values().append_value(&long);
        maps.append(true).expect("as many keys as values");
    }
    for column in [Arc::new(structs) as ArrayRef, Arc::new(maps.finish())] {
        let column = packed(column);
        assert_eq!(read(&column, 32 << 20, &carried()), Ok(60));
        let error = read(&column, 8 << 20, &carried()).expect_err("thirty megabytes");
        assert!(
            error.starts_with("column `x`: the strings of the rows that are read at once have 30000000 bytes"),
            "{error}"
        );
    }
    // The limit applies to all columns together.
    let texts: ArrayRef = Arc::new(StringArray::from(vec![long.as_str(); 40]));
    let rows = RecordBatch::try_from_iter([("x", texts.clone()), ("y", texts)]).expect("rows");
    let both = parquet(&rows, Compression::ZSTD(ZstdLevel::default()), WriterVersion::PARQUET_1_0);
    assert_eq!(read(&both, 48 << 20, &carried()), Ok(40));
    let error = read(&both, 32 << 20, &carried()).expect_err("forty megabytes");
    assert!(
        error.starts_with("column `y`: the strings of the rows that are read at once have 20000000 bytes"),
        "{error}"
    );
    // Distinct strings are in the pages, whose sizes are added up.
    let others: StringArray = (0..60).map(|at| Some(format!("{at}{long}"))).collect();
    let others = packed(Arc::new(others));
    assert_eq!(read(&others, 64 << 20, &input(QType::Scalar(Scalar::Text))), Ok(60));
    let error = read(&others, 8 << 20, &input(QType::Scalar(Scalar::Text))).expect_err("thirty megabytes");
    assert!(error.contains("the pages of the next rows have"), "{error}");
}

/// The number of rows of a table.
fn rows_of(mut table: Table) -> Result<usize, String> {
    let mut rows = 0;
    while let Some(piece) = table.source.next().map_err(|error| error.to_string())? {
        let decoded = piece.decode();
        rows += decoded.batch.rows.num_rows();
        if let Some(error) = decoded.error {
            return Err(error.to_string());
        }
    }
    Ok(rows)
}

/// Replaces one occurrence of `found` at a time; returns one result per occurrence.
pub(super) fn replaced(bytes: &[u8], found: &[u8], by: &[u8]) -> Vec<Vec<u8>> {
    let places = bytes.windows(found.len()).enumerate().filter(|(_, there)| *there == found);
    let with = |at: usize| [&bytes[..at], by, &bytes[at + found.len()..]].concat();
    places.map(|(at, _)| with(at)).collect()
}

#[test]
fn lengths_of_arrow_are_looked_at() {
    let metadata = |len: i32| [&[0xff; 4], len.to_le_bytes().as_slice(), &[0; 8]].concat();
    let error = refused(Format::Arrow, &metadata(i32::MAX));
    assert!(error.starts_with("the metadata have 2147483647 bytes; the limit is 67108864 / 64 bytes"), "{error}");
    assert_eq!(refused(Format::Arrow, &metadata(i32::MIN)), "not Arrow: the length of a message is negative");
    assert_eq!(refused(Format::Arrow, &metadata(1 << 19)), "not Arrow: the data end in the middle of a message");
    assert_eq!(refused(Format::Arrow, b"x,y\n1,2\n"), "not Arrow: expected the start of a message");
    let zeros: ArrayRef = Arc::new(Int64Array::from(vec![0; 4_096]));
    let rows = RecordBatch::try_from_iter([("x", zeros)]).expect("rows");
    for codec in [CompressionType::LZ4_FRAME, CompressionType::ZSTD] {
        let bytes = arrow(&rows, Some(codec), false);
        assert_eq!(read_table(Format::Arrow, &bytes), Ok(4_096));
        for (says, message) in [
            (1_u64 << 40, "claims to have 1099511627776 bytes"),
            (i64::MAX as u64, "claims to have 9223372036854775807 bytes"),
            (1 << 63, "a buffer declares a negative uncompressed size"),
        ] {
            let changed = replaced(&bytes, &32_768_u64.to_le_bytes(), &says.to_le_bytes());
            let errors: Vec<RowCount> = changed.iter().map(|bytes| read_table(Format::Arrow, bytes)).collect();
            assert!(
                errors.iter().any(|error| error.as_ref().is_err_and(|error| error.contains(message))),
                "{errors:?}"
            );
        }
    }
    // More than the limit in total.
    let many: ArrayRef = Arc::new(Int64Array::from(vec![0; 9 << 20]));
    let rows = RecordBatch::try_from_iter([("x", many)]).expect("rows");
    let bytes = arrow(&rows, Some(CompressionType::ZSTD), false);
    assert!(bytes.len() < 100_000, "{}", bytes.len());
    assert!(refused(Format::Arrow, &bytes).contains("the buffers of a message exceed the limit of 67108864 bytes"));
    // The declared length is too small: LZ4 decompresses the frame to its end.
    let bytes = arrow(&rows, Some(CompressionType::LZ4_FRAME), false);
    let says = (9_u64 << 23).to_le_bytes();
    let errors: Vec<RowCount> =
        replaced(&bytes, &says, &8_u64.to_le_bytes()).iter().map(|bytes| read_table(Format::Arrow, bytes)).collect();
    let found = "the buffers of a message exceed the limit of 67108864 bytes";
    assert!(errors.iter().any(|error| error.as_ref().is_err_and(|error| error.contains(found))), "{errors:?}");
}

#[test]
fn arrow_that_its_library_panics_on_is_an_error() {
    let numbers: ArrayRef = Arc::new(Int32Array::from(vec![1, 2, 3]));
    let rows = RecordBatch::try_from_iter([("x", numbers)]).expect("rows");
    let bytes = arrow(&rows, None, false);
    let errors = replaced(&bytes, &32_u32.to_le_bytes(), &33_u32.to_le_bytes());
    let errors: Vec<RowCount> = errors.iter().map(|bytes| read_table(Format::Arrow, bytes)).collect();
    let expected = Err("column `x`: the type Int33 cannot be read".to_owned());
    assert!(errors.contains(&expected), "{errors:?}");
}

#[test]
fn elements_that_take_no_memory_are_not_more_than_rows() {
    let lists = |of: i32| -> ArrayRef {
        let field = Arc::new(Field::new_list_field(DataType::Null, true));
        let ends = OffsetBuffer::new(Buffer::from_vec(vec![0_i32, of]).into());
        Arc::new(ListArray::new(field, ends, Arc::new(NullArray::new(of as usize)), None))
    };
    let read = |of| {
        let rows = RecordBatch::try_from_iter([("list", lists(of))]).expect("rows");
        read_table(Format::Arrow, &arrow(&rows, None, false))
    };
    assert_eq!(read(50), Ok(1));
    assert_eq!(read(i32::MAX), Err("not Arrow: a column has more elements than its bytes can hold".to_owned()));
}

#[test]
fn archives_that_inflate_take_what_they_may_and_no_more() {
    let mut archive = zip::ZipWriter::new(Cursor::new(Vec::new()));
    let of = zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Deflated);
    archive.start_file("a.npy", of).expect("a file");
    let header = |elements: u64| {
        let text = format!("{{'descr': '<f8', 'fortran_order': False, 'shape': ({elements},), }}");
        [b"\x93NUMPY\x01\x00", &(text.len() as u16).to_le_bytes()[..], text.as_bytes()].concat()
    };
    archive.write_all(&header(8 << 20)).expect("a header");
    archive.write_all(&vec![0; 1 << 20]).expect("elements");
    let short = archive.finish().expect("an archive").into_inner();
    assert!(short.len() < 10_000, "{}", short.len());
    let read = |bytes: &[u8], most| {
        crate::numpy::read_npz(Cursor::new(bytes), |_| true, most).map_err(|error| error.to_string())
    };
    // The header declares more than the limit, so nothing is decompressed.
    let error = read(&short, 1 << 20).expect_err("too many");
    assert!(error.starts_with("array `a`: the arrays exceed the limit of 1048576 bytes"), "{error}");
    let error = read(&short, 1 << 27).expect_err("too few");
    assert_eq!(error, "array `a`: 1048576 bytes do not match an array of shape [8388608] and type `<f8`");
    // The file is longer than its header declares.
    let mut archive = zip::ZipWriter::new(Cursor::new(Vec::new()));
    archive.start_file("a.npy", of).expect("a file");
    archive.write_all(&header(1)).expect("a header");
    archive.write_all(&vec![0; 1 << 20]).expect("elements");
    let long = archive.finish().expect("an archive").into_inner();
    assert_eq!(
        read(&long, 1 << 27).expect_err("too many"),
        "array `a`: the data go on after the 8 bytes of an array of shape [1] and type `<f8`"
    );
    let error = crate::numpy::read_npy(&header(1 << 60)).expect_err("none").to_string();
    assert!(error.starts_with("0 bytes do not match an array of shape [1152921504606846976]"), "{error}");
    let long = [b"\x93NUMPY\x02\x00".as_slice(), &0x7fff_ffff_u32.to_le_bytes(), b"{"].concat();
    let error = crate::numpy::read_npy(&long).expect_err("none").to_string();
    assert_eq!(error, "the header has 2147483647 bytes; the limit is 65535");
}

/// Rows that are small in a file and large in memory are read in parts that fit. A row that exceeds the limit is refused.
#[test]
fn rows_are_read_as_there_is_room_for_what_they_become() {
    const ROOM: u64 = 1 << 20;
    let fields = |count: usize| (0..count).map(|at| format!("f{at}: text?")).collect::<Vec<_>>().join(", ");
    let qtype = |text: String| cembra::values::parse_type(&text).expect("a type");
    let wide = qtype(format!("{{{}}}?", fields(1_000)));
    let lists = qtype(format!("[{{{}}}]", fields(100)));
    let parts = |format: Format, bytes: &[u8], qtype: &QType| {
        let options = ReadOptions { most_bytes: MOST, ..options(format, &[]) };
        let data = Dataset::open(Input::new("rows", Cursor::new(bytes.to_vec())), &options).expect("data");
        let mut table = data.bind(&request(&[("l", Some(qtype.clone()))])).expect("a table");
        let mut parts = Vec::new();
        while let Some(piece) = table.source.next().map_err(|error| error.to_string())? {
            let (mut left, mut takes_first_row) = (Some(piece), false);
            while let Some(piece) = left {
                let (decoded, rest) = piece.decode_within(crate::DecodeLimit { bytes: ROOM, takes_first_row });
                if let Some(error) = decoded.error {
                    return Err(error.to_string());
                }
                takes_first_row = rest.is_some() && decoded.batch.rows.num_rows() == 0;
                parts.extend(Some(decoded.batch.rows.num_rows()).filter(|rows| *rows > 0));
                left = rest;
            }
        }
        Ok(parts)
    };
    // A text takes 17 bytes, and its struct 1 byte more.
    let nulls = RecordBatch::try_from_iter([("l", Arc::new(NullArray::new(200)) as ArrayRef)]).expect("rows");
    let uncompressed = Compression::UNCOMPRESSED;
    let files = [
        (Format::Arrow, arrow(&nulls, None, false)),
        (Format::Arrow, arrow(&nulls, None, true)),
        (Format::Parquet, parquet(&nulls, uncompressed, WriterVersion::PARQUET_2_0)),
        (Format::JsonLines, "{\"l\": null}\n".repeat(200).into_bytes()),
        (Format::JsonLines, "{}\n".repeat(200).into_bytes()),
    ];
    for (format, bytes) in files {
        let parts = parts(format, &bytes, &wide).expect("rows");
        assert_eq!((parts[0], parts.len(), parts.iter().sum::<usize>()), (61, 4, 200), "{format:?}");
    }
    // List elements take memory for each of their fields: 1,700 bytes. The second list exceeds the room.
    let list = |count: usize| format!("{{\"l\": [{}]}}\n", vec!["{}"; count].join(","));
    let text = list(500) + &list(2_000) + &list(500) + &list(1);
    assert_eq!(parts(Format::JsonLines, text.as_bytes(), &lists), Ok(vec![1, 1, 2]));
    let error = parts(Format::JsonLines, (list(1) + &list(50_000)).as_bytes(), &lists).expect_err("85 megabytes");
    assert!(error.starts_with("a row exceeds the limit of 67108864 bytes"), "{error}");
    let empty = StructArray::from(vec![(
        Arc::new(Field::new("f0", DataType::Utf8, true)),
        Arc::new(StringArray::new_null(3_001)) as ArrayRef,
    )]);
    let element = Arc::new(Field::new_list_field(empty.data_type().clone(), true));
    let ends = OffsetBuffer::from_lengths([500, 2_000, 500, 1]);
    let column: ArrayRef = Arc::new(ListArray::new(element, ends, Arc::new(empty), None));
    let rows = RecordBatch::try_from_iter([("l", column)]).expect("rows");
    let qtype = qtype("[{f0: text?}]".to_owned());
    assert_eq!(parts(Format::Arrow, &arrow(&rows, None, false), &qtype), Ok(vec![4]));
}

/// The memory for columns besides their values is checked before it is reserved.
#[test]
fn columns_are_counted() {
    let options = |format| ReadOptions { most_bytes: 8 << 20, ..options(format, &[]) };
    let bind = |format, text: &str, keep: &Keep| {
        let data = Dataset::open(Input::new("rows", Cursor::new(text.as_bytes().to_vec())), &options(format));
        let data = data.map_err(|error| error.to_string())?;
        let bound = data.bind(&Request { keep: keep.clone(), ..request(&[("c7", None)]) });
        bound.map(|table| table.kept.len()).map_err(|error| error.to_string())
    };
    let names = |count: usize| (0..count).map(|at| format!("c{at}")).collect::<Vec<_>>().join(",");
    let csv = |count: usize| format!("{}\n{}\n", names(count), vec!["1"; count].join(","));
    let json =
        |count: usize| format!("{{{}}}\n", (0..count).map(|at| format!("\"c{at}\": 1")).collect::<Vec<_>>().join(","));
    let files = [(Format::Csv, csv(5_000), csv(6_000)), (Format::JsonLines, json(5_000), json(6_000))];
    for (format, few, many) in &files {
        assert_eq!(bind(*format, few, &Keep::All), Ok(5_000));
        assert_eq!(bind(*format, many, &Keep::None), Ok(0));
        let error = bind(*format, many, &Keep::All).expect_err("too many");
        let message = "6001 columns take 10242048 bytes besides their values; the limit is 8388608 bytes";
        assert!(
            error.contains(message) && error.ends_with("; raise the limit: `--set-limit array_bytes=..`"),
            "{error}"
        );
        let kept = (0..6_000).map(|at| format!("c{at}")).collect();
        assert!(bind(*format, many, &Keep::These(kept)).expect_err("too many").contains(message));
    }
    let error = bind(Format::Csv, &csv(40_000), &Keep::None).expect_err("too many names");
    assert!(error.contains("40000 columns take 9984000 bytes"), "{error}");
}
