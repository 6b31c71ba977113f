//! Sessions: a session has a frame of a compiled model, is used by one thread at a time, and evaluates the model on values.

use crate::executor::whole::WholeMemory;
use crate::executor::{Executable, Executor};
use crate::options::run_options::RunOptions;
use crate::options::signature::Field;
use crate::tensors::runs::{OutputMemory, TensorRuns};
use cembra_runtime::{Cancellation, Context, Frame};
use cembra_tensor::Tensor;
use cembra_value::Error;
use cembra_value::{RunTerms, Value, guarded_values};
use std::fmt;
use std::sync::Arc;

/// A frame (the memory of one evaluation) of a compiled model, in which the model is evaluated on values. A session is `Send` and not shared between
/// threads; a clone is another session. A session can be used again after an error.
///
/// ```
/// use cembra::{Model, Options, Scalar, Value};
///
/// let model = Model::parse("input x: f64?; output y = sqrt(x); output ok = y > 1.0")?;
/// let mut session = model.compile(&Options::default())?.session();
/// assert_eq!(session.evaluate(&[Value::from(Some(9.0))])?, [Value::from(Some(3.0)), cembra::Mask(true).into()]);
/// assert_eq!(session.evaluate(&[Value::Missing(Scalar::Float64)])?[0], Value::from(None::<f64>));
/// // Values must be of exactly the input's type.
/// assert_eq!(session.evaluate(&[Value::from(9.0)]).unwrap_err().code(), "values");
/// # Ok::<(), cembra::Error>(())
/// ```
pub struct Session {
    pub(crate) inner: Arc<Executable>,
    frame: Frame,
    pub(crate) context: Context,
    /// The memory that runs of a model with arrays or tensors use again.
    pub(crate) memory: WholeMemory,
    /// True if runs have a cancellation token, several threads, or limits of their own.
    pub(crate) has_terms: bool,
    /// The list that runs of models with arrays or tensors fill with outputs.
    made: Vec<Value>,
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt_as("Session", f)
    }
}

impl Clone for Session {
    fn clone(&self) -> Self {
        Session::of(self.inner.clone())
    }
}

impl Session {
    /// Makes a session with a new frame (the memory of one evaluation) and a new context.
    fn of(inner: Arc<Executable>) -> Session {
        let (frame, context) = (inner.frame(), inner.context());
        Session { inner, frame, context, memory: WholeMemory::default(), has_terms: false, made: Vec::new() }
    }

    /// Evaluates the model on one value for each of the executor's inputs, in their order and of exactly their types. The results are in the order of
    /// the executor's outputs. Values at the end of `inputs` may be left out if their inputs have defaults.
    ///
    /// ```
    /// use cembra::{Model, Options, Value};
    ///
    /// let model = Model::parse("input price: f64, rate: f64? = 0.5; price * rate")?;
    /// let mut session = model.compile(&Options::default())?.session();
    /// assert_eq!(session.evaluate(&[Value::from(3.0), Value::from(Some(2.0))])?, [Value::from(6.0)]);
    /// assert_eq!(session.evaluate(&[Value::from(3.0)])?, [Value::from(1.5)]);
    /// # Ok::<(), cembra::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the evaluation fails, or the values do not fit the inputs.
    pub fn evaluate(&mut self, inputs: &[Value]) -> Result<Vec<Value>, Error> {
        let mut outputs = Vec::with_capacity(self.inner.outputs.len());
        self.evaluate_into(inputs, &mut outputs)?;
        Ok(outputs)
    }

    /// Evaluates the model and replaces the values in `outputs` by the results, as [`evaluate`](Session::evaluate) returns them. The memory of the
    /// list is used again: results other than texts then allocate nothing, and arrays take the memory of the list's old arrays, unless these are
    /// shared. If the evaluation fails, the list is unchanged.
    ///
    /// # Errors
    /// If the evaluation fails, or the values do not fit the inputs.
    pub fn evaluate_into(&mut self, inputs: &[Value], outputs: &mut Vec<Value>) -> Result<(), Error> {
        if inputs.len() < self.inner.inputs.len()
            && let Some(all) = self.with_defaults(inputs)
        {
            return self.evaluate_into(&all, outputs);
        }
        if self.inner.is_whole() {
            let mut made = std::mem::take(&mut self.made);
            self.run_whole(inputs, &mut made).map_err(|error| self.inner.failed(&self.context, error))?;
            // The old values are memory for the next results.
            std::mem::swap(outputs, &mut made);
            if let Some(whole) = self.inner.whole() {
                made.drain(..).for_each(|value| whole.recycle(value, &mut self.memory));
            }
            self.made = made;
            return Ok(());
        }
        let slots = match self.inner.run_values(inputs, &mut self.frame, &mut self.context) {
            Ok(slots) => slots,
            Err(error) => return Err(self.inner.failed(&self.context, error)),
        };
        outputs.clear();
        // SAFETY: FRAME-SLOT: the call wrote the outputs to their slots; STRING-VIEW: a text views an input or a literal, and both are still alive.
        unsafe { slots.read(self.frame.ptr(), outputs) };
        Ok(())
    }

    /// Evaluates the model, returns the main output, and passes the name and value of each other output to `listener`.
    ///
    /// # Errors
    /// If the evaluation fails, the values do not fit the inputs, or the listener panics.
    pub fn listen(&mut self, inputs: &[Value], listener: &mut dyn FnMut(&str, Value)) -> Result<Value, Error> {
        if inputs.len() < self.inner.inputs.len()
            && let Some(all) = self.with_defaults(inputs)
        {
            return self.listen(&all, listener);
        }
        if self.inner.is_whole() {
            let mut made = Vec::new();
            self.run_whole(inputs, &mut made).map_err(|error| self.inner.failed(&self.context, error))?;
            let mut made = made.into_iter();
            let main = made.next();
            for (output, value) in self.inner.outputs.iter().skip(1).zip(made) {
                tell(listener, &output.name, value)?;
            }
            return Ok(main.unwrap_or(Value::Nothing));
        }
        let slots = match self.inner.run_values(inputs, &mut self.frame, &mut self.context) {
            Ok(slots) => slots,
            Err(error) => return Err(self.inner.failed(&self.context, error)),
        };
        let frame = self.frame.ptr();
        // SAFETY: FRAME-SLOT: the call wrote this output; a text views an input or a literal, and both are still alive.
        let values = slots.outputs.iter().flat_map(|run| unsafe { run.values(frame) });
        let mut outputs = self.inner.outputs.iter().zip(values);
        let main = outputs.next();
        for (output, value) in outputs {
            tell(listener, &output.name, value)?;
        }
        Ok(main.map_or(Value::Nothing, |(_, value)| value))
    }

    /// Sets the token of later evaluations; `None` removes it. Evaluations check the token when they start and from time to time while they run, and
    /// end with the fault `cancelled` once the token is cancelled. A clone of the session has no token. The other options of runs stay, including a
    /// deadline and a time limit.
    ///
    /// ```
    /// use cembra::{Cancellation, FaultKind, Model, Options, Value};
    ///
    /// let mut session = Model::parse("input x: f64; x * 2")?.compile(&Options::default())?.session();
    /// let token = Cancellation::new();
    /// session.set_cancellation(Some(token.clone()));
    /// assert_eq!(session.evaluate(&[Value::from(1.5)])?, [Value::from(3.0)]);
    /// token.cancel();
    /// let error = session.evaluate(&[Value::from(1.5)]).unwrap_err();
    /// assert_eq!((error.fault_kind(), error.code()), (Some(FaultKind::Cancelled), "cancelled"));
    /// # Ok::<(), cembra::Error>(())
    /// ```
    pub fn set_cancellation(&mut self, token: Option<Cancellation>) {
        self.memory.set_cancellation(token, &mut self.context);
        self.update_terms();
    }

    fn update_terms(&mut self) {
        self.has_terms = self.context.cancellation().is_some() || self.memory.options.have_terms();
    }

    /// Sets the options of later evaluations: what ends them, their threads and their limits. The new options replace all earlier ones. A clone of
    /// the session has the default options. See [`RunOptions`].
    pub fn set_run_options(&mut self, options: &RunOptions) {
        self.inner.set_run_options(options, &mut self.context, &mut self.memory);
        self.update_terms();
    }

    /// Runs later evaluations of a model with arrays or tensors on up to `threads` threads of rayon's pool for the process, or of the pool in which
    /// the caller runs. A run uses a further thread only if that thread gets at least 65,536 elements. The results are the same as on one thread, bit
    /// for bit. A new session and a clone have one thread. A model of scalars always takes one thread.
    ///
    /// ```
    /// use cembra::values::ArrayKind;
    /// use cembra::{Array, Model, Options, Scalar, ScalarValue, Value};
    ///
    /// let executor = Model::parse("input x: [f64]; math.sum(x * x)")?.compile(&Options::default())?;
    /// let numbers = (0..300_000).map(|at| Some(ScalarValue::Float64(f64::from(at) * 0.1)));
    /// let x = Value::Array(ArrayKind::Dense, Array::from_scalars(Scalar::Float64, numbers).into());
    /// let (mut one, mut several) = (executor.session(), executor.session());
    /// several.set_threads(3);
    /// assert_eq!(one.evaluate(&[x.clone()])?, several.evaluate(&[x])?);
    /// # Ok::<(), cembra::Error>(())
    /// ```
    pub fn set_threads(&mut self, threads: usize) {
        self.memory.options = std::mem::take(&mut self.memory.options).threads(threads);
        self.update_terms();
    }

    /// The bytes of memory that the session holds: its frame, the memory of its strings, and the memory of arrays and tensors that later runs use
    /// again.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        size_of::<Session>() + self.frame.size() + self.context.arena_bytes() + self.memory.memory_bytes()
    }

    /// Appends to `inputs` a value for each input that is left out, for which the model uses the input's default.
    /// `None` if such an input has no default.
    #[cold]
    fn with_defaults(&self, inputs: &[Value]) -> Option<Vec<Value>> {
        let left_out = self.inner.inputs.get(inputs.len()..)?.iter();
        let missing = left_out.map(Field::left_out);
        inputs.iter().cloned().map(Some).chain(missing).collect()
    }

    /// Evaluates a model with arrays or tensors.
    #[cold]
    fn run_whole(&mut self, values: &[Value], results: &mut Vec<Value>) -> Result<(), Error> {
        self.inner.check_values(values)?;
        self.inner.evaluate_whole(values, &self.context, &mut self.memory, results)
    }
}

impl Executor {
    /// Makes a session with a frame (the memory of one evaluation) of its own, for one thread at a time. A session of a
    /// `ModelExecutor` cannot evaluate values, because that executor is bound to structs.
    #[must_use]
    pub fn session(&self) -> Session {
        Session::of(self.inner().clone())
    }

    /// Compiles the code that the first session needs, for callers that may end the compilation early. If the
    /// compilation ends early, none of its code is kept.
    #[doc(hidden)]
    pub fn compile_session(&self) {
        self.inner().compile_session();
    }

    /// The number of steps in the plan for one row; `None` if the model is not compiled on demand.
    #[doc(hidden)]
    pub fn step_count(&self) -> Option<usize> {
        self.inner().step_count()
    }
}

impl Session {
    /// Evaluates a model with tensors on one tensor per input, in the order of the executor's inputs; a scalar is a tensor without axes. The outputs
    /// are in the session's memory. The next run overwrites an output unless the caller keeps a clone of it.
    ///
    /// If the inputs have the extents and strides of the previous run, nothing is looked up, and almost nothing is allocated.
    ///
    /// ```
    /// use cembra::{Model, Options, Tensor};
    ///
    /// let model = Model::parse("input x: tensor[f64, 1], by: f64; output y = x / by; output sum = tensor.sum(x)")?;
    /// let mut session = model.compile(&Options::default())?.session();
    /// for at in [1.0, 2.0, 3.0] {
    ///     let outputs = session.run_tensors(&[Tensor::new(&[2], vec![1.0, at])?, Tensor::scalar(2.0)])?;
    ///     assert_eq!(outputs[0].to_vec::<f64>()?, [0.5, at / 2.0]);
    ///     assert_eq!(outputs[1].get::<f64>(&[])?, 1.0 + at);
    /// }
    /// # Ok::<(), cembra::Error>(())
    /// ```
    ///
    /// # Errors
    /// If tensors have other types than the inputs, extents do not fit, an element fails, an output takes more bytes than arrays may have, or the
    /// model has no tensors.
    #[inline]
    pub fn run_tensors(&mut self, inputs: &[Tensor]) -> Result<&[Tensor], Error> {
        if self.has_terms || !self.memory.tensors.as_mut().is_some_and(|runs| runs.run_line(inputs)) {
            self.run_tensor_steps(inputs).map_err(|error| self.inner.failed(&self.context, error))?;
        }
        self.context.count_evaluation();
        Ok(self.memory.tensors.as_ref().map_or(&[], |runs| runs.outputs()))
    }

    #[inline(never)]
    fn run_tensor_steps(&mut self, inputs: &[Tensor]) -> Result<(), Error> {
        let model = self.inner.tensors()?;
        run_tensors(&self.context, &mut self.memory, |terms, runs| model.run(inputs, terms, runs))
    }

    /// Evaluates a model with tensors and one output, and stores the output as `inputs[target]`. `target` is the index of an input, or the index
    /// after the last input; in the second case `inputs[target]` is not read, and need not exist.
    ///
    /// The memory of the old tensor `inputs[target]` is overwritten if no other tensor shares it, its elements are contiguous, the output has the
    /// same type and extents, and the last step cannot fail and reads each element only at the index that it writes. In all cases the output is
    /// computed from the tensors as they were before the call.
    ///
    /// ```
    /// use cembra::tensor::OutputMemory;
    /// use cembra::{Model, Options, Tensor};
    ///
    /// let model = Model::parse("input x: tensor[f64, 2]; x(\"i,j\") += x(\"i,j\")")?;
    /// let mut session = model.compile(&Options::default())?.session();
    /// let mut inputs = vec![Tensor::new(&[2, 2], vec![1.0, 2.0, 3.0, 4.0])?];
    /// assert_eq!(session.run_over(&mut inputs, 0)?, OutputMemory::InPlace);
    /// assert_eq!(inputs[0].to_vec::<f64>()?, [2.0, 4.0, 6.0, 8.0]);
    /// # Ok::<(), cembra::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`run_tensors`](Session::run_tensors); a model with several outputs; or a `target` that is neither the index of an input nor the
    /// index after the last input. The tensors are then unchanged.
    pub fn run_over(&mut self, inputs: &mut Vec<Tensor>, target: usize) -> Result<OutputMemory, Error> {
        let model = self.inner.tensors()?;
        let made =
            run_tensors(&self.context, &mut self.memory, |terms, runs| model.run_over(inputs, target, terms, runs));
        let made = made.map_err(|error| self.inner.failed(&self.context, error))?;
        self.context.count_evaluation();
        Ok(made)
    }
}

/// Runs a model with tensors by `run`, with the options of a session.
fn run_tensors<A>(
    context: &Context,
    memory: &mut WholeMemory,
    run: impl FnOnce(&RunTerms<'_>, &mut TensorRuns) -> A,
) -> A {
    let (token, limits) = (context.cancellation(), memory.options.run_limits().copied());
    let terms = memory.options.terms(token.as_ref(), limits.as_ref());
    context.begin_run();
    let made = run(&terms, memory.tensors.get_or_insert_default());
    context.end_run();
    made
}

/// Passes an output to a listener. A panic of the listener becomes an error.
fn tell(listener: &mut dyn FnMut(&str, Value), name: &str, value: Value) -> Result<(), Error> {
    guarded_values(
        || format!("output `{name}`: its listener"),
        || {
            listener(name, value);
            Ok(())
        },
    )
}
