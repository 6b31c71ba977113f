//! Tests products in plans: which following operators run in the same step, which operands are copied, and sums over
//! labels of one operand.

use super::{leaves, numbers, planned, repeated, steps};
use crate::compiled::run;
use cembra::tensor::{CompileGraph, Labels, Slice, Tensor, TensorGraph, TensorNodeId, same_bits};
use cembra::{Options, Scalar};
use cembra_engine::run_plan;
use cembra_engine::{Evaluator, PlainProduct, contract};
use cembra_tensor::Operation;
use std::sync::Arc;

/// Returns a tensor of small whole numbers, of which sums of products are exact in any order.
fn wholes(extents: &[usize], seed: usize) -> Tensor {
    const PERIOD: usize = 17;
    repeated(extents, PERIOD, |at| ((at * 31 + seed) % PERIOD) as f64 - 8.0)
}

/// Returns the counters of a plan with products of matrices, and asserts that it gives the reference's results on whole
/// numbers.
fn multiplied(graph: &TensorGraph, output: TensorNodeId) -> (usize, usize, u64) {
    let inputs: Vec<Tensor> =
        graph.leaves().iter().enumerate().map(|(at, leaf)| wholes(graph.extents(leaf.node), at)).collect();
    let on = Arc::new(Evaluator::new(&Options::default()));
    let expected = on.evaluate(graph, &[output], &inputs).expect("a value");
    let plan = on.plan(graph, &[output]).expect("a value");
    let (found, counters) = run_plan(&plan, &inputs).expect("a value");
    assert_eq!(found[0], expected[0], "{plan}");
    let in_order = Arc::new(Evaluator::new(&Options::default().reference_order(true)));
    let plan = in_order.plan(graph, &[output]).expect("a value");
    let (found, in_order) = run_plan(&plan, &inputs).expect("a value");
    assert!(same_bits(&found[0], &expected[0]));
    assert_eq!(in_order.gemm_calls, 0);
    (plan.counters().steps, plan.counters().temporaries, counters.gemm_calls)
}

#[test]
fn the_listing_of_a_product_says_what_it_copies() {
    let on = Arc::new(Evaluator::new(&Options::default()));
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
        let mut g = TensorGraph::standard();
        let [a, b] = leaves(&mut g, [&extents[0], &extents[1]]);
        let product = g.einsum(spec, &[a, b]).unwrap();
        let planned = on.plan(&g, &[product]).unwrap();
        let listing = planned.to_string();
        assert!(listing.lines().next().unwrap().contains(line), "{listing}");
        // It is what running it counts.
        let (_, counters) = run_plan(&planned, &[numbers(&extents[0], 0), numbers(&extents[1], 1)]).unwrap();
        assert_eq!(listing.matches("[P (").count() as u64, counters.permutes, "{listing}");
        let moves = format!("moves {} bytes", counters.permute_bytes);
        let total =
            format!("temporaries of 0 bytes, {} permutes of {} bytes", counters.permutes, counters.permute_bytes);
        assert_eq!(listing.contains(&moves), counters.permutes > 0, "{listing}");
        assert_eq!(listing.trim_end().ends_with(&total), counters.permutes > 0, "{listing}");
    }
    // A transposition and the scale are folded into the product, a slice is seen as it lies, and so are views of views.
    let mut g = TensorGraph::standard();
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
fn maps_of_a_product_are_in_its_step() {
    let mut g = TensorGraph::standard();
    let [a, b, bias, mask] = leaves(&mut g, [&[600, 6], &[6, 700], &[700], &[600, 700]]);
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
    let [c, thin] = leaves(&mut g, [&[600, 6], &[6, 20]]);
    let both = g.apply("math.add", &[a, c]).unwrap();
    let product = g.einsum("ik,kj->ij", &[both, b]).unwrap();
    assert_eq!(multiplied(&g, product), (2, 1, 1));
    // Of what is read twice there is one value, so it is no part of what follows.
    let product = g.einsum("ik,kj->ij", &[both, thin]).unwrap();
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
    let mut g = TensorGraph::standard();
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
    let mut g = TensorGraph::standard();
    let [zero, minus] = leaves(&mut g, [&[1], &[1]]);
    let outputs = ["i,i->i", "i,j->ij", "i,i->"].map(|spec| g.einsum(spec, &[zero, minus]).unwrap());
    let inputs = [0.0, -1.0].map(|number| Tensor::new(&[1], vec![number]).unwrap());
    let labels = |operands: [&[u8]; 2], output: &[u8]| Labels {
        operands: operands.map(|labels| labels.into()).to_vec(),
        output: output.into(),
    };
    let ways = [labels([&[0], &[0]], &[0]), labels([&[0], &[1]], &[0, 1]), labels([&[0], &[0]], &[])];
    for options in [Options::default(), Options::default().reference_order(true)] {
        let (executor, on) = (g.compile(&outputs, &options).unwrap(), Evaluator::new(&options));
        let planned = run(&executor, &inputs).unwrap();
        let expected = executor.run_reference(&inputs).unwrap();
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
            let mut g = TensorGraph::standard();
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
            let mut g = TensorGraph::standard();
            let [x] = leaves(&mut g, [&extents]);
            let sum = g.einsum(spec, &[x]).unwrap();
            assert_eq!(planned(&g, &[sum]).steps, 1, "{spec}");
        }
    }
    // What is summed is no temporary, and what follows is in the same step; of a transposed tensor it is one view.
    let mut g = TensorGraph::standard();
    let [x] = leaves(&mut g, [&[300, 40]]);
    let e = g.apply("exp", &[x]).unwrap();
    let turned = g.transpose(e, &[1, 0]).unwrap();
    let sum = g.einsum("ij->i", &[turned]).unwrap();
    let log = g.apply("log", &[sum]).unwrap();
    assert_eq!(steps(&g, log), (1, 0));
    // Every type: FLOAT32 is added in FLOAT64, integers wrap.
    let mut g = TensorGraph::standard();
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
    let executor = g.compile(&outputs, &Options::default()).unwrap();
    let found = run(&executor, &inputs).unwrap();
    assert_eq!(found.len(), outputs.len());
    for (at, (expected, found)) in executor.run_reference(&inputs).unwrap().iter().zip(&found).enumerate() {
        assert!(same_bits(expected, found), "{at}: {found:?} is not {expected:?}");
    }
    // A sum begins with zero, one of one element too.
    let mut g = TensorGraph::standard();
    let [x] = leaves(&mut g, [&[2, 1]]);
    let sums = ["ij->i", "ij->j"].map(|spec| g.einsum(spec, &[x]).unwrap());
    let minus = Tensor::new(&[2, 1], vec![-0.0, -0.0]).unwrap();
    for made in run(&g.compile(&sums, &Options::default()).unwrap(), &[minus]).unwrap() {
        assert!(made.to_vec::<f64>().unwrap().iter().all(|sum| sum.to_bits() == 0), "{made:?}");
    }
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
            let mut g = TensorGraph::standard();
            let operands = leaves(&mut g, extents).map(|leaf| g.cast(leaf, scalar).unwrap());
            let product = g.einsum(spec, &operands).unwrap();
            let wide = g.cast(product, Scalar::Float64).unwrap();
            assert_eq!(multiplied(&g, wide).2, 0, "{spec}");
        }
    }
}

#[test]
fn large_products_are_cut_by_their_shapes_alone() {
    // The products of matrices, and the permutes, that there are in all panels.
    for (spec, extents, gemm_calls, permutes) in [
        ("ij,jk->ik", [&[512, 512][..], &[512, 512]], 2, 0),
        ("ij,jk->ik", [&[800, 512], &[512, 520]], 3, 0),
        ("ij,jk->ki", [&[300, 640], &[640, 719]], 2, 0),
        // The first axis is that of some rows, and of whole matrices.
        ("ijk,kl->ijl", [&[64, 128, 128], &[128, 130]], 2, 0),
        ("bij,bjk->bik", [&[9, 256, 256], &[9, 256, 256]], 9, 0),
        // Loops are cut, too, and what lies together is left so.
        ("ij,j->i", [&[4100, 1100], &[1100]], 0, 0),
        ("ij,i->j", [&[300, 15_000], &[300]], 0, 0),
        ("ji,j->i", [&[300, 15_001], &[300]], 0, 0),
        ("ij,ji->i", [&[2100, 2100], &[2100, 2100]], 0, 0),
        ("kij,ij->ik", [&[4, 1100, 1100], &[1100, 1100]], 0, 0),
        // There would be too few rows of each, too few multiplications, and what is copied would be for each.
        ("ij,jk->ik", [&[511, 512], &[512, 514]], 1, 0),
        ("afb,cadfe->bcde", [&[10, 10, 512], &[15, 10, 15, 10, 15]], 1, 1),
    ] {
        let mut g = TensorGraph::standard();
        let [a, b] = leaves(&mut g, extents);
        let product = g.einsum(spec, &[a, b]).unwrap();
        let inputs = [wholes(extents[0], 1), wholes(extents[1], 2)];
        let Operation::Contract(labels) = &g.node(product).operation else { panic!("{spec}") };
        let (expected, _) = contract(labels, [&inputs[0], &inputs[1]], g.extents(product), &PlainProduct).unwrap();
        let fractions = [numbers(extents[0], 1), numbers(extents[1], 2)];
        let mut before = None;
        for threads in [1, 3] {
            let on = Arc::new(Evaluator::new(&Options::default()).threads(threads));
            let planned = on.plan(&g, &[product]).unwrap();
            let (found, counters) = run_plan(&planned, &fractions).unwrap();
            assert_eq!((counters.gemm_calls, counters.permutes), (gemm_calls, permutes), "{spec} on {threads} threads");
            let before: &Tensor = before.get_or_insert_with(|| found[0].clone());
            assert!(same_bits(&found[0], before), "{spec} on {threads} threads");
            // What one thread makes is the same.
            if threads > 1 {
                let (found, _) = run_plan(&planned, &inputs).unwrap();
                assert_eq!(found[0].data(), &expected, "{spec} on {threads} threads");
            }
        }
    }
}
