//! The subjects that are compared: implementations that run a model on rows. The backends are subjects. To test the fuzzer itself, a test wraps a
//! backend so that it gives wrong answers.

use crate::values::fresh;
use cembra::explain::RowPlayer;
use cembra::native::Tiering;
use cembra::values::ArrayKind;
use cembra::{Array, Backend, Error, Model, Options, Scalar};
use cembra_expr::print_value;
use cembra_value::{Span, Value};
use std::fmt;
use std::sync::{Arc, LazyLock};

/// The value of each input of a program, by name.
#[derive(Clone, PartialEq, Debug)]
pub struct Row(Vec<(Arc<str>, Value)>);

impl Row {
    /// Returns a row that has these names and values of inputs.
    #[must_use]
    pub fn new(values: Vec<(Arc<str>, Value)>) -> Self {
        Row(values)
    }

    /// Returns the value of the input `name`; `None` if the row lacks it.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.0.iter().find(|(known, _)| **known == *name).map(|(_, value)| value)
    }

    /// Returns the names and values of all inputs in the row.
    #[must_use]
    pub fn values(&self) -> &[(Arc<str>, Value)] {
        &self.0
    }

    pub(crate) fn values_mut(&mut self) -> &mut Vec<(Arc<str>, Value)> {
        &mut self.0
    }
}

impl fmt::Display for Row {
    /// Formats the row as arguments of `cembra eval`: `-s x=1.5 -s 'name=missing[text]'`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (name, value)) in self.0.iter().enumerate() {
            let space = if at > 0 { " " } else { "" };
            write!(f, "{space}-s {}", quoted(&format!("{name}={}", print_value(value))))?;
        }
        Ok(())
    }
}

/// Quotes an argument for a POSIX shell.
fn quoted(argument: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "=._-+,:/".contains(c);
    if argument.chars().all(plain) { argument.to_owned() } else { format!("'{}'", argument.replace('\'', "'\\''")) }
}

/// The error that a subject (an implementation that runs models) returned instead of outputs: its code, message, operator and place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failure {
    /// The code of the error.
    pub code: &'static str,
    /// The name of the operator that faulted; `None` for errors that are not faults.
    pub operator: Option<String>,
    /// The span of the error in the model's text; `None` if the error has no place in the text.
    pub span: Option<Span>,
    /// The index of the first array element that failed, for an operator on the elements of arrays; else `None`.
    pub element: Option<usize>,
    /// The whole message of the error.
    pub message: String,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure {
            code: error.code(),
            operator: error.operator().map(str::to_owned),
            span: error.span(),
            element: error.element(),
            message: error.message(),
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

/// The outputs of a subject for one row, or the failure that stopped it.
pub type Answer = Result<Vec<Value>, Failure>;

/// Returns true if two answers are equal: the same bits, with all NaNs equal, or the same failure at the same place.
pub(crate) fn same(a: &Answer, b: &Answer) -> bool {
    match (a, b) {
        (Ok(a), Ok(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.same(b)),
        (Err(a), Err(b)) => a == b,
        _ => false,
    }
}

/// Returns the outputs, or the failure, in `answer` as text on one line.
pub(crate) fn shown(answer: &Answer) -> String {
    match answer {
        Ok(values) => values.iter().map(Value::to_string).collect::<Vec<_>>().join(", "),
        Err(failure) => failure.to_string(),
    }
}

/// Describes the first element in which two array outputs differ, if the answers look equal when they are printed; `None` otherwise.
pub(crate) fn hidden_difference(a: &Answer, b: &Answer) -> Option<String> {
    /// The number of elements that a printed array shows.
    const SHOWN: usize = 10;
    let (Ok(a), Ok(b)) = (a, b) else { return None };
    a.iter().zip(b).enumerate().find_map(|(output, values)| match values {
        (Value::Array(_, a), Value::Array(_, b)) if a.len() == b.len() => {
            let at = (0..a.len()).find(|at| !a.value(*at).same(&b.value(*at)))?;
            let said = || format!("element {at} of output {output}: {} and {}", a.value(at), b.value(at));
            (at >= SHOWN).then(said)
        }
        _ => None,
    })
}

/// An implementation that runs models, for example a backend. The answers of several subjects are compared.
pub trait Subject: Sync {
    /// Returns the subject's name, as reports show it.
    fn name(&self) -> &str;

    /// Compiles `model` and evaluates it on `rows`, in order and with the same frame. Returns one answer per row.
    ///
    /// # Errors
    /// If the model is rejected.
    fn run(&self, model: &Model, options: &Options, rows: &[Row]) -> Result<Vec<Answer>, Failure>;
}

/// Runs a model on a backend. A tiered backend changes its tier at rows that depend only on the number of rows.
impl Subject for Backend {
    fn name(&self) -> &str {
        (*self).name()
    }

    fn run(&self, model: &Model, options: &Options, rows: &[Row]) -> Result<Vec<Answer>, Failure> {
        let tiering = Tiering::default().by_hand(true).every_tier(true);
        let executor = model.compile(&options.clone().backend(*self).tiering(tiering))?;
        executor.finish_tiers();
        if let Some(reason) = executor.fallback() {
            // Without this error, the interpreter would be compared with itself.
            return Err(Error::from(reason.clone()).into());
        }
        let mut session = executor.session();
        let mut changes = 0;
        let answers = rows.iter().enumerate().map(|(at, row)| {
            while changes < stage(at, rows.len(), STAGES) {
                executor.advance();
                changes += 1;
            }
            // The values are copies that are dropped with the row, so that a view of an earlier row's text would be dangling.
            let values: Vec<Value> =
                executor.inputs().iter().map(|field| row.get(&field.name).map_or(Value::Nothing, fresh)).collect();
            // Long arrays are divided among threads.
            session.set_threads(1 + at % 3);
            session.evaluate(&values).map_err(Failure::from)
        });
        Ok(answers.collect())
    }
}

/// The number of stages in which a tiered backend runs one model: interpreted, and in two tiers.
const STAGES: usize = 3;

/// Returns the stage (interpreter, then each tier of native code) that runs the row `row` of `rows`. The stages divide the rows evenly, in order. The
/// last row is always in the last stage, so that the shrinker can remove other rows.
pub(crate) fn stage(row: usize, rows: usize, stages: usize) -> usize {
    ((row + 1) * stages).div_ceil(rows.max(1)).min(stages) - 1
}

/// The subjects (implementations) that run the programs, and whose answers are compared.
#[derive(Clone, Copy)]
pub struct Subjects<'a> {
    /// The subject with which all others are compared.
    pub reference: &'a dyn Subject,
    /// The subject that, besides the reference, runs every program.
    pub native: &'a dyn Subject,
    /// The subject that changes tiers between rows. It runs only the share `Config::tiered` of the programs, because it compiles them twice.
    pub tiered: &'a dyn Subject,
    /// The subjects that run all rows as one batch. They run the share `Config::batched` of the programs.
    pub players: &'a [&'a dyn Subject],
    /// The subjects that run the programs on arrays with fused execution, and not as batches.
    pub fused: &'a [&'a dyn Subject],
}

/// The kind of values that a program computes on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Scalars,
    Arrays,
}

impl<'a> Subjects<'a> {
    /// Returns the subjects to compare with the reference, for a program of the kind `of`. The subject that changes tiers is included if `tiered`.
    /// For programs on scalars, the subjects that run batches are included if `batched`; for programs on arrays, the subjects with fused execution
    /// are included.
    pub(crate) fn to_compare(self, of: Kind, tiered: bool, batched: bool) -> impl Iterator<Item = &'a dyn Subject> {
        let players = match of {
            Kind::Arrays => self.fused,
            Kind::Scalars if batched => self.players,
            Kind::Scalars => &[],
        };
        std::iter::once(self.native).chain(tiered.then_some(self.tiered)).chain(players.iter().copied())
    }
}

impl Default for Subjects<'_> {
    /// Returns the backends.
    fn default() -> Self {
        Subjects {
            reference: &Backend::Interpreter,
            native: &Backend::Native,
            tiered: &Backend::Tiered,
            players: players(),
            fused: fused(),
        }
    }
}

/// Runs array programs with a given executor for their elements.
struct FusedSubject {
    player: RowPlayer,
    name: String,
}

impl Subject for FusedSubject {
    fn name(&self) -> &str {
        &self.name
    }

    fn run(&self, model: &Model, options: &Options, rows: &[Row]) -> Result<Vec<Answer>, Failure> {
        Backend::Native.run(model, &options.clone().row_player(self.player), rows)
    }
}

/// Returns the subjects for array programs that this machine supports.
fn fused() -> &'static [&'static dyn Subject] {
    static ALL: LazyLock<Vec<FusedSubject>> = LazyLock::new(|| {
        let fused = |player: RowPlayer| FusedSubject { player, name: format!("arrays by {}", player.name()) };
        // `Best` is the choice of the native backend.
        RowPlayer::ALL.into_iter().filter(|player| *player != RowPlayer::Best).map(fused).collect()
    });
    static THERE: LazyLock<Vec<&'static dyn Subject>> = LazyLock::new(|| {
        let array = Array::from_scalars(Scalar::Float64, [Some(1.0.into())]);
        let x = Value::Array(ArrayKind::Dense, array.into());
        those_there("input x: [f64?]; x + 1.0", x, ALL.iter().map(|fused| fused as &dyn Subject))
    });
    &THERE
}

/// Returns the subjects that can evaluate the model `text`, whose only input `x` has the value `x`.
fn those_there<'s>(text: &str, x: Value, all: impl Iterator<Item = &'s dyn Subject>) -> Vec<&'s dyn Subject> {
    let Ok(model) = Model::parse(text) else { return Vec::new() };
    let row = Row::new(vec![("x".into(), x)]);
    let is_there = |subject: &&dyn Subject| {
        let answers = subject.run(&model, &Options::default(), std::slice::from_ref(&row));
        answers.is_ok_and(|answers| answers.iter().all(Result::is_ok))
    };
    all.filter(is_there).collect()
}

/// Returns the executors for rows that this machine supports.
fn players() -> &'static [&'static dyn Subject] {
    const ALL: [&dyn Subject; 6] = [
        &RowPlayer::Interpreter,
        &RowPlayer::Native,
        &RowPlayer::Lanes128,
        &RowPlayer::Best,
        &RowPlayer::Avx2,
        &RowPlayer::Avx512,
    ];
    static THERE: LazyLock<Vec<&'static dyn Subject>> =
        LazyLock::new(|| those_there("input x: f64; x + 1.0", Value::from(1.0), ALL.into_iter()));
    &THERE
}

#[cfg(test)]
mod tests {
    use super::stage;

    #[test]
    fn stages_share_the_rows_and_the_last_row_is_in_the_last_one() {
        let stages = |rows, stages| (0..rows).map(|row| stage(row, rows, stages)).collect::<Vec<_>>();
        assert_eq!(stages(9, 3), [0, 0, 0, 1, 1, 1, 2, 2, 2]);
        assert_eq!(stages(8, 2), [0, 0, 0, 0, 1, 1, 1, 1]);
        assert_eq!(stages(4, 3), [0, 1, 2, 2]);
        assert_eq!(stages(2, 3), [1, 2]);
        assert_eq!(stages(1, 3), [2]);
        assert_eq!(stages(3, 1), [0, 0, 0]);
    }
}
