//! Builds a model with loops over elements from an array program. The graphs of the program's plans are copied into one
//! graph. In this graph an array is a column: memory that single elements are read from or written to.
//!
//! A loop counts positions from 0 on, and each round handles the element at one position. A node that writes an element
//! returns the element's position, and the next position is computed from the result of the last such node. So no write
//! can be removed as unused. A node that reads a column takes the number of elements from the end of the loop that
//! writes the column, so the read is evaluated after that loop.

use super::folds::LoopFold;
use super::members::{ElementStep, ElementWork, Members, Unit};
use super::nodes::Nodes;
use super::{Column, ColumnOrigin, EdgeInput, InputPath, LoopFailure, LoopLeaf, LoopModel, LoopOutput, LoopValue};
use crate::{Action, ArrayProgram, BlockId, PartId, Step, ValueId};
use cembra_ops::{Effects, Fold, column, id};
use cembra_prepare::{Id, Kind, LoopId, TypedModel};
use cembra_runtime::{CHAINS, QType, Scalar};
use cembra_value::{ScalarValue, Value};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::sync::Arc;

/// Builds the model with loops from `members`, a program whose steps were divided into loops.
pub(super) fn build(
    program: &ArrayProgram,
    parts: &[TypedModel],
    members: &Members<'_>,
) -> Result<LoopModel, LoopFailure> {
    let mut builder = Builder {
        program,
        parts,
        members,
        nodes: Nodes::new(program.registry()),
        leaves: Vec::new(),
        leaf_types: Vec::new(),
        known: FxHashMap::default(),
        columns: Vec::new(),
        maps: Vec::new(),
        column_of: FxHashMap::default(),
        scalars: vec![None; program.value_count()],
        ends: vec![None; members.loops.len()],
        carried: FxHashMap::default(),
        is_asked: vec![false; members.loops.len()],
        asked: Vec::new(),
    };
    builder.literals();
    // There are few units, and most of them come after what they need.
    let mut left: Vec<&Unit<'_>> = members.units.iter().collect();
    while !left.is_empty() {
        let before = left.len();
        let mut waiting = Vec::new();
        for unit in left {
            if !builder.unit(unit)? {
                waiting.push(unit);
            }
        }
        if waiting.len() == before {
            return Err(LoopFailure::new(None, "the steps depend on each other in a cycle"));
        }
        left = waiting;
    }
    builder.finish()
}

/// The model with loops while it is built.
struct Builder<'p> {
    program: &'p ArrayProgram,
    /// The models of the program's plans.
    parts: &'p [TypedModel],
    members: &'p Members<'p>,
    nodes: Nodes,
    leaves: Vec<LoopLeaf>,
    leaf_types: Vec<QType>,
    /// The leaves made so far. The key is the kind of leaf, and the index of the value, column, list or dictionary that
    /// it stands for.
    known: FxHashMap<(u8, usize), Id>,
    columns: Vec<Column>,
    /// The dictionaries in which keys are looked up.
    maps: Vec<InputPath>,
    /// The index of each column, by the array's place in the inputs or by the value that a loop writes.
    column_of: FxHashMap<ColumnKey, usize>,
    /// For each value that is stored in a frame, its node; `None` until the node is made.
    scalars: Vec<Option<Id>>,
    /// For each loop, the node with the number of its rounds; `None` until the loop is made.
    ends: Vec<Option<Id>>,
    /// For each fold (aggregation) that a loop computes, by its result: the fold, and the loop's state after the last
    /// round.
    carried: FxHashMap<ValueId, (LoopFold, Vec<Id>)>,
    /// For each loop, whether it must run even if no scalar depends on it, because it writes an array of the output, or
    /// because one of its elements may fail.
    is_asked: Vec<bool>,
    /// The scalars that must be computed even if no output depends on them, because computing one may fail.
    asked: Vec<Id>,
}

/// The key of a column: its place in the inputs, or the value that a loop writes to it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum ColumnKey {
    Given(ColumnOrigin),
    Made(ValueId),
}

/// The nodes of one round of a loop, which handles the element of each array at one position.
struct Round {
    position: Id,
    /// The nodes of this round's elements that exist so far, by their arrays.
    elements: FxHashMap<ValueId, Id>,
}

impl<'p> Builder<'p> {
    fn literals(&mut self) {
        for (value, literal) in self.program.literals() {
            if matches!(self.members.forms[value.index()], Some(LoopValue::Framed)) {
                let node = self.nodes.literal(literal.clone());
                self.scalars[value.index()] = Some(node);
            }
        }
    }

    /// Returns the leaf with this key, and makes it if it does not exist yet.
    fn leaf(&mut self, key: (u8, usize), leaf: impl FnOnce() -> LoopLeaf, qtype: &QType) -> Id {
        if let Some(known) = self.known.get(&key) {
            return *known;
        }
        let made = self.nodes.graph.add(Kind::Leaf(self.leaves.len() as u32), &[], qtype, self.nodes.origin);
        self.leaves.push(leaf());
        self.leaf_types.push(qtype.clone());
        self.known.insert(key, made);
        made
    }

    /// The leaf for the length of a list, a number that the caller passes.
    fn count(&mut self, list: usize) -> Id {
        self.leaf((0, list), || LoopLeaf::Count(list), &QType::INT64)
    }

    /// The node of a value that is stored in a frame (a scalar, an optional or a tuple of them); `None` if it is not
    /// made yet.
    fn node(&mut self, value: ValueId) -> Option<Id> {
        let value = self.members.resolved(value);
        if let Some(LoopValue::Leaf(path)) = &self.members.forms[value.index()] {
            let qtype = self.program.qtype(value).clone();
            return Some(self.leaf((1, value.index()), || LoopLeaf::Value(path.clone()), &qtype));
        }
        self.scalars[value.index()]
    }

    /// The index of the column of an array. The array is an input, or a loop has written it; `None` for any other
    /// array.
    fn column(&mut self, array: ValueId) -> Option<usize> {
        let array = self.members.resolved(array);
        match &self.members.forms[array.index()] {
            Some(LoopValue::Column(path, list)) => {
                let element = match self.program.qtype(array) {
                    QType::Array(_, scalar) if self.program.is_full(array) => QType::Scalar(*scalar),
                    other => other.of_each(),
                };
                Some(self.given(ColumnOrigin::Input(path.clone()), element, *list))
            }
            _ => self.column_of.get(&ColumnKey::Made(array)).copied(),
        }
    }

    /// The column of elements that the caller passes.
    fn given(&mut self, from: ColumnOrigin, element: QType, list: usize) -> usize {
        self.add_column(ColumnKey::Given(from.clone()), Column { element, list, from })
    }

    fn add_column(&mut self, key: ColumnKey, column: Column) -> usize {
        let columns = &mut self.columns;
        *self.column_of.entry(key).or_insert_with(|| {
            columns.push(column);
            columns.len() - 1
        })
    }

    /// The leaves for the address of a column and for the distance between its elements, in bytes.
    fn place(&mut self, column: usize) -> [Id; 2] {
        let base = self.leaf((2, column), || LoopLeaf::Base(column), &QType::UINT64);
        let stride = match &self.columns[column] {
            Column { from: ColumnOrigin::Input(_), .. } => {
                self.leaf((3, column), || LoopLeaf::Stride(column), &QType::INT64)
            }
            Column { element, .. } => {
                let bytes = element.layout().size;
                self.nodes.number(i64::from(bytes))
            }
        };
        [base, stride]
    }

    /// The node with the number of elements of an array; `None` while the loop that computes the array is not made yet.
    fn len(&mut self, array: ValueId) -> Option<Id> {
        match self.members.forms[self.members.resolved(array).index()] {
            Some(LoopValue::Column(_, list)) => Some(self.count(list)),
            Some(LoopValue::Made { by, .. }) => self.ends[by],
            _ => None,
        }
    }

    /// Makes the nodes of a unit (a loop, or a step outside of loops). Returns false if an operand is not made yet; the
    /// unit is then tried again later.
    fn unit(&mut self, unit: &Unit<'_>) -> Result<bool, LoopFailure> {
        match unit {
            Unit::Scalar(step, block) => self.scalar(step, *block),
            Unit::Size(step, list) => {
                let count = self.count(*list);
                self.scalars[step.outs[0].index()] = Some(count);
                Ok(true)
            }
            Unit::Fold(step, fold, by) => {
                self.nodes.origin = step.origin;
                let is_of_input = matches!(
                    self.members.forms[self.members.resolved(step.args[0]).index()],
                    Some(LoopValue::Column(..))
                );
                if self.ends[*by].is_none() {
                    return Ok(false);
                }
                let Some(len) = self.len(step.args[0]) else { return Ok(false) };
                let made = match self.carried.remove(&step.outs[0]) {
                    Some((carried, state)) => {
                        let made = carried.finish(&mut self.nodes, &state, len)?;
                        // For many elements that are in memory already, one call is faster than a loop.
                        match is_of_input || carried.depends_on_order() {
                            false => made,
                            true => {
                                let most = self.nodes.number(CHAINS as i64);
                                let is_in_order = self.nodes.apply(id::LESS_EQUAL, &[len, most])?;
                                let operands = [is_in_order, made, self.gather_all(step, *fold, len)?];
                                let qtype = self.nodes.qtype(made);
                                self.nodes.add(Kind::Where { overload: None }, &operands, &qtype)
                            }
                        }
                    }
                    None => self.gather_all(step, *fold, len)?,
                };
                debug_assert_eq!(*self.nodes.graph.qtype(made), *self.program.qtype(step.outs[0]));
                self.scalars[step.outs[0].index()] = Some(made);
                Ok(true)
            }
            Unit::Where(step, blocks) => {
                self.nodes.origin = step.origin;
                let Some(condition) = self.node(step.args[0]) else { return Ok(false) };
                let results = blocks.map(|block| self.program.block(block).result);
                let mut operands: SmallVec<[Id; 3]> = SmallVec::from_slice(&[condition]);
                for result in results {
                    let Some(node) = result.and_then(|result| self.node(result)) else { return Ok(false) };
                    operands.push(node);
                }
                let qtype = self.program.qtype(step.outs[0]).clone();
                let kind = Kind::Where { overload: None };
                let made = self.nodes.add(kind, &operands, &qtype);
                self.scalars[step.outs[0].index()] = Some(made);
                Ok(true)
            }
            Unit::Find { step, map, key, is_value } => self.find(step, map, *key, *is_value),
            Unit::Loop(at) => self.looped(*at),
        }
    }

    /// Adds a node to the graph that aggregates all `len` elements of a column.
    fn gather_all(&mut self, step: &Step, fold: Fold, len: Id) -> Result<Id, LoopFailure> {
        let zero = self.nodes.number(0);
        self.gather(step, fold, zero, len)
    }

    /// Adds a node to the graph that aggregates `len` elements of a column, from the position `start` on.
    fn gather(&mut self, step: &Step, fold: Fold, start: Id, len: Id) -> Result<Id, LoopFailure> {
        let another =
            || LoopFailure::new(Some(step.origin), "the aggregation does not support the type of the elements");
        let column = self.column(step.args[0]).ok_or_else(another)?;
        let element = &self.columns[column].element;
        let scalar = element.scalar().ok_or_else(another)?;
        let overload = column::fold_overload(fold, scalar, element.is_optional()).ok_or_else(another)?;
        let [base, stride] = self.place(column);
        let kind = Kind::Operator { op: id::COLUMN_FOLD, overload: Some(overload), lifted: false };
        let qtype = match self.program.qtype(step.outs[0]) {
            QType::Array(_, scalar) => QType::of(*scalar, fold.finish.is_optional()),
            of_all => of_all.clone(),
        };
        Ok(self.nodes.add(kind, &[base, stride, start, len], &qtype))
    }

    /// Looks up a key in a dictionary of the caller. Returns false if the key is not made yet.
    fn find(&mut self, step: &Step, map: &InputPath, key: ValueId, is_value: bool) -> Result<bool, LoopFailure> {
        let Some(key) = self.node(key) else { return Ok(false) };
        self.nodes.origin = step.origin;
        let qtype = self.program.qtype(step.outs[0]).clone();
        let value = qtype.scalar().filter(|_| is_value);
        self.scalars[step.outs[0].index()] = Some(self.ask(map, key, value, &qtype)?);
        Ok(true)
    }

    /// Looks up an element in a dictionary. The result is missing if the element is.
    fn find_element(&mut self, step: &Step, map: &InputPath, key: Id) -> Result<Id, LoopFailure> {
        let qtype = self.program.qtype(step.outs[0]).of_each();
        let QType::Optional(scalar) = *self.nodes.graph.qtype(key) else {
            return self.ask(map, key, qtype.scalar(), &qtype);
        };
        let any = ScalarValue::zero(scalar);
        let any = self.nodes.literal(Value::Scalar(any));
        let there = self.nodes.apply(id::PRESENCE_OR, &[key, any])?;
        let found = self.ask(map, there, qtype.scalar(), &qtype)?;
        let has = self.nodes.apply(id::HAS, &[key])?;
        self.nodes.apply(id::PRESENCE_AND, &[found, has])
    }

    /// Adds a node to the graph that looks up `key` in a dictionary. The result is the value for the key, of type
    /// `value`; or, if `value` is `None`, whether the key exists.
    fn ask(&mut self, map: &InputPath, key: Id, value: Option<Scalar>, qtype: &QType) -> Result<Id, LoopFailure> {
        let at = self.maps.iter().position(|known| known == map).unwrap_or_else(|| {
            self.maps.push(map.clone());
            self.maps.len() - 1
        });
        let view = self.leaf((4, at), || LoopLeaf::Map(map.clone()), &QType::UINT64);
        let key_type = self.nodes.graph.qtype(key).scalar();
        let overload = key_type.and_then(|key| column::find_overload(key, value));
        let overload = overload
            .ok_or(LoopFailure::new(Some(self.nodes.origin), "the lookup does not support the type of the key"))?;
        let op = if value.is_some() { id::COLUMN_FIND } else { id::COLUMN_HAS_KEY };
        let kind = Kind::Operator { op, overload: Some(overload), lifted: false };
        Ok(self.nodes.add(kind, &[view, key], qtype))
    }

    fn part(&self, part: PartId) -> Result<&'p TypedModel, LoopFailure> {
        self.parts.get(part.index()).ok_or(LoopFailure::new(None, "the graph of a step is not available"))
    }

    /// Copies the graph of a plan. The nodes `leaves` take the place of the plan's leaves. Returns the copies of the
    /// plan's outputs.
    fn copy(&mut self, part: &TypedModel, leaves: &[Id]) -> Vec<Id> {
        let needed = part.needed();
        let mut copies: Vec<Option<Id>> = vec![None; part.graph.len()];
        for node in part.graph.ids().filter(|node| needed[node.index()]) {
            copies[node.index()] = match part.graph.kind(node) {
                Kind::Leaf(leaf) => leaves.get(leaf as usize).copied(),
                _ => {
                    let operands = part.graph.operands(node).iter().filter_map(|operand| copies[operand.index()]);
                    let operands: SmallVec<[Id; 4]> = operands.collect();
                    Some(self.nodes.graph.copy_node(&part.graph, node, &operands))
                }
            };
        }
        part.outputs.iter().filter_map(|(_, output)| copies[output.index()]).collect()
    }

    fn scalar(&mut self, step: &Step, block: BlockId) -> Result<bool, LoopFailure> {
        let Action::Scalar(part) = step.action else { return Ok(false) };
        let leaves: Option<Vec<Id>> = step.args.iter().map(|arg| self.node(*arg)).collect();
        let Some(leaves) = leaves else { return Ok(false) };
        let part = self.part(part)?;
        for (leaf, arg) in step.args.iter().enumerate() {
            let is_row = matches!(self.members.forms[arg.index()], Some(LoopValue::MapRow(..)));
            if is_row && !asks_presence_alone(part, leaf) {
                return Err(LoopFailure::new(
                    Some(step.origin),
                    "the position of a key in a dictionary is used as a value",
                ));
            }
        }
        let may_stop = self.stopping_nodes(part);
        for ((out, made), (_, output)) in step.outs.iter().zip(self.copy(part, &leaves)).zip(&part.outputs) {
            self.scalars[out.index()] = Some(made);
            if block == BlockId::TOP && may_stop[output.index()] {
                self.asked.push(made);
            }
        }
        Ok(true)
    }

    /// Makes the nodes of the loop with index `at`. Returns false if an operand is not made yet.
    fn looped(&mut self, at: usize) -> Result<bool, LoopFailure> {
        let of = &self.members.loops[at];
        let mut scalars: FxHashMap<ValueId, Id> = FxHashMap::default();
        // The ends of the loops that this loop waits for: first those over the same list, then the others.
        let [mut ends, mut others] = [Vec::new(), Vec::new()];
        for arg in of.steps.iter().flat_map(|member| &member.args) {
            let resolved = self.members.resolved(*arg);
            match self.members.forms[resolved.index()] {
                Some(LoopValue::Made { by, .. }) if by == at => {}
                Some(LoopValue::Made { by, .. }) => {
                    let Some(end) = self.ends[by] else { return Ok(false) };
                    let ends = if self.members.loops[by].list == of.list { &mut ends } else { &mut others };
                    if !ends.contains(&end) {
                        ends.push(end);
                    }
                }
                Some(LoopValue::Column(..)) => {}
                _ => match self.node(resolved) {
                    Some(node) => drop(scalars.insert(resolved, node)),
                    None => return Ok(false),
                },
            }
        }
        let steps = of.steps.iter().map(|member| member.step).chain(of.folds.iter().map(|(step, _)| *step));
        self.nodes.origin = steps.map(|step| step.origin).next().unwrap_or(self.nodes.origin);
        // All loops over a list end with the number of its elements. The minimum of their ends is known once all of them are
        // over.
        let mut count = self.count(of.list);
        for (first, end) in ends.into_iter().enumerate() {
            count = if first == 0 { end } else { self.nodes.apply(id::MINIMUM, &[count, end])? };
        }
        let (zero, one) = (self.nodes.number(0), self.nodes.number(1));
        // No end is negative, so the count does not change. The maximum depends on the ends, so this loop is evaluated after
        // those loops.
        if !others.is_empty() {
            let mut least = zero;
            for end in others {
                least = self.nodes.apply(id::MINIMUM, &[least, end])?;
            }
            count = self.nodes.apply(id::MAXIMUM, &[count, least])?;
        }
        let over = LoopId::over_elements(at as u32);
        let (first, carried) = self.carry(at)?;
        let init = if carried.is_empty() { zero } else { self.nodes.apply(id::MAKE_TUPLE, &first)? };
        let carried_type = self.nodes.qtype(init);
        let whole = self.nodes.add(Kind::State(over), &[], &carried_type);
        let state = if carried.is_empty() { vec![whole] } else { self.nodes.parts(whole, first.len())? };
        let position = state[0];
        let mut here = Round { position, elements: FxHashMap::default() };
        let mut written: FxHashMap<Id, usize> = FxHashMap::default();
        let mut last = position;
        for member in &of.steps {
            self.nodes.origin = member.step.origin;
            let (made, may_stop) = self.made(member, &scalars, &mut here)?;
            // Steps inside a branch are demanded by the result of the branch only.
            self.is_asked[at] |= may_stop && of.block == BlockId::TOP;
            for (out, made) in member.step.outs.iter().zip(made) {
                here.elements.insert(*out, made);
                if !self.members.is_written[out.index()] && !may_stop {
                    continue;
                }
                match written.get(&made) {
                    // Two arrays have the same elements and share a column.
                    Some(column) => drop(self.column_of.insert(ColumnKey::Made(*out), *column)),
                    None => {
                        last = self.write(*out, made, of.list, last)?;
                        written.extend(self.column(*out).map(|column| (made, column)));
                    }
                }
            }
        }
        let mut next = vec![self.nodes.apply(id::ADD, &[last, one])?];
        for fold in &carried {
            let element = self.element(fold.array, &mut here)?;
            fold.advance(&mut self.nodes, &state, element, &mut next)?;
        }
        let again = self.nodes.apply(id::LESS, &[next[0], count])?;
        let after = if carried.is_empty() { next[0] } else { self.nodes.apply(id::MAKE_TUPLE, &next)? };
        let round = self.nodes.apply(id::MAKE_TUPLE, &[after, again])?;
        let qtype = self.nodes.qtype(round);
        let run = self.nodes.add(Kind::Loop(over), &[init, round], &qtype);
        let run = self.nodes.parts(run, 2)?[0];
        let is_any = self.nodes.apply(id::LESS, &[zero, count])?;
        let end = self.nodes.add(Kind::Where { overload: None }, &[is_any, run, init], &carried_type);
        if carried.is_empty() {
            self.ends[at] = Some(end);
            return Ok(true);
        }
        let state = self.nodes.parts(end, first.len())?;
        self.ends[at] = Some(state[0]);
        for fold in carried {
            self.carried.insert(fold.out, (fold, state.clone()));
        }
        Ok(true)
    }

    /// Makes the nodes of a step's results for one element. Also returns whether computing them may stop the
    /// evaluation, as a fault does.
    fn made(
        &mut self,
        member: &ElementStep<'_>,
        scalars: &FxHashMap<ValueId, Id>,
        here: &mut Round,
    ) -> Result<(Vec<Id>, bool), LoopFailure> {
        let step = member.step;
        match &member.work {
            ElementWork::Map(part) => {
                let part = self.part(*part)?;
                let mut leaves = Vec::with_capacity(member.args.len());
                for (arg, (_, wanted)) in member.args.iter().zip(&part.leaves) {
                    let resolved = self.members.resolved(*arg);
                    let leaf = match scalars.get(&resolved) {
                        Some(node) => *node,
                        None => self.element(resolved, here)?,
                    };
                    leaves.push(self.fitted(leaf, wanted)?);
                }
                Ok((self.copy(part, &leaves), self.may_stop(part)))
            }
            ElementWork::Find(map) => {
                let key = self.element(self.members.resolved(member.args[0]), here)?;
                Ok((vec![self.find_element(step, map, key)?], true))
            }
            ElementWork::Fold(fold, edge) => {
                let [start, size] = self.bounds(edge, here.position)?;
                Ok((vec![self.gather(step, *fold, start, size)?], false))
            }
            ElementWork::Size(edge) => Ok((vec![self.bounds(edge, here.position)?[1]], false)),
            ElementWork::Expand(edge) => {
                let groups = self.given(ColumnOrigin::Groups(edge.path.clone()), QType::INT64, edge.elements);
                let group = self.read(groups, here.position)?;
                let values = self.column(member.args[0]).ok_or(self.unread())?;
                let value = self.read(values, group)?;
                let out = step.outs[0];
                let value = if self.program.is_full(out) { self.present(value)? } else { value };
                Ok((vec![value], false))
            }
        }
    }

    /// Returns the position of a group's first element, and the number of elements in the group.
    fn bounds(&mut self, edge: &EdgeInput, group: Id) -> Result<[Id; 2], LoopFailure> {
        let points = self.given(ColumnOrigin::Points(edge.path.clone()), QType::INT64, edge.groups);
        let one = self.nodes.number(1);
        let next = self.nodes.apply(id::ADD, &[group, one])?;
        let [start, end] = [self.read(points, group)?, self.read(points, next)?];
        Ok([start, self.nodes.apply(id::SUBTRACT, &[end, start])?])
    }

    fn unread(&self) -> LoopFailure {
        LoopFailure::new(Some(self.nodes.origin), "a loop cannot read elements of this type")
    }

    /// Returns the initial state of a loop, and the folds (aggregations) that are part of the state. The state is the
    /// position, followed by the states of the folds.
    fn carry(&mut self, at: usize) -> Result<(Vec<Id>, Vec<LoopFold>), LoopFailure> {
        let (mut first, mut carried) = (vec![self.nodes.number(0)], Vec::new());
        for (step, fold) in self.members.loops[at].folds.iter().copied() {
            let array = self.members.resolved(step.args[0]);
            let steps = &self.members.loops[at].steps;
            let made =
                steps.iter().find_map(|member| Some((member, member.step.outs.iter().position(|out| *out == array)?)));
            let element = match made {
                Some((member, out)) => self.made_type(member, out)?,
                None => match self.column(array) {
                    Some(column) => self.columns[column].element.clone(),
                    None => self.program.qtype(array).of_each(),
                },
            };
            carried.extend(LoopFold::begin(&mut self.nodes, (step, fold), (array, element), &mut first));
        }
        Ok((first, carried))
    }

    /// The type of the elements in a step's result number `out`.
    fn made_type(&mut self, member: &ElementStep<'_>, out: usize) -> Result<QType, LoopFailure> {
        let qtype = self.program.qtype(member.step.outs[out]);
        let scalar = qtype.of_each().scalar().unwrap_or(Scalar::Unit);
        Ok(match &member.work {
            ElementWork::Map(part) => {
                let part = self.part(*part)?;
                let node = part.outputs.get(out).ok_or(self.unread())?.1;
                part.graph.qtype(node).clone()
            }
            ElementWork::Find(_) => qtype.of_each(),
            ElementWork::Fold(fold, _) => QType::of(scalar, fold.finish.is_optional()),
            ElementWork::Size(_) => QType::INT64,
            ElementWork::Expand(_) => {
                let values = self.column(member.args[0]).ok_or(self.unread())?;
                QType::of(
                    scalar,
                    self.columns[values].element.is_optional() && !self.program.is_full(member.step.outs[out]),
                )
            }
        })
    }

    /// The node of the current element of an array. It is read from the array's column if it is not known in this round.
    fn element(&mut self, array: ValueId, here: &mut Round) -> Result<Id, LoopFailure> {
        if let Some(known) = here.elements.get(&array) {
            return Ok(*known);
        }
        let column = self.column(array).ok_or(self.unread())?;
        let read = self.read(column, here.position)?;
        here.elements.insert(array, read);
        Ok(read)
    }

    /// The node that reads the element of a column at a position.
    fn read(&mut self, column: usize, position: Id) -> Result<Id, LoopFailure> {
        let element = self.columns[column].element.clone();
        let overload = column::overload(&element);
        let overload =
            overload.ok_or(LoopFailure::new(Some(self.nodes.origin), "a loop cannot read elements of this type"))?;
        let [base, stride] = self.place(column);
        let kind = Kind::Operator { op: id::COLUMN_READ, overload: Some(overload), lifted: false };
        Ok(self.nodes.add(kind, &[base, stride, position], &element))
    }

    /// Adds a node to the graph that writes an element of an array. The element's position is the result of the
    /// previous write, `before`, so that the writes stay in order.
    fn write(&mut self, array: ValueId, element: Id, list: usize, before: Id) -> Result<Id, LoopFailure> {
        let qtype = self.nodes.graph.qtype(element).clone();
        let overload = column::overload(&qtype);
        let overload =
            overload.ok_or(LoopFailure::new(Some(self.nodes.origin), "a loop cannot write elements of this type"))?;
        let column = Column { element: qtype, list, from: ColumnOrigin::Plan };
        let column = self.add_column(ColumnKey::Made(array), column);
        let [base, stride] = self.place(column);
        let kind = Kind::Operator { op: id::COLUMN_WRITE, overload: Some(overload), lifted: false };
        Ok(self.nodes.add(kind, &[base, stride, before, element], &QType::INT64))
    }

    /// Converts a value to or from an optional, as the type `wanted` demands.
    fn fitted(&mut self, node: Id, wanted: &QType) -> Result<Id, LoopFailure> {
        match (self.nodes.graph.qtype(node).is_optional(), wanted.is_optional()) {
            (false, true) => self.nodes.apply(id::TO_OPTIONAL, &[node]),
            (true, false) => self.present(node),
            _ => Ok(node),
        }
    }

    /// The value inside an optional that is certainly present. A node that is not optional is returned unchanged.
    fn present(&mut self, node: Id) -> Result<Id, LoopFailure> {
        if self.nodes.graph.qtype(node).is_optional() {
            self.nodes.apply(id::GET_OPTIONAL_VALUE, &[node])
        } else {
            Ok(node)
        }
    }

    /// Returns, for each node of a plan, whether evaluating it or one of its operands may stop the evaluation, as a
    /// fault does.
    fn stopping_nodes(&self, part: &TypedModel) -> Vec<bool> {
        let mut may_stop = vec![false; part.graph.len()];
        for node in part.graph.ids() {
            may_stop[node.index()] = part.graph.effects(self.nodes.registry, node).is_some_and(Effects::may_stop)
                || part.graph.operands(node).iter().any(|operand| may_stop[operand.index()]);
        }
        may_stop
    }

    /// Returns true if evaluating the outputs of a plan may stop the evaluation, as a fault does.
    fn may_stop(&self, part: &TypedModel) -> bool {
        let may_stop = self.stopping_nodes(part);
        part.outputs.iter().any(|(_, output)| may_stop[output.index()])
    }

    fn output(&mut self, value: ValueId, outputs: &mut Vec<Id>) -> Result<LoopOutput, LoopFailure> {
        let value = self.members.resolved(value);
        // Types nest only as deep as the text that spelled them.
        Ok(match &self.members.forms[value.index()] {
            Some(LoopValue::Tuple(values)) => {
                let fields = values.iter().map(|field| self.output(*field, outputs));
                LoopOutput::Tuple(fields.collect::<Result<_, _>>()?)
            }
            Some(LoopValue::Framed | LoopValue::Leaf(_)) => {
                let node = self.node(value).ok_or(LoopFailure::new(None, "no step computes an output of the model"))?;
                outputs.push(node);
                LoopOutput::Value(outputs.len() - 1)
            }
            _ => {
                let column =
                    self.column(value).ok_or(LoopFailure::new(None, "no step computes an output of the model"))?;
                if let Some(LoopValue::Made { by, .. }) = &self.members.forms[value.index()] {
                    self.is_asked[*by] = true;
                }
                LoopOutput::Column(column)
            }
        })
    }

    fn finish(mut self) -> Result<LoopModel, LoopFailure> {
        let mut nodes = Vec::new();
        let outputs = self.program.outputs().iter().map(|(_, value)| self.output(*value, &mut nodes));
        let outputs = outputs.collect::<Result<Vec<_>, _>>()?;
        // No other node depends on these loops, but they write an array of the output, or one of their elements may fail.
        let ends = self.ends.iter().zip(&self.is_asked).filter(|(_, is_asked)| **is_asked);
        nodes.extend(ends.filter_map(|(end, _)| *end));
        nodes.append(&mut self.asked);
        let name = |at: usize| Arc::from(at.to_string());
        let outputs_of_model = nodes.iter().enumerate().map(|(at, node)| (name(at), *node)).collect();
        let names: Arc<[Arc<str>]> = (0..self.leaves.len()).map(name).collect();
        let leaves = names.iter().cloned().zip(self.leaf_types).collect();
        let graph = self.nodes.graph.with_leaf_names(names);
        let model =
            TypedModel { registry: self.nodes.registry, graph, leaves, outputs: outputs_of_model, rewritten: true };
        Ok(LoopModel {
            model,
            leaves: self.leaves,
            lists: self.members.lists.clone(),
            spaces: self.members.spaces(),
            columns: self.columns,
            outputs,
        })
    }
}

/// True if a plan uses only the presence of a leaf.
fn asks_presence_alone(part: &TypedModel, leaf: usize) -> bool {
    let graph = &part.graph;
    let is_leaf = |node: Id| matches!(graph.kind(node), Kind::Leaf(at) if at as usize == leaf);
    let needed = part.needed();
    let mut users = graph.ids().filter(|node| needed[node.index()] && graph.op(*node) != Some(id::HAS));
    users.all(|node| !graph.operands(node).iter().any(|operand| is_leaf(*operand)))
        && !part.outputs.iter().any(|(_, output)| is_leaf(*output))
}
