//! Expressions of the golden data, which are trees, as graphs.

use super::Fields;
use super::array::{array, numbers};
use crate::problem::{Defect, Malformed, Unsupported};
use cembra::Error;
use cembra::Scalar;
use cembra::tensor::{Reduction, Slice, Tensor, TensorGraph, TensorNodeId};
use serde_json::Value as Json;
use std::collections::BTreeMap;

/// The inputs of a case, by name.
#[derive(Clone, Debug)]
pub(super) struct Inputs(Vec<(String, Tensor)>);

impl Inputs {
    pub(super) fn of(fields: &Fields) -> Result<Inputs, Malformed> {
        let Some(Json::Object(inputs)) = fields.get("inputs") else { return Err(Malformed::Field("inputs")) };
        let input = |(name, json): (&String, &Json)| Ok((name.clone(), array(json)?));
        inputs.iter().map(input).collect::<Result<Vec<_>, Malformed>>().map(Inputs)
    }

    pub(super) fn by_name(&self) -> BTreeMap<String, Tensor> {
        self.0.iter().cloned().collect()
    }

    pub(super) fn get_mut(&mut self, name: &str) -> Option<&mut Tensor> {
        self.0.iter_mut().find(|(known, _)| known == name).map(|(_, tensor)| tensor)
    }
}

/// A graph, the node of its result, and the tensors for its leaves; or why the library refuses it.
pub(super) type Made = Result<(TensorGraph, TensorNodeId, Vec<Tensor>), Error>;

/// Builds what a tree says.
pub(super) fn graph(tree: &Json, scalar: Scalar, inputs: &Inputs) -> Result<Made, Defect> {
    let mut build = Build { graph: TensorGraph::standard(), scalar, named: Vec::new(), tensors: Vec::new() };
    for (name, tensor) in &inputs.0 {
        match build.leaf(name, tensor.clone()) {
            Ok(leaf) => build.named.push((name.clone(), leaf)),
            Err(refused) => return Ok(Err(refused)),
        }
    }
    match build.node(tree) {
        Ok(output) => Ok(Ok((build.graph, output, build.tensors))),
        Err(Stop::Refused(refused)) => Ok(Err(refused)),
        Err(Stop::Defect(defect)) => Err(defect),
    }
}

/// The slices of each axis.
pub(super) fn slices(json: &Json) -> Result<Vec<Slice>, Malformed> {
    let list = |field: &'static str| numbers::<i64>(json.get(field).ok_or(Malformed::Field(field))?, field);
    let (starts, stops, steps) = (list("start")?, list("stop")?, list("step")?);
    let slice = |((start, stop), step): ((&i64, &i64), &i64)| {
        let made = Slice::new(*start as usize, *stop as usize, *step as isize);
        made.map_err(|_| Malformed::Field("step"))
    };
    starts.iter().zip(&stops).zip(&steps).map(slice).collect()
}

/// Why a graph is not built.
enum Stop {
    Refused(Error),
    Defect(Defect),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Stop::Refused(error)
    }
}

impl From<Malformed> for Stop {
    fn from(malformed: Malformed) -> Self {
        Stop::Defect(malformed.into())
    }
}

struct Build {
    graph: TensorGraph,
    scalar: Scalar,
    named: Vec<(String, TensorNodeId)>,
    tensors: Vec<Tensor>,
}

/// The operators on elements, as the data name them and as the registry does.
const ELEMENTWISE: &[(&str, &str)] = &[
    ("neg", "math.neg"),
    ("abs", "math.abs"),
    ("sqrt", "math.sqrt"),
    ("square", "tensor.square"),
    ("recip", "tensor.recip"),
    ("floor", "math.floor"),
    ("ceil", "math.ceil"),
    ("trunc", "tensor.trunc"),
    ("round", "tensor.round"),
    ("relu", "tensor.relu"),
    ("exp", "math.exp"),
    ("log", "math.log"),
    ("tanh", "math.tanh"),
    ("sin", "math.trig.sin"),
    ("cos", "math.trig.cos"),
    ("expm1", "math.expm1"),
    ("log1p", "math.log1p"),
    ("sigmoid", "math.sigmoid"),
    ("add", "math.add"),
    ("sub", "math.subtract"),
    ("mul", "math.multiply"),
    ("div", "math.divide"),
    ("maximum", "tensor.maximum"),
    ("minimum", "tensor.minimum"),
    ("pow", "math.pow"),
    ("lt", "bool.less"),
    ("le", "bool.less_equal"),
    ("gt", "bool.greater"),
    ("ge", "bool.greater_equal"),
    ("eq", "bool.equal"),
    ("ne", "bool.not_equal"),
    ("where", "tensor.where"),
];

impl Build {
    fn leaf(&mut self, name: &str, tensor: Tensor) -> Result<TensorNodeId, Error> {
        let leaf = self.graph.leaf(name, tensor.scalar_type(), tensor.extents())?;
        self.tensors.push(tensor);
        Ok(leaf)
    }

    /// The trees of the data nest a few levels deep.
    fn node(&mut self, tree: &Json) -> Result<TensorNodeId, Stop> {
        let Some([Json::String(operator), attributes, children @ ..]) = tree.as_array().map(Vec::as_slice) else {
            return Err(Malformed::Field("ast").into());
        };
        let attribute = |name: &'static str| attributes.get(name).ok_or(Malformed::Field(name));
        let axis = |name: &'static str| -> Result<usize, Malformed> {
            attribute(name)?.as_u64().map(|axis| axis as usize).ok_or(Malformed::Field(name))
        };
        let mut operands = Vec::with_capacity(children.len());
        for child in children {
            operands.push(self.node(child)?);
        }
        let first = operands.first().copied().ok_or(Malformed::Field("ast"));
        let g = &mut self.graph;
        Ok(match operator.as_str() {
            "in" => {
                let name = attribute("name")?.as_str().ok_or(Malformed::Field("name"))?;
                let found = self.named.iter().find(|(known, _)| known == name);
                found.map(|(_, leaf)| *leaf).ok_or(Malformed::Field("name"))?
            }
            "const" => g.constant(self.scalar, attribute("v")?.as_f64().ok_or(Malformed::Field("v"))?)?,
            "sum" | "prod" | "mean" | "max" | "min" => {
                let axes: Vec<usize> = numbers(attribute("axes")?, "axes")?;
                let keeps = attribute("keepdims")?.as_bool().unwrap_or(false);
                reduced(g, operator, first?, &axes, keeps)?
            }
            "transpose" => g.transpose(first?, &numbers::<usize>(attribute("perm")?, "perm")?)?,
            "reshape" => g.reshape(first?, &numbers::<usize>(attribute("shape")?, "shape")?)?,
            "broadcast_to" => g.broadcast(first?, &numbers::<usize>(attribute("shape")?, "shape")?)?,
            "squeeze" => {
                let axes: Vec<usize> = numbers(attribute("axes")?, "axes")?;
                let x = first?;
                let extents = g.extents(x).iter().enumerate();
                let kept: Vec<usize> = extents.filter(|(axis, _)| !axes.contains(axis)).map(|(_, e)| *e).collect();
                g.reshape(x, &kept)?
            }
            "slice" => {
                let slices = slices(attributes)?;
                g.slice(first?, &slices)?
            }
            "concat" => g.concat(&operands, axis("axis")?)?,
            "take" => {
                let indices: Vec<i64> = numbers(attribute("indices")?, "indices")?;
                let indices = self.leaf("", Tensor::new(&[indices.len()], indices)?)?;
                self.graph.take(first?, indices, axis("axis")?)?
            }
            "einsum" => g.einsum(attribute("spec")?.as_str().ok_or(Malformed::Field("spec"))?, &operands)?,
            "softmax" => g.softmax(first?, axis("axis")?)?,
            "log_softmax" => g.log_softmax(first?, axis("axis")?)?,
            "logsumexp" => g.logsumexp(first?, axis("axis")?)?,
            "softmax_xent" => g.softmax_cross_entropy(first?, *operands.get(1).ok_or(Malformed::Field("ast"))?)?,
            "layernorm" => {
                let eps = attribute("eps")?.as_f64().ok_or(Malformed::Field("eps"))?;
                g.layer_norm(first?, axis("axis")?, eps)?
            }
            other => match ELEMENTWISE.iter().find(|(name, _)| *name == other) {
                Some((_, name)) => g.apply(name, &operands)?,
                None => return Err(Stop::Defect(Unsupported::Operator(other.to_owned()).into())),
            },
        })
    }
}

fn reduced(
    g: &mut TensorGraph,
    operator: &str,
    x: TensorNodeId,
    axes: &[usize],
    keeps: bool,
) -> Result<TensorNodeId, Error> {
    let mut extents = g.extents(x).to_vec();
    let made = match operator {
        "sum" => g.reduce(Reduction::Sum, x, axes)?,
        "prod" => g.reduce(Reduction::Product, x, axes)?,
        "max" => g.reduce(Reduction::Max, x, axes)?,
        "min" => g.reduce(Reduction::Min, x, axes)?,
        _ => g.mean(x, axes)?,
    };
    axes.iter().for_each(|axis| extents[*axis] = 1);
    if keeps { g.reshape(made, &extents) } else { Ok(made) }
}
