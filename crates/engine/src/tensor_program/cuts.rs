//! Whether axes are cut as the labels say that a text uses for them: `a("i,k")` of an input `tiled[f64, "p,k"]` needs `i` and `p` to be cut
//! alike. Labels and blocks alone decide, so a text is right or wrong before there are data. That the extents of data fit is checked where tiles
//! are.

use super::axis_tiles::AxisTiles;
use super::tilings::beyond;
use crate::signature::Field;
use cembra_expr::{Cut, Node, NodeId, Program};
use cembra_ops::{Registry, id};
use cembra_runtime::{Excerpt, QType};
use cembra_tensor::TensorErrorKind;
use cembra_value::{Error, ScalarValue, Value};
use rustc_hash::FxHashMap;
use std::rc::Rc;

/// The axes of a value, by its node. None where each axis is one tile, as those of an input `tensor[f64, 2]` are.
type Known<'p> = FxHashMap<NodeId, Option<Rc<[Axis<'p>]>>>;

/// An axis of a value: cut as its label is, unless it is one of a block.
#[derive(Clone, Debug)]
struct Axis<'p> {
    label: &'p str,
    /// How the axis of a block is cut.
    block: Option<AxisTiles>,
}

/// The labels that are cut, and how.
pub(super) fn of(program: &Program) -> impl Iterator<Item = (&str, &Cut)> {
    program.tiles.iter().flat_map(|rule| rule.labels.iter().map(|label| (&**label, &rule.cut)))
}

/// An error if a value is used with labels that are not cut as its axes are, or a block has tiles that an axis does not have.
pub(super) fn check(program: &Program, registry: &Registry, inputs: &[Field]) -> Result<(), Error> {
    if program.tiles.is_empty() && inputs.iter().all(|input| input.labels.is_none()) {
        return Ok(());
    }
    let cuts: FxHashMap<&str, &Cut> = of(program).collect();
    let cut = |label: &str| cuts.get(label).copied();
    let tensors = inputs.iter().filter(|input| matches!(input.qtype, QType::Tensor(..)));
    let labelled: FxHashMap<&str, Option<Rc<[Axis<'_>]>>> =
        tensors.map(|input| (&*input.name, input.labels.as_deref().map(axes))).collect();
    let graph = &program.graph;
    let text = |node: NodeId| match graph.node(node) {
        Node::Literal(Value::Scalar(ScalarValue::Text(text))) => Some(&**text),
        _ => None,
    };
    let one = Axis { label: "", block: None };
    let mut known: Known<'_> = FxHashMap::default();
    let needed = graph.reachable(program.outputs.iter().map(|output| output.node));
    for (at, _) in needed.into_iter().enumerate().filter(|(_, needed)| *needed) {
        let node = NodeId::from_index(at);
        let own = match graph.node(node) {
            Node::Leaf(name) => labelled.get(&**graph.name(name)).cloned(),
            Node::Operator(name, operands) => match (registry.find(graph.name(name)), operands) {
                (Some(id::TENSOR_AT), &[of, labels]) => {
                    let (Some(own), Some(used)) = (known.get(&of), text(labels)) else { continue };
                    let mut own = own.as_ref().map(|own| own.iter());
                    let mut pairs = used.split(',').map(str::trim).filter_map(|used| {
                        let own = own.as_mut().map_or(Some(&one), Iterator::next)?;
                        Some((own, used))
                    });
                    let is_unlike = |(own, used): &(&Axis<'_>, &str)| match &own.block {
                        None => cut(own.label) != cut(used),
                        Some(block) => !block.is_alike(cut(used)),
                    };
                    if let Some((own, used)) = pairs.find(is_unlike) {
                        return Err(unlike(own, used, cut).at(graph.span(node).unwrap_or_default()));
                    }
                    None
                }
                (Some(id::TENSOR_BIND), &[_, labels]) => text(labels).map(|labels| Some(axes(labels))),
                (Some(id::TENSOR_ASSIGN), &[old, _, labels]) => {
                    known.get(&old).cloned().or_else(|| text(labels).map(|labels| Some(axes(labels))))
                }
                (Some(id::TENSOR_BLOCK), &[of, start, stop]) => {
                    let (Some(own), Some(start), Some(stop)) =
                        (known.get(&of), numbers(program, registry, start), numbers(program, registry, stop))
                    else {
                        continue;
                    };
                    let of_label = |own: &Axis<'_>| own.block.clone().unwrap_or_else(|| AxisTiles::of(cut(own.label)));
                    let mut made = Vec::new();
                    for (axis, (start, stop)) in start.into_iter().zip(stop).enumerate() {
                        let own = own.as_ref().map_or(Some(&one), |own| own.get(axis));
                        let Some(own) = own else { continue };
                        let (tiles, range) = (of_label(own), start..stop);
                        if let Some(count) = tiles.known_count().filter(|count| stop > *count) {
                            return Err(beyond(axis, &range, count).at(graph.span(node).unwrap_or_default()));
                        }
                        made.push(Axis { label: own.label, block: Some(tiles.block(&range)) });
                    }
                    Some(Some(made.into()))
                }
                // A value that is made element by element has the axes of its largest operand.
                (Some(op), operands) if !registry.get(op).typing.is_of_tensors() => {
                    let axes = operands.iter().filter_map(|operand| known.get(operand).cloned());
                    axes.max_by_key(|axes| axes.as_ref().map_or(0, |axes| axes.len()))
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

/// The axes that labels name.
fn axes(labels: &str) -> Rc<[Axis<'_>]> {
    labels.split(',').map(|label| Axis { label: label.trim(), block: None }).collect()
}

/// The literal numbers of tiles. They were read when the model was lowered.
fn numbers(program: &Program, registry: &Registry, node: NodeId) -> Option<Vec<u64>> {
    let graph = &program.graph;
    let number = |node: &NodeId| match graph.node(*node) {
        Node::Literal(Value::Scalar(ScalarValue::Int32(number))) => u64::try_from(*number).ok(),
        Node::Literal(Value::Scalar(ScalarValue::Int64(number))) => u64::try_from(*number).ok(),
        _ => None,
    };
    match graph.node(node) {
        Node::Operator(name, numbers) if registry.find(graph.name(name)) == Some(id::MAKE_TUPLE) => {
            numbers.iter().map(number).collect()
        }
        _ => Some(vec![number(&node)?]),
    }
}

#[cold]
fn unlike<'c>(own: &Axis<'_>, used: &str, cut: impl Fn(&str) -> Option<&'c Cut>) -> Error {
    let said = |label: &str| match (label, cut(label)) {
        ("", _) => "the axis is one tile".to_owned(),
        (_, None) => format!("the axis of `{}` is one tile", Excerpt::quoted(label)),
        (_, Some(Cut::Blocks(size))) => format!("`{}` is cut in tiles of {size}", Excerpt::quoted(label)),
        (_, Some(cut)) => format!("`{}` is cut at {}", Excerpt::quoted(label), Excerpt::quoted(&cut.to_string())),
    };
    let Some(block) = &own.block else {
        let message = format!("{}, and {}", said(own.label), said(used));
        return Error::tensors(TensorErrorKind::SizeMismatch, message).hint(match cut(own.label) {
            None => "an input is cut by its labels: `input a: tiled[f64, \"i,j\"]`",
            Some(_) => "labels of one axis are cut alike: say both in one `tile i, j = 8`",
        });
    };
    let tiles = block.to_string();
    let tiles = Excerpt::quoted(&tiles);
    let (first, hint) = match (block, cut(used)) {
        (AxisTiles::One, _) => ("is one tile".to_owned(), "name the axis by a label without `tile`".to_owned()),
        (_, label) => {
            let hint = match label {
                None => format!("cut the label as the block is: `tile {} = {tiles}`", Excerpt::quoted(used)),
                Some(_) => format!("name the axis by a label that is cut as the block is: `tile .. = {tiles}`"),
            };
            match block {
                AxisTiles::Blocks { .. } => (format!("is cut in tiles of {tiles}"), hint),
                _ => (format!("is cut at {tiles}"), hint),
            }
        }
    };
    let message = format!("this axis of the block {first}, and {}", said(used));
    Error::tensors(TensorErrorKind::SizeMismatch, message).hint(hint)
}
