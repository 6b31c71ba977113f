//! Reading JSON: declared and inferred types, absent keys, and the errors of values that do not fit.

use super::*;

#[test]
fn declared_types_give_exact_values() {
    let text = r#"{"f": 1.000000059604644775390626, "d": "-Infinity", "l": 9223372036854775807, "u": true,
        "t": "NaN", "p": [1, [null]], "other": {"a": []}}"#;
    let wanted = [
        ("f", Some(QType::FLOAT32)),
        ("d", Some(QType::FLOAT64)),
        ("l", Some(QType::INT64)),
        ("u", Some(QType::MASK)),
        ("t", Some(QType::TEXT)),
        ("p", Some(QType::tuple([QType::WEAK_FLOAT, QType::tuple([OPTIONAL_F64])]))),
        ("absent", Some(OPTIONAL_F64)),
    ];
    let expected = vec![
        Value::from(1.000_000_1_f32),
        Value::from(f64::NEG_INFINITY),
        Value::from(i64::MAX),
        Value::Present(ScalarValue::Unit),
        Value::from("NaN"),
        Value::Tuple(
            [Value::Scalar(ScalarValue::WeakFloat(1.0)), Value::Tuple([Value::from(None::<f64>)].into())].into(),
        ),
        Value::from(None::<f64>),
    ];
    assert_eq!(json(&format!("\u{feff}{text}\r\n"), &wanted), Ok(vec![expected.clone()]));
    assert_eq!(json(&format!("[{text}]"), &wanted), Ok(vec![expected]));
}

#[test]
fn undeclared_types_are_the_common_type_of_the_literals() {
    let text = r#"
        {"i": 1, "l": 1, "d": 1, "o": 1, "t": "a", "b": true, "n": null, "p": [1, "x"], "z": "NaN", "y": "NaN"}
        {"i": 5000, "l": 2147483648, "d": 1e0, "t": "NaN", "b": false, "p": [0.5, null], "z": 1, "y": "x"}
    "#;
    assert_eq!(
        inferred(Format::JsonLines, text, &["i", "l", "d", "o", "t", "b", "n", "p", "z"]),
        Ok(["i64", "i64", "f64", "i64?", "text", "bool", "f64?", "(f64, text?)", "f64"].map(str::to_owned).to_vec())
    );
    assert_eq!(inferred(Format::JsonLines, text, &["y"]), Ok(vec!["text".to_owned()]));
}

#[test]
fn undeclared_arrays_are_lists_of_the_elements_of_all_rows() {
    let text = r#"
        {"i": [1, 2, 3], "f": [1], "n": [], "m": [null, "NaN"], "t": ["a"], "e": [1, 2], "q": {"a": [1, 2]}, "r": [[1], ["x"]]}
        {"i": [4], "f": [1, 0.5], "n": [], "m": [1, 2, 3], "t": [], "e": [], "q": {"a": [3, null]}, "r": [[2], ["y"]]}
    "#;
    let names = ["i", "f", "n", "m", "t", "e", "q", "r"];
    let types = ["[i64?]", "[f64?]", "[f64?]", "[f64?]", "[text?]", "[i64?]", "{a: [i64?]}", "((i64,), (text,))"];
    assert_eq!(inferred(Format::JsonLines, text, &names), Ok(types.map(str::to_owned).to_vec()));
    let read = json(text, &[("i", None), ("f", None)]).expect("lists");
    let shown: Vec<String> = read.iter().flatten().map(ToString::to_string).collect();
    assert_eq!(shown, ["[1, 2, 3]", "[1]", "[4]", "[1, 0.5]"]);
    // In objects too. An array in an array is a tuple, also in an object there.
    let nested = r#"{"q": {"a": [], "b": [[1, 2]]}, "r": [[1, 2], {"a": [3]}]}"#;
    let types = inferred(Format::JsonLines, nested, &["q", "r"]);
    assert_eq!(types, Ok(vec!["{a: [f64?], b: ((i64, i64),)}".to_owned(), "((i64, i64), {a: [i64?]})".to_owned()]));
    let late = format!("{}{{\"q\": {{\"a\": [1, 2, 3]}}}}", "{\"q\": {\"a\": [1, 2]}}\n".repeat(1_000));
    let read = json(&late, &[("q", None)]).expect("lists");
    assert_eq!(read[1_000][0].to_string(), "{a: [1, 2, 3]}");
    // Rows after those read ahead may have lists of any length too, but no other elements.
    let late = |last: &str| json(&format!("{}{last}", "{\"x\": [1]}\n".repeat(1_000)), &[("x", None)]);
    assert_eq!(late("{\"x\": [1, 2, null]}").expect("a list").len(), 1_001);
    assert_eq!(
        late("{\"x\": [1, 0.5]}"),
        Err(
            "rows.json:1001: column `x.1`: expected i64?, found `0.5`; the type was inferred from the first rows: declare `input x: [f64?]`"
                .to_owned()
        )
    );
}

#[test]
fn literals_without_a_common_type_are_refused() {
    assert_eq!(
        json("{\"x\": 1}\n{\"x\": \"a\"}", &[("x", None)]),
        Err("rows.json:2: column `x`: expected i64, found `\"a\"`; the type was inferred from the first rows, and no type can hold both values"
            .to_owned())
    );
    assert_eq!(
        json("{\"x\": 18446744073709551615}", &[("x", None)]),
        Err("rows.json:1: column `x`: expected i64, found `18446744073709551615`; the type was inferred from the first rows: declare `input x: u64`"
            .to_owned())
    );
    assert_eq!(
        json("{\"x\": [1]}\n{\"x\": null}", &[("x", None)]),
        Err("rows.json: column `x`: a list is missing in some rows; write `[]`: a list cannot be missing, but may be empty"
            .to_owned())
    );
    for rows in ["{}\n{\"x\": {\"a\": 1, \"l\": [1]}}", "{\"x\": {\"y\": {\"l\": [1]}}}\n{\"x\": {}}"] {
        let said = "rows.json: column `x`: a struct with a list is missing in some rows, but must be present; write `{\"items\": []}`: a struct with a list cannot be missing, but the list may be empty";
        assert_eq!(json(rows, &[("x", None)]), Err(said.to_owned()), "{rows}");
    }
    assert_eq!(
        json("{\"x\": [1, \"a\"]}\n{\"x\": null}", &[("x", None)]),
        Err("rows.json: column `x`: a tuple is missing in some rows; write `[null, null]`: a tuple cannot be missing, but its fields may be"
            .to_owned())
    );
    assert_eq!(
        json("{\"x\": {\"a,b\": 1}}", &[("x", None)]),
        Err(
            "rows.json:1: column `x`: `a,b` cannot be the name of a field: a name is not empty and has no comma in it \
             and no white space around it"
                .to_owned()
        )
    );
}

#[test]
fn a_late_misfit_is_an_error_with_advice() {
    let text = |last: &str| format!("{}{last}", "{\"x\": 1}\n".repeat(1_000));
    let late = |found: &str, better: &str| {
        Err(format!(
            "rows.json:1001: column `x`: expected i64, found {found}; the type was inferred from the first rows: declare `input x: {better}`"
        ))
    };
    assert_eq!(json(&text("{\"x\": 3000000000}"), &[("x", None)]).expect("an i64").len(), 1_001);
    assert_eq!(json(&text("{\"x\": 1.0}"), &[("x", None)]), late("`1.0`", "f64"));
    assert_eq!(json(&text("{\"x\": null}"), &[("x", None)]), late("a missing value", "i64?"));
}

/// A hint to declare a type has the whole type, and with this type the row is read.
#[test]
fn late_misfits_advise_a_type_that_reads_the_row() {
    for (first, last, path, advised) in [
        ("[1]", "[1, 2.5]", "x.1", "[f64?]"),
        ("[{\"a\": 1}]", "[{\"a\": 1}, null]", "x.1", "[{a: i64}?]"),
        ("[{\"a\": 1}]", "[{\"a\": 1}, {\"a\": null}]", "x.1.a", "[{a: i64?}]"),
        ("[{\"a\": 1, \"b\": \"c\"}]", "[{\"a\": 1.5}]", "x.0.a", "[{a: f64, b: text?}]"),
        ("{\"a\": 1, \"odd name\": 2}", "{\"odd name\": null}", "x.a", "{a: i64?, \"odd name\": i64?}"),
        ("{\"a\": {\"b\": 1}}", "{\"a\": null}", "x.a", "{a: {b: i64}?}"),
        ("{\"a\": 1}", "null", "x", "{a: i64}?"),
        ("{\"l\": [1]}", "{\"l\": [1.5]}", "x.l.0", "{l: [f64?]}"),
        ("[1, \"a\"]", "[null, \"a\"]", "x.0", "(i64?, text)"),
        ("[1, \"a\"]", "null", "x", "(i64, text)?"),
    ] {
        let text = format!("{}{{\"x\": {last}}}", format!("{{\"x\": {first}}}\n").repeat(1_000));
        let error = json(&text, &[("x", None)]).expect_err("another type");
        let advice = format!("; the type was inferred from the first rows: declare `input x: {advised}`");
        assert!(error.starts_with(&format!("rows.json:1001: column `{path}`: expected ")), "{error}");
        assert!(error.ends_with(&advice), "{error}");
        let declared = cembra::values::parse_type(advised).expect("a type");
        assert_eq!(json(&text, &[("x", Some(declared))]).map(|rows| rows.len()), Ok(1_001), "{advised}");
    }
    // No type is a list that may be missing.
    for first in ["[1]", "[{\"a\": 1}]"] {
        let text = format!("{}{{\"x\": null}}", format!("{{\"x\": {first}}}\n").repeat(1_000));
        let error = json(&text, &[("x", None)]).expect_err("no list");
        assert!(error.ends_with("found `null`; write `[]`, or declare the input with the default `= []`: a list cannot be missing, but may be empty"), "{error}");
    }
    // A long type is not repeated.
    let fields: Vec<String> = (0..100).map(|at| format!("\"field{at}\": 1")).collect();
    let first = format!("{{\"x\": {{{}}}}}\n", fields.join(", "));
    let text = first.repeat(1_000) + &first.replace("\"field7\": 1", "\"field7\": 1.5");
    let error = json(&text, &[("x", None)]).expect_err("another type");
    let advice = "declare `input x` with its type in full, which has `f64` for `x.field7`";
    assert!(error.ends_with(advice), "{error}");
}

#[test]
fn columns_that_are_carried_get_advice_for_the_command_line() {
    for (first, last, advised) in [
        ("{\"a\": 1, \"b\": 2}", "{\"a\": null, \"b\": 2}", "--types 'x={a: i64?, b: i64}'"),
        ("[1]", "[1.5]", "--types 'x=[f64?]'"),
        ("1", "1.5", "--types x=f64?"),
    ] {
        let text = format!("{}{{\"x\": {last}}}", format!("{{\"x\": {first}}}\n").repeat(1_000));
        let keep = Request { keep: Keep::These(vec!["x".to_owned()]), ..Request::default() };
        let table = open(Format::JsonLines, None, text).expect("JSON").bind(&keep).expect("a column");
        let error = rows(table).expect_err("another type");
        let advice = format!("; use `{advised}` to give the column this type");
        assert!(error.ends_with(&advice), "{error}");
    }
}

#[test]
fn utf16_without_a_mark_is_named() {
    let little = |text: &str| text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
    let big = |text: &str| text.encode_utf16().flat_map(u16::to_be_bytes).collect::<Vec<u8>>();
    for text in ["[{\"x\": 1}]", "{\"x\": 1}\n{\"x\": 2}\n", "{\"x\": \"é\"}"] {
        for bytes in [little(text), big(text)] {
            let read = open(Format::JsonLines, None, bytes).and_then(|data| bind(data, &[("x", None)])).and_then(rows);
            let error = read.expect_err("no UTF-8");
            let said =
                "has the byte 0x00: this is UTF-16 without a byte order mark, or not a text; save the file as UTF-8";
            assert!(error.starts_with("rows.json:1: ") && error.ends_with(said), "{error}");
        }
    }
}

#[test]
fn misfits_of_declared_types_are_named() {
    let cases = [
        ("{\"x\": 1.0}", QType::INT32, "column `x`: expected i32, found `1.0`"),
        ("{\"x\": \"1\"}", QType::FLOAT64, "column `x`: expected f64, found `\"1\"`"),
        ("{\"x\": 1.5}", QType::TEXT, "column `x`: expected text, found `1.5`"),
        (
            "{\"x\": 1}",
            QType::MASK,
            "column `x`: expected unit?, found `1`; write `true` for a mask that holds, or leave the field missing",
        ),
        ("{\"x\": null}", QType::FLOAT32, "column `x`: expected f32, found a missing value; declare `input x: f32?`"),
        (
            "{\"X\": 1}",
            QType::FLOAT32,
            "no column `x`; did you mean `X`?; if the value may be missing, declare `input x: f32?`",
        ),
        ("{\"x\": [1]}", QType::tuple([QType::INT32, QType::INT32]), "column `x`: expected (i32, i32), found `[1]`"),
        (
            "{\"x\": [1, null]}",
            QType::tuple([QType::INT32, QType::INT32]),
            "column `x.1`: expected i32, found a missing value; declare `x.1` as `i32?` in the tuple type of `x`",
        ),
    ];
    for (text, qtype, expected) in cases {
        assert_eq!(json(&format!("\n{text}"), &[("x", Some(qtype))]), Err(format!("rows.json:2: {expected}")));
    }
}

#[test]
fn absent_keys_are_named() {
    let text = "{\"b\": 1, \"length\": 2}\n{\"a\": 1, \"b\": 3}\n";
    let dataset = open(Format::Json, None, text).expect("it is JSON");
    assert_eq!(
        rows(bind(dataset, &[("b", None)]).expect("it is there")),
        Ok(vec![vec![Value::from(1_i64)], vec![Value::from(3_i64)]])
    );
    assert_eq!(
        json(text, &[("lenght", None)]),
        Err("rows.json: no column `lenght`; did you mean `length`?".to_owned())
    );
    assert_eq!(json("", &[("x", None)]), Ok(vec![]));
}

#[test]
fn rows_before_broken_data_are_told() {
    let text = "{\"x\": 1}\nbroken";
    let wanted = [("x", Some(QType::INT32))];
    let mut table = bind(open(Format::JsonLines, None, text).expect("open"), &wanted).expect("bound");
    let decoded = table.source.next().expect("a row").expect("a row").decode();
    assert_eq!(values(&decoded.batch, &[QType::INT32]), [[Value::from(1)]]);
    assert_eq!(decoded.batch.places.at(0), 1);
    let error = decoded.error.expect("the second line is no JSON");
    assert_eq!((error.line(), error.message().as_str()), (Some(2), "expected an object, found `b`"));
}

/// A row with an error keeps its other values, also those that are copied to the results.
#[test]
fn rows_that_cannot_be_read_keep_what_can_be() {
    let tolerant = ReadOptions { tolerant: true, ..options(Format::JsonLines, &[]) };
    let bad = [
        "{\"id\": 2, \"x\": \"a\", \"s\": \"two\"}\n",
        "{\"id\": 3, \"x\": 1, \"x\": 2}\n",
        "{\"id\": 4, \"x\": 01}\n",
        "{\"id\": 5, \"s\": \"five\"}\n",
        "{\"id\": 6, \"x\": [1]}\n",
    ];
    // The bad rows are among the first, which are read to find types, or after them.
    for before in [1, 1_500] {
        let good = "{\"id\": 1, \"x\": 1, \"s\": \"one\"}\n".repeat(before);
        let data = open_with(&tolerant, format!("{good}{}{{\"id\": 7, \"x\": 7}}\n", bad.concat())).expect("JSON");
        let wanted = RequestedLeaf { name: "x".to_owned(), qtype: Some(QType::INT64), is_empty_by_default: false };
        let keep = Keep::These(vec!["id".to_owned(), "s".to_owned()]);
        let mut table = data.bind(&Request { leaves: vec![wanted], keep, ..Request::default() }).expect("columns");
        let decoded = table.source.next().expect("rows").expect("a piece").decode();
        assert_eq!(decoded.error.map(|error| error.to_string()), None);
        let lines: Vec<(usize, Option<u64>)> =
            decoded.failures.iter().map(|(row, error)| (row + 1 - before, error.line())).collect();
        let expected: Vec<(usize, Option<u64>)> = (1..=5).map(|at| (at, Some((at + before) as u64))).collect();
        assert_eq!(lines, expected);
        let types = [QType::Optional(Scalar::Int64), QType::Optional(Scalar::Int64), QType::Optional(Scalar::Text)];
        let found = values(&decoded.batch.slice(before, 6), &types);
        let row = |x: Option<i64>, id: Option<i64>, s: Option<&str>| {
            vec![
                Value::from(x),
                Value::from(id),
                s.map_or(Value::Missing(Scalar::Text), |s| Value::Present(ScalarValue::Text(s.into()))),
            ]
        };
        assert_eq!(
            found,
            [
                row(None, Some(2), Some("two")),
                // This row is not JSON.
                row(None, None, None),
                row(None, None, None),
                row(None, Some(5), Some("five")),
                row(None, Some(6), None),
                row(Some(7), Some(7), None),
            ]
        );
    }
    let strict = json("{\"x\": 1}\n{\"x\": 01}\n", &[("x", Some(QType::INT64))]);
    assert_eq!(strict, Err("rows.json:2: not JSON: invalid number".to_owned()));
}
