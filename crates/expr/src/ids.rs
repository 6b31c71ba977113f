//! The ids of nodes and of names in a graph.

/// The id of a node in its graph.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct NodeId(u32);

impl NodeId {
    /// Returns the node's position in its graph. Operands come before their users.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// Returns the id of the node at the position `index` of a graph.
    #[must_use]
    pub const fn from_index(index: usize) -> Self {
        NodeId(index as u32)
    }
}

/// The id of an interned name in its graph.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct NameId(u32);

impl NameId {
    /// Returns the name's position, in the order of first use.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// Returns the id of the name at the position `index` of a graph's names.
    pub(crate) const fn from_index(index: usize) -> Self {
        NameId(index as u32)
    }
}
