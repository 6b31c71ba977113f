//! A strip of rows behind its evaluation: what its columns hold goes where it belongs, all rows at once or some of them before the others.

use crate::rows::strings::{OutputRoom, Unkept};
use crate::rows::target::{RangeOutputs, Target};
use cembra_runtime::{BatchFunction, Column, Scratch};

/// A strip that was evaluated, but for rows that failed: the columns of its inputs and outputs.
pub(in crate::rows) struct Strip<'r> {
    pub(in crate::rows) columns: Vec<Column>,
    pub(in crate::rows) start: usize,
    pub(in crate::rows) rows: usize,
    /// The rows before this one are where they belong, and their strings in no scratch any more.
    pub(in crate::rows) finished: usize,
    /// For the strings of the run.
    pub(in crate::rows) room: &'r OutputRoom,
}

impl Strip<'_> {
    /// Puts the rows before this one, which were written, into their place; says why strings of them are not kept, if some are not.
    ///
    /// # Safety
    /// COLUMNS: the columns are of the job, and these rows were written. STRING-VIEW: the scratch keeps the strings of those that are not
    /// finished.
    pub(in crate::rows) unsafe fn finish(
        &mut self,
        targets: &[Target<'_>],
        function: Option<&dyn BatchFunction>,
        end: usize,
        scratch: &Scratch,
        made: &mut [RangeOutputs],
    ) -> Option<Unkept> {
        let rows = self.finished..end;
        self.finished = end;
        let mut unkept = None;
        // None, if nothing is to be put anywhere.
        let of_outputs = &self.columns[self.columns.len() - targets.len()..];
        for (at, ((target, column), made)) in targets.iter().zip(of_outputs).zip(made).enumerate() {
            let results = |known: &mut u64, f: &mut dyn FnMut(u32, Option<&[u8]>)| {
                if let Some(function) = function {
                    function.results(at, scratch, known, f);
                }
            };
            // SAFETY: COLUMNS and STRING-VIEW, promised by the caller.
            unsafe { target.finish_strip(column, self.start, rows.clone(), made, self.room, results) };
            unkept = made.unkept().or(unkept);
        }
        unkept
    }
}
