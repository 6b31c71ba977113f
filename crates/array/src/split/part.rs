//! The plans of a program: nodes on elements, or on scalars, become a typed model of their own, whose leaves are what comes from
//! outside. Operators are applied anew to elements, because what one element is of is another type than the array's.

use super::{Class, Splitter, Unsplit};
use crate::{Action, PartId, Step, SubPlan};
use cembra_ops::{OpId, PresenceRule, TypeFault, id};
use cembra_plan::Plan;
use cembra_prepare::{Id, Kind, TypedGraph, TypedModel};
use cembra_runtime::{QType, Scalar};
use cembra_value::Value;
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use std::sync::Arc;

impl<E, F: FnMut(TypedModel) -> Result<Plan, E>> Splitter<'_, F> {
    /// Puts what a function does to each element into a part: its leaves are these operands, behind the number of its body.
    fn mapped(&self, part: &mut TypedGraph, node: Id, operands: &[Id]) -> Result<Id, Unsplit<E>> {
        let (graph, registry) = (self.graph, self.placed.model.registry);
        let body = graph.body(node).ok_or(Unsplit::Unsupported(graph.origin(node), "maps by nothing"))?;
        let needed = body.graph.reachable([body.result]);
        let mut copies: FxHashMap<Id, Id> = FxHashMap::default();
        for inner in body.graph.ids().filter(|inner| needed[inner.index()]) {
            let copy = match body.graph.kind(inner) {
                Kind::Leaf(leaf) => {
                    let operand = operands.get(1 + leaf as usize).copied();
                    let operand = operand.ok_or(Unsplit::Unsupported(graph.origin(node), "maps by nothing"))?;
                    // What was made of elements in the same part need not be optional.
                    if body.graph.qtype(inner).is_optional() && !part.qtype(operand).is_optional() {
                        let made = part.apply(registry, id::TO_OPTIONAL, &[operand], graph.origin(node));
                        made.map_err(|fault| Unsplit::Element(graph.origin(node), fault))?
                    } else {
                        operand
                    }
                }
                _ => {
                    let operands: SmallVec<[Id; 4]> =
                        body.graph.operands(inner).iter().map(|operand| copies[operand]).collect();
                    part.copy_node(&body.graph, inner, &operands)
                }
            };
            copies.insert(inner, copy);
        }
        Ok(copies[&body.result])
    }

    /// True for elements of arrays of one type that are of two: some are full. WEAK_FLOAT and its optional have another type in
    /// common than arrays of both.
    fn is_mixed(&self, part: &TypedGraph, node: Id, operands: &[Id]) -> bool {
        let of_arrays = self.graph.operands(node).iter().zip(operands);
        let weak = of_arrays.filter(|(of, _)| matches!(self.graph.qtype(**of), QType::Array(_, Scalar::WeakFloat)));
        let mut are_optional = weak.map(|(_, operand)| part.qtype(*operand).is_optional());
        are_optional.next().is_some_and(|first| are_optional.any(|other| other != first))
    }

    /// True for a comparison of elements with a scalar that is not one of FLOAT64, though both are weak.
    fn is_narrowed(&self, op: OpId, node: Id) -> bool {
        let operands = self.graph.operands(node);
        let is_array = |operand: &Id| matches!(self.graph.qtype(*operand), QType::Array(..));
        let is_weak = |operand: &Id| self.graph.qtype(*operand).of_each().scalar() == Some(Scalar::WeakFloat);
        self.placed.model.registry.get(op).narrows_unlike(Scalar::WeakFloat)
            && operands.iter().all(is_weak)
            && operands.iter().any(|operand| is_array(operand) != is_array(&operands[0]))
    }

    /// Applies an operator to elements, which are of another type than their arrays.
    fn apply_to_elements(&self, part: &mut TypedGraph, op: OpId, node: Id, operands: &[Id]) -> Result<Id, TypeFault> {
        let (registry, origin) = (self.placed.model.registry, self.graph.origin(node));
        if self.is_narrowed(op, node) {
            let narrow = |operand: &Id| part.apply(registry, id::TO_FLOAT32, &[*operand], origin);
            let narrowed: SmallVec<[Id; 4]> = operands.iter().map(narrow).collect::<Result<_, _>>()?;
            return part.apply(registry, op, &narrowed, origin);
        }
        if self.is_mixed(part, node, operands) {
            return self.apply_to_optionals(part, op, node, operands);
        }
        match part.apply(registry, op, operands, origin) {
            // It asks for what may be missing.
            Err(_) => self.apply_to_optionals(part, op, node, operands),
            made => made,
        }
    }

    /// Applies an operator to elements as the optionals that those of any array are.
    fn apply_to_optionals(&self, part: &mut TypedGraph, op: OpId, node: Id, operands: &[Id]) -> Result<Id, TypeFault> {
        let (graph, registry) = (self.graph, self.placed.model.registry);
        let mut optionals: SmallVec<[Id; 4]> = SmallVec::new();
        for (of, operand) in graph.operands(node).iter().zip(operands) {
            let is_element = matches!(graph.qtype(*of), QType::Array(..)) && !part.qtype(*operand).is_optional();
            optionals.push(match is_element {
                true => part.apply(registry, id::TO_OPTIONAL, &[*operand], graph.origin(node))?,
                false => *operand,
            });
        }
        part.apply(registry, op, &optionals, graph.origin(node))
    }

    /// What a plan of elements gives: the results, and whatever may fail and nobody is sure to ask for. A conditional of each
    /// element may leave its branches out once they are in one plan; what fails in them has to fail all the same.
    fn results_of_elements(&self, members: &[Id], is_result: &[bool]) -> Vec<Id> {
        let (graph, registry) = (self.graph, self.placed.model.registry);
        let mut asked: FxHashSet<Id> = members.iter().copied().filter(|member| is_result[member.index()]).collect();
        let mut results: Vec<Id> = asked.iter().copied().collect();
        // Users come behind what they use.
        for member in members.iter().rev() {
            let def = graph.op(*member).map(|op| registry.get(op));
            let may_fail = def.is_none_or(|def| !def.is_total()) || graph.op(*member) == Some(id::MAP);
            if may_fail && asked.insert(*member) {
                results.push(*member);
            }
            // Of a strict operator every operand is looked at, unless another one is missing.
            let asks = def.is_some_and(|def| def.presence == PresenceRule::Strict && !def.overloads().is_empty());
            if asks && asked.contains(member) {
                asked.extend(graph.operands(*member));
            }
        }
        results.sort_unstable();
        results
    }

    /// The step of nodes that one plan evaluates.
    pub(super) fn part(&mut self, members: &[Id], is_result: &[bool]) -> Result<Step, Unsplit<E>> {
        let (graph, registry) = (self.graph, self.placed.model.registry);
        let of_elements = self.classes[members[0].index()] == Class::Element;
        let inside: FxHashMap<Id, ()> = members.iter().map(|member| (*member, ())).collect();
        // What comes from outside: literals of scalars go along.
        let mut outside: Vec<Id> = Vec::new();
        for member in members {
            for operand in graph.operands(*member) {
                let goes_along = graph.value(*operand).is_some() && graph.qtype(*operand).is_framed();
                if !inside.contains_key(operand) && !goes_along {
                    outside.push(*operand);
                }
            }
        }
        outside.sort_unstable();
        outside.dedup();
        let names: Arc<[Arc<str>]> = (0..outside.len()).map(|at| Arc::from(at.to_string())).collect();
        let mut part = TypedGraph::new(names.clone(), members.len());
        let mut copies: FxHashMap<Id, Id> = FxHashMap::default();
        let mut leaves = Vec::with_capacity(outside.len());
        for (at, operand) in outside.iter().enumerate() {
            let qtype = match graph.qtype(*operand) {
                QType::Array(_, scalar) if self.full[operand.index()] => QType::Scalar(*scalar),
                other => other.of_each(),
            };
            let leaf = part.add(Kind::Leaf(at as u32), &[], &qtype, graph.origin(*operand));
            leaves.push((names[at].clone(), qtype));
            copies.insert(*operand, leaf);
        }
        for member in members {
            let mut operands: SmallVec<[Id; 4]> = SmallVec::new();
            for operand in graph.operands(*member) {
                let copy = match copies.get(operand) {
                    Some(copy) => *copy,
                    None => {
                        let literal = graph.value(*operand).map(Value::of_each).unwrap_or(Value::Nothing);
                        let copy = part.literal(literal, graph.origin(*operand));
                        copies.insert(*operand, copy);
                        copy
                    }
                };
                operands.push(copy);
            }
            let origin = graph.origin(*member);
            let copy = match graph.op(*member) {
                Some(id::MAP) => self.mapped(&mut part, *member, &operands)?,
                _ if of_elements && matches!(graph.kind(*member), Kind::Where { .. }) => {
                    let made = part.apply(registry, id::WHERE, &operands, origin);
                    made.map_err(|fault| Unsplit::Element(graph.origin(*member), fault))?
                }
                Some(op) if of_elements => {
                    let made = self.apply_to_elements(&mut part, op, *member, &operands);
                    let made = made.map_err(|fault| Unsplit::Element(graph.origin(*member), fault))?;
                    match part.kind(made) {
                        // A condition of each element chooses between values that are both computed.
                        Kind::Where { overload } => {
                            let (operands, qtype) = (part.operands(made).to_vec(), part.qtype(made).clone());
                            let kind = Kind::Operator { op: id::WHERE, overload, lifted: false };
                            part.add(kind, &operands, &qtype, origin)
                        }
                        _ => made,
                    }
                }
                _ => part.copy_node(graph, *member, &operands),
            };
            copies.insert(*member, copy);
        }
        let results: Vec<Id> = if of_elements {
            self.results_of_elements(members, is_result)
        } else {
            members.iter().copied().filter(|member| is_result[member.index()]).collect()
        };
        let outputs = results.iter().enumerate().map(|(at, result)| (Arc::from(at.to_string()), copies[result]));
        let model = TypedModel {
            registry,
            outputs: outputs.collect(),
            graph: part,
            leaves,
            rewritten: self.placed.model.rewritten,
        };
        let plan = (self.plan)(model).map_err(Unsplit::Part)?;
        let inputs = plan.inputs().iter().map(|input| input.leaf as usize).collect();
        self.program.parts.push(SubPlan { plan, inputs });
        let part = PartId(self.program.parts.len() as u32 - 1);
        let action = if of_elements { Action::Map(part) } else { Action::Scalar(part) };
        let args = outside.into_iter().map(|operand| self.value(operand)).collect();
        let outs = results.into_iter().map(|result| self.value(result)).collect();
        Ok(Step { action, args, outs, origin: graph.origin(members[0]) })
    }
}
