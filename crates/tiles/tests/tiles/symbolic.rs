//! Tests of plans of products: they are compared with loops over all products of two tiles.

use crate::random::{self, ALL};
use cembra_runtime::Scalar;
use cembra_tensor::Labels;
use cembra_tiles::{Options, Screening, Segment, Shape, SymbolicProduct, Tiling, Tiling1};
use cembra_value::Error;
use cembra_value::tensor::TensorErrorKind as Kind;
use fastrand::Rng;
use std::collections::BTreeMap;

/// Labels of products: of matrices; with several row, column or summed labels in any order; with batch labels; of
/// scalars; and without a summed label.
pub(crate) const PRODUCTS: [&str; 16] = [
    "ij,jk->ik",
    "ij,jk->ki",
    "ji,kj->ik",
    "ik,jk->ji",
    "ijk,jkl->il",
    "kij,jlk->li",
    "ij,kl->ikjl",
    "ij,kl->lkji",
    "ij,ij->ij",
    "ij,ji->ij",
    "bij,bjk->bik",
    "ibj,jkb->kbi",
    "bi,b->bi",
    "ij,ij->",
    "i,ij->j",
    "ijk,lj->ikl",
];

/// Random tilings of the two operands. Axes with the same label have the same tiling.
pub(crate) fn tilings(rng: &mut Rng, labels: &Labels) -> [Tiling; 2] {
    let axes: Vec<Tiling1> = (0..8).map(|_| random::axis(rng)).collect();
    [0, 1].map(|of: usize| {
        Tiling::new(labels.operands[of].iter().map(|label| &axes[usize::from(*label)])).expect("it fits")
    })
}

pub(crate) fn parse(text: &str) -> Labels {
    let (operands, _) = text.split_once("->").expect("it fits");
    let ranks: Vec<usize> = operands.split(',').map(str::len).collect();
    Labels::parse(text, &ranks).expect("it fits")
}

fn shape(rng: &mut Rng, tiling: &Tiling) -> Shape {
    let norms: Vec<(u64, f64)> = (0..tiling.tiles()).filter(|_| rng.f64() < 0.6).map(|tile| (tile, 0.0)).collect();
    Shape::of_norms(tiling, norms.into_iter().map(|(tile, _)| (tile, rng.f64())), &ALL).expect("it fits")
}

/// A product of two tiles: the coordinates of its summed labels, its estimated norm, and the positions of the two
/// tiles.
type Product = (Vec<u64>, f64, (usize, usize));

/// A tile of the result: its estimated norm, and the positions of the tiles of its products.
type Sum = (f64, Vec<(usize, usize)>);

/// The estimate and the products of each result tile, computed by loops over all pairs of tiles. Products are in the
/// order of the left operand's summed labels.
fn by_hand(labels: &Labels, [a, b]: [&Shape; 2], result: &Tiling) -> BTreeMap<u64, Sum> {
    let mut found: BTreeMap<u64, Vec<Product>> = BTreeMap::new();
    for (left, (tile, norm)) in a.iter().enumerate() {
        for (right, (other, factor)) in b.iter().enumerate() {
            let mut known: [Option<u64>; 8] = [None; 8];
            let (one, two) =
                (a.tiling().index_of(tile).expect("it fits"), b.tiling().index_of(other).expect("it fits"));
            let pairs = labels.operands[0].iter().zip(&one).chain(labels.operands[1].iter().zip(&two));
            if !pairs.into_iter().all(|(label, at)| *known[usize::from(*label)].get_or_insert(*at) == *at) {
                continue;
            }
            let index: Vec<u64> =
                labels.output.iter().map(|label| known[usize::from(*label)].expect("it fits")).collect();
            let extents = a.tiling().tile_extents(tile).expect("it fits");
            let (mut weight, mut terms) = (1.0, Vec::new());
            for (at, label) in
                labels.operands[0].iter().enumerate().filter(|(_, label)| labels.operands[1].contains(label))
            {
                let is_summed = !labels.output.contains(label);
                weight *= (extents[at] as f64).powi(if is_summed { 2 } else { 1 });
                terms.extend(is_summed.then_some(one[at]));
            }
            let tile = result.number_of(&index).expect("it fits");
            found.entry(tile).or_default().push((terms, norm * factor * weight, (left, right)));
        }
    }
    let sorted = found.into_iter().map(|(tile, mut products)| {
        products.sort_by(|a, b| a.0.cmp(&b.0));
        (tile, (products.iter().map(|product| product.1).sum(), products.iter().map(|product| product.2).collect()))
    });
    sorted.collect()
}

#[test]
fn plans_have_the_products_of_present_tiles_in_order() {
    let mut rng = Rng::with_seed(20);
    for case in 0..400 {
        let labels = parse(PRODUCTS[case % PRODUCTS.len()]);
        let tilings = tilings(&mut rng, &labels);
        let shapes = [shape(&mut rng, &tilings[0]), shape(&mut rng, &tilings[1])];
        let threshold = if case % 3 == 0 { 0.0 } else { rng.f64() };
        let options = Options::default().threshold(threshold);
        let plan = SymbolicProduct::of(&labels, [&shapes[0], &shapes[1]], None, Scalar::Float64, &options).unwrap();
        let mut expected = by_hand(&labels, [&shapes[0], &shapes[1]], plan.shape().tiling());
        let all: usize = expected.values().map(|(_, products)| products.len()).sum();
        assert_eq!(plan.visited(), all as u64);
        let check = |plan: &SymbolicProduct, expected: &BTreeMap<u64, Sum>| {
            assert!(plan.shape().tiles().iter().eq(expected.keys()), "{case}");
            for (at, (estimate, products)) in expected.values().enumerate() {
                assert!(plan.products(at).eq(products.iter().copied()), "{case}");
                let found = plan.shape().norms()[at];
                assert!((found - estimate).abs() <= 1e-12 * estimate, "{case}: {found} for {estimate}");
            }
            assert_eq!(plan.product_count(), expected.values().map(|(_, products)| products.len()).sum::<usize>());
        };
        // With a wanted shape, exactly its tiles are planned, even if their estimates are small.
        let wanted = shape(&mut rng, plan.shape().tiling());
        let masked =
            SymbolicProduct::of(&labels, [&shapes[0], &shapes[1]], Some(&wanted), Scalar::Float64, &options).unwrap();
        let within = expected.iter().filter(|(tile, _)| wanted.norm(**tile).is_some());
        check(&masked, &within.map(|(tile, products)| (*tile, products.clone())).collect());
        expected.retain(|_, (estimate, _)| *estimate >= threshold);
        check(&plan, &expected);
        let off = SymbolicProduct::of(
            &labels,
            [&shapes[0], &shapes[1]],
            None,
            Scalar::Float64,
            &options.clone().screen(false),
        );
        assert_eq!(off.unwrap().product_count(), all);
        let nothing = Shape::empty(plan.shape().tiling());
        let none =
            SymbolicProduct::of(&labels, [&shapes[0], &shapes[1]], Some(&nothing), Scalar::Float64, &options).unwrap();
        assert_eq!((none.product_count(), none.visited()), (0, 0));
    }
}

#[test]
fn segments_end_by_terms_or_by_products() {
    let axis = Tiling1::new([0, 1, 4, 6, 7, 12, 13]).unwrap();
    let one = Tiling1::new([0, 2]).unwrap();
    let dense = |axes: [&Tiling1; 2]| Shape::dense(&Tiling::new(axes).unwrap(), 99).unwrap();
    let segments = |elements, tiles| -> Vec<usize> {
        let options = Options::default().segment(Segment { elements, tiles });
        let operands = [dense([&one, &axis]), dense([&axis, &one])];
        let plan =
            SymbolicProduct::of(&parse("ij,jk->ik"), [&operands[0], &operands[1]], None, Scalar::Float32, &options)
                .unwrap();
        let segments: Vec<_> = plan.segments(0).collect();
        assert!(segments.windows(2).all(|pair| pair[0].end == pair[1].start));
        assert_eq!((segments[0].start, segments.last().map(|last| last.end)), (0, Some(6)));
        assert_eq!(plan.segments(1).count(), 0);
        segments.iter().map(|segment| segment.len()).collect()
    };
    // Tiles of 1, 3, 2, 1, 5 and 1 terms.
    assert_eq!(segments(8192, 64), [6]);
    assert_eq!(segments(4, 64), [2, 3, 1]);
    assert_eq!(segments(5, 64), [3, 2, 1]);
    assert_eq!(segments(8192, 4), [4, 2]);
    assert_eq!(segments(5, 2), [2, 2, 1, 1]);
    assert_eq!(segments(0, 0), [1; 6]);
    let default = Segment::default();
    assert_eq!((default.elements, default.tiles), (8192, 256));
}

/// For each result tile, the coordinates of the summed labels at which a new segment of its sum begins.
fn cuts(plan: &SymbolicProduct, left: &Shape, summed: &[usize]) -> Vec<Vec<Vec<u64>>> {
    let of_tile = |at: usize| {
        let products: Vec<(usize, usize)> = plan.products(at).collect();
        let first = |range: std::ops::Range<usize>| {
            let index = left.tiling().index_of(left.tiles()[products[range.start].0]).expect("it fits");
            summed.iter().map(|axis| index[*axis]).collect()
        };
        plan.segments(at).map(first).collect()
    };
    (0..plan.shape().len()).map(of_tile).collect()
}

#[test]
fn all_tiles_are_cut_at_the_same_places() {
    let axis = Tiling1::blocked(16, 2).unwrap();
    let tiling = Tiling::new([&axis, &axis]).unwrap();
    // Row 0 has all tiles, row 1 tiles 1, 3, 4 and 7.
    let present = (0..8).chain([9, 11, 12, 15]).map(|tile| (tile, 1.0));
    let a = Shape::of_norms(&tiling, present, &ALL).unwrap();
    let b = Shape::of_norms(&tiling, (0..8).map(|row| (8 * row, 1.0)), &ALL).unwrap();
    let options = |tiles| Options::default().segment(Segment { elements: 8192, tiles });
    let plan =
        |tiles| SymbolicProduct::of(&parse("ij,jk->ik"), [&a, &b], None, Scalar::Float64, &options(tiles)).unwrap();
    let lengths = |plan: &SymbolicProduct| -> Vec<Vec<usize>> {
        (0..2).map(|at| plan.segments(at).map(|segment| segment.len()).collect()).collect()
    };
    assert_eq!(lengths(&plan(4)), [vec![4, 4], vec![2, 2]]);
    assert_eq!(lengths(&plan(3)), [vec![3, 3, 2], vec![1, 2, 1]]);
    assert_eq!(lengths(&plan(2)), [vec![2; 4], vec![1; 4]]);
    // With two summed labels, a segment continues from one row of their grid to the next. The first four tiles of each
    // sum are absent.
    let line = Tiling1::blocked(6, 2).unwrap();
    let cube = Shape::dense(&Tiling::new([&line, &line, &axis]).unwrap(), 99).unwrap();
    let late = Shape::of_norms(cube.tiling(), cube.iter().filter(|(tile, _)| *tile >= 32), &ALL).unwrap();
    let of = |left: &Shape, right: &Shape| {
        let plan =
            SymbolicProduct::of(&parse("abi,abj->ij"), [left, right], None, Scalar::Float64, &options(5)).unwrap();
        cuts(&plan, left, &[0, 1])
    };
    assert_eq!(of(&cube, &cube), vec![vec![vec![0, 0], vec![1, 2]]; 64]);
    assert_eq!(of(&late, &cube), vec![vec![vec![1, 1], vec![1, 2]]; 64]);
}

/// A segment begins at each 1,024th tile, so finding a segment does not count through a grid of 2^40 tiles.
#[test]
fn cuts_of_huge_grids_are_found_where_tiles_are() {
    let far = 1 << 40;
    let axis = Tiling1::blocked(far * 4, 4).unwrap();
    let one = Tiling1::blocked(4, 4).unwrap();
    let shape = |axes: [&Tiling1; 2], tiles: &[u64]| {
        Shape::of_norms(&Tiling::new(axes).unwrap(), tiles.iter().map(|tile| (*tile, 1.0)), &ALL).unwrap()
    };
    let last = far - 1024;
    let tiles = [0, 299, 300, 599, 1023, 1024, last, last + 300, last + 899, last + 900, last + 1023];
    let (a, b) = (shape([&one, &axis], &tiles), shape([&axis, &one], &tiles));
    let options = Options::default().segment(Segment { elements: 1200, tiles: 1 << 20 });
    let plan = SymbolicProduct::of(&parse("ij,jk->ik"), [&a, &b], None, Scalar::Float64, &options).unwrap();
    let lengths: Vec<usize> = plan.segments(0).map(|segment| segment.len()).collect();
    assert_eq!(lengths, [2, 2, 1, 1, 1, 1, 1, 2]);
}

#[test]
fn labels_and_tilings_that_do_not_fit_are_refused() {
    let tiling = |boundaries: &[i64]| {
        let axis = Tiling1::new(boundaries.iter().copied()).unwrap();
        Tiling::new([&axis, &axis]).unwrap()
    };
    let (a, b) = (Shape::empty(&tiling(&[0, 2, 4])), Shape::empty(&tiling(&[0, 1, 4])));
    let kind = |labels: &Labels, other: &Shape, wanted: Option<&Shape>| -> Option<Kind> {
        let made = SymbolicProduct::of(labels, [&a, other], wanted, Scalar::Float64, &Options::default());
        made.err().as_ref().and_then(Error::tensor_kind)
    };
    let product = parse("ij,jk->ik");
    assert_eq!(kind(&product, &a, None), None);
    assert_eq!(kind(&product, &b, None), Some(Kind::SizeMismatch));
    assert_eq!(kind(&product, &a, Some(&b)), Some(Kind::SizeMismatch));
    assert_eq!(kind(&parse("ii,ij->j"), &a, None), Some(Kind::BadLabel));
    assert_eq!(kind(&parse("ij,kl->il"), &a, None), Some(Kind::FreeLabel));
    assert_eq!(kind(&parse("ij,jkl->ikl"), &a, None), Some(Kind::RankMismatch));
    let three = Labels::parse("ij,jk,kl->il", &[2, 2, 2]).unwrap();
    assert_eq!(kind(&three, &a, None), Some(Kind::OperandCount));
    let scalar = |scalar| SymbolicProduct::of(&product, [&a, &a], None, scalar, &Options::default());
    assert_eq!(scalar(Scalar::Int64).expect_err("an error").tensor_kind(), Some(Kind::ElementType));
    let negative = SymbolicProduct::of(&product, [&a, &a], None, Scalar::Float64, &Options::default().threshold(-1.0));
    assert_eq!(negative.expect_err("an error").tensor_kind(), Some(Kind::Norm));
    // The result's grid has more tiles than a 64-bit number can count.
    let axis = Tiling1::blocked(1 << 40, 1).unwrap();
    let wide = Shape::empty(&Tiling::new([&axis]).unwrap());
    let outer = SymbolicProduct::of(&parse("i,j->ij"), [&wide, &wide], None, Scalar::Float64, &Options::default());
    assert_eq!(outer.expect_err("an error").tensor_kind(), Some(Kind::Limit));
}

/// The operands have a few present tiles in grids of 2^60: time and memory depend only on the present tiles.
#[test]
fn huge_grids_are_planned_by_their_present_tiles() {
    let axis = Tiling1::blocked(1 << 32, 4).unwrap();
    let tiling = Tiling::new([&axis, &axis]).unwrap();
    let number = |i: u64, j: u64| i * (1 << 30) + j;
    let far = (1 << 30) - 1;
    let a =
        Shape::of_norms(&tiling, [(number(0, far), 1.0), (number(far, 7), 1.0), (number(far, far), f64::NAN)], &ALL)
            .unwrap();
    let b = Shape::of_norms(&tiling, [(number(7, 0), 2.0), (number(far, 1), f64::INFINITY)], &ALL).unwrap();
    let plan = SymbolicProduct::of(&parse("ij,jk->ik"), [&a, &b], None, Scalar::Float64, &Options::default()).unwrap();
    assert_eq!(plan.shape().tiles(), [number(0, 1), number(far, 0), number(far, 1)]);
    assert_eq!(plan.shape().norms()[..2], [f64::INFINITY, 32.0]);
    // A norm that is NaN keeps the tile.
    assert!(plan.shape().norms()[2].is_nan());
}

#[test]
fn more_tiles_and_products_than_there_may_be_are_refused() {
    let axis = Tiling1::blocked(40, 1).unwrap();
    let dense = Shape::dense(&Tiling::new([&axis, &axis]).unwrap(), 1600).unwrap();
    let run =
        |options: Options| SymbolicProduct::of(&parse("ij,jk->ik"), [&dense, &dense], None, Scalar::Float64, &options);
    assert_eq!(run(Options::default().most_products(64_000)).unwrap().product_count(), 64_000);
    assert_eq!(run(Options::default().most_products(63_999)).expect_err("an error").tensor_kind(), Some(Kind::Limit));
    assert_eq!(run(Options::default().most_tiles(1599)).expect_err("an error").tensor_kind(), Some(Kind::Limit));
    assert!(run(Options::default().most_tiles(1600)).is_ok());
    assert_eq!(Screening::threshold(0.5), Options::default().threshold(0.5).screening(Scalar::Float32).unwrap());
    assert_eq!(Options::default().screening(Scalar::Float32).unwrap().threshold, f64::from(f32::EPSILON));
    assert_eq!(Options::default().screening(Scalar::Float64).unwrap().threshold, f64::EPSILON);
}
