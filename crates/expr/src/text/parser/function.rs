//! Named functions. A function `fn f(x) = ..` is read once, with placeholders for its parameters. Every call copies the nodes of the body that depend
//! on the parameters. Copying is a loop over these nodes, operands first; hash-consing makes equal copies one node. Inner functions that depend on
//! the parameters are copied with new parameters.

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

/// A named function that the text defines.
pub(super) struct Function<'s> {
    pub(super) name: &'s str,
    pub(super) parameters: Vec<&'s str>,
    /// The spans of the parameters' names in the text; empty for an operator of the host application, whose parameters have no names.
    pub(super) places: Vec<Span>,
    /// The function's body; `None` if the body has an error.
    body: Option<Body<'s>>,
    /// The function as a value; `None` if it was not needed yet.
    value: Option<NodeId>,
}

/// A parameter in the definition of a function.
pub(super) struct Parameter<'s> {
    pub(super) name: &'s str,
    /// The span of the parameter's name.
    pub(super) span: Span,
    pub(super) declared: Option<Declared>,
}

/// A use of a function, as the callee of a call or as a value. Each use copies the function's body.
#[derive(Clone, Copy)]
pub(super) struct Call {
    pub(super) span: Span,
    /// True if this use takes the function as a value, instead of calling it.
    pub(super) is_value: bool,
}

impl<'s> Function<'s> {
    /// Returns a function whose calls become nodes of `operator`, an operator of the host application.
    pub(super) fn of_operator(name: &'s str, parameters: Vec<&'s str>, operator: NameId) -> Self {
        Function { name, parameters, places: Vec::new(), body: Some(Body::Operator(operator)), value: None }
    }
}

impl Function<'_> {
    /// Returns true if the function's definition has an error. Calls of the function are then not reported as errors.
    pub(super) fn is_erroneous(&self) -> bool {
        self.body.is_none()
    }
}

/// The body of a function: the nodes that a call of the function makes.
pub(super) enum Body<'s> {
    /// A call makes a node of this operator of the host application, applied to the arguments.
    Operator(NameId),
    /// A call copies the nodes of the body that depend on the parameters.
    Copy(Recipe<'s>),
}

/// The nodes of a function's body that each call copies. The recipe has no copies of names and operands: they are read from the graph when a call
/// copies the nodes, because the bodies of functions that call each other may be as large as the graph.
pub(super) struct Recipe<'s> {
    /// The function's id in the graph's record of calls.
    function: FunctionId,
    /// The operator nodes of the body that depend on parameters, operands before users.
    steps: Vec<NodeId>,
    /// The replacements for the function's parameters, and for parameters of inner functions that depend on them.
    parameters: FxHashMap<NodeId, Substitute>,
    /// The names of the inner functions' parameters, for which every call makes new ones.
    inner: Vec<&'s str>,
    result: NodeId,
    /// The number of nodes and operands that a call visits.
    visits: usize,
}

/// The node that replaces a parameter when a call copies a function's body.
#[derive(Clone, Copy)]
enum Substitute {
    /// The call's argument at this index replaces the parameter.
    Argument(usize),
    /// The new parameter of an inner function, given by its index, replaces the parameter.
    Inner(usize),
}

/// Returns the nodes below `result` that differ between calls, operands first. These nodes depend on `parameters`, or on parameters of an inner
/// function that does. Only `open` nodes contain parameters.
fn varying(graph: &Graph, open: &FxHashSet<NodeId>, parameters: &[NodeId], result: NodeId) -> Vec<NodeId> {
    // Operands have smaller ids than their users, and nodes that contain parameters were made after them.
    let Some(first) = parameters.iter().min().map(|first| first.index()) else { return Vec::new() };
    let Some(length) = (result.index() + 1).checked_sub(first) else { return Vec::new() };
    let inside = |node: NodeId| node.index().checked_sub(first).filter(|at| *at < length);
    let id = |at: usize| NodeId::from_index(first + at);
    let mut reached = vec![false; length];
    reached[length - 1] = open.contains(&result);
    // First the number of users of each node, then the start of its list of users.
    let mut starts = vec![0_u32; length + 1];
    for at in (0..length).rev() {
        if reached[at] {
            for operand in graph.operands(id(at)) {
                if let Some(of) = inside(*operand)
                    && (reached[of] || open.contains(operand))
                {
                    reached[of] = true;
                    starts[of] += 1;
                }
            }
        }
    }
    let mut sum = 0;
    for start in &mut starts {
        sum += *start;
        *start = sum;
    }
    let mut users = vec![0_u32; sum as usize];
    for at in (0..length).filter(|at| reached[*at]) {
        for of in graph.operands(id(at)).iter().filter_map(|operand| inside(*operand)).filter(|of| reached[*of]) {
            starts[of] -= 1;
            users[starts[of] as usize] = at as u32;
        }
    }
    let mut found = vec![false; length];
    let mut pending: Vec<usize> = parameters.iter().filter_map(|parameter| inside(*parameter)).collect();
    pending.iter().for_each(|at| found[*at] = true);
    while let Some(at) = pending.pop() {
        if let Node::Operator(name, [_, inner @ ..]) = graph.node(id(at))
            && **graph.name(name) == *LAMBDA
        {
            let inner = inner.iter().filter_map(|parameter| inside(*parameter));
            pending.extend(inner.filter(|at| !std::mem::replace(&mut found[*at], true)));
        }
        let users = users[starts[at] as usize..starts[at + 1] as usize].iter().map(|user| *user as usize);
        pending.extend(users.filter(|at| !std::mem::replace(&mut found[*at], true)));
    }
    (0..length).filter(|at| reached[*at] && found[*at]).map(id).collect()
}

impl<'s> Recipe<'s> {
    /// Returns the recipe for `result`, which consists of the `open` nodes above `parameters`. `names` are the names of all parameters.
    fn new(
        graph: &Graph,
        function: FunctionId,
        open: &FxHashSet<NodeId>,
        parameters: &[NodeId],
        names: &FxHashMap<NodeId, &'s str>,
        result: NodeId,
    ) -> Self {
        let mut steps = varying(graph, open, parameters, result);
        let arguments = parameters.iter().zip(0..).map(|(node, at)| (*node, Substitute::Argument(at)));
        let mut parameters: FxHashMap<NodeId, Substitute> = arguments.collect();
        let (mut inner, mut visits) = (Vec::new(), 0);
        steps.retain(|id| match graph.node(*id) {
            Node::Operator(_, operands) => {
                visits += 1 + operands.len();
                true
            }
            Node::Placeholder(_) => {
                parameters.entry(*id).or_insert_with(|| {
                    inner.push(names.get(id).copied().unwrap_or_default());
                    Substitute::Inner(inner.len() - 1)
                });
                false
            }
            _ => false,
        });
        visits += inner.len();
        Recipe { function, steps, parameters, inner, result, visits }
    }

    /// Returns the index of the step that copies `node`, among the first `before` steps; `None` if none of these steps copies it.
    fn step(&self, node: NodeId, before: usize) -> Option<usize> {
        let steps = &self.steps[..before];
        // The nodes of a body are mostly consecutive.
        let distance = steps.last()?.index().checked_sub(node.index())?;
        let guess = (before - 1).checked_sub(distance).filter(|at| steps[*at] == node);
        guess.or_else(|| steps.binary_search(&node).ok())
    }
}

impl<'s> Parser<'s, '_> {
    /// Reads `fn name(a: type, b): type = expression`.
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
            // The name is not a word of the text, so that parameters that stay in the graph can use the plain name.
            let node = self.program.graph.placeholder(&format!("{name}.{}", parameter.name), None);
            self.open.insert(node);
            nodes.push(node);
            let seen = self.as_declared(Operand::new(Some(node), parameter.span), parameter.declared)?;
            self.locals.insert(parameter.name, Local { node: seen.node, span: parameter.span, definition: None });
        }
        let value = self.defining_expression().and_then(|value| self.as_declared(value, result));
        let node = value.as_ref().ok().and_then(|operand| operand.node);
        let id = self.program.graph.calls_mut().add_function(name);
        let recipe = |node| Recipe::new(&self.program.graph, id, &self.open, &nodes, &self.parameter_names, node);
        let body = node.map(|node| Body::Copy(recipe(node)));
        self.note_parameters(&parameters);
        let (parameters, places) = parameters.into_iter().map(|parameter| (parameter.name, parameter.span)).unzip();
        self.functions.push(Function { name, parameters, places, body, value: None });
        self.define(name, span, Meaning::Function(self.functions.len() as u32 - 1), Some(Defines::Function));
        value.map(drop)
    }

    /// Reads the parameters of a function: `(a: type, b)`.
    pub(super) fn function_parameters(&mut self) -> Result<Vec<Parameter<'s>>, Stop> {
        let open = self.cursor.require_open(TokenKind::OpenRound, "`(` and the parameters")?;
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
        self.cursor.close(TokenKind::CloseRound, open, "`,` or `)`")?;
        Ok(parameters)
    }

    /// Makes the nodes of a call of a function; `None` if the function's definition has an error.
    pub(super) fn instantiate(
        &mut self,
        function: usize,
        arguments: &[NodeId],
        call: Call,
    ) -> Result<Option<NodeId>, Stop> {
        // The body is moved out while nodes are made; no function is defined meanwhile.
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
        let recipe = match body {
            Body::Operator(operator) => {
                self.count_instantiation(1 + arguments.len(), call.span)?;
                let made = self.program.graph.operator_named(*operator, arguments, None);
                self.note_open(made, arguments);
                let made = self.check_nodes(made, call.span)?;
                self.program.graph.note_span(made, Some(call.span));
                return Ok(made);
            }
            Body::Copy(recipe) => recipe,
        };
        if recipe.inner.is_empty() {
            return self.copy_body(recipe, arguments, &[], call);
        }
        let key = (function, arguments.to_vec());
        if let Some(made) = self.instances.get(&key) {
            self.program.graph.note_span(*made, Some(call.span));
            return Ok(*made);
        }
        let inner = recipe.inner.iter().map(|name| self.fresh_parameter(name, None));
        let inner = inner.collect::<Result<Vec<_>, _>>()?;
        let made = self.copy_body(recipe, arguments, &inner, call)?;
        self.instances.insert(key, made);
        Ok(made)
    }

    /// Counts the nodes and operands that a call visits. Fails beyond the limit.
    fn count_instantiation(&mut self, visits: usize, call: Span) -> Result<(), Stop> {
        self.instantiation = self.instantiation.saturating_add(visits);
        if self.instantiation > self.cursor.limits().instantiation {
            return Err(self.cursor.limit(Limit::Instantiation, Some(call)));
        }
        Ok(())
    }

    fn copy_body(
        &mut self,
        recipe: &Recipe<'s>,
        arguments: &[NodeId],
        inner: &[NodeId],
        Call { span: call, is_value }: Call,
    ) -> Result<NodeId, Stop> {
        self.count_instantiation(recipe.visits, call)?;
        let mut made: Vec<NodeId> = Vec::with_capacity(recipe.steps.len());
        let mut operands = Vec::new();
        let (first, mut originals) = (NodeId::from_index(self.program.graph.len()), Vec::new());
        let resolve = |made: &[NodeId], node: NodeId| match recipe.step(node, made.len()) {
            Some(step) => made[step],
            None => match recipe.parameters.get(&node) {
                Some(Substitute::Argument(index)) => arguments[*index],
                Some(Substitute::Inner(index)) => inner[*index],
                // The node is the same for every call.
                None => node,
            },
        };
        for original in &recipe.steps {
            let before = self.program.graph.len();
            let Node::Operator(name, of) = self.program.graph.node(*original) else { continue };
            operands.clear();
            operands.extend(of.iter().map(|operand| resolve(&made, *operand)));
            let again = self.marked_again(name, &operands)?;
            let node = again.unwrap_or_else(|| self.program.graph.operator_named(name, &operands, None));
            if self.program.graph.len() > before {
                // A new node gets its original's place; an existing node keeps its own.
                self.program.graph.note_span(node, self.program.graph.span(*original));
                originals.push(*original);
            }
            self.note_open(node, &operands);
            made.push(self.check_nodes(node, call)?);
        }
        if !originals.is_empty() {
            let call = (!is_value).then_some(call);
            self.program.graph.calls_mut().note(first, &originals, recipe.function, call);
        }
        let result = resolve(&made, recipe.result);
        if recipe.steps.binary_search(&recipe.result).is_ok() {
            self.program.graph.note_span(result, Some(call));
        }
        Ok(result)
    }

    /// Returns the operand that the name `name` stands for in an expression.
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

    /// Records the parameters of a function that ends here.
    fn note_parameters(&mut self, parameters: &[Parameter<'s>]) {
        let end = self.cursor.previous.end;
        for Parameter { name, span, .. } in parameters {
            self.program.definitions.push(Defines::Parameter, name, *span, end);
        }
    }

    /// Records that the text uses a definition.
    pub(super) fn note_use(&mut self, definition: Option<DefinitionId>) {
        if let Some(definition) = definition {
            self.program.definitions.note_use(definition);
        }
    }

    /// Returns the node of a named function as a value; `None` if the function's definition has an error.
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
            // The parameters of the host's operators have types but no names.
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
