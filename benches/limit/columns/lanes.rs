//! Values of some neighbouring rows: what the formulas are written over. One implementation for each kind of lanes.

#[cfg(not(lanes = "512"))]
use crate::polynomials as functions;
#[cfg(lanes = "512")]
use crate::special as functions;
pub(crate) use functions::Instructions;

/// So many values of one type.
pub(crate) trait Lanes: Copy {
    /// The type.
    type Element: Copy;
    /// A truth for each row.
    type Mask: Copy;
    /// How many rows.
    const ROWS: usize;

    // SAFETY: a step of rows, as BARE-ARRAYS says.
    unsafe fn load(from: *const u8) -> Self;
    /// Values where the lowest bits are set, `default` elsewhere.
    // SAFETY: a step of rows, as BARE-ARRAYS says.
    unsafe fn load_or(from: *const u8, bits: u32, default: Self::Element) -> Self;
    // SAFETY: a step of rows, as BARE-ARRAYS says.
    unsafe fn store(self, to: *mut u8);
    /// Past the caches, to an aligned address.
    // SAFETY: a step of rows, as BARE-ARRAYS says.
    unsafe fn stream(self, to: *mut u8);

    fn splat(value: Self::Element) -> Self;
    fn add(self, other: Self) -> Self;
    fn sub(self, other: Self) -> Self;
    fn mul(self, other: Self) -> Self;
    fn div(self, other: Self) -> Self;
    /// `self * factor + term`, rounded once.
    fn fma(self, factor: Self, term: Self) -> Self;
    /// `self < other ? self : other`.
    fn min(self, other: Self) -> Self;
    /// `self > other ? self : other`.
    fn max(self, other: Self) -> Self;
    fn abs(self) -> Self;
    fn neg(self) -> Self;
    fn sqrt(self) -> Self;
    fn less(self, other: Self) -> Self::Mask;
    fn at_least(self, other: Self) -> Self::Mask;
    fn both(a: Self::Mask, b: Self::Mask) -> Self::Mask;
    fn select(mask: Self::Mask, then: Self, otherwise: Self) -> Self;
    /// The lowest bit is that of the first row.
    fn bits(mask: Self::Mask) -> u32;

    /// As the formula's outputs are written.
    // SAFETY: a step of rows, as BARE-ARRAYS says.
    #[inline(always)]
    unsafe fn put<const STREAM: bool>(self, to: *mut u8) {
        // SAFETY: the caller's promise.
        unsafe { if STREAM { self.stream(to) } else { self.store(to) } }
    }
}

/// Values of FLOAT32.
pub(crate) trait SingleLanes: Lanes<Element = f32> {
    /// Of a number that is at least 1.
    fn reciprocal(self) -> Self;
    fn exp(self) -> Self;
    fn log1p(self) -> Self;
}

/// Values of FLOAT64.
pub(crate) trait DoubleLanes: Widened {
    /// Of a number that is at least 1.
    fn reciprocal(self) -> Self;
    fn exp(self) -> Self;
    fn log(self) -> Self;
}

/// FLOAT64 values that come from FLOAT32.
pub(crate) trait Widened: Lanes<Element = f64> {
    /// FLOAT32 values, and their products with a factor in FLOAT32, both widened.
    // SAFETY: a step of rows, as BARE-ARRAYS says.
    unsafe fn widened(from: *const u8, factor: f32) -> (Self, Self);
}

/// What FLOAT32 values come to, over all rows.
#[cfg(any(lanes = "512", lanes = "plain"))]
pub(crate) trait Across: Lanes<Element = f32> {
    /// The greatest.
    fn greatest(self) -> f32;
    /// Sums with the values added, widened: those of the lower rows to the first, those of the upper to the second.
    fn add_to(self, sums: [crate::Doubles; 2]) -> [crate::Doubles; 2];
    /// What all these sums are.
    fn sum(sums: [crate::Doubles; 2]) -> f64;
}

impl<L: Lanes<Element = f32> + Instructions> SingleLanes for L {
    #[inline(always)]
    fn reciprocal(self) -> Self {
        functions::reciprocal_single(self)
    }

    #[inline(always)]
    fn exp(self) -> Self {
        functions::exp_single(self)
    }

    #[inline(always)]
    fn log1p(self) -> Self {
        functions::log1p_single(self)
    }
}

impl<L: Widened + Instructions> DoubleLanes for L {
    #[inline(always)]
    fn reciprocal(self) -> Self {
        functions::reciprocal_double(self)
    }

    #[inline(always)]
    fn exp(self) -> Self {
        functions::exp_double(self)
    }

    #[inline(always)]
    fn log(self) -> Self {
        functions::log_double(self)
    }
}

/// `coefficients[0] + x coefficients[1] + ..`
#[inline(always)]
pub(crate) fn polynomial<L: Lanes, const N: usize>(x: L, coefficients: [L::Element; N]) -> L {
    let mut sum = L::splat(coefficients[N - 1]);
    for &coefficient in coefficients[..N - 1].iter().rev() {
        sum = sum.fma(x, L::splat(coefficient));
    }
    sum
}

/// Twice as many rows, as two vectors: what waits for results in one leaves the processor something to do in the other. Longer
/// formulas have more operations in a row than it looks ahead.
#[derive(Clone, Copy)]
pub(crate) struct Pair<L>(pub(crate) L, pub(crate) L);

impl<L: Lanes> Pair<L> {
    #[inline(always)]
    fn each(self, other: Self, f: impl Fn(L, L) -> L) -> Self {
        Pair(f(self.0, other.0), f(self.1, other.1))
    }

    #[inline(always)]
    fn compared(self, other: Self, f: impl Fn(L, L) -> L::Mask) -> (L::Mask, L::Mask) {
        (f(self.0, other.0), f(self.1, other.1))
    }
}

/// Bytes of one of two.
const fn bytes<L: Lanes>() -> usize {
    L::ROWS * size_of::<L::Element>()
}

impl<L: Lanes> Lanes for Pair<L> {
    type Element = L::Element;
    type Mask = (L::Mask, L::Mask);
    const ROWS: usize = 2 * L::ROWS;

    // SAFETY: a step of rows, as BARE-ARRAYS says.
    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self {
        // SAFETY: the caller's promise.
        unsafe { Pair(L::load(from), L::load(from.add(bytes::<L>()))) }
    }

    // SAFETY: a step of rows, as BARE-ARRAYS says.
    #[inline(always)]
    unsafe fn load_or(from: *const u8, bits: u32, default: L::Element) -> Self {
        // SAFETY: the caller's promise.
        unsafe { Pair(L::load_or(from, bits, default), L::load_or(from.add(bytes::<L>()), bits >> L::ROWS, default)) }
    }

    // SAFETY: a step of rows, as BARE-ARRAYS says.
    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        // SAFETY: the caller's promise.
        unsafe {
            self.0.store(to);
            self.1.store(to.add(bytes::<L>()));
        }
    }

    // SAFETY: a step of rows, as BARE-ARRAYS says.
    #[inline(always)]
    unsafe fn stream(self, to: *mut u8) {
        // SAFETY: the caller's promise.
        unsafe {
            self.0.stream(to);
            self.1.stream(to.add(bytes::<L>()));
        }
    }

    #[inline(always)]
    fn splat(value: L::Element) -> Self {
        Pair(L::splat(value), L::splat(value))
    }

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        self.each(other, L::add)
    }

    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        self.each(other, L::sub)
    }

    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        self.each(other, L::mul)
    }

    #[inline(always)]
    fn div(self, other: Self) -> Self {
        self.each(other, L::div)
    }

    #[inline(always)]
    fn fma(self, factor: Self, term: Self) -> Self {
        Pair(self.0.fma(factor.0, term.0), self.1.fma(factor.1, term.1))
    }

    #[inline(always)]
    fn min(self, other: Self) -> Self {
        self.each(other, L::min)
    }

    #[inline(always)]
    fn max(self, other: Self) -> Self {
        self.each(other, L::max)
    }

    #[inline(always)]
    fn abs(self) -> Self {
        Pair(self.0.abs(), self.1.abs())
    }

    #[inline(always)]
    fn neg(self) -> Self {
        Pair(self.0.neg(), self.1.neg())
    }

    #[inline(always)]
    fn sqrt(self) -> Self {
        Pair(self.0.sqrt(), self.1.sqrt())
    }

    #[inline(always)]
    fn less(self, other: Self) -> Self::Mask {
        self.compared(other, L::less)
    }

    #[inline(always)]
    fn at_least(self, other: Self) -> Self::Mask {
        self.compared(other, L::at_least)
    }

    #[inline(always)]
    fn both(a: Self::Mask, b: Self::Mask) -> Self::Mask {
        (L::both(a.0, b.0), L::both(a.1, b.1))
    }

    #[inline(always)]
    fn select(mask: Self::Mask, then: Self, otherwise: Self) -> Self {
        Pair(L::select(mask.0, then.0, otherwise.0), L::select(mask.1, then.1, otherwise.1))
    }

    #[inline(always)]
    fn bits(mask: Self::Mask) -> u32 {
        L::bits(mask.0) | L::bits(mask.1) << L::ROWS
    }
}

impl<L: Widened> Widened for Pair<L> {
    // SAFETY: a step of rows, as BARE-ARRAYS says.
    #[inline(always)]
    unsafe fn widened(from: *const u8, factor: f32) -> (Self, Self) {
        // SAFETY: the caller's promise.
        let (first, second) = unsafe { (L::widened(from, factor), L::widened(from.add(4 * L::ROWS), factor)) };
        (Pair(first.0, second.0), Pair(first.1, second.1))
    }
}
