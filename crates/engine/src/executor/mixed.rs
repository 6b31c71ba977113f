//! Compiled models with tensors and other values: up to three executables, which run one after the other. The first computes the values from which
//! tensors are made, the second computes the tensors, and the third computes the rest. If the third needs tensors again, it is a mixed model itself.

use crate::executor::{Executable, Executor, PartMemory};
use crate::options::signature::{Field, crossing_node};
use crate::rows::ArrayView;
use crate::tensors::evaluator::Evaluator;
use crate::tensors::lowering::{Origin, tensor_of};
use cembra_expr::{Input, Program};
use cembra_native::Tier;
use cembra_runtime::{ArrayKind, QType};
use cembra_tensor::Tensor;
use cembra_value::RunTerms;
use cembra_value::{Array, Error, Span, Value, with_data};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// A part of a mixed model (a model with tensors and other values): the part's executable, and the source of each of its inputs.
#[derive(Debug)]
pub struct ModelPart {
    executable: Arc<Executable>,
    inputs: Vec<PartInput>,
}

/// The source of one input of a mixed model's part: an input of the whole model, or an output of the preceding part.
#[derive(Clone, Copy, Debug)]
pub enum PartInput {
    /// The part's input is the input of the whole model with this index.
    OfModel(usize),
    /// The part's input is an output of the part that runs before it.
    OfPart {
        /// The index of the output among the preceding part's outputs.
        at: usize,
        /// The span of the value in the text of the model; empty if there is no text.
        span: Span,
    },
}

/// A model with tensors and other values, as up to three parts that are evaluated one after the other.
#[derive(Debug)]
pub struct MixedModel {
    /// The inputs of the whole model, which are the inputs of all parts, in the order of the program.
    inputs: Box<[Field]>,
    outputs: Box<[Field]>,
    /// The part that computes the values that do not depend on tensors; `None` if there are no such values.
    pub before: Option<ModelPart>,
    /// The part that computes tensors, from inputs of the model and outputs of `before`; `None` if the model computes no tensors.
    pub tensors: Option<ModelPart>,
    /// The part that computes the remaining values, from inputs of the model and outputs of `tensors`; `None` if no values remain. This part may
    /// contain tensors again.
    pub after: Option<ModelPart>,
    origins: Box<[Origin]>,
}

/// The memory that a session keeps between runs, for each part of a mixed model; `None` before the part's first run.
#[derive(Debug, Default)]
pub(crate) struct MixedMemory {
    before: Option<PartMemory>,
    tensors: Option<PartMemory>,
    after: Option<PartMemory>,
}

impl MixedMemory {
    pub(crate) fn memory_bytes(&self) -> usize {
        [&self.before, &self.tensors, &self.after].into_iter().flatten().map(PartMemory::memory_bytes).sum()
    }
}

/// Returns the outputs of a part; an empty slice if the model has no such part.
fn outputs_of(part: &Option<Arc<Executable>>) -> &[Field] {
    part.as_ref().map_or(&[], |part| &part.outputs)
}

/// Returns the indices of fields by their names.
fn positions(fields: &[Field]) -> FxHashMap<&str, usize> {
    fields.iter().enumerate().map(|(at, field)| (&*field.name, at)).collect()
}

impl MixedModel {
    /// Makes a mixed model from the executables of its parts.
    pub(crate) fn new(
        program: &Program,
        before: Option<Executable>,
        tensors: Option<Executable>,
        after: Option<Executable>,
        origins: Vec<Origin>,
    ) -> MixedModel {
        let [before, tensors, after] = [before, tensors, after].map(|part| part.map(Executable::started));
        let all = [&before, &tensors, &after];
        let mut known: FxHashMap<&str, &Field> = FxHashMap::default();
        for field in all.into_iter().flatten().flat_map(|part| &part.inputs) {
            // A part that has no default for an input knows less about the input.
            known
                .entry(&field.name)
                .and_modify(|other| {
                    if field.left_out().is_some() {
                        *other = field;
                    }
                })
                .or_insert(field);
        }
        let field = |input: &Input| known.get(&*input.name).map(|field| Field::clone(field));
        let inputs: Box<[Field]> = program.inputs.iter().filter_map(field).collect();
        let positions = positions(&inputs);
        let part = |executable: &Option<Arc<Executable>>, given: &Option<Arc<Executable>>| {
            let executable = executable.as_ref()?;
            let crossing = self::positions(outputs_of(given));
            let span = |name: &str| program.graph.span(crossing_node(name)?);
            let from = |field: &Field| {
                let of_part = |at| PartInput::OfPart { at, span: span(&field.name).unwrap_or_default() };
                let of_model = positions.get(&*field.name).copied().map(PartInput::OfModel);
                of_model.or_else(|| crossing.get(&*field.name).copied().map(of_part))
            };
            let inputs = executable.inputs.iter().filter_map(from).collect();
            Some(ModelPart { executable: executable.clone(), inputs })
        };
        let (first, second, third) = (part(&before, &None), part(&tensors, &before), part(&after, &tensors));
        let output = |origin: &Origin| {
            let (of, at) = match *origin {
                Origin::Before(at) => (&before, at),
                Origin::Tensors(at) => (&tensors, at),
                Origin::After(at) => (&after, at),
            };
            outputs_of(of).get(at).cloned()
        };
        let outputs = origins.iter().filter_map(output).collect();
        MixedModel { outputs, before: first, tensors: second, after: third, origins: origins.into(), inputs }
    }

    fn parts(&self) -> impl Iterator<Item = &ModelPart> {
        [&self.before, &self.tensors, &self.after].into_iter().flatten()
    }
}

impl ModelPart {
    /// Returns this part of the model as an executor of its own.
    #[must_use]
    pub fn executor(&self) -> Executor {
        Executor::of_part(&self.executable)
    }

    /// Returns the source of each input of this part of the model, in the order of the inputs.
    #[must_use]
    pub fn inputs(&self) -> &[PartInput] {
        &self.inputs
    }

    /// Converts an output of the preceding part of the model to the type of this part's input: an array to a tensor, or
    /// a tensor to an array. Values of other types are cloned.
    ///
    /// # Errors
    /// If an element of an array is missing, or has a type that tensors cannot have. The error is reported at `span`.
    pub fn converted(value: &Value, qtype: &QType, span: Span) -> Result<Value, Error> {
        match (value, qtype) {
            (Value::Array(_, array), QType::Tensor(..)) => {
                Ok(Value::from(tensor_of(array).map_err(|error| error.at(span))?))
            }
            (Value::Tensor(tensor), QType::Array(..)) => Ok(Value::Array(ArrayKind::Dense, array_of(tensor).into())),
            _ => Ok(value.clone()),
        }
    }

    /// Evaluates this part of the model. `values` are the inputs of the whole model, `given` the outputs of the
    /// preceding part.
    fn evaluate(
        &self,
        memory: &mut Option<PartMemory>,
        values: &[Value],
        terms: &RunTerms<'_>,
        given: &[Value],
    ) -> Result<Vec<Value>, Error> {
        let inputs = self.inputs.iter().zip(&self.executable.inputs).map(|(from, field)| match *from {
            PartInput::OfModel(at) => Ok(values[at].clone()),
            PartInput::OfPart { at, span } => ModelPart::converted(&given[at], &field.qtype, span),
        });
        let inputs = inputs.collect::<Result<Vec<_>, _>>()?;
        let memory = memory.get_or_insert_with(|| self.executable.part_memory());
        self.executable.evaluate_part(&inputs, terms, memory)
    }
}

impl MixedModel {
    /// Returns the inputs and outputs of the whole model, each with its type.
    pub(crate) fn fields(&self) -> [Box<[Field]>; 2] {
        [self.inputs.clone(), self.outputs.clone()]
    }

    /// The evaluator that compiles element expressions of tensors; `None` if the model computes no tensor.
    pub(crate) fn tensor_evaluator(&self) -> Option<Arc<Evaluator>> {
        self.parts().find_map(|part| part.executable.tensor_evaluator().ok().flatten())
    }

    /// Returns the values of the whole model's outputs, in their order. `before`, `tensors` and `after` are the outputs of the parts with these
    /// names.
    pub fn results<'v, V>(&self, before: &'v [V], tensors: &'v [V], after: &'v [V]) -> impl Iterator<Item = &'v V> {
        self.origins.iter().filter_map(move |origin| match *origin {
            Origin::Before(at) => before.get(at),
            Origin::Tensors(at) => tensors.get(at),
            Origin::After(at) => after.get(at),
        })
    }

    /// The tier of the machine code for elements of tensors; `None` if the interpreter evaluates elements, or if there are no tensors.
    pub(crate) fn tier(&self) -> Option<Tier> {
        self.tensors.as_ref().and_then(|part| part.executable.tier())
    }

    /// Returns the bytes of memory that the model and its code take.
    pub(crate) fn memory_bytes(&self) -> usize {
        size_of::<MixedModel>() + self.parts().map(|part| part.executable.memory_bytes()).sum::<usize>()
    }

    /// Evaluates the model on one value per input, each of exactly the input's type, and appends the outputs to `results`.
    pub(crate) fn evaluate(
        &self,
        values: &[Value],
        terms: &RunTerms<'_>,
        memory: &mut MixedMemory,
        results: &mut Vec<Value>,
    ) -> Result<(), Error> {
        let (mut before, mut tensors, mut after) = (Vec::new(), Vec::new(), Vec::new());
        if let Some(part) = &self.before {
            before = part.evaluate(&mut memory.before, values, terms, &[])?;
        }
        if let Some(part) = &self.tensors {
            tensors = part.evaluate(&mut memory.tensors, values, terms, &before)?;
        }
        if let Some(part) = &self.after {
            after = part.evaluate(&mut memory.after, values, terms, &tensors)?;
        }
        results.extend(self.results(&before, &tensors, &after).cloned());
        Ok(())
    }
}

/// Converts a tensor of one axis to an array.
fn array_of(tensor: &Tensor) -> Array {
    with_data!(tensor.row_major().data(), elements => ArrayView::new(elements).array())
}
