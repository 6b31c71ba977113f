//! The allocator of tests that look at what is given back: the system's, which also counts the bytes that each thread holds. A
//! test that has this module has the allocator.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

struct Holding;

thread_local! {
    static HELD: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: everything is left to the system's allocator.
unsafe impl GlobalAlloc for Holding {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        HELD.set(HELD.get().wrapping_add(layout.size()));
        // SAFETY: promised by the caller.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        HELD.set(HELD.get().wrapping_sub(layout.size()));
        // SAFETY: promised by the caller.
        unsafe { System.dealloc(ptr, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Holding = Holding;

/// The bytes that this thread has allocated and not given back.
pub(crate) fn held() -> usize {
    HELD.get()
}
