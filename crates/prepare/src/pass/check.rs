//! Checks the typed graph of a model between passes. The invariants of all passes are checked in debug builds. After rewrites that a user added,
//! types and loops are checked too, also in release builds: plans and machine code rely on the types of nodes and on the nesting of loops, and a
//! rewrite can replace any node by any other.

use crate::graph::LoopId;
use crate::{Id, Kind, TypedGraph, TypedModel};
use cembra_expr::Program;
use cembra_ops::{Meaning, Registry};
use cembra_runtime::{QType, Scalar};
use cembra_value::{Budget, Code, Diagnostic, Diagnostics};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

/// Returns a description of the first violated invariant: operands out of order, or types that the overload does not accept. `None` if no invariant
/// is violated.
pub(super) fn invariants(model: &TypedModel) -> Option<String> {
    let graph = &model.graph;
    graph.ids().find_map(|id| node(graph, model.registry, id).err().map(|wrong| format!("%{} {wrong}", id.index())))
}

/// Checks a graph after rewrites of a user: each node is typed again, and states of loops must be used only inside of their loops.
pub(super) fn rewritten(model: &mut TypedModel, program: &Program, budget: &Budget) -> Result<(), Diagnostics> {
    let needed = model.needed();
    let mut scopes = Scopes::new(model.graph.len());
    for (at, needed) in needed.into_iter().enumerate() {
        budget.check_visit(at)?;
        let id = Id::from_index(at);
        if !needed {
            continue;
        }
        let checked = node(&model.graph, model.registry, id)
            .and_then(|()| retyped(model, id))
            .and_then(|()| scopes.enter(&model.graph, id));
        if let Err(wrong) = checked {
            return Err(refused(model, program, id, &wrong));
        }
    }
    let escaped = model.outputs.iter().find(|(_, id)| scopes.uses_state(*id)).map(|(_, id)| *id);
    match escaped {
        Some(id) => Err(refused(model, program, id, "the state of a loop is used outside of the loop")),
        None => Ok(()),
    }
}

fn refused(model: &TypedModel, program: &Program, id: Id, wrong: &str) -> Diagnostics {
    let name = match model.graph.kind(id) {
        Kind::Loop(_) | Kind::State(_) => "a loop",
        _ => model.graph.op(id).map_or("a value", |op| model.registry.get(op).name),
    };
    let message = format!("the rewrites of an extension make the model invalid: {name}: {wrong}");
    Diagnostic::new(Code::Extension, message)
        .at(program.graph.span(model.graph.origin(id)))
        .hint("check the nodes that the extensions put in the place of this operator's operands")
        .into()
}

/// Checks the invariants of all passes for the node `id`: its operands come before it, and have types that its overload takes.
fn node(graph: &TypedGraph, registry: &Registry, id: Id) -> Result<(), String> {
    if graph.operands(id).iter().any(|operand| *operand >= id) {
        return Err("a node comes before its operand".to_owned());
    }
    let types: SmallVec<[&QType; 4]> = graph.operands(id).iter().map(|operand| graph.qtype(*operand)).collect();
    match (graph.kind(id), &types[..]) {
        (Kind::LAZY, [_, on, off]) if *on != graph.qtype(id) || *off != graph.qtype(id) => {
            return Err(format!(
                "the branches have the types {on} and {off}, but both must have the type of the conditional"
            ));
        }
        (Kind::Loop(_), [init, round]) => {
            let QType::Tuple(ends) = graph.qtype(id) else {
                return Err("the type of a loop must be a tuple".to_owned());
            };
            if **round != *graph.qtype(id) || ends.first() != Some(*init) {
                return Err(format!("the state of a loop starts as {init}, but its body results in {round}"));
            }
        }
        _ => {}
    }
    if let Some((op, Some(at), lifted)) = graph.operator(id) {
        let overload = &registry.get(op).overloads()[usize::from(at)];
        for (arg, found) in types.iter().enumerate().take(overload.args.len()) {
            if !overload.accepts_argument(arg, lifted, found) {
                return Err(format!("an operand has the type {found}, which the operator does not accept"));
            }
        }
    }
    Ok(())
}

/// Infers the type of a node again, from its current operands. Fails if that type differs from the node's type.
fn retyped(model: &mut TypedModel, id: Id) -> Result<(), String> {
    let TypedModel { graph, registry, leaves, .. } = model;
    let operands: SmallVec<[Id; 4]> = graph.operands(id).into();
    let found = match graph.kind(id) {
        Kind::Leaf(leaf) => leaves.get(leaf as usize).map(|(_, qtype)| qtype.clone()),
        Kind::Literal(_) => graph.value(id).map(cembra_value::Value::qtype),
        // Their types are checked together with their loop.
        Kind::State(_) | Kind::Loop(_) => return Ok(()),
        Kind::Where { .. } => {
            let [condition, on, off] = operands[..] else {
                return Err("a conditional must have three operands".to_owned());
            };
            let agree = graph.qtype(condition).scalar() == Some(Scalar::Unit) && graph.qtype(on) == graph.qtype(off);
            agree.then(|| graph.qtype(on).clone())
        }
        Kind::Operator { op, overload: Some(at), lifted } => {
            let overload = &registry.get(op).overloads()[usize::from(at)];
            if operands.len() != overload.args.len() {
                return Err(format!("the operator does not accept {} operands", operands.len()));
            }
            // An overload on FLOAT64 may be used for WEAK_FLOAT.
            overload.gives_type(lifted, graph.qtype(id)).then(|| graph.qtype(id).clone())
        }
        Kind::Operator { op, overload: None, .. } => match registry.get(op).meaning {
            Meaning::Structure(_) => {
                let resolved = graph
                    .resolve(registry, op, &operands)
                    .map_err(|fault| format!("the operator does not accept its operands: {}", fault.message))?;
                Some(resolved.signature.ret.clone())
            }
            _ => return Err("the operator cannot be evaluated".to_owned()),
        },
        Kind::CompileTime(_) => return Err("a type or a function is left over from type inference".to_owned()),
    };
    match found {
        Some(found) if found == *graph.qtype(id) => Ok(()),
        Some(found) => Err(format!("the type is {found} now, but must be {}", graph.qtype(id))),
        None => Err(format!("the type is not {} any more", graph.qtype(id))),
    }
}

/// For each node, its free loops: the loops whose states the node depends on other than through the loops themselves. An output must not have free
/// loops. Also the types of the states, and the loops found so far.
struct Scopes {
    /// For each node, the index in `sets` of its set of free loops; the empty set has index 0.
    free: Vec<u32>,
    sets: Vec<SmallVec<[LoopId; 4]>>,
    known: FxHashMap<SmallVec<[LoopId; 4]>, u32>,
    /// The unions of two sets that were computed so far.
    unions: FxHashMap<(u32, u32), u32>,
    states: FxHashMap<LoopId, QType>,
    closed: FxHashSet<LoopId>,
}

impl Scopes {
    fn new(nodes: usize) -> Self {
        let empty: SmallVec<[LoopId; 4]> = SmallVec::new();
        Scopes {
            free: vec![0; nodes],
            sets: vec![empty.clone()],
            known: FxHashMap::from_iter([(empty, 0)]),
            unions: FxHashMap::default(),
            states: FxHashMap::default(),
            closed: FxHashSet::default(),
        }
    }

    fn uses_state(&self, id: Id) -> bool {
        self.free[id.index()] != 0
    }

    fn intern(&mut self, set: SmallVec<[LoopId; 4]>) -> u32 {
        let sets = &mut self.sets;
        *self.known.entry(set).or_insert_with_key(|set| {
            sets.push(set.clone());
            sets.len() as u32 - 1
        })
    }

    /// The union of two sets. Loops nest at most [`LoopId::MOST_DEPTH`] deep, so a larger set is an error.
    fn union(&mut self, a: u32, b: u32) -> Result<u32, String> {
        if a == b || b == 0 {
            return Ok(a);
        }
        if let Some(known) = self.unions.get(&(a, b)) {
            return Ok(*known);
        }
        let mut set = self.sets[a as usize].clone();
        set.extend_from_slice(&self.sets[b as usize]);
        set.sort_unstable();
        set.dedup();
        if set.len() > usize::from(LoopId::MOST_DEPTH) {
            return Err("the states of more loops are used than loops can be nested".to_owned());
        }
        let union = self.intern(set);
        self.unions.insert((a, b), union);
        Ok(union)
    }

    /// Computes the set of free loops of a node. The sets of its operands must be known.
    fn enter(&mut self, graph: &TypedGraph, id: Id) -> Result<(), String> {
        let mut free = 0;
        for operand in graph.operands(id) {
            free = self.union(free, self.free[operand.index()])?;
        }
        match graph.kind(id) {
            Kind::State(of) => {
                let qtype = graph.qtype(id);
                if self.states.entry(of).or_insert_with(|| qtype.clone()) != qtype {
                    return Err("the state of a loop has two types".to_owned());
                }
                free = self.intern(SmallVec::from_iter([of]));
            }
            Kind::Loop(of) => {
                let [init, _] = *graph.operands(id) else { return Err("a loop must have two operands".to_owned()) };
                if self.sets[self.free[init.index()] as usize].contains(&of) {
                    return Err("the start of a loop depends on the state of the same loop".to_owned());
                }
                if self.states.get(&of).is_some_and(|state| state != graph.qtype(init)) {
                    return Err("the state of a loop has another type than the start of the loop".to_owned());
                }
                if !self.closed.insert(of) {
                    return Err("a loop is in the graph twice".to_owned());
                }
                let mut set = self.sets[free as usize].clone();
                set.retain(|other| *other != of);
                if set.iter().any(|around| !of.is_inside(*around)) {
                    return Err("the state of a loop is used in another loop that is not inside of it".to_owned());
                }
                free = self.intern(set);
            }
            _ => {}
        }
        self.free[id.index()] = free;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cembra_expr::NodeId;
    use cembra_value::Value;

    /// The error for a loop of one depth, if another loop inside of it, of another depth, depends on its state.
    fn nested(outer: u8, inner: u8) -> Result<(), String> {
        let (outer, inner) = (LoopId::new(0, outer), LoopId::new(1, inner));
        let (mut graph, origin, state) = (TypedGraph::default(), NodeId::from_index(0), QType::INT64);
        let mut add = |kind: Kind, operands: &[Id]| graph.add(kind, operands, &state, origin);
        let (of_outer, of_inner) = (add(Kind::State(outer), &[]), add(Kind::State(inner), &[]));
        let round = add(Kind::LAZY, &[of_inner, of_outer]);
        let within = add(Kind::Loop(inner), &[of_outer, round]);
        let around = add(Kind::LAZY, &[of_outer, within]);
        let zero = graph.literal(Value::from(0_i64), origin);
        graph.add(Kind::Loop(outer), &[zero, around], &state, origin);
        let mut scopes = Scopes::new(graph.len());
        graph.ids().try_for_each(|id| scopes.enter(&graph, id))?;
        assert!(!graph.ids().next_back().is_some_and(|last| scopes.uses_state(last)), "no state is left");
        Ok(())
    }

    /// Regions of loops are identified by depth, so two loops of equal depth would be confused.
    #[test]
    fn a_loop_is_deeper_than_those_whose_states_it_uses() {
        assert_eq!(nested(1, 2), Ok(()));
        assert_eq!(nested(3, 7), Ok(()));
        let wrong = Err("the state of a loop is used in another loop that is not inside of it".to_owned());
        assert_eq!(nested(1, 1), wrong);
        assert_eq!(nested(2, 1), wrong);
    }
}
