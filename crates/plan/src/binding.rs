//! Bindings: where a backend finds the inputs of a plan and puts its outputs, and the contract both backends keep.

use crate::{Plan, ValueId};
use cembra_runtime::{Context, FramePtr};

/// A piece of memory that a call is given.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Base {
    /// The frame.
    Frame,
    /// The caller's input struct.
    Input,
    /// The caller's output struct.
    Output,
}

/// Where a value lies during a call.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ValueLocation {
    /// In which memory.
    pub base: Base,
    /// Bytes from its start.
    pub offset: u32,
}

/// The places of a plan's inputs and outputs, in the plan's order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Binding {
    /// One for each input.
    pub inputs: Vec<ValueLocation>,
    /// One for each output.
    pub outputs: Vec<ValueLocation>,
}

impl Plan {
    /// A value's own slot as a place.
    #[must_use]
    pub fn place(&self, value: ValueId) -> ValueLocation {
        ValueLocation { base: Base::Frame, offset: self.value(value).slot }
    }

    /// The binding in which inputs and outputs are in their own slots of the frame.
    #[must_use]
    pub fn frame_binding(&self) -> Binding {
        Binding {
            inputs: self.inputs().iter().map(|input| self.place(input.value)).collect(),
            outputs: self.outputs().iter().map(|output| self.place(output.value)).collect(),
        }
    }
}

/// A plan made runnable by a backend.
pub trait Function: Send + Sync + std::fmt::Debug {
    /// Evaluates the plan. Returns `STATUS_OK` with the outputs written, or `STATUS_FAULT` with the context's fault record
    /// filled. Memory other than the frame is written only after the last step: a fault leaves the caller's outputs as they
    /// were.
    ///
    /// # Safety
    /// CALL: `frame` holds a frame of the plan's layout that started as its template; `input` and `output` hold values of
    /// the bound types at the bound offsets (or are not used by the binding); every text input is alive; and
    /// nobody else uses that memory during the call.
    unsafe fn call(&self, input: FramePtr, output: FramePtr, frame: FramePtr, context: &mut Context) -> i32;

    /// Bytes of memory the function holds, besides itself.
    fn memory_bytes(&self) -> usize;
}
