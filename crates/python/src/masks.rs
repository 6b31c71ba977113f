//! Conversion between NumPy's masks, with one byte per element, and the library's presence, with one bit. Eight elements are converted at once: one
//! multiplication gathers the bits of eight bytes in one byte.

/// A number all of whose bytes are 1.
const ONES: u64 = 0x0101_0101_0101_0101;
/// A factor: multiplying by it moves the lowest bit of each byte `i` to bit `56 + i`. No two bits of the product are added at the same place.
const GATHER: u64 = 0x0102_0408_1020_4080;
/// A bit mask that keeps bit `i` of byte `i`, and clears all other bits.
const DIAGONAL: u64 = 0x8040_2010_0804_0201;

/// Returns one bit per truth value of `values`, the lowest bit first. A bit is set where the value is not `absent`. Bits after the last value are 0.
pub(crate) fn bits(values: &[bool], absent: bool) -> Vec<u64> {
    let turned = if absent { ONES } else { 0 };
    let byte = |eight: &[bool; 8]| (u64::from_le_bytes(eight.map(u8::from)) ^ turned).wrapping_mul(GATHER) >> 56;
    let word = |eights: &[[bool; 8]]| eights.iter().rev().fold(0, |bits, eight| bits << 8 | byte(eight));
    let (words, rest) = values.as_chunks::<64>();
    let mut made = Vec::with_capacity(values.len().div_ceil(64));
    made.extend(words.iter().map(|values| word(values.as_chunks().0)));
    if !rest.is_empty() {
        let mut last = [absent; 64];
        last[..rest.len()].copy_from_slice(rest);
        made.push(word(last.as_chunks().0));
    }
    made
}

/// Sets each element of `missing` to true where its bit of `presence` is 0. Elements without a bit are not written.
pub(crate) fn write_missing(missing: &mut [bool], mut presence: impl Iterator<Item = u8>) {
    let eight = |bits: u8| {
        let alone = (u64::from(bits) * ONES) & DIAGONAL;
        // A byte that is not 0 is at most 128.
        let is_there = ((alone + 0x7f * ONES) >> 7) & ONES;
        is_there.to_le_bytes().map(|is_there| is_there == 0)
    };
    let (whole, rest) = missing.as_chunks_mut::<8>();
    whole.iter_mut().zip(&mut presence).for_each(|(missing, bits)| *missing = eight(bits));
    if let Some(bits) = presence.next() {
        rest.iter_mut().zip(eight(bits)).for_each(|(missing, is_missing)| *missing = is_missing);
    }
}

/// Returns one truth value for each of `len` elements, true where the element is missing. The result reuses the memory of `spare`.
pub(crate) fn missing(len: usize, presence: impl Iterator<Item = u8>, mut spare: Vec<bool>) -> Vec<bool> {
    spare.resize(len, false);
    write_missing(&mut spare, presence);
    spare
}
