//! The operations that the mathematical functions are written in: those of IEEE 754 on binary32 or binary64, integer operations on their bits, and
//! selections instead of branches. An algorithm is written once over [`Arithmetic`]. In this crate the algorithm runs on plain numbers. For native
//! code, a tape (a straight-line program) records its operations. So the interpreter and native code do the same operations in the same order.

use super::{fused, rare};
use crate::RuntimeFn;

/// A machine that algorithms run on, or that records them, with numbers of the format `F`: `f32` or `f64`. Its operations
/// round once, to nearest; nothing is reordered.
///
/// `Number` is a number of that format, `Word` an integer of as many bits, `Truth` a truth value. An algorithm cannot read
/// the value of a number, so it does not depend on the number of lanes and has no branches.
#[expect(missing_docs, reason = "the names of the operations explain them")]
pub trait Arithmetic<F> {
    type Number: Copy;
    type Word: Copy;
    type Truth: Copy;

    fn constant(&mut self, value: F) -> Self::Number;
    /// The low bits of `bits` as a word.
    fn word(&mut self, bits: u64) -> Self::Word;

    fn bits(&mut self, x: Self::Number) -> Self::Word;
    fn number(&mut self, bits: Self::Word) -> Self::Number;
    /// Converts a signed integer to a number, rounded. Processors have a vector instruction for binary32, but few have one
    /// for binary64.
    fn count(&mut self, x: Self::Word) -> Self::Number;

    fn neg(&mut self, x: Self::Number) -> Self::Number;
    fn abs(&mut self, x: Self::Number) -> Self::Number;
    fn add(&mut self, x: Self::Number, y: Self::Number) -> Self::Number;
    fn sub(&mut self, x: Self::Number, y: Self::Number) -> Self::Number;
    fn mul(&mut self, x: Self::Number, y: Self::Number) -> Self::Number;
    fn div(&mut self, x: Self::Number, y: Self::Number) -> Self::Number;
    /// The square root, rounded once; NaN below zero.
    fn sqrt(&mut self, x: Self::Number) -> Self::Number;
    /// `x * y + z`, rounded once.
    fn fma(&mut self, x: Self::Number, y: Self::Number, z: Self::Number) -> Self::Number;
    /// `x * 2^power`, rounded once, overflow and subnormal results included. The absolute value of `power` must be an integer
    /// up to 252 in binary32, 2044 in binary64; `x` must be zero, infinite, or at least 2^-100 or 2^-960. NaN if both are
    /// NaN. For other arguments the result is unspecified.
    fn scale(&mut self, x: Self::Number, power: Self::Number) -> Self::Number;
    /// `x < y ? x : y`: `y` if one of the two is NaN.
    fn min(&mut self, x: Self::Number, y: Self::Number) -> Self::Number;
    /// `x > y ? x : y`: `y` if one of the two is NaN.
    fn max(&mut self, x: Self::Number, y: Self::Number) -> Self::Number;
    fn copysign(&mut self, x: Self::Number, sign: Self::Number) -> Self::Number;

    fn plus(&mut self, x: Self::Word, y: Self::Word) -> Self::Word;
    fn minus(&mut self, x: Self::Word, y: Self::Word) -> Self::Word;
    fn and(&mut self, x: Self::Word, y: Self::Word) -> Self::Word;
    fn or(&mut self, x: Self::Word, y: Self::Word) -> Self::Word;
    fn xor(&mut self, x: Self::Word, y: Self::Word) -> Self::Word;
    fn left(&mut self, x: Self::Word, by: u8) -> Self::Word;
    fn right(&mut self, x: Self::Word, by: u8) -> Self::Word;

    fn less(&mut self, x: Self::Number, y: Self::Number) -> Self::Truth;
    fn equal(&mut self, x: Self::Number, y: Self::Number) -> Self::Truth;
    fn not_zero(&mut self, x: Self::Word) -> Self::Truth;
    fn not(&mut self, a: Self::Truth) -> Self::Truth;
    fn either(&mut self, a: Self::Truth, b: Self::Truth) -> Self::Truth;
    fn select(&mut self, mask: Self::Truth, on: Self::Number, off: Self::Number) -> Self::Number;
    /// Selects as `select` does, for masks that hold almost never or almost always.
    fn select_rare(&mut self, mask: Self::Truth, on: Self::Number, off: Self::Number) -> Self::Number;

    /// `ordinary` where the mask is false, and the value of `function` where it is true. This is for arguments that the branch-free algorithm
    /// cannot compute, and that are rare enough for a call.
    fn rare(
        &mut self,
        mask: Self::Truth,
        function: RuntimeFn,
        arguments: &[Self::Number],
        ordinary: Self::Number,
    ) -> Self::Number;
}

/// A machine of binary64 numbers whose arguments and results are binary32 numbers, for functions that compute in binary64 and
/// round at the end.
#[expect(missing_docs, reason = "the names of the operations explain them")]
pub trait Narrowing: Arithmetic<f64> {
    type Single: Copy;

    fn widen(&mut self, x: Self::Single) -> Self::Number;
    fn narrow(&mut self, x: Self::Number) -> Self::Single;

    /// `ordinary`, or the value of `function` where the mask holds, as for [`Arithmetic::rare`], but for a function of
    /// binary32 numbers.
    fn rare_single(
        &mut self,
        mask: Self::Truth,
        function: RuntimeFn,
        arguments: &[Self::Single],
        ordinary: Self::Single,
    ) -> Self::Single;
}

/// `x + c`.
#[inline(always)]
pub(super) fn add<F, A: Arithmetic<F>>(m: &mut A, x: A::Number, c: F) -> A::Number {
    let c = m.constant(c);
    m.add(x, c)
}

/// `x - c`.
#[inline(always)]
pub(super) fn sub<F, A: Arithmetic<F>>(m: &mut A, x: A::Number, c: F) -> A::Number {
    let c = m.constant(c);
    m.sub(x, c)
}

/// `c - x`.
#[inline(always)]
pub(super) fn less_from<F, A: Arithmetic<F>>(m: &mut A, c: F, x: A::Number) -> A::Number {
    let c = m.constant(c);
    m.sub(c, x)
}

/// `x * c`.
#[inline(always)]
pub(super) fn mul<F, A: Arithmetic<F>>(m: &mut A, x: A::Number, c: F) -> A::Number {
    let c = m.constant(c);
    m.mul(x, c)
}

/// `x * c + z`, rounded once.
#[inline(always)]
pub(super) fn times_plus<F, A: Arithmetic<F>>(m: &mut A, x: A::Number, c: F, z: A::Number) -> A::Number {
    let c = m.constant(c);
    m.fma(x, c, z)
}

/// `x * y + c`, rounded once.
#[inline(always)]
pub(super) fn fma<F, A: Arithmetic<F>>(m: &mut A, x: A::Number, y: A::Number, c: F) -> A::Number {
    let c = m.constant(c);
    m.fma(x, y, c)
}

/// `x` limited to the range from `low` to `high`; NaN remains NaN.
#[inline(always)]
pub(super) fn clamp<F, A: Arithmetic<F>>(m: &mut A, x: A::Number, low: F, high: F) -> A::Number {
    let (low, high) = (m.constant(low), m.constant(high));
    let x = m.min(high, x);
    m.max(low, x)
}

/// `number * 2^power`, or zero where `x` is below `bound`. So results near zero are not computed at all, because processors
/// take long for subnormal results and for results that round to zero.
#[inline(always)]
pub(super) fn scaled_from<F: Default, A: Arithmetic<F>>(
    m: &mut A,
    x: A::Number,
    bound: F,
    number: A::Number,
    power: A::Number,
) -> A::Number {
    let (bound, zero) = (m.constant(bound), m.constant(F::default()));
    let scaled = m.scale(number, power);
    // A NaN is not below.
    let below = m.less(x, bound);
    let kept = m.not(below);
    m.select_rare(kept, scaled, zero)
}

/// True where `|x| < bound`; false for NaN.
#[inline(always)]
pub(super) fn within<F, A: Arithmetic<F>>(m: &mut A, x: A::Number, bound: F) -> A::Truth {
    let (magnitude, bound) = (m.abs(x), m.constant(bound));
    m.less(magnitude, bound)
}

/// The polynomial in `x` with the coefficients `c`, beginning with that of the lowest power. Long polynomials are split into the even and the odd
/// powers. That takes one more multiplication, but half the time if there is nothing else to compute in parallel.
#[inline(always)]
pub(super) fn polynomial<F: Copy, A: Arithmetic<F>, const N: usize>(m: &mut A, x: A::Number, c: [F; N]) -> A::Number {
    if N < 6 {
        return every::<1, F, A, N>(m, x, c, 0);
    }
    let square = m.mul(x, x);
    by_halves(m, x, square, c)
}

/// The polynomial in `x` with the coefficients `c`, computed as the sum of its even and its odd powers. `square` is the square of `x`.
#[inline(always)]
pub(super) fn by_halves<F: Copy, A: Arithmetic<F>, const N: usize>(
    m: &mut A,
    x: A::Number,
    square: A::Number,
    c: [F; N],
) -> A::Number {
    let even = every::<2, F, A, N>(m, square, c, 0);
    let odd = every::<2, F, A, N>(m, square, c, 1);
    m.fma(x, odd, even)
}

/// The polynomial of every `STEP`th coefficient, from the one at `first` on. The index is counted down by hand, because for
/// `step_by` the compiler makes a loop that loads the coefficients from memory.
#[inline(always)]
fn every<const STEP: usize, F: Copy, A: Arithmetic<F>, const N: usize>(
    m: &mut A,
    x: A::Number,
    c: [F; N],
    first: usize,
) -> A::Number {
    let mut at = first + (N - 1 - first) / STEP * STEP;
    let mut sum = m.constant(c[at]);
    while at >= first + STEP {
        at -= STEP;
        sum = fma(m, sum, x, c[at]);
    }
    sum
}

/// The machine that computes with plain numbers. `FUSED` is true if `mul_add` compiles to one instruction. Otherwise `mul_add` would call the host's
/// library, so an exact integer rule replaces it.
pub(super) struct Plain<const FUSED: bool>;

macro_rules! plain {
    ($float:ident, $word:ident = |$low:ident| $cut:expr, mantissa $mantissa:literal, bias $bias:literal, $fma:path, $rare:path) => {
        impl<const FUSED: bool> Arithmetic<$float> for Plain<FUSED> {
            type Number = $float;
            type Word = $word;
            type Truth = bool;

            plain! {
                constant(value: $float) -> $float { value }
                word($low: u64) -> $word { $cut }
                bits(x: $float) -> $word { x.to_bits() }
                number(bits: $word) -> $float { $float::from_bits(bits) }
                count(x: $word) -> $float { x.cast_signed() as $float }
                neg(x: $float) -> $float { -x }
                abs(x: $float) -> $float { x.abs() }
                add(x: $float, y: $float) -> $float { x + y }
                sub(x: $float, y: $float) -> $float { x - y }
                mul(x: $float, y: $float) -> $float { x * y }
                div(x: $float, y: $float) -> $float { x / y }
                sqrt(x: $float) -> $float { x.sqrt() }
                fma(x: $float, y: $float, z: $float) -> $float { if FUSED { x.mul_add(y, z) } else { $fma(x, y, z) } }
                scale(x: $float, power: $float) -> $float {
                    // In two factors, each of which is a normal number.
                    const WHOLE: $float = (3_u64 << ($mantissa - 1)) as $float;
                    let biased = (power + (WHOLE + 2.0 * $bias)).to_bits();
                    let half = biased >> 1;
                    let [first, second] = [half, biased.wrapping_sub(half)].map(|k| $float::from_bits(k << $mantissa));
                    x * first * second
                }
                min(x: $float, y: $float) -> $float { if x < y { x } else { y } }
                max(x: $float, y: $float) -> $float { if x > y { x } else { y } }
                copysign(x: $float, sign: $float) -> $float { x.copysign(sign) }
                plus(x: $word, y: $word) -> $word { x.wrapping_add(y) }
                minus(x: $word, y: $word) -> $word { x.wrapping_sub(y) }
                and(x: $word, y: $word) -> $word { x & y }
                or(x: $word, y: $word) -> $word { x | y }
                xor(x: $word, y: $word) -> $word { x ^ y }
                left(x: $word, by: u8) -> $word { x << by }
                right(x: $word, by: u8) -> $word { x >> by }
                less(x: $float, y: $float) -> bool { x < y }
                equal(x: $float, y: $float) -> bool { x == y }
                not_zero(x: $word) -> bool { x != 0 }
                not(a: bool) -> bool { !a }
                either(a: bool, b: bool) -> bool { a | b }
                select(mask: bool, on: $float, off: $float) -> $float { if mask { on } else { off } }
                select_rare(mask: bool, on: $float, off: $float) -> $float { if mask { on } else { off } }
                rare(mask: bool, function: RuntimeFn, arguments: &[$float], ordinary: $float) -> $float {
                    if mask { $rare(function, arguments) } else { ordinary }
                }
            }
        }
    };
    ($($name:ident($($arg:ident: $ty:ty),*) -> $ret:ty $body:block)*) => {
        $(
            #[inline(always)]
            fn $name(&mut self, $($arg: $ty),*) -> $ret $body
        )*
    };
}

plain!(f32, u32 = |bits| bits as u32, mantissa 23, bias 127.0, fused::in_software_f32, rare::single);
plain!(f64, u64 = |bits| bits, mantissa 52, bias 1023.0, fused::in_software_f64, rare::double);

impl<const FUSED: bool> Narrowing for Plain<FUSED> {
    type Single = f32;

    plain! {
        widen(x: f32) -> f64 { f64::from(x) }
        narrow(x: f64) -> f32 { x as f32 }
        rare_single(mask: bool, function: RuntimeFn, arguments: &[f32], ordinary: f32) -> f32 {
            if mask { rare::single(function, arguments) } else { ordinary }
        }
    }
}
