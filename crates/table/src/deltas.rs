//! String lengths that Parquet encodes as differences (`DELTA_BINARY_PACKED`). They are checked before Parquet's library reserves memory for the
//! declared number of strings. The check finds the number of lengths, their sum, and the end of their encoding; the single lengths are not stored.

#![deny(clippy::arithmetic_side_effects)]

/// The widest difference of two lengths, in bits.
const MOST_BITS: u8 = 32;

/// The totals of a sequence of string lengths in a Parquet page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Lengths {
    /// The number of string lengths in the sequence.
    pub(crate) count: u64,
    /// The sum of the string lengths, in bytes.
    pub(crate) sum: u64,
    /// The size of the encoded sequence, in bytes.
    pub(crate) bytes: usize,
}

/// A cursor over bytes.
struct Bytes<'a> {
    all: &'a [u8],
    at: usize,
}

impl Bytes<'_> {
    /// Reads a number stored in groups of seven bits, the lowest first.
    fn unsigned(&mut self) -> Option<u64> {
        let mut number = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = *self.all.get(self.at)?;
            self.at = self.at.checked_add(1)?;
            number |= u64::from(byte & 0x7f).wrapping_shl(shift);
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }

    /// Reads a zigzag number: its sign is its lowest bit.
    fn signed(&mut self) -> Option<i64> {
        let number = self.unsigned()?;
        let magnitude = (number >> 1).cast_signed();
        Some(if number & 1 == 0 { magnitude } else { !magnitude })
    }

    /// Takes the next `count` bytes; `None` if there are fewer.
    fn take(&mut self, count: usize) -> Option<&[u8]> {
        let end = self.at.checked_add(count)?;
        let taken = self.all.get(self.at..end)?;
        self.at = end;
        Some(taken)
    }
}

/// Returns the totals of the lengths encoded in `data`; `None` if the encoding is invalid, or has more than `most` lengths.
pub(crate) fn lengths(data: &[u8], most: u64) -> Option<Lengths> {
    let mut bytes = Bytes { all: data, at: 0 };
    let (block, parts) = (bytes.unsigned()?, bytes.unsigned()?);
    let (count, first) = (bytes.unsigned()?, bytes.signed()?);
    let of_part = block.checked_div(parts)?;
    let is_whole = block.is_multiple_of(128) && block.is_multiple_of(parts) && of_part.is_multiple_of(32);
    if count > most || of_part == 0 || !is_whole {
        return None;
    }
    let mut length = i32::try_from(first).ok()?;
    let mut left = count;
    let mut sum = 0_u64;
    let mut add = |length: i32, left: &mut u64| -> Option<()> {
        sum = sum.saturating_add(u64::try_from(length).ok()?);
        *left = left.saturating_sub(1);
        Some(())
    };
    if left > 0 {
        add(length, &mut left)?;
    }
    while left > 0 {
        let least = i32::try_from(bytes.signed()?).ok()?;
        let widths = bytes.take(usize::try_from(parts).ok()?)?.to_vec();
        for width in widths {
            // A miniblock without lengths has no bytes, whatever width it declares.
            if left == 0 {
                break;
            }
            if width > MOST_BITS {
                return None;
            }
            // Miniblocks have a multiple of 32 lengths, so their bits are whole bytes.
            let size = usize::try_from(of_part.checked_mul(u64::from(width))? / 8).ok()?;
            let packed = bytes.take(size)?;
            for place in 0..of_part.min(left) {
                let difference = bits(packed, place.checked_mul(u64::from(width))?, width)?;
                length = length.wrapping_add(difference.cast_signed()).wrapping_add(least);
                add(length, &mut left)?;
            }
        }
    }
    Some(Lengths { count, sum, bytes: bytes.at })
}

/// The `width` bits from bit `from` on, the lowest first.
fn bits(packed: &[u8], from: u64, width: u8) -> Option<u32> {
    if width == 0 {
        return Some(0);
    }
    let (first, shift) = (usize::try_from(from / 8).ok()?, from % 8);
    let mut word = [0; 8];
    // At most 39 bits, which fit into five bytes.
    word.iter_mut().zip(packed.get(first..)?).for_each(|(to, byte)| *to = *byte);
    let mask = u32::MAX.checked_shr(u32::from(MOST_BITS.saturating_sub(width)))?;
    Some((u64::from_le_bytes(word).checked_shr(u32::try_from(shift).ok()?)? as u32) & mask)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Encodes blocks of 128 lengths in four parts of 32. The lengths begin with `first`; each difference is one byte.
    fn packed(count: u8, first: u8, least: u8, difference: u8) -> Vec<u8> {
        // 128 takes two bytes; signed numbers are doubled.
        let mut bytes = vec![0x80, 1, 4, count, first << 1];
        let mut left = usize::from(count).saturating_sub(1);
        while left > 0 {
            bytes.extend([least << 1, 8, 8, 8, 8]);
            for _ in 0..left.min(128).div_ceil(32) {
                bytes.extend([difference; 32]);
            }
            left = left.saturating_sub(128);
        }
        bytes
    }

    #[test]
    fn lengths_are_summed_up_to_their_end() {
        let made = |count, first, least, difference| {
            let bytes = packed(count, first, least, difference);
            let found = lengths(&[bytes.as_slice(), b"strings"].concat(), 1_000).expect("lengths");
            assert_eq!(found.bytes, bytes.len());
            (found.count, found.sum)
        };
        assert_eq!(made(0, 0, 0, 0), (0, 0));
        assert_eq!(made(1, 7, 0, 0), (1, 7));
        // 3, 6, 9, .. 120.
        assert_eq!(made(40, 3, 1, 2), (40, 2_460));
        assert_eq!(made(100, 5, 0, 0), (100, 500));
        // Differences of other widths: 1 bit, and 32.
        let bits = [[0x80, 1, 4, 33, 2, 0, 1, 0, 0, 0].as_slice(), &[0xff; 4]].concat();
        assert_eq!(lengths(&bits, 33), Some(Lengths { count: 33, sum: (1..=33).sum(), bytes: 14 }));
        let wide = |second: i32| {
            let head = [0x80, 1, 4, 3, 0, 0, 32, 0, 0, 0];
            lengths(&[&head, 7_u32.to_le_bytes().as_slice(), &second.to_le_bytes(), &[0; 120]].concat(), 3)
        };
        assert_eq!(wide(-1), Some(Lengths { count: 3, sum: 13, bytes: 138 }));
        // The length becomes negative.
        assert_eq!(wide(-8), None);
    }

    #[test]
    fn what_are_no_lengths_are_none() {
        let bytes = packed(100, 5, 0, 0);
        assert!(lengths(&bytes, 100).is_some());
        // Too many lengths, a negative length, a cut, a width beyond 32 bits.
        assert_eq!(lengths(&bytes, 99), None);
        assert_eq!(lengths(&[0x80, 1, 4, 1, 1], 9), None);
        assert_eq!(lengths(&bytes[..bytes.len() - 1], 100), None);
        assert_eq!(lengths(&[0x80, 1, 4, 2, 0, 0, 33, 0, 0, 0], 9), None);
        // Invalid block sizes.
        for block in [[0, 4], [1, 4], [0x80, 0]] {
            assert_eq!(lengths(&[&block, [3, 0].as_slice(), &[0; 20]].concat(), 9), None);
        }
        assert_eq!(lengths(&[0xff; 30], 9), None);
    }
}
