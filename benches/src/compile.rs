//! `versus compile`: microseconds from a model's text to something callable, in whole and by stage.
//!
//! Warm: everything a thread keeps between compilations is in place before the measured rounds. Dropping what was made
//! is part of the time; a user pays for it too.

use crate::Error;
use crate::arrays::subject::{self, Bound, Evaluation};
use crate::arrays::workload::{REQUEST, WORKLOADS};
use crate::batch::FEW;
use crate::measure::{Effort, Run, Task, interleave};
use crate::record::Record;
use crate::subject::{NATIVE, Way, executor, model_error};
use crate::workload::{Visitor, Workload};
use cembra::{Backend, Model};
use cembra_plan::Plan;
use std::hint::black_box;

/// Text to callable, through the front door.
const TOTAL: &str = "us_total";
/// Text to the outputs of a few rows.
const FIRST_ANSWER: &str = "us_first_answer";

/// Collects the records of the workloads it visits.
pub struct Compile {
    effort: Effort,
    /// One record per workload, subject and metric.
    pub records: Vec<Record>,
}

impl Compile {
    /// A report of nothing yet.
    #[must_use]
    pub fn new(effort: Effort) -> Self {
        Compile { effort, records: Vec::new() }
    }
}

impl Visitor for Compile {
    fn visit<W: Workload + 'static>(&mut self) -> Result<(), Error> {
        let plan = plan::<W>()?;
        let plan = &plan;
        #[cfg(feature = "peers")]
        let offers = crate::peers::all::<W>()?;
        let folder = tempfile::tempdir().map_err(stage::<W, _>)?;
        let cache = &cembra::native::CodeCache::open(folder.path().join("code"))
            .map_err(|problem| model_error::<W>(problem.into()))?;
        let mut tasks = Vec::new();
        for way in Way::ALL {
            let stages: [(&str, Run<'_>); 3] = [
                ("us_prepare", Box::new(prepare::<W>)),
                ("us_compile", Box::new(move || bind::<W>(plan, way))),
                (TOTAL, Box::new(move || whole::<W>(way))),
            ];
            let task = |(metric, run)| Task { subject: way.name, metric, unit: "us", per_second: 1e6, calls: 1, run };
            tasks.extend(stages.map(task));
        }
        #[cfg(feature = "peers")]
        for offer in &offers {
            let (subject, metric, unit) = (offer.name, TOTAL, "us");
            if let Err(reason) = &offer.texts {
                self.records.push(Record::left_out(W::NAME, subject, metric, unit, reason));
                continue;
            }
            let run: Run<'_> = Box::new(|| {
                black_box(offer.subject()?.is_ok());
                Ok(())
            });
            tasks.push(Task { subject, metric, unit, per_second: 1e6, calls: 1, run });
        }
        let run: Run<'_> = Box::new(move || fetch::<W>(plan, cache));
        tasks.push(Task { subject: NATIVE, metric: "us_cached", unit: "us", per_second: 1e6, calls: 1, run });
        let samples = interleave(&mut tasks, self.effort)?;
        self.records.extend(tasks.iter().zip(&samples).map(|(task, samples)| Record::of(W::NAME, task, samples)));
        Ok(())
    }
}

/// The same of the workloads of arrays: in whole alone, as their stages are others, and to the first answer, because what runs over
/// elements is compiled when it is first wanted.
///
/// # Errors
/// A workload does not compile.
pub fn arrays(effort: Effort) -> Result<Vec<Record>, Error> {
    let mut records = Vec::new();
    for workload in WORKLOADS.iter().chain([&REQUEST]) {
        let inputs = &[workload.inputs(FEW, 0)];
        let mut tasks = Vec::new();
        for way in Way::ALL {
            let whole: Run<'_> = Box::new(move || {
                black_box(subject::executor(workload, way)?);
                Ok(())
            });
            let answer: Run<'_> = Box::new(move || Evaluation::of(workload, way, inputs)?.run());
            let task = |(metric, run)| Task { subject: way.name, metric, unit: "us", per_second: 1e6, calls: 1, run };
            tasks.extend([(TOTAL, whole), (FIRST_ANSWER, answer)].map(task));
        }
        let samples = interleave(&mut tasks, effort)?;
        records.extend(tasks.iter().zip(&samples).map(|(task, samples)| Record::of(workload.name, task, samples)));
    }
    Ok(records)
}

/// From text to plan, as `Model::compile` does it. The workloads declare the types of their inputs.
fn plan<W: Workload>() -> Result<Plan, Error> {
    let model = Model::parse(W::SOURCE).map_err(model_error::<W>)?;
    let options = cembra_prepare::Options::default();
    let placed = cembra_prepare::prepare(model.program(), &|_| None, &options, &mut |_, _| {})
        .and_then(cembra_prepare::Prepared::placed)
        .map_err(|diagnostics| model_error::<W>(diagnostics.into()))?;
    cembra_plan::build(&placed, &options.budget).map_err(stage::<W, _>)
}

fn prepare<W: Workload>() -> Result<(), Error> {
    black_box(plan::<W>()?);
    Ok(())
}

/// From plan to something callable, with inputs and outputs in the frame.
fn bind<W: Workload>(plan: &Plan, way: Way) -> Result<(), Error> {
    let binding = plan.frame_binding();
    if way.backend == Backend::Interpreter {
        black_box(cembra_interp::bind(plan, &binding));
    } else {
        let budget = cembra_prepare::Options::default().budget;
        black_box(cembra_native::compile(plan, &binding, way.tier, &budget).map_err(stage::<W, _>)?);
    }
    Ok(())
}

/// From plan to something callable, with code that is in the cache from the first time on.
fn fetch<W: Workload>(plan: &Plan, cache: &cembra::native::CodeCache) -> Result<(), Error> {
    let budget = cembra_prepare::Options::default().budget;
    let tier = cembra_native::Tier::Optimised;
    black_box(cache.compile(plan, &plan.frame_binding(), tier, &budget).map_err(stage::<W, _>)?);
    Ok(())
}

/// From text to something callable, through the front door.
fn whole<W: Workload>(way: Way) -> Result<(), Error> {
    black_box(executor::<W>(way)?);
    Ok(())
}

fn stage<W: Workload, E: std::error::Error + 'static>(source: E) -> Error {
    Error::Stage { workload: W::NAME, source: Box::new(source) }
}
