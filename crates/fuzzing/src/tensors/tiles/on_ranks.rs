//! Runs programs on several ranks, which are threads, or processes that a launcher started. Input tensors are distributed over ranks at random,
//! computed on demand, or stored on every rank. Messages are delayed and reordered at random. All ranks must give the same values as a single rank,
//! or the same error, and must be usable after an error.

use super::operands::{LazyTensor, Promise, TiledContents};
use super::program::{Outcome, Program, failed};
use crate::config::pick;
use cembra::Error;
use cembra::tensor::TensorNodeId;
use cembra_tensor::Elements;
use cembra_tiles::link::{DelayedLink, Link, Ranks, run_ranks};
use cembra_tiles::{Evaluator, TileMap, Tiled};
use fastrand::Rng;
use std::hash::{DefaultHasher, Hasher};
use std::sync::Arc;
use std::time::Duration;

/// The time that a rank waits for others. No program takes as long.
const STALL: Duration = Duration::from_secs(60);

impl Program {
    /// Evaluates the nodes `asked` on `size` ranks, each a thread, and returns the outcome of each rank. With `link`, this process is one of the
    /// ranks, and the only outcome is that of its own rank.
    pub(super) fn on_ranks<E: Elements>(
        &self,
        size: usize,
        link: Option<&Arc<dyn Link>>,
        run: &Evaluator,
        asked: &[TensorNodeId],
        host: &(dyn Fn() -> E + Sync),
    ) -> Vec<Outcome> {
        if let Some(link) = link {
            return vec![self.on_rank(link.clone(), run, asked, &host())];
        }
        let outcomes = run_ranks(size, |link| Ok(self.on_rank(link, run, asked, &host())));
        outcomes.into_iter().map(|outcome| outcome.unwrap_or_else(|error| Err(failed(&error)))).collect()
    }

    fn on_rank(
        &self,
        link: Arc<dyn Link>,
        run: &Evaluator,
        asked: &[TensorNodeId],
        elements: &dyn Elements,
    ) -> Outcome {
        let (rank, size, seed) = (link.rank(), link.size(), self.settings.seed);
        // The random choices are the same on all ranks.
        let random = &mut Rng::with_seed(seed);
        let ranks = Ranks::new(Arc::new(DelayedLink::new(link, seed))).map_err(|error| failed(&error))?;
        let ranks = Arc::new(ranks.stall(STALL));
        let run = run.clone().ranks(ranks.clone(), []);
        let run = map(random, size).into_iter().fold(run, |run, map| run.tile_map(map));
        let mut evaluate = || {
            let mut inputs = Vec::with_capacity(self.inputs.len());
            for input in &self.inputs {
                inputs.push(match (random.u32(..4), map(random, size)) {
                    (0, _) => LazyTensor::of(input, Promise::True, None)?.tiled,
                    (1, _) | (_, None) => input.clone(),
                    (_, Some(map)) => run.distributed(input, &map)?,
                });
            }
            let made = run.evaluate(&self.graph, asked, &inputs.iter().collect::<Vec<&Tiled>>(), elements)?;
            made.iter()
                .map(|made| TiledContents::of(&run.gathered(made)?))
                .collect::<Result<Vec<TiledContents>, Error>>()
        };
        let seen = evaluate().map_err(|error| failed(&error));
        let mut hasher = DefaultHasher::new();
        hasher.write(format!("{seen:?}").as_bytes());
        // No message of a failed step may be left for the next one.
        match ranks.all_gather(hasher.finish().to_le_bytes().to_vec()) {
            Ok(all) if all.iter().all(|one| one == &all[0]) => seen,
            Ok(_) => Err((None, format!("ranks see other values: rank {rank} sees {seen:?}"), None)),
            Err(error) => Err(failed(&error)),
        }
    }
}

/// Returns a random map from tiles to ranks; `None` for the default.
fn map(random: &mut Rng, size: usize) -> Option<TileMap> {
    let number = random.usize(..size) as u64;
    pick(random, &[None, Some(0), Some(1), Some(2)]).map(|kind: u32| match kind {
        0 => TileMap::hashed(),
        1 => TileMap::square(size),
        _ => TileMap::by(move |place| ((place.number * 7 + number) % size as u64) as usize),
    })
}
