//! A tensor as a range of each axis of a larger one whose other elements are 0: what a gradient makes of a slice. Tiles that have no element of a
//! present tile are absent. A tile that is whole a tile of the result is shared with it; others are copied among zeros.

use crate::elements::recut::{begun_at, recut};
use crate::elements::views::ranges_of;
use crate::{Evaluator, Tiled, Tiling};
use cembra_tensor::Slice;
use cembra_value::Error;

/// A tensor as slices of zeros of a tiling. Tiles of the tensor may be cut at other boundaries.
///
/// # Errors
/// A slice leaves elements out between others, there are too many tiles or too few bytes, or a lazy tile cannot be made.
pub(crate) fn placed(run: &Evaluator, of: &Tiled, slices: &[Slice], tiling: &Tiling) -> Result<Tiled, Error> {
    let ranges = ranges_of(tiling, slices)?;
    let moved = begun_at(of.tiling(), ranges.iter().map(|range| range.start))?;
    recut(run, of, moved, tiling, &run.options.screening(of.scalar_type())?)
}
