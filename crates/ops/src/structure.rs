//! Operators that depend only on the types of their operands, not on the values: making tuples, the identity, and
//! constants of the type that another operand has.

pub mod structs;

use crate::array::{FullRule, edge_parts, elements};
use crate::cast::cast_to;
use crate::compound::{field_count, field_type, literal_integer};
use crate::definition::{
    BINARY, CUSTOM, Expansion, Meaning, NodeHandle, NodeResult, OWN, OpDef, OverArrays, PresenceRule, Structure,
    Typing, ex, param,
};
use crate::derivative::{FIRST, FLAT, SECOND};
use crate::function::HIGHER_ORDER;
use crate::id;
use crate::typing::{Argument, Signature, TypeFault, refuse};
use cembra_expr::ArgumentForm;
use cembra_runtime::{QType, Scalar, ShapeType};
use cembra_value::{ScalarValue, Value};

fn make_tuple_types(args: &[Argument<'_>]) -> Result<Signature, TypeFault> {
    if let Some(index) = args.iter().position(|a| !a.qtype.is_run_time()) {
        let fault = TypeFault::mismatch("core.make_tuple: each field must be a value with a type", Some(index));
        return Err(fault.hint(match args[index].qtype {
            QType::Dict(..) => "look up a key in the dictionary: a dictionary is not a value",
            _ => "give `missing` a type, as in `missing[f32]`",
        }));
    }
    Ok(Signature::unchanged(args, QType::tuple(args.iter().map(|a| a.qtype.clone()))))
}

pub(crate) static MAKE_TUPLE: OpDef = OpDef {
    name: "core.make_tuple",
    aliases: &["make_tuple"],
    summary: "A tuple of the operands. Written `(a, b)`.",
    params: &[param("fields")],
    variadic: true,
    typing: Typing::Rule(make_tuple_types),
    meaning: Meaning::Structure(Structure::MakeTuple),
    examples: &[ex("(1, 2.5f32, \"a\")", "(1, 2.5, 'a')")],
    ..OWN
};

/// Default fields for the records of operators that exist only during type inference.
const FUNCTION: OpDef = OpDef {
    params: &[],
    variadic: true,
    typing: Typing::Instantiated,
    meaning: Meaning::Structure(Structure::Lambda),
    ..OWN
};

pub(crate) static LAMBDA: OpDef = OpDef {
    name: "core._lambda",
    summary: "A function: its body and its parameters. Written `fn(x) = ..`.",
    params: &[param("body"), param("parameters")],
    examples: &[ex("core.apply(fn(x) = x + 1, 2)", "3")],
    ..FUNCTION
};

pub(crate) static NAMED: OpDef = OpDef {
    name: "core._operator",
    summary: "An operator as an operand of another operator, by name. Written as the bare name.",
    params: &[param("name")],
    variadic: false,
    meaning: Meaning::Structure(Structure::Named),
    examples: &[ex("core.apply(math.add, 1, 2)", "3")],
    ..FUNCTION
};

fn get_nth_types(args: &[Argument<'_>]) -> Result<Signature, TypeFault> {
    let found = args[0].qtype;
    let Some(count) = field_count(found) else {
        return refuse(0, format!("core.get_nth expects a tuple, found {found}"));
    };
    let Some(index) = literal_integer(args[1].literal) else {
        return Err(TypeFault::mismatch("core.get_nth expects a literal index", Some(1)).hint("write `t.0`"));
    };
    match usize::try_from(index).ok().and_then(|index| field_type(found, index)) {
        Some(field) => Ok(Signature::unchanged(args, field)),
        None => {
            let what = if matches!(found, QType::Tuple(_)) { "tuple" } else { "optional" };
            Err(TypeFault::mismatch(format!("the {what} has {count} fields, so there is no field {index}"), Some(1))
                .hint("fields are counted from 0"))
        }
    }
}

pub(crate) static GET_NTH: OpDef = OpDef {
    name: "core.get_nth",
    aliases: &["get_nth"],
    summary: "The field of a tuple at the position `index`, counted from 0. Written `t.0`. If the tuple is made on the spot, the other fields are not evaluated. An optional has two fields: a boolean, true if it is present, and its value, which is 0 or empty if it is missing; a mask has only the first.",
    params: &[param("tuple"), param("index").of(ArgumentForm::Position)],
    typing: Typing::Rule(get_nth_types),
    of_structs: Some(id::STRUCT_FIELD),
    meaning: Meaning::Structure(Structure::GetNth),
    examples: &[
        ex("(1, 2.5f32).1", "2.5"),
        ex("core.get_nth(i32?{7}, 0)", "true"),
        ex("core.get_nth(missing[i32], 1)", "0"),
    ],
    ..OWN
};

pub(crate) static IDENTITY: OpDef = OpDef {
    name: "core.identity",
    aliases: &["identity"],
    summary: "`x` itself.",
    typing: Typing::Rule(|args| Ok(Signature::unchanged(args, args[0].qtype.clone()))),
    meaning: Meaning::Expand(|_, args| Ok(args[0])),
    examples: &[ex("core.identity(5)", "5")],
    derivative: Some(FIRST),
    ..OWN
};

fn like_types(operator: &str, args: &[Argument<'_>]) -> Result<Signature, TypeFault> {
    let qtype = args[0].qtype;
    match qtype.scalar() {
        Some(scalar) if scalar.is_numeric() || scalar == Scalar::Boolean => {
            Ok(Signature::unchanged(args, qtype.clone()))
        }
        _ => refuse(0, format!("{operator} expects a number or a boolean, found {qtype}")),
    }
}

/// Adds a literal node to the graph: a present constant of the type of `arg`; the value of `arg` is not used.
fn constant_like(graph: &mut dyn Expansion, arg: NodeHandle, value: i32) -> NodeResult {
    let qtype = graph.qtype(arg);
    let scalar = qtype.scalar().unwrap_or(Scalar::Int32);
    let literal = match scalar {
        Scalar::Boolean => ScalarValue::Boolean(value != 0),
        Scalar::Int64 => ScalarValue::Int64(i64::from(value)),
        Scalar::Float32 => ScalarValue::Float32(value as f32),
        Scalar::Float64 => ScalarValue::Float64(f64::from(value)),
        Scalar::WeakFloat => ScalarValue::WeakFloat(f64::from(value)),
        _ => ScalarValue::Int32(value),
    };
    Ok(graph.literal(if qtype.is_optional() { Value::Present(literal) } else { Value::Scalar(literal) }))
}

pub(crate) static ZEROS_LIKE: OpDef = OpDef {
    name: "core.zeros_like",
    aliases: &["zeros_like"],
    summary: "0 in the type of `x`, present even where `x` is missing.",
    typing: Typing::Rule(|args| like_types(ZEROS_LIKE.name, args)),
    meaning: Meaning::Expand(|g, args| constant_like(g, args[0], 0)),
    examples: &[ex("zeros_like(missing[f32])", "f32?{0}")],
    derivative: Some(FLAT),
    ..CUSTOM
};

pub(crate) static ONES_LIKE: OpDef = OpDef {
    name: "core.ones_like",
    aliases: &["ones_like"],
    summary: "1 in the type of `x`, present even where `x` is missing.",
    typing: Typing::Rule(|args| like_types(ONES_LIKE.name, args)),
    meaning: Meaning::Expand(|g, args| constant_like(g, args[0], 1)),
    examples: &[ex("ones_like(7i64)", "i64{1}"), ex("ones_like(false)", "true")],
    derivative: Some(FLAT),
    ..CUSTOM
};

fn scalar_of(operator: &str, args: &[Argument<'_>], index: usize) -> Result<Scalar, TypeFault> {
    let found = args[index].qtype;
    found
        .scalar()
        .ok_or_else(|| TypeFault::mismatch(format!("{operator} expects a scalar, found {found}"), Some(index)))
}

fn shape_of(qtype: &QType) -> Result<ShapeType, TypeFault> {
    qtype.shape().ok_or_else(|| TypeFault::mismatch(format!("core.shape_of expects a scalar, found {qtype}"), Some(0)))
}

pub(crate) static SHAPE_OF: OpDef = OpDef {
    name: "core.shape_of",
    aliases: &["shape_of"],
    summary: "The shape of `x`: of a scalar, of an optional, or of an array with its size. It does not depend on the values in `x`.",
    typing: Typing::Rule(|args| Ok(Signature::unchanged(args, QType::Shape(shape_of(args[0].qtype)?)))),
    meaning: Meaning::Expand(|g, args| {
        let shape = shape_of(&g.qtype(args[0]))?;
        Ok(g.literal(Value::Shape(shape)))
    }),
    examples: &[ex("shape_of(5)", "scalar_shape"), ex("shape_of(missing[text])", "optional_scalar_shape")],
    over_arrays: OverArrays::Kernel(&edge_parts::SHAPE_OF),
    ..CUSTOM
};

fn const_with_shape_types(args: &[Argument<'_>]) -> Result<Signature, TypeFault> {
    let QType::Shape(shape) = args[0].qtype else {
        let found = args[0].qtype;
        return Err(TypeFault::mismatch(format!("core.const_with_shape expects a shape, found {found}"), Some(0))
            .hint("write `shape_of(x)`"));
    };
    let scalar = scalar_of(CONST_WITH_SHAPE.name, args, 1)?;
    let optional = *shape == ShapeType::OptionalScalar || args[1].qtype.is_optional();
    Ok(Signature::unchanged(args, QType::of(scalar, optional)))
}

pub(crate) static CONST_WITH_SHAPE: OpDef = OpDef {
    name: "core.const_with_shape",
    aliases: &["const_with_shape"],
    summary: "`value` in a shape: an optional for the shape of an optional, an array with `value` in each element for the shape of an array.",
    params: &[param("shape"), param("value")],
    presence: PresenceRule::Custom,
    typing: Typing::Rule(const_with_shape_types),
    meaning: Meaning::Expand(|g, args| {
        let scalar = g.qtype(args[1]).scalar().unwrap_or(Scalar::Unit);
        let optional = g.qtype(args[0]) == QType::Shape(ShapeType::OptionalScalar);
        cast_to(g, args[1], scalar, optional)
    }),
    examples: &[
        ex("const_with_shape(shape_of(missing[f64]), 1)", "i32?{1}"),
        ex("const_with_shape(SCALAR_SHAPE{}, 'a')", "'a'"),
    ],
    over_arrays: OverArrays::Kernel(&elements::CONST_WITH_SHAPE),
    full: FullRule::Operands,
    ..BINARY
};

pub(crate) static EMPTY_LIKE: OpDef = OpDef {
    name: "core.empty_like",
    aliases: &["empty_like"],
    summary: "A missing value of the type of `x`.",
    typing: Typing::Rule(|args| {
        let scalar = scalar_of(EMPTY_LIKE.name, args, 0)?;
        Ok(Signature::unchanged(args, QType::Optional(scalar)))
    }),
    meaning: Meaning::Expand(|g, args| {
        let scalar = g.qtype(args[0]).scalar().unwrap_or(Scalar::Unit);
        Ok(g.literal(Value::Missing(scalar)))
    }),
    examples: &[ex("empty_like(5)", "i32?{NA}")],
    ..CUSTOM
};

fn const_like_types(args: &[Argument<'_>]) -> Result<Signature, TypeFault> {
    let target = scalar_of(CONST_LIKE.name, args, 0)?;
    let source = scalar_of(CONST_LIKE.name, args, 1)?;
    if source != target && !(source.is_castable() && target.is_castable()) {
        let (like, value) = (args[0].qtype, args[1].qtype);
        return refuse(1, format!("core.const_like cannot cast {value} to {like}"));
    }
    let optional = args[0].qtype.is_optional() || args[1].qtype.is_optional();
    Ok(Signature::unchanged(args, QType::of(target, optional)))
}

pub(crate) static CONST_LIKE: OpDef = OpDef {
    name: "core.const_like",
    aliases: &["const_like"],
    summary: "`value` cast to the type of `x`, present even where `x` is missing.",
    params: &[param("x"), param("value")],
    faults: &[cembra_runtime::FaultKind::CastRange],
    typing: Typing::Rule(const_like_types),
    meaning: Meaning::Expand(|g, args| {
        let like = g.qtype(args[0]);
        let scalar = like.scalar().unwrap_or(Scalar::Unit);
        cast_to(g, args[1], scalar, like.is_optional())
    }),
    examples: &[ex("const_like(7, 2.5f32)", "2"), ex("const_like(missing[f64], 1)", "f64?{1}")],
    derivative: Some(SECOND),
    ..CUSTOM
};

pub(crate) static BROADCAST_LIKE: OpDef = OpDef {
    name: "core.broadcast_like",
    aliases: &["broadcast_like"],
    summary: "`value` in the shape of `target`: an optional if `target` is an optional, and present even where `target` is missing.",
    params: &[param("target"), param("value")],
    presence: PresenceRule::Custom,
    typing: Typing::Rule(|args| {
        scalar_of(BROADCAST_LIKE.name, args, 0)?;
        let scalar = scalar_of(BROADCAST_LIKE.name, args, 1)?;
        let optional = args[0].qtype.is_optional() || args[1].qtype.is_optional();
        Ok(Signature::unchanged(args, QType::of(scalar, optional)))
    }),
    meaning: Meaning::Expand(|g, args| {
        let scalar = g.qtype(args[1]).scalar().unwrap_or(Scalar::Unit);
        let optional = g.qtype(args[0]).is_optional();
        cast_to(g, args[1], scalar, optional)
    }),
    examples: &[ex("broadcast_like(missing[f64], 1)", "i32?{1}"), ex("broadcast_like(2.5, 1)", "1")],
    derivative: Some(SECOND),
    ..BINARY
};

pub(crate) static DEFAULT_IF_UNSPECIFIED: OpDef = OpDef {
    name: "core.default_if_unspecified",
    aliases: &["default_if_unspecified"],
    summary: "`default` if `x` is unspecified, else `x`. Only the type of `x` decides, and the other operand is not evaluated.",
    params: &[param("x"), param("default")],
    meaning: Meaning::Instantiate(|g, args| Ok(if g.qtype(args[0]) == QType::Unspecified { args[1] } else { args[0] })),
    examples: &[
        ex("core.default_if_unspecified(UNSPECIFIED{}, 7)", "7"),
        ex("core.default_if_unspecified(missing[f32], 7)", "f32?{NA}"),
    ],
    ..HIGHER_ORDER
};
