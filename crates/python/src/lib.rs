//! The compiled part of the Python package `cembra`, whose classes and functions the package's Python files re-export. The language and the
//! evaluation are in other crates. This crate converts values between Python objects and those of the library.
//!
//! | file | contents |
//! |---|---|
//! | `model`, `settings`, `signature` | the class `Model`, its text and options, and the types that it is compiled for |
//! | `session`, `terms` | the class `Session`: evaluations in the same memory; time limits, tokens and limits |
//! | `model_set` | the class `ModelSet`: the models of a folder |
//! | `scalars`, `arrays`, `tensors`, `values` | conversion of one value, from Python and to Python |
//! | `columns`, `masks`, `numbers` | many rows: NumPy and Arrow arrays as inputs and outputs |
//! | `phases` | many rows of models that call functions over columns |
//! | `lending`, `handing`, `pins`, `copies`, `overlap` | memory that is shared with other packages, kept in place, copied, or checked |
//! | `bounds` | the limits of imports |
//! | `moments` | NumPy's dates and times, of any unit |
//! | `edges` | the class `Edge`: the group of each element of an array |
//! | `user_operators`, `replay` | Python functions as operators, and a record of their last calls |
//! | `operators` | the list of operators that `cembra.M` is made from |
//! | `packages`, `exports` | imports from other packages, and arrays for them |
//! | `interrupt`, `signals`, `lock` | Ctrl-C during evaluations and conversions, and Python's global interpreter lock |
//! | `tables`, `outputs` | whole tables, such as data frames, and the form of outputs for many rows |
//! | `errors` | errors of the library as exceptions |

mod arrays;
mod bounds;
mod columns;
mod copies;
mod edges;
mod errors;
mod exports;
mod handing;
mod interrupt;
mod lending;
mod lock;
mod masks;
mod model;
mod model_set;
mod moments;
mod numbers;
mod operators;
mod outputs;
mod overlap;
mod packages;
mod phases;
mod pins;
mod replay;
mod scalars;
mod session;
mod settings;
mod signals;
mod signature;
mod tables;
mod tensors;
mod terms;
mod user_operators;
mod values;

use pyo3::prelude::*;

/// Returns the text of a model in its canonical layout. Comments are kept.
#[pyfunction]
fn format(py: Python<'_>, text: &str) -> PyResult<String> {
    lock::entered(py, || {
        cembra::program::format(text, user_operators::registry(), &cembra::Limits::default())
            .map_err(|error| errors::of_text(error, text, None))
    })
}

/// Returns true if the language writes this name without quotes.
#[pyfunction]
fn _is_plain_name(name: &str) -> bool {
    cembra::program::is_plain_name(name)
}

/// Returns the language's own name of a type, given by any of its names: `f32?` for `OPTIONAL_FLOAT32`.
#[pyfunction]
fn _shown_type(py: Python<'_>, name: &str) -> PyResult<String> {
    lock::entered(py, || {
        let parsed = cembra::values::parse_type(name).map_err(|error| errors::of_text(error, name, None))?;
        Ok(cembra::values::print_type(&parsed))
    })
}

#[pymodule]
fn _cembra(module: &Bound<'_, PyModule>) -> PyResult<()> {
    errors::add_to(module)?;
    lock::register(module)?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<model::Model>()?;
    module.add_class::<session::Session>()?;
    module.add_class::<model_set::ModelSet>()?;
    module.add_class::<interrupt::Token>()?;
    module.add_class::<edges::Edge>()?;
    module.add_function(wrap_pyfunction!(model::_load, module)?)?;
    module.add_function(wrap_pyfunction!(user_operators::_register, module)?)?;
    module.add_function(wrap_pyfunction!(operators::_operators, module)?)?;
    module.add_function(wrap_pyfunction!(operators::_has_operator, module)?)?;
    module.add_function(wrap_pyfunction!(model::_compile, module)?)?;
    module.add_function(wrap_pyfunction!(model::_rebuilt, module)?)?;
    module.add_function(wrap_pyfunction!(errors::_data_error, module)?)?;
    module.add_function(wrap_pyfunction!(packages::_families, module)?)?;
    module.add_function(wrap_pyfunction!(_is_plain_name, module)?)?;
    module.add_function(wrap_pyfunction!(_shown_type, module)?)?;
    module.add_function(wrap_pyfunction!(format, module)?)
}
