//! Comparisons of byte strings. Strings that are tested for equality are mostly short and of different lengths. So lengths are compared first.
//! Strings of up to sixteen bytes are then compared as two words that may overlap; only longer strings take a function call.

use std::cmp::Ordering;

/// The first and the last word of a byte string, as one number, for each of two byte strings. Both strings must be at
/// least one word long.
macro_rules! words {
    ($word:ty, $both:ty, $x:expr, $y:expr) => {{
        const BYTES: usize = size_of::<$word>();
        let key = |list: &[u8]| {
            let word =
                |bytes: Option<&[u8; BYTES]>| <$both>::from(<$word>::from_le_bytes(bytes.copied().unwrap_or_default()));
            word(list.first_chunk()) << <$word>::BITS | word(list.last_chunk())
        };
        (key($x), key($y))
    }};
}

/// The first, the middle and the last byte of a string of one to three bytes, as one number.
fn bytes(list: &[u8]) -> u32 {
    let at = |at: usize| u32::from(list.get(at).copied().unwrap_or_default());
    at(0) << 16 | at(list.len() / 2) << 8 | at(list.len() - 1)
}

/// Returns true if both strings have the same bytes.
#[must_use]
#[inline]
pub fn equal(x: &[u8], y: &[u8]) -> bool {
    if x.len() != y.len() {
        return false;
    }
    match x.len() {
        0 => true,
        1..=3 => bytes(x) == bytes(y),
        4..=7 => {
            let (x, y) = words!(u32, u64, x, y);
            x == y
        }
        8..=16 => {
            let (x, y) = words!(u64, u128, x, y);
            x == y
        }
        _ => x == y,
    }
}

/// Compares two strings byte by byte. A prefix comes before the longer string.
#[must_use]
#[inline]
pub fn order(x: &[u8], y: &[u8]) -> Ordering {
    let common = x.len().min(y.len());
    let order = if common == 0 { Ordering::Equal } else { x[..common].cmp(&y[..common]) };
    order.then(x.len().cmp(&y.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The expected result, computed in a simple and slow way.
    fn plain(x: &[u8], y: &[u8]) -> Ordering {
        let differs = x.iter().zip(y).find(|(x, y)| x != y);
        differs.map_or(x.len().cmp(&y.len()), |(x, y)| x.cmp(y))
    }

    fn holds(x: &[u8], y: &[u8]) {
        assert_eq!(order(x, y), plain(x, y), "{x:?} {y:?}");
        assert_eq!(equal(x, y), plain(x, y).is_eq(), "{x:?} {y:?}");
    }

    #[test]
    fn every_length_and_every_place_of_a_difference() {
        let text: Vec<u8> = (0..40).map(|at| 100 + at % 7).collect();
        for n in 0..=text.len() {
            for m in 0..=text.len() {
                holds(&text[..n], &text[..m]);
            }
            for at in 0..n {
                for byte in [0, 1, 99, 107, 127, 128, 255] {
                    let mut other = text[..n].to_vec();
                    other[at] = byte;
                    holds(&text[..n], &other);
                    holds(&other, &text[..n]);
                    // A second difference after the first, in the other direction, and one string longer than the other.
                    if let Some(last) = other.last_mut() {
                        *last = 255 - byte;
                    }
                    holds(&text[..n], &other);
                    holds(&text, &other);
                    holds(&other, &text[..n.saturating_sub(1)]);
                }
            }
        }
    }

    #[test]
    fn nul_bytes_and_bytes_that_are_negative_elsewhere() {
        let texts: [&[u8]; 9] = [b"", b"\0", b"\0\0", b"a\0", b"a", b"a\0b", b"a\x7f", b"a\x80", b"\xff"];
        for x in texts {
            for y in texts {
                holds(x, y);
            }
        }
        assert_eq!(order(b"a", b"a\0"), Ordering::Less);
        assert!(!equal(b"", b"\0"));
    }
}
