//! Golden cases about tensors: arrays by their bits, expressions as trees, and what is compared how. A case is compiled as users compile, once
//! with expressions of elements that are interpreted, and once with machine code. Rewriting is checked with evaluators of the engine.

mod access;
mod array;
mod check;
mod outside;
mod products;
mod shared_out;
mod sparse;
mod texts;
mod tree;

use crate::problem::{Defect, Malformed, Unsupported};
use array::array;
use cembra::tensor::{CompileGraph, Exactness, Slice, TensorErrorKind, TensorGraph, TensorNodeId, same_bits};
use cembra::{Backend, Error, Executor, Model, Options, Scalar, Tensor};
use cembra_engine::Evaluator;
use cembra_tensor::{Operation, ProductClass, Rewriter, rules};
use check::Expected;
pub use outside::answer;
use serde_json::{Map, Value as Json};
use std::fmt::Display;
use std::sync::Arc;
use tree::Inputs;

/// A line of the golden data.
type Fields = Map<String, Json>;

/// What is wrong with a result: who made it, what was expected, what was found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Wrong {
    /// The engine.
    pub engine: String,
    /// What the data say.
    pub expected: String,
    /// What came out.
    pub found: String,
}

/// One way to compile what a case is about.
#[derive(Debug)]
pub struct TensorEngine {
    name: &'static str,
    options: Options,
    /// True if it adds up sums of products in the order of the reference, as the interpreter does.
    in_order: bool,
    /// Evaluates graphs that were rewritten, with the expressions of elements that it compiled for cases before.
    evaluator: Arc<Evaluator>,
}

impl TensorEngine {
    /// Compiles for a backend.
    #[must_use]
    pub fn new(backend: Backend) -> TensorEngine {
        let options = Options::default().backend(backend);
        let evaluator = Arc::new(Evaluator::new(&options));
        TensorEngine { name: backend.name(), options, in_order: backend == Backend::Interpreter, evaluator }
    }
}

/// The engines that cases are run on.
#[derive(Debug)]
pub struct TensorEngines {
    engines: [TensorEngine; 2],
}

impl Default for TensorEngines {
    fn default() -> Self {
        TensorEngines { engines: [Backend::Interpreter, Backend::Native].map(TensorEngine::new) }
    }
}

/// What is compiled and run: a node of a graph, or a model with one output.
#[derive(Clone, Copy)]
enum Subject<'s> {
    Node(&'s TensorGraph, TensorNodeId),
    Model(&'s Model),
}

impl Subject<'_> {
    fn compile(self, options: &Options) -> Result<Executor, Error> {
        match self {
            Subject::Node(graph, output) => graph.compile(&[output], options),
            Subject::Model(model) => model.compile(options),
        }
    }
}

/// What a case does with an engine.
type Run<'r> = &'r dyn Fn(&TensorEngine) -> Result<Tensor, Error>;

impl TensorEngines {
    /// Runs a case.
    ///
    /// # Errors
    /// It is of a kind that cembra has nothing for, or not of the documented format.
    pub fn run(&self, fields: &Fields) -> Result<Result<(), Wrong>, Defect> {
        match text(fields, "kind")? {
            "expr" => self.run_expression(fields),
            "einsum" => self.run_einsum(fields),
            "stmt" => self.run_statement(fields),
            "grad" => self.run_gradient(fields),
            "rewrite" => self.run_rewrite(fields),
            "path" => Self::run_order(fields),
            "inplace" => self.run_in_place(fields),
            "blocksparse" => sparse::run(self, fields),
            other => Err(Unsupported::Kind(other.to_owned()).into()),
        }
    }

    fn on_each(&self, expected: &Expected, run: Run<'_>) -> Result<(), Wrong> {
        for engine in &self.engines {
            expected.check(&run(engine)).map_err(|(expected, found)| Wrong {
                engine: engine.name.to_owned(),
                expected,
                found,
            })?;
        }
        Ok(())
    }

    fn run_expression(&self, fields: &Fields) -> Result<Result<(), Wrong>, Defect> {
        let expected = Expected::of(fields)?;
        let inputs = Inputs::of(fields)?;
        let scalar = array::scalar(text(fields, "dtype")?)?;
        let tree = fields.get("ast").ok_or(Malformed::Field("ast"))?;
        Ok(match tree::graph(tree, scalar, &inputs)? {
            Ok((graph, output, tensors)) => {
                self.on_each(&expected, &|on| first(on, Subject::Node(&graph, output), &tensors))
            }
            Err(refused) => self.on_each(&expected, &|_| Err(refused.clone())),
        })
    }

    fn run_einsum(&self, fields: &Fields) -> Result<Result<(), Wrong>, Defect> {
        let expected = Expected::of(fields)?;
        let Some(Json::Array(operands)) = fields.get("operands") else {
            return Err(Malformed::Field("operands").into());
        };
        let tensors = operands.iter().map(array).collect::<Result<Vec<Tensor>, Malformed>>()?;
        let spec = text(fields, "spec")?;
        let wrong_class = class(fields, spec, &tensors);
        if let Some(found) = wrong_class {
            let expected = text(fields, "class")?.to_owned();
            return Ok(Err(Wrong { engine: "class".to_owned(), expected, found }));
        }
        let checked = self.on_each(&expected, &|on| {
            let (graph, product) = einsum(spec, &tensors)?;
            first(on, Subject::Node(&graph, product), &tensors)
        });
        if checked.is_err() {
            return Ok(checked);
        }
        let Ok((graph, product)) = einsum(spec, &tensors) else { return Ok(Ok(())) };
        Ok(products::check(&self.engines[0].evaluator, &graph, product, &tensors, &expected))
    }

    /// The number, its gradients and, if there are any, products with its second derivatives.
    fn run_gradient(&self, fields: &Fields) -> Result<Result<(), Wrong>, Defect> {
        let inputs = Inputs::of(fields)?;
        let scalar = array::scalar(text(fields, "dtype")?)?;
        let tree = fields.get("ast").ok_or(Malformed::Field("ast"))?;
        let arrays = |field: &'static str, names: &[&str]| -> Result<Vec<Tensor>, Malformed> {
            let of = fields.get(field).ok_or(Malformed::Field(field))?;
            names.iter().map(|name| array(of.get(*name).ok_or(Malformed::Field(field))?)).collect()
        };
        let names = fields.get("wrt").and_then(Json::as_array).ok_or(Malformed::Field("wrt"))?;
        let names: Vec<&str> = names.iter().filter_map(Json::as_str).collect();
        let tolerance = |field: &'static str| fields.get(field).and_then(Json::as_f64).ok_or(Malformed::Field(field));
        let mut expected =
            vec![Expected::near(array(fields.get("value").ok_or(Malformed::Field("value"))?)?, tolerance("rtol")?)];
        for gradient in arrays("grads", &names)? {
            expected.push(Expected::near(gradient, tolerance("rtol")?));
        }
        let (mut graph, value, mut tensors) = match tree::graph(tree, scalar, &inputs)? {
            Ok(made) => made,
            Err(refused) => return Ok(Err(wrong("graph", &refused))),
        };
        let wrt: Vec<TensorNodeId> = names
            .iter()
            .filter_map(|name| graph.leaves().iter().find(|leaf| &*leaf.name == *name).map(|leaf| leaf.node))
            .collect();
        let mut outputs = vec![value];
        let made = graph.gradients(value, &wrt).and_then(|gradients| {
            outputs.extend(&gradients);
            if fields.contains_key("hvp") {
                let directions = arrays("hvp_dir", &names).unwrap_or_default();
                let mut tangents = Vec::new();
                for direction in directions {
                    tangents.push(graph.leaf("", direction.scalar_type(), direction.extents())?);
                    tensors.push(direction);
                }
                outputs.extend(graph.tangents(&gradients, &wrt, &tangents)?);
            }
            Ok(())
        });
        if let Err(refused) = made {
            return Ok(Err(wrong("gradient", &refused)));
        }
        if fields.contains_key("hvp") {
            for product in arrays("hvp", &names)? {
                expected.push(Expected::near(product, tolerance("hvp_rtol")?));
            }
        }
        for (at, (output, expected)) in outputs.iter().zip(&expected).enumerate() {
            let result = self.on_each(expected, &|on| first(on, Subject::Node(&graph, *output), &tensors));
            if let Err(wrong) = result {
                return Ok(Err(Wrong { engine: format!("{}, result {at}", wrong.engine), ..wrong }));
            }
        }
        Ok(Ok(()))
    }

    /// Both sides are as they were; what the first is rewritten to is what it was.
    fn run_rewrite(&self, fields: &Fields) -> Result<Result<(), Wrong>, Defect> {
        let inputs = Inputs::of(fields)?;
        let scalar = array::scalar(text(fields, "dtype")?)?;
        let name = text(fields, "name")?;
        let is_exact = fields.get("exact").and_then(Json::as_bool).ok_or(Malformed::Field("exact"))?;
        let known = rules().iter().find(|rule| rule.name == name);
        if known.is_some_and(|rule| rule.exactness == Exactness::Exact && !is_exact) {
            let expected = "a rule that is not exact".to_owned();
            return Ok(Err(Wrong { engine: "rules".to_owned(), expected, found: "an exact one".to_owned() }));
        }
        for (side, expected) in [("lhs", "lhs_expected"), ("rhs", "rhs_expected")] {
            let value = array(fields.get(expected).ok_or(Malformed::Field("lhs_expected"))?)?;
            let expected = Expected::Bits { value, zeros_alike: false };
            let tree = fields.get(side).ok_or(Malformed::Field("lhs"))?;
            let checked = match tree::graph(tree, scalar, &inputs)? {
                // A side may be one number, which stands for all.
                Ok((graph, output, tensors)) => self.on_each(&expected, &|on| {
                    first(on, Subject::Node(&graph, output), &tensors)?.broadcast_to(expected.extents())
                }),
                Err(refused) => self.on_each(&expected, &|_| Err(refused.clone())),
            };
            if checked.is_err() {
                return Ok(checked);
            }
        }
        Ok(Ok(()))
    }

    /// The order of products costs no more than the best one that is known, where all orders are looked at.
    fn run_order(fields: &Fields) -> Result<Result<(), Wrong>, Defect> {
        let Some(Json::Array(shapes)) = fields.get("shapes") else { return Err(Malformed::Field("shapes").into()) };
        let cost = |order: &'static str| {
            let cost = fields.get(order).and_then(|order| order.get("flops")).and_then(Json::as_f64);
            cost.ok_or(Malformed::Field(order))
        };
        let mut graph = TensorGraph::standard();
        let mut leaves = Vec::new();
        for shape in shapes {
            let extents: Vec<usize> = array::numbers(shape, "shapes")?;
            leaves.push(graph.leaf("", Scalar::Float64, &extents).map_err(|_| Malformed::Field("shapes"))?);
        }
        // What is not known to be the best is to be no worse than the greedy order.
        let best = if leaves.len() <= 8 { cost("optimal")? } else { cost("greedy")? };
        let ordered = graph.einsum(text(fields, "spec")?, &leaves).and_then(|product| graph.ordered(product));
        Ok(match ordered {
            Ok((_, Some(order))) if order.operations <= best => Ok(()),
            Ok((_, None)) if leaves.len() < 3 => Ok(()),
            Ok((_, order)) => {
                let found = order.map_or_else(String::new, |order| order.operations.to_string());
                Err(Wrong { engine: "order".to_owned(), expected: format!("at most {best} operations"), found })
            }
            Err(refused) => Err(wrong("order", &refused)),
        })
    }

    /// The statement is a line of a model, of which its inputs are those. What it makes may be written over the target.
    fn run_statement(&self, fields: &Fields) -> Result<Result<(), Wrong>, Defect> {
        let expected = Expected::of(fields)?;
        let statement = text(fields, "text")?;
        let inputs = match &expected {
            // What is wrong with labels is so whatever the tensors are.
            Expected::Error(_) => texts::any_inputs(statement),
            _ => Inputs::of(fields)?.by_name(),
        };
        let model = match Model::parse(&texts::model(statement, &inputs)) {
            Ok(model) => model,
            Err(refused) => return Ok(self.on_each(&expected, &|_| Err(refused.clone()))),
        };
        let target = match &expected {
            Expected::Error(_) => "",
            _ => text(fields, "target")?,
        };
        let checked = self.on_each(&expected, &|on| {
            let executor = model.compile(&on.options)?;
            let given: Vec<Tensor> = executor.inputs().iter().map(|field| inputs[&*field.name].clone()).collect();
            let value = first(on, Subject::Model(&model), &given)?;
            check_over(&executor, &given, target, inputs.get(target))?;
            Ok(value)
        });
        Ok(checked.and_then(|()| self.run_text(&model, &inputs, &expected)))
    }

    fn run_in_place(&self, fields: &Fields) -> Result<Result<(), Wrong>, Defect> {
        let expected = Expected::of(fields)?;
        let mut inputs = Inputs::of(fields)?;
        let target = text(fields, "target")?;
        let scalar = array::scalar(text(fields, "dtype")?)?;
        let tree = fields.get("ast").ok_or(Malformed::Field("ast"))?;
        let repeat = fields.get("repeat").and_then(Json::as_u64).ok_or(Malformed::Field("repeat"))?;
        let slices = tree::slices(fields.get("target_slice").ok_or(Malformed::Field("target_slice"))?)?;
        for engine in &self.engines {
            let before = inputs.clone();
            for _ in 0..repeat {
                let (graph, output, tensors) = match tree::graph(tree, scalar, &inputs)? {
                    Ok(made) => made,
                    Err(refused) => return Ok(Err(wrong(engine.name, &refused))),
                };
                let subject = Subject::Node(&graph, output);
                let assigned = first(engine, subject, &tensors).and_then(|value| {
                    check_over(&subject.compile(&engine.options)?, &tensors, target, None)?;
                    let place = inputs.get_mut(target);
                    place.map_or(Ok(()), |place| assign(place, &slices, &value))
                });
                if let Err(refused) = assigned {
                    return Ok(Err(wrong(engine.name, &refused)));
                }
            }
            let made = inputs.get_mut(target).cloned().ok_or(Malformed::Field("target"))?;
            if let Err((expected, found)) = expected.check(&Ok(made)) {
                return Ok(Err(Wrong { engine: engine.name.to_owned(), expected, found }));
            }
            inputs = before;
        }
        Ok(Ok(()))
    }
}

/// The graph of a product by labels, its operands being the leaves.
fn einsum(spec: &str, tensors: &[Tensor]) -> Result<(TensorGraph, TensorNodeId), Error> {
    let mut graph = TensorGraph::standard();
    let mut leaves = Vec::new();
    for tensor in tensors {
        leaves.push(graph.leaf("", tensor.scalar_type(), tensor.extents())?);
    }
    let product = graph.einsum(spec, &leaves)?;
    Ok((graph, product))
}

/// What a product of two is called by its labels, if the case says something else.
fn class(fields: &Fields, spec: &str, tensors: &[Tensor]) -> Option<String> {
    let expected = fields.get("class")?.as_str()?;
    let mut graph = TensorGraph::standard();
    let leaves: Option<Vec<TensorNodeId>> =
        tensors.iter().map(|tensor| graph.leaf("", tensor.scalar_type(), tensor.extents()).ok()).collect();
    let product = graph.einsum(spec, &leaves?).ok()?;
    let Operation::Contract(labels) = &graph.node(product).operation else { return None };
    let (class, reduces) = ProductClass::of(labels)?;
    let found = if reduces { format!("reduce+{}", class.as_str()) } else { class.as_str().to_owned() };
    (found != expected).then_some(found)
}

fn assign(place: &mut Tensor, slices: &[Slice], value: &Tensor) -> Result<(), Error> {
    place.to_mut()?.sliced(slices)?.assign(value)
}

/// An error of a check: an element is not what it should be.
fn differs(message: String) -> Error {
    Error::tensors(TensorErrorKind::Evaluation, message)
}

/// The only output.
fn only(outputs: &[Tensor]) -> Result<&Tensor, Error> {
    match outputs {
        [output] => Ok(output),
        _ => Err(differs(format!("{} outputs", outputs.len()))),
    }
}

/// An error if a session gives another value when it writes over the tensor of this name, which has memory of its own; or in its second run,
/// for which the plan is bound already. A tensor of this name that is no input, as nothing reads it, is put behind the inputs.
fn check_over(executor: &Executor, inputs: &[Tensor], target: &str, unread: Option<&Tensor>) -> Result<(), Error> {
    let mut session = executor.session();
    let expected = only(session.run_tensors(inputs)?)?.clone();
    let own = |tensor: &Tensor| Tensor::from_parts(tensor.data().clone(), tensor.layout().clone());
    let input = executor.inputs().iter().position(|field| *field.name == *target);
    let (target, unread) = (input.unwrap_or(inputs.len()), unread.filter(|_| input.is_none()));
    for run in ["first", "second"] {
        let mut tensors = inputs.iter().chain(unread).map(own).collect::<Result<Vec<Tensor>, _>>()?;
        let written = session.run_over(&mut tensors, target)?;
        if !same_bits(&tensors[target], &expected) {
            return Err(differs(format!("{written:?} by the {run} run made {:?} of {expected:?}", tensors[target])));
        }
    }
    Ok(())
}

fn wrong(engine: &str, refused: &dyn Display) -> Wrong {
    Wrong { engine: engine.to_owned(), expected: "a value".to_owned(), found: refused.to_string() }
}

/// The only value as a session gives it. Neither rewriting the graph nor a plan in the reference's order changes it by a bit, nor does reading
/// elements alone.
fn first(on: &TensorEngine, subject: Subject<'_>, inputs: &[Tensor]) -> Result<Tensor, Error> {
    let executor = subject.compile(&on.options)?;
    let value = only(&executor.run_reference(inputs)?)?.clone();
    access::check(&executor, inputs, &value)?;
    if let Subject::Node(graph, output) = subject {
        check_rewriting(&on.evaluator, graph, output, inputs, &value)?;
    }
    let fused = only(executor.session().run_tensors(inputs)?)?.clone();
    shared_out::check(on, subject, inputs, &fused)?;
    if same_bits(&value, &fused) {
        return Ok(fused);
    }
    // Products of matrices, and another order of factors, change the rounding of sums.
    let extents: Vec<&[usize]> = inputs.iter().map(Tensor::extents).collect();
    let plan = executor.prepare_for(&extents)?.to_string();
    if plan.lines().any(|step| step.contains(" = contract ")) {
        let in_order = subject.compile(&on.options.clone().reference_order(true))?;
        if same_bits(&value, only(in_order.session().run_tensors(inputs)?)?) {
            return Ok(fused);
        }
    }
    Err(differs(format!("fused to {fused:?}, not {value:?}, by\n{plan}")))
}

/// An error if rewriting a graph changes the value of a node.
fn check_rewriting(
    on: &Evaluator,
    graph: &TensorGraph,
    output: TensorNodeId,
    inputs: &[Tensor],
    value: &Tensor,
) -> Result<(), Error> {
    let rewritten = Rewriter::default().rewrite(graph, &[output], &on.host())?;
    let made = on.evaluate(&rewritten.graph, &rewritten.outputs, inputs)?;
    if same_bits(value, only(&made)?) {
        return Ok(());
    }
    Err(differs(format!("{:?} made {made:?} of {value:?}", rewritten.applied)))
}

/// A field that is a text.
fn text<'f>(fields: &'f Fields, name: &'static str) -> Result<&'f str, Malformed> {
    fields.get(name).and_then(Json::as_str).ok_or(Malformed::Field(name))
}
