//! The regions of address space for machine code, and the slots of whole pages that are cut from them. One region serves thousands of small models.
//! The operating system limits the number of mappings in a process, and counts adjacent executable pages as one mapping.

use super::reserve::{Reserved, discard, reserve};
use super::slots::Slots;
use super::{CodeMemoryError, Reason};
use region::Protection;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The bytes of address space that are reserved at a time. A larger piece of code gets a region of its own.
const REGION_BYTES: usize = 64 << 20;

/// The default limit for all live code, in bytes.
const LIVE_LIMIT: usize = 1 << 30;

/// A range of address space for machine code, and the free pages in it.
#[derive(Debug)]
struct Region {
    memory: Arc<Reserved>,
    slots: Slots,
}

/// The regions of address space that the process has reserved for machine code.
#[derive(Debug)]
pub(super) struct Pool {
    /// The reserved regions: at most as many as the limit on the bytes of code allows.
    regions: Mutex<Vec<Region>>,
    region_bytes: usize,
    /// The bytes of all slots (pages with live code). Written only while the regions are locked.
    live: AtomicUsize,
    limit: AtomicUsize,
}

impl Pool {
    const fn new(region_bytes: usize, limit: usize) -> Pool {
        Pool {
            regions: Mutex::new(Vec::new()),
            region_bytes,
            live: AtomicUsize::new(0),
            limit: AtomicUsize::new(limit),
        }
    }

    /// The pool from which memory for all machine code of the process is allocated.
    pub(super) fn global() -> &'static Pool {
        static POOL: Pool = Pool::new(REGION_BYTES, LIVE_LIMIT);
        &POOL
    }

    /// The total size of the slots of all live code, in bytes.
    pub(super) fn live(&self) -> usize {
        self.live.load(Ordering::Relaxed)
    }

    /// The most bytes that the slots of all live code may take together.
    pub(super) fn limit(&self) -> usize {
        self.limit.load(Ordering::Relaxed)
    }

    /// Sets the most bytes that the slots of all live code may take together.
    pub(super) fn set_limit(&self, bytes: usize) {
        self.limit.store(bytes, Ordering::Relaxed);
    }

    /// Allocates whole pages of at least `size` bytes, at least one page. Their contents and their protection are
    /// unspecified.
    pub(super) fn take(&'static self, size: usize) -> Result<Slot, CodeMemoryError> {
        let (page, limit) = (region::page::size(), self.limit());
        let mut regions = self.lock();
        let live = self.live();
        let within = |size: &usize| live.checked_add(*size).is_some_and(|sum| sum <= limit);
        let exceeded = CodeMemoryError { reason: Reason::Limit(limit) };
        let size = size.max(1).checked_next_multiple_of(page).filter(within).ok_or(exceeded)?;
        let found =
            regions.iter_mut().find_map(|region| Some((region.slots.take(size / page)?, region.memory.clone())));
        let (first, memory) = match found {
            Some(found) => found,
            None => {
                let bytes = self.region_bytes.next_multiple_of(page).max(size);
                let memory = Arc::new(reserve(bytes).map_err(CodeMemoryError::system("reserve"))?);
                let mut region = Region { memory: memory.clone(), slots: Slots::new(bytes / page) };
                // The first pages of a new region are the ones that `take` returns.
                let first = region.slots.take(size / page).unwrap_or_default();
                regions.push(region);
                (first, memory)
            }
        };
        self.live.store(live + size, Ordering::Relaxed);
        Ok(Slot { pool: self, memory, offset: first * page, size })
    }

    /// Frees the pages of a slot. A region without slots is unmapped, unless it is the only one.
    fn give(&self, slot: &Slot) {
        let page = region::page::size();
        let mut regions = self.lock();
        self.live.fetch_sub(slot.size, Ordering::Relaxed);
        if let Some(at) = regions.iter().position(|region| Arc::ptr_eq(&region.memory, &slot.memory)) {
            regions[at].slots.give(slot.offset / page, slot.size / page);
            if regions[at].slots.is_unused() && regions.len() > 1 {
                // The slot still holds the mapping: it is unmapped after the lock is released.
                regions.remove(at);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Region>> {
        self.regions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Pages for machine code. They belong exclusively to the slot's owner until the slot is dropped.
#[derive(Debug)]
pub(super) struct Slot {
    pool: &'static Pool,
    memory: Arc<Reserved>,
    /// The offset of the slot's first page in its region, in bytes.
    offset: usize,
    /// The slot's size in bytes, a multiple of the page size.
    size: usize,
}

impl Slot {
    /// The address of the slot's first byte.
    #[inline]
    pub(super) fn start(&self) -> *mut u8 {
        self.memory.start().wrapping_add(self.offset)
    }

    /// The slot's size in bytes.
    pub(super) fn size(&self) -> usize {
        self.size
    }

    /// Makes the slot's pages writable and not executable.
    pub(super) fn make_writable(&mut self) -> io::Result<()> {
        // SAFETY: CODE-SLOT: the pages are inside the mapping and this slot's, which is borrowed exclusively.
        unsafe { protect(self.start(), self.size, Protection::READ_WRITE) }
    }

    /// Makes the slot's pages executable and not writable.
    pub(super) fn make_executable(&mut self) -> io::Result<()> {
        // SAFETY: CODE-SLOT: the pages are inside the mapping and this slot's, which is borrowed exclusively.
        unsafe { protect(self.start(), self.size, Protection::READ_EXECUTE) }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        // The pages stay executable, because a hole with another protection than its neighbours would cost two mappings.
        // Their contents are discarded at once; if the system refuses, they are overwritten when the pages are used
        // again.
        // SAFETY: CODE-SLOT: nothing else has these pages, and nothing reads them before they are written again.
        unsafe { discard(&self.memory, self.offset, self.size) };
        self.pool.give(self);
    }
}

/// Sets the protection of pages.
///
/// # Safety
/// CODE-SLOT: the pages are mapped, and nothing else uses them.
unsafe fn protect(start: *mut u8, size: usize, protection: Protection) -> io::Result<()> {
    // SAFETY: CODE-SLOT, promised by the caller.
    unsafe { region::protect(start, size, protection) }.map_err(|error| match error {
        region::Error::SystemCall(error) => error,
        other => io::Error::other(other),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGES: usize = 8;

    /// A separate pool with regions of 8 pages.
    fn pool(limit_pages: usize) -> &'static Pool {
        let page = region::page::size();
        Box::leak(Box::new(Pool::new(PAGES * page, limit_pages * page)))
    }

    fn regions(pool: &Pool) -> usize {
        pool.lock().len()
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri cannot map pages")]
    fn regions_come_when_they_are_needed_and_go_when_they_are_empty() {
        let (pool, page) = (pool(100), region::page::size());
        let take = |pages: usize| pool.take(pages * page).expect("pages");
        let all = take(PAGES);
        assert_eq!(regions(pool), 1);
        let (more, large) = (take(1), take(3 * PAGES));
        assert_eq!((regions(pool), pool.live()), (3, (1 + 4 * PAGES) * page));
        drop(all);
        assert_eq!(regions(pool), 2);
        drop(large);
        drop(more);
        assert_eq!((regions(pool), pool.live()), (1, 0), "the last one stays");
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri cannot map pages")]
    fn the_limit_counts_whole_pages_and_is_exact() {
        let (pool, page) = (pool(3), region::page::size());
        let held = [pool.take(1).expect("a page"), pool.take(page + 1).expect("two pages")];
        assert_eq!(pool.live(), 3 * page);
        for size in [0, 1, page, usize::MAX] {
            let error = pool.take(size).expect_err("full").to_string();
            assert_eq!(error, format!("the machine code of all models would exceed {} bytes", 3 * page));
        }
        drop(held);
        assert_eq!(pool.take(3 * page).expect("three pages").size(), 3 * page);
        pool.set_limit(0);
        pool.take(0).expect_err("nothing is allowed");
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri cannot map pages")]
    fn random_slots_neither_overlap_nor_lose_what_they_hold() {
        let (pool, page) = (pool(60), region::page::size());
        let mut random = fastrand::Rng::with_seed(7);
        let mut held: Vec<(Slot, u8)> = Vec::new();
        for _ in 0..5_000 {
            let live: usize = held.iter().map(|(slot, _)| slot.size()).sum();
            assert_eq!(pool.live(), live);
            let size = random.usize(1..=3 * page);
            if random.bool() {
                match pool.take(size) {
                    Ok(mut slot) => {
                        let fill = random.u8(..);
                        slot.make_writable().expect("writable");
                        // SAFETY: CODE-SLOT: writable pages of this slot.
                        unsafe { slot.start().write_bytes(fill, slot.size()) };
                        slot.make_executable().expect("executable");
                        held.push((slot, fill));
                    }
                    Err(_) => assert!(live + size.next_multiple_of(page) > 60 * page),
                }
            } else if !held.is_empty() {
                let (slot, fill) = held.swap_remove(random.usize(..held.len()));
                // SAFETY: CODE-SLOT: executable pages are readable.
                let bytes = unsafe { std::slice::from_raw_parts(slot.start(), slot.size()) };
                assert!(bytes.iter().all(|&byte| byte == fill));
            }
        }
        drop(held);
        assert_eq!((pool.live(), regions(pool)), (0, 1));
    }
}
