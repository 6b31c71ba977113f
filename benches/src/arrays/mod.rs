//! `versus arrays`: nanoseconds per row of models over arrays and their groups, beside the hand-written limit, and per call of a
//! request of a few elements. Here is the check before and the measuring; who is measured on what is in the modules below.
//!
//! Columns of lists, each row's list a group of its own, are measured here once there are such columns: as workloads whose rows
//! are lists, beside the request.

pub mod limit;
mod memory;
pub mod request;
pub mod subject;
pub mod workload;

use crate::Error;
use crate::batch::{BYTES, FEW, OVERHEAD, Plan, SIZES};
use crate::measure::{Effort, Task, interleave};
use crate::record::Record;
use crate::subject::LIMIT;
use crate::workload::Comparison;
use subject::{Bound, Evaluation, WAYS};
use workload::{ArrayWorkload, Inputs, REQUEST, WORKLOADS};

/// Measures all workloads of arrays, and the request.
///
/// # Errors
/// The first error of a subject, or disagreement.
pub fn run(plan: &Plan) -> Result<Vec<Record>, Error> {
    let mut records = Vec::new();
    for workload in WORKLOADS.iter().filter(|workload| plan.wants(workload.name)) {
        for size in SIZES.iter().filter(|size| size.rows <= plan.most_rows) {
            let inputs = workload.inputs(size.rows, 0);
            let mut subjects = subjects(workload, &inputs, size.rows)?;
            check(workload, &mut subjects)?;
            records.extend(measure(workload, &mut subjects, (size.metrics[0], size.rows), plan.effort_for(*size))?);
        }
        let inputs = workload.inputs(FEW, 0);
        let mut subjects = subjects(workload, &inputs, FEW)?;
        records.extend(measure(workload, &mut subjects, (OVERHEAD, 1), plan.effort)?);
        records.push(Record::count(workload.name, LIMIT, BYTES, "B", workload.bytes_per_row));
    }
    if plan.wants(REQUEST.name) {
        records.extend(request::run(plan.effort)?);
    }
    Ok(records)
}

/// A subject on inputs, with its name, and how it is compared with the first one.
struct Named<'a> {
    name: &'static str,
    comparison: Comparison,
    bound: Box<dyn Bound + 'a>,
}

/// The subjects on these inputs: the library's first, whose outputs are the reference.
fn subjects<'w>(workload: &'w ArrayWorkload, inputs: &Inputs, rows: usize) -> Result<Vec<Named<'w>>, Error> {
    let mut subjects = Vec::new();
    for (name, way, _) in WAYS.into_iter().filter(|(_, _, most_rows)| *most_rows >= rows) {
        let bound = Box::new(Evaluation::of(workload, way, std::slice::from_ref(inputs))?);
        subjects.push(Named { name, comparison: Comparison::Exact, bound });
    }
    for limit in workload.limits {
        let bound = limit.on(inputs).ok_or(Error::Inputs { workload: workload.name })?;
        let comparison = limit.comparison(workload.comparison, rows);
        subjects.push(Named { name: limit.name, comparison, bound });
    }
    Ok(subjects)
}

/// Runs all subjects, and compares them with the first.
fn check(workload: &ArrayWorkload, subjects: &mut [Named<'_>]) -> Result<(), Error> {
    for subject in &mut *subjects {
        subject.bound.run()?;
    }
    let Some((first, others)) = subjects.split_first() else { return Ok(()) };
    let expected = |output, at| first.bound.element(output, at);
    for other in others {
        compare(workload, (first.name, &first.bound.sizes(), &expected), other)?;
    }
    Ok(())
}

/// What outputs are to be: whose they are, how many elements they have, and what they are.
type Expected<'e> = (&'static str, &'e [usize], &'e dyn Fn(usize, usize) -> Option<f64>);

fn compare(workload: &ArrayWorkload, expected: Expected<'_>, subject: &Named<'_>) -> Result<(), Error> {
    let (reference, sizes, element) = expected;
    if subject.bound.sizes() != sizes {
        return Err(Error::Inputs { workload: workload.name });
    }
    for (output, size) in sizes.iter().enumerate() {
        for at in 0..*size {
            let (expected, found) = ([element(output, at)], [subject.bound.element(output, at)]);
            if !subject.comparison.accepts(&expected, &found) {
                let (expected, found) = (expected.to_vec(), found.to_vec());
                let (workload, subject) = (workload.name, subject.name);
                return Err(Error::Disagreement { workload, subject, reference, row: at, expected, found });
            }
        }
    }
    Ok(())
}

fn measure(
    workload: &ArrayWorkload,
    subjects: &mut [Named<'_>],
    (metric, calls): (&'static str, usize),
    effort: Effort,
) -> Result<Vec<Record>, Error> {
    let task = |subject| {
        let Named { name, bound, .. }: &mut Named<'_> = subject;
        Task { subject: name, metric, unit: "ns", per_second: 1e9, calls, run: Box::new(move || bound.run()) }
    };
    let mut tasks: Vec<_> = subjects.iter_mut().map(task).collect();
    let samples = interleave(&mut tasks, effort)?;
    Ok(tasks.iter().zip(&samples).map(|(task, samples)| Record::of(workload.name, task, samples)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use cembra_tests::decode::named_values;
    use std::path::Path;

    /// The limits without vectors, besides all others.
    fn all<'w>(workload: &'w ArrayWorkload, inputs: &Inputs, rows: usize) -> Vec<Named<'w>> {
        let mut all = subjects(workload, inputs, rows).expect("it compiles");
        for limit in workload.limits {
            let bound = limit.plain(inputs).expect("its inputs");
            all.push(Named { name: "plain", comparison: limit.comparison(workload.comparison, rows), bound });
        }
        all
    }

    fn element(value: &cembra::Value, at: usize) -> Option<f64> {
        let element = match value {
            cembra::Value::Array(_, array) => array.get(at),
            value => value.as_scalar().cloned(),
        };
        element.map(|element| match element {
            cembra::ScalarValue::Float32(value) => value.into(),
            cembra::ScalarValue::Float64(value) => value,
            cembra::ScalarValue::Int64(value) => value as f64,
            other => panic!("{other}"),
        })
    }

    #[test]
    fn everybody_gives_what_arolla_gave() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("workloads");
        for workload in &WORKLOADS {
            let inputs = named_values(&folder.join(format!("{}.in.jsonl.gz", workload.name))).expect("inputs");
            let outputs = named_values(&folder.join(format!("{}.out.jsonl.gz", workload.name))).expect("outputs");
            let size = |value: &cembra::Value| if let cembra::Value::Array(_, array) = value { array.len() } else { 1 };
            let sizes: Vec<usize> = outputs.iter().map(|(_, value)| size(value)).collect();
            let expected = |output: usize, at| element(&outputs[output].1, at);
            let rows = 1_000;
            for mut subject in all(workload, &inputs, rows) {
                if subject.comparison == Comparison::Exact {
                    subject.comparison = workload.comparison;
                }
                subject.bound.run().expect("it runs");
                compare(workload, ("the workload's file", &sizes, &expected), &subject).expect("near");
            }
        }
    }

    #[test]
    fn everybody_agrees_on_arrays() {
        // A tail of every kind.
        for rows in [1, 2, 7, 8, 9, 63, 64, 65, 1_543] {
            for workload in
                WORKLOADS.iter().chain([&REQUEST]).filter(|workload| rows < 64 || workload.name != REQUEST.name)
            {
                let inputs = workload.inputs(rows, 1);
                check(workload, &mut all(workload, &inputs, rows)).expect("all agree");
            }
        }
    }

    /// One in forty FLOAT64 elements is infinite, or no number, or zero.
    fn odd(inputs: Inputs, random: &mut fastrand::Rng) -> Inputs {
        let mut replace = |value| match value {
            cembra::Value::Array(kind, array) if array.scalar() == cembra::Scalar::Float64 => {
                let mut one = |element: Option<cembra::ScalarValue>| {
                    let odd = [f64::INFINITY, f64::NEG_INFINITY, f64::NAN, 0.0][random.usize(..4)];
                    element.map(|element| if random.u8(..40) == 0 { odd.into() } else { element })
                };
                let changed = array.iter().map(&mut one);
                cembra::Value::Array(kind, cembra::Array::from_scalars(array.scalar(), changed).into())
            }
            other => other,
        };
        inputs.into_iter().map(|(name, value)| (name, replace(value))).collect()
    }

    #[test]
    fn everybody_agrees_on_odd_elements() {
        let mut random = fastrand::Rng::with_seed(1);
        for seed in 0..200 {
            for workload in &WORKLOADS {
                // Without a NaN in some, with several in others.
                let rows = [20, 90, 700][seed as usize % 3];
                let inputs = odd(workload.inputs(rows, seed), &mut random);
                check(workload, &mut all(workload, &inputs, rows)).expect("all agree");
            }
        }
    }

    /// Right but for one bit of the last element.
    struct Wrong(Box<dyn Bound>);

    impl Bound for Wrong {
        fn run(&mut self) -> Result<(), Error> {
            self.0.run()
        }

        fn sizes(&self) -> Vec<usize> {
            self.0.sizes()
        }

        fn element(&self, output: usize, at: usize) -> Option<f64> {
            let element = self.0.element(output, at);
            if (output, at) == (0, 9) { element.map(f64::next_up) } else { element }
        }
    }

    #[test]
    fn one_wrong_bit_is_found() {
        let (workload, rows) = (&WORKLOADS[2], 1_000);
        let inputs = workload.inputs(rows, 0);
        let mut subjects = subjects(workload, &inputs, rows).expect("it compiles");
        let bound = Box::new(Wrong(workload.limits[0].on(&inputs).expect("its inputs")));
        subjects.push(Named { name: "wrong", comparison: workload.comparison, bound });
        let error = check(workload, &mut subjects).expect_err("the library tells");
        let told = matches!(error, Error::Disagreement { subject: "wrong", reference: subject::CEMBRA, row: 9, .. });
        assert!(told, "{error}");
    }

    #[test]
    fn inputs_are_as_the_workloads_say() {
        let inputs = WORKLOADS[2].inputs(10_000, 0);
        let cembra::Value::Edge(by) = &inputs[2].1 else { panic!("no edge") };
        let in_none = by.groups().filter(Option::is_none).count();
        assert!((50..200).contains(&in_none), "{in_none} of 10000");
        assert_eq!((by.parent_size(), by.groups().any(|group| group == Some(1))), (100, false));
        assert!(by.groups().any(|group| group == Some(99)));
        let cembra::Value::Array(_, x) = &WORKLOADS[4].inputs(10_000, 0)[0].1 else { panic!("no array") };
        assert!((7_800..8_200).contains(&x.present_count()), "{}", x.present_count());
    }
}
