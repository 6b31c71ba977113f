//! Where the elements and terms of a small product lie, found out once so that nothing is walked when it is computed. Nothing is computed here.

use smallvec::SmallVec;

/// The most elements that are computed together: the engine has code for each number of them.
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

    /// The number of products of two elements.
    #[must_use]
    #[inline]
    pub fn products(&self) -> usize {
        self.together * self.elements.len() * self.terms.len()
    }
}
