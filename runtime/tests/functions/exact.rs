//! The normal distribution in any precision, as a reference.

use astro_float_num::{BigFloat, Consts, RoundingMode};

const NEAREST: RoundingMode = RoundingMode::ToEven;

/// The number of levels of the continued fraction. For `x` from 5 on they give 170 bits.
const LEVELS: u64 = 200;

/// The probability that a standard normal variable is at most `x`, with a relative error of about 2^-`bits`, for up to 160 bits.
pub(crate) fn normal_cdf(x: &BigFloat, bits: usize, consts: &mut Consts) -> BigFloat {
    // Two numbers that cancel leave 22 bits less at -5.
    let bits = bits + 64;
    let number = |n: u64| BigFloat::from_word(n, bits);
    let (one, two) = (number(1), number(2));
    let square = x.mul(x, bits, NEAREST);
    let exponent = square.div(&two, bits, NEAREST).neg();
    let twice_pi = consts.pi(bits, NEAREST).mul(&two, bits, NEAREST);
    let density = exponent.exp(bits, NEAREST, consts).div(&twice_pi.sqrt(bits, NEAREST), bits, NEAREST);
    if x.abs().cmp(&number(5)).is_some_and(|order| order > 0) {
        // Of Laplace: the density over x + 1/(x + 2/(x + 3/(x + ..))).
        let size = x.abs();
        let start = size.clone();
        let divisor = (1..=LEVELS)
            .rev()
            .fold(start, |divisor, level| size.add(&number(level).div(&divisor, bits, NEAREST), bits, NEAREST));
        let beyond = density.div(&divisor, bits, NEAREST);
        return if x.is_negative() { beyond } else { one.sub(&beyond, bits, NEAREST) };
    }
    // 1/2 and the density times x + x^3/3 + x^5/(3 * 5) + ..
    let (mut sum, mut term) = (x.clone(), x.clone());
    for odd in (3..).step_by(2).take(300) {
        term = term.mul(&square, bits, NEAREST).div(&number(odd), bits, NEAREST);
        sum = sum.add(&term, bits, NEAREST);
    }
    let half = one.div(&two, bits, NEAREST);
    half.add(&density.mul(&sum, bits, NEAREST), bits, NEAREST)
}
