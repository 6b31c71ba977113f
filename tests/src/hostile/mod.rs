//! Hostile models and requests, which are made to exhaust the reader, the compiler or the evaluation, and the outcome of each. The `hostile`
//! command measures each in a process of its own. The tests of the same name expect the outcomes.

mod files;
mod graphs;
mod loops;
mod page;
mod requests;
mod texts;

pub use page::{HEAD, Row, TAIL, page};

use cembra::{Backend, Error, Model, Options, QType, Scalar, ScalarValue, Value};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

/// A model as its reader gets it.
#[derive(Clone, Debug)]
pub enum Source {
    /// Text.
    Text(String),
    /// The bytes of a file.
    Binary(Vec<u8>),
    /// The text of a model, and the JSON object that it is evaluated on.
    Request(String, String),
}

/// A hostile model.
pub struct Case {
    /// What it is.
    pub name: &'static str,
    /// Makes it.
    pub source: fn() -> Source,
    /// What becomes of it: `value`, or the code of the error and, if it is a limit, which.
    pub outcome: &'static str,
    /// What runs it.
    pub backend: Backend,
    /// True if it takes seconds, with the checks of a development build at the least.
    pub slow: bool,
}

const fn quick(name: &'static str, outcome: &'static str, source: fn() -> Source) -> Case {
    Case { name, source, outcome, backend: Backend::Auto, slow: false }
}

const fn slow(name: &'static str, outcome: &'static str, source: fn() -> Source) -> Case {
    Case { name, source, outcome, backend: Backend::Auto, slow: true }
}

const MILLION: usize = 1_000_000;

/// All cases.
pub fn cases() -> impl Iterator<Item = &'static Case> {
    texts::CASES.iter().chain(graphs::CASES).chain(loops::CASES).chain(files::CASES).chain(requests::CASES)
}

/// What became of a case.
#[derive(Clone, Debug)]
pub struct Run {
    /// As [`Case::outcome`].
    pub outcome: String,
    /// The whole message of the error.
    pub message: String,
    /// How long a processor worked on it, without making the source.
    pub time: Duration,
}

impl Case {
    /// Reads, compiles and evaluates the model, on its request or on inputs that are all zero.
    #[must_use]
    pub fn run(&self) -> Run {
        let source = (self.source)();
        let start = worked();
        let result = evaluate(&source, self.backend);
        let time = worked().saturating_sub(start);
        let (outcome, message) = match result {
            Ok(()) => ("value".to_owned(), String::new()),
            Err(error) => (outcome(&error), error.message()),
        };
        Run { outcome, message, time }
    }
}

/// How long a processor has worked for this thread; where the system does not say, for how long there is this program.
fn worked() -> Duration {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds = told.split(' ').next().and_then(|text| text.parse().ok());
    nanoseconds.map_or_else(|| START.elapsed(), Duration::from_nanos)
}

fn evaluate(source: &Source, backend: Backend) -> Result<(), Error> {
    let model = match source {
        Source::Text(text) => Model::parse(text)?,
        Source::Binary(bytes) => Model::from_binary(bytes)?,
        Source::Request(model, text) => {
            let mut executor = Model::parse(model)?.json_executor(&Options::default().backend(backend))?;
            return executor.run(text).map(drop);
        }
    };
    let executor = model.compile(&Options::default().backend(backend))?;
    let inputs: Vec<Value> = executor.inputs().iter().map(|input| zero(&input.qtype)).collect();
    executor.session().evaluate(&inputs).map(drop)
}

fn zero(qtype: &QType) -> Value {
    match qtype {
        QType::Scalar(Scalar::Bytes) => Value::Scalar(ScalarValue::Bytes(b"a"[..].into())),
        QType::Scalar(scalar) => {
            Value::Scalar(ScalarValue::from_bits(*scalar, 0).unwrap_or(ScalarValue::Text("a".into())))
        }
        QType::Optional(scalar) => Value::Missing(*scalar),
        QType::Tuple(fields) => Value::Tuple(fields.iter().map(zero).collect()),
        QType::Shape(shape) => Value::Shape(*shape),
        QType::Array(..)
        | QType::ArrayShape(_)
        | QType::Edge(_)
        | QType::Meta
        | QType::Nothing
        | QType::Unspecified
        | QType::Function
        | QType::Dict(..)
        | QType::Sequence(_)
        | QType::Tensor(..) => Value::Nothing,
    }
}

fn outcome(error: &Error) -> String {
    let text = error.to_string();
    let limit = text.strip_prefix("the model exceeds the limit `").and_then(|rest| rest.split_once('`'));
    match limit {
        Some((name, _)) => format!("{} {name}", error.code()),
        None => error.code().to_owned(),
    }
}

/// A text put together from one line for each number.
fn lines(first: &str, numbers: std::ops::Range<usize>, line: impl Fn(usize) -> String, last: &str) -> Source {
    let mut text = format!("{first}\n");
    for number in numbers {
        text.push_str(&line(number));
        text.push('\n');
    }
    text.push_str(last);
    Source::Text(text)
}
