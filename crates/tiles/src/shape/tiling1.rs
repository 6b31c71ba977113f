//! Tilings of one axis: a range of indices that boundaries cut into tiles. Tiles may differ in size and may be empty. A
//! [`Tiling`](crate::Tiling) consists of the tilings of a tensor's axes.

#![deny(clippy::arithmetic_side_effects)]

use crate::error::limit;
use cembra_value::Error;
use cembra_value::tensor::TensorErrorKind as Kind;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// The most boundaries that are listed if an axis of tiles of one size is cut within its first tile.
const MOST_LISTED: u64 = 1 << 24;

/// The tiling of one axis: the range of its indices, cut into tiles at boundaries. Cloning it copies no boundaries.
///
/// ```
/// use cembra_tiles::Tiling1;
///
/// let tiling = Tiling1::new([-3, 0, 0, 5])?;
/// assert_eq!(tiling.tiles(), 3);
/// assert_eq!(tiling.range(2), Some(0..5));
/// assert_eq!(tiling.tile_of(0), Some(2));
/// assert_eq!(Tiling1::blocked(10, 4)?, Tiling1::new([0, 4, 8, 10])?);
/// # Ok::<(), cembra_value::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Tiling1(Boundaries);

/// The boundaries of an axis's tiles. Equal tilings have the same variant: tiles of one size, of which only the last
/// may be shorter, are never stored as a list.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Boundaries {
    /// There are `tiles` tiles of `size` elements, at least 1 of each; only the last tile may be shorter. A single tile has the size of the
    /// whole range.
    Uniform { lower: i64, upper: i64, size: i64, tiles: u64 },
    /// The boundaries between tiles are listed in ascending order, at least one.
    Listed(Arc<[i64]>),
}

impl Tiling1 {
    /// Makes the tiling with a tile between each two adjacent `boundaries`, which must ascend. Two equal boundaries have an empty tile
    /// between them. A single boundary makes no tiles.
    ///
    /// # Errors
    /// If there are no boundaries, a boundary is less than the previous one, or the range has more elements than an axis may have.
    pub fn new(boundaries: impl IntoIterator<Item = i64>) -> Result<Tiling1, Error> {
        let boundaries: Vec<i64> = boundaries.into_iter().collect();
        let [lower, .., upper] = match *boundaries {
            [] => return Err(Error::tensors(Kind::Tiling, "a tiling must have boundaries")),
            [one] => [one, one],
            [lower, .., upper] => [lower, upper],
        };
        if let Some([before, after]) = boundaries.array_windows().find(|[before, after]| after < before) {
            let message = format!("the boundary {after} of a tiling is after the larger boundary {before}");
            return Err(Error::tensors(Kind::Tiling, message).hint("write boundaries in ascending order"));
        }
        extent_between(lower, upper)?;
        let tiles = boundaries.len().saturating_sub(1) as u64;
        let size = boundaries.get(1).map_or(0, |second| second.saturating_sub(lower));
        let uniform = Boundaries::Uniform { lower, upper, size, tiles };
        let is_uniform = size > 0
            && upper > boundaries[boundaries.len().saturating_sub(2)]
            && boundaries.iter().zip(0..).all(|(boundary, at)| uniform.at(at) == Some(*boundary));
        Ok(Tiling1(if is_uniform { uniform } else { Boundaries::Listed(boundaries.into()) }))
    }

    /// Cuts the indices `0..elements` into tiles of `size` elements; the last tile may be shorter. Without elements there are no tiles. No
    /// boundaries are stored.
    ///
    /// # Errors
    /// If the size is 0, or there are more elements than an axis may have.
    pub fn blocked(elements: u64, size: u64) -> Result<Tiling1, Error> {
        if size == 0 {
            return Err(
                Error::tensors(Kind::Tiling, "the size of tiles must not be 0").hint("use a size of at least 1")
            );
        }
        let upper = i64::try_from(elements).map_err(|_| too_long(elements))?;
        extent_between(0, upper)?;
        if upper == 0 {
            return Tiling1::new([0]);
        }
        let size = i64::try_from(size).map_or(upper, |size| size.min(upper));
        let tiles = elements.div_ceil(size.cast_unsigned());
        Ok(Tiling1(Boundaries::Uniform { lower: 0, upper, size, tiles }))
    }

    /// The number of tiles along the axis, including empty ones.
    #[must_use]
    pub fn tiles(&self) -> u64 {
        match &self.0 {
            Boundaries::Uniform { tiles, .. } => *tiles,
            Boundaries::Listed(list) => list.len().saturating_sub(1) as u64,
        }
    }

    /// The size of the tiles, if all have the same size except that the last one may be shorter; else `None`.
    #[must_use]
    pub fn tile_size(&self) -> Option<u64> {
        match &self.0 {
            Boundaries::Uniform { size, .. } => Some(size.cast_unsigned()),
            Boundaries::Listed(_) => None,
        }
    }

    /// The number of tiles that have at least one element.
    pub(crate) fn filled_tiles(&self) -> u64 {
        match &self.0 {
            Boundaries::Uniform { tiles, .. } => *tiles,
            Boundaries::Listed(list) => list.array_windows().filter(|[before, after]| before < after).count() as u64,
        }
    }

    /// The index of the axis's first element.
    #[must_use]
    pub fn lower(&self) -> i64 {
        match &self.0 {
            Boundaries::Uniform { lower, .. } => *lower,
            Boundaries::Listed(list) => list.first().copied().unwrap_or(0),
        }
    }

    /// The index after the axis's last element.
    #[must_use]
    pub fn upper(&self) -> i64 {
        match &self.0 {
            Boundaries::Uniform { upper, .. } => *upper,
            Boundaries::Listed(list) => list.last().copied().unwrap_or(0),
        }
    }

    /// The number of elements along the axis.
    #[must_use]
    pub fn extent(&self) -> usize {
        // Constructors check that it is at most `isize::MAX`.
        self.upper().abs_diff(self.lower()) as usize
    }

    /// The index range of a tile's elements; `None` if there is no such tile.
    #[must_use]
    pub fn range(&self, tile: u64) -> Option<Range<i64>> {
        Some(self.0.at(tile)?..self.0.at(tile.checked_add(1)?)?)
    }

    /// The tile that contains the element at an index; `None` if the axis has no such element.
    #[must_use]
    pub fn tile_of(&self, element: i64) -> Option<u64> {
        if element < self.lower() || element >= self.upper() {
            return None;
        }
        Some(match &self.0 {
            Boundaries::Uniform { lower, size, .. } => {
                element.abs_diff(*lower).checked_div(size.cast_unsigned()).unwrap_or(0)
            }
            Boundaries::Listed(list) => list.partition_point(|boundary| *boundary <= element).saturating_sub(1) as u64,
        })
    }

    /// The boundaries between the tiles, including both ends, in ascending order.
    pub fn boundaries(&self) -> impl Iterator<Item = i64> {
        (0..=self.tiles()).map_while(|at| self.0.at(at))
    }

    /// Returns the tiling of a range of tiles, whose elements keep their indices.
    ///
    /// # Errors
    /// If `tiles` exceeds the tiles of the axis, or is descending.
    pub fn block(&self, tiles: Range<u64>) -> Result<Tiling1, Error> {
        let [Some(lower), Some(upper)] = [self.0.at(tiles.start), self.0.at(tiles.end)] else {
            return Err(outside(&tiles, "tiles", self));
        };
        let Some(count) = tiles.end.checked_sub(tiles.start) else {
            return Err(outside(&tiles, "tiles", self));
        };
        match &self.0 {
            Boundaries::Listed(list) => Tiling1::new(list[tiles.start as usize..=tiles.end as usize].iter().copied()),
            Boundaries::Uniform { .. } if count == 0 => Tiling1::new([lower]),
            Boundaries::Uniform { size, .. } => {
                let size = (*size).min(upper.saturating_sub(lower));
                Ok(Tiling1(Boundaries::Uniform { lower, upper, size, tiles: count }))
            }
        }
    }

    /// Returns the tiling of a range of elements, which keep their indices, with the same boundaries within it. Empty tiles at either end
    /// are left out.
    ///
    /// # Errors
    /// If `elements` exceeds the elements of the axis, is descending, or begins within a tile and has more than 2^24 tiles.
    pub fn elements(&self, elements: Range<i64>) -> Result<Tiling1, Error> {
        if elements.start > elements.end || elements.start < self.lower() || elements.end > self.upper() {
            return Err(outside(&elements, "elements", self));
        }
        let tiles = self.overlapping(&elements);
        if tiles.is_empty() {
            return Tiling1::new([elements.start]);
        }
        let inner = tiles.start.saturating_add(1)..tiles.end;
        // Of tiles of one size, a first tile that is whole leaves tiles of one size, so no boundary is listed.
        if self.0.at(tiles.start) == Some(elements.start)
            && let Boundaries::Uniform { size, .. } = &self.0
        {
            let size = (*size).min(elements.end.saturating_sub(elements.start));
            let tiles = tiles.end.saturating_sub(tiles.start);
            let (lower, upper) = (elements.start, elements.end);
            return Ok(Tiling1(Boundaries::Uniform { lower, upper, size, tiles }));
        }
        let count = inner.end.saturating_sub(inner.start);
        if count > MOST_LISTED {
            return Err(limit("boundaries of an axis that is cut within a tile", count, MOST_LISTED)
                .hint("start where a tile starts"));
        }
        let inner = inner.filter_map(|at| self.0.at(at));
        Tiling1::new(std::iter::once(elements.start).chain(inner).chain([elements.end]))
    }

    /// Shifts the tiling so that the first element has the index `lower`.
    ///
    /// # Errors
    /// If the index of the last element would be too large for an `i64`.
    pub fn rebased(&self, lower: i64) -> Result<Tiling1, Error> {
        let far = || Error::tensors(Kind::Tiling, format!("the range from {lower} must have a last index"));
        let moved = |boundary: i64| {
            let distance = i64::try_from(boundary.abs_diff(self.lower())).ok()?;
            lower.checked_add(distance)
        };
        let upper = moved(self.upper()).ok_or_else(far)?;
        Ok(Tiling1(match &self.0 {
            Boundaries::Uniform { size, tiles, .. } => Boundaries::Uniform { lower, upper, size: *size, tiles: *tiles },
            Boundaries::Listed(list) => {
                Boundaries::Listed(list.iter().map(|boundary| moved(*boundary)).collect::<Option<_>>().ok_or_else(far)?)
            }
        }))
    }

    /// The range of tiles that contains exactly the elements `elements`, without empty tiles at either end; `None` if there are no
    /// elements, or they do not begin and end at boundaries.
    pub(crate) fn tiles_within(&self, elements: &Range<i64>) -> Option<Range<u64>> {
        let tiles = self.overlapping(elements);
        let own = self.0.at(tiles.start)?..self.0.at(tiles.end)?;
        (!tiles.is_empty() && own == *elements).then_some(tiles)
    }

    /// The range from the first to the last tile that contains some of `elements`, including empty tiles in between.
    pub(crate) fn overlapping(&self, elements: &Range<i64>) -> Range<u64> {
        let (start, end) = (elements.start.max(self.lower()), elements.end.min(self.upper()));
        if start >= end {
            return 0..0;
        }
        match (self.tile_of(start), self.tile_of(end.saturating_sub(1))) {
            (Some(first), Some(last)) => first..last.saturating_add(1),
            _ => 0..0,
        }
    }
}

impl Boundaries {
    /// The boundary in front of a tile, or after the last tile; `None` beyond.
    fn at(&self, at: u64) -> Option<i64> {
        match self {
            Boundaries::Uniform { tiles, .. } if at > *tiles => None,
            Boundaries::Uniform { lower, upper, size, .. } => {
                // The last tile may be shorter, so its end is limited to `upper`.
                let distance = i128::from(*size).saturating_mul(i128::from(at));
                let boundary = i128::from(*lower).saturating_add(distance).min(i128::from(*upper));
                i64::try_from(boundary).ok()
            }
            Boundaries::Listed(list) => list.get(usize::try_from(at).ok()?).copied(),
        }
    }
}

/// Checks that an axis may have the elements from `lower` to before `upper`.
fn extent_between(lower: i64, upper: i64) -> Result<(), Error> {
    let extent = upper.abs_diff(lower);
    if isize::try_from(extent).is_ok() { Ok(()) } else { Err(too_long(extent)) }
}

#[cold]
fn too_long(extent: u64) -> Error {
    Error::tensors(Kind::Limit, format!("an axis has {extent} elements; the limit is {}", isize::MAX))
}

#[cold]
fn outside(range: &Range<impl fmt::Display>, what: &str, tiling: &Tiling1) -> Error {
    let message = format!("the range {} to {} is not within the {what} of {tiling:?}", range.start, range.end);
    Error::tensors(Kind::Index, message)
}

impl fmt::Debug for Tiling1 {
    /// The first few boundaries, and the last: `[0, 4, 8, .., 1000]`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 8;
        f.write_str("[")?;
        for (at, boundary) in self.boundaries().take(SHOWN).enumerate() {
            write!(f, "{}{boundary}", if at > 0 { ", " } else { "" })?;
        }
        match self.tiles() {
            0..8 => f.write_str("]"),
            8 => write!(f, ", {}]", self.upper()),
            _ => write!(f, ", .., {}]", self.upper()),
        }
    }
}
