//! Elementwise operators on tiled tensors: sums, differences, products, multiples and functions. Each tile of the result is computed from
//! the operands' tiles at the same place, so several threads can compute tiles.

use crate::distribution::Read;
use crate::distribution::each::{ResultStep, tiled_of};
use crate::error::{caught, check_same_types, unlike_types};
use crate::shape::algebra::{check_same_tilings, merge};
use crate::tasks::Workers;
use crate::tiled::tile::{Float, Tile, with_float};
use crate::{Evaluator, Shape, Tiled};
use cembra_value::Error;

/// A function that makes a result tile from one operand tile, such as a multiple of it.
type OfTile<'f> = &'f (dyn Fn(&Workers, &Tile) -> Result<Tile, Error> + Sync);

impl Evaluator {
    /// Returns the sum of two tensors with the same tiling. A tile that only one operand has is shared with it, not copied.
    ///
    /// # Errors
    /// If tilings or types of elements differ, there are too many tiles, the memory limit does not suffice, a lazy tile cannot be
    /// computed, or the evaluation was cancelled.
    pub fn add(&self, a: &Tiled, b: &Tiled) -> Result<Tiled, Error> {
        let shape = a.shape().added(b.shape(), &self.options().screening(a.scalar_type())?)?;
        with_float!(a.scalar_type(), T => self.merged::<T>("added", &shape, [a, b], |a, b| a + b, None))
    }

    /// Returns the difference of two tensors with the same tiling.
    ///
    /// # Errors
    /// The errors of [`add`](Evaluator::add).
    pub fn subtract(&self, a: &Tiled, b: &Tiled) -> Result<Tiled, Error> {
        let shape = a.shape().added(b.shape(), &self.options().screening(a.scalar_type())?)?;
        with_float!(a.scalar_type(), T => {
            self.merged::<T>("subtracted", &shape, [a, b], |a, b| a - b, Some(&|workers, b| mapped::<T>(workers, b, |element| -element)))
        })
    }

    /// Returns the elementwise product of two tensors with the same tiling.
    ///
    /// # Errors
    /// The errors of [`add`](Evaluator::add).
    pub fn hadamard(&self, a: &Tiled, b: &Tiled) -> Result<Tiled, Error> {
        let shape = a.shape().multiplied(b.shape(), &self.options().screening(a.scalar_type())?)?;
        with_float!(a.scalar_type(), T => self.merged::<T>("multiplied", &shape, [a, b], |a, b| a * b, None))
    }

    /// Returns `a` times `factor`, which is rounded to the type of the elements.
    ///
    /// # Errors
    /// If the memory limit does not suffice, a lazy tile cannot be computed, or the evaluation was cancelled.
    pub fn scale(&self, a: &Tiled, factor: f64) -> Result<Tiled, Error> {
        let shape = a.shape().scaled(factor, &self.options().screening(a.scalar_type())?)?;
        let part = a.with_part_of_tiles(shape);
        let workers = self.workers.clone();
        with_float!(a.scalar_type(), T => {
            let factor = T::of_f64(factor);
            let (operation, reads) = (("scaled", factor.to_f64().to_bits()), [Read::in_place(&part)]);
            tiled_of(&ResultStep::new(operation, part.shape(), a.scalar_type(), &reads), &workers, |operands, at| {
                mapped::<T>(&workers, &operands[0].tile_at(at)?, |element| factor * element)
            })
        })
    }

    /// Applies `function` to each element. If the function maps 0 to 0, absent tiles stay absent. Otherwise the result has all tiles, and tiles that
    /// were absent are filled with the function's value at 0.
    ///
    /// # Errors
    /// If the elements are not of type `T`, there are too many tiles, the memory limit does not suffice, the function panics, a lazy tile cannot be
    /// computed, or the evaluation was cancelled.
    pub fn map<T: Float>(&self, a: &Tiled, function: impl Fn(T) -> T + Sync) -> Result<Tiled, Error> {
        check_same_types(a.scalar_type(), T::SCALAR)?;
        let screening = self.options().screening(a.scalar_type())?;
        let of_zero = caught("the function of elements", || Ok(function(T::default())))?;
        let shape = a.shape().of_map(of_zero == T::default(), screening.most_tiles)?;
        let places: Vec<Option<usize>> = merge(a.shape().tiles(), shape.tiles()).map(|(_, own, _)| own).collect();
        let workers = self.workers.clone();
        let reads = [Read { of: a, positions: &|at| places[at].into_iter().collect() }];
        let making = ResultStep::new(("mapped", of_zero.bits()), &shape, T::SCALAR, &reads);
        tiled_of(&making, &workers, |operands, at| {
            if let Some(own) = places[at] {
                let tile = operands[0].tile_at(own)?;
                return caught("the function of elements", || mapped::<T>(&workers, &tile, &function));
            }
            let extents = shape.tiling().tile_extents(shape.tiles()[at]).unwrap_or_default();
            let mut made = workers.memory::<T>(&extents)?;
            made.elements_mut().fill(of_zero);
            made.into_tile(&extents)
        })
    }

    /// Makes the tiles of a shape from those of two operands. Where both have a tile, `of_both` combines their
    /// elements. A tile that only the first operand has is shared, not copied. A tile that only the second operand has
    /// is converted by `of_second`, or shared if that is `None`.
    fn merged<T: Float>(
        &self,
        name: &'static str,
        shape: &Shape,
        [a, b]: [&Tiled; 2],
        of_both: impl Fn(T, T) -> T + Sync,
        of_second: Option<OfTile<'_>>,
    ) -> Result<Tiled, Error> {
        check_same_tilings(a.tiling(), b.tiling())?;
        check_same_types(a.scalar_type(), b.scalar_type())?;
        let mut wanted = shape.tiles().iter().peekable();
        let both = merge(a.shape().tiles(), b.shape().tiles());
        let both = both.filter(|(number, ..)| wanted.next_if_eq(&number).is_some());
        let places: Vec<(Option<usize>, Option<usize>)> = both.map(|(_, first, second)| (first, second)).collect();
        let workers = self.workers.clone();
        let reads = [
            Read { of: a, positions: &|at| places[at].0.into_iter().collect() },
            Read { of: b, positions: &|at| places[at].1.into_iter().collect() },
        ];
        let making = ResultStep::new((name, 0), shape, T::SCALAR, &reads);
        let made = tiled_of(&making, &workers, |operands, at| {
            let tile = |of: &Tiled, at: Option<usize>| at.map(|at| of.tile_at(at)).transpose();
            let (first, second) = places[at];
            match (tile(&operands[0], first)?, tile(&operands[1], second)?) {
                (Some(a), Some(b)) => {
                    let mut made = workers.memory::<T>(a.extents())?;
                    let pairs = a.elements::<T>().iter().zip(b.elements::<T>());
                    made.elements_mut().iter_mut().zip(pairs).for_each(|(to, (a, b))| *to = of_both(*a, *b));
                    made.into_tile(a.extents())
                }
                (None, Some(b)) => of_second.map_or_else(|| Ok(b.clone()), |of_second| of_second(&workers, &b)),
                // A tile of the shape is a tile of at least one operand.
                (a, None) => a.ok_or_else(|| unlike_types(T::SCALAR, b.scalar_type())),
            }
        })?;
        let shared = match places.first() {
            Some((_, None)) if places.iter().all(|(_, second)| second.is_none()) => a.plan(),
            Some((None, _)) if of_second.is_none() && places.iter().all(|(first, _)| first.is_none()) => b.plan(),
            _ => None,
        };
        Ok(match shared.filter(|_| made.is_planned()) {
            Some(shared) => shared.stored(made.shape().clone(), T::SCALAR, true),
            None => made,
        })
    }
}

/// Applies a function to each element of a tile.
fn mapped<T: Float>(workers: &Workers, tile: &Tile, function: impl Fn(T) -> T) -> Result<Tile, Error> {
    let mut made = workers.memory::<T>(tile.extents())?;
    let from = tile.elements::<T>();
    made.elements_mut().iter_mut().zip(from).for_each(|(to, from)| *to = function(*from));
    made.into_tile(tile.extents())
}
