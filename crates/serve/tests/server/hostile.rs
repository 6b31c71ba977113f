//! Clients that send anything: changed bytes of requests in every form. The server answers each or closes the connection, and goes on.

use crate::support::{RATIO, Running, until_end};
use arrow_array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray};
use arrow_ipc::writer::StreamWriter;
use fastrand::Rng;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::sync::Arc;

const ORDER: &str =
    "input buyer: {name: text, vip: bool?}?\ninput items: [{price: f64, count: i64}]\ninput rates: dict[text, f64]
output total: f64 = sum(items.price * items.count) * lookup(buyer.name, rates, 1.0)\noutput who = buyer.name";

fn arrow() -> Vec<u8> {
    let x: ArrayRef = Arc::new(Int64Array::from(vec![Some(7), None, Some(1)]));
    let y: ArrayRef = Arc::new(Int64Array::from(vec![Some(2), Some(0), None]));
    let more: ArrayRef = Arc::new(StringArray::from(vec![Some("é"), None, Some("")]));
    let also: ArrayRef = Arc::new(Float64Array::from(vec![0.5, f64::NAN, -0.0]));
    let batch = RecordBatch::try_from_iter([("x", x), ("y", y), ("more", more), ("also", also)]).unwrap();
    let mut writer = StreamWriter::try_new(Vec::new(), batch.schema_ref()).unwrap();
    writer.write(&batch).unwrap();
    writer.write(&batch).unwrap();
    writer.into_inner().unwrap()
}

/// Sound requests: the model, the media type and the body.
fn bodies() -> Vec<(&'static str, &'static str, Vec<u8>)> {
    let order = r#"{"buyer": {"name": "Ann", "vip": null}, "items": [{"price": 1e3, "count": 2}], "rates": {"Ann": 0.5, "\u00e9": -0.0}}"#;
    vec![
        ("ratio", "application/json", br#"{"x": 7, "y": 2}"#.to_vec()),
        ("ratio", "application/json", br#"[{"x": 7, "y": 2}, {"x": 1, "y": 0}]"#.to_vec()),
        ("ratio", "application/x-ndjson", b"{\"x\": 7, \"y\": 2}\n{\"x\": 1, \"y\": 0}\n".to_vec()),
        ("ratio", "text/csv", b"x,y,\"z\"\r\n7,2,\"a\nb\"\r\n1,0,\n".to_vec()),
        ("ratio", "application/vnd.apache.arrow.stream", arrow()),
        ("order", "application/json", order.into()),
        ("order", "application/x-ndjson", format!("{order}\n{order}\n").into()),
    ]
}

/// Changes a few bytes.
fn change(bytes: &mut Vec<u8>, random: &mut Rng) {
    const SIGNS: &[u8] = b"{}[]\",:0123456789eE+-. \r\n\0\xff\x80\\ntrufals;/@%";
    for _ in 0..random.usize(1..6) {
        let at = random.usize(..=bytes.len());
        match random.u8(..6) {
            0 if at < bytes.len() => bytes[at] = random.u8(..),
            1 if at < bytes.len() => bytes[at] ^= 1 << random.u8(..8),
            2 if at < bytes.len() => drop(bytes.remove(at)),
            3 => bytes.truncate(at),
            4 => {
                let end = random.usize(at..=bytes.len().min(at + 20));
                let copy = bytes[at..end].to_vec();
                let to = random.usize(..=bytes.len());
                bytes.splice(to..to, copy);
            }
            _ => bytes.insert(at, SIGNS[random.usize(..SIGNS.len())]),
        }
    }
}

#[test]
fn changed_requests_do_no_harm() {
    let models = [("ratio.cem", RATIO), ("order.cem", ORDER)];
    let server = Running::with(&models, &["--header-time", "2", "--body-time", "2", "--time-limit", "2"]);
    let own = server.host();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (server, own) = (&server, &own);
            scope.spawn(move || {
                let (mut random, bodies) = (Rng::with_seed(thread), bodies());
                for _ in 0..400 {
                    let (model, media_type, body) = &bodies[random.usize(..bodies.len())];
                    let mut body = body.clone();
                    let changes_body = random.bool();
                    if changes_body {
                        change(&mut body, &mut random);
                    }
                    let accept = bodies_type(&mut random);
                    let length = body.len();
                    let mut bytes = format!(
                        "POST /v1/models/{model} HTTP/1.1\r\nHost: {own}\r\nContent-Type: {media_type}\r\nAccept: {accept}\r\n\
                         Connection: close\r\nContent-Length: {length}\r\n\r\n"
                    )
                    .into_bytes();
                    if !changes_body {
                        change(&mut bytes, &mut random);
                    }
                    bytes.extend_from_slice(&body);
                    let mut socket = server.socket();
                    // The server may close the connection before all is sent.
                    let _refused = socket.write_all(&bytes);
                    if !changes_body {
                        // A head that asks for more than there is.
                        let _closed = socket.shutdown(Shutdown::Write);
                    }
                    let mut found = Vec::new();
                    let _reset = socket.read_to_end(&mut found);
                    let text = String::from_utf8_lossy(&found);
                    assert!(found.is_empty() || text.starts_with("HTTP/1."), "{text}");
                    assert!(!text.contains(" 500 "), "{}\n{text}", String::from_utf8_lossy(&bytes));
                    assert!(!changes_body || text.starts_with("HTTP/1.1 "), "{}", String::from_utf8_lossy(&bytes));
                }
            });
        }
    });
    // A thread that panicked would have left its connection in the count.
    server.until("all connections end", || {
        let metrics = server.get("/metrics");
        metrics.text().lines().any(|line| line == "cembra_connections 1").then_some(())
    });
    assert_eq!(server.json("ratio", r#"{"x": 7, "y": 2}"#).text(), r#"{"quotient":3,"label":"more"}"#);
}

fn bodies_type(random: &mut Rng) -> &'static str {
    let all = ["*/*", "application/json", "application/x-ndjson", "text/csv", "application/vnd.apache.arrow.stream"];
    all[random.usize(..all.len())]
}

#[test]
fn connections_that_are_dropped_do_no_harm() {
    let server = Running::with(&[("ratio.cem", RATIO)], &[]);
    let own = server.host();
    for round in 0..500 {
        let mut socket = server.socket();
        match round % 4 {
            0 => {}
            1 => socket.write_all(b"POST /v1/mod").unwrap(),
            2 => socket.write_all(format!("GET /healthz HTTP/1.1\r\nHost: {own}\r\n\r\n").as_bytes()).unwrap(),
            _ => {
                let head = format!("POST /v1/models/ratio HTTP/1.1\r\nHost: {own}\r\nContent-Type: text/csv\r\n");
                socket.write_all(format!("{head}Content-Length: 100\r\n\r\nx,y\n1,").as_bytes()).unwrap();
            }
        }
        if round % 100 == 0 {
            assert_eq!(server.json("ratio", r#"{"x": 7, "y": 2}"#).status, 200);
        }
    }
    server.until("all connections end", || {
        let metrics = server.get("/metrics");
        metrics.text().lines().any(|line| line == "cembra_connections 1").then_some(())
    });
}

#[test]
fn models_of_no_inputs_and_strange_names_are_served() {
    let models = [("seven.cem", "output y = 7"), ("ä b.cem", "input `a b`: i64\noutput y = `a b`")];
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in models {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    let server = Running::over(folder, &[]);
    assert_eq!(server.json("seven", "{}").text(), r#"{"y":7}"#);
    assert_eq!(server.json("seven", "[{}, {}]").text(), "[\n{\"y\":7},\n{\"y\":7}\n]\n");
    let found = server.get("/v1/models");
    assert!(found.text().contains("ä b"), "{}", found.text());
    let raw = server.raw(
        format!("GET /v1/models/%C3%A4%20b HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", server.host())
            .as_bytes(),
    );
    assert!(raw.starts_with("HTTP/1.1 ") && !raw.contains(" 404 "), "{raw}");
    let mut socket = server.socket();
    socket.shutdown(Shutdown::Write).unwrap();
    assert_eq!(until_end(&mut socket), "");
}
