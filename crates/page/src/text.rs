//! The text of a page's model: its problems, the places of its expression in UTF-16 units, and its words for highlighting. Nothing is evaluated here.

use cembra::errors::{Diagnostic, Span};
use cembra::operators::Registry;
use cembra::program::Sources;
use cembra::{Error, Limits, Model, Options, Scalar, Signature};
use cembra_expr::{KEYWORDS, POSITIONAL_WORDS, parse_partially};
use serde::Serialize;

/// A range of a text, in UTF-16 units, as browsers count them.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Debug)]
pub(crate) struct Range {
    pub(crate) from: usize,
    pub(crate) to: usize,
}

/// The number of UTF-16 units before each byte of a text.
pub(crate) struct Units {
    /// For each character that has more than one byte: the index after it, and the number of units up to there.
    steps: Vec<(usize, usize)>,
    bytes: usize,
}

impl Units {
    pub(crate) fn of(text: &str) -> Units {
        let mut steps = Vec::new();
        let (mut last, mut units) = (0, 0);
        for (at, character) in text.char_indices().filter(|(_, character)| !character.is_ascii()) {
            units += at - last + character.len_utf16();
            last = at + character.len_utf8();
            steps.push((last, units));
        }
        Units { steps, bytes: text.len() }
    }

    /// The number of units before the byte with the index `byte`, which must be the start of a character or the end of the text.
    pub(crate) fn before(&self, byte: usize) -> usize {
        let byte = byte.min(self.bytes);
        match self.steps[..self.steps.partition_point(|(end, _)| *end <= byte)].last() {
            Some((end, units)) => units + (byte - end),
            None => byte,
        }
    }

    /// The range of a span of the main text; `None` for a span of another file.
    pub(crate) fn range(&self, span: Span) -> Option<Range> {
        let (start, end) = (span.start as usize, span.end as usize);
        (end <= self.bytes).then(|| Range { from: self.before(start), to: self.before(end) })
    }
}

/// A problem of the text: an error or a warning, at its place.
#[derive(Serialize, Debug)]
pub(crate) struct Problem {
    #[serde(flatten)]
    pub(crate) range: Range,
    severity: &'static str,
    code: &'static str,
    pub(crate) message: String,
    hint: Option<String>,
}

impl Problem {
    /// Makes a problem for the page. A problem without a place in the main text is shown at the start of the text. If it is in another file, the
    /// message has the name of this file.
    pub(crate) fn of(problem: &Diagnostic, sources: &Sources, units: &Units) -> Problem {
        let range = problem.span().and_then(|span| units.range(span));
        let file = problem.span().filter(|_| range.is_none()).map(|span| sources.place(span).name);
        let message = match file {
            Some(file) => format!("{file}: {}", problem.message()),
            None => problem.message().to_owned(),
        };
        Problem {
            range: range.unwrap_or(Range { from: 0, to: 0 }),
            severity: if problem.code().is_warning() { "warning" } else { "error" },
            code: problem.code().as_str(),
            message,
            hint: (!problem.hints().is_empty()).then(|| problem.hints().join("\n")),
        }
    }
}

/// A text that was read: the model and its signature if there is no error, and all problems.
pub(crate) struct CheckedText {
    pub(crate) model: Option<(Model, Signature)>,
    pub(crate) problems: Vec<Diagnostic>,
}

/// Reads and checks the main text of `sources` within `limits`.
pub(crate) fn check(sources: &Sources, options: &Options, limits: &Limits) -> CheckedText {
    let read = parse_partially(sources, Registry::standard(), limits);
    if !read.problems.is_empty() {
        return CheckedText { model: None, problems: read.problems };
    }
    match Model::parse_sources(sources.clone(), Registry::standard(), limits) {
        Ok(model) => {
            let (signature, warnings) = model.check(options);
            let mut problems: Vec<Diagnostic> =
                signature.as_ref().err().into_iter().flat_map(Error::diagnostics).collect();
            problems.extend(warnings.as_slice().iter().cloned());
            CheckedText { model: signature.ok().map(|signature| (model, signature)), problems }
        }
        Err(error) => CheckedText { model: None, problems: error.diagnostics() },
    }
}

/// An operator, for highlighting.
#[derive(Serialize, Debug)]
struct OperatorName {
    name: &'static str,
    short: Option<&'static str>,
    summary: &'static str,
}

/// The words of the language for highlighting, from the lexer and the registry.
#[derive(Serialize, Debug)]
pub(crate) struct Grammar {
    keywords: Vec<&'static str>,
    types: Vec<&'static str>,
    literals: [&'static str; 3],
    operators: Vec<OperatorName>,
    comment: &'static str,
}

impl Grammar {
    pub(crate) fn of(registry: &'static Registry) -> Grammar {
        let literals = ["true", "false", "missing"];
        let keywords = KEYWORDS.iter().chain(POSITIONAL_WORDS).copied().filter(|word| !literals.contains(word));
        let operators = registry.iter().map(|(_, operator)| OperatorName {
            name: operator.name,
            short: operator.name.rsplit_once('.').map(|(_, short)| short),
            summary: operator.summary,
        });
        let types = Scalar::ALL.iter().map(|scalar| scalar.short_name());
        Grammar {
            keywords: keywords.collect(),
            types: types.collect(),
            literals,
            operators: operators.collect(),
            comment: "#",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_counted_in_utf16_units() {
        let text = "é + 😀x";
        let units = Units::of(text);
        let at = |needle: &str| units.before(text.find(needle).unwrap());
        assert_eq!(["é", "+", "😀", "x"].map(at), [0, 2, 4, 6]);
        assert_eq!(units.before(text.len()), text.encode_utf16().count());
        assert_eq!(units.range(Span::new(5, 9)), Some(Range { from: 4, to: 6 }));
        assert_eq!(units.range(Span::new(5, 99)), None);
    }
}
