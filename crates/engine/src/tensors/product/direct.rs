//! Small products, of a few elements: the positions of all factors are computed beforehand, so that no nest of loops is needed. Terms are added in
//! the order of the reference, if a sum has no more terms than the reference adds one after the other.

use super::number::{Memory, Number};
use cembra_tensor::walk::{VisitCounter, WalkedAxis, try_walk};
use cembra_tensor::{FusedLabels, ProductPositions};
use cembra_value::Error;
use smallvec::SmallVec;

/// Computes a small product, of a few elements, for each index of the outer loops `kept`.
pub(super) fn direct<T: Number>(
    factors: &[Memory<'_, T>; 2],
    to: &mut [T],
    kept: &[FusedLabels],
    places: &ProductPositions,
    zero: T::Wide,
    watch: &mut VisitCounter<'_>,
) -> Result<(), Error> {
    let each = places.products();
    let [(a, a_first), (b, b_first)] = *factors;
    let mut at = |[a_first, b_first, first]: [usize; 3]| {
        watch.see(each)?;
        let factors = [(a, a_first), (b, b_first)];
        match places.together {
            2 => side_by_side::<T, 2>(factors, to, first, places, zero),
            3 => side_by_side::<T, 3>(factors, to, first, places, zero),
            4 => side_by_side::<T, 4>(factors, to, first, places, zero),
            _ => side_by_side::<T, 1>(factors, to, first, places, zero),
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

/// Computes the elements of a product, `N` at a time.
fn side_by_side<T: Number, const N: usize>(
    [(a, a_first), (b, b_first)]: [Memory<'_, T>; 2],
    to: &mut [T],
    first: usize,
    places: &ProductPositions,
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
