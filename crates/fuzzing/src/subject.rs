//! What is compared: something that runs a model on rows. The backends are subjects; a test wraps one and lies.

use crate::values::fresh;
use cembra::{Array, ArrayKind, Backend, Error, Model, Options, RowPlayer, Scalar, Tiering};
use cembra_expr::print_value;
use cembra_value::{Span, Value};
use std::fmt;
use std::sync::{Arc, LazyLock};

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
    /// The first element that failed, of operators on elements of arrays.
    pub element: Option<usize>,
    /// The whole message.
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

/// Where two answers have arrays that differ at an element which neither shows.
pub(crate) fn hidden_difference(a: &Answer, b: &Answer) -> Option<String> {
    /// As many as arrays show.
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

/// Something that runs models.
pub trait Subject: Sync {
    /// The name in reports.
    fn name(&self) -> &str;

    /// Compiles the model and evaluates it on the rows, in their order and with one frame.
    ///
    /// # Errors
    /// The model was refused.
    fn run(&self, model: &Model, options: &Options, rows: &[Row]) -> Result<Vec<Answer>, Failure>;
}

/// Of a tiered backend the tier changes in the middle of the rows, by hand and at rows that depend on their number only.
impl Subject for Backend {
    fn name(&self) -> &str {
        (*self).name()
    }

    fn run(&self, model: &Model, options: &Options, rows: &[Row]) -> Result<Vec<Answer>, Failure> {
        let tiering = Tiering::default().by_hand(true).every_tier(true);
        let executor = model.compile(&options.clone().backend(*self).tiering(tiering))?;
        executor.finish_tiers();
        if let Some(reason) = executor.fallback() {
            // Otherwise the interpreter would be compared with itself.
            return Err(Error::from(reason.clone()).into());
        }
        let mut session = executor.session();
        let mut changes = 0;
        let answers = rows.iter().enumerate().map(|(at, row)| {
            while changes < stage(at, rows.len(), STAGES) {
                executor.advance();
                changes += 1;
            }
            // Copies that die with the row: a view of an earlier row's text is a dangling one.
            let values: Vec<Value> =
                executor.inputs().iter().map(|field| row.get(&field.name).map_or(Value::Nothing, fresh)).collect();
            // Long arrays are shared out among threads.
            session.set_threads(1 + at % 3);
            session.evaluate(&values).map_err(Failure::from)
        });
        Ok(answers.collect())
    }
}

/// The ways in which a tiered backend runs one model: interpreted, and in two tiers.
const STAGES: usize = 3;

/// The stage that a row is run in, of several that share the rows evenly, one after the other. The last row is in the last
/// stage, however few rows there are, so that the shrinker may leave out others.
pub(crate) fn stage(row: usize, rows: usize, stages: usize) -> usize {
    ((row + 1) * stages).div_ceil(rows.max(1)).min(stages) - 1
}

/// Who runs the programs, and is compared. This is the whole list.
#[derive(Clone, Copy)]
pub struct Subjects<'a> {
    /// What the others are compared with.
    pub reference: &'a dyn Subject,
    /// Runs every program.
    pub native: &'a dyn Subject,
    /// Runs a share of the programs, `Config::tiered`: it compiles them twice.
    pub tiered: &'a dyn Subject,
    /// Run a share of the programs, `Config::batched`, as batches.
    pub players: &'a [&'a dyn Subject],
    /// Run the programs on arrays, which are no batches.
    pub fused: &'a [&'a dyn Subject],
}

/// What a program computes on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Scalars,
    Arrays,
}

impl<'a> Subjects<'a> {
    /// Those that are compared with the reference.
    pub(crate) fn others(self, of: Kind, tiered: bool, batched: bool) -> impl Iterator<Item = &'a dyn Subject> {
        let players = match of {
            Kind::Arrays => self.fused,
            Kind::Scalars if batched => self.players,
            Kind::Scalars => &[],
        };
        std::iter::once(self.native).chain(tiered.then_some(self.tiered)).chain(players.iter().copied())
    }
}

impl Default for Subjects<'_> {
    /// The backends.
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

/// An array program whose elements are played by this player.
struct Fused {
    player: RowPlayer,
    name: String,
}

impl Subject for Fused {
    fn name(&self) -> &str {
        &self.name
    }

    fn run(&self, model: &Model, options: &Options, rows: &[Row]) -> Result<Vec<Answer>, Failure> {
        Backend::Native.run(model, &options.clone().row_player(self.player), rows)
    }
}

/// Those who run array programs on this machine.
fn fused() -> &'static [&'static dyn Subject] {
    static ALL: LazyLock<Vec<Fused>> = LazyLock::new(|| {
        let fused = |player: RowPlayer| Fused { player, name: format!("arrays by {}", player.name()) };
        // The best one is what the native backend chooses.
        RowPlayer::ALL.into_iter().filter(|player| *player != RowPlayer::Best).map(fused).collect()
    });
    static THERE: LazyLock<Vec<&'static dyn Subject>> = LazyLock::new(|| {
        let array = Array::from_scalars(Scalar::Float64, [Some(1.0.into())]);
        let x = Value::Array(ArrayKind::Dense, array.into());
        those_there("input x: [f64?]; x + 1.0", x, ALL.iter().map(|fused| fused as &dyn Subject))
    });
    &THERE
}

/// Returns the subjects that evaluate a model of one input, `x`.
fn those_there<'s>(text: &str, x: Value, all: impl Iterator<Item = &'s dyn Subject>) -> Vec<&'s dyn Subject> {
    let Ok(model) = Model::parse(text) else { return Vec::new() };
    let row = Row::new(vec![("x".into(), x)]);
    let is_there = |subject: &&dyn Subject| {
        let answers = subject.run(&model, &Options::default(), std::slice::from_ref(&row));
        answers.is_ok_and(|answers| answers.iter().all(Result::is_ok))
    };
    all.filter(is_there).collect()
}

/// The players of rows that there are on this machine.
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
