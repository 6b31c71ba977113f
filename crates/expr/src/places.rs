//! The spans in the text of a graph's nodes: the first span of each node, and linked lists of further spans. In large models the same inputs and
//! numbers occur often, so a node may have many spans; all lists share one growing array.

use crate::NodeId;
use cembra_value::Span;

/// The spans of all nodes of a graph, by node index: the first span of each node, and the list of its further spans.
#[derive(Clone, Debug, Default)]
pub(crate) struct Places {
    nodes: Vec<NodePlaces>,
    further: Vec<Further>,
}

/// The spans of a node: the first span, and the end of the list of its further spans.
#[derive(Clone, Copy, Debug)]
struct NodePlaces {
    first: Option<Span>,
    /// The index of the node's last further span; `NONE` if the node has at most one span.
    last: u32,
}

/// A further span of a node, and the index of the node's next further span. The last one links back to the first.
#[derive(Clone, Copy, Debug)]
struct Further {
    span: Span,
    next: u32,
}

/// The index that stands for no further span. A text of 4 GiB has fewer spans than this.
const NONE: u32 = u32::MAX;

impl Places {
    pub(crate) fn with_capacity(nodes: usize) -> Places {
        Places { nodes: Vec::with_capacity(nodes), further: Vec::new() }
    }

    /// The bytes of heap memory that the spans own.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.nodes.capacity() * size_of::<NodePlaces>() + self.further.capacity() * size_of::<Further>()
    }

    /// Adds the next node to the list of places, with its first span.
    pub(crate) fn push(&mut self, first: Option<Span>) {
        self.nodes.push(NodePlaces { first, last: NONE });
    }

    /// Adds a span to a node.
    pub(crate) fn note(&mut self, node: NodeId, span: Span) {
        let Some(place) = self.nodes.get_mut(node.index()) else { return };
        if place.first.is_none() {
            place.first = Some(span);
            return;
        }
        let at = self.further.len() as u32;
        let next = match self.further.get_mut(place.last as usize) {
            Some(last) => std::mem::replace(&mut last.next, at),
            None => at,
        };
        self.further.push(Further { span, next });
        place.last = at;
    }

    /// Returns the first span of `node`; `None` if the node has no span.
    pub(crate) fn first(&self, node: NodeId) -> Option<Span> {
        self.nodes.get(node.index())?.first
    }

    /// Returns the last span of `node`; `None` if the node has no span.
    pub(crate) fn last(&self, node: NodeId) -> Option<Span> {
        let NodePlaces { first, last } = *self.nodes.get(node.index())?;
        self.further.get(last as usize).map(|last| last.span).or(first)
    }

    /// Iterates over all spans of a node, in the order in which they were added.
    pub(crate) fn all(&self, node: NodeId) -> impl Iterator<Item = Span> + '_ {
        let NodePlaces { first, last } =
            self.nodes.get(node.index()).copied().unwrap_or(NodePlaces { first: None, last: NONE });
        let mut next = self.further.get(last as usize).map(|last| last.next);
        let further = std::iter::from_fn(move || {
            let at = next?;
            let Further { span, next: behind } = self.further[at as usize];
            next = (at != last).then_some(behind);
            Some(span)
        });
        first.into_iter().chain(further)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_told_in_the_order_they_were_noted() {
        let mut places = Places::default();
        let (a, b, c) = (NodeId::from_index(0), NodeId::from_index(1), NodeId::from_index(2));
        let at = |start| Span::new(start, start + 1);
        places.push(Some(at(0)));
        places.push(None);
        places.push(None);
        for (node, start) in [(a, 3), (b, 5), (a, 7), (b, 9), (a, 11), (b, 2), (b, 1)] {
            places.note(node, at(start));
        }
        let starts = |node| places.all(node).map(|span| span.start).collect::<Vec<_>>();
        assert_eq!((starts(a), starts(b), starts(c)), (vec![0, 3, 7, 11], vec![5, 9, 2, 1], vec![]));
        assert_eq!((places.first(b), places.first(c)), (Some(at(5)), None));
    }
}
