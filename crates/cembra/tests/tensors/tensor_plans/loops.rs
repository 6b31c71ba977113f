//! Tests steps of plans that share a loop: steps over the same rows, and reductions over the same axes.

use super::{leaves, numbers, plan_of, planned};
use crate::compiled::run;
use cembra::tensor::{CompileGraph, PlanCounters, Reduction, Slice, Tensor, TensorGraph, TensorNodeId, same_bits};
use cembra::{Backend, Options, Scalar};
use cembra_tensor::Plan;
use std::slice::from_ref;

/// Returns the counters of the plan for the outputs that `build` makes, and asserts that results have the reference's
/// bits. The extents are so large that the rows are evaluated in several blocks.
fn by_rows(build: impl Fn(&mut TensorGraph, TensorNodeId) -> Vec<TensorNodeId>, extents: &[usize]) -> PlanCounters {
    let mut g = TensorGraph::standard();
    let [x] = leaves(&mut g, [extents]);
    let outputs = build(&mut g, x);
    planned(&g, &outputs)
}

#[test]
fn steps_over_the_same_rows_are_one() {
    // A strip has 2^15 elements: rows of a hundred, so that the last strip is shorter.
    let softmax = |g: &mut TensorGraph, x: TensorNodeId| vec![g.softmax(x, g.extents(x).len() - 1).unwrap()];
    for extents in [&[1000, 100][..], &[1, 70_000], &[7, 1, 30], &[3, 200, 100], &[40_000, 2], &[5, 1]] {
        let counters = by_rows(softmax, extents);
        assert_eq!((counters.steps, counters.temporaries), (1, 0), "{extents:?}");
    }
    let logsumexp = |g: &mut TensorGraph, x: TensorNodeId| vec![g.logsumexp(x, 1).unwrap()];
    let counters = by_rows(logsumexp, &[1000, 100]);
    assert_eq!((counters.steps, counters.temporaries), (1, 0));
    let norm = |g: &mut TensorGraph, x: TensorNodeId| vec![g.layer_norm(x, 1, 1e-5).unwrap()];
    let counters = by_rows(norm, &[1000, 100]);
    assert_eq!((counters.steps, counters.temporaries), (1, 0));
    // The mean over the rows is another step, as it is over them all.
    let loss = |g: &mut TensorGraph, x: TensorNodeId| {
        let [y] = leaves(g, [&[1000, 100]]);
        vec![g.softmax_cross_entropy(x, y).unwrap()]
    };
    let counters = by_rows(loss, &[1000, 100]);
    assert_eq!((counters.steps, counters.temporaries, counters.temp_bytes), (2, 1, 8000));
    // Of columns there is no row that has all of one.
    let columns = |g: &mut TensorGraph, x: TensorNodeId| vec![g.softmax(x, 0).unwrap()];
    assert!(by_rows(columns, &[1000, 100]).steps > 1);
    // The sums are wanted too, and so are steps of their own; or they are read in another order.
    let both = |g: &mut TensorGraph, x: TensorNodeId| {
        let largest = g.reduce_keeping(Reduction::Max, x, &[1]).unwrap();
        let below = g.apply("math.subtract", &[x, largest]).unwrap();
        vec![below, largest]
    };
    assert_eq!(by_rows(both, &[1000, 100]).steps, 2);
    let turned = |g: &mut TensorGraph, x: TensorNodeId| {
        let largest = g.reduce_keeping(Reduction::Max, x, &[1]).unwrap();
        let turned = g.transpose(largest, &[1, 0]).unwrap();
        let below = g.apply("math.subtract", &[x, turned]).unwrap();
        vec![g.reduce(Reduction::Sum, below, &[1]).unwrap()]
    };
    assert_eq!(by_rows(turned, &[300, 300]).steps, 2);
    // The first rows are those of the last axis here, and would be taken for those of the first.
    let crossed = |g: &mut TensorGraph, x: TensorNodeId| {
        let e = g.apply("exp", &[x]).unwrap();
        let sums = g.reduce(Reduction::Sum, e, &[1]).unwrap();
        let below = g.apply("math.divide", &[e, sums]).unwrap();
        vec![g.reduce(Reduction::Sum, below, &[1]).unwrap()]
    };
    by_rows(crossed, &[300, 300]);
    // Of a diagonal the second index is that of the row, too: among a few rows it would be another.
    let diagonal = |g: &mut TensorGraph, x: TensorNodeId| {
        let sums = g.reduce(Reduction::Sum, x, &[2]).unwrap();
        let diagonal = g.with_axes(sums, &[0, 0]).unwrap();
        let column = g.reshape(diagonal, &[60, 1]).unwrap();
        let [y] = leaves(g, [&[60, 1000]]);
        let below = g.apply("math.subtract", &[y, column]).unwrap();
        vec![g.reduce(Reduction::Max, below, &[1]).unwrap()]
    };
    assert_eq!(by_rows(diagonal, &[60, 60, 20]).steps, 2);
}

/// Returns the numbers of steps and temporaries in the plan for reductions of `x`, and asserts that results have the
/// reference's bits, on one thread and on three.
fn reduced(x: &Tensor, build: impl Fn(&mut TensorGraph, TensorNodeId) -> Vec<TensorNodeId>) -> (usize, usize) {
    let mut g = TensorGraph::standard();
    let leaf = g.leaf("x", x.scalar_type(), x.extents()).expect("a leaf");
    let outputs = build(&mut g, leaf);
    let mut found = (0, 0);
    for backend in [Backend::Interpreter, Backend::Native] {
        let options = Options::default().backend(backend).min_parallel_elements(5000);
        let executor = g.compile(&outputs, &options).expect("an executor");
        let plan = plan_of(&g, &executor);
        let expected = executor.run_reference(from_ref(x)).expect("a value");
        for threads in [1, 3].into_iter().filter(|threads| *threads == 1 || backend == Backend::Native) {
            let mut session = executor.session();
            session.set_threads(threads);
            for _ in 0..2 {
                let made = session.run_tensors(from_ref(x)).expect("a value");
                assert_eq!(made.len(), outputs.len());
                for (expected, made) in expected.iter().zip(made) {
                    assert!(same_bits(expected, made), "{made:?} is not {expected:?}\n{plan}");
                }
            }
        }
        found = (plan.counters().steps, plan.counters().temporaries);
    }
    found
}

#[test]
fn reductions_of_one_space_share_a_loop() {
    let moments = |axes: &'static [usize]| {
        move |g: &mut TensorGraph, x: TensorNodeId| {
            let squares = g.apply("math.multiply", &[x, x]).unwrap();
            vec![g.reduce(Reduction::Sum, x, axes).unwrap(), g.reduce(Reduction::Sum, squares, axes).unwrap()]
        }
    };
    let extremes = |axes: &'static [usize]| {
        move |g: &mut TensorGraph, x: TensorNodeId| {
            let negated = g.apply("math.neg", &[x]).unwrap();
            [(Reduction::Min, x), (Reduction::Max, x), (Reduction::Product, negated)]
                .map(|(reduction, of)| g.reduce(reduction, of, axes).unwrap())
                .into()
        }
    };
    // Too few to be worth a loop; short lines, long ones of which blocks have a rest, and lines of several blocks of sums; wide and narrow rows.
    let extents: [&[usize]; 7] =
        [&[20, 30], &[1100, 30], &[7, 5001], &[2, 70_001], &[11_000, 3], &[20, 30, 70], &[5, 30, 2, 167]];
    for (size, extents) in extents.into_iter().enumerate() {
        let floats = numbers(extents, 3);
        let mut some: Vec<f64> = floats.to_vec().unwrap();
        for at in (17..some.len()).step_by(9_011) {
            some[at] = [f64::NAN, f64::INFINITY, -0.0, f64::NEG_INFINITY][at % 4];
        }
        let single = Tensor::new(extents, some.iter().map(|x| *x as f32).collect()).unwrap();
        let whole = Tensor::new(extents, some.iter().map(|x| (x * 1e3) as i64).collect()).unwrap();
        let turned: Vec<usize> = (0..extents.len()).rev().collect();
        let special = Tensor::new(extents, some).unwrap();
        for (kind, x) in [&special, &single, &whole, &floats.transposed(&turned).unwrap()].into_iter().enumerate() {
            let axes: [&'static [usize]; 4] = [&[0], &[1], &[0, 1], &[0, 1, 2]];
            let last = x.extents().len() - 1;
            for (at, axes) in axes.into_iter().filter(|axes| axes.iter().all(|axis| *axis <= last)).enumerate() {
                // One of the two for each: both meet all elements, extents and axes, and any two of these.
                let found = if (size + kind + at).is_multiple_of(2) {
                    reduced(x, moments(axes))
                } else {
                    reduced(x, extremes(axes))
                };
                assert_eq!(found, (1, 0), "{extents:?} {axes:?}");
            }
        }
    }
}

#[test]
fn what_follows_reductions_in_one_loop_is_in_their_step() {
    let x = numbers(&[50, 3000], 5);
    let variance = |g: &mut TensorGraph, x: TensorNodeId| {
        let squares = g.apply("math.multiply", &[x, x]).unwrap();
        let count = g.constant(Scalar::Float64, 150_000.0).unwrap();
        let of = |g: &mut TensorGraph, x| {
            let sum = g.reduce(Reduction::Sum, x, &[0, 1]).unwrap();
            g.apply("math.divide", &[sum, count]).unwrap()
        };
        let (mean, of_squares) = (of(g, x), of(g, squares));
        let squared = g.apply("math.multiply", &[mean, mean]).unwrap();
        (mean, g.apply("math.subtract", &[of_squares, squared]).unwrap())
    };
    // The mean is wanted, too, or is a temporary.
    assert_eq!(
        reduced(&x, |g, x| {
            let (mean, variance) = variance(g, x);
            vec![mean, variance]
        }),
        (1, 0)
    );
    assert_eq!(reduced(&x, |g, x| vec![variance(g, x).1]).0, 1);
    // A sum of what is above the mean needs the mean, and so another walk; the largest does not.
    let above = |g: &mut TensorGraph, x: TensorNodeId| {
        let (mean, _) = variance(g, x);
        let above = g.apply("math.subtract", &[x, mean]).unwrap();
        let squares = g.apply("math.multiply", &[above, above]).unwrap();
        let largest = g.reduce(Reduction::Max, x, &[0, 1]).unwrap();
        vec![g.reduce(Reduction::Sum, squares, &[0, 1]).unwrap(), largest]
    };
    assert_eq!(reduced(&x, above), (2, 1));
    // Other axes, or another tensor, is another walk.
    let apart = |g: &mut TensorGraph, x: TensorNodeId| {
        let whole = g.constant(Scalar::Float64, 2.0).unwrap();
        let other = g.broadcast(whole, &[50, 3000]).unwrap();
        let other = g.apply("exp", &[other]).unwrap();
        vec![
            g.reduce(Reduction::Sum, x, &[0, 1]).unwrap(),
            g.reduce(Reduction::Sum, x, &[0]).unwrap(),
            g.reduce(Reduction::Max, other, &[0]).unwrap(),
        ]
    };
    assert!(reduced(&x, apart).0 >= 3);
    // What is between two of them in the order of steps, and needs the first, comes after both; what the second needs comes before.
    let between = |g: &mut TensorGraph, x: TensorNodeId| {
        let first = g.reduce(Reduction::Sum, x, &[1]).unwrap();
        let scaled = g.einsum("i,j->ij", &[first, first]).unwrap();
        let squares = g.apply("math.multiply", &[x, x]).unwrap();
        let second = g.reduce(Reduction::Sum, squares, &[1]).unwrap();
        let both = g.apply("math.add", &[scaled, second]).unwrap();
        vec![
            first,
            second,
            both,
            g.reduce(Reduction::Max, both, &[0]).unwrap(),
            g.reduce(Reduction::Min, both, &[0]).unwrap(),
        ]
    };
    assert_eq!(reduced(&x, between), (3, 0));
    let mut g = TensorGraph::standard();
    let [x] = leaves(&mut g, [&[50, 3000]]);
    let least = g.reduce(Reduction::Min, x, &[1]).unwrap();
    let e = g.apply("exp", &[x]).unwrap();
    let sum = g.reduce(Reduction::Sum, e, &[1]).unwrap();
    let root = g.apply("sqrt", &[sum]).unwrap();
    let lines = [
        "%4 [50] = in one loop",
        "    %1 [50] = reduce Min [1] (%0)",
        "    %4 [50] = reduce Sum [1] of math.exp then math.sqrt (%0)",
        "    (%0, %0); drops %0",
        "outputs %1, %4",
        "1 steps, 2 kernels, 0 temporaries of 0 bytes",
    ];
    let listing = Plan::of(&g, &[least, root]).listing(&g).to_string();
    assert_eq!(listing.lines().collect::<Vec<_>>(), lines);
}

/// Prefetching changes no bit of a result and reads nothing after the end of an array. Large arrays are prefetched by a
/// sum itself, or, if steps share a loop over rows, by one of them for all. The last block of rows is shorter than the
/// others.
#[test]
fn what_is_fetched_ahead_changes_no_bit() {
    for extents in [[333, 1001], [333, 1024], [1300, 272]] {
        fetched_ahead(extents);
    }
}

fn fetched_ahead(extents: [usize; 2]) {
    let floats = |seed: usize| -> Vec<f32> {
        (0..extents[0] * extents[1]).map(|at| ((at * 7919 + seed * 104_729) % 20_011) as f32 / 2500.0 - 4.0).collect()
    };
    let tensor = |seed| Tensor::new(&extents, floats(seed)).expect("a tensor");
    let mut g = TensorGraph::standard();
    let [z, y] = ["z", "y"].map(|name| g.leaf(name, Scalar::Float32, &extents).expect("a leaf"));
    let loss = g.softmax_cross_entropy(z, y).expect("a node");
    let rows = g.softmax(z, 1).expect("a node");
    let powers = g.apply("math.exp", &[z]).expect("a node");
    let powers = g.reduce(Reduction::Sum, powers, &[1]).expect("a node");
    let product = g.apply("math.multiply", &[z, y]).expect("a node");
    let all = g.reduce(Reduction::Sum, product, &[0, 1]).expect("a node");
    let options = Options::default().reference_order(true);
    let z = tensor(1);
    let turned = z.transposed(&[1, 0]).expect("a view").row_major().transposed(&[1, 0]).expect("a view");
    for z in [z, turned] {
        let inputs = [z, tensor(2)];
        for output in [loss, rows, powers, all] {
            let executor = g.compile(&[output], &options).expect("an executor");
            let expected = executor.run_reference(&inputs).expect("values");
            let made = run(&executor, &inputs).expect("values");
            assert!(same_bits(&expected[0], &made[0]), "{output:?}");
        }
    }
}

/// Asserts that reductions of `x` have the reference's bits, on two threads and on five.
fn shared_out(x: &Tensor, build: impl Fn(&mut TensorGraph, TensorNodeId) -> Vec<TensorNodeId>) {
    let mut g = TensorGraph::standard();
    let leaf = g.leaf("x", x.scalar_type(), x.extents()).expect("a leaf");
    let outputs = build(&mut g, leaf);
    let executor = g.compile(&outputs, &Options::default().min_parallel_elements(5000)).expect("an executor");
    let expected = executor.run_reference(from_ref(x)).expect("a value");
    for threads in [2, 5] {
        let mut session = executor.session();
        session.set_threads(threads);
        let made = session.run_tensors(from_ref(x)).expect("a value");
        assert_eq!(made.len(), outputs.len());
        for (expected, made) in expected.iter().zip(made) {
            assert!(same_bits(expected, made), "{made:?} is not {expected:?}\n{}", plan_of(&g, &executor));
        }
    }
}

#[test]
fn few_long_reductions_are_shared_out_in_blocks() {
    // Results of several blocks, with rests of the last one that are whole rows of chains, a few elements, and none; and of less than a block.
    let extents: [&[usize]; 5] =
        [&[3 * 65_536 + 17], &[2, 2 * 65_536 + 640], &[1, 4 * 65_536], &[3, 2, 35_001], &[4, 9000]];
    let all = |reductions: &'static [Reduction], axes: &'static [usize]| {
        move |g: &mut TensorGraph, x: TensorNodeId| {
            let own = if g.node(x).scalar == Scalar::Boolean { x } else { g.apply("math.multiply", &[x, x]).unwrap() };
            reductions.iter().flat_map(|how| [x, own].map(|of| g.reduce(*how, of, axes).unwrap())).collect()
        }
    };
    // What follows one of them is a step of its own then.
    let means = |axes: &'static [usize]| {
        move |g: &mut TensorGraph, x: TensorNodeId| {
            let sum = g.reduce(Reduction::Sum, x, axes).unwrap();
            let half = g.constant(Scalar::Float64, 0.5).unwrap();
            vec![g.apply("math.multiply", &[sum, half]).unwrap()]
        }
    };
    for extents in extents {
        let floats = numbers(extents, 5);
        let some: Vec<f64> = floats.to_vec().unwrap();
        let near: Vec<f64> = some.iter().map(|x| 1.0 + (x * 1e3).fract() * 1e-3).collect();
        let single = Tensor::new(extents, near.iter().map(|x| *x as f32).collect()).unwrap();
        let whole = Tensor::new(extents, some.iter().map(|x| (x * 1e3) as i64).collect()).unwrap();
        let truth = Tensor::new(extents, some.iter().map(|x| *x > -900.0).collect()).unwrap();
        // Every other element, from the last one on.
        let wide: Vec<usize> = extents.iter().map(|extent| 2 * extent).collect();
        let back: Vec<Slice> =
            extents.iter().map(|extent| Slice { start: 2 * extent - 1, step: -2, count: *extent }).collect();
        let apart = numbers(&wide, 7).sliced(&back).unwrap();
        let near = Tensor::new(extents, near).unwrap();
        for x in [&floats, &near, &single, &whole, &truth, &apart] {
            let axes: &'static [usize] = match extents.len() {
                1 => &[0],
                2 => &[1],
                _ => &[1, 2],
            };
            let how: &'static [Reduction] = match x.scalar_type() {
                Scalar::Boolean => &[Reduction::All, Reduction::Any],
                _ => &[Reduction::Sum, Reduction::Product, Reduction::Min, Reduction::Max],
            };
            // All in one loop, and each in its own.
            shared_out(x, all(how, axes));
            for (at, _) in how.iter().enumerate() {
                let one = |which: usize| move |g: &mut TensorGraph, x| vec![all(&how[at..=at], axes)(g, x)[which]];
                shared_out(x, one(0));
                shared_out(x, one(1));
            }
            if x.scalar_type() == Scalar::Float64 {
                shared_out(x, means(axes));
            }
        }
    }
}
