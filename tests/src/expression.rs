//! The S-expressions of the golden data, read into a program. Nothing recurses: an expression may nest as deep as it likes.

use crate::decode;
use crate::operator::{apply, find, program};
use crate::problem::{Defect, Malformed};
use cembra_expr::{Graph, NodeId, Program};
use cembra_ops::OpDef;
use cembra_runtime::QType;
use rustc_hash::FxHashMap;
use serde_json::Value as Json;

/// Reads an expression over these inputs.
///
/// # Errors
/// The text does not follow the grammar, or uses a type or operator that cembra does not have.
pub fn read(text: &str, inputs: &[(String, QType)]) -> Result<Program, Defect> {
    let mut graph = Graph::new();
    let leaves: FxHashMap<&str, NodeId> =
        inputs.iter().map(|(name, _)| (name.as_str(), graph.leaf(name, None))).collect();
    let mut reader = Reader { text, at: 0 };
    // Operators whose bracket is open, each with the number of finished operands that belong to outer ones.
    let mut open: Vec<(&'static OpDef, usize)> = Vec::new();
    let mut finished: Vec<NodeId> = Vec::new();
    loop {
        let node = match reader.token()? {
            "(" => match reader.token()? {
                "lit" => reader.literal(&mut graph)?,
                name @ ("(" | ")") => return Err(reader.error(name, "an operator")),
                name => {
                    open.push((find(name)?, finished.len()));
                    continue;
                }
            },
            ")" => {
                let Some((operator, first)) = open.pop() else { return Err(reader.error(")", "an expression")) };
                let operands = finished.split_off(first);
                apply(&mut graph, operator, operands)?
            }
            leaf => match leaf.strip_prefix("L.").and_then(|name| leaves.get(name)) {
                Some(node) => *node,
                None => return Err(reader.error(leaf, "a declared leaf")),
            },
        };
        finished.push(node);
        if open.is_empty() {
            return match reader.rest().trim_start() {
                "" => Ok(program(graph, inputs.iter().map(|(name, qtype)| (name.as_str(), qtype)), node)),
                _ => Err(reader.error("", "the end")),
            };
        }
    }
}

struct Reader<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Reader<'t> {
    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    /// The error of having found something else, which was just read.
    fn error(&self, found: &str, expected: &'static str) -> Defect {
        Malformed::Expression { at: self.at - found.len(), expected }.into()
    }

    /// A bracket, or a word up to the next space or bracket.
    fn token(&mut self) -> Result<&'t str, Defect> {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
        let rest = self.rest();
        let len = match rest.find(|c: char| c.is_whitespace() || c == '(' || c == ')') {
            None if rest.is_empty() => return Err(self.error("", "an expression")),
            None => rest.len(),
            Some(0) => 1,
            Some(end) => end,
        };
        self.at += len;
        Ok(&rest[..len])
    }

    /// The text up to the next closing bracket that is not inside a JSON string.
    fn up_to_bracket(&mut self) -> &'t str {
        let rest = self.rest();
        let (mut in_string, mut escaped) = (false, false);
        let end = rest.bytes().position(|byte| {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = in_string,
                b'"' => in_string = !in_string,
                _ => {}
            }
            byte == b')' && !in_string
        });
        let text = &rest[..end.unwrap_or(rest.len())];
        self.at += text.len();
        text
    }

    /// What follows `(lit`.
    fn literal(&mut self, graph: &mut Graph) -> Result<NodeId, Defect> {
        let qtype = decode::qtype(self.token()?)?;
        let json = self.up_to_bracket();
        let encoded: Json = serde_json::from_str(json).map_err(|_| self.error(json, "a JSON value"))?;
        let value = decode::value(&qtype, &encoded)?;
        // Only the end of the text can be here instead of the bracket.
        self.token()?;
        Ok(graph.literal(value, None))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::Unsupported;
    use cembra_expr::Node;
    use cembra_value::Value;

    fn inputs() -> Vec<(String, QType)> {
        vec![("i".to_owned(), QType::INT32), ("x".to_owned(), QType::FLOAT32)]
    }

    /// The nodes of a program, each operand as its number.
    fn nodes(program: &Program) -> Vec<String> {
        let graph = &program.graph;
        let shown = |index: usize| match graph.node(NodeId::from_index(index)) {
            Node::Leaf(name) => graph.name(name).to_string(),
            Node::Literal(value) => value.to_string(),
            Node::Operator(name, operands) => {
                format!("{} {:?}", graph.name(name), operands.iter().map(|id| id.index()).collect::<Vec<_>>())
            }
            Node::Placeholder(name) => format!("{name:?}"),
        };
        (0..graph.len()).map(shown).collect()
    }

    #[test]
    fn equal_subexpressions_are_one_node() {
        let text = r#"(math.add (math.neg L.i) (math.multiply (math.neg L.i) (lit INT32 "-7")))"#;
        let program = read(text, &inputs()).expect("an expression");
        let expected = ["i", "x", "math.neg [0]", "-7", "math.multiply [2, 3]", "math.add [2, 4]"];
        assert_eq!(nodes(&program), expected);
        assert_eq!(program.outputs[0].node.index(), 5);
        assert_eq!(program.inputs[1].name.as_ref(), "x");
        assert_eq!(program.inputs[1].qtype, Some(QType::FLOAT32));
    }

    #[test]
    fn literals_are_json() {
        let text = r#"(core.make_tuple (lit TEXT "a) (\" \u00df") (lit OPTIONAL_INT64 null) (lit UNIT true))"#;
        let program = read(text, &inputs()).expect("an expression");
        let literals: Vec<_> = (0..program.graph.len())
            .filter_map(|index| match program.graph.node(NodeId::from_index(index)) {
                Node::Literal(value) => Some(value.clone()),
                _ => None,
            })
            .collect();
        assert_eq!(literals[0], Value::from("a) (\" \u{df}"));
        assert_eq!(literals[1], Value::from(None::<i64>));
        assert_eq!(literals[2].qtype(), QType::UNIT);
    }

    #[test]
    fn a_leaf_alone_is_an_expression() {
        assert_eq!(read("L.x", &inputs()).expect("an expression").outputs[0].node.index(), 1);
    }

    #[test]
    fn bad_expressions_are_malformed_where_they_go_wrong() {
        for (text, at, expected) in [
            ("", 0, "an expression"),
            ("L.y", 0, "a declared leaf"),
            ("(math.neg L.i", 13, "an expression"),
            ("(math.neg L.i) L.x", 14, "the end"),
            (")", 0, "an expression"),
            ("((math.neg L.i))", 1, "an operator"),
            ("(lit INT32 \"1\" 2)", 10, "a JSON value"),
            ("(lit INT32 )", 10, "a JSON value"),
            ("(lit INT32 \"1\"", 14, "an expression"),
        ] {
            match read(text, &inputs()) {
                Err(Defect::Malformed(Malformed::Expression { at: a, expected: e })) => {
                    assert_eq!((a, e), (at, expected), "{text}");
                }
                other => panic!("{text}: {other:?}"),
            }
        }
    }

    #[test]
    fn what_cembra_does_not_have_is_told_apart() {
        let found = read("(math.neg (math.frob L.i))", &inputs());
        assert!(matches!(found, Err(Defect::Unsupported(Unsupported::Operator(ref name))) if name == "math.frob"));
        let found = read("(math.neg (lit DENSE_ARRAY_INT16 [\"1\"]))", &inputs());
        assert!(matches!(found, Err(Defect::Unsupported(Unsupported::Type(ref name))) if name == "DENSE_ARRAY_INT16"));
    }

    #[test]
    fn nesting_is_not_limited_by_the_stack() {
        let depth = 200_000;
        let text = format!("{}L.i{}", "(math.neg ".repeat(depth), ")".repeat(depth));
        assert_eq!(read(&text, &inputs()).expect("an expression").graph.len(), depth + 2);
    }
}
