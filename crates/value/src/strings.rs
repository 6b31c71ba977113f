//! Strings of an array, in Arrow's layout of views. The view of a short string contains the string; the view of a
//! longer one has the string's first bytes and its position in a buffer. A sequence of strings records whether all of
//! them are known to be UTF-8, because an array of texts requires that.

#![deny(clippy::arithmetic_side_effects)]

use std::ops::Range;

/// The most bytes of a string that is stored in its view.
const INLINE: usize = 12;

/// The most bytes of a buffer to which strings are added, because offsets have 32 bits.
const BUFFER: usize = 1 << 30;

/// The most bytes of a string: lengths in views are signed 32-bit numbers.
const MOST: usize = i32::MAX as usize;

/// A sequence of strings in Arrow's layout of views.
#[derive(Clone, Debug)]
pub struct StringViews {
    views: Vec<u128>,
    buffers: Vec<Vec<u8>>,
    /// STRING-VIEW: true if all strings are known to be UTF-8; false if they were not checked, or some are not UTF-8.
    are_texts: bool,
}

impl Default for StringViews {
    fn default() -> Self {
        StringViews { views: Vec::new(), buffers: Vec::new(), are_texts: true }
    }
}

impl StringViews {
    /// Makes strings from `views` and the `buffers` that they point into, in Arrow's layout.
    ///
    /// `None` if a view points outside of the buffers, if the view of a string of more than 12 bytes does not repeat the string's first four bytes,
    /// or if the view of a shorter string is not padded with zeros.
    #[must_use]
    pub fn from_parts(views: Vec<u128>, buffers: Vec<Vec<u8>>) -> Option<Self> {
        let made = StringViews { views, buffers, are_texts: false };
        (0..made.len()).all(|at| made.is_right(at)).then_some(made)
    }

    /// Makes strings from `views` and the `buffers` that they point into, in Arrow's layout, without checking them.
    ///
    /// # Safety
    /// STRING-VIEW (`docs/safety.md`): `views` must be as [`from_parts`](StringViews::from_parts) requires, and if `are_texts`
    /// is true, all strings must be UTF-8.
    #[must_use]
    pub const unsafe fn from_known_parts(views: Vec<u128>, buffers: Vec<Vec<u8>>, are_texts: bool) -> Self {
        StringViews { views, buffers, are_texts }
    }

    /// Returns true if the view with this index is valid in Arrow.
    fn is_right(&self, at: usize) -> bool {
        let (Some(view), Some(bytes)) = (self.views.get(at), self.get(at)) else { return false };
        let (view, len) = (view.to_le_bytes(), bytes.len());
        let begins = view.get(4..8).zip(bytes.get(..4));
        let ends = len.checked_add(4).and_then(|end| view.get(end..));
        match ends {
            Some(filled) => filled.iter().all(|byte| *byte == 0),
            None => len <= MOST && begins.is_some_and(|(said, found)| said == found),
        }
    }

    /// Returns true if all strings are UTF-8. They are checked if that is not known; a positive result is remembered.
    #[must_use]
    pub fn are_texts(&mut self) -> bool {
        let is_text = |at: usize| self.get(at).is_some_and(|bytes| std::str::from_utf8(bytes).is_ok());
        self.are_texts = self.are_texts || (0..self.len()).all(is_text);
        self.are_texts
    }

    /// The number of strings in the sequence.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.views.len()
    }

    /// Returns true if the sequence has no strings.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.views.is_empty()
    }

    /// The views of all strings, and the buffers that they point into.
    #[must_use]
    pub fn parts(&self) -> (&[u128], &[Vec<u8>]) {
        (&self.views, &self.buffers)
    }

    /// Takes the sequence apart: its views, and the buffers that they point into.
    #[must_use]
    pub fn into_parts(self) -> (Vec<u128>, Vec<Vec<u8>>) {
        (self.views, self.buffers)
    }

    /// The bytes of memory that the views and the strings take.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let views = self.views.capacity().saturating_mul(size_of::<u128>());
        self.buffers.iter().map(Vec::capacity).fold(views, usize::saturating_add)
    }

    /// Appends a text. Returns false, and appends nothing, if the text is longer than 2 GiB, the most that a view can
    /// state.
    #[must_use]
    pub fn push_text(&mut self, text: &str) -> bool {
        self.add(text.as_bytes())
    }

    /// Appends a byte string, so that the strings are no longer known to be UTF-8. Returns false, and appends nothing,
    /// if the string is longer than 2 GiB.
    #[must_use]
    pub fn push(&mut self, bytes: &[u8]) -> bool {
        self.are_texts = false;
        self.add(bytes)
    }

    /// Returns a copy of the strings with indices in `range`; `None` if the range exceeds the strings.
    #[must_use]
    pub fn slice(&self, range: Range<usize>) -> Option<StringViews> {
        let views = self.views.get(range.clone())?;
        let are_short = views.iter().all(|view| *view as u32 as usize <= INLINE);
        let mut made = StringViews { views: Vec::new(), buffers: Vec::new(), are_texts: self.are_texts };
        if are_short {
            made.views = views.to_vec();
        } else {
            made.views.reserve(views.len());
            range.map(|at| self.get(at)).try_for_each(|bytes| made.add(bytes?).then_some(()))?;
        }
        Some(made)
    }

    /// Removes all strings after the first `len`, and their bytes. The strings must have been appended one by one, so
    /// that each string's bytes come after those of all strings before it.
    pub(crate) fn truncate(&mut self, len: usize) {
        let long = self.views.iter().skip(len).find(|view| **view as u32 as usize > INLINE);
        if let Some(view) = long {
            let [buffer, offset] = [64, 96].map(|shift| (view >> shift) as u32 as usize);
            self.buffers.truncate(buffer.saturating_add(1));
            if let Some(last) = self.buffers.last_mut() {
                last.truncate(offset);
            }
        }
        self.views.truncate(len);
    }

    fn add(&mut self, bytes: &[u8]) -> bool {
        let len = bytes.len();
        if len > MOST {
            return false;
        }
        let mut view = [0; 16];
        view[..4].copy_from_slice(&(len as u32).to_le_bytes());
        if len <= INLINE {
            view[4..][..len].copy_from_slice(bytes);
        } else {
            if self.buffers.last().is_none_or(|last| last.len().saturating_add(len) > BUFFER) {
                self.buffers.push(Vec::new());
            }
            let number = self.buffers.len().saturating_sub(1);
            let buffer = &mut self.buffers[number];
            view[4..8].copy_from_slice(&bytes[..4]);
            view[8..12].copy_from_slice(&(number as u32).to_le_bytes());
            view[12..].copy_from_slice(&(buffer.len() as u32).to_le_bytes());
            buffer.extend_from_slice(bytes);
        }
        self.views.push(u128::from_le_bytes(view));
        true
    }

    /// The bytes of the string at index `at`; `None` after the last.
    #[must_use]
    pub fn get(&self, at: usize) -> Option<&[u8]> {
        let view = self.views.get(at)?;
        let [len, _, buffer, offset] = [0, 32, 64, 96].map(|shift| (view >> shift) as u32 as usize);
        if len > INLINE {
            return self.buffers.get(buffer)?.get(offset..offset.checked_add(len)?);
        }
        // SAFETY: STRING-VIEW: the view has 16 bytes, and a string in it begins after the first four, little-endian as in Arrow.
        let bytes: &[u8] = unsafe { std::slice::from_raw_parts(std::ptr::from_ref(view).cast(), 16) };
        bytes.get(4..)?.get(..len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(len: u32, begins: [u8; 4], buffer: u32, offset: u32) -> u128 {
        let words = [len, u32::from_le_bytes(begins), buffer, offset];
        words.iter().rev().fold(0, |view, word| view << 32 | u128::from(*word))
    }

    #[test]
    fn views_that_arrow_would_refuse_are_refused() {
        let buffers = || vec![b"thirteen byte, and more".to_vec()];
        let is_right = |view: u128| StringViews::from_parts(vec![view], buffers()).is_some();
        assert!(is_right(view(13, *b"thir", 0, 0)) && is_right(view(14, *b"hirt", 0, 1)));
        assert!(is_right(view(2, *b"ab\0\0", 0, 0)) && is_right(0));
        // Views outside of the buffer, of a missing buffer, with wrong first bytes, and with bytes after a short string.
        for wrong in [
            view(13, *b"thir", 0, 11),
            view(13, *b"thir", 1, 0),
            view(u32::MAX, *b"thir", 0, u32::MAX),
            view(13, *b"tHir", 0, 0),
            view(2, *b"abc\0", 0, 0),
            view(2, *b"ab\0\0", 0, 1),
        ] {
            assert!(!is_right(wrong), "{wrong:x}");
        }
    }

    #[test]
    fn a_slice_has_the_strings_of_its_range() {
        let mut strings = StringViews::default();
        let all = ["a", "long enough for a buffer", "", "é", "another one that is long"];
        assert!(all.iter().all(|text| strings.push_text(text)));
        for range in [0..0, 0..1, 2..4, 1..2, 0..5, 3..5] {
            let slice = strings.slice(range.clone()).unwrap();
            assert!(
                (0..slice.len()).map(|at| slice.get(at).unwrap()).eq(all[range].iter().map(|text| text.as_bytes()))
            );
            assert!(StringViews::from_parts(slice.views, slice.buffers).is_some());
        }
        assert!(strings.slice(4..6).is_none());
    }

    #[test]
    fn strings_know_whether_they_are_texts() {
        let mut strings = StringViews::default();
        assert!(strings.push_text("é") && strings.are_texts());
        assert!(strings.push("thirteen byte".as_bytes()) && strings.are_texts());
        let (views, buffers) = strings.clone().into_parts();
        assert!(StringViews::from_parts(views, buffers).unwrap().are_texts());
        assert!(strings.push(b"\xFF") && !strings.are_texts());
        let (views, buffers) = strings.into_parts();
        assert!(!StringViews::from_parts(views, buffers).unwrap().are_texts());
        // Invalid UTF-8 in the middle of a long string.
        let mut long = StringViews::default();
        assert!(long.push(b"a long string \xF0\x9F with a part of a letter") && !long.are_texts());
    }
}
