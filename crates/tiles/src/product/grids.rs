//! Decides which rank computes which tile of a product. Ranks form a grid of planes, rows and columns. A result tile
//! has coordinates: along batch labels (of both operands and the result) they select the tile's plane, along labels of
//! the left operand its row, along labels of the right operand its column. Grids whose busiest rank has at most 10 %
//! more work than in the best grid are candidates; of these, the grid for which the fewest bytes move between ranks is
//! used. The choice depends only on shapes and owners, so all ranks make the same choice.

use crate::link::Ranks;
use crate::shape::weighing::{WeightedIndex, strides_of};
use crate::tiled::bytes_of;
use crate::{SymbolicProduct, Tiled, Tiling};
use cembra_tensor::Axes;
use cembra_value::Error;

/// The most work that the busiest rank of a candidate grid may have, as a multiple of that in the best grid.
const MOST_LOAD: f64 = 1.1;

/// A grid of ranks: the number of its planes, rows and columns.
type Grid = [u64; 3];

/// Chooses the grid of ranks for a product, and returns the owner of each of the result's tiles.
pub(crate) fn owners_of_product(
    ranks: &Ranks,
    plan: &SymbolicProduct,
    operands: [&Tiled; 2],
) -> Result<Vec<u32>, Error> {
    let size = ranks.link().size() as u64;
    let coordinates = coordinates(plan);
    let candidates: Vec<(Vec<u32>, f64)> = grids(size, !plan.roles.batch.is_empty())
        .into_iter()
        .map(|grid| {
            let owners: Vec<u32> = coordinates.iter().map(|at| owner(grid, *at)).collect();
            let load = busiest(plan, &owners, size);
            (owners, load)
        })
        .collect();
    let least = candidates.iter().map(|(_, load)| *load).fold(f64::INFINITY, f64::min);
    let mut even = candidates.into_iter().filter(|(_, load)| *load <= least * MOST_LOAD).map(|(owners, _)| owners);
    let Some(first) = even.next() else { return Ok(Vec::new()) };
    if operands.iter().all(|operand| !operand.is_distributed()) {
        return Ok(first);
    }
    let mut best = (moved_bytes(plan, operands, &first, size), first);
    for owners in even {
        let bytes = moved_bytes(plan, operands, &owners, size);
        if bytes < best.0 {
            best = (bytes, owners);
        }
    }
    Ok(best.1)
}

/// The possible grids of `size` ranks: those with the fewest planes first, then those that are nearest to a square. If
/// `has_planes` is false, they have one plane.
fn grids(size: u64, has_planes: bool) -> Vec<Grid> {
    let divisors = |of: u64| (1..=of).filter(move |by| of.is_multiple_of(*by));
    let mut grids: Vec<Grid> = divisors(size)
        .filter(|planes| *planes == 1 || has_planes)
        .flat_map(|planes| divisors(size / planes).map(move |rows| [planes, rows, size / planes / rows]))
        .collect();
    grids.sort_by_key(|[planes, rows, columns]| (*planes, rows.abs_diff(*columns), *rows));
    grids
}

/// For each stored result tile of a product, in ascending order of tile numbers: its plane, row and column in the grid
/// of tiles. These coordinates are not yet reduced to the size of a grid of ranks.
fn coordinates(plan: &SymbolicProduct) -> Vec<[u64; 3]> {
    let tiling: &Tiling = plan.shape().tiling();
    let weights = |labels: &Axes| -> Vec<u64> {
        let at = |label| plan.roles.result.iter().position(|own| own == label);
        let axes: Vec<usize> = labels.iter().filter_map(at).collect();
        let (strides, _) = strides_of(axes.iter().map(|axis| tiling.axes()[*axis].tiles()));
        let mut weights = vec![0; tiling.rank()];
        axes.iter().zip(strides).for_each(|(axis, stride)| weights[*axis] = stride);
        weights
    };
    let [planes, rows, columns] = [&plan.roles.batch, &plan.roles.rows, &plan.roles.columns].map(weights);
    let mut weighing = WeightedIndex::new(tiling, [&planes, &rows, &columns]);
    plan.shape().tiles().iter().map(|tile| weighing.of(*tile)).collect()
}

/// The rank that owns the tile with these coordinates, each taken modulo the size of the grid of ranks.
const fn owner([planes, rows, columns]: Grid, [plane, row, column]: [u64; 3]) -> u32 {
    (((plane % planes) * rows + row % rows) * columns + column % columns) as u32
}

/// The work of the busiest rank: for each of its result tiles, the number of elements times the number of products of tiles.
fn busiest(plan: &SymbolicProduct, owners: &[u32], size: u64) -> f64 {
    let mut loads = vec![0.0; size as usize];
    for (entry, position) in plan.entries_with_positions() {
        let tile = plan.shape().tiles()[position];
        loads[owners[position] as usize] += f64::from(entry.count) * plan.shape().tiling().volume(tile);
    }
    loads.into_iter().fold(0.0, f64::max)
}

/// The bytes of the tiles that move: each tile counts once for each rank that reads it and does not own it.
fn moved_bytes(plan: &SymbolicProduct, operands: [&Tiled; 2], owners: &[u32], size: u64) -> usize {
    let mut readers = operands.map(|operand| Readers::new(operand, size));
    for (entry, position) in plan.entries_with_positions() {
        for product in plan.products_of(entry) {
            readers[0].add(product.left, owners[position]);
            readers[1].add(plan.right(*product).position, owners[position]);
        }
    }
    readers.iter().zip(operands).map(|(readers, operand)| readers.bytes(operand)).fold(0, usize::saturating_add)
}

/// The ranks that read each tile of an operand, as one bit per tile and rank. There are no bits if every rank has all
/// tiles of the operand.
pub(crate) struct Readers {
    words: usize,
    bits: Vec<u64>,
}

impl Readers {
    pub(crate) fn new(operand: &Tiled, size: u64) -> Readers {
        let words = size.div_ceil(64) as usize;
        let count = if operand.is_distributed() { operand.shape().len().saturating_mul(words) } else { 0 };
        Readers { words, bits: vec![0; count] }
    }

    #[inline]
    pub(crate) fn add(&mut self, position: u32, rank: u32) {
        if let Some(word) = self.bits.get_mut(position as usize * self.words + rank as usize / 64) {
            *word |= 1 << (rank % 64);
        }
    }

    /// Lists each tile's position together with each rank that reads the tile.
    pub(crate) fn ranks(&self) -> impl Iterator<Item = (u32, u32)> {
        let of_tile = |(position, words): (usize, &[u64])| {
            let of_word = |(at, word): (usize, &u64)| {
                let word = *word;
                (0..64).filter(move |bit| word >> bit & 1 == 1).map(move |bit| (at * 64 + bit) as u32)
            };
            words.iter().enumerate().flat_map(of_word).map(move |rank| (position as u32, rank)).collect::<Vec<_>>()
        };
        self.bits.chunks(self.words).enumerate().flat_map(of_tile)
    }

    fn bytes(&self, operand: &Tiled) -> usize {
        let Some(spread) = operand.spread() else { return 0 };
        let shape = operand.shape();
        let of_tile = |(words, (tile, owner)): (&[u64], (&u64, &u32))| -> f64 {
            let readers: u32 = words.iter().map(|word| word.count_ones()).sum();
            let owns = words.get(*owner as usize / 64).is_some_and(|word| word >> (owner % 64) & 1 == 1);
            f64::from(readers - u32::from(owns)) * shape.tiling().volume(*tile)
        };
        let tiles = self.bits.chunks(self.words).zip(shape.tiles().iter().zip(&**spread.owners()));
        bytes_of(operand.scalar_type(), tiles.map(of_tile).sum())
    }
}
