//! `versus scalar`: nanoseconds per call, one row at a time.

use crate::Error;
use crate::agreement;
use crate::measure::{Effort, Task, interleave};
use crate::record::Record;
use crate::subject::{self, Subject};
use crate::workload::{Visitor, Workload};

/// The rows that are called in turn. A branch predictor learns 8,192 random rows by heart, so fewer than this would
/// measure its memory and not the code.
pub const RING: usize = 32_768;

/// Collects the records of the workloads it visits.
pub struct Scalar {
    effort: Effort,
    /// One record per workload and subject.
    pub records: Vec<Record>,
}

impl Scalar {
    /// A report of nothing yet.
    #[must_use]
    pub fn new(effort: Effort) -> Self {
        Scalar { effort, records: Vec::new() }
    }
}

impl Visitor for Scalar {
    fn visit<W: Workload + 'static>(&mut self) -> Result<(), Error> {
        let rows = W::ring(RING);
        let rows = rows.as_slice();
        let mut subjects = subject::all::<W>()?;
        agreement::check(&mut subjects, rows)?;
        self.records.extend(measure(&mut subjects, rows, self.effort)?);
        Ok(())
    }
}

/// Nanoseconds per call of each subject, over the rows in turn.
///
/// # Errors
/// The first error of a subject.
pub fn measure<W: Workload>(
    subjects: &mut [Box<dyn Subject<W>>],
    rows: &[W::Input],
    effort: Effort,
) -> Result<Vec<Record>, Error> {
    let mut tasks: Vec<Task<'_>> = subjects
        .iter_mut()
        .map(|subject| Task {
            subject: subject.name(),
            metric: "ns_per_call",
            unit: "ns",
            per_second: 1e9,
            calls: rows.len(),
            run: Box::new(move || subject.sweep(rows)),
        })
        .collect();
    let samples = interleave(&mut tasks, effort)?;
    Ok(tasks.iter().zip(&samples).map(|(task, samples)| Record::of(W::NAME, task, samples)).collect())
}
