//! The id of an operator: its position in a registry.

/// The id of an operator: its position in its registry.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct OpId(u16);

impl OpId {
    /// The id of the operator at `position` of the list of operators.
    pub(crate) const fn at(position: u16) -> OpId {
        OpId(position)
    }

    /// The position of the operator in its registry.
    #[must_use]
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}
