//! Models whose values lie beside frames: of arrays, of tensors, of both. What an executor and a session need to know of any of them is here;
//! how such a model is compiled and run is decided in its own module.

use crate::arrays::model::{ArrayMemory, ArrayModel};
use crate::executor::mixed::{MixedMemory, MixedModel};
use crate::options::signature::Field;
use crate::tensors::model::TensorModel;
use crate::tensors::runs::TensorRuns;
use cembra_native::Tier;
use cembra_runtime::Cancellation;
use cembra_value::Error;
use cembra_value::Value;
use cembra_value::{Limits, RunTerms};

/// A compiled model whose values lie beside frames.
#[derive(Debug)]
pub(crate) enum WholeModel {
    Arrays(Box<ArrayModel>),
    Tensors(Box<TensorModel>),
    Mixed(Box<MixedModel>),
}

/// The memory of one session's runs, and their terms.
#[derive(Debug, Default)]
pub struct WholeMemory {
    /// The number of threads, as in [`RunTerms`].
    pub(crate) threads: usize,
    /// The limits of runs; `None` for those that the model was compiled with.
    pub(crate) limits: Option<Limits>,
    /// What the runs of a model with arrays leave to each other.
    arrays: Option<Box<ArrayMemory>>,
    /// The same of a model with tensors.
    pub(crate) tensors: Option<Box<TensorRuns>>,
    /// The same of a model with both.
    mixed: Option<Box<MixedMemory>>,
}

impl WholeMemory {
    /// The terms of a run that `token` ends, within these limits.
    pub(crate) fn terms<'r>(&self, token: Option<&'r Cancellation>, limits: Option<&'r Limits>) -> RunTerms<'r> {
        RunTerms { token, threads: self.threads, limits, ..RunTerms::default() }
    }
}

impl WholeModel {
    /// Inputs and outputs with their types.
    pub(crate) fn fields(&self) -> [Box<[Field]>; 2] {
        match self {
            WholeModel::Arrays(model) => model.fields(),
            WholeModel::Tensors(model) => model.fields(),
            WholeModel::Mixed(model) => model.fields(),
        }
    }

    /// The tier of the machine code of the model's parts; `None` if the interpreter runs them.
    pub(crate) fn tier(&self) -> Option<Tier> {
        match self {
            WholeModel::Arrays(model) => model.tier(),
            WholeModel::Tensors(model) => model.tier(),
            WholeModel::Mixed(model) => model.tier(),
        }
    }

    /// False for a model that is evaluated as a whole only, and never on many rows.
    pub(crate) const fn has_rows(&self) -> bool {
        matches!(self, WholeModel::Arrays(_))
    }

    /// Bytes of memory that it holds, and its code.
    pub(crate) fn memory_bytes(&self) -> usize {
        match self {
            WholeModel::Arrays(model) => model.memory_bytes(),
            WholeModel::Tensors(model) => model.memory_bytes(),
            WholeModel::Mixed(model) => model.memory_bytes(),
        }
    }

    /// Evaluates the model on values of exactly its inputs' types, one for each. The results are put behind the others.
    ///
    /// # Errors
    /// A fault of the evaluation.
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

    /// Keeps the memory of a result of a run before, which the caller does not use any more.
    pub(crate) fn recycle(&self, result: Value, memory: &mut WholeMemory) {
        if let (WholeModel::Arrays(_), Some(memory)) = (self, &mut memory.arrays) {
            memory.recycle(result);
        }
    }
}
