//! Searches for strings in strings. Each search takes time linear in the sum of the lengths of both strings.

use super::Chars;
use super::slice::{NO_POSITION, bytes_of, positions};
use crate::definition::{CUSTOM, Meaning, OVERLOADED, OpDef, Typing, ex, param, param_or};
use crate::kernel::{MaskValue, custom, mask, strict};
use cembra_runtime::{Bytes, Text};
use memchr::memmem;

/// A search for the second string in the first; returns the index of a byte.
type Search = fn(&[u8], &[u8]) -> Option<usize>;

/// Finds `substr` in the part of `s` between two positions. Returns the position in characters from the start of `s`;
/// `None` if it is not there.
///
/// The bytes of the strings are searched. The result is a position in characters, because a text that occurs in another
/// text begins at a character.
fn found<S: Chars>(search: Search, s: S, substr: S, start: Option<i64>, end: Option<i64>) -> Option<i64> {
    let length = s.length();
    let positions = positions(length, start, end)?;
    let within = s.part(bytes_of(s, positions.clone(), length));
    let at = search(within.bytes(), substr.bytes())?;
    Some((positions.start + within.part(0..at).length()) as i64)
}

macro_rules! find {
    ($search:expr; $($ty:ty),*) => {
        Meaning::Overloads(&[$(
            custom!(|s: $ty, substr: $ty, start: Option<i64>, end: Option<i64>| -> Option<i64> {
                found($search, s, substr, start, end)
            }),
            custom!(|s: Option<$ty>, substr: Option<$ty>, start: Option<i64>, end: Option<i64>| -> Option<i64> {
                s.zip(substr).and_then(|(s, substr)| found($search, s, substr, start, end))
            }),
        )*])
    };
}

pub(crate) static FIND: OpDef = OpDef {
    name: "strings.find",
    summary: "The position in `s` of the first occurrence of `substr`, counted from 0. Missing if there is none, or if `s` or `substr` is missing. Only the part from position `start` to before `end` is searched.",
    params: &[param("s"), param("substr"), param_or("start", NO_POSITION), param_or("end", NO_POSITION)],
    typing: Typing::Overloads,
    meaning: find!(memmem::find; Text<'static>, Bytes<'static>),
    examples: &[
        ex("strings.find(\"h\u{e9}llo\", \"l\")", "i64?{2}"),
        ex("strings.find(\"hello\", \"l\", 3)", "i64?{3}"),
        ex("strings.find(\"hello\", \"z\")", "i64?{NA}"),
    ],
    ..CUSTOM
};

pub(crate) static RFIND: OpDef = OpDef {
    name: "strings.rfind",
    summary: "The position in `s` of the last occurrence of `substr`, counted from 0. Missing if there is none, or if `s` or `substr` is missing. Only the part from position `start` to before `end` is searched.",
    params: &[param("s"), param("substr"), param_or("start", NO_POSITION), param_or("end", NO_POSITION)],
    typing: Typing::Overloads,
    meaning: find!(memmem::rfind; Text<'static>, Bytes<'static>),
    examples: &[
        ex("strings.rfind(\"hello\", \"l\")", "i64?{3}"),
        ex("strings.rfind(\"hello\", \"l\", 0, 3)", "i64?{2}"),
    ],
    ..CUSTOM
};

pub(crate) static CONTAINS: OpDef = OpDef {
    name: "strings.contains",
    summary: "Present if `substr` occurs in `s`.",
    params: &[param("s"), param("substr")],
    meaning: Meaning::Overloads(&[
        strict!(|s: Text<'static>, substr: Text<'static>| -> MaskValue { contains(s, substr) }),
        strict!(|s: Bytes<'static>, substr: Bytes<'static>| -> MaskValue { contains(s, substr) }),
    ]),
    examples: &[
        ex("strings.contains(\"hello\", \"ell\")", "present"),
        ex("strings.contains(b\"hello\", b\"x\")", "missing"),
    ],
    ..OVERLOADED
};

macro_rules! at_an_end {
    ($name:literal, $alias:literal, $param:literal, $summary:literal, $method:ident, $examples:expr) => {
        OpDef {
            name: $name,
            aliases: &[$alias],
            summary: $summary,
            params: &[param("s"), param($param)],
            meaning: Meaning::Overloads(&[
                strict!(|s: Text<'static>, part: Text<'static>| -> MaskValue { mask(s.bytes().$method(part.bytes())) }),
                strict!(|s: Bytes<'static>, part: Bytes<'static>| -> MaskValue {
                    mask(s.bytes().$method(part.bytes()))
                }),
            ]),
            examples: $examples,
            ..OVERLOADED
        }
    };
}

pub(crate) static STARTS_WITH: OpDef = at_an_end!(
    "strings.starts_with",
    "starts_with",
    "prefix",
    "Present if `s` begins with `prefix`.",
    starts_with,
    &[ex("starts_with(\"hello\", \"he\")", "present"), ex("starts_with(b\"hello\", b\"lo\")", "missing")]
);

pub(crate) static ENDS_WITH: OpDef = at_an_end!(
    "strings.ends_with",
    "ends_with",
    "suffix",
    "Present if `s` ends with `suffix`.",
    ends_with,
    &[ex("ends_with(\"hello\", \"lo\")", "present"), ex("ends_with(\"lo\", \"hello\")", "missing")]
);

fn contains<S: Chars>(s: S, substr: S) -> MaskValue {
    mask(memmem::find(s.bytes(), substr.bytes()).is_some())
}

pub(crate) static COUNT: OpDef = OpDef {
    name: "strings.count",
    summary: "The number of occurrences of `substr` in `s`, overlapping ones included. The empty string occurs at every position, also at the end.",
    params: &[param("s"), param("substr")],
    meaning: Meaning::Overloads(&[
        strict!(|s: Text<'static>, substr: Text<'static>| -> i64 { count(s, substr) }),
        strict!(|s: Bytes<'static>, substr: Bytes<'static>| -> i64 { count(s, substr) }),
    ]),
    examples: &[ex("strings.count(\"aaaa\", \"aa\")", "i64{3}"), ex("strings.count(\"abc\", \"\")", "i64{4}")],
    ..OVERLOADED
};

fn count<S: Chars>(s: S, substr: S) -> i64 {
    if substr.bytes().is_empty() {
        return s.length() as i64 + 1;
    }
    overlapping(s.bytes(), substr.bytes()) as i64
}

/// Counts the occurrences of a needle, which must not be empty; overlapping occurrences count too.
///
/// Two occurrences that overlap are a period of the needle apart. If the smallest period p is short, the next
/// occurrence begins p bytes later, which is decided by p bytes, or does not overlap by p bytes or more. If p is more
/// than half of the needle, occurrences are that far apart anyway. In both cases no byte is read more than a few times.
fn overlapping(haystack: &[u8], needle: &[u8]) -> usize {
    let finder = memmem::Finder::new(needle);
    let period = short_period(needle);
    let (mut count, mut from) = (0, 0);
    while let Some(at) = finder.find(&haystack[from..]) {
        count += 1;
        from += at + 1;
        if let Some(period) = period {
            let mut end = from - 1 + needle.len();
            while haystack.get(end..end + period) == Some(&needle[needle.len() - period..]) {
                count += 1;
                end += period;
            }
            from = end - period + 1;
        }
    }
    count
}

/// The smallest period of a string that is not empty. It may be `None` if the period is more than half of the string,
/// but not otherwise.
///
/// The method is the critical factorization. The string is cut at the later of its two maximal suffixes (for the order
/// of bytes and for the opposite order). If the part before the cut repeats with the period of this suffix, that is the
/// period of the string.
fn short_period(string: &[u8]) -> Option<usize> {
    let (cut, period) = maximal_suffix(string, false).max(maximal_suffix(string, true));
    string.get(period..period + cut).is_some_and(|shifted| shifted == &string[..cut]).then_some(period)
}

/// The start of the greatest suffix in the order of bytes (in the opposite order if `opposite`), and the period of this
/// suffix.
fn maximal_suffix(string: &[u8], opposite: bool) -> (usize, usize) {
    let (mut best, mut next, mut same, mut period) = (0, 1, 0, 1);
    while let Some(&found) = string.get(next + same) {
        let known = string[best + same];
        if found == known {
            if same + 1 == period {
                next += period;
                same = 0;
            } else {
                same += 1;
            }
        } else if (found < known) != opposite {
            next += same + 1;
            same = 0;
            period = next - best;
        } else {
            best = next;
            next += 1;
            same = 0;
            period = 1;
        }
    }
    (best, period)
}

#[cfg(test)]
mod tests {
    use super::super::eager::{STRINGS, bytes, call, missing_text, some_text, text};
    use super::*;
    use cembra_value::{ScalarValue, Value};

    /// The strings over the letters `a` and `b` of up to `longest` letters.
    fn words(longest: u32) -> Vec<Vec<u8>> {
        (0..=longest)
            .flat_map(|length| {
                (0..1_u32 << length).map(move |bits| (0..length).map(|i| b'a' + (bits >> i & 1) as u8).collect())
            })
            .collect()
    }

    fn naive_count(haystack: &[u8], needle: &[u8]) -> usize {
        haystack.windows(needle.len()).filter(|window| *window == needle).count()
    }

    #[test]
    #[cfg_attr(miri, ignore = "would take an hour")]
    fn overlapping_occurrences_are_counted_in_every_small_case() {
        let needles = words(6);
        for haystack in words(11) {
            for needle in needles.iter().filter(|needle| !needle.is_empty()) {
                assert_eq!(overlapping(&haystack, needle), naive_count(&haystack, needle), "{haystack:?} {needle:?}");
            }
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "would take an hour")]
    fn short_periods_are_the_smallest() {
        for word in words(12).into_iter().filter(|word| !word.is_empty()) {
            let smallest = (1..=word.len()).find(|p| word[*p..] == word[..word.len() - p]).unwrap_or(word.len());
            match short_period(&word) {
                Some(period) => assert_eq!(period, smallest, "{word:?}"),
                None => assert!(smallest * 2 > word.len(), "{word:?}"),
            }
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "would take an hour")]
    fn counting_takes_linear_time() {
        // Quadratic time would be hours.
        let haystack = vec![b'a'; 4_000_000];
        assert_eq!(overlapping(&haystack, &haystack[..2_000_000]), 2_000_001);
        let mut broken = haystack.clone();
        broken[1_999_999] = b'b';
        assert_eq!(overlapping(&haystack, &broken[..2_000_000]), 0);
    }

    #[test]
    fn strings_are_found_where_the_standard_library_finds_them() {
        let needles = STRINGS.iter().copied().chain(["\u{e9}", "l", "x", "bc", "\u{3a3}", "\u{1f600}"]);
        for needle in needles {
            for s in STRINGS {
                let index = |byte: Option<usize>| Value::from(byte.map(|byte| s[..byte].chars().count() as i64));
                let of = |op| call(op, &[text(s), text(needle)]);
                assert_eq!(of("strings.find"), Ok(index(s.find(needle))), "{s:?} {needle:?}");
                assert_eq!(of("strings.rfind"), Ok(index(s.rfind(needle))), "{s:?} {needle:?}");
                let present = if s.contains(needle) {
                    Value::Present(ScalarValue::Unit)
                } else {
                    Value::Missing(cembra_runtime::Scalar::Unit)
                };
                assert_eq!(of("strings.contains"), Ok(present), "{s:?} {needle:?}");
                let positions = s.char_indices().map(|(at, _)| at).chain([s.len()]);
                let count = positions.filter(|at| s[*at..].starts_with(needle)).count() as i64;
                assert_eq!(of("strings.count"), Ok(Value::from(count)), "{s:?} {needle:?}");
                let (b, n) = (s.as_bytes(), needle.as_bytes());
                let at = (0..=b.len()).find(|at| b[*at..].starts_with(n)).map(|at| at as i64);
                assert_eq!(call("strings.find", &[bytes(b), bytes(n)]), Ok(Value::from(at)), "{s:?} {needle:?}");
                let at = (0..=b.len()).rfind(|at| b[*at..].starts_with(n)).map(|at| at as i64);
                assert_eq!(call("strings.rfind", &[bytes(b), bytes(n)]), Ok(Value::from(at)), "{s:?} {needle:?}");
            }
        }
    }

    #[test]
    fn searches_keep_within_their_bounds() {
        let find = |op, s: &str, n: &str, start: i64, end: Option<i64>| {
            call(op, &[text(s), text(n), Value::from(start), Value::from(end)])
        };
        let at = |at: i64| Ok(Value::from(Some(at)));
        let none = Ok(Value::from(None::<i64>));
        assert_eq!(find("strings.find", "\u{e9}\u{e9}a\u{e9}a", "a", 0, None), at(2));
        assert_eq!(find("strings.find", "\u{e9}\u{e9}a\u{e9}a", "a", 3, None), at(4));
        assert_eq!(find("strings.find", "\u{e9}\u{e9}a\u{e9}a", "a", -1, None), at(4));
        assert_eq!(find("strings.find", "\u{e9}\u{e9}a\u{e9}a", "a", 3, Some(4)), none);
        assert_eq!(find("strings.rfind", "\u{e9}\u{e9}a\u{e9}a", "a", 0, Some(-1)), at(2));
        assert_eq!(find("strings.find", "abc", "bc", 0, Some(2)), none);
        assert_eq!(find("strings.find", "abc", "", 3, None), at(3));
        assert_eq!(find("strings.find", "abc", "", 4, None), none);
        assert_eq!(find("strings.find", "abc", "", 2, Some(1)), none);
        assert_eq!(find("strings.rfind", "abc", "", 1, Some(2)), at(2));
        assert_eq!(find("strings.find", "abc", "a", i64::MIN, Some(i64::MAX)), at(0));
        assert_eq!(find("strings.find", "abc", "a", i64::MAX, Some(i64::MIN)), none);
        let missing = call("strings.find", &[some_text("abc"), missing_text()]);
        assert_eq!(missing, none);
        assert_eq!(call("strings.find", &[text("abc"), text("c"), Value::Nothing, Value::Nothing]), at(2));
        assert!(call("strings.find", &[text("abc"), bytes(b"c")]).is_err());
    }

    #[test]
    fn a_missing_string_is_not_searched() {
        assert_eq!(call("strings.count", &[missing_text(), text("")]), Ok(Value::from(None::<i64>)));
        let missing = Ok(Value::Missing(cembra_runtime::Scalar::Unit));
        assert_eq!(call("strings.contains", &[some_text("a"), missing_text()]), missing);
    }
}
