//! Lines: arrays of elements that lie at equal distances in memory. The types here describe the memory of a line, the
//! lines that an element expression (the code for one element of a tensor) reads, and the destination of a line's
//! results. The binding of a plan decides which lines are processed; `kernels.rs` evaluates element expressions on
//! them.

use cembra_runtime::Chains;
use cembra_tensor::{Data, DataMut, Layout, Strides, Tensor};
use smallvec::SmallVec;

/// A line: an array of elements that lie at equal distances in memory. It is given by the memory, the position of the
/// first element, and the distance.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Line<'a> {
    /// The memory that contains the line's elements.
    pub(crate) data: &'a Data,
    /// The position in memory of the line's first element.
    pub(crate) first: usize,
    /// The distance from one element of the line to the next, in elements; 0 if all are the same element.
    pub(crate) step: isize,
}

/// A line (array of elements) that an element expression reads from a tensor: the index of the tensor, the layout that
/// the tensor must have, and the distance from the tensor's first element to the line's first element.
#[derive(Clone, Debug)]
pub(crate) struct InputLine {
    input: usize,
    further: usize,
    /// The extent and the stride of the tensor's axis, if it has only one; most tensors with a line have one.
    axis: (usize, isize),
    /// The extents and strides of the tensor's axes; `None` if it has only one axis.
    axes: Option<Box<[(usize, isize)]>>,
}

impl InputLine {
    /// Describes a line (array of elements) in the tensor with index `input`, which must have the layout `layout`. The
    /// line begins `further` elements after the tensor's first element.
    pub(crate) fn of(input: usize, further: usize, layout: &Layout) -> InputLine {
        let axes: Box<[(usize, isize)]> = layout.axes().collect();
        let (axis, axes) = if let [axis] = axes[..] { (axis, None) } else { ((0, 0), Some(axes)) };
        InputLine { input, further, axis, axes }
    }

    /// The index of the tensor that contains the line (array of elements).
    #[must_use]
    pub(crate) const fn input(&self) -> usize {
        self.input
    }

    /// Returns the memory of the line and the position of its first element. `None` if `tensors` does not have the
    /// tensor with the line, or if that tensor has other extents or strides. The element type and the length of the
    /// memory are not compared.
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

/// The destination of the results for one line (array of elements): memory, or partial sums.
#[derive(Debug)]
pub(crate) enum OneTarget<'d> {
    /// The results are written to memory: one result for each element of the line.
    Elements(DataMut<'d>),
    /// The results are added to chains (partial sums): result `i` to the chain with index `i` modulo the number of
    /// chains. Before the line is evaluated, no chain may be -0.
    Sums(&'d mut Chains),
}

/// A hint to prefetch memory that will be read soon, while lines (arrays of elements) are summed. While a line is
/// summed, the same number of elements is prefetched from a given position on, which may be outside of the memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LinePrefetch<'a> {
    /// The memory that contains the elements to prefetch.
    pub(crate) data: &'a Data,
    /// The position in the memory `data` from which elements are prefetched while the first line (array of elements) is
    /// summed.
    pub(crate) first: usize,
    /// The distance, in elements, from the position to prefetch for one line (array of elements) to the position for
    /// the next line.
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
