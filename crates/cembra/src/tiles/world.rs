//! The set of ranks that compute together: this process alone, processes that an MPI launcher started, or threads of
//! this process. A [`Run`] evaluates statements on these ranks.

use super::parts::TiledModel;
use super::run::Run;
use super::session::TiledSession;
use crate::{Error, Executor};
use cembra_tiles::link::{Link, Ranks, Sent, run_ranks};
use cembra_tiles::{Evaluator, Options};
use std::io::{self, Write};
use std::sync::Arc;
use std::time::Duration;

/// The ranks that compute together, seen from one of them. All ranks run the same program: they create the same tensors and evaluate the same texts
/// in the same order. Each rank stores and computes a part of the tiles, and all ranks get the same numbers, shapes and errors. The bits of results
/// do not depend on the number of ranks.
///
/// ```
/// use cembra::tiles::{MOST_TILES, Options, Shape, Tiled, TileMap, Tiling, Tiling1, World};
///
/// // Four ranks as threads. Processes of a launcher have their world by `World::from_environment`.
/// let results = World::on_threads(4, |world| {
///     let axis = Tiling1::blocked(100, 10)?;
///     let shape = Shape::dense(&Tiling::new([&axis, &axis])?, MOST_TILES)?;
///     let mut run = world.evaluator(Options::default());
///     // Each rank makes the tiles that it owns.
///     let a = run.evaluator().from_fn(&shape, |at| 1.0 / (1 + at[0] + at[1]) as f64)?;
///     assert_eq!(a.local_tiles().count(), 25);
///     let b = run.statement(r#"b("i,j") = a("i,k") * a("k,j")"#, [("a", &a)])?;
///     run.number("tensor.sum(b)", [("b", &b)])
/// });
/// let sums = results.into_iter().collect::<Result<Vec<f64>, _>>()?;
/// assert!(sums.iter().all(|sum| *sum == sums[0]));
/// # Ok::<(), cembra::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct World {
    ranks: Option<Arc<RankConnection>>,
    any_processor: bool,
}

/// Ranks that stay connected until the last clone of their world is dropped.
#[derive(Debug)]
struct RankConnection {
    ranks: Arc<Ranks>,
    /// True if the ranks are threads of one process. If one thread ends, the others notice and return errors, so the
    /// process need not be aborted.
    are_threads: bool,
}

impl Drop for RankConnection {
    fn drop(&mut self) {
        // Another rank may wait endlessly for this one, and MPI would wait for it in `MPI_Finalize`.
        if let (Some(error), false) = (self.ranks.broken(), self.are_threads) {
            let _unwritten = writeln!(io::stderr(), "cembra: rank {} ends the run: {error}", self.ranks.link().rank());
            self.ranks.link().abort(1);
        }
    }
}

impl World {
    /// Returns the ranks of the MPI launcher that started this process, or this process alone if there is no launcher. A program must call it once,
    /// on the thread that evaluates. MPI is loaded only if there is a launcher.
    ///
    /// # Errors
    /// If a launcher started several processes, but cembra is built without the feature `mpi`. If there is a launcher, but no MPI library that fits
    /// the launcher is found.
    pub fn from_environment() -> Result<World, Error> {
        #[cfg(feature = "mpi")]
        return cembra_mpi::from_environment()?.map_or_else(|| Ok(World::alone()), World::of_link);
        #[cfg(not(feature = "mpi"))]
        World::without_mpi(cembra_tiles::link::Launch::of(|name| std::env::var(name).ok())?)
    }

    #[cfg(not(feature = "mpi"))]
    fn without_mpi(launch: Option<cembra_tiles::link::Launch>) -> Result<World, Error> {
        match launch {
            Some(launch) if launch.rank > 0 || launch.size.is_some_and(|size| size > 1) => {
                let all = launch.size.map_or_else(|| "several".to_owned(), |size| size.to_string());
                let message = format!("this process is rank {} of {all}, but cembra is built without MPI", launch.rank);
                Err(cembra_tiles::link::no_link(message)
                    .hint("build cembra with the feature `mpi`, or start only one process"))
            }
            _ => Ok(World::alone()),
        }
    }

    /// Returns the ranks of a duplicate of the caller's MPI communicator. `communicator` is the handle of that communicator: a value of type
    /// `MPI_Comm`, as an integer.
    ///
    /// # Errors
    /// If there is no MPI library, or if the library is not initialised for calls on this thread.
    ///
    /// # Safety
    /// MPI-HANDLE (an invariant in `docs/safety.md`): `communicator` must be the handle of an intracommunicator of the loaded MPI library. The
    /// communicator must exist until this function returns.
    #[cfg(all(feature = "mpi", unix))]
    pub unsafe fn from_communicator(communicator: usize) -> Result<World, Error> {
        // SAFETY: MPI-HANDLE: the caller promises it.
        World::of_link(unsafe { cembra_mpi::from_communicator(communicator)? })
    }

    /// Returns a world that consists of this process alone.
    #[must_use]
    pub const fn alone() -> World {
        World { ranks: None, any_processor: false }
    }

    /// Returns the ranks that `link` connects. The link's rank and size are read once, here.
    ///
    /// # Errors
    /// If the link's rank is not below its size, or there are more ranks than [`MOST_LINKED_RANKS`](super::link::MOST_LINKED_RANKS).
    pub fn of_link(link: Arc<dyn Link>) -> Result<World, Error> {
        Ok(World::of_ranks(Ranks::new(link)?, false))
    }

    fn of_ranks(ranks: Ranks, are_threads: bool) -> World {
        World { ranks: Some(Arc::new(RankConnection { ranks: Arc::new(ranks), are_threads })), any_processor: false }
    }

    /// Calls `run` on `ranks` ranks, each a thread of this process, and returns the results by rank. This is for tests and teaching only: one rank
    /// with several threads is faster, because its threads share memory. If one rank panics, all ranks get an error.
    pub fn on_threads<R: Send>(ranks: usize, run: impl Fn(World) -> Result<R, Error> + Sync) -> Vec<Result<R, Error>> {
        run_ranks(ranks, |link| run(World::of_ranks(Ranks::new(link)?, true)))
    }

    /// Sets the time that a rank waits for other ranks without progress: 300 seconds by default. After that time, the state of the other ranks is
    /// unknown, and the run ends. Call this method before the world is cloned or evaluates.
    #[must_use]
    pub fn stall(self, stall: Duration) -> World {
        let again = |known: &Arc<RankConnection>| match Ranks::new(known.ranks.link().clone()) {
            Ok(ranks) => {
                Arc::new(RankConnection { ranks: Arc::new(ranks.stall(stall)), are_threads: known.are_threads })
            }
            // The sizes of this link were checked when the world was made.
            Err(_) => known.clone(),
        };
        let ranks = self.ranks.as_ref().map(again);
        World { ranks, ..self }
    }

    /// Allows evaluations even if the ranks multiply matrices with different instructions, which is an error by default. Results then agree up to
    /// rounding, and depend on which rank computes each tile.
    #[must_use]
    pub const fn any_processor(mut self) -> World {
        self.any_processor = true;
        self
    }

    /// Returns this rank's number, from 0.
    #[must_use]
    pub fn rank(&self) -> usize {
        self.ranks.as_ref().map_or(0, |joined| joined.ranks.link().rank())
    }

    /// Returns the number of ranks in this world.
    #[must_use]
    pub fn size(&self) -> usize {
        self.ranks.as_ref().map_or(1, |joined| joined.ranks.link().size())
    }

    /// Returns the connected ranks of this world; `None` if the world is this process alone.
    #[must_use]
    pub fn ranks(&self) -> Option<&Arc<Ranks>> {
        self.ranks.as_ref().map(|joined| &joined.ranks)
    }

    /// Returns the number of tiles that this rank has sent to other ranks, and their bytes.
    #[must_use]
    pub fn sent(&self) -> Sent {
        self.ranks().map(|ranks| ranks.sent()).unwrap_or_default()
    }

    /// Returns a run that evaluates texts on tiled tensors. Element expressions are compiled with the default options.
    #[must_use]
    pub fn evaluator(&self, options: Options) -> Run {
        self.evaluator_with(options, &crate::Options::default())
    }

    /// Returns a run that evaluates texts on tiled tensors. Element expressions are compiled with `compile`.
    #[must_use]
    pub fn evaluator_with(&self, options: Options, compile: &crate::Options) -> Run {
        Run::of(self.joined(options), compile)
    }

    /// Returns an evaluator with the options `options` on the ranks of this world.
    pub(super) fn joined(&self, options: Options) -> Evaluator {
        let evaluator = super::run::evaluator(options);
        let Some(ranks) = self.ranks() else { return evaluator };
        let mut facts = vec![("the version of cembra".to_owned(), cembra_native::FINGERPRINT.to_owned())];
        if !self.any_processor {
            facts.push(("how matrices are multiplied".to_owned(), super::run::instructions().to_owned()));
        }
        evaluator.ranks(ranks.clone(), facts)
    }

    /// Returns standard output on rank 0. On other ranks, returns a writer that discards what is written.
    #[must_use]
    pub fn out(&self) -> Box<dyn Write> {
        if self.rank() == 0 { Box::new(io::stdout()) } else { Box::new(io::sink()) }
    }

    /// Prints `line` to standard output on rank 0. Other ranks print nothing.
    ///
    /// # Errors
    /// If the line cannot be written to standard output.
    pub fn say(&self, line: impl std::fmt::Display) -> io::Result<()> {
        writeln!(self.out(), "{line}")
    }
}

/// Adds a method to [`Executor`] that evaluates a compiled model in tiles.
pub trait TileExecutor {
    /// Makes a session that evaluates a model with tensors in tiles, on the ranks of `world`.
    ///
    /// ```
    /// use cembra::tensor::Tensor;
    /// use cembra::tiles::{Options, TileExecutor, World};
    /// use cembra::{Model, RunOptions};
    ///
    /// let model = Model::parse("tile i = 2; input a: tiled[f64, \"i\"]; b(\"i\") = 2.0 * a(\"i\")")?;
    /// let executor = model.compile(&cembra::Options::default())?;
    /// let session = executor.tiled(&World::alone(), Options::default())?.run_options(&RunOptions::new().threads(2));
    /// let made = session.run([("a", (&Tensor::new(&[3], vec![1.0, 2.0, 3.0])?).into())])?;
    /// assert_eq!(made["b"].to_tensor()?.to_vec::<f64>()?, [2.0, 4.0, 6.0]);
    /// # Ok::<(), cembra::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the model has no tensors.
    fn tiled(&self, world: &World, options: Options) -> Result<TiledSession, Error>;
}

impl TileExecutor for Executor {
    fn tiled(&self, world: &World, options: Options) -> Result<TiledSession, Error> {
        let elements = self.tensor_evaluator()?;
        Ok(TiledSession {
            evaluator: world.joined(options).into(),
            elements,
            model: Arc::new(TiledModel::new(self.clone())),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(not(feature = "mpi"))]
    #[test]
    fn several_processes_are_an_error_and_not_several_worlds_of_one() {
        use cembra_tiles::link::{Family, Launch};
        let launch = |rank, size| Some(Launch { family: Family::OpenMpi, rank, size });
        for alone in [None, launch(0, Some(1)), launch(0, None)] {
            assert_eq!(World::without_mpi(alone).expect("one rank").size(), 1);
        }
        let error = World::without_mpi(launch(0, Some(4))).expect_err("one of four");
        assert_eq!(error.code(), "link");
        assert!(
            error.to_string().starts_with("this process is rank 0 of 4, but cembra is built without MPI"),
            "{error}"
        );
        assert!(error.to_string().contains("feature `mpi`"), "{error}");
        let error = World::without_mpi(launch(1, None)).expect_err("one of several");
        assert!(error.to_string().starts_with("this process is rank 1 of several, and"), "{error}");
    }

    #[test]
    fn a_process_alone_is_one_rank() {
        let world = World::alone();
        assert_eq!((world.rank(), world.size(), world.sent()), (0, 1, Sent::default()));
        assert!(world.ranks().is_none());
        let world = World::of_link(Arc::new(NoLink::of(1, 3))).expect("a rank below the size");
        assert_eq!(world.stall(Duration::from_secs(1)).size(), 3);
    }

    #[test]
    fn a_link_of_absurd_sizes_is_an_error() {
        for (rank, size) in
            [(0, usize::MAX), (0, (1 << 16) + 1), (0, 0), (3, 3), (usize::MAX, 2), (usize::MAX, usize::MAX)]
        {
            let error = World::of_link(Arc::new(NoLink::of(rank, size))).expect_err("an error");
            assert!(["link", "limit"].contains(&error.code()), "{rank} of {size}: {error}");
        }
        // The world asks the link for rank and size only once, so later answers, which differ, change nothing.
        let world = World::of_link(Arc::new(NoLink { changes: true, ..NoLink::of(1, 3) })).expect("the first answers");
        let run = world.evaluator(Options::default());
        assert_eq!((world.rank(), world.size(), world.rank(), world.size()), (1, 3, 1, 3));
        let axis = crate::tiles::Tiling1::blocked(8, 2).expect("tiles");
        let tiling = crate::tiles::Tiling::new([&axis, &axis]).expect("a tiling");
        let shape = crate::tiles::Shape::dense(&tiling, 16).expect("a shape");
        assert_eq!(run.evaluator().from_fn(&shape, |_| 1.0).expect_err("no message is sent").code(), "link");
    }

    /// A link that only reports its rank and size.
    #[derive(Debug)]
    struct NoLink {
        rank: usize,
        size: usize,
        /// True if every answer differs from the answer before.
        changes: bool,
        answers: std::sync::atomic::AtomicUsize,
    }

    impl NoLink {
        fn of(rank: usize, size: usize) -> NoLink {
            NoLink { rank, size, changes: false, answers: Default::default() }
        }

        fn answer(&self, number: usize) -> usize {
            let before = self.answers.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            // The first two answers are the rank and the size.
            if self.changes && before > 1 { number.wrapping_mul(before).wrapping_sub(7) } else { number }
        }
    }

    impl Link for NoLink {
        fn rank(&self) -> usize {
            self.answer(self.rank)
        }

        fn size(&self) -> usize {
            self.answer(self.size)
        }

        fn send(&self, _: usize, _: u16, _: cembra_tiles::link::Payload) -> Result<cembra_tiles::link::Request, Error> {
            Err(cembra_tiles::link::no_link("none"))
        }

        fn receive(
            &self,
            _: usize,
            _: u16,
            _: cembra_tiles::link::ExpectedMessage,
        ) -> Result<cembra_tiles::link::Request, Error> {
            Err(cembra_tiles::link::no_link("none"))
        }

        fn abort(&self, _: i32) {}
    }
}
