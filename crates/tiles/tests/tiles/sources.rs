//! Tests of tensors that are made from functions, from seeds, from other tensors, and from closures that fail.

use crate::random::{self, ALL, bits};
use cembra_runtime::Scalar;
use cembra_tiles::{
    ALIGNMENT, Evaluator, Float, MOST_TILES, Screening, Shape, SymbolicProduct, Tile, TilePlace, Tiled, Tiling, Tiling1,
};
use cembra_value::Error;
use cembra_value::tensor::{Slice, Tensor, TensorErrorKind as Kind};
use fastrand::Rng;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Tensors, plans and evaluators are used from many threads.
const _: () = {
    const fn is_shared<T: Send + Sync>() {}
    is_shared::<Tiled>();
    is_shared::<Shape>();
    is_shared::<Tiling>();
    is_shared::<SymbolicProduct>();
    is_shared::<Evaluator>();
};

fn grid() -> Tiling {
    let axis = Tiling1::new([-1, 1, 1, 4]).expect("a tiling");
    Tiling::new([&axis, &axis]).expect("a tiling")
}

#[test]
fn functions_are_not_called_for_absent_tiles() {
    let shape = Shape::of_norms(&grid(), [(0, 1.0), (8, 1.0)], &ALL).expect("a shape");
    let mut asked = Vec::new();
    let made = Tiled::from_fn(&shape, |at| {
        asked.push((at[0], at[1]));
        (10 * at[0] + at[1]) as f64
    });
    let made = made.expect("a tensor");
    let first = [(-1, -1), (-1, 0), (0, -1), (0, 0)];
    let last = (1..4).flat_map(|i| (1..4).map(move |j| (i, j)));
    assert_eq!(asked, first.into_iter().chain(last).collect::<Vec<_>>());
    assert_eq!(made.get::<f64>(&[3, 2]).expect("an element"), 32.0);
    assert_eq!(made.get::<f64>(&[0, 2]).expect("an element"), 0.0);
    // The norms of the elements replace those of the lazy tensor's shape.
    assert_eq!(made.shape().norm(0), Some((121.0_f64 + 100.0 + 1.0).sqrt() / 4.0));
    assert_eq!(made.get::<f64>(&[4, 0]).expect_err("an error").tensor_kind(), Some(Kind::Index));
    assert_eq!(made.get::<f32>(&[0, 0]).expect_err("an error").tensor_kind(), Some(Kind::ElementType));
    let panics = Tiled::from_fn::<f64>(&shape, |at| if at[0] > 2 { panic!("no") } else { 1.0 });
    assert_eq!(panics.expect_err("an error").tensor_kind(), Some(Kind::Evaluation));
}

#[test]
fn random_elements_do_not_depend_on_the_tiling() {
    let mut rng = Rng::with_seed(4);
    for _ in 0..20 {
        let tiling = random::tiling(&mut rng, 2);
        let others =
            Tiling::new(tiling.axes().iter().map(|axis| random::other_axis(&mut rng, axis))).expect("a tiling");
        assert_eq!(bits(&random::dense::<f64>(&tiling, 9)), bits(&random::dense::<f64>(&others, 9)));
    }
    let line = Tiling::new([Tiling1::blocked(100_000, 1000).expect("a tiling")]).expect("a tiling");
    let elements = random::dense::<f64>(&line, 1).to_tensor().expect("a tensor").to_vec::<f64>().expect("floats");
    assert!(elements.iter().all(|element| (-1.0..1.0).contains(element)));
    let mean = elements.iter().sum::<f64>() / 1e5;
    let square = elements.iter().map(|x| x * x).sum::<f64>() / 1e5;
    assert!(mean.abs() < 0.01 && (square - 1.0 / 3.0).abs() < 0.01, "{mean} {square}");
    assert_ne!(bits(&random::dense::<f64>(&line, 1)), bits(&random::dense::<f64>(&line, 2)));
}

#[test]
fn tiles_are_packed_and_aligned_whatever_they_are_made_of() {
    let whole = Tensor::new(&[7, 9], (0..63_u8).map(f64::from).collect()).expect("a tensor");
    let views = [whole.clone(), whole.transposed(&[1, 0]).expect("a view").transposed(&[1, 0]).expect("a view")];
    let axes = [Tiling1::blocked(7, 3).expect("a tiling"), Tiling1::blocked(9, 4).expect("a tiling")];
    for view in views {
        let tiled = Tiled::from_tensor(&view, &Tiling::new(&axes).expect("a tiling"), &ALL).expect("a tensor");
        assert_eq!(tiled.shape().len(), 9);
        for tile in tiled.tiles() {
            let (_, tile) = tile.expect("a tile");
            assert!(tile.tensor().layout().is_row_major());
            assert_eq!(tile.elements::<f64>().as_ptr().align_offset(ALIGNMENT), 0);
            assert!(!tile.tensor().shares_memory(&whole));
        }
        assert_eq!(tiled.to_tensor().expect("a tensor"), whole);
        assert_eq!(tiled.tile(5).expect("a tile").expect("present").elements::<f64>(), [35.0, 44.0, 53.0]);
    }
    let one = Tiled::from_tensor(
        &whole,
        &Tiling::new([Tiling1::blocked(7, 7), Tiling1::blocked(9, 9)].map(Result::unwrap)).expect("a tiling"),
        &ALL,
    );
    let tile = one.expect("a tensor").tile(0).expect("a tile").expect("present");
    assert!(Tile::of(tile.tensor()).expect("a tile").tensor().shares_memory(tile.tensor()));
    // The first row is packed, but a view of it would keep the memory of all rows alive.
    let rows = [Slice::all(1), Slice::all(9)];
    let row = Tile::of(&tile.tensor().sliced(&rows).expect("a view")).expect("a tile");
    assert!(!row.tensor().shares_memory(tile.tensor()));
    assert_eq!(row.elements::<f64>(), [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]);
}

#[test]
fn norms_are_true_where_squares_leave_the_range_of_floats() {
    let line = Tiling::new([Tiling1::blocked(4, 4).expect("a tiling")]).expect("a tiling");
    let norm = |elements: [f64; 4]| {
        let tensor = Tensor::new(&[4], elements.to_vec()).expect("a tensor");
        Tiled::from_tensor(&tensor, &line, &ALL).expect("a tensor").shape().norms()[0]
    };
    assert_eq!(norm([3.0, 0.0, -4.0, 0.0]), 1.25);
    assert!((norm([3e200, 0.0, -4e200, 0.0]) / 1.25e200 - 1.0).abs() < 1e-15);
    assert!((norm([3e-200, 4e-200, 0.0, 0.0]) / 1.25e-200 - 1.0).abs() < 1e-15);
    assert!((norm([5e-310, 0.0, 0.0, 0.0]) / 1.25e-310 - 1.0).abs() < 1e-10);
    // The root of the sum of squares is larger than any float, but the norm, which is a quarter of it, is not.
    assert_eq!(norm([f64::MAX; 4]), f64::MAX / 2.0);
    assert_eq!(norm([0.0; 4]), 0.0);
    assert_eq!(norm([1.0, f64::INFINITY, 0.0, 0.0]), f64::INFINITY);
    assert!(norm([1.0, f64::INFINITY, f64::NAN, 0.0]).is_nan());
}

/// A lazy tensor with the elements of `of`, which counts in `asked` how many tiles are computed.
fn lazy(of: &Tiled, asked: &Arc<AtomicUsize>) -> Tiled {
    let (whole, asked) = (of.clone(), asked.clone());
    let source = move |place: &TilePlace| {
        asked.fetch_add(1, Ordering::Relaxed);
        let tile = whole.tile(place.number)?.ok_or_else(|| Error::tensors(Kind::Index, "an absent tile"))?;
        // The function returns a view that is not packed, as a user's function may.
        tile.tensor().transposed(&[1, 0])?.row_major().transposed(&[1, 0])
    };
    Tiled::lazy(of.shape(), of.scalar_type(), source).expect("a lazy tensor")
}

#[test]
fn lazy_tiles_are_asked_for_when_they_are_needed_and_norms_are_promises_until_then() {
    let mut rng = Rng::with_seed(5);
    let whole = random::sparse::<f32>(&mut rng, &random::tiling(&mut Rng::with_seed(11), 2), 0.7);
    let asked = Arc::new(AtomicUsize::new(0));
    let promised = Shape::of_norms(whole.tiling(), whole.shape().tiles().iter().map(|tile| (*tile, 100.0)), &ALL)
        .expect("a shape");
    let made = lazy(&whole, &asked);
    let source = made.clone();
    let made = Tiled::lazy(&promised, Scalar::Float32, move |place: &TilePlace| {
        Ok(source.tile(place.number)?.expect("present").tensor().clone())
    });
    let made = made.expect("a lazy tensor");
    assert!(made.is_lazy() && asked.load(Ordering::Relaxed) == 0);
    assert_eq!(made.shape().norms()[0], 100.0);
    assert_eq!(bits(&made), bits(&whole));
    assert_eq!(asked.load(Ordering::Relaxed), whole.shape().len());
    let stored = made.materialized().expect("tiles");
    assert_eq!((stored.shape(), stored.is_lazy()), (whole.shape(), false));
    let threshold = whole.shape().norms().iter().copied().fold(0.0, f64::max);
    let truncated = made.truncate(&Screening::threshold(threshold)).expect("tiles");
    assert_eq!((truncated.shape().len(), truncated.shape().norms()[0]), (1, threshold));
}

#[test]
fn lazy_tiles_that_are_not_what_was_promised_are_errors() {
    let shape = Shape::dense(&grid(), MOST_TILES).expect("a shape");
    let kind = |source: fn(&TilePlace) -> Result<Tensor, Error>| {
        let made = Tiled::lazy(&shape, Scalar::Float64, source).expect("a lazy tensor");
        let error = made.to_tensor().expect_err("an error");
        (error.tensor_kind(), error.to_string())
    };
    let (found, message) = kind(|_| Tensor::zeros(Scalar::Float64, &[2, 3]));
    assert_eq!(found, Some(Kind::SizeMismatch));
    assert_eq!(message, "tile [0, 0] has extents [2, 3], but the tiling requires [2, 2]");
    assert_eq!(kind(|place| Tensor::zeros(Scalar::Float32, &place.extents())).0, Some(Kind::ElementType));
    assert_eq!(
        kind(|_| panic!("out of luck")),
        (Some(Kind::Evaluation), "the function of tiles panicked: out of luck".to_owned())
    );
    let (found, message) = kind(|_| Err(Error::tensors(Kind::Deadline, "too late")));
    assert_eq!((found, message.as_str()), (Some(Kind::Deadline), "too late"));
    let integers =
        Tiled::lazy(&shape, Scalar::Int32, |place: &TilePlace| Tensor::zeros(Scalar::Int32, &place.extents()));
    assert_eq!(integers.expect_err("an error").tensor_kind(), Some(Kind::ElementType));
}

#[test]
fn tiles_are_mapped_one_by_one() {
    let mut rng = Rng::with_seed(6);
    let whole = random::sparse::<f64>(&mut rng, &grid(), 0.6);
    let mut seen = Vec::new();
    let doubled = whole.map_tiles(|place, tile| {
        seen.push(place.number);
        Tensor::new(tile.extents(), tile.to_vec::<f64>()?.iter().map(|x| x + x).collect())
    });
    let doubled = doubled.expect("a tensor");
    assert_eq!(seen, whole.shape().tiles());
    let expected: Vec<f64> = whole.to_tensor().unwrap().to_vec::<f64>().unwrap().iter().map(|x| 2.0 * x).collect();
    assert_eq!(doubled.to_tensor().unwrap().to_vec::<f64>().unwrap(), expected);
    let wrong = whole.map_tiles(|_, _| Tensor::zeros(Scalar::Float64, &[1]));
    assert_eq!(wrong.expect_err("an error").tensor_kind(), Some(Kind::SizeMismatch));
    let panics = whole.map_tiles(|_, _| panic!("no"));
    assert_eq!(panics.expect_err("an error").tensor_kind(), Some(Kind::Evaluation));
    let listed = whole.tiles().map(|tile| tile.expect("a tile").1.tensor().clone()).collect::<Vec<_>>();
    let again = Tiled::from_tiles::<f64>(whole.shape(), listed.clone()).expect("a tensor");
    assert_eq!((again.shape(), bits(&again)), (whole.shape(), bits(&whole)));
    for count in [listed.len() - 1, listed.len() + 1] {
        let given = listed.iter().cycle().take(count).cloned();
        assert_eq!(
            Tiled::from_tiles::<f64>(whole.shape(), given).expect_err("an error").tensor_kind(),
            Some(Kind::SizeMismatch)
        );
    }
}

#[test]
fn tensors_that_do_not_fit_a_tiling_are_refused() {
    let kind = |tensor: Tensor, tiling: &Tiling| {
        Tiled::from_tensor(&tensor, tiling, &ALL).expect_err("an error").tensor_kind()
    };
    assert_eq!(kind(Tensor::zeros(Scalar::Float64, &[5, 4]).unwrap(), &grid()), Some(Kind::SizeMismatch));
    assert_eq!(kind(Tensor::zeros(Scalar::Float64, &[5]).unwrap(), &grid()), Some(Kind::RankMismatch));
    assert_eq!(kind(Tensor::zeros(Scalar::Int64, &[5, 5]).unwrap(), &grid()), Some(Kind::ElementType));
    // A tensor of one element that is broadcast to more elements than there is memory for.
    let one = Tensor::scalar(1.0).broadcast_to(&[1 << 40]).unwrap();
    let line = Tiling::new([Tiling1::blocked(1 << 40, 1 << 39).unwrap()]).unwrap();
    assert_eq!(kind(one, &line), Some(Kind::Limit));
    let huge = Shape::dense(&line, MOST_TILES).unwrap();
    assert_eq!(Tiled::random::<f32>(&huge, 1).expect_err("an error").tensor_kind(), Some(Kind::Limit));
    assert_eq!(f32::of_f64(1.5).to_f64(), 1.5);
}

/// The grid has 2^40 tiles, one of which is present.
#[test]
fn one_tile_of_a_huge_grid_takes_the_memory_of_one_tile() {
    let axis = Tiling1::blocked(1 << 40, 4).unwrap();
    let tiling = Tiling::new([&axis, &Tiling1::blocked(8, 4).unwrap()]).unwrap();
    let shape = Shape::of_norms(&tiling, [(1 << 38, f64::INFINITY)], &ALL).unwrap();
    let made = Tiled::from_fn(&shape, |at| at[0] as f64).unwrap();
    assert_eq!(made.memory_bytes(), 16 * 8);
    assert_eq!(made.get::<f64>(&[(1 << 39) + 3, 1]).unwrap(), ((1_u64 << 39) + 3) as f64);
    assert_eq!(made.to_tensor().expect_err("an error").tensor_kind(), Some(Kind::Limit));
}
