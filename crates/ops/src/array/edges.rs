//! Operators that make edges, and ask them.

use super::{ARRAY, ArrayForm, ArrayOperator, array_argument, array_of, invalid};
use crate::definition::{OpDef, OverArrays, ex, param};
use crate::typing::{Argument, Signature, TypeFault};
use cembra_runtime::{ArrayKind, EdgeType, Fault, FaultKind, QType, Scalar};
use cembra_value::{Array, Edge, EdgeFault, Value};

/// The fault of an edge that cannot be.
fn refused(fault: EdgeFault) -> Fault {
    match fault {
        EdgeFault::FirstPoint => invalid("split points begin with 0"),
        EdgeFault::PointsDown => invalid("split points do not go down"),
        EdgeFault::Group { .. } => invalid("an element names a group that is not there"),
        EdgeFault::Size(_) => invalid("the size of a group is negative, or there are too many elements"),
        _ => invalid("a size or split point is missing"),
    }
}

/// The integers of an array all of whose elements are there.
fn integers(array: &Array) -> Result<Vec<i64>, Fault> {
    let all = |at: usize| {
        let value = array.get(at).ok_or(refused(EdgeFault::Missing))?;
        super::integer_of(&Value::Scalar(value))
    };
    (0..array.len()).map(all).collect()
}

/// The edge of arrays that an array of integers makes.
fn of_integers(operator: &'static str, args: &[Argument<'_>]) -> Result<Signature, TypeFault> {
    match array_argument(operator, args, 0)? {
        (kind, Scalar::Int32 | Scalar::Int64) => Ok(Signature::unchanged(args, QType::Edge(EdgeType::Arrays(kind)))),
        _ => {
            let found = args[0].qtype;
            Err(TypeFault::mismatch(format!("{operator} expects an array of integers, found {found}"), Some(0)))
        }
    }
}

/// The form of arrays that a type of edges is of.
const fn kind_of(ret: &QType) -> ArrayKind {
    match ret {
        QType::Edge(EdgeType::ToScalar(kind) | EdgeType::Arrays(kind)) => *kind,
        _ => ArrayKind::Dense,
    }
}

const EDGE: OpDef = OpDef { faults: &[FaultKind::Invalid], ..ARRAY };

pub(crate) static FROM_SIZES: OpDef = OpDef {
    name: "edge.from_sizes",
    aliases: &[],
    summary: "The edge of contiguous groups of these sizes.",
    params: &[param("sizes")],
    over_arrays: OverArrays::Kernel(&ArrayOperator {
        form: ArrayForm::Edge,
        typing: of_integers,
        evaluate: |args, ret| {
            let made = Edge::from_sizes(kind_of(ret), integers(array_of(&args[0])?)?);
            Ok(made.map_err(refused)?.into())
        },
    }),
    examples: &[ex("math.sum([1, 2, 3], into=edge.from_sizes([1, 2]))", "[1, 5]")],
    ..EDGE
};

pub(crate) static FROM_SPLIT_POINTS: OpDef = OpDef {
    name: "edge.from_split_points",
    aliases: &[],
    summary: "The edge of contiguous groups between neighbouring points, the first of which is 0.",
    params: &[param("split_points")],
    over_arrays: OverArrays::Kernel(&ArrayOperator {
        form: ArrayForm::Edge,
        typing: of_integers,
        evaluate: |args, ret| {
            let made = Edge::from_split_points(kind_of(ret), integers(array_of(&args[0])?)?);
            Ok(made.map_err(refused)?.into())
        },
    }),
    examples: &[ex("math.sum([1, 2, 3], into=edge.from_split_points([0, 1, 3]))", "[1, 5]")],
    ..EDGE
};

/// `core.shape_of` of arrays.
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

pub(crate) static TO_SCALAR: OpDef = OpDef {
    name: "edge.to_scalar",
    aliases: &[],
    summary: "The edge that puts all elements of an array into one group.",
    params: &[param("x")],
    over_arrays: OverArrays::Kernel(&ArrayOperator {
        form: ArrayForm::Edge,
        typing: |name, args| {
            let (kind, _) = array_argument(name, args, 0)?;
            Ok(Signature::unchanged(args, QType::Edge(EdgeType::ToScalar(kind))))
        },
        evaluate: |args, ret| Ok(Edge::to_scalar(kind_of(ret), array_of(&args[0])?.len()).into()),
    }),
    examples: &[ex("math.sum([1, 2], into=edge.to_scalar([1, 2]))", "3")],
    ..EDGE
};
