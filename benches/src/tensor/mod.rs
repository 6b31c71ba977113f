//! `versus tensor`: products by labels beside the library of matrices called for the same sizes, elementwise programs and a loss beside
//! hand-written loops, products of a tensor and a vector beside the memory, and the smallest program: from text to something callable, and
//! a call. All on one thread.

mod maps;
mod products;
mod small;

use crate::Error;
use crate::measure::{Effort, Task, interleave};
use crate::record::Record;
use crate::subject::LIMIT;
use crate::workload::Comparison;

/// The name of ours in records.
pub const CEMBRA: &str = "cembra";

/// A subject: writes its result over a buffer that is always the same, or leaves it in memory of its own. Where there is room for it, some of the
/// result goes there: not while it is measured.
type Run<'a> = Box<dyn FnMut(Option<&mut Vec<f64>>) -> Result<(), Error> + 'a>;

/// Has results, which somebody may see; some of them are shown to who asks.
fn show<T: Copy + Into<f64>>(elements: &[T], to: Option<&mut Vec<f64>>) {
    let elements = std::hint::black_box(elements);
    if let Some(to) = to {
        to.extend(elements.iter().step_by(elements.len().div_ceil(100).max(1)).map(|element| (*element).into()));
    }
}

/// Measures everything of which the name has one of these in it; all without any.
///
/// # Errors
/// A subject fails, or gives something else than the limit.
pub fn run(wanted: &[String], effort: Effort) -> Result<Vec<Record>, Error> {
    let wants = |name: &str| wanted.is_empty() || wanted.iter().any(|wanted| name.contains(wanted.as_str()));
    let mut records = Vec::new();
    products::run(&wants, effort, &mut records)?;
    maps::run(&wants, effort, &mut records)?;
    small::run(&wants, effort, &mut records)?;
    Ok(records)
}

/// Measures ours and the limit in turn, once both gave the same.
fn measure(
    workload: &'static str,
    [ours, limit]: [Run<'_>; 2],
    share: f64,
    effort: Effort,
) -> Result<Vec<Record>, Error> {
    let mut runs = [(CEMBRA, ours), (LIMIT, limit)];
    let mut results = [Vec::new(), Vec::new()];
    for ((_, run), result) in runs.iter_mut().zip(&mut results) {
        run(Some(result))?;
    }
    let near = Comparison::Near(share);
    for (row, (expected, found)) in results[1].iter().zip(&results[0]).enumerate() {
        let (expected, found) = (vec![Some(*expected)], vec![Some(*found)]);
        if !near.accepts(&expected, &found) {
            return Err(Error::Disagreement { workload, subject: CEMBRA, reference: LIMIT, row, expected, found });
        }
    }
    let task = |(subject, run)| {
        let mut run: Run<'_> = run;
        let run = Box::new(move || run(None));
        Task { subject, metric: "us_per_run", unit: "us", per_second: 1e6, calls: 1, run }
    };
    let mut tasks: Vec<Task<'_>> = runs.into_iter().map(task).collect();
    let samples = interleave(&mut tasks, effort)?;
    Ok(tasks.iter().zip(&samples).map(|(task, samples)| Record::of(workload, task, samples)).collect())
}

/// An error of tensors, or of a model of them, as one of this workload.
fn failed<E: Into<cembra::Error>>(workload: &'static str) -> impl Fn(E) -> Error {
    move |source| Error::Model { workload, source: Box::new(source.into()) }
}
