//! Selects the nodes of a program that are written to a file. These are the nodes that some output needs, numbered without gaps, operands first.

use crate::{NodeId, Program};

/// The nodes that a file contains, and their numbers in the file.
pub(super) struct Numbering {
    /// The nodes in the order of the file, operands first.
    pub(super) nodes: Vec<NodeId>,
    numbers: Vec<u32>,
}

impl Numbering {
    pub(super) fn of(program: &Program) -> Numbering {
        let needed = program.graph.reachable(program.outputs.iter().map(|output| output.node));
        let mut numbers = vec![u32::MAX; needed.len()];
        let mut nodes = Vec::new();
        for (index, _) in needed.iter().enumerate().filter(|(_, needed)| **needed) {
            numbers[index] = nodes.len() as u32;
            nodes.push(NodeId::from_index(index));
        }
        Numbering { nodes, numbers }
    }

    /// Returns the number that `node` has in the file; `u32::MAX` if no output needs the node, so that it is not in the file.
    pub(super) fn number(&self, node: NodeId) -> u32 {
        self.numbers.get(node.index()).copied().unwrap_or(u32::MAX)
    }
}
