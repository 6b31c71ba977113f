//! Hover texts, which an editor shows for the place that the mouse points at: the declaration and the type of a name, the
//! documentation of an operator, the type of an expression. Types are spelled as in the language.

use crate::analysis::Analysis;
use cembra::QType;
use cembra::errors::Span;
use cembra::operators::{Registry, reference};
use cembra::values::print_type;
use cembra_expr::{ASSIGN_LABELS, AT_LABELS, BIND_LABELS, NameKind, NamedPlace, Node, NodeId, Referent};
use cembra_ops::OpDef;
use lsp_types::{Hover, HoverContents, MarkupContent, MarkupKind};
use std::collections::HashSet;

/// The most types that are listed for one expression. An expression in a function has several if the function is called
/// with several types.
const TYPES: usize = 4;

/// The hover text for the byte index `byte` of the text; `None` if there is nothing to show.
pub(crate) fn hover(analysis: &Analysis, byte: usize) -> Option<Hover> {
    let (span, value) = match analysis.referent_at(byte) {
        Some((span, Referent::Name(name))) => (span, named(analysis, analysis.names().named_at(name)?)),
        Some((span, Referent::Operator(name))) => {
            let def = operator(analysis.program().graph.name(name))?;
            (span, format!("{}{}", heading(def), reference::entry(def)))
        }
        Some((span, Referent::File(at))) => (span, format!("the file `{}`", analysis.file(at)?)),
        None => expression(analysis, byte)?,
    };
    let contents = HoverContents::Markup(MarkupContent { kind: MarkupKind::Markdown, value });
    Some(Hover { contents, range: Some(analysis.range(span)) })
}

/// The operator with the name `name`, such as `math.add`; `None` if no operator has this name.
pub(crate) fn operator(name: &str) -> Option<&'static OpDef> {
    let registry = Registry::standard();
    Some(registry.get(registry.find(name)?))
}

/// Returns true for the operators that labels after a name stand for.
fn is_labelling(name: &str) -> bool {
    matches!(name, AT_LABELS | BIND_LABELS | ASSIGN_LABELS)
}

/// Formats text of the language as a code block.
fn block(text: &str) -> String {
    format!("```cem\n{text}\n```\n")
}

fn heading(def: &OpDef) -> String {
    block(&reference::call_form(def))
}

/// The hover text of a name: its declaration, its kind, and the comment above it.
fn named(analysis: &Analysis, name: &NamedPlace) -> String {
    let mut text = block(&declaration(analysis, name));
    let note = match name.kind {
        NameKind::Input => match analysis.input(name.name) {
            Some(input) if input.qtype.is_none() => "an input with the type of the data\n",
            Some(input) if input.default.is_some() => "an input with a default: where it is used it is never missing\n",
            _ => "an input\n",
        },
        NameKind::Leaf => "an input that is not declared\n",
        NameKind::Let => "a definition\n",
        NameKind::Local => "a local name\n",
        NameKind::Table => "a table in a file\n",
        NameKind::Function => "a function\n",
        NameKind::Parameter => "a parameter\n",
        NameKind::Extern => "an operator of the host\n",
        NameKind::Output => "an output\n",
    };
    text.push_str(note);
    if let Some(comment) = comment_above(analysis, name) {
        text.push_str(&format!("\n{comment}\n"));
    }
    text
}

/// A declaration of `name` with its inferred type, written as in a text, for example `input x: f64`. The text itself may have no declaration of
/// `name`.
pub(crate) fn declaration(analysis: &Analysis, name: &NamedPlace) -> String {
    let written = analysis.text_at(name.name);
    // The signature includes the labels of the axes, if the definition has some.
    let with_type = |word: &str| {
        let signature = analysis.text_at(name.signature);
        match analysis.type_of(name) {
            Some(qtype) => format!("{word} {signature}: {}", print_type(qtype)),
            None => format!("{word} {signature}"),
        }
    };
    match name.kind {
        NameKind::Input => {
            let input = analysis.input(name.name);
            let qtype = input.and_then(cembra_expr::Input::declared_type);
            let default = input.and_then(cembra_expr::Input::spelled_default);
            let qtype = qtype.map(|qtype| format!(": {qtype}")).unwrap_or_default();
            let default = default.map(|default| format!(" = {default}")).unwrap_or_default();
            format!("input {written}{qtype}{default}")
        }
        NameKind::Leaf => format!("input {written}"),
        NameKind::Let | NameKind::Local => with_type("let"),
        NameKind::Output => with_type("output"),
        NameKind::Function => format!("fn {}", analysis.text_at(name.signature)),
        NameKind::Extern => format!("extern fn {}", analysis.text_at(name.signature)),
        NameKind::Parameter => analysis.text_at(name.signature).to_owned(),
        NameKind::Table => analysis.text_at(name.whole).to_owned(),
    }
}

/// The comment that ends on the line before the statement that defines a name, because such a comment usually describes
/// the name. `None` if there is no such comment.
fn comment_above(analysis: &Analysis, name: &NamedPlace) -> Option<String> {
    if name.kind.is_local() || name.kind == NameKind::Leaf {
        return None;
    }
    let before = analysis.text_before(name.whole);
    // Text before the statement on the same line is another statement.
    let (before, _) = before.rsplit_once('\n').filter(|(_, line)| line.trim().is_empty())?;
    let lines = before.lines().rev().map_while(|line| line.trim().strip_prefix('#'));
    let mut lines: Vec<&str> = lines.map(str::trim).collect();
    lines.reverse();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// The innermost expression around a byte of the text that has a type, and its hover text.
fn expression(analysis: &Analysis, byte: usize) -> Option<(Span, String)> {
    let graph = &analysis.program().graph;
    let nodes = || (0..graph.len()).map(NodeId::from_index);
    // Labels of axes are a part of the labelled expression, not texts.
    let labels = |node| match graph.node(node) {
        Node::Operator(name, &[.., labels]) if is_labelling(graph.name(name)) => Some(labels),
        _ => None,
    };
    let labels: HashSet<NodeId> = nodes().filter_map(labels).collect();
    let mut found: Option<(Span, Vec<NodeId>)> = None;
    for node in nodes().filter(|node| !labels.contains(node)) {
        for span in graph.spans(node) {
            if byte < span.start as usize || span.end as usize <= byte || span.end as usize > analysis.text().len() {
                continue;
            }
            let length = |span: Span| span.end - span.start;
            match &mut found {
                Some((known, nodes)) if *known == span => nodes.push(node),
                Some((known, _)) if length(*known) <= length(span) => {}
                _ => found = Some((span, vec![node])),
            }
        }
    }
    let (span, mut nodes) = found?;
    // Arguments that are left out have the span of the call.
    let is_literal = |node: &NodeId| matches!(graph.node(*node), Node::Literal(_));
    if !nodes.iter().all(is_literal) {
        nodes.retain(|node| !is_literal(node));
    }
    let mut types: Vec<&QType> = nodes.iter().filter_map(|node| analysis.node_type(*node)).collect();
    types.dedup();
    let mut spelled: Vec<String> = Vec::new();
    for qtype in types.into_iter().map(print_type) {
        if !spelled.contains(&qtype) {
            spelled.push(qtype);
        }
    }
    if spelled.len() > TYPES {
        spelled.truncate(TYPES);
        spelled.push("..".to_owned());
    }
    let mut text = match spelled.as_slice() {
        [] => String::new(),
        spelled => block(&spelled.join(" or ")),
    };
    if let Some(def) = nodes.first().and_then(|node| match graph.node(*node) {
        Node::Operator(name, _) => operator(graph.name(name)),
        _ => None,
    }) {
        // Operators that stand for labels are not called by name.
        text.push_str(&if is_labelling(def.name) { String::new() } else { heading(def) });
        text.push_str(def.summary);
    }
    (!text.is_empty()).then_some((span, text))
}
