//! Programs with tensors among their inputs: which types inputs and outputs have, and the graph of tensors that such a program is. The extents
//! come with the tensors, so a program is lowered once for its types, with extents of 1, and once for each list of extents.

mod assigned;
mod calls;
mod lowering;
mod nodes;

use crate::compile_options::CompileOptions;
use crate::error::Error;
use crate::signature::{Field, Signature};
use cembra_expr::{Input, Node, NodeId, Program};
use cembra_ops::Registry;
use cembra_runtime::{Excerpt, QType, Scalar};
use cembra_tensor::{ErrorKind, Graph, NodeId as TensorNode};
use cembra_value::{Code, Diagnostic, ScalarValue, Span};
use lowering::{Lowering, type_of};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The most nodes of a graph that a text may become. Short texts become large graphs: by functions that call others twice, and by gradients of
/// gradients. A plan of so many nodes takes up to a gibibyte while it is made.
pub const MOST_MODEL_NODES: usize = 1 << 18;

/// A program with tensors, whose types and labels are known to fit.
#[derive(Clone, Debug)]
pub struct TensorProgram {
    program: Arc<Program>,
    registry: &'static Registry,
    inputs: Box<[Field]>,
    outputs: Box<[Field]>,
    /// The defaults of inputs that nobody gives.
    absent: Box<[(Arc<str>, ScalarValue)]>,
}

/// The extents of an input before any tensor is given for it.
const ONES: [usize; cembra_tensor::MOST_AXES] = [1; cembra_tensor::MOST_AXES];

/// The element type and the number of axes of an input. One that may be missing has a default in its place, and is a scalar so.
pub(crate) fn shape_of(field: &Field) -> Option<(Scalar, usize)> {
    match (&field.qtype, &field.default) {
        (QType::Scalar(scalar), _) | (QType::Optional(scalar), Some(_)) if scalar.is_tensor_element() => {
            Some((*scalar, 0))
        }
        (QType::Tensor(scalar, rank), _) => Some((*scalar, usize::from(*rank))),
        _ => None,
    }
}

/// An input of a program, of this type.
fn field_of(input: &Input, qtype: &QType) -> Field {
    Field { default: input.default.clone().filter(|_| qtype.is_optional()), ..Field::new(&input.name, qtype) }
}

/// The type of an input: the declared one, or the one that the options give it. An input with a default that is always given may have the
/// type of its elements there.
fn type_of_input<'t>(input: &'t Input, options: &'t CompileOptions) -> Option<&'t QType> {
    let given = options.input_types.get(&*input.name);
    match (&input.qtype, given) {
        (Some(declared), Some(given)) if input.default.is_some() && declared.scalar() == given.scalar() => Some(given),
        (declared, given) => declared.as_ref().or(given),
    }
}

/// An error if the options give an input another type than the declared one, or its default is of another.
fn check_declaration(input: &Input, qtype: &QType, options: &CompileOptions) -> Result<(), Diagnostic> {
    input.check_default()?;
    let Some(given) = options.input_types.get(&*input.name).filter(|given| *given != qtype) else { return Ok(()) };
    let message = format!("input `{}` is declared {qtype}, but is given as {given}", input.name);
    let problem = Diagnostic::new(Code::InputType, message).at(input.span);
    Err(problem.label(format!("declared {qtype} here")))
}

impl TensorProgram {
    /// True if some input of a program is a tensor.
    #[must_use]
    pub fn is_of(program: &Program, options: &CompileOptions) -> bool {
        TensorProgram::tensor_input(program, options).is_some()
    }

    /// The first input that is a tensor.
    pub(crate) fn tensor_input<'p>(program: &'p Program, options: &CompileOptions) -> Option<&'p Input> {
        program.inputs.iter().find(|input| matches!(type_of_input(input, options), Some(QType::Tensor(..))))
    }

    /// Checks the types and labels of a program.
    ///
    /// # Errors
    /// They do not fit, or an input has a type that no tensor has elements of.
    pub fn new(program: Arc<Program>, options: &CompileOptions) -> Result<TensorProgram, Error> {
        let (mut inputs, mut absent) = (Vec::with_capacity(program.inputs.len()), Vec::new());
        for (input, _) in program.inputs.iter().zip(program.needed_inputs()).filter(|(_, needed)| *needed) {
            let Some(qtype) = type_of_input(input, options) else {
                let message = format!("input `{}` has no type", input.name);
                let hint = format!("declare it, as in `input {}: tensor[f64, 2]`", input.name);
                return Err(Diagnostic::new(Code::MissingInputType, message).at(input.span).hint(hint).into());
            };
            check_declaration(input, qtype, options)?;
            let field = field_of(input, qtype);
            if shape_of(&field).is_none() {
                return Err(unfit_input(input, qtype).into());
            }
            match &field.default {
                Some(default) if options.prepare.absent.contains(&*input.name) => {
                    absent.push((field.name, default.clone()));
                }
                _ => inputs.push(field),
            }
        }
        let registry = options.prepare.registry;
        let (inputs, absent) = (inputs.into(), absent.into());
        let mut checked = TensorProgram { program, registry, inputs, outputs: Box::default(), absent };
        let (graph, nodes) = checked.lowered(None)?;
        let named = checked.program.outputs.iter().zip(nodes);
        checked.outputs = named.map(|(output, node)| Field::new(&output.name, &type_of(&graph, node))).collect();
        Ok(checked)
    }

    /// Inputs and outputs with their types, in the order of the program. Scalars are tensors without axes.
    pub(crate) fn fields(&self) -> [Box<[Field]>; 2] {
        [self.inputs.clone(), self.outputs.clone()]
    }

    /// Inputs and outputs, as for a model without tensors.
    #[must_use]
    pub fn signature(&self) -> Signature {
        Signature { inputs: self.inputs.to_vec(), outputs: self.outputs.to_vec() }
    }

    /// Where an output stands in the text.
    pub(crate) fn output_span(&self, at: usize) -> Span {
        self.program.outputs.get(at).and_then(|output| output.span).unwrap_or_default()
    }

    /// The program as a graph, whose leaves are the inputs in their order, and the nodes of the outputs.
    ///
    /// # Errors
    /// Extents that do not fit the inputs or each other, or a graph that becomes too large.
    pub(crate) fn graph(&self, extents: &[&[usize]]) -> Result<(Graph, Vec<TensorNode>), cembra_tensor::Error> {
        self.lowered(Some(extents))
    }

    /// The type of each node of a program that may be wrong, by position; none of what has none, and of what is labelled.
    pub fn node_types(program: &Program, options: &CompileOptions) -> Vec<Option<QType>> {
        let mut lowering = Lowering::new(&program.graph, options.prepare.registry, MOST_MODEL_NODES, false);
        let leaves = leaves(program);
        for input in &program.inputs {
            let shape = type_of_input(input, options).and_then(|qtype| shape_of(&field_of(input, qtype)));
            if let Some((scalar, rank)) = shape {
                // A leaf that the graph has no room for has no type, and neither has what is made of it.
                let _ = lowering.set_leaf(leaves.get(&*input.name).copied(), scalar, &ONES[..rank], &input.name);
            }
        }
        lowering.lower_as_far_as_possible();
        (0..program.graph.len()).map(|at| lowering.node_type(NodeId::from_index(at))).collect()
    }

    /// The graph for some extents, or if none are known, for an extent of 1 of each axis.
    fn lowered(&self, extents: Option<&[&[usize]]>) -> Result<(Graph, Vec<TensorNode>), cembra_tensor::Error> {
        let program = &*self.program;
        let mut lowering = Lowering::new(&program.graph, self.registry, MOST_MODEL_NODES, extents.is_some());
        if extents.is_some_and(|extents| extents.len() != self.inputs.len()) {
            let message = format!("extents for another number of inputs than {}", self.inputs.len());
            return Err(cembra_tensor::Error::new(ErrorKind::OperandCount, message));
        }
        let leaves = leaves(program);
        for (at, field) in self.inputs.iter().enumerate() {
            let (scalar, rank) = shape_of(field).unwrap_or((Scalar::Unit, 0));
            let own = extents.and_then(|extents| extents.get(at)).map_or(&ONES[..rank], |own| *own);
            if own.len() != rank {
                return Err(misfit(field, &format!("has {} axes", own.len())));
            }
            lowering.set_leaf(leaves.get(&*field.name).copied(), scalar, own, &field.name)?;
        }
        for (name, default) in &self.absent {
            lowering.set_default(leaves.get(&**name).copied(), default)?;
        }
        lowering.lower(program.outputs.iter().map(|output| output.node))?;
        let mut nodes = Vec::with_capacity(program.outputs.len());
        for output in &program.outputs {
            nodes.push(lowering.output(output.node).map_err(|error| match output.span {
                Some(span) => error.at(span),
                None => error,
            })?);
        }
        Ok((lowering.graph, nodes))
    }
}

/// The error of an input of a type that has no place beside tensors.
#[cold]
fn unfit_input(input: &Input, qtype: &QType) -> Diagnostic {
    let message = format!("input `{}` is {qtype}, beside tensors", input.name);
    let problem = Diagnostic::new(Code::InputType, message).at(input.span);
    problem.hint(match qtype {
        QType::Optional(scalar) if scalar.is_tensor_element() => {
            let (name, of) = (&input.name, scalar.short_name());
            let default = if *scalar == Scalar::Boolean { "false" } else { "0" };
            format!(
                "nothing is missing beside tensors: write `{name}: {of}`, or `{name}: {of}? = {default}` with a default"
            )
        }
        _ => "inputs beside tensors are tensors, or bool, i32, i64, f32 or f64".to_owned(),
    })
}

/// The error that an input was given something else than it is.
#[cold]
pub(crate) fn misfit(field: &Field, found: &str) -> cembra_tensor::Error {
    let message = format!("input `{}` is {}, and {found}", Excerpt::quoted(&field.name), field.declaration());
    cembra_tensor::Error::new(ErrorKind::RankMismatch, message)
}

/// The leaves of a program by name.
fn leaves(program: &Program) -> BTreeMap<&str, NodeId> {
    let nodes = (0..program.graph.len()).map(NodeId::from_index);
    let leaf = |node| match program.graph.node(node) {
        Node::Leaf(name) => Some((&**program.graph.name(name), node)),
        _ => None,
    };
    nodes.filter_map(leaf).collect()
}
