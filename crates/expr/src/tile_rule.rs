//! Rules that cut axes of tensors into tiles, by labels: `tile i, j = 8`. A rule contains only the labels and the cut of its statement. The number
//! of tiles on an axis also depends on the axis's extent, which the data determine.

use std::fmt;
use std::sync::Arc;

/// The way to cut an axis into tiles.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum AxisCut {
    /// Every tile has this number of elements, at least 1. The last tile may be shorter.
    Blocks(u64),
    /// The boundaries of the tiles, in ascending order; equal boundaries are allowed. A tile lies between two neighbouring boundaries. The first
    /// and the last boundary are the ends of the axis, so they determine its extent.
    Boundaries(Arc<[i64]>),
}

impl AxisCut {
    /// The size of the boundaries in bytes, which counts towards the limit for literals.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            AxisCut::Blocks(_) => 0,
            AxisCut::Boundaries(boundaries) => size_of_val::<[i64]>(boundaries),
        }
    }
}

/// A statement that cuts the axes with certain labels into tiles: `tile a, b = [0, 17, 40]`.
#[derive(Clone, Debug)]
pub struct TileRule {
    /// The labels whose axes the statement cuts, in the order of the text.
    pub labels: Box<[Arc<str>]>,
    /// The cut of the axes with these labels.
    pub cut: AxisCut,
    /// The span of the statement in the text. It is ignored in comparisons.
    pub span: Option<cembra_value::Span>,
}

impl PartialEq for TileRule {
    fn eq(&self, other: &Self) -> bool {
        (&self.labels, &self.cut) == (&other.labels, &other.cut)
    }
}

/// Formats the cut as in the text language: `8`, `[0, 17, 40]`.
impl fmt::Display for AxisCut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AxisCut::Blocks(size) => write!(f, "{size}"),
            AxisCut::Boundaries(boundaries) => f.debug_list().entries(boundaries.iter()).finish(),
        }
    }
}

/// Formats the statement as in the text language: `tile i, j = 8`.
impl fmt::Display for TileRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("tile ")?;
        for (at, label) in self.labels.iter().enumerate() {
            if at > 0 {
                f.write_str(", ")?;
            }
            f.write_str(label)?;
        }
        write!(f, " = {}", self.cut)
    }
}
