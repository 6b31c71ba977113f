//! Operators that make edges. An edge maps the elements of an array to groups; it is made from the sizes of contiguous
//! groups, the split points between them, the group of each element, or the shape of an array.

use super::{
    ARRAY, ArrayForm, ArrayOperator, FullRule, array_argument, array_of, int64s, integer_argument, integer_of, invalid,
};
use crate::definition::{OpDef, OverArrays, Typing, ex, param};
use crate::typing::{Argument, Signature, TypeFault, refuse};
use cembra_runtime::{ArrayKind, EdgeType, Fault, FaultKind, QType, Scalar};
use cembra_value::{Array, Edge, EdgeFault, Value};

/// The fault of an evaluation that would make an invalid edge (grouping), for example from descending split points.
pub(super) fn refused(fault: EdgeFault) -> Fault {
    match fault {
        EdgeFault::FirstPoint => invalid("split points must begin with 0"),
        EdgeFault::PointsDown => invalid("split points must not decrease"),
        EdgeFault::Group { .. } => {
            invalid("the group number of an element is negative, or not below the number of groups")
        }
        EdgeFault::Size(_) => invalid("the size of a group is negative, or there are too many elements"),
        _ => invalid("a size or split point is missing"),
    }
}

/// Returns the elements of an integer array. Fails if an element is missing.
pub(super) fn integers(array: &Array) -> Result<Vec<i64>, Fault> {
    let all = |at: usize| {
        let value = array.get(at).ok_or(refused(EdgeFault::Missing))?;
        integer_of(&Value::Scalar(value))
    };
    (0..array.len()).map(all).collect()
}

/// The signature of an operator that makes an edge (a grouping of an array's elements) from one integer array.
pub(super) fn of_integers(operator: &'static str, args: &[Argument<'_>]) -> Result<Signature, TypeFault> {
    match array_argument(operator, args, 0)? {
        (kind, Scalar::Int32 | Scalar::Int64) => Ok(Signature::unchanged(args, QType::Edge(EdgeType::Arrays(kind)))),
        _ => {
            let found = args[0].qtype;
            refuse(0, format!("{operator} expects an array of integers, found {found}"))
        }
    }
}

/// The kind (`DENSE_ARRAY` or `ARRAY`) of the two arrays that an edge of type `ret` connects: an array of elements and an array of groups.
pub(super) const fn kind_of(ret: &QType) -> ArrayKind {
    match ret {
        QType::Edge(EdgeType::ToScalar(kind) | EdgeType::Arrays(kind)) => *kind,
        _ => ArrayKind::Dense,
    }
}

/// Evaluates an operator that makes an edge: passes the elements of the integer array in the first operand to `make`.
fn evaluate(
    args: &[Value],
    ret: &QType,
    make: fn(ArrayKind, Vec<i64>) -> Result<Edge, EdgeFault>,
) -> Result<Value, Fault> {
    Ok(make(kind_of(ret), integers(array_of(&args[0])?)?).map_err(refused)?.into())
}

/// Default fields for the records of operators that make edges (groupings of an array's elements).
pub(super) const EDGE: OpDef = OpDef { faults: &[FaultKind::Invalid], ..ARRAY };

pub(crate) static FROM_SIZES: OpDef = OpDef {
    name: "edge.from_sizes",
    summary: "The edge of contiguous groups with the sizes `sizes`.",
    params: &[param("sizes")],
    over_arrays: OverArrays::Kernel(&ArrayOperator {
        form: ArrayForm::Edge,
        typing: of_integers,
        evaluate: |args, ret| evaluate(args, ret, Edge::from_sizes),
    }),
    full: FullRule::Always,
    examples: &[ex("math.sum([1, 2, 3], into=edge.from_sizes([1, 2]))", "[1, 5]")],
    ..EDGE
};

pub(crate) static FROM_SPLIT_POINTS: OpDef = OpDef {
    name: "edge.from_split_points",
    summary: "The edge of contiguous groups, each from one split point to before the next one. The first split point must be 0.",
    params: &[param("split_points")],
    over_arrays: OverArrays::Kernel(&ArrayOperator {
        form: ArrayForm::Edge,
        typing: of_integers,
        evaluate: |args, ret| evaluate(args, ret, Edge::from_split_points),
    }),
    full: FullRule::Always,
    examples: &[ex("math.sum([1, 2, 3], into=edge.from_split_points([0, 1, 3]))", "[1, 5]")],
    ..EDGE
};

pub(crate) static FROM_MAPPING: OpDef = OpDef {
    name: "edge.from_mapping",
    summary: "The edge that puts each element into the group with the number in `mapping`, counted from 0; there are `parent_size` groups. An element whose number is missing is in no group.",
    params: &[param("mapping"), param("parent_size")],
    faults: &[FaultKind::Invalid, FaultKind::ArenaLimit],
    over_arrays: OverArrays::Kernel(&ArrayOperator {
        form: ArrayForm::Edge,
        typing: |name, args| {
            integer_argument(name, args, 1)?;
            of_integers(name, args)
        },
        evaluate: |args, ret| {
            let array = array_of(&args[0])?;
            let parents = integer_of(&args[1])?;
            let parents = usize::try_from(parents).map_err(|_| invalid("`parent_size` must not be negative"))?;
            // Aggregations have a result per group, so the number of groups is limited too.
            let parents = args.room_for(parents, 0)?;
            let groups = match array.scalar() {
                Scalar::Int64 => Array::clone(array),
                _ => {
                    let numbers = array.numbers::<i32>().unwrap_or_default();
                    let groups = numbers.iter().enumerate();
                    int64s(groups.map(|(at, group)| array.is_present(at).then_some(i64::from(*group))))
                }
            };
            Ok(Edge::from_mapping(kind_of(ret), groups, parents).map_err(refused)?.into())
        },
    }),
    full: FullRule::First,
    examples: &[ex("math.sum([1, 2, 3, 4], into=edge.from_mapping([0, missing, 2, 0], 3))", "[5, 0, 3]")],
    ..EDGE
};

/// The signature of an operator that makes an edge from a shape: the edge that maps all elements of an array of this
/// shape to one group.
fn of_shape(operator: &'static str, args: &[Argument<'_>]) -> Result<Signature, TypeFault> {
    let edge = match args[0].qtype {
        QType::Shape(_) => EdgeType::Scalars,
        QType::ArrayShape(kind) => EdgeType::ToScalar(*kind),
        found => {
            let fault = TypeFault::mismatch(format!("{operator} expects a shape, found {found}"), Some(0));
            return Err(fault.hint("write `core.shape_of(x)`"));
        }
    };
    Ok(Signature::unchanged(args, QType::Edge(edge)))
}

pub(crate) static FROM_SHAPE: OpDef = OpDef {
    name: "edge.from_shape",
    summary: "The edge that puts all elements of an array of a shape into one group, so that an aggregation gives a scalar. For the shape of a scalar, the edge from a scalar to a scalar.",
    params: &[param("child_side_shape")],
    typing: Typing::Rule(|args| of_shape(FROM_SHAPE.name, args)),
    over_arrays: OverArrays::Kernel(&ArrayOperator {
        form: ArrayForm::Edge,
        typing: of_shape,
        evaluate: |args, _| match args[0] {
            Value::ArrayShape(kind, size) => Ok(Edge::to_scalar(kind, size).into()),
            _ => Ok(Edge::scalars().into()),
        },
    }),
    full: FullRule::Always,
    examples: &[ex("math.sum([1, 2], into=edge.from_shape(core.shape_of([1, 2])))", "3")],
    ..ARRAY
};

pub(crate) static FROM_SIZES_OR_SHAPE: OpDef = OpDef {
    name: "edge.from_sizes_or_shape",
    summary: "`edge.from_sizes` for an array, `edge.from_shape` for a shape.",
    params: &[param("x")],
    typing: Typing::Rule(|args| of_shape(FROM_SIZES_OR_SHAPE.name, args)),
    over_arrays: OverArrays::Kernel(&ArrayOperator {
        form: ArrayForm::Edge,
        typing: |name, args| match args[0].qtype {
            QType::Array(..) => of_integers(name, args),
            _ => of_shape(name, args),
        },
        evaluate: |args, ret| match args[0] {
            Value::ArrayShape(kind, size) => Ok(Edge::to_scalar(kind, size).into()),
            Value::Shape(_) => Ok(Edge::scalars().into()),
            _ => evaluate(args, ret, Edge::from_sizes),
        },
    }),
    full: FullRule::Always,
    examples: &[ex("math.sum([1, 2, 3], into=edge.from_sizes_or_shape([1, 2]))", "[1, 5]")],
    ..EDGE
};

/// The signature of an operator that makes an edge from an array or a value: the edge that maps all elements to one
/// group.
fn to_scalar_types(operator: &'static str, args: &[Argument<'_>]) -> Result<Signature, TypeFault> {
    let edge = match args[0].qtype {
        QType::Array(kind, _) => EdgeType::ToScalar(*kind),
        QType::Scalar(_) | QType::Optional(_) => EdgeType::Scalars,
        found => return refuse(0, format!("{operator} expects an array or a scalar, found {found}")),
    };
    Ok(Signature::unchanged(args, QType::Edge(edge)))
}

pub(crate) static TO_SCALAR: OpDef = OpDef {
    name: "edge.to_scalar",
    summary: "The edge that puts all elements of an array into one group, so that an aggregation gives a scalar. For a scalar, the edge from a scalar to a scalar.",
    params: &[param("x")],
    typing: Typing::Rule(|args| to_scalar_types(TO_SCALAR.name, args)),
    over_arrays: OverArrays::Kernel(&ArrayOperator {
        form: ArrayForm::Edge,
        typing: to_scalar_types,
        evaluate: |args, ret| match &args[0] {
            Value::Array(_, array) => Ok(Edge::to_scalar(kind_of(ret), array.len()).into()),
            _ => Ok(Edge::scalars().into()),
        },
    }),
    full: FullRule::Always,
    examples: &[ex("math.sum([1, 2], into=edge.to_scalar([1, 2]))", "3")],
    ..ARRAY
};

pub(crate) static TO_SINGLE: OpDef = OpDef {
    name: "edge.to_single",
    summary: "The edge that puts all elements of an array into one group, so that an aggregation gives an array with one element.",
    params: &[param("array")],
    over_arrays: OverArrays::Kernel(&ArrayOperator {
        form: ArrayForm::Edge,
        typing: |name, args| {
            let (kind, _) = array_argument(name, args, 0)?;
            Ok(Signature::unchanged(args, QType::Edge(EdgeType::Arrays(kind))))
        },
        evaluate: |args, ret| {
            let size = array_of(&args[0])?.len() as i64;
            Ok(Edge::from_sizes(kind_of(ret), [size]).map_err(refused)?.into())
        },
    }),
    full: FullRule::Always,
    examples: &[ex("math.sum([1, 2], into=edge.to_single([1, 2]))", "[3]")],
    ..ARRAY
};
