//! `Text` and `Bytes`: strings in a frame, as views (pointer and length) of memory whose owner keeps it alive for the whole call: the
//! caller's input, the plan's literals, or the arena of the call.

use crate::layout::layout;
use std::fmt;
use std::marker::PhantomData;

/// The target of empty views. When comparing no bytes, the C library may still touch the page of the pointer without reading it,
/// and if there is no such page that takes a hundred times as long.
const NOTHING: &[u8] = &[0];

/// A view of bytes: pointer at offset 0, length at offset 8.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Bytes<'a> {
    ptr: *const u8,
    len: usize,
    lives: PhantomData<&'a [u8]>,
}

/// A view of UTF-8 text, with the layout of `Bytes`.
#[repr(transparent)]
#[derive(Clone, Copy, Default)]
pub struct Text<'a>(Bytes<'a>);

layout! {
    Bytes<'static>: u32 {
        POINTER_OFFSET = (offset of ptr);
        LENGTH_OFFSET = (offset of len);
        SIZE = (size);
    }
}

impl<'a> Bytes<'a> {
    /// The view of `bytes`.
    #[must_use]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Bytes { ptr: bytes.as_ptr(), len: bytes.len(), lives: PhantomData }
    }

    /// A view of `len` bytes at `ptr`.
    ///
    /// # Safety
    /// STRING-VIEW (`docs/safety.md`): the bytes must be readable for `'a`; `ptr` may be anything if `len` is 0.
    #[must_use]
    pub const unsafe fn from_raw(ptr: *const u8, len: usize) -> Self {
        Bytes { ptr, len, lives: PhantomData }
    }

    /// The bytes that the view refers to.
    #[must_use]
    #[inline]
    pub const fn as_slice(self) -> &'a [u8] {
        if self.len == 0 {
            return NOTHING.split_at(0).0;
        }
        // SAFETY: STRING-VIEW (docs/safety.md): the creator of the view guaranteed its bytes for 'a.
        unsafe { std::slice::from_raw_parts(self.ptr, self.len) }
    }
}

impl fmt::Debug for Bytes<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_slice().fmt(f)
    }
}

impl fmt::Debug for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_str().fmt(f)
    }
}

impl Default for Bytes<'_> {
    fn default() -> Self {
        Bytes::new(&[])
    }
}

impl<'a> Text<'a> {
    /// The view of `text`.
    #[must_use]
    pub const fn new(text: &'a str) -> Self {
        Text(Bytes::new(text.as_bytes()))
    }

    /// A view of the `len` bytes of text at `ptr`.
    ///
    /// # Safety
    /// STRING-VIEW (`docs/safety.md`): the bytes must be valid UTF-8 and readable for `'a`; `ptr` may be anything if `len` is 0.
    #[must_use]
    pub const unsafe fn from_raw(ptr: *const u8, len: usize) -> Self {
        // SAFETY: STRING-VIEW, promised by the caller.
        Text(unsafe { Bytes::from_raw(ptr, len) })
    }

    /// The text that the view refers to.
    #[must_use]
    #[inline]
    pub const fn as_str(self) -> &'a str {
        // SAFETY: STRING-VIEW: the creator of the view guaranteed that its bytes are UTF-8.
        unsafe { str::from_utf8_unchecked(self.0.as_slice()) }
    }

    /// The view of the text's bytes.
    #[must_use]
    #[inline]
    pub const fn as_bytes(self) -> Bytes<'a> {
        self.0
    }
}

impl<'a> From<Bytes<'a>> for &'a [u8] {
    #[inline]
    fn from(bytes: Bytes<'a>) -> Self {
        bytes.as_slice()
    }
}

impl<'a> From<Text<'a>> for &'a str {
    #[inline]
    fn from(text: Text<'a>) -> Self {
        text.as_str()
    }
}
