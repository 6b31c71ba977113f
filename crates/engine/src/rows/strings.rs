//! Strings of many rows, in the memory layouts of callers. Compiled code takes an address and a length for each string. Addresses and lengths are
//! written for one block of rows at a time; the bytes of the strings are not copied.

use crate::rows::{Bitmap, KeyType};
use crate::stages::faults;
use cembra_runtime::{QType, Scalar};
use cembra_value::{ArrayData, Error, ScalarValue, StringViews, Value};
use smallvec::{SmallVec, smallvec};
use std::mem::MaybeUninit;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

/// The caller's strings, one per row. The type of their column tells whether they are texts or byte strings.
#[derive(Clone, Copy, Debug)]
pub(in crate::rows) enum Strings<'a> {
    Texts(&'a [&'a str]),
    Owned(&'a [String]),
    Bytes(&'a [&'a [u8]]),
    /// Offsets of 32 bits: the string of row `n` is the bytes from offset `n` to offset `n + 1`.
    Offsets32(&'a [i32], &'a [u8]),
    Offsets64(&'a [i64], &'a [u8]),
    /// String views in Arrow's layout, and the buffers that the views refer to.
    Views(&'a [u128], &'a [&'a [u8]]),
    /// The strings are the elements of an array.
    Kept(&'a StringViews),
}

/// The most bytes of a string that a string view in Arrow's layout contains itself. The bytes of a longer string are in
/// a buffer.
pub(in crate::rows) const INLINE: usize = 12;

impl<'a> Strings<'a> {
    pub(in crate::rows) fn rows(&self) -> usize {
        match self {
            Strings::Texts(all) => all.len(),
            Strings::Owned(all) => all.len(),
            Strings::Bytes(all) => all.len(),
            Strings::Offsets32(offsets, _) => offsets.len().saturating_sub(1),
            Strings::Offsets64(offsets, _) => offsets.len().saturating_sub(1),
            Strings::Views(views, _) => views.len(),
            Strings::Kept(strings) => strings.len(),
        }
    }

    /// The bytes of the string in row `row`; `None` if they are not within the given memory.
    pub(in crate::rows) fn get(&self, row: usize) -> Option<&'a [u8]> {
        Some(match *self {
            Strings::Texts(all) => all.get(row)?.as_bytes(),
            Strings::Owned(all) => all.get(row)?.as_bytes(),
            Strings::Bytes(all) => all.get(row)?,
            Strings::Offsets32(offsets, bytes) => {
                let ends = [offsets.get(row)?, offsets.get(row + 1)?].map(|at| usize::try_from(*at));
                between(bytes, ends)?
            }
            Strings::Offsets64(offsets, bytes) => {
                let ends = [offsets.get(row)?, offsets.get(row + 1)?].map(|at| usize::try_from(*at));
                between(bytes, ends)?
            }
            Strings::Views(views, buffers) => view(views.get(row)?, buffers)?,
            Strings::Kept(strings) => strings.get(row)?,
        })
    }

    /// The bytes of the strings in `rows`. A string that several rows share counts for each of them.
    pub(in crate::rows) fn bytes(&self, rows: Range<usize>) -> u64 {
        let between = |offsets: Option<[i64; 2]>| offsets.map_or(0, |[from, to]| to.saturating_sub(from)) as u64;
        match *self {
            Strings::Offsets32(all, _) => between(ends(all, &rows)),
            Strings::Offsets64(all, _) => between(ends(all, &rows)),
            _ => rows.filter_map(|row| self.get(row)).fold(0, |all, bytes| all.saturating_add(bytes.len() as u64)),
        }
    }

    /// Returns the first row whose string is not within the given memory or, if `is_text`, is not UTF-8. `None` if
    /// there is no such row.
    pub(in crate::rows) fn first_fault(&self, is_text: bool) -> Option<usize> {
        if matches!(self, Strings::Texts(_) | Strings::Owned(_)) {
            return None;
        }
        let is_right = |bytes: &[u8]| !is_text || std::str::from_utf8(bytes).is_ok();
        (0..self.rows()).find(|row| !self.get(*row).is_some_and(is_right))
    }

    /// Writes to `to` the addresses and the lengths of the strings of consecutive rows, beginning with row `start`.
    pub(in crate::rows) fn write(&self, start: usize, to: &mut [MaybeUninit<(*const u8, usize)>]) {
        // The layout is matched once, not for each row.
        fn each<'a>(to: &mut [MaybeUninit<(*const u8, usize)>], get: impl Fn(usize) -> Option<&'a [u8]>) {
            for (at, to) in to.iter_mut().enumerate() {
                let bytes = get(at).unwrap_or_default();
                to.write((bytes.as_ptr(), bytes.len()));
            }
        }
        match *self {
            Strings::Texts(all) => each(to, |at| all.get(start + at).map(|text| text.as_bytes())),
            Strings::Owned(all) => each(to, |at| all.get(start + at).map(String::as_bytes)),
            Strings::Bytes(all) => each(to, |at| all.get(start + at).copied()),
            Strings::Kept(strings) => each(to, |at| strings.get(start + at)),
            Strings::Offsets32(..) | Strings::Offsets64(..) | Strings::Views(..) => each(to, |at| self.get(start + at)),
        }
    }
}

/// The offsets at which the strings of rows begin and end.
fn ends<T: Copy + Into<i64>>(offsets: &[T], rows: &Range<usize>) -> Option<[i64; 2]> {
    Some([offsets.get(rows.start)?, offsets.get(rows.end)?].map(|at| (*at).into()))
}

fn between<E>(bytes: &[u8], [from, to]: [Result<usize, E>; 2]) -> Option<&[u8]> {
    bytes.get(from.ok()?..to.ok()?)
}

/// Returns the bytes of a view: a length, then the bytes themselves; or a length, four of the bytes, the index of a buffer, and an offset in it.
fn view<'a>(view: &'a u128, buffers: &[&'a [u8]]) -> Option<&'a [u8]> {
    let [len, _, buffer, offset] = words(*view).map(|word| word as usize);
    if len > INLINE {
        return buffers.get(buffer)?.get(offset..offset.checked_add(len)?);
    }
    // SAFETY: STRING-VIEW: the view is 16 bytes, and its string follows the first four, little-endian as in Arrow.
    let bytes: &'a [u8] = unsafe { std::slice::from_raw_parts(std::ptr::from_ref(view).cast(), 16) };
    bytes.get(4..4 + len)
}

fn words(view: u128) -> [u32; 4] {
    [0, 32, 64, 96].map(|shift| (view >> shift) as u32)
}

/// The memory, in bytes, that the strings, lists and tuples of a run's new columns may still take, for all threads together. Memory is reserved
/// before anything is copied. The bytes of short strings, which are inside of their string views, are not counted.
#[derive(Debug)]
pub struct OutputRoom(AtomicU64);

impl OutputRoom {
    /// Makes a limit of `bytes` bytes, none of which are reserved yet.
    #[must_use]
    pub const fn of(bytes: u64) -> Self {
        OutputRoom(AtomicU64::new(bytes))
    }

    /// The number of bytes that are not reserved yet, at most `usize::MAX`.
    pub(in crate::rows) fn left(&self) -> usize {
        usize::try_from(self.0.load(Ordering::Relaxed)).unwrap_or(usize::MAX)
    }

    /// Reserves `bytes` bytes. Returns false, and reserves nothing, if fewer bytes are left.
    #[must_use]
    pub fn take(&self, bytes: u64) -> bool {
        let less = |left: u64| left.checked_sub(bytes);
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_ok()
    }

    /// Reserves `bytes` bytes for a copy of strings, or for values that are converted to text.
    ///
    /// # Errors
    /// If fewer than `bytes` bytes are left; nothing is reserved then. The error names the limit `array_bytes`.
    pub fn claim(&self, bytes: u64) -> Result<(), Error> {
        if self.take(bytes) { Ok(()) } else { Err(faults::of_copies()) }
    }

    /// Releases `bytes` reserved bytes, because their memory is freed.
    pub fn give_back(&self, bytes: u64) {
        // Only a room without a limit can overflow: sums of allocated bytes are within the address space.
        let more = |left: u64| Some(left.saturating_add(bytes));
        let _always = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
    }
}

/// The bytes that a string takes besides its view.
fn counted(bytes: &[u8]) -> u64 {
    if bytes.len() > INLINE { bytes.len() as u64 } else { 0 }
}

/// The bytes of one element of type `scalar` in a column; for a string, the bytes of its view.
#[must_use]
pub fn element_bytes(scalar: Scalar) -> u64 {
    u64::from(QType::Scalar(scalar).layout().size)
}

/// The bytes that `value` takes in a column. A number, or an element of a list, takes the size of its type. A string takes a view of 16 bytes, and
/// its own bytes if the view does not contain them. A tuple takes a `Value` for each field, and the bytes of each field's value.
///
/// ```
/// use cembra_engine::rows::column_bytes;
/// use cembra_value::Value;
///
/// assert_eq!(column_bytes(&Value::from(1_i64)), 8);
/// assert_eq!([column_bytes(&Value::from("short")), column_bytes(&Value::from("thirteen byte"))], [16, 16 + 13]);
/// let pair = Value::Tuple([Value::from(1_i64), Value::from(2_i64)].into());
/// assert_eq!(column_bytes(&pair), 2 * (8 + size_of::<Value>() as u64));
/// ```
#[must_use]
pub fn column_bytes(value: &Value) -> u64 {
    let mut open: SmallVec<[&Value; 4]> = smallvec![value];
    let mut all = 0_u64;
    while let Some(value) = open.pop() {
        all = all.saturating_add(match value {
            Value::Tuple(fields) => {
                open.extend(fields.iter());
                size_of_val(&fields[..]) as u64
            }
            Value::Array(_, array) => {
                let elements = (array.len() as u64).saturating_mul(element_bytes(array.scalar()));
                let strings = match array.data() {
                    ArrayData::Strings(_) => (0..array.len()).filter_map(|at| array.string(at)).map(counted).sum(),
                    _ => 0,
                };
                elements.saturating_add(strings)
            }
            other => match other.as_scalar() {
                Some(scalar) => {
                    let string = match scalar {
                        ScalarValue::Text(text) => counted(text.as_bytes()),
                        ScalarValue::Bytes(bytes) => counted(bytes),
                        _ => 0,
                    };
                    element_bytes(scalar.scalar()).saturating_add(string)
                }
                None => 0,
            },
        });
    }
    all
}

/// The reason why a string cannot be stored in a column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::rows) enum StringFailure {
    /// The string is longer than the 2 GiB that a string view allows.
    TooLong,
    /// The strings of the run would exceed the bytes that they may take.
    NoRoom,
}

/// The strings of an output column, in Arrow's layout of string views.
#[derive(Clone, Debug, Default)]
pub(in crate::rows) struct StringBuffers {
    pub(in crate::rows) views: Vec<u128>,
    pub(in crate::rows) buffers: Vec<Vec<u8>>,
}

/// The most bytes in one buffer of strings. The offsets of string views have 32 bits.
const BUFFER: usize = 1 << 30;

impl StringBuffers {
    /// Appends strings of a run's output, and reserves the bytes for them in `room`.
    ///
    /// # Errors
    /// If `room` has too few bytes left, or if a string is too long for a view. In the first case nothing is appended; in the second case an empty
    /// string is appended in place of the long one.
    pub(in crate::rows) fn extend<'s>(
        &mut self,
        strings: impl Iterator<Item = &'s [u8]> + Clone,
        room: &OutputRoom,
    ) -> Result<(), StringFailure> {
        let bytes = strings.clone().map(counted).fold(0, u64::saturating_add);
        if bytes > 0 && !room.take(bytes) {
            return Err(StringFailure::NoRoom);
        }
        let all_fit = strings.fold(true, |all_fit, string| all_fit & self.push(string));
        if all_fit { Ok(()) } else { Err(StringFailure::TooLong) }
    }

    /// Appends a string. Returns false if it is longer than the 2 GiB that a view allows; an empty string is appended then.
    pub(in crate::rows) fn push(&mut self, bytes: &[u8]) -> bool {
        let len = bytes.len();
        if len > i32::MAX as usize {
            self.views.push(0);
            return false;
        }
        if len <= INLINE {
            let mut view = [0; 16];
            view[..4].copy_from_slice(&(len as u32).to_le_bytes());
            view[4..4 + len].copy_from_slice(bytes);
            self.views.push(u128::from_le_bytes(view));
            return true;
        }
        if self.buffers.last().is_none_or(|last| last.len() + len > BUFFER) {
            self.buffers.push(Vec::new());
        }
        let (number, offset) = match self.buffers.last_mut() {
            Some(last) => {
                let offset = last.len();
                last.extend_from_slice(bytes);
                (self.buffers.len() - 1, offset)
            }
            None => return false,
        };
        let prefix = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        let parts = [len as u32, prefix, number as u32, offset as u32];
        self.views.push(parts.iter().rev().fold(0, |view, part| view << 32 | u128::from(*part)));
        true
    }

    /// Appends all strings of `other` to this list.
    pub(in crate::rows) fn append(&mut self, other: StringBuffers) {
        let before = self.buffers.len();
        self.views.extend(other.views.into_iter().map(|view| moved(view, before)));
        self.buffers.extend(other.buffers);
    }

    /// The bytes of the string in row `row`; `None` if there is no such row.
    pub(in crate::rows) fn get(&self, row: usize) -> Option<&[u8]> {
        let found = self.views.get(row)?;
        let [len, _, buffer, offset] = words(*found).map(|word| word as usize);
        if len > INLINE { self.buffers.get(buffer)?.get(offset..offset + len) } else { view(found, &[]) }
    }
}

/// The strings of a dictionary column. Each row has a key, and the key selects the row's string.
#[derive(Clone, Debug)]
pub(in crate::rows) struct DictionaryStrings {
    pub(in crate::rows) key_type: KeyType,
    /// The keys, one per row, contiguous and packed in words.
    pub(in crate::rows) keys: Vec<u64>,
    /// The string of each key; empty where the string is missing or no row has the key.
    pub(in crate::rows) strings: StringBuffers,
    /// The presence bits of the strings, one per key.
    pub(in crate::rows) present: Vec<u64>,
}

impl DictionaryStrings {
    /// Makes a table without strings for `values` keys, and for one further key that stands for missing rows. The table's memory is touched only
    /// where strings are added.
    pub(in crate::rows) fn of(key_type: KeyType, values: usize) -> DictionaryStrings {
        let strings = StringBuffers { views: vec![0; values + 1], buffers: Vec::new() };
        DictionaryStrings { key_type, keys: Vec::new(), strings, present: vec![0; (values + 1).div_ceil(64)] }
    }

    /// The dictionary key of row `row`.
    pub(in crate::rows) fn number(&self, row: usize) -> usize {
        let size = self.key_type.size();
        let word = self.keys[row * size / 8] >> (8 * (row * size % 8));
        (if size == 8 { word } else { word & ((1 << (8 * size)) - 1) }) as usize
    }

    /// Returns true if the entry for missing rows, after the last key, has a string.
    pub(in crate::rows) fn has_none(&self) -> bool {
        let none = self.strings.views.len() - 1;
        self.present[none / 64] >> (none % 64) & 1 != 0
    }

    /// The bytes of the string of row `row`; `None` if the string is missing.
    pub(in crate::rows) fn get(&self, row: usize) -> Option<&[u8]> {
        let number = self.number(row);
        let is_there = self.present.get(number / 64)? >> (number % 64) & 1 != 0;
        if is_there { self.strings.get(number) } else { None }
    }

    /// Converts the keys of `rows` rows to one string view per row.
    pub(in crate::rows) fn spread(self, rows: usize) -> StringBuffers {
        // The key of a missing row may be any number; strings that are not present are empty.
        let view = |row| self.strings.views.get(self.number(row)).copied().unwrap_or_default();
        let views = (0..rows).map(view).collect();
        StringBuffers { views, buffers: self.strings.buffers }
    }

    /// Converts the keys of `rows` rows to one string view per row. A row whose bit in `numbered` is not set has no key, and gets the string for
    /// missing rows.
    pub(in crate::rows) fn spread_by(self, rows: usize, numbered: &Bitmap<'_>) -> StringBuffers {
        let none = self.strings.views.last().copied().unwrap_or_default();
        let of_number = |row| self.strings.views.get(self.number(row)).copied().unwrap_or_default();
        let views = (0..rows).map(|row| if numbered.get(row) { of_number(row) } else { none }).collect();
        StringBuffers { views, buffers: self.strings.buffers }
    }

    /// Adds the strings of a range of rows to this collection. `numbers` has the dictionary key of each string.
    pub(in crate::rows) fn add(&mut self, numbers: &[u32], others: StringBuffers) {
        let before = self.strings.buffers.len();
        for (number, view) in numbers.iter().zip(others.views) {
            let number = *number as usize;
            self.strings.views[number] = moved(view, before);
            self.present[number / 64] |= 1 << (number % 64);
        }
        self.strings.buffers.extend(others.buffers);
    }
}

/// Returns `view`, changed for a list in which `buffers` more buffers precede the view's buffer.
fn moved(view: u128, buffers: usize) -> u128 {
    if view as u32 as usize > INLINE { view + ((buffers as u128) << 64) } else { view }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_come_back_from_every_layout() {
        let texts = ["", "a", "twelve bytes", "thirteen byte", "a text that is too long for a view", "é"];
        let owned: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
        let slices: Vec<&[u8]> = texts.iter().map(|text| text.as_bytes()).collect();
        let (mut bytes, mut ends) = (Vec::new(), vec![0_i32]);
        for text in texts {
            bytes.extend_from_slice(text.as_bytes());
            ends.push(bytes.len() as i32);
        }
        let wide: Vec<i64> = ends.iter().map(|end| i64::from(*end)).collect();
        let mut made = StringBuffers::default();
        texts[..2].iter().for_each(|text| assert!(made.push(text.as_bytes())));
        // After strings with buffers of their own.
        let mut rest = StringBuffers::default();
        texts[2..].iter().for_each(|text| assert!(rest.push(text.as_bytes())));
        assert!(made.push(texts[4].as_bytes()));
        made.append(rest);
        made.views.remove(2);
        let buffers: Vec<&[u8]> = made.buffers.iter().map(Vec::as_slice).collect();
        let all = [
            Strings::Texts(&texts),
            Strings::Owned(&owned),
            Strings::Bytes(&slices),
            Strings::Offsets32(&ends, &bytes),
            Strings::Offsets64(&wide, &bytes),
            Strings::Views(&made.views, &buffers),
        ];
        for strings in all {
            assert_eq!((strings.rows(), strings.first_fault(true)), (texts.len(), None));
            let mut places = vec![MaybeUninit::uninit(); 4];
            strings.write(2, &mut places);
            for (row, text) in texts.iter().enumerate() {
                assert_eq!((strings.get(row), made.get(row)), (Some(text.as_bytes()), Some(text.as_bytes())));
            }
            for (place, text) in places.iter().zip(&texts[2..]) {
                // SAFETY: STRING-VIEW: `write` wrote it, and the strings are alive.
                let found = unsafe {
                    let (start, len) = place.assume_init();
                    std::slice::from_raw_parts(start, len)
                };
                assert_eq!(found, text.as_bytes());
            }
        }
    }

    /// In a view with 32 bits, 4 GiB and 5 bytes would become 5 bytes.
    #[test]
    fn strings_that_are_too_long_for_a_view_are_not_cut() {
        // Zeros that take no memory as long as they are not written to.
        let long = vec![0; (1 << 32) + 5];
        let mut made = StringBuffers::default();
        for bytes in [&long[..], &long[..1 << 31]] {
            assert!(!made.push(bytes));
        }
        assert!(made.push(b"thirteen byte") && made.buffers.len() == 1);
        assert_eq!([made.get(0), made.get(1), made.get(2)], [Some(&b""[..]), Some(b""), Some(b"thirteen byte")]);
    }

    #[test]
    fn places_outside_of_the_memory_are_found() {
        assert_eq!(Strings::Offsets32(&[0, 2, 5, -1], b"abcd").first_fault(false), Some(1));
        assert_eq!(Strings::Offsets64(&[0, 2, 1, 4], b"abcd").first_fault(false), Some(1));
        assert_eq!(Strings::Offsets32(&[0, 1, 2], b"a\xFF").first_fault(true), Some(1));
        assert_eq!(Strings::Offsets32(&[0, 1, 2], b"a\xFF").first_fault(false), None);
        let far = 13 | 1_u128 << 96;
        assert_eq!(Strings::Views(&[far], &[&[0; 13]]).first_fault(false), Some(0));
        assert_eq!(Strings::Views(&[13], &[&[0; 13]]).first_fault(false), None);
    }
}
