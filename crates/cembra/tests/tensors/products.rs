//! Tests the fast implementation of products of two tensors by labels: which operands it copies, and that results are
//! those of the reference.

use cembra::tensor::{Data, Element, Labels, Layout, Slice, Tensor, TensorErrorKind, TensorGraph, same_bits};
use cembra::{Options, Scalar};
use cembra_engine::{
    Evaluator, MatrixLayout, MatrixProduct, Multiplication, PlainProduct, Products, contract, matrices,
};
use cembra_tensor::{Axes, Axis};
use cembra_tensor::{Kernel, ProductPlan};
use fastrand::Rng;
use std::sync::Arc;

fn labels(spec: &str) -> Labels {
    let (operands, output) = spec.split_once("->").expect("a result");
    let axes = |text: &str| text.bytes().map(|letter| letter - b'a').collect::<Axes>();
    Labels { operands: operands.split(',').map(axes).collect(), output: axes(output) }
}

/// Returns the number of operands and results that a product copies, and the number of products of matrices, for
/// row-major operands.
fn planned(spec: &str, extent: impl Fn(Axis) -> usize) -> (usize, usize) {
    let labels = labels(spec);
    let layout =
        |own: &Axes| Layout::row_major(&own.iter().map(|label| extent(*label)).collect::<Vec<_>>()).expect("fits");
    let [a, b] = &labels.operands[..] else { panic!("two operands") };
    let plan = ProductPlan::of(&labels, [&layout(a), &layout(b)], 4).expect("a plan");
    let calls = match &plan.kernel {
        Kernel::Matrices { kept, summed, .. } => kept.iter().chain(summed).map(|run| run.extent).product(),
        _ => 0,
    };
    (plan.permutes(), calls)
}

#[test]
fn large_products_copy_nothing() {
    // The extent of the label `a` is 70, of `b` 71, and so on.
    for (spec, calls) in [
        ("ij,jk->ik", 1),
        ("ji,jk->ik", 1),
        ("ij,kj->ik", 1),
        ("ji,kj->ik", 1),
        ("ij,jk->ki", 1),
        ("ji,jk->ki", 1),
        ("ij,kj->ki", 1),
        ("ji,kj->ki", 1),
        ("ijk,kl->ijl", 1),
        ("ijk,lk->ijl", 1),
        ("ijk,kl->lij", 1),
        ("kij,kl->ijl", 1),
        ("ijk,jkl->il", 1),
        ("abc,abd->cd", 1),
        ("ijkl,klmn->ijmn", 1),
        ("klij,klmn->mnij", 1),
        ("iij,jk->ik", 1),
        ("ijl,jk->ik", 1),
        // What breaks nesting is looped over: the smaller one.
        ("ijk,jl->lik", 78),
        ("ijk,jl->ilk", 78),
        ("ijk,kjl->il", 79),
        ("ijk,kil->jl", 78),
        ("abc,bad->cd", 70),
        ("ijkl,lkmn->ijmn", 80),
        ("ijk,lkj->il", 79),
        // What both have and the result keeps is, too.
        ("bij,bjk->bik", 71),
        ("bij,bkj->bik", 71),
        ("bij,bjk->bki", 71),
        ("ijk,ikl->jil", 78),
        ("bhqd,bhkd->bhqk", 71 * 77),
        ("bhqk,bhkd->bqhd", 71 * 77),
        ("bqhd,bkhd->bhqk", 71 * 77),
        // These are no products of matrices.
        ("ij,ij->ij", 0),
        ("ij,ij->ji", 0),
        ("ij,ji->ij", 0),
        ("i,j->ij", 0),
        ("ij,kl->ljki", 0),
        (",ij->ji", 0),
        ("ij,ij->", 0),
        ("ij,ji->", 0),
        ("ij,j->i", 0),
        ("ij,i->j", 0),
        ("ijk,j->ik", 0),
        ("ijk,ik->j", 0),
        ("bi,bi->b", 0),
        ("ib,bi->b", 0),
        ("ij,jk->k", 0),
    ] {
        assert_eq!(planned(spec, |label| 70 + usize::from(label)), (0, calls), "{spec}");
    }
}

#[test]
fn small_products_copy_the_least_that_makes_matrices_of_them() {
    for (spec, permutes, calls) in [
        ("ijk,kl->ijl", 0, 1),
        ("ijk,jl->lik", 1, 1),
        ("ijk,kjl->il", 1, 1),
        ("ijk,lkj->il", 1, 1),
        ("ijk,jl->ilk", 2, 1),
        ("ijkl,jmln->ikmn", 2, 1),
        ("ijkl,jmln->imkn", 3, 1),
        ("bij,bjk->bik", 0, 6),
        ("bijk,bjl->blik", 1, 6),
        // An operand that is summed before is made in the order that is wanted.
        ("ijkn,jl->lik", 0, 1),
        ("ijk,jln->ilk", 2, 1),
    ] {
        assert_eq!(planned(spec, |_| 6), (permutes, calls), "{spec}");
    }
}

#[test]
fn the_smaller_operand_is_copied() {
    let extents = |large: Axis| move |label: Axis| if label == large - b'a' { 50 } else { 5 };
    let (small, plan) = (labels("ijk,kjl->il"), |of: u8| {
        let labels = labels("ijk,kjl->il");
        let layout =
            |own: &Axes| Layout::row_major(&own.iter().map(|l| extents(of)(*l)).collect::<Vec<_>>()).expect("fits");
        ProductPlan::of(&labels, [&layout(&labels.operands[0]), &layout(&labels.operands[1])], 4).expect("fits")
    });
    assert_eq!(small.operands.len(), 2);
    let copied = |plan: &ProductPlan| plan.operands.each_ref().map(|o| !matches!(o, cembra_tensor::Preparation::None));
    assert_eq!(copied(&plan(b'i')), [false, true]);
    assert_eq!(copied(&plan(b'l')), [true, false]);
    // Of two as large the left one.
    assert_eq!(copied(&plan(b'j')), [true, false]);
}

/// Returns the product of `operands` as the reference computes it.
fn expected(labels: &Labels, operands: [&Tensor; 2]) -> Tensor {
    let mut graph = TensorGraph::standard();
    let leaves = operands.map(|operand| graph.leaf("", operand.scalar_type(), operand.extents()).expect("fits"));
    let product = graph.contract(labels.clone(), &leaves).expect("labels that fit");
    let made = Evaluator::new(&Options::default()).evaluate(&graph, &[product], &operands.map(Clone::clone));
    made.expect("a value").remove(0)
}

fn made(labels: &Labels, operands: [&Tensor; 2], extents: &[usize], matrices: &dyn MatrixProduct) -> Tensor {
    let (data, _) = contract(labels, operands, extents, matrices).expect("a product");
    Tensor::from_parts(data, Layout::row_major(extents).expect("fits")).expect("fits")
}

/// Returns a tensor of random whole numbers from -4 to 4. Their sums are exact in any order.
fn whole(rng: &mut Rng, scalar: Scalar, extents: &[usize]) -> Tensor {
    fn of<T: Element>(rng: &mut Rng, extents: &[usize], element: impl Fn(i8) -> T) -> Tensor {
        let mut bytes = vec![0_u8; extents.iter().product()];
        rng.fill(&mut bytes);
        Tensor::new(extents, bytes.iter().map(|byte| element((byte % 9) as i8 - 4)).collect()).expect("fits")
    }
    match scalar {
        Scalar::Int32 => of(rng, extents, i32::from),
        Scalar::Int64 => of(rng, extents, i64::from),
        Scalar::Float32 => of(rng, extents, f32::from),
        _ => of(rng, extents, f64::from),
    }
}

/// Returns a random view with the extents `extents`: its axes have another order in memory, and some have the stride
/// -1, 2 or 0.
fn view(rng: &mut Rng, scalar: Scalar, extents: &[usize]) -> Tensor {
    let mut order: Vec<usize> = (0..extents.len()).collect();
    rng.shuffle(&mut order);
    let steps: Vec<isize> = extents.iter().map(|_| *rng.choice(&[1, 1, 1, -1, 2]).expect("fits")).collect();
    let is_broadcast: Vec<bool> = extents.iter().map(|_| rng.u8(..) < 20).collect();
    let memory = |axis: usize| if is_broadcast[axis] { 1 } else { extents[axis] * steps[axis].unsigned_abs() };
    let stored = whole(rng, scalar, &order.iter().map(|axis| memory(*axis)).collect::<Vec<_>>());
    let mut place = vec![0; order.len()];
    order.iter().enumerate().for_each(|(at, axis)| place[*axis] = at);
    let slice = |axis: usize| {
        let start = if steps[axis] < 0 { extents[axis].saturating_sub(1) } else { 0 };
        let (start, step) = if is_broadcast[axis] { (0, 1) } else { (start, steps[axis]) };
        Slice { start, step, count: if is_broadcast[axis] { 1 } else { extents[axis] } }
    };
    let slices: Vec<Slice> = (0..extents.len()).map(slice).collect();
    stored.transposed(&place).expect("fits").sliced(&slices).expect("fits").broadcast_to(extents).expect("fits")
}

#[test]
fn products_of_any_labels_and_layouts_are_what_the_reference_says() {
    let mut rng = Rng::with_seed(15);
    let mut seen = [0; 4];
    for round in 0..6_000 {
        // Products of few elements have a way of their own.
        let choice: &[usize] = if round % 3 == 0 { &[1, 2, 2, 3, 3, 4, 5, 0] } else { &[1, 3, 5, 7, 9] };
        let extents: Vec<usize> = (0..5).map(|_| *rng.choice(choice).expect("fits")).collect();
        let extents: Vec<usize> = extents.into_iter().map(|e| if e == 0 && rng.u8(..) < 200 { 2 } else { e }).collect();
        let mut axes = |most: usize| (0..rng.usize(most / 2..=most)).map(|_| rng.u8(0..5)).collect::<Axes>();
        let operands = vec![axes(5), axes(4)];
        let mut output: Vec<Axis> = operands.iter().flatten().copied().collect();
        output.sort_unstable();
        output.dedup();
        rng.shuffle(&mut output);
        output.truncate(rng.usize(output.len() / 3..=output.len()));
        let labels = Labels { operands, output: output.into_iter().collect() };
        let scalar = *rng.choice(&[Scalar::Int32, Scalar::Int64, Scalar::Float32, Scalar::Float64]).expect("fits");
        let of = |axes: &Axes| axes.iter().map(|label| extents[usize::from(*label)]).collect::<Vec<_>>();
        let [a, b] = [0, 1].map(|at| view(&mut rng, scalar, &of(&labels.operands[at])));
        let plan = ProductPlan::of(&labels, [a.layout(), b.layout()], 4).expect("fits");
        seen[match plan.kernel {
            Kernel::Zeros => 0,
            Kernel::Direct { .. } => 1,
            Kernel::Nest { .. } => 2,
            Kernel::Matrices { .. } => 3,
        }] += 1;
        let expected = expected(&labels, [&a, &b]);
        for matrices in [matrices(), &PlainProduct] {
            let found = made(&labels, [&a, &b], &of(&labels.output), matrices);
            assert_eq!(found, expected, "{round}: {labels:?} of {:?} and {:?}: {plan:?}", a.layout(), b.layout());
        }
    }
    assert!(seen.iter().all(|count| *count > 150), "{seen:?}");
}

/// Returns the labels for the product of a tensor with `rank` axes and a vector over its axis `axis`. With `is_turned`,
/// the vector is the first operand.
fn times_vector(rank: u8, axis: u8, is_turned: bool) -> Labels {
    let (tensor, vector): (Axes, Axes) = ((0..rank).collect(), [axis][..].into());
    let operands = if is_turned { vec![vector, tensor] } else { vec![tensor, vector] };
    Labels { operands, output: (0..rank).filter(|label| *label != axis).collect() }
}

/// Calls `with` for all numbers of axes from 2 to 5, all summed axes, and extents around the limits of the vectorised
/// loops.
fn for_each_axis(mut with: impl FnMut(u8, u8, &[usize])) {
    const EDGES: [usize; 9] = [1, 2, 7, 8, 9, 27, 63, 64, 65];
    for (rank, summed, behind) in
        (2..=5).flat_map(|rank| EDGES.map(|summed| EDGES.map(|behind| (rank, summed, behind)))).flatten()
    {
        for axis in 0..rank {
            let mut extents = vec![2; usize::from(rank)];
            // Of the last axis the lines are long if the one before it is, too.
            extents[usize::from(if axis + 1 == rank { axis - 1 } else { axis + 1 })] = behind;
            extents[usize::from(axis)] = summed;
            with(rank, axis, &extents);
        }
    }
}

#[test]
fn tensors_times_vectors_are_what_the_reference_says() {
    let mut rng = Rng::with_seed(27);
    let scalars = [Scalar::Int32, Scalar::Int64, Scalar::Float32, Scalar::Float64];
    let mut round = 0;
    for_each_axis(|rank, axis, extents| {
        round += 1;
        for is_view in [false, true] {
            let scalar = scalars[(round + usize::from(is_view)) % 4];
            let vector = [extents[usize::from(axis)]];
            let [tensor, vector] = [extents, &vector[..]].map(|extents| {
                if is_view { view(&mut rng, scalar, extents) } else { whole(&mut rng, scalar, extents) }
            });
            for is_turned in [false, true] {
                let labels = times_vector(rank, axis, is_turned);
                let operands = if is_turned { [&vector, &tensor] } else { [&tensor, &vector] };
                let expected = expected(&labels, operands);
                let found = made(&labels, operands, expected.extents(), &PlainProduct);
                assert_eq!(found, expected, "{labels:?} of {:?} and {:?}", tensor.layout(), vector.layout());
            }
        }
    });
}

#[test]
fn parts_of_tensors_times_vectors_are_what_the_reference_says() {
    let mut rng = Rng::with_seed(30);
    // Lines of other sums lie between those of a sum: of these some are kept at a time, and the last ones are fewer.
    for (extents, part) in [([9, 100, 128], [9, 97, 100]), ([17, 30, 64], [17, 29, 27]), ([9, 3, 5000], [9, 2, 4500])] {
        for scalar in [Scalar::Int32, Scalar::Int64, Scalar::Float32, Scalar::Float64] {
            let all = whole(&mut rng, scalar, &extents);
            let slice = |(at, count): (usize, usize)| Slice { start: extents[at] - count, step: 1, count };
            let slices: Vec<Slice> = part.into_iter().enumerate().map(slice).collect();
            let tensor = all.sliced(&slices).expect("fits");
            for axis in 0..3 {
                let vector = whole(&mut rng, scalar, &[part[usize::from(axis)]]);
                let labels = times_vector(3, axis, false);
                let expected = expected(&labels, [&tensor, &vector]);
                let found = made(&labels, [&tensor, &vector], expected.extents(), &PlainProduct);
                assert_eq!(found, expected, "{axis} of {part:?}, {scalar:?}");
            }
        }
    }
}

#[test]
fn integers_wrap_in_products_with_vectors() {
    for (extents, axis) in [([40, 30], 0), ([40, 30], 1), ([30, 300], 0), ([30, 300], 1)] {
        let large = |at: usize| i32::MAX.wrapping_sub(at as i32 * 7919);
        let tensor = Tensor::new(&extents, (0..extents[0] * extents[1]).map(large).collect()).expect("fits");
        let count = extents[axis];
        let vector =
            Tensor::new(&[count], (0..count).map(|at| i32::MIN + at as i32 * 104_729).collect()).expect("fits");
        let labels = times_vector(2, axis as u8, false);
        let expected = expected(&labels, [&tensor, &vector]);
        assert_eq!(made(&labels, [&tensor, &vector], expected.extents(), &PlainProduct), expected);
    }
}

/// Returns a tensor of random numbers of which sums are rounded.
fn fractions(rng: &mut Rng, extents: &[usize]) -> Tensor {
    Tensor::new(extents, (0..extents.iter().product()).map(|_| rng.f64() - 0.5).collect()).expect("fits")
}

#[test]
fn products_with_vectors_are_near_to_the_reference() {
    let mut rng = Rng::with_seed(28);
    for_each_axis(|rank, axis, extents| {
        let (tensor, vector) = (fractions(&mut rng, extents), fractions(&mut rng, &[extents[usize::from(axis)]]));
        let labels = times_vector(rank, axis, false);
        let expected = expected(&labels, [&tensor, &vector]);
        let found = made(&labels, [&tensor, &vector], expected.extents(), &PlainProduct);
        let (found, expected) = (found.to_vec::<f64>().expect("fits"), expected.to_vec::<f64>().expect("fits"));
        assert!(found.iter().zip(&expected).all(|(a, b)| (a - b).abs() <= 1e-14), "{labels:?} of {extents:?}");
    });
}

#[test]
fn operands_that_lie_across_are_read_in_blocks() {
    let mut rng = Rng::with_seed(33);
    let scalars = [Scalar::Int32, Scalar::Int64, Scalar::Float32, Scalar::Float64];
    // What the letters `i`, `j` and `k` have: less than a block, several, and parts of one.
    let sizes = [[8, 16, 1], [9, 40, 2], [150, 1100, 1], [70, 200, 3], [1100, 64, 2], [3, 130, 20]];
    for (size, sizes) in sizes.into_iter().enumerate() {
        let specs =
            ["ij,ji->ij", "ij,ji->", "ij,ji->i", "ij,ji->j", "kij,ji->ki", "ijk,kji->jk", "ji,kij->k", "ij,ji->ji"];
        for (at, spec) in specs.into_iter().enumerate() {
            let labels = labels(spec);
            let of = |axes: &Axes| axes.iter().map(|label| sizes[usize::from(*label - 8)]).collect::<Vec<_>>();
            // Each type meets all sizes, and all labels.
            let scalar = scalars[(size + at) % scalars.len()];
            let [a, b] = [0, 1].map(|at: usize| whole(&mut rng, scalar, &of(&labels.operands[at])));
            let back = |of: &Tensor| {
                let slice = |count: &usize| Slice { start: count - 1, step: -1, count: *count };
                of.sliced(&of.extents().iter().map(slice).collect::<Vec<_>>()).expect("a view")
            };
            for (a, b) in [(a.clone(), b.clone()), (a.clone(), back(&b)), (back(&a), b)] {
                let expected = expected(&labels, [&a, &b]);
                let found = made(&labels, [&a, &b], expected.extents(), &PlainProduct);
                assert_eq!(found, expected, "{spec} of {sizes:?}, {scalar:?}");
            }
        }
    }
}

#[test]
fn vectors_are_multiplied_from_either_end() {
    let mut rng = Rng::with_seed(34);
    let labels = labels("i,i->");
    for count in [255, 1023, 1024, 1025, 5000] {
        let (a, b) = (fractions(&mut rng, &[count]), fractions(&mut rng, &[3 * count]));
        for step in [1, -1, 3] {
            let start = if step < 0 { count - 1 } else { 0 };
            let part = b.sliced(&[Slice { start, step, count }]).expect("a view");
            let expected = expected(&labels, [&a, &part]).to_vec::<f64>().expect("a number")[0];
            let found = made(&labels, [&a, &part], &[], &PlainProduct).to_vec::<f64>().expect("a number")[0];
            assert!((found - expected).abs() <= 1e-13, "{count} by {step}: {found} is not {expected}");
        }
    }
}

/// Returns the sum of products in the documented order for contiguous vectors: in 16 partial sums, 64 from 1,024 terms
/// on, which are joined to 8; then the remaining terms.
fn sum_along(a: &[f64], b: &[f64]) -> f64 {
    let groups = if a.len() < 1024 { 2 } else { 8 };
    let mut sums = vec![[0.0; 8]; groups];
    let (whole, all) = (a.len() / (8 * groups) * groups, a.len() / 8);
    for at in 0..8 * all {
        // The terms after the last full group are added once the groups are joined to one.
        if at == 8 * whole {
            join(&mut sums);
        }
        let group = if at < 8 * whole { at / 8 % groups } else { 0 };
        sums[group][at % 8] += a[at] * b[at];
    }
    join(&mut sums);
    let mut sum: f64 = sums[0].iter().fold(0.0, |sum, lane| sum + lane);
    for at in 8 * all..a.len() {
        sum += a[at] * b[at];
    }
    sum
}

fn join(sums: &mut Vec<[f64; 8]>) {
    for group in sums.drain(1..).collect::<Vec<_>>() {
        (0..8).for_each(|lane| sums[0][lane] += group[lane]);
    }
}

#[test]
fn sums_are_added_in_one_order_on_every_machine() {
    // Lines that are cut into chunks are added 256 at a time: more of them are more of the same.
    const WIDE: usize = ProductPlan::CHUNK + 4;
    const MOST_WIDE: usize = 300;
    let mut rng = Rng::with_seed(29);
    for count in [27, 63, 64, 65, 129, 300, 1023, 1024, 2000, 5000] {
        let vector = fractions(&mut rng, &[count]);
        let numbers = vector.to_vec::<f64>().expect("fits");
        for width in [5, 8, 27, 64, 65, WIDE] {
            if width == WIDE && count > MOST_WIDE {
                continue;
            }
            let matrix = fractions(&mut rng, &[count, width]);
            let elements = matrix.to_vec::<f64>().expect("fits");
            // Lines are added one after the other.
            let mut expected = vec![0.0; width];
            for (line, number) in elements.chunks_exact(width).zip(&numbers) {
                expected.iter_mut().zip(line).for_each(|(sum, element)| *sum += element * number);
            }
            let labels = times_vector(2, 0, false);
            let found = made(&labels, [&matrix, &vector], &[width], &PlainProduct);
            assert_eq!(found.to_vec::<f64>().expect("fits"), expected, "{count} lines of {width}");
        }
        // What is added along a line has chains, the more the longer it is.
        let line = fractions(&mut rng, &[count]);
        let elements = line.to_vec::<f64>().expect("fits");
        let labels = times_vector(2, 1, false);
        let matrix = line.reshaped(&[1, count]).expect("fits").broadcast_to(&[20, count]).expect("fits");
        let found = made(&labels, [&matrix, &vector], &[20], &PlainProduct);
        assert_eq!(found.to_vec::<f64>().expect("fits"), [sum_along(&elements, &numbers); 20], "a line of {count}");
    }
}

#[test]
fn slices_of_large_products_are_added_and_put_in_place() {
    let mut rng = Rng::with_seed(4);
    let sizes = |label: Axis| match label + b'a' {
        b's' => 3,
        b't' => 2,
        _ => 65,
    };
    let scalars = [Scalar::Float32, Scalar::Float64, Scalar::Int32];
    let specs = [("skj,jl->lsk", 1), ("sjk,jl->lsk", 3), ("isk,ksl->il", 3), ("tisk,tksl->itl", 6)];
    for (at, (spec, calls)) in specs.into_iter().enumerate() {
        let labels = labels(spec);
        let of = |axes: &Axes| axes.iter().map(|label| sizes(*label)).collect::<Vec<_>>();
        let extents = of(&labels.output);
        // Two of the types for each, so that each type has slices that are added and slices that are put in place.
        for scalar in [at, at + 1].map(|at| scalars[at % scalars.len()]) {
            let [a, b] = [0, 1].map(|at| whole(&mut rng, scalar, &of(&labels.operands[at])));
            let expected = expected(&labels, [&a, &b]);
            for matrices in [matrices(), &PlainProduct] {
                let (data, counters) = contract(&labels, [&a, &b], &extents, matrices).expect("fits");
                assert_eq!((counters.gemm_calls, counters.permutes, counters.temporaries), (calls, 0, 0), "{spec}");
                let found = Tensor::from_parts(data, Layout::row_major(&extents).expect("fits")).expect("fits");
                assert_eq!(found, expected, "{spec}");
            }
        }
    }
}

#[test]
fn matrices_of_any_number_of_columns_are_made_of_pieces() {
    let mut rng = Rng::with_seed(12);
    // Up to one piece, with little and with much left over, of several; wide ones too, and ones of many terms.
    for columns in [47, 48, 49, 95, 96, 97, 100, 113, 128, 144, 145, 191, 192, 193, 384, 385, 400] {
        for [rows, terms] in [[70, 64], [20, 400], [5, 9]] {
            for spec in ["ij,jk->ik", "ji,jk->ik", "ij,kj->ki"] {
                let labels = labels(spec);
                let of = |axes: &Axes| axes.iter().map(|l| [rows, terms, columns][usize::from(*l - 8)]).collect();
                let extents: [Vec<usize>; 3] = [&labels.operands[0], &labels.operands[1], &labels.output].map(of);
                for scalar in [Scalar::Float32, Scalar::Float64] {
                    let [a, b] = [0, 1].map(|at: usize| whole(&mut rng, scalar, &extents[at]));
                    let [found, plain] = [matrices(), &PlainProduct]
                        .map(|matrices: &dyn MatrixProduct| made(&labels, [&a, &b], &extents[2], matrices));
                    assert_eq!(found, plain, "{spec} of {rows}, {columns} and {terms}, {scalar:?}");
                }
            }
        }
    }
}

#[test]
fn sums_of_floats_are_near_and_always_the_same() {
    let mut rng = Rng::with_seed(9);
    for spec in ["ij,jk->ik", "ij,j->i", "ij,i->j", "ij,ij->", "hij,hjk->ihk"] {
        let labels = labels(spec);
        // A few slices, each a product of its own.
        let extent = |label: &Axis| if label + b'a' == b'h' { 3 } else { 40 + 7 * usize::from(*label) };
        let of = |axes: &Axes| axes.iter().map(extent).collect::<Vec<_>>();
        let [a, b] = [0, 1].map(|at: usize| {
            let extents = of(&labels.operands[at]);
            let count: usize = extents.iter().product();
            Tensor::new(&extents, (0..count).map(|_| rng.f32() - 0.5).collect()).expect("fits")
        });
        let (expected, extents) = (expected(&labels, [&a, &b]), of(&labels.output));
        for matrices in [matrices(), &PlainProduct] {
            let found = made(&labels, [&a, &b], &extents, matrices);
            assert!(same_bits(&found, &made(&labels, [&a, &b], &extents, matrices)), "{spec}");
            let (found, expected) = (found.to_vec::<f32>().expect("fits"), expected.to_vec::<f32>().expect("fits"));
            // Without matrices sums are in a wider type, so only the order tells.
            let bound = if spec.ends_with('k') { 2e-5 } else { 1e-5 };
            assert!(found.iter().zip(&expected).all(|(a, b)| (a - b).abs() <= bound), "{spec}");
        }
    }
}

#[test]
fn what_is_copied_is_counted() {
    let labels = labels("ijk,jl->ilk");
    let mut rng = Rng::with_seed(1);
    let (a, b) = (whole(&mut rng, Scalar::Float64, &[3, 3, 4]), whole(&mut rng, Scalar::Float64, &[3, 5]));
    let (made, counters) = Evaluator::new(&Options::default()).contract(&labels, [&a, &b], &[3, 5, 4]).expect("fits");
    assert_eq!(made, expected(&labels, [&a, &b]));
    assert_eq!((counters.gemm_calls, counters.permutes, counters.temporaries), (1, 2, 2));
    assert_eq!(counters.permute_bytes, 8 * (36 + 60));
}

#[test]
fn planned_products_are_written_over_what_is_there() {
    let mut rng = Rng::with_seed(6);
    let products = Products::new(matrices());
    // By loops, as products of matrices, and of labels whose result is made in another order first.
    for spec in ["ij,jk->ik", "ij,j->i", "ij,i->j", "ij,ij->ij", "ij,jk->k", "ijk,jl->lik", "ijk,jl->ilk"] {
        for scalar in [Scalar::Int32, Scalar::Int64, Scalar::Float32, Scalar::Float64] {
            let labels = labels(spec);
            let of = |axes: &Axes| axes.iter().map(|label| 9 + usize::from(label % 4)).collect::<Vec<_>>();
            let [a, b] = [0, 1].map(|at| whole(&mut rng, scalar, &of(&labels.operands[at])));
            let planned = products.planned(&labels, [&a, &b]).expect("fits");
            let expected = expected(&labels, [&a, &b]);
            assert_eq!(planned.extents(), expected.extents());
            let len: usize = planned.extents().iter().product();
            let before = whole(&mut rng, scalar, &[len + 5]);
            let mut to = before.data().clone();
            planned.run_into([&a, &b], &mut to, 2).expect("a product");
            let line = Layout::row_major(&[len + 5]).expect("fits");
            let to = Tensor::from_parts(to, line).expect("fits");
            let part = |of: &Tensor, start, count| of.sliced(&[Slice { start, step: 1, count }]).expect("fits");
            assert_eq!(part(&to, 2, len), expected.reshaped(&[len]).expect("fits"), "{spec} {scalar:?}");
            for (start, count) in [(0, 2), (len + 2, 3)] {
                assert_eq!(part(&to, start, count), part(&before, start, count), "{spec} {scalar:?}");
            }
            let mut again = before.data().clone();
            planned.run_into([&a, &b], &mut again, 2).expect("a product");
            assert_eq!(&again, to.data());
            // Memory that is too small, or of another type, stays as it is.
            for first in [6, len + 6, usize::MAX] {
                let kind = planned
                    .run_into([&a, &b], &mut again, first)
                    .expect_err("refused")
                    .tensor_kind()
                    .expect("of tensors");
                assert_eq!((kind, &again), (TensorErrorKind::Index, to.data()));
            }
            let kind = planned
                .run_into([&a, &b], &mut bool::data(vec![true; len]), 0)
                .expect_err("refused")
                .tensor_kind()
                .expect("of tensors");
            assert_eq!(kind, TensorErrorKind::ElementType);
        }
    }
}

#[test]
fn planned_products_are_of_other_places_in_memory_too_but_not_of_other_layouts() {
    let mut rng = Rng::with_seed(7);
    let products = Products::new(&PlainProduct);
    let (labels, all) = (labels("ij,jk->ik"), whole(&mut rng, Scalar::Float64, &[12, 5]));
    let rows = |start, count| all.sliced(&[Slice { start, step: 1, count }, Slice::all(5)]).expect("fits");
    let b = whole(&mut rng, Scalar::Float64, &[5, 6]);
    let planned = products.planned(&labels, [&rows(0, 4), &b]).expect("fits");
    for start in [0, 1, 8] {
        let mut to = f64::data(vec![f64::NAN; 24]);
        planned.run_into([&rows(start, 4), &b], &mut to, 0).expect("a product");
        assert_eq!(&to, expected(&labels, [&rows(start, 4), &b]).data());
        assert!(Arc::ptr_eq(&planned, &products.planned(&labels, [&rows(start, 4), &b]).expect("fits")));
    }
    let mut to = f64::data(vec![7.0; 24]);
    let backwards = all.sliced(&[Slice { start: 3, step: -1, count: 4 }, Slice::all(5)]).expect("fits");
    let of_ints = [whole(&mut rng, Scalar::Int32, &[4, 5]), whole(&mut rng, Scalar::Int32, &[5, 6])];
    for operands in [[&rows(0, 3), &b], [&backwards, &b], [&of_ints[0], &of_ints[1]]] {
        assert!(!planned.fits(operands));
        let kind = planned.run_into(operands, &mut to, 0).expect_err("refused").tensor_kind().expect("of tensors");
        assert_eq!((kind, &to), (TensorErrorKind::SizeMismatch, &f64::data(vec![7.0; 24])));
    }
}

#[test]
fn products_that_do_not_fit_are_refused() {
    let labels = labels("ij,jk->ik");
    let (a, b) =
        (Tensor::new(&[2, 2], vec![1.0; 4]).expect("fits"), Tensor::new(&[2, 3], vec![1.0_f32; 6]).expect("fits"));
    let truths = Tensor::new(&[2, 2], vec![true; 4]).expect("fits");
    let kind = |operands, extents: &[usize]| {
        contract(&labels, operands, extents, &PlainProduct).expect_err("refused").tensor_kind().expect("of tensors")
    };
    assert_eq!(kind([&a, &b], &[2, 3]), TensorErrorKind::ElementType);
    assert_eq!(kind([&truths, &truths], &[2, 2]), TensorErrorKind::ElementType);
    assert_eq!(kind([&a, &a], &[2, 3]), TensorErrorKind::SizeMismatch);
    assert_eq!(kind([&b, &b], &[2, 3]), TensorErrorKind::SizeMismatch);
}

#[test]
fn matrices_outside_of_their_memory_are_refused() {
    let layout = |offset, rows, columns, row_stride, column_stride| MatrixLayout {
        offset,
        rows,
        columns,
        row_stride,
        column_stride,
    };
    let good = layout(0, 2, 2, 2, 1);
    let (a, mut to) = ([1.0; 4], [0.0; 4]);
    let mut kind = |result, left, right| {
        Multiplication::new((&mut to, result), (&a, left), (&a, right), false)
            .map(|_| ())
            .map_err(|error| error.tensor_kind().expect("of tensors"))
    };
    assert_eq!(kind(good, good, good), Ok(()));
    assert_eq!(kind(good, layout(1, 2, 2, 2, -1), layout(3, 2, 2, -1, -2)), Ok(()));
    assert_eq!(kind(good, layout(1, 2, 2, 2, 1), good), Err(TensorErrorKind::Index));
    assert_eq!(kind(good, good, layout(0, 2, 2, -1, 1)), Err(TensorErrorKind::Index));
    assert_eq!(kind(layout(0, 2, 2, 3, 1), good, good), Err(TensorErrorKind::Index));
    // Distances that no memory has, which add up to what some has.
    for (far, near) in [(isize::MAX, 2), (isize::MIN, 2), (isize::MAX, isize::MIN), (isize::MIN, -1), (-1, -1)] {
        for offset in [0, 1, usize::MAX] {
            assert_eq!(kind(good, layout(offset, 2, 2, far, near), good), Err(TensorErrorKind::Index));
            assert_eq!(kind(good, good, layout(offset, 2, 2, near, far)), Err(TensorErrorKind::Index));
            assert_eq!(kind(layout(offset, 2, 2, far, near), good, good), Err(TensorErrorKind::Index));
        }
    }
    assert_eq!(kind(good, layout(0, 2, usize::MAX, 0, 1), layout(0, usize::MAX, 2, 0, 1)), Err(TensorErrorKind::Index));
    assert_eq!(kind(good, layout(1, 2, 2, 2, -1), layout(2, 2, 2, -1, 2)), Err(TensorErrorKind::Index));
    assert_eq!(kind(layout(3, 2, 2, -1, -2), good, good), Ok(()));
    assert_eq!(kind(layout(3, 2, 2, -1, -1), good, good), Err(TensorErrorKind::OverlappingTarget));
    assert_eq!(kind(layout(0, 2, 2, 1, 1), good, good), Err(TensorErrorKind::OverlappingTarget));
    assert_eq!(kind(layout(0, 2, 2, 0, 1), good, good), Err(TensorErrorKind::OverlappingTarget));
    assert_eq!(kind(good, layout(0, 2, 1, 2, 1), good), Err(TensorErrorKind::SizeMismatch));
    // A product of no terms is zeros, by whatever computes it.
    for matrices in [matrices(), &PlainProduct] {
        let mut to = [7.0; 4];
        let (left, right) = (layout(0, 2, 0, 2, 1), layout(0, 0, 2, 2, 1));
        matrices.multiply_f64(Multiplication::new((&mut to, good), (&a, left), (&a, right), false).expect("fits"));
        assert_eq!(to, [0.0; 4]);
    }
    assert!(matches!(contract(&labels("ij,jk->ik"), [&Tensor::new(&[2, 0], Vec::<f32>::new()).expect("fits"),
        &Tensor::new(&[0, 2], Vec::<f32>::new()).expect("fits")], &[2, 2], &PlainProduct).expect("fits").0,
        Data::Float32(zeros) if zeros[..] == [0.0; 4]));
}
