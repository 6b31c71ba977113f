//! The random numbers of `array.randint_with_shape`, equal to Arolla's for equal seeds. The generator is the 64-bit Mersenne twister of the C++
//! standard (`std::mt19937_64`), seeded from a sequence of words (`std::seed_seq`). Whole numbers below a bound are drawn as in libstdc++, by
//! Lemire's method.

/// The number of 64-bit words in the generator's state.
const WORDS: usize = 312;
/// The distance between two words of the state that are mixed.
const MIDDLE: usize = 156;
/// A mask of the upper 33 bits of a word.
const UPPER: u64 = !0 << 31;

/// The Mersenne twister: a generator of random numbers.
#[derive(Clone, Debug)]
pub(crate) struct Mersenne {
    state: Vec<u64>,
    next: usize,
}

impl Mersenne {
    /// Makes a generator that is seeded with the sequence `seeds`.
    pub(crate) fn seeded(seeds: &[u32]) -> Mersenne {
        let spread = spread(seeds, 2 * WORDS);
        let mut state: Vec<u64> =
            spread.chunks_exact(2).map(|pair| u64::from(pair[0]) | u64::from(pair[1]) << 32).collect();
        if state[0] & UPPER == 0 && state[1..].iter().all(|word| *word == 0) {
            // A state of zeros would give zeros only.
            state[0] = 1 << 63;
        }
        Mersenne { state, next: WORDS }
    }

    /// Returns the next random word; all 64-bit words are equally likely.
    pub(crate) fn word(&mut self) -> u64 {
        if self.next == WORDS {
            self.renew();
        }
        let mut word = self.state[self.next];
        self.next += 1;
        word ^= word >> 29 & 0x5555_5555_5555_5555;
        word ^= word << 17 & 0x71d6_7fff_eda6_0000;
        word ^= word << 37 & 0xfff7_eee0_0000_0000;
        word ^ word >> 43
    }

    fn renew(&mut self) {
        for at in 0..WORDS {
            let both = self.state[at] & UPPER | self.state[(at + 1) % WORDS] & !UPPER;
            let mixed = both >> 1 ^ if both & 1 == 0 { 0 } else { 0xb502_6f5a_a966_19e9 };
            self.state[at] = self.state[(at + MIDDLE) % WORDS] ^ mixed;
        }
        self.next = 0;
    }

    /// Returns the next random number below `bound`; all are equally likely. `bound` must not be 0.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        let mut product = u128::from(self.word()) * u128::from(bound);
        if (product as u64) < bound {
            // Lower products are drawn again, because they would make some numbers likelier.
            let unfair = bound.wrapping_neg() % bound;
            while (product as u64) < unfair {
                product = u128::from(self.word()) * u128::from(bound);
            }
        }
        (product >> 64) as u64
    }
}

/// Expands the seeds to `words` 32-bit words, each of which depends on all seeds, as the C++ standard defines for
/// `std::seed_seq`.
fn spread(seeds: &[u32], words: usize) -> Vec<u32> {
    let mut all = vec![0x8b8b_8b8b_u32; words];
    let lag = match words {
        623.. => 11,
        68.. => 7,
        39.. => 5,
        7.. => 3,
        _ => (words - 1) / 2,
    };
    let (p, q) = ((words - lag) / 2, (words - lag) / 2 + lag);
    let rounds = words.max(seeds.len() + 1);
    let mix = |word: u32| word ^ word >> 27;
    for round in 0..rounds {
        let [here, ahead, far, before] = [round, round + p, round + q, round + words - 1].map(|at| at % words);
        let first = mix(all[here] ^ all[ahead] ^ all[before]).wrapping_mul(1_664_525);
        let seed = match round {
            0 => seeds.len() as u32,
            _ if round <= seeds.len() => (here as u32).wrapping_add(seeds[round - 1]),
            _ => here as u32,
        };
        let second = first.wrapping_add(seed);
        all[ahead] = all[ahead].wrapping_add(first);
        all[far] = all[far].wrapping_add(second);
        all[here] = second;
    }
    for round in rounds..rounds + words {
        let [here, ahead, far, before] = [round, round + p, round + q, round + words - 1].map(|at| at % words);
        let third = mix(all[here].wrapping_add(all[ahead]).wrapping_add(all[before])).wrapping_mul(1_566_083_941);
        let fourth = third.wrapping_sub(here as u32);
        all[ahead] ^= third;
        all[far] ^= fourth;
        all[here] = fourth;
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_those_of_the_standard_library() {
        // The first and the thousandth number of `std::mt19937_64` seeded with `std::seed_seq{4242, 0, 1}`.
        let mut words = Mersenne::seeded(&[4242, 0, 1]);
        let words: Vec<u64> = (0..1000).map(|_| words.word()).collect();
        assert_eq!(words[..2], [9_680_965_135_215_361_526, 2_609_223_960_717_292_434]);
        assert_eq!(words[998..], [17_452_995_702_578_189_584, 15_879_394_654_563_885_902]);
    }

    #[test]
    fn numbers_below_a_bound_are_arollas() {
        let mut numbers = Mersenne::seeded(&[4242, 6, 1]);
        assert_eq!([0; 6].map(|_| numbers.below(10)), [7, 8, 6, 9, 9, 0]);
        let mut numbers = Mersenne::seeded(&[4242, 6, u32::MAX]);
        let found = [0; 6].map(|_| numbers.below(u64::MAX).cast_signed().wrapping_add(i64::MIN));
        assert_eq!(found[0], 2_940_457_250_790_811_354);
        assert_eq!(found[5], 8_205_652_568_814_514_407);
        // A bound above a half of all numbers refuses many words.
        let mut numbers = Mersenne::seeded(&[1]);
        assert!((0..1000).all(|_| numbers.below((1 << 63) + 1) <= 1 << 63));
    }
}
