//! Vectorised programs that are a single loop over columns of numbers. The loop reads and writes the columns in place: no values are copied before or
//! after it.

use super::parts::ColumnStorage;
use super::play;
use cembra_runtime::{BareFunction, Column, Context, LoopEntry, MachineType};
use cembra_tape::{Body, ColumnId, LaneProgram, Port, Segment, TapeLoop};
use smallvec::SmallVec;
use std::sync::Arc;

/// The most inputs and outputs (ports) of a loop that is run in place. A program with more ports is run like a program
/// of several loops.
const MOST_PORTS: usize = 16;

/// The only loop of a vectorised program. It reads and writes the data of columns in place.
#[derive(Debug)]
pub(super) struct InPlaceLoop {
    played: Arc<dyn TapeLoop>,
    /// For each input and output (port) of the loop, the index of its column. `paces` has the distance in bytes from
    /// one row of this column to the next: 0 if all rows share an element.
    columns: Box<[u32]>,
    paces: Box<[u32]>,
}

impl InPlaceLoop {
    /// Makes the loop of a program. `None` if the program has several loops, reads or writes something other than the data of columns, or has more
    /// than `MOST_PORTS` inputs and outputs.
    pub(super) fn of(
        program: &LaneProgram,
        places: &[ColumnStorage],
        loops: &[Arc<dyn TapeLoop>],
    ) -> Option<Arc<InPlaceLoop>> {
        let [Segment { body: Body::Tape(tape), once: false, .. }] = &program.segments[..] else { return None };
        let [played] = loops else { return None };
        let port = |id: &ColumnId| {
            let (column, place) = (program.column(*id), places[id.index()]);
            let pace = match (column.port, column.ty) {
                (_, MachineType::Flag) => return None,
                (Port::Shared | Port::Chains, _) => 0,
                (Port::Rows, ty) => ty.size() as u32,
            };
            let ColumnStorage::Data(column, 0) = place else { return None };
            Some((column, pace))
        };
        let ports: Option<Vec<(u32, u32)>> = tape.inputs.iter().chain(&tape.outputs).map(port).collect();
        let (columns, paces): (Vec<u32>, Vec<u32>) = ports?.into_iter().unzip();
        let bare = InPlaceLoop { played: played.clone(), columns: columns.into(), paces: paces.into() };
        Some(Arc::new(bare)).filter(|bare| bare.columns.len() <= MOST_PORTS)
    }

    /// Runs the loop for `rows` rows from `start` on; returns true if a row fails. With `past_caches`, results bypass the caches and nothing is
    /// prefetched. Otherwise the loop may prefetch the addresses `ahead`.
    ///
    /// # Safety
    /// COLUMNS: the columns must meet the requirements of `BatchFunction::run`.
    #[inline]
    pub(super) unsafe fn rows(
        &self,
        columns: &[Column],
        start: usize,
        rows: usize,
        past_caches: bool,
        ahead: &[usize],
        context: &mut Context,
    ) -> bool {
        let mut ports = [std::ptr::null_mut(); MOST_PORTS];
        for (address, (column, pace)) in ports.iter_mut().zip(self.columns.iter().zip(&self.paces)) {
            *address = columns[*column as usize].data.wrapping_add(start * *pace as usize);
        }
        let ports = &ports[..self.columns.len().min(MOST_PORTS)];
        // SAFETY: PORTS: the columns are those of the tape's inputs and outputs, each with the rows, as the caller promises by COLUMNS.
        unsafe { play(&*self.played, ports, rows, past_caches, ahead, context) }
    }
}

// SAFETY: COLUMNS: nothing but the ports is read and written, which are columns.
unsafe impl BareFunction for InPlaceLoop {
    fn columns(&self) -> &[u32] {
        &self.columns
    }

    // SAFETY: COLUMNS, as the trait says.
    unsafe fn play(&self, columns: &[Column], rows: usize, ahead: &[usize], context: &mut Context) -> bool {
        // SAFETY: COLUMNS, promised by the caller.
        unsafe { self.rows(columns, 0, rows, false, ahead, context) }
    }

    // SAFETY: COLUMNS, as the trait says.
    unsafe fn play_lines(
        &self,
        columns: &[Column],
        shifts: &[isize],
        counts: [usize; 2],
        ahead: &[(usize, isize)],
    ) -> Option<bool> {
        let ports: SmallVec<[*mut u8; MOST_PORTS]> = self.columns.iter().map(|at| columns[*at as usize].data).collect();
        let shifts: SmallVec<[isize; MOST_PORTS]> = self.columns.iter().map(|at| shifts[*at as usize]).collect();
        // SAFETY: PORTS: the columns are those of the tape's inputs and outputs, each with the rows, as the caller promises by COLUMNS.
        unsafe { self.played.play_lines(&ports, &shifts, counts, ahead) }
    }

    // SAFETY: COLUMNS, as the trait says.
    unsafe fn play_at(&self, firsts: &[*mut u8], rows: usize, context: &mut Context) -> bool {
        // SAFETY: PORTS: the addresses are in the order of the ports, and COLUMNS holds for their columns.
        unsafe { self.played.play(firsts, rows, context) }
    }

    fn entry(&self, rows: usize) -> Option<LoopEntry> {
        self.played.entry(rows)
    }
}
