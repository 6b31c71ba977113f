//! All ways to run a batch give one answer: what a session of the interpreter gives row by row, bit for bit, whoever plays the rows, and
//! however they lie, are cut and shared out, and whichever of them fail. For every operator all pairs of these occur.

mod case;
mod cover;
mod trial;

use case::Factors;
use cembra::columns::InputColumn;
use cembra::explain::RowPlayer;
use cembra::{Model, Options};
use cembra_fuzzing::Config;
use trial::{Compared, Trial};

/// Seeds all choices.
const SEED: u64 = 20_261_121;

/// The players that there are on this machine.
fn players() -> Vec<RowPlayer> {
    let model = Model::parse("input x: f64; x + 1.0").expect("a model");
    let is_there = |player: &RowPlayer| {
        let batch = model.batch(&Options::default().row_player(*player)).expect("a batch");
        *player != RowPlayer::Best && batch.run(&[InputColumn::values(&[1.0])]).is_ok()
    };
    RowPlayer::ALL.into_iter().filter(is_there).collect()
}

/// Runs every operator's cases; of several parts only one, so that they may run at the same time.
fn operators(factors: &Factors, part: usize, parts: usize) {
    let config = Config { seed: SEED, ..Config::default() };
    let all = cembra_fuzzing::operators(&config);
    assert!(all.len() > 150, "{} operators", all.len());
    let (mut operators, mut cases, mut compared) = (0, 0, Compared::default());
    for (number, (name, programs)) in all.iter().enumerate().skip(part).step_by(parts) {
        let mut trials: Vec<Trial> =
            programs.iter().filter_map(|program| Trial::of(program, number as u64, &factors.players)).collect();
        if trials.is_empty() {
            continue;
        }
        operators += 1;
        for (model, case) in factors.cases(trials.len(), SEED + number as u64) {
            cases += 1;
            match trials[model].run(&case) {
                Ok(more) => compared += more,
                Err(difference) => panic!("{name}, case {cases}: {difference}"),
            }
        }
    }
    assert!(operators * parts > 140, "{operators} operators run");
    let Compared { rows, failed, over } = compared;
    let is_enough = rows > factors.least_rows * cases && 2 * failed > cases && 8 * over > cases;
    assert!(is_enough, "{cases}: {rows}, {failed}, {over}");
}

/// Runs random models, each in a few cases of a list in which all pairs occur.
fn models(factors: &Factors, models: u64, cases_of_each: usize) {
    let config = Config { seed: SEED, ..Config::default() };
    let cases = factors.cases(1, SEED);
    let mut cases = cases.iter().cycle();
    let mut run = 0;
    for number in 0..models {
        let program = cembra_fuzzing::program(&config, number);
        let Some(mut trial) = Trial::of(&program, number, &factors.players) else { continue };
        run += 1;
        for (_, case) in cases.by_ref().take(cases_of_each) {
            if let Err(difference) = trial.run(case) {
                panic!("model {number}: {difference}");
            }
        }
    }
    assert!(run * 10 > models * 9, "{run} of {models} models run");
}

#[test]
fn operators_0_of_4() {
    operators(&Factors::short(players()), 0, 4);
}

#[test]
fn operators_2_of_4() {
    operators(&Factors::short(players()), 2, 4);
}

#[test]
#[ignore = "a minute without optimisation: `.ci/release` runs them"]
fn operators_of_many_rows() {
    operators(&Factors::few(players()), 0, 2);
}

#[test]
#[ignore = "a minute without optimisation: `.ci/release` runs them"]
fn other_operators() {
    operators(&Factors::few(players()), 1, 2);
}

#[test]
fn random_models() {
    models(&Factors::few(players()), 150, 3);
}

#[test]
#[ignore = "takes minutes in release builds"]
fn every_operator_at_every_length_and_offset() {
    operators(&Factors::all(players()), 0, 1);
}

#[test]
#[ignore = "takes minutes in release builds"]
fn five_thousand_random_models() {
    models(&Factors::all(players()), 5_000, 8);
}
