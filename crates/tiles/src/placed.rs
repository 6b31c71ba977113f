//! A tensor as a range of each axis of a larger one whose other elements are 0: what a gradient makes of a slice. Tiles that have no element of a
//! present tile are absent. A tile that is whole a tile of the result is shared with it; others are copied among zeros.

use crate::blocks::{Copied, copied_norm, copied_tile, copies_to};
use crate::each::{lazy_bytes, tiled_of};
use crate::tile::with_float;
use crate::views::ranges_of;
use crate::{Evaluator, Shape, Tiled, Tiling, Tiling1};
use cembra_tensor::Slice;
use cembra_value::Error;

/// A tensor as slices of zeros of a tiling. Tiles of the tensor may be cut at other boundaries.
///
/// # Errors
/// A slice leaves elements out between others, there are too many tiles or too few bytes, or a lazy tile cannot be made.
pub(crate) fn placed(run: &Evaluator, of: &Tiled, slices: &[Slice], tiling: &Tiling) -> Result<Tiled, Error> {
    let ranges = ranges_of(tiling, slices)?;
    let moved = of.tiling().axes().iter().zip(&ranges).map(|(axis, range)| axis.rebased(range.start));
    let moved = Tiling::new(moved.collect::<Result<Vec<Tiling1>, Error>>()?)?;
    let from = Shape::of_sorted(moved, of.shape().tiles().to_vec(), of.shape().norms().to_vec());
    let scalar = of.scalar_type();
    let screening = run.options.screening(scalar)?;
    let copies = copies_to(&from, tiling, &screening)?;
    // The tile that is the same in both.
    let whole = |group: &[Copied]| match group {
        [(number, at)] if from.tiling().ranges(from.tiles()[*at as usize]) == tiling.ranges(*number) => {
            Some(*at as usize)
        }
        _ => None,
    };
    let (mut kept, mut numbers, mut norms) = (Vec::new(), Vec::new(), Vec::new());
    for group in copies.chunk_by(|a, b| a.0 == b.0) {
        let same = whole(group);
        let norm = same.map_or_else(|| copied_norm(&from, tiling, group), |at| from.norms()[at]);
        // What is shared stays, as it does in a block.
        if same.is_some() || screening.keeps(norm) {
            kept.push((group, same));
            numbers.push(group[0].0);
            norms.push(norm);
        }
    }
    screening.check_count(numbers.len() as u64)?;
    let shape = Shape::of_sorted(tiling.clone(), numbers, norms);
    let shared: Option<Vec<usize>> = kept.iter().map(|(_, same)| *same).collect();
    if let Some(shared) = shared.filter(|_| !of.is_lazy()) {
        return Ok(match of.plan() {
            Some(planned) => planned.stored(shape, scalar, true),
            None => Tiled::stored(shape, scalar, shared.iter().filter_map(|at| of.stored_at(*at).cloned()).collect()),
        });
    }
    // A lazy tile that goes to several tiles is made once.
    let is_stored = of.is_lazy() && copies.len() > from.len();
    let of = if is_stored { run.materialized(of)? } else { of.clone() };
    let run = run.beside(if is_stored { of.present_bytes() } else { 0 });
    tiled_of(&shape, scalar, &run.context(), lazy_bytes(&of), |at| match kept[at] {
        (_, Some(same)) => of.tile_at(same),
        (group, None) => with_float!(scalar, T => copied_tile::<T>(&from, tiling, group, |at| of.tile_at(at))),
    })
}
