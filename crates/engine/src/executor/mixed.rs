//! Compiled models with tensors and other values: up to three executables, one after the other. Values that tensors take are computed first, as
//! in any model; then the tensors; then the rest, which may have tensors again and is such a model then.

use crate::executor::{Executable, PartMemory};
use crate::options::signature::Field;
use crate::rows::ArrayView;
use crate::tensors::lowering::{Origin, tensor_of};
use cembra_expr::{Input, Program};
use cembra_native::Tier;
use cembra_runtime::{ArrayKind, QType};
use cembra_tensor::Tensor;
use cembra_value::RunTerms;
use cembra_value::{Array, Error, Span, Value, with_data};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// A part of a model: its executable, and the source of each of its inputs.
#[derive(Debug)]
pub(crate) struct ModelPart {
    executable: Arc<Executable>,
    inputs: Vec<PartInput>,
}

/// Where an input of a part comes from.
#[derive(Clone, Copy, Debug)]
enum PartInput {
    /// An input of the model.
    OfModel(usize),
    /// An output of the part before.
    OfPart(usize),
}

/// A model with tensors and other values.
#[derive(Debug)]
pub(crate) struct MixedModel {
    /// Those of all parts, in the order of the program.
    inputs: Box<[Field]>,
    outputs: Box<[Field]>,
    before: Option<ModelPart>,
    tensors: Option<ModelPart>,
    after: Option<ModelPart>,
    origins: Box<[Origin]>,
    /// Where the values that tensors take stand in the text, by the outputs of the first part.
    spans: Box<[Option<Span>]>,
}

/// The memory that a session keeps between runs, for each part of the model; `None` before the part's first run.
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

/// The positions of fields by their names.
fn positions(fields: &[Field]) -> FxHashMap<&str, usize> {
    fields.iter().enumerate().map(|(at, field)| (&*field.name, at)).collect()
}

impl MixedModel {
    /// Puts the executables of a program's parts together.
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
            // A part without a default for an input says less of it.
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
            let from = |field: &Field| {
                let of_model = positions.get(&*field.name).copied().map(PartInput::OfModel);
                of_model.or_else(|| crossing.get(&*field.name).copied().map(PartInput::OfPart))
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
        let span = |field: &Field| {
            let node = field.name.strip_prefix('%')?.parse().ok()?;
            program.graph.span(cembra_expr::NodeId::from_index(node))
        };
        let spans = outputs_of(&before).iter().map(span).collect();
        MixedModel { outputs, spans, before: first, tensors: second, after: third, origins: origins.into(), inputs }
    }

    fn parts(&self) -> impl Iterator<Item = &ModelPart> {
        [&self.before, &self.tensors, &self.after].into_iter().flatten()
    }
}

impl ModelPart {
    /// Evaluates the part on inputs of the model and outputs of the part before, each converted to its input's type.
    fn evaluate(
        &self,
        memory: &mut Option<PartMemory>,
        values: &[Value],
        terms: &RunTerms<'_>,
        given: &[Value],
        convert: &dyn Fn(&Value, &QType, usize) -> Result<Value, Error>,
    ) -> Result<Vec<Value>, Error> {
        let inputs = self.inputs.iter().zip(&self.executable.inputs).map(|(from, field)| match *from {
            PartInput::OfModel(at) => Ok(values[at].clone()),
            PartInput::OfPart(at) => convert(&given[at], &field.qtype, at),
        });
        let inputs = inputs.collect::<Result<Vec<_>, _>>()?;
        let memory = memory.get_or_insert_with(|| self.executable.part_memory());
        self.executable.evaluate_part(&inputs, terms, memory)
    }
}

impl MixedModel {
    /// Returns the inputs and the outputs, each with its type.
    pub(crate) fn fields(&self) -> [Box<[Field]>; 2] {
        [self.inputs.clone(), self.outputs.clone()]
    }

    /// The tier of the machine code of elements of tensors; `None` if the interpreter runs them.
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
            before = part.evaluate(&mut memory.before, values, terms, &[], &|value, _, _| Ok(value.clone()))?;
        }
        if let Some(part) = &self.tensors {
            let convert = |value: &Value, qtype: &QType, at: usize| match (value, qtype) {
                (Value::Array(_, array), QType::Tensor(..)) => {
                    let span = self.spans.get(at).copied().flatten().unwrap_or_default();
                    Ok(Value::from(tensor_of(array).map_err(|error| error.at(span))?))
                }
                _ => Ok(value.clone()),
            };
            tensors = part.evaluate(&mut memory.tensors, values, terms, &before, &convert)?;
        }
        if let Some(part) = &self.after {
            let convert = |value: &Value, qtype: &QType, _: usize| match (value, qtype) {
                (Value::Tensor(tensor), QType::Array(..)) => {
                    Ok(Value::Array(ArrayKind::Dense, array_of(tensor).into()))
                }
                _ => Ok(value.clone()),
            };
            after = part.evaluate(&mut memory.after, values, terms, &tensors, &convert)?;
        }
        results.extend(self.origins.iter().filter_map(|origin| match *origin {
            Origin::Before(at) => before.get(at).cloned(),
            Origin::Tensors(at) => tensors.get(at).cloned(),
            Origin::After(at) => after.get(at).cloned(),
        }));
        Ok(())
    }
}

/// A tensor of one axis as an array.
fn array_of(tensor: &Tensor) -> Array {
    with_data!(tensor.row_major().data(), elements => ArrayView::new(elements).array())
}
