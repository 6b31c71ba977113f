//! The compiled half of the Python package `cembra`: what its Python files give to users is made here. Nothing of the language or of
//! evaluation is in this crate, only the way of values between Python's objects and the library's.
//!
//! | file | what it is about |
//! |---|---|
//! | `model`, `settings`, `signature` | the class `Model`, what it is made of, and what it is compiled for |
//! | `session`, `terms` | one evaluation after the other in the same memory, and what ends evaluations |
//! | `model_set` | the models of a folder |
//! | `scalars`, `arrays`, `tensors`, `values` | one value, from Python and to Python |
//! | `columns` | many rows: arrays of NumPy and of Arrow, in and out |
//! | `lending`, `pins`, `copies`, `overlap` | memory of others that is read where it is, that must not move, that is copied, or that is written |
//! | `moments` | NumPy's dates and times, of any unit |
//! | `edges` | which elements belong to which group |
//! | `user_operators`, `replay` | functions of Python as operators, and their last calls |
//! | `operators` | the operators, as Python's functions are made of them |
//! | `packages`, `exports` | objects of other packages, and arrays for them |
//! | `interrupt`, `signals` | what Ctrl-C ends, and looks at signals on the way |
//! | `tables`, `outputs` | whole tables, data frames among them, and what outputs of many rows become |
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

/// The text of a model in the one form that models are printed in. Comments stay.
#[pyfunction]
fn format(py: Python<'_>, text: &str) -> PyResult<String> {
    lock::entered(py, || {
        cembra::format(text, user_operators::registry(), &cembra::Limits::default())
            .map_err(|error| errors::of_text(error, text, None))
    })
}

/// True for a name that the language writes without quotes.
#[pyfunction]
fn _is_plain_name(name: &str) -> bool {
    cembra::is_plain_name(name)
}

/// A type as the language shows it, by any of its names: `f32?` of `OPTIONAL_FLOAT32`.
#[pyfunction]
fn _shown_type(py: Python<'_>, name: &str) -> PyResult<String> {
    lock::entered(py, || {
        let parsed = cembra::parse_type(name).map_err(|error| errors::of_text(error, name, None))?;
        Ok(cembra::print_type(&parsed))
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
