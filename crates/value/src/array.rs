//! Arrays: values of one scalar type, each present or missing, in memory that clones share. An array is stored as a
//! column: numbers are adjacent, truth values and presence are bits, and strings are views. A view contains a short
//! string, or the position of a longer string in a buffer. The data of a missing element is never read.

#![deny(clippy::arithmetic_side_effects)]

use crate::strings::StringViews;
use crate::{ScalarValue, Value, Words};
use cembra_runtime::{ArrayKind, Excerpt, Plain, QType, Scalar, byte_length, word_length};
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::DerefMut;

/// An array of scalars, each of which is present or missing.
#[derive(Clone)]
pub struct Array {
    scalar: Scalar,
    len: usize,
    data: ArrayData,
    /// The presence of the elements, one bit each, the lowest bit first; `None` if all elements are present.
    presence: Option<Vec<u64>>,
}

/// The data of an array, without the presence of its elements.
#[derive(Clone, Debug)]
pub enum ArrayData {
    /// The elements are units, which have no data.
    Units,
    /// The elements are numbers, adjacent in 64-bit words.
    Numbers(Words),
    /// The elements are truth values, one bit each, the lowest bit first.
    Bits(Words),
    /// The elements are texts or byte strings.
    Strings(StringViews),
}

/// An element type that arrays store as adjacent values: a number, or a type that is represented by a number, such as a date.
///
/// # Safety
/// COLUMNS (`docs/safety.md`): any bits must be a valid value of the type, and the type must have the size and alignment of a number of 32 or 64
/// bits.
pub unsafe trait Number: Plain + Send + Sync + 'static {}

macro_rules! numbers {
    ($($ty:ty),*) => { $(
        // SAFETY: COLUMNS: a number of 32 or 64 bits.
        unsafe impl Number for $ty {}
    )* };
}

numbers!(i32, i64, u64, f32, f64);

/// The number of 64-bit words for `bits` bits.
const fn words(bits: usize) -> usize {
    bits.div_ceil(64)
}

/// A word in which the lowest `count % 64` bits are set.
const fn first_bits(count: usize) -> u64 {
    !(u64::MAX << (count % 64))
}

/// The number of bytes of a value of type `scalar`.
fn size_of_scalar(scalar: Scalar) -> usize {
    QType::Scalar(scalar).layout().size as usize
}

/// Returns true if values of the type are numbers, which are adjacent in arrays.
fn is_number(scalar: Scalar) -> bool {
    scalar.machine_type().is_some() && scalar != Scalar::Boolean
}

fn bit(words: &[u64], at: usize) -> bool {
    words[at / 64] >> (at % 64) & 1 != 0
}

impl Array {
    /// Makes an array of `len` elements of type `scalar` from its data and its presence bits.
    ///
    /// `None` if `data` or `presence` has fewer than `len` elements, if `data` has values of another type, or if texts are not UTF-8.
    #[must_use]
    pub fn from_parts(scalar: Scalar, len: usize, mut data: ArrayData, presence: Option<Vec<u64>>) -> Option<Array> {
        let fits = match &mut data {
            ArrayData::Units => scalar == Scalar::Unit,
            ArrayData::Numbers(words) => {
                let bytes = byte_length(len, size_of_scalar(scalar));
                is_number(scalar) && bytes.is_some_and(|bytes| bytes <= size_of_val(&**words))
            }
            ArrayData::Bits(bits) => scalar == Scalar::Boolean && bits.len() >= words(len),
            ArrayData::Strings(strings) => {
                scalar.is_string() && strings.len() == len && (scalar != Scalar::Text || strings.are_texts())
            }
        };
        let presence_fits = presence.as_ref().is_none_or(|bits| bits.len() >= words(len));
        (fits && presence_fits).then_some(Array { scalar, len, data, presence })
    }

    /// Makes an array of type `scalar` from `values`. An element is missing where the value is `None` or of another
    /// type.
    #[must_use]
    pub fn from_scalars(scalar: Scalar, values: impl IntoIterator<Item = Option<ScalarValue>>) -> Array {
        let mut made = ArrayBuilder::new(scalar, 0);
        for value in values {
            made.push(value.as_ref());
        }
        made.finish()
    }

    /// Makes an array of `len` numbers of type `scalar`. `write` fills zeroed memory; the bits of `presence` tell which
    /// elements are present.
    ///
    /// `None`, without a call of `write`, if numbers of type `scalar` are not as large as `T`, if there is no memory for `len` numbers, or if
    /// `presence` has fewer than `len` bits.
    #[must_use]
    pub fn of_numbers<T: Number>(
        scalar: Scalar,
        len: usize,
        presence: Option<Vec<u64>>,
        write: impl FnOnce(&mut [T]),
    ) -> Option<Array> {
        let is_of = is_number(scalar) && size_of_scalar(scalar) == size_of::<T>();
        if !is_of || presence.as_ref().is_some_and(|bits| bits.len() < words(len)) {
            return None;
        }
        let mut words = Words::try_zeros(word_length(len, size_of::<T>())?)?;
        // SAFETY: COLUMNS: the words are as long as `len` numbers, aligned for them, and any bits are one.
        write(unsafe { std::slice::from_raw_parts_mut(words.as_mut_ptr().cast::<T>(), len) });
        Array::from_parts(scalar, len, ArrayData::Numbers(words), presence)
    }

    /// Takes the 64-bit words of the array's data and presence, so that their memory can be reused, and leaves an array
    /// without elements. Strings are not stored as words, so their data is not returned.
    #[must_use]
    pub fn take_words(&mut self) -> (Words, Vec<u64>) {
        self.len = 0;
        let data = match &mut self.data {
            ArrayData::Numbers(words) | ArrayData::Bits(words) => std::mem::take(words),
            ArrayData::Units | ArrayData::Strings(_) => Words::default(),
        };
        (data, self.presence.take().unwrap_or_default())
    }

    /// Returns the array with its values in its own memory. Values in memory of another owner are copied; `None` if
    /// there is no memory for the copy.
    #[must_use]
    pub fn owned(mut self) -> Option<Array> {
        match &mut self.data {
            ArrayData::Numbers(words) | ArrayData::Bits(words) => *words = std::mem::take(words).owned()?,
            ArrayData::Units | ArrayData::Strings(_) => {}
        }
        Some(self)
    }

    /// The type of the array's elements.
    #[must_use]
    pub const fn scalar(&self) -> Scalar {
        self.scalar
    }

    /// The number of elements in the array, including missing ones.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Returns true if the array has no elements.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The data of the array's elements, without their presence.
    #[must_use]
    pub const fn data(&self) -> &ArrayData {
        &self.data
    }

    /// The presence of the elements, one bit each, the lowest bit first; `None` if all elements are present.
    #[must_use]
    pub fn presence(&self) -> Option<&[u64]> {
        self.presence.as_deref()
    }

    /// Returns true if the element at index `at` is present, and false after the last element.
    #[must_use]
    #[inline]
    pub fn is_present(&self, at: usize) -> bool {
        at < self.len && self.presence.as_ref().is_none_or(|bits| bit(bits, at))
    }

    /// The number of present elements in the array.
    #[must_use]
    pub fn present_count(&self) -> usize {
        match &self.presence {
            None => self.len,
            Some(bits) => {
                let (whole, rest) = (self.len / 64, self.len % 64);
                let last = if rest == 0 { 0 } else { (bits[whole] & first_bits(rest)).count_ones() as usize };
                bits[..whole].iter().fold(last, |count, word| count.wrapping_add(word.count_ones() as usize))
            }
        }
    }

    /// The index of the first missing element; `None` if all are present. Takes constant time for an array without presence bits.
    #[must_use]
    pub fn first_missing(&self) -> Option<usize> {
        let at = self.presence.as_ref()?.iter().position(|word| *word != u64::MAX)?;
        let ones = self.presence.as_ref()?[at].trailing_ones() as usize;
        let first = at.saturating_mul(64).saturating_add(ones);
        (first < self.len).then_some(first)
    }

    /// Takes the array apart: its element type, the number of elements, the data and the presence bits.
    #[must_use]
    pub fn into_parts(self) -> (Scalar, usize, ArrayData, Option<Vec<u64>>) {
        (self.scalar, self.len, self.data, self.presence)
    }

    /// The array's elements as numbers of type `T`; `None` if its elements do not have the size of `T`. Missing
    /// elements have arbitrary numbers.
    #[must_use]
    pub fn numbers<T: Number>(&self) -> Option<&[T]> {
        match &self.data {
            ArrayData::Numbers(words) if size_of_scalar(self.scalar) == size_of::<T>() => {
                // SAFETY: COLUMNS: there are as many numbers of this size, in words, and any bits are one.
                Some(unsafe { std::slice::from_raw_parts(words.as_ptr().cast(), self.len) })
            }
            _ => None,
        }
    }

    /// The array's elements as numbers of type `T`, for writing; `None` if its elements do not have the size of `T`.
    /// Missing elements have arbitrary numbers.
    #[must_use]
    pub fn numbers_mut<T: Number>(&mut self) -> Option<&mut [T]> {
        match &mut self.data {
            ArrayData::Numbers(words) if size_of_scalar(self.scalar) == size_of::<T>() => {
                // SAFETY: COLUMNS: there are as many numbers of this size, in words, and any bits are one.
                Some(unsafe { std::slice::from_raw_parts_mut(words.as_mut_ptr().cast(), self.len) })
            }
            _ => None,
        }
    }

    /// The array's truth values, one bit each; `None` for an array of another type.
    #[must_use]
    pub fn bits(&self) -> Option<&[u64]> {
        if let ArrayData::Bits(bits) = &self.data { Some(bits) } else { None }
    }

    /// The bytes of the text or byte string at index `at`; `None` if the element is missing or of another type.
    #[must_use]
    pub fn string(&self, at: usize) -> Option<&[u8]> {
        match &self.data {
            ArrayData::Strings(strings) if self.is_present(at) => strings.get(at),
            _ => None,
        }
    }

    /// The text at index `at`; `None` if the element is missing or not a text.
    #[must_use]
    pub fn text(&self, at: usize) -> Option<&str> {
        let bytes = self.string(at).filter(|_| self.scalar == Scalar::Text)?;
        // SAFETY: STRING-VIEW: strings of an array of texts were checked when it was made, or were made from texts.
        Some(unsafe { std::str::from_utf8_unchecked(bytes) })
    }

    /// The element at index `at`; `None` if the element is missing, or the array has no such index.
    #[must_use]
    pub fn get(&self, at: usize) -> Option<ScalarValue> {
        if !self.is_present(at) {
            return None;
        }
        match &self.data {
            ArrayData::Units => Some(ScalarValue::Unit),
            ArrayData::Bits(bits) => Some(ScalarValue::Boolean(bit(bits, at))),
            ArrayData::Numbers(words) => {
                let bits = match (size_of_scalar(self.scalar), at % 2) {
                    (8, _) => words[at],
                    (_, 0) => words[at / 2] & 0xFFFF_FFFF,
                    _ => words[at / 2] >> 32,
                };
                ScalarValue::from_bits(self.scalar, bits)
            }
            ArrayData::Strings(_) if self.scalar == Scalar::Text => Some(ScalarValue::Text(self.text(at)?.into())),
            ArrayData::Strings(_) => Some(ScalarValue::Bytes(self.string(at)?.into())),
        }
    }

    /// The element at index `at`, as a value of the optional type; a missing value after the last element.
    #[must_use]
    pub fn value(&self, at: usize) -> Value {
        Value::optional(self.scalar, self.get(at))
    }

    /// Iterates over the array's elements in order, with `None` for missing ones.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Option<ScalarValue>> + '_ {
        (0..self.len).map(|at| self.get(at))
    }

    /// Returns an array of the elements of this array at the indices `places`, in that order. An element is missing where the index is `None` or
    /// beyond the last element.
    #[must_use]
    pub fn take(&self, places: impl IntoIterator<Item = Option<usize>>) -> Array {
        let places = places.into_iter();
        let mut made = ArrayBuilder::new(self.scalar, places.size_hint().0);
        for place in places {
            made.push_from(self, place);
        }
        made.finish()
    }

    /// The bytes of memory that the array holds, without its struct itself.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let data = match &self.data {
            ArrayData::Units => 0,
            ArrayData::Numbers(words) | ArrayData::Bits(words) => words.capacity().saturating_mul(8),
            ArrayData::Strings(strings) => strings.memory_bytes(),
        };
        data.saturating_add(self.presence.as_ref().map_or(0, |bits| bits.capacity().saturating_mul(8)))
    }

    /// Returns true if both arrays have the same elements. All NaNs count as the same.
    #[must_use]
    pub fn same(&self, other: &Array) -> bool {
        let same = |(a, b): (Option<ScalarValue>, Option<ScalarValue>)| match (a, b) {
            (Some(a), Some(b)) => a.same(&b),
            (None, None) => true,
            _ => false,
        };
        self.scalar == other.scalar && self.len == other.len && self.iter().zip(other.iter()).all(same)
    }
}

impl From<Array> for Value {
    fn from(array: Array) -> Value {
        Value::Array(ArrayKind::Dense, array.into())
    }
}

impl PartialEq for Array {
    fn eq(&self, other: &Self) -> bool {
        self.scalar == other.scalar && self.len == other.len && self.iter().eq(other.iter())
    }
}

impl Eq for Array {}

impl Hash for Array {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.scalar, self.len).hash(state);
        self.iter().for_each(|element| element.hash(state));
    }
}

impl fmt::Display for Array {
    /// Prints the array as Arolla does: `[1, NA, 3]`. Of a long array, the first ten elements are printed.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 10;
        f.write_str("[")?;
        for at in 0..self.len.min(SHOWN) {
            f.write_str(if at > 0 { ", " } else { "" })?;
            match self.get(at) {
                Some(value) => value.fmt_bare(f)?,
                None => f.write_str("NA")?,
            }
        }
        if self.len > SHOWN {
            write!(f, ", ... ({} elements)", self.len)?;
        }
        f.write_str("]")
    }
}

impl fmt::Debug for Array {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.scalar, Excerpt::quoted(&self.to_string()))
    }
}

/// An element that is being appended to an array: its bits, or its string.
#[derive(Clone, Copy)]
enum Element<'e> {
    /// The bits of an element that is a number, a truth value or a unit.
    Bits(u64),
    Text(&'e str),
    Bytes(&'e [u8]),
}

/// A builder for an array, element by element.
#[derive(Debug)]
pub struct ArrayBuilder {
    /// The array of the elements that were appended so far.
    made: Array,
    /// True if the elements are 64-bit numbers, so that each takes a whole word.
    is_wide: bool,
}

impl ArrayBuilder {
    /// Returns a builder without elements for arrays of type `scalar`, with room for `room` elements.
    #[must_use]
    pub fn new(scalar: Scalar, room: usize) -> Self {
        let data = match scalar {
            Scalar::Unit => ArrayData::Units,
            Scalar::Boolean => ArrayData::Bits(Words::with_capacity(words(room))),
            _ if scalar.is_string() => ArrayData::Strings(StringViews::default()),
            _ => ArrayData::Numbers(Words::with_capacity(word_length(room, size_of_scalar(scalar)).unwrap_or(0))),
        };
        let is_wide = is_number(scalar) && size_of_scalar(scalar) == size_of::<u64>();
        ArrayBuilder { made: Array { scalar, len: 0, data, presence: None }, is_wide }
    }

    /// Returns a builder without elements that reuses the memory of the array `old` and builds an array of the same
    /// type.
    #[must_use]
    pub fn over(old: Array) -> Self {
        let new = ArrayBuilder::new(old.scalar, 0);
        // An array without elements may have words that no element accounts for.
        if old.is_empty() {
            return new;
        }
        let mut made = ArrayBuilder { made: old, ..new };
        made.truncate(0);
        made
    }

    /// The number of elements that were appended so far.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.made.len
    }

    /// Returns true if no element was appended yet.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.made.len == 0
    }

    /// The array of the elements that were appended so far.
    #[must_use]
    pub const fn array(&self) -> &Array {
        &self.made
    }

    /// Removes all elements after the first `len`. Their memory is reused for further elements.
    pub fn truncate(&mut self, len: usize) {
        let Array { scalar, len: found, data, presence } = &mut self.made;
        if len >= *found {
            return;
        }
        *found = len;
        let keep_bits = |bits: &mut [u64]| {
            if let Some(last) = bits.last_mut().filter(|_| !len.is_multiple_of(64)) {
                *last &= first_bits(len);
            }
        };
        match data {
            ArrayData::Units => {}
            ArrayData::Bits(bits) => {
                bits.truncate(words(len));
                keep_bits(bits);
            }
            ArrayData::Strings(strings) => strings.truncate(len),
            ArrayData::Numbers(numbers) => {
                let is_half = size_of_scalar(*scalar) == 4 && !len.is_multiple_of(2);
                numbers.truncate(word_length(len, size_of_scalar(*scalar)).unwrap_or(0));
                // The next number goes to the upper half.
                if let Some(last) = numbers.last_mut().filter(|_| is_half) {
                    *last &= 0xFFFF_FFFF;
                }
            }
        }
        match presence {
            // An array without elements has none that is missing.
            Some(_) if len == 0 => *presence = None,
            Some(bits) => {
                bits.truncate(words(len));
                keep_bits(bits);
            }
            None => {}
        }
    }

    /// Appends the element `value`. The new element is missing if `value` is `None`, of another type, or a string of more than 2 GiB.
    pub fn push(&mut self, value: Option<&ScalarValue>) {
        match value.filter(|value| value.scalar() == self.made.scalar) {
            None => self.push_element(None),
            Some(ScalarValue::Text(text)) => self.push_element(Some(Element::Text(text))),
            Some(ScalarValue::Bytes(bytes)) => self.push_element(Some(Element::Bytes(bytes))),
            Some(value) => self.push_element(Some(Element::Bits(value.bits()))),
        }
    }

    /// Appends the element at index `place` of `array`, which has the same type. The new element is missing if `place`
    /// is `None`, or if `array` has no such element.
    pub fn push_from(&mut self, array: &Array, place: Option<usize>) {
        let place = place.filter(|at| array.scalar == self.made.scalar && array.is_present(*at));
        let element = place.and_then(|at| match &array.data {
            ArrayData::Units => Some(Element::Bits(0)),
            ArrayData::Bits(bits) => Some(Element::Bits(u64::from(bit(bits, at)))),
            ArrayData::Strings(_) if self.made.scalar == Scalar::Text => array.text(at).map(Element::Text),
            ArrayData::Strings(strings) => strings.get(at).map(Element::Bytes),
            ArrayData::Numbers(_) => array.get(at).map(|value| Element::Bits(value.bits())),
        });
        self.push_element(element);
    }

    /// Appends a number to the array, given by its bits. `None` appends a missing element.
    #[inline]
    pub fn push_bits(&mut self, bits: Option<u64>) {
        // Most numbers have 64 bits, and most arrays have no missing elements.
        if self.is_wide
            && let (Some(bits), ArrayData::Numbers(words), None) = (bits, &mut self.made.data, &self.made.presence)
        {
            words.push(bits);
            self.made.len = self.made.len.saturating_add(1);
            return;
        }
        self.push_element(bits.map(Element::Bits));
    }

    /// Appends a text to the array. Appends a missing element instead if `text` is `None` or longer than 2 GiB, or if the array's elements are not
    /// texts.
    #[inline]
    pub fn push_text(&mut self, text: Option<&str>) {
        let Array { scalar, len, data, presence } = &mut self.made;
        if *scalar == Scalar::Text
            && let (Some(text), ArrayData::Strings(strings), None) = (text, data, presence)
            && strings.push_text(text)
        {
            *len = len.saturating_add(1);
            return;
        }
        self.push_element(text.map(Element::Text));
    }

    /// Appends a byte string to the array. Appends a missing element instead if `bytes` is `None` or longer than 2 GiB, or if the array's elements
    /// are not byte strings.
    pub fn push_bytes(&mut self, bytes: Option<&[u8]>) {
        self.push_element(bytes.map(Element::Bytes));
    }

    fn push_element(&mut self, element: Option<Element<'_>>) {
        let is_wide = self.is_wide;
        let Array { scalar, len, data, presence } = &mut self.made;
        let (scalar, at) = (*scalar, *len);
        let bits = if let Some(Element::Bits(bits)) = element { bits } else { 0 };
        let mut is_present = element.is_some();
        match data {
            ArrayData::Units => {}
            ArrayData::Bits(words) => set_bit(words, at, bits != 0),
            ArrayData::Strings(strings) => {
                let is_added = match element {
                    Some(Element::Text(text)) if scalar == Scalar::Text => strings.push_text(text),
                    Some(Element::Bytes(bytes)) if scalar == Scalar::Bytes => strings.push(bytes),
                    _ => false,
                };
                if !is_added {
                    is_present = false;
                    // An empty string can always be added.
                    let _ = strings.push_text("");
                }
            }
            ArrayData::Numbers(words) => {
                if is_wide {
                    words.push(bits);
                } else if at.is_multiple_of(2) {
                    words.push(bits & 0xFFFF_FFFF);
                } else {
                    words[at / 2] |= bits << 32;
                }
            }
        }
        *len = at.saturating_add(1);
        if !is_present && presence.is_none() {
            let mut all = vec![u64::MAX; at / 64];
            if !at.is_multiple_of(64) {
                all.push(first_bits(at % 64));
            }
            *presence = Some(all);
        }
        if let Some(words) = presence {
            set_bit(words, at, is_present);
        }
    }

    /// Returns the array of all elements that were appended.
    #[must_use]
    pub fn finish(self) -> Array {
        self.made
    }
}

/// Appends bit number `at` to `words`, which must have exactly the bits before it.
fn set_bit(words: &mut (impl DerefMut<Target = [u64]> + Extend<u64>), at: usize, to: bool) {
    if at.is_multiple_of(64) {
        words.extend([0]);
    }
    words[at / 64] |= u64::from(to) << (at % 64);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn array(values: &[Option<i32>]) -> Array {
        Array::from_scalars(Scalar::Int32, values.iter().map(|value| value.map(ScalarValue::Int32)))
    }

    #[test]
    fn a_shorter_array_grows_again_as_if_it_had_never_been_longer() {
        let numbers = |at: usize| Some(ScalarValue::Int32(-(at as i32) - 1)).filter(|_| at % 5 != 3);
        let truths = |at: usize| Some(ScalarValue::Boolean(at % 2 == 1)).filter(|_| at != 70);
        let texts = |at: usize| Some(ScalarValue::Text("longer than a view ".repeat(at % 3).as_str().into()));
        let units = |at: usize| Some(ScalarValue::Unit).filter(|_| at % 3 == 1);
        type Element<'e> = &'e dyn Fn(usize) -> Option<ScalarValue>;
        let kinds: [(Scalar, Element<'_>); 4] =
            [(Scalar::Int32, &numbers), (Scalar::Boolean, &truths), (Scalar::Text, &texts), (Scalar::Unit, &units)];
        for (scalar, element) in kinds {
            for keep in [0, 1, 2, 63, 64, 65, 70, 128, 129] {
                let mut made = ArrayBuilder::new(scalar, 0);
                (0..130).for_each(|at| made.push(Some(element(at + 1)).flatten().as_ref()));
                made.truncate(0);
                (0..130).for_each(|at| made.push(element(at).as_ref()));
                made.truncate(keep);
                made.truncate(keep + 1);
                assert_eq!((made.len(), made.array().len()), (keep, keep));
                (keep..140).for_each(|at| made.push(element(at + 2).as_ref()));
                let expected = (0..keep).map(element).chain((keep..140).map(|at| element(at + 2)));
                assert!(made.finish().iter().eq(expected), "{scalar} {keep}");
            }
        }
    }

    #[test]
    fn an_array_over_another_has_none_of_its_elements() {
        for scalar in Scalar::ALL {
            let element = |at: usize| (at % 4 != 2).then(|| ScalarValue::zero(scalar));
            for (before, after) in [(0, 3), (70, 3), (3, 70)] {
                let mut made = ArrayBuilder::over(Array::from_scalars(scalar, (0..before).map(element)));
                (0..after).for_each(|at| made.push(element(at + 1).as_ref()));
                assert!(made.finish().iter().eq((0..after).map(|at| element(at + 1))), "{scalar} {before}");
            }
        }
        let spare = Array::from_parts(Scalar::Int64, 0, ArrayData::Numbers(vec![7, 8].into()), Some(vec![0])).unwrap();
        let mut made = ArrayBuilder::over(spare);
        made.push_bits(Some(5));
        assert_eq!(made.finish().numbers::<i64>(), Some(&[5][..]));
    }

    #[test]
    fn elements_come_back_as_they_went_in() {
        for len in [0, 1, 2, 63, 64, 65, 130] {
            for scalar in Scalar::ALL {
                let element = |at: usize| -> Option<ScalarValue> {
                    (at % 3 != 1).then(|| match scalar {
                        Scalar::Text => ScalarValue::Text("ab".repeat(at).into()),
                        Scalar::Bytes => ScalarValue::Bytes(vec![7; at].into()),
                        _ => ScalarValue::from_bits(scalar, (at % 2) as u64 + u64::from(scalar != Scalar::Boolean))
                            .unwrap(),
                    })
                };
                let made = Array::from_scalars(scalar, (0..len).map(element));
                assert_eq!((made.scalar(), made.len()), (scalar, len));
                assert!(made.iter().eq((0..len).map(element)), "{scalar} {len}");
                assert_eq!(made.present_count(), (0..len).filter(|at| at % 3 != 1).count());
                let reversed = made.take((0..len).rev().map(Some));
                assert!(reversed.iter().eq((0..len).rev().map(element)), "{scalar} {len}");
            }
        }
    }

    #[test]
    fn what_lies_where_nothing_is_does_not_count() {
        let data = |missing: u64| ArrayData::Numbers(vec![1 | missing << 32].into());
        let of = |missing| Array::from_parts(Scalar::Int32, 2, data(missing), Some(vec![0b01])).unwrap();
        assert_eq!(of(7), of(8));
        assert_eq!(of(7), array(&[Some(1), None]));
        assert_ne!(of(7), array(&[Some(1), Some(7)]));
        assert_eq!(of(7).present_count(), 1);
        // Bits after the last element have no meaning.
        let all = Array::from_parts(Scalar::Int32, 1, data(0), Some(vec![u64::MAX])).unwrap();
        assert_eq!((all.present_count(), &all), (1, &array(&[Some(1)])));
        assert!(Array::from_parts(Scalar::Int32, 3, data(0), None).is_none());
        assert!(Array::from_parts(Scalar::Unit, 65, ArrayData::Units, Some(vec![0])).is_none());
    }

    /// Lengths for which the bytes, at 8 per element, wrap around to none or few: such arrays once wrote memory after their
    /// words.
    #[test]
    fn lengths_that_wrap_are_refused() {
        for len in [1 << 61, (1 << 61) + 1, (1 << 62) + 2, usize::MAX] {
            for scalar in [Scalar::Int64, Scalar::Int32, Scalar::Float64, Scalar::Date] {
                let data = ArrayData::Numbers(vec![0; 4].into());
                assert!(Array::from_parts(scalar, len, data, None).is_none(), "{scalar} {len}");
            }
            let (mut eight, mut four) = (false, false);
            assert!(Array::of_numbers(Scalar::Int64, len, None, |_: &mut [i64]| eight = true).is_none());
            assert!(Array::of_numbers(Scalar::Float32, len, None, |_: &mut [f32]| four = true).is_none());
            assert!(!eight && !four, "memory was made for {len}");
            assert!(ArrayBuilder::new(Scalar::Int64, len).is_empty());
        }
    }

    #[test]
    fn numbers_of_another_type_are_not_asked_for() {
        let mut asked = false;
        let bits = Some(vec![0]);
        assert!(Array::of_numbers(Scalar::Int64, 3, None, |_: &mut [i32]| asked = true).is_none());
        assert!(Array::of_numbers(Scalar::Text, 3, None, |_: &mut [i64]| asked = true).is_none());
        assert!(Array::of_numbers(Scalar::Int64, 65, bits, |_: &mut [i64]| asked = true).is_none());
        assert!(!asked);
    }

    #[test]
    fn texts_are_utf8() {
        let of = |scalar, strings: &StringViews| {
            Array::from_parts(scalar, strings.len(), ArrayData::Strings(strings.clone()), None)
        };
        let mut strings = StringViews::default();
        assert!(strings.push("é".as_bytes()) && of(Scalar::Text, &strings).is_some());
        assert!(strings.push(b"\xE9 is no letter of UTF-8") && of(Scalar::Text, &strings).is_none());
        assert_eq!(of(Scalar::Bytes, &strings).unwrap().string(1), Some(&b"\xE9 is no letter of UTF-8"[..]));
        // Byte strings are not texts, whatever their bytes are, and texts are not byte strings.
        let mut texts = ArrayBuilder::new(Scalar::Text, 0);
        texts.push_bytes(Some(b"\xFF"));
        texts.push_text(Some("é"));
        let mut bytes = ArrayBuilder::new(Scalar::Bytes, 0);
        bytes.push_text(Some("é"));
        assert_eq!((texts.finish().to_string(), bytes.finish().to_string()), ("[NA, 'é']".into(), "[NA]".into()));
    }

    #[test]
    fn arrays_print_as_arolla_prints_them() {
        assert_eq!(array(&[Some(1), None, Some(3)]).to_string(), "[1, NA, 3]");
        assert_eq!(array(&[]).to_string(), "[]");
        assert_eq!(array(&[Some(0); 11]).to_string(), "[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, ... (11 elements)]");
    }
}
