//! Tests of the golden files. Each was written by the first release with its version of the format, and is never
//! changed. Reading it must always give the model that was written.

use crate::anything::Anything;
use cembra_expr::{Node, NodeId, Program, parse, print, print_value, read_binary, write_binary};
use cembra_runtime::{QType, Scalar};
use cembra_value::{Limits, ScalarValue, Value};
use std::path::{Path, PathBuf};

/// The models of the golden files. The name of a file has the version and a title, such as `v2/externs`.
fn models() -> Vec<(&'static str, Program)> {
    let text = |source: &str| {
        let program = parse(source, &Anything, &Limits::default()).expect(source);
        // What `+` was when the files were written.
        let of_then = write_binary(&program);
        let (now, then) = (b"\x2a\x0acore._plus", b"\x2a\x08math.add");
        let of_then = match of_then.windows(now.len()).position(|bytes| bytes == now) {
            Some(at) => [&of_then[..at], then, &of_then[at + now.len()..]].concat(),
            None => of_then,
        };
        read_binary(&of_then, &Limits::default()).expect(source)
    };
    vec![
        ("v1/constant", text("1.5")),
        (
            "v1/roots",
            text(
                "input a: f32, b, c: f64\nlet d = b*b - 4.0*a*c\nlet s = math.sqrt(d)\n\
                 output first = if d >= 0 then (-b + s) / 2.0 / a\noutput second = if d >= 0 then (-b - s) / 2.0 / a",
            ),
        ),
        (
            "v1/names",
            text(
                "input \"two words\": text?, unused: (f32, (i64?, unit)), free; output \"ä\" = L[\"two words\"] + free",
            ),
        ),
        ("v1/values", values()),
        (
            "v1/functions",
            text(
                "input t: {x: f32, \"odd name\": {}}, k\nlet scale = fn(x, y) = x * y + k\n\
                 output y = scale(t.x, 2)\noutput z = f.g(scale, math.add, NAMEDTUPLE{a: 1, b: NAMEDTUPLE{}}, {a: k})",
            ),
        ),
        (
            "v1/promises",
            text("input a: [f64], b: [f64?], by: splits, of: mapping, any: edge; M.math.sum(a + b, by) + f.g(of, any)"),
        ),
        ("v1/shapes", text("input s: (SCALAR_SHAPE, i32); (s, OPTIONAL_SCALAR_SHAPE{}, TUPLE{SCALAR_SHAPE{}, 1})")),
        (
            "v2/defaults",
            text(
                "input a: f32? = -0.1, b, c: text? = \"x\\n\"; input d: date? = date\"2026-11-21\", m: unit? = present\n\
                 input n: f64? = nan, raw: bytes? = b\"\\xff\", big: u64? = 18446744073709551615, plain: f32?\n\
                 (a, b, c, d, m, n, raw, big, plain)",
            ),
        ),
        (
            "v2/externs",
            text(
                "extern fn fx.rate(text, f64?): f64?; extern fn now(): timestamp; let y: f64? = fx.rate(\"CHF\", 1); (y, now())",
            ),
        ),
    ]
}

/// Makes a program with every kind of value, including details that a careless format would lose, such as the bits of a
/// NaN.
fn values() -> Program {
    let mut program = Program::default();
    let graph = &mut program.graph;
    let scalars = [
        ScalarValue::Unit,
        ScalarValue::Boolean(true),
        ScalarValue::Boolean(false),
        ScalarValue::Int32(i32::MIN),
        ScalarValue::Int64(i64::MIN),
        ScalarValue::Int64((1 << 53) + 1),
        ScalarValue::UInt64(u64::MAX),
        ScalarValue::Float32(0.1),
        ScalarValue::Float32(-0.0),
        ScalarValue::Float32(f32::from_bits(0x7f80_0001)),
        ScalarValue::Float64(-0.0),
        ScalarValue::Float64(f64::MIN_POSITIVE / 3.0),
        ScalarValue::Float64(f64::from_bits(0xfff4_dead_beef_0001)),
        ScalarValue::Float64(f64::INFINITY),
        ScalarValue::WeakFloat(f64::NEG_INFINITY),
        ScalarValue::WeakFloat(1e300),
        ScalarValue::Text("".into()),
        ScalarValue::Text("\0\n\"\\ ä \u{10ffff}".into()),
        ScalarValue::Bytes([0, 255, b'\'', 128].into()),
    ];
    let mut values: Vec<Value> = scalars.iter().cloned().map(Value::Scalar).collect();
    values.extend(scalars.into_iter().map(Value::Present));
    // Those that version 1 began with, in the order of then.
    let began_with = [
        Scalar::Unit,
        Scalar::Boolean,
        Scalar::Bytes,
        Scalar::Text,
        Scalar::Int32,
        Scalar::Int64,
        Scalar::UInt64,
        Scalar::Float32,
        Scalar::Float64,
        Scalar::WeakFloat,
    ];
    values.extend(began_with.map(Value::Missing));
    values.push(Value::Nothing);
    let types = [QType::Meta, QType::Nothing, QType::MASK, QType::tuple([QType::tuple([QType::TEXT]), QType::BYTES])];
    values.extend(types.map(Value::Type));
    values.push(Value::Tuple([].into()));
    let inner = Value::Tuple([Value::from(1_i32), Value::Tuple([].into()), Value::from(-0.0_f64)].into());
    values.push(Value::Tuple([inner, Value::from("x")].into()));
    let x = graph.leaf("x", None);
    let p = graph.placeholder("x", None);
    let mut all: Vec<NodeId> = values.into_iter().map(|value| graph.literal(value, None)).collect();
    all.extend([x, p]);
    let node = graph.operator("core.make_tuple", &all, None);
    program.outputs.push(cembra_expr::Output { name: "all".into(), node, span: None });
    program.inputs.push(cembra_expr::Input::untyped("x".into(), None));
    program
}

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/wire").join(format!("{name}.binary"))
}

/// Returns all literals and spans of a program as text, because equality of programs ignores some of their details.
fn details(program: &Program) -> String {
    let graph = &program.graph;
    let needed = graph.reachable(program.outputs.iter().map(|output| output.node));
    let nodes = (0..graph.len()).filter(|index| needed[*index]).map(|index| {
        let id = NodeId::from_index(index);
        let literal = match graph.node(id) {
            Node::Literal(value) => print_value(value),
            _ => String::new(),
        };
        format!("{literal} {:?}", graph.spans(id).collect::<Vec<_>>())
    });
    let nodes: Vec<_> = nodes.collect();
    format!("{nodes:#?} {:?} {:?}", program.inputs, program.outputs.iter().map(|o| o.span).collect::<Vec<_>>())
}

#[test]
fn golden_files_are_read_for_ever() {
    for (name, program) in models() {
        let binary = std::fs::read(file(name)).unwrap();
        let read = read_binary(&binary, &Limits::default()).unwrap_or_else(|problem| panic!("{name}: {problem}"));
        assert!(read == program, "{name}: {}", print(&read, &Anything));
        assert_eq!(details(&read), details(&program), "{name}");
    }
}

/// Writing a model must give the same bytes as its golden file, in the oldest version that can express the model.
#[test]
fn what_is_written_has_not_changed() {
    for (name, program) in models() {
        assert!(write_binary(&program) == std::fs::read(file(name)).unwrap(), "{name}");
    }
}

#[test]
#[ignore = "writes the golden files of a model that has none yet"]
fn write_golden_files() {
    for (name, program) in models() {
        let file = file(name);
        if !file.exists() {
            std::fs::write(file, write_binary(&program)).unwrap();
        }
    }
}
