//! The operator reference as text: a list of operators, the description of one operator, and the page `docs/operators.md`. All texts are made from
//! the operators' records in the registry. The command `cembra` prints them, and editors show them.

use crate::FaultKind;
use crate::operators::Registry;
use crate::program::{Graph, print_expression};
use crate::values::{print_type, print_value};
use cembra_expr::tokens;
use cembra_ops::{Law, OpDef};
use cembra_ops::{Meaning, Overload, PresenceRule, Typing};
use std::fmt::Write as _;

/// Returns the operators that a model may name, without the internal operators that only the parser uses.
#[must_use]
pub fn public(registry: &Registry) -> Vec<&'static OpDef> {
    let mut defs: Vec<&OpDef> = registry.iter().map(|(_, def)| def).collect();
    defs.retain(|def| !def.name.contains("._") || !def.aliases.is_empty() || syntax(def).is_some());
    // Families stay together, in the order in which the registry begins them.
    let mut families: Vec<&str> = Vec::new();
    for def in &defs {
        if !families.contains(&family(def)) {
            families.push(family(def));
        }
    }
    defs.sort_by_key(|def| families.iter().position(|known| *known == family(def)));
    defs
}

fn family(def: &OpDef) -> &'static str {
    def.name.split('.').next().unwrap_or_default()
}

/// Returns the syntax of an operator that has one besides the call, such as `x + y`.
fn syntax(def: &OpDef) -> Option<String> {
    let mut graph = Graph::new();
    let operands: Vec<_> = def.params.iter().map(|param| graph.leaf(param.name, None)).collect();
    let call = graph.operator(def.name, &operands, None);
    let written = print_expression(&graph, call);
    (!written.starts_with(def.name)).then_some(written)
}

/// Returns all ways to write an operator with a token instead of a call, such as `x | y` and `x ?? y`.
fn written(def: &OpDef) -> Vec<String> {
    let Some(first) = syntax(def) else { return Vec::new() };
    let mut tokens = tokens(def.name);
    let printed = tokens.next().unwrap_or_default();
    let others: Vec<_> = tokens.map(|token| first.replacen(printed, token, 1)).collect();
    std::iter::once(first).chain(others).collect()
}

/// Returns the short ways to write an operator, such as `x + y` and `add`.
fn short_forms(def: &OpDef) -> Vec<String> {
    written(def).into_iter().chain(def.aliases.iter().map(|alias| (*alias).to_owned())).collect()
}

/// Returns the operators that `word` denotes: a name, a token or a keyword, such as `math.sign`, `sign`, `??`, `-` or `if`.
#[must_use]
pub fn called(registry: &Registry, word: &str) -> Vec<&'static OpDef> {
    if let Some(id) = registry.find(word) {
        return vec![registry.get(id)];
    }
    let mut all = public(registry);
    all.retain(|def| {
        tokens(def.name).any(|token| token == word)
            || syntax(def).is_some_and(|form| form.split(' ').any(|part| part == word))
    });
    all
}

/// Returns the full and the short names of the public operators, each with its operator.
#[must_use]
pub fn names(registry: &Registry) -> Vec<(&'static str, &'static OpDef)> {
    let names = |def: &'static OpDef| std::iter::once(&def.name).chain(def.aliases).map(move |name| (*name, def));
    let all = public(registry).into_iter().flat_map(names);
    all.filter(|(name, _)| !name.contains("._")).collect()
}

/// Returns the punctuation tokens of binary operators, such as `*`, each with its operator's name. A token that is also
/// a prefix operator, such as `-`, is left out, and so are operators with internal names.
#[must_use]
pub fn signs(registry: &Registry) -> Vec<(&'static str, &'static str)> {
    let all = public(registry);
    let of = |count: usize| {
        let of_count = all.iter().filter(move |def| def.params.len() == count);
        of_count.flat_map(|def| tokens(def.name).map(|token| (token, def.name)))
    };
    let is_sign = |token: &str| token.chars().all(|c| c.is_ascii_punctuation());
    let begins = |token: &str| of(1).any(|(other, _)| other == token);
    of(2).filter(|(token, name)| is_sign(token) && !begins(token) && !name.contains("._")).collect()
}

/// Returns the operators that have `part` as a substring of one of their names.
#[must_use]
pub fn named_like(registry: &Registry, part: &str) -> Vec<&'static OpDef> {
    let mut all = public(registry);
    all.retain(|def| std::iter::once(&def.name).chain(def.aliases).any(|name| name.contains(part)));
    all
}

/// Returns a call of the operator with all its parameters, such as `math.clip(x, lo, hi=1)`.
#[must_use]
pub fn call_form(def: &OpDef) -> String {
    let mut params: Vec<String> = def
        .params
        .iter()
        .map(|param| match &param.default {
            Some(default) => format!("{}={}", param.name, print_value(default)),
            None => param.name.to_owned(),
        })
        .collect();
    if let Some(last) = params.last_mut().filter(|_| def.variadic) {
        last.push_str(", ..");
    }
    // An operator without a public name of its own is called by its first alias.
    let name = def.aliases.first().filter(|_| def.name.contains("._")).unwrap_or(&def.name);
    format!("{name}({})", params.join(", "))
}

/// Returns the first sentence of an operator's summary.
#[must_use]
pub fn headline(def: &OpDef) -> &'static str {
    def.summary.split_once(". ").map_or(def.summary, |(first, _)| first).trim_end_matches('.')
}

fn fault(kind: FaultKind) -> &'static str {
    match kind {
        FaultKind::DivisionByZero => "the divisor is zero",
        FaultKind::CastRange => "the value does not fit the type",
        FaultKind::MissingValue => "the argument is missing",
        FaultKind::Assertion => "the condition does not hold",
        FaultKind::ArenaLimit => "the strings or arrays of one evaluation take more memory than their limit",
        FaultKind::Invalid => "an argument is not valid for the operator",
        FaultKind::IterationLimit => "the loops of one evaluation run more rounds than their limit",
        FaultKind::WorkLimit => "one evaluation does more work on strings than its limit",
        FaultKind::SizeMismatch => "arrays or sequences that must have one size have different sizes",
        FaultKind::IndexRange => "the index is outside of the array or sequence",
        FaultKind::Parse => "the text does not have the form that the operator parses",
        FaultKind::Cancelled => "the evaluation was cancelled",
        FaultKind::Deadline => "the time limit of the evaluation is over",
        FaultKind::TimeRange => {
            "the result is outside of the years 1 to 9999, or does not fit into 64 bits of microseconds"
        }
    }
}

fn law(law: Law) -> &'static str {
    match law {
        Law::Commutative => "commutative: `f(x, y)` is `f(y, x)`",
        Law::Idempotent => "idempotent: `f(f(x))` is `f(x)`",
        Law::Involution => "an involution: `f(f(x))` is `x`",
    }
}

fn overload(one: &Overload) -> String {
    let args: Vec<_> = one.args.iter().map(|arg| print_type(&arg.qtype())).collect();
    format!("({}) -> {}", args.join(", "), print_type(&one.ret.qtype()))
}

/// Returns the description of an operator besides its name and summary: titles such as `Faults`, each with its lines.
fn facts(def: &OpDef) -> Vec<(&'static str, Vec<String>)> {
    let mut facts = vec![("Call", vec![format!("`{}`", call_form(def))])];
    let short: Vec<_> = short_forms(def).iter().map(|form| format!("`{form}`")).collect();
    if !short.is_empty() {
        facts.push(("Short", vec![short.join(", ")]));
    }
    // The summary of any other operator says when the result is missing.
    if def.presence == PresenceRule::Strict {
        facts.push(("Presence", vec!["the result is missing if an argument is missing".to_owned()]));
    }
    let faults = def.faults.iter().map(|kind| format!("`{}`: {}", kind.name(), fault(*kind)));
    let replacement = match def.meaning {
        Meaning::Expand(_) => Some("the same as for the expression that replaces the operator"),
        Meaning::Choose(_) => Some("the same as for the operator that replaces this one"),
        _ => None,
    };
    let without_faults = || vec![replacement.unwrap_or("none").to_owned()];
    facts.push(("Faults", if def.is_total() { without_faults() } else { faults.collect() }));
    if !def.laws.is_empty() {
        facts.push(("Laws", def.laws.iter().map(|one| law(*one).to_owned()).collect()));
    }
    let types: Vec<_> = def.overloads().iter().map(|one| format!("`{}`", overload(one))).collect();
    let types = match def.meaning {
        Meaning::Overloads(_) if matches!(def.typing, Typing::OfTensors) => vec!["whole tensors".to_owned()],
        Meaning::Overloads(_) => types,
        Meaning::Expand(_) | Meaning::Choose(_) => replacement.map(ToOwned::to_owned).into_iter().collect(),
        Meaning::Instantiate(_) => vec!["determined when the types of the model are found".to_owned()],
        Meaning::Structure(_) => vec!["any".to_owned()],
    };
    // Kernels of arrays have rules for types instead of a list.
    if !types.is_empty() {
        facts.push(("Types", types));
    }
    let examples = def.examples.iter().map(|example| format!("`{}` is `{}`", example.text, example.value));
    if !def.examples.is_empty() {
        facts.push(("Examples", examples.collect()));
    }
    facts
}

/// Returns the description of one operator for a terminal.
#[must_use]
pub fn detail(def: &OpDef) -> String {
    let mut text = format!("{}\n  {}\n", def.name, def.summary);
    for (title, lines) in facts(def) {
        let mut title = title;
        for line in lines {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "  {title:<9} {}", line.replace('`', ""));
            title = "";
        }
    }
    text
}

/// The greatest width, in characters, of the column with the short ways to write operators. A longer entry moves only
/// the summary on its own line to the right.
const FORMS_WIDTH: usize = 24;

/// Returns a list of the operators `defs`, one per line: name, short forms, summary.
#[must_use]
pub fn list(defs: &[&OpDef]) -> String {
    let rows: Vec<_> = defs.iter().map(|def| (def.name, short_forms(def).join(", "), headline(def))).collect();
    let widest = |of: fn(&(&str, String, &str)) -> usize| rows.iter().map(of).max().unwrap_or(0);
    let (names, forms) = (widest(|row| row.0.len()), widest(|row| row.1.len()).min(FORMS_WIDTH));
    rows.iter().map(|(name, short, summary)| format!("{name:<names$}  {short:<forms$}  {summary}\n")).collect()
}

/// Returns the page that describes all operators, in Markdown.
#[must_use]
pub fn markdown(registry: &Registry) -> String {
    let mut text = String::from(
        "# Operators\n\n\
         Made by `cembra ops --markdown` from the registry; do not edit.\n\n\
         Types are spelled as in models: `T?` is an optional, `[T?]` an array. An operator with the entry *Presence*\n\
         is listed with its bare types, and also takes optionals of them. The text of any other operator says when its\n\
         result is missing, if it can be. Arguments are cast to a common type where that loses nothing but precision\n\
         (`i32`, `i64`, `f32`, `f64` in this order; a literal with a fraction takes the float type of the other\n\
         arguments).\n",
    );
    let mut last = "";
    for def in public(registry) {
        let family = family(def);
        if family != last {
            let _ = write!(text, "\n## {family}\n");
            last = family;
        }
        let _ = write!(text, "\n### {}\n\n{}", def.name, entry(def));
    }
    text
}

/// Returns the entry of an operator on the page of all operators, without its heading.
#[must_use]
pub fn entry(def: &OpDef) -> String {
    let mut text = format!("{}\n\n", def.summary);
    for (title, lines) in facts(def) {
        let separator = if title == "Types" { ", " } else { "; " };
        let _ = writeln!(text, "- {title}: {}", lines.join(separator));
    }
    text
}
