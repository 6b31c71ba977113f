//! Shared code of the tests of the text language: vocabularies, and functions that show graphs as nested lists.

use cembra_expr::{Callable, Graph, Integers, Node, NodeId, Parameter, Program, Vocabulary, parse};
use cembra_value::{Limits, ScalarValue, Value};

static ONE: [Parameter; 1] = [Parameter::new("x", None)];
static WHERE: [Parameter; 3] =
    [Parameter::new("condition", None), Parameter::new("value", None), Parameter::new("other", Some(Value::Nothing))];
static CLIP: [Parameter; 3] = [
    Parameter::new("x", None),
    Parameter::new("lo", Some(Value::Scalar(ScalarValue::Int32(0)))),
    Parameter::new("hi", Some(Value::Scalar(ScalarValue::WeakFloat(1.0)))),
];

/// A vocabulary that has some operators with signatures and short names. Every other name with a dot is an operator
/// with any number of arguments. None of these operators converts integers to floats, so graphs have no conversion
/// marks.
pub(crate) struct Operators;

/// The vocabulary `Operators`, but some operators convert integers to floats.
pub(crate) struct OperatorsOnNumbers;

impl Vocabulary for OperatorsOnNumbers {
    fn resolve(&self, name: &str) -> Option<Callable<'_>> {
        let integers = match name {
            "math.divide" | "math.sqrt" | "sqrt" => Integers::Widen,
            "math.add" | "math.multiply" | "core.less" | "core._in" => Integers::WidenBesideFloats(0),
            "core._where" | "where" => Integers::WidenBesideFloats(1),
            _ => Integers::Stay,
        };
        Operators.resolve(name).map(|callable| Callable { integers, ..callable })
    }

    fn suggest(&self, name: &str) -> Vec<String> {
        Operators.suggest(name)
    }
}

impl Vocabulary for Operators {
    fn resolve(&self, name: &str) -> Option<Callable<'_>> {
        let integers = Integers::Stay;
        let known = |name, params| Callable { name, params, variadic: false, of_one: None, integers };
        Some(match name {
            "sqrt" | "math.sqrt" => known("math.sqrt", &ONE),
            "where" | "core._where" => known("core._where", &WHERE),
            "clip" | "math.clip" => known("math.clip", &CLIP),
            "exp" => known("math.exp", &ONE),
            "any" => Callable { name: "core.any", params: &[], variadic: true, of_one: None, integers },
            // A test may leak its names.
            _ if name.contains('.') && !name.starts_with("no.") => Callable {
                name: Box::leak(name.to_owned().into_boxed_str()),
                params: &[],
                variadic: true,
                of_one: None,
                integers,
            },
            _ => return None,
        })
    }

    fn suggest(&self, name: &str) -> Vec<String> {
        if name.contains("sqr") { vec!["math.sqrt".into(), "sqrt".into()] } else { Vec::new() }
    }
}

pub(crate) fn read(source: &str) -> Program {
    read_with(source, &Operators)
}

pub(crate) fn read_with(source: &str, vocabulary: &dyn Vocabulary) -> Program {
    parse(source, vocabulary, &Limits::default()).unwrap_or_else(|problems| panic!("{source}\n{problems}"))
}

/// Returns an expression as a nested list: `(math.add a 1)`.
pub(crate) fn list(graph: &Graph, id: NodeId) -> String {
    match graph.node(id) {
        Node::Leaf(name) => graph.name(name).to_string(),
        Node::Placeholder(name) => format!("P.{}", graph.name(name)),
        Node::Literal(value) => cembra_expr::print_value(value),
        Node::Operator(name, operands) => {
            let operands: String = operands.iter().map(|operand| format!(" {}", list(graph, *operand))).collect();
            format!("({}{operands})", graph.name(name))
        }
    }
}

/// Returns the outputs of a program as nested lists, without `math.` and `core.` in names.
pub(crate) fn lists(source: &str) -> Vec<String> {
    let program = read(source);
    program
        .outputs
        .iter()
        .map(|output| list(&program.graph, output.node).replace("math.", "").replace("core.", ""))
        .collect()
}
