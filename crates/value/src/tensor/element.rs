//! The elements of tensors: values of one scalar type, stored as the corresponding Rust type. Truth values are stored
//! as bytes.

use super::error::TensorErrorKind;
use super::layout::Layout;
use super::walk::{CopiedAxis, copy_axes};
use crate::Error;
use crate::Limit;
use crate::lent::BorrowedSlice;
use cembra_runtime::{Scalar, advise_huge_pages, has_room};
use std::fmt::Debug;
use std::ops::Deref;

/// Elements of one type, either in memory of their own or borrowed from another owner. Borrowed elements are copied before one of them
/// is written.
pub struct Buffer<T> {
    /// The elements that the buffer owns; empty while elements are borrowed.
    own: Vec<T>,
    lent: Option<Box<BorrowedSlice<T>>>,
}

impl<T: Copy> Buffer<T> {
    /// Returns the elements as an owned vector, to be changed. Borrowed elements are copied first.
    #[inline]
    pub fn to_mut(&mut self) -> &mut Vec<T> {
        if let Some(lent) = self.lent.take() {
            self.own.extend_from_slice(&lent);
        }
        &mut self.own
    }
}

impl<T: 'static> Buffer<T> {
    /// Returns a buffer that borrows the elements in the memory of `owner`, without a copy. The buffer keeps `owner`
    /// alive.
    ///
    /// ```
    /// use cembra_value::tensor::{Buffer, Data, Layout, Tensor};
    /// use std::sync::Arc;
    ///
    /// // The elements at the even indices of a vector, which other code reads too.
    /// let numbers = Arc::new(vec![1.0, -1.0, 2.0, -2.0]);
    /// struct Shared(Arc<Vec<f64>>);
    /// impl AsRef<[f64]> for Shared {
    ///     fn as_ref(&self) -> &[f64] {
    ///         &self.0
    ///     }
    /// }
    /// let elements = Buffer::lent(Shared(numbers.clone()));
    /// assert_eq!(elements.as_ptr(), numbers.as_ptr());
    /// let tensor = Tensor::from_parts(Data::Float64(elements), Layout::strided(&[2], &[2], 0, 4)?)?;
    /// assert_eq!(tensor.to_vec::<f64>()?, [1.0, 2.0]);
    /// # Ok::<(), cembra_value::Error>(())
    /// ```
    #[must_use]
    pub fn lent(owner: impl AsRef<[T]> + Send + Sync + 'static) -> Self {
        Buffer { own: Vec::new(), lent: Some(Box::new(BorrowedSlice::of(owner))) }
    }
}

impl<T> Deref for Buffer<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        match &self.lent {
            None => &self.own,
            Some(lent) => lent,
        }
    }
}

impl<T> From<Vec<T>> for Buffer<T> {
    fn from(own: Vec<T>) -> Self {
        Buffer { own, lent: None }
    }
}

impl<T> FromIterator<T> for Buffer<T> {
    fn from_iter<I: IntoIterator<Item = T>>(elements: I) -> Self {
        Vec::from_iter(elements).into()
    }
}

impl<T: Copy> Clone for Buffer<T> {
    /// Copies the elements to owned memory.
    fn clone(&self) -> Self {
        self.to_vec().into()
    }
}

impl<T: PartialEq> PartialEq for Buffer<T> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl<T: Debug> Debug for Buffer<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        (**self).fmt(f)
    }
}

/// The elements in a tensor's memory, all of one type.
#[derive(Clone, PartialEq, Debug)]
pub enum Data {
    /// The elements are truth values.
    Bool(Buffer<bool>),
    /// The elements are 32-bit integers.
    Int32(Buffer<i32>),
    /// The elements are 64-bit integers.
    Int64(Buffer<i64>),
    /// The elements are 32-bit floats.
    Float32(Buffer<f32>),
    /// The elements are 64-bit floats.
    Float64(Buffer<f64>),
}

/// Borrowed elements of one type that are to be overwritten.
#[derive(Debug)]
pub enum DataMut<'d> {
    /// The elements are truth values.
    Bool(&'d mut [bool]),
    /// The elements are 32-bit integers.
    Int32(&'d mut [i32]),
    /// The elements are 64-bit integers.
    Int64(&'d mut [i64]),
    /// The elements are 32-bit floats.
    Float32(&'d mut [f32]),
    /// The elements are 64-bit floats.
    Float64(&'d mut [f64]),
}

/// An element type of tensors: `bool`, `i32`, `i64`, `f32` or `f64`.
pub trait Element: Copy + Default + PartialEq + Debug + Send + Sync + 'static {
    /// The corresponding scalar type.
    const SCALAR: Scalar;

    /// Returns the elements of `data` as a slice; `None` if they are of another type.
    fn of(data: &Data) -> Option<&[Self]>;

    /// Returns the elements of `data`, to be changed; `None` if they are of another type. Borrowed elements are copied
    /// first.
    fn of_mut(data: &mut Data) -> Option<&mut Vec<Self>>;

    /// Returns the elements of `data`, to be overwritten; `None` if they are of another type.
    fn of_part<'d>(data: DataMut<'d>) -> Option<&'d mut [Self]>;

    /// Returns `elements` as the data of a tensor.
    fn data(elements: impl Into<Buffer<Self>>) -> Data;

    /// The bits of this element as in a frame, extended with zeros to 64 bits.
    fn bits(self) -> u64;

    /// Returns the element with the bits `bits`.
    fn from_bits(bits: u64) -> Self;
}

/// Runs code on the elements of [`Data`], whatever their type.
///
/// ```
/// use cembra_value::tensor::Element;
///
/// let data = i32::data(vec![1, 2, 3]);
/// assert_eq!(cembra_value::with_data!(&data, elements => elements.len()), 3);
/// ```
#[macro_export]
macro_rules! with_data {
    ($data:expr, $elements:ident => $result:expr) => {
        match $data {
            $crate::tensor::Data::Bool($elements) => $result,
            $crate::tensor::Data::Int32($elements) => $result,
            $crate::tensor::Data::Int64($elements) => $result,
            $crate::tensor::Data::Float32($elements) => $result,
            $crate::tensor::Data::Float64($elements) => $result,
        }
    };
}

/// Runs code on the elements of [`DataMut`], whatever their type.
#[macro_export]
macro_rules! with_data_mut {
    ($data:expr, $elements:ident => $result:expr) => {
        match $data {
            $crate::tensor::DataMut::Bool($elements) => $result,
            $crate::tensor::DataMut::Int32($elements) => $result,
            $crate::tensor::DataMut::Int64($elements) => $result,
            $crate::tensor::DataMut::Float32($elements) => $result,
            $crate::tensor::DataMut::Float64($elements) => $result,
        }
    };
}

macro_rules! elements {
    ($($variant:ident($ty:ty) = $scalar:ident: |$x:ident| $bits:expr, |$from:ident| $element:expr;)*) => {
        $(impl Element for $ty {
            const SCALAR: Scalar = Scalar::$scalar;

            fn of(data: &Data) -> Option<&[Self]> {
                if let Data::$variant(elements) = data { Some(elements) } else { None }
            }

            fn of_mut(data: &mut Data) -> Option<&mut Vec<Self>> {
                if let Data::$variant(elements) = data { Some(elements.to_mut()) } else { None }
            }

            fn of_part<'d>(data: DataMut<'d>) -> Option<&'d mut [Self]> {
                if let DataMut::$variant(elements) = data { Some(elements) } else { None }
            }

            fn data(elements: impl Into<Buffer<Self>>) -> Data {
                Data::$variant(elements.into())
            }

            #[inline]
            fn bits(self) -> u64 {
                let $x = self;
                $bits
            }

            #[inline]
            fn from_bits($from: u64) -> Self {
                $element
            }
        })*

        impl<'d> DataMut<'d> {
            /// The number of elements that are to be overwritten.
            #[must_use]
            #[inline]
            pub const fn len(&self) -> usize {
                match self { $(DataMut::$variant(elements) => elements.len(),)* }
            }

            /// Borrows the elements again, for a shorter lifetime.
            #[inline]
            pub const fn reborrow(&mut self) -> DataMut<'_> {
                match self { $(DataMut::$variant(elements) => DataMut::$variant(elements),)* }
            }

            /// Splits the elements into the first `at` elements and the remaining elements; `None` if there are fewer than `at`.
            #[must_use]
            #[inline]
            pub fn split_at(self, at: usize) -> Option<[DataMut<'d>; 2]> {
                match self {
                    $(DataMut::$variant(elements) => {
                        let (first, others) = elements.split_at_mut_checked(at)?;
                        Some([DataMut::$variant(first), DataMut::$variant(others)])
                    })*
                }
            }

            /// Borrows the `len` elements from index `first` on; `None` if there are fewer.
            #[inline]
            pub fn part(&mut self, first: usize, len: usize) -> Option<DataMut<'_>> {
                let place = first..first.checked_add(len)?;
                Some(match self { $(DataMut::$variant(elements) => DataMut::$variant(elements.get_mut(place)?),)* })
            }
        }

        impl DataMut<'_> {
            /// Replaces the elements of `to`, which must be of the same type, by copies of these elements.
            ///
            /// # Errors
            /// If `to` has elements of another type.
            pub fn copy_to(&self, to: &mut Data) -> Result<(), Error> {
                match (self, to) {
                    $((DataMut::$variant(from), Data::$variant(to)) => {
                        let to = to.to_mut();
                        to.clear();
                        to.extend_from_slice(from);
                    })*
                    _ => return Err(misfit()),
                }
                Ok(())
            }
        }

        impl Data {
            /// Returns all elements, to be overwritten. Borrowed elements are copied first.
            #[inline]
            pub fn all_mut(&mut self) -> DataMut<'_> {
                match self { $(Data::$variant(elements) => DataMut::$variant(elements.to_mut().as_mut_slice()),)* }
            }

            /// The type of the elements in this data.
            #[must_use]
            #[inline]
            pub const fn scalar(&self) -> Scalar {
                match self { $(Data::$variant(_) => Scalar::$scalar,)* }
            }

            /// The bytes that an element of type `scalar` takes; `None` if tensors have no such elements.
            #[must_use]
            #[inline]
            pub const fn element_size(scalar: Scalar) -> Option<usize> {
                match scalar {
                    $(Scalar::$scalar => Some(size_of::<$ty>()),)*
                    _ => None,
                }
            }

            /// Makes data of `len` zeros, or of `false` for truth values.
            ///
            /// # Errors
            /// If tensors have no elements of this type, or if the system has no memory for `len` of them.
            pub fn zeros(scalar: Scalar, len: usize) -> Result<Data, Error> {
                Ok(match scalar {
                    $(Scalar::$scalar => Data::$variant(zeros(len)?.into()),)*
                    other => return Err(no_element(other)),
                })
            }
        }
    };
}

elements! {
    Bool(bool) = Boolean: |x| u64::from(x), |bits| bits & 1 != 0;
    Int32(i32) = Int32: |x| u64::from(x.cast_unsigned()), |bits| (bits as u32).cast_signed();
    Int64(i64) = Int64: |x| x.cast_unsigned(), |bits| bits.cast_signed();
    Float32(f32) = Float32: |x| u64::from(x.to_bits()), |bits| f32::from_bits(bits as u32);
    Float64(f64) = Float64: |x| x.to_bits(), |bits| f64::from_bits(bits);
}

impl DataMut<'_> {
    /// Returns true if there are no elements.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Overwrites the elements with those of `from`.
    ///
    /// # Errors
    /// If `from` has elements of another type, or another number of elements.
    pub fn copy_from(self, from: &Data) -> Result<(), Error> {
        fn copy<T: Element>(from: &[T], to: DataMut<'_>) -> Option<()> {
            let to = T::of_part(to).filter(|to| to.len() == from.len())?;
            to.copy_from_slice(from);
            Some(())
        }
        with_data!(from, from => copy(from, self)).ok_or_else(misfit)
    }
}

#[cold]
fn misfit() -> Error {
    Error::tensors(TensorErrorKind::ElementType, "the memory is not of the type and size of the elements")
}

impl Data {
    /// The number of elements in this data.
    #[must_use]
    #[inline]
    pub fn len(&self) -> usize {
        with_data!(self, elements => elements.len())
    }

    /// Returns true if the elements are [borrowed](Buffer::lent) from another owner.
    #[must_use]
    pub fn is_lent(&self) -> bool {
        with_data!(self, elements => elements.lent.is_some())
    }

    /// The bytes that all elements of this data take.
    #[must_use]
    #[inline]
    pub fn bytes(&self) -> u64 {
        (Data::element_size(self.scalar()).unwrap_or(0) * self.len()) as u64
    }

    /// Returns true if there are no elements.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns empty data with the same element type.
    #[must_use]
    pub fn none(&self) -> Data {
        fn none<T: Element>(_: &[T]) -> Data {
            T::data(Vec::new())
        }
        with_data!(self, elements => none(elements))
    }

    /// The bits of the element at index `at`.
    ///
    /// # Panics
    /// If there is no such element.
    #[must_use]
    #[inline]
    pub fn bits(&self, at: usize) -> u64 {
        with_data!(self, elements => elements[at].bits())
    }

    /// Writes the element at index `at`, given by its bits.
    ///
    /// # Panics
    /// If there is no such element.
    #[inline]
    pub fn set_bits(&mut self, at: usize, bits: u64) {
        with_data!(self, elements => elements.to_mut()[at] = Element::from_bits(bits));
    }

    /// Makes data with one element, given by its bits.
    ///
    /// # Errors
    /// If tensors have no elements of this type.
    pub fn of_bits(scalar: Scalar, bits: u64) -> Result<Data, Error> {
        fn one<T: Element>(_: &[T], bits: u64) -> Data {
            T::data(vec![T::from_bits(bits)])
        }
        let like = Data::zeros(scalar, 0)?;
        Ok(with_data!(&like, like => one(like, bits)))
    }

    /// Drops elements from the end, or appends zeros, so that there are `len` elements. The caller must have checked
    /// `len`; a length from untrusted input must go to [`try_resize`](Data::try_resize).
    #[inline]
    pub fn resize(&mut self, len: usize) {
        #[inline]
        fn resize<T: Element>(elements: &mut Vec<T>, len: usize) {
            if len > elements.capacity() {
                elements.reserve_exact(len.saturating_sub(elements.len()));
                advise_huge_pages(elements.spare_capacity_mut());
            }
            elements.resize(len, T::default());
        }
        with_data!(self, elements => resize(elements.to_mut(), len));
    }

    /// Drops elements from the end, or appends zeros, so that there are `len` elements. `len` may come from untrusted
    /// input.
    ///
    /// # Errors
    /// If the system has no memory for `len` elements.
    #[inline]
    pub fn try_resize(&mut self, len: usize) -> Result<(), Error> {
        if len > self.len() {
            check_room(Data::element_size(self.scalar()).unwrap_or(0).saturating_mul(len))?;
        }
        self.resize(len);
        Ok(())
    }

    /// Appends the elements of `from` at the positions that `layout` gives, in row-major order of its indices. `from`
    /// must have the same element type.
    ///
    /// # Panics
    /// If the layout leads outside of `from`.
    pub fn append_ordered(&mut self, from: &Data, layout: &Layout) {
        fn append<T: Element>(to: &mut Vec<T>, from: &Data, layout: &Layout) {
            let from = T::of(from).unwrap_or_default();
            let Some(last) = layout.rank().checked_sub(1) else {
                to.extend(layout.positions().map(|at| from[at]));
                return;
            };
            // Copies line by line along the last axis; the other axes give the starts of lines.
            let [outer, line] = layout.split(&[last as u8]);
            let (count, step) = (line.len(), line.strides()[0]);
            to.reserve(layout.len());
            for start in outer.positions().take(if count == 0 { 0 } else { usize::MAX }) {
                match step {
                    1 => to.extend_from_slice(&from[start..][..count]),
                    0 => to.extend(std::iter::repeat_n(from[start], count)),
                    _ => to.extend((0..count).map(|at| from[start.wrapping_add_signed(at.cast_signed() * step)])),
                }
            }
        }
        with_data!(self, elements => append(elements.to_mut(), from, layout));
    }

    /// Replaces the elements by runs of elements from `from`, which must have the same type. Run `n` begins
    /// `distances[n]` elements after position `first` of `from`, and has `count` elements, whose positions are `step`
    /// apart.
    ///
    /// # Panics
    /// If a run leads outside of `from`.
    #[inline]
    pub fn copy_lines(&mut self, from: &Data, first: usize, distances: &[isize], count: usize, step: isize) {
        fn copy<T: Element>(
            to: &mut Vec<T>,
            from: &Data,
            first: usize,
            distances: &[isize],
            count: usize,
            step: isize,
        ) {
            const SHORT: usize = 16;
            let from = T::of(from).unwrap_or_default();
            to.clear();
            to.reserve(distances.len() * count);
            for distance in distances {
                let start = first.wrapping_add_signed(*distance);
                match step {
                    1 if count >= SHORT => to.extend_from_slice(&from[start..][..count]),
                    0 => to.extend(std::iter::repeat_n(from[start], count)),
                    _ => to.extend((0..count).map(|at| from[start.wrapping_add_signed(at.cast_signed() * step)])),
                }
            }
        }
        with_data!(self, elements => copy(elements.to_mut(), from, first, distances, count, step));
    }

    /// Replaces all elements of this data by copies of elements of `from`: one for each index of an index space with the axes `axes`. The index that
    /// is 0 on all axes is at position `first` of `from`, and at position 0 of this data. Each axis has a stride for reading and one for writing.
    ///
    /// # Panics
    /// If a position is outside of `from` or of this data.
    pub fn copy_axes(&mut self, from: &Data, first: usize, axes: &[CopiedAxis]) {
        fn copy<T: Element>(to: &mut [T], from: &Data, first: usize, axes: &[CopiedAxis]) {
            copy_axes(T::of(from).unwrap_or_default(), first, to, axes);
        }
        self.resize(axes.iter().map(|axis| axis.extent).product());
        with_data!(self, elements => copy(elements.to_mut(), from, first, axes));
    }

    /// Writes the elements of `from` to the positions `positions` of this data, one after the other.
    ///
    /// # Panics
    /// If a position is outside of the data.
    pub fn scatter(&mut self, from: &Data, positions: impl Iterator<Item = usize>) {
        fn place<T: Element>(to: &mut [T], from: &Data, positions: impl Iterator<Item = usize>) {
            for (at, element) in positions.zip(T::of(from).unwrap_or_default()) {
                to[at] = *element;
            }
        }
        with_data!(self, elements => place(elements.to_mut(), from, positions));
    }
}

/// Checks that the system has memory for `bytes` bytes.
///
/// # Errors
/// If the system has no memory for `bytes` bytes.
pub fn check_room(bytes: usize) -> Result<(), Error> {
    if has_room(bytes) {
        return Ok(());
    }
    let message = format!("a tensor takes {bytes} bytes, for which the system has no memory");
    Err(Error::tensors(TensorErrorKind::Limit, message).hint("make fewer or smaller tensors"))
}

/// Makes a vector of `len` zeros.
///
/// # Errors
/// If the system has no memory for `len` elements.
pub fn zeros<T: Element>(len: usize) -> Result<Vec<T>, Error> {
    check_room(size_of::<T>().saturating_mul(len))?;
    let zeros = vec![T::default(); len];
    advise_huge_pages(&zeros);
    Ok(zeros)
}

/// Checks that the elements of a tensor with these extents take at most `most` bytes.
///
/// # Errors
/// If the elements take more than `most` bytes, or if tensors have no elements of type `scalar`.
pub fn check_bytes(scalar: Scalar, extents: &[usize], most: u64) -> Result<(), Error> {
    let wanted = element_bytes(scalar, extents).ok_or_else(|| no_element(scalar))?;
    if wanted <= u128::from(most) {
        return Ok(());
    }
    let message = format!("a tensor of extents {extents:?} takes {wanted} bytes; the limit is {most} bytes");
    Err(Error::tensors(TensorErrorKind::Limit, message).hint(Limit::ArrayBytes.hint()))
}

/// The bytes that the elements of a tensor with these extents take; `None` if tensors have no elements of type
/// `scalar`.
#[must_use]
pub fn element_bytes(scalar: Scalar, extents: &[usize]) -> Option<u128> {
    Some(Data::element_size(scalar)? as u128 * extents.iter().product::<usize>() as u128)
}

/// Returns the error for `scalar`, an element type that tensors do not have.
#[must_use]
pub fn no_element(scalar: Scalar) -> Error {
    Error::tensors(
        TensorErrorKind::ElementType,
        format!("tensors cannot have elements of type {}", scalar.short_name()),
    )
    .hint("use elements of type bool, i32, i64, f32 or f64")
}
