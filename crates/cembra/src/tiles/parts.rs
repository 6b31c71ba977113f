//! Evaluates compiled models on tiled tensors. A model with only tensors is evaluated as a whole. A model that also has
//! other values, such as texts, is split into up to three parts (groups of values), which are evaluated one after the
//! other: the values that tensors depend on, the tensors, and the values that depend on tensors. The last part may
//! contain tensors again. Each rank (process or thread of the run) evaluates parts without tensors on its own.
//!
//! The file `session.rs` cuts inputs into tiles, and `cembra-engine` splits programs into parts.

use crate::program::AxisCut;
use crate::{Error, Executor, Field, QType, RunOptions, Scalar, Value};
use cembra_engine::{MixedModel, ModelPart, PartInput, hash_of};
use cembra_runtime::Excerpt;
use cembra_tensor::{Extents, TensorErrorKind, TensorGraph, TensorNodeId, check_bytes};
use cembra_tiles::{Evaluator, ResumeState, Screening, Shape, Step, Tiled, Tiling, Tiling1};
use cembra_value::{ScalarValue, Span};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// An output, or another value, of a model that is evaluated in tiles.
#[derive(Clone, Debug)]
pub enum TiledValue {
    /// The value is a tensor in tiles. A number that is computed with the tensors is a tensor without axes.
    Tiled(Tiled),
    /// The value is of another type: a text, an optional value, an array, a number.
    Value(Value),
}

impl TiledValue {
    /// Returns the placeholder for an input whose value is not known when an evaluation is planned: a planned tensor
    /// without axes.
    pub(super) fn unknown() -> Result<TiledValue, Error> {
        let tiling = Tiling::new(std::iter::empty::<Tiling1>())?;
        Tiled::planned(&Shape::dense(&tiling, 1)?, Scalar::Float64).map(TiledValue::Tiled)
    }

    /// Converts this value to a [`Value`]. A tensor without axes becomes a number. If several ranks (processes) share a tensor, each rank has only
    /// its own tiles, so [`Evaluator::gathered`] must collect them first.
    ///
    /// # Errors
    /// If a lazy tile cannot be computed, or this rank lacks a tile.
    pub fn to_value(&self) -> Result<Value, Error> {
        match self {
            TiledValue::Value(value) => Ok(value.clone()),
            TiledValue::Tiled(tiled) if tiled.tiling().rank() == 0 => match tiled.scalar_type() {
                Scalar::Float32 => tiled.get::<f32>(&[]).map(Value::from),
                _ => tiled.get::<f64>(&[]).map(Value::from),
            },
            TiledValue::Tiled(tiled) => tiled.to_tensor().map(Value::from),
        }
    }

    /// Converts this value to a tiled tensor. A number of type `f32` or `f64` becomes a tensor without axes.
    ///
    /// # Errors
    /// If the value is of another type.
    pub fn into_tiled(self) -> Result<Tiled, Error> {
        match self {
            TiledValue::Tiled(tiled) => Ok(tiled),
            TiledValue::Value(Value::Scalar(number)) if is_float_number(&number) => of_number(&number),
            TiledValue::Value(other) => {
                let message = format!("a value of type {} is given where a tensor is needed", other.qtype());
                Err(Error::tensors(TensorErrorKind::ElementType, message))
            }
        }
    }
}

/// Returns the tiling that has the whole axis, of extent `extent`, in one tile.
pub(super) fn one_tile(extent: usize) -> Result<Tiling1, Error> {
    Tiling1::blocked(extent as u64, (extent as u64).max(1))
}

/// Returns true if values of the type `qtype` are represented by tensors in tiles. A float is a tensor without axes.
pub(super) fn is_tensor(qtype: &QType) -> bool {
    match qtype {
        QType::Tensor(..) => true,
        QType::Scalar(scalar) => scalar.is_float(),
        _ => false,
    }
}

/// Returns true if the number is of a type that elements of tiles may have: `f32` or `f64`.
pub(super) fn is_float_number(number: &ScalarValue) -> bool {
    matches!(number.scalar(), Scalar::Float32 | Scalar::Float64)
}

/// Converts a number of type `f32` or `f64` to a tensor without axes.
pub(super) fn of_number(number: &ScalarValue) -> Result<Tiled, Error> {
    let tiling = Tiling::new(std::iter::empty::<Tiling1>())?;
    Tiled::from_tensor(&cembra_tensor::Tensor::of_value(number)?, &tiling, &Screening::threshold(0.0))
}

/// A compiled model, or a part of a model (a group of its values), that is evaluated in tiles.
#[derive(Debug)]
pub(super) struct TiledModel {
    pub(super) executor: Executor,
    kind: Kind,
}

/// The way to evaluate a model or a part of it (a group of its values): on tiles, as plain values, or part by part.
#[derive(Debug)]
enum Kind {
    /// The part has only tensors and is evaluated on tiles. The graph for the last inputs is cached. Inputs with the same extents reuse the graph if
    /// it does not depend on tilings, or if the tilings are the same too.
    Tensors(Mutex<Option<Arc<TiledGraph>>>),
    /// The part has no tensors. Every rank evaluates it like a model without tensors.
    Values,
    /// The model has several parts, which are evaluated one after the other.
    Parts(Box<TiledParts>),
}

/// The parts of a model (groups of its values), in the order of their evaluation.
#[derive(Debug)]
struct TiledParts {
    before: Option<TiledPart>,
    tensors: Option<TiledPart>,
    after: Option<TiledPart>,
}

/// A part of a model (a group of its values), and the source of each of its inputs.
#[derive(Debug)]
struct TiledPart {
    model: TiledModel,
    inputs: Vec<PartInput>,
}

/// The graph of a model for given extents, and for given values of the number inputs that tiles cannot hold.
#[derive(Debug)]
struct TiledGraph {
    extents: Vec<Extents>,
    numbers: Vec<Option<ScalarValue>>,
    /// The tiling of each input; `None` if the graph does not depend on tilings.
    tilings: Option<Vec<Tiling>>,
    graph: TensorGraph,
    outputs: Vec<TensorNodeId>,
}

/// A tensor graph that is bound to inputs, and the tensors for its leaves.
type Bound = (Arc<TiledGraph>, Vec<Tiled>);

impl TiledModel {
    pub(super) fn new(executor: Executor) -> TiledModel {
        let part = |part: &Option<ModelPart>| {
            let part = part.as_ref()?;
            Some(TiledPart { model: TiledModel::new(part.executor()), inputs: part.inputs().to_vec() })
        };
        let parts = |mixed: &MixedModel| TiledParts {
            before: part(&mixed.before),
            tensors: part(&mixed.tensors),
            after: part(&mixed.after),
        };
        let kind = match executor.parts() {
            Some(mixed) => Kind::Parts(parts(mixed).into()),
            None if executor.is_of_tensors() => Kind::Tensors(Mutex::default()),
            None => Kind::Values,
        };
        TiledModel { executor, kind }
    }
}

/// The value of an input, for one part of a model (a group of its values). If an earlier part computed the value,
/// `span` is the value's place in the text.
#[derive(Clone, Copy)]
struct InputValue<'v> {
    value: &'v TiledValue,
    span: Option<Span>,
}

impl InputValue<'_> {
    /// Returns the error at the value's place in the text, if it has one.
    fn at(&self, error: Error) -> Error {
        self.span.map_or(error.clone(), |span| error.at(span))
    }
}

impl TiledPart {
    /// Selects the inputs of this part of the model. They are among `inputs`, the inputs of the whole model, and
    /// `before`, the outputs of the previous part.
    fn given<'v>(&self, inputs: &[InputValue<'v>], before: &'v [TiledValue]) -> Vec<InputValue<'v>> {
        let given = |from: &PartInput| match *from {
            PartInput::OfModel(at) => inputs.get(at).copied(),
            PartInput::OfPart { at, span } => before.get(at).map(|value| InputValue { value, span: Some(span) }),
        };
        self.inputs.iter().filter_map(given).collect()
    }
}

/// A callback that gets all output tensors that are known so far, after each new one. Its error ends the evaluation.
type After<'e> = dyn FnMut(&BTreeMap<String, Tiled>) -> Result<(), Error> + 'e;

/// A run of a model in tiles: the evaluator, and the outputs so far.
pub(super) struct Evaluation<'e> {
    evaluator: &'e Evaluator,
    elements: &'e cembra_engine::Evaluator,
    /// The run options for evaluating values that are not tensors.
    beside: RunOptions,
    /// The output tensors that are known or computed so far, by name.
    made: BTreeMap<String, Tiled>,
    after: Option<&'e mut After<'e>>,
}

impl<'e> Evaluation<'e> {
    /// Begins a run of a model in tiles. `evaluator` must have been started for the run. `beside` has the threads and limits for values that are not
    /// tensors.
    pub(super) fn new(
        evaluator: &'e Evaluator,
        elements: &'e cembra_engine::Evaluator,
        beside: &RunOptions,
    ) -> Evaluation<'e> {
        let beside = beside.clone().cancellation(evaluator.token().cloned());
        Evaluation { evaluator, elements, beside, made: BTreeMap::new(), after: None }
    }

    /// Sets the outputs that are known already. After each new output tensor, the callback `after` gets all output tensors that are known.
    pub(super) fn known(self, made: BTreeMap<String, Tiled>, after: &'e mut After<'e>) -> Evaluation<'e> {
        Evaluation { made, after: Some(after), ..self }
    }

    /// Evaluates the model `model` in this run. `inputs` has one value per input. Returns the outputs.
    pub(super) fn evaluate(&mut self, model: &TiledModel, inputs: &[TiledValue]) -> Result<Vec<TiledValue>, Error> {
        let given: Vec<InputValue<'_>> = inputs.iter().map(|value| InputValue { value, span: None }).collect();
        self.outputs(model, &given)
    }

    /// Evaluates a model, or one part of a model, and returns its outputs. The recursion is bounded, because the depth
    /// of parts within parts is limited.
    fn outputs(&mut self, model: &TiledModel, inputs: &[InputValue<'_>]) -> Result<Vec<TiledValue>, Error> {
        let (parts, mixed) = match (&model.kind, model.executor.parts()) {
            (Kind::Parts(parts), Some(mixed)) => (parts, mixed),
            (Kind::Tensors(last), _) => return self.tensors(&model.executor, last, inputs),
            _ => return self.evaluator.settled(|| self.values(&model.executor, inputs)),
        };
        let before = self.before(parts, inputs).map_err(|error| self.evaluator.give_up(error))?;
        self.evaluator.agreed(&facts(&model.executor, inputs))?;
        let (mut tensors, mut after) = (Vec::new(), Vec::new());
        if let Some(part) = &parts.tensors {
            tensors = self.outputs(&part.model, &part.given(inputs, &before))?;
        }
        if let Some(part) = &parts.after {
            after = self.outputs(&part.model, &part.given(inputs, &tensors))?;
        }
        Ok(mixed.results(&before, &tensors, &after).cloned().collect())
    }

    /// Evaluates the values that tensors depend on. Each rank does this on its own, without messages to other ranks.
    fn before(&self, parts: &TiledParts, inputs: &[InputValue<'_>]) -> Result<Vec<TiledValue>, Error> {
        let Some(part) = &parts.before else { return Ok(Vec::new()) };
        self.values(&part.model.executor, &part.given(inputs, &[]))
    }

    /// Evaluates a part without tensors, like a model of plain values.
    fn values(&self, executor: &Executor, inputs: &[InputValue<'_>]) -> Result<Vec<TiledValue>, Error> {
        let values = executor.inputs().iter().zip(inputs).map(|(field, given)| self.value(field, *given));
        let values = values.collect::<Result<Vec<Value>, Error>>()?;
        let mut session = executor.session();
        session.set_run_options(&self.beside);
        Ok(session.evaluate(&values)?.into_iter().map(TiledValue::Value).collect())
    }

    /// Converts a value to an input of a part without tensors. A tensor becomes an array from all its tiles, on each rank.
    fn value(&self, field: &Field, given: InputValue<'_>) -> Result<Value, Error> {
        let tiled = match given.value {
            TiledValue::Value(value) => return Ok(value.clone()),
            TiledValue::Tiled(tiled) => tiled,
        };
        if tiled.is_planned() {
            return Err(given.at(unknown(field)));
        }
        let whole = || {
            let most = self.beside.run_limits().copied().unwrap_or_default().array_bytes;
            check_bytes(tiled.scalar_type(), &tiled.tiling().extents(), most)?;
            let value = TiledValue::Tiled(self.evaluator.gathered(tiled)?).to_value()?;
            ModelPart::converted(&value, &field.qtype, Span::default())
        };
        whole().map_err(|error| given.at(error))
    }

    /// Evaluates a model or part that has only tensors on tiles, together with the other ranks. `last` caches the graph
    /// for the last inputs.
    fn tensors(
        &mut self,
        executor: &Executor,
        last: &Mutex<Option<Arc<TiledGraph>>>,
        inputs: &[InputValue<'_>],
    ) -> Result<Vec<TiledValue>, Error> {
        // Other ranks may wait for this rank, so an error is sent to them.
        let (graph, leaves) = self.bound(executor, last, inputs).map_err(|error| self.evaluator.give_up(error))?;
        let leaves: Vec<&Tiled> = leaves.iter().collect();
        let names: Vec<&str> = executor.outputs().iter().map(|field| &*field.name).collect();
        let known = names.iter().enumerate().filter_map(|(at, name)| Some((at, self.made.get(*name)?.clone())));
        let known: Vec<(usize, Tiled)> = known.collect();
        let (made, handed) = (&mut self.made, &mut self.after);
        let mut after = |at: usize, tiled: &Tiled| match handed {
            // A value for the next part is not an output of the model.
            Some(handed) if !executor.outputs()[at].is_crossing() => {
                made.insert(names[at].to_owned(), tiled.clone());
                handed(made)
            }
            _ => Ok(()),
        };
        let state = ResumeState { known: &known, after: &mut after };
        let host = self.elements.host();
        let made = self.evaluator.evaluate_from(&graph.graph, &graph.outputs, &leaves, &host, state)?;
        Ok(made.into_iter().map(TiledValue::Tiled).collect())
    }

    /// Returns the steps that evaluating the tensors of the model `model` would take.
    pub(super) fn plan(&self, model: &TiledModel, inputs: &[TiledValue]) -> Result<Vec<Step>, Error> {
        let given: Vec<InputValue<'_>> = inputs.iter().map(|value| InputValue { value, span: None }).collect();
        let before;
        let (part, given) = match &model.kind {
            Kind::Parts(parts) => {
                if let Some(after) = parts.after.as_ref().filter(|part| !matches!(part.model.kind, Kind::Values)) {
                    return Err(unplanned(after));
                }
                before = self.before(parts, &given)?;
                let Some(part) = &parts.tensors else { return Ok(Vec::new()) };
                (&part.model, part.given(&given, &before))
            }
            _ => (model, given),
        };
        let Kind::Tensors(last) = &part.kind else { return Ok(Vec::new()) };
        let (graph, leaves) = self.bound(&part.executor, last, &given)?;
        let leaves: Vec<&Tiled> = leaves.iter().collect();
        self.evaluator.plan_graph(&graph.graph, &graph.outputs, &leaves, &self.elements.host())
    }

    /// Returns the tensor graph for the inputs `inputs`, and the tiled tensors for its leaves. `last` caches the graph
    /// for the last inputs.
    fn bound(
        &self,
        executor: &Executor,
        last: &Mutex<Option<Arc<TiledGraph>>>,
        inputs: &[InputValue<'_>],
    ) -> Result<Bound, Error> {
        let mut tiled: Vec<Option<Tiled>> = Vec::with_capacity(inputs.len());
        let mut numbers = Vec::with_capacity(inputs.len());
        for (field, given) in executor.inputs().iter().zip(inputs) {
            let (tensor, number) = self.tensor(field, *given).map_err(|error| given.at(error))?;
            tiled.push(tensor);
            numbers.push(number);
        }
        let graph = graph_for(executor, last, &tiled, numbers)?;
        Ok((graph, tiled.into_iter().flatten().collect()))
    }

    /// Converts a value to an input of a tensor part: a tensor in tiles, or a number of a type that tiles cannot hold.
    fn tensor(&self, field: &Field, given: InputValue<'_>) -> Result<(Option<Tiled>, Option<ScalarValue>), Error> {
        let value = match given.value {
            TiledValue::Tiled(tiled) if tiled.is_planned() && !is_tensor(&field.qtype) => return Err(unknown(field)),
            TiledValue::Tiled(tiled) => return Ok((Some(tiled.clone()), None)),
            TiledValue::Value(value) => ModelPart::converted(value, &field.qtype, given.span.unwrap_or_default())?,
        };
        if let Value::Tensor(tensor) = &value {
            // An array becomes one tile, like an input without labels.
            let axes = tensor.extents().iter().map(|extent| one_tile(*extent));
            let tiling = Tiling::new(axes.collect::<Result<Vec<Tiling1>, Error>>()?)?;
            let screening = self.evaluator.options().screening(tensor.scalar_type())?;
            return Ok((Some(Tiled::from_tensor(tensor, &tiling, &screening)?), None));
        }
        let number = field.tensor_number(&value)?;
        Ok(if is_float_number(&number) { (Some(of_number(&number)?), None) } else { (None, Some(number)) })
    }
}

/// Returns the tensor graph of a model for the tiled tensors `inputs` and the numbers `numbers`: for each input, one of
/// the two lists has a value and the other `None`. `last` caches the graph for the last inputs.
///
/// # Errors
/// If tensors do not fit the inputs or each other.
fn graph_for(
    executor: &Executor,
    last: &Mutex<Option<Arc<TiledGraph>>>,
    inputs: &[Option<Tiled>],
    numbers: Vec<Option<ScalarValue>>,
) -> Result<Arc<TiledGraph>, Error> {
    let extents = |tiled: &Option<Tiled>| tiled.as_ref().map_or_else(Extents::default, |own| own.tiling().extents());
    let extents: Vec<Extents> = inputs.iter().map(extents).collect();
    let tilings = || inputs.iter().flatten().map(Tiled::tiling);
    let is_for = |known: &&Arc<TiledGraph>| {
        let is_cut_so = |known: &Vec<Tiling>| known.iter().eq(tilings());
        known.extents == extents && known.numbers == numbers && known.tilings.as_ref().is_none_or(is_cut_so)
    };
    let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = last.as_ref().filter(is_for) {
        return Ok(known.clone());
    }
    let slices: Vec<&[usize]> = extents.iter().map(|extents| &extents[..]).collect();
    let cuts = |tiled: &Option<Tiled>| tiled.iter().flat_map(|own| own.tiling().axes().iter().map(cut_of)).collect();
    let cuts: Vec<Vec<Option<AxisCut>>> = inputs.iter().map(cuts).collect();
    let (graph, outputs) = executor.graph_for_tiles(&slices, &cuts, &numbers)?;
    let tilings = executor.has_blocks().then(|| tilings().cloned().collect());
    Ok(last.insert(Arc::new(TiledGraph { extents, numbers, tilings, graph, outputs })).clone())
}

/// Describes how an axis is cut into tiles: the size of all its tiles, or their boundaries. `None` if the axis is one
/// tile.
fn cut_of(axis: &Tiling1) -> Option<AxisCut> {
    match axis.tile_size() {
        Some(size) if axis.tiles() > 1 => Some(AxisCut::Blocks(size)),
        Some(_) => None,
        None => Some(AxisCut::Boundaries(axis.boundaries().collect())),
    }
}

/// Returns the names of inputs that are not tensors, and their values as text. Ranks compare these texts, because each
/// rank evaluates such values on its own and all must have the same.
fn facts(executor: &Executor, inputs: &[InputValue<'_>]) -> Vec<(String, String)> {
    /// The most bytes of a value's text. A longer value is represented by its type and a hash.
    const SHOWN: usize = 64;
    let fact = |(field, given): (&Field, &InputValue<'_>)| {
        let TiledValue::Value(value) = given.value else { return None };
        let text = cembra_expr::print_value(value);
        let text =
            if text.len() > SHOWN { format!("one of {} ({:016x})", value.qtype(), hash_of(&text)) } else { text };
        Some((format!("the value of `{}`", Excerpt::quoted(&field.name)), text))
    };
    executor.inputs().iter().zip(inputs).filter_map(fact).collect()
}

/// Returns the error that the steps of a plan depend on the input `field`, whose value is unknown.
#[cold]
fn unknown(field: &Field) -> Error {
    let name = Excerpt::quoted(&field.name);
    let message = format!("the steps depend on the value of `{name}`, which is not known");
    let hint = format!("give the value by `-s {name}=..`, or in Rust by `TensorInformation::Operand`");
    Error::tensors(TensorErrorKind::UnknownName, message).hint(hint)
}

/// Returns the error of a plan in which tensors depend on other tensors through values that are not tensors.
#[cold]
fn unplanned(part: &TiledPart) -> Error {
    let message = "tensors depend on this value, which is known only after other tensors are evaluated";
    let error =
        Error::tensors(TensorErrorKind::Evaluation, message).hint("evaluate the model: `--verbose` shows its steps");
    let span = part.inputs.iter().find_map(|input| match *input {
        PartInput::OfPart { span, .. } => Some(span),
        PartInput::OfModel(_) => None,
    });
    span.map_or(error.clone(), |span| error.at(span))
}
