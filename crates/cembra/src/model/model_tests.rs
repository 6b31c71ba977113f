//! Runs the tests in the text of a model: compiles the model for each test, and compares the results of its cases with the expected ones.

use super::constant::field_misfit;
use crate::names::unknown_name;
use crate::program::{cast_literal, literal_type};
use crate::{Error, Executor, Model, OnError, Options, RunOptions, Session};
use cembra_expr::{Expected, Literal, ModelTest, TestCase, TestValue, print_default, print_literal, print_value};
use cembra_runtime::{FaultKind, QType};
use cembra_value::{Code, Diagnostic, Diagnostics, ScalarValue, Span, Value, dashed_code};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

/// The result of running a model's tests: the number of cases, and the cases that failed.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct TestReport {
    /// The number of test cases that were run.
    pub cases: usize,
    /// The test cases that failed, in the order of the text.
    pub failures: Vec<TestFailure>,
}

impl TestReport {
    /// Returns an error if a test case failed, for callers that accept a model only if all its cases pass.
    ///
    /// ```
    /// use cembra::{Model, Options};
    ///
    /// let model = Model::parse("input x: f64; output y = x * 2; test \"twice\" { x = 1 } => { y = 3 }; test \"half\" { x = 1 } => { y = 0.5 }")?;
    /// let error = model.run_tests(&Options::default()).check().unwrap_err();
    /// assert_eq!(error.code(), "failed-test");
    /// let all: Vec<String> = error.diagnostics().iter().map(|one| one.message().to_owned()).collect();
    /// assert_eq!(all, ["test \"twice\" fails: `y` must be 3.0, but is 2.0", "test \"half\" fails: `y` must be 0.5, but is 2.0"]);
    /// # Ok::<(), cembra::Error>(())
    /// ```
    ///
    /// # Errors
    /// If a case failed. The error has the code `failed-test`, and one diagnostic per mismatch at the place of the failed case.
    pub fn check(&self) -> Result<(), Error> {
        let failed = self.failures.iter().flat_map(|failure| {
            failure.mismatches.iter().map(|mismatch| {
                let message = format!("test \"{}\" fails: {mismatch}", failure.test);
                let problem = Diagnostic::new(Code::FailedTest, message).at(failure.span);
                match mismatch {
                    Mismatch::Error { found: Some(error), .. } => {
                        error.span().into_iter().fold(problem, |problem, at| problem.also(at, "it fails here"))
                    }
                    _ => problem,
                }
            })
        });
        Ok(Diagnostics::check(failed.collect())?)
    }
}

/// A failed case of a test: the test's name, the case's place in the text, and the reasons.
#[derive(Clone, Debug)]
pub struct TestFailure {
    /// The name of the test that the failed case belongs to.
    pub test: Arc<str>,
    /// The place of the failed case in the text; the place of the test if the whole test does not fit the model.
    pub span: Span,
    /// The reasons why the test case failed; at least one.
    pub mismatches: Vec<Mismatch>,
}

/// A reason why a case of a test failed: a wrong output, a wrong error, or a test that does not fit the model.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Mismatch {
    /// An output of the case differs from the expected value. Both values are literals of the language.
    Output {
        /// The name of the output that differs.
        name: Arc<str>,
        /// The value that the test case expects for the output, as a literal.
        expected: String,
        /// The value of the output, as a literal.
        found: String,
    },
    /// The evaluation failed although the case expects values, failed with another error than expected, or did not fail although the case expects an
    /// error.
    Error {
        /// The error code that the test case expects; `None` if it expects no error.
        expected: Option<Arc<str>>,
        /// The error of the evaluation; `None` if it did not fail.
        found: Option<Error>,
    },
    /// The test does not fit the model, or the model does not compile for it.
    Unfit(Diagnostic),
}

impl fmt::Display for Mismatch {
    /// Writes the mismatch in one line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Mismatch::Output { name, expected, found } => write!(f, "`{name}` must be {expected}, but is {found}"),
            Mismatch::Error { expected: Some(expected), found: None } => {
                write!(f, "expected the error `{expected}`, found no error")
            }
            Mismatch::Error { expected: Some(expected), found: Some(found) } => {
                write!(f, "expected the error `{expected}`, found the error `{}`", found.code())
            }
            Mismatch::Error { expected: None, found: Some(found) } => match found.diagnostics().first() {
                Some(problem) => f.write_str(problem.message()),
                None => found.fmt(f),
            },
            Mismatch::Error { expected: None, found: None } => {
                f.write_str("the evaluation has neither a value nor an error")
            }
            Mismatch::Unfit(problem) => f.write_str(problem.message()),
        }
    }
}

impl Model {
    /// Returns the tests in the model's text.
    pub(crate) fn tests(&self) -> &[ModelTest] {
        &self.program().tests
    }

    /// Returns the names of the tests in the model's text, in order.
    pub fn test_names(&self) -> impl ExactSizeIterator<Item = &str> {
        self.tests().iter().map(|test| &*test.name)
    }

    /// Runs the tests in the model's text. For each test, only the outputs that it names are computed. An input without a type gets the type of the
    /// test's values. An optional input without a value is missing.
    ///
    /// ```
    /// use cembra::testing::Mismatch;
    /// use cembra::{Model, Options};
    ///
    /// let model = Model::parse(
    ///     "input age: f64?
    ///      output score = if age >= 18.0 then 1.0 / age else 0.0
    ///      test \"ages\" within 1e-3 {
    ///        age     => score
    ///        30      => 0.033
    ///        missing => 0.1
    ///      }",
    /// )?;
    /// let report = model.run_tests(&Options::default());
    /// assert_eq!((report.cases, report.failures.len()), (2, 1));
    /// let [Mismatch::Output { expected, found, .. }] = &*report.failures[0].mismatches else { panic!() };
    /// assert_eq!((expected.as_str(), found.as_str()), ("0.1", "0.0"));
    /// # Ok::<(), cembra::Error>(())
    /// ```
    #[must_use]
    pub fn run_tests(&self, options: &Options) -> TestReport {
        self.run_tests_with(options, &RunOptions::default())
    }

    /// Runs all tests in the model's text as one run with the options `run`. If a token or a deadline ends the run, the remaining cases fail with the
    /// error of that token or deadline. With [`OnError::Missing`], an evaluation that fails gives missing outputs, so a case passes if it expects
    /// only missing outputs. Outputs that no case of a test names are not evaluated, so they cannot fail. See [`run_tests`](Model::run_tests).
    ///
    /// ```
    /// use cembra::{Model, OnError, Options, RunOptions};
    ///
    /// let model = Model::parse("input x: i32; output y = 100 // x; test \"no share\" { x = 0 } => { y = missing }")?;
    /// assert_eq!(model.run_tests(&Options::default()).failures.len(), 1);
    /// let missing = RunOptions::new().on_error(OnError::Missing);
    /// assert!(model.run_tests_with(&Options::default(), &missing).failures.is_empty());
    /// # Ok::<(), cembra::Error>(())
    /// ```
    #[must_use]
    pub fn run_tests_with(&self, options: &Options, run: &RunOptions) -> TestReport {
        let (token, on_error) = (run.token(), run.failed_rows().unwrap_or_default());
        let mut report = TestReport::default();
        // Consecutive tests often have the same inputs and outputs, so the model is compiled once for them.
        let mut before = None;
        for test in self.tests() {
            report.cases += test.cases.len();
            if let Some(token) = token.as_ref().filter(|token| token.is_cancelled()) {
                let found = Error::ended_by(Some(token));
                let mismatches = vec![Mismatch::Error { expected: None, found: Some(found) }];
                report.failures.push(TestFailure { test: test.name.clone(), span: test.span, mismatches });
                continue;
            }
            let compiled = self.options_for(test, options).and_then(|options| {
                let of = (options.compile.input_types.clone(), options.binding.outputs.clone());
                match before.take_if(|(known, _)| *known == of) {
                    Some((_, executor)) => Ok((of, executor)),
                    None => self.compile(&options).map(|executor| (of, executor)).map_err(|error| error.diagnostics()),
                }
            });
            match compiled {
                Ok((of, executor)) => {
                    let mut session = executor.session();
                    session.set_run_options(run);
                    session.set_cancellation(token.clone());
                    report.failures.extend(test.cases.iter().filter_map(|case| {
                        let mismatches = run_case(test, case, &executor, &mut session, on_error);
                        let failure = TestFailure { test: test.name.clone(), span: case.span, mismatches };
                        (!failure.mismatches.is_empty()).then_some(failure)
                    }));
                    drop(session);
                    before = Some((of, executor));
                }
                Err(problems) => {
                    let mismatches = problems.into_iter().map(Mismatch::Unfit).collect();
                    report.failures.push(TestFailure { test: test.name.clone(), span: test.span, mismatches });
                }
            }
        }
        report
    }

    /// Returns the options for compiling the model for `test`: for the outputs that the test names and the types of its input values.
    pub(crate) fn options_for(&self, test: &ModelTest, options: &Options) -> Result<Options, Vec<Diagnostic>> {
        let program = self.program();
        let known: BTreeMap<&str, Option<&QType>> =
            program.inputs.iter().map(|input| (&*input.name, input.qtype.as_ref())).collect();
        let (mut outputs, mut named, mut problems) = (Vec::new(), BTreeSet::new(), Vec::new());
        for case in &test.cases {
            for value in case.inputs.iter().filter(|value| !known.contains_key(&*value.name)) {
                if problems.is_empty() {
                    problems.push(unknown_name("input", &value.name, known.keys().copied()).at(value.span));
                }
            }
            if let Expected::Outputs(values) = &case.expected {
                outputs.extend(values.iter().map(|value| &value.name).filter(|name| named.insert(*name)));
            }
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        let mut options = options.clone();
        for (name, qtype) in types_given(test) {
            if let (Some(None), Some(qtype)) = (known.get(name), qtype) {
                options = options.input_type(name, qtype);
            }
        }
        if !outputs.is_empty() {
            options = options.outputs(outputs.iter().map(|name| &***name));
        }
        Ok(options)
    }
}

/// Returns, for each input that the test names, the common type of its values; an optional type if a case gives the
/// input no value. `None` if the values have no common type.
fn types_given(test: &ModelTest) -> BTreeMap<&str, Option<QType>> {
    // For each input, the common type of its values, and the number of cases that give one.
    let mut found: BTreeMap<&str, (Option<QType>, usize)> = BTreeMap::new();
    for case in &test.cases {
        for (name, literal) in given(case) {
            let (common, count) = found.entry(name).or_insert((Some(QType::Nothing), 0));
            let join = |before: &QType, qtype: QType| match (before, &qtype) {
                (QType::Nothing, _) => Some(qtype),
                (_, QType::Nothing) => Some(before.clone()),
                _ => cembra_ops::common_type(before, &qtype),
            };
            let qtype = literal_type(literal);
            *count += usize::from(qtype != Some(QType::Nothing));
            *common = common.as_ref().zip(qtype).and_then(|(before, qtype)| join(before, qtype));
        }
    }
    let optional = |(qtype, count): (Option<QType>, usize)| {
        let qtype = qtype.filter(|qtype| *qtype != QType::Nothing);
        qtype.map(|qtype| if count < test.cases.len() { qtype.to_optional() } else { qtype })
    };
    found.into_iter().map(|(name, found)| (name, optional(found))).collect()
}

/// Returns the values that a test case gives to inputs, by the input's name. If the case gives an input twice, the
/// first value counts.
fn given(case: &TestCase) -> BTreeMap<&str, &Literal> {
    case.inputs.iter().rev().map(|value| (&*value.name, &value.literal)).collect()
}

/// Returns the input values of the test case `case`, in the order of the executor's inputs. Inputs without a value in the case are missing.
pub(crate) fn row_of(case: &TestCase, executor: &Executor) -> Result<Vec<Value>, Diagnostic> {
    let mut row = Vec::with_capacity(executor.inputs().len());
    let given = given(case);
    for field in executor.inputs() {
        let (name, qtype) = (&field.name, field.spelled_type());
        let value = match given.get(&**name).copied() {
            Some(literal) => cast_literal(literal, &field.qtype).ok_or_else(|| {
                let (given, misfit) = unfit(literal, &field.qtype);
                format!("input `{name}` is {qtype}, and the test gives it `{given}`{misfit}")
            }),
            None => field
                .left_out()
                .or_else(|| cast_literal(&Literal::One(Value::Nothing), &field.qtype))
                .ok_or_else(|| format!("input `{name}` is {qtype}, and the test gives it no value")),
        };
        row.push(value.map_err(|message| Diagnostic::new(Code::Binding, message).at(case.span))?);
    }
    Ok(row)
}

/// Evaluates a test case and returns its mismatches; none if the case passes. With `OnError::Missing`, all outputs
/// count as missing if the evaluation fails.
fn run_case(
    test: &ModelTest,
    case: &TestCase,
    executor: &Executor,
    session: &mut Session,
    on_error: OnError,
) -> Vec<Mismatch> {
    let row = match row_of(case, executor) {
        Ok(row) => row,
        Err(problem) => return vec![Mismatch::Unfit(problem)],
    };
    match (session.evaluate(&row), &case.expected) {
        (Ok(found), Expected::Outputs(expected)) => {
            let outputs = executor.outputs().iter().map(|field| &*field.name).zip(&found);
            let found: BTreeMap<&str, &Value> = outputs.collect();
            let different = |expected: &TestValue| {
                let found = *found.get(&*expected.name)?;
                difference(expected, found, test.within)
            };
            expected.iter().filter_map(different).collect()
        }
        (Ok(_), Expected::Error(code)) => vec![Mismatch::Error { expected: Some(code.clone()), found: None }],
        // Cancellation comes from the caller, not from the model, so it is never the expected error.
        (Err(error), Expected::Error(code))
            if dashed_code(code) == dashed_code(error.code())
                && !error.fault_kind().is_some_and(FaultKind::is_of_token) =>
        {
            Vec::new()
        }
        (Err(error), Expected::Error(code)) => {
            vec![Mismatch::Error { expected: Some(code.clone()), found: Some(error) }]
        }
        (Err(error), Expected::Outputs(values))
            if on_error == OnError::Missing
                && !error.fault_kind().is_some_and(FaultKind::is_of_token)
                && values.iter().all(|value| literal_type(&value.literal) == Some(QType::Nothing)) =>
        {
            Vec::new()
        }
        (Err(error), Expected::Outputs(_)) => vec![Mismatch::Error { expected: None, found: Some(error) }],
    }
}

fn difference(expected: &TestValue, found: &Value, within: f64) -> Option<Mismatch> {
    let cast = cast_literal(&expected.literal, &found.qtype());
    if cast.as_ref().is_some_and(|cast| is_close(cast, found, within)) {
        return None;
    }
    let expected_text = cast.map_or_else(|| print_literal(&expected.literal), |cast| bare(&cast));
    Some(Mismatch::Output { name: expected.name.clone(), expected: expected_text, found: bare(found) })
}

/// Returns a value as a literal without a type suffix, as a test writes it, because the output determines the type.
fn bare(value: &Value) -> String {
    match value {
        Value::Scalar(scalar) | Value::Present(scalar) => print_default(scalar),
        Value::Missing(_) => "missing".to_owned(),
        Value::Array(_, array) => array.to_string(),
        Value::Tuple(_) if value.qtype().as_map().is_some() => value.to_string(),
        Value::Tuple(_) if let Some(length) = value.list_len() => {
            bare_list((0..length).filter_map(|at| value.element(at)))
        }
        Value::Tuple(_) if value.as_optional_struct().is_some() => match value.as_optional_struct().flatten() {
            Some(of) => bare(of),
            None => "missing".to_owned(),
        },
        // Values nest only as deep as the types of a model.
        Value::Tuple(fields) if let Some(names) = fields.names() => {
            let fields = names.iter().zip(fields.iter());
            let fields: Vec<String> = fields.map(|(name, field)| format!("{name}: {}", bare(field))).collect();
            format!("{{{}}}", fields.join(", "))
        }
        other => print_value(other),
    }
}

fn bare_list(elements: impl Iterator<Item = Value>) -> String {
    format!("[{}]", elements.map(|element| bare(&element)).collect::<Vec<_>>().join(", "))
}

/// Returns two texts for the message that `literal` is not of the type `wanted`: the literal as a test would write it, and the field that does not
/// fit, such as ": it lacks `b`". The second text is empty if the cause is not a field.
pub(super) fn unfit(literal: &Literal, wanted: &QType) -> (String, String) {
    let written = match literal {
        Literal::One(value @ Value::Tuple(_)) => bare(value),
        Literal::Elements(elements) if elements.iter().any(|one| matches!(one, Value::Tuple(_))) => {
            bare_list(elements.iter().cloned())
        }
        other => print_literal(other),
    };
    (written, field_misfit(literal, wanted).map_or_else(String::new, |misfit| format!(": {misfit}")))
}

/// Returns true if two values of one type are equal, floats up to the tolerance `within`.
fn is_close(expected: &Value, found: &Value, within: f64) -> bool {
    // Values nest only as deep as the types of a model.
    match (expected, found) {
        (Value::Scalar(a), Value::Scalar(b)) | (Value::Present(a), Value::Present(b)) => close_scalars(a, b, within),
        (Value::Tuple(_), Value::Tuple(_)) if expected.as_optional_struct() == Some(None) => expected.same(found),
        (Value::Tuple(a), Value::Tuple(b)) => {
            a.len() == b.len() && a.iter().zip(b.iter()).all(|(a, b)| is_close(a, b, within))
        }
        (Value::Array(_, a), Value::Array(_, b)) => {
            let same = |(a, b): (Option<ScalarValue>, Option<ScalarValue>)| match (a, b) {
                (Some(a), Some(b)) => close_scalars(&a, &b, within),
                (a, b) => a == b,
            };
            a.len() == b.len() && a.iter().zip(b.iter()).all(same)
        }
        _ => expected.same(found),
    }
}

fn close_scalars(expected: &ScalarValue, found: &ScalarValue, within: f64) -> bool {
    let float = |value: &ScalarValue| match value {
        ScalarValue::Float32(v) => Some(f64::from(*v)),
        ScalarValue::Float64(v) | ScalarValue::WeakFloat(v) => Some(*v),
        _ => None,
    };
    match (float(expected), float(found)) {
        // Zeros of both signs count as equal, and equal infinities have distance 0.
        (Some(a), Some(b)) => {
            let is_near = || (a - b).abs() <= within * a.abs().max(1.0);
            a == b || expected.same(found) || a.is_finite() && b.is_finite() && is_near()
        }
        _ => expected.same(found),
    }
}
