//! Tests `einsum`, products of tensors by labels: which axes are broadcast, which specifications are rejected, and in
//! which order many factors are multiplied.

use crate::compiled::{kind_of, message_of};
use cembra::Options;
use cembra::Scalar::Float64;
use cembra::tensor::{CompileGraph, Labels, MOST_FACTORS, Tensor, TensorErrorKind, TensorGraph};
use cembra_tensor::ProductOrder;
use cembra_tensor::{Axes, Axis};
use fastrand::Rng;
use std::collections::{BTreeMap, BTreeSet};

/// Returns the extents and elements of a product of tensors with the extents `shapes`. The elements of each tensor are
/// 1, 2, 3 and so on.
fn product(spec: &str, shapes: &[&[usize]]) -> Result<(Vec<usize>, Vec<f64>), cembra::Error> {
    let mut g = TensorGraph::standard();
    let (mut leaves, mut tensors) = (Vec::new(), Vec::new());
    for extents in shapes {
        let elements = (1..=extents.iter().product::<usize>()).map(|number| number as f64).collect();
        tensors.push(Tensor::new(extents, elements)?);
        leaves.push(g.leaf("", Float64, extents)?);
    }
    let product = g.einsum(spec, &leaves)?;
    let executor = g.compile(&[product], &Options::default())?;
    let made = executor.run_reference(&tensors)?.swap_remove(0);
    assert_eq!(std::slice::from_ref(&made), executor.session().run_tensors(&tensors)?, "{spec}");
    Ok((made.extents().to_vec(), made.to_vec()?))
}

fn refused(spec: &str, shapes: &[&[usize]]) -> (TensorErrorKind, String) {
    let error = product(spec, shapes).expect_err(spec);
    (kind_of(&error), message_of(&error))
}

#[test]
fn axes_of_one_index_broadcast_to_what_other_operands_have() {
    let values = |spec: &str, shapes: &[&[usize]]| product(spec, shapes).expect(spec);
    assert_eq!(values("i,i->i", &[&[1], &[3]]), (vec![3], vec![1.0, 2.0, 3.0]));
    assert_eq!(values("i,i", &[&[3], &[1]]), (vec![], vec![6.0]));
    assert_eq!(values("ij,jk->ik", &[&[2, 1], &[3, 1]]), (vec![2, 1], vec![6.0, 12.0]));
    assert_eq!(values("ijk,kl,jl", &[&[1, 2, 1], &[1, 2], &[1, 2]]), (vec![1], vec![3.0 * (1.0 + 4.0)]));
    // A diagonal of one index, and letters that stand once where one of their operands broadcasts.
    assert_eq!(values("ii,i->i", &[&[1, 1], &[2]]), (vec![2], vec![1.0, 2.0]));
    assert_eq!(values("i...,i...->...", &[&[1, 2], &[3]]), (vec![2], vec![6.0, 12.0]));
    assert_eq!(values("i,i", &[&[1], &[0]]), (vec![], vec![0.0]));
    // Axes of one operand make a diagonal, and do not broadcast.
    assert_eq!(refused("ii", &[&[1, 3]]).0, TensorErrorKind::SizeMismatch);
    assert_eq!(refused("ii,i", &[&[1, 3], &[3]]).0, TensorErrorKind::SizeMismatch);
    assert_eq!(refused("i,i", &[&[2], &[3]]).0, TensorErrorKind::SizeMismatch);
}

#[test]
fn what_does_not_fit_is_named() {
    let wrong = refused("aabcb,abc", &[&[3, 3, 4, 5, 6], &[3, 4, 5]]);
    assert_eq!(
        wrong,
        (
            TensorErrorKind::SizeMismatch,
            "the label `b` stands for an axis of 4 indices and an axis of 6 indices, which must be equal".to_owned()
        )
    );
    let wrong = refused("...i,...i", &[&[2, 4], &[3, 4]]);
    assert_eq!(
        wrong,
        (
            TensorErrorKind::SizeMismatch,
            "`...` stands for an axis of 2 indices and an axis of 3 indices, which must be equal".to_owned()
        )
    );
}

#[test]
fn labels_are_letters_of_any_script() {
    let greek = product("αβ,βγ->αγ", &[&[2, 3], &[3, 2]]).expect("Greek");
    assert_eq!(greek, product("ab,bc->ac", &[&[2, 3], &[3, 2]]).expect("Latin"));
    // Without a result letters are in the order of their numbers in Unicode.
    assert_eq!(product("βa", &[&[2, 3]]).expect("fits").0, [3, 2]);
    assert_eq!(refused("i1", &[&[2, 2]]).0, TensorErrorKind::BadLabel);
    assert_eq!(refused("i→j", &[&[2, 2]]).0, TensorErrorKind::BadLabel);
}

#[test]
fn there_are_256_labels() {
    // Ideographs, two for each operand.
    let letters: Vec<char> = (0x4e00..).filter_map(char::from_u32).take(258).collect();
    let spec = |count: usize| {
        let pairs: Vec<String> = letters[..count].chunks(2).map(|pair| pair.iter().collect()).collect();
        format!("{}->", pairs.join(","))
    };
    let shapes = |count: usize| vec![&[1_usize, 1][..]; count / 2];
    assert_eq!(product(&spec(256), &shapes(256)).expect("as many as there are"), (vec![], vec![1.0]));
    assert_eq!(refused(&spec(258), &shapes(258)).0, TensorErrorKind::Limit);
    // Axes of `...` are labels, too.
    let spec = format!("{},...->...", spec(256).trim_end_matches("->"));
    assert_eq!(refused(&spec, &[&shapes(256)[..], &[&[2]]].concat()).0, TensorErrorKind::Limit);
}

#[test]
fn long_sums_are_as_exact_as_reductions() {
    let (count, value) = (1_000_000, 1.0 + f64::EPSILON * 8196.0);
    let mut g = TensorGraph::standard();
    let x = g.leaf("x", Float64, &[count]).expect("a leaf");
    let sum = g.einsum("i->", &[x]).expect("a sum");
    let x = Tensor::scalar(value).broadcast_to(&[count]).expect("a view");
    let executor = g.compile(&[sum], &Options::default()).expect("a plan");
    let made = executor.run_reference(&[x]).expect("a number");
    let mean = made[0].get::<f64>(&[]).expect("a number") / count as f64;
    assert!((mean - value).abs() < 1.5e-15, "{mean} is off by {}", mean - value);
}

#[test]
fn products_have_at_most_1024_factors() {
    let vectors = |count: usize| product(&vec!["i"; count].join(","), &vec![&[1_usize][..]; count]);
    assert_eq!(vectors(MOST_FACTORS).expect("as many as there may be"), (vec![], vec![1.0]));
    let error = vectors(MOST_FACTORS + 1).expect_err("one more");
    assert_eq!(kind_of(&error), TensorErrorKind::Limit);
    assert_eq!(message_of(&error), "a product has 1025 tensors; the limit is 1024");
    // Statements multiply so, too, where something is summed; what is not is a chain of any length.
    let statement = |count: usize, target: &str| {
        let text = format!("{target} = {}", vec![r#"a("i,j")"#; count].join(" * "));
        let mut tensors = BTreeMap::from([("a".to_owned(), Tensor::new(&[1, 2], vec![1.0, -1.0])?)]);
        super::statements::run(&text, &mut tensors)?;
        tensors["c"].to_vec::<f64>()
    };
    assert_eq!(statement(MOST_FACTORS, r#"c("i")"#).expect("as many as there may be"), [2.0]);
    let error = statement(MOST_FACTORS + 1, r#"c("i")"#).expect_err("one more");
    assert!(kind_of(&error) == TensorErrorKind::Limit && error.span().is_some(), "{error}");
    assert_eq!(statement(MOST_FACTORS + 1, r#"c("i,j")"#).expect("a chain"), [1.0, -1.0]);
}

#[test]
fn a_product_whose_parts_would_have_too_many_axes_stays_whole() {
    // Each of the three has `stuvwxyz`, which are summed over, and half of the 16 labels of the result: every two have 20 that stay.
    let [a, b, c] = ["abcdefghstuvwxyz", "ijklmnopstuvwxyz", "abcdijklstuvwxyz"];
    let spec = format!("{a},{b},{c}->abcdefghijklmnop");
    let extents: Vec<usize> = (0..16).map(|axis| if axis % 5 == 0 { 2 } else { 1 }).collect();
    let (made, values) =
        product_of_ones(&spec, &[&extents, &extents, &[&extents[..4], &extents[..4], &extents[8..]].concat()]);
    let kept = [&extents[..8], &extents[..8]].concat();
    // Labels `u` and `z` have two indices.
    assert_eq!((values.len(), values[0], made), (kept.iter().product(), 4.0, kept));
}

fn product_of_ones(spec: &str, shapes: &[&[usize]]) -> (Vec<usize>, Vec<f64>) {
    let mut g = TensorGraph::standard();
    let leaves: Vec<_> = shapes.iter().map(|extents| g.leaf("", Float64, extents).expect("a leaf")).collect();
    let tensors: Vec<_> =
        shapes.iter().map(|extents| Tensor::scalar(1.0).broadcast_to(extents).expect("a view")).collect();
    let product = g.einsum(spec, &leaves).expect(spec);
    let mut session = g.compile(&[product], &Options::default()).expect(spec).session();
    let made = &session.run_tensors(&tensors).expect(spec)[0];
    (made.extents().to_vec(), made.to_vec().expect("numbers"))
}

type Set = BTreeSet<Axis>;

/// A pair of factors: the key by which pairs are compared, the indices of both factors, the cost of their product, and
/// its labels.
type Pair = ((bool, f64), [usize; 2], f64, Set);

/// Returns the pairs of a greedy order of products, and its cost, by the definition: before each product, the best of
/// all remaining pairs is searched for.
fn greedy(labels: &Labels, extents: &[usize], by_cost: bool) -> (Vec<[usize; 2]>, f64) {
    let size = |set: &Set| -> f64 { set.iter().map(|label| extents[usize::from(*label)] as f64).product() };
    let mut left: Vec<Set> = labels.operands.iter().map(|own| own.iter().copied().collect()).collect();
    let output: Set = labels.output.iter().copied().collect();
    let (mut pairs, mut total) = (Vec::new(), 0.0);
    while left.len() > 1 {
        let mut best: Option<Pair> = None;
        for a in 0..left.len() {
            for b in a + 1..left.len() {
                let all: Set = left[a].union(&left[b]).copied().collect();
                let others = (0..left.len()).filter(|at| ![a, b].contains(at)).flat_map(|at| &left[at]);
                let wanted: Set = others.chain(&output).copied().collect();
                let kept: Set = all.intersection(&wanted).copied().collect();
                let operations = if kept == all { size(&all) } else { 2.0 * size(&all) };
                let value = if by_cost { operations } else { size(&kept) - size(&left[a]) - size(&left[b]) };
                let key = (left[a].is_disjoint(&left[b]), value);
                if best.as_ref().is_none_or(|(known, ..)| key < *known) {
                    best = Some((key, [a, b], operations, kept));
                }
            }
        }
        let (_, [a, b], operations, kept) = best.expect("two are left");
        left.remove(b);
        left.remove(a);
        left.push(kept);
        pairs.push([a, b]);
        total += operations;
    }
    (pairs, total)
}

#[test]
fn orders_of_many_factors_are_those_of_looking_at_all_pairs_each_time() {
    let mut rng = Rng::with_seed(7);
    for round in 0..60 {
        let count = rng.usize(9..24);
        // Few labels are in many factors each, many in two or three.
        let known = rng.u8(3..40);
        let axes = |rng: &mut Rng, most: usize| -> Axes {
            let own: BTreeSet<Axis> = (0..rng.usize(0..=most)).map(|_| rng.u8(0..known)).collect();
            own.into_iter().collect()
        };
        let operands: Vec<Axes> = (0..count).map(|_| axes(&mut rng, 4)).collect();
        let mut output = axes(&mut rng, 3);
        output.retain(|label| operands.iter().any(|own| own.contains(label)));
        let labels = Labels { operands, output };
        let extents: Vec<usize> = (0..known).map(|_| rng.usize(1..6)).collect();
        let order = ProductOrder::of(&labels, &extents);
        let ways = [greedy(&labels, &extents, false), greedy(&labels, &extents, true)];
        let best = if ways[1].1 < ways[0].1 { &ways[1] } else { &ways[0] };
        assert_eq!((&order.pairs, order.operations), (&best.0, best.1), "round {round}: {labels:?}");
    }
}
