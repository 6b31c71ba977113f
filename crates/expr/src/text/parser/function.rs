//! Functions with names: `fn f(x) = ..` is read once, with placeholders for its parameters, and every call copies what
//! depends on them. Copying is a loop over the body's nodes, operands first; hash-consing keeps equal copies one node.
//! Functions inside the body that depend on its parameters are copied with parameters of their own.

use super::declared::Declared;
use super::{Local, Meaning, NameMap, Operand, Parser, Symbol};
use crate::Defines;
use crate::calls::FunctionId;
use crate::definitions::DefinitionId;
use crate::infix::LAMBDA;
use crate::text::cursor::Stop;
use crate::text::lexer::is_plain_name;
use crate::text::token::TokenKind;
use crate::{Graph, NameId, NameKind, Node, NodeId};
use cembra_value::{Code, Diagnostic, Limit, Span};
use rustc_hash::{FxHashMap, FxHashSet};

/// A function of the text.
pub(super) struct Function<'s> {
    pub(super) name: &'s str,
    pub(super) parameters: Vec<&'s str>,
    /// Where the names of the parameters are; nothing if they have none.
    pub(super) places: Vec<Span>,
    /// `None` if it is erroneous.
    body: Option<Body<'s>>,
    /// The function as a value, once it was needed.
    value: Option<NodeId>,
}

/// A parameter as a text declares it.
pub(super) struct Parameter<'s> {
    pub(super) name: &'s str,
    /// Where the name stands.
    pub(super) span: Span,
    pub(super) declared: Option<Declared>,
}

/// What a body is copied for.
#[derive(Clone, Copy)]
pub(super) struct Call {
    pub(super) span: Span,
    /// True if it is no call: the function is a value there.
    pub(super) is_value: bool,
}

impl<'s> Function<'s> {
    /// A function that is understood.
    pub(super) fn of_body(name: &'s str, parameters: Vec<&'s str>, body: Body<'s>) -> Self {
        Function { name, parameters, places: Vec::new(), body: Some(body), value: None }
    }
}

impl Function<'_> {
    /// True if the function was not understood; its calls are not errors then.
    pub(super) fn is_erroneous(&self) -> bool {
        self.body.is_none()
    }
}

/// What a call makes: one node for each step.
pub(super) struct Body<'s> {
    /// What the graph knows of the function; nothing of an operator of the host, which has no body.
    function: Option<FunctionId>,
    steps: Vec<Step>,
    operands: Vec<Source>,
    /// The parameters of functions inside that every call makes anew.
    inner: Vec<&'s str>,
    result: Source,
}

/// An operator of a body that depends on a parameter.
struct Step {
    name: NameId,
    operands: std::ops::Range<usize>,
    /// The node that is copied; none if the call itself is made.
    original: Option<NodeId>,
}

/// Where an operand of a step comes from.
#[derive(Clone, Copy)]
enum Source {
    /// The same node for every call.
    Fixed(NodeId),
    /// The argument at this position.
    Argument(usize),
    /// The new parameter of a function inside, by position.
    Inner(usize),
    /// The node that an earlier step made.
    Step(usize),
}

/// The nodes below `result` that parameters occur in, operands first.
fn open_nodes(graph: &Graph, open: &FxHashSet<NodeId>, result: NodeId) -> Vec<NodeId> {
    let mut ids = Vec::new();
    let mut seen = FxHashSet::default();
    let mut pending = vec![result];
    while let Some(id) = pending.pop() {
        if open.contains(&id) && seen.insert(id) {
            ids.push(id);
            pending.extend_from_slice(graph.operands(id));
        }
    }
    // Operands have smaller ids than their users.
    ids.sort_unstable();
    ids
}

/// Those of the nodes that differ from call to call: they depend on `parameters`, or on parameters of a function inside
/// that does.
fn varying(graph: &Graph, ids: &[NodeId], parameters: &[NodeId]) -> FxHashSet<NodeId> {
    let mut users: FxHashMap<NodeId, Vec<NodeId>> = FxHashMap::default();
    for id in ids {
        for operand in graph.operands(*id) {
            users.entry(*operand).or_default().push(*id);
        }
    }
    let mut found: FxHashSet<NodeId> = parameters.iter().copied().collect();
    let mut pending = parameters.to_vec();
    while let Some(id) = pending.pop() {
        if let Node::Operator(name, [_, inner @ ..]) = graph.node(id)
            && **graph.name(name) == *LAMBDA
        {
            pending.extend(inner.iter().filter(|parameter| found.insert(**parameter)));
        }
        let users = users.get(&id).into_iter().flatten();
        pending.extend(users.filter(|user| found.insert(**user)));
    }
    found
}

impl<'s> Body<'s> {
    /// The body that is a call of an operator with the arguments as they are.
    pub(super) fn of_call(operator: NameId, arguments: usize) -> Self {
        Body {
            function: None,
            steps: vec![Step { name: operator, operands: 0..arguments, original: None }],
            operands: (0..arguments).map(Source::Argument).collect(),
            inner: Vec::new(),
            result: Source::Step(0),
        }
    }

    /// The recipe for `result`, which is made of the `open` nodes above the `parameters`; `names` are those of all
    /// parameters.
    fn new(
        graph: &Graph,
        function: FunctionId,
        open: &FxHashSet<NodeId>,
        parameters: &[NodeId],
        names: &FxHashMap<NodeId, &'s str>,
        result: NodeId,
    ) -> Self {
        let ids = open_nodes(graph, open, result);
        let varying = varying(graph, &ids, parameters);
        let mut sources: FxHashMap<NodeId, Source> =
            parameters.iter().enumerate().map(|(index, node)| (*node, Source::Argument(index))).collect();
        let mut body = Body {
            function: Some(function),
            steps: Vec::new(),
            operands: Vec::new(),
            inner: Vec::new(),
            result: Source::Fixed(result),
        };
        let source =
            |sources: &FxHashMap<NodeId, Source>, id: NodeId| sources.get(&id).copied().unwrap_or(Source::Fixed(id));
        for id in ids.into_iter().filter(|id| varying.contains(id)) {
            match graph.node(id) {
                Node::Operator(name, operands) => {
                    let start = body.operands.len();
                    body.operands.extend(operands.iter().map(|operand| source(&sources, *operand)));
                    sources.insert(id, Source::Step(body.steps.len()));
                    body.steps.push(Step { name, operands: start..body.operands.len(), original: Some(id) });
                }
                Node::Placeholder(_) if !sources.contains_key(&id) => {
                    sources.insert(id, Source::Inner(body.inner.len()));
                    body.inner.push(names.get(&id).copied().unwrap_or_default());
                }
                _ => {}
            }
        }
        body.result = source(&sources, result);
        body
    }
}

impl<'s> Parser<'s, '_> {
    /// `fn name(a: type, b): type = expression`
    pub(super) fn function(&mut self) -> Result<(), Stop> {
        self.cursor.advance();
        let (name, span) = self.new_name()?;
        let head = self.function_parameters().and_then(|parameters| Ok((parameters, self.declared_type()?)));
        let (parameters, result) = match head {
            Ok(head) => head,
            Err(stop) => {
                let places = Vec::new();
                self.note_name(NameKind::Function, span, None);
                self.functions.push(Function { name, parameters: Vec::new(), places, body: None, value: None });
                self.define(name, span, Meaning::Function(self.functions.len() as u32 - 1), Some(Defines::Function));
                return Err(stop);
            }
        };
        self.note_signature(NameKind::Function, span, span.to(self.cursor.previous), None);
        let mut nodes = Vec::with_capacity(parameters.len());
        for parameter in &parameters {
            // No word of the text, so that the name is left to parameters that stay in the graph.
            let node = self.program.graph.placeholder(&format!("{name}.{}", parameter.name), None);
            self.open.insert(node);
            nodes.push(node);
            let seen = self.as_declared(Operand::new(Some(node), parameter.span), parameter.declared)?;
            self.locals.insert(parameter.name, Local { node: seen.node, span: parameter.span, definition: None });
        }
        let value = self.defining_expression().and_then(|value| self.as_declared(value, result));
        let node = value.as_ref().ok().and_then(|operand| operand.node);
        let id = self.program.graph.calls_mut().add_function(name);
        let body = node.map(|node| Body::new(&self.program.graph, id, &self.open, &nodes, &self.parameter_names, node));
        self.note_parameters(&parameters);
        let (parameters, places) = parameters.into_iter().map(|parameter| (parameter.name, parameter.span)).unzip();
        self.functions.push(Function { name, parameters, places, body, value: None });
        self.define(name, span, Meaning::Function(self.functions.len() as u32 - 1), Some(Defines::Function));
        value.map(drop)
    }

    /// `(a: type, b)`
    pub(super) fn function_parameters(&mut self) -> Result<Vec<Parameter<'s>>, Stop> {
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
            parameters.push(Parameter { name, span, declared: self.declared_type()? });
            self.note_signature(NameKind::Parameter, span, span.to(self.cursor.previous), None);
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
        call: Call,
    ) -> Result<Option<NodeId>, Stop> {
        // The body is lent out while nodes are made; nothing defines a function meanwhile.
        let Some(body) = self.functions[function].body.take() else { return Ok(None) };
        let made = self.instantiate_body(function, &body, arguments, call);
        self.functions[function].body = Some(body);
        made.map(Some)
    }

    fn instantiate_body(
        &mut self,
        function: usize,
        body: &Body<'s>,
        arguments: &[NodeId],
        call: Call,
    ) -> Result<NodeId, Stop> {
        if body.inner.is_empty() {
            return self.copy_body(body, arguments, &[], call);
        }
        let key = (function, arguments.to_vec());
        if let Some(made) = self.instances.get(&key) {
            self.program.graph.note_span(*made, Some(call.span));
            return Ok(*made);
        }
        let mut inner = Vec::with_capacity(body.inner.len());
        for name in &body.inner {
            inner.push(self.fresh_parameter(name, None)?);
        }
        let made = self.copy_body(body, arguments, &inner, call)?;
        self.instances.insert(key, made);
        Ok(made)
    }

    fn copy_body(
        &mut self,
        body: &Body<'s>,
        arguments: &[NodeId],
        inner: &[NodeId],
        Call { span: call, is_value }: Call,
    ) -> Result<NodeId, Stop> {
        self.instantiation = self.instantiation.saturating_add(body.steps.len() + body.operands.len() + inner.len());
        if self.instantiation > self.cursor.limits.instantiation {
            return Err(self.cursor.limit(Limit::Instantiation, Some(call)));
        }
        let mut made: Vec<NodeId> = Vec::with_capacity(body.steps.len());
        let mut operands = Vec::new();
        let (first, mut originals) = (NodeId::from_index(self.program.graph.len()), Vec::new());
        let resolve = |made: &[NodeId], source: Source| match source {
            Source::Fixed(node) => node,
            Source::Argument(index) => arguments[index],
            Source::Inner(index) => inner[index],
            Source::Step(index) => made[index],
        };
        for step in &body.steps {
            operands.clear();
            operands.extend(body.operands[step.operands.clone()].iter().map(|source| resolve(&made, *source)));
            let before = self.program.graph.len();
            let node = self.program.graph.operator_named(step.name, &operands, None);
            if self.program.graph.len() > before {
                // A node that is new comes from the body; one that exists keeps the place it comes from.
                if let Some(original) = step.original {
                    self.program.graph.note_span(node, self.program.graph.span(original));
                    originals.push(original);
                }
            }
            self.note_open(node, &operands);
            made.push(self.check_nodes(node, call)?);
        }
        if let Some(function) = body.function.filter(|_| !originals.is_empty()) {
            let call = (!is_value).then_some(call);
            self.program.graph.calls_mut().note(first, &originals, function, call);
        }
        let result = resolve(&made, body.result);
        if matches!(body.result, Source::Step(_)) {
            self.program.graph.note_span(result, Some(call));
        }
        Ok(result)
    }

    /// The value of a name in an expression.
    pub(super) fn value_of(&mut self, name: &'s str, span: Span) -> Result<Operand, Stop> {
        if let Some(Local { node, span: defined, definition }) = self.locals.get(name).copied() {
            self.note_use(definition);
            self.note_name_used(span, defined);
            if let Some(node) = node {
                self.program.graph.note_span(node, Some(span));
            }
            return Ok(Operand::new(node, span));
        }
        let symbol = self.symbols.get(name).copied();
        self.note_use(symbol.and_then(|symbol| symbol.definition));
        if let Some(symbol) = symbol {
            self.note_name_used(span, symbol.span);
        }
        let node = match symbol.map(|symbol| symbol.meaning) {
            Some(Meaning::Input(leaf) | Meaning::Leaf(leaf)) => {
                self.program.graph.note_span(leaf, Some(span));
                Some(leaf)
            }
            Some(Meaning::Value(node)) => node,
            Some(Meaning::Function(index)) => self.function_value(index as usize, span)?,
            None => {
                let leaf = self.program.graph.leaf(name, Some(span));
                self.note_name(NameKind::Leaf, span, Some(leaf));
                self.symbols.insert(name, Symbol { meaning: Meaning::Leaf(leaf), span, definition: None });
                Some(leaf)
            }
        };
        Ok(Operand::new(node, span))
    }

    /// Notes the parameters of a function that ends here.
    fn note_parameters(&mut self, parameters: &[Parameter<'s>]) {
        let end = self.cursor.previous.end;
        for Parameter { name, span, .. } in parameters {
            self.program.definitions.push(Defines::Parameter, name, *span, end);
        }
    }

    /// Notes that a name is used.
    pub(super) fn note_use(&mut self, definition: Option<DefinitionId>) {
        if let Some(definition) = definition {
            self.program.definitions.note_use(definition);
        }
    }

    /// A function with a name as a value. `None` if it is erroneous.
    pub(super) fn function_value(&mut self, function: usize, span: Span) -> Result<Option<NodeId>, Stop> {
        if let Some(value) = self.functions[function].value {
            self.program.graph.note_span(value, Some(span));
            return Ok(Some(value));
        }
        if self.functions[function].is_erroneous() {
            return Ok(None);
        }
        let mut parameters = Vec::new();
        for name in self.functions[function].parameters.clone() {
            // Those of operators of the host have types only.
            let name = if is_plain_name(name) { name } else { "x" };
            parameters.push(self.fresh_parameter(name, None)?);
        }
        let Some(body) = self.instantiate(function, &parameters, Call { span, is_value: true })? else {
            return Ok(None);
        };
        parameters.insert(0, body);
        let name = self.program.graph.intern(LAMBDA);
        let value = self.operator(name, &parameters, span)?;
        self.functions[function].value = Some(value);
        Ok(Some(value))
    }
}
