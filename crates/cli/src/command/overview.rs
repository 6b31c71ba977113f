//! The summary of `cembra explain` on one screen: the inputs and outputs of a model, its backend, its size, and the stages.

use super::check::{FieldJson, told};
use cembra::Field;
use cembra::explain::{Summary, WorkSummary};
use serde::Serialize;
use std::fmt::Write;

/// The most inputs, and the most outputs, that are shown, so that the summary fits one screen.
const MOST_FIELDS: usize = 8;

/// The most characters in a line.
const WIDTH: usize = 100;

/// The column at which the text after a name begins.
const NAMES: usize = 18;

/// The summary of a model as text. Its last line names `all`, the option that shows all stages.
pub(super) fn to_text(summary: &Summary, all: &str, all_shows: &str) -> String {
    let mut lines = Vec::new();
    for (kind, fields) in [("input", &summary.signature.inputs), ("output", &summary.signature.outputs)] {
        let line = |field: &Field| format!("{kind} {}: {}", field.name, field.declaration());
        lines.extend(fields.iter().take(MOST_FIELDS).map(line));
        if let Some(more @ 1..) = fields.len().checked_sub(MOST_FIELDS) {
            lines.push(format!("and {more} more {kind}s, which `cembra check` shows"));
        }
    }
    lines.push(String::new());
    let runs = match (summary.tier_name(), &summary.fallback) {
        (Some(tier), _) => format!("machine code, {tier}"),
        (None, Some(reason)) => format!("the interpreter: {}", reason.message()),
        (None, None) => "the interpreter".to_owned(),
    };
    lines.push(row("runs as", &runs));
    let passes = match &*summary.changed_by {
        [] => "no pass".to_owned(),
        passes => passes.join(", "),
    };
    let nodes = format!("{} as written, {} prepared", summary.written_nodes, summary.prepared_nodes);
    lines.push(row("nodes", &nodes));
    lines.push(row("changed by", &passes));
    match &summary.work {
        WorkSummary::Plan { steps, frame_bytes, code_bytes } => {
            let plural = if *steps == 1 { "step" } else { "steps" };
            lines.push(row("plan", &format!("{steps} {plural}, a frame of {frame_bytes} bytes")));
            lines.extend(code_bytes.map(|bytes| row("code", &format!("{bytes} bytes"))));
        }
        WorkSummary::Arrays { counts } => {
            for line in counts.lines() {
                let (name, rest) = line.split_once(": ").unwrap_or(("", line));
                lines.push(row(&name.to_lowercase(), rest));
            }
        }
        WorkSummary::Tensors { steps } => {
            lines.extend(steps.map(|steps| row("plan", &format!("{steps} steps, for axes of 64 indices"))));
        }
    }
    lines.push(String::new());
    let stages = summary.stages();
    let stages = stages.map(|stage| (stage.name(), stage.summary())).chain([(all, all_shows)]);
    lines.extend(stages.map(|(name, shows)| format!("--stage {name:<10}{shows}")));
    lines.iter().flat_map(|line| line.split('\n')).fold(String::new(), |mut out, line| {
        let _never_fails = writeln!(out, "{}", shortened(line));
        out
    })
}

/// A name and the text about it, wrapped into as many lines as needed.
fn row(name: &str, value: &str) -> String {
    let (mut row, mut width) = (format!("{name:<NAMES$}"), NAMES);
    for (at, word) in value.split(' ').enumerate() {
        let length = word.chars().count();
        if at > 0 && width + 1 + length > WIDTH {
            row += &format!("\n{:NAMES$}", "");
            width = NAMES;
        } else if at > 0 {
            row.push(' ');
            width += 1;
        }
        row += word;
        width += length;
    }
    row
}

/// Shortens a line to the most characters of a line.
fn shortened(line: &str) -> String {
    match line.char_indices().nth(WIDTH) {
        None => line.to_owned(),
        Some(_) => line.chars().take(WIDTH - 3).chain("...".chars()).collect(),
    }
}

/// The summary of a model as JSON. The keys are written in this order.
#[derive(Serialize)]
struct ModelOverview<'a> {
    inputs: Vec<FieldJson<'a>>,
    outputs: Vec<FieldJson<'a>>,
    backend: &'static str,
    tier: Option<&'static str>,
    fallback: Option<&'a str>,
    written_nodes: usize,
    prepared_nodes: usize,
    changed_by: &'a [&'static str],
    #[serde(flatten)]
    work: WorkJson<'a>,
}

/// The size of a model as JSON: its plan, its arrays, or its steps on tensors.
#[derive(Serialize)]
#[serde(untagged)]
enum WorkJson<'a> {
    Plan { steps: usize, frame_bytes: usize, code_bytes: Option<usize> },
    Arrays { arrays: &'a str },
    Tensors { steps: Option<usize> },
}

/// The summary of a model as JSON.
pub(super) fn to_json(summary: &Summary) -> impl Serialize + '_ {
    ModelOverview {
        inputs: told(&summary.signature.inputs),
        outputs: told(&summary.signature.outputs),
        backend: summary.backend.name(),
        tier: summary.tier_name(),
        fallback: summary.fallback.as_ref().map(|reason| reason.message()),
        written_nodes: summary.written_nodes,
        prepared_nodes: summary.prepared_nodes,
        changed_by: &summary.changed_by,
        work: match &summary.work {
            WorkSummary::Plan { steps, frame_bytes, code_bytes } => {
                WorkJson::Plan { steps: *steps, frame_bytes: *frame_bytes, code_bytes: *code_bytes }
            }
            WorkSummary::Arrays { counts } => WorkJson::Arrays { arrays: counts.trim_end() },
            WorkSummary::Tensors { steps } => WorkJson::Tensors { steps: *steps },
        },
    }
}
