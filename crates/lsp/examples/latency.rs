//! Measures the time that an editor waits for the server. Prints the median and the slowest time to answer a hover, a
//! completion and a request for a definition, and to publish the problems of a text after a change, at places all over
//! the text. The text is the file that the argument names; without an argument, it is the workload model with a
//! thousand nodes.

use lsp_server::{Connection, Message, Notification, Request};
use serde_json::{Value, json};
use std::error::Error;
use std::io::Write;
use std::time::{Duration, Instant};

const TIMES: usize = 200;

fn main() -> Result<(), Box<dyn Error>> {
    let workload = concat!(env!("CARGO_MANIFEST_DIR"), "/../../benches/workloads/R1k.cem");
    let path = std::env::args().nth(1).unwrap_or_else(|| workload.to_owned());
    let text = std::fs::read_to_string(&path)?;
    let (server, editor) = Connection::memory();
    let served = std::thread::spawn(move || cembra_lsp::serve(&server, &cembra::Limits::default()));
    let uri = "file:///m.cem";
    ask(&editor, "initialize", json!({ "capabilities": {} }))?;
    let document = json!({ "uri": uri, "languageId": "cembra", "version": 0, "text": text });
    let start = Instant::now();
    tell(&editor, "textDocument/didOpen", json!({ "textDocument": document }))?;
    wait_for_problems(&editor)?;
    let mut out = std::io::stdout().lock();
    writeln!(out, "{path}: {} bytes, {} lines", text.len(), text.lines().count())?;
    writeln!(out, "{:<24}{:>9.2} ms", "opened", milliseconds(start.elapsed()))?;

    let lines: Vec<&str> = text.lines().collect();
    let mut random = fastrand::Rng::with_seed(1);
    let mut place = || {
        let line = random.usize(..lines.len());
        json!({ "line": line, "character": random.usize(..=lines[line].len()) })
    };
    for method in ["hover", "completion", "definition"] {
        let mut times = Vec::new();
        for _ in 0..TIMES {
            let params = json!({ "textDocument": { "uri": uri }, "position": place() });
            let start = Instant::now();
            ask(&editor, &format!("textDocument/{method}"), params)?;
            times.push(start.elapsed());
        }
        report(&mut out, method, times)?;
    }
    for method in ["problems after a change", "hover after a change"] {
        let mut times = Vec::new();
        for version in 1..=TIMES {
            let position = place();
            // Something and nothing in turns: half of the texts are wrong.
            let range = json!({ "start": position, "end": position });
            let changes = json!([{ "range": range, "text": if version % 2 == 0 { " " } else { "\n" } }]);
            let params = json!({ "textDocument": { "uri": uri, "version": version }, "contentChanges": changes });
            let start = Instant::now();
            tell(&editor, "textDocument/didChange", params)?;
            if method.starts_with("hover") {
                ask(&editor, "textDocument/hover", json!({ "textDocument": { "uri": uri }, "position": place() }))?;
            } else {
                wait_for_problems(&editor)?;
            }
            times.push(start.elapsed());
        }
        report(&mut out, method, times)?;
    }
    ask(&editor, "shutdown", Value::Null)?;
    tell(&editor, "exit", Value::Null)?;
    served.join().map_err(|_| "the server is gone")??;
    Ok(())
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn report(out: &mut impl Write, what: &str, mut times: Vec<Duration>) -> std::io::Result<()> {
    times.sort_unstable();
    let (median, slowest) = (times[times.len() / 2], times[times.len() - 1]);
    writeln!(out, "{what:<24}{:>9.2} ms, at most {:.2} ms", milliseconds(median), milliseconds(slowest))
}

fn ask(editor: &Connection, method: &str, params: Value) -> Result<(), Box<dyn Error>> {
    editor.sender.send(Request { id: 1.into(), method: method.to_owned(), params }.into())?;
    while !matches!(editor.receiver.recv()?, Message::Response(_)) {}
    Ok(())
}

fn tell(editor: &Connection, method: &str, params: Value) -> Result<(), Box<dyn Error>> {
    editor.sender.send(Notification { method: method.to_owned(), params }.into())?;
    Ok(())
}

fn wait_for_problems(editor: &Connection) -> Result<(), Box<dyn Error>> {
    while !matches!(editor.receiver.recv()?, Message::Notification(_)) {}
    Ok(())
}
