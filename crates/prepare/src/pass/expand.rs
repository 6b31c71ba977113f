//! Replaces composite operators by the expressions that define them. The nodes of such an expression get the origin (the place in the program) of the
//! node that the expression replaces.

mod elements;

use super::cast::{bind_resolved, cast_to};
use super::fold::{written_array, written_bytes};
use super::rewrite::replace;
use crate::pass::Options;
use crate::{Id, TypedGraph, TypedModel};
use cembra_expr::{NodeId, Program};
use cembra_ops::{
    Expansion, Meaning, NodeHandle, OpId, OverArrays, Registry, Structure, TypeFault, id, optional_field,
};
use cembra_runtime::QType;
use cembra_value::{Diagnostic, Diagnostics, Limit, ScalarValue, Value};
use smallvec::SmallVec;
use std::cell::Cell;

pub(super) fn run(model: &mut TypedModel, program: &Program, options: &Options) -> Result<(), Diagnostics> {
    let registry = options.registry;
    let composite = |graph: &TypedGraph, id: Id| expansion(registry, graph.op(id)?, graph, graph.operands(id));
    let problem = |origin: NodeId, fault: TypeFault| {
        let diagnostic = fault.hint.into_iter().fold(Diagnostic::new(fault.code, fault.message), Diagnostic::hint);
        let calls = program.graph.calls_to(origin).into_iter();
        let placed = diagnostic.at(program.graph.span(origin));
        Diagnostics::from(calls.fold(placed, |problem, call| problem.also(call.span, call.text)))
    };
    if !model.graph.ids().any(|id| composite(&model.graph, id).is_some()) {
        return elements::check(model, &options.budget, problem);
    }
    let used_once = used_once(&model.graph);
    let room = Cell::new(Some(options.budget.limits().literal_bytes));
    replace(model, &options.budget, |graph, id, node| {
        let Some(expand) = composite(graph, node) else { return Ok(node) };
        let origin = graph.origin(id);
        let args: SmallVec<[NodeHandle; 4]> =
            graph.operands(node).iter().map(|o| NodeHandle(o.index() as u32)).collect();
        let mut builder = Builder { graph, registry, origin, used_once: &used_once, room: &room };
        let made = expand(&mut builder, &args);
        if room.get().is_none() {
            return Err(options.budget.limits().exceeded(Limit::LiteralBytes).at(program.graph.span(origin)).into());
        }
        let made = made.map_err(|fault| problem(origin, fault))?;
        // The expression may have a narrower type than the operator, but users of the operator were typed by its own type.
        let qtype = graph.qtype(id).clone();
        if !qtype.is_framed() || matches!(qtype, QType::Dict(..)) {
            return Ok(Id::from_index(made.0 as usize));
        }
        cast_to(graph, registry, Id::from_index(made.0 as usize), &qtype, origin)
            .map_err(|message| problem(origin, TypeFault::mismatch(message, None)))
    })?;
    elements::check(model, &options.budget, problem)
}

/// A function that makes the nodes of the expression for a composite operator on the given operands.
type Expand = fn(&mut dyn Expansion, &[NodeHandle]) -> Result<NodeHandle, TypeFault>;

/// The function that makes the expression for an operator on these operands. `None` if the operator is not composite, or if its expression is made
/// later, for one element of each array.
fn expansion(registry: &Registry, op: OpId, graph: &TypedGraph, operands: &[Id]) -> Option<Expand> {
    let def = registry.get(op);
    let has_arrays = operands.iter().any(|operand| graph.qtype(*operand).is_beside_frames());
    let is_of_each = match def.over_arrays {
        // A lookup takes a dictionary that is made of arrays as these arrays, because each element needs all of them.
        OverArrays::Elementwise => !operands.iter().any(|operand| matches!(graph.qtype(*operand), QType::Tuple(_))),
        OverArrays::Kernel(_) => true,
        OverArrays::Expanded | OverArrays::Own => false,
    };
    match def.meaning {
        // The expression is made later, for one element of each array, if at all.
        Meaning::Expand(_) if has_arrays && is_of_each => None,
        Meaning::Expand(expand) => Some(expand),
        // Plans have no operation that takes fields of optional tuples.
        Meaning::Structure(Structure::GetNth) if matches!(graph.qtype(operands[0]), QType::Optional(_)) => {
            Some(optional_field)
        }
        _ => None,
    }
}

/// The builder of expressions for composite operators, in a graph.
struct Builder<'g> {
    graph: &'g mut TypedGraph,
    registry: &'static Registry,
    origin: NodeId,
    /// For each node, true if it has exactly one use. Empty if the model makes no dictionaries, because only these need the information.
    used_once: &'g [bool],
    /// The number of bytes that may still be used for elements of arrays that become literals, for the whole model; `None` once the limit was
    /// exceeded. The limit is needed because a short text may combine its arrays in many ways.
    room: &'g Cell<Option<usize>>,
}

impl Expansion for Builder<'_> {
    fn qtype(&self, arg: NodeHandle) -> QType {
        self.graph.qtype(Id::from_index(arg.0 as usize)).clone()
    }

    fn value(&self, arg: NodeHandle) -> Option<Value> {
        self.graph.value(Id::from_index(arg.0 as usize)).cloned()
    }

    fn literal_array(&self, arg: NodeHandle) -> Option<Value> {
        self.value(arg).or_else(|| {
            let node = Id::from_index(arg.0 as usize);
            let bytes = written_bytes(self.graph, node)?;
            self.room.set(self.room.get().and_then(|room| room.checked_sub(bytes)));
            self.room.get().and_then(|_| written_array(self.graph, self.registry, node, bytes))
        })
    }

    fn written(&self, arg: NodeHandle) -> Option<Value> {
        let is_used_once = *self.used_once.get(arg.0 as usize)?;
        is_used_once.then(|| self.literal_array(arg))?
    }

    fn literal(&mut self, value: Value) -> NodeHandle {
        NodeHandle(self.graph.literal(value, self.origin).index() as u32)
    }

    fn apply(&mut self, op: OpId, args: &[NodeHandle]) -> Result<NodeHandle, TypeFault> {
        let operands: SmallVec<[Id; 4]> = args.iter().map(|a| Id::from_index(a.0 as usize)).collect();
        if let Some(field) = made_field(self.graph, op, &operands) {
            return Ok(NodeHandle(field.index() as u32));
        }
        let resolved = self.graph.resolve(self.registry, op, &operands)?;
        if let Some(expand) = expansion(self.registry, op, self.graph, &operands) {
            return expand(self, args);
        }
        let bound = bind_resolved(self.graph, self.registry, op, &resolved, &operands, self.origin);
        Ok(NodeHandle(bound.map_err(|message| TypeFault::mismatch(message, None))?.index() as u32))
    }
}

/// Computes for each node whether it has a single use. Empty for a model that makes no dictionaries.
fn used_once(graph: &TypedGraph) -> Vec<bool> {
    if !graph.ids().any(|id| graph.op(id) == Some(id::DICT_MAKE)) {
        return Vec::new();
    }
    let mut uses = vec![0_u8; graph.len()];
    for operand in graph.ids().flat_map(|id| graph.operands(id)) {
        uses[operand.index()] = uses[operand.index()].saturating_add(1);
    }
    uses.into_iter().map(|uses| uses == 1).collect()
}

/// The node of the field that `op` reads from a tuple, if the tuple contains arrays and the operand itself makes the tuple; else `None`. With it, the
/// tuple, which frames cannot store, is not needed.
fn made_field(graph: &TypedGraph, op: OpId, operands: &[Id]) -> Option<Id> {
    let [tuple, index] = operands else { return None };
    if !matches!(op, id::GET_NTH | id::PART) || graph.qtype(*tuple).is_framed() {
        return None;
    }
    let Some(ScalarValue::Int64(index)) = graph.value(*index)?.as_scalar() else { return None };
    graph.made_fields(*tuple)?.get(usize::try_from(*index).ok()?).copied()
}
