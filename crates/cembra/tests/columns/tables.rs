//! Tests tables whose keys end in a range, such as an interval of dates: lookups in rows, columns and arrays find what
//! a linear search through the file's lines finds.

use super::batch::players;
use cembra::columns::InputColumn;
use cembra::operators::Registry;
use cembra::program::{Sources, UsedFile};
use cembra::values::ArrayKind;
use cembra::{Array, Backend, Limits, Model, Options, Scalar, ScalarValue, Timestamp, Value};
use std::io;

/// A line of a table. Bounds are counted in steps: of 0.25 for numbers, of one minute for timestamps.
struct Line {
    name: &'static str,
    number: i32,
    from: Option<i64>,
    to: Option<i64>,
    value: Option<f64>,
}

const NAMES: [&str; 3] = ["CH", "DE", "a,b"];

const TABLES: &str = "table one: (text, ranges of f64) -> f64 = 'one.csv'
    table two: (text, i64, ranges of timestamp) -> {rate: f64, label: text?} = 'two.csv'\n";

/// The number of ranges per key, in turn. Lookups use another algorithm for many ranges than for few.
const COUNTS: [usize; 9] = [1, 40, 3, 0, 17, 100, 2, 33, 8];

/// The lines of a file in random order. With `gaps`, ranges have ends of their own; without, each range ends where the next one of its key begins.
fn lines(random: &mut fastrand::Rng, numbers: &[i32], gaps: bool) -> Vec<Line> {
    let mut all = Vec::new();
    let keys = NAMES.iter().flat_map(|name| numbers.iter().map(move |number| (*name, *number)));
    for ((name, number), count) in keys.zip(COUNTS) {
        let mut at = random.i64(-9..9);
        let opens = random.bool();
        for range in 0..count {
            let end = at + random.i64(1..6);
            let from = (range > 0 || !opens).then_some(at);
            let is_open = range + 1 == count && (!gaps || random.bool());
            let value = (random.u8(0..5) > 0).then(|| f64::from(random.i32(0..1000)) / 8.0);
            all.push(Line { name, number, from, to: (!is_open).then_some(end), value });
            at = end + if gaps { random.i64(0..3) } else { 0 };
        }
    }
    random.shuffle(&mut all);
    all
}

fn quarters(step: i64) -> f64 {
    step as f64 * 0.25
}

/// The time `step` minutes after the start of 2026, in microseconds since 1970.
fn moment(step: i64) -> i64 {
    (1_767_225_600 + step * 60) * 1_000_000
}

/// The text in a file for `moment(step)`.
fn spelled(step: i64) -> String {
    let (day, minute) = (step.div_euclid(1440), step.rem_euclid(1440));
    let day = if day < 0 { format!("2025-12-{}", 32 + day) } else { format!("2026-01-{:02}", day + 1) };
    format!("{day}T{:02}:{:02}:00Z", minute / 60, minute % 60)
}

fn written<T: ToString>(value: Option<T>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}

/// A model with the tables `one` and `two`; `inputs` declares its inputs and outputs.
fn model(one: &[Line], two: &[Line], inputs: &str) -> Result<Model, cembra::Error> {
    let mut files = ["name,from,to,value\n".to_owned(), "name;number;from;label;rate\n".to_owned()];
    for Line { name, from, to, value, .. } in one {
        let [from, to] = [from, to].map(|bound| written(bound.map(quarters)));
        files[0] += &format!("\"{name}\",{from},{to},{}\n", written(*value));
    }
    for Line { name, number, from, value, .. } in two {
        let (from, label) = (written(from.map(spelled)), written(value.map(|value| format!("l{value}"))));
        files[1] += &format!("{name};{number};{from};{label};{}\n", value.unwrap_or(0.5));
    }
    let used = |name: &str, _: &str| -> io::Result<UsedFile> {
        let text = &files[usize::from(name == "two.csv")];
        Ok(UsedFile { name: name.to_owned(), text: text.as_str().into() })
    };
    let sources = Sources::gather("m.cem", format!("{TABLES}{inputs}"), &Limits::default(), &used);
    Model::parse_sources(sources, Registry::standard(), &Limits::default())
}

/// The line with this name and number whose range holds `key`.
fn found<'l, T: PartialOrd>(
    lines: &'l [Line],
    name: &str,
    number: i32,
    key: T,
    bound: fn(i64) -> T,
) -> Option<&'l Line> {
    lines.iter().find(|line| {
        line.name == name
            && line.number == number
            && line.from.is_none_or(|from| bound(from) <= key)
            // NaN is in no range, not even in one without ends.
            && line.to.map_or(key.partial_cmp(&key).is_some(), |to| key < bound(to))
    })
}

fn text(text: Option<&str>) -> Value {
    Value::optional(Scalar::Text, text.map(|text| ScalarValue::Text(text.into())))
}

/// A random key: a bound, a neighbour of one, NaN, an infinity or -0; or `None`.
fn number(random: &mut fastrand::Rng) -> Option<f64> {
    let bound = quarters(random.i64(-12..200));
    match random.u8(0..9) {
        0 => None,
        1 => Some([f64::NAN, -f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0][random.usize(0..5)]),
        2 | 3 => Some(bound.next_up()),
        4 | 5 => Some(bound.next_down()),
        _ => Some(bound),
    }
}

#[test]
fn the_last_part_of_a_key_is_in_a_range_of_the_others() {
    let text_of_model = "input name: text?, number: i32?, x: f64?, t: timestamp?
        output a = lookup((name, x), one)
        output b = lookup((name, x), one, 0.25)
        output c = if (name, x) in one then 1 else 0
        output d = lookup((name, number, t), two).rate
        output e = lookup((name, number, t), two, {rate: -1.0, label: 'none'}).label
        output f = if (name, number, t) in two then 1 else 0";
    for seed in 0..8 {
        let mut random = fastrand::Rng::with_seed(seed);
        let (one, two) = (lines(&mut random, &[0], true), lines(&mut random, &[7, -1, 2], false));
        let model = model(&one, &two, text_of_model).expect("a model");
        let mut columns: [Vec<Value>; 4] = Default::default();
        let (mut expected, mut hits) = (Vec::new(), [0; 2]);
        for _ in 0..1500 {
            let name = [Some(NAMES[0]), Some(NAMES[1]), Some(NAMES[2]), Some("FR"), None][random.usize(0..5)];
            let of_two = [Some(7), Some(-1), Some(2), Some(3), None][random.usize(0..5)];
            let x = number(&mut random);
            let t = (random.u8(0..9) > 0).then(|| moment(random.i64(-12..400)) - random.i64(0..2));
            for (column, value) in columns.iter_mut().zip([
                text(name),
                Value::from(of_two),
                Value::from(x),
                Value::optional(Scalar::Timestamp, t.map(|t| ScalarValue::Timestamp(Timestamp(t)))),
            ]) {
                column.push(value);
            }
            let of_one = name.zip(x);
            let in_one = of_one.and_then(|(name, x)| found(&one, name, 0, x, quarters));
            let key = name.zip(of_two).zip(t);
            let in_two = key.and_then(|((name, number), t)| found(&two, name, number, t, moment));
            hits = [hits[0] + usize::from(in_one.is_some()), hits[1] + usize::from(in_two.is_some())];
            let value = in_one.and_then(|line| line.value);
            let label = in_two.map(|line| line.value.map(|value| format!("l{value}")));
            let label = key.and(label.unwrap_or(Some("none".to_owned())));
            expected.push([
                Value::from(value),
                Value::from(of_one.map(|_| value.unwrap_or(0.25))),
                Value::from(i32::from(in_one.is_some())),
                Value::from(in_two.map(|line| line.value.unwrap_or(0.5))),
                text(label.as_deref()),
                Value::from(i32::from(in_two.is_some())),
            ]);
        }
        assert!(hits.iter().all(|hits| (60..1400).contains(hits)), "{hits:?}");
        let again = Model::from_binary(&model.to_binary()).expect("what was written is read");
        for backend in [Backend::Native, Backend::Interpreter] {
            for model in [&model, &again] {
                let executor = model.compile(&Options::default().backend(backend)).expect("compiled");
                let mut session = executor.session();
                for (row, expected) in expected.iter().enumerate() {
                    let inputs = [0, 1, 2, 3].map(|at: usize| columns[at][row].clone());
                    let made = session.evaluate(&inputs).expect("no fault");
                    let is_same = made.len() == 6 && made.iter().zip(expected).all(|(a, b)| a.same(b));
                    assert!(is_same, "{backend:?} {seed} {inputs:?}: {made:?} for {expected:?}");
                }
            }
        }
        let inputs = [0, 1, 2, 3].map(|at: usize| InputColumn::any(&columns[at]));
        for player in players() {
            let batch = model.batch(&Options::default().row_player(player)).expect("a batch");
            let made = batch.run(&inputs).expect("no fault");
            for (row, expected) in expected.iter().enumerate() {
                let values = made.iter().map(|column| column.value(row).expect("a row"));
                let is_same = values.zip(expected).all(|(a, b)| a.same(b));
                assert!(is_same, "{player:?} {seed} row {row}");
            }
        }
    }
}

#[test]
fn arrays_are_looked_up_element_by_element() {
    let array = |scalar: Scalar, all: Vec<Option<ScalarValue>>| -> Value {
        Value::Array(ArrayKind::Dense, Array::from_scalars(scalar, all).into())
    };
    let mut random = fastrand::Rng::with_seed(7);
    let one = lines(&mut random, &[0], true);
    let text_of_model = "input names: [text?], xs: [f64?]
        output a = lookup((names, xs), one, 0.25)
        output b = lookup(('DE', xs), one)
        output c = (names, 3.5) in one";
    let model = model(&one, &[], text_of_model).expect("a model");
    let names: Vec<Option<&str>> =
        (0..700).map(|_| [Some(NAMES[0]), Some(NAMES[1]), Some("FR"), None][random.usize(0..4)]).collect();
    let xs: Vec<Option<f64>> = (0..700).map(|_| number(&mut random)).collect();
    let value = |name: &str, x: f64| found(&one, name, 0, x, quarters).and_then(|line| line.value);
    let float = |value: Option<f64>| value.map(ScalarValue::Float64);
    let expected = [
        array(
            Scalar::Float64,
            names
                .iter()
                .zip(&xs)
                .map(|(name, x)| float((*name).zip(*x).map(|(name, x)| value(name, x).unwrap_or(0.25))))
                .collect(),
        ),
        array(Scalar::Float64, xs.iter().map(|x| float(x.and_then(|x| value("DE", x)))).collect()),
        array(
            Scalar::Unit,
            names
                .iter()
                .map(|name| name.and_then(|name| found(&one, name, 0, 3.5, quarters)).map(|_| ScalarValue::Unit))
                .collect(),
        ),
    ];
    let inputs = [
        array(Scalar::Text, names.iter().map(|name| name.map(|name| ScalarValue::Text(name.into()))).collect()),
        array(Scalar::Float64, xs.iter().map(|x| float(*x)).collect()),
    ];
    for backend in [Backend::Native, Backend::Interpreter] {
        let executor = model.compile(&Options::default().backend(backend)).expect("compiled");
        let made = executor.session().evaluate(&inputs).expect("no fault");
        for (made, expected) in made.iter().zip(&expected) {
            assert!(made.same(expected), "{backend:?}: {made} for {expected}");
        }
        assert_eq!(made.len(), 3);
    }
}

#[test]
fn keys_of_other_types_are_refused() {
    let all = lines(&mut fastrand::Rng::with_seed(7), &[7], false);
    let refused = |output: &str| {
        let text = format!("input name: text, x: f64, times: [timestamp]; output y = {output}");
        let model = model(&all, &all, &text).expect("a model");
        model.compile(&Options::default()).expect_err("refused").message()
    };
    for (output, message) in [
        ("lookup(name, one)", "dict.lookup expects a key of 2 parts, found text"),
        (
            "lookup((name, name), one)",
            "dict.lookup looks up the last part of the key in ranges of f64, so it cannot be text",
        ),
        ("(name, true) in one", "in looks up the last part of the key in ranges of f64, so it cannot be bool"),
        (
            "lookup((name, 1, x), two)",
            "dict.lookup looks up the last part of the key in ranges of timestamp, so it cannot be f64",
        ),
        ("lookup((1, x), one)", "dict.lookup expects a key of type text, found i32"),
        (
            "lookup((name, 1, times), two)",
            "dict.lookup finds a struct, so it expects one key instead of an array of keys",
        ),
        (
            "lookup((name, x), one, {rate: 1.0})",
            "dict.lookup: the values are f64, but the default is {rate: weak_float}",
        ),
    ] {
        let found = refused(output);
        assert!(found.starts_with(message), "{output}: {found}");
    }
}

/// Keys of several values are found in a table with and without the line `numbers f64`.
#[test]
fn keys_of_several_parts_are_looked_for_under_every_rule_of_numbers() {
    let read = |name: &str, _: &str| -> io::Result<UsedFile> {
        Ok(UsedFile { name: name.to_owned(), text: "r,y,v\nZH,2025,1.5\nBE,2025,2.5\n".into() })
    };
    for rule in ["", "numbers f64\n"] {
        let text = format!(
            "{rule}table t: (text, i64) -> f64 = \"r.csv\"
            input r: text, y: i64
            output known = if (r, y) in t then 1 else 0
            output twice = if (r, y) in t and (\"BE\", y) in t then 2 * lookup((r, y), t, 0.0) else 0.0"
        );
        let sources = Sources::gather("m.cem", text, &Limits::default(), &read);
        let model = Model::parse_sources(sources, Registry::standard(), &Limits::default()).expect("a model");
        for backend in [Backend::Native, Backend::Interpreter] {
            let executor = model.compile(&Options::default().backend(backend)).expect("compiled");
            let mut session = executor.session();
            for (r, y, known, twice) in [("ZH", 2025_i64, 1, 3.0), ("ZH", 2026, 0, 0.0), ("BE", 2025, 1, 5.0)] {
                let made = session.evaluate(&[Value::from(r), Value::from(y)]).expect("no fault");
                assert_eq!(made, [Value::from(known), Value::from(twice)], "{rule}{r} {y}");
            }
        }
    }
}
