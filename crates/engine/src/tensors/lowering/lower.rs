//! The lowering of a model's nodes to a graph of tensors: of literals, of operators on elements (the operators of the registry), and of labelled
//! expressions, for which `cembra_tensor` has the type `Expression`. The extents of tensors are known, or all are 1. `nodes.rs` decides how each
//! operator is lowered.

use super::made::{LoweredTensor, NodeForm};
use super::non_tensors::NonTensorFacts;
use super::tilings::Tilings;
use crate::options::signature::Field;
use cembra_expr::{Graph as Program, Node, NodeId, Output, tensor_hint};
use cembra_ops::{OpId, Registry, id};
use cembra_runtime::{Excerpt, Names, QType, Scalar};
use cembra_tensor::{
    ElementOperator, Expression, ReversePass, Subexpression, TensorErrorKind, TensorGraph, TensorNodeId as Tensor,
};
use cembra_value::Error;
use cembra_value::{Array, Budget, ScalarValue, Span, Value, common_scalar};
use rustc_hash::FxHashMap;

/// Operators of the language whose results may be missing, each with its counterpart for elements, which are not missing.
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

/// The state of lowering a program to a graph of tensors.
pub(super) struct Lowering<'p> {
    pub(super) program: &'p Program,
    pub(super) registry: &'static Registry,
    pub(super) graph: TensorGraph,
    /// True if the extents in the graph are the extents of actual tensors. Otherwise all extents are 1, and only types and numbers of axes have a
    /// meaning.
    pub(super) has_extents: bool,
    pub(super) made: Vec<NodeForm>,
    /// The number of parts (operators and operands) of all labelled expressions so far. A definition counts as often as
    /// it is used.
    labelled: usize,
    /// True if the program has operators that mark integers; marked integers become f64 where they are divided or combined with floats.
    pub(super) has_wide_numbers: bool,
    /// The element types of labelled expressions such as `a("i") / n`, by node; recorded only if the program has
    /// operators that may convert integers to f64.
    pub(super) labelled_types: FxHashMap<NodeId, Scalar>,
    /// True if a branch is left out when a known condition does not choose it. An evaluation in tiles knows the conditions that do not depend on
    /// tensors.
    pub(super) leaves_out_branches: bool,
    /// The tiles of tensors' axes, if the program selects blocks of tiles.
    pub(super) tilings: Tilings,
    /// The facts about values that are not tensors; `None` once the program was split into parts.
    pub(super) non_tensors: Option<NonTensorFacts<'p>>,
    /// The reverse passes of differentiation, by the number (a tensor without axes) that is differentiated.
    passes: FxHashMap<Tensor, ReversePass>,
    /// The total number of nodes that `passes` cover.
    passed: usize,
    /// The budget of the compilation; `None` if the program is lowered for given extents.
    budget: Option<&'p Budget>,
}

/// The most nodes that the reverse passes in `passes` cover in total, unless there is only one pass. A node takes about
/// two hundred bytes. Beyond this limit all passes are dropped, and begun again when they are needed.
const MOST_PASSED: usize = 1 << 19;

/// The most parts (operators and operands) of all labelled expressions of a model together.
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
            non_tensors: None,
            passes: FxHashMap::default(),
            passed: 0,
            budget: None,
        }
    }

    /// Sets the budget (limits and time) of the compilation.
    pub(super) fn within(self, budget: &'p Budget) -> Self {
        Lowering { budget: Some(budget), ..self }
    }

    /// Returns an error if the time of the compilation is over; called when the node at position `at` is visited.
    pub(super) fn check_visit(&self, at: usize) -> Result<(), Error> {
        self.budget.map_or(Ok(()), |budget| budget.check_visit(at).map_err(Error::from))
    }

    /// Returns the derivatives of the number `number` with respect to the node `by`. All calls with the same number share one pass over the graph.
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

    /// Makes a leaf of the program an input of the graph, with these extents.
    pub(super) fn set_input(
        &mut self,
        field: &Field,
        leaf: Option<NodeId>,
        scalar: Scalar,
        extents: &[usize],
    ) -> Result<(), Error> {
        let node = self.graph.leaf(&field.name, scalar, extents)?;
        // The input may be unused, and then has no leaf.
        if let Some(made) = leaf.and_then(|leaf| self.made.get_mut(leaf.index())) {
            *made = NodeForm::Tensor(LoweredTensor { is_mask: is_mask(field), ..LoweredTensor::of(node) });
        }
        Ok(())
    }

    /// Makes a leaf of the program the constant `value`. If `is_mask`, the constant is a truth value that stands for a
    /// mask.
    pub(super) fn set_number(&mut self, leaf: Option<NodeId>, value: &ScalarValue, is_mask: bool) -> Result<(), Error> {
        let node = self.graph.literal(value)?;
        if let Some(made) = leaf.and_then(|leaf| self.made.get_mut(leaf.index())) {
            *made = NodeForm::Tensor(LoweredTensor { is_mask, ..LoweredTensor::of(node) });
        }
        Ok(())
    }

    /// Returns the tensor of an output. If the output is not a tensor, the error has its span in the text.
    pub(super) fn output_of(&mut self, output: &Output) -> Result<LoweredTensor, Error> {
        self.output(output.node).map_err(|error| error.at(output.span.unwrap_or_default()))
    }

    fn output(&mut self, node: NodeId) -> Result<LoweredTensor, Error> {
        if matches!(self.made[node.index()], NodeForm::Labelled) {
            let error = Error::tensors(
                TensorErrorKind::FreeLabel,
                "this output is computed with labels, so the output must have labels",
            );
            return Err(error
                .hint("write the labels of the axes: `output c(\"i,j\") = ..`; for a number, `output c(\"\") = ..`"));
        }
        self.whole(node)
    }

    /// The span of `node` in the text; an empty span if there is no text.
    pub(super) fn span(&self, node: NodeId) -> Span {
        self.program.span(node).unwrap_or_default()
    }

    /// The value of a literal node; `None` for other nodes.
    pub(super) fn value(&self, node: NodeId) -> Option<&'p Value> {
        if let Node::Literal(value) = self.program.node(node) { Some(value) } else { None }
    }

    /// The fields of a tuple, and the literal with its names if it has names; `None` if the node is not a tuple.
    fn parts_of_tuple(&self, node: NodeId) -> Option<(Option<NodeId>, &'p [NodeId])> {
        let NodeForm::Tuple(made) = self.made[node.index()] else { return None };
        let Node::Operator(name, operands) = self.program.node(made) else { return None };
        match (self.registry.find(self.program.name(name)), operands) {
            (Some(id::MAKE_NAMED), [names, fields @ ..]) => Some((Some(*names), fields)),
            (_, fields) => Some((None, fields)),
        }
    }

    /// The fields of a node that makes a tuple; `None` for other nodes.
    pub(super) fn fields(&self, node: NodeId) -> Option<&'p [NodeId]> {
        self.parts_of_tuple(node).map(|(_, fields)| fields)
    }

    /// Returns the field of the tuple `tuple` that the literal `key` gives by position or by name.
    pub(super) fn field(&mut self, tuple: NodeId, key: NodeId) -> Result<NodeForm, Error> {
        let Some((names, fields)) = self.parts_of_tuple(tuple) else {
            let error =
                Error::tensors(TensorErrorKind::ElementType, "only a tuple has fields, but this value is not a tuple")
                    .at(self.span(tuple));
            return Err(match self.made[tuple.index()] {
                NodeForm::Tensor(_) => error.hint(
                    self.text(key)
                        .and_then(tensor_hint)
                        .unwrap_or("write operators in front of tensors: `tensor.transpose(x)`, `tensor.sum(x)`"),
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
                    format!("the tuple has {} fields, so there is no field {at}", fields.len())
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

    /// Returns the node `node` as a tensor without labels.
    pub(super) fn whole(&mut self, node: NodeId) -> Result<LoweredTensor, Error> {
        match (self.made[node.index()], self.program.node(node)) {
            (NodeForm::Tensor(whole), _) => Ok(whole),
            (NodeForm::NonTensor, _) => self.imported(node),
            (NodeForm::Tuple(_), _) => {
                let error =
                    Error::tensors(TensorErrorKind::ElementType, "this value is a tuple, but a tensor is needed here");
                Err(error
                    .at(self.span(node))
                    .hint("use a field of the tuple: `t.0`, or `t.x` if its fields have names"))
            }
            (NodeForm::Unbound, Node::Operator(_, &[of, labels])) => {
                let bound = self.bound(of, self.labels(labels)?, self.span(node));
                bound.map(LoweredTensor::of).map_err(|error| error.at(self.span(node)))
            }
            (NodeForm::Labelled | NodeForm::Unbound, _) => {
                let error = Error::tensors(
                    TensorErrorKind::Syntax,
                    "this expression has labels, but a tensor without labels is needed here",
                );
                Err(error.at(self.span(node)).hint("name the expression in a line before: `let t(\"i,j\") = ..`"))
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
                // The array may be long, so it is read once however often it is used.
                self.made[node.index()] = NodeForm::Tensor(whole);
                Ok(whole)
            }
            (NodeForm::Nothing, Node::Placeholder(_)) => Err(functional("this function").at(self.span(node))),
            (NodeForm::Nothing, Node::Leaf(name)) => {
                let message = format!("there is no tensor `{}`", Excerpt::quoted(self.program.name(name)));
                Err(Error::tensors(TensorErrorKind::UnknownName, message).at(self.span(node)))
            }
            (NodeForm::Nothing, _) => {
                let error = Error::tensors(
                    TensorErrorKind::ElementType,
                    "this value is neither a tensor nor a scalar that a tensor can have",
                );
                Err(error
                    .at(self.span(node))
                    .hint("use elements of type bool, i32, i64, f32 or f64, none of them missing"))
            }
        }
    }

    /// Adds a literal array to the graph, as a tensor with one axis.
    fn array(&mut self, array: &Array) -> Result<Tensor, Error> {
        if !self.has_extents {
            let scalar = element_of(array)?;
            return self.graph.leaf("", scalar, &[1]);
        }
        self.graph.constant_tensor(&tensor_of(array)?)
    }

    /// Returns the labels in the text of `node`, an argument of an operator. The node must be a literal text.
    pub(super) fn labels(&self, node: NodeId) -> Result<&'p str, Error> {
        let labels = self.text(node);
        labels.ok_or_else(|| {
            Error::tensors(TensorErrorKind::BadLabel, "labels must be a literal text, as in `a(\"i,k\")`")
        })
    }

    /// Casts a tensor to the type that is written in the text. If `is_declared`, the text declares this type, so the tensor's elements must convert
    /// to it implicitly.
    pub(super) fn typed(&mut self, of: LoweredTensor, qtype: NodeId, is_declared: bool) -> Result<Tensor, Error> {
        let Some(Value::Type(wanted)) = self.value(qtype) else {
            return Err(Error::tensors(TensorErrorKind::ElementType, "this type is no literal"));
        };
        let rank = self.graph.extents(of.node).len();
        if of.is_mask && !(is_declared && *wanted == QType::Scalar(Scalar::Boolean)) {
            return Err(Error::tensors(TensorErrorKind::ElementType, format!("a mask cannot be used as {wanted}")));
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

    /// Casts a tensor to the number type `qtype` of a declaration, if a declaration converts values of the tensor's type to that type. Otherwise
    /// returns the tensor unchanged.
    pub(super) fn reached(&mut self, of: LoweredTensor, qtype: NodeId) -> Result<LoweredTensor, Error> {
        let own = if of.is_weak { Scalar::WeakFloat } else { self.graph.scalar(of.node) };
        let becomes = match self.value(qtype) {
            Some(Value::Type(QType::Scalar(scalar))) if cembra_ops::becomes_declared(own, *scalar) => *scalar,
            _ => return Ok(of),
        };
        Ok(LoweredTensor::of(self.graph.cast(of.node, becomes)?))
    }

    /// The operands of an operator on elements, without unspecified operands at the end.
    pub(super) fn given(&self, operands: &'p [NodeId]) -> &'p [NodeId] {
        let last = operands.iter().rposition(|operand| !matches!(self.value(*operand), Some(Value::Unspecified)));
        &operands[..last.map_or(0, |last| last + 1)]
    }

    /// Returns true if an unspecified operand comes before one that is specified.
    pub(super) fn leaves_out(&self, operands: &'p [NodeId]) -> bool {
        self.given(operands).iter().any(|operand| matches!(self.value(*operand), Some(Value::Unspecified)))
    }

    /// The text of a literal node; `None` for other nodes.
    pub(super) fn text(&self, node: NodeId) -> Option<&'p str> {
        if let Some(Value::Scalar(ScalarValue::Text(text))) = self.value(node) { Some(text) } else { None }
    }

    /// Converts an operator of the language to the elementwise operator of tensors. Texts among the operands become a part of the elementwise
    /// operator.
    pub(super) fn element_operator(&self, op: OpId, operands: &[NodeId]) -> ElementOperator {
        ElementOperator::new(of_elements(op), operands.iter().map(|operand| self.text(*operand)))
    }

    /// Applies the operator `op` to each element of the operands.
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

    /// Casts a weak value (such as the literal `0.5`, whose type is open) to the type that it takes on in combination
    /// with the tensors `beside`.
    fn strengthened(&mut self, node: Tensor, beside: &[Tensor]) -> Result<Tensor, Error> {
        let scalar = self.graph.number_type(beside);
        self.graph.cast(node, scalar)
    }

    /// Lowers the labelled expression `of`, such as `a("i,k") * b("k,j")`, to a tensor whose axes have the labels
    /// `labels`.
    pub(super) fn bound(&mut self, of: NodeId, labels: &str, span: Span) -> Result<Tensor, Error> {
        let mut expression = Expression::new(labels, span)?;
        self.add_parts(&mut expression, of, span)?;
        expression.lower(&mut self.graph)
    }

    /// Adds the parts (operators and operands) of the labelled expression `of` to `expression`, and returns the part
    /// for the whole expression. Errors about the size of the expression are reported at `span`.
    pub(super) fn add_parts(
        &mut self,
        expression: &mut Expression,
        of: NodeId,
        span: Span,
    ) -> Result<Subexpression, Error> {
        let order = self.parts(of)?;
        self.labelled += order.len();
        if self.labelled > MOST_LABELLED {
            let message =
                format!("labelled expressions have more than {MOST_LABELLED} parts together, which is the limit");
            let error = Error::tensors(TensorErrorKind::Limit, message).at(span);
            return Err(error.hint("make a definition with labels an `output`, which is evaluated only once: other definitions with labels are evaluated at each use"));
        }
        // Weak values take on the type of all other values in the expression.
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
                    // The operator was found when the node was lowered.
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
                            // For other operators, whole numbers stay integers, and may have to be literals.
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

    /// The tensor at a leaf of an expression, with or without labels; `None` for operators and number literals.
    fn tensor_of(&mut self, node: NodeId) -> Result<Option<LoweredTensor>, Error> {
        match (self.made[node.index()], self.program.node(node)) {
            (_, Node::Literal(Value::Scalar(ScalarValue::WeakFloat(_) | ScalarValue::Int32(_)))) => Ok(None),
            (NodeForm::Labelled, Node::Operator(name, &[of, _])) if self.is_at(name) => self.whole(of).map(Some),
            (NodeForm::Labelled, _) => Ok(None),
            _ => self.whole(node).map(Some),
        }
    }

    /// Returns true if `name` is the name of the operator that gives labels to a tensor.
    pub(super) fn is_at(&self, name: cembra_expr::NameId) -> bool {
        self.registry.find(self.program.name(name)) == Some(id::TENSOR_AT)
    }

    /// The nodes of a labelled expression such as `a("i,k") * b("k,j")`, operands before their users. A node that is
    /// used several times is listed several times, because each use may be summed over other labels.
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
                // Texts are part of the operator.
                open.extend(self.given(operands).iter().filter(|operand| self.text(**operand).is_none()));
            }
        }
        found.reverse();
        Ok(found)
    }
}

/// Returns true if the type of an input is a mask, which tensors treat as a truth value.
pub(super) fn is_mask(field: &Field) -> bool {
    field.qtype == QType::Optional(Scalar::Unit)
}

/// The element type of an array as a tensor of one axis. Weak floats are `f64`, as in memory.
fn element_of(array: &Array) -> Result<Scalar, Error> {
    let scalar = if array.scalar() == Scalar::WeakFloat { Scalar::Float64 } else { array.scalar() };
    if !scalar.is_tensor_element() {
        let message = format!("an array of elements of type {} cannot become a tensor", scalar.short_name());
        return Err(Error::tensors(TensorErrorKind::ElementType, message)
            .hint("use elements of type bool, i32, i64, f32 or f64"));
    }
    if let Some(at) = array.first_missing() {
        let error = Error::tensors(TensorErrorKind::ElementType, format!("element {at} of this array is missing"));
        return Err(
            error.hint("write a number in its place, such as `nan`: the elements of a tensor cannot be missing")
        );
    }
    Ok(scalar)
}

/// Converts an array to a tensor of one axis.
///
/// # Errors
/// If an element is missing, or has a type that tensors cannot have.
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
    Error::tensors(TensorErrorKind::Syntax, "an expression has no parts").at(span)
}

/// The error for functions as values, and for operators that take functions: tensors do not support them.
pub(super) fn functional(what: &str) -> Error {
    let message = format!("{what} uses functions or sequences as values, which models with tensors cannot have");
    Error::tensors(TensorErrorKind::ElementType, message)
        .hint("call the function by its name, with one call for each tensor")
}

/// Returns true if, in models without tensors, the operator `op` gives a mask (an optional unit, as comparisons give)
/// for scalars such as `operands`.
pub(super) fn makes_mask(op: OpId, operands: &[LoweredTensor]) -> bool {
    match op {
        id::EQUAL | id::NOT_EQUAL | id::LESS | id::LESS_EQUAL | id::GREATER | id::GREATER_EQUAL => true,
        id::AND | id::OR | id::NOT => operands.iter().any(|operand| operand.is_mask),
        id::WHERE | id::SHORT_WHERE => operands.iter().skip(1).all(|branch| branch.is_mask),
        _ => false,
    }
}

/// Returns true if the operator `op` on scalars takes masks (optional units, as comparisons give) as truth values.
pub(super) fn takes_masks(op: OpId) -> bool {
    matches!(op, id::AND | id::OR | id::NOT | id::WHERE | id::SHORT_WHERE)
}

/// The elementwise operator that tensors use in place of `op`, an operator of the language. For `==` it is the comparison whose result is a bool, not
/// a mask. If the table `OF_ELEMENTS` does not have `op`, the result is `op`.
pub(super) fn of_elements(op: OpId) -> OpId {
    OF_ELEMENTS.iter().find(|(own, _)| *own == op).map_or(op, |(_, of_elements)| *of_elements)
}

/// Returns true if an operator is arithmetic. In a labelled expression, its number literals take on the type of the
/// other values.
fn is_arithmetic(op: OpId) -> bool {
    matches!(of_elements(op), id::ADD | id::SUBTRACT | id::MULTIPLY | id::DIVIDE | id::NEG | id::POS)
}

/// Combines parts (operators and operands) of a labelled expression by an operator, and returns the new part, for the
/// result.
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

/// The type of the value of a lowered node: a scalar type if it has no axes, and an optional unit if it is a mask.
pub(super) fn type_of(graph: &TensorGraph, LoweredTensor { node, is_mask, .. }: LoweredTensor) -> QType {
    if is_mask {
        return QType::Optional(Scalar::Unit);
    }
    graph.qtype(node)
}
