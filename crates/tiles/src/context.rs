//! What an evaluation runs with: threads, what ends it, a pool of memory, and how many bytes it may take. Which of these an evaluator has is
//! said by its options.

use crate::link::Ranks;
use crate::options::left_beside;
use crate::tasks::Workers;
use crate::tiled::pool::Pool;
use crate::tiled::tile::{Float, TileMemory};
use crate::{Journal, TileMap};
use cembra_value::Error;
use cembra_value::tensor::{TensorErrorKind as Kind, check_room, index_count};
use std::sync::Arc;

/// What an evaluation runs with.
#[derive(Clone, Debug)]
pub(crate) struct Context {
    pub(crate) workers: Workers,
    pub(crate) pool: Arc<Pool>,
    pub(crate) most_bytes: usize,
    /// The bytes that tiles and plans take besides elements.
    pub(crate) own_bytes: usize,
    pub(crate) block_bytes: usize,
    pub(crate) journal: Option<Journal>,
    /// True if no tile is made.
    pub(crate) is_plan: bool,
    /// The bytes that other values hold during the evaluation.
    pub(crate) held_bytes: usize,
    /// The ranks that compute together; none if it is this process alone.
    pub(crate) ranks: Option<Arc<Ranks>>,
    /// Which rank owns which tile of results, if that is given.
    pub(crate) map: Option<TileMap>,
}

impl Context {
    /// The ranks that share the tiles of an evaluation; none if there is one rank, or no tile is made.
    pub(crate) fn several(&self) -> Option<&Ranks> {
        self.ranks.as_deref().filter(|ranks| !self.is_plan && ranks.link().size() > 1)
    }

    /// Memory for a tile of these extents, whose elements have any values.
    pub(crate) fn memory<T: Float>(&self, extents: &[usize]) -> Result<TileMemory<T>, Error> {
        TileMemory::pooled(index_count(extents)?, &self.pool)
    }

    /// The context where tiles or plans take `more` bytes besides elements.
    ///
    /// # Errors
    /// There are too few bytes.
    pub(crate) fn counting(&self, more: usize, what: impl FnOnce() -> String) -> Result<Context, Error> {
        let most_bytes = left_beside(self.most_bytes, self.own_bytes, more, what)?;
        Ok(Context { most_bytes, own_bytes: self.own_bytes.saturating_add(more), ..self.clone() })
    }

    /// An error if a result of some tiles would take more bytes than an evaluation may, or than there are.
    pub(crate) fn check_result(&self, tiles: usize, bytes: usize) -> Result<(), Error> {
        self.check_bytes(bytes, || format!("a result of {tiles} tiles"))
    }

    /// An error if something would take more bytes than an evaluation may, or than there are.
    pub(crate) fn check_bytes(&self, bytes: usize, what: impl FnOnce() -> String) -> Result<(), Error> {
        let most = self.most_bytes;
        if bytes > most {
            let missing = bytes - most;
            let message = format!("{} takes {bytes} bytes: it may have {most}, so {missing} are missing", what());
            return Err(Error::tensors(Kind::Limit, message).hint("raise the threshold, or `most_bytes`"));
        }
        // A plan may be one for another machine.
        if self.is_plan { Ok(()) } else { check_room(bytes) }
    }

    /// A step begins. Its parts are tiles, or products of tiles.
    pub(crate) fn begin(&self, parts: usize) {
        if let Some(journal) = &self.journal {
            journal.begin(parts);
        }
    }

    /// Counts parts of the running step that are done. Threads call it once a task.
    pub(crate) fn advance(&self, parts: usize) {
        if let Some(journal) = &self.journal {
            journal.advance(parts);
        }
    }

    /// The threads that share an evaluation which takes so many bytes, and so many more for each thread. One thread always works.
    ///
    /// # Errors
    /// There are too few bytes for one thread.
    pub(crate) fn workers_within(
        &self,
        bytes: usize,
        each: usize,
        what: impl FnOnce() -> String,
    ) -> Result<Workers, Error> {
        let all = bytes.saturating_add(each);
        self.check_bytes(all, what)?;
        let more = (self.most_bytes - all).checked_div(each).unwrap_or(usize::MAX);
        let threads = self.workers.threads.min(more.saturating_add(1));
        let all = bytes.saturating_add(each.saturating_mul(threads));
        // What the pool keeps is taken, too.
        self.pool.shrink(self.most_bytes.saturating_sub(all));
        if let Some(journal) = &self.journal {
            journal.take(self.held_bytes.saturating_add(all));
        }
        Ok(Workers { threads, ..self.workers.clone() })
    }
}
