//! Estimates the memory that a sweep (a fused loop over elements) writes, before it runs: its arrays, in bits per
//! element, and the strips (blocks of elements) that stages pass to each other. The internal memory of plans and edges
//! is not counted.

use super::layout::{Origin, SweepColumn, SweepLayout};
use super::storage::Storage;
use crate::{ArrayProgram, Side};
use cembra_runtime::{QType, STRIP_ROWS, Scalar};

/// An estimate of the memory that a sweep (a fused loop over elements) writes: arrays, and blocks of elements between stages.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct MemoryEstimate {
    /// Bits per element, summed over all arrays that have a value per element of the sweep.
    pub(crate) of_elements: u64,
    /// Bits per group, summed over all arrays that have a value per group.
    pub(crate) of_groups: u64,
    /// The number of columns of which one strip (a block of consecutive elements) is stored for a later stage.
    pub(crate) strips: usize,
    /// The bytes of the strips that are stored for later stages, at `STRIP_ROWS` rows each. A strip takes more bytes if it must contain a group of
    /// more than `STRIP_ROWS` elements.
    pub(crate) strip_bytes: usize,
}

impl MemoryEstimate {
    /// The estimate for one array with elements of type `scalar`, one per element of the sweep (fused loop). `has_bits`
    /// is true if the array has presence bits.
    pub(crate) fn of_array(scalar: Scalar, has_bits: bool) -> MemoryEstimate {
        MemoryEstimate { of_elements: element_bits(scalar) + u64::from(has_bits), ..MemoryEstimate::default() }
    }

    /// The sum of two estimates.
    pub(crate) const fn and(self, other: MemoryEstimate) -> MemoryEstimate {
        MemoryEstimate {
            of_elements: self.of_elements + other.of_elements,
            of_groups: self.of_groups + other.of_groups,
            strips: self.strips + other.strips,
            strip_bytes: self.strip_bytes + other.strip_bytes,
        }
    }
}

/// The number of bits that an element of type `scalar` takes in an array, without its presence. A string counts the bits of
/// its view, not its bytes in the buffer.
#[inline]
#[must_use]
pub fn element_bits(scalar: Scalar) -> u64 {
    if scalar.is_string() { u128::BITS.into() } else { Storage::of(scalar).bits() }
}

impl SweepLayout {
    /// Estimates the memory that the sweep writes. Columns that are only summed count nothing, because machine code adds them
    /// directly. Without machine code each of these columns takes a strip.
    pub(crate) fn written(&self, program: &ArrayProgram) -> MemoryEstimate {
        let of_lane = |lane: &SweepColumn| {
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
