//! Tests of elementwise sums, products and functions: results are compared with those of dense tensors.

use crate::random::{self, ALL, bits};
use cembra_tiles::{Evaluator, Options, Shape, Tiled, Tiling, Tiling1};
use cembra_value::tensor::TensorErrorKind as Kind;
use fastrand::Rng;

fn elements(of: &Tiled) -> Vec<f64> {
    of.to_tensor().expect("it fits").to_vec::<f64>().expect("it fits")
}

#[test]
fn operators_on_elements_are_those_of_dense_tensors() {
    let mut rng = Rng::with_seed(40);
    let run = Evaluator::new(Options::default().threshold(0.0));
    for case in 0..100 {
        let tiling = random::tiling(&mut rng, 1 + case % 3);
        let (a, b) = (random::sparse::<f64>(&mut rng, &tiling, 0.5), random::sparse::<f64>(&mut rng, &tiling, 0.5));
        let pairs: Vec<(f64, f64)> = elements(&a).into_iter().zip(elements(&b)).collect();
        let check = |made: Tiled, of: &dyn Fn(f64, f64) -> f64, is_present: &dyn Fn(bool, bool) -> bool| {
            assert!(elements(&made).iter().zip(&pairs).all(|(found, (a, b))| *found == of(*a, *b)));
            for tile in (0..tiling.tiles()).filter(|tile| tiling.volume(*tile) > 0.0) {
                let [one, two] = [&a, &b].map(|of| of.shape().norm(tile).is_some());
                assert_eq!(made.shape().norm(tile).is_some(), is_present(one, two));
            }
            let truth = Tiled::from_tensor(&made.to_tensor().unwrap(), &tiling, &ALL).unwrap();
            assert!(made.shape().iter().all(|(tile, norm)| truth.shape().norm(tile) == Some(norm)));
        };
        check(run.add(&a, &b).unwrap(), &|a, b| a + b, &|a, b| a || b);
        check(run.subtract(&a, &b).unwrap(), &|a, b| a - b, &|a, b| a || b);
        check(run.hadamard(&a, &b).unwrap(), &|a, b| a * b, &|a, b| a && b);
        check(run.scale(&a, -1.5).unwrap(), &|a, _| -1.5 * a, &|a, _| a);
        check(run.map::<f64>(&a, |x| x * x).unwrap(), &|a, _| a * a, &|a, _| a);
        check(run.map::<f64>(&a, |x| x + 1.0).unwrap(), &|a, _| a + 1.0, &|_, _| true);
        let labels = ["i,i->i", "ij,ij->ij", "ijk,ijk->ijk"][case % 3];
        assert_eq!(bits(&run.product(labels, &a, &b).unwrap()), bits(&run.hadamard(&a, &b).unwrap()));
    }
}

#[test]
fn estimates_below_the_threshold_leave_tiles_out() {
    let tiling = Tiling::new([Tiling1::new([0, 2, 4, 6]).unwrap()]).unwrap();
    let shape = Shape::dense(&tiling, 3).unwrap();
    // Norms are x / sqrt(2) of tiles of two elements x.
    let a = Tiled::from_fn(&shape, |at| [1.0, 0.1, 0.01][at[0] as usize / 2]).unwrap();
    let run = |threshold| Evaluator::new(Options::default().threshold(threshold));
    assert_eq!(run(0.05).scale(&a, 0.5).unwrap().shape().tiles(), [0]);
    assert_eq!(run(0.05).scale(&a, 1.0).unwrap().shape().tiles(), [0, 1]);
    assert_eq!(run(0.1).add(&a, &a).unwrap().shape().tiles(), [0, 1]);
    // The elements cancel, but estimates do not depend on signs.
    let difference = run(0.1).subtract(&a, &a).unwrap();
    assert_eq!((difference.shape().tiles(), difference.shape().norms()), (&[0, 1][..], &[0.0, 0.0][..]));
    // s1 s2 V is 0.01 for the second tile.
    assert_eq!(run(0.0101).hadamard(&a, &a).unwrap().shape().tiles(), [0]);
    assert_eq!(run(0.0099).hadamard(&a, &a).unwrap().shape().tiles(), [0, 1]);
    let off = Evaluator::new(Options::default().threshold(10.0).screen(false));
    assert_eq!(off.scale(&a, 0.5).unwrap().shape().len(), 3);
    assert!(
        run(0.0).scale(&a, 0.0).unwrap().shape().len() == 3 && run(1e-300).scale(&a, 0.0).unwrap().shape().is_empty()
    );
    assert_eq!(run(1.0).scale(&a, f64::NAN).unwrap().shape().len(), 3);
}

#[test]
fn a_tile_of_one_operand_alone_is_shared() {
    let tiling = Tiling::new([Tiling1::new([0, 2, 4]).unwrap()]).unwrap();
    let of = |tile: u64, element: f64| {
        Tiled::from_fn(&Shape::of_norms(&tiling, [(tile, 1.0)], &ALL).unwrap(), |_| element).unwrap()
    };
    let (a, b) = (of(0, 1.0), of(1, 2.0));
    let sum = Evaluator::new(Options::default()).add(&a, &b).unwrap();
    let shares = |tile: u64, with: &Tiled| {
        sum.tile(tile).unwrap().unwrap().tensor().shares_memory(with.tile(tile).unwrap().unwrap().tensor())
    };
    assert!(shares(0, &a) && shares(1, &b));
    assert_eq!(elements(&Evaluator::new(Options::default()).subtract(&a, &b).unwrap()), [1.0, 1.0, -2.0, -2.0]);
}

#[test]
fn operands_that_do_not_fit_are_refused() {
    let line = |boundaries: &[i64]| Tiling::new([Tiling1::new(boundaries.iter().copied()).unwrap()]).unwrap();
    let (a, b) = (random::dense::<f64>(&line(&[0, 2, 4]), 1), random::dense::<f64>(&line(&[0, 1, 4]), 1));
    let floats = random::dense::<f32>(&line(&[0, 2, 4]), 1);
    let run = Evaluator::new(Options::default());
    for (other, kind) in [(&b, Kind::SizeMismatch), (&floats, Kind::ElementType)] {
        for made in [run.add(&a, other), run.subtract(&a, other), run.hadamard(&a, other)] {
            assert_eq!(made.expect_err("an error").tensor_kind(), Some(kind));
        }
    }
    assert_eq!(run.map::<f64>(&floats, |x| x).expect_err("an error").tensor_kind(), Some(Kind::ElementType));
    let panics = run.map::<f64>(&a, |x| if x == 0.0 { 0.0 } else { panic!("no") });
    assert_eq!(panics.expect_err("an error").tensor_kind(), Some(Kind::Evaluation));
    let huge = Tiling1::blocked(1 << 40, 1).unwrap();
    let one =
        Tiled::from_fn(&Shape::of_norms(&Tiling::new([huge]).unwrap(), [(5, 1.0)], &ALL).unwrap(), |_| 2.0).unwrap();
    assert_eq!(run.map::<f64>(&one, |x| x.sqrt()).unwrap().shape().tiles(), [5]);
    assert_eq!(run.map::<f64>(&one, |x| x.cos()).expect_err("an error").tensor_kind(), Some(Kind::Limit));
}
