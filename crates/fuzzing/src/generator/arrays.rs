//! Generates programs on arrays. They grow like programs on scalars, but each new node is evaluated by the interpreter on the program's first row.
//! So the sizes of arrays and edges (groupings of array elements) are known, and operands of fitting sizes can be chosen. Most nodes that fail on
//! the first row are not used; some are used on purpose.

mod evaluate;
mod listed;
mod looped;
mod operands;

use super::{Pool, TRIES};
use crate::Config;
use crate::any_value;
use crate::arrays;
use crate::catalogue::{Catalogue, Entry, Form, OperandChoice};
use crate::config::{chance, pick};
use crate::edit::stripped;
use crate::subject::Row;
use cembra_expr::{Input, Node, NodeId, Output, Program};
use cembra_ops::{ArrayForm, ArrayOperator, OverArrays, id};
use cembra_runtime::{ArrayKind, QType, Scalar};
use cembra_value::{Dict, Promise, Value};
use fastrand::Rng;
use operands::Operand;
use std::collections::HashMap;
use std::ops::RangeInclusive;
use std::sync::Arc;

/// The number of elements of the few large arrays: more than a block of a sum, and enough for three threads.
const LARGE: RangeInclusive<usize> = 70_000..=200_000;

/// Sizes of large arrays, in `LARGE`, at which the number of blocks per thread changes.
const ENDS_OF_BLOCKS: [usize; 6] = [131_071, 131_072, 131_073, 196_607, 196_608, 196_609];

/// The most elements of a generated array.
const TOO_LARGE: usize = 2 * *LARGE.end();

/// The element types of most arrays.
const NUMBERS: [Scalar; 5] = [Scalar::Float64, Scalar::Float64, Scalar::Float32, Scalar::Int64, Scalar::Int32];

/// The most times that operands are drawn for an operator until the reference gives a value.
const DRAWS: u32 = 5;

/// Returns a well-typed program on arrays, and its first row, on which the generator evaluated it.
pub(crate) fn array_program(random: &mut Rng, config: &Config) -> (Program, Row) {
    let config = Config { max_inputs: config.max_inputs + 6, max_depth: config.max_depth + 4, ..config.clone() };
    let is_large = random.u32(..100) == 0;
    let size = match is_large {
        true if random.bool() => *pick(random, &ENDS_OF_BLOCKS),
        true => random.usize(LARGE),
        false => arrays::size(random),
    };
    let kind = if random.u32(..8) == 0 { ArrayKind::Sparse } else { ArrayKind::Dense };
    let fails = random.u32(..3) == 0;
    // There are few types, mostly numbers, so that nodes fit together.
    let mut palette = vec![*pick(random, &NUMBERS)];
    while !is_large && random.bool() {
        palette.push(if random.bool() { *pick(random, &NUMBERS) } else { *pick(random, &Scalar::ALL) });
    }
    let pool = Pool::new(random, &config);
    let (row, values, failing) = (Vec::new(), HashMap::new(), Vec::new());
    let mut grower = Grower { pool, kind, size, is_large, palette, row, values, failing, suspects: Vec::new() };
    for scalar in grower.palette.clone() {
        grower.new_array(scalar, size, 1.0);
    }
    let mut aim = None;
    let most = if is_large { 8 } else { 40 };
    for _ in 0..grower.pool.random.u32(1..=most).max(grower.pool.random.u32(1..=most)) {
        let grown = grower.grow().filter(|node| grower.pool.types[node.index()].is_run_time());
        aim = aim.or(grown);
    }
    grower.finish(aim, fails)
}

/// Returns rows for a program on arrays: the row `first`, and rows with other values and sizes. In most of them, the values are such that the
/// promises of the inputs hold.
pub(crate) fn array_rows(random: &mut Rng, config: &Config, inputs: &[Input], mut first: Row) -> Vec<Row> {
    // Damage may have declared an input with another type than its value's.
    for (name, value) in first.values_mut() {
        let declared = inputs.iter().find(|input| input.name == *name).and_then(|input| input.qtype.as_ref());
        if let Some(qtype) = declared.map(QType::as_input).filter(|qtype| !value.is_of(qtype)) {
            *value = any_value::row_value(random, &qtype, config);
        }
    }
    let first_values = first.values();
    let mut sizes: Vec<usize> = first_values.iter().flat_map(|(_, value)| arrays::sizes(value)).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let mut rows = Vec::new();
    if sizes.last().is_some_and(|size| size >= LARGE.start()) {
        // The first row is repeated, for another number of threads.
        rows.push(first.clone());
    } else {
        let redrawn = first_values.iter().map(|(name, value)| {
            let value = if random.bool() { any_value::redrawn(random, value, config) } else { value.clone() };
            (name.clone(), value)
        });
        rows.push(Row::new(redrawn.collect()));
        let (from, to) = (pick(random, &[sizes, vec![0]].concat()).to_owned(), arrays::size(random));
        let resized = first_values.iter().map(|(name, value)| (name.clone(), arrays::resized(value, from, to, false)));
        rows.push(Row::new(resized.collect()));
    }
    for row in &mut rows {
        for (name, value) in row.values_mut() {
            let promise =
                inputs.iter().find(|input| input.name == *name).map_or(Promise::Nothing, |input| input.promise);
            if random.u32(..16) > 0 {
                *value = arrays::keeping(promise, std::mem::replace(value, Value::Nothing));
            }
        }
    }
    rows.insert(0, first);
    rows
}

struct Grower<'r> {
    pool: Pool<'r>,
    kind: ArrayKind,
    /// The number of elements that most arrays of the program have.
    size: usize,
    is_large: bool,
    /// The element types that the program's arrays may have.
    palette: Vec<Scalar>,
    /// The names of the inputs, with their values in the first row.
    row: Vec<(Arc<str>, Value)>,
    /// The values of the nodes evaluated so far; `None` for a node that fails.
    values: HashMap<NodeId, Option<Value>>,
    /// The nodes whose evaluation on the first row fails.
    failing: Vec<NodeId>,
    /// The nodes that could not be evaluated although their types are right.
    suspects: Vec<NodeId>,
}

impl Grower<'_> {
    fn scalar(&mut self) -> Scalar {
        let other = !self.is_large && self.pool.random.u32(..8) == 0;
        *pick(self.pool.random, if other { &Scalar::ALL } else { &self.palette })
    }

    /// Adds one operator, if fitting operands are found.
    fn grow(&mut self) -> Option<NodeId> {
        match self.pool.random.u32(..24) {
            0..=6 => self.elementwise(),
            7 | 8 => self.conditional(),
            9 => self.mapped(),
            10 if !self.is_large => {
                self.pool.grow();
                None
            }
            11 => self.with_entry(|entry| entry.op == id::ARRAY_EXPAND),
            12 | 13 => self.there_and_back(),
            14..=16 => self.with_entry(|entry| {
                let OverArrays::Kernel(operator) = entry.def.over_arrays else { return false };
                matches!(operator.form, ArrayForm::Reduce(_) | ArrayForm::Scan)
            }),
            _ if self.is_large => None,
            17 => self.looped(),
            18 => self.looked_up(),
            19 | 20 => self.listed(),
            _ => self.with_entry(|_| true),
        }
    }

    fn with_entry(&mut self, is_wanted: impl Fn(&Entry) -> bool) -> Option<NodeId> {
        let entries: Vec<&'static Entry> =
            Catalogue::standard().of_arrays.iter().filter(|entry| is_wanted(entry)).collect();
        let entry = *pick(self.pool.random, &entries);
        self.whole(entry)
    }

    /// Adds an operator on the elements of arrays.
    fn elementwise(&mut self) -> Option<NodeId> {
        let catalogue = Catalogue::standard();
        let lifts = |entry: &&Entry| matches!(entry.def.over_arrays, OverArrays::Elementwise | OverArrays::Expanded);
        // Mostly an operator on numbers is chosen, from a few random ones.
        let numeric = self.pool.random.u32(..4) > 0;
        let few: Vec<&Entry> = (0..8)
            .map(|_| pick(self.pool.random, &catalogue.entries))
            .filter(|entry| !numeric || ["math.", "core.", "bool."].iter().any(|of| entry.def.name.starts_with(of)))
            .collect();
        let entry = few.into_iter().find(lifts)?;
        if entry.is_open() {
            let node = self.pool.apply_to_any(entry)?;
            return self.tried(node);
        }
        self.lifted(entry, 0.75)
    }

    /// Adds a conditional over arrays, mostly with a scalar condition.
    fn conditional(&mut self) -> Option<NodeId> {
        let catalogue = Catalogue::standard();
        let entry = &catalogue.entries[*pick(self.pool.random, &catalogue.conditionals)];
        let on_elements = self.pool.random.u32(..3) == 0;
        self.lifted(entry, if on_elements { 0.75 } else { -1.0 })
    }

    /// Adds an operator of which the fraction `share` of operands are arrays; if it is negative, all operands except the first are arrays.
    fn lifted(&mut self, entry: &'static Entry, share: f64) -> Option<NodeId> {
        let catalogue = Catalogue::standard();
        let size = self.focus();
        let there: Vec<Scalar> = self.arrays(size).into_iter().filter_map(|node| self.scalar_of(node)).collect();
        // Of a few forms, the one with the fewest missing types is chosen.
        let misses = |form: &&Form| {
            let is_there = |at: &u8| match catalogue.choice(*at) {
                OperandChoice::Of(qtype) => qtype.scalar().is_some_and(|scalar| there.contains(&scalar)),
                OperandChoice::Literal(_) => false,
            };
            form.iter().filter(|at| !is_there(at)).count()
        };
        let few: Vec<&Form> = (0..16)
            .map(|_| {
                let group = pick(self.pool.random, &entry.groups);
                pick(self.pool.random, group)
            })
            .collect();
        let form = few.into_iter().min_by_key(misses)?;
        for _ in 0..DRAWS {
            let sure = self.pool.random.usize(..form.len().max(1));
            let mut operands = Vec::with_capacity(form.len());
            for (at, (choice, param)) in form.iter().zip(entry.def.params).enumerate() {
                let array = if share < 0.0 { at > 0 } else { at == sure || self.pool.chance(share) };
                operands.push(match catalogue.choice(*choice) {
                    OperandChoice::Literal(value) => self.pool.exactly(value.clone()),
                    OperandChoice::Of(qtype) => {
                        let text = self.pool.text_of(param.form, qtype);
                        match (text, qtype.scalar()) {
                            (Some(text), _) => text,
                            (None, Some(scalar)) if array => self.array(scalar, size),
                            // Some branches are nodes that fail unless the other branch is taken.
                            _ => self.pool.of_type(qtype),
                        }
                    }
                });
            }
            if share < 0.0 && self.pool.chance(0.3) {
                self.spoil_an_arm(&mut operands);
            }
            let Some(node) = self.pool.apply(entry, &operands) else { continue };
            if let Some(node) = self.tried(node) {
                return Some(node);
            }
        }
        None
    }

    /// Replaces one branch of a conditional by a node that fails on the first row, if there is such a node of the branch's type.
    fn spoil_an_arm(&mut self, operands: &mut [NodeId]) {
        let types = &self.pool.types;
        let arms = operands.iter_mut().skip(1);
        let failing =
            |arm: &NodeId| self.failing.iter().copied().find(|node| types[node.index()] == types[arm.index()]);
        let spoilt = arms.filter_map(|arm| failing(arm).map(|node| (arm, node))).last();
        if let Some((arm, node)) = spoilt {
            // The node's depth marks it as unusable; this use is allowed.
            self.pool.depths[node.index()] = 1;
            *arm = node;
        }
    }

    /// Adds an aggregation of these operands. Its other operands are their defaults.
    fn aggregated(&mut self, mut operands: Vec<NodeId>) -> Option<NodeId> {
        let reduces = |entry: &&Entry| {
            matches!(entry.def.over_arrays, OverArrays::Kernel(ArrayOperator { form: ArrayForm::Reduce(_), .. }))
        };
        let aggregations: Vec<&Entry> = Catalogue::standard().of_arrays.iter().filter(reduces).collect();
        let aggregation = *pick(self.pool.random, &aggregations);
        for param in aggregation.def.params.iter().skip(operands.len()) {
            operands.push(self.pool.exactly(param.default.clone()?));
        }
        self.pool.apply(aggregation, &operands)
    }

    /// Adds an operator on each element of an array and the aggregate of the element's group.
    fn there_and_back(&mut self) -> Option<NodeId> {
        let size = self.focus();
        let scalar = self.scalar_at(size);
        let (array, edge) = (self.array(scalar, size), self.edge(size));
        let catalogue = Catalogue::standard();
        let values = self.aggregated(vec![array, edge])?;
        let values = self.tried(values)?;
        let spread = self.pool.apply(catalogue.known(id::ARRAY_EXPAND)?, &[values, edge])?;
        let spread = self.tried(spread)?;
        let meets = [id::SUBTRACT, id::DIVIDE, id::MULTIPLY, id::ADD, id::GREATER, id::EQUAL, id::MAXIMUM];
        let meets = catalogue.known(*pick(self.pool.random, &meets))?;
        let met = self.pool.apply(meets, &[array, spread]);
        met.and_then(|met| self.tried(met)).or(Some(spread))
    }

    /// Adds a function that is mapped over the elements of arrays.
    fn mapped(&mut self) -> Option<NodeId> {
        let size = self.focus();
        let arrays: Vec<NodeId> = (0..self.pool.random.u32(1..3))
            .map(|_| {
                let scalar = self.scalar();
                self.array(scalar, size)
            })
            .collect();
        let mut parameters: Vec<QType> =
            arrays.iter().filter_map(|node| self.scalar_of(*node)).map(QType::Optional).collect();
        let mut operands = arrays;
        if self.pool.random.u32(..3) == 0 {
            let qtype = QType::of(self.scalar(), self.pool.random.bool());
            operands.push(self.pool.of_type(&qtype));
            parameters.push(qtype);
        }
        let result = self.scalar();
        let qtype = QType::of(result, self.pool.random.bool());
        operands.insert(0, self.pool.function(&parameters, &qtype));
        let node = self.pool.operator(id::MAP, &operands, &QType::Array(self.kind, result));
        self.tried(node)
    }

    /// Adds a lookup in a dictionary that is made from arrays. Mostly its keys differ.
    fn looked_up(&mut self) -> Option<NodeId> {
        let keys: Vec<Scalar> = Scalar::ALL.into_iter().filter(|scalar| Dict::may_be_keys(*scalar)).collect();
        let there: Vec<Scalar> = self.palette.iter().copied().filter(|scalar| keys.contains(scalar)).collect();
        let scalar = *pick(self.pool.random, if there.is_empty() { &keys } else { &there });
        let catalogue = Catalogue::standard();
        let (size, other) = (self.focus(), self.focus());
        let (mut keys, values) = (self.array(scalar, size), self.scalar_at(size));
        let values = self.array(values, size);
        if self.pool.random.u32(..8) > 0 {
            keys = self.pool.apply(catalogue.known(id::ARRAY_UNIQUE)?, &[keys])?;
            keys = self.tried(keys)?;
        }
        let dict = match self.pool.inputs.len() < self.pool.config.max_inputs as usize && self.pool.random.u32(..3) == 0
        {
            true => {
                let value = self.scalar_of(values)?;
                self.pool.given_dict(scalar, value)
            }
            false => self.pool.apply(catalogue.known(id::DICT_MAKE)?, &[keys, values])?,
        };
        let asked = *pick(
            self.pool.random,
            &[id::DICT_GET, id::DICT_GET, id::DICT_LOOKUP, id::DICT_CONTAINS, id::DICT_KEYS, id::DICT_VALUES],
        );
        let key = match self.pool.random.bool() {
            true => self.array(scalar, other),
            false => {
                let qtype = QType::of(scalar, self.pool.random.bool());
                self.pool.of_type(&qtype)
            }
        };
        let operands = match asked {
            id::DICT_KEYS | id::DICT_VALUES => vec![dict],
            id::DICT_LOOKUP => {
                let qtype = QType::of(self.scalar_of(values)?, self.pool.random.bool());
                vec![key, dict, self.pool.of_type(&qtype)]
            }
            _ => vec![dict, key],
        };
        let node = self.pool.apply(catalogue.known(asked)?, &operands)?;
        self.tried(node)
    }

    /// Adds an operator on arrays, with operands of fitting types.
    fn whole(&mut self, entry: &'static Entry) -> Option<NodeId> {
        let fixed = entry.def.params.len() - usize::from(entry.def.variadic);
        for _ in 0..DRAWS {
            let count = if entry.def.variadic { fixed + self.pool.random.usize(..4) } else { fixed };
            let size = self.focus();
            let mut drawn: Vec<Operand> = (0..count).map(|at| self.draw(entry, at, size)).collect();
            let mut fits = false;
            for _ in 0..3 * TRIES {
                match self.blamed(entry, &drawn) {
                    None => {
                        fits = true;
                        break;
                    }
                    Some(at) => {
                        let at = at.filter(|at| *at < count).unwrap_or_else(|| self.pool.random.usize(..count.max(1)));
                        if at < count {
                            drawn[at] = self.draw(entry, at, size);
                        }
                    }
                }
            }
            if !fits {
                return None;
            }
            let operands = self.realised(drawn, size);
            if let Some(node) = self.pool.apply(entry, &operands)
                && let Some(node) = self.tried(node)
            {
                return Some(node);
            }
        }
        None
    }

    /// Returns the program with some nodes as outputs: `aim`, which was made first, some deep nodes, and a failing node if `fails`.
    fn finish(mut self, aim: Option<NodeId>, fails: bool) -> (Program, Row) {
        let mut nodes: Vec<NodeId> =
            self.reachable().filter(|node| self.pool.types[node.index()].is_run_time()).collect();
        nodes.retain(|node| self.value(*node).is_some());
        self.pool.random.shuffle(&mut nodes);
        let most = self.pool.config.max_outputs.max(1) as usize;
        let mut chosen: Vec<NodeId> = aim.into_iter().collect();
        for _ in 0..self.pool.random.usize(1..=most) {
            let few = if self.pool.random.u32(..4) == 0 { self.pool.random.usize(1..=4) } else { nodes.len() };
            let (used, depths) = (&self.pool.used, &self.pool.depths);
            let is_new = |node: &&NodeId| !chosen.contains(node);
            let best =
                nodes.iter().filter(is_new).take(few).max_by_key(|node| (!used[node.index()], depths[node.index()]));
            chosen.extend(best.copied());
        }
        let mut bad: Vec<NodeId> = self.suspects.clone();
        if fails && !self.failing.is_empty() {
            bad.push(*pick(self.pool.random, &self.failing));
        }
        for node in bad {
            let at = self.pool.random.usize(..=chosen.len());
            if !chosen.contains(&node) {
                chosen.insert(at, node);
            }
        }
        let inputs = self.inputs();
        let output = |(at, node): (usize, &NodeId)| Output { name: format!("y{at}").into(), node: *node, span: None };
        let outputs = chosen.iter().enumerate().map(output).collect();
        let program = stripped(&Program { graph: self.pool.graph, inputs, outputs, ..Program::default() });
        // Most unused inputs are removed.
        let is_read = |name: &str| {
            (0..program.graph.len()).any(|at| match program.graph.node(NodeId::from_index(at)) {
                Node::Leaf(leaf) => **program.graph.name(leaf) == *name,
                _ => false,
            })
        };
        let kept: Vec<Input> = program
            .inputs
            .iter()
            .filter(|input| is_read(&input.name) || chance(self.pool.random, 0.05))
            .cloned()
            .collect();
        let row =
            kept.iter().filter_map(|input| self.row.iter().find(|(name, _)| *name == input.name).cloned()).collect();
        (Program { inputs: kept, ..program }, Row::new(row))
    }
}
