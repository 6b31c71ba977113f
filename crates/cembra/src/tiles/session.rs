//! Models whose text says how tensors are cut: `tile i, j = 8`, and inputs `tiled[f64, "i,j"]`. Here data, or what is known before there are data,
//! meet the cuts of labels: dense tensors are cut, and tiled ones have to be cut so already. Whether labels of one axis are cut alike is checked
//! when the model is compiled.

use crate::{AxisCut, Error, Executor, Field, QType, RunOptions, Scalar};
use cembra_runtime::Excerpt;
use cembra_tensor::{Extents, Tensor, TensorErrorKind, TensorGraph, TensorNodeId};
use cembra_tiles::{Evaluator, Options, Resumed, Screening, Shape, Step, Tiled, Tiling, Tiling1};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// A value for an input of a model that is evaluated in tiles.
#[derive(Clone, Copy, Debug)]
pub enum Operand<'o> {
    /// A tensor in tiles.
    Tiled(&'o Tiled),
    /// A dense tensor, which is cut as the model says. A number is one without axes.
    Dense(&'o Tensor),
}

impl<'o> From<&'o Tiled> for Operand<'o> {
    fn from(tiled: &'o Tiled) -> Operand<'o> {
        Operand::Tiled(tiled)
    }
}

impl<'o> From<&'o Tensor> for Operand<'o> {
    fn from(tensor: &'o Tensor) -> Operand<'o> {
        Operand::Dense(tensor)
    }
}

/// What is known of a tensor for an input, when a model that is evaluated in tiles is planned.
#[derive(Clone, Copy, Debug)]
pub enum Known<'k> {
    /// The tensor.
    Operand(Operand<'k>),
    /// Which tiles are present, and their norms.
    Shape(&'k Shape),
    /// The number of elements of each axis. All tiles are present, and nothing is known of their norms. A number has no axes.
    Extents(&'k [usize]),
    /// The same, where about a part of all tiles is present, as [`Shape::random`] says it.
    Part {
        /// The number of elements of each axis.
        extents: &'k [usize],
        /// How many of all tiles, from 0 to 1.
        part: f64,
        /// What decides which they are.
        seed: u64,
    },
}

impl<'k> From<Operand<'k>> for Known<'k> {
    fn from(operand: Operand<'k>) -> Known<'k> {
        Known::Operand(operand)
    }
}

impl<'k> From<&'k Tiled> for Known<'k> {
    fn from(tiled: &'k Tiled) -> Known<'k> {
        Known::Operand(tiled.into())
    }
}

impl<'k> From<&'k Tensor> for Known<'k> {
    fn from(tensor: &'k Tensor) -> Known<'k> {
        Known::Operand(tensor.into())
    }
}

impl<'k> From<&'k Shape> for Known<'k> {
    fn from(shape: &'k Shape) -> Known<'k> {
        Known::Shape(shape)
    }
}

impl<'k> Known<'k> {
    /// The number of elements of each axis.
    fn extents(&self) -> Cow<'k, [usize]> {
        match *self {
            Known::Operand(Operand::Tiled(tiled)) => tiled.tiling().extents().to_vec().into(),
            Known::Operand(Operand::Dense(tensor)) => tensor.extents().into(),
            Known::Shape(shape) => shape.tiling().extents().to_vec().into(),
            Known::Extents(extents) | Known::Part { extents, .. } => extents.into(),
        }
    }

    /// The tiling that there is already.
    fn tiling(&self) -> Option<&'k Tiling> {
        match *self {
            Known::Operand(Operand::Tiled(tiled)) => Some(tiled.tiling()),
            Known::Shape(shape) => Some(shape.tiling()),
            _ => None,
        }
    }
}

/// A compiled model, with the graph for its last inputs. Inputs of the same extents have the same graph, if the graph does not depend on tiles or the
/// tilings are the same too.
#[derive(Debug)]
pub(super) struct TiledModel {
    pub(super) executor: Executor,
    last: Mutex<Option<Arc<TiledGraph>>>,
}

/// The graph of a model for the extents of its inputs.
#[derive(Debug)]
pub(super) struct TiledGraph {
    extents: Vec<Extents>,
    /// The tiling of each input, if the graph depends on tilings.
    tilings: Option<Vec<Tiling>>,
    pub(super) graph: TensorGraph,
    pub(super) outputs: Vec<TensorNodeId>,
}

impl TiledModel {
    pub(super) fn new(executor: Executor) -> TiledModel {
        TiledModel { executor, last: Mutex::default() }
    }

    /// Returns the graph for tiled tensors, one for each input.
    ///
    /// # Errors
    /// Tensors do not fit the inputs or each other, or the model has other values.
    pub(super) fn graph_for(&self, tiled: &[&Tiled]) -> Result<Arc<TiledGraph>, Error> {
        let has_blocks = self.executor.has_blocks();
        let is_for = |known: &&Arc<TiledGraph>| {
            let is_cut_so = |known: &[Tiling]| known.iter().zip(tiled).all(|(own, tiled)| own == tiled.tiling());
            known.extents.iter().zip(tiled).all(|(own, tiled)| *own == tiled.tiling().extents())
                && known.tilings.as_deref().is_none_or(is_cut_so)
        };
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = last.as_ref().filter(is_for) {
            return Ok(known.clone());
        }
        let extents: Vec<Extents> = tiled.iter().map(|tiled| tiled.tiling().extents()).collect();
        let slices: Vec<&[usize]> = extents.iter().map(|extents| &extents[..]).collect();
        let cuts = |tiled: &&Tiled| tiled.tiling().axes().iter().map(cut_of).collect();
        let cuts: Vec<Vec<Option<AxisCut>>> = tiled.iter().map(cuts).collect();
        let (graph, outputs) = self.executor.graph_for_tiles(&slices, &cuts)?;
        let tilings = has_blocks.then(|| tiled.iter().map(|tiled| tiled.tiling().clone()).collect());
        Ok(last.insert(Arc::new(TiledGraph { extents, tilings, graph, outputs })).clone())
    }
}

/// Returns the cut of an axis; `None` if the axis is one tile.
fn cut_of(axis: &Tiling1) -> Option<AxisCut> {
    match axis.tile_size() {
        Some(size) if axis.tiles() > 1 => Some(AxisCut::Blocks(size)),
        Some(_) => None,
        None => Some(AxisCut::Boundaries(axis.boundaries().collect())),
    }
}

/// An evaluator, and the time limit of each run with it.
#[derive(Clone, Debug)]
pub(super) struct TimedEvaluator {
    /// The evaluator of runs without a time limit.
    pub(super) untimed: Evaluator,
    /// The options of which each run has a token of its own, if they have a time limit.
    options: Option<RunOptions>,
}

impl From<Evaluator> for TimedEvaluator {
    fn from(untimed: Evaluator) -> TimedEvaluator {
        TimedEvaluator { untimed, options: None }
    }
}

impl TimedEvaluator {
    /// Returns the evaluator with the token, the time limit, the threads and the most bytes that `options` sets.
    pub(super) fn within(self, options: &RunOptions) -> TimedEvaluator {
        let timed = options.run_time_limit().map(|_| options.clone());
        let token = if timed.is_some() { None } else { options.token() };
        let options_of_limit = timed.or(self.options.filter(|_| token.is_none()));
        let evaluator = token.into_iter().fold(self.untimed, Evaluator::cancellation);
        TimedEvaluator { untimed: with_resources(evaluator, options), options: options_of_limit }
    }

    /// Returns the evaluator with a change.
    pub(super) fn with(self, change: impl FnOnce(Evaluator) -> Evaluator) -> TimedEvaluator {
        TimedEvaluator { untimed: change(self.untimed), ..self }
    }

    /// Returns the evaluator of a run that begins now.
    pub(super) fn begin(&self) -> Cow<'_, Evaluator> {
        match self.options.as_ref().and_then(RunOptions::token) {
            None => Cow::Borrowed(&self.untimed),
            Some(token) => Cow::Owned(self.untimed.clone().cancellation(token)),
        }
    }
}

/// Returns the evaluator with the threads and the most bytes that `options` sets.
fn with_resources(evaluator: Evaluator, options: &RunOptions) -> Evaluator {
    let evaluator = options.thread_count().into_iter().fold(evaluator, Evaluator::threads);
    let most = options.run_limits().map(|limits| usize::try_from(limits.array_bytes).unwrap_or(usize::MAX));
    most.into_iter().fold(evaluator, Evaluator::most_bytes)
}

/// A model that is evaluated on tiled tensors. It keeps the graph of the last inputs, for inputs of the same extents.
#[derive(Debug)]
pub struct TiledSession {
    pub(super) evaluator: TimedEvaluator,
    pub(super) elements: Arc<cembra_engine::Evaluator>,
    pub(super) model: Arc<TiledModel>,
}

/// How the axes of labels are cut.
struct Labels<'l> {
    /// What the model says.
    cuts: BTreeMap<&'l str, &'l AxisCut>,
    /// The tilings that follow for data, as far as these were looked at.
    known: BTreeMap<&'l str, Tiling1>,
}

impl TiledSession {
    /// Sets the token that ends evaluations, the time limit of each, the number of their threads, and, by
    /// [`array_bytes`](crate::Limits::array_bytes), the most bytes that they may take.
    #[must_use]
    pub fn run_options(self, options: &RunOptions) -> TiledSession {
        TiledSession { evaluator: self.evaluator.within(options), ..self }
    }

    /// The evaluator of products, sums and functions, with the same options but the time limit, and on the same ranks.
    #[must_use]
    pub const fn evaluator(&self) -> &Evaluator {
        &self.evaluator.untimed
    }

    /// Evaluates the model on one tensor for each input, by name, and returns the outputs by name. The axes of an input `tiled[f64, "i,j"]` are cut
    /// as the model cuts their labels: `tile i = 8`, `tile j = [0, 17, 40]`. A label without `tile` is one tile, and so are the axes of an input
    /// `tensor[f64, 2]`. If a model says nothing of tiles, tensors keep the tiles that they have.
    ///
    /// ```
    /// use cembra::tensor::Tensor;
    /// use cembra::tiles::{Operand, Options, TileExecutor, World};
    /// use cembra::Model;
    ///
    /// let text = r#"
    ///     tile i, j, k = 2
    ///     input a: tiled[f64, "i,k"]
    ///     b("i,j") = a("i,k") * a("j,k")
    ///     output trace = b("i,i").sum()
    /// "#;
    /// let model = Model::parse(text)?.compile(&cembra::Options::default())?;
    /// let a = Tensor::new(&[3, 2], vec![1.0, 2.0, 0.0, 0.0, 0.0, 3.0])?;
    /// let made = model.tiled(&World::from_environment()?, Options::default())?.run([("a", Operand::Dense(&a))])?;
    /// assert_eq!(made["b"].tiling().tiles(), 4);
    /// assert_eq!(made["trace"].get::<f64>(&[])?, 14.0);
    /// // The model is one of dense tensors, too.
    /// assert_eq!(model.session().run_tensors(&[a])?[1].get::<f64>(&[])?, 14.0);
    /// # Ok::<(), cembra::Error>(())
    /// ```
    ///
    /// # Errors
    /// An input has no tensor, or one of another type or rank; an axis has another extent than the boundaries of its label, or than another axis
    /// of that label; a tiled tensor is cut otherwise; the model has other values than tensors; or those of
    /// [`Evaluator::evaluate`](cembra_tiles::Evaluator::evaluate).
    pub fn run<'o>(
        &self,
        inputs: impl IntoIterator<Item = (&'o str, Operand<'o>)>,
    ) -> Result<BTreeMap<String, Tiled>, Error> {
        self.run_from(inputs, BTreeMap::new(), |_| Ok(()))
    }

    /// Evaluates the model as [`run`](TiledSession::run) does, with some outputs known by name: from an evaluation of the same model on the same
    /// inputs that ended early. When an output is made, `after` is given all outputs up to now, and may keep them. If ranks share the evaluation, all
    /// of them call `after`.
    ///
    /// # Errors
    /// Those of [`run`](TiledSession::run); a known output is of another type or other extents; or those of `after`.
    pub fn run_from<'o>(
        &self,
        inputs: impl IntoIterator<Item = (&'o str, Operand<'o>)>,
        known: BTreeMap<String, Tiled>,
        mut after: impl FnMut(&BTreeMap<String, Tiled>) -> Result<(), Error>,
    ) -> Result<BTreeMap<String, Tiled>, Error> {
        let outputs = self.model.executor.outputs();
        let names: Vec<&str> = outputs.iter().map(|field| &*field.name).collect();
        let place = |name: &str| names.iter().position(|known| *known == name);
        let mut made = known;
        let places: Vec<(usize, Tiled)> =
            made.iter().filter_map(|(name, tiled)| Some((place(name)?, tiled.clone()))).collect();
        let mut after = |at: usize, tiled: &Tiled| {
            made.insert(names[at].to_owned(), tiled.clone());
            after(&made)
        };
        let resumed = Resumed { known: &places, after: &mut after };
        let known = inputs.into_iter().map(|(name, operand)| (name, Known::Operand(operand)));
        let evaluator = self.evaluator.begin();
        let bound = self.bound(known.collect()).map_err(|error| evaluator.give_up(error));
        let (graph, inputs) = bound?;
        let inputs: Vec<&Tiled> = inputs.iter().map(|tiled| &**tiled).collect();
        let host = self.elements.host();
        let made = evaluator.evaluate_from(&graph.graph, &graph.outputs, &inputs, &host, resumed)?;
        Ok(outputs.iter().map(|field| field.name.to_string()).zip(made).collect())
    }

    /// The steps that an evaluation of a model would take, from what is known of its inputs: with the tiles of each result, of all that its grid
    /// has, the bytes that they take, and of products how many products of tiles they are. No tile is made. An option that would be exceeded
    /// is the error that it would be.
    ///
    /// At a threshold of 0 the numbers are those that a [`Journal`](cembra_tiles::Journal) has of the evaluation. Above it there are no fewer
    /// tiles and products than there will be: an evaluation has true norms of intermediate results, and a plan upper estimates.
    ///
    /// ```
    /// use cembra::tiles::{Known, Options, StepKind, TileExecutor, World};
    /// use cembra::Model;
    ///
    /// let text = "tile i, j, k = 100; input a: tiled[f64, \"i,k\"]; b(\"i,j\") = a(\"i,k\") * a(\"k,j\")";
    /// let model = Model::parse(text)?.compile(&cembra::Options::default())?;
    /// let session = model.tiled(&World::from_environment()?, Options::default())?;
    /// let steps = session.plan([("a", Known::Extents(&[10_000, 10_000]))])?;
    /// // The axes of the second factor are turned first. Beside it, a thread holds sums of the second segment of a few tiles.
    /// assert_eq!(steps[0].work, StepKind::View);
    /// assert!((800_000_000..810_000_000).contains(&steps[1].held_bytes), "{}", steps[1].held_bytes);
    /// assert_eq!((steps[1].tiles, steps[1].bytes), (10_000, 800_000_000));
    /// assert_eq!(steps[1].work, StepKind::Product { products: 1_000_000, of: 1e6, operations: 2e12 });
    /// // One tile in ten.
    /// let part = Known::Part { extents: &[10_000, 10_000], part: 0.1, seed: 1 };
    /// let StepKind::Product { products, .. } = session.plan([("a", part)])?[1].work else { unreachable!() };
    /// assert!((8_000..12_000).contains(&products), "{products}");
    /// # Ok::<(), cembra::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`run`](TiledSession::run), except for the making of tiles; a part that is not from 0 to 1; or a tensor with more tiles than there
    /// may be.
    pub fn plan<'k>(&self, inputs: impl IntoIterator<Item = (&'k str, Known<'k>)>) -> Result<Vec<Step>, Error> {
        let (graph, inputs) = self.bound(inputs.into_iter().collect())?;
        let inputs: Vec<&Tiled> = inputs.iter().map(|tiled| &**tiled).collect();
        self.evaluator.begin().plan_graph(&graph.graph, &graph.outputs, &inputs, &self.elements.host())
    }

    /// Returns the graph of the model for inputs that are known as far as `given` says, and a tensor for each input, in the tiles that the model
    /// sets.
    fn bound<'k>(&self, given: BTreeMap<&str, Known<'k>>) -> Result<(Arc<TiledGraph>, Vec<Cow<'k, Tiled>>), Error> {
        let inputs = self.cut_all(given)?;
        let graph = self.model.graph_for(&inputs.iter().map(|tiled| &**tiled).collect::<Vec<&Tiled>>())?;
        Ok((graph, inputs))
    }

    /// The tensors for the inputs of a model, by name, in the tiles that the model says. Ranks that are threads can share them: they evaluate the model
    /// on the same tiles, and each does not cut its own.
    ///
    /// # Errors
    /// The errors of [`run`](TiledSession::run) that are about inputs.
    pub fn cut_inputs<'o>(
        &self,
        inputs: impl IntoIterator<Item = (&'o str, Operand<'o>)>,
    ) -> Result<BTreeMap<String, Tiled>, Error> {
        let known = inputs.into_iter().map(|(name, operand)| (name, Known::Operand(operand)));
        let cut = self.cut_all(known.collect())?;
        Ok((self.model.executor)
            .inputs()
            .iter()
            .map(|field| field.name.to_string())
            .zip(cut.into_iter().map(Cow::into_owned))
            .collect())
    }

    /// The inputs of a model, in their order, cut into the tiles that the model states.
    fn cut_all<'k>(&self, given: BTreeMap<&str, Known<'k>>) -> Result<Vec<Cow<'k, Tiled>>, Error> {
        let model = &self.model.executor;
        let mut labels = Labels { cuts: model.cuts().collect(), known: BTreeMap::new() };
        let mut inputs: Vec<Cow<'k, Tiled>> = Vec::with_capacity(model.inputs().len());
        let mut tiles = 0_usize;
        for field in model.inputs() {
            let name = Excerpt::quoted(&field.name);
            let Some(known) = given.get(&*field.name).copied() else {
                let message = format!("no tensor is given for `{name}`");
                return Err(Error::tensors(TensorErrorKind::UnknownName, message));
            };
            let options = self.evaluator().options().clone().beside_tiles(tiles)?;
            let cut = cut(model.is_tiled(), field, known, &mut labels, &options)?;
            tiles = tiles.saturating_add(if cut.is_lazy() { 0 } else { cut.shape().len() });
            inputs.push(cut);
        }
        Ok(inputs)
    }
}

/// Returns the tensor for an input, in the tiles of the input; a planned tensor if only a shape is known. `is_tiled` says that the text of the model
/// cuts tensors.
fn cut<'k, 'l>(
    is_tiled: bool,
    field: &'l Field,
    known: Known<'k>,
    labels: &mut Labels<'l>,
    options: &Options,
) -> Result<Cow<'k, Tiled>, Error> {
    let extents = known.extents();
    // A shape has no elements, so they are of the type that the input says.
    let scalar = match field.qtype {
        QType::Tensor(scalar, _) | QType::Scalar(scalar) | QType::Optional(scalar) => scalar,
        _ => Scalar::Float64,
    };
    let axes = match (&field.labels, known.tiling()) {
        (Some(own), _) => {
            // An input without labels has no axes.
            let own: Vec<&str> = own.split(',').filter(|label| !label.is_empty()).collect();
            if own.len() != extents.len() {
                let message = format!("input `{}` has {} axes", Excerpt::quoted(&field.name), own.len());
                let message = format!("{message}, and the tensor {}", extents.len());
                return Err(Error::tensors(TensorErrorKind::RankMismatch, message));
            }
            let axes = own.into_iter().zip(&*extents);
            axes.map(|(label, extent)| labels.tiling(field, label, *extent)).collect()
        }
        (None, Some(tiling)) if !is_tiled => Ok(tiling.axes().to_vec()),
        (None, _) => extents.iter().map(|extent| one_tile(*extent)).collect::<Result<Vec<_>, _>>(),
    }?;
    let tiling = Tiling::new(axes)?;
    if let Some(own) = known.tiling().filter(|own| **own != tiling) {
        let name = Excerpt::quoted(&field.name);
        let message = format!("input `{name}` is cut at {tiling:?}, and the tensor at {own:?}");
        let error = Error::tensors(TensorErrorKind::SizeMismatch, message);
        return Err(error.hint("cut the tensor anew by `Tiled::retile`"));
    }
    let most_tiles = || options.screening(scalar).map(|screening| screening.most_tiles);
    match known {
        Known::Operand(Operand::Tiled(tiled)) => Ok(Cow::Borrowed(tiled)),
        Known::Shape(shape) => Tiled::planned(shape, scalar).map(Cow::Owned),
        Known::Extents(_) => Tiled::planned(&Shape::dense(&tiling, most_tiles()?)?, scalar).map(Cow::Owned),
        Known::Part { part, seed, .. } => {
            Tiled::planned(&Shape::random(&tiling, part, seed, most_tiles()?)?, scalar).map(Cow::Owned)
        }
        Known::Operand(Operand::Dense(tensor)) => {
            let screening = match tensor.extents() {
                // A tensor without axes is not screened.
                [] => Screening::threshold(0.0),
                _ => options.screening(tensor.scalar_type())?,
            };
            Tiled::from_tensor(tensor, &tiling, &screening).map(Cow::Owned)
        }
    }
}

impl<'l> Labels<'l> {
    /// The tiling of an axis with this label, which has `extent` elements in the tensor for an input.
    fn tiling(&mut self, field: &Field, label: &'l str, extent: usize) -> Result<Tiling1, Error> {
        let tiling = match (self.known.get(label), self.cuts.get(label)) {
            (Some(known), _) => known.clone(),
            (None, None) => one_tile(extent)?,
            (None, Some(AxisCut::Blocks(size))) => Tiling1::blocked(extent as u64, *size)?,
            (None, Some(AxisCut::Boundaries(boundaries))) => Tiling1::new(boundaries.iter().copied())?,
        };
        if tiling.extent() != extent {
            let (label, name) = (Excerpt::quoted(label), Excerpt::quoted(&field.name));
            let message =
                format!("the label `{label}` has {} indices, and {extent} in input `{name}`", tiling.extent());
            return Err(Error::tensors(TensorErrorKind::SizeMismatch, message));
        }
        self.known.insert(label, tiling.clone());
        Ok(tiling)
    }
}

/// An axis that is one tile.
fn one_tile(extent: usize) -> Result<Tiling1, Error> {
    Tiling1::blocked(extent as u64, (extent as u64).max(1))
}
