//! Tests of sums, norms and extremes of tiled tensors: they are compared with those of the dense elements.

use crate::products::lazy;
use crate::random::{self, ALL};
use crate::threads::on_five_threads;
use cembra_tiles::{Evaluator, MOST_TILES, Options, Shape, Tiled, Tiling, Tiling1};
use cembra_value::tensor::TensorErrorKind as Kind;
use fastrand::Rng;

fn line(elements: &[f64], size: u64) -> Tiled {
    let tiling = Tiling::new([Tiling1::blocked(elements.len() as u64, size).expect("it fits")]).expect("it fits");
    Tiled::from_fn(&Shape::dense(&tiling, MOST_TILES).expect("it fits"), |at| elements[at[0] as usize])
        .expect("it fits")
}

fn run(threads: usize, block_bytes: usize) -> Evaluator {
    Evaluator::new(Options::default().threshold(0.0).block_bytes(block_bytes)).threads(threads)
}

/// Elements are small whole numbers, so all sums are exact.
#[test]
fn numbers_of_sparse_tensors_are_those_of_all_elements() {
    let mut rng = Rng::with_seed(70);
    for case in 0..200 {
        let mut tiling = random::tiling(&mut rng, 1 + case % 3);
        if case % 2 == 0 {
            let axis = random::axis(&mut rng);
            let other = random::other_axis(&mut rng, &axis);
            tiling = Tiling::new([axis, other]).unwrap();
        }
        let [a, b] = [0, 1].map(|_| {
            let shape = random::sparse::<f64>(&mut rng, &tiling, 0.6).shape().clone();
            Tiled::from_fn(&shape, |_| f64::from(rng.i8(-3..4))).unwrap()
        });
        let all = |of: &Tiled| of.to_tensor().unwrap().to_vec::<f64>().unwrap();
        let (x, y) = (all(&a), all(&b));
        let run = run(1 + case % 3, 40);
        for a in [&a, &lazy(&a)] {
            assert_eq!(run.sum(a).unwrap(), x.iter().sum::<f64>());
            assert_eq!(run.norm(a).unwrap(), x.iter().map(|x| x * x).sum::<f64>().sqrt());
            assert_eq!(run.dot(a, &b).unwrap(), x.iter().zip(&y).map(|(x, y)| x * y).sum::<f64>());
            assert_eq!(run.inner_product(&b, a).unwrap(), run.dot(a, &b).unwrap());
            assert_eq!(run.product_of_elements(a).unwrap(), x.iter().product::<f64>());
            let magnitudes: Vec<f64> = x.iter().map(|x| x.abs()).collect();
            let least = |of: &[f64]| of.iter().copied().reduce(f64::min);
            let greatest = |of: &[f64]| of.iter().copied().reduce(f64::max);
            assert_eq!(run.min(a).ok(), least(&x));
            assert_eq!(run.max(a).ok(), greatest(&x));
            assert_eq!(run.abs_min(a).ok(), least(&magnitudes));
            assert_eq!(run.abs_max(a).ok(), greatest(&magnitudes));
        }
        if tiling.rank() == 2 && tiling.axes()[0].lower() == tiling.axes()[1].lower() {
            let [rows, columns] = [0, 1].map(|axis: usize| tiling.axes()[axis].extent());
            let diagonal = (0..rows).map(|at| x.get(at * columns + at).copied().unwrap_or_default());
            assert_eq!(run.trace(&a).ok(), (rows == columns).then(|| diagonal.sum()));
        }
    }
}

#[test]
fn sums_over_tiles_are_exact_and_depend_on_no_order() {
    on_five_threads(|| {
        let mut rng = Rng::with_seed(71);
        for _ in 0..50 {
            let mut elements: Vec<f64> =
                (0..rng.usize(1..400)).map(|_| (rng.f64() - 0.5) * f64::from(rng.i32(-300..300)).exp2()).collect();
            let sum = run(1, 8).sum(&line(&elements, 1)).unwrap();
            let dot = run(1, 8).dot(&line(&elements, 1), &line(&elements, 1)).unwrap();
            rng.shuffle(&mut elements);
            for threads in [1, 2, 5] {
                let again = line(&elements, 1);
                assert_eq!(run(threads, 8).sum(&again).unwrap().to_bits(), sum.to_bits());
                assert_eq!(run(threads, 64).dot(&again, &again).unwrap().to_bits(), dot.to_bits());
                // Each tile is reduced to one number, for any distribution over threads.
                let tiled = line(&elements, 7);
                assert_eq!(
                    run(threads, 8).norm(&tiled).unwrap().to_bits(),
                    run(1, 1 << 18).norm(&tiled).unwrap().to_bits()
                );
            }
        }
        // The sum has parts from many tasks: no part may be lost, and none may be rounded.
        let mut elements = vec![1.0; 1000];
        (elements[3], elements[900]) = (1e200, -1e200);
        assert_eq!([1, 2, 5].map(|threads| run(threads, 8).sum(&line(&elements, 1)).unwrap()), [998.0; 3]);
    });
}

#[test]
fn what_is_large_small_or_no_number_is_seen() {
    let run = run(1, 1 << 18);
    let (nan, inf, far) = (f64::NAN, f64::INFINITY, 700_f64.exp2());
    assert_eq!(run.norm(&line(&[3.0 * far, 4.0 * far], 1)).unwrap(), 5.0 * far);
    assert_eq!(run.norm(&line(&[3.0 / far, 4.0 / far], 2)).unwrap(), 5.0 / far);
    assert_eq!(run.norm(&line(&[5e-324, 0.0], 1)).unwrap(), 5e-324);
    assert_eq!(run.norm(&line(&[0.0], 1)).unwrap(), 0.0);
    assert_eq!(run.norm(&line(&[inf, 1.0], 1)).unwrap(), inf);
    assert!(run.norm(&line(&[1.0, nan], 1)).unwrap().is_nan());
    assert_eq!(run.sum(&line(&[inf, 1.0], 1)).unwrap(), inf);
    assert!(run.sum(&line(&[inf, -inf], 1)).unwrap().is_nan());
    for at in 0..3 {
        let mut elements = [2.0, 1.0, 3.0];
        elements[at] = nan;
        assert!(run.min(&line(&elements, 2)).unwrap().is_nan() && run.abs_max(&line(&elements, 2)).unwrap().is_nan());
    }
    for zeros in [[0.0, -0.0], [-0.0, 0.0]] {
        assert!(run.min(&line(&zeros, 1)).unwrap().is_sign_negative());
        assert!(run.max(&line(&zeros, 1)).unwrap().is_sign_positive());
    }
    // Absent tiles are zeros, except those without elements.
    let tiling = Tiling::new([Tiling1::new([0, 0, 2, 5]).unwrap()]).unwrap();
    let of = |tiles: &[u64]| {
        let shape = Shape::of_norms(&tiling, tiles.iter().map(|tile| (*tile, 1.0)), &ALL).unwrap();
        Tiled::from_fn(&shape, |at| 2.0 + at[0] as f64).unwrap()
    };
    assert_eq!((run.min(&of(&[1, 2])).unwrap(), run.min(&of(&[2])).unwrap()), (2.0, 0.0));
    assert_eq!(
        (run.product_of_elements(&of(&[1, 2])).unwrap(), run.product_of_elements(&of(&[1])).unwrap()),
        (720.0, 0.0)
    );
    assert_eq!(run.max(&of(&[])).unwrap(), 0.0);
    let nothing = line(&[], 1);
    assert_eq!((run.sum(&nothing).unwrap(), run.norm(&nothing).unwrap()), (0.0, 0.0));
    assert_eq!(run.product_of_elements(&nothing).unwrap(), 1.0);
    assert_eq!(run.min(&nothing).expect_err("an error").tensor_kind(), Some(Kind::EmptyReduction));
    assert_eq!(run.trace(&nothing).expect_err("an error").tensor_kind(), Some(Kind::RankMismatch));
    assert_eq!(run.dot(&nothing, &of(&[])).expect_err("an error").tensor_kind(), Some(Kind::SizeMismatch));
    // A grid of 2^40 tiles, one of which is present.
    let axis = Tiling1::blocked(1 << 40, 1).unwrap();
    let one = Shape::of_norms(&Tiling::new([axis]).unwrap(), [(5, 1.0)], &ALL).unwrap();
    let one = Tiled::from_fn(&one, |_| 2.0).unwrap();
    assert_eq!((run.min(&one).unwrap(), run.max(&one).unwrap()), (0.0, 2.0));
}
