//! Edges: relations from the elements of an array (the child side) to their groups, which are the elements of another
//! array (the parent side), or to a single group. An edge owns its memory, and is checked when it is made. An edge may
//! state sizes for which there is not enough memory; this is checked when memory is allocated.

#![deny(clippy::arithmetic_side_effects)]

use crate::{Array, ArrayData, Error, Value, Words};
use cembra_runtime::{ArrayKind, EdgeType, Scalar};
use std::fmt;

/// An edge: the grouping of an array's elements, which gives the group of each element.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Edge {
    kind: ArrayKind,
    form: EdgeForm,
}

/// The form in which an edge (the grouping of an array's elements) states the group of each element.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum EdgeForm {
    /// The edge connects one scalar with one scalar.
    Scalars,
    /// All elements belong to a single group. The field is the number of elements.
    ToScalar(usize),
    /// Groups are contiguous, given by split points: group `g` has the elements from point `g` up to point `g + 1`.
    Splits(Vec<i64>),
    /// Groups are given by an array with the group of each element, missing for an element without a group; and the
    /// number of groups.
    Mapping(Array, usize),
}

/// The reason why an edge (the grouping of an array's elements) cannot be made.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EdgeFault {
    /// The first split point is missing, or is not 0.
    #[error("split points must begin with 0")]
    FirstPoint,
    /// A split point is less than the previous one.
    #[error("split points must not decrease")]
    PointsDown,
    /// An element has a group number that is out of range.
    #[error("an element belongs to group {found}, but the {parents} groups are numbered from 0")]
    Group {
        /// The group number that is out of range.
        found: i64,
        /// The number of groups that the edge has.
        parents: usize,
    },
    /// A size of a group is negative, or the sum of sizes is too large.
    #[error("a group has the size {0}: a size must not be negative, and the sum of all sizes must not be too large")]
    Size(i64),
    /// The size of a group, or a split point, is missing.
    #[error("a size or split point is missing")]
    Missing,
    /// The array of groups is not of type INT64.
    #[error("groups must be numbers of type i64")]
    Type,
    /// There is no memory for a copy of the array of groups.
    #[error("there is no memory for the groups of {elements} elements")]
    Memory {
        /// The number of elements in the array of groups.
        elements: usize,
    },
}

impl From<EdgeFault> for Error {
    fn from(fault: EdgeFault) -> Self {
        Error::values(fault.to_string())
    }
}

impl Edge {
    /// Returns the edge (grouping) from a scalar to a scalar.
    #[must_use]
    pub const fn scalars() -> Edge {
        Edge { kind: ArrayKind::Dense, form: EdgeForm::Scalars }
    }

    /// Returns the edge that puts all `child` elements into a single group.
    #[must_use]
    pub const fn to_scalar(kind: ArrayKind, child: usize) -> Edge {
        Edge { kind, form: EdgeForm::ToScalar(child) }
    }

    /// Returns the edge of contiguous groups that split points define: group `g` has the elements from `points[g]` up
    /// to, but without, `points[g + 1]`.
    ///
    /// # Errors
    /// If the points do not begin with 0, or descend.
    pub fn from_split_points(kind: ArrayKind, points: Vec<i64>) -> Result<Edge, EdgeFault> {
        if points.first() != Some(&0) {
            return Err(EdgeFault::FirstPoint);
        }
        if !points.is_sorted() {
            return Err(EdgeFault::PointsDown);
        }
        Ok(Edge { kind, form: EdgeForm::Splits(points) })
    }

    /// Returns the edge of contiguous groups with the sizes `sizes`.
    ///
    /// # Errors
    /// If a size is negative, or if their sum is too large.
    pub fn from_sizes(kind: ArrayKind, sizes: impl IntoIterator<Item = i64>) -> Result<Edge, EdgeFault> {
        let mut points = vec![0];
        let mut end = 0_i64;
        for size in sizes {
            end = end.checked_add(size).filter(|_| size >= 0).ok_or(EdgeFault::Size(size))?;
            points.push(end);
        }
        Ok(Edge { kind, form: EdgeForm::Splits(points) })
    }

    /// Returns the edge in which element `i` belongs to the group with the number `groups[i]`, which must be less than
    /// `parents`. An element whose number is missing has no group. An array in memory of another owner is copied before
    /// it is checked, because that owner may write to it as long as the edge lives.
    ///
    /// # Errors
    /// If a group number is out of range or not of type INT64, or if there is no memory for a copy.
    pub fn from_mapping(kind: ArrayKind, groups: Array, parents: usize) -> Result<Edge, EdgeFault> {
        let elements = groups.len();
        let groups = groups.owned().ok_or(EdgeFault::Memory { elements })?;
        let numbers = groups.numbers::<i64>().filter(|_| groups.scalar() == Scalar::Int64).ok_or(EdgeFault::Type)?;
        let is_group = |group: i64| usize::try_from(group).is_ok_and(|group| group < parents);
        for (at, group) in numbers.iter().enumerate() {
            if !is_group(*group) && groups.is_present(at) {
                return Err(EdgeFault::Group { found: *group, parents });
            }
        }
        Ok(Edge { kind, form: EdgeForm::Mapping(groups, parents) })
    }

    /// The kind of the arrays whose elements the edge groups.
    #[must_use]
    pub const fn kind(&self) -> ArrayKind {
        self.kind
    }

    /// The form in which this edge (the grouping of an array's elements) states the group of each element.
    #[must_use]
    pub const fn form(&self) -> &EdgeForm {
        &self.form
    }

    /// The type of the edge: between scalars, from an array to a scalar, or between arrays.
    #[must_use]
    pub const fn edge_type(&self) -> EdgeType {
        match self.form {
            EdgeForm::Scalars => EdgeType::Scalars,
            EdgeForm::ToScalar(_) => EdgeType::ToScalar(self.kind),
            EdgeForm::Splits(_) | EdgeForm::Mapping(..) => EdgeType::Arrays(self.kind),
        }
    }

    /// Returns a copy of the edge (the grouping of an array's elements) for arrays of the kind `kind`.
    #[must_use]
    pub fn of_kind(&self, kind: ArrayKind) -> Edge {
        Edge { kind, form: self.form.clone() }
    }

    /// The number of elements that the edge groups: the size of its child side.
    #[must_use]
    pub fn child_size(&self) -> usize {
        match &self.form {
            EdgeForm::Scalars => 1,
            EdgeForm::ToScalar(child) => *child,
            EdgeForm::Splits(points) => points.last().map_or(0, |last| *last as usize),
            EdgeForm::Mapping(groups, _) => groups.len(),
        }
    }

    /// The number of groups that the edge has: the size of its parent side.
    #[must_use]
    pub fn parent_size(&self) -> usize {
        match &self.form {
            EdgeForm::Scalars | EdgeForm::ToScalar(_) => 1,
            EdgeForm::Splits(points) => points.len().saturating_sub(1),
            EdgeForm::Mapping(_, parents) => *parents,
        }
    }

    /// Iterates over the group of each element on the child side, in order; `None` for an element without a group.
    pub fn groups(&self) -> Box<dyn Iterator<Item = Option<usize>> + '_> {
        match &self.form {
            EdgeForm::Scalars => Box::new(std::iter::once(Some(0))),
            EdgeForm::ToScalar(child) => Box::new(std::iter::repeat_n(Some(0), *child)),
            EdgeForm::Splits(points) => {
                let sizes = points.windows(2).map(|ends| ends[1].saturating_sub(ends[0]) as usize);
                Box::new(sizes.enumerate().flat_map(|(group, size)| std::iter::repeat_n(Some(group), size)))
            }
            EdgeForm::Mapping(groups, _) => {
                let numbers = groups.numbers::<i64>().unwrap_or_default();
                Box::new((0..groups.len()).map(|at| groups.is_present(at).then(|| numbers[at] as usize)))
            }
        }
    }

    /// The group of each element on the child side, as an array of type INT64.
    #[must_use]
    pub fn mapping(&self) -> Array {
        match &self.form {
            EdgeForm::Mapping(groups, _) => groups.clone(),
            _ => {
                let groups: Words = self.groups().map(|group| group.unwrap_or(0) as u64).collect();
                let len = groups.len();
                let made = Array::from_parts(Scalar::Int64, len, ArrayData::Numbers(groups), None);
                made.unwrap_or_else(|| Array::from_scalars(Scalar::Int64, []))
            }
        }
    }

    /// The bytes of memory that the edge holds, without its struct itself.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        match &self.form {
            EdgeForm::Scalars | EdgeForm::ToScalar(_) => 0,
            EdgeForm::Splits(points) => points.capacity().saturating_mul(8),
            EdgeForm::Mapping(groups, _) => groups.memory_bytes(),
        }
    }

    /// Returns true if both edges give each element the same group, whatever the forms in which they state it.
    #[must_use]
    pub fn same(&self, other: &Edge) -> bool {
        let is_alike = self.edge_type() == other.edge_type()
            && self.parent_size() == other.parent_size()
            && self.child_size() == other.child_size();
        is_alike
            && match (&self.form, &other.form) {
                (EdgeForm::Scalars, EdgeForm::Scalars) | (EdgeForm::ToScalar(_), EdgeForm::ToScalar(_)) => true,
                // Two points may stand for 2^63 elements, so the elements are not visited.
                (EdgeForm::Splits(points), EdgeForm::Splits(others)) => points == others,
                _ => self.groups().eq(other.groups()),
            }
    }
}

impl From<Edge> for Value {
    fn from(edge: Edge) -> Value {
        Value::Edge(edge.into())
    }
}

impl fmt::Display for Edge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.form {
            EdgeForm::Scalars => f.write_str("scalar_to_scalar_edge"),
            EdgeForm::ToScalar(child) => {
                write!(f, "{}{{{child}}}", self.edge_type().name().to_ascii_lowercase())
            }
            EdgeForm::Splits(points) => {
                let shown: Vec<_> = points.iter().take(10).map(i64::to_string).collect();
                let more = if points.len() > 10 { ", ..." } else { "" };
                write!(f, "edge.from_split_points([{}{more}])", shown.join(", "))
            }
            EdgeForm::Mapping(groups, parents) => write!(f, "edge.from_mapping({groups}, {parents})"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ScalarValue;

    /// Memory that its owner can write while it is lent.
    struct Lender(std::sync::Arc<Vec<u64>>);

    impl AsRef<[u64]> for Lender {
        fn as_ref(&self) -> &[u64] {
            &self.0
        }
    }

    #[test]
    fn groups_that_are_lent_are_copied() {
        let owner = std::sync::Arc::new(vec![0, 1, 1]);
        let lent = || ArrayData::Numbers(Words::lent(Lender(owner.clone())));
        let groups = Array::from_parts(Scalar::Int64, 3, lent(), None).unwrap();
        let edge = Edge::from_mapping(ArrayKind::Dense, groups, 2).unwrap();
        let EdgeForm::Mapping(kept, _) = edge.form() else { panic!("a mapping") };
        assert_eq!(kept.numbers::<i64>(), Some(&[0, 1, 1][..]));
        assert_ne!(kept.numbers::<i64>().unwrap().as_ptr().cast(), owner.as_ptr());
        assert_eq!(std::sync::Arc::strong_count(&owner), 1);
    }

    #[test]
    fn edges_say_which_group_an_element_is_in() {
        let kind = ArrayKind::Dense;
        let splits = Edge::from_sizes(kind, [2, 0, 1]).unwrap();
        assert!(splits.groups().eq([Some(0), Some(0), Some(2)]));
        assert_eq!((splits.child_size(), splits.parent_size()), (3, 3));
        let groups =
            |ids: &[Option<i64>]| Array::from_scalars(Scalar::Int64, ids.iter().map(|id| id.map(ScalarValue::Int64)));
        let mapping = Edge::from_mapping(kind, groups(&[Some(0), Some(0), Some(2)]), 3).unwrap();
        assert!(mapping.same(&splits) && mapping != splits);
        // Edges with more elements than can be visited.
        let long = |sizes: [i64; 2]| Edge::from_sizes(ArrayKind::Dense, sizes).expect("an edge");
        assert!(long([i64::MAX - 1, 1]).same(&long([i64::MAX - 1, 1])));
        assert!(!long([i64::MAX - 1, 1]).same(&long([1, i64::MAX - 1])));
        let to_scalar = |child| Edge::to_scalar(ArrayKind::Dense, child);
        assert!(to_scalar(usize::MAX).same(&to_scalar(usize::MAX)) && !to_scalar(usize::MAX).same(&to_scalar(1)));
        assert_eq!(mapping.mapping(), splits.mapping());
        let holes = Edge::from_mapping(kind, groups(&[Some(1), None]), 2).unwrap();
        assert!(holes.groups().eq([Some(1), None]));
        assert_eq!(Edge::from_mapping(kind, groups(&[Some(2)]), 2), Err(EdgeFault::Group { found: 2, parents: 2 }));
        assert_eq!(Edge::from_mapping(kind, groups(&[Some(-1)]), 2), Err(EdgeFault::Group { found: -1, parents: 2 }));
        assert_eq!(Edge::from_sizes(kind, [1, -1]), Err(EdgeFault::Size(-1)));
        assert_eq!(Edge::from_sizes(kind, [i64::MAX, 1]), Err(EdgeFault::Size(1)));
        assert_eq!(Edge::from_split_points(kind, vec![]), Err(EdgeFault::FirstPoint));
        assert_eq!(Edge::from_split_points(kind, vec![0, 2, 1]), Err(EdgeFault::PointsDown));
        assert!(Edge::to_scalar(kind, 2).groups().eq([Some(0), Some(0)]));
    }
}
