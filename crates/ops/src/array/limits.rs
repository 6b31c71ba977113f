//! Makes arrays from elements of other arrays, within limits, so that a small model cannot make arrays larger than
//! memory. The number of elements and the bytes of strings have a maximum, and an evaluation has a memory limit.

use super::{ArrayOperands, out_of_range};
use cembra_runtime::{Fault, FaultKind, QType, Scalar};
use cembra_value::{Array, ArrayBuilder, ArrayData, Number, ScalarValue};

pub use crate::limits::ARRAY_ELEMENTS as MOST_ELEMENTS;

/// The bytes of memory that [`taken`] needs per element of the result: for the index, for reading the element, and for
/// the result itself.
pub(crate) const TAKEN_BYTES: usize = 32;

/// The most bytes of strings that one operator writes: as many as [`MOST_ELEMENTS`] 64-bit numbers take.
const STRING_BYTES: usize = 8 * MOST_ELEMENTS;

/// The fault for an array above the limits.
fn too_large() -> Fault {
    Fault::with(FaultKind::ArenaLimit, STRING_BYTES as u64)
}

/// Checks that an array with `elements` elements is possible.
///
/// # Errors
/// If there are more than [`MOST_ELEMENTS`].
pub(crate) fn check(elements: usize) -> Result<(), Fault> {
    if elements > MOST_ELEMENTS { Err(too_large()) } else { Ok(()) }
}

/// The size in bytes of an element of type `scalar` in an array. For a string, this is the size of its view (address and length).
pub(crate) fn size_of_each(scalar: Scalar) -> usize {
    QType::Scalar(scalar).layout().size as usize
}

/// The bytes that a string of `len` bytes takes in an array: its view (address and length), and its contents if these do not fit into the view.
pub(crate) const fn string_bytes(len: usize) -> u64 {
    const IN_VIEW: usize = 12;
    16 + if len > IN_VIEW { len as u64 } else { 0 }
}

/// A builder for an array whose elements are copied from other arrays. It checks the limits of the evaluation.
#[derive(Debug)]
pub(crate) struct TakenArrayBuilder<'a> {
    args: &'a ArrayOperands<'a>,
    made: ArrayBuilder,
    string_bytes: usize,
    /// The bytes that the array takes, except for the contents of strings.
    bytes: u64,
}

impl<'a> TakenArrayBuilder<'a> {
    /// Begins an array that will have `elements` elements of type `scalar`, for a kernel with the operands `args`.
    ///
    /// # Errors
    /// If there are too many elements, or the evaluation has no memory for them.
    pub(crate) fn new(args: &'a ArrayOperands<'a>, scalar: Scalar, elements: usize) -> Result<Self, Fault> {
        let each = size_of_each(scalar);
        args.room_for(elements, each)?;
        let bytes = elements as u64 * each as u64;
        Ok(TakenArrayBuilder { args, made: ArrayBuilder::new(scalar, elements), string_bytes: 0, bytes })
    }

    /// Appends the element of `array` at the index `place`, or a missing element if `place` is `None`. The array must have the builder's element
    /// type.
    ///
    /// # Errors
    /// If there are too many elements or bytes of strings.
    pub(crate) fn push(&mut self, array: &Array, place: Option<usize>) -> Result<(), Fault> {
        self.string_bytes += place.and_then(|at| array.string(at)).map_or(0, <[u8]>::len);
        if self.string_bytes > STRING_BYTES || self.made.len() == MOST_ELEMENTS {
            return Err(too_large());
        }
        self.args.room_for_bytes(self.bytes.saturating_add(self.string_bytes as u64))?;
        self.made.push_from(array, place);
        Ok(())
    }

    /// Returns the array that the builder has built.
    pub(crate) fn finish(self) -> Array {
        self.made.finish()
    }
}

/// Returns an array of the elements of `array` at the indices `places`, in the order of `places`. An element of the result is missing where the index
/// is `None` or the element at the index is missing.
///
/// # Errors
/// If there are too many elements or bytes of strings.
pub(crate) fn taken(
    args: &ArrayOperands<'_>,
    array: &Array,
    places: impl Iterator<Item = Option<usize>>,
) -> Result<Array, Fault> {
    if matches!(array.data(), ArrayData::Numbers(_)) {
        // Only the size of the numbers matters here, not their type.
        let is_wide = QType::Scalar(array.scalar()).layout().size == 8;
        return if is_wide { taken_numbers::<i64>(array, places) } else { taken_numbers::<i32>(array, places) };
    }
    let mut made = TakenArrayBuilder::new(args, array.scalar(), places.size_hint().0)?;
    for place in places {
        made.push(array, place)?;
    }
    Ok(made.finish())
}

/// Returns the elements of a numeric array at given indices. `indices` is the array of the indices, and `all` has its
/// numbers as a slice. An element of the result is missing if the index, or the element at the index, is missing.
///
/// # Errors
/// If an index is out of range, or there are too many indices.
pub(crate) fn taken_at<I: Number + Into<i64>>(array: &Array, indices: &Array, all: &[I]) -> Result<Array, Fault> {
    check(all.len())?;
    let is_wide = QType::Scalar(array.scalar()).layout().size == 8;
    if is_wide { numbers_at::<u64, I>(array, indices, all) } else { numbers_at::<i32, I>(array, indices, all) }
}

fn numbers_at<T: Number, I: Number + Into<i64>>(array: &Array, indices: &Array, all: &[I]) -> Result<Array, Fault> {
    let from = array.numbers::<T>().ok_or(Fault::new(FaultKind::Invalid))?;
    // A negative index becomes larger than any length.
    let place = |index: &I| Into::<i64>::into(*index) as usize;
    let is_full = indices.presence().is_none() && array.presence().is_none();
    let mut is_inside = true;
    let presence = if is_full {
        is_inside = all.iter().fold(true, |is_inside, index| is_inside & (place(index) < from.len()));
        None
    } else {
        let (of_indices, of_array) = (indices.presence(), array.presence());
        let one = |bits: Option<&[u64]>, at: usize| bits.map_or(1, |bits| bits[at / 64] >> (at % 64) & 1);
        let word = |(word, all): (usize, &[I])| {
            all.iter().enumerate().fold(0, |bits, (at, index)| {
                let (place, is_wanted) = (place(index), one(of_indices, 64 * word + at));
                is_inside &= place < from.len() || is_wanted == 0;
                bits | (if place < from.len() { is_wanted & one(of_array, place) } else { 0 }) << at
            })
        };
        Some(all.chunks(64).enumerate().map(word).collect())
    };
    if !is_inside {
        let is_outside = |at: &usize| indices.is_present(*at) && place(&all[*at]) >= from.len();
        let first = (0..all.len()).find(is_outside).map_or(-1, |at| all[at].into());
        return Err(out_of_range(first, from.len()));
    }
    let made = Array::of_numbers(array.scalar(), all.len(), presence, |to: &mut [T]| {
        for (to, index) in to.iter_mut().zip(all) {
            if let Some(element) = from.get(place(index)) {
                *to = *element;
            }
        }
    });
    made.ok_or(Fault::new(FaultKind::Invalid))
}

fn taken_numbers<T: Number + Default>(
    array: &Array,
    places: impl Iterator<Item = Option<usize>>,
) -> Result<Array, Fault> {
    let room = places.size_hint().0;
    check(room)?;
    let from = array.numbers::<T>().ok_or(Fault::new(FaultKind::Invalid))?;
    let (mut numbers, mut presence) = (Vec::with_capacity(room), Vec::with_capacity(room.div_ceil(64)));
    for (at, place) in places.enumerate() {
        let place = place.filter(|place| array.is_present(*place));
        if at.is_multiple_of(64) {
            check(at + 64)?;
            presence.push(0_u64);
        }
        presence[at / 64] |= u64::from(place.is_some()) << (at % 64);
        numbers.push(place.map_or(T::default(), |place| from[place]));
    }
    let made = Array::of_numbers(array.scalar(), numbers.len(), Some(presence), |all| all.copy_from_slice(&numbers));
    made.ok_or(Fault::new(FaultKind::Invalid))
}

/// Concatenates two arrays of the same element type: returns the elements of `first`, then those of `second`.
///
/// # Errors
/// If there are too many elements or bytes of strings.
pub(crate) fn joined(args: &ArrayOperands<'_>, first: &Array, second: &Array) -> Result<Array, Fault> {
    let len = first.len() + second.len();
    args.room_for(len, size_of_each(first.scalar()))?;
    if matches!(first.data(), ArrayData::Numbers(_)) {
        let is_wide = QType::Scalar(first.scalar()).layout().size == 8;
        return if is_wide { joined_numbers::<i64>(first, second) } else { joined_numbers::<i32>(first, second) };
    }
    let mut made = TakenArrayBuilder::new(args, first.scalar(), len)?;
    for array in [first, second] {
        (0..array.len()).try_for_each(|at| made.push(array, Some(at)))?;
    }
    Ok(made.finish())
}

fn joined_numbers<T: Number>(first: &Array, second: &Array) -> Result<Array, Fault> {
    let (len, invalid) = (first.len() + second.len(), Fault::new(FaultKind::Invalid));
    check(len)?;
    let (before, behind) = (first.numbers::<T>().ok_or(invalid)?, second.numbers::<T>().ok_or(invalid)?);
    let is_full = first.presence().is_none() && second.presence().is_none();
    let presence = (!is_full).then(|| {
        let mut bits = vec![0_u64; len.div_ceil(64)];
        let is_present = |at| first.is_present(at) || at >= first.len() && second.is_present(at - first.len());
        (0..len).for_each(|at| bits[at / 64] |= u64::from(is_present(at)) << (at % 64));
        bits
    });
    let made = Array::of_numbers(first.scalar(), len, presence, |all: &mut [T]| {
        let (to, rest) = all.split_at_mut(before.len());
        to.copy_from_slice(before);
        rest.copy_from_slice(behind);
    });
    made.ok_or(invalid)
}

/// Returns an array with `times` copies of `element`.
///
/// # Errors
/// If there are too many elements or bytes of strings.
pub(crate) fn repeated(
    args: &ArrayOperands<'_>,
    scalar: Scalar,
    element: Option<&ScalarValue>,
    times: usize,
) -> Result<Array, Fault> {
    let one = Array::from_scalars(scalar, [element.cloned()]);
    // Limits are checked before anything is written.
    let bytes = one.string(0).map_or(0, <[u8]>::len).saturating_mul(times);
    if bytes > STRING_BYTES {
        return Err(too_large());
    }
    args.room_for_bytes(bytes as u64)?;
    taken(args, &one, std::iter::repeat_n(Some(0), times))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_taken_in_order_and_holes_with_them() {
        let args = ArrayOperands::of_call(&[]);
        for scalar in Scalar::ALL {
            let element = |at: usize| match scalar {
                Scalar::Text => ScalarValue::Text("ab".repeat(10 * at).into()),
                Scalar::Bytes => ScalarValue::Bytes(vec![7; at].into()),
                _ => ScalarValue::from_bits(scalar, at as u64).unwrap_or(ScalarValue::Boolean(at == 1)),
            };
            let array = Array::from_scalars(scalar, [Some(element(1)), None, Some(element(0))]);
            let places = [2, 0, 1, 9].map(Some).into_iter().chain([None]).cycle().take(130);
            let found = taken(&args, &array, places).unwrap();
            let expected = [Some(element(0)), Some(element(1)), None, None, None].into_iter().cycle().take(130);
            assert!(found.iter().eq(expected), "{scalar}: {found}");
            assert_eq!(taken(&args, &array, std::iter::empty()).unwrap().len(), 0);
        }
    }

    #[test]
    fn arrays_are_joined_with_their_holes() {
        let args = ArrayOperands::of_call(&[]);
        for scalar in [Scalar::Int32, Scalar::Float64, Scalar::Boolean, Scalar::Text] {
            let of = |len: usize, hole: usize| {
                let element = |at: usize| match scalar {
                    Scalar::Text => ScalarValue::Text("ab".repeat(at).into()),
                    _ => ScalarValue::from_bits(scalar, (at % 2) as u64).unwrap_or(ScalarValue::Unit),
                };
                Array::from_scalars(scalar, (0..len).map(|at| (at != hole).then(|| element(at))))
            };
            for (a, b) in [(of(0, 0), of(0, 0)), (of(3, 9), of(70, 99)), (of(65, 64), of(3, 9)), (of(3, 9), of(65, 0))]
            {
                let found = joined(&args, &a, &b).unwrap();
                assert!(found.iter().eq(a.iter().chain(b.iter())), "{scalar}: {found}");
            }
        }
    }

    #[test]
    fn neither_elements_nor_their_strings_grow_without_bound() {
        let (args, fault) = (ArrayOperands::of_call(&[]), Err(too_large()));
        let one = ScalarValue::Int32(1);
        assert_eq!(repeated(&args, Scalar::Int32, Some(&one), MOST_ELEMENTS + 1), fault);
        assert_eq!(repeated(&args, Scalar::Unit, None, usize::MAX), fault);
        let text = ScalarValue::Bytes(vec![7; 1 << 20].into());
        assert_eq!(repeated(&args, Scalar::Bytes, Some(&text), (STRING_BYTES >> 20) + 1), fault);
        assert_eq!(repeated(&args, Scalar::Bytes, Some(&text), 2).map(|made| made.len()), Ok(2));
        // Two strings fit, with their views; a third does not.
        let args = ArrayOperands::new(&[], &|| false, (2 << 20) + 32);
        let two = repeated(&args, Scalar::Bytes, Some(&text), 2).unwrap();
        assert_eq!((two.len(), repeated(&args, Scalar::Bytes, Some(&text), 3)), (2, Err(ArrayOperands::NO_MEMORY)));
        let take = |count: usize| taken(&args, &two, std::iter::repeat_n(Some(1), count)).map(|made| made.len());
        assert_eq!([take(2), take(3)], [Ok(2), Err(ArrayOperands::NO_MEMORY)]);
        let one = taken(&args, &two, [Some(0)].into_iter()).unwrap();
        assert_eq!(joined(&args, &one, &one).map(|made| made.len()), Ok(2));
        assert_eq!(joined(&args, &two, &one), Err(ArrayOperands::NO_MEMORY));
        assert_eq!(check(MOST_ELEMENTS), Ok(()));
    }
}
