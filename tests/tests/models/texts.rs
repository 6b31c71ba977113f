//! Comparisons of texts: what is missing, empty, equal or unlike in any byte of any length, in all backends; and no byte behind
//! the end of a text is read.

use cembra::native::Tier;
use cembra::values::print_value;
use cembra::{Backend, Model, Options, Scalar, ScalarValue, Session, Value};
use std::cmp::Ordering;
use std::sync::Arc;

fn ways() -> [Options; 3] {
    let native = || Options::default().backend(Backend::Native);
    [Options::default().backend(Backend::Interpreter), native().tier(Tier::Quick), native().tier(Tier::Optimised)]
}

fn sessions(source: &str) -> [Session; 3] {
    let model = Model::parse(source).expect("a model");
    ways().map(|options| model.compile(&options).expect("an executor").session())
}

fn optional(text: Option<&str>) -> Value {
    Value::from(text.map(Arc::<str>::from))
}

/// The comparisons of two texts, as outputs of a model.
fn comparisons(x: &str, y: &str) -> String {
    let names = ["equal", "not_equal", "less", "less_equal", "greater", "greater_equal"];
    let outputs = names.iter().flat_map(|name| {
        ["core", "bool"].map(|module| format!("output {module}_{name} = {module}.{name}({x}, {y})\n"))
    });
    outputs.collect()
}

/// What they are to give: present or true where they hold.
fn expected(x: Option<&str>, y: Option<&str>) -> Vec<Value> {
    let order = x.zip(y).map(|(x, y)| x.cmp(y));
    let holds: [fn(Ordering) -> bool; 6] =
        [Ordering::is_eq, Ordering::is_ne, Ordering::is_lt, Ordering::is_le, Ordering::is_gt, Ordering::is_ge];
    let values = holds.iter().flat_map(|holds| {
        let found = order.map(holds);
        let mask = if found == Some(true) { Value::Present(ScalarValue::Unit) } else { Value::Missing(Scalar::Unit) };
        [mask, Value::from(found)]
    });
    values.collect()
}

/// Texts that are like this one but for something, and other texts.
fn variants(text: &str) -> Vec<Option<String>> {
    let mut found = vec![None, Some(String::new()), Some(text.to_owned()), Some(format!("{text}\0"))];
    found.extend(text.char_indices().flat_map(|(at, old)| {
        let prefix = Some(text[..at].to_owned());
        // A character of as many bytes, so that the length stays.
        let new: &[char] = if old.is_ascii() { &['\0', 'a', '~'] } else { &['\u{80}', '\u{7ff}'] };
        let changed = new.iter().map(move |new| {
            let mut other = text.to_owned();
            other.replace_range(at..at + old.len_utf8(), new.encode_utf8(&mut [0; 4]));
            Some(other)
        });
        changed.chain([prefix])
    }));
    found
}

fn words() -> impl Iterator<Item = String> {
    (0..=40).flat_map(|length| {
        let ascii: String = "k0zmNq7\0 vB".chars().cycle().take(length).collect();
        let accented: String = "k\u{e9}\u{f8}b".chars().cycle().take(length / 2).collect();
        [ascii, accented]
    })
}

#[test]
fn texts_compare_by_bytes_with_literals() {
    for word in words() {
        let literal = print_value(&Value::from(word.as_str()));
        let source = format!("input x: text?\n{}{}", comparisons("x", &literal), "output z = x");
        let mut sessions = sessions(&source);
        for x in variants(&word) {
            let x = x.as_deref();
            let mut expected = expected(x, Some(&word));
            expected.push(optional(x));
            for session in &mut sessions {
                assert_eq!(session.evaluate(&[optional(x)]).expect("values"), expected, "{x:?} {literal}");
            }
        }
    }
}

#[test]
fn texts_compare_by_bytes_with_each_other() {
    let mut sessions = sessions(&format!("input x, y: text?\n{}", comparisons("x", "y")));
    for word in words() {
        for x in variants(&word) {
            for y in [None, Some(""), Some(&word)] {
                let x = x.as_deref();
                for session in &mut sessions {
                    let found = session.evaluate(&[optional(x), optional(y)]).expect("values");
                    assert_eq!(found, expected(x, y), "{x:?} {y:?}");
                    let found = session.evaluate(&[optional(y), optional(x)]).expect("values");
                    assert_eq!(found, expected(y, x), "{y:?} {x:?}");
                }
            }
        }
    }
}

#[test]
fn a_literal_may_stand_first_and_texts_may_always_be_there() {
    let source = "input x: text; input b: bytes
        output left = \"gold\" == x; output none = x == \"\"; output both = x == x; output raw = b == b\"\\x00\\xff\\x00\"";
    for mut session in sessions(source) {
        let mut found = |x: &str, b: &[u8]| {
            let row = [Value::from(x), Value::from(Arc::<[u8]>::from(b))];
            session.evaluate(&row).expect("values").iter().map(|value| value.as_scalar().is_some()).collect::<Vec<_>>()
        };
        assert_eq!(found("gold", b"\0\xff\0"), [true, false, true, true]);
        assert_eq!(found("golf", b"\0\xff\x01"), [false, false, true, false]);
        assert_eq!(found("", b"\0\xff"), [false, true, true, false]);
    }
}

#[derive(cembra::Input)]
struct Pair<'t> {
    x: &'t str,
    y: &'t str,
}

#[derive(cembra::Output, PartialEq, Debug)]
struct Found {
    literal: bool,
    less: bool,
    both: bool,
}

/// The texts end where their page does, and the page behind it cannot be read.
#[test]
fn no_byte_behind_a_text_is_read() {
    let page = region::page::size();
    let mut pages = memmap2::MmapMut::map_anon(2 * page).expect("two pages");
    for length in 0..=40_usize {
        let word: String = "k0zmNq7vB".chars().cycle().take(length).collect();
        let literal = print_value(&Value::from(word.as_str()));
        let source = format!(
            "input x, y: text
             output literal = bool.equal(x, {literal}); output less = bool.less(x, y); output both = bool.equal(x, y)"
        );
        let model = Model::parse(&source).expect("a model");
        for options in ways() {
            for at in 0..length {
                pages[page - length..page].copy_from_slice(word.as_bytes());
                let guard = Guard::of(&pages[page..]);
                let x = str::from_utf8(&pages[page - length..page]).expect("a text");
                let mut other = x.to_owned();
                other.replace_range(at..=at, "~");
                let mut run = model.executor::<Pair<'_>, Found>(&options).expect("an executor");
                let expected = |literal, less, both| Found { literal, less, both };
                assert_eq!(run.run(&Pair { x, y: &other }).expect("values"), expected(true, true, false));
                assert_eq!(run.run(&Pair { x: &other, y: x }).expect("values"), expected(false, false, false));
                assert_eq!(run.run(&Pair { x, y: x }).expect("values"), expected(true, false, true));
                drop(guard);
            }
        }
    }
}

/// A page that cannot be read as long as this lives.
struct Guard(*const u8, usize);

impl Guard {
    fn of(page: &[u8]) -> Self {
        // SAFETY: the page is mapped whole and for this test alone, which does not look at it while the guard lives.
        unsafe { region::protect(page.as_ptr(), page.len(), region::Protection::NONE) }.expect("the page is ours");
        Guard(page.as_ptr(), page.len())
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        // SAFETY: as above; it is again as it was.
        let done = unsafe { region::protect(self.0, self.1, region::Protection::READ_WRITE) };
        done.expect("the page is ours");
    }
}
