//! Reductions, an element of the result after the other. The positions of a sum are those of its reduced axes in ascending order, whatever
//! the layout. Floats are added in FLOAT64; [`Order`] says which sums have the order of a [`ChainFold`].

use crate::walk::{CopiedAxis, FAR, GoOn, Watch, copy_axes};
use crate::{Axis, Data, DataMut, Element, Layout, Reduction, TensorErrorKind};
use cembra_runtime::{ChainFold, ChainFolds, fold_whole, is_in_order, sum_blocks};
use cembra_value::Error;
use cembra_value::with_data;
use multiversion::multiversion;

/// The sums that are added to side by side, where elements of one sum are far apart.
pub const SIDE_BY_SIDE: usize = 1 << 11;

/// In which order floats are added.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Order {
    /// One after the other.
    InOrder,
    /// In chains, as a [`ChainFold`] says.
    Chains,
}

impl Order {
    /// The order of a sum over some axes of a tensor of `rank` axes.
    #[must_use]
    #[inline]
    pub fn of(axes: &[Axis], rank: usize) -> Order {
        if axes.iter().any(|axis| usize::from(*axis) + 1 == rank) { Order::Chains } else { Order::InOrder }
    }

    /// The fold of `len` elements in this order.
    pub fn fold<W: Copy, C: Fn(W, W) -> W + Copy>(self, len: usize, (neutral, combine): (W, C)) -> ChainFold<W, C> {
        match self {
            Order::InOrder => ChainFold::in_order(neutral, combine),
            Order::Chains => ChainFold::new(len, neutral, combine),
        }
    }

    /// Folds of `len` elements each in this order, whose elements lie side by side.
    fn folds<W: Copy, C: Fn(W, W) -> W + Copy>(self, len: usize, (neutral, combine): (W, C)) -> ChainFolds<W, C> {
        match self {
            Order::InOrder => ChainFolds::in_order(neutral, combine),
            Order::Chains => ChainFolds::new(len, neutral, combine),
        }
    }
}

/// One row of elements, each of which goes to a sum of its own. The code is compiled for each kind of vectors.
#[multiversion(targets("x86_64+avx512f+avx512dq+avx512vl", "x86_64+avx2"))]
pub fn take_row<T: Copy, W: Folded<T>, C: Fn(W, W) -> W + Copy>(sums: &mut [W], row: &[T], combine: C) {
    for (sum, element) in sums.iter_mut().zip(row) {
        *sum = combine(*sum, W::of(*element));
    }
}

/// The next elements of a fold, which lie together, likewise.
#[multiversion(targets("x86_64+avx512f+avx512dq+avx512vl", "x86_64+avx2"))]
pub fn extend<T: Copy, W: Folded<T>, C: Fn(W, W) -> W + Copy>(fold: &mut ChainFold<W, C>, elements: &[T]) {
    fold.extend_slice(elements, W::of);
}

/// Lines of `length` elements, one behind the other: what each gives in the order of [`Order::Chains`], likewise. Of many short ones that
/// takes less time than a [`ChainFold`] for each.
#[multiversion(targets("x86_64+avx512f+avx512dq+avx512vl", "x86_64+avx2"))]
pub fn take_lines<T: Copy, W: Folded<T>, C: Fn(W, W) -> W + Copy>(
    elements: &[T],
    length: usize,
    (neutral, combine): (W, C),
    made: &mut [T],
) {
    for (made, line) in made.iter_mut().zip(elements.chunks_exact(length.max(1))) {
        let whole = if is_in_order(length) { None } else { W::of_line(line) };
        let total = match whole {
            Some(whole) => whole,
            None => fold_whole(
                length,
                neutral,
                combine,
                #[inline(always)]
                |total| line.iter().fold(total, |total, element| combine(total, W::of(*element))),
                #[inline(always)]
                |chains, block| chains.take_slice(&line[block], W::of, combine),
            ),
        };
        *made = total.narrow();
    }
}

/// What elements of a type are while they are combined.
pub trait Folded<T>: Copy + Send + 'static {
    /// An element before it is combined with others.
    fn of(element: T) -> Self;

    /// What elements have become, as an element.
    fn narrow(self) -> T;

    /// What elements that lie together give, if there is a shorter way to it than one after the other. The line has one at the least.
    #[inline(always)]
    fn of_line(_: &[T]) -> Option<Self> {
        None
    }
}

/// An element that can be reduced: what it is meanwhile, from what on, and how two become one.
pub trait Reduced: Element {
    /// For sums and products.
    type Wide: Folded<Self>;
    /// For the largest.
    type Above: Folded<Self>;
    /// For the smallest.
    type Below: Folded<Self>;
    /// The sum of nothing.
    const ZERO: Self::Wide;
    /// The product of nothing.
    const ONE: Self::Wide;
    /// What is below every element.
    const LEAST: Self::Above;
    /// What is above every element.
    const MOST: Self::Below;

    /// The sum of two.
    fn add(a: Self::Wide, b: Self::Wide) -> Self::Wide;

    /// The product of two.
    fn multiply(a: Self::Wide, b: Self::Wide) -> Self::Wide;

    /// The larger of two.
    fn larger(a: Self::Above, b: Self::Above) -> Self::Above;

    /// The smaller of two.
    fn smaller(a: Self::Below, b: Self::Below) -> Self::Below;

    /// What elements have become, as an element.
    #[inline]
    fn narrow<W: Folded<Self>>(folded: W) -> Self {
        folded.narrow()
    }
}

/// Runs code with the element that changes nothing, and how two become one, for a reduction of elements of a type. Truth values are any where they are the larger.
#[macro_export]
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

/// How many floats there are between minus infinity and this one, from -0 to +0 one; a NaN is above infinity. So the largest of floats is
/// that of whole numbers, which vectors have an instruction for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Above<U>(U);

/// How many there are between this one and infinity; a NaN is below minus infinity.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Below<U>(U);

macro_rules! ranked {
    ($($float:ident as $bits:ty, $signed:ty;)*) => { $(
        impl Above<$bits> {
            /// The floats in their order, as whole numbers in theirs; NaNs are at both ends. It is its own inverse.
            #[inline]
            const fn turned(bits: $bits) -> $bits {
                bits ^ ((bits.cast_signed() >> (<$bits>::BITS - 1)).cast_unsigned() >> 1)
            }

            /// The largest of floats' bits as numbers with a sign, and as numbers without: floats without a sign are in the order of their bits,
            /// those with one the other way round, below them or above. None if there is a NaN: one without a sign is above infinity, one
            /// with a sign has the most bits of all.
            #[inline(always)]
            fn largest_bits(line: &[$float]) -> Option<[$bits; 2]> {
                let (mut above, mut high) = (<$signed>::MIN, 0);
                for element in line {
                    let bits = element.to_bits();
                    (above, high) = (above.max(bits.cast_signed()), high.max(bits));
                }
                let is_nan = above > $float::INFINITY.to_bits().cast_signed() || high > $float::NEG_INFINITY.to_bits();
                (!is_nan).then_some([above.cast_unsigned(), high])
            }

            /// The smallest of floats' bits, without a sign.
            #[inline(always)]
            fn smallest_bits(line: &[$float]) -> $bits {
                line.iter().fold(<$bits>::MAX, |low, element| low.min(element.to_bits()))
            }

            /// True for bits of floats that have a sign.
            #[inline]
            const fn have_sign(bits: $bits) -> bool {
                bits.cast_signed() < 0
            }
        }

        impl Folded<$float> for Above<$bits> {
            #[inline]
            fn of(element: $float) -> Above<$bits> {
                const LEAST: $bits = Above::<$bits>::turned($float::NEG_INFINITY.to_bits());
                Above(Above::<$bits>::turned(element.to_bits()).wrapping_sub(LEAST))
            }

            #[inline]
            fn narrow(self) -> $float {
                const LEAST: $bits = Above::<$bits>::turned($float::NEG_INFINITY.to_bits());
                let element = $float::from_bits(Above::<$bits>::turned(self.0.wrapping_add(LEAST)));
                // NaNs are all one, whichever was the first.
                if element.is_nan() { $float::NAN } else { element }
            }

            #[inline(always)]
            fn of_line(line: &[$float]) -> Option<Above<$bits>> {
                let largest = match Above::<$bits>::largest_bits(line) {
                    None => $float::NAN,
                    Some([above, _]) if !Above::<$bits>::have_sign(above) => $float::from_bits(above),
                    Some(_) => $float::from_bits(Above::<$bits>::smallest_bits(line)),
                };
                Some(Folded::<$float>::of(largest))
            }
        }

        impl Folded<$float> for Below<$bits> {
            #[inline]
            fn of(element: $float) -> Below<$bits> {
                const MOST: $bits = $float::INFINITY.to_bits();
                Below(MOST.wrapping_sub(Above::<$bits>::turned(element.to_bits())))
            }

            #[inline]
            fn narrow(self) -> $float {
                const MOST: $bits = $float::INFINITY.to_bits();
                let element = $float::from_bits(Above::<$bits>::turned(MOST.wrapping_sub(self.0)));
                if element.is_nan() { $float::NAN } else { element }
            }

            #[inline(always)]
            fn of_line(line: &[$float]) -> Option<Below<$bits>> {
                let smallest = match Above::<$bits>::largest_bits(line) {
                    None => $float::NAN,
                    Some([_, high]) if Above::<$bits>::have_sign(high) => $float::from_bits(high),
                    Some(_) => $float::from_bits(Above::<$bits>::smallest_bits(line)),
                };
                Some(Folded::<$float>::of(smallest))
            }
        }
    )* };
}

ranked! {
    f32 as u32, i32;
    f64 as u64, i64;
}

macro_rules! reduced {
    ($($ty:ty: $wide:ty, $above:ty, $below:ty; $zero:expr, $one:expr, $least:expr, $most:expr;
        |$x:ident| $narrow:expr, |$a:ident, $b:ident| $add:expr, $multiply:expr, $larger:expr, $smaller:expr;)*) => { $(
        impl Folded<$ty> for $wide {
            #[inline]
            fn of(element: $ty) -> $wide {
                element.into()
            }

            #[inline]
            fn narrow(self) -> $ty {
                let $x = self;
                $narrow
            }
        }

        impl Reduced for $ty {
            type Wide = $wide;
            type Above = $above;
            type Below = $below;
            const ZERO: $wide = $zero;
            const ONE: $wide = $one;
            const LEAST: $above = $least;
            const MOST: $below = $most;

            #[inline]
            fn add($a: $wide, $b: $wide) -> $wide {
                $add
            }

            #[inline]
            fn multiply($a: $wide, $b: $wide) -> $wide {
                $multiply
            }

            #[inline]
            fn larger($a: $above, $b: $above) -> $above {
                $larger
            }

            #[inline]
            fn smaller($a: $below, $b: $below) -> $below {
                $smaller
            }
        }
    )* };
}

reduced! {
    f32: f64, Above<u32>, Below<u32>; 0.0, 1.0, Above(0), Below(0); |x| x as f32, |a, b| a + b, a * b, a.max(b), a.max(b);
    f64: f64, Above<u64>, Below<u64>; 0.0, 1.0, Above(0), Below(0); |x| x, |a, b| a + b, a * b, a.max(b), a.max(b);
    i32: i32, i32, i32; 0, 1, i32::MIN, i32::MAX; |x| x, |a, b| a.wrapping_add(b), a.wrapping_mul(b), a.max(b), a.min(b);
    i64: i64, i64, i64; 0, 1, i64::MIN, i64::MAX; |x| x, |a, b| a.wrapping_add(b), a.wrapping_mul(b), a.max(b), a.min(b);
    bool: bool, bool, bool; false, true, false, true; |x| x, |a, b| a ^ b, a & b, a | b, a & b;
}

/// The elements of a reduction over some axes.
///
/// # Errors
/// The largest or the smallest of nothing, no memory for the result, or `go_on` ends it.
pub fn reduce(
    reduction: Reduction,
    axes: &[Axis],
    data: &Data,
    layout: &Layout,
    go_on: GoOn<'_>,
) -> Result<Data, Error> {
    let is_kept = |(axis, _): &(usize, &usize)| !axes.contains(&(*axis as Axis));
    let len = layout.extents().iter().enumerate().filter(is_kept).map(|(_, extent)| extent).product();
    let mut made = Data::zeros(data.scalar(), len)?;
    reduce_into(reduction, axes, data, layout, made.all_mut(), go_on)?;
    Ok(made)
}

/// How many elements that lie across are copied at a time, at the most, and how many lines of them at the least.
const ACROSS: usize = 1 << 17;
const LINES_ACROSS: usize = 8;

/// The last two axes as they are copied, if elements lie far apart along the last one, and near each other along the one before; and what is
/// left.
fn across(layout: &Layout) -> Option<(Layout, [CopiedAxis; 2])> {
    let (&[.., lines, width], &[.., near, far]) = (layout.extents(), layout.strides()) else { return None };
    let lies_across = far.unsigned_abs() >= FAR && (1..far.unsigned_abs()).contains(&near.unsigned_abs());
    if layout.is_empty() || !lies_across || lines < LINES_ACROSS || width > ACROSS / LINES_ACROSS {
        return None;
    }
    let rank = layout.rank() as Axis;
    let [outer, _] = layout.split(&[rank - 2, rank - 1]);
    let lines = CopiedAxis { extent: lines, from: near, to: width.cast_signed() };
    Some((outer, [lines, CopiedAxis { extent: width, from: far, to: 1 }]))
}

/// The same, written over what is in memory of the same type.
///
/// # Errors
/// As for [`reduce`]; or the memory has another type or another number of elements.
pub fn reduce_into(
    reduction: Reduction,
    axes: &[Axis],
    data: &Data,
    layout: &Layout,
    to: DataMut<'_>,
    go_on: GoOn<'_>,
) -> Result<(), Error> {
    fn all<T: Reduced, W: Folded<T>, C: Fn(W, W) -> W + Copy>(
        elements: &[T],
        order: Order,
        how: (W, C),
        [whole, kept, reduced]: [&Layout; 3],
        to: &mut [T],
        go_on: GoOn<'_>,
    ) -> Result<(), Error> {
        let mut watch = Watch::new(go_on);
        let mut see = |count: usize| watch.see(count);
        if reduced.is_row_major() && !reduced.is_empty() {
            let length = reduced.len();
            match order {
                // All lines are one run.
                Order::Chains if whole.is_row_major() => {
                    let elements = if whole.is_empty() { &[] } else { &elements[whole.offset()..][..whole.len()] };
                    take_lines(elements, length, how, to);
                }
                Order::Chains => {
                    for (first, to) in kept.positions().zip(to.chunks_exact_mut(1)) {
                        see(length)?;
                        take_lines(&elements[first..][..length], length, how, to);
                    }
                }
                Order::InOrder => {
                    for (first, to) in kept.positions().zip(to) {
                        see(length)?;
                        let mut fold = order.fold(length, how);
                        extend::<T, W, C>(&mut fold, &elements[first..][..length]);
                        *to = T::narrow(fold.finish());
                    }
                }
            }
            return Ok(());
        }
        if let Some(last) = kept.rank().checked_sub(1)
            && kept.strides()[last] == 1
            && !kept.is_empty()
        {
            // Sums lie side by side.
            let [outer, line] = kept.split(&[last as Axis]);
            let mut sums = order.folds(reduced.len(), how);
            // As many at a time as leave room for the elements in a near cache.
            let most = if sums.chains() == 1 { SIDE_BY_SIDE } else { SIDE_BY_SIDE / 16 };
            for (first, to) in outer.positions().zip(to.chunks_exact_mut(line.len())) {
                for (start, to) in (0..line.len()).step_by(most).zip(to.chunks_mut(most)) {
                    sums.begin(to.len());
                    for distance in reduced.positions() {
                        see(to.len())?;
                        let row = &elements[(first + start).wrapping_add(distance)..][..to.len()];
                        take_row(sums.next_row(), row, how.1);
                    }
                    to.iter_mut().zip(sums.finish()).for_each(|(to, sum)| *to = T::narrow(*sum));
                }
            }
            return Ok(());
        }
        if let Some((outer, [lines, line])) = across(reduced) {
            let mut block = Vec::new();
            for (first, to) in kept.positions().zip(to) {
                let mut fold = order.fold(reduced.len(), how);
                for distance in outer.positions() {
                    let first = first.wrapping_add(distance);
                    let most = ACROSS / line.extent;
                    for start in (0..lines.extent).step_by(most) {
                        let lines = CopiedAxis { extent: most.min(lines.extent - start), ..lines };
                        see(lines.extent * line.extent)?;
                        block.resize(lines.extent * line.extent, elements[first]);
                        let first = first.wrapping_add_signed(start.cast_signed() * lines.from);
                        copy_axes(elements, first, &mut block, &[lines, line]);
                        extend::<T, W, C>(&mut fold, &block);
                    }
                }
                *to = T::narrow(fold.finish());
            }
            return Ok(());
        }
        for (first, to) in kept.positions().zip(to) {
            let mut fold = order.fold(reduced.len(), how);
            // Positions of the reduced axes are distances from the first, and may be negative.
            let mut distances = reduced.positions();
            let mut next = |_| distances.next().map(|at| W::of(elements[first.wrapping_add(at)]));
            for block in sum_blocks(reduced.len()) {
                see(block.len())?;
                fold.extend_each(block.len(), &mut next);
            }
            *to = T::narrow(fold.finish());
        }
        Ok(())
    }
    fn of_type<T: Reduced>(
        elements: &[T],
        reduction: Reduction,
        order: Order,
        parts: [&Layout; 3],
        to: DataMut<'_>,
        go_on: GoOn<'_>,
    ) -> Result<(), Error> {
        let to = T::of_part(to).filter(|to| to.len() == parts[1].len());
        let to =
            to.ok_or_else(|| Error::tensors(TensorErrorKind::ElementType, "memory that does not fit the elements"))?;
        with_reduction!(T, reduction, how => all(elements, order, how, parts, to, go_on))
    }
    let order = Order::of(axes, layout.rank());
    let [kept, reduced] = layout.split(axes);
    if reduced.is_empty() && matches!(reduction, Reduction::Max | Reduction::Min) {
        return Err(Error::tensors(TensorErrorKind::EmptyReduction, "the largest or the smallest of nothing"));
    }
    with_data!(data, elements => of_type(elements, reduction, order, [layout, &kept, &reduced], to, go_on))
}
