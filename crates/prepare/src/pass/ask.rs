//! Replaces inputs by operators that load them on demand, when the evaluation needs them: each operator asks the caller for a value. The fields of a
//! struct are asked for separately, so that a field is loaded only if it is needed.

use super::rewrite::replace;
use crate::{Id, Kind, TypedGraph, TypedModel};
use cembra_expr::NodeId;
use cembra_ops::{column, id};
use cembra_runtime::QType;
use cembra_value::{Budget, Diagnostics, Value};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// The inputs of a model that are loaded on demand: the model asks the caller for their values.
#[derive(Clone, Debug)]
pub struct OnDemandLeaves {
    /// The index of the leaf whose value is the address of the caller's [`InputsView`](cembra_ops::column::InputsView).
    pub view: u32,
    /// The values that the model may ask for, by number. If every evaluation needs a value, the model reads it from the leaf whose index is that
    /// number.
    pub values: FxHashMap<u32, OnDemandValue>,
}

/// A scalar or optional value that a model may ask for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct OnDemandValue {
    /// The index of the leaf for the input that contains the value.
    pub input: u32,
    /// The offset of the value in the layout of the type of its input, in bytes.
    pub offset: u32,
}

/// Returns true if a model can ask for values of the type `qtype`.
#[must_use]
pub fn is_askable(qtype: &QType) -> bool {
    match qtype {
        // The recursion is bounded by the limits on fields and nesting of types.
        QType::Tuple(fields) => fields.iter().all(is_askable),
        other => column::overload(other).is_some(),
    }
}

/// Replaces the leaves `inputs` by operators that ask for their values. The leaf indices must be sorted, and the leaves' types must be
/// [askable](is_askable). New leaves are added after the model's leaves.
///
/// # Errors
/// If a limit is exceeded.
pub fn ask_for(model: &mut TypedModel, inputs: &[u32], budget: &Budget) -> Result<OnDemandLeaves, Diagnostics> {
    let places = InputParts::of(model, inputs);
    let mut leaves = AskedLeaves { leaves: std::mem::take(&mut model.leaves), numbers: FxHashMap::default(), view: 0 };
    leaves.view = leaves.add_leaf("loader".into(), QType::UINT64);
    replace(model, budget, |graph, id, node| {
        Ok(match places.of_nodes.get(&id) {
            Some(place) if places.is_used(id, graph.qtype(id)) => {
                let (qtype, origin) = (graph.qtype(id).clone(), graph.origin(id));
                leaves.value(graph, *place, &qtype, origin)
            }
            _ => node,
        })
    })?;
    let names: Arc<[Arc<str>]> = leaves.leaves.iter().map(|(name, _)| name.clone()).collect();
    model.graph = std::mem::take(&mut model.graph).with_leaf_names(names);
    model.leaves = leaves.leaves;
    let values = leaves.numbers.into_iter().map(|(value, number)| (number, value)).collect();
    Ok(OnDemandLeaves { view: leaves.view, values })
}

/// The nodes that are an input on demand or a field in such an input, and the nodes that are needed as a whole.
struct InputParts {
    of_nodes: FxHashMap<Id, OnDemandValue>,
    /// For each node, true if some user needs the whole value and not only a field of it.
    is_whole: Vec<bool>,
}

impl InputParts {
    fn of(model: &TypedModel, inputs: &[u32]) -> InputParts {
        let graph = &model.graph;
        let mut found = InputParts { of_nodes: FxHashMap::default(), is_whole: vec![false; graph.len()] };
        let needed = model.needed();
        for id in graph.ids().filter(|id| needed[id.index()]) {
            let place = match graph.kind(id) {
                Kind::Leaf(leaf) => {
                    inputs.binary_search(&leaf).is_ok().then_some(OnDemandValue { input: leaf, offset: 0 })
                }
                Kind::Operator { op: id::GET_NTH | id::PART, .. } => found.field(graph, id),
                _ => None,
            };
            if let Some(place) = place {
                found.of_nodes.insert(id, place);
            }
            // The first operand of a field access is only taken apart; other operands are used as a whole.
            let taken_apart = usize::from(place.is_some());
            for operand in graph.operands(id).iter().skip(taken_apart) {
                found.is_whole[operand.index()] = true;
            }
        }
        for (_, output) in &model.outputs {
            found.is_whole[output.index()] = true;
        }
        found
    }

    /// The input and the offset of the field that the node `id` takes from a tuple; `None` if the tuple is not (in) an input on demand.
    fn field(&self, graph: &TypedGraph, id: Id) -> Option<OnDemandValue> {
        let [tuple, index] = graph.operands(id) else { return None };
        let OnDemandValue { input, offset } = *self.of_nodes.get(tuple)?;
        let index = graph.value(*index)?.as_scalar()?.bits();
        Some(OnDemandValue { input, offset: offset + graph.qtype(*tuple).field_offset(index as usize)? })
    }

    fn is_used(&self, id: Id, qtype: &QType) -> bool {
        self.is_whole[id.index()] || !matches!(qtype, QType::Tuple(_))
    }
}

/// The leaves of the model, including new ones for fields, and for each value that the model asks for, the index of its leaf.
struct AskedLeaves {
    leaves: Vec<(Arc<str>, QType)>,
    numbers: FxHashMap<OnDemandValue, u32>,
    view: u32,
}

impl AskedLeaves {
    fn add_leaf(&mut self, name: Arc<str>, qtype: QType) -> u32 {
        self.leaves.push((name, qtype));
        self.leaves.len() as u32 - 1
    }

    /// Makes the node for the value at `place`: an operator that asks the caller for it or, for a tuple, a tuple of the nodes for its fields.
    fn value(&mut self, graph: &mut TypedGraph, place: OnDemandValue, qtype: &QType, origin: NodeId) -> Id {
        if let QType::Tuple(fields) = qtype {
            // The recursion is bounded: types nest only as deep as the text that spelled them.
            let members = fields.iter().zip(qtype.field_offsets()).map(|(field, inside)| {
                let place = OnDemandValue { offset: place.offset + inside, ..place };
                self.value(graph, place, field, origin)
            });
            let mut operands: Vec<Id> = members.collect();
            // Tuples of different types with the same members differ in their first operand.
            let (op, first) = match (qtype.as_tuple(), fields.names()) {
                (Some(_), None) => (id::MAKE_TUPLE, None),
                (Some(_), Some(names)) => (id::MAKE_NAMED, Some(Value::text(names.joined()))),
                (None, _) => (id::FORMED, Some(Value::Type(qtype.clone()))),
            };
            if let Some(first) = first {
                operands.insert(0, graph.literal(first, origin));
            }
            return graph.add(Kind::Operator { op, overload: None, lifted: false }, &operands, qtype, origin);
        }
        let number = self.number(place, qtype);
        let view = graph.add(Kind::Leaf(self.view), &[], &QType::UINT64, origin);
        let number = graph.literal(Value::from(i64::from(number)), origin);
        let kind = Kind::Operator { op: id::COLUMN_ASK, overload: column::overload(qtype), lifted: false };
        graph.add(kind, &[view, number], qtype, origin)
    }

    /// The number by which a model asks for a value. It is the index of a leaf: the leaf of the input or, if the input is a tuple, a leaf that is
    /// added for the field.
    fn number(&mut self, place: OnDemandValue, qtype: &QType) -> u32 {
        if let Some(number) = self.numbers.get(&place) {
            return *number;
        }
        let (name, input) = &self.leaves[place.input as usize];
        let number = match input {
            QType::Tuple(_) => {
                let name = format!("{name} at {}", place.offset).into();
                self.add_leaf(name, qtype.clone())
            }
            _ => place.input,
        };
        self.numbers.insert(place, number);
        number
    }
}
