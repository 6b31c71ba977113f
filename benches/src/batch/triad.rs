//! What memory gives in the same run: STREAM's triad.

use super::columns::{Columns, DOUBLE};
use super::subject::{Bound, BoundLimit, Limit, has_512};
use super::workload::ColumnsFunction;

/// The name of its records' workload and subject.
pub const TRIAD: &str = "triad";
/// The same with outputs that go past the caches.
pub const TRIAD_STREAMED: &str = "triad-streamed";
/// Bytes of a row: two are read, one is written.
pub const BYTES_PER_ROW: f64 = 24.0;

/// The triad on columns of its own.
pub struct Triad {
    /// The name of the subject.
    pub name: &'static str,
    bound: BoundLimit,
    /// What the addresses are of.
    _inputs: Columns,
}

impl Triad {
    /// Plain and streamed.
    #[must_use]
    pub fn all(rows: usize, threads: usize) -> Vec<Triad> {
        let (plain, streamed): (ColumnsFunction, ColumnsFunction) = if has_512() {
            (cembra_limit_columns_512::triad, cembra_limit_columns_512::triad_streamed)
        } else {
            (cembra_limit_columns_plain::triad, cembra_limit_columns_plain::triad_streamed)
        };
        [(TRIAD, plain), (TRIAD_STREAMED, streamed)]
            .map(|(name, function)| {
                let mut inputs = Columns::new(&[DOUBLE; 2], 512);
                for row in 0..512 {
                    inputs.set_row(row, &[Some(row as f64), Some(0.5)]);
                }
                let inputs = inputs.repeated(rows);
                let limit = Limit { name, function };
                // SAFETY: BARE-COLUMNS: two columns in, one out, all of this value.
                let bound = unsafe { limit.on(&inputs, Columns::new(&[DOUBLE], rows), threads) };
                Triad { name, bound, _inputs: inputs }
            })
            .into()
    }
}

impl Bound for Triad {
    fn run(&mut self) -> Result<(), crate::Error> {
        self.bound.run()
    }

    fn outputs(&self) -> Columns {
        self.bound.outputs()
    }
}
