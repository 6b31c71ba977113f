//! Tests of the way in and the way out as a command goes them, with exact values and messages.

use super::schema::{Wanted, spelled};
use super::write::RowWriter;
use super::{Dataset, Format, Input, ReadOptions, Rows};
use cembra_runtime::{Fields, Names, QType, Scalar};
use cembra_value::{ScalarValue, Value};

const OPTIONAL_F64: QType = QType::Optional(Scalar::Float64);

fn open(format: Format, null: Option<&str>, text: impl Into<Vec<u8>>) -> Result<Dataset, String> {
    let name = if matches!(format, Format::Csv | Format::Tsv) { "rows.csv" } else { "rows.json" };
    let options = ReadOptions { format, null: null.map(str::to_owned) };
    Dataset::open(Input::new(name, std::io::Cursor::new(text.into())), &options).map_err(|error| error.to_string())
}

fn bind(dataset: Dataset, wanted: &[(&str, Option<QType>)]) -> Result<Rows, String> {
    let wanted: Vec<_> =
        wanted.iter().map(|(name, qtype)| Wanted { name: (*name).to_owned(), qtype: qtype.clone() }).collect();
    dataset.bind(&wanted).map_err(|error| error.to_string())
}

/// The rows, or the first error; rows before it are forgotten.
fn rows(mut rows: Rows) -> Result<Vec<Vec<Value>>, String> {
    let (mut all, mut row) = (Vec::new(), Vec::new());
    while rows.read(&mut row).map_err(|error| error.to_string())? {
        assert_eq!(row.iter().map(Value::qtype).collect::<Vec<_>>(), types(&rows));
        all.push(row.clone());
    }
    assert_eq!(rows.count(), all.len() as u64);
    Ok(all)
}

fn types(rows: &Rows) -> Vec<QType> {
    rows.schema().columns.iter().map(|column| column.qtype.clone()).collect()
}

fn csv(text: impl Into<Vec<u8>>, wanted: &[(&str, Option<QType>)]) -> Result<Vec<Vec<Value>>, String> {
    rows(bind(open(Format::Csv, None, text)?, wanted)?)
}

fn json(text: &str, wanted: &[(&str, Option<QType>)]) -> Result<Vec<Vec<Value>>, String> {
    rows(bind(open(Format::JsonLines, None, text)?, wanted)?)
}

fn inferred(format: Format, text: &str, names: &[&str]) -> Result<Vec<String>, String> {
    let wanted: Vec<_> = names.iter().map(|name| (*name, None)).collect();
    let rows = bind(open(format, None, text)?, &wanted)?;
    assert!(rows.schema().columns.iter().all(|column| column.inferred));
    Ok(types(&rows).iter().map(spelled).collect())
}

/// The most memory that the process ever had, in bytes.
#[cfg(target_os = "linux")]
fn most_memory() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").expect("a status");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a line");
    line.trim().trim_end_matches(" kB").parse::<usize>().expect("a number") << 10
}

#[test]
#[cfg(target_os = "linux")]
fn rows_that_are_read_ahead_take_little_memory() {
    let ignored = format!("[{}0]", "0,".repeat(50_000));
    let rows = 400;
    let text: String = (0..rows).map(|x| format!("{{\"x\":{x},\"y\":{ignored}}}\n")).collect();
    let size = text.len();
    let before = most_memory();
    let read = json(&text, &[("x", None)]).expect("rows");
    assert_eq!((read.len(), &read[7]), (rows, &vec![Value::from(7)]));
    // The text was copied once.
    // The kernel counts what each thread has taken only now and then.
    let taken = most_memory().saturating_sub(before);
    assert!(taken < 6 * size, "{} MiB for {} MiB", taken >> 20, size >> 20);
}

mod reading_csv {
    use super::*;

    #[test]
    fn declared_types_give_exact_values() {
        let text = "\u{feff}f,d,i,l,b,t,m,o\r\n\
            0.1,0.1,-2147483648,-9223372036854775808,true,\"a\r\nb\",present,\r\n\
            +1,1e5,2147483647,9223372036854775807,false, x ,,-inf\r\n";
        let wanted = [
            ("f", Some(QType::FLOAT32)),
            ("d", Some(QType::FLOAT64)),
            ("i", Some(QType::INT32)),
            ("l", Some(QType::INT64)),
            ("b", Some(QType::BOOLEAN)),
            ("t", Some(QType::TEXT)),
            ("m", Some(QType::MASK)),
            ("o", Some(OPTIONAL_F64)),
        ];
        assert_eq!(
            csv(text, &wanted),
            Ok(vec![
                vec![
                    Value::from(0.1_f32),
                    Value::from(0.1_f64),
                    Value::from(i32::MIN),
                    Value::from(i64::MIN),
                    Value::from(true),
                    Value::from("a\r\nb"),
                    Value::Present(ScalarValue::Unit),
                    Value::from(None::<f64>),
                ],
                vec![
                    Value::from(1.0_f32),
                    Value::from(1e5_f64),
                    Value::from(i32::MAX),
                    Value::from(i64::MAX),
                    Value::from(false),
                    Value::from(" x "),
                    Value::Missing(Scalar::Unit),
                    Value::from(Some(f64::NEG_INFINITY)),
                ],
            ])
        );
    }

    #[test]
    fn columns_come_in_the_order_wanted_and_others_are_not_looked_at() {
        let text = b"a,bad,b\n1,\xff,2\n";
        assert_eq!(
            csv(text, &[("b", Some(QType::INT32)), ("a", Some(QType::INT64))]),
            Ok(vec![vec![Value::from(2), Value::from(1_i64)]])
        );
        assert_eq!(csv(text, &[("bad", None)]), Err("rows.csv:2: column `bad`: not UTF-8: `\u{fffd}`".to_owned()));
    }

    #[test]
    fn undeclared_types_come_from_the_data() {
        let text = "num,bool,text,spaced,mixed,none,float\n\
            1,true,a,1,true,,nan\n\
            +1,,\"1\", 1,1,,-inf\n\
            1e5,false,,2,false,,.5\n";
        assert_eq!(
            inferred(Format::Csv, text, &["num", "bool", "text", "spaced", "mixed", "none", "float"]),
            Ok(["f64?", "bool?", "text?", "text?", "text?", "f64?", "f64?"].map(str::to_owned).to_vec())
        );
    }

    #[test]
    fn a_late_misfit_is_an_error_with_advice() {
        let text = |last: &str| format!("x\n{}{last}\n", "1\n".repeat(1_000));
        assert_eq!(csv(text("2"), &[("x", None)]).map(|rows| rows.len()), Ok(1_001));
        assert_eq!(
            csv(text("a"), &[("x", None)]),
            Err("rows.csv:1002: column `x`: expected OPTIONAL_FLOAT64, found `a`; its type was taken from the \
                 first rows: declare `input x: text?`"
                .to_owned())
        );
        // One row earlier it is not late.
        let early = format!("x\n{}a\n", "1\n".repeat(999));
        assert_eq!(inferred(Format::Csv, &early, &["x"]), Ok(vec!["text?".to_owned()]));
    }

    #[test]
    fn a_misfit_is_named_with_its_true_line() {
        let text = "x,y\r\n1,\"two\r\nlines\"\r\n\r\n2,\"\"\r\n3.5,z\r\n";
        assert_eq!(
            csv(text, &[("x", Some(QType::INT32))]),
            Err("rows.csv:6: column `x`: expected INT32, found `3.5`".to_owned())
        );
        assert_eq!(
            csv(text, &[("y", Some(QType::TEXT))]),
            Err("rows.csv:5: column `y`: expected TEXT, found a missing value; declare `input y: text?`".to_owned())
        );
        assert_eq!(
            csv("x\nNaN\n", &[("x", Some(QType::FLOAT32))]),
            Err("rows.csv:2: column `x`: expected FLOAT32, found `NaN`; write `nan`, `inf` or `-inf`".to_owned())
        );
        assert_eq!(
            csv("x\n9223372036854775808\n", &[("x", Some(QType::INT64))]),
            Err("rows.csv:2: column `x`: expected INT64, found `9223372036854775808`".to_owned())
        );
        assert_eq!(
            csv("x\nNA\n", &[("x", Some(OPTIONAL_F64))]),
            Err("rows.csv:2: column `x`: expected OPTIONAL_FLOAT64, found `NA`; if `NA` stands for missing, say `--null NA`"
                .to_owned())
        );
    }

    #[test]
    fn a_null_string_makes_an_empty_field_a_text() {
        let text = "t,x\nNA,1\n,NA\n\"NA\",2\n";
        let wanted = [("t", None), ("x", None)];
        let dataset = open(Format::Csv, Some("NA"), text).expect("it is CSV");
        let missing = Value::Missing(Scalar::Text);
        assert_eq!(
            rows(bind(dataset, &wanted).expect("both are there")),
            Ok(vec![
                vec![missing.clone(), Value::from(Some(1.0))],
                vec![Value::Present(ScalarValue::Text("".into())), Value::from(None::<f64>)],
                vec![missing, Value::from(Some(2.0))],
            ])
        );
        let dataset = open(Format::Csv, Some("NA"), text).expect("it is CSV");
        let error = rows(bind(dataset, &[("t", Some(OPTIONAL_F64))]).expect("it is there"));
        assert_eq!(
            error,
            Err("rows.csv:3: column `t`: expected OPTIONAL_FLOAT64, found ``; with `--null` missing is written `NA`"
                .to_owned())
        );
    }

    #[test]
    fn tuples_are_columns_of_their_fields() {
        let text = "p.1,p.0,q.0,q.1.0\nx,1,true,\n";
        let inner = QType::tuple([OPTIONAL_F64]);
        let wanted = [
            ("p", Some(QType::tuple([QType::FLOAT32, QType::TEXT]))),
            ("q", Some(QType::tuple([QType::BOOLEAN, inner]))),
            ("p", None),
        ];
        assert_eq!(
            csv(text, &wanted),
            Ok(vec![vec![
                Value::Tuple([Value::from(1.0_f32), Value::from("x")].into()),
                Value::Tuple([Value::from(true), Value::Tuple([Value::from(None::<f64>)].into())].into()),
                Value::Tuple([Value::from(Some(1.0)), Value::Present(ScalarValue::Text("x".into()))].into()),
            ]])
        );
        assert_eq!(
            csv("p.0,p.1\n1,\n", &[("p", Some(QType::tuple([QType::INT32, QType::INT32])))]),
            Err("rows.csv:2: column `p.1`: expected INT32, found a missing value; declare `p.1` as `i32?` in the tuple \
                 type of `p`"
                .to_owned())
        );
        assert_eq!(
            csv("p.0\n1\n", &[("p", Some(QType::tuple([QType::INT32, QType::INT32])))]),
            Err("rows.csv: no column `p.1`; did you mean `p.0`?".to_owned())
        );
    }

    #[test]
    fn named_tuples_are_columns_of_their_names() {
        let text = "p.y,p.x.k,q.b,q.a\nx,1,,2.5\n";
        let qtype = cembra_expr::parse_type("{x: {k: f32}, y: text}").unwrap();
        let value = cembra_expr::parse_value("{x: {k: 1f32}, y: \"x\"}").unwrap();
        let inferred = cembra_expr::parse_value("{b: missing[f64], a: OPTIONAL_FLOAT64{2.5}}").unwrap();
        assert_eq!(csv(text, &[("p", Some(qtype.clone())), ("q", None)]), Ok(vec![vec![value.clone(), inferred]]));
        assert_eq!(
            csv("p.y\nx\n", &[("p", Some(qtype.clone()))]),
            Err("rows.csv: no column `p.x.k`; the columns are `p.y`".to_owned())
        );
        let text = r#"{"p": {"y": "x", "z": 7, "x": {"k": 1}}, "q": {"b": 1, "a": [true]}}
            {"p": {"y": "x", "x": {"k": 1}}, "q": {"c": "t", "a": [null]}}"#;
        let row = |q: &str| vec![value.clone(), cembra_expr::parse_value(q).unwrap()];
        assert_eq!(
            json(text, &[("p", Some(qtype.clone())), ("q", None)]),
            Ok(vec![
                row("{b: OPTIONAL_INT32{1}, a: (OPTIONAL_BOOLEAN{true},), c: missing[text]}"),
                row("{b: missing[i32], a: (missing[bool],), c: OPTIONAL_TEXT{\"t\"}}"),
            ])
        );
        assert_eq!(
            json(r#"{"p": {"y": "x", "x": {}}}"#, &[("p", Some(qtype))]),
            Err("rows.json:1: column `p.x.k`: expected FLOAT32, found a missing value; declare `p.x.k` as `f32?` in the \
                 tuple type of `p`"
                .to_owned())
        );
    }

    #[test]
    fn a_header_is_checked() {
        assert_eq!(
            open(Format::Csv, None, "a,b,a\n").err(),
            Some("rows.csv:1: column `a`: two columns are called `a`".to_owned())
        );
        assert_eq!(
            open(Format::Csv, None, "").err(),
            Some("rows.csv: the file is empty; the first line of a CSV names its columns".to_owned())
        );
        assert_eq!(csv(",,a\n1,2,3\n", &[("a", Some(QType::INT32))]), Ok(vec![vec![Value::from(3)]]));
        assert_eq!(
            csv("width,length\n1,2\n", &[("lenght", None), ("width", Some(QType::INT32))]),
            Err("rows.csv: no column `lenght`; did you mean `length`?".to_owned())
        );
    }

    #[test]
    fn rows_that_are_no_rows_are_refused() {
        assert_eq!(
            csv("a,b\n1,2\n\n3\n", &[("a", Some(QType::INT32))]),
            Err("rows.csv:4: expected 2 fields, one for each column, found 1".to_owned())
        );
        assert_eq!(
            csv("a\n1\n\n3\n", &[("a", None)]),
            Err("rows.csv:3: a blank line in a file of one column; write `\"\"` for an empty field".to_owned())
        );
        assert_eq!(csv("a\n1\n\"\"\n\n", &[("a", None)]).map(|rows| rows.len()), Ok(2));
    }

    #[test]
    fn a_file_without_rows_has_types_too() {
        assert_eq!(inferred(Format::Csv, "a\n", &["a"]), Ok(vec!["f64?".to_owned()]));
        assert_eq!(csv("a\n", &[("a", Some(QType::INT32))]), Ok(vec![]));
    }

    #[test]
    fn tabs_separate_tsv() {
        let dataset = open(Format::Tsv, None, "a\tb\n1,5\t2\n").expect("it is TSV");
        let wanted = [("a", Some(QType::TEXT)), ("b", Some(QType::INT32))];
        assert_eq!(
            rows(bind(dataset, &wanted).expect("both are there")),
            Ok(vec![vec![Value::from("1,5"), Value::from(2)]])
        );
    }
}

mod reading_json {
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
            {"i": 2147483647, "l": 2147483648, "d": 1e0, "t": "NaN", "b": false, "p": [0.5, null], "z": 1, "y": "x"}
        "#;
        assert_eq!(
            inferred(Format::JsonLines, text, &["i", "l", "d", "o", "t", "b", "n", "p", "z"]),
            Ok(["i32", "i64", "f64", "i32?", "text", "bool", "f64?", "(f64, text?)", "f64"]
                .map(str::to_owned)
                .to_vec())
        );
        assert_eq!(inferred(Format::JsonLines, text, &["y"]), Ok(vec!["text".to_owned()]));
    }

    #[test]
    fn literals_without_a_common_type_are_refused() {
        assert_eq!(
            json("{\"x\": 1}\n{\"x\": \"a\"}", &[("x", None)]),
            Err("rows.json:2: column `x`: expected INT32, found `\"a\"`; its type was taken from the first rows, \
                 and no type holds both"
                .to_owned())
        );
        assert_eq!(
            json("{\"x\": 18446744073709551615}", &[("x", None)]),
            Err("rows.json:1: column `x`: expected INT64, found `18446744073709551615`; its type was taken from the \
                 first rows: declare `input x: f64`"
                .to_owned())
        );
        assert_eq!(
            json("{\"x\": [1]}\n{\"x\": null}", &[("x", None)]),
            Err("rows.json: column `x`: a tuple is missing in some rows; a tuple is always there; its fields may be \
                 missing: write `[null, null]`"
                .to_owned())
        );
        assert_eq!(
            json("{\"x\": {\"a,b\": 1}}", &[("x", None)]),
            Err("rows.json:1: column `x`: `a,b` cannot be the name of a field: a name is not empty and has no comma in it \
                 and no white space around it"
                .to_owned())
        );
    }

    #[test]
    fn a_late_misfit_is_an_error_with_advice() {
        let text = |last: &str| format!("{}{last}", "{\"x\": 1}\n".repeat(1_000));
        let late = |found: &str, better: &str| {
            Err(format!(
                "rows.json:1001: column `x`: expected INT32, found {found}; its type was taken from the first rows: declare `input x: {better}`"
            ))
        };
        assert_eq!(json(&text("{\"x\": 3000000000}"), &[("x", None)]), late("`3000000000`", "i64"));
        assert_eq!(json(&text("{\"x\": 1.0}"), &[("x", None)]), late("`1.0`", "f64"));
        assert_eq!(json(&text("{\"x\": null}"), &[("x", None)]), late("a missing value", "i32?"));
    }

    #[test]
    fn misfits_of_declared_types_are_named() {
        let cases = [
            ("{\"x\": 1.0}", QType::INT32, "column `x`: expected INT32, found `1.0`"),
            ("{\"x\": \"1\"}", QType::FLOAT64, "column `x`: expected FLOAT64, found `\"1\"`"),
            ("{\"x\": 1}", QType::TEXT, "column `x`: expected TEXT, found `1`"),
            (
                "{\"x\": false}",
                QType::MASK,
                "column `x`: expected OPTIONAL_UNIT, found `false`; a unit is written `true`, a missing one `null`",
            ),
            (
                "{\"x\": null}",
                QType::FLOAT32,
                "column `x`: expected FLOAT32, found a missing value; declare `input x: f32?`",
            ),
            (
                "{\"X\": 1}",
                QType::FLOAT32,
                "no column `x`; did you mean `X`?; if it may be missing, declare `input x: f32?`",
            ),
            (
                "{\"x\": [1]}",
                QType::tuple([QType::INT32, QType::INT32]),
                "column `x`: expected tuple<INT32,INT32>, found `[1]`",
            ),
            (
                "{\"x\": [1, null]}",
                QType::tuple([QType::INT32, QType::INT32]),
                "column `x.1`: expected INT32, found a missing value; declare `x.1` as `i32?` in the tuple type of `x`",
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
            Ok(vec![vec![Value::from(1)], vec![Value::from(3)]])
        );
        assert_eq!(
            json(text, &[("lenght", None)]),
            Err("rows.json: no column `lenght`; did you mean `length`?".to_owned())
        );
        assert_eq!(json("", &[("x", None)]), Ok(vec![]));
    }

    #[test]
    fn with_declared_types_nothing_is_read_ahead() {
        let text = "{\"x\": 1}\nbroken";
        let mut rows =
            bind(open(Format::JsonLines, None, text).expect("open"), &[("x", Some(QType::INT32))]).expect("bound");
        let mut row = Vec::new();
        assert_eq!(rows.read(&mut row).ok(), Some(true));
        assert_eq!((row[0].clone(), rows.place().as_str()), (Value::from(1), "rows.json:1"));
        let error = rows.read(&mut row).expect_err("the second line is no JSON");
        assert_eq!((error.line(), error.message().as_str()), (Some(2), "expected an object, found `b`"));
    }
}

mod writing {
    use super::*;

    fn written(format: Format, null: &str, columns: &[(&str, QType)], rows: &[Vec<Value>]) -> String {
        let columns: Vec<_> = columns.iter().map(|(name, qtype)| ((*name).to_owned(), qtype.clone())).collect();
        let mut writer = RowWriter::new(format, Vec::new(), &columns, null).expect("a header");
        for row in rows {
            writer.write(row).expect("a row");
        }
        String::from_utf8(writer.finish().expect("an end")).expect("UTF-8")
    }

    fn named<T>(fields: [T; 2]) -> Fields<T> {
        Fields::named(Names::parse("a,b \"c").expect("names"), fields).expect("as many fields")
    }

    fn columns() -> Vec<(&'static str, QType)> {
        vec![
            ("f", QType::FLOAT32),
            ("d", OPTIONAL_F64),
            ("l", QType::INT64),
            ("t", QType::TEXT),
            ("u", QType::MASK),
            ("p", QType::Tuple(named([QType::BOOLEAN, QType::tuple([OPTIONAL_F64])]))),
        ]
    }

    fn some_rows() -> Vec<Vec<Value>> {
        let tuple = |a: bool, b: Option<f64>| Value::Tuple(named([Value::from(a), Value::Tuple([b.into()].into())]));
        vec![
            vec![
                Value::from(0.1_f32),
                Value::from(Some(-0.0)),
                Value::from(i64::MIN),
                Value::from("a \"b\",\nc\u{1b}"),
                Value::Present(ScalarValue::Unit),
                tuple(true, Some(f64::NEG_INFINITY)),
            ],
            vec![
                Value::from(f32::NAN),
                Value::from(None::<f64>),
                Value::from(7_i64),
                Value::from("é"),
                Value::Missing(Scalar::Unit),
                tuple(false, Some(1e300)),
            ],
        ]
    }

    #[test]
    fn csv_is_what_csv_reads() {
        let text = written(Format::Csv, "", &columns(), &some_rows());
        assert_eq!(
            text,
            "f,d,l,t,u,p.a,\"p.b \"\"c.0\"\n\
             0.1,-0,-9223372036854775808,\"a \"\"b\"\",\nc\u{1b}\",present,true,-inf\n\
             nan,,7,é,,false,1e300\n"
        );
        let wanted: Vec<_> = columns().into_iter().map(|(name, qtype)| (name, Some(qtype))).collect();
        assert_eq!(csv(text, &wanted), Ok(some_rows()));
    }

    #[test]
    fn a_null_string_is_written_for_missing() {
        let columns = [("t", QType::Optional(Scalar::Text))];
        let rows = [vec![Value::Missing(Scalar::Text)], vec![Value::Present(ScalarValue::Text("".into()))]];
        assert_eq!(written(Format::Csv, "NA", &columns, &rows), "t\nNA\n\"\"\n");
        assert_eq!(written(Format::Csv, "", &columns, &rows[..1]), "t\n\"\"\n");
    }

    #[test]
    fn tsv_is_separated_by_tabs() {
        let columns = [("a", QType::TEXT), ("b", QType::INT32)];
        let rows = [vec![Value::from("x\ty"), Value::from(1)]];
        assert_eq!(written(Format::Tsv, "", &columns, &rows), "a\tb\n\"x\ty\"\t1\n");
    }

    #[test]
    fn json_is_what_json_reads() {
        let first = r#"{"f":0.1,"d":-0.0,"l":-9223372036854775808,"t":"a \"b\",\nc\u001b","u":true,"p":{"a":true,"b \"c":["-Infinity"]}}"#;
        let second = r#"{"f":"NaN","d":null,"l":7,"t":"é","u":null,"p":{"a":false,"b \"c":[1e300]}}"#;
        assert_eq!(written(Format::JsonLines, "", &columns(), &some_rows()), format!("{first}\n{second}\n"));
        let array = written(Format::Json, "", &columns(), &some_rows());
        assert_eq!(array, format!("[\n{first},\n{second}\n]\n"));
        let wanted: Vec<_> = columns().into_iter().map(|(name, qtype)| (name, Some(qtype))).collect();
        assert_eq!(json(&array, &wanted), Ok(some_rows()));
        assert_eq!(written(Format::Json, "", &columns(), &[]), "[]\n");
        assert_eq!(written(Format::JsonLines, "", &columns(), &[]), "");
        assert_eq!(written(Format::Json, "", &[], &[vec![]]), "[\n{}\n]\n");
    }

    #[test]
    fn a_float_stays_a_float_in_json() {
        let rows = [vec![Value::from(1.0_f64)], vec![Value::from(1e20_f64)], vec![Value::from(1e21_f64)]];
        let text = written(Format::JsonLines, "", &[("x", QType::FLOAT64)], &rows);
        assert_eq!(text, "{\"x\":1.0}\n{\"x\":100000000000000000000.0}\n{\"x\":1e21}\n");
        assert_eq!(inferred(Format::JsonLines, &text, &["x"]), Ok(vec!["f64".to_owned()]));
    }

    #[test]
    fn a_table_aligns_numbers_and_shows_what_is_missing() {
        let columns = [("x", OPTIONAL_F64), ("name", QType::TEXT)];
        let rows = [
            vec![Value::from(Some(1.5)), Value::from("é\n\u{1b}[31m")],
            vec![Value::from(None::<f64>), Value::from("b")],
            vec![Value::from(Some(-20.25)), Value::from("")],
        ];
        assert_eq!(
            written(Format::Table, "", &columns, &rows),
            "\
┌────────┬───────────────┐
│      x ┆ name          │
╞════════╪═══════════════╡
│    1.5 ┆ é\\n\\u{1b}[31m │
│     NA ┆ b             │
│ -20.25 ┆               │
└────────┴───────────────┘
"
        );
    }

    #[test]
    fn a_long_table_starts_again() {
        let rows = vec![vec![Value::from(7)]; 10_001];
        let text = written(Format::Table, "", &[("x", QType::INT32)], &rows);
        assert_eq!(text.lines().filter(|line| line.contains('x')).count(), 2);
        assert_eq!(text.lines().filter(|line| line.contains('7')).count(), 10_001);
    }
}
