//! Reductions, an element of the result after the other. The positions of a sum are those of its reduced axes in ascending order, whatever
//! the layout; floats are added up in FLOAT64, in the order that is stated here.

use crate::element::with_data;
use crate::{Axis, Data, Element, Error, ErrorKind, Layout, Reduction};
use cembra_runtime::CHAINS;
use multiversion::multiversion;

/// The positions of a block of sums.
const BLOCK: usize = 1 << 16;

/// The sums that are added to side by side, where elements of one sum are far apart.
pub(crate) const SIDE_BY_SIDE: usize = 1 << 11;

/// In which order floats are added.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Order {
    /// One after the other.
    InOrder,
    /// Up to 64 one after the other; more in blocks, position `i` of a block in chain `i` modulo 64.
    Chains,
}

impl Order {
    /// The order of a sum over some axes of a tensor of so many.
    pub(crate) fn of(axes: &[Axis], rank: usize) -> Order {
        if axes.iter().any(|axis| usize::from(*axis) + 1 == rank) { Order::Chains } else { Order::InOrder }
    }
}

/// Numbers that are combined in an order, as they come: `len` of them in all.
pub(crate) struct Fold<W, C> {
    neutral: W,
    combine: C,
    chains: Option<[W; CHAINS]>,
    /// The position in the block.
    at: usize,
    /// What all blocks before gave.
    total: W,
}

impl<W: Copy, C: Fn(W, W) -> W + Copy> Fold<W, C> {
    pub(crate) fn new(order: Order, len: usize, (neutral, combine): (W, C)) -> Fold<W, C> {
        let chains = (order == Order::Chains && len > CHAINS).then_some([neutral; CHAINS]);
        Fold { neutral, combine, chains, at: 0, total: neutral }
    }

    /// The next numbers.
    pub(crate) fn extend(&mut self, mut numbers: impl ExactSizeIterator<Item = W>) {
        let Some(chains) = &mut self.chains else {
            self.total = numbers.fold(self.total, self.combine);
            return;
        };
        while numbers.len() > 0 {
            if self.at == BLOCK {
                self.total = (self.combine)(self.total, joined(chains, self.combine));
                *chains = [self.neutral; CHAINS];
                self.at = 0;
            }
            let first = self.at % CHAINS;
            let count = numbers.len().min(CHAINS - first);
            for (chain, number) in chains[first..first + count].iter_mut().zip(numbers.by_ref()) {
                *chain = (self.combine)(*chain, number);
            }
            self.at += count;
        }
    }

    /// The next elements, which lie together.
    pub(crate) fn extend_slice<T: Reduced<Wide = W>>(&mut self, mut elements: &[T]) {
        let Some(chains) = &mut self.chains else {
            self.total = elements.iter().fold(self.total, |total, element| (self.combine)(total, element.widen()));
            return;
        };
        while !elements.is_empty() {
            if self.at == BLOCK {
                self.total = (self.combine)(self.total, joined(chains, self.combine));
                *chains = [self.neutral; CHAINS];
                self.at = 0;
            }
            let (first, left) = (self.at % CHAINS, elements.len().min(BLOCK - self.at));
            let count = if first == 0 && left >= CHAINS { left - left % CHAINS } else { left.min(CHAINS - first) };
            let (next, others) = elements.split_at(count);
            if first == 0 && count >= CHAINS {
                take_rows(chains, next, self.combine);
            } else {
                take_row(&mut chains[first..first + count], next, self.combine);
            }
            elements = others;
            self.at += count;
        }
    }

    pub(crate) fn finish(mut self) -> W {
        match &mut self.chains {
            Some(chains) if self.at > 0 => (self.combine)(self.total, joined(chains, self.combine)),
            _ => self.total,
        }
    }
}

/// Rows of elements, each of which goes to one of the chains. The code is compiled for each kind of vectors.
#[multiversion(targets("x86_64+avx512f+avx512dq+avx512vl", "x86_64+avx2"))]
fn take_rows<T: Reduced, C: Fn(T::Wide, T::Wide) -> T::Wide>(
    chains: &mut [T::Wide; CHAINS],
    elements: &[T],
    combine: C,
) {
    let mut own = *chains;
    for row in elements.as_chunks::<CHAINS>().0 {
        for (chain, element) in own.iter_mut().zip(row) {
            *chain = combine(*chain, element.widen());
        }
    }
    *chains = own;
}

/// One row of elements, each of which goes to a sum of its own.
#[multiversion(targets("x86_64+avx512f+avx512dq+avx512vl", "x86_64+avx2"))]
pub(crate) fn take_row<T: Reduced, C: Fn(T::Wide, T::Wide) -> T::Wide>(sums: &mut [T::Wide], row: &[T], combine: C) {
    for (sum, element) in sums.iter_mut().zip(row) {
        *sum = combine(*sum, element.widen());
    }
}

/// Chains that become one: those of the second half are added to those of the first, until there is one.
pub(crate) fn joined<W: Copy>(chains: &mut [W; CHAINS], combine: impl Fn(W, W) -> W) -> W {
    let mut width = CHAINS;
    while width > 1 {
        width /= 2;
        for at in 0..width {
            chains[at] = combine(chains[at], chains[at + width]);
        }
    }
    chains[0]
}

/// An element that can be reduced: what it is widened to meanwhile, from what on, and how two become one.
pub(crate) trait Reduced: Element {
    type Wide: Copy;
    const ZERO: Self::Wide;
    const ONE: Self::Wide;
    const LEAST: Self::Wide;
    const MOST: Self::Wide;
    fn widen(self) -> Self::Wide;
    fn narrow(wide: Self::Wide) -> Self;
    fn add(a: Self::Wide, b: Self::Wide) -> Self::Wide;
    fn multiply(a: Self::Wide, b: Self::Wide) -> Self::Wide;
    fn larger(a: Self::Wide, b: Self::Wide) -> Self::Wide;
    fn smaller(a: Self::Wide, b: Self::Wide) -> Self::Wide;
}

/// Runs code with the number that changes nothing, and how two become one. Truth values are any where they are the larger.
macro_rules! with_reduction {
    ($ty:ty, $reduction:expr, $how:ident => $result:expr) => {
        match $reduction {
            $crate::Reduction::Sum => {
                let $how = (<$ty as $crate::sums::Reduced>::ZERO, <$ty as $crate::sums::Reduced>::add);
                $result
            }
            $crate::Reduction::Product => {
                let $how = (<$ty as $crate::sums::Reduced>::ONE, <$ty as $crate::sums::Reduced>::multiply);
                $result
            }
            $crate::Reduction::Max | $crate::Reduction::Any => {
                let $how = (<$ty as $crate::sums::Reduced>::LEAST, <$ty as $crate::sums::Reduced>::larger);
                $result
            }
            $crate::Reduction::Min | $crate::Reduction::All => {
                let $how = (<$ty as $crate::sums::Reduced>::MOST, <$ty as $crate::sums::Reduced>::smaller);
                $result
            }
        }
    };
}

pub(crate) use with_reduction;

/// The smaller of two floats: a NaN wins, and -0 is below +0.
macro_rules! smaller {
    ($a:expr, $b:expr) => {{
        let (a, b) = ($a, $b);
        if a.is_nan() || a < b || (a == b && a.is_sign_negative()) { a } else { b }
    }};
}

macro_rules! reduced {
    ($($ty:ty as $wide:ty, $zero:expr, $one:expr, $least:expr, $most:expr => |$x:ident| $narrow:expr, |$a:ident, $b:ident|
        $add:expr, $multiply:expr, $larger:expr, $smaller:expr;)*) => { $(
        impl Reduced for $ty {
            type Wide = $wide;
            const ZERO: $wide = $zero;
            const ONE: $wide = $one;
            const LEAST: $wide = $least;
            const MOST: $wide = $most;

            #[inline]
            fn widen(self) -> $wide {
                self.into()
            }

            #[inline]
            fn narrow($x: $wide) -> $ty {
                $narrow
            }

            #[inline]
            fn add($a: $wide, $b: $wide) -> $wide {
                $add
            }

            #[inline]
            fn multiply($a: $wide, $b: $wide) -> $wide {
                $multiply
            }

            #[inline]
            fn larger($a: $wide, $b: $wide) -> $wide {
                $larger
            }

            #[inline]
            fn smaller($a: $wide, $b: $wide) -> $wide {
                $smaller
            }
        }
    )* };
}

reduced! {
    f32 as f64, 0.0, 1.0, f64::NEG_INFINITY, f64::INFINITY => |x| x as f32, |a, b| a + b, a * b, -smaller!(-a, -b), smaller!(a, b);
    f64 as f64, 0.0, 1.0, f64::NEG_INFINITY, f64::INFINITY => |x| x, |a, b| a + b, a * b, -smaller!(-a, -b), smaller!(a, b);
    i32 as i32, 0, 1, i32::MIN, i32::MAX => |x| x, |a, b| a.wrapping_add(b), a.wrapping_mul(b), a.max(b), a.min(b);
    i64 as i64, 0, 1, i64::MIN, i64::MAX => |x| x, |a, b| a.wrapping_add(b), a.wrapping_mul(b), a.max(b), a.min(b);
    bool as bool, false, true, false, true => |x| x, |a, b| a ^ b, a & b, a | b, a & b;
}

/// The elements of a reduction over some axes.
pub(crate) fn reduce(reduction: Reduction, axes: &[Axis], data: &Data, layout: &Layout) -> Result<Data, Error> {
    fn all<T: Reduced, C: Fn(T::Wide, T::Wide) -> T::Wide + Copy>(
        elements: &[T],
        order: Order,
        how: (T::Wide, C),
        [kept, reduced]: [&Layout; 2],
    ) -> Data {
        let mut made = Vec::with_capacity(kept.len());
        if reduced.is_row_major() && !reduced.is_empty() {
            for first in kept.positions() {
                let mut fold = Fold::new(order, reduced.len(), how);
                fold.extend_slice(&elements[first..][..reduced.len()]);
                made.push(T::narrow(fold.finish()));
            }
            return T::data(made);
        }
        if let (Order::InOrder, Some(last)) = (order, kept.rank().checked_sub(1))
            && kept.strides()[last] == 1
        {
            // Sums lie side by side.
            let [outer, line] = kept.split(&[last as Axis]);
            for first in outer.positions() {
                for start in (0..line.len()).step_by(SIDE_BY_SIDE) {
                    let width = SIDE_BY_SIDE.min(line.len() - start);
                    let mut sums = vec![how.0; width];
                    for distance in reduced.positions() {
                        let at = (first + start).wrapping_add(distance);
                        take_row(&mut sums, &elements[at..][..width], how.1);
                    }
                    made.extend(sums.into_iter().map(T::narrow));
                }
            }
            return T::data(made);
        }
        for first in kept.positions() {
            let mut fold = Fold::new(order, reduced.len(), how);
            // Positions of the reduced axes are distances from the first, and may be negative.
            fold.extend(reduced.positions().map(|at| elements[first.wrapping_add(at)].widen()));
            made.push(T::narrow(fold.finish()));
        }
        T::data(made)
    }
    fn of_type<T: Reduced>(elements: &[T], reduction: Reduction, order: Order, parts: [&Layout; 2]) -> Data {
        with_reduction!(T, reduction, how => all(elements, order, how, parts))
    }
    let order = Order::of(axes, layout.rank());
    let [kept, reduced] = layout.split(axes);
    if reduced.is_empty() && matches!(reduction, Reduction::Max | Reduction::Min) {
        return Err(Error::new(ErrorKind::EmptyReduction, "the largest or the smallest of nothing"));
    }
    Ok(with_data!(data, elements => of_type(elements, reduction, order, [&kept, &reduced])))
}
