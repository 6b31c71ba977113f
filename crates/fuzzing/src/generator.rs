//! The generator: grows a pool of typed nodes bottom up, by applying operators to existing nodes. Some of the deepest nodes become outputs. Because
//! nodes are reused, expressions are deep, and share many subexpressions, also between branches.
//!
//! Most programs have an aim: the overload of their first operator, drawn from all overloads of all operators. The operands of this first operator
//! are mostly inputs, and its result is always an output, so it is rarely optimised away. Random growth alone would miss rare overloads for hours,
//! because it favours frequent types.

mod arrays;
mod functions;
mod requests;
mod structs;
mod types;

pub(crate) use arrays::{array_program, array_rows};
pub(crate) use requests::{request_program, request_rows};

use crate::Config;
use crate::any_value;
use crate::catalogue::{Catalogue, Entry, Form, OperandChoice};
use crate::config::{chance, pick};
use crate::edit::literal;
use crate::subject::Row;
use crate::values;
use cembra_expr::{ArgumentForm, Graph, Input, NodeId, Output, Program};
use cembra_ops::{Argument, Registry, id};
use cembra_runtime::{QType, Scalar};
use cembra_value::{ScalarValue, Value};
use fastrand::Rng;
use std::collections::HashMap;
use std::sync::Arc;

/// The number of operand lists that are tried for an operator whose operand types are not known.
const TRIES: u32 = 24;

/// Returns a well-typed random program. All its inputs have types.
pub(crate) fn program(random: &mut Rng, config: &Config) -> Program {
    let mut pool = Pool::new(random, config);
    let inputs = pool.random.u32(1..=config.max_inputs.max(1));
    // There are few types, so that nodes fit together.
    for _ in 0..pool.random.u32(1..=inputs) {
        let qtype = values::input_type(pool.random, 2);
        pool.input(&qtype);
    }
    let aim = pool.aim();
    let most = config.max_operators.max(1);
    for _ in 0..pool.random.u32(1..=most).max(pool.random.u32(1..=most)) {
        pool.grow();
    }
    pool.finish(aim)
}

/// The number of programs for an operator whose operands have to be tried.
const OPEN: usize = 4;

/// Returns programs whose only operator is the operator of `entry`: one program per group of its forms (lists of
/// accepted operands), with as many inputs as possible.
pub(crate) fn alone(random: &mut Rng, config: &Config, entry: &'static Entry) -> Vec<Program> {
    let mut programs = Vec::new();
    let catalogue = Catalogue::standard();
    let inputs = |form: &&Form| form.iter().filter(|at| matches!(catalogue.choice(**at), OperandChoice::Of(_))).count();
    for form in entry.groups.iter().filter_map(|group| group.iter().max_by_key(inputs)) {
        let mut pool = Pool::new(random, config);
        let operands = pool.formed(entry, form, 1.0);
        if let Some(node) = pool.apply(entry, &operands) {
            programs.extend(pool.only(node));
        }
    }
    for _ in 0..TRIES * 4 {
        if !entry.is_open() || programs.len() >= OPEN {
            break;
        }
        let mut pool = Pool::new(random, config);
        for _ in 0..3 {
            let qtype = values::input_type(pool.random, 2);
            pool.input(&qtype);
        }
        let operands = pool.any_operands(entry);
        if let Some(node) = pool.apply(entry, &operands) {
            programs.extend(pool.only(node));
        }
    }
    programs
}

/// Returns random rows for `inputs`, the inputs of a program, in their order.
pub(crate) fn rows(random: &mut Rng, config: &Config, inputs: &[Input]) -> Vec<Row> {
    (0..config.rows.max(1))
        .map(|_| {
            let size = values::row_size(random, inputs);
            let value = |input: &Input| {
                let qtype = input.qtype.clone().unwrap_or(QType::FLOAT64);
                (input.name.clone(), any_value::sized_row_value(random, &qtype, config, size))
            };
            Row::new(inputs.iter().map(value).collect())
        })
        .collect()
}

struct Pool<'r> {
    random: &'r mut Rng,
    config: &'r Config,
    graph: Graph,
    /// The types of the program's nodes, by node index.
    types: Vec<QType>,
    depths: Vec<u32>,
    used: Vec<bool>,
    by_type: HashMap<QType, Vec<NodeId>>,
    inputs: Vec<Input>,
    /// The number of functions that are being grown, one inside of the other.
    nested: u32,
    placeholders: u32,
}

/// The depth of nodes that must not be used any more: those of a finished function.
const HIDDEN: u32 = 1 << 20;

impl<'r> Pool<'r> {
    fn new(random: &'r mut Rng, config: &'r Config) -> Pool<'r> {
        Pool {
            random,
            config,
            graph: Graph::new(),
            types: Vec::new(),
            depths: Vec::new(),
            used: Vec::new(),
            by_type: HashMap::new(),
            inputs: Vec::new(),
            nested: 0,
            placeholders: 0,
        }
    }

    /// Returns the program with this node as its only output; `None` if it is not a value at run time.
    fn only(self, node: NodeId) -> Option<Program> {
        let outputs = vec![Output { name: "y0".into(), node, span: None }];
        let is_value = self.types[node.index()].is_run_time();
        is_value.then_some(Program { graph: self.graph, inputs: self.inputs, outputs, ..Program::default() })
    }

    fn chance(&mut self, share: f64) -> bool {
        chance(self.random, share)
    }

    /// Records the type and depth of a node, unless it existed before.
    fn note(&mut self, node: NodeId, qtype: &QType, depth: u32) -> NodeId {
        if node.index() == self.types.len() {
            self.types.push(qtype.clone());
            self.depths.push(depth);
            self.used.push(false);
            self.by_type.entry(qtype.clone()).or_default().push(node);
        }
        node
    }

    fn input(&mut self, qtype: &QType) -> NodeId {
        let same: Vec<Arc<str>> =
            self.inputs.iter().filter(|i| i.qtype.as_ref() == Some(qtype)).map(|i| i.name.clone()).collect();
        let full = self.inputs.len() as u32 >= self.config.max_inputs;
        if !same.is_empty() && (full || self.random.bool()) {
            let name = pick(self.random, &same).clone();
            let leaf = self.graph.leaf(&name, None);
            return self.note(leaf, qtype, 0);
        }
        if full {
            return self.literal(qtype);
        }
        let at = self.inputs.len();
        let name: Arc<str> = match self.random.u32(..20) {
            0 => format!("odd name {at}").into(),
            1 => format!("ä{at}").into(),
            _ => format!("x{at}").into(),
        };
        self.inputs.push(Input { qtype: Some(qtype.clone()), ..Input::untyped(name.clone(), None) });
        let leaf = self.graph.leaf(&name, None);
        self.note(leaf, qtype, 0)
    }

    /// Returns a dictionary input.
    fn given_dict(&mut self, key: Scalar, value: Scalar) -> NodeId {
        let qtype = QType::Dict(key, value);
        let leaf = self.input(&qtype.as_input());
        // Operators see the input as a dictionary.
        let known = self.by_type.entry(self.types[leaf.index()].clone()).or_default();
        known.retain(|node| *node != leaf);
        self.types[leaf.index()] = qtype;
        leaf
    }

    fn literal(&mut self, qtype: &QType) -> NodeId {
        // A literal that has to be written with operators is deeper than other literals.
        if values::has_optional_structs(qtype) && self.config.max_depth > 6 && self.random.bool() {
            return self.written_struct(qtype);
        }
        let value = any_value::value(self.random, qtype, self.config);
        self.exactly(value)
    }

    fn exactly(&mut self, value: Value) -> NodeId {
        let qtype = value.qtype();
        let ranges = if let Value::Dict(dict) = &value { values::columns_of(dict) } else { None };
        match ranges {
            // There is no literal for ranges, so they are made from arrays.
            Some(columns) => {
                let columns = columns.map(|column| self.beside_pool(column));
                let name = Registry::standard().get(id::DICT_RANGES).name;
                let node = self.graph.operator(name, &columns, None);
                self.note(node, &qtype, 1)
            }
            None => {
                let node = self.graph.literal(value, None);
                self.note(node, &qtype, 0)
            }
        }
    }

    /// Returns a literal for one operator only: it is not added to the pool, so that no other operator gets it as an operand.
    fn beside_pool(&mut self, value: Value) -> NodeId {
        let qtype = value.qtype();
        let node = self.graph.literal(value, None);
        if node.index() == self.types.len() {
            self.types.push(qtype);
            self.depths.push(0);
            self.used.push(true);
        }
        node
    }

    /// Returns a node of a type: the deeper of a few existing nodes, or else a leaf or a literal.
    fn of_type(&mut self, qtype: &QType) -> NodeId {
        if self.chance(self.config.reuse)
            && let Some(nodes) = self.by_type.get(qtype)
        {
            // Unused nodes are preferred: that makes programs larger, and gives branches nodes of their own.
            let few = [(); 4].map(|()| *pick(self.random, nodes));
            let worth = |node: &&NodeId| (!self.used[node.index()], self.depths[node.index()]);
            let usable = |node: &&NodeId| self.depths[node.index()] < self.config.max_depth;
            let best = few.iter().filter(usable).max_by_key(worth).copied();
            let chosen = best.filter(|_| chance(self.random, 0.7)).unwrap_or(few[0]);
            if self.depths[chosen.index()] < self.config.max_depth {
                return chosen;
            }
        }
        if self.chance(self.config.literals) { self.literal(qtype) } else { self.input(qtype) }
    }

    /// Adds one operator, if fitting operands are found.
    fn grow(&mut self) {
        let catalogue = Catalogue::standard();
        if self.chance(self.config.functions) {
            self.grow_function();
            return;
        }
        if self.chance(self.config.structs) {
            self.grow_struct();
            return;
        }
        let entry = if self.chance(self.config.conditionals) {
            &catalogue.entries[*pick(self.random, &catalogue.conditionals)]
        } else if self.chance(self.config.structure) {
            &catalogue.entries[*pick(self.random, &catalogue.open)]
        } else {
            pick(self.random, &catalogue.entries)
        };
        if !entry.def.is_total() && !self.chance(self.config.fallible) {
            return;
        }
        if entry.is_open() {
            self.apply_to_any(entry);
            return;
        }
        let form = self.form(entry);
        let operands = self.formed(entry, form, 0.0);
        self.apply(entry, &operands);
    }

    /// Adds an operator on operands of any types; `None` if no tried operands fit the operator.
    fn apply_to_any(&mut self, entry: &Entry) -> Option<NodeId> {
        (0..TRIES).find_map(|_| {
            let operands = self.any_operands(entry);
            self.apply(entry, &operands)
        })
    }

    /// Adds the aim of the program: an operator in an overload that is drawn from all overloads of all operators.
    fn aim(&mut self) -> Option<NodeId> {
        let catalogue = Catalogue::standard();
        let (entry, group) = *pick(self.random, &catalogue.overload_groups);
        let entry = &catalogue.entries[entry];
        if !entry.def.is_total() && !self.chance(self.config.fallible) {
            return None;
        }
        let form = pick(self.random, &entry.groups[group]);
        let operands = self.formed(entry, form, 0.8);
        self.apply(entry, &operands)
    }

    /// Returns operands that fit `form`, one of the operand lists that the operator accepts. `inputs` is the share of inputs among the new operands;
    /// their values are unknown to the optimiser.
    fn formed(&mut self, entry: &Entry, form: &Form, inputs: f64) -> Vec<NodeId> {
        let catalogue = Catalogue::standard();
        form.iter()
            .zip(entry.def.params)
            .map(|(at, param)| match catalogue.choice(*at) {
                OperandChoice::Of(qtype) => {
                    let formed = match param.form {
                        ArgumentForm::Position if *qtype == QType::INT64 => self.position(),
                        form => self.text_of(form, qtype),
                    };
                    formed.unwrap_or_else(|| if self.chance(inputs) { self.input(qtype) } else { self.of_type(qtype) })
                }
                OperandChoice::Literal(value) => self.exactly(value.clone()),
            })
            .collect()
    }

    /// Returns a random operand list that the operator accepts: mostly, of a few such lists, the one for which the pool has the most operands.
    fn form(&mut self, entry: &'static Entry) -> &'static Form {
        let catalogue = Catalogue::standard();
        let group = pick(self.random, &entry.groups);
        let mut best = pick(self.random, group);
        if self.chance(0.15) {
            return best;
        }
        let mut most = 0;
        for _ in 0..8 {
            let group = pick(self.random, &entry.groups);
            let form = pick(self.random, group);
            let depth = |at: &u8| match catalogue.choice(*at) {
                OperandChoice::Of(qtype) => self
                    .by_type
                    .get(qtype)
                    .and_then(|nodes| nodes.iter().rev().take(4).map(|node| 1 + 2 * self.depths[node.index()]).max()),
                OperandChoice::Literal(_) => None,
            };
            let score: u32 = form.iter().filter_map(depth).sum();
            if score > most {
                (most, best) = (score, form);
            }
        }
        best
    }

    /// Returns a string literal that fits `form`, the rules for an argument such as a regular expression; now and then `None`, so that any string is
    /// used.
    fn text_of(&mut self, form: ArgumentForm, qtype: &QType) -> Option<NodeId> {
        let scalar = qtype.scalar().filter(|scalar| scalar.is_string() && self.random.u32(..8) > 0)?;
        let text = values::text_of(self.random, form)?;
        let value = string(scalar == Scalar::Text, text);
        Some(self.exactly(if qtype.is_optional() { Value::Present(value) } else { Value::Scalar(value) }))
    }

    /// Returns operands of any types: existing nodes, sometimes a new leaf, and small numbers as possible indices. One list in three has a single
    /// type.
    fn any_operands(&mut self, entry: &Entry) -> Vec<NodeId> {
        let takes = |form| entry.def.params.iter().any(|param| param.form == form);
        if takes(ArgumentForm::ArgumentNames) && !self.chance(0.05) {
            return self.format_operands();
        }
        if takes(ArgumentForm::Format) && entry.def.variadic && !self.chance(0.05) {
            return self.printf_operands();
        }
        if takes(ArgumentForm::FieldNames) && !self.chance(0.05) {
            let fields: Vec<NodeId> = (0..self.random.usize(..4)).map(|_| self.any_operand()).collect();
            let names = self.exactly(Value::from(&*values::FIELDS[..fields.len()].join(",")));
            return std::iter::once(names).chain(fields).collect();
        }
        let most = if self.random.u32(..4) == 0 { 10 } else { 5 };
        let count = if entry.def.variadic { self.random.usize(..most) } else { entry.def.params.len() };
        let string = *pick(self.random, &[Scalar::Text, Scalar::Bytes]);
        let alike = (self.random.u32(..3) == 0).then_some(string);
        (0..count)
            .map(|at| {
                let optional = self.random.u32(..4) == 0;
                let formed = entry.def.params.get(at).and_then(|param| {
                    let of = match param.form {
                        ArgumentForm::Position => return self.position(),
                        ArgumentForm::ArgumentNames | ArgumentForm::FieldName => Scalar::Text,
                        _ => string,
                    };
                    self.text_of(param.form, &QType::of(of, optional && of == string))
                });
                match (formed, alike) {
                    (Some(node), _) => node,
                    (None, Some(scalar)) => self.of_type(&QType::of(scalar, optional)),
                    (None, None) => self.any_operand(),
                }
            })
            .collect()
    }

    /// Returns operands for a format with names: values, their names, and a format with a field for each.
    fn format_operands(&mut self) -> Vec<NodeId> {
        let values: Vec<NodeId> = (0..self.random.usize(..4)).map(|_| self.any_operand()).collect();
        let names: Vec<String> = values.iter().enumerate().map(|(at, _)| format!("v{at}")).collect();
        let mut format = String::new();
        for (node, name) in values.iter().zip(&names) {
            let specs: &[&str] = match self.types[node.index()].scalar() {
                Some(scalar) if scalar.is_integer() => &["", ":05d", ":x", ":v", ":+4"],
                Some(scalar) if scalar.is_float() => &["", ":.2f", ":g", ":v", ":12.4e"],
                // The last one is an error if there is a value.
                _ => &["", "", ":v", ":v", ":.2f"],
            };
            let (before, spec) = (*pick(self.random, &["", "{{", "}}é", "%d"]), *pick(self.random, specs));
            format += &format!("{before}{{{name}{spec}}}");
        }
        let format = Value::Scalar(string(self.random.bool(), &format));
        let literals = [format, Value::from(&*names.join(","))].map(|value| self.exactly(value));
        literals.into_iter().chain(values).collect()
    }

    /// Returns operands for a format without names: the format, sometimes with one field too many, and values.
    fn printf_operands(&mut self) -> Vec<NodeId> {
        let values: Vec<NodeId> = (0..self.random.usize(..4)).map(|_| self.any_operand()).collect();
        let mut format = String::new();
        for node in &values {
            let fields: &[&str] = match self.types[node.index()].scalar() {
                Some(scalar) if scalar.is_integer() => &["%d", "%05x", "%v", "%+4d", "%o", "%-6X|", "%.2a", "%*d"],
                Some(scalar) if scalar.is_float() => &["%.2f", "%g", "%v", "%12.4e", "%+a", "%.3A"],
                Some(scalar) if scalar.is_string() => &["%s", "%v", "%-8s|", "%.1s"],
                _ => &["%v"],
            };
            let (before, field) = (*pick(self.random, &["", "%%", "é", "{a}"]), *pick(self.random, fields));
            format += &format!("{before}{field}");
        }
        if self.random.u32(..16) == 0 {
            format += "%d";
        }
        let format = Value::Scalar(string(self.random.u32(..3) > 0, &format));
        std::iter::once(self.exactly(format)).chain(values).collect()
    }

    /// Returns a literal that may be the position or the number of fields; now and then `None`, so that any operand is used.
    fn position(&mut self) -> Option<NodeId> {
        (self.random.u32(..8) > 0).then(|| {
            let position = i64::from(self.random.u32(..4)) - 1;
            self.exactly(Value::from(position))
        })
    }

    fn any_operand(&mut self) -> NodeId {
        match self.random.u32(..8) {
            0 => {
                let index = i64::from(self.random.u32(..3));
                self.exactly(Value::from(index))
            }
            1 => {
                let qtype = values::input_type(self.random, 2);
                self.of_type(&qtype)
            }
            2 | 3 => {
                let tuples: Vec<QType> =
                    self.types.iter().filter(|q| matches!(q, QType::Tuple(_)) && q.is_run_time()).cloned().collect();
                let qtype = if tuples.is_empty() { QType::FLOAT64 } else { pick(self.random, &tuples).clone() };
                self.of_type(&qtype)
            }
            _ => NodeId::from_index(self.random.usize(..self.types.len())),
        }
    }

    /// Adds an operator with these operands; `None` if it does not accept them or the result is too deep.
    fn apply(&mut self, entry: &Entry, operands: &[NodeId]) -> Option<NodeId> {
        let depth = 1 + operands.iter().map(|o| self.depths[o.index()]).max().unwrap_or(0);
        if depth > self.config.max_depth || !entry.def.variadic && operands.len() != entry.def.params.len() {
            return None;
        }
        let args: Vec<Argument<'_>> = operands
            .iter()
            .map(|node| Argument { qtype: &self.types[node.index()], literal: literal(&self.graph, *node) })
            .collect();
        let resolved = entry.def.resolve(&args).ok()?;
        if let Some(check) = entry.def.literals {
            check(&args).ok()?;
        }
        for operand in operands {
            self.used[operand.index()] = true;
        }
        let node = self.graph.operator(entry.def.name, operands, None);
        Some(self.note(node, &resolved.signature.ret, depth))
    }

    /// Returns the program with some nodes as outputs: the result of the aim (the operator that the program must use), and mostly deep nodes.
    fn finish(self, aim: Option<NodeId>) -> Program {
        let Pool { random, config, graph, types, depths, used, mut inputs, .. } = self;
        let mut nodes: Vec<NodeId> = (0..types.len())
            .filter(|at| types[*at].is_run_time() && depths[*at] < HIDDEN)
            .map(NodeId::from_index)
            .collect();
        random.shuffle(&mut nodes);
        let most = config.max_outputs.max(1);
        let aim = aim.filter(|_| most > 1 || random.bool());
        let output = |at: usize, node: NodeId| Output { name: format!("y{at}").into(), node, span: None };
        let mut outputs: Vec<Output> = aim.into_iter().map(|node| output(0, node)).collect();
        let others = most as usize - outputs.len();
        for at in outputs.len()..outputs.len() + random.usize(others.min(1)..=others) {
            // Mostly the deepest node, now and then the deepest of a few random ones.
            let few = if random.u32(..4) == 0 { random.usize(1..=4) } else { nodes.len() };
            let unused = |node: &&NodeId| !outputs.iter().any(|output| output.node == **node);
            let candidates = nodes.iter().filter(unused).take(few);
            let Some(node) = candidates.max_by_key(|node| (!used[node.index()], depths[node.index()])) else { break };
            outputs.push(output(at, *node));
        }
        add_defaults(&mut inputs, graph.len() as u64, config);
        Program { graph, inputs, outputs, ..Program::default() }
    }
}

/// Returns a text, or its bytes.
fn string(is_text: bool, string: &str) -> ScalarValue {
    if is_text { ScalarValue::Text(string.into()) } else { ScalarValue::Bytes(string.as_bytes().into()) }
}

/// Gives defaults to some inputs. The uses of such an input keep their types, and rows may omit its value.
fn add_defaults(inputs: &mut [Input], seed: u64, config: &Config) {
    // No other choice of the program depends on this generator.
    let mut random = Rng::with_seed(seed);
    for input in inputs {
        let Some(qtype @ QType::Scalar(scalar)) = &input.qtype else { continue };
        if *scalar != Scalar::WeakFloat && random.u32(..8) == 0 {
            input.default = any_value::value(&mut random, qtype, config).as_scalar().cloned();
            input.qtype = Some(QType::Optional(*scalar));
        }
    }
}
