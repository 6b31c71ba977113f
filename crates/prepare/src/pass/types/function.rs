//! Type inference of functions: closures, and the environments (arguments) of their calls. A function's body is typed anew for each call, with the
//! arguments in place of its parameters. Nodes that depend on no parameter are typed once and shared, so they are evaluated once.
//!
//! Type inference recurses into a call in the body of a called function. The depth of recursion is limited, and so is the number of nodes that calls
//! make.

use super::free::{FreeParameters, SetId};
use super::{
    Typer,
    instance::{Instance, exceeded, too_much},
    passed::{CompileTimeOperand, EnvironmentId},
};
use crate::{Id, Kind, TypedModel};
use cembra_expr::{Calls, Graph, NameId, Node, NodeId};
use cembra_ops::{ExpansionError, Instantiation, NodeHandle, OpId, Registry, Sequence, TypeFault, id};
use cembra_runtime::QType;
use cembra_value::{Code, Diagnostic, Diagnostics, Limit, Limits, ScalarValue, Value};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::rc::Rc;
use std::sync::Arc;

/// The number of steps that a call counts as, besides its arguments and the nodes that it makes. It is not 0 because the memory of the call is kept
/// until preparation ends.
const CALL: usize = 8;

/// The number of steps of type inference between two checks of the time limit.
const STEPS_OF_A_LOOK: usize = 4096;

/// The number of free parameters whose lookup counts as one step; most nodes have fewer.
const MEMBERS_OF_A_STEP: usize = 16;

/// The largest depth of calls inside of calls for which the stack is large enough. `Limits::nesting` may allow fewer.
const NESTING: usize = 64;

/// The arguments of one call, and the nodes that were typed with them.
struct Environment {
    parent: EnvironmentId,
    arguments: FxHashMap<NodeId, Id>,
    typed: FxHashMap<NodeId, Option<Id>>,
    /// For each set of parameters, the innermost environment, from this one outwards, that gives an argument to a parameter of the set.
    homes: FxHashMap<SetId, EnvironmentId>,
}

/// The state that type inference keeps for functions: their environments, and the calls in progress.
#[derive(Default)]
pub(super) struct Functions {
    free: FreeParameters,
    /// The name of function nodes in the graph; `None` if the graph has no functions.
    lambda: Option<NameId>,
    /// The environments (arguments) of calls. The root environment is not in this list.
    environments: Vec<Environment>,
    pub(super) passed: Vec<CompileTimeOperand>,
    /// The nodes of the calls that are in progress, outermost first.
    pub(super) calls: Vec<NodeId>,
    instantiated: usize,
    /// The value of `instantiated` (the number of steps so far) at which the time is checked next.
    timed: usize,
    pub(super) loops: u32,
    pub(super) loop_depth: u8,
}

impl Functions {
    pub(super) fn of(graph: &Graph, registry: &Registry) -> Result<Functions, Diagnostics> {
        match graph.find_name(registry.get(id::LAMBDA).name) {
            Some(lambda) => {
                Ok(Functions { free: FreeParameters::of(graph, lambda)?, lambda: Some(lambda), ..Functions::default() })
            }
            None => Ok(Functions::default()),
        }
    }

    fn environment(&self, id: EnvironmentId) -> Option<&Environment> {
        self.environments.get((id.0 as usize).checked_sub(1)?)
    }

    /// The argument that the environment `environment` gives the parameter `parameter`; `None` if the environment does not bind it.
    pub(super) fn argument(&self, environment: EnvironmentId, parameter: NodeId) -> Option<Id> {
        self.environment(environment)?.arguments.get(&parameter).copied()
    }

    /// The innermost environment (arguments of a call), from `environment` outwards, that gives an argument to a parameter on which `node` depends;
    /// the root environment if there is none.
    pub(super) fn home(&mut self, environment: EnvironmentId, node: NodeId) -> EnvironmentId {
        let set = self.free.set(node);
        if set == SetId::EMPTY || environment == EnvironmentId::ROOT {
            return EnvironmentId::ROOT;
        }
        if let Some(home) = self.environment(environment).and_then(|known| known.homes.get(&set)) {
            return *home;
        }
        let (mut home, mut looked_at) = (environment, 0);
        while let Some(here) = self.environment(home) {
            let members = self.free.members(set);
            looked_at += members.len();
            if members.iter().any(|member| here.arguments.contains_key(member)) {
                break;
            }
            home = here.parent;
        }
        self.instantiated = self.instantiated.saturating_add(looked_at / MEMBERS_OF_A_STEP);
        if let Some(known) = self.environments.get_mut(environment.0 as usize - 1) {
            known.homes.insert(set, home);
        }
        home
    }
}

impl Typer<'_> {
    /// Returns one flag per node, by index: true if `roots` need the node outside of functions.
    pub(super) fn needed(&self, roots: impl Iterator<Item = NodeId>) -> Vec<bool> {
        let Some(lambda) = self.functions.lambda else { return self.graph.reachable(roots) };
        let mut needed = vec![false; self.graph.len()];
        for root in roots {
            if let Some(flag) = needed.get_mut(root.index()) {
                *flag = true;
            }
        }
        for at in (0..needed.len()).rev().map(NodeId::from_index) {
            match self.graph.node(at) {
                Node::Operator(name, operands) if needed[at.index()] && name != lambda => {
                    operands.iter().for_each(|operand| needed[operand.index()] = true);
                }
                _ => {}
            }
        }
        needed
    }

    /// The typed node for the expression node `node` in an environment. The outer `None` means that `node` was not typed yet, the inner `None` that
    /// it has an error.
    pub(super) fn known(&mut self, environment: EnvironmentId, node: NodeId) -> Option<Option<Id>> {
        let home = self.functions.home(environment, node);
        match self.functions.environment(home) {
            Some(here) => here.typed.get(&node).copied(),
            None => self.typed[node.index()],
        }
    }

    fn learn(&mut self, home: EnvironmentId, node: NodeId, typed: Option<Id>) {
        match (home.0 as usize).checked_sub(1).and_then(|at| self.functions.environments.get_mut(at)) {
            Some(here) => drop(here.typed.insert(node, typed)),
            None => self.typed[node.index()] = Some(typed),
        }
    }

    /// Types the operands of a node and then the node, in an environment.
    fn evaluate(
        &mut self,
        model: &mut TypedModel,
        environment: EnvironmentId,
        node: NodeId,
    ) -> Result<Id, ExpansionError> {
        let mut stack = vec![(self.functions.home(environment, node), node)];
        let graph = self.graph;
        while let Some(&(home, node)) = stack.last() {
            if self.known(home, node).is_some() {
                stack.pop();
                continue;
            }
            let waiting = stack.len();
            if !self.is_lambda(node) {
                for operand in graph.operands(node) {
                    if self.known(home, *operand).is_none() {
                        stack.push((self.functions.home(home, *operand), *operand));
                    }
                }
            }
            if stack.len() == waiting {
                stack.pop();
                if !self.has_room() {
                    return Err(ExpansionError::Reported);
                }
                if let Err(problem) = self.spend(1 + graph.operands(node).len()) {
                    self.report(node, problem.at(graph.span(node)));
                    return Err(ExpansionError::Reported);
                }
                let typed = self.node(model, node, home);
                self.learn(home, node, typed);
                if let Some(typed) = typed
                    && let Err(problem) = self.admit(model, typed)
                {
                    self.report(node, problem.at(self.graph.span(node)));
                    return Err(ExpansionError::Reported);
                }
            }
        }
        self.known(environment, node).flatten().ok_or(ExpansionError::Reported)
    }

    /// Counts `steps` steps of calls, and of operators on functions and sequences, because a short text can cause many steps. Fails if the limit on
    /// steps is exceeded, or if the time is over.
    pub(super) fn spend(&mut self, steps: usize) -> Result<(), Diagnostic> {
        self.functions.instantiated = self.functions.instantiated.saturating_add(steps);
        if self.functions.instantiated > self.limits.instantiation {
            return Err(self.limits.exceeded(Limit::Instantiation));
        }
        if self.functions.instantiated >= self.functions.timed {
            self.functions.timed = self.functions.instantiated.saturating_add(STEPS_OF_A_LOOK);
            self.budget.check_time()?;
        }
        Ok(())
    }

    /// Refuses the node `made` if its type is too large, or if it is a type literal whose value is too large a type. A few nodes can make such a
    /// type, because each of them may double it.
    pub(super) fn admit(&mut self, model: &TypedModel, made: Id) -> Result<(), Diagnostic> {
        let qtype = match model.graph.value(made) {
            Some(Value::Type(qtype)) => qtype,
            _ => model.graph.qtype(made),
        };
        self.admit_type(qtype)
    }

    /// Refuses the type `qtype` if it is too large.
    pub(super) fn admit_type(&mut self, qtype: &QType) -> Result<(), Diagnostic> {
        match qtype {
            QType::Tuple(_) | QType::Sequence(_) => {
                Limits::admit_type(qtype, &mut self.allowance).map_err(|limit| self.limits.exceeded(limit))
            }
            _ => Ok(()),
        }
    }

    fn is_lambda(&self, node: NodeId) -> bool {
        matches!(self.graph.node(node), Node::Operator(name, _) if Some(name) == self.functions.lambda)
    }

    fn pass(&mut self, model: &mut TypedModel, passed: CompileTimeOperand, qtype: QType, origin: NodeId) -> Id {
        self.functions.passed.push(passed);
        let kind = Kind::CompileTime(self.functions.passed.len() as u32 - 1);
        model.graph.add(kind, &[], &qtype, origin)
    }

    /// Types an anonymous function that is an operand, as a function value.
    pub(super) fn lambda(&mut self, model: &mut TypedModel, node: NodeId, environment: EnvironmentId) -> Option<Id> {
        let parameters = self.graph.operands(node).get(1..).unwrap_or(&[]);
        let odd = parameters.iter().find(|p| !matches!(self.graph.node(**p), Node::Placeholder(_)));
        if odd.is_some() || self.graph.operands(node).is_empty() {
            let problem = Diagnostic::new(Code::TypeMismatch, "core._lambda expects a body and the parameters");
            self.report(node, problem.at(self.graph.span(node)).hint("write `fn(x) = ..`"));
            return None;
        }
        Some(self.pass(model, CompileTimeOperand::Lambda { node, environment }, QType::Function, node))
    }

    /// Types the name of an operator that is an operand, as a function value.
    pub(super) fn named(&mut self, model: &mut TypedModel, node: NodeId, operands: &[Id]) -> Option<Id> {
        let name = match operands {
            [name] => model.graph.value(*name).cloned(),
            _ => None,
        };
        let Some(Value::Scalar(ScalarValue::Text(name))) = name else {
            let problem = Diagnostic::new(Code::TypeMismatch, "core._operator expects the name of an operator");
            self.report(node, problem.at(self.graph.span(node)));
            return None;
        };
        let Some(op) = self.registry.find(&name) else {
            self.unknown(node, &name);
            return None;
        };
        Some(self.pass(model, CompileTimeOperand::Operator(op), QType::Function, node))
    }

    /// Adds a node to the graph for a sequence that is an operand.
    pub(super) fn pass_sequence(&mut self, model: &mut TypedModel, sequence: Sequence, origin: NodeId) -> Id {
        let qtype = QType::Sequence(sequence.element_type().clone().into());
        self.pass(model, CompileTimeOperand::Sequence(Rc::new(sequence)), qtype, origin)
    }

    /// Makes the typed nodes for an operator on functions or sequences; `None` if there is a problem, which was reported.
    pub(super) fn instantiate(
        &mut self,
        model: &mut TypedModel,
        node: NodeId,
        op: OpId,
        make: fn(&mut dyn Instantiation, &[NodeHandle]) -> Result<NodeHandle, ExpansionError>,
        operands: &[Id],
    ) -> Option<Id> {
        let def = self.registry.get(op);
        let types: Vec<QType> = operands.iter().map(|o| model.graph.qtype(*o).clone()).collect();
        let made = def.check_count(operands.len()).map_err(ExpansionError::Fault).and_then(|()| {
            let args: SmallVec<[NodeHandle; 4]> = operands.iter().map(|id| NodeHandle(id.index() as u32)).collect();
            make(&mut Instance { typer: self, model, node }, &args)
        });
        match made {
            Ok(made) => Some(Id::from_index(made.0 as usize)),
            Err(ExpansionError::Fault(fault)) => {
                self.fault(node, &fault, &types, false);
                None
            }
            Err(ExpansionError::Reported) => None,
        }
    }

    /// Types the call of a function with arguments, for the node `node` of the program.
    pub(super) fn call(
        &mut self,
        model: &mut TypedModel,
        node: NodeId,
        function: Id,
        arguments: &[Id],
    ) -> Result<Id, ExpansionError> {
        let passed = match model.graph.kind(function) {
            Kind::CompileTime(at) => self.functions.passed.get(at as usize).cloned(),
            _ => None,
        };
        match passed {
            Some(CompileTimeOperand::Operator(op)) => self.call_operator(model, node, op, arguments),
            Some(CompileTimeOperand::Lambda { node: lambda, environment }) => {
                let (graph, operands) = (self.graph, self.graph.operands(lambda));
                let parameters = &operands[1..];
                if parameters.len() != arguments.len() {
                    let (takes, given) = (parameters.len(), arguments.len());
                    let message = format!("the function takes {takes} arguments and is given {given}");
                    let problem = Diagnostic::new(Code::Arguments, message).at(graph.span(node));
                    self.report(
                        node,
                        match graph.span(lambda) {
                            Some(span) => problem.also(span, "the function"),
                            None => problem,
                        },
                    );
                    return Err(ExpansionError::Reported);
                }
                if self.functions.calls.len() >= self.limits.nesting.min(NESTING) {
                    return Err(too_much(format!("functions call functions more than {NESTING} levels deep")));
                }
                self.functions.instantiated = self.functions.instantiated.saturating_add(CALL + arguments.len());
                self.functions.environments.push(Environment {
                    parent: environment,
                    arguments: parameters.iter().copied().zip(arguments.iter().copied()).collect(),
                    typed: FxHashMap::default(),
                    homes: FxHashMap::default(),
                });
                let inside = EnvironmentId(self.functions.environments.len() as u32);
                self.functions.calls.push(node);
                let made = self.evaluate(model, inside, operands[0]);
                self.functions.calls.pop();
                made
            }
            Some(CompileTimeOperand::Sequence(_)) | None => {
                let found = model.graph.qtype(function);
                let fault = TypeFault::mismatch(format!("a function is expected, found {found}"), None);
                Err(fault.hint("write a function as `fn(x) = ..`, or name an operator, as `math.add`").into())
            }
        }
    }

    /// Calls an operator that was passed as an operand. Arguments with defaults may be left out.
    fn call_operator(
        &mut self,
        model: &mut TypedModel,
        node: NodeId,
        op: OpId,
        arguments: &[Id],
    ) -> Result<Id, ExpansionError> {
        let def = self.registry.get(op);
        let mut operands: SmallVec<[Id; 4]> = arguments.into();
        while let Some(default) = def.params.get(operands.len()).and_then(|param| param.default.clone()) {
            operands.push(model.graph.literal(default, node));
        }
        let mut instance = Instance { typer: self, model, node };
        let args: SmallVec<[NodeHandle; 4]> = operands.iter().map(|id| NodeHandle(id.index() as u32)).collect();
        let made = instance.apply_operator(op, &args).map(|made| Id::from_index(made.0 as usize))?;
        // As for a node of the program, because repeated application of an operator can make types that grow.
        self.admit(model, made).map_err(exceeded)?;
        Ok(made)
    }

    /// Reports a problem of the node `node`, with the calls that led to it. An error in a function occurs in each call of the function. So a problem
    /// that was reported for one call is not reported for another call.
    pub(super) fn report(&mut self, node: NodeId, problem: Diagnostic) {
        // A limit is reported only once, wherever it is exceeded.
        let known = |other: &Diagnostic| {
            let is_limit = problem.code() == Code::Limit;
            let told = |one: &Diagnostic| (one.code(), one.message().to_owned());
            let place = |one: &Diagnostic| (one.span(), one.label_text().to_owned());
            // Calls are shown after the other places.
            let is_here = place(other) == place(&problem) && other.others().starts_with(problem.others());
            (is_limit || is_here) && told(other) == told(&problem)
        };
        if !self.has_room() {
            return;
        }
        let running = &self.functions.calls;
        let running: Vec<_> = running.iter().map(|call| (*call, self.graph.span(*call))).collect();
        let calls =
            self.graph.calls().map_or(&Calls::default(), Arc::as_ref).leading_to(node, &running, problem.span());
        let is_inside = problem.code() == Code::Limit || !running.is_empty() || !calls.is_empty();
        if !(is_inside && self.problems.iter().any(known)) {
            let shown = calls.into_iter().fold(problem, |problem, call| problem.also(call.span, call.text));
            self.problems.push(shown);
        }
    }
}
