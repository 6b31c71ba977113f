//! Composite operators are replaced by the expressions they stand for. What an expansion makes carries the origin of
//! the node it replaces.

mod elements;

use super::cast::{bind_resolved, cast_to};
use super::rewrite::replace;
use crate::pass::Options;
use crate::{Id, TypedGraph, TypedModel};
use cembra_expr::{NodeId, Program};
use cembra_ops::{Expansion, Meaning, NodeHandle, OpId, OverArrays, Registry, Structure, TypeFault, optional_field};
use cembra_runtime::QType;
use cembra_value::{Code, Diagnostic, Diagnostics, Value};
use smallvec::SmallVec;

pub(super) fn run(model: &mut TypedModel, program: &Program, options: &Options) -> Result<(), Diagnostics> {
    let registry = options.registry;
    let composite = |graph: &TypedGraph, id: Id| expansion(registry, graph.op(id)?, graph, graph.operands(id));
    let problem = |origin: NodeId, fault: TypeFault| {
        let diagnostic = Diagnostic::new(fault.code, fault.message).at(program.graph.span(origin));
        Diagnostics::from(match fault.hint {
            Some(hint) => diagnostic.hint(hint),
            None => diagnostic,
        })
    };
    if !model.graph.ids().any(|id| composite(&model.graph, id).is_some()) {
        return elements::check(model, &options.budget, problem);
    }
    replace(model, &options.budget, |graph, id, node| {
        let Some(expand) = composite(graph, node) else { return Ok(node) };
        let origin = graph.origin(id);
        let args: SmallVec<[NodeHandle; 4]> =
            graph.operands(node).iter().map(|o| NodeHandle(o.index() as u32)).collect();
        let made = expand(&mut Builder { graph, registry, origin }, &args);
        let made = made.map_err(|fault| problem(origin, fault))?;
        // What stands for an operator may be of a narrower type than the operator: its users were typed by the latter.
        let qtype = graph.qtype(id).clone();
        if !qtype.is_framed() {
            return Ok(Id::from_index(made.0 as usize));
        }
        cast_to(graph, registry, Id::from_index(made.0 as usize), &qtype, origin).map_err(|message| {
            Diagnostics::from(Diagnostic::new(Code::TypeMismatch, message).at(program.graph.span(origin)))
        })
    })?;
    elements::check(model, &options.budget, problem)
}

/// How an expression is made that stands for an operator on these operands.
type Expand = fn(&mut dyn Expansion, &[NodeHandle]) -> Result<NodeHandle, TypeFault>;

/// What makes the expression that stands for an operator, if one does.
fn expansion(registry: &Registry, op: OpId, graph: &TypedGraph, operands: &[Id]) -> Option<Expand> {
    let def = registry.get(op);
    let has_arrays = operands.iter().any(|operand| graph.qtype(*operand).is_beside_frames());
    match def.meaning {
        // It is made where there is one element of each array, if at all.
        Meaning::Expand(_)
            if has_arrays && matches!(def.over_arrays, OverArrays::Elementwise | OverArrays::Kernel(_)) =>
        {
            None
        }
        Meaning::Expand(expand) => Some(expand),
        // Plans take tuples apart, but not optionals.
        Meaning::Structure(Structure::GetNth) if matches!(graph.qtype(operands[0]), QType::Optional(_)) => {
            Some(optional_field)
        }
        _ => None,
    }
}

struct Builder<'g> {
    graph: &'g mut TypedGraph,
    registry: &'static Registry,
    origin: NodeId,
}

impl Expansion for Builder<'_> {
    fn qtype(&self, arg: NodeHandle) -> QType {
        self.graph.qtype(Id::from_index(arg.0 as usize)).clone()
    }

    fn value(&self, arg: NodeHandle) -> Option<Value> {
        self.graph.value(Id::from_index(arg.0 as usize)).cloned()
    }

    fn literal(&mut self, value: Value) -> NodeHandle {
        NodeHandle(self.graph.literal(value, self.origin).index() as u32)
    }

    fn apply(&mut self, op: OpId, args: &[NodeHandle]) -> Result<NodeHandle, TypeFault> {
        let operands: SmallVec<[Id; 4]> = args.iter().map(|a| Id::from_index(a.0 as usize)).collect();
        let resolved = self.graph.resolve(self.registry, op, &operands)?;
        if let Some(expand) = expansion(self.registry, op, self.graph, &operands) {
            return expand(self, args);
        }
        let bound = bind_resolved(self.graph, self.registry, op, &resolved, &operands, self.origin);
        Ok(NodeHandle(bound.map_err(|message| TypeFault::mismatch(message, None))?.index() as u32))
    }
}
