//! The storage of a column's elements, by their type. Addresses are known only while a sweep runs.

use cembra_runtime::{ColumnForm, DataForm, PresenceForm, QType, Scalar};

/// The storage of an element of a column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Storage {
    /// No memory: units have no data.
    Nothing,
    /// One bit per element.
    Bits,
    /// A number of this many bytes per element.
    Numbers(usize),
}

impl Storage {
    /// The storage of elements with this type.
    #[inline]
    #[must_use]
    pub fn of(scalar: Scalar) -> Storage {
        match scalar {
            Scalar::Unit => Storage::Nothing,
            Scalar::Boolean => Storage::Bits,
            other => Storage::Numbers(QType::Scalar(other).layout().size as usize),
        }
    }

    /// The bits per element.
    #[inline]
    #[must_use]
    pub const fn bits(self) -> u64 {
        match self {
            Storage::Nothing => 0,
            Storage::Bits => 1,
            Storage::Numbers(size) => 8 * size as u64,
        }
    }

    /// The number of 64-bit words for `elements` elements.
    #[inline]
    #[must_use]
    pub const fn words(self, elements: usize) -> usize {
        match self {
            Storage::Nothing => 0,
            Storage::Bits => elements.div_ceil(64),
            Storage::Numbers(size) => elements.saturating_mul(size).div_ceil(8),
        }
    }

    /// The form of a column with a separate value per row. `has_bits` says that it has presence bits.
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
