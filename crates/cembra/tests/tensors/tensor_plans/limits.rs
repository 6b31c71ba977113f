//! Tests the limits of plans: temporary memory of steps counts like their results, freed memory does not count, and
//! every long loop checks whether the run was cancelled.

use crate::compiled::{kind_of, message_of, run};
use cembra::Error;
use cembra::tensor::{Labels, Reduction, Tensor, TensorErrorKind, TensorGraph, TensorNodeId, same_bits};
use cembra::{Cancellation, Executor, Limits, Model, Options, RunOptions, Scalar, Session, Value};
use cembra_engine::{BoundPlan, Evaluator, ProductCounters};
use cembra_tensor::{Plan, Rewriter, Rewritten};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

fn limited(array_bytes: u64) -> Options {
    Options::default().limits(Limits::default().array_bytes(array_bytes))
}

fn compiled(text: &str, options: &Options) -> Executor {
    Model::parse(text).and_then(|model| model.compile(options)).expect("an executor")
}

/// Runs a session on values instead of tensors, and returns the outputs as tensors.
fn on_values(session: &mut Session, inputs: &[Tensor]) -> Result<Vec<Tensor>, Error> {
    let inputs: Vec<Value> = inputs.iter().map(|input| Value::from(input.clone())).collect();
    let tensor = |value: &Value| match value {
        Value::Tensor(tensor) => Tensor::clone(tensor),
        Value::Scalar(scalar) => Tensor::of_value(scalar).expect("an element"),
        other => panic!("{other} is no output of tensors"),
    };
    Ok(session.evaluate(&inputs)?.iter().map(tensor).collect())
}

/// Runs a model three times each by its plan, in new sessions, in one session, and in one session on values. Returns
/// the last outputs of each of these ways, or the kind of the error.
fn each_way(executor: &Executor, threads: usize, inputs: &[Tensor]) -> Vec<Result<Vec<Tensor>, TensorErrorKind>> {
    let extents: Vec<&[usize]> = inputs.iter().map(Tensor::extents).collect();
    let session = || {
        let mut session = executor.session();
        session.set_threads(threads);
        session
    };
    let (mut one, mut of_values) = (session(), session());
    let mut by_plan = || Ok(cembra_engine::run_plan(&*executor.prepare_for(&extents)?, inputs)?.0);
    let by_session = |session: &mut Session| Ok(session.run_tensors(inputs)?.to_vec());
    let last_of_three = |run: &mut dyn FnMut() -> Result<Vec<Tensor>, Error>| {
        (0..3).map(|_| run()).last().expect("a run").map_err(|error| kind_of(&error))
    };
    vec![
        last_of_three(&mut by_plan),
        last_of_three(&mut || by_session(&mut session())),
        last_of_three(&mut || by_session(&mut one)),
        last_of_three(&mut || on_values(&mut of_values, inputs)),
    ]
}

/// Asserts that a model runs with a limit of `most` bytes, in all ways and with the reference's results, and fails with
/// one byte less.
fn needs(text: &str, inputs: &[Tensor], most: u64) {
    let expected = compiled(text, &limited(1 << 40)).run_reference(inputs).expect("a value");
    let [enough, too_few] = [most, most - 1].map(|most| compiled(text, &limited(most).min_parallel_elements(100)));
    for threads in [1, 3] {
        for made in each_way(&enough, threads, inputs) {
            let made = made.unwrap_or_else(|error| panic!("{text}: {error:?} with {threads} threads"));
            assert_eq!(made.len(), expected.len());
            assert!(made.iter().zip(&expected).all(|(made, expected)| same_bits(made, expected)), "{made:?}");
        }
        for made in each_way(&too_few, threads, inputs) {
            assert_eq!(made.expect_err(text), TensorErrorKind::Limit, "{text}, {threads} threads");
        }
    }
}

fn numbers(extents: &[usize]) -> Tensor {
    let count: usize = extents.iter().product();
    Tensor::new(extents, (0..count).map(|at| (at % 13) as f64 / 16.0 - 0.25).collect()).expect("a tensor")
}

#[test]
fn what_rows_leave_for_each_other_is_limited() {
    // A row of `z` is 320,000 bytes, of `m` one number.
    let text = "
        input x: tensor[f64, 3], y: tensor[f64, 1]
        let z = exp(x + y)
        let m = tensor.sum(z, (1, 2), keep=true)
        output out = tensor.sum(z / m, (1, 2))";
    needs(text, &[numbers(&[2, 200, 1]), numbers(&[200])], 320_000 + 8 + 16);
}

#[test]
fn what_rows_left_and_nobody_reads_any_more_is_room_for_others() {
    // Of `a`, `b` and `c` two at a time, of 320,000 bytes each.
    let text = "
        input x: tensor[f64, 3], y: tensor[f64, 1]
        let a = exp(x + y)
        let b = exp(a / tensor.sum(a, (1, 2), keep=true))
        let c = exp(b / tensor.sum(b, (1, 2), keep=true))
        output out = tensor.sum(c / tensor.sum(c, (1, 2), keep=true), (1, 2))";
    needs(text, &[numbers(&[2, 200, 1]), numbers(&[200])], 2 * 320_000 + 8 + 16);
    // Rows of 2,880,000 bytes, of which there are those of one step at a time, and products of 4,800.
    let text = "
        input x: tensor[f64, 3], y: tensor[f64, 1]
        let z = exp(x + y)
        let first = tensor.sum(z / tensor.sum(z, (1, 2), keep=true), (1, 2))
        let w = exp(x * tensor.sum(first) + y)
        output out = tensor.sum(w / tensor.sum(w, (1, 2), keep=true), (1, 2))";
    needs(text, &[numbers(&[2, 600, 1]), numbers(&[600])], 2_880_000 + 4_800 + 8 + 8 + 8 + 16);
    // Nor has a plan that is kept any of it: the executor has room for several.
    let executor = compiled(text, &limited(3_200_000));
    for extent in 601..606 {
        run(&executor, &[numbers(&[2, extent, 1]), numbers(&[extent])]).expect("sums");
    }
    assert_eq!(executor.plan_counters().kept, 5);
}

fn integers(extents: &[usize]) -> Tensor {
    let count: usize = extents.iter().product();
    Tensor::new(extents, (0..count as i64).collect()).expect("a tensor")
}

#[test]
fn what_is_taken_of_large_views_makes_no_lists() {
    // A view of a tera, of which nothing is taken.
    let nothing = "
        input x: tensor[f64, 3], i: tensor[i64, 1]
        let w = tensor.broadcast(x, (1000000, 1000000, 1))
        output y = tensor.take(w, i, 2)";
    for made in each_way(&compiled(nothing, &limited(8)), 1, &[numbers(&[1, 1, 1]), integers(&[0])]) {
        assert_eq!(made.expect("nothing")[0].extents(), [1_000_000, 1_000_000, 0]);
    }
    let rows = "
        input x: tensor[f64, 3], i: tensor[i64, 1]
        let w = tensor.broadcast(x, (1000000, 1000000, 1, 0))
        output y = tensor.take(w, i, 2)";
    for made in each_way(&compiled(rows, &limited(8)), 1, &[numbers(&[1, 1, 0]), integers(&[1])]) {
        assert_eq!(made.expect("nothing")[0].extents(), [1_000_000, 1_000_000, 1, 0]);
    }
    // Elements that are taken a million times are added to as often.
    let many = "
        input w: tensor[f64, 2], i: tensor[i64, 1]
        output g = tensor.grad(tensor.sum(tensor.take(w, tensor.broadcast(i, (500, 2000, 2)))), w)";
    let inputs = [numbers(&[5, 1]), integers(&[2])];
    let executor = compiled(many, &limited(1 << 30));
    for made in [run(&executor, &inputs), executor.run_reference(&inputs)] {
        assert_eq!(made.expect("a gradient")[0].to_vec::<f64>().expect("floats"), [1e6, 1e6, 0.0, 0.0, 0.0]);
    }
    // What is outside is found, in however many places, and where nothing is taken too.
    let outside = "
        input w: tensor[f64, 2], i: tensor[i32, 2]
        output y = tensor.take(w, tensor.broadcast(i, (1000000, 1000000, 1, 3)), 1)";
    let indices = Tensor::new(&[1, 3], vec![0, 1, 2]).expect("a tensor");
    let executor = compiled(outside, &limited(1 << 20));
    let error = run(&executor, &[numbers(&[0, 2]), indices]).expect_err("outside");
    assert_eq!(
        (kind_of(&error), message_of(&error)),
        (TensorErrorKind::Index, "index 2 is not within an axis of extent 2".to_owned())
    );
}

#[test]
fn copies_of_operands_are_limited() {
    // Both are copied into another order, 57,600 bytes each.
    let text = r#"
        input x: tensor[f64, 3], y: tensor[f64, 3]
        let a = tensor.broadcast(x, (2, 60, 60))
        let b = tensor.broadcast(y, (60, 60, 2))
        output c("i,j") = a("i,p,q") * b("p,q,j")"#;
    let inputs = [numbers(&[1, 60, 1]), numbers(&[1, 60, 2])];
    needs(text, &inputs, 2 * 57_600 + 32);
    let labels = Labels { operands: vec![[0, 2, 3][..].into(), [2, 3, 1][..].into()], output: [0, 1][..].into() };
    let wide = [inputs[0].broadcast_to(&[2, 60, 60]), inputs[1].broadcast_to(&[60, 60, 2])].map(Result::unwrap);
    for (most, is_allowed) in [(2 * 57_600 + 32, true), (2 * 57_600 + 31, false)] {
        let made = Evaluator::new(&limited(most)).contract(&labels, [&wide[0], &wide[1]], &[2, 2]);
        assert_eq!(
            made.map_err(|error| error.tensor_kind().expect("of tensors")).err(),
            (!is_allowed).then_some(TensorErrorKind::Limit)
        );
    }
}

/// A counter that ends an evaluation when it has checked for cancellation a given number of times.
struct Ending(AtomicUsize);

impl Ending {
    fn go_on(&self) -> Result<(), Error> {
        let left = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
        left.map(drop).map_err(|_| Error::tensors(TensorErrorKind::Cancelled, "it was asked often enough"))
    }
}

/// Runs the plan of a node, and asserts that the run ends after `asked` checks for cancellation.
fn ends(graph: &TensorGraph, node: TensorNodeId, inputs: &[Tensor], (on, asked): (&Evaluator, usize)) {
    let Rewritten { graph, outputs, .. } = Rewriter::default().rewrite(graph, &[node], &on.host()).expect("a graph");
    let ending = Ending(asked.into());
    let go_on = || ending.go_on();
    let host = on.host().asking(&go_on);
    let plan = Plan::of(&graph, &outputs);
    let run = |mut bound: BoundPlan| bound.run(inputs, &host, &mut ProductCounters::default());
    let error = BoundPlan::of(&plan, &graph, inputs, &host).and_then(run).expect_err("it ends");
    assert_eq!(
        (error.tensor_kind().expect("of tensors"), ending.0.load(Ordering::Relaxed)),
        (TensorErrorKind::Cancelled, 0),
        "{}",
        plan.listing(&graph)
    );
}

#[test]
fn products_ask_whether_to_go_on() {
    long_products(Scalar::Float64);
}

#[test]
fn products_of_integers_ask_whether_to_go_on() {
    long_products(Scalar::Int32);
}

fn long_products(scalar: Scalar) {
    // Years of steps, of tensors of a few elements.
    const LONG: usize = 1 << 45;
    let products = [
        // One line, and lines of several sums.
        ("ij,ij->", [0, 0], [1, 1], [30_000_000, 30_000_000], [1, 1], [1, 1]),
        ("ij,ij->j", [0, 1], [1, 7], [LONG, 7], [1, 7], [LONG, 7]),
        ("ij,ij->i", [0, 1], [7, 1], [7, LONG], [7, 1], [7, LONG]),
        // Lines that are added, each times a number.
        ("ij,ik->jk", [0, 1], [1, 9], [LONG, 9], [1, 1], [LONG, 1]),
    ];
    for (spec, factors, own, wide, other, other_wide) in products {
        let mut g = TensorGraph::standard();
        let [a, b] = [(own, wide), (other, other_wide)].map(|(extents, wide)| {
            let leaf = g.leaf("", scalar, &extents).expect("a leaf");
            g.broadcast(leaf, &wide).expect("a view")
        });
        let product = g.einsum(spec, &factors.map(|factor| [a, b][factor])).expect("a product");
        let tensor = |extents: &[usize]| {
            let ones = Tensor::new(extents, vec![1.0; extents.iter().product()]).expect("a tensor");
            if scalar == Scalar::Float64 {
                ones
            } else {
                Tensor::new(extents, vec![1; ones.layout().len()]).expect("a tensor")
            }
        };
        let inputs = [tensor(&own), tensor(&other)];
        for options in [limited(1 << 20), limited(1 << 20).reference_order(true)] {
            ends(&g, product, &inputs, (&Evaluator::new(&options), 6));
        }
    }
}

#[test]
fn the_reference_asks_whether_to_go_on() {
    let mut g = TensorGraph::standard();
    let x = g.leaf("x", Scalar::Float64, &[1, 3]).expect("a leaf");
    let i = g.leaf("i", Scalar::Int64, &[1]).expect("a leaf");
    let wide = g.broadcast(x, &[1 << 45, 3]).expect("a view");
    let many = g.broadcast(i, &[1 << 45]).expect("a view");
    let taken = g.take(x, many, 1).expect("elements");
    let sum = g.reduce(Reduction::Sum, taken, &[0, 1]).expect("a sum");
    let gradient = g.gradients(sum, &[x]).expect("a gradient")[0];
    let product = g.einsum("ij,ij->j", &[wide, wide]).expect("a product");
    let largest = g.reduce(Reduction::Max, wide, &[0]).expect("a reduction");
    let on = Evaluator::new(&limited(1 << 20));
    for output in [product, largest, gradient] {
        let ending = Ending(20.into());
        let go_on = || ending.go_on();
        let inputs = [numbers(&[1, 3]), integers(&[1])];
        let error = cembra_tensor::evaluate(&g, &[output], &inputs, &on.host().asking(&go_on)).expect_err("it ends");
        assert_eq!(
            (error.tensor_kind().expect("of tensors"), ending.0.load(Ordering::Relaxed)),
            (TensorErrorKind::Cancelled, 0),
            "{output:?}"
        );
    }
}

#[test]
fn sums_that_stay_in_registers_ask_whether_to_go_on() {
    let mut g = TensorGraph::standard();
    let [x, y] = [&[1, 1, 8][..], &[100_000]].map(|extents| g.leaf("", Scalar::Float64, extents).expect("a leaf"));
    let a = g.broadcast(x, &[10_000, 100_000, 8]).expect("a view");
    let b = g.broadcast(y, &[10_000, 100_000]).expect("a view");
    let sums = g.einsum("bij,bi->bj", &[a, b]).expect("a product");
    ends(&g, sums, &[numbers(&[1, 1, 8]), numbers(&[100_000])], (&Evaluator::new(&limited(1 << 20)), 20));
}

#[test]
fn what_is_taken_asks_whether_to_go_on() {
    let mut g = TensorGraph::standard();
    let w = g.leaf("w", Scalar::Float64, &[5]).expect("a leaf");
    let i = g.leaf("i", Scalar::Int64, &[1]).expect("a leaf");
    let many = g.broadcast(i, &[1_000_000, 1_000_000]).expect("a view");
    let taken = g.take(w, many, 0).expect("elements");
    let sum = g.reduce(Reduction::Sum, taken, &[0, 1]).expect("a sum");
    let gradient = g.gradients(sum, &[w]).expect("a gradient")[0];
    ends(&g, gradient, &[numbers(&[5]), integers(&[1])], (&Evaluator::new(&limited(1 << 20)), 20));
}

/// A plan that was prepared under a higher limit fails in a run with a lower limit. Other sessions can still use the
/// plan.
#[test]
fn limits_of_a_run_hold_for_plans_that_are_bound() {
    let text = "
        input x: tensor[f64, 1]
        let y = exp(x + x)
        output out = tensor.sum(y * y / tensor.sum(y))
        output rest = y";
    let within = |array_bytes: u64| RunOptions::new().limits(Limits::default().array_bytes(array_bytes));
    let x = [numbers(&[1000])];
    for threads in [1, 3] {
        let executor = compiled(text, &limited(1 << 30).min_parallel_elements(100));
        let [mut session, mut of_values, mut others] = [(); 3].map(|()| executor.session());
        let expected = others.run_tensors(&x).expect("it has room").to_vec();
        for _ in 0..2 {
            for (options, has_room) in [(within(1 << 20), true), (within(7999), false), (RunOptions::new(), true)] {
                let options = options.threads(threads);
                let mut new = executor.session();
                for session in [&mut new, &mut session, &mut of_values] {
                    session.set_run_options(&options);
                }
                let made = [
                    new.run_tensors(&x).map(<[Tensor]>::to_vec),
                    session.run_tensors(&x).map(<[Tensor]>::to_vec),
                    on_values(&mut of_values, &x),
                ];
                for made in made {
                    match made {
                        Ok(made) => {
                            assert!(
                                has_room
                                    && made.len() == expected.len()
                                    && made.iter().zip(&expected).all(|(made, expected)| same_bits(made, expected))
                            );
                        }
                        Err(error) => {
                            assert_eq!((has_room, kind_of(&error)), (false, TensorErrorKind::Limit), "{error}");
                        }
                    }
                }
                assert!(run(&executor, &x).is_ok() && others.run_tensors(&x).is_ok());
            }
        }
        // A session is ended, too.
        let token = Cancellation::new();
        token.cancel();
        session.set_run_options(&RunOptions::new().cancellation(token));
        assert_eq!(kind_of(&session.run_tensors(&x).unwrap_err()), TensorErrorKind::Cancelled);
    }
}

/// A sum of 10^18 elements of a broadcast view, which takes no memory, ends at the time limit, on any number of
/// threads.
#[test]
fn sums_of_views_end_when_their_time_is_over() {
    let text = "input x: tensor[f64, 1]; output y = tensor.sum(exp(tensor.broadcast(x, (1000000, 1000000, 1000000))))";
    let executor = Model::parse(text).and_then(|model| model.compile(&Options::default())).expect("a model");
    for threads in [1, 2, 3] {
        let mut session = executor.session();
        session.set_run_options(&RunOptions::new().time_limit(Duration::from_millis(20)).threads(threads));
        let error = session.run_tensors(&[Tensor::scalar(0.5).reshaped(&[1]).expect("a tensor")]).expect_err("no time");
        assert_eq!((error.code(), threads), ("deadline", threads));
    }
}

/// If a run is cancelled while it plans, the executor does not keep the plan, so the next session plans again.
#[test]
fn planning_ends_with_its_run() {
    let text = "input x: tensor[f64, 1]; output y = tensor.sum(exp(x) + x)";
    let executor = Model::parse(text).and_then(|model| model.compile(&Options::default())).expect("a model");
    let token = Cancellation::new();
    token.cancel();
    let x = [Tensor::new(&[2], vec![0.0, 1.0]).expect("a tensor")];
    let (mut ended, mut other) = (executor.session(), executor.session());
    ended.set_run_options(&RunOptions::new().cancellation(token));
    for _ in 0..2 {
        assert_eq!(ended.run_tensors(&x).expect_err("it is cancelled").code(), "cancelled");
        assert_eq!(executor.plan_counters().kept, 0);
    }
    let made = other.run_tensors(&x).expect("a sum")[0].get::<f64>(&[]).expect("an element");
    assert_eq!((made, executor.plan_counters().kept), (2.0 + std::f64::consts::E, 1));
}

/// A lower limit in a later run also holds for a plan that writes over a tensor and was prepared under a higher limit.
#[test]
fn lower_limits_hold_for_values_that_are_written_over_tensors() {
    let text = "input x: tensor[f64, 2]; let r(\"i\") = x(\"i,k\") * x(\"i,k\"); x(\"i,j\") = x(\"i,j\") * r(\"i\")";
    let mut session =
        Model::parse(text).and_then(|model| model.compile(&Options::default())).expect("a model").session();
    let mut inputs = vec![Tensor::new(&[8, 8], vec![0.5; 64]).expect("a tensor")];
    assert_eq!(session.run_over(&mut inputs, 0).expect("a value"), cembra::tensor::OutputMemory::InPlace);
    let before = inputs[0].to_vec::<f64>().expect("floats");
    assert_eq!(before, [1.0; 64]);
    // The sums of rows are in memory of their own.
    session.set_run_options(&RunOptions::new().limits(Limits::default().array_bytes(63)));
    assert_eq!(session.run_over(&mut inputs, 0).expect_err("a limit").code(), "limit");
    assert_eq!(inputs[0].to_vec::<f64>().expect("floats"), before);
}
