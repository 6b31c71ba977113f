//! How axes of tensors are cut into tiles, as `tile i, j = 8` says it of labels. Only what the text says is here: how many tiles an axis has
//! follows from its extent, which data say.

use std::fmt;
use std::sync::Arc;

/// How an axis is cut.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum AxisCut {
    /// Into tiles of this many elements, at least 1. The last tile may be shorter.
    Blocks(u64),
    /// At these boundaries, of which none is less than the one before. The first and the last are those of the axis, so they say its extent.
    Boundaries(Arc<[i64]>),
}

impl AxisCut {
    /// The bytes of the boundaries, which count as literals do.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            AxisCut::Blocks(_) => 0,
            AxisCut::Boundaries(boundaries) => size_of_val::<[i64]>(boundaries),
        }
    }
}

/// A statement that says how the axes of some labels are cut: `tile a, b = [0, 17, 40]`.
#[derive(Clone, Debug)]
pub struct TileRule {
    /// The labels, in the order of the text.
    pub labels: Box<[Arc<str>]>,
    /// How their axes are cut.
    pub cut: AxisCut,
    /// Where the statement stands; it does not count when two are compared.
    pub span: Option<cembra_value::Span>,
}

impl PartialEq for TileRule {
    fn eq(&self, other: &Self) -> bool {
        (&self.labels, &self.cut) == (&other.labels, &other.cut)
    }
}

/// As the text language writes it: `8`, `[0, 17, 40]`.
impl fmt::Display for AxisCut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AxisCut::Blocks(size) => write!(f, "{size}"),
            AxisCut::Boundaries(boundaries) => f.debug_list().entries(boundaries.iter()).finish(),
        }
    }
}

/// As the text language writes it: `tile i, j = 8`.
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
