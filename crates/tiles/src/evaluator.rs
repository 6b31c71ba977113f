//! The evaluator of tiled tensors, with its settings and products by labels; other operations are in `elements/` and
//! `graph/`. The shape of a result is estimated first, and its tiles are computed afterwards. Then the norms of the
//! computed elements replace the estimates. A tile whose estimate was not below the threshold stays until
//! [`Tiled::truncate`], however small its elements are.

use crate::distribution::Facts;
use crate::error::check_same_types;
use crate::link::Ranks;
use crate::product::numeric::multiply;
use crate::tasks::Workers;
use crate::tiled::pool::Pool;
use crate::tiled::tile::with_float;
use crate::tiled::{Tiled, bytes_of};
use crate::{Journal, Options, Shape, SymbolicProduct, TileMap};
use cembra_runtime::Cancellation;
use cembra_tensor::{Labels, MatrixProduct, PlainProduct};
use cembra_value::Error;
use std::sync::Arc;

/// Evaluates products, sums and functions of tiled tensors. A result is computed completely or not at all. The number
/// of threads affects neither the bits of the result nor, if several tiles fail, which error is returned. Clones of an
/// evaluator share the memory that dropped results leave for reuse.
///
/// ```
/// use cembra_tiles::{Evaluator, MOST_TILES, Options, Shape, Tiled, Tiling, Tiling1};
///
/// let axis = Tiling1::blocked(4, 2)?;
/// let shape = Shape::dense(&Tiling::new([&axis, &axis])?, MOST_TILES)?;
/// let a = Tiled::from_fn(&shape, |at| if at[0] == at[1] { 2.0 } else { 0.0 })?;
/// let run = Evaluator::new(Options::default().threshold(1e-10));
/// // Zero tiles off the diagonal are present in `a`, and estimates leave their products out.
/// let square = run.product("ij,jk->ik", &a, &a)?;
/// assert_eq!(square.shape().tiles(), [0, 3]);
/// assert_eq!(square.get::<f64>(&[3, 3])?, 4.0);
/// # Ok::<(), cembra_value::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Evaluator {
    matrices: Arc<dyn MatrixProduct>,
    pub(crate) workers: Workers,
    /// The facts that ranks compare before they evaluate, in addition to tensors and programs, such as the version of a library.
    pub(crate) facts: Facts,
}

impl Evaluator {
    /// Makes an evaluator with the options `options`. The evaluator multiplies matrices in plain loops.
    #[must_use]
    pub fn new(options: Options) -> Evaluator {
        let workers = Workers::alone(&options);
        Evaluator { matrices: Arc::new(PlainProduct), workers, facts: Facts::default() }
    }

    /// Distributes the tiles of results over ranks. All ranks must run the same evaluations in the same order, with the same tensors. All ranks get
    /// the same results and errors, bit for bit the results of an evaluation on a single rank. A result is distributed: each rank stores the tiles
    /// that it owns. Single numbers, such as sums over all elements, are on all ranks.
    ///
    /// Before a graph is evaluated, the ranks check that they were given the same graph, options and `facts`, and inputs with the same tilings and
    /// tiles. A fact has a name and a value, such as the version of a library that multiplies matrices.
    #[must_use]
    pub fn ranks(self, ranks: Arc<Ranks>, facts: impl IntoIterator<Item = (String, String)>) -> Evaluator {
        Evaluator { facts: facts.into_iter().collect(), ..self.with(|workers| workers.ranks = Some(ranks)) }
    }

    /// Reports that this rank cannot begin an evaluation because of `error`, and returns it. Other ranks that begin the evaluation get the same
    /// error.
    #[must_use]
    pub fn give_up(&self, error: Error) -> Error {
        match self.workers.several() {
            Some(ranks) => ranks.disagree(error),
            None => error,
        }
    }

    /// Checks that all ranks have the same `facts`, before each rank uses them in a computation of its own. A fact has
    /// a name, which the error shows, and a value. All ranks must call this, or [`give_up`](Evaluator::give_up).
    ///
    /// # Errors
    /// If a fact differs, or a rank gave up: the same error on all ranks.
    pub fn agreed(&self, facts: &[(String, String)]) -> Result<(), Error> {
        self.workers.several().map_or(Ok(()), |ranks| ranks.agree(facts))
    }

    /// Runs `work` on this rank; all ranks must call this. `work` may contain steps in which all ranks take part. If
    /// `work` fails on one rank, all ranks get the error.
    ///
    /// # Errors
    /// The error of `work` here or on another rank.
    pub fn settled<R>(&self, work: impl FnOnce() -> Result<R, Error>) -> Result<R, Error> {
        let Some(ranks) = self.workers.several() else { return work() };
        let before = ranks.shared_errors();
        // An error that this rank alone has must reach the others, which wait for its next step. So every rank begins one step at the end.
        match work() {
            Err(error) if ranks.shared_errors() > before => Err(error),
            Err(error) => Err(ranks.begin_step(Err(error.clone().into())).err().unwrap_or(error)),
            Ok(made) => ranks.begin_step(Ok(0)).map(|_| made),
        }
    }

    /// The token that cancels this evaluator's evaluations; `None` if it has no token.
    #[must_use]
    pub fn token(&self) -> Option<&Cancellation> {
        self.workers.token.as_ref()
    }

    /// Sets which rank owns which tile of results. Without a map, tiles are computed where the fewest bytes have to move: for a product by the best
    /// grid of ranks, for other results by the owner of their first operand tile.
    #[must_use]
    pub fn tile_map(self, map: TileMap) -> Evaluator {
        self.with(|workers| workers.map = Some(map))
    }

    /// Sets the implementation of matrix products. Products of tiles are always added in the same order, so the implementation affects only the bits
    /// within a product of two tiles.
    #[must_use]
    pub fn matrices(self, matrices: Arc<dyn MatrixProduct>) -> Evaluator {
        Evaluator { matrices, ..self }
    }

    /// Sets the number of threads of an evaluation, 1 by default. The threads belong to the process's thread pool, or to the pool in which the caller
    /// runs. The number of threads changes no bit of a result, and no error.
    #[must_use]
    pub fn threads(self, threads: usize) -> Evaluator {
        self.with(|workers| workers.threads = threads)
    }

    /// Sets the memory limit of an evaluation in bytes; there is none by default. The limit covers the elements of its
    /// result, of sums that are not added yet, and of lazy and repacked tiles that are in use. With a low limit, fewer
    /// tiles are in memory at once and fewer threads work. Plans and tiles, those of operands included, also take bytes
    /// in addition to elements: 8 for each product of two tiles, and 448 for each tile. Of these bytes, only those
    /// beyond 32 MiB count. The elements of stored operands, and the memory of a user's functions, are not counted.
    #[must_use]
    pub fn most_bytes(self, most: usize) -> Evaluator {
        let Workers { options, pool, .. } = Workers::alone(&self.workers.options.clone().most_bytes(most));
        self.with(|workers| (workers.options, workers.pool) = (options, pool))
    }

    /// Cancels evaluations when `token` is cancelled, or when its time is over ([`Cancellation::until`]). The token is checked between two tasks,
    /// between two rows of a plan, and between two segments of sums. A task, row or segment takes milliseconds, unless a user's function takes
    /// longer.
    #[must_use]
    pub fn cancellation(self, token: Cancellation) -> Evaluator {
        self.with(|workers| workers.token = Some(token))
    }

    /// Records the steps of evaluations in a journal, which also has the progress of the running evaluation.
    #[must_use]
    pub fn journal(self, journal: Journal) -> Evaluator {
        self.with(|workers| workers.journal = Some(journal))
    }

    /// Plans a product of two tensors by labels, from shapes alone; no tile is computed. If `wanted` is a shape, only
    /// the tiles of that shape are planned, even if their estimated norms are below the threshold.
    ///
    /// # Errors
    /// The errors of [`product`](Evaluator::product), except those of making tiles.
    pub fn plan(&self, labels: &str, a: &Tiled, b: &Tiled, wanted: Option<&Shape>) -> Result<SymbolicProduct, Error> {
        check_same_types(a.scalar_type(), b.scalar_type())?;
        let labels = Labels::parse(labels, &[a.tiling().rank(), b.tiling().rank()])?;
        let shapes = [a.shape(), b.shape()];
        SymbolicProduct::until(&labels, shapes, wanted, a.scalar_type(), self.options(), self.workers.token.as_ref())
    }

    /// Returns the product of two tensors by labels such as `ij,jk->ik`, summed over labels that the result does not have. A label that both operands
    /// and the result have is a batch label.
    ///
    /// # Errors
    /// If labels do not fit the operands; a label is on one operand twice, or is summed and on one operand alone; axes with the same label have
    /// different tilings; element types differ; there are too many tiles or products; the memory limit does not suffice; a lazy tile cannot be
    /// computed; or the evaluation was cancelled.
    pub fn product(&self, labels: &str, a: &Tiled, b: &Tiled) -> Result<Tiled, Error> {
        self.run(&self.plan(labels, a, b, None)?, a, b)
    }

    /// Returns the product of two tensors by labels, of which only the tiles of `wanted` are computed, even if their
    /// estimated norms are below the threshold. Operand tiles that only other result tiles would need are neither
    /// computed nor read.
    ///
    /// # Errors
    /// The errors of [`product`](Evaluator::product); or `wanted` does not have the tiling of the result.
    pub fn product_within(&self, labels: &str, a: &Tiled, b: &Tiled, wanted: &Shape) -> Result<Tiled, Error> {
        self.run(&self.plan(labels, a, b, Some(wanted))?, a, b)
    }

    /// Computes the product of `a` and `b`, for which `plan` was made.
    fn run(&self, plan: &SymbolicProduct, a: &Tiled, b: &Tiled) -> Result<Tiled, Error> {
        self.check_tiles(&[a, b])?;
        let workers = self.workers.clone();
        // Ranks check the bytes of their own tiles.
        if workers.several().is_none() {
            let bytes = bytes_of(a.scalar_type(), plan.shape().present_elements());
            workers.check_result(plan.shape().len(), bytes)?;
        }
        with_float!(a.scalar_type(), T => multiply::<T>(plan, [a, b], &*self.matrices, &workers))
    }

    /// The options of this evaluator's evaluations.
    #[must_use]
    pub const fn options(&self) -> &Options {
        &self.workers.options
    }

    /// Returns the evaluator with a memory limit that is lower by `held_bytes`, because other values take these bytes.
    pub(crate) fn beside(&self, held_bytes: usize) -> Evaluator {
        self.clone().with(|workers| {
            workers.options.most_bytes = workers.options.most_bytes.saturating_sub(held_bytes);
            workers.held_bytes = workers.held_bytes.saturating_add(held_bytes);
        })
    }

    /// Returns the evaluator with a memory limit that accounts for tiles that take `own_bytes` bytes in addition to their elements.
    ///
    /// # Errors
    /// If the memory limit does not suffice.
    pub(crate) fn counting(&self, own_bytes: usize) -> Result<Evaluator, Error> {
        let workers = self.workers.counting(own_bytes, || "what holds tiles".to_owned())?;
        Ok(Evaluator { workers, ..self.clone() })
    }

    /// Returns the evaluator for a plan, which records its steps in `journal`. A plan computes no tiles, so its memory pool is empty.
    pub(crate) fn of_plan(&self, journal: Journal) -> Evaluator {
        self.clone().with(|workers| {
            (workers.is_plan, workers.journal, workers.pool) = (true, Some(journal), Arc::new(Pool::new(0)));
        })
    }

    /// Returns the evaluator after `change` has modified its workers.
    pub(crate) fn with(mut self, change: impl FnOnce(&mut Workers)) -> Evaluator {
        change(&mut self.workers);
        self
    }
}
