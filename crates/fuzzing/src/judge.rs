//! The judge checks the properties that must hold for a program and its rows, for every backend and every set of passes.
//!
//! - The registry's typing and the library agree on whether the program is well-typed. If it is not, all backends reject it with the same error.
//!   Nothing panics.
//! - The program prints as text, and the text parses to an equal program with the same plan. The plan passes the verifier.
//! - All backends return the same bits or the same fault (kind, operator, place, message), row by row, for every set of options tried. A row's answer
//!   does not depend on the rows before it. A tiered backend changes tiers between rows.
//! - Inputs and outputs may be in the caller's structs instead of the frame. A loader may supply the inputs on demand. The loader is asked for each
//!   input at most once, and only for inputs that direct evaluation of the graph reads.
//! - Programs on requests give the same answers for JSON and for Rust structs.
//! - Strict optimisation changes no value. It may make an evaluation lazier: if the unoptimised program faults, the optimised program may have a
//!   value or another fault. If the unoptimised program has a value, the optimised program has the same value. The same holds for a program that
//!   computes only some of the outputs, compared with all of them.
//! - A value equals the value from direct evaluation of the graph (see `direct`). If direct evaluation has values, the program does not fault. A
//!   program that is not optimised faults wherever direct evaluation faults.
//!
//! Not checked, and why:
//!
//! - Direct evaluation is as lazy as possible. A backend guards a value that several branches share, so that the value is computed only if a chosen
//!   branch needs it. The guard is exact only if it does not need the value itself. A program in which a guard needs its value
//!   (`direct::is_entangled`) may fault where direct evaluation has values, or read more inputs. The report counts such rows.
//! - Faults of limits are compared between backends, but not with direct evaluation, which has no limits.
//! - The kind of a fault may depend on the passes, because they change the order of steps.
//! - The registry's typing does not check literal formats. A program that preparation rejects because of one counts as ill-typed.

use crate::direct;
use crate::edit::{operator, types};
use crate::in_place;
use crate::loaded::{self, LoadedAnswer};
use crate::panics::caught;
use crate::requests::{self, Requests};
use crate::subject::{Answer, Failure, Kind, Row, Subjects, hidden_difference, same, shown};
use crate::values::has_arrays;
use cembra::explain::print;
use cembra::native::Tier;
use cembra::{Backend, Model, Options};
use cembra_expr::{NodeId, Program};
use cembra_ops::{Meaning, Registry};
use cembra_plan::Plan;
use cembra_prepare::{Mode, PASSES};
use cembra_runtime::FaultKind;
use cembra_value::{Budget, Limits, Value};

/// A set of options, different from the default options, under which a program is also judged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Variant {
    Compat,
    WithoutFold,
    WithoutOptimise,
    Plain,
}

impl Variant {
    pub(crate) const ALL: [Variant; 4] =
        [Variant::Compat, Variant::WithoutFold, Variant::WithoutOptimise, Variant::Plain];

    fn name(self) -> &'static str {
        match self {
            Variant::Compat => "compat",
            Variant::WithoutFold => "without fold",
            Variant::WithoutOptimise => "without optimise",
            Variant::Plain => "without the optional passes",
        }
    }

    fn left_out(self) -> Vec<&'static str> {
        match self {
            Variant::Compat => vec![],
            Variant::WithoutFold => vec!["fold"],
            Variant::WithoutOptimise => vec!["optimise"],
            Variant::Plain => PASSES.iter().filter(|pass| pass.optional).map(|pass| pass.name).collect(),
        }
    }

    fn options(self) -> Options {
        let options = Options::default().compat(self == Variant::Compat);
        self.left_out().into_iter().fold(options, |options, pass| options.without_pass(pass))
    }

    fn preparation(self) -> cembra_prepare::Options {
        let mode = if self == Variant::Compat { Mode::Compat } else { Mode::Strict };
        let without = self.left_out().into_iter().map(str::to_owned).collect();
        cembra_prepare::Options { mode, without, ..cembra_prepare::Options::default() }
    }
}

/// A program and its rows, with the settings of the test: limits, the tier of native code, and which additional runs are made.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) program: Program,
    pub(crate) rows: Vec<Row>,
    pub(crate) variant: Option<Variant>,
    /// The index of an output that is also computed alone, without the program's other outputs; `None` if no output is computed alone.
    pub(crate) alone: Option<usize>,
    /// True if the program is also run with inputs and outputs in the caller's structs.
    pub(crate) in_place: bool,
    /// The limits on the program's evaluation, and on the size of native functions.
    pub(crate) limits: Limits,
    /// The tier of native code that runs the program; for a tiered executor, the last tier.
    pub(crate) tier: Tier,
    /// True if the program is also run by an executor that changes tiers between rows.
    pub(crate) tiered: bool,
    /// True if the program is also run on all rows as one batch, by every backend of batches.
    pub(crate) batched: bool,
}

/// A law: a property that must hold for each program. The judge checks them all.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Law {
    NoPanic,
    WellTypedRuns,
    IllTypedIsRefused,
    PrintsAndParses,
    PlanIsSound,
    SameAnswers,
    RowsAreIndependent,
    OptimisingKeepsValues,
    OutputsAreIndependent,
    ValuesAreDirect,
    SameInPlace,
    AskedAsNeeded,
    SameAsRequests,
    PromisesHold,
}

impl Law {
    /// Returns the text with which reports describe a program that breaks this law.
    pub(crate) fn broken(self) -> &'static str {
        match self {
            Law::NoPanic => "a panic",
            Law::WellTypedRuns => "a well-typed program was refused",
            Law::IllTypedIsRefused => "an ill-typed program was not refused, or not in the same words",
            Law::PrintsAndParses => "the program's text does not read back as the program",
            Law::PlanIsSound => "the plan is not sound",
            Law::SameAnswers => "two backends, two answers",
            Law::RowsAreIndependent => "the same row gave two answers",
            Law::OptimisingKeepsValues => "an optimisation changed a value",
            Law::OutputsAreIndependent => "an output alone has another value",
            Law::SameInPlace => "bound to structs of the caller, a backend gives something else",
            Law::AskedAsNeeded => "a loader is asked for an input twice, or for one that is not needed",
            Law::SameAsRequests => "as a request, in JSON or a struct of Rust, a row has another answer",
            Law::PromisesHold => "an output that is said to be full has gaps",
            Law::ValuesAreDirect => "evaluating the graph directly gives something else",
        }
    }
}

/// A law (property that must hold) that a program breaks, with the differing answers that show it.
#[derive(Clone, Debug)]
pub(crate) struct Finding {
    pub(crate) law: Law,
    /// The name of the options under which the law is broken; empty for the default options.
    pub(crate) options: &'static str,
    pub(crate) row: Option<usize>,
    /// The names of the subjects (implementations) or checks whose results differ, each with its result as text.
    pub(crate) said: Vec<(String, String)>,
}

/// The judge's results for one program.
#[derive(Debug, Default)]
pub(crate) struct Verdict {
    pub(crate) finding: Option<Finding>,
    /// The answers (outputs or failure) of the reference subject under the default options, one per row.
    pub(crate) answers: Vec<Answer>,
    /// The plan of the program under the default options, and its plan under the variant's options.
    pub(crate) plans: Vec<Plan>,
    pub(crate) refused: bool,
    /// True if the program computes on arrays.
    pub(crate) of_arrays: bool,
    /// The number of rows that fault only because a backend evaluated a value that was not needed.
    pub(crate) eager: u64,
}

impl From<Finding> for Verdict {
    fn from(finding: Finding) -> Self {
        Verdict { finding: Some(finding), ..Verdict::default() }
    }
}

/// Returns true if the value of an answer is the same after a change. A fault may become a value.
fn kept(before: &Answer, after: &Answer) -> bool {
    before.is_err() || same(before, after)
}

/// Returns true for a fault of a limit, which direct evaluation does not have.
fn is_limit(answer: &Answer) -> bool {
    let limits = [FaultKind::ArenaLimit, FaultKind::IterationLimit, FaultKind::WorkLimit];
    answer.as_ref().is_err_and(|failure| limits.iter().any(|kind| kind.name() == failure.code))
}

fn finding(law: Law, options: &'static str, row: Option<usize>, said: &[(&str, String)]) -> Finding {
    let said = said.iter().map(|(who, what)| ((*who).to_owned(), what.clone())).collect();
    Finding { law, options, row, said }
}

/// Checks the laws for the program of `case` by running `subjects` (the implementations to compare). A panic also breaks a law.
pub(crate) fn judge(case: &Case, subjects: Subjects<'_>) -> Verdict {
    match caught(|| Trial { case, subjects }.verdict()) {
        Ok(Ok(verdict)) => verdict,
        Ok(Err(finding)) => finding.into(),
        Err(message) => finding(Law::NoPanic, "", None, &[("panic", message)]).into(),
    }
}

/// Parses any text; `None` if it is not a valid program. A panic of the parser is returned as a finding.
pub(crate) fn read(text: &str) -> Result<Option<Program>, Finding> {
    caught(|| cembra_expr::parse(text, Registry::standard(), &Limits::default()).ok())
        .map_err(|message| finding(Law::NoPanic, "", None, &[("panic", message)]))
}

/// Returns the result of compiling a program as text.
fn outcome(answers: &Result<Vec<Answer>, Failure>) -> String {
    match answers {
        Ok(_) => "compiled it".to_owned(),
        Err(failure) => failure.to_string(),
    }
}

struct Trial<'a> {
    case: &'a Case,
    subjects: Subjects<'a>,
}

impl Trial<'_> {
    fn verdict(&self) -> Result<Verdict, Finding> {
        let program = &self.case.program;
        if types(program).is_none() || self.is_refused_late() {
            return self.ill_typed();
        }
        let model = self.read_back()?;
        if self.kind() == Kind::Arrays {
            return self.verdict_on_arrays(&model);
        }
        let plan = self.plan(model.program(), None)?;
        let (read, made) = (plan.to_string(), self.plan(program, None)?.to_string());
        if read != made {
            let said = [("plan of the text", read), ("plan of the program", made)];
            return Err(finding(Law::PrintsAndParses, "", None, &said));
        }
        let defaults = Options::default().limits(self.case.limits).tier(self.case.tier);
        let answers = self.agreed(&model, &defaults, "")?;
        let prepared = direct::prepare(program);
        let entangled = prepared.as_ref().is_some_and(direct::is_entangled);
        let (direct, needed): (Vec<_>, Vec<_>) = prepared
            .iter()
            .flat_map(|prepared| self.case.rows.iter().map(|row| direct::evaluate(prepared, row).unzip()))
            .unzip();
        let may_fault = |answer: &Answer| is_limit(answer) || entangled && answer.is_err();
        self.compare_values(Law::ValuesAreDirect, "", "directly", &direct, &answers, |found, answer| {
            found.is_none() || may_fault(answer)
        })?;
        if self.case.in_place {
            for (name, found) in in_place::answers(&plan, &self.case.rows, &self.case.limits, self.case.tier) {
                self.compare_values(Law::SameInPlace, "", name, &found, &answers, |found, answer| {
                    found.is_none() && answer.is_err()
                })?;
            }
        }
        if self.case.in_place {
            for (name, found) in loaded::answers(&model, &defaults, &self.case.rows) {
                let (outputs, needless): (Vec<_>, Vec<_>) = found
                    .into_iter()
                    .enumerate()
                    .map(|(row, found)| {
                        let needed =
                            needed.get(row).and_then(Option::as_ref).filter(|_| !entangled && found.outputs.is_some());
                        let needless = found.needless(needed).cloned();
                        let LoadedAnswer { outputs, asked } = found;
                        (outputs, needless.map(|name| format!("{name} of {asked:?}")))
                    })
                    .unzip();
                self.compare_values(Law::SameInPlace, "", name, &outputs, &answers, |found, answer| {
                    found.is_none() && answer.is_err()
                })?;
                if let Some((row, Some(needless))) =
                    needless.into_iter().enumerate().find(|(_, needless)| needless.is_some())
                {
                    return Err(finding(Law::AskedAsNeeded, "", Some(row), &[(name, needless)]));
                }
            }
        }
        let mut plans = vec![plan];
        if let Some(variant) = self.case.variant {
            plans.push(self.plan(model.program(), Some(variant))?);
            let other = self.varied(&model, variant, &answers)?;
            if variant == Variant::Plain {
                let law = Law::ValuesAreDirect;
                self.compare_values(law, variant.name(), "directly", &direct, &other, |found, answer| {
                    found.is_none() && answer.is_err() || may_fault(answer)
                })?;
            }
        }
        self.alone(&model, defaults, &answers)?;
        let is_eager = |(direct, answer): &(&Option<Vec<Value>>, &Answer)| {
            direct.is_some() && answer.is_err() && !is_limit(answer)
        };
        let eager = direct.iter().zip(&answers).filter(is_eager).count();
        Ok(Verdict { answers, plans, eager: eager as u64, ..Verdict::default() })
    }

    /// Returns whether the program computes on arrays or only on scalars. An ill-typed program counts as one on scalars.
    fn kind(&self) -> Kind {
        let program = &self.case.program;
        let types = types(program).unwrap_or_default();
        // Operators see a dictionary literal, which needs no frame. A dictionary input is an array of keys and an array of values.
        let needed = program.inputs.iter().zip(program.needed_inputs()).filter(|(_, needed)| *needed);
        let given = needed.filter_map(|(input, _)| input.qtype.as_ref());
        if types.iter().flatten().chain(given).any(has_arrays) { Kind::Arrays } else { Kind::Scalars }
    }

    /// Judges a program on arrays. It has no plan, and is not evaluated directly.
    fn verdict_on_arrays(&self, model: &Model) -> Result<Verdict, Finding> {
        let defaults = Options::default().limits(self.case.limits).tier(self.case.tier);
        let answers = self.agreed(model, &defaults, "")?;
        self.promises(model, &defaults, &answers)?;
        let on = Requests { program: &self.case.program, rows: &self.case.rows, limits: self.case.limits };
        if requests::takes(&on, &types(&self.case.program).unwrap_or_default())
            && let Some((row, said)) = requests::difference(&on, model, &defaults, &answers)
        {
            return Err(Finding { law: Law::SameAsRequests, options: "", row: Some(row), said });
        }
        if let Some(variant) = self.case.variant {
            self.varied(model, variant, &answers)?;
        }
        self.alone(model, defaults, &answers)?;
        Ok(Verdict { answers, of_arrays: true, ..Verdict::default() })
    }

    /// Returns the answers with the options of a variant, and checks that they keep the values of `answers`. `Variant::Compat` may change values.
    fn varied(&self, model: &Model, variant: Variant, answers: &[Answer]) -> Result<Vec<Answer>, Finding> {
        let options = variant.options().limits(self.case.limits).tier(self.case.tier);
        let other = self.agreed(model, &options, variant.name())?;
        if variant != Variant::Compat {
            let said = [variant.name(), "optimised"];
            self.compare(Law::OptimisingKeepsValues, "", said, &other, answers, kept)?;
        }
        Ok(other)
    }

    /// Checks that the outputs keep the model's promises.
    fn promises(&self, model: &Model, options: &Options, answers: &[Answer]) -> Result<(), Finding> {
        let Ok(executor) = model.compile(&options.clone().backend(Backend::Interpreter)) else { return Ok(()) };
        for (row, answer) in answers.iter().enumerate().take(self.case.rows.len()) {
            let values = answer.as_deref().unwrap_or_default();
            let broken = executor.outputs().iter().zip(values).find_map(|(field, value)| {
                field.promise.check(value).err().map(|broken| format!("{}: {broken}", field.name))
            });
            if let Some(broken) = broken {
                let said = [("promise", broken), (self.subjects.reference.name(), shown(answer))];
                return Err(finding(Law::PromisesHold, "", Some(row), &said));
            }
        }
        Ok(())
    }

    /// Checks that the output `alone` has the same value alone as among all outputs.
    fn alone(&self, model: &Model, options: Options, answers: &[Answer]) -> Result<(), Finding> {
        let outputs = &self.case.program.outputs;
        let Some(alone) = self.case.alone.filter(|at| *at < outputs.len()) else { return Ok(()) };
        let some = self.agreed(model, &options.outputs([&*outputs[alone].name]), "one output alone")?;
        let all: Vec<Answer> =
            answers.iter().map(|answer| answer.clone().map(|values| vec![values[alone].clone()])).collect();
        self.compare(Law::OutputsAreIndependent, "", ["all", "alone"], &all, &some, kept)
    }

    /// Returns true if preparation rejects a program with a format or a dictionary. A wrong literal format, or a dictionary of arrays in a function
    /// that is mapped, is found only by expansion. All other expansions accept everything that their types allow.
    fn is_refused_late(&self) -> bool {
        let graph = &self.case.program.graph;
        let is_expanded = |node| {
            let def = operator(graph, node).map(|(op, _)| Registry::standard().get(op));
            def.filter(|def| matches!(def.meaning, Meaning::Expand(_)))
                .is_some_and(|def| def.params.iter().any(|param| matches!(param.name, "fmt" | "dict")))
        };
        (0..graph.len()).map(NodeId::from_index).any(is_expanded) && direct::prepare(&self.case.program).is_none()
    }

    /// Returns the model parsed from its own text, so that errors have places.
    fn read_back(&self) -> Result<Model, Finding> {
        let text = print(&self.case.program);
        let problem = |what: String| finding(Law::PrintsAndParses, "", None, &[("text", what)]);
        let model = Model::parse(&text).map_err(|error| problem(error.to_string()))?;
        if *model.program() != self.case.program {
            return Err(problem(format!("reads back as\n{}", print(model.program()))));
        }
        Ok(model)
    }

    fn plan(&self, program: &Program, variant: Option<Variant>) -> Result<Plan, Finding> {
        let (name, options) = variant.map_or(("", cembra_prepare::Options::default()), |v| (v.name(), v.preparation()));
        let options = cembra_prepare::Options { budget: Budget::new(self.case.limits), ..options };
        let refused = |what: String| finding(Law::WellTypedRuns, name, None, &[("preparation", what)]);
        let placed = cembra_prepare::prepare(program, &|_| None, &options, &mut |_, _| {})
            .and_then(cembra_prepare::Prepared::placed)
            .map_err(|e| refused(e.to_string()))?;
        let plan = cembra_plan::build(&placed, &Budget::default()).map_err(|e| refused(e.to_string()))?;
        match cembra_plan::verify(&plan) {
            Ok(()) => Ok(plan),
            Err(why) => Err(finding(Law::PlanIsSound, name, None, &[("verifier", why), ("plan", plan.to_string())])),
        }
    }

    fn ill_typed(&self) -> Result<Verdict, Finding> {
        let model = Model::from_program(self.case.program.clone());
        let reference = self.subjects.reference;
        let expected = reference.run(&model, &Options::default(), &[]);
        for other in self.subjects.to_compare(Kind::Scalars, self.case.tiered, self.case.batched) {
            let found = other.run(&model, &Options::default(), &[]);
            let is_refused =
                |expected: &Failure| found.as_ref().is_err_and(|found| found.to_string() == expected.to_string());
            if !expected.as_ref().is_err_and(is_refused) {
                let said = [(reference.name(), outcome(&expected)), (other.name(), outcome(&found))];
                return Err(finding(Law::IllTypedIsRefused, "", None, &said));
            }
        }
        Ok(Verdict { refused: true, ..Verdict::default() })
    }

    /// Returns the answers of the reference, after checking that all subjects have the same answers.
    fn agreed(&self, model: &Model, options: &Options, name: &'static str) -> Result<Vec<Answer>, Finding> {
        // The first row is repeated at the end, because the content of a frame from other rows must not matter.
        let mut rows = self.case.rows.clone();
        rows.extend(self.case.rows.first().cloned());
        let reference = self.subjects.reference;
        let refused = |said: &[(&str, String)]| finding(Law::WellTypedRuns, name, None, said);
        let expected = reference.run(model, options, &rows);
        let kind = self.kind();
        for other in self.subjects.to_compare(kind, self.case.tiered, self.case.batched) {
            let names = [reference.name(), other.name()];
            let found = other.run(model, options, &rows);
            let (Ok(expected), Ok(found)) = (&expected, &found) else {
                return Err(refused(&[(names[0], outcome(&expected)), (names[1], outcome(&found))]));
            };
            self.compare(Law::SameAnswers, name, names, expected, found, same)?;
        }
        let answers = expected.map_err(|failure| refused(&[(reference.name(), failure.to_string())]))?;
        if let ([first, ..], [.., last]) = (&answers[..], &answers[..])
            && !same(first, last)
        {
            let said = [("first", shown(first)), ("after the other rows", shown(last))];
            return Err(finding(Law::RowsAreIndependent, name, None, &said));
        }
        Ok(answers)
    }

    /// Compares the answers of the reference with `found`, values that were computed in the way that `name` names. `None` stands for a fault. If only
    /// one of the two is a fault, `allowed` decides whether that is allowed.
    fn compare_values(
        &self,
        law: Law,
        options: &'static str,
        name: &str,
        found: &[Option<Vec<Value>>],
        answers: &[Answer],
        allowed: impl Fn(&Option<Vec<Value>>, &Answer) -> bool,
    ) -> Result<(), Finding> {
        for (row, (found, answer)) in found.iter().zip(answers).enumerate() {
            let holds = match (found, answer) {
                (Some(found), Ok(answer)) => found.iter().zip(answer).all(|(a, b)| a.same(b)),
                _ => allowed(found, answer),
            };
            if !holds {
                let said = found.clone().map_or("a fault".to_owned(), |values| shown(&Ok(values)));
                let said = [(name, said), (self.subjects.reference.name(), shown(answer))];
                return Err(finding(law, options, Some(row), &said));
            }
        }
        Ok(())
    }

    fn compare(
        &self,
        law: Law,
        options: &'static str,
        names: [&str; 2],
        left: &[Answer],
        right: &[Answer],
        holds: impl Fn(&Answer, &Answer) -> bool,
    ) -> Result<(), Finding> {
        for (row, (left, right)) in left.iter().zip(right).enumerate() {
            if !holds(left, right) {
                // The last answer is that of the first row, repeated.
                let row = if row < self.case.rows.len() { row } else { 0 };
                let hidden = hidden_difference(left, right).map(|difference| ("they differ", difference));
                let said = [(names[0], shown(left)), (names[1], shown(right))];
                let said: Vec<(&str, String)> = said.into_iter().chain(hidden).collect();
                return Err(finding(law, options, Some(row), &said));
            }
        }
        Ok(())
    }
}
