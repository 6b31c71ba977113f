//! Reading CSV: declared and inferred types, tuples, headers, and the errors of rows that cannot be read.

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
    let said = "rows.csv:2: column `bad`: not UTF-8: `\u{fffd}`; save the file as UTF-8, or write `iconv -f latin1 -t utf-8 old.csv > new.csv`";
    assert_eq!(csv(text, &[("bad", None)]), Err(said.to_owned()));
}

#[test]
fn undeclared_types_come_from_the_data() {
    let text = "num,bool,text,spaced,mixed,none,float\n\
        1,true,a,1,true,,nan\n\
        -1,,\"1\", 1,1,,-inf\n\
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
        Err("rows.csv:1002: column `x`: expected i64?, found `a`; the type was inferred from the first rows: declare `input x: text?`"
            .to_owned())
    );
    // One row earlier, the value is among the first rows.
    let early = format!("x\n{}a\n", "1\n".repeat(999));
    assert_eq!(inferred(Format::Csv, &early, &["x"]), Ok(vec!["text?".to_owned()]));
}

#[test]
fn a_misfit_is_named_with_its_true_line() {
    let text = "x,y\r\n1,\"two\r\nlines\"\r\n\r\n2,\"\"\r\n3.5,z\r\n";
    assert_eq!(
        csv(text, &[("x", Some(QType::INT32))]),
        Err("rows.csv:6: column `x`: expected i32, found `3.5`".to_owned())
    );
    assert_eq!(
        csv(text, &[("y", Some(QType::TEXT))]),
        Err("rows.csv:5: column `y`: expected text, found a missing value; declare `input y: text?`".to_owned())
    );
    assert_eq!(
        csv("x\nNaN\n", &[("x", Some(QType::FLOAT32))]),
        Err("rows.csv:2: column `x`: expected f32, found `NaN`; write `nan`, `inf` or `-inf`".to_owned())
    );
    assert_eq!(
        csv("x\n9223372036854775808\n", &[("x", Some(QType::INT64))]),
        Err("rows.csv:2: column `x`: expected i64, found `9223372036854775808`".to_owned())
    );
    assert_eq!(
        csv("x\nNA\n", &[("x", Some(OPTIONAL_F64))]),
        Err("rows.csv:2: column `x`: expected f64?, found `NA`; use `--null NA` if `NA` stands for a missing value"
            .to_owned())
    );
}

#[test]
fn strings_stand_for_missing_beside_empty_fields() {
    let text = "t,x\nNA,1\n,-\n\"NA\",\n\"\",2\n-,\"\"\n";
    let nulls = options(Format::Csv, &["NA", "-"]);
    let missing = Value::Missing(Scalar::Text);
    let none = Value::Missing(Scalar::Int64);
    assert_eq!(
        rows(bind(open_with(&nulls, text).expect("it is CSV"), &[("t", None), ("x", None)]).expect("both are there")),
        Ok(vec![
            vec![missing.clone(), Value::from(Some(1_i64))],
            vec![missing.clone(), none.clone()],
            vec![missing.clone(), none.clone()],
            // An empty field in quotes is a text, but only if another string stands for a missing text.
            vec![Value::Present(ScalarValue::Text("".into())), Value::from(Some(2_i64))],
            vec![missing.clone(), none],
        ])
    );
    assert_eq!(csv("t,x\n\"\",1\n", &[("t", Some(QType::Optional(Scalar::Text)))]), Ok(vec![vec![missing]]));
    // A number that stands for missing is not a value.
    let nulls = options(Format::Csv, &["-999"]);
    let wanted = [("x", Some(OPTIONAL_F64)), ("y", Some(QType::INT32))];
    let table = bind(open_with(&nulls, "x,y\n-999,1\n-999.0,2\n3,-999\n").expect("it is CSV"), &wanted);
    assert_eq!(
        rows(table.expect("both are there")),
        Err("rows.csv:4: column `y`: expected i32, found a missing value; declare `input y: i32?`".to_owned())
    );
    let table = bind(open_with(&nulls, "x\n-999\n-999.0\n").expect("it is CSV"), &wanted[..1]);
    assert_eq!(
        rows(table.expect("it is there")),
        Ok(vec![vec![Value::from(None::<f64>)], vec![Value::from(Some(-999.0))]])
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
            Value::Tuple([Value::from(Some(1_i64)), Value::Present(ScalarValue::Text("x".into()))].into()),
        ]])
    );
    assert_eq!(
        csv("p.0,p.1\n1,\n", &[("p", Some(QType::tuple([QType::INT32, QType::INT32])))]),
        Err("rows.csv:2: column `p.1`: expected i32, found a missing value; declare `p.1` as `i32?` in the tuple \
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
    let inferred = cembra_expr::parse_value("{b: missing[f64], a: f64?{2.5}}").unwrap();
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
            row("{b: i64?{1}, a: [bool?]{true}, c: missing[text]}"),
            row("{b: missing[i64], a: [bool?]{NA}, c: text?{\"t\"}}"),
        ])
    );
    assert_eq!(
        json(r#"{"p": {"y": "x", "x": {}}}"#, &[("p", Some(qtype))]),
        Err("rows.json:1: column `p.x.k`: expected f32, found a missing value; declare `p.x.k` as `f32?` in the \
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
        Some("rows.csv: the file is empty; write the names of the columns on the first line".to_owned())
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
