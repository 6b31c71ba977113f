//! Compiled models with tensors and other values: up to three executables, one after the other. Values that tensors take are computed first, as
//! in any model; then the tensors; then the rest, which may have tensors again and is such a model then.

use crate::evaluation::RunTerms;
use crate::executor::{Executable, Executor};
use crate::rows::ArrayView;
use crate::session::Session;
use crate::signature::Field;
use crate::tensor_program::{Origin, tensor_of};
use crate::whole::{WholeMemory, WholeModel};
use cembra_expr::{Input, Program};
use cembra_native::Tier;
use cembra_runtime::{ArrayKind, QType};
use cembra_tensor::Tensor;
use cembra_value::{Array, Error, Span, Value, with_data};
use rustc_hash::FxHashMap;

/// A part of a model: its executable, and the source of each of its inputs.
#[derive(Debug)]
pub(crate) struct ModelPart {
    executor: Executor,
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

/// The sessions of the parts.
#[derive(Debug, Default)]
struct Sessions {
    before: Option<Session>,
    tensors: Option<Session>,
    after: Option<Session>,
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
        let [before, tensors, after] = [before, tensors, after].map(|part| part.map(Executor::from));
        let all = [&before, &tensors, &after];
        let mut known: FxHashMap<&str, &Field> = FxHashMap::default();
        for field in all.into_iter().flatten().flat_map(Executor::inputs) {
            // A part without a default for an input says less of it.
            known
                .entry(&field.name)
                .and_modify(|other| {
                    if field.default.is_some() {
                        *other = field;
                    }
                })
                .or_insert(field);
        }
        let field = |input: &Input| known.get(&*input.name).map(|field| Field::clone(field));
        let inputs: Box<[Field]> = program.inputs.iter().filter_map(field).collect();
        let positions = positions(&inputs);
        let part = |executor: &Option<Executor>, given: &Option<Executor>| {
            let executor = executor.as_ref()?;
            let crossing = self::positions(given.as_ref().map_or(&[], Executor::outputs));
            let from = |field: &Field| {
                let of_model = positions.get(&*field.name).copied().map(PartInput::OfModel);
                of_model.or_else(|| crossing.get(&*field.name).copied().map(PartInput::OfPart))
            };
            let inputs = executor.inputs().iter().filter_map(from).collect();
            Some(ModelPart { executor: executor.clone(), inputs })
        };
        let (first, second, third) = (part(&before, &None), part(&tensors, &before), part(&after, &tensors));
        let output = |origin: &Origin| {
            let (of, at) = match *origin {
                Origin::Before(at) => (&before, at),
                Origin::Tensors(at) => (&tensors, at),
                Origin::After(at) => (&after, at),
            };
            of.as_ref().and_then(|of| of.outputs().get(at)).cloned()
        };
        let outputs = origins.iter().filter_map(output).collect();
        let span = |field: &Field| {
            let node = field.name.strip_prefix('%')?.parse().ok()?;
            program.graph.span(cembra_expr::NodeId::from_index(node))
        };
        let spans = before.as_ref().map_or(&[][..], Executor::outputs).iter().map(span).collect();
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
        session: &mut Option<Session>,
        values: &[Value],
        terms: &RunTerms<'_>,
        given: &[Value],
        convert: &dyn Fn(&Value, &QType, usize) -> Result<Value, Error>,
    ) -> Result<Vec<Value>, Error> {
        let session = session.get_or_insert_with(|| self.executor.session());
        session.set_terms(terms);
        let mut inputs = Vec::with_capacity(self.inputs.len());
        for (from, field) in self.inputs.iter().zip(self.executor.inputs()) {
            inputs.push(match *from {
                PartInput::OfModel(at) => values[at].clone(),
                PartInput::OfPart(at) => convert(&given[at], &field.qtype, at)?,
            });
        }
        session.evaluate(&inputs)
    }
}

impl WholeModel for MixedModel {
    fn fields(&self) -> [Box<[Field]>; 2] {
        [self.inputs.clone(), self.outputs.clone()]
    }

    fn tier(&self) -> Option<Tier> {
        self.tensors.as_ref().and_then(|part| part.executor.tier())
    }

    fn has_rows(&self) -> bool {
        false
    }

    fn memory_bytes(&self) -> usize {
        size_of::<MixedModel>() + self.parts().map(|part| part.executor.memory_bytes()).sum::<usize>()
    }

    fn evaluate_values(
        &self,
        values: &[Value],
        terms: &RunTerms<'_>,
        memory: &mut WholeMemory,
        results: &mut Vec<Value>,
    ) -> Result<(), Error> {
        let sessions: &mut Sessions = memory.own();
        let (mut before, mut tensors, mut after) = (Vec::new(), Vec::new(), Vec::new());
        if let Some(part) = &self.before {
            before = part.evaluate(&mut sessions.before, values, terms, &[], &|value, _, _| Ok(value.clone()))?;
        }
        if let Some(part) = &self.tensors {
            let convert = |value: &Value, qtype: &QType, at: usize| match (value, qtype) {
                (Value::Array(_, array), QType::Tensor(..)) => {
                    let span = self.spans.get(at).copied().flatten().unwrap_or_default();
                    Ok(Value::from(tensor_of(array).map_err(|error| error.at(span))?))
                }
                _ => Ok(value.clone()),
            };
            tensors = part.evaluate(&mut sessions.tensors, values, terms, &before, &convert)?;
        }
        if let Some(part) = &self.after {
            let convert = |value: &Value, qtype: &QType, _: usize| match (value, qtype) {
                (Value::Tensor(tensor), QType::Array(..)) => {
                    Ok(Value::Array(ArrayKind::Dense, array_of(tensor).into()))
                }
                _ => Ok(value.clone()),
            };
            after = part.evaluate(&mut sessions.after, values, terms, &tensors, &convert)?;
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
