//! Pages of Parquet with delta-encoded values, and pages that declare more values than they have.

use super::*;
use ::parquet::basic::{Compression, Encoding, ZstdLevel};
use ::parquet::file::properties::{WriterProperties, WriterVersion};
use arrow_array::builder::{ListBuilder, StringBuilder};
use arrow_array::{ArrayRef, BinaryArray, FixedSizeBinaryArray, RecordBatch, StringArray};
use std::io::Cursor;
use std::sync::Arc;

/// A file of one column in an encoding; `None` for a dictionary.
fn written(column: &ArrayRef, encoding: Option<Encoding>, compression: Compression, version: WriterVersion) -> Vec<u8> {
    let properties = WriterProperties::builder().set_compression(compression).set_writer_version(version);
    let properties = match encoding {
        Some(encoding) => properties.set_dictionary_enabled(false).set_encoding(encoding),
        None => properties,
    };
    let rows = RecordBatch::try_from_iter([("x", column.clone())]).expect("rows");
    hostile::parquet_with(&rows, properties.build())
}

/// The batches of a file's only column, which is copied to the results.
fn read(bytes: &[u8], most_bytes: u64) -> Result<Vec<ArrayRef>, String> {
    let options = ReadOptions { most_bytes, batch_rows: 100, ..options(Format::Parquet, &[]) };
    let said = |error: crate::error::DataError| error.to_string();
    let data = Dataset::open(Input::new("rows", Cursor::new(bytes.to_vec())), &options).map_err(said)?;
    let mut table = data.bind(&Request { keep: Keep::All, ..Request::default() }).map_err(said)?;
    let mut columns = Vec::new();
    while let Some(piece) = table.source.next().map_err(said)? {
        let decoded = piece.decode();
        columns.push(decoded.batch.rows.column(0).clone());
        if let Some(error) = decoded.error {
            return Err(said(error));
        }
    }
    Ok(columns)
}

const ZSTD: fn() -> Compression = || Compression::ZSTD(ZstdLevel::default());

#[test]
fn strings_that_are_written_as_differences_are_read() {
    let texts: Vec<Option<String>> =
        (0..300).map(|row| (row % 7 != 3).then(|| format!("a text that is shared up to {}", row * row))).collect();
    let mut lists = ListBuilder::new(StringBuilder::new());
    for row in 0..300 {
        texts[row..(row + row % 4).min(300)].iter().for_each(|text| lists.values().append_option(text.as_ref()));
        lists.append(row % 5 != 2);
    }
    let fixed = (0..300_u32).map(u32::to_be_bytes);
    let columns: [(ArrayRef, &[Encoding]); 4] = [
        (
            Arc::new(StringArray::from(texts.clone())),
            &[Encoding::DELTA_LENGTH_BYTE_ARRAY, Encoding::DELTA_BYTE_ARRAY, Encoding::PLAIN],
        ),
        (
            Arc::new(BinaryArray::from_iter(texts.iter().map(Option::as_ref))),
            &[Encoding::DELTA_LENGTH_BYTE_ARRAY, Encoding::DELTA_BYTE_ARRAY],
        ),
        (Arc::new(lists.finish()), &[Encoding::DELTA_LENGTH_BYTE_ARRAY, Encoding::DELTA_BYTE_ARRAY]),
        (Arc::new(FixedSizeBinaryArray::try_from_iter(fixed).expect("a width")), &[Encoding::DELTA_BYTE_ARRAY]),
    ];
    for (column, encodings) in columns {
        for encoding in encodings {
            for version in [WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0] {
                let bytes = written(&column, Some(*encoding), ZSTD(), version);
                let batches = read(&bytes, 1 << 20).expect("rows");
                let batches: Vec<&dyn Array> = batches.iter().map(AsRef::as_ref).collect();
                let whole = arrow_select::concat::concat(&batches).expect("one");
                assert_eq!(whole.to_data(), column.to_data(), "{encoding} {version:?}");
            }
        }
    }
}

/// The library reserves 16 bytes for each value that a dictionary declares.
#[test]
fn a_dictionary_has_no_more_values_than_there_are_bytes_for() {
    let texts: ArrayRef = Arc::new((0..1_000).map(|row| Some(format!("{}", row % 100))).collect::<StringArray>());
    let numbers: ArrayRef = Arc::new((0..1_000).map(|row| Some(row % 100)).collect::<arrow_array::Int64Array>());
    for (column, size) in [(texts, 590), (numbers, 800)] {
        let bytes = written(&column, None, Compression::UNCOMPRESSED, WriterVersion::PARQUET_1_0);
        assert!(read(&bytes, 1 << 20).is_ok());
        // The header of the dictionary: 100 values, plain. 8,191 is the largest count of two bytes.
        let changed = hostile::replaced(&bytes, &[0x15, 0xc8, 1, 0x15, 0], &[0x15, 0xfe, 0x7f, 0x15, 0]);
        let errors: Vec<String> = changed.iter().filter_map(|bytes| read(bytes, 1 << 20).err()).collect();
        let expected = format!("a dictionary of {size} bytes claims to have 8191 values");
        assert!(errors.iter().any(|error| error.contains(&expected)), "{errors:?}");
    }
}

/// The library reserves memory for as many lengths as a page declares after its header.
#[test]
fn a_page_has_no_more_lengths_than_values() {
    let texts: ArrayRef = Arc::new(StringArray::from(vec!["abc"; 200]));
    for encoding in [Encoding::DELTA_LENGTH_BYTE_ARRAY, Encoding::DELTA_BYTE_ARRAY] {
        let bytes = written(&texts, Some(encoding), Compression::UNCOMPRESSED, WriterVersion::PARQUET_2_0);
        assert_eq!(read(&bytes, 1 << 20).map(|batches| batches.len()), Ok(2));
        // Blocks of 128 in four parts with 200 lengths, changed to 201 and to the largest count of two bytes.
        for count in [[0xc9, 1], [0xff, 0x7f]] {
            let changed =
                hostile::replaced(&bytes, &[0x80, 1, 4, 0xc8, 1], &[&[0x80, 1, 4], count.as_slice()].concat());
            assert!(!changed.is_empty());
            for bytes in changed {
                let error = read(&bytes, 1 << 20).expect_err("more than there are");
                assert!(error.contains("bytes and 200 values"), "{error}");
            }
        }
    }
}

/// The strings are as long as the prefix that each shares with the one before: thirty megabytes in a file of a few thousand bytes.
#[test]
fn strings_that_share_their_beginnings_count() {
    let long = "y".repeat(500_000);
    let texts: ArrayRef = Arc::new(StringArray::from(vec![long.as_str(); 60]));
    let rows = RecordBatch::try_from_iter([("x", texts)]).expect("rows");
    // In a single page, and in six pages that are read at once.
    for of_page in [60, 10] {
        let properties = WriterProperties::builder()
            .set_compression(ZSTD())
            .set_dictionary_enabled(false)
            .set_encoding(Encoding::DELTA_BYTE_ARRAY)
            .set_write_batch_size(of_page)
            .set_data_page_row_count_limit(of_page);
        let bytes = hostile::parquet_with(&rows, properties.build());
        assert!(bytes.len() < 20_000, "{}", bytes.len());
        let error = read(&bytes, 16 << 20).expect_err("thirty megabytes");
        assert!(error.contains("the pages of the next rows have"), "{error}");
        assert!(error.ends_with("; raise the limit: `--set-limit array_bytes=..`"), "{error}");
        assert_eq!(read(&bytes, 64 << 20).map(|batches| batches[0].len()), Ok(60));
    }
}
