//! Runs golden cases on engines and compares. A case passes if every engine returns what the data say and all engines
//! return the same.

use crate::decode::ErrorKind;
use crate::engine::{Engine, Failure, Subject};
use crate::files;
use crate::problem::{DataError, Defect, Malformed};
use crate::record::{Case, ExpressionCase, OperatorCase, Record, Returned, SignatureCase};
use crate::report::{Mismatch, Report};
use crate::tensor::TensorEngines;
use cembra_expr::{Graph, Node, NodeId, Program};
use cembra_ops::Registry;
use cembra_runtime::QType;
use cembra_value::Value;
use rustc_hash::FxHashMap;
use std::num::NonZero;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{iter, thread};

/// What to run, and on what.
pub struct Conformance<'e> {
    /// The engines, at least one.
    pub engines: Vec<&'e dyn Engine>,
    /// Runs only cases whose operator, or whose expression, id or tag, contains this.
    pub only: Option<String>,
    /// The stride between the lines that are run. A stride of 1 runs all lines.
    pub one_in: usize,
    /// How many failures of each operator the report keeps.
    pub show: usize,
}

/// Operator cases that one prepared program serves.
struct Group {
    name: String,
    program: Program,
    cases: Vec<(usize, OperatorCase)>,
}

/// A program on one engine.
struct Prepared {
    engine: &'static str,
    subject: Result<Box<dyn Subject>, Failure>,
}

impl Conformance<'_> {
    /// Runs every case of these files.
    ///
    /// # Errors
    /// A file cannot be read, or has a line that is not of the documented formats.
    pub fn run(&self, files: &[PathBuf]) -> Result<Report, DataError> {
        let next = AtomicUsize::new(0);
        let threads = thread::available_parallelism().map_or(1, NonZero::get).min(files.len());
        // A file is on one thread, and reports are added in the order of the files.
        let share = || {
            let own = || files.get(next.fetch_add(1, Ordering::Relaxed)).map(|file| (file, self.run_file(file)));
            iter::from_fn(own).collect::<Vec<_>>()
        };
        let mut found = thread::scope(|scope| {
            let others: Vec<_> = (1..threads).map(|_| scope.spawn(share)).collect();
            let mut found = share();
            for other in others {
                found.extend(other.join().unwrap_or_else(|panic| resume_unwind(panic)));
            }
            found
        });
        found.sort_by_key(|(file, _)| *file);
        found.into_iter().try_fold(Report::new(self.show), |report, (_, of_file)| Ok(report.with(of_file?)))
    }

    fn run_file(&self, path: &Path) -> Result<Report, DataError> {
        let mut report = Report::new(self.show);
        let file = path.file_name().unwrap_or_default().to_string_lossy();
        let place = |line: usize| format!("{file}:{line}");
        let tensors = TensorEngines::default();
        let mut groups: Vec<Group> = Vec::new();
        let mut by_types: FxHashMap<(String, Vec<QType>), usize> = FxHashMap::default();
        files::for_each_line(path, |line, text| {
            if line % self.one_in != 0 {
                return Ok(());
            }
            let malformed = |problem: Malformed| DataError::Line { path: path.to_owned(), line, problem };
            let record = Record::parse(text).map_err(malformed)?;
            if !self.is_wanted(&record) {
                return Ok(());
            }
            match record.case {
                Err(reason) => report.skip(record.subject, reason),
                Ok(Case::Signature(case)) => {
                    let program = case.callee.program(&case.operands).map_err(malformed)?;
                    let result = self.run_signature(&record.name, &case, &program, &place(line));
                    report.add(&record.subject, result);
                }
                Ok(Case::Tensor(fields)) => match tensors.run(&fields) {
                    Ok(result) => report.add(
                        &record.subject,
                        result.map_err(|wrong| Mismatch {
                            place: place(line),
                            engine: wrong.engine,
                            case: record.name.clone(),
                            expected: wrong.expected,
                            found: wrong.found,
                        }),
                    ),
                    Err(Defect::Unsupported(reason)) => report.skip(record.subject, reason),
                    Err(Defect::Malformed(problem)) => return Err(malformed(problem)),
                },
                Ok(Case::Expression(case)) => {
                    let name = format!("{}, {}", record.name, record.expression);
                    report.add(&record.subject, self.run_expression(&name, &case, &place(line)));
                }
                Ok(Case::Operator(case)) => {
                    let types: Vec<QType> = case.operands.iter().map(Value::qtype).collect();
                    let key = (record.name, types);
                    let index = match by_types.get(&key) {
                        Some(index) => *index,
                        None => {
                            let program = case.callee.program(&key.1).map_err(malformed)?;
                            groups.push(Group { name: key.0.clone(), program, cases: Vec::new() });
                            by_types.insert(key, groups.len() - 1);
                            groups.len() - 1
                        }
                    };
                    groups[index].cases.push((line, case));
                }
            }
            Ok(())
        })?;
        for group in &groups {
            let mut prepared = self.prepare(&group.program);
            for (line, case) in &group.cases {
                report.add(&group.name, run_operator(&group.name, case, &mut prepared, &place(*line)));
            }
        }
        Ok(report)
    }

    fn is_wanted(&self, record: &Record) -> bool {
        let Some(only) = &self.only else { return true };
        record.expression.contains(only.as_str()) || record.name.contains(only.as_str())
    }

    fn prepare(&self, program: &Program) -> Vec<Prepared> {
        let on = |engine: &&dyn Engine| Prepared { engine: engine.name(), subject: engine.prepare(program) };
        self.engines.iter().map(on).collect()
    }

    fn run_signature(&self, name: &str, case: &SignatureCase, program: &Program, place: &str) -> Result<(), Mismatch> {
        for engine in &self.engines {
            let mut found = engine.output_type(program);
            if case.reference_bug && found.is_ok() {
                // No operator case has these types, so that they compile is seen here or nowhere.
                found = engine.prepare(program).map(|subject| subject.output().clone());
            }
            if found.as_ref() != Ok(&case.ret) {
                return Err(Mismatch {
                    place: place.to_owned(),
                    engine: engine.name().to_owned(),
                    case: format!("{name}({})", join(&case.operands)),
                    expected: case.ret.name().to_string(),
                    found: found.map_or_else(|failure| failure.message, |qtype| qtype.name().to_string()),
                });
            }
        }
        Ok(())
    }

    fn run_expression(&self, name: &str, case: &ExpressionCase, place: &str) -> Result<(), Mismatch> {
        let mut prepared = self.prepare(&case.program);
        if case.compile_error.is_none() {
            prepared.iter_mut().for_each(Prepared::require);
        }
        let possible = possible_errors(&case.program.graph);
        for (index, row) in case.rows.iter().enumerate() {
            let accepts_one = |expected: &Returned, found: &Result<Value, Failure>| match (expected, found) {
                (Ok(expected), Ok(found)) => case.closeness.accepts(expected, found),
                (Err(_), Err(failure)) => failure.kind.is_some_and(|kind| possible.contains(&kind)),
                _ => false,
            };
            let accepts = |found: &Result<Value, Failure>| {
                accepts_one(&row.expected, found) || row.alternative.as_ref().is_some_and(|alt| accepts_one(alt, found))
            };
            check(&mut prepared, &row.inputs, Some(&case.ret), accepts).map_err(|wrong| {
                let alternative = row.alternative.as_ref().map(|alt| format!(" or {}", shown(alt)));
                let bindings: Vec<_> = case
                    .program
                    .inputs
                    .iter()
                    .zip(&row.inputs)
                    .map(|(i, v)| format!("{}={}", i.name, typed(v)))
                    .collect();
                Mismatch {
                    place: place.to_owned(),
                    engine: wrong.engine,
                    case: format!("{name}, row {index}: {}", bindings.join(" ")),
                    expected: shown(&row.expected) + &alternative.unwrap_or_default(),
                    found: wrong.found,
                }
            })?;
        }
        Ok(())
    }
}

fn run_operator(name: &str, case: &OperatorCase, prepared: &mut [Prepared], place: &str) -> Result<(), Mismatch> {
    prepared.iter_mut().for_each(Prepared::require);
    let accepts = |found: &Result<Value, Failure>| match (&case.expected, found) {
        (Ok(expected), Ok(found)) => case.closeness.accepts(expected, found),
        // Of unlike sizes Arolla's joins say no more than that an argument is invalid.
        (Err(ErrorKind::Invalid), Err(Failure { kind: Some(ErrorKind::SizeMismatch), .. })) => true,
        (Err(kind), Err(failure)) => failure.kind == Some(*kind),
        _ => false,
    };
    let ret = case.expected.as_ref().ok().map(Value::qtype);
    check(prepared, &case.operands, ret.as_ref(), accepts).map_err(|wrong| Mismatch {
        place: place.to_owned(),
        engine: wrong.engine,
        case: format!("{name}({})", case.operands.iter().map(typed).collect::<Vec<_>>().join(", ")),
        expected: shown(&case.expected),
        found: wrong.found,
    })
}

impl Prepared {
    /// Says that preparing must not fail: an error of the expected kind does not count if it comes that early.
    fn require(&mut self) {
        if let Err(failure) = &mut self.subject
            && failure.kind.take().is_some()
        {
            failure.message.insert_str(0, "does not compile: ");
        }
    }
}

/// An engine that is wrong, and what it returned.
struct Wrong {
    engine: String,
    found: String,
}

/// Evaluates on every engine: the output must be of the expected type, every result accepted, and all the same.
fn check(
    prepared: &mut [Prepared],
    inputs: &[Value],
    ret: Option<&QType>,
    accepts: impl Fn(&Result<Value, Failure>) -> bool,
) -> Result<(), Wrong> {
    let mut first: Option<(&'static str, Result<Value, Failure>)> = None;
    for Prepared { engine, subject } in prepared {
        let found = match subject {
            Ok(subject) => {
                if ret.is_some_and(|ret| ret != subject.output()) {
                    return Err(Wrong {
                        engine: (*engine).to_owned(),
                        found: format!("type {}", subject.output().name()),
                    });
                }
                subject.evaluate(inputs)
            }
            Err(failure) => Err(failure.clone()),
        };
        if !accepts(&found) {
            return Err(Wrong { engine: (*engine).to_owned(), found: shown_found(&found) });
        }
        match &first {
            None => first = Some((engine, found)),
            Some((other, earlier)) if !same(earlier, &found) => {
                return Err(Wrong {
                    engine: format!("{other}, {engine}"),
                    found: format!("{} and {}", shown_found(earlier), shown_found(&found)),
                });
            }
            Some(_) => {}
        }
    }
    Ok(())
}

fn same(a: &Result<Value, Failure>, b: &Result<Value, Failure>) -> bool {
    match (a, b) {
        (Ok(a), Ok(b)) => a.same(b),
        (Err(a), Err(b)) => a.kind == b.kind,
        _ => false,
    }
}

/// The kinds of errors that some operator of the graph can raise.
fn possible_errors(graph: &Graph) -> Vec<ErrorKind> {
    let registry = Registry::standard();
    let mut kinds = Vec::new();
    for index in 0..graph.len() {
        let Node::Operator(name, _) = graph.node(NodeId::from_index(index)) else { continue };
        let Some(id) = registry.find(graph.name(name)) else { continue };
        kinds.extend(registry.get(id).faults.iter().filter_map(|fault| ErrorKind::of_code(fault.name())));
    }
    kinds
}

fn typed(value: &Value) -> String {
    format!("{} {value}", value.qtype().name())
}

fn shown(returned: &Returned) -> String {
    match returned {
        Ok(value) => typed(value),
        Err(kind) => format!("error {}", kind.name()),
    }
}

fn shown_found(found: &Result<Value, Failure>) -> String {
    match found {
        Ok(value) => typed(value),
        Err(Failure { kind: Some(kind), .. }) => format!("error {}", kind.name()),
        Err(failure) => format!("error: {}", failure.message),
    }
}

fn join(types: &[QType]) -> String {
    types.iter().map(|qtype| qtype.name().to_string()).collect::<Vec<_>>().join(", ")
}
