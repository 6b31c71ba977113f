//! Access to the memory of C programs. Pointers, counts and strides are checked here, and raw pointers are dereferenced only here. Some demands
//! cannot be checked, for example that the memory exists. The rules in the header oblige the caller to meet them.

#![deny(clippy::arithmetic_side_effects)]

use crate::failure::Failure;
use crate::kinds::{PRESENCE_ALL, PRESENCE_BITS, PRESENCE_BYTES};
use compiler::columns::InputColumn;
use compiler::{Date, Duration, Scalar, Timestamp};
use std::ffi::{c_char, c_void};
use std::fmt::Display;
use std::marker::PhantomData;

/// A C truth value: one byte, true unless 0. Rust's `bool` would allow only the bytes 0 and 1.
#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Flag(pub u8);

impl Flag {
    /// Returns true if the byte is not 0.
    #[must_use]
    pub const fn is_set(self) -> bool {
        self.0 != 0
    }
}

impl From<bool> for Flag {
    fn from(value: bool) -> Self {
        Flag(value.into())
    }
}

/// `cembra_text`: the pointer to a text and its length. The caller who made it guarantees that the bytes exist; `Text::read` checks that they are
/// UTF-8.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Text<'a> {
    ptr: *const c_char,
    len: usize,
    lives: PhantomData<&'a str>,
}

/// `cembra_bytes`: the pointer to a byte string and its length. The caller who made it guarantees that the bytes exist.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ByteString<'a> {
    ptr: *const u8,
    len: usize,
    lives: PhantomData<&'a [u8]>,
}

impl<'a> Text<'a> {
    /// Returns the `cembra_text` for a Rust string.
    #[must_use]
    pub const fn new(text: &'a str) -> Self {
        Text { ptr: text.as_ptr().cast(), len: text.len(), lives: PhantomData }
    }

    /// Returns the `cembra_text` for `len` bytes at `ptr`, as C would make it.
    ///
    /// # Safety
    /// C-MEMORY (`docs/safety.md`): `len` bytes must be at `ptr` for as long as the text is used, unless `ptr` is null or `len` is 0.
    #[must_use]
    pub const unsafe fn from_raw(ptr: *const c_char, len: usize) -> Self {
        Text { ptr, len, lives: PhantomData }
    }

    /// Returns the bytes of the text, which need not be UTF-8. Fails with an error that names `what` if the pointer or the length cannot be valid.
    pub(crate) fn bytes(self, what: impl Display + Copy) -> Result<&'a [u8], Failure> {
        // SAFETY: C-MEMORY: whoever made the view vouched for its bytes.
        unsafe { slice(self.ptr.cast::<u8>(), self.len, what) }
    }

    /// Returns the text as a Rust string. Fails with an error that names `what` if it is not UTF-8, or if its pointer or length cannot be valid.
    pub(crate) fn read(self, what: impl Display + Copy) -> Result<&'a str, Failure> {
        std::str::from_utf8(self.bytes(what)?).map_err(|error| {
            Failure::argument(format!(
                "{what} must be UTF-8, but byte {} does not begin a character",
                error.valid_up_to()
            ))
        })
    }

    /// Returns the text as a Rust string, for tests; `None` if it is not UTF-8.
    #[must_use]
    pub fn as_str(self) -> Option<&'a str> {
        self.read("the text").ok()
    }
}

impl<'a> ByteString<'a> {
    /// Returns the `cembra_bytes` for a Rust slice.
    #[must_use]
    pub const fn new(bytes: &'a [u8]) -> Self {
        ByteString { ptr: bytes.as_ptr(), len: bytes.len(), lives: PhantomData }
    }

    /// Returns the `cembra_bytes` for bytes that the session owns. The session keeps them until its next use, so the caller may choose a longer
    /// lifetime than that of `bytes`.
    pub(crate) const fn kept(bytes: &[u8]) -> Self {
        // The header tells C how long the bytes live.
        ByteString { ptr: bytes.as_ptr(), len: bytes.len(), lives: PhantomData }
    }

    /// Returns the bytes as a Rust slice. Fails with an error that names `what` if the pointer or the length cannot be valid.
    pub(crate) fn read(self, what: impl Display + Copy) -> Result<&'a [u8], Failure> {
        // SAFETY: C-MEMORY: whoever made the view vouched for its bytes.
        unsafe { slice(self.ptr, self.len, what) }
    }
}

/// Types for which every bit pattern is a valid value.
///
/// # Safety
/// For a type with this trait, any bit pattern must be a valid value, and the type must have no padding that is read (rule C-MEMORY in
/// `docs/safety.md`).
pub(crate) unsafe trait AnyBits: Copy {}

macro_rules! any_bits {
    ($($plain:ty),*) => { $(
        // SAFETY: C-MEMORY: numbers are any bits; views are pointers and lengths, which are checked when they are read.
        unsafe impl AnyBits for $plain {}
    )* };
}

any_bits!(u8, i32, i64, u64, f32, f64, Flag, Date, Timestamp, Duration, Text<'_>, ByteString<'_>);

/// Returns the `count` contiguous values at a C pointer as a slice. Fails if the pointer is null or misaligned, or if the size exceeds the address
/// space.
///
/// # Safety
/// C-MEMORY (`docs/safety.md`): `count` values must be at `first` for as long as the slice is used, unless `first` is null.
pub(crate) unsafe fn slice<'a, T: Copy>(
    first: *const T,
    count: usize,
    what: impl Display + Copy,
) -> Result<&'a [T], Failure> {
    if count == 0 {
        return Ok(&[]);
    }
    check::<T>(first.cast(), size_of::<T>().cast_signed(), count, what)?;
    // SAFETY: C-MEMORY: the address is aligned, the size is one of memory, and the caller promised the rest.
    Ok(unsafe { std::slice::from_raw_parts(first, count) })
}

/// Returns the struct at `at`. Fails with an error that names `what` if the pointer is null or misaligned.
///
/// # Safety
/// If `at` is not null, a value must be at the pointer for as long as the reference is used (rule C-MEMORY in `docs/safety.md`).
pub(crate) unsafe fn pointed<'a, T: Copy>(at: *const T, what: impl Display + Copy) -> Result<&'a T, Failure> {
    // SAFETY: C-MEMORY, promised by the caller.
    let one = unsafe { slice(at, 1, what) }?;
    one.first().ok_or_else(|| Failure::null(what))
}

/// Checks that the address is aligned and not null, and that `count` values with this stride in bytes fit into the address space.
fn check<T>(first: *const u8, stride: isize, count: usize, what: impl Display + Copy) -> Result<(), Failure> {
    if first.is_null() {
        return Err(Failure::null(what));
    }
    let align = align_of::<T>();
    if !first.addr().is_multiple_of(align) {
        return Err(Failure::argument(format!("{what} must be at an address that is a multiple of {align}")));
    }
    if !stride.unsigned_abs().is_multiple_of(align) {
        return Err(Failure::argument(format!("{what} has the stride {stride}, which must be a multiple of {align}")));
    }
    let reach = isize::try_from(count.saturating_sub(1)).ok().and_then(|last| last.checked_mul(stride));
    let within = reach.and_then(|reach| {
        let size = reach.unsigned_abs().checked_add(size_of::<T>())?;
        let last = first.addr().checked_add_signed(reach)?;
        last.max(first.addr()).checked_add(size_of::<T>())?;
        isize::try_from(size).ok()
    });
    match within {
        Some(_) => Ok(()),
        None => Err(Failure::argument(format!(
            "{what} has {count} values of stride {stride}, which do not fit into the address space"
        ))),
    }
}

/// A C array with a stride in bytes, to read from, whose address and stride were checked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Strided<'a, T> {
    first: *const u8,
    stride: isize,
    count: usize,
    lives: PhantomData<&'a T>,
}

impl<'a, T: AnyBits> Strided<'a, T> {
    /// Makes an array of `count` values for reading. Checks address, alignment, stride and count, as far as this is possible.
    ///
    /// # Safety
    /// C-MEMORY (`docs/safety.md`): unless `first` is null, there must be a value at each of the `count` addresses for as long as the array is used.
    pub(crate) unsafe fn new(
        first: *const c_void,
        stride: isize,
        count: usize,
        what: impl Display + Copy,
    ) -> Result<Self, Failure> {
        if count > 0 {
            check::<T>(first.cast(), stride, count, what)?;
            if stride != 0 && stride.unsigned_abs() < size_of::<T>() && count > 1 {
                let size = size_of::<T>();
                return Err(Failure::argument(format!(
                    "{what} has the stride {stride}, but values must be {size} bytes apart or more"
                )));
            }
        }
        Ok(Strided { first: first.cast(), stride, count, lives: PhantomData })
    }

    /// Iterates over copies of all values of the array.
    pub(crate) fn iter(self) -> impl ExactSizeIterator<Item = T> + 'a {
        (0..self.count).map(move |at| {
            let distance = at.cast_signed().wrapping_mul(self.stride);
            // SAFETY: C-MEMORY: the distance is one that was checked, the address aligned, and any bits are a value.
            unsafe { self.first.wrapping_offset(distance).cast::<T>().read() }
        })
    }

    /// Returns all values of the array as a slice; `None` if they are not contiguous.
    pub(crate) fn contiguous(self) -> Option<&'a [T]> {
        if self.count == 0 {
            return Some(&[]);
        }
        // SAFETY: C-MEMORY: address and size were checked, and any bits are a value.
        let all = || unsafe { std::slice::from_raw_parts(self.first.cast(), self.count) };
        (self.stride == size_of::<T>().cast_signed()).then(all)
    }

    /// Returns the array as an input column of the type `scalar`, whose values must have the same bits as `T`.
    pub(crate) fn column(self, scalar: Scalar) -> InputColumn<'a> {
        // SAFETY: COLUMNS: there is a number for each row, promised by whoever made this.
        unsafe { InputColumn::strided(scalar, self.first, self.stride, None, self.count) }
    }
}

/// A C array with a stride in bytes, to write to, whose address and stride were checked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StridedMut<T> {
    first: *mut u8,
    stride: isize,
    count: usize,
    lives: PhantomData<*mut T>,
}

impl<T: Copy> StridedMut<T> {
    /// Makes an array of `count` elements for writing. Checks address, alignment, stride and count, as far as this is possible.
    ///
    /// # Safety
    /// C-MEMORY (`docs/safety.md`): unless `first` is null, there must be writable memory for each of the `count` elements for as long as the array
    /// is used.
    pub(crate) unsafe fn new(
        first: *mut c_void,
        stride: isize,
        count: usize,
        what: impl Display + Copy,
    ) -> Result<Self, Failure> {
        if count > 0 {
            check::<T>(first.cast(), stride, count, what)?;
            if stride.unsigned_abs() < size_of::<T>() && count > 1 {
                let size = size_of::<T>();
                return Err(Failure::argument(format!(
                    "{what} has the stride {stride}, but values must be {size} bytes apart or more"
                )));
            }
        }
        Ok(StridedMut { first: first.cast(), stride, count, lives: PhantomData })
    }

    /// The number of elements in the array.
    pub(crate) const fn count(&self) -> usize {
        self.count
    }

    /// Iterates over the addresses of all elements. An element can be written to each address.
    #[inline]
    pub(crate) fn places(self) -> impl Iterator<Item = *mut T> {
        (0..self.count).map(move |at| {
            let distance = at.cast_signed().wrapping_mul(self.stride);
            // The distance is one that was checked, and the address aligned.
            self.first.wrapping_offset(distance).cast()
        })
    }

    /// Writes `values` to the elements of the array in order, until there are no more values or no more elements.
    #[inline]
    pub(crate) fn write(self, values: impl Iterator<Item = T>) {
        for (place, value) in self.places().zip(values) {
            // SAFETY: C-MEMORY: the place is one of those that were checked.
            unsafe { place.write(value) };
        }
    }

    /// Writes `values` to the elements of the array in order, until there are no more values or no more elements. Contiguous elements are written
    /// by one copy.
    pub(crate) fn write_all(self, values: &[T]) {
        if self.stride == size_of::<T>().cast_signed() {
            let count = self.count.min(values.len());
            if count > 0 {
                // SAFETY: C-MEMORY: as in `write`. The values are in the library's own memory, which C's memory cannot overlap.
                unsafe { self.first.cast::<T>().copy_from_nonoverlapping(values.as_ptr(), count) };
            }
        } else {
            self.write(values.iter().copied());
        }
    }
}

/// The checked memory that tells which values of a column are present.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Presence<'a> {
    All,
    /// No value is present: all values share one byte, which is 0.
    None,
    Bytes(Strided<'a, u8>),
    /// The presence is one bit per value. The payload is the bytes that hold the bits, the index of the first bit, and the number of bits.
    Bits(&'a [u8], usize, usize),
}

/// The description of a column's presence as C gives it, not yet checked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PresenceMemory<P> {
    /// The form in which C gives the presence: one of `CEMBRA_PRESENCE_*`.
    pub(crate) form: u32,
    pub(crate) first: P,
    /// The distance in bytes between the presence bytes of two values.
    pub(crate) stride: isize,
    /// The index of the bit that belongs to the first value.
    pub(crate) bit: usize,
}

/// Returns the number of bytes that hold the bits 0 to `first + count`.
fn bytes_of_bits(first: usize, count: usize, what: impl Display + Copy) -> Result<usize, Failure> {
    let end = first
        .checked_add(count)
        .ok_or_else(|| Failure::argument(format!("{what} has more bits than fit into the address space")))?;
    Ok(end.div_ceil(8))
}

impl<'a> Presence<'a> {
    /// Checks `memory`, the description of a column's presence, as far as this is possible: form, address, alignment and size.
    ///
    /// # Safety
    /// C-MEMORY (`docs/safety.md`): unless the address is null, there must be a presence byte, or a presence bit, for each value.
    pub(crate) unsafe fn new(
        memory: PresenceMemory<*const u8>,
        count: usize,
        what: impl Display + Copy,
    ) -> Result<Self, Failure> {
        let PresenceMemory { form, first, stride, bit } = memory;
        match form {
            PRESENCE_ALL => Ok(Presence::All),
            PRESENCE_BYTES => {
                // SAFETY: C-MEMORY, promised by the caller.
                let bytes = unsafe { Strided::<u8>::new(first.cast(), stride, count, what) }?;
                // A byte that all values share needs no memory after itself, whatever their number.
                Ok(match bytes.iter().next() {
                    Some(0) if stride == 0 => Presence::None,
                    Some(_) if stride == 0 => Presence::All,
                    _ => Presence::Bytes(bytes),
                })
            }
            PRESENCE_BITS if count == 0 => Ok(Presence::All),
            PRESENCE_BITS => {
                let bytes = bytes_of_bits(bit, count, what)?;
                // SAFETY: C-MEMORY, promised by the caller.
                Ok(Presence::Bits(unsafe { slice(first, bytes, what) }?, bit, count))
            }
            other => Err(Failure::unknown("CEMBRA_PRESENCE_*", other)),
        }
    }

    /// Copies the presence of all values into bits.
    pub(crate) fn read(self) -> Result<KnownPresence, Failure> {
        let words = match self {
            Presence::All | Presence::None => None,
            Presence::Bytes(bytes) => Some(gathered(bytes.iter().map(|byte| byte != 0))?),
            Presence::Bits(bytes, first, count) => {
                let bit = |at: usize| bytes.get(at / 8).is_some_and(|byte| byte >> (at % 8) & 1 != 0);
                Some(gathered((first..first.saturating_add(count)).map(bit))?)
            }
        };
        Ok(KnownPresence { is_none: matches!(self, Presence::None), words })
    }
}

/// The presence of a column's values, copied into bits.
#[derive(Debug)]
pub(crate) struct KnownPresence {
    /// True if no value of the column is present.
    pub(crate) is_none: bool,
    /// A bit per value of the column, set where the value is present; `None` if all values are present or all are missing.
    pub(crate) words: Option<Vec<u64>>,
}

impl KnownPresence {
    /// Returns true if the value at the index `at` is present.
    pub(crate) fn is_present(&self, at: usize) -> bool {
        let bit = |words: &Vec<u64>| words.get(at / 64).is_some_and(|word| word >> (at % 64) & 1 != 0);
        !self.is_none && self.words.as_ref().is_none_or(bit)
    }

    /// Marks every value as missing that `outer` marks as missing.
    pub(crate) fn limit_to(&mut self, outer: &KnownPresence) {
        self.is_none |= outer.is_none;
        match (&mut self.words, &outer.words) {
            (Some(words), Some(outer)) => words.iter_mut().zip(outer).for_each(|(word, outer)| *word &= outer),
            (words @ None, Some(outer)) => *words = Some(outer.clone()),
            (_, None) => {}
        }
    }
}

/// Packs `bits` into words of 64 bits, beginning with the lowest bit of each word.
pub(crate) fn gathered(bits: impl ExactSizeIterator<Item = bool>) -> Result<Vec<u64>, Failure> {
    let mut words = roomy(bits.len().div_ceil(64))?;
    let mut word = 0_u64;
    let mut at = 0_u32;
    for bit in bits {
        word |= u64::from(bit) << at;
        at = at.wrapping_add(1);
        if at == 64 {
            words.push(word);
            (word, at) = (0, 0);
        }
    }
    if at > 0 {
        words.push(word);
    }
    Ok(words)
}

/// Returns an empty list with room for `count` values. Fails if the memory cannot be allocated.
pub(crate) fn roomy<T>(count: usize) -> Result<Vec<T>, Failure> {
    let mut list = Vec::new();
    list.try_reserve_exact(count).map_err(|_| Failure::argument(format!("there is no memory for {count} values")))?;
    Ok(list)
}

/// The checked memory of a C program to which the presence of an output's values is written.
#[derive(Clone, Copy, Debug)]
pub(crate) enum PresenceMut {
    Nowhere,
    Bytes(StridedMut<u8>),
    /// The presence is written as one bit per value. The payload is the bytes that hold the bits, and the index of the first bit.
    Bits(StridedMut<u8>, usize),
}

impl PresenceMut {
    /// Checks `memory`, which describes where an output's presence is written, as far as this is possible: form, address, alignment and size.
    ///
    /// # Safety
    /// C-MEMORY (`docs/safety.md`): unless the address is null, there must be a writable presence byte, or presence bit, for each value.
    pub(crate) unsafe fn new(
        memory: PresenceMemory<*mut u8>,
        count: usize,
        what: impl Display + Copy,
    ) -> Result<Self, Failure> {
        let PresenceMemory { form, first, stride, bit } = memory;
        match form {
            PRESENCE_ALL => Ok(PresenceMut::Nowhere),
            // SAFETY: C-MEMORY, promised by the caller.
            PRESENCE_BYTES => Ok(PresenceMut::Bytes(unsafe { StridedMut::new(first.cast(), stride, count, what) }?)),
            PRESENCE_BITS => {
                let bytes = if count == 0 { 0 } else { bytes_of_bits(bit, count, what)? };
                // SAFETY: C-MEMORY, promised by the caller.
                let bytes = unsafe { StridedMut::new(first.cast(), 1, bytes, what) }?;
                Ok(PresenceMut::Bits(bytes, bit))
            }
            other => Err(Failure::unknown("CEMBRA_PRESENCE_*", other)),
        }
    }

    /// Returns true if the caller gave memory for the presence.
    pub(crate) const fn is_there(&self) -> bool {
        !matches!(self, PresenceMut::Nowhere)
    }

    /// Writes the presence of `count` values. If the presence is written as bits, the bits of the first and the last byte that belong to no value
    /// stay unchanged.
    pub(crate) fn write(self, count: usize, is_present: impl Fn(usize) -> bool) {
        match self {
            PresenceMut::Nowhere => {}
            PresenceMut::Bytes(bytes) => bytes.write((0..count).map(|at| is_present(at).into())),
            PresenceMut::Bits(bytes, first) => {
                for at in 0..count {
                    let bit = first.saturating_add(at);
                    debug_assert!(bit / 8 < bytes.count);
                    let byte = bytes.first.wrapping_add(bit / 8);
                    // SAFETY: C-MEMORY: the byte is one of those that were checked.
                    unsafe { byte.write(byte.read() & !(1 << (bit % 8)) | u8::from(is_present(at)) << (bit % 8)) };
                }
            }
        }
    }
}
