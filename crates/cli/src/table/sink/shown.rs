//! Results as a table for people. A missing value is `NA`, numbers stand to the right, and the table starts again under a new
//! header every ten thousand rows, so that it needs no more memory than those.

use super::text::{flat, flat_columns};
use super::{Rows, failed};
use crate::data::error::DataError;
use crate::data::output::Output;
use crate::data::schema::escape_controls;
use crate::table::Named;
use arrow_array::RecordBatch;
use cembra_runtime::Scalar;
use comfy_table::{CellAlignment, Table, presets};
use std::io::Write;

/// Rows of one table.
const TABLE_ROWS: usize = 10_000;

/// The mark of a missing value in a table.
const TABLE_MISSING: &str = "NA";

/// Writes tables.
pub(super) struct TableSink {
    output: Output,
    columns: Vec<Named>,
    header: Vec<(String, CellAlignment)>,
    table: Table,
}

impl TableSink {
    /// An empty table.
    pub(super) fn open(output: Output, columns: &[Named]) -> Self {
        let header = flat_columns(columns).into_iter().map(|column| {
            let numeric = column.scalar.is_some_and(Scalar::is_number);
            let side = if numeric { CellAlignment::Right } else { CellAlignment::Left };
            (escape_controls(&column.name), side)
        });
        let header: Vec<_> = header.collect();
        let table = empty_table(&header);
        TableSink { output, columns: columns.to_vec(), header, table }
    }
}

impl Rows for TableSink {
    fn write(&mut self, rows: &RecordBatch) -> Result<(), DataError> {
        let flat = flat(&self.columns, rows);
        for row in 0..rows.num_rows() {
            if self.table.row_count() == TABLE_ROWS {
                writeln!(self.output, "{}", self.table).map_err(failed)?;
                self.table = empty_table(&self.header);
            }
            let cells = flat.iter().map(|column| {
                let mut text = Vec::new();
                let present = column.write(&mut text, row);
                if present { escape_controls(&String::from_utf8_lossy(&text)) } else { TABLE_MISSING.to_owned() }
            });
            self.table.add_row(cells.collect::<Vec<_>>());
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> Result<Output, DataError> {
        writeln!(self.output, "{}", self.table).map_err(failed)?;
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
