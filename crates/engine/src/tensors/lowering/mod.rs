//! Programs with tensors among their inputs: the types of their inputs and outputs, and their graphs of tensors. The extents of inputs are known only
//! when a caller gives tensors. So a program is lowered once with all extents 1 to check its types, and once for each list of extents.

mod assigned;
mod axis_tiles;
mod calls;
mod lower;
mod made;
mod nodes;
mod non_tensors;
mod numbers;
mod parts;
mod sorting;
mod tilings;

use crate::options::compile_options::{CompileOptions, TimedOptions};
use crate::options::signature::Field;
use crate::stages::prepare;
use cembra_expr::{AxisCut, Input, Node, NodeId, Output, Program};
use cembra_ops::{Registry, id};
use cembra_runtime::{Excerpt, QType, Scalar};
use cembra_tensor::{TensorErrorKind, TensorGraph, TensorNodeId};
use cembra_value::Error;
use cembra_value::{Code, Diagnostic, ScalarValue, Span};
use lower::{Lowering, type_of};
use non_tensors::NonTensorFacts;
use parts::{is_of_arrays, program_of};
use std::collections::BTreeMap;
use std::sync::Arc;
use tilings::Tilings;

pub(crate) use lower::tensor_of;
pub(crate) use parts::{Origin, Parts};
pub(crate) use tilings::{cuts, is_tiled};

/// The most nodes that the graph of a program may have. A short text can become a large graph, if functions call other functions twice, or by
/// gradients of gradients. A plan for this many nodes takes up to one GiB while it is made.
pub const MOST_MODEL_NODES: usize = 1 << 18;

/// A program with tensors whose types and labels were checked.
#[derive(Clone, Debug)]
pub struct TensorProgram {
    program: Arc<Program>,
    registry: &'static Registry,
    inputs: Box<[Field]>,
    outputs: Box<[Field]>,
    /// The inputs that the caller leaves out, each with its default.
    absent: Box<[(Arc<str>, ScalarValue)]>,
}

/// The extents of inputs before tensors are given.
const ONES: [usize; cembra_tensor::MOST_AXES] = [1; cembra_tensor::MOST_AXES];

/// The element type and the number of axes of the tensor that an input becomes; `None` if tensors cannot have the input's type. A scalar has no axes;
/// an optional input with a default counts as a scalar.
pub(crate) fn shape_of(field: &Field) -> Option<(Scalar, usize)> {
    match (&field.qtype, &field.default) {
        (QType::Optional(Scalar::Unit), None) => Some((Scalar::Boolean, 0)),
        (QType::Scalar(scalar), _) | (QType::Optional(scalar), Some(_)) if scalar.is_tensor_element() => {
            Some((*scalar, 0))
        }
        (QType::Tensor(scalar, rank), _) => Some((*scalar, usize::from(*rank))),
        _ => None,
    }
}

/// Makes the field for an input of a program, with this type.
fn field_of(input: &Input, qtype: &QType) -> Field {
    let default = input.default.clone().filter(|_| qtype.is_optional());
    Field { default, labels: input.labels.clone(), ..Field::new(&input.name, qtype) }
}

/// The type of an input: the declared one, or the one from the options. If an input with a default is always given, the
/// options may give it the type without optionality.
fn type_of_input<'t>(input: &'t Input, options: &'t CompileOptions) -> Option<&'t QType> {
    let given = options.input_types.get(&*input.name);
    match (&input.qtype, given) {
        (Some(declared), Some(given)) if input.default.is_some() && declared.scalar() == given.scalar() => Some(given),
        (declared, given) => declared.as_ref().or(given),
    }
}

/// Returns an error if the options give an input another type than the declared one, or if its default has another type.
fn check_declaration(input: &Input, qtype: &QType, options: &CompileOptions) -> Result<(), Diagnostic> {
    input.check_default()?;
    let Some(given) = options.input_types.get(&*input.name).filter(|given| *given != qtype) else { return Ok(()) };
    let message = format!("input `{}` is declared {qtype}, but is given as {given}", input.name);
    let problem = Diagnostic::new(Code::InputType, message).at(input.span);
    Err(problem.label(format!("declared {qtype} here")))
}

/// For the inputs of a graph, their division into tiles and the values of inputs that are constants. Each list has one entry per input.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TileInputs<'t> {
    /// The cuts of the inputs' axes into tiles; an axis without a cut is one tile.
    pub(crate) cuts: &'t [Vec<Option<AxisCut>>],
    /// The values of the inputs that are numbers; `None` for inputs that are tensors.
    pub(crate) numbers: &'t [Option<ScalarValue>],
}

/// A program with tensors, after it was decided which of its values are tensors: a tensor program, or several parts.
#[derive(Debug)]
pub(crate) enum SplitOutcome {
    /// The program has only values that are tensors or numbers.
    Tensors(TensorProgram),
    /// The program also has other values, and was split into parts.
    Parts(Parts),
}

impl TensorProgram {
    /// Returns true if an input of a program is a tensor, or if the program converts arrays to tensors.
    #[must_use]
    pub fn is_of(program: &Program, options: &CompileOptions) -> bool {
        TensorProgram::tensor_input(program, options).is_some() || is_of_arrays(program, options.prepare.registry)
    }

    /// The first input of a program that is a tensor; `None` if no input is a tensor.
    pub(crate) fn tensor_input<'p>(program: &'p Program, options: &CompileOptions) -> Option<&'p Input> {
        program.inputs.iter().find(|input| matches!(type_of_input(input, options), Some(QType::Tensor(..))))
    }

    /// Checks the types and labels of a program, and splits it into parts if it has other values besides tensors.
    ///
    /// # Errors
    /// If types or labels do not fit, or an input has no type.
    pub(crate) fn sort(program: Arc<Program>, options: &TimedOptions) -> Result<SplitOutcome, Error> {
        let (mut inputs, mut absent) = (Vec::with_capacity(program.inputs.len()), Vec::new());
        let registry = options.prepare.registry;
        let mut lowering = Lowering::new(&program.graph, registry, MOST_MODEL_NODES, false).within(options.budget());
        lowering.non_tensors = Some(NonTensorFacts::new(&program, options));
        let leaves = leaves(&program);
        for (input, _) in program.inputs.iter().zip(program.needed_inputs()).filter(|(_, needed)| *needed) {
            let Some(qtype) = type_of_input(input, options) else {
                let message = format!("input `{}` has no type", input.name);
                let hint = format!("declare the type, as in `input {}: tensor[f64, 2]`", input.name);
                return Err(Diagnostic::new(Code::MissingInputType, message).at(input.span).hint(hint).into());
            };
            check_declaration(input, qtype, options)?;
            let (field, leaf) = (field_of(input, qtype), leaves.get(&*input.name).copied());
            match (&field.default, shape_of(&field)) {
                (Some(default), Some(_)) if options.prepare.absent.contains(&*input.name) => {
                    lowering.set_number(leaf, default, false)?;
                    absent.push((field.name, default.clone()));
                }
                (_, Some((scalar, rank))) => {
                    lowering.set_input(&field, leaf, scalar, &ONES[..rank])?;
                    inputs.push(field);
                }
                (_, None) => {}
            }
            if let Some(leaf) = leaf {
                lowering.sort_leaf(leaf, matches!(qtype, QType::Tensor(..)));
            }
        }
        let lowered = lowering.lower(program.outputs.iter().map(|output| output.node));
        if let (Err(error), Some(node)) =
            (&lowered, lowering.non_tensors.as_ref().and_then(|non_tensors| non_tensors.untyped))
        {
            // If the value has an error of its own, that error says more.
            let alone = program_of(&program, vec![Output { name: "".into(), node, span: None }]);
            prepare(&alone, options, &mut |_, _| {})?;
            return Err(error.clone());
        }
        lowered?;
        tilings::check_labels(&program, registry, &inputs)?;
        if let Some(parts) = lowering.split_into_parts(&program)? {
            return Ok(SplitOutcome::Parts(parts));
        }
        let mut outputs = Vec::with_capacity(program.outputs.len());
        for output in &program.outputs {
            let whole = lowering.output_of(output)?;
            outputs.push(Field::new(&output.name, &type_of(&lowering.graph, whole)));
        }
        drop(lowering);
        let (inputs, outputs, absent) = (inputs.into(), outputs.into(), absent.into());
        Ok(SplitOutcome::Tensors(TensorProgram { program, registry, inputs, outputs, absent }))
    }

    /// The inputs and the outputs with their types, in the order of the program. Scalars count as tensors without axes.
    pub(crate) fn fields(&self) -> [Box<[Field]>; 2] {
        [self.inputs.clone(), self.outputs.clone()]
    }

    /// The span in the text of the output with index `at`.
    pub(crate) fn output_span(&self, at: usize) -> Span {
        self.program.outputs.get(at).and_then(|output| output.span).unwrap_or_default()
    }

    /// Returns the type of each node, by its position, for a program that may have errors. The type is `None` for a node without a type and for an
    /// expression over labels.
    pub fn node_types(program: &Program, options: &CompileOptions) -> Vec<Option<QType>> {
        let mut lowering = Lowering::new(&program.graph, options.prepare.registry, MOST_MODEL_NODES, false)
            .within(&options.prepare.budget);
        lowering.non_tensors = Some(NonTensorFacts::new(program, options));
        let leaves = leaves(program);
        for input in &program.inputs {
            let (qtype, leaf) = (type_of_input(input, options), leaves.get(&*input.name).copied());
            let field = qtype.map(|qtype| field_of(input, qtype));
            if let Some((field, (scalar, rank))) =
                field.and_then(|field| Some((shape_of(&field)?, field))).map(|(shape, field)| (field, shape))
            {
                // If the graph has no room for a leaf, the leaf and its users have no type.
                let _ = lowering.set_input(&field, leaf, scalar, &ONES[..rank]);
            }
            if let Some(leaf) = leaf {
                lowering.sort_leaf(leaf, matches!(qtype, Some(QType::Tensor(..))));
            }
        }
        lowering.lower_as_far_as_possible();
        (0..program.graph.len()).map(|at| lowering.node_type(NodeId::from_index(at))).collect()
    }

    /// Returns true if the text selects blocks of tiles, so that the program's graph depends on how tensors are cut into tiles.
    pub(crate) fn has_blocks(&self) -> bool {
        self.program.graph.find_name(self.registry.get(id::TENSOR_BLOCK).name).is_some()
    }

    /// Lowers the program to a graph, whose leaves are the inputs in order; also returns the nodes of the outputs. Tensors are cut into tiles as
    /// `tiles` says; if that is `None`, as the text says. With `tiles`, some inputs may be numbers, which become constants instead of leaves.
    ///
    /// # Errors
    /// If extents do not fit the inputs or each other, a block has a tile that its axis does not have, or the graph becomes too large.
    pub(crate) fn graph(
        &self,
        extents: &[&[usize]],
        tiles: Option<TileInputs<'_>>,
    ) -> Result<(TensorGraph, Vec<TensorNodeId>), Error> {
        let program = &*self.program;
        let mut lowering = Lowering::new(&program.graph, self.registry, MOST_MODEL_NODES, true);
        if tiles.is_some() {
            lowering.graph.set_for_tiles();
            lowering.leaves_out_branches = true;
        }
        if self.has_blocks() {
            lowering.tilings = match tiles {
                Some(TileInputs { cuts, numbers }) => {
                    // A number is not a leaf of the graph.
                    let leaves = cuts.iter().zip(numbers).filter(|(_, number)| number.is_none());
                    Tilings::of_tensors(leaves.map(|(cuts, _)| &**cuts))
                }
                None => Tilings::of_text(program, &self.inputs),
            };
        }
        if extents.len() != self.inputs.len() {
            let message = format!("extents must be given for all {} inputs", self.inputs.len());
            return Err(Error::tensors(TensorErrorKind::OperandCount, message));
        }
        let leaves = leaves(program);
        for (at, (field, own)) in self.inputs.iter().zip(extents).enumerate() {
            let (scalar, rank) = shape_of(field).unwrap_or((Scalar::Unit, 0));
            let leaf = leaves.get(&*field.name).copied();
            if own.len() != rank {
                return Err(misfit(field, &format!("has {} axes", own.len())));
            }
            match tiles.and_then(|tiles| tiles.numbers.get(at)?.as_ref()) {
                Some(number) if (number.scalar(), 0) == (scalar, rank) => {
                    lowering.graph.set_span(leaf.and_then(|leaf| program.graph.span(leaf)));
                    lowering.set_number(leaf, number, lower::is_mask(field))?;
                }
                Some(number) => return Err(misfit(field, &format!("is given as {}", number.scalar()))),
                None => lowering.set_input(field, leaf, scalar, own)?,
            }
        }
        for (name, default) in &self.absent {
            lowering.set_number(leaves.get(&**name).copied(), default, false)?;
        }
        lowering.lower(program.outputs.iter().map(|output| output.node))?;
        let nodes = program.outputs.iter().map(|output| Ok(lowering.output_of(output)?.node));
        let nodes = nodes.collect::<Result<_, Error>>()?;
        Ok((lowering.graph, nodes))
    }
}

/// The error for an input to which the caller gave `found`, a value of another type or shape.
#[cold]
pub(crate) fn misfit(field: &Field, found: &str) -> Error {
    let message = format!("input `{}` is {}, but {found}", Excerpt::quoted(&field.name), field.declaration());
    Error::tensors(TensorErrorKind::RankMismatch, message)
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
