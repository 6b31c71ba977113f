//! What tiled tensors have beside graphs: numbers of all elements, other tilings, parts, blocks, maps, tiles that are dropped, products of which a
//! part is wanted. Held against dense tensors, and on several threads and of lazy tiles bit for bit against themselves.

use super::judge::{Wrong, differs_from};
use super::meaning::floats;
use super::operands::{ALL, Failing, Lazy, Promise, Sparsity, TiledContents};
use super::program::Settings;
use crate::config::pick;
use crate::tensors::Finding;
use crate::tensors::cuts::{Tilings, tiling1};
use crate::tensors::leaves::{self, Values};
use cembra::tensor::Slice;
use cembra::{Error, Scalar};
use cembra_tiles::link::{Ranks, Shuffled, run_ranks};
use cembra_tiles::{Base, Evaluator, Screening, Shape, TileMap, Tiled, Tiling, Tiling1};
use fastrand::Rng;
use std::ops::Range;
use std::sync::Arc;

type Checked = Result<Option<Wrong>, Error>;

/// Two tensors of one tiling.
struct Tried {
    a: Tiled,
    b: Tiled,
    settings: Settings,
}

/// Tries the functions of a random tensor.
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
    let tried = Tried { a: tiled()?, b: tiled()?, settings };
    let checks: [fn(&Tried, &mut Rng) -> Checked; 6] =
        [Tried::numbers, Tried::tilings, Tried::parts, Tried::blocks, Tried::others, Tried::errors];
    for check in checks {
        if let Some(wrong) = check(&tried, random)? {
            let Tried { a, b, settings } = &tried;
            let [of_a, of_b] =
                [a, b].map(|of| of.to_tensor().map(|dense| format!("{:?} {dense:?}", of.shape().tiles())));
            let text = format!("{a:?}\n{}\n{b:?}\n{}\n{settings:?}\n{}", of_a?, of_b?, wrong.detail);
            return Ok(Some(Finding { what: wrong.what, text }));
        }
    }
    Ok(None)
}

/// A number that is made of all elements.
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

/// A number by its bits, any NaN like any other, or an error.
fn bits(number: Result<f64, Error>) -> Result<u64, String> {
    let bits = |number: f64| if number.is_nan() { f64::NAN.to_bits() } else { number.to_bits() };
    number.map(bits).map_err(|error| error.to_string())
}

/// What one sees of a tensor on all ranks, or an error.
fn seen(run: &Evaluator, made: Result<Tiled, Error>) -> Result<TiledContents, String> {
    made.and_then(|made| TiledContents::of(&run.gathered(&made)?)).map_err(|error| error.to_string())
}

impl Tried {
    fn run(&self, threads: usize) -> Evaluator {
        self.settings.evaluator(self.settings.options().block_bytes(64)).threads(threads)
    }

    /// What is not the same on other threads, on ranks, or of lazy tiles.
    fn same<T: PartialEq + std::fmt::Debug + Send>(
        &self,
        what: &str,
        of: impl Fn(&Evaluator, &Tiled, &Tiled) -> T + Sync,
    ) -> Checked {
        let expected = of(&self.run(1), &self.a, &self.b);
        for size in [2, 3] {
            let on_ranks = run_ranks(size, |link| {
                let ranks = Arc::new(Ranks::new(Arc::new(Shuffled::new(link, self.settings.seed)))?);
                let run = self.run(1).ranks(ranks, []);
                let shared = run.distributed(&self.a, &TileMap::hashed())?;
                Ok(of(&run, &shared, &self.b))
            });
            for found in on_ranks {
                let found = found?;
                if found != expected {
                    let detail = format!("on {size} ranks {found:?} for {expected:?}");
                    return Ok(Some(Wrong::new(format!("ranks change `{what}`"), detail)));
                }
            }
        }
        for threads in [1, 2, 5] {
            let found = of(&self.run(threads), &self.a, &self.b);
            if found != expected {
                let detail = format!("on {threads} threads {found:?} for {expected:?}");
                return Ok(Some(Wrong::new(format!("threads change `{what}`"), detail)));
            }
            let [a, b] = [&self.a, &self.b].map(|of| Lazy::of(of, Promise::True, None));
            let (a, b) = (a?, b?);
            let found = of(&self.run(threads), &a.tiled, &b.tiled);
            if found != expected {
                let detail = format!("on {threads} threads {found:?} for {expected:?}");
                return Ok(Some(Wrong::new(format!("tiles that are made on demand change `{what}`"), detail)));
            }
            if a.most_asked().max(b.most_asked()) > 4 {
                return Ok(Some(Wrong::new(format!("`{what}` asks for a tile more than four times"), String::new())));
            }
        }
        Ok(None)
    }

    fn numbers(&self, _: &mut Rng) -> Checked {
        let (x, y) = (floats(&self.a.to_tensor()?)?, floats(&self.b.to_tensor()?)?);
        for (name, number) in NUMBERS {
            if let Some(wrong) = self.same(name, |run, a, b| bits(number(run, a, b)))? {
                return Ok(Some(wrong));
            }
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
                return Ok(Some(Wrong::new(
                    format!("`{name}` fails or does not"),
                    format!("{found:?} for {expected:?}"),
                )));
            };
            let is_over = size > f64::MAX / 8.0
                || (terms.iter().any(|term| !term.is_finite()) && x.iter().chain(&y).all(|x| x.is_finite()));
            let is_same = *found == expected || (found.is_nan() && expected.is_nan());
            if !(is_over || is_same || (found - expected).abs() <= apart) {
                let detail = format!("{found:e} for {expected:e}, which may be {apart:e} apart");
                return Ok(Some(Wrong::new(format!("`{name}` is another number"), detail)));
            }
        }
        Ok(None)
    }

    /// The products of the elements that both tensors have.
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

    /// Other tilings, and back.
    fn tilings(&self, random: &mut Rng) -> Checked {
        let dense = self.a.to_tensor()?;
        let axes = self.a.tiling().axes().iter().map(|axis| tiling1(random, axis.extent())?.rebased(axis.lower()));
        let other = Tiling::new(axes.collect::<Result<Vec<Tiling1>, Error>>()?)?;
        for a in [&self.a, &Lazy::of(&self.a, Promise::Unknown, None)?.tiled] {
            let made = a.retile(&other, &ALL)?;
            let back = made.retile(a.tiling(), &ALL)?;
            for (made, tiling) in [(&made, &other), (&back, a.tiling())] {
                if made.tiling() != tiling {
                    return Ok(Some(Wrong::new("another tiling than is asked for", format!("{made:?}"))));
                }
                if let Some(detail) = TiledContents::of(made)?.wrong_norm() {
                    return Ok(Some(Wrong::new("a norm is not that of the elements", detail)));
                }
                if let Some(wrong) = differs_from(made, &dense)? {
                    return Ok(Some(Wrong { what: format!("in other tiles {}", wrong.what), ..wrong }));
                }
            }
        }
        Ok(None)
    }

    /// Ranges of elements, read and written over.
    fn parts(&self, random: &mut Rng) -> Checked {
        let axes = self.a.tiling().axes();
        let range = |axis: &Tiling1| {
            let start = random.i64(axis.lower()..=axis.upper());
            start..random.i64(start..=axis.upper())
        };
        let ranges: Vec<Range<i64>> = axes.iter().map(range).collect();
        let slices = ranges.iter().zip(axes).map(|(range, axis)| Slice {
            start: range.start.abs_diff(axis.lower()) as usize,
            step: 1,
            count: range.end.abs_diff(range.start) as usize,
        });
        let slices: Vec<Slice> = slices.collect();
        let (dense, other) = (self.a.to_tensor()?, self.b.to_tensor()?);
        let lazy = Lazy::of(&self.a, Promise::Unknown, None)?.tiled;
        for (a, base) in [(&self.a, Base::Zero), (&self.a, Base::Kept), (&lazy, Base::Zero)] {
            let part = a.elements(&ranges, base, &ALL)?;
            let wrong = differs_from(&part, &dense.sliced(&slices)?.row_major())?;
            let lowers = part.tiling().axes().iter().map(Tiling1::lower);
            let is_based = lowers.eq(ranges.iter().map(|range| if base == Base::Zero { 0 } else { range.start }));
            if let Some(wrong) = wrong.or((!is_based).then(|| Wrong::new("it begins elsewhere", format!("{part:?}")))) {
                return Ok(Some(Wrong { what: format!("of a range of elements {}", wrong.what), ..wrong }));
            }
        }
        // Elements of the other tensor, in other tiles.
        let own = slices.iter().map(|slice| tiling1(random, slice.count)).collect::<Result<Vec<Tiling1>, Error>>()?;
        let part = Sparsity::new(random, false).tiled(random, &other.sliced(&slices)?, &Tiling::new(own)?)?;
        let first: Vec<i64> = ranges.iter().map(|range| range.start).collect();
        let mut expected = dense.row_major();
        let mut whole = expected.to_mut()?.sliced(&slices)?;
        whole.assign(&part.to_tensor()?)?;
        for a in [&self.a, &lazy] {
            let made = a.with_elements(&first, &part, &ALL)?;
            let norm = TiledContents::of(&made)?
                .wrong_norm()
                .map(|detail| Wrong::new("a norm is not that of the elements", detail));
            if let Some(wrong) = differs_from(&made, &expected)?.or(norm) {
                return Ok(Some(Wrong { what: format!("with other elements {}", wrong.what), ..wrong }));
            }
        }
        Ok(None)
    }

    /// Blocks of tiles, read and put back.
    fn blocks(&self, random: &mut Rng) -> Checked {
        let axes = self.a.tiling().axes();
        let range = |axis: &Tiling1| {
            let start = random.u64(0..=axis.tiles());
            start..random.u64(start..=axis.tiles())
        };
        let ranges: Vec<Range<u64>> = axes.iter().map(range).collect();
        let part = self.a.tiling().block(&ranges, Base::Kept)?;
        let slices = part.axes().iter().zip(axes).map(|(part, axis)| Slice {
            start: part.lower().abs_diff(axis.lower()) as usize,
            step: 1,
            count: part.extent(),
        });
        let expected = self.a.to_tensor()?.sliced(&slices.collect::<Vec<Slice>>())?.row_major();
        let first: Vec<u64> = ranges.iter().map(|range| range.start).collect();
        for a in [&self.a, &Lazy::of(&self.a, Promise::True, None)?.tiled] {
            let block = a.block(&ranges, *pick(random, &[Base::Zero, Base::Kept]))?;
            if let Some(wrong) = differs_from(&block, &expected)? {
                return Ok(Some(Wrong { what: format!("of a block {}", wrong.what), ..wrong }));
            }
            let back = self.a.with_block(&first, &block)?;
            if TiledContents::of(&back)? != TiledContents::of(&self.a)? {
                return Ok(Some(Wrong::new("a block that is put back changes a tensor", format!("{ranges:?}"))));
            }
        }
        Ok(None)
    }

    /// Maps, tiles that are dropped, and products of which a part is wanted.
    fn others(&self, random: &mut Rng) -> Checked {
        let threshold = *pick(random, &[0.0, 1e-9, 1e-3, 0.1, 1.0, f64::INFINITY]);
        let screening = Screening::threshold(threshold);
        let wrong = self.same("truncate", |run, a, _| seen(run, run.truncate(a, &screening)))?;
        let wrong = match wrong {
            None => self.same("materialized", |run, a, _| seen(run, run.materialized(a)))?,
            wrong => wrong,
        };
        if wrong.is_some() {
            return Ok(wrong);
        }
        let (kept, whole) = (TiledContents::of(&self.a.truncate(&screening)?)?, TiledContents::of(&self.a)?);
        let of_evaluator = TiledContents::of(&self.run(2).truncate(&self.a, &screening)?)?;
        let stays = |norm: f64| norm.is_nan() || norm >= threshold;
        let norms = whole.norms.iter().map(|norm| f64::from_bits(*norm));
        let expected = whole.tiles.iter().zip(norms).filter(|(_, norm)| stays(*norm)).map(|(tile, _)| *tile);
        if kept != of_evaluator || !expected.eq(kept.tiles.iter().copied()) {
            return Ok(Some(Wrong::new("other tiles are dropped", format!("{:?} at {threshold}", kept.tiles))));
        }
        let elements = |tile: &u64| whole.tiles.binary_search(tile).ok().map(|at| &whole.elements[at]);
        if !kept.tiles.iter().map(elements).eq(kept.elements.iter().map(Some)) {
            return Ok(Some(Wrong::new("a tile that stays has other elements", format!("{:?}", kept.tiles))));
        }
        let rank = self.a.tiling().rank();
        if rank == 2 && self.a.scalar_type() == Scalar::Float64 {
            return self.wanted(random);
        }
        Ok(None)
    }

    /// Of several tiles that fail, the first one is what ends an evaluation, on any number of threads.
    fn errors(&self, random: &mut Rng) -> Checked {
        let each = random.u64(1..4);
        let failing = Some(Failing { each, first: random.u64(..each) });
        let lazy = Lazy::of(&self.a, Promise::True, failing)?.tiled;
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
            let found = made(&self.run(threads));
            if found != expected {
                let detail = format!("on {threads} threads {found:?} for {expected:?}");
                return Ok(Some(Wrong::new("threads change which tile fails", detail)));
            }
        }
        // What is made tile by tile, all tiles, fails at the first that does.
        let number = self.a.shape().tiles().iter().find(|number| **number % each == failing.map_or(0, |of| of.first));
        let first = number.map(|number| format!("tile {number} fails"));
        let found = expected.0[3].as_ref().err();
        if found != first.as_ref() {
            return Ok(Some(Wrong::new("another tile fails than the first one", format!("{found:?} for {first:?}"))));
        }
        Ok(None)
    }

    /// A product of which some tiles are wanted has these tiles of the whole one.
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
            let lazy = Lazy::of(&self.a, Promise::True, None)?;
            let made = run(threads).product_within(labels, &lazy.tiled, &self.b, &wanted)?;
            if TiledContents::of(&made)? != expected || lazy.most_asked() > 1 {
                let detail = format!("{labels} on {threads} threads, each tile asked for {} times", lazy.most_asked());
                return Ok(Some(Wrong::new("a part of a product is another one", detail)));
            }
        }
        Ok(None)
    }
}
