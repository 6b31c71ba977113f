//! Tests of the number of threads, of memory limits, of errors and of cancellation: they do not change the bits of
//! results.

use crate::products::lazy;
use crate::random::{self, ALL, bits};
use crate::symbolic::{PRODUCTS, parse, tilings};
use cembra_runtime::{Cancellation, FaultKind, Scalar};
use cembra_tiles::{Evaluator, MOST_TILES, Options, Segment, Shape, TilePlace, Tiled, Tiling, Tiling1};
use cembra_value::Error;
use cembra_value::tensor::{Tensor, TensorErrorKind as Kind};
use fastrand::Rng;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

/// Runs code in a pool of five threads.
pub(crate) fn on_five_threads<R: Send>(run: impl FnOnce() -> R + Send) -> R {
    rayon::ThreadPoolBuilder::new().num_threads(5).build().expect("threads").install(run)
}

/// A tensor for comparison: the numbers of its present tiles, the bits of their norms, and the bits of all elements.
pub(crate) fn all_bits(of: &Tiled) -> (Vec<u64>, Vec<u64>, Vec<u64>) {
    (of.shape().tiles().to_vec(), of.shape().norms().iter().map(|norm| norm.to_bits()).collect(), bits(of))
}

#[test]
fn products_have_the_same_bits_on_any_number_of_threads() {
    on_five_threads(|| {
        let mut rng = Rng::with_seed(60);
        for case in 0..160 {
            let text = PRODUCTS[case % PRODUCTS.len()];
            let [left, right] =
                tilings(&mut rng, &parse(text)).map(|tiling| random::sparse::<f64>(&mut rng, &tiling, 0.8));
            let segment = Segment { elements: rng.usize(1..12), tiles: rng.usize(1..4) };
            let options = Options::default().threshold(0.0).segment(segment);
            let made = |run: Evaluator, left: &Tiled| run.product(text, left, &right);
            let one = made(Evaluator::new(options.clone()), &left).unwrap();
            for threads in [2, 5] {
                for block_bytes in [0, 200, 1 << 18] {
                    let options = options.clone().block_bytes(block_bytes);
                    let run = |most_bytes| Evaluator::new(options.clone()).most_bytes(most_bytes).threads(threads);
                    let again = made(run(usize::MAX), &left).unwrap();
                    assert_eq!(all_bits(&again), all_bits(&one), "{case} {text}");
                    // With the lowest memory limit that suffices, lazy tiles are computed in many panels.
                    let lazy = lazy(&left);
                    let mut bytes = one.memory_bytes();
                    let least = loop {
                        match made(run(bytes), &lazy) {
                            Err(error) if error.tensor_kind() == Some(Kind::Limit) => bytes += 8,
                            made => break made.unwrap(),
                        }
                    };
                    assert_eq!(all_bits(&least), all_bits(&one), "{case} {text}");
                }
            }
        }
    });
}

#[test]
fn operators_on_elements_have_the_same_bits_on_any_number_of_threads() {
    on_five_threads(|| {
        let mut rng = Rng::with_seed(61);
        for case in 0..40 {
            let tiling = random::tiling(&mut rng, 1 + case % 3);
            let (a, b) = (random::sparse::<f64>(&mut rng, &tiling, 0.7), random::sparse::<f64>(&mut rng, &tiling, 0.7));
            let of = |threads: usize, block_bytes: usize| {
                let run = Evaluator::new(Options::default().threshold(0.0).block_bytes(block_bytes)).threads(threads);
                let made = [
                    run.add(&a, &lazy(&b)),
                    run.subtract(&a, &b),
                    run.hadamard(&lazy(&a), &b),
                    run.scale(&a, 0.1),
                    run.map::<f64>(&a, |x| x.exp()),
                    run.random::<f64>(a.shape(), 5),
                    run.from_fn(a.shape(), |at| at[0] as f64 / 7.0),
                    run.materialized(&lazy(&a)),
                    run.truncate(&lazy(&a), &cembra_tiles::Screening::threshold(0.3)),
                ];
                made.map(|made| all_bits(&made.unwrap()))
            };
            let one = of(1, 1 << 18);
            assert!([(2, 8), (5, 8), (5, 64)].into_iter().all(|(threads, block)| of(threads, block) == one));
            assert_eq!(one[5], all_bits(&Tiled::random::<f64>(a.shape(), 5).unwrap()));
            assert_eq!(one[7], all_bits(&a));
            assert_eq!(one[8], all_bits(&a.truncate(&cembra_tiles::Screening::threshold(0.3)).unwrap()));
        }
    });
}

/// A lazy square tensor with tiles of 2 by 2 elements, some of which fail or panic, and a counter of the tiles that
/// were computed.
fn failing(tiles: u64, fails: fn(u64) -> bool) -> (Tiled, Arc<AtomicUsize>) {
    let axis = Tiling1::blocked(2 * tiles, 2).expect("it fits");
    let shape = Shape::dense(&Tiling::new([&axis, &axis]).expect("it fits"), MOST_TILES).expect("it fits");
    let asked = Arc::new(AtomicUsize::new(0));
    let counter = asked.clone();
    let source = move |place: &TilePlace| {
        counter.fetch_add(1, Ordering::Relaxed);
        match place.number {
            number if !fails(number) => Tensor::new(&[2, 2], vec![number as f64; 4]),
            number if number.is_multiple_of(2) => panic!("tile {number}"),
            number => Err(Error::tensors(Kind::Evaluation, format!("tile {number}"))),
        }
    };
    (Tiled::lazy(&shape, Scalar::Float64, source).expect("it fits"), asked)
}

#[test]
fn the_error_is_the_same_on_any_number_of_threads() {
    on_five_threads(|| {
        let (a, _) = failing(12, |number| number > 40 && number % 12 >= 4);
        let ready = failing(12, |_| false).0.materialized().unwrap();
        for threads in [1, 2, 5] {
            for most_bytes in [usize::MAX, 24 * 24 * 8 + 2 * 12 * 32] {
                let run = Evaluator::new(Options::default().block_bytes(64)).most_bytes(most_bytes).threads(threads);
                let message = |made: Result<Tiled, Error>| made.expect_err("an error").to_string();
                // Tiles are computed in the order of the summed label, here the columns. The first column with a
                // failing tile has the number 4, and its first failing tile is 52.
                assert_eq!(message(run.product("ij,jk->ik", &a, &ready)), "the function of tiles panicked: tile 52");
                // In the right operand, the summed label is that of the rows, so the first tile that fails is 41.
                assert_eq!(message(run.product("ij,jk->ik", &ready, &a)), "tile 41");
                assert_eq!(message(run.add(&a, &ready)), "tile 41");
                assert_eq!(message(run.materialized(&a)), "tile 41");
                let error = run.sum(&a).expect_err("an error");
                assert_eq!(error.to_string(), "tile 41");
            }
        }
        // A source whose tiles return errors and never panic; the first of them is an odd tile.
        let (odd, _) = failing(12, |number| number >= 77 && number % 2 == 1);
        let message = |threads| {
            let run = Evaluator::new(Options::default().block_bytes(32)).threads(threads);
            run.scale(&odd, 2.0).expect_err("an error").to_string()
        };
        assert_eq!([1, 2, 5].map(message), ["tile 77"; 3]);
        let panics = Evaluator::new(Options::default().block_bytes(32)).threads(5);
        let panics = panics.map::<f64>(&ready, |x| if x > 100.0 { panic!("{x} is too much") } else { 0.0 });
        assert_eq!(panics.expect_err("an error").to_string(), "the function of elements panicked: 101 is too much");
    });
}

#[test]
fn tokens_end_evaluations_between_tasks() {
    on_five_threads(|| {
        let stored = failing(30, |_| false).0.materialized().unwrap();
        for threads in [1, 2, 5] {
            let token = Cancellation::new();
            let own = token.clone();
            let begun = Arc::new(AtomicUsize::new(0));
            let counter = begun.clone();
            let lazy = Tiled::lazy(stored.shape(), Scalar::Float64, move |place: &TilePlace| {
                counter.fetch_add(1, Ordering::Relaxed);
                own.cancel();
                Tensor::zeros(Scalar::Float64, &place.extents())
            });
            let run = Evaluator::new(Options::default()).threads(threads).cancellation(token);
            let ended = run.product("ij,jk->ik", &lazy.unwrap(), &stored).expect_err("an error");
            assert_eq!(ended.fault_kind(), Some(FaultKind::Cancelled));
            assert!(begun.load(Ordering::Relaxed) <= threads);
            // The token stays cancelled for all later evaluations.
            assert_eq!(run.add(&stored, &stored).expect_err("an error").fault_kind(), Some(FaultKind::Cancelled));
            assert_eq!(run.norm(&stored).expect_err("an error").fault_kind(), Some(FaultKind::Cancelled));
        }
        let late = Cancellation::new().until(Instant::now());
        let run = Evaluator::new(Options::default()).threads(2).cancellation(late);
        let ended = run.product("ij,jk->ik", &stored, &stored).expect_err("an error");
        assert_eq!(ended.fault_kind(), Some(FaultKind::Deadline));
    });
}

/// With a lower memory limit, fewer lazy tiles are held at once. Each is still computed only once.
#[test]
fn lazy_tiles_are_held_as_there_are_bytes() {
    let axis = Tiling1::blocked(16, 2).unwrap();
    let shape = Shape::dense(&Tiling::new([&axis, &axis]).unwrap(), MOST_TILES).unwrap();
    let held = Arc::new(AtomicUsize::new(0));
    let most = Arc::new(AtomicUsize::new(0));
    let asked = Arc::new(AtomicUsize::new(0));
    let source = {
        let (held, most, asked) = (held.clone(), most.clone(), asked.clone());
        move |place: &TilePlace| {
            asked.fetch_add(1, Ordering::Relaxed);
            let counted = Counted { elements: vec![place.number as f64; 11], held: held.clone() };
            most.fetch_max(held.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
            // The tile begins at a multiple of 64 bytes, so it is not copied.
            let first = counted.elements.as_ptr().align_offset(64).min(7);
            let data = cembra_value::tensor::Data::Float64(cembra_value::tensor::Buffer::lent(counted));
            Tensor::from_parts(data, cembra_value::tensor::Layout::row_major(&[2, 2])?.moved(first))
        }
    };
    let a = Tiled::lazy(&shape, Scalar::Float64, source).unwrap();
    let b = random::dense::<f64>(shape.tiling(), 3);
    let result = 16 * 16 * 8;
    let column = 8 * 32;
    let run = |most_bytes: usize, segment: usize| {
        let segment = Segment { elements: 8192, tiles: segment };
        let options = Options::default().threshold(0.0).segment(segment);
        most.store(0, Ordering::Relaxed);
        asked.store(0, Ordering::Relaxed);
        let made = Evaluator::new(options).most_bytes(most_bytes).product("ij,jk->ik", &a, &b)?;
        assert_eq!((asked.load(Ordering::Relaxed), held.load(Ordering::Relaxed)), (64, 0));
        Ok::<(Vec<u64>, usize), Error>((bits(&made), most.load(Ordering::Relaxed)))
    };
    let (all, most_held) = run(usize::MAX, 64).unwrap();
    assert_eq!(most_held, 64);
    for (columns, most_held) in [(8, 64), (3, 24), (2, 16), (1, 8)] {
        assert_eq!(run(result + columns * column, 64).unwrap(), (all.clone(), most_held));
    }
    let error = run(result + column - 1, 64).expect_err("an error");
    assert_eq!(
        error.to_string(),
        "a result of 64 tiles with sums of 0 bytes and 256 bytes of the left operand's tiles at a time takes 2304 bytes; the limit is 2303 bytes, which is exceeded by 1 bytes; raise the threshold, or `most_bytes`"
    );
    // If a segment fits into memory, panels end where segments end. The sum of one segment of a block counts.
    let (cut, _) = run(usize::MAX, 2).unwrap();
    assert_ne!(cut, all);
    assert_eq!(run(2 * result + 3 * column, 2).unwrap(), (cut, 16));
    // Otherwise the sum of a segment is kept from one panel to the next: here for a vector with tiles of 16 bytes.
    let vector = random::dense::<f64>(&Tiling::new([&axis]).unwrap(), 4);
    let run = |most_bytes: usize| {
        let options = Options::default().threshold(0.0).segment(Segment { elements: 8192, tiles: 2 }).block_bytes(0);
        most.store(0, Ordering::Relaxed);
        let made = Evaluator::new(options).most_bytes(most_bytes).product("ij,j->i", &a, &vector)?;
        Ok::<(Vec<u64>, usize), Error>((bits(&made), most.load(Ordering::Relaxed)))
    };
    let (expected, _) = run(usize::MAX).unwrap();
    assert_eq!(run(128 + 16 + 2 * column).unwrap(), (expected.clone(), 16));
    assert_eq!(run(2 * 128 + 16 + column).unwrap(), (expected, 8));
    assert!(run(2 * 128 + 16 + column - 1).is_err());
}

/// A list of elements that is counted as long as it exists.
struct Counted {
    elements: Vec<f64>,
    held: Arc<AtomicUsize>,
}

impl AsRef<[f64]> for Counted {
    fn as_ref(&self) -> &[f64] {
        &self.elements
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.held.fetch_sub(1, Ordering::Relaxed);
    }
}

#[test]
fn memory_of_dropped_results_is_used_again() {
    let axis = Tiling1::blocked(64, 32).unwrap();
    let tiling = Tiling::new([&axis, &axis]).unwrap();
    let a = random::dense::<f64>(&tiling, 1);
    let addresses = |of: &Tiled| -> Vec<usize> {
        let mut found: Vec<usize> =
            of.tiles().map(|tile| tile.unwrap().1.elements::<f64>().as_ptr() as usize).collect();
        found.sort_unstable();
        found
    };
    let run = Evaluator::new(Options::default());
    let first = run.product("ij,jk->ik", &a, &a).unwrap();
    let (before, expected) = (addresses(&first), bits(&first));
    let second = run.product("ij,jk->ik", &a, &a).unwrap();
    assert!(addresses(&second).iter().all(|address| !before.contains(address)));
    drop(first);
    // The old elements of reused memory do not matter.
    let third = run.clone().product("ij,jk->ik", &a, &a).unwrap();
    assert_eq!((addresses(&third), bits(&third)), (before, expected.clone()));
    // Results outlive their evaluator.
    drop(run);
    assert_eq!(bits(&third), expected);
    let none = Evaluator::new(Options::default().pool_bytes(0));
    assert_eq!(bits(&none.product("ij,jk->ik", &a, &a).unwrap()), expected);
    // A tile that is still in use is not overwritten.
    let run = Evaluator::new(Options::default());
    let sum = run.add(&a, &a).unwrap();
    let tile = sum.tile(0).unwrap().unwrap();
    let elements = tile.elements::<f64>().to_vec();
    drop(sum);
    run.scale(&a, 7.0).unwrap();
    assert_eq!(tile.elements::<f64>(), elements);
}

#[test]
fn fewer_threads_work_where_there_are_few_bytes() {
    let axis = Tiling1::blocked(8, 2).unwrap();
    let tiling = Tiling::new([&axis, &axis]).unwrap();
    let a = random::dense::<f64>(&tiling, 1);
    let bytes = a.memory_bytes();
    let run = |most| Evaluator::new(Options::default().threshold(0.0)).most_bytes(most).threads(2);
    let expected = bits(&run(usize::MAX).materialized(&lazy(&a)).unwrap());
    assert_eq!(bits(&run(bytes).materialized(&lazy(&a)).unwrap()), expected);
    assert!(run(bytes - 1).materialized(&lazy(&a)).is_err());
    assert!(run(bytes).scale(&lazy(&a), 1.0).is_err());
    assert_eq!(bits(&run(bytes + 32).scale(&lazy(&a), 1.0).unwrap()), expected);
    let half = cembra_tiles::Screening { threshold: 0.0, ..ALL };
    assert!(run(bytes).truncate(&lazy(&a), &half).is_err());
    assert_eq!(bits(&run(bytes + 64).truncate(&lazy(&a), &half).unwrap()), expected);
}
