//! Bitmaps: one bit per row in memory of the caller, beginning at any bit of a byte. The lowest bit of a byte comes first, as in Arrow's bitmaps of
//! truth values and of presence.

#![deny(clippy::arithmetic_side_effects)]

/// A read-only bitmap in the caller's memory, with one bit per row.
#[derive(Clone, Copy, Debug)]
pub struct Bitmap<'a> {
    bytes: &'a [u8],
    offset: usize,
    rows: usize,
}

impl<'a> Bitmap<'a> {
    /// Makes a bitmap of `rows` bits that begins at bit `offset` of `bytes`; `None` if `bytes` has too few bits.
    #[must_use]
    pub fn new(bytes: &'a [u8], offset: usize, rows: usize) -> Option<Self> {
        let end = offset.checked_add(rows)?;
        (end.div_ceil(8) <= bytes.len()).then_some(Bitmap { bytes, offset, rows })
    }

    /// Makes a bitmap of the first `rows` bits of `words`, lowest bit first; `None` if `words` has too few bits.
    #[must_use]
    pub fn of_words(words: &'a [u64], rows: usize) -> Option<Self> {
        // SAFETY: COLUMNS: words can be read as bytes, and their bits have the same order, lowest first.
        let bytes = unsafe { std::slice::from_raw_parts(words.as_ptr().cast(), size_of_val(words)) };
        Bitmap::new(bytes, 0, rows)
    }

    /// The number of rows, which is the number of bits.
    #[must_use]
    pub const fn rows(&self) -> usize {
        self.rows
    }

    /// Returns the bit of row `row`, which must exist.
    #[must_use]
    pub fn get(&self, row: usize) -> bool {
        let bit = self.offset.saturating_add(row);
        self.bytes.get(bit / 8).is_some_and(|byte| byte >> (bit % 8) & 1 != 0)
    }

    /// The address of the bitmap's first byte; `None` if its first bit is not at the start of a byte.
    pub(in crate::rows) fn address(&self) -> Option<*const u8> {
        self.offset.is_multiple_of(8).then(|| self.bytes[self.offset / 8..].as_ptr())
    }

    /// Returns the 64 bits of the rows from `row` on, with zeros after the last row.
    pub(in crate::rows) fn word(&self, row: usize) -> u64 {
        let bit = self.offset.saturating_add(row);
        let bytes = &self.bytes[(bit / 8).min(self.bytes.len())..];
        let mut low = [0; 8];
        let count = bytes.len().min(8);
        low[..count].copy_from_slice(&bytes[..count]);
        let shift = bit % 8;
        let high = if shift == 0 {
            0
        } else {
            u64::from(bytes.get(8).copied().unwrap_or(0)) << (64_usize.wrapping_sub(shift))
        };
        let word = u64::from_le_bytes(low) >> shift | high;
        match self.rows.saturating_sub(row) {
            left @ 0..64 => word & !(u64::MAX << left),
            _ => word,
        }
    }

    /// The index of the first row whose bit is 0; `None` if all bits are 1.
    #[must_use]
    pub fn first_zero(&self) -> Option<usize> {
        (0..self.rows).step_by(64).find_map(|row| {
            let ones = self.word(row).trailing_ones() as usize;
            let zero = row.saturating_add(ones);
            (zero < self.rows && ones < 64).then_some(zero)
        })
    }
}

/// A bitmap in the caller's memory that outputs are written to, with one bit per row.
#[derive(Debug)]
pub struct BitmapMut<'a> {
    bytes: &'a mut [u8],
    offset: usize,
    rows: usize,
}

impl<'a> BitmapMut<'a> {
    /// Makes a bitmap of `rows` bits that begins at bit `offset` of `bytes`; `None` if `bytes` has too few bits.
    #[must_use]
    pub fn new(bytes: &'a mut [u8], offset: usize, rows: usize) -> Option<Self> {
        let end = offset.checked_add(rows)?;
        (end.div_ceil(8) <= bytes.len()).then_some(BitmapMut { bytes, offset, rows })
    }

    /// The number of rows, which is the number of bits.
    #[must_use]
    pub const fn rows(&self) -> usize {
        self.rows
    }

    /// Returns a read-only bitmap of the same bits.
    pub(in crate::rows) const fn as_bits(&self) -> Bitmap<'_> {
        Bitmap { bytes: self.bytes, offset: self.offset, rows: self.rows }
    }

    /// Overwrites all bits of the bitmap with the bits of `words`, lowest bit first. Other bits in the same bytes stay.
    pub(in crate::rows) fn set(&mut self, words: &[u64]) {
        if self.offset.is_multiple_of(8) {
            let whole = &mut self.bytes[self.offset / 8..][..self.rows.div_ceil(8)];
            let last = whole.last().copied().unwrap_or(0);
            // Whole words first: byte by byte it took as long as a short model.
            let (chunks, rest) = whole.as_chunks_mut::<8>();
            chunks.iter_mut().zip(words).for_each(|(to, word)| *to = word.to_le_bytes());
            let left = words.get(chunks.len()).copied().unwrap_or(0).to_le_bytes();
            rest.iter_mut().zip(left).for_each(|(to, from)| *to = from);
            if let (Some(end), kept @ 1..) = (whole.last_mut(), self.rows % 8) {
                let mask = u8::MAX << kept;
                *end = (*end & !mask) | (last & mask);
            }
            return;
        }
        for row in 0..self.rows {
            let bit = self.offset.saturating_add(row);
            let value = (words[row / 64] >> (row % 64) & 1) as u8;
            let byte = &mut self.bytes[bit / 8];
            *byte = (*byte & !(1 << (bit % 8))) | value << (bit % 8);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes() -> Vec<u8> {
        (0..40_u8).map(|at| at.wrapping_mul(91) ^ 0x35).collect()
    }

    #[test]
    fn words_are_the_bits_of_their_rows() {
        let bytes = bytes();
        for offset in 0..70 {
            for rows in [0, 1, 7, 8, 63, 64, 65, 130, 200] {
                let bits = Bitmap::new(&bytes, offset, rows).unwrap();
                for row in (0..rows).step_by(64) {
                    for at in 0..64 {
                        let expected = row + at < rows && bits.get(row + at);
                        assert_eq!(bits.word(row) >> at & 1 != 0, expected, "{offset} {rows} {row} {at}");
                    }
                }
            }
        }
        assert!(Bitmap::new(&bytes, 1, 320).is_none());
        assert!(Bitmap::new(&bytes, usize::MAX, 2).is_none());
    }

    #[test]
    fn the_first_zero_is_found_in_any_word() {
        for offset in [0, 3, 8] {
            for zero in [0, 1, 63, 64, 70, 127, 128, 149] {
                let mut bytes = vec![0xFF; 21];
                bytes[(offset + zero) / 8] &= !(1 << ((offset + zero) % 8));
                let found = |rows| Bitmap::new(&bytes, offset, rows).unwrap().first_zero();
                assert_eq!((found(150), found(zero)), (Some(zero), None));
            }
        }
    }

    #[test]
    fn bits_are_set_and_no_others() {
        let words = [0x0123_4567_89AB_CDEF_u64, 0xFEDC_BA98_7654_3210];
        for offset in 0..20 {
            for rows in [0, 1, 5, 8, 60, 64, 77, 128] {
                for fill in [0, 0xFF] {
                    let mut bytes = vec![fill; 20];
                    BitmapMut::new(&mut bytes, offset, rows).unwrap().set(&words);
                    for bit in 0..160_usize {
                        let row = bit.wrapping_sub(offset);
                        let expected = if row < rows { words[row / 64] >> (row % 64) & 1 != 0 } else { fill != 0 };
                        assert_eq!(bytes[bit / 8] >> (bit % 8) & 1 != 0, expected, "{offset} {rows} {bit}");
                    }
                }
            }
        }
    }
}
