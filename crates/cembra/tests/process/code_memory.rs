//! Tests the machine code of many models in one process: its cost in memory and mappings, that all of it is freed, and
//! that threads can compile, call and drop models at the same time.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![expect(clippy::print_stdout, reason = "what was measured is shown with --nocapture")]

use crate::{alone, resident};
use cembra::native::live_code_bytes;
use cembra::{Backend, Executor, Model, Options, Value};
use std::sync::Mutex;

/// Returns the number of memory mappings of the process, and asserts that none is both writable and executable.
fn mappings() -> usize {
    let maps = std::fs::read_to_string("/proc/self/maps").expect("Linux has it");
    for line in maps.lines() {
        let access = line.split(' ').nth(1).expect("the access");
        assert!(!(access.contains('w') && access.contains('x')), "{line}");
    }
    maps.lines().count()
}

/// Compiles a model that is different for each `number`.
fn compile(number: i64) -> Executor {
    let model = Model::parse(&format!("input x: i64; x * {number} + {}", number + 1)).expect("a model");
    model.compile(&Options::default().backend(Backend::Native)).expect("machine code")
}

fn check(executor: &Executor, number: i64) {
    let found = executor.session().evaluate(&[Value::from(7_i64)]).expect("a value");
    assert_eq!(found, [Value::from(8 * number + 1)]);
}

/// Compiles, calls and drops `models` models, divided among four threads.
fn come_and_go(models: i64) {
    std::thread::scope(|scope| {
        for thread in 0..4 {
            scope.spawn(move || {
                for number in (thread..models).step_by(4) {
                    check(&compile(number), number);
                }
            });
        }
    });
}

fn soak(models: i64) {
    // The first ones fill allocators, tables and the code generator's scratch memory.
    come_and_go(2_000);
    let before = (resident(), mappings(), live_code_bytes());
    come_and_go(models);
    let growth = resident().saturating_sub(before.0);
    println!("{models} models on 4 threads: {} KiB, then {growth} KiB more; {} mappings", before.0, mappings());
    assert!(growth < 5 << 10, "grew by {growth} KiB");
    assert_eq!(live_code_bytes(), before.2, "all pages came back");
}

#[test]
fn models_come_and_go_on_four_threads() {
    let _alone = alone();
    soak(2_000);
}

#[test]
#[ignore = "takes half a minute and more where the library is not optimised"]
fn a_hundred_thousand_models_come_and_go_on_four_threads() {
    let _alone = alone();
    soak(100_000);
}

/// Ten thousand models exist at the same time and are called. Then they are dropped in two halves, every second model
/// first.
#[test]
fn ten_thousand_live_models_cost_eighty_mebibytes_and_few_mappings() {
    const MODELS: i64 = 10_000;
    const MOST_MAPPINGS: usize = 2_000;
    let _alone = alone();
    let (bytes, before) = (live_code_bytes(), (resident(), mappings()));
    let executors: Vec<Executor> = (0..MODELS).map(compile).collect();
    let after = (resident(), mappings());
    let growth = after.0.saturating_sub(before.0);
    println!("{MODELS} live models: {growth} KiB of {}, {} mappings, before {}", after.0, after.1, before.1);
    let code = live_code_bytes() - bytes;
    assert!(code >= MODELS as usize * 64, "{code} bytes of code");
    assert!(growth < 80 << 10, "{growth} KiB");
    assert!(after.1 < MOST_MAPPINGS, "{} mappings", after.1);
    for (number, executor) in executors.iter().enumerate() {
        check(executor, number as i64);
    }
    let (even, odd): (Vec<_>, Vec<_>) = executors.into_iter().enumerate().partition(|(number, _)| number % 2 == 0);
    drop(even);
    assert!(mappings() < MOST_MAPPINGS, "{} mappings with holes", mappings());
    // The holes are filled first; what lives around them is untouched.
    let filled: Vec<Executor> = (0..MODELS / 2).map(compile).collect();
    assert!(mappings() < MOST_MAPPINGS, "{} mappings after holes were filled", mappings());
    assert!(live_code_bytes() - bytes <= code, "holes are used again");
    for (number, executor) in odd.iter().map(|(number, executor)| (*number, executor)).chain(filled.iter().enumerate())
    {
        check(executor, number as i64);
    }
    drop((odd, filled));
    assert_eq!(live_code_bytes(), bytes, "all pages came back");
}

#[test]
fn threads_share_models_that_others_replace_and_drop() {
    let _alone = alone();
    let before = live_code_bytes();
    let shelf: Vec<Mutex<Option<(i64, Executor)>>> = (0..16).map(|_| Mutex::new(None)).collect();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let shelf = &shelf;
            scope.spawn(move || {
                let mut random = fastrand::Rng::with_seed(thread);
                for _ in 0..1_000 {
                    let place = &shelf[random.usize(..shelf.len())];
                    match random.u8(..8) {
                        0..3 => {
                            let number = random.i64(0..1 << 40);
                            let made = (number, compile(number));
                            *place.lock().expect("nobody panics") = Some(made);
                        }
                        3 => drop(place.lock().expect("nobody panics").take()),
                        _ => {
                            // Called outside of the lock: the model may be gone from the shelf by then.
                            let found = place.lock().expect("nobody panics").clone();
                            if let Some((number, executor)) = found {
                                let mut session = executor.session();
                                drop(executor);
                                for x in 0..20 {
                                    let values = session.evaluate(&[Value::from(x)]).expect("a value");
                                    assert_eq!(values, [Value::from(x * number + number + 1)]);
                                }
                            }
                        }
                    }
                }
            });
        }
        (0..50).for_each(|_| assert!(mappings() < 1_000));
    });
    let left = shelf.iter().filter(|place| place.lock().expect("nobody panics").is_some()).count();
    assert!(left > 0 && live_code_bytes() > before);
    drop(shelf);
    assert_eq!(live_code_bytes(), before);
}
