//! What is written is read back as an equal program.

use crate::anything::Anything;
use crate::random::{program, value};
use cembra_expr::{Builder, Node, NodeId, Program, parse, read_binary, read_json, write_binary, write_json};
use cembra_value::{Limits, Span, Value};
use proptest::prelude::*;

fn both_forms(program: &Program, limits: &Limits) -> [Program; 2] {
    let binary = read_binary(&write_binary(program), limits);
    let json = read_json(&write_json(program), limits);
    [binary, json].map(|read| read.unwrap_or_else(|problem| panic!("{problem}\n{}", write_json(program))))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn programs_come_back(program in program()) {
        for again in both_forms(&program, &Limits::default()) {
            prop_assert!(again == program, "{}", write_json(&program));
            prop_assert_eq!(write_binary(&again), write_binary(&program));
            prop_assert_eq!(write_json(&again), write_json(&program));
        }
    }

    #[test]
    fn literals_keep_every_bit(value in value()) {
        let b = Builder::new();
        b.output("y", b.literal(value.clone()));
        for again in both_forms(&b.build().unwrap(), &Limits::default()) {
            let Node::Literal(found) = again.graph.node(again.outputs[0].node) else { panic!("no literal") };
            prop_assert_eq!(found, &value);
        }
    }
}

#[test]
fn spans_come_back() {
    let source = "input x: f32, y\noutput z = x * x + x * x\noutput w = y";
    let program = parse(source, &Anything, &Limits::default()).unwrap();
    for again in both_forms(&program, &Limits::default()) {
        assert_eq!(again.inputs[0].span.map(|span| span.text(source)), Some("x"));
        assert_eq!(again.outputs[1].span, program.outputs[1].span);
        let Node::Operator(_, operands) = again.graph.node(again.outputs[0].node) else { panic!("no operator") };
        let product = operands[0];
        assert_eq!(again.graph.spans(product).collect::<Vec<_>>(), [Span::new(27, 32), Span::new(35, 40)]);
    }
}

#[test]
fn nodes_that_no_output_needs_are_not_written() {
    let b = Builder::new();
    let (x, y) = (b.leaf("x"), b.typed_leaf("y", cembra_runtime::QType::TEXT));
    let unused = b.call("no.such", &[y, x]);
    assert_eq!(format!("{unused:?}"), "Expr(NodeId(2))");
    b.output("z", -x);
    let program = b.build().unwrap();
    assert!(!write_json(&program).contains("no.such"));
    for again in both_forms(&program, &Limits::default()) {
        assert!(again == program);
        assert_eq!(again.inputs.iter().map(|input| &*input.name).collect::<Vec<_>>(), ["y", "x"]);
    }
}

#[test]
fn a_literal_as_deep_as_the_limit_comes_back() {
    let deep = |levels| (0..levels).fold(Value::from(1_i32), |value, _| Value::Tuple([value].into()));
    let b = Builder::with_limits(Limits { tuple_nesting: 65, ..Limits::default() });
    b.output("y", b.literal(deep(64)));
    b.output("z", b.literal(deep(65)));
    let mut program = b.build().unwrap();
    for read in
        [read_binary(&write_binary(&program), &Limits::default()), read_json(&write_json(&program), &Limits::default())]
    {
        assert_eq!(read.unwrap_err().diagnostics()[0].code(), cembra_value::Code::Limit);
    }
    program.outputs.pop();
    for again in both_forms(&program, &Limits::default()) {
        assert!(again == program);
    }
}

#[test]
fn a_chain_of_a_million_nodes_comes_back() {
    let b = Builder::new();
    let x = b.leaf("x");
    let chain = (0..1_000_000).fold(x, |chain, _| chain + x);
    b.output("y", chain);
    let program = b.build().unwrap();
    // A kind, a name, an arity and two distances: the one to the leaf takes up to three bytes.
    assert!(write_binary(&program).len() < 8_000_000);
    for again in both_forms(&program, &Limits::default()) {
        assert_eq!(again.graph.len(), 1_000_001);
        assert!(again == program);
        assert_eq!(again.outputs[0].node, NodeId::from_index(1_000_000));
    }
}

#[test]
fn tiles_come_back() {
    let text = "tile i, j = 8\ntile a = [-3, 0, 17]\ninput x: tiled[f64, \"i,a\"]\nx";
    let program = parse(text, &Anything, &Limits::default()).unwrap();
    for again in both_forms(&program, &Limits::default()) {
        assert!(again == program, "{}", write_json(&again));
        assert_eq!(again.tiles[1].span.map(|span| span.text(text)), Some("tile a = [-3, 0, 17]"));
        assert_eq!(again.inputs[0].labels.as_deref(), Some("i,a"));
    }
    let json = write_json(&program);
    assert!(json.contains("\"version\": 4"), "{json}");
    for (from, to) in [
        ("tile i, j = 8", "tile i, i = 8"),
        ("tile i, j = 8", "tile a = 8"),
        ("tile i, j = 8", "tile i = 0"),
        ("tile i, j = 8", "output y = 1"),
        ("tile i, j = 8", "tile i = 8; tile j = 8"),
        ("tiled[f64, \\\"i,a\\\"]", "tiled[f64, 2]"),
    ] {
        assert!(json.contains(from), "{from} in {json}");
        let problem = read_json(&json.replace(from, to), &Limits::default()).expect_err(to);
        assert_eq!(problem.diagnostics()[0].code(), cembra_value::Code::Wire, "{to}: {problem}");
    }
}
