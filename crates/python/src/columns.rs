//! Evaluation of many rows at once: NumPy and Arrow arrays as columns. Numbers are read in place, and written directly to the arrays that the caller
//! gets. Strings, dates and truth values of NumPy are converted, because NumPy stores them in another form. A single value among the arguments is
//! used for every row.

use crate::arrays::{self, for_each_number, is_maskable, is_masked, kind, masked_by, numpy_of, presence};
use crate::exports::arrow_object;
use crate::interrupt::{detached, is_long_batch, token_of};
use crate::lock::released;
use crate::masks;
use crate::moments;
use crate::numbers::{Numbers, is_writable};
use crate::packages::{self, Family, Import, Imports, Package, frames, is_arrow, is_ours, is_pandas_column};
use crate::pins::{Pins, pin};
use crate::scalars::{self, Misfit, dtype_of, scalar_of_dtype};
use crate::values::{self, ConversionOptions};
use arrow_array::{Array as _, ArrayRef, NullArray};
use arrow_data::ArrayData;
use arrow_schema::DataType;
use cembra::columns::{Bitmap, BitmapMut, ColumnMut, InputColumn, OutputColumn};
use cembra::doors::OutputRoom;
use cembra::{Array, Batch, Field, Limits, OnError, QType, RowFailure, RunOptions, Scalar, Value};
use cembra_arrow::{Argument, Strings, with_columns};
use numpy::{PyArray1, PyArrayMethods, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::sync::Arc;

/// The values of a model's input in all rows: a column, or one value that all rows share.
pub(crate) struct Column<'py> {
    data: Data<'py>,
    /// The presence of the values, one bit per row; `None` if `data` has the presence itself, or no value is missing.
    presence: Option<Vec<u64>>,
    /// The caller's object, if it is a column of a package other than NumPy; else `None`.
    pub(crate) origin: Option<Origin<'py>>,
}

/// A column object that the caller passed, and its Python package.
#[derive(Clone)]
pub(crate) struct Origin<'py> {
    pub(crate) object: Bound<'py, PyAny>,
    pub(crate) package: Package,
    /// The type that an input without a declared type gets from this column; `None` if the column gives no type, such as a column of structs.
    natural: Option<QType>,
}

macro_rules! data {
    ($($rust:ident $scalar:ident),*) => {
        /// The values of an input, in the form in which the library reads them.
        enum Data<'py> {
            $(
                /// Numbers in NumPy's memory.
                $scalar(Numbers<'py, $rust>),
            )*
            /// The values were converted to an array of the library, because the library cannot read them in place.
            Array(Array),
            /// The column is an imported Arrow array, which the library reads in place where possible.
            Arrow(Box<Import>),
            /// The input has one value, which all rows share.
            Shared(Value),
        }

        /// Finds the contiguous numbers of a NumPy array, and their type. `None` if the object is not such an array, or if their type is not
        /// `wanted`.
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

            /// Returns one bit per number, set where it is not NaN; `None` if no number is NaN.
            fn not_nan(&self) -> Option<Vec<u64>> {
                fn bits<T: PartialOrd>(numbers: &[T]) -> Option<Vec<u64>> {
                    // NaN alone differs from itself.
                    let is_nan = |number: &T| number.partial_cmp(number).is_none();
                    numbers.iter().any(is_nan).then(|| masks::bits(&numbers.iter().map(is_nan).collect::<Vec<bool>>(), true))
                }
                match self {
                    Data::Float64(numbers) => bits(numbers.read()?),
                    Data::Float32(numbers) => bits(numbers.read()?),
                    _ => None,
                }
            }

            /// The NumPy array whose numbers are read in place; `None` for other data.
            const fn numpy(&self) -> Option<&Bound<'py, PyUntypedArray>> {
                match self {
                    $(Data::$scalar(numbers) => Some(numbers.array()),)*
                    Data::Array(_) | Data::Arrow(_) | Data::Shared(_) => None,
                }
            }

            /// The column that the library reads. `None` for an Arrow array, and for a NumPy array that was resized or reshaped since the call began.
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

/// Returns true if `object` is a column: a NumPy array with at least one axis, a pandas column, or an object with Arrow's interface.
pub(crate) fn is_column(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    match object.cast::<PyUntypedArray>() {
        Ok(array) => Ok(array.ndim() > 0),
        Err(_) => Ok(is_arrow(object)? || is_pandas_column(object)?),
    }
}

/// Returns true if `object` is a column for an input of type `qtype`: it has one value per row. For scalar types see [`is_column`]. For an array
/// type, a column is an Arrow array of lists. For any other type, a column is an Arrow array of structs, lists of structs, or maps.
pub(crate) fn is_column_of<'py>(object: &Bound<'py, PyAny>, qtype: &QType, imports: &Imports<'py>) -> PyResult<bool> {
    if qtype.scalar().is_some() {
        return is_column(object);
    }
    let may_be_one = matches!(qtype, QType::Array(..) | QType::Tuple(_));
    if !may_be_one || object.cast::<PyUntypedArray>().is_ok() || !is_arrow(object)? {
        return Ok(false);
    }
    let array = match imports.parts_of(object)? {
        Some((array, _)) => array,
        None => object.clone(),
    };
    // A Series of Python objects is one value for an array type, and a column of structs for a struct type.
    if array.cast::<PyUntypedArray>().is_ok() {
        return Ok(matches!(qtype, QType::Tuple(_)));
    }
    match imports.array(&array) {
        Ok(Import { array, .. }) => {
            let of = array.data_type();
            Ok(of.is_nested() && !matches!(of, DataType::Dictionary(..)))
        }
        // The object raised an exception of its own: it may still be a sequence.
        Err(error) if !is_ours(object.py(), &error) => Ok(false),
        Err(error) => Err(error),
    }
}

impl<'py> Column<'py> {
    /// Makes the values of an input that has the value `value` in every row.
    pub(crate) fn shared(value: Value) -> Self {
        Column { data: Data::Shared(value), presence: None, origin: None }
    }

    /// Reads a NumPy array in place, if it has no mask and its numbers are exactly of the input's type. `None` for every other object. This fast path
    /// handles most columns of most calls.
    pub(crate) fn of_numbers(object: &Bound<'py, PyAny>, qtype: &QType) -> Option<Self> {
        let (_, data) = numbers(object, Some(qtype.scalar()?)).filter(|_| !is_masked(object))?;
        Some(Column { data, presence: None, origin: None })
    }

    /// Reads `object`, the argument for the input `input`: a column, or one value for all rows.
    pub(crate) fn of_argument(object: &Bound<'py, PyAny>, input: &Field, imports: &Imports<'py>) -> PyResult<Self> {
        let qtype = &input.qtype;
        if let Some(numbers) = Column::of_numbers(object, qtype) {
            return Ok(numbers);
        }
        if is_column_of(object, qtype, imports)? {
            return Ok(Column::of(&input.name, object, Some(qtype), imports)?.1);
        }
        values::read_argument(object, qtype, None, imports)
            .map(Column::shared)
            .map_err(|misfit| misfit.raised(&input.name))
    }

    /// Reads a column. Also returns the type that an input without a declared type gets from the column. `wanted` is the type of the input, if it is
    /// known: Python objects are read as this type, and numbers of other types that this type accepts are converted.
    ///
    /// # Errors
    /// If an input of type `wanted` cannot have the values of the column; without `wanted`, if no input can have them.
    pub(crate) fn of(
        name: &str,
        object: &Bound<'py, PyAny>,
        wanted: Option<&QType>,
        imports: &Imports<'py>,
    ) -> PyResult<(QType, Self)> {
        if object.cast::<PyUntypedArray>().is_ok() {
            return Column::of_numpy(name, object, wanted, false);
        }
        let package = Package::of(object)?;
        if package == Package::Other && packages::package(object)? == "narwhals" {
            return Column::of(name, &object.call_method0("to_native")?, wanted, imports);
        }
        if packages::class_has(object, "columns")? {
            let message = format!(
                "input `{name}` must be a column, but a frame is given: call `model.table(frame)` to evaluate its rows"
            );
            return Err(crate::errors::data(message));
        }
        if let Some(view) = packages::numpy_view(object, package)?
            && numbers(&view, None).is_some()
        {
            let (qtype, mut column) = Column::of_numpy(name, &view, wanted, false)?;
            let natural = qtype.scalar().map(QType::Optional);
            column.origin = Some(Origin { object: object.clone(), package, natural: natural.clone() });
            return Ok((natural.unwrap_or(qtype), column));
        }
        if package != Package::Pandas(Family::Numpy) {
            return Column::of_arrow(name, object, object, wanted, package, imports);
        }
        let Some((array, family)) = imports.parts(object)? else { return Err(no_column(name, object, None)) };
        if array.cast::<PyUntypedArray>().is_err() {
            return Column::of_arrow(name, object, &array, wanted, Package::Pandas(family), imports);
        }
        if matches!(wanted, Some(QType::Tuple(_) | QType::Array(..))) {
            let converted = imports.converted(object)?;
            return Column::of_arrow(name, object, &converted, wanted, Package::Pandas(family), imports);
        }
        let (qtype, mut column) = Column::of_numpy(name, &array, wanted, true)?;
        let is_moment = array.getattr("dtype")?.getattr("kind")?.extract::<String>()? == "M";
        let scalar = if is_moment { Some(Scalar::Timestamp) } else { qtype.scalar() };
        column.origin = Some(Origin {
            object: object.clone(),
            package: Package::Pandas(family),
            natural: scalar.map(QType::Scalar),
        });
        // A pandas column may have missing values, so its type is optional even if none is missing.
        Ok((qtype.scalar().map_or(qtype, QType::Optional), column))
    }

    /// Reads an Arrow array as a column. `object` is what the caller gave: the array itself, or the column that it belongs to.
    fn of_arrow(
        name: &str,
        object: &Bound<'py, PyAny>,
        array: &Bound<'py, PyAny>,
        wanted: Option<&QType>,
        package: Package,
        imports: &Imports<'py>,
    ) -> PyResult<(QType, Self)> {
        // If Arrow's interface does not have the type, the message names the column's own type.
        let unknown = |error: PyErr| match error.to_string().contains("still not supported") {
            true => no_column(name, object, None),
            false => error,
        };
        let import = match imports.array(array) {
            // A column without elements gets the wanted type.
            Ok(import)
                if let Some(wanted) = wanted.and_then(cembra_arrow::data_type)
                    && import.array.data_type() == &DataType::Null
                    && import.array.is_empty() =>
            {
                Import { array: arrow_array::new_empty_array(&wanted), ..import }
            }
            // Arrow's interface has nulls without a type, but not every reader of it takes them.
            Err(error) if error.to_string().contains("no type of values") => match wanted {
                Some(wanted) => {
                    let empty = cembra_arrow::data_type(wanted).filter(|_| object.is_empty().unwrap_or(false));
                    let nulls = || Ok::<_, PyErr>(Arc::new(NullArray::new(object.len()?)) as ArrayRef);
                    let array = empty.map_or_else(nulls, |of| Ok(arrow_array::new_empty_array(&of)))?;
                    Import { array, given: Vec::new() }
                }
                None => return Err(no_column(name, object, Some(&DataType::Null))),
            },
            import => import.map_err(unknown)?,
        };
        let of = import.array.data_type();
        let natural = cembra_arrow::input_type(&arrow_schema::Field::new(name, of.clone(), true));
        let origin = Some(Origin { object: object.clone(), package, natural: natural.clone() });
        let qtype = natural.or_else(|| wanted.cloned()).ok_or_else(|| no_column(name, object, Some(of)))?;
        Ok((qtype, Column { data: Data::Arrow(Box::new(import)), presence: None, origin }))
    }

    /// Reads a NumPy array with one axis as a column. If `is_of_pandas`, NaN is a missing value.
    fn of_numpy(
        name: &str,
        object: &Bound<'py, PyAny>,
        wanted: Option<&QType>,
        is_of_pandas: bool,
    ) -> PyResult<(QType, Self)> {
        let untyped = object.cast::<PyUntypedArray>()?;
        if untyped.ndim() != 1 {
            let message = format!(
                "input `{name}` is an array of {} axes, but a column must have one: declare the input as a tensor, such as `tensor[f64, 2]`",
                untyped.ndim()
            );
            return Err(crate::errors::data(message));
        }
        let mut presence = presence(object)?;
        let wanted = wanted.and_then(QType::scalar);
        // A masked array is itself the array of its numbers.
        if let Some((scalar, data)) = numbers(object, None)
            && !wanted.is_some_and(|wanted| is_converted(scalar, wanted))
        {
            if is_of_pandas {
                presence = data.not_nan();
            }
            let qtype = QType::of(scalar, presence.is_some());
            return Ok((qtype, Column { data, presence, origin: None }));
        }
        let kind = kind(untyped)?;
        let refused = || no_column(name, object, None);
        let plain = if is_masked(object) { object.getattr("data")? } else { object.clone() };
        let of_array = |array: Array, presence: Option<Vec<u64>>| {
            let scalar = array.scalar();
            let is_optional = presence.is_some() || array.first_missing().is_some();
            (QType::of(scalar, is_optional), Column { data: Data::Array(array), presence, origin: None })
        };
        let natural = if kind == "O" { None } else { Some(scalar_of_dtype(&kind).ok_or_else(refused)?) };
        match natural {
            Some(Scalar::Boolean) => {
                let scalar = if wanted == Some(Scalar::Unit) { Scalar::Unit } else { Scalar::Boolean };
                let made = arrays::numpy_elements(object, scalar)?.ok_or_else(refused)?;
                Ok(of_array(made, None))
            }
            Some(natural) if dtype_of(natural).is_some() => {
                if is_of_pandas && kind.starts_with('f') {
                    let is_nan = object.py().import("numpy")?.call_method1("isnan", (&plain,))?;
                    let is_nan = is_nan.cast_into::<PyArray1<bool>>()?;
                    presence = Some(masks::bits(is_nan.try_readonly().map_err(wrong)?.as_slice()?, true));
                }
                let is_optional = presence.is_some();
                let array = arrays::arrow_numbers(&plain, &kind, presence)?.ok_or_else(refused)?;
                let data = Data::Arrow(Box::new(Import { array, given: Vec::new() }));
                Ok((QType::of(natural, is_optional), Column { data, presence: None, origin: None }))
            }
            Some(natural @ (Scalar::Date | Scalar::Timestamp | Scalar::Duration)) => {
                let of =
                    wanted.filter(|wanted| *wanted == Scalar::Date && natural == Scalar::Timestamp).unwrap_or(natural);
                let plain = plain.cast::<PyUntypedArray>()?;
                let made = moments::array(plain, of, presence.as_deref(), |said| {
                    crate::errors::data(format!("input `{name}` {said}"))
                })?;
                let mut made = made.ok_or_else(refused)?;
                if let Some(mask) = presence {
                    made = masked(made, mask).ok_or_else(refused)?;
                }
                Ok(of_array(made, None))
            }
            natural => {
                let elements = object.call_method0("tolist")?;
                let scalar = match wanted.filter(|_| natural.is_none()).or(natural) {
                    Some(scalar) => scalar,
                    None => {
                        let mut all = elements.try_iter()?;
                        let first =
                            all.find_map(|one| one.ok().filter(|one| !scalars::is_absent_in(one, is_of_pandas)));
                        let unknown = || match &first {
                            None => crate::errors::types(format!(
                                "input `{name}` has no type, because none of its rows has a value: declare the type, as in `input {name}: f64?`"
                            )),
                            Some(_) => refused(),
                        };
                        first.as_ref().and_then(scalars::scalar_of).ok_or_else(unknown)?
                    }
                };
                let made = arrays::objects(&elements, scalar, is_of_pandas).map_err(|misfit: Misfit| match wanted {
                    Some(_) => misfit.raised(name),
                    None => misfit.among_objects().raised(name),
                })?;
                Ok(of_array(made, None))
            }
        }
    }

    /// The value that all rows share; `None` for a column.
    pub(crate) fn value(&self) -> Option<&Value> {
        if let Data::Shared(value) = &self.data { Some(value) } else { None }
    }

    /// Returns true if the caller's column itself can be returned for an output that equals this input. `qtype` is the input's type. The column must
    /// have this type too, so that nothing was converted.
    pub(crate) fn is_carried(&self, qtype: &QType) -> bool {
        let natural = self.origin.as_ref().and_then(|origin| origin.natural.as_ref());
        natural.is_some_and(|natural| match (natural, qtype) {
            (QType::Array(_, own), QType::Array(_, declared)) => own == declared,
            _ => natural.scalar().is_some() && natural.scalar() == qtype.scalar(),
        })
    }

    /// The imported Arrow array of this column as a Python object, to return for an output that equals the input. Only objects of unknown packages
    /// are returned in this way, because they may export their data only once. `None` for columns of known packages.
    pub(crate) fn imported(&self, py: Python<'py>, name: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
        match (&self.data, &self.origin) {
            (Data::Arrow(import), Some(Origin { package: Package::Other, .. })) => {
                arrow_object(py, Package::Other, import.array.clone(), name).map(Some)
            }
            _ => Ok(None),
        }
    }

    /// The chunks of this column's imported Arrow array in the caller's memory; empty for other columns.
    pub(crate) fn given(&self) -> &[ArrayData] {
        if let Data::Arrow(import) = &self.data { &import.given } else { &[] }
    }

    /// The NumPy array whose numbers this column reads in place; `None` for other columns.
    pub(crate) const fn numpy(&self) -> Option<&Bound<'py, PyUntypedArray>> {
        self.data.numpy()
    }

    /// The number of rows in the column; `None` if it is one value that all rows share.
    pub(crate) fn rows(&self) -> Option<usize> {
        self.data.rows()
    }
}

/// Returns the array with every element missing whose bit in `mask` is 0.
fn masked(array: Array, mask: Vec<u64>) -> Option<Array> {
    let (scalar, len, data, presence) = array.into_parts();
    let presence = match presence {
        Some(own) => mask.iter().zip(own).map(|(mask, own)| mask & own).collect(),
        None => mask,
    };
    Array::from_parts(scalar, len, data, Some(presence))
}

/// Returns true if an input of type `wanted` takes numbers of type `found` by converting them.
fn is_converted(found: Scalar, wanted: Scalar) -> bool {
    let of = cembra_arrow::data_type(&QType::Scalar(found));
    of.is_some_and(|of| cembra_arrow::is_converted(&of, wanted))
}

/// A `ValueError` with the text of an error.
fn wrong(error: impl std::fmt::Display) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// The exception for a column whose type no input can have. The message has the type's name in the column's own package, and a hint.
#[cold]
fn no_column(name: &str, object: &Bound<'_, PyAny>, of: Option<&DataType>) -> PyErr {
    let own = || {
        let own = object.getattr_opt("type").ok()?.or_else(|| object.getattr_opt("dtype").ok()?)?;
        let is_type =
            own.is_instance_of::<pyo3::types::PyType>() || own.is_callable() && !own.hasattr("itemsize").ok()?;
        let shown = if is_type { own.repr() } else { own.str() };
        shown.ok().map(|shown| shown.to_string())
    };
    let mut found = own().unwrap_or_else(|| of.map_or_else(|| scalars::type_name(object), ToString::to_string));
    // For a column of objects, the type of the first value says more.
    if found == "object"
        && let Ok(mut elements) = object.try_iter()
        && let Some(first) = elements.find_map(|one| one.ok().filter(|one| !scalars::is_absent_in(one, true)))
    {
        found = format!("objects of type {}", scalars::type_name(&first));
    }
    let is_array =
        || object.getattr_opt("dtype").ok().flatten().is_some_and(|dtype| dtype.hasattr("kind").unwrap_or(false));
    let way = match of {
        // Arrays with coordinates export structs by Arrow's interface.
        Some(DataType::Struct(_)) if found != "object" && is_array() && object.hasattr("to_numpy").unwrap_or(false) => {
            "give its array, as in `.to_numpy()`".to_owned()
        }
        Some(DataType::Null) => format!("declare the input's type, as in `input {name}: f64?`"),
        Some(DataType::Struct(_) | DataType::Map(..) | DataType::List(_) | DataType::LargeList(_)) => {
            format!("declare the input's type, as in `input {name}: {{a: f64}}`")
        }
        Some(of) if of.is_decimal() => "cast it to floats, as in `.cast(..)` or `.astype(\"float64\")`".to_owned(),
        _ => "convert it, as in `.cast(..)` or `.astype(..)`".to_owned(),
    };
    crate::errors::data(format!("input `{name}` cannot be a column of {found}: {way}"))
}

/// The result of evaluating a model on many rows.
pub(crate) struct Rows<'py> {
    /// The column of results for each output of the model.
    pub(crate) outputs: Vec<Bound<'py, PyAny>>,
    /// The indices of the rows whose evaluation failed.
    pub(crate) failed: Vec<usize>,
    pub(crate) failures: Vec<RowFailure>,
    /// One truth value per row, true if the row did not fail and so is in the outputs; `None` if the outputs have all rows.
    pub(crate) kept: Option<Bound<'py, PyAny>>,
}

/// The number of rows, which all columns must share; `None` if no column has a known number of rows. The number is not known for an input with one
/// value for all rows, and for a column that is made only during the call.
///
/// # Errors
/// If two columns have different numbers of rows.
pub(crate) fn rows(inputs: &[Option<Field>], columns: &[Option<Column<'_>>]) -> PyResult<Option<usize>> {
    let sized = || {
        let fields = columns.iter().zip(inputs);
        fields.filter_map(|(column, input)| Some((column.as_ref()?.rows()?, &input.as_ref()?.name)))
    };
    let Some((rows, first)) = sized().next() else { return Ok(None) };
    match sized().find(|(found, _)| *found != rows) {
        Some((found, name)) => Err(crate::errors::data(format!(
            "input `{name}` has {found} rows, and `{first}` has {rows}: all columns must have the same number of rows"
        ))),
        None => Ok(Some(rows)),
    }
}

/// Properties of a model that decide where its rows are evaluated: with Python's global interpreter lock (GIL), without the GIL, or in another
/// thread.
#[derive(Clone, Copy)]
pub(crate) struct RowsCost {
    /// The most rows that are evaluated while this thread holds Python's GIL. With so few rows, no other thread waits long.
    pub(crate) brief_rows: usize,
    /// The number of steps of the model per row. If that is not known, the number of nodes of the model's graph.
    pub(crate) nodes: usize,
    /// True if all inputs and outputs of the model are scalars other than strings.
    pub(crate) are_numbers: bool,
    /// True if the model calls Python functions.
    pub(crate) calls_python: bool,
}

/// The arguments of [`run`]: a model, the options of the run, and the destinations of the outputs.
pub(crate) struct BatchTerms<'r, 'py> {
    pub(crate) batch: &'r Batch,
    pub(crate) pace: RowsCost,
    pub(crate) rows: usize,
    pub(crate) options: RunOptions,
    /// The kind of Python object that each output's column becomes, in the order of the model's outputs.
    pub(crate) targets: &'r [Target],
    /// True if rows that fail are left out of the outputs.
    pub(crate) skip: bool,
    /// The caller's arrays that outputs are written to, each with the name of its output.
    pub(crate) out: &'r [Out<'py>],
}

/// The kind of Python object that an output's column becomes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Target {
    /// The column becomes a NumPy array, a masked one if its elements may be missing.
    Numpy,
    /// The column becomes an array or series of the given package.
    Package(Package),
}

impl Target {
    /// Returns true if an output of type `qtype` is made as a NumPy array. For pandas, a Series is made from the array.
    fn is_numpy(self, qtype: &QType) -> bool {
        match self {
            Target::Numpy => true,
            Target::Package(Package::Pandas(Family::Arrow)) => false,
            Target::Package(Package::Pandas(_)) => qtype.scalar().is_some_and(|scalar| !scalar.is_string()),
            Target::Package(_) => false,
        }
    }
}

/// The name of an output, and the caller's array that the output is written to.
pub(crate) type Out<'py> = (String, Bound<'py, PyAny>);

/// Reads `out`, the caller's dict from names of outputs to arrays. The dict is read once, because its keys may be objects that answer differently
/// each time.
///
/// # Errors
/// If a key is not the name of an output.
pub(crate) fn outs<'py>(out: Option<&Bound<'py, PyDict>>, outputs: &[Field]) -> PyResult<Vec<Out<'py>>> {
    let given = out.into_iter().flat_map(|out| out.iter());
    let given = given.map(|(name, array)| match name.extract::<String>() {
        Ok(known) if outputs.iter().any(|output| *output.name == *known) => Ok((known, array)),
        _ => Err(PyValueError::new_err(format!(
            "`out` has an array for {}, which is not an output of the model",
            name.repr()?
        ))),
    });
    given.collect()
}

/// The exception for an array that was resized or reshaped since the call began.
fn changed() -> PyErr {
    crate::errors::data(
        "an array was resized or reshaped while the call read it: arrays must keep their sizes until the call returns",
    )
}

/// Evaluates a model on columns, one per input of the model. `raised` converts an error of the evaluation to a Python exception.
pub(crate) fn run<'py>(
    py: Python<'py>,
    run: BatchTerms<'_, 'py>,
    columns: &[&Column<'py>],
    raised: impl Fn(cembra::Error) -> PyErr,
) -> PyResult<Rows<'py>> {
    let BatchTerms { batch, pace, rows, options, targets, skip, out } = run;
    let RowsCost { brief_rows, calls_python, nodes, are_numbers } = pace;
    let may_fail = options.failed_rows() == Some(OnError::Missing);
    let mut sinks = Vec::with_capacity(batch.outputs().len());
    for (output, target) in batch.outputs().iter().zip(targets) {
        // The library makes the column if NumPy does not, if the model takes structs, or if rows may fail and the output's type has no missing
        // values.
        if let Some((_, given)) = out.iter().find(|(name, _)| *name == *output.name) {
            sinks.push(Sink::given(given, output, rows)?);
            continue;
        }
        let is_made =
            !target.is_numpy(&output.qtype) || batch.takes_structs() || (may_fail && !output.qtype.is_optional());
        sinks.push(if is_made { Sink::Made } else { Sink::of(py, &output.qtype, rows)? });
    }
    // Releasing the interpreter's lock and taking it again takes as long as evaluating some rows.
    let is_brief = rows <= brief_rows;
    // The pins last until the run is over. From here to the run, Python runs nothing but destructors, and addresses are taken after these.
    let mut pins = Pins::new();
    if !is_brief || calls_python {
        let written = sinks.iter().filter_map(Sink::numpy);
        for array in columns.iter().filter_map(|column| column.numpy()).chain(written) {
            pin(array, &mut pins)?;
        }
    }
    let arguments = columns.iter().map(|column| match &column.data {
        Data::Arrow(import) => Ok(Argument::Array(import.array.clone())),
        data => {
            let values = data.column().ok_or_else(changed)?;
            Ok(Argument::Column(match column.presence.as_ref().and_then(|bits| Bitmap::of_words(bits, rows)) {
                Some(bits) => values.present(bits),
                None => values,
            }))
        }
    });
    let arguments: Vec<Argument<'_>> = arguments.collect::<PyResult<_>>()?;
    let room;
    let made = {
        let places = sinks.iter_mut().map(|sink| sink.column(rows));
        let places: Vec<Option<ColumnMut<'_>>> = places.collect::<PyResult<_>>()?;
        let is_long = !is_brief && is_long_batch(rows, nodes, are_numbers);
        let token = if is_long { Some(token_of(&options)) } else { options.token() };
        let options = token.iter().fold(options, |options, token| options.cancellation(token.clone()));
        let options = options.rows(rows);
        room = batch.output_room(&options);
        let refused = |error| match error {
            cembra_arrow::Error::Type { name, found } => {
                let place = batch.inputs().iter().position(|input| *input.name == *name);
                let origin = place.and_then(|place| columns.get(place)?.origin.as_ref());
                let data = || crate::errors::data(format!("input `{name}` cannot be a column of {found}"));
                origin.map_or_else(data, |origin| no_column(&name, &origin.object, Some(&found)))
            }
            other => crate::errors::data(other.to_string()),
        };
        let evaluate = |inputs: &[InputColumn<'_>]| {
            let evaluate = || batch.run_into(&options, inputs, places);
            match &token {
                _ if is_brief => Ok(evaluate()),
                Some(token) if is_long => detached(py, token, evaluate),
                _ => Ok(released(py, evaluate)),
            }
        };
        let made = with_columns(batch.inputs(), &arguments, evaluate).map_err(refused)??;
        // If the token ended the run, functions that were not called and code that was not compiled are not reported as faults.
        let was_ended = token.filter(|token| made.is_err() && token.is_cancelled());
        made.map_err(|error| raised(was_ended.map_or(error, |token| cembra::Error::ended_by(Some(&token)))))?
    };
    drop(pins);
    let room = room.beside(&made.columns);
    let kept = (skip && !made.failed.is_empty()).then(|| {
        let mut kept = vec![true; rows];
        made.failed.iter().filter_map(|row| kept.get_mut(*row).map(|kept| *kept = false)).for_each(drop);
        PyArray1::from_vec(py, kept)
    });
    let mut made_columns = made.columns.into_iter();
    let mut outputs = Vec::with_capacity(sinks.len());
    for ((sink, output), target) in sinks.into_iter().zip(batch.outputs()).zip(targets) {
        if let Sink::Given(..) = &sink {
            outputs.push(sink.finish(py, rows)?.0);
            continue;
        }
        let made_column = match &sink {
            Sink::Made => Some(made_columns.next().ok_or_else(|| PyValueError::new_err("an output was not computed"))?),
            _ => None,
        };
        let is_numpy = target.is_numpy(&output.qtype);
        outputs.push(match (made_column, target) {
            (Some(column), Target::Package(package)) if !is_numpy => {
                let whole = arrow_object(py, *package, array_of(&output.name, column, &room, &raised)?, &output.name)?;
                match &kept {
                    Some(kept) => frames(py)?.call_method1("kept_rows", (whole, kept))?,
                    None => whole,
                }
            }
            (made_column, target) => {
                let (values, missing) = match made_column {
                    Some(column) => {
                        if !room.take(object_bytes(&column)) {
                            return Err(crate::errors::too_large());
                        }
                        numpy_parts(py, &column)?
                    }
                    None => sink.finish(py, rows)?,
                };
                // If failed rows are left out, only an optional output can still have missing values.
                let missing = missing.filter(|_| kept.is_none() || output.qtype.is_optional());
                let (values, missing) = match &kept {
                    Some(kept) => {
                        let is_kept = kept.readonly();
                        let missing = missing.map(|all| {
                            all.into_iter()
                                .zip(is_kept.as_array())
                                .filter_map(|(one, kept)| kept.then_some(one))
                                .collect()
                        });
                        (frames(py)?.call_method1("kept_rows", (values, kept))?, missing)
                    }
                    None => (values, missing),
                };
                match target {
                    Target::Package(Package::Pandas(family)) => pandas_array(values, missing, *family)?,
                    _ => masked_by(values, missing)?,
                }
            }
        });
    }
    Ok(Rows { outputs, failed: made.failed, failures: made.failures, kept: kept.map(Bound::into_any) })
}

/// Masks the elements of the caller's array whose bit in `bits` is 0.
fn set_mask(array: &Bound<'_, PyAny>, rows: usize, bits: Vec<u8>) -> PyResult<()> {
    let mask = array.getattr("mask")?;
    // An element of a hard mask stays masked, so NumPy itself must set such a mask.
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
        /// The memory that the values of an output are written to.
        enum Sink<'py> {
            $(
                /// A NumPy array of numbers, and one presence bit per row if the output is optional.
                $scalar(Numbers<'py, $rust>, Option<Vec<u8>>),
            )*
            /// The output is written to a new column, which this evaluation makes.
            Made,
            /// The output is written to an array that the caller gave. The fields are this array, and the sink for its numbers and presence bits.
            Given(Bound<'py, PyAny>, Box<Sink<'py>>),
        }

        impl<'py> Sink<'py> {
            /// Allocates a NumPy array for the output, if NumPy stores its type as the library does; else the library makes the column.
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

            /// Makes the sink that writes to the caller's array.
            ///
            /// # Errors
            /// If the array does not fit: its type, mask or length is another, or it is read-only or not contiguous.
            fn given(array: &Bound<'py, PyAny>, output: &Field, rows: usize) -> PyResult<Self> {
                let qtype = &output.qtype;
                let refused = |what: &str| crate::errors::data(format!("`out` for `{}`, {qtype}, {what}", output.name));
                if qtype.is_optional() != is_masked(array) {
                    return Err(refused(match qtype.is_optional() {
                        true => "must be a masked array, because values may be missing",
                        false => "must not be a masked array, because no value is missing",
                    }));
                }
                let bits = qtype.is_optional().then(|| vec![0_u8; rows.div_ceil(8)]);
                $(
                    // A masked array is itself the array of its numbers.
                    if qtype.scalar() == Some(Scalar::$scalar) && let Ok(numbers) = array.cast::<PyArray1<$rust>>() {
                        if numbers.len() != rows {
                            return Err(refused(&format!("has {} elements, but must have {rows}", numbers.len())));
                        }
                        if !is_writable(numbers.as_untyped()) {
                            return Err(refused("must not be read-only"));
                        }
                        let scattered = || refused("must be contiguous, as `numpy.ascontiguousarray` makes it");
                        let numbers = Numbers::<$rust>::of(array).ok_or_else(scattered)?;
                        return Ok(Sink::Given(array.clone(), Box::new(Sink::$scalar(numbers, bits))));
                    }
                )*
                Err(refused("must be a NumPy array with one axis and this type; only numbers can be written to `out`"))
            }

            /// The NumPy array that the library writes the output to; `None` if the library makes a new column instead.
            fn numpy(&self) -> Option<&Bound<'py, PyUntypedArray>> {
                match self {
                    $(Sink::$scalar(numbers, _) => Some(numbers.array()),)*
                    Sink::Made => None,
                    Sink::Given(_, place) => place.numpy(),
                }
            }

            /// The memory that the library writes the output to; `None` if the library makes a new column instead.
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

            /// Returns the NumPy array and its mask, true where an element is missing; no mask if none may be. The mask of the caller's array is set
            /// here.
            fn finish(self, py: Python<'py>, rows: usize) -> PyResult<NumpyParts<'py>> {
                match self {
                    $(Sink::$scalar(numbers, bits) => {
                        let array = numbers.array().clone().into_any();
                        Ok((array, bits.map(|bits| masks::missing(rows, bits.into_iter(), Vec::new()))))
                    })*
                    Sink::Made => Ok((py.None().into_bound(py), None)),
                    Sink::Given(array, place) => {
                        match *place {
                            $(Sink::$scalar(_, Some(bits)) => set_mask(&array, rows, bits)?,)*
                            _ => {}
                        }
                        Ok((array, None))
                    }
                }
            }
        }
    };
}

for_each_number!(sinks);

/// A NumPy array, and its mask with true where an element is missing; the mask is `None` if no element may be missing.
type NumpyParts<'py> = (Bound<'py, PyAny>, Option<Vec<bool>>);

/// Converts the column of an output to an Arrow array. The copies of its strings are taken from `room`.
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

/// The bytes that an output column takes after its conversion to NumPy elements and Python objects; 0 for numbers, which are not converted.
fn object_bytes(column: &OutputColumn) -> u64 {
    let rows = column.rows() as u64;
    if let Some((_, elements)) = column.lists() {
        let size = elements.qtype().scalar().map_or(0, values::numpy_size);
        let numbers = rows.saturating_mul(scalars::LIST_SLOT_BYTES + values::NUMPY);
        return numbers.saturating_add(size.saturating_mul(elements.rows() as u64)).saturating_add(strings(elements));
    }
    match column.qtype().scalar() {
        Some(scalar) if dtype_of(scalar).is_some_and(|_| scalar != Scalar::Boolean) => 0,
        Some(scalar) => rows.saturating_mul(values::numpy_size(scalar)).saturating_add(strings(column)),
        None => {
            let own = |row| column.value(row).map_or(0, |value| values::object_bytes(&value, values::Arrays::Numpy));
            (0..column.rows()).map(own).fold(rows.saturating_mul(scalars::LIST_SLOT_BYTES), u64::saturating_add)
        }
    }
}

/// The bytes that the strings of a column take as Python objects; 0 for other types.
fn strings(column: &OutputColumn) -> u64 {
    if !column.qtype().scalar().is_some_and(Scalar::is_string) {
        return 0;
    }
    let own = |row| column.string(row).map_or(0, scalars::object_bytes);
    (0..column.rows()).map(own).fold(0, u64::saturating_add)
}

/// Converts a NumPy array and its mask to an array that a pandas Series is made from.
fn pandas_array<'py>(
    values: Bound<'py, PyAny>,
    missing: Option<Vec<bool>>,
    family: Family,
) -> PyResult<Bound<'py, PyAny>> {
    let py = values.py();
    let missing = missing.filter(|missing| missing.contains(&true)).map(|missing| PyArray1::from_vec(py, missing));
    frames(py)?.call_method1("made_array", (values, missing, family as u8))
}

/// Converts a column that the library made to a NumPy array and its mask. Lists become an object array of arrays, other composite values a Python
/// list.
fn numpy_parts<'py>(py: Python<'py>, column: &OutputColumn) -> PyResult<NumpyParts<'py>> {
    let (rows, is_optional) = (column.rows(), column.qtype().is_optional() || column.presence().is_some());
    let Some(scalar) = column.qtype().scalar() else {
        let making = ConversionOptions::of(values::Arrays::Numpy, Limits::default().array_bytes);
        let value = |row| values::object(py, &column.value(row).unwrap_or(Value::Nothing), &making);
        let list = making.list(py, rows, value)?;
        // From arrays of equal length, NumPy would make one array with two axes.
        let made = match column.lists() {
            Some(_) => {
                let made = py.import("numpy")?.call_method1("empty", (rows, "O"))?;
                for (row, element) in list.iter().enumerate() {
                    made.set_item(row, element)?;
                }
                made
            }
            None => list.into_any(),
        };
        return Ok((made, None));
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
    Ok((array, (is_optional && is_maskable(scalar)).then(missing)))
}
