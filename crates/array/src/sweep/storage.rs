//! How the elements of a column are stored, by their type. Their addresses are known only while a sweep runs.

use cembra_runtime::{ColumnForm, DataForm, PresenceForm, QType, Scalar};

/// How the elements of a type are stored.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Storage {
    /// Units take no memory.
    Nothing,
    /// A bit each.
    Bits,
    /// Numbers of this many bytes.
    Numbers(usize),
}

impl Storage {
    /// How elements of this type are stored.
    #[inline]
    #[must_use]
    pub fn of(scalar: Scalar) -> Storage {
        match scalar {
            Scalar::Unit => Storage::Nothing,
            Scalar::Boolean => Storage::Bits,
            other => Storage::Numbers(QType::Scalar(other).layout().size as usize),
        }
    }

    /// How many bits an element takes.
    #[inline]
    #[must_use]
    pub const fn bits(self) -> u64 {
        match self {
            Storage::Nothing => 0,
            Storage::Bits => 1,
            Storage::Numbers(size) => 8 * size as u64,
        }
    }

    /// How many words this many elements take.
    #[inline]
    #[must_use]
    pub const fn words(self, elements: usize) -> usize {
        match self {
            Storage::Nothing => 0,
            Storage::Bits => elements.div_ceil(64),
            Storage::Numbers(size) => elements.saturating_mul(size).div_ceil(8),
        }
    }

    /// The form of columns whose rows each have a value of their own.
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
