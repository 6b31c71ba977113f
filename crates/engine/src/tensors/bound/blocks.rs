//! Reductions of many elements to few results, divided among several threads. Each thread combines some blocks of elements; then the results of all
//! blocks are joined in the order of the blocks, as on one thread.

use super::map::no_room;
use super::memory::{Memory, Sources};
use super::shared_reductions::{Block, LongRuns, SharedLoop, SharedReductions, finish, fold_parts, folds};
use crate::rows::threads::on_threads;
use crate::tensors::product::ProductCounters;
use cembra_tensor::DataMut;
use cembra_value::Error;
use std::ops::Range;

/// The partial results of some blocks. `None` if elements cannot be added while they are computed; they must then be
/// computed to memory first.
type Blocks = Result<Option<Vec<Block>>, Error>;

impl SharedReductions {
    /// The most blocks that are divided among threads, because the partial result of each stays in memory until all are joined. A tensor in memory
    /// has fewer blocks. A view may have any number of them; beyond this limit one thread reduces it, and keeps only one partial result.
    pub(super) const MOST_BLOCKS: usize = 1 << 18;

    /// The number of blocks that can be divided among threads.
    pub(super) fn blocks(&self) -> usize {
        match &self.way {
            SharedLoop::LongRuns(runs) => runs.kept.count.saturating_mul(runs.blocks()),
            _ => 1,
        }
    }

    /// Combines the elements of the blocks `which`.
    fn some_blocks(&mut self, which: Range<usize>, memory: &Memory<'_>) -> Blocks {
        let SharedReductions { members, way: SharedLoop::LongRuns(runs), .. } = self else { return Err(no_room()) };
        let (mut made, mut succeeds) = (Vec::new(), true);
        let of_each = runs.blocks();
        let LongRuns { length, kept, parts, added, block } = runs;
        let size = block.unwrap_or(usize::MAX);
        for at in which {
            let (result, first) = (at / of_each, at % of_each * size);
            kept.run_some(result..result + 1, |(), kept, _| {
                let mut folds = folds(members, added, *length);
                let which = first..first + size;
                succeeds &= fold_parts(members, parts, which, &mut folds, memory, |part| [kept, part].concat())?;
                made.push(folds);
                Ok(())
            })?;
        }
        Ok(succeeds.then_some(made))
    }

    /// Joins the partial results of blocks, and writes the results to `to`.
    fn join(&self, blocks: Vec<Block>, to: &mut [DataMut<'_>]) -> Result<(), Error> {
        let SharedLoop::LongRuns(runs) = &self.way else { return Err(no_room()) };
        let (mut blocks, of_each) = (blocks.into_iter(), runs.blocks());
        for result in 0..runs.kept.count {
            let mut all = folds(&self.members, &runs.added, runs.length);
            for block in blocks.by_ref().take(of_each) {
                for (all, block) in all.iter_mut().zip(block) {
                    all.append(block)?;
                }
            }
            finish(all, to, result, 1)?;
        }
        Ok(())
    }

    /// Combines all elements, and writes the result of each reduction to `to`. All workers process equal numbers of blocks.
    pub(super) fn run_blocks(
        workers: &mut [SharedReductions],
        sources: &Sources<'_>,
        to: &mut [DataMut<'_>],
    ) -> Result<(), Error> {
        let mut made = some_by_each(workers, sources)?;
        if made.is_none() {
            for worker in &mut *workers {
                *worker = worker.otherwise(sources.host)?;
            }
            made = some_by_each(workers, sources)?;
        }
        workers[0].join(made.ok_or_else(no_room)?, to)
    }
}

impl LongRuns {
    /// The number of blocks of elements per result.
    fn blocks(&self) -> usize {
        self.block.map_or(1, |parts| self.parts.count.div_ceil(parts))
    }
}

/// The partial results of all blocks, or the error of the first block that fails.
fn some_by_each(workers: &mut [SharedReductions], sources: &Sources<'_>) -> Blocks {
    let count = workers[0].blocks();
    let each = count.div_ceil(workers.len());
    let done = on_threads(workers.iter_mut().enumerate(), |(at, worker)| {
        let memory = Memory { sources, locals: &mut [], counters: &mut ProductCounters::default() };
        worker.some_blocks((at * each).min(count)..((at + 1) * each).min(count), &memory)
    });
    let mut all = Vec::with_capacity(count);
    for result in done {
        let Some(blocks) = result? else { return Ok(None) };
        all.extend(blocks);
    }
    Ok(Some(all))
}
