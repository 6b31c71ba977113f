//! Damages programs: changes one node or type in a well-typed program, which mostly makes it ill-typed, or changes a few characters of a text.
//! Every backend must reject an ill-typed program with the same error and without a panic. A damaged program that is still well-typed is tested
//! like an undamaged one.

use crate::Config;
use crate::any_value;
use crate::config::pick;
use crate::edit::{Edit, edited, takes_functions};
use crate::judge::read;
use crate::values;
use cembra::explain::print;
use cembra_expr::{NameId, Node, NodeId, Program};
use cembra_value::{Promise, Value};
use fastrand::Rng;

/// Returns a copy of `program` with one operator, literal, input or output changed.
pub(crate) fn damaged(random: &mut Rng, program: &Program, config: &Config) -> Program {
    let graph = &program.graph;
    let needed = graph.reachable(program.outputs.iter().map(|output| output.node));
    let operators: Vec<(NodeId, NameId, &[NodeId])> = (0..graph.len())
        .map(NodeId::from_index)
        .filter(|node| needed[node.index()])
        .filter_map(|node| match graph.node(node) {
            Node::Operator(name, operands) => Some((node, name, operands)),
            _ => None,
        })
        .collect();
    if operators.is_empty() || random.u32(..12) == 0 {
        return damaged_interface(random, program);
    }
    let &(node, name, operands) = pick(random, &operators);
    let name = graph.name(name).clone();
    let mut operands = operands.to_vec();
    let earlier = if node.index() > 0 { NodeId::from_index(random.usize(..node.index())) } else { node };
    let place = (!operands.is_empty()).then(|| random.usize(..operands.len()));
    let (at, edit) = match (random.u32(..8), place) {
        (0, Some(_)) => {
            operands.pop();
            (node, Edit::Operator(name, operands))
        }
        (1, Some(_)) => {
            operands.push(earlier);
            (node, Edit::Operator(name, operands))
        }
        (2, _) => (node, Edit::Operator(name[..name.len() - 1].into(), operands)),
        (3, _) => {
            let other = graph.name(pick(random, &operators).1).clone();
            (node, Edit::Operator(other, operands))
        }
        (4, Some(place)) => {
            let spare = match random.u32(..3) {
                0 => Edit::Literal(Value::Nothing),
                1 => Edit::Literal(Value::Type(values::input_type(random, 1))),
                _ => Edit::Placeholder("p".into()),
            };
            (operands[place], spare)
        }
        (5, Some(place)) => {
            let qtype = values::input_type(random, 1);
            (operands[place], Edit::Literal(any_value::value(random, &qtype, config)))
        }
        (_, Some(place)) => {
            operands[place] = earlier;
            (node, Edit::Operator(name, operands))
        }
        _ => (node, Edit::Literal(Value::Nothing)),
    };
    let made = edited(program, at, &edit);
    // The inside of a function that is not called has no types, so it is rejected as text but not as a graph. Text also cannot express one parameter
    // of two functions.
    let unlike = |back: Option<Program>| back.is_none_or(|back| back != made);
    let readable = !takes_functions(&made) || !read(&print(&made)).is_ok_and(unlike);
    if readable { made } else { program.clone() }
}

/// Changes an input or an output.
fn damaged_interface(random: &mut Rng, program: &Program) -> Program {
    let mut made = program.clone();
    let input = (!made.inputs.is_empty()).then(|| random.usize(..made.inputs.len()));
    let output = (!made.outputs.is_empty()).then(|| random.usize(..made.outputs.len()));
    match (random.u32(..4), input, output) {
        (0, _, Some(at)) => made.outputs[at].node = made.graph.literal(Value::Nothing, None),
        (1, ..) => made.outputs.clear(),
        // The promise was made for the old type.
        (kind, Some(at), _) => {
            let qtype = (kind != 2).then(|| values::input_type(random, 2));
            let input = &mut made.inputs[at];
            (input.qtype, input.promise, input.default) = (qtype, Promise::Nothing, None);
        }
        _ => {}
    }
    made
}

/// Fragments that are inserted into damaged text, besides parts of the text itself.
const SCRAPS: &[&str] = &[
    "(",
    ")",
    "{",
    "}",
    "[",
    "]",
    ",",
    ";",
    "\n",
    " ",
    "\"",
    "'",
    "\\",
    ".",
    "..",
    "=",
    "==",
    "!",
    "-",
    "**",
    "//",
    "|",
    "?",
    "??",
    ":",
    "&",
    "0",
    "1e",
    "9999999999999999999",
    "0x",
    "1.5f32",
    "let",
    "fn",
    "input",
    "output",
    "if",
    "then",
    "else",
    "not",
    "and",
    "missing",
    "present",
    "i32",
    "TUPLE",
    "OPTIONAL_",
    "é",
    "\u{0}",
    "\u{feff}",
    "#",
    "nan",
    "inf",
];

/// Returns `text` with one to four random changes.
pub(crate) fn garbled(random: &mut Rng, text: &str) -> String {
    let mut chars: Vec<char> = text.chars().collect();
    for _ in 0..random.u32(1..=4) {
        let at = random.usize(..=chars.len());
        let end = (at + random.usize(..8)).min(chars.len());
        match random.u32(..4) {
            0 => {
                chars.drain(at..end);
            }
            1 => {
                let part: Vec<char> = chars[at..end].to_vec();
                let to = random.usize(..=chars.len());
                chars.splice(to..to, part);
            }
            _ => {
                chars.splice(at..at, pick(random, SCRAPS).chars());
            }
        }
    }
    chars.into_iter().collect()
}
