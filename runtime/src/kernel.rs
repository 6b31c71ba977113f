//! Kernels: the functions that compute one operator on frame slots. The interpreter calls them for every step; generated
//! code calls those that have no form in instructions, through a table in the context.

use crate::{Context, FramePtr};

/// A kernel. It reads its arguments from frame slots, writes its result to one, and returns a status; a failing one has
/// filled the context's fault record. `slots` are the offsets of the arguments, then of the result; `data` is what a user
/// operator closes over, null for others.
///
/// Calling it is unsafe: FRAME-SLOT must hold for every slot, with the overload's types, and `data` must be the overload's.
pub type Kernel =
    unsafe extern "C" fn(context: &mut Context, frame: FramePtr, slots: *const u32, data: *const ()) -> i32;

/// A kernel bound to its slots, as generated code finds it: an entry of the table `Context::set_calls` gives.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct KernelCall {
    /// The kernel.
    pub kernel: Kernel,
    /// Its slots.
    pub slots: *const u32,
    /// Its data.
    pub data: *const (),
}

impl KernelCall {
    /// The size of an entry in bytes.
    pub const SIZE: i32 = size_of::<KernelCall>() as i32;
    /// Offset of the kernel in an entry.
    pub const KERNEL_OFFSET: i32 = std::mem::offset_of!(KernelCall, kernel) as i32;
    /// Offset of the slots in an entry.
    pub const SLOTS_OFFSET: i32 = std::mem::offset_of!(KernelCall, slots) as i32;
    /// Offset of the data in an entry.
    pub const DATA_OFFSET: i32 = std::mem::offset_of!(KernelCall, data) as i32;
}
