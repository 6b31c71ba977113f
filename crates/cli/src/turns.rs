//! Whose turn it is among the pieces that a pipeline has under way: which of them is written, and whether another may be read. No piece is
//! here, only its number and what it holds on to.

use cembra_table::HeldBlock;
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

/// While pieces under way hold on to more than this share of the bytes that may be in memory, no other is read.
pub(crate) const HELD_SHARE: u64 = 4;

/// The bytes that each of several threads may have under way, of as many as all may have: a share of what the data may take.
pub(crate) fn share(most_bytes: u64, threads: usize) -> u64 {
    most_bytes / HELD_SHARE / (threads as u64).max(1)
}

/// Which piece is being written. Only of that one there are several parts: those of others would wait in memory.
#[derive(Default)]
pub(crate) struct Turns {
    state: Mutex<Turn>,
    changed: Condvar,
}

#[derive(Default)]
struct Turn {
    /// The piece that is being written.
    piece: u64,
    /// What that piece and those behind it hold on to, as far as they were read.
    held: VecDeque<HeldBlock>,
}

impl Turn {
    /// The bytes of all blocks that are held.
    fn held_bytes(&self) -> u64 {
        let before = std::iter::once(None).chain(self.held.iter().map(Some));
        let others =
            self.held.iter().zip(before).filter(|(held, before)| Some(held.block) != before.map(|one| one.block));
        others.fold(0, |sum, (held, _)| sum.saturating_add(held.bytes))
    }
}

impl Turns {
    /// The piece before is written.
    pub(crate) fn set(&self, piece: u64) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.piece = piece;
        state.held.pop_front();
        drop(state);
        self.changed.notify_all();
    }

    /// Waits until a piece is being written, or nothing will be any more.
    pub(crate) fn wait_for(&self, piece: u64) {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        drop(self.changed.wait_while(state, |state| state.piece < piece));
    }

    /// Waits until pieces hold on to no more than so many bytes, or there is none.
    pub(crate) fn wait_for_room(&self, bytes: u64) {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        drop(self.changed.wait_while(state, |state| state.piece < u64::MAX && state.held_bytes() > bytes));
    }

    /// A piece was read, behind all others.
    pub(crate) fn hold(&self, held: HeldBlock) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).held.push_back(held);
    }
}

/// Nobody waits for a turn once this is dropped.
pub(crate) struct EndOfTurns(Arc<Turns>);

impl EndOfTurns {
    /// The end of these.
    pub(crate) fn of(turns: &Arc<Turns>) -> EndOfTurns {
        EndOfTurns(turns.clone())
    }
}

impl Drop for EndOfTurns {
    fn drop(&mut self) {
        self.0.set(u64::MAX);
    }
}
