//! Models with tensors that are called many times: what is kept of plans, and for whom.

use super::{counted, tensors};
use cembra::tensor::{Evaluator, Tensor, TensorModel, same_bits};
use cembra::{Limits, Options};

const SCALED: &str = "
    input x: tensor[f64, 2], bias: tensor[f64, 1], by: f64
    output y = tensor.relu(x * by + bias)
    output sums = tensor.sum(x, 1)";

#[test]
fn tensors_of_new_extents_compile_nothing() {
    let model = TensorModel::parse(SCALED).expect("a model");
    let evaluator = Evaluator::new(&Options::default());
    let executor = model.executor(&evaluator);
    let by = Tensor::scalar(0.5);
    let mut session = executor.session();
    for at in 1..=1000 {
        let (rows, columns) = (at % 40 + 2, at / 40 + 2);
        let inputs = [counted(&[rows, columns], at as i32), counted(&[columns], 3), by.clone()];
        let made = executor.run(&inputs).expect("outputs");
        let named = tensors([("x", inputs[0].clone()), ("bias", inputs[1].clone()), ("by", by.clone())]);
        let reference = model.evaluate_unplanned(&evaluator, &named).expect("outputs");
        let again = [session.run(&inputs).expect("outputs").to_vec(), session.run(&inputs).expect("outputs").to_vec()];
        for made in [&made, &again[0], &again[1]] {
            for (made, (_, reference)) in made.iter().zip(&reference) {
                assert!(same_bits(made, reference), "{rows} x {columns}: {made:?}, not {reference:?}");
            }
        }
    }
    let counters = executor.counters();
    // A session asks for the plan of inputs that are otherwise than before, and not again for the same.
    assert_eq!((counters.misses, counters.hits, counters.evictions, counters.kept), (1000, 1000, 936, 64));
    // The two maps of `y` and, of the reference, each of the three operators.
    assert_eq!(evaluator.kernel_counters().misses, 4);
}

#[test]
fn plans_are_kept_by_extents_and_the_one_not_used_the_longest_goes() {
    let model = TensorModel::parse("input x: tensor[i64, 1], y: tensor[i64, 2]; output z = x + y").expect("a model");
    let evaluator = Evaluator::new(&Options::default());
    let executor = model.executor(&evaluator);
    let run = |x: usize, rows: usize| {
        let inputs = [
            Tensor::new(&[x], (0..x as i64).collect()).expect("a tensor"),
            Tensor::new(&[rows, x], vec![10_i64; rows * x]).expect("a tensor"),
        ];
        let expected: Vec<i64> = (0..rows).flat_map(|_| 10..10 + x as i64).collect();
        assert_eq!(executor.run(&inputs).expect("a sum")[0].to_vec::<i64>().expect("integers"), expected);
        executor.counters().misses
    };
    // 1 and 23 are not 12 and 3.
    assert_eq!((run(2, 3), run(3, 2), run(2, 3), run(3, 2)), (1, 2, 2, 2));
    for extent in 10..72 {
        for _ in 0..3 {
            run(extent, 1);
        }
        run(2, 3);
    }
    assert_eq!((executor.counters().misses, executor.counters().kept), (64, 64));
    // The next takes the place of the one that was used before all others.
    assert_eq!(executor.counters().hits, 2 + 62 * 3);
    assert_eq!((run(100, 1), run(2, 3), run(10, 1), run(3, 2), run(11, 1)), (65, 65, 65, 66, 67));
}

#[test]
fn plans_together_hold_no_more_than_arrays_may() {
    // A literal of 1,000 elements is part of each plan; so is what a run keeps: the root of 5,000 elements, which is read in an order that
    // only the data know.
    let literal: Vec<String> = (0..1000).map(|at| format!("{at}.5")).collect();
    let literal = format!("input x: tensor[f64, 1]; output y = x * tensor.sum([f64?]{{{}}})", literal.join(", "));
    let taken = "input x: tensor[f64, 1], i: tensor[i64, 1]; output y = tensor.take(sqrt(x), i)";
    let indices = Tensor::new(&[2], vec![4_999_i64, 0]).expect("a tensor");
    for (text, more, extent, each) in [(&*literal, vec![], 3, 8_000), (taken, vec![indices], 5_000, 40_000)] {
        let model = TensorModel::parse(text).expect("a model");
        for (array_bytes, most) in [(400_000, 400_000 / each), (1 << 30, 64)] {
            let limits = Limits { array_bytes, ..Limits::default() };
            let evaluator = Evaluator::new(&Options::default().limits(limits));
            let executor = model.executor(&evaluator);
            let run = |more_indices: usize| {
                let x = counted(&[extent + more_indices], 5);
                let squares = x.to_vec::<f64>().expect("floats").iter().map(|x| x * x).collect();
                let x = Tensor::new(x.extents(), squares).expect("a tensor");
                let inputs: Vec<Tensor> = std::iter::once(x).chain(more.clone()).collect();
                let made = executor.run(&inputs).expect("outputs");
                let planned = model.plan(&evaluator, &inputs.iter().map(Tensor::extents).collect::<Vec<_>>());
                assert!(same_bits(&made[0], &planned.and_then(|plan| plan.run(&inputs)).expect("outputs")[0]));
                executor.counters()
            };
            let counters = (0..60).map(run).last().expect("some");
            assert_eq!(counters.misses, 60);
            assert!(counters.kept <= most.min(60) && counters.kept * 3 > most.min(60), "{counters:?}, {most}");
            assert_eq!(counters.evictions as usize, 60 - counters.kept);
            // The last ones are kept, the first are not.
            assert_eq!((run(59).misses, run(58).misses), (60, 60));
            let again = run(60 - counters.kept);
            assert_eq!(again.misses, 60, "{again:?}");
            assert_eq!(run(0).misses, if counters.kept == 60 { 60 } else { 61 });
        }
    }
}

#[test]
fn an_executor_says_what_is_wrong_as_an_evaluation_does() {
    let model = TensorModel::parse(SCALED).expect("a model");
    let evaluator = Evaluator::new(&Options::default());
    let executor = model.executor(&evaluator);
    let good = || [counted(&[2, 3], 1), counted(&[3], 2), Tensor::scalar(1.0)];
    let with = |at: usize, tensor: Tensor| {
        let mut inputs = good();
        inputs[at] = tensor;
        let [x, bias, by] = inputs.clone();
        let named = model.evaluate(&evaluator, &tensors([("x", x), ("bias", bias), ("by", by)])).expect_err("a misfit");
        let error = executor.run(&inputs).expect_err("a misfit");
        assert_eq!(error, named);
        let mut session = executor.session();
        assert!(session.run(&good()).is_ok());
        assert_eq!(session.run(&inputs).expect_err("a misfit"), named);
        // Once more: what could not be planned stays so.
        assert_eq!(executor.run(&inputs).expect_err("a misfit"), named);
        error.to_string()
    };
    assert_eq!(with(0, counted(&[6], 1)), "input `x` is tensor[f64, 2], and is given as f64 of [6]");
    assert_eq!(
        with(1, Tensor::new(&[3], vec![1, 2, 3]).expect("a tensor")),
        "input `bias` is tensor[f64, 1], and is given as i32 of [3]"
    );
    assert_eq!(with(2, counted(&[1], 1)), "input `by` is f64, and is given as f64 of [1]");
    assert_eq!(with(1, counted(&[2], 1)), "tensors of [2, 3] and [2] do not broadcast");
    let error = executor.run(&good()[..2]).expect_err("one too few");
    assert_eq!(error.to_string(), "2 tensors for 3 inputs");
    // Where anybody fails, others do not.
    assert_eq!(
        executor.run(&good()).expect("outputs")[1].to_vec::<f64>().expect("floats"),
        [-3.0 + 4.0 + 0.0, -4.0 + 3.0 - 1.0]
    );
    assert_eq!(executor.counters().kept, 2);

    let token = cembra::Cancellation::new();
    assert!(executor.run_until(&good(), &token).is_ok());
    token.cancel();
    let error = executor.run_until(&good(), &token).expect_err("cancelled");
    assert_eq!(error.kind(), cembra::tensor::ErrorKind::Cancelled);
}

#[test]
fn a_session_says_where_in_the_text_a_run_fails() {
    let text = "input i: tensor[i64, 1]; output y = 10 // i";
    let model = TensorModel::parse(text).expect("a model");
    let evaluator = Evaluator::new(&Options::default());
    let executor = model.executor(&evaluator);
    let integers = |values: [i64; 2]| [Tensor::new(&[2], values.to_vec()).expect("a tensor")];
    let mut session = executor.session();
    // The first run, one behind it, and one behind a good one.
    for values in [[0, 1], [1, 0], [5, 2], [2, 0]] {
        match session.run(&integers(values)) {
            Ok(made) => assert_eq!(made[0].to_vec::<i64>().expect("integers"), [2, 5]),
            Err(error) => {
                assert_eq!(error.span().map(|span| span.text(text)), Some("10 // i"));
                assert_eq!(error, executor.run(&integers(values)).expect_err("a division by zero"));
            }
        }
    }
}

#[test]
fn threads_share_an_executor() {
    const THREADS: usize = 8;
    let model = TensorModel::parse(SCALED).expect("a model");
    let evaluator = Evaluator::new(&Options::default());
    let executor = model.executor(&evaluator);
    let start = std::sync::Barrier::new(THREADS);
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (executor, evaluator, model, start) = (&executor, &evaluator, &model, &start);
            scope.spawn(move || {
                start.wait();
                for at in 0..100 {
                    let columns = (at * (thread + 1)) % 50 + 1;
                    let given = tensors([
                        ("x", counted(&[3, columns], (at + thread) as i32)),
                        ("bias", counted(&[columns], thread as i32)),
                        ("by", Tensor::scalar(2.0)),
                    ]);
                    let made = executor.evaluate(&given).expect("outputs");
                    let reference = model.evaluate_unplanned(evaluator, &given).expect("outputs");
                    for (made, reference) in made.iter().zip(&reference) {
                        assert!(made.0 == reference.0 && same_bits(&made.1, &reference.1), "{made:?}, {reference:?}");
                    }
                }
            });
        }
    });
    let counters = executor.counters();
    // Of 50 lists of extents each was planned once, whoever asked for it.
    assert_eq!((counters.misses, counters.hits, counters.kept), (50, 750, 50));
}
