//! The last stage of the evaluation of a strip (a block of rows): the outputs are moved from the strip to their columns, for all rows at once, or for
//! some rows earlier than for the rest.

use crate::rows::strings::{OutputRoom, StringFailure};
use crate::rows::target::{RangeOutputs, Target};
use cembra_runtime::{BatchFunction, Column, Scratch};

/// A strip (block of rows) with its input and output columns. All rows are evaluated, except that rows that failed may
/// have to be evaluated again.
pub(in crate::rows) struct Strip<'r> {
    pub(in crate::rows) columns: Vec<Column>,
    pub(in crate::rows) start: usize,
    pub(in crate::rows) rows: usize,
    /// The number of rows whose outputs are already in their columns, so that the scratch memory need not hold their strings any more.
    pub(in crate::rows) finished: usize,
    /// The bytes that the strings of the run's new columns may still take.
    pub(in crate::rows) room: &'r OutputRoom,
}

impl Strip<'_> {
    /// Moves the outputs of the rows before `end` that are still in the strip to the output columns. Returns the reason
    /// if some strings of these rows could not be stored, else `None`.
    ///
    /// # Safety
    /// COLUMNS and STRING-VIEW (`docs/safety.md`): `self.columns` must be columns of the job that has `targets`. The
    /// rows before `end` must have been written. `scratch` must hold the strings of all rows whose outputs are not yet
    /// moved.
    pub(in crate::rows) unsafe fn finish(
        &mut self,
        targets: &[Target<'_>],
        function: Option<&dyn BatchFunction>,
        end: usize,
        scratch: &Scratch,
        made: &mut [RangeOutputs],
    ) -> Option<StringFailure> {
        let rows = self.finished..end;
        self.finished = end;
        let mut unkept = None;
        // `made` is empty if no output has to be moved.
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
