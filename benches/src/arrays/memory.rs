//! What the limits over arrays read and write: memory that starts at a line of the caches.

use std::ops::{Deref, DerefMut};

/// Elements from the start of a line on.
pub(super) struct Aligned<T> {
    room: Vec<T>,
    start: usize,
    len: usize,
}

impl<T: Copy + Default> Aligned<T> {
    pub(super) fn new(len: usize) -> Self {
        let room = vec![T::default(); len + 64 / size_of::<T>()];
        let start = room.as_ptr().align_offset(64);
        Aligned { room, start, len }
    }

    pub(super) fn copy(all: &[T]) -> Self {
        let mut made = Aligned::new(all.len());
        made.copy_from_slice(all);
        made
    }
}

impl<T> Deref for Aligned<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.room[self.start..self.start + self.len]
    }
}

impl<T> DerefMut for Aligned<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.room[self.start..self.start + self.len]
    }
}

/// The elements of an output.
pub(super) enum Elements {
    /// FLOAT64.
    Doubles(Aligned<f64>),
    /// INT64.
    Integers(Aligned<i64>),
}

/// An output.
pub(super) struct Made {
    elements: Elements,
    /// A bit for each element, if some may be missing.
    are_there: Option<Vec<u64>>,
}

impl Made {
    pub(super) fn doubles(len: usize, are_optional: bool) -> Made {
        Made { elements: Elements::Doubles(Aligned::new(len)), are_there: bits(len, are_optional) }
    }

    pub(super) fn integers(len: usize, are_optional: bool) -> Made {
        Made { elements: Elements::Integers(Aligned::new(len)), are_there: bits(len, are_optional) }
    }

    pub(super) fn len(&self) -> usize {
        match &self.elements {
            Elements::Doubles(all) => all.len,
            Elements::Integers(all) => all.len,
        }
    }

    /// An element, widened; an integer is exact up to 2^53.
    pub(super) fn element(&self, at: usize) -> Option<f64> {
        let is_there = self.are_there.as_ref().is_none_or(|bits| bits[at / 64] >> (at % 64) & 1 != 0);
        is_there.then(|| match &self.elements {
            Elements::Doubles(all) => all[at],
            Elements::Integers(all) => all[at] as f64,
        })
    }

    /// Where doubles are written, and their bits; nothing where there is neither.
    pub(super) fn as_doubles(&mut self) -> (&mut [f64], &mut [u64]) {
        let bits = self.are_there.as_deref_mut().unwrap_or_default();
        match &mut self.elements {
            Elements::Doubles(all) => (all, bits),
            Elements::Integers(_) => (&mut [], bits),
        }
    }

    /// The same for integers.
    pub(super) fn as_integers(&mut self) -> (&mut [i64], &mut [u64]) {
        let bits = self.are_there.as_deref_mut().unwrap_or_default();
        match &mut self.elements {
            Elements::Integers(all) => (all, bits),
            Elements::Doubles(_) => (&mut [], bits),
        }
    }
}

fn bits(len: usize, are_optional: bool) -> Option<Vec<u64>> {
    are_optional.then(|| vec![0; len.div_ceil(64)])
}
