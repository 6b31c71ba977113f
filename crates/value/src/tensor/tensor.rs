//! Tensors: elements in shared memory, with a layout that maps indices to them. A tensor is a value: memory that other
//! tensors share is copied before a change. [`TensorMut`] writes to borrowed memory.

#![deny(clippy::arithmetic_side_effects)]

use super::element::{Data, DataMut, Element, check_room};
use super::error::TensorErrorKind;
use super::layout::{Extents, Layout, Positions, Slice};
use crate::Error;
use crate::ScalarValue;
use cembra_runtime::{QType, Scalar};
use triomphe::Arc;

/// A tensor: elements of one type, with indices over any number of axes. Clones and views copy no elements.
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
    /// Makes a tensor with the extents `extents` from `elements`, which are in row-major order.
    ///
    /// # Errors
    /// If the number of elements differs from the number of indices.
    pub fn new<T: Element>(extents: &[usize], elements: Vec<T>) -> Result<Tensor, Error> {
        Tensor::of_data(extents, T::data(elements))
    }

    /// Makes a tensor without axes, whose only element is `element`.
    #[must_use]
    pub fn scalar<T: Element>(element: T) -> Tensor {
        Tensor { data: Arc::new(T::data(vec![element])), layout: Layout::of_one() }
    }

    /// Makes a tensor without axes, whose only element is the scalar `value`.
    ///
    /// # Errors
    /// If tensors have no elements of this type.
    pub fn of_value(value: &ScalarValue) -> Result<Tensor, Error> {
        Tensor::of_data(&[], Data::of_bits(value.scalar(), value.bits())?)
    }

    /// Makes a tensor of zeros, or of `false`.
    ///
    /// # Errors
    /// If tensors have no elements of this type, or if there are more elements than a tensor may have or the memory can
    /// hold.
    pub fn zeros(scalar: Scalar, extents: &[usize]) -> Result<Tensor, Error> {
        let layout = Layout::row_major(extents)?;
        Ok(Tensor { data: Arc::new(Data::zeros(scalar, layout.len())?), layout })
    }

    /// Makes a tensor with the extents `extents` from the elements in `data`, which are in row-major order.
    ///
    /// # Errors
    /// If the number of elements differs from the number of indices.
    pub fn of_data(extents: &[usize], data: Data) -> Result<Tensor, Error> {
        let layout = Layout::row_major(extents)?;
        if layout.len() != data.len() {
            let message = format!("{} elements do not fit a tensor of extents {extents:?}", data.len());
            return Err(Error::tensors(TensorErrorKind::SizeMismatch, message));
        }
        Ok(Tensor { data: Arc::new(data), layout })
    }

    /// Makes a tensor whose elements are in `data`, at the positions that `layout` gives.
    ///
    /// # Errors
    /// If the layout has positions outside of the memory.
    #[inline]
    pub fn from_parts(data: Data, layout: Layout) -> Result<Tensor, Error> {
        layout.check_within(data.len())?;
        Ok(Tensor { data: Arc::new(data), layout })
    }

    /// Makes a tensor whose elements are in the shared memory `data`, at the positions that `layout` gives.
    ///
    /// # Errors
    /// If the layout has positions outside of the memory.
    #[inline]
    pub fn from_shared(data: Arc<Data>, layout: Layout) -> Result<Tensor, Error> {
        layout.check_within(data.len())?;
        Ok(Tensor { data, layout })
    }

    /// Returns a view of this tensor's memory with another layout, which may include parts of the memory that this
    /// tensor does not use.
    ///
    /// # Errors
    /// If the layout has positions outside of the memory.
    #[inline]
    pub fn under(&self, layout: Layout) -> Result<Tensor, Error> {
        layout.check_within(self.data.len())?;
        Ok(self.seen(layout))
    }

    /// Returns true if both tensors are in the same memory, even if in different parts.
    #[must_use]
    pub fn shares_memory(&self, other: &Tensor) -> bool {
        Arc::ptr_eq(&self.data, &other.data)
    }

    /// The type of the tensor's elements.
    #[must_use]
    #[inline]
    pub fn scalar_type(&self) -> Scalar {
        self.data.scalar()
    }

    /// The type of this tensor as a value: element type and number of axes.
    #[must_use]
    pub fn qtype(&self) -> QType {
        QType::Tensor(self.scalar_type(), self.extents().len() as u8)
    }

    /// The bytes of memory that the tensor holds, without its struct itself. Shared memory counts for each tensor that
    /// shares it.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        usize::try_from(self.data.bytes()).unwrap_or(usize::MAX)
    }

    /// The extents of the tensor: the number of indices of each axis.
    #[must_use]
    #[inline]
    pub fn extents(&self) -> &[usize] {
        self.layout.extents()
    }

    /// The layout of the tensor: the map from its indices to positions in memory.
    #[must_use]
    #[inline]
    pub const fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The tensor's memory, which may have more elements than the tensor.
    #[must_use]
    #[inline]
    pub fn data(&self) -> &Data {
        &self.data
    }

    /// The tensor's memory as a shared pointer.
    #[must_use]
    #[inline]
    pub const fn shared(&self) -> &Arc<Data> {
        &self.data
    }

    /// Splits the tensor into its memory and its layout.
    #[must_use]
    #[inline]
    pub fn into_parts(self) -> (Arc<Data>, Layout) {
        (self.data, self.layout)
    }

    /// Returns all elements of the tensor's memory for writing, which may be more than the tensor has; `None` if
    /// another tensor shares the memory.
    #[inline]
    pub fn own_data(&mut self) -> Option<DataMut<'_>> {
        Arc::get_mut(&mut self.data).map(Data::all_mut)
    }

    /// Replaces the tensor's memory by `data`, and keeps the layout. Returns the previous memory.
    ///
    /// # Errors
    /// If the layout has positions outside of the new memory. The tensor is then unchanged.
    #[inline]
    pub fn exchange(&mut self, data: Arc<Data>) -> Result<Arc<Data>, Error> {
        self.layout.check_within(data.len())?;
        Ok(std::mem::replace(&mut self.data, data))
    }

    /// A view of the same memory with another layout, whose positions must be within the memory.
    #[inline]
    fn seen(&self, layout: Layout) -> Tensor {
        Tensor { data: self.data.clone(), layout }
    }

    /// Returns a view with permuted axes: axis `i` of the result is axis `of[i]` of this tensor.
    ///
    /// # Errors
    /// If `of` does not name each axis once.
    pub fn transposed(&self, of: &[usize]) -> Result<Tensor, Error> {
        Ok(self.seen(self.layout.with_axes(&inverse_axes(of, self.layout.rank())?)?))
    }

    /// Returns a view of the tensor that has one slice of each axis.
    ///
    /// # Errors
    /// If there is not one slice per axis, or if a slice exceeds its axis.
    pub fn sliced(&self, slices: &[Slice]) -> Result<Tensor, Error> {
        Ok(self.seen(self.layout.sliced(slices)?))
    }

    /// Returns a view of the tensor, broadcast to `extents`. Its elements repeat along new axes, which come first, and
    /// along axes of extent 1.
    ///
    /// # Errors
    /// If an extent other than 1 would change.
    pub fn broadcast_to(&self, extents: &[usize]) -> Result<Tensor, Error> {
        Ok(self.seen(self.layout.broadcast_to(extents)?))
    }

    /// Reshapes the tensor to `extents`, with the same elements in the same order. They are copied only if no layout of
    /// the same memory gives that order.
    ///
    /// # Errors
    /// If `extents` has another number of indices than this tensor, or if the system has no memory for a copy.
    pub fn reshaped(&self, extents: &[usize]) -> Result<Tensor, Error> {
        match self.layout.reshaped(extents)? {
            Some(layout) => Ok(self.seen(layout)),
            None => {
                self.check_copy()?;
                Tensor::of_data(extents, self.gathered())
            }
        }
    }

    /// Checks that the system has memory for a copy. Indices may share elements, so a copy may be larger than the memory.
    fn check_copy(&self) -> Result<(), Error> {
        check_room(Data::element_size(self.scalar_type()).unwrap_or(0).saturating_mul(self.layout.len()))
    }

    /// Copies the tensor's elements in row-major order. The caller must know that the copy fits in memory. It may be
    /// larger than the tensor's memory, because several indices may share an element.
    #[must_use]
    pub fn gathered(&self) -> Data {
        let mut made = self.data.none();
        made.append_ordered(&self.data, &self.layout);
        made
    }

    /// Returns a tensor with the same elements in row-major order in memory: this one, or a copy.
    #[must_use]
    pub fn row_major(&self) -> Tensor {
        if self.layout.is_row_major() {
            return self.clone();
        }
        Tensor { data: Arc::new(self.gathered()), layout: self.layout.ordered() }
    }

    /// Makes a tensor of `elements`, in row-major order. It has the extents of `layout`, which must have as many indices.
    pub(super) fn ordered<T: Element>(layout: &Layout, elements: Vec<T>) -> Tensor {
        debug_assert_eq!(layout.len(), elements.len());
        Tensor { data: Arc::new(T::data(elements)), layout: layout.ordered() }
    }

    /// Copies the tensor's elements to a vector, in row-major order.
    ///
    /// # Errors
    /// If the elements are of another type, or if the system has no memory for the copy, which may be larger than the
    /// tensor's memory, because indices may share elements.
    pub fn to_vec<T: Element>(&self) -> Result<Vec<T>, Error> {
        self.check_copy()?;
        if let Some(elements) = self.as_slice::<T>()? {
            return Ok(elements.to_vec());
        }
        let elements = self.elements::<T>()?;
        Ok(self.layout.positions().map(|at| elements[at]).collect())
    }

    /// Returns the tensor's elements as a vector in row-major order. The elements are moved if no other tensor shares
    /// the memory, and if the memory contains only these elements, in this order; else they are copied.
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
    /// If the elements are of another type, or if they must be copied and the system has no memory for the copy.
    pub fn into_vec<T: Element>(mut self) -> Result<Vec<T>, Error> {
        let is_all = self.layout.is_row_major() && self.layout.offset() == 0 && self.layout.len() == self.data.len();
        if is_all && let Some(elements) = Arc::get_mut(&mut self.data).and_then(T::of_mut) {
            return Ok(std::mem::take(elements));
        }
        self.to_vec()
    }

    /// The tensor's elements as a slice, without a copy; `None` if they are not adjacent in row-major order.
    ///
    /// # Errors
    /// If the elements are of another type.
    pub fn as_slice<T: Element>(&self) -> Result<Option<&[T]>, Error> {
        let elements = self.elements::<T>()?;
        let (first, len) = (self.layout.offset(), self.layout.len());
        Ok(self.layout.is_row_major().then(|| if len == 0 { &[][..] } else { &elements[first..][..len] }))
    }

    /// The element of the tensor at `index`.
    ///
    /// # Errors
    /// If there is no such index, or if the elements are of another type.
    pub fn get<T: Element>(&self, index: &[usize]) -> Result<T, Error> {
        Ok(self.elements::<T>()?[self.layout.position(index)?])
    }

    /// The elements of the whole memory.
    fn elements<T: Element>(&self) -> Result<&[T], Error> {
        T::of(&self.data).ok_or_else(|| wrong_type::<T>(self.scalar_type()))
    }

    /// Iterates over the positions of the tensor's elements in memory, in row-major order of their indices.
    #[must_use]
    pub fn positions(&self) -> Positions<'_> {
        self.layout.positions()
    }

    /// Returns access for writing to the tensor's elements, through its layout. Memory that other tensors share is
    /// copied first.
    ///
    /// # Errors
    /// If two indices may have the same element.
    pub fn to_mut(&mut self) -> Result<TensorMut<'_>, Error> {
        if !self.layout.is_injective() {
            return Err(overlapping(&self.layout));
        }
        Ok(TensorMut { data: Arc::make_mut(&mut self.data), layout: self.layout.clone() })
    }
}

#[cold]
pub(super) fn wrong_type<T: Element>(found: Scalar) -> Error {
    let message = format!("the elements are of type {}, not {}", found.short_name(), T::SCALAR.short_name());
    Error::tensors(TensorErrorKind::ElementType, message)
}

#[cold]
fn overlapping(layout: &Layout) -> Error {
    let message = format!(
        "a tensor with the layout {layout:?} may have two indices for one element, so its elements cannot be written"
    );
    Error::tensors(TensorErrorKind::OverlappingTarget, message).hint("write to a copy")
}

/// Inverts a permutation of `rank` axes: if axis `i` of a result is axis `of[i]` of an operand, then element `of[i]` of
/// the returned list is `i`.
///
/// # Errors
/// If an axis is missing or occurs twice.
pub fn inverse_axes(of: &[usize], rank: usize) -> Result<Extents, Error> {
    let mut to = Extents::from_elem(usize::MAX, rank);
    for (at, axis) in of.iter().enumerate() {
        match to.get_mut(*axis) {
            Some(place) if *place == usize::MAX => *place = at,
            _ => {
                return Err(Error::tensors(
                    TensorErrorKind::Axis,
                    format!("axes {of:?} must name each of the {rank} axes of the tensor once"),
                ));
            }
        }
    }
    if of.len() != rank {
        return Err(Error::tensors(
            TensorErrorKind::Axis,
            format!("axes {of:?} must name each of the {rank} axes of the tensor once"),
        ));
    }
    Ok(to)
}

/// Borrowed memory of a tensor, which is written through a layout.
#[derive(Debug)]
pub struct TensorMut<'m> {
    data: &'m mut Data,
    layout: Layout,
}

impl<'m> TensorMut<'m> {
    /// Returns access for writing to the memory `data` through `layout`.
    ///
    /// # Errors
    /// If the layout has positions outside of the memory, or if two indices may have the same element.
    pub fn new(data: &'m mut Data, layout: Layout) -> Result<Self, Error> {
        let layout = Layout::strided(layout.extents(), layout.strides(), layout.offset(), data.len())?;
        if !layout.is_injective() {
            return Err(overlapping(&layout));
        }
        Ok(TensorMut { data, layout })
    }

    /// The extents of the written tensor: the number of indices of each axis.
    #[must_use]
    pub fn extents(&self) -> &[usize] {
        self.layout.extents()
    }

    /// The type of the elements that are written.
    #[must_use]
    pub fn scalar_type(&self) -> Scalar {
        self.data.scalar()
    }

    /// Returns the elements for writing as a slice, in row-major order.
    ///
    /// # Errors
    /// If the elements are of another type, or not adjacent in that order.
    pub fn as_mut_slice<T: Element>(&mut self) -> Result<&mut [T], Error> {
        let (first, len) = (self.layout.offset(), self.layout.len());
        let found = self.data.scalar();
        if !self.layout.is_row_major() {
            let message = format!("the elements of the layout {:?} are not in the order of their indices", self.layout);
            return Err(
                Error::tensors(TensorErrorKind::SizeMismatch, message).hint("write the elements by their indices")
            );
        }
        let elements = T::of_mut(self.data).ok_or_else(|| wrong_type::<T>(found))?;
        Ok(if len == 0 { &mut [] } else { &mut elements[first..][..len] })
    }

    /// Writes the element at an index.
    ///
    /// # Errors
    /// If there is no such index, or if the elements are of another type.
    pub fn set<T: Element>(&mut self, index: &[usize], element: T) -> Result<(), Error> {
        let (at, found) = (self.layout.position(index)?, self.data.scalar());
        T::of_mut(self.data).ok_or_else(|| wrong_type::<T>(found))?[at] = element;
        Ok(())
    }

    /// Writes the element at an index, given by its bits.
    ///
    /// # Errors
    /// If there is no such index.
    pub fn set_bits(&mut self, index: &[usize], bits: u64) -> Result<(), Error> {
        let at = self.layout.position(index)?;
        self.data.set_bits(at, bits);
        Ok(())
    }

    /// Returns access for writing to the part that has one slice of each axis.
    ///
    /// # Errors
    /// If there is not one slice per axis, or if a slice exceeds its axis.
    pub fn sliced(self, slices: &[Slice]) -> Result<Self, Error> {
        Ok(TensorMut { layout: self.layout.sliced(slices)?, data: self.data })
    }

    /// Writes the elements of `from`, broadcast to the extents of this tensor.
    ///
    /// # Errors
    /// If `from` does not broadcast to these extents, or has elements of another type.
    pub fn assign(&mut self, from: &Tensor) -> Result<(), Error> {
        if from.scalar_type() != self.data.scalar() {
            let (found, own) = (from.scalar_type().short_name(), self.data.scalar().short_name());
            return Err(Error::tensors(
                TensorErrorKind::ElementType,
                format!("the elements are of type {found}, not {own}"),
            ));
        }
        let from = from.broadcast_to(self.layout.extents())?;
        from.check_copy()?;
        self.data.scatter(&from.gathered(), self.layout.positions());
        Ok(())
    }
}
