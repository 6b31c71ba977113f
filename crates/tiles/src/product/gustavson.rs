//! The product of two sparse matrices of tiles, row by row, by the algorithm of Gustavson (ACM TOMS 1978). Each row of
//! the result is visited twice. First the estimated norms of its tiles are summed, and tiles below the threshold are
//! left out. Then the products for the remaining tiles are listed; the products for one tile are in the order in which
//! they are added.

use crate::Screening;
use crate::error::limit;
use crate::product::factors::{Factors, LeftTile, ResultMask};
use cembra_runtime::{Cancellation, advise_huge_pages};
use cembra_value::Error;
use cembra_value::tensor::TensorErrorKind as Kind;

/// A result tile of a product. The products of tiles that are summed for this tile are a range of the list of all
/// products.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    /// The index of the tile's first product in the list of products.
    pub(crate) first: usize,
    pub(crate) count: u32,
    /// The tile's column, as an index into the columns of the right operand's tiles.
    pub(crate) column: u32,
}

/// A product of two tiles. `left` is the position of the left tile in the left operand's list of stored tiles. `right`
/// is the index of the right tile in the plan's list of right tiles, which is sorted by the order in which sums add
/// products.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct TileProduct {
    pub(crate) left: u32,
    pub(crate) right: u32,
}

/// The result of multiplying two sparse matrices of tiles: the result's tiles, row by row, and the products of tiles that are summed for
/// them.
#[derive(Default)]
pub(crate) struct ProductPlanLists {
    pub(crate) entries: Vec<Entry>,
    /// The number of each result tile in the grid of the result. The field `bounds` has the estimates of the tiles' norms.
    pub(crate) numbers: Vec<u64>,
    pub(crate) bounds: Vec<f64>,
    /// For each row of the result, the index after its last entry.
    pub(crate) row_ends: Vec<usize>,
    pub(crate) products: Vec<TileProduct>,
    /// The number of products of tiles that the multiplication visited, including those for tiles that were left out.
    pub(crate) visited: u64,
}

/// The state of a column of the result while a row is computed: the estimated norm of the tile in this row and column
/// so far, and the number of its products.
#[derive(Clone, Copy)]
struct Column {
    bound: f64,
    count: u32,
    /// The index at which the next product of this tile is written, among the products of the row.
    next: u32,
}

/// The index `next` of a tile that is left out: no product is written there.
const NOWHERE: u32 = u32::MAX;

const UNTOUCHED: Column = Column { bound: 0.0, count: 0, next: NOWHERE };

/// The number of bytes per result tile in a plan: for its entry, its number, its estimated norm, and its position in
/// two orders.
pub(crate) const ENTRY_BYTES: usize = size_of::<Entry>() + size_of::<u64>() + size_of::<f64>() + 2 * size_of::<u32>();

/// Multiplies two sparse matrices of tiles, and keeps the result tiles whose estimates are not below the threshold.
/// Returns an error if the plan would have more than `most_bytes` bytes, or if `token` is cancelled, which is checked
/// before each row of tiles.
pub(crate) fn multiply(
    factors: &Factors,
    wanted: Option<&ResultMask>,
    screening: Screening,
    [most_products, most_bytes]: [u64; 2],
    token: Option<&Cancellation>,
) -> Result<ProductPlanLists, Error> {
    check_products(factors, wanted, most_products)?;
    let count = factors.column_numbers.len();
    let mut rows = Rows {
        factors,
        screening,
        columns: vec![UNTOUCHED; count],
        is_wanted: vec![false; if wanted.is_some() { count } else { 0 }],
        // One entry more, because the next one is written before it is known whether it counts.
        touched: vec![0; count + 1],
        touched_count: 0,
        seen: vec![0; count.div_ceil(64)],
        made: room(factors),
        most_bytes,
    };
    for row in factors.left.chunk_by(|a, b| a.row == b.row) {
        if token.is_some_and(Cancellation::is_cancelled) {
            return Err(Error::ended_by(token));
        }
        let columns = wanted.map_or(&[][..], |wanted| wanted.columns(row[0].row));
        if wanted.is_some() && columns.is_empty() {
            continue;
        }
        rows.made.visited = rows.made.visited.saturating_add(candidates(factors, row));
        columns.iter().for_each(|(_, column)| rows.is_wanted[*column as usize] = true);
        if wanted.is_some() {
            rows.estimate::<true>(row);
        } else {
            rows.estimate::<false>(row);
        }
        rows.sort_touched();
        if let Some(first) = rows.add_entries(factors.rows.number(row[0].row))? {
            rows.place(row, first);
        }
        rows.forget();
        columns.iter().for_each(|(_, column)| rows.is_wanted[*column as usize] = false);
    }
    Ok(rows.made)
}

/// The most products of tiles that a row of the result can have: those of its left tiles with all right tiles that have
/// the same coordinates of the labels of both operands.
fn candidates(factors: &Factors, row: &[LeftTile]) -> u64 {
    row.iter().map(|tile| factors.right_row(tile.right_row).1.len() as u64).sum()
}

/// Checks that the number of products of tiles to visit is within its limit. They are counted before any is visited.
fn check_products(factors: &Factors, wanted: Option<&ResultMask>, most_products: u64) -> Result<(), Error> {
    let (mut all, mut longest) = (0_u64, 0);
    for row in factors.left.chunk_by(|a, b| a.row == b.row) {
        if wanted.is_none_or(|wanted| !wanted.columns(row[0].row).is_empty()) {
            let of_row = candidates(factors, row);
            all = all.saturating_add(of_row);
            longest = longest.max(of_row);
        }
    }
    if all > most_products || longest >= u64::from(NOWHERE) {
        let most = most_products.min(u64::from(NOWHERE));
        return Err(limit("products of tiles", all, most).hint("make larger tiles"));
    }
    Ok(())
}

/// Reserves memory for the most tiles and products that the result can have.
fn room(factors: &Factors) -> ProductPlanLists {
    let (mut tiles, mut products) = (0_usize, 0_usize);
    for row in factors.left.chunk_by(|a, b| a.row == b.row) {
        let candidates = candidates(factors, row) as usize;
        tiles = tiles.saturating_add(factors.column_numbers.len().min(candidates));
        products = products.saturating_add(candidates);
    }
    ProductPlanLists {
        entries: list_of(tiles),
        numbers: list_of(tiles),
        bounds: list_of(tiles),
        products: list_of(products),
        ..ProductPlanLists::default()
    }
}

/// Makes a list with capacity for `count` elements, but at most for 256 MiB. A list that grows is copied, and the pages
/// of its new memory take as long to clear as the plan itself takes to make. Unused capacity takes no pages of memory.
fn list_of<T>(count: usize) -> Vec<T> {
    /// The most bytes that are reserved at once: 256 MiB.
    const MOST: usize = 256 << 20;
    let mut list = Vec::new();
    // Without room the list grows as it is filled.
    if list.try_reserve_exact(count.min(MOST / size_of::<T>())).is_ok() {
        advise_huge_pages(list.spare_capacity_mut());
    }
    list
}

/// The state of a product of sparse matrices of tiles. One row of the result is computed at a time.
struct Rows<'f> {
    factors: &'f Factors,
    screening: Screening,
    /// The state of each column. Between two rows of the result, all columns are in their initial state.
    columns: Vec<Column>,
    is_wanted: Vec<bool>,
    /// The columns that have a product in the current row: the first `touched_count` entries of this list. Later
    /// entries are meaningless.
    touched: Vec<u32>,
    touched_count: usize,
    /// A bit per column, all 0 except while the columns are sorted.
    seen: Vec<u64>,
    made: ProductPlanLists,
    /// The most bytes that the tiles and products of the plan may take.
    most_bytes: u64,
}

impl Rows<'_> {
    /// Adds the estimated norms of a row's products to those of its result tiles, and lists the columns of these tiles.
    fn estimate<const MASKED: bool>(&mut self, row: &[LeftTile]) {
        let mut count = 0;
        for tile in row {
            let (_, columns, norms) = self.factors.right_row(tile.right_row);
            for (at, norm) in columns.iter().zip(norms) {
                if MASKED && !self.is_wanted[*at as usize] {
                    continue;
                }
                let column = &mut self.columns[*at as usize];
                // Written always, and counted the first time: there is no branch to mispredict.
                self.touched[count] = *at;
                count += usize::from(column.count == 0);
                column.count += 1;
                column.bound += tile.weight * norm;
            }
        }
        self.touched_count = count;
    }

    /// Brings the touched columns into ascending order.
    fn sort_touched(&mut self) {
        /// The number of words of bits that can be scanned in about the time that sorting one column takes.
        const WORDS_PER_COLUMN: usize = 4;
        let touched = &mut self.touched[..self.touched_count];
        if self.seen.len() > touched.len() * WORDS_PER_COLUMN {
            touched.sort_unstable();
            return;
        }
        for at in &*touched {
            self.seen[*at as usize / 64] |= 1 << (at % 64);
        }
        let mut place = touched.iter_mut();
        for (first, word) in (0..).step_by(64).zip(&mut self.seen) {
            let mut bits = std::mem::take(word);
            while bits != 0 {
                if let Some(place) = place.next() {
                    *place = first + bits.trailing_zeros();
                }
                bits &= bits - 1;
            }
        }
    }

    /// Appends the tiles of a row whose estimates are not below the threshold, and entries for their products. Returns
    /// the index of the first of these products; `None` if no tile is kept.
    fn add_entries(&mut self, row: u64) -> Result<Option<usize>, Error> {
        let made = &mut self.made;
        let (before, first) = (made.entries.len(), made.products.len());
        // The count is checked once for the row, not for each tile.
        self.screening.check_count(before as u64)?;
        let mut next = 0;
        for at in &self.touched[..self.touched_count] {
            let column = &mut self.columns[*at as usize];
            if self.screening.keeps(column.bound) {
                column.next = next;
                made.numbers.push(row + self.factors.column_numbers[*at as usize]);
                made.bounds.push(column.bound);
                made.entries.push(Entry { first: first + next as usize, count: column.count, column: *at });
                next += column.count;
            }
        }
        self.screening.check_count(made.entries.len() as u64)?;
        if made.entries.len() == before {
            return Ok(None);
        }
        made.row_ends.push(made.entries.len());
        let products = first + next as usize;
        let bytes =
            (made.entries.len() * ENTRY_BYTES).saturating_add(products.saturating_mul(size_of::<TileProduct>()));
        if bytes as u64 > self.most_bytes {
            let what = format!("bytes for a plan of {products} products of tiles");
            let hint = "make larger tiles, raise the threshold, or raise `most_bytes`";
            return Err(limit(&what, bytes, self.most_bytes).hint(hint));
        }
        if made.products.try_reserve(next as usize).is_err() {
            let message =
                format!("there is not enough memory for a plan of {} products of tiles", first + next as usize);
            return Err(Error::tensors(Kind::Limit, message));
        }
        made.products.resize(first + next as usize, TileProduct::default());
        Ok(Some(first))
    }

    /// Writes the products of a row into the list of products, grouped by tile. `first` is the index of the row's first
    /// product.
    fn place(&mut self, row: &[LeftTile], first: usize) {
        let products = &mut self.made.products[first..];
        for tile in row {
            let (start, columns, _) = self.factors.right_row(tile.right_row);
            for (right, at) in (start..).zip(columns) {
                let column = &mut self.columns[*at as usize];
                // Tiles that are left out have no such place.
                if let Some(product) = products.get_mut(column.next as usize) {
                    *product = TileProduct { left: tile.position, right };
                    column.next += 1;
                }
            }
        }
    }

    /// Resets the columns that the row touched to their initial state.
    fn forget(&mut self) {
        for at in &self.touched[..self.touched_count] {
            self.columns[*at as usize] = UNTOUCHED;
        }
    }
}
