//! The limits: of bodies, rows, times, requests and connections, each with its status, its code and words.

use crate::support::{LONG, RATIO, Running, until_end};
use std::io::{Read, Write};

const ROW: &str = r#"{"x": 7, "y": 2}"#;
const LINES: &str = "application/x-ndjson";

#[test]
fn bodies_and_rows_are_limited() {
    let server = Running::with(&[("ratio.cem", RATIO)], &["--body-bytes", "1000", "--rows", "3"]);
    let large = format!("{{\"x\": 7, \"y\": 2, \"z\": \"{}\"}}", "z".repeat(1000));
    server.json("ratio", &large).problem(413, "body-limit");
    let lines = format!("{ROW}\n");
    assert_eq!(server.post("ratio", LINES, lines.repeat(3)).status, 200);
    assert!(server.post("ratio", LINES, lines.repeat(4)).problem(413, "row-limit").contains('3'));
    assert!(server.post("ratio", "text/csv", "x,y\n1,2\n1,2\n1,2\n1,2\n").problem(413, "row-limit").contains('3'));
    server.json("ratio", &format!("[{ROW}, {ROW}, {ROW}, {ROW}]")).problem(413, "row-limit");
    // An announced length is enough.
    let own = server.host();
    let head = format!("POST /v1/models/ratio HTTP/1.1\r\nHost: {own}\r\nContent-Type: application/json\r\n");
    let found = server.raw(format!("{head}Content-Length: 1001\r\n\r\n").as_bytes());
    assert!(found.starts_with("HTTP/1.1 413 "), "{found}");
    // Without a length, the body is counted while it is read.
    let head = format!(
        "POST /v1/models/ratio HTTP/1.1\r\nHost: {own}\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    );
    let chunks = format!("3e8\r\n{}\r\n", " ".repeat(1000)).repeat(2);
    let found = server.raw(format!("{head}{chunks}0\r\n\r\n").as_bytes());
    assert!(found.starts_with("HTTP/1.1 413 ") && found.contains("\"code\":\"body-limit\""), "{found}");
}

#[test]
fn a_row_that_takes_long_ends() {
    let server = Running::with(&[("long.cem", LONG), ("ratio.cem", RATIO)], &["--time-limit", "0.2"]);
    let long = r#"{"n": 9999999}"#;
    for _ in 0..2 {
        server.json("long", long).problem(422, "deadline");
    }
    server.post("long", LINES, format!("{long}\n")).problem(422, "deadline");
    server.json("long", &format!("[{long}]")).problem(422, "deadline");
    // Many rows together have the same time, also if they are evaluated in several batches.
    let (own, rows) = (server.host(), "{\"n\": 20}\n".repeat(200_000));
    let head =
        format!("POST /v1/models/long HTTP/1.1\r\nHost: {own}\r\nContent-Type: {LINES}\r\nConnection: close\r\n");
    let found = server.raw(format!("{head}Content-Length: {}\r\n\r\n{rows}", rows.len()).as_bytes());
    assert!(found.contains("\"code\":\"deadline\""), "{}", &found[found.len().saturating_sub(300)..]);
    // Other requests are answered meanwhile and afterwards.
    assert_eq!(server.json("long", r#"{"n": 4}"#).status, 200);
    assert_eq!(server.json("ratio", ROW).status, 200);
}

#[test]
fn slow_clients_are_ended() {
    let server = Running::with(&[("ratio.cem", RATIO)], &["--header-time", "0.3", "--body-time", "0.3"]);
    let own = server.host();
    // A head that never ends.
    let mut socket = server.socket();
    socket.write_all(format!("GET /healthz HTTP/1.1\r\nHost: {own}\r\n").as_bytes()).unwrap();
    let found = until_end(&mut socket);
    assert!(found.starts_with("HTTP/1.1 408 ") && found.contains("\"code\":\"header-time\""), "{found}");
    // An idle connection is closed without a word.
    assert_eq!(until_end(&mut server.socket()), "");
    // A body that never ends, byte by byte.
    for media_type in ["application/json", LINES] {
        let mut socket = server.socket();
        let head = format!(
            "POST /v1/models/ratio HTTP/1.1\r\nHost: {own}\r\nContent-Type: {media_type}\r\nContent-Length: 1000\r\n\r\n{{\"x\""
        );
        socket.write_all(head.as_bytes()).unwrap();
        let mut slow = socket.try_clone().unwrap();
        let drip = std::thread::spawn(move || {
            while slow.write_all(b" ").is_ok() {
                std::thread::sleep(std::time::Duration::from_millis(20));
            }
        });
        let found = until_end(&mut socket);
        assert!(
            found.starts_with("HTTP/1.1 408 ") && found.contains("\"code\":\"body-time\""),
            "{media_type}: {found}"
        );
        drop(socket);
        drip.join().unwrap();
    }
    assert_eq!(server.json("ratio", ROW).status, 200);
}

#[test]
fn a_client_that_does_not_read_is_ended() {
    let server = Running::with(&[("ratio.cem", RATIO)], &["--body-time", "0.5"]);
    let own = server.host();
    let mut socket = server.socket();
    let head = format!(
        "POST /v1/models/ratio HTTP/1.1\r\nHost: {own}\r\nContent-Type: {LINES}\r\nContent-Length: 50000000\r\n\r\n"
    );
    socket.write_all(head.as_bytes()).unwrap();
    // Sends rows and never reads: the server stops reading, waits, and gives up.
    let rows = format!("{ROW}\n").repeat(1000);
    let mut sent = 0;
    while sent < 50_000_000 {
        match socket.write_all(rows.as_bytes()) {
            Ok(()) => sent += rows.len(),
            Err(_) => break,
        }
    }
    server.until("the connection ends", || {
        let metrics = server.get("/metrics");
        // The connections of the client of this test, and no other.
        metrics.text().lines().any(|line| line == "cembra_connections 1").then_some(())
    });
    assert_eq!(server.json("ratio", ROW).status, 200);
}

#[test]
fn too_many_requests_are_told_to_come_again() {
    let server = Running::with(&[("ratio.cem", RATIO)], &["--concurrency", "2"]);
    let own = server.host();
    let head = format!(
        "POST /v1/models/ratio HTTP/1.1\r\nHost: {own}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        ROW.len()
    );
    let mut waiting: Vec<_> = (0..2).map(|_| server.socket()).collect();
    for socket in &mut waiting {
        socket.write_all(format!("{head}{{").as_bytes()).unwrap();
    }
    server.until("both requests are in progress", || {
        let metrics = server.get("/metrics");
        metrics.text().lines().any(|line| line == "cembra_requests_in_progress 2").then_some(())
    });
    let reply = server.json("ratio", ROW);
    assert!(reply.problem(429, "concurrency").contains('2'));
    assert_eq!(reply.headers["retry-after"], "1");
    // Only requests to models count.
    assert_eq!(server.get("/v1/models/ratio").status, 200);
    for socket in &mut waiting {
        socket.write_all(&ROW.as_bytes()[1..]).unwrap();
        let mut found = [0; 15];
        socket.read_exact(&mut found).unwrap();
        assert_eq!(&found, b"HTTP/1.1 200 OK");
    }
    server.until("there is room again", || (server.json("ratio", ROW).status == 200).then_some(()));
}

#[test]
fn a_client_that_goes_away_cancels_its_evaluation() {
    let server = Running::with(&[("long.cem", LONG)], &["--time-limit", "600", "--threads", "1", "--concurrency", "1"]);
    let own = server.host();
    let body = r#"{"n": 9999999}"#;
    for media_type in ["application/json", LINES] {
        // All of these would take the only permit for long if they went on.
        let many = format!("{body}\n").repeat(if media_type == LINES { 3000 } else { 1 });
        for _ in 0..3 {
            let mut socket = server.socket();
            let head = format!(
                "POST /v1/models/long HTTP/1.1\r\nHost: {own}\r\nContent-Type: {media_type}\r\nContent-Length: {}\r\n\r\n{many}",
                many.len()
            );
            socket.write_all(head.as_bytes()).unwrap();
            drop(socket);
        }
        server.until("their evaluations are gone", || {
            (server.post("long", LINES, "{\"n\": 3}\n").status == 200).then_some(())
        });
    }
}

#[test]
fn an_answer_that_ends_early_is_not_taken_for_a_whole_one() {
    let server = Running::with(&[("ratio.cem", RATIO)], &["--rows", "20000"]);
    let own = server.host();
    let rows = format!("{ROW}\n").repeat(60_000);
    let head = format!(
        "POST /v1/models/ratio HTTP/1.1\r\nHost: {own}\r\nContent-Type: {LINES}\r\nContent-Length: {}\r\n\r\n",
        rows.len()
    );
    let mut socket = server.socket();
    let mut writer = socket.try_clone().unwrap();
    let sending = std::thread::spawn(move || {
        let _cut = writer.write_all(format!("{head}{rows}").as_bytes());
    });
    let found = until_end(&mut socket);
    sending.join().unwrap();
    // The last chunk is missing, and the last line has the reason.
    assert!(found.starts_with("HTTP/1.1 200 ") && !found.ends_with("0\r\n\r\n"), "{}", &found[found.len() - 200..]);
    let last = found.lines().rfind(|line| line.starts_with("{\"error\"")).unwrap();
    assert!(last.contains("\"code\":\"row-limit\""), "{last}");
}
