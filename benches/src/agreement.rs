//! The check before any timing: a subject whose answers are wrong is not worth measuring.

use crate::Error;
use crate::row::Answer;
use crate::subject::{Family, Subject};
use crate::workload::{Comparison, Workload};

/// Compares all subjects with the workload's expected outputs, with the first subject on the given rows, and the
/// subjects of one family with each other, bit for bit, on the same rows.
///
/// # Errors
/// The first disagreement, or failure of a subject.
pub fn check<W: Workload>(subjects: &mut [Box<dyn Subject<W>>], rows: &[W::Input]) -> Result<(), Error> {
    for subject in subjects.iter_mut() {
        for (row, (input, expected)) in W::expected()?.iter().enumerate() {
            let found = subject.answer(input)?.values();
            compare::<W>(
                subject.comparison(),
                ("the workload's file", expected.values()),
                (subject.name(), found),
                row,
            )?;
        }
    }
    let mut answers: Vec<(&'static str, Family, Vec<W::Output>)> = Vec::new();
    for subject in subjects {
        let ours = rows.iter().map(|row| subject.answer(row)).collect::<Result<Vec<_>, Error>>()?;
        let first = answers.first().map(|first| (subject.comparison(), first));
        let relative =
            answers.iter().find(|(_, family, _)| *family == subject.family()).map(|kin| (Comparison::Exact, kin));
        for (comparison, (reference, _, theirs)) in first.into_iter().chain(relative) {
            for (row, (expected, found)) in theirs.iter().zip(&ours).enumerate() {
                compare::<W>(comparison, (reference, expected.values()), (subject.name(), found.values()), row)?;
            }
        }
        answers.push((subject.name(), subject.family(), ours));
    }
    Ok(())
}

type Named = (&'static str, Vec<Option<f64>>);

fn compare<W: Workload>(comparison: Comparison, expected: Named, found: Named, row: usize) -> Result<(), Error> {
    if comparison.accepts(&expected.1, &found.1) {
        return Ok(());
    }
    Err(Error::Disagreement {
        workload: W::NAME,
        subject: found.0,
        reference: expected.0,
        row,
        expected: expected.1,
        found: found.1,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::subject::{self, Chain, ExecutorOf, TIERED, model_error};
    use crate::workload::{self, S1, S2, Visitor};
    use cembra::native::{Tier, Tiering};
    use cembra::{Backend, Executor, Model, Options};

    /// The subjects that were checked, by workload.
    #[derive(Default)]
    struct Everybody(Vec<String>);

    impl Visitor for Everybody {
        fn visit<W: Workload + 'static>(&mut self) -> Result<(), Error> {
            assert_eq!(W::expected()?.len(), 100, "{}", W::NAME);
            let mut subjects = subject::all::<W>()?;
            let climbing = Climbing::<W>::new()?;
            let executor: Executor = climbing.executor.executor().clone();
            subjects.push(Box::new(climbing));
            check(&mut subjects, &W::ring(2_000))?;
            assert_eq!((executor.tier(), executor.fallback()), (Some(Tier::Optimised), None));
            let names: Vec<_> = subjects.iter().map(|subject| subject.name()).collect();
            self.0.push(format!("{}: {}", W::NAME, names.join(" ")));
            Ok(())
        }
    }

    #[test]
    fn everybody_gives_the_expected_outputs() {
        let mut everybody = Everybody::default();
        workload::visit_all(&mut everybody).expect("all agree");
        let names = "limit limit-inlined limit-baseline interpreter native native-quick native-typed native-moved native-dynamic tiered";
        assert_eq!(everybody.0, ["S1", "S2", "S3", "S4", "S5"].map(|workload| format!("{workload}: {names}")));
    }

    /// An executor that climbs a tier after some answers: the file's rows are enough for all tiers.
    struct Climbing<W: Workload> {
        executor: ExecutorOf<W>,
        answers: usize,
    }

    impl<W: Workload> Climbing<W> {
        fn new() -> Result<Self, Error> {
            let tiering = Tiering::default().by_hand(true).every_tier(true);
            let options = Options::default().backend(Backend::Tiered).tiering(tiering);
            let model = Model::parse(W::SOURCE).and_then(|model| model.executor(&options));
            let executor: ExecutorOf<W> = model.map_err(model_error::<W>)?;
            executor.executor().finish_tiers();
            Ok(Climbing { executor, answers: 0 })
        }
    }

    impl<W: Workload> Subject<W> for Climbing<W> {
        fn name(&self) -> &'static str {
            TIERED
        }

        fn family(&self) -> Family {
            Family::Cembra
        }

        fn answer(&mut self, row: &W::Input) -> Result<W::Output, Error> {
            self.answers += 1;
            if self.answers.is_multiple_of(40) {
                self.executor.executor().advance();
            }
            self.executor.run(row).map_err(model_error::<W>)
        }

        fn sweep(&mut self, _rows: &[W::Input], _chain: Chain) -> Result<(), Error> {
            Ok(())
        }
    }

    /// Right but for one bit of rows above `from`.
    struct Wrong {
        from: f64,
    }

    impl Subject<S1> for Wrong {
        fn name(&self) -> &'static str {
            "wrong"
        }

        fn family(&self) -> Family {
            Family::Cembra
        }

        fn answer(&mut self, row: &<S1 as Workload>::Input) -> Result<f64, Error> {
            let y = row.x * 2.0 + 1.0;
            Ok(if row.x > self.from { y.next_up() } else { y })
        }

        fn sweep(&mut self, _rows: &[<S1 as Workload>::Input], _chain: Chain) -> Result<(), Error> {
            Ok(())
        }
    }

    #[test]
    fn one_wrong_bit_is_found() {
        let mut subjects = subject::limits::<S1>();
        subjects.push(Box::new(Wrong { from: -10.0 }));
        let error = check(&mut subjects, &S1::ring(10)).expect_err("the file tells");
        assert!(matches!(error, Error::Disagreement { subject: "wrong", reference: "the workload's file", .. }));

        // Beyond the rows of the file only the limit tells.
        let mut rows = S1::ring(10);
        rows[7].x = 1e9;
        subjects.pop();
        subjects.push(Box::new(Wrong { from: 1e8 }));
        let error = check(&mut subjects, &rows).expect_err("the limit tells");
        assert!(matches!(error, Error::Disagreement { subject: "wrong", reference: subject::LIMIT, row: 7, .. }));
    }

    #[test]
    fn missing_equals_missing_only() {
        let exact = Comparison::Exact;
        assert!(exact.accepts(&[None, Some(1.0)], &[None, Some(1.0)]));
        assert!(!exact.accepts(&[None], &[Some(0.0)]) && !exact.accepts(&[Some(0.0)], &[None]));
        assert!(!exact.accepts(&[Some(0.0)], &[Some(-0.0)]) && !exact.accepts(&[Some(0.0)], &[]));
        let near = Comparison::Relative(1e-3);
        assert!(near.accepts(&[Some(-1.0)], &[Some(-1.0009)]) && !near.accepts(&[Some(-1.0)], &[Some(-1.0011)]));
        assert!(!near.accepts(&[Some(1.0)], &[Some(f64::NAN)]) && near.accepts(&[Some(f64::NAN)], &[Some(f64::NAN)]));
    }

    #[test]
    fn random_rows_are_the_same_in_every_run_and_in_range() {
        let (first, second) = (S2::ring(1_000), S2::ring(1_000));
        assert!(first.iter().zip(&second).all(|(a, b)| (a.a, a.b, a.c) == (b.a, b.b, b.c)));
        assert!(first.iter().all(|row| (0.5..=2.0).contains(&row.a) && (-1.0..2.0).contains(&row.c)));
        let missing = workload::S3::ring(1_000).iter().filter(|row| row.x4.get().is_none()).count();
        assert!((250..350).contains(&missing), "{missing} of 1000 are missing");
    }
}
