//! Tests of evaluations on several ranks in which one rank fails at a random point: the function of a tile fails or
//! panics, the rank is cancelled, has another tensor, sends an invalid message, has no memory for a tile, or cannot
//! write to the disk. All ranks must get the same error, tensors must keep their values, and the next evaluation must
//! succeed. A rank that is only slow must not cause an error.

use crate::graphs::NoElements;
use crate::products::lazy;
use crate::ranks::{Bits, gathered_bits, graph_of_all};
use crate::threads::all_bits;
use cembra_runtime::{Cancellation, Scalar};
use cembra_tensor::{TensorGraph, TensorNodeId};
use cembra_tiles::link::{Content, DelayedLink, ExpectedMessage, Link, MessageId, Payload, Ranks, Request, run_ranks};
use cembra_tiles::{Evaluator, MOST_TILES, Options, Shape, TileMap, TilePlace, Tiled, Tiling, Tiling1};
use cembra_value::Error;
use cembra_value::tensor::{Tensor, TensorErrorKind as Kind};
use fastrand::Rng;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// The fault that happens on one rank.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Fault {
    /// The function of a tile returns an error.
    Error,
    /// The function of a tile panics.
    Panic,
    /// The rank is cancelled while it computes a tile.
    Cancelled,
    /// The rank has another tensor as its second input.
    Other,
    /// The rank sends an invalid message in place of a tile.
    Garbage,
    /// The rank has no memory for a tile that it receives.
    Memory,
    #[cfg(feature = "checkpoints")]
    /// The rank cannot write to the directory of a checkpoint.
    Disk,
    /// No fault happens, but the function of a tile is slow.
    Slow,
}

/// A link that sends one invalid message in place of a tile, or fails to receive one tile because there is no memory.
#[derive(Debug)]
struct Garbling {
    link: Arc<dyn Link>,
    /// The number of the sent tile that is replaced by an invalid message, and of the received tile that fails. Tiles
    /// are counted from 0.
    which: [u64; 2],
    counts: [AtomicU64; 2],
    /// True while faults happen; false for the evaluation afterwards.
    is_on: Arc<AtomicBool>,
}

impl Link for Garbling {
    fn rank(&self) -> usize {
        self.link.rank()
    }

    fn size(&self) -> usize {
        self.link.size()
    }

    fn send(&self, to: usize, tag: u16, payload: Payload) -> Result<Request, Error> {
        let payload = match payload.tile() {
            Some(_)
                if self.is_on.load(Ordering::Relaxed)
                    && self.counts[0].fetch_add(1, Ordering::Relaxed) == self.which[0] =>
            {
                Payload::of_bytes(MessageId { plan: 1, step: 2, tile: 3 }, vec![9; 32])?
            }
            _ => payload,
        };
        self.link.send(to, tag, payload)
    }

    fn receive(&self, from: usize, tag: u16, room: ExpectedMessage) -> Result<Request, Error> {
        let is_tile = matches!(room.awaited().content(), Content::Float32 | Content::Float64);
        if is_tile
            && self.is_on.load(Ordering::Relaxed)
            && self.counts[1].fetch_add(1, Ordering::Relaxed) == self.which[1]
        {
            return Err(Error::tensors(Kind::Limit, "no memory for a tile that comes"));
        }
        self.link.receive(from, tag, room)
    }

    fn abort(&self, code: i32) {
        self.link.abort(code);
    }
}

/// A run: an evaluation with a fault, followed by one without.
struct Run<'r> {
    fault: Fault,
    /// The rank on which the fault happens. `at` is the number of the tile at which it happens.
    rank: usize,
    at: u64,
    options: Options,
    graph: &'r TensorGraph,
    outputs: &'r [TensorNodeId],
    tensors: [&'r Tiled; 2],
}

/// The result on one rank: the error of the first evaluation, if it failed, and the bits of the second evaluation's
/// outputs.
type Ended = (Option<String>, Vec<Bits>);

impl Run<'_> {
    /// The first tensor as a lazy tensor; on one rank, one of its tiles has the fault.
    fn lazy(&self, rank: usize, token: Cancellation) -> Result<Tiled, Error> {
        let (fault, is_own, at, whole) = (self.fault, rank == self.rank, self.at, self.tensors[0].clone());
        let made = AtomicU64::new(0);
        let source = move |place: &TilePlace| {
            if is_own && made.fetch_add(1, Ordering::Relaxed) == at {
                match fault {
                    Fault::Error => return Err(Error::tensors(Kind::Evaluation, "a tile that is an error")),
                    Fault::Panic => panic!("a tile that is a panic"),
                    Fault::Cancelled => token.cancel(),
                    Fault::Slow => (0..200).for_each(|_| std::thread::yield_now()),
                    _ => {}
                }
            }
            let tile = whole.tile(place.number)?;
            tile.map_or_else(|| Tensor::zeros(Scalar::Float64, &place.extents()), |tile| Ok(tile.tensor().clone()))
        };
        Tiled::lazy(self.tensors[0].shape(), Scalar::Float64, source)
    }

    fn on(&self, link: Arc<dyn Link>, seed: u64) -> Result<Ended, Error> {
        let rank = link.rank();
        let is_on = Arc::new(AtomicBool::new(true));
        let at = |fault: Fault| if self.fault == fault && rank == self.rank { self.at } else { u64::MAX };
        let which = [at(Fault::Garbage), at(Fault::Memory)];
        let link = Garbling { link, which, counts: Default::default(), is_on: is_on.clone() };
        let link: Arc<dyn Link> = Arc::new(DelayedLink::new(Arc::new(link), seed));
        let ranks = Arc::new(Ranks::new(link)?.stall(Duration::from_secs(60)));
        let run = Evaluator::new(self.options.clone()).ranks(ranks.clone(), []);
        let token = Cancellation::new();
        let failing = run.clone().cancellation(token.clone());
        let b = run.distributed(self.tensors[1], &TileMap::hashed());
        let first = b.and_then(|b| self.fails(&failing, rank, token, &b));
        let error = first.err().map(|error| error.message());
        is_on.store(false, Ordering::Relaxed);
        let after = || -> Result<Vec<Bits>, Error> {
            let b = run.distributed(self.tensors[1], &TileMap::square(ranks.link().size()))?;
            let made = run.evaluate(self.graph, self.outputs, &[&lazy(self.tensors[0]), &b], &NoElements)?;
            made.iter().map(|made| gathered_bits(&run, made)).collect()
        };
        Ok((error, after()?))
    }

    /// Runs the first evaluation, in which the fault happens.
    fn fails(&self, run: &Evaluator, rank: usize, token: Cancellation, b: &Tiled) -> Result<(), Error> {
        let lazy = self.lazy(rank, token)?;
        let other = run.scale(b, 2.0)?;
        let b = if self.fault == Fault::Other && rank == self.rank { &other } else { b };
        let made = run.evaluate(self.graph, self.outputs, &[&lazy, b], &NoElements)?;
        #[cfg(feature = "checkpoints")]
        if self.fault == Fault::Disk {
            let directory = tempfile::tempdir().expect("a directory");
            // On one rank there is a file in place of the directory.
            let place = directory.path().join("here");
            if rank == self.rank {
                std::fs::write(&place, "a file").expect("a file");
            }
            return run.checkpoint(place, [("a", &made[0])]);
        }
        drop(made);
        Ok(())
    }
}

#[test]
fn all_ranks_have_the_error_of_the_one_that_fails() {
    fail(50);
}

/// Runs as often as `.ci/release` has time for.
#[test]
#[ignore = "takes half a minute"]
fn all_ranks_have_the_error_of_the_one_that_fails_a_thousand_times_each() {
    fail(1000);
}

/// Makes `runs` runs for each kind of fault.
fn fail(runs: u64) {
    let (graph, outputs) = graph_of_all();
    let axis = Tiling1::new([0, 1, 4, 6]).expect("ascending");
    let shape = Shape::dense(&Tiling::new([&axis, &axis]).expect("few tiles"), MOST_TILES).expect("few tiles");
    let [a, b] = [1, 2].map(|seed| Tiled::random::<f64>(&shape, seed).expect("tiles"));
    let (before_a, before_b) = (all_bits(&a), all_bits(&b));
    let expected = Evaluator::new(Options::default()).evaluate(&graph, &outputs, &[&a, &b], &NoElements);
    let expected = expected.expect("no error");
    let expected: Vec<Bits> = expected.iter().map(all_bits).collect();
    let mut rng = Rng::with_seed(374);
    let faults = [
        Fault::Error,
        Fault::Panic,
        Fault::Cancelled,
        Fault::Other,
        Fault::Garbage,
        Fault::Memory,
        #[cfg(feature = "checkpoints")]
        Fault::Disk,
        Fault::Slow,
    ];
    for fault in faults {
        let mut failed = 0;
        for seed in 0..runs {
            let size = rng.usize(2..=4);
            let run = Run {
                fault,
                rank: rng.usize(..size),
                at: rng.u64(0..6),
                options: Options::default().block_bytes(rng.usize(0..64)),
                graph: &graph,
                outputs: &outputs,
                tensors: [&a, &b],
            };
            let ended: Vec<Ended> =
                run_ranks(size, |link| run.on(link, seed)).into_iter().map(Result::unwrap).collect();
            let what = format!("{fault:?} of rank {} of {size} at {}", run.rank, run.at);
            let (error, _) = &ended[0];
            failed += u64::from(error.is_some());
            for (other, after) in &ended {
                assert_eq!(other, error, "{what}");
                assert_eq!(*after, expected, "{what}");
            }
            let text = error.clone().unwrap_or_default();
            let expected = match fault {
                Fault::Error => "a tile that is an error",
                Fault::Panic => "the function of tiles panicked: a tile that is a panic",
                Fault::Cancelled => "the evaluation was cancelled",
                Fault::Other => "ranks disagree on the tiles of `b`",
                Fault::Garbage => "expected ",
                Fault::Memory => "no memory for a tile that comes",
                #[cfg(feature = "checkpoints")]
                Fault::Disk => "cannot be",
                Fault::Slow => "",
            };
            assert!(text.contains(expected) || text.is_empty(), "{what}: {text}");
        }
        // Some faults are at tiles that the rank never computes, sends or receives.
        match fault {
            Fault::Slow => assert_eq!(failed, 0),
            _ => assert!(failed > runs / 3, "{fault:?} failed {failed} times"),
        }
    }
    assert_eq!((all_bits(&a), all_bits(&b)), (before_a, before_b));
}
