//! Builds the plans of an array program. The nodes of one step are copied into a typed model of their own, which
//! becomes the plan. Operands that other steps compute become leaves of this model. Operators on arrays are resolved
//! again for single elements, because the type of an element differs from the type of its array.

use super::{Class, SplitFailure, Splitter};
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
    /// Inlines the body of a map into the model `part`. `operands` are the number of the body, followed by the operands
    /// for the body's leaves.
    fn mapped(&self, part: &mut TypedGraph, node: Id, operands: &[Id]) -> Result<Id, SplitFailure<E>> {
        let (graph, registry) = (self.graph, self.placed.model.registry);
        let body = graph.body(node).ok_or(SplitFailure::Unsupported(graph.origin(node), "the map has no function"))?;
        let needed = body.graph.reachable([body.result]);
        let mut copies: FxHashMap<Id, Id> = FxHashMap::default();
        for inner in body.graph.ids().filter(|inner| needed[inner.index()]) {
            let copy = match body.graph.kind(inner) {
                Kind::Leaf(leaf) => {
                    let operand = operands.get(1 + leaf as usize).copied();
                    let operand =
                        operand.ok_or(SplitFailure::Unsupported(graph.origin(node), "the map has no function"))?;
                    // An element that the same part makes need not be optional.
                    if body.graph.qtype(inner).is_optional() && !part.qtype(operand).is_optional() {
                        let made = part.apply(registry, id::TO_OPTIONAL, &[operand], graph.origin(node));
                        made.map_err(|fault| SplitFailure::Element(graph.origin(node), fault))?
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

    /// Returns true if some of the node's WEAK_FLOAT arrays are full (without missing elements) and others are not.
    /// Their elements then have two types, WEAK_FLOAT and its optional, whose common type is not that of the arrays.
    fn is_mixed(&self, part: &TypedGraph, node: Id, operands: &[Id]) -> bool {
        let of_arrays = self.graph.operands(node).iter().zip(operands);
        let weak = of_arrays.filter(|(of, _)| matches!(self.graph.qtype(**of), QType::Array(_, Scalar::WeakFloat)));
        let mut are_optional = weak.map(|(_, operand)| part.qtype(*operand).is_optional());
        are_optional.next().is_some_and(|first| are_optional.any(|other| other != first))
    }

    /// Returns true for a comparison between an array and a scalar, both WEAK_FLOAT, that must be computed in FLOAT32
    /// instead of FLOAT64.
    fn is_narrowed(&self, op: OpId, node: Id) -> bool {
        let operands = self.graph.operands(node);
        let is_array = |operand: &Id| matches!(self.graph.qtype(*operand), QType::Array(..));
        let is_weak = |operand: &Id| self.graph.qtype(*operand).of_each().scalar() == Some(Scalar::WeakFloat);
        self.placed.model.registry.get(op).compares_mixed_as_float32(Scalar::WeakFloat)
            && operands.iter().all(is_weak)
            && operands.iter().any(|operand| is_array(operand) != is_array(&operands[0]))
    }

    /// Applies an operator on arrays to single elements, whose types differ from those of the arrays.
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
            // The operator takes only optional elements.
            Err(_) => self.apply_to_optionals(part, op, node, operands),
            made => made,
        }
    }

    /// Applies an operator to elements that are first converted to optionals, the type that elements of an array have
    /// in general.
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

    /// The outputs of a plan on elements: the results that other steps need, and every node that may fail and is not
    /// certainly evaluated for a result. The second kind is needed because a plan may skip the branches of a
    /// conditional that are not chosen, but a failure in a branch must not be skipped.
    fn results_of_elements(&self, members: &[Id], is_result: &[bool]) -> Vec<Id> {
        let (graph, registry) = (self.graph, self.placed.model.registry);
        let mut asked: FxHashSet<Id> = members.iter().copied().filter(|member| is_result[member.index()]).collect();
        let mut results: Vec<Id> = asked.iter().copied().collect();
        // Users come after their operands.
        for member in members.iter().rev() {
            let def = graph.op(*member).map(|op| registry.get(op));
            let may_fail = def.is_none_or(|def| !def.is_total()) || graph.op(*member) == Some(id::MAP);
            if may_fail && asked.insert(*member) {
                results.push(*member);
            }
            // A strict operator evaluates every operand, unless another one is missing.
            let asks = def.is_some_and(|def| def.presence == PresenceRule::Strict && !def.overloads().is_empty());
            if asks && asked.contains(member) {
                asked.extend(graph.operands(*member));
            }
        }
        results.sort_unstable();
        results
    }

    /// Makes the step that evaluates `members` by one plan. `is_result` marks the nodes whose values other steps need.
    pub(super) fn part(&mut self, members: &[Id], is_result: &[bool]) -> Result<Step, SplitFailure<E>> {
        let (graph, registry) = (self.graph, self.placed.model.registry);
        let of_elements = self.classes[members[0].index()] == Class::Element;
        let inside: FxHashMap<Id, ()> = members.iter().map(|member| (*member, ())).collect();
        // The operands from outside, except literal scalars, which are copied into the plan.
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
                    made.map_err(|fault| SplitFailure::Element(graph.origin(*member), fault))?
                }
                Some(op) if of_elements => {
                    let made = self.apply_to_elements(&mut part, op, *member, &operands);
                    let made = made.map_err(|fault| SplitFailure::Element(graph.origin(*member), fault))?;
                    match part.kind(made) {
                        // A conditional on elements chooses between values that are both computed.
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
        let plan = (self.plan)(model).map_err(SplitFailure::Part)?;
        let inputs = plan.inputs().iter().map(|input| input.leaf as usize).collect();
        self.program.parts.push(SubPlan { plan, inputs });
        let part = PartId(self.program.parts.len() as u32 - 1);
        let action = if of_elements { Action::Map(part) } else { Action::Scalar(part) };
        let args = outside.into_iter().map(|operand| self.value(operand)).collect();
        let outs = results.into_iter().map(|result| self.value(result)).collect();
        Ok(Step { action, args, outs, origin: graph.origin(members[0]) })
    }
}
