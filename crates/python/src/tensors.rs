//! Tensors from arrays of NumPy, and back. The elements of an input are read where they are, or copied where they are few or lie otherwise, into
//! memory of the evaluation before where there is some. Those of an output are moved, or copied where a session keeps them.

use crate::arrays::{self, is_masked, kind};
use crate::bounds::Bounds;
use crate::lending;
use crate::packages::{self, Package, class_has, frames};
use crate::scalars::{Misfit, dtype_of, scalar_of_dtype};
use arrow_array::Array;
use cembra::doors::OutputRoom;
use cembra::tensor::Element;
use cembra::{Limits, QType, Scalar, Tensor, Value};
use numpy::{PyArray1, PyArrayDyn, PyArrayMethods, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::prelude::*;
use std::sync::Arc;

/// A type that elements of tensors have.
macro_rules! for_each_element {
    ($then:ident) => {
        $then! { f64 Float64, f32 Float32, i64 Int64, i32 Int32, bool Boolean }
    };
}

/// The tensor of an array. Its elements are lent by the array, or copied: into the tensor of the evaluation before if that has the same extents and
/// no other owner, else into new memory. None if the system has no memory.
fn filled<T: Element + numpy::Element>(
    array: &Bound<'_, PyArrayDyn<T>>,
    before: Option<Arc<Tensor>>,
) -> Option<Arc<Tensor>> {
    // A truth value of NumPy may be any byte.
    if T::SCALAR != Scalar::Boolean
        && let Some(lent) = lending::tensor(array)
    {
        return Some(lent);
    }
    let array = lending::whole(array).ok()?;
    let given = array.try_readonly().ok()?;
    let fits = |tensor: &Tensor| {
        tensor.extents() == array.shape() && tensor.scalar_type() == T::SCALAR && tensor.layout().is_row_major()
    };
    let write = |tensor: &mut Tensor| {
        let elements = tensor.own_data().and_then(T::of_part)?;
        match given.as_slice() {
            // A slice is also had of an array whose first axis lies closest.
            Ok(given) if array.is_c_contiguous() && given.len() == elements.len() => elements.copy_from_slice(given),
            _ => elements.iter_mut().zip(given.as_array()).for_each(|(element, given)| *element = *given),
        }
        if T::SCALAR == Scalar::Boolean {
            let len = elements.len();
            // SAFETY: NUMPY-MEMORY: a truth value of NumPy is a byte, of which any but 0 is true; it becomes 1 before it is used.
            let bytes = unsafe { std::slice::from_raw_parts_mut(elements.as_mut_ptr().cast::<u8>(), len) };
            bytes.iter_mut().for_each(|byte| *byte = u8::from(*byte != 0));
        }
        Some(())
    };
    if let Some(mut before) = before.filter(|before| fits(before))
        && Arc::get_mut(&mut before).and_then(write).is_some()
    {
        return Some(before);
    }
    let mut made = Tensor::zeros(T::SCALAR, array.shape()).ok()?;
    write(&mut made)?;
    Some(Arc::new(made))
}

/// The tensor of an array whose elements are of this type; none of another array, and no tensor where there is no memory for one.
fn filled_of(array: &Bound<'_, PyAny>, scalar: Scalar, before: Option<Arc<Tensor>>) -> Option<Option<Arc<Tensor>>> {
    macro_rules! filled_of {
        ($($rust:ident $scalar:ident),*) => { $(
            if scalar == Scalar::$scalar && let Ok(array) = array.cast::<PyArrayDyn<$rust>>() {
                return Some(filled(array, before));
            }
        )* };
    }
    for_each_element!(filled_of);
    None
}

/// The array of NumPy of an object: what has DLPack's interface alone too, and arrays of bfloat16 of other packages as floats of 32 bits.
fn numpy_array<'py>(object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    if object.cast::<PyUntypedArray>().is_ok() {
        return Ok(object.clone());
    }
    let numpy = object.py().import("numpy")?;
    let has = |name| object.hasattr(name).unwrap_or(false);
    if has("__dlpack__") {
        let is_half = object.getattr("dtype").and_then(|dtype| dtype.str()?.extract::<String>());
        if is_half.is_ok_and(|name| name == "torch.bfloat16") {
            return numpy.call_method1("from_dlpack", (object.call_method0("float")?,));
        }
        if !has("__array__") {
            return numpy.call_method1("from_dlpack", (object,));
        }
    }
    numpy.call_method1("asarray", (object,))
}

/// The value of an object as a tensor of this type.
pub(crate) fn read(
    object: &Bound<'_, PyAny>,
    qtype: &QType,
    before: Option<Arc<Tensor>>,
    bounds: &Bounds,
) -> Result<Value, Misfit> {
    let misfit = || Misfit::new(qtype, object);
    let QType::Tensor(scalar, rank) = qtype else { return Err(misfit()) };
    if is_masked(object) {
        return Err(Misfit::of(qtype, "a masked array: elements of tensors are never missing"));
    }
    let missing = || Misfit::of(qtype, "an array with nulls: elements of tensors are never missing");
    let misfit_of = |error| Misfit::of_raised(qtype, object, error);
    let whole = match Package::of(object).map_err(misfit_of)? {
        package
            if package != Package::Pyarrow && package != Package::Other
                || class_has(object, "columns").map_err(misfit_of)? =>
        {
            let made = frames(object.py()).and_then(|frames| frames.call_method1("tensor_array", (object,)));
            Some(made.map_err(misfit_of)?).filter(|made| !made.is_none()).ok_or_else(missing)?
        }
        _ if packages::whole(object, qtype, bounds)?.is_some_and(|array| array.null_count() > 0) => {
            return Err(missing());
        }
        _ => numpy_array(object).map_err(|_| misfit())?,
    };
    let untyped = whole.cast::<PyUntypedArray>().map_err(|_| misfit())?;
    if untyped.ndim() != usize::from(*rank) {
        return Err(Misfit::of(qtype, format!("an array of {} axes", untyped.ndim())));
    }
    let no_memory =
        || Misfit::of(qtype, format!("an array of {} elements, for which there is no memory", untyped.len()));
    if let Some(made) = filled_of(&whole, *scalar, before) {
        return made.map(Value::Tensor).ok_or_else(no_memory);
    }
    // Elements in another byte order are converted, and numbers to a type that has all of them. Lists of Python are converted to the model's type.
    let name = kind(untyped).map_err(|_| misfit())?;
    let wanted = dtype_of(*scalar).ok_or_else(misfit)?;
    let is_list = object.cast::<PyUntypedArray>().is_err() && !object.hasattr("dtype").unwrap_or(false);
    let fits = (wanted.starts_with('f') && !name.starts_with('b')) || wanted.starts_with(name.get(..1).unwrap_or(" "));
    let found = scalar_of_dtype(&name);
    // NumPy has no name for bfloat16: a package that has such arrays gives the type one.
    let shown = || whole.getattr("dtype").and_then(|dtype| dtype.str()?.extract::<String>());
    let is_half = name.starts_with('V') && *scalar == Scalar::Float32 && shown().is_ok_and(|name| name == "bfloat16");
    let converted = match found == Some(*scalar) || is_half || (is_list && fits && found.is_some()) {
        true => whole.call_method1("astype", (wanted,)).map_err(|_| misfit())?,
        false => {
            let found = shown().unwrap_or_else(|_| name.clone());
            let flat = whole.call_method0("ravel").map_err(misfit_of)?;
            let numbers = arrays::arrow_numbers(&flat, &name, None).map_err(misfit_of)?;
            let numbers = numbers.filter(|numbers| cembra_arrow::is_converted(numbers.data_type(), *scalar));
            let numbers = numbers.ok_or_else(|| Misfit::of(qtype, format!("an array of {found}")))?;
            let room = OutputRoom::of(Limits::default().array_bytes);
            let made = cembra_arrow::to_model_as(numbers, *scalar, &room).map_err(|error| match error {
                cembra_arrow::Error::Value { value, .. } => {
                    let of = scalar.short_name();
                    Misfit::of(qtype, format!("an array of {found} with {value}, which {of} has not exactly"))
                }
                other => Misfit::of(qtype, other.to_string()),
            })?;
            let py = object.py();
            let made = arrays::numpy_array(py, &made, || py.check_signals())
                .and_then(|made| made.call_method1("reshape", (whole.getattr("shape")?,)));
            made.map_err(misfit_of)?
        }
    };
    filled_of(&converted, *scalar, None).flatten().map(Value::Tensor).ok_or_else(no_memory)
}

macro_rules! arrays {
    ($($rust:ident $scalar:ident),*) => {
        /// The elements of a tensor as an array of NumPy, moved if nobody else has them.
        pub(crate) fn moved(py: Python<'_>, tensor: Arc<Tensor>) -> PyResult<Bound<'_, PyAny>> {
            let extents = tensor.extents().to_vec();
            let tensor = Arc::try_unwrap(tensor).unwrap_or_else(|shared| (*shared).clone());
            let raised = |error| crate::errors::of_text(error, "", None);
            Ok(match tensor.scalar_type() {
                $(Scalar::$scalar => {
                    let elements = tensor.into_vec::<$rust>().map_err(raised)?;
                    PyArray1::from_vec(py, elements).reshape(extents)?.into_any()
                })*
                // There are tensors of no other elements.
                _ => py.None().into_bound(py),
            })
        }

        /// An array of these elements and extents that owns its memory: NumPy has views count as references to it.
        fn owned<'py>(py: Python<'py>, tensor: &Tensor) -> PyResult<Bound<'py, PyAny>> {
            Ok(match tensor.scalar_type() {
                $(Scalar::$scalar => arrays::zeros_of::<$rust, _>(py, tensor.extents())?.into_any(),)*
                // There are tensors of no other elements.
                _ => py.None().into_bound(py),
            })
        }

        /// Writes the elements into an array of NumPy that has their type and extents and lies in order; false if it does not.
        fn written(tensor: &Tensor, array: &Bound<'_, PyAny>) -> bool {
            $(
                if tensor.scalar_type() == Scalar::$scalar
                    && let Ok(array) = array.cast::<PyArrayDyn<$rust>>()
                    && array.shape() == tensor.extents()
                    && tensor.layout().is_row_major()
                    && let Some(elements) = <$rust>::of(tensor.data())
                    && let Ok(mut to) = array.try_readwrite()
                    && let Ok(to) = to.as_slice_mut()
                    && to.len() == elements.len()
                {
                    to.copy_from_slice(elements);
                    return true;
                }
            )*
            false
        }
    };
}

for_each_element!(arrays);

/// The elements in the array that was given before, if nobody else has it, or in a new one.
pub(crate) fn written_again<'py>(
    py: Python<'py>,
    tensor: &Tensor,
    given: &mut Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    #[expect(deprecated, reason = "the other way to count references goes by pointers")]
    let is_free = |before: &Py<PyAny>| before.get_refcnt(py) == 1;
    if let Some(before) = given
        && is_free(before)
        && written(tensor, before.bind(py))
    {
        return Ok(before.bind(py).clone());
    }
    let made = owned(py, tensor)?;
    if !written(tensor, &made) {
        // It does not lie in order.
        return moved(py, Arc::new(tensor.clone()));
    }
    *given = Some(made.clone().unbind());
    Ok(made)
}

/// True for a tensor whose elements are not lent by an array of NumPy.
pub(crate) fn is_own(value: &Value) -> bool {
    matches!(value, Value::Tensor(tensor) if !tensor.data().is_lent())
}
