//! Inputs on demand: the caller of a plan passes a function that reads inputs, and the plan calls it when it needs a value.

use super::COLUMN;
use crate::definition::{Lower, Meaning, OpDef, param};
use crate::kernel::{Body, Repr};
use cembra_runtime::{Context, Fault, FaultKind, FramePtr};
use std::marker::PhantomData;

/// The inputs that a plan reads on demand, during a call.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct InputsView {
    /// The argument of `read`.
    pub reader: *mut (),
    /// Returns the address of the value of an input, which is read if it was not read in this call before; null if it cannot be read.
    ///
    /// # Safety
    /// COLUMN: the first argument is `reader`, and the second the number of one of its inputs.
    pub read: unsafe fn(*mut (), u32) -> *const u8,
}

/// Reads an input of one type on demand. The low half of the second operand is the input's number; the high half keeps two
/// nodes for the same input from being merged.
pub(super) struct Ask<T>(PhantomData<T>);

impl<T: Repr + 'static> Body for Ask<T> {
    type Data = ();
    type Args = (u64, i64);
    type Ret = T;
    const STRICT: bool = false;
    const LOWER: Lower = Lower::Kernel;

    fn run((): &(), _: &mut Context, (view, number): Self::Args) -> Result<T, Fault> {
        // SAFETY: COLUMN: the plan is given the address of such a view, which has an input of this type and number.
        let value = unsafe {
            let view = &*(view as *const InputsView);
            (view.read)(view.reader, number as u32)
        };
        if value.is_null() {
            return Err(Fault::new(FaultKind::Invalid));
        }
        // SAFETY: FRAME-SLOT: a value of this type lies there.
        Ok(unsafe { T::load(FramePtr::from_raw(value.cast_mut()), 0) })
    }
}

pub(crate) static ASK: OpDef = OpDef {
    name: "column._ask",
    summary: "An input of the caller's, which is read when it is first asked for.",
    params: &[param("inputs"), param("number")],
    faults: &[FaultKind::Invalid],
    meaning: Meaning::Overloads(super::ASKS),
    ..COLUMN
};
