//! Lane programs of random programs: what is recorded for many rows gives what the interpreter gives row by row.

#[path = "../../../crates/record/tests/recording/lanes/harness.rs"]
mod harness;

use cembra_fuzzing::{Config, Row, program, rows};
use cembra_plan::{Plan, build};
use cembra_prepare::{Options, prepare};
use cembra_record::NotLanes;
use cembra_value::{Budget, Value};

fn plan_of(program: &cembra_expr::Program) -> Option<Plan> {
    let prepared = prepare(program, &|_| None, &Options::default(), &mut |_, _| {}).ok()?;
    build(&prepared.placed().ok()?, &Budget::default()).ok()
}

/// The values of a plan's inputs.
fn inputs(plan: &Plan, row: &Row) -> Vec<Value> {
    plan.inputs().iter().map(|input| row.get(&input.name).expect("a value for every input").clone()).collect()
}

#[test]
fn random_programs_give_the_same_in_lanes() {
    the_same_in_lanes(300);
}

#[test]
#[ignore = "takes 5 s without optimisation: `.ci/release` runs it"]
fn many_random_programs_give_the_same_in_lanes() {
    the_same_in_lanes(800);
}

/// So many programs are tried.
fn the_same_in_lanes(programs: u64) {
    let (mut compared, mut failing, mut refused) = (0, 0, [0; 4]);
    for seed in [1, 2] {
        // Branches and failures are what lanes do another way.
        let config = Config {
            seed,
            rows: 12,
            conditionals: 0.3,
            structure: 0.03,
            functions: 0.0,
            fallible: 0.7,
            ..Config::default()
        };
        for number in 0..programs / 2 {
            let program = program(&config, number);
            let Some(plan) = plan_of(&program) else { continue };
            let mut rows: Vec<Vec<Value>> =
                rows(&config, number, &program).iter().map(|row| inputs(&plan, row)).collect();
            // In some programs rows share the values of some inputs.
            if number % 3 == 0 {
                let first = rows[0].clone();
                for row in &mut rows {
                    for (at, value) in row.iter_mut().enumerate().filter(|(at, _)| (number >> at) & 1 == 0) {
                        value.clone_from(&first[at]);
                    }
                }
            }
            match harness::check(&plan, &rows) {
                Ok(Ok(failed)) => {
                    compared += 1;
                    failing += u64::from(failed > 0);
                }
                Ok(Err(reason)) => {
                    let kind = match reason {
                        NotLanes::Loop(_) => 0,
                        NotLanes::Impure(_) => 1,
                        NotLanes::Type(_) => 2,
                        _ => 3,
                    };
                    refused[kind] += 1;
                }
                Err(difference) => panic!("program {number} of seed {seed}: {difference}"),
            }
        }
    }
    assert!(compared > programs / 2, "{compared} programs compared, refused {refused:?}");
    assert!(16 * failing > programs, "{failing} of {compared} fail in some row");
    assert_eq!(refused[3], 0, "the plans are short, and what cannot be played is a kernel");
}
