//! Implicit casts are written out: each argument is cast to the type its operator settled on, first the scalar, then to
//! an optional; an untyped `missing` becomes a typed one, and a literal one of the type it is cast to. After this pass every
//! operator is bound to an overload.

use crate::pass::Options;
use crate::settled::Settled;
use crate::{Id, Kind, TypedGraph, TypedModel};
use cembra_expr::{NodeId, Program};
use cembra_ops::{Argument, OpId, Registry, call, id};
use cembra_runtime::QType;
use cembra_value::{Code, Diagnostic, Diagnostics, Value};
use smallvec::SmallVec;

pub(super) fn run(model: &mut TypedModel, program: &Program, options: &Options) -> Result<(), Diagnostics> {
    let mut old = std::mem::take(&mut model.graph);
    let mut new = old.empty_like();
    new.settled = std::mem::take(&mut old.settled);
    let needed = old.reachable(model.outputs.iter().map(|(_, id)| *id));
    let mut cast = Cast { registry: options.registry, map: vec![None; old.len()], old, new };
    for (at, needed) in needed.into_iter().enumerate() {
        options.budget.check_visit(at)?;
        let id = Id::from_index(at);
        // A literal is made where it is used, of the type that it is used as.
        if needed && cast.old.value(id).is_none() {
            let origin = cast.old.origin(id);
            cast.node(id).map_err(|message| {
                let diagnostic = Diagnostic::new(Code::TypeMismatch, message);
                Diagnostics::from(diagnostic.at(program.graph.span(origin)))
            })?;
        }
    }
    for (_, id) in &mut model.outputs {
        *id = cast.made(*id);
    }
    model.graph = cast.new;
    Ok(())
}

/// A graph and its copy with casts.
struct Cast {
    registry: &'static Registry,
    old: TypedGraph,
    new: TypedGraph,
    /// What nodes of the old graph became; literals, when they were last used.
    map: Vec<Option<Id>>,
}

impl Cast {
    /// Makes a node that is no literal and whose operands are made.
    fn node(&mut self, id: Id) -> Result<(), String> {
        let count = self.old.operands(id).len();
        let mut operands: SmallVec<[Id; 4]> = SmallVec::new();
        let (mut kind, mut qtype, origin) = (self.old.kind(id), self.old.qtype(id).clone(), self.old.origin(id));
        if let Kind::Operator { op, .. } = kind {
            // Types are those that operands had; the new graph knows how most operators are settled on them.
            let types = self.old.arguments(id);
            let resolved = self.new.settled.resolve(self.registry, op, types).map_err(|fault| fault.message)?;
            let signature = &resolved.signature;
            for (at, wanted) in (0..count).zip(&signature.operands) {
                operands.push(self.operand(self.old.operands(id)[at], wanted, origin)?);
            }
            kind = Kind::bound(op, &resolved);
            // Mostly it is the type that the node had. Then the one that others compare with is kept: equal types that are
            // not the same are compared field by field.
            if qtype != signature.ret {
                qtype = signature.ret.clone();
            }
        } else {
            for at in 0..count {
                operands.push(self.made(self.old.operands(id)[at]));
            }
        }
        self.map[id.index()] = Some(self.new.add(kind, &operands, qtype, origin));
        Ok(())
    }

    /// An operand as a value of a type.
    fn operand(&mut self, operand: Id, wanted: &QType, origin: NodeId) -> Result<Id, String> {
        if let Some(made) = self.map[operand.index()]
            && self.new.qtype(made) == wanted
        {
            return Ok(made);
        }
        if self.old.qtype(operand) != wanted
            && let Some(value) = self.old.value(operand)
            && !matches!(value, Value::Nothing | Value::Unspecified)
            && let Some(value) = literal_as(&mut self.new.settled, self.registry, value.clone(), wanted)?
        {
            let made = self.new.literal(value, origin);
            self.map[operand.index()] = Some(made);
            return Ok(made);
        }
        let made = self.made(operand);
        cast_to(&mut self.new, self.registry, made, wanted, origin)
    }

    /// What a node became; a literal, as it is.
    fn made(&mut self, id: Id) -> Id {
        let is_it = |made: &Id| self.old.value(id).is_none() || self.new.qtype(*made) == self.old.qtype(id);
        match self.map[id.index()].filter(is_it) {
            Some(made) => made,
            None => {
                let made = self.new.copy_node(&self.old, id, &[]);
                self.map[id.index()] = Some(made);
                made
            }
        }
    }
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
    let signature = &resolved.signature;
    for (operand, wanted) in operands.iter().zip(&signature.operands) {
        cast.push(cast_to(graph, registry, *operand, wanted, origin)?);
    }
    Ok(graph.add(Kind::bound(op, &resolved), &cast, signature.ret.clone(), origin))
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
        return Ok(graph.literal(Value::Missing(scalar), origin));
    }
    if let Some(value) = graph.value(operand).cloned()
        && let Some(value) = literal_as(&mut graph.settled, registry, value, wanted)?
    {
        return Ok(graph.literal(value, origin));
    }
    casts.into_iter().try_fold(operand, |operand, op| {
        let qtype = graph.qtype(operand).clone();
        let resolved = graph.settled.resolve(registry, op, of_type(&qtype)).map_err(|fault| fault.message)?;
        Ok(graph.add(Kind::bound(op, &resolved), &[operand], resolved.signature.ret.clone(), origin))
    })
}

/// An argument of which only the type is known: casts look at no literals.
fn of_type(qtype: &QType) -> impl ExactSizeIterator<Item = Argument<'_>> + Clone {
    std::iter::once(Argument { qtype, literal: None })
}

/// A literal as one of a wider type, which spares most of the nodes that folding would take away again. None if an operator
/// must do it.
fn literal_as(
    settled: &mut Settled,
    registry: &Registry,
    mut value: Value,
    wanted: &QType,
) -> Result<Option<Value>, String> {
    for op in casts(registry, &value.qtype(), wanted)? {
        let resolved = settled.resolve(registry, op, of_type(&value.qtype())).map_err(|fault| fault.message)?;
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
