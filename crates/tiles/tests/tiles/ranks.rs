//! Tests of tensors that are distributed over ranks: results have the bits of a single rank, for any number of ranks,
//! any owners of tiles and any order of messages. Also tests of the bytes that move, and of the errors of all ranks if
//! one of them fails.

use crate::graphs::NoElements;
use crate::products::lazy;
use crate::random::{self, ALL};
use crate::symbolic::{PRODUCTS, parse, tilings};
use crate::threads::{all_bits, on_five_threads};
use cembra_runtime::{Cancellation, Scalar};
use cembra_tensor::{Reduction, TensorGraph};
use cembra_tiles::link::{DelayedLink, Link, Ranks, run_ranks};
use cembra_tiles::{
    Base, Evaluator, MOST_TILES, Options, Screening, Segment, Shape, TileMap, TilePlace, Tiled, Tiling, Tiling1,
};
use cembra_value::Error;
use cembra_value::tensor::{Tensor, TensorErrorKind as Kind};
use fastrand::Rng;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

/// A tensor for comparison: the numbers of its present tiles, the bits of their norms, and the bits of all elements.
pub(crate) type Bits = (Vec<u64>, Vec<u64>, Vec<u64>);

/// The ranks of a link. Their waits fail after a minute, not only after five.
fn ranks_of(link: Arc<dyn Link>) -> Result<Arc<Ranks>, Error> {
    Ok(Arc::new(Ranks::new(link)?.stall(Duration::from_secs(60))))
}

/// Runs code on ranks that are threads, with messages that are delayed depending on `seed`, and returns the result of
/// each rank.
pub(crate) fn on_ranks<R: Send>(
    size: usize,
    seed: u64,
    options: &Options,
    run: impl Fn(&Evaluator, &Arc<Ranks>) -> Result<R, Error> + Sync,
) -> Vec<Result<R, Error>> {
    run_ranks(size, |link| {
        let ranks = ranks_of(Arc::new(DelayedLink::new(link, seed)))?;
        let evaluator = Evaluator::new(options.clone()).ranks(ranks.clone(), []);
        run(&evaluator, &ranks)
    })
}

/// The bits of a tensor that may be distributed. All ranks must call this.
pub(crate) fn gathered_bits(run: &Evaluator, of: &Tiled) -> Result<Bits, Error> {
    Ok(all_bits(&run.gathered(of)?))
}

/// Asserts that all ranks have the same result, and returns it.
fn same<R: PartialEq + std::fmt::Debug>(results: Vec<Result<R, Error>>, what: &str) -> R {
    let mut results = results.into_iter().map(|result| result.unwrap_or_else(|error| panic!("{what}: {error}")));
    let first = results.next().expect("a rank");
    results.for_each(|other| assert_eq!(other, first, "{what}"));
    first
}

/// A random map from tiles to ranks; `None` for the default.
fn map(rng: &mut Rng, size: usize) -> Option<TileMap> {
    match rng.u32(..5) {
        0 => Some(TileMap::hashed()),
        1 => Some(TileMap::grid(1, rng.usize(1..=size))),
        2 => Some(TileMap::by(move |place| place.index.iter().sum::<u64>() as usize % size)),
        3 => Some(TileMap::square(size)),
        _ => None,
    }
}

#[test]
fn products_have_the_same_bits_on_any_number_of_ranks() {
    on_five_threads(|| {
        let mut rng = Rng::with_seed(370);
        for case in 0..120_u64 {
            let text = PRODUCTS[case as usize % PRODUCTS.len()];
            let [left, right] =
                tilings(&mut rng, &parse(text)).map(|tiling| random::sparse::<f64>(&mut rng, &tiling, 0.8));
            let segment = Segment { elements: rng.usize(1..12), tiles: rng.usize(1..4) };
            let options = Options::default().threshold(0.0).segment(segment).block_bytes(rng.usize(0..200));
            let one = all_bits(&Evaluator::new(options.clone()).product(text, &left, &right).unwrap());
            for size in [1, 2, 3, 4, 6] {
                let threads = [1, 2, 5][rng.usize(..3)];
                let maps = [map(&mut rng, size), map(&mut rng, size), map(&mut rng, size)];
                let kinds = [rng.u32(..3), rng.u32(..3)];
                let made = on_ranks(size, case, &options, |run, _| {
                    let given = |of: &Tiled, at: usize| match (kinds[at], &maps[at]) {
                        (0, Some(map)) => run.distributed(of, map),
                        (1, _) => Ok(lazy(of)),
                        _ => Ok(of.clone()),
                    };
                    let (left, right) = (given(&left, 0)?, given(&right, 1)?);
                    let run = maps[2].iter().fold(run.clone().threads(threads), |run, map| run.tile_map(map.clone()));
                    gathered_bits(&run, &run.product(text, &left, &right)?)
                });
                assert_eq!(same(made, text), one, "{case} {text} on {size} ranks");
            }
        }
    });
}

#[test]
fn products_in_panels_have_the_same_bits_on_ranks() {
    let mut rng = Rng::with_seed(371);
    for case in 0..40_u64 {
        let text = PRODUCTS[case as usize % PRODUCTS.len()];
        let [left, right] = tilings(&mut rng, &parse(text)).map(|tiling| random::sparse::<f64>(&mut rng, &tiling, 0.9));
        let options = Options::default().threshold(0.0).segment(Segment { elements: 6, tiles: 2 });
        let one = all_bits(&Evaluator::new(options.clone()).product(text, &left, &right).unwrap());
        let size = [2, 3][rng.usize(..2)];
        let mut bytes = 0;
        // With the lowest memory limit that suffices, tiles arrive in many panels.
        loop {
            let made = on_ranks(size, case, &options, |run, ranks| {
                let run = run.clone().most_bytes(bytes);
                // The memory of the operands does not count.
                let whole = Evaluator::new(Options::default()).ranks(ranks.clone(), []);
                let [left, right] = [&left, &right].map(|of| whole.distributed(of, &TileMap::hashed()));
                let made = run.product(text, &left?, &right?)?;
                gathered_bits(&whole, &made)
            });
            if made.iter().all(Result::is_ok) {
                assert_eq!(same(made, text), one, "{case} {text}");
                break;
            }
            let errors: Vec<String> = made.into_iter().map(|made| made.expect_err("an error").to_string()).collect();
            assert!(errors.iter().all(|error| *error == errors[0]), "{errors:?}");
            bytes += 8;
        }
    }
}

/// Runs each operation of an evaluator whose result is a tensor, on two tensors with the same tiling, and returns the
/// bits of the results.
fn operations(run: &Evaluator, a: &Tiled, b: &Tiled) -> Result<Vec<Bits>, Error> {
    let screening = Screening::threshold(0.3);
    let axes = a.tiling().axes();
    let coarse = Tiling::new(axes.iter().map(|axis| Tiling1::new([axis.lower(), axis.upper()]).expect("one tile")))?;
    let inner: Vec<_> = axes.iter().map(|axis| axis.lower()..axis.upper() - i64::from(axis.extent() > 1)).collect();
    let first: Vec<i64> = axes.iter().map(Tiling1::lower).collect();
    let order: Vec<usize> = (0..axes.len()).rev().collect();
    let tiles: Vec<_> = axes.iter().map(|axis| 0..axis.tiles().min(2)).collect();
    let part = run.elements(a, &inner, Base::Kept, &ALL)?;
    let made = [
        run.add(a, b)?,
        run.subtract(a, b)?,
        run.hadamard(a, b)?,
        run.scale(a, 0.1)?,
        run.map::<f64>(a, f64::exp)?,
        run.random::<f64>(a.shape(), 5)?,
        run.from_fn(a.shape(), |at| at[0] as f64 / 7.0)?,
        run.materialized(a)?,
        run.truncate(a, &screening)?,
        run.retile(a, &coarse, &ALL)?,
        run.retile(&run.retile(b, &coarse, &ALL)?, a.tiling(), &screening)?,
        run.with_elements(b, &first, &part, &ALL)?,
        part,
        a.permuted(&order)?,
        a.block(&tiles, Base::Zero)?,
        b.with_block(&vec![0; axes.len()], &a.block(&tiles, Base::Zero)?)?,
        a.masked(b.shape())?,
    ];
    made.iter().map(|made| gathered_bits(run, made)).collect()
}

/// Runs each operation of an evaluator whose result is a number, and returns the bits of the numbers.
fn numbers(run: &Evaluator, a: &Tiled, b: &Tiled) -> Result<Vec<u64>, Error> {
    let made = [
        run.sum(a)?,
        run.norm(a)?,
        run.dot(a, b)?,
        run.dot(b, a)?,
        run.product_of_elements(a)?,
        run.min(a)?,
        run.max(b)?,
        run.abs_min(a)?,
        run.abs_max(b)?,
    ];
    Ok(made.map(f64::to_bits).to_vec())
}

#[test]
fn operators_have_the_same_bits_on_any_number_of_ranks() {
    on_five_threads(|| {
        let mut rng = Rng::with_seed(372);
        for case in 0..30 {
            let tiling = random::tiling(&mut rng, 1 + case as usize % 3);
            let [a, b] = [0.8, 0.6].map(|part| random::sparse::<f64>(&mut rng, &tiling, part));
            let options = Options::default().threshold(0.0);
            let run = Evaluator::new(options.clone());
            let one = (operations(&run, &a, &b).unwrap(), numbers(&run, &a, &b).unwrap());
            for size in [2, 3, 4, 6] {
                let threads = [1, 2, 5][rng.usize(..3)];
                let options = options.clone().block_bytes(rng.usize(0..64));
                let maps = [map(&mut rng, size), map(&mut rng, size), map(&mut rng, size)];
                let is_lazy = rng.bool();
                let made = on_ranks(size, case, &options, |run, _| {
                    let given = |of: &Tiled, at: usize| match &maps[at] {
                        Some(map) => run.distributed(of, map),
                        None if is_lazy => Ok(lazy(of)),
                        None => Ok(of.clone()),
                    };
                    let (a, b) = (given(&a, 0)?, given(&b, 1)?);
                    let run = maps[2].iter().fold(run.clone().threads(threads), |run, map| run.tile_map(map.clone()));
                    Ok((operations(&run, &a, &b)?, numbers(&run, &a, &b)?))
                });
                let (tensors, numbers) = same(made, "operators");
                for (at, (found, expected)) in tensors.iter().zip(&one.0).enumerate() {
                    assert_eq!(found, expected, "operation {at} of case {case} on {size} ranks");
                }
                assert_eq!(numbers, one.1, "case {case} on {size} ranks");
            }
        }
    });
}

/// A graph without elementwise expressions, and its outputs: products of three tensors, diagonals, sums, transposes and
/// slices.
pub(crate) fn graph_of_all() -> (TensorGraph, Vec<cembra_tensor::TensorNodeId>) {
    let mut graph = TensorGraph::standard();
    let a = graph.leaf("a", Scalar::Float64, &[6, 6]).expect("a leaf");
    let b = graph.leaf("b", Scalar::Float64, &[6, 6]).expect("a leaf");
    let product = graph.einsum("ij,jk,kl->il", &[a, b, a]).expect("a product");
    let diagonal = graph.einsum("ii->i", &[product]).expect("a diagonal");
    let rows = graph.reduce(Reduction::Sum, product, &[1]).expect("a sum");
    let largest = graph.reduce(Reduction::Max, b, &[0, 1]).expect("a number");
    let number = graph.einsum("ij,ij->", &[a, b]).expect("a number");
    let turned = graph.transpose(product, &[1, 0]).expect("another order");
    let sum = graph.reduce(Reduction::Sum, turned, &[0, 1]).expect("a sum");
    (graph, vec![product, diagonal, rows, largest, number, turned, sum])
}

#[test]
fn graphs_have_the_same_bits_on_any_number_of_ranks() {
    let (graph, outputs) = graph_of_all();
    let mut rng = Rng::with_seed(373);
    for case in 0..20_u64 {
        let axis = Tiling1::new([0, 1 + rng.i64(0..3), 4, 6]).expect("ascending");
        let tiling = Tiling::new([&axis, &axis]).expect("few tiles");
        let [a, b] = [0.7, 0.9].map(|part| random::sparse::<f64>(&mut rng, &tiling, part));
        let evaluate = |run: &Evaluator, a: &Tiled, b: &Tiled| run.evaluate(&graph, &outputs, &[a, b], &NoElements);
        let options = Options::default().threshold(1e-3);
        let one = evaluate(&Evaluator::new(options.clone()), &a, &b).unwrap();
        let one: Vec<Bits> = one.iter().map(all_bits).collect();
        for size in [2, 3, 4, 6] {
            let made = on_ranks(size, case, &options, |run, _| {
                let a = if case % 2 == 0 { run.distributed(&a, &TileMap::square(size))? } else { a.clone() };
                let made = evaluate(run, &a, &lazy(&b))?;
                // Numbers are on all ranks.
                let numbers = made.iter().filter(|made| made.tiling().rank() == 0);
                numbers.for_each(|number| assert!(!number.is_distributed()));
                made.iter().map(|made| gathered_bits(run, made)).collect::<Result<Vec<Bits>, Error>>()
            });
            assert_eq!(same(made, "a graph"), one, "case {case} on {size} ranks");
        }
    }
}

/// A square tensor of `tiles` by `tiles` tiles of 2 by 2 elements.
fn square(tiles: u64) -> Tiled {
    let axis = Tiling1::blocked(2 * tiles, 2).expect("it fits");
    let shape = Shape::dense(&Tiling::new([&axis, &axis]).expect("few tiles"), MOST_TILES).expect("few tiles");
    Tiled::random::<f64>(&shape, 9).expect("tiles")
}

#[test]
fn tiles_go_where_they_are_needed_and_nowhere_else() {
    let a = square(8);
    let sent = |size: usize, of: &(dyn Fn(&Evaluator, &Tiled) -> Result<Tiled, Error> + Sync)| -> Vec<u64> {
        let made = on_ranks(size, 1, &Options::default().threshold(0.0), |run, ranks| {
            let a = run.distributed(&a, &TileMap::square(size))?;
            assert_eq!(ranks.sent().tiles, 0);
            assert_eq!(a.local_tiles().count(), a.shape().len() / size);
            of(run, &a)?;
            assert_eq!(ranks.sent().bytes, ranks.sent().tiles * 32);
            Ok(ranks.sent().tiles)
        });
        made.into_iter().map(Result::unwrap).collect()
    };
    // No tile moves, because each result tile is computed where its operand tiles are.
    assert_eq!(sent(4, &|run, a| run.add(a, &run.scale(a, 2.0)?)), [0; 4]);
    assert_eq!(sent(4, &|_, a| a.permuted(&[1, 0])), [0; 4]);
    // With a grid of 2 by 2 ranks, each tile of an operand goes to the other rank of its row or column.
    assert_eq!(sent(4, &|run, a| run.product("ij,jk->ik", a, a)), [32; 4]);
    // With a grid of 1 by 2 ranks, only tiles of the left operand move.
    assert_eq!(sent(2, &|run, a| run.product("ij,jk->ik", a, a)), [32; 2]);
    // A product with a diagonal reads each tile of the other operand once, on the rank that computes the result tile.
    let diagonal = |run: &Evaluator, a: &Tiled| {
        let diagonal = Shape::of_norms(a.tiling(), (0..8).map(|at| (at * 9, 1.0)), &ALL)?;
        run.product("ij,jk->ik", &a.masked(&diagonal)?, a)
    };
    // The 8 tiles of the diagonal are owned by two ranks, and each goes to the other rank of its row.
    assert_eq!(sent(4, &diagonal).iter().sum::<u64>(), 8);
    // The result has one tile, which is computed from 8 pairs of tiles.
    let one = |run: &Evaluator, a: &Tiled| {
        let wanted = Shape::of_norms(a.tiling(), [(0, 1.0)], &ALL)?;
        run.product_within("ij,jk->ik", a, a, &wanted)
    };
    assert!(sent(4, &one).iter().sum::<u64>() <= 12);
}

#[test]
fn tiles_are_found_where_they_are() {
    let a = square(3);
    let made = on_ranks(3, 5, &Options::default(), |run, ranks| {
        let rank = ranks.link().rank();
        let shared = run.distributed(&a, &TileMap::by(|place| place.index[1] as usize))?;
        assert!(shared.is_distributed() && !a.is_distributed());
        assert_eq!((shared.owner(4), shared.owner(5), a.owner(5), shared.owner(100)), (Some(1), Some(2), None, None));
        let own: Vec<u64> = shared.local_tiles().map(|(number, _)| number).collect();
        assert_eq!(own, [rank as u64, rank as u64 + 3, rank as u64 + 6]);
        // Reading a tile of another rank is an error, not a zero.
        for number in 0..9 {
            match shared.tile(number) {
                Ok(tile) => assert!(tile.is_some() && number % 3 == rank as u64),
                Err(error) => {
                    assert!(error.to_string().starts_with(&format!("tile {number} is on rank {};", number % 3)));
                }
            }
            let everywhere = run.tile(&shared, number)?.expect("a tile");
            assert_eq!(everywhere.elements::<f64>(), a.tile(number)?.expect("a tile").elements::<f64>());
        }
        assert!(run.tile(&shared, 9)?.is_none());
        for at in [[0, 0], [3, 4], [5, 5]] {
            assert_eq!(run.get::<f64>(&shared, &at)?, a.get::<f64>(&at)?);
        }
        assert!(run.get::<f64>(&shared, &[6, 0]).is_err() && run.get::<f64>(&shared, &[0]).is_err());
        let absent = a.masked(&Shape::empty(a.tiling()))?;
        assert_eq!(run.get::<f64>(&run.distributed(&absent, &TileMap::hashed())?, &[1, 1])?, 0.0);
        assert!(shared.to_tensor().is_err() && shared.get::<f64>(&[0, 2 * ((rank as i64 + 1) % 3)]).is_err());
        assert_eq!(shared.get::<f64>(&[0, 2 * rank as i64])?, a.get::<f64>(&[0, 2 * rank as i64])?);
        Ok(())
    });
    made.into_iter().for_each(|made| made.unwrap());
}

/// A lazy square tensor. Tiles for which `fails` returns true are an error or a panic.
fn failing(tiles: u64, fails: impl Fn(u64) -> bool + Send + Sync + 'static) -> Tiled {
    let shape = square(tiles).shape().clone();
    let source = move |place: &TilePlace| match place.number {
        number if !fails(number) => Tensor::new(&[2, 2], vec![number as f64; 4]),
        number if number.is_multiple_of(2) => panic!("tile {number}"),
        number => Err(Error::tensors(Kind::Evaluation, format!("tile {number}"))),
    };
    Tiled::lazy(&shape, Scalar::Float64, source).expect("a tensor")
}

#[test]
fn all_ranks_have_the_error_of_a_tile_that_fails() {
    for size in [2, 3, 4] {
        for threads in [1, 2] {
            let options = Options::default().block_bytes(64);
            let errors = |of: &(dyn Fn(&Evaluator, &Tiled) -> Result<(), Error> + Sync)| {
                let made = on_ranks(size, 3, &options, |run, _| {
                    let run = &run.clone().threads(threads);
                    let bad = failing(6, |number| number > 20);
                    let before = run.materialized(&square(6))?;
                    let error = of(run, &bad).expect_err("an error").to_string();
                    // The run can continue, and no message of the failed step is left over.
                    let after = run.product("ij,jk->ik", &before, &before)?;
                    assert_eq!(gathered_bits(run, &after)?.0.len(), 36);
                    Ok(error)
                });
                same(made, "an error")
            };
            let errors = [
                errors(&|run, bad| run.materialized(bad).map(drop)),
                errors(&|run, bad| run.add(bad, &square(6)).map(drop)),
                errors(&|run, bad| run.sum(bad).map(drop)),
                errors(&|run, bad| {
                    let ready = run.distributed(&square(6), &TileMap::hashed())?;
                    run.product("ij,jk->ik", bad, &ready).map(drop)
                }),
            ];
            for error in errors {
                let number = error.trim_start_matches("the function of tiles panicked: ").trim_start_matches("tile ");
                assert!(number.parse::<u64>().is_ok_and(|number| (21..36).contains(&number)), "{error}");
            }
        }
    }
    // Only one tile fails, on the rank that computes it.
    for number in [1, 7, 17, 35] {
        let bad = failing(6, move |tile| tile == number);
        let made = on_ranks(4, number, &Options::default(), |run, _| {
            let made = run.add(&bad, &square(6)).map(drop);
            Ok(made.expect_err("an error").to_string())
        });
        assert_eq!(same(made, "an error"), format!("tile {number}"));
    }
}

#[test]
fn a_failure_ends_the_others_before_they_are_through() {
    let failed = Arc::new(AtomicBool::new(false));
    let made = Arc::new(AtomicUsize::new(0));
    let (flag, count) = (failed.clone(), made.clone());
    let shape = square(100).shape().clone();
    // One rank fails at its first tile. Another rank waits for this, and then has thousands of tiles left to compute.
    let source = move |place: &TilePlace| {
        if place.number % 2 == 1 {
            flag.store(true, Ordering::Release);
            return Err(Error::tensors(Kind::Evaluation, "the first tile of the one that fails"));
        }
        while !flag.load(Ordering::Acquire) {
            std::thread::yield_now();
        }
        count.fetch_add(1, Ordering::Relaxed);
        (0..20).for_each(|_| std::thread::yield_now());
        Tensor::new(&[2, 2], vec![0.5; 4])
    };
    let lazy = Tiled::lazy(&shape, Scalar::Float64, source).expect("a tensor");
    // Each of the three ranks is the slow one in turn, and one rank has nothing to do.
    for (slow, failing) in [(0, 1), (1, 0), (1, 2), (2, 1), (2, 0)] {
        made.store(0, Ordering::Relaxed);
        failed.store(false, Ordering::Release);
        let errors = on_ranks(3, 4, &Options::default().block_bytes(64), |run, _| {
            let owner = move |place: &TilePlace| if place.number % 2 == 1 { failing } else { slow };
            Ok(run.clone().tile_map(TileMap::by(owner)).materialized(&lazy).expect_err("an error").to_string())
        });
        assert_eq!(same(errors, "an error"), "the first tile of the one that fails");
        let made = made.load(Ordering::Relaxed);
        assert!(made < 2500, "{made} of 5000 tiles were made for nothing by rank {slow}");
    }
}

#[test]
fn a_cancelled_rank_ends_the_step_on_all() {
    let (graph, outputs) = graph_of_all();
    for size in [2, 4] {
        for cancelled in 0..size {
            let made = on_ranks(size, 7, &Options::default(), |run, ranks| {
                let token = Cancellation::new();
                let own = run.clone().cancellation(token.clone());
                let axis = Tiling1::blocked(6, 2)?;
                let shape = Shape::dense(&Tiling::new([&axis, &axis])?, MOST_TILES)?;
                let a = run.distributed(&Tiled::random::<f64>(&shape, 1)?, &TileMap::hashed())?;
                if ranks.link().rank() == cancelled {
                    token.cancel();
                }
                let error = own.evaluate(&graph, &outputs, &[&a, &a], &NoElements).expect_err("an error");
                // The next evaluation, without the token, succeeds.
                let made = run.evaluate(&graph, &outputs, &[&a, &a], &NoElements)?;
                Ok((error.to_string(), gathered_bits(run, &made[0])?))
            });
            let (error, _) = same(made, "cancelled");
            assert!(error.contains("cancelled"), "{error}");
        }
    }
}

#[cfg(feature = "checkpoints")]
#[test]
fn any_number_of_ranks_reads_what_any_number_wrote() {
    let mut rng = Rng::with_seed(375);
    let tiling = random::tiling(&mut rng, 2);
    let (a, b) = (random::sparse::<f64>(&mut rng, &tiling, 0.8), square(3));
    let (tensors, expected) = ([("a", &a), ("b", &b)], [all_bits(&a), all_bits(&b)]);
    for writers in [1, 2, 5] {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path();
        let written = on_ranks(writers, 1, &Options::default(), |run, _| {
            // One tensor is distributed, the other is on each rank or lazy.
            let shared = run.distributed(tensors[0].1, &TileMap::hashed())?;
            run.checkpoint(path, [("a", &shared), ("b", &lazy(tensors[1].1))])
        });
        written.into_iter().for_each(|written| written.unwrap());
        let files = std::fs::read_dir(path).expect("a directory").count();
        assert_eq!(files, 1 + 2 * writers);
        for readers in [1, 3] {
            let read = on_ranks(readers, 2, &Options::default(), |run, ranks| {
                let checkpoint = cembra_tiles::Checkpoint::open(path)?;
                ranks.settle(Ok(()))?;
                let read = ["a", "b"].map(|name| {
                    let shared = run.distributed(&checkpoint.lazy(name)?, &TileMap::square(readers))?;
                    gathered_bits(run, &shared)
                });
                read.into_iter().collect::<Result<Vec<Bits>, Error>>()
            });
            assert_eq!(same(read, "a checkpoint"), expected, "{writers} wrote, and {readers} read");
        }
    }
}

#[test]
fn ranks_that_were_given_other_things_disagree() {
    let (graph, outputs) = graph_of_all();
    let (one, other) = (Tiling1::blocked(6, 2).expect("an axis"), Tiling1::blocked(6, 3).expect("an axis"));
    let tensor = |axis: &Tiling1, seed: u64| {
        let shape = Shape::dense(&Tiling::new([axis, axis]).expect("few tiles"), MOST_TILES).expect("few tiles");
        Tiled::random::<f64>(&shape, seed).expect("tiles")
    };
    let said = |given: &(dyn Fn(usize) -> (Options, Tiled, &'static str) + Sync)| {
        let made = run_ranks(3, |link| {
            let (rank, ranks) = (link.rank(), ranks_of(link)?);
            let (options, a, version) = given(rank);
            let facts = [("the version of cembra".to_owned(), version.to_owned())];
            let run = Evaluator::new(options).ranks(ranks, facts);
            let error = run.evaluate(&graph, &outputs, &[&a, &a], &NoElements).expect_err("an error");
            assert_eq!(error.tensor_kind(), Some(Kind::RanksDisagree));
            Ok(error.message())
        });
        same(made, "disagreement")
    };
    let usual = || (Options::default(), tensor(&one, 1), "1");
    let on_last = |rank: usize, last: (Options, Tiled, &'static str)| if rank == 2 { last } else { usual() };
    let tiling = said(&|rank| on_last(rank, (Options::default(), tensor(&other, 1), "1")));
    assert!(tiling.starts_with("ranks disagree on the tiling of `a`, axis 0: rank 0 has "), "{tiling}");
    let tiles = said(&|rank| on_last(rank, (Options::default(), tensor(&one, 2), "1")));
    assert!(tiles.starts_with("ranks disagree on the tiles of `a`: rank 0 has 9 tiles"), "{tiles}");
    let options = said(&|rank| on_last(rank, (Options::default().threshold(0.5), tensor(&one, 1), "1")));
    assert!(options.starts_with("ranks disagree on the options: rank 0 has threshold by type"), "{options}");
    let version = said(&|rank| on_last(rank, (Options::default(), tensor(&one, 1), "2")));
    assert!(version.starts_with("ranks disagree on the version of cembra: rank 0 has 1, rank 2 has 2;"), "{version}");
    // If the plan of a step differs on one rank, all ranks get an error.
    let made = run_ranks(2, |link| {
        let rank = link.rank();
        let run = Evaluator::new(Options::default()).ranks(ranks_of(link)?, []);
        let axis = if rank == 0 { &one } else { &other };
        let a = tensor(axis, 1);
        Ok(run.scale(&a, 2.0).expect_err("an error").message())
    });
    let plan = same(made, "a plan");
    assert!(plan.starts_with("ranks disagree on the plan of step 0: the plan of rank 1 differs;"), "{plan}");
}

#[test]
fn ranks_that_compute_other_things_disagree() {
    let (a, b) = (square(3), square(3));
    let b = b.masked(&Shape::of_norms(b.tiling(), [(4, 1.0)], &ALL).expect("a shape")).expect("a tensor");
    let tripled = Evaluator::new(Options::default()).scale(&a, 3.0).expect("a tensor");
    type Of<'f> = &'f (dyn Fn(&Evaluator, &Tiled, &Tiled) -> Result<(), Error> + Sync);
    let pairs: [[Of<'_>; 2]; 8] = [
        // The same tiles with other norms.
        [&|run, a, _| run.sum(a).map(drop), &|run, _, c| run.sum(c).map(drop)],
        [&|run, a, _| run.sum(a).map(drop), &|run, a, _| run.norm(a).map(drop)],
        [&|run, a, _| run.max(a).map(drop), &|run, a, _| run.min(a).map(drop)],
        [&|run, a, _| run.add(a, a).map(drop), &|run, a, _| run.subtract(a, a).map(drop)],
        [&|run, a, _| run.scale(a, 2.0).map(drop), &|run, a, _| run.scale(a, 3.0).map(drop)],
        [&|run, a, _| run.dot(a, a).map(drop), &|run, a, _| run.dot(a, &run.scale(a, 1.0)?).map(drop)],
        [&|run, a, _| run.product("ij,jk->ik", a, a).map(drop), &|run, a, _| run.product("ij,kj->ik", a, a).map(drop)],
        [&|run, a, _| run.sum(a).map(drop), &|run, _, _| run.sum(&b).map(drop)],
    ];
    for (at, pair) in pairs.into_iter().enumerate() {
        let made = on_ranks(2, 1, &Options::default().threshold(0.0), |run, ranks| {
            let a = run.distributed(&a, &TileMap::hashed())?;
            let c = run.distributed(&tripled, &TileMap::hashed())?;
            Ok(pair[ranks.link().rank()](run, &a, &c).expect_err("an error").tensor_kind())
        });
        assert_eq!(same(made, "an error"), Some(Kind::RanksDisagree), "{at}");
    }
}

#[test]
fn more_ranks_than_tiles_and_maps_of_ranks_that_there_are_not() {
    let axis = Tiling1::blocked(2, 2).expect("an axis");
    let shape = Shape::dense(&Tiling::new([&axis, &axis]).expect("one tile"), MOST_TILES).expect("one tile");
    let one = Tiled::random::<f64>(&shape, 3).expect("a tile");
    let expected = all_bits(&Evaluator::new(Options::default()).product("ij,jk->ik", &one, &one).unwrap());
    for size in [1, 2, 5, 16] {
        let made = on_ranks(size, 2, &Options::default(), |run, _| {
            let shared = run.distributed(&one, &TileMap::hashed())?;
            gathered_bits(run, &run.product("ij,jk->ik", &shared, &one)?)
        });
        assert_eq!(same(made, "one tile"), expected);
    }
    assert!(on_ranks(0, 2, &Options::default(), |_, _| Ok(())).is_empty());
    for (map, message) in [
        (TileMap::grid(2, 2), "the grid needs 4 ranks, but the link has 2"),
        (TileMap::grid(0, 2), "the grid needs 0 ranks, but the link has 2"),
        (TileMap::grid(usize::MAX, 2), "the grid needs 18446744073709551615 ranks, but the link has 2"),
        (TileMap::by(|_| 7), "tile [0, 0] is assigned to rank 7, but there are only 2 ranks"),
    ] {
        let made = on_ranks(2, 2, &Options::default(), |run, _| {
            let given = run.distributed(&one, &map).map(drop);
            let made = run.clone().tile_map(map.clone()).scale(&one, 2.0).map(drop);
            let product = run.clone().tile_map(map.clone()).product("ij,jk->ik", &one, &one).map(drop);
            Ok([given, made, product].map(|made| made.expect_err("an error").to_string()))
        });
        assert_eq!(same(made, "a map"), [message; 3]);
    }
}
