//! Endless data, and data that decompress to far more than their size: the number of bytes that are read is bounded.

use super::*;
use crate::written::cuts;
use arrow_array::types::Int32Type;
use arrow_array::{
    ArrayRef, DictionaryArray, Int32Array, Int64Array, ListArray, ListViewArray, RecordBatch, RunArray, StringArray,
    StringViewArray, StructArray,
};
use arrow_buffer::{OffsetBuffer, ScalarBuffer};
use arrow_schema::{DataType, Field};
use std::io::{Cursor, Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// An endless reader of one byte value, which counts the bytes read.
struct Endless {
    byte: u8,
    read: Arc<AtomicU64>,
}

impl Read for Endless {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        into.fill(self.byte);
        let read = self.read.fetch_add(into.len() as u64, Ordering::Relaxed);
        assert!(read < 64 << 20, "it is read without end");
        Ok(into.len())
    }
}

fn endless(first: &[u8], byte: u8) -> (Input, Arc<AtomicU64>) {
    let read = Arc::new(AtomicU64::new(0));
    (Input::new("rows", Cursor::new(first.to_vec()).chain(Endless { byte, read: read.clone() })), read)
}

#[test]
fn white_space_in_front_of_data_is_looked_at_up_to_a_mebibyte() {
    let (input, read) = endless(b"", b' ');
    let (_, format) = input.guess().expect("a form");
    assert_eq!(format, Format::Csv);
    let read = read.load(Ordering::Relaxed);
    assert!((1 << 20..(1 << 20) + (1 << 17)).contains(&read), "{read} bytes");
    // Bytes that were looked at are read again.
    for (spaces, first, expected) in
        [(0, "{", Format::JsonLines), (1_000_000, "[", Format::JsonLines), (9_000, "x", Format::Csv)]
    {
        let text = format!("{}{first}", "\n".repeat(spaces));
        let (input, format) = Input::new("rows", Cursor::new(text.clone())).guess().expect("a form");
        assert_eq!(format, expected);
        let mut found = String::new();
        input.into_bytes().expect("bytes").read_to_string(&mut found).expect("a text");
        assert_eq!(found, text);
    }
}

#[test]
fn a_copy_of_a_pipe_or_of_what_is_compressed_has_an_end() {
    let options = ReadOptions { most_bytes: 1 << 20, ..options(Format::Parquet, &[]) };
    let open = |input| Dataset::open(input, &options).err().map(|error| error.to_string()).unwrap_or_default();
    let expected = "rows: a compressed file or a pipe exceeds the limit of 1048576 bytes; raise the limit: \
                    `--set-limit array_bytes=..`; or name a file that is not compressed";
    let (input, read) = endless(b"PAR1", 0);
    assert_eq!(open(input), expected);
    assert!(read.load(Ordering::Relaxed) < 2 << 20);
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(&vec![0; 9 << 20]).expect("memory");
    assert_eq!(open(Input::new("rows", Cursor::new(packed.finish().expect("memory")))), expected);
    let packed = zstd::encode_all(vec![0; 9 << 20].as_slice(), 1).expect("memory");
    assert_eq!(open(Input::new("rows", Cursor::new(packed))), expected);
}

#[test]
fn zeros_behind_the_mark_of_arrow_have_an_end() {
    let open = |input| {
        Dataset::open(input, &options(Format::Arrow, &[])).err().map(|error| error.to_string()).unwrap_or_default()
    };
    let (input, read) = endless(b"ARROW1\0\0", 0);
    assert_eq!(open(input), "rows: not Arrow: there is no schema");
    assert!(read.load(Ordering::Relaxed) < 1 << 17);
    // The most zero words before the first message that the alignment to 64 bytes allows.
    for (words, is_read) in [(0, true), (7, true), (8, false)] {
        let rows = RecordBatch::try_from_iter([("x", Arc::new(Int32Array::from(vec![1])) as ArrayRef)]);
        let rows = rows.expect("rows");
        let mut bytes = [b"ARROW1\0\0".as_slice(), &[0; 64][..8 * words]].concat();
        let mut writer = arrow_ipc::writer::StreamWriter::try_new(&mut bytes, &rows.schema()).expect("a writer");
        writer.write(&rows).and_then(|()| writer.finish()).expect("rows");
        assert_eq!(open(Input::new("rows", Cursor::new(bytes))).is_empty(), is_read, "{words}");
    }
}

/// Sixteen rows, each of a megabyte as text, but almost nothing in memory.
#[test]
fn rows_that_share_their_text_are_cut_by_it() {
    const MEGABYTE: usize = 1 << 20;
    let long = "x".repeat(MEGABYTE);
    let values: ArrayRef = Arc::new(StringArray::from(vec![long.as_str()]));
    let views = {
        let one = StringViewArray::from(vec![long.as_str()]);
        let views = ScalarBuffer::from(vec![one.views()[0]; 16]);
        StringViewArray::try_new(views, one.data_buffers().to_vec(), None).expect("views")
    };
    let keys = || Int32Array::from(vec![0; 16]);
    let dictionary = DictionaryArray::<Int32Type>::try_new(keys(), values.clone()).expect("a dictionary");
    let runs = RunArray::<Int32Type>::try_new(&Int32Array::from(vec![16]), values.as_ref()).expect("runs");
    let item = |of: &DataType| Arc::new(Field::new_list_field(of.clone(), true));
    let numbers: ArrayRef = Arc::new(Int64Array::from(vec![7; MEGABYTE / 8]));
    let list_views = ListViewArray::try_new(
        item(&DataType::Int64),
        ScalarBuffer::from(vec![0; 16]),
        ScalarBuffer::from(vec![(MEGABYTE / 8) as i32; 16]),
        numbers,
        None,
    );
    let lists =
        ListArray::new(item(views.data_type()), OffsetBuffer::from_lengths([1; 16]), Arc::new(views.clone()), None);
    let name = Arc::new(Field::new(&long, DataType::Int32, true));
    let structs = StructArray::from(vec![(name, Arc::new(keys()) as ArrayRef)]);
    let columns: [ArrayRef; 6] = [
        Arc::new(views),
        Arc::new(dictionary),
        Arc::new(runs),
        Arc::new(list_views.expect("list views")),
        Arc::new(lists),
        Arc::new(structs),
    ];
    for column in columns {
        let of = column.data_type().to_string();
        let rows = RecordBatch::try_from_iter([("x", column)]).expect("rows");
        assert_eq!(cuts(&rows, 5 << 20, 2 << 20).expect("rows"), [4; 4], "{of:.40}");
        assert_eq!(cuts(&rows, 1 << 20, 2 << 20).expect("rows"), [1; 16], "{of:.40}");
        assert_eq!(cuts(&rows, 17 << 20, 2 << 20).expect("rows"), [16], "{of:.40}");
        let error = cuts(&rows, 5 << 20, 1 << 20).expect_err("too much for a row").to_string();
        assert!(
            error.starts_with("a row exceeds the limit of 1048576 bytes when it is written as text; raise the limit"),
            "{error}"
        );
    }
    let numbers: ArrayRef = Arc::new(Int64Array::from(vec![7; 1_000]));
    let rows = RecordBatch::try_from_iter([(long.as_str(), numbers.clone())]).expect("rows");
    assert_eq!(cuts(&rows, 500 << 20, 2 << 20).expect("rows"), [499, 499, 2]);
    let rows = RecordBatch::try_from_iter([("x", numbers)]).expect("rows");
    assert_eq!(cuts(&rows, 1 << 20, 1 << 20).expect("rows"), [1_000]);
    assert_eq!(cuts(&rows.slice(0, 0), 0, 0).expect("no rows"), [0]);
}
