//! The arena of an evaluation: memory for the strings that the evaluation makes. The arena hands out pieces of its
//! memory, one after the other. When the next evaluation begins, all pieces become free again. Once the arena has grown
//! to the size that a model needs, it allocates no more memory.

use crate::memory::Memory;
use crate::slack::UnusedMemoryCounter;
use crate::{Fault, FaultKind, has_room};
use std::ptr::NonNull;

/// The smallest chunk that is allocated from the system, in bytes.
const CHUNK: usize = 4 << 10;

/// An arena: memory for the strings of one evaluation at a time.
///
/// Strings in earlier pieces of the arena are read while later pieces are written, and while the arena is moved. So the arena never makes another
/// reference to memory that it handed out, neither to the piece nor to the chunk that contains the piece.
#[derive(Debug)]
pub struct Arena {
    /// The chunks (allocations) of the arena, oldest first. Pieces are cut from the last chunk.
    chunks: Vec<Memory>,
    /// The address of the first byte in the last chunk; dangling while there is no chunk.
    start: NonNull<u8>,
    /// The number of bytes of the last chunk that may be handed out: within the chunk, and within the limit.
    room: usize,
    /// The number of bytes of the last chunk that were handed out.
    taken: usize,
    /// The number of bytes that were handed out from earlier chunks since the last reset. It makes the limit of an evaluation independent of the
    /// chunks that earlier evaluations left.
    before: usize,
    /// The size of all chunks together, in bytes.
    size: usize,
    limit: usize,
    slack: UnusedMemoryCounter,
}

// SAFETY: ARENA-PIECE: the address is that of a chunk, which the arena owns.
unsafe impl Send for Arena {}
// SAFETY: ARENA-PIECE: a shared arena gives out nothing.
unsafe impl Sync for Arena {}

impl Arena {
    /// The default limit of an arena: 64 MiB between two resets, in bytes.
    pub const LIMIT: usize = 64 << 20;

    /// The largest limit, in bytes: the system cannot allocate more.
    const MOST: usize = isize::MAX as usize / 2;

    /// An empty arena that hands out at most `limit` bytes between two resets.
    #[must_use]
    pub const fn new(limit: usize) -> Self {
        let limit = if limit < Arena::MOST { limit } else { Arena::MOST };
        Arena {
            chunks: Vec::new(),
            start: NonNull::dangling(),
            room: 0,
            taken: 0,
            before: 0,
            size: 0,
            limit,
            slack: UnusedMemoryCounter::new(),
        }
    }

    /// The memory that the arena has allocated, all its chunks together, in bytes.
    #[must_use]
    pub const fn memory_bytes(&self) -> usize {
        self.size
    }

    /// The most bytes that the arena hands out between two resets.
    #[must_use]
    pub const fn limit(&self) -> usize {
        self.limit
    }

    /// The number of bytes that the arena handed out since its last reset.
    #[must_use]
    pub const fn used(&self) -> usize {
        self.before + self.taken
    }

    /// Takes back all memory that the arena handed out. Several chunks are replaced by a single chunk of their total size. If several evaluations
    /// need much less memory than the arena has, the memory is freed.
    #[inline]
    pub fn reset(&mut self) {
        if self.size > UnusedMemoryCounter::KEPT {
            self.settle();
        }
        // Miri gets new memory at each reset, so that it notices reads of pieces that were taken back.
        if self.chunks.len() > 1 || (cfg!(miri) && !self.chunks.is_empty()) {
            self.join();
        }
        (self.taken, self.before) = (0, 0);
        self.room = self.size.min(self.limit);
    }

    /// Takes back all memory that the arena handed out, and sets its limit to `limit` bytes. The arena frees its memory if that is larger than the
    /// limit.
    pub fn reset_to(&mut self, limit: usize) {
        self.limit = limit.min(Arena::MOST);
        if self.size > self.limit {
            self.clear();
        }
        self.reset();
    }

    /// Frees the memory if evaluations have not needed it for some time.
    #[cold]
    #[inline(never)]
    fn settle(&mut self) {
        if self.slack.is_over(self.used(), self.size) {
            self.clear();
        }
    }

    fn clear(&mut self) {
        self.chunks.clear();
        (self.start, self.size) = (NonNull::dangling(), 0);
    }

    /// Replaces all chunks by one of their total size.
    #[cold]
    #[inline(never)]
    fn join(&mut self) {
        self.chunks.clear();
        self.add(self.size);
    }

    /// Returns a piece of `len` bytes that is valid until the next reset. Its content is unspecified.
    ///
    /// # Errors
    /// If the arena's limit is exceeded.
    #[inline]
    pub fn allocate(&mut self, len: usize) -> Result<&mut [u8], Fault> {
        if self.room - self.taken < len {
            self.grow(len)?;
        }
        // SAFETY: ARENA-PIECE: `len` bytes after those that are taken are inside the chunk. They hold zeros or what an earlier evaluation wrote,
        // and no other piece since the last reset contains them.
        unsafe {
            let piece = self.start.add(self.taken);
            self.taken += len;
            Ok(std::slice::from_raw_parts_mut(piece.as_ptr(), len))
        }
    }

    /// Adds to the arena a chunk with room for a piece of `len` bytes.
    #[cold]
    fn grow(&mut self, len: usize) -> Result<(), Fault> {
        let left = self.limit.saturating_sub(self.before + self.taken);
        if len > left {
            return Err(Fault::with(FaultKind::ArenaLimit, self.limit as u64));
        }
        let wanted = len.max(CHUNK).max(self.size).min(left);
        if !has_room(wanted) {
            return Err(Fault::with(FaultKind::ArenaLimit, self.limit as u64));
        }
        self.before += self.taken;
        self.size += wanted;
        self.add(wanted);
        Ok(())
    }

    /// Adds to the arena a chunk of `size` bytes, from which the next pieces are cut.
    #[cold]
    fn add(&mut self, size: usize) {
        let chunk = Memory::zeroed(size);
        (self.start, self.room, self.taken) = (chunk.start(), size, 0);
        self.chunks.push(chunk);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_may_change_between_evaluations() {
        let mut arena = Arena::new(100_000);
        assert!(arena.allocate(90_000).is_ok() && arena.allocate(20_000).is_err());
        arena.reset_to(200_000);
        assert!(arena.allocate(150_000).is_ok() && arena.memory_bytes() >= 150_000);
        arena.reset_to(5000);
        assert_eq!((arena.memory_bytes(), arena.limit(), arena.used()), (0, 5000, 0));
        assert!(arena.allocate(5001).is_err() && arena.allocate(5000).is_ok() && arena.allocate(1).is_err());
    }

    #[test]
    fn pieces_do_not_overlap_and_are_taken_back() {
        let mut arena = Arena::new(Arena::LIMIT);
        let first = arena.allocate(10).unwrap().as_ptr_range();
        let second = arena.allocate(4090).unwrap().as_ptr_range();
        let third = arena.allocate(6).unwrap().as_ptr_range();
        assert!(first.end <= second.start || second.end <= first.start);
        assert_eq!(second.end, third.start);
        assert_eq!((arena.chunks.len(), arena.memory_bytes()), (2, 2 * CHUNK));
        arena.reset();
        assert_eq!((arena.chunks.len(), arena.taken, arena.memory_bytes()), (1, 0, 2 * CHUNK));
        let joined = arena.allocate(2 * CHUNK).unwrap().as_ptr_range();
        for _ in 0..100 {
            arena.reset();
            let start = arena.allocate(8000).unwrap().as_ptr();
            assert!(start == joined.start || cfg!(miri), "a warm arena allocates nothing");
            assert_eq!((arena.chunks.len(), arena.memory_bytes()), (1, 2 * CHUNK));
        }
    }

    /// Every piece is written when it is made and read after all were made, over many chunks and positions of the arena.
    #[test]
    fn pieces_keep_what_they_hold_while_others_are_made() {
        let mut arena = Arena::new(Arena::LIMIT);
        for round in 0..3_u8 {
            let mut views: Vec<(*const u8, usize)> = Vec::new();
            for at in 0..200_usize {
                let len = at * 37 % 1000;
                let piece = arena.allocate(len).unwrap();
                piece.fill(round.wrapping_add(at as u8));
                views.push((piece.as_ptr(), len));
                // The arena may be moved.
                arena = *Box::new(arena);
            }
            assert_eq!(arena.chunks.len() > 1, round == 0, "round {round}: {} chunks", arena.chunks.len());
            for (at, (start, len)) in views.iter().enumerate() {
                // SAFETY: ARENA-PIECE: the piece is valid until the next reset.
                let piece = unsafe { std::slice::from_raw_parts(*start, *len) };
                assert!(piece.iter().all(|&byte| byte == round.wrapping_add(at as u8)), "piece {at} in round {round}");
            }
            arena.reset();
        }
    }

    #[test]
    fn an_empty_piece_needs_no_memory() {
        let mut arena = Arena::new(0);
        assert!(arena.allocate(0).unwrap().is_empty());
        arena.reset();
        assert_eq!((arena.chunks.len(), arena.memory_bytes()), (0, 0));
        assert_eq!(arena.allocate(1).unwrap_err().kind, FaultKind::ArenaLimit);
    }

    #[test]
    fn the_limit_is_a_fault() {
        let mut arena = Arena::new(6000);
        assert!(arena.allocate(3000).is_ok());
        assert!(arena.allocate(1000).is_ok());
        assert_eq!(arena.allocate(3000).unwrap_err(), Fault::with(FaultKind::ArenaLimit, 6000));
        assert_eq!(arena.memory_bytes(), CHUNK);
        // The rest of the limit can be used to the last byte, whatever is left of a chunk.
        arena.reset();
        assert!(arena.allocate(4000).is_ok());
        assert!(arena.allocate(2000).is_ok());
        assert!(arena.allocate(1).is_err());
        assert!(arena.allocate(0).is_ok());
        arena.reset();
        assert!(arena.allocate(6000).is_ok());
        assert!(arena.allocate(1).is_err());
        assert!(arena.memory_bytes() <= 2 * 6000);
    }

    #[test]
    fn what_nobody_can_allocate_is_a_fault_too() {
        for len in [usize::MAX, isize::MAX as usize, isize::MAX as usize - 6] {
            assert_eq!(Arena::new(usize::MAX).allocate(len).unwrap_err().kind, FaultKind::ArenaLimit);
        }
    }
}
