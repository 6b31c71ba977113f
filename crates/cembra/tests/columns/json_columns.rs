//! Tests rows of JSON that are read into columns: one pass over a row's text gives the values that reading value by
//! value gives, and a rejected row leaves the columns unchanged.

use cembra::columns::ValueColumn;
use cembra::doors::JsonText;
use cembra::json::{JsonColumns, JsonRow};
use cembra::values::parse_type;
use cembra::{Limits, Model, Options, QType, RunOptions, Scalar, Value};

const TYPES: [(&str, &str); 18] = [
    ("id", "i64"),
    ("small", "i32?"),
    ("huge", "u64?"),
    ("x", "f64"),
    ("half", "f32?"),
    ("name", "text"),
    ("flag", "bool?"),
    ("mask", "unit?"),
    ("held", "unit"),
    ("day", "date?"),
    ("numbers", "[i32]"),
    ("ratios", "[f64]"),
    ("pair", "(text, f64)"),
    ("halves", "[f32]"),
    ("home", "{zip: i32, town: text?, at: (f64, f64?)}?"),
    ("items", "[{price: f64, kind: text?, count: i64}]"),
    ("rates", "dict[text, f64]"),
    ("names", "dict[text, text]"),
];

fn types() -> Vec<(&'static str, QType)> {
    TYPES.iter().map(|(name, qtype)| (*name, parse_type(qtype).expect("a type").as_input())).collect()
}

fn columns(types: &[(&str, QType)]) -> JsonColumns {
    JsonColumns::of_types(types.iter().map(|(name, qtype)| (*name, qtype))).expect("data")
}

/// Returns the values of a row, read value by value; `None` if one of them does not fit its type.
fn values(types: &[(&str, QType)], text: &str) -> Option<Vec<Value>> {
    let row = JsonRow::parse(text).ok()?;
    types.iter().map(|(name, qtype)| row.get(name).unwrap_or(JsonText::NULL).value(qtype).ok()).collect()
}

/// Asserts that two columns have the same arrays and the same list boundaries.
fn assert_same_columns(a: &ValueColumn, b: &ValueColumn, context: &str) {
    match (a, b) {
        (ValueColumn::Scalars(a), ValueColumn::Scalars(b)) => {
            assert!(a.array().same(b.array()), "{context}: {} {}", a.array(), b.array());
        }
        (ValueColumn::Tuple(a), ValueColumn::Tuple(b)) => {
            assert_eq!(a.len(), b.len());
            a.iter().zip(b).for_each(|(a, b)| assert_same_columns(a, b, context));
        }
        (ValueColumn::Optional { there: a, of: of_a }, ValueColumn::Optional { there: b, of: of_b }) => {
            assert!(a.array().same(b.array()), "{context}");
            assert_same_columns(of_a, of_b, context);
        }
        (
            ValueColumn::Lists { points: a, there: there_a, elements: of_a },
            ValueColumn::Lists { points: b, there: there_b, elements: of_b },
        ) => {
            assert_eq!(a, b, "{context}");
            assert!(there_a.array().same(there_b.array()), "{context}");
            assert_same_columns(of_a, of_b, context);
        }
        _ => panic!("{context}: columns of two forms"),
    }
}

/// Appends random JSON for the type `qtype` to `out`. It is mostly valid; sometimes it has a wrong type or form.
fn write(out: &mut String, qtype: &QType, random: &mut fastrand::Rng) {
    let one = |random: &mut fastrand::Rng, of: &[&'static str]| of[random.usize(..of.len())];
    let odd =
        ["null", "7", "-0", "1.5", "\"x\"", "[]", "{}", "true", "[1, null]", "18446744073709551616", "\"\\ud800\""];
    if random.u32(..250) == 0 {
        out.push_str(one(random, &odd));
        return;
    }
    let space = one(random, &["", "", "", " ", "\n\t"]);
    match qtype {
        QType::Optional(_) if random.u32(..4) == 0 => out.push_str("null"),
        QType::Scalar(scalar) | QType::Optional(scalar) => match scalar {
            Scalar::Int32 => out.push_str(&format!("{}", random.i32(-5..100))),
            Scalar::Int64 => out.push_str(&format!("{}", random.i64(..))),
            Scalar::UInt64 => out.push_str(&format!("{}", random.u64(..))),
            Scalar::Float64 | Scalar::Float32 => {
                let odd = ["\"NaN\"", "-0.0", "1e400", "1E-7", "0.1000000000000000055511151231257827", "3", "-7e2"];
                match random.u32(..3) {
                    0 => out.push_str(one(random, &odd)),
                    _ => out.push_str(&format!("{:?}", random.f64() * 1000.0)),
                }
            }
            Scalar::Text => out.push_str(one(
                random,
                &[
                    "\"\"",
                    "\"a\"",
                    "\"\\\"7\"",
                    "\"\\u00e9\\n\"",
                    "\"exactly twelve\"",
                    "\"as long as a text in a buffer\"",
                    "\"é\"",
                ],
            )),
            Scalar::Boolean => out.push_str(one(random, &["true", "false"])),
            Scalar::Unit if random.bool() => out.push_str("true"),
            Scalar::Unit => out.push_str(one(random, &["true", "false", "\"present\"", "\"missing\""])),
            _ => out.push_str(one(random, &["\"2026-11-26\"", "\"1969-12-31\"", "\"2026-02-29\""])),
        },
        QType::Array(_, scalar) => list(out, &QType::Optional(*scalar), space, random),
        _ if let Some(of) = qtype.as_optional_struct() => {
            if random.u32(..3) == 0 {
                out.push_str("null");
            } else {
                write(out, of, random);
            }
        }
        _ if let Some((_, value)) = qtype.as_map() => {
            out.push('{');
            for at in 0..random.usize(..4) * random.usize(..4) {
                let key = if random.u32(..200) == 0 { 0 } else { at };
                out.push_str(&format!("{}\"k{key}\":{space}", if at > 0 { "," } else { "" }));
                write(out, &QType::Optional(value), random);
            }
            out.push('}');
        }
        _ if let Some(element) = qtype.element() => list(out, element, space, random),
        QType::Tuple(fields) => {
            let named = fields.names().is_some();
            out.push(if named { '{' } else { '[' });
            let mut order: Vec<usize> = (0..fields.len()).collect();
            if named && random.u32(..4) == 0 {
                random.shuffle(&mut order);
                if random.bool() {
                    order.pop();
                }
                if random.u32(..4) == 0 {
                    order.extend(order.first().copied());
                }
            }
            for (at, field) in order.into_iter().enumerate() {
                out.push_str(if at > 0 { "," } else { space });
                if named {
                    out.push_str(&format!("\"{}\":{space}", fields.label(field)));
                }
                write(out, &fields[field], random);
            }
            if named && random.u32(..8) == 0 && fields.len() > 1 {
                out.push_str(",\"more\":[{\"deep\":[1, \"]}\"]}]");
            }
            out.push(if named { '}' } else { ']' });
        }
        other => panic!("{other}"),
    }
}

fn list(out: &mut String, element: &QType, space: &str, random: &mut fastrand::Rng) {
    out.push('[');
    for at in 0..random.usize(..4) {
        out.push_str(if at > 0 { "," } else { space });
        write(out, element, random);
    }
    out.push(']');
}

fn row(types: &[(&str, QType)], random: &mut fastrand::Rng) -> String {
    let mut out = "{".to_owned();
    let mut order: Vec<usize> = (0..types.len()).collect();
    let is_odd = random.u32(..3) == 0;
    if is_odd {
        random.shuffle(&mut order);
        order.truncate(random.usize(order.len() - 2..=order.len()));
        if random.u32(..5) == 0 {
            order.extend(order.first().copied());
        }
    }
    for (at, of) in order.into_iter().enumerate() {
        out.push_str(if at > 0 { "," } else { "" });
        let (name, qtype) = &types[of];
        match random.u32(..60) {
            0 => out.push_str(&format!("\"\\u{:04x}{}\":", u32::from(name.as_bytes()[0]), &name[1..])),
            _ => out.push_str(&format!("\"{name}\":")),
        }
        write(&mut out, qtype, random);
    }
    if is_odd && random.bool() {
        out.push_str(",\"other\":{\"x\":1},\"others\":\"\\u0000\"");
        out.push_str(if random.u32(..4) == 0 { ",\"other\":2" } else { "" });
    }
    out.push_str(if random.u32(..50) == 0 { "} 1" } else { "}" });
    if random.u32(..50) == 0 {
        let at = random.usize(..out.len());
        if out.is_char_boundary(at) {
            out.truncate(at);
        }
    }
    out
}

#[test]
fn one_pass_takes_what_value_by_value_takes() {
    one_pass_takes(200);
}

#[test]
#[ignore = "takes 5 s without optimisation: `.ci/release` runs it"]
fn one_pass_takes_what_value_by_value_takes_in_many_rounds() {
    one_pass_takes(600);
}

/// Compares reading in one pass with reading value by value, on random texts: `rounds` rounds of fewer than 30 rows.
fn one_pass_takes(rounds: usize) {
    let types = types();
    let mut random = fastrand::Rng::with_seed(34);
    let (mut taken, mut seldom, mut refused) = (0, 0, 0);
    for _ in 0..rounds {
        let (mut pushed, mut passed, mut expected) = (columns(&types), columns(&types), columns(&types));
        let mut texts = String::new();
        for _ in 0..random.usize(1..30) {
            let text = row(&types, &mut random);
            texts = format!("{texts}\n{text}");
            let values = values(&types, &text);
            assert_eq!(pushed.push(&text).is_ok(), values.is_some(), "{text}: {:?}", columns(&types).push(&text));
            let is_passed = passed.try_push(&text);
            match (&values, is_passed) {
                (Some(values), true) => {
                    taken += 1;
                    expected.push_values(values);
                }
                (Some(values), false) => {
                    seldom += 1;
                    passed.push_values(values);
                    expected.push_values(values);
                }
                (None, false) => refused += 1,
                (None, true) => panic!("one pass takes {text}"),
            }
            assert_eq!([pushed.rows(), passed.rows()], [expected.rows(); 2]);
        }
        let expected = expected.into_columns().expect("columns");
        for found in [pushed, passed] {
            let found = found.into_columns().expect("columns");
            assert_eq!(found.len(), expected.len());
            found.iter().zip(&expected).for_each(|(found, expected)| assert_same_columns(found, expected, &texts));
        }
    }
    // Rows of a form that is seldom are few, and there are rows of each kind.
    assert!(2 * taken > 3 * rounds && 7 * seldom > rounds && 4 * refused > 3 * rounds, "{taken} {seldom} {refused}");
}

#[test]
fn rows_of_common_forms_take_one_pass() {
    let types = types();
    let mut columns = columns(&types);
    let rows = [
        "{\"id\":7,\"small\":null,\"huge\":1,\"x\":1.5,\"half\":2,\"name\":\"a\\n\",\"flag\":true,\"mask\":true,\"held\":true,\"day\":\"2026-11-26\",\
         \"numbers\":[1,null],\"ratios\":[0.1,null,\"NaN\" , 2],\"halves\":[],\"pair\":[\"a\",0.1],\"home\":{\"zip\":1,\"town\":\"b\",\"at\":[1,null]},\"items\":[{\"price\":1,\"kind\":null,\"count\":2}],\"rates\":{\"a\":1,\"b\":null},\"names\":{}}",
        "{ \"items\" : [ { \"count\" : 2 , \"price\" : 0.1, \"more\": [] } ], \"home\": null, \"numbers\": [], \"halves\": [ 1 , 2.5 ], \"ratios\": [], \"pair\": [ \"\" , 7 ], \"name\": \"é\", \
         \"x\": 3, \"held\": \"present\", \"id\": -7, \"names\": { \"c\" : \"d\" }, \"rates\": {}, \"other\": { \"x\": [ 1 ] } }",
    ];
    // An input that is absent may be so in one row after the other.
    for row in [rows[0], rows[1], rows[1], rows[1], rows[0]] {
        assert!(columns.try_push(row), "{row}");
    }
    assert!(!columns.try_push("{\"id\": 7}") && columns.rows() == 5);
    let made = columns.into_columns().unwrap();
    assert!(made.iter().all(|column| column.rows() == Some(5)));
    let ValueColumn::Lists { points, elements, .. } = &made[15] else { panic!("lists") };
    let ValueColumn::Tuple(fields) = &**elements else { panic!("structs") };
    let ValueColumn::Scalars(prices) = &fields[0] else { panic!("numbers") };
    assert_eq!((&points[..], prices.array().to_string().as_str()), (&[0, 1, 2, 3, 4, 5][..], "[1, 0.1, 0.1, 0.1, 1]"));
}

#[test]
fn a_batch_has_the_results_of_rows() {
    // With arrays, without them, and with a dictionary.
    let models = [
        "input who: {name: text, age: i32?}?; input items: [{price: f64, count: i64}]; input at: {x: f64, y: f64?}
         input plate: text? = \"none\"
         output total = sum(items.price) + at.x
         output old = who.age > 65
         output sign = plate",
        "input who: {name: text, age: i32?}?; input at: {x: f64, y: f64?}; input plate: text? = \"none\"
         output sum = at.x + (at.y ?? 0.5)
         output old = who.age > 65
         output name = who.name ?? plate",
        "input rates: dict[text, f64]; input items: [{price: f64, count: i64}]; input plate: text? = \"CH\"
         output total = sum(items.price) * (lookup(plate, rates) ?? 1.0)",
    ];
    let mut random = fastrand::Rng::with_seed(7);
    for text in models {
        let model = Model::parse(text).unwrap();
        let batch = model.batch(&Options::default()).unwrap();
        let mut session = model.compile(&Options::default()).unwrap().session();
        let mut columns = JsonColumns::new(&batch).unwrap();
        let mut expected = Vec::new();
        for round in 0..3 {
            columns.truncate(0);
            expected.clear();
            for at in 0..100 * round {
                let items: Vec<String> = (0..random.usize(..5))
                    .map(|count| format!("{{\"price\": {}, \"count\": {count}}}", random.f64()))
                    .collect();
                let who = ["null", "{\"name\": \"Ann of a very long name\"}", "{\"age\": 66, \"name\": \"Bob\"}"];
                let plate = ["", ", \"plate\": \"DE\"", ", \"plate\": null"];
                let text = format!(
                    "{{\"who\": {}, \"items\": [{}], \"at\": {{\"x\": {at}, \"y\": null}}, \"rates\": {{\"CH\": 1.08, \"DE\": {at}}}{}}}",
                    random.choice(who).unwrap(),
                    items.join(","),
                    random.choice(plate).unwrap()
                );
                columns.push(&text).unwrap();
                // A row that is refused leaves nothing, though all of it was read.
                assert!(columns.push(&format!("{text}]")).is_err());
                let row = JsonRow::parse(text).unwrap();
                let inputs = batch
                    .inputs()
                    .iter()
                    .map(|input| row.get(&input.name).unwrap_or(JsonText::NULL).value(&input.qtype).unwrap());
                expected.push(session.evaluate(&inputs.collect::<Vec<_>>()).unwrap());
            }
            let rows = columns.rows();
            let made =
                columns.with(|columns| batch.run_with(&RunOptions::new().rows(rows).threads(2), columns)).unwrap();
            for (row, expected) in expected.iter().enumerate() {
                let found: Vec<Value> = made.columns.iter().map(|column| column.value(row).unwrap()).collect();
                assert_eq!(found, *expected, "row {row} of {text}");
            }
        }
    }
}

#[test]
fn what_is_wrong_with_a_row_is_said() {
    let model = Model::parse("input x: f64; input items: [{n: i64}]; sum(items.n) + x").unwrap();
    let mut columns = JsonColumns::new(&model.batch(&Options::default()).unwrap()).unwrap();
    let cases = [
        ("{\"x\": 1, \"items\": [{\"n\": 0.5}]}", "input `items.0.n` is i64, found 0.5"),
        ("{\"x\": 1, \"items\": [{}]}", "input `items.0.n` is i64, but it is missing"),
        ("{\"x\": \"a\", \"items\": []}", "input `x` is f64, found \"a\""),
        ("{\"items\": []}", "input `x` is f64, but it is missing"),
        ("{\"x\": 1}", "input `items` is [{n: i64}], but it is missing"),
        ("{\"x\": 1, \"items\": null}", "input `items` is [{n: i64}], but it is missing"),
        ("{\"x\": 1, \"x\": 1, \"items\": []}", "not JSON: the object has the key `x` twice, line 1"),
        ("{\"x\": 1, \"items\": [}", "not JSON: expected value, line 1"),
        ("[1]", "not JSON: an object was expected, line 1"),
    ];
    for (text, expected) in cases {
        assert_eq!(columns.push(text).unwrap_err().to_string(), expected, "{text}");
    }
    assert_eq!(columns.rows(), 0);
}

#[test]
fn a_name_that_is_there_twice_is_read_twice() {
    let types = [("x", QType::Optional(Scalar::Int32)), ("y", QType::INT64), ("x", QType::Optional(Scalar::Float64))];
    let mut columns = columns(&types);
    assert!(!columns.try_push("{\"y\": 1, \"x\": 5}"));
    columns.push("{\"y\": 1, \"x\": 5}").unwrap();
    let made = columns.into_columns().unwrap();
    let shown = made.iter().map(|column| match column {
        ValueColumn::Scalars(array) => array.array().to_string(),
        other => panic!("{other:?}"),
    });
    assert!(shown.eq(["[5]", "[1]", "[5]"]));
}

#[test]
fn a_row_without_values_is_refused_by_a_batch() {
    for text in ["input items: [{n: i64}]; sum(items.n)", "input x: f64; x + 1.0", "input xs: [f64]; sum(xs)"] {
        let batch = Model::parse(text).unwrap().batch(&Options::default()).unwrap();
        let mut columns = JsonColumns::new(&batch).unwrap();
        columns.push_missing();
        let run = columns.with(|columns| batch.run_with(&RunOptions::new().rows(1), columns));
        assert!(run.is_err(), "{text}: {run:?}");
    }
    // Optional structs may be missing, with arrays beside them and without.
    for text in ["input p: {n: i64}?; p.n ?? 7", "input p: {n: i64}?; input xs: [i64]; (p.n ?? 7) + sum(xs)"] {
        let batch = Model::parse(text).unwrap().batch(&Options::default()).unwrap();
        let mut columns = JsonColumns::new(&batch).unwrap();
        columns.push("{\"p\": null, \"xs\": []}").unwrap();
        let made = columns.with(|columns| batch.run_with(&RunOptions::new().rows(1), columns)).unwrap();
        assert_eq!(made.columns[0].value(0), Some(7_i64.into()), "{text}");
        columns.push_missing();
        let made = columns.with(|columns| batch.run_with(&RunOptions::new().rows(2), columns));
        assert_eq!(made.is_ok(), !text.contains("xs"), "{text}");
    }
}

/// A short JSON text may become a large row, because list elements take memory for fields that the text omits. These
/// bytes are counted before the row is read.
#[test]
fn rows_become_no_more_bytes_than_arrays_may_have() {
    let fields: Vec<String> = (0..500).map(|at| format!("x{at}: i64?")).collect();
    let text = format!("input l: [{{{}}}]\noutput n = array.size(l)", fields.join(", "));
    let limits = Limits::default().array_bytes(10_000_000);
    let batch = Model::parse(&text).unwrap().batch(&Options::default().limits(limits)).unwrap();
    let mut columns = JsonColumns::new(&batch).unwrap();
    let row = |elements: usize| format!("{{\"l\": [{}]}}", vec!["{}"; elements].join(","));
    // An element has 500 fields of nine bytes.
    columns.push(&row(100)).unwrap();
    let error = columns.push(&row(100_000)).unwrap_err();
    let said = "the JSON rows exceed 10000000 bytes, the limit `array_bytes`";
    assert_eq!((error.code(), error.message().starts_with(said)), ("limit", true), "{error}");
    assert!(!columns.try_push(&row(100_000)));
    assert_eq!(columns.rows(), 1);
    // All rows count together.
    let pushed = (0..1_000).take_while(|_| columns.push(&row(100)).is_ok()).count();
    assert_eq!((pushed, columns.rows()), (21, 22));
    let made = columns.with(|inputs| batch.run_with(&RunOptions::new().rows(22), inputs)).unwrap();
    assert_eq!(made.columns[0].value(21), Some(Value::from(100_i64)));
    columns.truncate(0);
    assert!(columns.push(&row(100)).is_ok());
}

#[test]
fn dictionaries_are_read_in_one_pass() {
    let batch = crate::lists::batch(
        "input rates: dict[text, f64]; input names: dict[text, text]; input k: text
         output r = lookup(k, rates, 9.0); output n = dict.get(names, k)",
    );
    let mut columns = JsonColumns::new(&batch).unwrap();
    assert!(columns.try_push(r#"{"rates": {"a": 1, "b": null, "": 0.5}, "names": {}, "k": "a"}"#));
    assert!(columns.try_push(r#"{"rates": {}, "names": {"a": "x"}, "k": "a"}"#));
    // Many keys, of which one is there twice at the end.
    let many: Vec<String> = (0..100).map(|at| format!("\"{at}\": {at}.5")).collect();
    let row = |last: &str| format!("{{\"rates\": {{{}, {last}}}, \"names\": {{}}, \"k\": \"77\"}}", many.join(", "));
    assert!(columns.try_push(&row("\"b\": 1")));
    for wrong in [row("\"99\": 1"), row("\"b\": \"1\""), row("\"b\": 1, \"b\": 2")] {
        assert!(!columns.try_push(&wrong) && columns.push(&wrong).is_err(), "{wrong}");
    }
    let twice = columns.push(&row("\"5\": 1")).unwrap_err().to_string();
    assert!(twice.contains("twice"), "{twice}");
    // A key with an escape is read value by value.
    let escaped = r#"{"rates": {"\u0061": 4}, "names": {}, "k": "a"}"#;
    assert!(!columns.try_push(escaped) && columns.push(escaped).is_ok());
    let made = columns.with(|columns| batch.run_with(&RunOptions::new(), columns)).unwrap();
    assert_eq!((made.row_by_row, made.columns[0].rows()), (0, 4));
    assert_eq!(made.columns[0].values::<f64>(), Some(&[1.0, 9.0, 77.5, 4.0][..]));
    assert_eq!(made.columns[1].presence(), Some(&[0b0010][..]));
}
