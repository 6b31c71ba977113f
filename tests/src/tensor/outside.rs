//! Products by labels for programs outside of this one: a request is a line of JSON, and so is what comes of it. `tests/outside` has the
//! programs; here is what they ask.

use super::array::array;
use super::{Fields, einsum, first, text};
use crate::problem::Malformed;
use cembra::tensor::{Data, Error, Evaluator, Graph, NodeId, Operation, Tensor};
use serde_json::{Value as Json, json};

/// The most terms that the reference is asked to add up: it takes the labels of a product all at once.
const MOST_TERMS: f64 = 3e7;

/// Answers a request: `{"spec": "ij,jk->ik", "operands": [ARRAY, ..]}`, with arrays as the golden data have them. The answer is
/// `{"made": {WAY: ARRAY, ..}}`, with an array for each way in which cembra comes to the product (`reference`, `plan`, and `product` where
/// there are two operands), or `{"error": CODE, "message": TEXT}`.
///
/// # Errors
/// The line is not of this form.
pub fn answer(on: &Evaluator, line: &str) -> Result<String, Malformed> {
    let fields: Fields = serde_json::from_str(line)?;
    let Some(Json::Array(operands)) = fields.get("operands") else { return Err(Malformed::Field("operands")) };
    let tensors = operands.iter().map(array).collect::<Result<Vec<Tensor>, Malformed>>()?;
    let made =
        einsum(text(&fields, "spec")?, &tensors).and_then(|(graph, product)| ways(on, &graph, product, &tensors));
    let answer = match made {
        Ok(ways) => {
            let ways: serde_json::Map<String, Json> =
                ways.iter().map(|(way, tensor)| ((*way).to_owned(), written(tensor))).collect();
            json!({ "made": ways })
        }
        Err(error) => json!({ "error": error.kind().as_str(), "message": error.to_string() }),
    };
    Ok(answer.to_string())
}

/// The product in each way that there is.
fn ways(
    on: &Evaluator,
    graph: &Graph,
    product: NodeId,
    tensors: &[Tensor],
) -> Result<Vec<(&'static str, Tensor)>, Error> {
    let mut ways = Vec::new();
    let node = graph.node(product);
    let Operation::Contract(labels) = &node.operation else { return Ok(ways) };
    let operands = on.evaluate(graph, &node.operands, tensors)?;
    let mut extents = [1_usize; u8::MAX as usize + 1];
    for (own, operand) in labels.operands.iter().zip(&operands) {
        own.iter().zip(operand.extents()).for_each(|(label, extent)| extents[usize::from(*label)] = *extent);
    }
    if extents.iter().map(|extent| *extent as f64).product::<f64>() <= MOST_TERMS {
        ways.push(("reference", on.evaluate(graph, &[product], tensors)?.swap_remove(0)));
        // This also asks that a plan gives the same bits where its products are not put into another order.
        ways.push(("plan", first(on, graph, product, tensors)?));
    } else {
        ways.push(("plan", on.plan(graph, &[product])?.run(tensors)?.swap_remove(0)));
    }
    if let [left, right] = &operands[..] {
        ways.push(("product", on.contract(labels, [left, right], &node.extents)?.0));
    }
    Ok(ways)
}

/// A tensor as the golden data have it.
fn written(tensor: &Tensor) -> Json {
    fn digits<T: Copy>(elements: &[T], tensor: &Tensor, digits: impl Fn(T) -> String) -> String {
        tensor.positions().map(|at| digits(elements[at])).collect()
    }
    let (dtype, hex) = match &**tensor.data() {
        Data::Bool(elements) => ("bool", digits(elements, tensor, |bit| u8::from(bit).to_string())),
        Data::Int32(elements) => ("i32", digits(elements, tensor, |number| format!("{number:08x}"))),
        Data::Int64(elements) => ("i64", digits(elements, tensor, |number| format!("{number:016x}"))),
        Data::Float32(elements) => ("f32", digits(elements, tensor, |number| format!("{:08x}", number.to_bits()))),
        Data::Float64(elements) => ("f64", digits(elements, tensor, |number| format!("{:016x}", number.to_bits()))),
    };
    json!({ "dtype": dtype, "shape": tensor.extents(), "hex": hex })
}
