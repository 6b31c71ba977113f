//! Evaluates texts (statements of the language) on tiled tensors. A text is compiled for the types of the tensors to a model (`session.rs`), which is
//! cached; `cembra-tiles` evaluates the model's graph on tiles.

use super::parts::{Evaluation, TiledModel, TiledValue};
use super::session::{TiledSession, TimedEvaluator};
use crate::operators::Registry;
use crate::{Error, Executor, Model, QType, RunOptions, Scalar};
use cembra_engine::{Cache, NewValue, hash_of};
use cembra_tensor::{MatrixProduct, TensorErrorKind, TensorGraph, TensorNodeId};
use cembra_tiles::{Evaluator, Journal, Options, Step, TileMap, Tiled};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The most compiled texts in the cache.
const MOST_TEXTS: usize = 64;

/// Evaluates statements of the text language on tiled tensors. Each name in a text is a tensor that is passed with the text. The tensors determine
/// the types and the numbers of axes, so a text has no `input` lines.
///
/// A text is compiled like a model. The last 64 compiled texts are cached, and reused for tensors of the same types. A text is evaluated as a
/// [`TiledSession`] evaluates a model.
///
/// A block selects a range of tiles on each axis: `h("i,j").block([0, 1], [2, 3])` selects the tiles 0 and 1 of the first axis, and the tiles 1 and 2
/// of the second axis.
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

/// Returns the implementation of matrix products for tiles: a library with the feature `matrix-library`, otherwise
/// plain loops.
fn matrices() -> Arc<dyn MatrixProduct> {
    #[cfg(feature = "matrix-library")]
    return Arc::new(cembra_engine::LibraryProduct);
    #[cfg(not(feature = "matrix-library"))]
    Arc::new(cembra_tensor::PlainProduct)
}

/// Returns an evaluator with the options `options`, for this process alone.
pub(super) fn evaluator(options: Options) -> Evaluator {
    Evaluator::new(options).matrices(matrices())
}

/// Returns the name of the processor's instructions that multiply matrices. They determine how sums are rounded.
pub(super) fn instructions() -> &'static str {
    #[cfg(feature = "matrix-library")]
    return cembra_engine::LibraryProduct::instructions();
    #[cfg(not(feature = "matrix-library"))]
    "plain loops"
}

/// The key of a compiled text: the text, and the name and type of each tensor, sorted by name.
type TextKey = (Box<str>, Vec<(Box<str>, QType)>);

/// A compiled text, and the tensors in the order of its inputs.
type BoundText = (Arc<TiledModel>, Vec<TiledValue>);

impl Run {
    /// Returns a run that evaluates texts with `options`. Expressions of elements are compiled with `compile`, which sets the backend and the
    /// operators. With the feature `matrix-library`, matrix products use a library, otherwise plain loops.
    #[must_use]
    pub fn new(options: Options, compile: &crate::Options) -> Run {
        Run::of(evaluator(options), compile)
    }

    /// Returns a run that evaluates texts with `evaluator` and compiles them with the options `compile`.
    pub(super) fn of(evaluator: Evaluator, compile: &crate::Options) -> Run {
        let elements = Arc::new(cembra_engine::Evaluator::new(compile));
        Run { evaluator: evaluator.into(), elements, compile: compile.clone(), texts: Cache::new(MOST_TEXTS) }
    }

    /// Evaluates the text `text`, which has one output, such as `c("i,j") = a("i,k") * b("k,j")`, and returns the output. An assignment such as `+=`
    /// reads its target from `inputs`. The input tensors do not change.
    ///
    /// # Errors
    /// If the text has errors, also in types or labels; if the text does not have exactly one output; or if it names a tensor that is not in
    /// `inputs`. If axes with the same label have different tilings, if an operation does not exist for tiled tensors, or if tensors have too many
    /// tiles or bytes. If the evaluation of an element fails, or a lazy tile cannot be computed. Errors carry their place in the text.
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
                let message = format!("the text has {count} outputs, but must have one");
                Err(Error::tensors(TensorErrorKind::OperandCount, message)
                    .hint("call `statements`, which returns all outputs by name"))
            }
        }
    }

    /// Evaluates a text and returns its outputs by name.
    ///
    /// # Errors
    /// The errors of [`statement`](Run::statement), except for the number of outputs.
    pub fn statements<'i>(
        &mut self,
        text: &str,
        inputs: impl IntoIterator<Item = (&'i str, &'i Tiled)>,
    ) -> Result<BTreeMap<String, Tiled>, Error> {
        let made = self.evaluate(text, inputs)?;
        Ok(made.into_iter().map(|(name, tiled)| (name.to_string(), tiled)).collect())
    }

    /// Returns the steps that [`statements`](Run::statements) would take. No tile is computed, so inputs may be tensors that have only a shape:
    /// [`Tiled::planned`].
    ///
    /// # Errors
    /// The errors of [`statements`](Run::statements), except those of computing tiles.
    pub fn statements_plan<'i>(
        &mut self,
        text: &str,
        inputs: impl IntoIterator<Item = (&'i str, &'i Tiled)>,
    ) -> Result<Vec<Step>, Error> {
        let (model, inputs) = self.bound(text, inputs)?;
        let begun = self.evaluator.begin();
        Evaluation::new(&begun, &self.elements, &self.evaluator.beside).plan(&model, &inputs)
    }

    /// Evaluates a text whose output is a number, such as `(a("i,j") * b("i,j")).sum()` or `tensor.sum(a * b)`.
    ///
    /// # Errors
    /// The errors of [`statement`](Run::statement). Also if the output has axes.
    pub fn number<'i>(
        &mut self,
        text: &str,
        inputs: impl IntoIterator<Item = (&'i str, &'i Tiled)>,
    ) -> Result<f64, Error> {
        let made = self.statement(text, inputs)?;
        if made.tiling().rank() > 0 {
            let message = format!("a tensor of {} axes is computed where a number is needed", made.tiling().rank());
            let error = Error::tensors(TensorErrorKind::RankMismatch, message);
            return Err(error.hint("sum over all axes: `(a(\"i,j\") * b(\"i,j\")).sum()`"));
        }
        match made.scalar_type() {
            Scalar::Float32 => made.get::<f32>(&[]).map(f64::from),
            _ => made.get::<f64>(&[]),
        }
    }

    /// Evaluates the nodes `outputs` of a graph that was built in Rust. `inputs` has one tiled tensor per leaf of the graph.
    ///
    /// # Errors
    /// If the graph's operators are of another registry than the one in the options; and the errors of [`Evaluator::evaluate`](Evaluator::evaluate).
    pub fn graph(&self, graph: &TensorGraph, outputs: &[TensorNodeId], inputs: &[&Tiled]) -> Result<Vec<Tiled>, Error> {
        self.evaluator.begin().evaluate(graph, outputs, inputs, &self.elements.host())
    }

    /// Returns the steps that [`graph`](Run::graph) would take. No tile is computed, so inputs may be tensors that have only a shape:
    /// [`Tiled::planned`].
    ///
    /// # Errors
    /// The errors of [`graph`](Run::graph), except those of computing tiles.
    pub fn graph_plan(
        &self,
        graph: &TensorGraph,
        outputs: &[TensorNodeId],
        inputs: &[&Tiled],
    ) -> Result<Vec<Step>, Error> {
        self.evaluator.begin().plan_graph(graph, outputs, inputs, &self.elements.host())
    }

    /// Makes this run record the steps of its evaluations in `journal`, which also shows the progress of the current evaluation.
    #[must_use]
    pub fn journal(self, journal: Journal) -> Run {
        Run { evaluator: self.evaluator.with(|evaluator| evaluator.journal(journal)), ..self }
    }

    /// Sets the token that ends evaluations, the time limit for each evaluation, and the number of threads. Also sets the most bytes for an
    /// evaluation ([`Evaluator::most_bytes`]) to the limit [`array_bytes`](crate::Limits::array_bytes) of `options`. If `options` has no limits, the
    /// bytes are not limited.
    #[must_use]
    pub fn run_options(self, options: &RunOptions) -> Run {
        Run { evaluator: self.evaluator.within(options), ..self }
    }

    /// Returns a session that evaluates `model` with this run's options, on the same ranks.
    #[must_use]
    pub fn tiled(&self, model: &Executor) -> TiledSession {
        let model = Arc::new(TiledModel::new(model.clone()));
        TiledSession { evaluator: self.evaluator.clone(), elements: self.elements.clone(), model }
    }

    /// Sets the map that tells which rank owns each tile of a result, as [`Evaluator::tile_map`] does.
    #[must_use]
    pub fn tile_map(self, map: TileMap) -> Run {
        Run { evaluator: self.evaluator.with(|evaluator| evaluator.tile_map(map)), ..self }
    }

    /// Returns the evaluator for products, sums and functions that are not texts. It has the same ranks as this run, and the same options except the
    /// time limit.
    #[must_use]
    pub const fn evaluator(&self) -> &Evaluator {
        &self.evaluator.untimed
    }

    /// Calls `evaluate`, which may evaluate several texts, all within the time limit of one evaluation.
    pub(super) fn as_one<A>(&mut self, evaluate: impl FnOnce(&mut Run) -> A) -> A {
        let begun = self.evaluator.begin().into_owned().into();
        let timed = std::mem::replace(&mut self.evaluator, begun);
        let made = evaluate(self);
        self.evaluator = timed;
        made
    }

    /// Returns the options for evaluating on tiles.
    #[must_use]
    pub const fn options(&self) -> &Options {
        self.evaluator().options()
    }

    /// The number of texts that this run has compiled. Evaluations of cached texts do not count.
    #[must_use]
    pub fn texts_read(&self) -> u64 {
        self.texts.counters().misses
    }

    fn evaluate<'i>(
        &mut self,
        text: &str,
        inputs: impl IntoIterator<Item = (&'i str, &'i Tiled)>,
    ) -> Result<Vec<(Arc<str>, Tiled)>, Error> {
        // Other ranks may wait for this rank, so an error is sent to them.
        let (model, inputs) = self.bound(text, inputs).map_err(|error| self.evaluator().give_up(error))?;
        let begun = self.evaluator.begin();
        let made = Evaluation::new(&begun, &self.elements, &self.evaluator.beside).evaluate(&model, &inputs)?;
        let names = model.executor.outputs().iter().map(|field| field.name.clone());
        names.zip(made).map(|(name, value)| Ok((name, value.into_tiled()?))).collect()
    }

    /// Returns the compiled model for a text, from the cache if possible, and the tensors of `inputs` in the order of
    /// the model's inputs.
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
                return Err(Error::tensors(TensorErrorKind::UnknownName, message)
                    .hint("pass the tensor together with the text"));
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
            let message = "a text of statements must not use `tile`, because the given tensors have tiles already";
            let error = Error::tensors(TensorErrorKind::Tiling, message);
            return Err(error.hint(
                "leave `tile` out; or in Rust, compile the text as a model and evaluate the model by `Run::tiled`",
            ));
        }
        Ok(Arc::new(TiledModel::new(model.compile(&self.compile)?)))
    }
}
