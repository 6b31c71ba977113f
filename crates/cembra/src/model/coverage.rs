//! Which branches of a model its tests take. The conditions are evaluated beside the tests, as outputs of a program of their own;
//! then the graph is walked from the outputs of the test down, through the branches that are chosen. What runs models knows nothing
//! of it.

use crate::Backend;
use crate::model::model_tests::row_of;
use crate::{Cancellation, Executor, Model, Options, RunOptions, Session};
use cembra_expr::{Graph, Input, ModelTest, Node, NodeId, Output, Program, TestCase, place_within};
use cembra_ops::{OpId, Registry, id};
use cembra_runtime::Scalar;
use cembra_value::{ScalarValue, Span, Value};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;

/// A branch: a side of a conditional, or of `??`, `and` or `or`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Branch {
    /// Where it stands; all of the conditional, if its value stands somewhere else.
    pub span: Span,
    /// Whether some case of some test takes it.
    pub is_taken: bool,
    /// What is to be said of it if none does.
    pub untaken: &'static str,
}

/// An operator whose first operand decides which others matter.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Choice {
    Where,
    Default,
    And,
    Or,
}

impl Choice {
    fn of(op: OpId) -> Option<Choice> {
        match op {
            id::SHORT_WHERE | id::WHERE => Some(Choice::Where),
            id::PRESENCE_OR => Some(Choice::Default),
            id::AND => Some(Choice::And),
            id::OR => Some(Choice::Or),
            _ => None,
        }
    }

    /// What is to be said of its sides if they are not taken.
    const fn untaken(self) -> [&'static str; 2] {
        match self {
            Choice::Where => ["the `then` branch is never taken", "the `else` branch is never taken"],
            Choice::Default => ["the left side of `??` is never taken", "the right side of `??` is never taken"],
            Choice::And => ["the left side of `and` always holds", "the right side of `and` is never reached"],
            Choice::Or => ["the left side of `or` never holds", "the right side of `or` is never reached"],
        }
    }

    /// The operand that is chosen on each side. The first is the condition, which is always evaluated.
    fn operands(self, operands: &[NodeId]) -> Option<[NodeId; 2]> {
        match (self, operands) {
            (Choice::Where, &[_, one, other]) => Some([one, other]),
            (Choice::Default | Choice::And | Choice::Or, &[one, other]) => Some([one, other]),
            _ => None,
        }
    }

    /// The sides that a condition of this value takes: of an array, those that some element takes.
    fn sides(self, condition: &Value) -> [bool; 2] {
        let is_boolean = condition.qtype().scalar() == Some(Scalar::Boolean);
        let first = |element: Option<ScalarValue>| match (self, element) {
            (Choice::Where | Choice::Or, element) => element.is_some_and(|value| value != ScalarValue::Boolean(false)),
            (Choice::Default, element) => element.is_some(),
            // A boolean that is missing leaves it to the other side.
            (Choice::And, None) => !is_boolean,
            (Choice::And, Some(value)) => value == ScalarValue::Boolean(false),
        };
        match condition {
            Value::Array(_, array) => array.iter().fold([false; 2], |[one, other], element| {
                let first = first(element);
                [one | first, other | !first]
            }),
            Value::Scalar(value) | Value::Present(value) => {
                let first = first(Some(value.clone()));
                [first, !first]
            }
            // What is no scalar is there.
            Value::Missing(_) | Value::Nothing => [first(None), !first(None)],
            _ => [true, false],
        }
    }
}

impl Model {
    /// Which branches of the model the tests of its text take: the two sides of each conditional, `??` (or `|`), `and` and `or` that
    /// some output needs. A side counts as taken if what comes of a case depends on it; for arrays, if that of some element does. A
    /// function has its branches once, however often it is called. Not counted are branches in functions that are given to
    /// operators, as to `seq.map`; nor, in a large model, what a case takes within very many conditions that fail in it and are made of
    /// each other. Whether the tests pass, and what fails in branches that are not taken, is of no effect.
    ///
    /// ```
    /// use cembra::{Model, Options};
    ///
    /// let model = Model::parse(
    ///     "input n: i32?
    ///      output share = if has(n) then 100 // n else 0
    ///      test 'a share' { n = 5 } => { share = 20 }",
    /// )?;
    /// let branches = model.test_coverage(&Options::default());
    /// assert_eq!(branches.iter().filter(|branch| branch.is_taken).count(), 1);
    /// let missed = branches.iter().find(|branch| !branch.is_taken).unwrap();
    /// assert_eq!(missed.untaken, "the `else` branch is never taken");
    /// assert_eq!(&model.source().unwrap()[missed.span.start as usize..][..1], "0");
    /// # Ok::<(), cembra::Error>(())
    /// ```
    #[must_use]
    pub fn test_coverage(&self, options: &Options) -> Vec<Branch> {
        self.test_coverage_with(options, &RunOptions::default())
    }

    /// What the cases take likewise, within run options. What is left when a token or a deadline ends it takes nothing.
    #[must_use]
    pub fn test_coverage_with(&self, options: &Options, run: &RunOptions) -> Vec<Branch> {
        let token = run.token();
        let options = options.clone().backend(Backend::Interpreter);
        // A program whose exports are wrong does not compile, so that no test takes anything.
        let Ok(program) = self.selected(&self.started(&options)) else { return Vec::new() };
        let registry = options.compile.registry.unwrap_or(self.registry());
        let mut branches = Branches::of(&program, registry);
        for test in self.tests() {
            if token.as_ref().is_some_and(Cancellation::is_cancelled) {
                break;
            }
            let Ok(options) = self.options_for(test, &options) else { continue };
            let Ok(tested) = self.selected(&self.started(&options)) else { continue };
            let roots: Vec<NodeId> = tested.outputs.iter().map(|output| output.node).collect();
            branches.take(self, &options, &program, &roots, test, token.as_ref());
        }
        branches.coverage()
    }
}

/// A conditional of the text: where it stands, and what it is. Calls of a function have those of its body.
type Conditional = (Span, Choice);

/// The branches of a program, and what is known of them.
struct Branches<'p> {
    graph: &'p Graph,
    /// What each node chooses by, and what is chosen.
    choices: Vec<Option<(Choice, [NodeId; 2])>>,
    /// The conditionals, each with its two branches; none if nothing can be said of them.
    places: BTreeMap<Conditional, Option<[Branch; 2]>>,
}

impl<'p> Branches<'p> {
    fn of(program: &'p Program, registry: &Registry) -> Self {
        let graph = &program.graph;
        let needed = graph.reachable(program.outputs.iter().map(|output| output.node));
        // What depends on the parameter of a function has no value; a function has one.
        let mut is_open: Vec<bool> = Vec::with_capacity(graph.len());
        let mut branches = Branches { graph, choices: Vec::with_capacity(graph.len()), places: BTreeMap::new() };
        for node in (0..graph.len()).map(NodeId::from_index) {
            let (mut open, mut choice) = (false, None);
            match graph.node(node) {
                Node::Placeholder(_) => open = true,
                Node::Operator(name, operands) => {
                    let op = registry.find(graph.name(name));
                    open = op != Some(id::LAMBDA) && operands.iter().any(|operand| is_open[operand.index()]);
                    let found = op.filter(|_| !open && needed[node.index()]).and_then(Choice::of);
                    choice = found.and_then(|choice| Some((choice, choice.operands(operands)?)));
                }
                Node::Leaf(_) | Node::Literal(_) => {}
            }
            is_open.push(open);
            branches.choices.push(choice);
            if let (Some((choice, sides)), Some(whole)) = (choice, graph.span(node)) {
                let branch = |side: usize| Branch {
                    span: place_within(graph, sides[side], whole).unwrap_or(whole),
                    is_taken: false,
                    untaken: choice.untaken()[side],
                };
                branches.places.entry((whole, choice)).or_insert_with(|| Some([branch(0), branch(1)]));
            }
        }
        branches
    }

    /// Notes the branches that the cases of a test take, whose outputs are these; how many nodes were compiled for it.
    fn take(
        &mut self,
        model: &Model,
        options: &Options,
        program: &Program,
        roots: &[NodeId],
        test: &ModelTest,
        token: Option<&Cancellation>,
    ) -> usize {
        let needed = self.graph.reachable(roots.iter().copied());
        let chosen = (0..self.graph.len()).map(NodeId::from_index);
        let chosen = chosen.filter(|node| needed[node.index()] && self.choices[node.index()].is_some());
        let mut conditions: Vec<NodeId> =
            chosen.filter_map(|node| self.graph.operands(node).first().copied()).collect();
        conditions.sort_unstable();
        conditions.dedup();
        let mut conditions = Conditions { token, ..Conditions::new(model, options, program, conditions) };
        for case in &test.cases {
            if token.is_some_and(Cancellation::is_cancelled) {
                break;
            }
            conditions.begin();
            self.walk(roots, &mut conditions, case);
        }
        conditions.compiled_nodes
    }

    /// Walks through the branches that the conditions choose in a case.
    fn walk(&mut self, roots: &[NodeId], conditions: &mut Conditions<'_>, case: &TestCase) {
        let mut reached = vec![false; self.graph.len()];
        for root in roots {
            if let Some(reached) = reached.get_mut(root.index()) {
                *reached = true;
            }
        }
        for node in (0..self.graph.len()).rev().map(NodeId::from_index) {
            if !reached[node.index()] {
                continue;
            }
            let operands = self.graph.operands(node);
            let (Some((choice, sides)), Some(condition)) = (self.choices[node.index()], operands.first()) else {
                operands.iter().for_each(|operand| reached[operand.index()] = true);
                continue;
            };
            reached[condition.index()] = true;
            let place = self.graph.span(node).and_then(|whole| self.places.get_mut(&(whole, choice)));
            match conditions.value(*condition, case) {
                ConditionValue::Value(value) => {
                    let taken = choice.sides(value);
                    for (side, _) in taken.into_iter().enumerate().filter(|(_, taken)| *taken) {
                        reached[sides[side].index()] = true;
                    }
                    if let Some(Some(branches)) = place {
                        branches.iter_mut().zip(taken).for_each(|(branch, taken)| branch.is_taken |= taken);
                    }
                }
                ConditionValue::Failed | ConditionValue::Unasked => {}
                ConditionValue::Never => {
                    if let Some(branches) = place {
                        *branches = None;
                    }
                }
            }
        }
    }

    fn coverage(self) -> Vec<Branch> {
        let mut branches: Vec<Branch> = self.places.into_values().flatten().flatten().collect();
        branches.sort_by_key(|branch| (branch.span.start, std::cmp::Reverse(branch.span.end)));
        branches
    }
}

/// How often a model is compiled for the conditions of a test, all parts together. Conditions that fail and are made of each other take a
/// part each that is nearly all of the model; those asked for behind this count as failed too.
const MOST_TIMES: usize = 64;

/// Models of no more nodes than this are nothing to save on.
const FEW_NODES: usize = 4_096;

/// The value of a condition in a case.
#[derive(Clone)]
enum ConditionValue {
    /// Nothing yet.
    Unasked,
    Value(Value),
    /// It fails, or the case does not fit.
    Failed,
    /// It is nothing that has a value by itself.
    Never,
}

/// The conditions of what a test evaluates.
struct Conditions<'m> {
    model: &'m Model,
    options: &'m Options,
    program: &'m Program,
    /// The inputs of the program by name.
    inputs: HashMap<&'m str, &'m Input>,
    /// In the order of the graph.
    nodes: Vec<NodeId>,
    /// For ranges of the conditions what evaluates them; nothing if that does not compile.
    executors: HashMap<Range<usize>, Option<(Executor, Session)>>,
    /// What is known of each in the case that is walked through.
    known: Vec<ConditionValue>,
    /// The ranges that fail in this case.
    failed: HashSet<Range<usize>>,
    /// How many nodes were compiled, for all ranges together.
    compiled_nodes: usize,
    /// What ends evaluations.
    token: Option<&'m Cancellation>,
}

impl<'m> Conditions<'m> {
    fn new(model: &'m Model, options: &'m Options, program: &'m Program, nodes: Vec<NodeId>) -> Self {
        let inputs = program.inputs.iter().map(|input| (&*input.name, input)).collect();
        let (known, executors, failed) = (Vec::new(), HashMap::new(), HashSet::new());
        Conditions { model, options, program, inputs, nodes, executors, known, failed, compiled_nodes: 0, token: None }
    }

    /// Forgets what is known, for another case.
    fn begin(&mut self) {
        self.known = vec![ConditionValue::Unasked; self.nodes.len()];
        self.failed.clear();
    }

    /// What is known of a condition. All are evaluated at once where none fails. Where some do, only the half with the one that is
    /// asked for is evaluated, and a half of that, so that those that fail are left alone; what stands below one that fails is not
    /// asked for. Each range is a program of no more than it needs, so that it takes little where very many fail together.
    fn value(&mut self, node: NodeId, case: &TestCase) -> &ConditionValue {
        let Ok(at) = self.nodes.binary_search(&node) else { return &ConditionValue::Failed };
        let mut range = 0..self.nodes.len();
        while matches!(self.known[at], ConditionValue::Unasked) {
            // Of all that would be evaluated only that the time is over would be found.
            if self.token.is_some_and(Cancellation::is_cancelled) {
                return &ConditionValue::Failed;
            }
            if !self.failed.contains(&range) {
                match self.evaluate(&range, case) {
                    Ok(values) => {
                        let known = &mut self.known[range];
                        known.iter_mut().zip(values).for_each(|(known, value)| *known = ConditionValue::Value(value));
                        break;
                    }
                    Err(why) if range.len() == 1 => self.known[at] = why,
                    Err(_) => {
                        self.failed.insert(range.clone());
                    }
                }
            }
            let middle = range.start + range.len() / 2;
            range = if at < middle { range.start..middle } else { middle..range.end };
        }
        &self.known[at]
    }

    /// The values of a range of the conditions.
    fn evaluate(&mut self, range: &Range<usize>, case: &TestCase) -> Result<Vec<Value>, ConditionValue> {
        if !self.executors.contains_key(range) {
            if self.compiled_nodes > MOST_TIMES * (self.program.graph.len() + FEW_NODES) {
                return Err(ConditionValue::Failed);
            }
            let made = self.compile(range);
            self.executors.insert(range.clone(), made);
        }
        let made = self.executors.get_mut(range).and_then(Option::as_mut);
        let (executor, session) = made.ok_or(ConditionValue::Never)?;
        let row = row_of(case, executor).map_err(|_| ConditionValue::Failed)?;
        session.evaluate(&row).map_err(|_| ConditionValue::Failed)
    }

    /// What evaluates a range of the conditions: a program of them alone.
    fn compile(&mut self, range: &Range<usize>) -> Option<(Executor, Session)> {
        let (graph, nodes) = self.program.graph.part(self.nodes.get(range.clone())?);
        self.compiled_nodes += graph.len();
        let leaves = (0..graph.len()).filter_map(|at| match graph.node(NodeId::from_index(at)) {
            Node::Leaf(name) => self.inputs.get(&**graph.name(name)).map(|input| Input::clone(input)),
            _ => None,
        });
        let inputs = leaves.collect();
        let names: Vec<String> = range.clone().map(|at| format!("condition {at}")).collect();
        let output = |(name, node): (&String, &NodeId)| Output { name: name.as_str().into(), node: *node, span: None };
        let outputs = names.iter().zip(&nodes).map(output).collect();
        let externs = self.program.externs.clone();
        let asked = Program { graph, inputs, externs, outputs, ..Program::default() };
        let executor = self.model.with_program(asked).compile(&self.options.clone().outputs(names)).ok()?;
        let mut session = executor.session();
        session.set_cancellation(self.token.cloned());
        Some((executor, session))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many nodes are compiled to find the coverage of a text with one test, and how many branches are taken.
    fn work(text: &str) -> (usize, usize) {
        work_within(text, None)
    }

    /// The same within a token.
    fn work_within(text: &str, token: Option<&Cancellation>) -> (usize, usize) {
        let model = Model::parse(text).expect("a model");
        let options = Options::default().backend(Backend::Interpreter);
        let program = model.selected(&model.started(&options)).expect("a program");
        let mut branches = Branches::of(&program, Registry::standard());
        let roots: Vec<NodeId> = program.outputs.iter().map(|output| output.node).collect();
        let compiled = branches.take(&model, &options, &program, &roots, &model.tests()[0], token);
        (compiled, branches.coverage().iter().filter(|branch| branch.is_taken).count())
    }

    /// An evaluation that its token ended says nothing about the condition, so that no part of the range is compiled.
    #[test]
    fn nothing_is_halved_once_the_token_ended() {
        let lines: String = (1..=1_000).map(|at| format!("output y{at} = if {at} // x > 0 then 1 else 2\n")).collect();
        let text = format!("input x: i32\n{lines}test 't' {{ x = 0 }} => {{ y1 = 1 }}\n");
        assert_eq!(work_within(&text, Some(&Cancellation::new())), work(&text));
        let model = Model::parse(&text).expect("a model");
        let options = Options::default().backend(Backend::Interpreter);
        let program = model.selected(&model.started(&options)).expect("a program");
        let nodes: Vec<NodeId> = program.outputs.iter().map(|output| output.node).collect();
        let conditions: Vec<NodeId> = nodes.iter().map(|node| program.graph.operands(*node)[0]).collect();
        let token = Cancellation::new();
        let mut sorted = conditions.clone();
        sorted.sort_unstable();
        let mut asked = Conditions { token: Some(&token), ..Conditions::new(&model, &options, &program, sorted) };
        let case = &model.tests()[0].cases[0];
        asked.begin();
        token.cancel();
        for condition in conditions {
            assert!(matches!(asked.value(condition, case), ConditionValue::Failed));
        }
        assert_eq!(asked.compiled_nodes, 0);
    }

    #[test]
    fn work_is_nearly_linear_where_conditions_fail_together() {
        let text = |line: &dyn Fn(usize) -> String, count: usize, x: i32| {
            let lines: String = (1..=count).map(line).collect();
            format!("input x: i32\nlet a0 = 1\n{lines}output y = a{count}\ntest 't' {{ x = {x} }} => {{ }}\n")
        };
        let nested = |at: usize| format!("let a{at} = if {at} // x > 0 then a{} else {at}\n", at - 1);
        // Where none fails, all are compiled once: the input, 0, and for each a number, a quotient and a comparison.
        assert_eq!(work(&text(&nested, 1_000, 1)), (3_002, 1_000));
        // The outermost fails, and no other is asked for: halves of halves.
        assert_eq!([250, 1_000].map(|count| work(&text(&nested, count, 0))), [(1_521, 0), (6_025, 0)]);
        // Each is asked for, is nearly all of the model, and is left alone at last.
        let within = |at: usize| match at {
            1 => "let a1 = 1 // x\n".to_owned(),
            _ => format!("let a{at} = if a{} > 0 then a{} + 1 else {at}\n", at - 1, at - 1),
        };
        let (compiled, taken) = work(&text(&within, 2_000, 0));
        assert!(compiled < 65 * (8_100 + FEW_NODES) && taken == 0, "{compiled}");
        // Each is asked for, and so is each half: as many as they are, times how often they are halved.
        let side_by_side = |at: usize| format!("output y{at} = if {at} // x > 0 then 1 else {at}\nlet a{at} = 1\n");
        assert_eq!([250, 1_000].map(|count| work(&text(&side_by_side, count, 0))), [(7_730, 0), (36_926, 0)]);
    }
}
