//! Cases: how a batch is run, factor by factor.

use crate::one_answer::cover;
use cembra::OnError;
use cembra::explain::RowPlayer;
use cembra_fuzzing::{Layout, Shape};
use std::ops::RangeInclusive;

/// Which rows fail.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Faults {
    /// None.
    None,
    /// Those that the model's own operators fail in.
    Own,
    /// Up to three, anywhere.
    Injected,
}

/// Where outputs go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Out {
    /// To new columns.
    New,
    /// To memory of the caller, of the shape of the inputs.
    Memory,
    /// Over inputs, as far as there are such.
    Over,
}

/// How a batch is run.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) player: RowPlayer,
    pub(crate) rows: usize,
    pub(crate) strip: usize,
    /// How one input lies; the others lie anyhow.
    pub(crate) shape: Shape,
    pub(crate) faults: Faults,
    pub(crate) on_error: OnError,
    pub(crate) threads: usize,
    pub(crate) out: Out,
    /// Of all that is drawn besides.
    pub(crate) seed: u64,
}

/// A class of numbers, one of which is drawn.
type Class = RangeInclusive<usize>;

/// The values of the factors.
pub(crate) struct Factors {
    /// How many rows a case has at the least, on average.
    pub(crate) least_rows: usize,
    pub(crate) players: Vec<RowPlayer>,
    /// How many rows.
    rows: Vec<Class>,
    /// The first bit of bitmaps.
    offsets: Vec<Class>,
}

const STRIPS: [usize; 2] = [64, usize::MAX];
const FAULTS: [Faults; 3] = [Faults::None, Faults::Own, Faults::Injected];
const ON_ERROR: [OnError; 2] = [OnError::Fail, OnError::Missing];
const THREADS: [usize; 2] = [1, 3];
const OUTS: [Out; 3] = [Out::New, Out::Memory, Out::Over];

impl Factors {
    /// Few classes, none of many rows: what every change is tested with. More than a strip of all rows are among them, and as many as
    /// three threads share.
    pub(crate) fn short(players: Vec<RowPlayer>) -> Factors {
        let rows = vec![0..=0, 1..=1, 2..=7, 8..=62, 63..=63, 64..=64, 65..=70, 130..=190, 1025..=1025, 1600..=1600];
        Factors { least_rows: 100, rows, ..Factors::few(players) }
    }

    /// Few classes, one of which is of several strips.
    pub(crate) fn few(players: Vec<RowPlayer>) -> Factors {
        let rows = vec![0..=0, 1..=1, 2..=7, 8..=62, 63..=63, 64..=64, 65..=70, 1000..=1000, 1025..=1025, 5000..=5000];
        Factors { least_rows: 600, players, rows, offsets: vec![0..=0, 1..=7, 8..=8, 9..=31, 32..=62, 63..=63] }
    }

    /// Every length and every offset, and as many rows as three threads share.
    pub(crate) fn all(players: Vec<RowPlayer>) -> Factors {
        let rows = (0..=70).chain([1000, 1025, 5000, 25_000]).map(|rows| rows..=rows).collect();
        Factors { least_rows: 300, players, rows, offsets: (0..64).map(|offset| offset..=offset).collect() }
    }

    /// How many values each factor has; the first is which of so many models is run.
    pub(crate) fn sizes(&self, models: usize) -> Vec<usize> {
        let others = [Layout::ALL.len(), 2, FAULTS.len(), ON_ERROR.len(), THREADS.len(), OUTS.len()];
        [models, self.players.len(), self.rows.len(), STRIPS.len(), self.offsets.len()]
            .into_iter()
            .chain(others)
            .collect()
    }

    /// Cases in which every pair of values occurs, each with the number of its model.
    pub(crate) fn cases(&self, models: usize, seed: u64) -> Vec<(usize, Case)> {
        let mut random = fastrand::Rng::with_seed(seed);
        let sizes = self.sizes(models);
        let chosen = cover::pairs(&sizes, &mut random);
        let mut missing = cover::Missing::of(&sizes);
        chosen.iter().for_each(|case| missing.take(case));
        assert_eq!(missing.count(), 0, "pairs that occur in no case");
        chosen.into_iter().map(|case| (case[0], self.case(&case[1..], &mut random))).collect()
    }

    fn case(&self, values: &[usize], random: &mut fastrand::Rng) -> Case {
        let &[player, rows, strip, offset, layout, in_bytes, faults, on_error, threads, out] = values else {
            panic!("a case has a value for each factor")
        };
        let offset = random.usize(self.offsets[offset].clone());
        Case {
            player: self.players[player],
            rows: random.usize(self.rows[rows].clone()),
            strip: STRIPS[strip],
            shape: Shape { layout: Layout::ALL[layout], in_bytes: in_bytes == 1, offset },
            faults: FAULTS[faults],
            on_error: ON_ERROR[on_error],
            threads: THREADS[threads],
            out: OUTS[out],
            seed: random.u64(..),
        }
    }
}
