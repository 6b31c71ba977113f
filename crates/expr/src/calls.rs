//! Records which calls made the nodes that are copies of a function's body, so that a problem in a body can list the calls that led to it. Each
//! copy records its call and, for each new node, the original node in the body. When there is a problem, the calls that led to a node are found by
//! going from node to original. A node that several calls share counts as made by the first of these calls.

use crate::NodeId;
use cembra_value::{Label, Span};
use rustc_hash::FxHashSet;
use std::sync::Arc;

/// The most calls that a problem lists.
const SHOWN: usize = 5;

/// The index of a function that the text defines.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FunctionId(u32);

/// The function calls that made nodes of a graph, in the order of the nodes that they made.
#[derive(Clone, Debug, Default)]
pub struct Calls {
    functions: Vec<Arc<str>>,
    copies: Vec<Copied>,
    /// For each copied node, the original node in the body.
    originals: Vec<NodeId>,
}

/// The copy of a function's body that one call made. The nodes that were added for it are contiguous in the graph.
#[derive(Clone, Copy, Debug)]
struct Copied {
    /// The index of the first node that the call made.
    first: u32,
    /// The position in [`Calls::originals`] of the original of the first node that the call made.
    original: u32,
    function: FunctionId,
    /// The place of the call; `None` if the function became a value, which is called elsewhere.
    call: Option<Span>,
}

impl Calls {
    /// Adds the function `name` to the list of functions and returns its id.
    pub(crate) fn add_function(&mut self, name: &str) -> FunctionId {
        self.functions.push(name.into());
        FunctionId(self.functions.len() as u32 - 1)
    }

    /// Records that the nodes from `first` on are copies of `originals`, made for a call of `function`. `call` is the call's span; `None` if the
    /// function was not called but used as a value.
    pub(crate) fn note(&mut self, first: NodeId, originals: &[NodeId], function: FunctionId, call: Option<Span>) {
        let original = self.originals.len() as u32;
        self.copies.push(Copied { first: first.index() as u32, original, function, call });
        self.originals.extend_from_slice(originals);
    }

    /// Returns the copy that made a node, and the node's original; `None` if the node is not a copy.
    fn copy_of(&self, node: NodeId) -> Option<(Copied, NodeId)> {
        let behind = self.copies.partition_point(|copy| copy.first as usize <= node.index());
        let copy = *self.copies.get(behind.checked_sub(1)?)?;
        let end = self.copies.get(behind).map_or(self.originals.len(), |next| next.original as usize);
        let originals = self.originals.get(copy.original as usize..end)?;
        Some((copy, *originals.get(node.index() - copy.first as usize)?))
    }

    /// Returns the calls that made a node, each with the called function's name, innermost first.
    fn chain(&self, node: NodeId) -> impl Iterator<Item = (Span, &str)> {
        let mut found = Vec::new();
        let mut node = node;
        // An original exists before its copies.
        while let Some((copy, original)) = self.copy_of(node) {
            found.extend(copy.call.zip(self.functions.get(copy.function.0 as usize)));
            node = original;
        }
        found.into_iter().rev().map(|(span, name)| (span, &**name))
    }

    /// Returns the calls that led to `node` as labels, innermost first. They are the calls that made the node, and the calls of function values in
    /// `running`, which lists these calls outermost first with their spans. A call that encloses the span `place` is left out, because the reader
    /// sees it there. At most five labels are returned; if there are more calls, the last label tells how many more there are.
    pub fn leading_to(&self, node: NodeId, running: &[(NodeId, Option<Span>)], place: Option<Span>) -> Vec<Label> {
        if self.copies.is_empty() && running.is_empty() {
            return Vec::new();
        }
        let mut calls: Vec<(Span, &str)> = Vec::new();
        for (at, span) in running.iter().rev() {
            calls.extend(span.map(|span| (span, "")));
            calls.extend(self.chain(*at));
        }
        calls.extend(self.chain(node));
        let mut seen = FxHashSet::default();
        calls.retain(|(call, _)| {
            let is_around = place.is_some_and(|place| call.start <= place.start && place.end <= call.end);
            !is_around && seen.insert((call.start, call.end))
        });
        let more = calls.len().saturating_sub(SHOWN);
        let label = |(at, (span, name)): (usize, (Span, &str))| {
            let mut text = "in this call".to_owned();
            if !name.is_empty() {
                text.push_str(&format!(" of `{name}`"));
            }
            if more > 0 && at + 1 == SHOWN {
                text.push_str(&format!(", inside of {more} more"));
            }
            Label { span, text }
        };
        calls.into_iter().take(SHOWN).enumerate().map(label).collect()
    }

    /// The bytes of heap memory that these records own, without the text of function names.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.functions.capacity() * size_of::<Arc<str>>()
            + self.copies.capacity() * size_of::<Copied>()
            + self.originals.capacity() * size_of::<NodeId>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_goes_from_a_copy_to_what_was_copied() {
        let mut calls = Calls::default();
        let [f, g] = ["f", "g"].map(|name| calls.add_function(name));
        let at = |start| Some(Span::new(start, start + 1));
        let node = NodeId::from_index;
        // Nodes 3 and 4 are `f`'s body; `g` calls `f` and adds node 12; calls of `g` copy all of it.
        let mut note = |first: usize, originals: &[usize], function, call| {
            let originals: Vec<NodeId> = originals.iter().copied().map(node).collect();
            calls.note(node(first), &originals, function, call);
        };
        note(10, &[3, 4], f, at(100));
        note(20, &[10, 11, 12], g, at(200));
        // The next call shares the copy of node 10.
        note(23, &[11], g, at(210));
        note(30, &[4], f, None);
        let shown = |at: usize| {
            let found = calls.leading_to(node(at), &[], None);
            found.into_iter().map(|label| (label.span.start, label.text)).collect::<Vec<_>>()
        };
        let (of_f, of_g) = ("in this call of `f`".to_owned(), "in this call of `g`".to_owned());
        assert_eq!(shown(11), [(100, of_f.clone())]);
        assert_eq!(shown(20), [(100, of_f.clone()), (200, of_g.clone())]);
        assert_eq!(shown(22), [(200, of_g.clone())]);
        assert_eq!(shown(23), [(100, of_f), (210, of_g)]);
        assert_eq!([4, 9, 12, 24, 30, 31].map(|at| shown(at).len()), [0; 6]);
    }
}
