//! Rows in every form, in requests and in answers, with errors beside their rows.

use crate::support::{RATIO, Running};
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow_ipc::reader::StreamReader;
use arrow_ipc::writer::{FileWriter, StreamWriter};
use serde_json::json;
use std::path::Path;
use std::sync::Arc;

const JSON: &str = "application/json";
const LINES: &str = "application/x-ndjson";
const CSV: &str = "text/csv";
const ARROW: &str = "application/vnd.apache.arrow.stream";

fn arrow(x: Vec<Option<i64>>, y: Vec<Option<i64>>) -> Vec<u8> {
    let columns: [(&str, ArrayRef); 2] = [("x", Arc::new(Int64Array::from(x))), ("y", Arc::new(Int64Array::from(y)))];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let mut writer = StreamWriter::try_new(Vec::new(), batch.schema_ref()).unwrap();
    writer.write(&batch).unwrap();
    writer.into_inner().unwrap()
}

fn read_arrow(bytes: &[u8]) -> Vec<RecordBatch> {
    StreamReader::try_new(bytes, None).unwrap().map(Result::unwrap).collect()
}

#[test]
fn the_models_of_the_example_answer() {
    let folder = tempfile::tempdir().unwrap();
    let models = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/examples/service/models");
    for file in std::fs::read_dir(models).unwrap() {
        let file = file.unwrap();
        std::fs::copy(file.path(), folder.path().join(file.file_name())).unwrap();
    }
    let server = Running::over(folder, &[]);
    let request = r#"{"amount": 900, "currency": "CHF", "country": "FR", "card_country": "CH", "account_days": 400}"#;
    let reply = server.json("fraud", request);
    assert_eq!((reply.status, &*reply.media_type), (200, JSON));
    assert_eq!(reply.text(), r#"{"score":0.3775406687981454,"decision":"review"}"#);
    let reply = server.json(
        "ranking",
        r#"{"clicks": [9, 9], "views": [80, 80], "age_hours": [240, 0], "sponsored": [false, false]}"#,
    );
    assert_eq!(reply.json()["place"], json!([1, 0]));
    // A file without outputs that others use is not a model, and one that needs an operator of its host cannot be served.
    server.json("common", "{}").problem(404, "model");
    server.json("pricing", "{}").problem(503, "invalid-model");
    let list = server.get("/v1/models").json();
    assert_eq!(
        list["models"].as_array().unwrap().iter().map(|one| &one["name"]).collect::<Vec<_>>(),
        ["fraud", "ranking"]
    );
    assert_eq!(list["failed"][0]["name"], "pricing");
}

#[test]
fn each_form_is_answered_in_each_form() {
    let server = Running::with(&[("ratio.cem", RATIO)], &[]);
    let requests: [(&str, Vec<u8>); 4] = [
        (JSON, br#"[{"x": 7, "y": 2}, {"x": 1, "y": 0}, {"x": 1, "y": 4}]"#.to_vec()),
        (LINES, b"{\"x\": 7, \"y\": 2}\n{\"x\": 1, \"y\": 0}\n{\"x\": 1, \"y\": 4}\n".to_vec()),
        (CSV, b"y,x\n2,7\n0,1\n4,1\n".to_vec()),
        (ARROW, arrow(vec![Some(7), Some(1), Some(1)], vec![Some(2), Some(0), Some(4)])),
    ];
    let error = json!({"code": "div-by-zero", "message": "math.floor_divide: division by zero", "row": 1});
    let rows =
        [json!({"quotient": 3, "label": "more"}), json!({"error": error}), json!({"quotient": 0, "label": "less"})];
    for (from, body) in &requests {
        for to in [JSON, LINES, CSV, ARROW] {
            let reply = server.post_with("/v1/models/ratio", &[("content-type", from), ("accept", to)], body);
            assert_eq!(
                (reply.status, &*reply.media_type),
                (200, to),
                "{from} {to}: {:?}",
                String::from_utf8_lossy(&reply.body)
            );
            match to {
                JSON => assert_eq!(reply.json(), json!(rows), "{from}"),
                LINES => {
                    let lines = reply.text().lines().map(|line| serde_json::from_str(line).unwrap());
                    assert_eq!(lines.collect::<Vec<serde_json::Value>>(), rows, "{from}");
                }
                CSV => assert_eq!(
                    reply.text(),
                    "quotient,label,error\n3,more,\n,,math.floor_divide: division by zero\n0,less,\n",
                    "{from}"
                ),
                _ => {
                    let batches = read_arrow(&reply.body);
                    let all = arrow_select::concat::concat_batches(&batches[0].schema(), &batches).unwrap();
                    let quotients: Vec<_> =
                        all.column_by_name("quotient").unwrap().as_primitive::<Int64Type>().iter().collect();
                    assert_eq!(quotients, [Some(3), None, Some(0)], "{from}");
                    let errors = all.column_by_name("error").unwrap().as_string::<i32>();
                    assert_eq!(
                        errors.iter().collect::<Vec<_>>(),
                        [None, Some("math.floor_divide: division by zero"), None]
                    );
                }
            }
            // The form of the request is the default.
            if *from == to {
                let again = server.post("ratio", from, body);
                assert_eq!((again.media_type, again.body), (reply.media_type, reply.body));
            }
        }
    }
}

#[test]
fn one_object_is_answered_with_one_object() {
    let server = Running::with(&[("ratio.cem", RATIO)], &[]);
    let reply = server.json("ratio", " \n{\"x\": 7, \"y\": 2, \"other\": [1]} ");
    assert_eq!((reply.status, reply.text()), (200, r#"{"quotient":3,"label":"more"}"#));
    let detail = server.json("ratio", r#"{"x": 7, "y": 0}"#).problem(422, "div-by-zero");
    assert_eq!(detail, "math.floor_divide: division by zero");
    let problem = server.json("ratio", r#"{"x": 7, "y": 0}"#).json();
    let place = &problem["diagnostics"][0];
    assert_eq!((&place["file"], &place["line"], &place["column"]), (&json!("ratio.cem"), &json!(2), &json!(19)));
    let detail = server.json("ratio", r#"{"x": "seven", "y": 0}"#).problem(422, "values");
    assert_eq!(detail, "input `x` is i64, found \"seven\"");
    assert!(server.json("ratio", r#"{"x": 1}"#).problem(422, "values").contains('y'));
    for wrong in
        ["", " ", "7", "\"x\"", "{", "{\"x\": 1,}", "{\"x\": 1, \"y\": 2} 3", "[{\"x\": 1, \"y\": 2}", "{\"x\": \u{1}}"]
    {
        let reply = server.json("ratio", wrong);
        assert_eq!(reply.status, 400, "{wrong:?}: {}", reply.text());
    }
    server.post("ratio", JSON, b"{\"x\": 1, \"y\": \"\xff\"}").problem(400, "json");
    // Nested deeper than any stack.
    let deep = format!("{{\"x\": 7, \"y\": 2, \"z\": {}{}}}", "[".repeat(100_000), "]".repeat(100_000));
    assert_eq!(server.json("ratio", &deep).status, 200);
    // Too large to be read on the thread of a connection.
    let large = format!("{{\"x\": 7, \"y\": 2, \"z\": \"{}\"}}", "z".repeat(1 << 20));
    assert_eq!(server.json("ratio", &large).text(), r#"{"quotient":3,"label":"more"}"#);
    // A single object as one line, if that is asked for.
    let headers = [("content-type", JSON), ("accept", LINES)];
    let reply = server.post_with("/v1/models/ratio", &headers, br#"{"x": 7, "y": 2}"#);
    assert_eq!(reply.text(), "{\"quotient\":3,\"label\":\"more\"}\n");
}

#[test]
fn rows_that_cannot_be_read_have_errors_in_their_places() {
    let server = Running::with(&[("ratio.cem", RATIO)], &[]);
    let reply = server.post(
        "ratio",
        LINES,
        "{\"x\": \"a\", \"y\": 1}\n{\"x\": 8, \"y\": 2}\n[]\n{\"x\": 1}\n{\"x\": 9, \"y\": 2}\n",
    );
    let lines: Vec<serde_json::Value> = reply.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 5, "{}", reply.text());
    assert_eq!((&lines[1]["quotient"], &lines[4]["quotient"]), (&json!(4), &json!(4)));
    for row in [0, 2, 3] {
        assert_eq!(lines[row]["error"]["row"], json!(row), "{}", reply.text());
        assert!(lines[row]["error"]["message"].as_str().is_some_and(|message| message.len() > 5));
    }
    let reply = server.json("ratio", r#"[{"x": "a", "y": 1}, {"x": 8, "y": 2}, {"y": 1}]"#);
    let rows = reply.json();
    assert_eq!((rows.as_array().unwrap().len(), &rows[1]["quotient"]), (3, &json!(4)), "{}", reply.text());
    assert_eq!((&rows[0]["error"]["row"], &rows[2]["error"]["row"]), (&json!(0), &json!(2)));
    // What is not an array of objects has no rows.
    server.json("ratio", r#"[{"x": 8, "y": 2}, 7]"#).problem(400, "unreadable");
    let reply = server.post("ratio", CSV, "x,y\n8,2\nseven,1\n,1\n9,2\n");
    let lines: Vec<&str> = reply.text().lines().collect();
    assert_eq!((lines.len(), lines[1], lines[4]), (5, "4,more,", "4,more,"), "{}", reply.text());
    assert!(lines[2].contains("seven"), "{}", reply.text());
    let reply = server.post("ratio", ARROW, arrow(vec![Some(8), None], vec![Some(2), Some(1)]));
    let table = &read_arrow(&reply.body)[0];
    assert_eq!(table.column(0).as_primitive::<Int64Type>().iter().collect::<Vec<_>>(), [Some(4), None]);
    assert!(table.column_by_name("error").unwrap().is_valid(1));
}

#[test]
fn tables_without_rows_are_answered() {
    let server = Running::with(&[("ratio.cem", RATIO)], &[]);
    assert_eq!(server.json("ratio", "[]").json(), json!([]));
    assert_eq!(server.post("ratio", LINES, "").text(), "");
    assert_eq!(server.post("ratio", CSV, "x,y\n").text(), "quotient,label,error\n");
    let reply = server.post("ratio", ARROW, arrow(vec![], vec![]));
    assert_eq!(read_arrow(&reply.body).iter().map(RecordBatch::num_rows).sum::<usize>(), 0);
}

#[test]
fn tables_of_other_shapes_are_refused() {
    let server = Running::with(&[("ratio.cem", RATIO)], &[]);
    assert!(server.post("ratio", CSV, "x,z\n1,2\n").problem(422, "absent-column").contains('y'));
    server.post("ratio", CSV, "x,x,y\n1,1,2\n").problem(422, "duplicate-column");
    server.post("ratio", ARROW, b"not arrow at all").problem(400, "unreadable");
    let texts: ArrayRef = Arc::new(StringArray::from(vec!["a"]));
    let numbers: ArrayRef = Arc::new(Int64Array::from(vec![1]));
    let batch = RecordBatch::try_from_iter([("x", texts), ("y", numbers)]).unwrap();
    let mut writer = StreamWriter::try_new(Vec::new(), batch.schema_ref()).unwrap();
    writer.write(&batch).unwrap();
    server.post("ratio", ARROW, writer.into_inner().unwrap()).problem(422, "column-type");
    let mut writer = FileWriter::try_new(Vec::new(), batch.schema_ref()).unwrap();
    writer.write(&batch).unwrap();
    server.post("ratio", ARROW, writer.into_inner().unwrap()).problem(415, "media-type");
    server.post("ratio", CSV, b"\x1f\x8b\x08\x00").problem(415, "media-type");
    server.post("ratio", CSV, b"\x28\xb5\x2f\xfd\x00").problem(415, "media-type");
}

#[test]
fn inputs_with_defaults_may_be_left_out() {
    let model = "input x: f64\ninput factor: f64? = 2.0\ninput more: [f64] = []\noutput error = x * factor + sum(more)";
    let server = Running::with(&[("scale.cem", model)], &[]);
    assert_eq!(server.json("scale", r#"{"x": 3}"#).text(), r#"{"error":6.0}"#);
    assert_eq!(server.post("scale", CSV, "x\n3\n4.25\n").text(), "error,error_2\n6,\n8.5,\n");
    let lines = "{\"x\": 3}\n{\"x\": 1, \"factor\": 5, \"more\": [0.5]}\n";
    assert_eq!(server.post("scale", LINES, lines).text(), "{\"error\":6.0}\n{\"error\":5.5}\n");
    let inputs = server.get("/v1/models/scale").json()["inputs"].clone();
    assert_eq!((&inputs[1]["default"], &inputs[2]["default"]), (&json!(2.0), &json!([])));
}

#[test]
fn many_rows_are_answered_in_order() {
    let server = Running::with(&[("ratio.cem", RATIO)], &[]);
    let count = 100_000_i64;
    let body: String = (0..count).map(|row| format!("{{\"x\": {row}, \"y\": {}}}\n", row % 10)).collect();
    let reply = server.post("ratio", LINES, &body);
    assert_eq!(reply.status, 200);
    let mut rows = 0;
    for (row, line) in reply.text().lines().enumerate() {
        let found: serde_json::Value = serde_json::from_str(line).unwrap();
        let row = row as i64;
        match row % 10 {
            0 => assert_eq!(found["error"]["row"], json!(row)),
            y => assert_eq!(found["quotient"], json!(row / y)),
        }
        rows += 1;
    }
    assert_eq!(rows, count);
}

#[test]
fn structs_and_lists_are_rows_in_every_form() {
    let model = "input buyer: {name: text, vip: bool}?\ninput items: [{price: f64, count: i64}]\n\
        output total: f64 = sum(items.price * items.count)\noutput who = buyer.name\n\
        output lines = map(fn(i) = {net: i.price * i.count}, items)";
    let server = Running::with(&[("order.cem", model)], &[]);
    let order = r#"{"buyer": {"name": "Ann", "vip": true}, "items": [{"price": 2.5, "count": 4}]}"#;
    let expected = r#"{"total":10.0,"who":"Ann","lines":[{"net":10.0}]}"#;
    assert_eq!(server.json("order", order).text(), expected);
    let empty = r#"{"items": []}"#;
    let reply = server.post("order", LINES, format!("{order}\n{empty}\n"));
    assert_eq!(reply.text(), format!("{expected}\n{{\"total\":0.0,\"who\":null,\"lines\":[]}}\n"));
    let headers = [("content-type", LINES), ("accept", ARROW)];
    let reply = server.post_with("/v1/models/order", &headers, order.as_bytes());
    let table = &read_arrow(&reply.body)[0];
    // The answer can be sent back: it has types that every program can read.
    assert_eq!(table.column_by_name("who").unwrap().as_string::<i32>().value(0), "Ann");
}

#[test]
fn a_model_of_tensors_takes_one_object_at_a_time() {
    let model = "input a: tensor[f64, 1]; output square(\"i\") = a(\"i\") * a(\"i\")";
    let server = Running::with(&[("square.cem", model)], &[]);
    assert_eq!(server.json("square", r#"{"a": [1.0, 3.0]}"#).text(), r#"{"square":[1.0,9.0]}"#);
    server.json("square", r#"[{"a": [1.0, 3.0]}]"#).problem(415, "no-rows");
    assert_eq!(server.get("/v1/models/square").json()["rows"], json!(false));
}
