//! A strip of rows behind its evaluation: what its columns hold goes where it belongs, all rows at once or some of them before the others.

use crate::run::{Job, Player, Range, Stop};
use crate::strings::{OutputRoom, Unkept};
use cembra_runtime::{Column, Scratch};

/// A strip that was evaluated, but for rows that failed: the columns of its inputs and outputs.
pub(crate) struct Strip<'r> {
    pub(crate) columns: Vec<Column>,
    pub(crate) start: usize,
    pub(crate) rows: usize,
    /// The rows before this one are where they belong, and their strings in no scratch any more.
    pub(crate) finished: usize,
    /// For the strings of the run.
    pub(crate) room: &'r OutputRoom,
}

impl Strip<'_> {
    /// Puts the rows before this one, which were written, into their place.
    ///
    /// # Safety
    /// COLUMNS: the columns are of the job, and these rows were written. STRING-VIEW: the scratch keeps the strings of those that are not
    /// finished.
    pub(crate) unsafe fn finish<E>(
        &mut self,
        job: &Job<'_>,
        player: &Player,
        end: usize,
        scratch: &Scratch,
        range: &mut Range<E>,
    ) {
        let rows = self.finished..end;
        self.finished = end;
        // None, if nothing is to be put anywhere.
        let of_outputs = &self.columns[job.sources.len()..];
        for (at, ((target, column), made)) in job.targets.iter().zip(of_outputs).zip(&mut range.made).enumerate() {
            let results = |known: &mut u64, f: &mut dyn FnMut(u32, Option<&[u8]>)| {
                if let Some(function) = player.function() {
                    function.results(at, scratch, known, f);
                }
            };
            // SAFETY: COLUMNS and STRING-VIEW, promised by the caller.
            unsafe { target.finish_strip(column, self.start, rows.clone(), made, self.room, results) };
            match made.unkept() {
                None => {}
                Some(Unkept::TooLong) => range.stop = Some(Stop::TooLong),
                Some(Unkept::NoRoom) => range.stop = Some(Stop::Strings),
            }
        }
    }
}
