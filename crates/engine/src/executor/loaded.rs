//! Rows of inputs, loaded before the measured time: one frame per row, with the inputs written to it. A run then takes only the time of the
//! evaluation, as benchmarks need it. Services instead keep one frame and write the inputs of each row to it.

use crate::executor::{Executable, Executor};
use crate::stages::only_sessions;
use cembra_runtime::{Context, Frame};
use cembra_value::Error;
use cembra_value::Value;
use std::marker::PhantomData;
use std::sync::Arc;

/// Rows of inputs of a compiled model, each row loaded into a frame (memory of an evaluation) of its own, to be
/// evaluated any number of times.
#[derive(Debug)]
pub struct LoadedRows<'v> {
    inner: Arc<Executable>,
    frames: Vec<Frame>,
    context: Context,
    /// Stands for the borrow of the rows' values, because frames contain views of their texts.
    values: PhantomData<&'v [Vec<Value>]>,
}

impl Executor {
    /// The bytes of one frame (the memory of one evaluation) of the model; 0 for a model with arrays or tensors.
    #[must_use]
    pub fn frame_bytes(&self) -> usize {
        self.inner().frame_bytes()
    }
}

impl<'v> LoadedRows<'v> {
    /// Loads `rows` into frames. Each row must have one value for each of the executor's inputs, in their order and of exactly their types.
    ///
    /// # Errors
    /// If the values of a row do not fit the inputs, or the model has arrays or tensors, which are not stored in frames.
    pub fn of(executor: &Executor, rows: &'v [Vec<Value>]) -> Result<LoadedRows<'v>, Error> {
        let inner = executor.shared();
        if inner.is_whole() {
            return Err(only_sessions([executor.inputs(), executor.outputs()]));
        }
        let slots = inner.slots()?;
        let mut frames = Vec::with_capacity(rows.len());
        for row in rows {
            let mut frame = inner.frame();
            // SAFETY: FRAME-SLOT: the frame was made from the plan's template. STRING-VIEW: the values are borrowed for as long as the frames live.
            unsafe { inner.write_inputs(slots, frame.ptr(), row)? };
            frames.push(frame);
        }
        let context = inner.context();
        Ok(LoadedRows { inner, frames, context, values: PhantomData })
    }

    /// Evaluates the model on every row, in order. The results stay in the frames.
    ///
    /// # Errors
    /// If a row fails: the error of the first row that fails.
    pub fn evaluate(&mut self) -> Result<(), Error> {
        for frame in &mut self.frames {
            let frame = frame.ptr();
            let model = self.inner.begin(&mut self.context)?;
            // SAFETY: CALL: the frame was made from the plan's template and its inputs are written. A call before has
            // left them as they were: the slots of inputs and literals are given to nothing else.
            let made = unsafe { self.inner.run(model, [frame; 3], &mut self.context) };
            made.map_err(|error| self.inner.failed(&self.context, error))?;
        }
        Ok(())
    }
}
