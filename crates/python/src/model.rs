//! The Python class `Model`: a model's text, compiled for the types of the arguments of its calls. One object evaluates one row, many rows, arrays
//! and tensors; the arguments decide which.

use crate::bounds::Bounds;
use crate::columns::{self, BatchTerms, Column, Out, Target, is_column, is_column_of};
use crate::errors;
use crate::interrupt::{self, Token};
use crate::lock::entered;
use crate::outputs::{OutputForm, RowsOutputs};
use crate::overlap;
use crate::packages::{Imports, frames, is_pandas_column};
use crate::phases::{Phase, Phases};
use crate::settings::{PickledSettings, Settings, limits_of, on_error_of, spelled_limits};
use crate::signature::{ArgumentType, Compiled, Memory, is_one_value};
use crate::tables::Table;
use crate::tensors;
use crate::terms::{CallTerms, Terms};
use crate::user_operators::{self, OverColumns};
use crate::values::{self, Arrays, ConversionOptions};
use cembra::errors::Renderer;
use cembra::explain::Stage;
use cembra::program::Node;
use cembra::program::NodeId;
use cembra::{Cancellation, Field, Limits, OnError, Options, QType, RunOptions, Value};
use numpy::PyUntypedArray;
use pyo3::exceptions::{PyException, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyMapping, PyString, PyTuple};
use smallvec::{SmallVec, smallvec};
use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

/// The most signatures, which are lists of input types, that a model is compiled for.
const MOST_SIGNATURES: usize = 16;

/// Compiles the text of a model, for `cembra.compile`, which documents the arguments.
#[pyfunction]
#[pyo3(signature = (text, *, types=None, backend=None, name=None, limits=None, files=None, is_quiet=false))]
#[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
pub(crate) fn _compile(
    py: Python<'_>,
    text: String,
    types: Option<BTreeMap<String, String>>,
    backend: Option<String>,
    name: Option<String>,
    limits: Option<BTreeMap<String, Bound<'_, PyAny>>>,
    files: Option<BTreeMap<String, String>>,
    is_quiet: bool,
) -> PyResult<Model> {
    let (types, limits, files) = (types.unwrap_or_default(), spelled_limits(limits)?, files.unwrap_or_default());
    Model::of(py, Settings { text, types, backend, name, limits, files }, is_quiet)
}

/// Compiles the text of a file, for `cembra.load`, which documents the arguments.
#[pyfunction]
#[pyo3(signature = (path, *, types=None, backend=None, limits=None))]
pub(crate) fn _load(
    py: Python<'_>,
    path: PathBuf,
    types: Option<BTreeMap<String, String>>,
    backend: Option<String>,
    limits: Option<BTreeMap<String, Bound<'_, PyAny>>>,
) -> PyResult<Model> {
    let read = Settings::of_file(py, &path)?;
    let (types, limits) = (types.unwrap_or_default(), spelled_limits(limits)?);
    Model::of(py, Settings { types, backend, limits, ..read }, false)
}

/// A compiled model. Call it with values for its inputs, by name or in the order of `inputs`.
///
/// Numbers, strings and `None` are one row: the result is the output's value, or a named tuple of several outputs. NumPy or Arrow arrays for inputs
/// that are scalars are many rows: the outputs are arrays with an element for each row.
#[pyclass(frozen, module = "cembra")]
pub(crate) struct Model {
    settings: Settings,
    model: cembra::Model,
    options: Options,
    limits: Limits,
    inputs: Vec<ModelInput>,
    /// The operators over columns that were registered when the model was parsed.
    over_columns: Arc<[Arc<OverColumns>]>,
    /// True if each input has a type, declared by the text or by the caller, so that the model can be compiled before a call.
    is_typed: bool,
    /// True if no warnings are raised, because they were raised before or the user did not write the text.
    is_quiet: bool,
    /// The signatures (lists of input types) that the model is compiled for so far, without gaps from the start. Further signatures are refused once
    /// the array is full.
    compiled: [OnceLock<Box<Compiled>>; MOST_SIGNATURES],
}

/// An input that the model's text names: its name, and its type if it is declared.
struct ModelInput {
    name: Py<PyString>,
    /// The type that the text or the caller declares; `None` if neither does.
    qtype: Option<QType>,
}

/// The arguments of a call: one per input of the model, `None` for an input without an argument. Up to six arguments are stored
/// without an allocation.
pub(crate) type Arguments<'py> = SmallVec<[Option<Bound<'py, PyAny>>; 6]>;

/// The arguments of a call, and the Arrow arrays that the call imports.
#[derive(Clone, Copy)]
pub(crate) struct CallInput<'c, 'py> {
    pub(crate) arguments: &'c Arguments<'py>,
    pub(crate) imports: &'c Imports<'py>,
}

/// The terms of an evaluation of many rows: its options, and the kind of Python object that the outputs become.
struct RowsTerms<'c, 'py> {
    options: RunOptions,
    /// True if rows that fail are left out of the outputs.
    skip: bool,
    /// The caller's arrays for outputs. They must not overlap arguments.
    out: &'c [Out<'py>],
    /// The table that all arguments are columns of; `None` if they were given one by one.
    table: Option<&'c Table<'py>>,
}

impl RowsTerms<'_, '_> {
    /// The terms of a plain call: without a time limit or token. The first row that fails ends it, and outputs are new arrays.
    fn call() -> Self {
        RowsTerms { options: RunOptions::new(), skip: false, out: &[], table: None }
    }
}

impl Model {
    /// Parses the text in `settings` and makes the Python object `Model`. If all inputs have types, the model is compiled too.
    pub(crate) fn of(py: Python<'_>, settings: Settings, is_quiet: bool) -> PyResult<Model> {
        entered(py, || {
            let (registry, over_columns) = user_operators::known_now();
            Model::of_parsed(py, settings.parsed(py, registry)?, over_columns, settings, is_quiet)
        })
    }

    /// Makes the Python object `Model` for a parsed model. If all inputs have types, the model is compiled now.
    pub(crate) fn of_parsed(
        py: Python<'_>,
        model: cembra::Model,
        over_columns: Arc<[Arc<OverColumns>]>,
        settings: Settings,
        is_quiet: bool,
    ) -> PyResult<Model> {
        let mut options = settings.options()?;
        let mut given = BTreeMap::new();
        for (input, qtype) in settings.input_types()? {
            if !names(&model).any(|name| name == input) {
                return Err(PyTypeError::new_err(unknown(input, &model)));
            }
            options = options.input_type(input, qtype.clone());
            given.insert(input.to_owned(), qtype);
        }
        let inputs = model.program().inputs.iter().map(|input| {
            let qtype = input.qtype.clone().or_else(|| given.remove(&*input.name));
            ModelInput { name: PyString::intern(py, &input.name).unbind(), qtype }
        });
        let inputs: Vec<ModelInput> = inputs.collect();
        let is_typed = inputs.iter().all(|input| input.qtype.is_some());
        let limits = limits_of(&settings.limits)?;
        let compiled = Default::default();
        let made = Model { settings, model, options, limits, inputs, over_columns, is_typed, is_quiet, compiled };
        if is_typed {
            // A call would add no types, so errors are raised now.
            made.compile_for(py, made.inputs.iter().map(|input| input.qtype.clone()).collect())?;
        }
        Ok(made)
    }

    /// Returns true if this Python object was made for the library's model `model`.
    pub(crate) fn is_of(&self, model: &cembra::Model) -> bool {
        match (self.model.sources(), model.sources()) {
            (Some(mine), Some(other)) => Arc::ptr_eq(mine.shared(), other.shared()),
            _ => false,
        }
    }

    /// Raises the model's warnings, such as one for an unused definition, as Python warnings.
    fn warn(&self, py: Python<'_>, options: &Options) -> PyResult<()> {
        if self.is_quiet {
            return Ok(());
        }
        let warnings = self.model.warnings(options);
        if warnings.is_empty() {
            return Ok(());
        }
        let category = py.import("cembra.warning")?.getattr("ModelWarning")?;
        for warning in warnings.as_slice() {
            let text = Renderer::plain().warnings(std::slice::from_ref(warning), &[], &self.model);
            let text = std::ffi::CString::new(text.replace('\0', " "))?;
            PyErr::warn(py, &category, &text, 2)?;
        }
        Ok(())
    }

    /// The exception for an error of the model. If an operator in Python raised an exception, that becomes the cause; one that asks to stop, such as
    /// `KeyboardInterrupt`, is returned itself.
    #[cold]
    fn raised(&self, error: cembra::Error) -> PyErr {
        let is_of_operator = error.fault_kind() == Some(cembra::FaultKind::Invalid);
        let cause = user_operators::raised().filter(|_| is_of_operator);
        let is_end = |cause: &PyErr| Python::attach(|py| !cause.is_instance_of::<PyException>(py));
        if let Some(cause) = cause.as_ref().filter(|cause| is_end(cause)) {
            return Python::attach(|py| cause.clone_ref(py));
        }
        let made = errors::of_source(error, &self.model);
        if cause.is_some() {
            Python::attach(|py| made.set_cause(py, cause));
        }
        made
    }

    /// The options to compile the model with for inputs of these types.
    fn options_for(&self, py: Python<'_>, types: &[Option<QType>]) -> PyResult<Options> {
        let mut options = self.options.clone();
        for (input, qtype) in self.inputs.iter().zip(types) {
            if let (None, Some(qtype)) = (&input.qtype, qtype) {
                options = options.input_type(&input.name.bind(py).to_cow()?, qtype.clone());
            }
        }
        Ok(options)
    }

    /// Compiles the model for inputs of these types.
    fn compile_for(&self, py: Python<'_>, types: Vec<Option<QType>>) -> PyResult<&Compiled> {
        if self.known().count() >= MOST_SIGNATURES {
            return Err(too_many());
        }
        let options = self.options_for(py, &types)?;
        let compile = || self.model.compile_on_demand(&options);
        let executor = interrupt::compiled(py, compile)?;
        // Calls of operators with constants were evaluated during the compilation.
        user_operators::ended_by_exception(py)?;
        let executor = executor.map_err(|error| self.raised(error))?;
        self.warn(py, &options)?;
        let mut made = Box::new(Compiled::of(py, &self.model, types, executor)?);
        for (at, place) in self.compiled.iter().enumerate() {
            made.place = at;
            // Other threads may have compiled meanwhile, for the same types or others.
            let refused = place.set(made).err();
            match (place.get(), refused) {
                (Some(kept), Some(mine)) if kept.types != mine.types => made = mine,
                (Some(kept), _) => return Ok(kept),
                (None, _) => break,
            }
        }
        Err(too_many())
    }

    /// The signatures (lists of input types) for which the model is compiled so far.
    pub(crate) fn known(&self) -> impl Iterator<Item = &Compiled> {
        self.compiled.iter().map_while(|place| place.get().map(Box::as_ref))
    }

    /// Returns the compiled model for the types of the arguments in `input`. If these types are new, the model is compiled.
    pub(crate) fn compiled_for<'py>(&self, py: Python<'py>, input: CallInput<'_, 'py>) -> PyResult<&Compiled> {
        let CallInput { arguments, imports } = input;
        self.compiled_by(py, |at, name| ArgumentType::of(name, arguments[at].as_ref(), imports))
    }

    /// Begins the imports of a call's arguments. A cancelled `token` ends them.
    pub(crate) fn imports<'py>(&self, token: Option<Cancellation>) -> Imports<'py> {
        Imports::new(Bounds::new(self.limits.array_bytes, token))
    }

    /// Returns the options for converting the outputs `made` to Python objects: the kind of Python arrays, and the most
    /// bytes that the objects may take.
    #[inline(always)]
    pub(crate) fn making(
        &self,
        compiled: &Compiled,
        made: &[Value],
        arrays: Arrays,
        options: Option<&RunOptions>,
    ) -> PyResult<ConversionOptions> {
        let limits = options.and_then(RunOptions::run_limits);
        let most = limits.map_or(u64::MAX, |limits| limits.array_bytes).min(self.limits.array_bytes);
        let mut making = ConversionOptions::of(arrays, most);
        if compiled.makes_arrays {
            making.claim(made, options)?;
        }
        Ok(making)
    }

    /// Returns the signature for a call, and compiles the model if it is new. `say` returns what the call says of an undeclared input, by its
    /// position and name.
    fn compiled_by(&self, py: Python<'_>, say: impl Fn(usize, &str) -> PyResult<ArgumentType>) -> PyResult<&Compiled> {
        if self.is_typed
            && let Some(only) = self.known().next()
        {
            return Ok(only);
        }
        let given = self.inputs.iter().enumerate().map(|(at, input)| match input.qtype {
            Some(_) => Ok(ArgumentType::Declared),
            None => say(at, &input.name.bind(py).to_cow()?),
        });
        let given: Vec<ArgumentType> = given.collect::<PyResult<_>>()?;
        if let Some(found) = self.known().find(|compiled| compiled.takes(&given)) {
            return Ok(found);
        }
        let types = self.inputs.iter().zip(given);
        let types = types.map(|(input, given)| given.qtype(&input.name.bind(py).to_cow()?, input.qtype.as_ref()));
        self.compile_for(py, types.collect::<PyResult<_>>()?)
    }

    /// Puts the arguments of a call in the order of the text's inputs. If the only argument is a mapping, its keys are names of inputs, and its
    /// values are the arguments.
    pub(crate) fn arguments<'py>(
        &self,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Arguments<'py>> {
        let mut given: Arguments<'py> = smallvec![None; self.inputs.len()];
        let mut row = None;
        match args.len() {
            1 if let Some(found) = self.row_of(&args.get_item(0)?)? => row = Some(found),
            count if count > given.len() => {
                let message = format!("the model has {} inputs, but {count} values are given", given.len());
                return Err(PyTypeError::new_err(message));
            }
            _ => given.iter_mut().zip(args).for_each(|(place, value)| *place = Some(value)),
        }
        for (is_row, named) in row.iter().map(|row| (true, row)).chain(kwargs.map(|kwargs| (false, kwargs))) {
            for (name, value) in named {
                // The names of arguments are mostly the same string objects as those of inputs.
                let known = self.inputs.iter().position(|input| name.is(&input.name));
                let at = match known.map_or_else(|| self.place(&name), |at| Ok(Some(at)))? {
                    Some(at) => at,
                    // A mapping may have values that are not inputs.
                    None if is_row => continue,
                    // Polars leaves out an argument that is refused with the words of Python's own functions.
                    None => {
                        let said = unknown(&name.str()?.to_cow()?, &self.model);
                        return Err(PyTypeError::new_err(format!("unexpected keyword argument '{name}': {said}")));
                    }
                };
                if given[at].replace(value).is_some() {
                    return Err(PyTypeError::new_err(format!("input `{name}` is given twice")));
                }
            }
        }
        Ok(given)
    }

    /// Returns the only argument as a dict of values by the names of inputs. `None` if it is not a mapping, or if it is the value of the only input.
    fn row_of<'py>(&self, argument: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyDict>>> {
        if is_one_value(argument) || argument.cast::<PyUntypedArray>().is_ok() {
            return Ok(None);
        }
        let Some(row) = mapping_of(argument)? else { return Ok(None) };
        let [ModelInput { name, qtype: Some(qtype @ QType::Tuple(_)) }] = self.inputs.as_slice() else {
            return Ok(Some(row));
        };
        let of = qtype.as_optional_struct().unwrap_or(qtype);
        let is_row = match (row.get_item(name)?, of.as_map(), of.as_tuple().and_then(|fields| fields.names())) {
            // A list of structs is not a mapping.
            _ if of.element().is_some() && of.as_map().is_none() => true,
            // A dictionary has scalar values: an entry with the input's name is the input's value if it is a dict. For a struct, the name may be that
            // of a field: then the mapping is the struct itself, except if the field is not a struct and its value is a dict.
            (Some(value), Some(_), _) => value.is_instance_of::<PyDict>(),
            (Some(value), None, Some(fields)) => {
                let name = name.bind(argument.py()).to_cow()?;
                let types = of.as_tuple().into_iter().flat_map(|fields| fields.iter());
                let field = fields.iter().zip(types).find(|(field, _)| ***field == *name);
                field.is_none_or(|(_, of)| !matches!(of, QType::Tuple(_)) && value.is_instance_of::<PyDict>())
            }
            _ => false,
        };
        Ok(is_row.then_some(row))
    }

    /// The position of the input with this name; `None` if no input has it.
    fn place(&self, name: &Bound<'_, PyAny>) -> PyResult<Option<usize>> {
        let Ok(name) = name.cast::<PyString>() else { return Ok(None) };
        let text = name.to_cow()?;
        Ok(names(&self.model).position(|input| input == text))
    }

    fn has_input(&self, name: &str) -> bool {
        names(&self.model).any(|input| input == name)
    }

    /// Evaluates one row. `None` if an argument has values for many rows.
    fn one_row<'py>(
        &self,
        py: Python<'py>,
        compiled: &Compiled,
        input: CallInput<'_, 'py>,
        arrays: Arrays,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        if !compiled.unread.is_empty() && self.unread_column(compiled, input)?.is_some() {
            return Ok(None);
        }
        compiled.with_memory(|memory| {
            let terms = CallTerms::default();
            let Some(arrays) = self.evaluate(py, compiled, input, memory, arrays, &terms)? else {
                return Ok(None);
            };
            let making = self.making(compiled, &memory.made, arrays, None)?;
            let objects = memory.made.drain(..).map(|value| values::into_object(py, value, &making));
            compiled.outputs(py, objects).map(Some)
        })
    }

    /// Reads the values of one row into `row`. Returns false if an argument has values for many rows. If `arrays` is `Lists`, the first array among
    /// the arguments decides the kind of output arrays.
    fn read_row<'py>(
        &self,
        compiled: &Compiled,
        input: CallInput<'_, 'py>,
        row: &mut Vec<Value>,
        arrays: &mut Arrays,
    ) -> PyResult<bool> {
        let CallInput { arguments, imports } = input;
        // The memory of the tensors of the previous call is written again; other values are dropped.
        let mut before = if compiled.has_tensors { std::mem::take(row) } else { Vec::new() }.into_iter();
        row.clear();
        let mut series: SmallVec<[(&str, &Bound<'py, PyAny>); 2]> = SmallVec::new();
        for (field, place) in compiled.executor.inputs().iter().zip(&compiled.places) {
            let before = before.next();
            let Some(object) = &arguments[*place] else {
                row.push(values::default(field)?);
                continue;
            };
            if let Some(value) = values::number(object, &field.qtype) {
                row.push(value);
                continue;
            }
            if !is_one_value(object) {
                if is_column_of(object, &field.qtype, imports)? {
                    return Ok(false);
                }
                if is_pandas_column(object)? {
                    series.push((&field.name, object));
                }
                // The first array of the row decides the form of output arrays.
                if *arrays == Arrays::Lists {
                    *arrays = Arrays::like(object)?.unwrap_or(Arrays::Lists);
                }
            }
            // Reading many entries or structs takes long, and would be in vain if there are many rows.
            if field.qtype.element().is_some() && self.has_column(compiled, input)? {
                return Ok(false);
            }
            let value = values::read_argument(object, &field.qtype, before, imports);
            row.push(value.map_err(|misfit| misfit.raised(&field.name))?);
        }
        if let [(_, first), _, ..] = &*series {
            frames(first.py())?.call_method1("common_index", (PyList::new(first.py(), series)?,))?;
        }
        Ok(true)
    }

    /// Evaluates one row and stores its outputs in `memory`. Returns the kind of Python object for output arrays: the kind of an array among the
    /// arguments, or `arrays` if no argument is an array. `None` if an argument has values for many rows; then nothing is evaluated.
    pub(crate) fn evaluate<'py>(
        &self,
        py: Python<'py>,
        compiled: &Compiled,
        input: CallInput<'_, 'py>,
        memory: &mut Memory,
        mut arrays: Arrays,
        terms: &CallTerms,
    ) -> PyResult<Option<Arrays>> {
        let read = self.read_row(compiled, input, &mut memory.row, &mut arrays);
        if !matches!(read, Ok(true)) {
            // A value that refers to a NumPy array is dropped after it was read.
            memory.row.clear();
            return read.map(|_| None);
        }
        let _row = compiled.pace.calls_python.then(|| user_operators::within(user_operators::EvaluationScope::row()));
        let evaluated = memory.evaluate(py, compiled, terms);
        let row = &mut memory.row;
        match compiled.has_tensors {
            // A value that refers to a NumPy array is dropped after it was read.
            true => row.iter_mut().filter(|value| !tensors::is_own(value)).for_each(|value| *value = Value::Nothing),
            false => row.clear(),
        }
        evaluated?.map_err(|error| self.raised(error))?;
        Ok(Some(arrays))
    }

    /// Returns the phases of the model: the parts that are evaluated for all rows, one part after the other. They are compiled at the first call.
    fn phases<'c>(&self, py: Python<'_>, compiled: &'c Compiled) -> PyResult<&'c Phases> {
        if let Some(phases) = compiled.phases.get() {
            return Ok(phases);
        }
        let options = self.options_for(py, &compiled.types)?;
        let compile = || Phases::of(&self.model, &options, &compiled.executor, &self.over_columns);
        let phases = interrupt::compiled(py, compile)?.map_err(|error| self.raised(error))?;
        Ok(compiled.phases.get_or_init(|| phases))
    }

    /// Evaluates many rows. Their columns are the arguments, or those of a table.
    fn many_rows<'py>(
        &self,
        py: Python<'py>,
        compiled: &Compiled,
        input: CallInput<'_, 'py>,
        terms: RowsTerms<'_, 'py>,
    ) -> PyResult<RowsOutputs<'py>> {
        if !compiled.has_loops && !compiled.pace.calls_python {
            return self.in_phases(py, compiled, input, terms);
        }
        let (options, run) = compiled.watched(terms.options);
        user_operators::ended(run, self.in_phases(py, compiled, input, RowsTerms { options, ..terms }))
    }

    /// Returns the column of the input `field`: its argument or its column in `table`, or else its default in each row.
    fn column<'py>(
        &self,
        field: &Field,
        input: CallInput<'_, 'py>,
        table: Option<&Table<'py>>,
    ) -> PyResult<Column<'py>> {
        let place = names(&self.model).position(|name| name == &*field.name);
        match (place.and_then(|place| input.arguments[place].as_ref()), table) {
            (None, Some(table)) => field.left_out().map(Column::shared).ok_or_else(|| table.no_column(&field.name)),
            (None, None) => values::default(field).map(Column::shared),
            (Some(object), Some(_)) => Ok(Column::of(&field.name, object, Some(&field.qtype), input.imports)?.1),
            (Some(object), None) => Column::of_argument(object, field, input.imports),
        }
    }

    /// Evaluates many rows, one phase after the other. A phase is a part of the model between calls of Python functions over columns.
    #[inline(always)]
    fn in_phases<'py>(
        &self,
        py: Python<'py>,
        compiled: &Compiled,
        input: CallInput<'_, 'py>,
        terms: RowsTerms<'_, 'py>,
    ) -> PyResult<RowsOutputs<'py>> {
        let RowsTerms { options, skip, out, table } = terms;
        let phases = self.phases(py, compiled)?;
        let columns = phases.columns.iter().map(|field| {
            let column = |field: &Field| self.column(field, input, table);
            field.as_ref().map(column).transpose()
        });
        let mut columns: Vec<Option<Column<'py>>> = columns.collect::<PyResult<_>>()?;
        let unread = self.unread_column(compiled, input)?;
        let rows = match (columns::rows(&phases.columns, &columns)?, table, &unread) {
            (Some(rows), ..) => rows,
            (None, Some(table), _) => table.rows,
            (None, None, Some(unread)) => unread.len()?,
            (None, None, None) => 1,
        };
        let table = table.map(|table| (table.package, table.index.clone()));
        let form = OutputForm::of(py, phases, &columns, unread, table)?;
        let targets = form.targets(&self.model, phases, &columns);
        let evaluate = |phase: &Phase, columns: &[Option<Column<'py>>], options, targets: &[Target], skip, out| {
            let given: Vec<_> = phase.reads.iter().filter_map(|place| columns[*place].as_ref()).collect();
            let run = BatchTerms { batch: &phase.batch, pace: compiled.pace, rows, options, targets, skip, out };
            columns::run(py, run, &given, |error| self.raised(error))
        };
        for phase in &phases.before {
            let options = options.clone().on_error(OnError::Fail);
            let targets = vec![Target::Numpy; phase.batch.outputs().len()];
            let operands = evaluate(phase, &columns, options, &targets, false, &[])?;
            for call in &phase.calls {
                let made = call.make(py, &operands.outputs, &self.model)?;
                columns[call.place] = Some(Column::of_argument(&made, &call.input, input.imports)?);
            }
        }
        if !out.is_empty() {
            let named = names(&self.model).zip(input.arguments);
            let given = named.filter_map(|(name, given)| Some((format!("input `{name}`"), given.as_ref()?)));
            let read = phases.columns.iter().zip(&columns).filter_map(|(input, column)| {
                let made = || "the result of an operator over columns".to_owned();
                Some((input.as_ref().map_or_else(made, |input| format!("input `{}`", input.name)), column.as_ref()?))
            });
            overlap::check(out, given, read, input.imports)?;
        }
        let made = evaluate(&phases.last, &columns, options, &targets, skip, out);
        // An exception that a failed row raised is not the cause of a later error.
        drop(user_operators::raised());
        form.outputs(py, phases, &columns, rows, made?, out)
    }

    /// Returns true if an argument that the model reads has values for many rows.
    fn has_column(&self, compiled: &Compiled, input: CallInput<'_, '_>) -> PyResult<bool> {
        for (field, place) in compiled.executor.inputs().iter().zip(&compiled.places) {
            if let Some(object) = input.arguments[*place].as_ref().filter(|object| !is_one_value(object))
                && is_column_of(object, &field.qtype, input.imports)?
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns a column that is given for an input that the model does not read, if there is one. Its length is the number of rows if no other
    /// argument is a column.
    fn unread_column<'py>(
        &self,
        compiled: &Compiled,
        input: CallInput<'_, 'py>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        for place in &compiled.unread {
            let Some(object) = input.arguments[*place].as_ref().filter(|object| !is_one_value(object)) else {
                continue;
            };
            let is_column = match &self.inputs[*place].qtype {
                Some(qtype) => is_column_of(object, qtype, input.imports)?,
                None => is_column(object)?,
            };
            if is_column {
                return Ok(Some(object.clone()));
            }
        }
        Ok(None)
    }

    /// The columns of a table for the inputs that the model reads, found by the names of inputs.
    fn table_arguments<'py>(&self, table: &Table<'py>) -> PyResult<Arguments<'py>> {
        let read = read_names(&self.model);
        let column = |name: &str| if read.contains(name) { table.column(name) } else { Ok(None) };
        names(&self.model).map(column).collect()
    }
}

/// The names of the inputs that outputs are computed from.
fn read_names(model: &cembra::Model) -> HashSet<&str> {
    let graph = &model.program().graph;
    let reached = graph.reachable(model.program().outputs.iter().map(|output| output.node));
    let leaf = |(index, is_reached): (usize, &bool)| match graph.node(NodeId::from_index(index)) {
        Node::Leaf(name) if *is_reached => Some(&**graph.name(name)),
        _ => None,
    };
    reached.iter().enumerate().filter_map(leaf).collect()
}

/// The exception for one signature more than `MOST_SIGNATURES`.
fn too_many() -> PyErr {
    errors::types(format!(
        "a model can be compiled for at most {MOST_SIGNATURES} signatures (lists of input types): declare the types of its inputs"
    ))
}

/// Returns a mapping as a dict; `None` if the object is not a mapping.
fn mapping_of<'py>(object: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyDict>>> {
    if let Ok(dict) = object.cast::<PyDict>() {
        return Ok(Some(dict.clone()));
    }
    match object.cast::<PyMapping>() {
        Ok(mapping) => {
            let dict = object.py().get_type::<PyDict>().call1((mapping,))?;
            Ok(Some(dict.cast_into()?))
        }
        Err(_) => Ok(None),
    }
}

/// The names of the text's inputs.
fn names(model: &cembra::Model) -> impl Iterator<Item = &str> {
    model.program().inputs.iter().map(|input| &*input.name)
}

/// The message for a name that no input has.
fn unknown(name: &str, model: &cembra::Model) -> String {
    let known: Vec<&str> = names(model).take(8).collect();
    let shown: String = name.chars().take(60).collect();
    match known.is_empty() {
        true => format!("the model has no inputs, but `{shown}` is given"),
        false => format!("the model has no input `{shown}`: it has {}", known.join(", ")),
    }
}

#[pymethods]
impl Model {
    /// Evaluates one row of values, or many rows if an argument is a column.
    #[pyo3(signature = (*args, **kwargs))]
    fn __call__<'py>(
        &self,
        py: Python<'py>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        entered(py, || {
            let input = CallInput { arguments: &self.arguments(args, kwargs)?, imports: &self.imports(None) };
            let compiled = self.compiled_for(py, input)?;
            if let Some(made) = self.one_row(py, compiled, input, Arrays::Lists)? {
                return Ok(made);
            }
            let made = self.many_rows(py, compiled, input, RowsTerms::call())?;
            compiled.outputs(py, made.outputs.into_iter().map(Ok))
        })
    }

    /// Evaluates one row, whatever the values are, in the order of the inputs. Output arrays are NumPy arrays.
    fn _row<'py>(&self, py: Python<'py>, values: &Bound<'py, PyTuple>) -> PyResult<Bound<'py, PyAny>> {
        entered(py, || {
            let input = CallInput { arguments: &self.arguments(values, None)?, imports: &self.imports(None) };
            let compiled = self.compiled_for(py, input)?;
            let made = self.one_row(py, compiled, input, Arrays::Numpy)?;
            made.ok_or_else(|| PyTypeError::new_err("a row must have one value for each input, but a column is given"))
        })
    }

    /// Returns the types of the outputs, for a model whose inputs all have types. The types do not say that an array has no missing elements.
    fn _output_types(&self) -> Vec<String> {
        let outputs = self.known().take(1).flat_map(|compiled| compiled.executor.outputs());
        outputs.map(|output| cembra::values::print_type(&output.qtype)).collect()
    }

    /// Evaluates many rows. `columns` is a dict of columns by the names of inputs, or a data frame.
    ///
    /// Returns the outputs, the indices of the rows that failed, and the messages of the first of them.
    ///
    /// `threads` threads share the rows; results do not depend on their number. With `on_error="stop"`, the first row that fails raises an error.
    /// With `"missing"`, the outputs of rows that fail are missing; with `"skip"`, such rows are left out.
    ///
    /// `out` is a dict of the caller's arrays by the names of outputs, which are written and returned. An array must have the output's type and an
    /// element for each row. It must be a masked array if values of the output may be missing. `time_limit` in seconds and `cancellation` end an
    /// evaluation that takes longer.
    #[pyo3(signature = (columns, *, threads=1, on_error="stop", out=None, time_limit=None, cancellation=None))]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
    fn run<'py>(
        &self,
        py: Python<'py>,
        columns: &Bound<'py, PyAny>,
        threads: usize,
        on_error: &str,
        out: Option<&Bound<'py, PyDict>>,
        time_limit: Option<f64>,
        cancellation: Option<&Bound<'py, Token>>,
    ) -> PyResult<(Bound<'py, PyAny>, Vec<usize>, Vec<String>)> {
        entered(py, || {
            let terms = Terms::of(threads, time_limit, cancellation, None)?;
            let (on_error, skip) = on_error_of(on_error)?;
            let options = terms.options().on_error(on_error);
            let imports = self.imports(options.token());
            let arguments = match mapping_of(columns)? {
                Some(columns) => self.arguments(&PyTuple::new(py, [columns])?, None)?,
                None => self.table_arguments(&Table::of(columns, imports.bounds(), |name| self.has_input(name))?)?,
            };
            let input = CallInput { arguments: &arguments, imports: &imports };
            let compiled = self.compiled_for(py, input)?;
            let out = columns::outs(out, compiled.executor.outputs())?;
            if skip && !out.is_empty() {
                return Err(PyValueError::new_err(
                    "`out` must not be given with on_error=\"skip\", because it has an element for each row: give on_error=\"missing\"",
                ));
            }
            let made = self.many_rows(py, compiled, input, RowsTerms { options, skip, out: &out, table: None })?;
            let messages = made.failures.iter().map(|failure| failure.error.to_string()).collect();
            Ok((compiled.outputs(py, made.outputs.into_iter().map(Ok))?, made.failed, messages))
        })
    }

    /// Returns a session, which evaluates one row after the other in the same memory. That is worth it for arrays and tensors, and for limits on each
    /// evaluation.
    ///
    /// `threads`, `time_limit` in seconds and `cancellation` are those of `run`. `limits` is a dict by the names of the library's limits, such as
    /// `loop_iterations`; a limit of the model that is lower still holds.
    #[pyo3(signature = (**terms))]
    fn session<'py>(slf: &Bound<'py, Self>, terms: Option<&Bound<'py, PyDict>>) -> PyResult<Bound<'py, PyAny>> {
        // The class is found when it is needed, because its module uses this one.
        slf.py().import("cembra._cembra")?.getattr("Session")?.call((slf,), terms)
    }

    /// Evaluates the rows of a table, whose columns are found by the names of inputs. Columns that the model does not read are ignored.
    ///
    /// The table is a frame of pandas or Polars, a table of pyarrow, or any other object with Arrow's interface. The outputs are a frame of the same
    /// package with the same index, or a pyarrow table. `threads`, `on_error`, `time_limit` and `cancellation` are those of `run`.
    #[pyo3(signature = (frame, *, threads=1, on_error="stop", time_limit=None, cancellation=None))]
    fn table<'py>(
        &self,
        py: Python<'py>,
        frame: &Bound<'py, PyAny>,
        threads: usize,
        on_error: &str,
        time_limit: Option<f64>,
        cancellation: Option<&Bound<'py, Token>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        entered(py, || {
            let (on_error, skip) = on_error_of(on_error)?;
            let options = Terms::of(threads, time_limit, cancellation, None)?.options().on_error(on_error);
            let imports = self.imports(options.token());
            let table = Table::of(frame, imports.bounds(), |name| self.has_input(name))?;
            let arguments = self.table_arguments(&table)?;
            let read = read_names(&self.model);
            let mut absent = self
                .inputs
                .iter()
                .zip(names(&self.model))
                .zip(&arguments)
                .filter(|((input, name), given)| given.is_none() && input.qtype.is_none() && read.contains(name));
            if let Some(((_, name), _)) = absent.next() {
                return Err(table.no_column(name));
            }
            let input = CallInput { arguments: &arguments, imports: &imports };
            let compiled = self.compiled_for(py, input)?;
            let made =
                self.many_rows(py, compiled, input, RowsTerms { options, skip, out: &[], table: Some(&table) })?;
            table.of_outputs(py, compiled.executor.outputs(), made)
        })
    }

    /// The text of the model.
    #[getter]
    fn source(&self) -> &str {
        &self.settings.text
    }

    /// The types of the inputs by name, as the language writes them; `None` for an input whose type each call decides.
    #[getter]
    fn inputs<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let made = PyDict::new(py);
        for input in &self.inputs {
            made.set_item(&input.name, input.qtype.as_ref().map(cembra::values::print_type))?;
        }
        Ok(made)
    }

    /// The signature of a call, for `inspect.signature`.
    #[getter]
    fn __signature__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let inputs = self.inputs.iter().zip(&self.model.program().inputs).map(|(input, declared)| {
            let qtype = input.qtype.as_ref();
            let may_be_left_out = declared.default.is_some()
                || qtype.is_some_and(|qtype| qtype.is_optional() || qtype.as_optional_struct().is_some());
            (&input.name, qtype.map(cembra::values::print_type), may_be_left_out)
        });
        let inputs = PyList::new(py, inputs)?;
        py.import("cembra.signatures")?.call_method1("signature_of", (inputs,))
    }

    /// The names of the outputs, the main one first.
    #[getter]
    fn outputs(&self) -> Vec<String> {
        self.model.program().outputs.iter().map(|output| output.name.to_string()).collect()
    }

    /// The signatures that the model is compiled for so far: a list of dicts, in which `inputs` and `outputs` are types by name.
    #[getter]
    fn signatures<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let all = self.known().map(|compiled| {
            let made = PyDict::new(py);
            for (side, fields) in [("inputs", compiled.executor.inputs()), ("outputs", compiled.executor.outputs())] {
                let types = PyDict::new(py);
                fields.iter().try_for_each(|field| types.set_item(&*field.name, field.spelled_type()))?;
                made.set_item(side, types)?;
            }
            Ok(made)
        });
        PyList::new(py, all.collect::<PyResult<Vec<_>>>()?)
    }

    /// Runs the tests of the text, and returns the number of their cases. If some fail, the error lists all of them.
    fn run_tests(&self, py: Python<'_>) -> PyResult<usize> {
        entered(py, || {
            let token = Cancellation::new();
            let run = RunOptions::new().cancellation(token.clone());
            let _row = user_operators::within(user_operators::EvaluationScope::row());
            let report = interrupt::detached(py, &token, || self.model.run_tests_with(&self.options, &run))?;
            user_operators::ended_by_exception(py)?;
            report.check().map_err(|error| self.raised(error))?;
            Ok(report.cases)
        })
    }

    /// Returns the model as text at a stage of compiling, such as `plan` or `asm`. The inputs have the types of the
    /// first signature.
    #[pyo3(signature = (stage="plan"))]
    fn explain(&self, py: Python<'_>, stage: &str) -> PyResult<String> {
        let found = Stage::ALL.iter().find(|known| known.name() == stage).ok_or_else(|| {
            let known: Vec<&str> = Stage::ALL.iter().map(|stage| stage.name()).collect();
            PyValueError::new_err(format!("the stage must be one of {}, not '{stage}'", known.join(", ")))
        })?;
        let first = self.known().next();
        let options = match first {
            Some(first) => self.options_for(py, &first.types)?,
            None => self.options.clone(),
        };
        entered(py, || {
            interrupt::compiled(py, || self.model.explain(&options, *found))?.map_err(|error| self.raised(error))
        })
    }

    fn __repr__(&self) -> String {
        let inputs = self.inputs.iter().zip(names(&self.model)).map(|(input, name)| match &input.qtype {
            Some(qtype) => format!("{name}: {}", cembra::values::print_type(qtype)),
            None => name.to_owned(),
        });
        let inputs: Vec<String> = inputs.collect();
        format!("<cembra.Model ({}) -> {}>", inputs.join(", "), self.outputs().join(", "))
    }

    /// Returns inputs, outputs, the text and its warnings as HTML, for a notebook.
    fn _repr_html_(&self) -> String {
        let escaped = |text: &str| {
            text.replace('&', "&amp;")
                .replace('<', "&lt;")
                .replace('>', "&gt;")
                .replace('"', "&quot;")
                .replace('\'', "&#39;")
        };
        let inputs = self.inputs.iter().zip(names(&self.model)).map(|(input, name)| {
            let qtype = input.qtype.as_ref().map_or_else(|| "of the call".to_owned(), cembra::values::print_type);
            format!("<tr><td>{}</td><td>{}</td></tr>", escaped(name), escaped(&qtype))
        });
        let warnings = self.model.warnings(&self.options);
        let warnings = warnings.as_slice().iter().map(|warning| format!("<li>{}</li>", escaped(warning.message())));
        let warnings: String = warnings.collect();
        let warnings = if warnings.is_empty() { warnings } else { format!("<p>warnings:</p><ul>{warnings}</ul>") };
        let outputs = escaped(&self.outputs().join(", "));
        let text = escaped(&self.settings.text);
        format!(
            "<table><tr><th>input</th><th>type</th></tr>{}</table><p>outputs: {outputs}</p>{warnings}<pre>{text}</pre>",
            inputs.collect::<String>()
        )
    }

    /// Pickles the text, its files and the options. The model of the pickle is compiled again when it is needed.
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let rebuild = py.import("cembra._cembra")?.getattr("_rebuilt")?;
        Ok((rebuild, (PickledSettings::from(&self.settings),).into_pyobject(py)?))
    }
}

/// Makes a model from `kept`, the settings that a pickle stores.
#[pyfunction]
pub(crate) fn _rebuilt(py: Python<'_>, kept: PickledSettings) -> PyResult<Model> {
    Model::of(py, kept.into(), true)
}
