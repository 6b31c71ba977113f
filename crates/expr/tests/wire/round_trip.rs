//! Tests that a program which is written to a file is read back as an equal program.

use crate::anything::Anything;
use crate::random::{program, value};
use cembra_expr::{Builder, Node, NodeId, Program, parse, print, read_binary, write_binary};
use cembra_value::{Limits, Span, Value};
use proptest::prelude::*;

fn written_and_read(program: &Program) -> Program {
    let read = read_binary(&write_binary(program), &Limits::default());
    read.unwrap_or_else(|problem| panic!("{problem}\n{}", print(program, &Anything)))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn programs_come_back(program in program()) {
        let again = written_and_read(&program);
        prop_assert!(again == program, "{}", print(&program, &Anything));
        prop_assert_eq!(write_binary(&again), write_binary(&program));
    }

    #[test]
    fn literals_keep_every_bit(value in value()) {
        let b = Builder::new();
        b.output("y", b.literal(value.clone()));
        let again = written_and_read(&b.build().unwrap());
        let Node::Literal(found) = again.graph.node(again.outputs[0].node) else { panic!("no literal") };
        prop_assert_eq!(found, &value);
    }
}

#[test]
fn spans_come_back() {
    let source = "input x: f32, y\noutput z = x * x + x * x\noutput w = y";
    let program = parse(source, &Anything, &Limits::default()).unwrap();
    let again = written_and_read(&program);
    assert_eq!(again.inputs[0].span.map(|span| span.text(source)), Some("x"));
    assert_eq!(again.outputs[1].span, program.outputs[1].span);
    let Node::Operator(_, operands) = again.graph.node(again.outputs[0].node) else { panic!("no operator") };
    let product = operands[0];
    assert_eq!(again.graph.spans(product).collect::<Vec<_>>(), [Span::new(27, 32), Span::new(35, 40)]);
}

#[test]
fn nodes_that_no_output_needs_are_not_written() {
    let b = Builder::new();
    let (x, y) = (b.leaf("x"), b.typed_leaf("y", cembra_runtime::QType::TEXT));
    let unused = b.call("no.such", &[y, x]);
    assert_eq!(format!("{unused:?}"), "Expr(NodeId(2))");
    b.output("z", -x);
    let program = b.build().unwrap();
    assert!(!write_binary(&program).windows(7).any(|bytes| bytes == b"no.such"));
    let again = written_and_read(&program);
    assert!(again == program);
    assert_eq!(again.inputs.iter().map(|input| &*input.name).collect::<Vec<_>>(), ["y", "x"]);
}

#[test]
fn a_literal_as_deep_as_the_limit_comes_back() {
    let deep = |levels| (0..levels).fold(Value::from(1_i32), |value, _| Value::Tuple([value].into()));
    let b = Builder::with_limits(Limits::default().tuple_nesting(65));
    b.output("y", b.literal(deep(64)));
    b.output("z", b.literal(deep(65)));
    let mut program = b.build().unwrap();
    let problem = read_binary(&write_binary(&program), &Limits::default()).unwrap_err();
    assert_eq!(problem.diagnostics()[0].code(), cembra_value::Code::Limit);
    program.outputs.pop();
    let again = written_and_read(&program);
    assert!(again == program);
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
    let again = written_and_read(&program);
    assert_eq!(again.graph.len(), 1_000_001);
    assert!(again == program);
    assert_eq!(again.outputs[0].node, NodeId::from_index(1_000_000));
}

#[test]
fn tiles_come_back() {
    let text = "tile i, j = 8\ntile a = [-3, 0, 17]\ninput x: tiled[f64, \"i,a\"]\nx";
    let program = parse(text, &Anything, &Limits::default()).unwrap();
    let again = written_and_read(&program);
    assert!(again == program, "{}", print(&again, &Anything));
    assert_eq!(again.tiles[1].span.map(|span| span.text(text)), Some("tile a = [-3, 0, 17]"));
    assert_eq!(again.inputs[0].labels.as_deref(), Some("i,a"));
    let binary = write_binary(&program);
    assert_eq!(binary[16..18], [0x10, 4], "the version");
    for (from, to) in [
        ("tile i, j = 8", "tile i, i = 8"),
        ("tile i, j = 8", "tile a    = 8"),
        ("tile i, j = 8", "tile i    = 0"),
        ("tile i, j = 8", "output yy = 1"),
        ("tile i, j = 8", "tile i=8; x=1"),
        ("tiled[f64, \"i,a\"]", "tiled[f64,     2]"),
    ] {
        assert_eq!(from.len(), to.len());
        let mut other = binary.clone();
        let at = binary.windows(from.len()).position(|bytes| bytes == from.as_bytes()).expect(from);
        other[at..at + to.len()].copy_from_slice(to.as_bytes());
        let problem = read_binary(&other, &Limits::default()).expect_err(to);
        assert_eq!(problem.diagnostics()[0].code(), cembra_value::Code::Wire, "{to}: {problem}");
    }
}
