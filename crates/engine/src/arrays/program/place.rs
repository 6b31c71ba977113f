//! The storage of the columns that a fused loop reads and writes. A column is in an array of all elements, or in memory
//! for one block of elements (a strip), which the next block overwrites. Only this file handles the addresses of such
//! columns.

use cembra_array::Storage;
use cembra_ops::{Accumulator, Finish, Strip, StripData, StripValues};
use cembra_runtime::{Column, LINE, Scalar};
use cembra_value::{Array, ArrayData, ScalarValue, Words};
use std::ops::Range;

/// The memory for one column of a fused loop: its values and its presence bits. The memory only grows.
#[derive(Debug, Default)]
pub(super) struct Memory {
    pub(super) data: Words,
    pub(super) presence: Vec<u64>,
}

impl Memory {
    /// Makes room for `elements` elements in the layout `storage`, and for their presence bits if `has_bits`.
    pub(super) fn reserve(&mut self, storage: Storage, has_bits: bool, elements: usize) {
        let (values, bits) = (storage.words(elements), elements.div_ceil(64));
        if self.data.len() < values {
            self.data.resize(values, 0);
        }
        if has_bits && self.presence.len() < bits {
            self.presence.resize(bits, 0);
        }
    }

    /// Converts the first `elements` elements of the memory to an array; `None` if they are not a valid array.
    pub(super) fn into_array(mut self, scalar: Scalar, elements: usize, has_bits: bool) -> Option<Array> {
        let storage = Storage::of(scalar);
        self.data.truncate(storage.words(elements));
        let data = match storage {
            Storage::Nothing => ArrayData::Units,
            Storage::Bits => ArrayData::Bits(self.data),
            Storage::Numbers(_) => ArrayData::Numbers(self.data),
        };
        Array::from_parts(scalar, elements, data, has_bits.then_some(self.presence))
    }

    /// The first element in the memory; `None` if it is missing.
    pub(super) fn first(&self, scalar: Scalar, has_bits: bool) -> Option<ScalarValue> {
        if has_bits && self.presence.first().is_none_or(|bits| bits & 1 == 0) {
            return None;
        }
        let word = self.data.first().copied().unwrap_or(0);
        match Storage::of(scalar) {
            Storage::Nothing => Some(ScalarValue::Unit),
            Storage::Bits => Some(ScalarValue::Boolean(word & 1 != 0)),
            Storage::Numbers(4) => ScalarValue::from_bits(scalar, word & 0xFFFF_FFFF),
            Storage::Numbers(_) => ScalarValue::from_bits(scalar, word),
        }
    }

    /// Pointers to the column's memory, valid until the memory grows.
    pub(super) fn place(&mut self) -> ColumnPointers {
        ColumnPointers { data: self.data.as_mut_ptr().cast(), presence: self.presence.as_mut_ptr().cast() }
    }
}

/// Pointers to the values and to the presence bits of a column. `presence` is null if all values are present. The
/// lowest bit of the first byte belongs to the first value.
#[derive(Clone, Copy, Debug)]
pub(super) struct ColumnPointers {
    pub(super) data: *mut u8,
    pub(super) presence: *mut u8,
}

// SAFETY: SWEEP-PLACE: pointers are used by the thread that has their workspace, and are not used after the run.
unsafe impl Send for ColumnPointers {}

impl ColumnPointers {
    /// The null pointers of a column without memory.
    pub(super) const NOWHERE: ColumnPointers =
        ColumnPointers { data: std::ptr::null_mut(), presence: std::ptr::null_mut() };

    /// Pointers to the elements of `array`, which must not be written to.
    pub(super) fn of(array: &Array) -> ColumnPointers {
        let data = match array.data() {
            ArrayData::Units | ArrayData::Strings(_) => std::ptr::null(),
            ArrayData::Bits(words) | ArrayData::Numbers(words) => words.as_ptr(),
        };
        let presence = array.presence().map_or(std::ptr::null(), <[u64]>::as_ptr);
        ColumnPointers { data: data.cast_mut().cast(), presence: presence.cast_mut().cast() }
    }

    /// The pointers to the element with index `element`. If the column has presence bits, `element` must be a multiple of 8.
    pub(super) fn at(self, storage: Storage, element: usize) -> ColumnPointers {
        let data = match storage {
            Storage::Nothing => self.data,
            Storage::Bits => self.data.wrapping_add(element / 8),
            Storage::Numbers(size) => self.data.wrapping_add(element * size),
        };
        let presence = if self.presence.is_null() { self.presence } else { self.presence.wrapping_add(element / 8) };
        ColumnPointers { data, presence }
    }

    /// The column that begins at these pointers, in the layout that compiled functions take.
    pub(super) const fn column(self, storage: Storage) -> Column {
        let stride = if let Storage::Numbers(size) = storage { size.cast_signed() } else { 0 };
        Column { data: self.data, stride, presence: self.presence, presence_stride: 0 }
    }

    /// The first `len` elements of the column, in the layout that the kernels of reductions and scans take.
    ///
    /// # Safety
    /// SWEEP-PLACE: the pointers must be those of `len` elements of type `scalar`, with bits (truth values, presence)
    /// in whole 64-bit words. Nothing may write to this memory as long as the result is used.
    pub(super) unsafe fn strip<'a>(self, scalar: Scalar, len: usize) -> Strip<'a> {
        let presence = (!self.presence.is_null()).then(|| {
            // SAFETY: SWEEP-PLACE, promised by the caller.
            unsafe { std::slice::from_raw_parts(self.presence.cast::<u64>(), len.div_ceil(64)) }
        });
        macro_rules! numbers {
            ($len:expr) => {
                match $len {
                    // The pointer may be null then.
                    0 => &[],
                    // SAFETY: SWEEP-PLACE, promised by the caller.
                    len => unsafe { std::slice::from_raw_parts(self.data.cast(), len) },
                }
            };
        }
        let data = match scalar.representation() {
            Scalar::Boolean => StripData::Bits(numbers!(len.div_ceil(64))),
            Scalar::Int32 => StripData::Int32(numbers!(len)),
            Scalar::Int64 => StripData::Int64(numbers!(len)),
            Scalar::UInt64 => StripData::UInt64(numbers!(len)),
            Scalar::Float32 => StripData::Float32(numbers!(len)),
            Scalar::Float64 => StripData::Float64(numbers!(len)),
            _ => StripData::Units,
        };
        Strip { data, presence, len }
    }

    /// The memory of the column's first `len` values, to be written.
    ///
    /// # Safety
    /// SWEEP-PLACE: the pointers must be those of memory for `len` elements of type `scalar`, with truth values in
    /// whole 64-bit words. Nothing else may use this memory as long as the result is used.
    pub(super) unsafe fn values<'a>(self, scalar: Scalar, len: usize) -> StripValues<'a> {
        macro_rules! numbers {
            ($len:expr) => {
                match $len {
                    // The pointer may be null then.
                    0 => &mut [],
                    // SAFETY: SWEEP-PLACE, promised by the caller.
                    len => unsafe { std::slice::from_raw_parts_mut(self.data.cast(), len) },
                }
            };
        }
        match scalar.representation() {
            Scalar::Boolean => StripValues::Bits(numbers!(len.div_ceil(64))),
            Scalar::Int32 => StripValues::Int32(numbers!(len)),
            Scalar::Int64 => StripValues::Int64(numbers!(len)),
            Scalar::UInt64 => StripValues::UInt64(numbers!(len)),
            Scalar::Float32 => StripValues::Float32(numbers!(len)),
            Scalar::Float64 => StripValues::Float64(numbers!(len)),
            _ => StripValues::Units,
        }
    }

    /// The memory of the column's first `len` presence bits, to be written; `None` if the column has no presence bits.
    ///
    /// # Safety
    /// SWEEP-PLACE: `presence` must point to memory for `len` bits, in whole 64-bit words. Nothing else may use this
    /// memory as long as the result is used.
    pub(super) unsafe fn bits<'a>(self, len: usize) -> Option<&'a mut [u64]> {
        (!self.presence.is_null()).then(|| {
            // SAFETY: SWEEP-PLACE, promised by the caller.
            unsafe { std::slice::from_raw_parts_mut(self.presence.cast::<u64>(), len.div_ceil(64)) }
        })
    }
}

/// Writes the results of a reduction for the groups `groups` to the column `place`.
///
/// # Safety
/// SWEEP-PLACE: `place` must have memory for one result per group and, if the column has presence bits, for one bit per group. Nothing else may use
/// this memory.
pub(super) unsafe fn finish(
    accumulator: &Accumulator,
    finish: Finish,
    groups: &Range<usize>,
    scalar: Scalar,
    place: ColumnPointers,
) {
    // SAFETY: SWEEP-PLACE, promised by the caller.
    let (mut values, bits) = unsafe { (place.values(scalar, groups.len()), place.bits(groups.len())) };
    accumulator.result(finish, groups.clone(), &mut values, bits);
}

/// True if the target's processors have non-temporal stores, which write to memory past the caches.
pub(super) const HAS_STREAMS: bool = cfg!(target_arch = "x86_64");

/// Copies `bytes` bytes with non-temporal stores, except in cache lines that are shared with other data. Other threads see the copied bytes after
/// [`drain_past_caches`](cembra_runtime::drain_past_caches).
///
/// # Safety
/// SWEEP-PLACE: each pointer must be the address of `bytes` bytes. The two ranges must not overlap, and nothing else
/// may use them during the call.
pub(super) unsafe fn copy_past_caches(from: *const u8, to: *mut u8, bytes: usize) {
    let head = to.align_offset(LINE).min(bytes);
    let end = bytes - (bytes - head) % LINE;
    // SAFETY: SWEEP-PLACE, promised by the caller: the bytes before the first whole line, and those after the last.
    unsafe {
        to.copy_from_nonoverlapping(from, head);
        to.add(end).copy_from_nonoverlapping(from.add(end), bytes - end);
    }
    for at in (head..end).step_by(LINE) {
        #[cfg(target_arch = "x86_64")]
        for at in (at..at + LINE).step_by(16) {
            use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_stream_si128};
            // SAFETY: SWEEP-PLACE, promised by the caller: a part of a whole line, where `to` is aligned.
            unsafe { _mm_stream_si128(to.add(at).cast::<__m128i>(), _mm_loadu_si128(from.add(at).cast())) };
        }
        #[cfg(not(target_arch = "x86_64"))]
        // SAFETY: SWEEP-PLACE, promised by the caller: a whole line.
        unsafe {
            to.add(at).copy_from_nonoverlapping(from.add(at), LINE);
        }
    }
}

/// The words of a bitmap that contain its `count` bits from bit `first` on.
///
/// # Safety
/// SWEEP-PLACE: the memory must have these words, and nothing else may use them during the call.
pub(super) unsafe fn words_of<'a>(bits: *mut u8, first: usize, count: usize) -> &'a mut [u64] {
    let words = first / 64..(first + count).div_ceil(64);
    // SAFETY: SWEEP-PLACE, promised by the caller.
    unsafe { std::slice::from_raw_parts_mut(bits.cast::<u64>().add(words.start), words.len()) }
}

/// Copies `count` bits from bit `first` of `from` to the start of `to`.
pub(super) fn copy_bits(from: &[u64], first: usize, to: &mut [u64], count: usize) {
    let (word, shift) = (first / 64, first % 64);
    for (at, to) in to.iter_mut().enumerate().take(count.div_ceil(64)) {
        let low = from.get(word + at).copied().unwrap_or(0) >> shift;
        let high = if shift == 0 { 0 } else { from.get(word + at + 1).copied().unwrap_or(0) << (64 - shift) };
        *to = low | high;
    }
}

/// Copies `count` bits from the start of `from` to bit `first` of `to`, and keeps the earlier bits of `to`. Later bits
/// in the words that are written may be overwritten.
pub(super) fn put_bits(from: &[u64], to: &mut [u64], first: usize, count: usize) {
    for (at, bits) in from.iter().enumerate().take(count.div_ceil(64)) {
        let left = count - 64 * at;
        let bits = if left >= 64 { *bits } else { bits & ((1 << left) - 1) };
        let (word, shift) = ((first + 64 * at) / 64, first % 64);
        // Bits of an earlier strip are kept, those of an earlier run are overwritten.
        let below = if shift == 0 { 0 } else { to[word] & ((1 << shift) - 1) };
        to[word] = below | bits << shift;
        if shift != 0 && shift + left.min(64) > 64 {
            to[word + 1] = bits >> (64 - shift);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_go_past_the_caches_whole() {
        let from: Vec<u8> = (0..=255).cycle().take(700).collect();
        for (first, bytes) in
            [(0, 0), (0, 64), (0, 700), (1, 63), (1, 64), (8, 300), (63, 1), (63, 2), (63, 65), (40, 600)]
        {
            let mut to = vec![7_u8; 900];
            let start = to.as_ptr().align_offset(64) + first;
            // SAFETY: SWEEP-PLACE: both lists have these bytes.
            unsafe { copy_past_caches(from.as_ptr(), to.as_mut_ptr().add(start), bytes) };
            cembra_runtime::drain_past_caches();
            assert_eq!(&to[start..start + bytes], &from[..bytes], "{bytes} to {first}");
            assert!(to[..start].iter().chain(&to[start + bytes..]).all(|byte| *byte == 7), "{bytes} to {first}");
        }
    }

    #[test]
    fn bits_go_to_and_from_any_position() {
        let from: Vec<u64> = (0..8_u64).map(|at| at.wrapping_mul(0x9E37_79B9_7F4A_7C15)).collect();
        let bit = |words: &[u64], at: usize| words[at / 64] >> (at % 64) & 1;
        for (first, count) in [(0, 64), (1, 63), (1, 64), (63, 2), (65, 130), (3, 200), (64, 1), (127, 65), (5, 0)] {
            let mut strip = vec![u64::MAX; 5];
            copy_bits(&from, first, &mut strip, count);
            for at in 0..count {
                assert_eq!(bit(&strip, at), bit(&from, first + at), "{at} of {count} from {first}");
            }
            // An earlier run left all bits set.
            let mut to = vec![u64::MAX; 8];
            put_bits(&[0, 0], &mut to, 0, first.min(128));
            put_bits(&strip, &mut to, first, count);
            for at in 0..first.min(128) {
                assert_eq!(bit(&to, at), 0);
            }
            for at in 0..count {
                assert_eq!(bit(&to, first + at), bit(&from, first + at), "{at} of {count} to {first}");
            }
        }
    }
}
