//! `versus batch`: nanoseconds per row of models over columns, beside the hand-written limit over the same columns. Here is
//! the check before and the measuring; who is measured on what is in the modules below.

pub mod calendar;
pub mod columns;
pub mod library;
#[cfg(feature = "peers")]
pub mod operators;
pub mod report;
pub mod subject;
pub mod triad;
pub mod workload;

use crate::Error;
use crate::measure::{Effort, Samples, Task, interleave};
use crate::record::Record;
use crate::subject::{Family, LIMIT_INLINED};
use crate::workload::Comparison;
use columns::Columns;
use std::time::Duration;
use subject::{BatchSubject, Bound, LIMIT_256, LIMIT_512, LIMIT_PLAIN, Offer};
use triad::{TRIAD, Triad};
use workload::{Batch, BatchVisitor, RARE_VALUES, Rows, SPECIAL_VALUES};

/// Different rows. A branch predictor learns 8,192 by heart.
const DISTINCT: usize = 1 << 17;

/// A number of rows, with the names of what is measured on it.
#[derive(Clone, Copy)]
pub(crate) struct Size {
    pub(crate) rows: usize,
    /// By one thread, and by two.
    pub(crate) metrics: [&'static str; 2],
    /// Rounds are this many times fewer.
    fewer: usize,
}

pub(crate) const SIZES: [Size; 3] = [
    Size { rows: 1_000, metrics: ["ns_per_row_1e3", "ns_per_row_1e3_2t"], fewer: 1 },
    Size { rows: 100_000, metrics: ["ns_per_row_1e5", "ns_per_row_1e5_2t"], fewer: 1 },
    Size { rows: 10_000_000, metrics: ["ns_per_row_1e7", "ns_per_row_1e7_2t"], fewer: 3 },
];

/// Rows of a call that is little but overhead.
pub(crate) const FEW: usize = 16;

/// The names of metrics that the report looks for.
pub(crate) const OVERHEAD: &str = "ns_call_overhead";
const COMPILE: &str = "us_compile";
pub(crate) const BYTES: &str = "bytes_per_row";
const RATES: [&str; 2] = ["gb_per_s", "gb_per_s_2t"];

/// What to measure.
pub struct Plan {
    /// How often and how long.
    pub effort: Effort,
    /// Only these workloads, unless there are none.
    pub workloads: Vec<String>,
    /// No more rows than this.
    pub most_rows: usize,
}

impl Plan {
    pub(crate) fn wants(&self, workload: &str) -> bool {
        self.workloads.is_empty() || self.workloads.iter().any(|name| name == workload)
    }

    pub(crate) fn effort_for(&self, size: Size) -> Effort {
        let effort = self.effort;
        let fill = if size.fewer > 1 { Duration::ZERO } else { effort.fill };
        Effort { rounds: (effort.rounds / size.fewer).max(3), warm_up: 1, fill }
    }
}

/// Measures all workloads of columns and of structs, and memory.
///
/// # Errors
/// The first error of a subject, or disagreement.
pub fn run(plan: &Plan) -> Result<Vec<Record>, Error> {
    let mut run = BatchRun { plan, sizes: &SIZES, records: Vec::new() };
    if plan.wants(TRIAD) {
        run.triad()?;
    }
    workload::visit_columns(&mut run)?;
    // Structs of 1e5 rows.
    run.sizes = &SIZES[1..2];
    workload::visit_structs(&mut run)?;
    run.records.extend(calendar::run(plan)?);
    Ok(run.records)
}

struct BatchRun<'a> {
    plan: &'a Plan,
    sizes: &'a [Size],
    records: Vec<Record>,
}

impl BatchRun<'_> {
    /// Plain and streamed stores; the better of them is the triad.
    fn triad(&mut self) -> Result<(), Error> {
        for size in self.sizes.iter().filter(|size| size.rows <= self.plan.most_rows) {
            for threads in [1, 2] {
                let mut bound = Triad::all(size.rows, threads);
                let metric = size.metrics[threads - 1];
                let mut tasks =
                    bound.iter_mut().map(|triad| task(triad.name, metric, size.rows, triad)).collect::<Vec<_>>();
                let samples = interleave(&mut tasks, self.plan.effort_for(*size))?;
                let best = samples.into_iter().min_by(|a, b| a.min().total_cmp(&b.min())).unwrap_or_default();
                self.record_time(TRIAD, TRIAD, metric, &best);
                self.record_rate(TRIAD, TRIAD, (*size, threads), &best, triad::BYTES_PER_ROW);
            }
        }
        Ok(())
    }

    fn record_time(&mut self, workload: &'static str, subject: &'static str, metric: &'static str, samples: &Samples) {
        let (min, median) = (samples.min(), samples.median());
        self.records.push(Record { workload, subject, metric, unit: "ns", min, median, tail: None, left_out: None });
    }

    /// Bytes in a nanosecond, at the largest size.
    fn record_rate(
        &mut self,
        workload: &'static str,
        subject: &'static str,
        (size, threads): (Size, usize),
        samples: &Samples,
        bytes: f64,
    ) {
        if size.rows == SIZES[2].rows {
            let (min, median) = (bytes / samples.min(), bytes / samples.median());
            let metric = RATES[threads - 1];
            self.records.push(Record {
                workload,
                subject,
                metric,
                unit: "GB/s",
                min,
                median,
                tail: None,
                left_out: None,
            });
        }
    }

    /// The best build of the limit, for each metric: where dividing is all there is, narrow vectors are no slower.
    fn record_limit(&mut self, from: usize) {
        let mut best: Vec<Record> = Vec::new();
        for record in &self.records[from..] {
            if ![LIMIT_512, LIMIT_256, LIMIT_PLAIN].contains(&record.subject) {
                continue;
            }
            let better = |old: &Record| if record.unit == "GB/s" { record.min > old.min } else { record.min < old.min };
            match best.iter_mut().find(|old| old.metric == record.metric) {
                Some(old) if !better(old) => {}
                Some(old) => *old = record.clone(),
                None => best.push(record.clone()),
            }
        }
        self.records.splice(from..from, best.into_iter().map(|record| Record { subject: LIMIT_INLINED, ..record }));
    }
}

fn task<'a>(subject: &'static str, metric: &'static str, calls: usize, bound: &'a mut (dyn Bound + 'a)) -> Task<'a> {
    Task { subject, metric, unit: "ns", per_second: 1e9, calls, run: Box::new(move || bound.run()) }
}

impl BatchVisitor for BatchRun<'_> {
    fn visit<W: Batch>(&mut self) -> Result<(), Error> {
        if !self.plan.wants(W::NAME) {
            return Ok(());
        }
        let offers = subject::all::<W>()?;
        check(&offers, &Rows::random(10_007, RARE_VALUES)?)?;
        let rows = Rows::<W>::random(DISTINCT, SPECIAL_VALUES)?;
        let from = self.records.len();
        for offer in &offers {
            if let Err((name, reason)) = offer {
                self.records.push(Record::left_out(W::NAME, name, self.sizes[0].metrics[0], "ns", reason));
            }
        }
        let subjects = || offers.iter().filter_map(|offer| offer.as_deref().ok());
        for size in self.sizes.iter().filter(|size| size.rows <= self.plan.most_rows) {
            let rows = rows.taken(size.rows);
            for threads in [1, 2] {
                let able = |subject: &&dyn BatchSubject<W>| {
                    subject.most_rows() >= size.rows && subject.most_threads() >= threads
                };
                let subjects = subjects().filter(able).collect::<Vec<_>>();
                let mut bound = Vec::new();
                for &subject in &subjects {
                    bound.push(subject.bind(&rows, threads)?);
                }
                let metric = size.metrics[threads - 1];
                let mut tasks = Vec::new();
                for (subject, bound) in subjects.iter().zip(&mut bound) {
                    tasks.push(task(subject.name(), metric, size.rows, &mut **bound));
                }
                let samples = interleave(&mut tasks, self.plan.effort_for(*size))?;
                for (subject, samples) in subjects.iter().zip(&samples) {
                    self.record_time(W::NAME, subject.name(), metric, samples);
                    self.record_rate(W::NAME, subject.name(), (*size, threads), samples, W::bytes_per_row());
                }
            }
        }
        let few = rows.taken(FEW);
        let mut bound = subjects().map(|subject| subject.bind(&few, 1)).collect::<Result<Vec<_>, _>>()?;
        let mut tasks = Vec::new();
        for (subject, bound) in subjects().zip(&mut bound) {
            tasks.push(task(subject.name(), OVERHEAD, 1, &mut **bound));
        }
        for subject in subjects() {
            if let Some(run) = subject.compile() {
                tasks.push(Task {
                    subject: subject.name(),
                    metric: COMPILE,
                    unit: "us",
                    per_second: 1e6,
                    calls: 1,
                    run,
                });
            }
        }
        let samples = interleave(&mut tasks, self.plan.effort)?;
        self.records.extend(tasks.iter().zip(&samples).map(|(task, samples)| Record::of(W::NAME, task, samples)));
        for subject in subjects() {
            self.records.push(Record::count(W::NAME, subject.name(), BYTES, "B", W::bytes_per_row()));
        }
        self.record_limit(from);
        Ok(())
    }
}

/// Compares all subjects with the workload's file, and with the first subject on the given rows: those of its family bit
/// for bit, by one thread and by two.
fn check<W: Batch>(offers: &[Offer<W>], rows: &Rows<W>) -> Result<(), Error> {
    let (given, expected) = Rows::<W>::expected()?;
    let mut reference: Option<(&'static str, Family, Columns)> = None;
    for subject in offers.iter().filter_map(|offer| offer.as_deref().ok()) {
        let mut bound = subject.bind(&given, 1)?;
        bound.run()?;
        compare::<W>(W::COMPARISON, ("the workload's file", &expected), (subject.name(), &bound.outputs()))?;
        for threads in 1..=subject.most_threads() {
            let mut bound = subject.bind(rows, threads)?;
            bound.run()?;
            let found = bound.outputs();
            if let Some((name, family, columns)) = &reference {
                let kin = *family == subject.family();
                let comparison = if kin { Comparison::Exact } else { W::COMPARISON };
                compare::<W>(comparison, (name, columns), (subject.name(), &found))?;
            } else {
                reference = Some((subject.name(), subject.family(), found));
            }
        }
    }
    Ok(())
}

fn compare<W: Batch>(
    comparison: Comparison,
    (reference, expected): (&'static str, &Columns),
    (subject, found): (&'static str, &Columns),
) -> Result<(), Error> {
    for row in 0..expected.rows {
        let (expected, found) = (expected.row(row), found.row(row));
        if !comparison.accepts(&expected, &found) {
            return Err(Error::Disagreement { workload: W::NAME, subject, reference, row, expected, found });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use columns::DOUBLE;

    struct Everybody(Vec<&'static str>);

    impl BatchVisitor for Everybody {
        fn visit<W: Batch>(&mut self) -> Result<(), Error> {
            let offers = subject::all::<W>()?;
            // A tail of every kind of lanes.
            check(&offers, &Rows::random(1_543, RARE_VALUES)?)?;
            self.0.push(W::NAME);
            Ok(())
        }
    }

    #[test]
    fn everybody_agrees_on_columns() {
        let mut everybody = Everybody(Vec::new());
        workload::visit_columns(&mut everybody).expect("all agree");
        workload::visit_structs(&mut everybody).expect("all agree");
        let columns = ["B1", "B2", "B3", "B3-special", "B4f32", "B4f64", "B5", "B5-special"];
        assert_eq!(everybody.0, [&columns[..], &["S1", "S2", "S3", "S4", "S5", "R1k"]].concat());
    }

    /// Right but for one bit of the last row.
    struct Wrong;

    impl BatchSubject<workload::B1> for Wrong {
        fn name(&self) -> &'static str {
            "wrong"
        }

        fn family(&self) -> Family {
            Family::Limit
        }

        fn bind<'a>(&'a self, rows: &'a Rows<workload::B1>, _: usize) -> Result<Box<dyn Bound + 'a>, Error> {
            let mut outputs = Columns::new(&[DOUBLE], rows.columns.rows);
            for (at, row) in rows.structs.iter().enumerate() {
                let y = row.a * row.b + row.c;
                outputs.set_row(at, &[Some(if at == 1_000 { y.next_up() } else { y })]);
            }
            Ok(Box::new(Made(outputs)))
        }
    }

    struct Made(Columns);

    impl Bound for Made {
        fn run(&mut self) -> Result<(), Error> {
            Ok(())
        }

        fn outputs(&self) -> Columns {
            self.0.clone()
        }
    }

    #[test]
    fn one_wrong_bit_is_found() {
        let mut offers = subject::all::<workload::B1>().expect("it compiles");
        offers.push(Ok(Box::new(Wrong)));
        let rows = Rows::random(1_001, RARE_VALUES).expect("rows");
        let error = check(&offers, &rows).expect_err("the scalar calls tell");
        let told =
            matches!(error, Error::Disagreement { subject: "wrong", reference: subject::SCALAR_CALLS, row: 1_000, .. });
        assert!(told, "{error}");
    }

    #[test]
    fn special_arguments_are_a_tenth() {
        let rows = Rows::<workload::B5Special>::random(2_000, SPECIAL_VALUES).expect("rows");
        let odd = (0..2_000).flat_map(|row| rows.columns.row(row)).flatten().filter(|x| !(0.05..200.0).contains(x));
        let odd = odd.count();
        assert!((500..700).contains(&odd), "{odd} of 6000");
    }
}
