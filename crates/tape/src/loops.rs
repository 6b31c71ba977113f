//! Loops: what a player makes of a tape for many rows. Every input and output of the tape is a port, an array that a loop
//! reads or writes in place; where the arrays come from, and what to do with rows that fail, is not known here.

use crate::{Output, Tape};
use cembra_runtime::{CodePages, Context, LoopEntry, MachineType};
use std::fmt::Debug;

/// How an input or an output of a loop lies in memory.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Port {
    /// An element for each row: numbers next to each other, at any address; masks as bits, that of the first row the lowest
    /// of the first byte.
    Rows,
    /// One element for all rows of an input: a number, or the byte of a mask, 0 or 1.
    Shared,
    /// Sums of the `F64` that rows give to an output: as many as there are [`CHAINS`](cembra_runtime::CHAINS), at any address.
    /// Every row adds its number to the sum whose position is the row's modulo so many, rows in their order.
    Chains,
}

impl Port {
    /// True if these can be the ports of a tape's inputs and outputs: there is one for each input, and for each output that
    /// any is said of, and sums are of `F64`.
    #[must_use]
    pub fn fit(inputs: &[Port], outputs: &[Port], tape: &Tape) -> bool {
        let can_be = |(port, output): (&Port, &Output)| match (port, output) {
            (Port::Rows, _) => true,
            (Port::Chains, Output::Number(val)) => {
                val.index() < tape.instrs().len() && tape.ty(*val) == MachineType::F64
            }
            (Port::Chains, Output::Mask(_)) | (Port::Shared, _) => false,
        };
        inputs.len() == tape.inputs().len()
            && !inputs.contains(&Port::Chains)
            && outputs.len() <= tape.outputs().len()
            && outputs.iter().zip(tape.outputs()).all(can_be)
    }
}

/// A tape that plays on many rows. An output of which nothing is said has an element for each row.
///
/// # Safety
/// PORTS: `play` reads and writes nothing but what its contract names.
pub unsafe trait TapeLoop: Debug + Send + Sync {
    /// Plays the tape on so many rows, and says whether a `FaultIf` of it holds in any of them: then it may have stopped
    /// anywhere, and what is in the outputs is unspecified.
    ///
    /// Bits of inputs are read no further than the byte of the last row. Bits of outputs are written in whole words of 64,
    /// those behind the last row as zeros.
    ///
    /// # Safety
    /// PORTS: there is a pointer for each input of the tape, in the order in which inputs were made, to as much as its port
    /// says, and behind them one for each output, in the order in which they were stated, to memory for the rows (for masks,
    /// in whole words), or to the sums that its port says. No output overlaps another; one overlaps an input only if both are the
    /// same array of the same type, all rows' elements. Numbers that the tape takes for views of strings are views as in
    /// STRING-VIEW.
    unsafe fn play(&self, ports: &[*mut u8], rows: usize, context: &mut Context) -> bool;

    /// The same, where nobody finds the outputs in the caches anyway: a player that can, writes numbers past these. Others see
    /// them once the thread has called [`drain_past_caches`](cembra_runtime::drain_past_caches).
    ///
    /// # Safety
    /// PORTS, as for `play`.
    unsafe fn play_past_caches(&self, ports: &[*mut u8], rows: usize, context: &mut Context) -> bool {
        // SAFETY: PORTS, promised by the caller.
        unsafe { self.play(ports, rows, context) }
    }

    /// The same, and fetches meanwhile what is at these addresses: for each row as much as the numbers have that it reads, a player that
    /// can, as many addresses as it can. There may be anything there, or nothing.
    ///
    /// # Safety
    /// PORTS, as for `play`.
    unsafe fn play_fetching(&self, ports: &[*mut u8], rows: usize, ahead: &[usize], context: &mut Context) -> bool {
        let _ = ahead;
        // SAFETY: PORTS, promised by the caller.
        unsafe { self.play(ports, rows, context) }
    }

    /// Plays so many rows of each of so many lines, as `play_fetching` does: what is at a port is as many bytes further on from line to line as
    /// the port's shift says, and so are the addresses of what is fetched. None, and nothing is done, if the player has no way to go from line
    /// to line that takes less than a call for each.
    ///
    /// # Safety
    /// PORTS, as for `play`, for each line.
    unsafe fn play_lines(
        &self,
        ports: &[*mut u8],
        shifts: &[isize],
        counts: [usize; 2],
        ahead: &[(usize, isize)],
    ) -> Option<bool> {
        _ = (ports, shifts, counts, ahead);
        None
    }

    /// The code that does what `play` does, where it does nothing else for so many rows. It lives as long as this.
    fn entry(&self, rows: usize) -> Option<LoopEntry> {
        _ = rows;
        None
    }

    /// The pages of the machine code that `play` runs, if it runs machine code: what profiles list.
    fn pages(&self) -> Option<&CodePages> {
        None
    }

    /// Bytes of machine code.
    fn code_bytes(&self) -> usize;
}

/// What a player says of a tape before anything is compiled: whether it can play the instruction at a position.
pub type CanPlay = fn(tape: &Tape, at: usize) -> bool;
