//! Models with tensors among their inputs: what reads one, says its inputs and outputs, and evaluates it. The extents come with the tensors,
//! so a model is lowered and planned for those; an executor keeps the plans, the evaluator what is compiled of them.

mod assigned;
mod calls;
mod executor;
mod lowering;
mod nodes;

use crate::model::Model;
use cembra_engine::{Error, Evaluator, Field, MOST_MODEL_NODES, Planned, Signature};
use cembra_expr::{Input, Node, NodeId, Program};
use cembra_ops::Meaning;
use cembra_runtime::{Excerpt, QType, Scalar};
use cembra_tensor::{Elements, ErrorKind, Graph, NodeId as TensorNode, Tensor, check_bytes};
use cembra_value::{Code, Diagnostic, Limit};
use lowering::{Lowering, of_elements, type_of};
use std::collections::BTreeMap;
use std::sync::Arc;

pub use executor::TensorExecutor;

/// A model with tensors, whose types and labels are known to fit.
///
/// ```
/// use cembra::tensor::{Evaluator, Tensor, TensorModel};
/// use cembra::Options;
/// use std::collections::BTreeMap;
///
/// let model = TensorModel::parse(r#"
///     input a: tensor[f64, 2], b: tensor[f64, 2], scale: f64
///     let product("i,j") = a("i,k") * b("k,j")
///     output c = tensor.relu(scale * product - 1.0)
///     output norm("") = product("i,j") * product("i,j")"#)?;
/// assert_eq!(model.outputs()[0].qtype.to_string(), "tensor[f64, 2]");
/// let matrix = |elements: [f64; 4]| Tensor::new(&[2, 2], elements.to_vec());
/// let tensors = BTreeMap::from([
///     ("a".to_owned(), matrix([1.0, 2.0, 3.0, 4.0])?),
///     ("b".to_owned(), matrix([0.0, 1.0, 1.0, 0.0])?),
///     ("scale".to_owned(), Tensor::scalar(0.5)),
/// ]);
/// let made = model.evaluate(&Evaluator::new(&Options::default()), &tensors)?;
/// assert_eq!(&*made[0].0, "c");
/// assert_eq!(made[0].1.to_vec::<f64>()?, [0.0, 0.0, 1.0, 0.5]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct TensorModel {
    model: Model,
    inputs: Box<[Field]>,
    outputs: Box<[Field]>,
}

/// The extents of what no extents are known of.
const ONES: [usize; cembra_tensor::MOST_AXES] = [1; cembra_tensor::MOST_AXES];

/// The element type and the number of axes of an input. One that may be missing has a default in its place, and is a scalar so.
fn shape_of(field: &Field) -> Option<(Scalar, usize)> {
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
    Field { default: input.default.clone(), ..Field::new(&input.name, qtype) }
}

impl TensorModel {
    /// True if some input of a program is a tensor: then [`TensorModel`] evaluates it, and else an executor.
    #[must_use]
    pub fn is_of(program: &Program) -> bool {
        program.inputs.iter().any(|input| matches!(input.qtype, Some(QType::Tensor(..))))
    }

    /// Reads a model from text.
    ///
    /// # Errors
    /// What is wrong with the text, its types or its labels; or that no input is a tensor.
    pub fn parse(source: &str) -> Result<TensorModel, Error> {
        TensorModel::new(&Model::parse(source)?)
    }

    /// A model that is read already.
    ///
    /// ```
    /// use cembra::Model;
    /// use cembra::tensor::TensorModel;
    ///
    /// let model = Model::parse("input x: tensor[f64, 2]; output y(\"i\") = x(\"i,j\")")?;
    /// let error = TensorModel::new(&model).unwrap_err();
    /// assert_eq!((error.code(), error.diagnostics()[0].message()), ("labels", "the label `j` is not in the target"));
    /// assert_eq!(TensorModel::new(&Model::parse("input x: f64; x + 1.0")?).unwrap_err().code(), "tensors");
    /// # Ok::<(), cembra::Error>(())
    /// ```
    ///
    /// # Errors
    /// Its types or labels do not fit, or no input is a tensor.
    pub fn new(model: &Model) -> Result<TensorModel, Error> {
        let program = model.program();
        if !TensorModel::is_of(program) {
            let problem = Diagnostic::new(Code::Tensors, "no input of the model is a tensor");
            return Err(problem.hint("`Model::executor` and `Model::compile` evaluate it, row by row").into());
        }
        let mut inputs = Vec::with_capacity(program.inputs.len());
        for input in &program.inputs {
            let Some(qtype) = &input.qtype else {
                let message = format!("input `{}` has no type", input.name);
                let hint = format!("declare it, as in `input {}: tensor[f64, 2]`", input.name);
                return Err(Diagnostic::new(Code::MissingInputType, message).at(input.span).hint(hint).into());
            };
            let field = field_of(input, qtype);
            if shape_of(&field).is_none() {
                let message = format!("input `{}` is {qtype}, beside tensors", input.name);
                let problem = Diagnostic::new(Code::InputType, message).at(input.span);
                let hint = match qtype {
                    QType::Optional(scalar) if scalar.is_tensor_element() => {
                        let (name, of) = (&input.name, scalar.short_name());
                        let default = if *scalar == Scalar::Boolean { "false" } else { "0" };
                        format!(
                            "nothing is missing beside tensors: write `{name}: {of}`, or `{name}: {of}? = {default}` with a default"
                        )
                    }
                    _ => "inputs beside tensors are tensors, or bool, i32, i64, f32 or f64".to_owned(),
                };
                return Err(problem.hint(hint).into());
            }
            inputs.push(field);
        }
        let mut checked = TensorModel { model: model.clone(), inputs: inputs.into(), outputs: Box::default() };
        let (graph, nodes) = checked.lowered(None)?;
        let named = program.outputs.iter().zip(nodes);
        checked.outputs = named.map(|(output, node)| Field::new(&output.name, &type_of(&graph, node))).collect();
        Ok(checked)
    }

    /// The model as it was read.
    #[must_use]
    pub const fn model(&self) -> &Model {
        &self.model
    }

    /// The inputs, in the order of the model. Scalars are tensors without axes; one with a default may be left out where inputs are given by
    /// their names.
    #[must_use]
    pub const fn inputs(&self) -> &[Field] {
        &self.inputs
    }

    /// The outputs with their types, in the order of the model.
    #[must_use]
    pub const fn outputs(&self) -> &[Field] {
        &self.outputs
    }

    /// Inputs and outputs, as for a model without tensors.
    #[must_use]
    pub fn signature(&self) -> Signature {
        Signature { inputs: self.inputs.to_vec(), outputs: self.outputs.to_vec() }
    }

    /// The model as a graph, whose leaves are the inputs in their order, and the nodes of the outputs.
    ///
    /// # Errors
    /// Another number of extents than of inputs, extents that do not fit the inputs or each other, or a graph that becomes too large.
    pub fn graph(&self, extents: &[&[usize]]) -> Result<(Graph, Vec<TensorNode>), cembra_tensor::Error> {
        self.lowered(Some(extents))
    }

    /// The type of each node of a model that may be wrong, by position; none of what has none, and of what is labelled.
    pub(crate) fn node_types(model: &Model) -> Vec<Option<QType>> {
        let program = model.program();
        let mut lowering = Lowering::new(&program.graph, model.registry(), MOST_MODEL_NODES, false);
        let leaves = leaves(program);
        for input in &program.inputs {
            let shape = input.qtype.as_ref().and_then(|qtype| shape_of(&field_of(input, qtype)));
            if let Some((scalar, rank)) = shape {
                // What becomes too large has no type, and what is made of it has none.
                let _ = lowering.set_leaf(leaves.get(&*input.name).copied(), scalar, &ONES[..rank], &input.name);
            }
        }
        lowering.lower_as_far_as_possible();
        (0..program.graph.len()).map(|at| lowering.node_type(NodeId::from_index(at))).collect()
    }

    /// The graph for some extents, or if none are known, for an extent of 1 of each axis.
    fn lowered(&self, extents: Option<&[&[usize]]>) -> Result<(Graph, Vec<TensorNode>), cembra_tensor::Error> {
        let program = self.model.program();
        let mut lowering = Lowering::new(&program.graph, self.model.registry(), MOST_MODEL_NODES, extents.is_some());
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

    /// Plans the model for tensors of these extents, one list for each input.
    ///
    /// # Errors
    /// As for [`TensorModel::graph`]; or a constant that fails.
    pub fn plan<'e>(
        &self,
        evaluator: &'e Evaluator,
        extents: &[&[usize]],
    ) -> Result<Planned<'e>, cembra_tensor::Error> {
        let (graph, nodes) = self.graph(extents)?;
        evaluator.plan(&graph, &nodes)
    }

    /// What evaluates the model many times: it plans once for tensors of the same extents.
    #[must_use]
    pub fn executor<'e>(&'e self, evaluator: &'e Evaluator) -> TensorExecutor<'e> {
        TensorExecutor::new(self, evaluator)
    }

    /// The outputs on tensors for the inputs, by name, through a plan that is made for this once. A scalar is a tensor without axes; one with a
    /// default may be left out.
    ///
    /// ```
    /// use cembra::Options;
    /// use cembra::tensor::{Evaluator, Tensor, TensorModel};
    /// use std::collections::BTreeMap;
    ///
    /// let model = TensorModel::parse("input x: tensor[f64, 1], by: f64? = 2; output y = x * by")?;
    /// let evaluator = Evaluator::new(&Options::default());
    /// let mut tensors = BTreeMap::from([("x".to_owned(), Tensor::new(&[2], vec![1.0, 3.0])?)]);
    /// assert_eq!(model.evaluate(&evaluator, &tensors)?[0].1.to_vec::<f64>()?, [2.0, 6.0]);
    /// tensors.insert("by".to_owned(), Tensor::scalar(10.0));
    /// assert_eq!(model.evaluate(&evaluator, &tensors)?[0].1.to_vec::<f64>()?, [10.0, 30.0]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// An input that there is no tensor for, or one of another type; extents that do not fit, an element that fails, or an output that has
    /// more elements than the limit of bytes of arrays allows.
    pub fn evaluate(
        &self,
        evaluator: &Evaluator,
        tensors: &BTreeMap<String, Tensor>,
    ) -> Result<Vec<(Arc<str>, Tensor)>, cembra_tensor::Error> {
        self.executor(evaluator).evaluate(tensors)
    }

    /// The outputs likewise, node by node as the text has them: what [`TensorModel::evaluate`] is compared with.
    ///
    /// # Errors
    /// As for [`TensorModel::evaluate`].
    pub fn evaluate_unplanned(
        &self,
        evaluator: &Evaluator,
        tensors: &BTreeMap<String, Tensor>,
    ) -> Result<Vec<(Arc<str>, Tensor)>, cembra_tensor::Error> {
        let given = self.given(tensors)?;
        self.check(&given)?;
        let extents: Vec<&[usize]> = given.iter().map(Tensor::extents).collect();
        let (graph, nodes) = self.graph(&extents)?;
        self.check_outputs(&graph, &nodes, evaluator)?;
        Ok(self.named(evaluator.evaluate(&graph, &nodes, &given)?))
    }

    /// The outputs with their names.
    fn named(&self, made: Vec<Tensor>) -> Vec<(Arc<str>, Tensor)> {
        self.outputs.iter().map(|output| output.name.clone()).zip(made).collect()
    }

    /// The tensors of the inputs, in their order.
    fn given(&self, tensors: &BTreeMap<String, Tensor>) -> Result<Vec<Tensor>, cembra_tensor::Error> {
        let given = self.inputs.iter().map(|field| match (tensors.get(&*field.name), &field.default) {
            (Some(tensor), _) => Ok(tensor.clone()),
            (None, Some(default)) => Tensor::of_value(default),
            (None, None) => {
                let message = format!("there is no tensor for the input `{}`", Excerpt::quoted(&field.name));
                Err(cembra_tensor::Error::new(ErrorKind::UnknownName, message))
            }
        });
        given.collect()
    }

    /// An error of a run, at the only place of the text that can fail so, if there is only one: plans do not know where what they compute
    /// was written.
    fn placed(&self, error: cembra_tensor::Error) -> cembra_tensor::Error {
        let program = self.model.program();
        let message = error.to_string();
        let failed = match error.kind() {
            ErrorKind::Index => "tensor.take",
            ErrorKind::Evaluation => message.split(':').next().unwrap_or(""),
            _ => return error,
        };
        let needed = program.graph.reachable(program.outputs.iter().map(|output| output.node));
        let mut places = (0..needed.len()).filter(|at| needed[*at]).map(NodeId::from_index).filter(|node| {
            let Node::Operator(name, _) = program.graph.node(*node) else { return false };
            let op = self.model.registry().find(program.graph.name(name));
            let def = op.map(|op| self.model.registry().get(of_elements(op)));
            // What stands for other operators may fail in their names.
            def.is_some_and(|def| {
                def.name == failed || (!def.faults.is_empty() && !matches!(def.meaning, Meaning::Overloads(_)))
            })
        });
        match (places.next().and_then(|node| program.graph.span(node)), places.next()) {
            (Some(span), None) => error.at(span),
            _ => error,
        }
    }

    /// An error if these are not of the types of the inputs.
    fn check(&self, given: &[Tensor]) -> Result<(), cembra_tensor::Error> {
        if given.len() != self.inputs.len() {
            let message = format!("{} tensors for {} inputs", given.len(), self.inputs.len());
            return Err(cembra_tensor::Error::new(ErrorKind::OperandCount, message));
        }
        for (field, tensor) in self.inputs.iter().zip(given) {
            if shape_of(field) != Some((tensor.scalar_type(), tensor.extents().len())) {
                let found = format!("is given as {} of {:?}", tensor.scalar_type(), tensor.extents());
                return Err(misfit(field, &found));
            }
        }
        Ok(())
    }

    /// An error if an output takes more memory than arrays may have. A view of little memory may have more elements than anybody has memory
    /// for, so that whoever copies one would find none.
    fn check_outputs(
        &self,
        graph: &Graph,
        nodes: &[TensorNode],
        evaluator: &Evaluator,
    ) -> Result<(), cembra_tensor::Error> {
        let spans = self.model.program().outputs.iter().map(|output| output.span.unwrap_or_default());
        for ((output, node), span) in self.outputs.iter().zip(nodes).zip(spans) {
            check_bytes(graph.scalar(*node), graph.extents(*node), evaluator.most_bytes()).map_err(|error| {
                let message = format!("output `{}`: {error}", Excerpt::quoted(&output.name));
                let error = cembra_tensor::Error::new(ErrorKind::Limit, message).at(span);
                error.hint(Limit::ArrayBytes.hint())
            })?;
        }
        Ok(())
    }
}

fn misfit(field: &Field, found: &str) -> cembra_tensor::Error {
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
