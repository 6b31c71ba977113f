//! A step of an evaluation on all ranks. The ranks compare their plans and exchange tiles, and each rank computes its
//! part. Then the ranks exchange numbers about their parts, such as the norms of tiles. If one rank fails, all ranks
//! get the same error.

use super::exchange::{Exchange, Parcel, Traffic};
use crate::error::bad_message;
use crate::link::{FOLLOWS, Failure, Ranks};
use crate::tasks::Workers;
use crate::{Shape, TileMap, Tiled};
use cembra_value::Error;
use smallvec::SmallVec;
use std::hash::{DefaultHasher, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};

/// The operand tiles from which one result tile is computed, as positions in the list of the operand's present tiles.
pub(crate) type Reads = SmallVec<[usize; 2]>;

/// An operand of a step, and which of its tiles the step reads: `positions` maps the position of a result tile to the positions of the
/// operand tiles that it is computed from.
pub(crate) struct Read<'s> {
    pub(crate) of: &'s Tiled,
    pub(crate) positions: &'s (dyn Fn(usize) -> Reads + Sync + 's),
}

impl<'s> Read<'s> {
    /// Makes an operand from which each result tile reads one tile: the operand tile at the same position.
    pub(crate) fn in_place(of: &'s Tiled) -> Read<'s> {
        Read { of, positions: &|at| Reads::from_elem(at, 1) }
    }
}

/// The result of this rank's part of a step, and for each rank the numbers that it shares about its part, such as
/// norms.
pub(crate) type Shared<R> = (R, Vec<Vec<u64>>);

/// The plan that one rank makes of a step.
pub(crate) struct PlannedStep<P> {
    /// The hash of the parts of the plan that must be equal on all ranks.
    pub(crate) hash: u64,
    pub(crate) traffic: Traffic,
    /// The parts of the plan that are specific to this rank, besides the tiles that it sends and receives.
    pub(crate) own: P,
}

/// The task number of a failure that belongs to no task, such as missing memory or a cancelled token.
const ANY_TASK: u64 = u64::MAX - 1;

impl From<Error> for Failure {
    /// Makes a failure that belongs to no task.
    fn from(error: Error) -> Failure {
        Failure { task: ANY_TASK, error }
    }
}

/// Returns `result`. If `result` is an error, records the number `task` in `lowest`, the lowest number of a failed task
/// so far.
pub(crate) fn failed_at<R>(lowest: &AtomicU64, task: usize, result: Result<R, Error>) -> Result<R, Error> {
    result.inspect_err(|_| {
        lowest.fetch_min(task as u64, Ordering::Relaxed);
    })
}

/// Runs a step on all ranks. `part` computes this rank's part, and records the number of a task that failed.
///
/// # Errors
/// If a rank failed: the error of the task with the lowest number, among the failures that happened before the ranks
/// learned of the first one. Or if plans differ, or the link failed. The error is the same on all ranks.
pub(crate) fn shared_out<P, R>(
    workers: &Workers,
    ranks: &Ranks,
    operands: &[&Tiled],
    plan: Result<PlannedStep<P>, Error>,
    part: impl FnOnce(P, &mut Exchange<'_>, &AtomicU64) -> Result<(R, Vec<u64>), Error>,
) -> Result<Shared<R>, Error> {
    let (hash, planned) = match workers.check().and(plan) {
        Ok(PlannedStep { hash, traffic, own }) => (Ok(hash), Some((traffic, own))),
        Err(error) => (Err(Failure::from(error)), None),
    };
    let id = ranks.begin_step(hash)?;
    let Some((traffic, own)) = planned else { return Err(bad_message("a rank continued after it had failed")) };
    let failure = |task: u64, error: Error| {
        let task = if ranks.is_poisoned() { FOLLOWS } else { task.min(ANY_TASK) };
        Failure { task, error }
    };
    let lowest = AtomicU64::new(ANY_TASK);
    let exchange = Exchange::new(ranks, id, operands, traffic, workers.pool.clone(), workers.token.as_ref())?;
    let (made, settling) = exchange
        .run(|exchange| part(own, exchange, &lowest).map_err(|error| failure(lowest.load(Ordering::Relaxed), error)));
    let (made, own) = match made {
        Ok((made, numbers)) => {
            (Some(made), Ok(numbers.iter().flat_map(|number| number.to_le_bytes()).collect::<Vec<u8>>()))
        }
        Err(failure) => (None, Err(failure)),
    };
    let all = settling.end(own)?;
    let words = |bytes: &Vec<u8>| bytes.as_chunks().0.iter().map(|bytes| u64::from_le_bytes(*bytes)).collect();
    let numbers: Vec<Vec<u64>> = all.iter().map(words).collect();
    let made = made.ok_or_else(|| bad_message("a rank continued after it had failed"))?;
    Ok((made, numbers))
}

/// Chooses the owner of each tile of a result. Without a tile map, a tile gets the owner of the first operand tile that it is computed from. If no
/// such operand tile has an owner, a near-square grid of all ranks gives the owner.
///
/// # Errors
/// If the tile map names ranks that do not exist.
pub(crate) fn owners_of(
    workers: &Workers,
    ranks: &Ranks,
    shape: &Shape,
    reads: &[Read<'_>],
) -> Result<Vec<u32>, Error> {
    let size = ranks.link().size();
    if let Some(map) = &workers.map {
        return map.owners(shape, size);
    }
    let mut owners = TileMap::square(size).owners(shape, size)?;
    for (at, owner) in owners.iter_mut().enumerate() {
        let first = |read: &Read<'_>| {
            let owners = read.of.spread()?.owners();
            (read.positions)(at).first().map(|position| owners[*position])
        };
        if let Some(known) = reads.iter().find_map(first) {
            *owner = known;
        }
    }
    Ok(owners)
}

/// Returns the tiles that this rank sends and receives in a step. `owners` are the owners of the result's tiles, and `reads` gives the operand tiles
/// from which each result tile is computed.
pub(crate) fn traffic_of(ranks: &Ranks, owners: &[u32], reads: &[Read<'_>]) -> Traffic {
    let operands: SmallVec<[&Tiled; 4]> = reads.iter().map(|read| read.of).collect();
    let parcels = (0_u32..).zip(reads).filter(|(_, read)| read.of.is_distributed()).flat_map(|(operand, read)| {
        owners.iter().enumerate().flat_map(move |(at, reader)| {
            let parcel = move |position| Parcel { key: 0, operand, position: position as u32, peer: *reader };
            (read.positions)(at).into_iter().map(parcel)
        })
    });
    Traffic::of(ranks.link().rank() as u32, &operands, parcels)
}

/// Returns the hash of a step's plan: of the operation, the result tiles and their owners, and the tiles and norms of the operands.
pub(crate) fn hash_of((name, number): (&str, u64), shape: &Shape, owners: &[u32], operands: &[&Tiled]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(name.as_bytes());
    hasher.write_u64(number);
    shape.tiles().iter().for_each(|tile| hasher.write_u64(*tile));
    owners.iter().for_each(|owner| hasher.write_u32(*owner));
    for (tile, norm) in operands.iter().flat_map(|operand| operand.shape().iter()) {
        hasher.write_u64(tile);
        hasher.write_u64(norm.to_bits());
    }
    hasher.finish()
}

/// Puts the numbers that all ranks shared into the order of the result's tiles, whose owners are `owners`.
pub(crate) fn in_order(owners: &[u32], by_rank: &[Vec<u64>]) -> Result<Vec<u64>, Error> {
    let mut parts: Vec<_> = by_rank.iter().map(|part| part.iter()).collect();
    let next = |owner: &u32| parts.get_mut(*owner as usize)?.next().copied();
    let found: Option<Vec<u64>> = owners.iter().map(next).collect();
    found.ok_or_else(|| bad_message("a rank computed fewer tiles than it owns"))
}
