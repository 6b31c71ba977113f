//! Arrays: many values of one scalar type, each there or missing, shared by reference. They are kept as columns are: numbers
//! next to each other, truth values and presence as bits, strings as views of buffers. What is at a missing element's place is
//! never looked at.

use crate::strings::StringViews;
use crate::{ScalarValue, Value, Words};
use cembra_runtime::{ArrayKind, Excerpt, Plain, QType, Scalar};
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::DerefMut;

/// An array.
#[derive(Clone)]
pub struct Array {
    scalar: Scalar,
    len: usize,
    data: ArrayData,
    /// A bit for each element, the lowest first; none where all are there.
    presence: Option<Vec<u64>>,
}

/// The values of an array.
#[derive(Clone, Debug)]
pub enum ArrayData {
    /// Units have none.
    Units,
    /// Numbers next to each other, in words.
    Numbers(Words),
    /// Truth values, a bit each, the lowest first.
    Bits(Words),
    /// Texts or bytes.
    Strings(StringViews),
}

/// A type whose values lie next to each other in arrays: a number, or what is made of one.
///
/// # Safety
/// COLUMNS: any bits of its size are a value of it, and it is as large and aligned as a number of 32 or 64 bits.
pub unsafe trait Number: Plain + Send + Sync + 'static {}

macro_rules! numbers {
    ($($ty:ty),*) => { $(
        // SAFETY: COLUMNS: a number of 32 or 64 bits.
        unsafe impl Number for $ty {}
    )* };
}

numbers!(i32, i64, u64, f32, f64);

/// How many words hold so many bits.
const fn words(bits: usize) -> usize {
    bits.div_ceil(64)
}

fn bit(words: &[u64], at: usize) -> bool {
    words[at / 64] >> (at % 64) & 1 != 0
}

impl Array {
    /// An array of these parts.
    ///
    /// `None` if there are not as many values, or bits of presence, as elements, or they are of another type.
    #[must_use]
    pub fn from_parts(scalar: Scalar, len: usize, data: ArrayData, presence: Option<Vec<u64>>) -> Option<Array> {
        let size = QType::Scalar(scalar).layout().size as usize;
        let fits = match &data {
            ArrayData::Units => scalar == Scalar::Unit,
            ArrayData::Numbers(words) => {
                scalar.machine_type().is_some() && scalar != Scalar::Boolean && words.len() * 8 >= len * size
            }
            ArrayData::Bits(bits) => scalar == Scalar::Boolean && bits.len() >= words(len),
            ArrayData::Strings(strings) => scalar.is_string() && strings.len() == len,
        };
        let presence_fits = presence.as_ref().is_none_or(|bits| bits.len() >= words(len));
        (fits && presence_fits).then_some(Array { scalar, len, data, presence })
    }

    /// An array of the values of an iterator, missing where there is none, or one of another type.
    #[must_use]
    pub fn from_scalars(scalar: Scalar, values: impl IntoIterator<Item = Option<ScalarValue>>) -> Array {
        let mut made = ArrayBuilder::new(scalar, 0);
        for value in values {
            made.push(value.as_ref());
        }
        made.finish()
    }

    /// An array of numbers, written by a function to memory of zeros; the bits of `presence` say which are there.
    #[must_use]
    pub fn of_numbers<T: Number>(
        scalar: Scalar,
        len: usize,
        presence: Option<Vec<u64>>,
        write: impl FnOnce(&mut [T]),
    ) -> Option<Array> {
        let mut words = Words::zeros((len * size_of::<T>()).div_ceil(8));
        // SAFETY: COLUMNS: the words are as long as so many numbers, aligned for them, and any bits are one.
        write(unsafe { std::slice::from_raw_parts_mut(words.as_mut_ptr().cast::<T>(), len) });
        let is_of = QType::Scalar(scalar).layout().size as usize == size_of::<T>();
        is_of.then(|| Array::from_parts(scalar, len, ArrayData::Numbers(words), presence))?
    }

    /// Takes the words of its values and of its presence away, to be used again: what is left has no elements. Strings have no
    /// words.
    #[must_use]
    pub fn take_words(&mut self) -> (Words, Vec<u64>) {
        self.len = 0;
        let data = match &mut self.data {
            ArrayData::Numbers(words) | ArrayData::Bits(words) => std::mem::take(words),
            ArrayData::Units | ArrayData::Strings(_) => Words::default(),
        };
        (data, self.presence.take().unwrap_or_default())
    }

    /// The type of its elements.
    #[must_use]
    pub const fn scalar(&self) -> Scalar {
        self.scalar
    }

    /// How many elements it has.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// True if it has no elements.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Its values.
    #[must_use]
    pub const fn data(&self) -> &ArrayData {
        &self.data
    }

    /// Which elements are there, a bit each, the lowest first; none where all are.
    #[must_use]
    pub fn presence(&self) -> Option<&[u64]> {
        self.presence.as_deref()
    }

    /// True if an element is there; false behind the last.
    #[must_use]
    #[inline]
    pub fn is_present(&self, at: usize) -> bool {
        at < self.len && self.presence.as_ref().is_none_or(|bits| bit(bits, at))
    }

    /// How many elements are there.
    #[must_use]
    pub fn present_count(&self) -> usize {
        match &self.presence {
            None => self.len,
            Some(bits) => {
                let (whole, rest) = (self.len / 64, self.len % 64);
                let last = if rest == 0 { 0 } else { (bits[whole] & ((1 << rest) - 1)).count_ones() as usize };
                bits[..whole].iter().map(|word| word.count_ones() as usize).sum::<usize>() + last
            }
        }
    }

    /// The first element that is missing. Takes no time for an array that keeps no presence.
    #[must_use]
    pub fn first_missing(&self) -> Option<usize> {
        let at = self.presence.as_ref()?.iter().position(|word| *word != u64::MAX)?;
        let first = 64 * at + self.presence.as_ref()?[at].trailing_ones() as usize;
        (first < self.len).then_some(first)
    }

    /// Its type, how many elements it has, its values, and which of them are there.
    #[must_use]
    pub fn into_parts(self) -> (Scalar, usize, ArrayData, Option<Vec<u64>>) {
        (self.scalar, self.len, self.data, self.presence)
    }

    /// The numbers, if they are as large as this type; at places of missing ones, anything.
    #[must_use]
    pub fn numbers<T: Number>(&self) -> Option<&[T]> {
        match &self.data {
            ArrayData::Numbers(words) if QType::Scalar(self.scalar).layout().size as usize == size_of::<T>() => {
                // SAFETY: COLUMNS: there are as many numbers of this size, in words, and any bits are one.
                Some(unsafe { std::slice::from_raw_parts(words.as_ptr().cast(), self.len) })
            }
            _ => None,
        }
    }

    /// Truth values, a bit each.
    #[must_use]
    pub fn bits(&self) -> Option<&[u64]> {
        if let ArrayData::Bits(bits) = &self.data { Some(bits) } else { None }
    }

    /// The bytes of a text, or of bytes, that is there.
    #[must_use]
    pub fn string(&self, at: usize) -> Option<&[u8]> {
        match &self.data {
            ArrayData::Strings(strings) if self.is_present(at) => strings.get(at),
            _ => None,
        }
    }

    /// An element; none where it is missing or behind the last.
    #[must_use]
    pub fn get(&self, at: usize) -> Option<ScalarValue> {
        if !self.is_present(at) {
            return None;
        }
        match &self.data {
            ArrayData::Units => Some(ScalarValue::Unit),
            ArrayData::Bits(bits) => Some(ScalarValue::Boolean(bit(bits, at))),
            ArrayData::Numbers(words) => {
                let size = QType::Scalar(self.scalar).layout().size as usize;
                let bits = if size == 8 { words[at] } else { words[at / 2] >> (32 * (at % 2)) & 0xFFFF_FFFF };
                ScalarValue::from_bits(self.scalar, bits)
            }
            ArrayData::Strings(strings) => {
                let bytes = strings.get(at)?;
                Some(match self.scalar {
                    Scalar::Text => ScalarValue::Text(std::str::from_utf8(bytes).ok()?.into()),
                    _ => ScalarValue::Bytes(bytes.into()),
                })
            }
        }
    }

    /// An element as a value of the optional type.
    #[must_use]
    pub fn value(&self, at: usize) -> Value {
        Value::optional(self.scalar, self.get(at))
    }

    /// All elements in order, none for those that are missing.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Option<ScalarValue>> + '_ {
        (0..self.len).map(|at| self.get(at))
    }

    /// The elements at these places, in their order; missing where there is no place, or no such element.
    #[must_use]
    pub fn take(&self, places: impl IntoIterator<Item = Option<usize>>) -> Array {
        let places = places.into_iter();
        let mut made = ArrayBuilder::new(self.scalar, places.size_hint().0);
        for place in places {
            made.push_from(self, place);
        }
        made.finish()
    }

    /// Bytes of memory it holds, besides itself.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let data = match &self.data {
            ArrayData::Units => 0,
            ArrayData::Numbers(words) | ArrayData::Bits(words) => 8 * words.capacity(),
            ArrayData::Strings(strings) => strings.memory_bytes(),
        };
        data + self.presence.as_ref().map_or(0, |bits| 8 * bits.capacity())
    }

    /// True if both have the same elements, any NaN being like any other.
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
    /// As Arolla prints it: `[1, NA, 3]`; of a long one the first ten.
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

/// An array that is made element by element.
#[derive(Debug)]
pub struct ArrayBuilder {
    scalar: Scalar,
    len: usize,
    data: ArrayData,
    presence: Option<Vec<u64>>,
}

impl ArrayBuilder {
    /// An array without elements, with room for so many.
    #[must_use]
    pub fn new(scalar: Scalar, room: usize) -> Self {
        let size = QType::Scalar(scalar).layout().size as usize;
        let data = match scalar {
            Scalar::Unit => ArrayData::Units,
            Scalar::Boolean => ArrayData::Bits(Words::with_capacity(words(room))),
            _ if scalar.is_string() => ArrayData::Strings(StringViews::default()),
            _ => ArrayData::Numbers(Words::with_capacity((room * size).div_ceil(8))),
        };
        ArrayBuilder { scalar, len: 0, data, presence: None }
    }

    /// How many elements there are.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// True if there are none yet.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Adds an element: missing if there is none, or it is of another type.
    pub fn push(&mut self, value: Option<&ScalarValue>) {
        match value.filter(|value| value.scalar() == self.scalar) {
            None => self.push_parts(0, &[], false),
            Some(ScalarValue::Text(text)) => self.push_parts(0, text.as_bytes(), true),
            Some(ScalarValue::Bytes(bytes)) => self.push_parts(0, bytes, true),
            Some(value) => self.push_parts(value.bits(), &[], true),
        }
    }

    /// Adds an element of an array of the same type; a missing one if there is none at the place.
    pub fn push_from(&mut self, array: &Array, place: Option<usize>) {
        let place = place.filter(|at| array.scalar == self.scalar && array.is_present(*at));
        let Some(at) = place else { return self.push_parts(0, &[], false) };
        match &array.data {
            ArrayData::Units => self.push_parts(0, &[], true),
            ArrayData::Bits(bits) => self.push_parts(u64::from(bit(bits, at)), &[], true),
            ArrayData::Strings(strings) => self.push_parts(0, strings.get(at).unwrap_or_default(), true),
            ArrayData::Numbers(_) => {
                let bits = array.get(at).map_or(0, |value| value.bits());
                self.push_parts(bits, &[], true);
            }
        }
    }

    /// Adds a number by its bits.
    pub fn push_bits(&mut self, bits: Option<u64>) {
        self.push_parts(bits.unwrap_or(0), &[], bits.is_some());
    }

    /// Adds a string by its bytes: UTF-8, if it is a text.
    pub fn push_string(&mut self, bytes: Option<&[u8]>) {
        self.push_parts(0, bytes.unwrap_or_default(), bytes.is_some());
    }

    fn push_parts(&mut self, bits: u64, bytes: &[u8], is_present: bool) {
        let at = self.len;
        match &mut self.data {
            ArrayData::Units => {}
            ArrayData::Bits(words) => set_bit(words, at, bits != 0),
            ArrayData::Strings(strings) => strings.push(bytes),
            ArrayData::Numbers(words) => {
                if QType::Scalar(self.scalar).layout().size == 8 {
                    words.push(bits);
                } else if at.is_multiple_of(2) {
                    words.push(bits & 0xFFFF_FFFF);
                } else {
                    words[at / 2] |= bits << 32;
                }
            }
        }
        self.len += 1;
        if !is_present && self.presence.is_none() {
            let mut all = vec![u64::MAX; at / 64];
            if !at.is_multiple_of(64) {
                all.push((1 << (at % 64)) - 1);
            }
            self.presence = Some(all);
        }
        if let Some(words) = &mut self.presence {
            set_bit(words, at, is_present);
        }
    }

    /// The array.
    #[must_use]
    pub fn finish(self) -> Array {
        let ArrayBuilder { scalar, len, data, presence } = self;
        Array { scalar, len, data, presence }
    }
}

/// Sets a bit at the end of words, or behind them.
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
        // Bits behind the last are nobody's.
        let all = Array::from_parts(Scalar::Int32, 1, data(0), Some(vec![u64::MAX])).unwrap();
        assert_eq!((all.present_count(), &all), (1, &array(&[Some(1)])));
        assert!(Array::from_parts(Scalar::Int32, 3, data(0), None).is_none());
        assert!(Array::from_parts(Scalar::Unit, 65, ArrayData::Units, Some(vec![0])).is_none());
    }

    #[test]
    fn arrays_print_as_arolla_prints_them() {
        assert_eq!(array(&[Some(1), None, Some(3)]).to_string(), "[1, NA, 3]");
        assert_eq!(array(&[]).to_string(), "[]");
        assert_eq!(array(&[Some(0); 11]).to_string(), "[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, ... (11 elements)]");
    }
}
