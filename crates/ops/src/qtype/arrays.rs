//! Operators on the types of arrays and edges: tests of types, and the types of the shapes and edges that belong to an array
//! or edge type.

use super::{TypeContainer, by_scalar, mask, types};
use crate::array::edge_parts::{child_kind, parent_kind};
use crate::definition::{Meaning, OpDef, ex, param};
use crate::function::HIGHER_ORDER;
use cembra_expr::ArgumentForm;
use cembra_runtime::{ArrayKind, EdgeType, QType, ShapeType};
use cembra_value::Value;

/// The type of the shape of one side of an edge type; `NOTHING` if the type is not an edge.
fn side(qtype: &QType, kind: fn(EdgeType) -> Option<ArrayKind>) -> QType {
    match qtype {
        QType::Edge(edge) => kind(*edge).map_or(QType::Shape(ShapeType::OptionalScalar), QType::ArrayShape),
        _ => QType::Nothing,
    }
}

pub(crate) static GET_CHILD_SHAPE_QTYPE: OpDef = of_types!(
    "qtype.get_child_shape_qtype",
    [x],
    "The type of the shape of the elements that edges of the type `x` put into groups; `NOTHING` if `x` is not an edge type.",
    Value::Type(side(&x, child_kind)),
    ["qtype.get_child_shape_qtype(DENSE_ARRAY_TO_SCALAR_EDGE) == DENSE_ARRAY_SHAPE" => "present"]
);

pub(crate) static GET_PARENT_SHAPE_QTYPE: OpDef = of_types!(
    "qtype.get_parent_shape_qtype",
    [x],
    "The type of the shape of the groups of edges of the type `x`; `NOTHING` if `x` is not an edge type.",
    Value::Type(side(&x, parent_kind)),
    ["qtype.get_parent_shape_qtype(DENSE_ARRAY_TO_SCALAR_EDGE) == OPTIONAL_SCALAR_SHAPE" => "present"]
);

pub(crate) static GET_EDGE_QTYPE: OpDef = of_types!(
    "qtype.get_edge_qtype",
    [x],
    "The type of edges from arrays of the type `x` to other arrays; `NOTHING` if `x` is not an array type.",
    Value::Type(match x {
        QType::Array(kind, _) => QType::Edge(EdgeType::Arrays(kind)),
        _ => QType::Nothing,
    }),
    ["qtype.get_edge_qtype(QTYPE{[f32?]}) == QTYPE{edge}" => "present", "qtype.get_edge_qtype(f32) == NOTHING" => "present"]
);

pub(crate) static GET_EDGE_TO_SCALAR_QTYPE: OpDef = of_types!(
    "qtype.get_edge_to_scalar_qtype",
    [x],
    "The type of edges from scalars, optionals or arrays of the type `x` to a scalar; `NOTHING` for every other type.",
    Value::Type(by_scalar(&x, |_, form| QType::Edge(match form {
        TypeContainer::Array(kind) => EdgeType::ToScalar(kind),
        TypeContainer::Bare | TypeContainer::Optional => EdgeType::Scalars,
    }))),
    ["qtype.get_edge_to_scalar_qtype(QTYPE{[f32?]}) == DENSE_ARRAY_TO_SCALAR_EDGE" => "present"]
);

pub(crate) static IS_EDGE: OpDef = question!(
    "qtype.is_edge_qtype",
    "Present for a type of edges.",
    |x| matches!(x, QType::Edge(_)),
    ["qtype.is_edge_qtype(QTYPE{edge})" => "present", "qtype.is_edge_qtype(QTYPE{[f32?]})" => "missing"]
);

pub(crate) static IS_EDGE_TO_SCALAR: OpDef = question!(
    "qtype.is_edge_to_scalar_qtype",
    "Present for a type of edges to a scalar, which put all elements into one group.",
    |x| matches!(x, QType::Edge(edge) if parent_kind(edge).is_none()),
    ["qtype.is_edge_to_scalar_qtype(DENSE_ARRAY_TO_SCALAR_EDGE)" => "present", "qtype.is_edge_to_scalar_qtype(QTYPE{edge})" => "missing"]
);

pub(crate) static IS_ARRAY: OpDef = question!(
    "qtype.is_array_qtype",
    "Present for a type of arrays.",
    |x| matches!(x, QType::Array(..)),
    ["qtype.is_array_qtype(QTYPE{[f32?]})" => "present", "qtype.is_array_qtype(f32?)" => "missing"]
);

pub(crate) static IS_DENSE_ARRAY: OpDef = question!(
    "qtype.is_dense_array_qtype",
    "Present for a type of dense arrays.",
    |x| matches!(x, QType::Array(ArrayKind::Dense, _)),
    ["qtype.is_dense_array_qtype(QTYPE{[f32?]})" => "present", "qtype.is_dense_array_qtype(ARRAY_FLOAT32)" => "missing"]
);

pub(crate) static IS_ARRAY_SHAPE: OpDef = question!(
    "qtype.is_array_shape_qtype",
    "Present for the type of the shape of an array.",
    |x| matches!(x, QType::ArrayShape(_)),
    ["qtype.is_array_shape_qtype(ARRAY_SHAPE)" => "present", "qtype.is_array_shape_qtype(SCALAR_SHAPE)" => "missing"]
);
