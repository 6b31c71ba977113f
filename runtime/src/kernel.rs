//! Functions that are called with a context: compiled models, and kernels, which compute one operator on frame slots. The interpreter calls them for every step; generated
//! code calls those that have no form in instructions, through a table in the context.

use crate::{Context, FramePtr, STATUS_FAULT, STATUS_OK};

/// A kernel. It reads its arguments from frame slots, writes its result to one, and returns a status; a failing one has
/// filled the context's fault record. `slots` are the offsets of the arguments, then of the result; `data` is what a user
/// operator closes over, null for others.
///
/// Calling it is unsafe: FRAME-SLOT must hold for every slot, with the overload's types, and `data` must be the overload's.
pub type Kernel =
    unsafe extern "C" fn(context: &mut Context, frame: FramePtr, slots: *const u32, data: *const ()) -> i32;

/// The signature of compiled models: input struct, output struct, frame, context; returns a status.
///
/// Calling it is unsafe: the contract is CALL, stated at `cembra_plan::Function::call`.
pub type RawFunction = unsafe extern "C" fn(*const u8, *mut u8, *mut u8, *mut Context) -> i32;

/// What a function that is called on registers gives back, itself in two registers.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Answer {
    status: u64,
    bits: u64,
}

impl Answer {
    /// The status of a call whose result is missing.
    pub const STATUS_MISSING: i32 = 2;
    /// A missing result.
    pub const MISSING: Answer = Answer { status: Answer::STATUS_MISSING as u64, bits: 0 };
    /// No result: the context's fault record is filled.
    pub const FAULT: Answer = Answer { status: STATUS_FAULT as u64, bits: 0 };

    /// A result, by its bits, zero-extended.
    #[must_use]
    pub const fn value(bits: u64) -> Answer {
        Answer { status: STATUS_OK as u64, bits }
    }
}

/// A call of an operator's function, as generated code finds it: an entry of the table `Context::set_calls` gives.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct KernelCall {
    /// The kernel; or, where the code that uses the entry says so, the function that is called on registers.
    pub function: *const (),
    /// The slots of a kernel.
    pub slots: *const u32,
    /// The data of either.
    pub data: *const (),
}

impl KernelCall {
    /// The size of an entry in bytes.
    pub const SIZE: i32 = size_of::<KernelCall>() as i32;
    /// Offset of the function in an entry.
    pub const FUNCTION_OFFSET: i32 = std::mem::offset_of!(KernelCall, function) as i32;
    /// Offset of the slots in an entry.
    pub const SLOTS_OFFSET: i32 = std::mem::offset_of!(KernelCall, slots) as i32;
    /// Offset of the data in an entry.
    pub const DATA_OFFSET: i32 = std::mem::offset_of!(KernelCall, data) as i32;
}
