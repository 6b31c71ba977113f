//! From a model to the text of a peer: one expression for each output, with everything shared written out, for none of the
//! peers has names for parts of an expression.

use super::Peer;
use crate::Error;
use crate::subject::model_error;
use crate::workload::Workload;
use cembra::program::NodeId;
use cembra::{Model, ScalarValue, Value};
use cembra_expr::Node;

/// The texts of a workload's outputs, or why there are none.
pub(super) fn of<W: Workload, P: Peer>() -> Result<Result<Vec<String>, String>, Error> {
    let model = Model::parse(W::SOURCE).map_err(model_error::<W>)?;
    let (graph, outputs) = (&model.program().graph, &model.program().outputs);
    let needed = graph.reachable(outputs.iter().map(|output| output.node));
    // Operands come before their users.
    let mut texts: Vec<String> = Vec::with_capacity(graph.len());
    for (index, needed) in needed.into_iter().enumerate() {
        let text = match graph.node(NodeId::from_index(index)) {
            _ if !needed => String::new(),
            Node::Leaf(name) => graph.name(name).to_string(),
            Node::Literal(value) => match literal::<P>(value) {
                Ok(text) => text,
                Err(reason) => return Ok(Err(reason)),
            },
            Node::Operator(name, operands) => {
                let operands: Vec<&str> = operands.iter().map(|operand| &*texts[operand.index()]).collect();
                match P::operator(graph.name(name), &operands) {
                    Some(text) => text,
                    None => return Ok(Err(format!("nothing like `{}`", graph.name(name)))),
                }
            }
            Node::Placeholder(_) => return Ok(Err("no functions".to_owned())),
        };
        texts.push(text);
    }
    Ok(Ok(outputs.iter().map(|output| texts[output.node.index()].clone()).collect()))
}

fn literal<P: Peer>(value: &Value) -> Result<String, String> {
    let number = match value {
        Value::Scalar(ScalarValue::Float32(value)) => f64::from(*value),
        Value::Scalar(ScalarValue::Float64(value) | ScalarValue::WeakFloat(value)) => *value,
        Value::Nothing => return P::MISSING.map(str::to_owned).ok_or_else(|| "no missing values".to_owned()),
        _ => return Err(format!("nothing like `{value}`")),
    };
    Ok(if number.is_sign_negative() { format!("({number:?})") } else { format!("{number:?}") })
}
