//! Tests of plans of graphs, which have the steps of the evaluation, and its errors if there are too few bytes or
//! tiles; and of the progress of an evaluation.

use crate::graphs::NoElements;
use crate::products::lazy;
use crate::random::{self, ALL};
use cembra_runtime::Scalar;
use cembra_tensor::{Reduction, TensorGraph, TensorNodeId};
use cembra_tiles::{
    Evaluator, Journal, MOST_TILES, Options, Screening, Segment, Shape, Step, StepKind, TilePlace, Tiled, Tiling,
    Tiling1,
};
use cembra_value::Error;
use cembra_value::tensor::{Slice, Tensor, TensorErrorKind as Kind};
use fastrand::Rng;

/// Builds a node on two square matrices with the same tiling.
type Build = fn(&mut TensorGraph, TensorNodeId, TensorNodeId) -> Result<TensorNodeId, Error>;

/// Graphs with products in several orders, views, diagonals, sums that share tiles, reductions, slices, axes of one
/// index, and gradients of slices.
const GRAPHS: [Build; 17] = [
    |g, a, b| g.einsum("ij,jk->ik", &[a, b]),
    |g, a, b| g.einsum("ji,kj->ki", &[a, b]),
    |g, a, b| g.einsum("ij,jk,kl->il", &[a, b, a]),
    |g, a, b| g.einsum("ij,jk,kl,lm,mn->in", &[a, b, a, b, b]),
    |g, a, b| g.einsum("ij,ij->", &[a, b]),
    |g, a, b| {
        let square = g.einsum("ij,jk->ik", &[a, b])?;
        let cube = g.einsum("ij,jk->ik", &[square, a])?;
        g.einsum("ij,jk->ik", &[square, cube])
    },
    |g, a, b| {
        let turned = g.transpose(a, &[1, 0])?;
        let sum = g.apply("math.add", &[turned, b])?;
        g.einsum("ij,jk->ik", &[sum, turned])
    },
    |g, a, b| {
        let sum = g.apply("math.add", &[a, b])?;
        let left = g.apply("math.subtract", &[a, b])?;
        g.einsum("ij,kj->ik", &[left, sum])
    },
    |g, a, b| {
        let diagonal = g.with_axes(a, &[0, 0])?;
        let sums = g.reduce(Reduction::Sum, b, &[1])?;
        let most = g.reduce(Reduction::Max, a, &[0])?;
        let sum = g.apply("math.add", &[sums, most])?;
        g.einsum("i,i->i", &[diagonal, sum])
    },
    |g, a, b| g.einsum("ii,ij->j", &[a, b]),
    |g, a, b| g.einsum("ij,kl->jl", &[a, b]),
    |g, a, b| {
        let extent = g.extents(a)[0];
        let part = [Slice { start: extent / 3, step: 1, count: extent - extent / 3 }, Slice::all(extent)];
        let (a, b) = (g.slice(a, &part)?, g.slice(b, &part)?);
        g.einsum("ij,kj->ik", &[a, b])
    },
    |g, a, b| {
        let extent = g.extents(a)[0];
        let tall = g.reshape(a, &[1, extent, 1, extent])?;
        let turned = g.transpose(tall, &[2, 1, 0, 3])?;
        let product = g.einsum("abcd,df->bf", &[turned, b])?;
        g.apply("math.subtract", &[product, a])
    },
    |g, a, b| {
        let product = g.reduce(Reduction::Product, a, &[0, 1])?;
        let sum = g.reduce(Reduction::Sum, b, &[0, 1])?;
        g.einsum(",->", &[product, sum])
    },
    |g, a, b| {
        let extent = g.extents(a)[0];
        let part = [Slice { start: extent / 3, step: 1, count: extent - extent / 3 }, Slice::all(extent)];
        let of = g.slice(b, &part)?;
        let placed = g.place_slice_in(of, &part, a)?;
        g.apply("math.add", &[placed, a])
    },
    |g, a, b| {
        let extent = g.extents(a)[0];
        let part = |start| [Slice { start, step: 1, count: extent / 2 }, Slice::all(extent)];
        let of = g.slice(b, &part(extent - extent / 2))?;
        let moved = g.place_slice_in(of, &part(0), a)?;
        g.einsum("ij,jk->ik", &[moved, a])
    },
    |g, a, b| {
        let product = g.einsum("ij,jk->ik", &[a, b])?;
        let placed = g.place_slice_in(product, &[Slice::all(g.extents(a)[0]); 2], b)?;
        g.einsum("ij,jk->ik", &[placed, product])
    },
];

/// A random axis of at least two elements. Axes of one element with different tilings are combined by an elementwise
/// expression, which cannot be evaluated here.
fn axis(rng: &mut Rng) -> Tiling1 {
    loop {
        let axis = random::axis(rng);
        if axis.extent() > 1 {
            return axis;
        }
    }
}

/// The outcome of a plan or an evaluation: the steps, or the kind and the text of the error.
type Outcome = Result<Vec<Step>, (Option<Kind>, String)>;

fn outcomes(build: Build, inputs: [&Tiled; 2], run: Evaluator) -> (Outcome, Outcome) {
    let mut graph = TensorGraph::standard();
    let [a, b] = inputs.map(|of| graph.leaf("x", of.scalar_type(), &of.tiling().extents()).expect("a leaf"));
    let output = build(&mut graph, a, b).expect("a graph");
    let journal = Journal::default();
    let run = run.journal(journal.clone());
    let failed = |error: Error| (error.tensor_kind(), error.to_string());
    let planned = run.plan_graph(&graph, &[output], &inputs, &NoElements).map_err(failed);
    assert!(journal.steps().is_empty(), "a plan is no evaluation");
    let made = run.evaluate(&graph, &[output], &inputs, &NoElements);
    (planned, made.map(|_| journal.steps()).map_err(failed))
}

#[test]
fn the_steps_of_a_plan_are_those_of_the_evaluation() {
    let mut rng = Rng::with_seed(70);
    for case in 0..340 {
        let axis = if case % 5 == 0 { Tiling1::new([0, 0, 1, 3, 4]).expect("ascending") } else { axis(&mut rng) };
        let tiling = Tiling::new([&axis, &axis]).expect("few tiles");
        let [a, b] = [0.3, 0.8].map(|share| random::sparse::<f64>(&mut rng, &tiling, share));
        // Lazy operands of products are computed in panels, so their bytes count differently.
        let (a, b) = if rng.bool() { (lazy(&a), b) } else { (a, b) };
        let build = GRAPHS[case % GRAPHS.len()];
        let options = Options::default().threshold(0.0).block_bytes(*[0, 100, 1 << 20].get(case % 3).unwrap_or(&0));
        let (planned, made) = outcomes(build, [&a, &b], Evaluator::new(options.clone()));
        assert_eq!(planned, made, "{case}");
        let steps = made.expect("values");
        // For any memory limit, it suffices for both the plan and the evaluation, or for neither.
        let most = steps.iter().map(|step| step.bytes + step.held_bytes).max().unwrap_or(0);
        for bytes in [0, 8, most / 2, most.saturating_sub(1), most, most + 16, 2 * most + 64] {
            let (planned, made) = outcomes(build, [&a, &b], Evaluator::new(options.clone()).most_bytes(bytes));
            assert_eq!(planned, made, "{case} {bytes}");
        }
        let (planned, made) = outcomes(build, [&a, &b], Evaluator::new(options.clone().most_products(3).most_tiles(5)));
        assert_eq!(planned, made, "{case}");
    }
}

/// In addition to its result, a step holds tiles of lazy operands, as many as the memory limit allows, and sums of
/// segments that were not added yet.
#[test]
fn steps_say_what_they_hold_beside_their_results() {
    let axis = Tiling1::blocked(16, 2).expect("few tiles");
    let tiling = Tiling::new([&axis, &axis]).expect("few tiles");
    let (a, b) = (lazy(&random::dense::<f64>(&tiling, 1)), random::dense::<f64>(&tiling, 2));
    let options = Options::default().threshold(0.0).block_bytes(0);
    let run = |options: &Options| Evaluator::new(options.clone());
    let held_by = |build: Build, inputs: [&Tiled; 2], run: Evaluator| -> Vec<usize> {
        let (planned, made) = outcomes(build, inputs, run);
        assert_eq!(planned, made);
        made.expect("values").iter().map(|step| step.held_bytes).collect()
    };
    let held = |build, inputs, options: &Options| held_by(build, inputs, run(options));
    let (all, column, tile) = (16 * 16 * 8, 16 * 2 * 8, 2 * 2 * 8);
    let product: Build = |g, a, b| g.einsum("ij,jk->ik", &[a, b]);
    assert_eq!(held(product, [&b, &b], &options), [0]);
    assert_eq!(held(product, [&a, &b], &options), [all]);
    assert_eq!(held(product, [&a, &a], &options), [2 * all]);
    assert_eq!(held_by(product, [&a, &b], run(&options).most_bytes(all + 3 * column + tile)), [3 * column]);
    // With segments of two keys, a task holds the sum of the current segment in addition to that of the earlier ones.
    let segments = options.clone().segment(Segment { elements: 8192, tiles: 2 });
    assert_eq!(held(product, [&b, &b], &segments), [tile]);
    assert_eq!(held_by(product, [&a, &b], run(&segments).most_bytes(all + 5 * column)), [4 * column + tile]);
    // Each thread holds a sum or a lazy tile.
    assert_eq!(held_by(product, [&b, &b], run(&segments).threads(3)), [3 * tile]);
    // With few blocks, several segments of all blocks are summed at once.
    assert_eq!(held_by(product, [&b, &b], run(&segments.block_bytes(1 << 20)).threads(2)), [all + 4 * all]);
    let sum: Build = |g, a, b| g.apply("math.add", &[a, b]);
    assert_eq!([1, 3].map(|threads| held_by(sum, [&a, &b], run(&options).threads(threads))), [[tile], [3 * tile]]);
    let part: Build = |g, a, _| g.slice(a, &[Slice { start: 1, step: 1, count: 12 }, Slice::all(16)]);
    assert_eq!(held(part, [&a, &b], &options), [tile]);
}

/// With a threshold, a plan has at least the tiles, bytes and products of the evaluation.
#[test]
fn estimates_are_upper_ones() {
    let mut rng = Rng::with_seed(71);
    let mut is_less = false;
    // Only graphs whose steps do not depend on the order of products, because the present tiles decide that order.
    for case in 0..240 {
        let build = GRAPHS[[0, 1, 5, 6, 7, 8, 9, 11, 12, 14, 15, 16][case % 12]];
        let own = axis(&mut rng);
        let tiling = Tiling::new([&own, &own]).expect("few tiles");
        let [a, b] = [0.7, 0.9].map(|share| random::sparse::<f64>(&mut rng, &tiling, share));
        let options = Options::default().threshold(rng.f64() * 0.5);
        let (planned, made) = outcomes(build, [&a, &b], Evaluator::new(options.clone()));
        let (planned, made) = (planned.expect("steps"), made.expect("values"));
        assert_eq!(planned.len(), made.len(), "{case}");
        for (planned, made) in planned.iter().zip(&made) {
            assert!(planned.tiles >= made.tiles && planned.bytes >= made.bytes, "{case}");
            let products = |step: &Step| if let StepKind::Product { products, .. } = step.work { products } else { 0 };
            assert!(products(planned) >= products(made), "{case}");
            is_less |= planned.tiles > made.tiles;
        }
    }
    assert!(is_less);
}

#[test]
fn no_tile_is_made_or_read() {
    let axis = Tiling1::blocked(1 << 20, 1 << 16).expect("few tiles");
    let tiling = Tiling::new([&axis, &axis]).expect("few tiles");
    let shape = Shape::dense(&tiling, MOST_TILES).expect("few tiles");
    let source = |_: &TilePlace| -> Result<Tensor, Error> { panic!("a tile is asked for") };
    let lazy = Tiled::lazy(&shape, Scalar::Float64, source).expect("a lazy tensor");
    let planned = Tiled::planned(&shape, Scalar::Float64).expect("a shape");
    for (case, build) in GRAPHS.into_iter().enumerate() {
        let mut graph = TensorGraph::standard();
        let [a, b] = [0, 1].map(|_| graph.leaf("x", Scalar::Float64, &tiling.extents()).expect("a leaf"));
        let output = build(&mut graph, a, b).expect("a graph");
        // The result would have more bytes than any machine has.
        let run = Evaluator::new(Options::default());
        let steps = run.plan_graph(&graph, &[output], &[&lazy, &planned], &NoElements);
        assert!(steps.is_ok_and(|steps| !steps.is_empty()), "{case}");
    }
}

#[test]
fn tensors_without_tiles_are_for_plans_alone() {
    let axis = Tiling1::blocked(8, 2).expect("few tiles");
    let shape = Shape::dense(&Tiling::new([&axis, &axis]).expect("few tiles"), MOST_TILES).expect("few tiles");
    let planned = Tiled::planned(&shape, Scalar::Float32).expect("a shape");
    assert!(planned.is_planned() && !planned.is_lazy());
    assert_eq!((planned.memory_bytes(), planned.scalar_type()), (64 * 4, Scalar::Float32));
    assert_eq!(Tiled::planned(&shape, Scalar::Int64).expect_err("an error").tensor_kind(), Some(Kind::ElementType));
    let run = Evaluator::new(Options::default());
    let mut graph = TensorGraph::standard();
    let leaf = graph.leaf("a", Scalar::Float32, &[8, 8]).expect("a leaf");
    let turned = graph.transpose(leaf, &[1, 0]).expect("a view");
    for refused in [
        planned.to_tensor().map(|_| ()),
        planned.get::<f32>(&[0, 0]).map(|_| ()),
        planned.truncate(&ALL).map(|_| ()),
        planned.map_tiles(|_, tile| Ok(tile.clone())).map(|_| ()),
        run.product("ij,jk->ik", &planned, &planned).map(|_| ()),
        run.add(&planned, &planned).map(|_| ()),
        run.sum(&planned).map(|_| ()),
        run.evaluate(&graph, &[turned], &[&planned], &NoElements).map(|_| ()),
    ] {
        let error = refused.expect_err("an error");
        assert_eq!(error.tensor_kind(), Some(Kind::Evaluation));
        assert!(error.to_string().contains("the tensor has no tiles, only a shape"), "{error}");
    }
    // Operations that need no elements work on planned tensors: taking a block, and replacing one.
    let block = planned.block(&[1..3, 0..2], Default::default()).expect("a block");
    assert_eq!((block.shape().len(), block.is_planned()), (4, true));
    assert!(planned.with_block(&[1, 1], &block).expect("tiles").is_planned());
    // The sum of squares of a part is at most that of the whole tile.
    let norms = shape.tiles().iter().map(|tile| (*tile, 0.5));
    let known = Shape::of_norms(shape.tiling(), norms, &Screening::threshold(0.0)).expect("a shape");
    let known = Tiled::planned(&known, Scalar::Float64).expect("a shape");
    let part = known.elements(&[1..4, 0..2], Default::default(), &ALL).expect("a part");
    // One row of a tile with the norm 0.5 and four elements, and another tile as a whole.
    assert_eq!(part.shape().iter().collect::<Vec<_>>(), [(0, 1.0), (1, 0.5)]);
}

#[test]
fn shapes_of_a_seed_have_about_a_part_of_the_tiles() {
    let axis = Tiling1::new([-2, 0, 0, 3, 4]).expect("ascending");
    let tiling = Tiling::new([&axis, &Tiling1::blocked(4000, 2).expect("few tiles")]).expect("few tiles");
    let of = |part: f64, seed: u64| Shape::random(&tiling, part, seed, MOST_TILES);
    let (none, all) = (of(0.0, 1).expect("a shape"), of(1.0, 1).expect("a shape"));
    // Tiles without elements are absent.
    assert_eq!((none.len(), all.len()), (0, 6000));
    let (some, others) = (of(0.3, 1).expect("a shape"), of(0.3, 2).expect("a shape"));
    assert!(some.len().abs_diff(1800) < 120 && some != others && some == of(0.3, 1).expect("a shape"));
    assert!(some.norms().iter().all(|norm| *norm == f64::INFINITY));
    // A shape with a larger fraction and the same seed has all tiles of the one with the smaller fraction.
    let more = of(0.6, 1).expect("a shape");
    assert!(some.tiles().iter().all(|tile| more.position(*tile).is_some()));
    for part in [-0.1, 1.1, f64::NAN, f64::INFINITY] {
        assert_eq!(of(part, 1).expect_err("an error").tensor_kind(), Some(Kind::Norm));
    }
    assert_eq!(Shape::random(&tiling, 1.0, 1, 5999).expect_err("an error").tensor_kind(), Some(Kind::Limit));
    let vast = Tiling::new([Tiling1::blocked(1 << 40, 2).expect("few tiles")]).expect("few tiles");
    assert_eq!(Shape::random(&vast, 0.0, 1, MOST_TILES).expect_err("an error").tensor_kind(), Some(Kind::Limit));
}

/// The function of a lazy tensor reads the progress whenever it computes a tile: it must be that of the running step.
#[test]
fn progress_is_that_of_the_step_that_runs() {
    let axis = Tiling1::blocked(12, 2).expect("few tiles");
    let tiling = Tiling::new([&axis, &axis]).expect("few tiles");
    let shape = Shape::dense(&tiling, MOST_TILES).expect("few tiles");
    for threads in [1, 3] {
        let journal = Journal::default();
        assert_eq!(journal.progress(), cembra_tiles::Progress::default());
        let (seen, looks) = (std::sync::Arc::new(std::sync::Mutex::new(Vec::new())), journal.clone());
        let log = seen.clone();
        let source = move |place: &TilePlace| {
            log.lock().expect("no panic").push(looks.progress());
            Tensor::new(&place.extents(), vec![1.0; 4])
        };
        let lazy = Tiled::lazy(&shape, Scalar::Float64, source).expect("a lazy tensor");
        let mut graph = TensorGraph::standard();
        let leaf = graph.leaf("a", Scalar::Float64, &[12, 12]).expect("a leaf");
        let square = graph.einsum("ij,jk->ik", &[leaf, leaf]).expect("a product");
        let sum = graph.apply("math.add", &[square, leaf]).expect("a sum");
        let number = graph.reduce(Reduction::Sum, sum, &[0, 1]).expect("a number");
        let run = Evaluator::new(Options::default().block_bytes(0)).threads(threads).journal(journal.clone());
        run.evaluate(&graph, &[number], &[&lazy], &NoElements).expect("a number");
        let seen = seen.lock().expect("no panic").clone();
        // The tiles of both operands are computed before the first product; those of the sum are computed one after the
        // other.
        assert_eq!(seen.len(), 36 + 36 + 36);
        assert!(seen.iter().all(|seen| seen.steps == 3 && seen.done <= seen.of));
        let first: Vec<_> = seen.iter().filter(|seen| seen.step == 1).collect();
        assert!(first.len() == 72 && first.iter().all(|seen| (seen.done, seen.of) == (0, 216)));
        let second: Vec<_> = seen.iter().filter(|seen| seen.step == 2).collect();
        assert!(second.len() == 36 && second.iter().all(|seen| seen.of == 36));
        let most = second.iter().map(|seen| seen.done).max().expect("tiles");
        assert!(most >= 36 - threads && second[0].done < threads, "{most}");
        let last = journal.progress();
        assert_eq!((last.step, last.steps, last.done, last.of), (3, 3, 36, 36));
        // Each product of tiles is counted once, for any number of panels and segments. Panels have the 24 tiles of two
        // keys here.
        for most in [usize::MAX, 2 * 36 * 32 + 24 * 32] {
            let options = Options::default().segment(Segment { elements: 2, tiles: 1 });
            let run = Evaluator::new(options).most_bytes(most).threads(threads).journal(journal.clone());
            run.product("ij,jk->ik", &lazy, &lazy).expect("a product");
            assert_eq!((journal.progress().done, journal.progress().of), (216, 216), "{most}");
        }
    }
}
