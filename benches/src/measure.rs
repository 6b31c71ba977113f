//! Interleaved measuring: all tasks run once per round, one after the other, so that a slow spell of the machine hits
//! them alike and the ratios of one run can be trusted even where its absolute numbers cannot.

use crate::Error;
use std::time::{Duration, Instant};

/// How long and how often to measure.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Measured rounds.
    pub rounds: usize,
    /// Rounds before the measured ones whose times are dropped.
    pub warm_up: usize,
    /// A task runs as often within a round as it takes to fill this time.
    pub fill: Duration,
}

/// One run of a task.
pub type Run<'a> = Box<dyn FnMut() -> Result<(), Error> + 'a>;

/// Something to be timed.
pub struct Task<'a> {
    /// Who: the subject's name.
    pub subject: &'static str,
    /// What of it: the metric's name.
    pub metric: &'static str,
    /// The unit of the metric.
    pub unit: &'static str,
    /// Units of time in a second: 1e9 for nanoseconds.
    pub per_second: f64,
    /// What one run does as often as this counts as one: calls in a sweep, say.
    pub calls: usize,
    /// One run.
    pub run: Run<'a>,
}

/// The times of one task, one per round, in its unit and per call.
#[derive(Clone, Debug, Default)]
pub struct Samples(Vec<f64>);

impl Samples {
    /// The shortest time; NaN if there is none.
    #[must_use]
    pub fn min(&self) -> f64 {
        self.0.iter().copied().fold(f64::NAN, f64::min)
    }

    /// Adds a time.
    pub fn push(&mut self, time: f64) {
        self.0.push(time);
    }

    /// The time that this share of all times does not exceed; NaN if there is none.
    #[must_use]
    pub fn quantile(&self, share: f64) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        let rank = (share * sorted.len() as f64).ceil() as usize;
        sorted.get(rank.saturating_sub(1)).copied().unwrap_or(f64::NAN)
    }

    /// The median; the mean of the middle two if their number is even; NaN if there is none.
    #[must_use]
    pub fn median(&self) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        let middle = sorted.len() / 2;
        match (sorted.get(middle), sorted.len() % 2) {
            (None, _) => f64::NAN,
            (Some(value), 1) => *value,
            (Some(value), _) => f64::midpoint(sorted[middle - 1], *value),
        }
    }
}

impl FromIterator<f64> for Samples {
    fn from_iter<I: IntoIterator<Item = f64>>(times: I) -> Self {
        Samples(times.into_iter().collect())
    }
}

/// Measures the tasks round by round. The samples are in the order of the tasks.
///
/// # Errors
/// The first error of a task.
pub fn interleave(tasks: &mut [Task<'_>], effort: Effort) -> Result<Vec<Samples>, Error> {
    let mut repetitions = Vec::with_capacity(tasks.len());
    for task in tasks.iter_mut() {
        // The second run: the first one also fills caches and resolves symbols.
        (task.run)()?;
        let start = Instant::now();
        (task.run)()?;
        let once = start.elapsed().max(Duration::from_nanos(1));
        repetitions.push((effort.fill.as_secs_f64() / once.as_secs_f64()).ceil().max(1.0) as usize);
    }
    let mut samples = vec![Samples::default(); tasks.len()];
    let mut order: Vec<usize> = (0..tasks.len()).collect();
    let mut random = fastrand::Rng::with_seed(0x006f_7264_6572);
    for round in 0..effort.warm_up + effort.rounds {
        // Another order each round: what a predecessor leaves in the caches should favour nobody, and a scheduler that
        // interrupts us at even intervals should not always hit the same one.
        random.shuffle(&mut order);
        for &index in &order {
            let task = &mut tasks[index];
            let start = Instant::now();
            for _ in 0..repetitions[index] {
                (task.run)()?;
            }
            let seconds = start.elapsed().as_secs_f64();
            if round >= effort.warm_up {
                samples[index].0.push(seconds * task.per_second / (repetitions[index] * task.calls) as f64);
            }
        }
    }
    Ok(samples)
}

/// The shortest times of two things that are done in turn so many times, in nanoseconds; NaN for one that fails.
pub fn shortest<E>(
    rounds: usize,
    mut one: impl FnMut() -> Result<(), E>,
    mut other: impl FnMut() -> Result<(), E>,
) -> [f64; 2] {
    let time = |run: &mut dyn FnMut() -> Result<(), E>| {
        let start = Instant::now();
        run().map(|()| start.elapsed().as_nanos() as f64)
    };
    let mut least = [f64::MAX; 2];
    for _ in 0..rounds {
        for (at, run) in [&mut one as &mut dyn FnMut() -> _, &mut other].into_iter().enumerate() {
            least[at] = time(run).map_or(f64::NAN, |taken| least[at].min(taken));
        }
    }
    least
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    #[test]
    fn median_and_min() {
        let odd: Samples = [5.0, 1.0, 3.0].into_iter().collect();
        assert_eq!((odd.min(), odd.median()), (1.0, 3.0));
        let even: Samples = [4.0, 1.0, 2.0, 9.0].into_iter().collect();
        assert_eq!((even.min(), even.median()), (1.0, 3.0));
        let hundred: Samples = (1..=100).rev().map(f64::from).collect();
        assert_eq!([0.0, 0.5, 0.99, 0.999, 1.0].map(|share| hundred.quantile(share)), [1.0, 50.0, 99.0, 100.0, 100.0]);
        assert!(Samples::default().quantile(0.5).is_nan());
        assert!(Samples::default().median().is_nan() && Samples::default().min().is_nan());
    }

    #[test]
    fn tasks_take_turns() {
        let log = RefCell::new(String::new());
        let task = |name: char, subject| Task {
            subject,
            metric: "ns_per_call",
            unit: "ns",
            per_second: 1e9,
            calls: 1,
            run: Box::new({
                let log = &log;
                move || {
                    log.borrow_mut().push(name);
                    Ok(())
                }
            }),
        };
        let mut tasks = [task('a', "limit"), task('b', "native")];
        let effort = Effort { rounds: 3, warm_up: 1, fill: Duration::ZERO };
        let samples = interleave(&mut tasks, effort).expect("nothing fails");
        // Twice each to see how long it takes, then once each in every round.
        let log = log.borrow();
        let (estimates, rounds) = log.split_at(4);
        assert_eq!((estimates, rounds.len()), ("aabb", 8));
        assert!(rounds.as_bytes().chunks(2).all(|round| round == b"ab" || round == b"ba"), "{rounds}");
        assert!(samples.iter().all(|samples| samples.0.len() == 3));
    }
}
