//! Answers the editor's requests about the definition and the uses of a name: go to the definition, find all uses, and highlight the uses in the
//! text.

use crate::analysis::Analysis;
use cembra::errors::Span;
use cembra_expr::Referent;
use lsp_types::{DocumentHighlight, Location, Position, Range, Uri};

/// The location where the name at the byte index `byte` is defined. For the name of a file in a `use`, the location is the start of that file. `None`
/// if there is no such name at `byte`, or if it is an operator's name.
pub(crate) fn definition(analysis: &Analysis, byte: usize, uri: &dyn Fn(&str) -> Option<Uri>) -> Option<Location> {
    match analysis.referent_at(byte)?.1 {
        Referent::Name(name) => location(analysis, name, uri),
        Referent::File(at) => {
            Some(Location::new(uri(analysis.file(at)?)?, Range::new(Position::new(0, 0), Position::new(0, 0))))
        }
        Referent::Operator(_) => None,
    }
}

/// The locations where the name at the byte index `byte` is used, in the text and in the files that it uses. The definition is
/// included if `with_definition`.
pub(crate) fn references(
    analysis: &Analysis,
    byte: usize,
    with_definition: bool,
    uri: &dyn Fn(&str) -> Option<Uri>,
) -> Vec<Location> {
    let places = places(analysis, byte, with_definition);
    places.into_iter().filter_map(|place| location(analysis, place, uri)).collect()
}

/// The definition and the uses, in the main text only, of the name at the byte index `byte`, for highlighting.
pub(crate) fn highlights(analysis: &Analysis, byte: usize) -> Vec<DocumentHighlight> {
    let places = places(analysis, byte, true).into_iter().filter(|place| analysis.is_own(*place));
    places.map(|place| DocumentHighlight { range: analysis.range(place), kind: None }).collect()
}

/// The spans where the name at the byte index `byte` is used. With `with_definition`, the name's definition comes first, unless the name is an
/// operator's, which no text defines.
pub(crate) fn places(analysis: &Analysis, byte: usize, with_definition: bool) -> Vec<Span> {
    let names = analysis.names();
    match analysis.referent_at(byte) {
        Some((_, Referent::Name(name))) => {
            with_definition.then_some(name).into_iter().chain(names.uses_of(name)).collect()
        }
        Some((_, operator @ Referent::Operator(_))) => {
            names.uses().iter().filter(|(_, referent)| *referent == operator).map(|(span, _)| *span).collect()
        }
        _ => Vec::new(),
    }
}

fn location(analysis: &Analysis, span: Span, uri: &dyn Fn(&str) -> Option<Uri>) -> Option<Location> {
    let (file, range) = analysis.place(span);
    Some(Location::new(uri(file)?, range))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::positions::Encoding;
    use cembra::Limits;
    use cembra::program::Sources;
    use std::collections::BTreeSet;

    /// The spans where the name at a byte is defined and used, the definition first.
    fn marked(text: &str, at: usize) -> Vec<u32> {
        let sources = Sources::alone("m.cem", text);
        let analysis = Analysis::of(sources, BTreeSet::new(), &Limits::default(), Encoding::Utf8);
        places(&analysis, at, true).into_iter().map(|place| place.start).collect()
    }

    #[test]
    fn names_mean_what_they_mean_to_the_parser() {
        //          0         1         2         3         4
        //          0123456789012345678901234567890123456789012345678
        let text = "let x = 1; let y = (let x = x + 2 in x * x) - x";
        assert_eq!(marked(text, 28), [4, 28, 46]);
        assert_eq!(marked(text, 41), [24, 37, 41]);
        assert_eq!(marked(text, 24), [24, 37, 41]);
        let text = "fn f(a, b) = a + b; output z = f(b=1, a=2) + a";
        assert_eq!(marked(text, 5), [5, 13, 38]);
        assert_eq!(marked(text, 33), [8, 17, 33]);
        // After the function the name is a leaf.
        assert_eq!(marked(text, 45), [45]);
        assert_eq!(marked(text, 31), [3, 31]);
        let text = "input a: f64; let g = fn(a) = a * 2.0; output y = L.a + g(a)";
        assert_eq!(marked(text, 30), [25, 30]);
        assert_eq!(marked(text, 6), [6, 52, 58]);
        assert_eq!(marked(text, 56), [18, 56]);
        let text = "extern fn fx.rate(text): f64; output y = fx.rate(\"a\") + M.fx.rate(\"b\")";
        assert_eq!(marked(text, 45), [10, 41, 56]);
        // Operators have uses but no definition.
        let text = "input x: f64; output y = sqrt(x) + math.sqrt(x) + round(x)";
        assert_eq!(marked(text, 26), [25, 35]);
        assert_eq!(marked(text, 51), [50]);
        let text = "input a: f64; output b = a; test \"t\" { a = 1.0 } => { b = 1.0 }";
        assert_eq!(marked(text, 39), [6, 25, 39]);
        assert_eq!(marked(text, 21), [21, 54]);
        assert_eq!(marked("let a = 1", 7), Vec::<u32>::new());
    }

    #[test]
    fn names_are_known_around_mistakes() {
        let text = "let a = 1\nlet b = a +\nlet c = (a * b\noutput d = a + c";
        assert_eq!(marked(text, 4), [4, 18, 31, 48]);
        assert_eq!(marked(text, 26), [26, 52]);
    }
}
