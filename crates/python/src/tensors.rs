//! Conversion of NumPy arrays to tensors, and back. The elements of an input are read in place if possible. Otherwise, or if they are few, the
//! elements are copied, if possible into the memory of the tensor from the last evaluation. The elements of an output are moved, or copied if a
//! session keeps them.

use crate::arrays::{self, is_masked, kind};
use crate::bounds::Bounds;
use crate::lending;
use crate::numbers::Numbers;
use crate::packages::{self, Package, class_has, frames};
use crate::scalars::{Misfit, dtype_of, scalar_of_dtype};
use arrow_array::Array;
use cembra::doors::OutputRoom;
use cembra::tensor::Element;
use cembra::{Limits, QType, Scalar, Tensor, Value};
use numpy::{PyArray1, PyArrayDyn, PyArrayMethods, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::prelude::*;
use std::sync::Arc;

/// Calls the macro `$then` with each element type of tensors, as pairs such as `f64 Float64`.
macro_rules! for_each_element {
    ($then:ident) => {
        $then! { f64 Float64, f32 Float32, i64 Int64, i32 Int32, bool Boolean }
    };
}

/// Makes the tensor of a NumPy array. Its elements are lent by the array, or copied: to `before`, the tensor of the last evaluation, if that has the
/// same extents and no other owner, else to new memory. `None` if there is no memory.
fn filled<T: Element + numpy::Element>(
    array: &Bound<'_, PyArrayDyn<T>>,
    before: Option<Arc<Tensor>>,
) -> Option<Arc<Tensor>> {
    // A truth value of NumPy may be any byte, so it is copied.
    if T::SCALAR != Scalar::Boolean
        && let Some(lent) = lending::tensor(array)
    {
        return Some(lent);
    }
    let array = lending::whole(array).ok()?;
    let numbers = Numbers::<T>::of_array(&array);
    let fits = |tensor: &Tensor| {
        tensor.extents() == array.shape() && tensor.scalar_type() == T::SCALAR && tensor.layout().is_row_major()
    };
    let write = |tensor: &mut Tensor| {
        let elements = tensor.own_data().and_then(T::of_part)?;
        match numbers.as_ref().and_then(Numbers::read) {
            Some(given) if given.len() == elements.len() => elements.copy_from_slice(given),
            _ => {
                let given = array.try_readonly().ok()?;
                elements.iter_mut().zip(given.as_array()).for_each(|(element, given)| *element = *given);
            }
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

/// Makes the tensor of a NumPy array with elements of type `scalar`. `None` if the array has elements of another type; `Some(None)` if there is no
/// memory.
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

/// Converts an object to a NumPy array. An object that has only DLPack's interface is converted too, and a bfloat16 tensor of PyTorch becomes an
/// array of 32-bit floats.
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

/// Converts a Python object to a tensor of type `qtype`. The memory of `before`, the tensor of the last evaluation, is reused if possible.
pub(crate) fn read(
    object: &Bound<'_, PyAny>,
    qtype: &QType,
    before: Option<Arc<Tensor>>,
    bounds: &Bounds,
) -> Result<Value, Misfit> {
    let misfit = || Misfit::new(qtype, object);
    let QType::Tensor(scalar, rank) = qtype else { return Err(misfit()) };
    if is_masked(object) {
        return Err(Misfit::of(qtype, "a masked array: elements of a tensor must not be missing"));
    }
    let missing = || Misfit::of(qtype, "an array with nulls: elements of a tensor must not be missing");
    let misfit_of = |error| Misfit::of_raised(qtype, object, error);
    let whole = match Package::of(object).map_err(misfit_of)? {
        _ if object.is_exact_instance_of::<PyUntypedArray>() => object.clone(),
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
    // Elements in another byte order are converted, and numbers of another type that fit into the tensor's type. Lists of Python are converted to the
    // tensor's type.
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
                    Misfit::of(qtype, format!("an array of {found} with {value}, which {of} cannot represent exactly"))
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
        /// Returns the elements of a tensor as a NumPy array. The elements are moved if the tensor has no other owner, else copied.
        pub(crate) fn moved(py: Python<'_>, tensor: Arc<Tensor>) -> PyResult<Bound<'_, PyAny>> {
            let extents = tensor.extents().to_vec();
            let tensor = Arc::try_unwrap(tensor).unwrap_or_else(|shared| (*shared).clone());
            let raised = |error| crate::errors::of_text(error, "", None);
            Ok(match tensor.scalar_type() {
                $(Scalar::$scalar => {
                    let elements = tensor.into_vec::<$rust>().map_err(raised)?;
                    PyArray1::from_vec(py, elements).reshape(extents)?.into_any()
                })*
                // Tensors have no other elements.
                _ => py.None().into_bound(py),
            })
        }

        /// Makes a NumPy array of zeros with the tensor's element type and extents. It owns its memory, so that NumPy counts views as references to
        /// it.
        fn owned<'py>(py: Python<'py>, tensor: &Tensor) -> PyResult<Bound<'py, PyAny>> {
            Ok(match tensor.scalar_type() {
                $(Scalar::$scalar => arrays::zeros_of::<$rust, _>(py, tensor.extents())?.into_any(),)*
                // Tensors have no other elements.
                _ => py.None().into_bound(py),
            })
        }

        /// Copies the elements of a tensor to a NumPy array. Returns false, and copies nothing, if the array has another type or other extents, or if
        /// one of both is not contiguous in row order.
        fn written(tensor: &Tensor, array: &Bound<'_, PyAny>) -> bool {
            $(
                if tensor.scalar_type() == Scalar::$scalar
                    && let Ok(array) = array.cast::<PyArrayDyn<$rust>>()
                    && array.shape() == tensor.extents()
                    && tensor.layout().is_row_major()
                    && let Some(elements) = <$rust>::of(tensor.data())
                    && let Some(mut to) = Numbers::<$rust>::of_array(array)
                    && let Some(to) = to.written()
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

/// Returns the elements of a tensor as a NumPy array. The array `given`, which was returned before, is overwritten if no other reference to it
/// exists. Otherwise a new array is made and stored in `given`.
pub(crate) fn written_again<'py>(
    py: Python<'py>,
    tensor: &Tensor,
    given: &mut Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    #[expect(deprecated, reason = "other functions that count references need a raw pointer")]
    let is_free = |before: &Py<PyAny>| before.get_refcnt(py) == 1;
    if let Some(before) = given
        && is_free(before)
        && written(tensor, before.bind(py))
    {
        return Ok(before.bind(py).clone());
    }
    let made = owned(py, tensor)?;
    if !written(tensor, &made) {
        // The tensor is not contiguous in row order.
        return moved(py, Arc::new(tensor.clone()));
    }
    *given = Some(made.clone().unbind());
    Ok(made)
}

/// Returns true if `value` is a tensor that owns its elements, so that they are not in the memory of a NumPy array.
pub(crate) fn is_own(value: &Value) -> bool {
    matches!(value, Value::Tensor(tensor) if !tensor.data().is_lent())
}
