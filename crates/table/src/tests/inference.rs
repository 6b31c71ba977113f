//! A type inferred from the first rows applies to all rows: a later value that this type cannot hold without loss is an error.

use super::*;

/// A thousand lines `first`, then one line `last`.
fn late(first: &str, last: &str) -> String {
    format!("{}{last}\n", format!("{first}\n").repeat(1_000))
}

#[test]
fn numbers_of_csv_lose_no_digits_in_any_row() {
    let read = |first: &str, last: &str| csv(format!("x\n{}", late(first, last)), &[("x", None)]);
    for (first, of, last, better) in [
        ("12", "i64?", "01234", "text?"),
        ("12", "i64?", "\"007\"", "text?"),
        ("12", "i64?", "+417", "text?"),
        ("12", "i64?", "-0", "text?"),
        ("12", "i64?", "2.5", "f64?"),
        ("12", "i64?", "1e400", "text?"),
        ("12", "i64?", "18446744073709551615", "u64?"),
        ("12", "i64?", "18446744073709551616", "text?"),
        ("12", "i64?", "1234567890123456789012", "text?"),
        ("-12", "i64?", "18446744073709551615", "text?"),
        ("1.5", "f64?", "007", "text?"),
        ("1.5", "f64?", "-007", "text?"),
        ("1.5", "f64?", "00.5", "text?"),
        ("1.5", "f64?", "+417", "text?"),
        ("1.5", "f64?", "1e400", "text?"),
        ("1.5", "f64?", "18446744073709551615", "text?"),
        ("1.5", "f64?", "9007199254740993", "text?"),
        ("1.5", "f64?", "-12345678901234567890123", "text?"),
        ("1.5", "f64?", "-1E+400", "text?"),
        ("2026-01-01", "date?", "20260101", "text?"),
        ("2026-01-01", "date?", "-2026-01-01", "text?"),
        ("2026-01-01", "date?", "+12026-01-01", "text?"),
        ("2026-01-01T00:00:00Z", "timestamp?", "1767225600", "text?"),
    ] {
        let found = last.trim_matches('"');
        let told = read(first, last).expect_err(last);
        let expected = format!(
            "rows.csv:1002: column `x`: expected {of}, found `{found}`; the type was inferred from the first rows: declare `input x: {better}`"
        );
        assert!(told.starts_with(&expected), "{first}, {last}: {told}");
        // The same value among the first rows decides the type.
        let early = format!("x\n{first}\n{last}\n");
        let inferred = inferred(Format::Csv, &early, &["x"]).expect(last);
        assert_eq!(inferred, [if better == "f64?" { "f64?" } else { "text?" }], "{first}, {last}");
    }
    for (first, last, value) in [
        ("1.5", "0", 0.0),
        ("1.5", "-0", -0.0),
        ("1.5", "0.5", 0.5),
        ("1.5", "-0.5", -0.5),
        ("1.5", ".5", 0.5),
        ("1.5", "1e300", 1e300),
        ("1.5", "9007199254740992", 9_007_199_254_740_992.0),
        ("1.5", "12345678901234567890123.5", 1.234_567_890_123_456_8e22),
        ("1.5", "1e-400", 0.0),
        ("1.5", "inf", f64::INFINITY),
    ] {
        assert_eq!(read(first, last).expect(last)[1_000], [Value::from(Some(value))], "{last}");
    }
    for last in ["0", "-7", "5.0"] {
        let value = last.trim_end_matches(".0").parse::<i64>().expect("an integer");
        assert_eq!(read("12", last).expect(last)[1_000], [Value::from(Some(value))]);
    }
    // A declared type reads such numbers as values.
    let declared = [("x", Some(QType::INT64))];
    assert_eq!(csv("x\n01234\n+417\n-0\n", &declared), Ok([1234, 417, 0].map(|x: i64| vec![Value::from(x)]).to_vec()));
}

#[test]
fn numbers_of_csv_that_are_carried_as_values_are_as_strict() {
    let keep = |verbatim| Request { keep: Keep::These(vec!["n".to_owned()]), verbatim, ..Request::default() };
    let text = format!("n\n{}", late("12", "01234"));
    let bound =
        |verbatim| open(Format::Csv, None, text.clone()).expect("it is CSV").bind(&keep(verbatim)).expect("bound");
    let written = rows(bound(true)).expect("as written");
    assert_eq!(written[1_000], [Value::from(Some("01234".into()) as Option<std::sync::Arc<str>>)]);
    assert_eq!(
        rows(bound(false)),
        Err("rows.csv:1002: column `n`: expected i64?, found `01234`; use `--types n=text?` to give the column this type"
            .to_owned())
    );
}

#[test]
fn json_loses_no_number_and_no_field() {
    for (first, last, expected) in [
        (
            "1",
            "18446744073709551615",
            "expected i64, found `18446744073709551615`; the type was inferred from the first rows: declare `input x: u64`",
        ),
        (
            "-1",
            "18446744073709551615",
            "expected i64, found `18446744073709551615`; the type was inferred from the first rows: declare `input x: text`",
        ),
        (
            "1",
            "1234567890123456789012",
            "expected i64, found `1234567890123456789012`; the type was inferred from the first rows: declare `input x: text`",
        ),
        (
            "1.5",
            "1e400",
            "expected f64, found `1e400`; the type was inferred from the first rows, and no type can hold both values; write the number as a string",
        ),
        ("[1.5]", "[1, -1e400]", "expected [f64?], found `[1,-1e400]`"),
        (
            "{\"a\": 1}",
            "{\"a\": 1, \"b\": 2}",
            "expected {a: i64}, found `{\"a\":1,\"b\":2}`; the type was inferred from the first rows: declare `input x: {a: i64, b: i64?}`",
        ),
        (
            "{\"a\": {\"c\": 1}}",
            "{\"a\": {\"c\": 1, \"d\": \"e\"}}",
            "expected {a: {c: i64}}, found `{\"a\":{\"c\":1,\"d\":\"e\"}}`; the type was inferred from the first rows: declare `input x: {a: {c: i64, d: text?}}`",
        ),
        ("[{\"a\": 1}]", "[{\"a\": 1}, {\"b\": 2, \"a\": 3}]", "declare `input x: [{a: i64, b: i64?}]`"),
        ("[{\"a\": 1.5}]", "[{\"a\": 1e400}]", "write the number as a string"),
        ("1.5", "18446744073709551615", "an f64 would lose its digits"),
        ("1.5", "9007199254740993", "an f64 would lose its digits"),
        ("[1.5]", "[-9007199254740993]", "expected [f64?], found"),
        ("[{\"a\": 1.5}]", "[{\"a\": 12345678901234567890123}]", "an f64 would lose its digits"),
    ] {
        let row = |x: &str| format!("{{\"x\": {x}}}");
        let told = json(&late(&row(first), &row(last)), &[("x", None)]).expect_err(last);
        assert!(told.starts_with("rows.json:1001: column `x`: ") && told.contains(expected), "{last}: {told}");
    }
    // Among the first rows such numbers are an error, which proposes `u64` if all are unsigned, else text.
    let told = |text: &str| json(text, &[("x", None)]).expect_err(text);
    let large = "rows.json:2: column `x`: expected i64, found `18446744073709551615`; the type was inferred from the first rows: declare ";
    assert_eq!(told("{\"x\": 5}\n{\"x\": 18446744073709551615}"), format!("{large}`input x: u64`"));
    assert_eq!(told("{\"x\": -5}\n{\"x\": 18446744073709551615}\n{}"), format!("{large}`input x: text?`"));
    assert!(told("{\"x\": 1.5}\n{\"x\": 1e400}").contains("rows.json:2: column `x`: expected f64, found `1e400`"));
    // A declared text keeps such numbers as they are written, and smaller ones too.
    let declared = [("x", Some(QType::TEXT))];
    let read = json("{\"x\": 5}\n{\"x\": 1234567890123456789012}\n{\"x\": \"a\"}", &declared);
    assert_eq!(
        read,
        Ok(["5", "1234567890123456789012", "a"].map(|x| vec![Value::from(std::sync::Arc::<str>::from(x))]).to_vec())
    );
    // A declared struct drops fields that are not declared.
    let point = cembra::values::parse_type("{a: f64}").expect("a type");
    let read = json("{\"x\": {\"a\": 1e400, \"b\": 2}}", &[("x", Some(point))]).expect("a struct");
    assert_eq!(read[0][0].to_string(), "{a: f64{inf}}");
}

#[test]
fn keys_that_come_late_are_told_where_all_are_carried() {
    let text = late("{\"a\": 1}", "{\"a\": 2, \"b\": 3}");
    let read = |keep, wanted: &[(&str, Option<QType>)]| {
        let dataset = open(Format::JsonLines, None, text.as_str()).expect("it is JSON");
        rows(dataset.bind(&Request { keep, ..request(wanted) }).expect("bound"))
    };
    assert_eq!(
        read(Keep::All, &[("a", None)]),
        Err("rows.json:1001: column `b`: the first rows do not have this key, so there is no column for it; \
             use `--types b=text?` with `b` in `--keep` to keep the column"
            .to_owned())
    );
    assert_eq!(read(Keep::These(vec!["a".to_owned()]), &[("a", None)]).expect("rows").len(), 1_001);
    let declared = read(Keep::All, &[("b", Some(QType::Optional(Scalar::Int64)))]).expect("rows");
    assert_eq!((&declared[0][0], &declared[1_000][0]), (&Value::Missing(Scalar::Int64), &Value::from(Some(3_i64))));
}
