//! A request: a model over ten arrays of twenty elements in a few groups, as a service evaluates it. What it takes is overhead
//! rather than arithmetic; how often it allocates is counted too, once everything is warm.

use super::subject::{Bound, Evaluation, WAYS};
use super::workload::{Inputs, REQUEST};
use super::{check, subjects};
use crate::measure::{Effort, Run, Task, interleave};
use crate::record::Record;
use crate::{Error, allocations};

/// Elements of an array.
const ELEMENTS: usize = 20;
/// Different requests, evaluated one after the other.
const REQUESTS: usize = 256;

const NS_PER_CALL: &str = "ns_per_call";
const ALLOCATIONS: &str = "allocations_per_call";

/// Measures the request.
///
/// # Errors
/// The model does not compile, or the ways disagree.
pub(super) fn run(effort: Effort) -> Result<Vec<Record>, Error> {
    let requests: Vec<Inputs> = (0..REQUESTS as u64).map(|seed| REQUEST.inputs(ELEMENTS, seed)).collect();
    for request in &requests {
        check(&REQUEST, &mut subjects(&REQUEST, request, ELEMENTS)?)?;
    }
    let mut runs: Vec<(&'static str, Run<'_>)> = Vec::new();
    for (name, way, _) in WAYS {
        let mut evaluation = Evaluation::of(&REQUEST, way, &requests)?;
        runs.push((name, Box::new(move || evaluation.run())));
    }
    for limit in REQUEST.limits {
        let on: Option<Vec<_>> = requests.iter().map(|request| limit.on(request)).collect();
        let mut on = on.ok_or(Error::Inputs { workload: REQUEST.name })?;
        runs.push((limit.name, Box::new(move || on.iter_mut().try_for_each(|on| on.run()))));
    }
    let (mut counts, mut tasks) = (Vec::new(), Vec::new());
    for (subject, mut run) in runs {
        run()?;
        let before = allocations::so_far();
        run()?;
        let count = (allocations::so_far() - before) as f64 / REQUESTS as f64;
        counts.push(Record::count(REQUEST.name, subject, ALLOCATIONS, "", count));
        tasks.push(Task { subject, metric: NS_PER_CALL, unit: "ns", per_second: 1e9, calls: REQUESTS, run });
    }
    let samples = interleave(&mut tasks, effort)?;
    let times = tasks.iter().zip(&samples).map(|(task, samples)| Record::of(REQUEST.name, task, samples));
    Ok(times.chain(counts).collect())
}
