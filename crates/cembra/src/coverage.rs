//! Which branches of a model its tests take. The conditions are evaluated beside the tests, as outputs of a program of their own;
//! then the graph is walked from the outputs of the test down, through the branches that are chosen. What runs models knows nothing
//! of it.

use crate::choice::Backend;
use crate::model_tests::row_of;
use crate::{Executor, Model, Options, Session};
use cembra_expr::{Graph, ModelTest, Node, NodeId, Output, Program, TestCase, place_within};
use cembra_ops::{OpId, Registry, id};
use cembra_runtime::Scalar;
use cembra_value::{ScalarValue, Span, Value};
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

/// Which branches of a model its tests take.
#[derive(Clone, Debug, Default)]
pub struct Coverage {
    /// The branches, in the order of the text.
    pub branches: Vec<Branch>,
}

impl Coverage {
    /// How many of the branches are taken.
    #[must_use]
    pub fn taken(&self) -> usize {
        self.branches.iter().filter(|branch| branch.is_taken).count()
    }
}

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
    /// operators, as to `seq.map`. Whether the tests pass, and what fails in branches that are not taken, is of no effect.
    ///
    /// ```
    /// use cembra::{Model, Options};
    ///
    /// let model = Model::parse(
    ///     "input n: i32?
    ///      output share = if has(n) then 100 // n else 0
    ///      test 'a share' { n = 5 } => { share = 20 }",
    /// )?;
    /// let coverage = model.test_coverage(&Options::default());
    /// assert_eq!((coverage.taken(), coverage.branches.len()), (1, 2));
    /// let missed = coverage.branches.iter().find(|branch| !branch.is_taken).unwrap();
    /// assert_eq!(missed.untaken, "the `else` branch is never taken");
    /// assert_eq!(&model.source().unwrap()[missed.span.start as usize..][..1], "0");
    /// # Ok::<(), cembra::Error>(())
    /// ```
    #[must_use]
    pub fn test_coverage(&self, options: &Options) -> Coverage {
        let options = options.clone().backend(Backend::Interpreter);
        // A program whose exports are wrong does not compile, so that no test takes anything.
        let Ok(program) = self.selected(&options) else { return Coverage::default() };
        let registry = options.registry.unwrap_or(self.registry());
        let mut branches = Branches::of(&program, registry);
        for test in self.tests() {
            let Ok(options) = self.options_for(test, &options) else { continue };
            let Ok(tested) = self.selected(&options) else { continue };
            let roots: Vec<NodeId> = tested.outputs.iter().map(|output| output.node).collect();
            branches.take(self, &options, &program, &roots, test);
        }
        branches.coverage()
    }
}

/// A conditional of the text: where it stands, and what it is. Calls of a function have those of its body.
type Place = (Span, Choice);

/// The branches of a program, and what is known of them.
struct Branches<'p> {
    graph: &'p Graph,
    /// What each node chooses by, and what is chosen.
    choices: Vec<Option<(Choice, [NodeId; 2])>>,
    /// The conditionals, each with its two branches; none if nothing can be said of them.
    places: BTreeMap<Place, Option<[Branch; 2]>>,
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

    /// Notes the branches that the cases of a test take, whose outputs are these.
    fn take(&mut self, model: &Model, options: &Options, program: &Program, roots: &[NodeId], test: &ModelTest) {
        let needed = self.graph.reachable(roots.iter().copied());
        let chosen = (0..self.graph.len()).map(NodeId::from_index);
        let chosen = chosen.filter(|node| needed[node.index()] && self.choices[node.index()].is_some());
        let mut conditions: Vec<NodeId> =
            chosen.filter_map(|node| self.graph.operands(node).first().copied()).collect();
        conditions.sort_unstable();
        conditions.dedup();
        let mut conditions = Conditions { model, options, program, nodes: conditions, executors: HashMap::new() };
        for case in &test.cases {
            let values = conditions.evaluate(case);
            self.walk(roots, &conditions.nodes, &values);
        }
    }

    /// Walks through the branches that conditions of these values choose.
    fn walk(&mut self, roots: &[NodeId], conditions: &[NodeId], values: &[Known]) {
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
            let value = conditions.binary_search(condition).ok().and_then(|at| values.get(at));
            let place = self.graph.span(node).and_then(|whole| self.places.get_mut(&(whole, choice)));
            match value {
                Some(Known::Value(value)) => {
                    let taken = choice.sides(value);
                    for (side, _) in taken.into_iter().enumerate().filter(|(_, taken)| *taken) {
                        reached[sides[side].index()] = true;
                    }
                    if let Some(Some(branches)) = place {
                        branches.iter_mut().zip(taken).for_each(|(branch, taken)| branch.is_taken |= taken);
                    }
                }
                Some(Known::Failed) | None => {}
                Some(Known::Never) => {
                    if let Some(branches) = place {
                        *branches = None;
                    }
                }
            }
        }
    }

    fn coverage(self) -> Coverage {
        let mut branches: Vec<Branch> = self.places.into_values().flatten().flatten().collect();
        branches.sort_by_key(|branch| (branch.span.start, std::cmp::Reverse(branch.span.end)));
        Coverage { branches }
    }
}

/// What is known of a condition in a case.
#[derive(Clone)]
enum Known {
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
    nodes: Vec<NodeId>,
    /// For ranges of the conditions what evaluates them; nothing if that does not compile.
    executors: HashMap<Range<usize>, Option<(Executor, Session)>>,
}

impl Conditions<'_> {
    /// The values of all conditions: at once, or of the halves of those that fail together, so that those that fail are left alone.
    fn evaluate(&mut self, case: &TestCase) -> Vec<Known> {
        let mut known = vec![Known::Failed; self.nodes.len()];
        let whole = 0..self.nodes.len();
        let mut ranges = vec![whole];
        while let Some(range) = ranges.pop() {
            if range.is_empty() {
                continue;
            }
            let failed = match self.executor(&range) {
                None => Known::Never,
                Some((executor, session)) => {
                    let row = row_of(case, executor).ok();
                    match row.and_then(|row| session.evaluate(&row).ok()) {
                        Some(values) => {
                            known[range].iter_mut().zip(values).for_each(|(known, value)| *known = Known::Value(value));
                            continue;
                        }
                        None => Known::Failed,
                    }
                }
            };
            if range.len() == 1 {
                known[range.start] = failed;
            } else {
                let middle = range.start + range.len() / 2;
                ranges.extend([range.start..middle, middle..range.end]);
            }
        }
        known
    }

    fn executor(&mut self, range: &Range<usize>) -> Option<&mut (Executor, Session)> {
        let Conditions { model, options, program, nodes, executors } = self;
        let made = executors.entry(range.clone()).or_insert_with(|| {
            let name = |node: &NodeId| format!("condition {}", node.index());
            let nodes = nodes.get(range.clone())?;
            let output = |node: &NodeId| Output { name: name(node).into(), node: *node, span: None };
            let asked = Program { outputs: nodes.iter().map(output).collect(), ..Program::clone(program) };
            let options = Options::clone(options).outputs(nodes.iter().map(name));
            let executor = model.with_program(asked).compile(&options).ok()?;
            let session = executor.session();
            Some((executor, session))
        });
        made.as_mut()
    }
}
