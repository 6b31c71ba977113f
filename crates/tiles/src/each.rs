//! Tiles, each of which is made or read by itself: a task takes neighbouring ones, about as many as half of a cache holds.

use crate::context::Context;
use crate::tasks::Workers;
use crate::tile::Tile;
use crate::tiled::bytes_of;
use crate::{Shape, Tiled};
use cembra_runtime::Scalar;
use cembra_value::Error;
use std::ops::Range;

/// The most tiles of one task.
const MOST_TOGETHER: usize = 1024;

/// Positions of a shape's tiles in parts, each of which is a task, and the bytes of each part. Parts follow from the shape alone.
fn parts(shape: &Shape, scalar: Scalar, context: &Context) -> Vec<(Range<usize>, usize)> {
    let mut parts = Vec::new();
    let (mut start, mut bytes) = (0, 0_usize);
    for (at, tile) in shape.tiles().iter().enumerate() {
        bytes = bytes.saturating_add(bytes_of(scalar, shape.tiling().volume(*tile)));
        if bytes >= context.block_bytes || at + 1 - start >= MOST_TOGETHER || at + 1 == shape.len() {
            parts.push((start..at + 1, bytes));
            (start, bytes) = (at + 1, 0);
        }
    }
    parts
}

/// The bytes that a thread holds which uses one tile of a tensor at a time: those of the largest tile, if they are not stored.
pub(crate) fn lazy_bytes(tiled: &Tiled) -> usize {
    let (shape, scalar) = (tiled.shape(), tiled.scalar_type());
    let bytes = |tile: &u64| bytes_of(scalar, shape.tiling().volume(*tile));
    let all = if tiled.is_lazy() { shape.tiles() } else { &[] };
    all.iter().map(bytes).max().unwrap_or(0)
}

/// Results of parts of a shape's tiles, in their order. A function is given the positions of a part.
///
/// # Errors
/// That of the first part that fails, or the evaluation was ended.
pub(crate) fn of_parts<R: Send>(
    shape: &Shape,
    scalar: Scalar,
    context: &Context,
    workers: &Workers,
    of_part: impl Fn(Range<usize>) -> Result<R, Error> + Sync,
) -> Result<Vec<R>, Error> {
    context.begin(shape.len());
    workers.run(
        parts(shape, scalar, context),
        |(_, bytes)| *bytes as u64,
        |(part, _)| {
            let count = part.len();
            let made = of_part(part)?;
            context.advance(count);
            Ok(made)
        },
    )
}

/// The threads that make the tiles of a result, each of which takes `each_bytes` bytes besides.
///
/// # Errors
/// There are too few bytes.
pub(crate) fn workers_for(
    shape: &Shape,
    scalar: Scalar,
    context: &Context,
    each_bytes: usize,
) -> Result<Workers, Error> {
    let bytes = bytes_of(scalar, shape.present_elements());
    context.check_result(shape.len(), bytes)?;
    let what = || format!("a result of {} tiles with {each_bytes} bytes of operands at a time", shape.len());
    context.workers_within(bytes, each_bytes, what)
}

/// The tensor of a shape's tiles, each made by a function of its position, under true norms. A thread takes `each_bytes` bytes besides the
/// tile that it makes. In a plan no tile is made.
///
/// # Errors
/// There are too few bytes, the function fails, or the evaluation was ended.
pub(crate) fn tiled_of(
    shape: &Shape,
    scalar: Scalar,
    context: &Context,
    each_bytes: usize,
    tile: impl Fn(usize) -> Result<Tile, Error> + Sync,
) -> Result<Tiled, Error> {
    let workers = workers_for(shape, scalar, context, each_bytes)?;
    if context.is_plan {
        return Tiled::planned(shape, scalar);
    }
    let of_part = |part: Range<usize>| -> Result<Vec<(Tile, f64)>, Error> {
        part.map(|at| {
            let tile = tile(at)?;
            let norm = tile.norm();
            Ok((tile, norm))
        })
        .collect()
    };
    let made = of_parts(shape, scalar, context, &workers, of_part)?;
    let (tiles, norms) = made.into_iter().flatten().unzip();
    Ok(Tiled::stored(shape.with_norms(norms), scalar, tiles))
}
