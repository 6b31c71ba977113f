//! Products by labels as `einsum` writes them: which axes broadcast, and what is refused.

use cembra::Options;
use cembra::Scalar::Float64;
use cembra::tensor::{ErrorKind, Evaluator, Graph, Tensor};

/// The product of tensors of these extents whose elements are 1, 2, 3 and so on: its extents and its elements.
fn product(spec: &str, shapes: &[&[usize]]) -> Result<(Vec<usize>, Vec<f64>), cembra::tensor::Error> {
    let mut g = Graph::standard();
    let (mut leaves, mut tensors) = (Vec::new(), Vec::new());
    for extents in shapes {
        let elements = (1..=extents.iter().product::<usize>()).map(|number| number as f64).collect();
        tensors.push(Tensor::new(extents, elements)?);
        leaves.push(g.leaf("", Float64, extents)?);
    }
    let product = g.einsum(spec, &leaves)?;
    let evaluator = Evaluator::new(&Options::default());
    let made = evaluator.evaluate(&g, &[product], &tensors)?.swap_remove(0);
    let planned = evaluator.plan(&g, &[product])?.run(&tensors)?.swap_remove(0);
    assert_eq!(made, planned, "{spec}");
    Ok((made.extents().to_vec(), made.to_vec()?))
}

fn refused(spec: &str, shapes: &[&[usize]]) -> (ErrorKind, String) {
    let error = product(spec, shapes).expect_err(spec);
    (error.kind(), error.to_string())
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
    assert_eq!(refused("ii", &[&[1, 3]]).0, ErrorKind::SizeMismatch);
    assert_eq!(refused("ii,i", &[&[1, 3], &[3]]).0, ErrorKind::SizeMismatch);
    assert_eq!(refused("i,i", &[&[2], &[3]]).0, ErrorKind::SizeMismatch);
}

#[test]
fn what_does_not_fit_is_named() {
    let wrong = refused("aabcb,abc", &[&[3, 3, 4, 5, 6], &[3, 4, 5]]);
    assert_eq!(wrong, (ErrorKind::SizeMismatch, "the label `b` stands for axes of 4 indices and of 6".to_owned()));
    let wrong = refused("...i,...i", &[&[2, 4], &[3, 4]]);
    assert_eq!(wrong, (ErrorKind::SizeMismatch, "`...` stands for axes of 2 indices and of 3".to_owned()));
}

#[test]
fn labels_are_letters_of_any_script() {
    let greek = product("αβ,βγ->αγ", &[&[2, 3], &[3, 2]]).expect("Greek");
    assert_eq!(greek, product("ab,bc->ac", &[&[2, 3], &[3, 2]]).expect("Latin"));
    // Without a result letters are in the order of their numbers in Unicode.
    assert_eq!(product("βa", &[&[2, 3]]).expect("fits").0, [3, 2]);
    assert_eq!(refused("i1", &[&[2, 2]]).0, ErrorKind::BadLabel);
    assert_eq!(refused("i→j", &[&[2, 2]]).0, ErrorKind::BadLabel);
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
    assert_eq!(refused(&spec(258), &shapes(258)).0, ErrorKind::Limit);
    // Axes of `...` are labels, too.
    let spec = format!("{},...->...", spec(256).trim_end_matches("->"));
    assert_eq!(refused(&spec, &[&shapes(256)[..], &[&[2]]].concat()).0, ErrorKind::Limit);
}

#[test]
fn long_sums_are_as_exact_as_reductions() {
    let (count, value) = (1_000_000, 1.0 + f64::EPSILON * 8196.0);
    let mut g = Graph::standard();
    let x = g.leaf("x", Float64, &[count]).expect("a leaf");
    let sum = g.einsum("i->", &[x]).expect("a sum");
    let x = Tensor::scalar(value).broadcast_to(&[count]).expect("a view");
    let made = Evaluator::new(&Options::default()).evaluate(&g, &[sum], &[x]).expect("a number");
    let mean = made[0].get::<f64>(&[]).expect("a number") / count as f64;
    assert!((mean - value).abs() < 1.5e-15, "{mean} is off by {}", mean - value);
}
