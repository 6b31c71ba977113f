//! Products of a matrix and a vector, with any labels. A line is a row or a column of the matrix: an array of elements
//! that lie at equal distances in memory. Either each line is multiplied by one element of the vector and added to the
//! result, or each line is multiplied by the vector element by element and summed. Lines are read one after the other,
//! or a few at a time; sums stay in registers or the nearest cache. The order of additions depends only on the number
//! of elements, and is the same for all instruction sets.

use super::number::Number;
use cembra_runtime::{LINE, prefetch};
use cembra_tensor::ProductPlan;
use multiversion::multiversion;

/// The number of sums in one vector register, which is the fewest sums that are computed at the same time.
const LANES: usize = *ProductPlan::IN_REGISTERS.start();

/// The number of elements of a line (array of elements) that are added to sums in registers at a time.
const TILE: usize = *ProductPlan::IN_REGISTERS.end();

/// The most vector registers that hold sums.
const REGISTERS: usize = TILE / LANES;

// Otherwise lines (arrays of elements) would be split in another way than plans assume.
const _: () = assert!(TILE == REGISTERS * LANES);

/// The number of lines (arrays of elements) that are read in parallel: more than one, because memory delivers more from
/// several addresses than from one; few, because the processor can track only a few.
const TOGETHER: usize = 8;

/// The fewest elements per line (array of elements) for which a dot product uses all registers of sums, and not only
/// two.
const LONG: usize = 1024;

/// The fewest elements per line (array of elements) for which dot products read one line at a time. Shorter lines are
/// read from two places alternately.
const FILLING: usize = 128;

/// The fewest bytes of memory for which prefetching is worthwhile, because that much memory does not fit a near cache.
const FETCHED: usize = 1 << 18;

/// The distance, in bytes, between the elements that are read and those that are prefetched.
const AHEAD: usize = 4096;

/// The number of elements that are copied at a time, if the elements of a line (array of elements) are not contiguous.
const PIECE: usize = 256;

/// The position after `count` steps from `first`.
fn position(first: usize, count: usize, step: isize) -> usize {
    first.wrapping_add_signed(count.cast_signed().wrapping_mul(step))
}

/// A line of a matrix, or a vector: an array of elements that lie at equal distances in memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line<'d, T> {
    /// The memory that contains the line's elements.
    pub(super) elements: &'d [T],
    /// The position in memory of the line's first element.
    pub(super) first: usize,
    /// The distance from one element of the line to the next, in elements.
    pub(super) stride: isize,
}

impl<'d, T: Copy> Line<'d, T> {
    fn position(&self, at: usize) -> usize {
        position(self.first, at, self.stride)
    }

    fn from(self, at: usize) -> Line<'d, T> {
        Line { first: self.position(at), ..self }
    }

    /// Returns the element at index `at` of the line.
    pub(super) fn get(&self, at: usize) -> T {
        self.elements[self.position(at)]
    }

    /// Returns the first `count` elements of the line as a slice; `None` if they are not contiguous.
    pub(super) fn dense(&self, count: usize) -> Option<&'d [T]> {
        (self.stride == 1).then(|| &self.elements[self.first..][..count])
    }

    /// The first `to.len()` elements of the line: borrowed if they are contiguous, else copied to `to`.
    #[inline(always)]
    fn dense_or_copied<'c>(&self, to: &'c mut [T]) -> &'c [T]
    where
        'd: 'c,
    {
        if self.stride == 1 {
            return &self.elements[self.first..][..to.len()];
        }
        self.copy(to);
        to
    }

    /// Copies the first `to.len()` elements of the line to `to`.
    #[inline(always)]
    fn copy(&self, to: &mut [T]) {
        match (self.stride, to.len()) {
            (_, 0) => {}
            (1, count) => to.copy_from_slice(&self.elements[self.first..][..count]),
            (-1, count) => {
                let elements = &self.elements[self.position(count - 1)..][..count];
                to.iter_mut().zip(elements.iter().rev()).for_each(|(to, element)| *to = *element);
            }
            (stride, _) => {
                let mut at = self.first;
                for to in to {
                    *to = self.elements[at];
                    at = at.wrapping_add_signed(stride);
                }
            }
        }
    }
}

/// The lines of a matrix: arrays of elements whose first elements lie at equal distances in memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lines<'d, T> {
    /// The first of the lines (arrays of elements).
    pub(super) line: Line<'d, T>,
    /// The distance from the start of one line (array of elements) to the start of the next, in elements.
    pub(super) step: isize,
}

impl<'d, T: Copy> Lines<'d, T> {
    /// Returns the line (array of elements) with index `at`.
    pub(super) fn line(&self, at: usize) -> Line<'d, T> {
        Line { first: position(self.line.first, at, self.step), ..self.line }
    }

    fn from(self, at: usize) -> Lines<'d, T> {
        Lines { line: self.line(at), ..self }
    }
}

/// Adds `count` lines (arrays of elements) to `sums`, one after the other, each multiplied by its factor from
/// `factors`: element `i` of each line to sum `i`.
pub(super) fn add_lines<T: Number>(sums: &mut [T::Wide], lines: Lines<'_, T>, factors: Line<'_, T>, count: usize) {
    if let Some(factors) = factors.dense(count) {
        add(sums, lines, factors);
        return;
    }
    let mut copied = [T::default(); PIECE];
    for start in (0..count).step_by(PIECE) {
        let copied = &mut copied[..PIECE.min(count - start)];
        factors.from(start).copy(copied);
        add(sums, lines.from(start), copied);
    }
}

fn add<T: Number>(sums: &mut [T::Wide], lines: Lines<'_, T>, factors: &[T]) {
    let Lines { line, step } = lines;
    if line.stride == 1 {
        add_wide::<T>(sums, (line.elements, line.first, step), factors);
        return;
    }
    let mut copied = [T::default(); TOGETHER * PIECE];
    for (group, factors) in factors.chunks(TOGETHER).enumerate() {
        for (piece, sums) in sums.chunks_mut(PIECE).enumerate() {
            for (at, copied) in copied.chunks_exact_mut(sums.len()).take(factors.len()).enumerate() {
                lines.line(group * TOGETHER + at).from(piece * PIECE).copy(copied);
            }
            add_wide::<T>(sums, (&copied, 0, sums.len().cast_signed()), factors);
        }
    }
}

/// Contiguous lines (arrays of elements): their memory, the position of the first line in it, and the distance from the
/// start of one line to the start of the next.
type Dense<'d, T> = (&'d [T], usize, isize);

/// Adds contiguous lines (arrays of elements) times their factors to `sums`. Several lines are read at a time, so the
/// sums are read only once for all of these lines. While they are added, the elements of each line that are added next
/// are prefetched.
#[multiversion(targets("x86_64+avx512f+avx512dq+avx512vl", "x86_64+avx2"))]
fn add_wide<T: Number>(sums: &mut [T::Wide], (elements, first, step): Dense<'_, T>, factors: &[T]) {
    let is_long = sums.len() >= TOGETHER * TILE;
    let (tiles, rest) = sums.as_chunks_mut::<TILE>();
    let tiled = tiles.len() * TILE;
    // Memory to prefetch: the next `TILE` elements of these lines; or, if lines are short, the same elements of the
    // next lines.
    let later = if is_long { TILE.cast_signed() } else { step * TOGETHER.cast_signed() };
    let later = Some(later).filter(|_| size_of_val(elements) >= FETCHED);
    for (group, factors) in factors.chunks(TOGETHER).enumerate() {
        let first = position(first, group * TOGETHER, step);
        for (tile, sums) in tiles.iter_mut().enumerate() {
            let mut at = first + tile * TILE;
            let (registers, _) = sums.as_chunks_mut::<LANES>();
            let mut added = [[T::Wide::default(); LANES]; REGISTERS];
            added.copy_from_slice(registers);
            for factor in factors {
                let line = &elements[at..][..TILE];
                if let Some(later) = later {
                    fetch(line, later);
                }
                for (of, sums) in added.iter_mut().enumerate() {
                    for (sum, element) in sums.iter_mut().zip(&line[of * LANES..][..LANES]) {
                        *sum = T::add_product(*sum, *element, *factor);
                    }
                }
                at = at.wrapping_add_signed(step);
            }
            registers.copy_from_slice(&added);
        }
    }
    let width = rest.len();
    let mut at = first.wrapping_add(tiled);
    for factor in factors.iter().filter(|_| width > 0) {
        for (sum, element) in rest.iter_mut().zip(&elements[at..][..width]) {
            *sum = T::add_product(*sum, *element, *factor);
        }
        at = at.wrapping_add_signed(step);
    }
}

/// Blocks of short lines (arrays of elements). The lines of a block are multiplied by factors and added to one line of
/// the result.
pub(super) struct Blocks<'d, T> {
    /// The first line (array of elements) of the first block.
    pub(super) line: Line<'d, T>,
    /// The distance from the start of one line to the start of the next line of the same block, in elements.
    pub(super) step: isize,
    /// The number of elements per line, in the range [`ProductPlan::IN_REGISTERS`].
    pub(super) width: usize,
    /// The factors of the first block, one per line (array of elements). They must be contiguous.
    pub(super) factors: Line<'d, T>,
    /// The number of lines (arrays of elements) that are added in each block.
    pub(super) count: usize,
    /// The number of blocks, which is the number of results.
    pub(super) blocks: usize,
    /// Three distances from one block to the next, in elements: from its first line to the next block's first line,
    /// from its first factor to the next, and from its result to the next.
    pub(super) steps: [isize; 3],
}

/// Computes the sum of each block of lines (contiguous arrays of elements): each line is multiplied by its factor and
/// added. The sum of a block is contiguous in `to`; the sum of the first block begins at position `first`.
pub(super) fn sum_blocks<T: Number>(to: &mut [T], first: usize, blocks: &Blocks<'_, T>) {
    match blocks.width.div_ceil(LANES) {
        1 => in_registers::<T, 1>(to, first, blocks),
        2 => in_registers::<T, 2>(to, first, blocks),
        3 => in_registers::<T, 3>(to, first, blocks),
        4 => in_registers::<T, 4>(to, first, blocks),
        5 => in_registers::<T, 5>(to, first, blocks),
        6 => in_registers::<T, 6>(to, first, blocks),
        7 => in_registers::<T, 7>(to, first, blocks),
        _ => in_registers::<T, REGISTERS>(to, first, blocks),
    }
}

/// Computes the sums of blocks in `N` registers. If the width is not a multiple of a register, the last two registers
/// overlap.
#[multiversion(targets("x86_64+avx512f+avx512dq+avx512vl", "x86_64+avx2"))]
fn in_registers<T: Number, const N: usize>(to: &mut [T], first: usize, blocks: &Blocks<'_, T>) {
    let Blocks { line, step, width, factors, count, blocks, steps } = *blocks;
    let places: [usize; N] = std::array::from_fn(|at| if at + 1 == N { width - LANES } else { at * LANES });
    let mut starts = [line.first, factors.first, first];
    for _ in 0..blocks {
        let mut sums = [[T::Wide::default(); LANES]; N];
        let mut at = starts[0];
        for factor in &factors.elements[starts[1]..][..count] {
            let line = &line.elements[at..][..width];
            for (sums, place) in sums.iter_mut().zip(places) {
                for (sum, element) in sums.iter_mut().zip(&line[place..][..LANES]) {
                    *sum = T::add_product(*sum, *element, *factor);
                }
            }
            at = at.wrapping_add_signed(step);
        }
        let to = &mut to[starts[2]..][..width];
        for (sums, place) in sums.iter().zip(places) {
            for (to, sum) in to[place..][..LANES].iter_mut().zip(sums) {
                *to = T::narrow(*sum);
            }
        }
        starts = std::array::from_fn(|of| starts[of].wrapping_add_signed(steps[of]));
    }
}

/// Adds dot products to `sums`: to `sums[i]`, the dot product of line `i` of `a` and line `i` of `b`. A line is an
/// array of `count` elements.
pub(super) fn add_dots<T: Number>(sums: &mut [T::Wide], [a, b]: [Lines<'_, T>; 2], count: usize) {
    if a.line.stride == 1 && b.line.stride == 1 {
        add_dots_dense(sums, [a, b], count);
        return;
    }
    add_dots_copied(sums, [a, b], count);
}

/// Adds dot products as [`add_dots`] does, for lines (arrays of elements) that are not contiguous. They are copied to
/// contiguous memory, `LONG` elements at a time.
#[multiversion(targets("x86_64+avx512f+avx512dq+avx512vl", "x86_64+avx2"))]
fn add_dots_copied<T: Number>(sums: &mut [T::Wide], [a, b]: [Lines<'_, T>; 2], count: usize) {
    let (mut a_copied, mut b_copied) = ([T::default(); LONG], [T::default(); LONG]);
    for (at, sum) in sums.iter_mut().enumerate() {
        let (a, b) = (a.line(at), b.line(at));
        for start in (0..count).step_by(LONG) {
            let count = LONG.min(count - start);
            let a = a.from(start).dense_or_copied(&mut a_copied[..count]);
            let b = b.from(start).dense_or_copied(&mut b_copied[..count]);
            let added = if count < LONG { in_lanes::<T, 2>(a, b) } else { in_lanes::<T, REGISTERS>(a, b) };
            *sum = T::add_sums(*sum, added);
        }
    }
}

#[multiversion(targets("x86_64+avx512f+avx512dq+avx512vl", "x86_64+avx2"))]
fn add_dots_dense<T: Number>(sums: &mut [T::Wide], lines: [Lines<'_, T>; 2], count: usize) {
    if count < FILLING {
        add_in_halves(sums, lines, count);
    } else if count < LONG {
        add_one_by_one::<T, 2>(sums, lines, count);
    } else {
        add_one_by_one::<T, REGISTERS>(sums, lines, count);
    }
}

/// Adds dot products of short lines (arrays of elements) as [`add_dots`] does, alternating between the first and the
/// second half of the sums: memory delivers more from two places than from one. For lines that do not fill whole
/// vectors, prefetching costs more than it gains.
#[inline(always)]
fn add_in_halves<T: Number>(sums: &mut [T::Wide], [a, b]: [Lines<'_, T>; 2], count: usize) {
    let half = sums.len() / 2;
    let (front, back) = sums.split_at_mut(half);
    let add = |sum: &mut T::Wide, [a_first, b_first]: [usize; 2]| {
        let (a, b) = (&a.line.elements[a_first..][..count], &b.line.elements[b_first..][..count]);
        *sum = T::add_sums(*sum, in_lanes::<T, 2>(a, b));
    };
    let mut fronts = [a.line.first, b.line.first];
    let mut backs = [a.line(half).first, b.line(half).first];
    let next = |firsts: [usize; 2]| [firsts[0].wrapping_add_signed(a.step), firsts[1].wrapping_add_signed(b.step)];
    for (front, back) in front.iter_mut().zip(back.iter_mut()) {
        add(front, fronts);
        add(back, backs);
        (fronts, backs) = (next(fronts), next(backs));
    }
    for sum in &mut back[half..] {
        add(sum, backs);
        backs = next(backs);
    }
}

/// Adds dot products as [`add_dots`] does, one line (array of elements) at a time, and prefetches the lines that are
/// read some iterations later.
#[inline(always)]
fn add_one_by_one<T: Number, const N: usize>(sums: &mut [T::Wide], [a, b]: [Lines<'_, T>; 2], count: usize) {
    let ahead = |lines: &Lines<'_, T>| {
        let is_far = lines.step != 0 && size_of_val(lines.line.elements) >= FETCHED;
        let lines_ahead = (AHEAD / size_of::<T>()).div_ceil(count.max(1));
        is_far.then(|| lines.step * lines_ahead.cast_signed())
    };
    let (a_later, b_later) = (ahead(&a), ahead(&b));
    let (mut a_first, mut b_first) = (a.line.first, b.line.first);
    for sum in sums {
        let (a_line, b_line) = (&a.line.elements[a_first..][..count], &b.line.elements[b_first..][..count]);
        *sum = T::add_sums(*sum, in_tiles::<T, N>(a_line, b_line, [a_later, b_later]));
        (a_first, b_first) = (a_first.wrapping_add_signed(a.step), b_first.wrapping_add_signed(b.step));
    }
}

/// Prefetches as many elements as `line` (an array of elements) has. They lie `behind` elements after the elements of
/// `line`.
#[inline(always)]
fn fetch<T>(line: &[T], behind: isize) {
    for start in (0..line.len()).step_by(LINE / size_of::<T>()) {
        prefetch(line.as_ptr().wrapping_add(start).wrapping_offset(behind));
    }
}

/// The dot product of `a` and `b`, with `N` registers of partial sums. With more registers, an addition waits less for
/// the previous one, but more registers are added at the end.
#[inline(always)]
fn in_lanes<T: Number, const N: usize>(a: &[T], b: &[T]) -> T::Wide {
    added_to([[T::Wide::default(); LANES]; N], a, b)
}

/// The dot product of `a` and `b`, as [`in_lanes`] computes it. Meanwhile, memory is prefetched for each of the two
/// operands that has a distance in `later`: the elements at this distance after those that are multiplied.
#[inline(always)]
fn in_tiles<T: Number, const N: usize>(a: &[T], b: &[T], later: [Option<isize>; 2]) -> T::Wide {
    let mut registers = [[T::Wide::default(); LANES]; N];
    let ((a_tiles, a), (b_tiles, b)) = (a.as_chunks::<TILE>(), b.as_chunks::<TILE>());
    for (a, b) in a_tiles.iter().zip(b_tiles) {
        for (tile, later) in [a, b].into_iter().zip(later) {
            if let Some(later) = later {
                fetch(tile, later);
            }
        }
        let (a, b) = (a.as_chunks::<LANES>().0.as_chunks::<N>().0, b.as_chunks::<LANES>().0.as_chunks::<N>().0);
        for (a, b) in a.iter().zip(b) {
            for ((register, a), b) in registers.iter_mut().zip(a).zip(b) {
                add_products::<T>(register, a, b);
            }
        }
    }
    added_to(registers, a, b)
}

/// Adds the products of the elements of `a` and `b` to `registers` of partial sums, and returns the sum of all partial
/// sums.
#[inline(always)]
fn added_to<T: Number, const N: usize>(mut registers: [[T::Wide; LANES]; N], a: &[T], b: &[T]) -> T::Wide {
    let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<LANES>(), b.as_chunks::<LANES>());
    let ((a, a_others), (b, b_others)) = (a.as_chunks::<N>(), b.as_chunks::<N>());
    for (a, b) in a.iter().zip(b) {
        for ((register, a), b) in registers.iter_mut().zip(a).zip(b) {
            add_products::<T>(register, a, b);
        }
    }
    let (mut sums, others) = registers.split_first().map_or_else(Default::default, |(first, others)| (*first, others));
    for register in others {
        for (sum, other) in sums.iter_mut().zip(register) {
            *sum = T::add_sums(*sum, *other);
        }
    }
    for (a, b) in a_others.iter().zip(b_others) {
        add_products::<T>(&mut sums, a, b);
    }
    let sum = sums.into_iter().fold(T::Wide::default(), T::add_sums);
    a_rest.iter().zip(b_rest).fold(sum, |sum, (a, b)| T::add_product(sum, *a, *b))
}

#[inline(always)]
fn add_products<T: Number>(sums: &mut [T::Wide; LANES], a: &[T; LANES], b: &[T; LANES]) {
    for ((sum, a), b) in sums.iter_mut().zip(a).zip(b) {
        *sum = T::add_product(*sum, *a, *b);
    }
}
