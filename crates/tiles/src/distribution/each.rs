//! Runs steps in which each result tile, or one number per tile, is computed independently of the others. A task
//! computes neighbouring tiles of about `block_bytes` bytes. If ranks share the step, each rank first receives the
//! operand tiles that it needs, and then computes the tiles that it owns.

use crate::distribution::{PlannedStep, Read, failed_at, hash_of, in_order, owners_of, shared_out, traffic_of};
use crate::link::Ranks;
use crate::tasks::{Watch, Workers};
use crate::tiled::bytes_of;
use crate::tiled::spread::LocalTiles;
use crate::tiled::tile::{TILE_BYTES, Tile};
use crate::{Shape, Tiled};
use cembra_runtime::Scalar;
use cembra_value::Error;
use smallvec::SmallVec;
use std::ops::Range;

/// The most tiles that one task computes.
const MOST_TOGETHER: usize = 1024;

/// The operands of one step of an evaluation, with all operand tiles that this rank reads.
pub(crate) type Operands = SmallVec<[Tiled; 2]>;

/// A step of an evaluation that computes the tiles of a result, each from tiles of operands. A thread uses `each_bytes` bytes in addition to the tile
/// that it computes.
pub(crate) struct ResultStep<'m> {
    /// The name of the step's operation, and a number that distinguishes operations with this name, such as the bits of a factor. Ranks compare both
    /// before the step.
    pub(crate) operation: (&'static str, u64),
    pub(crate) shape: &'m Shape,
    pub(crate) scalar: Scalar,
    pub(crate) each_bytes: usize,
    pub(crate) reads: &'m [Read<'m>],
}

impl<'m> ResultStep<'m> {
    /// Makes a step in which a thread holds one lazy tile of each operand in addition to the tile that it computes.
    pub(crate) fn new(
        operation: (&'static str, u64),
        shape: &'m Shape,
        scalar: Scalar,
        reads: &'m [Read<'m>],
    ) -> ResultStep<'m> {
        let each_bytes = reads.iter().map(|read| lazy_bytes(read.of)).fold(0, usize::saturating_add);
        ResultStep { operation, shape, scalar, each_bytes, reads }
    }

    /// The operands of the step.
    fn operands(&self) -> SmallVec<[&Tiled; 2]> {
        self.reads.iter().map(|read| read.of).collect()
    }
}

/// The tiles of a step's result that this rank (one of the processes or threads that share the step) computes: all
/// tiles, or those that it owns.
pub(crate) struct OwnedTiles<'p> {
    pub(crate) shape: &'p Shape,
    pub(crate) scalar: Scalar,
    /// The positions of this rank's tiles among the present tiles of the result; `None` if the rank computes all tiles.
    pub(crate) positions: Option<&'p [u32]>,
}

impl OwnedTiles<'_> {
    /// The number of tiles that this rank computes.
    fn len(&self) -> usize {
        self.positions.map_or(self.shape.len(), <[u32]>::len)
    }

    /// Returns the position of this rank's tile number `at` in the list of the result's present tiles.
    pub(crate) fn position(&self, at: usize) -> usize {
        self.positions.map_or(at, |positions| positions[at] as usize)
    }

    /// The size in bytes of this rank's tile number `at`.
    fn bytes(&self, at: usize) -> usize {
        bytes_of(self.scalar, self.shape.tiling().volume(self.shape.tiles()[self.position(at)]))
    }

    /// Splits this rank's tiles into ranges, one for each task, and returns the size in bytes of each. The ranges do
    /// not depend on the number of threads.
    fn tasks(&self, workers: &Workers) -> Vec<(Range<usize>, usize)> {
        let (mut parts, count) = (Vec::new(), self.len());
        let (mut start, mut bytes) = (0, 0_usize);
        for at in 0..count {
            bytes = bytes.saturating_add(self.bytes(at));
            if bytes >= workers.options.block_bytes || at + 1 - start >= MOST_TOGETHER || at + 1 == count {
                parts.push((start..at + 1, bytes));
                (start, bytes) = (at + 1, 0);
            }
        }
        parts
    }

    /// Runs `of_part` on ranges of this rank's tiles, each in a task, and returns the results in the order of the
    /// ranges. Meanwhile the calling thread calls `watch`, if it is given.
    ///
    /// # Errors
    /// The error of the first range that fails, or of `watch`; or the evaluation was cancelled.
    pub(crate) fn run<R: Send>(
        &self,
        workers: &Workers,
        of_part: impl Fn(Range<usize>) -> Result<R, Error> + Sync,
        watch: Option<Watch<'_>>,
    ) -> Result<Vec<R>, Error> {
        workers.begin(self.len());
        workers.watched(
            self.tasks(workers),
            |(_, bytes)| *bytes as u64,
            |(part, _)| {
                let count = part.len();
                let made = of_part(part)?;
                workers.advance(count);
                Ok(made)
            },
            watch,
        )
    }
}

/// The number of bytes that a thread holds while it uses one tile of `tiled`: the size of the largest tile if the tensor is lazy, 0 if it is
/// stored.
pub(crate) fn lazy_bytes(tiled: &Tiled) -> usize {
    let (shape, scalar) = (tiled.shape(), tiled.scalar_type());
    let bytes = |tile: &u64| bytes_of(scalar, shape.tiling().volume(*tile));
    let all = if tiled.is_lazy() { shape.tiles() } else { &[] };
    all.iter().map(bytes).max().unwrap_or(0)
}

/// Returns the workers (threads, memory and its limit) for computing the tiles of a result. A thread uses `each_bytes`
/// bytes in addition to the tile that it computes.
///
/// # Errors
/// If the memory limit does not suffice.
pub(crate) fn workers_for(
    shape: &Shape,
    scalar: Scalar,
    workers: &Workers,
    each_bytes: usize,
) -> Result<Workers, Error> {
    let workers =
        workers.counting(shape.len().saturating_mul(TILE_BYTES), || format!("a result of {} tiles", shape.len()))?;
    let bytes = bytes_of(scalar, shape.present_elements());
    workers.check_result(shape.len(), bytes)?;
    let what = || format!("a result of {} tiles, computed with {each_bytes} bytes of operands at a time,", shape.len());
    workers.within_bytes(bytes, each_bytes, what)
}

/// Computes the result tensor of a step. `tile` computes a tile from the operands and the position of the tile; the tensor's norms are computed from
/// the elements. If the evaluation is only planned, no tile is computed.
///
/// # Errors
/// If the memory limit does not suffice, `tile` fails, or the evaluation was cancelled.
pub(crate) fn tiled_of(
    making: &ResultStep<'_>,
    workers: &Workers,
    tile: impl Fn(&[Tiled], usize) -> Result<Tile, Error> + Sync,
) -> Result<Tiled, Error> {
    normed_of(making, workers, |operands, at| {
        let tile = tile(operands, at)?;
        let norm = tile.norm();
        Ok((tile, norm))
    })
}

/// Computes the result tensor of a step. `tile` computes a tile and its norm from the operands and the position of the tile. If the evaluation is
/// only planned, no tile is computed.
///
/// # Errors
/// The errors of [`tiled_of`].
pub(crate) fn normed_of(
    making: &ResultStep<'_>,
    workers: &Workers,
    tile: impl Fn(&[Tiled], usize) -> Result<(Tile, f64), Error> + Sync,
) -> Result<Tiled, Error> {
    let ResultStep { shape, scalar, each_bytes, reads, .. } = *making;
    // Each rank computes a number by itself if every rank has the operands.
    let is_number = shape.tiling().rank() == 0 && reads.iter().all(|read| !read.of.is_distributed());
    if let Some(ranks) = workers.several().filter(|_| !is_number) {
        return spread_of(making, workers, ranks, &tile);
    }
    let workers = workers_for(shape, scalar, workers, each_bytes)?;
    if workers.is_plan {
        return Tiled::planned(shape, scalar);
    }
    let operands: Operands = making.operands().into_iter().cloned().collect();
    let of_part =
        |part: Range<usize>| -> Result<Vec<(Tile, f64)>, Error> { part.map(|at| tile(&operands, at)).collect() };
    let made = OwnedTiles { shape, scalar, positions: None }.run(&workers, of_part, None)?;
    let (tiles, norms) = made.into_iter().flatten().unzip();
    Ok(Tiled::stored(shape.with_norms(norms), scalar, tiles))
}

/// A function that makes a tile and its norm from the operands, given the tile's position among the result's present tiles.
type Normed<'f> = &'f (dyn Fn(&[Tiled], usize) -> Result<(Tile, f64), Error> + Sync);

/// Computes the result tensor of a step on several ranks; each rank computes the tiles that it owns.
fn spread_of(making: &ResultStep<'_>, workers: &Workers, ranks: &Ranks, tile: Normed<'_>) -> Result<Tiled, Error> {
    let ResultStep { operation, shape, scalar, each_bytes, reads } = *making;
    let operands = making.operands();
    let planned = || {
        let owners = owners_of(workers, ranks, shape, reads)?;
        let own = own_positions(&owners, ranks);
        let hash = hash_of(operation, shape, &owners, &operands);
        let traffic = traffic_of(ranks, &owners, reads);
        let of_result: f64 = own.iter().map(|at| shape.tiling().volume(shape.tiles()[*at as usize])).sum();
        let bytes = bytes_of(scalar, of_result).saturating_add(traffic.incoming_bytes(&operands));
        let workers = workers
            .counting(shape.len().saturating_mul(TILE_BYTES), || format!("a result of {} tiles", shape.len()))?;
        let what = || format!("a result of {} tiles, together with their operands from other ranks,", own.len());
        let workers = workers.within_bytes(bytes, each_bytes, what)?;
        Ok(PlannedStep { hash, traffic, own: (owners, own, workers) })
    };
    let ((owners, made), norms) =
        shared_out(workers, ranks, &operands, planned(), |(owners, own, workers), exchange, lowest| {
            let here = exchange.all()?;
            let parts = OwnedTiles { shape, scalar, positions: Some(&own) };
            let of_part = |part: Range<usize>| -> Result<Vec<(Tile, f64)>, Error> {
                let one = |at| failed_at(lowest, parts.position(at), tile(&here, parts.position(at)));
                part.map(one).collect()
            };
            let made = parts.run(&workers, of_part, Some(&mut || exchange.watch()))?;
            let (tiles, norms): (Vec<Tile>, Vec<u64>) =
                made.into_iter().flatten().map(|(tile, norm)| (tile, norm.to_bits())).unzip();
            Ok(((owners, tiles), norms))
        })?;
    spread_with(shape, scalar, ranks, owners, made, &norms)
}

/// Returns the positions of the tiles that this rank owns. `owners` has the rank of each tile.
pub(crate) fn own_positions(owners: &[u32], ranks: &Ranks) -> Vec<u32> {
    let rank = ranks.link().rank() as u32;
    (0..).zip(owners).filter(|(_, owner)| **owner == rank).map(|(at, _)| at).collect()
}

/// Builds a distributed tensor from the tiles that this rank owns and has computed, and from the norms of the tiles of all ranks.
///
/// # Errors
/// If a rank computed fewer tiles than it owns.
pub(crate) fn spread_with(
    shape: &Shape,
    scalar: Scalar,
    ranks: &Ranks,
    owners: Vec<u32>,
    tiles: Vec<Tile>,
    norms: &[Vec<u64>],
) -> Result<Tiled, Error> {
    let norms = in_order(&owners, norms)?.into_iter().map(f64::from_bits).collect();
    let (rank, mut tiles) = (ranks.link().rank() as u32, tiles.into_iter());
    let here = owners.iter().map(|owner| if *owner == rank { tiles.next() } else { None }).collect();
    Ok(Tiled::of_spread(shape.with_norms(norms), scalar, LocalTiles::new(owners, here)))
}

/// Returns the workers (threads, memory and its limit) for computing one number per tile. Each thread uses `each_bytes`
/// bytes, and tiles that arrive from other ranks take `bytes` bytes.
///
/// # Errors
/// If the memory limit does not suffice.
pub(crate) fn workers_for_number(workers: &Workers, bytes: usize, each_bytes: usize) -> Result<Workers, Error> {
    workers.within_bytes(bytes, each_bytes, || "a number per tile, computed from one lazy tile at a time,".to_owned())
}

/// Computes a number for each tile of the step's shape, and returns the bits of all numbers on all ranks. A thread uses the step's `each_bytes`
/// bytes.
///
/// # Errors
/// If the memory limit does not suffice, `number` fails, or the evaluation was cancelled.
pub(crate) fn numbers_of(
    making: &ResultStep<'_>,
    workers: &Workers,
    number: impl Fn(&[Tiled], usize) -> Result<u64, Error> + Sync,
) -> Result<Vec<u64>, Error> {
    let ResultStep { operation, shape, scalar, each_bytes, reads } = *making;
    let operands = making.operands();
    let Some(ranks) = workers.several() else {
        let workers = workers_for_number(workers, 0, each_bytes)?;
        let here: Operands = operands.into_iter().cloned().collect();
        let of_part = |part: Range<usize>| -> Result<Vec<u64>, Error> { part.map(|at| number(&here, at)).collect() };
        return Ok(OwnedTiles { shape, scalar, positions: None }.run(&workers, of_part, None)?.concat());
    };
    let planned = || {
        let owners = owners_of(workers, ranks, shape, reads)?;
        let hash = hash_of(operation, shape, &owners, &operands);
        let traffic = traffic_of(ranks, &owners, reads);
        let workers = workers_for_number(workers, traffic.incoming_bytes(&operands), each_bytes)?;
        Ok(PlannedStep { hash, traffic, own: (owners, workers) })
    };
    let (owners, numbers) = shared_out(workers, ranks, &operands, planned(), |(owners, workers), exchange, lowest| {
        let (here, own) = (exchange.all()?, own_positions(&owners, ranks));
        let parts = OwnedTiles { shape, scalar, positions: Some(&own) };
        let of_part = |part: Range<usize>| -> Result<Vec<u64>, Error> {
            part.map(|at| failed_at(lowest, parts.position(at), number(&here, parts.position(at)))).collect()
        };
        Ok((owners, parts.run(&workers, of_part, Some(&mut || exchange.watch()))?.concat()))
    })?;
    in_order(&owners, &numbers)
}
