//! Tests of products: their bits are compared with those of loops over dense tiles, and must not depend on blocks, lazy
//! tiles or absent tiles.

use crate::random::{self, ALL, bits};
use crate::symbolic::{PRODUCTS, parse, tilings};
use cembra_runtime::Scalar;
use cembra_tensor::{Labels, MatrixProduct, Multiplication, PlainProduct};
use cembra_tiles::{Evaluator, Float, MOST_TILES, Options, Segment, Shape, TilePlace, Tiled, Tiling, Tiling1};
use cembra_value::Error;
use cembra_value::tensor::{Tensor, TensorErrorKind as Kind};
use fastrand::Rng;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The list of all indices in a box of ranges; the last axis varies fastest.
fn indices(ranges: &[Range<i64>]) -> Vec<Vec<i64>> {
    let mut all = vec![Vec::new()];
    for range in ranges {
        let longer = |index: &Vec<i64>| {
            let index = index.clone();
            range.clone().map(move |at| index.iter().copied().chain([at]).collect::<Vec<i64>>()).collect::<Vec<_>>()
        };
        all = all.iter().flat_map(longer).collect();
    }
    all
}

/// The bits of a product, computed by dense loops. For each element of the result, the tiles of the summed labels are
/// visited in the order of the left operand's labels. Each segment is summed from zero.
fn by_hand<T: Float>(labels: &Labels, [a, b]: [&Tiled; 2], result: &Tiling, segment: Segment) -> Vec<u64> {
    let [left, right] = [0, 1].map(|of: usize| labels.operands[of].clone());
    let summed: Vec<usize> = (0..left.len()).filter(|at| !labels.output.contains(&left[*at])).collect();
    let terms = Tiling::new(summed.iter().map(|at| &a.tiling().axes()[*at])).expect("it fits");
    let whole: Vec<Range<i64>> = result.axes().iter().map(|axis| axis.lower()..axis.upper()).collect();
    let element = |of: &Tiled, own: &[u8], index: &[i64], term: &[i64]| -> T {
        let at = |label: &u8| match labels.output.iter().position(|known| known == label) {
            Some(at) => index[at],
            None => term[summed.iter().position(|at| left[*at] == *label).expect("it fits")],
        };
        of.get::<T>(&own.iter().map(at).collect::<Vec<i64>>()).expect("it fits")
    };
    let sum = |index: &Vec<i64>| -> T {
        let (mut total, mut part) = (None, None);
        let (mut count, mut length) = (0, 0);
        for tile in 0..terms.tiles() {
            let ranges = terms.ranges(tile).expect("it fits");
            let of_tile = indices(&ranges);
            if of_tile.is_empty() {
                continue;
            }
            for term in &of_tile {
                let product = element(a, &left, index, term) * element(b, &right, index, term);
                // If no label is summed, the product is not added to a zero.
                part = Some(if summed.is_empty() { product } else { part.unwrap_or_default() + product });
            }
            count += 1;
            length += of_tile.len();
            if count >= segment.tiles || length >= segment.elements {
                total = Some(total.map_or(part.expect("it fits"), |total| total + part.expect("it fits")));
                (part, count, length) = (None, 0, 0);
            }
        }
        match (total, part) {
            (Some(total), Some(part)) => total + part,
            (total, part) => total.or(part).unwrap_or_default(),
        }
    };
    indices(&whole).iter().map(|index| sum(index).bits()).collect()
}

fn check_bits<T: Float>(seed: u64, cases: usize) {
    let mut rng = Rng::with_seed(seed);
    for case in 0..cases {
        let labels = parse(PRODUCTS[case % PRODUCTS.len()]);
        let [left, right] = tilings(&mut rng, &labels);
        let (a, b) = (random::dense::<T>(&left, rng.u64(..)), random::dense::<T>(&right, rng.u64(..)));
        let segment = Segment { elements: rng.usize(1..12), tiles: rng.usize(1..4) };
        let options = Options::default().threshold(0.0).segment(segment);
        let made = Evaluator::new(options.clone()).product(PRODUCTS[case % PRODUCTS.len()], &a, &b).expect("it fits");
        assert_eq!(bits(&made), by_hand::<T>(&labels, [&a, &b], made.tiling(), segment), "{case}");
        // The bits do not depend on blocks of result tiles, nor on whether operands are stored or lazy.
        for block_bytes in [0, 100, 1000] {
            let run = Evaluator::new(options.clone().block_bytes(block_bytes));
            let again = run.product(PRODUCTS[case % PRODUCTS.len()], &lazy(&a), &b).expect("it fits");
            assert_eq!((again.shape(), bits(&again)), (made.shape(), bits(&made)), "{case}");
        }
    }
}

/// Absent tiles add nothing, but count for the rule that cuts sums into segments. So the bits are those of dense loops
/// over all tiles.
#[test]
fn sums_of_sparse_operands_are_cut_where_dense_ones_are() {
    let mut rng = Rng::with_seed(34);
    let sums: Vec<&str> =
        PRODUCTS.into_iter().filter(|text| *text != "ij,kl->ikjl" && *text != "ij,kl->lkji").collect();
    let sums: Vec<&str> =
        sums.into_iter().filter(|text| !matches!(*text, "ij,ij->ij" | "ij,ji->ij" | "bi,b->bi")).collect();
    for case in 0..330 {
        let text = sums[case % sums.len()];
        let labels = parse(text);
        let [left, right] = tilings(&mut rng, &labels).map(|tiling| random::sparse::<f64>(&mut rng, &tiling, 0.6));
        let segment = Segment { elements: rng.usize(1..12), tiles: rng.usize(1..4) };
        let run = Evaluator::new(Options::default().threshold(0.0).segment(segment));
        let made = run.product(text, &left, &right).expect("it fits");
        assert_eq!(bits(&made), by_hand::<f64>(&labels, [&left, &right], made.tiling(), segment), "{case} {text}");
    }
}

/// A lazy tensor with the same tiles.
pub(crate) fn lazy(of: &Tiled) -> Tiled {
    let whole = of.clone();
    let source = move |place: &TilePlace| Ok(whole.tile(place.number)?.expect("present").tensor().clone());
    Tiled::lazy(of.shape(), of.scalar_type(), source).expect("it fits")
}

#[test]
fn products_have_the_bits_of_dense_loops_with_the_same_segments() {
    check_bits::<f64>(30, 160);
    check_bits::<f32>(31, 80);
}

/// Elements are small whole numbers, so every order of sums gives the same result.
#[test]
fn sparse_products_are_those_of_dense_tensors() {
    let mut rng = Rng::with_seed(32);
    for case in 0..200 {
        let text = PRODUCTS[case % PRODUCTS.len()];
        let labels = parse(text);
        let [left, right] = tilings(&mut rng, &labels).map(|tiling| {
            let present = (0..tiling.tiles()).filter(|_| rng.f64() < 0.5).map(|tile| (tile, f64::INFINITY));
            let shape = Shape::of_norms(&tiling, present.collect::<Vec<_>>(), &ALL).unwrap();
            Tiled::from_fn(&shape, |_| f64::from(rng.i8(-3..4))).unwrap()
        });
        let run = Evaluator::new(Options::default().threshold(0.0));
        let made = run.product(text, &left, &right).unwrap();
        let elements = made.to_tensor().unwrap().to_vec::<f64>().unwrap();
        let expected = by_hand::<f64>(&labels, [&left, &right], made.tiling(), Segment::default());
        let same = elements.iter().zip(expected).all(|(found, expected)| *found == f64::from_bits(expected));
        assert!(same, "{text}");
        // If only some tiles are wanted, these have the same elements, and other tiles are absent.
        let wanted = (0..made.tiling().tiles()).filter(|_| rng.bool()).map(|tile| (tile, 1.0));
        let wanted = Shape::of_norms(made.tiling(), wanted.collect::<Vec<_>>(), &ALL).unwrap();
        let within = run.product_within(text, &left, &right, &wanted).unwrap();
        let masked = made.masked(&wanted).unwrap();
        assert_eq!((within.shape(), bits(&within)), (masked.shape(), bits(&masked)));
    }
}

/// The norm of a result tile is at most its estimate, for all kinds of products.
#[test]
fn estimates_are_no_less_than_norms() {
    let mut rng = Rng::with_seed(33);
    for case in 0..320 {
        let text = PRODUCTS[case % PRODUCTS.len()];
        let [left, right] = tilings(&mut rng, &parse(text));
        // With equal positive elements, the norms equal their estimates.
        let [a, b] = [left, right].map(|tiling| {
            let (tiled, is_flat) = (random::sparse::<f64>(&mut rng, &tiling, 0.7), rng.bool());
            let ones = Tiled::from_fn(tiled.shape(), |_| 1.0).expect("memory");
            if is_flat { ones } else { tiled }
        });
        let run = Evaluator::new(Options::default().threshold(0.0));
        let (plan, made) = (run.plan(text, &a, &b, None).unwrap(), run.product(text, &a, &b).unwrap());
        assert_eq!(plan.shape().tiles(), made.shape().tiles());
        for (estimate, norm) in plan.shape().norms().iter().zip(made.shape().norms()) {
            assert!(*norm <= estimate * (1.0 + 1e-12), "{text}: {norm} above {estimate}");
        }
    }
}

/// A matrix product by plain loops that counts its calls.
#[derive(Debug, Default)]
struct Counted(AtomicUsize);

impl MatrixProduct for Counted {
    fn multiply_f32(&self, product: Multiplication<'_, f32>) {
        self.0.fetch_add(1, Ordering::Relaxed);
        PlainProduct.multiply_f32(product);
    }

    fn multiply_f64(&self, _: Multiplication<'_, f64>) {
        panic!("nothing is of FLOAT64");
    }
}

#[test]
fn matrices_are_multiplied_by_what_is_given() {
    let axis = Tiling1::blocked(8, 2).unwrap();
    let tiling = Tiling::new([&axis, &axis, &axis]).unwrap();
    let a = random::dense::<f32>(&tiling, 1);
    let counted = Arc::new(Counted::default());
    let run = Evaluator::new(Options::default().threshold(0.0));
    let expected = run.product("bij,bjk->bik", &a, &a).unwrap();
    let made = run.matrices(counted.clone()).product("bij,bjk->bik", &a, &a).unwrap();
    assert_eq!(bits(&made), bits(&expected));
    // There are 4^4 products of tiles, and for each of them one matrix product for each of two indices of the batch
    // label.
    assert_eq!(counted.0.load(Ordering::Relaxed), 512);
}

#[test]
fn tiles_that_nobody_wants_are_not_made() {
    let axis = Tiling1::blocked(8, 2).unwrap();
    let tiling = Tiling::new([&axis, &axis]).unwrap();
    let shape = Shape::dense(&tiling, MOST_TILES).unwrap();
    let asked = Arc::new(AtomicUsize::new(0));
    let counter = asked.clone();
    let operand = Tiled::lazy(&shape, Scalar::Float64, move |place: &TilePlace| {
        counter.fetch_add(1, Ordering::Relaxed);
        Tensor::new(&place.extents(), vec![place.number as f64; 4])
    });
    let operand = operand.unwrap();
    let run = Evaluator::new(Options::default());
    let nothing = run.product_within("ij,jk->ik", &operand, &operand, &Shape::empty(&tiling)).unwrap();
    assert_eq!((nothing.shape().len(), asked.load(Ordering::Relaxed)), (0, 0));
    // Tile (1, 2) needs row 1 of the left operand and column 2 of the right one, which is the same tensor: seven
    // different tiles, of which (1, 2) is computed once for each operand.
    let one = Shape::of_norms(&tiling, [(6, 1.0)], &ALL).unwrap();
    let made = run.product_within("ij,jk->ik", &operand, &operand, &one).unwrap();
    assert_eq!((made.shape().tiles(), asked.load(Ordering::Relaxed)), (&[6][..], 8));
    assert_eq!(made.get::<f64>(&[2, 4]).unwrap(), 2.0 * (4.0 * 2.0 + 5.0 * 6.0 + 6.0 * 10.0 + 7.0 * 14.0));
    // Each operand tile is computed once for all result tiles that need it.
    asked.store(0, Ordering::Relaxed);
    run.product("ij,jk->ki", &operand, &operand).unwrap();
    assert_eq!(asked.load(Ordering::Relaxed), 32);
}

#[test]
fn tiles_stay_until_they_are_truncated() {
    let axis = Tiling1::blocked(4, 2).unwrap();
    let shape = Shape::dense(&Tiling::new([&axis, &axis]).unwrap(), MOST_TILES).unwrap();
    // The sums of rows cancel, but estimates do not depend on signs.
    let a = Tiled::from_fn(&shape, |at| if at[1] % 2 == 0 { 1.0 } else { -1.0 }).unwrap();
    let ones = Tiled::from_fn(&shape, |_| 1.0).unwrap();
    let run = Evaluator::new(Options::default().threshold(1e-3));
    let plan = run.plan("ij,jk->ik", &a, &ones, None).unwrap();
    assert_eq!(plan.shape().norms(), [0.5 * 0.5 * 4.0 * 2.0; 4]);
    let product = run.product("ij,jk->ik", &a, &ones).unwrap();
    assert_eq!((product.shape().len(), product.shape().norms()), (4, &[0.0; 4][..]));
    assert!(product.truncate(&Options::default().screening(Scalar::Float64).unwrap()).unwrap().shape().is_empty());
}

/// An absent tile is zero, and its product with an infinite tile is absent, not NaN.
#[test]
fn absent_tiles_hide_infinities_and_present_ones_do_not() {
    let axis = Tiling1::blocked(2, 1).unwrap();
    let tiling = Tiling::new([&axis, &axis]).unwrap();
    let tensor = |elements: [f64; 4]| Tensor::new(&[2, 2], elements.to_vec()).unwrap();
    let of = |elements, threshold| {
        Tiled::from_tensor(&tensor(elements), &tiling, &cembra_tiles::Screening::threshold(threshold)).unwrap()
    };
    let infinite = of([f64::INFINITY, 1.0, f64::NAN, 1.0], 0.5);
    assert_eq!(infinite.shape().tiles(), [0, 1, 2, 3]);
    let run = Evaluator::new(Options::default().threshold(0.5));
    let product = |threshold| run.product("ij,jk->ik", &infinite, &of([0.0, 0.0, 2.0, 0.0], threshold)).unwrap();
    assert_eq!(product(0.5).to_tensor().unwrap().to_vec::<f64>().unwrap(), [2.0, 0.0, 2.0, 0.0]);
    let all = product(0.0).to_tensor().unwrap().to_vec::<f64>().unwrap();
    assert!(all.iter().all(|element| element.is_nan()), "{all:?}");
}

#[test]
fn results_that_take_too_many_bytes_are_refused_before_tiles_are_made() {
    let axis = Tiling1::blocked(1 << 20, 1 << 19).unwrap();
    let column = Shape::dense(&Tiling::new([&axis]).unwrap(), 2).unwrap();
    let never = |_: &TilePlace| -> Result<Tensor, Error> { panic!("nobody asks") };
    let a = Tiled::lazy(&column, Scalar::Float64, never).unwrap();
    let outer = Evaluator::new(Options::default()).product("i,j->ij", &a, &a).expect_err("an error");
    assert_eq!(outer.tensor_kind(), Some(Kind::Limit), "{outer}");
    let run = Evaluator::new(Options::default()).most_bytes(1000);
    let message = run.add(&a, &a).expect_err("an error").to_string();
    assert!(
        message.starts_with(
            "a result of 2 tiles takes 8388608 bytes; the limit is 1000 bytes, which is exceeded by 8387608 bytes"
        ),
        "{message}"
    );
    let floats = Tiled::lazy(&column, Scalar::Float32, never).unwrap();
    assert_eq!(run.product("i,i->i", &a, &floats).expect_err("an error").tensor_kind(), Some(Kind::ElementType));
    assert_eq!(run.product("i,j->ii", &a, &a).expect_err("an error").tensor_kind(), Some(Kind::RepeatedOutputLabel));
    // A lazy tile that panics ends a product with an error.
    let one = Tiling1::blocked(4, 2).unwrap();
    let small = Shape::dense(&Tiling::new([&one]).unwrap(), 2).unwrap();
    let panics = Tiled::lazy(&small, Scalar::Float64, never).unwrap();
    let run = Evaluator::new(Options::default());
    assert_eq!(run.product("i,i->", &panics, &panics).expect_err("an error").tensor_kind(), Some(Kind::Evaluation));
}
