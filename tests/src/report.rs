//! What a conformance run found: how many cases passed, which failed and how, which were skipped and why.

use crate::problem::Unsupported;
use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Write};

/// A case that failed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mismatch {
    /// The file and line.
    pub place: String,
    /// The engine that is wrong.
    pub engine: String,
    /// The case.
    pub case: String,
    /// What the data say.
    pub expected: String,
    /// What the engine returned.
    pub found: String,
}

#[derive(Clone, Default, Debug)]
struct Mismatches {
    count: usize,
    shown: Vec<Mismatch>,
}

/// The result of a run.
#[derive(Clone, Default, Debug)]
pub struct Report {
    passed: usize,
    show: usize,
    failures: BTreeMap<String, Mismatches>,
    skips: BTreeMap<(String, Unsupported), usize>,
}

impl Report {
    /// An empty report that keeps the first `show` failures of each subject.
    #[must_use]
    pub fn new(show: usize) -> Self {
        Report { show, ..Report::default() }
    }

    /// With what another run found, after what this one did.
    #[must_use]
    pub fn with(mut self, other: Report) -> Report {
        self.passed += other.passed;
        for (subject, found) in other.failures {
            let failures = self.failures.entry(subject).or_default();
            failures.count += found.count;
            failures.shown.extend(found.shown);
            failures.shown.truncate(self.show);
        }
        for (skipped, count) in other.skips {
            *self.skips.entry(skipped).or_default() += count;
        }
        self
    }

    /// Counts a case that passed, or one that failed under `subject`.
    pub fn add(&mut self, subject: &str, result: Result<(), Mismatch>) {
        let Err(mismatch) = result else {
            self.passed += 1;
            return;
        };
        let failures = self.failures.entry(subject.to_owned()).or_default();
        failures.count += 1;
        if failures.shown.len() < self.show {
            failures.shown.push(mismatch);
        }
    }

    /// Counts a case that cannot be run.
    pub fn skip(&mut self, subject: String, reason: Unsupported) {
        *self.skips.entry((subject, reason)).or_default() += 1;
    }

    /// How many cases passed.
    #[must_use]
    pub fn passed(&self) -> usize {
        self.passed
    }

    /// How many cases failed.
    #[must_use]
    pub fn failed(&self) -> usize {
        self.failures.values().map(|failures| failures.count).sum()
    }

    /// How many cases were skipped.
    #[must_use]
    pub fn skipped(&self) -> usize {
        self.skips.values().sum()
    }

    /// Writes how many cases failed under each subject, with the first of them.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write_failures(&self, out: &mut impl Write) -> io::Result<()> {
        for (subject, failures) in &self.failures {
            writeln!(out, "{subject}: {} failed", failures.count)?;
            for one in &failures.shown {
                writeln!(out, "  {} [{}] {}", one.place, one.engine, one.case)?;
                writeln!(out, "    expected {}", one.expected)?;
                writeln!(out, "    found    {}", one.found)?;
            }
        }
        Ok(())
    }

    /// Writes how many cases were skipped, by subject and reason.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write_skips(&self, out: &mut impl Write) -> io::Result<()> {
        for ((subject, reason), count) in &self.skips {
            writeln!(out, "{subject}: {count} skipped: {reason}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed, {} skipped", self.passed(), self.failed(), self.skipped())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_counted_and_only_the_first_failures_are_shown() {
        let mut report = Report::new(1);
        report.add("math.add", Ok(()));
        for line in 1..=2 {
            report.add(
                "math.add",
                Err(Mismatch {
                    place: format!("a.jsonl:{line}"),
                    engine: "native".to_owned(),
                    case: "math.add(1, 2)".to_owned(),
                    expected: "3".to_owned(),
                    found: "4".to_owned(),
                }),
            );
            report.skip("core.has".to_owned(), Unsupported::Type("UINT64".to_owned()));
        }
        report.skip("core.at".to_owned(), Unsupported::Operator("core.at".to_owned()));
        assert_eq!(report.to_string(), "1 passed, 2 failed, 3 skipped");
        let mut text = Vec::new();
        report.write_failures(&mut text).expect("a write to memory");
        report.write_skips(&mut text).expect("a write to memory");
        assert_eq!(
            String::from_utf8_lossy(&text),
            "math.add: 2 failed\n  a.jsonl:1 [native] math.add(1, 2)\n    expected 3\n    found    4\n\
             core.at: 1 skipped: no operator core.at\ncore.has: 2 skipped: no type UINT64\n"
        );
    }
}
