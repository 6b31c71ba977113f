//! Products of a few elements: where the factors of all terms lie is known beforehand, so that nothing is walked. Sums are added in the order
//! of the reference, if they are of no more terms than it adds one after the other.

use super::nest::Memory;
use super::number::Number;
use super::plan::Run;
use crate::Error;
use crate::walk::{WalkedAxis, Watch, try_walk};
use smallvec::SmallVec;

/// The most elements that are computed together: there is code for each number of them.
const TOGETHER: usize = 4;

/// Where the elements of a product lie, relative to the first ones.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Places {
    /// How many elements share their factors in the first operand, and lie side by side in the second and in the result; 1 if they do not.
    pub together: usize,
    /// Of each element of the result, or of the first of each that are together: its first factors in both operands, and itself.
    pub elements: Vec<[isize; 3]>,
    /// Of each term of a sum: its factors, from those of the first term.
    pub terms: Vec<[isize; 2]>,
}

/// Labels as a number of indices, and how far they are apart.
fn all<const N: usize>(labels: impl Iterator<Item = (usize, [isize; N])>) -> Vec<[isize; N]> {
    labels.fold(vec![[0; N]], |places, (extent, strides)| {
        let index = |place: [isize; N]| {
            (0..extent.cast_signed()).map(move |at| std::array::from_fn(|of| place[of] + at * strides[of]))
        };
        places.into_iter().flat_map(index).collect()
    })
}

impl Places {
    /// The places of a product whose elements and terms have all indices of these labels, those of the last one the fastest.
    pub(super) fn new(
        kept: impl Iterator<Item = (usize, [isize; 3])>,
        summed: impl Iterator<Item = (usize, [isize; 2])>,
    ) -> Places {
        let mut kept: SmallVec<[(usize, [isize; 3]); 6]> = kept.collect();
        let last = kept.last().filter(|(extent, strides)| (2..=TOGETHER).contains(extent) && *strides == [0, 1, 1]);
        let together = last.map_or(1, |(extent, _)| *extent);
        if together > 1 {
            kept.pop();
        }
        Places { together, elements: all(kept.into_iter()), terms: all(summed) }
    }

    /// How many products of two elements there are.
    fn products(&self) -> usize {
        self.together * self.elements.len() * self.terms.len()
    }
}

/// Computes a product of a few elements for all indices of what is looped over.
pub(super) fn direct<T: Number>(
    factors: &[Memory<'_, T>; 2],
    to: &mut [T],
    kept: &[Run],
    places: &Places,
    zero: T::Wide,
    watch: &mut Watch<'_>,
) -> Result<(), Error> {
    let each = places.products();
    let [(a, a_first), (b, b_first)] = *factors;
    let mut at = |[a_first, b_first, first]: [usize; 3]| {
        watch.see(each)?;
        let factors = [(a, a_first), (b, b_first)];
        match places.together {
            2 => side_by_side::<T, 2>(factors, (to, first), places, zero),
            3 => side_by_side::<T, 3>(factors, (to, first), places, zero),
            4 => side_by_side::<T, 4>(factors, (to, first), places, zero),
            _ => side_by_side::<T, 1>(factors, (to, first), places, zero),
        }
        Ok(())
    };
    if kept.is_empty() {
        at([a_first, b_first, 0])
    } else {
        let axes: SmallVec<[WalkedAxis<3>; 6]> = kept.iter().map(|run| (run.extent, run.strides)).collect();
        try_walk(&axes, [a_first, b_first, 0], at)
    }
}

/// Computes the elements, so many together.
fn side_by_side<T: Number, const N: usize>(
    [(a, a_first), (b, b_first)]: [Memory<'_, T>; 2],
    (to, first): (&mut [T], usize),
    places: &Places,
    zero: T::Wide,
) {
    for [a_place, b_place, place] in &places.elements {
        let (a_at, b_at) = (a_first.wrapping_add_signed(*a_place), b_first.wrapping_add_signed(*b_place));
        let sums = places.terms.iter().fold([zero; N], |sums, [a_place, b_place]| {
            let factor = a[a_at.wrapping_add_signed(*a_place)];
            let others = &b[b_at.wrapping_add_signed(*b_place)..][..N];
            std::array::from_fn(|at| T::add_product(sums[at], factor, others[at]))
        });
        to[first.wrapping_add_signed(*place)..][..N].copy_from_slice(&sums.map(T::narrow));
    }
}
