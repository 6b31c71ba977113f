//! Operators that query an edge (a mapping from the elements of an array to groups): the shapes and sizes of its two
//! sides, the size of each group, and the group of each element. The module also has `core.shape_of` for arrays.

use super::{
    ARRAY, ArrayForm, ArrayOperator, FullRule, any_edge_argument, array_argument, array_of, int64s, made, sure_edge,
};
use crate::definition::{OpDef, OverArrays, ex, param};
use crate::typing::{Argument, Signature, TypeFault, refuse};
use cembra_runtime::{ArrayKind, EdgeType, Fault, FaultKind, QType, Scalar, ShapeType};
use cembra_value::{EdgeForm, Value};

/// Default fields for the records of operators with an edge as their only operand.
const PART: OpDef = OpDef { params: &[param("edge")], ..ARRAY };

/// The typing and the kernel of `core.shape_of` for an operand that is an array.
pub(crate) static SHAPE_OF: ArrayOperator = ArrayOperator {
    form: ArrayForm::Edge,
    typing: |name, args| {
        let (kind, _) = array_argument(name, args, 0)?;
        Ok(Signature::unchanged(args, QType::ArrayShape(kind)))
    },
    evaluate: |args, ret| match ret {
        QType::ArrayShape(kind) => Ok(Value::ArrayShape(*kind, array_of(&args[0])?.len())),
        _ => Err(Fault::new(FaultKind::Invalid)),
    },
};

/// The type of the shape of one side of an edge: that of an array's shape, or of an optional's shape if the side is a
/// scalar.
const fn shape_type(side: Option<ArrayKind>) -> QType {
    match side {
        Some(kind) => QType::ArrayShape(kind),
        None => QType::Shape(ShapeType::OptionalScalar),
    }
}

/// Makes a shape of the type `ret`; if this is the shape of an array, it has `size` elements.
const fn shape(ret: &QType, size: usize) -> Value {
    match ret {
        QType::ArrayShape(kind) => Value::ArrayShape(*kind, size),
        _ => Value::Shape(ShapeType::OptionalScalar),
    }
}

/// The array kind (`DENSE_ARRAY` or `ARRAY`) of the child side of an edge: the elements that the edge groups. `None` if this side is a scalar.
pub(crate) const fn child_kind(edge: EdgeType) -> Option<ArrayKind> {
    match edge {
        EdgeType::Scalars => None,
        EdgeType::ToScalar(kind) | EdgeType::Arrays(kind) => Some(kind),
    }
}

/// The array kind (`DENSE_ARRAY` or `ARRAY`) of the parent side of an edge: the groups. `None` if this side is a scalar.
pub(crate) const fn parent_kind(edge: EdgeType) -> Option<ArrayKind> {
    match edge {
        EdgeType::Scalars | EdgeType::ToScalar(_) => None,
        EdgeType::Arrays(kind) => Some(kind),
    }
}

/// The array kind of an edge's `side`. Fails if this side is a scalar.
fn array_side(
    operator: &str,
    args: &[Argument<'_>],
    side: fn(EdgeType) -> Option<ArrayKind>,
) -> Result<ArrayKind, TypeFault> {
    let edge = any_edge_argument(operator, args, 0)?;
    side(edge).ok_or_else(|| TypeFault::mismatch(format!("{operator} does not take {}", QType::Edge(edge)), Some(0)))
}

pub(crate) static CHILD_SHAPE: OpDef = OpDef {
    name: "edge.child_shape",
    summary: "The shape of the elements of an edge.",
    over_arrays: OverArrays::Kernel(&ArrayOperator {
        form: ArrayForm::Edge,
        typing: |name, args| {
            let edge = any_edge_argument(name, args, 0)?;
            Ok(Signature::unchanged(args, shape_type(child_kind(edge))))
        },
        evaluate: |args, ret| Ok(shape(ret, sure_edge(&args[0])?.child_size())),
    }),
    examples: &[ex("core.const_with_shape(edge.child_shape(edge.from_sizes([2, 1])), 7)", "[7, 7, 7]")],
    ..PART
};

pub(crate) static PARENT_SHAPE: OpDef = OpDef {
    name: "edge.parent_shape",
    summary: "The shape of the groups of an edge; the shape of an optional for an edge to a scalar.",
    over_arrays: OverArrays::Kernel(&ArrayOperator {
        form: ArrayForm::Edge,
        typing: |name, args| {
            let edge = any_edge_argument(name, args, 0)?;
            Ok(Signature::unchanged(args, shape_type(parent_kind(edge))))
        },
        evaluate: |args, ret| Ok(shape(ret, sure_edge(&args[0])?.parent_size())),
    }),
    examples: &[ex("core.const_with_shape(edge.parent_shape(edge.from_sizes([2, 1])), 7)", "[7, 7]")],
    ..PART
};

pub(crate) static CHILD_SIZE: OpDef = OpDef {
    name: "edge.child_size",
    summary: "The number of elements of an edge, as an i64.",
    over_arrays: OverArrays::Kernel(&ArrayOperator {
        form: ArrayForm::Edge,
        typing: |name, args| {
            array_side(name, args, child_kind)?;
            Ok(Signature::unchanged(args, QType::INT64))
        },
        evaluate: |args, _| Ok(Value::from(sure_edge(&args[0])?.child_size() as i64)),
    }),
    examples: &[ex("edge.child_size(edge.from_sizes([2, 1]))", "i64{3}")],
    ..PART
};

pub(crate) static PARENT_SIZE: OpDef = OpDef {
    name: "edge.parent_size",
    summary: "The number of groups of an edge, as an i64.",
    over_arrays: OverArrays::Kernel(&ArrayOperator {
        form: ArrayForm::Edge,
        typing: |name, args| {
            array_side(name, args, parent_kind)?;
            Ok(Signature::unchanged(args, QType::INT64))
        },
        evaluate: |args, _| Ok(Value::from(sure_edge(&args[0])?.parent_size() as i64)),
    }),
    examples: &[ex("edge.parent_size(edge.from_sizes([2, 1]))", "i64{2}")],
    ..PART
};

pub(crate) static SIZES: OpDef = OpDef {
    name: "edge.sizes",
    summary: "The number of elements in each group of an edge; a scalar for an edge to a scalar.",
    over_arrays: OverArrays::Kernel(&ArrayOperator {
        form: ArrayForm::Edge,
        typing: |name, args| {
            let edge = any_edge_argument(name, args, 0)?;
            let groups = parent_kind(edge).map_or(QType::INT64, |kind| QType::Array(kind, Scalar::Int64));
            Ok(Signature::unchanged(args, groups))
        },
        evaluate: |args, ret| {
            let edge = sure_edge(&args[0])?;
            let sizes = match edge.form() {
                EdgeForm::Scalars | EdgeForm::ToScalar(_) => return Ok(Value::from(edge.child_size() as i64)),
                EdgeForm::Splits(points) => int64s(points.windows(2).map(|ends| Some(ends[1] - ends[0]))),
                EdgeForm::Mapping(_, parents) => {
                    let mut sizes = vec![0_i64; args.room_for(*parents, 16)?];
                    edge.groups().flatten().for_each(|group| sizes[group] += 1);
                    int64s(sizes.into_iter().map(Some))
                }
            };
            made(sizes, ret)
        },
    }),
    full: FullRule::Always,
    faults: &[FaultKind::ArenaLimit],
    examples: &[
        ex("edge.sizes(edge.from_split_points([0, 2, 2, 5]))", "[2, 0, 3]"),
        ex("edge.sizes(edge.from_mapping([1, missing, 1], 2))", "[0, 2]"),
    ],
    ..PART
};

/// Returns the signature of an operator whose result is an array with one integer for each element of an edge.
fn number_each(operator: &'static str, args: &[Argument<'_>]) -> Result<Signature, TypeFault> {
    let kind = array_side(operator, args, child_kind)?;
    Ok(Signature::unchanged(args, QType::Array(kind, Scalar::Int64)))
}

pub(crate) static MAPPING: OpDef = OpDef {
    name: "edge.mapping",
    summary: "The number of the group of each element of an edge, counted from 0; missing for an element in no group.",
    over_arrays: OverArrays::Kernel(&ArrayOperator {
        form: ArrayForm::Edge,
        typing: number_each,
        evaluate: |args, ret| {
            let edge = sure_edge(&args[0])?;
            // The sizes of groups may add up to more elements than fit into memory.
            args.room_for(edge.child_size(), 8)?;
            made(edge.mapping(), ret)
        },
    }),
    full: FullRule::Operands,
    faults: &[FaultKind::ArenaLimit],
    examples: &[ex("edge.mapping(edge.from_sizes([2, 0, 1]))", "[0, 0, 2]")],
    ..PART
};

pub(crate) static INDICES: OpDef = OpDef {
    name: "edge.indices",
    summary: "The position of each element of an edge in its group, counted from 0; missing for an element in no group.",
    over_arrays: OverArrays::Kernel(&ArrayOperator {
        form: ArrayForm::Edge,
        typing: number_each,
        evaluate: |args, ret| {
            let size = args.room_for(sure_edge(&args[0])?.child_size(), 24)?;
            let groups = args.groups(0, size)?;
            let mut positions = vec![None; size];
            groups.fold(&(), |(), element, position| positions[element] = Some(position as i64));
            made(int64s(positions), ret)
        },
    }),
    full: FullRule::Operands,
    faults: &[FaultKind::ArenaLimit],
    examples: &[
        ex("edge.indices(edge.from_sizes([2, 0, 3]))", "[0, 1, 0, 1, 2]"),
        ex("edge.indices(edge.from_mapping([0, 1, 0, missing, 1], 2))", "[0, 0, 1, NA, 1]"),
    ],
    ..PART
};

pub(crate) static AS_DENSE_ARRAY_EDGE: OpDef = OpDef {
    name: "edge.as_dense_array_edge",
    summary: "The edge between dense arrays that is equal to an edge between arrays in Arolla's other form, `ARRAY`. An edge between dense arrays is itself the result.",
    over_arrays: OverArrays::Kernel(&ArrayOperator {
        form: ArrayForm::Edge,
        typing: |name, args| {
            let to = match any_edge_argument(name, args, 0)? {
                EdgeType::ToScalar(_) => EdgeType::ToScalar(ArrayKind::Dense),
                EdgeType::Arrays(_) => EdgeType::Arrays(ArrayKind::Dense),
                EdgeType::Scalars => return refuse(0, format!("{name} does not take {}", args[0].qtype)),
            };
            Ok(Signature::unchanged(args, QType::Edge(to)))
        },
        evaluate: |args, _| Ok(sure_edge(&args[0])?.of_kind(ArrayKind::Dense).into()),
    }),
    examples: &[ex("edge.as_dense_array_edge(edge.from_sizes([2, 1]))", "edge.from_split_points([0, 2, 3])")],
    ..PART
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::array::ArrayOperands;
    use cembra_value::{Array, Edge};

    fn asked(operator: &OpDef, edge: Edge) -> Result<Value, Fault> {
        let OverArrays::Kernel(kernel) = operator.over_arrays else { panic!("no kernel") };
        let qtype = QType::Edge(edge.edge_type());
        let args = [Argument { qtype: &qtype, literal: None }];
        let ret = (kernel.typing)(operator.name, &args).expect("types").ret;
        let value = (kernel.evaluate)(&ArrayOperands::of_call(&[edge.into()]), &ret)?;
        assert!(value.qtype() == ret, "{value} is no {ret}");
        Ok(value)
    }

    #[test]
    fn sides_of_every_form() {
        let kind = ArrayKind::Sparse;
        let groups = int64s([Some(0), None, Some(2), Some(0)]);
        let mapping = || Edge::from_mapping(kind, groups.clone(), 3).expect("an edge");
        let array = |numbers: &[i64]| Value::Array(kind, int64s(numbers.iter().map(|n| Some(*n))).into());
        assert_eq!(asked(&SIZES, mapping()), Ok(array(&[2, 0, 1])));
        assert_eq!(asked(&MAPPING, mapping()), Ok(Value::Array(kind, Array::clone(&groups).into())));
        assert_eq!(asked(&CHILD_SHAPE, mapping()), Ok(Value::ArrayShape(kind, 4)));
        assert_eq!(asked(&PARENT_SHAPE, mapping()), Ok(Value::ArrayShape(kind, 3)));
        let whole = || Edge::to_scalar(kind, 3);
        assert_eq!(asked(&SIZES, whole()), Ok(Value::from(3_i64)));
        assert_eq!(asked(&MAPPING, whole()), Ok(array(&[0, 0, 0])));
        assert_eq!(asked(&PARENT_SHAPE, whole()), Ok(Value::Shape(ShapeType::OptionalScalar)));
        assert_eq!(asked(&SIZES, Edge::scalars()), Ok(Value::from(1_i64)));
        assert_eq!(asked(&CHILD_SHAPE, Edge::scalars()), Ok(Value::Shape(ShapeType::OptionalScalar)));
        let none = Edge::from_sizes(kind, []).expect("an edge");
        assert_eq!(asked(&SIZES, none.clone()), Ok(array(&[])));
        assert_eq!(asked(&MAPPING, none), Ok(array(&[])));
    }

    #[test]
    fn more_elements_than_there_can_be_are_not_listed() {
        let edge = || Edge::from_sizes(ArrayKind::Dense, [1 << 60]).expect("an edge");
        assert_eq!(asked(&MAPPING, edge()).map_err(|fault| fault.kind), Err(FaultKind::ArenaLimit));
        assert_eq!(asked(&CHILD_SIZE, edge()), Ok(Value::from(1_i64 << 60)));
    }

    #[test]
    fn a_side_that_is_a_scalar_has_no_size() {
        for (operator, edge) in [
            (&CHILD_SIZE, EdgeType::Scalars),
            (&MAPPING, EdgeType::Scalars),
            (&PARENT_SIZE, EdgeType::Scalars),
            (&PARENT_SIZE, EdgeType::ToScalar(ArrayKind::Dense)),
        ] {
            let OverArrays::Kernel(kernel) = operator.over_arrays else { panic!("no kernel") };
            let qtype = QType::Edge(edge);
            assert!((kernel.typing)(operator.name, &[Argument { qtype: &qtype, literal: None }]).is_err());
        }
    }
}
