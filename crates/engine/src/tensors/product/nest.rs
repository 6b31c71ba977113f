//! Products that are not products of two matrices, computed by nested loops: products of elements, of vectors, and of a
//! matrix and a vector. The innermost loop runs over a line: an array of elements that lie at equal distances in
//! memory. Sums are computed in a wider type, in an order that depends only on labels and layouts.

use super::across::{self, TransposedLoops};
use super::number::{Memory, Number};
use super::vectors::{Blocks, Line, Lines, add_dots, add_lines, sum_blocks};
use cembra_tensor::walk::{VisitCounter, WalkedAxis, try_walk};
use cembra_tensor::{FusedLabels, ProductPlan};
use cembra_value::Error;
use multiversion::multiversion;
use smallvec::SmallVec;

/// The most elements of the result whose sums are computed at the same time.
const CHUNK: usize = ProductPlan::CHUNK;

/// The least distance, in elements, from one line (array of elements) of a sum to the next for which other lines that
/// lie between these two are processed in the same loop, although they belong to other sums.
const FAR: usize = 512;

/// The number of lines (arrays of elements) that are added to one sum before lines are added to the next sum.
const IN_TURN: usize = 8;

/// The approximate number of element products between two checks for cancellation.
const AT_ONCE: usize = 1 << 20;
/// If factors are copied to be contiguous, each copy except the last has a multiple of this number of factors.
const FACTORS: usize = 256;

/// The most elements of one sum that are added without a check for cancellation.
const LONG_LINE: usize = 1 << 24;

/// Adds the products of the elements of `a` and `b` to `sums`: element `i` of `a` times element `i` of `b` to sum `i`.
/// The code is compiled for several instruction sets.
#[multiversion(targets("x86_64+avx512f+avx512dq+avx512vl", "x86_64+avx2"))]
fn add_products<T: Number>(sums: &mut [T::Wide], a: &Line<'_, T>, b: &Line<'_, T>) {
    let count = sums.len();
    match ((a.dense(count), a.stride), (b.dense(count), b.stride)) {
        ((Some(a), _), (Some(b), _)) => {
            for ((sum, a), b) in sums.iter_mut().zip(a).zip(b) {
                *sum = T::add_product(*sum, *a, *b);
            }
        }
        ((Some(dense), _), (None, 0)) => add_scaled::<T>(sums, dense, b.get(0)),
        ((None, 0), (Some(dense), _)) => add_scaled::<T>(sums, dense, a.get(0)),
        _ => {
            for (at, sum) in sums.iter_mut().enumerate() {
                *sum = T::add_product(*sum, a.get(at), b.get(at));
            }
        }
    }
}

#[inline(always)]
fn add_scaled<T: Number>(sums: &mut [T::Wide], line: &[T], factor: T) {
    for (sum, element) in sums.iter_mut().zip(line) {
        *sum = T::add_product(*sum, *element, factor);
    }
}

/// Computes a product by nested loops. The result begins at the start of `to`; each sum begins with `zero`.
pub(super) fn nest<T: Number>(
    factors: [Memory<'_, T>; 2],
    to: &mut [T],
    kept: &[FusedLabels],
    summed: &[FusedLabels],
    inner: usize,
    zero: T::Wide,
    watch: &mut VisitCounter<'_>,
) -> Result<(), Error> {
    match (kept.get(inner), inner.checked_sub(kept.len()).and_then(|at| summed.get(at))) {
        (Some(line), _) => {
            let outer = axes(kept, Some(inner));
            let is_shared = |of: usize| line.strides[of] == 0;
            match summed.split_last() {
                Some((terms, others)) if is_shared(0) != is_shared(1) => {
                    let [matrix, vector] = if is_shared(0) { [1, 0] } else { [0, 1] };
                    let sum = SumLoops { outer: &axes(others, None), terms };
                    scaled_lines(factors, to, &outer, line, sum, [matrix, vector], watch)
                }
                _ => elements(factors, to, &outer, line, &axes(summed, None), zero, watch),
            }
        }
        (None, Some(line)) => lines(factors, to, kept, &axes(summed, Some(inner - kept.len())), line, watch),
        // All labels have extent 1.
        (None, None) => {
            let [(a, a_first), (b, b_first)] = factors;
            to[0] = T::narrow(T::add_product(zero, a[a_first], b[b_first]));
            Ok(())
        }
    }
}

/// The loops around a sum. They begin at the positions `starts`, and run over the axes `outer`, over `rows` that are
/// computed together, and over `line` (the innermost loop).
#[derive(Clone, Copy)]
struct Loops<'l> {
    starts: [usize; 3],
    outer: &'l [WalkedAxis<3>],
    rows: WalkedAxis<3>,
    line: &'l FusedLabels,
}

/// The loops of a sum: the axes `outer`, and the terms that are added in the innermost loop.
#[derive(Clone, Copy)]
struct SumLoops<'l> {
    outer: &'l [WalkedAxis<3>],
    terms: &'l FusedLabels,
}

/// The axis of an operand with a single row: one index, and no distances.
const ONE_ROW: WalkedAxis<3> = (1, [0; 3]);

type Axes3 = SmallVec<[WalkedAxis<3>; 6]>;

fn axes(runs: &[FusedLabels], without: Option<usize>) -> Axes3 {
    let runs = runs.iter().enumerate().filter(|(at, _)| Some(*at) != without);
    runs.map(|(_, run)| (run.extent, run.strides)).collect()
}

/// Computes a product by adding lines (arrays of elements) of the operand with index `matrix` to the result, each line
/// times an element of the operand with index `vector`. The inner loop runs over the elements of a line.
fn scaled_lines<T: Number>(
    factors: [Memory<'_, T>; 2],
    to: &mut [T],
    outer: &[WalkedAxis<3>],
    line: &FusedLabels,
    sum: SumLoops<'_>,
    [matrix, vector]: [usize; 2],
    watch: &mut VisitCounter<'_>,
) -> Result<(), Error> {
    let (starts, terms) = ([factors[0].1, factors[1].1, 0], sum.terms);
    let (rows, others) = outer.split_last().unwrap_or((&ONE_ROW, &[]));
    // If the next lines (arrays of elements) in memory belong to other sums, as many sums are computed together as fit
    // the cache.
    let apart = terms.strides[matrix].unsigned_abs();
    let is_within = rows.0 > 1 && rows.1[matrix].unsigned_abs() < apart && apart >= FAR;
    let is_dense = [line.strides[matrix], line.strides[2], terms.strides[vector]] == [1; 3];
    let is_short = ProductPlan::IN_REGISTERS.contains(&line.extent) && terms.extent <= LONG_LINE;
    if is_dense && !is_within && sum.outer.is_empty() && is_short {
        let (blocks, strides) = *rows;
        let at_once = (AT_ONCE / (terms.extent * line.extent)).max(1);
        try_walk(others, starts, |at| {
            for (first, blocks) in pieces(blocks, at_once) {
                let at = step(at, first, strides);
                let blocks = Blocks {
                    line: Line { elements: factors[matrix].0, first: at[matrix], stride: 1 },
                    step: terms.strides[matrix],
                    width: line.extent,
                    factors: Line { elements: factors[vector].0, first: at[vector], stride: 1 },
                    count: terms.extent,
                    blocks,
                    steps: [strides[matrix], strides[vector], strides[2]],
                };
                watch.see(blocks.blocks * terms.extent * line.extent)?;
                sum_blocks(to, at[2], &blocks);
            }
            Ok(())
        })
    } else {
        let (outer, rows) = if is_within { (others, *rows) } else { (outer, ONE_ROW) };
        rows_of_lines(factors, to, Loops { starts, outer, rows, line }, sum, [matrix, vector], watch)
    }
}

/// Splits `0..extent` into pieces of `size`, the last one possibly smaller: the start and the size of each.
fn pieces(extent: usize, size: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..extent).step_by(size).map(move |at| (at, size.min(extent - at)))
}

/// Adds lines (arrays of elements) of one operand, times factors from the other operand, to sums: a few lines to one
/// sum, then a few lines to the next sum.
fn rows_of_lines<T: Number>(
    factors: [Memory<'_, T>; 2],
    to: &mut [T],
    loops: Loops<'_>,
    sum: SumLoops<'_>,
    [matrix, vector]: [usize; 2],
    watch: &mut VisitCounter<'_>,
) -> Result<(), Error> {
    let Loops { starts, outer, rows: (rows, row_strides), line } = loops;
    let SumLoops { outer: summed, terms } = sum;
    let at_a_time = (CHUNK / line.extent).clamp(1, rows);
    let in_turn = if at_a_time == 1 { AT_ONCE / CHUNK.min(line.extent) / FACTORS * FACTORS } else { IN_TURN };
    let mut sums = vec![T::Wide::default(); at_a_time * CHUNK.min(line.extent)];
    let mut add = |at: [usize; 3], rows: usize, width: usize| {
        let sums = &mut sums[..rows * width];
        sums.fill(T::Wide::default());
        try_walk(summed, at, |at| {
            for (term, count) in pieces(terms.extent, in_turn) {
                watch.see(count * sums.len())?;
                let at = step(at, term, terms.strides);
                for (row, sums) in sums.chunks_exact_mut(width).enumerate() {
                    let at = step(at, row, row_strides);
                    let of = |of: usize, strides: [isize; 3]| Line {
                        elements: factors[of].0,
                        first: at[of],
                        stride: strides[of],
                    };
                    let lines = Lines { line: of(matrix, line.strides), step: terms.strides[matrix] };
                    add_lines(sums, lines, of(vector, terms.strides), count);
                }
            }
            Ok::<_, Error>(())
        })?;
        for (row, sums) in sums.chunks_exact(width).enumerate() {
            write(sums, to, step(at, row, row_strides)[2], line.strides[2]);
        }
        Ok::<_, Error>(())
    };
    try_walk(outer, starts, |at| {
        for (row, rows) in pieces(rows, at_a_time) {
            for (first, width) in pieces(line.extent, CHUNK) {
                add(step(step(at, row, row_strides), first, line.strides), rows, width)?;
            }
        }
        Ok(())
    })
}

/// Computes a product whose inner loop adds products to one sum, and whose next loop runs over elements of the result.
fn lines<T: Number>(
    factors: [Memory<'_, T>; 2],
    to: &mut [T],
    kept: &[FusedLabels],
    summed: &[WalkedAxis<3>],
    line: &FusedLabels,
    watch: &mut VisitCounter<'_>,
) -> Result<(), Error> {
    let starts = [factors[0].1, factors[1].1, 0];
    let one = FusedLabels { extent: 1, strides: [0; 3] };
    let (rows, outer) = kept.split_last().unwrap_or((&one, &[]));
    let outer = axes(outer, None);
    let walked = (rows.extent, rows.strides);
    if let Some(across) = TransposedLoops::of(factors, &walked, line) {
        return rows_across(across, to, Loops { starts, outer: &outer, rows: walked, line }, summed, watch);
    }
    if let Some((last, others)) = summed.split_last()
        && let Some(across) = TransposedLoops::of(factors, last, line)
    {
        return sums_across(across, to, Loops { starts, outer: &axes(kept, None), rows: *last, line }, others, watch);
    }
    let mut sums = vec![T::Wide::default(); CHUNK.min(rows.extent)];
    let at_once = (AT_ONCE / line.extent).max(1);
    try_walk(&outer, starts, |at| {
        for first in (0..rows.extent).step_by(CHUNK) {
            let sums = &mut sums[..CHUNK.min(rows.extent - first)];
            sums.fill(T::Wide::default());
            let along = |of: usize| at[of].wrapping_add_signed(first.cast_signed() * rows.strides[of]);
            try_walk(summed, [along(0), along(1), 0], |at| {
                for (row, count) in pieces(sums.len(), at_once) {
                    let (at, sums) = (step(at, row, rows.strides), &mut sums[row..][..count]);
                    for (first, width) in pieces(line.extent, LONG_LINE) {
                        watch.see(count * width)?;
                        let at = step(at, first, line.strides);
                        let lines = [0, 1].map(|of: usize| {
                            let line = Line { elements: factors[of].0, first: at[of], stride: line.strides[of] };
                            Lines { line, step: rows.strides[of] }
                        });
                        add_dots(sums, lines, width);
                    }
                }
                Ok::<_, Error>(())
            })?;
            write(sums, to, along(2), rows.strides[2]);
        }
        Ok(())
    })
}

/// Returns the positions that are `count` steps of the strides `strides` after the positions `at`.
fn step(at: [usize; 3], count: usize, strides: [isize; 3]) -> [usize; 3] {
    std::array::from_fn(|of| at[of].wrapping_add_signed(count.cast_signed() * strides[of]))
}

/// Computes a product as `lines` does, for an operand in whose memory the elements for the next rows of the result lie
/// nearer than the next elements of the same sum.
fn rows_across<T: Number>(
    mut across: TransposedLoops<'_, T>,
    to: &mut [T],
    loops: Loops<'_>,
    summed: &[WalkedAxis<3>],
    watch: &mut VisitCounter<'_>,
) -> Result<(), Error> {
    let Loops { starts, outer, rows: (rows, row_strides), line } = loops;
    let mut sums = [T::Wide::default(); across::LINES];
    try_walk(outer, starts, |at| {
        for (row, count) in pieces(rows, across::LINES) {
            let (at, sums) = (step(at, row, row_strides), &mut sums[..count]);
            sums.fill(T::Wide::default());
            try_walk(summed, at, |at| {
                for (first, width) in pieces(line.extent, across::WIDTH) {
                    watch.see(count * width)?;
                    add_dots(sums, across.lines(step(at, first, line.strides), count, width), width);
                }
                Ok::<_, Error>(())
            })?;
            write(sums, to, at[2], row_strides[2]);
        }
        Ok(())
    })
}

/// Computes a product as `lines` does, for an operand in whose memory other lines (arrays of elements) of the same sum
/// lie nearer than the next elements of the same line.
fn sums_across<T: Number>(
    mut across: TransposedLoops<'_, T>,
    to: &mut [T],
    loops: Loops<'_>,
    summed: &[WalkedAxis<3>],
    watch: &mut VisitCounter<'_>,
) -> Result<(), Error> {
    let Loops { starts, outer, rows: (lines, apart), line } = loops;
    let mut sums = [T::Wide::default(); across::LINES];
    try_walk(outer, starts, |at| {
        let mut total = T::Wide::default();
        let to = &mut to[at[2]];
        try_walk(summed, at, |at| {
            for (row, count) in pieces(lines, across::LINES) {
                let (at, sums) = (step(at, row, apart), &mut sums[..count]);
                sums.fill(T::Wide::default());
                for (first, width) in pieces(line.extent, across::WIDTH) {
                    watch.see(count * width)?;
                    add_dots(sums, across.lines(step(at, first, line.strides), count, width), width);
                }
                total = sums.iter().fold(total, |total, sum| T::add_sums(total, *sum));
            }
            Ok::<_, Error>(())
        })?;
        *to = T::narrow(total);
        Ok(())
    })
}

/// Computes a product whose inner loop runs over elements of the result, which are products or sums of products.
fn elements<T: Number>(
    factors: [Memory<'_, T>; 2],
    to: &mut [T],
    outer: &[WalkedAxis<3>],
    line: &FusedLabels,
    summed: &[WalkedAxis<3>],
    zero: T::Wide,
    watch: &mut VisitCounter<'_>,
) -> Result<(), Error> {
    let [(a, a_first), (b, b_first)] = factors;
    let starts = [a_first, b_first, 0];
    if let Some((last, others)) = summed.split_last()
        && let Some(across) = TransposedLoops::of(factors, last, line)
    {
        let loops = Loops { starts, outer, rows: ONE_ROW, line };
        return elements_across(across, to, loops, others, *last, zero, watch);
    }
    if let Some((last, others)) = outer.split_last()
        && let Some(across) = TransposedLoops::of(factors, last, line)
    {
        let loops = Loops { starts, outer: others, rows: *last, line };
        return elements_across(across, to, loops, summed, ONE_ROW, zero, watch);
    }
    let [a_step, b_step, step] = line.strides;
    let mut sums = vec![zero; CHUNK.min(line.extent)];
    try_walk(outer, starts, |[a_at, b_at, at]| {
        for first in (0..line.extent).step_by(CHUNK) {
            let sums = &mut sums[..CHUNK.min(line.extent - first)];
            sums.fill(zero);
            let along = |at: usize, step: isize| at.wrapping_add_signed(first.cast_signed() * step);
            try_walk(summed, [along(a_at, a_step), along(b_at, b_step), 0], |[a_at, b_at, _]| {
                watch.see(sums.len())?;
                let line = |elements, first, stride| Line { elements, first, stride };
                add_products(sums, &line(a, a_at, a_step), &line(b, b_at, b_step));
                Ok::<_, Error>(())
            })?;
            write(sums, to, along(at, step), step);
        }
        Ok(())
    })
}

/// Computes a product as `elements` does, with copies of an operand whose layout is transposed relative to the loops.
/// Several lines (arrays of elements) are copied at a time: lines of several rows of the result, or several lines that
/// are added to one row. The number of rows or the number of lines per row must be 1.
fn elements_across<T: Number>(
    mut across: TransposedLoops<'_, T>,
    to: &mut [T],
    loops: Loops<'_>,
    summed: &[WalkedAxis<3>],
    (lines, apart): WalkedAxis<3>,
    zero: T::Wide,
    watch: &mut VisitCounter<'_>,
) -> Result<(), Error> {
    let Loops { starts, outer, rows: (rows, row_strides), line } = loops;
    let width = across::WIDTH.min(line.extent);
    let mut sums = vec![zero; width * across::LINES.min(rows)];
    try_walk(outer, starts, |at| {
        for (row, rows) in pieces(rows, across::LINES) {
            let at = step(at, row, row_strides);
            for (first, width) in pieces(line.extent, width) {
                let (at, sums) = (step(at, first, line.strides), &mut sums[..rows * width]);
                sums.fill(zero);
                try_walk(summed, at, |at| {
                    for (first, lines) in pieces(lines, across::LINES) {
                        let count = rows.max(lines);
                        watch.see(count * width)?;
                        let [a, b] = across.lines(step(at, first, apart), count, width);
                        for line in 0..count {
                            let sums = if rows == 1 { &mut sums[..width] } else { &mut sums[line * width..][..width] };
                            add_products(sums, &a.line(line), &b.line(line));
                        }
                    }
                    Ok::<_, Error>(())
                })?;
                for (row, sums) in sums.chunks_exact(width).enumerate() {
                    write(sums, to, step(at, row, row_strides)[2], line.strides[2]);
                }
            }
        }
        Ok(())
    })
}

/// Writes sums to elements of the result that are `step` apart.
fn write<T: Number>(sums: &[T::Wide], to: &mut [T], first: usize, step: isize) {
    if step == 1 {
        to[first..][..sums.len()].iter_mut().zip(sums).for_each(|(to, sum)| *to = T::narrow(*sum));
    } else {
        for (at, sum) in sums.iter().enumerate() {
            to[first.wrapping_add_signed(at.cast_signed() * step)] = T::narrow(*sum);
        }
    }
}
