//! The values of a model on the page: sample rows with their outputs, the plot of an output along one input, the model's tests with the branches
//! that they take, and the time that operators take. Cells are literals of the language; a text may be written without quotes.

use crate::sample::RandomRows;
use crate::text::{Range, Units};
use cembra::program::{Literal, Sources, cast_literal};
use cembra::testing::TestFailure;
use cembra::values::print_value;
use cembra::{Error, Executor, Field, Model, Options, QType, RunOptions, Scalar, ScalarValue, Session, Value};
use cembra_engine::LoadedRows;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// The most rows of one request, and the most sample rows of a page.
pub(crate) const MOST_ROWS: usize = 200;

/// The sample rows of a model without tests.
const SAMPLE_ROWS: usize = 5;

/// The most characters of a cell; a longer one is cut, because a cell shows a value and does not keep it.
const MOST_CELL: usize = 400;

/// The points of a plot.
const POINTS: u32 = 201;

/// The most plots of a page without a server.
const MOST_PLOTS: usize = 24;

/// The time for which rows are measured, and the fewest runs of all rows.
const MEASURED: Duration = Duration::from_millis(3);
const FEWEST_RUNS: u32 = 16;

/// An input or output: its name and its type.
#[derive(Serialize, Debug)]
pub(crate) struct FieldView {
    name: String,
    #[serde(rename = "type")]
    qtype: String,
    optional: bool,
}

/// The inputs and outputs of a model.
#[derive(Serialize, Debug)]
pub(crate) struct SignatureView {
    inputs: Vec<FieldView>,
    outputs: Vec<FieldView>,
}

impl SignatureView {
    pub(crate) fn of(inputs: &[Field], outputs: &[Field]) -> SignatureView {
        let view = |field: &Field| FieldView {
            name: field.name.to_string(),
            qtype: field.spelled_type(),
            optional: field.left_out().is_some(),
        };
        SignatureView { inputs: inputs.iter().map(view).collect(), outputs: outputs.iter().map(view).collect() }
    }
}

/// The cells of a row: literals of the language, or `None` for missing values.
pub(crate) type Cells = Vec<Option<String>>;

/// A row with its outputs, or with the error of its evaluation.
#[derive(Serialize, Debug)]
pub(crate) struct RowView {
    #[serde(rename = "in")]
    inputs: Cells,
    #[serde(rename = "out")]
    outputs: Cells,
    error: Option<String>,
}

/// Rows with their outputs.
#[derive(Serialize, Debug)]
pub(crate) struct RowsView {
    inputs: Vec<String>,
    outputs: Vec<String>,
    rows: Vec<RowView>,
}

/// A plot of an output along an input: the points, each with `None` for the output where it has no finite value.
#[derive(Serialize, Debug)]
pub(crate) struct PlotView {
    input: String,
    output: String,
    points: Vec<(f64, Option<f64>)>,
}

/// A request for a plot: the text of the model, the names of the two axes, and the row that gives the other inputs.
#[derive(Deserialize, Debug)]
pub(crate) struct PlotRequest {
    pub(crate) text: String,
    pub(crate) input: String,
    pub(crate) output: String,
    #[serde(default)]
    pub(crate) row: Cells,
}

/// A compiled model that evaluates rows of cells.
pub(crate) struct Evaluation {
    executor: Executor,
    session: Session,
}

impl Evaluation {
    /// Compiles `model`. Each evaluation of a row is limited by the options `run`.
    pub(crate) fn of(model: &Model, options: &Options, run: &RunOptions) -> Result<Evaluation, Error> {
        let executor = model.compile(options)?;
        let mut session = executor.session();
        session.set_run_options(run);
        Ok(Evaluation { executor, session })
    }

    /// Evaluates rows, whose cells are in the order of the model's inputs. A row with a cell that does not fit its input has an error.
    pub(crate) fn rows(&mut self, rows: Vec<Cells>) -> RowsView {
        let names = |fields: &[Field]| fields.iter().map(|field| field.name.to_string()).collect();
        let (inputs, outputs) = (names(self.executor.inputs()), names(self.executor.outputs()));
        let rows = rows.into_iter().take(MOST_ROWS).map(|cells| self.row(cells)).collect();
        RowsView { inputs, outputs, rows }
    }

    fn row(&mut self, mut cells: Cells) -> RowView {
        cells.resize(self.executor.inputs().len(), None);
        let values = self.values(&cells);
        match values.and_then(|values| self.session.evaluate(&values).map_err(|error| error.message().to_owned())) {
            Ok(outputs) => RowView { inputs: cells, outputs: outputs.iter().map(cell).collect(), error: None },
            Err(error) => RowView { inputs: cells, outputs: Vec::new(), error: Some(error) },
        }
    }

    fn values(&self, cells: &Cells) -> Result<Vec<Value>, String> {
        let inputs = self.executor.inputs().iter().enumerate();
        inputs.map(|(at, field)| value(field, cells.get(at).and_then(Option::as_deref))).collect()
    }

    /// The points of the output `output` along the input `input`. The other inputs are those of `row`.
    pub(crate) fn plot(&mut self, input: &str, output: &str, row: &Cells) -> Result<PlotView, String> {
        let position = |fields: &[Field], name: &str| fields.iter().position(|field| *field.name == *name);
        let at = position(self.executor.inputs(), input).ok_or_else(|| format!("the model has no input `{input}`"))?;
        let of =
            position(self.executor.outputs(), output).ok_or_else(|| format!("the model has no output `{output}`"))?;
        let mut values = self.values(row)?;
        let scalar = number_of(&self.executor.inputs()[at].qtype)
            .ok_or_else(|| format!("input `{input}` must be a number to be the axis of a plot"))?;
        let middle = number(&values[at]).filter(|middle| middle.is_finite()).unwrap_or(0.0);
        let [low, high] =
            if middle == 0.0 { [-10.0, 10.0] } else { [middle.min(0.0), middle.max(0.0)].map(|end| end * 2.0) };
        let mut points = Vec::new();
        for step in 0..POINTS {
            let x = low + (high - low) * f64::from(step) / f64::from(POINTS - 1);
            let x = if scalar.representation().is_float() { x } else { x.round() };
            if points.last().is_some_and(|(last, _)| *last == x) {
                continue;
            }
            let Some(value) = cast_literal(&Literal::One(Value::from(x)), &self.executor.inputs()[at].qtype)
                .or_else(|| cast_literal(&Literal::One(Value::from(x as i64)), &self.executor.inputs()[at].qtype))
            else {
                continue;
            };
            values[at] = value;
            // A row that fails is a gap; a token or a deadline ends the plot.
            let y = match self.session.evaluate(&values) {
                Ok(outputs) => number(&outputs[of]).filter(|y| y.is_finite()),
                Err(error) if error.fault_kind().is_some_and(cembra::FaultKind::is_of_token) => {
                    return Err(error.message().to_owned());
                }
                Err(_) => None,
            };
            points.push((x, y));
        }
        Ok(PlotView { input: input.to_owned(), output: output.to_owned(), points })
    }

    /// The plots of each output that is a number along each input that is a number, up to a limit.
    pub(crate) fn plots(&mut self, row: &Cells) -> Vec<PlotView> {
        let names = |fields: &[Field]| -> Vec<String> {
            let numbers = fields.iter().filter(|field| number_of(&field.qtype).is_some());
            numbers.map(|field| field.name.to_string()).collect()
        };
        let (inputs, outputs) = (names(self.executor.inputs()), names(self.executor.outputs()));
        let pairs = inputs.iter().flat_map(|input| outputs.iter().map(move |output| (input, output)));
        pairs.take(MOST_PLOTS).filter_map(|(input, output)| self.plot(input, output, row).ok()).collect()
    }

    /// The sample rows of a model: the inputs of its tests as they are written, or random rows if it has no tests.
    pub(crate) fn sample(&self, model: &Model, sources: &Sources) -> Vec<Cells> {
        let inputs = self.executor.inputs();
        let mut rows: Vec<Cells> = Vec::new();
        for case in model.program().tests.iter().flat_map(|test| &test.cases) {
            let given: BTreeMap<&str, &str> =
                case.inputs.iter().map(|value| (&*value.name, written(value, sources))).collect();
            let row = inputs.iter().map(|field| given.get(&*field.name).map(|text| (*text).to_owned())).collect();
            if rows.len() < MOST_ROWS && !rows.contains(&row) {
                rows.push(row);
            }
        }
        if rows.is_empty() {
            let mut random = RandomRows::new(1);
            for _ in 0..SAMPLE_ROWS {
                random.begin();
                rows.push(inputs.iter().map(|field| cell(&random.value(field))).collect());
            }
        }
        rows
    }

    /// Measures the time of a row in a model of scalars, and divides the time among operators in proportion to the bytes of their machine code. The
    /// division is an estimate: instructions differ in speed, and a branch that is not taken has code too. `None` if there is no machine code.
    pub(crate) fn times(&mut self, model: &Model, options: &Options, rows: &[Cells]) -> Option<Vec<TimeView>> {
        let machine = model.machine(options).ok()?;
        let values: Vec<Vec<Value>> = rows.iter().filter_map(|row| self.values(row).ok()).collect();
        let values: Vec<Vec<Value>> = values.into_iter().filter(|row| self.session.evaluate(row).is_ok()).collect();
        let mut loaded = LoadedRows::of(&self.executor, &values).ok().filter(|_| !values.is_empty())?;
        let (start, mut runs) = (Instant::now(), 0_u32);
        while runs < FEWEST_RUNS || start.elapsed() < MEASURED {
            loaded.evaluate().ok()?;
            runs += 1;
        }
        let row = start.elapsed().as_nanos() as f64 / f64::from(runs) / values.len() as f64;
        let mut bytes: BTreeMap<(u32, &str), usize> = BTreeMap::new();
        for origin in &machine.origins {
            *bytes.entry((origin.node, &origin.operator)).or_default() += origin.bytes.len();
        }
        let whole = machine.code.len().max(1) as f64;
        let of_operators = bytes.iter().map(|((node, operator), bytes)| {
            let share = *bytes as f64 / whole;
            TimeView { label: (*operator).to_owned(), nodes: vec![*node], ns: row * share, share }
        });
        let mut times: Vec<TimeView> = of_operators.collect();
        let share = 1.0 - times.iter().map(|time| time.share).sum::<f64>();
        times.push(TimeView {
            label: "inputs, outputs, constants".to_owned(),
            nodes: Vec::new(),
            ns: row * share,
            share,
        });
        times.sort_by(|a, b| b.share.total_cmp(&a.share));
        Some(times)
    }
}

/// The scalar type of a number; `None` for other types.
fn number_of(qtype: &QType) -> Option<Scalar> {
    match qtype {
        QType::Scalar(scalar) | QType::Optional(scalar) if scalar.is_number() => Some(*scalar),
        _ => None,
    }
}

/// The number of a value that is a number; `None` for other values and for missing ones.
fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Scalar(scalar) | Value::Present(scalar) => Some(match scalar {
            ScalarValue::Float64(x) => *x,
            ScalarValue::Float32(x) => f64::from(*x),
            ScalarValue::Int32(x) => f64::from(*x),
            ScalarValue::Int64(x) => *x as f64,
            ScalarValue::UInt64(x) => *x as f64,
            _ => return None,
        }),
        _ => None,
    }
}

/// The value of an input's cell, or the reason why the cell does not fit.
fn value(field: &Field, cell: Option<&str>) -> Result<Value, String> {
    let Some(text) = cell else {
        return field
            .left_out()
            .or_else(|| cast_literal(&Literal::One(Value::Nothing), &field.qtype))
            .ok_or_else(|| format!("input `{}` is {} and must not be missing", field.name, field.spelled_type()));
    };
    let read = Literal::parse(text).ok().and_then(|literal| cast_literal(&literal, &field.qtype));
    let as_text = || cast_literal(&Literal::One(Value::Scalar(ScalarValue::Text(text.into()))), &field.qtype);
    read.or_else(as_text)
        .ok_or_else(|| format!("input `{}` is {}, found `{}`", field.name, field.spelled_type(), shortened(text)))
}

/// The cell of a value; `None` for a missing one.
fn cell(value: &Value) -> Option<String> {
    match value {
        Value::Missing(_) | Value::Nothing => None,
        Value::Scalar(ScalarValue::Text(text)) | Value::Present(ScalarValue::Text(text)) => Some(shortened(text)),
        Value::Scalar(scalar) | Value::Present(scalar) => {
            // The column has the type, so a number needs none.
            let literal = print_value(&Value::Scalar(scalar.clone()));
            Some(literal.strip_suffix(scalar.scalar().short_name()).unwrap_or(&literal).to_owned())
        }
        value => Some(shortened(&print_value(value))),
    }
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(MOST_CELL) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// The literal of a test's value as the text has it. Outside of tables, the value's place begins with the name, as in `x = 1.5`.
fn written<'s>(value: &cembra_expr::TestValue, sources: &'s Sources) -> &'s str {
    let text = sources.text_at(value.span);
    let after_name = text.strip_prefix(&*value.name).and_then(|rest| rest.trim_start().strip_prefix('='));
    after_name.map_or(text, str::trim_start)
}

/// A test of the model, with its result.
#[derive(Serialize, Debug)]
pub(crate) struct TestView {
    name: String,
    #[serde(flatten)]
    range: Option<Range>,
    passed: bool,
    message: Option<String>,
}

/// A branch of the model, and whether a test takes it.
#[derive(Serialize, Debug)]
pub(crate) struct BranchView {
    #[serde(flatten)]
    range: Range,
    taken: bool,
    message: &'static str,
}

/// The tests of the model with their results, and the branches that they take.
pub(crate) fn tests(
    model: &Model,
    options: &Options,
    run: &RunOptions,
    units: &Units,
) -> (Vec<TestView>, Vec<BranchView>) {
    if model.program().tests.is_empty() {
        return (Vec::new(), Vec::new());
    }
    let report = model.run_tests_with(options, run);
    let failure = |name: &str| report.failures.iter().find(|failure| *failure.test == *name);
    let message =
        |failure: &TestFailure| failure.mismatches.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
    let tests = model.program().tests.iter().map(|test| {
        let failure = failure(&test.name);
        TestView {
            name: test.name.to_string(),
            range: units.range(failure.map_or(test.span, |failure| failure.span)),
            passed: failure.is_none(),
            message: failure.map(message),
        }
    });
    let tests = tests.collect();
    let branches = model.test_coverage_with(options, run).into_iter().filter_map(|branch| {
        Some(BranchView { range: units.range(branch.span)?, taken: branch.is_taken, message: branch.untaken })
    });
    (tests, branches.collect())
}

/// The time of a row that an operator takes, in nanoseconds and as a share.
#[derive(Serialize, Debug)]
pub(crate) struct TimeView {
    label: String,
    #[serde(rename = "n")]
    nodes: Vec<u32>,
    ns: f64,
    share: f64,
}
