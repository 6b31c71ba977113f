//! Sums that are added up side by side, and what they are together: what whoever adds numbers in chains has, and ends with. Which number goes to
//! which chain is its own matter.

/// The sums that a column of chains has.
pub const CHAINS: usize = 64;

/// Sums of chains, where vectors of them begin with lines of the caches.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub struct Chains(pub [f64; CHAINS]);

impl Default for Chains {
    fn default() -> Self {
        Chains([0.0; CHAINS])
    }
}

impl Chains {
    /// The sum of them all, which are zeros then: those of the second half are added to those of the first, until there is one.
    #[inline]
    pub fn take(&mut self) -> f64 {
        #[cfg(target_arch = "x86_64")]
        if std::arch::is_x86_feature_detected!("avx512f") {
            // SAFETY: FEATURE: the processor was asked just now.
            return unsafe { self.take_in_vectors() };
        }
        self.take_by_halves()
    }

    fn take_by_halves(&mut self) -> f64 {
        let mut chains = std::mem::take(self).0;
        let mut left = CHAINS;
        while left > 1 {
            left /= 2;
            let (to, from) = chains.split_at_mut(left);
            to.iter_mut().zip(from).for_each(|(to, from)| *to += *from);
        }
        chains[0]
    }

    /// The same in vectors of 8, which no compiler is known to find by itself: they are read as loops wrote them just before. Who reads a part of
    /// what was just written waits until it is in the cache.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f")]
    fn take_in_vectors(&mut self) -> f64 {
        use std::arch::x86_64 as x86;
        let (vectors, _) = self.0.as_chunks::<8>();
        let vector = |at: usize| {
            let [a, b, c, d, e, f, g, h] = vectors[at];
            x86::_mm512_set_pd(h, g, f, e, d, c, b, a)
        };
        let halves = |at: usize| x86::_mm512_add_pd(vector(at), vector(at + 4));
        let (even, odd) = (x86::_mm512_add_pd(halves(0), halves(2)), x86::_mm512_add_pd(halves(1), halves(3)));
        let eight = x86::_mm512_add_pd(even, odd);
        *self = Chains::default();
        let four = x86::_mm256_add_pd(x86::_mm512_castpd512_pd256(eight), x86::_mm512_extractf64x4_pd::<1>(eight));
        let two = x86::_mm_add_pd(x86::_mm256_castpd256_pd128(four), x86::_mm256_extractf128_pd::<1>(four));
        x86::_mm_cvtsd_f64(x86::_mm_add_sd(two, x86::_mm_unpackhi_pd(two, two)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chains_are_joined_by_halves() {
        let mut others = 0;
        for seed in 0..50 {
            // Of other sizes each time, so that other orders give other sums.
            let number = |at: usize| (at as f64 * 1.7 + f64::from(seed)).sin() * f64::from(at as u32 * 29 % 16).exp2();
            let chains = Chains(std::array::from_fn(number));
            let mut expected: Vec<f64> = chains.0.to_vec();
            while let [_, _, ..] = &expected[..] {
                let (first, second) = expected.split_at(expected.len() / 2);
                expected = first.iter().zip(second).map(|(a, b)| a + b).collect();
            }
            for take in [Chains::take, Chains::take_by_halves] {
                let mut taken = chains.clone();
                assert_eq!(take(&mut taken).to_bits(), expected[0].to_bits(), "{seed}");
                assert_eq!(taken.0.map(f64::to_bits), [0; CHAINS], "zeros, none of which is -0");
            }
            let mut swapped = chains.clone();
            swapped.0.swap(0, 1);
            others += u32::from(swapped.take().to_bits() != expected[0].to_bits());
        }
        assert!(others > 10, "{others}: the order counts");
    }
}
