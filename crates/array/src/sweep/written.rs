//! The memory that a sweep writes, known before it runs: its arrays, in bits per element, and the strips between its stages. The
//! internal memory of plans and edges is not counted.

use super::layout::{Lane, Origin, SweepLayout};
use super::storage::Storage;
use crate::{ArrayProgram, Side};
use cembra_runtime::{QType, STRIP_ROWS, Scalar};

/// The memory that a sweep writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct MemoryEstimate {
    /// Bits per element, summed over all arrays with a value per element of the sweep.
    pub(crate) of_elements: u64,
    /// Bits per group, summed over all arrays with a value per group.
    pub(crate) of_groups: u64,
    /// The number of columns of which one strip is stored for a later stage.
    pub(crate) strips: usize,
    /// The bytes of these strips, at `STRIP_ROWS` rows each. Strips that hold a larger group whole need more.
    pub(crate) strip_bytes: usize,
}

impl MemoryEstimate {
    /// The memory of one array with elements of type `scalar`.
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

/// The bits per element of an array, without its presence. A string counts the bits of its view, not its bytes in the buffer.
#[inline]
#[must_use]
pub fn element_bits(scalar: Scalar) -> u64 {
    if scalar.is_string() { u128::BITS.into() } else { Storage::of(scalar).bits() }
}

impl SweepLayout {
    /// The memory that the sweep writes. Columns that are only summed count nothing: machine code adds them directly. Without
    /// machine code each takes a strip.
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
