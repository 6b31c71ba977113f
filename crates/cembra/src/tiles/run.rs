//! Texts that are evaluated on tiled tensors: they are compiled for the types of the tensors, and kept. A compiled text is a model (`session.rs`);
//! `cembra-tiles` evaluates the model's graph on tiles.

use super::parts::{Evaluation, TiledModel, TiledValue};
use super::session::{TiledSession, TimedEvaluator};
use crate::{Error, Executor, Model, QType, Registry, RunOptions, Scalar};
use cembra_engine::{Cache, NewValue, hash_of};
use cembra_tensor::{MatrixProduct, TensorErrorKind, TensorGraph, TensorNodeId};
use cembra_tiles::{Evaluator, Journal, Options, Step, TileMap, Tiled};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The most texts that are kept.
const MOST_TEXTS: usize = 64;

/// Evaluates statements of the text language on tiled tensors. A name in a text is that of a tensor that is given with it; the types and the
/// number of axes of names come from the tensors, so a text has no `input` lines.
///
/// A text is compiled as a model is. It is not compiled again for tensors of the same types: the last 64 texts are kept. It is evaluated as a
/// [`TiledSession`] evaluates a model.
///
/// A block has some tiles of each axis. `h("i,j").block([0, 1], [2, 3])` has those from 0 and 1 on, before 2 and 3.
///
/// ```
/// use cembra::tiles::{MOST_TILES, Options, Shape, Tiled, Tiling, Tiling1, World};
///
/// let axis = Tiling1::blocked(4, 2)?;
/// let shape = Shape::dense(&Tiling::new([&axis])?, MOST_TILES)?;
/// let [x, y] = [1.0, 2.0].map(|by| Tiled::from_fn(&shape, |at| by * at[0] as f64));
/// let (x, y) = (x?, y?);
///
/// let mut run = World::from_environment()?.evaluator(Options::default());
/// // `+=` reads the old value of its target, which stays as it is: the new value is what comes out.
/// let sum = run.statement(r#"x("i") += 0.5 * y("i")"#, [("x", &x), ("y", &y)])?;
/// assert_eq!(sum.to_tensor()?.to_vec::<f64>()?, [0.0, 2.0, 4.0, 6.0]);
/// // Several lines make several tensors.
/// let made = run.statements("let d = exp(x) - 1.0; output e = d * y; output f = d + y", [("x", &x), ("y", &y)])?;
/// assert_eq!(made["f"].get::<f64>(&[1])?, 1.0_f64.exp() - 1.0 + 2.0);
/// # Ok::<(), cembra::Error>(())
/// ```
#[derive(Debug)]
pub struct Run {
    evaluator: TimedEvaluator,
    elements: Arc<cembra_engine::Evaluator>,
    compile: crate::Options,
    texts: Cache<TextKey, Result<Arc<TiledModel>, Error>>,
}

/// What multiplies matrices.
fn matrices() -> Arc<dyn MatrixProduct> {
    #[cfg(feature = "matrix-library")]
    return Arc::new(cembra_engine::LibraryProduct);
    #[cfg(not(feature = "matrix-library"))]
    Arc::new(cembra_tensor::PlainProduct)
}

/// Makes an evaluator with these options, without ranks.
pub(super) fn evaluator(options: Options) -> Evaluator {
    Evaluator::new(options).matrices(matrices())
}

/// How matrices are multiplied, which decides how sums are rounded.
pub(super) fn instructions() -> &'static str {
    #[cfg(feature = "matrix-library")]
    return cembra_engine::LibraryProduct::instructions();
    #[cfg(not(feature = "matrix-library"))]
    "plain loops"
}

/// The key of a compiled text: the text, and the name and the type of each tensor, sorted by name.
type TextKey = (Box<str>, Vec<(Box<str>, QType)>);

/// A compiled text, and the tensors in the order of its inputs.
type BoundText = (Arc<TiledModel>, Vec<TiledValue>);

impl Run {
    /// Makes a run that evaluates texts with `options`. Expressions of elements are compiled with `compile`, which sets the backend and the
    /// operators. Products of matrices use a library with the feature `matrix-library`, and plain loops without.
    #[must_use]
    pub fn new(options: Options, compile: &crate::Options) -> Run {
        Run::of(evaluator(options), compile)
    }

    pub(super) fn of(evaluator: Evaluator, compile: &crate::Options) -> Run {
        let elements = Arc::new(cembra_engine::Evaluator::new(compile));
        Run { evaluator: evaluator.into(), elements, compile: compile.clone(), texts: Cache::new(MOST_TEXTS) }
    }

    /// The tensor that a text makes, which has one output: `c("i,j") = a("i,k") * b("k,j")`. An assignment as `+=` reads its target among the
    /// tensors that are given.
    ///
    /// # Errors
    /// What is wrong with the text, or with its types and labels; it has another number of outputs, or a name that no tensor is given for;
    /// axes of one label have two tilings; an operation is not for tiled tensors; there are too many tiles or bytes; an element fails; or a
    /// lazy tile cannot be made. The error has its place in the text. Tensors that are given stay as they are.
    pub fn statement<'i>(
        &mut self,
        text: &str,
        inputs: impl IntoIterator<Item = (&'i str, &'i Tiled)>,
    ) -> Result<Tiled, Error> {
        let mut made = self.evaluate(text, inputs)?;
        match (made.pop(), made.len()) {
            (Some((_, one)), 0) => Ok(one),
            (_, others) => {
                let count = if others == 0 { 0 } else { others + 1 };
                let message = format!("a text of {count} outputs, of which one is asked for");
                Err(Error::tensors(TensorErrorKind::OperandCount, message)
                    .hint("`statements` gives all by their names"))
            }
        }
    }

    /// The tensors that a text makes, by their names.
    ///
    /// # Errors
    /// Those of [`statement`](Run::statement), but for the number of outputs.
    pub fn statements<'i>(
        &mut self,
        text: &str,
        inputs: impl IntoIterator<Item = (&'i str, &'i Tiled)>,
    ) -> Result<BTreeMap<String, Tiled>, Error> {
        let made = self.evaluate(text, inputs)?;
        Ok(made.into_iter().map(|(name, tiled)| (name.to_string(), tiled)).collect())
    }

    /// The steps that [`statements`](Run::statements) would take. No tile is made, so tensors may have a shape alone: [`Tiled::planned`].
    ///
    /// # Errors
    /// Those of [`statements`](Run::statements) but for the making of tiles.
    pub fn statements_plan<'i>(
        &mut self,
        text: &str,
        inputs: impl IntoIterator<Item = (&'i str, &'i Tiled)>,
    ) -> Result<Vec<Step>, Error> {
        let (model, inputs) = self.bound(text, inputs)?;
        let begun = self.evaluator.begin();
        Evaluation::new(&begun, &self.elements, &self.evaluator.beside).plan(&model, &inputs)
    }

    /// The number that a text makes: `(a("i,j") * b("i,j")).sum()`, or `tensor.sum(a * b)`.
    ///
    /// # Errors
    /// Those of [`statement`](Run::statement), or what it makes has axes.
    pub fn number<'i>(
        &mut self,
        text: &str,
        inputs: impl IntoIterator<Item = (&'i str, &'i Tiled)>,
    ) -> Result<f64, Error> {
        let made = self.statement(text, inputs)?;
        if made.tiling().rank() > 0 {
            let message = format!("a tensor of {} axes, where a number is asked for", made.tiling().rank());
            let error = Error::tensors(TensorErrorKind::RankMismatch, message);
            return Err(error.hint("sum over all axes: `(a(\"i,j\") * b(\"i,j\")).sum()`"));
        }
        match made.scalar_type() {
            Scalar::Float32 => made.get::<f32>(&[]).map(f64::from),
            _ => made.get::<f64>(&[]),
        }
    }

    /// Nodes of a graph that was built in Rust, evaluated on a tiled tensor for each of its leaves.
    ///
    /// # Errors
    /// The graph has operators of another registry than the options of the library name; those of
    /// [`Evaluator::evaluate`](Evaluator::evaluate).
    pub fn graph(&self, graph: &TensorGraph, outputs: &[TensorNodeId], inputs: &[&Tiled]) -> Result<Vec<Tiled>, Error> {
        self.evaluator.begin().evaluate(graph, outputs, inputs, &self.elements.host())
    }

    /// The steps that [`graph`](Run::graph) would take. No tile is made, so inputs may have a shape alone: [`Tiled::planned`].
    ///
    /// # Errors
    /// Those of [`graph`](Run::graph) but for the making of tiles.
    pub fn graph_plan(
        &self,
        graph: &TensorGraph,
        outputs: &[TensorNodeId],
        inputs: &[&Tiled],
    ) -> Result<Vec<Step>, Error> {
        self.evaluator.begin().plan_graph(graph, outputs, inputs, &self.elements.host())
    }

    /// Notes the steps of evaluations in a journal, which also says how far the running one is.
    #[must_use]
    pub fn journal(self, journal: Journal) -> Run {
        Run { evaluator: self.evaluator.with(|evaluator| evaluator.journal(journal)), ..self }
    }

    /// Sets the token that ends evaluations, the time limit of each, the number of their threads, and, by
    /// [`array_bytes`](crate::Limits::array_bytes), the most bytes that they may take ([`Evaluator::most_bytes`]). Without limits in `options`, bytes are not limited.
    #[must_use]
    pub fn run_options(self, options: &RunOptions) -> Run {
        Run { evaluator: self.evaluator.within(options), ..self }
    }

    /// Makes a session that evaluates a model with these options, on the same ranks.
    #[must_use]
    pub fn tiled(&self, model: &Executor) -> TiledSession {
        let model = Arc::new(TiledModel::new(model.clone()));
        TiledSession { evaluator: self.evaluator.clone(), elements: self.elements.clone(), model }
    }

    /// Which rank owns which tile of results, as [`Evaluator::tile_map`] says it.
    #[must_use]
    pub fn tile_map(self, map: TileMap) -> Run {
        Run { evaluator: self.evaluator.with(|evaluator| evaluator.tile_map(map)), ..self }
    }

    /// The evaluator for products, sums and functions that are not texts. It has the same options except the time limit, and the same ranks.
    #[must_use]
    pub const fn evaluator(&self) -> &Evaluator {
        &self.evaluator.untimed
    }

    /// Evaluates several texts within the time limit of one run.
    pub(super) fn as_one<A>(&mut self, evaluate: impl FnOnce(&mut Run) -> A) -> A {
        let begun = self.evaluator.begin().into_owned().into();
        let timed = std::mem::replace(&mut self.evaluator, begun);
        let made = evaluate(self);
        self.evaluator = timed;
        made
    }

    /// The options.
    #[must_use]
    pub const fn options(&self) -> &Options {
        self.evaluator().options()
    }

    /// The number of texts that were compiled. Evaluations of kept texts do not count.
    #[must_use]
    pub fn texts_read(&self) -> u64 {
        self.texts.counters().misses
    }

    fn evaluate<'i>(
        &mut self,
        text: &str,
        inputs: impl IntoIterator<Item = (&'i str, &'i Tiled)>,
    ) -> Result<Vec<(Arc<str>, Tiled)>, Error> {
        // Other ranks begin to evaluate, and learn that this one does not.
        let (model, inputs) = self.bound(text, inputs).map_err(|error| self.evaluator().give_up(error))?;
        let begun = self.evaluator.begin();
        let made = Evaluation::new(&begun, &self.elements, &self.evaluator.beside).evaluate(&model, &inputs)?;
        let names = model.executor.outputs().iter().map(|field| field.name.clone());
        names.zip(made).map(|(name, value)| Ok((name, value.into_tiled()?))).collect()
    }

    /// Returns the model of a text, and the tensors that the text is evaluated on.
    fn bound<'i>(
        &self,
        text: &str,
        inputs: impl IntoIterator<Item = (&'i str, &'i Tiled)>,
    ) -> Result<BoundText, Error> {
        let given: BTreeMap<&str, &Tiled> = inputs.into_iter().collect();
        // A tiling has at most 16 axes.
        let qtype = |tiled: &Tiled| QType::Tensor(tiled.scalar_type(), tiled.tiling().rank() as u8);
        let declared: Vec<(&str, QType)> = given.iter().map(|(name, tiled)| (*name, qtype(tiled))).collect();
        let is_it = |(known, types): &TextKey| {
            let own = types.iter().map(|(name, qtype)| (&**name, qtype));
            **known == *text && own.eq(declared.iter().map(|(name, qtype)| (*name, qtype)))
        };
        let key = || (text.into(), declared.iter().map(|(name, qtype)| ((*name).into(), qtype.clone())).collect());
        let make = || {
            let value = self.compiled(text, &declared);
            NewValue { stays: value.is_ok(), value }
        };
        let model = self.texts.get(hash_of((text, &declared)), is_it, key, make)?;
        let mut tiled = Vec::with_capacity(model.executor.inputs().len());
        for field in model.executor.inputs() {
            let Some(given) = given.get(&*field.name) else {
                let message = format!("no tiled tensor is given for `{}`", field.name);
                return Err(Error::tensors(TensorErrorKind::UnknownName, message).hint("give it beside the text"));
            };
            tiled.push(TiledValue::Tiled((*given).clone()));
        }
        Ok((model, tiled))
    }

    /// Compiles a text as a model with the inputs `declared`.
    fn compiled(&self, text: &str, declared: &[(&str, QType)]) -> Result<Arc<TiledModel>, Error> {
        let registry = self.compile.compile.registry.unwrap_or_else(Registry::standard);
        let model = Model::parse_for(text, declared, registry)?;
        if !model.program().tiles.is_empty() {
            let message = "a text of statements does not cut tensors: they have their tiles already";
            let error = Error::tensors(TensorErrorKind::Tiling, message);
            return Err(error.hint("leave `tile` out; or compile the text as a model, and evaluate it by `Run::tiled`"));
        }
        Ok(Arc::new(TiledModel::new(model.compile(&self.compile)?)))
    }
}
