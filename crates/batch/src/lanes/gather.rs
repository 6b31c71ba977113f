//! From values to rows: results that lie in tables are put into columns by the numbers or places of rows, for the rows that ask.

use crate::lanes::kernels::{shared, word};
use cembra_runtime::{MachineType, STRIP_ROWS};

/// Which rows ask.
#[derive(Clone, Copy)]
pub(super) struct Mask {
    pub(super) first: *const u8,
    pub(super) is_shared: bool,
}

impl Mask {
    /// Calls `f` with each row that asks.
    ///
    /// # Safety
    /// COLUMNS: there is a bit for each row, or a byte for all.
    pub(super) unsafe fn for_each(self, rows: usize, mut f: impl FnMut(usize)) {
        if self.is_shared {
            // SAFETY: COLUMNS, promised by the caller.
            if unsafe { shared(self.first, MachineType::Flag) } != 0 {
                (0..rows).for_each(f);
            }
            return;
        }
        for start in (0..rows).step_by(64) {
            // SAFETY: COLUMNS, promised by the caller.
            let mut left = unsafe { word(self.first, start, rows) };
            while left != 0 {
                f(start + left.trailing_zeros() as usize);
                left &= left - 1;
            }
        }
    }
}

/// What is no truth value.
pub(super) const UNKNOWN: u8 = 0x80;

/// The most numbers whose truth values lie in a table of their own, which is filled when it is made.
pub(super) const MOST_FLAGS: usize = 1 << 14;

/// Puts truth values into a column of bits by the numbers of rows: what most memos do, in one step. False if one is not known.
///
/// # Safety
/// COLUMNS: each number is one of the table, and there is room for a bit for each row, in whole words.
pub(super) unsafe fn gather_flags(flags: &[u8], numbers: &[u32], to: *mut u8) -> bool {
    // SAFETY: COLUMNS, promised by the caller.
    let of = |number: &u32| unsafe { u64::from(*flags.get_unchecked(*number as usize)) };
    let (whole, rest) = numbers.as_chunks::<8>();
    let mut found = 0;
    // SAFETY: COLUMNS, promised by the caller.
    unsafe {
        for (at, numbers) in whole.iter().enumerate() {
            if at % 2 == 0 {
                prefetch(numbers.as_ptr().wrapping_add(STRIP_ROWS));
            }
            let bytes = (0..8).fold(0, |bytes, lane| bytes | of(&numbers[lane]) << (8 * lane));
            found |= bytes;
            // The lowest bit of each byte, moved next to each other into the highest byte.
            *to.add(at) = ((bytes & 0x0101_0101_0101_0101).wrapping_mul(0x0102_0408_1020_4080) >> 56) as u8;
        }
        if !rest.is_empty() {
            let (mut bits, mut all) = (0, 0);
            for (lane, number) in rest.iter().enumerate() {
                all |= of(number);
                bits |= (of(number) & 1) << lane;
            }
            found |= all;
            *to.add(whole.len()) = bits as u8;
        }
        clear_behind(to, numbers.len());
    }
    found & (u64::from(UNKNOWN) * 0x0101_0101_0101_0101) == 0
}

/// Clears what lies behind the bits of rows in whole words.
///
/// # Safety
/// COLUMNS: there is room for the bits in whole words.
unsafe fn clear_behind(to: *mut u8, rows: usize) {
    let written = rows.div_ceil(8);
    // SAFETY: COLUMNS, promised by the caller.
    unsafe { to.add(written).write_bytes(0, rows.div_ceil(64) * 8 - written) };
}

/// The numbers of a line of the caches.
pub(super) const LINE: usize = 16;

/// Asks for numbers of the next strip, which the processor does not foresee while others are read in between.
pub(super) fn prefetch(numbers: *const u32) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: FEATURE: every processor of this kind has it; whatever the address, nothing is read.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(numbers.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = numbers;
}

/// Puts what is in a table into a column, by the places of rows.
///
/// # Safety
/// COLUMNS: each place is one of the table, and there is room for an element for each row.
pub(super) unsafe fn gather(table: &[u64], places: &[u32], ty: MachineType, to: *mut u8) {
    // SAFETY: COLUMNS, promised by the caller.
    let of = |place: &u32| unsafe { *table.get_unchecked(*place as usize) };
    // SAFETY: COLUMNS, promised by the caller: room for an element for each row.
    unsafe {
        match ty.size() {
            1 => {
                let (whole, rest) = places.as_chunks::<8>();
                for (at, places) in whole.iter().enumerate() {
                    *to.add(at) = (0..8).fold(0, |bits, lane| bits | of(&places[lane]) << lane) as u8;
                }
                if !rest.is_empty() {
                    *to.add(whole.len()) = rest.iter().rev().fold(0, |bits, place| bits << 1 | of(place)) as u8;
                }
                clear_behind(to, places.len());
            }
            4 => {
                for (row, place) in places.iter().enumerate() {
                    to.cast::<u32>().add(row).write_unaligned(of(place) as u32);
                }
            }
            _ => {
                for (row, place) in places.iter().enumerate() {
                    to.cast::<u64>().add(row).write_unaligned(of(place));
                }
            }
        }
    }
}
