//! Gathers elements along an axis by indices. Also computes the adjoint of gathering, which adds each value to the
//! element that it was gathered from. The gathered elements may be a view with more elements than fit in memory, so no
//! list of positions or indices is made.

use crate::walk::{StopCheck, VisitCounter, WalkedAxis, try_walk};
use crate::{Axis, Data, DataMut, Element, Layout, Node, Tensor, TensorErrorKind};
use cembra_value::Error;
use cembra_value::tensor::zeros;
use cembra_value::with_data;
use smallvec::SmallVec;

/// The integers in the memory of an index tensor. The layout of the tensor maps its indices to them.
enum IndexElements<'t> {
    Narrow(&'t [i32]),
    Wide(&'t [i64]),
}

impl IndexElements<'_> {
    /// Returns the integers of a tensor, which must be indices of an axis with `extent` indices. Each integer is
    /// checked once, however often a view repeats it, because a view may repeat integers more often than there is time
    /// for.
    fn of<'t>(indices: &'t Tensor, extent: usize, watch: &mut VisitCounter<'_>) -> Result<IndexElements<'t>, Error> {
        let named = match indices.data() {
            Data::Int32(narrow) => IndexElements::Narrow(narrow),
            Data::Int64(wide) => IndexElements::Wide(wide),
            _ => return Err(Error::tensors(TensorErrorKind::ElementType, "indices must be i32 or i64")),
        };
        let layout = indices.layout();
        let axes: SmallVec<[WalkedAxis<1>; 6]> = (layout.axes())
            .map(|(extent, stride)| if stride == 0 { (extent.min(1), [0]) } else { (extent, [stride]) })
            .collect();
        try_walk(&axes, [layout.offset()], |[at]| {
            watch.see(1)?;
            named_index(named.get(at), extent).map(drop)
        })?;
        Ok(named)
    }

    #[inline]
    fn get(&self, at: usize) -> i64 {
        match self {
            IndexElements::Narrow(narrow) => i64::from(narrow[at]),
            IndexElements::Wide(wide) => wide[at],
        }
    }
}

/// A function that is called for each gathered line (a run of elements along one axis). It is given the positions of
/// the line's first element in the source and in the result, the number of the line's elements, and their strides in
/// both.
type Visit<'v> = &'v mut dyn FnMut([usize; 2], usize, [isize; 2]);

/// Visits the elements that the indices `named` select along `axis`, one line (run of elements along an axis) after the
/// other. `layout` is the layout of the source, `taken` that of the result, and `indices` that of `named`. No list of
/// positions is made.
fn visit_taken(
    [layout, taken, indices]: [&Layout; 3],
    named: &IndexElements<'_>,
    axis: Axis,
    watch: &mut VisitCounter<'_>,
    visit: Visit<'_>,
) -> Result<(), Error> {
    if taken.is_empty() {
        return Ok(());
    }
    let axis = usize::from(axis);
    let stride = layout.strides()[axis];
    let before = layout.axes().take(axis).map(|(_, stride)| [stride, 0]);
    let within = indices.strides().iter().map(|stride| [0, *stride]);
    let after = layout.axes().skip(axis + 1).map(|(_, stride)| [stride, 0]);
    let mut axes: SmallVec<[WalkedAxis<3>; 6]> = (before.chain(within).chain(after).zip(taken.axes()))
        .map(|([own, named], (extent, to))| (extent, [own, named, to]))
        .collect();
    // Elements after the axis are at even distances; along the axis the indices decide.
    let line = if axis + 1 < layout.rank() { axes.pop() } else { None };
    let (count, steps) = line.map_or((1, [0; 2]), |(count, [own, _, to])| (count, [own, to]));
    // If the axis is the last one, the last axis of the indices is a loop of its own.
    let named_by = if line.is_none() { axes.pop() } else { None };
    let (many, [own_step, index_step, to_step]) = named_by.unwrap_or((1, [0; 3]));
    try_walk(&axes, [layout.offset(), indices.offset(), taken.offset()], |starts| {
        if line.is_none() {
            let [mut own, mut index, mut to] = starts;
            for _ in 0..many {
                watch.see(1)?;
                visit([own.wrapping_add_signed(stride.wrapping_mul(named.get(index) as isize)), to], 1, steps);
                own = own.wrapping_add_signed(own_step);
                index = index.wrapping_add_signed(index_step);
                to = to.wrapping_add_signed(to_step);
            }
            return Ok(());
        }
        let [own, index, to] = starts;
        let distance = stride.wrapping_mul(named.get(index) as isize);
        // A view may repeat memory, so a line may have more elements than there are in memory.
        for start in (0..count).step_by(VisitCounter::ELEMENTS) {
            let count = VisitCounter::ELEMENTS.min(count - start);
            watch.see(count)?;
            let [own_start, to_start] = steps.map(|step| step.wrapping_mul(start.cast_signed()));
            let own = own.wrapping_add_signed(distance.wrapping_add(own_start));
            visit([own, to.wrapping_add_signed(to_start)], count, steps);
        }
        Ok(())
    })
}

/// Gathers the elements of `operand` along `axis`, at the indices `named`. `node` has the extents of the result.
///
/// # Errors
/// If an index is outside of its axis, or `go_on` ends the work.
pub(crate) fn take(
    operand: &Tensor,
    named: &Tensor,
    axis: Axis,
    node: &Node,
    go_on: StopCheck<'_>,
) -> Result<Data, Error> {
    fn of<T: Element>(
        from: &[T],
        len: usize,
        walk: impl FnOnce(Visit<'_>) -> Result<(), Error>,
    ) -> Result<Data, Error> {
        let mut made = zeros::<T>(len)?;
        walk(&mut |[own, to], count, [step, _]| {
            let to = &mut made[to..][..count];
            match step {
                1 => to.copy_from_slice(&from[own..][..count]),
                _ => to.iter_mut().enumerate().for_each(|(at, to)| {
                    *to = from[own.wrapping_add_signed(step.wrapping_mul(at.cast_signed()))];
                }),
            }
        })?;
        Ok(T::data(made))
    }
    let mut watch = VisitCounter::new(go_on);
    let indices = IndexElements::of(named, operand.extents()[usize::from(axis)], &mut watch)?;
    let taken = Layout::row_major(&node.extents)?;
    with_data!(operand.data(), from => of(from, taken.len(), |visit| {
        visit_taken([operand.layout(), &taken, named.layout()], &indices, axis, &mut watch, visit)
    }))
}

/// Computes the adjoint of [`take`]: adds each element of `operand` to the element from which it was gathered, in a tensor of zeros. `node` has the
/// extents of that tensor.
///
/// # Errors
/// The errors of [`take`].
pub(crate) fn place_take(
    node: &Node,
    operand: &Tensor,
    named: &Tensor,
    axis: Axis,
    go_on: StopCheck<'_>,
) -> Result<Tensor, Error> {
    let mut watch = VisitCounter::new(go_on);
    let whole = Layout::row_major(&node.extents)?;
    let indices = IndexElements::of(named, node.extents[usize::from(axis)], &mut watch)?;
    let mut data = Data::zeros(node.scalar, whole.len())?;
    let mut walk =
        |visit: Visit<'_>| visit_taken([&whole, operand.layout(), named.layout()], &indices, axis, &mut watch, visit);
    fn add<T: Element>(
        to: &mut [T],
        from: &Data,
        sum: impl Fn(T, T) -> T,
        walk: &mut dyn FnMut(Visit<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let from = T::of(from).unwrap_or_default();
        walk(&mut |[first, own], count, [_, step]| {
            for (at, to) in to[first..][..count].iter_mut().enumerate() {
                *to = sum(*to, from[own.wrapping_add_signed(step.wrapping_mul(at.cast_signed()))]);
            }
        })
    }
    let from = operand.data();
    match data.all_mut() {
        DataMut::Bool(to) => add(to, from, |a, b| a | b, &mut walk),
        DataMut::Int32(to) => add(to, from, i32::wrapping_add, &mut walk),
        DataMut::Int64(to) => add(to, from, i64::wrapping_add, &mut walk),
        DataMut::Float32(to) => add(to, from, |a, b| a + b, &mut walk),
        DataMut::Float64(to) => add(to, from, |a, b| a + b, &mut walk),
    }?;
    Tensor::of_data(&node.extents, data)
}

/// Converts an element of an index tensor to an index of an axis of `extent` indices.
///
/// # Errors
/// If `index` is negative, or not below `extent`.
#[inline]
pub fn named_index(index: i64, extent: usize) -> Result<usize, Error> {
    let found = usize::try_from(index).ok().filter(|index| *index < extent);
    found.ok_or_else(|| {
        let error =
            Error::tensors(TensorErrorKind::Index, format!("index {index} is not within an axis of extent {extent}"));
        error.hint("count indices from 0: negative indices do not count from the end")
    })
}
