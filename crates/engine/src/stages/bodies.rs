//! Converts element expressions of tensors to plans. An expression becomes a typed model whose leaves are the expression's inputs, and this model
//! goes through the passes that follow typing. An element expression has no text, so its faults have only the names of operators.

use crate::options::compile_options::TimedOptions;
use crate::stages::{plan, prepare_typed};
use cembra_expr::Program;
use cembra_ops::TypeFault;
use cembra_plan::Plan;
use cembra_prepare::{Id, Kind, TypedGraph, TypedModel};
use cembra_runtime::QType;
use cembra_tensor::{Body, BodyStep};
use cembra_value::Error;
use cembra_value::{Diagnostic, ScalarValue, Value};
use std::sync::Arc;

/// Makes the plan of the element expression `body`, and the program that faults of the plan refer to. The plan has only those inputs that the
/// expression reads.
pub(crate) fn plan_of_body(body: &Body, options: &TimedOptions) -> Result<(Arc<Program>, Plan), Error> {
    let (program, model) = typed(body, options)?;
    let placed = prepare_typed(model, &program, options)?;
    let plan = plan(&placed, &program, options)?;
    Ok((program.into(), plan))
}

/// Converts an element expression to a typed model, and to a program that has only the names of the expression's
/// operators.
fn typed(body: &Body, options: &TimedOptions) -> Result<(Program, TypedModel), Error> {
    let registry = options.prepare.registry;
    let mut program = Program::default();
    let nowhere = program.graph.leaf("element", None);
    let name = |at: usize| -> Arc<str> { at.to_string().into() };
    let names: Arc<[Arc<str>]> = (0..body.inputs.len()).map(name).collect();
    let mut graph = TypedGraph::new(names.clone(), body.inputs.len() + body.steps.len());
    let types = body.inputs.iter().map(|scalar| QType::Scalar(*scalar));
    let leaves: Vec<(Arc<str>, QType)> = names.iter().cloned().zip(types).collect();
    let leaf = |(at, (_, qtype)): (usize, &(Arc<str>, QType))| graph.add(Kind::Leaf(at as u32), &[], qtype, nowhere);
    let mut made: Vec<Id> = leaves.iter().enumerate().map(leaf).collect();
    for step in &body.steps {
        made.push(match step {
            BodyStep::Constant(scalar, bits) => {
                let value = ScalarValue::from_bits(*scalar, *bits).map_or(Value::Nothing, Value::Scalar);
                graph.literal(value, nowhere)
            }
            BodyStep::Apply(op, operands) => {
                let def = registry.get(op.id());
                let origin = program.graph.operator(def.name, &[], None);
                let elements = operands.iter().map(|at| made[*at as usize]);
                let mut operands = op.with_texts(elements, |text| graph.literal(Value::text(text), origin));
                // Nodes of typed models have all their operands.
                let left_out = def.params.iter().skip(operands.len()).map_while(|parameter| parameter.default.clone());
                operands.extend(left_out.map(|default| graph.literal(default, origin)));
                let refused = |fault: TypeFault| Error::from(Diagnostic::new(fault.code, fault.message));
                graph.apply(registry, op.id(), &operands, origin).map_err(refused)?
            }
        });
    }
    let output = |(at, (output, _)): (usize, &(u32, _))| (name(at), made[*output as usize]);
    let outputs = body.outputs.iter().enumerate().map(output).collect();
    Ok((program, TypedModel { registry, graph, leaves, outputs, rewritten: false }))
}
