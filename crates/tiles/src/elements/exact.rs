//! Exact sums of FLOAT64: a number in fixed point that is as wide as all floats, to which floats are added without rounding. So a sum depends neither
//! on the order of its terms, nor on the threads and ranks that add them. The sum is rounded once, when its value is read.
//!
//! The method is the small superaccumulator of Radford M. Neal, "Fast exact summation using small and large superaccumulators" (arXiv:1505.05571,
//! 2015). The sum is stored in words of 64 bits, each of which begins 32 bits above the word before it. So words overlap, and carries are propagated
//! only after many additions.

use crate::tiled::tile::Float;

/// The distance between neighbouring words, in bits.
const WORD_SPACING: u32 = 32;

/// The number of words. The lowest bit of a float has one of 2,046 positions, and the float has 53 bits, so 2,099 bits
/// suffice for any float. Carries of a sum of 2^63 floats take 63 more.
const WORDS: usize = 68;

/// The most floats that are added before carries are propagated: each adds less than 2^32 to a word.
const MOST_ADDED: u32 = 1 << 30;

/// The number of mantissa bits that a float stores.
const MANTISSA: u32 = 52;

/// The stored exponent of infinities and NaNs.
const LARGEST_EXPONENT: u64 = 2047;

/// Returns the exact sum of `numbers`, rounded once to FLOAT64, and then to their type.
pub(crate) fn exact_sum<T: Float>(numbers: &[T]) -> T {
    let mut sum = ExactSum::default();
    numbers.iter().for_each(|number| sum.add(number.to_f64()));
    T::of_f64(sum.value())
}

/// A sum of floats without rounding, in fixed point. Bit 0 of the first word is 2^-1074.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct ExactSum {
    words: [i64; WORDS],
    /// The number of floats that were added to the sum since carries were last propagated between its words.
    added: u32,
    has_nan: bool,
    has_positive_infinity: bool,
    has_negative_infinity: bool,
}

impl Default for ExactSum {
    fn default() -> ExactSum {
        ExactSum {
            words: [0; WORDS],
            added: 0,
            has_nan: false,
            has_positive_infinity: false,
            has_negative_infinity: false,
        }
    }
}

impl ExactSum {
    fn add(&mut self, number: f64) {
        let bits = number.to_bits();
        let (exponent, mantissa) = ((bits >> MANTISSA) & LARGEST_EXPONENT, bits & ((1 << MANTISSA) - 1));
        if exponent == LARGEST_EXPONENT {
            self.has_nan |= mantissa != 0;
            self.has_positive_infinity |= mantissa == 0 && number > 0.0;
            self.has_negative_infinity |= mantissa == 0 && number < 0.0;
            return;
        }
        // Subnormal numbers have the exponent of the least normal ones, without the bit that is not stored.
        let mantissa = if exponent == 0 { mantissa } else { mantissa | 1 << MANTISSA };
        let place = (exponent as u32).saturating_sub(1);
        let (word, shifted) = ((place / WORD_SPACING) as usize, u128::from(mantissa) << (place % WORD_SPACING));
        let sign = if number.is_sign_negative() { -1 } else { 1 };
        for (at, word) in self.words[word..word + 3].iter_mut().enumerate() {
            let part = (shifted >> (WORD_SPACING as usize * at)) as u32;
            *word += sign * i64::from(part);
        }
        self.added += 1;
        if self.added >= MOST_ADDED {
            self.carry();
        }
    }

    /// Propagates carries, so that all words but the last are from 0 to 2^32 - 1. The last one has the sign.
    fn carry(&mut self) {
        let mut carried = 0;
        for word in &mut self.words[..WORDS - 1] {
            let sum = *word + carried;
            carried = sum >> WORD_SPACING;
            *word = sum - (carried << WORD_SPACING);
        }
        self.words[WORDS - 1] += carried;
        self.added = 0;
    }

    /// The nearest float; of two that are equally near, the one with an even mantissa. NaN if one was added, or infinities of both signs.
    fn value(mut self) -> f64 {
        match (self.has_nan, self.has_positive_infinity, self.has_negative_infinity) {
            (true, _, _) | (_, true, true) => return f64::NAN,
            (_, true, _) => return f64::INFINITY,
            (_, _, true) => return f64::NEG_INFINITY,
            _ => {}
        }
        self.carry();
        let is_negative = self.words[WORDS - 1] < 0;
        if is_negative {
            self.words.iter_mut().for_each(|word| *word = -*word);
            self.carry();
        }
        let Some(top) = self.words.iter().rposition(|word| *word != 0) else { return 0.0 };
        let highest = WORD_SPACING * top as u32 + self.words[top].ilog2();
        let lowest = highest.saturating_sub(MANTISSA);
        let mut mantissa = 0_u64;
        for at in (lowest..=highest).rev() {
            mantissa = mantissa << 1 | u64::from(self.bit(at));
        }
        let rest = lowest.checked_sub(1).is_some_and(|half| {
            let is_more = mantissa & 1 == 1 || (0..half).any(|at| self.bit(at));
            self.bit(half) && is_more
        });
        // If rounding makes a mantissa longer, it carries into the exponent. So a sum above all floats becomes infinity, too.
        let magnitude = (u64::from(lowest) << MANTISSA) + mantissa + u64::from(rest);
        let magnitude = f64::from_bits(magnitude.min(LARGEST_EXPONENT << MANTISSA));
        if is_negative { -magnitude } else { magnitude }
    }

    /// A bit of a sum that is not negative, after carries were propagated.
    fn bit(&self, at: u32) -> bool {
        let word = ((at / WORD_SPACING) as usize).min(WORDS - 1);
        (self.words[word] >> (at - word as u32 * WORD_SPACING)) & 1 == 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(numbers: &[f64]) -> f64 {
        let mut sum = ExactSum::default();
        numbers.iter().for_each(|number| sum.add(*number));
        sum.value()
    }

    #[test]
    fn what_rounding_would_lose_stays() {
        assert_eq!(sum(&[1e300, 1.0, -1e300]), 1.0);
        assert_eq!(sum(&[f64::MAX, f64::MAX, -f64::MAX, -f64::MAX, 5e-324]), 5e-324);
        assert_eq!(sum(&[0.1; 10]), 1.0);
        assert_eq!(sum(&[1.0, f64::EPSILON / 2.0]), 1.0);
        assert_eq!(sum(&[1.0, f64::EPSILON / 2.0, 5e-324]), 1.0 + f64::EPSILON);
        assert_eq!(sum(&[1.0 + f64::EPSILON, f64::EPSILON / 2.0]), 1.0 + 2.0 * f64::EPSILON);
        assert_eq!(sum(&[-1.0, -f64::EPSILON / 2.0, -5e-324]), -1.0 - f64::EPSILON);
        assert_eq!(sum(&[f64::MAX, f64::MAX]), f64::INFINITY);
        assert_eq!(sum(&[-f64::MAX, -2e291]), -f64::MAX);
        assert_eq!(sum(&[-f64::MAX, -2e292]), f64::NEG_INFINITY);
        assert_eq!(sum(&[2e-308, 2e-308, -3e-308]), 2e-308 + 2e-308 - 3e-308);
        assert_eq!(sum(&[]).to_bits(), 0);
        assert_eq!(sum(&[-0.0]).to_bits(), 0);
        assert_eq!(sum(&[f64::INFINITY, 1.0, f64::INFINITY]), f64::INFINITY);
        assert_eq!(sum(&[f64::NEG_INFINITY, f64::MAX]), f64::NEG_INFINITY);
        assert!(sum(&[f64::NEG_INFINITY, f64::INFINITY]).is_nan() && sum(&[f64::NAN, 1.0]).is_nan());
    }

    /// Sums single floats, and then all of them in any order.
    #[test]
    fn sums_do_not_depend_on_order() {
        let mut rng = fastrand::Rng::with_seed(50);
        for _ in 0..200 {
            let mut numbers: Vec<f64> = (0..rng.usize(1..60)).map(|_| f64::from_bits(rng.u64(..))).collect();
            numbers.retain(|number| number.is_finite());
            for number in &numbers {
                assert_eq!(sum(&[*number]), *number);
                assert_eq!(sum(&[*number, *number, -*number]), *number);
            }
            let all = sum(&numbers);
            rng.shuffle(&mut numbers);
            assert_eq!(sum(&numbers).to_bits(), all.to_bits());
            // Whole numbers of 100 bits, by integers.
            let whole: Vec<i64> = (0..50).map(|_| rng.i64(..) >> rng.u32(0..60)).collect();
            let shifts: Vec<u32> = (0..50).map(|_| rng.u32(0..40)).collect();
            let exact: i128 = whole.iter().zip(&shifts).map(|(number, by)| ((*number as f64) as i128) << by).sum();
            let floats: Vec<f64> =
                whole.iter().zip(&shifts).map(|(number, by)| *number as f64 * f64::from(*by).exp2()).collect();
            assert_eq!(sum(&floats), exact as f64);
        }
    }
}
