//! Weighted sums of the coordinates of a tile. With the strides of another grid as weights, the sum is the number of
//! the tile in that grid. Tiles are mostly requested in ascending order, so the sum over the outer coordinates is
//! stored while these stay the same.

use crate::Tiling;
use crate::shape::tiling::TileIndex;
use smallvec::SmallVec;

/// Computes weighted sums of a tile's coordinates, such as the tile's number in another grid, with several weights for each axis.
pub(crate) struct WeightedIndex<const N: usize> {
    /// The number of tiles of each axis but the last, and the weights of the axis.
    outer: SmallVec<[(u64, [u64; N]); 6]>,
    last: (u64, [u64; N]),
    /// The tiles that differ from the last requested tile only in the last coordinate: the number of the first of them,
    /// their number, and the weighted sums of their other coordinates.
    line: (u64, u64, [u64; N]),
}

impl<const N: usize> WeightedIndex<N> {
    /// Prepares `N` weighted sums. `weights` has `N` lists, each with one weight per axis. The sums are tile numbers in a grid, so they fit
    /// a `u64`.
    pub(crate) fn new(tiling: &Tiling, weights: [&[u64]; N]) -> WeightedIndex<N> {
        let axes = tiling.axes().iter().enumerate();
        let mut outer: SmallVec<[(u64, [u64; N]); 6]> =
            axes.map(|(at, axis)| (axis.tiles(), weights.map(|weights| weights[at]))).collect();
        // A grid without axes has one tile.
        let last = outer.pop().unwrap_or((1, [0; N]));
        WeightedIndex { outer, last, line: (0, 0, [0; N]) }
    }

    /// Returns the `N` weighted sums of the coordinates of `tile`.
    #[inline]
    pub(crate) fn of(&mut self, tile: u64) -> [u64; N] {
        let (count, weights) = self.last;
        if tile.wrapping_sub(self.line.0) >= self.line.1 {
            let mut rest = tile.checked_div(count).unwrap_or(0);
            self.line = (rest * count, count, [0; N]);
            for (count, weights) in self.outer.iter().rev() {
                let next = rest.checked_div(*count).unwrap_or(0);
                let at = rest - next * count;
                (0..N).for_each(|of| self.line.2[of] += at * weights[of]);
                rest = next;
            }
        }
        let at = tile - self.line.0;
        std::array::from_fn(|of| self.line.2[of] + at * weights[of])
    }
}

/// Returns the strides of a grid whose axes have `tiles` tiles, where the last axis varies fastest, and the number of tiles in the grid.
pub(crate) fn strides_of(tiles: impl DoubleEndedIterator<Item = u64>) -> (TileIndex, u64) {
    let mut count = 1_u64;
    // Grids of some axes of a grid that has tiles have fewer tiles, so products fit where they matter.
    let strides = tiles.rev().map(|tiles| {
        let stride = count;
        count = count.saturating_mul(tiles);
        stride
    });
    let mut strides: TileIndex = strides.collect();
    strides.reverse();
    (strides, count)
}

/// Returns true if a grid is small enough for a table with an entry per tile: at most 1,024 tiles plus 4 times `tiles`, the number of
/// present tiles.
pub(crate) fn is_small(grid: u64, tiles: usize) -> bool {
    grid <= (tiles as u64).saturating_mul(4).saturating_add(1024)
}
