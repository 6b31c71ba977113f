//! Checks of memory sizes that come from untrusted lengths: the size in bytes of a number of values, and whether the system has that much
//! memory. A length that does not fit is refused here, before anything is multiplied or allocated. The limits on the memory of an
//! evaluation are elsewhere.

#![deny(clippy::arithmetic_side_effects)]

#[cfg(target_os = "linux")]
use rustix::mm::{Advice, madvise};

/// The size in bytes of `count` values of `size` bytes each; `None` if no memory can be that large.
///
/// ```
/// use cembra_runtime::byte_length;
///
/// assert_eq!(byte_length(3, 8), Some(24));
/// assert_eq!(byte_length(1 << 61, 8), None);
/// assert_eq!(byte_length(usize::MAX, 0), Some(0));
/// ```
#[must_use]
pub const fn byte_length(count: usize, size: usize) -> Option<usize> {
    match count.checked_mul(size) {
        Some(bytes) if bytes <= isize::MAX.cast_unsigned() => Some(bytes),
        _ => None,
    }
}

/// The number of 64-bit words that hold `count` values of `size` bytes each; `None` if no memory can be that large.
#[must_use]
pub const fn word_length(count: usize, size: usize) -> Option<usize> {
    match byte_length(count, size) {
        Some(bytes) => Some(bytes.div_ceil(size_of::<u64>())),
        None => None,
    }
}

/// Returns true if the system can allocate `bytes` bytes. Call it before allocating zeros, because a failed allocation of zeros ends the
/// process. Sizes below 64 MiB are not checked and give true.
#[must_use]
pub fn has_room(bytes: usize) -> bool {
    const LARGE: usize = 1 << 26;
    let mut room: Vec<u8> = Vec::new();
    if bytes < LARGE {
        return true;
    }
    let is_there = room.try_reserve_exact(bytes).is_ok();
    // Keeps the compiler from removing the allocation, although nothing is written to it.
    std::hint::black_box(room.as_ptr());
    is_there
}

/// Advises the system to use huge pages for new memory. Such memory is written once from start to end, and with pages of 4 KiB a quarter of
/// that time is spent on page faults. Memory below 8 MiB is left alone, and contents do not change.
pub fn advise_huge_pages<T>(memory: &[T]) {
    #[cfg(target_os = "linux")]
    {
        /// The size of a huge page of x86-64 and aarch64, in bytes. `LEAST` is the smallest memory for which the system
        /// call is worth its time.
        const PAGE: usize = 1 << 21;
        const LEAST: usize = PAGE << 2;
        if size_of_val(memory) < LEAST {
            return;
        }
        let bytes = memory.as_ptr().cast::<u8>().cast_mut();
        let before = bytes.align_offset(PAGE);
        let whole = size_of_val(memory).saturating_sub(before) / PAGE;
        // SAFETY: OWNED-MEMORY: these pages are within the slice, and the advice changes no byte of them.
        let _ = unsafe { madvise(bytes.wrapping_add(before).cast(), whole.wrapping_mul(PAGE), Advice::LinuxHugepage) };
    }
    #[cfg(not(target_os = "linux"))]
    let _ = memory;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_that_wrap_are_none() {
        assert_eq!([byte_length(0, 8), byte_length(7, 4), byte_length(usize::MAX, 1)], [Some(0), Some(28), None]);
        for wraps in [1 << 61, (1 << 61) + 1, 1 << 62, usize::MAX] {
            assert_eq!((byte_length(wraps, 8), word_length(wraps, 8)), (None, None), "{wraps}");
        }
        // The most bytes that are possible, and one value more.
        let most = isize::MAX.cast_unsigned() / 8;
        assert_eq!((byte_length(most, 8), byte_length(most + 1, 8)), (Some(8 * most), None));
        assert_eq!([word_length(1, 1), word_length(2, 4), word_length(3, 4)], [Some(1), Some(1), Some(2)]);
    }

    #[test]
    fn what_is_more_than_the_system_has_is_not_there() {
        assert!(has_room(0) && has_room(1 << 27));
        assert!(!has_room(usize::MAX) && !has_room(isize::MAX.cast_unsigned()));
    }
}
