//! Models of a thousand to a hundred thousand nodes: what native code costs to make in both tiers, in time and in memory.
//! Sums of S4's terms (`C`) and of S5's nests of conditionals (`R`), with constants from a seeded generator.

use crate::Error;
use crate::measure::{Effort, Run, Samples, Task, interleave};
use crate::record::Record;
use crate::subject::NATIVE;
use cembra::native::Tier;
use cembra::{Backend, Model, Options};
use cembra_plan::Plan;
use std::fmt::Write;
use std::hint::black_box;
use std::process::Command;
use std::time::Duration;

/// The quick tier of native code.
const NATIVE_QUICK: &str = "native-quick";

/// A generated model.
#[derive(Clone, Copy, Debug)]
pub struct Large {
    /// The name in tables and records.
    pub name: &'static str,
    text: fn(usize) -> String,
    /// How many terms or nests.
    parts: usize,
    /// Measured rounds.
    rounds: usize,
}

/// All large models.
pub const LARGE: &[Large] = &[
    Large { name: "C1k", text: terms, parts: 77, rounds: 41 },
    Large { name: "C10k", text: terms, parts: 770, rounds: 11 },
    Large { name: "C100k", text: terms, parts: 7_700, rounds: 5 },
    Large { name: "R100k", text: nests, parts: 2_000, rounds: 5 },
];

const TIERS: [(&str, Tier); 2] = [(NATIVE, Tier::Optimised), (NATIVE_QUICK, Tier::Quick)];

/// Measures all large models.
///
/// # Errors
/// A model does not compile, or a process cannot be started.
pub fn run() -> Result<Vec<Record>, Error> {
    let mut records = Vec::new();
    for large in LARGE {
        records.extend(large.measure()?);
    }
    Ok(records)
}

/// By how many MB the most memory that this process had grew while a model of this name was compiled from its text.
///
/// # Errors
/// The model does not compile.
pub fn peak(name: &str, subject: &str) -> Result<f64, Error> {
    let known = LARGE.iter().find(|large| large.name == name).zip(TIERS.iter().find(|tier| tier.0 == subject));
    let Some((large, (_, tier))) = known else { return Ok(f64::NAN) };
    let text = (large.text)(large.parts);
    let before = most_memory();
    black_box(large.whole(&text, *tier)?);
    Ok(most_memory() - before)
}

/// The most memory that this process had, in MB; NaN where the system does not say.
fn most_memory() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
    kilobytes.map_or(f64::NAN, |kilobytes| kilobytes * 1024.0 / 1e6)
}

impl Large {
    fn measure(&self) -> Result<Vec<Record>, Error> {
        let text = (self.text)(self.parts);
        let plan = self.plan(&text)?;
        let (text, plan) = (&text, &plan);
        let mut tasks = Vec::new();
        for (subject, tier) in TIERS {
            let stages: [(&str, usize, Run<'_>); 3] = [
                ("us_total", 1, Box::new(move || self.whole(text, tier).map(|executor| drop(black_box(executor))))),
                ("us_prepare", 1, Box::new(move || self.plan(text).map(|plan| drop(black_box(plan))))),
                ("us_per_node", plan.step_count(), Box::new(move || self.compile(plan, tier))),
            ];
            let task = |(metric, calls, run)| Task { subject, metric, unit: "us", per_second: 1e6, calls, run };
            tasks.extend(stages.map(task));
        }
        let effort = Effort { rounds: self.rounds, warm_up: 1, fill: Duration::ZERO };
        let samples = interleave(&mut tasks, effort)?;
        let mut records: Vec<Record> =
            tasks.iter().zip(&samples).map(|(task, samples)| Record::of(self.name, task, samples)).collect();
        for (subject, _) in TIERS {
            let peaks: Samples = (0..3).map(|_| self.peak_elsewhere(subject)).collect::<Result<_, Error>>()?;
            let (min, median) = (peaks.min(), peaks.median());
            records.push(Record {
                workload: self.name,
                subject,
                metric: "mb_peak",
                unit: "MB",
                min,
                median,
                tail: None,
                left_out: None,
            });
        }
        Ok(records)
    }

    /// The peak of a process of its own.
    fn peak_elsewhere(&self, subject: &str) -> Result<f64, Error> {
        let output = Command::new(std::env::current_exe()?).args(["peak", self.name, subject]).output()?;
        Ok(String::from_utf8_lossy(&output.stdout).trim().parse().unwrap_or(f64::NAN))
    }

    /// From text to something callable, through the front door.
    fn whole(&self, text: &str, tier: Tier) -> Result<cembra::Executor, Error> {
        let options = Options::default().backend(Backend::Native).tier(tier);
        Model::parse(text)
            .and_then(|model| model.compile(&options))
            .map_err(|source| Error::Model { workload: self.name, source: Box::new(source) })
    }

    /// From text to plan.
    fn plan(&self, text: &str) -> Result<Plan, Error> {
        let model =
            Model::parse(text).map_err(|source| Error::Model { workload: self.name, source: Box::new(source) })?;
        let options = cembra_prepare::Options::default();
        let placed = cembra_prepare::prepare(model.program(), &|_| None, &options, &mut |_, _| {})
            .and_then(cembra_prepare::Prepared::placed)
            .map_err(|diagnostics| Error::Model { workload: self.name, source: Box::new(diagnostics.into()) })?;
        cembra_plan::build(&placed, &options.budget).map_err(|error| self.stage(error))
    }

    /// From plan to something callable.
    fn compile(&self, plan: &Plan, tier: Tier) -> Result<(), Error> {
        let budget = cembra_prepare::Options::default().budget;
        let compiled = cembra_native::compile(plan, &plan.frame_binding(), tier, &budget);
        black_box(compiled.map_err(|error| self.stage(error))?);
        Ok(())
    }

    fn stage<E: std::error::Error + 'static>(&self, source: E) -> Error {
        Error::Stage { workload: self.name, source: Box::new(source) }
    }
}

/// A sum of S4's terms.
fn terms(count: usize) -> String {
    let mut random = fastrand::Rng::with_seed(4);
    let inputs: Vec<String> = (0..32).map(|at| format!("x{at}")).collect();
    let mut text = format!("input {}: f64\nlet t0 = 0.5 * x0\n", inputs.join(", "));
    for at in 1..=count {
        let [w, c1, c2, d, c3, c4, c5, c6] = [(); 8].map(|()| f64::from(random.i32(-9_999..9_999)) / 1e4);
        let [a, b, c, e, f, g] = [(); 6].map(|()| random.usize(..32));
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "let t{at} = t{} + ({w}) * ((x{a} * ({c1}) + x{b}) * (x{c} * ({c2}) - ({d})) + (x{e} * ({c3}) + ({c4})) * (x{f} * ({c5}) + ({c6}) * x{g}))",
            at - 1
        );
    }
    let _ = writeln!(text, "output y = t{count}");
    text
}

/// A sum of S5's nests.
fn nests(count: usize) -> String {
    let mut random = fastrand::Rng::with_seed(5);
    let mut text = String::from("input x0, x1, x2, x3, x4, x5: f64\nlet t0 = x0 * 0.25\n");
    for at in 1..=count {
        let mut nest = String::from("x0 * 0.5");
        for level in 0..12 {
            let [j, k, l, m] = [0, 1, 3, 2].map(|ahead| (level + ahead) % 6);
            // Fine enough that nests share next to nothing.
            let [test, other, factor] = [(0.1, 0.5), (0.2, 0.5), (1.0, 3.0)].map(|(least, most)| {
                let share = f64::from(random.u32(..1_000_000)) / 1e6;
                least + (most - least) * share
            });
            let condition =
                if level % 3 == 1 { format!("x{j} < {test} and x{m} > {other}") } else { format!("x{j} < {test}") };
            nest = format!("where({condition}, x{k} * {factor} + x{l}, {nest})");
        }
        let _ = writeln!(text, "let t{at} = t{} + {nest}", at - 1);
    }
    let _ = writeln!(text, "output y = t{count}");
    text
}
