//! The storage of a column's elements: as bits, as numbers, or not at all. It follows from the type of the elements.
//! Addresses are not part of it, because they are known only while a sweep (a fused loop over elements) runs.

use cembra_runtime::{ColumnForm, DataForm, PresenceForm, QType, Scalar};

/// The way in which the elements of a column are stored: as bits, as numbers, or not at all.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Storage {
    /// Elements take no memory: they are units, or are only added to sums.
    Nothing,
    /// The elements are bits.
    Bits,
    /// The elements are numbers of this many bytes each.
    Numbers(usize),
}

impl Storage {
    /// The storage of elements of type `scalar`.
    #[inline]
    #[must_use]
    pub fn of(scalar: Scalar) -> Storage {
        match scalar {
            Scalar::Unit => Storage::Nothing,
            Scalar::Boolean => Storage::Bits,
            other => Storage::Numbers(QType::Scalar(other).layout().size as usize),
        }
    }

    /// The number of bits that an element takes.
    #[inline]
    #[must_use]
    pub const fn bits(self) -> u64 {
        match self {
            Storage::Nothing => 0,
            Storage::Bits => 1,
            Storage::Numbers(size) => 8 * size as u64,
        }
    }

    /// The number of 64-bit words that `elements` elements take.
    #[inline]
    #[must_use]
    pub const fn words(self, elements: usize) -> usize {
        match self {
            Storage::Nothing => 0,
            Storage::Bits => elements.div_ceil(64),
            Storage::Numbers(size) => elements.saturating_mul(size).div_ceil(8),
        }
    }

    /// The form in which a column with a value per row is passed to compiled plans. `has_bits` is true if the column
    /// has presence bits.
    #[must_use]
    pub fn form(self, has_bits: bool) -> ColumnForm {
        ColumnForm {
            data: match self {
                Storage::Nothing => DataForm::Nothing,
                Storage::Bits => DataForm::Bits,
                Storage::Numbers(_) => DataForm::Values,
            },
            presence: if has_bits { PresenceForm::Bits } else { PresenceForm::All },
            ..ColumnForm::DENSE
        }
    }
}
