//! Elementwise expressions on tiled tensors. The tiles of the tensors, and the value of the expression at zeros, decide which tiles the result has.
//! Each present tile is computed by the same compiled expression, whatever its extents. Sums, differences, products and multiples of tensors with the
//! same tiling are computed by the [`Evaluator`] itself, which copies no tile unnecessarily.

use crate::distribution::each::{ResultStep, lazy_bytes, tiled_of, workers_for};
use crate::distribution::{Read, Reads};
use crate::elements::views::reshaped;
use crate::error::limit;
use crate::graph::contraction::contract;
use crate::graph::cuts::{AxisTilings, aligned, cuts_of, whole};
use crate::graph::grouping::{Action, OperandSource, Region, Step};
use crate::graph::zeros::{Pattern, TileValue, float, magnitude};
use crate::shape::algebra::check_same_tilings;
use crate::shape::sparse::ShapeBuilder;
use crate::shape::tiling::TileIndex;
use crate::tasks::Workers;
use crate::tiled::Tiled;
use crate::tiled::tile::{Float, Tile, check_float, with_float};
use crate::{Evaluator, Screening, Shape, Tiling};
use cembra_ops::id;
use cembra_runtime::Scalar;
use cembra_tensor::{Axes, Axis, Body, Elements, Labels};
use cembra_value::Error;
use cembra_value::tensor::Tensor;
use smallvec::SmallVec;
use std::collections::HashMap;

/// The most tiles of a grid that are visited for an expression that is not 0 where its tensors are 0. Visiting them
/// takes about five seconds.
const MOST_CANDIDATES: u64 = 1 << 25;

/// A tensor that an expression reads, and the rule that finds its tile for a tile of the result. The tensor has all
/// axes of the result, or is constant along some of them.
struct Leaf<'t> {
    tiled: &'t Tiled,
    /// For each axis of the result, a factor and a constant. The number of the tensor's tile is the sum over the axes
    /// of the factor times the coordinate of the result tile, plus the constant.
    strides: SmallVec<[(u64, u64); 6]>,
    /// True if each tile of the tensor has the same number in its grid as the result tile that is computed from it.
    is_full: bool,
}

impl<'t> Leaf<'t> {
    fn of(tiled: &'t Tiled, tiling: &Tiling) -> Leaf<'t> {
        let missing = tiling.rank().saturating_sub(tiled.tiling().rank());
        let mut strides: SmallVec<[(u64, u64); 6]> = SmallVec::from_elem((0, 0), missing);
        let axes = tiled.tiling().axes().iter().zip(tiling.axes().iter().skip(missing));
        strides.extend(axes.zip(tiled.tiling().strides()).map(|((own, axis), stride)| {
            // The only element of an axis along which the tensor is the same may have empty tiles around it.
            let only = own.tile_of(own.lower()).unwrap_or(0);
            if own == axis { (stride, 0) } else { (0, only * stride) }
        }));
        Leaf { tiled, strides, is_full: tiled.tiling() == tiling }
    }

    /// The position of the tile that is read for a tile of the result; `None` if it is absent.
    fn position(&self, number: u64, index: &[u64]) -> Option<usize> {
        if self.is_full {
            return self.tiled.shape().position(number);
        }
        let number = index.iter().zip(&self.strides).map(|(at, (stride, fixed))| at * stride + fixed).sum();
        self.tiled.shape().position(number)
    }
}

/// Evaluates an elementwise expression on the tensors `leaves`. The result has the extents `extents`.
///
/// # Errors
/// If tilings differ, there are too many tiles, the memory limit does not suffice, or an operator fails on an element.
pub(crate) fn evaluate(
    run: &Evaluator,
    region: &Region,
    extents: &[usize],
    leaves: &[&Tiled],
    elements: &dyn Elements,
) -> Result<Tiled, Error> {
    if let Some(made) = by_evaluator(run, region, extents, leaves) {
        return made;
    }
    let scalar = region.steps.last().map_or(Scalar::Float64, |step| step.scalar);
    check_float(scalar)?;
    // Tensors are aligned at the last axis. An axis along which all tensors have the same value for all indices is one tile.
    let cuts: Vec<AxisTilings> = leaves.iter().map(|leaf| cuts_of(leaf.tiling())).collect();
    let tiling = whole(&aligned(extents, cuts.iter())?, extents)?;
    let leaves: Vec<Leaf<'_>> = leaves.iter().map(|tiled| Leaf::of(tiled, &tiling)).collect();
    let run = Run { run, region, leaves: &leaves, elements };
    with_float!(scalar, T => run.make::<T>(&tiling))
}

/// Evaluates an expression of one operator for which the [`Evaluator`] has a method, such as [`Evaluator::add`]. Its
/// operands are tensors with the same tiling, or one tensor and a number. `None` for other expressions.
fn by_evaluator(
    run: &Evaluator,
    region: &Region,
    extents: &[usize],
    leaves: &[&Tiled],
) -> Option<Result<Tiled, Error>> {
    let leaf =
        |place: &OperandSource| if let OperandSource::Leaf(at) = place { leaves.get(*at).copied() } else { None };
    let number = |place: &OperandSource| match place {
        OperandSource::Step(at) => match &region.steps.get(*at)?.action {
            Action::Constant(bits) => float(region.steps[*at].scalar, *bits),
            _ => None,
        },
        OperandSource::Leaf(_) => None,
    };
    let Step { action, .. } = region.steps.last()?;
    let is_alone = region.steps.iter().rev().skip(1).all(|step| matches!(step.action, Action::Constant(_)));
    // A result without axes is not screened: a small number is not left out, as a tile is.
    if !is_alone || extents.is_empty() {
        return None;
    }
    let (op, places) = match action {
        Action::Same(place) => {
            let of = leaf(place)?;
            return (of.tiling().extents()[..] == *extents).then(|| Ok(of.clone()));
        }
        Action::Apply(op, places) => (op.id(), places.as_slice()),
        Action::Constant(_) => return None,
    };
    if leaves.iter().any(|leaf| leaf.tiling().extents()[..] != *extents) {
        return None;
    }
    match (op, places) {
        (id::ADD | id::SUBTRACT | id::MULTIPLY, [a, b]) => {
            if let (Some(a), Some(b)) = (leaf(a), leaf(b)) {
                if let Err(error) = check_same_tilings(a.tiling(), b.tiling()) {
                    // The empty tiles around a single element do not matter.
                    return if extents.contains(&1) { None } else { Some(Err(error)) };
                }
                return Some(match op {
                    id::ADD => run.add(a, b),
                    id::SUBTRACT => run.subtract(a, b),
                    _ => run.hadamard(a, b),
                });
            }
            let (of, factor) = match (number(a), number(b)) {
                (Some(factor), None) => (leaf(b)?, factor),
                (None, Some(factor)) => (leaf(a)?, factor),
                _ => return None,
            };
            (op == id::MULTIPLY && factor.is_finite()).then(|| run.scale(of, factor))
        }
        (id::NEG, [of]) => Some(run.scale(leaf(of)?, -1.0)),
        _ => None,
    }
}

/// Returns the elementwise product of two tensors that are aligned at the last axis; one is constant along some axes. It is computed as a
/// product by labels, so absent tiles are not visited.
///
/// # Errors
/// The errors of a product by labels.
pub(crate) fn broadcast_product(run: &Evaluator, extents: &[usize], operands: [&Tiled; 2]) -> Result<Tiled, Error> {
    let mut is_met = [false; cembra_runtime::MOST_AXES];
    let (mut narrow, mut labels) = (Vec::new(), Vec::new());
    for of in operands {
        let own = of.tiling().extents();
        let missing = extents.len().saturating_sub(own.len());
        // An axis of one element, also in the result, belongs to the first operand that has it.
        let stays = |at: &usize| own[*at] != 1 || (extents[missing + *at] == 1 && !is_met[missing + *at]);
        let kept: SmallVec<[usize; 6]> = (0..own.len()).filter(stays).collect();
        kept.iter().for_each(|at| is_met[missing + *at] = true);
        narrow.push(reshaped(of, &kept.iter().map(|at| own[*at]).collect::<SmallVec<[usize; 6]>>())?);
        labels.push(kept.iter().map(|at| (missing + *at) as Axis).collect::<Axes>());
    }
    contract(run, &Labels { operands: labels, output: (0..extents.len() as Axis).collect() }, narrow)
}

/// A result tile to compute: its number in the grid, and the position of its pattern (the expression for tiles with the same operands present).
struct ResultTile {
    number: u64,
    pattern: usize,
}

/// An elementwise expression that is being evaluated: its steps, the tensors that it reads, and the evaluator of elements.
struct Run<'r> {
    run: &'r Evaluator,
    region: &'r Region,
    leaves: &'r [Leaf<'r>],
    elements: &'r dyn Elements,
}

impl Run<'_> {
    fn make<T: Float>(&self, tiling: &Tiling) -> Result<Tiled, Error> {
        let (shape, wanted, patterns) = self.shape::<T>(tiling)?;
        let shape = shape.finish();
        let workers = self.run.workers.clone();
        // A thread holds one tile of each lazy tensor at a time.
        let each_bytes = self.leaves.iter().map(|leaf| lazy_bytes(leaf.tiled)).fold(0, usize::saturating_add);
        if workers.is_plan {
            workers_for(&shape, T::SCALAR, &workers, each_bytes)?;
            return self.planned::<T>(shape, &wanted, &patterns);
        }
        let of_leaf = |leaf: usize| {
            let (wanted, patterns, leaves) = (&wanted, &patterns, self.leaves);
            move |at: usize| -> Reads {
                let ResultTile { number, pattern } = &wanted[at];
                let is_read = patterns[*pattern].kernel.as_ref().is_some_and(|(_, read)| read.contains(&leaf));
                let index = tiling.index_of(*number).filter(|_| is_read);
                index.and_then(|index| leaves[leaf].position(*number, &index)).into_iter().collect()
            }
        };
        let positions: Vec<_> = (0..self.leaves.len()).map(of_leaf).collect();
        let leaves = self.leaves.iter().zip(&positions);
        let reads: Vec<Read<'_>> = leaves.map(|(leaf, positions)| Read { of: leaf.tiled, positions }).collect();
        let making =
            ResultStep { operation: ("elements", 0), shape: &shape, scalar: T::SCALAR, each_bytes, reads: &reads };
        tiled_of(&making, &workers, |operands, at| {
            let ResultTile { number, pattern } = &wanted[at];
            self.tile::<T>(operands, tiling, *number, &patterns[*pattern], &workers)
        })
    }

    /// Computes a tile of the result. `pattern` is the expression for result tiles with the same operand tiles present.
    fn tile<T: Float>(
        &self,
        operands: &[Tiled],
        tiling: &Tiling,
        number: u64,
        pattern: &Pattern,
        workers: &Workers,
    ) -> Result<Tile, Error> {
        self.elements.go_on()?;
        let (index, extents) =
            (tiling.index_of(number).unwrap_or_default(), tiling.tile_extents(number).unwrap_or_default());
        let Some((body, read)) = &pattern.kernel else {
            // No element is computed: the tile has one number, or zeros of absent tiles.
            let bits = if let TileValue::Uniform(bits, _) = pattern.value() { bits } else { 0 };
            let mut memory = workers.memory::<T>(&extents)?;
            memory.elements_mut().fill(T::from_bits(bits));
            return memory.into_tile(&extents);
        };
        let mut inputs: Vec<Tensor> = Vec::with_capacity(read.len());
        for leaf in read {
            if let Some(position) = self.leaves[*leaf].position(number, &index) {
                inputs.push(operands[*leaf].tile_at(position)?.tensor().clone());
            }
        }
        if let (true, [input]) = (body.steps.is_empty(), inputs.as_slice()) {
            // The value is an input, broadcast to more indices.
            return Tile::copied_to(&input.broadcast_to(&extents)?, Some(&workers.pool));
        }
        let mut memory = workers.memory::<T>(&extents)?;
        self.elements.map_into(body, &inputs, &extents, &mut [T::part(memory.elements_mut())])?;
        memory.into_tile(&extents)
    }

    /// The result in a plan: a tensor that has the shape `shape`, but no tiles.
    fn planned<T: Float>(&self, shape: Shape, wanted: &[ResultTile], patterns: &[Pattern]) -> Result<Tiled, Error> {
        // Tiles that only get more axes of one index are not copied.
        let source = |wanted: &ResultTile| -> Option<(usize, usize)> {
            let (Body { steps, .. }, read) = patterns[wanted.pattern].kernel.as_ref()?;
            let ([], [leaf]) = (&steps[..], &read[..]) else { return None };
            let index = shape.tiling().index_of(wanted.number)?;
            let of = self.leaves[*leaf].tiled.shape();
            let position = self.leaves[*leaf].position(wanted.number, &index)?;
            let is_whole = of.tiling().volume(of.tiles()[position]) == shape.tiling().volume(wanted.number);
            is_whole.then_some((*leaf, position))
        };
        let sources: Option<Vec<(usize, usize)>> = wanted.iter().map(source).collect();
        let is_kept = |sources: &Vec<(usize, usize)>| sources.is_sorted_by(|a, b| a.0 == b.0 && a.1 < b.1);
        let leaf = sources.filter(is_kept).and_then(|sources| Some(sources.first()?.0));
        match leaf.and_then(|leaf| self.leaves[leaf].tiled.plan()) {
            Some(planned) => Ok(planned.stored(shape, T::SCALAR, true)),
            None => Tiled::planned(&shape, T::SCALAR),
        }
    }

    /// Finds the tiles of the result, and for each of them the pattern (the expression for tiles with the same operand
    /// tiles present).
    fn shape<T: Float>(&self, tiling: &Tiling) -> Result<(ShapeBuilder, Vec<ResultTile>, Vec<Pattern>), Error> {
        let screening = self.run.options().screening(T::SCALAR)?;
        let screening = if tiling.rank() == 0 { Screening { threshold: 0.0, ..screening } } else { screening };
        let mut shape = ShapeBuilder::new(tiling, screening);
        let (mut wanted, mut patterns) = (Vec::new(), Vec::new());
        // The pattern of each set of present tensors; `None` if its value is 0.
        let mut known: HashMap<SmallVec<[bool; 8]>, Option<usize>> = HashMap::new();
        let mut bounds: Vec<(f64, f64)> = Vec::with_capacity(self.leaves.len());
        for number in self.candidates(tiling)? {
            let volume = tiling.volume(number);
            let index: TileIndex = tiling.index_of(number).unwrap_or_default();
            if volume == 0.0 {
                continue;
            }
            let positions: SmallVec<[Option<usize>; 8]> =
                self.leaves.iter().map(|leaf| leaf.position(number, &index)).collect();
            let present: SmallVec<[bool; 8]> = positions.iter().map(Option::is_some).collect();
            let pattern = match known.get(&present) {
                Some(pattern) => *pattern,
                None => {
                    let made = Pattern::of(self.region, &present, self.elements)?;
                    let is_zero = match made.value() {
                        TileValue::Absent => true,
                        TileValue::Uniform(bits, _) => magnitude(T::SCALAR, bits) == Some(0.0),
                        TileValue::Varies => false,
                    };
                    let at = (!is_zero).then_some(patterns.len());
                    patterns.extend(at.map(|_| made));
                    known.insert(present, at);
                    at
                }
            };
            let Some(pattern) = pattern else { continue };
            bounds.clear();
            for (leaf, position) in self.leaves.iter().zip(&positions) {
                bounds.push(position.map_or((0.0, 0.0), |at| leaf.bound(at, volume)));
            }
            if shape.add(number, patterns[pattern].estimate(self.region, &bounds, volume))? {
                wanted.push(ResultTile { number, pattern });
            }
        }
        Ok((shape, wanted, patterns))
    }

    /// The numbers of the result tiles that may be present, in ascending order. If the expression is 0 where the
    /// tensors with all axes of the result are absent, these are the tiles of these tensors. Otherwise they are all
    /// tiles of the grid.
    fn candidates(&self, tiling: &Tiling) -> Result<Box<dyn Iterator<Item = u64>>, Error> {
        let present: Vec<bool> = self.leaves.iter().map(|leaf| !leaf.is_full).collect();
        if Pattern::of(self.region, &present, self.elements)?.value() == TileValue::Absent {
            let full = self.leaves.iter().filter(|leaf| leaf.is_full);
            let mut tiles: Vec<u64> = full.flat_map(|leaf| leaf.tiled.shape().tiles()).copied().collect();
            tiles.sort_unstable();
            tiles.dedup();
            return Ok(Box::new(tiles.into_iter()));
        }
        if tiling.tiles() > MOST_CANDIDATES {
            let error = limit(
                "tiles of an expression that is not zero where its operands are zero",
                tiling.tiles(),
                MOST_CANDIDATES,
            );
            return Err(error.hint("make larger tiles"));
        }
        Ok(Box::new(0..tiling.tiles()))
    }
}

impl Leaf<'_> {
    /// Upper bounds for a tile of the tensor that is repeated to `volume` elements: its norm, and the largest magnitude of an element.
    fn bound(&self, position: usize, volume: f64) -> (f64, f64) {
        let norm = self.tiled.shape().norms()[position];
        if self.is_full {
            return (norm, f64::INFINITY);
        }
        let own = self.tiled.tiling().volume(self.tiled.shape().tiles()[position]);
        // Each element is repeated `volume / own` times, so the sum of squares is larger by this factor.
        (norm * (own / volume).sqrt(), if own == 1.0 { norm } else { f64::INFINITY })
    }
}
