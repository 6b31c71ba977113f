//! Tests the server with random edits and random requests: it must not fail, the ranges in its messages must be in the
//! text, and its text must be the same as the editor's.

use lsp_server::{Connection, Message, Notification, Request};
use serde_json::{Value, json};
use std::thread;

const URI: &str = "file:///folder/that/is/not/there/m.cem";

/// The number of texts that are typed. The next constant is the number of edits per text.
const TEXTS: u64 = 6;
const EDITS: usize = 60;

/// The pieces of text that random edits insert.
const PIECES: &[&str] = &[
    "input a, b: f64\n",
    "let c = a + b\n",
    "output y = c * 2.0\n",
    "fn f(p, q: f64?) = p + q ?? 1.0\n",
    "f(a, q=b)",
    "let n = 1",
    "let t = a in t * t",
    "fn(x) = x + 1",
    "é",
    "\u{1d4dd}",
    "größe",
    "\r\n",
    "\r",
    "\n",
    "\"",
    "'",
    "# é\n",
    "(",
    ")",
    "{",
    "}",
    "[",
    "]",
    ".",
    "..",
    ",",
    ";",
    "=",
    ":",
    "a",
    "y",
    "math.",
    "math.max(",
    "L.a",
    "L[\"é\"]",
    "if a > 1 then b else c",
    "1.5e",
    "1_000",
    "use \"other.cem\"\n",
    "table v: text -> f64 = \"v.csv\"\n",
    "extern fn fx.rate(text): f64?\n",
    "test \"t\" { a = 1 } => { y = 2 }\n",
    "{x: a}.x",
    "dict{\"a\": 1}",
    " in [1, 2]",
    " in 3..7",
    "missing",
    "\u{feff}",
    "\0",
    "let let",
    "input",
    "output output",
];

/// The text as an editor that counts UTF-16 units has it.
struct Text {
    units: Vec<u16>,
}

impl Text {
    /// For each line, the indices of its first unit and of the end of its content, without the line end.
    fn lines(&self) -> Vec<(usize, usize)> {
        let (mut lines, mut start, mut at) = (Vec::new(), 0, 0);
        while at < self.units.len() {
            let [here, next] = [at, at + 1].map(|at| self.units.get(at).copied().unwrap_or_default());
            let end = if here == 13 && next == 10 { 2 } else { usize::from(here == 13 || here == 10) };
            if end > 0 {
                lines.push((start, at));
                start = at + end;
            }
            at += end.max(1);
        }
        lines.push((start, self.units.len()));
        lines
    }

    /// A random place that is not in the middle of a character: its position for the protocol, and the index of its
    /// unit. Some positions are after the end of their line.
    fn place(&self, random: &mut fastrand::Rng) -> (Value, usize) {
        let lines = self.lines();
        let line = random.usize(..lines.len());
        let (start, end) = lines[line];
        let mut unit = start + random.usize(..=end - start);
        if self.units.get(unit).is_some_and(|unit| (0xdc00..0xe000).contains(unit)) {
            unit -= 1;
        }
        let beyond = if unit == end { random.usize(..3) } else { 0 };
        (json!({ "line": line, "character": unit - start + beyond }), unit)
    }

    /// The text in a range; `None` if the range is not in the text.
    fn at(&self, range: &Value) -> Option<String> {
        let lines = self.lines();
        let unit = |position: &Value| {
            let (start, end) = lines.get(position["line"].as_u64()? as usize)?;
            let unit = start + position["character"].as_u64()? as usize;
            (unit <= *end).then_some(unit)
        };
        String::from_utf16(self.units.get(unit(&range["start"])?..unit(&range["end"])?)?).ok()
    }
}

/// Adds all ranges in the message `value` to `found`.
fn ranges<'v>(value: &'v Value, found: &mut Vec<&'v Value>) {
    match value {
        Value::Object(fields) if fields.contains_key("start") && fields.contains_key("end") => found.push(value),
        Value::Object(fields) => fields.values().for_each(|value| ranges(value, found)),
        Value::Array(values) => values.iter().for_each(|value| ranges(value, found)),
        _ => {}
    }
}

/// Sends a request and returns the answer. The ranges in notifications that arrive before the answer are checked.
fn ask(editor: &Connection, id: i32, method: &str, params: Value) -> Value {
    editor
        .sender
        .send(Request { id: id.into(), method: method.to_owned(), params }.into())
        .expect("the server listens");
    loop {
        match editor.receiver.recv().expect("the server answers") {
            Message::Response(response) => {
                assert_eq!(response.id, id.into());
                return match response.response_result {
                    Ok(result) => result,
                    // A name that cannot be changed.
                    Err(error) => {
                        assert_eq!(error.code, -32803, "{method}: {}", error.message);
                        Value::Null
                    }
                };
            }
            Message::Request(_) | Message::Notification(_) => {}
        }
    }
}

fn tell(editor: &Connection, method: &str, params: Value) {
    editor.sender.send(Notification { method: method.to_owned(), params }.into()).expect("the server listens");
}

fn session(seed: u64, editor: &Connection) {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut id = 0;
    let mut question = |method: &str, params: Value| {
        id += 1;
        ask(editor, id, method, params)
    };
    question("initialize", json!({ "capabilities": {} }));
    let mut text = Text { units: Vec::new() };
    let document = json!({ "uri": URI, "languageId": "cembra", "version": 0, "text": "" });
    tell(editor, "textDocument/didOpen", json!({ "textDocument": document }));
    for version in 1..=EDITS {
        let (mut places, mut typed) = ([text.place(&mut random), text.place(&mut random)], String::new());
        if random.u8(..3) > 0 {
            places[1] = places[0].clone();
        }
        for _ in 0..random.usize(..4) {
            typed.push_str(random.choice(PIECES).expect("there are some"));
        }
        // A range may be given the wrong way round.
        let range = json!({ "start": places[0].0, "end": places[1].0 });
        let change = json!({ "textDocument": { "uri": URI, "version": version }, "contentChanges": [{ "range": range, "text": typed }] });
        tell(editor, "textDocument/didChange", change);
        let [from, to] = [places[0].1.min(places[1].1), places[0].1.max(places[1].1)];
        text.units.splice(from..to, typed.encode_utf16());

        let document = json!({ "uri": URI });
        let symbols = question("textDocument/documentSymbol", json!({ "textDocument": document }));
        for symbol in symbols.as_array().expect("a list") {
            assert_eq!(text.at(&symbol["selectionRange"]).as_deref(), symbol["name"].as_str(), "seed {seed}: {symbol}");
        }
        for method in [
            "hover",
            "completion",
            "definition",
            "references",
            "documentHighlight",
            "signatureHelp",
            "rename",
            "prepareRename",
        ] {
            let position = match random.u8(..8) {
                0 => json!({ "line": random.u32(..), "character": random.u32(..) }),
                1 => json!({ "line": random.u32(..4), "character": random.u32(..20) }),
                _ => text.place(&mut random).0,
            };
            let context = json!({ "includeDeclaration": random.bool(), "triggerKind": 1, "isRetrigger": false });
            let params =
                json!({ "textDocument": document, "position": position, "context": context, "newName": "renamed" });
            let answer = question(&format!("textDocument/{method}"), params);
            let mut found = Vec::new();
            // A definition may be in another file.
            if method != "definition" || answer["uri"] == URI {
                ranges(&answer, &mut found);
            }
            for range in found {
                let (start, end) = (text.at(range), text.lines().len());
                assert!(start.is_some(), "seed {seed}: {method} says {range} of a text of {end} lines");
            }
        }
    }
    question("shutdown", Value::Null);
    tell(editor, "exit", Value::Null);
}

#[test]
fn no_edit_and_no_question_is_too_much() {
    for seed in 0..TEXTS {
        let (server, editor) = Connection::memory();
        let served = thread::spawn(move || cembra_lsp::serve(&server, &cembra::Limits::default()));
        session(seed, &editor);
        served.join().expect("no panic").expect("it was shut down");
    }
}
