//! The order of the pieces that a pipeline has in progress: which of them is being written, and whether another may be read. A piece is
//! represented here by its number and the memory it holds.

use cembra_table::HeldBlock;
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

/// No further piece is read while pieces in progress hold more than one part in `HELD_SHARE` of the memory limit.
pub(crate) const HELD_SHARE: u64 = 4;

/// The most bytes that each of `threads` threads may have in progress, so that all together stay within one part in [`HELD_SHARE`] of
/// `most_bytes`.
pub(crate) fn share(most_bytes: u64, threads: usize) -> u64 {
    most_bytes / HELD_SHARE / (threads as u64).max(1)
}

/// The turns of pieces. Only the piece that is being written has several parts: parts of others would wait in memory.
#[derive(Default)]
pub(crate) struct Turns {
    state: Mutex<Turn>,
    changed: Condvar,
}

/// The piece whose turn it is, and the memory of the pieces in progress.
#[derive(Default)]
struct Turn {
    /// The number of the piece that is being written.
    piece: u64,
    /// The memory held by that piece and by the later ones read so far.
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

impl Turns {
    /// Makes `piece` the one that is being written, after the one before is complete.
    pub(crate) fn set(&self, piece: u64) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.piece = piece;
        state.held.pop_front();
        drop(state);
        self.changed.notify_all();
    }

    /// Waits until `piece` is being written, or until the pipeline has ended.
    pub(crate) fn wait_for(&self, piece: u64) {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        drop(self.changed.wait_while(state, |state| state.piece < piece));
    }

    /// Waits until the pieces in progress hold at most `bytes` bytes, or until the pipeline has ended.
    pub(crate) fn wait_for_room(&self, bytes: u64) {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        drop(self.changed.wait_while(state, |state| state.piece < u64::MAX && state.held_bytes() > bytes));
    }

    /// Adds the memory of a piece that was read, after all others.
    pub(crate) fn hold(&self, held: HeldBlock) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).held.push_back(held);
    }
}

/// A guard that ends all waiting for turns when it is dropped.
pub(crate) struct EndOfTurns(Arc<Turns>);

impl EndOfTurns {
    /// Makes the guard for `turns`.
    pub(crate) fn of(turns: &Arc<Turns>) -> EndOfTurns {
        EndOfTurns(turns.clone())
    }
}

impl Drop for EndOfTurns {
    fn drop(&mut self) {
        self.0.set(u64::MAX);
    }
}
