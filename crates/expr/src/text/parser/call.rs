//! Names and calls: the meaning of a word or a path where it is used, and the binding of arguments to parameters.

use super::expression::{Expect, Frame, Operand, Shape};
use super::function::{Call, Function};
use super::signature::{Bound, Signature};
use super::{Meaning, NameMap, Parser, Symbol, used_before_definition};
use crate::infix::{APPLY, AT_LABELS, GRADIENT, OPERATOR, Operation, WHERE};
use crate::name_index::Referent;
use crate::text::cursor::Stop;
use crate::text::elsewhere::{ForeignUse, foreign_hint, tensor_hint};
use crate::text::token::TokenKind;
use crate::{NameId, Node, NodeId};
use cembra_value::{Code, Diagnostic, Span, Value};
use std::borrow::Cow;

/// The callee of a call, as resolved from its name: an operator, a function of the text, a value or a labelled tensor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Target {
    /// The callee is an operator of the vocabulary, given by its index in the parser's list of operators.
    Operator(usize),
    /// The callee is a function that the text defines, given by its index in the parser's list of functions.
    Function(usize),
    /// The callee is a value that may be a function.
    Value(NodeId),
    /// The callee is a tensor, so the argument has the labels for the tensor's axes.
    Labelled(NodeId),
    /// The callee is unknown, which was reported.
    Unknown,
}

/// A path (`math.sqrt`) that the text has called, and the operator or function that it means.
#[derive(Debug)]
pub(super) struct Callee {
    target: Target,
    /// The span of the first call, for messages.
    span: Span,
    /// The indices of the recorded problems about calls of this path, if its operator is unknown.
    reports: Vec<usize>,
}

/// A keyword argument of a call that is being read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Keyword<'s> {
    pub(super) name: &'s str,
    pub(super) span: Span,
    /// The index of the argument's value on the operand stack.
    pub(super) position: usize,
}

impl<'s> Parser<'s, '_> {
    /// Reads a word as an operand: a leaf, a name, or the beginning of a call.
    pub(super) fn word(&mut self) -> Result<Expect, Stop> {
        let span = self.cursor.advance().span;
        let word = self.cursor.text(span);
        if !self.cursor.at_line_end() {
            let next = self.cursor.token;
            match next.kind {
                TokenKind::OpenRound => {
                    let target = self.call_target(word.into(), word, span);
                    return self.open_call(target, span);
                }
                TokenKind::Dot if self.cursor.peek().kind.is_word() => match word {
                    "L" => {
                        self.cursor.advance();
                        let name = self.cursor.advance().span;
                        return Ok(self.leaf(self.cursor.text(name).into(), name, span.to(name)));
                    }
                    "M" => return self.path(span),
                    _ if !self.is_defined(word) => return self.path(span),
                    _ => {}
                },
                TokenKind::OpenSquare if word == "L" => return self.quoted_leaf(span),
                TokenKind::Text | TokenKind::UnfinishedText if next.span.start == span.end => {
                    let problem =
                        Diagnostic::new(Code::Literal, format!("a literal cannot be written as `{word}\"..\"`"));
                    let hint = foreign_hint(ForeignUse::Sign, &format!("{word}\""));
                    let problem = hint.into_iter().fold(problem.at(span.to(next.span)), Diagnostic::hint);
                    return Err(self.cursor.stop(problem));
                }
                _ => {}
            }
        }
        let operand = self.value_of(word, span)?;
        Ok(self.push(operand))
    }

    /// Returns true if the text defines the word, so that `word.name` is a field and not an operator.
    fn is_defined(&self, word: &str) -> bool {
        self.locals.contains_key(word)
            || self.symbols.get(word).is_some_and(|symbol| !matches!(symbol.meaning, Meaning::Leaf(_)))
    }

    /// Reads `L["any name"]` after the `L`.
    fn quoted_leaf(&mut self, start: Span) -> Result<Expect, Stop> {
        let open = self.cursor.open()?;
        if self.cursor.token.kind != TokenKind::Text {
            return Err(self.cursor.unexpected("the name of a leaf in quotes"));
        }
        let at = self.cursor.token.span;
        let name = self.quoted_name()?;
        let close = self.cursor.close(TokenKind::CloseSquare, open, "`]`")?;
        Ok(self.leaf(name, at, start.to(close)))
    }

    /// Returns the leaf `name`. `at` is the place of the name within `span`.
    fn leaf(&mut self, name: Cow<'s, str>, at: Span, span: Span) -> Expect {
        let leaf = self.program.graph.leaf(&name, Some(span));
        if let Some(declared) = self.declared.get(&leaf).copied() {
            self.note_name_used(at, declared);
        }
        self.push(Operand::new(Some(leaf), span))
    }

    /// Reads the rest of an operator's path after its first token at `head`.
    pub(super) fn path(&mut self, head: Span) -> Result<Expect, Stop> {
        let mut span = head;
        let mut path: Cow<'s, str> = self.cursor.text(head).into();
        while self.cursor.token.kind == TokenKind::Dot
            && !self.cursor.at_line_end()
            && self.cursor.peek().kind.is_word()
        {
            self.cursor.advance();
            span = span.to(self.cursor.advance().span);
            self.cursor.check_name(span);
            if self.cursor.given_up {
                return Err(Stop);
            }
            let written = self.cursor.text(span);
            let name = self.cursor.text(self.cursor.previous);
            // White space around the dots is allowed, but is not part of the path.
            path = match path {
                Cow::Borrowed(before) if written.len() == before.len() + 1 + name.len() => written.into(),
                before => format!("{before}.{name}").into(),
            };
        }
        if self.cursor.token.kind != TokenKind::OpenRound || self.cursor.at_line_end() {
            let operand = self.operator_value(&path, span)?;
            return Ok(self.push(operand));
        }
        let target = if let Some(name) = path.strip_prefix("M.") {
            let name = name.to_owned();
            self.operator_target(path, &name, span)
        } else {
            let name = path.clone();
            self.operator_target(path, &name, span)
        };
        self.open_call(target, span)
    }

    /// Returns the operator that the text writes as `path`, as a value.
    fn operator_value(&mut self, path: &str, span: Span) -> Result<Operand, Stop> {
        let name = path.strip_prefix("M.").unwrap_or(path);
        if let Some([function, declared]) = self.externs.get(name).copied() {
            self.note_extern_used(span, declared);
            return Ok(Operand::new(self.function_value(function, span)?, span));
        }
        let Some(callable) = self.vocabulary.resolve(name) else {
            let found = self.vocabulary.suggest(name);
            let problem = Diagnostic::new(Code::UnknownName, format!("there is no operator `{name}`")).at(span);
            let own = own_name(name);
            if let Some(hint) = foreign_hint(ForeignUse::Value, own) {
                self.cursor.report(problem.hint(hint));
                return Ok(Operand::new(None, span));
            }
            let problem = did_you_mean(&found).into_iter().fold(problem, Diagnostic::hint);
            let problem = match path == name {
                true => problem.hint(format!("a field of an input that is not declared is written `L.{path}`")),
                false => problem,
            };
            let known = foreign_hint(ForeignUse::Call, own).filter(|_| found.is_empty());
            self.cursor.report(known.into_iter().fold(problem, Diagnostic::hint));
            return Ok(Operand::new(None, span));
        };
        self.note_referent(span, |graph| Some(Referent::Operator(graph.intern(callable.name))));
        let canonical = self.literal(Value::text(callable.name), span)?;
        let name = self.program.graph.intern(OPERATOR);
        Ok(Operand::new(Some(self.operator(name, &[canonical], span)?), span))
    }

    /// Returns true if the node may be a function that is meant to be called: it comes from an operator that may return one.
    fn may_be_function(&self, node: NodeId) -> bool {
        match self.program.graph.node(node) {
            Node::Placeholder(_) => true,
            Node::Operator(name, _) => {
                let name = self.program.graph.name(name);
                Operation::ALL.iter().all(|operation| operation.name() != &**name)
            }
            Node::Leaf(_) | Node::Literal(_) => false,
        }
    }

    /// Returns the callee of a call of a single word.
    fn call_target(&mut self, path: Cow<'s, str>, word: &'s str, span: Span) -> Target {
        let (local, symbol) = (self.locals.get(word).copied(), self.symbols.get(word).copied());
        let definition = local.map_or(symbol.and_then(|symbol| symbol.definition), |local| local.definition);
        self.note_use(definition);
        let is_defined = |symbol: &Symbol| !matches!(symbol.meaning, Meaning::Leaf(_));
        if let Some(defined) = local.map(|local| local.span).or(symbol.filter(is_defined).map(|symbol| symbol.span)) {
            self.note_name_used(span, defined);
        }
        let (value, defined) = match (local, symbol) {
            (Some(local), _) => (local.node, None),
            (None, Some(Symbol { meaning: Meaning::Function(index), .. })) => return Target::Function(index as usize),
            (None, Some(Symbol { meaning: Meaning::Value(value), span, .. })) => (value, Some(span)),
            (None, Some(Symbol { meaning: Meaning::Input(leaf), span, .. })) => (Some(leaf), Some(span)),
            (None, Some(Symbol { meaning: Meaning::Leaf(_), .. }) | None) => {
                return self.operator_target(path, word, span);
            }
        };
        // An erroneous value is reported already.
        let Some(value) = value else { return Target::Unknown };
        if self.at_labels() {
            return Target::Labelled(value);
        }
        if self.may_be_function(value) {
            return Target::Value(value);
        }
        let problem = Diagnostic::new(Code::Name, format!("`{word}` is not a function and cannot be called")).at(span);
        let problem = match defined {
            Some(defined) => problem.also(defined, "defined here"),
            None => problem,
        };
        self.cursor.report(match self.vocabulary.resolve(word).is_none() && self.cursor.has_tensors {
            true => problem.hint(format!("write labels as a text: `{word}(\"i,j\")`")),
            false => problem.hint(format!("the operator of this name is `M.{word}(..)`")),
        });
        Target::Unknown
    }

    /// Returns the operator `name`, which the text writes as `path`, as a callee.
    fn operator_target(&mut self, path: Cow<'s, str>, name: &str, span: Span) -> Target {
        if let Some([function, declared]) = self.externs.get(name).copied() {
            self.note_extern_used(span, declared);
            return Target::Function(function);
        }
        if let Some(callee) = self.callees.get(&path)
            && callee.target != Target::Unknown
        {
            let target = callee.target;
            self.note_operator_called(span, target);
            return target;
        }
        if let Some(callable) = self.vocabulary.resolve(name) {
            let id = self.program.graph.intern(callable.name);
            let target = Target::Operator(self.operators.len());
            self.operators.push((callable, id));
            self.callees.insert(path, Callee { target, span, reports: Vec::new() });
            self.note_operator_called(span, target);
            return target;
        }
        let mut found = self.vocabulary.suggest(name);
        let problem = Diagnostic::new(Code::UnknownName, format!("there is no operator `{name}`")).at(span);
        let report = self.cursor.problems.len();
        let own = own_name(name);
        // A foreign name that is known as a whole, such as `date.diff`, is not looked up by its last part.
        let whole = foreign_hint(ForeignUse::Call, name).filter(|_| own != name);
        let hint = whole.or_else(|| self.foreign_call(own)).map(str::to_owned);
        if self.cursor.has_tensors
            && (own != name || found.is_empty())
            && let Some(name) = self.name_for_tensors(own)
        {
            found = vec![name];
        }
        self.cursor.report(match hint.or_else(|| did_you_mean(&found)) {
            Some(hint) => problem.hint(hint),
            None => problem,
        });
        let callee = self.callees.entry(path).or_insert(Callee { target: Target::Unknown, span, reports: Vec::new() });
        callee.reports.push(report);
        Target::Unknown
    }

    /// Returns the name of the operator for tensors with this last name: an operator on tensors as a whole, or else one on their elements. `None`
    /// if no operator for tensors has this name.
    fn name_for_tensors(&self, own: &str) -> Option<String> {
        let names = [format!("tensor.{own}"), own.to_owned()];
        names.into_iter().find(|name| self.vocabulary.resolve(name).is_some())
    }

    /// Returns the hint for `own`, the name of an operator or a method in another language; `None` if there is no hint for it. In a text with
    /// tensors, hints about tensors come first; any other hint is given only if no operator for tensors in cembra has this name.
    pub(super) fn foreign_call(&self, own: &str) -> Option<&'static str> {
        match self.cursor.has_tensors {
            true => tensor_hint(own).or_else(|| match self.name_for_tensors(own) {
                Some(_) => None,
                None => foreign_hint(ForeignUse::Call, own),
            }),
            false => foreign_hint(ForeignUse::Call, own),
        }
    }

    /// Returns the hint for a user who wrote the method call `x.name()`.
    pub(super) fn method_hint(&self, name: &str) -> String {
        if let Some(hint) = self.foreign_call(name) {
            return hint.to_owned();
        }
        let (operator, method) = match self.name_of_method(name) {
            Some(operator) => (operator, name),
            None if self.cursor.has_tensors => ("tensor.sum".to_owned(), "sum"),
            None => ("sqrt".to_owned(), "sqrt"),
        };
        format!("write the operator in front of its argument: `{operator}(x)`, not `x.{method}()`")
    }

    /// Returns the operator that the method name `name` stands for; `None` if it is not the name of a method.
    fn name_of_method(&self, name: &str) -> Option<String> {
        match self.cursor.has_tensors {
            true => self.name_for_tensors(name),
            false if self.vocabulary.resolve(name).is_some() => Some(name.to_owned()),
            false => self.vocabulary.suggest(name).into_iter().find(|known| own_name(known) == name),
        }
    }

    /// Records in the name index that an operator is called at the span `at`.
    fn note_operator_called(&mut self, at: Span, target: Target) {
        if let Target::Operator(index) = target {
            let name = self.operators[index].1;
            self.note_referent(at, |_| Some(Referent::Operator(name)));
        }
    }

    /// Records in the name index a use of the host's operator with this index.
    fn note_extern_used(&mut self, at: Span, declared: usize) {
        if let Some(definition) = self.program.externs.get(declared).and_then(|one| one.span) {
            self.note_name_used(at, definition);
        }
    }

    /// Records in the name index which parameters of a function the keywords refer to.
    fn note_keywords(&mut self, target: Target, keywords: &[Keyword<'_>]) {
        let Target::Function(index) = target else { return };
        if keywords.is_empty() {
            return;
        }
        let Function { parameters, places, .. } = &self.functions[index];
        let places: NameMap<&str, Span> = parameters.iter().copied().zip(places.iter().copied()).collect();
        for keyword in keywords {
            if let Some(definition) = places.get(keyword.name).copied() {
                self.note_name_used(keyword.span, definition);
            }
        }
    }

    /// Records that `name` is defined at the span `defined`. If the name was called before, with another meaning, reports these calls.
    pub(super) fn note_callee_defined(&mut self, name: &str, defined: Span) {
        let Some(callee) = self.callees.remove(name) else { return };
        if callee.target != Target::Unknown {
            let problem = used_before_definition(name, callee.span, defined);
            let is_operator = matches!(callee.target, Target::Operator(_));
            let hint = || format!("`M.{name}(..)` is the operator of this name");
            self.cursor.report(if is_operator { problem.hint(hint()) } else { problem });
            return;
        }
        for report in callee.reports {
            if let Some(problem) = self.cursor.problems.get_mut(report)
                && problem.code() == Code::UnknownName
                && let Some(used) = problem.span()
            {
                *problem = used_before_definition(name, used, defined);
            }
        }
    }

    /// Begins a call at its opening bracket.
    fn open_call(&mut self, target: Target, name: Span) -> Result<Expect, Stop> {
        let open = self.cursor.open()?;
        let (base, keywords) = (self.operands.len(), self.keywords.len());
        self.frames.push(Frame::Call { target, name, open, base, keywords });
        Ok(Expect::Operand)
    }

    /// Reads `name =` if a keyword argument of the innermost call begins at the current token. Returns true if it was read.
    pub(super) fn keyword(&mut self) -> bool {
        let position = self.operands.len();
        let span = self.cursor.token.span;
        let begins = matches!(self.frames.last(), Some(Frame::Call { .. }))
            && self.keywords.last().is_none_or(|last| last.position != position)
            && self.cursor.peek().kind == TokenKind::Equals;
        if begins {
            self.keywords.push(Keyword { name: self.cursor.text(span), span, position });
            self.cursor.advance();
            self.cursor.advance();
        }
        begins
    }

    /// Ends a call: pops the operands at index `base` and above from the operand stack, binds them to the callee's parameters, and makes the node of
    /// the call.
    pub(super) fn close_call(
        &mut self,
        target: Target,
        name: Span,
        base: usize,
        keywords: usize,
        call: Span,
    ) -> Result<Operand, Stop> {
        let keywords = self.keywords.split_off(keywords);
        self.note_keywords(target, &keywords);
        let count = self.operands.len() - base;
        let target = self.target_of_one(target, name, count, &keywords);
        let places = self.places_of_gradient(target, base);
        // Without keywords, the operands are in the order of the operator's parameters.
        let branches: Vec<Operand> = match target {
            Target::Operator(index) if keywords.is_empty() && self.operators[index].0.name == WHERE => {
                self.operands[base..].to_vec()
            }
            _ => Vec::new(),
        };
        let mut arguments = std::mem::take(&mut self.arguments);
        arguments.clear();
        arguments.extend(self.operands.drain(base..).filter_map(|operand| operand.node));
        let complete = arguments.len() == count;
        if let (true, true, Some(operator)) = (complete, keywords.is_empty(), self.of_many(target, count)) {
            let mut rest = arguments.drain(..);
            let mut made = rest.next();
            for next in rest {
                made = made.map(|first| self.operator(operator, &[first, next], call)).transpose()?;
            }
            self.arguments = arguments;
            return Ok(Operand::new(made, call));
        }
        let bound = self.bind(target, name, call, &keywords, base, count);
        let made = match bound {
            Some(order) if complete => {
                self.check_gradient(&places, &order, &arguments);
                self.make_call(target, call, &order, &mut arguments)
            }
            _ => Ok(None),
        };
        self.arguments = arguments;
        let node = made?;
        let part = if branches.is_empty() { None } else { self.note_part(node, &branches, call) };
        let shape = if matches!(target, Target::Labelled(_)) { Shape::Enclosed } else { Shape::Other };
        Ok(Operand { part, shape, ..Operand::new(node, call) })
    }

    /// Returns the places of a gradient's arguments; empty for other calls, and for a text without tensors.
    fn places_of_gradient(&self, target: Target, base: usize) -> Vec<Span> {
        match target {
            Target::Operator(index) if self.cursor.has_tensors && self.operators[index].0.name == GRADIENT => {
                self.operands[base..].iter().map(|operand| operand.span).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Reports a gradient with respect to an expression that the differentiated value does not contain.
    fn check_gradient(&mut self, places: &[Span], order: &[Bound], arguments: &[NodeId]) {
        let argument = |parameter: usize| {
            let at = match order.get(parameter) {
                Some(Bound::Argument(at)) => *at,
                Some(Bound::Default(_)) => return None,
                None => parameter,
            };
            Some((*arguments.get(at)?, *places.get(at)?))
        };
        let (Some((of, _)), Some((by, at))) = (argument(0), argument(1)) else { return };
        let text = self.cursor.text(at);
        if let Some(problem) = self.gradients.check(&self.program.graph, of, by, text, at) {
            self.cursor.report(problem);
        }
    }

    /// Returns the final callee, once the arguments are known. A short name may denote another operator in a call with a single argument.
    fn target_of_one(&mut self, target: Target, name: Span, count: usize, keywords: &[Keyword<'_>]) -> Target {
        let Target::Operator(index) = target else { return target };
        let callable = self.operators[index].0;
        let Some(of_one) = callable.of_one else { return target };
        let is_parameter = |keyword: &&Keyword<'_>| callable.params.iter().any(|param| param.name == keyword.name);
        let given = count - keywords.len() + keywords.iter().filter(is_parameter).count();
        if given == 1 { self.operator_target(of_one.to_owned().into(), of_one, name) } else { target }
    }

    /// Returns the binary operator that a call with more than two arguments applies from left to right; `None` for other calls. Only a short name
    /// that denotes another operator for one argument can be called this way.
    fn of_many(&self, target: Target, count: usize) -> Option<NameId> {
        let Target::Operator(index) = target else { return None };
        let (callable, id) = self.operators[index];
        (callable.of_one.is_some() && count > callable.params.len()).then_some(id)
    }

    /// Returns the argument for each parameter; empty if the arguments are written in the order of the parameters. `None` if the arguments do not
    /// fit, which is reported.
    fn bind(
        &mut self,
        target: Target,
        name: Span,
        call: Span,
        keywords: &[Keyword<'_>],
        base: usize,
        count: usize,
    ) -> Option<Vec<Bound>> {
        let Parser { operators, functions, cursor, .. } = self;
        let signature = match target {
            Target::Operator(index) => Signature::Operator(&operators[index].0),
            Target::Function(index) if functions[index].is_erroneous() => return None,
            Target::Function(index) => Signature::Function(functions[index].name, &functions[index].parameters),
            Target::Value(_) => {
                let Some(keyword) = keywords.first() else { return Some(Vec::new()) };
                let problem = Diagnostic::new(
                    Code::Arguments,
                    "the arguments for a function that is a value must not have names",
                );
                cursor.report(problem.at(keyword.span).hint("write the arguments in order, without names"));
                return None;
            }
            // The brackets contain exactly one text.
            Target::Labelled(_) => return Some(Vec::new()),
            Target::Unknown => return None,
        };
        if keywords.is_empty() && signature.takes_exactly(count) {
            return Some(Vec::new());
        }
        let positional = count - keywords.len();
        if let Some(first) = keywords.first()
            && first.position != base + positional
        {
            let problem =
                Diagnostic::new(Code::Arguments, "an argument without a name must not follow an argument with a name");
            cursor.report(problem.at(call).also(first.span, "the first argument with a name"));
            return None;
        }
        let order = signature.bind(cursor.text(name), call, count, keywords);
        order.map_err(|problem| cursor.report(*problem)).ok()
    }

    /// Makes the node of a call whose arguments fit.
    fn make_call(
        &mut self,
        target: Target,
        call: Span,
        order: &[Bound],
        arguments: &mut Vec<NodeId>,
    ) -> Result<Option<NodeId>, Stop> {
        if !order.is_empty() {
            let argument = |bound: &Bound| match bound {
                Bound::Argument(index) => Ok(arguments[*index]),
                Bound::Default(value) => {
                    let value = self.default_of_file(value, arguments);
                    self.literal(value, call)
                }
            };
            *arguments = order.iter().map(argument).collect::<Result<_, _>>()?;
        }
        match target {
            Target::Operator(index) => {
                let name = self.operators[index].1;
                self.operator(name, arguments, call).map(Some)
            }
            Target::Function(index) => self.instantiate(index, arguments, Call { span: call, is_value: false }),
            Target::Value(function) => {
                arguments.insert(0, function);
                let name = self.program.graph.intern(APPLY);
                self.operator(name, arguments, call).map(Some)
            }
            Target::Labelled(tensor) => {
                arguments.insert(0, tensor);
                let name = self.program.graph.intern(AT_LABELS);
                self.operator(name, arguments, call).map(Some)
            }
            Target::Unknown => Ok(None),
        }
    }
}

/// Returns the part of a name after its last dot.
fn own_name(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}

/// Returns a hint with at most three names; `None` if there are none.
fn did_you_mean(names: &[String]) -> Option<String> {
    let quoted: Vec<_> = names.iter().take(3).map(|name| format!("`{name}`")).collect();
    let (last, others) = quoted.split_last()?;
    Some(match others {
        [] => format!("did you mean {last}?"),
        _ => format!("did you mean {} or {last}?", others.join(", ")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn at_most_three_names_are_offered() {
        let hint = |names: &[&str]| did_you_mean(&names.iter().map(ToString::to_string).collect::<Vec<_>>());
        assert_eq!(hint(&[]), None);
        assert_eq!(hint(&["a"]).unwrap(), "did you mean `a`?");
        assert_eq!(hint(&["a", "b"]).unwrap(), "did you mean `a` or `b`?");
        assert_eq!(hint(&["a", "b", "c", "d"]).unwrap(), "did you mean `a`, `b` or `c`?");
    }
}
