//! Bindings: the memory locations that a backend reads a plan's inputs from and writes its outputs to. The interface of
//! functions, with a contract that both backends keep, is here too.

use crate::{Plan, ValueId};
use cembra_runtime::{Context, FramePtr};

/// A memory area that a call of a function is given.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Base {
    /// The evaluation's own frame.
    Frame,
    /// The caller's input struct.
    Input,
    /// The caller's output struct.
    Output,
}

/// The memory location of a value during a call.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ValueLocation {
    /// The memory area that contains the value.
    pub base: Base,
    /// The offset in bytes from the start of the memory area.
    pub offset: u32,
}

/// The memory locations of a plan's inputs and outputs, in the plan's order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Binding {
    /// The memory location of each input.
    pub inputs: Vec<ValueLocation>,
    /// The memory location of each output.
    pub outputs: Vec<ValueLocation>,
}

impl Plan {
    /// The location of the slot that the plan itself gives a value in the frame.
    #[must_use]
    pub fn place(&self, value: ValueId) -> ValueLocation {
        ValueLocation { base: Base::Frame, offset: self.value(value).slot }
    }

    /// The binding that reads inputs from their own slots in the frame, and leaves outputs in theirs.
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
    /// CALL: `frame` must be a frame of the plan's layout that started as its template. `input` and `output` must hold
    /// values of the bound types at the bound offsets, unless the binding does not use them. Every text input must be
    /// alive. Nothing else may use that memory during the call.
    unsafe fn call(&self, input: FramePtr, output: FramePtr, frame: FramePtr, context: &mut Context) -> i32;

    /// The bytes of memory that this function owns, without its struct itself.
    fn memory_bytes(&self) -> usize;
}
