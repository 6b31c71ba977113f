//! Functions that arrays are mapped by: typed once, on one element of each array, as the body of a node that maps. What the body
//! needs but does not make of elements is captured: it is the same for all of them, and becomes an operand of the node.

use super::instance::{Instance, arg_of, id_of};
use crate::graph::Body;
use crate::{Id, Kind, TypedGraph};
use cembra_ops::{Expansion, Instantiation, NodeHandle, Stop, TypeFault, id, structs};
use cembra_runtime::{ArrayKind, QType};
use cembra_value::Value;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// The one form of the arrays among some operands.
fn array_kind<'t>(types: impl Iterator<Item = &'t QType>) -> Result<ArrayKind, TypeFault> {
    let mut found = None;
    for (at, qtype) in types.enumerate() {
        match qtype {
            QType::Array(kind, _) if found.is_some_and(|found| found != *kind) => {
                let message = format!("core.map expects arrays of one form, found {qtype} beside others");
                return Err(TypeFault::mismatch(message, Some(1 + at)));
            }
            QType::Array(kind, _) => found = Some(*kind),
            // A type is known while types are found.
            QType::Meta => {}
            qtype if qtype.is_framed() && qtype.is_run_time() => {}
            _ => {
                let message = format!("core.map expects arrays and what is the same for all elements, found {qtype}");
                return Err(TypeFault::mismatch(message, Some(1 + at)));
            }
        }
    }
    found.ok_or_else(|| {
        TypeFault::mismatch("core.map expects at least one array", None)
            .hint("of one value call the function: `core.apply(fn(v) = v * 2, x)`; of the fields of a tuple it is `core.map_tuple`")
    })
}

/// What a body is made of while it is taken out of a graph.
struct Extraction<'g> {
    graph: &'g TypedGraph,
    /// For the unknowns that stand for elements, the leaf of the body.
    elements: &'g FxHashMap<Id, u32>,
    /// Nodes made before have nothing to do with elements.
    from: usize,
}

impl Extraction<'_> {
    /// The nodes that the result needs and that could be made of elements, operands before users.
    fn candidates(&self, result: Id) -> Vec<Id> {
        let mut found = FxHashMap::default();
        let mut open = vec![result];
        while let Some(node) = open.pop() {
            if node.index() >= self.from && found.insert(node, ()).is_none() {
                open.extend_from_slice(self.graph.operands(node));
            }
        }
        let mut found: Vec<Id> = found.into_keys().collect();
        found.sort_unstable();
        found
    }

    /// The body that makes `result`, and the nodes that are captured by it, behind so many operands.
    fn body(&self, result: Id, operands: usize) -> Result<(Body, Vec<Id>), TypeFault> {
        let graph = self.graph;
        let mut members: Vec<Id> = Vec::new();
        let mut inside: FxHashMap<Id, ()> = FxHashMap::default();
        for node in self.candidates(result) {
            let is_inside = matches!(graph.kind(node), Kind::State(_))
                || graph.operands(node).iter().any(|operand| inside.contains_key(operand));
            if is_inside {
                inside.insert(node, ());
                members.push(node);
            }
        }
        let mut captured: Vec<Id> = Vec::new();
        let used = members.iter().flat_map(|member| graph.operands(*member)).chain([&result]);
        for operand in used {
            let found = graph.qtype(*operand);
            if !found.is_framed() {
                let message = format!("core.map's function works on scalars, found {found} in it");
                return Err(TypeFault::mismatch(message, Some(0)));
            }
            if !inside.contains_key(operand) && graph.value(*operand).is_none() {
                captured.push(*operand);
            }
        }
        captured.sort_unstable();
        captured.dedup();
        let names: Arc<[Arc<str>]> = (0..operands + captured.len()).map(|at| Arc::from(at.to_string())).collect();
        let mut body = TypedGraph::new(names, members.len());
        let mut copies: FxHashMap<Id, Id> = FxHashMap::default();
        for (at, node) in captured.iter().enumerate() {
            let leaf = body.add(Kind::Leaf((operands + at) as u32), &[], graph.qtype(*node), graph.origin(*node));
            copies.insert(*node, leaf);
        }
        let copy = |body: &mut TypedGraph, copies: &mut FxHashMap<Id, Id>, node: Id| match copies.get(&node) {
            Some(copy) => *copy,
            None => {
                let copy = body.copy_node(graph, node, &[]);
                copies.insert(node, copy);
                copy
            }
        };
        for member in members {
            let made = match self.elements.get(&member) {
                Some(leaf) => body.add(Kind::Leaf(*leaf), &[], graph.qtype(member), graph.origin(member)),
                None => {
                    let operands: Vec<Id> =
                        graph.operands(member).iter().map(|operand| copy(&mut body, &mut copies, *operand)).collect();
                    body.copy_node(graph, member, &operands)
                }
            };
            copies.insert(member, made);
        }
        let result = copy(&mut body, &mut copies, result);
        Ok((Body { graph: body, result }, captured))
    }
}

/// An operand of a node that maps: an array, or a value that is the same for all elements.
struct Mapped {
    operand: NodeHandle,
    qtype: QType,
}

impl Instance<'_, '_, '_> {
    pub(super) fn map_arrays(&mut self, function: NodeHandle, args: &[NodeHandle]) -> Result<NodeHandle, Stop> {
        let mut mapped: Vec<Mapped> = Vec::new();
        let from = self.model.graph.len();
        let mut elements = FxHashMap::default();
        let mut one_each = args.to_vec();
        for arg in &mut one_each {
            let qtype = self.qtype(*arg);
            if qtype.element().is_some() {
                // Each array of a list is an operand.
                *arg = structs::flattened(self, *arg, &mut |g, operand, _| {
                    let qtype = g.qtype(operand);
                    let one = g.unknown(&qtype.of_each());
                    elements.insert(id_of(one), mapped.len() as u32);
                    mapped.push(Mapped { operand, qtype });
                    Ok(one)
                })?;
                continue;
            }
            let operand = *arg;
            if matches!(qtype, QType::Array(..)) {
                *arg = self.unknown(&qtype.of_each());
                elements.insert(id_of(*arg), mapped.len() as u32);
            }
            mapped.push(Mapped { operand, qtype });
        }
        let kind = array_kind(mapped.iter().map(|of| &of.qtype))?;
        let result = self.call(function, &one_each)?;
        if !matches!(self.qtype(result), QType::Tuple(_)) {
            return self.mapped(result, &mapped, kind, &elements, from);
        }
        let element = structs::strong(&self.qtype(result));
        let mut arrays = Vec::new();
        for leaf in structs::leaves(self, result)? {
            arrays.push(self.mapped(leaf, &mapped, kind, &elements, from)?);
        }
        Ok(structs::list_of_arrays(self, &element, &mut arrays.into_iter())?)
    }

    /// The array of a scalar that a function makes of the elements of arrays: what was made behind `from` is made of elements.
    fn mapped(
        &mut self,
        result: NodeHandle,
        mapped: &[Mapped],
        kind: ArrayKind,
        elements: &FxHashMap<Id, u32>,
        from: usize,
    ) -> Result<NodeHandle, Stop> {
        let found = self.qtype(result);
        let Some(scalar) = found.scalar() else {
            return Err(TypeFault::mismatch(format!("core.map makes no arrays of {found}"), Some(0)).into());
        };
        let extraction = Extraction { graph: &self.model.graph, elements, from };
        let (body, captured) = extraction.body(id_of(result), mapped.len())?;
        self.spend(body.graph.len() + captured.len())?;
        let number = self.model.graph.keep_body(body);
        let mut operands = vec![id_of(self.literal(Value::from(number)))];
        // Where the operand is a type nothing is asked for: the body has no leaf for it.
        let array = mapped.iter().find(|of| matches!(of.qtype, QType::Array(..))).map(|of| of.operand);
        let operand = |of: &Mapped| if of.qtype == QType::Meta { array.unwrap_or(of.operand) } else { of.operand };
        operands.extend(mapped.iter().map(|of| id_of(operand(of))));
        operands.extend(captured);
        let kind_of_node = Kind::Operator { op: id::MAP, overload: None, lifted: false };
        Ok(arg_of(self.model.graph.add(kind_of_node, &operands, &QType::Array(kind, scalar), self.node)))
    }
}
