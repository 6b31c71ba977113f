//! Whether axes are cut as the labels say that a text uses for them: `a("i,k")` of an input `tiled[f64, "p,k"]` needs `i` and `p` to be cut
//! alike. Labels alone decide, so a text is right or wrong before there are data. That the extents of data fit is checked where tiles are.

use crate::signature::Field;
use cembra_expr::{Cut, Node, NodeId, Program};
use cembra_ops::{Registry, id};
use cembra_runtime::{Excerpt, MOST_AXES, QType};
use cembra_tensor::TensorErrorKind;
use cembra_value::{Error, ScalarValue, Value};
use rustc_hash::FxHashMap;

/// Labels of axes of which nothing says how they are cut: those of a tensor that is one tile.
const NO_LABELS: [&str; MOST_AXES + 1] = {
    const COMMAS: &str = ",,,,,,,,,,,,,,,,";
    let mut labels = [""; MOST_AXES + 1];
    let mut rank = 2;
    while rank <= MOST_AXES {
        labels[rank] = COMMAS.split_at(rank - 1).0;
        rank += 1;
    }
    labels
};

/// The labels of the axes of a value that is cut, by its node.
type Known<'p> = FxHashMap<NodeId, &'p str>;

/// The labels that are cut, and how.
pub(super) fn of(program: &Program) -> impl Iterator<Item = (&str, &Cut)> {
    program.tiles.iter().flat_map(|rule| rule.labels.iter().map(|label| (&**label, &rule.cut)))
}

/// An error if a value is used with labels that are not cut as its axes are.
pub(super) fn check(program: &Program, registry: &Registry, inputs: &[Field]) -> Result<(), Error> {
    if program.tiles.is_empty() && inputs.iter().all(|input| input.labels.is_none()) {
        return Ok(());
    }
    let labels = |input| match input {
        &Field { labels: Some(ref labels), .. } => Some(&**labels),
        Field { qtype: QType::Tensor(_, rank), .. } => NO_LABELS.get(usize::from(*rank)).copied(),
        _ => None,
    };
    let own = inputs.iter().filter_map(|input| Some((&*input.name, labels(input)?)));
    let labelled: FxHashMap<&str, &str> = own.collect();
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
                    let pairs = own.split(',').zip(used.split(',').map(str::trim));
                    if let Some((own, used)) = pairs.into_iter().find(|(own, used)| cut(own) != cut(used)) {
                        return Err(unlike([own, used], cut).at(graph.span(node).unwrap_or_default()));
                    }
                    None
                }
                (Some(id::TENSOR_BIND), &[_, labels]) => text(labels),
                (Some(id::TENSOR_ASSIGN), &[old, _, labels]) => known.get(&old).copied().or_else(|| text(labels)),
                // A value that is made element by element has the axes of its largest operand.
                (Some(op), operands) if !registry.get(op).typing.is_of_tensors() => {
                    let labels = operands.iter().filter_map(|operand| known.get(operand).copied());
                    labels.max_by_key(|labels| labels.len())
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
