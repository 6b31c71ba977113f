//! Tests of reading and writing as the command does it, with exact values and messages.

mod bounded;
mod csv_as_it_comes;
mod dictionaries;
mod every_type;
mod files_of_others;
mod foreign;
mod hostile;
mod inference;
mod pages;
mod reading_csv;
mod reading_json;
mod structs;
mod unread;
mod values;
mod writing;

use super::cells::{Cells, array_of};
use super::csv::CsvData;
use super::input::{Input, Text};
use super::sink::{self, WriteOptions};
use super::{Batch, Dataset, Decoded, Form, Format, Keep, Named, ReadOptions, Request, Spelling, Table, types};
use crate::output::Output;
use crate::schema::{RequestedLeaf, spelled};
use arrow_array::Array;
use cembra_runtime::{Fields, Names, QType, Scalar};
use cembra_value::{ScalarValue, Value};
use std::io::Write;

const OPTIONAL_F64: QType = QType::Optional(Scalar::Float64);

fn options(format: Format, nulls: &[&str]) -> ReadOptions {
    let nulls = nulls.iter().map(|null| (*null).to_owned()).collect();
    ReadOptions {
        format,
        nulls,
        delimiter: None,
        spelling: Spelling::default(),
        batch_rows: super::BATCH_ROWS,
        most_bytes: super::MOST_BYTES,
        tolerant: false,
    }
}

fn open_with(options: &ReadOptions, text: impl Into<Vec<u8>>) -> Result<Dataset, String> {
    let name = if matches!(options.format, Format::Csv | Format::Tsv) { "rows.csv" } else { "rows.json" };
    Dataset::open(Input::new(name, std::io::Cursor::new(text.into())), options).map_err(|error| error.to_string())
}

fn open(format: Format, null: Option<&str>, text: impl Into<Vec<u8>>) -> Result<Dataset, String> {
    let nulls: Vec<&str> = null.into_iter().collect();
    open_with(&options(format, &nulls), text)
}

fn request(wanted: &[(&str, Option<QType>)]) -> Request {
    let leaf = |(name, qtype): &(&str, Option<QType>)| RequestedLeaf {
        name: (*name).to_owned(),
        qtype: qtype.clone(),
        is_empty_by_default: false,
    };
    let leaves = wanted.iter().map(leaf).collect();
    Request { leaves, ..Request::default() }
}

fn bind(dataset: Dataset, wanted: &[(&str, Option<QType>)]) -> Result<Table, String> {
    dataset.bind(&request(wanted)).map_err(|error| error.to_string())
}

/// The values of a batch's rows.
fn values(batch: &Batch, types: &[QType]) -> Vec<Vec<Value>> {
    let columns = batch.rows.columns().iter().zip(types);
    let cells: Vec<Cells<'_>> =
        columns.map(|(array, qtype)| Cells::of(array.as_ref(), qtype).expect("the type's form")).collect();
    (0..batch.rows.num_rows()).map(|row| cells.iter().map(|cells| cells.value(row)).collect()).collect()
}

/// The rows with their places, or the first error; rows before an error are dropped.
fn placed_rows(mut table: Table) -> Result<Vec<(u64, Vec<Value>)>, String> {
    let kept = table.kept.iter().map(|kept| match &kept.form {
        Form::Values(qtype) => qtype.clone(),
        _ => QType::Optional(Scalar::Text),
    });
    let types: Vec<QType> = table.leaves.iter().map(|leaf| leaf.qtype.clone()).chain(kept).collect();
    let mut all = Vec::new();
    let named = |error: crate::error::DataError| error.in_file(&table.name).to_string();
    while let Some(piece) = table.source.next().map_err(named)? {
        let Decoded { batch, error, .. } = piece.decode();
        all.extend(values(&batch, &types).into_iter().enumerate().map(|(row, values)| (batch.places.at(row), values)));
        if let Some(error) = error {
            return Err(named(error));
        }
    }
    Ok(all)
}

fn rows(table: Table) -> Result<Vec<Vec<Value>>, String> {
    Ok(placed_rows(table)?.into_iter().map(|(_, row)| row).collect())
}

fn csv(text: impl Into<Vec<u8>>, wanted: &[(&str, Option<QType>)]) -> Result<Vec<Vec<Value>>, String> {
    rows(bind(open(Format::Csv, None, text)?, wanted)?)
}

fn json(text: &str, wanted: &[(&str, Option<QType>)]) -> Result<Vec<Vec<Value>>, String> {
    rows(bind(open(Format::JsonLines, None, text)?, wanted)?)
}

fn inferred(format: Format, text: &str, names: &[&str]) -> Result<Vec<String>, String> {
    let wanted: Vec<_> = names.iter().map(|name| (*name, None)).collect();
    let table = bind(open(format, None, text)?, &wanted)?;
    assert!(table.leaves.iter().all(|column| column.inferred));
    Ok(table.leaves.iter().map(|leaf| spelled(&leaf.qtype)).collect())
}

/// The peak memory of the process, in bytes.
#[cfg(target_os = "linux")]
fn most_memory() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").expect("a status");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a line");
    line.trim().trim_end_matches(" kB").parse::<usize>().expect("a number") << 10
}

#[test]
#[cfg(target_os = "linux")]
fn rows_that_are_read_ahead_take_little_memory() {
    let ignored = format!("[{}0]", "0,".repeat(50_000));
    let rows = 400;
    let text: String = (0..rows).map(|x| format!("{{\"x\":{x},\"y\":{ignored}}}\n")).collect();
    let size = text.len();
    let before = most_memory();
    let read = json(&text, &[("x", None)]).expect("rows");
    assert_eq!((read.len(), &read[7]), (rows, &vec![Value::from(7_i64)]));
    // The text was copied once. The kernel updates the peak of a thread only now and then.
    let taken = most_memory().saturating_sub(before);
    assert!(taken < 6 * size, "{} MiB for {} MiB", taken >> 20, size >> 20);
}
