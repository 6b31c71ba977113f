//! Bindings: the memory locations from which a backend reads a plan's inputs, and to which it writes the outputs. The
//! trait [`Function`] is also here: it is the interface of a plan that a backend has compiled, with the safety contract
//! of its call.

use crate::{Plan, ValueId};
use cembra_runtime::{Context, FramePtr};

/// A memory area that is passed to a call of a compiled plan: the frame, the input struct or the output struct.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Base {
    /// The frame of the evaluation, which has the plan's own slots.
    Frame,
    /// The caller's input struct.
    Input,
    /// The caller's output struct.
    Output,
}

/// The memory location of a plan's value during a call: a memory area, and an offset in it.
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
    /// The location of the slot in the frame that the plan has assigned to a value.
    #[must_use]
    pub fn place(&self, value: ValueId) -> ValueLocation {
        ValueLocation { base: Base::Frame, offset: self.value(value).slot }
    }

    /// The binding in which inputs are read from their own slots in the frame, and outputs stay in their own slots.
    #[must_use]
    pub fn frame_binding(&self) -> Binding {
        Binding {
            inputs: self.inputs().iter().map(|input| self.place(input.value)).collect(),
            outputs: self.outputs().iter().map(|output| self.place(output.value)).collect(),
        }
    }
}

/// A plan made runnable by a backend: the interpreter, or machine code.
pub trait Function: Send + Sync + std::fmt::Debug {
    /// Evaluates the plan. Returns `STATUS_OK` with the outputs written, or `STATUS_FAULT` with the context's fault
    /// record filled. Memory outside of the frame is written only after the last step, so after a fault the caller's
    /// outputs are unchanged.
    ///
    /// # Safety
    /// CALL: `frame` must be a frame of the plan's layout that started as its template. `input` and `output` must hold
    /// values of the bound types at the bound offsets, unless the binding does not use them. Every text input must be
    /// alive. Nothing else may use that memory during the call.
    unsafe fn call(&self, input: FramePtr, output: FramePtr, frame: FramePtr, context: &mut Context) -> i32;

    /// The bytes of heap memory that this function owns.
    fn memory_bytes(&self) -> usize;
}
