//! The end of the server: requests in progress are answered, and no new ones are taken.

use crate::support::{PATIENCE, RATIO, Running, until_end};
use std::io::{BufRead, BufReader};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

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
    // An accepted connection may send a request after the shutdown began: it is closed, or its answer says that the server ends.
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
    assert!(TcpStream::connect(address).is_err());
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

/// The command, over a folder with one model. `limit` is the most files that it may have open.
struct Process {
    child: Child,
    address: String,
    _folder: tempfile::TempDir,
}

impl Process {
    fn start(limit: &str) -> Process {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("ratio.cem"), RATIO).unwrap();
        let mut child = Command::new("sh")
            .args(["-c", "ulimit -n $0 && exec \"$@\"", limit, env!("CARGO_BIN_EXE_cembra-serve")])
            .arg(folder.path())
            .args(["--listen", "127.0.0.1:0"])
            .env_remove("RUST_LOG")
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // The log has the address.
        let mut log = BufReader::new(child.stderr.take().unwrap()).lines();
        let address = loop {
            let line = log.next().unwrap().unwrap();
            if let Some((_, address)) = line.split_once(" at http://") {
                break address.to_owned();
            }
        };
        // What follows in the log must not block the command.
        std::thread::spawn(move || log.count());
        Process { child, address, _folder: folder }
    }

    fn socket(&self) -> TcpStream {
        let socket = TcpStream::connect(&self.address).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        socket
    }

    /// Sends a request and returns the socket.
    fn ask(&self, path: &str) -> TcpStream {
        let mut socket = self.socket();
        let request = format!("GET {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", self.address);
        socket.write_all(request.as_bytes()).unwrap();
        socket
    }

    fn is_ready(&self) -> bool {
        until_end(&mut self.ask("/readyz")).starts_with("HTTP/1.1 200 ")
    }

    fn signal(&self, name: &str) {
        let done = Command::new("kill").args(["-s", name, &self.child.id().to_string()]).status().unwrap();
        assert!(done.success());
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ended = self.child.kill();
        let _ended = self.child.wait();
    }
}

/// Waits until `found` is true.
fn until(what: &str, mut found: impl FnMut() -> bool) {
    let start = std::time::Instant::now();
    while !found() {
        assert!(start.elapsed() < PATIENCE, "waited too long until {what}");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

#[test]
fn a_signal_lets_requests_end_and_a_second_one_does_not() {
    for (first, second) in [("TERM", None), ("INT", None), ("TERM", Some("INT"))] {
        let mut process = Process::start("1024");
        until("the models are loaded", || process.is_ready());
        let row = r#"{"x": 7, "y": 2}"#;
        let mut begun = process.socket();
        let json = "Content-Type: application/json\r\n";
        let head = format!(
            "POST /v1/models/ratio HTTP/1.1\r\nHost: {}\r\n{json}Content-Length: {}\r\n\r\n{{",
            process.address,
            row.len()
        );
        begun.write_all(head.as_bytes()).unwrap();
        until("the request is in progress", || {
            until_end(&mut process.ask("/metrics")).lines().any(|line| line == "cembra_connections 2")
        });
        process.signal(first);
        until("no connection is accepted", || TcpStream::connect(&process.address).is_err());
        match second {
            Some(second) => {
                process.signal(second);
                assert_eq!(process.child.wait().unwrap().code(), Some(1));
                assert_eq!(until_end(&mut begun), "");
            }
            None => {
                begun.write_all(&row.as_bytes()[1..]).unwrap();
                let answered = until_end(&mut begun);
                assert!(answered.starts_with("HTTP/1.1 200 OK") && answered.ends_with("\"more\"}"), "{answered}");
                assert_eq!(process.child.wait().unwrap().code(), Some(0));
            }
        }
    }
}

#[test]
fn too_many_connections_are_refused_in_words() {
    let process = Process::start("160");
    until("the models are loaded", || process.is_ready());
    // 128 files are for other purposes.
    let held: Vec<TcpStream> = (0..32).map(|_| process.socket()).collect();
    until("the connections are refused", || {
        let refused = until_end(&mut process.ask("/healthz"));
        refused.starts_with("HTTP/1.1 503 ") && refused.contains("\"code\":\"connections\"")
    });
    drop(held);
    until("connections are accepted again", || process.is_ready());
    assert!(until_end(&mut process.ask("/metrics")).contains("cembra_refused_connections_total "));
}
