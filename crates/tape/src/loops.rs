//! The interface between backends and callers of compiled loops. A loop is a tape (a sequence of instructions without
//! branches) that is compiled to run on many rows. The loop reads each input of the tape from an array in place, and
//! writes each output to an array in place. The caller provides the arrays, and handles rows that fail.

use crate::{Output, Tape};
use cembra_runtime::{CodePages, Context, LoopEntry, MachineType};
use std::fmt::Debug;

/// The memory layout of an input or output of a compiled loop.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Port {
    /// The layout has one element per row. Numbers are contiguous, at any address. Masks are bits: the first row's bit
    /// is the lowest bit of the first byte.
    Rows,
    /// The layout has one element that all rows share: a number, or the byte of a mask, 0 or 1. Only inputs may have
    /// this layout.
    Shared,
    /// The layout has [`CHAINS`](cembra_runtime::CHAINS) partial sums of an `F64` output, at any address. The output's
    /// number in row `r` is added to the sum with index `r` modulo `CHAINS`. Rows are added in order.
    Chains,
}

impl Port {
    /// Returns true if these memory layouts are possible for the tape: one per input, at most one per output, and
    /// partial sums only for `F64` outputs. An output without a layout has [`Port::Rows`].
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

/// A tape compiled to a loop over many rows. An output without a given memory layout has an element per row.
///
/// # Safety
/// PORTS: `play` must read and write only the memory that its contract names.
pub unsafe trait TapeLoop: Debug + Send + Sync {
    /// Runs the tape on `rows` rows. Returns true if a `FaultIf` (an instruction that fails) holds in any row. After
    /// true, the loop may have stopped at any row, and the contents of the outputs are unspecified.
    ///
    /// Mask inputs are read up to the byte of the last row. Mask outputs are written in whole words of 64 bits, with
    /// zeros after the last row.
    ///
    /// # Safety
    /// PORTS: `ports` must have a pointer for each input of the tape, in the order in which inputs were recorded, to
    /// elements in the input's memory layout. After the inputs comes a pointer for each output, in the order in which
    /// outputs were declared: to memory for the rows (whole words for masks), or to the partial sums. No output may
    /// overlap another output. An output may overlap an input only if both are the same array of one type with an
    /// element per row. Numbers that the tape uses as views of strings must be views as in STRING-VIEW.
    unsafe fn play(&self, ports: &[*mut u8], rows: usize, context: &mut Context) -> bool;

    /// Runs the tape as [`TapeLoop::play`] does, for outputs that are too large to stay in the caches. A backend that
    /// supports it writes numbers with non-temporal stores; other threads see the numbers once this thread has called
    /// [`drain_past_caches`](cembra_runtime::drain_past_caches).
    ///
    /// # Safety
    /// PORTS: the requirements of [`TapeLoop::play`] must hold.
    unsafe fn play_past_caches(&self, ports: &[*mut u8], rows: usize, context: &mut Context) -> bool {
        // SAFETY: PORTS, promised by the caller.
        unsafe { self.play(ports, rows, context) }
    }

    /// Runs the tape as [`TapeLoop::play`] does. If the backend supports it, the loop also prefetches memory from the
    /// addresses in `ahead`: for each row and address, as many bytes as an element of the row has. A backend may use
    /// only some of the addresses. The addresses need not be valid.
    ///
    /// # Safety
    /// PORTS: the requirements of [`TapeLoop::play`] must hold.
    unsafe fn play_fetching(&self, ports: &[*mut u8], rows: usize, ahead: &[usize], context: &mut Context) -> bool {
        let _ = ahead;
        // SAFETY: PORTS, promised by the caller.
        unsafe { self.play(ports, rows, context) }
    }

    /// Runs the tape on each of `counts[1]` lines, one after the other, as [`TapeLoop::play_fetching`] does. A line is
    /// a block of `counts[0]` rows whose elements are contiguous, such as a row of a matrix. After each line, the
    /// pointer at index `i` of `ports` advances by `shifts[i]` bytes, and each address in `ahead` by the number of
    /// bytes that is paired with it. Returns `Some(true)` if a `FaultIf` holds in any row, else `Some(false)`. Returns
    /// `None`, and does nothing, if the backend cannot do this faster than with one call per line.
    ///
    /// # Safety
    /// PORTS: for each line (block of rows), the advanced pointers must meet the requirements of [`TapeLoop::play`].
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

    /// The machine code that is equivalent to `play` for `rows` rows; `None` if there is no machine code, or if `play`
    /// does more than run it. The code lives as long as `self`.
    fn entry(&self, rows: usize) -> Option<LoopEntry> {
        _ = rows;
        None
    }

    /// The pages of the machine code that `play` runs, for profilers; `None` if `play` runs no machine code.
    fn pages(&self) -> Option<&CodePages> {
        None
    }

    /// The size of the loop's machine code in bytes.
    fn code_bytes(&self) -> usize;
}

/// A function that returns true if a backend supports the instruction at position `at` of a tape. It is called before
/// the tape is compiled.
pub type CanPlay = fn(tape: &Tape, at: usize) -> bool;
