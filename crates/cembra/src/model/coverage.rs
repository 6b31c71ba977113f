//! Finds the branches of a model that its tests take. A separate program evaluates all conditions as outputs. Then the model's graph is walked from a
//! test's outputs through the branches that the conditions choose. So the code that evaluates models need not record branches.

use crate::Backend;
use crate::model::model_tests::row_of;
use crate::{Cancellation, Executor, Model, Options, RunOptions, Session};
use cembra_expr::{Graph, Input, ModelTest, Node, NodeId, Output, Program, TestCase, place_within};
use cembra_ops::{OpId, Registry, id};
use cembra_runtime::Scalar;
use cembra_value::{ScalarValue, Span, Value};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;

/// A branch of a model: one side of a conditional, or of `??`, `and` or `or`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Branch {
    /// The branch's place in the model's text. If the branch's value is written outside of the conditional, this is the place of the whole
    /// conditional.
    pub span: Span,
    /// True if a case of a test takes the branch.
    pub is_taken: bool,
    /// The message to show if no test takes the branch.
    pub untaken: &'static str,
}

/// The kind of an operator whose first operand decides which other operands are used: a conditional, `??`, `and` or `or`.
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

    /// Returns a message per side, for the case that no test takes the side.
    const fn untaken(self) -> [&'static str; 2] {
        match self {
            Choice::Where => ["the `then` branch is never taken", "the `else` branch is never taken"],
            Choice::Default => ["the left side of `??` is never taken", "the right side of `??` is never taken"],
            Choice::And => ["the left side of `and` always holds", "the right side of `and` is never reached"],
            Choice::Or => ["the left side of `or` never holds", "the right side of `or` is never reached"],
        }
    }

    /// Returns the operand on each side. The first operand of the node is the condition, which is always evaluated.
    fn operands(self, operands: &[NodeId]) -> Option<[NodeId; 2]> {
        match (self, operands) {
            (Choice::Where, &[_, one, other]) => Some([one, other]),
            (Choice::Default | Choice::And | Choice::Or, &[one, other]) => Some([one, other]),
            _ => None,
        }
    }

    /// Returns for each side whether the evaluation takes it if the condition has the value `condition`. For an array,
    /// a side counts if one of the elements takes it.
    fn sides(self, condition: &Value) -> [bool; 2] {
        let is_boolean = condition.qtype().scalar() == Some(Scalar::Boolean);
        let first = |element: Option<ScalarValue>| match (self, element) {
            (Choice::Where | Choice::Or, element) => element.is_some_and(|value| value != ScalarValue::Boolean(false)),
            (Choice::Default, element) => element.is_some(),
            // If the first operand is a missing boolean, the result of `and` depends on the second operand.
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
            // A value that is not a scalar is present.
            Value::Missing(_) | Value::Nothing => [first(None), !first(None)],
            _ => [true, false],
        }
    }
}

impl Model {
    /// Returns the branches of the model. Each branch tells whether a test takes it. Branches are the two sides of each conditional, `??` (or `|`),
    /// `and` and `or` that an output needs. A test case takes a side if the result of the case depends on the side. For an array, one element that
    /// depends on the side is enough. A function's branches count once, however often the function is called.
    ///
    /// Branches in functions that are passed to operators, such as `seq.map`, are not counted. In a large model with
    /// very many conditions whose evaluation fails, a taken branch may count as not taken. A test that fails takes
    /// branches too. An error in a branch that is not taken has no effect.
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

    /// Returns the branches of the model. Each branch tells whether a test takes it. The tests run with the options `run`. If a token or a deadline
    /// ends the run, the remaining test cases take no branches. See [`test_coverage`](Model::test_coverage).
    #[must_use]
    pub fn test_coverage_with(&self, options: &Options, run: &RunOptions) -> Vec<Branch> {
        let token = run.token();
        let options = options.clone().backend(Backend::Interpreter);
        // A program with wrong exports does not compile, so its tests take no branches.
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

/// A conditional in the text: its place and its kind. All calls of a function share the conditionals of its body.
type Conditional = (Span, Choice);

/// The branches of a program, and which of them were taken so far.
struct Branches<'p> {
    graph: &'p Graph,
    /// For each node that chooses between operands: the kind of choice, and the two operands.
    choices: Vec<Option<(Choice, [NodeId; 2])>>,
    /// The two branches of each conditional in the text; `None` if its branches cannot be evaluated.
    places: BTreeMap<Conditional, Option<[Branch; 2]>>,
}

impl<'p> Branches<'p> {
    fn of(program: &'p Program, registry: &Registry) -> Self {
        let graph = &program.graph;
        let needed = graph.reachable(program.outputs.iter().map(|output| output.node));
        // A node that depends on a function's parameter has no single value. The function itself is a value.
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

    /// Marks the branches that the cases of a test take. `roots` are the test's outputs. Returns the number of nodes that were compiled for this.
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

    /// Marks the branches that the test case `case` takes. Follows the operands from `roots`, the test's outputs, but
    /// of a conditional only the condition and the branches taken.
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

/// The most nodes that are compiled for the conditions of one test, as a multiple of the model's nodes. To evaluate the
/// other conditions without a failing one, nearly the whole model may have to be compiled again. Beyond the limit, the
/// remaining conditions count as failed.
const MOST_TIMES: usize = 64;

/// The nodes added to a model's size before [`MOST_TIMES`] multiplies it, so that the limit does not affect small models.
const FEW_NODES: usize = 4_096;

/// The value of a condition in the current test case.
#[derive(Clone)]
enum ConditionValue {
    /// The condition has no value yet, because it was not evaluated.
    Unasked,
    Value(Value),
    /// The condition has no value, because the evaluation failed or the test case does not fit the model.
    Failed,
    /// The condition has no single value, because it depends on a function's parameter.
    Never,
}

/// The conditions that the outputs of a test depend on.
struct Conditions<'m> {
    model: &'m Model,
    options: &'m Options,
    program: &'m Program,
    /// The inputs of the program, by name.
    inputs: HashMap<&'m str, &'m Input>,
    /// The nodes of the conditions, in the order of the graph.
    nodes: Vec<NodeId>,
    /// The executors for ranges of the condition list; `None` for a range that does not compile.
    executors: HashMap<Range<usize>, Option<(Executor, Session)>>,
    /// The values of all conditions in the current test case.
    known: Vec<ConditionValue>,
    /// The ranges of the condition list that fail in the current test case.
    failed: HashSet<Range<usize>>,
    /// The number of nodes that were compiled, over all ranges.
    compiled_nodes: usize,
    /// The token that ends evaluations of conditions; `None` if there is none.
    token: Option<&'m Cancellation>,
}

impl<'m> Conditions<'m> {
    fn new(model: &'m Model, options: &'m Options, program: &'m Program, nodes: Vec<NodeId>) -> Self {
        let inputs = program.inputs.iter().map(|input| (&*input.name, input)).collect();
        let (known, executors, failed) = (Vec::new(), HashMap::new(), HashSet::new());
        Conditions { model, options, program, inputs, nodes, executors, known, failed, compiled_nodes: 0, token: None }
    }

    /// Discards the values of the last test case, before the next case.
    fn begin(&mut self) {
        self.known = vec![ConditionValue::Unasked; self.nodes.len()];
        self.failed.clear();
    }

    /// Returns the value of a condition. If no condition fails, all are evaluated at once. Otherwise the range is halved around the requested
    /// condition until the failing ones are outside; conditions below a failing one are not requested. Each range is compiled as a program of only
    /// the nodes that it needs. That keeps the cost low if very many conditions fail.
    fn value(&mut self, node: NodeId, case: &TestCase) -> &ConditionValue {
        let Ok(at) = self.nodes.binary_search(&node) else { return &ConditionValue::Failed };
        let mut range = 0..self.nodes.len();
        while matches!(self.known[at], ConditionValue::Unasked) {
            // After cancellation, an evaluation would only report that it was cancelled.
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

    /// Evaluates the conditions with the indices `range` in one program, on the inputs of `case`. If one of them fails,
    /// all of them have no value.
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

    /// Compiles a range of the conditions as a program of its own; `None` if that fails.
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

    /// Returns the numbers of compiled nodes and taken branches when the coverage of a text is measured with one test.
    fn work(text: &str) -> (usize, usize) {
        work_within(text, None)
    }

    /// Returns the numbers of [`work`], measured within a cancellation token.
    fn work_within(text: &str, token: Option<&Cancellation>) -> (usize, usize) {
        let model = Model::parse(text).expect("a model");
        let options = Options::default().backend(Backend::Interpreter);
        let program = model.selected(&model.started(&options)).expect("a program");
        let mut branches = Branches::of(&program, Registry::standard());
        let roots: Vec<NodeId> = program.outputs.iter().map(|output| output.node).collect();
        let compiled = branches.take(&model, &options, &program, &roots, &model.tests()[0], token);
        (compiled, branches.coverage().iter().filter(|branch| branch.is_taken).count())
    }

    /// An evaluation that its token ended does not decide a condition, so no part of the range is compiled.
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
        // If no condition fails, every node is compiled once: the input, 0, and for each condition a number, a quotient and a comparison.
        assert_eq!(work(&text(&nested, 1_000, 1)), (3_002, 1_000));
        // The outermost condition fails, so no other is requested. Each range around it that is compiled is half of the
        // previous one.
        assert_eq!([250, 1_000].map(|count| work(&text(&nested, count, 0))), [(1_521, 0), (6_025, 0)]);
        // Every condition is requested, and needs nearly all of the model. Compilation ends at the limit `MOST_TIMES`.
        let within = |at: usize| match at {
            1 => "let a1 = 1 // x\n".to_owned(),
            _ => format!("let a{at} = if a{} > 0 then a{} + 1 else {at}\n", at - 1, at - 1),
        };
        let (compiled, taken) = work(&text(&within, 2_000, 0));
        assert!(compiled < 65 * (8_100 + FEW_NODES) && taken == 0, "{compiled}");
        // Every condition is requested, and all ranges fail. So each level of halving compiles all conditions once.
        let side_by_side = |at: usize| format!("output y{at} = if {at} // x > 0 then 1 else {at}\nlet a{at} = 1\n");
        assert_eq!([250, 1_000].map(|count| work(&text(&side_by_side, count, 0))), [(7_730, 0), (36_926, 0)]);
    }
}
