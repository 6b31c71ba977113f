//! `versus scalar`: nanoseconds per call, one row at a time.

use crate::Error;
use crate::agreement;
use crate::measure::{Effort, Task, interleave};
use crate::record::Record;
use crate::subject::{self, Chain, Subject};
use crate::workload::{Visitor, Workload};
use std::cell::RefCell;
use std::time::{Duration, Instant};

/// The rows that are called in turn. A branch predictor learns 8,192 random rows by heart, so fewer than this would
/// measure its memory and not the code.
pub const RING: usize = 32_768;

/// The rows of a subject that takes more than this for all of them.
const FEW: usize = 1_024;

/// The longest that a round of one subject may take.
const LONGEST: Duration = Duration::from_millis(500);

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
        #[cfg(feature = "peers")]
        for offer in crate::peers::all::<W>()? {
            match offer.subject()? {
                Ok(subject) => subjects.push(subject),
                Err(reason) => self.records.push(Record::left_out(W::NAME, offer.name, "ns_per_call", "ns", reason)),
            }
        }
        agreement::check(&mut subjects, rows)?;
        self.records.extend(measure(&mut subjects, rows, self.effort)?);
        Ok(())
    }
}

/// Nanoseconds per call of each subject, over the rows in turn: of calls that may overlap, and of calls that wait for each
/// other.
///
/// # Errors
/// The first error of a subject.
pub fn measure<W: Workload>(
    subjects: &mut [Box<dyn Subject<W>>],
    rows: &[W::Input],
    effort: Effort,
) -> Result<Vec<Record>, Error> {
    let mut turns = Vec::new();
    for subject in subjects {
        let rows = &rows[..affordable(&mut **subject, rows)?];
        turns.push((RefCell::new(subject), rows));
    }
    let metrics = [("ns_per_call", Chain::Free), ("ns_per_call_dependent", Chain::Dependent)];
    let mut tasks = Vec::new();
    for (metric, chain) in metrics {
        tasks.extend(turns.iter().map(|(subject, rows)| Task {
            subject: subject.borrow().name(),
            metric,
            unit: "ns",
            per_second: 1e9,
            calls: rows.len(),
            run: Box::new(move || subject.borrow_mut().sweep(rows, chain)),
        }));
    }
    let samples = interleave(&mut tasks, effort)?;
    Ok(tasks.iter().zip(&samples).map(|(task, samples)| Record::of(W::NAME, task, samples)).collect())
}

/// How many of the rows a subject is called on: all of them, unless that takes so long that a few will do. Who needs so many
/// microseconds a call takes more branches in it than a predictor learns.
fn affordable<W: Workload>(subject: &mut dyn Subject<W>, rows: &[W::Input]) -> Result<usize, Error> {
    let few = rows.len().min(FEW);
    let start = Instant::now();
    subject.sweep(&rows[..few], Chain::Free)?;
    let all = start.elapsed().mul_f64(rows.len() as f64 / few.max(1) as f64);
    Ok(if all > LONGEST { few } else { rows.len() })
}
