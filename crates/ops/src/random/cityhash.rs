//! CityHash64, version 1.1, which Google publishes: a hash of bytes that never changes and is the same on all machines. It does
//! not protect against bytes that are chosen to collide.

const K0: u64 = 0xc3a5_c85c_97cb_3127;
const K1: u64 = 0xb492_b66f_be98_f273;
const K2: u64 = 0x9ae1_6a3b_2f90_404f;

/// Returns the CityHash64 of `bytes` with a seed.
pub(super) fn city_hash_64_with_seed(bytes: &[u8], seed: u64) -> u64 {
    combine(city_hash_64(bytes).wrapping_sub(K2), seed)
}

fn city_hash_64(bytes: &[u8]) -> u64 {
    match bytes.len() {
        0..=16 => up_to_16(bytes),
        17..=32 => up_to_32(bytes),
        33..=64 => up_to_64(bytes),
        _ => beyond_64(bytes),
    }
}

/// The eight bytes at `at`, which must exist.
fn word(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..).and_then(<[u8]>::first_chunk).copied().map_or(0, u64::from_le_bytes)
}

/// The four bytes at `at`, which must exist.
fn half(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..).and_then(<[u8]>::first_chunk).copied().map_or(0, u32::from_le_bytes).into()
}

fn rotated(value: u64, by: u32) -> u64 {
    value.rotate_right(by)
}

fn mixed(value: u64) -> u64 {
    value ^ (value >> 47)
}

/// Combines two 64-bit numbers to one.
fn combine(u: u64, v: u64) -> u64 {
    combine_by(u, v, 0x9ddf_ea08_eb38_2d69)
}

fn combine_by(u: u64, v: u64, factor: u64) -> u64 {
    let a = mixed((u ^ v).wrapping_mul(factor));
    mixed((v ^ a).wrapping_mul(factor)).wrapping_mul(factor)
}

fn factor(len: usize) -> u64 {
    K2.wrapping_add(2 * len as u64)
}

fn up_to_16(bytes: &[u8]) -> u64 {
    let len = bytes.len();
    match len {
        0 => K2,
        1..4 => {
            let [first, middle, last] = [0, len / 2, len - 1].map(|at| u64::from(bytes[at]));
            let (y, z) = (first + (middle << 8), len as u64 + (last << 2));
            mixed(y.wrapping_mul(K2) ^ z.wrapping_mul(K0)).wrapping_mul(K2)
        }
        4..8 => combine_by(len as u64 + (half(bytes, 0) << 3), half(bytes, len - 4), factor(len)),
        _ => {
            let (a, b) = (word(bytes, 0).wrapping_add(K2), word(bytes, len - 8));
            let c = rotated(b, 37).wrapping_mul(factor(len)).wrapping_add(a);
            let d = rotated(a, 25).wrapping_add(b).wrapping_mul(factor(len));
            combine_by(c, d, factor(len))
        }
    }
}

fn up_to_32(bytes: &[u8]) -> u64 {
    let len = bytes.len();
    let a = word(bytes, 0).wrapping_mul(K1);
    let b = word(bytes, 8);
    let c = word(bytes, len - 8).wrapping_mul(factor(len));
    let d = word(bytes, len - 16).wrapping_mul(K2);
    combine_by(
        rotated(a.wrapping_add(b), 43).wrapping_add(rotated(c, 30)).wrapping_add(d),
        a.wrapping_add(rotated(b.wrapping_add(K2), 18)).wrapping_add(c),
        factor(len),
    )
}

fn up_to_64(bytes: &[u8]) -> u64 {
    let len = bytes.len();
    let factor = factor(len);
    let a = word(bytes, 0).wrapping_mul(K2);
    let b = word(bytes, 8);
    let c = word(bytes, len - 24);
    let d = word(bytes, len - 32);
    let e = word(bytes, 16).wrapping_mul(K2);
    let f = word(bytes, 24).wrapping_mul(9);
    let g = word(bytes, len - 8);
    let h = word(bytes, len - 16).wrapping_mul(factor);
    let u = rotated(a.wrapping_add(g), 43).wrapping_add(rotated(b, 30).wrapping_add(c).wrapping_mul(9));
    let v = (a.wrapping_add(g) ^ d).wrapping_add(f).wrapping_add(1);
    let w = u.wrapping_add(v).wrapping_mul(factor).swap_bytes().wrapping_add(h);
    let x = rotated(e.wrapping_add(f), 42).wrapping_add(c);
    let y = v.wrapping_add(w).wrapping_mul(factor).swap_bytes().wrapping_add(g).wrapping_mul(factor);
    let z = e.wrapping_add(f).wrapping_add(c);
    let a = x.wrapping_add(z).wrapping_mul(factor).wrapping_add(y).swap_bytes().wrapping_add(b);
    let b = mixed(z.wrapping_add(a).wrapping_mul(factor).wrapping_add(d).wrapping_add(h)).wrapping_mul(factor);
    b.wrapping_add(x)
}

/// Combines the 32 bytes at `at` and two numbers to two numbers.
fn of_32(bytes: &[u8], at: usize, a: u64, b: u64) -> (u64, u64) {
    let [w, x, y, z] = [0, 8, 16, 24].map(|offset| word(bytes, at + offset));
    let a = a.wrapping_add(w);
    let b = rotated(b.wrapping_add(a).wrapping_add(z), 21);
    let sum = a.wrapping_add(x).wrapping_add(y);
    (sum.wrapping_add(z), b.wrapping_add(rotated(sum, 44)).wrapping_add(a))
}

fn beyond_64(bytes: &[u8]) -> u64 {
    let len = bytes.len();
    let mut x = word(bytes, len - 40);
    let mut y = word(bytes, len - 16).wrapping_add(word(bytes, len - 56));
    let mut z = combine(word(bytes, len - 48).wrapping_add(len as u64), word(bytes, len - 24));
    let mut v = of_32(bytes, len - 64, len as u64, z);
    let mut w = of_32(bytes, len - 32, y.wrapping_add(K1), x);
    x = x.wrapping_mul(K1).wrapping_add(word(bytes, 0));
    // The last 64 bytes are included already, so the whole blocks before them follow.
    for at in (0..(len - 1) / 64).map(|block| 64 * block) {
        let at_word = |offset| word(bytes, at + offset);
        x = rotated(x.wrapping_add(y).wrapping_add(v.0).wrapping_add(at_word(8)), 37).wrapping_mul(K1);
        y = rotated(y.wrapping_add(v.1).wrapping_add(at_word(48)), 42).wrapping_mul(K1);
        x ^= w.1;
        y = y.wrapping_add(v.0).wrapping_add(at_word(40));
        z = rotated(z.wrapping_add(w.0), 33).wrapping_mul(K1);
        v = of_32(bytes, at, v.1.wrapping_mul(K1), x.wrapping_add(w.0));
        w = of_32(bytes, at + 32, z.wrapping_add(w.1), y.wrapping_add(at_word(16)));
        (x, z) = (z, x);
    }
    combine(
        combine(v.0, w.0).wrapping_add(mixed(y).wrapping_mul(K1)).wrapping_add(z),
        combine(v.1, w.1).wrapping_add(x),
    )
}

#[cfg(test)]
mod tests {
    use super::city_hash_64_with_seed;

    /// Compares with Arolla's results of `random.cityhash`, for texts of all lengths at which the function changes.
    #[test]
    fn texts_of_every_kind_of_length() {
        let letters: Vec<u8> = (0..1000_u32).map(|n| b'a' + (n * n % 26) as u8).collect();
        for (length, expected) in [
            (0, 201_449_996_665_515_469),
            (1, 3_310_216_441_960_105_477),
            (2, 7_340_248_546_874_053_929),
            (3, 1_190_164_166_022_432_662),
            (4, 5_175_109_274_149_237_951),
            (5, 6_763_916_969_094_296_582),
            (7, 3_257_216_849_945_347_611),
            (8, 8_279_739_285_438_283_804),
            (9, 3_445_529_730_017_205_823),
            (15, 6_505_926_317_969_883_863),
            (16, 769_850_920_568_169_405),
            (17, 7_808_420_184_131_994_586),
            (24, 3_550_318_782_594_038_866),
            (31, 3_640_782_328_607_769_239),
            (32, 906_494_175_779_163_485),
            (33, 8_029_335_327_863_728_473),
            (48, 7_412_028_673_159_773_434),
            (63, 7_929_753_440_529_922_009),
            (64, 6_396_325_820_339_308_473),
            (65, 3_618_780_726_470_636_141),
            (100, 1_636_025_233_898_120_229),
            (127, 6_989_406_672_389_277_959),
            (128, 4_206_501_274_186_038_371),
            (129, 4_254_371_780_378_457_999),
            (192, 8_341_654_006_834_690_748),
            (193, 5_859_312_538_788_550_912),
            (999, 6_466_268_570_430_712_233),
            (1000, 4_135_825_990_359_727_382),
        ] {
            let hash = city_hash_64_with_seed(&letters[..length], length as u64 + 7) & (u64::MAX >> 1);
            assert_eq!(hash, expected, "{length}");
        }
    }
}
