//! The typed executor, `ModelExecutor`: a compiled model that reads inputs from rows (Rust structs, or rows of a
//! loader), writes outputs to a Rust value, and passes other outputs to the sink of a listener. Fields with the memory
//! layout of frame slots are read and written in the caller's memory; other fields are copied. The compiled function
//! can also be called on the structs directly.

use crate::binding::fields::{Input, InputField, Output, OutputField};
use crate::binding::listener::Listener;
use crate::binding::loader::{Fields, Loader, LoaderRow};
use crate::binding::on_demand::LoadedValues;
use crate::binding::{GuardedLoader, Load, Source, Transfers, WholeInput, bind};
use crate::columns::InputColumn;
use crate::{Error, Executor, Model, Options, RunOptions, ValueRef};
use cembra_engine::{Field, LoopMemory, WholeMemory, check_token};
use cembra_native::Compiled;
use cembra_runtime::{Cancellation, Context, Frame, FramePtr, TimeLimit};
use cembra_value::{Value, guarded_values};
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::sync::Arc;

/// A compiled model with the memory of one thread, which evaluates a row of type `I` to a result of type `O`. If it was made with a [`Listener`],
/// outputs for which `O` has no field are passed to a sink of type `S`. A clone shares the code and has its own frame.
///
/// An executor for a struct with lifetimes runs rows of any lifetime ([`Input::At`]), so it may be stored as a `ModelExecutor<Row<'static>, O>`. An
/// executor for rows that a loader reads is a `ModelExecutor<LoaderRow<R>, O>`: see [`LoaderRow`](crate::loaders::LoaderRow).
///
/// Fields are matched by name, or by the name in `#[cembra(rename = "..")]`. The traits [`Input`](trait@crate::Input) and
/// [`Output`](trait@crate::Output) list the types that fields may have. A field of `I` that the model does not have is ignored. A field of `O` must
/// be an output, unless its attributes leave it out or give it a default: see the derives.
///
/// ```
/// use cembra::{Model, Optional, Options};
///
/// #[derive(cembra::Input)]
/// struct Order { price: f64, discount: Optional<f64>, customer: String }
///
/// #[derive(cembra::Output)]
/// struct Bill { total: f64, #[cembra(rename = "say")] greeting: Option<String> }
///
/// let model = Model::parse(
///     "output total = price * (1.0 - (discount ?? 0.0))
///      output say = if customer == \"Ann\" then \"welcome back\"",
/// )?;
/// let mut bill = model.executor::<Order, Bill>(&Options::default())?;
/// let order = Order { price: 80.0, discount: Optional::present(0.25), customer: "Ann".into() };
/// let found = bill.run(&order)?;
/// assert_eq!((found.total, found.greeting.as_deref()), (60.0, Some("welcome back")));
///
/// // A type in the place of the output struct is the main output.
/// let mut total = model.executor::<Order, f64>(&Options::default())?;
/// assert_eq!(total.run(&Order { discount: Optional::missing(), ..order })?, 80.0);
/// # Ok::<(), cembra::Error>(())
/// ```
pub struct ModelExecutor<I, O, S = ()> {
    executor: Executor,
    frame: Frame,
    context: Context,
    /// The copies of fields to and from the frame; `None` if machine code reads and writes all fields in the structs.
    moves: Option<Arc<Transfers<S>>>,
    /// Owned values from loaders for the current call; the frame holds views of them.
    kept: Vec<ValueRef<'static>>,
    /// The memory for values of inputs that are read on demand; `None` before the first such evaluation.
    asked: Option<Box<LoadedValues>>,
    /// The memory that evaluations of a model with arrays reuse.
    memory: WholeMemory,
    /// The memory of the plan for short lists (a `LoopPlan`); `None` before the plan's first call, or if the model has
    /// no such plan.
    lists: Option<Box<LoopMemory>>,
    /// The values of outputs for the listener, in a model with arrays.
    heard: Vec<Value>,
    /// The fields that evaluations of many rows use; `None` before the first such evaluation.
    fields: Option<Arc<RowFields>>,
    types: PhantomData<fn(&I) -> O>,
}

/// The field tables of the input and output structs, for evaluations of many rows.
struct RowFields {
    inputs: Vec<InputField>,
    outputs: Vec<OutputField>,
    /// True if every input and output of the model is a field that can be read or written as a column of the rows.
    are_columns: bool,
}

impl Model {
    /// Compiles the model for an input struct and an output struct, or a single output value for the main output. Only the outputs that `O` has
    /// fields for are computed. See [`ModelExecutor`] for an example.
    ///
    /// # Errors
    /// The errors of [`compile`](Model::compile). Also if a field of `I` or `O` has another type than in the model, or if `O` has a field that is not
    /// an output.
    pub fn executor<I: Input, O: Output>(&self, options: &Options) -> Result<ModelExecutor<I, O>, Error> {
        ModelExecutor::new(self, &Fields::<I>::new(), None, options)
    }

    /// Compiles the model for rows that a loader reads. The loader provides the types of the inputs that the outputs
    /// need, and an accessor for each input that is left after preparation. An evaluation calls only the accessors of
    /// inputs whose values it needs. See [`Loader`] for an example.
    ///
    /// # Errors
    /// The errors of [`executor`](Model::executor). Also if the loader does not know an input.
    pub fn executor_from<I, O: Output>(
        &self,
        loader: &dyn Loader<I>,
        options: &Options,
    ) -> Result<ModelExecutor<LoaderRow<I>, O>, Error> {
        ModelExecutor::new(self, &GuardedLoader::new(loader), None, options)
    }

    /// Compiles the model for rows that a loader reads, with a listener that receives the outputs for which `O` has no field. With `()` for `O`, the
    /// listener gets all outputs, the main output too. See [`Listener`] for an example.
    ///
    /// # Errors
    /// The errors of [`executor_from`](Model::executor_from). Also if the listener takes an output as another type than the model's; or if the
    /// listener does not know an output, unless [`Options::ignore_not_listened_named_outputs`] is set.
    pub fn executor_between<I, O: Output, S>(
        &self,
        loader: &dyn Loader<I>,
        listener: &dyn Listener<S>,
        options: &Options,
    ) -> Result<ModelExecutor<LoaderRow<I>, O, S>, Error> {
        ModelExecutor::new(self, &GuardedLoader::new(loader), Some(listener), options)
    }
}

impl<I, O, S> std::fmt::Debug for ModelExecutor<I, O, S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.executor.inner().fmt_as("ModelExecutor", f)
    }
}

impl<I, O, S> Clone for ModelExecutor<I, O, S> {
    fn clone(&self) -> Self {
        ModelExecutor {
            executor: self.executor.clone(),
            frame: self.executor.inner().frame(),
            context: self.executor.inner().context(),
            moves: self.moves.clone(),
            kept: Vec::new(),
            asked: None,
            memory: WholeMemory::default(),
            lists: None,
            heard: Vec::new(),
            fields: self.fields.clone(),
            types: PhantomData,
        }
    }
}

impl<I: Input, O: Output> ModelExecutor<I, O> {
    /// Evaluates the model on the row `input`.
    ///
    /// # Errors
    /// If the evaluation fails, or a loader's value does not fit.
    #[inline]
    pub fn run(&mut self, input: &I::At<'_>) -> Result<O, Error> {
        self.evaluate_new(input)
    }

    /// Evaluates the model and writes the result to an existing value, `output`. The fields that are outputs are
    /// overwritten. The memory of their texts is reused for the new texts. `output` is unchanged if the evaluation
    /// fails.
    ///
    /// ```
    /// use cembra::{Model, Options};
    ///
    /// #[derive(cembra::Input)]
    /// struct Row<'t> { name: &'t str }
    ///
    /// let model = Model::parse("strings.upper(name)")?;
    /// let mut upper = model.executor::<Row<'_>, String>(&Options::default())?;
    /// let mut found = String::with_capacity(100);
    /// upper.run_into(&Row { name: "ann" }, &mut found)?;
    /// assert_eq!((found.as_str(), found.capacity()), ("ANN", 100));
    /// # Ok::<(), cembra::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`run`](ModelExecutor::run).
    #[inline]
    pub fn run_into(&mut self, input: &I::At<'_>, output: &mut O) -> Result<(), Error> {
        self.evaluate_over_output(input, output)
    }

    /// Evaluates the model on many rows, in place: each output is written to its struct. Uses the machine's widest vectors if the model allows it. A
    /// call begins with about a microsecond of preparation, so a few rows are faster with [`run_into`](ModelExecutor::run_into), one after the other:
    /// fewer than about 40 rows of a model with five exponentials and logarithms, and fewer than about 700 rows of a model with ten additions and
    /// multiplications.
    ///
    /// In three cases, the call evaluates row by row, without vectors: if the model has arrays (use
    /// [`Batch`](crate::Batch) instead), if an output has a default or may not fit its field, and if a loader reads the
    /// rows.
    ///
    /// ```
    /// use cembra::{Model, Options};
    ///
    /// #[derive(cembra::Input)]
    /// struct Point { x: f64, y: Option<f64> }
    ///
    /// let model = Model::parse("x * 10.0 + (y ?? 0.5)")?;
    /// let mut executor = model.executor::<Point, f64>(&Options::default())?;
    /// let points = [Point { x: 1.0, y: Some(2.0) }, Point { x: 3.0, y: None }];
    /// let mut found = [0.0; 2];
    /// executor.run_many(&points, &mut found)?;
    /// assert_eq!(found, [12.0, 30.5]);
    /// # Ok::<(), cembra::Error>(())
    /// ```
    ///
    /// # Errors
    /// If a row fails: returns the error of the first row that fails; the outputs from this row on are unspecified.
    /// Also if the numbers of inputs and outputs differ, or if the executor's token, deadline or limits end the run.
    pub fn run_many(&mut self, inputs: &[I::At<'_>], outputs: &mut [O]) -> Result<(), Error> {
        if inputs.len() != outputs.len() {
            let message = format!("there are {} inputs for {} outputs", inputs.len(), outputs.len());
            return Err(Error::values(message));
        }
        // All rows are one run, so the time limit does not restart with each row.
        let Some(limit) = self.context.take_time_limit() else { return self.run_rows(inputs, outputs) };
        limit.begin();
        let timed = TimeLimitGuard { executor: self, limit: Some(limit) };
        timed.executor.run_rows(inputs, outputs)
    }

    /// Evaluates the model on `inputs`, which has the length of `outputs`.
    fn run_rows(&mut self, inputs: &[I::At<'_>], outputs: &mut [O]) -> Result<(), Error> {
        let fields = self.row_fields();
        if !fields.are_columns {
            for (row, (input, output)) in inputs.iter().zip(outputs).enumerate() {
                self.evaluate_over_output(input, output).map_err(|error| error.in_row(row))?;
            }
            return Ok(());
        }
        if self.moves.as_ref().is_some_and(|moves| moves.may_panic) {
            return converted(|| self.run_columns(&fields, inputs, outputs));
        }
        self.run_columns(&fields, inputs, outputs)
    }

    fn row_fields(&mut self) -> Arc<RowFields> {
        if let Some(fields) = &self.fields {
            return fields.clone();
        }
        let (inputs, outputs) = (I::fields(), O::fields());
        let has_field = |input: &Field| inputs.iter().any(|field| field.name == &*input.name);
        let are_columns = self.moves.as_ref().is_none_or(|moves| moves.are_columns())
            && !self.executor.inner().is_whole()
            && self.executor.inputs().iter().all(has_field);
        self.fields.insert(Arc::new(RowFields { inputs, outputs, are_columns })).clone()
    }

    /// Evaluates the model on many rows at once: each field is read or written as a column, with the size of a row as
    /// stride.
    fn run_columns(&self, fields: &RowFields, inputs: &[I::At<'_>], outputs: &mut [O]) -> Result<(), Error> {
        let batch = self.executor.batch()?;
        let field = |name: &str| fields.inputs.iter().find(|field| field.name == name);
        let columns = batch.inputs().iter().map(|input| field(&input.name).map(|field| field.column(inputs)));
        let columns: Option<Vec<InputColumn<'_>>> = columns.collect();
        let columns = columns.ok_or_else(|| Error::values("an input is not a field of the rows"))?;
        let (to, rows): (*mut O, _) = (outputs.as_mut_ptr(), outputs.len());
        // SAFETY: FIELD-TABLE: these are the fields of O, and no two of them overlap.
        let places = fields.outputs.iter().map(|field| Some(unsafe { field.column(to, rows) })).collect();
        batch.run_into(&self.memory.row_options(&self.context), &columns, places).map(drop)
    }
}

/// A run of an executor on many rows, during which the executor has no time limit. Dropping this restores the limit, even after a panic.
struct TimeLimitGuard<'e, I, O, S> {
    executor: &'e mut ModelExecutor<I, O, S>,
    limit: Option<TimeLimit>,
}

impl<I, O, S> Drop for TimeLimitGuard<'_, I, O, S> {
    fn drop(&mut self) {
        if let Some(limit) = self.limit.take() {
            limit.end();
            self.executor.context.put_time_limit(limit);
        }
    }
}

impl<I: Input, O: Output, S> ModelExecutor<I, O, S> {
    /// Compiles `model` and returns an executor for rows of type `I`, which `source` reads.
    pub(crate) fn new(
        model: &Model,
        source: &dyn Source,
        listener: Option<&dyn Listener<S>>,
        options: &Options,
    ) -> Result<Self, Error> {
        let (executor, moves) = bind(model, source, O::fields(), listener, options)?;
        let (frame, context) = (executor.inner().frame(), executor.inner().context());
        let moves = (!moves.is_empty()).then(|| Arc::new(moves));
        let (kept, memory, heard) = (Vec::new(), WholeMemory::default(), Vec::new());
        let (asked, lists, fields) = (None, None, None);
        Ok(ModelExecutor {
            executor,
            frame,
            context,
            moves,
            kept,
            asked,
            memory,
            lists,
            heard,
            fields,
            types: PhantomData,
        })
    }

    /// Evaluates the model on the row `input`. The outputs for which `O` has no field are passed to `sink`.
    ///
    /// # Errors
    /// If the evaluation fails, a value does not fit, or a setter fails.
    pub fn listen(&mut self, input: &I::At<'_>, sink: &mut S) -> Result<O, Error> {
        let output = self.evaluate_new(input)?;
        self.tell(sink)?;
        Ok(output)
    }

    /// Evaluates the model and writes the result to `output`, as [`run_into`](ModelExecutor::run_into) does. Then the outputs for which `O` has no
    /// field are passed to `sink`.
    ///
    /// # Errors
    /// The errors of [`listen`](ModelExecutor::listen). If a setter fails, `output` has been overwritten already.
    pub fn listen_into(&mut self, input: &I::At<'_>, output: &mut O, sink: &mut S) -> Result<(), Error> {
        self.evaluate_over_output(input, output)?;
        self.tell(sink)
    }

    /// Evaluates the model on a row and returns a new output struct.
    #[inline]
    fn evaluate_new(&mut self, input: &I::At<'_>) -> Result<O, Error> {
        let mut output = MaybeUninit::<O>::zeroed();
        // SAFETY: CALL: the memory has the fields of O; FIELD-TABLE: there is room for an O.
        let made = unsafe { self.evaluate::<true>(input, output.as_mut_ptr().cast()) };
        made.map_err(|error| self.failed(error))?;
        // SAFETY: FIELD-TABLE: every field was written by the call, or is made without reading its place; optional values that are missing hold the
        // zeros they started with or what the call left.
        Ok(unsafe { O::take(output.as_ptr()) })
    }

    /// Evaluates the model on a row and overwrites `output`.
    #[inline]
    fn evaluate_over_output(&mut self, input: &I::At<'_>, output: &mut O) -> Result<(), Error> {
        // SAFETY: CALL: the memory has the fields of O, and those in place are valid for whatever the call writes; FIELD-TABLE: an O is there.
        let made = unsafe { self.evaluate::<false>(input, std::ptr::from_mut(output).cast()) };
        made.map_err(|error| self.failed(error))
    }

    /// Loads the inputs, runs the model, and writes the outputs to `to`. Compiled code writes the fields that have the
    /// layout of frame slots; this function copies the others afterwards.
    ///
    /// # Safety
    /// CALL for `to`, which has room for an `O`. FIELD-TABLE: an `O` is there unless `IS_NEW`.
    // A function of its own, so that its small callers are inlined into the user's loop.
    #[inline(never)]
    unsafe fn evaluate<const IS_NEW: bool>(&mut self, input: &I::At<'_>, to: *mut u8) -> Result<(), Error> {
        let from: *const u8 = std::ptr::from_ref(input).cast();
        if let Some(moves) = &self.moves {
            // SAFETY: CALL and FIELD-TABLE, promised by the caller.
            return unsafe {
                match (moves.may_panic, moves.arrays.is_some()) {
                    (false, false) => self.evaluate_moved::<IS_NEW>(from, to),
                    (false, true) => self.evaluate_arrays::<IS_NEW>(from, to),
                    (true, false) => converted(|| self.evaluate_moved::<IS_NEW>(from, to)),
                    (true, true) => converted(|| self.evaluate_arrays::<IS_NEW>(from, to)),
                }
            };
        }
        let inner = self.executor.inner();
        let model = inner.begin(&mut self.context)?;
        let (from, to) = (FramePtr::from_raw(from.cast_mut()), FramePtr::from_raw(to));
        // SAFETY: CALL: the binding's offsets are those of the row's and O's fields (FIELD-TABLE), the frame is of this plan, and
        // compiled code never writes to its input.
        unsafe { inner.run(model, [from, to, self.frame.ptr()], &mut self.context) }
    }

    /// Evaluates a model, without arrays, of which some inputs or outputs are copied through the frame. Rare steps are
    /// in separate functions, so that this one stays small.
    ///
    /// # Safety
    /// CALL for `to`, which has room for an `O`. FIELD-TABLE: `from` is a row of the source, and an `O` is there unless `IS_NEW`.
    #[inline(never)]
    unsafe fn evaluate_moved<const IS_NEW: bool>(&mut self, from: *const u8, to: *mut u8) -> Result<(), Error> {
        let Some(moves) = &self.moves else { return Ok(()) };
        let frame = self.frame.ptr();
        let model = self.executor.inner().begin(&mut self.context)?;
        for load in &moves.fields {
            // SAFETY: FIELD-TABLE for the field, whose type was compared with the slot's (FRAME-SLOT); texts outlive the call.
            unsafe { load.load(from, frame) };
        }
        if moves.has_reads() {
            // SAFETY: FIELD-TABLE: the source's rows are those of I, and this one is borrowed for the call.
            unsafe { read_inputs(&moves.reads, from, frame, &mut self.kept)? };
        }
        let mut call = || {
            let (from, to) = (FramePtr::from_raw(from.cast_mut()), FramePtr::from_raw(to));
            // SAFETY: CALL, as in `evaluate`.
            unsafe { self.executor.inner().run(model, [from, to, frame], &mut self.context) }
        };
        match &moves.on_demand {
            None => call()?,
            // SAFETY: FIELD-TABLE, promised by the caller. FRAME-SLOT: the frame is of the plan. STRING-VIEW: `kept` is unchanged until the next
            // call.
            Some(inputs) => unsafe { inputs.run((&mut self.asked, &mut self.kept), from, frame, call)? },
        }
        // SAFETY: FIELD-TABLE for the fields, promised by the caller; FRAME-SLOT: the call wrote the outputs' slots.
        unsafe {
            // The fields that may reject a value come first, so that nothing is written if one does.
            for moved in &moves.checked {
                moved.read(to.add(moved.field.offset), frame, IS_NEW)?;
            }
            for field in &moves.absent {
                field.put_default(to.add(field.offset), IS_NEW)?;
            }
            for moved in &moves.outputs {
                moved.read::<IS_NEW>(to, frame);
            }
        }
        Ok(())
    }

    /// Evaluates a model with arrays, and writes its outputs if each of them fits its field.
    ///
    /// # Safety
    /// FIELD-TABLE: `from` is a row of the source, and `to` has room for an `O`. An `O` is there unless `IS_NEW`.
    #[inline(never)]
    unsafe fn evaluate_arrays<const IS_NEW: bool>(&mut self, from: *const u8, to: *mut u8) -> Result<(), Error> {
        let Some(moves) = &self.moves else { return Ok(()) };
        check_token(&self.context)?;
        if let (Some(lists), Some(plan)) = (&moves.lists, self.executor.inner().loops()) {
            let array_bytes = self.executor.inner().array_bytes(&self.memory);
            let memory = self.lists.get_or_insert_with(|| plan.memory().into());
            // SAFETY: FIELD-TABLE, promised by the caller, for the fields that the plan was bound to.
            if unsafe { lists.run::<IS_NEW>((plan, memory, &mut self.context), array_bytes, from, to)? } {
                for field in &moves.absent {
                    // SAFETY: FIELD-TABLE, promised by the caller.
                    unsafe { field.put_default(to.add(field.offset), IS_NEW)? };
                }
                return Ok(());
            }
        }
        // SAFETY: FIELD-TABLE, promised by the caller.
        unsafe { self.evaluate_values::<IS_NEW>(from, to) }
    }

    /// Evaluates a model with arrays on values made from the fields.
    ///
    /// # Safety
    /// FIELD-TABLE: `from` is a row of the source, and `to` has room for an `O`. An `O` is there unless `IS_NEW`.
    #[inline(never)]
    unsafe fn evaluate_values<const IS_NEW: bool>(&mut self, from: *const u8, to: *mut u8) -> Result<(), Error> {
        let Some(moves) = &self.moves else { return Ok(()) };
        // SAFETY: FIELD-TABLE: the source's rows are those of I, and this one is borrowed for the call.
        let value = |input: &WholeInput| unsafe { input.value(from) };
        let inputs =
            moves.arrays.iter().flat_map(|inputs| inputs.iter().map(value)).collect::<Result<Vec<Value>, _>>()?;
        let mut made = Vec::new();
        self.executor.inner().evaluate_whole(&inputs, &self.context, &mut self.memory, &mut made)?;
        for (moved, value) in moves.checked.iter().zip(&made) {
            moved.check(value)?;
        }
        // SAFETY: FIELD-TABLE for the fields, promised by the caller; each value was found to fit.
        unsafe {
            for field in &moves.absent {
                field.put_default(to.add(field.offset), IS_NEW)?;
            }
            for (moved, value) in moves.checked.iter().zip(&made) {
                moved.put(to.add(moved.field.offset), value, IS_NEW)?;
            }
        }
        self.heard.clear();
        self.heard.extend(made.into_iter().skip(moves.checked.len()));
        Ok(())
    }

    fn tell(&mut self, sink: &mut S) -> Result<(), Error> {
        if let Some(moves) = self.moves.as_ref().filter(|moves| moves.arrays.is_some()) {
            return moves.tells.iter().zip(&self.heard).try_for_each(|(tell, value)| tell.tell(sink, value.into()));
        }
        let frame = self.frame.ptr();
        for tell in self.moves.iter().flat_map(|moves| &moves.tells) {
            // SAFETY: FRAME-SLOT: the call wrote this output's slot; STRING-VIEW: inputs, literals and the arena are alive.
            let value = unsafe { ValueRef::read_from(&tell.qtype, frame, tell.slot) };
            tell.tell(sink, value)?;
        }
        Ok(())
    }
}

impl<I, O, S> ModelExecutor<I, O, S> {
    /// Reports the error of an evaluation to the metrics, and returns it.
    #[cold]
    pub(crate) fn failed(&self, error: Error) -> Error {
        self.executor.inner().failed(&self.context, error)
    }
}

/// Borrows of the fields of a [`ModelExecutor`] with which the JSON executor runs the model itself.
#[cfg(feature = "json")]
pub(crate) struct ExecutorParts<'e> {
    pub(crate) executor: &'e Executor,
    pub(crate) frame: &'e mut Frame,
    pub(crate) context: &'e mut Context,
    pub(crate) memory: &'e WholeMemory,
    pub(crate) lists: &'e mut Option<Box<LoopMemory>>,
}

#[cfg(feature = "json")]
impl<I, O, S> ModelExecutor<I, O, S> {
    pub(crate) fn parts(&mut self) -> ExecutorParts<'_> {
        let ModelExecutor { executor, frame, context, memory, lists, .. } = self;
        ExecutorParts { executor, frame, context, memory, lists }
    }

    /// Returns the copies of fields to and from the frame; `None` if machine code reads and writes all fields in the
    /// structs.
    pub(crate) fn field_copies(&self) -> Option<&Transfers<S>> {
        self.moves.as_deref()
    }
}

/// Runs a conversion of fields that calls user code. A panic becomes an error.
#[cold]
#[inline(never)]
fn converted(run: impl FnOnce() -> Result<(), Error>) -> Result<(), Error> {
    guarded_values(|| "the conversion of a field".to_owned(), run)
}

/// Reads the inputs of accessors and writes them to their slots. Owned values move to `kept` for the call.
///
/// # Safety
/// FIELD-TABLE: `from` is a row of the accessors' type, borrowed for the call; FRAME-SLOT for the slots.
#[inline(never)]
unsafe fn read_inputs(
    reads: &[Load],
    from: *const u8,
    frame: FramePtr,
    kept: &mut Vec<ValueRef<'static>>,
) -> Result<(), Error> {
    kept.clear();
    for load in reads {
        // SAFETY: FIELD-TABLE and FRAME-SLOT, promised by the caller. STRING-VIEW: `kept` is unchanged until the next call writes every slot anew.
        unsafe { load.write(from, frame, kept)? };
    }
    Ok(())
}

impl<I, O, S> ModelExecutor<I, O, S> {
    /// Sets the cancellation token of later evaluations: they end with the fault `cancelled` once the token is cancelled. `None` removes it. A clone
    /// starts without a token. Other run options stay. See [`Session::set_cancellation`](crate::Session::set_cancellation).
    pub fn set_cancellation(&mut self, token: Option<Cancellation>) {
        self.memory.set_cancellation(token, &mut self.context);
    }

    /// Sets the token, deadline, threads and limits of later evaluations, in place of earlier options. A clone starts without them. See
    /// [`RunOptions`](crate::RunOptions).
    pub fn set_run_options(&mut self, options: &RunOptions) {
        self.executor.inner().set_run_options(options, &mut self.context, &mut self.memory);
    }

    /// The bytes of memory of this executor: its frame, the arena of its strings, and the memory that runs on arrays reuse. The tables for copying
    /// fields are counted too, although clones share them. The compiled model, [`executor`](ModelExecutor::executor), is not counted.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let moves = self.moves.as_ref().map_or(0, |moves| size_of_val(&**moves) + moves.memory_bytes());
        let lists = self.lists.as_ref().map_or(0, |lists| lists.memory_bytes());
        let asked = self.asked.as_ref().map_or(0, |asked| size_of_val(&**asked) + asked.memory_bytes());
        let fields = self.fields.as_ref().map_or(0, |fields| {
            size_of_val(&**fields) + size_of_val(&fields.inputs[..]) + size_of_val(&fields.outputs[..])
        });
        let kept = moves + lists + asked + fields + self.memory.memory_bytes();
        size_of::<Self>() + self.frame.size() + self.context.arena_bytes() + kept
    }

    /// Returns the compiled model, which clones of this executor share.
    #[must_use]
    pub fn executor(&self) -> &Executor {
        &self.executor
    }

    /// Returns the model's machine code as a function, for calls without any of the library's checks. `None` if the interpreter runs the model or may
    /// run it (`Backend::Tiered`), and for a model with arrays.
    ///
    /// The function takes the input struct, the output struct, a frame and a context. It must be called only while this executor or a clone lives,
    /// with a row of `I` and a struct of `O` whose fields are all in place, and the pointers of [`scratch`](ModelExecutor::scratch) (rule CALL in
    /// `docs/safety.md`). A token or a deadline of the executor ends the call early; a time limit does not. The function returns
    /// [`STATUS_OK`](crate::operators::STATUS_OK), or another status if the evaluation failed.
    #[must_use]
    pub fn raw(&self) -> Option<unsafe extern "C" fn(*const u8, *mut u8, *mut u8, *mut Context) -> i32> {
        self.executor.inner().machine_code().map(Compiled::raw)
    }

    /// Returns the frame and the context for calls of the raw function. They are valid until this executor is moved or dropped. Each call of a model
    /// with strings must be between `Context::begin` and `Context::end`, or else calls share the limits of memory and work.
    pub fn scratch(&mut self) -> (*mut u8, *mut Context) {
        if let Some(compiled) = self.executor.inner().machine_code() {
            compiled.prepare_context(&mut self.context);
        }
        // A run that ended late does not end later calls.
        self.context.begin_run();
        self.context.end_run();
        (self.frame.ptr().as_ptr(), &raw mut self.context)
    }
}
