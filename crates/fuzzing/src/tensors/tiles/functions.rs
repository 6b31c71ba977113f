//! Tests the functions on tiled tensors that are not operations of graphs: reductions to a number, changes of the tiling, slices, blocks, maps,
//! dropping tiles, partial products. Each result is compared with the result on dense tensors. The bits of a result must not depend on the number of
//! threads, or on whether tiles are lazy (computed on demand).

use super::judge::{BrokenLaw, Checked, check_bits, check_norms, wrong_of};
use super::meaning::floats;
use super::operands::{ALL, FailingTiles, LazyTensor, Promise, Sparsity, TiledContents, slices_of};
use super::program::Settings;
use crate::config::pick;
use crate::tensors::Finding;
use crate::tensors::cuts::{Tilings, tiling1};
use crate::tensors::leaves::{self, Values};
use cembra::{Error, Scalar};
use cembra_tiles::link::{DelayedLink, Ranks, run_ranks};
use cembra_tiles::{Base, Evaluator, Screening, Shape, TileMap, Tiled, Tiling, Tiling1};
use fastrand::Rng;
use std::ops::Range;
use std::sync::Arc;

/// Two tensors with the same tiling.
struct TensorPair {
    a: Tiled,
    b: Tiled,
    settings: Settings,
}

/// Tests the functions on tiled tensors that are not operations of graphs, with a random tiled tensor. Returns the first broken law (property that
/// must hold), if any.
pub(super) fn check(random: &mut Rng) -> Result<Option<Finding>, Error> {
    let rank = random.usize(..=3);
    let extents: Vec<usize> = (0..rank).map(|_| *pick(random, &[0, 1, 2, 3, 5, 7, 11])).collect();
    let values = *pick(random, &[Values::Small, Values::Any, Values::Tame]);
    let scalar = *pick(random, &[Scalar::Float32, Scalar::Float64]);
    let tiling = Tilings::new(random.u64(..)).tiling(&extents)?;
    let settings = Settings::new(random);
    let mut tiled = || {
        let sparsity = Sparsity::new(random, settings.least() > 0.0);
        let tensor = leaves::tensor(random, scalar, &extents, values)?;
        sparsity.tiled(random, &tensor, &tiling)
    };
    let tried = TensorPair { a: tiled()?, b: tiled()?, settings };
    let checks: [fn(&TensorPair, &mut Rng) -> Checked; 6] = [
        TensorPair::numbers,
        TensorPair::tilings,
        TensorPair::parts,
        TensorPair::blocks,
        TensorPair::others,
        TensorPair::errors,
    ];
    for check in checks {
        if let Some(wrong) = wrong_of(check(&tried, random))? {
            let TensorPair { a, b, settings } = &tried;
            let [of_a, of_b] =
                [a, b].map(|of| of.to_tensor().map(|dense| format!("{:?} {dense:?}", of.shape().tiles())));
            let text = format!("{a:?}\n{}\n{b:?}\n{}\n{settings:?}\n{}", of_a?, of_b?, wrong.detail);
            return Ok(Some(Finding { what: wrong.what, text }));
        }
    }
    Ok(None)
}

/// A function that computes a number from all elements.
type Number = fn(&Evaluator, &Tiled, &Tiled) -> Result<f64, Error>;

const NUMBERS: [(&str, Number); 8] = [
    ("sum", |run, a, _| run.sum(a)),
    ("norm", |run, a, _| run.norm(a)),
    ("dot", |run, a, b| run.dot(a, b)),
    ("min", |run, a, _| run.min(a)),
    ("max", |run, a, _| run.max(a)),
    ("abs_min", |run, a, _| run.abs_min(a)),
    ("abs_max", |run, a, _| run.abs_max(a)),
    ("product_of_elements", |run, a, _| run.product_of_elements(a)),
];

/// Returns a number's bits, with all NaNs equal, or an error.
fn bits(number: Result<f64, Error>) -> Result<u64, String> {
    number.map(super::operands::bits).map_err(|error| error.to_string())
}

/// Returns the content of a tensor on all ranks, or an error.
fn seen(run: &Evaluator, made: Result<Tiled, Error>) -> Result<TiledContents, String> {
    made.and_then(|made| TiledContents::of(&run.gathered(&made)?)).map_err(|error| error.to_string())
}

/// Compares a result from several threads or ranks, named by `by`, with the result of one thread. `what` describes the broken law if they differ.
fn check_same<T: PartialEq + std::fmt::Debug>(what: String, by: &str, found: &T, expected: &T) -> Checked {
    if found == expected {
        return Ok(());
    }
    Err(BrokenLaw::new(what, format!("on {by} {found:?} for {expected:?}")).into())
}

impl TensorPair {
    fn run(&self, threads: usize) -> Evaluator {
        self.settings.evaluator(self.settings.options().block_bytes(64)).threads(threads)
    }

    /// Checks that results are equal with other numbers of threads, on ranks, and with lazy tiles.
    fn same<T: PartialEq + std::fmt::Debug + Send>(
        &self,
        what: &str,
        of: impl Fn(&Evaluator, &Tiled, &Tiled) -> T + Sync,
    ) -> Checked {
        let expected = of(&self.run(1), &self.a, &self.b);
        for size in [2, 3] {
            let on_ranks = run_ranks(size, |link| {
                let ranks = Arc::new(Ranks::new(Arc::new(DelayedLink::new(link, self.settings.seed)))?);
                let run = self.run(1).ranks(ranks, []);
                let shared = run.distributed(&self.a, &TileMap::hashed())?;
                Ok(of(&run, &shared, &self.b))
            });
            for found in on_ranks {
                check_same(format!("ranks change `{what}`"), &format!("{size} ranks"), &found?, &expected)?;
            }
        }
        for threads in [1, 2, 5] {
            let (run, by) = (self.run(threads), format!("{threads} threads"));
            check_same(format!("threads change `{what}`"), &by, &of(&run, &self.a, &self.b), &expected)?;
            let [a, b] = [&self.a, &self.b].map(|of| LazyTensor::of(of, Promise::True, None));
            let (a, b) = (a?, b?);
            let found = of(&self.run(threads), &a.tiled, &b.tiled);
            check_same(format!("tiles that are made on demand change `{what}`"), &by, &found, &expected)?;
            if a.most_asked().max(b.most_asked()) > 4 {
                return Err(BrokenLaw::new(format!("`{what}` asks for a tile more than four times"), "").into());
            }
        }
        Ok(())
    }

    fn numbers(&self, _: &mut Rng) -> Checked {
        let (x, y) = (floats(&self.a.to_tensor()?)?, floats(&self.b.to_tensor()?)?);
        for (name, number) in NUMBERS {
            self.same(name, |run, a, b| bits(number(run, a, b)))?;
            let found = number(&self.run(1), &self.a, &self.b);
            let least = |of: &[f64]| {
                of.iter().copied().reduce(|a, b| if a.is_nan() || b.is_nan() { f64::NAN } else { a.min(b) })
            };
            let greatest = |of: &[f64]| least(&of.iter().map(|x| -x).collect::<Vec<f64>>()).map(|x| -x);
            let magnitudes: Vec<f64> = x.iter().map(|x| x.abs()).collect();
            let terms: Vec<f64> = match name {
                "sum" => x.clone(),
                "dot" => self.products()?,
                _ => Vec::new(),
            };
            let size: f64 = terms.iter().map(|term| term.abs()).filter(|size| size.is_finite()).sum();
            let (expected, apart) = match name {
                "sum" | "dot" => {
                    (Some(terms.iter().sum::<f64>()), 4.0 * (terms.len() + 8) as f64 * (f64::EPSILON * size + 1e-308))
                }
                "norm" => {
                    let norm = super::operands::norm_of(&x) * x.len() as f64;
                    (Some(norm), 1e-12 * norm + 1e-320)
                }
                "min" => (least(&x), 0.0),
                "max" => (greatest(&x), 0.0),
                "abs_min" => (least(&magnitudes), 0.0),
                "abs_max" => (greatest(&magnitudes), 0.0),
                _ => continue,
            };
            let (Ok(found), Some(expected)) = (&found, expected) else {
                if found.is_ok() == expected.is_some() {
                    continue;
                }
                let detail = format!("{found:?} for {expected:?}");
                return Err(BrokenLaw::new(format!("`{name}` fails or does not"), detail).into());
            };
            let is_over = size > f64::MAX / 8.0
                || (terms.iter().any(|term| !term.is_finite()) && x.iter().chain(&y).all(|x| x.is_finite()));
            let is_same = *found == expected || (found.is_nan() && expected.is_nan());
            if !(is_over || is_same || (found - expected).abs() <= apart) {
                let detail = format!("{found:e} for {expected:e}, which may be {apart:e} apart");
                return Err(BrokenLaw::new(format!("`{name}` is another number"), detail).into());
            }
        }
        Ok(())
    }

    /// Returns the products of elements in tiles that both tensors have.
    fn products(&self) -> Result<Vec<f64>, Error> {
        let mut products = Vec::new();
        for tile in self.a.tiles() {
            let (number, tile) = tile?;
            if let Some(other) = self.b.tile(number)? {
                let pairs = floats(tile.tensor())?.into_iter().zip(floats(other.tensor())?);
                products.extend(pairs.map(|(a, b)| a * b));
            }
        }
        Ok(products)
    }

    /// Checks conversions to another tiling and back.
    fn tilings(&self, random: &mut Rng) -> Checked {
        let dense = self.a.to_tensor()?;
        let axes = self.a.tiling().axes().iter().map(|axis| tiling1(random, axis.extent())?.rebased(axis.lower()));
        let other = Tiling::new(axes.collect::<Result<Vec<Tiling1>, Error>>()?)?;
        for a in [&self.a, &LazyTensor::of(&self.a, Promise::Unknown, None)?.tiled] {
            let made = a.retile(&other, &ALL)?;
            let back = made.retile(a.tiling(), &ALL)?;
            for (made, tiling) in [(&made, &other), (&back, a.tiling())] {
                if made.tiling() != tiling {
                    return Err(BrokenLaw::new("another tiling than is asked for", format!("{made:?}")).into());
                }
                check_norms("", &TiledContents::of(made)?)?;
                check_bits("in other tiles ", made, &dense)?;
            }
        }
        Ok(())
    }

    /// Checks reading and overwriting ranges of elements.
    fn parts(&self, random: &mut Rng) -> Checked {
        let axes = self.a.tiling().axes();
        let range = |axis: &Tiling1| {
            let start = random.i64(axis.lower()..=axis.upper());
            start..random.i64(start..=axis.upper())
        };
        let ranges: Vec<Range<i64>> = axes.iter().map(range).collect();
        let slices = slices_of(self.a.tiling(), &ranges);
        let (dense, other) = (self.a.to_tensor()?, self.b.to_tensor()?);
        let lazy = LazyTensor::of(&self.a, Promise::Unknown, None)?.tiled;
        for (a, base) in [(&self.a, Base::Zero), (&self.a, Base::Kept), (&lazy, Base::Zero)] {
            let part = a.elements(&ranges, base, &ALL)?;
            check_bits("of a range of elements ", &part, &dense.sliced(&slices)?.row_major())?;
            let lowers = part.tiling().axes().iter().map(Tiling1::lower);
            if !lowers.eq(ranges.iter().map(|range| if base == Base::Zero { 0 } else { range.start })) {
                return Err(BrokenLaw::new("of a range of elements it begins elsewhere", format!("{part:?}")).into());
            }
        }
        // These are elements of the other tensor, with another tiling.
        let own = slices.iter().map(|slice| tiling1(random, slice.count)).collect::<Result<Vec<Tiling1>, Error>>()?;
        let part = Sparsity::new(random, false).tiled(random, &other.sliced(&slices)?, &Tiling::new(own)?)?;
        let first: Vec<i64> = ranges.iter().map(|range| range.start).collect();
        let mut expected = dense.row_major();
        let mut whole = expected.to_mut()?.sliced(&slices)?;
        whole.assign(&part.to_tensor()?)?;
        for a in [&self.a, &lazy] {
            let made = a.with_elements(&first, &part, &ALL)?;
            check_bits("with other elements ", &made, &expected)?;
            check_norms("with other elements ", &TiledContents::of(&made)?)?;
        }
        Ok(())
    }

    /// Checks reading and replacing blocks of tiles.
    fn blocks(&self, random: &mut Rng) -> Checked {
        let axes = self.a.tiling().axes();
        let range = |axis: &Tiling1| {
            let start = random.u64(0..=axis.tiles());
            start..random.u64(start..=axis.tiles())
        };
        let ranges: Vec<Range<u64>> = axes.iter().map(range).collect();
        let part = self.a.tiling().block(&ranges, Base::Kept)?;
        let elements: Vec<Range<i64>> = part.axes().iter().map(|axis| axis.lower()..axis.upper()).collect();
        let expected = self.a.to_tensor()?.sliced(&slices_of(self.a.tiling(), &elements))?.row_major();
        let first: Vec<u64> = ranges.iter().map(|range| range.start).collect();
        for a in [&self.a, &LazyTensor::of(&self.a, Promise::True, None)?.tiled] {
            let block = a.block(&ranges, *pick(random, &[Base::Zero, Base::Kept]))?;
            check_bits("of a block ", &block, &expected)?;
            let back = self.a.with_block(&first, &block)?;
            if TiledContents::of(&back)? != TiledContents::of(&self.a)? {
                return Err(BrokenLaw::new("a block that is put back changes a tensor", format!("{ranges:?}")).into());
            }
        }
        Ok(())
    }

    /// Checks maps, dropping tiles, and partial products.
    fn others(&self, random: &mut Rng) -> Checked {
        let threshold = *pick(random, &[0.0, 1e-9, 1e-3, 0.1, 1.0, f64::INFINITY]);
        let screening = Screening::threshold(threshold);
        self.same("truncate", |run, a, _| seen(run, run.truncate(a, &screening)))?;
        self.same("materialized", |run, a, _| seen(run, run.materialized(a)))?;
        let (kept, whole) = (TiledContents::of(&self.a.truncate(&screening)?)?, TiledContents::of(&self.a)?);
        let of_evaluator = TiledContents::of(&self.run(2).truncate(&self.a, &screening)?)?;
        let stays = |norm: f64| norm.is_nan() || norm >= threshold;
        let norms = whole.norms.iter().map(|norm| f64::from_bits(*norm));
        let expected = whole.tiles.iter().zip(norms).filter(|(_, norm)| stays(*norm)).map(|(tile, _)| *tile);
        if kept != of_evaluator || !expected.eq(kept.tiles.iter().copied()) {
            return Err(BrokenLaw::new("other tiles are dropped", format!("{:?} at {threshold}", kept.tiles)).into());
        }
        let elements = |tile: &u64| whole.tiles.binary_search(tile).ok().map(|at| &whole.elements[at]);
        if !kept.tiles.iter().map(elements).eq(kept.elements.iter().map(Some)) {
            return Err(BrokenLaw::new("a tile that stays has other elements", format!("{:?}", kept.tiles)).into());
        }
        let rank = self.a.tiling().rank();
        if rank == 2 && self.a.scalar_type() == Scalar::Float64 { self.wanted(random) } else { Ok(()) }
    }

    /// Checks that the first failing tile ends an evaluation, with any number of threads.
    fn errors(&self, random: &mut Rng) -> Checked {
        let each = random.u64(1..4);
        let failing = Some(FailingTiles { each, first: random.u64(..each) });
        let lazy = LazyTensor::of(&self.a, Promise::True, failing)?.tiled;
        let screening = Screening::threshold(0.1);
        let made = |run: &Evaluator| {
            let tiled = [
                run.add(&lazy, &self.b),
                run.hadamard(&self.b, &lazy),
                run.scale(&lazy, 0.5),
                run.materialized(&lazy),
                run.truncate(&lazy, &screening),
            ];
            (tiled.map(|tiled| seen(run, tiled)), [run.sum(&lazy), run.max(&lazy)].map(bits))
        };
        let expected = made(&self.run(1));
        for threads in [2, 5] {
            let (what, by) = ("threads change which tile fails".to_owned(), format!("{threads} threads"));
            check_same(what, &by, &made(&self.run(threads)), &expected)?;
        }
        // An operation that computes all tiles one by one fails at the first failing tile.
        let number = self.a.shape().tiles().iter().find(|number| **number % each == failing.map_or(0, |of| of.first));
        let first = number.map(|number| format!("tile {number} fails"));
        let found = expected.0[3].as_ref().err();
        if found != first.as_ref() {
            return Err(
                BrokenLaw::new("another tile fails than the first one", format!("{found:?} for {first:?}")).into()
            );
        }
        Ok(())
    }

    /// Checks that a product with selected tiles has the same tiles as the whole product.
    fn wanted(&self, random: &mut Rng) -> Checked {
        let labels = *pick(random, &["ij,kj->ik", "ij,kj->ki", "ji,jk->ik", "ij,ij->ij", "ij,ij->ji"]);
        let run = |threads: usize| {
            self.settings.evaluator(self.settings.options().screen(false).block_bytes(64)).threads(threads)
        };
        let whole = run(1).product(labels, &self.a, &self.b)?;
        let tiling = whole.tiling();
        let some = (0..tiling.tiles()).filter(|_| random.bool()).map(|tile| (tile, 1.0));
        let wanted = Shape::of_norms(tiling, some.collect::<Vec<_>>(), &ALL)?;
        let expected = TiledContents::of(&whole.masked(&wanted)?)?;
        for threads in [1, 2, 5] {
            let lazy = LazyTensor::of(&self.a, Promise::True, None)?;
            let made = run(threads).product_within(labels, &lazy.tiled, &self.b, &wanted)?;
            if TiledContents::of(&made)? != expected || lazy.most_asked() > 1 {
                let detail = format!("{labels} on {threads} threads, each tile asked for {} times", lazy.most_asked());
                return Err(BrokenLaw::new("a part of a product is another one", detail).into());
            }
        }
        Ok(())
    }
}
