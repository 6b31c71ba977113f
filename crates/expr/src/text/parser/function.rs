//! Functions: `fn f(x) = ..` is read once, with placeholders for its parameters, and every call copies what depends on
//! them. Copying is a loop over the body's nodes, operands first; hash-consing keeps equal copies one node.

use super::{Meaning, NameMap, Operand, Parser};
use crate::limits::Limit;
use crate::text::cursor::Stop;
use crate::text::token::TokenKind;
use crate::{Code, Diagnostic, Graph, NameId, Node, NodeId, Span};
use rustc_hash::{FxHashMap, FxHashSet};

/// A function of the text.
pub(super) struct Function<'s> {
    pub(super) name: &'s str,
    pub(super) parameters: Vec<&'s str>,
    /// `None` if it is erroneous.
    body: Option<Body>,
}

impl Function<'_> {
    /// True if the function was not understood; its calls are not errors then.
    pub(super) fn is_erroneous(&self) -> bool {
        self.body.is_none()
    }
}

/// What a call makes: one node for each step.
struct Body {
    steps: Vec<Step>,
    operands: Vec<Source>,
    result: Source,
}

/// An operator of a body that depends on a parameter.
struct Step {
    name: NameId,
    operands: std::ops::Range<usize>,
    span: Option<Span>,
}

/// Where an operand of a step comes from.
#[derive(Clone, Copy)]
enum Source {
    /// The same node for every call.
    Fixed(NodeId),
    /// The argument at this position.
    Argument(usize),
    /// The node that an earlier step made.
    Step(usize),
}

impl Body {
    /// The recipe for `result`, which is made of the `open` nodes above the `parameters`.
    fn new(graph: &Graph, open: &FxHashSet<NodeId>, parameters: &[NodeId], result: NodeId) -> Body {
        let mut sources: FxHashMap<NodeId, Source> =
            parameters.iter().enumerate().map(|(index, node)| (*node, Source::Argument(index))).collect();
        let mut ids = Vec::new();
        let mut seen = FxHashSet::default();
        let mut pending = vec![result];
        while let Some(id) = pending.pop() {
            if open.contains(&id) && !sources.contains_key(&id) && seen.insert(id) {
                ids.push(id);
                pending.extend_from_slice(graph.operands(id));
            }
        }
        // Operands have smaller ids than their users.
        ids.sort_unstable();
        let mut body =
            Body { steps: Vec::with_capacity(ids.len()), operands: Vec::new(), result: Source::Fixed(result) };
        let source =
            |sources: &FxHashMap<NodeId, Source>, id: NodeId| sources.get(&id).copied().unwrap_or(Source::Fixed(id));
        for id in ids {
            if let Node::Operator(name, operands) = graph.node(id) {
                let start = body.operands.len();
                body.operands.extend(operands.iter().map(|operand| source(&sources, *operand)));
                sources.insert(id, Source::Step(body.steps.len()));
                body.steps.push(Step { name, operands: start..body.operands.len(), span: graph.span(id) });
            }
        }
        body.result = source(&sources, result);
        body
    }
}

impl<'s> Parser<'s, '_> {
    /// `fn name(a, b) = expression`
    pub(super) fn function(&mut self) -> Result<(), Stop> {
        self.cursor.advance();
        let (name, span) = self.new_name()?;
        let parameters = match self.function_parameters() {
            Ok(parameters) => parameters,
            Err(stop) => {
                self.functions.push(Function { name, parameters: Vec::new(), body: None });
                self.define(name, span, Meaning::Function(self.functions.len() - 1));
                return Err(stop);
            }
        };
        let mut nodes = Vec::with_capacity(parameters.len());
        for parameter in &parameters {
            let node = self.program.graph.placeholder(parameter, None);
            self.open.insert(node);
            self.parameters.insert(parameter, node);
            nodes.push(node);
        }
        let value = self.defining_expression();
        let node = value.as_ref().ok().and_then(|operand| operand.node);
        let body = node.map(|node| Body::new(&self.program.graph, &self.open, &nodes, node));
        self.parameters.clear();
        self.open.clear();
        self.functions.push(Function { name, parameters, body });
        self.define(name, span, Meaning::Function(self.functions.len() - 1));
        value.map(drop)
    }

    fn function_parameters(&mut self) -> Result<Vec<&'s str>, Stop> {
        let open = self.cursor.token.span;
        if self.cursor.token.kind != TokenKind::OpenRound {
            return Err(self.cursor.unexpected("`(` and the parameters"));
        }
        self.cursor.enter(open)?;
        self.cursor.advance();
        let mut parameters = Vec::new();
        let mut seen = NameMap::default();
        while self.cursor.token.kind != TokenKind::CloseRound {
            let (name, span) = self.new_name()?;
            if let Some(first) = seen.insert(name, span) {
                let problem = Diagnostic::new(Code::Name, format!("the parameter `{name}` is named twice"));
                return Err(self.cursor.stop(problem.at(span).also(first, "first named here")));
            }
            parameters.push(name);
            if !self.cursor.take(TokenKind::Comma) {
                break;
            }
        }
        if self.cursor.token.kind != TokenKind::CloseRound {
            return Err(self.cursor.unclosed(open, "`,` or `)`"));
        }
        self.cursor.advance();
        self.cursor.leave();
        Ok(parameters)
    }

    /// Makes the nodes of a call. `None` if the function is erroneous.
    pub(super) fn instantiate(
        &mut self,
        function: usize,
        arguments: &[NodeId],
        call: Span,
    ) -> Result<Option<NodeId>, Stop> {
        // The body is lent out while nodes are made; nothing defines a function meanwhile.
        let Some(body) = self.functions[function].body.take() else { return Ok(None) };
        let made = self.instantiate_body(&body, arguments, call);
        self.functions[function].body = Some(body);
        made.map(Some)
    }

    fn instantiate_body(&mut self, body: &Body, arguments: &[NodeId], call: Span) -> Result<NodeId, Stop> {
        self.instantiation = self.instantiation.saturating_add(body.steps.len() + body.operands.len());
        if self.instantiation > self.cursor.limits.instantiation {
            return Err(self.cursor.limit(Limit::Instantiation, Some(call)));
        }
        let mut made: Vec<NodeId> = Vec::with_capacity(body.steps.len());
        let mut operands = Vec::new();
        let resolve = |made: &[NodeId], source: Source| match source {
            Source::Fixed(node) => node,
            Source::Argument(index) => arguments[index],
            Source::Step(index) => made[index],
        };
        for step in &body.steps {
            operands.clear();
            operands.extend(body.operands[step.operands.clone()].iter().map(|source| resolve(&made, *source)));
            let before = self.program.graph.len();
            let node = self.program.graph.operator_named(step.name, &operands, None);
            if self.program.graph.len() > before {
                // A node that is new comes from the body; one that exists keeps the place it comes from.
                self.program.graph.note_span(node, step.span);
            }
            self.note_open(node, &operands);
            made.push(self.check_nodes(node, call)?);
        }
        let result = resolve(&made, body.result);
        if matches!(body.result, Source::Step(_)) {
            self.program.graph.note_span(result, Some(call));
        }
        Ok(result)
    }

    /// The value of a name in an expression.
    pub(super) fn value_of(&mut self, name: &'s str, span: Span) -> Operand {
        if let Some(node) = self.parameters.get(name) {
            self.program.graph.note_span(*node, Some(span));
            return Operand::new(Some(*node), span);
        }
        let node = match self.symbols.get(name).map(|symbol| symbol.meaning) {
            Some(Meaning::Input(leaf) | Meaning::Leaf(leaf)) => {
                self.program.graph.note_span(leaf, Some(span));
                Some(leaf)
            }
            Some(Meaning::Value(node)) => node,
            Some(Meaning::Function(_)) => {
                let problem = Diagnostic::new(Code::Name, format!("`{name}` is a function and has no value by itself"));
                self.cursor.report(problem.at(span).hint(format!("call it: `{name}(..)`")));
                None
            }
            None => {
                let leaf = self.program.graph.leaf(name, Some(span));
                self.symbols.insert(name, super::Symbol { meaning: Meaning::Leaf(leaf), span });
                Some(leaf)
            }
        };
        Operand::new(node, span)
    }
}
