//! Tests the description of machine code: the operator to which each range of bytes belongs.
#![cfg(target_arch = "x86_64")]

use cembra::doors::{Machine, Origin};
use cembra::native::Tier;
use cembra::{Model, Options};

fn machine(source: &str) -> Machine {
    let model = Model::parse(source).expect("a model");
    let machine = model.machine(&Options::default().tier(Tier::Quick)).expect("machine code");
    let mut end = 0;
    for Origin { bytes, operator, .. } in &machine.origins {
        assert!(end <= bytes.start && bytes.start < bytes.end, "{operator} at {bytes:?} after {end}");
        end = bytes.end;
    }
    assert!(end <= machine.code.len());
    machine
}

/// Returns the operator to which the byte at the offset `at` belongs, and the operator's text in the source.
fn origin<'m>(machine: &'m Machine, source: &'m str, at: usize) -> Option<(&'m str, &'m str)> {
    let found = machine.origins.iter().find(|origin| origin.bytes.contains(&at))?;
    Some((&found.operator, found.span.expect("a place").text(source)))
}

#[test]
fn instructions_belong_to_the_operators_they_are_for() {
    let source = "input x, y: f64\noutput z = sqrt(x) * (y + 1.5)";
    let machine = machine(source);
    // The root is one instruction, whose operation is 51 after 0f or a VEX prefix of two or three bytes; there is no other
    // with these bytes.
    let is_root = |bytes: &[u8]| matches!(bytes, [0x0f, 0x51, ..] | [0xc5, _, 0x51, _] | [0xc4, _, _, 0x51]);
    let root = machine.code.windows(4).position(is_root).expect("a root");
    assert_eq!(origin(&machine, source, root), Some(("math.sqrt", "sqrt(x)")));
    let mut operators: Vec<_> = machine.origins.iter().map(|origin| origin.operator.as_str()).collect();
    operators.dedup();
    operators.sort_unstable();
    assert_eq!(operators, ["+", "math.multiply", "math.sqrt"]);
    // The first byte enters the function and the last one leaves it, for no operator.
    assert_eq!(origin(&machine, source, 0), None);
    let end = machine.code.iter().rposition(|byte| *byte == 0xc3).expect("a return");
    assert_eq!(origin(&machine, source, end), None);
}

#[test]
fn branches_faults_and_calls_belong_to_their_operators() {
    let source = "input x: i32\ninput s: text\noutput z = where(x > 7, 100 // x, strings.length(s))";
    let machine = machine(source);
    let texts: Vec<_> = machine
        .origins
        .iter()
        .map(|origin| (origin.operator.as_str(), origin.span.expect("a place").text(source)))
        .collect();
    // The comparison is part of the branch.
    for expected in
        [("where", &source[38..]), ("math.floor_divide", "100 // x"), ("strings.length", "strings.length(s)")]
    {
        assert!(texts.contains(&expected), "{expected:?} is not in {texts:?}");
    }
}
