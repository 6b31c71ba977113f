//! Several reductions that share one loop, bound to the strides of their operands. For each block of elements, the loop computes and combines the
//! elements of all reductions before the next block, so that operands that they share are read from memory once. Each reduction combines elements in
//! the same order as it would alone.

use super::ahead::own_prefetches;
use super::cut::PiecePartition;
use super::map::{Lines, MapPiece, fill, no_room};
use super::memory::{Memory, Operand, Slot, Sources, own};
use super::reduce::{BLOCK, fold_runs, put_total, turned};
use super::{Binding, BoundGuard, BoundStep, BoundWork};
use crate::tensors::evaluator::TensorHost;
use crate::tensors::kernels::BodySums;
use crate::tensors::lines::{Line, nested_axes};
use crate::tensors::product::ProductCounters;
use cembra_runtime::{Addition, ChainFold, SUM_BLOCK, Scalar};
use cembra_tensor::plan::{Step, Work};
use cembra_tensor::sums::{Accumulator, Order, ReducibleElement, SIDE_BY_SIDE, extend, take_row};
use cembra_tensor::{
    Axis, Body, Data, DataMut, Element, Elements, Extents, Layout, Reduction, Strides, Tensor, TensorNodeId,
    with_reduction,
};
use cembra_value::Error;
use cembra_value::with_data;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::any::Any;
use std::marker::PhantomData;
use std::ops::Range;

/// The most elements of a block if each operand is one line (elements in memory at equal distances). Some sums of such
/// a block may be added as they are computed.
const LINE: usize = 1 << 13;

/// The fewest elements for which a shared loop is worthwhile. Fewer elements stay in the nearest cache after the first
/// reduction, so that the next reduction reads them from there.
const LARGE: usize = 1 << 13;

/// A reduction, the body that computes its elements, and the operands of the body.
type Reduce<'r> = (Reduction, &'r Body, SmallVec<[Operand; 4]>);

/// The slots that results are written to, each with its number of elements.
pub(super) type Targets = SmallVec<[(u32, usize); 4]>;

/// The reductions of one block of elements, in progress: one for each reduction of a shared loop.
pub(super) type Block = Vec<Box<dyn Folding>>;

/// Several reductions (such as sums) over the same axes of one index space, computed in one loop that reads shared operands once.
#[derive(Debug)]
pub(super) struct SharedReductions {
    pub(super) members: Vec<Member>,
    pub(super) way: SharedLoop,
    source: Source,
}

/// The reductions that the loop was bound from. The loop can be bound again from them, such that elements are computed
/// before they are added.
#[derive(Debug)]
struct Source {
    reduces: Vec<(Reduction, Body, SmallVec<[Operand; 4]>)>,
    axes: SmallVec<[Axis; 8]>,
    whole: Extents,
}

/// A reduction that shares its loop with other reductions.
#[derive(Debug)]
pub(super) struct Member {
    reduction: Reduction,
    /// Memory for one block of elements that are computed before they are combined.
    pub(super) block: Data,
}

/// The sources from which the elements of a block come: one for each reduction of a shared loop.
pub(super) type Pieces = Vec<Piece>;

/// The loop that computes several reductions together, by the arrangement of their elements.
#[derive(Debug)]
pub(super) enum SharedLoop {
    /// A block has several runs (sequences of contiguous elements), and each run is combined to one result. The fields
    /// are the number of elements per run, and the blocks.
    Runs(usize, PiecePartition<Pieces>),
    /// Long runs of elements, each combined to one result in several parts.
    LongRuns(LongRuns),
    /// Neighbouring results combine adjacent elements, as the sums of a matrix's columns do: pieces of results, each with its pieces of elements to
    /// combine.
    Beside(PiecePartition<(usize, PiecePartition<Pieces>)>),
}

/// Long runs (sequences of elements) of `length` elements each. The elements of a run are combined to one result, part
/// by part.
#[derive(Debug)]
pub(super) struct LongRuns {
    pub(super) length: usize,
    pub(super) kept: PiecePartition<()>,
    pub(super) parts: PiecePartition<Pieces>,
    /// For each reduction, true if it is a sum whose elements are added as soon as they are computed.
    pub(super) added: Vec<bool>,
    /// The number of parts per block of the reference, which sums each block by itself; `None` if such blocks do not
    /// consist of whole parts.
    pub(super) block: Option<usize>,
}

/// The source of the elements that one reduction combines for a block: a map, memory, or a kernel that adds elements at once.
#[derive(Debug)]
pub(super) enum Piece {
    /// A map computes the elements.
    Computed(Box<MapPiece>),
    /// The elements are contiguous in memory: the operand, and the number of elements.
    Memory(Operand, usize),
    /// The elements are in memory, and are copied to be contiguous: the operand, and the extents to copy.
    Copied(Operand, Extents),
    /// A kernel computes the elements of a line (array of elements) and adds each to chains of partial sums at once.
    Added(Box<Added>),
}

/// A kernel that computes the `count` elements of a line (array of elements) and adds each to chains of partial sums at
/// once, with its operands.
#[derive(Debug)]
pub(super) struct Added {
    operands: SmallVec<[Operand; 4]>,
    steps: Strides,
    kernel: Box<BodySums>,
    count: usize,
}

impl Piece {
    fn of(body: &Body, operands: &[Operand], extents: &[usize], host: &TensorHost<'_>) -> Result<Piece, Error> {
        let operand = body.outputs.first().and_then(|(output, _)| operands.get(*output as usize));
        let Some(operand) = operand.filter(|_| body.steps.is_empty()) else {
            return Ok(Piece::Computed(Box::new(MapPiece::of(body, operands.into(), extents, host)?)));
        };
        let axes = nested_axes(extents, std::iter::once(&operand.strides[..]));
        let is_line = axes.iter().all(|(_, steps)| steps[..] == [1]) && axes.len() < 2;
        Ok(if is_line {
            Piece::Memory(operand.clone(), extents.iter().product())
        } else {
            Piece::Copied(operand.clone(), extents.into())
        })
    }

    /// Makes a piece whose floats are added as they are computed, for pieces of a line (array of elements) that begin
    /// at multiples of the number of chains (partial sums); `None` if no kernel does that.
    fn of_sum(
        (reduction, body, _): &Reduce<'_>,
        operands: &[Operand],
        extents: &[usize],
        host: &TensorHost<'_>,
    ) -> Result<Option<Piece>, Error> {
        let is_float = matches!(body.outputs.first(), Some((_, Scalar::Float32 | Scalar::Float64)));
        let Some((count, _)) = extents.split_last().filter(|_| *reduction == Reduction::Sum && is_float) else {
            return Ok(None);
        };
        let steps: Strides = operands.iter().filter_map(|operand| operand.strides.last().copied()).collect();
        let kernel = host.sum_kernel(body, &steps)?;
        Ok(kernel
            .map(|kernel| Piece::Added(Box::new(Added { operands: operands.into(), steps, kernel, count: *count }))))
    }

    /// Adds the elements of the piece of the index space that begins at `starts` to `fold`. Returns false if they
    /// cannot be added as they are computed.
    fn fold(
        &mut self,
        memory: &Memory<'_>,
        starts: &[usize],
        block: &mut Data,
        fold: &mut dyn Folding,
    ) -> Result<bool, Error> {
        if let Piece::Added(added) = self {
            let Added { operands, steps, kernel, count } = &mut **added;
            let mut lines = Lines::new();
            fill(&mut lines, memory, operands, steps, starts)?;
            return Ok(fold.add(kernel, &lines, *count));
        }
        let (data, first, count) = self.run(memory, starts, block)?;
        fold.take(data, first, count).map(|()| true)
    }

    /// Returns the elements of the piece of the index space that begins at `starts`: their memory, the first position,
    /// and their number.
    fn run<'p>(
        &mut self,
        memory: &'p Memory<'_>,
        starts: &[usize],
        block: &'p mut Data,
    ) -> Result<(&'p Data, usize, usize), Error> {
        match self {
            Piece::Computed(map) => {
                block.resize(map.count);
                map.run(memory, starts, &mut block.all_mut())?;
            }
            Piece::Memory(operand, count) => {
                return Ok((memory.sources.shared(operand.place)?, operand.first(memory, starts), *count));
            }
            Piece::Added(_) => return Err(no_room()),
            Piece::Copied(operand, extents) => {
                let layout = Layout::within(extents, operand.strides.clone(), operand.first(memory, starts));
                block.resize(0);
                block.append_ordered(memory.sources.shared(operand.place)?, &layout);
            }
        }
        Ok((&*block, 0, block.len()))
    }
}

/// A reduction in progress, for any element type and any kind of reduction (sum, maximum).
pub(super) trait Folding: Any + Send {
    /// Combines the next `count` elements, which are in `data` from position `first` on.
    fn take(&mut self, data: &Data, first: usize, count: usize) -> Result<(), Error>;

    /// Ends the reduction, and overwrites `to` with its result.
    fn finish(self: Box<Self>, to: DataMut<'_>) -> Result<(), Error>;

    /// Appends the result of the next block's reduction, which must be of the same kind. The elements combined so far must be whole blocks.
    fn append(&mut self, _: Box<dyn Folding>) -> Result<(), Error> {
        Err(no_room())
    }

    /// Adds the next `count` elements to the reduction. A kernel computes these elements from lines (arrays of
    /// elements) of the operands. Returns false if the reduction cannot add elements in this way, or if an element
    /// fails.
    fn add(&mut self, _: &mut BodySums, _: &[Line<'_>], _: usize) -> bool {
        false
    }
}

/// A sum of floats that a kernel adds to chains of partial sums as it computes them.
struct Sum(ChainFold<f64, Addition>);

impl Folding for Sum {
    fn add(&mut self, kernel: &mut BodySums, lines: &[Line<'_>], count: usize) -> bool {
        let Some(chains) = self.0.borrow_chains(count) else { return false };
        let shifts = SmallVec::<[isize; 4]>::from_elem(0, lines.len());
        let prefetches = own_prefetches(lines, &shifts);
        let succeeds = kernel.sum_each(lines, &prefetches, &shifts, [count, 1], std::slice::from_mut(chains));
        self.0.record_added(count);
        succeeds
    }

    fn take(&mut self, _: &Data, _: usize, _: usize) -> Result<(), Error> {
        Err(no_room())
    }

    fn append(&mut self, block: Box<dyn Folding>) -> Result<(), Error> {
        self.0.append_fold(&own_kind::<Sum>(block)?.0);
        Ok(())
    }

    fn finish(self: Box<Self>, mut to: DataMut<'_>) -> Result<(), Error> {
        if put_total(self.0.finish(), &mut to) { Ok(()) } else { Err(no_room()) }
    }
}

/// A reduction to one result.
struct SingleReduction<T, W, C>(ChainFold<W, C>, PhantomData<T>);

/// Reductions to results that are side by side; each row has the next element of every result.
struct AdjacentReduction<T, W, C>(Vec<W>, C, PhantomData<T>);

fn own_kind<F: Folding>(block: Box<dyn Folding>) -> Result<Box<F>, Error> {
    let block: Box<dyn Any> = block;
    block.downcast().map_err(|_| no_room())
}

fn slice<T: Element>(data: &Data, first: usize, count: usize) -> Result<&[T], Error> {
    T::of(data).and_then(|elements| elements.get(first..first + count)).ok_or_else(no_room)
}

fn part<T: Element>(to: DataMut<'_>, count: usize) -> Result<&mut [T], Error> {
    T::of_part(to).filter(|to| to.len() == count).ok_or_else(no_room)
}

impl<T: ReducibleElement, W: Accumulator<T>, C: Fn(W, W) -> W + Copy + Send + 'static> Folding
    for SingleReduction<T, W, C>
{
    fn append(&mut self, block: Box<dyn Folding>) -> Result<(), Error> {
        self.0.append_fold(&own_kind::<SingleReduction<T, W, C>>(block)?.0);
        Ok(())
    }

    fn take(&mut self, data: &Data, first: usize, count: usize) -> Result<(), Error> {
        extend(&mut self.0, slice::<T>(data, first, count)?);
        Ok(())
    }

    fn finish(self: Box<Self>, to: DataMut<'_>) -> Result<(), Error> {
        part::<T>(to, 1)?[0] = T::narrow(self.0.finish());
        Ok(())
    }
}

impl<T: ReducibleElement, W: Accumulator<T>, C: Fn(W, W) -> W + Copy + Send + 'static> Folding
    for AdjacentReduction<T, W, C>
{
    fn take(&mut self, data: &Data, first: usize, count: usize) -> Result<(), Error> {
        for row in slice::<T>(data, first, count)?.chunks_exact(self.0.len()) {
            take_row(&mut self.0, row, self.1);
        }
        Ok(())
    }

    fn finish(self: Box<Self>, to: DataMut<'_>) -> Result<(), Error> {
        part::<T>(to, self.0.len())?.iter_mut().zip(self.0).for_each(|(to, made)| *to = T::narrow(made));
        Ok(())
    }
}

impl Member {
    /// Begins a reduction of `length` elements to one result.
    fn one(&self, length: usize) -> Box<dyn Folding> {
        fn one<T: ReducibleElement>(_: &[T], reduction: Reduction, length: usize) -> Box<dyn Folding> {
            with_reduction!(T, reduction, how => {
                Box::new(SingleReduction::<T, _, _>(Order::Chains.fold(length, how), PhantomData))
            })
        }
        with_data!(&self.block, like => one(like, self.reduction, length))
    }

    /// Begins reductions to `width` results side by side.
    fn beside(&self, width: usize) -> Box<dyn Folding> {
        fn beside<T: ReducibleElement>(_: &[T], reduction: Reduction, width: usize) -> Box<dyn Folding> {
            with_reduction!(T, reduction, how => {
                Box::new(AdjacentReduction::<T, _, _>(vec![how.0; width], how.1, PhantomData))
            })
        }
        with_data!(&self.block, like => beside(like, self.reduction, width))
    }
}

impl Binding<'_> {
    /// Binds reductions that can share a loop, and the maps that are applied to their results. Also returns the slots that only these maps read.
    pub(super) fn together(
        &mut self,
        members: &[Step],
        own: &mut FxHashMap<TensorNodeId, u32>,
    ) -> Result<(Vec<BoundStep>, SmallVec<[u32; 4]>), Error> {
        let (mut steps, mut between) = (Vec::new(), SmallVec::new());
        let Some(shared) = self.shared_loop(members)? else {
            for member in members {
                steps.push(self.step(member, own)?);
            }
            return Ok((steps, between));
        };
        let (mut targets, mut maps) = (Targets::new(), Vec::new());
        for member in members {
            let then = if let Work::Reduce { then, .. } = &member.work { then.as_ref() } else { None };
            let made = self.made(then.map_or(member.node, |then| then.inputs[0].0))?;
            targets.push(made);
            if let Some(then) = then {
                between.push(made.0);
                maps.push(Step::new(member.node, Work::Map(then.clone())));
            } else {
                own.insert(member.node, made.0);
            }
        }
        let (target, len) = targets[0];
        let work = BoundWork::SharedReductions(shared, targets);
        steps.push(BoundStep { work, target, len, guard: BoundGuard::default(), shrunk: SmallVec::new() });
        for map in &maps {
            steps.push(self.step(map, own)?);
        }
        Ok((steps, between))
    }

    /// Binds a shared loop; `None` if it is not worthwhile, because the elements fit a cache or several threads compute
    /// pieces. There is a worker for each thread if there are fewer results than threads, and blocks that threads can
    /// share.
    fn shared_loop(&self, members: &[Step]) -> Result<Option<Vec<SharedReductions>>, Error> {
        let mut reduces = Vec::with_capacity(members.len());
        let mut common = None;
        for member in members {
            let Work::Reduce { reduction, axes, of, .. } = &member.work else { return Ok(None) };
            let whole = &of.extents[..];
            let results = (0..whole.len()).filter(|axis| !axes.contains(&(*axis as Axis))).map(|axis| whole[axis]);
            let results = results.product::<usize>();
            let is_shared = self.is_shared_out(member);
            if whole.iter().product::<usize>() < LARGE || (is_shared && results >= self.host.threads()) {
                return Ok(None);
            }
            let operands = self.operands(of, whole, &[], &FxHashMap::default())?;
            reduces.push((*reduction, &of.body, operands));
            common = Some((&axes[..], whole, results, is_shared));
        }
        let Some((axes, whole, results, is_shared)) = common else { return Ok(None) };
        let worker = || SharedReductions::of(&reduces, axes, whole, self.host, true);
        let mut workers = vec![worker()?];
        let blocks = if is_shared { workers[0].blocks() } else { 1 };
        for _ in 1..self.host.threads().min(blocks) {
            workers.push(worker()?);
        }
        // For one reduction, or for pieces of several results, other loops are better on one thread.
        let is_alone = workers.len() == 1 && (members.len() == 1 || (is_shared && results > 1));
        Ok((!is_alone).then_some(workers))
    }
}

/// Runs a shared loop, with several workers if it is divided among threads, and writes the results to slots.
pub(super) fn run(
    workers: &mut [SharedReductions],
    targets: &Targets,
    inputs: &[Tensor],
    slots: &mut [Slot],
    host: &TensorHost<'_>,
) -> Result<(), Error> {
    let mut made = SmallVec::<[_; 4]>::new();
    for (target, len) in targets {
        made.push(slots[*target as usize].take(*len)?);
    }
    let to = made.iter_mut().map(|made| Ok(own(made)?.all_mut()));
    let mut to = to.collect::<Result<SmallVec<[DataMut<'_>; 4]>, Error>>()?;
    let sources = Sources { inputs, slots, host };
    if let [all, others @ ..] = workers
        && (others.is_empty() || all.blocks() > SharedReductions::MOST_BLOCKS)
    {
        let memory = Memory { sources: &sources, locals: &mut [], counters: &mut ProductCounters::default() };
        all.run(&memory, &mut to)?;
    } else {
        SharedReductions::run_blocks(workers, &sources, &mut to)?;
    }
    drop(to);
    for ((target, _), made) in targets.iter().zip(made) {
        slots[*target as usize].put(made);
    }
    Ok(())
}

impl SharedReductions {
    /// Binds reductions over `axes` of an index space with the extents `whole`. No extent may be 0. If `at_once`, elements of sums are added as soon
    /// as they are computed, where that is possible.
    pub(super) fn of(
        reduces: &[Reduce<'_>],
        axes: &[Axis],
        whole: &[usize],
        host: &TensorHost<'_>,
        at_once: bool,
    ) -> Result<SharedReductions, Error> {
        let (order, turned) = turned(axes, whole.len());
        let kept = whole.len() - axes.len();
        let extents: Extents = turned.iter().map(|axis| whole[*axis]).collect();
        let turn = |operands: &SmallVec<[Operand; 4]>| operands.iter().map(|operand| operand.turned(&turned)).collect();
        let operands: Vec<SmallVec<[Operand; 4]>> = reduces.iter().map(|(_, _, operands)| turn(operands)).collect();
        let pieces = |first: &[usize], then: &[usize]| -> Result<Pieces, Error> {
            let extents: Extents = first.iter().chain(then).copied().collect();
            let piece =
                |((_, body, _), operands): (&Reduce<'_>, &SmallVec<_>)| Piece::of(body, operands, &extents, host);
            reduces.iter().zip(&operands).map(piece).collect()
        };
        let way = match order {
            Order::Chains => {
                let (kept, reduced) = extents.split_at(kept);
                let length: usize = reduced.iter().product();
                if length <= BLOCK {
                    SharedLoop::Runs(length, PiecePartition::of(kept, BLOCK / length, |kept| pieces(kept, reduced))?)
                } else {
                    let ones = Extents::from_elem(1, kept.len());
                    let all: Vec<Strides> =
                        operands.iter().flatten().map(|own| own.strides[kept.len()..].into()).collect();
                    let (parts, block) = if let [(_, steps)] =
                        &nested_axes(reduced, all.iter().map(|strides| &strides[..]))[..]
                    {
                        let mut steps = steps.iter();
                        let mut line = |own: &Operand| own.with_line(kept.len(), steps.next().copied().unwrap_or(0));
                        let operands: Vec<SmallVec<[Operand; 4]>> =
                            operands.iter().map(|own| own.iter().map(&mut line).collect()).collect();
                        let parts = PiecePartition::of(&[length], LINE, |part| {
                            line_pieces(reduces, &operands, &[&ones, part].concat(), host, at_once)
                        })?;
                        (parts, Some(SUM_BLOCK / LINE))
                    } else {
                        (PiecePartition::of(reduced, BLOCK, |reduced| pieces(&ones, reduced))?, None)
                    };
                    let is_added = |piece: &Piece| matches!(piece, Piece::Added(_));
                    let added = parts.full.iter().map(is_added).collect();
                    SharedLoop::LongRuns(LongRuns {
                        length,
                        kept: PiecePartition::of(kept, 1, |_| Ok(()))?,
                        parts,
                        added,
                        block,
                    })
                }
            }
            Order::InOrder => {
                let (reduced, kept) = extents.split_at(axes.len());
                SharedLoop::Beside(PiecePartition::of(kept, SIDE_BY_SIDE, |kept| {
                    let width: usize = kept.iter().product();
                    Ok((width, PiecePartition::of(reduced, BLOCK / width, |reduced| pieces(reduced, kept))?))
                })?)
            }
        };
        let member = |(reduction, body, _): &Reduce<'_>| -> Result<Member, Error> {
            let scalar = body.outputs.first().map_or(Scalar::Float64, |(_, scalar)| *scalar);
            Ok(Member { reduction: *reduction, block: Data::zeros(scalar, 0)? })
        };
        let own = |(reduction, body, of): &Reduce<'_>| (*reduction, (*body).clone(), of.clone());
        let source = Source { reduces: reduces.iter().map(own).collect(), axes: axes.into(), whole: whole.into() };
        Ok(SharedReductions { members: reduces.iter().map(member).collect::<Result<_, Error>>()?, way, source })
    }

    /// Combines all elements, and writes the result of each reduction to `to`.
    fn run(&mut self, memory: &Memory<'_>, to: &mut [DataMut<'_>]) -> Result<(), Error> {
        if self.succeeds(memory, to)? {
            return Ok(());
        }
        *self = self.otherwise(memory.sources.host)?;
        self.succeeds(memory, to).map(|_| ())
    }

    /// Binds the reductions again such that all elements are computed before they are added. Such a binding is always possible. The caller keeps the
    /// result for later runs.
    pub(super) fn otherwise(&self, host: &TensorHost<'_>) -> Result<SharedReductions, Error> {
        let Source { reduces, axes, whole } = &self.source;
        let own: Vec<Reduce<'_>> = reduces.iter().map(|(how, body, of)| (*how, body, of.clone())).collect();
        SharedReductions::of(&own, axes, whole, host, false)
    }

    /// Runs the loop; returns false if elements cannot be added as they are computed.
    fn succeeds(&mut self, memory: &Memory<'_>, to: &mut [DataMut<'_>]) -> Result<bool, Error> {
        let SharedReductions { members, way, .. } = self;
        let mut succeeds = true;
        match way {
            SharedLoop::Runs(length, cut) => cut.run(|pieces, kept, before| {
                memory.sources.host.go_on()?;
                for ((member, piece), to) in members.iter_mut().zip(pieces).zip(&mut *to) {
                    let (data, first, count) = piece.run(memory, kept, &mut member.block)?;
                    let to = to.part(before, count / *length).ok_or_else(no_room)?;
                    with_data!(data, all => {
                        let run = all.get(first..first + count).ok_or_else(no_room)?;
                        fold_runs(run, member.reduction, *length, to)
                    })?;
                }
                Ok(())
            }),
            SharedLoop::LongRuns(runs) => {
                let LongRuns { length, kept, parts, added, .. } = runs;
                kept.run(|(), kept, before| {
                    let mut folds = folds(members, added, *length);
                    let all = 0..usize::MAX;
                    succeeds &= fold_parts(members, parts, all, &mut folds, memory, |part| [kept, part].concat())?;
                    finish(folds, to, before, 1)
                })
            }
            SharedLoop::Beside(cut) => cut.run(|(width, parts), kept, before| {
                let mut folds: Vec<_> = members.iter().map(|member| member.beside(*width)).collect();
                let all = 0..usize::MAX;
                fold_parts(members, parts, all, &mut folds, memory, |part| [part, kept].concat())?;
                finish(folds, to, before, *width)
            }),
        }?;
        Ok(succeeds)
    }
}

/// Returns the sources of the elements in a piece of a line (array of elements), one for each of `reduces`.
fn line_pieces(
    reduces: &[Reduce<'_>],
    operands: &[SmallVec<[Operand; 4]>],
    extents: &[usize],
    host: &TensorHost<'_>,
    at_once: bool,
) -> Result<Pieces, Error> {
    let piece = |(reduce, operands): (&Reduce<'_>, &SmallVec<[Operand; 4]>)| {
        let sum = if at_once { Piece::of_sum(reduce, operands, extents, host)? } else { None };
        sum.map_or_else(|| Piece::of(reduce.1, operands, extents, host), Ok)
    };
    reduces.iter().zip(operands).map(piece).collect()
}

/// Begins the reductions of runs (sequences of elements) of `length` elements, one for each of `members`.
pub(super) fn folds(members: &[Member], added: &[bool], length: usize) -> Block {
    let fold = |(member, is_added): (&Member, &bool)| -> Box<dyn Folding> {
        if *is_added { Box::new(Sum(ChainFold::new(length, 0.0, Addition))) } else { member.one(length) }
    };
    members.iter().zip(added).map(fold).collect()
}

/// Combines the parts `which` of long runs (sequences of elements that are combined to one result). `starts` converts
/// the first index of a part to the first index of its pieces.
pub(super) fn fold_parts(
    members: &mut [Member],
    parts: &mut PiecePartition<Pieces>,
    which: Range<usize>,
    folds: &mut [Box<dyn Folding>],
    memory: &Memory<'_>,
    starts: impl Fn(&[usize]) -> Vec<usize>,
) -> Result<bool, Error> {
    let mut succeeds = true;
    parts.run_some(which, |pieces, part, _| {
        memory.sources.host.go_on()?;
        let starts = starts(part);
        for ((member, piece), fold) in members.iter_mut().zip(pieces).zip(&mut *folds) {
            succeeds = succeeds && piece.fold(memory, &starts, &mut member.block, &mut **fold)?;
        }
        Ok(())
    })?;
    Ok(succeeds)
}

/// Writes the results of all reductions to `to`: for each reduction, `count` elements, which begin at position `first`.
pub(super) fn finish(folds: Block, to: &mut [DataMut<'_>], first: usize, count: usize) -> Result<(), Error> {
    for (fold, to) in folds.into_iter().zip(to) {
        fold.finish(to.part(first, count).ok_or_else(no_room)?)?;
    }
    Ok(())
}
