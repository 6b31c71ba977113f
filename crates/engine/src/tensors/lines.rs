//! Lines of elements: their place in memory, that of a line of an input, and the target of a line. Which lines a plan has is decided by
//! its binding; `kernels.rs` evaluates bodies on them.

use cembra_runtime::Chains;
use cembra_tensor::{Data, DataMut, Layout, Strides, Tensor};
use smallvec::SmallVec;

/// Elements of memory: one, and how far it is to each other one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Line<'a> {
    /// The memory.
    pub(crate) data: &'a Data,
    /// The position of the first element.
    pub(crate) first: usize,
    /// From one element to the next; 0 for a single element.
    pub(crate) step: isize,
}

/// The line of an input of a body: which of several tensors has it, how this lies, and how far behind its first element the line begins.
#[derive(Clone, Debug)]
pub(crate) struct InputLine {
    input: usize,
    further: usize,
    /// The extent and the stride of the one axis that most tensors have which are lines.
    axis: (usize, isize),
    /// The same of all axes of a tensor with more.
    axes: Option<Box<[(usize, isize)]>>,
}

impl InputLine {
    pub(crate) fn of(input: usize, further: usize, layout: &Layout) -> InputLine {
        let axes: Box<[(usize, isize)]> = layout.axes().collect();
        let (axis, axes) = if let [axis] = axes[..] { (axis, None) } else { ((0, 0), Some(axes)) };
        InputLine { input, further, axis, axes }
    }

    /// Which tensor has it.
    #[must_use]
    pub(crate) const fn input(&self) -> usize {
        self.input
    }

    /// The memory of the line, and the position of its first element. None if no tensor has this number, or if the tensor has other extents or
    /// strides. The element type and the length of the memory are not compared.
    #[must_use]
    #[inline]
    pub(crate) fn find<'t>(&self, tensors: &'t [Tensor]) -> Option<(&'t Data, usize)> {
        let tensor = tensors.get(self.input)?;
        let layout = tensor.layout();
        let fits = match &self.axes {
            None => layout.is_of_axis(self.axis.0, self.axis.1),
            Some(axes) => layout.is_of_axes(axes),
        };
        fits.then(|| (tensor.data(), layout.offset().wrapping_add(self.further)))
    }
}

/// Where what comes of one line goes.
#[derive(Debug)]
pub(crate) enum OneTarget<'d> {
    /// To memory of as many elements.
    Elements(DataMut<'d>),
    /// Added to chains, that of element `i` to chain `i` modulo the number of chains, none of which is -0 before.
    Sums(&'d mut Chains),
}

/// Memory that is read soon: while a line is summed, as much of it as the line has may be fetched from a position on. There may be nothing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Soon<'a> {
    /// The memory.
    pub(crate) data: &'a Data,
    /// The position that belongs to the first line.
    pub(crate) first: usize,
    /// From it to that of the next line.
    pub(crate) shift: isize,
}

/// Returns the axes of an index space from the outermost on, each with its extent and its stride in each operand. An axis of one index is left out.
/// An axis that continues the next outer one in all operands is merged with it.
pub(crate) fn nested_axes<'s>(
    extents: &[usize],
    strides: impl Iterator<Item = &'s [isize]> + Clone,
) -> SmallVec<[(usize, Strides); 4]> {
    let mut axes: SmallVec<[(usize, Strides); 4]> = SmallVec::new();
    for (axis, extent) in extents.iter().enumerate().filter(|(_, extent)| **extent != 1) {
        let strides: Strides = strides.clone().map(|strides| strides[axis]).collect();
        let continues = |(outer, inner): (&isize, &isize)| *outer == inner.wrapping_mul(extent.cast_signed());
        match axes.last_mut() {
            Some((count, outer)) if outer.iter().zip(&strides).all(continues) => {
                *count *= extent;
                *outer = strides;
            }
            _ => axes.push((*extent, strides)),
        }
    }
    axes
}
