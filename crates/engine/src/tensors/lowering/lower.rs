//! What nodes of a model become in a graph of tensors whose extents are known: literals, operators on elements, which are those of the
//! registry, and what is labelled, which is handed to the expressions of `cembra_tensor` that know what labels mean. Which operator becomes
//! what is said in `nodes`.

use super::apart::Apart;
use super::made::{LoweredTensor, NodeForm};
use super::tilings::Tilings;
use crate::options::signature::Field;
use cembra_expr::{Graph as Program, Node, NodeId, Output, tensor_form};
use cembra_ops::{OpId, Registry, id};
use cembra_runtime::{Excerpt, Names, QType, Scalar};
use cembra_tensor::{
    ElementOperator, Expression, ReversePass, Subexpression, TensorErrorKind, TensorGraph, TensorNodeId as Tensor,
};
use cembra_value::Error;
use cembra_value::{Array, Budget, ScalarValue, Span, Value, common_scalar};
use rustc_hash::FxHashMap;

/// Operators of the language whose results may be missing, and what they are of elements, of which none is.
const OF_ELEMENTS: [(OpId, OpId); 14] = [
    (id::PLUS, id::ADD),
    (id::EQUAL, id::BOOL_EQUAL),
    (id::NOT_EQUAL, id::BOOL_NOT_EQUAL),
    (id::LESS, id::BOOL_LESS),
    (id::LESS_EQUAL, id::BOOL_LESS_EQUAL),
    (id::GREATER, id::BOOL_GREATER),
    (id::GREATER_EQUAL, id::BOOL_GREATER_EQUAL),
    (id::AND, id::LOGICAL_AND),
    (id::OR, id::LOGICAL_OR),
    (id::NOT, id::LOGICAL_NOT),
    (id::SHORT_WHERE, id::TENSOR_WHERE),
    (id::WHERE, id::TENSOR_WHERE),
    (id::SHORT_SUM, id::MATH_SUM),
    (id::SHORT_MEDIAN, id::MATH_MEDIAN),
];

/// What is lowered, and what was made of it so far.
pub(super) struct Lowering<'p> {
    pub(super) program: &'p Program,
    pub(super) registry: &'static Registry,
    pub(super) graph: TensorGraph,
    /// True if the extents are those of tensors; else all are 1, and only types and numbers of axes mean something.
    pub(super) has_extents: bool,
    pub(super) made: Vec<NodeForm>,
    /// How many parts all labelled expressions had: a definition is a part of each that it is used in, as often as it is.
    labelled: usize,
    /// True if integers may become f64 where they are divided or meet floats.
    pub(super) has_wide_numbers: bool,
    /// The types of the elements of labelled expressions, where integers may become f64.
    pub(super) labelled_types: FxHashMap<NodeId, Scalar>,
    /// True if a branch is left out that a known condition does not choose. An evaluation in tiles knows the conditions that no tensor decides.
    pub(super) leaves_out_branches: bool,
    /// How the axes of tensors are cut, if blocks of them are taken.
    pub(super) tilings: Tilings,
    /// What is known of values beside tensors; none once a program was taken apart.
    pub(super) apart: Option<Apart<'p>>,
    /// The derivatives of each number, as far as calls asked for them.
    passes: FxHashMap<Tensor, ReversePass>,
    /// The nodes that `passes` go over together.
    passed: usize,
    /// The budget of the compilation, if the program is lowered for one.
    budget: Option<&'p Budget>,
}

/// The most nodes that the kept passes go over together, unless there is only one pass. A node takes some two hundred bytes. Beyond it all
/// passes are dropped, and begun again where they are asked for.
const MOST_PASSED: usize = 1 << 19;

/// The most parts that all labelled expressions of a model may have.
const MOST_LABELLED: usize = 1 << 22;

impl<'p> Lowering<'p> {
    pub(super) fn new(program: &'p Program, registry: &'static Registry, most_nodes: usize, has_extents: bool) -> Self {
        let graph = TensorGraph::new(registry).limited(most_nodes);
        Lowering {
            program,
            registry,
            graph,
            has_extents,
            made: vec![NodeForm::Nothing; program.len()],
            labelled: 0,
            has_wide_numbers: [id::WIDE, id::BESIDE]
                .iter()
                .any(|op| program.find_name(registry.get(*op).name).is_some()),
            labelled_types: FxHashMap::default(),
            leaves_out_branches: false,
            tilings: Tilings::default(),
            apart: None,
            passes: FxHashMap::default(),
            passed: 0,
            budget: None,
        }
    }

    /// The same, within the time of a compilation.
    pub(super) fn within(self, budget: &'p Budget) -> Self {
        Lowering { budget: Some(budget), ..self }
    }

    /// Fails if the time of the compilation is over, at the visit of the node at this position.
    pub(super) fn check_visit(&self, at: usize) -> Result<(), Error> {
        self.budget.map_or(Ok(()), |budget| budget.check_visit(at).map_err(Error::from))
    }

    /// The derivative of a number by a node. All calls with the same number share one pass.
    pub(super) fn gradient(&mut self, number: Tensor, by: Tensor) -> Result<Vec<Tensor>, Error> {
        // A pass may take as long as thousands of other nodes.
        self.check_visit(0)?;
        let mut pass = match self.passes.remove(&number) {
            Some(pass) => pass,
            None => {
                let pass = ReversePass::of_number(&mut self.graph, number, &[])?;
                self.passed += pass.len();
                if self.passed > MOST_PASSED {
                    self.passes.clear();
                    self.passed = pass.len();
                }
                pass
            }
        };
        let made = pass.cotangents(&mut self.graph, &[by]);
        self.passes.insert(number, pass);
        made
    }

    /// Says that a leaf of the program is an input, of these extents.
    pub(super) fn set_input(
        &mut self,
        field: &Field,
        leaf: Option<NodeId>,
        scalar: Scalar,
        extents: &[usize],
    ) -> Result<(), Error> {
        let node = self.graph.leaf(&field.name, scalar, extents)?;
        // No node may use an input.
        if let Some(made) = leaf.and_then(|leaf| self.made.get_mut(leaf.index())) {
            *made = NodeForm::Tensor(LoweredTensor { is_mask: is_mask(field), ..LoweredTensor::of(node) });
        }
        Ok(())
    }

    /// Says that a leaf of the program is a number, or a mask as a truth value.
    pub(super) fn set_number(&mut self, leaf: Option<NodeId>, value: &ScalarValue, is_mask: bool) -> Result<(), Error> {
        let node = self.graph.literal(value)?;
        if let Some(made) = leaf.and_then(|leaf| self.made.get_mut(leaf.index())) {
            *made = NodeForm::Tensor(LoweredTensor { is_mask, ..LoweredTensor::of(node) });
        }
        Ok(())
    }

    /// The tensor of an output, with its place if it is none.
    pub(super) fn output_of(&mut self, output: &Output) -> Result<LoweredTensor, Error> {
        self.output(output.node).map_err(|error| error.at(output.span.unwrap_or_default()))
    }

    fn output(&mut self, node: NodeId) -> Result<LoweredTensor, Error> {
        if matches!(self.made[node.index()], NodeForm::Labelled) {
            let error =
                Error::tensors(TensorErrorKind::FreeLabel, "this output is labelled inside, and has no labels itself");
            return Err(error.hint("name its axes: `output c(\"i,j\") = ..`; a number has none: `output c(\"\") = ..`"));
        }
        self.whole(node)
    }

    /// Where a node stands; nowhere if there is no text.
    pub(super) fn span(&self, node: NodeId) -> Span {
        self.program.span(node).unwrap_or_default()
    }

    /// A literal, if the node is one.
    pub(super) fn value(&self, node: NodeId) -> Option<&'p Value> {
        if let Node::Literal(value) = self.program.node(node) { Some(value) } else { None }
    }

    /// The fields of a tuple, and its names as a literal if it has some.
    fn parts_of_tuple(&self, node: NodeId) -> Option<(Option<NodeId>, &'p [NodeId])> {
        let NodeForm::Tuple(made) = self.made[node.index()] else { return None };
        let Node::Operator(name, operands) = self.program.node(made) else { return None };
        match (self.registry.find(self.program.name(name)), operands) {
            (Some(id::MAKE_NAMED), [names, fields @ ..]) => Some((Some(*names), fields)),
            (_, fields) => Some((None, fields)),
        }
    }

    /// The fields of a tuple.
    pub(super) fn fields(&self, node: NodeId) -> Option<&'p [NodeId]> {
        self.parts_of_tuple(node).map(|(_, fields)| fields)
    }

    /// The field of a tuple at a position, or of a name, which is a literal.
    pub(super) fn field(&mut self, tuple: NodeId, key: NodeId) -> Result<NodeForm, Error> {
        let Some((names, fields)) = self.parts_of_tuple(tuple) else {
            let error =
                Error::tensors(TensorErrorKind::ElementType, "a field of what is no tuple").at(self.span(tuple));
            return Err(match self.made[tuple.index()] {
                NodeForm::Tensor(_) => error.hint(
                    self.text(key)
                        .and_then(tensor_form)
                        .unwrap_or("operators stand in front of tensors: `tensor.transpose(x)`, `tensor.sum(x)`"),
                ),
                _ => error,
            });
        };
        let at = match self.value(key) {
            Some(Value::Scalar(ScalarValue::Int64(at))) => usize::try_from(*at).ok(),
            Some(Value::Scalar(ScalarValue::Text(name))) => match names.and_then(|names| self.value(names)) {
                Some(Value::Scalar(ScalarValue::Text(names))) => {
                    Names::parse(names).ok().and_then(|names| names.position(name))
                }
                _ => None,
            },
            _ => None,
        };
        let Some(field) = at.and_then(|at| fields.get(at).copied()) else {
            let message = match self.value(key) {
                Some(Value::Scalar(ScalarValue::Text(name))) => {
                    format!("the tuple has no field `{}`", Excerpt::quoted(name))
                }
                Some(Value::Scalar(ScalarValue::Int64(at))) => {
                    format!("the tuple has {} fields, and none at {at}", fields.len())
                }
                _ => "the tuple has no such field".to_owned(),
            };
            return Err(Error::tensors(TensorErrorKind::OperandCount, message));
        };
        match self.made[field.index()] {
            NodeForm::Tuple(tuple) => Ok(NodeForm::Tuple(tuple)),
            _ => self.whole(field).map(NodeForm::Tensor),
        }
    }

    /// The tensor that a node is.
    pub(super) fn whole(&mut self, node: NodeId) -> Result<LoweredTensor, Error> {
        match (self.made[node.index()], self.program.node(node)) {
            (NodeForm::Tensor(whole), _) => Ok(whole),
            (NodeForm::Apart, _) => self.imported(node),
            (NodeForm::Tuple(_), _) => {
                let error = Error::tensors(
                    TensorErrorKind::ElementType,
                    "this is a tuple, and what it is put into takes a tensor",
                );
                Err(error.at(self.span(node)).hint("take a field of it: `t.0`, or `t.x` of one with names"))
            }
            (NodeForm::Unbound, Node::Operator(_, &[of, labels])) => {
                let bound = self.bound(of, self.labels(labels)?, self.span(node));
                bound.map(LoweredTensor::of).map_err(|error| error.at(self.span(node)))
            }
            (NodeForm::Labelled | NodeForm::Unbound, _) => {
                let error =
                    Error::tensors(TensorErrorKind::Syntax, "this is labelled, and what it is put into takes it whole");
                Err(error.at(self.span(node)).hint("give it labels and a name before: `let t(\"i,j\") = ..`"))
            }
            (NodeForm::Nothing, Node::Literal(Value::Scalar(ScalarValue::WeakFloat(number)))) => {
                Ok(LoweredTensor { is_weak: true, ..LoweredTensor::of(self.graph.constant(Scalar::Float64, *number)?) })
            }
            (NodeForm::Nothing, Node::Literal(Value::Scalar(value))) => {
                Ok(LoweredTensor::of(self.graph.literal(value)?))
            }
            (NodeForm::Nothing, Node::Literal(Value::Array(_, array))) => {
                let node_of = self.array(array).map_err(|error| error.at(self.span(node)))?;
                let whole = LoweredTensor::of(node_of);
                // It may be long, so it is read once however often it is used.
                self.made[node.index()] = NodeForm::Tensor(whole);
                Ok(whole)
            }
            (NodeForm::Nothing, Node::Placeholder(_)) => Err(functional("this function").at(self.span(node))),
            (NodeForm::Nothing, Node::Leaf(name)) => {
                let message = format!("there is no tensor `{}`", Excerpt::quoted(self.program.name(name)));
                Err(Error::tensors(TensorErrorKind::UnknownName, message).at(self.span(node)))
            }
            (NodeForm::Nothing, _) => {
                let error =
                    Error::tensors(TensorErrorKind::ElementType, "this is no tensor, and no scalar that tensors have");
                Err(error.at(self.span(node)).hint("elements are bool, i32, i64, f32 or f64, and none is missing"))
            }
        }
    }

    /// A literal array as a tensor of one axis.
    fn array(&mut self, array: &Array) -> Result<Tensor, Error> {
        if !self.has_extents {
            let scalar = element_of(array)?;
            return self.graph.leaf("", scalar, &[1]);
        }
        self.graph.constant_tensor(&tensor_of(array)?)
    }

    /// The literal text of labels.
    pub(super) fn labels(&self, node: NodeId) -> Result<&'p str, Error> {
        let labels = self.text(node);
        labels.ok_or_else(|| Error::tensors(TensorErrorKind::BadLabel, "labels are a literal text, as in `a(\"i,k\")`"))
    }

    /// A tensor as one of a type that is written: cast to it, or declared to be of it.
    pub(super) fn typed(&mut self, of: LoweredTensor, qtype: NodeId, is_declared: bool) -> Result<Tensor, Error> {
        let Some(Value::Type(wanted)) = self.value(qtype) else {
            return Err(Error::tensors(TensorErrorKind::ElementType, "this type is no literal"));
        };
        let rank = self.graph.extents(of.node).len();
        if of.is_mask && !(is_declared && *wanted == QType::Scalar(Scalar::Boolean)) {
            return Err(Error::tensors(TensorErrorKind::ElementType, format!("a mask is no {wanted}")));
        }
        let (scalar, fits) = match wanted {
            QType::Scalar(scalar) => (*scalar, !is_declared || rank == 0),
            QType::Tensor(scalar, axes) => (*scalar, usize::from(*axes) == rank),
            _ => (Scalar::Unit, false),
        };
        let own = if of.is_weak { Scalar::WeakFloat } else { self.graph.scalar(of.node) };
        if fits && (!is_declared || common_scalar(own, scalar) == Some(scalar)) {
            return self.graph.cast(of.node, scalar);
        }
        let found = type_of(&self.graph, of);
        let (kind, said) = match (is_declared, fits) {
            (true, true) => (TensorErrorKind::ElementType, "declared to be"),
            (true, false) => (TensorErrorKind::RankMismatch, "declared to be"),
            _ => (TensorErrorKind::ElementType, "cast to be"),
        };
        Err(Error::tensors(kind, format!("a value of type {found} is {said} of type {wanted}")))
    }

    /// A tensor that a declared type of numbers reaches: cast to it, if it is of numbers that become of it.
    pub(super) fn reached(&mut self, of: LoweredTensor, qtype: NodeId) -> Result<LoweredTensor, Error> {
        let own = if of.is_weak { Scalar::WeakFloat } else { self.graph.scalar(of.node) };
        let becomes = match self.value(qtype) {
            Some(Value::Type(QType::Scalar(scalar))) if cembra_ops::becomes_declared(own, *scalar) => *scalar,
            _ => return Ok(of),
        };
        Ok(LoweredTensor::of(self.graph.cast(of.node, becomes)?))
    }

    /// The operands of an operator on elements without those behind that are not given, in the place of which there is nothing.
    pub(super) fn given(&self, operands: &'p [NodeId]) -> &'p [NodeId] {
        let last = operands.iter().rposition(|operand| !matches!(self.value(*operand), Some(Value::Unspecified)));
        &operands[..last.map_or(0, |last| last + 1)]
    }

    /// True if an operand is not given in front of one that is.
    pub(super) fn leaves_out(&self, operands: &'p [NodeId]) -> bool {
        self.given(operands).iter().any(|operand| matches!(self.value(*operand), Some(Value::Unspecified)))
    }

    /// The text, if the node is one that is a literal.
    pub(super) fn text(&self, node: NodeId) -> Option<&'p str> {
        if let Some(Value::Scalar(ScalarValue::Text(text))) = self.value(node) { Some(text) } else { None }
    }

    /// What an operator of the language is of elements, with the texts among its operands.
    pub(super) fn element_operator(&self, op: OpId, operands: &[NodeId]) -> ElementOperator {
        ElementOperator::new(of_elements(op), operands.iter().map(|operand| self.text(*operand)))
    }

    /// An operator on each element.
    pub(super) fn of_elements(
        &mut self,
        op: ElementOperator,
        operands: &[LoweredTensor],
    ) -> Result<LoweredTensor, Error> {
        let strong = operands.iter().filter(|operand| !operand.is_weak).map(|operand| operand.node);
        let strong: Vec<Tensor> = strong.collect();
        let is_number = |node: &Tensor| self.graph.scalar(*node).is_numeric();
        let is_weak = operands.iter().any(|operand| operand.is_weak) && !strong.iter().any(is_number);
        let mut nodes = Vec::with_capacity(operands.len());
        for operand in operands {
            nodes.push(if operand.is_weak { self.strengthened(operand.node, &strong)? } else { operand.node });
        }
        let node = self.graph.map(op, &nodes)?;
        Ok(LoweredTensor { is_weak: is_weak && self.graph.scalar(node) == Scalar::Float64, ..LoweredTensor::of(node) })
    }

    /// A weak value as one of the type that it takes on beside others.
    fn strengthened(&mut self, node: Tensor, beside: &[Tensor]) -> Result<Tensor, Error> {
        let scalar = self.graph.number_type(beside);
        self.graph.cast(node, scalar)
    }

    /// A labelled expression as a tensor whose axes have these labels.
    pub(super) fn bound(&mut self, of: NodeId, labels: &str, span: Span) -> Result<Tensor, Error> {
        let mut expression = Expression::new(labels, span)?;
        self.add_parts(&mut expression, of, span)?;
        expression.lower(&mut self.graph)
    }

    /// Adds what a labelled expression is made of to one that is lowered; the part that is all of it. The expression is for something at a span.
    pub(super) fn add_parts(
        &mut self,
        expression: &mut Expression,
        of: NodeId,
        span: Span,
    ) -> Result<Subexpression, Error> {
        let order = self.parts(of)?;
        self.labelled += order.len();
        if self.labelled > MOST_LABELLED {
            let message = format!("labelled expressions of more than {MOST_LABELLED} parts together");
            let error = Error::tensors(TensorErrorKind::Limit, message).at(span);
            return Err(error.hint("a definition with labels is evaluated anew wherever it is used: make it an `output`, which is a tensor"));
        }
        // Weak values take on the type of all that is beside them.
        let mut strong: Vec<Tensor> = Vec::new();
        for node in &order {
            if let Some(whole) = self.tensor_of(*node)?.filter(|whole| !whole.is_weak) {
                strong.push(whole.node);
            }
        }
        let mut made: Vec<Subexpression> = Vec::new();
        for node in order {
            let span = self.span(node);
            let part = match self.program.node(node) {
                Node::Literal(Value::Scalar(ScalarValue::WeakFloat(number))) => expression.number(*number, span)?,
                Node::Literal(Value::Scalar(ScalarValue::Int32(number))) => {
                    expression.number((*number).into(), span)?
                }
                Node::Operator(name, operands) if matches!(self.made[node.index()], NodeForm::Labelled) => {
                    // Found when it was made.
                    let op = self.registry.find(self.program.name(name)).unwrap_or(id::TENSOR_AT);
                    if let (id::TENSOR_AT, &[of, labels]) = (op, operands) {
                        let of = self.whole(of)?;
                        expression.tensor(of.node, self.labels(labels).map_err(|error| error.at(span))?, span)?
                    } else if let Some(&operand) = self.marked(op, operands) {
                        let part = made.pop().ok_or_else(|| without_parts(span))?;
                        self.wide_part(expression, node, operand, part, span)?
                    } else {
                        let operands = self.given(operands);
                        let with_texts = self.element_operator(op, operands);
                        let of_elements = operands.iter().filter(|operand| self.text(**operand).is_none());
                        let of_elements: Vec<NodeId> = of_elements.copied().collect();
                        let mut parts = made.split_off(made.len().saturating_sub(of_elements.len()));
                        if !is_arithmetic(op) {
                            // Elsewhere whole numbers are what they are, and may have to be literals.
                            for (part, operand) in parts.iter_mut().zip(of_elements) {
                                if let Some(Value::Scalar(number @ ScalarValue::Int32(_))) = self.value(operand) {
                                    let number = self.graph.literal(number)?;
                                    *part = expression.tensor(number, "", self.span(operand))?;
                                }
                            }
                        }
                        combined(expression, with_texts, parts, span)?
                    }
                }
                _ => {
                    let LoweredTensor { node, is_weak, .. } = self.whole(node)?;
                    let node = if is_weak { self.strengthened(node, &strong)? } else { node };
                    expression.tensor(node, "", span)?
                }
            };
            made.push(part);
        }
        made.pop().ok_or_else(|| without_parts(span))
    }

    /// The tensor that stands at a leaf of an expression, labelled or not; none for operators and for numbers.
    fn tensor_of(&mut self, node: NodeId) -> Result<Option<LoweredTensor>, Error> {
        match (self.made[node.index()], self.program.node(node)) {
            (_, Node::Literal(Value::Scalar(ScalarValue::WeakFloat(_) | ScalarValue::Int32(_)))) => Ok(None),
            (NodeForm::Labelled, Node::Operator(name, &[of, _])) if self.is_at(name) => self.whole(of).map(Some),
            (NodeForm::Labelled, _) => Ok(None),
            _ => self.whole(node).map(Some),
        }
    }

    pub(super) fn is_at(&self, name: cembra_expr::NameId) -> bool {
        self.registry.find(self.program.name(name)) == Some(id::TENSOR_AT)
    }

    /// The nodes of a labelled expression, operands before what they are operands of. What stands at several places is there as often,
    /// because it may be summed over other labels at each.
    fn parts(&self, of: NodeId) -> Result<Vec<NodeId>, Error> {
        let mut found = Vec::new();
        let mut open = vec![of];
        while let Some(node) = open.pop() {
            Expression::check_room(found.len() + open.len()).map_err(|error| error.at(self.span(of)))?;
            found.push(node);
            if let (NodeForm::Labelled, Node::Operator(name, operands)) =
                (self.made[node.index()], self.program.node(node))
                && !self.is_at(name)
            {
                let op = self.registry.find(self.program.name(name)).unwrap_or(id::TENSOR_AT);
                if let Some(operand) = self.marked(op, operands) {
                    open.push(*operand);
                    continue;
                }
                // Texts belong to the operator.
                open.extend(self.given(operands).iter().filter(|operand| self.text(**operand).is_none()));
            }
        }
        found.reverse();
        Ok(found)
    }
}

/// True for an input that is a mask, which tensors have as a truth value.
pub(super) fn is_mask(field: &Field) -> bool {
    field.qtype == QType::Optional(Scalar::Unit)
}

/// The type of the elements of an array that is a tensor of one axis. Weak floats are `f64`, as they are in memory.
fn element_of(array: &Array) -> Result<Scalar, Error> {
    let scalar = if array.scalar() == Scalar::WeakFloat { Scalar::Float64 } else { array.scalar() };
    if !scalar.is_tensor_element() {
        let message = format!("an array of elements of type {}, of which there are no tensors", scalar.short_name());
        return Err(
            Error::tensors(TensorErrorKind::ElementType, message).hint("elements are bool, i32, i64, f32 or f64")
        );
    }
    if let Some(at) = array.first_missing() {
        let error = Error::tensors(TensorErrorKind::ElementType, format!("element {at} of this array is missing"));
        return Err(error.hint("nothing is missing in a tensor: write a number in its place, such as `nan`"));
    }
    Ok(scalar)
}

/// An array as a tensor of one axis.
///
/// # Errors
/// An element is missing, or tensors have no such elements.
pub(crate) fn tensor_of(array: &Array) -> Result<cembra_tensor::Tensor, Error> {
    let of = &[array.len()];
    match element_of(array)? {
        Scalar::Float64 => cembra_tensor::Tensor::new(of, array.numbers::<f64>().unwrap_or_default().to_vec()),
        Scalar::Float32 => cembra_tensor::Tensor::new(of, array.numbers::<f32>().unwrap_or_default().to_vec()),
        Scalar::Int64 => cembra_tensor::Tensor::new(of, array.numbers::<i64>().unwrap_or_default().to_vec()),
        Scalar::Int32 => cembra_tensor::Tensor::new(of, array.numbers::<i32>().unwrap_or_default().to_vec()),
        _ => {
            let is_true = |element: Option<ScalarValue>| matches!(element, Some(ScalarValue::Boolean(true)));
            cembra_tensor::Tensor::new(of, array.iter().map(is_true).collect())
        }
    }
}

fn without_parts(span: Span) -> Error {
    Error::tensors(TensorErrorKind::Syntax, "an expression without parts").at(span)
}

/// The error of functions as values, and of what takes them.
pub(super) fn functional(what: &str) -> Error {
    let message = format!("{what} is of functions or sequences as values, which models with tensors do not have");
    Error::tensors(TensorErrorKind::ElementType, message).hint("call the function by its name, once for each tensor")
}

/// True if an operator on scalars makes a mask of masks and numbers, as it does in any model.
pub(super) fn makes_mask(op: OpId, operands: &[LoweredTensor]) -> bool {
    match op {
        id::EQUAL | id::NOT_EQUAL | id::LESS | id::LESS_EQUAL | id::GREATER | id::GREATER_EQUAL => true,
        id::AND | id::OR | id::NOT => operands.iter().any(|operand| operand.is_mask),
        id::WHERE | id::SHORT_WHERE => operands.iter().skip(1).all(|branch| branch.is_mask),
        _ => false,
    }
}

/// True if an operator on scalars takes masks as truth values.
pub(super) fn takes_masks(op: OpId) -> bool {
    matches!(op, id::AND | id::OR | id::NOT | id::WHERE | id::SHORT_WHERE)
}

/// What an operator of the language is of elements.
pub(super) fn of_elements(op: OpId) -> OpId {
    OF_ELEMENTS.iter().find(|(own, _)| *own == op).map_or(op, |(_, of_elements)| *of_elements)
}

/// True for what knows numbers that are beside tensors.
fn is_arithmetic(op: OpId) -> bool {
    matches!(of_elements(op), id::ADD | id::SUBTRACT | id::MULTIPLY | id::DIVIDE | id::NEG | id::POS)
}

/// A labelled part made of others.
fn combined(
    expression: &mut Expression,
    op: ElementOperator,
    parts: Vec<Subexpression>,
    span: Span,
) -> Result<Subexpression, Error> {
    if op.has_texts() {
        return expression.map(op, parts, span);
    }
    let parts = match <[Subexpression; 2]>::try_from(parts) {
        Ok([a, b]) => {
            return match op.id() {
                id::ADD => expression.sum(a, b, span),
                id::SUBTRACT => expression.difference(a, b, span),
                id::MULTIPLY => expression.product(a, b, span),
                id::DIVIDE => expression.quotient(a, b, span),
                _ => expression.map(op, [a, b], span),
            };
        }
        Err(parts) => parts,
    };
    match (op.id(), <[Subexpression; 1]>::try_from(parts)) {
        (id::NEG, Ok([of])) => expression.negated(of, span),
        (id::POS, Ok([of])) => Ok(of),
        (_, Ok(of)) => expression.map(op, of, span),
        (_, Err(parts)) => expression.map(op, parts, span),
    }
}

/// The type of a value: that of a scalar if it has no axes.
pub(super) fn type_of(graph: &TensorGraph, LoweredTensor { node, is_mask, .. }: LoweredTensor) -> QType {
    if is_mask {
        return QType::Optional(Scalar::Unit);
    }
    graph.qtype(node)
}
