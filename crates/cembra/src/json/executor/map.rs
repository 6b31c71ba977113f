//! A dictionary that was read from a JSON text, as entries sorted by key. A compiled model looks up keys in it.

use crate::ValueRef;
use cembra_engine::Lookup;
use cembra_runtime::{FramePtr, QType, Scalar, Slot, Text};
use std::cmp::Ordering;
use std::mem::MaybeUninit;
use std::ptr::with_exposed_provenance;
use std::slice;

/// The most bytes of a dictionary's memory that are reused for the next text.
pub(super) const MOST_KEPT: usize = 1 << 20;

/// The entries of a dictionary that was read from a JSON text. The keys and values that are texts point into the JSON
/// text, so they are valid only as long as the JSON text is.
#[derive(Clone, Debug)]
pub(super) struct JsonMap {
    key: Scalar,
    value: Scalar,
    /// The offset in bytes of the value in an optional value, after its presence byte. `size` has the bytes of both
    /// together.
    inside: u32,
    size: u32,
    entries: Vec<Entry>,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    key: Key,
    /// The value as an optional in a frame. The bytes are not integers, because those would lose the provenance of a text's pointer.
    value: [MaybeUninit<u64>; 3],
}

#[derive(Clone, Copy, Debug)]
enum Key {
    /// The key of an entry is a text, given by its address and length.
    Text(usize, usize),
    Number(u64),
}

impl Key {
    fn of(text: &str, bits: Option<u64>) -> Key {
        bits.map_or_else(|| Key::text(text), Key::Number)
    }

    fn text(text: &str) -> Key {
        Key::Text(text.as_ptr().expose_provenance(), text.len())
    }
}

impl JsonMap {
    pub(super) fn new(key: Scalar, value: Scalar) -> JsonMap {
        let of_entry = QType::Optional(value);
        let (inside, size) = (of_entry.optional_value_offset().unwrap_or(0), of_entry.layout().size);
        JsonMap { key, value, inside, size, entries: Vec::new() }
    }

    /// Returns the scalar types of the dictionary's keys and values.
    pub(super) const fn types(&self) -> (Scalar, Scalar) {
        (self.key, self.value)
    }

    pub(super) fn clear(&mut self) {
        self.entries.clear();
    }

    /// Frees the dictionary's memory if it has more than `MOST_KEPT` bytes.
    pub(super) fn trim(&mut self) {
        if self.memory_bytes() > MOST_KEPT {
            self.entries = Vec::new();
        }
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.entries.capacity() * size_of::<Entry>()
    }

    /// Adds an entry to the dictionary. Its value has the bits `value`. The key has the bits `bits`, or is `text` if
    /// `bits` is `None`. Returns `None`, and adds nothing, if the dictionary's values are texts.
    pub(super) fn push_bits(&mut self, text: &str, bits: Option<u64>, value: u64) -> Option<()> {
        let ty = self.value.machine_type()?;
        let mut entry = Entry { key: Key::of(text, bits), value: [MaybeUninit::new(0); 3] };
        let place = FramePtr::from_raw(entry.value.as_mut_ptr().cast());
        // SAFETY: FRAME-SLOT: there is room for an optional of any scalar, whose presence is at the start.
        unsafe {
            place.write(Slot::<u8>::at(0), 1);
            place.write_bits(ty, self.inside, value);
        }
        self.entries.push(entry);
        Some(())
    }

    /// Adds an entry with the value `value` to the dictionary. The key has the bits `bits`, or is `text` if `bits` is
    /// `None`. Returns `None`, and adds nothing, if the value has another type than the dictionary's values.
    pub(super) fn push(&mut self, text: &str, bits: Option<u64>, value: &ValueRef<'_>) -> Option<()> {
        let mut entry = Entry { key: Key::of(text, bits), value: [MaybeUninit::new(0); 3] };
        let place = FramePtr::from_raw(entry.value.as_mut_ptr().cast());
        // SAFETY: FRAME-SLOT: there is room for an optional of any scalar. STRING-VIEW: the text outlives the call, as the caller promises.
        if !unsafe { value.write_to(&QType::Optional(self.value), place, 0) } {
            return None;
        }
        self.entries.push(entry);
        Some(())
    }

    /// Sorts the dictionary's entries by key. Returns `None` if two keys are equal.
    pub(super) fn sort(&mut self) -> Option<()> {
        let key = self.key;
        // SAFETY: STRING-VIEW: the texts of keys are those that are being read.
        let compare = |one: &Entry, other: &Entry| unsafe { compare(key, one.key, other.key) };
        self.entries.sort_unstable_by(compare);
        let is_twice = self.entries.windows(2).any(|pair| compare(&pair[0], &pair[1]) == Ordering::Equal);
        (!is_twice).then_some(())
    }

    /// Looks up the key at `key` in the dictionary at `map`, and writes its value to `found`.
    ///
    /// # Safety
    /// COLUMN (`docs/safety.md`): `map` must point to a `JsonMap` whose texts are alive. The key must have the dictionary's key type, and `found`
    /// must be null or have room for an optional of the dictionary's value type.
    pub(super) unsafe fn find(map: *const (), key: FramePtr, found: FramePtr) -> Lookup {
        // SAFETY: COLUMN and STRING-VIEW, promised by the caller.
        unsafe {
            let map = &*map.cast::<JsonMap>();
            let wanted = match map.key {
                Scalar::Text => Key::text(key.read(Slot::<Text<'_>>::at(0)).as_str()),
                other => match other.machine_type() {
                    Some(ty) => Key::Number(key.read_bits(ty, 0)),
                    None => return Lookup::Failed,
                },
            };
            let Ok(at) = map.entries.binary_search_by(|entry| compare(map.key, entry.key, wanted)) else {
                return Lookup::Absent;
            };
            if !found.as_ptr().is_null() {
                let from = FramePtr::from_raw(map.entries[at].value.as_ptr().cast_mut().cast());
                from.copy_to(0, found, 0, map.size);
            }
            Lookup::Found
        }
    }
}

/// Compares two keys of the type `scalar`.
///
/// # Safety
/// STRING-VIEW: texts are alive.
unsafe fn compare(scalar: Scalar, one: Key, other: Key) -> Ordering {
    match (one, other) {
        (Key::Text(one, one_len), Key::Text(other, other_len)) => {
            // SAFETY: STRING-VIEW, promised by the caller.
            let [one, other]: [&[u8]; 2] = unsafe {
                [(one, one_len), (other, other_len)]
                    .map(|(at, len)| slice::from_raw_parts(with_exposed_provenance(at), len))
            };
            one.cmp(other)
        }
        (Key::Number(one), Key::Number(other)) => match scalar.representation() {
            Scalar::Int32 => (one as i32).cmp(&(other as i32)),
            Scalar::Int64 => one.cast_signed().cmp(&other.cast_signed()),
            _ => one.cmp(&other),
        },
        (Key::Text(..), Key::Number(_)) => Ordering::Less,
        (Key::Number(_), Key::Text(..)) => Ordering::Greater,
    }
}
