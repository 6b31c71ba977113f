//! User-defined operations on tiles: a rule that decides from the norms of operands which tiles the result has, and a function that
//! computes each of them. Tiles are computed by several threads.

use crate::distribution::each::{ResultStep, tiled_of};
use crate::distribution::{Read, Reads};
use crate::error::{caught, check_same_types};
use crate::shape::algebra::check_same_tilings;
use crate::shape::sparse::ShapeBuilder;
use crate::tiled::tile::{Tile, check_float};
use crate::tiled::{TilePlace, check_tile};
use crate::{Evaluator, Tiled};
use cembra_value::Error;
use cembra_value::tensor::{Tensor, TensorErrorKind as Kind};
use smallvec::SmallVec;

/// A user-defined operation on tensors with the same tiling, which computes each result tile from the operands' tiles at the same place.
///
/// ```
/// use cembra_tiles::{Evaluator, Options, Screening, Shape, TileOperation, TilePlace, Tiled, Tiling, Tiling1};
/// use cembra_value::Error;
/// use cembra_value::tensor::Tensor;
///
/// /// A multiple of one tensor.
/// struct Scale(f64);
///
/// impl TileOperation for Scale {
///     fn norm(&self, _: &TilePlace, norms: &[Option<f64>]) -> Option<f64> {
///         Some(self.0.abs() * norms[0]?)
///     }
///
///     fn tile(&self, place: &TilePlace, tiles: &[Option<Tensor>]) -> Result<Tensor, Error> {
///         let elements = tiles[0].as_ref().map_or(Ok(Vec::new()), Tensor::to_vec::<f64>)?;
///         Tensor::new(&place.extents(), elements.into_iter().map(|element| self.0 * element).collect())
///     }
/// }
///
/// /// The larger magnitude of two elements. A tensor without a tile has zeros there, so the result has the tiles of both.
/// struct Larger;
///
/// impl TileOperation for Larger {
///     fn norm(&self, _: &TilePlace, norms: &[Option<f64>]) -> Option<f64> {
///         // Squares of the larger ones are no more than all squares.
///         Some(norms[0].unwrap_or(0.0).hypot(norms[1].unwrap_or(0.0)))
///     }
///
///     fn tile(&self, place: &TilePlace, tiles: &[Option<Tensor>]) -> Result<Tensor, Error> {
///         let (a, b) = match tiles {
///             [Some(a), Some(b)] => (a.to_vec::<f64>()?, b.to_vec::<f64>()?),
///             [Some(one), None] | [None, Some(one)] => return Ok(one.clone()),
///             _ => return Tensor::zeros(cembra_runtime::Scalar::Float64, &place.extents()),
///         };
///         let larger = a.iter().zip(&b).map(|(a, b)| if a.abs() < b.abs() { *b } else { *a });
///         Tensor::new(&place.extents(), larger.collect())
///     }
/// }
///
/// let tiling = Tiling::new([Tiling1::blocked(6, 2)?])?;
/// let of = |tiles: &[u64], element: f64| {
///     let shape = Shape::of_norms(&tiling, tiles.iter().map(|tile| (*tile, 1.0)), &Screening::threshold(0.0))?;
///     Tiled::from_fn(&shape, |_| element)
/// };
/// let run = Evaluator::new(Options::default().threshold(1e-8));
/// let (a, b) = (of(&[0, 1], 2.0)?, run.apply(&Scale(-1.5), &[&of(&[1, 2], 2.0)?])?);
/// let larger = run.apply(&Larger, &[&a, &b])?;
/// assert_eq!(larger.to_tensor()?.to_vec::<f64>()?, [2.0, 2.0, -3.0, -3.0, -3.0, -3.0]);
/// // What is estimated below the threshold is not made.
/// assert!(run.apply(&Scale(1e-9), &[&a])?.shape().is_empty());
/// # Ok::<(), cembra_value::Error>(())
/// ```
pub trait TileOperation: Sync {
    /// Returns an upper estimate for the norm of the result tile at a place of the grid; `None` if the result has no
    /// tile there. `norms` has the norms of the operands' tiles at this place, with `None` for an absent tile; at least
    /// one tile is present. A result tile whose estimate is below the threshold is not computed. By default the result
    /// has a tile where all operands have one, with an infinite estimate, so that it is always computed.
    fn norm(&self, _place: &TilePlace, norms: &[Option<f64>]) -> Option<f64> {
        norms.iter().all(Option::is_some).then_some(f64::INFINITY)
    }

    /// Computes the result tile at `place`, with the place's extents and the operands' type. An absent operand tile is `None`, and counts
    /// as zeros.
    ///
    /// # Errors
    /// If the tile cannot be computed.
    fn tile(&self, place: &TilePlace, tiles: &[Option<Tensor>]) -> Result<Tensor, Error>;
}

impl Evaluator {
    /// Applies a user-defined operation to tensors with the same tiling. The result's norms are computed from its elements. The operation
    /// is not called for places where no operand has a tile.
    ///
    /// # Errors
    /// If there are no operands; their tilings or types of elements differ; an estimated norm is negative; the operation fails or panics, or returns
    /// a tile of other extents or another type; there are too many tiles; the memory limit does not suffice; a lazy tile cannot be computed; or the
    /// evaluation was cancelled.
    pub fn apply(&self, operation: &dyn TileOperation, operands: &[&Tiled]) -> Result<Tiled, Error> {
        let Some((first, others)) = operands.split_first() else {
            return Err(Error::tensors(Kind::OperandCount, "an operation on tiles needs at least one tensor"));
        };
        let (tiling, scalar) = (first.tiling(), first.scalar_type());
        check_float(scalar)?;
        for other in others {
            check_same_tilings(tiling, other.tiling())?;
            check_same_types(scalar, other.scalar_type())?;
        }
        let mut numbers: Vec<u64> = operands.iter().flat_map(|operand| operand.shape().tiles()).copied().collect();
        numbers.sort_unstable();
        numbers.dedup();
        let mut shape = ShapeBuilder::new(tiling, self.options().screening(scalar)?);
        for number in numbers {
            let Some(place) = TilePlace::of(tiling, number) else { continue };
            let norms: SmallVec<[Option<f64>; 2]> =
                operands.iter().map(|operand| operand.shape().norm(number)).collect();
            if let Some(norm) = caught("the rule of norms", || Ok(operation.norm(&place, &norms)))? {
                shape.add(number, norm)?;
            }
        }
        let (shape, workers) = (shape.finish(), self.workers.clone());
        let own = |operand: &&Tiled| {
            let (operand, shape) = ((*operand).clone(), shape.clone());
            move |at: usize| -> Reads { operand.shape().position(shape.tiles()[at]).into_iter().collect() }
        };
        let positions: Vec<_> = operands.iter().map(own).collect();
        let reads: Vec<Read<'_>> =
            operands.iter().zip(&positions).map(|(of, positions)| Read { of, positions }).collect();
        let making = ResultStep::new(("an operation of a user", 0), &shape, scalar, &reads);
        tiled_of(&making, &workers, |operands, at| {
            let number = shape.tiles()[at];
            let place = TilePlace::known(tiling, number)?;
            let tile = |operand: &Tiled| Ok(operand.tile(number)?.map(|tile| tile.tensor().clone()));
            let tiles = operands.iter().map(tile).collect::<Result<SmallVec<[Option<Tensor>; 2]>, Error>>()?;
            let made = caught("the operation on tiles", || operation.tile(&place, &tiles))?;
            check_tile(&made, &place, scalar)?;
            Tile::of(&made)
        })
    }
}
