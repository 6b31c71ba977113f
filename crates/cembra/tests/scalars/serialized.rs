//! Tests rows of any type with `serde::Serialize`: which values an input accepts, which are rejected, and that fields
//! may have any order; and that repeated evaluations do not allocate.

use crate::counting;

use cembra::json::SerializeExecutor;
use cembra::{Model, Options, Output, QType};
use serde::Serialize;
use serde::ser::{Error as _, SerializeMap, Serializer};
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};

fn executor<O: Output>(source: &str) -> SerializeExecutor<O> {
    Model::parse(source).expect("a model").executor_for_rows(&Options::default()).expect("an executor")
}

fn refusal<R: Serialize + ?Sized>(source: &str, row: &R) -> String {
    let ignored = executor::<f64>(&format!("{source}; output y = 0.5")).run(row);
    assert_eq!(ignored.ok(), Some(0.5), "what no output needs is not looked at");
    let name = source.split([' ', ':']).nth(1).expect("an input");
    let model = Model::parse(&format!("{source}; output y = {name}")).expect("a model");
    let error = match model.program().inputs[0].qtype.clone().expect("declared") {
        QType::INT32 => executor::<i32>(&format!("{source}; {name}")).run(row).err(),
        QType::INT64 => executor::<i64>(&format!("{source}; {name}")).run(row).err(),
        QType::UINT64 => executor::<u64>(&format!("{source}; {name}")).run(row).err(),
        QType::FLOAT64 => executor::<f64>(&format!("{source}; {name}")).run(row).err(),
        QType::TEXT => executor::<String>(&format!("{source}; {name}")).run(row).err(),
        _ => executor::<i32>(&format!("{source}; {name}.x.0 ?? 7")).run(row).err(),
    };
    let error = error.expect("a refusal");
    assert_eq!(error.code(), "values");
    error.to_string()
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
enum Kind {
    VeryGood,
}

#[derive(Serialize)]
struct Wrapped<T>(T);

/// Bytes that are serialised as serde's bytes, not as a sequence.
struct Raw(&'static [u8]);

impl Serialize for Raw {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(self.0)
    }
}

/// A map that is serialised with its entries in the given order.
struct Entries<'e>(&'e [(&'e str, Value)]);

impl Serialize for Entries<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (key, value) in self.0 {
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
}

#[derive(Serialize)]
struct Inner {
    a: Option<i32>,
    b: (String, bool),
}

#[derive(Serialize)]
struct Everything {
    flag: bool,
    here: bool,
    small: i8,
    wide: u128,
    count: u64,
    single: f32,
    double: f64,
    whole: u16,
    no_number: &'static str,
    letter: char,
    kind: Kind,
    name: Wrapped<Option<&'static str>>,
    raw: Raw,
    coded: &'static str,
    day: &'static str,
    nothing: (),
    p: Inner,
    q: [u8; 2],
    #[serde(skip_serializing_if = "Option::is_none")]
    left_out: Option<i32>,
    #[serde(flatten)]
    others: BTreeMap<String, i64>,
    ignored: Vec<Vec<String>>,
}

const INPUTS: &str = "
    input flag: bool; input here: unit?; input small: i32; input wide: i64; input count: u64; input single: f32
    input double: f64; input whole: f64; input no_number: f32; input letter, kind: text; input name: text?
    input raw, coded: bytes; input day: date?; input nothing: f64?; input left_out: i32? = 9; input more: i64
    input p: {a: i32?, b: (text, bool)}; input q: (i32, f32)";

#[test]
fn each_value_goes_into_the_input_of_its_name() {
    #[derive(cembra::Output, Debug, PartialEq)]
    struct Found {
        flags: bool,
        there: cembra::Mask,
        wide: i64,
        count: u64,
        single: f32,
        double: f64,
        other: f32,
        text: String,
        same: bool,
        year: Option<i32>,
        nothing: Option<f64>,
        small: i32,
        q: f32,
    }
    let outputs = "
        output flags = if p.b.1 == true then false else flag
        output there = here
        output \"wide\" = wide - more * 2
        output \"count\" = count
        output \"single\" = single
        output \"double\" = double + whole
        output other = no_number
        output \"text\" = strings.join(name ?? \"nobody\", letter, kind, p.b.0)
        output same = if raw == coded then true else false
        output year = date.year(day)
        output \"nothing\" = nothing
        output \"small\" = small + left_out + (p.a ?? 100)
        output \"q\" = q.1 * to_float32(q.0)";
    let row = Everything {
        flag: true,
        here: true,
        small: -5,
        wide: 9_223_372_036_854_775_807,
        count: u64::MAX,
        single: 0.1,
        double: 2.5,
        whole: 7,
        no_number: "NaN",
        letter: 'é',
        kind: Kind::VeryGood,
        name: Wrapped(Some("Ann")),
        raw: Raw(&[255, 254]),
        coded: "//4=",
        day: "2026-11-20",
        nothing: (),
        p: Inner { a: None, b: ("t".into(), false) },
        q: [3, 2],
        left_out: None,
        others: BTreeMap::from([("more".to_owned(), 40)]),
        ignored: vec![vec!["x".into()]],
    };
    let mut run = executor::<Found>(&format!("{INPUTS}{outputs}"));
    let found = run.run(&row).unwrap();
    assert!(found.other.is_nan());
    let expected = Found {
        flags: true,
        there: cembra::Mask(true),
        wide: i64::MAX - 80,
        count: u64::MAX,
        single: 0.1,
        double: 9.5,
        other: 0.0,
        text: "Annévery-goodt".into(),
        same: true,
        year: Some(2026),
        nothing: None,
        small: 104,
        q: 6.0,
    };
    assert_eq!(Found { other: 0.0, ..found }, expected);
    // What comes out is what comes of the row as JSON, but for bytes, which JSON has no form for.
    let mut as_json = serde_json::to_value(&row).unwrap();
    as_json["raw"] = json!("//4=");
    let from_json = run.run(&as_json).unwrap();
    assert_eq!(Found { other: 0.0, ..from_json }, expected);
    // Nothing is left of the row before.
    let less = json!({"flag": false, "small": 1, "wide": 2, "count": 3, "single": 4, "double": 5, "whole": 6, "no_number": 7,
        "letter": "l", "kind": "k", "raw": "", "coded": "", "more": 1, "p": {"a": 8, "b": ["t", true]}, "q": [1, 1.5]});
    let found = run.run(&less).unwrap();
    let expected = Found {
        flags: false,
        there: cembra::Mask(false),
        wide: 0,
        count: 3,
        single: 4.0,
        double: 11.0,
        other: 7.0,
        text: "nobodylkt".into(),
        same: true,
        year: None,
        nothing: None,
        small: 18,
        q: 1.5,
    };
    assert_eq!(found, expected);
}

#[test]
fn what_does_not_fit_is_an_error_that_names_the_field() {
    assert_eq!(refusal("input x: i32", &json!({"x": 2_147_483_648_i64})), "input `x` is i32, found 2147483648");
    assert_eq!(refusal("input x: i32", &json!({"x": 1.5})), "input `x` is i32, found 1.5");
    assert_eq!(refusal("input x: i32", &json!({"x": "old"})), "input `x` is i32, found \"old\"");
    assert_eq!(refusal("input x: i64", &json!({"x": u64::MAX})), "input `x` is i64, found 18446744073709551615");
    assert_eq!(refusal("input x: u64", &HashMap::from([("x", -1)])), "input `x` is u64, found -1");
    assert_eq!(refusal("input x: f64", &json!({"x": [1]})), "input `x` is f64, found a sequence");
    assert_eq!(refusal("input x: f64", &json!({"x": {}})), "input `x` is f64, found a struct or map");
    assert_eq!(refusal("input x: text", &json!({"x": 7})), "input `x` is text, found 7");
    assert_eq!(refusal("input x: text", &json!({"y": 7})), "input `x` is text, but it is missing");
    assert_eq!(refusal("input x: text", &json!({"x": null})), "input `x` is text, but it is missing");
    let long = "y".repeat(10_000);
    assert!(refusal("input x: f64", &HashMap::from([("x", &long)])).len() < 100);
    let inner = json!({"p": {"x": ["a"]}});
    assert_eq!(refusal("input p: {x: (i32?, f64)}", &inner), "input `p.x` is (i32?, f64), found [\"a\"]");
    let inner = json!({"p": {"x": ["a", 1]}});
    assert_eq!(refusal("input p: {x: (i32?, f64)}", &inner), "input `p.x.0` is i32?, found \"a\"");

    let mut run = executor::<f64>("input x: f64; x");
    let mut message = |row: &dyn erased::Row| row.run(&mut run).unwrap_err().to_string();
    assert_eq!(message(&[1.0, 2.0]), "a row must be a struct or a map, found a sequence");
    assert_eq!(message(&1.0), "a row must be a struct or a map, found a number");
    assert_eq!(message(&BTreeMap::from([(1, 2.0)])), "the keys of a row must be texts");
    let twice = Entries(&[("x", json!(1)), ("y", json!(1)), ("x", json!(2))]);
    assert_eq!(message(&twice), "the row has the field `x` twice");
    assert_eq!(message(&Broken), "the row cannot be serialised: out of order");
    assert_eq!(run.run(&json!({"x": 2})).unwrap(), 2.0, "an executor goes on after an error");
    assert_eq!(run.run(&Some(Wrapped(json!({"x": 3})))).unwrap(), 3.0);

    let error = Model::parse("x + 1").unwrap().executor_for_rows::<f64>(&Options::default()).unwrap_err();
    assert_eq!(error.code(), "missing-input-type");
    let options = Options::default().input_type("x", QType::FLOAT64);
    let mut run = Model::parse("x + 1").unwrap().executor_for_rows::<f64>(&options).unwrap();
    assert_eq!(run.run(&json!({"x": 2})).unwrap(), 3.0);
}

struct Broken;

impl Serialize for Broken {
    fn serialize<S: Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
        Err(S::Error::custom("out of order"))
    }
}

/// A trait for rows, so that one list can have rows of several types.
mod erased {
    use cembra::Error;
    use cembra::json::SerializeExecutor;

    pub(super) trait Row {
        fn run(&self, executor: &mut SerializeExecutor<f64>) -> Result<f64, Error>;
    }

    impl<R: serde::Serialize> Row for R {
        fn run(&self, executor: &mut SerializeExecutor<f64>) -> Result<f64, Error> {
            executor.run(self)
        }
    }
}

#[test]
fn fields_may_come_in_any_order_and_shapes_may_change() {
    let mut run = executor::<f64>("input a, b: f64; input c: f64? = 100; a * 10 + b + c");
    let orders: [&[(&str, Value)]; 5] = [
        &[("a", json!(1)), ("b", json!(2)), ("c", json!(3))],
        &[("c", json!(3)), ("other", json!("x")), ("b", json!(2)), ("a", json!(1))],
        &[("b", json!(2)), ("a", json!(1))],
        &[("a", json!(1)), ("c", json!(3)), ("b", json!(2))],
        &[("aa", json!(9)), ("a", json!(1)), ("bb", json!(9)), ("b", json!(2))],
    ];
    for round in 0..3 {
        for (at, order) in orders.iter().enumerate() {
            let expected = if order.iter().any(|(name, _)| *name == "c") { 15.0 } else { 112.0 };
            assert_eq!(run.run(&Entries(order)).unwrap(), expected, "{round} {at}");
            assert_eq!(run.clone().run(&Entries(order)).unwrap(), expected, "{round} {at}");
        }
    }
    // More fields than are remembered by their places.
    let many: Vec<(String, Value)> = (0..10_000).map(|at| (format!("f{at}"), json!(at))).collect();
    let mut many: Vec<(&str, Value)> = many.iter().map(|(name, value)| (name.as_str(), value.clone())).collect();
    many.extend([("a", json!(1)), ("b", json!(2))]);
    assert_eq!(run.run(&Entries(&many)).unwrap(), 112.0);
    assert!(run.memory_bytes() < 1 << 20, "{}", run.memory_bytes());
}

#[test]
fn rows_allocate_nothing_after_the_first() {
    #[derive(Serialize, Clone)]
    struct Row {
        id: u64,
        name: String,
        x: Option<f32>,
        kind: Option<&'static str>,
    }
    let model = Model::parse(
        "input x: f64?; input name: text; input kind: text?
         output y = (x ?? 0.5) * core.to_float64(strings.length(name)) + (if kind == \"b\" then 1.0 else 0.0)",
    );
    let mut run = model.unwrap().executor_for_rows::<f64>(&Options::default()).unwrap();
    let rows = [
        Row { id: 1, name: "Ann".into(), x: Some(2.0), kind: Some("b") },
        Row { id: 2, name: "Roberta".into(), x: None, kind: None },
    ];
    let maps: Vec<Value> = rows.iter().map(|row| serde_json::to_value(row).unwrap()).collect();
    let mut sum = |sum: &mut f64| {
        rows.iter().for_each(|row| *sum += run.run(row).unwrap());
        maps.iter().for_each(|row| *sum += run.run(row).unwrap());
    };
    let mut warm = 0.0;
    (0..3).for_each(|_| sum(&mut warm));
    let (before, mut found) = (counting::so_far(), 0.0);
    (0..10).for_each(|_| sum(&mut found));
    assert_eq!((counting::so_far() - before, found), (0, 10.0 * 2.0 * (7.0 + 3.5)));
}
