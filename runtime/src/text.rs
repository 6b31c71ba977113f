//! `Text`: how a TEXT value is held in a frame: a view (pointer and length) into memory that somebody else keeps alive
//! for the whole call: the caller's input, the plan's literals, or (later) the arena of the call.

use std::marker::PhantomData;

/// A view of UTF-8 text: pointer at offset 0, length in bytes at 8.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Text<'a> {
    ptr: *const u8,
    len: usize,
    lives: PhantomData<&'a str>,
}

impl<'a> Text<'a> {
    /// The view of `text`.
    #[must_use]
    pub const fn new(text: &'a str) -> Self {
        Text { ptr: text.as_ptr(), len: text.len(), lives: PhantomData }
    }

    /// A view of `len` bytes at `ptr`.
    ///
    /// # Safety
    /// The bytes must be valid UTF-8 and readable for `'a`; `ptr` may be anything if `len` is 0.
    #[must_use]
    pub const unsafe fn from_raw(ptr: *const u8, len: usize) -> Self {
        Text { ptr, len, lives: PhantomData }
    }

    /// The text.
    #[must_use]
    pub const fn as_str(self) -> &'a str {
        if self.len == 0 {
            return "";
        }
        // SAFETY: TEXT-VIEW: whoever made the view vouched for its bytes for 'a.
        unsafe { str::from_utf8_unchecked(std::slice::from_raw_parts(self.ptr, self.len)) }
    }
}

impl Default for Text<'_> {
    fn default() -> Self {
        Text::new("")
    }
}
