//! Tests random assignments to tensors in models, with small integers as elements. An assignment such as `c("i,j") += a("i,k") * b("k,j")` is parsed,
//! compiled and run through the public interface, and the result is compared with explicit sums over the index labels. Randomly damaged texts of the
//! models are run too; the library may reject these.

use super::Finding;
use super::direct::{Dense, indices};
use super::judge::{all_options, shared_out};
use super::leaves::{self, Values};
use crate::config::pick;
use crate::damage::garbled;
use cembra::explain::print;
use cembra::values::print_type;
use cembra::{Executor, Model, Options, QType, Scalar, Tensor};
use fastrand::Rng;
use std::collections::BTreeMap;

/// The possible labels.
const LABELS: [&str; 5] = ["i", "j", "k", "l", "long_1"];

/// The functions from all elements to a number whose result is an integer for small integers.
const WHOLES: [&str; 6] = ["sum", "min", "max", "absmin", "absmax", "squared_norm"];

/// A factor: a labelled tensor, the sum or difference of two, or a number computed from one.
#[derive(Debug)]
enum Factor {
    Tensor(String, Vec<usize>),
    Both(String, String, Vec<usize>, bool),
    Whole(String, Vec<usize>, &'static str),
}

/// Factors, an integer that multiplies them, and a power of two that divides them.
#[derive(Debug)]
struct Term {
    factors: Vec<Factor>,
    number: i32,
    divisor: i32,
    is_subtracted: bool,
}

struct StatementDraft<'r> {
    random: &'r mut Rng,
    extents: Vec<usize>,
    tensors: BTreeMap<String, Tensor>,
}

impl StatementDraft<'_> {
    /// Returns a tensor with these labels, either new or an existing one.
    fn tensor(&mut self, labels: &[usize]) -> Result<String, cembra::Error> {
        let extents: Vec<usize> = labels.iter().map(|label| self.extents[*label]).collect();
        let known: Vec<&String> =
            self.tensors.iter().filter(|(_, tensor)| tensor.extents() == extents).map(|(name, _)| name).collect();
        if !known.is_empty() && self.random.u32(..3) == 0 {
            return Ok((*pick(self.random, &known)).clone());
        }
        let name = format!("t{}", self.tensors.len());
        let tensor = leaves::tensor(self.random, Scalar::Float64, &extents, Values::Small)?;
        self.tensors.insert(name.clone(), tensor);
        Ok(name)
    }

    fn factor(&mut self, labels: Vec<usize>) -> Result<Factor, cembra::Error> {
        let name = self.tensor(&labels)?;
        if self.random.u32(..5) == 0 {
            let other = self.tensor(&labels)?;
            return Ok(Factor::Both(name, other, labels, self.random.bool()));
        }
        Ok(Factor::Tensor(name, labels))
    }

    /// Returns a term that has all labels of the target, and other labels in at least two factors.
    fn term(&mut self, target: &[usize]) -> Result<Term, cembra::Error> {
        let count = self.random.usize(1..=3);
        let mut own: Vec<Vec<usize>> = vec![Vec::new(); count];
        for label in target {
            own[self.random.usize(..count)].push(*label);
            if self.random.u32(..3) == 0 {
                own[self.random.usize(..count)].push(*label);
            }
        }
        for label in (0..LABELS.len()).filter(|label| !target.contains(label)) {
            if count > 1 && self.random.u32(..3) == 0 {
                let first = self.random.usize(..count);
                own[first].push(label);
                own[(first + self.random.usize(1..count)) % count].push(label);
            }
        }
        let mut factors = Vec::new();
        for mut labels in own {
            if labels.len() > LABELS.len() {
                labels.sort_unstable();
                labels.dedup();
            }
            self.random.shuffle(&mut labels);
            if !labels.is_empty() {
                factors.push(self.factor(labels)?);
            }
        }
        if factors.is_empty() || self.random.u32(..8) == 0 {
            let mut labels: Vec<usize> = (0..LABELS.len()).filter(|_| self.random.bool()).collect();
            labels.truncate(3);
            if labels.is_empty() {
                labels.push(0);
            }
            let name = self.tensor(&labels)?;
            factors.push(Factor::Whole(name, labels, pick::<&str>(self.random, &WHOLES)));
        }
        let (number, divisor) = (*pick(self.random, &[1, 1, 1, -1, 2, 3, -2]), *pick(self.random, &[1, 1, 1, 2, 4]));
        Ok(Term { factors, number, divisor, is_subtracted: self.random.u32(..3) == 0 })
    }
}

fn labels_of(labels: &[usize]) -> String {
    labels.iter().map(|label| LABELS[*label]).collect::<Vec<_>>().join(",")
}

impl Term {
    fn text(&self) -> String {
        let factor = |factor: &Factor| match factor {
            Factor::Tensor(name, labels) => format!("{name}(\"{}\")", labels_of(labels)),
            Factor::Both(a, b, labels, is_sum) => {
                let (labels, sign) = (labels_of(labels), if *is_sum { '+' } else { '-' });
                format!("({a}(\"{labels}\") {sign} {b}(\"{labels}\"))")
            }
            Factor::Whole(name, labels, function) => format!("{name}(\"{}\").{function}()", labels_of(labels)),
        };
        let mut text: Vec<String> = self.factors.iter().map(factor).collect();
        if self.number != 1 {
            text.insert(self.number.unsigned_abs() as usize % text.len(), self.number.to_string());
        }
        let text = text.join(" * ");
        if self.divisor == 1 { text } else { format!("{text} / {}", self.divisor) }
    }

    /// Returns the value of the term at an index of the target: the sum over all other labels.
    fn value(&self, dense: &BTreeMap<String, Dense>, extents: &[usize], target: &[usize], index: &[usize]) -> f64 {
        let mut labels: Vec<usize> = Vec::new();
        for factor in &self.factors {
            if let Factor::Tensor(_, own) | Factor::Both(_, _, own, _) = factor {
                labels.extend(own.iter().filter(|label| !target.contains(label)));
            }
        }
        labels.sort_unstable();
        labels.dedup();
        let within: Vec<usize> = labels.iter().map(|label| extents[*label]).collect();
        let mut place = vec![0; LABELS.len()];
        target.iter().zip(index).for_each(|(label, at)| place[*label] = *at);
        let mut sum = 0.0;
        for part in indices(&within) {
            labels.iter().zip(&part).for_each(|(label, at)| place[*label] = *at);
            let of = |name: &String, own: &[usize]| {
                dense[name].float(&own.iter().map(|label| place[*label]).collect::<Vec<usize>>())
            };
            let factor = |factor: &Factor| match factor {
                Factor::Tensor(name, own) => of(name, own),
                Factor::Both(a, b, own, true) => of(a, own) + of(b, own),
                Factor::Both(a, b, own, false) => of(a, own) - of(b, own),
                Factor::Whole(name, _, function) => whole(&dense[name], function),
            };
            sum += self.factors.iter().map(factor).product::<f64>();
        }
        let value = sum * f64::from(self.number) / f64::from(self.divisor);
        if self.is_subtracted { -value } else { value }
    }
}

fn whole(dense: &Dense, function: &str) -> f64 {
    let all = || indices(&dense.extents).map(|index| dense.float(&index));
    match function {
        "sum" => all().sum(),
        "min" => all().fold(f64::INFINITY, f64::min),
        "max" => all().fold(f64::NEG_INFINITY, f64::max),
        "absmin" => all().map(f64::abs).fold(f64::INFINITY, f64::min),
        "absmax" => all().map(f64::abs).fold(f64::NEG_INFINITY, f64::max),
        _ => all().map(|x| x * x).sum(),
    }
}

/// An assignment to a tensor, such as `c("i,j") += a("i,k") * b("k,j")`, and the tensors that the names in the assignment stand for.
pub(super) struct Statement {
    pub(super) line: String,
    pub(super) tensors: BTreeMap<String, Tensor>,
    extents: Vec<usize>,
    target: Vec<usize>,
    terms: Vec<Term>,
    assign: &'static str,
    /// The value of the target before the assignment, even if the line does not read it.
    old: Tensor,
}

/// Returns a random assignment to a tensor.
pub(super) fn statement(random: &mut Rng) -> Result<Statement, cembra::Error> {
    let extents: Vec<usize> = LABELS.iter().map(|_| *pick(random, &[1, 2, 2, 3, 3, 4])).collect();
    let mut written = StatementDraft { random, extents, tensors: BTreeMap::new() };
    let mut target: Vec<usize> = (0..LABELS.len()).filter(|_| written.random.u32(..3) == 0).collect();
    written.random.shuffle(&mut target);
    let count = written.random.usize(1..=3);
    let terms = (0..count).map(|_| written.term(&target)).collect::<Result<Vec<_>, _>>()?;
    let assign = *pick(written.random, &["=", "=", "+=", "-=", "*="]);
    let extents: Vec<usize> = target.iter().map(|label| written.extents[*label]).collect();
    let old = leaves::tensor(written.random, Scalar::Float64, &extents, Values::Small)?;
    // The target is an existing tensor or a new one.
    if assign != "=" || written.random.bool() {
        written.tensors.insert("c".to_owned(), old.clone());
    }
    let mut line = format!("c(\"{}\") {assign} ", labels_of(&target));
    for (at, term) in terms.iter().enumerate() {
        line += match (at, term.is_subtracted) {
            (0, true) => "-",
            (0, false) => "",
            (_, true) => " - ",
            (_, false) => " + ",
        };
        line += &term.text();
    }
    let StatementDraft { extents, tensors, .. } = written;
    Ok(Statement { line, tensors, extents, target, terms, assign, old })
}

impl Statement {
    /// Returns the text of a model that declares the tensors as inputs, and then has the assignment as a line.
    pub(super) fn text(&self) -> String {
        model_of(&self.line, &self.tensors)
    }

    /// Returns the expected value of the target after the assignment. Its elements are exact, except for the signs of zeros.
    pub(super) fn expected(&self) -> Result<Tensor, cembra::Error> {
        let dense: BTreeMap<String, Dense> =
            self.tensors.iter().map(|(name, tensor)| (name.clone(), Dense::of(tensor))).collect();
        let old = Dense::of(self.tensors.get("c").unwrap_or(&self.old));
        let extents: Vec<usize> = self.target.iter().map(|label| self.extents[*label]).collect();
        let elements = indices(&extents).map(|index| {
            let values = self.terms.iter().map(|term| term.value(&dense, &self.extents, &self.target, &index));
            let value = values.reduce(|a, b| a + b).unwrap_or(0.0);
            match self.assign {
                "=" => value,
                "+=" => old.float(&index) + value,
                "-=" => old.float(&index) - value,
                _ => old.float(&index) * value,
            }
        });
        Tensor::new(&extents, elements.collect())
    }
}

/// Tests a random assignment, and a damaged version of its text.
pub(super) fn check(random: &mut Rng) -> Option<Finding> {
    let tried = match statement(random) {
        Ok(statement) => tried(random, &statement),
        Err(error) => Err((error, String::new())),
    };
    match tried {
        Ok(finding) => finding,
        Err((error, text)) => Some(Finding { what: format!("a statement fails: {error}"), text }),
    }
}

/// Returns the text of a model with this line, whose inputs are the tensors.
fn model_of(line: &str, tensors: &BTreeMap<String, Tensor>) -> String {
    let mut text = String::new();
    for (name, tensor) in tensors {
        // There are at most as many axes as labels.
        let qtype = QType::Tensor(tensor.scalar_type(), tensor.extents().len() as u8);
        text += &format!("input {name}: {}\n", print_type(&qtype));
    }
    text + line
}

/// Returns, for each input of `executor`, the tensor in `tensors` with the input's name; `None` if an input's name is not in `tensors`.
pub(super) fn given(executor: &Executor, tensors: &BTreeMap<String, Tensor>) -> Option<Vec<Tensor>> {
    executor.inputs().iter().map(|field| tensors.get(&*field.name).cloned()).collect()
}

/// Returns the tensor with memory of its own, so that it can be overwritten.
fn own(tensor: &Tensor) -> Result<Tensor, cembra::Error> {
    Tensor::from_parts(tensor.data().clone(), tensor.layout().clone())
}

/// Returns the values of the model's only output `c`, each with the name of its evaluator: a session on tensors, the same session overwriting the old
/// tensor `c`, and the reference.
fn values(
    model: &Model,
    options: &Options,
    tensors: &BTreeMap<String, Tensor>,
) -> Result<Vec<(&'static str, Tensor)>, cembra::Error> {
    let executor = model.compile(options)?;
    let given = given(&executor, tensors).unwrap_or_default();
    let mut session = shared_out(executor.session());
    let mut values = vec![("a session", session.run_tensors(&given)?.to_vec())];
    let mut over = given.iter().map(own).collect::<Result<Vec<Tensor>, cembra::Error>>()?;
    let target = executor.inputs().iter().position(|field| &*field.name == "c").unwrap_or(over.len());
    // A tensor that is not read can be overwritten too.
    if let Some(unread) = tensors.get("c").filter(|_| target == over.len()) {
        over.push(own(unread)?);
    }
    session.run_over(&mut over, target)?;
    values.push(("a session that writes over an input", vec![over.swap_remove(target)]));
    values.push(("the reference", executor.run_reference(&given)?));
    let only = |(by, mut outputs): (_, Vec<Tensor>)| (by, outputs.swap_remove(0));
    Ok(values.into_iter().map(only).collect())
}

/// Returns true for tensors with equal types, extents and numbers. The signs of zeros are ignored.
fn is_equal(a: &Tensor, b: &Tensor) -> bool {
    let (Ok(x), Ok(y)) = (a.to_vec::<f64>(), b.to_vec::<f64>()) else { return false };
    a.extents() == b.extents() && x == y
}

fn tried(random: &mut Rng, statement: &Statement) -> Result<Option<Finding>, (cembra::Error, String)> {
    let text = statement.text();
    let failed = |error: cembra::Error| (error, text.clone());
    let model = Model::parse(&text).map_err(failed)?;
    let expected = statement.expected().map_err(&failed)?;
    for options in all_options() {
        let found = values(&model, &options, &statement.tensors).map_err(failed)?;
        if let Some((by, found)) = found.iter().find(|(_, found)| !is_equal(found, &expected)) {
            let shown = &statement.tensors;
            return Ok(Some(Finding {
                what: format!("{by} gives another value of a statement"),
                text: format!("{text}\nfound {found:?}\nexpected {expected:?}\nof {shown:?}\nby {options:?}"),
            }));
        }
    }
    // The model must print as text that reads back as the same model.
    let printed = print(model.program());
    let again = Model::parse(&printed).map_err(|error| (error, printed.clone()))?;
    if again.program() != model.program() {
        let text = format!("{text}\nprinted as\n{printed}");
        return Ok(Some(Finding { what: "a statement prints as another".to_owned(), text }));
    }
    // A damaged text may be rejected when it is parsed, compiled or run.
    let damaged = garbled(random, &text);
    if let Ok(executor) = Model::parse(&damaged).and_then(|model| model.compile(&Options::default()))
        && let Some(given) = given(&executor, &statement.tensors)
    {
        let _refused = executor.session().run_tensors(&given).is_err();
    }
    Ok(None)
}
