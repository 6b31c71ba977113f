//! A vocabulary for tests in which every name is an operator, so that no test needs the registry of operators.

use cembra_expr::{Callable, Integers, Vocabulary};

/// A vocabulary in which every name is an operator with any number of arguments.
pub(crate) struct Anything;

impl Vocabulary for Anything {
    fn resolve(&self, name: &str) -> Option<Callable<'_>> {
        Some(Callable {
            name: Box::leak(name.to_owned().into_boxed_str()),
            params: &[],
            variadic: true,
            of_one: None,
            integers: Integers::Stay,
        })
    }

    fn suggest(&self, _: &str) -> Vec<String> {
        Vec::new()
    }
}
