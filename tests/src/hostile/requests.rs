//! Requests that are hostile to the reader of JSON: the model is small and compiled before, the object that it is evaluated on is not.

use super::{Case, MILLION, Source, quick, slow};
use std::fmt::Write;

const ITEMS: &str = "input items: [{price: f64, note: text?}]; output total = sum(items.price)";
const RATES: &str = "input rates: dict[text, f64]; lookup(\"AaAaAaAaAaAaAaAaAaAaAaAaAaAaAaAaAaAaAaBB\", rates, 0.0)";
const ONE: &str = "input x: f64; x * 2";

/// A request of an object whose parts are `first`, `part` for each number below `count`, and `last`.
fn object(model: &str, first: &str, count: usize, part: impl Fn(&mut String, usize), last: &str) -> Source {
    let mut text = first.to_owned();
    for number in 0..count {
        text.push_str(if number == 0 { "" } else { "," });
        part(&mut text, number);
    }
    text.push_str(last);
    Source::Request(model.to_owned(), text)
}

/// Appends a key of a dictionary. The keys of all numbers have one sum, and one polynomial of 31, which plain hashes of texts are made of.
fn colliding(text: &mut String, number: usize) {
    text.push('"');
    for bit in (0..20).rev() {
        text.push_str(if number >> bit & 1 == 0 { "Aa" } else { "BB" });
    }
    text.push_str("\":1.5");
}

fn item(text: &mut String, _: usize) {
    text.push_str("{\"price\":2.5}");
}

pub(super) const CASES: &[Case] = &[
    quick("a request with a dictionary of a million keys with one unseeded hash", "value", || {
        object(RATES, "{\"rates\":{", MILLION, colliding, "}}")
    }),
    slow("a request with a dictionary of a million keys, one of them twice", "values", || {
        object(RATES, "{\"rates\":{\"AaAaAaAaAaAaAaAaAaAaAaAaAaAaAaAaAaBBAaBB\":1.0,", MILLION, colliding, "}}")
    }),
    quick("a request with a million fields that are not inputs", "value", || {
        let field = |text: &mut String, number: usize| write!(text, "\"f{number}\":{number}").unwrap_or_default();
        object(ONE, "{", MILLION, field, ",\"x\":1}")
    }),
    quick("a request with a million fields of one name, not an input", "value", || {
        object(ONE, "{", MILLION, |text, _| text.push_str("\"f\":[]"), ",\"x\":1}")
    }),
    quick("a request that repeats an input a million times", "values", || {
        object(ONE, "{", MILLION, |text, _| text.push_str("\"x\":1"), "}")
    }),
    quick("a request with 20,000 inputs in reverse order", "value", || {
        let inputs: String = (0..20_000).map(|n| format!("input x{n}: f64\n")).collect();
        let sum: Vec<String> = (0..20_000).map(|n| format!("x{n}")).collect();
        let field = |text: &mut String, number: usize| write!(text, "\"x{}\":1", 19_999 - number).unwrap_or_default();
        object(&format!("{inputs}{}", sum.join(" + ")), "{", 20_000, field, "}")
    }),
    quick("a request with 10,000 levels in a field that is not an input", "value", || {
        Source::Request(ONE.to_owned(), format!("{{\"x\":1,\"f\":{}{}}}", "[".repeat(10_000), "]".repeat(10_000)))
    }),
    quick("a request with 10,000 levels in an element of a list", "values", || {
        Source::Request(ITEMS.to_owned(), format!("{{\"items\":[{}{}]}}", "{\"f\":".repeat(10_000), "}".repeat(10_000)))
    }),
    quick("a request with 10 MiB of `[`", "values", || {
        Source::Request(ITEMS.to_owned(), format!("{{\"items\":{}", "[".repeat(10 << 20)))
    }),
    quick("a request with 10 MiB of escapes in a text of a list", "value", || {
        Source::Request(
            ITEMS.to_owned(),
            format!("{{\"items\":[{{\"price\":1,\"note\":\"{}\"}}]}}", "\\u0041".repeat(MILLION * 2)),
        )
    }),
    quick("a request with a number of 10 MiB", "value", || {
        Source::Request(ONE.to_owned(), format!("{{\"x\":1.{}}}", "3".repeat(10 << 20)))
    }),
    slow("a request with a million list elements, the last one wrong", "values", || {
        object(ITEMS, "{\"items\":[", MILLION, item, ",{\"price\":\"x\"}]}")
    }),
    slow("a request with a million list elements, each with an unknown field", "value", || {
        object(
            ITEMS,
            "{\"items\":[",
            MILLION,
            |text, number| {
                write!(text, "{{\"f{number}\":{{\"g\":[{number}]}},\"price\":1}}").unwrap_or_default();
            },
            "]}",
        )
    }),
    slow("a request with a list of ten million elements", "value", || {
        object(ITEMS, "{\"items\":[", 10 * MILLION, item, "]}")
    }),
];
