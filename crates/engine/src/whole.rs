//! Models whose values lie beside frames: of arrays, of tensors, of both. What an executor and a session need to know of any of them is here;
//! how such a model is compiled and run is decided in its own module.

use crate::evaluation::{EvaluationLimits, RunTerms};
use crate::signature::Field;
use cembra_native::Tier;
use cembra_runtime::Cancellation;
use cembra_value::Error;
use cembra_value::Value;
use std::any::Any;
use std::fmt::Debug;

/// A compiled model whose values lie beside frames.
pub(crate) trait WholeModel: Any + Send + Sync + Debug {
    /// Inputs and outputs with their types.
    fn fields(&self) -> [Box<[Field]>; 2];

    /// The tier of the machine code of the model's parts; `None` if the interpreter runs them.
    fn tier(&self) -> Option<Tier>;

    /// False for a model that is evaluated as a whole only, and never on many rows.
    fn has_rows(&self) -> bool {
        true
    }

    /// Bytes of memory that it holds, and its code.
    fn memory_bytes(&self) -> usize;

    /// Evaluates the model on values of exactly its inputs' types, one for each. The results are put behind the others.
    ///
    /// # Errors
    /// A fault of the evaluation.
    fn evaluate_values(
        &self,
        values: &[Value],
        terms: &RunTerms<'_>,
        memory: &mut WholeMemory,
        results: &mut Vec<Value>,
    ) -> Result<(), Error>;

    /// Keeps the memory of a result of a run before, which the caller does not use any more.
    fn recycle(&self, _result: Value, _memory: &mut WholeMemory) {}
}

/// The memory of one session's runs, and their terms.
#[derive(Debug, Default)]
pub struct WholeMemory {
    /// The number of threads, as in [`RunTerms`].
    pub(crate) threads: usize,
    /// The limits of runs; `None` for those that the model was compiled with.
    pub(crate) limits: Option<EvaluationLimits>,
    /// Memory that one run leaves to the next. Each kind of model has a type of its own for it.
    own: Option<Box<dyn Any + Send>>,
}

impl WholeMemory {
    /// The terms of a run that `token` ends.
    pub(crate) fn terms<'r>(&self, token: Option<&'r Cancellation>) -> RunTerms<'r> {
        RunTerms { token, threads: self.threads, limits: self.limits }
    }

    /// The memory of the model, which is made before the first run.
    pub(crate) fn own<M: Default + Send + 'static>(&mut self) -> &mut M {
        let own = self.own.get_or_insert_with(|| Box::new(M::default()));
        if !own.is::<M>() {
            // Memory of another model.
            *own = Box::new(M::default());
        }
        // The type was compared above, so no input can make this fail.
        own.downcast_mut().expect("memory of the type that was made")
    }

    /// Takes the memory out, if it is that of a model of some kind.
    pub(crate) fn take<M: 'static>(&mut self) -> Option<Box<M>> {
        match self.own.take()?.downcast() {
            Ok(own) => Some(own),
            Err(other) => {
                self.own = Some(other);
                None
            }
        }
    }

    /// Puts memory of a model in.
    pub(crate) fn put(&mut self, own: Box<dyn Any + Send>) {
        self.own = Some(own);
    }
}
