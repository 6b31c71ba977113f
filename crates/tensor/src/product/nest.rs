//! Products that are none of matrices: of elements, of vectors, and of matrices and vectors, as loops. Sums are kept in a wider type, in an
//! order that labels and layouts alone decide.

use super::number::Number;
use super::plan::Run;
use super::walk::{WalkedAxis, walk};
use multiversion::multiversion;
use smallvec::SmallVec;

/// How many elements of the result are summed together.
const CHUNK: usize = 2048;

/// How many sums a product of vectors is split into.
const LANES: usize = 16;

/// The elements of an operand along a loop.
enum Line<'d, T> {
    /// Beside each other.
    Dense(&'d [T]),
    /// One for all.
    One(T),
    /// Apart.
    Strided(&'d [T], usize, isize),
}

impl<'d, T: Copy> Line<'d, T> {
    fn of(elements: &'d [T], first: usize, stride: isize, count: usize) -> Line<'d, T> {
        match stride {
            1 => Line::Dense(&elements[first..][..count]),
            0 => Line::One(elements[first]),
            _ => Line::Strided(elements, first, stride),
        }
    }

    fn get(&self, at: usize) -> T {
        match self {
            Line::Dense(elements) => elements[at],
            Line::One(element) => *element,
            Line::Strided(elements, first, stride) => {
                elements[first.wrapping_add_signed(at.cast_signed().wrapping_mul(*stride))]
            }
        }
    }
}

/// Adds the product of two lines to sums. The code is compiled for each kind of vectors.
#[multiversion(targets("x86_64+avx512f+avx512dq+avx512vl", "x86_64+avx2"))]
fn add_products<T: Number>(sums: &mut [T::Wide], a: &Line<'_, T>, b: &Line<'_, T>) {
    match (a, b) {
        (Line::Dense(a), Line::Dense(b)) => {
            for ((sum, a), b) in sums.iter_mut().zip(*a).zip(*b) {
                *sum = T::add_product(*sum, *a, *b);
            }
        }
        (Line::Dense(dense), Line::One(one)) | (Line::One(one), Line::Dense(dense)) => {
            for (sum, a) in sums.iter_mut().zip(*dense) {
                *sum = T::add_product(*sum, *a, *one);
            }
        }
        _ => {
            for (at, sum) in sums.iter_mut().enumerate() {
                *sum = T::add_product(*sum, a.get(at), b.get(at));
            }
        }
    }
}

/// How long lines are of which it is worth while to gather some.
const LONG: usize = 256;

/// How many products of lines are added in one go.
const TOGETHER: usize = 4;

/// Adds products of lines to sums, one after the other: those of which one factor lies together and the other is one for all, in one go.
fn add_all<T: Number>(sums: &mut [T::Wide], lines: &[(Line<'_, T>, Line<'_, T>)]) {
    let mut dense: [(&[T], T); TOGETHER] = [(&[], T::default()); TOGETHER];
    for (place, line) in dense.iter_mut().zip(lines) {
        if let (Line::Dense(dense), Line::One(one)) | (Line::One(one), Line::Dense(dense)) = line {
            *place = (dense, *one);
        }
    }
    if dense.iter().all(|(dense, _)| dense.len() == sums.len()) {
        add_dense(sums, &dense);
    } else {
        lines.iter().for_each(|(a, b)| add_products(sums, a, b));
    }
}

/// Several streams of memory are read at a time, and the sums once for all of them.
#[multiversion(targets("x86_64+avx512f+avx512dq+avx512vl", "x86_64+avx2"))]
fn add_dense<T: Number>(sums: &mut [T::Wide], lines: &[(&[T], T); TOGETHER]) {
    let [(a, p), (b, q), (c, r), (d, s)] = lines;
    for ((((sum, a), b), c), d) in sums.iter_mut().zip(*a).zip(*b).zip(*c).zip(*d) {
        let first = T::add_product(T::add_product(*sum, *a, *p), *b, *q);
        *sum = T::add_product(T::add_product(first, *c, *r), *d, *s);
    }
}

/// The sum of the products of two lines.
#[multiversion(targets("x86_64+avx512f+avx512dq+avx512vl", "x86_64+avx2"))]
fn dot<T: Number>(a: &Line<'_, T>, b: &Line<'_, T>, count: usize) -> T::Wide {
    let mut lanes = [T::Wide::default(); LANES];
    let whole = count - count % LANES;
    if let (Line::Dense(a), Line::Dense(b)) = (a, b) {
        for (a, b) in a.chunks_exact(LANES).zip(b.chunks_exact(LANES)) {
            for ((lane, a), b) in lanes.iter_mut().zip(a).zip(b) {
                *lane = T::add_product(*lane, *a, *b);
            }
        }
    } else {
        for first in (0..whole).step_by(LANES) {
            for (at, lane) in lanes.iter_mut().enumerate() {
                *lane = T::add_product(*lane, a.get(first + at), b.get(first + at));
            }
        }
    }
    // What is left over is filled up with zeros: no lane is -0, so they add nothing.
    let (mut a_rest, mut b_rest) = ([T::default(); LANES], [T::default(); LANES]);
    for at in whole..count {
        (a_rest[at - whole], b_rest[at - whole]) = (a.get(at), b.get(at));
    }
    for ((lane, a), b) in lanes.iter_mut().zip(a_rest).zip(b_rest) {
        *lane = T::add_product(*lane, a, b);
    }
    let mut width = LANES;
    while width > 1 {
        width /= 2;
        for at in 0..width {
            lanes[at] = T::add_sums(lanes[at], lanes[at + width]);
        }
    }
    lanes[0]
}

/// An operand: its memory, and the position of its first element.
pub(super) type Memory<'d, T> = (&'d [T], usize);

/// Computes a product as loops, into memory in which the first element of the result is the first; sums begin with `zero`.
pub(super) fn nest<T: Number>(
    [(a, a_first), (b, b_first)]: [Memory<'_, T>; 2],
    to: &mut [T],
    (kept, summed): (&[Run], &[Run]),
    inner: usize,
    zero: T::Wide,
) {
    let axes = |runs: &[Run], without: Option<usize>| -> SmallVec<[WalkedAxis<3>; 6]> {
        let runs = runs.iter().enumerate().filter(|(at, _)| Some(*at) != without);
        runs.map(|(_, run)| (run.extent, run.strides)).collect()
    };
    let starts = [a_first, b_first, 0];
    match (kept.get(inner), inner.checked_sub(kept.len()).and_then(|at| summed.get(at))) {
        (Some(line), _) => {
            let (outer, summed) = (axes(kept, Some(inner)), axes(summed, None));
            let [a_step, b_step, step] = line.strides;
            let mut sums = [T::Wide::default(); CHUNK];
            walk(&outer, starts, |[a_at, b_at, at]| {
                for first in (0..line.extent).step_by(CHUNK) {
                    let sums = &mut sums[..CHUNK.min(line.extent - first)];
                    sums.fill(zero);
                    let along = |at: usize, step: isize| at.wrapping_add_signed(first.cast_signed() * step);
                    let mut lines: SmallVec<[_; TOGETHER]> = SmallVec::new();
                    walk(&summed, [along(a_at, a_step), along(b_at, b_step), 0], |[a_at, b_at, _]| {
                        let count = sums.len();
                        let line = (Line::of(a, a_at, a_step, count), Line::of(b, b_at, b_step, count));
                        if count < LONG {
                            add_products(sums, &line.0, &line.1);
                            return;
                        }
                        lines.push(line);
                        if lines.len() == TOGETHER {
                            add_all(sums, &lines);
                            lines.clear();
                        }
                    });
                    lines.iter().for_each(|(a, b)| add_products(sums, a, b));
                    let at = along(at, step);
                    if step == 1 {
                        let to = &mut to[at..][..sums.len()];
                        to.iter_mut().zip(sums).for_each(|(to, sum)| *to = T::narrow(*sum));
                    } else {
                        for (index, sum) in sums.iter().enumerate() {
                            to[at.wrapping_add_signed(index.cast_signed() * step)] = T::narrow(*sum);
                        }
                    }
                }
            });
        }
        (None, Some(line)) => {
            let (outer, summed) = (axes(kept, None), axes(summed, Some(inner - kept.len())));
            let [a_step, b_step, _] = line.strides;
            walk(&outer, starts, |[a_at, b_at, at]| {
                let mut sum = zero;
                let mut add = |[a_at, b_at, _]: [usize; 3]| {
                    let (a, b) = (Line::of(a, a_at, a_step, line.extent), Line::of(b, b_at, b_step, line.extent));
                    sum = T::add_sums(sum, dot(&a, &b, line.extent));
                };
                // Short lines are many.
                if summed.is_empty() {
                    add([a_at, b_at, 0]);
                } else {
                    walk(&summed, [a_at, b_at, 0], add);
                }
                to[at] = T::narrow(sum);
            });
        }
        // No label has more than one index.
        (None, None) => to[0] = T::narrow(T::add_product(zero, a[a_first], b[b_first])),
    }
}
