//! Reductions of tiled tensors to single numbers: sums, norms, extremes. Each tile is reduced to one FLOAT64 in the order of its elements,
//! and these numbers are added exactly ([`ExactSum`](crate::elements::exact::ExactSum)). So a sum depends on the tiles, but neither on
//! their order nor on threads. Absent tiles count as zeros.

use crate::distribution::each::{ResultStep, lazy_bytes, numbers_of};
use crate::distribution::{Read, Reads};
use crate::elements::exact::exact_sum;
use crate::error::{check_same_types, unlike_tilings};
use crate::shape::algebra::{check_same_tilings, common};
use crate::tiled::tile::{Float, Tile, with_float};
use crate::{Evaluator, Shape, Tiled, Tiling1};
use cembra_value::Error;
use cembra_value::tensor::TensorErrorKind as Kind;
use std::ops::Range;

/// The number of partial sums for the elements of a tile: as many as the widest vectors have lanes.
const LANES: usize = 8;

/// Sums `term` over the pairs of elements of `a` and `b`, in an order that depends only on the number of pairs.
fn in_lanes<A: Copy, B: Copy>(a: &[A], b: &[B], term: impl Fn(A, B) -> f64) -> f64 {
    let mut sums = [0.0; LANES];
    for (a, b) in a.chunks(LANES).zip(b.chunks(LANES)) {
        for (sum, (a, b)) in sums.iter_mut().zip(a.iter().zip(b)) {
            *sum += term(*a, *b);
        }
    }
    sums.iter().sum()
}

/// An extreme of all elements of a tensor: the least or the greatest element, or the least or the greatest magnitude.
#[derive(Clone, Copy)]
struct Extreme {
    /// The name of the computation, such as that of a minimum. Ranks compare it before they compute together.
    name: &'static str,
    is_least: bool,
    is_magnitude: bool,
}

impl Extreme {
    fn of(self, number: f64) -> f64 {
        if self.is_magnitude { number.abs() } else { number }
    }

    /// Returns the one of two numbers that is the extreme. NaN is chosen before any number, and -0 is less than 0, so
    /// the order of comparisons does not matter.
    fn choose(self, a: f64, b: f64) -> f64 {
        if a.is_nan() || b.is_nan() {
            return f64::NAN;
        }
        let order = a.total_cmp(&b);
        if if self.is_least { order.is_le() } else { order.is_ge() } { a } else { b }
    }
}

impl Evaluator {
    /// Returns the sum of all elements of a tensor.
    ///
    /// ```
    /// use cembra_tiles::{Evaluator, MOST_TILES, Options, Shape, Tiled, Tiling, Tiling1};
    ///
    /// let shape = Shape::dense(&Tiling::new([Tiling1::blocked(3, 1)?])?, MOST_TILES)?;
    /// let a = Tiled::from_fn(&shape, |at| [1e300, 1.0, -1e300][at[0] as usize])?;
    /// // Floats that are added one by one lose the 1.
    /// assert_eq!(Evaluator::new(Options::default()).sum(&a)?, 1.0);
    /// # Ok::<(), cembra_value::Error>(())
    /// ```
    ///
    /// # Errors
    /// If a lazy tile cannot be computed, the memory limit does not suffice for it, or the evaluation was cancelled.
    pub fn sum(&self, a: &Tiled) -> Result<f64, Error> {
        self.sum_of_tiles(("sum", 0), a, |_, tile| {
            with_float!(a.scalar_type(), T => {
                let elements = tile.elements::<T>();
                Ok(in_lanes(elements, elements, |element, _| element.to_f64()))
            })
        })
    }

    /// Returns the root of the sum of the squares of all elements. Unlike the norms of tiles, it is not divided by the number of elements.
    ///
    /// # Errors
    /// The errors of [`sum`](Evaluator::sum).
    pub fn norm(&self, a: &Tiled) -> Result<f64, Error> {
        let squares = |scale: f64| {
            self.sum_of_tiles(("squares", scale.to_bits()), a, |_, tile| {
                with_float!(a.scalar_type(), T => {
                    let elements = tile.elements::<T>();
                    Ok(in_lanes(elements, elements, |element, _| (element.to_f64() * scale) * (element.to_f64() * scale)))
                })
            })
        };
        let sum = squares(1.0)?;
        if sum.is_nan() || (sum.is_finite() && sum > f64::MIN_POSITIVE / f64::EPSILON) {
            return Ok(sum.sqrt());
        }
        // Squares of large or small elements leave the range of floats where the norm itself does not.
        let largest = if filled_tiles(a) == 0 { 0.0 } else { self.abs_max(a)? };
        if largest == 0.0 || !largest.is_finite() {
            return Ok(largest);
        }
        // A power of two, so nothing is rounded. It and its inverse are floats.
        let scale = (-largest.log2().floor()).clamp(-1022.0, 1022.0).exp2();
        Ok(squares(scale)?.sqrt() / scale)
    }

    /// Returns the sum of the products of corresponding elements of two tensors with the same tiling. The products are not stored.
    ///
    /// # Errors
    /// The errors of [`sum`](Evaluator::sum); or the tilings or the types of elements differ.
    pub fn dot(&self, a: &Tiled, b: &Tiled) -> Result<f64, Error> {
        check_same_tilings(a.tiling(), b.tiling())?;
        check_same_types(a.scalar_type(), b.scalar_type())?;
        let both = common(a.shape().tiles(), b.shape().tiles());
        // Tiles of the first tensor that the second one does not have are not made.
        let part = a.with_part_of_tiles(a.shape().masked(b.shape())?);
        let reads = [Read::in_place(&part), Read { of: b, positions: &|at| Reads::from_elem(both[at].1 as usize, 1) }];
        let each_bytes = lazy_bytes(a).saturating_add(lazy_bytes(b));
        let making = ResultStep { each_bytes, ..ResultStep::new(("dot", 0), part.shape(), a.scalar_type(), &reads) };
        let numbers = numbers_of(&making, &self.workers.clone(), |operands, at| {
            let (own, other) = (operands[0].tile_at(at)?, operands[1].tile_at(both[at].1 as usize)?);
            with_float!(a.scalar_type(), T => {
                let sum = in_lanes(own.elements::<T>(), other.elements::<T>(), |a, b| a.to_f64() * b.to_f64());
                Ok(sum.to_bits())
            })
        })?;
        Ok(exact_sum(&numbers.into_iter().map(f64::from_bits).collect::<Vec<f64>>()))
    }

    /// Returns the sum of the products of the conjugates of `a`'s elements with `b`'s elements. Elements are real, so this equals
    /// [`dot`](Evaluator::dot).
    ///
    /// # Errors
    /// The errors of [`dot`](Evaluator::dot).
    pub fn inner_product(&self, a: &Tiled, b: &Tiled) -> Result<f64, Error> {
        self.dot(a, b)
    }

    /// Returns the trace of a matrix: the sum of the elements whose two indices are equal.
    ///
    /// # Errors
    /// The errors of [`sum`](Evaluator::sum); or the tensor does not have two axes with the same index range.
    pub fn trace(&self, a: &Tiled) -> Result<f64, Error> {
        let tiling = a.tiling();
        tiling.check_rank(2)?;
        let [rows, columns] = [0, 1].map(|axis: usize| &tiling.axes()[axis]);
        if (rows.lower(), rows.upper()) != (columns.lower(), columns.upper()) {
            return Err(unlike_tilings(&format!("the two axes of a trace, {rows:?} and {columns:?},")));
        }
        let diagonal = |tile: u64| -> Option<(Range<i64>, [Range<i64>; 2])> {
            let ranges = tiling.ranges(tile)?;
            let [down, along] = [0, 1].map(|axis: usize| ranges[axis].clone());
            let both = down.start.max(along.start)..down.end.min(along.end);
            (!both.is_empty()).then_some((both, [down, along]))
        };
        let on_diagonal = a.shape().iter().filter(|(tile, _)| diagonal(*tile).is_some());
        let numbers: (Vec<u64>, Vec<f64>) = on_diagonal.unzip();
        let part = a.with_part_of_tiles(Shape::of_sorted(tiling.clone(), numbers.0, numbers.1));
        self.sum_of_tiles(("trace", 0), &part, |at, tile| {
            let Some((both, [down, along])) = diagonal(part.shape().tiles()[at]) else { return Ok(0.0) };
            let width = along.end.abs_diff(along.start) as usize;
            let place = |index: i64| index.abs_diff(down.start) as usize * width + index.abs_diff(along.start) as usize;
            with_float!(a.scalar_type(), T => {
                let elements = tile.elements::<T>();
                Ok(both.map(|index| elements[place(index)].to_f64()).sum())
            })
        })
    }

    /// Returns the product of all elements; 1 if there are no elements. The elements of each tile are multiplied first, and then the products of the
    /// tiles in the order of tiles.
    ///
    /// # Errors
    /// The errors of [`sum`](Evaluator::sum).
    pub fn product_of_elements(&self, a: &Tiled) -> Result<f64, Error> {
        let products = self.numbers_of_tiles(("product of elements", 0), a, |_, tile| {
            with_float!(a.scalar_type(), T => {
                Ok(tile.elements::<T>().iter().fold(1.0, |product: f64, element| product * element.to_f64()))
            })
        })?;
        let product = products.into_iter().fold(1.0, |product, part| product * part);
        Ok(if has_absent_elements(a) { product * 0.0 } else { product })
    }

    /// Returns the smallest element; NaN if an element is NaN.
    ///
    /// # Errors
    /// The errors of [`sum`](Evaluator::sum); or the tensor has no elements.
    pub fn min(&self, a: &Tiled) -> Result<f64, Error> {
        self.extreme(a, Extreme { name: "least", is_least: true, is_magnitude: false })
    }

    /// Returns the largest element; NaN if an element is NaN.
    ///
    /// # Errors
    /// The errors of [`min`](Evaluator::min).
    pub fn max(&self, a: &Tiled) -> Result<f64, Error> {
        self.extreme(a, Extreme { name: "greatest", is_least: false, is_magnitude: false })
    }

    /// Returns the smallest absolute value of an element; NaN if an element is NaN.
    ///
    /// # Errors
    /// The errors of [`min`](Evaluator::min).
    pub fn abs_min(&self, a: &Tiled) -> Result<f64, Error> {
        self.extreme(a, Extreme { name: "least magnitude", is_least: true, is_magnitude: true })
    }

    /// Returns the largest absolute value of an element; NaN if an element is NaN.
    ///
    /// # Errors
    /// The errors of [`min`](Evaluator::min).
    pub fn abs_max(&self, a: &Tiled) -> Result<f64, Error> {
        self.extreme(a, Extreme { name: "greatest magnitude", is_least: false, is_magnitude: true })
    }

    fn extreme(&self, a: &Tiled, extreme: Extreme) -> Result<f64, Error> {
        let of_tile = |_, tile: &Tile| {
            with_float!(a.scalar_type(), T => {
                let elements = tile.elements::<T>().iter().map(|element| extreme.of(element.to_f64()));
                Ok(elements.reduce(|a, b| extreme.choose(a, b)).unwrap_or(f64::NAN))
            })
        };
        let found = self.numbers_of_tiles((extreme.name, 0), a, of_tile)?;
        let absent = has_absent_elements(a).then_some(0.0);
        let all = found.into_iter().chain(absent).reduce(|a, b| extreme.choose(a, b));
        all.ok_or_else(|| {
            Error::tensors(Kind::EmptyReduction, "a tensor without elements has no largest or smallest element")
        })
    }

    /// The exact sum of the numbers that `of_tile` returns, one for each present tile.
    fn sum_of_tiles(
        &self,
        operation: (&'static str, u64),
        a: &Tiled,
        of_tile: impl Fn(usize, &Tile) -> Result<f64, Error> + Sync,
    ) -> Result<f64, Error> {
        Ok(exact_sum(&self.numbers_of_tiles(operation, a, of_tile)?))
    }

    /// The numbers that `of_tile` returns, one for each present tile, in the order of tiles.
    fn numbers_of_tiles(
        &self,
        operation: (&'static str, u64),
        a: &Tiled,
        of_tile: impl Fn(usize, &Tile) -> Result<f64, Error> + Sync,
    ) -> Result<Vec<f64>, Error> {
        let reads = [Read::in_place(a)];
        let making = ResultStep::new(operation, a.shape(), a.scalar_type(), &reads);
        let number = |operands: &[Tiled], at: usize| Ok(of_tile(at, &operands[0].tile_at(at)?)?.to_bits());
        let numbers = numbers_of(&making, &self.workers.clone(), number)?;
        Ok(numbers.into_iter().map(f64::from_bits).collect())
    }
}

/// The number of tiles with elements, present or absent. The product does not overflow, because a `u64` can count all
/// tiles of a grid.
fn filled_tiles(a: &Tiled) -> u64 {
    a.tiling().axes().iter().map(Tiling1::filled_tiles).product()
}

/// Returns true if an element is in an absent tile.
fn has_absent_elements(a: &Tiled) -> bool {
    (a.shape().len() as u64) < filled_tiles(a)
}
