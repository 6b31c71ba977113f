//! Sessions for models whose text cuts tensors into tiles: `tile i, j = 8`, and inputs `tiled[f64, "i,j"]`. This module
//! cuts dense input tensors into tiles as the text says, and checks that input tensors in tiles have that tiling
//! already. The compiler has checked that all labels of one axis have the same tiling.

use super::parts::{Evaluation, TiledModel, TiledValue, is_float_number, is_tensor, of_number, one_tile};
use crate::program::AxisCut;
use crate::{Error, Field, QType, RunOptions, Scalar, Value};
use cembra_runtime::Excerpt;
use cembra_tensor::{Tensor, TensorErrorKind};
use cembra_tiles::{Evaluator, Options, Screening, Shape, Step, Tiled, Tiling, Tiling1};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A value for an input of a model that is evaluated in tiles.
#[derive(Clone, Copy, Debug)]
pub enum Operand<'o> {
    /// The input is a tensor in tiles.
    Tiled(&'o Tiled),
    /// The input is a dense tensor, which is cut into tiles as the model says. A number is a tensor without axes.
    Dense(&'o Tensor),
    /// The input is a value of any type: a text, an optional number, an array. For an optional input, the value may be of the plain type. A tensor is
    /// cut like `Dense`.
    Value(&'o Value),
}

impl<'o> From<&'o Value> for Operand<'o> {
    fn from(value: &'o Value) -> Operand<'o> {
        Operand::Value(value)
    }
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

/// The information on an input tensor from which an evaluation in tiles is planned.
#[derive(Clone, Copy, Debug)]
pub enum TensorInformation<'k> {
    /// The tensor itself is known, as a tensor in tiles, a dense tensor or a value.
    Operand(Operand<'k>),
    /// The tensor's shape is known: the tiles that are present, and their norms.
    Shape(&'k Shape),
    /// Only the number of elements on each axis is known. All tiles count as present, with unknown norms. A number has no axes.
    Extents(&'k [usize]),
    /// The number of elements on each axis, and the fraction of tiles that are present, are known. These tiles are chosen at random, as in
    /// [`Shape::random`].
    Part {
        /// The number of elements on each axis of the tensor.
        extents: &'k [usize],
        /// The fraction of the tensor's tiles that is present, from 0 to 1.
        part: f64,
        /// The seed for choosing the tiles that are present.
        seed: u64,
    },
}

impl<'k> From<Operand<'k>> for TensorInformation<'k> {
    fn from(operand: Operand<'k>) -> TensorInformation<'k> {
        TensorInformation::Operand(operand)
    }
}

impl<'k> From<&'k Tiled> for TensorInformation<'k> {
    fn from(tiled: &'k Tiled) -> TensorInformation<'k> {
        TensorInformation::Operand(tiled.into())
    }
}

impl<'k> From<&'k Tensor> for TensorInformation<'k> {
    fn from(tensor: &'k Tensor) -> TensorInformation<'k> {
        TensorInformation::Operand(tensor.into())
    }
}

impl<'k> From<&'k Shape> for TensorInformation<'k> {
    fn from(shape: &'k Shape) -> TensorInformation<'k> {
        TensorInformation::Shape(shape)
    }
}

impl<'k> TensorInformation<'k> {
    /// Returns the number of elements on each axis.
    fn extents(&self) -> Cow<'k, [usize]> {
        match *self {
            TensorInformation::Operand(Operand::Tiled(tiled)) => tiled.tiling().extents().to_vec().into(),
            TensorInformation::Operand(Operand::Dense(tensor)) => tensor.extents().into(),
            TensorInformation::Operand(Operand::Value(Value::Tensor(tensor))) => tensor.extents().into(),
            TensorInformation::Operand(Operand::Value(_)) => Cow::Borrowed(&[]),
            TensorInformation::Shape(shape) => shape.tiling().extents().to_vec().into(),
            TensorInformation::Extents(extents) | TensorInformation::Part { extents, .. } => extents.into(),
        }
    }

    /// Returns the tensor's tiling; `None` if it is a dense tensor, or only its extents are known.
    fn tiling(&self) -> Option<&'k Tiling> {
        match *self {
            TensorInformation::Operand(Operand::Tiled(tiled)) => Some(tiled.tiling()),
            TensorInformation::Shape(shape) => Some(shape.tiling()),
            _ => None,
        }
    }
}

/// An evaluator for tiled tensors, with a time limit for each run.
#[derive(Clone, Debug)]
pub(super) struct TimedEvaluator {
    /// The evaluator for runs without a time limit.
    pub(super) untimed: Evaluator,
    /// The options from which each run gets a new token with the time limit; `None` if there is no time limit.
    options: Option<RunOptions>,
    /// The limits and threads for evaluating values that are not tensors.
    pub(super) beside: RunOptions,
}

impl From<Evaluator> for TimedEvaluator {
    fn from(untimed: Evaluator) -> TimedEvaluator {
        TimedEvaluator { untimed, options: None, beside: RunOptions::new() }
    }
}

impl TimedEvaluator {
    /// Returns this evaluator with the token, the time limit, the number of threads and the limit on bytes from `options`.
    pub(super) fn within(self, options: &RunOptions) -> TimedEvaluator {
        let timed = options.run_time_limit().map(|_| options.clone());
        let token = if timed.is_some() { None } else { options.token() };
        let options_of_limit = timed.or(self.options.filter(|_| token.is_none()));
        let evaluator = token.into_iter().fold(self.untimed, Evaluator::cancellation);
        let beside = options.run_limits().copied().into_iter().fold(self.beside, RunOptions::limits);
        let beside = options.thread_count().into_iter().fold(beside, RunOptions::threads);
        TimedEvaluator { untimed: with_resources(evaluator, options), options: options_of_limit, beside }
    }

    /// Returns this evaluator, with its options changed by `change`.
    pub(super) fn with(self, change: impl FnOnce(Evaluator) -> Evaluator) -> TimedEvaluator {
        TimedEvaluator { untimed: change(self.untimed), ..self }
    }

    /// Returns an evaluator for a run that begins now: its time limit starts.
    pub(super) fn begin(&self) -> Cow<'_, Evaluator> {
        match self.options.as_ref().and_then(RunOptions::token) {
            None => Cow::Borrowed(&self.untimed),
            Some(token) => Cow::Owned(self.untimed.clone().cancellation(token)),
        }
    }
}

/// Returns the evaluator with the threads and the most bytes of `options`.
fn with_resources(evaluator: Evaluator, options: &RunOptions) -> Evaluator {
    let evaluator = options.thread_count().into_iter().fold(evaluator, Evaluator::threads);
    let most = options.run_limits().map(|limits| usize::try_from(limits.array_bytes).unwrap_or(usize::MAX));
    most.into_iter().fold(evaluator, Evaluator::most_bytes)
}

/// Evaluates a model on tiled tensors. The session caches the graph of the last inputs, for inputs of the same extents.
///
/// A model may have other values besides tensors: optional values, texts, arrays. Each rank evaluates the values that tensors depend on before the
/// tensors, and the values that depend on tensors after them. A tensor of one axis that is used as an array is collected on each rank.
#[derive(Debug)]
pub struct TiledSession {
    pub(super) evaluator: TimedEvaluator,
    pub(super) elements: Arc<cembra_engine::Evaluator>,
    pub(super) model: Arc<TiledModel>,
}

/// The tilings of axes with labels, such as `i` in `a("i,k")`: those that the model's `tile` lines set, and those of
/// the input tensors so far.
struct Labels<'l> {
    /// The division of axes into tiles that the model's `tile` lines set, by label.
    cuts: BTreeMap<&'l str, &'l AxisCut>,
    /// The tilings of the input tensors so far, by label. A later tensor with one of these labels must have the same
    /// extent.
    known: BTreeMap<&'l str, Tiling1>,
}

impl TiledSession {
    /// Sets the token that ends evaluations, the time limit for each evaluation, and the number of threads. Also sets the most bytes for an
    /// evaluation to the limit [`array_bytes`](crate::Limits::array_bytes) of `options`.
    #[must_use]
    pub fn run_options(self, options: &RunOptions) -> TiledSession {
        TiledSession { evaluator: self.evaluator.within(options), ..self }
    }

    /// Returns an evaluator for single products, sums and functions of tiled tensors. It has the same ranks as this session, and the same options
    /// except the time limit.
    #[must_use]
    pub const fn evaluator(&self) -> &Evaluator {
        &self.evaluator.untimed
    }

    /// Evaluates the model. `inputs` are pairs of an input's name and its tensor; the outputs are returned by name. The model's `tile` lines cut the
    /// axes of an input `tiled[f64, "i,j"]`: `tile i = 8`, `tile j = [0, 17, 40]`. An axis whose label has no `tile` line is one tile, and so is each
    /// axis of an input `tensor[f64, 2]`. In a model without tiles, tensors keep their tilings. For outputs of other types, see
    /// [`evaluate`](TiledSession::evaluate).
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
    /// If an output is neither a tensor nor a number of type `f32` or `f64`; and the errors of [`evaluate`](TiledSession::evaluate).
    pub fn run<'o>(
        &self,
        inputs: impl IntoIterator<Item = (&'o str, Operand<'o>)>,
    ) -> Result<BTreeMap<String, Tiled>, Error> {
        self.run_from(inputs, BTreeMap::new(), |_| Ok(()))
    }

    /// Evaluates the model as [`run`](TiledSession::run) does, but does not compute the outputs in `known`. The outputs in `known` must come from an
    /// earlier evaluation on the same inputs, for example one that ended early. After each new output, `after` gets all outputs so far, and may save
    /// them. If several ranks (processes or threads) share the evaluation, each rank calls `after`.
    ///
    /// # Errors
    /// The errors of [`run`](TiledSession::run), and those of `after`. Also if an output in `known` does not have the type or the extents of the
    /// model's output.
    pub fn run_from<'o>(
        &self,
        inputs: impl IntoIterator<Item = (&'o str, Operand<'o>)>,
        known: BTreeMap<String, Tiled>,
        after: impl FnMut(&BTreeMap<String, Tiled>) -> Result<(), Error>,
    ) -> Result<BTreeMap<String, Tiled>, Error> {
        if let Some(field) = self.model.executor.outputs().iter().find(|field| !is_tensor(&field.qtype)) {
            let message = format!("output `{}` is {}", Excerpt::quoted(&field.name), field.spelled_type());
            let error =
                Error::tensors(TensorErrorKind::ElementType, format!("{message}, which cannot become a tensor"));
            return Err(self
                .evaluator()
                .give_up(error.hint("in Rust, call `TiledSession::evaluate`, which returns outputs of all types")));
        }
        let made = self.evaluate_from(inputs, known, after)?;
        made.into_iter().map(|(name, value)| Ok((name, value.into_tiled()?))).collect()
    }

    /// Evaluates the model as [`run`](TiledSession::run) does, and returns outputs of all types by name: tensors in tiles, and other values
    /// unchanged.
    ///
    /// ```
    /// use cembra::tensor::Tensor;
    /// use cembra::tiles::{Operand, Options, TileExecutor, World};
    /// use cembra::{Model, Value};
    ///
    /// let text = r#"
    ///     tile i = 2
    ///     input a: tiled[f64, "i"], n: f64?, s: text
    ///     let by = if s == "double" then 2.0 else 1.0
    ///     output b = a * by * (n ?? 1.0)
    ///     output said = strings.join(s, if tensor.sum(b) > 10.0 then ": many" else ": few")
    /// "#;
    /// let model = Model::parse(text)?.compile(&cembra::Options::default())?;
    /// let (a, s) = (Tensor::new(&[3], vec![1.0, 2.0, 3.0])?, Value::from("double"));
    /// let session = model.tiled(&World::alone(), Options::default())?;
    /// let made = session.evaluate([("a", Operand::Dense(&a)), ("s", (&s).into())])?;
    /// assert_eq!(made["b"].to_value()?, Value::from(Tensor::new(&[3], vec![2.0, 4.0, 6.0])?));
    /// assert_eq!(made["said"].to_value()?, Value::from("double: many"));
    /// # Ok::<(), cembra::Error>(())
    /// ```
    ///
    /// # Errors
    /// If an input has no value, unless it is optional or has a default; or if the value does not have the type or rank of the input. If the extent
    /// of an axis differs from the `tile` boundaries of its label, or from another axis with that label. If a tiled tensor does not have the tiling
    /// of its input. If the model has no tensors, if ranks get different values, if the evaluation of a value that is not a tensor fails, or if
    /// [`Evaluator::evaluate`](cembra_tiles::Evaluator::evaluate) fails.
    pub fn evaluate<'o>(
        &self,
        inputs: impl IntoIterator<Item = (&'o str, Operand<'o>)>,
    ) -> Result<BTreeMap<String, TiledValue>, Error> {
        self.evaluate_from(inputs, BTreeMap::new(), |_| Ok(()))
    }

    /// Evaluates the model as [`evaluate`](TiledSession::evaluate) does, but does not compute the tensors in `known`; see
    /// [`run_from`](TiledSession::run_from). `after` gets the outputs that are tensors.
    ///
    /// # Errors
    /// The errors of [`evaluate`](TiledSession::evaluate), and those of `after`. Also if an output in `known` does not have the type or the extents
    /// of the model's output.
    pub fn evaluate_from<'o>(
        &self,
        inputs: impl IntoIterator<Item = (&'o str, Operand<'o>)>,
        known: BTreeMap<String, Tiled>,
        mut after: impl FnMut(&BTreeMap<String, Tiled>) -> Result<(), Error>,
    ) -> Result<BTreeMap<String, TiledValue>, Error> {
        let inputs = inputs.into_iter().map(|(name, operand)| (name, TensorInformation::Operand(operand)));
        let begun = self.evaluator.begin();
        let inputs = self.inputs(inputs.collect(), false).map_err(|error| begun.give_up(error))?;
        let evaluation = Evaluation::new(&begun, &self.elements, &self.evaluator.beside);
        let made = evaluation.known(known, &mut after).evaluate(&self.model, &inputs)?;
        Ok(self.model.executor.outputs().iter().map(|field| field.name.to_string()).zip(made).collect())
    }

    /// Returns the steps that an evaluation would take, from partial information on its inputs. A step tells the number of tiles and bytes of its
    /// result, and a product also the number of products of tiles. No tile is computed. If the evaluation would exceed a limit of the options,
    /// planning it is an error too.
    ///
    /// With a threshold of 0, the numbers equal those that a [`Journal`](cembra_tiles::Journal) records of the evaluation. With a larger threshold,
    /// the numbers are upper bounds, because an evaluation knows the true norms of intermediate results, but a plan knows only upper bounds of the
    /// norms.
    ///
    /// ```
    /// use cembra::tiles::{TensorInformation, Options, StepKind, TileExecutor, World};
    /// use cembra::Model;
    ///
    /// let text = "tile i, j, k = 100; input a: tiled[f64, \"i,k\"]; b(\"i,j\") = a(\"i,k\") * a(\"k,j\")";
    /// let model = Model::parse(text)?.compile(&cembra::Options::default())?;
    /// let session = model.tiled(&World::from_environment()?, Options::default())?;
    /// let steps = session.plan([("a", TensorInformation::Extents(&[10_000, 10_000]))])?;
    /// // The axes of the second factor are turned first. Beside it, a thread holds sums of the second segment of a few tiles.
    /// assert_eq!(steps[0].work, StepKind::View);
    /// assert!((800_000_000..810_000_000).contains(&steps[1].held_bytes), "{}", steps[1].held_bytes);
    /// assert_eq!((steps[1].tiles, steps[1].bytes), (10_000, 800_000_000));
    /// assert_eq!(steps[1].work, StepKind::Product { products: 1_000_000, of: 1e6, operations: 2e12 });
    /// // One tile in ten.
    /// let part = TensorInformation::Part { extents: &[10_000, 10_000], part: 0.1, seed: 1 };
    /// let StepKind::Product { products, .. } = session.plan([("a", part)])?[1].work else { unreachable!() };
    /// assert!((8_000..12_000).contains(&products), "{products}");
    /// # Ok::<(), cembra::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`evaluate`](TiledSession::evaluate), except those of computing tiles. Also if the fraction in a [`TensorInformation::Part`] is
    /// not from 0 to 1, or a tensor has too many tiles. Also if a tensor depends on a value that is not a tensor, and this value depends on an
    /// unknown value or on a tensor.
    pub fn plan<'k>(
        &self,
        inputs: impl IntoIterator<Item = (&'k str, TensorInformation<'k>)>,
    ) -> Result<Vec<Step>, Error> {
        let inputs = self.inputs(inputs.into_iter().collect(), true)?;
        let begun = self.evaluator.begin();
        Evaluation::new(&begun, &self.elements, &self.evaluator.beside).plan(&self.model, &inputs)
    }

    /// Returns by name the input tensors, and numbers of type `f32` and `f64`, cut into tiles as the model says. If ranks are threads, they can share
    /// these tensors, so that each rank need not cut the inputs again. Values of other types must be passed separately.
    ///
    /// # Errors
    /// The errors of [`run`](TiledSession::run) that concern inputs.
    pub fn cut_inputs<'o>(
        &self,
        inputs: impl IntoIterator<Item = (&'o str, Operand<'o>)>,
    ) -> Result<BTreeMap<String, Tiled>, Error> {
        let known = inputs.into_iter().map(|(name, operand)| (name, TensorInformation::Operand(operand)));
        let cut = self.inputs(known.collect(), false)?;
        let names = self.model.executor.inputs().iter().map(|field| field.name.to_string());
        let tiled = |(name, value): (String, TiledValue)| match value {
            TiledValue::Tiled(tiled) => Some(Ok((name, tiled))),
            TiledValue::Value(Value::Scalar(number)) if is_float_number(&number) => {
                Some(of_number(&number).map(|tiled| (name, tiled)))
            }
            TiledValue::Value(_) => None,
        };
        names.zip(cut).filter_map(tiled).collect()
    }

    /// Returns the inputs of a model in order: tensors cut as the model says, other values unchanged. For a plan (`is_plan`), values may be unknown.
    fn inputs(&self, given: BTreeMap<&str, TensorInformation<'_>>, is_plan: bool) -> Result<Vec<TiledValue>, Error> {
        let model = &self.model.executor;
        // Fails if the model has no tensors.
        model.tensor_evaluator()?;
        let mut labels = Labels { cuts: model.cuts().collect(), known: BTreeMap::new() };
        let mut inputs = Vec::with_capacity(model.inputs().len());
        let mut tiles = 0_usize;
        for field in model.inputs() {
            let known = given.get(&*field.name).copied();
            if let Some(value) = other_value(field, known)? {
                inputs.push(TiledValue::Value(value));
                continue;
            }
            let is_whole = matches!(field.qtype, QType::Tensor(..));
            let Some(known) = known.filter(|_| is_tensor(&field.qtype)) else {
                if is_plan && !is_whole {
                    inputs.push(TiledValue::unknown()?);
                    continue;
                }
                let what = if is_whole { "tensor" } else { "value" };
                let message = format!("no {what} is given for `{}`", Excerpt::quoted(&field.name));
                return Err(Error::tensors(TensorErrorKind::UnknownName, message));
            };
            let options = self.evaluator().options().clone().beside_tiles(tiles)?;
            let cut = cut(model.is_tiled(), field, known, &mut labels, &options)?;
            tiles = tiles.saturating_add(if cut.is_lazy() { 0 } else { cut.shape().len() });
            inputs.push(TiledValue::Tiled(cut.into_owned()));
        }
        Ok(inputs)
    }
}

/// Returns the value of an input that is not a tensor. `None` for a tensor, and for an unknown value. An optional input may be left out.
fn other_value(field: &Field, known: Option<TensorInformation<'_>>) -> Result<Option<Value>, Error> {
    let value = match (&field.qtype, known) {
        (QType::Tensor(..), _) => return Ok(None),
        (QType::Optional(scalar), Some(TensorInformation::Operand(Operand::Value(Value::Scalar(number)))))
            if number.scalar() == *scalar =>
        {
            Value::Present(number.clone())
        }
        (_, Some(TensorInformation::Operand(Operand::Value(value)))) => value.clone(),
        (_, Some(TensorInformation::Operand(Operand::Dense(tensor)))) => field.value_of(tensor)?,
        (_, Some(TensorInformation::Operand(Operand::Tiled(tiled)))) if tiled.is_planned() => return Ok(None),
        (_, Some(TensorInformation::Operand(Operand::Tiled(tiled)))) => field.value_of(&tiled.to_tensor()?)?,
        (_, Some(_)) => return Ok(None),
        (QType::Optional(scalar), None) => return Ok(Some(Value::Missing(*scalar))),
        (_, None) => return Ok(field.left_out()),
    };
    if value.is_of(&field.qtype) { Ok(Some(value)) } else { Err(field.misfit(&value)) }
}

/// Returns the tensor for the input `field`, cut into tiles as the model's text requires. If only a shape or extents
/// are known, the result is a planned tensor, which has no elements. `is_tiled` is true if the model's text cuts
/// tensors; otherwise tensors keep their tiling.
fn cut<'k, 'l>(
    is_tiled: bool,
    field: &'l Field,
    known: TensorInformation<'k>,
    labels: &mut Labels<'l>,
    options: &Options,
) -> Result<Cow<'k, Tiled>, Error> {
    let extents = known.extents();
    // A shape has no elements, so the input determines the element type.
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
                let message = format!("{message}, but the tensor has {}", extents.len());
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
        let message =
            format!("input `{name}` is declared with the tiling {tiling:?}, but the given tensor has {own:?}");
        let error = Error::tensors(TensorErrorKind::SizeMismatch, message);
        return Err(error.hint("in Rust, cut the tensor again by `Tiled::retile`"));
    }
    let most_tiles = || options.screening(scalar).map(|screening| screening.most_tiles);
    let of_tensor = |tensor: &Tensor| {
        let screening = match tensor.extents() {
            // A tensor without axes is not screened.
            [] => Screening::threshold(0.0),
            _ => options.screening(tensor.scalar_type())?,
        };
        Tiled::from_tensor(tensor, &tiling, &screening).map(Cow::Owned)
    };
    match known {
        TensorInformation::Operand(Operand::Tiled(tiled)) => Ok(Cow::Borrowed(tiled)),
        TensorInformation::Shape(shape) => Tiled::planned(shape, scalar).map(Cow::Owned),
        TensorInformation::Extents(_) => Tiled::planned(&Shape::dense(&tiling, most_tiles()?)?, scalar).map(Cow::Owned),
        TensorInformation::Part { part, seed, .. } => {
            Tiled::planned(&Shape::random(&tiling, part, seed, most_tiles()?)?, scalar).map(Cow::Owned)
        }
        TensorInformation::Operand(Operand::Dense(tensor)) => of_tensor(tensor),
        TensorInformation::Operand(Operand::Value(Value::Tensor(tensor))) => of_tensor(tensor),
        TensorInformation::Operand(Operand::Value(other)) => Err(field.misfit(other)),
    }
}

impl<'l> Labels<'l> {
    /// Returns the tiling for an axis with the label `label` that has `extent` elements.
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
                format!("the label `{label}` has {} indices, but {extent} in input `{name}`", tiling.extent());
            return Err(Error::tensors(TensorErrorKind::SizeMismatch, message));
        }
        self.known.insert(label, tiling.clone());
        Ok(tiling)
    }
}
