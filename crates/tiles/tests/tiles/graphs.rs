//! Tests of graphs on tiled tensors without elementwise expressions. Graphs with such expressions are tested in the
//! crates that compile them.

use crate::products::lazy;
use crate::random;
use crate::threads::{all_bits, on_five_threads};
use cembra_runtime::Scalar;
use cembra_tensor::{Body, DataMut, Elements, Reduction, TensorGraph, TensorNodeId};
use cembra_tiles::{
    Evaluator, Journal, MOST_TILES, Options, Screening, Shape, StepKind, TilePlace, Tiled, Tiling, Tiling1,
};
use cembra_value::Error;
use cembra_value::tensor::{Slice, Tensor, TensorErrorKind as Kind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// An evaluator of elementwise expressions that returns an error, for graphs without such expressions.
pub(crate) struct NoElements;

impl Elements for NoElements {
    fn map_into(&self, body: &Body, _: &[Tensor], _: &[usize], _: &mut [DataMut<'_>]) -> Result<(), Error> {
        Err(Error::tensors(Kind::Evaluation, format!("an expression of {} steps", body.steps.len())))
    }

    fn most_bytes(&self) -> u64 {
        u64::MAX
    }
}

/// A tiling with these extents, whose axes have tiles of two elements.
fn tiling(extents: &[u64]) -> Tiling {
    let axes: Vec<Tiling1> = extents.iter().map(|extent| Tiling1::blocked(*extent, 2).expect("a tiling")).collect();
    Tiling::new(axes).expect("few tiles")
}

fn dense(extents: &[u64]) -> Tiled {
    let shape = Shape::dense(&tiling(extents), MOST_TILES).expect("few tiles");
    Tiled::from_fn(&shape, |at| at.iter().fold(1.0, |all, at| all * 3.0 + *at as f64)).expect("tiles")
}

/// A tensor with these present tiles, whose elements are all `element`.
fn filled(extents: &[u64], tiles: &[u64], element: f64) -> Tiled {
    let norms = tiles.iter().map(|tile| (*tile, 1.0));
    let shape = Shape::of_norms(&tiling(extents), norms, &Screening::threshold(0.0)).expect("a shape");
    Tiled::from_fn(&shape, |_| element).expect("tiles")
}

/// Builds a graph with a leaf for each input, and evaluates it.
fn evaluate(
    inputs: &[&Tiled],
    build: impl FnOnce(&mut TensorGraph, &[TensorNodeId]) -> Result<TensorNodeId, Error>,
) -> Result<Tiled, Error> {
    evaluate_with(Evaluator::new(Options::default().threshold(1e-12)), inputs, build)
}

fn evaluate_with(
    run: Evaluator,
    inputs: &[&Tiled],
    build: impl FnOnce(&mut TensorGraph, &[TensorNodeId]) -> Result<TensorNodeId, Error>,
) -> Result<Tiled, Error> {
    let mut graph = TensorGraph::standard();
    let leaf = |tiled: &&Tiled| graph.leaf("x", tiled.scalar_type(), &tiled.tiling().extents());
    let leaves = inputs.iter().map(leaf).collect::<Result<Vec<_>, Error>>()?;
    let output = build(&mut graph, &leaves)?;
    Ok(run.evaluate(&graph, &[output], inputs, &NoElements)?.remove(0))
}

fn elements(tiled: &Tiled) -> Vec<f64> {
    tiled.to_tensor().expect("a dense tensor").to_vec::<f64>().expect("f64")
}

#[test]
fn inputs_are_compared_with_leaves() {
    let (a, b) = (dense(&[4, 6]), dense(&[6, 4]));
    let mut graph = TensorGraph::standard();
    let leaf = graph.leaf("a", Scalar::Float64, &[4, 6]).expect("a leaf");
    let wide = graph.leaf("w", Scalar::Float32, &[4, 6]).expect("a leaf");
    let run = Evaluator::new(Options::default());
    let refused = |inputs: &[&Tiled]| {
        let error = run.evaluate(&graph, &[leaf], inputs, &NoElements).unwrap_err();
        (error.tensor_kind(), error.to_string())
    };
    assert_eq!(refused(&[&a]).0, Some(Kind::OperandCount));
    assert_eq!(refused(&[&b, &a]).0, Some(Kind::SizeMismatch));
    let (kind, message) = refused(&[&a, &a]);
    assert_eq!(kind, Some(Kind::ElementType));
    assert!(message.contains("`w`") && message.contains("f32"), "{message}");
    assert_ne!(leaf, wide);
}

#[test]
fn sums_and_products_share_their_nodes() {
    let (a, b) = (dense(&[4, 6]), dense(&[6, 4]));
    // A product and its transposition, which are not elementwise.
    let made = evaluate(&[&a, &b], |g, leaves| {
        let product = g.einsum("ij,jk->ik", leaves)?;
        let turned = g.transpose(product, &[1, 0])?;
        g.apply("math.subtract", &[product, turned])
    });
    let (found, a, b) = (elements(&made.expect("a value")), elements(&a), elements(&b));
    let product = |row: usize, column: usize| (0..6).map(|k| a[row * 6 + k] * b[k * 4 + column]).sum::<f64>();
    for (at, found) in found.into_iter().enumerate() {
        let (row, column) = (at / 4, at % 4);
        assert_eq!(found, product(row, column) - product(column, row), "{at}");
    }
}

#[test]
fn lazy_tiles_are_made_where_products_need_them() {
    let made = Arc::new(AtomicUsize::new(0));
    let counter = made.clone();
    let shape = Shape::dense(&tiling(&[8, 8]), MOST_TILES).expect("few tiles");
    let source = move |place: &TilePlace| {
        counter.fetch_add(1, Ordering::Relaxed);
        let extents = place.extents();
        Tensor::new(&extents, vec![1.0; extents.iter().product()])
    };
    let lazy = Tiled::lazy(&shape, Scalar::Float64, source).expect("a lazy tensor");
    // The middle factor has one tile, so only one column of tiles of the first factor is needed, and one row of the
    // last.
    let middle = filled(&[8, 8], &[1], 0.5);
    let found = evaluate(&[&lazy, &middle], |g, leaves| g.einsum("ij,jk,kl->il", &[leaves[0], leaves[1], leaves[0]]));
    // Each element is the sum of 2 x 2 products.
    assert_eq!(elements(&found.expect("a value")), [2.0; 64]);
    // Four tiles of the first factor and four of the last were computed.
    assert_eq!(made.load(Ordering::Relaxed), 8);
}

#[test]
fn lazy_operands_in_another_order_of_axes_stay_lazy_in_products_alone() {
    let made = Arc::new(AtomicUsize::new(0));
    let counter = made.clone();
    let shape = Shape::dense(&tiling(&[8, 6]), MOST_TILES).expect("few tiles");
    let source = move |place: &TilePlace| {
        counter.fetch_add(1, Ordering::Relaxed);
        let [rows, columns] = [0, 1].map(|axis| place.ranges[axis].clone());
        let elements = rows.flat_map(|row| columns.clone().map(move |column| (row * 10 + column) as f64));
        Tensor::new(&place.extents(), elements.collect())
    };
    let lazy = Tiled::lazy(&shape, Scalar::Float64, source).expect("a lazy tensor");
    // One row of tiles of the transposed tensor is needed, which is the third column of tiles of the lazy tensor.
    let left = filled(&[2, 6], &[2], 1.0);
    let turned = |g: &mut TensorGraph, leaf| g.with_axes(leaf, &[1, 0]);
    let product = evaluate(&[&left, &lazy], |g, leaves| {
        let turned = turned(g, leaves[1])?;
        g.einsum("ij,jk->ik", &[leaves[0], turned])
    });
    let row: Vec<f64> = (0..8).map(|at| f64::from(at * 10 + 4 + at * 10 + 5)).collect();
    assert_eq!(elements(&product.expect("a value")), [&row[..], &row[..]].concat());
    assert_eq!(made.load(Ordering::Relaxed), 4);
    // A lazy tensor that is an output is stored, with the norms of its elements.
    let alone = evaluate(&[&lazy], |g, leaves| turned(g, leaves[0])).expect("a value");
    assert_eq!((elements(&alone)[1], made.load(Ordering::Relaxed)), (10.0, 16));
    let norm = alone.shape().norm(0).expect("a tile");
    assert!((norm - (100.0_f64 + 1.0 + 121.0).sqrt() / 4.0).abs() < 1e-15, "{norm}");
}

#[test]
fn reductions_count_absent_tiles_where_zeros_matter() {
    let a = filled(&[4, 6], &[0, 3, 4, 5], -2.0);
    let reduce = |reduction, axes: &[usize]| {
        let made = evaluate(&[&a], |g, leaves| g.reduce(reduction, leaves[0], axes)).expect("a value");
        (made.shape().tiles().to_vec(), elements(&made))
    };
    assert_eq!(reduce(Reduction::Sum, &[1]), (vec![0, 1], vec![-4.0, -4.0, -12.0, -12.0]));
    assert_eq!(reduce(Reduction::Max, &[1]).1, [0.0, 0.0, -2.0, -2.0]);
    assert_eq!(reduce(Reduction::Min, &[0]).1, [-2.0; 6]);
    // The first row of tiles has absent tiles, so its product is 0; of the columns, only the first has all its tiles.
    assert_eq!(reduce(Reduction::Product, &[1]), (vec![1], vec![0.0, 0.0, 64.0, 64.0]));
    assert_eq!(reduce(Reduction::Product, &[0]), (vec![0], vec![16.0, 16.0, 0.0, 0.0, 0.0, 0.0]));
    assert_eq!(reduce(Reduction::Sum, &[0, 1]), (vec![0], vec![-32.0]));
    // The product of no elements is 1, and their sum is 0.
    let empty = dense(&[0, 3]);
    let of_none = |reduction| {
        let made = evaluate(&[&empty], |g, leaves| g.reduce(reduction, leaves[0], &[0])).expect("a value");
        elements(&made)
    };
    assert_eq!((of_none(Reduction::Product), of_none(Reduction::Sum)), (vec![1.0; 3], vec![0.0; 3]));
    // The absent tiles of the grid are counted, but not listed.
    let vast = filled(&[1 << 44], &[3], -1.0);
    let of_vast =
        |reduction| elements(&evaluate(&[&vast], |g, leaves| g.reduce(reduction, leaves[0], &[0])).expect("a value"));
    assert_eq!((of_vast(Reduction::Max), of_vast(Reduction::Min)), (vec![0.0], vec![-1.0]));
    let nan = filled(&[2, 2], &[0], f64::NAN);
    let made = evaluate(&[&nan], |g, leaves| g.reduce(Reduction::Max, leaves[0], &[0, 1])).expect("a value");
    assert!(elements(&made)[0].is_nan());
}

#[test]
fn numbers_are_not_screened() {
    let a = filled(&[4], &[0], 1e-9);
    // 2e-18 and 2e-9 * 1e-9 are below the threshold.
    let dot = evaluate(&[&a], |g, leaves| g.einsum("i,i->", &[leaves[0], leaves[0]])).expect("a value");
    assert!((elements(&dot)[0] - 2e-18).abs() < 1e-30);
    let sum = evaluate(&[&a, &dot], |g, leaves| {
        let sum = g.reduce(Reduction::Sum, leaves[0], &[0])?;
        g.einsum(",->", &[sum, leaves[1]])
    });
    assert!((elements(&sum.expect("a value"))[0] - 4e-27).abs() < 1e-38);
    // In a vector, a tile with such small elements is left out.
    let product = evaluate(&[&a], |g, leaves| g.einsum("i,i->i", &[leaves[0], leaves[0]])).expect("a value");
    assert!(product.shape().is_empty());
}

#[test]
fn diagonals_are_those_of_tiles_on_the_diagonal() {
    let a = filled(&[6, 6, 4], &[0, 1, 2, 16], 3.0);
    // Tiles (0, 0, 0), (0, 0, 1) and (2, 2, 0) are on the diagonal, and (0, 1, 0) is not.
    let made = evaluate(&[&a], |g, leaves| g.with_axes(leaves[0], &[1, 1, 0])).expect("a value");
    assert_eq!(made.tiling().extents()[..], [4, 6]);
    assert_eq!(made.shape().tiles(), [0, 2, 3]);
    let axis = Tiling1::new([0, 1, 6]).expect("ascending");
    let other = Tiling::new([&axis, &Tiling1::blocked(6, 2).expect("a tiling")]).expect("few tiles");
    let unlike = Tiled::from_fn(&Shape::dense(&other, 64).expect("few tiles"), |_| 1.0).expect("tiles");
    let refused = evaluate(&[&unlike], |g, leaves| g.with_axes(leaves[0], &[0, 0])).unwrap_err();
    assert_eq!(refused.tensor_kind(), Some(Kind::SizeMismatch));
}

/// Axes of one index may differ by empty tiles around the index, and still have a diagonal.
#[test]
fn axes_of_one_index_have_a_diagonal_however_they_are_cut() {
    let axis = |boundaries: &[i64]| Tiling1::new(boundaries.iter().copied()).expect("ascending");
    let tiling = Tiling::new([axis(&[0, 1]), axis(&[-3, -2, -2]), axis(&[0, 2, 3])]).expect("few tiles");
    let a = Tiled::from_fn(&Shape::dense(&tiling, 64).expect("few tiles"), |at| 1.0 + at[2] as f64).expect("tiles");
    let made = evaluate(&[&a], |g, leaves| g.with_axes(leaves[0], &[0, 0, 1])).expect("a value");
    assert_eq!((elements(&made), made.shape().tiles()), (vec![1.0, 2.0, 3.0], &[0, 1][..]));
    let sum = evaluate(&[&a], |g, leaves| g.einsum("iij->j", &[leaves[0]])).expect("a value");
    assert_eq!(elements(&sum), [1.0, 2.0, 3.0]);
}

/// Tiles cannot have integers, so an integer is computed in the expression that reads it, also if it has axes of one
/// index.
#[test]
fn numbers_of_integers_have_no_tiles() {
    let a = dense(&[4, 4]);
    let made = evaluate(&[&a], |g, leaves| {
        let two = g.constant(Scalar::Int32, 2.0)?;
        let four = g.apply("math.add", &[two, two])?;
        let four = g.reshape(four, &[1, 1])?;
        g.apply("math.multiply", &[four, leaves[0]])
    });
    // The error is that of the expression's evaluator, so the graph itself was not refused.
    let refused = made.unwrap_err().to_string();
    assert!(refused.contains("an expression of"), "{refused}");
}

#[test]
fn expressions_of_elements_are_left_to_others() {
    let a = dense(&[4, 4]);
    let refused = evaluate(&[&a], |g, leaves| g.apply("exp", &[leaves[0]])).unwrap_err();
    assert!(refused.to_string().contains("an expression of 1 steps"), "{refused}");
}

/// Builds `a a`, `a a a` and the product of these two.
fn three_products(graph: &mut TensorGraph, a: TensorNodeId) -> TensorNodeId {
    let square = graph.einsum("ij,jk->ik", &[a, a]).expect("a product");
    let cube = graph.einsum("ij,jk->ik", &[square, a]).expect("a product");
    graph.einsum("ij,jk->ik", &[square, cube]).expect("a product")
}

#[test]
fn what_earlier_steps_made_counts_against_the_bytes() {
    let a = dense(&[8, 8]);
    let bytes = 8 * 8 * 8;
    let mut graph = TensorGraph::standard();
    let leaf = graph.leaf("a", Scalar::Float64, &[8, 8]).expect("a leaf");
    let last = three_products(&mut graph, leaf);
    let transposed = graph.with_axes(leaf, &[1, 0]).expect("a view");
    let of_view = graph.einsum("ij,jk->ik", &[transposed, leaf]).expect("a product");
    let of_three = graph.einsum("ij,jk,kl->il", &[leaf, leaf, leaf]).expect("a product");
    let chain = (0..4).fold(leaf, |before, _| graph.einsum("ij,jk->ik", &[before, leaf]).expect("a product"));
    let with = |most: usize, output: TensorNodeId| {
        let run = Evaluator::new(Options::default().threshold(1e-12)).most_bytes(most);
        run.evaluate(&graph, &[output], &[&a], &NoElements)
    };
    // Each product fits by itself. While the last product is computed, the two others are held, too.
    assert!(with(3 * bytes, last).is_ok());
    let error = with(3 * bytes - 1, last).expect_err("too few bytes");
    assert_eq!(error.tensor_kind(), Some(Kind::Limit));
    assert!(error.to_string().contains(&format!("takes {bytes} bytes; the limit is {}", bytes - 1)), "{error}");
    // A value that no later step reads is dropped, and no longer counts.
    assert!(with(2 * bytes, chain).is_ok());
    // The product of two of the three factors is held while the last product is computed.
    assert!(with(2 * bytes, of_three).is_ok() && with(2 * bytes - 1, of_three).is_err());
    // A view that shares all tiles of an input is the caller's memory, and does not count.
    assert!(with(2 * bytes, of_view).is_ok());
    assert!(with(bytes - 1, of_view).is_err());
}

#[test]
fn journals_have_the_steps_and_what_they_took() {
    // Blocks on the diagonal of a matrix of 4 by 4 tiles.
    let a = filled(&[8, 8], &[0, 5, 10], 1.0);
    let mut graph = TensorGraph::standard();
    let leaf = graph.leaf("a", Scalar::Float64, &[8, 8]).expect("a leaf");
    let last = three_products(&mut graph, leaf);
    let sum = graph.reduce(Reduction::Sum, last, &[0]).expect("a sum");
    let journal = Journal::default();
    let run = Evaluator::new(Options::default().threshold(1e-12)).journal(journal.clone());
    run.evaluate(&graph, &[sum], &[&a], &NoElements).expect("a value");
    let steps = journal.steps();
    let product = StepKind::Product { products: 3, of: 64.0, operations: 3.0 * 2.0 * 8.0 };
    let found: Vec<_> =
        steps.iter().map(|step| (step.work, step.tiles, step.of, step.bytes, step.held_bytes)).collect();
    let bytes = 3 * 4 * 8;
    let expected = [
        (product, 3, 16.0, bytes, 0),
        (product, 3, 16.0, bytes, bytes),
        (product, 3, 16.0, bytes, 2 * bytes),
        (StepKind::Reduction, 3, 4.0, 3 * 2 * 8, bytes),
    ];
    assert_eq!(found, expected);
}

/// The evaluator compares all orders of the products. If the cheapest pair were always multiplied next, the order would
/// be `((ab)c)d` here.
#[test]
fn four_factors_are_multiplied_in_the_cheapest_of_all_orders() {
    let [a, b, c, d] = [[4, 2], [2, 2], [2, 6], [6, 6]].map(|extents| dense(&extents));
    let journal = Journal::default();
    let run = Evaluator::new(Options::default()).journal(journal.clone());
    let made = evaluate_with(run, &[&a, &b, &c, &d], |graph, of| graph.einsum("ij,jk,kl,lm->im", of));
    assert_eq!(made.expect("a product").tiling().extents()[..], [4, 6]);
    let all = journal.steps().into_iter().map(|step| match step.work {
        StepKind::Product { operations, .. } => operations,
        _ => 0.0,
    });
    // The operations of `(ab)(cd)`, an addition for each multiplication. For `((ab)c)d` there would be 2 * 208.
    assert_eq!(all.sum::<f64>(), 2.0 * (4.0 * 2.0 * 2.0 + 2.0 * 6.0 * 6.0 + 4.0 * 2.0 * 6.0));
}

#[test]
fn slices_that_begin_and_end_where_tiles_do_take_no_bytes() {
    let a = dense(&[8, 6]);
    let with = |slices: [Slice; 2], most: usize| {
        let mut graph = TensorGraph::standard();
        let leaf = graph.leaf("a", Scalar::Float64, &[8, 6]).expect("a leaf");
        let part = graph.slice_anew(leaf, &slices).expect("a slice");
        let square = graph.einsum("ij,kj->ik", &[part, part]).expect("a product");
        let run = Evaluator::new(Options::default().threshold(0.0)).most_bytes(most);
        let made = run.evaluate(&graph, &[square], &[&a], &NoElements)?.remove(0);
        Ok::<_, Error>((made.shape().len(), elements(&made)))
    };
    let range = |start, count| Slice { start, step: 1, count };
    let square = |rows: std::ops::Range<i64>, columns: std::ops::Range<i64>| {
        let element = |i: i64, j: i64| (3.0 + i as f64) * 3.0 + j as f64;
        let sum = |i: i64, k: i64| columns.clone().map(|j| element(i, j) * element(k, j)).sum::<f64>();
        rows.clone().flat_map(|i| rows.clone().map(move |k| (i, k))).map(|(i, k)| sum(i, k)).collect::<Vec<f64>>()
    };
    // The bytes of 4 by 4 elements, in addition to the caller's memory.
    let bytes = 4 * 4 * 8;
    assert_eq!(with([range(4, 4), range(2, 4)], bytes).expect("a square"), (4, square(4..8, 2..6)));
    // The whole axis is a range, too.
    assert_eq!(with([range(0, 4), range(0, 6)], bytes).expect("a square"), (4, square(0..4, 0..6)));
    // Ranges that cut tiles copy elements into new tiles, with the boundaries of the old ones.
    let copied = 4 * 4 * 8;
    assert!(with([range(3, 4), range(2, 4)], bytes).is_err());
    assert_eq!(with([range(3, 4), range(2, 4)], 9 * bytes + copied).expect("a square"), (9, square(3..7, 2..6)));
}

#[test]
fn sums_of_all_elements_add_their_tiles_exactly_on_any_threads() {
    on_five_threads(|| {
        let shape = Shape::dense(&tiling(&[1000]), MOST_TILES).expect("few tiles");
        // Two tiles with a large number, which cancel in the sum, among tiles of ones.
        let element = |at: i64| -> f64 {
            match at {
                6 => 1e30,
                900 => -1e30,
                7 | 901 => 0.0,
                _ => 1.0,
            }
        };
        let a = Tiled::from_fn(&shape, |at| element(at[0])).expect("tiles");
        let narrow = Tiled::from_fn(&shape, |at| element(at[0]) as f32).expect("tiles");
        for threads in [1, 2, 5] {
            let run = Evaluator::new(Options::default().threshold(0.0).block_bytes(64)).threads(threads);
            let number = |reduction, of: &Tiled| {
                evaluate_with(run.clone(), &[of], |g, leaves| g.reduce(reduction, leaves[0], &[0])).expect("a value")
            };
            for a in [&a, &lazy(&a)] {
                assert_eq!(elements(&number(Reduction::Sum, a)), [996.0], "{threads}");
                assert_eq!(elements(&number(Reduction::Max, a)), [1e30], "{threads}");
                assert_eq!(elements(&number(Reduction::Product, a)), [0.0], "{threads}");
            }
            let sum = number(Reduction::Sum, &narrow).to_tensor().expect("a dense tensor");
            assert_eq!(sum.to_vec::<f32>().expect("f32"), [996.0], "{threads}");
        }
    });
}

#[test]
fn reductions_of_rows_have_the_same_bits_on_any_threads() {
    on_five_threads(|| {
        let mut rng = fastrand::Rng::with_seed(72);
        for _ in 0..40 {
            let tiling = random::tiling(&mut rng, 2);
            let a = random::sparse::<f64>(&mut rng, &tiling, 0.7);
            let all = |threads: usize, of: &Tiled| {
                let run = Evaluator::new(Options::default().threshold(0.0).block_bytes(64)).threads(threads);
                let reduce = |reduction, axis: usize| {
                    evaluate_with(run.clone(), &[of], |g, leaves| g.reduce(reduction, leaves[0], &[axis]))
                };
                [Reduction::Sum, Reduction::Product, Reduction::Max]
                    .into_iter()
                    .flat_map(|reduction| [0, 1].map(|axis| reduce(reduction, axis).map(|made| all_bits(&made)).ok()))
                    .collect::<Vec<_>>()
            };
            let one = all(1, &a);
            assert!(one[0].is_some() && one == all(2, &a) && one == all(5, &lazy(&a)));
        }
    });
}
