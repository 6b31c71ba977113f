//! Defines the operator by which a plan reads its inputs on demand: the caller of the plan passes a function, and the
//! plan calls it when it needs the value of an input. So inputs that an evaluation does not need are not read.

use super::COLUMN;
use crate::definition::{Lower, Meaning, OpDef, param};
use crate::kernel::{Body, Repr};
use cembra_runtime::{Context, Fault, FaultKind, FramePtr};
use std::marker::PhantomData;

/// The inputs that a plan reads on demand during a call, and the function that reads them.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct InputsView {
    /// The first argument of `read`, which identifies the inputs.
    pub reader: *mut (),
    /// Returns the address of an input's value; null if the value cannot be read. The first call for an input reads it.
    ///
    /// # Safety
    /// The first argument must be `reader`, and the second the index of one of the inputs that `reader` has (rule COLUMN in `docs/safety.md`).
    pub read: unsafe fn(*mut (), u32) -> *const u8,
}

/// The body (the Rust function) that reads an input of type `T` on demand. The low half of the second operand is the
/// input's index. The high half may differ, so that two nodes for the same input are not merged into one.
pub(super) struct InputRead<T>(PhantomData<T>);

impl<T: Repr + 'static> Body for InputRead<T> {
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
    summary: "An input of the caller that is read when a row first needs it.",
    params: &[param("inputs"), param("number")],
    faults: &[FaultKind::Invalid],
    meaning: Meaning::Overloads(super::ASKS),
    ..COLUMN
};
