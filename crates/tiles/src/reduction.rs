//! Reductions of tiled tensors over axes. Each tile is reduced by itself, in the order of its elements, and what comes of the tiles is combined in
//! the order of the tiles. A sum does not visit absent tiles; the largest and the smallest element count their zeros.

use crate::shape::Building;
use crate::tile::{Float, TileMemory, with_float};
use crate::tiled::{Tiled, bytes_of};
use crate::weighing::Weighing;
use crate::{Evaluator, Screening, Shape, Tiling};
use cembra_tensor::{Axis, Data, Reduction, sums};
use cembra_value::Error;
use cembra_value::tensor::TensorErrorKind as Kind;
use std::cmp::Ordering;

/// A reduction over some axes, which the result does not have.
///
/// # Errors
/// Elements are not reduced so, there are too many tiles or bytes, or a lazy tile cannot be made.
pub(crate) fn reduce(run: &Evaluator, reduction: Reduction, axes: &[Axis], of: &Tiled) -> Result<Tiled, Error> {
    if matches!(reduction, Reduction::Any | Reduction::All) {
        let message = format!("{reduction:?} of a tiled tensor");
        return Err(Error::tensors(Kind::ElementType, message).hint("tiles have no truth values"));
    }
    with_float!(of.scalar_type(), T => Reducing::of(run, reduction, axes, of)?.make::<T>())
}

struct Reducing<'r> {
    run: &'r Evaluator,
    reduction: Reduction,
    axes: &'r [Axis],
    of: &'r Tiled,
    tiling: Tiling,
    /// The number of the result's tile that each present tile is reduced to, and its position; ascending.
    parts: Vec<(u64, usize)>,
    /// How many tiles with elements there are for each tile of the result.
    all: u64,
}

impl<'r> Reducing<'r> {
    fn of(run: &'r Evaluator, reduction: Reduction, axes: &'r [Axis], of: &'r Tiled) -> Result<Reducing<'r>, Error> {
        let is_reduced = |axis: &usize| axes.iter().any(|reduced| usize::from(*reduced) == *axis);
        let own = of.tiling().axes();
        let kept: Vec<usize> = (0..own.len()).filter(|axis| !is_reduced(axis)).collect();
        let tiling = Tiling::new(kept.iter().map(|axis| &own[*axis]))?;
        let mut weights = vec![0; own.len()];
        kept.iter().zip(tiling.strides()).for_each(|(axis, stride)| weights[*axis] = stride);
        let mut weighing = Weighing::new(of.tiling(), [&weights]);
        let tiles = of.shape().tiles().iter().enumerate();
        let mut parts: Vec<(u64, usize)> = tiles.map(|(at, number)| (weighing.of(*number)[0], at)).collect();
        parts.sort_unstable();
        let reduced = (0..own.len()).filter(is_reduced);
        let all = reduced.map(|axis| own[axis].filled_tiles()).fold(1_u64, u64::saturating_mul);
        Ok(Reducing { run, reduction, axes, of, tiling, parts, all })
    }

    /// The tiles that the result has: those of sums by estimates, the others all that are not known to be 0.
    fn shape<T: Float>(&self) -> Result<Shape, Error> {
        let screening = self.run.options.screening(T::SCALAR)?;
        let is_screened = self.reduction == Reduction::Sum && self.tiling.rank() > 0;
        let screening = if is_screened { screening } else { Screening { threshold: 0.0, ..screening } };
        if self.reduction == Reduction::Product && self.all == 0 {
            return Shape::dense(&self.tiling, screening.most_tiles);
        }
        let mut shape = Building::new(&self.tiling, screening);
        for group in self.parts.chunk_by(|a, b| a.0 == b.0) {
            let number = group[0].0;
            let volume = self.tiling.volume(number);
            let norm = match self.reduction {
                // A sum of K elements is a product with K ones, whose norm is the root of K over K.
                Reduction::Sum => group.iter().fold(0.0, |norm, (_, at)| {
                    let terms = self.of.tiling().volume(self.of.shape().tiles()[*at]) / volume;
                    norm + self.of.shape().norms()[*at] * terms * terms.sqrt()
                }),
                // A factor that is absent is 0.
                Reduction::Product if (group.len() as u64) < self.all => continue,
                _ => f64::INFINITY,
            };
            shape.add(number, norm)?;
        }
        Ok(shape.finish())
    }

    fn make<T: Float>(&self) -> Result<Tiled, Error> {
        let shape = self.shape::<T>()?;
        let context = self.run.context();
        context.check_result(shape.len(), bytes_of(T::SCALAR, shape.present_elements()))?;
        if context.is_plan {
            return Tiled::planned(&shape, T::SCALAR);
        }
        context.begin(self.parts.len());
        let mut tiles = Vec::with_capacity(shape.len());
        let mut groups = self.parts.chunk_by(|a, b| a.0 == b.0);
        for number in shape.tiles() {
            let extents = self.tiling.tile_extents(*number).unwrap_or_default();
            let mut memory = TileMemory::<T>::of_extents(&extents)?;
            let group = groups.find(|group| group[0].0 == *number).unwrap_or_default();
            let to = memory.elements_mut();
            if group.is_empty() {
                to.fill(T::of_f64(1.0));
            }
            for (count, (_, position)) in group.iter().enumerate() {
                let tile = self.of.tile_at(*position)?;
                context.advance(1);
                let tensor = tile.tensor();
                let made: Data = sums::reduce(self.reduction, self.axes, (tensor.data(), tensor.layout()), &|| Ok(()))?;
                let made = T::of(&made).unwrap_or_default();
                if count == 0 {
                    to.copy_from_slice(made);
                } else {
                    to.iter_mut().zip(made).for_each(|(to, made)| *to = self.combined(*to, *made));
                }
            }
            if (group.len() as u64) < self.all && matches!(self.reduction, Reduction::Max | Reduction::Min) {
                to.iter_mut().for_each(|to| *to = self.combined(*to, T::default()));
            }
            tiles.push(memory.into_tile(&extents)?);
        }
        Ok(Tiled::with_true_norms(&shape, T::SCALAR, tiles))
    }

    /// What comes of two elements.
    fn combined<T: Float>(&self, a: T, b: T) -> T {
        let wins = |wanted: Ordering| {
            let (x, y) = (a.to_f64(), b.to_f64());
            // A NaN wins.
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
