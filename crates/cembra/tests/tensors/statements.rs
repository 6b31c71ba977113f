//! Helpers for tests of statements, such as `c("i") += a("i")`, on tensors by name: the tensors are the inputs of a
//! model, and the results of the statements are stored under their names.

use cembra::tensor::{OutputMemory, Tensor};
use cembra::values::print_type;
use cembra::{Executor, Model, Options, QType};
use std::collections::BTreeMap;

pub(crate) type Tensors = BTreeMap<String, Tensor>;

/// Returns the text of a model with the statements `lines`, whose inputs are the tensors.
pub(crate) fn model(lines: &str, tensors: &Tensors) -> String {
    let mut text = String::new();
    for (name, tensor) in tensors {
        // There are at most 16 axes.
        let qtype = QType::Tensor(tensor.scalar_type(), tensor.extents().len() as u8);
        text.push_str(&format!("input {name}: {}\n", print_type(&qtype)));
    }
    text + lines
}

/// Compiles the statements `lines`, and returns the executor and the tensors for its inputs.
fn compiled(lines: &str, tensors: &Tensors) -> Result<(Executor, Vec<Tensor>), cembra::Error> {
    let executor = Model::parse(&model(lines, tensors))?.compile(&Options::default())?;
    let inputs = executor.inputs().iter().map(|field| tensors[&*field.name].clone()).collect();
    Ok((executor, inputs))
}

/// Runs the statements `lines`, and stores their results in `tensors`.
pub(crate) fn run(lines: &str, tensors: &mut Tensors) -> Result<(), cembra::Error> {
    let (executor, inputs) = compiled(lines, tensors)?;
    let mut session = executor.session();
    for (field, tensor) in executor.outputs().iter().zip(session.run_tensors(&inputs)?) {
        tensors.insert(field.name.to_string(), tensor.clone());
    }
    Ok(())
}

/// Runs the statement `line`. Its value is written to the memory of its target, where that is possible. Returns which
/// memory was used.
pub(crate) fn run_over(line: &str, tensors: &mut Tensors) -> Result<OutputMemory, cembra::Error> {
    let (executor, mut inputs) = compiled(line, tensors)?;
    let name = executor.outputs()[0].name.to_string();
    let read = executor.inputs().iter().position(|field| *field.name == *name);
    let target = read.unwrap_or(inputs.len());
    // This list owns the target's memory alone until the line is done: shared memory is not written over. A target that the line does not
    // read is behind the inputs.
    let before = tensors.remove(&name).filter(|_| read.is_none());
    inputs.extend(before);
    let written = executor.session().run_over(&mut inputs, target);
    if target < inputs.len() {
        tensors.insert(name, inputs.swap_remove(target));
    }
    written
}
