//! Tests of evaluations with functions that fail at random, with tokens that are cancelled at random, and with norms
//! that are wrong: no evaluation hangs, errors do not depend on threads, and operands are not changed.

use crate::products::lazy;
use crate::random::{self, ALL, bits};
use crate::symbolic::{PRODUCTS, parse, tilings};
use crate::threads::{all_bits, on_five_threads};
use cembra_runtime::{Cancellation, FaultKind, Scalar};
use cembra_tiles::{Base, Evaluator, Options, Screening, Segment, Shape, TilePlace, Tiled, Tiling, Tiling1};
use cembra_value::Error;
use cembra_value::tensor::{Tensor, TensorErrorKind as Kind};
use fastrand::Rng;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// Runs code with a pool of five threads, and fails if it takes more than five minutes, because it hangs then.
fn ended(run: impl FnOnce() + Send + 'static) {
    let (send, receive) = mpsc::channel();
    let running = std::thread::spawn(move || {
        on_five_threads(run);
        // After a timeout there is no receiver.
        let _ = send.send(());
    });
    match receive.recv_timeout(Duration::from_secs(300)) {
        Err(mpsc::RecvTimeoutError::Timeout) => panic!("an evaluation hangs"),
        _ => running.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
    }
}

/// The kind of a tile's failure, chosen at random; `None` if the tile does not fail.
fn failure(seed: u64, number: u64) -> Option<u8> {
    let mut rng = Rng::with_seed(seed ^ number.wrapping_mul(0x9E37_79B9_7F4A_7C15));
    (rng.u8(0..6) == 0).then(|| rng.u8(0..8))
}

/// A lazy tensor with the tiles of `of`. Some tiles fail, panic, or have wrong extents or a wrong type.
fn failing(of: &Tiled, seed: u64) -> Tiled {
    let whole = of.clone();
    let source = move |place: &TilePlace| match failure(seed, place.number) {
        Some(0) => panic!("tile {} panics", place.number),
        Some(1) => Tensor::zeros(whole.scalar_type(), &[place.extents().iter().product::<usize>() + 1]),
        Some(2) => Tensor::zeros(Scalar::Float32, &place.extents()),
        Some(_) => Err(Error::tensors(Kind::Evaluation, format!("tile {} fails", place.number))),
        None => Ok(whole.tile(place.number)?.expect("present").tensor().clone()),
    };
    Tiled::lazy(of.shape(), of.scalar_type(), source).expect("floats")
}

/// A result for comparison: the present tiles and the bits of norms and elements, or the kinds and the text of the
/// error.
type Outcome = Result<(Vec<u64>, Vec<u64>, Vec<u64>), (Option<Kind>, Option<FaultKind>, String)>;

fn outcome(made: Result<Tiled, Error>) -> Outcome {
    made.map(|made| all_bits(&made)).map_err(|error| (error.tensor_kind(), error.fault_kind(), error.to_string()))
}

/// Converts a number to a tensor without axes.
fn number(made: Result<f64, Error>) -> Result<Tiled, Error> {
    Tiled::from_tensor(&Tensor::scalar(made?), &Tiling::new(std::iter::empty::<Tiling1>())?, &ALL)
}

/// Runs the operation number `case` on two tensors with the same tiling.
fn of_elements(run: &Evaluator, case: usize, a: &Tiled, b: &Tiled) -> Result<Tiled, Error> {
    match case % 11 {
        0 => run.add(a, b),
        1 => run.subtract(a, b),
        2 => run.hadamard(a, b),
        3 => run.scale(a, -0.5),
        4 => run.map::<f64>(a, |x| x.abs()),
        5 => run.materialized(a),
        6 => run.truncate(a, &Screening::threshold(0.3)),
        7 => number(run.sum(a)),
        8 => number(run.norm(a)),
        9 => number(run.dot(a, b)),
        _ => number(run.max(a)),
    }
}

#[test]
fn a_thousand_random_failures_come_to_the_same_on_any_number_of_threads() {
    ended(|| {
        let mut rng = Rng::with_seed(90);
        let (mut failed, mut few) = (0, 0);
        for case in 0..1_000 {
            let (text, [left, right]) = if case % 2 == 0 {
                let text = PRODUCTS[case / 2 % PRODUCTS.len()];
                (Some(text), tilings(&mut rng, &parse(text)))
            } else {
                let tiling = random::tiling(&mut rng, 1 + case % 3);
                (None, [tiling.clone(), tiling])
            };
            let [left, right] = [left, right].map(|tiling| random::sparse::<f64>(&mut rng, &tiling, 0.8));
            let before = [all_bits(&left), all_bits(&right)];
            let seed = rng.u64(..);
            let (a, b) = match rng.u8(0..4) {
                0 => (left.clone(), failing(&right, seed)),
                1 => (failing(&left, seed), right.clone()),
                2 => (failing(&left, seed), failing(&right, !seed)),
                _ => (lazy(&left), right.clone()),
            };
            let most_bytes = if rng.u8(0..3) == 0 { rng.usize(0..3_000) } else { usize::MAX };
            let options = Options::default().threshold(0.0).block_bytes(rng.usize(0..300));
            let options = options.segment(Segment { elements: rng.usize(1..12), tiles: rng.usize(1..4) });
            let made = |threads: usize| {
                let run = Evaluator::new(options.clone()).threads(threads).most_bytes(most_bytes);
                outcome(match text {
                    Some(text) => run.product(text, &a, &b),
                    None => of_elements(&run, case / 2, &a, &b),
                })
            };
            let one = made(1);
            for threads in [2, 5] {
                assert_eq!(made(threads), one, "case {case}, {text:?}, {threads} threads");
            }
            failed += usize::from(one.is_err());
            few += usize::from(matches!(one, Err((Some(Kind::Limit), ..))));
            // In an elementwise operation, the error is that of the first tile that fails. In a sum, a tile of the
            // first operand comes before that of the second.
            if text.is_none() && (case / 2).is_multiple_of(11) && most_bytes == usize::MAX {
                let first = (0..left.tiling().tiles()).find_map(|number| {
                    let tile = |of: &Tiled| of.tile(number).err().map(|error| error.to_string());
                    tile(&a).or_else(|| tile(&b))
                });
                assert_eq!(one.err().map(|(_, _, message)| message), first, "case {case}");
            }
            assert_eq!([all_bits(&left), all_bits(&right)], before);
        }
        assert!((200..800).contains(&failed) && few > 50, "{failed} fail, {few} for bytes");
    });
}

#[test]
fn evaluations_that_are_ended_at_any_moment_leave_nothing_behind() {
    ended(|| {
        let mut rng = Rng::with_seed(91);
        let (mut ended, mut late) = (0, 0);
        for case in 0..300 {
            let text = PRODUCTS[case % PRODUCTS.len()];
            let [left, right] =
                tilings(&mut rng, &parse(text)).map(|tiling| random::sparse::<f64>(&mut rng, &tiling, 0.8));
            let segment = Segment { elements: rng.usize(1..12), tiles: rng.usize(1..4) };
            let options = Options::default().threshold(0.0).segment(segment).block_bytes(rng.usize(0..300));
            let expected = outcome(Evaluator::new(options.clone()).product(text, &left, &right));
            for threads in [1, 2, 5] {
                let run = Evaluator::new(options.clone()).threads(threads);
                let (token, asked, last) = (Cancellation::new(), AtomicUsize::new(0), rng.usize(0..12));
                let (own, whole) = (token.clone(), left.clone());
                let source = move |place: &TilePlace| {
                    if asked.fetch_add(1, Ordering::Relaxed) == last {
                        own.cancel();
                    }
                    Ok(whole.tile(place.number)?.expect("present").tensor().clone())
                };
                let a = Tiled::lazy(left.shape(), Scalar::Float64, source).unwrap();
                match outcome(run.clone().cancellation(token).product(text, &a, &right)) {
                    Err((_, Some(FaultKind::Cancelled), _)) => ended += 1,
                    found => assert_eq!(found, expected, "case {case}"),
                }
                let soon = Cancellation::new().until(Instant::now() + Duration::from_micros(rng.u64(0..8)));
                match outcome(run.clone().cancellation(soon).product(text, &left, &right)) {
                    Err((_, Some(FaultKind::Deadline), _)) => late += 1,
                    found => assert_eq!(found, expected, "case {case}"),
                }
                // The memory of evaluations that ended early is used again.
                assert_eq!(outcome(run.product(text, &left, &right)), expected, "case {case}");
            }
        }
        assert!(ended > 100 && late > 50, "{ended} were ended, {late} were late");
    });
}

#[test]
fn a_plan_is_ended_as_evaluations_are() {
    let mut rng = Rng::with_seed(92);
    let [left, right] =
        tilings(&mut rng, &parse(PRODUCTS[0])).map(|tiling| random::sparse::<f64>(&mut rng, &tiling, 1.0));
    let token = Cancellation::new();
    token.cancel();
    let planned = Evaluator::new(Options::default()).cancellation(token).plan(PRODUCTS[0], &left, &right, None);
    assert_eq!(planned.expect_err("an error").code(), "cancelled");
}

/// A lazy tensor with the same tiles and with other norms in its shape, and a counter of the tiles that were computed.
fn promised(of: &Tiled, norm: impl Fn(f64) -> f64) -> (Tiled, Arc<AtomicUsize>) {
    let norms = of.shape().iter().map(|(tile, own)| (tile, norm(own)));
    let shape = Shape::of_norms(of.tiling(), norms.collect::<Vec<_>>(), &ALL).expect("norms");
    let asked = Arc::new(AtomicUsize::new(0));
    let (whole, count) = (of.clone(), asked.clone());
    let source = move |place: &TilePlace| {
        count.fetch_add(1, Ordering::Relaxed);
        Ok(whole.tile(place.number)?.expect("present").tensor().clone())
    };
    (Tiled::lazy(&shape, of.scalar_type(), source).expect("floats"), asked)
}

#[test]
fn norms_that_are_not_those_of_the_elements_decide_which_tiles_are_asked_for_and_nothing_else() {
    let mut rng = Rng::with_seed(92);
    for case in 0..100 {
        let text = PRODUCTS[case % PRODUCTS.len()];
        let [left, right] = tilings(&mut rng, &parse(text)).map(|tiling| random::sparse::<f64>(&mut rng, &tiling, 0.7));
        let run = |threshold: f64| Evaluator::new(Options::default().threshold(threshold)).threads(1 + case % 3);
        let expected = outcome(run(0.0).product(text, &left, &right));
        // For any norms of the lazy operand, the result has the norms of its elements and, with a threshold of 0, all
        // tiles.
        for norm in [0.0, 1e-300, 1e300, f64::INFINITY, f64::NAN] {
            let (lazy, _) = promised(&left, |_| norm);
            assert_eq!(outcome(run(0.0).product(text, &lazy, &right)), expected, "{text}, {norm}");
        }
        // Tiles whose norms in the shape are small are not computed.
        let (small, asked) = promised(&left, |_| 1e-30);
        let none = run(1e-9).product(text, &small, &right).expect("a product");
        assert_eq!((none.shape().len(), asked.load(Ordering::Relaxed)), (0, 0));
        // Tiles whose norms in the shape are large are kept, until `truncate` drops them by the norms of their
        // elements.
        let tiny = run(0.0).scale(&left, 1e-20).expect("a multiple");
        let (large, _) = promised(&tiny, |_| 1.0);
        let kept = run(1e-9).scale(&large, 1.0).expect("a multiple");
        assert_eq!(all_bits(&kept), all_bits(&tiny));
        assert!(kept.truncate(&Screening::threshold(1e-9)).expect("tiles").shape().is_empty());
    }
}

/// Stored tensors have the norms of their elements, for each operation that stores the tiles of a lazy tensor.
#[test]
fn views_of_lazy_tensors_have_true_norms() {
    let mut rng = Rng::with_seed(93);
    for _ in 0..30 {
        let tiling = random::tiling(&mut rng, 3);
        let whole = random::sparse::<f64>(&mut rng, &tiling, 0.7);
        for norm in [1e-300, f64::INFINITY, f64::NAN] {
            let (lazy, _) = promised(&whole, |_| norm);
            let turned = lazy.permuted(&[2, 0, 1]).expect("three axes");
            assert!(!turned.is_lazy());
            assert_eq!(all_bits(&turned), all_bits(&whole.permuted(&[2, 0, 1]).expect("three axes")));
            let axes = whole.tiling().axes().iter().map(|axis| axis.lower()..axis.upper()).collect::<Vec<_>>();
            let part = lazy.elements(&axes, Base::Zero, &ALL).expect("all elements");
            assert_eq!(part.shape().norms(), whole.shape().norms());
        }
    }
}

/// An axis of 2^40 tiles around 0, of which a few are present.
#[test]
fn few_tiles_of_a_huge_grid_around_zero_cost_what_they_have() {
    let half = 1_i64 << 39;
    let axis = Tiling1::blocked(1 << 40, 1).unwrap().rebased(-half).unwrap();
    let line = Tiling::new([&axis]).unwrap();
    let tiles = [0, (1 << 39) - 1, 1 << 39, (1 << 40) - 1];
    let shape = Shape::of_norms(&line, tiles.map(|tile| (tile, 1.0)), &ALL).unwrap();
    let a = Tiled::from_fn(&shape, |at| at[0] as f64).unwrap();
    let run = Evaluator::new(Options::default().threshold(0.0)).threads(2);
    let elements = |of: &Tiled| [-half, -1, 0, 1, half - 1].map(|at| of.get::<f64>(&[at]).unwrap());
    let far = half as f64;
    assert_eq!(elements(&a), [-far, -1.0, 0.0, 0.0, far - 1.0]);
    assert_eq!(a.get::<f64>(&[-half - 1]).expect_err("an error").tensor_kind(), Some(Kind::Index));
    let sum = run.add(&a, &lazy(&a)).unwrap();
    assert_eq!((elements(&sum), sum.shape().len()), ([-2.0 * far, -2.0, 0.0, 0.0, 2.0 * far - 2.0], 4));
    assert_eq!(elements(&run.product("i,i->i", &a, &sum).unwrap())[1], 2.0);
    assert_eq!((run.sum(&a).unwrap(), run.min(&a).unwrap(), run.max(&a).unwrap()), (-2.0, -far, far - 1.0));
    assert_eq!(run.product("i,i->", &a, &a).unwrap().get::<f64>(&[]).unwrap(), run.dot(&a, &a).unwrap());
    // The outer product has 2^80 tiles, which 64 bits do not count.
    assert_eq!(run.product("i,j->ij", &a, &a).expect_err("an error").tensor_kind(), Some(Kind::Limit));
    let part = a.elements(std::slice::from_ref(&(-2..3)), Base::Zero, &ALL).unwrap();
    assert_eq!(part.to_tensor().unwrap().to_vec::<f64>().unwrap(), [0.0, -1.0, 0.0, 0.0, 0.0]);
    let block = a.block(std::slice::from_ref(&((1 << 40) - 2..1 << 40)), Base::Kept).unwrap();
    assert_eq!((block.tiling().axes()[0].lower(), block.shape().tiles()), (half - 2, &[1][..]));
    let other = random::dense::<f64>(&Tiling::new([Tiling1::blocked(3, 2).unwrap()]).unwrap(), 5);
    let written = a.with_elements(&[-1], &other, &ALL).unwrap();
    assert_eq!([-1, 0, 1].map(|at| written.get::<f64>(&[at]).unwrap().to_bits()).to_vec(), bits(&other));
    assert_eq!((written.shape().len(), written.get::<f64>(&[half - 1]).unwrap()), (5, far - 1.0));
    let matrix = Tiling::new([&axis, &Tiling1::new([-3, -3, 2]).unwrap()]).unwrap();
    let shape = Shape::of_norms(&matrix, [(1, 1.0), ((1 << 41) - 1, 1.0)], &ALL).unwrap();
    let b = Tiled::from_fn(&shape, |at| (at[0] + at[1]) as f64).unwrap();
    let turned = b.permuted(&[1, 0]).unwrap();
    assert_eq!(turned.get::<f64>(&[-3, -half]).unwrap(), -far - 3.0);
    let product = run.product("ji,i->j", &turned, &a).unwrap();
    assert_eq!(product.get::<f64>(&[-3]).unwrap(), (-far - 3.0) * -far + (far - 4.0) * (far - 1.0));
}
