//! How the elements of a column lie in memory, by their type. Where they lie is known only while a sweep runs.

use cembra_runtime::{ColumnForm, DataForm, PresenceForm, QType, Scalar};

/// How the elements of a type lie.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lie {
    /// Units have no values.
    Nothing,
    /// A bit each.
    Bits,
    /// Numbers of this many bytes.
    Numbers(usize),
}

impl Lie {
    /// How elements of this type lie.
    #[inline]
    #[must_use]
    pub fn of(scalar: Scalar) -> Lie {
        match scalar {
            Scalar::Unit => Lie::Nothing,
            Scalar::Boolean => Lie::Bits,
            other => Lie::Numbers(QType::Scalar(other).layout().size as usize),
        }
    }

    /// How many bits an element takes.
    #[inline]
    #[must_use]
    pub const fn bits(self) -> u64 {
        match self {
            Lie::Nothing => 0,
            Lie::Bits => 1,
            Lie::Numbers(size) => 8 * size as u64,
        }
    }

    /// How many words this many elements take.
    #[inline]
    #[must_use]
    pub const fn words(self, elements: usize) -> usize {
        match self {
            Lie::Nothing => 0,
            Lie::Bits => elements.div_ceil(64),
            Lie::Numbers(size) => elements.saturating_mul(size).div_ceil(8),
        }
    }

    /// The form of columns whose rows each have a value of their own.
    #[must_use]
    pub fn form(self, has_bits: bool) -> ColumnForm {
        ColumnForm {
            data: match self {
                Lie::Nothing => DataForm::Nothing,
                Lie::Bits => DataForm::Bits,
                Lie::Numbers(_) => DataForm::Values,
            },
            presence: if has_bits { PresenceForm::Bits } else { PresenceForm::All },
            is_dictionary: false,
            is_shared: false,
            is_dense: true,
            paces: [0; 2],
        }
    }
}
