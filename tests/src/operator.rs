//! Operators as the golden data name them, and the program that applies one to inputs.

use crate::problem::{Malformed, Unsupported};
use cembra_expr::{Graph, Input, NodeId, Output, Program};
use cembra_ops::{OpDef, Registry};
use cembra_runtime::QType;
use cembra_value::Value;

/// The operator with this name.
///
/// # Errors
/// cembra has no such operator.
pub fn find(name: &str) -> Result<&'static OpDef, Unsupported> {
    let registry = Registry::standard();
    match registry.find(name) {
        Some(id) => Ok(registry.get(id)),
        None => Err(Unsupported::Operator(name.to_owned())),
    }
}

/// Applies an operator, giving parameters that are left out their defaults.
///
/// # Errors
/// There are too many operands, or one without a default is left out.
pub fn apply(graph: &mut Graph, operator: &'static OpDef, mut operands: Vec<NodeId>) -> Result<NodeId, Malformed> {
    let arity = || Malformed::Arity { operator: operator.name, found: operands.len() };
    if operands.len() > operator.params.len() && !operator.variadic {
        return Err(arity());
    }
    let fixed = operator.params.len() - usize::from(operator.variadic);
    let mut defaults = Vec::new();
    for param in operator.params.iter().take(fixed).skip(operands.len()) {
        defaults.push(param.default.clone().ok_or_else(arity)?);
    }
    operands.extend(defaults.into_iter().map(|value| graph.literal(value, None)));
    Ok(graph.operator(operator.name, &operands, None))
}

/// The operator of an operator case; `core.cast[T]` carries its target type.
#[derive(Clone, Debug)]
pub struct Callee {
    operator: &'static OpDef,
    target: Option<QType>,
}

impl Callee {
    /// Reads an operator as operator cases and signatures name it.
    ///
    /// # Errors
    /// cembra has no such operator or target type.
    pub fn parse(name: &str) -> Result<Callee, Unsupported> {
        match name.strip_suffix(']').and_then(|name| name.split_once('[')) {
            Some((operator, target)) => {
                Ok(Callee { operator: find(operator)?, target: Some(crate::decode::qtype(target)?) })
            }
            None => Ok(Callee { operator: find(name)?, target: None }),
        }
    }

    /// The operator applied to inputs of these types, named `x0`, `x1`, ..
    ///
    /// # Errors
    /// The operator does not take that many operands.
    pub fn program(&self, operand_types: &[QType]) -> Result<Program, Malformed> {
        let mut graph = Graph::new();
        let names: Vec<_> = (0..operand_types.len()).map(|index| format!("x{index}")).collect();
        let mut operands: Vec<_> = names.iter().map(|name| graph.leaf(name, None)).collect();
        if let Some(target) = &self.target {
            operands.push(graph.literal(Value::Type(target.clone()), None));
        }
        // A case names no parameters, but an edge can only be meant for the one that takes edges.
        let takes_edges = self.operator.params.iter().position(|param| ["into", "over"].contains(&param.name));
        if let (Some(QType::Edge(_)), Some(to)) = (operand_types.last(), takes_edges) {
            let before = self.operator.params[..to].iter().skip(operands.len() - 1);
            let defaults: Vec<_> = before.filter_map(|param| param.default.clone()).collect();
            let at = operands.len() - 1;
            operands.splice(at..at, defaults.into_iter().map(|value| graph.literal(value, None)));
        }
        let node = apply(&mut graph, self.operator, operands)?;
        Ok(program(graph, names.iter().map(String::as_str).zip(operand_types), node))
    }
}

/// The program with these inputs and one output.
pub(crate) fn program<'a>(graph: Graph, inputs: impl Iterator<Item = (&'a str, &'a QType)>, node: NodeId) -> Program {
    let inputs =
        inputs.map(|(name, qtype)| Input { qtype: Some(qtype.clone()), ..Input::untyped(name.into(), None) }).collect();
    let outputs = vec![Output { name: "result".into(), node, span: None }];
    Program { graph, inputs, outputs, ..Program::default() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cembra_expr::Node;
    use cembra_runtime::{ArrayKind, EdgeType, Scalar};

    fn operands(program: &Program) -> Vec<String> {
        let graph = &program.graph;
        let shown = |id: &NodeId| match graph.node(*id) {
            Node::Leaf(name) => graph.name(name).to_string(),
            Node::Literal(value) => value.to_string(),
            other => format!("{other:?}"),
        };
        graph.operands(program.outputs[0].node).iter().map(shown).collect()
    }

    #[test]
    fn operands_are_inputs_and_defaults_are_filled_in() {
        let sigmoid = Callee::parse("math.sigmoid").expect("an operator");
        let one = sigmoid.program(&[QType::Optional(Scalar::Float64)]).expect("a program");
        assert_eq!(operands(&one), ["x0", "0.", "1."]);
        assert_eq!(one.inputs[0].qtype, Some(QType::Optional(Scalar::Float64)));
        let three = sigmoid.program(&[QType::FLOAT64, QType::FLOAT32, QType::INT32]).expect("a program");
        assert_eq!(operands(&three), ["x0", "x1", "x2"]);
        assert!(matches!(sigmoid.program(&[]), Err(Malformed::Arity { found: 0, .. })));
        assert!(matches!(sigmoid.program(&vec![QType::INT32; 4]), Err(Malformed::Arity { found: 4, .. })));
    }

    #[test]
    fn an_edge_goes_to_the_parameter_for_edges() {
        let array = QType::Array(ArrayKind::Dense, Scalar::Int32);
        let edge = QType::Edge(EdgeType::Arrays(ArrayKind::Dense));
        let cdf = Callee::parse("math.cdf").expect("an operator");
        let program = |types: &[QType]| operands(&cdf.program(types).expect("a program"));
        assert_eq!(program(&[array.clone(), edge.clone()]), ["x0", "unspecified", "x1"]);
        assert_eq!(program(&[array.clone(), array.clone(), edge]), ["x0", "x1", "x2"]);
        assert_eq!(program(&[array.clone(), array]), ["x0", "x1", "unspecified"]);
    }

    #[test]
    fn the_target_of_a_cast_is_a_literal() {
        let cast = Callee::parse("core.cast[OPTIONAL_INT64]").expect("an operator");
        let program = cast.program(&[QType::BOOLEAN]).expect("a program");
        assert_eq!(operands(&program), ["x0", "i64?", "false"]);
        assert!(matches!(Callee::parse("core.cast[NOTHING]"), Err(Unsupported::Type(name)) if name == "NOTHING"));
        assert!(matches!(Callee::parse("core.frob[INT32]"), Err(Unsupported::Operator(name)) if name == "core.frob"));
    }
}
