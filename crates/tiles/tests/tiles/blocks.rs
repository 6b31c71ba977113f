//! Tests of blocks, ranges of elements, changes of tilings and permutations of axes: results are compared with slices
//! of dense tensors.

use crate::random::{self, ALL, bits};
use crate::threads::{all_bits, on_five_threads};
use cembra_runtime::{Cancellation, FaultKind, Scalar};
use cembra_tiles::{
    Base, Evaluator, Journal, MOST_TILES, Options, Screening, Shape, TilePlace, Tiled, Tiling, Tiling1,
};
use cembra_value::Error;
use cembra_value::tensor::{Slice, Tensor, TensorErrorKind as Kind};
use fastrand::Rng;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// A random range of elements for each axis.
fn part(rng: &mut Rng, tiling: &Tiling) -> Vec<Range<i64>> {
    let mut range = |axis: &Tiling1| {
        let start = rng.i64(axis.lower()..=axis.upper());
        start..rng.i64(start..=axis.upper())
    };
    tiling.axes().iter().map(&mut range).collect()
}

/// The given ranges of elements as a slice of the dense tensor.
fn slice(tiled: &Tiled, ranges: &[Range<i64>]) -> Tensor {
    let slices = ranges.iter().zip(tiled.tiling().axes()).map(|(range, axis)| Slice {
        start: (range.start - axis.lower()) as usize,
        step: 1,
        count: (range.end - range.start) as usize,
    });
    tiled.to_tensor().expect("it fits").sliced(&slices.collect::<Vec<_>>()).expect("it fits")
}

/// A lazy tensor with the same elements.
fn lazy(of: &Tiled) -> Tiled {
    let whole = of.clone();
    let source = move |place: &TilePlace| Ok(whole.tile(place.number)?.expect("present").tensor().clone());
    Tiled::lazy(of.shape(), of.scalar_type(), source).expect("it fits")
}

#[test]
fn retiled_tensors_have_the_same_elements_and_come_back() {
    let mut rng = Rng::with_seed(7);
    for case in 0..100 {
        let tiling = random::tiling(&mut rng, 1 + case % 3);
        let whole = random::sparse::<f64>(&mut rng, &tiling, 0.5);
        let other = Tiling::new(tiling.axes().iter().map(|axis| random::other_axis(&mut rng, axis))).unwrap();
        let made = whole.retile(&other, &ALL).unwrap();
        assert_eq!(*made.tiling(), other);
        assert_eq!(made.to_tensor().unwrap(), whole.to_tensor().unwrap());
        assert_eq!(bits(&lazy(&whole).retile(&other, &ALL).unwrap()), bits(&made));
        // A tile is present exactly if it has an element of a tile that was present, and norms are those of the
        // elements.
        for tile in 0..other.tiles() {
            let ranges = other.ranges(tile).unwrap();
            let touched = whole.shape().tiles().iter().any(|own| {
                let own = tiling.ranges(*own).unwrap();
                own.iter().zip(&ranges).all(|(a, b)| a.start.max(b.start) < a.end.min(b.end))
            });
            assert_eq!(made.shape().norm(tile).is_some(), touched, "tile {tile}");
        }
        let truth = Tiled::from_tensor(&whole.to_tensor().unwrap(), &other, &ALL).unwrap();
        assert!(made.shape().iter().all(|(tile, norm)| truth.shape().norm(tile) == Some(norm)));
        let back = made.retile(&tiling, &Screening::threshold(1e-300)).unwrap();
        assert_eq!((back.shape(), bits(&back)), (whole.shape(), bits(&whole)));
    }
}

#[test]
fn retiling_is_refused_over_another_range_and_where_there_would_be_too_many_tiles() {
    let whole = random::dense::<f64>(&Tiling::new([Tiling1::blocked(1000, 500).unwrap()]).unwrap(), 1);
    let kind = |axis: Tiling1, most_tiles| {
        let screening = Screening { threshold: 0.0, most_tiles };
        whole.retile(&Tiling::new([axis]).unwrap(), &screening).expect_err("an error").tensor_kind()
    };
    assert_eq!(kind(Tiling1::blocked(999, 10).unwrap(), MOST_TILES), Some(Kind::SizeMismatch));
    assert_eq!(kind(Tiling1::blocked(1000, 10).unwrap().rebased(1).unwrap(), MOST_TILES), Some(Kind::SizeMismatch));
    assert_eq!(kind(Tiling1::blocked(1000, 1).unwrap(), 999), Some(Kind::Limit));
    assert_eq!(kind(Tiling1::blocked(1000, 1).unwrap(), 10), Some(Kind::Limit));
}

#[test]
fn ranges_of_elements_are_slices() {
    let mut rng = Rng::with_seed(8);
    for case in 0..200 {
        let tiling = random::tiling(&mut rng, 1 + case % 3);
        let whole = random::sparse::<f32>(&mut rng, &tiling, 0.6);
        let ranges = part(&mut rng, &tiling);
        let kept = whole.elements(&ranges, Base::Kept, &ALL).unwrap();
        let rebased = lazy(&whole).elements(&ranges, Base::Zero, &ALL).unwrap();
        let expected = slice(&whole, &ranges);
        assert_eq!(kept.to_tensor().unwrap(), expected);
        assert_eq!(rebased.to_tensor().unwrap(), expected);
        for (axis, range) in ranges.iter().enumerate() {
            assert_eq!(
                (kept.tiling().axes()[axis].lower(), kept.tiling().axes()[axis].upper()),
                (range.start, range.end)
            );
            assert_eq!(rebased.tiling().axes()[axis].lower(), 0);
        }
        // Written back to its place, the part changes nothing; written into zeros, its elements are the only ones.
        let first: Vec<i64> = ranges.iter().map(|range| range.start).collect();
        let same = whole.with_elements(&first, &rebased, &ALL).unwrap();
        assert_eq!(same.to_tensor().unwrap(), whole.to_tensor().unwrap());
        let nothing = Tiled::from_fn::<f32>(&Shape::empty(&tiling), |_| 1.0).unwrap();
        let alone = nothing.with_elements(&first, &kept, &ALL).unwrap();
        assert_eq!(slice(&alone, &ranges), expected);
        let sum = |tensor: &Tensor| tensor.to_vec::<f32>().unwrap().iter().map(|x| x.abs()).sum::<f32>();
        assert!((sum(&alone.to_tensor().unwrap()) - sum(&expected)).abs() < 1e-3);
        // Zeros that are written over a range do not change the elements around it.
        let cleared = whole
            .with_elements(&first, &Tiled::from_fn::<f32>(&Shape::empty(kept.tiling()), |_| 1.0).unwrap(), &ALL)
            .unwrap();
        assert_eq!(sum(&slice(&cleared, &ranges)), 0.0);
        let rest = sum(&whole.to_tensor().unwrap()) - sum(&expected);
        assert!((sum(&cleared.to_tensor().unwrap()) - rest).abs() < 1e-3);
        let restored = cleared.with_elements(&first, &kept, &ALL).unwrap();
        assert_eq!(restored.to_tensor().unwrap(), whole.to_tensor().unwrap());
    }
}

#[test]
fn elements_are_written_into_tiles_of_any_other_tiling() {
    let line = |boundaries: &[i64]| Tiling::new([Tiling1::new(boundaries.iter().copied()).unwrap()]).unwrap();
    let whole = Tiled::from_fn(&Shape::dense(&line(&[-2, 1, 4, 6]), 9).unwrap(), |at| at[0] as f64).unwrap();
    let part = Tiled::from_fn(&Shape::dense(&line(&[0, 1, 2, 3]), 9).unwrap(), |at| 100.0 + at[0] as f64).unwrap();
    let made = whole.with_elements(&[0], &part, &ALL).unwrap();
    assert_eq!(made.to_tensor().unwrap().to_vec::<f64>().unwrap(), [-2.0, -1.0, 100.0, 101.0, 102.0, 3.0, 4.0, 5.0]);
    assert_eq!(made.tiling(), whole.tiling());
    // A tile that absent tiles replace as a whole is absent; a tile that they replace in part is present.
    let nothing = Tiled::from_fn::<f64>(&Shape::empty(&line(&[0, 4])), |_| 1.0).unwrap();
    let cleared = whole.with_elements(&[0], &nothing, &ALL).unwrap();
    assert_eq!(cleared.shape().tiles(), [0, 2]);
    assert_eq!(cleared.to_tensor().unwrap().to_vec::<f64>().unwrap(), [-2.0, -1.0, 0.0, 0.0, 0.0, 0.0, 4.0, 5.0]);
    let over = whole.with_elements(&[4], &part, &ALL).expect_err("an error");
    assert_eq!(over.tensor_kind(), Some(Kind::Index));
    let single = Tiled::from_fn(&Shape::dense(&line(&[0, 1]), 9).unwrap(), |_| 1.0_f32).unwrap();
    assert_eq!(whole.with_elements(&[0], &single, &ALL).expect_err("an error").tensor_kind(), Some(Kind::ElementType));
}

#[test]
fn blocks_of_tiles_share_their_tiles() {
    let mut rng = Rng::with_seed(9);
    for case in 0..200 {
        let tiling = random::tiling(&mut rng, 1 + case % 3);
        let whole = random::sparse::<f64>(&mut rng, &tiling, 0.6);
        let tiles: Vec<Range<u64>> = (tiling.axes().iter())
            .map(|axis| {
                let start = rng.u64(0..=axis.tiles());
                start..rng.u64(start..=axis.tiles())
            })
            .collect();
        let bound = |axis: &Tiling1, at: u64| axis.boundaries().nth(at as usize).unwrap();
        let ranges: Vec<Range<i64>> = tiling
            .axes()
            .iter()
            .zip(&tiles)
            .map(|(axis, tiles)| bound(axis, tiles.start)..bound(axis, tiles.end))
            .collect();
        for base in [Base::Zero, Base::Kept] {
            let block = whole.block(&tiles, base).unwrap();
            assert_eq!(block.to_tensor().unwrap(), slice(&whole, &ranges));
            let lower: Vec<i64> = ranges.iter().map(|range| if base == Base::Kept { range.start } else { 0 }).collect();
            assert!(block.tiling().axes().iter().map(Tiling1::lower).eq(lower));
            let made = lazy(&whole).block(&tiles, base).unwrap();
            assert!(made.is_lazy());
            assert_eq!((made.shape(), bits(&made)), (block.shape(), bits(&block)));
            // Written back to its place, the block changes nothing, and its tiles are shared.
            let first: Vec<u64> = tiles.iter().map(|range| range.start).collect();
            let same = whole.with_block(&first, &block).unwrap();
            assert_eq!((same.shape(), bits(&same)), (whole.shape(), bits(&whole)));
            assert!(
                whole.tiles().zip(same.tiles()).all(|(a, b)| a
                    .unwrap()
                    .1
                    .tensor()
                    .shares_memory(b.unwrap().1.tensor()))
            );
            // Another tensor replaces the block.
            let other = random::sparse::<f64>(&mut rng, block.tiling(), 0.5);
            let replaced = whole.with_block(&first, &other).unwrap();
            assert_eq!(bits(&replaced.block(&tiles, base).unwrap()), bits(&other));
            assert_eq!(replaced.block(&tiles, base).unwrap().shape().tiles(), other.shape().tiles());
            let outside = whole.shape().len() - block.shape().len();
            assert_eq!(replaced.shape().len(), outside + other.shape().len());
            let all = replaced.with_block(&first, &block).unwrap();
            assert_eq!((all.shape(), bits(&all)), (whole.shape(), bits(&whole)));
        }
    }
}

#[test]
fn blocks_that_do_not_fit_are_refused() {
    let tiling = Tiling::new([Tiling1::new([0, 2, 5, 7]).unwrap()]).unwrap();
    let whole = random::dense::<f64>(&tiling, 3);
    let block = |boundaries: &[i64]| {
        random::dense::<f64>(&Tiling::new([Tiling1::new(boundaries.iter().copied()).unwrap()]).unwrap(), 4)
    };
    let kind = |first: &[u64], block: &Tiled| whole.with_block(first, block).expect_err("an error").tensor_kind();
    assert_eq!(kind(&[0], &block(&[0, 3])), Some(Kind::SizeMismatch));
    assert_eq!(kind(&[2], &block(&[0, 2, 5])), Some(Kind::Index));
    assert_eq!(kind(&[u64::MAX], &block(&[0, 2])), Some(Kind::Index));
    assert_eq!(kind(&[0, 0], &block(&[0, 2])), Some(Kind::RankMismatch));
    assert!(whole.with_block(&[1], &block(&[7, 10, 12])).is_ok());
    let floats = Tiled::from_fn(&Shape::dense(&tiling, 9).unwrap(), |_| 1.0_f32).unwrap();
    assert_eq!((kind(&[0], &floats), floats.scalar_type()), (Some(Kind::ElementType), Scalar::Float32));
}

#[test]
fn permuted_axes_are_those_of_the_dense_tensor() {
    let mut rng = Rng::with_seed(10);
    for _ in 0..60 {
        let tiling = random::tiling(&mut rng, 3);
        let whole = random::sparse::<f64>(&mut rng, &tiling, 0.5);
        let mut of = [0, 1, 2];
        rng.shuffle(&mut of);
        let made = whole.permuted(&of).unwrap();
        assert_eq!(made.to_tensor().unwrap(), whole.to_tensor().unwrap().transposed(&of).unwrap());
        let mut back = [0; 3];
        of.iter().enumerate().for_each(|(at, axis)| back[*axis] = at);
        let back = made.permuted(&back).unwrap();
        assert_eq!((back.shape(), bits(&back)), (whole.shape(), bits(&whole)));
        assert!(
            lazy(&whole)
                .permuted(&of)
                .unwrap()
                .tiles()
                .zip(made.tiles())
                .all(|(a, b)| a.unwrap().1.tensor() == b.unwrap().1.tensor())
        );
    }
}

#[test]
fn masked_tensors_have_the_tiles_of_both() {
    let mut rng = Rng::with_seed(12);
    let tiling = random::tiling(&mut rng, 2);
    let (a, b) = (random::sparse::<f64>(&mut rng, &tiling, 0.6), random::sparse::<f64>(&mut rng, &tiling, 0.6));
    for masked in [a.masked(b.shape()).unwrap(), lazy(&a).masked(b.shape()).unwrap()] {
        for tile in 0..tiling.tiles() {
            let expected = a.tile(tile).unwrap().filter(|_| b.shape().norm(tile).is_some());
            assert_eq!(masked.tile(tile).unwrap().map(|t| t.tensor().clone()), expected.map(|t| t.tensor().clone()));
        }
    }
}

/// The results of the four operations that cut tiles: two ranges of elements, replaced elements, and another tiling.
fn recut_by(
    run: &Evaluator,
    whole: &Tiled,
    part: &Tiled,
    other: &Tiling,
    ranges: &[Range<i64>],
) -> [Result<Tiled, Error>; 4] {
    let first: Vec<i64> = ranges.iter().map(|range| range.start).collect();
    let screening = Screening::threshold(0.2);
    [
        run.elements(whole, ranges, Base::Zero, &ALL),
        run.elements(whole, ranges, Base::Kept, &screening),
        run.with_elements(whole, &first, part, &screening),
        run.retile(whole, other, &screening),
    ]
}

#[test]
fn ranges_of_elements_have_the_same_bits_on_any_number_of_threads_and_within_any_bytes() {
    on_five_threads(|| {
        let mut rng = Rng::with_seed(14);
        for case in 0..120 {
            let tiling = random::tiling(&mut rng, 1 + case % 3);
            let whole = random::sparse::<f64>(&mut rng, &tiling, 0.6);
            let ranges = part(&mut rng, &tiling);
            let other = Tiling::new(tiling.axes().iter().map(|axis| random::other_axis(&mut rng, axis))).unwrap();
            let cut = ranges.iter().map(|range| Tiling1::new([range.start, range.end]).unwrap());
            let cut = Tiling::new(cut.map(|axis| random::other_axis(&mut rng, &axis))).unwrap();
            let over = random::sparse::<f64>(&mut rng, &cut, 0.6);
            let run = |options: Options| Evaluator::new(options.threshold(0.0));
            let one = recut_by(&run(Options::default()), &whole, &over, &other, &ranges).map(Result::unwrap);
            let alone = [
                whole.elements(&ranges, Base::Zero, &ALL),
                whole.elements(&ranges, Base::Kept, &Screening::threshold(0.2)),
                whole.with_elements(
                    &cut.axes().iter().map(Tiling1::lower).collect::<Vec<_>>(),
                    &over,
                    &Screening::threshold(0.2),
                ),
                whole.retile(&other, &Screening::threshold(0.2)),
            ];
            for (one, alone) in one.iter().zip(alone) {
                assert_eq!(all_bits(one), all_bits(&alone.unwrap()), "{case}");
                assert!(
                    one.tiles().map(Result::unwrap).all(|(number, tile)| one.shape().norm(number) == Some(tile.norm()))
                );
            }
            for (threads, block_bytes) in [(2, 0), (5, 0), (5, 64)] {
                let options = Options::default().block_bytes(block_bytes);
                for (whole, over) in [(whole.clone(), over.clone()), (lazy(&whole), lazy(&over))] {
                    // New results use memory of dropped ones, which still has other elements.
                    let run = run(options.clone()).threads(threads);
                    for _ in 0..2 {
                        let again = recut_by(&run, &whole, &over, &other, &ranges);
                        for (again, one) in again.into_iter().zip(&one) {
                            assert_eq!(all_bits(&again.unwrap()), all_bits(one), "{case}");
                        }
                    }
                }
            }
        }
    });
}

/// A lazy vector of ones, and a log of the numbers of the tiles that were computed.
fn asked(boundaries: &[i64]) -> (Tiled, Arc<Mutex<Vec<u64>>>) {
    let axis = Tiling1::new(boundaries.iter().copied()).expect("ascending");
    let shape = Shape::dense(&Tiling::new([axis]).expect("few tiles"), MOST_TILES).expect("few tiles");
    let log = Arc::new(Mutex::new(Vec::new()));
    let own = log.clone();
    let source = move |place: &TilePlace| {
        own.lock().expect("no panic").push(place.number);
        Tensor::new(&place.extents(), vec![1.0; place.extents()[0]])
    };
    (Tiled::lazy(&shape, Scalar::Float64, source).expect("floats"), log)
}

#[test]
fn ranges_of_elements_take_no_more_bytes_than_there_may_be() {
    let line = |boundaries: &[i64]| Tiling::new([Tiling1::new(boundaries.iter().copied()).unwrap()]).unwrap();
    let run = |most: usize| Evaluator::new(Options::default().threshold(0.0)).most_bytes(most);
    let message = |made: Result<Tiled, Error>| made.expect_err("an error").to_string();
    // Six elements, of which one tile is needed in part and one as a whole: one lazy tile of four elements is held in
    // addition to the result, and no other tile is computed.
    let (a, log) = asked(&[0, 4, 8, 12, 16, 20]);
    let range = |range: Range<i64>| [range];
    let limit = message(run(48 + 31).elements(&a, &range(6..12), Base::Zero, &ALL));
    assert_eq!(
        limit,
        "a result of 2 tiles, computed with 32 bytes of operands at a time, takes 80 bytes; the limit is 79 bytes, which is exceeded by 1 bytes; raise the threshold, or `most_bytes`"
    );
    assert!(log.lock().unwrap().is_empty());
    let made = run(48 + 32).elements(&a, &range(6..12), Base::Zero, &ALL).unwrap();
    assert_eq!((made.shape().tiles(), made.memory_bytes()), (&[0, 1][..], 48));
    assert_eq!(std::mem::take(&mut *log.lock().unwrap()), [1, 2]);
    // A lazy tile whose elements go to several new tiles is computed once, and held until all of these are made.
    let (wide, log) = asked(&[0, 10, 20]);
    let halves = line(&[0, 5, 10, 15, 20]);
    assert!(
        message(run(160 + 159).retile(&wide, &halves, &ALL))
            .ends_with("which is exceeded by 1 bytes; raise the threshold, or `most_bytes`")
    );
    log.lock().unwrap().clear();
    assert_eq!(run(160 + 160).retile(&wide, &halves, &ALL).unwrap().shape().len(), 4);
    assert_eq!(std::mem::take(&mut *log.lock().unwrap()), [0, 1]);
    // A lazy tile that is replaced as a whole is not computed.
    let part = random::dense::<f64>(&line(&[0, 3, 12]), 3);
    let with = |most: usize| run(most).with_elements(&wide, &[8], &part, &ALL);
    assert!(message(with(160 + 79)).ends_with("which is exceeded by 1 bytes; raise the threshold, or `most_bytes`"));
    assert!(log.lock().unwrap().is_empty());
    assert_eq!(with(160 + 80).unwrap().shape().len(), 2);
    assert_eq!(*log.lock().unwrap(), [0]);
}

#[test]
fn whole_tiles_of_a_range_are_shared() {
    let line = |boundaries: &[i64]| Tiling::new([Tiling1::new(boundaries.iter().copied()).unwrap()]).unwrap();
    let a = random::dense::<f64>(&line(&[-4, 0, 4, 8]), 1);
    let is_shared = |made: &Tiled, at: u64, from: u64| {
        let [made, from] = [(made, at), (&a, from)].map(|(of, at)| of.tile(at).unwrap().unwrap());
        made.tensor().shares_memory(from.tensor())
    };
    let run = Evaluator::new(Options::default().threshold(0.0));
    let cut = run.elements(&a, std::slice::from_ref(&(-2..8)), Base::Zero, &ALL).unwrap();
    assert_eq!([(0, 0), (1, 1), (2, 2)].map(|(at, from)| is_shared(&cut, at, from)), [false, true, true]);
    let other = run.retile(&a, &line(&[-4, 0, 3, 8]), &ALL).unwrap();
    assert_eq!([(0, 0), (1, 1), (2, 2)].map(|(at, from)| is_shared(&other, at, from)), [true, false, false]);
    let over = random::dense::<f64>(&line(&[0, 2]), 2);
    let written = run.with_elements(&a, &[1], &over, &ALL).unwrap();
    assert_eq!([(0, 0), (1, 1), (2, 2)].map(|(at, from)| is_shared(&written, at, from)), [true, false, true]);
    // A range of whole tiles shares them, so it needs no memory.
    let none = Evaluator::new(Options::default().threshold(0.0)).most_bytes(0);
    assert!(none.elements(&a, std::slice::from_ref(&(0..8)), Base::Kept, &ALL).is_ok());
    assert!(none.elements(&a, std::slice::from_ref(&(1..8)), Base::Kept, &ALL).is_err());
}

#[test]
fn tiles_of_a_range_are_estimated_before_they_are_made_and_screened_by_their_norms() {
    let axis = Tiling1::blocked(8, 4).unwrap();
    let tiling = Tiling::new([&axis]).unwrap();
    let shape = Shape::of_norms(&tiling, [(0, 1e-9), (1, 1.0)], &ALL).unwrap();
    let asked = Arc::new(Mutex::new(Vec::new()));
    let log = asked.clone();
    let source = move |place: &TilePlace| {
        log.lock().unwrap().push(place.number);
        Tensor::new(&[4], vec![0.0, 0.0, 0.0, 2.0])
    };
    let a = Tiled::lazy(&shape, Scalar::Float64, source).unwrap();
    let run = Evaluator::new(Options::default());
    let part = run.elements(&a, std::slice::from_ref(&(1..7)), Base::Zero, &Screening::threshold(1e-6)).unwrap();
    // A tile whose norm in the shape is small is not computed. A tile whose computed norm is small is absent.
    assert_eq!((part.shape().len(), asked.lock().unwrap().clone()), (0, vec![1]));
    let part = run.elements(&a, std::slice::from_ref(&(1..8)), Base::Zero, &Screening::threshold(1e-6)).unwrap();
    assert_eq!(part.shape().iter().collect::<Vec<_>>(), [(1, 0.5)]);
}

#[test]
fn ranges_of_elements_are_tasks_that_a_token_ends_and_a_journal_counts() {
    let axis = Tiling1::blocked(30, 2).unwrap();
    let tiling = Tiling::new([&axis]).unwrap();
    let whole = random::dense::<f64>(&tiling, 1);
    let range = std::slice::from_ref(&(1..30));
    on_five_threads(|| {
        for threads in [1, 2, 5] {
            let journal = Journal::default();
            let run = Evaluator::new(Options::default().block_bytes(0)).threads(threads).journal(journal.clone());
            run.elements(&whole, range, Base::Zero, &ALL).unwrap();
            assert_eq!((journal.progress().done, journal.progress().of), (15, 15));
            let token = Cancellation::new();
            let (own, begun) = (token.clone(), Arc::new(AtomicUsize::new(0)));
            let counter = begun.clone();
            let source = move |place: &TilePlace| {
                counter.fetch_add(1, Ordering::Relaxed);
                own.cancel();
                Tensor::zeros(Scalar::Float64, &place.extents())
            };
            let lazy = Tiled::lazy(whole.shape(), Scalar::Float64, source).unwrap();
            let run = run.cancellation(token);
            let ended = run.elements(&lazy, range, Base::Zero, &ALL).expect_err("an error");
            assert_eq!(ended.fault_kind(), Some(FaultKind::Cancelled));
            assert!(begun.load(Ordering::Relaxed) <= threads);
            for ended in [
                run.with_elements(&whole, &[1], &whole.elements(range, Base::Zero, &ALL).unwrap(), &ALL),
                run.retile(&whole, &Tiling::new([Tiling1::blocked(30, 3).unwrap()]).unwrap(), &ALL),
            ] {
                assert_eq!(ended.expect_err("an error").fault_kind(), Some(FaultKind::Cancelled));
            }
        }
    });
}
