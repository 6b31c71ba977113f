//! Many rows at once: arrays of NumPy and of Arrow as columns. Numbers are read where they lie, and written into the arrays that the caller
//! gets; strings, dates and truth values of NumPy are converted, since it has them in another form. A value beside columns is the same in every row.

use crate::arrays::{self, for_each_number, is_maskable, is_masked, kind, masked_by, numpy_of, presence};
use crate::interrupt::{detached, is_long_batch, token_of};
use crate::lock::released;
use crate::masks;
use crate::numbers::{Numbers, is_writable};
use crate::packages::{Import, Imports, is_arrow, is_ours, package};
use crate::pins::{Pins, pin};
use crate::scalars::{self, Misfit, dtype_of, scalar_of_dtype};
use crate::signature::Compiled;
use crate::values::{self, Making};
use arrow_array::ArrayRef;
use arrow_data::ArrayData;
use cembra::doors::OutputRoom;
use cembra::{
    Array, Batch, Bitmap, BitmapMut, ColumnMut, Field, InputColumn, Limits, OnError, OutputColumn, QType, RowFailure,
    RunOptions, Scalar, Value,
};
use cembra_arrow::{Input, Strings};
use numpy::{PyArray1, PyArrayMethods, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use pyo3_arrow::PyArray;

/// The values of an input in all rows.
pub(crate) struct Column<'py> {
    data: Data<'py>,
    /// A bit for each row whose value is there; none where all are.
    presence: Option<Vec<u64>>,
    /// The array of Arrow as the caller has it.
    pub(crate) like: Option<Bound<'py, PyAny>>,
}

macro_rules! data {
    ($($rust:ident $scalar:ident),*) => {
        enum Data<'py> {
            $(
                /// Numbers where they lie.
                $scalar(Numbers<'py, $rust>),
            )*
            /// Values of other types, converted.
            Array(Array),
            Arrow(Box<Import>),
            /// The same in every row.
            Shared(Value),
        }

        /// Numbers that lie one behind the other, of the type that is wanted if one is.
        fn numbers<'py>(object: &Bound<'py, PyAny>, wanted: Option<Scalar>) -> Option<(Scalar, Data<'py>)> {
            $(
                if wanted.is_none_or(|wanted| wanted == Scalar::$scalar)
                    && let Some(numbers) = Numbers::of(object)
                {
                    return Some((Scalar::$scalar, Data::$scalar(numbers)));
                }
            )*
            None
        }

        impl<'py> Data<'py> {
            fn rows(&self) -> Option<usize> {
                match self {
                    $(Data::$scalar(numbers) => Some(numbers.len()),)*
                    Data::Array(array) => Some(array.len()),
                    Data::Arrow(import) => Some(arrow_array::Array::len(&import.array)),
                    Data::Shared(_) => None,
                }
            }

            /// The array whose numbers are read where they lie.
            const fn numpy(&self) -> Option<&Bound<'py, PyUntypedArray>> {
                match self {
                    $(Data::$scalar(numbers) => Some(numbers.array()),)*
                    Data::Array(_) | Data::Arrow(_) | Data::Shared(_) => None,
                }
            }

            /// The column that the library reads. `None` of an array of Arrow, and of one of NumPy that was changed since it was met.
            fn column(&self) -> Option<InputColumn<'_>> {
                match self {
                    $(Data::$scalar(numbers) => numbers.read().map(InputColumn::values),)*
                    Data::Array(array) => Some(InputColumn::elements(array)),
                    Data::Arrow(_) => None,
                    Data::Shared(value) => Some(InputColumn::shared(value)),
                }
            }
        }
    };
}

for_each_number!(data);

/// True for an object that has a value for each of many rows.
pub(crate) fn is_column(object: &Bound<'_, PyAny>) -> bool {
    match object.cast::<PyUntypedArray>() {
        Ok(array) => array.ndim() > 0,
        Err(_) => is_arrow(object),
    }
}

/// True for an object that has a value for each of many rows where an input is of this type: lists of Arrow where it is an array.
pub(crate) fn is_column_of<'py>(object: &Bound<'py, PyAny>, qtype: &QType, imports: &Imports<'py>) -> PyResult<bool> {
    if !matches!(qtype, QType::Array(..)) {
        return Ok(qtype.scalar().is_some() && is_column(object));
    }
    if object.cast::<PyUntypedArray>().is_ok() || !is_arrow(object) {
        return Ok(false);
    }
    match imports.array(object) {
        Ok(Import { array, .. }) => {
            let field = arrow_schema::Field::new("", array.data_type().clone(), true);
            Ok(cembra_arrow::input_type(&field).is_some_and(|found| found.scalar().is_none()))
        }
        // The object's own exception: it may be a sequence nevertheless.
        Err(error) if !is_ours(object.py(), &error) => Ok(false),
        Err(error) => Err(error),
    }
}

impl<'py> Column<'py> {
    /// The same value in every row.
    pub(crate) fn shared(value: Value) -> Self {
        Column { data: Data::Shared(value), presence: None, like: None }
    }

    /// Numbers where they lie, without a mask, of the very type of an input: most columns of most calls, found with few questions.
    pub(crate) fn of_numbers(object: &Bound<'py, PyAny>, qtype: &QType) -> Option<Self> {
        let (_, data) = numbers(object, Some(qtype.scalar()?)).filter(|_| !is_masked(object))?;
        Some(Column { data, presence: None, like: None })
    }

    /// What is given for an input: a column, or one value for all rows.
    pub(crate) fn of_argument(object: &Bound<'py, PyAny>, input: &Field, imports: &Imports<'py>) -> PyResult<Self> {
        let qtype = &input.qtype;
        if let Some(numbers) = Column::of_numbers(object, qtype) {
            return Ok(numbers);
        }
        if is_column_of(object, qtype, imports)? {
            return Ok(Column::of(&input.name, &widened(object, qtype)?, imports)?.1);
        }
        values::read_argument(object, qtype, None, imports)
            .map(Column::shared)
            .map_err(|misfit| misfit.raised(&input.name))
    }

    /// The rows of an array of Arrow, of a table.
    pub(crate) fn of_arrow(array: ArrayRef, table: &Bound<'py, PyAny>) -> Self {
        let import = Import { array, given: Vec::new() };
        Column { data: Data::Arrow(Box::new(import)), presence: None, like: Some(table.clone()) }
    }

    /// The rows of an array, with the type that an input of such values has.
    pub(crate) fn of(name: &str, object: &Bound<'py, PyAny>, imports: &Imports<'py>) -> PyResult<(QType, Self)> {
        if object.cast::<PyUntypedArray>().is_err() {
            let import = imports.array(object)?;
            let of = import.array.data_type();
            let refused = || crate::errors::data(format!("input `{name}` cannot be a column of {of}"));
            let field = arrow_schema::Field::new(name, of.clone(), true);
            let qtype = cembra_arrow::input_type(&field).ok_or_else(refused)?;
            let data = Data::Arrow(Box::new(import));
            return Ok((qtype, Column { data, presence: None, like: Some(object.clone()) }));
        }
        let untyped = object.cast::<PyUntypedArray>()?;
        if untyped.ndim() != 1 {
            let message = format!(
                "input `{name}` is an array of {} axes: a column has one; declare a tensor for more",
                untyped.ndim()
            );
            return Err(crate::errors::data(message));
        }
        let presence = presence(object)?;
        // A masked array has the memory of its numbers itself.
        if let Some((scalar, data)) = numbers(object, None) {
            return Ok((QType::of(scalar, presence.is_some()), Column { data, presence, like: None }));
        }
        let refused = |kind: &str| crate::errors::data(format!("input `{name}` cannot be a column of NumPy's {kind}"));
        let plain = if is_masked(object) { object.getattr("data")? } else { object.clone() };
        let kind = kind(untyped)?;
        // Numbers in another order of bytes, of another size, or with other strides are copied.
        // Truth values are bits in columns, bytes in NumPy.
        let number = scalar_of_dtype(&kind).filter(|scalar| *scalar != Scalar::Boolean);
        let numeric = number.and_then(dtype_of);
        if let Some(numeric) = numeric {
            let copied = object.py().import("numpy")?.call_method1("array", (&plain, numeric))?;
            let (scalar, data) = numbers(&copied, None).ok_or_else(|| refused(&kind))?;
            return Ok((QType::of(scalar, presence.is_some()), Column { data, presence, like: None }));
        }
        let (scalar, listed) = listed(object, &plain, &kind)?.ok_or_else(|| refused(&kind))?;
        let array = arrays::elements(&listed, scalar).map_err(|misfit: Misfit| misfit.raised(name))?;
        let is_optional = presence.is_some() || array.first_missing().is_some();
        Ok((QType::of(scalar, is_optional), Column { data: Data::Array(array), presence, like: None }))
    }

    /// The value that all rows share, if they share one.
    pub(crate) fn value(&self) -> Option<&Value> {
        if let Data::Shared(value) = &self.data { Some(value) } else { None }
    }

    /// The chunks of an array of Arrow in the memory of the caller.
    pub(crate) fn given(&self) -> &[ArrayData] {
        if let Data::Arrow(import) = &self.data { &import.given } else { &[] }
    }

    /// The array of NumPy whose numbers are read where they are, if the column is one.
    pub(crate) const fn numpy(&self) -> Option<&Bound<'py, PyUntypedArray>> {
        self.data.numpy()
    }

    /// How many rows it has; none of a value that is the same in each.
    pub(crate) fn rows(&self) -> Option<usize> {
        self.data.rows()
    }
}

/// The elements of an array that has no numbers as Python's objects, and their type; none of a type that no input has.
fn listed<'py>(
    object: &Bound<'py, PyAny>,
    plain: &Bound<'py, PyAny>,
    kind: &str,
) -> PyResult<Option<(Scalar, Bound<'py, PyAny>)>> {
    if kind == "O" {
        let listed = object.call_method0("tolist")?;
        let first = listed.try_iter()?.find(|one| !one.as_ref().is_ok_and(|one| one.is_none()));
        let scalar = first.transpose()?.and_then(|first| scalars::scalar_of(&first));
        return Ok(scalar.map(|scalar| (scalar, listed)));
    }
    let Some(scalar) = scalar_of_dtype(kind) else { return Ok(None) };
    let listed = match scalar {
        // Moments of NumPy have no zone: they are in UTC, as it counts them.
        Scalar::Timestamp => {
            let moments = plain.call_method1("astype", ("M8[us]",))?;
            let utc = pyo3::types::PyTzInfo::utc(object.py())?.to_owned();
            let zoned = PyDict::new(object.py());
            zoned.set_item("tzinfo", utc)?;
            let one = |moment: PyResult<Bound<'py, PyAny>>| {
                let moment = moment?;
                if moment.is_none() { Ok(moment) } else { moment.call_method("replace", (), Some(&zoned)) }
            };
            PyList::new(
                object.py(),
                moments.call_method0("tolist")?.try_iter()?.map(one).collect::<PyResult<Vec<_>>>()?,
            )?
            .into_any()
        }
        Scalar::Duration => plain.call_method1("astype", ("m8[us]",))?.call_method0("tolist")?,
        _ => object.call_method0("tolist")?,
    };
    Ok(Some((scalar, listed)))
}

/// What became of many rows.
pub(crate) struct Rows<'py> {
    /// The array of each output.
    pub(crate) outputs: Vec<Bound<'py, PyAny>>,
    /// The rows that failed.
    pub(crate) failed: Vec<usize>,
    pub(crate) failures: Vec<RowFailure>,
}

/// How many rows there are in columns: none where a call has yet to make one. All have as many, or are the same in every row.
pub(crate) fn rows(inputs: &[Option<Field>], columns: &[Option<Column<'_>>]) -> PyResult<usize> {
    let sized = || {
        let fields = columns.iter().zip(inputs);
        fields.filter_map(|(column, input)| Some((column.as_ref()?.rows()?, &input.as_ref()?.name)))
    };
    let Some((rows, first)) = sized().next() else { return Ok(1) };
    match sized().find(|(found, _)| *found != rows) {
        Some((found, name)) => {
            Err(crate::errors::data(format!("input `{name}` has {found} rows, and `{first}` has {rows}")))
        }
        None => Ok(rows),
    }
}

/// An evaluation of many rows.
pub(crate) struct BatchTerms<'r, 'py> {
    pub(crate) batch: &'r Batch,
    pub(crate) model: &'r Compiled,
    pub(crate) rows: usize,
    pub(crate) options: RunOptions,
    /// Outputs are arrays of Arrow as this is one, or columns of this table. They are arrays of NumPy if there is none.
    pub(crate) like: Option<&'r Bound<'py, PyAny>>,
    /// Arrays of the caller's, by the names of outputs.
    pub(crate) out: &'r [Out<'py>],
}

/// The name of an output, and the caller's array for it.
pub(crate) type Out<'py> = (String, Bound<'py, PyAny>);

/// The arrays of a dict by the names of outputs. It is read once: keys may be objects that answer differently each time.
pub(crate) fn outs<'py>(out: Option<&Bound<'py, PyDict>>, outputs: &[Field]) -> PyResult<Vec<Out<'py>>> {
    let given = out.into_iter().flat_map(|out| out.iter());
    let given = given.map(|(name, array)| match name.extract::<String>() {
        Ok(known) if outputs.iter().any(|output| *output.name == *known) => Ok((known, array)),
        _ => Err(PyValueError::new_err(format!("`out` has an array for {}, which is no output", name.repr()?))),
    });
    given.collect()
}

/// The exception that an array is not as it was when the call began.
fn changed() -> PyErr {
    crate::errors::data("an array was resized or reshaped while the call read it: leave arrays alone until it is over")
}

/// Evaluates a model on columns, one for each of its inputs.
pub(crate) fn run<'py>(
    py: Python<'py>,
    run: BatchTerms<'_, 'py>,
    columns: &[&Column<'py>],
    raised: impl Fn(cembra::Error) -> PyErr,
) -> PyResult<Rows<'py>> {
    let BatchTerms { batch, model, rows, options, like, out } = run;
    let Compiled { brief_rows, calls_python, nodes, are_numbers, .. } = *model;
    let may_fail = options.failed_rows() == Some(OnError::Missing);
    let mut sinks = Vec::with_capacity(batch.outputs().len());
    for output in batch.outputs() {
        // Columns of rows that may fail, and of models with arrays, are the library's.
        if let Some((_, given)) = out.iter().find(|(name, _)| *name == *output.name) {
            sinks.push(Sink::given(given, output, rows)?);
            continue;
        }
        let is_made = like.is_some() || batch.takes_structs() || (may_fail && !output.qtype.is_optional());
        sinks.push(if is_made { Sink::Made } else { Sink::of(py, &output.qtype, rows)? });
    }
    // Giving the interpreter's lock away and taking it again takes as long as evaluating some rows.
    let is_brief = rows <= brief_rows;
    // Until the run is over. From here on to the run Python runs nothing but destructors, and addresses are taken after these.
    let mut pins = Pins::new();
    if !is_brief || calls_python {
        let written = sinks.iter().filter_map(Sink::numpy);
        for array in columns.iter().filter_map(|column| column.numpy()).chain(written) {
            pin(array, &mut pins)?;
        }
    }
    let arrow: Vec<Option<Input<'_>>> = columns
        .iter()
        .zip(batch.inputs())
        .map(|(column, input)| match &column.data {
            Data::Arrow(import) => Input::of(&input.name, &import.array, &input.qtype).map(Some),
            _ => Ok(None),
        })
        .collect::<Result<_, _>>()
        .map_err(|error| crate::errors::data(error.to_string()))?;
    let inner: Vec<Option<InputColumn<'_>>> =
        arrow.iter().map(|input| input.as_ref().and_then(Input::values)).collect();
    let inputs = columns.iter().zip(&arrow).zip(&inner).map(|((column, arrow), inner)| match arrow {
        Some(array) => Ok(array.column(inner.as_ref())),
        None => {
            let values = column.data.column().ok_or_else(changed)?;
            Ok(match column.presence.as_ref().and_then(|bits| Bitmap::of_words(bits, rows)) {
                Some(bits) => values.present(bits),
                None => values,
            })
        }
    });
    let inputs: Vec<InputColumn<'_>> = inputs.collect::<PyResult<_>>()?;
    let room;
    let made = {
        let places = sinks.iter_mut().map(|sink| sink.column(rows));
        let places: Vec<Option<ColumnMut<'_>>> = places.collect::<PyResult<_>>()?;
        let is_long = !is_brief && is_long_batch(rows, nodes, are_numbers);
        let token = if is_long { Some(token_of(&options)) } else { options.token() };
        let options = token.iter().fold(options, |options, token| options.cancellation(token.clone()));
        let options = options.rows(rows);
        room = batch.output_room(&options);
        let evaluate = || batch.run_into(&options, &inputs, places);
        let made = match &token {
            _ if is_brief => evaluate(),
            Some(token) if is_long => detached(py, token, evaluate)?,
            _ => released(py, evaluate),
        };
        // Rows whose functions were not called any more, and code that was not compiled to its end, are no faults.
        let was_ended = token.filter(|token| made.is_err() && token.is_cancelled());
        made.map_err(|error| raised(was_ended.map_or(error, |token| cembra::Error::ended_by(Some(&token)))))?
    };
    drop(pins);
    let room = room.beside(&made.columns);
    let mut made_columns = made.columns.into_iter();
    let mut outputs = Vec::with_capacity(sinks.len());
    for (sink, output) in sinks.into_iter().zip(batch.outputs()) {
        outputs.push(match sink {
            Sink::Made => {
                let column = made_columns.next().ok_or_else(|| PyValueError::new_err("an output was not made"))?;
                match like {
                    Some(like) => arrow_object(like, array_of(&output.name, column, &room, &raised)?, &output.name)?,
                    None => {
                        if !room.take(object_bytes(&column)) {
                            return Err(crate::errors::too_large());
                        }
                        numpy_object(py, &column)?
                    }
                }
            }
            filled => filled.finish(py, rows)?,
        });
    }
    Ok(Rows { outputs, failed: made.failed, failures: made.failures })
}

/// Masks the elements of an array of the caller's of which a bit does not say that they are there.
fn set_mask(array: &Bound<'_, PyAny>, rows: usize, bits: Vec<u8>) -> PyResult<()> {
    let mask = array.getattr("mask")?;
    // An element of a hard mask stays masked: that is NumPy's to do.
    if let Ok(mask) = mask.cast::<PyArray1<bool>>()
        && mask.len() == rows
        && !array.getattr("hardmask")?.is_truthy()?
        && let Ok(mut mask) = mask.try_readwrite()
        && let Ok(mask) = mask.as_slice_mut()
    {
        masks::write_missing(mask, bits.into_iter());
        return Ok(());
    }
    array.setattr("mask", PyArray1::from_vec(array.py(), masks::missing(rows, bits.into_iter(), Vec::new())))
}

macro_rules! sinks {
    ($($rust:ident $scalar:ident),*) => {
        /// Where the values of an output go.
        enum Sink<'py> {
            $(
                /// An array of numbers, and a bit for each that is there.
                $scalar(Numbers<'py, $rust>, Option<Vec<u8>>),
            )*
            /// A column that the library makes.
            Made,
            /// An array of the caller's, and the place of its values.
            Given(Bound<'py, PyAny>, Box<Sink<'py>>),
        }

        impl<'py> Sink<'py> {
            /// Allocates an array of NumPy for the output, if NumPy lays its type out as the library does.
            fn of(py: Python<'py>, qtype: &QType, rows: usize) -> PyResult<Self> {
                let bits = qtype.is_optional().then(|| vec![0_u8; rows.div_ceil(8)]);
                Ok(match qtype.scalar() {
                    $(
                        Some(Scalar::$scalar) => match Numbers::of(arrays::zeros::<$rust>(py, rows)?.as_any()) {
                            Some(numbers) => Sink::$scalar(numbers, bits),
                            None => Sink::Made,
                        },
                    )*
                    _ => Sink::Made,
                })
            }

            /// An array of the caller's.
            fn given(array: &Bound<'py, PyAny>, output: &Field, rows: usize) -> PyResult<Self> {
                let qtype = &output.qtype;
                let refused = |what: &str| crate::errors::data(format!("`out` for `{}`, {qtype}, is {what}", output.name));
                if qtype.is_optional() != is_masked(array) {
                    return Err(refused(match qtype.is_optional() {
                        true => "no masked array: values may be missing",
                        false => "a masked array: no value is missing",
                    }));
                }
                let bits = qtype.is_optional().then(|| vec![0_u8; rows.div_ceil(8)]);
                $(
                    // A masked array has the memory of its numbers itself.
                    if qtype.scalar() == Some(Scalar::$scalar) && let Ok(numbers) = array.cast::<PyArray1<$rust>>() {
                        if numbers.len() != rows {
                            return Err(refused(&format!("an array of {} elements, not {rows}", numbers.len())));
                        }
                        if !is_writable(numbers.as_untyped()) {
                            return Err(refused("read-only"));
                        }
                        let scattered = || refused("an array whose elements do not lie one behind the other");
                        let numbers = Numbers::<$rust>::of(array).ok_or_else(scattered)?;
                        return Ok(Sink::Given(array.clone(), Box::new(Sink::$scalar(numbers, bits))));
                    }
                )*
                Err(refused("an array of another type, of several axes, or of values that are converted"))
            }

            /// The array that the library writes.
            fn numpy(&self) -> Option<&Bound<'py, PyUntypedArray>> {
                match self {
                    $(Sink::$scalar(numbers, _) => Some(numbers.array()),)*
                    Sink::Made => None,
                    Sink::Given(_, place) => place.numpy(),
                }
            }

            /// The memory that the library writes; none of a column that it makes.
            fn column(&mut self, rows: usize) -> PyResult<Option<ColumnMut<'_>>> {
                match self {
                    $(Sink::$scalar(numbers, bits) => {
                        let values = ColumnMut::values(numbers.written().ok_or_else(changed)?);
                        Ok(match bits {
                            Some(bits) => BitmapMut::new(bits, 0, rows).map(|bits| values.present(bits)),
                            None => Some(values),
                        })
                    })*
                    Sink::Made => Ok(None),
                    Sink::Given(_, place) => place.column(rows),
                }
            }

            /// The array of NumPy.
            fn finish(self, py: Python<'py>, rows: usize) -> PyResult<Bound<'py, PyAny>> {
                match self {
                    $(Sink::$scalar(numbers, bits) => {
                        let array = numbers.array().clone().into_any();
                        masked_by(array, bits.map(|bits| masks::missing(rows, bits.into_iter(), Vec::new())))
                    })*
                    Sink::Made => Ok(py.None().into_bound(py)),
                    Sink::Given(array, place) => {
                        match *place {
                            $(Sink::$scalar(_, Some(bits)) => set_mask(&array, rows, bits)?,)*
                            _ => {}
                        }
                        Ok(array)
                    }
                }
            }
        }
    };
}

for_each_number!(sinks);

/// The array of an output, whose strings are laid out in `room`.
fn array_of(
    name: &str,
    column: OutputColumn,
    room: &OutputRoom,
    raised: impl Fn(cembra::Error) -> PyErr,
) -> PyResult<ArrayRef> {
    cembra_arrow::array_with(name, column, Strings::Plain, room).map_err(|error| match error {
        cembra_arrow::Error::Model(error) => raised(error),
        other => crate::errors::data(other.to_string()),
    })
}

/// The bytes of a column as objects of Python, one for each row, without numbers as NumPy has them.
fn object_bytes(column: &OutputColumn) -> u64 {
    let rows = column.rows() as u64;
    if let Some((_, elements)) = column.lists() {
        let size = elements.qtype().scalar().map_or(0, values::numpy_size);
        let numbers = rows.saturating_mul(scalars::PLACE + values::NUMPY);
        return numbers.saturating_add(size.saturating_mul(elements.rows() as u64)).saturating_add(strings(elements));
    }
    match column.qtype().scalar() {
        Some(scalar) if dtype_of(scalar).is_some_and(|_| scalar != Scalar::Boolean) => 0,
        Some(scalar) => rows.saturating_mul(values::numpy_size(scalar)).saturating_add(strings(column)),
        None => {
            let own = |row| column.value(row).map_or(0, |value| values::object_bytes(&value, values::Arrays::Numpy));
            (0..column.rows()).map(own).fold(rows.saturating_mul(scalars::PLACE), u64::saturating_add)
        }
    }
}

/// The bytes of the strings of a column as objects of Python.
fn strings(column: &OutputColumn) -> u64 {
    if !column.qtype().scalar().is_some_and(Scalar::is_string) {
        return 0;
    }
    let own = |row| column.string(row).map_or(0, scalars::object_bytes);
    (0..column.rows()).map(own).fold(0, u64::saturating_add)
}

/// An array as an array or series of the package that one is of, where that is known, else as an array of Arrow, which every package with Arrow's
/// interface takes.
fn arrow_object<'py>(like: &Bound<'py, PyAny>, array: ArrayRef, name: &str) -> PyResult<Bound<'py, PyAny>> {
    let py = like.py();
    let array = Bound::new(py, PyArray::from_array_ref(array))?.into_any();
    match &*package(like)? {
        "polars" => py.import("polars")?.call_method1("Series", (array,))?.call_method1("alias", (name,)),
        "pyarrow" => py.import("pyarrow")?.call_method1("array", (array,)),
        "pandas" => {
            let series = py.import("pyarrow")?.call_method1("array", (array,))?.call_method0("to_pandas")?;
            series.setattr("name", name)?;
            series.setattr("index", like.getattr("index")?)?;
            Ok(series)
        }
        _ => Ok(array),
    }
}

/// An array of numbers of NumPy as one of the type that an input is of, where every one of its numbers is of that type too.
pub(crate) fn widened<'py>(object: &Bound<'py, PyAny>, qtype: &QType) -> PyResult<Bound<'py, PyAny>> {
    let Ok(untyped) = object.cast::<PyUntypedArray>() else { return Ok(object.clone()) };
    // Naming a type of NumPy takes longer than evaluating a few rows.
    macro_rules! is_of_it {
        ($($rust:ident $scalar:ident),*) => {
            false $(|| (qtype.scalar() == Some(Scalar::$scalar) && object.cast::<PyArray1<$rust>>().is_ok()))*
        };
    }
    if for_each_number!(is_of_it) {
        return Ok(object.clone());
    }
    let found = kind(untyped)?;
    let wanted = qtype.scalar().filter(|scalar| *scalar != Scalar::Boolean && scalar_of_dtype(&found) != Some(*scalar));
    let Some(wanted) = wanted.and_then(dtype_of).filter(|_| !found.starts_with('b')) else { return Ok(object.clone()) };
    let fits = object.py().import("numpy")?.call_method1("can_cast", (untyped.dtype(), wanted))?.is_truthy()?;
    if fits { object.call_method1("astype", (wanted,)) } else { Ok(object.clone()) }
}

/// A column that lies in NumPy in another form: truth values, dates, strings; lists as a list of arrays.
fn numpy_object<'py>(py: Python<'py>, column: &OutputColumn) -> PyResult<Bound<'py, PyAny>> {
    let (rows, is_optional) = (column.rows(), column.qtype().is_optional() || column.presence().is_some());
    let Some(scalar) = column.qtype().scalar() else {
        let making = Making::of(values::Arrays::Numpy, Limits::default().array_bytes);
        let value = |row| values::object(py, &column.value(row).unwrap_or(Value::Nothing), &making);
        return Ok(making.list(py, rows, value)?.into_any());
    };
    macro_rules! copied {
        ($($rust:ident $scalar:ident),*) => {
            match scalar {
                $(Scalar::$scalar => column.values::<$rust>().map(|all| PyArray1::from_slice(py, all).into_any()),)*
                _ => None,
            }
        };
    }
    let array = match for_each_number!(copied) {
        Some(array) => array,
        None => {
            let element = |row| column.value(row).as_ref().and_then(Value::as_scalar).cloned();
            numpy_of(py, scalar, rows, || py.check_signals(), element)?
        }
    };
    let missing = || (0..rows).map(|row| !column.is_present(row)).collect();
    masked_by(array, (is_optional && is_maskable(scalar)).then(missing))
}
