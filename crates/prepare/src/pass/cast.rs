//! Implicit casts are written out: each argument is cast to the type its operator settled on, first the scalar, then to
//! an optional; an untyped `missing` becomes a typed one, and a literal one of the type it is cast to. After this pass every
//! operator is bound to an overload.

use super::rewrite::rebuild;
use crate::pass::{Options, Prepared};
use crate::{Id, Kind, TypedGraph};
use cembra_expr::{Code, Diagnostic, Diagnostics, NodeId, Program, Value};
use cembra_ops::{OpId, Registry, Resolved, call, id};
use cembra_runtime::QType;
use smallvec::SmallVec;

pub(super) fn run(prepared: &mut Prepared, program: &Program, options: &Options) -> Result<(), Diagnostics> {
    let registry = options.registry;
    rebuild(prepared, &options.budget, |new, old, id, operands| {
        let origin = old.origin(id);
        match old.op(id) {
            Some(op) => bind(new, registry, op, operands, origin).map_err(|message| {
                let diagnostic = Diagnostic::new(Code::TypeMismatch, message);
                Diagnostics::from(diagnostic.at(program.graph.span(origin)))
            }),
            None => Ok(new.copy_node(old, id, operands)),
        }
    })
}

/// Adds an operator on operands of any types it takes, with casts, bound to its overload.
pub(crate) fn bind(
    graph: &mut TypedGraph,
    registry: &Registry,
    op: OpId,
    operands: &[Id],
    origin: NodeId,
) -> Result<Id, String> {
    let resolved = graph.resolve(registry, op, operands).map_err(|fault| fault.message)?;
    let mut cast: SmallVec<[Id; 4]> = SmallVec::new();
    let Resolved { signature, overload, lifted } = &*resolved;
    for (operand, wanted) in operands.iter().zip(&signature.operands) {
        cast.push(cast_to(graph, registry, *operand, wanted, origin)?);
    }
    let kind = Kind::Operator { op, overload: *overload, lifted: *lifted };
    Ok(graph.add(kind, &cast, signature.ret.clone(), origin))
}

/// A value as one of a wider type.
pub(super) fn cast_to(
    graph: &mut TypedGraph,
    registry: &Registry,
    operand: Id,
    wanted: &QType,
    origin: NodeId,
) -> Result<Id, String> {
    let found = graph.qtype(operand);
    if found == wanted {
        return Ok(operand);
    }
    let (Some(to), false) = (wanted.scalar(), found.scalar().is_none() && *found != QType::Nothing) else {
        return Err(format!("{found} cannot be cast to {wanted}"));
    };
    if *found == QType::Nothing {
        return Ok(graph.literal(Value::Missing(to), origin));
    }
    let mut cast = operand;
    if found.scalar() != Some(to) {
        let op = registry.cast_to(to).ok_or_else(|| format!("{found} cannot be cast to {wanted}"))?;
        cast = unary(graph, registry, op, cast, origin)?;
    }
    if wanted.is_optional() && !graph.qtype(cast).is_optional() {
        cast = unary(graph, registry, id::TO_OPTIONAL, cast, origin)?;
    }
    Ok(cast)
}

/// A cast of exactly its operand's type: nothing is left to cast. That of a literal is another literal at once, which spares
/// most of the nodes that folding would take away again.
fn unary(graph: &mut TypedGraph, registry: &Registry, op: OpId, operand: Id, origin: NodeId) -> Result<Id, String> {
    let resolved = graph.resolve_by_types(registry, op, &[operand]).map_err(|fault| fault.message)?;
    if let Some(value) = graph.value(operand)
        && let Some(Ok(cast)) = call(registry.get(op), &resolved, std::slice::from_ref(value))
    {
        return Ok(graph.literal(cast, origin));
    }
    let Resolved { signature, overload, lifted } = &*resolved;
    let kind = Kind::Operator { op, overload: *overload, lifted: *lifted };
    Ok(graph.add(kind, &[operand], signature.ret.clone(), origin))
}
