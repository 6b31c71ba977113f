//! Operators on elements, as nodes of graphs. What they make of operands of some types the registry says; what is said here is what it is asked:
//! an operator may look at the literals among its operands, as `round(x, 2)` does, and an operand may be left out whose default is to have none.

use crate::element::no_element;
use crate::node::{Node, Operation};
use crate::{Error, ErrorKind, Graph, NodeId};
use cembra_ops::{Argument, OpId, Registry, Resolved, TypeFault};
use cembra_runtime::{Excerpt, QType, Scalar};
use cembra_value::{ScalarValue, Value, near_names};
use smallvec::SmallVec;
use std::borrow::Cow;

/// The type of an operand, and its bits if it is a literal.
pub(crate) type OperandType = (Scalar, Option<u64>);

/// Settles the types of an operator on elements.
pub(crate) fn resolve<'r>(
    registry: &'r Registry,
    op: OpId,
    operands: &[OperandType],
) -> Result<Cow<'r, Resolved>, TypeFault> {
    let behind = registry.get(op).params.iter().skip(operands.len());
    let left_out = behind.take_while(|parameter| parameter.default == Some(Value::Unspecified)).count();
    let given = operands.iter().map(|(scalar, _)| QType::Scalar(*scalar));
    let types: SmallVec<[QType; 4]> = given.chain(std::iter::repeat_n(QType::Unspecified, left_out)).collect();
    let mut literals: Vec<Option<Value>> = Vec::new();
    // Most operators look at none.
    if left_out > 0 || operands.iter().any(|(_, bits)| bits.is_some()) {
        let literal = |(scalar, bits): &OperandType| ScalarValue::from_bits(*scalar, (*bits)?).map(Value::Scalar);
        literals.extend(operands.iter().map(literal));
        literals.resize(types.len(), Some(Value::Unspecified));
    }
    let argument = |(at, qtype)| Argument { qtype, literal: literals.get(at).and_then(Option::as_ref) };
    let arguments: SmallVec<[Argument<'_>; 4]> = types.iter().enumerate().map(argument).collect();
    registry.resolve(op, &arguments)
}

impl Graph {
    /// A scalar operator by its name, or alias, on each element. Parameters that have defaults may be left out, and those that must be
    /// literals are [constants](Graph::constant).
    ///
    /// ```
    /// use cembra_runtime::Scalar;
    /// use cembra_tensor::Graph;
    ///
    /// let mut g = Graph::standard();
    /// let x = g.leaf("x", Scalar::Float64, &[3])?;
    /// let digits = g.constant(Scalar::Int32, 2.0)?;
    /// let rounded = g.apply("round", &[x, digits])?;
    /// assert_eq!(g.extents(rounded), [3]);
    /// assert!(g.apply("round", &[x, x]).is_err());
    /// # Ok::<(), cembra_tensor::Error>(())
    /// ```
    ///
    /// # Errors
    /// There is no such operator, it does not take these types, gives no element, or extents do not broadcast.
    pub fn apply(&mut self, operator: &str, operands: &[NodeId]) -> Result<NodeId, Error> {
        let Some(op) = self.registry().find(operator) else {
            let names = near_names(operator, 2, self.registry().iter().map(|(_, def)| def.name));
            let error =
                Error::new(ErrorKind::UnknownName, format!("there is no operator `{}`", Excerpt::quoted(operator)));
            return Err(match names.first() {
                Some(near) => error.hint(format!("is `{near}` meant?")),
                None => error,
            });
        };
        let mut operands = operands.to_vec();
        for parameter in self.registry().get(op).params.iter().skip(operands.len()) {
            let Some(Value::Scalar(default)) = &parameter.default else { break };
            operands.push(self.constant_bits(default.scalar(), default.bits())?);
        }
        self.map(op, &operands)
    }

    /// A scalar operator on each element. Operands are cast to the types it takes, as they are among scalars.
    ///
    /// # Errors
    /// It does not take these types, gives no element, or extents do not broadcast.
    pub fn map(&mut self, op: OpId, operands: &[NodeId]) -> Result<NodeId, Error> {
        let refused = |message: String| Error::new(ErrorKind::ElementType, message);
        let resolved = resolve(self.registry(), op, &self.operand_types(op, operands)).map_err(|fault| {
            let error = refused(fault.message);
            if let Some(hint) = fault.hint { error.hint(hint) } else { error }
        })?;
        let scalar = match resolved.signature.ret {
            QType::Scalar(scalar) if scalar.is_tensor_element() => scalar,
            ref other => {
                let name = self.registry().get(op).name;
                let error = refused(format!("{name} gives {other}, of which there are no tensors"));
                let is_mask = other.scalar() == Some(Scalar::Unit);
                return Err(if is_mask {
                    error.hint("conditions on tensors are truth values: compare")
                } else {
                    error
                });
            }
        };
        let wanted: SmallVec<[QType; 4]> = resolved.signature.operands.clone();
        let mut cast = SmallVec::<[NodeId; 2]>::new();
        for (operand, wanted) in operands.iter().zip(&wanted) {
            cast.push(match wanted.scalar() {
                Some(scalar) => self.cast(*operand, scalar)?,
                None => *operand,
            });
        }
        let extents = self.broadcast_extents(&cast)?;
        self.intern(Node { operation: Operation::Map(op), operands: cast, scalar, extents })
    }

    /// The elements as another type.
    ///
    /// # Errors
    /// There is no cast to the type, or tensors have no such elements.
    pub fn cast(&mut self, operand: NodeId, scalar: Scalar) -> Result<NodeId, Error> {
        if self.node(operand).scalar == scalar {
            return Ok(operand);
        }
        let Some(op) = self.registry().cast_to(scalar).filter(|_| scalar.is_tensor_element()) else {
            return Err(no_element(scalar));
        };
        let extents = self.node(operand).extents.clone();
        self.intern(Node { operation: Operation::Map(op), operands: [operand].as_slice().into(), scalar, extents })
    }

    /// The types of the operands of an operator. The literals among them have their bits, if it may look at these.
    pub(crate) fn operand_types(&self, op: OpId, operands: &[NodeId]) -> SmallVec<[OperandType; 4]> {
        let looks_at_literals = !self.registry().get(op).is_typed_by_types();
        let of = |operand: &NodeId| match self.node(*operand).operation {
            Operation::Constant(bits) if looks_at_literals => (self.scalar(*operand), Some(bits)),
            _ => (self.scalar(*operand), None),
        };
        operands.iter().map(of).collect()
    }
}
