//! Evaluations of one step over tiled tensors: a product by labels, or an operator on elements. The shape of a result is estimated first;
//! its tiles are made afterwards, and the result has their true norms. A tile whose estimate passed stays, however small its elements turned
//! out, until [`Tiled::truncate`].

use crate::context::Context;
use crate::distribution::Facts;
use crate::error::unlike_types;
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

/// Evaluates products, sums and functions of tiled tensors. A result is made whole or not at all, and its bits do not depend on the number of
/// threads; neither does the error, if several tiles cannot be made. Clones share what they keep of the memory of results that were dropped.
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
    pub(crate) options: Options,
    matrices: Arc<dyn MatrixProduct>,
    token: Option<Cancellation>,
    pool: Arc<Pool>,
    pub(crate) journal: Option<Journal>,
    /// True if no tile is made: an evaluation is a plan then.
    pub(crate) is_plan: bool,
    /// The bytes that other values hold during the evaluation.
    held_bytes: usize,
    pub(crate) ranks: Option<Arc<Ranks>>,
    pub(crate) map: Option<TileMap>,
    /// What ranks compare beside what they evaluate.
    pub(crate) facts: Facts,
}

impl Evaluator {
    /// Evaluations with these options, whose products of matrices are plain loops.
    #[must_use]
    pub fn new(options: Options) -> Evaluator {
        let pool = Arc::new(Pool::new(options.bytes_of_pool().min(options.byte_limit())));
        let matrices = Arc::new(PlainProduct);
        Evaluator {
            options,
            matrices,
            token: None,
            pool,
            journal: None,
            is_plan: false,
            held_bytes: 0,
            ranks: None,
            map: None,
            facts: Facts::default(),
        }
    }

    /// Shares the tiles of results out to ranks. All of them carry out the same evaluations in the same order, each with the same tensors, and have
    /// the same results and errors; bits are those of one rank. A result is distributed: each rank stores the tiles that it owns. Sums over all
    /// elements, and other numbers, are on all ranks.
    ///
    /// Before a graph is evaluated the ranks compare what they were given, and `facts` beside it, such as the version of a library that multiplies
    /// matrices, each with its name.
    #[must_use]
    pub fn ranks(self, ranks: Arc<Ranks>, facts: impl IntoIterator<Item = (String, String)>) -> Evaluator {
        Evaluator { ranks: Some(ranks), facts: facts.into_iter().collect(), ..self }
    }

    /// The error of an evaluation that this rank cannot begin. Other ranks that begin it have the error, too.
    #[must_use]
    pub fn give_up(&self, error: Error) -> Error {
        match self.context().several() {
            Some(ranks) => ranks.disagree(error),
            None => error,
        }
    }

    /// Which rank owns which tile of results. Without a map each tile is made where the fewest tiles have to move: a product by the grid of ranks for
    /// which that is so, other results where the first tile is that they are made of.
    #[must_use]
    pub fn tile_map(self, map: TileMap) -> Evaluator {
        Evaluator { map: Some(map), ..self }
    }

    /// Computes products of matrices by this. Sums of products of tiles keep their order, so bits depend on it only within a tile.
    #[must_use]
    pub fn matrices(self, matrices: Arc<dyn MatrixProduct>) -> Evaluator {
        Evaluator { matrices, ..self }
    }

    /// Ends evaluations when a token is cancelled, or when its time is over ([`Cancellation::until`]). It is looked at between two tasks,
    /// between two rows of a plan, and between two segments of sums, which take milliseconds, unless a function of a user takes longer.
    #[must_use]
    pub fn cancellation(self, token: Cancellation) -> Evaluator {
        Evaluator { token: Some(token), ..self }
    }

    /// Notes the steps of evaluations in a journal, which also says how far the running one is.
    #[must_use]
    pub fn journal(self, journal: Journal) -> Evaluator {
        Evaluator { journal: Some(journal), ..self }
    }

    /// The plan of a product, from shapes alone. No tile is made.
    ///
    /// # Errors
    /// Those of [`product`](Evaluator::product) but for the making of tiles.
    pub fn plan(&self, labels: &str, a: &Tiled, b: &Tiled, wanted: Option<&Shape>) -> Result<SymbolicProduct, Error> {
        if a.scalar_type() != b.scalar_type() {
            return Err(unlike_types(a.scalar_type(), b.scalar_type()));
        }
        let labels = Labels::parse(labels, &[a.tiling().rank(), b.tiling().rank()])?;
        let shapes = [a.shape(), b.shape()];
        SymbolicProduct::until(&labels, shapes, wanted, a.scalar_type(), &self.options, self.token.as_ref())
    }

    /// The product of two tensors by labels such as `ij,jk->ik`, summed over labels that the result does not have. Labels of both operands and
    /// the result are walked together.
    ///
    /// # Errors
    /// Labels do not fit the operands; a label is on one operand twice, or is summed and on one operand alone; axes with one label have two
    /// tilings; elements are of two types; there are too many tiles, products or bytes; a lazy tile cannot be made; or the evaluation was ended.
    pub fn product(&self, labels: &str, a: &Tiled, b: &Tiled) -> Result<Tiled, Error> {
        self.run(&self.plan(labels, a, b, None)?, a, b)
    }

    /// The same, of which only the tiles of a shape are made: no tile of an operand is asked for that only others need. Nothing is left out by
    /// estimates.
    ///
    /// # Errors
    /// Those of [`product`](Evaluator::product), or the shape has another tiling than the result.
    pub fn product_within(&self, labels: &str, a: &Tiled, b: &Tiled, wanted: &Shape) -> Result<Tiled, Error> {
        self.run(&self.plan(labels, a, b, Some(wanted))?, a, b)
    }

    /// The product of the operands that a plan was made of.
    fn run(&self, plan: &SymbolicProduct, a: &Tiled, b: &Tiled) -> Result<Tiled, Error> {
        self.check_tiles(&[a, b])?;
        let context = self.context();
        // Ranks compare the bytes of their own tiles.
        if context.several().is_none() {
            let bytes = bytes_of(a.scalar_type(), plan.shape().present_elements());
            context.check_result(plan.shape().len(), bytes)?;
        }
        with_float!(a.scalar_type(), T => multiply::<T>(plan, [a, b], &*self.matrices, &context))
    }

    /// The options.
    #[must_use]
    pub const fn options(&self) -> &Options {
        &self.options
    }

    /// The same evaluator, with fewer bytes: other values hold `held_bytes` of them.
    pub(crate) fn beside(&self, held_bytes: usize) -> Evaluator {
        let left = self.options.byte_limit().saturating_sub(held_bytes);
        let held_bytes = self.held_bytes.saturating_add(held_bytes);
        Evaluator { options: self.options.clone().most_bytes(left), held_bytes, ..self.clone() }
    }

    /// An evaluator like this one beside tiles that take `own_bytes` bytes besides elements.
    ///
    /// # Errors
    /// There are too few bytes.
    pub(crate) fn counting(&self, own_bytes: usize) -> Result<Evaluator, Error> {
        let options = self.options.clone().counting(own_bytes, || "what holds tiles".to_owned())?;
        Ok(Evaluator { options, ..self.clone() })
    }

    /// The same evaluator for a plan, which notes its steps in a journal. It takes no memory, so none is kept.
    pub(crate) fn of_plan(&self, journal: Journal) -> Evaluator {
        Evaluator { is_plan: true, journal: Some(journal), pool: Arc::new(Pool::new(0)), ..self.clone() }
    }

    /// What an evaluation runs with.
    pub(crate) fn context(&self) -> Context {
        Context {
            workers: Workers { threads: self.options.thread_count(), token: self.token.clone() },
            pool: self.pool.clone(),
            most_bytes: self.options.byte_limit(),
            own_bytes: self.options.bytes_of_own(),
            block_bytes: self.options.bytes_of_blocks(),
            journal: self.journal.clone(),
            is_plan: self.is_plan,
            held_bytes: self.held_bytes,
            ranks: self.ranks.clone(),
            map: self.map.clone(),
        }
    }
}
