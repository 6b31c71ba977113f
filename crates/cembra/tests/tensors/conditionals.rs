//! Tests conditionals between tensors with a single boolean as condition: the branch that is not chosen is not
//! computed, so it cannot fail.

use crate::compiled::kind_of;
use cembra::Error;
use cembra::tensor::{
    CompileGraph, Reader, Reduction, Tensor, TensorErrorKind, TensorGraph, TensorMut, TensorNodeId, TensorOp,
    TensorType,
};
use cembra::{Backend, Limits, Model, Options, Scalar, ScalarValue, Value};
use cembra_engine::Evaluator;
use cembra_tensor::Plan;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

fn backends() -> Vec<Options> {
    let all = [Options::default(), Options::default().backend(Backend::Native)];
    let all = all.into_iter().flat_map(|options| [options.clone(), options.reference_order(true)]);
    all.chain([Options::default().backend(Backend::Interpreter)]).collect()
}

fn floats(extents: &[usize], elements: &[f64]) -> Value {
    Tensor::new(extents, elements.to_vec()).expect("a tensor").into()
}

fn integers(elements: &[i64]) -> Value {
    Tensor::new(&[elements.len()], elements.to_vec()).expect("a tensor").into()
}

/// The inputs of a run, and its outputs or the kind of its error.
type Row<'r> = (&'r [Value], Result<&'r [Value], TensorErrorKind>);

/// Runs a model on `rows`, one after the other, in one session per backend, and compares the results.
fn check(text: &str, rows: &[Row<'_>]) {
    for options in backends() {
        let model = Model::parse(text).unwrap_or_else(|error| panic!("{text}\n{}", error.render(text)));
        let executor = model.compile(&options).unwrap_or_else(|error| panic!("{text}\n{}", error.render(text)));
        let mut session = executor.session();
        session.set_threads(2);
        // Each row twice, so that it follows itself and others.
        for (inputs, expected) in rows.iter().chain(rows).chain(rows.iter().rev()) {
            let made = session.evaluate(inputs);
            match (made, expected) {
                (Ok(made), Ok(expected)) => assert_eq!(made, *expected, "{text} of {inputs:?}"),
                (Err(error), Err(expected)) => assert_eq!(kind_of(&error), *expected, "{text} of {inputs:?}"),
                (made, expected) => panic!("{text} of {inputs:?}: {made:?}, not {expected:?}"),
            }
        }
    }
}

#[test]
fn an_index_outside_of_its_axis_fails_only_where_it_is_chosen() {
    let text = "input c: bool, x: tensor[f64, 1], at: tensor[i64, 1]
        output y = if c then tensor.take(x, at) else x[0:2] * 10.0";
    let text = &text.replace("x[0:2]", "tensor.slice(x, 0, 0, 2)");
    let (x, good, bad) = (floats(&[3], &[1.0, 2.0, 3.0]), integers(&[2, 0]), integers(&[0, 3]));
    check(
        text,
        &[
            (&[true.into(), x.clone(), good.clone()], Ok(&[floats(&[2], &[3.0, 1.0])])),
            (&[false.into(), x.clone(), good], Ok(&[floats(&[2], &[10.0, 20.0])])),
            (&[false.into(), x.clone(), bad.clone()], Ok(&[floats(&[2], &[10.0, 20.0])])),
            (&[true.into(), x, bad], Err(TensorErrorKind::Index)),
        ],
    );
}

#[test]
fn a_quotient_by_zero_fails_only_where_it_is_chosen() {
    let text = "input level: f64, a: tensor[i64, 1], b: tensor[i64, 1]
        let quotient = a // b
        output y = tensor.sum(if level > 1.0 then quotient + 1 else a - b)
        output z = if level > 1.0 then quotient else b";
    let (a, b, zero) = (integers(&[7, 9]), integers(&[2, 3]), integers(&[2, 0]));
    check(
        text,
        &[
            (&[2.0.into(), a.clone(), b.clone()], Ok(&[8_i64.into(), integers(&[3, 3])])),
            (&[0.0.into(), a.clone(), b], Ok(&[11_i64.into(), integers(&[2, 3])])),
            (&[0.0.into(), a.clone(), zero.clone()], Ok(&[14_i64.into(), integers(&[2, 0])])),
            (&[2.0.into(), a, zero], Err(TensorErrorKind::Evaluation)),
        ],
    );
}

#[test]
fn steps_of_a_branch_are_not_joined_with_steps_outside_of_it() {
    // A sum with what follows it, sums that could share a loop, and a sum computed for the same rows as what reads it.
    let text = "input level: f64, a: tensor[i64, 2], b: tensor[i64, 2], d: tensor[i64, 1]
        let sums = tensor.sum(a // b, 1)
        output followed = if level > 1.0 then sums else d
        output shared = tensor.sum(a, 1)
        output rows = if level > 1.0 then a - tensor.reshape(tensor.sum(a % b, 1), (-1, 1)) else b";
    let matrix = |elements: [i64; 4]| -> Value { Tensor::new(&[2, 2], elements.to_vec()).expect("a tensor").into() };
    let (a, d) = (matrix([7, 8, 9, 10]), integers(&[1, 2]));
    let (twos, zero) = (matrix([2, 2, 2, 2]), matrix([2, 0, 2, 2]));
    let sums = integers(&[15, 19]);
    check(
        text,
        &[
            (
                &[2.0.into(), a.clone(), twos.clone(), d.clone()],
                Ok(&[integers(&[7, 9]), sums.clone(), matrix([6, 7, 8, 9])]),
            ),
            (&[0.0.into(), a.clone(), twos.clone(), d.clone()], Ok(&[d.clone(), sums.clone(), twos])),
            (&[0.0.into(), a.clone(), zero.clone(), d.clone()], Ok(&[d.clone(), sums, zero.clone()])),
            (&[2.0.into(), a, zero, d], Err(TensorErrorKind::Evaluation)),
        ],
    );
}

#[test]
fn operands_of_a_branch_that_is_not_chosen_give_their_memory_back() {
    // Eight tensors of 80,000 bytes are read by a branch that is never chosen, and eight are made after it: not all at once.
    let first: String = (0..8).map(|n| format!("let t{n} = x * {n}.0; output s{n} = tensor.sum(t{n})\n")).collect();
    let branch = (0..8).map(|n| format!("t{n}")).collect::<Vec<String>>().join(" + ");
    let after: String = (1..8).map(|n| format!("let u{n} = u{} + {n}.0\n", n - 1)).collect();
    let text = format!(
        "input c: tensor[bool, 1], x: tensor[f64, 1]\n{first}
        let u0 = if tensor.any(c) then {branch} else x\n{after}output y = u7 + u6 + u5 + u4 + u3 + u2 + u1"
    );
    let model = Model::parse(&text).expect("a model");
    let limits = Limits::default().array_bytes(12 * 80_000);
    let executor = model.compile(&Options::default().limits(limits)).expect("an executor");
    let c = Tensor::new(&[2], vec![false, false]).expect("a tensor");
    let x = Tensor::new(&[10_000], vec![1.0; 10_000]).expect("a tensor");
    let made = executor.run_reference(&[c, x]).expect("values");
    // u1 to u7 are 1 + 1, 1 + 1 + 2, ..
    assert_eq!(made.last().map(|y| y.to_vec::<f64>().expect("numbers")), Some(vec![7.0 + 84.0; 10_000]));
}

#[test]
fn conditionals_stand_in_branches_of_others() {
    let text = "input c: bool, d: bool, a: tensor[i64, 1], b: tensor[i64, 1]
        let inner = if d then a // b else a % (b - 1)
        output y = if c then inner else a";
    let (a, twos, ones, zeros) = (integers(&[7, 9]), integers(&[2, 2]), integers(&[1, 1]), integers(&[0, 0]));
    let row = |c: bool, d: bool, b: &Value| [c.into(), d.into(), a.clone(), b.clone()];
    let fails = || Err(TensorErrorKind::Evaluation);
    check(
        text,
        &[
            (&row(true, true, &twos), Ok(&[integers(&[3, 4])])),
            (&row(true, false, &twos), Ok(&[integers(&[0, 0])])),
            (&row(true, true, &zeros), fails()),
            (&row(true, false, &ones), fails()),
            (&row(true, false, &zeros), Ok(&[integers(&[0, 0])])),
            (&row(false, true, &zeros), Ok(std::slice::from_ref(&a))),
            (&row(false, false, &ones), Ok(std::slice::from_ref(&a))),
        ],
    );
}

#[test]
fn a_condition_may_be_computed_of_what_a_branch_reads() {
    // The rows of the matrix are summed for the condition, and again where it holds; a second sum shares a loop with the first.
    let text = "input x: tensor[f64, 2], at: tensor[i64, 1]
        let rows = tensor.sum(x, 1)
        let small = tensor.max(rows) < 10.0
        let normal = if small then tensor.softmax(tensor.take(x, at), 1) else x
        output y = tensor.sum(normal, 1) + tensor.max(x, 1)
        output most = tensor.max(rows)";
    let (x, large) = (floats(&[2, 2], &[0.0, 0.0, 1.0, 1.0]), floats(&[2, 2], &[8.0, 8.0, 1.0, 1.0]));
    let (good, bad) = (integers(&[1, 1]), integers(&[1, 9]));
    check(
        text,
        &[
            (&[x.clone(), good.clone()], Ok(&[floats(&[2], &[1.0, 2.0]), 2.0.into()])),
            (&[x, bad.clone()], Err(TensorErrorKind::Index)),
            (&[large.clone(), good], Ok(&[floats(&[2], &[24.0, 3.0]), 16.0.into()])),
            (&[large, bad], Ok(&[floats(&[2], &[24.0, 3.0]), 16.0.into()])),
        ],
    );
}

/// A user-defined operation that doubles elements and counts its executions.
struct Doubling(Arc<AtomicUsize>);

impl TensorOp for Doubling {
    fn name(&self) -> &'static str {
        "doubling"
    }

    fn identity(&self) -> Option<Vec<u8>> {
        Some(Vec::new())
    }

    fn shape(&self, inputs: &[TensorType]) -> Result<TensorType, Error> {
        Ok(inputs[0].clone())
    }

    fn execute(&self, inputs: &[Tensor], output: &mut TensorMut<'_>) -> Result<(), Error> {
        self.0.fetch_add(1, Ordering::Relaxed);
        let from = inputs[0].to_vec::<f64>()?;
        output.as_mut_slice::<f64>()?.iter_mut().zip(from).for_each(|(to, from)| *to = 2.0 * from);
        Ok(())
    }
}

/// Returns the graph of `if any(c) then sum(doubled x) else x`, and the counter of the doubling operation.
fn counted() -> Result<(TensorGraph, TensorNodeId, Arc<AtomicUsize>), Error> {
    let count = Arc::new(AtomicUsize::new(0));
    let mut g = TensorGraph::standard();
    let c = g.leaf("c", Scalar::Boolean, &[2])?;
    let x = g.leaf("x", Scalar::Float64, &[3])?;
    let condition = g.reduce(Reduction::Any, c, &[0])?;
    let doubled = g.custom(Arc::new(Doubling(count.clone())), &[x])?;
    let sum = g.reduce(Reduction::Sum, doubled, &[0])?;
    let chosen = g.apply("tensor.where", &[condition, sum, x])?;
    Ok((g, chosen, count))
}

#[test]
fn what_is_not_chosen_is_not_computed() -> Result<(), Error> {
    let (g, chosen, count) = counted()?;
    let inputs = |c: bool| -> Result<[Tensor; 2], Error> {
        Ok([Tensor::new(&[2], vec![false, c])?, Tensor::new(&[3], vec![1.0, 2.0, 3.0])?])
    };
    for options in backends() {
        let executor = g.compile(&[chosen], &options).expect("an executor");
        let mut session = executor.session();
        for (c, expected, times) in [(false, [1.0, 2.0, 3.0], 0), (true, [12.0; 3], 1), (false, [1.0, 2.0, 3.0], 0)] {
            let before = count.load(Ordering::Relaxed);
            let made = session.run_tensors(&inputs(c)?).expect("a value")[0].to_vec::<f64>()?;
            assert_eq!((&made[..], count.load(Ordering::Relaxed) - before), (&expected[..], times), "{options:?}");
        }
        let evaluator = Evaluator::new(&options);
        for reader in [Reader::new, Reader::once] {
            for (c, expected, times) in [(false, 2.0, 0), (true, 12.0, 1)] {
                let before = count.load(Ordering::Relaxed);
                let element = reader(&g, chosen, &inputs(c)?, &evaluator)?.value(&[1])?;
                assert_eq!((element, count.load(Ordering::Relaxed) - before), (ScalarValue::Float64(expected), times));
            }
        }
    }
    Ok(())
}

#[test]
fn a_listing_says_under_which_conditions_a_step_is_run() -> Result<(), Error> {
    let (g, chosen, _) = counted()?;
    let listing = Plan::of(&g, &[chosen]).listing(&g).to_string();
    let guarded = listing.lines().filter(|line| line.contains("only if %2")).count();
    assert_eq!(guarded, 2, "{listing}");
    Ok(())
}

#[test]
fn reductions_of_a_branch_are_skipped_though_steps_outside_of_it_could_take_them_in() -> Result<(), Error> {
    let mut g = TensorGraph::standard();
    let c = g.leaf("c", Scalar::Boolean, &[2])?;
    let [x, y] = [g.leaf("x", Scalar::Float64, &[2, 3])?, g.leaf("y", Scalar::Float64, &[2])?];
    let condition = g.reduce(Reduction::Any, c, &[0])?;
    // A conditional could follow the sum in its step, and the largest elements could share the loop of the sum.
    let doubled = g.custom(Arc::new(Doubling(Arc::default())), &[x])?;
    let sum = g.reduce(Reduction::Sum, doubled, &[1])?;
    let chosen = g.apply("tensor.where", &[condition, sum, y])?;
    let most = g.reduce(Reduction::Max, doubled, &[1])?;
    let listing = Plan::of(&g, &[chosen, most]).listing(&g).to_string();
    let guarded: Vec<bool> =
        listing.lines().filter(|line| line.contains("reduce")).map(|line| line.contains("only if")).collect();
    assert_eq!(guarded.iter().filter(|is_guarded| **is_guarded).count(), 1, "{listing}");
    assert_eq!(guarded.len(), 3, "{listing}");
    Ok(())
}

#[test]
fn a_branch_too_long_for_one_expression_is_skipped_by_a_condition_that_nothing_else_reads() -> Result<(), Error> {
    let mut g = TensorGraph::standard();
    let c = g.leaf("c", Scalar::Boolean, &[2])?;
    let x = g.leaf("x", Scalar::Float64, &[])?;
    let condition = g.reduce(Reduction::All, c, &[0])?;
    let mut long = x;
    for _ in 0..600 {
        long = g.apply("sin", &[long])?;
    }
    let chosen = g.apply("tensor.where", &[condition, long, x])?;
    let expected = (0..600).fold(0.5_f64, |x, _| x.sin());
    for options in backends() {
        let executor = g.compile(&[chosen], &options).expect("an executor");
        let mut session = executor.session();
        for (c, wanted) in [(false, 0.5), (true, expected), (false, 0.5)] {
            let inputs = [Tensor::new(&[2], vec![true, c])?, Tensor::new(&[], vec![0.5])?];
            let made = session.run_tensors(&inputs).expect("a value")[0].to_vec::<f64>()?;
            assert!((made[0] - wanted).abs() < 1e-12, "{made:?}, not {wanted}");
        }
    }
    Ok(())
}
