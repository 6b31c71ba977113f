//! Replaces the matches of a regular expression, as RE2's `GlobalReplace` does.

use super::made::ArenaText;
use super::pattern::Pattern;
use super::regex::{check_any_pattern, with_pattern};
use crate::definition::{Meaning, OVERLOADED, OpDef, ex, param};
use crate::kernel::strict;
use cembra_expr::ArgumentForm;
use cembra_runtime::{Context, Fault, FaultKind, Text};

/// A part of a replacement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ReplacementPart<'r> {
    Literal(&'r str),
    /// A reference to a group of the regular expression; it is replaced by the text that the group matched. Group 0 is
    /// the whole match.
    Group(usize),
}

/// An iterator over the parts of a replacement. `\0` to `\9` are groups, and `\\` is a backslash. A backslash before
/// any other character ends the replacement, as in RE2.
struct Parts<'r>(&'r str);

impl<'r> Iterator for Parts<'r> {
    type Item = ReplacementPart<'r>;

    fn next(&mut self) -> Option<ReplacementPart<'r>> {
        let text = std::mem::take(&mut self.0);
        match text.as_bytes() {
            [] => None,
            [b'\\', digit @ b'0'..=b'9', ..] => {
                self.0 = &text[2..];
                Some(ReplacementPart::Group(usize::from(digit - b'0')))
            }
            [b'\\', b'\\', ..] => {
                self.0 = &text[2..];
                Some(ReplacementPart::Literal("\\"))
            }
            [b'\\', ..] => None,
            _ => {
                let (literal, rest) = text.split_at(memchr::memchr(b'\\', text.as_bytes()).unwrap_or(text.len()));
                self.0 = rest;
                Some(ReplacementPart::Literal(literal))
            }
        }
    }
}

/// The highest group number in a replacement, also after an invalid backslash.
fn highest_group(replacement: &str) -> usize {
    let mut bytes = replacement.bytes();
    let mut highest = 0;
    while bytes.any(|byte| byte == b'\\') {
        if let Some(digit @ b'0'..=b'9') = bytes.next() {
            highest = highest.max(usize::from(digit - b'0'));
        }
    }
    highest
}

/// A value for the end of the previous match before there is one; no text is as long.
const NOWHERE: usize = usize::MAX;

/// Replaces matches, and calls `part` with the parts of the result in order. Each call of this function searches for
/// the matches anew. An empty match directly after another match is not replaced. `search` is called before each
/// search, with its start, and may stop the replacement with a fault.
fn each_part(
    pattern: &mut Pattern,
    text: &str,
    replacement: &str,
    mut search: impl FnMut(&Pattern, usize) -> Result<(), Fault>,
    mut part: impl FnMut(&str),
) -> Result<(), Fault> {
    // The text up to `done` was passed on; the next match is searched for from `from` on.
    let (mut done, mut from, mut last) = (0, 0, NOWHERE);
    while from <= text.len() {
        search(pattern, from)?;
        let Some(captures) = pattern.captures_at(text, from) else { break };
        let Some((start, end)) = captures.get(0) else { break };
        if start == end && start == last {
            // Continues at the next character.
            from += text.get(from..).and_then(|rest| rest.chars().next()).map_or(1, char::len_utf8);
            continue;
        }
        part(&text[done..start]);
        for of in Parts(replacement) {
            match of {
                ReplacementPart::Literal(literal) => part(literal),
                ReplacementPart::Group(number) => {
                    part(captures.get(number).map_or("", |(start, end)| &text[start..end]));
                }
            }
        }
        (done, from, last) = (end, end, end);
    }
    part(&text[done..]);
    Ok(())
}

fn replace(
    context: &mut Context,
    text: Text<'static>,
    pattern: Text<'static>,
    replacement: Text<'static>,
) -> Result<Option<Text<'static>>, Fault> {
    with_pattern(context, pattern, |context, pattern, _| {
        // The replacement names a group that the pattern does not have: nothing is replaced, as in RE2.
        if highest_group(replacement.as_str()) > pattern.groups() {
            return Ok(Some(text));
        }
        let (text, replacement) = (text.as_str(), replacement.as_str());
        let mut len = 0_usize;
        // Each match is found twice: to compute the length, and to write the result.
        let charge = |pattern: &Pattern, from| pattern.charge_searches(context, 2, text, from);
        each_part(pattern, text, replacement, charge, |part| len = len.saturating_add(part.len()))?;
        let mut made = ArenaText::new(context, len)?;
        each_part(pattern, text, replacement, |_, _| Ok(()), |part| made.push_str(part))?;
        Ok(Some(made.finish()))
    })
}

pub(crate) static REPLACE_ALL_REGEX: OpDef = OpDef {
    name: "strings.replace_all_regex",
    summary: "The text with each match of the regular expression replaced, from left to right. In the replacement, `\\0` is the whole match, `\\1` to `\\9` are its groups and `\\\\` is a backslash. A backslash before anything else ends the replacement. Nothing is replaced if the replacement names a group that the expression does not have. The result is optional, as in Arolla, and present if all arguments are.",
    params: &[
        param("text"),
        param("regex").of(ArgumentForm::Regex),
        param("replacement").of(ArgumentForm::Replacement),
    ],
    faults: &[FaultKind::Invalid, FaultKind::ArenaLimit],
    meaning: Meaning::Overloads(&[strict!(
        try in context |text: Text<'static>, regex: Text<'static>, replacement: Text<'static>| -> Option<Text<'static>> {
            replace(context, text, regex, replacement)
        }
    )]),
    literals: Some(check_any_pattern),
    examples: &[
        ex("strings.replace_all_regex(\"banana\", \"ana\", \"ono\")", "text?{'bonona'}"),
        ex("strings.replace_all_regex(\"banama\", \"a(.)\", \"o\\\\1a\")", "text?{'bonaomaa'}"),
    ],
    ..OVERLOADED
};

#[cfg(test)]
mod tests {
    use super::super::eager::{bytes, call, fault, missing_text, some_text, text};
    use super::*;
    use crate::strings::limits;
    use cembra_value::Value;

    /// Compares with the results of Arolla.
    #[test]
    fn matches_are_replaced_as_re2_does() {
        for (of, pattern, replacement, expected) in [
            ("banana", "ana", "ono", "bonona"),
            ("banama", "a(.)", "o\\1a", "bonaomaa"),
            ("abc", "", "-", "-a-b-c-"),
            ("\u{e9}a", "", "-", "-\u{e9}-a-"),
            ("abc", "b*", "-", "-a-c-"),
            ("aaa", "a*", "-", "-"),
            ("baac", "a*", "-", "-b-c-"),
            ("aab", "a*?", "-", "-a-a-b-"),
            ("abab", "(?:ab)*?", "-", "-a-b-a-b-"),
            ("ab", "b|", "-", "-a-"),
            ("xyz", "y?", "-", "-x-z-"),
            ("a", "a|", "-", "-"),
            ("", "", "x", "x"),
            ("abc", "x", "-", "abc"),
            ("ab", "$", "x", "abx"),
            ("a\nb", "^", "x", "xa\nb"),
            ("a\nb", "(?m)^", "x", "xa\nxb"),
            ("ab", "\\b", "|", "|ab|"),
            ("a b", "\\B", "|", "a b"),
            ("abc", "(b)", "\\\\", "a\\c"),
            ("abc", "b", "\\0\\0", "abbc"),
            ("abc", "b", "\\\\1", "a\\1c"),
            ("abc", "b", "\\\\9", "a\\9c"),
            ("abc", "(x)?b", "[\\1]", "a[]c"),
            ("a", "(a)(b)?", "\\2", ""),
            ("aaa", "(a)", "\\1\\1", "aaaaaa"),
            ("abcdefghij", "(a)(b)(c)(d)(e)(f)(g)(h)(i)(j)", "\\10|\\9", "a0|i"),
            ("a", "a", "$1$0", "$1$0"),
            ("\u{65e5}\u{672c}", "", ".", ".\u{65e5}.\u{672c}."),
            // A group that does not exist, and mistakes in a replacement.
            ("abc", "b", "\\1", "abc"),
            ("abc", "(b)", "p\\1\\2q", "abc"),
            ("abc", "(b)", "\\x\\2", "abc"),
            ("abc", "b", "\\", "ac"),
            ("abc", "b", "\\x", "ac"),
            ("abcb", "b", "p\\xq", "apcp"),
            ("abc", "(b)", "p\\1\\x\\1q", "apbc"),
            ("abc", "b", "p\\\u{e9}q", "apc"),
            ("abc", "b", "\u{e9}\\0", "a\u{e9}bc"),
        ] {
            let made = call("strings.replace_all_regex", &[text(of), text(pattern), text(replacement)]);
            assert_eq!(made, Ok(some_text(expected)), "{of:?} {pattern:?} {replacement:?}");
        }
    }

    #[test]
    fn missing_texts_and_what_does_not_fit() {
        let of = |t: Value, pattern: Value, new: Value| call("strings.replace_all_regex", &[t, pattern, new]);
        assert_eq!(of(some_text("abc"), text("b"), text("x")), Ok(some_text("axc")));
        assert_eq!(of(missing_text(), text("b"), text("x")), Ok(missing_text()));
        assert_eq!(of(text("abc"), text("b"), missing_text()), Ok(missing_text()));
        assert_eq!(of(text("abc"), text("("), text("x")), fault(FaultKind::Invalid));
        assert_eq!(of(text(&"a".repeat(limits::MATCHED_BYTES + 1)), text("b"), text("")), fault(FaultKind::Invalid));
        let long = "a".repeat(100_000);
        assert_eq!(of(text(&long[..1000]), text("a"), text(&long)), fault(FaultKind::ArenaLimit));
        assert!(of(bytes(b"a"), text("b"), text("x")).is_err());
    }
}
