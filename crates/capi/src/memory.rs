//! Memory of C programs, as it is read and written: pointers, counts and strides are checked here, and nowhere else is a raw pointer followed. What a
//! check cannot see, that there is memory at all, is what the header makes the caller promise.

#![deny(clippy::arithmetic_side_effects)]

use crate::failure::Failure;
use crate::kinds::{PRESENCE_ALL, PRESENCE_BITS, PRESENCE_BYTES};
use compiler::{Date, Duration, InputColumn, Scalar, Timestamp};
use std::ffi::{c_char, c_void};
use std::fmt::Display;
use std::marker::PhantomData;

/// A truth value of C: a byte, of which any but 0 is true. A `bool` of Rust may be no other byte than 0 and 1.
#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Flag(pub u8);

impl Flag {
    /// True if it is.
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

/// `cembra_text`: whoever makes one vouches for its bytes; that they are UTF-8 is looked at.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Text<'a> {
    ptr: *const c_char,
    len: usize,
    lives: PhantomData<&'a str>,
}

/// `cembra_bytes`, likewise.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ByteString<'a> {
    ptr: *const u8,
    len: usize,
    lives: PhantomData<&'a [u8]>,
}

impl<'a> Text<'a> {
    /// A view of a text.
    #[must_use]
    pub const fn new(text: &'a str) -> Self {
        Text { ptr: text.as_ptr().cast(), len: text.len(), lives: PhantomData }
    }

    /// A view as C makes one.
    ///
    /// # Safety
    /// C-MEMORY: `len` bytes are at the pointer for as long as the view is used, or the pointer is null, or `len` is 0.
    #[must_use]
    pub const unsafe fn from_raw(ptr: *const c_char, len: usize) -> Self {
        Text { ptr, len, lives: PhantomData }
    }

    /// The bytes of the text, which may be no UTF-8; an error that names it if they cannot be.
    pub(crate) fn bytes(self, what: impl Display + Copy) -> Result<&'a [u8], Failure> {
        // SAFETY: C-MEMORY: whoever made the view vouched for its bytes.
        unsafe { slice(self.ptr.cast::<u8>(), self.len, what) }
    }

    /// The text; an error that names it if it is none.
    pub(crate) fn read(self, what: impl Display + Copy) -> Result<&'a str, Failure> {
        std::str::from_utf8(self.bytes(what)?).map_err(|error| {
            Failure::argument(format!("{what} is not UTF-8: byte {} begins no character", error.valid_up_to()))
        })
    }

    /// The text's bytes, for tests of what comes out.
    #[must_use]
    pub fn as_str(self) -> Option<&'a str> {
        self.read("the text").ok()
    }
}

impl<'a> ByteString<'a> {
    /// A view of bytes.
    #[must_use]
    pub const fn new(bytes: &'a [u8]) -> Self {
        ByteString { ptr: bytes.as_ptr(), len: bytes.len(), lives: PhantomData }
    }

    /// A view of bytes that somebody keeps.
    pub(crate) const fn kept(bytes: &[u8]) -> Self {
        // C is told how long that is.
        ByteString { ptr: bytes.as_ptr(), len: bytes.len(), lives: PhantomData }
    }

    /// The bytes; an error that names them if they cannot be.
    pub(crate) fn read(self, what: impl Display + Copy) -> Result<&'a [u8], Failure> {
        // SAFETY: C-MEMORY: whoever made the view vouched for its bytes.
        unsafe { slice(self.ptr, self.len, what) }
    }
}

/// Types of which any bits are a value.
///
/// # Safety
/// C-MEMORY: any bits are a value, and the type has no padding that is read.
pub(crate) unsafe trait AnyBits: Copy {}

macro_rules! any_bits {
    ($($plain:ty),*) => { $(
        // SAFETY: C-MEMORY: numbers are any bits; views are pointers and lengths, which are checked when they are read.
        unsafe impl AnyBits for $plain {}
    )* };
}

any_bits!(u8, i32, i64, u64, f32, f64, Flag, Date, Timestamp, Duration, Text<'_>, ByteString<'_>);

/// `count` contiguous values.
///
/// # Safety
/// C-MEMORY: `count` values are at the pointer for as long as the slice is used, or the pointer is null.
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

/// A struct that a struct points to.
///
/// # Safety
/// C-MEMORY: as for [`slice`].
pub(crate) unsafe fn pointed<'a, T: Copy>(at: *const T, what: impl Display + Copy) -> Result<&'a T, Failure> {
    // SAFETY: C-MEMORY, promised by the caller.
    let one = unsafe { slice(at, 1, what) }?;
    one.first().ok_or_else(|| Failure::null(what))
}

/// Checks the address and its alignment, and that `count` values with this stride are within memory.
fn check<T>(first: *const u8, stride: isize, count: usize, what: impl Display + Copy) -> Result<(), Failure> {
    if first.is_null() {
        return Err(Failure::null(what));
    }
    let align = align_of::<T>();
    if !first.addr().is_multiple_of(align) {
        return Err(Failure::argument(format!("{what} is at an address that is no multiple of {align}")));
    }
    if !stride.unsigned_abs().is_multiple_of(align) {
        return Err(Failure::argument(format!("{what} has the stride {stride}, which is no multiple of {align}")));
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
        None => Err(Failure::argument(format!("{what} has {count} values of stride {stride}, which no memory has"))),
    }
}

/// Values with a stride between them, to be read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Strided<'a, T> {
    first: *const u8,
    stride: isize,
    count: usize,
    lives: PhantomData<&'a T>,
}

impl<'a, T: AnyBits> Strided<'a, T> {
    /// Checks what can be checked.
    ///
    /// # Safety
    /// C-MEMORY: there is a value at each place for as long as they are used, or the address is null.
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
                return Err(Failure::argument(format!("{what} has the stride {stride}, and values of {size} bytes")));
            }
        }
        Ok(Strided { first: first.cast(), stride, count, lives: PhantomData })
    }

    /// All of them, one by one.
    pub(crate) fn iter(self) -> impl ExactSizeIterator<Item = T> + 'a {
        (0..self.count).map(move |at| {
            let distance = at.cast_signed().wrapping_mul(self.stride);
            // SAFETY: C-MEMORY: the distance is one that was checked, the address aligned, and any bits are a value.
            unsafe { self.first.wrapping_offset(distance).cast::<T>().read() }
        })
    }

    /// All values as a slice, if they are contiguous.
    pub(crate) fn contiguous(self) -> Option<&'a [T]> {
        if self.count == 0 {
            return Some(&[]);
        }
        // SAFETY: C-MEMORY: address and size were checked, and any bits are a value.
        let all = || unsafe { std::slice::from_raw_parts(self.first.cast(), self.count) };
        (self.stride == size_of::<T>().cast_signed()).then(all)
    }

    /// A column of numbers of this type, or of one with the same bits.
    pub(crate) fn column(self, scalar: Scalar) -> InputColumn<'a> {
        // SAFETY: COLUMNS: there is a number for each row, promised by whoever made this.
        unsafe { InputColumn::strided(scalar, self.first, self.stride, None, self.count) }
    }
}

/// Places with a stride between them, to be written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StridedMut<T> {
    first: *mut u8,
    stride: isize,
    count: usize,
    lives: PhantomData<*mut T>,
}

impl<T: Copy> StridedMut<T> {
    /// Checks what can be checked.
    ///
    /// # Safety
    /// C-MEMORY: each place can be written for as long as this is used, or the address is null.
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
                return Err(Failure::argument(format!("{what} has the stride {stride}, and values of {size} bytes")));
            }
        }
        Ok(StridedMut { first: first.cast(), stride, count, lives: PhantomData })
    }

    /// How many places there are.
    pub(crate) const fn count(&self) -> usize {
        self.count
    }

    /// The places, each of which can be written.
    #[inline]
    pub(crate) fn places(self) -> impl Iterator<Item = *mut T> {
        (0..self.count).map(move |at| {
            let distance = at.cast_signed().wrapping_mul(self.stride);
            // The distance is one that was checked, and the address aligned.
            self.first.wrapping_offset(distance).cast()
        })
    }

    /// Writes a value to each place, as far as there are values.
    #[inline]
    pub(crate) fn write(self, values: impl Iterator<Item = T>) {
        for (place, value) in self.places().zip(values) {
            // SAFETY: C-MEMORY: the place is one of those that were checked.
            unsafe { place.write(value) };
        }
    }

    /// Writes a value to each place, as far as there are values.
    pub(crate) fn write_all(self, values: &[T]) {
        if self.stride == size_of::<T>().cast_signed() {
            let count = self.count.min(values.len());
            if count > 0 {
                // SAFETY: C-MEMORY: as in `write`; the values lie in memory of the library's, which nobody else can have.
                unsafe { self.first.cast::<T>().copy_from_nonoverlapping(values.as_ptr(), count) };
            }
        } else {
            self.write(values.iter().copied());
        }
    }
}

/// Where it is said which values are present.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Presence<'a> {
    All,
    /// None of them, as a byte says that all share.
    None,
    Bytes(Strided<'a, u8>),
    /// Bits in bytes, from one on.
    Bits(&'a [u8], usize, usize),
}

/// The presence of a column's values as C gives it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PresenceMemory<P> {
    /// The form of the presence: one of `CEMBRA_PRESENCE_*`.
    pub(crate) form: u32,
    pub(crate) first: P,
    /// The distance between the bytes of two values.
    pub(crate) stride: isize,
    /// The index of the first value's bit.
    pub(crate) bit: usize,
}

/// How many bytes there are from the one with the first bit to that with the last.
fn bytes_of_bits(first: usize, count: usize, what: impl Display + Copy) -> Result<usize, Failure> {
    let end =
        first.checked_add(count).ok_or_else(|| Failure::argument(format!("{what} has no memory of so many bits")))?;
    Ok(end.div_ceil(8))
}

impl<'a> Presence<'a> {
    /// Checks what can be checked.
    ///
    /// # Safety
    /// C-MEMORY: there is a byte, or a bit, for each value, or the address is null.
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
                // A byte that all share says so of any number of values, behind which there need be no memory.
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

    /// Reads the presence of all values.
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

/// The presence of values, read.
#[derive(Debug)]
pub(crate) struct KnownPresence {
    /// True if no value is present.
    pub(crate) is_none: bool,
    /// A bit for each value, set where it is present; `None` if all values are alike.
    pub(crate) words: Option<Vec<u64>>,
}

impl KnownPresence {
    /// True if the value at this index is present.
    pub(crate) fn is_present(&self, at: usize) -> bool {
        let bit = |words: &Vec<u64>| words.get(at / 64).is_some_and(|word| word >> (at % 64) & 1 != 0);
        !self.is_none && self.words.as_ref().is_none_or(bit)
    }

    /// Makes each value missing that `outer` says to be missing.
    pub(crate) fn limit_to(&mut self, outer: &KnownPresence) {
        self.is_none |= outer.is_none;
        match (&mut self.words, &outer.words) {
            (Some(words), Some(outer)) => words.iter_mut().zip(outer).for_each(|(word, outer)| *word &= outer),
            (words @ None, Some(outer)) => *words = Some(outer.clone()),
            (_, None) => {}
        }
    }
}

/// Bits in words, the lowest first.
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

/// An empty list with room for so much.
pub(crate) fn roomy<T>(count: usize) -> Result<Vec<T>, Failure> {
    let mut list = Vec::new();
    list.try_reserve_exact(count).map_err(|_| Failure::argument(format!("there is no memory for {count} values")))?;
    Ok(list)
}

/// Where it is to be said which values are present.
#[derive(Clone, Copy, Debug)]
pub(crate) enum PresenceMut {
    Nowhere,
    Bytes(StridedMut<u8>),
    /// Bytes, and the number of the first bit.
    Bits(StridedMut<u8>, usize),
}

impl PresenceMut {
    /// Checks what can be checked.
    ///
    /// # Safety
    /// C-MEMORY: there is a byte, or a bit, for each value, that can be written, or the address is null.
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

    /// True if there is a place.
    pub(crate) const fn is_there(&self) -> bool {
        !matches!(self, PresenceMut::Nowhere)
    }

    /// Writes which of `count` values are present. Other bits of the same bytes stay.
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
