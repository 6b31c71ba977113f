//! Implicit casts, written out where an operator is bound to its overload: each operand is cast to the type that the operator
//! was resolved for, first the scalar, then to an optional; an untyped `missing` becomes a typed one, and a literal one of the
//! type it is cast to.

use crate::pass::wheres::unseen;
use crate::{Id, Kind, TypedGraph};
use cembra_expr::NodeId;
use cembra_ops::{Argument, OpId, Registry, Resolved, Signature, TypeFault, call, id};
use cembra_runtime::QType;
use cembra_value::{ScalarValue, Value};
use smallvec::SmallVec;

impl TypedGraph {
    /// Adds an operator on operands of any types that it takes, with casts, bound to what computes it.
    ///
    /// # Errors
    /// The operator does not take these types.
    pub fn apply(&mut self, registry: &Registry, op: OpId, operands: &[Id], origin: NodeId) -> Result<Id, TypeFault> {
        let mut op = op;
        let types = operands.iter().map(|operand| self.qtype(*operand));
        if registry.get(op).may_be_another(types.clone()) {
            registry.get(op).check_count(operands.len())?;
            op = registry.meant(op, &types.collect::<SmallVec<[&QType; 4]>>());
        }
        self.bind(registry, op, operands, origin).map_err(|message| TypeFault::mismatch(message, None))
    }

    /// The same, of an operator that is what it is written as.
    ///
    /// # Errors
    /// In words, that the operator does not take these types.
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

/// Adds an operator that was resolved for these operands, with casts. What has no overload takes its operands as they are:
/// structure, and what an expression stands for that will cast them itself.
pub(super) fn bind_resolved(
    graph: &mut TypedGraph,
    registry: &Registry,
    op: OpId,
    resolved: &Resolved,
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

/// Adds a conditional over arrays. On the condition of each element it is an operator like others. On one scalar it chooses
/// between arrays, which first become arrays of its type. A scalar cannot take the place of an array, of which only the other
/// branch knows how many elements it has: but it is not evaluated either unless it is chosen.
pub(super) fn conditional_of_arrays(
    graph: &mut TypedGraph,
    registry: &Registry,
    resolved: &Resolved,
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
            if let Some(unseen) = unseen(graph.qtype(operands[at])).filter(|_| is_computed) {
                let unseen = graph.literal(unseen, origin);
                let arms = if on { [unseen, operands[at]] } else { [operands[at], unseen] };
                chosen[at] = graph.bind(registry, id::WHERE, &[operands[0], arms[0], arms[1]], origin)?;
            }
        }
        _ => {}
    }
    Ok(graph.add(Kind::bound(id::WHERE, &resolved), &chosen, &resolved.signature.ret, origin))
}

/// A value as one of a wider type.
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

/// What a cast operator makes of a value of a type that it takes.
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

/// An argument of which only the type is known: casts look at no literals.
fn of_type(qtype: &QType) -> Argument<'_> {
    Argument { qtype, literal: None }
}

/// A literal as one of a wider type, which spares most of the nodes that folding would take away again. None if an operator
/// must do it.
pub(super) fn literal_as(registry: &Registry, value: &Value, wanted: &QType) -> Result<Option<Value>, String> {
    if let (Value::Scalar(scalar), QType::Scalar(to)) = (value, wanted)
        && scalar.scalar().representation() == to.representation()
        && let Some(same) = ScalarValue::from_bits(*to, scalar.bits())
    {
        // Kernels cannot tell the two apart: a cast changes nothing but the name of the type.
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

/// The operators that make a value of one type one of a wider type, in their order. An untyped `missing` takes none, and
/// neither does what is unspecified: typing lets it be a missing value only where that is the default.
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
