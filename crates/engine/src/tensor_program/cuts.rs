//! Whether axes are cut as the labels say that a text uses for them: `a("i,k")` of an input `tiled[f64, "p,k"]` needs `i` and `p` to be cut
//! alike. Labels alone decide, so a text is right or wrong before there are data. That the extents of data fit is checked where tiles are.

use crate::signature::Field;
use cembra_expr::{Cut, Node, NodeId, Program};
use cembra_ops::{Registry, id};
use cembra_runtime::{Excerpt, QType};
use cembra_tensor::TensorErrorKind;
use cembra_value::{Error, ScalarValue, Value};
use rustc_hash::FxHashMap;

/// The labels of the axes of a value, by its node. None where each axis is one tile, as those of an input `tensor[f64, 2]` are.
type Known<'p> = FxHashMap<NodeId, Option<&'p str>>;

/// The labels that are cut, and how.
pub(super) fn of(program: &Program) -> impl Iterator<Item = (&str, &Cut)> {
    program.tiles.iter().flat_map(|rule| rule.labels.iter().map(|label| (&**label, &rule.cut)))
}

/// An error if a value is used with labels that are not cut as its axes are.
pub(super) fn check(program: &Program, registry: &Registry, inputs: &[Field]) -> Result<(), Error> {
    if program.tiles.is_empty() && inputs.iter().all(|input| input.labels.is_none()) {
        return Ok(());
    }
    let tensors = inputs.iter().filter(|input| matches!(input.qtype, QType::Tensor(..)));
    let labelled: FxHashMap<&str, Option<&str>> =
        tensors.map(|input| (&*input.name, input.labels.as_deref())).collect();
    let cuts: FxHashMap<&str, &Cut> = of(program).collect();
    let cut = |label: &str| cuts.get(label).copied();
    let graph = &program.graph;
    let text = |node: NodeId| match graph.node(node) {
        Node::Literal(Value::Scalar(ScalarValue::Text(text))) => Some(&**text),
        _ => None,
    };
    let mut known: Known<'_> = FxHashMap::default();
    let needed = graph.reachable(program.outputs.iter().map(|output| output.node));
    for (at, _) in needed.into_iter().enumerate().filter(|(_, needed)| *needed) {
        let node = NodeId::from_index(at);
        let own = match graph.node(node) {
            Node::Leaf(name) => labelled.get(&**graph.name(name)).copied(),
            Node::Operator(name, operands) => match (registry.find(graph.name(name)), operands) {
                (Some(id::TENSOR_AT), &[of, labels]) => {
                    let (Some(own), Some(used)) = (known.get(&of), text(labels)) else { continue };
                    let mut own = own.map(|own| own.split(','));
                    let mut pairs = used.split(',').map(str::trim).filter_map(|used| {
                        let own = own.as_mut().map_or(Some(""), Iterator::next)?;
                        Some((own, used))
                    });
                    if let Some((own, used)) = pairs.find(|(own, used)| cut(own) != cut(used)) {
                        return Err(unlike([own, used], cut).at(graph.span(node).unwrap_or_default()));
                    }
                    None
                }
                (Some(id::TENSOR_BIND), &[_, labels]) => text(labels).map(Some),
                (Some(id::TENSOR_ASSIGN), &[old, _, labels]) => {
                    known.get(&old).copied().or_else(|| text(labels).map(Some))
                }
                // A value that is made element by element has the axes of its largest operand.
                (Some(op), operands) if !registry.get(op).typing.is_of_tensors() => {
                    let labels = operands.iter().filter_map(|operand| known.get(operand).copied());
                    labels.max_by_key(|labels| labels.map_or(0, str::len))
                }
                _ => None,
            },
            _ => None,
        };
        if let Some(own) = own {
            known.insert(node, own);
        }
    }
    Ok(())
}

#[cold]
fn unlike<'c>([own, used]: [&str; 2], cut: impl Fn(&str) -> Option<&'c Cut>) -> Error {
    let said = |label: &str| match (label, cut(label)) {
        ("", _) => "the axis is one tile".to_owned(),
        (_, None) => format!("the axis of `{}` is one tile", Excerpt::quoted(label)),
        (_, Some(Cut::Blocks(size))) => format!("`{}` is cut in tiles of {size}", Excerpt::quoted(label)),
        (_, Some(cut)) => format!("`{}` is cut at {}", Excerpt::quoted(label), Excerpt::quoted(&cut.to_string())),
    };
    let error = Error::tensors(TensorErrorKind::SizeMismatch, format!("{}, and {}", said(own), said(used)));
    error.hint(match cut(own) {
        None => "an input is cut by its labels: `input a: tiled[f64, \"i,j\"]`",
        Some(_) => "labels of one axis are cut alike: say both in one `tile i, j = 8`",
    })
}
