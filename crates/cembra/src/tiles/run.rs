//! Texts that are evaluated on tiled tensors: read, checked against the types and extents of the tensors, and kept. How a graph is evaluated on
//! tiles is decided by `cembra-tiles`.

use crate::{AxisCut, Error, Executor, Model, QType, Registry, Scalar};
use cembra_tensor::{Extents, MatrixProduct, TensorErrorKind, TensorGraph, TensorNodeId};
use cembra_tiles::link::Ranks;
use cembra_tiles::{Evaluator, Journal, Options, Resumed, Step, TileMap, Tiled, Tiling, Tiling1};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The most texts that are kept.
const MOST_TEXTS: usize = 64;

/// Evaluates statements of the text language on tiled tensors. A name in a text is that of a tensor that is given with it; the types and the
/// number of axes of names come from the tensors, so a text has no `input` lines.
///
/// A text that was evaluated on tensors of the same types and extents before is not read again, and one that takes blocks neither if the tensors
/// are cut alike: the last 64 are kept.
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
    evaluator: Evaluator,
    elements: cembra_engine::Evaluator,
    compile: crate::Options,
    /// At most `MOST_TEXTS`, the last that was used at the end. A run is used by one thread, which has no use for the table of the engine.
    kept: Vec<Arc<Read>>,
    reads: u64,
}

/// What multiplies matrices.
fn matrices() -> Arc<dyn MatrixProduct> {
    #[cfg(feature = "matrix-library")]
    return Arc::new(cembra_engine::LibraryProduct);
    #[cfg(not(feature = "matrix-library"))]
    Arc::new(cembra_tensor::PlainProduct)
}

/// How matrices are multiplied, which decides how sums are rounded.
pub(super) fn instructions() -> &'static str {
    #[cfg(feature = "matrix-library")]
    return cembra_engine::LibraryProduct::instructions();
    #[cfg(not(feature = "matrix-library"))]
    "plain loops"
}

/// What a text is read for: the name, the type and the extents of each tensor, sorted by name.
type Given<'i> = BTreeMap<&'i str, &'i Tiled>;

/// A text that was read.
#[derive(Debug)]
struct Read {
    text: Box<str>,
    given: Vec<(Box<str>, Scalar, Extents)>,
    /// How each tensor is cut, if the graph depends on it.
    tilings: Option<Vec<Tiling>>,
    graph: TensorGraph,
    /// The inputs that the graph has, in the order of its leaves.
    inputs: Vec<Arc<str>>,
    outputs: Vec<(Arc<str>, TensorNodeId)>,
}

impl Read {
    fn nodes(&self) -> Vec<TensorNodeId> {
        self.outputs.iter().map(|(_, node)| *node).collect()
    }

    fn is_for(&self, text: &str, given: &Given<'_>) -> bool {
        let is_same = |((name, scalar, extents), (other, tiled)): (&(Box<str>, Scalar, Extents), (&&str, &&Tiled))| {
            **name == **other && *scalar == tiled.scalar_type() && *extents == tiled.tiling().extents()
        };
        let is_cut_so =
            |known: &Vec<Tiling>| known.iter().zip(given.values()).all(|(own, tiled)| own == tiled.tiling());
        *self.text == *text
            && self.given.len() == given.len()
            && self.given.iter().zip(given).all(is_same)
            && self.tilings.as_ref().is_none_or(is_cut_so)
    }
}

impl Run {
    /// Evaluates texts with these options; expressions of elements are compiled with those of the library, whose backend and operators
    /// they have. Products of matrices are those of a library with the feature `matrix-library`, and plain loops without.
    #[must_use]
    pub fn new(options: Options, compile: &crate::Options) -> Run {
        Run {
            evaluator: Evaluator::new(options).matrices(matrices()),
            elements: cembra_engine::Evaluator::new(compile),
            compile: compile.clone(),
            kept: Vec::new(),
            reads: 0,
        }
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
        let (read, inputs) = self.read_for(text, inputs)?;
        self.graph_plan(&read.graph, &read.nodes(), &inputs)
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
        self.evaluator.evaluate(graph, outputs, inputs, &self.elements.host())
    }

    /// The same, where some outputs are known, and others are handed over when they are made.
    pub(super) fn graph_from(
        &self,
        graph: &TensorGraph,
        outputs: &[TensorNodeId],
        inputs: &[&Tiled],
        resumed: Resumed<'_>,
    ) -> Result<Vec<Tiled>, Error> {
        self.evaluator.evaluate_from(graph, outputs, inputs, &self.elements.host(), resumed)
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
        self.evaluator.plan_graph(graph, outputs, inputs, &self.elements.host())
    }

    /// Notes the steps of evaluations in a journal, which also says how far the running one is.
    #[must_use]
    pub fn journal(self, journal: Journal) -> Run {
        Run { evaluator: self.evaluator.journal(journal), ..self }
    }

    /// Ends evaluations when a token is cancelled, or when its time is over.
    #[must_use]
    pub fn cancellation(self, token: crate::Cancellation) -> Run {
        Run { evaluator: self.evaluator.cancellation(token), ..self }
    }

    /// Shares evaluations with other ranks, which compare `facts` with them.
    pub(super) fn ranks(self, ranks: Arc<Ranks>, facts: Vec<(String, String)>) -> Run {
        Run { evaluator: self.evaluator.ranks(ranks, facts), ..self }
    }

    /// Which rank owns which tile of results, as [`Evaluator::tile_map`] says it.
    #[must_use]
    pub fn tile_map(self, map: TileMap) -> Run {
        Run { evaluator: self.evaluator.tile_map(map), ..self }
    }

    /// What evaluates products, sums and functions that are no texts, with the same options and on the same ranks.
    #[must_use]
    pub const fn evaluator(&self) -> &Evaluator {
        &self.evaluator
    }

    /// The options.
    #[must_use]
    pub const fn options(&self) -> &Options {
        self.evaluator.options()
    }

    /// How many texts were read: those that were kept from before are not.
    #[must_use]
    pub const fn texts_read(&self) -> u64 {
        self.reads
    }

    fn evaluate<'i>(
        &mut self,
        text: &str,
        inputs: impl IntoIterator<Item = (&'i str, &'i Tiled)>,
    ) -> Result<Vec<(Arc<str>, Tiled)>, Error> {
        // Other ranks begin to evaluate, and learn that this one does not.
        let (read, inputs) = self.read_for(text, inputs).map_err(|error| self.evaluator.give_up(error))?;
        let made = self.graph(&read.graph, &read.nodes(), &inputs)?;
        Ok(read.outputs.iter().map(|(name, _)| name.clone()).zip(made).collect())
    }

    /// The graph of a text, and the tensors that it is evaluated on.
    fn read_for<'i>(
        &mut self,
        text: &str,
        inputs: impl IntoIterator<Item = (&'i str, &'i Tiled)>,
    ) -> Result<(Arc<Read>, Vec<&'i Tiled>), Error> {
        let given: Given<'i> = inputs.into_iter().collect();
        let read = self.read(text, &given)?;
        let inputs = read.inputs.iter().filter_map(|name| given.get(&**name).copied()).collect();
        Ok((read, inputs))
    }

    /// The graph of a text for such tensors, which is kept.
    fn read(&mut self, text: &str, given: &Given<'_>) -> Result<Arc<Read>, Error> {
        if let Some(at) = self.kept.iter().position(|read| read.is_for(text, given)) {
            // The last one that was used is the last one that is dropped.
            let read = self.kept.remove(at);
            self.kept.push(read.clone());
            return Ok(read);
        }
        self.reads += 1;
        let registry = self.compile.compile.registry.unwrap_or_else(Registry::standard);
        // A tiling has at most 16 axes.
        let qtype = |tiled: &Tiled| QType::Tensor(tiled.scalar_type(), tiled.tiling().rank() as u8);
        let declared: Vec<(&str, QType)> = given.iter().map(|(name, tiled)| (*name, qtype(tiled))).collect();
        let model = Model::parse_for(text, &declared, registry)?;
        if !model.program().tiles.is_empty() {
            let message = "a text of statements does not cut tensors: they have their tiles already";
            let error = Error::tensors(TensorErrorKind::Tiling, message);
            return Err(error.hint("leave `tile` out; or compile the text as a model, and evaluate it by `Run::model`"));
        }
        let executor = model.compile(&self.compile)?;
        let mut tiled = Vec::with_capacity(executor.inputs().len());
        for field in executor.inputs() {
            let Some(given) = given.get(&*field.name) else {
                let message = format!("no tiled tensor is given for `{}`", field.name);
                return Err(Error::tensors(TensorErrorKind::UnknownName, message).hint("give it beside the text"));
            };
            tiled.push(*given);
        }
        let (graph, nodes) = graph_for(&executor, &tiled)?;
        let inputs = executor.inputs().iter().map(|field| field.name.clone()).collect();
        let outputs = executor.outputs().iter().map(|field| field.name.clone()).zip(nodes).collect();
        let own = |(name, tiled): (&&str, &&Tiled)| ((*name).into(), tiled.scalar_type(), tiled.tiling().extents());
        let tilings = executor.has_blocks().then(|| given.values().map(|tiled| tiled.tiling().clone()).collect());
        let given = given.iter().map(own).collect();
        let read = Arc::new(Read { text: text.into(), given, tilings, graph, inputs, outputs });
        if self.kept.len() == MOST_TEXTS {
            self.kept.remove(0);
        }
        self.kept.push(read.clone());
        Ok(read)
    }
}

/// The graph of a model for tiled tensors, and the nodes of its outputs.
pub(super) fn graph_for(model: &Executor, tiled: &[&Tiled]) -> Result<(TensorGraph, Vec<TensorNodeId>), Error> {
    let extents: Vec<_> = tiled.iter().map(|tiled| tiled.tiling().extents()).collect();
    let extents: Vec<&[usize]> = extents.iter().map(|extents| &extents[..]).collect();
    if !model.has_blocks() {
        return model.graph_for(&extents);
    }
    let cuts = |tiled: &&Tiled| tiled.tiling().axes().iter().map(cut_of).collect();
    model.graph_for_tiles(&extents, &tiled.iter().map(cuts).collect::<Vec<Vec<Option<AxisCut>>>>())
}

/// How an axis is cut; none if it is one tile.
fn cut_of(axis: &Tiling1) -> Option<AxisCut> {
    match axis.tile_size() {
        Some(size) if axis.tiles() > 1 => Some(AxisCut::Blocks(size)),
        Some(_) => None,
        None => Some(AxisCut::Boundaries(axis.boundaries().collect())),
    }
}
