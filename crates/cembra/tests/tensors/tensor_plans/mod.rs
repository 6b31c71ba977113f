//! Tests plans of tensor graphs: which nodes become one step, which results are stored in memory, and that plans have
//! the reference's results, bit for bit.

mod limits;
mod lines;
mod loops;
mod products;
mod runs;

use crate::compiled::{kind_of, run};
use cembra::tensor::{
    CompileGraph, PlanCounters, Reduction, Slice, Tensor, TensorErrorKind, TensorGraph, TensorNodeId, TensorPlan,
    same_bits,
};
use cembra::{Backend, Executor, Options, Scalar};
use cembra_engine::Evaluator;
use cembra_tensor::Plan;
use std::slice::from_ref;
use std::sync::Arc;

/// Returns the plan of a graph for the extents of its leaves.
fn plan_of(graph: &TensorGraph, executor: &Executor) -> Arc<TensorPlan> {
    let extents: Vec<&[usize]> = graph.leaves().iter().map(|leaf| graph.extents(leaf.node)).collect();
    executor.prepare_for(&extents).expect("a plan")
}

/// Returns a tensor of numbers of many magnitudes.
fn numbers(extents: &[usize], seed: usize) -> Tensor {
    // The numbers repeat after `PERIOD` elements.
    const PERIOD: usize = 7 * 1601;
    let number = |at: usize| (((at + seed) * 7919 % 1601) as f64).sin() * 10_f64.powi((at % 7) as i32 - 3);
    repeated(extents, PERIOD, number)
}

/// Returns a tensor whose elements repeat after `period` elements. `number` is called once per element of one period.
fn repeated(extents: &[usize], period: usize, number: impl Fn(usize) -> f64) -> Tensor {
    let count: usize = extents.iter().product();
    let mut all = (0..period.min(count)).map(number).collect::<Vec<f64>>().repeat(count.div_ceil(period));
    all.truncate(count);
    Tensor::new(extents, all).expect("a value")
}

/// Returns the counters of the plan for `outputs`, and asserts that results have the reference's bits with both
/// backends.
fn planned(graph: &TensorGraph, outputs: &[TensorNodeId]) -> PlanCounters {
    let inputs: Vec<Tensor> =
        graph.leaves().iter().enumerate().map(|(at, leaf)| numbers(graph.extents(leaf.node), at)).collect();
    let mut counters = PlanCounters::default();
    for backend in [Backend::Interpreter, Backend::Native] {
        let executor = graph.compile(outputs, &Options::default().backend(backend)).expect("an executor");
        let plan = plan_of(graph, &executor);
        let expected = executor.run_reference(&inputs).expect("a value");
        let found = run(&executor, &inputs).expect("a value");
        assert_eq!((expected.len(), found.len()), (outputs.len(), outputs.len()));
        for (expected, found) in expected.iter().zip(&found) {
            assert!(same_bits(expected, found), "{found:?} is not {expected:?}\n{plan}");
        }
        counters = plan.counters();
    }
    counters
}

fn steps(graph: &TensorGraph, output: TensorNodeId) -> (usize, usize) {
    let counters = planned(graph, &[output]);
    (counters.steps, counters.temporaries)
}

fn leaves<const N: usize>(g: &mut TensorGraph, extents: [&[usize]; N]) -> [TensorNodeId; N] {
    extents.map(|extents| g.leaf("", Scalar::Float64, extents).expect("a value"))
}

#[test]
fn chains_of_maps_with_views_are_one_step() {
    let mut g = TensorGraph::standard();
    let [a, b, c] = leaves(&mut g, [&[30, 40], &[40], &[40, 30]]);
    // A sum, seen the other way round, cut and turned over, with a vector for all rows.
    let sum = g.apply("math.add", &[a, b]).unwrap();
    let turned = g.transpose(sum, &[1, 0]).unwrap();
    let product = g.apply("math.multiply", &[turned, c]).unwrap();
    let slices = [Slice { start: 38, step: -3, count: 10 }, Slice { start: 1, step: 2, count: 14 }];
    let cut = g.slice(product, &slices).unwrap();
    let shape = g.reshape(cut, &[1, 10, 1, 14]).unwrap();
    assert_eq!(steps(&g, shape), (1, 0));
    let wide = g.broadcast(shape, &[2, 10, 2, 14]).unwrap();
    let [d] = leaves(&mut g, [&[2, 10, 2, 14]]);
    let last = g.apply("math.add", &[wide, d]).unwrap();
    assert_eq!(steps(&g, last), (1, 0));
    // Every other element, of which the last ones first: two slices with a map between.
    let [x, y] = leaves(&mut g, [&[21], &[10]]);
    let odd = g.slice(x, &[Slice { start: 1, step: 2, count: 10 }]).unwrap();
    let sum = g.apply("math.add", &[odd, y]).unwrap();
    let last = g.slice(sum, &[Slice { start: 9, step: -3, count: 4 }]).unwrap();
    let e = g.apply("exp", &[last]).unwrap();
    assert_eq!(steps(&g, e), (1, 0));
    // Of a diagonal there are as many elements as of what reads it.
    let [d, w] = leaves(&mut g, [&[30, 30], &[30]]);
    let square = g.apply("math.multiply", &[d, d]).unwrap();
    let diagonal = g.with_axes(square, &[0, 0]).unwrap();
    let scaled = g.apply("math.multiply", &[diagonal, w]).unwrap();
    assert_eq!(steps(&g, scaled), (1, 0));
}

#[test]
fn maps_of_what_lies_across_are_those_of_its_elements() {
    // Several blocks of rows with a rest, fewer rows than are worth it, rows that are longer than a block, and matrices behind each other.
    for extents in [&[300, 700][..], &[7, 700], &[20, 9000], &[3, 50, 200], &[100, 1, 30]] {
        let mut g = TensorGraph::standard();
        let last = extents.len() - 1;
        let mut order: Vec<usize> = (0..extents.len()).collect();
        order.swap(last - 1, last);
        let turned: Vec<usize> = order.iter().map(|axis| extents[*axis]).collect();
        let [a, b, c] = leaves(&mut g, [extents, &turned, &extents[last..]]);
        let across = g.transpose(b, &order).unwrap();
        let sum = g.apply("math.add", &[a, across]).unwrap();
        let back: Vec<Slice> =
            extents.iter().map(|count| Slice { start: count - 1, step: -1, count: *count }).collect();
        let backwards = g.slice(across, &back).unwrap();
        let product = g.apply("math.multiply", &[sum, backwards]).unwrap();
        let all = g.apply("math.subtract", &[product, c]).unwrap();
        assert_eq!(steps(&g, all), (1, 0), "{extents:?}");
        let truth = g.apply("math.less", &[sum, backwards]);
        if let Ok(truth) = truth {
            assert_eq!(steps(&g, truth), (1, 0), "{extents:?}");
        }
    }
}

#[test]
fn a_logistic_function_is_one_step() {
    let mut g = TensorGraph::standard();
    let [x] = leaves(&mut g, [&[1000]]);
    let one = g.constant(Scalar::Float64, 1.0).unwrap();
    let minus = g.apply("math.neg", &[x]).unwrap();
    let e = g.apply("exp", &[minus]).unwrap();
    let below = g.apply("math.add", &[one, e]).unwrap();
    let logistic = g.apply("math.divide", &[one, below]).unwrap();
    assert_eq!(planned(&g, &[logistic]), PlanCounters { steps: 1, kernels: 1, temporaries: 0, temp_bytes: 0 });
    // It is used twice, in one step.
    let twice = g.apply("math.multiply", &[logistic, logistic]).unwrap();
    assert_eq!(steps(&g, twice), (1, 0));
}

#[test]
fn what_is_reduced_is_no_temporary() {
    // Extents of several blocks, and of parts of one.
    for extents in [[3, 100, 200], [200, 2, 100], [1, 1, 70_000], [70_000, 1, 1], [5000, 7, 1]] {
        let mut g = TensorGraph::standard();
        let [a, b] = leaves(&mut g, [&extents, &extents[2..]]);
        let sum = g.apply("math.add", &[a, b]).unwrap();
        for axes in [&[0][..], &[1], &[2], &[0, 1], &[0, 2], &[1, 2], &[0, 1, 2]] {
            for reduction in [Reduction::Sum, Reduction::Product, Reduction::Max, Reduction::Min] {
                let all = g.reduce(reduction, sum, axes).unwrap();
                let counters = planned(&g, &[all]);
                let expected = PlanCounters { steps: 1, kernels: 1, temporaries: 0, temp_bytes: 0 };
                assert_eq!(counters, expected, "{reduction:?} of {extents:?} over {axes:?}");
            }
        }
    }
}

#[test]
fn other_elements_are_reduced_alike() {
    let mut g = TensorGraph::standard();
    let [x] = leaves(&mut g, [&[50, 700]]);
    for scalar in [Scalar::Float32, Scalar::Int32, Scalar::Int64] {
        let cast = g.cast(x, scalar).unwrap();
        let square = g.apply("math.multiply", &[cast, cast]).unwrap();
        for axes in [&[0][..], &[1], &[0, 1]] {
            let sum = g.reduce(Reduction::Sum, square, axes).unwrap();
            // What may fail has a step of its own, which may share rows with what reads it.
            let expected = if scalar == Scalar::Float32 || axes == [1] { (1, 0) } else { (2, 1) };
            assert_eq!(steps_of_small(&g, sum), expected, "{scalar:?} over {axes:?}");
        }
    }
}

/// Returns the numbers of steps and temporaries in the plan for `output`, on elements that are small enough for all
/// casts.
fn steps_of_small(graph: &TensorGraph, output: TensorNodeId) -> (usize, usize) {
    let input = Tensor::new(&[50, 700], (0..35_000).map(|at| f64::from(at % 97) - 40.5).collect()).expect("a value");
    let executor = graph.compile(&[output], &Options::default()).expect("an executor");
    let plan = plan_of(graph, &executor);
    let expected = executor.run_reference(from_ref(&input)).expect("a value");
    assert!(same_bits(&expected[0], &run(&executor, &[input]).expect("a value")[0]), "{plan}");
    (plan.counters().steps, plan.counters().temporaries)
}

#[test]
fn maps_of_a_reduction_are_in_its_step() {
    let mut g = TensorGraph::standard();
    let [a, b, c] = leaves(&mut g, [&[300, 400], &[300], &[]]);
    let square = g.apply("math.multiply", &[a, a]).unwrap();
    for (axes, other) in [(&[1][..], b), (&[0, 1], c)] {
        let sum = g.reduce(Reduction::Sum, square, axes).unwrap();
        let root = g.apply("math.add", &[other, sum]).unwrap();
        let scaled = g.apply("math.subtract", &[root, other]).unwrap();
        let counters = planned(&g, &[scaled]);
        assert_eq!(counters, PlanCounters { steps: 1, kernels: 2, temporaries: 0, temp_bytes: 0 });
    }
    // Others read it too: it has a place of its own.
    let sum = g.reduce(Reduction::Sum, a, &[1]).unwrap();
    let more = g.apply("math.add", &[sum, b]).unwrap();
    let row = g.reshape(sum, &[300, 1]).unwrap();
    let centred = g.apply("math.subtract", &[a, row]).unwrap();
    assert_eq!(planned(&g, &[more, centred]).steps, 3);
}

#[test]
fn what_is_dear_is_computed_once() {
    let mut g = TensorGraph::standard();
    let [v, m] = leaves(&mut g, [&[40], &[30, 40]]);
    // For each row of the matrix again, if it were not in memory.
    let e = g.apply("exp", &[v]).unwrap();
    let product = g.apply("math.multiply", &[m, e]).unwrap();
    assert_eq!(planned(&g, &[product]), PlanCounters { steps: 2, kernels: 2, temporaries: 1, temp_bytes: 320 });
    // A sum of two rows is cheaper than memory, one of thirty is not.
    let [pair, w] = leaves(&mut g, [&[2, 40], &[40]]);
    let sum = g.apply("math.add", &[v, w]).unwrap();
    let of_two = g.apply("math.multiply", &[pair, sum]).unwrap();
    assert_eq!(steps(&g, of_two), (1, 0));
    let of_thirty = g.apply("math.multiply", &[m, sum]).unwrap();
    assert_eq!(steps(&g, of_thirty), (2, 1));
    // Two results that need the same: it is an output, and read.
    let [left, right] = [of_two, pair].map(|x| g.apply("exp", &[x]).unwrap());
    let both = g.apply("math.add", &[left, right]).unwrap();
    let counters = planned(&g, &[left, both]);
    assert_eq!((counters.steps, counters.temporaries), (2, 0));
}

#[test]
fn what_may_fail_fails_as_in_the_reference() {
    let mut g = TensorGraph::standard();
    let a = g.leaf("a", Scalar::Int32, &[2]).unwrap();
    let condition = g.leaf("c", Scalar::Boolean, &[2]).unwrap();
    let quotient = g.apply("math.floordiv", &[a, a]).unwrap();
    let chosen = g.apply("tensor.where", &[condition, a, quotient]).unwrap();
    let inputs = [Tensor::new(&[2], vec![1, 0]).unwrap(), Tensor::new(&[2], vec![true, true]).unwrap()];
    let executor = g.compile(&[chosen], &Options::default()).unwrap();
    let [expected, found] = [executor.run_reference(&inputs), run(&executor, &inputs)].map(|made| made.unwrap_err());
    assert_eq!(kind_of(&expected), TensorErrorKind::Evaluation);
    assert_eq!((kind_of(&expected), expected.diagnostics()), (kind_of(&found), found.diagnostics()));
}

#[test]
fn chains_of_a_million_are_planned() {
    let mut g = TensorGraph::standard();
    let [x] = leaves(&mut g, [&[2]]);
    let mut chain = x;
    for _ in 0..1_000_000 {
        chain = g.apply("sin", &[chain]).unwrap();
    }
    let counters = Plan::of(&g, &[chain]).counters();
    // Bodies of 256 steps.
    assert_eq!((counters.steps, counters.temporaries), (3907, 3906));
    // As many uses as readers, again and again: as many places are not looked for.
    let mut doubled = x;
    for _ in 0..1000 {
        let turned = g.slice(doubled, &[Slice { start: 1, step: -1, count: 2 }]).unwrap();
        doubled = g.apply("math.add", &[doubled, turned]).unwrap();
        doubled = g.apply("sin", &[doubled]).unwrap();
    }
    assert!(Plan::of(&g, &[doubled]).counters().steps <= 1000);
}

#[test]
fn a_plan_is_printed() {
    let mut g = TensorGraph::standard();
    let [a, b] = leaves(&mut g, [&[3, 4], &[4]]);
    let e = g.apply("exp", &[b]).unwrap();
    let product = g.apply("math.multiply", &[a, e]).unwrap();
    let sum = g.reduce(Reduction::Sum, product, &[1]).unwrap();
    let one = g.constant(Scalar::Float64, 1.0).unwrap();
    let more = g.apply("math.add", &[sum, one]).unwrap();
    let expected = "\
        %2 [4] = map math.exp (%1); drops %1\n\
        %6 [3] = reduce Sum [1] of math.multiply then math.add(_, f64{1}) (%0, %2); drops %0, %2\n\
        outputs %6\n\
        2 steps, 3 kernels, 1 temporaries of 32 bytes\n";
    assert_eq!(Plan::of(&g, &[more]).listing(&g).to_string(), expected);
}

#[test]
fn elements_are_found_however_operands_lie() {
    // Each number is its position, so that a wrong one is seen; rows of one run and short ones, in one block and in several.
    for (rows, columns) in [(3, 5000), (3000, 20), (2, 3), (1, 9), (9, 1), (0, 4)] {
        let count = 2 * rows * columns;
        let positions = Tensor::new(&[rows, 2 * columns], (0..count).map(|at| at as f64).collect()).unwrap();
        let turned = Tensor::new(&[columns, rows], (0..count / 2).map(|at| at as f64).collect()).unwrap();
        let of_row = Tensor::new(&[rows, 1], (0..rows).map(|at| at as f64 * 1e-3).collect()).unwrap();
        let of_column = Tensor::new(&[columns], (0..columns).map(|at| at as f64 * 1e-7).collect()).unwrap();
        let mut g = TensorGraph::standard();
        let [p, t, r, c] = leaves(&mut g, [&[rows, 2 * columns], &[columns, rows], &[rows, 1], &[columns]]);
        let last = (2 * columns).saturating_sub(1);
        let slices = [Slice::all(rows), Slice { start: last, step: -2, count: columns }];
        let backwards = g.slice(p, &slices).unwrap();
        let other = g.transpose(t, &[1, 0]).unwrap();
        let mut sum = g.apply("math.add", &[backwards, r]).unwrap();
        let with_row = sum;
        sum = g.apply("math.add", &[sum, other]).unwrap();
        sum = g.apply("math.add", &[sum, c]).unwrap();
        let executor = g.compile(&[with_row, sum], &Options::default()).unwrap();
        let made = run(&executor, &[positions, turned, of_row, of_column]).unwrap();
        let made: Vec<Vec<f64>> = made.iter().map(|made| made.to_vec().unwrap()).collect();
        for row in 0..rows {
            for column in 0..columns {
                let first = (row * 2 * columns + last - 2 * column) as f64 + row as f64 * 1e-3;
                let all = first + (column * rows + row) as f64 + column as f64 * 1e-7;
                let found = [made[0][row * columns + column], made[1][row * columns + column]];
                assert_eq!(found, [first, all], "[{row}, {column}] of [{rows}, {columns}]");
            }
        }
    }
}

#[test]
fn expressions_are_compiled_once_for_all_extents_and_threads() {
    let on = Arc::new(Evaluator::new(&Options::default()));
    std::thread::scope(|scope| {
        for seed in 0..4 {
            let on = &on;
            scope.spawn(move || {
                for extent in 2..=100 {
                    let mut g = TensorGraph::standard();
                    let [x] = leaves(&mut g, [&[extent]]);
                    let square = g.apply("math.multiply", &[x, x]).unwrap();
                    let sum = g.reduce(Reduction::Sum, square, &[0]).unwrap();
                    cembra_engine::run_plan(&on.plan(&g, &[sum]).unwrap(), &[numbers(&[extent], seed)]).unwrap();
                }
            });
        }
    });
    let counters = on.kernel_counters();
    assert_eq!((counters.misses, counters.hits, counters.kept, counters.evictions), (1, 395, 1, 0));
    assert!(!counters.making_time.is_zero());
}
