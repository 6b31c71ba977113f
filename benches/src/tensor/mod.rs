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

/// A subject: writes its result over a buffer that is always the same, or leaves it in memory of its own.
type Run<'a> = Box<dyn FnMut() -> Result<Vec<f64>, Error> + 'a>;

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

/// Measures ours and the limit in turn, once both gave the same. A run returns some of its result.
fn measure(
    workload: &'static str,
    [ours, limit]: [Run<'_>; 2],
    share: f64,
    effort: Effort,
) -> Result<Vec<Record>, Error> {
    let mut runs = [(CEMBRA, ours), (LIMIT, limit)];
    let mut results = Vec::new();
    for (_, run) in &mut runs {
        results.push(run()?);
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
        let run = Box::new(move || run().map(|result| drop(std::hint::black_box(result))));
        Task { subject, metric: "us_per_run", unit: "us", per_second: 1e6, calls: 1, run }
    };
    let mut tasks: Vec<Task<'_>> = runs.into_iter().map(task).collect();
    let samples = interleave(&mut tasks, effort)?;
    Ok(tasks.iter().zip(&samples).map(|(task, samples)| Record::of(workload, task, samples)).collect())
}

/// An error of tensors as one of this workload.
fn failed(workload: &'static str) -> impl Fn(cembra::tensor::Error) -> Error {
    move |source| Error::Stage { workload, source: Box::new(source) }
}
