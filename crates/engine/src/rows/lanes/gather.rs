//! Copies results that were computed once per dictionary value to the rows, by the dictionary key of each row.

use crate::rows::lanes::kernels::{shared, word};
use cembra_runtime::{MachineType, STRIP_ROWS, prefetch};

/// The mask of the rows that need a result: one bit per row, or one byte for all rows.
#[derive(Clone, Copy)]
pub(super) struct Mask {
    /// The address of the mask: of the first row's bit, or of the byte for all rows.
    pub(super) first: *const u8,
    /// True if the mask is one byte, which holds for all rows.
    pub(super) is_shared: bool,
}

impl Mask {
    /// Calls `f` with the index of each row that the mask contains.
    ///
    /// # Safety
    /// COLUMNS: there is a bit for each row, or one byte for all rows.
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

/// The byte that marks a result as not computed yet, in a table of truth values. The bytes of truth values are 0 and 1.
pub(super) const UNKNOWN: u8 = 0x80;

/// The number that marks a result as not computed yet, in a table of numbers. A computed result that equals it, which
/// is rare, is found by its index in the tables of the memo (the results per dictionary value) instead.
const UNKNOWN_WORD: u64 = 0x7ff4_5a3c_96e1_d287;

/// The most bytes of a table of results by key. A table is filled when it is made, and must stay in the first-level
/// cache.
const MOST_BYTES: usize = 1 << 15;

/// A table of results by dictionary key. Most results are found in this table with one look-up, instead of two (from the key to a position, and from
/// the position to the result).
#[derive(Debug)]
pub(super) enum ResultTable {
    /// The results are truth values; `UNKNOWN` where a result is not computed yet or its computation failed.
    Flags(Vec<u8>),
    /// The results are numbers; `UNKNOWN_WORD` where a result is not computed yet or its computation failed.
    Words(Vec<u64>),
}

impl ResultTable {
    /// Makes a table for `values` keys whose results of type `ty` are not computed yet; `None` if it would exceed `MOST_BYTES`.
    pub(super) fn new(ty: MachineType, values: usize) -> Option<ResultTable> {
        match ty {
            MachineType::Flag if values <= MOST_BYTES => Some(ResultTable::Flags(vec![UNKNOWN; values])),
            MachineType::Flag => None,
            _ if values <= MOST_BYTES / size_of::<u64>() => Some(ResultTable::Words(vec![UNKNOWN_WORD; values])),
            _ => None,
        }
    }

    /// Records the result for the key `number`; `None` means that the result is not computed yet. Keys beyond the table are ignored.
    pub(super) fn note(&mut self, number: u32, result: Option<u64>) {
        let at = number as usize;
        match self {
            ResultTable::Flags(flags) => {
                if let Some(flag) = flags.get_mut(at) {
                    *flag = result.map_or(UNKNOWN, |bits| bits as u8);
                }
            }
            ResultTable::Words(words) => {
                if let Some(word) = words.get_mut(at) {
                    *word = result.unwrap_or(UNKNOWN_WORD);
                }
            }
        }
    }

    /// The number of keys that the table has room for.
    pub(super) fn len(&self) -> usize {
        match self {
            ResultTable::Flags(flags) => flags.len(),
            ResultTable::Words(words) => words.len(),
        }
    }

    /// Copies the result of each row's key to a column. Returns false if a result is not computed yet. If `sure` is true, the caller knows that all
    /// results are computed, and this is not checked. Meanwhile the columns `ahead` are prefetched.
    ///
    /// # Safety
    /// COLUMNS: each key is in the table, and there is room for an element of the type for each row.
    pub(super) unsafe fn gather(
        &self,
        numbers: &[u32],
        ty: MachineType,
        to: *mut u8,
        sure: bool,
        ahead: &[PrefetchColumn],
    ) -> bool {
        // SAFETY: COLUMNS, promised by the caller.
        unsafe {
            match (self, ty.size(), sure) {
                (ResultTable::Flags(flags), ..) => gather_flags(flags, numbers, to, ahead),
                (ResultTable::Words(words), 4, false) => gather_words::<4, false>(words, numbers, to, ahead),
                (ResultTable::Words(words), 4, true) => gather_words::<4, true>(words, numbers, to, ahead),
                (ResultTable::Words(words), _, false) => gather_words::<8, false>(words, numbers, to, ahead),
                (ResultTable::Words(words), _, true) => gather_words::<8, true>(words, numbers, to, ahead),
            }
        }
    }
}

/// A column to prefetch, because it is read next: the address of its first row, and the bytes per row.
#[derive(Clone, Copy, Debug)]
pub(super) struct PrefetchColumn {
    pub(super) first: *const u8,
    pub(super) size: usize,
}

impl PrefetchColumn {
    /// Prefetches the `LINE` rows from `row` on, which take one or two cache lines.
    fn fetch(self, row: usize) {
        let first = self.first.wrapping_add(row * self.size);
        prefetch(first);
        prefetch(first.wrapping_add((LINE - 1) * self.size));
    }
}

/// Copies to each row the truth value of its key in `numbers`, as a column of bits. Returns false if a truth value is
/// not computed yet.
///
/// # Safety
/// COLUMNS: each number is in the table, and there is room for a bit for each row, in whole words.
unsafe fn gather_flags(flags: &[u8], numbers: &[u32], to: *mut u8, ahead: &[PrefetchColumn]) -> bool {
    // SAFETY: COLUMNS, promised by the caller.
    let of = |number: &u32| unsafe { u64::from(*flags.get_unchecked(*number as usize)) };
    let (whole, rest) = numbers.as_chunks::<8>();
    let mut found = 0;
    // SAFETY: COLUMNS, promised by the caller.
    unsafe {
        for (at, numbers) in whole.iter().enumerate() {
            if at % 2 == 0 {
                prefetch(numbers.as_ptr().wrapping_add(STRIP_ROWS));
                ahead.iter().for_each(|column| column.fetch(8 * at));
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

/// Copies to each row the number of `SIZE` bytes that belongs to its key in `numbers`. Returns false if a number is not
/// computed yet; with `SURE`, this is not checked.
///
/// # Safety
/// COLUMNS: each number is in the table, and there is room for an element for each row.
unsafe fn gather_words<const SIZE: usize, const SURE: bool>(
    words: &[u64],
    numbers: &[u32],
    to: *mut u8,
    ahead: &[PrefetchColumn],
) -> bool {
    let mut unknown = false;
    // SAFETY: COLUMNS, promised by the caller.
    let mut put = |row: usize, number: u32| unsafe {
        let word = *words.get_unchecked(number as usize);
        unknown |= !SURE && word == UNKNOWN_WORD;
        match SIZE {
            4 => to.cast::<u32>().add(row).write_unaligned(word as u32),
            _ => to.cast::<u64>().add(row).write_unaligned(word),
        }
    };
    let (whole, rest) = numbers.as_chunks::<LINE>();
    for (at, line) in whole.iter().enumerate() {
        prefetch(line.as_ptr().wrapping_add(STRIP_ROWS));
        ahead.iter().for_each(|column| column.fetch(LINE * at));
        line.iter().enumerate().for_each(|(lane, number)| put(LINE * at + lane, *number));
    }
    let first = numbers.len() - rest.len();
    rest.iter().enumerate().for_each(|(lane, number)| put(first + lane, *number));
    !unknown
}

/// Clears the bits after the last row, up to a whole word.
///
/// # Safety
/// COLUMNS: there is room for the bits in whole words.
unsafe fn clear_behind(to: *mut u8, rows: usize) {
    let written = rows.div_ceil(8);
    // SAFETY: COLUMNS, promised by the caller.
    unsafe { to.add(written).write_bytes(0, rows.div_ceil(64) * 8 - written) };
}

/// The number of 4-byte elements in a cache line.
pub(super) const LINE: usize = 16;

/// Copies to each row of the column `to` the element of `table` that the row's index in `places` selects.
///
/// # Safety
/// COLUMNS: each index is in the table, and there is room for an element for each row.
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
