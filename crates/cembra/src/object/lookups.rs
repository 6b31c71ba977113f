//! Dictionary lookups in object files. Usually, a function of the library looks up keys in a table, but an object file cannot call it. So the
//! lookup is replaced by code that finds the same entries by binary search.

use cembra_prepare::{Extension, Id, Rewriter};
use cembra_runtime::QType;
use cembra_value::{ScalarValue, Value};
use std::cmp::Ordering;

/// The name of the operator that looks up a key in a dictionary's table.
pub(super) const TABLE: &str = "dict._table";

/// The most entries of a dictionary whose lookups are replaced by binary search. Each comparison takes some tens of bytes of code.
pub(super) const MOST_ENTRIES: usize = 1_024;

/// The most keys that are compared one after the other, at the end of the binary search.
const FEW: usize = 3;

/// The extension of preparation that replaces table lookups by binary searches.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lookups;

impl Extension for Lookups {
    fn transform(&self, rewriter: &mut Rewriter<'_>, node: Id) -> Option<Id> {
        let &[dict, key] = rewriter.matches(node, TABLE)? else { return None };
        let QType::Optional(scalar) = *rewriter.qtype(node)? else { return None };
        let Value::Dict(dict) = rewriter.value(dict)? else { return None };
        if dict.len() > MOST_ENTRIES {
            return None;
        }
        let mut entries: Vec<Entry> = dict.entries().collect();
        entries.sort_by(|(a, _), (b, _)| order(a, b));
        let absent = rewriter.literal(Value::Missing(scalar));
        search(rewriter, key, &entries, absent)
    }
}

type Entry = (ScalarValue, Option<ScalarValue>);

/// Compares two keys in the order of `core.less`.
fn order(a: &ScalarValue, b: &ScalarValue) -> Ordering {
    match (a, b) {
        (ScalarValue::Text(a), ScalarValue::Text(b)) => a.cmp(b),
        (ScalarValue::Bytes(a), ScalarValue::Bytes(b)) => a.cmp(b),
        (ScalarValue::Int32(a), ScalarValue::Int32(b)) => a.cmp(b),
        (ScalarValue::Int64(a), ScalarValue::Int64(b)) => a.cmp(b),
        _ => a.bits().cmp(&b.bits()),
    }
}

/// Returns a node that searches for `key` in the entries, which are sorted by key. Its value is `absent` if the key is not found.
fn search(rewriter: &mut Rewriter<'_>, key: Id, entries: &[Entry], absent: Id) -> Option<Id> {
    // The number of entries is bounded and halves at each level, so the recursion is bounded.
    if entries.len() > FEW {
        let (below, above) = entries.split_at(entries.len() / 2);
        let first = rewriter.literal(Value::Scalar(above.first()?.0.clone()));
        let is_below = rewriter.apply("core.less", &[key, first]).ok()?;
        let below = search(rewriter, key, below, absent)?;
        let above = search(rewriter, key, above, absent)?;
        return rewriter.apply("core.where", &[is_below, below, above]).ok();
    }
    let mut found = absent;
    for (known, value) in entries {
        // A key without a value counts as absent.
        let Some(value) = value else { continue };
        let known = rewriter.literal(Value::Scalar(known.clone()));
        let is_it = rewriter.apply("core.equal", &[key, known]).ok()?;
        let value = rewriter.literal(Value::Present(value.clone()));
        found = rewriter.apply("core.where", &[is_it, value, found]).ok()?;
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::native::Target;
    use crate::{Backend, Model, Options};
    use std::sync::Arc;

    fn values(text: &str, options: &Options, rows: &[Value]) -> Vec<String> {
        let executor = Model::parse(text).expect("a model").compile(options).expect("compiled");
        let mut session = executor.session();
        rows.iter().map(|row| format!("{:?}", session.evaluate(std::slice::from_ref(row)).expect("no fault"))).collect()
    }

    /// Returns a model that looks up `k` in a dictionary of these keys in the given order.
    fn looking_up(qtype: &str, keys: &[String], value: impl Fn(usize) -> String) -> String {
        let entries: Vec<String> = keys.iter().enumerate().map(|(at, key)| format!("{key}: {}", value(at))).collect();
        format!("input k: {qtype}; output v = dict.get(dict{{{}}}, k)", entries.join(", "))
    }

    #[test]
    fn a_search_finds_what_the_table_does() {
        let numbers = |count: i64| (0..count).map(|at| (at * 7919 % 1_009 - 400).to_string()).collect::<Vec<_>>();
        let words: Vec<String> =
            (0..40).map(|at| format!("{:?}", "xyz".repeat(at % 3) + &(at * 37 % 101).to_string())).collect();
        let number = |at: usize| if at % 5 == 4 { "missing".to_owned() } else { format!("{at}.5") };
        let word = |at: usize| format!("\"found {at}\"");
        let integers: Vec<Value> =
            (-420..650_i64).map(|key| Value::from(Some(key))).chain([Value::from(None::<i64>)]).collect();
        let texts: Vec<Value> = words
            .iter()
            .flat_map(|word| [word.trim_matches('"').to_owned(), word.clone(), "x".into()])
            .map(|word| Value::text(&*word))
            .collect();
        let cases = [
            (looking_up("i64?", &numbers(1), number), integers.clone()),
            (looking_up("i64?", &numbers(3), number), integers.clone()),
            (looking_up("i64?", &numbers(4), word), integers.clone()),
            (looking_up("i64?", &numbers(300), number), integers),
            (looking_up("text", &words, number), texts.clone()),
            (looking_up("text", &words, word), texts),
            (
                "input k: bool; output v = dict.get(dict{true: 1, false: 2}, k)".to_owned(),
                vec![true.into(), false.into()],
            ),
        ];
        for (text, rows) in &cases {
            let expected = values(text, &Options::default().backend(Backend::Interpreter), rows);
            for backend in [Backend::Interpreter, Backend::Native] {
                let options = Options::default().backend(backend).extension(Arc::new(Lookups));
                assert_eq!(values(text, &options, rows), expected, "{text}");
            }
            let object = Model::parse(text).and_then(|model| model.object("m", &Target::host(), &Options::default()));
            assert!(object.is_ok(), "{text}\n{object:?}");
        }
    }

    #[test]
    fn large_tables_are_refused() {
        let keys: Vec<String> = (0..=MOST_ENTRIES).map(|at| (at * at).to_string()).collect();
        let object = |keys: &[String]| {
            let text = looking_up("i64", keys, |at| at.to_string());
            Model::parse(&text).and_then(|model| model.object("m", &Target::host(), &Options::default()))
        };
        assert!(object(&keys[1..]).is_ok());
        let refused = object(&keys).unwrap_err();
        assert_eq!(refused.code(), "object");
        assert_eq!(refused.diagnostics()[0].hints()[0], "use a table of at most 1024 entries");
    }
}
