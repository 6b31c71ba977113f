//! Frames: one contiguous piece of plain bytes that holds every leaf, literal, temporary and output of a model, and
//! the layout that says where. A frame needs no destructor; it is reset by copying the literal template over it.
//!
//! A slot is an offset that carries its type. Reading and writing through a slot is unchecked in release builds: the
//! invariant FRAME-SLOT of `docs/safety.md` is that slots are used only with frames of the layout that made them.

use crate::{Layout, QType};
use std::marker::PhantomData;

/// The offset of a `T` in frames of one layout.
pub struct Slot<T> {
    offset: u32,
    holds: PhantomData<fn() -> T>,
}

impl<T> Slot<T> {
    /// The slot at `offset` bytes from the start of the frame.
    #[must_use]
    pub const fn at(offset: u32) -> Self {
        Slot { offset, holds: PhantomData }
    }

    /// Bytes from the start of the frame.
    #[must_use]
    pub const fn offset(self) -> u32 {
        self.offset
    }
}

impl<T> Clone for Slot<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Slot<T> {}

/// An offset and the type of the value there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TypedSlot {
    /// Bytes from the start of the frame.
    pub offset: u32,
    /// The type of the value.
    pub qtype: QType,
}

impl std::fmt::Display for TypedSlot {
    /// `FLOAT64 [0x10]`, as listings show it.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} [0x{:02X}]", self.qtype, self.offset)
    }
}

/// A struct built at run time: slots are appended, each at the next offset its alignment allows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FrameLayout {
    size: u32,
    align: u32,
}

impl Default for FrameLayout {
    fn default() -> Self {
        FrameLayout { size: 0, align: 1 }
    }
}

impl FrameLayout {
    /// Appends a slot for a value of this type and returns its offset; `None` if the frame would pass 2 GiB.
    pub fn add(&mut self, qtype: &QType) -> Option<u32> {
        let layout = qtype.layout();
        let end = u64::from(self.size) + u64::from(layout.align) + u64::from(layout.size);
        if end > 1 << 31 {
            return None;
        }
        let offset = layout.align_up(self.size);
        self.size = offset + layout.size;
        self.align = self.align.max(layout.align);
        Some(offset)
    }

    /// Size in bytes, rounded up to the alignment.
    #[must_use]
    pub fn size(&self) -> u32 {
        Layout { size: self.size, align: self.align }.align_up(self.size)
    }

    /// Alignment in bytes, at most 8.
    #[must_use]
    pub fn align(&self) -> u32 {
        self.align
    }
}

/// The memory of one evaluation, 8-byte aligned.
#[derive(Clone, Debug)]
pub struct Frame {
    words: Box<[u64]>,
}

impl Frame {
    /// A frame that starts as a copy of `template`, whose length is the layout's size.
    #[must_use]
    pub fn from_template(template: &[u8]) -> Self {
        let mut words = vec![0_u64; template.len().div_ceil(8)].into_boxed_slice();
        for (word, bytes) in words.iter_mut().zip(template.chunks(8)) {
            let mut whole = [0; 8];
            whole[..bytes.len()].copy_from_slice(bytes);
            *word = u64::from_ne_bytes(whole);
        }
        Frame { words }
    }

    /// A frame of zeros, for a layout of this size.
    #[must_use]
    pub fn zeroed(size: usize) -> Self {
        Frame { words: vec![0_u64; size.div_ceil(8)].into_boxed_slice() }
    }

    /// The start of the frame, for reading and writing through slots.
    pub fn ptr(&mut self) -> FramePtr {
        FramePtr { base: self.words.as_mut_ptr().cast() }
    }

    /// Size in bytes.
    #[must_use]
    pub fn size(&self) -> usize {
        self.words.len() * 8
    }

    /// A copy of the bytes.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        self.words.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }
}

/// The start of a frame, of a caller's input struct, or of a caller's output struct.
#[repr(transparent)]
#[derive(Clone, Copy, Debug)]
pub struct FramePtr {
    base: *mut u8,
}

impl FramePtr {
    /// A pointer to memory that is read and written like a frame.
    #[must_use]
    pub const fn from_raw(base: *mut u8) -> Self {
        FramePtr { base }
    }

    /// The address.
    #[must_use]
    pub const fn as_ptr(self) -> *mut u8 {
        self.base
    }

    /// Reads the value in a slot.
    ///
    /// # Safety
    /// FRAME-SLOT: the memory is alive, the slot belongs to its layout, and a valid `T` was written there.
    #[inline]
    #[must_use]
    pub unsafe fn read<T: Copy>(self, slot: Slot<T>) -> T {
        // SAFETY: FRAME-SLOT, promised by the caller; layouts align slots to their type.
        unsafe { self.base.add(slot.offset as usize).cast::<T>().read() }
    }

    /// Writes the value in a slot.
    ///
    /// # Safety
    /// FRAME-SLOT: the memory is alive and writable, and the slot belongs to its layout.
    #[inline]
    pub unsafe fn write<T: Copy>(self, slot: Slot<T>, value: T) {
        // SAFETY: FRAME-SLOT, promised by the caller; layouts align slots to their type.
        unsafe { self.base.add(slot.offset as usize).cast::<T>().write(value) }
    }

    /// Copies `size` bytes between two places, which may overlap.
    ///
    /// # Safety
    /// FRAME-SLOT for both places: alive, `size` bytes long, the target writable.
    #[inline]
    pub unsafe fn copy_to(self, from: u32, target: FramePtr, to: u32, size: u32) {
        // SAFETY: FRAME-SLOT, promised by the caller. A size that is known is a move or two instead of a call.
        unsafe {
            let (from, to) = (self.base.add(from as usize), target.base.add(to as usize));
            match size {
                1 => std::ptr::copy(from, to, 1),
                4 => std::ptr::copy(from, to, 4),
                8 => std::ptr::copy(from, to, 8),
                16 => std::ptr::copy(from, to, 16),
                size => std::ptr::copy(from, to, size as usize),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Scalar;

    #[test]
    fn slots_are_appended_at_aligned_offsets() {
        let mut layout = FrameLayout::default();
        let offsets: Vec<_> = [
            QType::FLOAT32,
            QType::BOOLEAN,
            QType::MASK,
            QType::Optional(Scalar::Int32),
            QType::FLOAT64,
            QType::Optional(Scalar::Boolean),
            QType::Optional(Scalar::Float64),
            QType::TEXT,
            QType::UNIT,
        ]
        .iter()
        .map(|t| layout.add(t))
        .collect();
        let expected: Vec<_> = [0, 4, 5, 8, 16, 24, 32, 48, 64].into_iter().map(Some).collect();
        assert_eq!(offsets, expected);
        assert_eq!((layout.size(), layout.align()), (72, 8));
    }

    #[test]
    fn a_layout_refuses_to_pass_two_gibibytes() {
        let mut layout = FrameLayout { size: (1 << 31) - 4, align: 8 };
        assert_eq!(layout.add(&QType::FLOAT64), None);
    }

    #[test]
    fn a_frame_starts_as_its_template() {
        let mut frame = Frame::from_template(&[1, 2, 3, 4, 5, 6, 7, 8, 9]);
        // SAFETY: FRAME-SLOT: both slots lie inside the 16 bytes of the frame and any byte is a valid u8.
        let read = unsafe { (frame.ptr().read(Slot::<u8>::at(8)), frame.ptr().read(Slot::<u8>::at(0))) };
        assert_eq!(read, (9, 1));
    }
}
