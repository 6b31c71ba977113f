//! Memory that is accessed by raw address only, for frames and the chunks of an arena. Views of one part are read while other parts are written, so
//! there must be no reference to the whole memory. It is not stored in a box or a vector either, because moving a box or a vector would assert unique
//! access to its contents.

use std::ptr::NonNull;

/// Memory that starts as zeros, aligned to 8 bytes. Its address is valid as long as the value lives, and does not change when
/// the value is moved.
#[derive(Debug)]
pub(crate) struct Memory(NonNull<[u64]>);

// SAFETY: OWNED-MEMORY: nothing else frees it, and users of the address promise not to access it while others write.
unsafe impl Send for Memory {}
// SAFETY: OWNED-MEMORY: a shared one gives only an address, a size, and bytes that nothing writes meanwhile.
unsafe impl Sync for Memory {}

impl Memory {
    /// Allocates at least `bytes` bytes of zeros.
    pub(crate) fn zeroed(bytes: usize) -> Memory {
        Memory(NonNull::from(Box::leak(vec![0; bytes.div_ceil(8)].into_boxed_slice())))
    }

    /// The address of the memory's first byte. All of the memory may be read and written through this address, as the rule OWNED-MEMORY in
    /// `docs/safety.md` states.
    #[inline]
    pub(crate) const fn start(&self) -> NonNull<u8> {
        self.0.cast()
    }

    /// The memory's size in bytes, a multiple of 8.
    pub(crate) const fn size(&self) -> usize {
        self.0.len() * 8
    }

    /// Allocates memory of the same size with the same contents. Pointers in the copy remain valid, because they are copied as pointers, not as
    /// integers.
    ///
    /// # Safety
    /// OWNED-MEMORY (`docs/safety.md`): nothing may write to the memory during the call.
    pub(crate) unsafe fn copy(&self) -> Memory {
        let copy = Memory::zeroed(self.size());
        // SAFETY: OWNED-MEMORY: both have this size and do not overlap; that nothing writes is promised by the caller.
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

    /// A pointer that is read from the copy may be dereferenced, because it is the pointer that was written, not an integer.
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
