//! The algebra of shapes. A shape is the list of a tensor's present tiles with their norms. The shape of a result is computed from the shapes of
//! its operands, before any tile is computed; its norms are upper bounds. Norms are per element, so `|a + b| <= |a| + |b|`, and the norm of an
//! elementwise product has the number of elements in the tile as a factor. Sums over products of tiles are in `product/symbolic.rs`. An infinite
//! norm times 0 is NaN, which keeps the tile, because nothing is known about its norm. The time is linear in the number of present tiles, except
//! for sorting when axes are permuted.

use crate::error::unlike_tilings;
use crate::shape::sparse::ShapeBuilder;
use crate::shape::tiling::TileIndex;
use crate::shape::weighing::{WeightedIndex, is_small};
use crate::{Base, Screening, Shape, Tiling};
use cembra_value::Error;
use std::ops::Range;

impl Shape {
    /// Returns the shape of this tensor times `factor`: a norm `s` becomes `|factor| s`, and tiles below the threshold are left out.
    ///
    /// # Errors
    /// If the threshold is negative or NaN.
    pub fn scaled(&self, factor: f64, screening: &Screening) -> Result<Shape, Error> {
        self.mapped(|_, norm| factor.abs() * norm, screening)
    }

    /// Returns the shape of the sum or difference of two tensors. The norm of a tile is the sum of its norms in both operands.
    ///
    /// # Errors
    /// If the tilings differ, or more tiles are left than `screening` allows.
    pub fn added(&self, other: &Shape, screening: &Screening) -> Result<Shape, Error> {
        screening.check()?;
        check_same_tilings(self.tiling(), other.tiling())?;
        // A tile is written before it is known whether it stays, so there is no branch on norms, nor on which operand has the tile.
        let most = self.len().saturating_add(other.len());
        let (mut tiles, mut norms) = (vec![0; most], vec![0.0; most]);
        let (mut i, mut j, mut count) = (0, 0, 0);
        let end = |of: &Shape, at: usize| of.tiles().get(at).map_or((u64::MAX, 0.0), |tile| (*tile, of.norms()[at]));
        while i < self.len() || j < other.len() {
            let ((x, a), (y, b)) = (end(self, i), end(other, j));
            let tile = x.min(y);
            // A table, since a selection of floats is compiled to a branch.
            let norm = [0.0, a, b, a + b][usize::from(x == tile) + 2 * usize::from(y == tile)];
            (tiles[count], norms[count]) = (tile, norm);
            i += usize::from(x == tile);
            j += usize::from(y == tile);
            count += usize::from(screening.keeps(norm));
        }
        screening.check_count(count as u64)?;
        tiles.truncate(count);
        norms.truncate(count);
        Ok(Shape::of_sorted(self.tiling().clone(), tiles, norms))
    }

    /// Returns the shape of the elementwise product of two tensors. If a tile has V elements, and the norms `s1` and `s2` in the operands, its
    /// norm is `s1 s2 V`.
    ///
    /// # Errors
    /// If the tilings differ, or more tiles are left than `screening` allows.
    pub fn multiplied(&self, other: &Shape, screening: &Screening) -> Result<Shape, Error> {
        screening.check()?;
        check_same_tilings(self.tiling(), other.tiling())?;
        let both = common(self.tiles(), other.tiles());
        let mut made = ShapeBuilder::new(self.tiling(), *screening).with_room(both.len());
        for (own, others) in both {
            let tile = self.tiles()[own as usize];
            let norms = self.norms()[own as usize] * other.norms()[others as usize];
            made.add_known(tile, norms * self.tiling().volume(tile))?;
        }
        Ok(made.finish())
    }

    /// Returns the shape of the result if a function is applied to each element of the tensor. If the function maps 0 to 0 (`keeps_zero`),
    /// absent tiles stay absent; otherwise all tiles are present. Nothing is known about the norms of the result, so they are infinite.
    ///
    /// # Errors
    /// If all tiles must be present, but the grid has more than `most_tiles` tiles.
    pub fn of_map(&self, keeps_zero: bool, most_tiles: usize) -> Result<Shape, Error> {
        if keeps_zero {
            Ok(self.with_norms(vec![f64::INFINITY; self.len()]))
        } else {
            Shape::dense(self.tiling(), most_tiles)
        }
    }

    /// Returns the shape of the tiles that are present both in this shape and in `wanted`, with the norms of this shape.
    ///
    /// # Errors
    /// If the tilings differ.
    pub fn masked(&self, wanted: &Shape) -> Result<Shape, Error> {
        check_same_tilings(self.tiling(), wanted.tiling())?;
        // A present tile stays, whatever its norm.
        let kept = common(self.tiles(), wanted.tiles());
        let (tiles, norms) =
            kept.iter().map(|(own, _)| *own as usize).map(|at| (self.tiles()[at], self.norms()[at])).unzip();
        Ok(Shape::of_sorted(self.tiling().clone(), tiles, norms))
    }

    /// Returns the shape without the tiles whose norms are below the threshold.
    ///
    /// # Errors
    /// If the threshold is negative or NaN, or more tiles are left than `screening` allows.
    pub fn screened(&self, screening: &Screening) -> Result<Shape, Error> {
        self.mapped(|_, norm| norm, screening)
    }

    /// Permutes the axes: axis `i` of the result is axis `of[i]` of this shape.
    ///
    /// # Errors
    /// If `of` does not name each axis once.
    pub fn permuted(&self, of: &[usize]) -> Result<Shape, Error> {
        Ok(self.permuted_with_sources(of)?.0)
    }

    /// Permutes the axes as [`permuted`](Shape::permuted) does, and also returns for each tile of the result its position in this shape.
    pub(crate) fn permuted_with_sources(&self, of: &[usize]) -> Result<(Shape, Vec<u32>), Error> {
        let tiling = self.tiling().permuted(of)?;
        let mut weights = tiling.strides();
        of.iter().zip(tiling.strides()).for_each(|(axis, stride)| weights[*axis] = stride);
        // After the leading axes of the result the others are in the order that they have here, so tiles of one coordinate of the leading
        // axes are in order already.
        let leading = (1..of.len()).rev().find(|at| of[at - 1] > of[*at]).unwrap_or(0);
        let rest = tiling.axes()[leading..].iter().fold(1_u64, |tiles, axis| tiles.saturating_mul(axis.tiles()));
        let mut groups: TileIndex = weights.iter().map(|_| 0).collect();
        of[..leading].iter().for_each(|axis| groups[*axis] = weights[*axis].checked_div(rest).unwrap_or(0));
        let count = tiling.tiles().checked_div(rest).unwrap_or(0);
        let mut weighing = WeightedIndex::new(self.tiling(), [&weights, &groups]);
        let mut found: Vec<([u64; 2], u32)> = self.tiles().iter().map(|tile| weighing.of(*tile)).zip(0..).collect();
        if is_small(count, found.len()) {
            found = in_groups(&found, count as usize);
        } else {
            found.sort_unstable();
        }
        let norms = found.iter().map(|(_, at)| self.norms()[*at as usize]).collect();
        let sources = found.iter().map(|(_, at)| *at).collect();
        Ok((Shape::of_sorted(tiling, found.into_iter().map(|([tile, _], _)| tile).collect(), norms), sources))
    }

    /// Returns the shape of a block: the given range of tiles along each axis. `base` decides whether elements keep their indices.
    ///
    /// # Errors
    /// If there is not one range per axis, or a range exceeds the tiles of its axis.
    pub fn block(&self, tiles: &[Range<u64>], base: Base) -> Result<Shape, Error> {
        Ok(self.block_with_sources(tiles, base)?.0)
    }

    /// Returns the shape of a block as [`block`](Shape::block) does, and also for each tile of the block its position in this shape.
    pub(crate) fn block_with_sources(&self, tiles: &[Range<u64>], base: Base) -> Result<(Shape, Vec<u32>), Error> {
        let tiling = self.tiling().block(tiles, base)?;
        let strides = tiling.strides();
        let mut made = (Vec::new(), Vec::new(), Vec::new());
        for (at, (tile, norm)) in (0..).zip(self.iter()) {
            let index = self.tiling().index_of(tile).unwrap_or_default();
            if index.iter().zip(tiles).all(|(at, range)| range.contains(at)) {
                let moved =
                    index.iter().zip(tiles).zip(&strides).map(|((at, range), stride)| (at - range.start) * stride);
                made.0.push(moved.sum());
                made.1.push(norm);
                made.2.push(at);
            }
        }
        Ok((Shape::of_sorted(tiling, made.0, made.1), made.2))
    }

    /// Computes new norms of the present tiles, and screens them.
    fn mapped(&self, norm: impl Fn(u64, f64) -> f64, screening: &Screening) -> Result<Shape, Error> {
        screening.check()?;
        let mut made = ShapeBuilder::new(self.tiling(), *screening).with_room(self.len());
        for (tile, old) in self.iter() {
            made.add_known(tile, norm(tile, old))?;
        }
        Ok(made.finish())
    }
}

/// Sorts tiles by their group, the second number of an entry, by counting. The tiles of a group keep their order.
fn in_groups(tiles: &[([u64; 2], u32)], groups: usize) -> Vec<([u64; 2], u32)> {
    let mut next = vec![0_usize; groups + 1];
    tiles.iter().for_each(|([_, group], _)| next[*group as usize + 1] += 1);
    let mut first = 0;
    for next in &mut next {
        first += *next;
        *next = first;
    }
    let mut sorted = vec![([0; 2], 0); tiles.len()];
    for tile in tiles {
        let place = &mut next[tile.0[1] as usize];
        sorted[*place] = *tile;
        *place += 1;
    }
    sorted
}

/// Returns an error unless two tilings are equal.
pub(crate) fn check_same_tilings(a: &Tiling, b: &Tiling) -> Result<(), Error> {
    if a == b { Ok(()) } else { Err(unlike_tilings(&format!("{a:?} and {b:?}"))) }
}

/// Returns, for each number that both ascending lists contain, its positions in the two lists.
pub(crate) fn common(a: &[u64], b: &[u64]) -> Vec<(u32, u32)> {
    // A pair is written before it is known whether it stays, so there is no branch on numbers.
    let mut found = vec![(0, 0); a.len().min(b.len())];
    let (mut i, mut j, mut count) = (0, 0, 0);
    while let (Some(x), Some(y)) = (a.get(i), b.get(j)) {
        // Shapes count tiles in 32 bits.
        found[count] = (i as u32, j as u32);
        count += usize::from(x == y);
        i += usize::from(x <= y);
        j += usize::from(y <= x);
    }
    found.truncate(count);
    found
}

/// Merges two ascending lists. Returns each number that either list contains, with its position in each list; `None` if a list does not
/// contain it.
pub(crate) fn merge<'t>(a: &'t [u64], b: &'t [u64]) -> impl Iterator<Item = (u64, Option<usize>, Option<usize>)> + 't {
    let (mut i, mut j) = (0, 0);
    std::iter::from_fn(move || {
        // After its end a list counts as having a number above all tiles, so no branch is on which list has ended.
        let next = |of: &[u64], at: usize| of.get(at).map_or(u64::MAX, |tile| *tile);
        let (x, y) = (next(a, i), next(b, j));
        let tile = x.min(y);
        if i == a.len() && j == b.len() {
            return None;
        }
        let (first, second) = ((x == tile).then_some(i), (y == tile).then_some(j));
        i += usize::from(x == tile);
        j += usize::from(y == tile);
        Some((tile, first, second))
    })
}
