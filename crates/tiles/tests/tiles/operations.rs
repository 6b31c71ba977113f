//! Tests of user-defined operations on tiles: results are compared with those of dense tensors, and wrong operations
//! are refused.

use crate::products::lazy;
use crate::random::{self, bits};
use crate::threads::{all_bits, on_five_threads};
use cembra_tiles::{Evaluator, Options, Screening, TileOperation, TilePlace, Tiled};
use cembra_value::Error;
use cembra_value::tensor::{Tensor, TensorErrorKind as Kind};
use fastrand::Rng;

/// Computes `a + 10 b + 100 c`, for as many operands as there are. The result has a tile where any operand has one; if
/// `is_of_all` is true, where all have one.
struct Digits {
    is_of_all: bool,
}

impl TileOperation for Digits {
    fn norm(&self, _: &TilePlace, norms: &[Option<f64>]) -> Option<f64> {
        if self.is_of_all && norms.iter().any(Option::is_none) {
            return None;
        }
        Some(norms.iter().zip(0..).map(|(norm, at)| norm.unwrap_or(0.0) * 10_f64.powi(at)).sum())
    }

    fn tile(&self, place: &TilePlace, tiles: &[Option<Tensor>]) -> Result<Tensor, Error> {
        let count = place.extents().iter().product();
        let mut sums = vec![0.0; count];
        for (tile, at) in tiles.iter().zip(0..) {
            let elements = tile.as_ref().map_or_else(|| Ok(vec![0.0; count]), Tensor::to_vec::<f64>)?;
            sums.iter_mut().zip(elements).for_each(|(sum, element)| *sum += element * 10_f64.powi(at));
        }
        Tensor::new(&place.extents(), sums)
    }
}

#[test]
fn tiles_are_those_that_the_rule_has_whatever_threads_make_them() {
    on_five_threads(|| {
        let mut rng = Rng::with_seed(80);
        for case in 0..60 {
            let tiling = random::tiling(&mut rng, 1 + case % 3);
            let parts: Vec<Tiled> = (0..1 + case % 4).map(|_| random::sparse::<f64>(&mut rng, &tiling, 0.6)).collect();
            let operands: Vec<&Tiled> = parts.iter().collect();
            let of = |is_of_all: bool, threads: usize, operands: &[&Tiled]| {
                let run = Evaluator::new(Options::default().threshold(0.0).block_bytes(100)).threads(threads);
                run.apply(&Digits { is_of_all }, operands).expect("tiles")
            };
            let (either, all) = (of(false, 1, &operands), of(true, 1, &operands));
            let has = |at: u64| operands.iter().filter(|operand| operand.shape().position(at).is_some()).count();
            for tile in (0..tiling.tiles()).filter(|tile| tiling.volume(*tile) > 0.0) {
                assert_eq!(either.shape().position(tile).is_some(), has(tile) > 0, "{case}");
                assert_eq!(all.shape().position(tile).is_some(), has(tile) == operands.len(), "{case}");
            }
            let dense: Vec<Vec<f64>> =
                parts.iter().map(|part| part.to_tensor().expect("memory").to_vec().expect("floats")).collect();
            let expected = |at: usize| {
                let terms = dense.iter().zip(0..).map(|(own, power)| own[at] * 10_f64.powi(power));
                terms.fold(0.0, |sum, term| sum + term).to_bits()
            };
            // Where all operands have a tile, both operations have the same elements.
            assert_eq!(bits(&either), (0..dense[0].len()).map(expected).collect::<Vec<u64>>(), "{case}");
            for (tile, made) in all.tiles().map(|made| made.expect("a tile")) {
                let other = either.tile(tile).expect("a tile").expect("present");
                assert_eq!(made.elements::<f64>(), other.elements::<f64>());
            }
            let lazies: Vec<Tiled> = parts.iter().map(lazy).collect();
            for threads in [2, 5] {
                assert_eq!(all_bits(&of(false, threads, &lazies.iter().collect::<Vec<&Tiled>>())), all_bits(&either));
            }
        }
    });
}

#[test]
fn small_tiles_are_not_made() {
    let mut rng = Rng::with_seed(81);
    let a = random::sparse::<f64>(&mut rng, &random::tiling(&mut Rng::with_seed(11), 2), 0.9);
    let least = a.shape().norms().iter().copied().fold(0.0, f64::max);
    let run = Evaluator::new(Options::default().threshold(least));
    let made = run.apply(&Digits { is_of_all: false }, &[&a]).expect("tiles");
    assert_eq!(made.shape(), &a.shape().screened(&Screening::threshold(least)).expect("a shape"));
    assert_eq!(made.shape().len(), 1);
}

/// An operation with given functions for tiles and for norms, whose results may be wrong.
struct Wrong(fn(&TilePlace) -> Result<Tensor, Error>, fn() -> f64);

impl TileOperation for Wrong {
    fn norm(&self, _: &TilePlace, _: &[Option<f64>]) -> Option<f64> {
        Some(self.1())
    }

    fn tile(&self, place: &TilePlace, _: &[Option<Tensor>]) -> Result<Tensor, Error> {
        self.0(place)
    }
}

/// An operation that copies the first operand where all operands have a tile.
struct First;

impl TileOperation for First {
    fn tile(&self, _: &TilePlace, tiles: &[Option<Tensor>]) -> Result<Tensor, Error> {
        tiles[0].clone().ok_or_else(|| Error::tensors(Kind::Evaluation, "no tile"))
    }
}

#[test]
fn what_operations_do_wrong_is_an_error() {
    let mut rng = Rng::with_seed(82);
    let tiling = random::tiling(&mut Rng::with_seed(11), 2);
    let (a, b) = (random::dense::<f64>(&tiling, 1), random::sparse::<f64>(&mut rng, &tiling, 0.5));
    let run = Evaluator::new(Options::default().threshold(0.0));
    let refused = |tile, norm| {
        let error = run.apply(&Wrong(tile, norm), &[&a]).expect_err("an error");
        (error.tensor_kind(), error.to_string())
    };
    let unknown = || f64::INFINITY;
    assert_eq!(refused(|_| Tensor::new(&[1], vec![1.0]), unknown).0, Some(Kind::SizeMismatch));
    let single = |place: &TilePlace| Tensor::zeros(cembra_runtime::Scalar::Float32, &place.extents());
    assert_eq!(refused(single, unknown).0, Some(Kind::ElementType));
    assert_eq!(refused(single, || -1.0).0, Some(Kind::Norm));
    let (kind, message) = refused(|_| panic!("no"), unknown);
    assert_eq!((kind, message.as_str()), (Some(Kind::Evaluation), "the operation on tiles panicked: no"));
    let (kind, message) = refused(single, || panic!("nor here"));
    assert_eq!((kind, message.as_str()), (Some(Kind::Evaluation), "the rule of norms panicked: nor here"));
    let kind = |operands: &[&Tiled]| run.apply(&First, operands).expect_err("an error").tensor_kind();
    assert_eq!(kind(&[]), Some(Kind::OperandCount));
    let other = random::dense::<f64>(&random::tiling(&mut Rng::with_seed(12), 2), 1);
    assert_eq!(kind(&[&a, &other]), Some(Kind::SizeMismatch));
    assert_eq!(kind(&[&a, &random::dense::<f32>(&tiling, 1)]), Some(Kind::ElementType));
    let few = Evaluator::new(Options::default()).most_bytes(a.memory_bytes() - 1);
    assert_eq!(few.apply(&First, &[&a]).expect_err("an error").tensor_kind(), Some(Kind::Limit));
    // By default, the result has a tile where all operands have one.
    assert_eq!(run.apply(&First, &[&a, &b]).expect("tiles").shape().tiles(), b.shape().tiles());
    let planned = Tiled::planned(a.shape(), a.scalar_type()).expect("a shape");
    assert_eq!(kind(&[&planned]), Some(Kind::Evaluation));
}
