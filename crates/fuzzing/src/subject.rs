//! What is compared: something that runs a model on rows. The two backends are subjects; a test wraps one and lies.

use crate::values::fresh;
use cembra::{Backend, Error, Model, Options};
use cembra_expr::{Span, Value, print_value};
use std::fmt;
use std::sync::Arc;

/// One value for each input of a program, by name.
#[derive(Clone, PartialEq, Debug)]
pub struct Row(Vec<(Arc<str>, Value)>);

impl Row {
    /// A row of these values.
    #[must_use]
    pub fn new(values: Vec<(Arc<str>, Value)>) -> Self {
        Row(values)
    }

    /// The value of an input.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.0.iter().find(|(known, _)| **known == *name).map(|(_, value)| value)
    }

    /// All names and values.
    #[must_use]
    pub fn values(&self) -> &[(Arc<str>, Value)] {
        &self.0
    }

    pub(crate) fn values_mut(&mut self) -> &mut Vec<(Arc<str>, Value)> {
        &mut self.0
    }
}

impl fmt::Display for Row {
    /// As arguments of `cembra eval`: `-s x=1.5 -s 'name=missing[text]'`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (name, value)) in self.0.iter().enumerate() {
            let space = if at > 0 { " " } else { "" };
            write!(f, "{space}-s {}", quoted(&format!("{name}={}", print_value(value))))?;
        }
        Ok(())
    }
}

/// The argument as a POSIX shell reads it back.
fn quoted(argument: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "=._-+,:/".contains(c);
    if argument.chars().all(plain) { argument.to_owned() } else { format!("'{}'", argument.replace('\'', "'\\''")) }
}

/// Why there is no value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failure {
    /// The error's code.
    pub code: &'static str,
    /// The operator of a fault.
    pub operator: Option<String>,
    /// Where in the text of the model.
    pub span: Option<Span>,
    /// The whole message.
    pub message: String,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure {
            code: error.code(),
            operator: error.operator().map(str::to_owned),
            span: error.span(),
            message: error.to_string(),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error {}", self.code)?;
        if let Some(span) = self.span {
            write!(f, " at {}..{}", span.start, span.end)?;
        }
        write!(f, ": {}", self.message)
    }
}

/// The outputs of one row, or the fault that stopped it.
pub type Answer = Result<Vec<Value>, Failure>;

/// True if the answers are the same: the same bits, any NaN like any other, or the same failure at the same place.
pub(crate) fn same(a: &Answer, b: &Answer) -> bool {
    match (a, b) {
        (Ok(a), Ok(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.same(b)),
        (Err(a), Err(b)) => a == b,
        _ => false,
    }
}

/// An answer on one line.
pub(crate) fn shown(answer: &Answer) -> String {
    match answer {
        Ok(values) => values.iter().map(Value::to_string).collect::<Vec<_>>().join(", "),
        Err(failure) => failure.to_string(),
    }
}

/// Something that runs models.
pub trait Subject {
    /// The name in reports.
    fn name(&self) -> &str;

    /// Compiles the model and evaluates it on the rows, in their order and with one frame.
    ///
    /// # Errors
    /// The model was refused.
    fn run(&self, model: &Model, options: &Options, rows: &[Row]) -> Result<Vec<Answer>, Failure>;
}

impl Subject for Backend {
    fn name(&self) -> &str {
        (*self).name()
    }

    fn run(&self, model: &Model, options: &Options, rows: &[Row]) -> Result<Vec<Answer>, Failure> {
        let executor = model.compile(&options.clone().backend(*self))?;
        let mut session = executor.session();
        let answers = rows.iter().map(|row| {
            // Copies that die with the row: a view of an earlier row's text is a dangling one.
            let values: Vec<Value> =
                executor.inputs().iter().map(|field| row.get(&field.name).map_or(Value::Nothing, fresh)).collect();
            session.evaluate(&values).map_err(Failure::from)
        });
        Ok(answers.collect())
    }
}
