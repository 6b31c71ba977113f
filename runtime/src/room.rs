//! How much memory lengths from outside ask for: the one way from a length and the size of a value to bytes, and whether the system
//! has so many. A length that does not fit is refused here, before anything is multiplied or made. What an evaluation may take of
//! the memory is said by its limits, not here.

#![deny(clippy::arithmetic_side_effects)]

#[cfg(target_os = "linux")]
use rustix::mm::{Advice, madvise};

/// The bytes of so many values of a size, next to each other; none if there cannot be memory for them.
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

/// The words of 64 bits that so many values of a size lie in; none if there cannot be memory for them.
#[must_use]
pub const fn word_length(count: usize, size: usize) -> Option<usize> {
    match byte_length(count, size) {
        Some(bytes) => Some(bytes.div_ceil(size_of::<u64>())),
        None => None,
    }
}

/// True if the system has memory for so many bytes. Zeros are made by an allocation that ends the process where it fails: ask before.
/// What is small is there.
#[must_use]
pub fn has_room(bytes: usize) -> bool {
    const LARGE: usize = 1 << 26;
    let mut room: Vec<u8> = Vec::new();
    if bytes < LARGE {
        return true;
    }
    let is_there = room.try_reserve_exact(bytes).is_ok();
    // It is asked for in earnest, though nothing is written there.
    std::hint::black_box(room.as_ptr());
    is_there
}

/// Advises the system to back memory that was just made by huge pages, where it has many of them. Such memory is written once from front to
/// back: with pages of 4 KiB a quarter of that time is faults of pages. Smaller memory stays as it is, and what it holds does not change.
pub fn advise_huge_pages<T>(memory: &[T]) {
    #[cfg(target_os = "linux")]
    {
        /// The bytes of a huge page of x86-64 and aarch64, and of four of them: the fewest that are worth a system call.
        const PAGE: usize = 1 << 21;
        const LEAST: usize = PAGE << 2;
        if size_of_val(memory) < LEAST {
            return;
        }
        let bytes = memory.as_ptr().cast::<u8>().cast_mut();
        let before = bytes.align_offset(PAGE);
        let whole = size_of_val(memory).saturating_sub(before) / PAGE;
        // SAFETY: OWNED-MEMORY: these pages lie within the slice, and the advice changes no byte of them.
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
        // The most bytes that there can be, and one value more.
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
