//! Reductions, computed one result element after the other. The terms of a sum are in the row-major order of its
//! reduced axes, for any memory layout. Floats are added in FLOAT64. Some sums use several accumulators (a
//! [`ChainFold`]); [`Order`] says which.

use crate::walk::{CopiedAxis, FAR, StopCheck, VisitCounter, copy_axes};
use crate::{Axis, Data, DataMut, Element, Layout, Reduction, TensorErrorKind};
use cembra_runtime::{ChainFold, ChainFolds, fold_whole, is_in_order, sum_blocks};
use cembra_value::Error;
use cembra_value::with_data;
use multiversion::multiversion;

/// The most sums that are computed at the same time, for reductions in which the terms of one sum are not adjacent in
/// memory.
pub const SIDE_BY_SIDE: usize = 1 << 11;

/// The order in which the floats of a sum are added: one by one, or in interleaved chains (accumulators).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Order {
    /// The floats are added one by one, in the order of the elements.
    InOrder,
    /// The floats are added in several interleaved chains (accumulators), as a [`ChainFold`] does it.
    Chains,
}

impl Order {
    /// The order of addition for a sum over `axes` of a tensor with `rank` axes: in chains (accumulators) if the last axis is reduced, else one by
    /// one.
    #[must_use]
    #[inline]
    pub fn of(axes: &[Axis], rank: usize) -> Order {
        if axes.iter().any(|axis| usize::from(*axis) + 1 == rank) { Order::Chains } else { Order::InOrder }
    }

    /// Begins a fold of `len` elements in this order of addition.
    pub fn fold<W: Copy, C: Fn(W, W) -> W + Copy>(self, len: usize, (neutral, combine): (W, C)) -> ChainFold<W, C> {
        match self {
            Order::InOrder => ChainFold::in_order(neutral, combine),
            Order::Chains => ChainFold::new(len, neutral, combine),
        }
    }

    /// Begins folds of `len` elements each in this order, for several sums that are computed at the same time.
    fn folds<W: Copy, C: Fn(W, W) -> W + Copy>(self, len: usize, (neutral, combine): (W, C)) -> ChainFolds<W, C> {
        match self {
            Order::InOrder => ChainFolds::in_order(neutral, combine),
            Order::Chains => ChainFolds::new(len, neutral, combine),
        }
    }
}

/// Combines each element of `row` with the accumulator in `sums` at the same position. The code is compiled for each
/// vector instruction set.
#[multiversion(targets("x86_64+avx512f+avx512dq+avx512vl", "x86_64+avx2"))]
pub fn take_row<T: Copy, W: Accumulator<T>, C: Fn(W, W) -> W + Copy>(sums: &mut [W], row: &[T], combine: C) {
    for (sum, element) in sums.iter_mut().zip(row) {
        *sum = combine(*sum, W::of(*element));
    }
}

/// Extends a fold by the elements `elements`, which are adjacent in memory. The code is compiled for each vector instruction set.
#[multiversion(targets("x86_64+avx512f+avx512dq+avx512vl", "x86_64+avx2"))]
pub fn extend<T: Copy, W: Accumulator<T>, C: Fn(W, W) -> W + Copy>(fold: &mut ChainFold<W, C>, elements: &[T]) {
    fold.extend_slice(elements, W::of);
}

/// Reduces each line (a run of `length` adjacent elements) of `elements` to one element of `made`, in the order of
/// [`Order::Chains`]. For many short lines this takes less time than a [`ChainFold`] for each. The code is compiled for
/// each vector instruction set.
#[multiversion(targets("x86_64+avx512f+avx512dq+avx512vl", "x86_64+avx2"))]
pub fn take_lines<T: Copy, W: Accumulator<T>, C: Fn(W, W) -> W + Copy>(
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

/// An accumulator for a reduction of elements of type `T`, which may be wider than `T`.
pub trait Accumulator<T>: Copy + Send + 'static {
    /// Converts an element to an accumulator of the reduction.
    fn of(element: T) -> Self;

    /// Converts the accumulator to an element, rounding if the accumulator is wider.
    fn narrow(self) -> T;

    /// Reduces adjacent elements, at least one, in a faster way than element by element; `None` if there is no faster way.
    #[inline(always)]
    fn of_line(_: &[T]) -> Option<Self> {
        None
    }
}

/// An element type that can be reduced. It defines accumulators, their neutral values, and how two accumulators are combined.
pub trait ReducibleElement: Element {
    /// The accumulator of sums and products.
    type Wide: Accumulator<Self>;
    /// The accumulator of the largest element.
    type Above: Accumulator<Self>;
    /// The accumulator of the smallest element.
    type Below: Accumulator<Self>;
    /// The sum of no elements.
    const ZERO: Self::Wide;
    /// The product of no elements.
    const ONE: Self::Wide;
    /// The neutral value of [`larger`](ReducibleElement::larger): no element is below it.
    const LEAST: Self::Above;
    /// The neutral value of [`smaller`](ReducibleElement::smaller): no element is above it.
    const MOST: Self::Below;

    /// Returns the sum of two accumulators.
    fn add(a: Self::Wide, b: Self::Wide) -> Self::Wide;

    /// Returns the product of two accumulators.
    fn multiply(a: Self::Wide, b: Self::Wide) -> Self::Wide;

    /// Returns the larger of two accumulators.
    fn larger(a: Self::Above, b: Self::Above) -> Self::Above;

    /// Returns the smaller of two accumulators.
    fn smaller(a: Self::Below, b: Self::Below) -> Self::Below;

    /// Converts an accumulator of a reduction to an element.
    #[inline]
    fn narrow<W: Accumulator<Self>>(folded: W) -> Self {
        folded.narrow()
    }
}

/// Runs code with `$how`: the neutral value and the combination of a reduction of elements of type `$ty`. For truth values, `Any` is
/// computed as the largest and `All` as the smallest.
#[macro_export]
macro_rules! with_reduction {
    ($ty:ty, $reduction:expr, $how:ident => $result:expr) => {
        match $reduction {
            $crate::Reduction::Sum => {
                let $how =
                    (<$ty as $crate::sums::ReducibleElement>::ZERO, <$ty as $crate::sums::ReducibleElement>::add);
                $result
            }
            $crate::Reduction::Product => {
                let $how =
                    (<$ty as $crate::sums::ReducibleElement>::ONE, <$ty as $crate::sums::ReducibleElement>::multiply);
                $result
            }
            $crate::Reduction::Max | $crate::Reduction::Any => {
                let $how =
                    (<$ty as $crate::sums::ReducibleElement>::LEAST, <$ty as $crate::sums::ReducibleElement>::larger);
                $result
            }
            $crate::Reduction::Min | $crate::Reduction::All => {
                let $how =
                    (<$ty as $crate::sums::ReducibleElement>::MOST, <$ty as $crate::sums::ReducibleElement>::smaller);
                $result
            }
        }
    };
}

/// An integer key for maxima: the number of floats from minus infinity up to a float. +0 is one above -0, and a NaN is
/// above infinity. So the largest float has the largest key, and maxima are computed by the vector instruction for
/// integer maxima.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct MaxKey<U>(U);

/// An integer key for minima: the number of floats from a float up to plus infinity. A NaN is below minus infinity. So
/// the smallest float has the largest key, and minima are computed by the vector instruction for integer maxima.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct MinKey<U>(U);

macro_rules! ranked {
    ($($float:ident as $bits:ty, $signed:ty;)*) => { $(
        impl MaxKey<$bits> {
            /// Maps bits of floats to integers in the order of the floats, with NaNs at both ends, and back.
            #[inline]
            const fn turned(bits: $bits) -> $bits {
                bits ^ ((bits.cast_signed() >> (<$bits>::BITS - 1)).cast_unsigned() >> 1)
            }

            /// The largest of the floats' bits, as signed and as unsigned integers; `None` if there is a NaN. Positive floats are in the
            /// order of their bits, negative ones in the reverse order: below the positive ones if signed, above them if unsigned. A
            /// positive NaN is above infinity, a negative one has the largest bits of all.
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

            /// The smallest of the floats' bits, as unsigned integers.
            #[inline(always)]
            fn smallest_bits(line: &[$float]) -> $bits {
                line.iter().fold(<$bits>::MAX, |low, element| low.min(element.to_bits()))
            }

            /// Returns true for bits of floats that have a minus sign.
            #[inline]
            const fn have_sign(bits: $bits) -> bool {
                bits.cast_signed() < 0
            }
        }

        impl Accumulator<$float> for MaxKey<$bits> {
            #[inline]
            fn of(element: $float) -> MaxKey<$bits> {
                const LEAST: $bits = MaxKey::<$bits>::turned($float::NEG_INFINITY.to_bits());
                MaxKey(MaxKey::<$bits>::turned(element.to_bits()).wrapping_sub(LEAST))
            }

            #[inline]
            fn narrow(self) -> $float {
                const LEAST: $bits = MaxKey::<$bits>::turned($float::NEG_INFINITY.to_bits());
                let element = $float::from_bits(MaxKey::<$bits>::turned(self.0.wrapping_add(LEAST)));
                // NaNs all become one, whichever came first.
                if element.is_nan() { $float::NAN } else { element }
            }

            #[inline(always)]
            fn of_line(line: &[$float]) -> Option<MaxKey<$bits>> {
                let largest = match MaxKey::<$bits>::largest_bits(line) {
                    None => $float::NAN,
                    Some([above, _]) if !MaxKey::<$bits>::have_sign(above) => $float::from_bits(above),
                    Some(_) => $float::from_bits(MaxKey::<$bits>::smallest_bits(line)),
                };
                Some(Accumulator::<$float>::of(largest))
            }
        }

        impl Accumulator<$float> for MinKey<$bits> {
            #[inline]
            fn of(element: $float) -> MinKey<$bits> {
                const MOST: $bits = $float::INFINITY.to_bits();
                MinKey(MOST.wrapping_sub(MaxKey::<$bits>::turned(element.to_bits())))
            }

            #[inline]
            fn narrow(self) -> $float {
                const MOST: $bits = $float::INFINITY.to_bits();
                let element = $float::from_bits(MaxKey::<$bits>::turned(MOST.wrapping_sub(self.0)));
                if element.is_nan() { $float::NAN } else { element }
            }

            #[inline(always)]
            fn of_line(line: &[$float]) -> Option<MinKey<$bits>> {
                let smallest = match MaxKey::<$bits>::largest_bits(line) {
                    None => $float::NAN,
                    Some([_, high]) if MaxKey::<$bits>::have_sign(high) => $float::from_bits(high),
                    Some(_) => $float::from_bits(MaxKey::<$bits>::smallest_bits(line)),
                };
                Some(Accumulator::<$float>::of(smallest))
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
        impl Accumulator<$ty> for $wide {
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

        impl ReducibleElement for $ty {
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
    f32: f64, MaxKey<u32>, MinKey<u32>; 0.0, 1.0, MaxKey(0), MinKey(0); |x| x as f32, |a, b| a + b, a * b, a.max(b), a.max(b);
    f64: f64, MaxKey<u64>, MinKey<u64>; 0.0, 1.0, MaxKey(0), MinKey(0); |x| x, |a, b| a + b, a * b, a.max(b), a.max(b);
    i32: i32, i32, i32; 0, 1, i32::MIN, i32::MAX; |x| x, |a, b| a.wrapping_add(b), a.wrapping_mul(b), a.max(b), a.min(b);
    i64: i64, i64, i64; 0, 1, i64::MIN, i64::MAX; |x| x, |a, b| a.wrapping_add(b), a.wrapping_mul(b), a.max(b), a.min(b);
    bool: bool, bool, bool; false, true, false, true; |x| x, |a, b| a ^ b, a & b, a | b, a & b;
}

/// Reduces `axes` of a tensor, and returns the elements of the result.
///
/// # Errors
/// If a maximum or minimum of no elements is requested, there is no memory for the result, or `go_on` ends the work.
pub fn reduce(
    reduction: Reduction,
    axes: &[Axis],
    data: &Data,
    layout: &Layout,
    go_on: StopCheck<'_>,
) -> Result<Data, Error> {
    let is_kept = |(axis, _): &(usize, &usize)| !axes.contains(&(*axis as Axis));
    let len = layout.extents().iter().enumerate().filter(is_kept).map(|(_, extent)| extent).product();
    let mut made = Data::zeros(data.scalar(), len)?;
    reduce_into(reduction, axes, data, layout, made.all_mut(), go_on)?;
    Ok(made)
}

/// The most elements that are copied at a time, and the fewest lines for which elements are copied. Elements are copied
/// into another order before they are reduced if the elements of a line (along the last axis) are far apart in memory.
const ACROSS: usize = 1 << 17;
const LINES_ACROSS: usize = 8;

/// If elements are far apart along the last axis and near each other along the axis before it, returns the layout of
/// the other axes, and these two axes as they are copied; else `None`.
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

/// Reduces `axes` of a tensor, and writes the elements of the result to memory of the element type.
///
/// # Errors
/// The errors of [`reduce`]; or the memory does not have the type or the number of elements of the result.
pub fn reduce_into(
    reduction: Reduction,
    axes: &[Axis],
    data: &Data,
    layout: &Layout,
    to: DataMut<'_>,
    go_on: StopCheck<'_>,
) -> Result<(), Error> {
    fn all<T: ReducibleElement, W: Accumulator<T>, C: Fn(W, W) -> W + Copy>(
        elements: &[T],
        order: Order,
        how: (W, C),
        [whole, kept, reduced]: [&Layout; 3],
        to: &mut [T],
        go_on: StopCheck<'_>,
    ) -> Result<(), Error> {
        let mut watch = VisitCounter::new(go_on);
        let mut see = |count: usize| watch.see(count);
        if reduced.is_row_major() && !reduced.is_empty() {
            let length = reduced.len();
            match order {
                // All lines together are one run of elements.
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
            // The elements of neighbouring sums are adjacent.
            let [outer, line] = kept.split(&[last as Axis]);
            let mut sums = order.folds(reduced.len(), how);
            // At a time, as many sums as leave room for the elements in a near cache.
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
    fn of_type<T: ReducibleElement>(
        elements: &[T],
        reduction: Reduction,
        order: Order,
        parts: [&Layout; 3],
        to: DataMut<'_>,
        go_on: StopCheck<'_>,
    ) -> Result<(), Error> {
        let to = T::of_part(to).filter(|to| to.len() == parts[1].len());
        let to = to.ok_or_else(|| {
            Error::tensors(TensorErrorKind::ElementType, "the memory is not of the type and size of the elements")
        })?;
        with_reduction!(T, reduction, how => all(elements, order, how, parts, to, go_on))
    }
    let order = Order::of(axes, layout.rank());
    let [kept, reduced] = layout.split(axes);
    if reduced.is_empty() && matches!(reduction, Reduction::Max | Reduction::Min) {
        return Err(Error::tensors(
            TensorErrorKind::EmptyReduction,
            "an axis without elements has no largest or smallest element",
        ));
    }
    with_data!(data, elements => of_type(elements, reduction, order, [layout, &kept, &reduced], to, go_on))
}
