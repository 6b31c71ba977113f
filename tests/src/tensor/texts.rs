//! Statements of the golden data as models in the text language: a line that assigns, behind the declarations of the tensors.

use super::check::Expected;
use super::{TensorEngine, TensorEngines, Wrong, differs};
use cembra::explain::print;
use cembra::values::print_type;
use cembra::{Error, Model, QType, Tensor, Value};
use std::collections::BTreeMap;

/// A statement as the text of a model.
pub(super) fn model(statement: &str, tensors: &BTreeMap<String, Tensor>) -> String {
    let mut text = String::new();
    for (name, tensor) in tensors {
        // There are at most 16 axes.
        let qtype = QType::Tensor(tensor.scalar_type(), tensor.extents().len() as u8);
        text.push_str(&format!("input {name}: {}\n", print_type(&qtype)));
    }
    text + statement + "\n"
}

/// Tensors for the names on the right of a statement, with as many axes as they have labels there.
pub(super) fn any_inputs(statement: &str) -> BTreeMap<String, Tensor> {
    let expression = statement.split_once(" = ").map_or(statement, |(_, expression)| expression);
    let mut tensors = BTreeMap::new();
    for use_of in expression.split_inclusive(')') {
        let Some((name, labels)) = use_of.split_once("(\"") else { continue };
        let name = name.rsplit(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or_default();
        let axes = labels.split(',').count();
        if let Ok(tensor) = Tensor::new(&vec![1; axes], vec![1.0]) {
            tensors.insert(name.to_owned(), tensor);
        }
    }
    tensors
}

/// The first output of a model on values, and not on tensors.
fn on_values(model: &Model, engine: &TensorEngine, tensors: &BTreeMap<String, Tensor>) -> Result<Tensor, Error> {
    let executor = model.compile(&engine.options)?;
    let given: Vec<Value> = executor.inputs().iter().map(|field| Value::from(tensors[&*field.name].clone())).collect();
    match executor.session().evaluate(&given)?.as_slice() {
        [Value::Tensor(tensor), ..] => Ok(Tensor::clone(tensor)),
        [Value::Scalar(scalar), ..] => Ok(Tensor::of_value(scalar)?),
        other => Err(differs(format!("outputs {other:?}"))),
    }
}

impl TensorEngines {
    /// Runs a statement as it is printed and read back.
    pub(super) fn run_text(
        &self,
        model: &Model,
        tensors: &BTreeMap<String, Tensor>,
        expected: &Expected,
    ) -> Result<(), Wrong> {
        let text = print(model.program());
        let wrong = |engine: &str, found: String| Wrong {
            engine: format!("{engine} of a text"),
            expected: format!("{expected:?} of\n{text}"),
            found,
        };
        let again = Model::parse(&text).map_err(|refused| wrong("reading", refused.to_string()))?;
        if again.program() != model.program() {
            return Err(wrong("reading", "another model".to_owned()));
        }
        for engine in &self.engines {
            let made = on_values(&again, engine, tensors);
            expected.check(&made).map_err(|(_, found)| wrong(engine.name, found))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_become_models() {
        let tensors = BTreeMap::from([("a".to_owned(), Tensor::scalar(1.0))]);
        let expected = "input a: tensor[f64, 0]\nc(\"i,j\") = a(\"\") * 2.0\n";
        assert_eq!(model("c(\"i,j\") = a(\"\") * 2.0", &tensors), expected);
        let any = any_inputs("r(\"i,j\") = (a(\"i,k\") - b(\"k\")) * -c1(\"k,l,i\")");
        let ranks: Vec<_> = any.iter().map(|(name, tensor)| (&**name, tensor.extents().len())).collect();
        assert_eq!(ranks, [("a", 2), ("b", 1), ("c1", 3)]);
    }
}
