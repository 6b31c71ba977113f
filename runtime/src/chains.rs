//! The order in which floating-point numbers are added up. It is stated here, once, for arrays and tensors, so that neither the width of
//! vectors nor the number of threads changes a bit of a sum.
//!
//! For example, 200 numbers are added in 64 chains. Chain 0 adds the numbers at the positions 0, 64, 128 and 192, one after the other; chain 1 adds
//! those at 1, 65, 129 and 193; chain 63 adds those at 63, 127 and 191. Then chain 32 is added to chain 0, chain 33 to chain 1, and so on up to chain
//! 63, which is added to chain 31. Then the second 16 of the remaining 32 sums are added to the first 16, and so on, until one sum is left. 100,000
//! numbers are two blocks: the first 65,536 numbers and the other 34,464 have 64 chains each, and the second block's sum is added to the first one's.
//! 64 numbers are added one after the other.
//!
//! The rule:
//!
//! 1. Up to [`CHAINS`] positions are combined one after the other ([`is_in_order`]). The following rules are for more than [`CHAINS`] positions.
//! 2. Each [`SUM_BLOCK`] positions are a block, and the last block has what is left ([`sum_blocks`]).
//! 3. Position `i` of a block belongs to chain `i` modulo [`CHAINS`] ([`chain_of`]). A chain begins with the neutral element, which is 0 for
//!    sums, and combines its elements one after the other.
//! 4. The chains of a block are joined by halves ([`Chains::joined`]).
//! 5. The total begins with the neutral element too, and the blocks are combined with it one after the other ([`append_block`]).
//!
//! A missing element has a position, but is not combined. Sums are kept in FLOAT64. Products, minima and maxima are combined in the same order.
//! Machine code adds to the 64 numbers of [`Chains`] itself, and uses the constants of this module.
//!
//! The module does not say which sums have this order. Two kinds of sums have another: sums of groups if each element names its group, and sums of
//! tensors over axes before the last one. Their elements are added one after the other.

use std::ops::Range;

/// The number of chains (accumulators) that a block of numbers is summed in.
pub const CHAINS: usize = 64;

/// The number of elements (positions) in a block of a sum. After the last position of a block, the chains (accumulators) of the block are joined.
pub const SUM_BLOCK: usize = 1 << 16;

// Machine code computes the chain of a row with a mask, and chains are joined by halves.
const _: () = assert!(CHAINS.is_power_of_two() && SUM_BLOCK.is_multiple_of(CHAINS));

/// Returns the chain (accumulator) of the element at `position`, counted from the first element or from the start of the block.
#[must_use]
#[inline(always)]
pub const fn chain_of(position: usize) -> usize {
    position % CHAINS
}

/// Returns true if `len` elements are combined one after the other, in a single accumulator instead of chains.
#[must_use]
#[inline(always)]
pub const fn is_in_order(len: usize) -> bool {
    len <= CHAINS
}

/// Returns the range of positions of each block of `len` elements, in order.
#[inline]
pub fn sum_blocks(len: usize) -> impl Iterator<Item = Range<usize>> {
    // A plain counter, because most groups are one block and should not pay for a general iterator.
    let mut end = 0;
    std::iter::from_fn(move || {
        let start = end;
        end += (len - start).min(SUM_BLOCK);
        (start < len).then_some(start..end)
    })
}

/// A function that combines two numbers to one, such as an addition. Every `Fn(W, W) -> W` implements it.
pub trait Combine<W>: Copy {
    /// Combines `before`, the result so far, with the element `next`.
    fn combine(self, before: W, next: W) -> W;
}

impl<W, C: Fn(W, W) -> W + Copy> Combine<W> for C {
    #[inline(always)]
    fn combine(self, before: W, next: W) -> W {
        self(before, next)
    }
}

/// The addition of FLOAT64 numbers.
#[derive(Clone, Copy, Debug)]
pub struct Addition;

impl Combine<f64> for Addition {
    #[inline(always)]
    fn combine(self, before: f64, next: f64) -> f64 {
        before + next
    }
}

/// Combines `before`, the total of all earlier blocks, with `block`, the result of the next block.
#[inline(always)]
pub fn append_block<W>(before: W, block: W, combine: impl Combine<W>) -> W {
    combine.combine(before, block)
}

/// Combines the element at each index with the sum at the same index.
#[inline(always)]
fn take_each<T: Copy, W: Copy>(sums: &mut [W], elements: &[T], widen: impl Fn(T) -> W, combine: impl Combine<W>) {
    for (sum, element) in sums.iter_mut().zip(elements) {
        *sum = combine.combine(*sum, widen(*element));
    }
}

/// Combines each sum of the second half with the one of the first half, and returns the first half.
#[inline(always)]
fn halve<W: Copy>(sums: &mut [W], combine: impl Combine<W>) -> &mut [W] {
    let (first, second) = sums.split_at_mut(sums.len() / 2);
    take_each(first, second, |sum| sum, combine);
    first
}

/// The chains (accumulators) of one block. They are aligned to a cache line, because a vector that spans two lines takes twice the time.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub struct Chains<W = f64>(pub [W; CHAINS]);

impl Default for Chains {
    fn default() -> Self {
        Chains([0.0; CHAINS])
    }
}

impl<W: Copy> Chains<W> {
    /// Makes chains (accumulators) without elements: each of them is `neutral`, the neutral element.
    #[must_use]
    #[inline(always)]
    pub const fn new(neutral: W) -> Self {
        Chains([neutral; CHAINS])
    }

    /// Combines one element with each chain (accumulator): `element(i)` with chain `i`.
    #[inline(always)]
    pub fn take_row(&mut self, element: impl Fn(usize) -> W, combine: impl Combine<W>) {
        for (at, chain) in self.0.iter_mut().enumerate() {
            *chain = combine.combine(*chain, element(at));
        }
    }

    /// Combines contiguous elements, the first of which belongs to chain 0 (the first accumulator). It is inlined, so that it is compiled for the
    /// caller's vector width.
    #[inline(always)]
    pub fn take_slice<T: Copy>(&mut self, elements: &[T], widen: impl Fn(T) -> W + Copy, combine: impl Combine<W>) {
        let (rows, rest) = elements.as_chunks::<CHAINS>();
        // A local copy can stay in registers.
        let mut own = self.clone();
        for row in rows {
            take_each(&mut own.0, row, widen, combine);
        }
        *self = own;
        take_each(&mut self.0, rest, widen, combine);
    }

    /// Combines the chains (accumulators) to one number: the second half is combined with the first half, until one number is left.
    #[inline(always)]
    pub fn joined(&self, combine: impl Combine<W>) -> W {
        const { assert!(CHAINS == 1 << 6) };
        let mut sums = self.0;
        // Six calls instead of a loop, so that the compiler knows all lengths.
        let sums = halve(&mut sums, combine);
        let sums = halve(sums, combine);
        let sums = halve(sums, combine);
        let sums = halve(sums, combine);
        let sums = halve(sums, combine);
        let sums = halve(sums, combine);
        sums[0]
    }
}

impl Chains {
    /// Returns the sum of all chains (accumulators) and sets them to zero.
    #[inline]
    pub fn take(&mut self) -> f64 {
        #[cfg(target_arch = "x86_64")]
        if std::arch::is_x86_feature_detected!("avx512f") {
            // SAFETY: FEATURE: the processor has it, as was just checked.
            return unsafe { self.take_in_vectors() };
        }
        self.take_by_halves()
    }

    fn take_by_halves(&mut self) -> f64 {
        std::mem::take(self).joined(Addition)
    }

    /// Computes what [`joined`](Chains::joined) computes, with vectors of 8 numbers, which compilers do not find by themselves. The loads
    /// have the width of the stores just before, because a load of another width waits until the store is in the cache.
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

/// Folds `len` elements, all of which are available at once. Up to [`CHAINS`] elements are folded by `in_order`, which is given the neutral
/// element. Otherwise `block` folds each range of positions into chains, beginning with chain 0. The callers' closures skip missing elements
/// and are compiled for the caller's vector width.
#[inline(always)]
pub fn fold_whole<W: Copy>(
    len: usize,
    neutral: W,
    combine: impl Combine<W>,
    in_order: impl FnOnce(W) -> W,
    mut block: impl FnMut(&mut Chains<W>, Range<usize>),
) -> W {
    if is_in_order(len) {
        return in_order(neutral);
    }
    let mut total = neutral;
    for positions in sum_blocks(len) {
        let mut chains = Chains::new(neutral);
        block(&mut chains, positions);
        total = append_block(total, chains.joined(combine), combine);
    }
    total
}

/// A fold of `len` elements that arrive in parts of any size. They are combined in the order that this module defines: in 64 chains (accumulators)
/// per block.
#[derive(Clone, Debug)]
pub struct ChainFold<W, C> {
    neutral: W,
    combine: C,
    len: usize,
    /// True if the elements are combined one after the other, in a single accumulator instead of chains.
    is_in_order: bool,
    /// The position of the next element among all elements of the fold.
    at: usize,
    /// The chains (accumulators) of the current block. If elements are combined in order, the chains that the caller borrowed.
    chains: Option<Chains<W>>,
    /// The result of all finished blocks. If elements are combined in order, the result of all elements so far.
    total: W,
}

/// The accumulators that some consecutive elements of a fold must be combined with.
#[derive(Debug)]
pub enum FoldTarget<'f, W> {
    /// A single number, with which all elements are combined, one after the other.
    InOrder(&'f mut W),
    /// The chains (accumulators) of a row, one per element: the first element is combined with the first chain, and so
    /// on.
    Row(&'f mut [W]),
    /// The chains (accumulators) of a whole block: the elements belong to them in turn, beginning with chain 0.
    Rows(&'f mut Chains<W>),
}

impl<W: Copy, C: Combine<W>> ChainFold<W, C> {
    /// Makes a fold of `len` elements. No element is combined yet.
    #[inline]
    pub fn new(len: usize, neutral: W, combine: C) -> Self {
        ChainFold::from_block(len, 0, neutral, combine)
    }

    /// Makes a fold of some consecutive blocks of `len` elements. `start` is the position of the first element, which must be the start of a block.
    /// [`append_fold`](ChainFold::append_fold) joins blocks that were folded separately. This function is inlined, so that the chains (accumulators)
    /// are constructed in place.
    #[inline(always)]
    pub fn from_block(len: usize, start: usize, neutral: W, combine: C) -> Self {
        debug_assert!(start.is_multiple_of(SUM_BLOCK), "{start} is in the middle of a block");
        let is_in_order = is_in_order(len);
        let chains = (!is_in_order).then(|| Chains::new(neutral));
        ChainFold { neutral, combine, len, is_in_order, at: start, chains, total: neutral }
    }

    /// Makes a fold that combines any number of elements one after the other, in a single accumulator instead of chains.
    #[inline]
    pub fn in_order(neutral: W, combine: C) -> Self {
        ChainFold { neutral, combine, len: usize::MAX, is_in_order: true, at: 0, chains: None, total: neutral }
    }

    /// Divides the next `count` elements into parts and calls `take` for each part. `take` gets the accumulators, and the range of the elements
    /// (numbered from 0) that it must combine with them. This function is inlined, so that the loops of `take` are compiled for the caller's vector
    /// width.
    #[inline(always)]
    pub fn extend_by(&mut self, count: usize, mut take: impl FnMut(FoldTarget<'_, W>, Range<usize>)) {
        let mut from = 0;
        while from < count {
            let (place, most) = match &mut self.chains {
                Some(chains) if !self.is_in_order => match chain_of(self.at) {
                    0 => (FoldTarget::Rows(chains), SUM_BLOCK - self.at % SUM_BLOCK),
                    first => (FoldTarget::Row(&mut chains.0[first..]), CHAINS - first),
                },
                _ => (FoldTarget::InOrder(&mut self.total), count),
            };
            let to = count.min(from + most);
            take(place, from..to);
            self.advance(to - from);
            from = to;
        }
    }

    /// Folds the next `count` elements one by one. `element(i)` returns the `i`th of them, or `None` if that is missing.
    #[inline]
    pub fn extend_each(&mut self, count: usize, mut element: impl FnMut(usize) -> Option<W>) {
        let combine = self.combine;
        self.extend_by(count, |place, part| {
            let mut take = |to: &mut W, at: usize| {
                if let Some(element) = element(at) {
                    *to = combine.combine(*to, element);
                }
            };
            match place {
                FoldTarget::InOrder(total) => part.for_each(|at| take(total, at)),
                FoldTarget::Row(chains) => chains.iter_mut().zip(part).for_each(|(chain, at)| take(chain, at)),
                FoldTarget::Rows(chains) => {
                    part.enumerate().for_each(|(position, at)| take(&mut chains.0[chain_of(position)], at));
                }
            }
        });
    }

    /// Folds the next elements, which are contiguous. It is inlined, so that it is compiled for the caller's vector width.
    #[inline(always)]
    pub fn extend_slice<T: Copy>(&mut self, elements: &[T], widen: impl Fn(T) -> W + Copy) {
        let combine = self.combine;
        self.extend_by(
            elements.len(),
            #[inline(always)]
            |place, part| {
                let elements = &elements[part];
                match place {
                    FoldTarget::InOrder(total) => {
                        *total = elements.iter().fold(*total, |total, element| combine.combine(total, widen(*element)));
                    }
                    FoldTarget::Row(chains) => take_each(chains, elements, widen, combine),
                    FoldTarget::Rows(chains) => chains.take_slice(elements, widen, combine),
                }
            },
        );
    }

    /// Records that the next `count` elements were combined. They must belong to one block, or be in order.
    #[inline(always)]
    fn advance(&mut self, count: usize) {
        self.at += count;
        if !self.is_in_order && self.at.is_multiple_of(SUM_BLOCK) {
            self.end_block();
        }
    }

    fn end_block(&mut self) {
        if let Some(chains) = &mut self.chains {
            self.total = append_block(self.total, chains.joined(self.combine), self.combine);
            *chains = Chains::new(self.neutral);
        }
    }

    /// Returns the chains (accumulators) for a caller, such as machine code, that adds the next `count` elements itself. The caller must add element
    /// `i` of these, counted from 0, to chain [`chain_of`]`(i)`, in ascending order of `i`, and must then call
    /// [`record_added`](ChainFold::record_added). This is for sums only: zero may be added for a missing element, because no sum is -0.
    ///
    /// `None` if the next element does not belong to chain 0, if the elements belong to two blocks, if fewer than `count` elements are left, or if
    /// the whole fold is too short for chains and `count` is not its length.
    #[inline(always)]
    pub fn borrow_chains(&mut self, count: usize) -> Option<&mut Chains<W>> {
        if count > self.len.saturating_sub(self.at) {
            return None;
        }
        if self.is_in_order {
            // Each element has a chain of its own.
            return (count == self.len).then(|| self.chains.insert(Chains::new(self.neutral)));
        }
        let is_of_block = chain_of(self.at) == 0 && self.at % SUM_BLOCK + count <= SUM_BLOCK;
        self.chains.as_mut().filter(|_| is_of_block)
    }

    /// Records that the next `count` elements were added to the borrowed chains.
    #[inline(always)]
    pub fn record_added(&mut self, count: usize) {
        if self.is_in_order {
            let combine = self.combine;
            if let Some(chains) = &self.chains {
                let elements = chains.0.iter().take(count);
                self.total = elements.fold(self.total, |total, element| combine.combine(total, *element));
            }
            self.chains = None;
        }
        self.advance(count);
    }

    /// Combines the total with `block`, the result of the next block. All earlier blocks must be finished.
    #[inline]
    pub fn append_block(&mut self, block: W) {
        self.total = append_block(self.total, block, self.combine);
    }

    /// Combines the total with the next block, which another fold of the same `len` has computed, perhaps on another thread. All earlier
    /// blocks must be finished.
    #[inline]
    pub fn append_fold(&mut self, block: &Self) {
        self.append_block(block.finish());
    }

    /// The fold's result for the elements so far.
    #[inline]
    pub fn finish(&self) -> W {
        match &self.chains {
            Some(chains) if !self.is_in_order && !self.at.is_multiple_of(SUM_BLOCK) => {
                append_block(self.total, chains.joined(self.combine), self.combine)
            }
            _ => self.total,
        }
    }
}

/// Several folds side by side, such as those of a table's columns: each row has the next element of every fold.
#[derive(Clone, Debug)]
pub struct ChainFolds<W, C> {
    neutral: W,
    combine: C,
    is_in_order: bool,
    /// The number of folds.
    width: usize,
    /// The chains (accumulators) of all folds: one row per chain, with that chain of every fold. A single row if
    /// elements are combined in order.
    rows: Vec<W>,
    /// The position of the next row of elements in the current block.
    at: usize,
    /// The results of all finished blocks, one per fold.
    totals: Vec<W>,
}

impl<W: Copy, C: Combine<W>> ChainFolds<W, C> {
    /// Makes an empty list of folds, for folds of `len` elements each. There are no folds until [`begin`](ChainFolds::begin).
    pub const fn new(len: usize, neutral: W, combine: C) -> Self {
        let is_in_order = is_in_order(len);
        ChainFolds { neutral, combine, is_in_order, width: 0, rows: Vec::new(), at: 0, totals: Vec::new() }
    }

    /// Makes an empty list of folds, for folds that combine their elements one after the other, each in a single accumulator.
    pub const fn in_order(neutral: W, combine: C) -> Self {
        ChainFolds::new(0, neutral, combine)
    }

    /// The number of chains (accumulators) per fold: 1 if elements are combined in order.
    pub const fn chains(&self) -> usize {
        if self.is_in_order { 1 } else { CHAINS }
    }

    /// Starts `width` new folds and reuses the memory of earlier ones.
    pub fn begin(&mut self, width: usize) {
        (self.width, self.at) = (width, 0);
        self.rows.clear();
        self.rows.resize(width * self.chains(), self.neutral);
        self.totals.clear();
        self.totals.resize(width, self.neutral);
    }

    /// Returns one accumulator per fold. The caller must combine the elements of the next row with them.
    #[inline]
    pub fn next_row(&mut self) -> &mut [W] {
        if !self.is_in_order && self.at == SUM_BLOCK {
            self.end_block();
        }
        let chain = if self.is_in_order { 0 } else { chain_of(self.at) };
        self.at += 1;
        &mut self.rows[chain * self.width..][..self.width]
    }

    fn end_block(&mut self) {
        let mut sums = &mut self.rows[..];
        while sums.len() > self.width {
            sums = halve(sums, self.combine);
        }
        for (total, block) in self.totals.iter_mut().zip(&*sums) {
            *total = append_block(*total, *block, self.combine);
        }
        self.rows.fill(self.neutral);
        self.at = 0;
    }

    /// Returns the result of each fold for the elements so far.
    pub fn finish(&mut self) -> &[W] {
        if self.is_in_order {
            return &self.rows;
        }
        if self.at > 0 {
            self.end_block();
        }
        &self.totals
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chains_are_joined_by_halves() {
        let mut others = 0;
        for seed in 0..50 {
            // The sizes differ, so that other orders give other sums.
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
