//! Doc comments that a reader is likely to read twice, found by their first words and by a list of phrases. A comment that begins with a pronoun or a question
//! word often needs its neighbours, and a tooltip shows one comment alone.

use crate::house::{is_library, sources};
use std::collections::BTreeMap;

/// First words of comments that do not name their subject.
const FIRST: [&str; 26] = [
    "All", "Another", "As", "Each", "How", "It", "Its", "Likewise", "Of", "One", "Others", "Such", "That", "The same",
    "Their", "Them", "These", "They", "Those", "True for", "What", "Where", "Which", "Who", "Whose", "Why",
];

/// Phrases that no doc comment may contain.
const NEVER: [&str; 8] =
    ["so many", "as said", "is told", "nobody", "lies on", "lies otherwise", "lies beside", "lies there"];

/// The number of doc comments per crate that begin with a word of [`FIRST`]. A number may only become smaller.
const MOST: [(&str, usize); 28] = [
    ("array", 1),
    ("arrow", 0),
    ("capi", 0),
    ("cembra", 2),
    ("cli", 0),
    ("datafusion", 0),
    ("derive", 0),
    ("engine", 0),
    ("expr", 0),
    ("fuzzing", 0),
    ("interp", 0),
    ("lsp", 0),
    ("mpi", 0),
    ("native", 0),
    ("ops", 0),
    ("page", 0),
    ("plan", 0),
    ("prepare", 0),
    ("python", 1),
    ("record", 0),
    ("runtime", 0),
    ("serve", 0),
    ("table", 1),
    ("tape", 0),
    ("tensor", 1),
    ("tiles", 0),
    ("value", 5),
    ("wide", 0),
];

/// The doc comments of a source file: lines of one kind that follow each other, joined by spaces.
fn comments(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut before = "";
    for line in text.lines() {
        let line = line.trim();
        let kind = ["//!", "///"].into_iter().find(|kind| line.starts_with(kind) && !line.starts_with("////"));
        let kind = kind.unwrap_or_default();
        match found.last_mut().filter(|_| kind == before) {
            _ if kind.is_empty() => {}
            Some(comment) => *comment = format!("{comment} {}", line[3..].trim()),
            None => found.push(line[3..].trim().to_owned()),
        }
        before = kind;
    }
    found
}

/// Returns true if a text begins with these words.
fn begins(text: &str, words: &str) -> bool {
    text.strip_prefix(words).is_some_and(|rest| !rest.starts_with(|next: char| next.is_alphanumeric() || next == '_'))
}

/// Returns true if a text has these words somewhere, and not as the end of a longer word.
fn has_words(text: &str, words: &str) -> bool {
    text.match_indices(words).any(|(at, _)| !text[..at].ends_with(char::is_alphabetic))
}

#[test]
fn comments_begin_with_their_subject() {
    let mut vague: BTreeMap<String, usize> = BTreeMap::new();
    let mut forbidden = Vec::new();
    for (file, text) in sources().into_iter().filter(|(file, _)| is_library(file)) {
        let mut parts = file.split('/');
        let name = parts.find(|part| *part != "crates").unwrap_or_default();
        let vague = vague.entry(name.to_owned()).or_default();
        for comment in comments(&text) {
            *vague += usize::from(FIRST.iter().any(|words| begins(&comment, words)));
            let lower = comment.to_lowercase();
            if NEVER.iter().any(|phrase| has_words(&lower, phrase)) {
                forbidden.push(format!("{file}: {comment}"));
            }
        }
    }
    assert!(forbidden.is_empty(), "comments with a phrase of the list: {forbidden:#?}");
    let most: BTreeMap<String, usize> = MOST.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect();
    assert_eq!(vague, most, "a comment begins with its subject; if there are fewer than before, write the new number");
}
