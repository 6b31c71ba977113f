//! Operators on functions: calls, mapping the fields of a tuple, and the loop. During type inference, each of these
//! operators is replaced by other operators, so that backends never see functions. Only the loop becomes nodes of a
//! special kind, which backends support.

use crate::definition::{
    ExpansionError, Instantiation, Meaning, NodeHandle, NodeResult, OWN, OpDef, Typing, ex, param,
};
use crate::id;
use crate::typing::{TypeFault, refuse};
use cembra_runtime::{FaultKind, QType};
use cembra_value::{ScalarValue, Value};

/// Default fields for the records of operators on functions and sequences.
pub(crate) const HIGHER_ORDER: OpDef = OpDef { params: &[], typing: Typing::Instantiated, ..OWN };

/// Adds a literal node of type INT64 to the graph, with the value `value`.
pub(crate) fn integer(graph: &mut dyn Instantiation, value: i64) -> NodeHandle {
    graph.literal(Value::Scalar(ScalarValue::Int64(value)))
}

/// Adds a graph node that reads the field `index` of a tuple.
pub(crate) fn field(graph: &mut dyn Instantiation, tuple: NodeHandle, index: usize) -> NodeResult {
    let index = integer(graph, index as i64);
    graph.apply(id::GET_NTH, &[tuple, index])
}

/// Adds graph nodes that read all fields of an operand, which must be a tuple.
fn fields(
    graph: &mut dyn Instantiation,
    operator: &str,
    tuple: NodeHandle,
    at: usize,
) -> Result<Vec<NodeHandle>, TypeFault> {
    let qtype = graph.qtype(tuple);
    let Some(types) = qtype.as_tuple() else {
        return refuse(at, format!("{operator} expects a tuple, found {qtype}"));
    };
    (0..types.len()).map(|index| field(graph, tuple, index)).collect()
}

pub(crate) static APPLY: OpDef = OpDef {
    name: "core.apply",
    aliases: &["apply"],
    summary: "The result of the function `op` for the arguments. Written `op(x)` if the function has a name in the text.",
    params: &[param("op"), param("args")],
    variadic: true,
    meaning: Meaning::Instantiate(|g, args| g.call(args[0], &args[1..])),
    examples: &[ex("core.apply(math.add, 1, 2)", "3"), ex("core.apply(fn(x) = x * x, 7)", "49")],
    ..HIGHER_ORDER
};

pub(crate) static APPLY_VARARGS: OpDef = OpDef {
    name: "core.apply_varargs",
    aliases: &["apply_varargs"],
    summary: "The result of the function `op` for the arguments. The last argument is a tuple, and each of its fields is an argument of the function.",
    params: &[param("op"), param("args")],
    variadic: true,
    meaning: Meaning::Instantiate(|g, args| {
        let Some((last, others)) = args[1..].split_last() else {
            return Err(TypeFault::mismatch("core.apply_varargs expects a tuple as its last argument", None).into());
        };
        let mut all = others.to_vec();
        all.extend(fields(g, APPLY_VARARGS.name, *last, args.len() - 1)?);
        g.call(args[0], &all)
    }),
    examples: &[ex("core.apply_varargs(math.add, (1, 2))", "3")],
    ..HIGHER_ORDER
};

pub(crate) static MAP_TUPLE: OpDef = OpDef {
    name: "core.map_tuple",
    aliases: &["map_tuple"],
    summary: "The tuple of the results of the function `op` for each field of a tuple. Further arguments are the same for all fields.",
    params: &[param("op"), param("tuple"), param("args")],
    variadic: true,
    meaning: Meaning::Instantiate(|g, args| {
        let mut mapped = fields(g, MAP_TUPLE.name, args[1], 1)?;
        let mut call = args[1..].to_vec();
        for field in &mut mapped {
            call[0] = *field;
            *field = g.call(args[0], &call)?;
        }
        Ok(g.apply(id::MAKE_TUPLE, &mapped)?)
    }),
    examples: &[
        ex("core.map_tuple(math.neg, (1, 2.5f32))", "(-1, -2.5)"),
        ex("core.map_tuple(math.add, (1, 2.5f32), 10)", "(11, 12.5)"),
    ],
    ..HIGHER_ORDER
};

pub(crate) static MAP: OpDef = OpDef {
    name: "core.map",
    aliases: &["map"],
    summary: "The array of the results of the function `op` for each element of an array, which the function gets as an optional. With several arrays of the same size, the function gets the elements at the same position; other arguments are the same for all elements. The function is evaluated as for scalars: in `where`, only the chosen branch is.",
    params: &[param("op"), param("arg"), param("args")],
    variadic: true,
    faults: &[FaultKind::SizeMismatch],
    meaning: Meaning::Instantiate(|g, args| g.map(args[0], &args[1..])),
    examples: &[
        ex("core.map(fn(x) = where(x != 0, 10 // x, 0), [1, missing, 0])", "[10, 0, 0]"),
        ex("core.map(math.add, [1, missing, 3], 10)", "[11, NA, 13]"),
    ],
    ..HIGHER_ORDER
};

pub(crate) static REDUCE_TUPLE: OpDef = OpDef {
    name: "core.reduce_tuple",
    aliases: &["reduce_tuple"],
    summary: "The fields of a tuple combined by a function of two arguments, from left to right. A single field is itself the result.",
    params: &[param("op"), param("tuple")],
    meaning: Meaning::Instantiate(|g, args| {
        let fields = fields(g, REDUCE_TUPLE.name, args[1], 1)?;
        let Some((first, others)) = fields.split_first() else {
            return refuse(1, "core.reduce_tuple expects at least one field");
        };
        others.iter().try_fold(*first, |so_far, field| g.call(args[0], &[so_far, *field]))
    }),
    examples: &[ex("core.reduce_tuple(math.subtract, (10, 2, 3))", "5")],
    ..HIGHER_ORDER
};

pub(crate) static WHILE_LOOP: OpDef = OpDef {
    name: "core.while_loop",
    aliases: &["while_loop"],
    summary: "The last state of a loop: it begins with `state`, and the function `body` makes the next state as long as the function `condition` of the state is present. \
              An operand that does not depend on the state is evaluated once.",
    params: &[param("state"), param("condition"), param("body")],
    faults: &[FaultKind::IterationLimit],
    meaning: Meaning::Instantiate(|g, args| {
        let (condition, body) = (args[1], args[2]);
        g.repeat(args[0], &mut |g, state| g.call(condition, &[state]), &mut |g, state| g.call(body, &[state]))
    }),
    examples: &[
        ex("core.while_loop(1, fn(x) = x < 100, fn(x) = x * 2)", "128"),
        ex("core.while_loop((0, 1), fn(s) = s.0 < 5, fn(s) = (s.0 + 1, s.1 * 2))", "(5, 32)"),
    ],
    ..HIGHER_ORDER
};

/// The fault for the operand `at`, which should be a sequence and is not.
pub(crate) fn no_sequence(operator: &str, found: &QType, at: usize) -> ExpansionError {
    TypeFault::mismatch(format!("{operator} expects a sequence, found {found}"), Some(at))
        .hint("make a sequence with `seq.range(n)` or `seq.make(a, b)`; for the elements of an array use `core.map`, or `sum` and similar operators")
        .into()
}
