//! Names and types: of an input or output, and of all of a model.

use cembra_runtime::QType;
use std::sync::Arc;

/// A named input or output.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Field {
    /// The name.
    pub name: Arc<str>,
    /// The type.
    pub qtype: QType,
}

/// Names and types of what goes into a model and what comes out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Signature {
    /// The inputs that the outputs need, in the order of the program.
    pub inputs: Vec<Field>,
    /// The outputs, the main one first.
    pub outputs: Vec<Field>,
}
