//! Elementwise operators as nodes of graphs. The operator registry gives the result type for operand types; this file
//! determines the operand types that the registry is given. An operator's result type may depend on the values of
//! literal operands, as in `round(x, 2)`. An operand may be left out if its parameter has a default. Strings are not
//! elements of tensors, so string literals are stored in the operator, including a text from which the operator is
//! compiled.

use crate::node::{Node, Operation};
use crate::{TensorErrorKind, TensorGraph, TensorNodeId};
use cembra_ops::{Argument, OpId, Registry, ResolvedCall, TypeFault};
use cembra_runtime::{Excerpt, QType, Scalar};
use cembra_value::Error;
use cembra_value::tensor::no_element;
use cembra_value::{ScalarValue, Value, near_names};
use smallvec::SmallVec;
use std::borrow::Cow;
use std::sync::Arc;

/// The type of an operand, and its bits if the operand is a literal.
pub(crate) type OperandType = (Scalar, Option<u64>);

/// An operand of an elementwise operator: a node, or a string literal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MapOperand<'t> {
    /// The operand has the elements of this node.
    Node(TensorNodeId),
    /// The operand is this string literal, for all elements.
    Text(&'t str),
}

/// A scalar operator that is applied to each element, with the string literals among its operands. Literals are stored
/// here because strings are not elements of tensors.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct ElementOperator {
    op: OpId,
    /// For each operand its text, or `None` if the operand is a tensor. `None` instead of the list if no operand is a
    /// text.
    texts: Option<Arc<[Option<Arc<str>>]>>,
}

impl From<OpId> for ElementOperator {
    fn from(op: OpId) -> ElementOperator {
        ElementOperator { op, texts: None }
    }
}

impl ElementOperator {
    /// Makes an elementwise operator with its string literals. `operands` has `None` for each operand that is a tensor.
    #[must_use]
    pub fn new<'t>(op: OpId, operands: impl IntoIterator<Item = Option<&'t str>>) -> ElementOperator {
        let texts: Vec<Option<Arc<str>>> = operands.into_iter().map(|text| text.map(Arc::from)).collect();
        let has_texts = texts.iter().any(Option::is_some);
        ElementOperator { op, texts: has_texts.then(|| texts.into()) }
    }

    /// The id of the scalar operator that is applied to each element.
    #[must_use]
    pub const fn id(&self) -> OpId {
        self.op
    }

    /// Returns true if string literals are among the operator's operands.
    #[must_use]
    pub const fn has_texts(&self) -> bool {
        self.texts.is_some()
    }

    /// Returns one value per operand, in order. For a tensor, the value is the next item of `elements`; for a string
    /// literal, it is the result of `text` for the literal.
    pub fn with_texts<'t, T>(
        &'t self,
        elements: impl IntoIterator<Item = T>,
        mut text: impl FnMut(&'t str) -> T,
    ) -> SmallVec<[T; 4]> {
        let mut elements = elements.into_iter();
        let Some(texts) = &self.texts else { return elements.collect() };
        let mut all = SmallVec::with_capacity(texts.len());
        for own in texts.iter() {
            match own {
                Some(own) => all.push(text(own)),
                None => all.extend(elements.next()),
            }
        }
        all.extend(elements);
        all
    }

    /// Filters `all`, which has one item per operand, to the items of operands that are tensors.
    fn of_elements<'a, T>(&'a self, all: &'a [T]) -> impl Iterator<Item = &'a T> {
        let is_text = |at: usize| self.texts.as_ref().is_some_and(|texts| texts.get(at).is_some_and(Option::is_some));
        all.iter().enumerate().filter(move |(at, _)| !is_text(*at)).map(|(_, one)| one)
    }
}

/// Finds the overload of an elementwise operator for operands of the given types.
pub(crate) fn resolve<'r>(
    registry: &'r Registry,
    op: &ElementOperator,
    operands: &[OperandType],
) -> Result<Cow<'r, ResolvedCall>, TypeFault> {
    let given = operands.iter().map(|(scalar, _)| QType::Scalar(*scalar));
    let mut types = op.with_texts(given, |_| QType::Scalar(Scalar::Text));
    let behind = registry.get(op.op).params.iter().skip(types.len());
    let left_out = behind.take_while(|parameter| parameter.default == Some(Value::Unspecified)).count();
    types.extend(std::iter::repeat_n(QType::Unspecified, left_out));
    let mut literals: SmallVec<[Option<Value>; 4]> = SmallVec::new();
    // Most operators look at no literals.
    if left_out > 0 || op.has_texts() || operands.iter().any(|(_, bits)| bits.is_some()) {
        let literal = |(scalar, bits): &OperandType| ScalarValue::from_bits(*scalar, (*bits)?).map(Value::Scalar);
        literals = op.with_texts(operands.iter().map(literal), |text| Some(Value::text(text)));
        literals.resize(types.len(), Some(Value::Unspecified));
    }
    let argument = |(at, qtype)| Argument { qtype, literal: literals.get(at).and_then(Option::as_ref) };
    let arguments: SmallVec<[Argument<'_>; 4]> = types.iter().enumerate().map(argument).collect();
    registry.resolve(op.op, &arguments)
}

impl TensorGraph {
    /// Applies a scalar operator, given by its name or alias, to each element. Parameters with defaults may be left out. Parameters that
    /// must be literals are passed as [constants](TensorGraph::constant).
    ///
    /// ```
    /// use cembra_runtime::Scalar;
    /// use cembra_tensor::TensorGraph;
    ///
    /// let mut g = TensorGraph::standard();
    /// let x = g.leaf("x", Scalar::Float64, &[3])?;
    /// let digits = g.constant(Scalar::Int32, 2.0)?;
    /// let rounded = g.apply("round", &[x, digits])?;
    /// assert_eq!(g.extents(rounded), [3]);
    /// assert!(g.apply("round", &[x, x]).is_err());
    /// # Ok::<(), cembra_value::Error>(())
    /// ```
    ///
    /// # Errors
    /// If there is no operator of this name, if the operator does not take the types of the operands, if its result cannot be a tensor element, or if
    /// extents do not broadcast.
    pub fn apply(&mut self, operator: &str, operands: &[TensorNodeId]) -> Result<TensorNodeId, Error> {
        let operands: SmallVec<[MapOperand<'_>; 4]> = operands.iter().copied().map(MapOperand::Node).collect();
        self.apply_with(operator, &operands)
    }

    /// Applies a scalar operator to each element, where some operands are string literals. Use it for operators of your own that take strings, or
    /// that are [compiled from a string](cembra_ops::UserOperator::compiled).
    ///
    /// ```
    /// use cembra_ops::{Registry, UserOperator};
    /// use cembra_runtime::Scalar;
    /// use cembra_tensor::{TensorGraph, MapOperand};
    ///
    /// let parsed = |text: &str| text.parse().map(|rate: f64| move |x: f64| x * rate);
    /// let registry = Registry::with_operators([UserOperator::new("money.in").compiled(parsed)])?;
    /// let mut g = TensorGraph::new(registry);
    /// let x = g.leaf("x", Scalar::Float64, &[3])?;
    /// let made = g.apply_with("money.in", &[MapOperand::Text("1.08"), MapOperand::Node(x)])?;
    /// assert_eq!(g.extents(made), [3]);
    /// assert!(g.apply("money.in", &[x, x]).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`TensorGraph::apply`], or a text that the operator cannot be compiled from.
    pub fn apply_with(&mut self, operator: &str, operands: &[MapOperand<'_>]) -> Result<TensorNodeId, Error> {
        let Some(op) = self.registry().find(operator) else {
            let names = near_names(operator, 2, self.registry().iter().map(|(_, def)| def.name));
            let error = Error::tensors(
                TensorErrorKind::UnknownName,
                format!("there is no operator `{}`", Excerpt::quoted(operator)),
            );
            return Err(match names.first() {
                Some(near) => error.hint(format!("is `{near}` meant?")),
                None => error,
            });
        };
        let mut operands = operands.to_vec();
        for parameter in self.registry().get(op).params.iter().skip(operands.len()) {
            operands.push(match &parameter.default {
                Some(Value::Scalar(ScalarValue::Text(default))) => MapOperand::Text(default),
                Some(Value::Scalar(default)) => MapOperand::Node(self.constant_bits(default.scalar(), default.bits())?),
                _ => break,
            });
        }
        let texts = operands.iter().map(|operand| match *operand {
            MapOperand::Text(text) => Some(text),
            MapOperand::Node(_) => None,
        });
        let op = ElementOperator::new(op, texts);
        let nodes = operands.iter().filter_map(|operand| match *operand {
            MapOperand::Text(_) => None,
            MapOperand::Node(node) => Some(node),
        });
        let nodes: SmallVec<[TensorNodeId; 4]> = nodes.collect();
        let before = self.len();
        let made = self.map(op, &nodes)?;
        self.check_texts(before)?;
        Ok(made)
    }

    /// Applies a scalar operator, with its string literals, to each element. Operands are cast to the types that the operator takes, as for scalars.
    /// An operator that is compiled from a text is not compiled here: see [`TensorGraph::check_texts`].
    ///
    /// # Errors
    /// If the operator does not take the types of the operands, if its result cannot be a tensor element, or if extents do not broadcast.
    pub fn map(&mut self, op: impl Into<ElementOperator>, operands: &[TensorNodeId]) -> Result<TensorNodeId, Error> {
        let op = op.into();
        let refused = |message: String| Error::tensors(TensorErrorKind::ElementType, message);
        let resolved = resolve(self.registry(), &op, &self.operand_types(op.op, operands)).map_err(|fault| {
            let error = refused(fault.message);
            if let Some(hint) = fault.hint { error.hint(hint) } else { error }
        })?;
        let scalar = match resolved.signature.ret {
            QType::Scalar(scalar) if scalar.is_tensor_element() => scalar,
            ref other => {
                let name = self.registry().get(op.op).name;
                let error = refused(format!("{name} gives {other}, which cannot be the elements of a tensor"));
                let is_mask = other.scalar() == Some(Scalar::Unit);
                return Err(if is_mask {
                    error.hint("write a comparison: a condition on tensors is a truth value")
                } else {
                    error
                });
            }
        };
        let wanted: SmallVec<[QType; 4]> = resolved.signature.operands.clone();
        let mut cast = SmallVec::<[TensorNodeId; 2]>::new();
        for (operand, wanted) in operands.iter().zip(op.of_elements(&wanted)) {
            cast.push(match wanted.scalar() {
                Some(scalar) => self.cast(*operand, scalar)?,
                None => *operand,
            });
        }
        let extents = self.broadcast_extents(&cast)?;
        self.intern(Node { operation: Operation::Map(op), operands: cast, scalar, extents })
    }

    /// Checks, for all nodes from position `from` on, that operators can be compiled from their string literals. Evaluators compile the operators
    /// again.
    ///
    /// # Errors
    /// If an operator cannot be compiled; the error has the reason.
    pub fn check_texts(&self, from: usize) -> Result<(), Error> {
        for at in from..self.len() {
            let node = self.node(self.id(at as u32));
            let Operation::Map(op) = &node.operation else { continue };
            // The text that an operator is compiled from is its first operand.
            let Some(Some(Some(text))) = op.texts.as_ref().map(|texts| texts.first()) else { continue };
            let types = self.operand_types(op.op, &node.operands);
            let overload = resolve(self.registry(), op, &types).ok().and_then(|resolved| resolved.overload);
            let def = self.registry().get(op.op);
            let overload = overload.and_then(|at| def.overloads().get(usize::from(at)));
            if let Some(compile) = overload.and_then(|overload| overload.compile)
                && let Err(reason) = compile.compile(&Value::text(&**text))
            {
                return Err(Error::tensors(TensorErrorKind::Literal, format!("{}: {reason}", def.name)));
            }
        }
        Ok(())
    }

    /// Casts the elements of the operand to the type `scalar`.
    ///
    /// # Errors
    /// If there is no cast to `scalar`, or tensors cannot have elements of that type.
    pub fn cast(&mut self, operand: TensorNodeId, scalar: Scalar) -> Result<TensorNodeId, Error> {
        if self.node(operand).scalar == scalar {
            return Ok(operand);
        }
        let Some(op) = self.registry().cast_to(scalar).filter(|_| scalar.is_tensor_element()) else {
            return Err(no_element(scalar));
        };
        let extents = self.node(operand).extents.clone();
        let operation = Operation::Map(op.into());
        self.intern(Node { operation, operands: [operand].as_slice().into(), scalar, extents })
    }

    /// Returns the types of an operator's operands. If the operator's result type may depend on literals, a literal operand has its bits too.
    pub(crate) fn operand_types(&self, op: OpId, operands: &[TensorNodeId]) -> SmallVec<[OperandType; 4]> {
        let looks_at_literals = !self.registry().get(op).is_typed_by_types();
        let of = |operand: &TensorNodeId| match self.node(*operand).operation {
            Operation::Constant(bits) if looks_at_literals => (self.scalar(*operand), Some(bits)),
            _ => (self.scalar(*operand), None),
        };
        operands.iter().map(of).collect()
    }
}
