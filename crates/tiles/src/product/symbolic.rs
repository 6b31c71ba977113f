//! Symbolic products: the plan of the product of two tensors, made from shapes alone. The plan has the tiles of the
//! result, estimates of their norms, and for each tile the products of tiles that are summed. The operands are treated
//! as sparse matrices of tiles, multiplied row by row by the algorithm of Gustavson (ACM TOMS 1978). A row is given by
//! the coordinates of the result's axes that come from the left operand, a column by those that come from the right
//! operand. No tile is computed, and no list has as many entries as a grid has tiles.
//!
//! The norm of the tile `c = sum over k of a b` is estimated as `sum over k of |a| |b| K^2 B`. Here K is the number of elements that are
//! summed in each product of tiles. B is the number of index combinations of the batch labels: the labels that both operands and the
//! result have.

use crate::product::factors::{Factors, ResultMask, RightTile};
use crate::product::gustavson::{ENTRY_BYTES, Entry, TileProduct, multiply};
use crate::product::roles::Roles;
use crate::{Options, Screening, Shape};
use cembra_runtime::{Cancellation, Scalar};
use cembra_tensor::Labels;
use cembra_value::Error;
use std::ops::Range;

/// The number of bytes per operand tile that the lists take while a plan is made.
const FACTOR_BYTES: usize = 100;

/// The plan of a product of two tiled tensors: the shape of the result, with estimated norms, and for each result tile the pairs of
/// operand tiles whose products are summed.
///
/// ```
/// use cembra_runtime::Scalar;
/// use cembra_tensor::Labels;
/// use cembra_tiles::{Options, Screening, Shape, SymbolicProduct, Tiling, Tiling1};
///
/// let axis = Tiling1::blocked(6, 2)?;
/// let tiling = Tiling::new([&axis, &axis])?;
/// let all = Screening::threshold(0.0);
/// let a = Shape::of_norms(&tiling, [(0, 0.5), (1, 0.25), (5, 2.0)], &all)?;
/// let labels = Labels::parse("ij,jk->ik", &[2, 2])?;
/// let plan = SymbolicProduct::of(&labels, [&a, &a], None, Scalar::Float64, &Options::default())?;
/// // Tile (0, 2) is the product of tiles (0, 1) and (1, 2), in which two elements are summed.
/// assert_eq!(plan.shape().tiles(), [0, 1, 2]);
/// assert_eq!(plan.shape().norm(2), Some(0.25 * 2.0 * 4.0));
/// assert_eq!(plan.products(2).collect::<Vec<_>>(), [(1, 2)]);
/// # Ok::<(), cembra_value::Error>(())
/// ```
#[derive(Debug)]
pub struct SymbolicProduct {
    pub(crate) roles: Roles,
    shape: Shape,
    /// The tiles of the result, row by row.
    pub(crate) entries: Vec<Entry>,
    /// For each row of result tiles, the position after its last tile in the list `entries`.
    row_ends: Vec<usize>,
    /// Two lists: for each entry, its position among the stored tiles of the result's shape; and for each position, the
    /// index of its entry. `None` if the entries already have the order of the shape.
    orders: Option<[Vec<u32>; 2]>,
    /// The products of two tiles, grouped by the result tile that sums them. Each group is in the order in which its
    /// products are added.
    pub(crate) products: Vec<TileProduct>,
    /// The tiles of the product's right operand, in the order in which their products are added to sums.
    pub(crate) right: Vec<RightTile>,
    visited: u64,
}

impl SymbolicProduct {
    /// Plans the product of the two operands, as `labels` describes it. If `wanted` is given, the result has only tiles
    /// of that shape, even if their estimated norms are below the threshold, and products for other tiles are not
    /// planned. A wanted tile that no product contributes to is absent, so its elements are 0.
    ///
    /// # Errors
    /// If the labels do not fit the operands; a label is on one operand twice, or is summed but only one operand has it; axes with the
    /// same label have different tilings; `wanted` has another tiling than the result; or there are too many tiles or products.
    pub fn of(
        labels: &Labels,
        operands: [&Shape; 2],
        wanted: Option<&Shape>,
        scalar: Scalar,
        options: &Options,
    ) -> Result<SymbolicProduct, Error> {
        SymbolicProduct::until(labels, operands, wanted, scalar, options, None)
    }

    /// Plans a product as [`of`](SymbolicProduct::of) does, unless the token cancels it.
    pub(crate) fn until(
        labels: &Labels,
        operands: [&Shape; 2],
        wanted: Option<&Shape>,
        scalar: Scalar,
        options: &Options,
        token: Option<&Cancellation>,
    ) -> Result<SymbolicProduct, Error> {
        let roles = Roles::of(labels)?;
        let tiling = roles.result_tiling(operands.map(Shape::tiling))?;
        let screening = options.screening(scalar)?;
        let screening = if wanted.is_some() { Screening { threshold: 0.0, ..screening } } else { screening };
        // The bytes of lists of tiles are checked before they are made, those of products as the list grows.
        let tiles = operands[0].len().saturating_add(operands[1].len());
        let of_factors = tiles.saturating_mul(FACTOR_BYTES);
        let options = options.clone().counting(of_factors, || format!("the plan of a product of {tiles} tiles"))?;
        let factors = Factors::of(&roles, operands, &tiling, options.segment);
        let wanted = wanted.map(|shape| ResultMask::of(&roles, shape, &tiling, &factors)).transpose()?;
        let most = [options.most_products, options.own_room() as u64];
        let made = multiply(&factors, wanted.as_ref(), screening, most, token)?;
        let orders = (!made.numbers.is_sorted()).then(|| orders(&made.numbers));
        let (numbers, bounds) = match &orders {
            None => (made.numbers, made.bounds),
            Some([_, entries]) => (
                entries.iter().map(|entry| made.numbers[*entry as usize]).collect(),
                entries.iter().map(|entry| made.bounds[*entry as usize]).collect(),
            ),
        };
        Ok(SymbolicProduct {
            shape: Shape::of_sorted(tiling, numbers, bounds),
            entries: made.entries,
            row_ends: made.row_ends,
            orders,
            products: made.products,
            right: factors.right_tiles(),
            visited: made.visited,
            roles,
        })
    }

    /// The shape of the result. Its norms are estimates: the norms of the computed tiles are at most as large.
    #[must_use]
    pub const fn shape(&self) -> &Shape {
        &self.shape
    }

    /// The number of products of two tiles that are computed for the result.
    #[must_use]
    pub const fn product_count(&self) -> usize {
        self.products.len()
    }

    /// The number of bytes that the plan itself takes.
    pub(crate) fn own_bytes(&self) -> usize {
        let of_right = self.right.len() * size_of::<RightTile>();
        self.products.len() * size_of::<TileProduct>() + self.entries.len() * ENTRY_BYTES + of_right
    }

    /// The number of products of tiles that planning visited, including those for tiles that were left out.
    #[must_use]
    pub const fn visited(&self) -> u64 {
        self.visited
    }

    /// The number of multiplications of elements that the product takes. `left` is the shape of the left operand.
    pub(crate) fn multiplications(&self, left: &Shape) -> f64 {
        // The labels of the left operand that are summed.
        let is_summed: Vec<bool> =
            self.roles.operands[0].iter().map(|label| self.roles.terms.contains(label)).collect();
        let terms = |tile: &u64| {
            let extents = left.tiling().tile_extents(*tile).unwrap_or_default();
            let own = extents.iter().zip(&is_summed).filter(|(_, is_summed)| **is_summed);
            own.map(|(extent, _)| *extent as f64).product::<f64>()
        };
        let terms: Vec<f64> = left.tiles().iter().map(terms).collect();
        let of_tile = |(position, tile): (usize, &u64)| {
            let sums: f64 = self.products(position).filter_map(|(left, _)| terms.get(left)).sum();
            self.shape.tiling().volume(*tile) * sums
        };
        self.shape.tiles().iter().enumerate().map(of_tile).sum()
    }

    /// The products of tiles that are summed for the result tile at `position` among the result's present tiles, in the order of the sum.
    /// Each product is given by two positions: of the left and of the right tile among the present tiles of their operands. Empty if the
    /// result has no tile at `position`.
    pub fn products(&self, position: usize) -> impl Iterator<Item = (usize, usize)> {
        let entry = self.entry_at(position);
        let products = entry.map_or(&[][..], |entry| self.products_of(entry));
        products.iter().map(|product| (product.left as usize, self.right[product.right as usize].position as usize))
    }

    /// The segments of the sum for the result tile at `position`, as ranges of indices into its
    /// [`products`](SymbolicProduct::products). Each segment is summed separately, from zero, and the sums of the
    /// segments are added in order. The tilings of the summed labels decide where sums are cut, so the sums of all
    /// tiles are cut at the same places. Segments without a product for this tile are left out.
    pub fn segments(&self, position: usize) -> impl Iterator<Item = Range<usize>> {
        let entry = self.entry_at(position);
        self.segments_of(entry.map_or(&[][..], |entry| self.products_of(entry)))
    }

    /// Returns the index of the segment for each key of the right operand. A segment is a range of the terms of a sum; a key is the
    /// coordinates of the labels that both operands have.
    pub(crate) fn segments_of_keys(&self) -> Vec<u32> {
        self.right.chunk_by(|a, b| a.key == b.key).map(|tiles| tiles[0].segment).collect()
    }

    /// The number of keys for which the right operand has tiles. A key is the coordinates of the labels that both operands have.
    pub(crate) fn key_count(&self) -> usize {
        self.right.chunk_by(|a, b| a.key == b.key).count()
    }

    /// Returns true if the sums of the product are cut into several segments, which are summed separately.
    pub(crate) fn has_segments(&self) -> bool {
        self.right.iter().any(|tile| tile.segment > 0)
    }

    /// For each row of result tiles, the range of its tiles in the list `entries`.
    pub(crate) fn rows(&self) -> impl Iterator<Item = Range<usize>> {
        let starts = std::iter::once(0).chain(self.row_ends.iter().copied());
        starts.zip(&self.row_ends).map(|(start, end)| start..*end)
    }

    /// The entries of the result's tiles, each with its position among the present tiles of the result's shape.
    pub(crate) fn entries_with_positions(&self) -> impl Iterator<Item = (Entry, usize)> {
        self.entries.iter().enumerate().map(|(at, entry)| (*entry, self.position(at)))
    }

    /// The entry at a position in the shape; `None` if there is none.
    fn entry_at(&self, position: usize) -> Option<Entry> {
        let entry = match &self.orders {
            Some([_, entries]) => *entries.get(position)? as usize,
            None => position,
        };
        self.entries.get(entry).copied()
    }

    /// Returns the position, among the result's present tiles, of the tile with the index `entry` in `entries`.
    pub(crate) fn position(&self, entry: usize) -> usize {
        self.orders.as_ref().map_or(entry, |[positions, _]| positions[entry] as usize)
    }

    pub(crate) fn products_of(&self, entry: Entry) -> &[TileProduct] {
        &self.products[entry.first..][..entry.count as usize]
    }

    pub(crate) fn right(&self, product: TileProduct) -> RightTile {
        self.right[product.right as usize]
    }

    /// Splits `products`, the products of one result tile, into the segments (ranges of the terms) whose sums are added separately.
    pub(crate) fn segments_of<'p>(&'p self, products: &'p [TileProduct]) -> impl Iterator<Item = Range<usize>> + 'p {
        let segment = |product: &TileProduct| self.right(*product).segment;
        let mut start = 0;
        products.chunk_by(move |a, b| segment(a) == segment(b)).map(move |own| {
            let first = start;
            start += own.len();
            first..start
        })
    }
}

/// Sorts entries by tile. `numbers` has the tile number of each entry. Returns the position of each entry in ascending
/// order of tiles, and the entry at each position.
fn orders(numbers: &[u64]) -> [Vec<u32>; 2] {
    let mut order: Vec<u32> = (0..numbers.len() as u32).collect();
    order.sort_unstable_by_key(|entry| numbers[*entry as usize]);
    let mut positions = vec![0; order.len()];
    (0..).zip(&order).for_each(|(position, entry)| positions[*entry as usize] = position);
    [positions, order]
}
