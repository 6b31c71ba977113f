//! Operators that replace parts of strings by other strings.

use super::Chars;
use super::long_work::LongWork;
use super::made::ArenaString;
use super::slice::NO_POSITION;
use crate::definition::{CUSTOM, Meaning, OpDef, Typing, ex, param, param_or};
use crate::kernel::custom;
use cembra_runtime::{Bytes, Context, Fault, FaultKind, Text};
use memchr::memmem;

/// The index of the first byte of each occurrence of `old` that is replaced.
fn places<S: Chars>(s: S, old: &[u8]) -> impl Iterator<Item = usize> {
    // The empty string is between all characters, and the search for bytes would find it inside of a character too.
    let between = old.is_empty().then(|| (0..=s.bytes().len()).filter(move |at| s.begins_at(*at)));
    let found = (!old.is_empty()).then(|| memmem::find_iter(s.bytes(), old));
    between.into_iter().flatten().chain(found.into_iter().flatten())
}

fn replace<S: Chars>(context: &mut Context, s: S, old: S, new: S, most: Option<i64>) -> Result<S, Fault> {
    let most = most.and_then(|most| usize::try_from(most).ok()).unwrap_or(usize::MAX);
    let old = old.bytes();
    let mut work = LongWork::of(context, s.bytes().len());
    let mut count = 0_usize;
    for at in places(s, old).take(most) {
        work.reached(at)?;
        count += 1;
    }
    if count == 0 {
        return Ok(s);
    }
    let mut work = LongWork::of(context, s.bytes().len());
    let added = count.saturating_mul(new.bytes().len());
    let mut made = ArenaString::new(context, (s.bytes().len() - count * old.len()).saturating_add(added))?;
    let mut from = 0;
    for at in places(s, old).take(most) {
        work.reached(at)?;
        made.push(s.part(from..at));
        made.push(new);
        from = at + old.len();
    }
    made.push(s.part(from..s.bytes().len()));
    Ok(made.finish())
}

macro_rules! replace {
    ($($ty:ty),*) => {
        Meaning::Overloads(&[$(
            custom!(try in context |s: $ty, old: $ty, new: $ty, most: Option<i64>| -> $ty {
                replace(context, s, old, new, most)
            }),
            custom!(try in context |s: Option<$ty>, old: Option<$ty>, new: Option<$ty>, most: Option<i64>| -> Option<$ty> {
                match (s, old, new) {
                    (Some(s), Some(old), Some(new)) => replace(context, s, old, new, most).map(Some),
                    _ => Ok(None),
                }
            }),
        )*])
    };
}

pub(crate) static REPLACE: OpDef = OpDef {
    name: "strings.replace",
    summary: "The string with occurrences of `old` replaced by `new`, from left to right: at most `max_subs` of them, or all if `max_subs` is missing or negative. An empty `old` occurs before each character and at the end. Missing if `s`, `old` or `new` is missing.",
    params: &[param("s"), param("old"), param("new"), param_or("max_subs", NO_POSITION)],
    faults: &[FaultKind::ArenaLimit],
    typing: Typing::Overloads,
    meaning: replace!(Text<'static>, Bytes<'static>),
    examples: &[
        ex("strings.replace(\"banana\", \"an\", \"o\")", "'booa'"),
        ex("strings.replace(\"banana\", \"a\", \"\", 2)", "'bnna'"),
        ex("strings.replace(\"ab\", \"\", \"-\")", "'-a-b-'"),
    ],
    ..CUSTOM
};

#[cfg(test)]
mod tests {
    use super::super::eager::{STRINGS, bytes, call, fault, missing_text, some_text, text};
    use cembra_runtime::FaultKind;
    use cembra_value::Value;

    #[test]
    fn parts_are_replaced_as_the_standard_library_does() {
        for s in STRINGS {
            for old in STRINGS.into_iter().chain(["l", "\u{e9}", "abc"]) {
                for new in ["", "a", "\u{1f600}aa"] {
                    let of = |most: Option<i64>| {
                        call("strings.replace", &[text(s), text(old), text(new), Value::from(most)])
                    };
                    assert_eq!(of(None), Ok(text(&s.replace(old, new))), "{s:?} {old:?} {new:?}");
                    assert_eq!(of(Some(-1)), Ok(text(&s.replace(old, new))), "{s:?} {old:?} {new:?}");
                    for most in 0..4 {
                        let expected = s.replacen(old, new, most as usize);
                        assert_eq!(of(Some(most)), Ok(text(&expected)), "{s:?} {old:?} {new:?} {most}");
                    }
                }
            }
        }
    }

    #[test]
    fn bytes_are_replaced_one_by_one() {
        let of = |s: &[u8], old: &[u8], new: &[u8]| call("strings.replace", &[bytes(s), bytes(old), bytes(new)]);
        assert_eq!(of("\u{e9}".as_bytes(), b"", b"-"), Ok(bytes(b"-\xc3-\xa9-")));
        assert_eq!(of(b"\xff\x00\xff", b"\xff", b"ab"), Ok(bytes(b"ab\x00ab")));
        assert_eq!(of(b"aaa", b"aa", b"b"), Ok(bytes(b"ba")));
    }

    #[test]
    fn missing_strings_make_it_missing_and_a_missing_limit_does_not() {
        let with = |s, old, new| call("strings.replace", &[s, old, new, Value::Nothing]);
        assert_eq!(with(text("ab"), text("a"), text("b")), Ok(text("bb")));
        assert_eq!(with(some_text("ab"), text("a"), text("b")), Ok(some_text("bb")));
        assert_eq!(with(text("ab"), missing_text(), text("b")), Ok(missing_text()));
        assert!(with(text("ab"), bytes(b"a"), text("b")).is_err());
    }

    #[test]
    fn what_does_not_fit_the_arena_is_a_fault() {
        let long = text(&"a".repeat(100_000));
        assert_eq!(call("strings.replace", &[long.clone(), text(""), long]), fault(FaultKind::ArenaLimit));
    }
}
