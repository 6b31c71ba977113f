//! Frames: contiguous plain bytes that hold every leaf, literal, temporary and output of a model, and the layout that assigns offsets to them. A
//! frame needs no destructor. A frame is reset by overwriting it with a template that contains the literals.
//!
//! A slot is an offset that carries its type. Reading and writing through a slot is unchecked in release builds: the
//! invariant FRAME-SLOT of `docs/safety.md` is that slots are used only with frames of the layout that made them.

use crate::memory::Memory;
use crate::{Layout, MachineType, QType};
use std::marker::PhantomData;

/// A slot: the offset of a `T` in the frames (memory of evaluations) of one layout.
pub struct Slot<T> {
    offset: u32,
    holds: PhantomData<fn() -> T>,
}

impl<T> Slot<T> {
    /// Makes the slot that is `offset` bytes from the start of a frame.
    #[must_use]
    pub const fn at(offset: u32) -> Self {
        Slot { offset, holds: PhantomData }
    }

    /// The slot's offset from the start of the frame, in bytes.
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

/// A slot with its type: the offset of a value in frames (memory of evaluations), and the value's type.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TypedSlot {
    /// The slot's offset from the start of the frame, in bytes.
    pub offset: u32,
    /// The type of the value in the slot.
    pub qtype: QType,
}

impl std::fmt::Display for TypedSlot {
    /// Formats the slot as listings show it: `FLOAT64 [0x10]`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} [0x{:02X}]", self.qtype, self.offset)
    }
}

/// The layout of a frame, like that of a struct that is built at run time: slots are appended, each at the next offset
/// that its alignment allows.
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
    /// Appends a slot for a value of this type and returns its offset; `None` if the frame would exceed 2 GiB.
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

    /// The frame's size in bytes, rounded up to the alignment.
    #[must_use]
    pub fn size(&self) -> u32 {
        Layout { size: self.size, align: self.align }.align_up(self.size)
    }

    /// The frame's alignment in bytes, at most 8.
    #[must_use]
    pub fn align(&self) -> u32 {
        self.align
    }
}

/// The memory of one evaluation, 8-byte aligned. Its address does not change when the frame is moved.
#[derive(Debug)]
pub struct Frame {
    memory: Memory,
}

impl Frame {
    /// A frame with the contents `bytes`, which must not contain views of strings: a pointer that is copied as plain bytes is not valid. A frame with
    /// views must be cloned from another frame.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Self {
        let memory = Memory::zeroed(bytes.len());
        // SAFETY: OWNED-MEMORY: it is new, and large enough.
        unsafe { memory.start().as_ptr().copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
        Frame { memory }
    }

    /// A frame of zeros, for a layout of `size` bytes.
    #[must_use]
    pub fn zeroed(size: usize) -> Self {
        Frame { memory: Memory::zeroed(size) }
    }

    /// A pointer to the start of the frame, for reading and writing through slots.
    #[inline]
    pub fn ptr(&mut self) -> FramePtr {
        FramePtr { base: self.memory.start().as_ptr() }
    }

    /// The frame's size in bytes.
    #[must_use]
    pub fn size(&self) -> usize {
        self.memory.size()
    }
}

impl Clone for Frame {
    fn clone(&self) -> Self {
        // SAFETY: OWNED-MEMORY: code that writes to a frame has exclusive use of it (CALL).
        Frame { memory: unsafe { self.memory.copy() } }
    }
}

impl Default for Frame {
    /// A frame without slots.
    fn default() -> Self {
        Frame::zeroed(0)
    }
}

/// The start of a frame, of a caller's input struct, or of a caller's output struct.
#[repr(transparent)]
#[derive(Clone, Copy, Debug)]
pub struct FramePtr {
    base: *mut u8,
}

impl FramePtr {
    /// A pointer to memory at `base` that is read and written like a frame.
    #[must_use]
    pub const fn from_raw(base: *mut u8) -> Self {
        FramePtr { base }
    }

    /// The address of the memory's first byte.
    #[must_use]
    pub const fn as_ptr(self) -> *mut u8 {
        self.base
    }

    /// Reads the value in a slot.
    ///
    /// # Safety
    /// FRAME-SLOT (`docs/safety.md`): the memory must be alive, the slot must belong to the layout of the memory, and a valid `T` must have been
    /// written there.
    #[inline]
    #[must_use]
    pub unsafe fn read<T: Copy>(self, slot: Slot<T>) -> T {
        // SAFETY: FRAME-SLOT, promised by the caller; layouts align slots to their type.
        unsafe { self.base.add(slot.offset as usize).cast::<T>().read() }
    }

    /// Writes the value in a slot.
    ///
    /// # Safety
    /// FRAME-SLOT (`docs/safety.md`): the memory must be alive and writable, and the slot must belong to the layout of the memory.
    #[inline]
    pub unsafe fn write<T: Copy>(self, slot: Slot<T>, value: T) {
        // SAFETY: FRAME-SLOT, promised by the caller; layouts align slots to their type.
        unsafe { self.base.add(slot.offset as usize).cast::<T>().write(value) }
    }

    /// Reads the bits of a number or flag at `offset`, zero-extended. A flag other than 0 is read as 1.
    ///
    /// # Safety
    /// FRAME-SLOT (`docs/safety.md`): a value of the type `ty`, or the address or length of a string view, must be stored at `offset`.
    #[inline]
    #[must_use]
    pub unsafe fn read_bits(self, ty: MachineType, offset: u32) -> u64 {
        // SAFETY: FRAME-SLOT, promised by the caller.
        unsafe {
            match ty.size() {
                1 => u64::from(self.read(Slot::<u8>::at(offset)) != 0),
                4 => u64::from(self.read(Slot::<u32>::at(offset))),
                _ => self.read(Slot::<u64>::at(offset)),
            }
        }
    }

    /// Writes the bits of a number or flag to `offset`.
    ///
    /// # Safety
    /// FRAME-SLOT (`docs/safety.md`): the memory at `offset` must have room for a value of the type `ty`.
    #[inline]
    pub unsafe fn write_bits(self, ty: MachineType, offset: u32, bits: u64) {
        // SAFETY: FRAME-SLOT, promised by the caller.
        unsafe {
            match ty.size() {
                1 => self.write(Slot::at(offset), bits as u8),
                4 => self.write(Slot::at(offset), bits as u32),
                _ => self.write(Slot::at(offset), bits),
            }
        }
    }

    /// Copies `size` bytes from the offset `from` to the offset `to` in `target`. The two ranges may overlap.
    ///
    /// # Safety
    /// FRAME-SLOT (`docs/safety.md`): both ranges must be alive and `size` bytes long, and the target range must be writable.
    #[inline]
    pub unsafe fn copy_to(self, from: u32, target: FramePtr, to: u32, size: u32) {
        // SAFETY: FRAME-SLOT, promised by the caller. For a constant size the copy is a move or two instead of a call.
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
    use crate::{Scalar, Text};

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
    fn a_frame_starts_with_its_bytes() {
        let mut frame = Frame::from_bytes(&[1, 2, 3, 4, 5, 6, 7, 8, 9]);
        // SAFETY: FRAME-SLOT: the slot is the 16 bytes of the frame.
        let read = unsafe { frame.ptr().read(Slot::<[u8; 16]>::at(0)) };
        assert_eq!(read, [1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!((frame.size(), Frame::default().size()), (16, 0));
    }

    /// A copy of the bytes alone is not enough: the clone must have a real pointer, because its text is read through that
    /// pointer.
    #[test]
    fn a_clone_has_the_views_of_its_frame_and_memory_of_its_own() {
        let text = String::from("a text");
        let mut frame = Frame::zeroed(24);
        let (view, number) = (Slot::<Text<'_>>::at(8), Slot::<u64>::at(0));
        // SAFETY: FRAME-SLOT: both lie in 24 bytes; STRING-VIEW: the text lives to the end of the test.
        unsafe {
            frame.ptr().write(view, Text::new(&text));
            let mut clone = frame.clone();
            clone.ptr().write(number, 7);
            assert_eq!((frame.ptr().read(number), clone.ptr().read(number)), (0, 7));
            drop(frame);
            assert_eq!(clone.ptr().read(view).as_str(), "a text");
        }
    }

    #[test]
    fn a_frame_stays_where_it_is_when_it_is_moved() {
        let mut frame = Frame::zeroed(8);
        let start = frame.ptr();
        let mut moved = Box::new(frame);
        // SAFETY: FRAME-SLOT: a word of a frame of one.
        unsafe {
            start.write(Slot::<u64>::at(0), 5);
            assert_eq!(moved.ptr().read(Slot::<u64>::at(0)), 5);
        }
    }
}
