//! Plans of tensors: what is one step, what is in memory, and that nothing of it changes a bit.

use cembra::tensor::{Evaluator, Graph, Labels, NodeId, Plan, PlanCounters, Reduction, Slice, Tensor, same_bits};
use cembra::{Backend, Options, Scalar};
use std::slice::from_ref;

/// A tensor of numbers of many sizes.
fn numbers(extents: &[usize], seed: usize) -> Tensor {
    let count = extents.iter().product();
    let number = |at: usize| (((at + seed) * 7919 % 1601) as f64).sin() * 10_f64.powi((at % 7) as i32 - 3);
    Tensor::new(extents, (0..count).map(number).collect()).expect("a value")
}

/// The counters of a plan for this output, whose results are those of the reference with both backends.
fn planned(graph: &Graph, outputs: &[NodeId]) -> PlanCounters {
    let inputs: Vec<Tensor> =
        graph.leaves().iter().enumerate().map(|(at, leaf)| numbers(graph.extents(leaf.node), at)).collect();
    let mut counters = PlanCounters::default();
    for backend in [Backend::Interpreter, Backend::Native] {
        let on = Evaluator::new(&Options::default().backend(backend));
        let expected = on.evaluate(graph, outputs, &inputs).expect("a value");
        let planned = on.plan(graph, outputs).expect("a value");
        let found = planned.run(&inputs).expect("a value");
        for (expected, found) in expected.iter().zip(&found) {
            assert!(same_bits(expected, found), "{found:?} is not {expected:?}\n{planned}");
        }
        counters = planned.plan().counters();
    }
    counters
}

fn steps(graph: &Graph, output: NodeId) -> (usize, usize) {
    let counters = planned(graph, &[output]);
    (counters.steps, counters.temporaries)
}

fn leaves<const N: usize>(g: &mut Graph, extents: [&[usize]; N]) -> [NodeId; N] {
    extents.map(|extents| g.leaf("", Scalar::Float64, extents).expect("a value"))
}

#[test]
fn chains_of_maps_with_views_are_one_step() {
    let mut g = Graph::standard();
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
fn a_logistic_function_is_one_step() {
    let mut g = Graph::standard();
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
        let mut g = Graph::standard();
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
    let mut g = Graph::standard();
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

/// Casts of numbers that are too large fail: these are small.
fn steps_of_small(graph: &Graph, output: NodeId) -> (usize, usize) {
    let input = Tensor::new(&[50, 700], (0..35_000).map(|at| f64::from(at % 97) - 40.5).collect()).expect("a value");
    let on = Evaluator::new(&Options::default());
    let planned = on.plan(graph, &[output]).expect("a value");
    let expected = on.evaluate(graph, &[output], from_ref(&input)).expect("a value");
    assert!(same_bits(&expected[0], &planned.run(&[input]).expect("a value")[0]), "{planned}");
    (planned.plan().counters().steps, planned.plan().counters().temporaries)
}

#[test]
fn maps_of_a_reduction_are_in_its_step() {
    let mut g = Graph::standard();
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
    let mut g = Graph::standard();
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
    let mut g = Graph::standard();
    let a = g.leaf("a", Scalar::Int32, &[2]).unwrap();
    let condition = g.leaf("c", Scalar::Boolean, &[2]).unwrap();
    let quotient = g.apply("math.floordiv", &[a, a]).unwrap();
    let chosen = g.apply("tensor.where", &[condition, a, quotient]).unwrap();
    let inputs = [Tensor::new(&[2], vec![1, 0]).unwrap(), Tensor::new(&[2], vec![true, true]).unwrap()];
    let on = Evaluator::new(&Options::default());
    let planned = on.plan(&g, &[chosen]).unwrap();
    let [expected, found] = [on.evaluate(&g, &[chosen], &inputs), planned.run(&inputs)].map(|made| made.unwrap_err());
    assert_eq!(expected, found);
}

#[test]
fn chains_of_a_million_are_planned() {
    let mut g = Graph::standard();
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
    let mut g = Graph::standard();
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
        2 steps, 3 kernels, 1 temporaries of 32 bytes";
    assert_eq!(Plan::of(&g, &[more]).listing(&g).to_string(), expected);
}

#[test]
fn the_listing_of_a_product_says_what_it_copies() {
    let on = Evaluator::new(&Options::default());
    let extent = |label: u8| 13 + usize::from(label - b'a');
    // The labels that an operand is brought into the order of, or that the result is made in.
    for (spec, line) in [
        ("ab,bc->ac", "contract ab,bc->ac by gemm 13x15x14 (%0, %1)"),
        ("ab,ac->cb", "contract ab,ac->cb by gemm 14x15x13 (%0, %1)"),
        ("ab,ab->", "contract ab,ab-> by loops (%0, %1)"),
        ("abc,bd->dac", "contract abc,bd->dac by gemm 195x16x14 (%0 [P (acb)], %1); moves 21840 bytes"),
        ("ab,cad->bcd", "contract ab,cad->bcd by gemm 14x240x13 (%0, %1 [P (acd)]); moves 24960 bytes"),
        ("abc,abd->acd", "contract abc,abd->acd by 13 gemm 15x16x14 (%0, %1)"),
        ("abcd,bfde->afce", ""),
        ("abc,bd->adc", ""),
        ("abcd,bfde->acfe", ""),
        ("aab,bc->ac", ""),
        ("abg,bc->ac", ""),
    ] {
        let (operands, _) = spec.split_once("->").unwrap();
        let extents: Vec<Vec<usize>> = operands.split(',').map(|own| own.bytes().map(extent).collect()).collect();
        let mut g = Graph::standard();
        let [a, b] = leaves(&mut g, [&extents[0], &extents[1]]);
        let product = g.einsum(spec, &[a, b]).unwrap();
        let planned = on.plan(&g, &[product]).unwrap();
        let listing = planned.to_string();
        assert!(listing.lines().next().unwrap().contains(line), "{listing}");
        // It is what running it counts.
        let (_, counters) = planned.run_counted(&[numbers(&extents[0], 0), numbers(&extents[1], 1)]).unwrap();
        assert_eq!(listing.matches("[P (").count() as u64, counters.permutes, "{listing}");
        let moves = format!("moves {} bytes", counters.permute_bytes);
        let total =
            format!("temporaries of 0 bytes, {} permutes of {} bytes", counters.permutes, counters.permute_bytes);
        assert_eq!(listing.contains(&moves), counters.permutes > 0, "{listing}");
        assert_eq!(listing.ends_with(&total), counters.permutes > 0, "{listing}");
    }
    // A transposition and the scale are folded into the product, a slice is seen as it lies, and so are views of views.
    let mut g = Graph::standard();
    let [a, b] = leaves(&mut g, [&[8, 9], &[6, 18]]);
    let turned = g.transpose(a, &[1, 0]).unwrap();
    let cut = g.slice(b, &[Slice::all(6), Slice { start: 17, step: -2, count: 9 }]).unwrap();
    let product = g.einsum("ab,ca->cb", &[turned, cut]).unwrap();
    let two = g.constant(Scalar::Float64, 2.5).unwrap();
    let one = g.constant(Scalar::Float64, 1.0).unwrap();
    let scaled = g.apply("math.multiply", &[two, product]).unwrap();
    let less = g.apply("math.subtract", &[one, scaled]).unwrap();
    let listing = on.plan(&g, &[less]).unwrap().to_string();
    let expected = "contract ba,ca->cb by gemm 8x6x9 then math.multiply(f64{2.5}, _) math.subtract(f64{1}, _) (%0, %3)";
    assert!(listing.contains(expected) && !listing.contains("[P"), "{listing}");
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
        let mut g = Graph::standard();
        let [p, t, r, c] = leaves(&mut g, [&[rows, 2 * columns], &[columns, rows], &[rows, 1], &[columns]]);
        let last = (2 * columns).saturating_sub(1);
        let slices = [Slice::all(rows), Slice { start: last, step: -2, count: columns }];
        let backwards = g.slice(p, &slices).unwrap();
        let other = g.transpose(t, &[1, 0]).unwrap();
        let mut sum = g.apply("math.add", &[backwards, r]).unwrap();
        let with_row = sum;
        sum = g.apply("math.add", &[sum, other]).unwrap();
        sum = g.apply("math.add", &[sum, c]).unwrap();
        let on = Evaluator::new(&Options::default());
        let inputs = [positions, turned, of_row, of_column];
        let made = on.plan(&g, &[with_row, sum]).unwrap().run(&inputs).unwrap();
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

/// Small whole numbers, whose sums of products are exact in any order.
fn wholes(extents: &[usize], seed: usize) -> Tensor {
    let count = extents.iter().product();
    Tensor::new(extents, (0..count).map(|at| ((at * 31 + seed) % 17) as f64 - 8.0).collect()).expect("a value")
}

/// The counters of a plan with products of matrices, which gives what the reference does on whole numbers.
fn multiplied(graph: &Graph, output: NodeId) -> (usize, usize, u64) {
    let inputs: Vec<Tensor> =
        graph.leaves().iter().enumerate().map(|(at, leaf)| wholes(graph.extents(leaf.node), at)).collect();
    let on = Evaluator::new(&Options::default());
    let expected = on.evaluate(graph, &[output], &inputs).expect("a value");
    let planned = on.plan(graph, &[output]).expect("a value");
    let (found, counters) = planned.run_counted(&inputs).expect("a value");
    assert_eq!(found[0], expected[0], "{planned}");
    let in_order = on.in_order();
    let found = in_order.plan(graph, &[output]).and_then(|planned| planned.run(&inputs)).expect("a value");
    assert!(same_bits(&found[0], &expected[0]));
    let plan = in_order.plan(graph, &[output]).expect("a value").plan().counters();
    (plan.steps, plan.temporaries, counters.gemm_calls)
}

#[test]
fn maps_of_a_product_are_in_its_step() {
    let mut g = Graph::standard();
    let [a, b, bias, mask] = leaves(&mut g, [&[600, 30], &[30, 700], &[700], &[600, 700]]);
    let product = g.einsum("ik,kj->ij", &[a, b]).unwrap();
    let two = g.constant(Scalar::Float64, 2.0).unwrap();
    let zero = g.constant(Scalar::Float64, 0.0).unwrap();
    let twice = g.apply("math.multiply", &[two, product]).unwrap();
    let sum = g.apply("math.add", &[twice, bias]).unwrap();
    let positive = g.apply("maximum", &[sum, zero]).unwrap();
    // In panels of 2^17 elements: 187 rows at a time.
    assert_eq!(multiplied(&g, positive), (1, 0, 4));
    assert_eq!(multiplied(&g, product), (1, 0, 1));
    let masked = g.apply("math.multiply", &[product, mask]).unwrap();
    assert_eq!(multiplied(&g, masked), (1, 0, 4));
    // What a product is of has to be in memory.
    let [c] = leaves(&mut g, [&[600, 30]]);
    let both = g.apply("math.add", &[a, c]).unwrap();
    let product = g.einsum("ik,kj->ij", &[both, b]).unwrap();
    assert_eq!(multiplied(&g, product), (2, 1, 1));
    // Of what is read twice there is one value, so it is no part of what follows.
    let turned = g.transpose(product, &[1, 0]).unwrap();
    let shape = g.einsum("ij,jk->ik", &[product, turned]).unwrap();
    assert_eq!(multiplied(&g, shape), (3, 2, 2));
    // The first axis of the result is one of the second operand, or of both.
    let [wide, many, others] = leaves(&mut g, [&[3, 500, 5], &[3, 5, 300], &[3, 500, 300]]);
    for (spec, operands, calls) in [("ik,kj->ji", [a, b], 4), ("bik,bkj->bij", [wide, many], 3)] {
        let product = g.einsum(spec, &operands).unwrap();
        let other = if calls == 3 { others } else { g.transpose(mask, &[1, 0]).unwrap() };
        let sum = g.apply("math.add", &[product, other]).unwrap();
        assert_eq!(multiplied(&g, sum), (1, 0, calls), "{spec}");
    }
}

#[test]
fn products_that_are_no_sums_are_maps() {
    let mut g = Graph::standard();
    let [a, b, v, w] = leaves(&mut g, [&[30, 40], &[50, 40], &[30], &[7]]);
    for (spec, operands) in [
        ("ij,kj->jik", &[a, b][..]),
        ("ij,i->ji", &[a, v]),
        ("i,k->ki", &[v, w]),
        ("i,j->ij", &[v, v]),
        ("ii->i", &[a][..0]),
        ("ij->ji", &[a]),
    ] {
        let diagonal = [g.slice(a, &[Slice::all(30), Slice { start: 3, step: 1, count: 30 }]).unwrap()];
        let product = g.einsum(spec, if operands.is_empty() { &diagonal } else { operands }).unwrap();
        let e = g.apply("exp", &[product]).unwrap();
        assert_eq!(steps(&g, e), (1, 0), "{spec}");
    }
    // A product of zero and a negative number has its sign; the sum of one such product has none.
    let mut g = Graph::standard();
    let [zero, minus] = leaves(&mut g, [&[1], &[1]]);
    let outputs = ["i,i->i", "i,j->ij", "i,i->"].map(|spec| g.einsum(spec, &[zero, minus]).unwrap());
    let inputs = [0.0, -1.0].map(|number| Tensor::new(&[1], vec![number]).unwrap());
    let labels = |operands: [&[u8]; 2], output: &[u8]| Labels {
        operands: operands.map(|labels| labels.into()).to_vec(),
        output: output.into(),
    };
    let ways = [labels([&[0], &[0]], &[0]), labels([&[0], &[1]], &[0, 1]), labels([&[0], &[0]], &[])];
    for on in [Evaluator::new(&Options::default()), Evaluator::new(&Options::default()).in_order()] {
        let planned = on.plan(&g, &outputs).and_then(|planned| planned.run(&inputs)).unwrap();
        let expected = on.evaluate(&g, &outputs, &inputs).unwrap();
        for (at, sign) in [true, true, false].into_iter().enumerate() {
            let (fast, _) = on.contract(&ways[at], [&inputs[0], &inputs[1]], expected[at].extents()).unwrap();
            for found in [&planned[at], &expected[at], &fast] {
                assert_eq!(found.to_vec::<f64>().unwrap()[0].is_sign_negative(), sign, "{at}");
            }
        }
    }
}

#[test]
fn sums_over_labels_of_one_operand_are_reductions_of_views() {
    // Sums of less than a block of chains, of more than one, and of none.
    for (wide, long) in [(3, 5), (1, 1), (2, 0), (40, 66), (150, 130), (3, 66_000), (66_000, 3), (200, 65)] {
        for spec in ["ij->i", "ij->j", "ij->", "ji->", "ijk->ki", "ijk->j", "ijk->jk", "ijk->"] {
            let (axes, kept) = spec.split_once("->").unwrap();
            let extent = |label: u8| [wide, long, 2][usize::from(label - b'i')];
            let extents: Vec<usize> = axes.bytes().map(extent).collect();
            let mut g = Graph::standard();
            let [x] = leaves(&mut g, [&extents]);
            let sum = g.einsum(spec, &[x]).unwrap();
            let counters = planned(&g, &[sum]);
            // Sums of one element each are maps.
            let is_one = axes.bytes().all(|label| kept.bytes().any(|known| known == label) || extent(label) == 1);
            let kernels = usize::from(is_one);
            assert_eq!((counters.steps, counters.kernels, counters.temporaries), (1, kernels, 0), "{spec}");
        }
    }
    for extent in [1, 4, 65, 150] {
        for spec in ["ii->", "iij->j", "iij->i", "jii->j", "iji->j", "iijj->j", "ijji->", "ijij->i"] {
            let axes = spec.split_once("->").unwrap().0;
            let extents = axes.bytes().map(|label| if label == b'i' { extent } else { 3 }).collect::<Vec<usize>>();
            let mut g = Graph::standard();
            let [x] = leaves(&mut g, [&extents]);
            let sum = g.einsum(spec, &[x]).unwrap();
            assert_eq!(planned(&g, &[sum]).steps, 1, "{spec}");
        }
    }
    // What is summed is no temporary, and what follows is in the same step; of a transposed tensor it is one view.
    let mut g = Graph::standard();
    let [x] = leaves(&mut g, [&[300, 40]]);
    let e = g.apply("exp", &[x]).unwrap();
    let turned = g.transpose(e, &[1, 0]).unwrap();
    let sum = g.einsum("ij->i", &[turned]).unwrap();
    let log = g.apply("log", &[sum]).unwrap();
    assert_eq!(steps(&g, log), (1, 0));
    // Every type: FLOAT32 is added in FLOAT64, integers wrap.
    let mut g = Graph::standard();
    let types = [Scalar::Float32, Scalar::Int32, Scalar::Int64];
    let inputs = [
        Tensor::new(&[150, 140], (0..21_000).map(|at| (at as f32).sin() * 1e3).collect()).unwrap(),
        Tensor::new(&[150, 140], (0..21_000_i32).map(|at| at.wrapping_mul(2_000_000_011)).collect()).unwrap(),
        Tensor::new(&[150, 140], (0..21_000_i64).map(|at| at.wrapping_mul(i64::MAX / 77)).collect()).unwrap(),
    ];
    let mut outputs = Vec::new();
    for scalar in types {
        let x = g.leaf("", scalar, &[150, 140]).unwrap();
        outputs.extend(["ij->i", "ij->j", "ij->"].map(|spec| g.einsum(spec, &[x]).unwrap()));
    }
    let on = Evaluator::new(&Options::default());
    let found = on.plan(&g, &outputs).and_then(|planned| planned.run(&inputs)).unwrap();
    for (at, (expected, found)) in on.evaluate(&g, &outputs, &inputs).unwrap().iter().zip(&found).enumerate() {
        assert!(same_bits(expected, found), "{at}: {found:?} is not {expected:?}");
    }
    // A sum begins with zero, one of one element too.
    let mut g = Graph::standard();
    let [x] = leaves(&mut g, [&[2, 1]]);
    let sums = ["ij->i", "ij->j"].map(|spec| g.einsum(spec, &[x]).unwrap());
    let minus = Tensor::new(&[2, 1], vec![-0.0, -0.0]).unwrap();
    for made in on.plan(&g, &sums).and_then(|planned| planned.run(&[minus])).unwrap() {
        assert!(made.to_vec::<f64>().unwrap().iter().all(|sum| sum.to_bits() == 0), "{made:?}");
    }
}

#[test]
fn expressions_are_compiled_once_for_all_extents_and_threads() {
    let on = Evaluator::new(&Options::default());
    std::thread::scope(|scope| {
        for seed in 0..4 {
            let on = &on;
            scope.spawn(move || {
                for extent in 2..=100 {
                    let mut g = Graph::standard();
                    let [x] = leaves(&mut g, [&[extent]]);
                    let square = g.apply("math.multiply", &[x, x]).unwrap();
                    let sum = g.reduce(Reduction::Sum, square, &[0]).unwrap();
                    on.plan(&g, &[sum]).unwrap().run(&[numbers(&[extent], seed)]).unwrap();
                }
            });
        }
    });
    let counters = on.kernel_counters();
    assert_eq!((counters.misses, counters.hits, counters.kept, counters.evictions), (1, 395, 1, 0));
    assert!(!counters.making_time.is_zero());
}

/// The counters of a plan for outputs over rows of several strips, whose results are those of the reference bit for bit.
fn by_rows(build: impl Fn(&mut Graph, NodeId) -> Vec<NodeId>, extents: &[usize]) -> PlanCounters {
    let mut g = Graph::standard();
    let [x] = leaves(&mut g, [extents]);
    let outputs = build(&mut g, x);
    planned(&g, &outputs)
}

#[test]
fn steps_over_the_same_rows_are_one() {
    // A strip has 2^15 elements: rows of a hundred, so that the last strip is shorter.
    let softmax = |g: &mut Graph, x: NodeId| vec![g.softmax(x, g.extents(x).len() - 1).unwrap()];
    for extents in [&[1000, 100][..], &[1, 70_000], &[7, 1, 30], &[3, 200, 100], &[40_000, 2], &[5, 1]] {
        let counters = by_rows(softmax, extents);
        assert_eq!((counters.steps, counters.temporaries), (1, 0), "{extents:?}");
    }
    let logsumexp = |g: &mut Graph, x: NodeId| vec![g.logsumexp(x, 1).unwrap()];
    let counters = by_rows(logsumexp, &[1000, 100]);
    assert_eq!((counters.steps, counters.temporaries), (1, 0));
    let norm = |g: &mut Graph, x: NodeId| vec![g.layer_norm(x, 1, 1e-5).unwrap()];
    let counters = by_rows(norm, &[1000, 100]);
    assert_eq!((counters.steps, counters.temporaries), (1, 0));
    // The mean over the rows is another step, as it is over them all.
    let loss = |g: &mut Graph, x: NodeId| {
        let [y] = leaves(g, [&[1000, 100]]);
        vec![g.softmax_cross_entropy(x, y).unwrap()]
    };
    let counters = by_rows(loss, &[1000, 100]);
    assert_eq!((counters.steps, counters.temporaries, counters.temp_bytes), (2, 1, 8000));
    // Of columns there is no row that has all of one.
    let columns = |g: &mut Graph, x: NodeId| vec![g.softmax(x, 0).unwrap()];
    assert!(by_rows(columns, &[1000, 100]).steps > 1);
    // The sums are wanted too, and so are steps of their own; or they are read in another order.
    let both = |g: &mut Graph, x: NodeId| {
        let largest = g.reduce_keeping(Reduction::Max, x, &[1]).unwrap();
        let below = g.apply("math.subtract", &[x, largest]).unwrap();
        vec![below, largest]
    };
    assert_eq!(by_rows(both, &[1000, 100]).steps, 2);
    let turned = |g: &mut Graph, x: NodeId| {
        let largest = g.reduce_keeping(Reduction::Max, x, &[1]).unwrap();
        let turned = g.transpose(largest, &[1, 0]).unwrap();
        let below = g.apply("math.subtract", &[x, turned]).unwrap();
        vec![g.reduce(Reduction::Sum, below, &[1]).unwrap()]
    };
    assert_eq!(by_rows(turned, &[300, 300]).steps, 2);
    // The first rows are those of the last axis here, and would be taken for those of the first.
    let crossed = |g: &mut Graph, x: NodeId| {
        let e = g.apply("exp", &[x]).unwrap();
        let sums = g.reduce(Reduction::Sum, e, &[1]).unwrap();
        let below = g.apply("math.divide", &[e, sums]).unwrap();
        vec![g.reduce(Reduction::Sum, below, &[1]).unwrap()]
    };
    by_rows(crossed, &[300, 300]);
    // Of a diagonal the second index is that of the row, too: among a few rows it would be another.
    let diagonal = |g: &mut Graph, x: NodeId| {
        let sums = g.reduce(Reduction::Sum, x, &[2]).unwrap();
        let diagonal = g.with_axes(sums, &[0, 0]).unwrap();
        let column = g.reshape(diagonal, &[60, 1]).unwrap();
        let [y] = leaves(g, [&[60, 1000]]);
        let below = g.apply("math.subtract", &[y, column]).unwrap();
        vec![g.reduce(Reduction::Max, below, &[1]).unwrap()]
    };
    assert_eq!(by_rows(diagonal, &[60, 60, 20]).steps, 2);
}

#[test]
fn products_with_vectors_are_exact_on_whole_numbers() {
    // Lines of several chunks that are added four at a time, and three that are left; and short ones with a rest.
    for (spec, extents) in [
        ("ki,k->i", [&[11, 5000][..], &[11]]),
        ("akb,k->ab", [&[3, 7, 300], &[7]]),
        ("akb,k->ab", [&[3, 7, 100], &[7]]),
        ("ik,k->i", [&[300, 37], &[37]]),
        ("ik,k->i", [&[300, 5], &[5]]),
        ("ikj,kj->i", [&[30, 7, 50], &[7, 50]]),
    ] {
        for scalar in [Scalar::Float64, Scalar::Float32, Scalar::Int32] {
            let mut g = Graph::standard();
            let operands = leaves(&mut g, extents).map(|leaf| g.cast(leaf, scalar).unwrap());
            let product = g.einsum(spec, &operands).unwrap();
            let wide = g.cast(product, Scalar::Float64).unwrap();
            assert_eq!(multiplied(&g, wide).2, 0, "{spec}");
        }
    }
}

/// The steps and temporaries of a plan for reductions of `x`, by which they are what the reference makes of them bit for bit, on one thread and
/// on three.
fn reduced(x: &Tensor, build: impl Fn(&mut Graph, NodeId) -> Vec<NodeId>) -> (usize, usize) {
    let mut g = Graph::standard();
    let leaf = g.leaf("x", x.scalar_type(), x.extents()).expect("a leaf");
    let outputs = build(&mut g, leaf);
    let mut found = (0, 0);
    for backend in [Backend::Interpreter, Backend::Native] {
        for threads in [1, 3].into_iter().filter(|threads| *threads == 1 || backend == Backend::Native) {
            let on = Evaluator::new(&Options::default().backend(backend)).threads(threads).share(5000);
            let expected = on.evaluate(&g, &outputs, from_ref(x)).expect("a value");
            let planned = on.plan(&g, &outputs).expect("a plan");
            for _ in 0..2 {
                let made = planned.run(from_ref(x)).expect("a value");
                for (expected, made) in expected.iter().zip(&made) {
                    assert!(same_bits(expected, made), "{made:?} is not {expected:?}\n{planned}");
                }
            }
            found = (planned.plan().counters().steps, planned.plan().counters().temporaries);
        }
    }
    found
}

#[test]
fn reductions_of_one_space_share_a_loop() {
    let moments = |axes: &'static [usize]| {
        move |g: &mut Graph, x: NodeId| {
            let squares = g.apply("math.multiply", &[x, x]).unwrap();
            vec![g.reduce(Reduction::Sum, x, axes).unwrap(), g.reduce(Reduction::Sum, squares, axes).unwrap()]
        }
    };
    let extremes = |axes: &'static [usize]| {
        move |g: &mut Graph, x: NodeId| {
            let negated = g.apply("math.neg", &[x]).unwrap();
            [(Reduction::Min, x), (Reduction::Max, x), (Reduction::Product, negated)]
                .map(|(reduction, of)| g.reduce(reduction, of, axes).unwrap())
                .into()
        }
    };
    // Too few to be worth a loop; short lines, long ones of which blocks have a rest, and lines of several blocks of sums; wide and narrow rows.
    let extents: [&[usize]; 7] =
        [&[20, 30], &[1100, 30], &[7, 5001], &[2, 70_001], &[11_000, 3], &[20, 30, 70], &[5, 30, 2, 167]];
    for extents in extents {
        let floats = numbers(extents, 3);
        let mut some: Vec<f64> = floats.to_vec().unwrap();
        for at in (17..some.len()).step_by(9_011) {
            some[at] = [f64::NAN, f64::INFINITY, -0.0, f64::NEG_INFINITY][at % 4];
        }
        let single = Tensor::new(extents, some.iter().map(|x| *x as f32).collect()).unwrap();
        let whole = Tensor::new(extents, some.iter().map(|x| (x * 1e3) as i64).collect()).unwrap();
        let turned: Vec<usize> = (0..extents.len()).rev().collect();
        let special = Tensor::new(extents, some).unwrap();
        for x in [&special, &single, &whole, &floats.transposed(&turned).unwrap()] {
            let axes: [&'static [usize]; 4] = [&[0], &[1], &[0, 1], &[0, 1, 2]];
            let last = x.extents().len() - 1;
            for axes in axes.into_iter().filter(|axes| axes.iter().all(|axis| *axis <= last)) {
                assert_eq!(reduced(x, moments(axes)), (1, 0), "{extents:?} {axes:?}");
                assert_eq!(reduced(x, extremes(axes)), (1, 0), "{extents:?} {axes:?}");
            }
        }
    }
}

#[test]
fn what_follows_reductions_in_one_loop_is_in_their_step() {
    let x = numbers(&[50, 3000], 5);
    let variance = |g: &mut Graph, x: NodeId| {
        let squares = g.apply("math.multiply", &[x, x]).unwrap();
        let count = g.constant(Scalar::Float64, 150_000.0).unwrap();
        let of = |g: &mut Graph, x| {
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
    let above = |g: &mut Graph, x: NodeId| {
        let (mean, _) = variance(g, x);
        let above = g.apply("math.subtract", &[x, mean]).unwrap();
        let squares = g.apply("math.multiply", &[above, above]).unwrap();
        let largest = g.reduce(Reduction::Max, x, &[0, 1]).unwrap();
        vec![g.reduce(Reduction::Sum, squares, &[0, 1]).unwrap(), largest]
    };
    assert_eq!(reduced(&x, above), (2, 1));
    // Other axes, or another tensor, is another walk.
    let apart = |g: &mut Graph, x: NodeId| {
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
    let between = |g: &mut Graph, x: NodeId| {
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
    let mut g = Graph::standard();
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
