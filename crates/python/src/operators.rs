//! The operators of the registry, for the Python functions in `cembra.M`: names, parameters and documentation. All of it comes from the
//! operators' records.

use crate::user_operators::registry;
use cembra::operators::{Registry, reference};
use pyo3::prelude::*;

/// An operator: its full name, its short names, its parameters, a flag, and its documentation. A parameter has the flag true if it may be left out.
/// The operator's flag is true if the last parameter may be repeated.
type Operator = (&'static str, Vec<&'static str>, Vec<(&'static str, bool)>, bool, String);

/// Returns the operators that a model may name, including user-defined ones.
#[pyfunction]
pub(crate) fn _operators() -> Vec<Operator> {
    let all = reference::public(registry()).into_iter();
    all.map(|def| {
        let parameters = def.params.iter().map(|parameter| (parameter.name, parameter.default.is_some()));
        (def.name, def.aliases.to_vec(), parameters.collect(), def.variadic, reference::detail(def))
    })
    .collect()
}

/// Returns true if the language has an operator `name`, even if models cannot name it because only other operators use it.
#[pyfunction]
pub(crate) fn _has_operator(name: &str) -> bool {
    Registry::standard().find(name).is_some()
}
