//! Executors: an executor is a compiled model, immutable and shared between threads. Sessions evaluate the model, each in a frame (the memory of one
//! evaluation) of its own.

mod compile;
mod loaded;
mod mixed;
mod tensors;
pub(crate) mod whole;

pub use loaded::LoadedRows;
pub use mixed::{MixedModel, ModelPart, PartInput};
pub use whole::WholeMemory;

use crate::arrays::loops::LoopPlan;
use crate::batch::{Batch, no_rows};
use crate::options::choice::Backend;
use crate::options::compile_options::{CompileOptions, TimedOptions};
use crate::options::metrics::{Event, EventReporter};
use crate::options::run_options::RunOptions;
use crate::options::signature::{Field, Signature};
use crate::scalar::backend::Runnable;
use crate::scalar::frame_model::{FrameModel, ValueSlots};
use crate::scalar::tiers::{Tiered, TieredModel};
use crate::stages::only_sessions;
use cembra_expr::{Program, Sources};
use cembra_native::{Compiled, Tier};
use cembra_plan::{Binding, Function, Plan};
use cembra_runtime::{Context, Frame, FramePtr, QType};
use cembra_value::{Code, Diagnostic, Error, Value, is_compile_ended};
use cembra_value::{Limits, RunTerms};
use std::fmt;
use std::sync::{Arc, OnceLock};
use whole::WholeModel;

/// A compiled model, shared by executors and sessions. The plan is not kept, because it is several times as large as the data that calls and errors
/// need.
pub struct Executable {
    pub(crate) form: ExecutableForm,
    pub(crate) watch: EventReporter,
    pub(crate) limits: Limits,
    fallback: OnceLock<Box<Diagnostic>>,
    pub(crate) inputs: Box<[Field]>,
    pub(crate) outputs: Box<[Field]>,
    pub(crate) origin: Box<Origin>,
}

/// The compiled form of a model. The variants differ in the memory that holds its values.
// Each call matches on the variant. A byte of its own is read faster than a niche in another field.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "a call reads the largest variant without another pointer")]
#[repr(u8)]
pub(crate) enum ExecutableForm {
    /// A model of scalars, whose values are in a frame (the memory of one evaluation).
    Frame(FrameModel),
    /// A model of scalars whose code for one row is compiled when the first frame (the memory of one evaluation) is
    /// made.
    OnDemand(Box<OnDemandModel>),
    /// A model of arrays, of tensors or of both, whose values are not stored in a frame, the memory of scalars.
    Whole(WholeModel),
}

/// A plan that is mostly run on many rows. The plan's code for one row is compiled only when it is first needed.
#[derive(Debug)]
pub(crate) struct OnDemandModel {
    /// The plan, which the model for many rows shares.
    plan: Arc<Plan>,
    compiled: OnceLock<FrameModel>,
}

/// The memory that successive evaluations of one part of a mixed model use: a frame (for scalars), a context, and
/// memory for arrays and tensors.
#[derive(Debug)]
pub(crate) struct PartMemory {
    frame: Frame,
    context: Context,
    whole: WholeMemory,
}

impl PartMemory {
    fn memory_bytes(&self) -> usize {
        size_of::<PartMemory>() + self.frame.size() + self.context.arena_bytes() + self.whole.memory_bytes()
    }
}

/// The program and the options that a model was compiled from, kept so that it can be compiled again for many rows. Keeping its plan instead would
/// take several times the memory.
#[derive(Debug)]
pub(crate) struct Origin {
    pub(crate) program: Arc<Program>,
    pub(crate) options: CompileOptions,
    batch: OnceLock<Batch>,
}

impl TieredModel for Executable {
    fn tiered(&self) -> Option<&Tiered> {
        match &self.form {
            ExecutableForm::Frame(FrameModel { runnable: Runnable::Tiered(tiered), .. }) => Some(tiered),
            _ => None,
        }
    }

    fn watch(&self) -> &EventReporter {
        &self.watch
    }

    fn fall_back(&self, reason: Diagnostic) {
        self.watch.record(&Event::Fallback { reason: self.fallback.get_or_init(|| Box::new(reason)) });
    }
}

impl Drop for Executable {
    fn drop(&mut self) {
        self.watch.record(&Event::ExecutorDropped);
    }
}

impl Executable {
    /// Compiles a plan to an executable. With `structs`, which binds inputs and outputs to fields of the caller's structs, the code reads and writes
    /// these fields. With `None`, sessions copy each value to and from the frame (the memory of scalars).
    pub fn new(
        program: Arc<Program>,
        plan: Plan,
        structs: Option<Binding>,
        options: &TimedOptions,
    ) -> Result<Executable, Error> {
        check_float_mode()?;
        let watch = EventReporter::new(options.metrics.as_ref(), options.name.clone());
        let fields = Field::of_plan(&plan, &program);
        let (model, reason) = FrameModel::new(&program, &plan, structs, options.backend, options, &watch)?;
        let executable = Executable::of_form(ExecutableForm::Frame(model), fields, watch, program, options);
        if let Some(reason) = reason {
            executable.fall_back(reason);
        }
        Ok(executable)
    }

    /// Replaces the executable's list of inputs by fields with the names and types `inputs`. A model with inputs on
    /// demand needs this, because its plan may ask the caller for some inputs during a call.
    #[must_use]
    pub fn with_inputs(mut self, inputs: &[(Arc<str>, QType)]) -> Executable {
        self.inputs = inputs.iter().map(|(name, qtype)| Field::new(name, qtype)).collect();
        Field::add_defaults(&mut self.inputs, &self.origin.program);
        self
    }

    /// Makes an executable whose code for one row is compiled when the first session is made. If that fails, the interpreter runs the plan.
    pub(crate) fn on_demand(program: Arc<Program>, plan: Plan, options: &TimedOptions) -> Executable {
        let watch = EventReporter::new(options.metrics.as_ref(), options.name.clone());
        let fields = Field::of_plan(&plan, &program);
        let model = OnDemandModel { plan: plan.into(), compiled: OnceLock::new() };
        Executable::of_form(ExecutableForm::OnDemand(model.into()), fields, watch, program, options)
    }

    /// Compiles the code for one row of an on-demand model. If that fails, the interpreter runs the plan, and the reason is the second result.
    fn code_on_demand(&self, model: &OnDemandModel) -> (FrameModel, Option<Diagnostic>) {
        let Origin { program, options, .. } = &*self.origin;
        let options = &options.restarted();
        FrameModel::new(program, &model.plan, None, options.backend, options, &self.watch).unwrap_or_else(|error| {
            (FrameModel::interpreted(program, &model.plan, options), error.diagnostics().first().cloned())
        })
    }

    /// Returns the code for one row of an on-demand model. The first call compiles it.
    #[cold]
    fn compiled_on_demand<'e>(&'e self, model: &'e OnDemandModel) -> &'e FrameModel {
        model.compiled.get_or_init(|| {
            let (compiled, reason) = self.code_on_demand(model);
            reason.into_iter().for_each(|reason| self.fall_back(reason));
            compiled
        })
    }

    /// Compiles the code for one row that the first session needs, if it is not compiled yet. If [`compile_until`](cembra_value::compile_until) ends
    /// the compilation early, its result is not kept.
    pub(crate) fn compile_session(&self) {
        if let ExecutableForm::OnDemand(model) = &self.form
            && model.compiled.get().is_none()
        {
            let (compiled, reason) = self.code_on_demand(model);
            // Another thread may have compiled the same code meanwhile.
            if !is_compile_ended() && model.compiled.set(compiled).is_ok() {
                reason.into_iter().for_each(|reason| self.fall_back(reason));
            }
        }
    }

    /// The number of steps in the plan of a model that is compiled on demand; `None` for other models.
    pub(crate) fn step_count(&self) -> Option<usize> {
        match &self.form {
            ExecutableForm::OnDemand(model) => Some(model.plan.step_count()),
            _ => None,
        }
    }

    /// Makes an executable from a model with arrays or tensors, whose values are not stored in a frame, the memory of
    /// scalars.
    pub(crate) fn of_whole(
        whole: WholeModel,
        program: Arc<Program>,
        options: &TimedOptions,
    ) -> Result<Executable, Error> {
        check_float_mode()?;
        let watch = EventReporter::new(options.metrics.as_ref(), options.name.clone());
        let fields = whole.fields();
        Ok(Executable::of_form(ExecutableForm::Whole(whole), fields, watch, program, options))
    }

    fn of_form(
        form: ExecutableForm,
        [inputs, outputs]: [Box<[Field]>; 2],
        watch: EventReporter,
        program: Arc<Program>,
        options: &TimedOptions,
    ) -> Executable {
        watch.record(&Event::ExecutorMade);
        Executable {
            form,
            watch,
            limits: *options.budget().limits(),
            fallback: OnceLock::new(),
            inputs,
            outputs,
            origin: Box::new(Origin { program, options: CompileOptions::clone(options), batch: OnceLock::new() }),
        }
    }

    /// Evaluates a model with arrays or tensors, and appends the outputs to `results`. `values` must have one value per input, of exactly the input's
    /// type. `context` has the token that cancels the run, and its time limit.
    pub fn evaluate_whole(
        &self,
        values: &[Value],
        context: &Context,
        memory: &mut WholeMemory,
        results: &mut Vec<Value>,
    ) -> Result<(), Error> {
        let (token, limits) = (context.cancellation(), memory.options.run_limits().copied());
        let terms = memory.options.terms(token.as_ref(), limits.as_ref());
        context.begin_run();
        let evaluated = self.whole().map_or(Ok(()), |whole| whole.evaluate(values, &terms, memory, results));
        context.end_run();
        if evaluated.is_ok() {
            context.count_evaluation();
        }
        evaluated
    }

    /// Makes the memory that successive calls of `evaluate_part` use.
    pub(crate) fn part_memory(&self) -> PartMemory {
        PartMemory { frame: self.frame(), context: self.limits.context(), whole: WholeMemory::default() }
    }

    /// Evaluates this model as a part of a mixed model, on one value per input, and returns its outputs.
    pub(crate) fn evaluate_part(
        self: &Arc<Self>,
        values: &[Value],
        terms: &RunTerms<'_>,
        memory: &mut PartMemory,
    ) -> Result<Vec<Value>, Error> {
        let PartMemory { frame, context, whole: memory } = memory;
        let mut results = Vec::with_capacity(self.outputs.len());
        match self.whole() {
            Some(whole) => {
                self.check_values(values)?;
                whole.evaluate(values, terms, memory, &mut results)?;
            }
            None => {
                context.set_cancellation(terms.token.cloned());
                terms.limits.unwrap_or(&self.limits).hold_in(context);
                let slots = self.run_values(values, frame, context)?;
                // SAFETY: FRAME-SLOT: the call wrote the outputs to their slots; STRING-VIEW: a text views an input or a literal, and both are still
                // alive.
                unsafe { slots.read(frame.ptr(), &mut results) };
            }
        }
        Ok(results)
    }

    /// Checks that `values` has one value per input, each of the input's type.
    pub(crate) fn check_values(&self, values: &[Value]) -> Result<(), Error> {
        if values.len() != self.inputs.len() {
            return Err(miscount(self.inputs.len(), values.len()));
        }
        match self.inputs.iter().zip(values).find(|(field, value)| !value.is_of(&field.qtype)) {
            Some((field, value)) => Err(field.misfit(value)),
            None => Ok(()),
        }
    }

    /// Returns the model if it has arrays or tensors, whose values are not stored in a frame (the memory of scalars);
    /// else `None`.
    #[inline]
    pub(crate) fn whole(&self) -> Option<&WholeModel> {
        match &self.form {
            ExecutableForm::Frame(_) | ExecutableForm::OnDemand(_) => None,
            ExecutableForm::Whole(whole) => Some(whole),
        }
    }

    /// Returns the plan for short lists, if this is a model with arrays and has one.
    #[inline]
    pub fn loops(&self) -> Option<&LoopPlan> {
        match self.whole()? {
            WholeModel::Arrays(model) => model.loops(),
            _ => None,
        }
    }

    /// The most bytes that the arrays of a run with `memory` may take.
    #[inline]
    #[must_use]
    pub fn array_bytes(&self, memory: &WholeMemory) -> u64 {
        memory.options.run_limits().unwrap_or(&self.limits).array_bytes
    }

    /// Returns the model if its values are in a frame (the memory of scalars), else `None`. A model that is compiled on
    /// demand is compiled first.
    pub(crate) fn frame_model(&self) -> Option<&FrameModel> {
        match &self.form {
            ExecutableForm::OnDemand(model) => Some(self.compiled_on_demand(model)),
            _ => self.model_of_frame(),
        }
    }

    /// Returns the model whose values are in a frame, if it is compiled already; else `None`. Unlike `frame_model`,
    /// this function compiles nothing, so that evaluations are short.
    #[inline(always)]
    fn model_of_frame(&self) -> Option<&FrameModel> {
        match &self.form {
            ExecutableForm::Frame(model) => Some(model),
            ExecutableForm::OnDemand(model) => model.compiled.get(),
            ExecutableForm::Whole(_) => None,
        }
    }

    /// Returns true if the model has arrays or tensors, so that its values are not stored in a frame (the memory of
    /// scalars). `evaluate_whole` runs such a model.
    #[must_use]
    pub const fn is_whole(&self) -> bool {
        matches!(self.form, ExecutableForm::Whole(_))
    }

    /// Returns the names and types of the model's inputs and outputs.
    #[must_use]
    pub fn signature(&self) -> Signature {
        Signature { inputs: self.inputs.to_vec(), outputs: self.outputs.to_vec() }
    }

    /// The machine code that every call runs; `None` if the interpreter runs calls, or may run them until a tier is compiled, or if the model has
    /// arrays or tensors.
    #[must_use]
    pub fn machine_code(&self) -> Option<&Compiled> {
        match &self.frame_model()?.runnable {
            Runnable::Native(compiled, _) => Some(compiled),
            _ => None,
        }
    }

    /// Sets `options` for all later runs with `context` and `memory`, in place of all options that were set before.
    pub fn set_run_options(&self, options: &RunOptions, context: &mut Context, memory: &mut WholeMemory) {
        options.end_runs(&memory.options, context);
        let limits = options.run_limits().map(|limits| self.limits.within(limits));
        limits.as_ref().unwrap_or(&self.limits).hold_in(context);
        memory.options = limits.into_iter().fold(options.clone(), RunOptions::limits);
    }

    /// The tier of the machine code that calls run now; `None` if the interpreter runs them.
    pub(crate) fn tier(&self) -> Option<Tier> {
        match self.whole() {
            Some(whole) => whole.tier(),
            None => self.frame_model()?.runnable.tier(),
        }
    }

    /// Makes a context for runs, with the limits that the model was compiled with. The context counts evaluations if the metrics ask for that.
    #[must_use]
    pub fn context(&self) -> Context {
        let mut context = self.limits.context();
        context.set_tally(self.watch.evaluations().map(|evaluations| evaluations.tally()));
        context
    }

    /// Returns `error`, with which an evaluation in `context` ended. If `error` is a fault, it is first counted and reported to the metrics. Other
    /// errors are only returned.
    #[cold]
    #[inline(never)]
    pub fn failed(&self, context: &Context, error: Error) -> Error {
        if error.is_fault() {
            context.count_evaluation();
        }
        self.watch.record_fault(&error);
        error
    }

    /// Makes a frame (the memory of one evaluation) that contains the plan's literals; for a model with arrays or
    /// tensors, an empty frame.
    #[must_use]
    pub fn frame(&self) -> Frame {
        self.frame_model().map_or_else(|| Frame::zeroed(0), FrameModel::frame)
    }

    /// Returns the bytes of one frame (the memory of one evaluation) of the model; 0 for a model with arrays or
    /// tensors.
    pub(crate) fn frame_bytes(&self) -> usize {
        self.frame_model().map_or(0, FrameModel::frame_bytes)
    }

    /// Returns the slots of the inputs and outputs, if sessions copy values to and from the frame of this model.
    pub(crate) fn slots(&self) -> Result<&ValueSlots, Error> {
        self.frame_model().and_then(|model| model.slots.as_ref()).ok_or_else(bound_to_structs)
    }

    /// Writes one value for each input to its slot in the frame.
    ///
    /// # Safety
    /// FRAME-SLOT: the slots and the frame are of this plan. STRING-VIEW: the texts in `values` outlive every call on the frame, up to the next write
    /// of the frame's inputs.
    #[inline]
    pub(crate) unsafe fn write_inputs(
        &self,
        slots: &ValueSlots,
        frame: FramePtr,
        values: &[Value],
    ) -> Result<(), Error> {
        if values.len() != self.inputs.len() {
            return Err(miscount(self.inputs.len(), values.len()));
        }
        // SAFETY: FRAME-SLOT, STRING-VIEW, promised by the caller.
        let written = unsafe { slots.write(values, frame) };
        match (self.inputs.get(written), values.get(written)) {
            (Some(field), Some(value)) => Err(field.misfit(value)),
            _ => Ok(()),
        }
    }

    /// Formats a line for a log about an object of kind `kind` that runs this model: the name and the numbers of inputs and outputs.
    ///
    /// # Errors
    /// Errors of the formatter.
    pub fn fmt_as(&self, kind: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut line = f.debug_struct(kind);
        line.field("name", &self.origin.options.model_name());
        line.field("inputs", &self.inputs.len()).field("outputs", &self.outputs.len()).finish()
    }

    /// Returns the bytes of memory that the compiled model takes, with its code and without frames. Names are shared with the program and not
    /// counted.
    pub(crate) fn memory_bytes(&self) -> usize {
        size_of::<Executable>()
            + size_of::<Origin>()
            + size_of::<Program>()
            + self.origin.program.memory_bytes()
            + self.origin.options.sources.as_ref().map_or(0, |sources| size_of::<Sources>() + sources.memory_bytes())
            + size_of_val(&*self.inputs)
            + size_of_val(&*self.outputs)
            + match &self.form {
                ExecutableForm::Frame(model) => model.memory_bytes(),
                ExecutableForm::OnDemand(model) => {
                    model.plan.memory_bytes() + model.compiled.get().map_or(0, FrameModel::memory_bytes)
                }
                ExecutableForm::Whole(whole) => whole.memory_bytes(),
            }
    }

    /// Begins an evaluation: checks that the token of `context` does not forbid the evaluation, and clears the state of the previous evaluation.
    ///
    /// # Errors
    /// If the token was cancelled, or the model has arrays or tensors.
    #[inline(always)]
    pub fn begin(&self, context: &mut Context) -> Result<&FrameModel, Error> {
        debug_assert!(cembra_runtime::math::default_float_mode(), "flush-to-zero or another rounding mode");
        check_token(context)?;
        let Some(model) = self.model_of_frame() else { return Err(only_sessions([&self.inputs, &self.outputs])) };
        model.begin(context);
        Ok(model)
    }

    /// Runs the model on one value per input, in a frame of this model. Returns the slots from which the outputs are to be read.
    #[inline]
    pub(crate) fn run_values(
        self: &Arc<Self>,
        values: &[Value],
        frame: &mut Frame,
        context: &mut Context,
    ) -> Result<&ValueSlots, Error> {
        let model = self.begin(context)?;
        let Some(slots) = &model.slots else { return Err(bound_to_structs()) };
        let frame = frame.ptr();
        // SAFETY: FRAME-SLOT: the frame was made from the plan's template. STRING-VIEW: `values` outlives the call, and nothing reads the frame's
        // inputs after it.
        unsafe { self.write_inputs(slots, frame, values)? };
        // SAFETY: CALL: an executable's binding is in its frame, which was made from the plan's template.
        unsafe { self.run(model, [frame; 3], context)? };
        Ok(slots)
    }

    /// Runs the model that `begin` has returned, with the memory of the inputs, of the outputs and of the frame.
    ///
    /// # Errors
    /// If the evaluation fails.
    ///
    /// # Safety
    /// CALL: the requirements of `cembra_plan::Function::call` must hold for this plan and binding.
    #[inline(always)]
    pub unsafe fn run(
        self: &Arc<Self>,
        model: &FrameModel,
        [input, output, frame]: [FramePtr; 3],
        context: &mut Context,
    ) -> Result<(), Error> {
        // One check serves runs without a time limit that are not counted; nothing is left to do after their call.
        if !context.is_watched() {
            // SAFETY: CALL, promised by the caller.
            let status = unsafe { self.call(model, [input, output, frame], context) };
            return model.end(status, context);
        }
        if context.has_time_limit() {
            // SAFETY: CALL, promised by the caller.
            return unsafe { self.run_limited(model, [input, output, frame], context) };
        }
        // SAFETY: CALL, promised by the caller.
        let status = unsafe { self.call(model, [input, output, frame], context) };
        model.end(status, context)?;
        context.count_evaluation();
        Ok(())
    }

    /// Runs as `run` does, for a context with a time limit, and counts the run if it has a tally and does not fail.
    ///
    /// # Errors
    /// Errors of `run`.
    ///
    /// # Safety
    /// CALL: the requirements of `cembra_plan::Function::call` must hold for this plan and binding.
    #[inline(never)]
    unsafe fn run_limited(
        self: &Arc<Self>,
        model: &FrameModel,
        memories: [FramePtr; 3],
        context: &mut Context,
    ) -> Result<(), Error> {
        context.begin_run();
        // SAFETY: CALL, promised by the caller.
        let status = unsafe { self.call(model, memories, context) };
        context.end_run();
        model.end(status, context)?;
        context.count_evaluation();
        Ok(())
    }

    /// Calls the function that runs the model, and returns its status.
    ///
    /// # Safety
    /// CALL: the requirements of `cembra_plan::Function::call` must hold for this plan and binding.
    #[inline(always)]
    unsafe fn call(
        self: &Arc<Self>,
        model: &FrameModel,
        [input, output, frame]: [FramePtr; 3],
        context: &mut Context,
    ) -> i32 {
        // Machine code is called directly and not through a table of methods, because a call of a small model is short.
        // SAFETY: CALL, promised by the caller.
        unsafe {
            match &model.runnable {
                Runnable::Native(function, _) => function.call(input, output, frame, context),
                Runnable::Interpreted(function) => function.call(input, output, frame, context),
                Runnable::Tiered(tiered) => self.run_tier(tiered, [input, output, frame], context),
            }
        }
    }

    /// Runs the current tier of a model, and returns its status. It is a function of its own so that other calls stay short.
    ///
    /// # Safety
    /// CALL: the requirements of `cembra_plan::Function::call` must hold for this plan and binding.
    #[inline(never)]
    unsafe fn run_tier(
        self: &Arc<Self>,
        tiered: &Tiered,
        [input, output, frame]: [FramePtr; 3],
        context: &mut Context,
    ) -> i32 {
        // SAFETY: CALL, promised by the caller; every tier is of this plan and binding.
        unsafe { tiered.function_for_call(self).call(input, output, frame, context) }
    }
}

/// Returns an error unless the thread is in the default floating-point mode. Nothing is compiled in another mode.
fn check_float_mode() -> Result<(), Error> {
    if cembra_runtime::math::default_float_mode() {
        return Ok(());
    }
    let message = "the thread's floating-point mode is not the default (round to nearest, no flush to zero)";
    let diagnostic = Diagnostic::new(Code::FloatMode, message);
    Err(diagnostic
        .hint("set the default mode: in another mode, results would differ from the results on other threads")
        .into())
}

/// Checks that the token of `context` does not forbid a new evaluation.
///
/// # Errors
/// If the token was cancelled.
#[inline]
pub fn check_token(context: &Context) -> Result<(), Error> {
    if context.is_run_refused() { Err(Error::ended_by(context.cancellation().as_ref())) } else { Ok(()) }
}

/// The error for `found` values where the model has `expected` inputs.
#[cold]
pub(crate) fn miscount(expected: usize, found: usize) -> Error {
    Error::values(format!("the model takes {expected} inputs, found {found}"))
}

/// The error for values that are given to an executor whose machine code reads structs.
#[cold]
fn bound_to_structs() -> Error {
    Diagnostic::new(Code::Binding, "the executor reads structs, so it cannot be given values")
        .hint("in Rust, run it by its `ModelExecutor`, or compile the model with `Model::compile`")
        .into()
}

/// A compiled model. Immutable, shared between threads, cheap to clone; each thread runs it through its own session.
///
/// ```
/// use cembra::{Model, Options, Value};
///
/// let executor = Model::parse("input x, y: i32; output z = x // y")?.compile(&Options::default())?;
/// let names: Vec<_> = executor.inputs().iter().map(|input| &*input.name).collect();
/// assert_eq!(names, ["x", "y"]);
/// let results: Vec<Value> = std::thread::scope(|scope| {
///     let threads: Vec<_> = (1..4)
///         .map(|y| {
///             let mut session = executor.session();
///             scope.spawn(move || session.evaluate(&[Value::from(6), Value::from(y)]).unwrap().remove(0))
///         })
///         .collect();
///     threads.into_iter().map(|thread| thread.join().unwrap()).collect()
/// });
/// assert_eq!(results, [Value::from(6), Value::from(3), Value::from(2)]);
/// # Ok::<(), cembra::Error>(())
/// ```
#[derive(Clone)]
pub struct Executor(Arc<Executable>);

impl fmt::Debug for Executable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.fmt_as("Executable", f)
    }
}

impl fmt::Debug for Executor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt_as("Executor", f)
    }
}

impl Executable {
    /// Moves the executable to shared memory (`Arc`). If the backend is `Tiered` and the model must be compiled before
    /// its first call, requests the compilation.
    pub(crate) fn started(self) -> Arc<Executable> {
        let shared = Arc::new(self);
        if let Some(tiered) = shared.tiered() {
            tiered.begin(&shared);
        }
        shared
    }
}

impl From<Executable> for Executor {
    fn from(inner: Executable) -> Self {
        Executor(inner.started())
    }
}

impl Executor {
    /// The executable that this executor shares with its clones and sessions.
    #[inline]
    #[doc(hidden)]
    pub fn inner(&self) -> &Arc<Executable> {
        &self.0
    }

    /// Makes the executor of one part of a mixed model (a model with tensors and other values). The background
    /// compilation of the part was started together with that of the whole model.
    pub(crate) fn of_part(part: &Arc<Executable>) -> Executor {
        Executor(part.clone())
    }

    pub(crate) fn shared(&self) -> Arc<Executable> {
        self.0.clone()
    }

    /// The inputs that the prepared model uses, in the order of the program; a session takes one value for each. Inputs that no bound output needs,
    /// or that preparation found to be without effect, are not included.
    #[must_use]
    pub fn inputs(&self) -> &[Field] {
        &self.0.inputs
    }

    /// The outputs of the model, the main output first.
    #[must_use]
    pub fn outputs(&self) -> &[Field] {
        &self.0.outputs
    }

    /// The tier of the machine code that calls run now; `None` if the interpreter runs them.
    #[must_use]
    pub fn tier(&self) -> Option<Tier> {
        self.0.tier()
    }

    /// Compiles a model of `Backend::Tiered` in all its tiers, even if it was called too rarely for that, and returns when all are compiled. The
    /// calling thread compiles, unless another thread has begun; then the calling thread waits for it. Later calls run the new code, unless the
    /// model's tiers are chosen [by hand](crate::Tiering::by_hand). If machine code is not available, [`Executor::fallback`] has the reason. Does
    /// nothing for other backends. [`Metrics`](crate::Metrics) must not call this function: they are called while the model is compiled, and would
    /// wait for that compilation to end.
    pub fn finish_tiers(&self) {
        if let Some(tiered) = self.0.tiered() {
            tiered.finish(&*self.0);
        }
    }

    /// Returns true if no further tier of the model will be compiled.
    #[must_use]
    pub fn tiers_are_finished(&self) -> bool {
        self.0.tiered().is_none_or(Tiered::is_finished)
    }

    /// Lets calls run the code of the next tier, if it is compiled, and returns the tier that calls run from now on; `None` if that is the
    /// interpreter. Calls that are running finish with the code that they began with. Does nothing for backends other than `Backend::Tiered`.
    pub fn advance(&self) -> Option<Tier> {
        match self.0.tiered() {
            Some(tiered) => tiered.choose_next(&*self.0),
            None => self.tier(),
        }
    }

    /// The backend that runs calls now: `Backend::Interpreter` or `Backend::Native`.
    #[must_use]
    pub fn backend(&self) -> Backend {
        if self.tier().is_some() { Backend::Native } else { Backend::Interpreter }
    }

    /// The reason why `Backend::Auto` or `Backend::Tiered` has no machine code, or none of a higher tier; `None` if there is no such problem.
    #[must_use]
    pub fn fallback(&self) -> Option<&Diagnostic> {
        self.0.fallback.get().map(|reason| &**reason)
    }

    /// The most bytes of stack that the machine code of one call takes, without kernels and other functions outside the model. For several tiers,
    /// this is the stack of the tier that calls run now. `None` for the interpreter, which takes little stack for any model.
    #[must_use]
    pub fn stack_bytes(&self) -> Option<usize> {
        self.0.frame_model()?.runnable.compiled().map(Compiled::stack_bytes)
    }

    /// The bytes of memory that the compiled model takes, with its code and without frames. Names are shared with the model and not counted.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.0.memory_bytes()
    }

    /// Returns the model as a batch, which evaluates many rows. The first call compiles it.
    ///
    /// # Errors
    /// The errors of `Model::batch`.
    pub fn batch(&self) -> Result<Batch, Error> {
        let origin = &self.0.origin;
        if let Some(batch) = origin.batch.get() {
            return Ok(batch.clone());
        }
        if self.0.whole().is_some_and(|whole| !whole.has_rows()) {
            return Err(no_rows(None));
        }
        let options = &origin.options.restarted();
        let batch = match &self.0.form {
            ExecutableForm::OnDemand(model) => Batch::of_plan(&origin.program, model.plan.clone(), options),
            _ => Batch::of(&origin.program, options)
                .map_err(|error| error.in_sources(origin.options.sources.as_deref().map(Sources::shared)))?,
        };
        Ok(origin.batch.get_or_init(|| batch).clone())
    }
}
