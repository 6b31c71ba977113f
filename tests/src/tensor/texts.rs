//! Statements of the golden data as models in the text language, where its grammar has them: assignments with `=`. The inputs are declared,
//! the target is an output.

use super::check::Expected;
use super::tree::Inputs;
use super::{TensorEngines, Wrong};
use cembra::print_type;
use cembra::tensor::{Tensor, TensorModel};
use cembra::{Model, QType};
use std::collections::BTreeMap;

/// The output, which must not be called as an input is.
const OUTPUT: &str = "made";

/// A statement as the text of a model; none if it is no plain assignment.
fn model(statement: &str, tensors: &BTreeMap<String, Tensor>) -> Option<String> {
    let (target, expression) = statement.split_once(" = ")?;
    let labels = target.split_once('(').map_or("(\"\")", |(name, _)| &target[name.len()..]);
    let mut text = String::new();
    for (name, tensor) in tensors {
        // There are at most 16 axes.
        let qtype = QType::Tensor(tensor.scalar_type(), tensor.extents().len() as u8);
        text.push_str(&format!("input {name}: {}\n", print_type(&qtype)));
    }
    text.push_str(&format!("output {OUTPUT}{labels} = {expression}\n"));
    Some(text)
}

impl TensorEngines {
    /// Runs a statement as a model, read from text, and as it is printed.
    pub(super) fn run_text(&self, statement: &str, inputs: &Inputs, expected: &Expected) -> Result<(), Wrong> {
        let tensors = inputs.by_name();
        let Some(text) = model(statement, &tensors) else { return Ok(()) };
        let wrong = |engine: &str, found: String| Wrong {
            engine: format!("{engine} of a text"),
            expected: format!("{expected:?} of\n{text}"),
            found,
        };
        let printed = Model::parse(&text).map(|model| cembra::print(model.program()));
        let read = printed.and_then(|printed| TensorModel::parse(&printed));
        let model = read.map_err(|refused| wrong("reading", refused.to_string()))?;
        for (engine, evaluator) in &self.evaluators {
            let made = model.evaluate(evaluator, &tensors);
            let made = made.map(|outputs| outputs.into_iter().next().map(|(_, tensor)| tensor));
            match made {
                Ok(Some(tensor)) => expected.check(&Ok(tensor)),
                Ok(None) => Err((String::new(), "no output".to_owned())),
                Err(refused) => expected.check(&Err(refused)),
            }
            .map_err(|(_, found)| wrong(engine, found))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_become_outputs() {
        let tensors = BTreeMap::from([("a".to_owned(), Tensor::scalar(1.0))]);
        let text = |statement| model(statement, &tensors);
        let expected = "input a: tensor[f64, 0]\noutput made(\"i,j\") = a(\"\") * 2.0\n";
        assert_eq!(text("c(\"i,j\") = a(\"\") * 2.0").as_deref(), Some(expected));
        assert_eq!(text("c += a(\"\")"), None);
    }
}
