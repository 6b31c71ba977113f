//! Reserves address space for machine code, near the code that calls it. Branch predictors of x86-64 store the lower 32
//! bits of a target: each call into another 4 GiB of the address space takes a nanosecond longer (`benches/record`). So
//! space is first requested in the 4 GiB that contain this program's own code; if that fails, any address is accepted.

#[cfg(target_os = "linux")]
use linux as system;
#[cfg(not(target_os = "linux"))]
use other as system;
pub(super) use system::{Reserved, discard, reserve};

#[cfg(target_os = "linux")]
mod linux {
    use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};
    use std::io;

    /// Address space that is reserved for machine code. It is unmapped when the value is dropped.
    #[derive(Debug)]
    pub(in crate::code_memory) struct Reserved {
        start: *mut u8,
        size: usize,
    }

    // SAFETY: CODE-SLOT: this is an address and a size; only the owners of slots access the memory.
    unsafe impl Send for Reserved {}
    // SAFETY: CODE-SLOT, as for `Send`.
    unsafe impl Sync for Reserved {}

    impl Reserved {
        /// The address of the first reserved byte.
        pub(in crate::code_memory) fn start(&self) -> *mut u8 {
            self.start
        }
    }

    /// The size of the blocks of address space in which all addresses have the same upper 32 bits.
    const NEAR: usize = 1 << 32;
    /// The distance in bytes from the end of the requested addresses to this program's code. The addresses are before
    /// the code, because the heap follows the code and grows towards higher addresses.
    const DISTANCE: usize = 1 << 30;
    /// The number of addresses to try.
    const ATTEMPTS: usize = 16;

    /// Reserves `bytes` bytes of address space that cannot be accessed yet, so they take no memory.
    pub(in crate::code_memory) fn reserve(bytes: usize) -> io::Result<Reserved> {
        let here = reserve as fn(usize) -> io::Result<Reserved> as usize;
        for hint in hints(here, bytes) {
            let reserved = map(hint, bytes)?;
            if reserved.start as usize / NEAR == here / NEAR {
                return Ok(reserved);
            }
        }
        map(0, bytes)
    }

    /// The addresses at which to request space near `here`: before it if there is room, else at the end of its 4 GiB.
    fn hints(here: usize, bytes: usize) -> impl Iterator<Item = usize> {
        let first = here / NEAR * NEAR;
        let end = match here.checked_sub(DISTANCE) {
            Some(end) if end - first.min(end) > bytes.saturating_mul(ATTEMPTS) => end,
            _ => first + (NEAR - 1),
        };
        let end = end & !((1 << 20) - 1);
        (1..=ATTEMPTS)
            .map_while(move |at| end.checked_sub(bytes.checked_mul(at)?))
            .take_while(move |hint| *hint > first)
    }

    fn map(hint: usize, bytes: usize) -> io::Result<Reserved> {
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        // SAFETY: CODE-SLOT: without `FIXED`, a new mapping replaces nothing that is in use, whatever the hint.
        let start =
            unsafe { mmap_anonymous(std::ptr::without_provenance_mut(hint), bytes, ProtFlags::empty(), flags) }?;
        Ok(Reserved { start: start.cast(), size: bytes })
    }

    impl Drop for Reserved {
        fn drop(&mut self) {
            // SAFETY: CODE-SLOT: every slot owns the reservation, so there are no slots left. If it cannot be unmapped, it
            // stays.
            let _ = unsafe { munmap(self.start.cast(), self.size) };
        }
    }

    /// Discards the contents of the pages from `offset` on, `size` bytes. The pages then read as zeros, unless the system refuses.
    ///
    /// # Safety
    /// CODE-SLOT (`docs/safety.md`): no other slot may have these pages, and nothing may read them before they are written again.
    pub(in crate::code_memory) unsafe fn discard(reserved: &Reserved, offset: usize, size: usize) {
        let start = reserved.start.wrapping_add(offset).cast();
        // SAFETY: CODE-SLOT, promised by the caller.
        let _ = unsafe { madvise(start, size, Advice::LinuxDontNeed) };
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn hints_are_near_and_apart() {
            let bytes = 64 << 20;
            for here in
                [0x5555_5555_4000, 0x4_0000_0000, 0x40_0000, 0x7fff_ffff_f000, 0x1_4000_0000 + bytes, 0x1_8000_0000]
            {
                let hints: Vec<usize> = hints(here, bytes).collect();
                assert!(hints.len() > 8, "{here:#x}: {hints:#x?}");
                assert!(
                    hints.iter().all(|hint| hint / NEAR == here / NEAR && (hint + bytes - 1) / NEAR == here / NEAR)
                );
                assert!(hints.windows(2).all(|pair| pair[0] - pair[1] == bytes));
                assert!(hints.iter().all(|hint| hint.abs_diff(here) + (1 << 20) >= DISTANCE), "{here:#x}: {hints:#x?}");
            }
        }

        #[test]
        #[cfg_attr(miri, ignore = "Miri cannot map pages")]
        fn space_is_near_this_program() {
            let here = space_is_near_this_program as fn() as usize;
            let reserved: Vec<Reserved> = (0..3).map(|_| reserve(64 << 20).expect("space")).collect();
            assert!(reserved.iter().all(|one| one.start as usize / NEAR == here / NEAR), "{reserved:?} from {here:#x}");
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod other {
    use memmap2::{MmapOptions, MmapRaw};
    use std::io;

    /// Address space that is reserved for machine code. It is unmapped when the value is dropped.
    #[derive(Debug)]
    pub(in crate::code_memory) struct Reserved(MmapRaw);

    impl Reserved {
        /// The address of the first reserved byte.
        pub(in crate::code_memory) fn start(&self) -> *mut u8 {
            self.0.as_mut_ptr()
        }
    }

    /// Reserves `bytes` bytes of address space that cannot be accessed yet, so they take no memory.
    pub(in crate::code_memory) fn reserve(bytes: usize) -> io::Result<Reserved> {
        let memory = MmapRaw::from(MmapOptions::new().len(bytes).no_reserve_swap().map_anon()?);
        // SAFETY: CODE-SLOT: the mapping is new, and there are no slots of it.
        unsafe { region::protect(memory.as_mut_ptr(), bytes, region::Protection::NONE) }.map_err(io::Error::other)?;
        Ok(Reserved(memory))
    }

    /// Discards the contents of the pages from `offset` on, `size` bytes, unless the system refuses.
    ///
    /// # Safety
    /// CODE-SLOT (`docs/safety.md`): no other slot may have these pages, and nothing may read them before they are written again.
    pub(in crate::code_memory) unsafe fn discard(reserved: &Reserved, offset: usize, size: usize) {
        #[cfg(unix)]
        // SAFETY: CODE-SLOT, promised by the caller.
        let _ = unsafe { reserved.0.unchecked_advise_range(memmap2::UncheckedAdvice::DontNeed, offset, size) };
        #[cfg(not(unix))]
        let _ = (reserved, offset, size);
    }
}
