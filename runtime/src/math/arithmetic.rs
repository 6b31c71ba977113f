//! What the mathematical functions are written in: the operations of IEEE 754 on binary64, bits as whole numbers, and
//! choices instead of branches. An algorithm is one text over [`Arithmetic`]; it runs on plain numbers here, and a tape of
//! the lowering rules records it, so interpreter and native code do the same operations in the same order.

use super::{fused, rare};
use crate::RuntimeFn;

/// A machine that algorithms run on, or are recorded by. Its operations round once, to nearest; nothing is reordered.
///
/// `Single` and `Double` are binary32 and binary64 numbers, `Word` is 64 bits, `Truth` a truth value. An algorithm cannot
/// ask for a number's value: it sees no lanes and takes no branches.
#[expect(missing_docs, reason = "operations are named after what they do")]
pub trait Arithmetic {
    type Single: Copy;
    type Double: Copy;
    type Word: Copy;
    type Truth: Copy;

    fn double(&mut self, value: f64) -> Self::Double;
    fn word(&mut self, bits: u64) -> Self::Word;

    fn widen(&mut self, x: Self::Single) -> Self::Double;
    fn narrow(&mut self, x: Self::Double) -> Self::Single;
    fn bits(&mut self, x: Self::Double) -> Self::Word;
    fn number(&mut self, bits: Self::Word) -> Self::Double;

    fn neg(&mut self, x: Self::Double) -> Self::Double;
    fn abs(&mut self, x: Self::Double) -> Self::Double;
    fn add(&mut self, x: Self::Double, y: Self::Double) -> Self::Double;
    fn sub(&mut self, x: Self::Double, y: Self::Double) -> Self::Double;
    fn mul(&mut self, x: Self::Double, y: Self::Double) -> Self::Double;
    fn div(&mut self, x: Self::Double, y: Self::Double) -> Self::Double;
    /// `x * y + z`, rounded once.
    fn fma(&mut self, x: Self::Double, y: Self::Double, z: Self::Double) -> Self::Double;
    /// `x < y ? x : y`: the second where one is NaN.
    fn min(&mut self, x: Self::Double, y: Self::Double) -> Self::Double;
    /// `x > y ? x : y`: the second where one is NaN.
    fn max(&mut self, x: Self::Double, y: Self::Double) -> Self::Double;
    fn copysign(&mut self, x: Self::Double, sign: Self::Double) -> Self::Double;

    fn plus(&mut self, x: Self::Word, y: Self::Word) -> Self::Word;
    fn minus(&mut self, x: Self::Word, y: Self::Word) -> Self::Word;
    fn and(&mut self, x: Self::Word, y: Self::Word) -> Self::Word;
    fn or(&mut self, x: Self::Word, y: Self::Word) -> Self::Word;
    fn xor(&mut self, x: Self::Word, y: Self::Word) -> Self::Word;
    fn left(&mut self, x: Self::Word, by: u8) -> Self::Word;
    fn right(&mut self, x: Self::Word, by: u8) -> Self::Word;

    fn less(&mut self, x: Self::Double, y: Self::Double) -> Self::Truth;
    fn equal(&mut self, x: Self::Double, y: Self::Double) -> Self::Truth;
    fn not_zero(&mut self, x: Self::Word) -> Self::Truth;
    fn not(&mut self, a: Self::Truth) -> Self::Truth;
    fn either(&mut self, a: Self::Truth, b: Self::Truth) -> Self::Truth;
    fn select(&mut self, mask: Self::Truth, on: Self::Double, off: Self::Double) -> Self::Double;

    /// `ordinary`, but the value of `function` where the mask holds: on arguments that the branch-free text cannot do, and
    /// that are rare enough for a call.
    fn rare_single(
        &mut self,
        mask: Self::Truth,
        function: RuntimeFn,
        arguments: &[Self::Single],
        ordinary: Self::Single,
    ) -> Self::Single;
    /// The same in binary64.
    fn rare_double(
        &mut self,
        mask: Self::Truth,
        function: RuntimeFn,
        arguments: &[Self::Double],
        ordinary: Self::Double,
    ) -> Self::Double;
}

/// `x + c`.
#[inline(always)]
pub(super) fn add<A: Arithmetic>(m: &mut A, x: A::Double, c: f64) -> A::Double {
    let c = m.double(c);
    m.add(x, c)
}

/// `x - c`.
#[inline(always)]
pub(super) fn sub<A: Arithmetic>(m: &mut A, x: A::Double, c: f64) -> A::Double {
    let c = m.double(c);
    m.sub(x, c)
}

/// `c - x`.
#[inline(always)]
pub(super) fn less_from<A: Arithmetic>(m: &mut A, c: f64, x: A::Double) -> A::Double {
    let c = m.double(c);
    m.sub(c, x)
}

/// `x * c`.
#[inline(always)]
pub(super) fn mul<A: Arithmetic>(m: &mut A, x: A::Double, c: f64) -> A::Double {
    let c = m.double(c);
    m.mul(x, c)
}

/// `x * c + z`, rounded once.
#[inline(always)]
pub(super) fn times_plus<A: Arithmetic>(m: &mut A, x: A::Double, c: f64, z: A::Double) -> A::Double {
    let c = m.double(c);
    m.fma(x, c, z)
}

/// `x * y + c`, rounded once.
#[inline(always)]
pub(super) fn fma<A: Arithmetic>(m: &mut A, x: A::Double, y: A::Double, c: f64) -> A::Double {
    let c = m.double(c);
    m.fma(x, y, c)
}

/// `x` no further from zero than the bounds; a NaN stays one.
#[inline(always)]
pub(super) fn clamp<A: Arithmetic>(m: &mut A, x: A::Double, low: f64, high: f64) -> A::Double {
    let (low, high) = (m.double(low), m.double(high));
    let x = m.min(high, x);
    m.max(low, x)
}

/// True where `|x| < bound`; false for NaN.
#[inline(always)]
pub(super) fn within<A: Arithmetic>(m: &mut A, x: A::Double, bound: f64) -> A::Truth {
    let (magnitude, bound) = (m.abs(x), m.double(bound));
    m.less(magnitude, bound)
}

/// The polynomial with these coefficients, lowest first. Long ones are done as two, of the even and of the odd powers:
/// one multiplication more, and half the time where nothing else is to be done meanwhile.
#[inline(always)]
pub(super) fn polynomial<A: Arithmetic, const N: usize>(m: &mut A, x: A::Double, c: [f64; N]) -> A::Double {
    if N < 6 {
        return horner(m, x, c.iter().rev().copied());
    }
    let square = m.mul(x, x);
    let even = horner(m, square, c.iter().step_by(2).rev().copied());
    let odd = horner(m, square, c.iter().skip(1).step_by(2).rev().copied());
    m.fma(x, odd, even)
}

/// The polynomial with these coefficients, highest first.
#[inline(always)]
fn horner<A: Arithmetic>(m: &mut A, x: A::Double, mut c: impl Iterator<Item = f64>) -> A::Double {
    let mut sum = m.double(c.next().unwrap_or(0.0));
    for c in c {
        sum = fma(m, sum, x, c);
    }
    sum
}

/// Plain numbers. `FUSED` says that `f64::mul_add` is one instruction where this is compiled; elsewhere it would be a
/// call of the host's library, and our own exact rule takes its place.
pub(super) struct Plain<const FUSED: bool>;

impl<const FUSED: bool> Arithmetic for Plain<FUSED> {
    type Single = f32;
    type Double = f64;
    type Word = u64;
    type Truth = bool;

    #[inline(always)]
    fn double(&mut self, value: f64) -> f64 {
        value
    }

    #[inline(always)]
    fn word(&mut self, bits: u64) -> u64 {
        bits
    }

    #[inline(always)]
    fn widen(&mut self, x: f32) -> f64 {
        f64::from(x)
    }

    #[inline(always)]
    fn narrow(&mut self, x: f64) -> f32 {
        x as f32
    }

    #[inline(always)]
    fn bits(&mut self, x: f64) -> u64 {
        x.to_bits()
    }

    #[inline(always)]
    fn number(&mut self, bits: u64) -> f64 {
        f64::from_bits(bits)
    }

    #[inline(always)]
    fn neg(&mut self, x: f64) -> f64 {
        -x
    }

    #[inline(always)]
    fn abs(&mut self, x: f64) -> f64 {
        x.abs()
    }

    #[inline(always)]
    fn add(&mut self, x: f64, y: f64) -> f64 {
        x + y
    }

    #[inline(always)]
    fn sub(&mut self, x: f64, y: f64) -> f64 {
        x - y
    }

    #[inline(always)]
    fn mul(&mut self, x: f64, y: f64) -> f64 {
        x * y
    }

    #[inline(always)]
    fn div(&mut self, x: f64, y: f64) -> f64 {
        x / y
    }

    #[inline(always)]
    fn fma(&mut self, x: f64, y: f64, z: f64) -> f64 {
        if FUSED { x.mul_add(y, z) } else { fused::in_software_f64(x, y, z) }
    }

    #[inline(always)]
    fn min(&mut self, x: f64, y: f64) -> f64 {
        if x < y { x } else { y }
    }

    #[inline(always)]
    fn max(&mut self, x: f64, y: f64) -> f64 {
        if x > y { x } else { y }
    }

    #[inline(always)]
    fn copysign(&mut self, x: f64, sign: f64) -> f64 {
        x.copysign(sign)
    }

    #[inline(always)]
    fn plus(&mut self, x: u64, y: u64) -> u64 {
        x.wrapping_add(y)
    }

    #[inline(always)]
    fn minus(&mut self, x: u64, y: u64) -> u64 {
        x.wrapping_sub(y)
    }

    #[inline(always)]
    fn and(&mut self, x: u64, y: u64) -> u64 {
        x & y
    }

    #[inline(always)]
    fn or(&mut self, x: u64, y: u64) -> u64 {
        x | y
    }

    #[inline(always)]
    fn xor(&mut self, x: u64, y: u64) -> u64 {
        x ^ y
    }

    #[inline(always)]
    fn left(&mut self, x: u64, by: u8) -> u64 {
        x << by
    }

    #[inline(always)]
    fn right(&mut self, x: u64, by: u8) -> u64 {
        x >> by
    }

    #[inline(always)]
    fn less(&mut self, x: f64, y: f64) -> bool {
        x < y
    }

    #[inline(always)]
    fn equal(&mut self, x: f64, y: f64) -> bool {
        x == y
    }

    #[inline(always)]
    fn not_zero(&mut self, x: u64) -> bool {
        x != 0
    }

    #[inline(always)]
    fn not(&mut self, a: bool) -> bool {
        !a
    }

    #[inline(always)]
    fn either(&mut self, a: bool, b: bool) -> bool {
        a | b
    }

    #[inline(always)]
    fn select(&mut self, mask: bool, on: f64, off: f64) -> f64 {
        if mask { on } else { off }
    }

    #[inline(always)]
    fn rare_single(&mut self, mask: bool, function: RuntimeFn, arguments: &[f32], ordinary: f32) -> f32 {
        if mask { rare::single(function, arguments) } else { ordinary }
    }

    #[inline(always)]
    fn rare_double(&mut self, mask: bool, function: RuntimeFn, arguments: &[f64], ordinary: f64) -> f64 {
        if mask { rare::double(function, arguments) } else { ordinary }
    }
}
