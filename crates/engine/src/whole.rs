//! Models whose values lie beside frames: of arrays, of tensors, of both. What an executor and a session need to know of any of them is here;
//! how such a model is compiled and run is decided in its own module.

use crate::error::Error;
use crate::evaluation::EvaluationLimits;
use crate::signature::Field;
#[cfg(feature = "tensors")]
use crate::tensor_session::TensorRuns;
use cembra_native::Tier;
use cembra_runtime::Cancellation;
use cembra_value::Value;
use std::any::Any;
use std::fmt::Debug;

/// A compiled model whose values lie beside frames.
pub trait WholeModel: Any + Send + Sync + Debug {
    /// Inputs and outputs with their types.
    fn fields(&self) -> [Box<[Field]>; 2];

    /// How machine code of its parts is made; none where they are interpreted, or in tiers.
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
        token: Option<&Cancellation>,
        memory: &mut WholeMemory,
        results: &mut Vec<Value>,
    ) -> Result<(), Error>;

    /// About how many bytes of memory runs leave to each other, as far as that is known.
    fn run_bytes(&self, _memory: &WholeMemory) -> usize {
        0
    }

    /// Keeps the memory of a result of a run before, which the caller does not use any more.
    fn recycle(&self, _result: Value, _memory: &mut WholeMemory) {}
}

/// The memory of one session's runs, and how they go.
#[derive(Debug, Default)]
pub struct WholeMemory {
    terms: WholeTerms,
    /// Memory that one run leaves to the next. Each kind of model has a type of its own for it.
    own: Option<Box<dyn Any + Send>>,
    /// That of a model with tensors alone. A run of a small one takes 100 ns, of which finding the type of `own` would be a tenth.
    #[cfg(feature = "tensors")]
    tensors: Option<Box<TensorRuns>>,
}

/// How runs go.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WholeTerms {
    /// How many threads a run may be shared by; 0 is one.
    pub(crate) threads: usize,
    /// What runs may take, where that is not what the model was compiled with.
    pub(crate) limits: Option<EvaluationLimits>,
}

impl WholeMemory {
    /// How the next runs go.
    pub(crate) fn set_terms(&mut self, threads: usize, limits: Option<EvaluationLimits>) {
        self.terms = WholeTerms { threads, limits };
    }

    pub(crate) const fn terms(&self) -> WholeTerms {
        self.terms
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

    /// The memory of a model with tensors alone, which is made before the first run.
    #[cfg(feature = "tensors")]
    pub(crate) fn tensor_runs(&mut self) -> &mut TensorRuns {
        self.tensors.get_or_insert_default()
    }

    /// The same; none before the first run.
    #[cfg(feature = "tensors")]
    #[inline]
    pub(crate) fn known_tensor_runs(&self) -> Option<&TensorRuns> {
        self.tensors.as_deref()
    }

    /// The same, to be run; none before the first run.
    #[cfg(feature = "tensors")]
    #[inline]
    pub(crate) fn known_tensor_runs_mut(&mut self) -> Option<&mut TensorRuns> {
        self.tensors.as_deref_mut()
    }
}
