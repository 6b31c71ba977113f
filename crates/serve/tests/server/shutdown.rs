//! The end of the server: requests in progress are answered, and no new ones are taken.

use crate::support::{RATIO, Running, until_end};
use std::io::{Read, Write};

#[test]
fn a_request_in_progress_is_answered() {
    let mut server = Running::with(&[("ratio.cem", RATIO)], &[]);
    let own = server.host();
    let row = r#"{"x": 7, "y": 2}"#;
    let json = "Content-Type: application/json\r\n";
    let head = format!("POST /v1/models/ratio HTTP/1.1\r\nHost: {own}\r\n{json}Content-Length: {}\r\n\r\n", row.len());
    // One request that began, one connection that sent nothing yet, one idle after an answer, and a stream.
    let mut begun = server.socket();
    begun.write_all(format!("{head}{{").as_bytes()).unwrap();
    let mut silent = server.socket();
    let mut idle = server.socket();
    idle.write_all(format!("GET /readyz HTTP/1.1\r\nHost: {own}\r\n\r\n").as_bytes()).unwrap();
    let mut found = [0; 15];
    idle.read_exact(&mut found).unwrap();
    assert_eq!(&found, b"HTTP/1.1 200 OK");
    let mut stream = server.socket();
    let lines = "Content-Type: application/x-ndjson\r\nTransfer-Encoding: chunked\r\n";
    stream
        .write_all(format!("POST /v1/models/ratio HTTP/1.1\r\nHost: {own}\r\n{lines}\r\n11\r\n{row}\n\r\n").as_bytes())
        .unwrap();
    // The first row is answered while the next is not there yet.
    let mut rows = String::new();
    while !rows.contains("\"quotient\":3") {
        let mut part = [0; 1024];
        let count = stream.read(&mut part).unwrap();
        assert!(count > 0, "{rows}");
        rows.push_str(str::from_utf8(&part[..count]).unwrap());
    }
    assert!(rows.starts_with("HTTP/1.1 200 OK"), "{rows}");
    server.until("all connections are accepted", || {
        let metrics = server.get("/metrics");
        metrics.text().lines().any(|line| line == "cembra_connections 5").then_some(())
    });

    let running = server.server.take().unwrap();
    let address = running.address();
    running.shut_down();
    let end = std::thread::spawn(move || running.wait());
    // A connection that was accepted may still ask, and is told that the server ends.
    silent.write_all(format!("GET /readyz HTTP/1.1\r\nHost: {own}\r\n\r\n").as_bytes()).unwrap();
    let told = until_end(&mut silent);
    assert!(told.is_empty() || told.starts_with("HTTP/1.1 503 ") && told.contains("connection: close"), "{told}");
    begun.write_all(&row.as_bytes()[1..]).unwrap();
    let answered = until_end(&mut begun);
    assert!(
        answered.starts_with("HTTP/1.1 200 OK") && answered.ends_with(r#"{"quotient":3,"label":"more"}"#),
        "{answered}"
    );
    assert!(answered.contains("connection: close"));
    stream.write_all(format!("11\r\n{row}\n\r\n0\r\n\r\n").as_bytes()).unwrap();
    rows.push_str(&until_end(&mut stream));
    assert_eq!(rows.matches("\"quotient\":3").count(), 2, "{rows}");
    assert!(rows.ends_with("0\r\n\r\n"), "{rows}");
    until_end(&mut idle);
    end.join().unwrap();
    assert!(std::net::TcpStream::connect(address).is_err());
}

#[test]
fn models_answer_only_once_they_are_loaded() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("ratio.cem"), RATIO).unwrap();
    let server = Running::unready(folder, &[]);
    // Healthy at once; ready, and answering, at the same later moment.
    assert_eq!(server.get("/healthz").status, 200);
    server.until("the models are loaded", || {
        let reply = server.get("/readyz");
        match reply.status {
            200 => Some(()),
            _ => {
                reply.problem(503, "not-ready");
                None
            }
        }
    });
    assert_eq!(server.json("ratio", r#"{"x": 7, "y": 2}"#).status, 200);
}
