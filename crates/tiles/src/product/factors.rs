//! The operands of a product as sparse matrices of tiles. A tile of the left operand has a row, which combines its
//! coordinates along labels that the result has. A tile of the right operand has a column, which combines its
//! coordinates along labels that only the right operand and the result have. A tile of either operand has a key, which
//! combines its coordinates along labels that both operands have. No list is as long as a grid: tables are made only
//! for grids that are about as small as the number of tiles; for larger grids, tiles are looked up in sorted lists.

use crate::product::roles::Roles;
use crate::product::segments::segment_starts;
use crate::shape::tiling::TileIndex;
use crate::shape::weighing::{WeightedIndex, is_small, strides_of};
use crate::{Segment, Shape, Tiling, Tiling1};
use cembra_tensor::{Axes, Axis};
use cembra_value::Error;

/// A tile of a product's left operand, as an entry of the sparse matrix of tiles.
#[derive(Clone, Copy)]
pub(crate) struct LeftTile {
    /// The number of the tile's row. Rows are in the order of the result's tiles.
    pub(crate) row: u64,
    /// The norm of the tile, multiplied by the `factor` of the right operand's row `right_row`.
    pub(crate) weight: f64,
    pub(crate) position: u32,
    /// The row of the right operand's matrix that has the same key (coordinates of the labels that both operands have)
    /// as this tile.
    pub(crate) right_row: u32,
}

/// The tiles of a product's right operand that have the same key: the same coordinates of the labels that both operands
/// have.
pub(crate) struct RightRow {
    key: u64,
    start: u32,
    end: u32,
    /// The segment (a range of the terms of a sum) that products with tiles of this row belong to. Segments are
    /// numbered in the order of sums.
    segment: u32,
    /// The factor by which the product of two tiles' norms is multiplied, to estimate the norm of their product.
    factor: f64,
}

/// A tile of a product's right operand. Lists of these tiles are sorted by the order in which sums add products with
/// them, and then by column.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RightTile {
    /// The position of the tile among the right operand's present tiles.
    pub(crate) position: u32,
    /// The index of the tile's key (its coordinates of the labels that both operands have) among the keys of the right
    /// operand.
    pub(crate) key: u32,
    /// The index of the segment (a range of the terms of a sum) that the tile's products belong to.
    pub(crate) segment: u32,
}

/// The two operands of a product as sparse matrices of tiles.
pub(crate) struct Factors {
    /// The left operand's tiles whose keys (coordinates of the labels that both operands have) the right operand has too, sorted by row and key.
    pub(crate) left: Vec<LeftTile>,
    pub(crate) rows: Numbering,
    right_rows: Vec<RightRow>,
    /// For each tile of the right operand, its position among the present tiles. The list is sorted by key (coordinates
    /// of the labels that both operands have) and column.
    positions: Vec<u32>,
    columns: Vec<u32>,
    norms: Vec<f64>,
    /// For each column that has tiles of the right operand, the amount that the column adds to the number of a result
    /// tile; ascending.
    pub(crate) column_numbers: Vec<u64>,
}

/// A grid of some of the result's labels (those of rows, or those of columns). The number of a result tile is the sum
/// of the amounts that its row and its column add.
pub(crate) struct Numbering {
    labels: Axes,
    strides: TileIndex,
    result_strides: TileIndex,
    /// The number of tiles of the grid.
    count: u64,
}

impl Numbering {
    fn of(labels: Axes, roles: &Roles, tiling: &Tiling) -> Numbering {
        let place = |label: &Axis| roles.result.iter().position(|known| known == label).unwrap_or_default();
        let (strides, count) = strides_of(labels.iter().map(|label| tiling.axes()[place(label)].tiles()));
        let all = tiling.strides();
        let result_strides = labels.iter().map(|label| all[place(label)]).collect();
        Numbering { labels, strides, result_strides, count }
    }

    /// For each axis of an operand, the stride of its label in this grid; 0 for labels that the grid does not have.
    fn weights(&self, operand: &Axes) -> TileIndex {
        weights(operand, &self.labels, &self.strides)
    }

    /// Returns the amount that `tile`, a tile of this grid, adds to the number of a result tile.
    pub(crate) fn number(&self, mut tile: u64) -> u64 {
        let mut number = 0;
        for (stride, result_stride) in self.strides.iter().zip(&self.result_strides) {
            let at = tile.checked_div(*stride).unwrap_or(0);
            tile -= at * stride;
            number += at * result_stride;
        }
        number
    }
}

/// For each axis of an operand, the stride of its label among `labels`; 0 if it is not one of these.
fn weights(operand: &Axes, labels: &Axes, strides: &[u64]) -> TileIndex {
    let of = |label: &Axis| labels.iter().position(|known| known == label).map_or(0, |at| strides[at]);
    operand.iter().map(of).collect()
}

impl Factors {
    pub(crate) fn of(roles: &Roles, operands: [&Shape; 2], tiling: &Tiling, segment: Segment) -> Factors {
        let [left_labels, right_labels] = &roles.operands;
        let is_row = |label: &Axis| roles.batch.contains(label) || roles.rows.contains(label);
        let rows = Numbering::of(roles.result.iter().copied().filter(is_row).collect(), roles, tiling);
        let columns = Numbering::of(roles.columns.clone(), roles, tiling);
        // Keys: labels of the result first, then labels that are summed, in the order of sums.
        let shared: Axes = roles.batch.iter().chain(&roles.terms).copied().collect();
        let left_axes = operands[0].tiling().axes();
        let place = |label: &Axis| left_labels.iter().position(|known| known == label).unwrap_or_default();
        let (key_strides, keys) = strides_of(shared.iter().map(|label| left_axes[place(label)].tiles()));

        let key_weights = weights(right_labels, &shared, &key_strides);
        let mut weighing = WeightedIndex::new(operands[1].tiling(), [&key_weights, &columns.weights(right_labels)]);
        let mut right: Vec<([u64; 2], u32)> =
            operands[1].tiles().iter().zip(0..).map(|(tile, at)| (weighing.of(*tile), at)).collect();
        sort_unless_sorted(&mut right, |tile| tile.0);
        let mut right_rows = right_rows(&right, roles, operands[1]);
        let summed: Vec<&Tiling1> = roles.terms.iter().map(|label| &left_axes[place(label)]).collect();
        cut(&mut right_rows, &summed, segment);

        let key_weights = weights(left_labels, &shared, &key_strides);
        let mut weighing = WeightedIndex::new(operands[0].tiling(), [&rows.weights(left_labels), &key_weights]);
        let row_of_key = Index::of(right_rows.iter().map(|row| row.key).collect(), keys);
        let left = operands[0].iter().zip(0..).filter_map(|((tile, norm), position)| {
            let [row, key] = weighing.of(tile);
            let right_row = row_of_key.find(key)?;
            Some(LeftTile { row, weight: norm * right_rows[right_row as usize].factor, position, right_row })
        });
        let mut left: Vec<LeftTile> = left.collect();
        sort_unless_sorted(&mut left, |tile| (tile.row, tile.right_row));

        let present = distinct(right.iter().map(|tile| tile.0[1]), columns.count, right.len());
        let column_numbers = present.iter().map(|column| columns.number(*column)).collect();
        let column_of = Index::of(present, columns.count);
        Factors {
            left,
            rows,
            right_rows,
            positions: right.iter().map(|tile| tile.1).collect(),
            columns: right.iter().map(|tile| column_of.find(tile.0[1]).unwrap_or_default()).collect(),
            norms: right.iter().map(|tile| operands[1].norms()[tile.1 as usize]).collect(),
            column_numbers,
        }
    }

    /// Returns the tiles of a row of the right operand's matrix: the number of its first tile, and the column and the norm of each tile.
    #[inline]
    pub(crate) fn right_row(&self, row: u32) -> (u32, &[u32], &[f64]) {
        let RightRow { start, end, .. } = self.right_rows[row as usize];
        let tiles = start as usize..end as usize;
        (start, &self.columns[tiles.clone()], &self.norms[tiles])
    }

    /// Returns the tiles of the right operand, sorted by the order in which sums add their products, and then by
    /// column.
    pub(crate) fn right_tiles(&self) -> Vec<RightTile> {
        let mut tiles = Vec::with_capacity(self.positions.len());
        for (row, key) in self.right_rows.iter().zip(0..) {
            let positions = self.positions[row.start as usize..row.end as usize].iter();
            tiles.extend(positions.map(|position| RightTile { position: *position, key, segment: row.segment }));
        }
        tiles
    }
}

fn sort_unless_sorted<T, K: Ord>(tiles: &mut [T], key: impl Fn(&T) -> K) {
    if !tiles.is_sorted_by_key(&key) {
        tiles.sort_unstable_by_key(key);
    }
}

/// Groups the tiles of the right operand, which are sorted by key (coordinates of the labels that both operands have),
/// into rows of equal keys.
fn right_rows(right: &[([u64; 2], u32)], roles: &Roles, shape: &Shape) -> Vec<RightRow> {
    let labels = &roles.operands[1];
    let mut rows: Vec<RightRow> = Vec::new();
    for group in right.chunk_by(|a, b| a.0[0] == b.0[0]) {
        let ([key, _], position) = group[0];
        let extents = shape.tiling().tile_extents(shape.tiles()[position as usize]).unwrap_or_default();
        let volume = |of: &Axes| {
            let own = labels.iter().zip(&extents).filter(|(label, _)| of.contains(label));
            // A tile with more elements than a number can count cannot be made.
            own.fold(1_usize, |volume, (_, extent)| volume.saturating_mul(*extent))
        };
        let (terms, batch) = (volume(&roles.terms), volume(&roles.batch));
        let factor = (terms as f64) * (terms as f64) * (batch as f64);
        let start = rows.last().map_or(0, |row| row.end);
        rows.push(RightRow { key, start, end: start + group.len() as u32, segment: 0, factor });
    }
    rows
}

/// Sets the segment of each row, from the tilings of the summed labels. Rows must be sorted by key.
fn cut(rows: &mut [RightRow], summed: &[&Tiling1], segment: Segment) {
    let terms = summed.iter().fold(1_u64, |tiles, axis| tiles.saturating_mul(axis.tiles())).max(1);
    let mut numbers: Vec<u64> = rows.iter().map(|row| row.key % terms).collect();
    if !numbers.is_sorted() {
        numbers.sort_unstable();
    }
    numbers.dedup();
    let starts = segment_starts(summed, segment, numbers.iter().copied());
    // Segments without rows are not numbered.
    let mut before = 0;
    let segments: Vec<u32> = starts
        .iter()
        .zip(starts.first().into_iter().chain(&starts))
        .map(|(start, last)| {
            before += u32::from(start != last);
            before
        })
        .collect();
    let mut at = 0;
    for row in rows {
        let number = row.key % terms;
        // The rows of one coordinate of the labels that are walked together ascend.
        if numbers.get(at).is_none_or(|known| *known > number) {
            at = 0;
        }
        at += numbers[at..].partition_point(|known| *known < number);
        row.segment = segments[at];
    }
}

/// Returns the distinct tiles among `tiles`, ascending. They are numbers in a grid of `grid` tiles, and `count` is
/// their number with repetitions.
fn distinct(tiles: impl Iterator<Item = u64>, grid: u64, count: usize) -> Vec<u64> {
    if is_small(grid, count) {
        let mut is_there = vec![false; grid as usize];
        tiles.for_each(|tile| is_there[tile as usize] = true);
        return (0..).zip(is_there).filter(|(_, is_there)| *is_there).map(|(tile, _)| tile).collect();
    }
    let mut found: Vec<u64> = tiles.collect();
    found.sort_unstable();
    found.dedup();
    found
}

/// A lookup from a tile of a grid to its position in an ascending list of tiles.
enum Index {
    /// A table with an entry for each tile of the grid: its position, or [`ABSENT`].
    Table(Vec<u32>),
    Sorted(Vec<u64>),
}

/// The table entry of a tile that the list does not have.
const ABSENT: u32 = u32::MAX;

impl Index {
    fn of(tiles: Vec<u64>, grid: u64) -> Index {
        if !is_small(grid, tiles.len()) {
            return Index::Sorted(tiles);
        }
        let mut table = vec![ABSENT; grid as usize];
        (0..).zip(tiles).for_each(|(position, tile)| table[tile as usize] = position);
        Index::Table(table)
    }

    #[inline]
    fn find(&self, tile: u64) -> Option<u32> {
        match self {
            Index::Table(table) => table.get(tile as usize).copied().filter(|position| *position != ABSENT),
            Index::Sorted(tiles) => tiles.binary_search(&tile).ok().map(|position| position as u32),
        }
    }
}

/// The result tiles to which a product is limited ([`Evaluator::product_within`](crate::Evaluator::product_within)), by
/// row.
pub(crate) struct ResultMask {
    /// The row and the column of each tile, ascending. Columns that the right operand does not have are left out.
    tiles: Vec<(u64, u32)>,
}

impl ResultMask {
    pub(crate) fn of(roles: &Roles, shape: &Shape, tiling: &Tiling, factors: &Factors) -> Result<ResultMask, Error> {
        crate::shape::algebra::check_same_tilings(shape.tiling(), tiling)?;
        let strides = tiling.strides();
        let is_column = |label: &Axis| roles.columns.contains(label);
        let column_weights =
            roles.result.iter().zip(&strides).map(|(label, stride)| if is_column(label) { *stride } else { 0 });
        let column_weights: TileIndex = column_weights.collect();
        let row_weights = factors.rows.weights(&roles.result);
        let mut weighing = WeightedIndex::new(tiling, [&row_weights, &column_weights]);
        let split = |tile: &u64| {
            let [row, number] = weighing.of(*tile);
            Some((row, factors.column_numbers.binary_search(&number).ok()? as u32))
        };
        let mut tiles: Vec<(u64, u32)> = shape.tiles().iter().filter_map(split).collect();
        sort_unless_sorted(&mut tiles, |tile| *tile);
        Ok(ResultMask { tiles })
    }

    /// Returns the wanted tiles in a row, each with its row and column.
    pub(crate) fn columns(&self, row: u64) -> &[(u64, u32)] {
        let start = self.tiles.partition_point(|(known, _)| *known < row);
        let len = self.tiles[start..].partition_point(|(known, _)| *known == row);
        &self.tiles[start..][..len]
    }
}
