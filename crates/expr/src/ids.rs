//! The numbers of nodes and of names in their graph.

/// A node of one graph.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct NodeId(u32);

impl NodeId {
    /// The node's position in its graph; operands come before their users.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// The node at this position.
    #[must_use]
    pub const fn from_index(index: usize) -> Self {
        NodeId(index as u32)
    }
}

/// An interned name of one graph.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct NameId(u32);

impl NameId {
    /// The name's position in order of first use.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// The name at this position.
    pub(crate) const fn from_index(index: usize) -> Self {
        NameId(index as u32)
    }
}
