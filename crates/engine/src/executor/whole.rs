//! Models whose values are not stored in a frame (the memory of scalars): models of arrays, of tensors, or of both. This module has the operations on
//! them that executors and sessions need. The module of each kind of model decides how it is compiled and run.

use crate::arrays::model::{ArrayMemory, ArrayModel};
use crate::executor::mixed::{MixedMemory, MixedModel};
use crate::options::run_options::RunOptions;
use crate::options::signature::Field;
use crate::tensors::model::TensorModel;
use crate::tensors::runs::TensorRuns;
use cembra_native::Tier;
use cembra_runtime::{Cancellation, Context};
use cembra_value::Error;
use cembra_value::RunTerms;
use cembra_value::Value;

/// A compiled model with arrays or tensors, whose values are not stored in a frame, the memory of scalars.
#[derive(Debug)]
pub(crate) enum WholeModel {
    Arrays(Box<ArrayModel>),
    Tensors(Box<TensorModel>),
    Mixed(Box<MixedModel>),
}

/// The memory of a model with arrays or tensors that a session keeps between runs, and the options of these runs.
#[derive(Debug, Default)]
pub struct WholeMemory {
    /// The options of runs, with limits no higher than those that the model was compiled with. The cancellation token of a run is in its context, not
    /// here.
    pub(crate) options: RunOptions,
    /// The memory of a model with arrays; `None` before its first run.
    arrays: Option<Box<ArrayMemory>>,
    /// The memory of the model's tensors; `None` before the first run, and for a model without tensors.
    pub(crate) tensors: Option<Box<TensorRuns>>,
    /// The memory of a model with tensors and other values; `None` before its first run.
    mixed: Option<Box<MixedMemory>>,
}

impl WholeMemory {
    /// Returns the bytes of memory that are held for later runs.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let tensors = self.tensors.as_ref().map_or(0, |runs| usize::try_from(runs.held_bytes()).unwrap_or(usize::MAX));
        let mixed = self.mixed.as_ref().map_or(0, |mixed| mixed.memory_bytes());
        self.arrays.as_ref().map_or(0, |arrays| arrays.memory_bytes()).saturating_add(tensors).saturating_add(mixed)
    }

    /// Returns the options for a run on many rows: they have the limits that are set for runs with this memory, and the
    /// cancellation token of `context`.
    #[must_use]
    pub fn row_options(&self, context: &Context) -> RunOptions {
        self.options.of_rows(context.cancellation())
    }

    /// Sets the token that cancels later runs; `None` removes it. All other options of runs stay.
    pub fn set_cancellation(&mut self, token: Option<Cancellation>, context: &mut Context) {
        let options = self.options.clone().cancellation(token);
        options.end_runs(&self.options, context);
        self.options = options;
    }
}

impl WholeModel {
    /// Returns the model's inputs and outputs, each with its type.
    pub(crate) fn fields(&self) -> [Box<[Field]>; 2] {
        match self {
            WholeModel::Arrays(model) => model.fields(),
            WholeModel::Tensors(model) => model.fields(),
            WholeModel::Mixed(model) => model.fields(),
        }
    }

    /// The tier of the machine code of the model's plans; `None` if the interpreter runs them.
    pub(crate) fn tier(&self) -> Option<Tier> {
        match self {
            WholeModel::Arrays(model) => model.tier(),
            WholeModel::Tensors(model) => model.tier(),
            WholeModel::Mixed(model) => model.tier(),
        }
    }

    /// Returns true if the model can run on many rows, which only models with arrays can.
    pub(crate) const fn has_rows(&self) -> bool {
        matches!(self, WholeModel::Arrays(_))
    }

    /// Returns the bytes of memory that the model and its code take.
    pub(crate) fn memory_bytes(&self) -> usize {
        match self {
            WholeModel::Arrays(model) => model.memory_bytes(),
            WholeModel::Tensors(model) => model.memory_bytes(),
            WholeModel::Mixed(model) => model.memory_bytes(),
        }
    }

    /// Evaluates the model on one value per input, each of exactly the input's type, and appends the outputs to `results`.
    ///
    /// # Errors
    /// If the evaluation fails.
    pub(crate) fn evaluate(
        &self,
        values: &[Value],
        terms: &RunTerms<'_>,
        memory: &mut WholeMemory,
        results: &mut Vec<Value>,
    ) -> Result<(), Error> {
        match self {
            WholeModel::Arrays(model) => model.evaluate(values, terms, memory.arrays.get_or_insert_default(), results),
            WholeModel::Tensors(model) => {
                model.evaluate(values, terms, memory.tensors.get_or_insert_default(), results)
            }
            WholeModel::Mixed(model) => model.evaluate(values, terms, memory.mixed.get_or_insert_default(), results),
        }
    }

    /// Keeps the memory of `result` for later runs of a model with arrays. `result` must be a result of an earlier run that the caller no longer
    /// uses.
    pub(crate) fn recycle(&self, result: Value, memory: &mut WholeMemory) {
        if let (WholeModel::Arrays(_), Some(memory)) = (self, &mut memory.arrays) {
            memory.recycle(result);
        }
    }
}
