//! Maps (operations that compute each element by itself) over a piece of an index space, bound to the strides of their
//! operands. A line is an array of elements that lie at equal distances in memory. A map runs on one line of each
//! operand, on several lines one after the other, or in blocks of elements. For each block, operands whose elements are
//! not a line are copied.

use super::cut::PiecePartition;
use super::memory::{Memory, Operand, ValueOrigin};
use crate::tensors::evaluator::TensorHost;
pub(super) use crate::tensors::kernels::misfit as no_room;
use crate::tensors::kernels::{BodyLine, BodyLines};
use crate::tensors::lines::{Line, nested_axes};
use cembra_runtime::Scalar;
use cembra_tensor::walk::{CopiedAxis, FAR};
use cembra_tensor::{Body, Data, DataMut, Elements, Extents, Layout, Strides, Tensor};
use cembra_value::Error;
use smallvec::SmallVec;

/// The fewest elements per line (array of elements) for which a map runs line by line. A map with shorter lines runs in
/// blocks.
const LONG_LINE: usize = 256;

/// The most elements of a block. For each block, operands whose elements do not lie at equal distances in memory are
/// copied.
const BLOCK: usize = 1 << 12;

/// The most elements of a block if an operand's layout is transposed relative to the loops.
const BLOCK_ACROSS: usize = 1 << 16;
/// The fewest lines (arrays of elements) of a transposed operand for which larger blocks are worthwhile, because more
/// than one element of each cache line is then used.
const LINES_ACROSS: usize = 8;

/// The fewest elements per line (array of elements) for which the run's environment (host) evaluates a map, with
/// threads and non-temporal stores.
const LARGE: usize = 1 << 18;

/// The lines of a map's operands: for each operand, one array of elements that lie at equal distances in memory.
pub(super) type Lines<'l> = SmallVec<[Line<'l>; 4]>;

/// A map (an operation that computes each element by itself) over a piece of an index space, bound to its operands.
#[derive(Debug)]
pub(super) struct MapPiece {
    /// The operands from which the map computes its elements.
    pub(super) operands: SmallVec<[Operand; 4]>,
    /// The number of elements that the map computes for the piece of its index space.
    pub(super) count: usize,
    way: MapLoop,
}

#[derive(Debug)]
enum MapLoop {
    /// The map runs on one line (array of elements) per operand, with the distances `steps` between elements.
    One { steps: Strides, kernel: Box<BodyLines> },
    /// The map runs on one line (array of elements) per operand, with the distances `steps` between elements. The line
    /// is so large that the run's environment (host) evaluates it, possibly on several threads.
    Large { steps: Strides, body: Body },
    /// The map runs on several lines (arrays of `inner` elements) per operand, one line after the other. `axes` has the
    /// extents of the outer axes, with the stride of each operand.
    Beside { axes: Vec<(usize, Strides)>, inner: usize, steps: Strides, kernel: Box<BodyLines> },
    /// The map runs in blocks of elements. For each block, operands whose elements do not lie at equal distances in
    /// memory are copied.
    Blocks(Box<Blocks>),
}

/// Calls `visit` for each index of the space with the axes `axes`, with the position of each operand at this index.
/// `firsts` has the positions at the first index.
pub(super) fn walk(
    axes: &[(usize, Strides)],
    firsts: &mut [usize],
    mut visit: impl FnMut(&[usize]) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut index: SmallVec<[usize; 8]> = SmallVec::from_elem(0, axes.len());
    loop {
        visit(firsts)?;
        let mut axis = axes.len();
        loop {
            let Some(next) = axis.checked_sub(1) else { return Ok(()) };
            axis = next;
            let (extent, strides) = &axes[axis];
            index[axis] += 1;
            let steps = if index[axis] < *extent { 1 } else { 1 - extent.cast_signed() };
            firsts.iter_mut().zip(strides).for_each(|(at, stride)| *at = at.wrapping_add_signed(stride * steps));
            if index[axis] < *extent {
                break;
            }
            index[axis] = 0;
        }
    }
}

impl MapPiece {
    /// Binds a map to a piece of its index space that has these extents.
    pub(super) fn of(
        body: &Body,
        operands: SmallVec<[Operand; 4]>,
        extents: &[usize],
        host: &TensorHost<'_>,
    ) -> Result<MapPiece, Error> {
        let count: usize = extents.iter().product();
        let mut axes = nested_axes(extents, operands.iter().map(|operand| &operand.strides[..]));
        let way = match axes.len() {
            0 | 1 => {
                let none = || SmallVec::from_elem(1, operands.len());
                let steps = axes.pop().map_or_else(none, |(_, strides)| strides);
                let is_shared = |operand: &Operand| !matches!(operand.place, ValueOrigin::Local(_));
                if count >= LARGE && operands.iter().all(is_shared) {
                    MapLoop::Large { steps, body: body.clone() }
                } else {
                    MapLoop::One { kernel: host.kernel(body, &steps)?, steps }
                }
            }
            several => {
                let (inner, steps) = axes[several - 1].clone();
                if count == 0 {
                    MapLoop::One { kernel: host.kernel(body, &steps)?, steps }
                } else if inner >= LONG_LINE && !any_lies_across(&axes, operands.len()) {
                    axes.pop();
                    MapLoop::Beside { kernel: host.kernel(body, &steps)?, axes: axes.into_vec(), inner, steps }
                } else {
                    MapLoop::Blocks(Box::new(Blocks::of(body, &operands, &axes, host)?))
                }
            }
        };
        Ok(MapPiece { operands, count, way })
    }

    /// Returns true if the run's environment (host) evaluates the map, possibly on several threads.
    pub(super) const fn is_large(&self) -> bool {
        matches!(self.way, MapLoop::Large { .. })
    }

    /// Returns a kernel for the whole map; `None` unless the map reads one line (array of elements at equal distances)
    /// of each of `inputs`.
    pub(super) fn one_line(&self, inputs: &[(Scalar, Layout)]) -> Option<Box<BodyLine>> {
        let MapLoop::One { kernel, .. } = &self.way else { return None };
        kernel.one_line(&Operand::lines(&self.operands, inputs)?, self.count)
    }

    /// Computes the piece of the index space that begins at the index `starts`, and overwrites `to` with its elements.
    pub(super) fn run(&mut self, memory: &Memory<'_>, starts: &[usize], to: &mut DataMut<'_>) -> Result<(), Error> {
        if self.count == 0 {
            return Ok(());
        }
        let operands = &self.operands;
        match &mut self.way {
            MapLoop::One { steps, kernel } => {
                let mut lines = Lines::new();
                fill(&mut lines, memory, operands, steps, starts)?;
                kernel.run(&lines, steps, self.count, to)
            }
            MapLoop::Large { steps, body } => {
                let tensor = |(operand, step): (&Operand, &isize)| -> Result<Tensor, Error> {
                    let layout =
                        Layout::within(&[self.count], SmallVec::from_elem(*step, 1), operand.first(memory, starts));
                    Tensor::from_shared(memory.sources.shared(operand.place)?.clone(), layout)
                };
                let operands: Result<Vec<Tensor>, Error> = self.operands.iter().zip(&*steps).map(tensor).collect();
                memory.sources.host.map_into(body, &operands?, &[self.count], &mut [to.reborrow()])
            }
            MapLoop::Beside { axes, inner, steps, kernel } => {
                let mut lines = Lines::new();
                fill(&mut lines, memory, operands, steps, starts)?;
                let mut firsts: SmallVec<[usize; 4]> = lines.iter().map(|line| line.first).collect();
                let mut at = 0;
                let Some(((count, shifts), outer)) = axes.split_last() else {
                    return kernel.run(&lines, steps, *inner, to);
                };
                let most = (LARGE / *inner).max(1);
                walk(outer, &mut firsts, |firsts| {
                    for start in (0..*count).step_by(most) {
                        memory.sources.host.go_on()?;
                        for ((line, first), shift) in lines.iter_mut().zip(firsts).zip(shifts) {
                            line.first = first.wrapping_add_signed(shift.wrapping_mul(start.cast_signed()));
                        }
                        let len = *inner * most.min(count - start);
                        kernel.run(&lines, shifts, *inner, &mut to.part(at, len).ok_or_else(no_room)?)?;
                        at += len;
                    }
                    Ok(())
                })
            }
            MapLoop::Blocks(blocks) => blocks.run(memory, operands, starts, to),
        }
    }
}

/// Appends one line (array of elements) per operand to `lines`, for the piece of the index space that begins at
/// `starts`. The vector is filled in place, because this is done for many lines.
#[inline]
pub(super) fn fill<'m>(
    lines: &mut Lines<'m>,
    memory: &'m Memory<'_>,
    operands: &[Operand],
    steps: &[isize],
    starts: &[usize],
) -> Result<(), Error> {
    for (operand, step) in operands.iter().zip(steps) {
        let (data, first) = operand.begin(memory.sources, memory.locals, starts)?;
        lines.push(Line { data, first, step: *step });
    }
    Ok(())
}

/// A map that runs in blocks of its index space. Operands whose elements in a block lie at equal distances in memory
/// are read in place; other operands are copied for each block.
#[derive(Debug)]
struct Blocks {
    cut: PiecePartition<Shape>,
    /// For each operand, the distance between its consecutive elements within a block.
    steps: Strides,
    /// For each operand that is copied, the memory of the copy, and the strides of the operand.
    copies: SmallVec<[Option<(Data, Strides)>; 4]>,
    kernel: Box<BodyLines>,
}

/// The shape of a block, and how operands are copied for it.
#[derive(Debug)]
struct Shape {
    count: usize,
    /// The number of elements along the last axis.
    inner: usize,
    /// The copying order of each operand.
    ways: SmallVec<[Copying; 4]>,
}

/// The order in which an operand is copied for a block.
#[derive(Debug)]
enum Copying {
    /// The operand is copied one line (array of elements along the last axis) after the other. For each line, the list
    /// has the distance from the first element of the block to the first element of the line.
    Lines(Vec<isize>),
    /// The operand is copied along its own axes, the axis with the nearest elements first.
    Across(Vec<CopiedAxis>),
}

/// Returns true if an operand's elements are far apart along the last axis, and near each other along the axis before
/// it.
fn lies_across(extents: &[usize], strides: &[isize]) -> bool {
    let (&[.., rows, width], &[.., near, far]) = (extents, strides) else { return false };
    let is_nearer = (1..far.unsigned_abs()).contains(&near.unsigned_abs());
    is_nearer && far.unsigned_abs() >= FAR && rows >= LINES_ACROSS && width * LINES_ACROSS <= BLOCK_ACROSS
}

/// Returns true if the layout of one of the first `operands` operands is transposed relative to the loops.
fn any_lies_across(axes: &[(usize, Strides)], operands: usize) -> bool {
    let extents: Extents = axes.iter().map(|(extent, _)| *extent).collect();
    (0..operands).any(|at| lies_across(&extents, &axes.iter().map(|(_, strides)| strides[at]).collect::<Strides>()))
}

impl Blocks {
    fn of(
        body: &Body,
        operands: &[Operand],
        axes: &[(usize, Strides)],
        host: &TensorHost<'_>,
    ) -> Result<Blocks, Error> {
        let extents: Extents = axes.iter().map(|(extent, _)| *extent).collect();
        let mut steps = Strides::new();
        let mut copies = SmallVec::new();
        for (at, scalar) in body.inputs.iter().enumerate().take(operands.len()) {
            let strides: Strides = axes.iter().map(|(_, strides)| strides[at]).collect();
            let (step, copy) = match &nested_axes(&extents, std::iter::once(&strides[..]))[..] {
                [] => (1, None),
                [(_, step)] => (step[0], None),
                _ => (1, Some((Data::zeros(*scalar, 0)?, strides))),
            };
            steps.push(step);
            copies.push(copy);
        }
        let way = |shape: &[usize], copy: &Option<(Data, Strides)>| -> Copying {
            let Some((_, strides)) = copy else { return Copying::Lines(Vec::new()) };
            let outer = shape.len().saturating_sub(1);
            if lies_across(shape, strides) {
                let mut to = 1;
                let mut axes: Vec<CopiedAxis> = Vec::with_capacity(shape.len());
                for (extent, stride) in shape.iter().zip(strides).rev() {
                    axes.push(CopiedAxis { extent: *extent, from: *stride, to });
                    to *= extent.cast_signed();
                }
                return Copying::Across(axes);
            }
            let layout = Layout::within(&shape[..outer], strides[..outer].into(), 0);
            Copying::Lines(layout.positions().map(usize::cast_signed).collect())
        };
        let cut = PiecePartition::of(
            &extents,
            if any_lies_across(axes, operands.len()) { BLOCK_ACROSS } else { BLOCK },
            |shape| {
                let ways = copies.iter().map(|copy| way(shape, copy)).collect();
                Ok(Shape { count: shape.iter().product(), inner: shape.last().copied().unwrap_or(1), ways })
            },
        )?;
        Ok(Blocks { cut, kernel: host.kernel(body, &steps)?, steps, copies })
    }

    fn run(
        &mut self,
        memory: &Memory<'_>,
        operands: &[Operand],
        starts: &[usize],
        to: &mut DataMut<'_>,
    ) -> Result<(), Error> {
        let Blocks { cut, steps, copies, kernel } = self;
        let mut whole = Lines::new();
        fill(&mut whole, memory, operands, steps, starts)?;
        cut.run(|shape, starts, before| {
            memory.sources.host.go_on()?;
            for ((copy, line), way) in copies.iter_mut().zip(&whole).zip(&shape.ways) {
                if let Some((copy, strides)) = copy {
                    let shift = |at: usize, (start, stride): (&usize, &isize)| {
                        at.wrapping_add_signed(start.cast_signed() * stride)
                    };
                    let first = starts.iter().zip(&*strides).fold(line.first, shift);
                    let step = strides.last().copied().unwrap_or(1);
                    match way {
                        Copying::Lines(distances) => copy.copy_lines(line.data, first, distances, shape.inner, step),
                        Copying::Across(axes) => copy.copy_axes(line.data, first, axes),
                    }
                }
            }
            let mut lines = Lines::new();
            for ((copy, line), step) in copies.iter().zip(&whole).zip(&*steps) {
                lines.push(match copy {
                    Some((copy, _)) => Line { data: copy, first: 0, step: 1 },
                    None => Line { first: line.first.wrapping_add_signed(before.cast_signed() * step), ..*line },
                });
            }
            kernel.run(&lines, steps, shape.count, &mut to.part(before, shape.count).ok_or_else(no_room)?)
        })
    }
}
