//! The names and types of a model's inputs and outputs: a `Field` describes one input or output, and a `Signature` all of them.

use cembra_array::fullness;
use cembra_expr::{NodeId, Program, print_input_type, spelled_default};
use cembra_plan::Plan;
use cembra_prepare::{Id, TypedGraph, TypedModel};
use cembra_runtime::{QType, Scalar};
use cembra_tensor::Tensor;
use cembra_value::Error;
use cembra_value::{Promise, ScalarValue, Value};
use std::cell::LazyCell;
use std::sync::Arc;

/// Returns the name of a value that one part of a mixed model passes to the next part. The name begins with a percent sign, which the name of an
/// input in a text cannot contain.
pub(crate) fn crossing_name(node: NodeId) -> Arc<str> {
    format!("%{}", node.index()).into()
}

/// Returns the node that computes a value which one part of a mixed model passes to the next, given the value's name `name`. `None` if `name` is the
/// name of an input or output of the model.
pub(crate) fn crossing_node(name: &str) -> Option<NodeId> {
    name.strip_prefix('%')?.parse().ok().map(NodeId::from_index)
}

/// An input or output of a model: its name, its type, what is promised about its values, and its default.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Field {
    /// The name of the input or output.
    pub name: Arc<str>,
    /// The type of the input's or output's values.
    pub qtype: QType,
    /// The promise about the values in addition to their type, such as that no element is missing. An input's promise is declared in the model. An
    /// output's promise is derived from the computation, and never concerns edges (groupings of elements).
    pub promise: Promise,
    /// The value that is used where the input is missing. Data may leave out an input that has a default. `None` for outputs, and for inputs without
    /// a default.
    pub default: Option<ScalarValue>,
    /// True if the input's default is `[]` or `{}`. The input is then a list or a dictionary, and data may leave it out or have `null` in its place.
    pub is_empty_by_default: bool,
    /// The labels of a tensor's axes with commas between them, if the text uses them to say how the input is cut into tiles. `None` for any other
    /// input, and for outputs.
    pub labels: Option<Arc<str>>,
}

impl Field {
    /// Returns the inputs of `plan`, with their defaults in `program`, and its outputs.
    pub(crate) fn of_plan(plan: &Plan, program: &Program) -> [Box<[Field]>; 2] {
        let field = |name, value| Field::new(name, &plan.value(value).qtype);
        let mut inputs: Box<[Field]> = plan.inputs().iter().map(|input| field(&input.name, input.value)).collect();
        Field::add_defaults(&mut inputs, program);
        [inputs, plan.outputs().iter().map(|output| field(&output.name, output.value)).collect()]
    }

    /// Makes a field without a promise about its values and without a default.
    pub fn new(name: &Arc<str>, qtype: &QType) -> Field {
        let (name, qtype, promise) = (name.clone(), qtype.clone(), Promise::Nothing);
        Field { name, qtype, promise, default: None, is_empty_by_default: false, labels: None }
    }

    /// Makes the field of the input that is leaf number `leaf` in the prepared model `graph`.
    pub fn of_leaf(graph: &TypedGraph, leaf: u32, qtype: &QType) -> Field {
        Field { promise: graph.leaf_promise(leaf), ..Field::new(graph.leaf_name(leaf), qtype) }
    }

    /// Sets the defaults of `inputs`, which must be some of the inputs of `program`, in its order.
    pub fn add_defaults(inputs: &mut [Field], program: &Program) {
        let mut declared = program.inputs.iter();
        for field in inputs {
            let input = declared.find(|input| input.name == field.name);
            field.default = input.filter(|_| field.qtype.is_optional()).and_then(|input| input.default.clone());
            field.is_empty_by_default = input.is_some_and(|input| input.is_empty_by_default);
        }
    }

    /// The error for `found`, a value that does not have the input's type.
    #[doc(hidden)]
    #[must_use]
    #[cold]
    pub fn misfit(&self, found: &Value) -> Error {
        Error::values(format!("input `{}` is {}, found {}", self.name, self.qtype, found.qtype()))
    }

    /// Returns true if the field is a value that one part of a mixed model passes to the next; false for inputs and outputs of the model.
    #[doc(hidden)]
    #[must_use]
    pub fn is_crossing(&self) -> bool {
        crossing_node(&self.name).is_some()
    }

    /// Converts a tensor to a value of the field's type. A tensor without axes becomes a scalar or a mask.
    ///
    /// # Errors
    /// If a tensor without axes has no element.
    #[doc(hidden)]
    pub fn value_of(&self, tensor: &Tensor) -> Result<Value, Error> {
        if !tensor.extents().is_empty() {
            return Ok(Value::from(tensor.clone()));
        }
        let bits = tensor.positions().next().map(|at| tensor.data().bits(at));
        let element = bits.and_then(|bits| ScalarValue::from_bits(tensor.scalar_type(), bits));
        let value = element.map(|element| match (element, &self.qtype) {
            (ScalarValue::Boolean(true), QType::Optional(Scalar::Unit)) => Value::Present(ScalarValue::Unit),
            (ScalarValue::Boolean(false), QType::Optional(Scalar::Unit)) => Value::Missing(Scalar::Unit),
            (element, QType::Optional(_)) => Value::Present(element),
            (element, _) => Value::Scalar(element),
        });
        value.ok_or_else(|| Error::values("a tensor without axes has no element"))
    }

    /// Converts a value of this input to a number, for a computation with tensors: a mask becomes a truth value, and a missing value becomes the
    /// default.
    ///
    /// # Errors
    /// If the value is not a number, or is missing and there is no default.
    #[doc(hidden)]
    pub fn tensor_number(&self, value: &Value) -> Result<ScalarValue, Error> {
        match (value, &self.default) {
            (Value::Present(ScalarValue::Unit), _) => Ok(ScalarValue::Boolean(true)),
            (Value::Missing(Scalar::Unit), _) => Ok(ScalarValue::Boolean(false)),
            (Value::Scalar(scalar) | Value::Present(scalar), _) => Ok(scalar.clone()),
            (Value::Missing(_), Some(default)) => Ok(default.clone()),
            (other, _) => Err(self.misfit(other)),
        }
    }

    /// Returns the outputs of a prepared model, each with its type.
    pub fn of_outputs(model: &TypedModel) -> Box<[Field]> {
        // Computed only if some output is an array.
        let full = LazyCell::new(|| fullness(model));
        let field = |(name, node): &(Arc<str>, Id)| {
            let qtype = model.graph.qtype(*node);
            let is_full = Promise::Full.is_of(qtype) && full[node.index()];
            let promise = if is_full { Promise::Full } else { Promise::Nothing };
            Field { promise, ..Field::new(name, qtype) }
        };
        model.outputs.iter().map(field).collect()
    }

    /// Returns true for an input that takes only arrays without missing elements, and for an output whose arrays are known to have none.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.promise == Promise::Full
    }

    /// The field's type as the text language writes it, with its promise: `[f64]`, `splits`, `f32?`, `tiled[f64, "i,j"]`.
    #[must_use]
    pub fn spelled_type(&self) -> String {
        print_input_type(&self.qtype, self.promise, self.labels.as_deref())
    }

    /// The input's type and default, as a text declares the input: `f32? = 0.5`.
    #[must_use]
    pub fn declaration(&self) -> String {
        match self.spelled_default() {
            Some(default) => format!("{} = {default}", self.spelled_type()),
            None => self.spelled_type(),
        }
    }

    /// The input's default as the text language writes it; `None` if there is none.
    #[must_use]
    pub fn spelled_default(&self) -> Option<String> {
        spelled_default(self.default.as_ref(), Some(&self.qtype).filter(|_| self.is_empty_by_default))
    }

    /// The empty list or dictionary, if that is the input's default; else `None`.
    #[must_use]
    pub fn empty_default(&self) -> Option<Value> {
        Value::empty_collection(&self.qtype).filter(|_| self.is_empty_by_default)
    }

    /// The value to use for an input that data leave out: a missing value, for which the model uses the default, or the empty list or dictionary that
    /// is the default. `None` for an input without a default.
    #[must_use]
    pub fn left_out(&self) -> Option<Value> {
        match &self.qtype {
            QType::Optional(scalar) if self.default.is_some() => Some(Value::Missing(*scalar)),
            _ => self.empty_default(),
        }
    }
}

/// The names and types of the inputs and outputs of a model.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Signature {
    /// The inputs that the model's outputs need, in the order of the program.
    pub inputs: Vec<Field>,
    /// The outputs of the model, the main output first.
    pub outputs: Vec<Field>,
}

impl Signature {
    /// Makes a signature from inputs and outputs. The first output is the main one.
    #[must_use]
    pub const fn new(inputs: Vec<Field>, outputs: Vec<Field>) -> Signature {
        Signature { inputs, outputs }
    }
}
