//! Implicit casts, added when an operator is bound to its overload. Each operand is cast to the type that the operator was resolved for: first the
//! scalar is cast, then the result becomes an optional if necessary. An untyped `missing` becomes a typed one, and a literal becomes a literal of the
//! new type.

use crate::pass::wheres::placeholder_value;
use crate::{Id, Kind, TypedGraph};
use cembra_expr::NodeId;
use cembra_ops::{Argument, OpId, Registry, ResolvedCall, Signature, TypeFault, call, id};
use cembra_runtime::QType;
use cembra_value::{ScalarValue, Value};
use smallvec::SmallVec;

impl TypedGraph {
    /// Adds a node to the graph that applies the operator `op`, bound to its overload. Operands may have any types that
    /// the operator accepts, and are implicitly cast.
    ///
    /// # Errors
    /// If the operator does not accept the types of the operands.
    pub fn apply(&mut self, registry: &Registry, op: OpId, operands: &[Id], origin: NodeId) -> Result<Id, TypeFault> {
        let mut op = op;
        let types = operands.iter().map(|operand| self.qtype(*operand));
        if registry.get(op).is_replaceable(types.clone()) {
            registry.get(op).check_count(operands.len())?;
            op = registry.meant(op, &types.collect::<SmallVec<[&QType; 4]>>());
        }
        self.bind(registry, op, operands, origin).map_err(|message| TypeFault::mismatch(message, None))
    }

    /// Adds a node for the operator `op` to the graph, with implicit casts, as [`apply`](TypedGraph::apply) does. For
    /// some types, `apply` uses another operator in place of `op`; this function never does.
    ///
    /// # Errors
    /// A message, if the operator does not accept the types of the operands.
    pub(crate) fn bind(
        &mut self,
        registry: &Registry,
        op: OpId,
        operands: &[Id],
        origin: NodeId,
    ) -> Result<Id, String> {
        let resolved = self.resolve(registry, op, operands).map_err(|fault| fault.message)?;
        bind_resolved(self, registry, op, &resolved, operands, origin)
    }
}

/// Adds a node to the graph that applies an operator which was resolved for these operands, with casts of the operands.
/// The operands of an operator without an overload are not cast, because the operator only makes tuples or reads their
/// fields, or is composite and its expression casts the operands.
pub(super) fn bind_resolved(
    graph: &mut TypedGraph,
    registry: &Registry,
    op: OpId,
    resolved: &ResolvedCall,
    operands: &[Id],
    origin: NodeId,
) -> Result<Id, String> {
    if op == id::WHERE && resolved.overload.is_none() {
        return conditional_of_arrays(graph, registry, resolved, operands, origin);
    }
    let Signature { operands: wanted, ret } = &resolved.signature;
    let kind = Kind::bound(op, resolved);
    let fit = |graph: &TypedGraph| operands.iter().zip(wanted).all(|(operand, wanted)| graph.qtype(*operand) == wanted);
    if resolved.overload.is_none() || fit(graph) {
        return Ok(graph.add(kind, operands, ret, origin));
    }
    let cast = operands.iter().zip(wanted).map(|(operand, wanted)| cast_to(graph, registry, *operand, wanted, origin));
    let cast = cast.collect::<Result<SmallVec<[Id; 4]>, _>>()?;
    Ok(graph.add(kind, &cast, ret, origin))
}

/// Adds a conditional over arrays to the graph. If there is a condition per element, the conditional is an ordinary
/// operator. A single condition chooses between two arrays, which are first cast to the element type of the result. If
/// one branch is a scalar, it cannot become an array, because only the other branch determines the number of elements.
/// Then both branches are operands of an ordinary operator, and the scalar gets its own conditional, so that it is
/// evaluated only if it is chosen.
pub(super) fn conditional_of_arrays(
    graph: &mut TypedGraph,
    registry: &Registry,
    resolved: &ResolvedCall,
    operands: &[Id],
    origin: NodeId,
) -> Result<Id, String> {
    let mut resolved = resolved.clone();
    let mut chosen: SmallVec<[Id; 4]> = operands.into();
    let is_array = |operand: &Id| matches!(graph.qtype(*operand), QType::Array(..));
    let are_arrays: SmallVec<[bool; 4]> = operands.iter().map(is_array).collect();
    let Signature { operands: types, ret } = &mut resolved.signature;
    match are_arrays[..] {
        [false, true, true] => {
            let wanted = ret.of_each().scalar();
            let cast = wanted.and_then(|wanted| registry.cast_to(wanted));
            for at in [1, 2] {
                if types[at] != *ret {
                    let cast = cast.ok_or_else(|| format!("{} cannot be cast to {ret}", types[at]))?;
                    chosen[at] = cast_by(graph, registry, cast, operands[at], origin)?;
                    types[at] = graph.qtype(chosen[at]).clone();
                }
            }
        }
        [false, on, off] if on != off => {
            let at = if on { 2 } else { 1 };
            let is_computed = !matches!(graph.kind(operands[at]), Kind::Leaf(_) | Kind::Literal(_));
            if let Some(unseen) = placeholder_value(graph.qtype(operands[at])).filter(|_| is_computed) {
                let unseen = graph.literal(unseen, origin);
                let arms = if on { [unseen, operands[at]] } else { [operands[at], unseen] };
                chosen[at] = graph.bind(registry, id::WHERE, &[operands[0], arms[0], arms[1]], origin)?;
            }
        }
        _ => {}
    }
    Ok(graph.add(Kind::bound(id::WHERE, &resolved), &chosen, &resolved.signature.ret, origin))
}

/// Casts the value of a node to a wider type.
pub(super) fn cast_to(
    graph: &mut TypedGraph,
    registry: &Registry,
    operand: Id,
    wanted: &QType,
    origin: NodeId,
) -> Result<Id, String> {
    let found = graph.qtype(operand).clone();
    if found == *wanted {
        return Ok(operand);
    }
    let casts = casts(registry, &found, wanted)?;
    if let (QType::Nothing | QType::Unspecified, Some(scalar)) = (&found, wanted.scalar()) {
        return Ok(graph.literal_of_distinct(Value::Missing(scalar), origin));
    }
    if let Some(value) = graph.value(operand)
        && let Some(value) = literal_as(registry, value, wanted)?
    {
        return Ok(graph.literal_of_distinct(value, origin));
    }
    casts.into_iter().try_fold(operand, |operand, op| cast_by(graph, registry, op, operand, origin))
}

/// Adds a node to the graph that applies the cast operator `op` to a value, whose type the operator must accept.
pub(super) fn cast_by(
    graph: &mut TypedGraph,
    registry: &Registry,
    op: OpId,
    operand: Id,
    origin: NodeId,
) -> Result<Id, String> {
    let qtype = graph.qtype(operand).clone();
    let resolved = registry.resolve(op, &[of_type(&qtype)]).map_err(|fault| fault.message)?;
    Ok(graph.add_cast(Kind::bound(op, &resolved), operand, &resolved.signature.ret, origin))
}

/// Returns an argument that has only a type and no value, because the type of a cast does not depend on the value.
fn of_type(qtype: &QType) -> Argument<'_> {
    Argument { qtype, literal: None }
}

/// Casts the literal `value` to the wider type `wanted`, which avoids most nodes that constant folding would remove again. `None` if an operator must
/// do the cast.
pub(super) fn literal_as(registry: &Registry, value: &Value, wanted: &QType) -> Result<Option<Value>, String> {
    if let (Value::Scalar(scalar), QType::Scalar(to)) = (value, wanted)
        && scalar.scalar().representation() == to.representation()
        && let Some(same) = ScalarValue::from_bits(*to, scalar.bits())
    {
        // Kernels cannot distinguish the two types, so the cast changes only the name of the type.
        return Ok(Some(Value::Scalar(same)));
    }
    let mut value = value.clone();
    for op in casts(registry, &value.qtype(), wanted)? {
        let resolved = registry.resolve(op, &[of_type(&value.qtype())]).map_err(|fault| fault.message)?;
        match call(registry.get(op), &resolved, std::slice::from_ref(&value)) {
            Some(Ok(cast)) => value = cast,
            _ => return Ok(None),
        }
    }
    Ok(Some(value))
}

/// The operators that cast a value of the type `found` to the wider type `wanted`, in the order of their application. There are none for an untyped
/// `missing` and for an unspecified argument, which type inference allows only where the default is a missing value.
fn casts(registry: &Registry, found: &QType, wanted: &QType) -> Result<SmallVec<[OpId; 2]>, String> {
    let refused = || format!("{found} cannot be cast to {wanted}");
    let to = wanted.scalar().ok_or_else(refused)?;
    let mut casts = SmallVec::new();
    match found.scalar() {
        None if matches!(found, QType::Nothing | QType::Unspecified) => return Ok(casts),
        None => return Err(refused()),
        Some(scalar) if scalar != to => casts.push(registry.cast_to(to).ok_or_else(refused)?),
        Some(_) => {}
    }
    if wanted.is_optional() && !found.is_optional() {
        casts.push(id::TO_OPTIONAL);
    }
    Ok(casts)
}
