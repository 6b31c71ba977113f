//! Warnings about lost digits in a model with tensors. In such a model, type inference does not type each element, so the element types of an
//! expression over labels, such as `a("i") / 3`, are computed here from the types of its operands.

use super::{WrittenOperator, as_integer, asks_for_floats, compared, is_comparison, is_small, lost, rounded};
use cembra_expr::{Node, NodeId, Program};
use cembra_ops::{Argument, OpId, Registry, Typing};
use cembra_runtime::{QType, Scalar};
use cembra_value::{Code, Value, Warnings, common_scalar};
use smallvec::SmallVec;

/// The element types of operands; `None` for an operand whose type is not known.
type Elements = SmallVec<[Option<Scalar>; 4]>;

/// Adds warnings about a model with tensors to `found`. `types` has the type of each node of the program, `None` if it is not known.
pub fn find_tensor_warnings(program: &Program, types: &[Option<QType>], registry: &Registry, found: &mut Warnings) {
    let graph = &program.graph;
    let needed = graph.reachable(program.outputs.iter().map(|output| output.node));
    let mut elements: Vec<Option<Scalar>> = Vec::with_capacity(graph.len());
    for (at, needed) in needed.into_iter().enumerate() {
        let node = NodeId::from_index(at);
        let known = types.get(at).and_then(Option::as_ref).and_then(|qtype| match qtype {
            QType::Tensor(scalar, _) => Some(*scalar),
            other => other.of_each().scalar(),
        });
        let (name, operands) = match graph.node(node) {
            Node::Operator(name, operands) if needed => (name, operands),
            // A number with a fraction takes on the type of the other operand.
            Node::Literal(value) => {
                elements.push(value.qtype().of_each().scalar());
                continue;
            }
            _ => {
                elements.push(known);
                continue;
            }
        };
        let of: Elements = operands.iter().map(|operand| elements[operand.index()]).collect();
        let op = registry.find(graph.name(name)).map(|op| chosen(registry, op, &of));
        let made = known.or_else(|| of_elements(registry, op?, &of));
        elements.push(made);
        if let Some(op) = op.filter(|op| !asks_for_floats(*op)) {
            digits(&WrittenOperator { graph, registry, op, operands, place: graph.span(node) }, &of, made, found);
        }
    }
}

/// The element types as scalar types; `None` if one is not known.
fn scalars(of: &Elements) -> Option<SmallVec<[QType; 4]>> {
    of.iter().map(|scalar| scalar.map(QType::Scalar)).collect()
}

/// The operator that the named operator `op` stands for on elements of these types.
fn chosen(registry: &Registry, op: OpId, of: &Elements) -> OpId {
    match scalars(of) {
        Some(types) if registry.get(op).is_replaceable(&types) && registry.get(op).check_count(types.len()).is_ok() => {
            registry.meant(op, &types.iter().collect::<SmallVec<[&QType; 4]>>())
        }
        _ => op,
    }
}

/// The element type of an operator's result; `None` if it is not known.
fn of_elements(registry: &Registry, op: OpId, of: &Elements) -> Option<Scalar> {
    if !matches!(registry.get(op).typing, Typing::Promote(_) | Typing::Overloads) {
        return None;
    }
    let types = scalars(of)?;
    let args: SmallVec<[Argument<'_>; 4]> = types.iter().map(|qtype| Argument { qtype, literal: None }).collect();
    registry.resolve(op, &args).ok()?.signature.ret.of_each().scalar()
}

/// Warns about integers that become 32-bit floats because of the other operands: integers of 64 bits, literals that are not such
/// floats, and integers that are compared.
fn digits(written: &WrittenOperator<'_>, of: &Elements, made: Option<Scalar>, found: &mut Warnings) {
    let compares = is_comparison(written.op);
    let computed_as = if compares {
        let mut numbers = of.iter().copied();
        let first = numbers.next().flatten();
        numbers.fold(first, |common, next| common_scalar(common?, next?))
    } else {
        made
    };
    let promotes = compares || matches!(written.registry.get(written.op).typing, Typing::Promote(_));
    let is_float = |scalar: &Option<Scalar>| matches!(scalar, Some(Scalar::Float32 | Scalar::Float64));
    // An operator that picks elements by index has floats among its operands.
    if computed_as != Some(Scalar::Float32) || !promotes && of.iter().any(is_float) {
        return;
    }
    let literal = |at: usize| written.operands.get(at).and_then(|operand| written.literal(*operand));
    for (at, scalar) in of.iter().enumerate() {
        let wrote = written.operands.get(at);
        let mut others = (0..of.len()).filter(|other| *other != at).filter_map(literal);
        match (scalar, literal(at).and_then(Value::as_scalar).and_then(as_integer)) {
            (Some(Scalar::Int32 | Scalar::Int64), Some(integer)) if promotes => {
                rounded(integer, integer as f32, wrote, written, found);
            }
            (Some(Scalar::Int64), _) => found.add(Code::LostDigits, written.place, || lost(wrote, written)),
            (Some(Scalar::Int32), None) if compares && !others.any(is_small) => {
                found.add(Code::LostDigits, written.place, || compared(wrote, written));
            }
            _ => {}
        }
    }
}
