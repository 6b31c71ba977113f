//! What plans make beside the values of their steps counts as these do, and what is no more does not.

use cembra::tensor::{ErrorKind, Evaluator, Tensor, TensorModel, same_bits};
use cembra::{Limits, Options};

fn limited(array_bytes: u64) -> Evaluator {
    Evaluator::new(&Options::default().limits(Limits { array_bytes, ..Limits::default() }))
}

/// What a model gives by a plan, by an executor and by sessions of both: of each the last outputs of three runs, or why there are none.
fn each_way(model: &TensorModel, on: &Evaluator, inputs: &[Tensor]) -> Vec<Result<Vec<Tensor>, ErrorKind>> {
    let extents: Vec<&[usize]> = inputs.iter().map(Tensor::extents).collect();
    let executor = model.executor(on);
    let mut all = Vec::new();
    match model.plan(on, &extents) {
        Ok(planned) => {
            let mut session = planned.session();
            all.push((0..3).map(|_| planned.run(inputs)).last().expect("a run").map_err(|error| error.kind()));
            let again = (0..3).map(|_| session.run(inputs).map(<[Tensor]>::to_vec)).last();
            all.push(again.expect("a run").map_err(|error| error.kind()));
        }
        Err(error) => all.push(Err(error.kind())),
    }
    let mut session = executor.session();
    all.push((0..3).map(|_| executor.run(inputs)).last().expect("a run").map_err(|error| error.kind()));
    let again = (0..3).map(|_| session.run(inputs).map(<[Tensor]>::to_vec)).last();
    all.push(again.expect("a run").map_err(|error| error.kind()));
    all
}

/// A model needs so many bytes, however it is run, and gives what the reference gives; with less it is refused.
fn needs(text: &str, named: &[(&str, Tensor)], most: u64) {
    let model = TensorModel::parse(text).expect("a model");
    let inputs: Vec<Tensor> = named.iter().map(|(_, tensor)| tensor.clone()).collect();
    let inputs = &inputs[..];
    let named = named.iter().map(|(name, tensor)| ((*name).to_owned(), tensor.clone())).collect();
    let expected = model.evaluate_unplanned(&limited(1 << 40), &named).expect("a value");
    for threads in [1, 3] {
        for made in each_way(&model, &limited(most).threads(threads).share(100), inputs) {
            let made = made.unwrap_or_else(|error| panic!("{text}: {error:?} with {threads} threads"));
            assert!(made.iter().zip(&expected).all(|(made, (_, expected))| same_bits(made, expected)), "{made:?}");
        }
        for made in each_way(&model, &limited(most - 1).threads(threads).share(100), inputs) {
            assert_eq!(made.expect_err(text), ErrorKind::Limit, "{text}, {threads} threads");
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
    needs(text, &[("x", numbers(&[2, 200, 1])), ("y", numbers(&[200]))], 320_000 + 8 + 16);
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
    needs(text, &[("x", numbers(&[2, 200, 1])), ("y", numbers(&[200]))], 2 * 320_000 + 8 + 16);
    // Rows of 2,880,000 bytes, of which there are those of one step at a time, and products of 4,800.
    let text = "
        input x: tensor[f64, 3], y: tensor[f64, 1]
        let z = exp(x + y)
        let first = tensor.sum(z / tensor.sum(z, (1, 2), keep=true), (1, 2))
        let w = exp(x * tensor.sum(first) + y)
        output out = tensor.sum(w / tensor.sum(w, (1, 2), keep=true), (1, 2))";
    needs(text, &[("x", numbers(&[2, 600, 1])), ("y", numbers(&[600]))], 2_880_000 + 4_800 + 8 + 8 + 8 + 16);
}
