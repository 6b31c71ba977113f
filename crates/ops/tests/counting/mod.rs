//! An allocator for tests that count allocations. It passes all requests to the system's allocator, and counts for each
//! thread the allocations, the bytes that are allocated now, and the most bytes that were allocated at once. A test
//! program that includes this module uses this allocator, so the module is declared once, in the program's `main.rs`.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

struct Counting;

thread_local! {
    static COUNT: Cell<usize> = const { Cell::new(0) };
    static HELD: Cell<usize> = const { Cell::new(0) };
    static PEAK: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: everything is left to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    // SAFETY: as for the system's allocator.
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        COUNT.set(COUNT.get() + 1);
        let held = HELD.get().wrapping_add(layout.size());
        HELD.set(held);
        // What another thread allocated may have been freed here: then less than nothing is held.
        if held.cast_signed() > PEAK.get().cast_signed() {
            PEAK.set(held);
        }
        // SAFETY: promised by the caller.
        unsafe { System.alloc(layout) }
    }

    // SAFETY: as for the system's allocator.
    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        HELD.set(HELD.get().wrapping_sub(layout.size()));
        // SAFETY: promised by the caller.
        unsafe { System.dealloc(ptr, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The number of allocations of this thread so far.
pub(crate) fn so_far() -> usize {
    COUNT.get()
}

/// The bytes that this thread has allocated and not freed.
pub(crate) fn held() -> usize {
    HELD.get()
}

/// The most bytes that this thread had allocated at once while `run` ran, besides the bytes that it had allocated
/// before.
pub(crate) fn peak_of<R>(run: impl FnOnce() -> R) -> (R, usize) {
    let before = held();
    PEAK.set(before);
    let made = run();
    (made, PEAK.get().wrapping_sub(before))
}
