//! What a sweep writes to memory, known before it runs: the arrays that it makes, by their elements, and the strips that its
//! stages leave to each other. What its plans and its edges need for themselves is not counted.

use super::layout::{Lane, Origin, SweepLayout};
use super::storage::Storage;
use crate::{ArrayProgram, Side};
use cembra_runtime::{QType, STRIP_ROWS, Scalar};

/// The memory that a sweep writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct MemoryEstimate {
    /// Bits for each element, of all arrays that have as many elements as are gone over.
    pub(crate) of_elements: u64,
    /// Bits for each group, of all arrays of groups.
    pub(crate) of_groups: u64,
    /// The strips that are kept for a later stage.
    pub(crate) strips: usize,
    /// Their bytes, of strips of the usual length: larger groups need more where they are to be whole.
    pub(crate) strip_bytes: usize,
}

impl MemoryEstimate {
    /// What an array takes.
    pub(crate) fn of_array(scalar: Scalar, has_bits: bool) -> MemoryEstimate {
        MemoryEstimate { of_elements: element_bits(scalar) + u64::from(has_bits), ..MemoryEstimate::default() }
    }

    /// Both.
    pub(crate) const fn and(self, other: MemoryEstimate) -> MemoryEstimate {
        MemoryEstimate {
            of_elements: self.of_elements + other.of_elements,
            of_groups: self.of_groups + other.of_groups,
            strips: self.strips + other.strips,
            strip_bytes: self.strip_bytes + other.strip_bytes,
        }
    }
}

/// How many bits an element of an array takes, its presence apart: of a string those of its view, besides the buffer.
#[inline]
#[must_use]
pub fn element_bits(scalar: Scalar) -> u64 {
    if scalar.is_string() { u128::BITS.into() } else { Storage::of(scalar).bits() }
}

impl SweepLayout {
    /// What it writes. What is only summed is not, where machine code adds it up; else it takes a strip.
    pub(crate) fn written(&self, program: &ArrayProgram) -> MemoryEstimate {
        let of_lane = |lane: &Lane| {
            let array = MemoryEstimate::of_array(lane.scalar, lane.has_bits);
            let of_groups = MemoryEstimate { of_elements: 0, of_groups: array.of_elements, ..array };
            match (lane.origin, lane.over) {
                (Origin::Kept, Side::Elements) => array,
                (Origin::Kept, Side::Groups) => of_groups,
                (Origin::Result, _) if matches!(program.qtype(lane.value), QType::Array(..)) => of_groups,
                (Origin::Strip, _) if lane.sum.is_none() => {
                    let of_bits = if lane.has_bits { Storage::Bits.words(STRIP_ROWS) } else { 0 };
                    let strip_bytes = size_of::<u64>() * (lane.storage.words(STRIP_ROWS) + of_bits);
                    MemoryEstimate { strips: 1, strip_bytes, ..MemoryEstimate::default() }
                }
                _ => MemoryEstimate::default(),
            }
        };
        self.lanes().iter().map(of_lane).fold(MemoryEstimate::default(), MemoryEstimate::and)
    }
}
