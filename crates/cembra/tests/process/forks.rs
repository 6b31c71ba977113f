//! Tests processes that fork after they used models. The child has none of its parent's threads, so it must evaluate
//! without waiting for one of them.

use crate::alone;
use cembra::columns::InputColumn;
use cembra::native::Tiering;
use cembra::{Backend, Cancellation, Model, Options, RunOptions, Value};
use std::time::Duration;

// SAFETY: CODE-ENTRY: the signatures are those of the system's library.
unsafe extern "C" {
    safe fn fork() -> i32;
    safe fn alarm(seconds: u32) -> u32;
    safe fn _exit(code: i32) -> !;
    safe fn waitpid(process: i32, status: Option<&mut i32>, options: i32) -> i32;
}

/// Runs a function in a forked process, and returns true if the function returned. A signal ends the process after 20
/// seconds, in case the function waits forever.
fn in_child(run: impl FnOnce()) -> bool {
    let child = fork();
    assert!(child >= 0, "no process");
    if child == 0 {
        alarm(20);
        let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run));
        _exit(i32::from(done.is_err()));
    }
    let mut status = -1;
    assert_eq!(waitpid(child, Some(&mut status), 0), child);
    status == 0
}

const LONG: &str = "input n: i64; seq.reduce(fn(s, i) = s + i * i, seq.range(n), 0)";

#[test]
fn a_forked_process_shares_work_out_to_threads_of_its_own() {
    let _alone = alone();
    let rows: Vec<f64> = (0..1 << 17).map(f64::from).collect();
    let batch = Model::parse("input x: f64; x * 2.0 + 1.0").unwrap().batch(&Options::default()).unwrap();
    let columns = || {
        let made = batch.run_with(&RunOptions::new().threads(2), &[InputColumn::values(&rows)]).unwrap();
        assert_eq!(made.columns[0].values::<f64>().unwrap()[77], 155.0);
    };
    let sums = Model::parse("input x: [f64]; math.sum(x * 2.0)").unwrap().compile(&Options::default()).unwrap();
    let ones = std::iter::repeat_n(Some(cembra::ScalarValue::Float64(1.0)), 1 << 20);
    let array = [Value::from(cembra::Array::from_scalars(cembra::Scalar::Float64, ones))];
    let expected = sums.session().evaluate(&array).unwrap();
    let arrays = || {
        let mut session = sums.session();
        session.set_threads(2);
        assert_eq!(session.evaluate(&array).unwrap(), expected);
    };
    // Before the parent used a thread, and after.
    for _ in 0..2 {
        assert!(in_child(|| {
            columns();
            arrays();
            // And so do its own children.
            assert!(in_child(columns));
            columns();
        }));
        columns();
        arrays();
    }
}

#[test]
fn a_forked_process_multiplies_matrices_on_threads_of_its_own() {
    let _alone = alone();
    let text = "input a, b: tensor[f64, 2]; output c(\"i,j\") = a(\"i,k\") * b(\"k,j\")\noutput d = exp(a - 1.0) + b";
    let options = Options::default().min_parallel_elements(1);
    let executor = Model::parse(text).unwrap().compile(&options).unwrap();
    let matrix = cembra::Tensor::new(&[512, 512], vec![1.0; 512 * 512]).unwrap();
    let product = || {
        let mut session = executor.session();
        session.set_threads(2);
        let made = session.run_tensors(&[matrix.clone(), matrix.clone()]).unwrap();
        assert_eq!(made[0].to_vec::<f64>().unwrap()[5], 512.0);
    };
    product();
    assert!(in_child(product));
}

#[test]
fn a_deadline_holds_in_a_forked_process() {
    let _alone = alone();
    let limits = cembra::Limits::default().loop_iterations(u64::MAX);
    let options = Options::default().backend(Backend::Interpreter).limits(limits);
    let executor = Model::parse(LONG).unwrap().compile(&options).unwrap();
    let late = || {
        let mut session = executor.session();
        session.set_run_options(&RunOptions::new().time_limit(Duration::from_millis(5)));
        assert_eq!(session.evaluate(&[Value::from(1_i64 << 50)]).unwrap_err().code(), "deadline");
    };
    // The thread of the clock is started by the first deadline.
    let early = Cancellation::new().until(std::time::Instant::now() + Duration::from_secs(3600));
    assert!(in_child(late));
    assert!(!early.is_cancelled());
    // Sessions that have their limit from before the fork: without a run, and with one for which the thread ticks.
    let mut session = executor.session();
    session.set_run_options(&RunOptions::new().time_limit(Duration::from_millis(5)));
    let mut runs = || {
        assert_eq!(session.evaluate(&[Value::from(1_i64 << 50)]).unwrap_err().code(), "deadline");
        assert_eq!(session.evaluate(&[Value::from(3_i64)]).unwrap(), [Value::from(5_i64)]);
    };
    for _ in 0..2 {
        assert!(in_child(&mut runs));
        runs();
    }
}

#[test]
fn tiers_are_compiled_in_a_forked_process() {
    let _alone = alone();
    let options = Options::default().backend(Backend::Tiered).tiering(Tiering::default().after_calls(1));
    let compiled = |text: &str| Model::parse(text).unwrap().compile(&options).unwrap();
    let answer = |executor: &cembra::Executor| {
        let mut session = executor.session();
        (0..10).for_each(|_| assert_eq!(session.evaluate(&[Value::from(2.0)]).unwrap(), [Value::from(5.0)]));
    };
    // The parent's threads may be at any of these models when it forks.
    let before: Vec<_> = (0..20).map(|at| compiled(&format!("input x: f64; x * 2.0 + 1.0 + {at}.0 * 0.0"))).collect();
    before.iter().for_each(answer);
    before.iter().for_each(cembra::Executor::finish_tiers);
    let waiting = compiled("input x: f64; x + 3.0");
    assert!(in_child(|| {
        let own = compiled("input x: f64; x * x + 1.0");
        for executor in before.iter().chain([&waiting, &own]) {
            answer(executor);
            executor.finish_tiers();
            assert!(executor.tiers_are_finished() && executor.tier().is_some());
            answer(executor);
        }
    }));
}

#[cfg(feature = "tiles")]
#[test]
fn a_forked_process_computes_tiles_on_threads_of_its_own() {
    use cembra::tiles::{MOST_TILES, Operand, Options as Tiles, Shape, TileExecutor, Tiled, Tiling, Tiling1, World};
    let _alone = alone();
    let text =
        "tile i, j, k = 32\ninput a: tiled[f64, \"i,k\"], b: tiled[f64, \"k,j\"]\nc(\"i,j\") = a(\"i,k\") * b(\"k,j\")";
    let model = Model::parse(text).unwrap().compile(&Options::default()).unwrap();
    let axis = Tiling1::blocked(384, 32).unwrap();
    let shape = Shape::random(&Tiling::new([&axis, &axis]).unwrap(), 1.0, 1, MOST_TILES).unwrap();
    let a = Tiled::random::<f64>(&shape, 1).unwrap();
    let product = |threads: usize| {
        let session = model.tiled(&World::alone(), Tiles::default()).unwrap();
        session
            .run_options(&RunOptions::new().threads(threads))
            .run([("a", Operand::Tiled(&a)), ("b", Operand::Tiled(&a))])
            .unwrap()
    };
    let expected = format!("{:?}", product(2));
    assert!(in_child(|| assert_eq!(format!("{:?}", product(3)), expected)));
}
