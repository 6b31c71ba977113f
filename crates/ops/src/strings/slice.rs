//! Operators that return the length or a part of a string.

use super::Chars;
use crate::definition::{CUSTOM, Meaning, OVERLOADED, OpDef, Typing, ex, param, param_or};
use crate::kernel::{custom, strict};
use cembra_runtime::{Bytes, Scalar, Text};
use cembra_value::Value;
use std::ops::Range;

/// The default of parameters that are positions, which means that no position is given.
pub(super) const NO_POSITION: Value = Value::Missing(Scalar::Int64);

pub(crate) static LENGTH: OpDef = OpDef {
    name: "strings.length",
    summary: "The length of a string: of a text in code points, of bytes in bytes.",
    meaning: Meaning::Overloads(&[
        strict!(|x: Text<'static>| -> i64 { x.length() as i64 }),
        strict!(|x: Bytes<'static>| -> i64 { x.length() as i64 }),
    ]),
    examples: &[ex("strings.length(\"h\u{e9}llo\")", "i64{5}"), ex("strings.length(b\"ab\")", "i64{2}")],
    ..OVERLOADED
};

/// The range of characters between the positions `start` and `end` in a string of `length` characters. A negative position counts from the end. A
/// missing `start` is the start of the string, a missing `end` its end. `None` if `start` is after `end`.
pub(super) fn positions(length: usize, start: Option<i64>, end: Option<i64>) -> Option<Range<usize>> {
    let length = length as i64;
    let start = match start {
        None => 0,
        Some(start) if start < 0 => (start + length).max(0),
        Some(start) => start,
    };
    let end = match end {
        None => length,
        Some(end) if end < 0 => end + length,
        Some(end) => end.min(length),
    };
    (start <= end).then_some(start as usize..end as usize)
}

/// The range of bytes of the characters `positions` in `s`, a string of `length` characters.
pub(super) fn bytes_of<S: Chars>(s: S, positions: Range<usize>, length: usize) -> Range<usize> {
    let start = s.byte_of(positions.start, length);
    let rest = s.part(start..s.bytes().len());
    start..start + rest.byte_of(positions.len(), length - positions.start)
}

fn substr<S: Chars>(s: S, start: Option<i64>, end: Option<i64>) -> S {
    let length = s.length();
    match positions(length, start, end) {
        Some(positions) => s.part(bytes_of(s, positions, length)),
        None => s.part(0..0),
    }
}

macro_rules! substr {
    ($($ty:ty),*) => {
        Meaning::Overloads(&[$(
            custom!(|s: $ty, start: Option<i64>, end: Option<i64>| -> $ty { substr(s, start, end) }),
            custom!(|s: Option<$ty>, start: Option<i64>, end: Option<i64>| -> Option<$ty> {
                s.map(|s| substr(s, start, end))
            }),
        )*])
    };
}

pub(crate) static SUBSTR: OpDef = OpDef {
    name: "strings.substr",
    aliases: &["substr"],
    summary: "The part of a string from position `start` to before position `end`, counted from 0. A negative position counts from the end; a missing one means the start or the end. Missing if the string is missing.",
    params: &[param("s"), param_or("start", NO_POSITION), param_or("end", NO_POSITION)],
    typing: Typing::Overloads,
    meaning: substr!(Text<'static>, Bytes<'static>),
    examples: &[
        ex("strings.substr(\"h\u{e9}llo\", 1, 3)", "'\u{e9}l'"),
        ex("strings.substr(\"hello\", -2)", "'lo'"),
        ex("strings.substr(b\"hello\", 3, 1)", "b''"),
    ],
    ..CUSTOM
};

#[cfg(test)]
mod tests {
    use super::super::eager::{STRINGS, bytes, call, missing_text, some_text, text};
    use cembra_value::Value;

    /// Python's result of `s[start:end]`.
    fn slice<T: Clone>(items: &[T], start: Option<i64>, end: Option<i64>) -> Vec<T> {
        let length = items.len() as i64;
        let place = |at: i64| if at < 0 { (at + length).max(0) } else { at.min(length) };
        let (start, end) = (start.map_or(0, place), end.map_or(length, place));
        items.iter().skip(start as usize).take((end - start).max(0) as usize).cloned().collect()
    }

    #[test]
    fn lengths_are_in_characters() {
        for s in STRINGS {
            assert_eq!(call("strings.length", &[text(s)]), Ok(Value::from(s.chars().count() as i64)), "{s:?}");
            assert_eq!(call("strings.length", &[bytes(s.as_bytes())]), Ok(Value::from(s.len() as i64)), "{s:?}");
        }
        assert_eq!(call("strings.length", &[missing_text()]), Ok(Value::from(None::<i64>)));
    }

    #[test]
    fn parts_are_pythons_slices() {
        let positions =
            [None, Some(0), Some(1), Some(2), Some(5), Some(-1), Some(-2), Some(-9), Some(i64::MAX), Some(i64::MIN)];
        for s in STRINGS {
            for start in positions {
                for end in positions {
                    let (from, to) = (Value::from(start), Value::from(end));
                    let chars: Vec<char> = s.chars().collect();
                    let expected: String = slice(&chars, start, end).into_iter().collect();
                    let found = call("strings.substr", &[text(s), from.clone(), to.clone()]);
                    assert_eq!(found, Ok(text(&expected)), "{s:?} {start:?} {end:?}");
                    let found = call("strings.substr", &[bytes(s.as_bytes()), from, to]);
                    assert_eq!(found, Ok(bytes(&slice(s.as_bytes(), start, end))), "{s:?} {start:?} {end:?}");
                }
            }
        }
        assert_eq!(call("strings.substr", &[text("abc"), Value::from(1), Value::from(-1)]), Ok(text("b")));
        assert_eq!(call("strings.substr", &[some_text("abc"), Value::Nothing, Value::from(2)]), Ok(some_text("ab")));
        assert_eq!(call("strings.substr", &[missing_text(), Value::from(1), Value::from(2)]), Ok(missing_text()));
        assert!(call("strings.substr", &[text("abc"), Value::from(1.5), Value::from(2)]).is_err());
    }
}
