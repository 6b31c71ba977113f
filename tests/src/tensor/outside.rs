//! Products by labels for programs outside of this one: a request is a line of JSON, and so is what comes of it. `tests/outside` has the
//! programs; here is what they ask.

use super::array::{array, numbers};
use super::check::kind_of;
use super::{Fields, Subject, TensorEngine, einsum, first, only, text};
use crate::problem::Malformed;
use cembra::tensor::{Data, HalfTensor, Layout, TensorGraph, TensorNodeId, f16};
use cembra::{Error, Tensor};
use cembra_tensor::Operation;
use serde_json::{Value as Json, json};
use std::sync::Arc;

/// The most terms that the reference is asked to add up: it takes the labels of a product all at once.
const MOST_TERMS: f64 = 3e7;

/// Answers a request: `{"spec": "ij,jk->ik", "operands": [ARRAY, ..]}`, with arrays as the golden data have them, and those
/// of `f16`, which are widened, and to which what comes of them alone is rounded. The answer is
/// `{"made": {WAY: ARRAY, ..}}`, with an array for each way in which cembra comes to the product (`reference`, `plan`, and `product` where
/// there are two operands), or `{"error": CODE, "message": TEXT}`.
///
/// # Errors
/// The line is not of this form.
pub fn answer(on: &TensorEngine, line: &str) -> Result<String, Malformed> {
    let fields: Fields = serde_json::from_str(line)?;
    let Some(Json::Array(operands)) = fields.get("operands") else { return Err(Malformed::Field("operands")) };
    let is_half = !operands.is_empty() && operands.iter().all(is_half);
    let tensors = operands.iter().map(read).collect::<Result<Vec<Tensor>, Malformed>>()?;
    let built = einsum(text(&fields, "spec")?, &tensors);
    let answer = match built.and_then(|(graph, product)| ways(on, &graph, product, &tensors)) {
        Ok(ways) => {
            let ways: serde_json::Map<String, Json> =
                ways.iter().map(|(way, tensor)| ((*way).to_owned(), written(tensor, is_half))).collect();
            json!({ "made": ways })
        }
        Err(error) => {
            let message = error.diagnostics()[0].message().to_owned();
            json!({ "error": kind_of(&error), "message": message })
        }
    };
    Ok(answer.to_string())
}

fn is_half(json: &Json) -> bool {
    json.get("dtype").is_some_and(|dtype| dtype == "f16")
}

/// An array of a request.
fn read(json: &Json) -> Result<Tensor, Malformed> {
    if !is_half(json) {
        return array(json);
    }
    let digits = json.get("hex").and_then(Json::as_str).ok_or(Malformed::Field("hex"))?;
    let element = |chunk: &[u8]| {
        let digits = std::str::from_utf8(chunk).ok()?;
        Some(f16::from_bits(u16::from_str_radix(digits, 16).ok()?))
    };
    let elements: Option<Vec<f16>> = digits.as_bytes().chunks(4).map(element).collect();
    let elements = elements.ok_or(Malformed::Field("hex"))?;
    let list = |field: &'static str| json.get(field).ok_or(Malformed::Field(field));
    let extents: Vec<usize> = numbers(list("shape")?, "shape")?;
    let strides: Vec<isize> = numbers(list("strides")?, "strides")?;
    let offset = json.get("offset").and_then(Json::as_u64).unwrap_or(0) as usize;
    let stored = Layout::strided(&extents, &strides, offset, elements.len())
        .and_then(|layout| HalfTensor::from_parts(Arc::new(elements), layout));
    Ok(stored.map_err(|_| Malformed::Field("strides"))?.widened())
}

/// The product in each way that there is.
fn ways(
    on: &TensorEngine,
    graph: &TensorGraph,
    product: TensorNodeId,
    tensors: &[Tensor],
) -> Result<Vec<(&'static str, Tensor)>, Error> {
    let mut ways = Vec::new();
    let node = graph.node(product);
    let Operation::Contract(labels) = &node.operation else { return Ok(ways) };
    let operands = on.evaluator.evaluate(graph, &node.operands, tensors)?;
    let mut extents = [1_usize; u8::MAX as usize + 1];
    for (own, operand) in labels.operands.iter().zip(&operands) {
        own.iter().zip(operand.extents()).for_each(|(label, extent)| extents[usize::from(*label)] = *extent);
    }
    let subject = Subject::Node(graph, product);
    if extents.iter().map(|extent| *extent as f64).product::<f64>() <= MOST_TERMS {
        ways.push(("reference", only(&subject.compile(&on.options)?.run_reference(tensors)?)?.clone()));
        // This also asks that a plan gives the same bits where its products are not put into another order.
        ways.push(("plan", first(on, subject, tensors)?));
    } else {
        ways.push(("plan", only(subject.compile(&on.options)?.session().run_tensors(tensors)?)?.clone()));
    }
    if let [left, right] = &operands[..] {
        ways.push(("product", on.evaluator.contract(labels, [left, right], &node.extents)?.0));
    }
    Ok(ways)
}

/// A tensor as the golden data have it, or rounded to `f16`.
fn written(tensor: &Tensor, is_half: bool) -> Json {
    fn digits<T: Copy>(elements: &[T], tensor: &Tensor, digits: impl Fn(T) -> String) -> String {
        tensor.positions().map(|at| digits(elements[at])).collect()
    }
    let (dtype, hex) = match tensor.data() {
        Data::Float32(_) if is_half => {
            // Floats are rounded, whatever they are.
            let stored = HalfTensor::<f16>::rounded(tensor).map(|stored| stored.to_vec()).unwrap_or_default();
            ("f16", stored.iter().map(|number| format!("{:04x}", number.to_bits())).collect())
        }
        Data::Bool(elements) => ("bool", digits(elements, tensor, |bit| u8::from(bit).to_string())),
        Data::Int32(elements) => ("i32", digits(elements, tensor, |number| format!("{number:08x}"))),
        Data::Int64(elements) => ("i64", digits(elements, tensor, |number| format!("{number:016x}"))),
        Data::Float32(elements) => ("f32", digits(elements, tensor, |number| format!("{:08x}", number.to_bits()))),
        Data::Float64(elements) => ("f64", digits(elements, tensor, |number| format!("{:016x}", number.to_bits()))),
    };
    json!({ "dtype": dtype, "shape": tensor.extents(), "hex": hex })
}
