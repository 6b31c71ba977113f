//! The operators of the registry, as Python's functions are made of them: names, parameters and what they do. What is known of an operator is in
//! its record; nothing is added here.

use crate::user_operators::registry;
use cembra::{Registry, reference};
use pyo3::prelude::*;

/// An operator: its full name, its short names, its parameters with whether they may be left out, whether the last one may be repeated, and
/// what it does.
type Operator = (&'static str, Vec<&'static str>, Vec<(&'static str, bool)>, bool, String);

/// The operators that a model may name, those of the user among them.
#[pyfunction]
pub(crate) fn _operators() -> Vec<Operator> {
    let all = reference::public(registry()).into_iter();
    all.map(|def| {
        let parameters = def.params.iter().map(|parameter| (parameter.name, parameter.default.is_some()));
        (def.name, def.aliases.to_vec(), parameters.collect(), def.variadic, reference::detail(def))
    })
    .collect()
}

/// True if the registry has an operator of this name, those among them that are only parts of others.
#[pyfunction]
pub(crate) fn _has_operator(name: &str) -> bool {
    Registry::standard().find(name).is_some()
}
