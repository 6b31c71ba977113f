//! Binding: connects a model's inputs and outputs by name with a loader, the fields of an output struct, and a
//! listener. Outputs without a receiver are not computed, and inputs that preparation removes are not loaded. The
//! remaining inputs and outputs are accessed in the caller's memory, or copied through the frame, the block of memory
//! that compiled code works on.

pub(crate) mod array_fields;
pub(crate) mod combine;
pub(crate) mod field_types;
pub(crate) mod fields;
pub(crate) mod listener;
pub(crate) mod lists;
pub(crate) mod loader;
pub(crate) mod matched;
pub(crate) mod moved_fields;
pub(crate) mod on_demand;
pub(crate) mod plain_fields;
pub(crate) mod shapes;
pub(crate) mod struct_fields;
pub(crate) mod tensor_fields;
pub(crate) mod text_fields;
pub(crate) mod typed;

use crate::binding::fields::{Input, InputField, OutputField};
use crate::binding::listener::{Listener, Set, Setter};
use crate::binding::lists::ListTransfers;
use crate::binding::loader::{Access, Fields, Loader, ReadFn};
use crate::binding::matched::{FieldLoad, MatchedField};
use crate::binding::moved_fields::{MovedField, PlainField};
use crate::binding::on_demand::{LoaderInputs, OnDemandInputs};
use crate::names::unmatched_names_error;
use crate::options::StartedOptions;
use crate::{Error, Executor, Model, Options, ValueRef};
use cembra_engine::TensorProgram;
use cembra_engine::{Executable, Field, plan, prepare, prepare_asking};
use cembra_expr::{Program, is_plain_name};
use cembra_plan::{Base, Binding, Plan, ValueLocation};
use cembra_runtime::{FramePtr, QType, Scalar};
use cembra_value::{Code, Diagnostic, Value, common_scalar, guarded_values};
use std::cell::RefCell;
use std::collections::HashSet;
use std::sync::Arc;

/// A loader whose type of rows is erased. If an executor contained the row type, the executor would have to be dropped before the rows that it read.
pub(crate) trait Source {
    fn knows(&self, name: &str) -> bool;
    /// Returns the type of the input `name`; `None` if the loader does not determine it. It is an error if nothing can determine it.
    fn qtype(&self, name: &str, declared: Option<&QType>) -> Result<Option<QType>, Error>;
    fn names(&self) -> Vec<String>;
    fn bind(&self, name: &str, qtype: &QType) -> Result<InputSource, Error>;
    /// Returns true if the loader may read some inputs on demand, when an evaluation first needs them.
    fn is_asked(&self) -> bool {
        false
    }
    /// Returns the error for the loader's first panic in a method that cannot return an error itself.
    fn failure(&self) -> Option<Error> {
        None
    }
}

/// The first panic of a loader or listener, in a method that cannot return an error, such as `knows`.
struct FirstPanic(RefCell<Option<Error>>);

impl FirstPanic {
    const fn new() -> FirstPanic {
        FirstPanic(RefCell::new(None))
    }

    /// Calls `answer` and returns its result; `None` if it panicked. `what` names the caller in the error.
    fn ask<A>(&self, what: impl FnOnce() -> String, answer: impl FnOnce() -> A) -> Option<A> {
        let answered = guarded_values(what, || Ok(answer()));
        answered.map_err(|error| _ = self.0.borrow_mut().get_or_insert(error)).ok()
    }

    /// Returns the error of the first panic.
    fn first(&self) -> Option<Error> {
        self.0.borrow().clone()
    }
}

/// A wrapper of a listener that records the listener's first panic in a method that cannot return an error, such as
/// `knows`.
struct GuardedListener<'l, S> {
    listener: &'l dyn Listener<S>,
    failed: FirstPanic,
}

impl<S> Listener<S> for GuardedListener<'_, S> {
    fn knows(&self, name: &str) -> bool {
        self.failed.ask(|| format!("output `{name}`: its listener"), || self.listener.knows(name)).unwrap_or(false)
    }

    fn qtype(&self, name: &str, given: &QType) -> QType {
        let asked = || self.listener.qtype(name, given);
        self.failed.ask(|| format!("output `{name}`: its listener"), asked).unwrap_or_else(|| given.clone())
    }

    fn names(&self) -> Vec<String> {
        self.failed.ask(|| "the listener".to_owned(), || self.listener.names()).unwrap_or_default()
    }

    fn bind(&self, name: &str, qtype: &QType) -> Result<Setter<S>, Error> {
        self.listener.bind(name, qtype)
    }
}

/// The source from which one input is read: a field of the row, or an accessor of the loader.
pub(crate) enum InputSource {
    /// The input is a field of the row. The payload is the field's entry in the field table.
    Field(InputField),
    /// An accessor returns the input; it is called before each evaluation.
    Read(Box<dyn ReadRow>),
    /// An accessor returns the input; it is called when an evaluation first needs the value.
    OnDemand(Box<dyn ReadRow>),
}

/// An accessor of a loader, with the type of its rows erased.
pub(crate) trait ReadRow: Send + Sync {
    /// Reads the accessor's input from `row`.
    ///
    /// # Safety
    /// FIELD-TABLE: `row` points to a row of the accessor's type that lives, unchanged, for `'r`.
    unsafe fn read<'r>(&self, row: *const u8) -> Result<ValueRef<'r>, Error>;
}

impl<R> ReadRow for ReadFn<R> {
    // SAFETY: FIELD-TABLE, as the trait says.
    unsafe fn read<'r>(&self, row: *const u8) -> Result<ValueRef<'r>, Error> {
        // SAFETY: FIELD-TABLE, promised by the caller.
        let value = self(unsafe { &*row.cast::<R>() })?;
        // SAFETY: FIELD-TABLE: the function is one for any lifetime of the row, and the caller promises that the row lives for this one.
        Ok(unsafe { std::mem::transmute::<ValueRef<'_>, ValueRef<'r>>(value) })
    }
}

impl dyn ReadRow {
    /// Erases the type of the accessor's rows, which may have lifetimes.
    fn of<R>(read: ReadFn<R>) -> Box<dyn ReadRow> {
        let read: Box<dyn ReadRow + '_> = Box::new(read);
        // SAFETY: FIELD-TABLE: the function is `'static`: it holds nothing of a row. The rows that it reads are those of its executor's type.
        unsafe { std::mem::transmute::<Box<dyn ReadRow + '_>, Box<dyn ReadRow>>(read) }
    }
}

impl<T: Input> Source for Fields<T> {
    fn knows(&self, name: &str) -> bool {
        Loader::knows(self, name)
    }

    fn qtype(&self, name: &str, declared: Option<&QType>) -> Result<Option<QType>, Error> {
        // A struct may have more fields than the declared type, in any order.
        if let Some(declared) = declared.filter(|declared| matches!(declared, QType::Tuple(_)))
            && let Ok(field) = Fields::<T>::field(name)
            && field.shape.has_structs()
        {
            return MatchedField::of(name, field, declared).map(|_| Some(declared.clone()));
        }
        let qtype = Loader::qtype(self, name, declared);
        // An input with a declared type may still turn out to be unneeded.
        if qtype.is_none() && declared.is_none() {
            Fields::<T>::field(name)?;
        }
        Ok(qtype)
    }

    fn names(&self) -> Vec<String> {
        Loader::names(self)
    }

    fn bind(&self, name: &str, _: &QType) -> Result<InputSource, Error> {
        Fields::<T>::field(name).map(InputSource::Field)
    }
}

/// A wrapper of a loader as a [`Source`]. It records the loader's first panic in a method that cannot return an error,
/// such as `knows`.
pub(crate) struct GuardedLoader<'l, R> {
    loader: &'l dyn Loader<R>,
    failed: FirstPanic,
}

impl<'l, R> GuardedLoader<'l, R> {
    pub(crate) const fn new(loader: &'l dyn Loader<R>) -> Self {
        GuardedLoader { loader, failed: FirstPanic::new() }
    }
}

impl<R> Source for GuardedLoader<'_, R> {
    fn knows(&self, name: &str) -> bool {
        self.failed.ask(|| format!("input `{name}`: its loader"), || self.loader.knows(name)).unwrap_or(false)
    }

    fn qtype(&self, name: &str, declared: Option<&QType>) -> Result<Option<QType>, Error> {
        guarded_values(|| format!("input `{name}`: its loader"), || Ok(self.loader.qtype(name, declared)))
    }

    fn names(&self) -> Vec<String> {
        self.failed.ask(|| "the loader".to_owned(), || self.loader.names()).unwrap_or_default()
    }

    fn is_asked(&self) -> bool {
        true
    }

    fn failure(&self) -> Option<Error> {
        self.failed.first()
    }

    fn bind(&self, name: &str, qtype: &QType) -> Result<InputSource, Error> {
        let bound = guarded_values(|| format!("input `{name}`: its loader"), || self.loader.bind(name, qtype))?;
        Ok(match bound.0 {
            Access::Field(field) => InputSource::Field(field),
            Access::Read(read) => InputSource::Read(<dyn ReadRow>::of(read)),
            Access::OnDemand(read) => InputSource::OnDemand(<dyn ReadRow>::of(read)),
        })
    }
}

/// A step that reads one input with its accessor. The value is written to a slot of the frame, or to the memory of inputs that are read on demand.
pub(crate) struct Load {
    read: Box<dyn ReadRow>,
    pub(crate) name: Arc<str>,
    pub(crate) qtype: QType,
    pub(crate) slot: u32,
}

impl Load {
    /// Reads the input's value from a row. A panic of the accessor becomes an error.
    ///
    /// # Safety
    /// FIELD-TABLE (`docs/safety.md`): `row` must be as [`ReadRow::read`] requires.
    #[inline]
    pub(crate) unsafe fn read<'r>(&self, row: *const u8) -> Result<ValueRef<'r>, Error> {
        // SAFETY: FIELD-TABLE, promised by the caller.
        guarded_values(|| format!("input `{}`: its loader", self.name), || unsafe { self.read.read(row) })
    }

    /// Reads the input's value from a row and writes it to its slot. A value that owns its memory moves to `kept`, because the slot may refer to its
    /// text.
    ///
    /// # Errors
    /// If the accessor fails, or its value does not fit the input's type.
    ///
    /// # Safety
    /// FIELD-TABLE (`docs/safety.md`): `row` must be as [`ReadRow::read`] requires. FRAME-SLOT: `frame` must have the input's slot. STRING-VIEW:
    /// `kept` must not be emptied before the slot is read for the last time.
    #[inline(always)]
    pub(crate) unsafe fn write(
        &self,
        row: *const u8,
        frame: FramePtr,
        kept: &mut Vec<ValueRef<'static>>,
    ) -> Result<(), Error> {
        // SAFETY: FIELD-TABLE, promised by the caller.
        let value = unsafe { self.read(row)? };
        let borrowed;
        let value = if value.is_owned() {
            &*kept.push_mut(value.into_owned())
        } else {
            borrowed = value;
            &borrowed
        };
        // SAFETY: FRAME-SLOT: the slot is this input's. STRING-VIEW: what is borrowed is the row's; what is kept stays until the next
        // call writes every slot anew, and moving it does not move its bytes.
        if !unsafe { value.write_to(&self.qtype, frame, self.slot) } {
            return Err(self.misfit(value));
        }
        Ok(())
    }

    /// Returns the error for an accessor that returned `found`, a value of another type than the input's.
    #[cold]
    pub(crate) fn misfit(&self, found: &ValueRef<'_>) -> Error {
        let (name, qtype) = (&self.name, &self.qtype);
        Error::values(match (found.scalar(), found) {
            (Some(found), _) => format!("input `{name}` is {qtype}, found {found}"),
            (None, ValueRef::Composite(found)) => format!("input `{name}` is {qtype}, found {}", found.qtype()),
            (None, _) => format!("input `{name}` is {qtype}, but it is missing"),
        })
    }
}

/// An output that a listener takes from a slot of the frame.
pub(crate) struct ListenerOutput<S> {
    set: Set<S>,
    name: Arc<str>,
    pub(crate) qtype: QType,
    pub(crate) slot: u32,
}

impl<S> ListenerOutput<S> {
    /// Binds a listener to the output of this name and type, whose value is at `slot`.
    fn bind(listener: &dyn Listener<S>, name: &Arc<str>, qtype: QType, slot: u32) -> Result<Self, Error> {
        let what = || format!("output `{name}`: its listener");
        let set = guarded_values(what, || listener.bind(name, &qtype))?.0;
        Ok(ListenerOutput { set, name: name.clone(), qtype, slot })
    }

    /// Passes the output's value to `sink`. A panic of the setter becomes an error.
    pub(crate) fn tell(&self, sink: &mut S, value: ValueRef<'_>) -> Result<(), Error> {
        guarded_values(|| format!("output `{}`: its listener", self.name), || (self.set)(sink, value))
    }
}

/// The copies from a row to the frame before an evaluation, and from the frame to an output struct or a listener after
/// the evaluation. Inputs and outputs are copied if machine code cannot access them in the caller's structs.
pub(crate) struct Transfers<S> {
    /// The inputs that are fields of the row.
    pub(crate) fields: Box<[FieldLoad]>,
    /// The inputs that accessors read before the model is evaluated.
    pub(crate) reads: Box<[Load]>,
    /// The inputs that accessors read when an evaluation needs them; `None` if there are none.
    pub(crate) on_demand: Option<Box<OnDemandInputs>>,
    /// The output fields that may reject a value, or that have a default for a missing value. For a model with arrays, these are all output fields,
    /// in the order of the outputs.
    pub(crate) checked: Box<[MovedField]>,
    /// The output fields that are copied from slots and accept every value.
    pub(crate) outputs: Box<[PlainField]>,
    /// The output fields that get their defaults, because the model has no such outputs.
    pub(crate) absent: Box<[OutputField]>,
    pub(crate) tells: Box<[ListenerOutput<S>]>,
    /// For a model with arrays or tensors, the sources of all inputs; `None` for other models. A model with arrays or tensors does not use the frame,
    /// so its outputs have no slots.
    pub(crate) arrays: Option<Box<[WholeInput]>>,
    /// For a model with arrays, the copies for its plan for short lists (a `LoopPlan`); `None` if the plan cannot read
    /// these rows or write these outputs.
    pub(crate) lists: Option<Box<ListTransfers>>,
    /// True if a struct in the row has fields that the model does not read, or has its fields in another order than the model. Then many rows cannot
    /// be read as columns.
    pub(crate) has_others: bool,
    /// True if user code, which may panic, converts some fields.
    pub(crate) may_panic: bool,
}

/// The source of an input, for a model with arrays or tensors.
pub(crate) enum WholeInput {
    /// The input is a field of the row.
    Field(MatchedField),
    /// An accessor reads the input. The second field replaces a missing value: the empty list or dictionary, if it is the input's default.
    Read(Load, Option<Value>),
}

impl WholeInput {
    /// Returns the input's value in the row at `row`.
    ///
    /// # Errors
    /// If the accessor fails or returns a value of another type, or if a list in an `Option` is `None`.
    ///
    /// # Safety
    /// FIELD-TABLE (`docs/safety.md`): `row` must point to a row of the source's type, borrowed for the call.
    pub(crate) unsafe fn value(&self, row: *const u8) -> Result<Value, Error> {
        match self {
            // SAFETY: FIELD-TABLE, promised by the caller.
            WholeInput::Field(field) => unsafe { field.value(row) },
            WholeInput::Read(load, empty) => {
                // SAFETY: FIELD-TABLE, promised by the caller.
                let value = unsafe { load.read(row)? };
                let empty = empty.as_ref().filter(|_| matches!(value, ValueRef::Missing)).cloned();
                empty.or_else(|| value.to_value(&load.qtype)).ok_or_else(|| load.misfit(&value))
            }
        }
    }
}

impl<S> Transfers<S> {
    pub(crate) fn is_empty(&self) -> bool {
        self.memory_bytes() == 0 && self.arrays.is_none()
    }

    /// Returns true if some inputs are read by accessors, not from fields.
    pub(crate) fn has_reads(&self) -> bool {
        !self.reads.is_empty() || self.on_demand.is_some()
    }

    /// Returns true if a call on many rows can write all output fields as columns.
    pub(crate) fn are_columns(&self) -> bool {
        self.absent.is_empty() && self.checked.is_empty() && !self.has_others
    }

    /// The bytes of heap memory that this struct owns, without the values that closures of accessors and setters capture.
    pub(crate) fn memory_bytes(&self) -> usize {
        let arrays = self.arrays.as_ref().map_or(0, |fields| size_of_val(&**fields));
        let lists = self.lists.as_ref().map_or(0, |lists| size_of_val(&**lists) + lists.memory_bytes());
        let on_demand = self.on_demand.as_ref().map_or(0, |inputs| size_of_val(&**inputs) + inputs.memory_bytes());
        let inputs = size_of_val(&*self.fields) + size_of_val(&*self.reads) + on_demand;
        let outputs = size_of_val(&*self.checked) + size_of_val(&*self.outputs) + size_of_val(&*self.absent);
        inputs + outputs + size_of_val(&*self.tells) + arrays + lists
    }
}

/// Compiles a model and connects it with a source of inputs, output fields and a listener. A panic of the loader or the listener becomes an error.
pub(crate) fn bind<S>(
    model: &Model,
    source: &dyn Source,
    fields: Vec<OutputField>,
    listener: Option<&dyn Listener<S>>,
    options: &Options,
) -> Result<(Executor, Transfers<S>), Error> {
    let heard = listener.map(|listener| GuardedListener { listener, failed: FirstPanic::new() });
    let listener = heard.as_ref().map(|heard| heard as &dyn Listener<S>);
    let bound = model.compiled(options, || bind_to(model, source, fields, listener, options));
    // After a panic, a default replaces the result of the loader or listener, which may cause another error. So the
    // panic is reported first.
    match source.failure().or_else(|| heard.and_then(|heard| heard.failed.first())) {
        Some(failure) => Err(failure),
        None => bound,
    }
}

fn bind_to<S>(
    model: &Model,
    source: &dyn Source,
    fields: Vec<OutputField>,
    listener: Option<&dyn Listener<S>>,
    options: &Options,
) -> Result<(Executor, Transfers<S>), Error> {
    let options = &mut model.started(options);
    let (fields, absent) = given_fields(model, fields, options)?;
    options.binding.outputs = Some(output_names(model, &fields, listener, options)?);
    let mut program = model.selected(options)?;
    add_input_types(&program, source, options)?;
    let wanted = |at: usize, name: &str, given: &QType| match (fields.get(at), listener) {
        (Some(field), _) => field.wanted(given),
        (None, Some(listener)) => listener.qtype(name, given),
        (None, None) => given.clone(),
    };
    if TensorProgram::is_of(&program, options) {
        let executable = || Executable::of(program, options);
        return bind_whole(executable, source, fields, absent, listener);
    }
    if options.binding.cast_outputs || options.binding.require_present {
        program = fit_outputs(&program, &wanted, options)?;
    }
    let mut loaded = None;
    let placed = match source.is_asked() {
        true => prepare_asking(&program, options, &mut |model| {
            if !model.has_arrays() {
                loaded = Some(LoaderInputs::bind(model, source, &options.prepare.budget)?);
            }
            Ok(())
        })?,
        false => prepare(&program, options, &mut |_, _| {})?.placed()?,
    };
    if placed.model.has_arrays() {
        let executable = || Executable::of_arrays(program, placed, options);
        return bind_whole(executable, source, fields, absent, listener);
    }
    let plan = plan(&placed, &program, options)?;
    let found: Vec<(&str, &QType)> =
        plan.outputs().iter().map(|output| (&*output.name, &plan.value(output.value).qtype)).collect();
    check_outputs(&found, &wanted)?;
    let inputs = loaded.as_ref().map(|loaded| loaded.inputs.clone());
    let BoundInputs { places, fields: field_loads, reads, on_demand, has_others, mut may_panic } =
        bind_inputs(&plan, source, loaded, &placed.model.leaves)?;
    let mut binding = Binding { inputs: places, outputs: plan.frame_binding().outputs };
    let (mut checked, mut outputs, mut tells) = (Vec::new(), Vec::new(), Vec::new());
    let mut fields = fields.into_iter();
    for (output, place) in plan.outputs().iter().zip(&mut binding.outputs) {
        let qtype = plan.value(output.value).qtype.clone();
        match (fields.next(), listener) {
            (Some(field), _) if field.in_place && field.qtype == qtype => {
                *place = ValueLocation { base: Base::Output, offset: field.offset as u32 };
            }
            (Some(field), _) => {
                may_panic |= field.may_panic;
                match PlainField::of(&field, &qtype, place.offset) {
                    Some(plain) => outputs.push(plain),
                    None => checked.push(MovedField::new(field, &output.name, &qtype, place.offset)),
                }
            }
            (None, None) => {}
            (None, Some(listener)) => {
                tells.push(ListenerOutput::bind(listener, &output.name, qtype, place.offset)?);
            }
        }
    }
    let executable = Executable::new(program, plan, Some(binding), options)?;
    let executor = Executor::from(match inputs {
        Some(inputs) => executable.with_inputs(&inputs),
        None => executable,
    });
    checked.sort_by_key(|moved| moved.field.expected.is_empty());
    let moves = Transfers {
        fields: field_loads.into(),
        reads: reads.into(),
        on_demand: on_demand.map(Box::new),
        checked: checked.into(),
        outputs: outputs.into(),
        absent: absent.into(),
        tells: tells.into(),
        arrays: None,
        lists: None,
        has_others,
        may_panic,
    };
    Ok((executor, moves))
}

/// Compiles a model with arrays or tensors, whose inputs and outputs are passed as whole values.
fn bind_whole<S>(
    executable: impl FnOnce() -> Result<Executable, Error>,
    source: &dyn Source,
    fields: Vec<OutputField>,
    absent: Vec<OutputField>,
    listener: Option<&dyn Listener<S>>,
) -> Result<(Executor, Transfers<S>), Error> {
    let executor = Executor::from(executable()?);
    let (taken, heard) = executor.outputs().split_at(fields.len().min(executor.outputs().len()));
    let found: Vec<(&str, &QType)> = taken.iter().map(|output| (&*output.name, &output.qtype)).collect();
    check_outputs(&found, &|at, _, found| fields[at].wanted(found))?;
    let mut inputs = Vec::with_capacity(executor.inputs().len());
    for input in executor.inputs() {
        if !source.knows(&input.name) {
            return Err(no_data(&[(&*input.name, None)], source));
        }
        let mut bound = bind_input(source, &input.name, &input.qtype, 0)?;
        if let WholeInput::Read(_, empty) = &mut bound {
            *empty = input.empty_default();
        }
        inputs.push(bound);
    }
    let mut tells = Vec::with_capacity(heard.len());
    for (output, listener) in heard.iter().zip(std::iter::repeat(listener)) {
        let Some(listener) = listener else { break };
        tells.push(ListenerOutput::bind(listener, &output.name, output.qtype.clone(), 0)?);
    }
    let is_input = |input: &WholeInput| matches!(input, WholeInput::Field(field) if field.may_panic());
    let lists = executor.inner().loops().filter(|_| heard.is_empty()).and_then(|plan| {
        let names: Vec<Arc<str>> = taken.iter().map(|output| output.name.clone()).collect();
        ListTransfers::of(plan, &inputs, &fields, &names)
    });
    let may_panic = inputs.iter().any(is_input) || fields.iter().any(|field| field.may_panic);
    let moved = |(field, output): (OutputField, &Field)| MovedField::new(field, &output.name, &output.qtype, 0);
    let moves = Transfers {
        fields: Box::default(),
        reads: Box::default(),
        on_demand: None,
        checked: fields.into_iter().zip(executor.outputs()).map(moved).collect(),
        outputs: Box::default(),
        absent: absent.into(),
        tells: tells.into(),
        arrays: Some(inputs.into()),
        lists: lists.map(Box::new),
        has_others: false,
        may_panic,
    };
    Ok((executor, moves))
}

/// Binds the input `name` to `source`. `slot` is the offset of the input's slot in the frame.
fn bind_input(source: &dyn Source, name: &Arc<str>, qtype: &QType, slot: u32) -> Result<WholeInput, Error> {
    place_input(source.bind(name, qtype)?, name, qtype, slot)
}

/// Connects the input `name` with `bound`, the field or accessor that its source returned. `slot` is the offset of the
/// input's slot in the frame. Fails if the type of a field does not match `qtype`.
fn place_input(bound: InputSource, name: &Arc<str>, qtype: &QType, slot: u32) -> Result<WholeInput, Error> {
    Ok(match bound {
        InputSource::Field(field) => WholeInput::Field(MatchedField::of(name, field, qtype)?),
        InputSource::Read(read) | InputSource::OnDemand(read) => {
            WholeInput::Read(Load { read, name: name.clone(), qtype: qtype.clone(), slot }, None)
        }
    })
}

/// Splits the fields of an output struct. The first list has the fields that receive an output: those with an output in
/// the model, and those without a default, for which the model must have one. The second list has the fields that get
/// their defaults.
fn given_fields(
    model: &Model,
    fields: Vec<OutputField>,
    options: &StartedOptions,
) -> Result<(Vec<OutputField>, Vec<OutputField>), Error> {
    if fields.iter().all(|field| field.default.is_none()) {
        return Ok((fields, Vec::new()));
    }
    let whole = model.whole(options)?;
    let known: HashSet<&str> = whole.outputs.iter().map(|output| &*output.name).collect();
    Ok(fields.into_iter().partition(|field| field.default.is_none() || known.contains(field.name)))
}

/// Returns the names of the outputs to compute: first those of the fields, where a field without a name stands for the main output, then those of the
/// listener.
fn output_names<S>(
    model: &Model,
    fields: &[OutputField],
    listener: Option<&dyn Listener<S>>,
    options: &StartedOptions,
) -> Result<Vec<String>, Error> {
    let main = model.program().outputs.first().map_or("", |output| &output.name);
    let taken: Vec<String> =
        fields.iter().map(|field| if field.name.is_empty() { main } else { field.name }.to_owned()).collect();
    let Some(listener) = listener else { return Ok(taken) };
    let whole = model.whole(options)?;
    let known: HashSet<&str> = taken.iter().map(String::as_str).collect();
    let others = whole.outputs.iter().map(|output| &*output.name).filter(|name| !known.contains(name));
    let (heard, unheard): (Vec<&str>, Vec<&str>) = others.partition(|name| listener.knows(name));
    let names = taken.iter().map(String::as_str).chain(heard).map(str::to_owned).collect();
    if unheard.is_empty() || options.binding.ignore_unheard {
        return Ok(names);
    }
    let problem = unmatched_names_error("no listener takes the output", &unheard, &listener.names());
    Err(problem.hint("set `ignore_not_listened_named_outputs` to leave these outputs out").into())
}

/// Adds the types of inputs that the loader determines to the options. Fails if the loader does not know an input that
/// is needed and has neither a default nor a declared type.
fn add_input_types(program: &Program, source: &dyn Source, options: &mut StartedOptions) -> Result<(), Error> {
    let mut strange = Vec::new();
    let inputs = program.inputs.iter().zip(program.needed_inputs());
    for input in inputs.filter(|(_, needed)| *needed).map(|(input, _)| input) {
        let declared = input.qtype.as_ref().or(options.input_types.get(&*input.name));
        if source.knows(&input.name) {
            if let Some(qtype) = source.qtype(&input.name, declared)? {
                options.input_types.insert(input.name.to_string(), qtype);
            }
        } else if input.default.is_some()
            || input.is_empty_by_default
                && declared.is_some_and(|of| matches!(of, QType::Array(..)) || of.as_map().is_some())
        {
            options.prepare.absent.insert(input.name.to_string());
        } else if declared.is_none() {
            strange.push((&*input.name, input.span));
        }
    }
    if strange.is_empty() { Ok(()) } else { Err(no_data(&strange, source)) }
}

fn no_data(strange: &[(&str, Option<cembra_value::Span>)], source: &dyn Source) -> Error {
    let names: Vec<&str> = strange.iter().map(|(name, _)| *name).collect();
    let problem = unmatched_names_error("there is no data for input", &names, &source.names());
    problem.at(strange.first().and_then(|(_, span)| *span)).into()
}

/// Casts the program's outputs to the wanted types, as far as the options allow casts. `check_outputs` reports the
/// remaining differences.
fn fit_outputs(
    program: &Program,
    wanted: &dyn Fn(usize, &str, &QType) -> QType,
    options: &StartedOptions,
) -> Result<Arc<Program>, Error> {
    let prepared = prepare(program, options, &mut |_, _| {})?;
    let model = prepared.model();
    let mut fitted = Program::clone(program);
    for (at, (output, (_, node))) in fitted.outputs.iter_mut().zip(&model.outputs).enumerate() {
        let found = model.graph.qtype(*node);
        let wanted = wanted(at, &output.name, found);
        let span = fitted.graph.span(output.node);
        if options.binding.require_present && found.is_optional() && !wanted.is_optional() {
            output.node = fitted.graph.operator("core.get_optional_value", &[output.node], span);
        }
        let differs = found.scalar() != wanted.scalar() || (!found.is_optional() && wanted.is_optional());
        if options.binding.cast_outputs && differs {
            let target = fitted.graph.literal(Value::Type(wanted), None);
            let implicit = fitted.graph.literal(Value::from(false), None);
            output.node = fitted.graph.operator("core.cast", &[output.node, target, implicit], span);
        }
    }
    Ok(Arc::new(fitted))
}

fn check_outputs(outputs: &[(&str, &QType)], wanted: &dyn Fn(usize, &str, &QType) -> QType) -> Result<(), Error> {
    for (at, (name, found)) in outputs.iter().enumerate() {
        let wanted = wanted(at, name, found);
        if **found != wanted {
            let message = format!("output `{name}` is {found}, but the result's type is {wanted}");
            let diagnostic = Diagnostic::new(Code::Binding, message);
            let is = |qtype: &QType, scalar| qtype.scalar() == Some(scalar);
            if is(found, Scalar::Unit) && is(&wanted, Scalar::Boolean) {
                return Err(diagnostic
                    .hint(format!(
                        "declare `output {name}: bool = ..`, or use a `cembra::Mask`: a comparison gives a mask"
                    ))
                    .into());
            }
            return Err(match (found.is_optional(), wanted.is_optional()) {
                _ if found.scalar() != wanted.scalar() => diagnostic.hint(declared_output(name, found, &wanted)),
                (true, false) => diagnostic
                    .hint("use an `Optional<..>`, give the model a default with `??`, or set `require_present`"),
                (false, true) => diagnostic.hint("use the type without `Optional`, or set `cast_outputs`"),
                _ => diagnostic.hint(declared_output(name, found, &wanted)),
            }
            .into());
        }
    }
    Ok(())
}

/// Returns the hint to declare an output of type `found` as `wanted`.
fn declared_output(name: &str, found: &QType, wanted: &QType) -> String {
    let name = if is_plain_name(name) { name.to_owned() } else { format!("{name:?}") };
    let (is, of) = (found.scalar(), wanted.scalar());
    let is_number = |scalar: Option<Scalar>| scalar.is_some_and(Scalar::is_numeric);
    match is.zip(of).map(|(is, of)| common_scalar(is, of)) {
        _ if is == Some(Scalar::Text) && is_number(of) => format!(
            "declare `output {name}: {wanted} = ..`; use `strings.parse_float64(..)` or `strings.parse_int64(..)` to read a number from a text"
        ),
        Some(common) if common == of => format!("declare `output {name}: {wanted} = ..`, or set `cast_outputs`"),
        _ if is_number(is) && is_number(of) => {
            format!("declare `output {name}: {wanted} = cast(.., {wanted})`, or set `cast_outputs`")
        }
        _ => {
            format!("declare `output {name}: {wanted} = ..`, whose error shows the expression; or use another type")
        }
    }
}

/// The locations of a plan's inputs, in structs or in the frame, and the copies to make for inputs in the frame.
#[derive(Default)]
struct BoundInputs {
    places: Vec<ValueLocation>,
    fields: Vec<FieldLoad>,
    reads: Vec<Load>,
    on_demand: Option<OnDemandInputs>,
    /// True if a struct has fields that the model does not read, or in another order: see [`Transfers::has_others`].
    has_others: bool,
    /// True if converting the fields calls user code, which may panic: see [`Transfers::may_panic`].
    may_panic: bool,
}

/// Binds the inputs of a plan to their source. `loaded` has the inputs that were bound before, for a plan that reads
/// inputs on demand. `leaves` has the name and type of each input of the plan's model.
fn bind_inputs(
    plan: &Plan,
    source: &dyn Source,
    mut loaded: Option<LoaderInputs>,
    leaves: &[(Arc<str>, QType)],
) -> Result<BoundInputs, Error> {
    let strange = plan.inputs().iter().filter(|input| loaded.is_none() && !source.knows(&input.name));
    let strange: Vec<_> = strange.map(|input| (&*input.name, None)).collect();
    if !strange.is_empty() {
        return Err(no_data(&strange, source));
    }
    let (mut bound, mut asked) = (BoundInputs::default(), Vec::new());
    for input in plan.inputs() {
        let value = plan.value(input.value);
        let source = match &mut loaded {
            None => source.bind(&input.name, &value.qtype)?,
            Some(loaded) => match loaded.take(input.leaf) {
                Some(source) => source,
                None => {
                    asked.push((input, value.slot));
                    bound.places.push(plan.place(input.value));
                    continue;
                }
            },
        };
        match place_input(source, &input.name, &value.qtype, value.slot)? {
            WholeInput::Field(matched) => {
                if matched.field.in_place {
                    bound.places.push(ValueLocation { base: Base::Input, offset: matched.field.offset as u32 });
                    continue;
                }
                bound.may_panic |= matched.may_panic();
                bound.has_others |= matched.field.qtype != matched.qtype;
                matched.add_loads(0, value.slot, &mut bound.fields);
            }
            WholeInput::Read(load, _) => bound.reads.push(load),
        }
        bound.places.push(plan.place(input.value));
    }
    bound.on_demand = loaded.and_then(|loaded| loaded.into_on_demand(leaves, &asked));
    Ok(bound)
}
