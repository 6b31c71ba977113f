//! A dictionary in a JSON text: its entries, sorted by key, in which a plan looks keys up.

use crate::ValueRef;
use cembra_engine::Lookup;
use cembra_runtime::{FramePtr, QType, Scalar, Slot, Text};
use std::cmp::Ordering;
use std::mem::MaybeUninit;
use std::ptr::with_exposed_provenance;
use std::slice;

/// The most bytes of memory that are reused for the next text.
pub(super) const MOST_KEPT: usize = 1 << 20;

/// The entries of a dictionary. Texts are views of the JSON text, valid as long as that text is.
#[derive(Clone, Debug)]
pub(super) struct JsonMap {
    key: Scalar,
    value: Scalar,
    /// The offset of a value after its presence, and the bytes of both.
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
    /// The address and length of a text.
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

    /// Returns the scalar types of the keys and of the values.
    pub(super) const fn types(&self) -> (Scalar, Scalar) {
        (self.key, self.value)
    }

    pub(super) fn clear(&mut self) {
        self.entries.clear();
    }

    /// Frees the memory if a large text has made it large.
    pub(super) fn trim(&mut self) {
        if self.memory_bytes() > MOST_KEPT {
            self.entries = Vec::new();
        }
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.entries.capacity() * size_of::<Entry>()
    }

    /// Adds an entry from the bits of its value, and of its key if that is not a text. `None` if the values are texts.
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

    /// Adds an entry. `bits` are the bits of the key if that is not a text. `None` if the value has another type.
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

    /// Sorts the entries by key; `None` if two keys are equal.
    pub(super) fn sort(&mut self) -> Option<()> {
        let key = self.key;
        // SAFETY: STRING-VIEW: the texts of keys are those that are being read.
        let compare = |one: &Entry, other: &Entry| unsafe { compare(key, one.key, other.key) };
        self.entries.sort_unstable_by(compare);
        let is_twice = self.entries.windows(2).any(|pair| compare(&pair[0], &pair[1]) == Ordering::Equal);
        (!is_twice).then_some(())
    }

    /// Looks a key up.
    ///
    /// # Safety
    /// COLUMN: `map` points to a `JsonMap` whose texts are alive; the key is of its type, and there is room for an optional of its values.
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
