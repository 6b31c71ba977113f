//! The order of the pieces of data that a pipeline has in progress (read, but not completely written): which piece is being written, and whether
//! another piece may be read. Of each piece, this module knows only the number and the memory that the piece keeps alive.

use cembra_table::HeldBlock;
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

/// The divisor of the memory limit for the pieces of data in progress (read, but not completely written): they may take the limit divided by
/// `HELD_SHARE`. While they take more, no further piece is read.
pub(crate) const HELD_SHARE: u64 = 4;

/// The most bytes that each of `threads` threads may have in progress, so that all threads together have at most `most_bytes` divided by
/// [`HELD_SHARE`].
pub(crate) fn share(most_bytes: u64, threads: usize) -> u64 {
    most_bytes / HELD_SHARE / (threads as u64).max(1)
}

/// The order in which pieces of the data are written, and the memory of the pieces in progress (read, but not completely written). Only the piece
/// that is being written is split into parts. A later piece is not split yet, because its parts could not be written before its turn.
#[derive(Default)]
pub(crate) struct PieceOrder {
    state: Mutex<Turn>,
    changed: Condvar,
}

/// The piece whose turn it is, and the memory of the pieces in progress.
#[derive(Default)]
struct Turn {
    /// The number of the piece that is being written.
    piece: u64,
    /// The memory blocks of the piece that is being written and of the later pieces that were read, in order.
    held: VecDeque<HeldBlock>,
}

impl Turn {
    /// The bytes of all held blocks, each counted once.
    fn held_bytes(&self) -> u64 {
        let before = std::iter::once(None).chain(self.held.iter().map(Some));
        let others =
            self.held.iter().zip(before).filter(|(held, before)| Some(held.block) != before.map(|one| one.block));
        others.fold(0, |sum, (held, _)| sum.saturating_add(held.bytes))
    }
}

impl PieceOrder {
    /// Begins the turn of `piece`: from now on it is the piece that is being written. The previous piece must be complete.
    pub(crate) fn set(&self, piece: u64) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.piece = piece;
        state.held.pop_front();
        drop(state);
        self.changed.notify_all();
    }

    /// Waits until it is the turn of `piece` to be written, or until the pipeline has ended.
    pub(crate) fn wait_for(&self, piece: u64) {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        drop(self.changed.wait_while(state, |state| state.piece < piece));
    }

    /// Waits until the pieces in progress hold at most `bytes` bytes, or until the pipeline has ended.
    pub(crate) fn wait_for_room(&self, bytes: u64) {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        drop(self.changed.wait_while(state, |state| state.piece < u64::MAX && state.held_bytes() > bytes));
    }

    /// Records `held`, the memory of a piece that was read after all pieces recorded before.
    pub(crate) fn hold(&self, held: HeldBlock) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).held.push_back(held);
    }
}

/// A guard. When it is dropped, all threads stop waiting for their turn, so that no thread waits forever after an error.
pub(crate) struct EndOfTurns(Arc<PieceOrder>);

impl EndOfTurns {
    /// Makes a guard for `turns`.
    pub(crate) fn of(turns: &Arc<PieceOrder>) -> EndOfTurns {
        EndOfTurns(turns.clone())
    }
}

impl Drop for EndOfTurns {
    fn drop(&mut self) {
        self.0.set(u64::MAX);
    }
}
