//! Tests plans of one step on vectors: an expression per element, or its sum. Sessions have a fast path for these
//! plans, which is run on inputs of all layouts, on inputs that fail, and on inputs that differ from those of the
//! previous run.

use crate::compiled::run;
use cembra::explain::RowPlayer;
use cembra::tensor::{CompileGraph, Element, Reduction, Slice, Tensor, TensorGraph, TensorNodeId, same_bits};
use cembra::{Executor, Options, Scalar, Session};

/// Compiles a node, and returns the executor with a session.
fn compiled(graph: &TensorGraph, output: TensorNodeId, options: &Options) -> (Executor, Session) {
    let executor = graph.compile(&[output], options).expect("an executor");
    let session = executor.session();
    (executor, session)
}

/// Returns a graph with `(a * b + c) * a - s` and its sum, for vectors of `length` elements and a number `s`.
fn graph(scalar: Scalar, length: usize) -> (TensorGraph, [TensorNodeId; 2]) {
    let mut g = TensorGraph::standard();
    let [a, b, c] = ["a", "b", "c"].map(|name| g.leaf(name, scalar, &[length]).expect("a leaf"));
    let s = g.leaf("s", scalar, &[]).expect("a leaf");
    let product = g.apply("math.multiply", &[a, b]).expect("a node");
    let sum = g.apply("math.add", &[product, c]).expect("a node");
    let scaled = g.apply("math.multiply", &[sum, a]).expect("a node");
    let output = g.apply("math.subtract", &[scaled, s]).expect("a node");
    let total = g.reduce(Reduction::Sum, output, &[0]).expect("a node");
    (g, [output, total])
}

/// Returns vectors with the elements `x` in various layouts: in own memory, as a part of a larger tensor, reversed, and
/// with the stride 3. The last one repeats the first element.
fn ways<T: Element>(x: &[T]) -> Vec<Tensor> {
    let count = x.len();
    // There is so much around that whoever begins elsewhere, or goes another way, reads that.
    let within = |from: usize, step: isize| {
        let mut all = vec![T::from_bits(3); 8 * count + 8];
        let place = |at: usize| (from + 4 * count).wrapping_add_signed(step * at.cast_signed());
        x.iter().enumerate().for_each(|(at, element)| all[place(at)] = *element);
        let all = Tensor::new(&[all.len()], all).expect("a tensor");
        all.sliced(&[Slice { start: place(0), step, count }]).expect("a view")
    };
    let own = Tensor::new(&[count], x.to_vec()).expect("a tensor");
    let one = within(0, 1).sliced(&[Slice { start: 0, step: 1, count: 1 }]).expect("a view");
    let shared = one.broadcast_to(&[count]).expect("a view");
    vec![own, within(5, 1), within(0, -1), within(2, 3), shared]
}

fn check<T: Element>(number: impl Fn(usize) -> T) {
    for length in [1, 63, 64, 65, 300, 1000] {
        let (g, outputs) = graph(T::SCALAR, length);
        let numbers = |seed: usize| -> Vec<T> { (0..length).map(|at| number(at * 31 + seed * 17)).collect() };
        for player in [RowPlayer::Best, RowPlayer::Lanes128, RowPlayer::Interpreter] {
            for output in outputs {
                let (executor, mut session) = compiled(&g, output, &Options::default().row_player(player));
                let mut kept: Vec<(Tensor, Tensor)> = Vec::new();
                let [a, b, c] = [1, 2, 3].map(|seed| ways(&numbers(seed)));
                // Each way twice, other elements in the same way, and ways that have nothing to do with each other.
                let pairs = (0..a.len()).flat_map(|one| [0, 1, 2, 3, 4, 3, 2, 1, 0].map(|other| [(one, other); 2]));
                for (seed, (one, other)) in pairs.flatten().enumerate() {
                    let s = Tensor::scalar(number(seed));
                    let inputs = [a[one].clone(), b[other].clone(), c[one].clone(), s];
                    let expected = executor.run_reference(&inputs).expect("values").remove(0);
                    let made = &session.run_tensors(&inputs).expect("values")[0];
                    let name = player.name();
                    assert!(same_bits(&expected, made), "{length} by {name}: {made:?} is not {expected:?}");
                    if seed % 4 == 1 {
                        kept.push((expected, made.clone()));
                    }
                }
                // What somebody has kept was not written to.
                assert!(kept.iter().all(|(expected, made)| same_bits(expected, made)), "{kept:?}");
            }
        }
    }
}

#[test]
fn lines_that_lie_in_any_way_are_mapped_and_summed() {
    check(|at| (at as f64 * 0.37).sin() * 10_f64.powi((at % 7) as i32 - 3));
    check(|at| (at as f32 * 0.37).sin() * 10_f32.powi((at % 7) as i32 - 3));
    check(|at| (at as i64).wrapping_mul(0x1234_5678_9abc_def1));
}

#[test]
fn a_line_of_other_inputs_is_no_line_of_these() {
    let (g, [output, total]) = graph(Scalar::Float64, 100);
    let vector = |count: usize| Tensor::new(&[count], vec![1.5; count]).expect("a tensor");
    let s = Tensor::scalar(2.0);
    for output in [output, total] {
        let (_, mut session) = compiled(&g, output, &Options::default());
        let good = [vector(100), vector(100), vector(100), s.clone()];
        let expected = session.run_tensors(&good).expect("values").to_vec();
        let single = Tensor::new(&[100], vec![1.5_f32; 100]).expect("a tensor");
        let square = vector(100).reshaped(&[10, 10]).expect("a view");
        let bad = [
            vec![vector(100), vector(99), vector(100), s.clone()],
            vec![vector(100), vector(100), vector(101), s.clone()],
            vec![vector(100), single, vector(100), s.clone()],
            vec![square, vector(100), vector(100), s.clone()],
            vec![vector(100), vector(100), vector(100), vector(1)],
            vec![vector(100), vector(100), vector(100)],
            vec![],
        ];
        for inputs in bad {
            assert!(session.run_tensors(&inputs).is_err(), "{inputs:?}");
            let again = session.run_tensors(&good).expect("values");
            assert!(same_bits(&again[0], &expected[0]), "{again:?}");
        }
    }
}

#[test]
fn tensors_of_more_axes_are_lines_while_they_lie_so() {
    let mut g = TensorGraph::standard();
    let [a, b] = ["a", "b"].map(|name| g.leaf(name, Scalar::Float64, &[8, 16]).expect("a leaf"));
    let product = g.apply("math.multiply", &[a, b]).expect("a node");
    let total = g.reduce(Reduction::Sum, product, &[0, 1]).expect("a node");
    let matrix = |rows: usize, columns: usize, seed: usize| {
        let elements = (0..rows * columns).map(|at| ((at * 37 + seed) % 101) as f64 * 0.5).collect();
        Tensor::new(&[rows, columns], elements).expect("a tensor")
    };
    let (plain, other) = (matrix(8, 16, 1), matrix(8, 16, 2));
    let turned = matrix(16, 8, 3).transposed(&[1, 0]).expect("a view");
    let every = |step: isize| Slice { start: if step < 0 { 15 } else { 0 }, step, count: 16 };
    let wide = matrix(8, 40, 4).sliced(&[Slice::all(8), every(2)]).expect("a view");
    let back = matrix(8, 16, 5).sliced(&[Slice::all(8), every(-1)]).expect("a view");
    let row = matrix(1, 16, 6).broadcast_to(&[8, 16]).expect("a view");
    for output in [product, total] {
        let (executor, mut session) = compiled(&g, output, &Options::default());
        for x in [&plain, &turned, &wide, &back, &row, &other, &plain] {
            for inputs in [[x.clone(), other.clone()], [plain.clone(), x.clone()]] {
                let expected = executor.run_reference(&inputs).expect("values");
                for _ in 0..2 {
                    let made = session.run_tensors(&inputs).expect("values");
                    assert!(same_bits(&made[0], &expected[0]), "{x:?}: {made:?}");
                }
            }
        }
    }
}

#[test]
fn inputs_that_no_line_is_of_are_looked_at() {
    let mut g = TensorGraph::standard();
    let a = g.leaf("a", Scalar::Float64, &[64]).expect("a leaf");
    g.leaf("unused", Scalar::Float64, &[64]).expect("a leaf");
    let twice = g.apply("math.add", &[a, a]).expect("a node");
    let vector = |count: usize| Tensor::new(&[count], vec![1.5; count]).expect("a tensor");
    let single = Tensor::new(&[64], vec![1.5_f32; 64]).expect("a tensor");
    let (executor, mut session) = compiled(&g, twice, &Options::default());
    for (unused, is_fit) in
        [(vector(64), true), (single, false), (vector(64), true), (vector(65), false), (vector(64), true)]
    {
        let inputs = [vector(64), unused];
        let expected = run(&executor, &inputs).map_err(|error| error.to_string());
        let made = session.run_tensors(&inputs).map(<[Tensor]>::to_vec).map_err(|error| error.to_string());
        match (expected, made) {
            (Ok(expected), Ok(made)) => assert!(is_fit && same_bits(&made[0], &expected[0]), "{made:?}"),
            (expected, made) => assert_eq!((false, made.err()), (is_fit, expected.err())),
        }
    }
}

#[test]
fn a_line_that_fails_says_so_and_the_next_does_not() {
    let mut g = TensorGraph::standard();
    let [a, b] = ["a", "b"].map(|name| g.leaf(name, Scalar::Int64, &[1000]).expect("a leaf"));
    let quotient = g.apply("math.floordiv", &[a, b]).expect("a node");
    let (_, mut session) = compiled(&g, quotient, &Options::default());
    let counted = |first: i64| Tensor::new(&[1000], (first..first + 1000).collect()).expect("a tensor");
    for first in [1, 2, -500, 3, 4, -999, 0, 5, 6] {
        let made = session.run_tensors(&[counted(9), counted(first)]);
        if (first..first + 1000).contains(&0) {
            let error = made.expect_err("a division by zero");
            assert!(error.to_string().contains("zero"), "{error}");
            continue;
        }
        let quotients: Vec<i64> = (0..1000_i64).map(|at| (at + 9).div_euclid(at + first)).collect();
        assert_eq!(made.expect("values")[0].to_vec::<i64>().expect("integers"), quotients);
    }
}

#[test]
fn sines_that_lanes_leave_to_the_reference_are_right() {
    let mut g = TensorGraph::standard();
    let x = g.leaf("x", Scalar::Float64, &[1000]).expect("a leaf");
    let sine = g.apply("sin", &[x]).expect("a node");
    let total = g.reduce(Reduction::Sum, sine, &[0]).expect("a node");
    let best = Options::default();
    let lanes = Options::default().row_player(RowPlayer::Lanes128);
    for (options, output) in [(&best, sine), (&best, total), (&lanes, sine), (&lanes, total)] {
        let (executor, mut session) = compiled(&g, output, options);
        for scale in [1.0, 1.0, 1e300, 1.0, 1e12, f64::NAN, 1.0, 1.0] {
            let elements = (0..1000).map(|at| if at == 777 { scale } else { f64::from(at) * 0.01 }).collect();
            let input = [Tensor::new(&[1000], elements).expect("a tensor")];
            let expected = executor.run_reference(&input).expect("values");
            let made = session.run_tensors(&input).expect("values");
            assert!(same_bits(&made[0], &expected[0]), "{scale}: {made:?}");
        }
    }
}

#[test]
fn lines_of_parts_of_one_input_begin_where_these_do() {
    let mut g = TensorGraph::standard();
    let x = g.leaf("x", Scalar::Float64, &[700]).expect("a leaf");
    let [later, soon, last] =
        [3, 1, 400].map(|start| g.slice(x, &[Slice { start, step: 1, count: 300 }]).expect("a node"));
    let product = g.apply("math.multiply", &[later, soon]).expect("a node");
    let difference = g.apply("math.subtract", &[product, last]).expect("a node");
    let total = g.reduce(Reduction::Sum, difference, &[0]).expect("a node");
    for output in [difference, total] {
        let (executor, mut session) = compiled(&g, output, &Options::default());
        for seed in [1, 2, 3, 1] {
            let numbers: Vec<f64> = (0..700).map(|at| f64::from(at * seed % 101) * 0.1).collect();
            for x in ways(&numbers) {
                let expected = executor.run_reference(std::slice::from_ref(&x)).expect("values");
                for _ in 0..2 {
                    let made = session.run_tensors(std::slice::from_ref(&x)).expect("values");
                    assert!(same_bits(&made[0], &expected[0]), "{made:?}");
                }
            }
        }
    }
}

#[test]
fn lines_of_many_inputs_are_those_of_their_names() {
    [7, 8, 13].into_iter().for_each(lines_of_inputs);
}

fn lines_of_inputs(count: usize) {
    let mut g = TensorGraph::standard();
    let leaves: Vec<TensorNodeId> =
        (0..count).map(|at| g.leaf(&format!("v{at}"), Scalar::Float64, &[400]).expect("a leaf")).collect();
    // Each by a factor of its own.
    let mut sum = leaves[0];
    for leaf in &leaves[1..] {
        let tenfold = g.apply("math.add", &[sum, sum]).expect("a node");
        sum = g.apply("math.subtract", &[tenfold, *leaf]).expect("a node");
    }
    let (executor, mut session) = compiled(&g, sum, &Options::default());
    for seed in 0..3 {
        let vector = |leaf: usize| (0..400).map(|at| ((leaf * 1000 + at) * (seed + 1)) as f64 * 0.25).collect();
        let inputs: Vec<Tensor> = (0..count).map(|leaf| Tensor::new(&[400], vector(leaf)).expect("a tensor")).collect();
        let expected = executor.run_reference(&inputs).expect("values");
        let made = session.run_tensors(&inputs).expect("values");
        assert!(same_bits(&made[0], &expected[0]), "{made:?}");
    }
}
