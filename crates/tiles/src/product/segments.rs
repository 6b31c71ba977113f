//! Cuts the sums of a product into segments: ranges of tiles along the summed labels. Only the tilings decide where
//! sums are cut, not the present tiles. So the sums of all result tiles are cut at the same places, and segments can be
//! summed separately. [`Segment`] defines the rule; `numeric.rs` distributes segments over threads.

use crate::{Segment, Tiling1};

/// A segment also begins at each tile whose number is a multiple of 1,024. So the first tile of a segment is found by
/// visiting at most 1,024 tiles, although a grid may have 2^40.
const WINDOW: u64 = 1024;

/// An iteration over the tiles in the grid of the summed labels, the last axis the fastest, that finds the segments.
struct SegmentIterator<'t> {
    axes: &'t [&'t Tiling1],
    segment: Segment,
    /// The number of the tile that the iteration visits next.
    next: u64,
    /// The first tile of the current segment. `tiles` and `elements` count the tiles and elements of this segment
    /// before the tile `next`.
    first: u64,
    tiles: usize,
    elements: usize,
    /// The number after the last tile that differs from the current one only in the last coordinate.
    line_end: u64,
    outer: usize,
}

/// Returns, for each of `tiles`, the first tile of the segment that it belongs to. Tiles are numbered in the grid of the summed labels, and
/// must ascend.
pub(crate) fn segment_starts(axes: &[&Tiling1], segment: Segment, tiles: impl Iterator<Item = u64>) -> Vec<u64> {
    let mut walk = SegmentIterator { axes, segment, next: 0, first: 0, tiles: 0, elements: 0, line_end: 0, outer: 1 };
    tiles.map(|tile| walk.to(tile)).collect()
}

impl SegmentIterator<'_> {
    /// Advances to a tile, which must not be before the last one, and returns the first tile of its segment.
    fn to(&mut self, tile: u64) -> u64 {
        let window = tile - tile % WINDOW;
        if self.next < window {
            (self.next, self.line_end) = (window, 0);
        }
        while self.next <= tile {
            let is_full = self.tiles >= self.segment.tiles || self.elements >= self.segment.elements;
            if self.next.is_multiple_of(WINDOW) || (is_full && self.tiles > 0) {
                (self.first, self.tiles, self.elements) = (self.next, 0, 0);
            }
            // Tiles without elements do not count.
            let volume = self.volume();
            self.tiles += usize::from(volume > 0);
            self.elements = self.elements.saturating_add(volume);
            self.next += 1;
        }
        self.first
    }

    /// The number of terms that the next tile of the summed labels adds to the sum for a result element.
    fn volume(&mut self) -> usize {
        // Without summed labels there is one term.
        let Some((last, outer)) = self.axes.split_last() else { return 1 };
        if self.next >= self.line_end {
            let mut rest = self.next / last.tiles().max(1);
            self.line_end = (rest + 1).saturating_mul(last.tiles());
            self.outer = 1;
            for axis in outer.iter().rev() {
                let count = axis.tiles().max(1);
                self.outer = self.outer.saturating_mul(extent(axis, rest % count));
                rest /= count;
            }
        }
        self.outer.saturating_mul(extent(last, self.next % last.tiles().max(1)))
    }
}

fn extent(axis: &Tiling1, tile: u64) -> usize {
    axis.range(tile).map_or(0, |range| range.end.abs_diff(range.start) as usize)
}
