//! The memory positions of the elements and terms of a small product. They are listed once, so that computing the
//! product needs no index arithmetic. This file computes no products.

use smallvec::SmallVec;

/// The most elements that are computed together. The engine has code for each number of elements from 1 to this one.
const TOGETHER: usize = 4;

/// The memory positions of the elements and terms of a small product, in elements from the start of each tensor.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct ProductPositions {
    /// The number of result elements that are computed together: they use the same factors of the first operand, and
    /// are adjacent both in the second operand and in the result. 1 if elements are computed one by one.
    pub together: usize,
    /// For each result element, three memory positions: of its first factor in the first operand, of its first factor
    /// in the second operand, and of the element in the result. If elements are computed together, the list has an
    /// entry only for the first of them.
    pub elements: Vec<[isize; 3]>,
    /// For each term of a sum, the distances in memory from the two factors of the sum's first term to the two factors of this term, in elements.
    pub terms: Vec<[isize; 2]>,
}

/// Lists the positions of all indices of some labels, each label given by its extent and its strides. The last label
/// varies fastest.
fn all<const N: usize>(labels: impl Iterator<Item = (usize, [isize; N])>) -> Vec<[isize; N]> {
    labels.fold(vec![[0; N]], |places, (extent, strides)| {
        let index = |place: [isize; N]| {
            (0..extent.cast_signed()).map(move |at| std::array::from_fn(|of| place[of] + at * strides[of]))
        };
        places.into_iter().flat_map(index).collect()
    })
}

impl ProductPositions {
    /// Lists the positions of a product. The elements of the result are indexed by the labels `kept`, the terms of each element by the labels
    /// `summed`. The last label varies fastest.
    pub(super) fn new(
        kept: impl Iterator<Item = (usize, [isize; 3])>,
        summed: impl Iterator<Item = (usize, [isize; 2])>,
    ) -> ProductPositions {
        let mut kept: SmallVec<[(usize, [isize; 3]); 6]> = kept.collect();
        let last = kept.last().filter(|(extent, strides)| (2..=TOGETHER).contains(extent) && *strides == [0, 1, 1]);
        let together = last.map_or(1, |(extent, _)| *extent);
        if together > 1 {
            kept.pop();
        }
        ProductPositions { together, elements: all(kept.into_iter()), terms: all(summed) }
    }

    /// The number of multiplications of two elements that computing the product takes.
    #[must_use]
    #[inline]
    pub fn products(&self) -> usize {
        self.together * self.elements.len() * self.terms.len()
    }
}
