//! The arena of a call: memory for the strings an evaluation makes, given out piece by piece and taken back all at once
//! when the next evaluation begins. Once it has grown to what a model needs, it allocates no more.

use crate::{Fault, FaultKind};

/// The smallest piece of memory asked of the system.
const CHUNK: usize = 4 << 10;

/// Memory for the strings of one evaluation at a time.
#[derive(Debug)]
pub struct Arena {
    /// Pieces in use, oldest first; the last one is being filled.
    chunks: Vec<Box<[u8]>>,
    /// How much of the last piece is taken.
    taken: usize,
    /// How much all pieces hold together.
    size: usize,
    limit: usize,
}

impl Arena {
    /// The default limit: 64 MiB.
    pub const LIMIT: usize = 64 << 20;

    /// An empty arena that will hold up to `limit` bytes.
    #[must_use]
    pub const fn new(limit: usize) -> Self {
        Arena { chunks: Vec::new(), taken: 0, size: 0, limit }
    }

    /// Bytes of memory that all pieces hold.
    #[must_use]
    pub const fn memory_bytes(&self) -> usize {
        self.size
    }

    /// Takes everything back. One piece as large as all together takes the place of several.
    #[inline]
    pub fn reset(&mut self) {
        if self.chunks.len() > 1 {
            self.join();
        }
        self.taken = 0;
    }

    #[cold]
    fn join(&mut self) {
        self.chunks.clear();
        self.chunks.push(vec![0; self.size].into_boxed_slice());
    }

    /// A piece of `len` bytes, zeroed or not, valid until the next reset.
    ///
    /// # Errors
    /// The limit is reached.
    pub fn allocate(&mut self, len: usize) -> Result<&mut [u8], Fault> {
        let left = self.chunks.last().map_or(0, |chunk| chunk.len() - self.taken);
        if left < len {
            let wanted = len.max(CHUNK).max(self.size);
            let wanted = if self.size.saturating_add(wanted) > self.limit { len } else { wanted };
            if self.size.saturating_add(wanted) > self.limit {
                return Err(Fault::with(FaultKind::ArenaLimit, self.limit as u64));
            }
            self.chunks.push(vec![0; wanted].into_boxed_slice());
            self.size += wanted;
            self.taken = 0;
        }
        let start = self.taken;
        self.taken += len;
        match self.chunks.last_mut() {
            Some(chunk) => Ok(&mut chunk[start..start + len]),
            None => Ok(&mut []),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_do_not_overlap_and_are_taken_back() {
        let mut arena = Arena::new(Arena::LIMIT);
        let first = arena.allocate(10).unwrap().as_ptr_range();
        let second = arena.allocate(4090).unwrap().as_ptr_range();
        let third = arena.allocate(6).unwrap().as_ptr_range();
        assert!(first.end <= second.start || second.end <= first.start);
        assert_eq!(second.end, third.start);
        assert_eq!(arena.chunks.len(), 2);
        arena.reset();
        assert_eq!((arena.chunks.len(), arena.taken), (1, 0));
        for _ in 0..100 {
            arena.reset();
            arena.allocate(8000).unwrap();
            assert_eq!(arena.chunks.len(), 1, "a warm arena does not grow");
        }
    }

    #[test]
    fn the_limit_is_a_fault() {
        let mut arena = Arena::new(6000);
        assert!(arena.allocate(3000).is_ok());
        assert!(arena.allocate(1000).is_ok());
        assert_eq!(arena.allocate(3000).unwrap_err().kind, FaultKind::ArenaLimit);
        arena.reset();
        assert!(arena.allocate(4000).is_ok());
    }
}
