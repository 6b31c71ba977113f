//! Lines of elements; a line is a sequence of elements in memory at equal distances. The types here describe where a line is, which lines an element
//! expression reads, and where the results for a line are written. The binding of a plan decides which lines are processed; `kernels.rs` evaluates
//! element expressions on them.

use cembra_runtime::Chains;
use cembra_tensor::{Data, DataMut, Layout, Strides, Tensor};
use smallvec::SmallVec;

/// A line: elements in memory at equal distances, given by the memory, the first position and the distance.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Line<'a> {
    /// The memory that contains the line's elements.
    pub(crate) data: &'a Data,
    /// The position in memory of the line's first element.
    pub(crate) first: usize,
    /// The distance from one element of the line to the next, in elements; 0 if all are the same element.
    pub(crate) step: isize,
}

/// A line that an element expression reads from a tensor: the index of the tensor, the layout that it must have, and the offset of the line's first
/// element from the tensor's first element.
#[derive(Clone, Debug)]
pub(crate) struct InputLine {
    input: usize,
    further: usize,
    /// The extent and the stride of the only axis, as in most tensors that are lines.
    axis: (usize, isize),
    /// The extents and strides of all axes, if their number is not 1.
    axes: Option<Box<[(usize, isize)]>>,
}

impl InputLine {
    /// Makes a line of the tensor with index `input`, which must have this layout. The line begins `further` elements after the tensor's first
    /// element.
    pub(crate) fn of(input: usize, further: usize, layout: &Layout) -> InputLine {
        let axes: Box<[(usize, isize)]> = layout.axes().collect();
        let (axis, axes) = if let [axis] = axes[..] { (axis, None) } else { ((0, 0), Some(axes)) };
        InputLine { input, further, axis, axes }
    }

    /// The index of the tensor that contains the line.
    #[must_use]
    pub(crate) const fn input(&self) -> usize {
        self.input
    }

    /// Finds the memory of the line and the position of its first element. `None` if there is no tensor with its index, or
    /// if the tensor has other extents or strides. The element type and the length of the memory are not compared.
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

/// The destination of the results for one line (elements in memory at equal distances): memory, or partial sums.
#[derive(Debug)]
pub(crate) enum OneTarget<'d> {
    /// The results are written to memory: one result for each element of the line.
    Elements(DataMut<'d>),
    /// The results are added to chains of partial sums: element `i` to chain `i` modulo the number of chains. Before the line is run, no chain may be
    /// -0.
    Sums(&'d mut Chains),
}

/// A hint to prefetch memory that will be read soon, while a line (elements in memory at equal distances) is summed. From a position on, one element
/// is prefetched for each element of the line. The position may be outside of the memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LinePrefetch<'a> {
    /// The memory that contains the elements to prefetch.
    pub(crate) data: &'a Data,
    /// The position in that memory from which to prefetch while the first line is summed.
    pub(crate) first: usize,
    /// The distance, in elements, from the position to prefetch for one line to the position for the next line.
    pub(crate) shift: isize,
}

/// Returns the axes of an index space, the outermost first, each with its extent and its stride in each operand. Axes of
/// extent 1 are left out. An axis that continues the next outer one in all operands is merged with it.
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
