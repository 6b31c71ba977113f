//! Names and types: of an input or output, and of all of a model.

use cembra_expr::print_input_type;
use cembra_prepare::TypedGraph;
use cembra_runtime::QType;
use cembra_value::Promise;
use std::sync::Arc;

/// A named input or output.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Field {
    /// The name.
    pub name: Arc<str>,
    /// The type.
    pub qtype: QType,
    /// What an input promises of its values beyond the type; outputs promise nothing.
    pub promise: Promise,
}

impl Field {
    /// A field that promises nothing.
    pub(crate) fn new(name: &Arc<str>, qtype: &QType) -> Field {
        Field { name: name.clone(), qtype: qtype.clone(), promise: Promise::Nothing }
    }

    /// The input of a prepared model that this leaf is.
    pub(crate) fn of_leaf(graph: &TypedGraph, leaf: u32, qtype: &QType) -> Field {
        Field { promise: graph.leaf_promise(leaf), ..Field::new(graph.leaf_name(leaf), qtype) }
    }

    /// True for an input that takes only arrays that have all of their elements.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.promise == Promise::Full
    }

    /// The type as the text language writes it, with what an input promises: `[f64]`, `splits`, `f32?`.
    #[must_use]
    pub fn spelled_type(&self) -> String {
        print_input_type(&self.qtype, self.promise)
    }
}

/// Names and types of what goes into a model and what comes out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Signature {
    /// The inputs that the outputs need, in the order of the program.
    pub inputs: Vec<Field>,
    /// The outputs, the main one first.
    pub outputs: Vec<Field>,
}
