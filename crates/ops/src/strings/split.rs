//! Operators that split the strings of an array into parts.

use super::agg_join::{separator, separator_argument, strings_argument};
use crate::array::{ARRAY, ArrayForm, ArrayOperands, ArrayOperator, array_of, string_bytes};
use crate::definition::{OpDef, OverArrays, ex, param, param_or};
use crate::typing::{Argument, Signature, TypeFault};
use cembra_runtime::{ArrayKind, EdgeType, Fault, FaultKind, QType};
use cembra_value::{Array, ArrayBuilder, Edge, Value};
use memchr::memmem;
use std::ops::Range;

fn types(operator: &'static str, args: &[Argument<'_>]) -> Result<Signature, TypeFault> {
    let (kind, scalar) = strings_argument(operator, args, 0)?;
    separator_argument(operator, args, 1, scalar)?;
    let parts = [QType::Array(kind, scalar), QType::Edge(EdgeType::Arrays(kind))];
    Ok(Signature::unchanged(args, QType::tuple(parts)))
}

/// Returns true if a byte is white space in ASCII, as in C.
const fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t'..=b'\r')
}

/// Calls `part` with the range of each word in a string.
fn words(string: &[u8], mut part: impl FnMut(Range<usize>)) {
    let mut start = 0;
    for word in string.split(|byte| is_space(*byte)) {
        let end = start + word.len();
        if start < end {
            part(start..end);
        }
        start = end + 1;
    }
}

/// Calls `part` with the range of each character in a string, or of each byte if `text` is `None`. If the string is
/// empty, `part` is called once, with an empty range.
fn characters(string: &[u8], text: Option<&str>, mut part: impl FnMut(Range<usize>)) {
    match text {
        _ if string.is_empty() => part(0..0),
        Some(text) => text.char_indices().for_each(|(at, one)| part(at..at + one.len_utf8())),
        None => (0..string.len()).for_each(|at| part(at..at + 1)),
    }
}

/// Splits all strings of an array at the separator, or into words without one. Returns the parts of all strings, and
/// the number of parts of each string.
fn split(args: &ArrayOperands<'_>, array: &Array, separator: Option<&[u8]>) -> Result<(Array, Vec<i64>), Fault> {
    let mut parts = ArrayBuilder::new(array.scalar(), array.len());
    let mut sizes = Vec::with_capacity(array.len());
    let finder = separator.map(memmem::Finder::new);
    let mut bytes = 0_u64;
    for at in 0..array.len() {
        args.poll_at(at)?;
        let before = parts.len();
        if let Some(string) = array.string(at) {
            let text = array.text(at);
            // A text that is found in another text begins and ends between characters.
            let mut add = |part: Range<usize>| {
                bytes = bytes.saturating_add(string_bytes(part.len()));
                // Above the limit, parts are only counted, to the end of the string.
                match text {
                    _ if args.room_for_bytes(bytes).is_err() => {}
                    Some(text) => parts.push_text(text.get(part)),
                    None => parts.push_bytes(string.get(part)),
                }
            };
            match &finder {
                None => words(string, add),
                Some(finder) if finder.needle().is_empty() => characters(string, text, add),
                Some(finder) => {
                    let mut start = 0;
                    for end in finder.find_iter(string) {
                        add(start..end);
                        start = end + finder.needle().len();
                    }
                    add(start..string.len());
                }
            }
        }
        args.room_for_bytes(bytes)?;
        args.room_for(parts.len(), 0)?;
        sizes.push((parts.len() - before) as i64);
    }
    Ok((parts.finish(), sizes))
}

/// Makes a tuple of an array and edges (groupings of its elements).
pub(super) fn with_edges(kind: ArrayKind, array: Array, edges: impl IntoIterator<Item = Edge>) -> Result<Value, Fault> {
    let array = std::iter::once(Value::Array(kind, array.into()));
    Ok(Value::Tuple(array.chain(edges.into_iter().map(Value::from)).collect()))
}

/// Makes the edge (grouping) whose groups are contiguous and have the sizes `sizes`. Because the sizes were counted,
/// the only possible failure is that the limit on elements is exceeded.
pub(super) fn counted(kind: ArrayKind, sizes: Vec<i64>) -> Result<Edge, Fault> {
    Edge::from_sizes(kind, sizes).map_err(|_| Fault::new(FaultKind::ArenaLimit))
}

pub(crate) static SPLIT: OpDef = OpDef {
    name: "strings.split",
    summary: "The parts of each string of an array between occurrences of `sep`, and the edge that maps the parts to the strings. Without `sep`, the parts are the words between ASCII white space; an empty `sep` splits between all characters. A missing string has no parts.",
    params: &[param("s"), param_or("sep", Value::Unspecified)],
    faults: &[FaultKind::ArenaLimit],
    over_arrays: OverArrays::Kernel(&ArrayOperator {
        form: ArrayForm::Index,
        typing: types,
        evaluate: |args, _| {
            let Value::Array(kind, _) = args[0] else { return Err(Fault::new(FaultKind::Invalid)) };
            let (parts, sizes) = split(args, array_of(&args[0])?, separator(&args[1]))?;
            with_edges(kind, parts, [counted(kind, sizes)?])
        },
    }),
    examples: &[
        ex("core.get_first(strings.split([\"a b\", missing, \" c\"]))", "['a', 'b', 'c']"),
        ex("edge.sizes(core.get_second(strings.split([\"a,b\", missing, \",c\"], \",\")))", "[2, 0, 2]"),
    ],
    ..ARRAY
};

#[cfg(test)]
mod tests {
    use super::*;
    use cembra_runtime::Scalar;
    use cembra_value::ScalarValue;

    fn parts(strings: &[&str], separator: Option<&str>) -> (Vec<String>, Vec<i64>) {
        let strings = strings.iter().map(|text| Some(ScalarValue::Text((*text).into())));
        let array = Array::from_scalars(Scalar::Text, strings);
        let (parts, sizes) = split(&ArrayOperands::of_call(&[]), &array, separator.map(str::as_bytes)).unwrap();
        let text = |at| String::from_utf8(parts.string(at).unwrap().to_vec()).unwrap();
        ((0..parts.len()).map(text).collect(), sizes)
    }

    #[test]
    fn words_are_between_ascii_white_space() {
        let text = "a\u{a0}b\u{2003}c\u{85}d\u{1c}e\u{b}f\u{c}g\rh  \t\n";
        let all = ["a\u{a0}b\u{2003}c\u{85}d\u{1c}e", "f", "g", "h"].map(str::to_owned).to_vec();
        assert_eq!(parts(&[text, "", " "], None), (all, vec![4, 0, 0]));
    }

    #[test]
    fn separators_do_not_overlap_and_empty_parts_count() {
        let all = |parts: &[&str]| parts.iter().map(|part| (*part).to_owned()).collect::<Vec<_>>();
        assert_eq!(parts(&["aaaa", "aaa", ""], Some("aa")), (all(&["", "", "", "", "a", ""]), vec![3, 2, 1]));
        assert_eq!(parts(&[",x,"], Some(",")), (all(&["", "x", ""]), vec![3]));
        // Arolla splits characters into bytes there, which are not texts.
        assert_eq!(parts(&["a\u{e9}", ""], Some("")), (all(&["a", "\u{e9}", ""]), vec![2, 1]));
    }
}
