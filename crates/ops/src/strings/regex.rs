//! Operators on regular expressions, in RE2's syntax and matched by the `regex` crate. The sizes of patterns and texts, and the time of a match, are
//! limited (`pattern.rs`).

use super::made::invalid_for;
use super::pattern::{LongTextAutomata, Pattern};
use super::{Reason, literal_string, refused_literal};
use crate::definition::{Meaning, OVERLOADED, OpDef, ex, param};
use crate::kernel::{MaskValue, mask, strict};
use crate::typing::{Argument, TypeFault};
use cembra_expr::ArgumentForm;
use cembra_runtime::{Context, Fault, FaultKind, Text};
use std::borrow::Cow;
use std::cell::RefCell;

/// The most compiled patterns that a thread caches.
const KEPT: usize = 16;

/// The compiled patterns that a thread caches.
#[derive(Default)]
struct PatternCache {
    /// The compiled patterns, the most recently used first.
    patterns: Vec<Pattern>,
    /// The automata for long texts, of the pattern that needed them last.
    long: Option<LongTextAutomata>,
}

thread_local! {
    static KEPT_PATTERNS: RefCell<PatternCache> = const { RefCell::new(PatternCache { patterns: Vec::new(), long: None }) };
}

/// Calls `use_it` with the compiled pattern. Patterns are literals in almost all models, so a thread compiles each
/// pattern once and caches it. A thread that is ending and has dropped its cache compiles the pattern at each call.
pub(super) fn with_pattern<T>(
    context: &mut Context,
    pattern: Text<'static>,
    use_it: impl FnOnce(&mut Context, &mut Pattern, &mut Option<LongTextAutomata>) -> Result<T, Fault>,
) -> Result<T, Fault> {
    with_kept(|kept| {
        find(&mut kept.patterns, pattern.as_str()).map_err(|refused| fault_of(context, refused))?;
        kept.patterns[0].charge_compiling(context)?;
        use_it(context, &mut kept.patterns[0], &mut kept.long)
    })
}

/// The fault for a pattern that cannot be compiled, with the reason.
fn fault_of(context: &mut Context, refused: Cow<'static, str>) -> Fault {
    match refused {
        Cow::Borrowed(reason) => Reason(reason).into(),
        Cow::Owned(reason) => invalid_for(context, &reason, "the pattern is not a regular expression"),
    }
}

/// Calls `use_it` with the cache of the thread.
fn with_kept<T>(use_it: impl FnOnce(&mut PatternCache) -> T) -> T {
    let mut kept = KEPT_PATTERNS.try_with(RefCell::take).unwrap_or_default();
    let result = use_it(&mut kept);
    // An error says that the thread has dropped its cache.
    let _ = KEPT_PATTERNS.try_with(|place| place.replace(kept));
    result
}

/// Checks the regular expression `args[1]` if it is a literal. If it is not a valid regular expression, or `takes`
/// refuses it, this is an error of the model. The compiled pattern stays in the thread's cache for the first row.
fn check_pattern(args: &[Argument<'_>], takes: impl FnOnce(&Pattern) -> Result<(), Reason>) -> Result<(), TypeFault> {
    let Some(pattern) = literal_string(args, 1).and_then(|pattern| str::from_utf8(pattern).ok()) else { return Ok(()) };
    with_kept(|kept| {
        find(&mut kept.patterns, pattern).map_err(|reason| refused_literal(1, reason))?;
        takes(&kept.patterns[0]).map_err(|Reason(reason)| refused_literal(1, reason))
    })
}

/// Checks the regular expression of an operator that accepts any pattern, if it is a literal.
pub(super) fn check_any_pattern(args: &[Argument<'_>]) -> Result<(), TypeFault> {
    check_pattern(args, |_| Ok(()))
}

/// Refuses patterns without exactly one capturing group.
fn has_one_group(pattern: &Pattern) -> Result<(), Reason> {
    match pattern.groups() {
        1 => Ok(()),
        _ => Err(Reason("the pattern needs exactly one capturing group")),
    }
}

/// Moves a pattern to the front of the cache. Compiles the pattern if it is not cached.
fn find(patterns: &mut Vec<Pattern>, pattern: &str) -> Result<(), Cow<'static, str>> {
    match patterns.iter().position(|kept| kept.text() == pattern) {
        Some(0) => {}
        Some(at) => patterns[..=at].rotate_right(1),
        None => {
            let compiled = Pattern::compile(pattern)?;
            patterns.truncate(KEPT - 1);
            patterns.insert(0, compiled);
        }
    }
    Ok(())
}

fn contains(context: &mut Context, text: Text<'static>, pattern: Text<'static>) -> Result<MaskValue, Fault> {
    with_pattern(context, pattern, |context, pattern, long| Ok(mask(pattern.is_match(context, long, text.as_str())?)))
}

fn extract(context: &mut Context, text: Text<'static>, pattern: Text<'static>) -> Result<Option<Text<'static>>, Fault> {
    with_pattern(context, pattern, |context, pattern, long| {
        has_one_group(pattern)?;
        // A group that does not take part in the match is empty, as in RE2.
        Ok(pattern.first_group(context, long, text.as_str())?.map(Text::new))
    })
}

pub(crate) static CONTAINS_REGEX: OpDef = OpDef {
    name: "strings.contains_regex",
    aliases: &["contains_regex"],
    summary: "Present if a part of the text matches the regular expression, which is in RE2's syntax: `\\d`, `\\w`, `\\s` and `\\b` know only ASCII characters. `\\C` is refused.",
    params: &[param("text"), param("regex").of(ArgumentForm::Regex)],
    faults: &[FaultKind::Invalid, FaultKind::ArenaLimit],
    meaning: Meaning::Overloads(&[strict!(try in context |text: Text<'static>, regex: Text<'static>| -> MaskValue {
        contains(context, text, regex)
    })]),
    literals: Some(check_any_pattern),
    examples: &[
        ex("strings.contains_regex(\"cat 7\", \"[0-9]+\")", "present"),
        ex("strings.contains_regex(\"cat\", \"^a\")", "missing"),
    ],
    ..OVERLOADED
};

pub(crate) static EXTRACT_REGEX: OpDef = OpDef {
    name: "strings.extract_regex",
    aliases: &["extract_regex"],
    summary: "The part of the text that the only capturing group of the regular expression matches; missing if the text has no match. The expression is in RE2's syntax.",
    params: &[param("text"), param("regex").of(ArgumentForm::Regex)],
    faults: &[FaultKind::Invalid, FaultKind::ArenaLimit],
    meaning: Meaning::Overloads(&[strict!(
        try in context |text: Text<'static>, regex: Text<'static>| -> Option<Text<'static>> {
            extract(context, text, regex)
        }
    )]),
    literals: Some(|args| check_pattern(args, has_one_group)),
    examples: &[
        ex("strings.extract_regex(\"id=42;\", \"id=([0-9]+)\")", "text?{'42'}"),
        ex("strings.extract_regex(\"none\", \"id=([0-9]+)\")", "text?{NA}"),
    ],
    ..OVERLOADED
};

#[cfg(test)]
mod tests {
    use super::super::eager::{bytes, call, fault, missing_text, some_text, text};
    use super::*;
    use crate::strings::limits;
    use cembra_runtime::Scalar;
    use cembra_value::{ScalarValue, Value};

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
        for pattern in ["(", "[z-a]", "a{2,1}", "\\1", "(?=a)", "\\pL{2000}", "(((a{100}){100}){100})"] {
            assert_eq!(contains_of("a", pattern), fault(FaultKind::Invalid), "{pattern}");
        }
        assert_eq!(contains_of("a", &"a".repeat(limits::PATTERN_BYTES + 1)), fault(FaultKind::Invalid));
        assert_eq!(contains_of(&"a".repeat(limits::MATCHED_BYTES), "b"), Ok(NO));
        assert_eq!(contains_of(&"a".repeat(limits::MATCHED_BYTES + 1), "b"), fault(FaultKind::Invalid));
        // Patterns that take other engines exponential time.
        assert_eq!(contains_of(&"a".repeat(10_000), "(a*)*(a|aa)+b"), Ok(NO));
    }

    #[test]
    fn a_thread_keeps_the_patterns_it_used_last() {
        let kept = || {
            KEPT_PATTERNS.with_borrow(|kept| kept.patterns.iter().map(|one| one.text().to_owned()).collect::<Vec<_>>())
        };
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
        // A pattern that does not compile leaves the cached ones alone.
        assert_eq!(contains_of("x", "("), fault(FaultKind::Invalid));
        assert_eq!(kept()[0], "x5$");
    }
}
