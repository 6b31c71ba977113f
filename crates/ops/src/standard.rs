//! The standard operators: their records, and the registry that consists of them.

use crate::definition::OpDef;
use crate::list::standard_operators;
use crate::{
    Registry, annotation, array, bitwise, calendar, cast, column, comparison, declared, derived, dict, external,
    function, logic, math, named_tuple, presence, qtype, random, sequence, shorthand, strings, structure, tensor,
    tuple, whole_tensors,
};
use std::sync::OnceLock;

macro_rules! records {
    ($($id:ident = $def:path;)*) => {
        static STANDARD: &[&OpDef] = &[$(&$def),*];
    };
}

standard_operators!(records);

impl Registry {
    /// Returns the registry of all operators that are built into the language.
    #[must_use]
    pub fn standard() -> &'static Registry {
        static REGISTRY: OnceLock<Registry> = OnceLock::new();
        REGISTRY.get_or_init(|| Registry::of(STANDARD))
    }
}
