//! The positions of the elements and terms of a small product, found once so that nothing is walked when it is computed. Nothing is
//! computed here.

use smallvec::SmallVec;

/// The most elements that are computed together: the engine has code for each number of them.
const TOGETHER: usize = 4;

/// The positions of the elements of a product, relative to the first ones.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Places {
    /// The number of elements that are computed together: they share their factors in the first operand, and are adjacent in the second one
    /// and in the result. 1 if elements are computed one by one.
    pub together: usize,
    /// For each element of the result, or the first of those computed together: the positions of its first factors in both operands, and
    /// its own.
    pub elements: Vec<[isize; 3]>,
    /// For each term of a sum, the distances of its factors from those of the first term.
    pub terms: Vec<[isize; 2]>,
}

/// The positions of all indices of some labels, each given by its extent and strides. The last label is the fastest.
fn all<const N: usize>(labels: impl Iterator<Item = (usize, [isize; N])>) -> Vec<[isize; N]> {
    labels.fold(vec![[0; N]], |places, (extent, strides)| {
        let index = |place: [isize; N]| {
            (0..extent.cast_signed()).map(move |at| std::array::from_fn(|of| place[of] + at * strides[of]))
        };
        places.into_iter().flat_map(index).collect()
    })
}

impl Places {
    /// The positions of a product, whose elements have all indices of the labels `kept`, and whose terms have those of `summed`. The last
    /// label is the fastest.
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

    /// The number of multiplications of two elements in the product.
    #[must_use]
    #[inline]
    pub fn products(&self) -> usize {
        self.together * self.elements.len() * self.terms.len()
    }
}
