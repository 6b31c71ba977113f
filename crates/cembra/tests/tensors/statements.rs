//! Lines that assign, run on tensors by name: the tensors are the inputs of a model, and what the lines make is there by name behind them.

use cembra::tensor::{Evaluator, Tensor, TensorModel, Written};
use cembra::{QType, print_type};
use std::collections::BTreeMap;

pub(crate) type Tensors = BTreeMap<String, Tensor>;

/// The lines as a model whose inputs are the tensors.
pub(crate) fn model(lines: &str, tensors: &Tensors) -> String {
    let mut text = String::new();
    for (name, tensor) in tensors {
        // There are at most 16 axes.
        let qtype = QType::Tensor(tensor.scalar_type(), tensor.extents().len() as u8);
        text.push_str(&format!("input {name}: {}\n", print_type(&qtype)));
    }
    text + lines
}

/// Runs lines on tensors, which are changed by them.
pub(crate) fn run(on: &Evaluator, lines: &str, tensors: &mut Tensors) -> Result<(), cembra::Error> {
    let model = TensorModel::parse(&model(lines, tensors))?;
    for (name, tensor) in model.evaluate(on, tensors)? {
        tensors.insert(name.to_string(), tensor);
    }
    Ok(())
}

/// Runs a line on tensors, whose value is written over the target's memory where it can be.
pub(crate) fn run_over(on: &Evaluator, line: &str, tensors: &mut Tensors) -> Result<Written, cembra::Error> {
    let model = TensorModel::parse(&model(line, tensors))?;
    let name = model.outputs()[0].name.to_string();
    let extents: Vec<&[usize]> = model.inputs().iter().map(|field| tensors[&*field.name].extents()).collect();
    let planned = model.plan(on, &extents)?;
    let mut inputs: Vec<Tensor> = model.inputs().iter().map(|field| tensors[&*field.name].clone()).collect();
    let target = model.inputs().iter().position(|field| *field.name == *name).unwrap_or(inputs.len());
    // This list owns the target's memory alone until the line is done: shared memory is not written over.
    drop(tensors.remove(&name));
    let written = planned.run_over(&mut inputs, target);
    if target < inputs.len() {
        tensors.insert(name, inputs.swap_remove(target));
    }
    Ok(written?)
}
