//! Patterns of rewrite rules: expressions such as `add(neg(x), y)`, in which `x` stands for any node, `#c` for any constant, and a
//! number for a constant of that value and sign. They are parsed once, into lists in which operands come before their users.

use super::{Exactness, RewriteRule};
use crate::node::{Node, Operation};
use crate::{TensorErrorKind, TensorGraph, TensorNodeId};
use cembra_ops::{Law, OpId, Registry};
use cembra_runtime::Scalar;
use cembra_value::Error;
use cembra_value::ScalarValue;
use smallvec::SmallVec;
use std::sync::Arc;

/// The most commutative operators of a pattern: all combinations of their operand orders are tried.
const MOST_COMMUTATIVE: usize = 4;

/// A node of a rewrite rule's pattern or replacement. Its operands are given by their positions in the list of the
/// nodes.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum PatternNode {
    /// A variable: it stands for any node, but for one and the same node wherever it occurs.
    Variable(usize),
    /// A variable for a constant: it stands for any constant, but for one and the same constant wherever it occurs.
    Constant(usize),
    /// A constant that has exactly this value and sign.
    Number(f64),
    Apply(OpId, SmallVec<[usize; 3]>),
}

/// A rewrite rule after parsing: the nodes of its pattern and of its replacement.
#[derive(Debug)]
pub(super) struct Compiled {
    pub(super) name: Arc<str>,
    pub(super) exactness: Exactness,
    pattern: Vec<PatternNode>,
    pub(super) replacement: Vec<PatternNode>,
    variables: Vec<String>,
    guard: Option<fn(&RuleMatch<'_>) -> bool>,
    integers: bool,
    /// The positions of the pattern's commutative operators.
    commutative: SmallVec<[usize; 4]>,
}

/// A match of a rule's pattern, as the rule's guard receives it.
#[derive(Debug)]
pub struct RuleMatch<'f> {
    graph: &'f TensorGraph,
    variables: &'f [String],
    nodes: &'f [Option<TensorNodeId>],
}

impl RuleMatch<'_> {
    fn node(&self, name: &str) -> Option<&Node> {
        let at = self.variables.iter().position(|known| known == name)?;
        self.nodes[at].map(|node| self.graph.node(node))
    }

    /// The value of the constant that the variable `name` stands for; NaN if it does not stand for a constant.
    #[must_use]
    pub fn number(&self, name: &str) -> f64 {
        self.node(name).and_then(number).unwrap_or(f64::NAN)
    }

    /// The element type of the node that the variable `name` stands for; `None` if the pattern does not have the variable.
    #[must_use]
    pub fn scalar(&self, name: &str) -> Option<Scalar> {
        self.node(name).map(|node| node.scalar)
    }

    /// Rounds `number` to the element type of the node that the variable `name` stands for.
    #[must_use]
    pub fn rounded(&self, name: &str, number: f64) -> f64 {
        if self.scalar(name) == Some(Scalar::Float32) { f64::from(number as f32) } else { number }
    }
}

/// The value of a constant; `None` if the node is not a numeric constant.
fn number(node: &Node) -> Option<f64> {
    let Operation::Constant(bits) = node.operation else { return None };
    Some(match ScalarValue::from_bits(node.scalar, bits)? {
        ScalarValue::Boolean(value) => f64::from(u8::from(value)),
        ScalarValue::Int32(value) => f64::from(value),
        ScalarValue::Int64(value) => value as f64,
        ScalarValue::Float32(value) => f64::from(value),
        ScalarValue::Float64(value) => value,
        _ => return None,
    })
}

/// A parser for the expressions of one rule.
struct Reader<'t> {
    rest: &'t str,
    registry: &'static Registry,
    variables: Vec<String>,
}

impl<'t> Reader<'t> {
    #[cold]
    fn wrong(&self, message: &str) -> Error {
        Error::tensors(
            TensorErrorKind::Syntax,
            format!("{message} at `{}`", cembra_runtime::Excerpt::quoted(self.rest)),
        )
    }

    fn takes(&mut self, sign: char) -> bool {
        self.rest = self.rest.trim_start();
        match self.rest.strip_prefix(sign) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn word(&mut self) -> &'t str {
        let text = self.rest.trim_start();
        let len = text.find(|c: char| !(c.is_ascii_alphanumeric() || "_.#-".contains(c))).unwrap_or(text.len());
        self.rest = &text[len..];
        &text[..len]
    }

    fn variable(&mut self, name: &str) -> usize {
        let known = self.variables.iter().position(|known| known == name);
        known.unwrap_or_else(|| {
            self.variables.push(name.to_owned());
            self.variables.len() - 1
        })
    }

    /// Parses one expression. The names in `variables` already have positions; new names are appended.
    fn read(
        text: &str,
        registry: &'static Registry,
        variables: Vec<String>,
    ) -> Result<(Vec<PatternNode>, Vec<String>), Error> {
        /// An operator whose operands are being read.
        struct Open(OpId, SmallVec<[usize; 3]>);
        let mut reader = Reader { rest: text, registry, variables };
        let mut parts: Vec<PatternNode> = Vec::new();
        let mut open: Vec<Open> = Vec::new();
        loop {
            let word = reader.word();
            if reader.takes('(') {
                let Some(op) = reader.registry.find(word) else {
                    return Err(reader.wrong(&format!("there is no operator `{word}`,")));
                };
                open.push(Open(op, SmallVec::new()));
                continue;
            }
            let part = if let Some(name) = word.strip_prefix('#') {
                PatternNode::Constant(reader.variable(name))
            } else if let Ok(number) = word.parse() {
                PatternNode::Number(number)
            } else if word.is_empty() {
                return Err(reader.wrong("a rule expects a value"));
            } else {
                PatternNode::Variable(reader.variable(word))
            };
            parts.push(part);
            // A part that has ended is an operand of the innermost open operator.
            loop {
                let Some(Open(op, operands)) = open.last_mut() else {
                    if reader.rest.trim().is_empty() {
                        return Ok((parts, reader.variables));
                    }
                    return Err(reader.wrong("a rule has more than one expression"));
                };
                operands.push(parts.len() - 1);
                if reader.takes(',') {
                    break;
                }
                let made = PatternNode::Apply(*op, std::mem::take(operands));
                if !reader.takes(')') {
                    return Err(reader.wrong("a rule expects `,` or `)`"));
                }
                open.pop();
                parts.push(made);
            }
        }
    }
}

impl Compiled {
    pub(super) fn new(rule: &RewriteRule<'_>, registry: &'static Registry) -> Result<Compiled, Error> {
        let (pattern, variables) = Reader::read(rule.pattern, registry, Vec::new())?;
        let known = variables.len();
        let (replacement, variables) = Reader::read(rule.replacement, registry, variables)?;
        if variables.len() > known {
            let message = format!("the replacement has `{}`, which is not in the pattern", variables[known]);
            return Err(Error::tensors(TensorErrorKind::Syntax, message));
        }
        if !matches!(pattern.last(), Some(PatternNode::Apply(..))) {
            return Err(Error::tensors(TensorErrorKind::Syntax, "a pattern must be an operator with operands"));
        }
        let is_commutative = |part: &PatternNode| {
            matches!(part, PatternNode::Apply(op, operands)
                if operands.len() == 2 && registry.get(*op).laws.contains(&Law::Commutative))
        };
        let commutative: SmallVec<[usize; 4]> = (0..pattern.len()).filter(|at| is_commutative(&pattern[*at])).collect();
        if commutative.len() > MOST_COMMUTATIVE {
            let message = format!(
                "a pattern has {} operators whose operands may be swapped; the limit is {MOST_COMMUTATIVE}",
                commutative.len()
            );
            return Err(Error::tensors(TensorErrorKind::Limit, message));
        }
        let (name, exactness) = (Arc::from(rule.name), rule.exactness);
        Ok(Compiled {
            name,
            exactness,
            pattern,
            replacement,
            variables,
            guard: rule.guard,
            integers: rule.integers,
            commutative,
        })
    }

    /// The position of the pattern's outermost operator.
    pub(super) fn root(&self) -> u16 {
        match self.pattern.last() {
            Some(PatternNode::Apply(op, _)) => op.index() as u16,
            _ => u16::MAX,
        }
    }
}

/// The nodes that the variables of a matched pattern stand for.
#[derive(Debug)]
pub(super) struct Match {
    nodes: Vec<Option<TensorNodeId>>,
}

impl Match {
    /// Matches a rule's pattern with `node`, whose operands are in the graph; `None` if the pattern does not match.
    pub(super) fn of(rule: &Compiled, graph: &TensorGraph, node: &Node) -> Option<Match> {
        // Operands of commutative operators are tried in both orders.
        (0..1_u32 << rule.commutative.len()).find_map(|swapped| {
            let mut found = Match { nodes: vec![None; rule.variables.len()] };
            let holds = found.fits(rule, graph, node, swapped)
                && (rule.integers || found.floats(graph))
                && rule
                    .guard
                    .is_none_or(|guard| guard(&RuleMatch { graph, variables: &rule.variables, nodes: &found.nodes }));
            holds.then_some(found)
        })
    }

    fn fits(&mut self, rule: &Compiled, graph: &TensorGraph, node: &Node, swapped: u32) -> bool {
        let mut open: SmallVec<[(usize, TensorNodeId); 8]> = SmallVec::new();
        let push = |open: &mut SmallVec<[(usize, TensorNodeId); 8]>, at: usize, node: &Node| -> bool {
            let (PatternNode::Apply(op, parts), Operation::Map(found)) = (&rule.pattern[at], &node.operation) else {
                return false;
            };
            if found.has_texts() || *op != found.id() || parts.len() != node.operands.len() {
                return false;
            }
            let place = rule.commutative.iter().position(|known| *known == at);
            let is_swapped = place.is_some_and(|place| swapped >> place & 1 != 0);
            for (position, part) in parts.iter().enumerate() {
                let operand = if is_swapped { 1 - position } else { position };
                open.push((*part, node.operands[operand]));
            }
            true
        };
        if !push(&mut open, rule.pattern.len() - 1, node) {
            return false;
        }
        while let Some((at, id)) = open.pop() {
            let node = graph.node(id);
            let fits = match &rule.pattern[at] {
                PatternNode::Variable(variable) => *self.nodes[*variable].get_or_insert(id) == id,
                PatternNode::Constant(variable) => {
                    matches!(node.operation, Operation::Constant(_)) && *self.nodes[*variable].get_or_insert(id) == id
                }
                PatternNode::Number(wanted) => number(node).is_some_and(|found| found.to_bits() == wanted.to_bits()),
                PatternNode::Apply(..) => push(&mut open, at, node),
            };
            if !fits {
                return false;
            }
        }
        true
    }

    /// Returns true if all matched nodes are floats or truth values.
    fn floats(&self, graph: &TensorGraph) -> bool {
        let is_integer = |id: &TensorNodeId| matches!(graph.scalar(*id), Scalar::Int32 | Scalar::Int64);
        !self.nodes.iter().flatten().any(is_integer)
    }

    /// The node that a variable stands for. The pattern contains all variables of the replacement.
    pub(super) fn node(&self, variable: usize) -> Option<TensorNodeId> {
        self.nodes.get(variable).copied().flatten()
    }

    /// The type of number constants in a replacement: the type of the first matched node that is not a truth value. If there is no such node, the
    /// type of `like`.
    pub(super) fn scalar(&self, graph: &TensorGraph, like: &Node) -> Scalar {
        let found = self.nodes.iter().flatten().map(|id| graph.scalar(*id)).find(|scalar| *scalar != Scalar::Boolean);
        found.unwrap_or(like.scalar)
    }
}
