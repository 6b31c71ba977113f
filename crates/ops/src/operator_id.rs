//! The number of an operator in its registry.

/// The id of an operator in its registry.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct OpId(u16);

impl OpId {
    /// Returns the id at a position of the list of operators.
    pub(crate) const fn at(position: u16) -> OpId {
        OpId(position)
    }

    /// The operator's position in the registry.
    #[must_use]
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}
