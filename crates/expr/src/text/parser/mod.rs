//! The parser: statements and names. Expressions, calls and functions have their own files. After an error, parsing continues at the next
//! statement, so that one run reports several errors. An expression with an error has no node. An expression that contains it has no node either,
//! so no error is reported twice.

mod assignment;
mod block;
mod call;
mod chained;
mod constant;
mod declared;
mod expression;
mod external;
mod function;
mod index;
mod input;
mod labels;
mod lambda;
mod membership;
mod method;
mod numbers;
mod reach;
mod signature;
pub(super) mod table;
mod test;
mod tile;
mod used;

pub(super) use constant::WrittenInteger;
pub(super) use external::EXTERN;
pub(super) use lambda::IN;
pub(super) use numbers::NUMBERS;
pub(super) use test::{TEST, begins_table};
pub(crate) use tile::InputType;
pub(super) use tile::{TILE, TILED};

use super::cursor::{Cursor, Stop};
use super::gradient::Gradients;
use super::numbers::NodeKinds;
use super::sources::{Sources, USE};
use super::token::{Token, TokenKind};
use crate::definitions::DefinitionId;
use crate::infix::Operation;
use crate::model_test::ModelTest;
use crate::name_index::{NameIndex, NameKind};
use crate::program::Output;
use crate::{Callable, Defines, Graph, NameId, NodeId, PartialProgram, Program, Vocabulary};
use call::{Callee, Keyword};
use cembra_value::{Code, Diagnostic, Diagnostics, Limit, Limits, Span, Value};
use expression::{Frame, Operand};
use foldhash::fast::RandomState;
use function::Function;
use numbers::FileRule;
use reach::StatementRecord;
use rustc_hash::{FxHashMap, FxHashSet};
use std::borrow::Cow;
use std::collections::HashMap;
use table::TABLE;
use used::Files;

/// Words that are keywords only at certain places, and names everywhere else.
pub const POSITIONAL_WORDS: &[&str] =
    &[IN, TEST, test::WITHIN, test::ERROR, TABLE, USE, EXTERN, NUMBERS, TILE, TILED, cembra_runtime::DICT_WORD];

/// The name of the output of a text that is a bare expression.
const BARE_OUTPUT: &str = "result";

/// The most nodes for which memory is reserved before the text is read.
const MOST_ROOM: usize = 1 << 18;

/// The most nodes for which the set [`Parser::open`] keeps its memory from one statement to the next.
const KEPT_ROOM: usize = 1 << 12;

/// The meaning of a name after its definition.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Meaning {
    /// The name is a declared input.
    Input(NodeId),
    /// The name is a `let` or an output; `None` if its definition has an error.
    Value(Option<NodeId>),
    /// The name is a function, given by its index.
    Function(u32),
    /// The name is not defined yet, but was used as a leaf.
    Leaf(NodeId),
}

/// A name that the text defines or uses as a leaf: its meaning, and the span of its definition.
#[derive(Clone, Copy, Debug)]
struct Symbol {
    meaning: Meaning,
    /// The span of the name's definition; for a leaf, the span of its first use.
    span: Span,
    /// The name's entry in the program's definitions; `None` for inputs and leaves.
    definition: Option<DefinitionId>,
}

/// A parameter, or a name inside of an expression.
#[derive(Clone, Copy, Debug)]
struct Local {
    /// The node of the local name's value; `None` if the value has an error.
    node: Option<NodeId>,
    /// The place where the name is defined.
    span: Span,
    /// The name's entry in the program's definitions; `None` for parameters.
    definition: Option<DefinitionId>,
}

/// A map with keys from the text, hashed with a random seed, so that no text can be written to cause many collisions.
type NameMap<K, V> = HashMap<K, V, RandomState>;

/// The parser of a model's texts.
pub(super) struct Parser<'s, 'v> {
    cursor: Cursor<'s>,
    files: Files<'s>,
    /// The number rule of the current file.
    rule: FileRule,
    /// The kinds of the nodes so far, which the number rule needs.
    known: NodeKinds,
    vocabulary: &'v dyn Vocabulary,
    program: Program,
    symbols: NameMap<&'s str, Symbol>,
    /// The parameters and local names of the current statement.
    locals: NameMap<&'s str, Local>,
    /// The meanings of names that a local name or parameter hides at present, the innermost last.
    shadowed: Vec<(&'s str, Option<Local>)>,
    /// The nodes of the current statement that contain parameters.
    open: FxHashSet<NodeId>,
    /// The name of each parameter in the text; its name in the graph may have a number appended.
    parameter_names: FxHashMap<NodeId, &'s str>,
    functions: Vec<Function<'s>>,
    /// The declared operators of the host by name: for each, the index of the function that stands for it, and the operator's index in the program.
    externs: NameMap<String, [usize; 2]>,
    operators: Vec<(Callable<'v>, NameId)>,
    /// The meanings of the paths that were called so far.
    callees: NameMap<Cow<'s, str>, Callee>,
    operation_names: [Option<NameId>; Operation::ALL.len()],
    declared: FxHashMap<NodeId, Span>,
    output_names: NameMap<Cow<'s, str>, Span>,
    /// The outputs that assignments define, by name: the index of each output; `None` if its value has an error.
    assigned: NameMap<&'s str, Option<usize>>,
    /// The span of the expression that is a statement of its own, and so the output; `None` if there was none yet.
    bare: Option<Span>,
    /// The labels that were cut into tiles, with the place of each.
    cut_labels: NameMap<&'s str, Span>,
    tests: Vec<ModelTest>,
    /// The index of names; `None` if it was not requested.
    index: Option<Box<NameIndex>>,
    literal_bytes: usize,
    instantiation: usize,
    gradients: Gradients,
    /// The results of calls of functions whose bodies contain functions, by function and arguments. Because of them, equal calls share one node and
    /// its inner parameters.
    instances: NameMap<(usize, Vec<NodeId>), NodeId>,
    // The stacks of the current expression, and the operands of the current call.
    operands: Vec<Operand>,
    frames: Vec<Frame>,
    keywords: Vec<Keyword<'s>>,
    field_names: Vec<(Cow<'s, str>, Span)>,
    arguments: Vec<NodeId>,
    lambda_parameters: Vec<NodeId>,
    /// The operators of the current statement whose operands the statement's declared type may convert.
    noted: StatementRecord,
}

impl<'s, 'v> Parser<'s, 'v> {
    pub(super) fn new(source: &'s str, vocabulary: &'v dyn Vocabulary, limits: &Limits) -> Self {
        Parser::with(source.len(), Cursor::new(source, limits), vocabulary, limits)
    }

    /// Returns a parser for a model's text and the files that it uses.
    pub(super) fn of_sources(sources: &'s Sources, vocabulary: &'v dyn Vocabulary, limits: &Limits) -> Self {
        let cursor = Cursor::of_file(sources, 0, limits);
        let mut parser = Parser::with(sources.end(), cursor, vocabulary, limits);
        for problem in &sources.problems {
            parser.cursor.report(problem.clone());
        }
        parser.files = Files::of(sources);
        parser
    }

    fn with(source_bytes: usize, mut cursor: Cursor<'s>, vocabulary: &'v dyn Vocabulary, limits: &Limits) -> Self {
        cursor.start_clock();
        // The typical number of bytes per node in a formula. Texts with many names or strings have more.
        let nodes = (source_bytes / 8).min(MOST_ROOM).min(limits.nodes);
        Parser {
            cursor,
            files: Files::default(),
            rule: FileRule::default(),
            known: NodeKinds::default(),
            vocabulary,
            program: Program { graph: Graph::with_capacity(nodes), ..Program::default() },
            symbols: NameMap::default(),
            locals: NameMap::default(),
            shadowed: Vec::new(),
            open: FxHashSet::default(),
            parameter_names: FxHashMap::default(),
            instances: NameMap::default(),
            functions: Vec::new(),
            externs: NameMap::default(),
            operators: Vec::new(),
            callees: NameMap::default(),
            operation_names: [None; Operation::ALL.len()],
            declared: FxHashMap::default(),
            output_names: NameMap::default(),
            assigned: NameMap::default(),
            bare: None,
            cut_labels: NameMap::default(),
            tests: Vec::new(),
            index: None,
            literal_bytes: 0,
            instantiation: 0,
            gradients: Gradients::default(),
            operands: Vec::new(),
            frames: Vec::new(),
            keywords: Vec::new(),
            field_names: Vec::new(),
            arguments: Vec::new(),
            lambda_parameters: Vec::new(),
            noted: StatementRecord::default(),
        }
    }

    /// Parses the whole text.
    pub(super) fn run(mut self) -> Result<Program, Diagnostics> {
        let problems = self.read();
        Diagnostics::check(problems)?;
        Ok(self.program)
    }

    /// Parses as much of the text as possible, and records the spans of names.
    pub(super) fn run_partially(mut self) -> PartialProgram {
        self.index = Some(Box::default());
        let problems = self.read();
        let mut names = *self.index.unwrap_or_default();
        names.finish();
        PartialProgram { program: self.program, problems, names }
    }

    /// Checks the syntax of all statements. Undefined names and literals of a wrong type are not reported.
    pub(super) fn check_syntax(mut self) -> Result<(), Diagnostics> {
        self.cursor.only_syntax = true;
        self.statements();
        Diagnostics::check(self.problems())
    }

    /// Parses the whole text. Returns its problems.
    fn read(&mut self) -> Vec<Diagnostic> {
        self.statements();
        if self.program.outputs.is_empty() && self.cursor.problems.is_empty() {
            let problem = Diagnostic::new(Code::NoOutput, "the model has no output");
            self.cursor.report(problem.hint("write `output name = expression`"));
        }
        self.program.tests = std::mem::take(&mut self.tests).into();
        let declared = self.program.inputs.len();
        self.program.definitions.set_declared_inputs(declared);
        self.program.add_undeclared_inputs();
        self.program.graph.give_back_room();
        self.problems()
    }

    /// Returns the problems found so far, in the order of the text.
    fn problems(&mut self) -> Vec<Diagnostic> {
        let mut problems = std::mem::take(&mut self.cursor.problems);
        problems.sort_by_key(|problem| problem.span().map_or(0, |span| span.start));
        problems
    }

    fn statements(&mut self) {
        while !self.cursor.given_up {
            if self.cursor.token.kind == TokenKind::End {
                if self.close_file() {
                    continue;
                }
                break;
            }
            if self.cursor.take(TokenKind::Semicolon) {
                continue;
            }
            let start = self.cursor.token.span.start;
            self.cursor.surface();
            let read = self.statement().and_then(|()| self.end_of_statement());
            self.report_overflows();
            if read == Err(Stop) {
                self.skip_statement(start);
            }
            if let Some(index) = &mut self.index {
                let end = self.cursor.previous.end.max(start);
                index.end_statement(Span::new(start, end), self.cursor.token.span.start.max(end));
            }
            self.open_next_file();
        }
    }

    fn statement(&mut self) -> Result<(), Stop> {
        let is_test = self.at_word_before(TEST, TokenKind::Text);
        if let Some(bare) = self.bare.filter(|_| self.bare != Some(Span::default()) && !is_test) {
            // The problem is reported once: an empty span marks a bare expression that was reported.
            self.bare = Some(Span::default());
            self.cursor.report(bare_not_last(bare));
        }
        self.locals.clear();
        self.open.clear();
        // Clearing a large set takes time proportional to its capacity, for each later statement.
        self.open.shrink_to(KEPT_ROOM);
        self.noted.clear();
        if self.at_word_before(NUMBERS, TokenKind::Type) {
            return self.numbers();
        }
        self.rule.begun = true;
        if let Some(assign) = self.assignment_ahead() {
            return self.only_definitions("outputs").and_then(|()| self.assignment(assign));
        }
        if let Some(block) = self.assigned_block_ahead() {
            let problem = Diagnostic::new(Code::Syntax, "a block of a tensor cannot be assigned to").at(block);
            let problem =
                problem.hint("assign to the whole tensor; in Rust, use `Tiled::with_block` to replace a block");
            return Err(self.cursor.stop(problem));
        }
        match self.cursor.token.kind {
            TokenKind::Input => self.only_definitions("inputs").and_then(|()| self.input()),
            TokenKind::Let => self.definition(),
            // A function without a name is a value.
            TokenKind::Fn if self.cursor.peek().kind != TokenKind::OpenRound => self.function(),
            TokenKind::Output => self.only_definitions("outputs").and_then(|()| self.output()),
            _ if is_test => self.only_definitions("tests").and_then(|()| self.test()),
            TokenKind::Word if self.at_word_before(USE, TokenKind::Text) => self.use_file(),
            TokenKind::Word if self.at_word_before(TABLE, TokenKind::Word) => self.named_table(),
            TokenKind::Word if self.at_word_before(EXTERN, TokenKind::Fn) => self.external(),
            TokenKind::Word if self.at_word_before(TILE, TokenKind::Word) => {
                self.only_definitions("cuts of labels").and_then(|()| self.tile())
            }
            _ => self.only_definitions("expressions by themselves").and_then(|()| self.bare_expression()),
        }
    }

    fn end_of_statement(&mut self) -> Result<(), Stop> {
        let Token { kind, span, .. } = self.cursor.token;
        if matches!(kind, TokenKind::End | TokenKind::Semicolon) || self.cursor.at_line_end() {
            return Ok(());
        }
        Err(match kind {
            TokenKind::CloseRound | TokenKind::CloseSquare | TokenKind::CloseCurly => {
                self.cursor.stop(Diagnostic::new(Code::Bracket, "this bracket closes nothing").at(span))
            }
            _ if kind.begins_statement() => self.cursor.stop(
                Diagnostic::new(Code::Syntax, "a statement must begin on its own line")
                    .at(span)
                    .hint("write the statement on a new line, or after a `;`"),
            ),
            TokenKind::Comma => self.cursor.stop(
                Diagnostic::new(Code::Syntax, "expected an operator or the end of the statement, found `,`")
                    .at(span)
                    .hint("write a tuple in brackets: `(a, b)`"),
            ),
            _ => self.cursor.unexpected("an operator or the end of the statement"),
        })
    }

    /// Skips to the beginning of the next statement, at least one token after `start`.
    fn skip_statement(&mut self, start: u32) {
        let mut depth = self.cursor.brackets;
        while self.cursor.token.kind != TokenKind::End {
            let Token { kind, first_on_line, span } = self.cursor.token;
            let word_of_path = self.cursor.previous_kind == TokenKind::Dot;
            let ends = kind == TokenKind::Semicolon
                || (kind.begins_statement() && !word_of_path)
                || (first_on_line && depth == 0 && Operation::infix(kind).is_none());
            if ends && span.start > start {
                return;
            }
            depth = kind.depth_behind(depth);
            self.cursor.advance();
        }
    }

    /// Reads `let name: type = expression`.
    fn definition(&mut self) -> Result<(), Stop> {
        self.cursor.advance();
        let (name, span) = self.new_name()?;
        let value = self.defined_value();
        // Even an erroneous definition defines the name. Otherwise every use would be an error too.
        let (node, labels) = value.as_ref().map_or((None, None), |(value, labels)| (value.node, *labels));
        self.define(name, span, Meaning::Value(node), Some(Defines::Let));
        self.note_labels(labels);
        value.map(drop)
    }

    /// Reads `output name: type = expression`.
    fn output(&mut self) -> Result<(), Stop> {
        self.cursor.advance();
        let name = self.declared_name(|word| format!("write the name in quotes: `output \"{word}\" = ..`"))?;
        let value = self.defined_value();
        let (node, labels) = value.as_ref().map_or((None, None), |(value, labels)| (value.node, *labels));
        if let Some(first) = self.output_names.get(&name.text) {
            let message = format!("the output `{}` is defined twice", name.text);
            let problem = Diagnostic::new(Code::Name, message).at(name.span).also(*first, "first defined here");
            self.cursor.report(match self.assigned.contains_key(&*name.text) {
                true => problem
                    .hint("leave this statement out: a line that assigns to the name already makes an output of it"),
                false => problem,
            });
            return value.map(drop);
        }
        self.output_names.insert(name.text.clone(), name.span);
        self.note_name(NameKind::Output, name.span, node);
        self.note_labels(labels);
        if let Some(word) = name.word {
            // `output d = d` only exports a value that is already defined.
            let known = self.symbols.get(word).map(|symbol| symbol.meaning);
            if node.is_none() || known != Some(Meaning::Value(node)) {
                self.define(word, name.span, Meaning::Value(node), Some(Defines::Output));
            }
        }
        if let Some(node) = node {
            self.program.outputs.push(Output { name: (*name.text).into(), node, span: Some(name.span) });
        }
        value.map(drop)
    }

    fn bare_expression(&mut self) -> Result<(), Stop> {
        let value = self.expression()?;
        if !self.program.outputs.is_empty() && self.bare.is_none() {
            let problem = Diagnostic::new(Code::Syntax, "only one expression can stand by itself as the output");
            self.cursor.report(problem.at(value.span).hint("write `output name = ..` or `let name = ..`"));
            return Ok(());
        }
        self.bare = self.bare.or(Some(value.span));
        if let Some(node) = value.node {
            self.program.outputs.push(Output { name: BARE_OUTPUT.into(), node, span: Some(value.span) });
        }
        Ok(())
    }

    /// Reads `("labels"): type = expression` with optional labels and type. Returns the value, and the place of its labels.
    fn defined_value(&mut self) -> Result<(Operand, Option<Span>), Stop> {
        let labels = self.defined_labels()?;
        let declared = self.declared_type()?;
        let value = self.defining_expression()?;
        let value = self.as_labelled(value, labels)?;
        Ok((self.as_declared(value, declared)?, labels.map(|labels| labels.span)))
    }

    /// Reads `= expression`.
    fn defining_expression(&mut self) -> Result<Operand, Stop> {
        self.cursor.require(TokenKind::Equals, "`=`")?;
        self.expression()
    }

    /// Reads a name that is being defined.
    fn new_name(&mut self) -> Result<(&'s str, Span), Stop> {
        self.plain_name(|word| format!("write another name, as `{word}_1`"))
    }

    /// Reads a name. `hint` returns the hint for a reserved word in place of the name.
    fn plain_name(&mut self, hint: impl FnOnce(&str) -> String) -> Result<(&'s str, Span), Stop> {
        let Token { kind, span, first_on_line } = self.cursor.token;
        match kind {
            TokenKind::Word => {
                self.cursor.advance();
                Ok((self.cursor.text(span), span))
            }
            _ if kind.is_word() && !(kind.begins_statement() && first_on_line) => {
                let word = self.cursor.text(span);
                let message = format!("`{word}` is a word of the language and cannot be a name");
                let problem = Diagnostic::new(Code::Name, message).at(span);
                Err(self.cursor.stop(problem.hint(hint(word))))
            }
            _ => Err(self.cursor.unexpected("a name")),
        }
    }

    /// Reads the name of an input or output, which may be quoted. `hint` returns the hint for an unquoted reserved word.
    fn declared_name(&mut self, hint: impl FnOnce(&str) -> String) -> Result<DeclaredName<'s>, Stop> {
        if self.cursor.token.kind == TokenKind::Text {
            let span = self.cursor.token.span;
            return Ok(DeclaredName { text: self.quoted_name()?, word: None, span });
        }
        let (word, span) = self.plain_name(hint)?;
        Ok(DeclaredName { text: word.into(), word: Some(word), span })
    }

    /// Reads a quoted name.
    fn quoted_name(&mut self) -> Result<Cow<'s, str>, Stop> {
        let span = self.cursor.advance().span;
        self.cursor.check_name(span);
        super::quoted::decode(self.cursor.text(span), span).map_err(|fault| self.cursor.stop(fault.diagnostic()))
    }

    /// Gives a name its meaning, after its whole definition was read.
    fn define(&mut self, name: &'s str, span: Span, meaning: Meaning, defines: Option<Defines>) {
        if let (Some(Defines::Let), Meaning::Value(node)) = (defines, meaning) {
            self.note_name(NameKind::Let, span, node);
        }
        match self.symbols.get(name) {
            Some(Symbol { meaning: Meaning::Leaf(_), span: used, .. }) => {
                let problem = used_before_definition(name, *used, span);
                self.cursor.report(problem);
            }
            Some(Symbol { meaning: first, span: defined, .. }) => {
                let problem = Diagnostic::new(Code::Name, format!("`{name}` is defined twice"))
                    .at(span)
                    .also(*defined, "first defined here");
                self.cursor.report(match first {
                    Meaning::Input(_) => {
                        problem.hint(format!("write `output \"{name}\"` for an output with this name"))
                    }
                    _ => problem,
                });
                return;
            }
            None => {}
        }
        self.note_callee_defined(name, span);
        let end = self.cursor.previous.end;
        let definition = defines.map(|defines| self.program.definitions.push(defines, name, span, end));
        if self.files.is_inside() {
            // A file need not be used completely.
            self.note_use(definition);
        }
        self.symbols.insert(name, Symbol { meaning, span, definition });
    }

    /// Makes a literal node.
    fn literal(&mut self, value: Value, span: Span) -> Result<NodeId, Stop> {
        self.literal_bytes += literal_bytes(&value);
        if self.literal_bytes > self.cursor.limits().literal_bytes {
            return Err(self.cursor.limit(Limit::LiteralBytes, Some(span)));
        }
        let node = self.program.graph.literal(value, Some(span));
        self.check_nodes(node, span)
    }

    /// Makes an operator node. The operands are converted by the number rule of the file.
    fn operator(&mut self, name: NameId, operands: &[NodeId], span: Span) -> Result<NodeId, Stop> {
        match self.operands_of_file(name, operands)? {
            Some(marked) => self.plain_operator(name, &marked, span),
            None => self.plain_operator(name, operands, span),
        }
    }

    /// Makes an operator node without converting the operands.
    fn plain_operator(&mut self, name: NameId, operands: &[NodeId], span: Span) -> Result<NodeId, Stop> {
        let node = self.program.graph.operator_named(name, operands, Some(span));
        self.note_open(node, operands);
        self.check_nodes(node, span)
    }

    /// Records that a node contains parameters if one of its operands does.
    fn note_open(&mut self, node: NodeId, operands: &[NodeId]) {
        if !self.open.is_empty() && operands.iter().any(|operand| self.open.contains(operand)) {
            self.open.insert(node);
        }
    }

    fn check_nodes(&mut self, node: NodeId, span: Span) -> Result<NodeId, Stop> {
        self.cursor.visit()?;
        match self.program.graph.beyond(self.cursor.limits()) {
            Some(limit) => Err(self.cursor.limit(limit, Some(span))),
            None => Ok(node),
        }
    }

    fn operation_name(&mut self, operation: Operation) -> NameId {
        let Parser { operation_names, program, .. } = self;
        *operation_names[operation as usize].get_or_insert_with(|| program.graph.intern(operation.name()))
    }
}

/// The name of an input or output.
struct DeclaredName<'s> {
    text: Cow<'s, str>,
    /// The defined name, for uses in later statements; `None` if it was quoted, because then it cannot be used.
    word: Option<&'s str>,
    span: Span,
}

fn used_before_definition(name: &str, used: Span, defined: Span) -> Diagnostic {
    Diagnostic::new(Code::Name, format!("`{name}` is used before it is defined"))
        .at(used)
        .also(defined, "defined here")
        .hint("define a name above its uses, and without using the name itself")
}

fn bare_not_last(bare: Span) -> Diagnostic {
    Diagnostic::new(Code::Syntax, "an expression by itself must be the last statement")
        .at(bare)
        .hint("write `let name = ..` or `output name = ..`")
}

/// Returns the number of bytes by which a literal counts towards the limit on literals: the size of its value in memory, including the content of a
/// text.
pub(crate) fn literal_bytes(value: &Value) -> usize {
    match value {
        Value::Tuple(fields) => fields.iter().map(literal_bytes).sum(),
        Value::Array(_, array) => array.memory_bytes(),
        Value::Edge(edge) => edge.memory_bytes(),
        Value::Dict(dict) => dict.memory_bytes(),
        Value::Tensor(tensor) => tensor.memory_bytes(),
        Value::Shape(_) | Value::ArrayShape(..) | Value::Type(_) | Value::Nothing | Value::Unspecified => 0,
        Value::Scalar(v) | Value::Present(v) => match v {
            cembra_value::ScalarValue::Text(text) => text.len() + value.qtype().layout().size as usize,
            cembra_value::ScalarValue::Bytes(bytes) => bytes.len() + value.qtype().layout().size as usize,
            _ => value.qtype().layout().size as usize,
        },
        Value::Missing(_) => value.qtype().layout().size as usize,
    }
}
