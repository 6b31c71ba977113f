//! The printer: writes graphs as text that parses back to the same graph. It uses as few brackets as possible. It writes a `let` for every operator
//! node that is used more than once, and for nodes that would nest too deeply to be read back. For a node that depends on a function's parameters,
//! the `let` is inside of that function.

mod labels;
mod reached;
mod unmarked;

use super::parser::WrittenInteger;
use super::printed_test::write_tests;
use super::scope::Scopes;
use super::spelling::Spelling;
use super::types::{write_field, write_input_type};
use super::written_literal;
use super::{lexer, quoted, types};
use crate::infix::{
    AT_LABELS, COMPARISON, DECLARED, Fixity, GET_FIELD, GET_NTH, IN, IN_RANGE, IN_VALUE, LAMBDA, LOOSEST, Level,
    MAKE_NAMED, MAKE_TUPLE, METHOD, NUMBER, OPERATOR, Operation, TIGHTEST, WHERE,
};
use crate::reach::OperandConversion;
use crate::{Graph, NameId, Node, NodeId, Program, Vocabulary};
use cembra_runtime::Scalar;
use cembra_runtime::{Names as FieldNames, QType};
use cembra_value::{ScalarValue, Value};
use foldhash::fast::RandomState;
use rustc_hash::FxHashMap;
use std::collections::HashSet;
use std::fmt::Write;
use unmarked::unmarked;

/// Names from the program, hashed with a random seed.
type Names<'g> = HashSet<&'g str, RandomState>;

/// The deepest nesting of operators that is printed without a `let`. One level prints as at most two levels of brackets, so the text stays below the
/// parser's limit.
const DEEPEST: u32 = 100;

/// Prints a program. Parsing the text with the same vocabulary gives an equal program with the same tests. Used files, functions and named values
/// are replaced by their definitions. If parsing the text without a `numbers` line converts exactly the integers that `program` converts to f64,
/// the text has no such line. Otherwise it begins with `numbers f32`, and all conversions are written as calls.
#[must_use]
pub fn print(program: &Program, vocabulary: &dyn Vocabulary) -> String {
    match unmarked(program, vocabulary) {
        Some(program) => print_as_read(&program, ""),
        None => print_as_read(program, "numbers f32\n"),
    }
}

/// Prints a program after a first line, which selects the number rule for reading it.
fn print_as_read(program: &Program, head: &str) -> String {
    let roots: Vec<_> = program.outputs.iter().map(|output| output.node).collect();
    let mut taken: Names<'_> = program.inputs.iter().map(|input| &*input.name).collect();
    let has_tensors = program.inputs.iter().any(|input| matches!(input.qtype, Some(QType::Tensor(..))));
    let mut printer = Printer::new(&program.graph, &roots, has_tensors);
    printer.out.push_str(head);
    // An output that shares its name with a leaf is quoted, because a quoted output defines no name.
    taken.extend(printer.leaves.iter());
    let is_bare = |name: &str| lexer::is_plain_name(name) && !taken.contains(name);
    printer.defined.extend(program.inputs.iter().map(|input| &*input.name));
    printer.defined.extend(program.outputs.iter().map(|output| &*output.name));
    for rule in &program.tiles {
        let _never_fails = writeln!(printer.out, "{rule}");
    }
    for input in &program.inputs {
        printer.out.push_str("input ");
        printer.write_declared(&input.name, lexer::is_plain_name(&input.name));
        if let Some(qtype) = &input.qtype {
            printer.out.push_str(": ");
            write_input_type(&mut printer.out, qtype, input.promise, input.labels.as_deref(), Spelling::Text);
            if let Some(default) = input.spelled_default() {
                printer.out.push_str(" = ");
                printer.out.push_str(&default);
            }
        }
        printer.out.push('\n');
    }
    for external in &program.externs {
        let _never_fails = writeln!(printer.out, "extern fn {}{}", external.name, external.spelled_types());
    }
    printer.write_lets();
    for output in &program.outputs {
        printer.out.push_str("output ");
        printer.write_declared(&output.name, is_bare(&output.name));
        let is_named = printer.lets.get(output.node.index()).copied().flatten().is_some();
        if is_named {
            printer.out.push_str(" = ");
            printer.write(Piece::Operand(output.node, LOOSEST));
        } else {
            printer.write_definition(output.node);
        }
        printer.out.push('\n');
    }
    write_tests(&mut printer.out, &program.tests);
    printer.out
}

/// Prints one expression, after one line for each `let` that it needs. The text parses as a program, unless the expression has placeholders: those
/// print as `P.x`, which cannot be read back.
#[must_use]
pub fn print_expression(graph: &Graph, node: NodeId) -> String {
    let mut printer = Printer::new(graph, &[node], false);
    printer.write_lets();
    let start = printer.out.len();
    printer.write(Piece::Operand(node, LOOSEST));
    if start > 0 && printer.out[start..].starts_with(['-', '+']) {
        // A line that begins with an operator would continue the `let` above it.
        printer.out.insert(start - 1, ';');
    }
    printer.out
}

/// Returns true for the words `L` and `M`. Before a dot they mark the name after it as a leaf (`L.x`) or an operator (`M.math.add`).
fn is_prefix(word: &str) -> bool {
    matches!(word, "L" | "M")
}

/// The syntax for an operator.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Form {
    Operation(Operation),
    Condition,
    Tuple,
    Field,
    NamedTuple,
    NamedField,
    Lambda,
    Path,
    In,
    InRange,
    InValue,
    AtLabels,
    Method,
    Call,
}

impl Form {
    fn of(name: &str) -> Form {
        match name {
            WHERE => Form::Condition,
            MAKE_TUPLE => Form::Tuple,
            GET_NTH => Form::Field,
            MAKE_NAMED => Form::NamedTuple,
            GET_FIELD => Form::NamedField,
            LAMBDA => Form::Lambda,
            OPERATOR => Form::Path,
            IN => Form::In,
            IN_RANGE => Form::InRange,
            IN_VALUE => Form::InValue,
            AT_LABELS => Form::AtLabels,
            _ if name.strip_prefix(METHOD).is_some_and(lexer::is_word) => Form::Method,
            _ => Operation::ALL.iter().find(|o| o.name() == name).map_or(Form::Call, |o| Form::Operation(*o)),
        }
    }
}

impl Form {
    /// Returns true if this form has `operands` operands; with another number, the operator is written as a call.
    fn takes(self, operands: usize) -> bool {
        match self {
            Form::Operation(operation) => operands == 1 + usize::from(operation.fixity() != Fixity::Prefix),
            Form::Condition => operands == 3,
            _ => false,
        }
    }
}

/// A part of an expression that is still to be written. A stack of these replaces recursion.
#[derive(Clone, Copy)]
enum Piece<'g> {
    Text(&'static str),
    /// Writes the node by its name if it has a `let`; otherwise as an expression, in brackets if it binds looser than the given level.
    Operand(NodeId, Level),
    /// Writes the node as `Operand` does, but as an operand that a declared type converts.
    Reached(NodeId, Level, OperandConversion),
    /// Writes the node as an expression even if it has a name, for the right side of its `let`.
    Body(NodeId, Level),
    /// Writes the name of the `let` with this index.
    Name(u32),
    Position(i64),
    /// Writes the field `.name`.
    Field(&'g str),
    /// Writes the labels `("i,j")`.
    Labels(&'g str),
    /// Writes the method `.norm()`.
    Method(&'g str),
    /// Writes the method `.block([0, 0], [2, 3])`.
    Block(NodeId),
    /// Writes the name of the field at this position in a named tuple, and the colon after it.
    FieldName(usize, &'g str),
}

struct Printer<'g> {
    graph: &'g Graph,
    /// True if the text has a tensor type before its expressions. Only in such a text can the parser read labels after names.
    has_tensors: bool,
    out: String,
    /// The form of each name of the graph; `None` if it was not needed yet.
    forms: Vec<Option<Form>>,
    /// Operator nodes on integer literals whose result wraps around. With the operator's token they would be an error in the text, so they are
    /// written as calls.
    wrapping: HashSet<NodeId>,
    /// For each node, the number of its `let`; `None` if it has none.
    lets: Vec<Option<u32>>,
    /// The nodes with a `let`, operands first.
    named: Vec<NodeId>,
    /// The functions of the graph, and the functions that each node must be printed inside of.
    scopes: Scopes,
    /// The nodes with a `let` inside of each function.
    inner: FxHashMap<NodeId, Vec<NodeId>>,
    leaves: Names<'g>,
    /// The parameters of functions.
    parameters: Names<'g>,
    /// The names that the text defines before it calls operators.
    defined: Names<'g>,
    /// The names that are in use, so that a new `let` must have another name.
    taken: Names<'g>,
    /// The names of the `let`s, by number.
    names: Vec<String>,
    pending: Vec<Piece<'g>>,
}

impl<'g> Printer<'g> {
    /// Decides which nodes above the leaves get names.
    fn new(graph: &'g Graph, roots: &[NodeId], has_tensors: bool) -> Self {
        let mut printer = Printer {
            graph,
            has_tensors,
            out: String::new(),
            forms: vec![None; graph.name_count()],
            wrapping: HashSet::new(),
            lets: vec![None; graph.len()],
            named: Vec::new(),
            scopes: Scopes::default(),
            inner: FxHashMap::default(),
            leaves: Names::default(),
            parameters: Names::default(),
            defined: Names::default(),
            taken: Names::default(),
            names: Vec::new(),
            pending: Vec::new(),
        };
        let needed = graph.reachable(roots.iter().copied());
        printer.scopes = Scopes::new(graph, &needed);
        printer.find_wrapping(&needed);
        let mut uses = vec![0_u32; needed.len()];
        for root in roots {
            if let Some(uses) = uses.get_mut(root.index()) {
                *uses += 1;
            }
        }
        let ids = || needed.iter().enumerate().filter(|(_, needed)| **needed).map(|(i, _)| NodeId::from_index(i));
        for operand in ids().flat_map(|id| graph.operands(id)) {
            uses[operand.index()] += 1;
        }
        let must_be_named = printer.labelled(roots, &needed, &uses);
        let lists = printer.lists_of_blocks(&needed);
        let mut depths = vec![0_u32; needed.len()];
        // The nesting depth of the `let`s inside of each function.
        let mut inside: FxHashMap<NodeId, u32> = FxHashMap::default();
        for id in ids() {
            let depth = match graph.node(id) {
                Node::Leaf(name) => {
                    printer.leaves.insert(graph.name(name));
                    0
                }
                Node::Placeholder(name) => {
                    if printer.scopes.is_parameter(id) {
                        printer.parameters.insert(graph.name(name));
                    }
                    0
                }
                Node::Literal(value) => written_literal::nesting(value, DEEPEST as usize) as u32,
                Node::Operator(name, operands) => {
                    let head = graph.name(name).split('.').next().unwrap_or_default();
                    printer.taken.insert(head);
                    let operands = operands.iter().map(|operand| depths[operand.index()]);
                    1 + operands.chain(inside.get(&id).copied()).max().unwrap_or(0)
                }
            };
            // The name of an operator that is a value needs no other name.
            let shared = uses[id.index()] > 1
                && matches!(graph.node(id), Node::Operator(..))
                && !printer.is_path(id)
                && !printer.is_marked_leaf(id)
                && !lists.contains(&id);
            if shared || depth >= DEEPEST || must_be_named.contains(&id) {
                printer.lets[id.index()] = Some(printer.named.len() as u32);
                printer.named.push(id);
                if let Some(function) = printer.scopes.innermost(id) {
                    printer.inner.entry(function).or_default().push(id);
                    let deepest = inside.entry(function).or_default();
                    *deepest = depth.max(*deepest);
                }
            } else {
                depths[id.index()] = depth;
            }
        }
        printer
    }

    /// Finds the operators that must be written as calls and not with their tokens, because the parser would report an overflow of integer literals.
    fn find_wrapping(&mut self, needed: &[bool]) {
        let mut values: Vec<Option<WrittenInteger>> = vec![None; needed.len()];
        for id in needed.iter().enumerate().filter(|(_, needed)| **needed).map(|(at, _)| NodeId::from_index(at)) {
            let value = match self.graph.node(id) {
                Node::Literal(value) => Ok(WrittenInteger::of(value)),
                Node::Operator(..) if let Some((of, scalar)) = self.marked(id) => {
                    Ok(values[of.index()].filter(|_| scalar == Scalar::Int64).map(WrittenInteger::as_long))
                }
                Node::Operator(name, operands) => match (self.form(name), operands) {
                    (Form::Operation(operation), &[x]) => {
                        values[x.index()].map_or(Ok(None), |x| WrittenInteger::prefixed(operation, x).map_err(drop))
                    }
                    (Form::Operation(operation), &[x, y]) => match (values[x.index()], values[y.index()]) {
                        // A power that would be read as its value is written as a call.
                        (Some(x), Some(y)) if operation == Operation::Power => {
                            match WrittenInteger::combined(operation, x, y) {
                                Ok(Some(_)) | Err(_) => Err(()),
                                Ok(None) => Ok(None),
                            }
                        }
                        (Some(x), Some(y)) => WrittenInteger::combined(operation, x, y).map_err(drop),
                        _ => Ok(None),
                    },
                    _ => Ok(None),
                },
                _ => Ok(None),
            };
            match value {
                Ok(value) => values[id.index()] = value,
                Err(_) => {
                    self.wrapping.insert(id);
                }
            }
        }
    }

    /// Chooses names for the `let`s and writes them.
    fn write_lets(&mut self) {
        let Printer { taken, leaves, defined, parameters, .. } = self;
        taken.extend(leaves.iter().chain(defined.iter()).chain(parameters.iter()));
        let free = (0_u64..).map(|number| format!("t{number}")).filter(|name| !taken.contains(name.as_str()));
        self.names = free.take(self.named.len()).collect();
        for (index, id) in std::mem::take(&mut self.named).into_iter().enumerate() {
            if self.scopes.innermost(id).is_some() {
                continue;
            }
            self.out.push_str("let ");
            self.out.push_str(&self.names[index]);
            self.write_definition(id);
            self.out.push('\n');
        }
    }

    /// Writes the rest of a definition after its name: labels or a type, and the value.
    fn write_definition(&mut self, id: NodeId) {
        if let Some((value, labels)) = self.bound(id) {
            self.pending.extend([Piece::Operand(value, LOOSEST), Piece::Text(" = ")]);
            self.write(Piece::Labels(labels));
        } else if let Some((value, qtype)) = self.declared(id) {
            let is_named = self.lets.get(value.index()).copied().flatten().is_some();
            let bound = self.bound(value).filter(|_| !is_named);
            if let Some((_, labels)) = bound {
                self.write(Piece::Labels(labels));
            }
            self.out.push_str(": ");
            Spelling::Text.write_type(&mut self.out, qtype);
            self.out.push_str(" = ");
            let value = bound.map_or(value, |(value, _)| value);
            // If the declared type does not pass through the value, the value itself is marked.
            let passes = |reach: &OperandConversion| bound.is_none() && self.passed_by(value, *reach).is_some();
            self.write(match OperandConversion::of(qtype).filter(passes) {
                Some(reach) => Piece::Reached(value, LOOSEST, reach),
                None => Piece::Operand(value, LOOSEST),
            });
        } else {
            self.out.push_str(" = ");
            self.write(Piece::Body(id, LOOSEST));
        }
    }

    fn write_declared(&mut self, name: &str, bare: bool) {
        if bare {
            self.out.push_str(name);
        } else {
            let _never_fails = quoted::write(&mut self.out, name);
        }
    }

    /// Returns the value and the declared type of a `DECLARED` node; `None` for other nodes.
    fn declared(&self, id: NodeId) -> Option<(NodeId, &'g QType)> {
        let Node::Operator(name, &[value, qtype]) = self.graph.node(id) else { return None };
        let Node::Literal(Value::Type(qtype)) = self.graph.node(qtype) else { return None };
        let is_it = **self.graph.name(name) == *DECLARED && qtype.is_declarable();
        let reads_back = |reach| self.bound(value).is_some() || self.is_as_reached(value, reach);
        (is_it && OperandConversion::of(qtype).is_none_or(reads_back)).then_some((value, qtype))
    }

    fn form(&mut self, name: NameId) -> Form {
        let Printer { forms, graph, .. } = self;
        *forms[name.index()].get_or_insert_with(|| Form::of(graph.name(name)))
    }

    fn write(&mut self, piece: Piece<'g>) {
        self.pending.push(piece);
        while let Some(piece) = self.pending.pop() {
            match piece {
                Piece::Text(text) => self.out.push_str(text),
                Piece::Position(position) => {
                    let _never_fails = write!(self.out, ".{position}");
                }
                Piece::Field(name) => {
                    self.out.push('.');
                    self.out.push_str(name);
                }
                Piece::Labels(labels) => {
                    self.out.push('(');
                    let _never_fails = quoted::write(&mut self.out, labels);
                    self.out.push(')');
                }
                Piece::Method(name) => {
                    let _never_fails = write!(self.out, ".{name}()");
                }
                Piece::Block(id) => self.write_block(id),
                Piece::FieldName(index, name) => write_field(&mut self.out, index, name),
                Piece::Operand(id, level) => match self.lets.get(id.index()).copied().flatten() {
                    Some(number) => self.out.push_str(&self.names[number as usize]),
                    None => self.write_body(id, level),
                },
                Piece::Reached(id, level, reach) => match (self.unmarked(id, reach), self.passed_by(id, reach)) {
                    (Some(of), _) => self.pending.push(Piece::Operand(of, level)),
                    (None, None) => self.pending.push(Piece::Operand(id, level)),
                    (None, Some(_)) => self.write_passed(id, level, reach),
                },
                Piece::Body(id, level) => self.write_body(id, level),
                Piece::Name(number) => self.out.push_str(&self.names[number as usize]),
            }
        }
    }

    fn write_body(&mut self, id: NodeId, level: Level) {
        match self.graph.node(id) {
            Node::Leaf(name) => self.write_leaf(name),
            Node::Placeholder(name) => {
                if !self.scopes.is_parameter(id) {
                    self.out.push_str("P.");
                }
                self.out.push_str(self.graph.name(name));
            }
            Node::Literal(value) => {
                let brackets = written_literal::level(value) < level;
                self.out.push_str(if brackets { "(" } else { "" });
                let _never_fails = written_literal::write_value(&mut self.out, value, Spelling::Text);
                self.out.push_str(if brackets { ")" } else { "" });
            }
            Node::Operator(name, operands) => self.write_operator(id, name, operands, level),
        }
    }

    fn write_leaf(&mut self, name: NameId) {
        let name = self.graph.name(name);
        if lexer::is_plain_name(name) {
            if self.parameters.contains(&**name) {
                self.out.push_str("L.");
            }
            self.out.push_str(name);
        } else {
            self.out.push_str("L[");
            let _never_fails = quoted::write(&mut self.out, name);
            self.out.push(']');
        }
    }

    /// Writes the text of an operator before its first operand, and pushes the remaining pieces, the last one first.
    fn write_operator(&mut self, id: NodeId, name: NameId, operands: &'g [NodeId], level: Level) {
        let form = if self.wrapping.contains(&id) { Form::Call } else { self.form(name) };
        match (form, operands) {
            (Form::Operation(operation), &[operand]) if operation.fixity() == Fixity::Prefix => {
                let level = self.open(operation.level(), level);
                self.out.push_str(operation.text());
                if operation == Operation::Not {
                    self.out.push(' ');
                }
                self.pending.extend(level);
                self.pending.push(Piece::Operand(operand, self.prefix_operand_level(operation, operand)));
            }
            (Form::Operation(operation), &[left, right]) if operation.fixity() != Fixity::Prefix => {
                let level = self.open(operation.level(), level);
                self.pending.extend(level);
                self.pending.push(Piece::Operand(right, operation.right_level()));
                self.pending.push(Piece::Text(" "));
                self.pending.push(Piece::Text(operation.text()));
                self.pending.push(Piece::Text(" "));
                self.pending.push(Piece::Operand(left, operation.left_level()));
            }
            (Form::Condition, &[condition, value, other]) => {
                let level = self.open(LOOSEST, level);
                self.out.push_str("if ");
                self.pending.extend(level);
                if !matches!(self.graph.node(other), Node::Literal(Value::Nothing)) {
                    self.pending.push(Piece::Operand(other, LOOSEST));
                    self.pending.push(Piece::Text(" else "));
                }
                // A condition inside of the first two parts would take the `else`, so it gets brackets.
                self.pending.push(Piece::Operand(value, LOOSEST + 1));
                self.pending.push(Piece::Text(" then "));
                self.pending.push(Piece::Operand(condition, LOOSEST + 1));
            }
            (Form::Tuple, _) => self.write_list("(", operands, if operands.len() == 1 { ",)" } else { ")" }),
            (Form::Field, &[of, position]) if self.position(position).is_some() => {
                self.pending.extend(self.position(position).map(Piece::Position));
                self.pending.push(Piece::Operand(of, TIGHTEST));
            }
            // Always in brackets, because an `in` would end the value of a local name.
            (Form::In, &[x, ref elements @ ..]) => {
                self.out.push('(');
                self.pending.push(Piece::Text(")"));
                self.list(elements, "]");
                self.pending.push(Piece::Text(" in ["));
                self.pending.push(Piece::Operand(x, COMPARISON + 1));
            }
            (Form::InRange, &[x, from, to]) => {
                self.out.push('(');
                self.pending.push(Piece::Text(")"));
                self.pending.push(Piece::Operand(to, COMPARISON + 1));
                self.pending.push(Piece::Text(".."));
                self.pending.push(Piece::Operand(from, COMPARISON + 1));
                self.pending.push(Piece::Text(" in "));
                self.pending.push(Piece::Operand(x, COMPARISON + 1));
            }
            (Form::InValue, &[x, value]) => {
                self.out.push('(');
                self.pending.push(Piece::Text(")"));
                self.pending.push(Piece::Operand(value, COMPARISON + 1));
                self.pending.push(Piece::Text(" in "));
                self.pending.push(Piece::Operand(x, COMPARISON + 1));
            }
            (Form::AtLabels, &[of, labels]) if self.takes_labels(of) && self.text(labels).is_some() => {
                self.write_labelled(of, labels);
            }
            (Form::Method, &[of]) if self.has_tensors => {
                self.pending.extend(self.graph.name(name).strip_prefix(METHOD).map(Piece::Method));
                self.write_enclosed(of);
            }
            (Form::Lambda, &[body, ref parameters @ ..]) if self.scopes.is_function(id) => {
                let level = self.open(LOOSEST, level);
                self.out.push_str("fn(");
                self.pending.extend(level);
                self.pending.push(Piece::Operand(body, LOOSEST));
                for named in self.inner.get(&id).into_iter().flatten().rev() {
                    self.pending.push(Piece::Text(" in "));
                    self.pending.push(Piece::Body(*named, LOOSEST));
                    self.pending.push(Piece::Text(" = "));
                    self.pending.extend(self.lets[named.index()].map(Piece::Name));
                    self.pending.push(Piece::Text("let "));
                }
                self.write_list("", parameters, ") = ");
            }
            (Form::Path, &[path]) if self.path(path).is_some() => {
                let path = self.path(path).unwrap_or_default();
                if !path.contains('.') || self.means_something_else(path) {
                    self.out.push_str("M.");
                }
                self.out.push_str(path);
            }
            (Form::NamedTuple, &[names, ref fields @ ..]) if self.field_names(names, fields.len()).is_some() => {
                self.out.push('{');
                self.pending.push(Piece::Text("}"));
                let names = self.field_names(names, fields.len()).unwrap_or_default();
                for (index, (name, field)) in names.into_iter().zip(fields).enumerate().rev() {
                    self.pending.push(Piece::Operand(*field, LOOSEST));
                    self.pending.push(Piece::FieldName(index, name));
                }
            }
            (Form::NamedField, &[of, name]) if self.field_name(name).is_some() => {
                self.pending.extend(self.field_name(name).map(Piece::Field));
                self.write_named_of(of);
            }
            _ => {
                let path = self.graph.name(name);
                if self.means_something_else(path) {
                    self.out.push_str("M.");
                }
                self.out.push_str(path);
                self.write_list("(", operands, ")");
            }
        }
    }

    /// Returns true if the path of an operator would be read as something else: its head is defined in the text, or reserved.
    fn means_something_else(&self, path: &str) -> bool {
        let head = path.split('.').next().unwrap_or_default();
        match head {
            _ if is_prefix(head) => true,
            _ if lexer::is_plain_name(head) => {
                self.defined.contains(head) || self.leaves.contains(head) || self.parameters.contains(head)
            }
            // The name of a type may begin a path, but is not an operator by itself.
            _ => head == path || !types::is_reserved(head),
        }
    }

    /// Writes an opening bracket if the form binds looser than required. Returns the piece that closes it.
    fn open(&mut self, binds: Level, must: Level) -> Option<Piece<'g>> {
        if binds >= must {
            return None;
        }
        self.out.push('(');
        Some(Piece::Text(")"))
    }

    /// Returns the level for the operand of a prefix operator. A minus before a bare number would become part of the number.
    fn prefix_operand_level(&self, operation: Operation, operand: NodeId) -> Level {
        // A mark that is not written leaves the number bare.
        let operand = self.marked(operand).map_or(operand, |(of, _)| of);
        match self.graph.node(operand) {
            Node::Literal(value) if operation == Operation::Negate && written_literal::level(value) <= NUMBER => {
                TIGHTEST
            }
            _ => operation.right_level(),
        }
    }

    /// Returns the position of a field if `.0` can express it; `None` otherwise.
    fn position(&self, position: NodeId) -> Option<i64> {
        match self.graph.node(position) {
            Node::Literal(Value::Scalar(ScalarValue::Int64(at))) if *at >= 0 => Some(*at),
            _ => None,
        }
    }

    /// Writes the operand of a named field. After an undefined name, `.name` would be read as part of an operator's path.
    fn write_named_of(&mut self, of: NodeId) {
        let bracket = |printer: &mut Self| {
            printer.out.push('(');
            printer.pending.extend([Piece::Text(")"), Piece::Operand(of, LOOSEST)]);
        };
        match self.graph.node(of) {
            Node::Leaf(name) => {
                let name = self.graph.name(name);
                let bare = self.defined.contains(&**name) && !is_prefix(name);
                // A parameter of the same name causes the prefix `L.` anyway.
                if lexer::is_plain_name(name) && !bare && !self.parameters.contains(&**name) {
                    self.out.push_str("L.");
                }
                self.pending.push(Piece::Operand(of, TIGHTEST));
            }
            Node::Operator(..) if self.is_path(of) => bracket(self),
            Node::Placeholder(name) if is_prefix(self.graph.name(name)) => bracket(self),
            _ => self.pending.push(Piece::Operand(of, TIGHTEST)),
        }
    }

    /// Returns the text of a text literal; `None` for other nodes.
    fn text(&self, id: NodeId) -> Option<&'g str> {
        match self.graph.node(id) {
            Node::Literal(Value::Scalar(ScalarValue::Text(text))) => Some(text),
            _ => None,
        }
    }

    /// Returns the name of an operator that is a value, if a path can express it; `None` otherwise.
    fn path(&self, name: NodeId) -> Option<&'g str> {
        self.text(name).filter(|name| name.split('.').all(lexer::is_word))
    }

    /// Returns true for an operator that is a value and prints as its name.
    fn is_path(&self, id: NodeId) -> bool {
        match self.graph.node(id) {
            Node::Operator(name, &[path]) => **self.graph.name(name) == *OPERATOR && self.path(path).is_some(),
            _ => false,
        }
    }

    /// Returns the names of a named tuple of `count` fields, if its syntax can express them; `None` otherwise.
    fn field_names(&self, names: NodeId, count: usize) -> Option<Vec<&'g str>> {
        let text = self.text(names)?;
        let known = FieldNames::parse(text).ok().filter(|names| names.len() == count && *names.joined() == *text)?;
        Some(text.split(',').take(known.len()).collect())
    }

    /// Returns the name of a field, if `.name` can express it; `None` otherwise.
    fn field_name(&self, name: NodeId) -> Option<&'g str> {
        self.text(name).filter(|name| lexer::is_word(name))
    }

    fn write_list(&mut self, open: &'static str, operands: &[NodeId], close: &'static str) {
        self.out.push_str(open);
        self.list(operands, close);
    }

    /// Pushes the operands and the closing bracket as pieces.
    fn list(&mut self, operands: &[NodeId], close: &'static str) {
        self.pending.push(Piece::Text(close));
        for (index, operand) in operands.iter().enumerate().rev() {
            self.pending.push(Piece::Operand(*operand, LOOSEST));
            if index > 0 {
                self.pending.push(Piece::Text(", "));
            }
        }
    }
}
