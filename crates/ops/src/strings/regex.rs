//! Regular expressions, in the syntax of the `regex` crate, which is RE2's but for details. Matching takes time linear in
//! the text; the pattern, what it compiles to and the text are limited, so that nobody's pattern can take a host's time or
//! memory.

use super::made::copied;
use super::{invalid, text_fault};
use crate::definition::{Meaning, OpDef, Typing, UNARY, ex, param};
use crate::kernel::{MaskValue, mask, strict};
use cembra_expr::Limits;
use cembra_runtime::{Context, Fault, FaultKind, Text};
use regex::{CaptureLocations, Regex, RegexBuilder};
use std::cell::RefCell;

/// How many compiled patterns a thread keeps.
const KEPT: usize = 16;

/// A pattern and what matching it needs.
struct Compiled {
    pattern: Box<str>,
    regex: Regex,
    captures: CaptureLocations,
}

thread_local! {
    /// The patterns this thread used last, the latest first.
    static PATTERNS: RefCell<Vec<Compiled>> = const { RefCell::new(Vec::new()) };
}

/// Calls `use_it` with the compiled pattern. Patterns are literals in almost all models: it is compiled once a thread.
fn with_pattern<T>(
    context: &mut Context,
    pattern: Text<'static>,
    use_it: impl FnOnce(&mut Compiled) -> Result<T, Fault>,
) -> Result<T, Fault> {
    let pattern = pattern.as_str();
    PATTERNS.with_borrow_mut(|patterns| {
        match patterns.iter().position(|compiled| *compiled.pattern == *pattern) {
            Some(0) => {}
            Some(at) => patterns[..=at].rotate_right(1),
            None => {
                let compiled = compile(context, pattern)?;
                patterns.truncate(KEPT - 1);
                patterns.insert(0, compiled);
            }
        }
        use_it(&mut patterns[0])
    })
}

#[cold]
fn compile(context: &mut Context, pattern: &str) -> Result<Compiled, Fault> {
    if pattern.len() > Limits::PATTERN_BYTES {
        return Err(invalid("the pattern is longer than 64 KiB"));
    }
    let built =
        RegexBuilder::new(pattern).size_limit(Limits::PATTERN_MEMORY).dfa_size_limit(Limits::PATTERN_MEMORY).build();
    match built {
        Ok(regex) => Ok(Compiled { pattern: pattern.into(), captures: regex.capture_locations(), regex }),
        Err(regex::Error::CompiledTooBig(_)) => Err(invalid("the pattern compiles to more than 1 MiB")),
        Err(error) => Err(text_fault(FaultKind::Invalid, copied(context, &error.to_string())?)),
    }
}

fn check_length(text: &str) -> Result<(), Fault> {
    if text.len() <= Limits::MATCHED_BYTES { Ok(()) } else { Err(invalid("a text of more than 1 MiB is not matched")) }
}

fn contains(context: &mut Context, text: Text<'static>, pattern: Text<'static>) -> Result<MaskValue, Fault> {
    with_pattern(context, pattern, |compiled| {
        check_length(text.as_str())?;
        Ok(mask(compiled.regex.is_match(text.as_str())))
    })
}

fn extract(context: &mut Context, text: Text<'static>, pattern: Text<'static>) -> Result<Option<Text<'static>>, Fault> {
    with_pattern(context, pattern, |Compiled { regex, captures, .. }| {
        // The whole match is a group too.
        if regex.captures_len() != 2 {
            return Err(invalid("the pattern needs exactly one capturing group"));
        }
        let text = text.as_str();
        check_length(text)?;
        // A group that takes no part in the match is empty, as in RE2.
        let group = |captures: &CaptureLocations| captures.get(1).map_or("", |(start, end)| &text[start..end]);
        Ok(regex.captures_read(captures, text).map(|_| Text::new(group(captures))))
    })
}

pub(crate) static CONTAINS_REGEX: OpDef = OpDef {
    name: "strings.contains_regex",
    aliases: &["contains_regex"],
    summary: "Present if a part of the text matches the regular expression.",
    params: &[param("text"), param("regex")],
    faults: &[FaultKind::Invalid, FaultKind::ArenaLimit],
    typing: Typing::Overloads,
    meaning: Meaning::Overloads(&[strict!(try in context |text: Text<'static>, regex: Text<'static>| -> MaskValue {
        contains(context, text, regex)
    })]),
    examples: &[
        ex("strings.contains_regex(\"cat 7\", \"[0-9]+\")", "present"),
        ex("strings.contains_regex(\"cat\", \"^a\")", "missing"),
    ],
    ..UNARY
};

pub(crate) static EXTRACT_REGEX: OpDef = OpDef {
    name: "strings.extract_regex",
    aliases: &["extract_regex"],
    summary: "What the one capturing group of the regular expression matches in the text, missing if the text has no match.",
    params: &[param("text"), param("regex")],
    faults: &[FaultKind::Invalid, FaultKind::ArenaLimit],
    typing: Typing::Overloads,
    meaning: Meaning::Overloads(&[strict!(
        try in context |text: Text<'static>, regex: Text<'static>| -> Option<Text<'static>> {
            extract(context, text, regex)
        }
    )]),
    examples: &[
        ex("strings.extract_regex(\"id=42;\", \"id=([0-9]+)\")", "optional_text{'42'}"),
        ex("strings.extract_regex(\"none\", \"id=([0-9]+)\")", "optional_text{NA}"),
    ],
    ..UNARY
};

#[cfg(test)]
mod tests {
    use super::super::eager::{bytes, call, fault, missing_text, some_text, text};
    use super::*;
    use cembra_expr::{ScalarValue, Value};
    use cembra_runtime::Scalar;

    const YES: Value = Value::Present(ScalarValue::Unit);
    const NO: Value = Value::Missing(Scalar::Unit);

    fn contains_of(text_of: &str, pattern: &str) -> Result<Value, super::super::eager::Failure> {
        call("strings.contains_regex", &[text(text_of), text(pattern)])
    }

    fn extract_of(text_of: &str, pattern: &str) -> Result<Value, super::super::eager::Failure> {
        call("strings.extract_regex", &[text(text_of), text(pattern)])
    }

    #[test]
    fn any_part_may_match() {
        assert_eq!(contains_of("h\u{e9}llo", "\u{e9}l+o$"), Ok(YES));
        assert_eq!(contains_of("h\u{e9}llo", "^.l"), Ok(NO));
        assert_eq!(contains_of("h\u{e9}llo", "^.{2}l"), Ok(YES));
        assert_eq!(contains_of("", ""), Ok(YES));
        assert_eq!(call("strings.contains_regex", &[missing_text(), text("a")]), Ok(NO));
        assert!(call("strings.contains_regex", &[bytes(b"a"), text("a")]).is_err());
    }

    #[test]
    fn the_one_group_is_extracted() {
        assert_eq!(extract_of("a=1, b=22", "b=(\\d+)"), Ok(some_text("22")));
        assert_eq!(extract_of("\u{e9}\u{1f600}!", "(\\p{So})"), Ok(some_text("\u{1f600}")));
        assert_eq!(extract_of("a", "b(c)"), Ok(missing_text()));
        assert_eq!(extract_of("b", "(a)?b"), Ok(some_text("")));
        assert_eq!(extract_of("ab", "(?:a)(b)"), Ok(some_text("b")));
        for pattern in ["a", "(a)(b)", "(?:a)"] {
            assert_eq!(extract_of("ab", pattern), fault(FaultKind::Invalid), "{pattern}");
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "would take an hour")]
    fn patterns_and_texts_are_limited() {
        for pattern in ["(", "[z-a]", "a{2,1}", "\\1", "(?=a)", "\\w{2000}", "(((a{100}){100}){100})"] {
            assert_eq!(contains_of("a", pattern), fault(FaultKind::Invalid), "{pattern}");
        }
        assert_eq!(contains_of("a", &"a".repeat(Limits::PATTERN_BYTES + 1)), fault(FaultKind::Invalid));
        assert_eq!(contains_of(&"a".repeat(Limits::MATCHED_BYTES), "b"), Ok(NO));
        assert_eq!(contains_of(&"a".repeat(Limits::MATCHED_BYTES + 1), "b"), fault(FaultKind::Invalid));
        // What other engines take exponential time for.
        assert_eq!(contains_of(&"a".repeat(10_000), "(a*)*(a|aa)+b"), Ok(NO));
    }

    #[test]
    fn a_thread_keeps_the_patterns_it_used_last() {
        let kept = || PATTERNS.with_borrow(|all| all.iter().map(|one| one.pattern.to_string()).collect::<Vec<_>>());
        for round in 0..3 {
            for number in 0..KEPT + 3 {
                assert_eq!(
                    contains_of("x19", &format!("x{number}$")),
                    Ok(if number == 19 { YES } else { NO }),
                    "{round}"
                );
            }
        }
        assert_eq!(kept().len(), KEPT);
        assert_eq!(contains_of("x", "x5$"), Ok(NO));
        assert_eq!(kept()[0], "x5$");
        assert_eq!(kept().len(), KEPT);
        // One that does not compile leaves the others alone.
        assert_eq!(contains_of("x", "("), fault(FaultKind::Invalid));
        assert_eq!(kept()[0], "x5$");
    }
}
