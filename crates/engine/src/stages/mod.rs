//! The stages from a program to a plan: preparation (typing and rewriting) and planning, with the options of a model.

pub(crate) mod bodies;
pub(crate) mod faults;
pub(crate) mod sites;

use crate::code::spans::StageSpan;
use crate::options::compile_options::TimedOptions;
use crate::options::signature::Field;
use cembra_expr::Program;
use cembra_plan::{Plan, PlanError};
use cembra_prepare::TypedModel;
use cembra_prepare::{Pass, Prepared, RegionModel};
use cembra_runtime::QType;
use cembra_value::Error;
use cembra_value::{Code, Diagnostic};

/// Prepares a program, with the input types that the options give.
pub fn prepare(
    program: &Program,
    options: &TimedOptions,
    observe: &mut dyn FnMut(&Pass, &Prepared),
) -> Result<Prepared, Error> {
    let span = StageSpan::prepare(options.model_name(), program.graph.len());
    let leaf_type = |name: &str| options.input_types.get(name).cloned();
    let prepared = cembra_prepare::prepare(program, &leaf_type, &options.prepare, observe)?;
    span.made("prepared_nodes", prepared.model().graph.len());
    Ok(prepared)
}

/// Prepares a program for a caller that gives some inputs on demand. `ask` chooses these inputs from the typed graph, before preparation decides
/// where each node is evaluated.
///
/// # Errors
/// Errors of preparation and of `ask`.
pub fn prepare_asking(
    program: &Program,
    options: &TimedOptions,
    ask: &mut dyn FnMut(&mut TypedModel) -> Result<(), Error>,
) -> Result<RegionModel, Error> {
    let span = StageSpan::prepare(options.model_name(), program.graph.len());
    let leaf_type = |name: &str| options.input_types.get(name).cloned();
    let placed = match cembra_prepare::prepare_graph(program, &leaf_type, &options.prepare)? {
        Prepared::Typed(mut model) => {
            ask(&mut model)?;
            cembra_prepare::place(model, program, &options.prepare)?
        }
        Prepared::Placed(placed) => placed,
    };
    span.made("prepared_nodes", placed.model.graph.len());
    Ok(placed)
}

/// Runs those passes of preparation that follow typing, on the typed model `model`.
pub(crate) fn prepare_typed(
    model: TypedModel,
    program: &Program,
    options: &TimedOptions,
) -> Result<RegionModel, Error> {
    let span = StageSpan::prepare(options.model_name(), model.graph.len());
    let placed = cembra_prepare::prepare_typed(model, program, &options.prepare)?;
    span.made("prepared_nodes", placed.model.graph.len());
    Ok(placed)
}

/// Prepares a program and returns its plan.
pub fn plan_of(program: &Program, options: &TimedOptions) -> Result<Plan, Error> {
    let placed = prepare(program, options, &mut |_, _| {})?.placed()?;
    plan(&placed, program, options)
}

/// The error for a function that needs one plan of scalars, but was given a model with arrays or tensors. `fields` are the model's inputs and
/// outputs.
#[cold]
pub fn only_sessions(fields: [&[Field]; 2]) -> Error {
    let mut types = fields.into_iter().flatten().map(|field| &field.qtype);
    let (code, kind) = if types.any(|qtype| matches!(qtype, QType::Tensor(..))) {
        (Code::Tensors, "tensors")
    } else {
        (Code::Arrays, "arrays")
    };
    let problem = Diagnostic::new(code, format!("the model has {kind}, but this call takes only models of scalars"));
    problem.hint("in Rust, compile the model with `Model::compile` and call `Session::evaluate`, or with `Model::executor` or `Model::batch`").into()
}

/// Makes the plan of a prepared program.
///
/// # Errors
/// If a limit is exceeded, an operator does not compile, or the program has arrays.
pub fn plan(placed: &RegionModel, program: &Program, options: &TimedOptions) -> Result<Plan, Error> {
    let span = StageSpan::plan(options.model_name(), placed.model.graph.len());
    let plan = cembra_plan::build(placed, options.budget()).map_err(|error| match error {
        PlanError::Limit(exceeded) => exceeded.into(),
        PlanError::Compile { origin, .. } => {
            Diagnostic::new(Code::Literal, error.to_string()).at(program.graph.span(origin)).into()
        }
        PlanError::Arrays => only_sessions([&[], &[]]),
        other => Error::from(Diagnostic::new(Code::Extension, other.to_string())),
    })?;
    span.made("steps", plan.step_count());
    Ok(plan)
}
