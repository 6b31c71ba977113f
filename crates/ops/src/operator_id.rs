//! The number of an operator in its registry.

/// An operator of one registry.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct OpId(u16);

impl OpId {
    /// The id at a position of the list.
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
