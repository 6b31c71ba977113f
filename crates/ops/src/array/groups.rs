//! Divides the elements of an array into the groups of an aggregation or a scan: one group of all elements, contiguous
//! groups, or a group given for each element. The elements of a group are visited in their order in the array.

use super::{edge_of, limits, sizes_differ};
use cembra_runtime::Fault;
use cembra_value::{Array, Edge, EdgeForm, Value};
use std::ops::Range;

/// The division of an array's elements into groups: one group, contiguous groups, or a group given for each element.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Groups<'a> {
    edge: Option<&'a Edge>,
    size: usize,
}

impl<'a> Groups<'a> {
    /// Returns the groups that the operand `edge` defines. If the operand is not an edge (a mapping from elements to
    /// groups), all `size` elements are one group.
    ///
    /// # Errors
    /// If the edge has another number of elements, or more groups than an array may have elements.
    pub(crate) fn of(edge: &'a Value, size: usize) -> Result<Self, Fault> {
        let edge = edge_of(edge);
        if let Some(found) = edge.map(Edge::child_size).filter(|found| *found != size) {
            return Err(sizes_differ(found, size));
        }
        limits::check(edge.map_or(1, Edge::parent_size))?;
        Ok(Groups { edge, size })
    }

    /// The number of elements that are divided into groups.
    pub(crate) const fn size(&self) -> usize {
        self.size
    }

    /// The number of groups, including groups without elements.
    pub(crate) fn count(&self) -> usize {
        self.edge.map_or(1, Edge::parent_size)
    }

    /// Iterates over pairs of an element's index and its group's index, which is `None` for an element in no group. Returns `None` instead of an
    /// iterator if the groups are contiguous.
    pub(crate) fn mapping(&self) -> Option<impl Iterator<Item = (usize, Option<usize>)> + 'a> {
        let edge = self.edge?;
        matches!(edge.form(), EdgeForm::Mapping(..)).then(|| edge.groups().enumerate())
    }

    /// The range of elements of each contiguous group. The iterator is empty if the group of each element is given separately.
    pub(crate) fn runs(&self) -> impl Iterator<Item = Range<usize>> + 'a {
        let (points, whole): (&[i64], _) = match self.edge.map(Edge::form) {
            Some(EdgeForm::Splits(points)) => (points, None),
            Some(EdgeForm::Mapping(..)) => (&[], None),
            _ => (&[], Some(0..self.size)),
        };
        points.windows(2).map(|ends| ends[0] as usize..ends[1] as usize).chain(whole)
    }

    /// Folds each group from the state `start`, and returns the groups' final states. `add` receives the state of a group, the index of an element,
    /// and the element's position in the group.
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

    /// A bit per element of `array`, set if the element is present and in a group; `None` if all elements are present and in groups.
    pub(crate) fn presence(&self, array: &Array) -> Option<Vec<u64>> {
        let grouped = match self.edge.map(Edge::form) {
            Some(EdgeForm::Mapping(groups, _)) => groups.presence(),
            _ => None,
        };
        match (array.presence(), grouped) {
            (None, None) => None,
            (Some(bits), None) | (None, Some(bits)) => Some(bits.to_vec()),
            (Some(a), Some(b)) => Some(a.iter().zip(b).map(|(a, b)| a & b).collect()),
        }
    }

    /// Collects, for each group, the indices of the elements for which `wanted` returns true, in ascending order.
    pub(crate) fn members(&self, mut wanted: impl FnMut(usize) -> bool) -> Members {
        let Some(mapping) = self.mapping() else {
            let mut members = Members { ends: Vec::with_capacity(self.count()), elements: Vec::new() };
            for run in self.runs() {
                members.elements.extend(run.filter(|element| wanted(*element)));
                members.ends.push(members.elements.len());
            }
            return members;
        };
        // An entry first counts the elements per group, then is the group's start. Each element advances it, so that at the end
        // it is the group's end.
        let chosen: Vec<(usize, usize)> = mapping
            .filter_map(|(element, group)| group.filter(|_| wanted(element)).map(|group| (element, group)))
            .collect();
        let mut ends = vec![0; self.count()];
        chosen.iter().for_each(|(_, group)| ends[*group] += 1);
        let mut before = 0;
        for end in &mut ends {
            (*end, before) = (before, before + *end);
        }
        let mut elements = vec![0; chosen.len()];
        for (element, group) in chosen {
            elements[ends[group]] = element;
            ends[group] += 1;
        }
        Members { ends, elements }
    }
}

/// The indices of selected elements, group by group.
#[derive(Debug)]
pub(crate) struct Members {
    ends: Vec<usize>,
    elements: Vec<usize>,
}

impl Members {
    /// The indices of the selected elements in the group `group`, in ascending order.
    pub(crate) fn of(&self, group: usize) -> &[usize] {
        let start = if group == 0 { 0 } else { self.ends[group - 1] };
        &self.elements[start..self.ends[group]]
    }

    /// The number of groups, including groups without selected elements.
    pub(crate) const fn count(&self) -> usize {
        self.ends.len()
    }

    /// The indices of the selected elements in each group, one list per group, in the order of the groups.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &[usize]> {
        (0..self.count()).map(|group| self.of(group))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cembra_runtime::{ArrayKind, FaultKind, Scalar};
    use cembra_value::ScalarValue;

    fn mapping(groups: &[Option<i64>], parents: usize) -> Value {
        let groups = Array::from_scalars(Scalar::Int64, groups.iter().map(|group| group.map(ScalarValue::Int64)));
        Edge::from_mapping(ArrayKind::Dense, groups, parents).unwrap().into()
    }

    #[test]
    fn members_are_the_wanted_elements_of_each_group_in_order() {
        let edge = mapping(&[Some(2), Some(0), None, Some(2), Some(2)], 4);
        let groups = Groups::of(&edge, 5).unwrap();
        let all: Vec<Vec<usize>> = groups.members(|_| true).iter().map(<[usize]>::to_vec).collect();
        assert_eq!(all, [vec![1], vec![], vec![0, 3, 4], vec![]]);
        let some: Vec<Vec<usize>> = groups.members(|at| at != 3).iter().map(<[usize]>::to_vec).collect();
        assert_eq!(some, [vec![1], vec![], vec![0, 4], vec![]]);
        let splits: Value = Edge::from_sizes(ArrayKind::Dense, [0, 2, 1, 0]).unwrap().into();
        let runs = Groups::of(&splits, 3).unwrap().members(|at| at != 0);
        assert_eq!(runs.iter().map(<[usize]>::to_vec).collect::<Vec<_>>(), [vec![], vec![1], vec![2], vec![]]);
        assert_eq!(Groups::of(&Value::Unspecified, 2).unwrap().members(|_| true).of(0), [0, 1]);
    }

    #[test]
    fn an_edge_of_more_groups_than_can_be_is_refused() {
        let fault = Groups::of(&mapping(&[None], usize::MAX), 1).unwrap_err();
        assert_eq!(fault.kind, FaultKind::ArenaLimit);
        assert_eq!(Groups::of(&mapping(&[None], 1), 2).unwrap_err(), sizes_differ(1, 2));
    }
}
