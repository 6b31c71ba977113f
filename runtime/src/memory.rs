//! Memory that is reached by its address alone: what frames and the chunks of an arena lie in. Views of one part are read while
//! others are written, so there is never a reference to all of it; nor does it stay in a box or a vector, moving which would
//! be a claim to what is inside.

use std::ptr::NonNull;

/// Words that start as zeros, aligned to 8 bytes. Its address is good as long as it lives, wherever it is moved to.
#[derive(Debug)]
pub(crate) struct Memory(NonNull<[u64]>);

// SAFETY: OWNED-MEMORY: nobody else frees it, and whoever uses its address promises not to do so while others write.
unsafe impl Send for Memory {}
// SAFETY: OWNED-MEMORY: through a shared one there is only an address, a size, and what nobody writes meanwhile.
unsafe impl Sync for Memory {}

impl Memory {
    /// Memory of at least so many bytes.
    pub(crate) fn zeroed(bytes: usize) -> Memory {
        Memory(NonNull::from(Box::leak(vec![0; bytes.div_ceil(8)].into_boxed_slice())))
    }

    /// The first byte. All of it may be read and written by this address, as OWNED-MEMORY says.
    #[inline]
    pub(crate) const fn start(&self) -> NonNull<u8> {
        self.0.cast()
    }

    /// Size in bytes, a multiple of 8.
    pub(crate) const fn size(&self) -> usize {
        self.0.len() * 8
    }

    /// As much other memory that holds the same: pointers too, which numbers of the same value would not be.
    ///
    /// # Safety
    /// OWNED-MEMORY: nobody writes meanwhile.
    pub(crate) unsafe fn copy(&self) -> Memory {
        let copy = Memory::zeroed(self.size());
        // SAFETY: OWNED-MEMORY: both are of this size and apart; that nobody writes is promised by the caller.
        unsafe { copy.start().copy_from_nonoverlapping(self.start(), self.size()) };
        copy
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: OWNED-MEMORY: it came out of a box in `zeroed`, and goes back into one only here.
        drop(unsafe { Box::from_raw(self.0.as_ptr()) });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_zeroed_aligned_and_stays_where_it_is() {
        for bytes in [0, 1, 8, 9, 4096] {
            let memory = Memory::zeroed(bytes);
            assert_eq!(memory.size(), bytes.next_multiple_of(8));
            let start = memory.start();
            let moved = Box::new(memory);
            assert_eq!((moved.start(), start.align_offset(8)), (start, 0));
            // SAFETY: OWNED-MEMORY: as many bytes as it has.
            let found = unsafe { std::slice::from_raw_parts(start.as_ptr(), bytes) };
            assert!(found.iter().all(|&byte| byte == 0));
        }
    }

    /// A pointer that is read from the copy may be followed: it is the one that was written, not a number.
    #[test]
    fn a_copy_holds_the_same_pointers() {
        let (memory, target) = (Memory::zeroed(24), 77_u32);
        // SAFETY: OWNED-MEMORY: inside of 24 bytes.
        let copy = unsafe {
            memory.start().add(8).cast::<*const u32>().write(&raw const target);
            memory.copy()
        };
        drop(memory);
        // SAFETY: OWNED-MEMORY: the copy holds what was written; the target lives.
        assert_eq!(unsafe { *copy.start().add(8).cast::<*const u32>().read() }, 77);
    }
}
