//! Reductions of tiled tensors over axes. Each tile is reduced by itself, in the order of its elements. The results of tiles are combined
//! in the order of the tiles, except that sums over all axes are added exactly ([`ExactSum`](crate::elements::exact::ExactSum)). Threads
//! work on different tiles. A sum does not visit absent tiles; a maximum or minimum includes their zeros.

use crate::distribution::each::{ResultStep, lazy_bytes, numbers_of, tiled_of, workers_for_number};
use crate::distribution::{Read, Reads};
use crate::elements::exact::exact_sum;
use crate::shape::sparse::ShapeBuilder;
use crate::shape::weighing::WeightedIndex;
use crate::tasks::Workers;
use crate::tiled::Tiled;
use crate::tiled::tile::{Float, with_float};
use crate::{Evaluator, Screening, Shape, Tiling};
use cembra_tensor::{Axis, Data, Reduction, sums};
use cembra_value::Error;
use cembra_value::tensor::TensorErrorKind as Kind;
use std::cmp::Ordering;

/// Reduces `axes` of the tensor `of`; the result does not have these axes.
///
/// # Errors
/// If the reduction is of truth values, there are too many tiles, the memory limit does not suffice, or a lazy tile cannot be computed.
pub(crate) fn reduce(run: &Evaluator, reduction: Reduction, axes: &[Axis], of: &Tiled) -> Result<Tiled, Error> {
    if matches!(reduction, Reduction::Any | Reduction::All) {
        let message = format!("a tiled tensor cannot be reduced by {reduction:?}");
        return Err(Error::tensors(Kind::ElementType, message).hint("use floats: tiles cannot have truth values"));
    }
    with_float!(of.scalar_type(), T => ReductionRun::of(run, reduction, axes, of)?.make::<T>())
}

/// A reduction that is being computed: the operation, the axes that it removes, and the tiles that each result tile is computed from.
struct ReductionRun<'r> {
    run: &'r Evaluator,
    reduction: Reduction,
    axes: &'r [Axis],
    of: &'r Tiled,
    tiling: Tiling,
    /// For each present tile of the operand, the number of the result tile that it is reduced to, and the position of
    /// the operand tile among the operand's present tiles. The list is sorted.
    parts: Vec<(u64, usize)>,
    /// The number of the operand's tiles with elements, present or absent, that each result tile is computed from.
    all: u64,
}

impl<'r> ReductionRun<'r> {
    fn of(
        run: &'r Evaluator,
        reduction: Reduction,
        axes: &'r [Axis],
        of: &'r Tiled,
    ) -> Result<ReductionRun<'r>, Error> {
        let is_reduced = |axis: &usize| axes.iter().any(|reduced| usize::from(*reduced) == *axis);
        let own = of.tiling().axes();
        let kept: Vec<usize> = (0..own.len()).filter(|axis| !is_reduced(axis)).collect();
        let tiling = Tiling::new(kept.iter().map(|axis| &own[*axis]))?;
        let mut weights = vec![0; own.len()];
        kept.iter().zip(tiling.strides()).for_each(|(axis, stride)| weights[*axis] = stride);
        let mut weighing = WeightedIndex::new(of.tiling(), [&weights]);
        let tiles = of.shape().tiles().iter().enumerate();
        let mut parts: Vec<(u64, usize)> = tiles.map(|(at, number)| (weighing.of(*number)[0], at)).collect();
        parts.sort_unstable();
        let reduced = (0..own.len()).filter(is_reduced);
        let all = reduced.map(|axis| own[axis].filled_tiles()).fold(1_u64, u64::saturating_mul);
        Ok(ReductionRun { run, reduction, axes, of, tiling, parts, all })
    }

    /// The name of the reduction, which ranks compare before they compute it together.
    fn name(&self) -> &'static str {
        match self.reduction {
            Reduction::Sum => "sum",
            Reduction::Product => "product of elements",
            Reduction::Max => "largest",
            Reduction::Min => "smallest",
            _ => "reduction",
        }
    }

    /// The tiles of the result. A sum over some of the axes has the tiles whose estimated norms are not below the
    /// threshold. Other reductions have all tiles that are not known to be 0.
    fn shape<T: Float>(&self) -> Result<Shape, Error> {
        let screening = self.run.options().screening(T::SCALAR)?;
        let is_screened = self.reduction == Reduction::Sum && self.tiling.rank() > 0;
        let screening = if is_screened { screening } else { Screening { threshold: 0.0, ..screening } };
        if self.reduction == Reduction::Product && self.all == 0 {
            return Shape::dense(&self.tiling, screening.most_tiles);
        }
        let mut shape = ShapeBuilder::new(&self.tiling, screening);
        for group in self.parts.chunk_by(|a, b| a.0 == b.0) {
            let number = group[0].0;
            let volume = self.tiling.volume(number);
            let norm = match self.reduction {
                // A sum of K elements is a product with K ones, whose norm is the root of K over K.
                Reduction::Sum => group.iter().fold(0.0, |norm, (_, at)| {
                    let terms = self.of.tiling().volume(self.of.shape().tiles()[*at]) / volume;
                    norm + self.of.shape().norms()[*at] * terms * terms.sqrt()
                }),
                // An absent tile is 0, and so is a product with it.
                Reduction::Product if (group.len() as u64) < self.all => continue,
                _ => f64::INFINITY,
            };
            shape.add(number, norm)?;
        }
        Ok(shape.finish())
    }

    fn make<T: Float>(&self) -> Result<Tiled, Error> {
        let shape = self.shape::<T>()?;
        let workers = self.run.workers.clone();
        if self.tiling.rank() == 0 {
            return self.number::<T>(&shape, &workers);
        }
        let parts = |at: usize| {
            let number = shape.tiles()[at];
            let start = self.parts.partition_point(|part| part.0 < number);
            let count = self.parts[start..].partition_point(|part| part.0 == number);
            &self.parts[start..start + count]
        };
        let positions = |at: usize| -> Reads { parts(at).iter().map(|(_, position)| *position).collect() };
        let reads = [Read { of: self.of, positions: &positions }];
        let making = ResultStep::new((self.name(), 0), &shape, T::SCALAR, &reads);
        tiled_of(&making, &workers, |operands, at| {
            let extents = self.tiling.tile_extents(shape.tiles()[at]).unwrap_or_default();
            let mut memory = workers.memory::<T>(&extents)?;
            let to = memory.elements_mut();
            let (parts, count) = (parts(at), parts(at).len());
            for (at, (_, position)) in parts.iter().enumerate() {
                let made = self.of_tile::<T>(&operands[0], *position)?;
                match at {
                    0 => to.copy_from_slice(&made),
                    _ => to.iter_mut().zip(made).for_each(|(to, made)| *to = self.combined(*to, made)),
                }
            }
            if let Some(absent) = self.of_absent_tiles(count as u64) {
                match count {
                    0 => to.fill(absent),
                    _ => to.iter_mut().for_each(|to| *to = self.combined(*to, absent)),
                }
            }
            memory.into_tile(&extents)
        })
    }

    /// Reduces over all axes, to a tensor of one number. Each thread and rank reduces some of the tiles.
    fn number<T: Float>(&self, shape: &Shape, workers: &Workers) -> Result<Tiled, Error> {
        if workers.is_plan {
            workers_for_number(workers, 0, lazy_bytes(self.of))?;
            return Tiled::planned(shape, T::SCALAR);
        }
        let reads = [Read::in_place(self.of)];
        let making = ResultStep::new((self.name(), 0), self.of.shape(), T::SCALAR, &reads);
        // A present tile has elements, so it is reduced to a number.
        let numbers = numbers_of(&making, workers, |operands, at| {
            Ok(self.of_tile::<T>(&operands[0], at)?.first().map_or(0, |number| number.bits()))
        })?;
        let numbers: Vec<T> = numbers.into_iter().map(T::from_bits).collect();
        let absent = self.of_absent_tiles(numbers.len() as u64);
        let number = match self.reduction {
            Reduction::Sum => exact_sum(&numbers),
            _ => numbers.into_iter().chain(absent).reduce(|a, b| self.combined(a, b)).unwrap_or_default(),
        };
        let tile = |_: &u64| {
            let mut memory = workers.memory::<T>(&[])?;
            memory.elements_mut().fill(number);
            memory.into_tile(&[])
        };
        let tiles = shape.tiles().iter().map(tile).collect::<Result<_, Error>>()?;
        Ok(Tiled::with_true_norms(shape, T::SCALAR, tiles))
    }

    /// Reduces the tile at `position` of the tensor `of`, and returns the elements of the result.
    fn of_tile<T: Float>(&self, of: &Tiled, position: usize) -> Result<Vec<T>, Error> {
        let tile = of.tile_at(position)?;
        let tensor = tile.tensor();
        let made: Data = sums::reduce(self.reduction, self.axes, tensor.data(), tensor.layout(), &|| Ok(()))?;
        Ok(T::of(&made).unwrap_or_default().to_vec())
    }

    /// The number that absent operand tiles contribute to each element of a result tile. `present` is the number of
    /// present operand tiles that the result tile is computed from. `None` if they contribute nothing: in a sum they
    /// are zeros.
    fn of_absent_tiles<T: Float>(&self, present: u64) -> Option<T> {
        match self.reduction {
            // The product of no elements.
            Reduction::Product if self.all == 0 => Some(T::of_f64(1.0)),
            Reduction::Max | Reduction::Min if present < self.all => Some(T::default()),
            _ => None,
        }
    }

    /// Combines two elements by the reduction: their sum, their product, or the larger or smaller one.
    fn combined<T: Float>(&self, a: T, b: T) -> T {
        let wins = |wanted: Ordering| {
            let (x, y) = (a.to_f64(), b.to_f64());
            // A NaN is chosen before any number.
            let is_first = x.is_nan() || (!y.is_nan() && x.total_cmp(&y) != wanted.reverse());
            if is_first { a } else { b }
        };
        match self.reduction {
            Reduction::Product => a * b,
            Reduction::Max => wins(Ordering::Greater),
            Reduction::Min => wins(Ordering::Less),
            _ => a + b,
        }
    }
}
