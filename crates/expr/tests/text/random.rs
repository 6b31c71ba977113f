//! Strategies for random values and programs, which are used by tests that write programs and read them back.

use cembra_expr::{Graph, Input, Node, NodeId, Output, Program};
use cembra_runtime::{ArrayKind, Date, EdgeType, Fields, Names, QType, Scalar, ShapeType, Timestamp};
use cembra_value::{Promise, ScalarValue, Value};
use proptest::prelude::*;
use std::collections::{BTreeSet, HashMap};

fn scalar() -> impl Strategy<Value = ScalarValue> {
    prop_oneof![
        Just(ScalarValue::Unit),
        any::<bool>().prop_map(ScalarValue::Boolean),
        any::<i32>().prop_map(ScalarValue::Int32),
        any::<i64>().prop_map(ScalarValue::Int64),
        (-3_i64..4).prop_map(ScalarValue::Int64),
        any::<u64>().prop_map(ScalarValue::UInt64),
        any::<i32>().prop_map(|days| ScalarValue::Date(Date(days))),
        any::<i64>().prop_map(|micros| ScalarValue::Timestamp(Timestamp(micros))),
        // Of years that have texts.
        any::<i16>().prop_map(|days| ScalarValue::Date(Date(days.into()))),
        any::<i32>().prop_map(|micros| ScalarValue::Timestamp(Timestamp(micros.into()))),
        prop::collection::vec(any::<u8>(), 0..6).prop_map(|bytes| ScalarValue::Bytes(bytes.into())),
        any::<u32>().prop_map(|bits| ScalarValue::Float32(f32::from_bits(bits))),
        any::<u64>().prop_map(|bits| ScalarValue::Float64(f64::from_bits(bits))),
        any::<u64>().prop_map(|bits| ScalarValue::WeakFloat(f64::from_bits(bits))),
        prop_oneof![
            Just(f64::NAN),
            Just(-f64::NAN),
            Just(f64::INFINITY),
            Just(-0.0),
            Just(f64::from_bits(0x7ff0_0000_0000_0001))
        ]
        .prop_map(ScalarValue::WeakFloat),
        ".{0,6}".prop_map(|text| ScalarValue::Text(text.into())),
    ]
}

fn scalar_type() -> impl Strategy<Value = Scalar> {
    prop::sample::select(Scalar::ALL.to_vec())
}

fn shape() -> impl Strategy<Value = ShapeType> {
    prop::sample::select(ShapeType::ALL.to_vec())
}

/// Makes up to three fields of a tuple, with names or without.
fn fields<T: Clone + std::fmt::Debug>(member: impl Strategy<Value = T>) -> impl Strategy<Value = Fields<T>> {
    (prop::collection::vec(member, 0..3), prop::option::of([name(), name()])).prop_map(|(members, names)| {
        let names = names.and_then(|names| Names::new(names.into_iter().take(members.len())).ok());
        names.and_then(|names| Fields::named(names, members.clone())).unwrap_or_else(|| members.into())
    })
}

fn qtype() -> impl Strategy<Value = QType> {
    let simple = prop_oneof![
        (scalar_type(), any::<bool>()).prop_map(|(scalar, optional)| QType::of(scalar, optional)),
        shape().prop_map(QType::Shape),
    ];
    simple.prop_recursive(3, 8, 3, |inner| fields(inner).prop_map(QType::Tuple))
}

/// Makes values of every kind, including all bit patterns of floats.
pub(crate) fn value() -> impl Strategy<Value = Value> {
    let simple = prop_oneof![
        scalar().prop_map(Value::Scalar),
        scalar().prop_map(Value::Present),
        scalar_type().prop_map(Value::Missing),
        shape().prop_map(Value::Shape),
        qtype().prop_map(Value::Type),
        Just(Value::Type(QType::Meta)),
        Just(Value::Nothing),
        Just(Value::Unspecified),
        Just(Value::Type(QType::Unspecified)),
    ];
    simple.prop_recursive(3, 8, 3, |inner| fields(inner).prop_map(Value::Tuple))
}

/// Makes types of inputs, each with a promise (a guarantee about values) and a default.
fn declared() -> impl Strategy<Value = (QType, Promise, Option<ScalarValue>)> {
    let array = (scalar_type(), prop::sample::select(vec![Promise::Nothing, Promise::Full]));
    let edge = prop::sample::select(vec![Promise::Nothing, Promise::Mapping, Promise::Splits]);
    prop_oneof![
        3 => qtype().prop_map(|qtype| (qtype, Promise::Nothing, None)),
        2 => scalar().prop_map(|default| (QType::Optional(default.scalar()), Promise::Nothing, Some(default))),
        1 => array.prop_map(|(scalar, promise)| (QType::Array(ArrayKind::Dense, scalar), promise, None)),
        1 => edge.prop_map(|promise| (QType::Edge(EdgeType::Arrays(ArrayKind::Dense)), promise, None)),
    ]
}

fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        prop::sample::select(vec![
            "x", "y", "t0", "t1", "math", "L", "M", "P", "if", "f32", "result", "NA", "b", "inf"
        ])
        .prop_map(str::to_owned),
        "[a-z]{1,2}",
        ".{0,3}",
    ]
}

const OPERATORS: &[(&str, usize)] = &[
    ("math.add", 2),
    ("math.subtract", 2),
    ("math.multiply", 2),
    ("math.divide", 2),
    ("math.floor_divide", 2),
    ("math.remainder", 2),
    ("math.floordiv", 2),
    ("math.mod", 2),
    ("math.pow", 2),
    ("math.pow", 2),
    ("math.neg", 1),
    ("math.neg", 1),
    ("math.pos", 1),
    ("core.presence_and", 2),
    ("core.presence_or", 2),
    ("core.less", 2),
    ("core.equal", 2),
    ("core.not_equal", 2),
    ("core.greater_equal", 2),
    ("core._not", 1),
    ("core._and", 2),
    ("core._or", 2),
    ("core._where", 3),
    ("core._where", 3),
    ("core.make_tuple", 0),
    ("core.make_tuple", 1),
    ("core.make_tuple", 2),
    ("core.get_nth", 2),
    ("core.get_nth", 2),
    ("math.sqrt", 1),
    ("core.apply", 2),
    ("math.add", 3),
    ("core._not", 0),
    ("core._where", 2),
    ("x.y", 1),
    ("x", 1),
    ("bool.equal", 2),
    ("if", 1),
];

#[derive(Clone, Debug)]
enum Step {
    Leaf(String),
    Literal(Value),
    Named(String, prop::sample::Index),
    Field(String, prop::sample::Index),
    Path(&'static str),
    Parameter(&'static str),
    /// A function whose body is an earlier node and whose parameters are some of the parameters that no function binds
    /// yet.
    Function(prop::sample::Index, u8),
    Operator(usize, [prop::sample::Index; 3]),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        2 => name().prop_map(Step::Leaf),
        2 => value().prop_map(Step::Literal),
        1 => ("[a-z]{0,2}|a, b|if|x y", any::<prop::sample::Index>()).prop_map(|(name, of)| Step::Named(name, of)),
        1 => (name(), any::<prop::sample::Index>()).prop_map(|(name, of)| Step::Field(name, of)),
        1 => prop::sample::select(vec!["math.add", "x.y", "x", "core._where", "L.x", "no path", "if"]).prop_map(Step::Path),
        2 => prop::sample::select(vec!["x", "y", "t0", "L", "M", "in", "math"]).prop_map(Step::Parameter),
        2 => (any::<prop::sample::Index>(), any::<u8>()).prop_map(|(body, which)| Step::Function(body, which)),
        6 => (0..OPERATORS.len(), any::<[prop::sample::Index; 3]>()).prop_map(|(at, operands)| Step::Operator(at, operands)),
    ]
}

fn is_function(graph: &Graph, node: NodeId) -> bool {
    matches!(graph.node(node), Node::Operator(name, _) if **graph.name(name) == *"core._lambda")
}

/// Makes programs of up to 40 nodes with names and literals of every kind. Some nodes are not needed by an output.
pub(crate) fn program() -> impl Strategy<Value = Program> {
    let steps = prop::collection::vec(step(), 1..40);
    let outputs = prop::collection::vec((name(), any::<prop::sample::Index>()), 1..4);
    let inputs = prop::collection::vec((name(), prop::option::of(declared())), 0..3);
    (steps, outputs, inputs).prop_map(|(steps, outputs, inputs)| {
        let mut program = Program::default();
        let graph = &mut program.graph;
        let mut nodes: Vec<NodeId> = Vec::new();
        // The parameters that no function has yet, and those of them that occur in each node.
        let mut unbound: Vec<NodeId> = Vec::new();
        let mut occurring: HashMap<NodeId, BTreeSet<NodeId>> = HashMap::new();
        for step in steps {
            let node = match step {
                Step::Leaf(name) => graph.leaf(&name, None),
                Step::Literal(value) => graph.literal(value, None),
                Step::Path(name) => {
                    let name = graph.literal(Value::text(name), None);
                    graph.operator("core._operator", &[name], None)
                }
                Step::Parameter(name) => {
                    let parameter = graph.fresh_placeholder(name, None);
                    unbound.push(parameter);
                    occurring.entry(parameter).or_default().insert(parameter);
                    parameter
                }
                _ if nodes.is_empty() => graph.leaf("first", None),
                Step::Named(names, of) => {
                    let names = graph.literal(Value::text(names), None);
                    graph.operator("namedtuple.make", &[names, *of.get(&nodes)], None)
                }
                Step::Field(name, of) => {
                    let name = graph.literal(Value::text(name), None);
                    graph.operator("namedtuple.get_field", &[*of.get(&nodes), name], None)
                }
                Step::Function(body, which) => {
                    let body = *body.get(&nodes[nodes.len().saturating_sub(6)..]);
                    let chosen = |at: &usize| which >> (at % 8) & 1 == 1;
                    let bound: Vec<NodeId> = (0..unbound.len()).filter(chosen).map(|at| unbound[at]).collect();
                    unbound.retain(|parameter| !bound.contains(parameter));
                    let operands: Vec<NodeId> = std::iter::once(body).chain(bound.iter().copied()).collect();
                    // Outside of the function nothing has its parameters in it.
                    let inside =
                        |node: &NodeId| occurring.get(node).is_some_and(|o| bound.iter().any(|b| o.contains(b)));
                    nodes.retain(|node| !inside(node));
                    let function = graph.operator("core._lambda", &operands, None);
                    let mut free = occurring.get(&body).cloned().unwrap_or_default();
                    free.retain(|parameter| !bound.contains(parameter));
                    occurring.insert(function, free);
                    function
                }
                Step::Operator(at, operands) => {
                    let (name, arity) = OPERATORS[at];
                    // Mostly recent nodes, so that graphs grow deep.
                    let recent = &nodes[nodes.len().saturating_sub(6)..];
                    let operands: Vec<_> = operands[..arity].iter().map(|index| *index.get(recent)).collect();
                    graph.operator(name, &operands, None)
                }
            };
            if !matches!(occurring.get(&node), Some(known) if !known.is_empty()) {
                let all = graph.operands(node).iter().filter_map(|operand| occurring.get(operand)).flatten().copied();
                let all: BTreeSet<NodeId> = all.collect();
                if !is_function(graph, node) {
                    occurring.insert(node, all);
                }
            }
            nodes.push(node);
        }
        nodes.retain(|node| occurring.get(node).is_none_or(BTreeSet::is_empty));
        if nodes.is_empty() {
            nodes.push(graph.leaf("last", None));
        }
        for (name, index) in outputs {
            if !program.outputs.iter().any(|output| *output.name == *name) {
                program.outputs.push(Output { name: name.into(), node: *index.get(&nodes), span: None });
            }
        }
        for (name, declared) in inputs {
            if !program.inputs.iter().any(|input| *input.name == *name) {
                let input = Input::untyped(name.into(), None);
                program.inputs.push(match declared {
                    Some((qtype, promise, default)) => Input { qtype: Some(qtype), promise, default, ..input },
                    None => input,
                });
            }
        }
        // Leaves that are not declared follow, as a parser would add them.
        let needed = program.graph.reachable(program.outputs.iter().map(|output| output.node));
        for index in (0..needed.len()).filter(|index| needed[*index]) {
            if let Node::Leaf(name) = program.graph.node(NodeId::from_index(index)) {
                let name = program.graph.name(name).clone();
                if !program.inputs.iter().any(|input| input.name == name) {
                    program.inputs.push(Input::untyped(name, None));
                }
            }
        }
        program
    })
}
