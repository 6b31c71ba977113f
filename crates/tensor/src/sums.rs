//! Reductions, an element of the result after the other. The positions of a sum are those of its reduced axes in ascending order, whatever
//! the layout; floats are added up in FLOAT64, in the order that is stated here.

use crate::walk::{CopiedAxis, FAR, GoOn, Watch, copy_axes};
use crate::{Axis, Data, DataMut, Element, Error, ErrorKind, Layout, Reduction};
use cembra_runtime::CHAINS;
use cembra_value::with_data;
use multiversion::multiversion;

/// The positions of a block of sums: after so many, chains are joined.
pub(crate) const BLOCK: usize = 1 << 16;

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
    pub(crate) fn extend_slice<T: Copy>(&mut self, mut elements: &[T])
    where
        W: Folded<T>,
    {
        let Some(chains) = &mut self.chains else {
            self.total = elements.iter().fold(self.total, |total, element| (self.combine)(total, W::of(*element)));
            return;
        };
        while !elements.is_empty() {
            if self.at == BLOCK {
                self.total = (self.combine)(self.total, joined(chains, self.combine));
                *chains = [self.neutral; CHAINS];
                self.at = 0;
            }
            let (first, left) = (self.at % CHAINS, elements.len().min(BLOCK - self.at));
            let (next, others) = elements.split_at(if first == 0 { left } else { left.min(CHAINS - first) });
            if first == 0 {
                take_rows(chains, next, self.combine);
            } else {
                take_row(&mut chains[first..], next, self.combine);
            }
            elements = others;
            self.at += next.len();
        }
    }

    /// The next elements are those of another fold over as many, which begin a block, as do those behind them; there are none before that are
    /// in no block yet.
    pub(crate) fn then(&mut self, block: Fold<W, C>) {
        self.total = (self.combine)(self.total, block.finish());
    }

    pub(crate) fn finish(mut self) -> W {
        match &mut self.chains {
            Some(chains) if self.at > 0 => (self.combine)(self.total, joined(chains, self.combine)),
            _ => self.total,
        }
    }
}

/// Sums whose elements lie side by side, each in the order of a [`Fold`] of its own: a row of elements has the next one of each.
struct SumsSideBySide<W, C> {
    neutral: W,
    combine: C,
    /// How many chains each sum has; one where they are added one after the other.
    chains: usize,
    /// How many sums there are.
    width: usize,
    /// A row of sums for each chain.
    rows: Vec<W>,
    /// The position in the block.
    at: usize,
    /// What all blocks before gave.
    totals: Vec<W>,
}

impl<W: Copy, C: Fn(W, W) -> W + Copy> SumsSideBySide<W, C> {
    /// Sums of so many elements each.
    fn new(order: Order, len: usize, (neutral, combine): (W, C)) -> Self {
        let chains = if order == Order::Chains && len > CHAINS { CHAINS } else { 1 };
        SumsSideBySide { neutral, combine, chains, width: 0, rows: Vec::new(), at: 0, totals: Vec::new() }
    }

    /// How many there are at the most: as many as leave room for the elements in a near cache.
    fn most(&self) -> usize {
        if self.chains == 1 { SIDE_BY_SIDE } else { SIDE_BY_SIDE / 16 }
    }

    /// So many new ones.
    fn begin(&mut self, width: usize) {
        (self.width, self.at) = (width, 0);
        self.rows.clear();
        self.rows.resize(width * self.chains, self.neutral);
        self.totals.clear();
        self.totals.resize(width, self.neutral);
    }

    /// The next elements, which begin a slice.
    fn take<T: Copy>(&mut self, elements: &[T])
    where
        W: Folded<T>,
    {
        if self.chains > 1 && self.at == BLOCK {
            self.end_block();
        }
        let row = if self.chains == 1 { 0 } else { self.width * (self.at % CHAINS) };
        take_row(&mut self.rows[row..][..self.width], &elements[..self.width], self.combine);
        self.at += 1;
    }

    /// Adds the chains up, as those of a [`Fold`] are.
    fn end_block(&mut self) {
        let mut left = self.rows.len();
        while left > self.width {
            left /= 2;
            let (to, from) = self.rows.split_at_mut(left);
            for (to, from) in to.iter_mut().zip(from) {
                *to = (self.combine)(*to, *from);
            }
        }
        for (total, sum) in self.totals.iter_mut().zip(&self.rows) {
            *total = (self.combine)(*total, *sum);
        }
        self.rows.fill(self.neutral);
        self.at = 0;
    }

    fn finish(&mut self) -> &[W] {
        if self.chains == 1 {
            return &self.rows;
        }
        if self.at > 0 {
            self.end_block();
        }
        &self.totals
    }
}

/// One row of elements, each of which goes to a sum of its own. The code is compiled for each kind of vectors.
#[multiversion(targets("x86_64+avx512f+avx512dq+avx512vl", "x86_64+avx2"))]
pub(crate) fn take_row<T: Copy, W: Folded<T>, C: Fn(W, W) -> W + Copy>(sums: &mut [W], row: &[T], combine: C) {
    for (sum, element) in sums.iter_mut().zip(row) {
        *sum = combine(*sum, W::of(*element));
    }
}

/// Elements from the first chain on, likewise.
#[multiversion(targets("x86_64+avx512f+avx512dq+avx512vl", "x86_64+avx2"))]
fn take_rows<T: Copy, W: Folded<T>, C: Fn(W, W) -> W + Copy>(chains: &mut [W; CHAINS], elements: &[T], combine: C) {
    let mut own = *chains;
    add_rows(&mut own, elements, combine);
    *chains = own;
}

/// Lines of so many elements, one behind the other: what each gives in the order of [`Order::Chains`], likewise. Of many short ones that
/// takes less time than a [`Fold`] for each.
#[multiversion(targets("x86_64+avx512f+avx512dq+avx512vl", "x86_64+avx2"))]
pub(crate) fn take_lines<T: Copy, W: Folded<T>, C: Fn(W, W) -> W + Copy>(
    elements: &[T],
    length: usize,
    (neutral, combine): (W, C),
    made: &mut [T],
) {
    for (made, line) in made.iter_mut().zip(elements.chunks_exact(length.max(1))) {
        let mut total = neutral;
        if length <= CHAINS {
            total = line.iter().fold(total, |total, element| combine(total, W::of(*element)));
        } else {
            if let Some(whole) = W::of_line(line) {
                *made = whole.narrow();
                continue;
            }
            for block in line.chunks(BLOCK) {
                let mut chains = [neutral; CHAINS];
                add_rows(&mut chains, block, combine);
                total = combine(total, joined(&chains, combine));
            }
        }
        *made = total.narrow();
    }
}

#[inline(always)]
fn add_rows<T: Copy, W: Folded<T>, C: Fn(W, W) -> W + Copy>(chains: &mut [W; CHAINS], elements: &[T], combine: C) {
    let (rows, rest) = elements.as_chunks::<CHAINS>();
    for row in rows {
        for (chain, element) in chains.iter_mut().zip(row) {
            *chain = combine(*chain, W::of(*element));
        }
    }
    for (chain, element) in chains.iter_mut().zip(rest) {
        *chain = combine(*chain, W::of(*element));
    }
}

/// What chains give together: those of the second half go to those of the first, until there is one.
#[inline(always)]
fn joined<W: Copy, C: Fn(W, W) -> W + Copy>(chains: &[W; CHAINS], combine: C) -> W {
    /// Of widths that are known when this is compiled, so that the chains are vectors.
    #[inline(always)]
    fn halve<W: Copy, const WIDTH: usize>(chains: &[W], combine: impl Fn(W, W) -> W) -> [W; WIDTH] {
        std::array::from_fn(
            #[inline(always)]
            |at| combine(chains[at], chains[at + WIDTH]),
        )
    }
    let chains = halve::<W, 32>(chains, combine);
    let chains = halve::<W, 16>(&chains, combine);
    let chains = halve::<W, 8>(&chains, combine);
    let chains = halve::<W, 4>(&chains, combine);
    let chains = halve::<W, 2>(&chains, combine);
    combine(chains[0], chains[1])
}

/// What elements of a type are while they are combined.
pub(crate) trait Folded<T>: Copy + Send + 'static {
    fn of(element: T) -> Self;
    fn narrow(self) -> T;

    /// What elements that lie together give, if there is a shorter way to it than one after the other. There is one at the least.
    #[inline(always)]
    fn of_line(_: &[T]) -> Option<Self> {
        None
    }
}

/// An element that can be reduced: what it is meanwhile, from what on, and how two become one.
pub(crate) trait Reduced: Element {
    /// For sums and products.
    type Wide: Folded<Self>;
    /// For the largest.
    type Above: Folded<Self>;
    /// For the smallest.
    type Below: Folded<Self>;
    const ZERO: Self::Wide;
    const ONE: Self::Wide;
    const LEAST: Self::Above;
    const MOST: Self::Below;
    fn add(a: Self::Wide, b: Self::Wide) -> Self::Wide;
    fn multiply(a: Self::Wide, b: Self::Wide) -> Self::Wide;
    fn larger(a: Self::Above, b: Self::Above) -> Self::Above;
    fn smaller(a: Self::Below, b: Self::Below) -> Self::Below;

    /// What elements have become, as an element.
    #[inline]
    fn narrow<W: Folded<Self>>(folded: W) -> Self {
        folded.narrow()
    }
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

/// How many floats there are between minus infinity and this one, from -0 to +0 one; a NaN is above infinity. So the largest of floats is
/// that of whole numbers, which vectors have an instruction for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Above<U>(U);

/// How many there are between this one and infinity; a NaN is below minus infinity.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Below<U>(U);

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
pub(crate) fn reduce(
    reduction: Reduction,
    axes: &[Axis],
    (data, layout): (&Data, &Layout),
    go_on: GoOn<'_>,
) -> Result<Data, Error> {
    let is_kept = |(axis, _): &(usize, &usize)| !axes.contains(&(*axis as Axis));
    let len = layout.extents().iter().enumerate().filter(is_kept).map(|(_, extent)| extent).product();
    let mut made = Data::zeros(data.scalar(), len)?;
    reduce_into(reduction, axes, (data, layout), made.all_mut(), go_on)?;
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

/// The same, over what is in memory of the same type, unless it is to end before.
pub(crate) fn reduce_into(
    reduction: Reduction,
    axes: &[Axis],
    (data, layout): (&Data, &Layout),
    to: DataMut<'_>,
    go_on: GoOn<'_>,
) -> Result<(), Error> {
    fn all<T: Reduced, W: Folded<T>, C: Fn(W, W) -> W + Copy>(
        elements: &[T],
        order: Order,
        how: (W, C),
        [whole, kept, reduced]: [&Layout; 3],
        (to, go_on): (&mut [T], GoOn<'_>),
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
                        let mut fold = Fold::new(order, length, how);
                        fold.extend_slice(&elements[first..][..length]);
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
            let mut sums = SumsSideBySide::new(order, reduced.len(), how);
            for (first, to) in outer.positions().zip(to.chunks_exact_mut(line.len())) {
                let most = sums.most();
                for (start, to) in (0..line.len()).step_by(most).zip(to.chunks_mut(most)) {
                    sums.begin(to.len());
                    for distance in reduced.positions() {
                        see(to.len())?;
                        sums.take::<T>(&elements[(first + start).wrapping_add(distance)..]);
                    }
                    to.iter_mut().zip(sums.finish()).for_each(|(to, sum)| *to = T::narrow(*sum));
                }
            }
            return Ok(());
        }
        if let Some((outer, [lines, line])) = across(reduced) {
            let mut block = Vec::new();
            for (first, to) in kept.positions().zip(to) {
                let mut fold = Fold::new(order, reduced.len(), how);
                for distance in outer.positions() {
                    let first = first.wrapping_add(distance);
                    let most = ACROSS / line.extent;
                    for start in (0..lines.extent).step_by(most) {
                        let lines = CopiedAxis { extent: most.min(lines.extent - start), ..lines };
                        see(lines.extent * line.extent)?;
                        block.resize(lines.extent * line.extent, elements[first]);
                        let first = first.wrapping_add_signed(start.cast_signed() * lines.from);
                        copy_axes(elements, first, &mut block, &[lines, line]);
                        fold.extend_slice(&block);
                    }
                }
                *to = T::narrow(fold.finish());
            }
            return Ok(());
        }
        for (first, to) in kept.positions().zip(to) {
            let mut fold = Fold::new(order, reduced.len(), how);
            // Positions of the reduced axes are distances from the first, and may be negative.
            let mut distances = reduced.positions();
            while distances.len() > BLOCK {
                see(BLOCK)?;
                fold.extend(distances.by_ref().take(BLOCK).map(|at| W::of(elements[first.wrapping_add(at)])));
            }
            see(distances.len())?;
            fold.extend(distances.map(|at| W::of(elements[first.wrapping_add(at)])));
            *to = T::narrow(fold.finish());
        }
        Ok(())
    }
    fn of_type<T: Reduced>(
        elements: &[T],
        reduction: Reduction,
        order: Order,
        parts: [&Layout; 3],
        (to, go_on): (DataMut<'_>, GoOn<'_>),
    ) -> Result<(), Error> {
        let to = T::of_part(to).filter(|to| to.len() == parts[1].len());
        let to = to.ok_or_else(|| Error::new(ErrorKind::ElementType, "memory that does not fit the elements"))?;
        with_reduction!(T, reduction, how => all(elements, order, how, parts, (to, go_on)))
    }
    let order = Order::of(axes, layout.rank());
    let [kept, reduced] = layout.split(axes);
    if reduced.is_empty() && matches!(reduction, Reduction::Max | Reduction::Min) {
        return Err(Error::new(ErrorKind::EmptyReduction, "the largest or the smallest of nothing"));
    }
    with_data!(data, elements => of_type(elements, reduction, order, [layout, &kept, &reduced], (to, go_on)))
}
