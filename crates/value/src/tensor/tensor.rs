//! Tensors: elements in shared memory, and the layout that they are seen through. A tensor is a value: whoever changes one has memory of
//! his own, or gets a copy. [`TensorMut`] writes to memory of somebody else.

#![deny(clippy::arithmetic_side_effects)]

use super::element::{Data, DataMut, Element, check_room};
use super::error::TensorErrorKind;
use super::layout::{Extents, Layout, Positions, Slice};
use crate::Error;
use crate::ScalarValue;
use cembra_runtime::{QType, Scalar};
use triomphe::Arc;

/// Elements of one type under indices of any number of axes. Cloning it, and looking at parts of it, copies nothing.
///
/// ```
/// use cembra_value::tensor::Tensor;
///
/// let a = Tensor::new(&[2, 3], vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0])?;
/// let b = a.transposed(&[1, 0])?;
/// assert_eq!(b.extents(), [3, 2]);
/// assert_eq!(b.to_vec::<f64>()?, [1.0, 4.0, 2.0, 5.0, 3.0, 6.0]);
/// assert_eq!(b.get::<f64>(&[2, 1])?, 6.0);
/// # Ok::<(), cembra_value::Error>(())
/// ```
#[derive(Clone)]
pub struct Tensor {
    data: Arc<Data>,
    layout: Layout,
}

impl Tensor {
    /// A tensor of these elements, the last axis the fastest.
    ///
    /// # Errors
    /// There are not as many elements as indices.
    pub fn new<T: Element>(extents: &[usize], elements: Vec<T>) -> Result<Tensor, Error> {
        Tensor::of_data(extents, T::data(elements))
    }

    /// A tensor of no axes: one element.
    #[must_use]
    pub fn scalar<T: Element>(element: T) -> Tensor {
        Tensor { data: Arc::new(T::data(vec![element])), layout: Layout::of_one() }
    }

    /// The same of a value of the type of elements.
    ///
    /// # Errors
    /// Tensors have no such elements.
    pub fn of_value(value: &ScalarValue) -> Result<Tensor, Error> {
        Tensor::of_data(&[], Data::of_bits(value.scalar(), value.bits())?)
    }

    /// A tensor of zeros, or of `false`.
    ///
    /// # Errors
    /// Tensors have no such elements, or not as many.
    pub fn zeros(scalar: Scalar, extents: &[usize]) -> Result<Tensor, Error> {
        let layout = Layout::row_major(extents)?;
        Ok(Tensor { data: Arc::new(Data::zeros(scalar, layout.len())?), layout })
    }

    /// A tensor of these elements, the last axis the fastest.
    ///
    /// # Errors
    /// There are not as many elements as indices.
    pub fn of_data(extents: &[usize], data: Data) -> Result<Tensor, Error> {
        let layout = Layout::row_major(extents)?;
        if layout.len() != data.len() {
            let message = format!("{} elements for a tensor of {extents:?}", data.len());
            return Err(Error::tensors(TensorErrorKind::SizeMismatch, message));
        }
        Ok(Tensor { data: Arc::new(data), layout })
    }

    /// Elements of memory, under any layout.
    ///
    /// # Errors
    /// The layout has positions outside of the memory.
    #[inline]
    pub fn from_parts(data: Data, layout: Layout) -> Result<Tensor, Error> {
        layout.check_within(data.len())?;
        Ok(Tensor { data: Arc::new(data), layout })
    }

    /// Memory that others may share, under any layout.
    ///
    /// # Errors
    /// The layout has positions outside of the memory.
    #[inline]
    pub fn from_shared(data: Arc<Data>, layout: Layout) -> Result<Tensor, Error> {
        layout.check_within(data.len())?;
        Ok(Tensor { data, layout })
    }

    /// The same memory under any other layout; of other parts of it too, which this one does not see.
    ///
    /// # Errors
    /// The layout has positions outside of the memory.
    #[inline]
    pub fn under(&self, layout: Layout) -> Result<Tensor, Error> {
        layout.check_within(self.data.len())?;
        Ok(self.seen(layout))
    }

    /// True if both see the same memory, or parts of it.
    #[must_use]
    pub fn shares_memory(&self, other: &Tensor) -> bool {
        Arc::ptr_eq(&self.data, &other.data)
    }

    /// The type of the elements.
    #[must_use]
    #[inline]
    pub fn scalar_type(&self) -> Scalar {
        self.data.scalar()
    }

    /// The type of the tensor as a value.
    #[must_use]
    pub fn qtype(&self) -> QType {
        QType::Tensor(self.scalar_type(), self.extents().len() as u8)
    }

    /// Bytes of memory that it holds, besides itself. Tensors that share memory hold the same bytes.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        usize::try_from(self.data.bytes()).unwrap_or(usize::MAX)
    }

    /// The number of indices of each axis.
    #[must_use]
    #[inline]
    pub fn extents(&self) -> &[usize] {
        self.layout.extents()
    }

    /// How the indices map to the memory.
    #[must_use]
    #[inline]
    pub const fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The memory, of which it may see but a part.
    #[must_use]
    #[inline]
    pub fn data(&self) -> &Data {
        &self.data
    }

    /// The memory, to be shared.
    #[must_use]
    #[inline]
    pub const fn shared(&self) -> &Arc<Data> {
        &self.data
    }

    /// The memory, and how the indices map to it.
    #[must_use]
    #[inline]
    pub fn into_parts(self) -> (Arc<Data>, Layout) {
        (self.data, self.layout)
    }

    /// All elements of the memory, to be written to, if no other tensor has it. There may be more of them than this one sees.
    #[inline]
    pub fn own_data(&mut self) -> Option<DataMut<'_>> {
        Arc::get_mut(&mut self.data).map(Data::all_mut)
    }

    /// Sees other memory under the same layout from now on: the memory of before.
    ///
    /// # Errors
    /// The layout has positions outside of the other memory. The tensor is then unchanged.
    #[inline]
    pub fn exchange(&mut self, data: Arc<Data>) -> Result<Arc<Data>, Error> {
        self.layout.check_within(data.len())?;
        Ok(std::mem::replace(&mut self.data, data))
    }

    /// The same memory under another layout that is within it.
    #[inline]
    fn seen(&self, layout: Layout) -> Tensor {
        Tensor { data: self.data.clone(), layout }
    }

    /// Axis `i` of the result is axis `of[i]`.
    ///
    /// # Errors
    /// `of` does not name each axis once.
    pub fn transposed(&self, of: &[usize]) -> Result<Tensor, Error> {
        Ok(self.seen(self.layout.with_axes(&inverse_axes(of, self.layout.rank())?)?))
    }

    /// A slice of each axis.
    ///
    /// # Errors
    /// There is not a slice for each axis, or one is not within its axis.
    pub fn sliced(&self, slices: &[Slice]) -> Result<Tensor, Error> {
        Ok(self.seen(self.layout.sliced(slices)?))
    }

    /// The same elements for all indices of axes that are new, in front, or were of extent 1.
    ///
    /// # Errors
    /// An extent is neither kept nor was 1.
    pub fn broadcast_to(&self, extents: &[usize]) -> Result<Tensor, Error> {
        Ok(self.seen(self.layout.broadcast_to(extents)?))
    }

    /// The same elements in the same order under other extents. They are copied only where no layout of this memory gives that order.
    ///
    /// # Errors
    /// There are not as many indices, or the system has no memory for a copy.
    pub fn reshaped(&self, extents: &[usize]) -> Result<Tensor, Error> {
        match self.layout.reshaped(extents)? {
            Some(layout) => Ok(self.seen(layout)),
            None => {
                self.check_copy()?;
                Tensor::of_data(extents, self.gathered())
            }
        }
    }

    /// An error if the system has no memory for a copy: indices may share elements, and be as many as one likes.
    fn check_copy(&self) -> Result<(), Error> {
        check_room(Data::element_size(self.scalar_type()).unwrap_or(0).saturating_mul(self.layout.len()))
    }

    /// The elements in the order of their indices, copied. For tensors that are known to be no larger than memory is: indices may share elements.
    #[must_use]
    pub fn gathered(&self) -> Data {
        let mut made = self.data.none();
        made.append_ordered(&self.data, &self.layout);
        made
    }

    /// A tensor of the same elements that lie in the order of their indices: this one, or a copy.
    #[must_use]
    pub fn row_major(&self) -> Tensor {
        if self.layout.is_row_major() {
            return self.clone();
        }
        Tensor { data: Arc::new(self.gathered()), layout: self.layout.ordered() }
    }

    /// Elements in the order of the indices of a layout, of which there are as many.
    pub(super) fn ordered<T: Element>(layout: &Layout, elements: Vec<T>) -> Tensor {
        debug_assert_eq!(layout.len(), elements.len());
        Tensor { data: Arc::new(T::data(elements)), layout: layout.ordered() }
    }

    /// A copy of the elements, the last axis the fastest.
    ///
    /// # Errors
    /// They are of another type, or the system has no memory for so many: indices may share elements.
    pub fn to_vec<T: Element>(&self) -> Result<Vec<T>, Error> {
        self.check_copy()?;
        if let Some(elements) = self.as_slice::<T>()? {
            return Ok(elements.to_vec());
        }
        let elements = self.elements::<T>()?;
        Ok(self.layout.positions().map(|at| elements[at]).collect())
    }

    /// The elements, the last axis the fastest. They are moved if no other tensor has the memory and they are all that lies in it, in this order.
    ///
    /// ```
    /// use cembra_value::tensor::Tensor;
    ///
    /// let tensor = Tensor::new(&[2, 2], vec![1.0, 2.0, 3.0, 4.0])?;
    /// assert_eq!(tensor.transposed(&[1, 0])?.into_vec::<f64>()?, [1.0, 3.0, 2.0, 4.0]);
    /// assert_eq!(tensor.into_vec::<f64>()?, [1.0, 2.0, 3.0, 4.0]);
    /// # Ok::<(), cembra_value::Error>(())
    /// ```
    ///
    /// # Errors
    /// They are of another type, or have to be copied, and the system has no memory for so many.
    pub fn into_vec<T: Element>(mut self) -> Result<Vec<T>, Error> {
        let is_all = self.layout.is_row_major() && self.layout.offset() == 0 && self.layout.len() == self.data.len();
        if is_all && let Some(elements) = Arc::get_mut(&mut self.data).and_then(T::of_mut) {
            return Ok(std::mem::take(elements));
        }
        self.to_vec()
    }

    /// The elements without a copy, if they lie in the order of their indices.
    ///
    /// # Errors
    /// They are of another type.
    pub fn as_slice<T: Element>(&self) -> Result<Option<&[T]>, Error> {
        let elements = self.elements::<T>()?;
        let (first, len) = (self.layout.offset(), self.layout.len());
        Ok(self.layout.is_row_major().then(|| if len == 0 { &[][..] } else { &elements[first..][..len] }))
    }

    /// The element of an index.
    ///
    /// # Errors
    /// There is no such index, or the elements are of another type.
    pub fn get<T: Element>(&self, index: &[usize]) -> Result<T, Error> {
        Ok(self.elements::<T>()?[self.layout.position(index)?])
    }

    /// All elements of the memory.
    fn elements<T: Element>(&self) -> Result<&[T], Error> {
        T::of(&self.data).ok_or_else(|| wrong_type::<T>(self.scalar_type()))
    }

    /// The positions of the elements, in the order of their indices.
    #[must_use]
    pub fn positions(&self) -> Positions<'_> {
        self.layout.positions()
    }

    /// The tensor to be written to, through its layout. Memory that others see too is copied first.
    ///
    /// # Errors
    /// Two indices may have one element.
    pub fn to_mut(&mut self) -> Result<TensorMut<'_>, Error> {
        if !self.layout.is_injective() {
            return Err(overlapping(&self.layout));
        }
        Ok(TensorMut { data: Arc::make_mut(&mut self.data), layout: self.layout.clone() })
    }
}

#[cold]
pub(super) fn wrong_type<T: Element>(found: Scalar) -> Error {
    let message = format!("elements of type {} are not {}", found.short_name(), T::SCALAR.short_name());
    Error::tensors(TensorErrorKind::ElementType, message)
}

#[cold]
fn overlapping(layout: &Layout) -> Error {
    let message = format!("a view of {layout:?} may map two indices to one element, and cannot be written");
    Error::tensors(TensorErrorKind::OverlappingTarget, message).hint("write to a copy")
}

/// For axes of a result, which axis of the operand each is, the other way: where each axis of the operand goes.
///
/// # Errors
/// An axis is missing or stands twice.
pub fn inverse_axes(of: &[usize], rank: usize) -> Result<Extents, Error> {
    let mut to = Extents::from_elem(usize::MAX, rank);
    for (at, axis) in of.iter().enumerate() {
        match to.get_mut(*axis) {
            Some(place) if *place == usize::MAX => *place = at,
            _ => {
                return Err(Error::tensors(TensorErrorKind::Axis, format!("axes {of:?} of a tensor of {rank} axes")));
            }
        }
    }
    if of.len() != rank {
        return Err(Error::tensors(TensorErrorKind::Axis, format!("axes {of:?} of a tensor of {rank} axes")));
    }
    Ok(to)
}

/// Memory of somebody else that is written through a layout.
#[derive(Debug)]
pub struct TensorMut<'m> {
    data: &'m mut Data,
    layout: Layout,
}

impl<'m> TensorMut<'m> {
    /// Memory under a layout.
    ///
    /// # Errors
    /// The layout has positions outside of the memory, or two indices may have one element.
    pub fn new(data: &'m mut Data, layout: Layout) -> Result<Self, Error> {
        let layout = Layout::strided(layout.extents(), layout.strides(), layout.offset(), data.len())?;
        if !layout.is_injective() {
            return Err(overlapping(&layout));
        }
        Ok(TensorMut { data, layout })
    }

    /// The number of indices of each axis.
    #[must_use]
    pub fn extents(&self) -> &[usize] {
        self.layout.extents()
    }

    /// The type of the elements.
    #[must_use]
    pub fn scalar_type(&self) -> Scalar {
        self.data.scalar()
    }

    /// All elements, the last axis the fastest.
    ///
    /// # Errors
    /// They are of another type, or do not lie in that order.
    pub fn as_mut_slice<T: Element>(&mut self) -> Result<&mut [T], Error> {
        let (first, len) = (self.layout.offset(), self.layout.len());
        let found = self.data.scalar();
        if !self.layout.is_row_major() {
            let message = format!("elements of {:?} are not in the order of their indices", self.layout);
            return Err(Error::tensors(TensorErrorKind::SizeMismatch, message).hint("write them by their indices"));
        }
        let elements = T::of_mut(self.data).ok_or_else(|| wrong_type::<T>(found))?;
        Ok(if len == 0 { &mut [] } else { &mut elements[first..][..len] })
    }

    /// Writes an element.
    ///
    /// # Errors
    /// There is no such index, or the elements are of another type.
    pub fn set<T: Element>(&mut self, index: &[usize], element: T) -> Result<(), Error> {
        let (at, found) = (self.layout.position(index)?, self.data.scalar());
        T::of_mut(self.data).ok_or_else(|| wrong_type::<T>(found))?[at] = element;
        Ok(())
    }

    /// Writes an element by its bits.
    ///
    /// # Errors
    /// There is no such index.
    pub fn set_bits(&mut self, index: &[usize], bits: u64) -> Result<(), Error> {
        let at = self.layout.position(index)?;
        self.data.set_bits(at, bits);
        Ok(())
    }

    /// A slice of each axis.
    ///
    /// # Errors
    /// There is not a slice for each axis, or one is not within its axis.
    pub fn sliced(self, slices: &[Slice]) -> Result<Self, Error> {
        Ok(TensorMut { layout: self.layout.sliced(slices)?, data: self.data })
    }

    /// Writes the elements of a tensor, broadcast to these extents.
    ///
    /// # Errors
    /// It does not broadcast, or has elements of another type.
    pub fn assign(&mut self, from: &Tensor) -> Result<(), Error> {
        if from.scalar_type() != self.data.scalar() {
            let (found, own) = (from.scalar_type().short_name(), self.data.scalar().short_name());
            return Err(Error::tensors(
                TensorErrorKind::ElementType,
                format!("elements of type {found} are not {own}"),
            ));
        }
        let from = from.broadcast_to(self.layout.extents())?;
        from.check_copy()?;
        self.data.scatter(&from.gathered(), self.layout.positions());
        Ok(())
    }
}
