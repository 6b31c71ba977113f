//! A hostile client of a running server: changed requests on many connections, slow clients, and connections that are opened and dropped. A healthy
//! client asks for the same answer all the time. The program ends with an error if the server answers with another status from 500 on, if the healthy
//! client gets a wrong answer, or if the server's memory grows beyond a limit.
//!
//! ```sh
//! cargo run --release --example hostile -- 127.0.0.1:8080 1000000 PID
//! ```
//!
//! The server must serve `docs/examples/service/models`.

use std::collections::BTreeMap;
use std::error::Error;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The connections that send changed requests at the same time.
const THREADS: u64 = 8;

/// The clients that send a byte a second.
const SLOW: usize = 1_000;

/// The connections that are opened and dropped.
const DROPPED: usize = 10_000;

/// The most bytes that the server may hold, in kB of resident memory.
const MOST_KB: u64 = 1_500_000;

/// The statuses from 500 on that a request may cause: too much at once, and another version of HTTP.
const EXPECTED: [u16; 2] = [503, 505];

/// The request of the healthy client, and a part of its answer.
const HEALTHY: &str =
    r#"{"amount": 900, "currency": "CHF", "country": "FR", "card_country": "CH", "account_days": 400}"#;
const ANSWER: &str = "\"decision\":\"review\"";

type Statuses = Mutex<BTreeMap<u16, u64>>;

fn post(path: &str, kind: &str, body: &[u8]) -> Vec<u8> {
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

fn connect(address: SocketAddr) -> std::io::Result<TcpStream> {
    let stream = TcpStream::connect_timeout(&address, Duration::from_secs(5))?;
    stream.set_read_timeout(Some(Duration::from_secs(5)))?;
    stream.set_write_timeout(Some(Duration::from_secs(5)))?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// Reads one response. Returns its status, its body, and whether the connection can be used again; `None` if there is no response.
fn response(stream: &mut TcpStream) -> Option<(u16, Vec<u8>, bool)> {
    let (mut bytes, mut part) = (Vec::new(), [0; 8192]);
    let end = loop {
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break end + 4;
        }
        match stream.read(&mut part) {
            Ok(count @ 1..) => bytes.extend_from_slice(&part[..count]),
            _ => return None,
        }
    };
    let head = String::from_utf8_lossy(&bytes[..end]).to_ascii_lowercase();
    let status = head.split(' ').nth(1)?.parse().ok()?;
    let field = |name: &str| head.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    let mut body = bytes.split_off(end);
    let Some(length) = field("content-length:").and_then(|length| length.parse::<usize>().ok()) else {
        // A stream in chunks ends with the connection or with the last chunk.
        while !body.ends_with(b"0\r\n\r\n") {
            match stream.read(&mut part) {
                Ok(count @ 1..) => body.extend_from_slice(&part[..count]),
                _ => return Some((status, body, false)),
            }
        }
        return Some((status, body, field("connection:") != Some("close")));
    };
    while body.len() < length {
        match stream.read(&mut part) {
            Ok(count @ 1..) => body.extend_from_slice(&part[..count]),
            _ => return Some((status, body, false)),
        }
    }
    Some((status, body, field("connection:") != Some("close")))
}

/// Requests that the server answers with 200, which are changed at random.
fn corpus(address: SocketAddr) -> Result<Vec<Vec<u8>>, Box<dyn Error>> {
    let fraud = "/v1/models/fraud";
    let csv = b"amount,currency,country,card_country\n20,EUR,CH,CH\n900,CHF,FR,CH\n";
    // The server itself makes a stream of Arrow: the answer to a CSV.
    let mut stream = connect(address)?;
    let asked = String::from_utf8(post(fraud, "text/csv", csv))?.replacen(
        "Host",
        "Accept: application/vnd.apache.arrow.stream\r\nHost",
        1,
    );
    stream.write_all(asked.as_bytes())?;
    let (status, arrow, _) = response(&mut stream).ok_or("no answer")?;
    if status != 200 {
        return Err(format!("the server answers {status} to a CSV").into());
    }
    let get = |path: &str| format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n").into_bytes();
    let array = format!("[{HEALTHY}, {HEALTHY}]");
    let ranking = r#"{"clicks": [9, 9], "views": [80, 80], "age_hours": [240, 0], "sponsored": [false, false]}"#;
    Ok(vec![
        post(fraud, "application/json", HEALTHY.as_bytes()),
        post(fraud, "application/json", array.as_bytes()),
        post(fraud, "application/x-ndjson", format!("{HEALTHY}\n{HEALTHY}\n").as_bytes()),
        post(fraud, "text/csv", csv),
        post(fraud, "application/vnd.apache.arrow.stream", &arrow),
        post("/v1/models/ranking", "application/json", ranking.as_bytes()),
        post("/page/explain", "application/json", br#"{"text": "input x: f64; x * 2.0"}"#),
        get("/v1/models"),
        get("/v1/models/fraud"),
        get("/v1/openapi.json"),
        get("/metrics"),
        get("/page/models/../../etc/passwd"),
        get("/v1/models/%2e%2e%2fcommon@0000"),
    ])
}

/// Changes a request at one to four places.
fn changed(random: &mut fastrand::Rng, request: &[u8]) -> Vec<u8> {
    const WORDS: [&[u8]; 18] = [
        b"\r\n",
        b"\r\nTransfer-Encoding: chunked\r\n",
        b"\r\nContent-Length: 5\r\n",
        b"18446744073709551616",
        b"-1",
        b"1e999",
        b"\0",
        b"\xff\xfe",
        b"[[[[[[[[[[[[[[[[",
        b"{\"a\":",
        b"null",
        b"NaN",
        b"\"\\ud800\"",
        b"\r\nHost: evil.example\r\n",
        b"\r\nOrigin: http://evil.example\r\n",
        b"\r\nContent-Encoding: gzip\r\n",
        b"\r\nExpect: 100-continue\r\n",
        b"../../",
    ];
    let mut bytes = request.to_vec();
    for _ in 0..random.usize(1..=4) {
        let at = random.usize(..=bytes.len());
        match random.u8(..7) {
            0 if at < bytes.len() => bytes[at] = random.u8(..),
            1 if at < bytes.len() => bytes[at] ^= 1 << random.u8(..8),
            2 => bytes.truncate(at.max(1)),
            3 => {
                let word = WORDS[random.usize(..WORDS.len())];
                bytes.splice(at..at, word.iter().copied());
            }
            4 => {
                let end = (at + random.usize(..40)).min(bytes.len());
                bytes.drain(at..end);
            }
            5 => {
                let end = (at + random.usize(..400)).min(bytes.len());
                let again = bytes[at..end].to_vec();
                bytes.splice(at..at, again);
            }
            _ => {
                let noise: Vec<u8> = (0..random.usize(..64)).map(|_| random.u8(..)).collect();
                bytes.splice(at..at, noise);
            }
        }
    }
    // A body of the right length reaches the readers of bodies, not only the parser of heads.
    if random.bool()
        && let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n")
        && let Some(kept) = request.windows(4).position(|window| window == b"\r\n\r\n")
    {
        let body = bytes.split_off(end + 4);
        let head = String::from_utf8_lossy(&request[..kept]).into_owned();
        let lines = head.lines().filter(|line| !line.starts_with("Content-Length"));
        let mut whole = lines.collect::<Vec<_>>().join("\r\n").into_bytes();
        whole.extend_from_slice(format!("\r\nContent-Length: {}\r\n\r\n", body.len()).as_bytes());
        whole.extend_from_slice(&body);
        return whole;
    }
    bytes
}

/// Sends changed requests until `left` are sent.
fn attack(address: SocketAddr, seed: u64, corpus: &[Vec<u8>], left: &AtomicU64, statuses: &Statuses) {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut own: BTreeMap<u16, u64> = BTreeMap::new();
    let mut stream = None;
    while left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok() {
        let Some(mut open) = stream.take().or_else(|| connect(address).ok()) else {
            *own.entry(1).or_default() += 1;
            continue;
        };
        let chosen = random.usize(..corpus.len());
        let request = changed(&mut random, &corpus[chosen]);
        // The server may have closed the connection; the next request opens another.
        let _closed = open.write_all(&request);
        // Half of a request has no answer before a limit of time, which the slow clients test.
        let _closed = open.shutdown(std::net::Shutdown::Write);
        let status = response(&mut open).map_or(0, |(status, _, _)| status);
        *own.entry(status).or_default() += 1;
    }
    let mut all = statuses.lock().unwrap_or_else(PoisonError::into_inner);
    own.into_iter().for_each(|(status, count)| *all.entry(status).or_default() += count);
}

/// Asks for the same answer until `ended`, on one connection. Returns the number of answers, and the longest time of one.
fn healthy(address: SocketAddr, ended: &AtomicBool) -> Result<(u64, Duration), String> {
    let (mut count, mut longest, mut stream) = (0, Duration::ZERO, None);
    while !ended.load(Ordering::Relaxed) {
        let start = Instant::now();
        let mut open = match stream.take() {
            Some(open) => open,
            None => connect(address).map_err(|error| format!("the server takes no connection: {error}"))?,
        };
        open.write_all(&post("/v1/models/fraud", "application/json", HEALTHY.as_bytes())).map_err(|e| e.to_string())?;
        let (status, body, goes_on) = response(&mut open).ok_or("a healthy request has no answer")?;
        // Too many requests at once is an answer, too.
        if status != 429 && (status != 200 || !String::from_utf8_lossy(&body).contains(ANSWER)) {
            return Err(format!("a healthy request is answered {status}: {}", String::from_utf8_lossy(&body)));
        }
        longest = longest.max(start.elapsed());
        count += 1;
        stream = goes_on.then_some(open);
    }
    Ok((count, longest))
}

/// The resident memory of a process, in kB.
fn memory(process: &str) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?.split_whitespace().next()?.parse().ok()
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let mut next =
        |name: &str| arguments.next().ok_or_else(|| format!("usage: hostile ADDRESS REQUESTS PID; there is no {name}"));
    let (address, requests, process) = (next("ADDRESS")?.parse()?, next("REQUESTS")?.parse()?, next("PID")?);
    let corpus = corpus(address)?;
    let (left, ended, statuses) = (AtomicU64::new(requests), AtomicBool::new(false), Statuses::default());
    let (before, start) = (memory(&process), Instant::now());
    let (mut most, mut healthy_result) = (0, Ok((0, Duration::ZERO)));
    std::thread::scope(|scope| {
        let well = scope.spawn(|| healthy(address, &ended));
        let attackers: Vec<_> = (0..THREADS)
            .map(|seed| {
                scope.spawn({
                    let (corpus, left, statuses) = (&corpus, &left, &statuses);
                    move || attack(address, seed, corpus, left, statuses)
                })
            })
            .collect();
        while attackers.iter().any(|thread| !thread.is_finished()) {
            most = most.max(memory(&process).unwrap_or(0));
            std::thread::sleep(Duration::from_millis(100));
        }
        println!("changed requests: {requests} in {:.0?}", start.elapsed());
        let mut slow: Vec<TcpStream> = (0..SLOW).filter_map(|_| connect(address).ok()).collect();
        let opened = slow.len();
        for byte in post("/v1/models/fraud", "application/json", HEALTHY.as_bytes()).into_iter().take(20) {
            slow.retain_mut(|stream| stream.write_all(&[byte]).is_ok());
            most = most.max(memory(&process).unwrap_or(0));
            std::thread::sleep(Duration::from_secs(1));
        }
        println!("slow clients: {opened} opened, {} still open after 20 s", slow.len());
        drop(slow);
        let opened = (0..DROPPED).filter(|_| connect(address).is_ok()).count();
        most = most.max(memory(&process).unwrap_or(0));
        println!("dropped connections: {opened} of {DROPPED} opened");
        ended.store(true, Ordering::Relaxed);
        healthy_result = well.join().unwrap_or_else(|_| Err("the healthy client panicked".to_owned()));
    });
    let (answers, longest) = healthy_result?;
    println!("healthy requests: {answers} right, the longest took {longest:.1?}");
    let after = memory(&process);
    println!("memory: {} kB before, at most {most} kB, {} kB after", before.unwrap_or(0), after.unwrap_or(0));
    let statuses = statuses.into_inner().unwrap_or_else(PoisonError::into_inner);
    println!("statuses (0: no answer, 1: no connection): {statuses:?}");
    if let Some((status, count)) = statuses.iter().find(|(status, _)| !EXPECTED.contains(*status) && **status >= 500) {
        return Err(format!("{count} requests are answered {status}").into());
    }
    if after.is_none() || most > MOST_KB {
        return Err(format!("the server holds {most} kB, or is gone").into());
    }
    Ok(())
}
