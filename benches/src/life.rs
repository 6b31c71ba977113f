//! `versus life`: many small models in one process, each loaded, called for the first time, called again, and dropped. What
//! counts here is the tail: one slow load or one slow call among thousands, and what a model that just lives costs.
//!
//! All models differ and are alive at once. Every step is timed on its own, clock included; `clock` says what that is. The code
//! of tiered models is made after the first calls of all, in this thread: another one would run beside what is measured.

use crate::Error;
use crate::measure::Samples;
use crate::record::Record;
use crate::row::Row;
use crate::subject::Way;
use crate::workload::{Comparison, RulesInput};
use cembra::{Backend, Model, ModelExecutor};
use std::fs;
use std::hint::black_box;
use std::time::Instant;

/// How many models there are unless somebody says otherwise.
pub const MODELS: usize = 10_000;

/// The ways that are measured.
pub const WAYS: [Way; 4] = {
    let [interpreter, native, quick] = Way::ALL;
    [interpreter, native, quick, Way::TIERED]
};

/// How often each model is called in a row to see what a warm call takes.
const WARM: usize = 16;

/// The name of the workload in records.
const WORKLOAD: &str = "life";

type ModelOf = ModelExecutor<RulesInput, f64>;

/// Measures the lives of this many models, made callable in each of the ways.
///
/// # Errors
/// A model does not compile or run, or two ways give different answers.
pub fn run(models: usize, ways: &[Way]) -> Result<Vec<Record>, Error> {
    let texts: Vec<String> = (0..models as u64).map(text).collect();
    let mut random = fastrand::Rng::with_seed(0x726f_7773);
    let rows: Vec<RulesInput> = texts.iter().map(|_| RulesInput::random(&mut random)).collect();
    let clock = texts.iter().map(|_| nanoseconds(|| ()).1).collect();
    let mut records = vec![Record::with_tail(WORKLOAD, "clock", "ns_clock", "ns", &clock)];
    let mut answers: Option<Vec<f64>> = None;
    for way in ways {
        let found = live(*way, &texts, &rows, &mut records)?;
        match &answers {
            None => answers = Some(found),
            Some(expected) => agree(ways[0], expected, *way, &found)?,
        }
    }
    Ok(records)
}

fn live(way: Way, texts: &[String], rows: &[RulesInput], records: &mut Vec<Record>) -> Result<Vec<f64>, Error> {
    let options = way.options();
    // What the process keeps between models is no model's.
    load(&texts[0], &options)?;
    let before = Footprint::now();
    let mut alive: Vec<ModelOf> = Vec::with_capacity(texts.len());
    let (mut loads, mut first_calls, mut calls) = (Samples::default(), Samples::default(), Samples::default());
    let (mut codes, mut warm_calls, mut drops) = (Samples::default(), Samples::default(), Samples::default());
    let mut answers = Vec::with_capacity(texts.len());
    for (text, row) in texts.iter().zip(rows) {
        let (model, time) = nanoseconds(|| load(text, &options));
        loads.push(time / 1e3);
        let mut model = model?;
        let (answer, time) = nanoseconds(|| model.run(row));
        first_calls.push(time);
        answer.map_err(failed)?;
        alive.push(model);
    }
    if way.backend == Backend::Tiered {
        for model in &alive {
            codes.push(nanoseconds(|| model.executor().finish_tiers()).1 / 1e3);
            if let Some(reason) = model.executor().fallback() {
                return Err(failed(reason.clone().into()));
            }
        }
    }
    let during = Footprint::now();
    for (model, row) in alive.iter_mut().zip(rows) {
        let (answer, time) = nanoseconds(|| model.run(row));
        answers.push(answer.map_err(failed)?);
        calls.push(time);
        for _ in 0..WARM {
            let (answer, time) = nanoseconds(|| model.run(black_box(row)));
            answer.map_err(failed)?;
            warm_calls.push(time);
        }
    }
    let accounted: usize = alive.iter().map(|model| model.memory_bytes() + model.executor().memory_bytes()).sum();
    for model in alive {
        drops.push(nanoseconds(|| drop(model)).1 / 1e3);
    }
    let after = Footprint::now();

    let mut tail = |metric, unit, samples: &Samples| {
        records.push(Record::with_tail(WORKLOAD, way.name, metric, unit, samples));
    };
    tail("us_load", "us", &loads);
    tail("ns_first_call", "ns", &first_calls);
    tail("ns_call", "ns", &calls);
    tail("ns_warm_call", "ns", &warm_calls);
    tail("us_drop", "us", &drops);
    if way.backend == Backend::Tiered {
        tail("us_code", "us", &codes);
    }
    let per_model = |bytes: usize| bytes as f64 / texts.len() as f64;
    let mut count = |metric, unit, number| records.push(Record::count(WORKLOAD, way.name, metric, unit, number));
    count("accounted_bytes_per_model", "B", per_model(accounted));
    if let (Some(before), Some(during), Some(after)) = (before, during, after) {
        count("resident_bytes_per_model", "B", per_model(during.resident.saturating_sub(before.resident)));
        count("resident_bytes_per_dropped_model", "B", per_model(after.resident.saturating_sub(before.resident)));
        count("maps_alive", "", during.maps as f64);
        count("maps_dropped", "", after.maps as f64);
    }
    Ok(answers)
}

fn load(text: &str, options: &cembra::Options) -> Result<ModelOf, Error> {
    Model::parse(text).and_then(|model| model.executor(options)).map_err(failed)
}

fn failed(source: cembra::Error) -> Error {
    Error::Model { workload: WORKLOAD, source: Box::new(source) }
}

/// What something gives and how long it takes.
fn nanoseconds<R>(run: impl FnOnce() -> R) -> (R, f64) {
    let start = Instant::now();
    let result = black_box(run());
    (result, start.elapsed().as_secs_f64() * 1e9)
}

fn agree(one: Way, expected: &[f64], other: Way, found: &[f64]) -> Result<(), Error> {
    for (row, (expected, found)) in expected.iter().zip(found).enumerate() {
        let (expected, found) = (vec![Some(*expected)], vec![Some(*found)]);
        if !Comparison::Exact.accepts(&expected, &found) {
            let (subject, reference) = (other.name, one.name);
            return Err(Error::Disagreement { workload: WORKLOAD, subject, reference, row, expected, found });
        }
    }
    Ok(())
}

/// The model of a number: two to eight terms over the inputs, some under a condition, with constants of its own.
fn text(number: u64) -> String {
    let mut random = fastrand::Rng::with_seed(number);
    // The number itself keeps any two models apart.
    let mut text = format!("input x0, x1, x2, x3, x4, x5: f64\noutput y = {number}.5");
    for _ in 0..random.u32(2..=8) {
        let (x, y, z) = (random.u32(0..6), random.u32(0..6), random.u32(0..6));
        let (a, b) = (random.u32(1..1000), random.u32(1..1000));
        let term = match random.u32(0..4) {
            0 => format!(" + x{x} * {a}.25"),
            1 => format!(" - (x{x} + 0.{b}) * (x{y} - x{z})"),
            2 => format!(" + (if x{x} < 0.{b} then x{y} * {a}.0 else x{z})"),
            _ => format!(" + math.maximum(x{x} / {a}.0, x{y} * 0.{b})"),
        };
        text.push_str(&term);
    }
    text
}

/// What the system says about the process.
struct Footprint {
    resident: usize,
    maps: usize,
}

impl Footprint {
    /// Nothing where there is no such file.
    fn now() -> Option<Self> {
        let status = fs::read_to_string("/proc/self/status").ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
        let kibibytes: usize = line.split_whitespace().next()?.parse().ok()?;
        let maps = fs::read_to_string("/proc/self/maps").ok()?.lines().count();
        Some(Footprint { resident: kibibytes << 10, maps })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn models_differ_and_all_ways_agree() {
        let texts: HashSet<String> = (0..1_000).map(text).collect();
        assert_eq!(texts.len(), 1_000);
        let records = run(50, &WAYS).expect("all compile, run and agree");
        for way in WAYS {
            let metrics: Vec<_> =
                records.iter().filter(|record| record.subject == way.name).map(|record| record.metric).collect();
            assert_eq!(metrics[..5], ["us_load", "ns_first_call", "ns_call", "ns_warm_call", "us_drop"]);
            assert_eq!(metrics.contains(&"us_code"), way.backend == Backend::Tiered);
        }
        assert!(records.iter().all(|record| record.min <= record.median));
    }

    #[test]
    fn a_disagreement_is_found() {
        let error = agree(Way::INTERPRETER, &[1.0, 2.0], Way::NATIVE, &[1.0, 2.5]).expect_err("they differ");
        assert!(matches!(error, Error::Disagreement { row: 1, subject: "native", .. }));
    }
}
