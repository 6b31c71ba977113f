//! Tests repeated runs of plans: on inputs with other layouts, in sessions, and while the caller still has outputs of
//! earlier runs.

use super::{numbers, plan_of};
use crate::compiled::{kind_of, run};
use cembra::explain::RowPlayer;
use cembra::tensor::{CompileGraph, Reduction, Slice, Tensor, TensorErrorKind, TensorGraph, TensorNodeId, same_bits};
use cembra::{Cancellation, Options, Scalar};
use cembra_engine::run_plan;

/// The number of rows of the matrix `x` in `graph`. With it, steps share a loop, and a map needs several blocks.
const ROWS: usize = 16;
const COLUMNS: usize = 520;

/// Returns a graph with several steps, some with temporaries of the same size. Its outputs are maps, sums, products and
/// views; one output occurs twice.
fn graph() -> (TensorGraph, Vec<TensorNodeId>) {
    let mut g = TensorGraph::standard();
    let x = g.leaf("x", Scalar::Float64, &[ROWS, COLUMNS]).expect("a leaf");
    let y = g.leaf("y", Scalar::Float64, &[COLUMNS]).expect("a leaf");
    let sum = g.apply("math.add", &[x, y]).expect("a node");
    let e = g.apply("sin", &[sum]).expect("a node");
    let gram = g.einsum("ik,jk->ij", &[e, x]).expect("a node");
    let other = g.einsum("ik,jk->ij", &[x, e]).expect("a node");
    let both = g.apply("math.subtract", &[gram, other]).expect("a node");
    let totals = g.reduce(Reduction::Sum, e, &[1]).expect("a node");
    let rows = g.softmax(sum, 1).expect("a node");
    let turned = g.transpose(both, &[1, 0]).expect("a node");
    let cut = g.slice(both, &[Slice { start: 3, step: 2, count: 6 }, Slice::all(ROWS)]).expect("a node");
    (g, vec![totals, rows, turned, cut, totals, x, both])
}

/// Returns `x` in four memory layouts: contiguous, as a part of a larger tensor, transposed, and reversed.
fn ways(x: &Tensor) -> Vec<Tensor> {
    let elements = x.to_vec::<f64>().expect("floats");
    let mut behind = vec![0.5; 7];
    behind.extend(&elements);
    let behind = Tensor::new(&[behind.len()], behind).expect("a tensor");
    let slice = Slice { start: 7, step: 1, count: elements.len() };
    let behind = behind.sliced(&[slice]).and_then(|part| part.reshaped(x.extents())).expect("a view");
    let reverse: Vec<usize> = (0..x.extents().len()).rev().collect();
    let turned = x.transposed(&reverse).expect("a view").row_major().transposed(&reverse).expect("a view");
    let back: Vec<Slice> =
        x.extents().iter().map(|count| Slice { start: count - 1, step: -1, count: *count }).collect();
    let backwards = x.sliced(&back).expect("a view").row_major().sliced(&back).expect("a view");
    vec![x.clone(), behind, turned, backwards]
}

#[test]
fn runs_of_one_plan_do_not_see_each_other() {
    let (g, outputs) = graph();
    check_runs(&g, &outputs);
    // Each output has memory of its own, which goes back to the plan for the next run of a session.
    let alone = [outputs[0], outputs[1], outputs[6]];
    check_runs(&g, &alone);
}

fn check_runs(g: &TensorGraph, outputs: &[TensorNodeId]) {
    let executor = g.compile(outputs, &Options::default().reference_order(true)).expect("an executor");
    let (plan, mut session) = (plan_of(g, &executor), executor.session());
    let mut kept: Vec<(Vec<Tensor>, Vec<Tensor>)> = Vec::new();
    for seed in 0..2 {
        let (xs, ys) = (ways(&numbers(&[ROWS, COLUMNS], seed)), ways(&numbers(&[COLUMNS], seed + 50)));
        for (x, y) in xs.iter().zip(&ys).chain([(&xs[0], &ys[3]), (&xs[2], &ys[0])]) {
            let inputs = [x.clone(), y.clone()];
            let expected = executor.run_reference(&inputs).expect("values");
            let once = run(&executor, &inputs).expect("values");
            let unbound = run_plan(&plan, &inputs).expect("values").0;
            let again = session.run_tensors(&inputs).expect("values").to_vec();
            for made in [&once, &unbound, &again] {
                let is_same = expected.iter().zip(made).all(|(expected, made)| same_bits(expected, made));
                assert!(is_same && made.len() == outputs.len(), "{made:?} of {inputs:?}");
            }
            // Every other run somebody keeps what came of it, so that its memory is not there for the next.
            if kept.len() % 2 == seed % 2 {
                kept.push((expected.clone(), once));
            } else {
                kept.push((expected, again));
            }
        }
    }
    for (expected, made) in &kept {
        assert!(expected.iter().zip(made).all(|(expected, made)| same_bits(expected, made)), "{made:?}");
    }
}

#[test]
fn a_session_writes_again_to_memory_that_nobody_else_has() {
    let mut g = TensorGraph::standard();
    let x = g.leaf("x", Scalar::Float64, &[1000]).expect("a leaf");
    let outputs = [g.apply("math.neg", &[x]).expect("a node"), g.apply("math.abs", &[x]).expect("a node")];
    let mut session = g.compile(&outputs, &Options::default()).expect("an executor").session();
    let mut run = |seed: usize| session.run_tensors(&[numbers(&[1000], seed)]).expect("values").to_vec();
    let place = |tensor: &Tensor| std::ptr::from_ref(tensor.data());
    let places: Vec<_> = (0..3).map(|seed| run(seed).iter().map(place).collect::<Vec<_>>()).collect();
    assert_eq!((&places[0], &places[1]), (&places[1], &places[2]));
    let kept = run(3);
    let before: Vec<Vec<f64>> = kept.iter().map(|tensor| tensor.to_vec().expect("floats")).collect();
    let others = run(4);
    assert!(kept.iter().zip(&others).all(|(kept, other)| !kept.shares_memory(other)));
    let after: Vec<Vec<f64>> = kept.iter().map(|tensor| tensor.to_vec().expect("floats")).collect();
    assert_eq!(before, after);
}

#[test]
fn a_session_whose_run_failed_goes_on() {
    let mut g = TensorGraph::standard();
    let a = g.leaf("a", Scalar::Int64, &[1000]).expect("a leaf");
    let b = g.leaf("b", Scalar::Int64, &[1000]).expect("a leaf");
    let doubled = g.apply("math.add", &[a, a]).expect("a node");
    let quotient = g.apply("math.floordiv", &[doubled, b]).expect("a node");
    let mut session = g.compile(&[quotient, doubled], &Options::default()).expect("an executor").session();
    let counted = |first: i64| Tensor::new(&[1000], (first..first + 1000).collect()).expect("a tensor");
    for first in [1, 2, -500, 3, -999, 4, 5] {
        let made = session.run_tensors(&[counted(9), counted(first)]);
        if (first..first + 1000).contains(&0) {
            assert!(made.is_err(), "a division by zero of {first}");
            continue;
        }
        let made = made.expect("values");
        let quotients: Vec<i64> = (0..1000_i64).map(|at| (2 * (at + 9)).div_euclid(at + first)).collect();
        assert_eq!(made[0].to_vec::<i64>().expect("integers"), quotients);
        assert_eq!(made[1].get::<i64>(&[999]).expect("an integer"), 2 * 1008);
    }
}

#[test]
fn long_chains_of_views_and_of_sizes_are_bound() {
    const VIEWS: usize = 100_000;
    const SIZES: usize = 1500;
    // What each view is of is not looked for again for each of them.
    let mut g = TensorGraph::standard();
    let x = g.leaf("x", Scalar::Float64, &[3]).expect("a leaf");
    let mut chain = g.apply("sin", &[x]).expect("a node");
    for _ in 0..VIEWS {
        chain = g.barrier(chain).expect("a node");
    }
    let executor = g.compile(&[chain], &Options::default()).expect("an executor");
    let input = numbers(&[3], 1);
    let made = run(&executor, std::slice::from_ref(&input)).expect("values");
    let sines: Vec<f64> = input.to_vec::<f64>().expect("floats").into_iter().map(f64::sin).collect();
    let found = made[0].to_vec::<f64>().expect("floats");
    assert!(found.iter().zip(&sines).all(|(found, sine)| (found - sine).abs() < 1e-12), "{found:?}");
    // Temporaries of as many sizes as there are steps: memory of one size is not looked for among all that are free.
    let mut g = TensorGraph::standard();
    let x = g.leaf("x", Scalar::Int64, &[SIZES]).expect("a leaf");
    let mut chain = x;
    for extent in (1..SIZES).rev() {
        let shorter = g.slice(chain, &[Slice { start: 0, step: 1, count: extent }]).expect("a node");
        // What may fail is a step of its own.
        chain = g.apply("math.floordiv", &[shorter, shorter]).expect("a node");
        chain = g.apply("math.add", &[chain, shorter]).expect("a node");
    }
    let input = Tensor::new(&[SIZES], (1..=SIZES as i64).collect::<Vec<i64>>()).expect("a tensor");
    let made = run(&g.compile(&[chain], &Options::default()).expect("an executor"), &[input]).expect("values");
    assert_eq!(made[0].to_vec::<i64>().expect("integers"), [SIZES as i64]);
}

#[test]
fn sums_of_elements_that_lanes_leave_to_the_reference_are_right() {
    // Of arguments as large as some here, lanes do not know the sine: it is put in their place while they are summed.
    let mut g = TensorGraph::standard();
    let x = g.leaf("x", Scalar::Float64, &[5, 1000]).expect("a leaf");
    let e = g.apply("sin", &[x]).expect("a node");
    let square = g.apply("math.multiply", &[e, e]).expect("a node");
    let outputs = [g.reduce(Reduction::Sum, e, &[1]), g.reduce(Reduction::Sum, square, &[0, 1])].map(Result::unwrap);
    for player in [RowPlayer::Best, RowPlayer::Lanes128] {
        let options = Options::default().row_player(player);
        // One by one, as what several sums read has memory of its own.
        let executors = outputs.map(|output| g.compile(&[output], &options).expect("an executor"));
        for scale in [1.0, 1e300, 1e12, 1.0] {
            let elements: Vec<f64> =
                (0..5000).map(|at| if at % 1237 == 11 { scale } else { f64::from(at) * 0.01 }).collect();
            let input = [Tensor::new(&[5, 1000], elements).expect("a tensor")];
            for executor in &executors {
                let expected = executor.run_reference(&input).expect("values");
                let mut session = executor.session();
                for _ in 0..2 {
                    let made = session.run_tensors(&input).expect("values");
                    assert!(same_bits(&made[0], &expected[0]), "{} of {scale}: {made:?}", player.name());
                }
            }
        }
    }
}

#[test]
fn memory_that_is_read_through_views_is_free_once() {
    let mut g = TensorGraph::standard();
    let x = g.leaf("x", Scalar::Float64, &[20, 30]).expect("a leaf");
    let doubled = g.apply("math.add", &[x, x]).expect("a node");
    let upwards = g.slice(doubled, &[Slice { start: 19, step: -1, count: 20 }, Slice::all(30)]).expect("a node");
    // The last step that reads what is doubled sees its rows from the last one on.
    let gram = g.einsum("ik,jk->ij", &[upwards, x]).expect("a node");
    // Two as large as what is not needed any more, both of which are there in the end.
    let one = g.einsum("ij,jk->ik", &[gram, x]).expect("a node");
    let other = g.einsum("ji,jk->ik", &[gram, x]).expect("a node");
    let executor = g.compile(&[one, other], &Options::default().reference_order(true)).expect("an executor");
    let input = [Tensor::new(&[20, 30], (0..600).map(|at| f64::from(at % 7)).collect()).expect("a tensor")];
    let expected = executor.run_reference(&input).expect("values");
    let made = run(&executor, &input).expect("values");
    assert!(expected.iter().zip(&made).all(|(expected, made)| same_bits(expected, made)), "{made:?}");
}

#[test]
fn reductions_of_what_is_in_memory_many_times_can_be_cancelled() {
    // As many elements as would take years, of a tensor of six.
    for axes in [&[0, 1, 2][..], &[0, 2], &[0, 1]] {
        let mut g = TensorGraph::standard();
        let x = g.leaf("x", Scalar::Float64, &[1, 3, 2]).expect("a leaf");
        let wide = g.broadcast(x, &[1 << 55, 3, 2]).expect("a view");
        let largest = g.reduce(Reduction::Max, wide, axes).expect("a node");
        let mut session = g.compile(&[largest], &Options::default()).expect("an executor").session();
        let inputs = [numbers(&[1, 3, 2], 1)];
        let token = Cancellation::new();
        let (begins, canceller) = (std::sync::Arc::new(std::sync::Barrier::new(2)), token.clone());
        let begun = begins.clone();
        let other = std::thread::spawn(move || {
            begun.wait();
            // Meanwhile the run has begun.
            let (g, outputs) = graph();
            let executor = g.compile(&outputs, &Options::default()).expect("an executor");
            let inputs = [numbers(&[ROWS, COLUMNS], 1), numbers(&[COLUMNS], 2)];
            let ran = (0..3).all(|_| executor.run_reference(&inputs).is_ok());
            canceller.cancel();
            ran
        });
        begins.wait();
        session.set_cancellation(Some(token));
        let error = session.run_tensors(&inputs).expect_err("cancelled");
        assert_eq!(kind_of(&error), TensorErrorKind::Cancelled);
        assert!(other.join().expect("no panic"));
    }
}
