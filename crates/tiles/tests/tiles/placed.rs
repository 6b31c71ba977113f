//! Tests of gradients of slices, which copy a tensor into zeros: their elements, tiles, norms and tilings, the memory
//! that they need, and the errors of wrong ones.

use crate::graphs::NoElements;
use crate::products::lazy;
use crate::random;
use crate::threads::{all_bits, on_five_threads};
use cembra_runtime::Scalar;
use cembra_tensor::{Reduction, TensorGraph, TensorNodeId};
use cembra_tiles::{
    Evaluator, Float, Journal, MOST_TILES, Options, Shape, Step, StepKind, TilePlace, Tiled, Tiling, Tiling1,
};
use cembra_value::Error;
use cembra_value::tensor::{Slice, Tensor, TensorErrorKind as Kind};
use fastrand::Rng;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A random range of an axis, counted from 0: whole tiles, any elements, or no elements.
fn range(rng: &mut Rng, axis: &Tiling1) -> Slice {
    let boundaries: Vec<usize> = axis.boundaries().map(|at| at.abs_diff(axis.lower()) as usize).collect();
    let ends = match rng.usize(0..5) {
        0..2 => [0, 1].map(|_| boundaries[rng.usize(0..boundaries.len())]),
        2 => [rng.usize(0..=axis.extent()); 2],
        3 => [0, axis.extent()],
        _ => [0, 1].map(|_| rng.usize(0..=axis.extent())),
    };
    let (start, end) = (ends[0].min(ends[1]), ends[0].max(ends[1]));
    Slice { start, step: 1, count: end - start }
}

/// Builds a node on the leaves of a graph.
type OnLeaves<'b> = &'b dyn Fn(&mut TensorGraph, &[TensorNodeId]) -> Result<TensorNodeId, Error>;

/// Builds a graph with a leaf for each input, evaluates it, and returns the value and the steps. Asserts that the plan
/// of the graph has the same steps or the same error.
fn evaluated(
    run: &Evaluator,
    inputs: &[&Tiled],
    build: impl Fn(&mut TensorGraph, &[TensorNodeId]) -> Result<TensorNodeId, Error>,
) -> Result<(Tiled, Vec<Step>), Error> {
    let mut graph = TensorGraph::standard();
    let leaf = |tiled: &&Tiled| graph.leaf("x", tiled.scalar_type(), &tiled.tiling().extents());
    let leaves = inputs.iter().map(leaf).collect::<Result<Vec<_>, Error>>()?;
    let output = build(&mut graph, &leaves)?;
    let journal = Journal::default();
    let run = run.clone().journal(journal.clone());
    let planned = run.plan_graph(&graph, &[output], inputs, &NoElements);
    let made = run.evaluate(&graph, &[output], inputs, &NoElements);
    match (&planned, &made) {
        (Ok(planned), Ok(_)) => assert_eq!(*planned, journal.steps()),
        (Err(planned), Err(made)) => assert_eq!(planned.to_string(), made.to_string()),
        _ => panic!("{planned:?} and {made:?}"),
    }
    Ok((made?.remove(0), journal.steps()))
}

/// The tiles of `tiling` that get an element of a present tile of `part`, if `part` is copied to the place that
/// `slices` give.
fn touched(tiling: &Tiling, part: &Tiled, slices: &[Slice]) -> Vec<u64> {
    let moved = |number: u64| -> Vec<Range<i64>> {
        let ranges = part.tiling().ranges(number).expect("a tile");
        let axes = ranges.into_iter().zip(part.tiling().axes()).zip(tiling.axes().iter().zip(slices));
        axes.map(|((range, own), (axis, slice))| {
            let by = axis.lower() + slice.start as i64 - own.lower();
            range.start + by..range.end + by
        })
        .collect()
    };
    let is_touched = |number: &u64| {
        let ranges = tiling.ranges(*number).expect("a tile");
        part.shape()
            .tiles()
            .iter()
            .any(|own| moved(*own).iter().zip(&ranges).all(|(a, b)| a.start.max(b.start) < a.end.min(b.end)))
    };
    (0..tiling.tiles()).filter(is_touched).collect()
}

fn check_elements<T: Float>(seed: u64) {
    let mut rng = Rng::with_seed(seed);
    let (mut views, mut parts) = (0, 0);
    for case in 0..400 {
        let rank = rng.usize(0..4);
        let within = random::tiling(&mut rng, rank);
        let slices: Vec<Slice> = within.axes().iter().map(|axis| range(&mut rng, axis)).collect();
        let x = random::sparse::<T>(&mut rng, &within, 0.3);
        // The part has the boundaries of the tensor or random ones, and begins at a random index.
        let elements = |(axis, slice): (&Tiling1, &Slice)| {
            let start = axis.lower() + slice.start as i64;
            axis.elements(start..start + slice.count as i64).expect("elements")
        };
        let own = within.axes().iter().zip(&slices).map(elements);
        let is_alike = rng.bool();
        let own = own.map(|axis| {
            let cut = if is_alike { axis } else { random::other_axis(&mut rng, &axis) };
            cut.rebased(rng.i64(-3..4)).expect("near 0")
        });
        let own: Vec<Tiling1> = own.collect();
        let part = random::sparse::<T>(&mut rng, &Tiling::new(own).expect("few tiles"), 0.7);
        let build = |g: &mut TensorGraph, leaves: &[TensorNodeId]| g.place_slice_in(leaves[0], &slices, leaves[1]);
        let options = Options::default().threshold(0.0);
        let (made, steps) = evaluated(&Evaluator::new(options.clone()), &[&part, &x], build).expect("a value");
        assert_eq!(made.tiling(), &within, "{case}");
        assert_eq!(made.shape().tiles(), touched(&within, &part, &slices), "{case}");
        let mut expected =
            Tensor::zeros(T::SCALAR, &within.extents()).expect("memory").to_vec::<T>().expect("elements");
        let of = part.to_tensor().expect("memory").to_vec::<T>().expect("elements");
        for (at, element) in of.into_iter().enumerate() {
            let (mut rest, mut place, mut stride) = (at, 0, 1);
            for (slice, axis) in slices.iter().zip(within.axes()).rev() {
                place += (rest % slice.count + slice.start) * stride;
                rest /= slice.count;
                stride *= axis.extent();
            }
            expected[place] = element;
        }
        let found = made.to_tensor().expect("memory").to_vec::<T>().expect("elements");
        assert_eq!(found, expected, "{case}");
        for (number, tile) in made.tiles().map(|tile| tile.expect("stored")) {
            assert_eq!(made.shape().norm(number), Some(tile.norm()), "{case}");
        }
        // Whole tiles are shared. If all tiles are whole, nothing is copied.
        let is_view = steps[0].work == StepKind::View;
        let count = |of: &Tiled| of.shape().present_elements();
        assert!(steps.len() == 1 && (!is_view || count(&made) == count(&part)), "{case}");
        (views, parts) = (views + u32::from(is_view && count(&part) > 0.0), parts + u32::from(!is_view));
        let lazy = lazy(&part);
        for threads in [1, 2, 5] {
            let options = options.clone().block_bytes(if case % 2 == 0 { 0 } else { 64 });
            let run = Evaluator::new(options).threads(threads);
            for part in [&part, &lazy] {
                let (again, _) = evaluated(&run, &[part, &x], build).expect("a value");
                assert_eq!(all_bits(&again), all_bits(&made), "{case}");
            }
        }
    }
    assert!(views > 40 && parts > 30, "{views} {parts}");
}

#[test]
fn a_slice_among_zeros_has_its_elements_in_the_tiles_of_what_it_is_a_slice_of() {
    on_five_threads(|| {
        check_elements::<f64>(110);
        check_elements::<f32>(111);
    });
}

#[test]
fn gradients_of_slices_are_cut_as_what_they_are_slices_of() {
    let mut rng = Rng::with_seed(112);
    for case in 0..120 {
        let tiling = random::tiling(&mut rng, 2);
        let [a, b] = [0.6, 0.8].map(|share| random::sparse::<f64>(&mut rng, &tiling, share));
        let slices: Vec<Slice> = tiling.axes().iter().map(|axis| range(&mut rng, axis)).collect();
        let options = Options::default().threshold(0.0);
        // The gradient is the slice of `b`, copied into zeros. Here it is multiplied by another tensor of the same
        // tiling; below, it is differentiated again.
        let (made, _) = evaluated(&Evaluator::new(options.clone()), &[&a, &b], |g, leaves| {
            let parts = [g.slice_anew(leaves[0], &slices)?, g.slice_anew(leaves[1], &slices)?];
            let product = g.einsum("ij,ij->", &parts)?;
            let gradient = g.gradients(product, &[leaves[0]])?[0];
            assert_eq!(g.node(gradient).tiling_operands(), [leaves[0]]);
            g.einsum("ij,ij->ij", &[gradient, leaves[1]])
        })
        .expect("a value");
        let of = b.to_tensor().expect("memory").to_vec::<f64>().expect("f64");
        let [rows, columns] = [&slices[0], &slices[1]].map(|slice| slice.start..slice.start + slice.count);
        let width = tiling.axes()[1].extent().max(1);
        let is_within = |at: usize| rows.contains(&(at / width)) && columns.contains(&(at % width));
        let squares = of.iter().enumerate().map(|(at, own)| if is_within(at) { own * own } else { 0.0 });
        assert_eq!(made.tiling(), &tiling, "{case}");
        let found = made.to_tensor().expect("memory").to_vec::<f64>().expect("f64");
        assert_eq!(found, squares.collect::<Vec<f64>>(), "{case}");
        let (second, _) = evaluated(&Evaluator::new(options.clone()), &[&a, &b], |g, leaves| {
            let part = g.slice_anew(leaves[0], &slices)?;
            let square = g.einsum("ij,ij->", &[part, part])?;
            let gradient = g.gradients(square, &[leaves[0]])?[0];
            let product = g.einsum("ij,ij->", &[gradient, leaves[1]])?;
            // Twice the slice of `b`, copied into zeros, because the operand occurs twice.
            let second = g.gradients(product, &[leaves[0]])?[0];
            g.einsum("ij,ij->", &[second, leaves[1]])
        })
        .map(|(made, steps)| (made.get::<f64>(&[]).expect("a number"), steps))
        .unwrap_or_else(|error| panic!("{case}: {error}"));
        let sum: f64 = found.iter().sum();
        assert!((second - 2.0 * sum).abs() <= 1e-12 * sum.max(1.0), "{case}: {second} for twice {sum}");
    }
}

/// Builds a node on two square matrices with the same tiling. Only the node's tiling is needed, not its value.
type Build = fn(&mut TensorGraph, TensorNodeId, TensorNodeId) -> Result<TensorNodeId, Error>;

const WITHIN: [Build; 9] = [
    |_, a, _| Ok(a),
    |g, a, _| g.with_axes(a, &[1, 0]),
    |g, a, b| g.einsum("ij,jk->ki", &[a, b]),
    |g, a, _| g.with_axes(a, &[0, 0]),
    |g, a, _| g.reduce(Reduction::Max, a, &[0]),
    |g, a, b| {
        let row = g.reduce(Reduction::Sum, a, &[0])?;
        let extent = g.extents(a)[0];
        let row = g.reshape(row, &[1, extent, 1])?;
        g.einsum("ijk,jl->ijkl", &[row, b])
    },
    |g, a, _| {
        let extent = g.extents(a)[0];
        g.slice_anew(a, &[Slice { start: extent / 3, step: 1, count: extent / 2 }, Slice::all(extent)])
    },
    |g, a, b| {
        let extent = g.extents(a)[0];
        let part = [Slice { start: extent / 2, step: 1, count: extent / 2 }, Slice::all(extent)];
        let of = g.slice(b, &part)?;
        g.place_slice_in(of, &part, a)
    },
    |g, a, b| {
        let sums = [g.reduce(Reduction::Sum, a, &[1])?, g.reduce(Reduction::Sum, b, &[0])?];
        let sum = g.apply("math.add", &sums)?;
        let (square, barrier) = (g.broadcast(sum, &[3, g.extents(a)[0]])?, g.barrier(sum)?);
        g.apply("math.subtract", &[square, barrier])
    },
];

/// The elementwise expressions among the nodes cannot be evaluated in these tests, so only the tilings of their axes
/// are compared.
#[test]
fn what_nobody_needs_says_how_a_slice_of_it_is_cut() {
    let mut rng = Rng::with_seed(113);
    for case in 0..180 {
        let axis = (0..).map(|_| random::axis(&mut rng)).find(|axis| axis.extent() > 0).expect("elements");
        let tiling = Tiling::new([&axis, &axis]).expect("few tiles");
        let [a, b] = [0.5, 0.8].map(|share| random::sparse::<f64>(&mut rng, &tiling, share));
        let within = WITHIN[case % WITHIN.len()];
        let options = Options::default().threshold(0.0);
        let slices_of = |g: &TensorGraph, of: TensorNodeId| -> Vec<Slice> {
            let slice = |extent: &usize| Slice { start: extent / 4, step: 1, count: extent - extent / 4 };
            g.extents(of).iter().map(slice).collect()
        };
        // The part that is copied into zeros has one tile, so the result's boundaries come only from the node that is
        // sliced.
        let mut extents = Vec::new();
        let mut graph = TensorGraph::standard();
        let [x, y] = [0, 1].map(|_| graph.leaf("x", Scalar::Float64, &tiling.extents()).expect("a leaf"));
        let node = within(&mut graph, x, y).expect("a graph");
        extents.extend(slices_of(&graph, node).iter().map(|slice| slice.count as u64));
        let one = extents.iter().map(|extent| Tiling1::blocked(*extent, (*extent).max(1)).expect("few tiles"));
        let part = random::dense::<f64>(&Tiling::new(one.collect::<Vec<_>>()).expect("few tiles"), 1);
        let made = evaluated(&Evaluator::new(options.clone()), &[&a, &b, &part], |g, leaves| {
            let node = within(g, leaves[0], leaves[1])?;
            let slices = slices_of(g, node);
            g.place_slice_in(leaves[2], &slices, node)
        });
        let (made, steps) = made.unwrap_or_else(|error| panic!("{case}: {error}"));
        assert_eq!(steps.len(), 1, "{case}");
        if case % WITHIN.len() == 8 {
            assert_eq!(made.tiling().axes(), [Tiling1::blocked(3, 3).expect("one tile"), axis], "{case}");
            continue;
        }
        let (whole, _) =
            evaluated(&Evaluator::new(options.clone()), &[&a, &b], |g, leaves| within(g, leaves[0], leaves[1]))
                .expect("a value");
        // For an axis of one element, the empty tiles around the element do not matter.
        let axes = made.tiling().axes().iter().zip(whole.tiling().axes());
        assert!(axes.clone().all(|(a, b)| a == b || (a.extent() == 1 && b.extent() == 1)), "{case}");
        assert_eq!(made.tiling().rank(), whole.tiling().rank(), "{case}");
    }
}

/// A vector of ones, in tiles with these boundaries.
fn ones(boundaries: &[i64]) -> Tiled {
    let axis = Tiling1::new(boundaries.iter().copied()).expect("ascending");
    let shape = Shape::dense(&Tiling::new([axis]).expect("few tiles"), MOST_TILES).expect("few tiles");
    Tiled::from_fn(&shape, |_| 1.0).expect("tiles")
}

fn part(start: usize, count: usize) -> [Slice; 1] {
    [Slice { start, step: 1, count }]
}

#[test]
fn whole_tiles_take_no_bytes_and_others_are_counted() {
    let x = ones(&[-4, 0, 4, 8, 12]);
    let place = |of: &Tiled, slices: [Slice; 1], most: usize| {
        let run = Evaluator::new(Options::default().threshold(0.0)).most_bytes(most);
        evaluated(&run, &[of, &x], |g, leaves| g.place_slice_in(leaves[0], &slices, leaves[1]))
    };
    let (made, steps) = place(&ones(&[0, 4, 8]), part(4, 8), 0).expect("a view");
    assert_eq!((made.shape().tiles(), steps[0].work), (&[1, 2][..], StepKind::View));
    // The tensor reaches one element into the next tile, so that one tile is shared and another one is computed.
    let reaches = ones(&[0, 4, 5]);
    assert!(place(&reaches, part(4, 5), 63).is_err());
    let (made, steps) = place(&reaches, part(4, 5), 64).expect("a part");
    assert_eq!((made.shape().tiles(), steps[0].work, steps[0].bytes), (&[1, 2][..], StepKind::Part, 64));
    assert_eq!(made.shape().norms(), [0.5, 0.25]);
    // A lazy tile is computed once. If its elements go to two tiles, it is held until both are made.
    let count = Arc::new(AtomicUsize::new(0));
    let counted = |boundaries: &[i64]| {
        let (whole, counter) = (ones(boundaries), count.clone());
        let shape = whole.shape().clone();
        let source = move |place: &TilePlace| {
            counter.fetch_add(1, Ordering::Relaxed);
            Ok(whole.tile(place.number)?.expect("present").tensor().clone())
        };
        Tiled::lazy(&shape, Scalar::Float64, source).expect("a lazy tensor")
    };
    for (boundaries, start, least, tiles) in [
        (&[0, 4, 8][..], 4, 64 + 32, 2),
        (&[0, 3, 5], 5, 64 + 24, 2),
        (&[0, 5], 5, 64 + 40, 1),
        (&[0, 2, 3], 1, 32 + 16, 2),
        (&[0], 3, 0, 0),
    ] {
        count.store(0, Ordering::Relaxed);
        let of = counted(boundaries);
        let (made, _) = place(&of, part(start, of.tiling().axes()[0].extent()), least).expect("a value");
        assert!(!made.is_lazy());
        assert_eq!(count.load(Ordering::Relaxed), tiles, "{boundaries:?}");
        assert!(least == 0 || place(&of, part(start, of.tiling().axes()[0].extent()), least - 1).is_err());
    }
}

#[test]
fn a_tile_that_is_partly_zeros_is_screened_by_its_norm() {
    let x = ones(&[0, 100, 200, 300]);
    // A single 1 among a hundred elements has a norm of 0.01.
    let place = |threshold: f64| {
        let options = Options::default().threshold(threshold);
        let slices = part(99, 102);
        let (made, _) = evaluated(&Evaluator::new(options.clone()), &[&ones(&[0, 1, 101, 102]), &x], |g, leaves| {
            g.place_slice_in(leaves[0], &slices, leaves[1])
        })
        .expect("a value");
        made.shape().iter().collect::<Vec<_>>()
    };
    assert_eq!(place(0.01), [(0, 0.01), (1, 0.1), (2, 0.01)]);
    assert_eq!(place(0.011), [(1, 0.1)]);
}

#[test]
fn what_is_not_known_or_does_not_fit_is_refused() {
    let (x, other, of) = (ones(&[0, 2, 6]), ones(&[0, 3, 6]), ones(&[0, 3]));
    let refused = |inputs: &[&Tiled], build: OnLeaves<'_>| {
        let error = evaluated(&Evaluator::new(Options::default()), inputs, build).map(|_| ()).expect_err("an error");
        (error.tensor_kind(), error.to_string())
    };
    let (kind, message) = refused(&[&of], &|g, leaves| g.place_slice(leaves[0], &part(1, 3), &[6]));
    assert_eq!(kind, Some(Kind::Tiling));
    assert!(message.contains("a slice in zeros without tiles"), "{message}");
    let (kind, message) = refused(&[&of, &x], &|g, leaves| {
        g.place_slice_in(leaves[0], &[Slice { start: 5, step: -2, count: 3 }], leaves[1])
    });
    assert_eq!(kind, Some(Kind::Tiling));
    assert!(message.contains("steps of -2"), "{message}");
    let (kind, message) = refused(&[&of, &x, &other], &|g, leaves| {
        let sum = g.apply("math.add", &leaves[1..])?;
        g.place_slice_in(leaves[0], &part(1, 3), sum)
    });
    assert_eq!(kind, Some(Kind::SizeMismatch));
    assert!(message.contains("[0, 2, 6]") && message.contains("[0, 3, 6]"), "{message}");
    let (kind, message) = refused(&[&of, &x], &|g, leaves| {
        let both = g.concat(&[leaves[1], leaves[1]], 0)?;
        g.place_slice_in(leaves[0], &part(1, 3), both)
    });
    assert_eq!(kind, Some(Kind::Tiling));
    assert!(message.contains("tensor.concat"), "{message}");
    let options = Options::default().threshold(0.0).most_tiles(1);
    let many = evaluated(&Evaluator::new(options.clone()), &[&ones(&[0, 5]), &x], |g, leaves| {
        g.place_slice_in(leaves[0], &part(0, 5), leaves[1])
    });
    assert_eq!(many.expect_err("an error").tensor_kind(), Some(Kind::Limit));
}

/// The graph copies the same slice into zeros twice, for two tensors with different boundaries.
#[test]
fn slices_of_two_tensors_are_cut_as_each_of_them() {
    let inputs = [ones(&[0, 2]), ones(&[0, 2, 6]), ones(&[0, 3, 6])];
    let mut graph = TensorGraph::standard();
    let leaf = |of: &Tiled| graph.leaf("x", Scalar::Float64, &of.tiling().extents()).expect("a leaf");
    let leaves: Vec<TensorNodeId> = inputs.iter().map(leaf).collect();
    let place = |within: usize| graph.place_slice_in(leaves[0], &part(2, 2), leaves[within]).expect("a node");
    let outputs = [1, 2].map(place);
    let run = Evaluator::new(Options::default());
    let made = run.evaluate(&graph, &outputs, &inputs.each_ref(), &NoElements).expect("values");
    for (made, within) in made.iter().zip(&inputs[1..]) {
        assert_eq!(made.tiling(), within.tiling());
        let elements = made.to_tensor().expect("memory").to_vec::<f64>().expect("elements");
        assert_eq!(elements, [0.0, 0.0, 1.0, 1.0, 0.0, 0.0]);
    }
    assert_eq!([0, 1].map(|at| made[at].shape().tiles().to_vec()), [vec![1], vec![0, 1]]);
}
