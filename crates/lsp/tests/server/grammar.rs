//! Tests that the grammar for syntax highlighting by regular expressions has the same words as the language.

use cembra::Scalar;
use cembra_expr::{KEYWORDS, POSITIONAL_WORDS};
use serde_json::Value;
use std::collections::BTreeSet;

/// The words between the first brackets of a rule's regular expression: `a` and `b` of `\b(a|b)\b`.
fn words(grammar: &Value, rule: &str) -> BTreeSet<String> {
    let expression = grammar["repository"][rule]["match"].as_str().expect("an expression");
    let (_, rest) = expression.split_once('(').expect("a bracket");
    let (words, _) = rest.split_once(')').expect("a bracket");
    words.split('|').map(str::to_owned).collect()
}

fn set<'a>(words: impl IntoIterator<Item = &'a str>) -> BTreeSet<String> {
    words.into_iter().map(str::to_owned).collect()
}

#[test]
fn words_are_those_of_the_language() {
    let text =
        include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/editors/vscode/syntaxes/cembra.tmLanguage.json"));
    let grammar: Value = serde_json::from_str(text).expect("JSON");
    let known: BTreeSet<String> = words(&grammar, "keyword").union(&words(&grammar, "constant")).cloned().collect();
    assert_eq!(known, set(KEYWORDS.iter().copied()));
    assert_eq!(words(&grammar, "positional"), set(POSITIONAL_WORDS.iter().copied()));
    let types = words(&grammar, "type");
    for scalar in Scalar::ALL {
        assert!(types.contains(scalar.short_name()), "{scalar}");
    }
    // Every rule is used, and every rule that is used is there.
    let used = grammar["patterns"].as_array().expect("a list").iter().filter_map(|one| one["include"].as_str());
    let rules = grammar["repository"].as_object().expect("an object").keys().map(|rule| format!("#{rule}"));
    assert_eq!(set(used), rules.collect());
}
