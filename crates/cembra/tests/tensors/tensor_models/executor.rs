//! Tests models with tensors that are called many times: which plans the executor keeps, and which sessions use them.

use super::{compiled, counted, inputs_of, run, tensors};
use cembra::errors::Span;
use cembra::tensor::same_bits;
use cembra::{Cancellation, Error, FaultKind, Limits, Model, OnError, Options, RunOptions, Tensor, Value};
use cembra_engine::run_plan;

pub(super) const SCALED: &str = "
    input x: tensor[f64, 2], bias: tensor[f64, 1], by: f64
    output y = tensor.relu(x * by + bias)
    output sums = tensor.sum(x, 1)";

/// Returns the code, message and place of an error.
fn parts(error: &Error) -> (&'static str, String, Option<Span>) {
    (error.code(), error.to_string(), error.span())
}

#[test]
fn tensors_of_new_extents_compile_nothing() {
    let executor = compiled(SCALED);
    let by = Tensor::scalar(0.5);
    let mut session = executor.session();
    for at in 1..=1000 {
        let (rows, columns) = (at % 40 + 2, at / 40 + 2);
        let inputs = [counted(&[rows, columns], at as i32), counted(&[columns], 3), by.clone()];
        let made = executor.session().run_tensors(&inputs).expect("outputs").to_vec();
        let reference = executor.run_reference(&inputs).expect("outputs");
        let again = [0; 2].map(|_| session.run_tensors(&inputs).expect("outputs").to_vec());
        for made in [&made, &again[0], &again[1]] {
            assert_eq!(made.len(), reference.len());
            for (made, reference) in made.iter().zip(&reference) {
                assert!(same_bits(made, reference), "{rows} x {columns}: {made:?}, not {reference:?}");
            }
        }
    }
    let counters = executor.plan_counters();
    // A session asks for the plan of inputs that are otherwise than before, and not again for the same.
    assert_eq!((counters.misses, counters.hits, counters.evictions, counters.kept), (1000, 1000, 936, 64));
    // The two maps of `y` and, of the reference, each of the three operators.
    assert_eq!(executor.kernel_counters().misses, 4);
}

#[test]
fn plans_are_kept_by_extents_and_the_one_not_used_the_longest_goes() {
    let executor = compiled("input x: tensor[i64, 1], y: tensor[i64, 2]; output z = x + y");
    let run = |x: usize, rows: usize| {
        let inputs = [
            Tensor::new(&[x], (0..x as i64).collect()).expect("a tensor"),
            Tensor::new(&[rows, x], vec![10_i64; rows * x]).expect("a tensor"),
        ];
        let expected: Vec<i64> = (0..rows).flat_map(|_| 10..10 + x as i64).collect();
        let mut session = executor.session();
        assert_eq!(session.run_tensors(&inputs).expect("a sum")[0].to_vec::<i64>().expect("integers"), expected);
        executor.plan_counters().misses
    };
    // 1 and 23 are not 12 and 3.
    assert_eq!((run(2, 3), run(3, 2), run(2, 3), run(3, 2)), (1, 2, 2, 2));
    for extent in 10..72 {
        for _ in 0..3 {
            run(extent, 1);
        }
        run(2, 3);
    }
    assert_eq!((executor.plan_counters().misses, executor.plan_counters().kept), (64, 64));
    // The next takes the place of the one that was used before all others.
    assert_eq!(executor.plan_counters().hits, 2 + 62 * 3);
    assert_eq!((run(100, 1), run(2, 3), run(10, 1), run(3, 2), run(11, 1)), (65, 65, 65, 66, 67));
}

#[test]
fn a_plan_that_is_prepared_is_the_one_that_runs() {
    let executor = compiled(SCALED);
    let plan = executor.prepare_for(&[&[4, 3], &[3], &[]]).expect("a plan");
    assert_eq!(executor.plan_counters().misses, 1);
    let inputs = [counted(&[4, 3], 1), counted(&[3], 2), Tensor::scalar(2.0)];
    let mut session = executor.session();
    let made = session.run_tensors(&inputs).expect("outputs").to_vec();
    let counters = executor.plan_counters();
    assert_eq!((counters.misses, counters.hits, counters.kept), (1, 1, 1));
    let (by_plan, _) = run_plan(&plan, &inputs).expect("outputs");
    assert!(made.iter().zip(&by_plan).all(|(made, by_plan)| same_bits(made, by_plan)), "{made:?}, {by_plan:?}");
    for (extents, code, message) in [
        // The same numbers in one row as those of the plan, for other inputs.
        (&[&[4, 3][..], &[3]][..], "arguments", "extents must be given for all 3 inputs"),
        (&[&[4], &[3, 3], &[]], "shape", "input `x` is tensor[f64, 2], but has 1 axes"),
        (&[&[4, 3], &[2], &[]], "shape", "tensors of [4, 3] and [2] do not broadcast"),
    ] {
        let error = executor.prepare_for(extents).map(|plan| plan.to_string()).expect_err(message);
        assert_eq!((error.code(), &*error.to_string()), (code, message));
    }
}

#[test]
fn plans_together_hold_no_more_than_arrays_may() {
    // A literal of 1,000 elements is part of each plan.
    let literal: Vec<String> = (0..1000).map(|at| format!("{at}.5")).collect();
    let text = format!("input x: tensor[f64, 1]; output y = x * tensor.sum([f64?]{{{}}})", literal.join(", "));
    const EACH: usize = 8_000;
    let model = Model::parse(&text).expect("a model");
    for (array_bytes, most) in [(400_000, 400_000 / EACH), (1 << 30, 64)] {
        let limits = Limits::default().array_bytes(array_bytes);
        let executor = model.compile(&Options::default().limits(limits)).expect("an executor");
        let bytes = executor.memory_bytes();
        let run = |more: usize| {
            let inputs = [counted(&[3 + more], 5)];
            let mut session = executor.session();
            let made = session.run_tensors(&inputs).expect("outputs");
            assert!(same_bits(&made[0], &executor.run_reference(&inputs).expect("outputs")[0]));
            executor.plan_counters()
        };
        let counters = (0..60).map(run).fold(None, |_, counters| Some(counters)).expect("some");
        assert_eq!(counters.misses, 60);
        assert!(counters.kept <= most.min(60) && counters.kept * 3 > most.min(60), "{counters:?}, {most}");
        assert_eq!(counters.evictions as usize, 60 - counters.kept);
        let held = executor.memory_bytes() - bytes;
        assert!(held >= counters.kept * EACH && held as u64 <= array_bytes, "{held} bytes of {counters:?}");
        // The last ones are kept, the first are not.
        assert_eq!((run(59).misses, run(58).misses), (60, 60));
        let again = run(60 - counters.kept);
        assert_eq!(again.misses, 60, "{again:?}");
        assert_eq!(run(0).misses, if counters.kept == 60 { 60 } else { 61 });
    }
}

/// Memory that only a run needs belongs to its session, not to the executor. Here it is a square root of 5,000
/// elements, which must be stored because the data decide in which order it is read.
#[test]
fn the_memory_of_runs_is_their_sessions() {
    const LEN: usize = 5_000;
    let model = Model::parse("input x: tensor[f64, 1], i: tensor[i64, 1]; output y = tensor.take(sqrt(x), i)");
    let limits = Limits::default().array_bytes(400_000);
    let executor = model.and_then(|model| model.compile(&Options::default().limits(limits))).expect("an executor");
    let bytes = executor.memory_bytes();
    let sessions: Vec<_> = (0..30)
        .map(|more| {
            let indices = Tensor::new(&[2], vec![(LEN - 1) as i64, 2]).expect("indices");
            let x = Tensor::new(&[LEN + more], (0..LEN + more).map(|at| (at * at) as f64).collect()).expect("a tensor");
            let mut session = executor.session();
            let made = session.run_tensors(&[x, indices]).expect("an output")[0].to_vec::<f64>().expect("floats");
            assert_eq!(made, [(LEN - 1) as f64, 2.0]);
            session
        })
        .collect();
    // Each session has 40,000 bytes or more. Those are not counted where plans are dropped.
    let counters = executor.plan_counters();
    assert_eq!((counters.misses, counters.kept, counters.evictions), (30, 30, 0));
    assert!(executor.memory_bytes() - bytes < 400_000, "{} bytes", executor.memory_bytes() - bytes);
    drop(sessions);
    assert_eq!(executor.plan_counters().kept, 30);
}

#[test]
fn a_session_says_what_is_wrong_as_the_reference_does() {
    let executor = compiled(SCALED);
    let good = || [counted(&[2, 3], 1), counted(&[3], 2), Tensor::scalar(1.0)];
    let with = |at: usize, tensor: Tensor| {
        let mut inputs = good();
        inputs[at] = tensor;
        let expected = executor.run_reference(&inputs).expect_err("a misfit");
        let error = executor.session().run_tensors(&inputs).expect_err("a misfit");
        assert_eq!(parts(&error), parts(&expected));
        assert_eq!((error.tensor_kind(), error.operator()), (expected.tensor_kind(), expected.operator()));
        let mut session = executor.session();
        assert!(session.run_tensors(&good()).is_ok());
        assert_eq!(parts(&session.run_tensors(&inputs).expect_err("a misfit")), parts(&expected));
        // Once more: what could not be planned stays so.
        assert_eq!(parts(&session.run_tensors(&inputs).expect_err("a misfit")), parts(&expected));
        assert!(session.run_tensors(&good()).is_ok());
        let error = executor.reader(0, &inputs).expect_err("a misfit");
        assert_eq!(error.to_string(), expected.to_string());
        error.to_string()
    };
    assert_eq!(
        with(0, counted(&[6], 1)),
        "input `x` is tensor[f64, 2], but the given tensor has elements of type f64 and the extents [6]"
    );
    assert_eq!(
        with(1, Tensor::new(&[3], vec![1, 2, 3]).expect("a tensor")),
        "input `bias` is tensor[f64, 1], but the given tensor has elements of type i32 and the extents [3]"
    );
    assert_eq!(
        with(2, counted(&[1], 1)),
        "input `by` is f64, but the given tensor has elements of type f64 and the extents [1]"
    );
    assert_eq!(with(1, counted(&[2], 1)), "tensors of [2, 3] and [2] do not broadcast");
    let mut session = executor.session();
    let error = session.run_tensors(&good()[..2]).expect_err("one too few");
    assert_eq!(error.to_string(), "2 tensors for 3 inputs");
    // Where anybody fails, others do not.
    assert_eq!(
        session.run_tensors(&good()).expect("outputs")[1].to_vec::<f64>().expect("floats"),
        [-3.0 + 4.0 + 0.0, -4.0 + 3.0 - 1.0]
    );
    assert_eq!(executor.plan_counters().kept, 2);
}

#[test]
fn runs_end_when_their_token_is_cancelled() {
    let executor = compiled(SCALED);
    let inputs = [counted(&[2, 3], 1), counted(&[3], 2), Tensor::scalar(1.0)];
    let values: Vec<Value> = vec![inputs[0].clone().into(), inputs[1].clone().into(), 1.0.into()];
    let mut session = executor.session();
    // A session that ran before, and one that did not.
    for ran in [true, false] {
        let token = Cancellation::new();
        session.set_cancellation(Some(token.clone()));
        if ran {
            assert!(session.run_tensors(&inputs).is_ok() && session.evaluate(&values).is_ok());
        }
        token.cancel();
        for error in
            [session.run_tensors(&inputs).expect_err("cancelled"), session.evaluate(&values).expect_err("cancelled")]
        {
            assert_eq!((error.code(), error.fault_kind()), ("cancelled", Some(FaultKind::Cancelled)), "{error}");
            assert_eq!(error.span(), None);
        }
        // A clone has no token, and neither has the session if it is taken away.
        assert!(session.clone().run_tensors(&inputs).is_ok());
        session.set_cancellation(None);
        assert!(session.run_tensors(&inputs).is_ok());
        session = executor.session();
    }
    session.set_run_options(&RunOptions::new().time_limit(std::time::Duration::ZERO));
    let error = session.run_tensors(&inputs).expect_err("no time");
    assert_eq!((error.code(), error.fault_kind()), ("deadline", Some(FaultKind::Deadline)), "{error}");
    session.set_run_options(&RunOptions::new());
    assert!(session.evaluate(&values).is_ok());
}

#[test]
fn elements_are_no_rows_that_may_fail() {
    // Maps of 2^18 elements are run by the executor of rows.
    let executor = compiled("input x: tensor[f64, 1]; output y = x * 2.0 + 1.0");
    let x = counted(&[1 << 18], 3);
    let wanted = executor.run_reference(std::slice::from_ref(&x)).expect("an output");
    for threads in [1, 2] {
        let mut session = executor.session();
        session.set_run_options(&RunOptions::new().on_error(OnError::Missing).threads(threads));
        // The first run allocates its output. The second run writes to the same memory.
        for _ in 0..2 {
            let made = session.run_tensors(std::slice::from_ref(&x)).expect("an output");
            assert!(same_bits(&made[0], &wanted[0]));
        }
    }
}

#[test]
fn runs_are_limited_by_their_options() {
    let executor = compiled("input x: tensor[f64, 1]; output y = x * 2.0");
    let x = counted(&[1000], 3);
    let values = [Value::from(x.clone())];
    let mut session = executor.session();
    let small = |array_bytes| RunOptions::new().limits(Limits::default().array_bytes(array_bytes));
    for _ in 0..2 {
        // What a run before had room for is no room for this one.
        assert!(session.run_tensors(std::slice::from_ref(&x)).is_ok() && session.evaluate(&values).is_ok());
        session.set_run_options(&small(7_999));
        // What is set later takes nothing of it away.
        session.set_threads(2);
        session.set_cancellation(Some(Cancellation::new()));
        let mut over = vec![x.clone()];
        for error in [
            session.run_tensors(std::slice::from_ref(&x)).expect_err("too little"),
            session.evaluate(&values).expect_err("too little"),
            session.run_over(&mut over, 1).expect_err("too little"),
        ] {
            assert_eq!(error.code(), "limit", "{error}");
        }
        assert!(over.len() == 1 && same_bits(&over[0], &x));
        session.set_run_options(&small(8_000));
        let made = session.run_tensors(std::slice::from_ref(&x)).expect("an output")[0].clone();
        assert!(same_bits(&made, &executor.run_reference(std::slice::from_ref(&x)).expect("an output")[0]));
        session.set_run_options(&RunOptions::new());
    }
}

#[test]
fn a_session_says_where_in_the_text_a_run_fails() {
    let text = "input i: tensor[i64, 1]; output y = 10 // i";
    let executor = compiled(text);
    let integers = |values: [i64; 2]| [Tensor::new(&[2], values.to_vec()).expect("a tensor")];
    let mut session = executor.session();
    // The first run, one behind it, and one behind a good one.
    for values in [[0, 1], [1, 0], [5, 2], [2, 0]] {
        let [tensor] = integers(values);
        match session.run_tensors(&integers(values)) {
            Ok(made) => assert_eq!(made[0].to_vec::<i64>().expect("integers"), [2, 5]),
            Err(error) => {
                assert_eq!(error.span().map(|span| span.text(text)), Some("10 // i"));
                assert_eq!((error.code(), error.operator()), ("div-by-zero", Some("math.floor_divide")));
                assert_eq!(error.fault_kind(), Some(FaultKind::DivisionByZero));
                let expected = executor.run_reference(&integers(values)).expect_err("a division by zero");
                assert_eq!(parts(&error), parts(&expected));
                let on_values = session.evaluate(&[tensor.into()]).expect_err("a division by zero");
                assert_eq!(parts(&on_values), parts(&expected));
            }
        }
    }
}

#[test]
fn threads_share_an_executor() {
    const THREADS: usize = 8;
    let executor = compiled(SCALED);
    let start = std::sync::Barrier::new(THREADS);
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (executor, start) = (&executor, &start);
            scope.spawn(move || {
                start.wait();
                for at in 0..100 {
                    let columns = (at * (thread + 1)) % 50 + 1;
                    let given = tensors([
                        ("x", counted(&[3, columns], (at + thread) as i32)),
                        ("bias", counted(&[columns], thread as i32)),
                        ("by", Tensor::scalar(2.0)),
                    ]);
                    let made = run(executor, &given).expect("outputs");
                    let reference = executor.run_reference(&inputs_of(executor, &given)).expect("outputs");
                    assert_eq!(made.len(), reference.len());
                    for (made, reference) in made.iter().zip(&reference) {
                        assert!(same_bits(made, reference), "{made:?}, {reference:?}");
                    }
                }
            });
        }
    });
    let counters = executor.plan_counters();
    // Of 50 lists of extents each was planned once, whoever asked for it.
    assert_eq!((counters.misses, counters.hits, counters.kept), (50, 750, 50));
}
