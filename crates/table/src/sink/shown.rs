//! Sink that writes results as a table for people to read. A missing value is `NA`, or the null text of the options; numbers are aligned to
//! the right. Of a list with more than a hundred elements, the first ten elements and the length are shown. Every ten thousand rows a new
//! table with a new header begins, which bounds the memory. Control characters are escaped, on a terminal and elsewhere. On a terminal, a
//! table that is too wide is split into groups of columns, one below the other.

use super::text::{flat, flat_columns, put_comma};
use super::{Rows, WriteOptions, failed};
use crate::Named;
use crate::error::DataError;
use crate::output::Output;
use arrow_array::RecordBatch;
use cembra_runtime::{Scalar, visible};
use comfy_table::{Cell, CellAlignment, Table, presets};
use console::Term;
use std::io::Write;
use std::ops::Range;

/// The most rows of one table.
const TABLE_ROWS: usize = 10_000;

/// The most bytes of the cells of one table, each counted as wide as the widest of its column.
const TABLE_BYTES: usize = 32 << 20;

/// The bytes of memory for a cell besides its text, while the table is built and shown.
const CELL_BYTES: usize = 128;

/// The mark of a missing value in a table, unless another is given.
const TABLE_MISSING: &str = "NA";

/// A sink that writes results as tables for people to read.
pub(super) struct TableSink {
    output: Output,
    columns: Vec<Named>,
    header: Vec<(String, CellAlignment)>,
    table: Table,
    /// The mark of a missing value.
    missing: String,
    /// True if numbers have a comma before their fraction.
    decimal_comma: bool,
    /// The widest cell of each column so far, in bytes.
    widths: Vec<usize>,
    /// The number of characters in a line; `None` if the output is not a terminal.
    width: Option<usize>,
}

impl TableSink {
    /// Makes a sink for rows of `columns`, with an empty table.
    pub(super) fn open(output: Output, columns: &[Named], options: &WriteOptions<'_>) -> Self {
        let header = flat_columns(columns).into_iter().map(|column| {
            let numeric = column.scalar.is_some_and(Scalar::is_number);
            let side = if numeric { CellAlignment::Right } else { CellAlignment::Left };
            (visible(&column.name).into_owned(), side)
        });
        let header: Vec<_> = header.collect();
        let table = empty_table(&header);
        let width = if matches!(output, Output::Stdout(_)) { terminal_width() } else { None };
        let missing = options.null.filter(|null| !null.is_empty()).unwrap_or(TABLE_MISSING);
        TableSink {
            output,
            columns: columns.to_vec(),
            header,
            table,
            missing: visible(missing).into_owned(),
            decimal_comma: options.decimal_comma,
            widths: Vec::new(),
            width,
        }
    }

    fn show(&mut self) -> Result<(), DataError> {
        let shown = self.width.and_then(|width| in_groups(&self.table, &self.header, width));
        match shown {
            Some(shown) => write!(self.output, "{shown}"),
            None => writeln!(self.output, "{}", self.table),
        }
        .map_err(failed)
    }
}

impl Rows for TableSink {
    fn write(&mut self, rows: &RecordBatch) -> Result<(), DataError> {
        let flat = flat(&self.columns, rows);
        for row in 0..rows.num_rows() {
            let cells = flat.iter().map(|column| {
                let mut text = Vec::new();
                let present = column.show(&mut text, row);
                if self.decimal_comma && column.has_point() {
                    put_comma(&mut text);
                }
                if present { visible(&String::from_utf8_lossy(&text)).into_owned() } else { self.missing.clone() }
            });
            let cells: Vec<String> = cells.collect();
            let rows = self.table.row_count();
            let mut bytes = 0_usize;
            self.widths.resize(cells.len(), 0);
            for (width, cell) in self.widths.iter_mut().zip(&cells) {
                *width = (*width).max(cell.len());
                bytes = bytes.saturating_add(*width).saturating_add(CELL_BYTES);
            }
            if rows == TABLE_ROWS || rows > 0 && bytes.saturating_mul(rows) > TABLE_BYTES {
                self.show()?;
                self.table = empty_table(&self.header);
                self.widths = cells.iter().map(String::len).collect();
            }
            self.table.add_row(cells);
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> Result<Output, DataError> {
        self.show()?;
        Ok(self.output)
    }
}

fn empty_table(header: &[(String, CellAlignment)]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::UTF8_FULL_CONDENSED);
    table.set_header(header.iter().map(|(name, _)| name));
    for (column, (_, side)) in table.column_iter_mut().zip(header) {
        column.set_cell_alignment(*side);
    }
    table
}

/// The number of characters in a line of the terminal, from `COLUMNS` if it is set; `None` if standard output is not a terminal.
fn terminal_width() -> Option<usize> {
    let terminal = Term::stdout();
    if !terminal.is_term() {
        return None;
    }
    let set = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok()).filter(|columns| *columns > 0);
    set.or_else(|| terminal.size_checked().map(|(_, columns)| usize::from(columns)))
}

/// Splits a table that is too wide into tables of groups of its columns, each under a line that names its columns; `None` if the table
/// fits, or has a single column.
fn in_groups(table: &Table, header: &[(String, CellAlignment)], width: usize) -> Option<String> {
    let widths: Vec<usize> = table.column_max_content_widths().into_iter().map(usize::from).collect();
    let groups = groups(&widths, width);
    if groups.len() < 2 {
        return None;
    }
    let mut shown = String::new();
    for group in groups {
        let of = header.get(group.clone())?;
        let mut part = empty_table(of);
        for row in table.row_iter() {
            part.add_row(row.cell_iter().skip(group.start).take(group.len()).map(Cell::content));
        }
        let columns = if of.len() == 1 {
            format!("column {}", group.end)
        } else {
            format!("columns {} to {}", group.start + 1, group.end)
        };
        shown += &format!("{columns} of {}\n{part}\n", header.len());
    }
    Some(shown)
}

/// Groups of columns that fit side by side into a line of `width` characters, with at least one column each.
fn groups(widths: &[usize], width: usize) -> Vec<Range<usize>> {
    // A column has a space on each side and a border after it; one more border is in front of all.
    const BESIDE: usize = 3;
    let mut groups: Vec<Range<usize>> = Vec::new();
    let mut taken = 1;
    for (at, column) in widths.iter().enumerate() {
        let whole = column + BESIDE;
        match groups.last_mut() {
            Some(last) if taken + whole <= width => {
                last.end = at + 1;
                taken += whole;
            }
            _ => {
                groups.push(at..at + 1);
                taken = 1 + whole;
            }
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_side_by_side_while_they_fit() {
        let ends =
            |widths: &[usize], width| groups(widths, width).into_iter().map(|group| group.end).collect::<Vec<_>>();
        assert_eq!(ends(&[2, 2, 2], 16), [3]);
        assert_eq!(ends(&[2, 2, 2], 15), [2, 3]);
        assert_eq!(ends(&[1, 50, 1, 1], 10), [1, 2, 4]);
        assert_eq!(ends(&[], 10), [0; 0]);
    }

    #[test]
    fn wide_tables_break_into_groups() {
        let header = [("a", CellAlignment::Right), ("long", CellAlignment::Left), ("c", CellAlignment::Left)];
        let header = header.map(|(name, side)| (name.to_owned(), side));
        let mut table = empty_table(&header);
        table.add_row(["1", "one", "x"]);
        table.add_row(["20", "twenty", "y"]);
        assert_eq!(in_groups(&table, &header, 19), None);
        let expected = "\
columns 1 to 2 of 3
┌────┬────────┐
│  a ┆ long   │
╞════╪════════╡
│  1 ┆ one    │
│ 20 ┆ twenty │
└────┴────────┘
column 3 of 3
┌───┐
│ c │
╞═══╡
│ x │
│ y │
└───┘
";
        assert_eq!(in_groups(&table, &header, 18).as_deref(), Some(expected));
        let lines = table.to_string();
        assert_eq!(lines.lines().next().map(|line| line.chars().count()), Some(19));
    }
}
