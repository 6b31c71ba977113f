//! Reductions over a piece of an index space, bound to the strides of their operands. If possible, floats are summed as soon as they are computed.
//! Otherwise elements are computed a block at a time, in memory that stays in the caches, and then combined. Elements are combined in the order of
//! the reference, whatever the blocks are.

use super::ahead::PrefetchPlan;
use super::cut::PiecePartition;
use super::map::{Lines, MapPiece, fill, no_room, walk};
use super::memory::{Memory, Operand};
use crate::tensors::evaluator::TensorHost;
use crate::tensors::kernels::{BodyLine, BodySums};
use crate::tensors::lines::nested_axes;
use cembra_runtime::{Addition, ChainFold, Chains, SUM_BLOCK, Scalar, is_in_order, sum_blocks};
use cembra_tensor::plan::Region;
use cembra_tensor::sums::{self, Order, ReducibleElement, SIDE_BY_SIDE, extend, take_lines, take_row};
use cembra_tensor::{
    Axis, Data, DataMut, Element, Elements, Extents, Layout, Reduction, Strides, TensorErrorKind, with_reduction,
};
use cembra_value::Error;
use cembra_value::with_data;
use smallvec::SmallVec;

/// The most elements of a block. The elements of a block are computed to memory before they are combined.
pub(super) const BLOCK: usize = 1 << 12;

/// The fewest elements for which compiled code adds the elements of a sum as it computes them. The elements of shorter
/// sums are computed to memory first.
const LONG_SUM: usize = 256;

// Sums that are added as they are computed use chains of partial sums.
const _: () = assert!(!is_in_order(LONG_SUM));

/// The most sums that are in progress at a time, so that their chains of partial sums stay in the nearest cache.
const MOST_LINES: usize = 32;

/// A reduction (such as a sum) over a piece of an index space, bound to the memory and strides of its operands.
#[derive(Debug)]
pub(super) struct ReducePiece {
    reduction: Reduction,
    /// The operands from which the reduction computes the elements to combine.
    pub(super) operands: SmallVec<[Operand; 4]>,
    /// Memory for one block of elements that are computed before they are combined.
    pub(super) block: Data,
    way: ReduceLoop,
}

#[derive(Debug)]
enum ReduceLoop {
    /// The reduced elements are in memory: the axes to reduce, and the extents of the piece.
    Memory(SmallVec<[Axis; 8]>, Extents),
    /// There are no elements to reduce: the axes to reduce, and the extents of the piece.
    Nothing(SmallVec<[Axis; 8]>, Extents),
    /// The reduction is a sum, and each element is added as soon as it is computed.
    Sums(Box<Sums>),
    /// A block has several runs (sequences of contiguous elements), and each run is combined to one result. The fields
    /// are the number of elements per run, and the blocks. In `LongRuns`, a run consists of several blocks instead.
    Runs(usize, Box<PiecePartition<MapPiece>>),
    LongRuns(usize, PiecePartition<()>, Box<PiecePartition<MapPiece>>),
    /// Neighbouring results combine adjacent elements, as the sums of a matrix's columns do: pieces of results, each with its pieces of elements to
    /// combine.
    Beside(Box<PiecePartition<(usize, PiecePartition<MapPiece>)>>),
}

#[derive(Debug)]
struct Sums {
    axes: Vec<(usize, Strides)>,
    length: usize,
    steps: Strides,
    kernel: Box<BodySums>,
    /// The chains (partial sums) for some lines (arrays of elements), which are zeros between runs. They are zeroed
    /// after a sum and not before the next one, because memory that was just written in small stores is slow to read in
    /// large loads.
    chains: Box<[Chains]>,
    prefetch: PrefetchPlan,
    /// The variant of this reduction that computes elements before it adds them. It runs if an element fails, to report
    /// the error.
    otherwise: FallbackReduction,
}

/// A reduction that computes elements before it adds them. It is bound when it is first needed.
#[derive(Debug)]
struct FallbackReduction {
    axes: SmallVec<[Axis; 8]>,
    of: Region,
    operands: SmallVec<[Operand; 4]>,
    whole: Extents,
    bound: Option<Box<ReducePiece>>,
}

/// Returns the order in which elements are combined, and the order of the axes for blocks. Axes along which elements are adjacent come last. So
/// either the elements that are combined to one result are adjacent, or the elements for neighbouring results are.
pub(super) fn turned(axes: &[Axis], rank: usize) -> (Order, SmallVec<[usize; 8]>) {
    let kept = (0..rank).filter(|axis| !axes.contains(&(*axis as Axis)));
    let reduced = axes.iter().map(|axis| usize::from(*axis));
    let order = Order::of(axes, rank);
    let turned = match order {
        Order::Chains => kept.chain(reduced).collect(),
        Order::InOrder => reduced.chain(kept).collect(),
    };
    (order, turned)
}

impl ReducePiece {
    /// Binds a reduction over `axes` of the elements that `of` computes, to a piece with the extents `whole`. If `at_once`, the elements of sums are
    /// added as soon as they are computed, where that is possible.
    pub(super) fn of(
        reduction: Reduction,
        axes: &[Axis],
        of: &Region,
        operands: SmallVec<[Operand; 4]>,
        whole: &[usize],
        host: &TensorHost<'_>,
        at_once: bool,
    ) -> Result<ReducePiece, Error> {
        let scalar = of.body.outputs.first().map_or(Scalar::Float64, |(_, scalar)| *scalar);
        let made = |way, operands| Ok(ReducePiece { reduction, operands, block: Data::zeros(scalar, 0)?, way });
        if whole.contains(&0) {
            return made(ReduceLoop::Nothing(axes.into(), whole.into()), operands);
        }
        if of.body.steps.is_empty() {
            return made(ReduceLoop::Memory(axes.into(), whole.into()), operands);
        }
        let (order, turned) = turned(axes, whole.len());
        let kept = whole.len() - axes.len();
        let extents: Extents = turned.iter().map(|axis| whole[*axis]).collect();
        let upright = operands;
        let operands: SmallVec<[Operand; 4]> = upright.iter().map(|operand| operand.turned(&turned)).collect();
        let map = |extents: &[usize]| MapPiece::of(&of.body, operands.clone(), extents, host);
        let together = |first: &[usize], then: &[usize]| -> Extents { first.iter().chain(then).copied().collect() };
        let way = match order {
            Order::Chains => {
                let (kept, reduced) = extents.split_at(kept);
                let length: usize = reduced.iter().product();
                let is_float = matches!(scalar, Scalar::Float32 | Scalar::Float64);
                let within = operands.iter().map(|operand| Strides::from(&operand.strides[kept.len()..]));
                let within: Vec<Strides> = within.collect();
                let lines = nested_axes(reduced, within.iter().map(|strides| &strides[..]));
                let sums = match &lines[..] {
                    [(_, steps)] if at_once && reduction == Reduction::Sum && is_float && length >= LONG_SUM => {
                        host.sum_kernel(&of.body, steps)?.map(|kernel| (kernel, steps.clone()))
                    }
                    _ => None,
                };
                if let Some((kernel, steps)) = sums {
                    let before = operands.iter().map(|operand| Strides::from(&operand.strides[..kept.len()]));
                    let before: Vec<Strides> = before.collect();
                    let outer = nested_axes(kept, before.iter().map(|strides| &strides[..])).into_vec();
                    let (axes, of, whole) = (axes.into(), of.clone(), whole.into());
                    let otherwise = FallbackReduction { axes, of, operands: upright, whole, bound: None };
                    let lines = outer.last().map_or(1, |(count, _)| (*count).min(MOST_LINES));
                    let (chains, prefetch) = (vec![Chains::default(); lines].into(), PrefetchPlan::Own);
                    ReduceLoop::Sums(Box::new(Sums { axes: outer, length, steps, kernel, chains, prefetch, otherwise }))
                } else if length <= BLOCK {
                    let cut = PiecePartition::of(kept, BLOCK / length, |kept| map(&together(kept, reduced)))?;
                    ReduceLoop::Runs(length, Box::new(cut))
                } else {
                    let ones = Extents::from_elem(1, kept.len());
                    let parts = PiecePartition::of(reduced, BLOCK, |reduced| map(&together(&ones, reduced)))?;
                    ReduceLoop::LongRuns(length, PiecePartition::of(kept, 1, |_| Ok(()))?, Box::new(parts))
                }
            }
            Order::InOrder => {
                let (reduced, kept) = extents.split_at(axes.len());
                let cut = PiecePartition::of(kept, SIDE_BY_SIDE, |kept| {
                    let width: usize = kept.iter().product();
                    let parts = PiecePartition::of(reduced, BLOCK / width, |reduced| map(&together(reduced, kept)))?;
                    Ok((width, parts))
                })?;
                ReduceLoop::Beside(Box::new(cut))
            }
        };
        made(way, operands)
    }

    /// The number of elements per line (array of elements) that is summed to one element; `None` unless the reduction
    /// only sums lines along one axis.
    pub(super) fn length_of_sums(&self) -> Option<usize> {
        match &self.way {
            ReduceLoop::Sums(sums) if sums.axes.len() == 1 && sums.length <= SUM_BLOCK => Some(sums.length),
            _ => None,
        }
    }

    /// Sets the memory that the reduction prefetches, if it is a sum.
    pub(super) fn set_prefetch(&mut self, prefetch: PrefetchPlan) {
        if let ReduceLoop::Sums(sums) = &mut self.way {
            sums.prefetch = prefetch;
        }
    }

    /// Returns a kernel for the whole reduction, which adds all elements to chains of partial sums. `None` unless the
    /// reduction is a sum over one short line (array of elements) of each of `inputs`, and adds elements as soon as
    /// they are computed.
    pub(super) fn one_line(&self, inputs: &[(Scalar, Layout)]) -> Option<Box<BodyLine>> {
        let ReduceLoop::Sums(sums) = &self.way else { return None };
        if !sums.axes.is_empty() || sums.length > SUM_BLOCK {
            return None;
        }
        sums.kernel.one_line(&Operand::lines(&self.operands, inputs)?, sums.length)
    }

    /// Reduces the piece of the index space that begins at the index `starts`, and overwrites `to` with the results.
    pub(super) fn run(&mut self, memory: &Memory<'_>, starts: &[usize], to: &mut DataMut<'_>) -> Result<(), Error> {
        let ReducePiece { reduction, operands, block, way } = self;
        let go_on = || memory.sources.host.go_on();
        match way {
            ReduceLoop::Memory(axes, extents) => {
                let Some(operand) = operands.first() else { return Err(no_block()) };
                let layout = Layout::within(extents, operand.strides.clone(), operand.first(memory, starts));
                sums::reduce_into(*reduction, axes, memory.data(operand.place)?, &layout, to.reborrow(), &go_on)
            }
            ReduceLoop::Nothing(axes, extents) => {
                let nothing = Layout::row_major(extents)?;
                sums::reduce_into(*reduction, axes, block, &nothing, to.reborrow(), &go_on)
            }
            ReduceLoop::Sums(sums) => {
                if sums.run(memory, starts, operands, to)? {
                    return Ok(());
                }
                let FallbackReduction { axes, of, operands, whole, bound } = &mut sums.otherwise;
                let bound = match bound {
                    Some(bound) => bound,
                    none => {
                        let made =
                            ReducePiece::of(*reduction, axes, of, operands.clone(), whole, memory.sources.host, false)?;
                        none.insert(Box::new(made))
                    }
                };
                bound.run(memory, starts, to)
            }
            ReduceLoop::Runs(length, cut) => cut.run(|map, kept, before| {
                go_on()?;
                let starts: SmallVec<[usize; 8]> = starts.iter().chain(kept).copied().collect();
                block.resize(map.count);
                map.run(memory, &starts, &mut block.all_mut())?;
                let to = to.part(before, map.count / *length).ok_or_else(no_room)?;
                with_data!(&*block, run => fold_runs(run, *reduction, *length, to))
            }),
            ReduceLoop::LongRuns(length, cut, parts) => cut.run(|(), kept, before| {
                let starts: SmallVec<[usize; 8]> = starts.iter().chain(kept).copied().collect();
                let mut part = |block: &mut Data, take: &mut dyn FnMut(&Data)| {
                    parts.run(|map, reduced, _| {
                        go_on()?;
                        let starts: SmallVec<[usize; 8]> = starts.iter().chain(reduced).copied().collect();
                        block.resize(map.count);
                        map.run(memory, &starts, &mut block.all_mut())?;
                        take(block);
                        Ok(())
                    })
                };
                let (like, to) = (block.none(), to.part(before, 1).ok_or_else(no_room)?);
                with_data!(&like, like => fold_parts(like, *reduction, *length, block, &mut part, to))
            }),
            ReduceLoop::Beside(cut) => cut.run(|(width, parts), kept, before| {
                let mut part = |block: &mut Data, take: &mut dyn FnMut(&Data)| {
                    parts.run(|map, reduced, _| {
                        go_on()?;
                        let starts: SmallVec<[usize; 8]> = starts.iter().chain(reduced).chain(kept).copied().collect();
                        block.resize(map.count);
                        map.run(memory, &starts, &mut block.all_mut())?;
                        take(block);
                        Ok(())
                    })
                };
                let (like, to) = (block.none(), to.part(before, *width).ok_or_else(no_room)?);
                with_data!(&like, like => fold_beside(like, *reduction, *width, block, &mut part, to))
            }),
        }
    }
}

/// A function that computes a sequence of blocks in the given memory, and passes each block to a callback.
type Parts<'p> = &'p mut dyn FnMut(&mut Data, &mut dyn FnMut(&Data)) -> Result<(), Error>;

impl Sums {
    /// Runs the sums; returns false if an element fails or may fail.
    fn run(
        &mut self,
        memory: &Memory<'_>,
        starts: &[usize],
        operands: &[Operand],
        to: &mut DataMut<'_>,
    ) -> Result<bool, Error> {
        let Sums { axes, length, steps, kernel, chains, prefetch, .. } = self;
        let mut lines = Lines::new();
        fill(&mut lines, memory, operands, steps, starts)?;
        if axes.is_empty() && *length <= SUM_BLOCK {
            // A single sum needs no loop.
            let prefetches = prefetch.line_prefetches(memory, starts, &lines, 0, steps);
            let succeeds = kernel.sum_each(&lines, &prefetches, steps, [*length, 1], chains);
            let total = chains[0].take();
            return if put_total(total, to) { Ok(succeeds) } else { Err(no_block()) };
        }
        if !matches!(to, DataMut::Float32(_) | DataMut::Float64(_)) {
            return Err(no_block());
        }
        let mut at = 0;
        let mut put = |total: f64| {
            match to {
                DataMut::Float32(to) => to[at] = total as f32,
                DataMut::Float64(to) => to[at] = total,
                _ => {}
            }
            at += 1;
        };
        let mut firsts: SmallVec<[usize; 4]> = lines.iter().map(|line| line.first).collect();
        let mut succeeds = true;
        // Adds some lines from `start` on, or parts of one; `counts` has the elements per line and the number of lines.
        let mut sum =
            |firsts: &[usize], (start, shifts): (usize, &[isize]), counts: [usize; 2], put: &mut dyn FnMut(f64)| {
                memory.sources.host.go_on()?;
                for ((line, first), shift) in lines.iter_mut().zip(firsts).zip(shifts) {
                    line.first = first.wrapping_add_signed(shift.wrapping_mul(start.cast_signed()));
                }
                let prefetches = prefetch.line_prefetches(memory, starts, &lines, start, shifts);
                succeeds = succeeds && kernel.sum_each(&lines, &prefetches, shifts, counts, chains);
                chains[..counts[1]].iter_mut().for_each(|chains| put(chains.take()));
                Ok(())
            };
        match axes.split_last() {
            Some(((count, shifts), outer)) if *length <= SUM_BLOCK => {
                let most = (SUM_BLOCK / *length).min(MOST_LINES);
                walk(outer, &mut firsts, |firsts| {
                    (0..*count).step_by(most).try_for_each(|start| {
                        sum(firsts, (start, shifts), [*length, most.min(count - start)], &mut put)
                    })
                })?;
            }
            _ => walk(axes, &mut firsts, |firsts| {
                let mut total = ChainFold::new(*length, 0.0, Addition);
                for block in sum_blocks(*length) {
                    sum(firsts, (block.start, steps), [block.len(), 1], &mut |part| total.append_block(part))?;
                }
                put(total.finish());
                Ok(())
            })?,
        }
        Ok(succeeds)
    }
}

/// Writes the sum `total` to `to`, which must have one element. Returns false if that element is not a float.
pub(super) fn put_total(total: f64, to: &mut DataMut<'_>) -> bool {
    match to {
        DataMut::Float32([to]) => *to = total as f32,
        DataMut::Float64([to]) => *to = total,
        _ => return false,
    }
    true
}

#[cold]
fn no_block() -> Error {
    Error::tensors(TensorErrorKind::ElementType, "the elements have another type")
}

fn of<T: Element>(data: DataMut<'_>) -> Result<&mut [T], Error> {
    T::of_part(data).ok_or_else(no_block)
}

/// Reduces consecutive runs (sequences of `length` elements), each to one result.
pub(super) fn fold_runs<T: ReducibleElement>(
    elements: &[T],
    reduction: Reduction,
    length: usize,
    to: DataMut<'_>,
) -> Result<(), Error> {
    let to = of::<T>(to)?;
    with_reduction!(T, reduction, how => take_lines(elements, length, how, to));
    Ok(())
}

/// Reduces one run of `length` elements to one result. `parts` computes the elements, part by part.
fn fold_parts<T: ReducibleElement>(
    _: &[T],
    reduction: Reduction,
    length: usize,
    block: &mut Data,
    parts: Parts<'_>,
    to: DataMut<'_>,
) -> Result<(), Error> {
    with_reduction!(T, reduction, how => {
        let mut fold = Order::Chains.fold(length, how);
        parts(block, &mut |part| extend(&mut fold, T::of(part).unwrap_or_default()))?;
        if let Some(to) = of::<T>(to)?.first_mut() {
            *to = T::narrow(fold.finish());
        }
    });
    Ok(())
}

/// Reduces rows of `width` elements, element by element, to `width` adjacent results. `parts` computes the rows, some
/// at a time.
fn fold_beside<T: ReducibleElement>(
    _: &[T],
    reduction: Reduction,
    width: usize,
    block: &mut Data,
    parts: Parts<'_>,
    to: DataMut<'_>,
) -> Result<(), Error> {
    with_reduction!(T, reduction, how => {
        let (neutral, combine) = how;
        let mut sums = vec![neutral; width];
        parts(block, &mut |part| {
            for row in T::of(part).unwrap_or_default().chunks_exact(width) {
                take_row(&mut sums, row, combine);
            }
        })?;
        of::<T>(to)?.iter_mut().zip(sums).for_each(|(to, sum)| *to = T::narrow(sum));
    });
    Ok(())
}
