//! Chooses operands for programs on arrays. The kind of an operand follows from the name of the parameter and from typing errors. Nodes of fitting
//! sizes are chosen among existing ones, or made as inputs and literals.

use super::{Grower, TOO_LARGE};
use crate::arrays::{self, Role};
use crate::catalogue::Entry;
use crate::config::pick;
use crate::edit::literal;
use crate::values;
use cembra_expr::{ArgumentForm, Input, NodeId};
use cembra_ops::{Argument, id};
use cembra_runtime::{EdgeType, QType, Scalar};
use cembra_value::{Edge, Promise, Value};
use std::sync::Arc;

/// The plan for an operand: the kind of value (array, edge, number) that is needed, before a node with such a value is chosen.
pub(super) enum Operand {
    Node(NodeId),
    Array(Scalar),
    Integers(Scalar, Role),
    Edge,
    Single,
    Shape,
    Scalar(QType),
    Literal(Value),
}

impl Grower<'_> {
    /// Returns the index of the operand in `drawn` that typing rejects. `None` means that all operands fit; `Some(None)` means that typing fails
    /// but its error names no operand.
    pub(super) fn blamed(&self, entry: &Entry, drawn: &[Operand]) -> Option<Option<usize>> {
        let types: Vec<QType> = drawn.iter().map(|operand| self.type_of(operand)).collect();
        let literal = |operand: &Operand| match operand {
            Operand::Literal(value) => Some(value.clone()),
            Operand::Node(node) => self.literal(*node).cloned(),
            _ => None,
        };
        let literals: Vec<Option<Value>> = drawn.iter().map(literal).collect();
        let args: Vec<Argument<'_>> =
            types.iter().zip(&literals).map(|(qtype, literal)| Argument { qtype, literal: literal.as_ref() }).collect();
        entry.def.resolve(&args).err().map(|fault| fault.operand)
    }

    /// Returns the type that the planned operand has as a node.
    pub(super) fn type_of(&self, operand: &Operand) -> QType {
        match operand {
            Operand::Node(node) => self.pool.types[node.index()].clone(),
            Operand::Array(scalar) | Operand::Integers(scalar, _) => QType::Array(self.kind, *scalar),
            Operand::Edge => QType::Edge(EdgeType::Arrays(self.kind)),
            Operand::Single => QType::Edge(EdgeType::ToScalar(self.kind)),
            Operand::Shape => QType::ArrayShape(self.kind),
            Operand::Scalar(qtype) => qtype.clone(),
            Operand::Literal(value) => value.qtype(),
        }
    }

    /// Plans an operand for the parameter `at` of an operator. The parameter's name suggests the kind of operand.
    pub(super) fn draw(&mut self, entry: &Entry, at: usize, size: usize) -> Operand {
        let Some(param) = entry.def.params.get(at.min(entry.def.params.len() - 1)) else { return Operand::Edge };
        if let Some(default) = param.default.as_ref().filter(|_| self.pool.random.bool()) {
            return Operand::Literal(default.clone());
        }
        if param.form == ArgumentForm::Position
            && let Some(node) = self.pool.position()
        {
            return Operand::Node(node);
        }
        if let Some(node) = self.pool.text_of(param.form, &QType::TEXT) {
            return Operand::Node(node);
        }
        let random = &mut *self.pool.random;
        let integer = *pick(random, &[Scalar::Int64, Scalar::Int64, Scalar::Int32]);
        let likely = random.u32(..8) > 0;
        match param.name {
            "into" | "over" | "ids_over" | "edge" | "edges" if likely => {
                if random.u32(..8) > 0 {
                    Operand::Edge
                } else {
                    Operand::Single
                }
            }
            "shape" | "array_shape" | "child_side_shape" if likely => Operand::Shape,
            "unbiased" | "descending" if likely => Operand::Literal(Value::from(random.bool())),
            "size" | "parent_size" | "offset" | "n" | "low" | "high" | "seed" if likely => self.number(size),
            "index" if random.bool() => self.number(size),
            "ids" | "indices" | "index" if likely => {
                Operand::Integers(integer, *pick(random, &[Role::Places, Role::Sorted]))
            }
            "offsets" | "mapping" if likely => Operand::Integers(integer, Role::Places),
            "sizes" if likely => Operand::Integers(integer, Role::Sizes),
            "split_points" if likely => Operand::Integers(integer, Role::Points),
            _ => match random.u32(..16) {
                0..=9 => Operand::Array(self.scalar_at(size)),
                10 => Operand::Edge,
                11 => self.number(size),
                12 => {
                    let qtype = values::input_type(random, 0);
                    // A small number avoids arrays that are too large.
                    if qtype.scalar().is_some_and(Scalar::is_integer) {
                        self.number(size)
                    } else {
                        Operand::Scalar(qtype)
                    }
                }
                13 => self.tuple().map_or(Operand::Shape, Operand::Node),
                14 => Operand::Shape,
                _ => {
                    let literals = [Value::from(random.bool()), Value::from("x"), Value::Unspecified, Value::from(0.5)];
                    Operand::Literal(pick(random, &literals).clone())
                }
            },
        }
    }

    /// Plans an operand that is a number which may be a size or an index.
    pub(super) fn number(&mut self, size: usize) -> Operand {
        let random = &mut *self.pool.random;
        let number = match random.u32(..8) {
            0 => size,
            1 => 0,
            _ => random.usize(..=size.min(4000)),
        } as i64;
        let number = if random.u32(..24) == 0 { -1 } else { number };
        Operand::Literal(if random.bool() { Value::from(number) } else { Value::from(number as i32) })
    }

    /// Returns an existing tuple node that has arrays; `None` if there is none.
    pub(super) fn tuple(&mut self) -> Option<NodeId> {
        let is_one = |node: &NodeId| matches!(&self.pool.types[node.index()], QType::Tuple(fields) if fields.iter().any(values::has_arrays));
        let tuples: Vec<NodeId> = self.reachable().filter(is_one).collect();
        (!tuples.is_empty()).then(|| *pick(self.pool.random, &tuples))
    }

    /// Returns a node for each operand planned in `drawn`. Edges group arrays of `size` elements; arrays have as many elements as an edge has
    /// elements or groups.
    pub(super) fn realised(&mut self, drawn: Vec<Operand>, size: usize) -> Vec<NodeId> {
        let mut sides = vec![size];
        let mut made: Vec<Option<NodeId>> = Vec::with_capacity(drawn.len());
        for operand in &drawn {
            let child = if self.pool.chance(0.8) { size } else { *pick(self.pool.random, &sides) };
            made.push(match operand {
                Operand::Edge => Some(self.edge(child)),
                Operand::Single => Some(self.single(child)),
                Operand::Node(node) => Some(*node),
                _ => None,
            });
            if let Some(value) = made.last().copied().flatten().and_then(|node| self.value(node)) {
                sides.extend(arrays::sizes(&value));
            }
        }
        // All arrays have the child side's size, all have the parent side's, or each has a random one.
        let alike = match self.pool.random.u32(..6) {
            0..=2 => Some(size),
            3 | 4 => sides.get(2).copied(),
            _ => None,
        };
        drawn
            .into_iter()
            .zip(made)
            .map(|(operand, made)| {
                let side = alike.unwrap_or_else(|| *pick(self.pool.random, &sides));
                match operand {
                    Operand::Array(scalar) => {
                        let other = side != size && self.pool.random.bool();
                        let scalar = if other { self.scalar_at(side) } else { scalar };
                        self.array(scalar, side)
                    }
                    Operand::Integers(scalar, role) => self.integers(scalar, role, side),
                    Operand::Shape => self.shape(side),
                    Operand::Scalar(qtype) => self.pool.of_type(&qtype),
                    Operand::Literal(value) => self.pool.exactly(value),
                    Operand::Edge | Operand::Single | Operand::Node(_) => made.unwrap_or(NodeId::from_index(0)),
                }
            })
            .collect()
    }

    /// Returns the size of an existing array, mostly the size that most arrays have.
    pub(super) fn focus(&mut self) -> usize {
        if self.pool.random.u32(..3) > 0 {
            return self.size;
        }
        // The order of nodes is used, so that a program depends only on its number.
        let nodes = (0..self.pool.types.len()).map(NodeId::from_index);
        let values = nodes.filter_map(|node| self.values.get(&node)).flatten();
        let sizes: Vec<usize> = values.flat_map(arrays::sizes).filter(|size| *size < TOO_LARGE).collect();
        if sizes.is_empty() { self.size } else { *pick(self.pool.random, &sizes) }
    }

    /// Iterates over the nodes that can be operands, because they are not yet at the maximal depth.
    pub(super) fn reachable(&self) -> impl Iterator<Item = NodeId> {
        let most = self.pool.config.max_depth;
        (0..self.pool.types.len()).filter(move |at| self.pool.depths[*at] < most).map(NodeId::from_index)
    }

    /// Returns the value of the node `node` if it is a literal; `None` for other nodes.
    pub(super) fn literal(&self, node: NodeId) -> Option<&Value> {
        literal(&self.pool.graph, node)
    }

    /// Returns the element type of the node `node` if it is an array of the program's kind; `None` for a node of another type.
    pub(super) fn scalar_of(&self, node: NodeId) -> Option<Scalar> {
        match self.pool.types[node.index()] {
            QType::Array(kind, scalar) if kind == self.kind => Some(scalar),
            _ => None,
        }
    }

    /// Returns the existing arrays that have `size` elements.
    pub(super) fn arrays(&mut self, size: usize) -> Vec<NodeId> {
        let all: Vec<NodeId> = self.reachable().filter(|node| self.scalar_of(*node).is_some()).collect();
        all.into_iter().filter(|node| self.value(*node).is_some_and(|value| arrays::sizes(&value) == [size])).collect()
    }

    /// Returns an element type for arrays of `size` elements: mostly that of an existing array, sometimes a random one.
    pub(super) fn scalar_at(&mut self, size: usize) -> Scalar {
        let there = self.arrays(size);
        if there.is_empty() || self.pool.random.u32(..4) == 0 {
            return self.scalar();
        }
        let node = *pick(self.pool.random, &there);
        self.scalar_of(node).unwrap_or(Scalar::Float64)
    }

    /// Returns one of `nodes`, preferably a deep node that is not used yet; now and then `None`, so that the caller makes a new node.
    pub(super) fn chosen(&mut self, nodes: &[NodeId]) -> Option<NodeId> {
        if nodes.is_empty() || self.pool.chance(0.15) {
            return None;
        }
        let few = [(); 3].map(|()| *pick(self.pool.random, nodes));
        few.into_iter().max_by_key(|node| (!self.pool.used[node.index()], self.pool.depths[node.index()]))
    }

    /// Returns an array of `size` elements of type `scalar`: an existing node or a new one.
    pub(super) fn array(&mut self, scalar: Scalar, size: usize) -> NodeId {
        let mut there = self.arrays(size);
        there.retain(|node| self.scalar_of(*node) == Some(scalar));
        self.chosen(&there).unwrap_or_else(|| self.new_array(scalar, size, 0.8))
    }

    /// Returns a new array of `size` elements of type `scalar`. A small array is an input with the probability `inputs`, and otherwise a literal; a
    /// large array is always an input.
    pub(super) fn new_array(&mut self, scalar: Scalar, size: usize, inputs: f64) -> NodeId {
        let random = &mut *self.pool.random;
        let value = arrays::array(random, scalar, size, self.pool.config);
        self.given(Value::Array(self.kind, value.into()), inputs)
    }

    /// Returns an array of integers with the meaning `role`, for use with an array of `about` elements: an existing node or a new one.
    pub(super) fn integers(&mut self, scalar: Scalar, role: Role, about: usize) -> NodeId {
        let mut there = self.arrays(about);
        there.retain(|node| self.scalar_of(*node) == Some(scalar));
        if self.pool.random.bool()
            && let Some(node) = self.chosen(&there)
        {
            return node;
        }
        let random = &mut *self.pool.random;
        let len = match role {
            Role::Places if random.u32(..3) > 0 => about,
            _ => random.usize(..12).min(about + 1),
        };
        let about = if role == Role::Places && random.bool() { random.usize(..=about.min(50)) } else { about };
        let value = arrays::integers(random, scalar, role, len, about);
        self.given(Value::Array(self.kind, value.into()), 0.7)
    }

    /// Returns an edge that maps `child` elements to the elements of another array.
    pub(super) fn edge(&mut self, child: usize) -> NodeId {
        let qtype = QType::Edge(EdgeType::Arrays(self.kind));
        let all: Vec<NodeId> = self.reachable().filter(|node| self.pool.types[node.index()] == qtype).collect();
        let there: Vec<NodeId> = all
            .into_iter()
            .filter(|node| self.value(*node).is_some_and(|value| arrays::sizes(&value).first() == Some(&child)))
            .collect();
        if let Some(node) = self.chosen(&there) {
            return node;
        }
        let random = &mut *self.pool.random;
        let groups = match random.u32(..6) {
            0 => 1,
            1 => random.usize(..4),
            2 => child,
            3 => child / 2 + 1,
            _ => random.usize(..=child.min(100)),
        };
        let how = random.u32(..8);
        if how < 4 {
            let value = arrays::edge(random, self.kind, child, groups);
            return self.given(value.into(), 0.9);
        }
        if how == 4 {
            let scalar = self.scalar();
            let keys = self.array(scalar, child);
            let none = self.pool.exactly(Value::Unspecified);
            return self.pool.operator(id::EDGE_GROUP_BY, &[keys, none], &qtype);
        }
        let (op, role, len) = match how {
            5 => (id::EDGE_FROM_SIZES, Role::Sizes, groups.max(1)),
            6 => (id::EDGE_FROM_SPLIT_POINTS, Role::Points, groups.max(1) + 1),
            _ => (id::EDGE_FROM_MAPPING, Role::Places, child),
        };
        let about = if role == Role::Places { groups } else { child };
        // Split points end where the last group does.
        let len = if role == Role::Points { len - 1 } else { len };
        let numbers = arrays::integers(random, Scalar::Int64, role, len, about);
        let mut operands = vec![self.given(Value::Array(self.kind, numbers.into()), 0.8)];
        if op == id::EDGE_FROM_MAPPING {
            operands.push(self.pool.integer(groups as i64));
        }
        self.pool.operator(op, &operands, &qtype)
    }

    /// Returns an edge that maps `child` elements to a scalar.
    pub(super) fn single(&mut self, child: usize) -> NodeId {
        self.given(Edge::to_scalar(self.kind, child).into(), 0.5)
    }

    /// Returns an array shape of `size` elements.
    pub(super) fn shape(&mut self, size: usize) -> NodeId {
        if self.pool.random.bool()
            && let Some(array) = self.arrays(size).first().copied()
        {
            return self.pool.operator(id::SHAPE_OF, &[array], &QType::ArrayShape(self.kind));
        }
        self.given(Value::ArrayShape(self.kind, size), 0.5)
    }

    /// Returns a node that has the value `value`. A small value becomes a new input with the probability `inputs`, and otherwise a literal; a large
    /// value always becomes a new input.
    pub(super) fn given(&mut self, value: Value, inputs: f64) -> NodeId {
        let is_small = arrays::sizes(&value).iter().all(|size| *size < 8);
        if is_small && !self.pool.chance(inputs) {
            return self.pool.exactly(value);
        }
        let name: Arc<str> = format!("a{}", self.pool.inputs.len()).into();
        let qtype = value.qtype();
        let kept = arrays::kept_promises(&value);
        let promise = if self.pool.random.bool() { Promise::Nothing } else { *pick(self.pool.random, &kept) };
        let untyped = Input::untyped(name.clone(), None);
        self.pool.inputs.push(Input { qtype: Some(qtype.clone()), promise, ..untyped });
        let leaf = self.pool.graph.leaf(&name, None);
        self.row.push((name, value.clone()));
        self.values.insert(leaf, Some(value));
        self.pool.note(leaf, &qtype, 0)
    }
}
