//! A model, and what a session says of some rows: each case runs it as a batch, on as many of these rows as the case says, and
//! compares all that comes out.

use crate::one_answer::case::{Case, Faults, Out};
use cembra::columns::InputColumn;
use cembra::explain::RowPlayer;
use cembra::explain::print;
use cembra::{Backend, Batch, BatchResult, Error, Model, OnError, Options, RunOptions, Session};
use cembra_expr::Program;
use cembra_fuzzing::{ColumnMemory, Config, Layout, Lists, Shape};
use cembra_runtime::QType;
use cembra_value::Value;
use std::collections::HashMap;

/// How many rows there are to choose from.
const POOL: u32 = 61;

/// What is added to each model, so that any of them can fail in any row.
const FAULT: &str = "\ninput fault: i64?\noutput quotient = 12 // fault\n";

/// Values of a row, or the fault that ends it.
type Answer = Result<Vec<Value>, Error>;

/// How much was compared, so that one sees that it was not nothing.
#[derive(Clone, Copy, Default)]
pub(crate) struct Compared {
    pub(crate) rows: usize,
    /// Rows that failed and others did not, in one case.
    pub(crate) failed: usize,
    /// Outputs that went over inputs.
    pub(crate) over: usize,
}

impl std::ops::AddAssign for Compared {
    fn add_assign(&mut self, other: Compared) {
        self.rows += other.rows;
        self.failed += other.failed;
        self.over += other.over;
    }
}

/// A model and its rows.
pub(crate) struct Trial {
    text: String,
    session: Session,
    batches: Vec<(RowPlayer, Batch)>,
    /// Values of the inputs, the one for faults among them.
    pool: Vec<Vec<Value>>,
    answers: Vec<Answer>,
    /// The rows without a fault of their own.
    clean: Vec<usize>,
    fault: usize,
}

impl Trial {
    /// A model with rows of that number, or none if sessions refuse it.
    pub(crate) fn of(program: &Program, number: u64, players: &[RowPlayer]) -> Option<Trial> {
        let text = print(program) + FAULT;
        let model = Model::parse(&text).expect("a model that was printed");
        let options = Options::default();
        let mut session = model.compile(&options.clone().backend(Backend::Interpreter)).ok()?.session();
        let batch = |player: &RowPlayer| {
            let batch = model.batch(&options.clone().row_player(*player));
            (*player, batch.unwrap_or_else(|error| panic!("{text}\n{player:?} refuses it: {error}")))
        };
        let batches: Vec<(RowPlayer, Batch)> = players.iter().map(batch).collect();
        let inputs = batches[0].1.inputs();
        let fault = inputs.iter().position(|input| &*input.name == "fault")?;
        let config = Config { rows: POOL, ..Config::default() };
        let rows = cembra_fuzzing::rows(&config, number, program);
        let value = |row: usize, name: &str| match rows[row].get(name) {
            Some(value) => value.clone(),
            None => Value::from((!row.is_multiple_of(7)).then_some(row as i64 % 5 + 1)),
        };
        let pool: Vec<Vec<Value>> =
            (0..rows.len()).map(|row| inputs.iter().map(|input| value(row, &input.name)).collect()).collect();
        let answers: Vec<Answer> = pool.iter().map(|row| session.evaluate(row)).collect();
        let clean = (0..pool.len()).filter(|row| answers[*row].is_ok()).collect();
        Some(Trial { text, session, batches, pool, answers, clean, fault })
    }

    /// The rows of a case: which of the pool they are, the values of each input, and what a session says of them.
    fn rows(&mut self, case: &Case, primary: usize, random: &mut fastrand::Rng) -> (Vec<Vec<Value>>, Vec<Answer>) {
        let all: Vec<usize> = (0..self.pool.len()).collect();
        let from = if case.faults == Faults::Own || self.clean.is_empty() { &all } else { &self.clean };
        let start = random.usize(..from.len());
        let mut columns: Vec<Vec<Value>> = self.pool[0].iter().map(|_| Vec::with_capacity(case.rows)).collect();
        let mut answers = Vec::with_capacity(case.rows);
        let shared = (case.shape.layout == Layout::Shared).then(|| self.pool[from[start]][primary].clone());
        let injected: Vec<usize> = match case.faults {
            Faults::Injected if case.rows > 0 => (0..3).map(|_| random.usize(..case.rows)).collect(),
            _ => Vec::new(),
        };
        let mut known: HashMap<usize, Answer> = HashMap::new();
        for at in 0..case.rows {
            let chosen = from[(start + at) % from.len()];
            for (column, value) in columns.iter_mut().zip(&self.pool[chosen]) {
                column.push(value.clone());
            }
            if let Some(shared) = &shared {
                columns[primary][at] = shared.clone();
            }
            let fails = injected.contains(&at) && !(shared.is_some() && primary == self.fault);
            if fails {
                columns[self.fault][at] = Value::from(Some(0_i64));
            }
            let row = || columns.iter().map(|column| column[at].clone()).collect::<Vec<Value>>();
            if fails {
                answers.push(self.session.evaluate(&row()));
            } else if shared.is_some() {
                answers.push(known.entry(chosen).or_insert_with(|| self.session.evaluate(&row())).clone());
            } else {
                answers.push(self.answers[chosen].clone());
            }
        }
        (columns, answers)
    }

    /// Runs a case.
    ///
    /// # Errors
    /// What is not as a session says it is.
    pub(crate) fn run(&mut self, case: &Case) -> Result<Compared, String> {
        let random = &mut fastrand::Rng::with_seed(case.seed);
        let primary = random.usize(..self.pool[0].len());
        let (values, expected) = self.rows(case, primary, random);
        let shown: Vec<String> =
            values.iter().map(|column| format!("{:?}", column.iter().take(3).collect::<Vec<_>>())).collect();
        let batch = &self.batches.iter().find(|(player, _)| *player == case.player).expect("a player").1;
        let told = |what: String| {
            let inputs: Vec<&str> = batch.inputs().iter().map(|input| &*input.name).collect();
            format!("{what}\n{case:?}\n{}\ninput {primary} of {inputs:?} begins with: {}", self.text, shown.join("; "))
        };
        // Of other inputs any shape.
        let mut laid: Vec<Option<ColumnMemory>> = Vec::new();
        for (at, (input, values)) in batch.inputs().iter().zip(values).enumerate() {
            let shape = if at == primary { case.shape } else { Shape::random(random) };
            laid.push(Some(ColumnMemory::of(values, &input.qtype, shape, random)));
        }
        let mut of_outputs: Vec<Option<usize>> = vec![None; laid.len()];
        let mut memory: Vec<Option<(ColumnMemory, QType)>> = Vec::new();
        for (at, output) in batch.outputs().iter().enumerate() {
            let is_possible = output.qtype.scalar().is_some_and(|scalar| !scalar.is_string())
                && (output.qtype.is_optional() || case.on_error == OnError::Fail);
            let over = batch.inputs().iter().position(|input| input.qtype.scalar() == output.qtype.scalar());
            let over = over.filter(|input| laid[*input].as_ref().is_some_and(ColumnMemory::is_memory));
            memory.push(match (case.out, over) {
                _ if !is_possible => None,
                (Out::New, _) => None,
                (Out::Over, Some(input)) => {
                    of_outputs[input] = Some(at);
                    let optional = output.qtype.is_optional() || batch.inputs()[input].qtype.is_optional();
                    let qtype = if optional { output.qtype.to_optional() } else { output.qtype.clone() };
                    laid[input].take().map(|laid| (laid, qtype))
                }
                (Out::Over | Out::Memory, _) => {
                    let shape = Shape { layout: *random.choice(&Layout::ALL[..3]).expect("layouts"), ..case.shape };
                    Some((ColumnMemory::memory(case.rows, &output.qtype, shape, random), output.qtype.clone()))
                }
            });
        }
        let lists: Vec<Option<Lists<'_>>> = laid.iter().map(|laid| laid.as_ref().map(ColumnMemory::lists)).collect();
        let all = || batch.inputs().iter().zip(laid.iter().zip(&lists));
        let dictionaries: Vec<Option<InputColumn<'_>>> = all()
            .map(|(input, (laid, lists))| {
                laid.as_ref().zip(lists.as_ref()).and_then(|(laid, lists)| laid.dictionary(&input.qtype, lists))
            })
            .collect();
        let mut columns: Vec<InputColumn<'_>> = Vec::new();
        for ((input, (laid, lists)), (dictionary, output)) in all().zip(dictionaries.iter().zip(&of_outputs)) {
            columns.push(match (laid, lists, output) {
                (_, _, Some(output)) => InputColumn::of_output(*output),
                (Some(laid), Some(lists), _) => laid.column(&input.qtype, lists, dictionary.as_ref()),
                _ => return Err(told(format!("input `{}` is nowhere", input.name))),
            });
        }
        let outputs = memory.iter_mut().map(|memory| memory.as_mut().and_then(|(laid, qtype)| laid.column_mut(qtype)));
        let options = RunOptions::new().rows(case.rows).threads(case.threads).strip_rows(case.strip);
        let options = options.on_error(case.on_error).keep_failures(usize::MAX);
        let made = batch.run_into(&options, &columns, outputs.collect());
        if let Some(at) = memory.iter().flatten().position(|(laid, _)| !laid.is_intact()) {
            return Err(told(format!("memory around that of output {at} was written")));
        }
        compare(batch, case, made, &expected, &memory).map_err(told)?;
        let failed = expected.iter().filter(|answer| answer.is_err()).count();
        Ok(Compared {
            rows: case.rows,
            failed: if failed < case.rows { failed } else { 0 },
            over: of_outputs.iter().flatten().count(),
        })
    }
}

/// Compares what a batch made with what a session says of each row.
fn compare(
    batch: &Batch,
    case: &Case,
    made: Result<BatchResult, Error>,
    expected: &[Answer],
    memory: &[Option<(ColumnMemory, QType)>],
) -> Result<(), String> {
    let first = expected.iter().position(Result::is_err).filter(|_| case.on_error == OnError::Fail);
    let made = match (made, first) {
        (Err(error), Some(row)) => return same_error(&error, &expected[row], error.row(), row),
        (Err(error), None) => return Err(format!("it fails: {error}")),
        (Ok(_), Some(row)) => return Err(format!("row {row} should fail")),
        (Ok(made), None) => made,
    };
    let failing: Vec<usize> = (0..expected.len()).filter(|row| expected[*row].is_err()).collect();
    if made.failed != failing {
        return Err(format!("rows {:?} failed, not {failing:?}", made.failed));
    }
    for (failure, row) in made.failures.iter().zip(&failing) {
        same_error(&failure.error, &expected[*row], Some(failure.row), *row)?;
    }
    let mut columns = made.columns.iter();
    for (at, output) in batch.outputs().iter().enumerate() {
        let column = if memory[at].is_none() { columns.next() } else { None };
        let value = |row: usize| match &memory[at] {
            Some((laid, _)) => laid.value(&output.qtype, row),
            None => column.and_then(|column| column.value(row)),
        };
        for (row, expected) in expected.iter().enumerate() {
            let found = value(row).ok_or_else(|| format!("output {at} has no value in row {row}"))?;
            let is_right = match (expected, &found) {
                (Ok(expected), Value::Present(scalar)) if !output.qtype.is_optional() => {
                    expected[at].same(&Value::Scalar(scalar.clone()))
                }
                (Ok(expected), found) => expected[at].same(found),
                (Err(_), found) => matches!(found, Value::Missing(_)) || output.qtype.scalar().is_none(),
            };
            if !is_right {
                let expected = expected.as_ref().map(|values| &values[at]);
                return Err(format!("output {at} is {found:?} in row {row}, not {expected:?}"));
            }
        }
    }
    Ok(())
}

fn same_error(found: &Error, expected: &Answer, row: Option<usize>, expected_row: usize) -> Result<(), String> {
    let Err(expected) = expected else { return Ok(()) };
    let place = |error: &Error| (error.code(), error.operator().map(str::to_owned), error.span());
    let is_same = row == Some(expected_row)
        && place(found) == place(expected)
        && found.message().starts_with(&expected.message());
    if is_same { Ok(()) } else { Err(format!("the error is {found} of row {row:?}, not {expected} of {expected_row}")) }
}
