//! The groups that an aggregation or a scan goes over: one of all elements, contiguous ones, or one that each element names.
//! Elements come in the order of the child side.

use super::{edge_of, sizes_differ};
use cembra_runtime::Fault;
use cembra_value::{Edge, EdgeForm, Value};
use std::ops::Range;

/// The groups of some elements.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Groups<'a> {
    edge: Option<&'a Edge>,
    size: usize,
}

impl<'a> Groups<'a> {
    /// Those of an edge, or one of all elements where there is none.
    ///
    /// # Errors
    /// The edge is one of another number of elements.
    pub(crate) fn of(edge: &'a Value, size: usize) -> Result<Self, Fault> {
        let edge = edge_of(edge);
        if let Some(found) = edge.map(Edge::child_size).filter(|found| *found != size) {
            return Err(sizes_differ(found, size));
        }
        Ok(Groups { edge, size })
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.edge.map_or(1, Edge::parent_size)
    }

    /// The group of each element by its number, where each element names its own.
    pub(crate) fn mapping(&self) -> Option<impl Iterator<Item = (usize, Option<usize>)> + 'a> {
        let edge = self.edge?;
        matches!(edge.form(), EdgeForm::Mapping(..)).then(|| edge.groups().enumerate())
    }

    /// Where contiguous groups begin and end; nothing for a mapping.
    pub(crate) fn runs(&self) -> impl Iterator<Item = Range<usize>> + 'a {
        let (points, whole): (&[i64], _) = match self.edge.map(Edge::form) {
            Some(EdgeForm::Splits(points)) => (points, None),
            Some(EdgeForm::Mapping(..)) => (&[], None),
            _ => (&[], Some(0..self.size)),
        };
        points.windows(2).map(|ends| ends[0] as usize..ends[1] as usize).chain(whole)
    }

    /// Folds each group: `add` sees its state, an element and the element's position in the group.
    pub(crate) fn fold<S: Clone>(&self, start: &S, mut add: impl FnMut(&mut S, usize, usize)) -> Vec<S> {
        match self.mapping() {
            Some(mapping) => {
                let mut states = vec![(start.clone(), 0); self.count()];
                for (element, group) in mapping {
                    if let Some(group) = group {
                        let (state, position) = &mut states[group];
                        add(state, element, *position);
                        *position += 1;
                    }
                }
                states.into_iter().map(|(state, _)| state).collect()
            }
            None => {
                let run = |run: Range<usize>| {
                    let mut state = start.clone();
                    for (position, element) in run.enumerate() {
                        add(&mut state, element, position);
                    }
                    state
                };
                self.runs().map(run).collect()
            }
        }
    }
}
