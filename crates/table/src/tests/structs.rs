//! Reading and writing optional structs, lists of structs and dictionaries: present, missing, and incomplete values.

use super::{Format, bind, csv, inferred, json, open, rows};
use arrow_array::builder::{Float64Builder, MapBuilder, StringBuilder};
use arrow_array::{Array, ArrayRef, Float32Array, ListArray, RecordBatch, StringArray, StructArray};
use arrow_buffer::OffsetBuffer;
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{DataType, Field};
use cembra::values::parse_type;
use cembra_runtime::QType;
use std::sync::Arc;

fn qtype(text: &str) -> QType {
    parse_type(text).expect("a type").as_input()
}

/// The values of one input, as they are printed.
fn shown(found: Result<Vec<Vec<cembra_value::Value>>, String>) -> Result<Vec<String>, String> {
    Ok(found?.into_iter().map(|row| row[0].to_string()).collect())
}

fn of_json(of: &str, text: &str) -> Result<Vec<String>, String> {
    shown(json(text, &[("x", Some(qtype(of)))]))
}

#[test]
fn a_struct_is_missing_where_an_object_is_null_or_absent() {
    let text = "{\"x\": {\"a\": 1, \"b\": \"q\"}}\n{\"x\": null}\n{}\n{\"x\": {\"a\": 2}}";
    let found =
        ["{a: i32{1}, b: text?{'q'}}", "{a: i32, b: text?}?{NA}", "{a: i32, b: text?}?{NA}", "{a: 2, b: text?{NA}}"];
    let found = found.map(|text| text.replace("i32{1}", "1"));
    assert_eq!(of_json("{a: i32, b: text?}?", text).expect("rows"), found);
    let lacking = of_json("{a: i32, b: text?}?", "{\"x\": {\"b\": \"q\"}}").expect_err("no `a`");
    assert_eq!(
        lacking,
        "rows.json:1: column `x.a`: expected i32, found a missing value; declare `x.a` as `i32?` in the tuple type of `x`"
    );
    let wrong = of_json("{a: i32}?", "{\"x\": [1]}").expect_err("no object");
    assert_eq!(wrong, "rows.json:1: column `x`: expected {a: i32}, found `[1]`");
}

#[test]
fn lists_are_arrays_of_objects() {
    let text = "{\"x\": [{\"p\": 1, \"k\": \"a\", \"more\": 0}, {\"p\": 2.5}]}\n{\"x\": []}";
    assert_eq!(
        of_json("[{p: f64, k: text?}]", text).expect("rows"),
        ["[{p: f64{1}, k: text?{'a'}}, {p: f64{2.5}, k: text?{NA}}]", "[]"]
    );
    let missing = |text: &str| of_json("[{p: f64}]", text).expect_err("not a list");
    assert_eq!(
        missing("{\"x\": null}"),
        "rows.json:1: column `x`: expected [{p: f64}], found `null`; write `[]`, or declare the input with the default `= []`: a list cannot be missing, but may be empty"
    );
    assert!(missing("{}").starts_with("rows.json:1: no column `x`"), "{}", missing("{}"));
    assert_eq!(
        missing("{\"x\": [{\"p\": 1}]}\n{\"x\": [{\"p\": 1}, {}]}"),
        "rows.json:2: column `x.1.p`: expected f64, found a missing value; declare `x.p` as `f64?` in the tuple type of `x`"
    );
    assert_eq!(missing("{\"x\": [{\"p\": 1}, null]}"), "rows.json:1: column `x.1`: expected {p: f64}, found `null`");
    assert_eq!(of_json("[{p: f64}?]", "{\"x\": [{\"p\": 1}, null]}").expect("rows"), ["[{p: f64{1}}, NA]"]);
    // Lists that nest too deep are refused when JSON is read, however deep they are.
    let deep = format!("{{\"x\": {}1{}}}", "[".repeat(100), "]".repeat(100));
    assert!(of_json("[{p: f64}]", &deep).is_err());
}

#[test]
fn dictionaries_are_objects_whose_keys_are_each_there_once() {
    assert_eq!(
        of_json("dict[text, f64]", "{\"x\": {\"b\": 1, \"a\": null}}\n{\"x\": {}}").expect("rows"),
        ["dict{'b': 1, 'a': NA}", "dict{}"]
    );
    assert_eq!(
        of_json("dict[date, text]", "{\"x\": {\"2026-11-26\": \"now\"}}").expect("rows"),
        ["dict{2026-11-26: 'now'}"]
    );
    let wrong = |text: &str| of_json("dict[i64, f64]", text).expect_err("no dictionary");
    assert_eq!(wrong("{\"x\": {\"7\": 1, \"7\": 2}}"), "rows.json:1: column `x.7`: the object has the key twice");
    assert_eq!(wrong("{\"x\": {\"7\": 1, \"07\": 2}}"), "rows.json:1: column `x.07`: the object has the key twice");
    assert_eq!(
        wrong("{\"x\": null}"),
        "rows.json:1: column `x`: expected dict[i64, f64], found `null`; write `{}`: a dictionary cannot be missing, but may be empty"
    );
    // The error names the wrong key and not its value.
    let said = "rows.json:1: column `x`: expected i64, found the key `a`";
    for text in ["{\"x\": {\"a\": 1}}", "{\"x\": {\"7\": 1, \"a\": null}}", "{\"x\": {\"a\": \"b\"}}"] {
        assert_eq!(wrong(text), said);
    }
    assert_eq!(wrong("{\"x\": {\"7\": \"b\"}}"), "rows.json:1: column `x.7`: expected f64?, found `\"b\"`");
    for (of, key, expected) in [
        (
            "dict[date, f64]",
            "20260101",
            "expected date, found the key `20260101`; use `--date-format %Y%m%d` if the digits",
        ),
        ("dict[date, f64]", "soon", "expected date, found the key `soon`; write dates as"),
        ("dict[bytes, f64]", "??", "expected bytes, found the key `??`; write bytes as a string in base64"),
        ("dict[bool, f64]", "1.5", "expected bool, found the key `1.5`"),
    ] {
        let told = of_json(of, &format!("{{\"x\": {{\"{key}\": 2.5}}}}")).expect_err("a wrong key");
        assert!(told.starts_with(&format!("rows.json:1: column `x`: {expected}")), "{told}");
    }
}

#[test]
fn types_of_objects_and_lists_are_found_in_the_first_rows() {
    let text = "{\"o\": {\"a\": 1}, \"l\": [{\"p\": 1}, {\"p\": 2.5, \"k\": \"a\"}]}\n{\"o\": null, \"l\": []}";
    assert_eq!(inferred(Format::JsonLines, text, &["o", "l"]).expect("types"), ["{a: i64}?", "[{p: f64, k: text?}]"]);
    let text = "{\"l\": [{\"p\": 1}, null]}";
    assert_eq!(inferred(Format::JsonLines, text, &["l"]).expect("types"), ["[{p: i64}?]"]);
}

#[test]
fn in_csv_a_struct_is_missing_where_all_of_its_fields_are() {
    let wanted = [("c", Some(qtype("{name: text, age: i32?, home: {city: text}}?")))];
    let text = "c.name,c.age,c.home.city\nAnn,40,Bern\n,,\nBob,,Chur\n";
    let missing = "{name: text, age: i32?, home: {city: text}}?{NA}";
    assert_eq!(
        shown(csv(text, &wanted)).expect("rows"),
        [
            "{name: 'Ann', age: i32?{40}, home: {city: 'Bern'}}",
            missing,
            "{name: 'Bob', age: i32?{NA}, home: {city: 'Chur'}}"
        ]
    );
    let lacking = shown(csv("c.name,c.age,c.home.city\n,,\nBob,,\n", &wanted)).expect_err("no city");
    assert_eq!(
        lacking,
        "rows.csv:3: column `c.home.city`: expected text, found a missing value; declare `c.home.city` as `text?` in the tuple type of `c`"
    );
    let list = csv("x\n1\n", &[("x", Some(qtype("[{a: i32}]")))]).expect_err("no list");
    assert_eq!(
        list,
        "rows.csv: column `x`: a field of CSV cannot hold a list of type [{a: i32}]; use JSON, Parquet or Arrow for lists and dictionaries"
    );
    let opened = bind(open(Format::Csv, None, "x.a\n1\n").expect("a file"), &[("x", Some(qtype("{a: i32}?")))]);
    assert_eq!(shown(rows(opened.expect("a table"))).expect("rows"), ["{a: 1}"]);
}

/// An Arrow stream with a column `x`.
fn arrow_file(x: ArrayRef) -> Vec<u8> {
    let rows = RecordBatch::try_from_iter_with_nullable([("x", x, true)]).expect("rows");
    let mut bytes = Vec::new();
    let mut writer = StreamWriter::try_new(&mut bytes, &rows.schema()).expect("a writer");
    writer.write(&rows).and_then(|()| writer.finish()).expect("a file");
    bytes
}

fn of_arrow(of: Option<&str>, x: &ArrayRef) -> Result<Vec<String>, String> {
    let table = bind(open(Format::Arrow, None, arrow_file(x.clone()))?, &[("x", of.map(qtype))])?;
    shown(rows(table))
}

#[test]
fn maps_of_arrow_are_dictionaries_and_lists_of_structs_are_lists() {
    let mut maps = MapBuilder::new(None, StringBuilder::new(), Float64Builder::new());
    for entries in [&[("CH", Some(1.5)), ("DE", None)][..], &[]] {
        for (key, value) in entries {
            maps.keys().append_value(key);
            maps.values().append_option(*value);
        }
        maps.append(true).expect("a map");
    }
    let maps: ArrayRef = Arc::new(maps.finish());
    let expected = ["dict{'CH': 1.5, 'DE': NA}", "dict{}"];
    assert_eq!(of_arrow(None, &maps).expect("rows"), expected);
    assert_eq!(of_arrow(Some("dict[text, f64]"), &maps).expect("rows"), expected);
    assert_eq!(of_arrow(Some("dict[text, f32]"), &maps.slice(1, 1)).expect("rows"), ["dict{}"]);
    let wrong = of_arrow(Some("dict[text, date]"), &maps).expect_err("no dates");
    assert!(wrong.contains("column `x`: expected dict[text, date], found a column of Map("), "{wrong}");

    let prices: ArrayRef = Arc::new(Float32Array::from(vec![Some(0.5), Some(2.0), None]));
    let kinds: ArrayRef = Arc::new(StringArray::from(vec![None, Some("a"), Some("b")]));
    let items = StructArray::from(vec![
        (Arc::new(Field::new("price", DataType::Float32, true)), prices),
        (Arc::new(Field::new("kind", DataType::Utf8, true)), kinds),
    ]);
    let field = Arc::new(Field::new_list_field(items.data_type().clone(), true));
    let ends = |ends: &[i32]| OffsetBuffer::new(ends.to_vec().into());
    let lists = |from: &[i32]| -> ArrayRef {
        Arc::new(ListArray::new(field.clone(), ends(from), Arc::new(items.clone()), None))
    };
    assert_eq!(
        of_arrow(Some("[{kind: text?, price: f64}]"), &lists(&[0, 0, 2])).expect("rows"),
        ["[]", "[{kind: text?{NA}, price: f64{0.5}}, {kind: text?{'a'}, price: f64{2}}]"]
    );
    assert_eq!(
        of_arrow(Some("[{price: f64}]"), &lists(&[0, 2, 2, 3])).expect_err("no price"),
        "rows.json: column `x.0.price`: in row 3, expected f64, found a missing value; declare `x.price` as `f64?` in the tuple type of `x`"
    );
    assert_eq!(of_arrow(None, &lists(&[2, 3])).expect("rows"), ["[{price: f32?{NA}, kind: text?{'b'}}]"]);
}
