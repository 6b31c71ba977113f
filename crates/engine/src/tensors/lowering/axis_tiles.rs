//! The tiles of a tensor's axis, as far as they are known, and the tiles of a part of the axis: some of its tiles, or a range of its elements. The
//! elements of a part are counted from 0. The list of tile boundaries is shared between parts, not copied.

use cembra_expr::AxisCut;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// The division of an axis into tiles: one tile, tiles of one size, or tiles between listed boundaries.
#[derive(Clone, Debug)]
pub(super) enum AxisTiles {
    /// The axis is one tile.
    One,
    /// The axis has tiles of `size` elements; the last tile may be shorter. `count` is the number of tiles if it is known, as for an axis of a block
    /// of tiles.
    Blocks { size: u64, count: Option<u64> },
    /// The tiles are between adjacent boundaries, from `boundaries[first]` to `boundaries[last]`.
    Between { boundaries: Arc<[i64]>, first: usize, last: usize },
}

impl AxisTiles {
    /// Returns the tiles of an axis whose cut the text or a tensor gives; one tile if there is no cut.
    pub(super) fn of(cut: Option<&AxisCut>) -> AxisTiles {
        match cut {
            None => AxisTiles::One,
            Some(AxisCut::Blocks(size)) => AxisTiles::Blocks { size: *size, count: None },
            Some(AxisCut::Boundaries(boundaries)) => {
                let last = boundaries.len().saturating_sub(1);
                AxisTiles::Between { boundaries: boundaries.clone(), first: 0, last }
            }
        }
    }

    /// The boundaries; `None` if there is no list of them.
    fn listed(&self) -> Option<&[i64]> {
        match self {
            AxisTiles::Between { boundaries, first, last } => boundaries.get(*first..=*last),
            _ => None,
        }
    }

    /// The number of tiles of the axis; `None` if it depends on the number of elements.
    pub(super) fn known_count(&self) -> Option<u64> {
        match self {
            AxisTiles::One => Some(1),
            AxisTiles::Blocks { count, .. } => *count,
            AxisTiles::Between { first, last, .. } => Some(last.saturating_sub(*first) as u64),
        }
    }

    /// The number of tiles, if the axis has `extent` elements.
    pub(super) fn count(&self, extent: usize) -> u64 {
        match self {
            AxisTiles::One => u64::from(extent > 0),
            AxisTiles::Blocks { size, .. } => (extent as u64).div_ceil((*size).max(1)),
            AxisTiles::Between { first, last, .. } => last.saturating_sub(*first) as u64,
        }
    }

    /// The number of elements of an axis whose boundaries are listed; `None` for other axes, which may have any number.
    pub(super) fn listed_extent(&self) -> Option<u64> {
        let [lower, .., upper] = self.listed()? else { return Some(0) };
        Some(upper.abs_diff(*lower))
    }

    /// The range of elements that the tiles `tiles` contain, if the axis has `extent` elements; `None` if the axis lacks one of these tiles.
    pub(super) fn elements(&self, tiles: &Range<u64>, extent: usize) -> Option<Range<usize>> {
        if tiles.start > tiles.end || tiles.end > self.count(extent) {
            return None;
        }
        let boundary = |at: u64| match self {
            AxisTiles::One => Some(if at == 0 { 0 } else { extent as u64 }),
            AxisTiles::Blocks { size, .. } => Some(at.saturating_mul(*size).min(extent as u64)),
            AxisTiles::Between { .. } => {
                let listed = self.listed()?;
                Some(listed.get(usize::try_from(at).ok()?)?.abs_diff(*listed.first()?))
            }
        };
        Some(usize::try_from(boundary(tiles.start)?).ok()?..usize::try_from(boundary(tiles.end)?).ok()?)
    }

    /// The tiles of a block that consists of the tiles `tiles`. Empty tiles at either end of the block are left out.
    pub(super) fn block(&self, tiles: &Range<u64>) -> AxisTiles {
        match self {
            AxisTiles::One => AxisTiles::One,
            AxisTiles::Blocks { size, .. } => {
                AxisTiles::Blocks { size: *size, count: Some(tiles.end.saturating_sub(tiles.start)) }
            }
            AxisTiles::Between { boundaries, first, last } => {
                let place = |at: u64| usize::try_from(at).map_or(*last, |at| first.saturating_add(at).min(*last));
                let (start, stop) = (place(tiles.start), place(tiles.end));
                let own = boundaries.get(start..=stop).unwrap_or_default();
                let (Some(lower), Some(upper)) = (own.first(), own.last()) else { return self.clone() };
                // The last of equal boundaries at the beginning, and the first of equal ones at the end.
                let begins = own.partition_point(|boundary| boundary <= lower).saturating_sub(1);
                let ends = own.partition_point(|boundary| boundary < upper).max(begins);
                AxisTiles::Between { boundaries: boundaries.clone(), first: start + begins, last: start + ends }
            }
        }
    }

    /// The tiles of the range `elements`; one tile if the axis is one tile. `None` if the range begins within a tile or, for listed boundaries, ends
    /// within a tile.
    pub(super) fn part(&self, elements: &Range<usize>) -> Option<AxisTiles> {
        match self {
            AxisTiles::One => Some(AxisTiles::One),
            AxisTiles::Blocks { size, .. } => {
                let is_aligned = (elements.start as u64).checked_rem(*size) == Some(0);
                is_aligned.then_some(AxisTiles::Blocks { size: *size, count: None })
            }
            AxisTiles::Between { .. } => {
                let listed = self.listed()?;
                let lower = *listed.first()?;
                let tile_at = |element: usize| {
                    let at = listed.partition_point(|boundary| boundary.abs_diff(lower) < element as u64);
                    (listed.get(at)?.abs_diff(lower) == element as u64).then_some(at as u64)
                };
                Some(self.block(&(tile_at(elements.start)?..tile_at(elements.end)?)))
            }
        }
    }

    /// Returns true if an axis with these tiles can have a label with the cut `label`, whatever the extents are.
    pub(super) fn is_alike(&self, label: Option<&AxisCut>) -> bool {
        let is_one = self.known_count().is_some_and(|count| count <= 1);
        match (self, label) {
            (_, None) => is_one,
            (AxisTiles::One, Some(_)) => false,
            (AxisTiles::Blocks { size, .. }, Some(AxisCut::Blocks(other))) => {
                size == other || (is_one && size <= other)
            }
            (AxisTiles::Blocks { size, count }, Some(AxisCut::Boundaries(others))) => {
                count.is_some_and(|count| (others.len() as u64).checked_sub(1) == Some(count))
                    && is_of_size(others, *size)
            }
            (AxisTiles::Between { .. }, Some(AxisCut::Blocks(size))) => {
                self.listed().is_some_and(|own| is_ascending(own) && has_size(own, *size))
            }
            (AxisTiles::Between { .. }, Some(AxisCut::Boundaries(others))) => {
                let own = self.listed().unwrap_or_default();
                let lower = own.first().copied().unwrap_or(0);
                let from_zero = |boundary: &i64| boundary.abs_diff(lower);
                others.iter().all(|other| *other >= 0)
                    && own.iter().map(from_zero).eq(others.iter().map(|other| other.unsigned_abs()))
            }
        }
    }
}

/// Returns true if the boundaries begin at 0 and divide an axis into tiles of `size` elements; the last tile may be shorter.
fn is_of_size(boundaries: &[i64], size: u64) -> bool {
    boundaries.first() == Some(&0) && is_ascending(boundaries) && has_size(boundaries, size)
}

/// Returns true if no tile between boundaries is empty.
fn is_ascending(boundaries: &[i64]) -> bool {
    boundaries.array_windows().all(|[before, after]| before < after)
}

/// Returns true if all tiles between boundaries have `size` elements, except the last, which may be shorter.
fn has_size(boundaries: &[i64], size: u64) -> bool {
    let mut sizes = boundaries.array_windows().map(|[before, after]| after.abs_diff(*before));
    let last = sizes.next_back();
    sizes.all(|own| own == size) && last.is_none_or(|own| own <= size)
}

/// Writes the cut as in `tile i = ..`: `8`, `[0, 17, 40]`.
impl fmt::Display for AxisTiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AxisTiles::One => f.write_str("one tile"),
            AxisTiles::Blocks { size, .. } => write!(f, "{size}"),
            AxisTiles::Between { .. } => {
                let listed = self.listed().unwrap_or_default();
                let lower = listed.first().copied().unwrap_or(0);
                f.debug_list().entries(listed.iter().map(|boundary| boundary.abs_diff(lower))).finish()
            }
        }
    }
}
