//! Inputs that are read on demand: in the place of each leaf comes an operator that asks the caller for the value. A struct is asked for by its
//! scalars, so that each is needed by itself.

use super::rewrite::replace;
use crate::{Id, Kind, TypedGraph, TypedModel};
use cembra_expr::NodeId;
use cembra_ops::{column, id};
use cembra_runtime::QType;
use cembra_value::{Budget, Diagnostics, Value};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// The values that a model asks the caller for.
#[derive(Clone, Debug)]
pub struct AskedInputs {
    /// The leaf that is the address of the caller's [`InputsView`](cembra_ops::column::InputsView).
    pub view: u32,
    /// The values that are asked for, by their numbers, each of which is that of a leaf too: where every evaluation needs a value, the model has
    /// the leaf.
    pub values: FxHashMap<u32, AskedValue>,
}

/// A scalar or optional that a model asks for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct AskedValue {
    /// The leaf of the input that has the value.
    pub input: u32,
    /// The offset of the value in the layout of the input's type.
    pub offset: u32,
}

/// True if values of a type can be asked for.
#[must_use]
pub fn is_askable(qtype: &QType) -> bool {
    match qtype {
        // The limit of fields in a type bounds this, and its nesting.
        QType::Tuple(fields) => fields.iter().all(is_askable),
        other => column::overload(other).is_some(),
    }
}

/// Puts operators that ask for a value in the place of the leaves `inputs`, which are sorted, and whose types can be [asked for](is_askable).
/// Leaves are added behind those that the model has.
///
/// # Errors
/// Limits.
pub fn ask_for(model: &mut TypedModel, inputs: &[u32], budget: &Budget) -> Result<AskedInputs, Diagnostics> {
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
    Ok(AskedInputs { view: leaves.view, values })
}

/// The nodes that are an input, or lie inside of one.
struct InputParts {
    of_nodes: FxHashMap<Id, AskedValue>,
    /// For each node, whether something else than a field of it is used.
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
                    inputs.binary_search(&leaf).is_ok().then_some(AskedValue { input: leaf, offset: 0 })
                }
                Kind::Operator { op: id::GET_NTH | id::PART, .. } => found.field(graph, id),
                _ => None,
            };
            if let Some(place) = place {
                found.of_nodes.insert(id, place);
            }
            // The first operand of a field is taken apart; all others are used as they are.
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

    /// The place of a field, if that of its tuple is known.
    fn field(&self, graph: &TypedGraph, id: Id) -> Option<AskedValue> {
        let [tuple, index] = graph.operands(id) else { return None };
        let AskedValue { input, offset } = *self.of_nodes.get(tuple)?;
        let index = graph.value(*index)?.as_scalar()?.bits();
        Some(AskedValue { input, offset: offset + graph.qtype(*tuple).field_offset(index as usize)? })
    }

    fn is_used(&self, id: Id, qtype: &QType) -> bool {
        self.is_whole[id.index()] || !matches!(qtype, QType::Tuple(_))
    }
}

/// The leaves so far, and the numbers of the values among them.
struct AskedLeaves {
    leaves: Vec<(Arc<str>, QType)>,
    numbers: FxHashMap<AskedValue, u32>,
    view: u32,
}

impl AskedLeaves {
    fn add_leaf(&mut self, name: Arc<str>, qtype: QType) -> u32 {
        self.leaves.push((name, qtype));
        self.leaves.len() as u32 - 1
    }

    /// The node of a value: an operator that asks for it, or the tuple of such.
    fn value(&mut self, graph: &mut TypedGraph, place: AskedValue, qtype: &QType, origin: NodeId) -> Id {
        if let QType::Tuple(fields) = qtype {
            // Types nest only as deep as the text that spelled them.
            let members = fields.iter().zip(qtype.field_offsets()).map(|(field, inside)| {
                let place = AskedValue { offset: place.offset + inside, ..place };
                self.value(graph, place, field, origin)
            });
            let mut operands: Vec<Id> = members.collect();
            // What makes tuples of different types of the same members differs in its first operand.
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

    /// The number of a value: that of its leaf, which is the input's own if the input is no tuple.
    fn number(&mut self, place: AskedValue, qtype: &QType) -> u32 {
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
