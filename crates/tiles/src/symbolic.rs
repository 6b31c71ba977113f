//! Symbolic products: from shapes alone, which tiles the product of two tensors has, estimates of their norms, and for each the products of
//! tiles that it is the sum of. Row by row as Gustavson multiplies sparse matrices (ACM TOMS 1978): rows are present coordinates of the
//! result's axes that come from the left operand, columns those from the right one. No tile is made and nothing is as large as a grid.
//!
//! The estimate of `c = sum over k of a b` is `sum over k of |a| |b| K^2 B`: K elements are summed for each product of tiles, and B elements
//! have the labels that both operands and the result have.

use crate::error::limit;
use crate::roles::Roles;
use crate::tiling::TileIndex;
use crate::{Options, Screening, Segment, Shape, Tiling};
use cembra_runtime::Scalar;
use cembra_tensor::{Axes, Labels};
use cembra_value::Error;
use cembra_value::tensor::TensorErrorKind as Kind;
use std::ops::Range;

/// The plan of a product of two tiled tensors: its shape, with estimates as norms, and the products of tiles that each tile is the sum of.
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
    /// Result tiles, row by row.
    entries: Vec<Entry>,
    /// Behind the last entry of each row.
    row_ends: Vec<usize>,
    /// The position of each entry in the shape.
    positions: Vec<u32>,
    /// The entry of each position in the shape.
    by_position: Vec<u32>,
    products: Vec<TileProduct>,
    /// The right operand's tiles in the order of sums.
    right: Vec<RightTile>,
    segment: Segment,
    visited: u64,
}

/// A tile of the result.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    /// The first of its products.
    first: usize,
    count: u32,
    /// The column, among those that the right operand has.
    pub(crate) column: u32,
}

/// A product of two tiles: the position of the left one in its shape, and the place of the right one in the order of sums.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct TileProduct {
    pub(crate) left: u32,
    pub(crate) right: u32,
}

/// A tile of the right operand, in the order of what is summed and of columns.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RightTile {
    /// The position in the shape.
    pub(crate) position: u32,
    /// How many elements a product with it sums.
    pub(crate) terms: usize,
}

impl SymbolicProduct {
    /// The plan of a product by labels. If a shape is wanted, the result has tiles of it alone, nothing is estimated to leave them out, and
    /// products of other tiles are not planned. A wanted tile that no product contributes to is absent, which is 0.
    ///
    /// # Errors
    /// Labels do not fit the operands, are on an operand twice or summed in one operand alone; axes of one label have two tilings; the wanted
    /// shape has another tiling; or there are too many tiles or products.
    pub fn of(
        labels: &Labels,
        operands: [&Shape; 2],
        wanted: Option<&Shape>,
        scalar: Scalar,
        options: &Options,
    ) -> Result<SymbolicProduct, Error> {
        let roles = Roles::of(labels)?;
        let tiling = roles.result_tiling(operands.map(Shape::tiling))?;
        let screening = options.screening(scalar)?;
        let screening = if wanted.is_some() { Screening { threshold: 0.0, ..screening } } else { screening };
        let factors = Factors::of(&roles, operands, &tiling);
        let wanted = wanted.map(|shape| Wanted::of(&roles, shape, &tiling, &factors)).transpose()?;
        let mut rows = Rows::new(&factors, screening, options.product_limit());
        match &wanted {
            None => rows.multiply_all::<false>(None)?,
            Some(wanted) => rows.multiply_all::<true>(Some(wanted))?,
        }
        let Rows { made, visited, .. } = rows;
        let mut order: Vec<u32> = (0..made.entries.len() as u32).collect();
        if !made.numbers.is_sorted() {
            order.sort_unstable_by_key(|entry| made.numbers[*entry as usize]);
        }
        let mut positions = vec![0; order.len()];
        (0..).zip(&order).for_each(|(position, entry)| positions[*entry as usize] = position);
        let numbers = order.iter().map(|entry| made.numbers[*entry as usize]).collect();
        let bounds = order.iter().map(|entry| made.bounds[*entry as usize]).collect();
        let right = factors
            .right
            .iter()
            .map(|tile| RightTile { position: tile.position, terms: factors.right_rows[tile.row as usize].terms });
        Ok(SymbolicProduct {
            shape: Shape::of_sorted(tiling, numbers, bounds),
            entries: made.entries,
            row_ends: made.row_ends,
            positions,
            by_position: order,
            products: made.products,
            right: right.collect(),
            segment: options.segments(),
            visited,
            roles,
        })
    }

    /// The tiles of the result, with estimates as norms: true norms are at most as large.
    #[must_use]
    pub const fn shape(&self) -> &Shape {
        &self.shape
    }

    /// How many products of tiles the result takes.
    #[must_use]
    pub const fn product_count(&self) -> usize {
        self.products.len()
    }

    /// How many products of tiles were looked at, those of tiles that were left out included.
    #[must_use]
    pub const fn visited(&self) -> u64 {
        self.visited
    }

    /// The products of tiles that are summed for a tile, by its position among the result's present tiles: the positions of the left and the
    /// right tile among those of their operands, in the order of the sum. None if there is no such tile.
    pub fn products(&self, position: usize) -> impl Iterator<Item = (usize, usize)> {
        let entry = self.by_position.get(position).map(|entry| self.entries[*entry as usize]);
        let products = entry.map_or(&[][..], |entry| self.products_of(entry));
        products.iter().map(|product| (product.left as usize, self.right[product.right as usize].position as usize))
    }

    /// The segments of the sum for a tile, as ranges of its [`products`](SymbolicProduct::products). Each is summed from zero, and their sums are
    /// added in their order.
    pub fn segments(&self, position: usize) -> impl Iterator<Item = Range<usize>> {
        let entry = self.by_position.get(position).map(|entry| self.entries[*entry as usize]);
        self.segments_of(entry.map_or(&[][..], |entry| self.products_of(entry)))
    }

    /// The position of the left tile of each product.
    pub(crate) fn lefts(&self) -> impl Iterator<Item = usize> {
        self.products.iter().map(|product| product.left as usize)
    }

    /// The position of the right tile of each product.
    pub(crate) fn rights(&self) -> impl Iterator<Item = usize> {
        self.products.iter().map(|product| self.right(*product).position as usize)
    }

    /// The entries of each row.
    pub(crate) fn rows(&self) -> impl Iterator<Item = Range<usize>> {
        let starts = std::iter::once(0).chain(self.row_ends.iter().copied());
        starts.zip(&self.row_ends).map(|(start, end)| start..*end)
    }

    pub(crate) fn entry(&self, entry: usize) -> Entry {
        self.entries[entry]
    }

    /// The position of an entry among the result's present tiles.
    pub(crate) fn position(&self, entry: usize) -> usize {
        self.positions[entry] as usize
    }

    pub(crate) fn products_of(&self, entry: Entry) -> &[TileProduct] {
        &self.products[entry.first..][..entry.count as usize]
    }

    pub(crate) fn right(&self, product: TileProduct) -> RightTile {
        self.right[product.right as usize]
    }

    /// The segments of products of one tile.
    pub(crate) fn segments_of<'p>(&'p self, products: &'p [TileProduct]) -> impl Iterator<Item = Range<usize>> + 'p {
        let mut start = 0;
        std::iter::from_fn(move || {
            let first = start;
            let mut terms = 0_usize;
            while start < products.len() {
                terms = terms.saturating_add(self.right(products[start]).terms);
                start += 1;
                if terms >= self.segment.elements || start - first >= self.segment.tiles {
                    break;
                }
            }
            (first < start).then_some(first..start)
        })
    }
}

/// A tile of the left operand.
#[derive(Clone, Copy)]
struct LeftTile {
    /// What its coordinates add to the number of a result tile.
    row: u64,
    /// The coordinates of the labels that are in both operands.
    key: u64,
    norm: f64,
    position: u32,
    /// The tiles of the right operand with the same key, as one of its rows; none if it has none.
    right_row: Option<u32>,
}

/// A tile of the right operand.
#[derive(Clone, Copy)]
struct RightEntry {
    key: u64,
    /// What its coordinates add to the number of a result tile.
    number: u64,
    position: u32,
    row: u32,
}

/// The tiles of the right operand that have one key.
struct RightRow {
    key: u64,
    tiles: Range<usize>,
    /// How many elements a product sums.
    terms: usize,
    /// What a product of norms is multiplied by.
    factor: f64,
}

/// The operands as sparse matrices.
struct Factors {
    /// Sorted by row and key.
    left: Vec<LeftTile>,
    /// Sorted by key and number.
    right: Vec<RightEntry>,
    right_rows: Vec<RightRow>,
    /// The column of each tile of `right`, and its norm: what the inner loop reads.
    columns: Vec<(u32, f64)>,
    /// What each column adds to the number of a result tile, ascending.
    column_numbers: Vec<u64>,
}

/// What the coordinates of some labels of a tile come to, if neighbours along each label are so far apart.
fn weighted(index: &[u64], weights: &[u64]) -> u64 {
    // Sums of coordinates of a grid times its strides are numbers of its tiles.
    index.iter().zip(weights).map(|(at, weight)| at * weight).sum()
}

impl Factors {
    fn of(roles: &Roles, operands: [&Shape; 2], tiling: &Tiling) -> Factors {
        let strides = tiling.strides();
        // How far result tiles are apart along the axes of an operand; 0 along those that the result does not have, or that the other operand
        // counts.
        let numbers = |labels: &Axes, counted: [&Axes; 2]| -> TileIndex {
            let of = |label| {
                let at = roles.result.iter().position(|known| known == label);
                at.filter(|_| counted.iter().any(|counted| counted.contains(label))).map_or(0, |at| strides[at])
            };
            labels.iter().map(of).collect()
        };
        // Keys are numbers of the grid of the labels of both operands, those of the result first.
        let shared: Axes = roles.batch.iter().chain(&roles.terms).copied().collect();
        let left_tiling = operands[0].tiling();
        let axis_of =
            |label| roles.operands[0].iter().position(|known| known == label).map(|at| &left_tiling.axes()[at]);
        let mut key_strides: TileIndex = TileIndex::from_elem(1, shared.len());
        let mut stride = 1_u64;
        for (at, label) in key_strides.iter_mut().zip(&shared).rev() {
            *at = stride;
            stride = stride.saturating_mul(axis_of(label).map_or(1, |axis| axis.tiles()));
        }
        let keys = |labels: &Axes| -> TileIndex {
            let of = |label| shared.iter().position(|known| known == label).map_or(0, |at| key_strides[at]);
            labels.iter().map(of).collect()
        };
        let [left_labels, right_labels] = &roles.operands;

        let (key_weights, number_weights) =
            (keys(right_labels), numbers(right_labels, [&roles.columns, &roles.columns]));
        let indices = |of: usize| {
            let shape = operands[of];
            shape
                .iter()
                .zip(0_u32..)
                .map(|((tile, norm), at)| (shape.tiling().index_of(tile).unwrap_or_default(), norm, at))
        };
        let right = indices(1).map(|(index, _, position)| RightEntry {
            key: weighted(&index, &key_weights),
            number: weighted(&index, &number_weights),
            position,
            row: 0,
        });
        let mut right: Vec<RightEntry> = right.collect();
        sort_unless_sorted(&mut right, |tile| (tile.key, tile.number));
        let right_rows = right_rows(&mut right, roles, operands[1]);

        let (key_weights, number_weights) = (keys(left_labels), numbers(left_labels, [&roles.batch, &roles.rows]));
        let left = indices(0).map(|(index, norm, position)| {
            let key = weighted(&index, &key_weights);
            let right_row = right_rows.binary_search_by_key(&key, |row| row.key).ok().map(|row| row as u32);
            LeftTile { row: weighted(&index, &number_weights), key, norm, position, right_row }
        });
        let mut left: Vec<LeftTile> = left.filter(|tile| tile.right_row.is_some()).collect();
        sort_unless_sorted(&mut left, |tile| (tile.row, tile.key));

        let mut column_numbers: Vec<u64> = right.iter().map(|tile| tile.number).collect();
        column_numbers.sort_unstable();
        column_numbers.dedup();
        let column = |tile: &RightEntry| {
            let column = column_numbers.binary_search(&tile.number).unwrap_or_default();
            (column as u32, operands[1].norms()[tile.position as usize])
        };
        let columns = right.iter().map(column).collect();
        Factors { left, right, right_rows, columns, column_numbers }
    }
}

fn sort_unless_sorted<T, K: Ord>(tiles: &mut [T], key: impl Fn(&T) -> K) {
    if !tiles.is_sorted_by_key(&key) {
        tiles.sort_unstable_by_key(key);
    }
}

/// The rows of the right operand, which each of its tiles is given.
fn right_rows(right: &mut [RightEntry], roles: &Roles, shape: &Shape) -> Vec<RightRow> {
    let labels = &roles.operands[1];
    let mut rows: Vec<RightRow> = Vec::new();
    let mut start = 0;
    for group in right.chunk_by_mut(|a, b| a.key == b.key) {
        let first = &group[0];
        let extents = shape.tiling().tile_extents(shape.tiles()[first.position as usize]).unwrap_or_default();
        let volume = |of: &Axes| {
            let own = labels.iter().zip(&extents).filter(|(label, _)| of.contains(label));
            // A product of extents that is too large for a number is no length of a tile that can be made.
            own.fold(1_usize, |volume, (_, extent)| volume.saturating_mul(*extent))
        };
        let (terms, batch) = (volume(&roles.terms), volume(&roles.batch));
        let factor = (terms as f64) * (terms as f64) * (batch as f64);
        group.iter_mut().for_each(|tile| tile.row = rows.len() as u32);
        rows.push(RightRow { key: group[0].key, tiles: start..start + group.len(), terms, factor });
        start += group.len();
    }
    rows
}

/// The tiles of a wanted shape, row by row.
struct Wanted {
    /// Rows and columns, ascending. Columns that the right operand does not have are left out.
    tiles: Vec<(u64, u32)>,
}

impl Wanted {
    fn of(roles: &Roles, shape: &Shape, tiling: &Tiling, factors: &Factors) -> Result<Wanted, Error> {
        crate::algebra::check_same_tilings(shape.tiling(), tiling)?;
        let strides = tiling.strides();
        let is_column: Vec<bool> = roles.result.iter().map(|label| roles.columns.contains(label)).collect();
        let split = |tile: &u64| {
            let index = tiling.index_of(*tile).unwrap_or_default();
            let number: u64 = (0..index.len()).filter(|at| is_column[*at]).map(|at| index[at] * strides[at]).sum();
            let column = factors.column_numbers.binary_search(&number).ok()?;
            Some((tile - number, column as u32))
        };
        let mut tiles: Vec<(u64, u32)> = shape.tiles().iter().filter_map(split).collect();
        sort_unless_sorted(&mut tiles, |tile| *tile);
        Ok(Wanted { tiles })
    }

    /// The columns of a row.
    fn columns(&self, row: u64) -> &[(u64, u32)] {
        let start = self.tiles.partition_point(|(known, _)| *known < row);
        let len = self.tiles[start..].partition_point(|(known, _)| *known == row);
        &self.tiles[start..][..len]
    }
}

/// What is known of a column of the row that is being multiplied.
#[derive(Clone, Copy, Default)]
struct Column {
    bound: f64,
    count: u32,
    is_wanted: bool,
    /// Where the next product goes; nowhere if the tile is left out.
    next: usize,
}

/// Where products of a tile that is left out go.
const NOWHERE: usize = usize::MAX;

#[derive(Default)]
struct Made {
    entries: Vec<Entry>,
    numbers: Vec<u64>,
    bounds: Vec<f64>,
    row_ends: Vec<usize>,
    products: Vec<TileProduct>,
}

/// The product, row by row.
struct Rows<'f> {
    factors: &'f Factors,
    screening: Screening,
    most_products: u64,
    /// The columns of the row, which all are as by default between two rows.
    columns: Vec<Column>,
    /// The columns that the row has.
    touched: Vec<u32>,
    made: Made,
    visited: u64,
}

impl<'f> Rows<'f> {
    fn new(factors: &'f Factors, screening: Screening, most_products: u64) -> Rows<'f> {
        let columns = vec![Column::default(); factors.column_numbers.len()];
        Rows { factors, screening, most_products, columns, touched: Vec::new(), made: Made::default(), visited: 0 }
    }

    fn multiply_all<const MASKED: bool>(&mut self, wanted: Option<&Wanted>) -> Result<(), Error> {
        let factors = self.factors;
        let right = |tile: &LeftTile| tile.right_row.map(|row| &factors.right_rows[row as usize]);
        for row in factors.left.chunk_by(|a, b| a.row == b.row) {
            let columns = wanted.map_or(&[][..], |wanted| wanted.columns(row[0].row));
            if MASKED && columns.is_empty() {
                continue;
            }
            let candidates = row.iter().filter_map(right).map(|right| right.tiles.len() as u64).sum::<u64>();
            self.visited = self.visited.saturating_add(candidates);
            if self.visited > self.most_products {
                return Err(limit("products of tiles", self.visited, self.most_products).hint("make larger tiles"));
            }
            columns.iter().for_each(|(_, column)| self.columns[*column as usize].is_wanted = true);
            for (tile, right) in row.iter().filter_map(|tile| Some((tile, right(tile)?))) {
                self.estimate::<MASKED>(tile.norm * right.factor, &factors.columns[right.tiles.clone()]);
            }
            if self.add_entries(row[0].row)? {
                for (tile, right) in row.iter().filter_map(|tile| Some((tile, right(tile)?))) {
                    self.place(tile.position, right.tiles.clone());
                }
            }
            for column in self.touched.drain(..) {
                self.columns[column as usize] = Column::default();
            }
            columns.iter().for_each(|(_, column)| self.columns[*column as usize].is_wanted = false);
        }
        Ok(())
    }

    /// Adds the products of a left tile with a row of the right operand to the estimates.
    #[inline]
    fn estimate<const MASKED: bool>(&mut self, weight: f64, right: &[(u32, f64)]) {
        for (at, norm) in right {
            let column = &mut self.columns[*at as usize];
            if MASKED && !column.is_wanted {
                continue;
            }
            if column.count == 0 {
                self.touched.push(*at);
            }
            column.count += 1;
            column.bound += weight * norm;
        }
    }

    /// Adds the tiles of a row that are present, in ascending order, and makes room for their products. False if there are none.
    fn add_entries(&mut self, row: u64) -> Result<bool, Error> {
        /// Where so many of all columns are in the row, they are found in order by looking at all.
        const MANY: usize = 8;
        if self.touched.len() > self.columns.len() / MANY {
            self.touched.clear();
            self.touched.extend((0..).zip(&self.columns).filter(|(_, column)| column.count > 0).map(|(at, _)| at));
        } else {
            self.touched.sort_unstable();
        }
        let made = &mut self.made;
        let before = made.entries.len();
        let mut first = made.products.len();
        for at in &self.touched {
            let column = &mut self.columns[*at as usize];
            column.next = NOWHERE;
            if self.screening.keeps(column.bound) {
                self.screening.check_count(made.entries.len() as u64 + 1)?;
                column.next = first;
                made.entries.push(Entry { first, count: column.count, column: *at });
                made.numbers.push(row + self.factors.column_numbers[*at as usize]);
                made.bounds.push(column.bound);
                first += column.count as usize;
            }
        }
        if made.entries.len() == before {
            return Ok(false);
        }
        made.row_ends.push(made.entries.len());
        let more = first - made.products.len();
        if made.products.try_reserve(more).is_err() {
            return Err(Error::tensors(Kind::Limit, format!("a plan of {first} products of tiles has no memory")));
        }
        made.products.resize(first, TileProduct::default());
        Ok(true)
    }

    /// Writes the products of a left tile with a row of the right operand to their places.
    #[inline]
    fn place(&mut self, left: u32, right: Range<usize>) {
        let columns = &self.factors.columns[right.clone()];
        for (right, (at, _)) in (right.start as u32..).zip(columns) {
            let column = &mut self.columns[*at as usize];
            // A column that is not wanted, or left out, has no place.
            if column.count > 0
                && let Some(product) = self.made.products.get_mut(column.next)
            {
                *product = TileProduct { left, right };
                column.next += 1;
            }
        }
    }
}
