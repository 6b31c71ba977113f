//! Tests of shapes: the norms for which a tile is present, the limits, and the shapes of results, which are compared
//! with rules for single tiles.

use crate::random::{self, ALL};
use cembra_tiles::{Base, MOST_TILES, Screening, Shape, Tiling, Tiling1};
use cembra_value::tensor::TensorErrorKind as Kind;
use fastrand::Rng;

fn line(tiles: u64) -> Tiling {
    Tiling::new([Tiling1::blocked(tiles * 2, 2).expect("a tiling")]).expect("a tiling")
}

/// Random tiles of random norms, some of them NaN and infinite.
fn shape(rng: &mut Rng, tiling: &Tiling) -> Shape {
    let norm = |rng: &mut Rng| match rng.u8(0..10) {
        0 => f64::NAN,
        1 => f64::INFINITY,
        2 => 0.0,
        _ => rng.f64(),
    };
    let tiles: Vec<(u64, f64)> = (0..tiling.tiles()).filter(|_| rng.bool()).map(|tile| (tile, 0.0)).collect();
    let norms = tiles.into_iter().map(|(tile, _)| (tile, norm(rng)));
    Shape::of_norms(tiling, norms.collect::<Vec<_>>(), &ALL).expect("a shape")
}

#[test]
fn norms_that_are_not_below_the_threshold_keep_a_tile() {
    let tiling = line(8);
    let norms = [0.0, 0.1, 0.099_999, f64::NAN, f64::INFINITY, -0.0, 7.0, 0.2];
    let shape = Shape::of_norms(&tiling, (0..).zip(norms), &Screening::threshold(0.1)).expect("a shape");
    assert_eq!(shape.tiles(), [1, 3, 4, 6, 7]);
    assert_eq!((shape.norm(1), shape.norm(2), shape.norm(100)), (Some(0.1), None, None));
    assert!(shape.norm(3).is_some_and(f64::is_nan));
    // 0 is not below 0.
    assert_eq!(Shape::of_norms(&tiling, [(0, 0.0)], &ALL).expect("a shape").tiles(), [0]);
    let none = Shape::of_norms(&tiling, [(0, f64::MAX)], &Screening::threshold(f64::INFINITY)).expect("a shape");
    assert!(none.is_empty());
}

#[test]
fn norms_and_thresholds_that_are_none_are_refused() {
    let tiling = line(4);
    let kind = |norms: &[(u64, f64)], threshold: f64| {
        let made = Shape::of_norms(&tiling, norms.iter().copied(), &Screening::threshold(threshold));
        made.expect_err("an error").tensor_kind()
    };
    assert_eq!(kind(&[(0, 1.0), (1, -1e-300)], 0.0), Some(Kind::Norm));
    assert_eq!(kind(&[(0, f64::NEG_INFINITY)], 0.0), Some(Kind::Norm));
    assert_eq!(kind(&[(1, 1.0), (1, 1.0)], 0.0), Some(Kind::Norm));
    assert_eq!(kind(&[(2, 0.0), (1, 1.0)], 0.5), Some(Kind::Norm));
    assert_eq!(kind(&[(4, 1.0)], 0.0), Some(Kind::Index));
    assert_eq!(kind(&[], -1.0), Some(Kind::Norm));
    assert_eq!(kind(&[], f64::NAN), Some(Kind::Norm));
    let panics = Shape::from_fn(&tiling, &ALL, |_| panic!("norm of {}", 7)).expect_err("an error");
    assert_eq!(
        (panics.tensor_kind(), panics.to_string().as_str()),
        (Some(Kind::Evaluation), "the function of norms panicked: norm of 7")
    );
    let negative = Shape::from_fn(&tiling, &ALL, |at| Ok(1.0 - at[0] as f64)).expect_err("an error");
    assert_eq!(negative.tensor_kind(), Some(Kind::Norm));
}

#[test]
fn tiles_without_elements_are_absent() {
    let tiling = Tiling::new([Tiling1::new([-1, -1, 2, 2, 3]).expect("a tiling")]).expect("a tiling");
    assert_eq!(Shape::dense(&tiling, MOST_TILES).expect("a shape").tiles(), [1, 3]);
    let mut asked = Vec::new();
    let shape = Shape::from_fn(&tiling, &ALL, |at| {
        asked.push(at[0]);
        Ok(f64::NAN)
    });
    assert_eq!((shape.expect("a shape").tiles(), asked), (&[1, 3][..], vec![1, 3]));
}

#[test]
fn more_tiles_than_there_may_be_are_refused_before_they_are_stored() {
    let axis = Tiling1::blocked(1 << 40, 1).expect("a tiling");
    let tiling = Tiling::new([&axis]).expect("a tiling");
    let kind = |made: Result<Shape, cembra_value::Error>| made.expect_err("an error").tensor_kind();
    assert_eq!(kind(Shape::dense(&tiling, MOST_TILES)), Some(Kind::Limit));
    assert_eq!(kind(Shape::from_fn(&tiling, &ALL, |_| Ok(1.0))), Some(Kind::Limit));
    let screening = Screening { threshold: 0.5, most_tiles: 3 };
    assert_eq!(kind(Shape::of_norms(&tiling, (0..).map(|tile| (tile, 1.0)), &screening)), Some(Kind::Limit));
    // Tiles whose norms are below the threshold do not count for the limit.
    let few = (0..1000).map(|tile| (tile, if tile % 400 == 0 { 1.0 } else { 0.4 }));
    assert_eq!(Shape::of_norms(&tiling, few, &screening).expect("a shape").tiles(), [0, 400, 800]);
    // A function that maps 0 to 1 makes all tiles of the grid present, which are too many here.
    let one = Shape::of_norms(&tiling, [(1 << 39, 1.0)], &ALL).expect("a shape");
    assert_eq!(one.of_map(true, 5).expect("a shape").tiles(), [1 << 39]);
    assert_eq!(kind(one.of_map(false, 5)), Some(Kind::Limit));
}

/// Compares the shapes of results with a rule that is applied to each tile of the grid by itself.
#[test]
fn shapes_of_results_follow_tile_by_tile() {
    let mut rng = Rng::with_seed(3);
    for case in 0..100 {
        let tiling = random::tiling(&mut rng, 1 + case % 3);
        let (a, b) = (shape(&mut rng, &tiling), shape(&mut rng, &tiling));
        let screening = Screening::threshold(rng.f64());
        let check = |found: Shape, norm: &dyn Fn(u64) -> Option<f64>| {
            for tile in 0..tiling.tiles() {
                let expected = norm(tile).filter(|norm| norm.is_nan() || *norm >= screening.threshold);
                let found = found.norm(tile);
                assert!(
                    found == expected || found.zip(expected).is_some_and(|(a, b)| a.is_nan() && b.is_nan()),
                    "{found:?} for {expected:?}"
                );
            }
        };
        check(a.scaled(-0.75, &screening).expect("a shape"), &|tile| Some(0.75 * a.norm(tile)?));
        check(a.added(&b, &screening).expect("a shape"), &|tile| match (a.norm(tile), b.norm(tile)) {
            (Some(a), Some(b)) => Some(a + b),
            (a, b) => a.or(b),
        });
        check(a.multiplied(&b, &screening).expect("a shape"), &|tile| {
            Some(a.norm(tile)? * b.norm(tile)? * tiling.volume(tile))
        });
        check(a.screened(&screening).expect("a shape"), &|tile| a.norm(tile));
        let masked = a.masked(&b).expect("a shape");
        assert!(
            (0..tiling.tiles())
                .all(|tile| masked.norm(tile).is_some() == (a.norm(tile).is_some() && b.norm(tile).is_some()))
        );
        let mut of: Vec<usize> = (0..tiling.rank()).collect();
        rng.shuffle(&mut of);
        let turned = a.permuted(&of).expect("a shape");
        let back: Vec<usize> =
            (0..of.len()).map(|axis| of.iter().position(|from| *from == axis).expect("an axis")).collect();
        assert_eq!(turned.permuted(&back).expect("a shape"), a);
        assert!(turned.len() == a.len() && turned.tiles().is_sorted());
        for (tile, norm) in a.iter() {
            let index = tiling.index_of(tile).expect("a tile");
            let index: Vec<u64> = of.iter().map(|axis| index[*axis]).collect();
            let found = turned.norm(turned.tiling().number_of(&index).expect("a tile"));
            assert!(found == Some(norm) || (norm.is_nan() && found.is_some_and(f64::is_nan)));
        }
    }
    // A grid that is much larger than its present tiles.
    let axis = Tiling1::blocked(1 << 30, 2).expect("a tiling");
    let tiling = Tiling::new([&axis, &axis]).expect("a tiling");
    let far = 1 << 29;
    let a = Shape::of_norms(&tiling, [(5, 1.0), (far + 3, 2.0), (3 * far + 3, 3.0), (4 * far, 4.0)], &ALL)
        .expect("a shape");
    let turned = a.permuted(&[1, 0]).expect("a shape");
    assert_eq!(turned.tiles(), [4, 3 * far + 1, 3 * far + 3, 5 * far]);
    assert_eq!(turned.norms(), [4.0, 2.0, 3.0, 1.0]);
}

#[test]
fn shapes_of_other_tilings_are_refused() {
    let (a, b) = (Shape::empty(&line(3)), Shape::empty(&line(4)));
    assert_eq!(a.added(&b, &ALL).expect_err("an error").tensor_kind(), Some(Kind::SizeMismatch));
    assert_eq!(a.masked(&b).expect_err("an error").tensor_kind(), Some(Kind::SizeMismatch));
    assert_eq!(a.permuted(&[1]).expect_err("an error").tensor_kind(), Some(Kind::Axis));
    assert_eq!(a.block(&[0..1, 0..1], Base::Zero).expect_err("an error").tensor_kind(), Some(Kind::RankMismatch));
}
