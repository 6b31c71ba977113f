//! Tests of `cembra lsp`, with messages over standard input and output as an editor sends them.

use super::shell::Shell;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

/// A simulated editor, with the process of the language server that it started.
struct Editor {
    server: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    /// The notifications that were received and not yet returned to a test.
    notes: VecDeque<Value>,
    last: i64,
}

impl Editor {
    fn start(shell: &Shell, capabilities: Value) -> Editor {
        let mut command = shell.command(&["lsp", "--stdio"]);
        let mut server = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the server starts");
        let (input, output) = (server.stdin.take(), BufReader::new(server.stdout.take().expect("a pipe")));
        let mut editor = Editor { server, input, output, notes: VecDeque::new(), last: 0 };
        let answer = editor.ask("initialize", json!({ "capabilities": capabilities }));
        assert_eq!(answer["serverInfo"]["name"], "cembra");
        editor.tell("initialized", json!({}));
        editor
    }

    fn send(&mut self, message: &Value) {
        let text = message.to_string();
        let input = self.input.as_mut().expect("the server listens");
        write!(input, "Content-Length: {}\r\n\r\n{text}", text.len()).expect("the server reads");
        input.flush().expect("the server reads");
    }

    fn read(&mut self) -> Value {
        let mut length = 0;
        loop {
            let mut line = String::new();
            assert!(self.output.read_line(&mut line).expect("a header") > 0, "the server is gone");
            match line.trim_end().strip_prefix("Content-Length: ") {
                Some(bytes) => length = bytes.parse().expect("a length"),
                None if line == "\r\n" => break,
                None => {}
            }
        }
        let mut bytes = vec![0; length];
        self.output.read_exact(&mut bytes).expect("a message");
        serde_json::from_slice(&bytes).expect("JSON")
    }

    /// Sends a request and returns the whole response.
    fn respond(&mut self, method: &str, params: Value) -> Value {
        self.last += 1;
        let id = self.last;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        loop {
            let message = self.read();
            if message["id"] == id && message.get("method").is_none() {
                return message;
            }
            self.notes.push_back(message);
        }
    }

    /// Sends a request, which must succeed, and returns its result.
    fn ask(&mut self, method: &str, params: Value) -> Value {
        let answer = self.respond(method, params);
        assert!(answer.get("error").is_none(), "{method}: {answer}");
        answer["result"].clone()
    }

    fn tell(&mut self, method: &str, params: Value) {
        self.send(&json!({ "jsonrpc": "2.0", "method": method, "params": params }));
    }

    fn open(&mut self, uri: &str, text: &str) {
        let document = json!({ "uri": uri, "languageId": "cembra", "version": 1, "text": text });
        self.tell("textDocument/didOpen", json!({ "textDocument": document }));
    }

    fn close(&mut self, uri: &str) {
        self.tell("textDocument/didClose", json!({ "textDocument": { "uri": uri } }));
    }

    /// Replaces the text in a range of the document by `text`.
    fn edit(&mut self, uri: &str, version: i64, range: Value, text: &str) {
        let document = json!({ "uri": uri, "version": version });
        let change = json!([{ "range": range, "text": text }]);
        self.tell("textDocument/didChange", json!({ "textDocument": document, "contentChanges": change }));
    }

    /// Returns the problems in the next notification about a document: their codes, ranges and messages.
    fn problems(&mut self, uri: &str) -> Vec<(String, Value, String)> {
        loop {
            let is_of =
                |note: &Value| note["method"] == "textDocument/publishDiagnostics" && note["params"]["uri"] == uri;
            if let Some(at) = self.notes.iter().position(is_of) {
                let note = self.notes.remove(at).expect("it is there");
                let told = note["params"]["diagnostics"].as_array().expect("a list").iter();
                let text = |value: &Value| value.as_str().expect("a text").to_owned();
                return told.map(|one| (text(&one["code"]), one["range"].clone(), text(&one["message"]))).collect();
            }
            let message = self.read();
            self.notes.push_back(message);
        }
    }

    /// Returns the codes of the problems in the next notification about a document.
    fn codes(&mut self, uri: &str) -> Vec<String> {
        self.problems(uri).into_iter().map(|(code, ..)| code).collect()
    }

    fn at(&mut self, method: &str, uri: &str, line: u32, character: u32) -> Value {
        let position = json!({ "line": line, "character": character });
        self.ask(method, json!({ "textDocument": { "uri": uri }, "position": position }))
    }

    fn hover(&mut self, uri: &str, line: u32, character: u32) -> (String, Value) {
        let hover = self.at("textDocument/hover", uri, line, character);
        (hover["contents"]["value"].as_str().unwrap_or_default().to_owned(), hover["range"].clone())
    }

    /// Returns the labels of the completions that the server offers at a position.
    fn completed(&mut self, uri: &str, line: u32, character: u32) -> Vec<String> {
        let items = self.at("textDocument/completion", uri, line, character);
        let items = items["items"].as_array().expect("a list").iter();
        items.map(|item| item["label"].as_str().expect("a label").to_owned()).collect()
    }

    /// Ends the server and returns its exit status.
    fn end(mut self) -> Option<i32> {
        assert_eq!(self.ask("shutdown", Value::Null), Value::Null);
        let answer = self.respond("textDocument/hover", json!({}));
        assert_eq!(answer["error"]["code"], -32600, "{answer}");
        self.tell("exit", Value::Null);
        self.server.wait().expect("it ends").code()
    }
}

fn range(line: u32, start: u32, end: u32) -> Value {
    json!({ "start": { "line": line, "character": start }, "end": { "line": line, "character": end } })
}

fn uri(shell: &Shell, name: &str) -> String {
    // Folders for tests have names that need no escape.
    format!("file://{}", Path::new(&shell.path(name)).display())
}

const MODEL: &str = "use \"common.cem\"\n\
                     table vat: text -> f64 = \"vat.csv\"\n\
                     input price: f64?\n\
                     input country: text\n\
                     let note = \"𝓝é\"; let net = taxed(price)\n\
                     output total = net * lookup(country, vat, 1.0)\n\
                     output best = math.maximum(net, 1.0)\n";
const COMMON: &str = "# The tax on a price.\nfn taxed(x, rate) = x * (1.0 + rate)\nlet base = 1\n";

fn files() -> Shell {
    Shell::new()
        .file("m.cem", MODEL.replace("taxed(price)", "taxed(price, rate=0.5)"))
        .file("common.cem", COMMON)
        .file("vat.csv", "country,vat\nCH,1.08\n")
}

#[test]
fn a_text_is_opened_edited_and_asked_about() {
    let shell = files();
    let (model, common) = (uri(&shell, "m.cem"), uri(&shell, "common.cem"));
    let mut editor = Editor::start(&shell, json!({}));
    editor.open(&model, &shell.read("m.cem"));
    let warned = editor.problems(&model);
    assert_eq!(
        warned.iter().map(|(code, range, _)| (code.as_str(), range)).collect::<Vec<_>>(),
        [("unused-let", &range(4, 4, 8))]
    );

    // A mistake behind characters of two units and of two bytes, and away with it.
    editor.edit(&model, 2, range(4, 28, 33), "takes");
    let wrong = editor.problems(&model);
    assert_eq!(wrong.len(), 1, "{wrong:?}");
    let (code, place, message) = &wrong[0];
    assert_eq!((code.as_str(), place), ("unknown-name", &range(4, 28, 33)));
    assert!(message.starts_with("there is no operator `takes`"), "{message}");
    editor.edit(&model, 3, range(4, 28, 33), "taxed");
    assert_eq!(editor.codes(&model), ["unused-let"]);

    // A type, in the words of a text.
    let (text, place) = editor.hover(&model, 5, 16);
    assert_eq!(place, range(5, 15, 18));
    assert_eq!(text, "```cem\nlet net: f64?\n```\na definition\n");
    let (text, place) = editor.hover(&model, 4, 30);
    assert_eq!(place, range(4, 28, 33));
    assert_eq!(text, "```cem\nfn taxed(x, rate)\n```\na function\n\nThe tax on a price.\n");
    let (text, place) = editor.hover(&model, 6, 20);
    assert_eq!(place, range(6, 14, 26));
    assert!(text.starts_with("```cem\nmath.maximum(x, y)"), "{text}");
    let (text, _) = editor.hover(&model, 2, 8);
    assert_eq!(text, "```cem\ninput price: f64?\n```\nan input\n");
    let (text, place) = editor.hover(&model, 5, 19);
    assert_eq!(place, range(5, 15, 46));
    assert!(text.starts_with("```cem\nf64?\n```\n```cem\nmath.multiply(x, y)"), "{text}");
    assert_eq!(editor.at("textDocument/hover", &model, 7, 0), Value::Null);

    // A function of another file, its parameter, the file itself, and a name here.
    let mut definition = |line, character| editor.at("textDocument/definition", &model, line, character);
    assert_eq!(definition(4, 31), json!({ "uri": common, "range": range(1, 3, 8) }));
    assert_eq!(definition(4, 41), json!({ "uri": common, "range": range(1, 12, 16) }));
    assert_eq!(definition(0, 8), json!({ "uri": common, "range": range(0, 0, 0) }));
    assert_eq!(definition(1, 30), json!({ "uri": uri(&shell, "vat.csv"), "range": range(0, 0, 0) }));
    assert_eq!(definition(6, 28), json!({ "uri": model, "range": range(4, 22, 25) }));
    assert_eq!(definition(5, 38), json!({ "uri": model, "range": range(1, 6, 9) }));
    assert_eq!(definition(6, 17), Value::Null);

    let names = editor.ask("textDocument/documentSymbol", json!({ "textDocument": { "uri": model } }));
    let names = names.as_array().expect("a list").iter().map(|one| (&one["name"], &one["selectionRange"]));
    let names: Vec<_> = names.map(|(name, range)| (name.as_str().expect("a name"), range.clone())).collect();
    let all = [
        ("vat", range(1, 6, 9)),
        ("price", range(2, 6, 11)),
        ("country", range(3, 6, 13)),
        ("note", range(4, 4, 8)),
        ("net", range(4, 22, 25)),
        ("total", range(5, 7, 12)),
        ("best", range(6, 7, 11)),
    ];
    assert_eq!(names, all);
    assert_eq!(editor.end(), Some(0));
}

#[test]
fn what_is_known_is_completed() {
    let shell = files();
    let model = uri(&shell, "m.cem");
    let mut editor = Editor::start(&shell, json!({}));
    editor.open(&model, &shell.read("m.cem"));
    // In the middle of a statement that cannot be read.
    let end = json!({ "start": { "line": 7, "character": 0 }, "end": { "line": 7, "character": 0 } });
    editor.edit(&model, 2, end, "fn f(alpha) = math.maximum(alpha, ne");
    let labels = editor.completed(&model, 7, 36);
    for label in ["net", "taxed", "base", "vat", "country", "alpha", "math.maximum", "max", "missing", "y="] {
        assert!(labels.iter().any(|known| known == label), "{label}");
    }
    for label in ["f", "output", "rate", "x", "then", "core._where"] {
        assert!(!labels.iter().any(|known| known == label), "{label}");
    }
    let items = editor.at("textDocument/completion", &model, 7, 19);
    let max = items["items"]
        .as_array()
        .expect("a list")
        .iter()
        .find(|item| item["label"] == "math.maximum")
        .expect("it is there");
    assert_eq!(max["textEdit"], json!({ "newText": "math.maximum", "range": range(7, 14, 19) }));
    let item = editor.ask("completionItem/resolve", max.clone());
    let text = item["documentation"]["value"].as_str().expect("a text");
    assert!(text.contains("- Call: `math.maximum(x, y"), "{text}");
    let call = editor.at("textDocument/signatureHelp", &model, 7, 36);
    assert_eq!((&call["activeParameter"], &call["signatures"][0]["parameters"][1]["label"]), (&json!(1), &json!("y")));

    // Words by their place.
    editor.edit(&model, 3, range(7, 0, 36), "input ratio: f");
    let labels = editor.completed(&model, 7, 14);
    assert!(labels.contains(&"f64".to_owned()) && !labels.contains(&"net".to_owned()), "{labels:?}");
    editor.edit(&model, 4, range(7, 0, 14), "let y = if price > 1.0 t");
    assert!(editor.completed(&model, 7, 24).contains(&"then".to_owned()));
    editor.edit(&model, 5, range(7, 0, 24), "ou");
    let labels = editor.completed(&model, 7, 2);
    assert!(labels.contains(&"output".to_owned()) && labels.contains(&"total".to_owned()), "{labels:?}");
    editor.edit(&model, 6, range(7, 0, 2), "# ou");
    assert_eq!(editor.completed(&model, 7, 4), Vec::<String>::new());
    assert_eq!(editor.end(), Some(0));
}

const TENSORS: &str = "\
input a: tensor[f64, 2], b: tensor[f32, 2], by: f32
# What both make.
let product(\"i,j\") = b(\"i,k\") * b(\"k,j\") / by
let scaled = b(\"i,j\") * by
let z: tensor[f64, 2] = exp(a) + 1.0
output sums = tensor.sum(z, 1)
output c(\"j\") = product(\"j,j\")
output d(\"j,i\"): tensor[f32, 2] = scaled * 2.0
";

#[test]
fn lines_that_assign_are_shown_with_what_they_change() {
    let shell = Shell::new();
    let model = uri(&shell, "t.cem");
    let mut editor = Editor::start(&shell, json!({}));
    let text = "input a: tensor[f64, 2]\n# The squares.\nc(\"i,j\") = a(\"i,j\") * a(\"i,j\")\n\
                a(\"i,j\") += 2.0 * c(\"j,i\")\nc(\"i,j\") *= a(\"i,j\") / a(\"i,j\").norm()\n";
    editor.open(&model, text);
    assert_eq!(editor.codes(&model), Vec::<String>::new());
    let mut hover = |line, character| editor.hover(&model, line, character);
    let name = |text: &str, what: &str| format!("```cem\n{text}\n```\n{what}\n");
    // A line that defines a name, and one that changes it; an input that is changed is that input.
    let c = name("output c(\"i,j\"): tensor[f64, 2]", "an output") + "\nThe squares.\n";
    assert_eq!(hover(2, 0), (c.clone(), range(2, 0, 1)));
    assert_eq!(hover(4, 0), (c, range(4, 0, 1)));
    assert_eq!(hover(3, 0), (name("input a: tensor[f64, 2]", "an input"), range(3, 0, 1)));
    let (method, place) = hover(4, 34);
    assert_eq!(place, range(4, 32, 36));
    assert!(method.contains("The square root of the sum of all squares."), "{method}");
    // A name is renamed in all lines that define, change and use it.
    let params = json!({
        "textDocument": { "uri": model }, "position": { "line": 0, "character": 6 }, "newName": "first"
    });
    let edits = editor.ask("textDocument/rename", params);
    let edits = edits["changes"][&model].as_array().map_or(0, Vec::len);
    assert_eq!(edits, 6);
    assert_eq!(editor.end(), Some(0));
}

#[test]
fn tensors_are_shown_with_types_and_labels() {
    let shell = Shell::new();
    let model = uri(&shell, "t.cem");
    let mut editor = Editor::start(&shell, json!({}));
    editor.open(&model, TENSORS);
    assert_eq!(editor.codes(&model), Vec::<String>::new());
    let mut hover = |line, character| editor.hover(&model, line, character);
    let name = |text: &str, what: &str| format!("```cem\n{text}\n```\n{what}\n");
    // Names, where they are defined and where they are used; extents are nobody's type.
    assert_eq!(hover(0, 6).0, name("input a: tensor[f64, 2]", "an input"));
    let product = name("let product(\"i,j\"): tensor[f32, 2]", "a definition") + "\nWhat both make.\n";
    assert_eq!(hover(2, 5), (product.clone(), range(2, 4, 11)));
    assert_eq!(hover(6, 17), (product, range(6, 16, 23)));
    assert_eq!(hover(4, 4).0, name("let z: tensor[f64, 2]", "a definition"));
    assert_eq!(hover(5, 8).0, name("output sums: tensor[f64, 1]", "an output"));
    assert_eq!(hover(6, 7).0, name("output c(\"j\"): tensor[f32, 1]", "an output"));
    assert_eq!(hover(7, 7).0, name("output d(\"j,i\"): tensor[f32, 2]", "an output"));
    // An expression over labels is an element for each index, and no tensor.
    assert_eq!(hover(3, 5).0, name("let scaled", "a definition"));
    // A tensor that is given labels, and expressions: whole ones have types.
    let (text, place) = hover(2, 24);
    assert_eq!(place, range(2, 21, 29));
    assert_eq!(text, "```cem\ntensor[f32, 2]\n```\nThe tensor with one label per axis. Written `x(\"i,j\")`.");
    let (text, place) = hover(2, 13);
    assert_eq!(place, range(2, 11, 45));
    assert!(text.starts_with("```cem\ntensor[f32, 2]\n```\nThe tensor that a labelled expression defines"), "{text}");
    let (text, _) = hover(4, 31);
    assert!(text.starts_with("```cem\ntensor[f64, 2]\n```\n```cem\ncore._plus(x, y)"), "{text}");
    let (text, _) = hover(5, 27);
    assert!(text.starts_with("```cem\ntensor[f64, 1]\n```\n```cem\ntensor.sum(x, axes="), "{text}");
    let (text, _) = hover(4, 35);
    assert_eq!(text, "```cem\nf64\n```\n");

    // The outline has them too.
    let names = editor.ask("textDocument/documentSymbol", json!({ "textDocument": { "uri": model } }));
    assert_eq!(names[3]["detail"], "let product(\"i,j\"): tensor[f32, 2]");

    // Operators on whole tensors are completed and say what they take; what only labels are written as is not.
    let line =
        |line: u32| json!({ "start": { "line": line, "character": 0 }, "end": { "line": line, "character": 0 } });
    editor.edit(&model, 2, line(8), "let w = tensor.s");
    let labels = editor.completed(&model, 8, 16);
    for label in ["tensor.sum", "tensor.softmax", "tensor.grad", "product", "z"] {
        assert!(labels.iter().any(|known| known == label), "{label}");
    }
    assert!(!labels.iter().any(|label| label.contains("._")), "{labels:?}");
    let items = editor.at("textDocument/completion", &model, 8, 16);
    let item =
        |label: &str| items["items"].as_array().expect("a list").iter().find(|item| item["label"] == label).cloned();
    assert_eq!(item("product").expect("it is there")["detail"], "let product(\"i,j\"): tensor[f32, 2]");
    let sum = item("tensor.sum").expect("it is there");
    assert_eq!(sum["textEdit"], json!({ "newText": "tensor.sum", "range": range(8, 8, 16) }));
    // The labels of a tensor, as many as it has axes: of an input, of what is defined, and of what has other letters.
    for (version, text, form, note) in [
        (3, "let w = tensor.sum(z, ", "tensor.sum(x, axes", "The sum over some axes"),
        (4, "let v = a(", "a(\"i,j\")", "tensor[f64, 2]: a label for each axis"),
        (5, "let v = a(\"p,q\") * product(", "product(\"i,j\")", "tensor[f32, 2]: a label for each axis"),
        (6, "let v = sums(", "sums(\"i\")", "tensor[f64, 1]: a label for each axis"),
        (7, "let v = a(\"p,q\").block([0, 1], ", "block(start, stop)", "The tiles of each axis"),
        (8, "let v = tensor.block(a, [0, 1], ", "tensor.block(x, start, stop)", "The tiles of each axis"),
    ] {
        let whole = json!({ "start": { "line": 8, "character": 0 }, "end": { "line": 9, "character": 0 } });
        editor.edit(&model, version, whole, text);
        let help = editor.at("textDocument/signatureHelp", &model, 8, text.len() as u32);
        let signature = &help["signatures"][0];
        assert!(signature["label"].as_str().expect("a form").starts_with(form), "{help}");
        assert!(signature["documentation"].as_str().expect("a note").starts_with(note), "{help}");
    }
    let whole = json!({ "start": { "line": 8, "character": 0 }, "end": { "line": 9, "character": 0 } });
    // A method is what the operator is, and the tensor has labels behind it.
    editor.edit(&model, 9, whole.clone(), "output v(\"p,q\") = a(\"p,q\").block([0, 0], [1, 1])");
    let (text, place) = editor.hover(&model, 8, 28);
    assert_eq!(place, range(8, 27, 32));
    assert!(text.starts_with("```cem\ntensor.block(x, start, stop)\n```\n"), "{text}");
    editor.edit(&model, 10, whole, "input q: te");
    assert!(editor.completed(&model, 8, 11).contains(&"tensor[f64, 2]".to_owned()));
    // What does not fit is told where it stands, and costs other types nothing.
    editor.edit(&model, 11, range(8, 0, 11), "output wrong = tensor.sum(z, 2)");
    while editor.problems(&model).iter().all(|(code, ..)| code != "shape") {}
    assert_eq!(editor.hover(&model, 5, 8).0, name("output sums: tensor[f64, 1]", "an output"));
    assert_eq!(editor.hover(&model, 8, 8).0, name("output wrong", "an output"));
    assert_eq!(editor.end(), Some(0));
}

#[test]
fn a_file_that_is_used_is_that_of_the_editor_and_may_be_renamed() {
    let shell = files();
    let (model, common, other) = (uri(&shell, "m.cem"), uri(&shell, "common.cem"), uri(&shell, "other.cem"));
    let mut editor = Editor::start(&shell, json!({}));
    editor.open(&model, &shell.read("m.cem"));
    assert_eq!(editor.codes(&model), ["unused-let"]);
    // One that only defines is not wrong while another one uses it.
    editor.open(&common, COMMON);
    assert_eq!(editor.codes(&common), Vec::<String>::new());

    // A mistake in the file is told there, and its mending mends the model.
    editor.edit(&common, 2, range(1, 20, 21), "y");
    let wrong = editor.problems(&common);
    assert_eq!(
        wrong.iter().map(|(code, place, _)| (code.as_str(), place)).collect::<Vec<_>>(),
        [("use", &range(1, 20, 21))]
    );
    assert_eq!(editor.codes(&model), Vec::<String>::new());
    editor.edit(&common, 3, range(1, 20, 21), "x");
    assert_eq!(editor.codes(&common), Vec::<String>::new());
    assert_eq!(editor.codes(&model), ["unused-let"]);
    // What the editor has counts, and not the disk.
    editor.edit(&common, 4, range(2, 4, 8), "base_price");
    assert_eq!(editor.codes(&common), Vec::<String>::new());
    assert!(editor.completed(&model, 7, 0).contains(&"base_price".to_owned()));

    // The file gets another name, and the model does not know it yet.
    std::fs::rename(shell.path("common.cem"), shell.path("other.cem")).expect("it is renamed");
    editor.close(&common);
    editor.open(&other, COMMON);
    let renamed = json!({ "files": [{ "oldUri": common, "newUri": other }] });
    editor.tell("workspace/didRenameFiles", renamed);
    let wrong = editor.problems(&model);
    let (code, place, message) = &wrong[0];
    assert_eq!((code.as_str(), place), ("use", &range(0, 4, 16)));
    assert!(message.starts_with("`common.cem` cannot be read: "), "{message}");
    editor.edit(&model, 2, range(0, 5, 11), "other");
    while editor.codes(&model) != ["unused-let"] {}
    let found = editor.at("textDocument/definition", &model, 4, 30);
    assert_eq!(found, json!({ "uri": other, "range": range(1, 3, 8) }));

    // A name of the file, in both.
    let position = json!({ "line": 4, "character": 30 });
    let params = json!({ "textDocument": { "uri": model }, "position": position, "newName": "with_tax" });
    let edits = editor.ask("textDocument/rename", params.clone());
    let edit = |range: Value| json!([{ "range": range, "newText": "with_tax" }]);
    assert_eq!(edits["changes"], json!({ &model: edit(range(4, 28, 33)), &other: edit(range(1, 3, 8)) }));
    for taken in ["net", "if", "a b", ""] {
        let mut params = params.clone();
        params["newName"] = taken.into();
        assert_eq!(editor.respond("textDocument/rename", params)["error"]["code"], -32803, "{taken}");
    }
    assert_eq!(editor.end(), Some(0));
}

#[test]
fn a_text_is_formatted_as_the_command_formats_it() {
    let shell = files();
    let model = uri(&shell, "m.cem");
    let mut editor = Editor::start(&shell, json!({}));
    let text = "let n = \"𝓝\";output y=n\n";
    assert_eq!(shell.feed(&["fmt"], text).stdout, "let n = \"𝓝\"\noutput y = n\n");
    editor.open(&model, text);
    let options = json!({ "tabSize": 4, "insertSpaces": true });
    let params = json!({ "textDocument": { "uri": model }, "options": options });
    let edits = editor.ask("textDocument/formatting", params.clone());
    assert_eq!(edits, json!([{ "range": range(0, 12, 22), "newText": "\noutput y = " }]));
    editor.edit(&model, 2, range(0, 12, 22), "\noutput y = ");
    assert_eq!(editor.ask("textDocument/formatting", params.clone()), json!([]));
    editor.edit(&model, 3, range(1, 11, 11), "(");
    assert_eq!(editor.ask("textDocument/formatting", params), Value::Null);
    assert_eq!(editor.end(), Some(0));
}

#[test]
fn positions_count_what_the_editor_offers() {
    let shell = files();
    let model = uri(&shell, "m.cem");
    let mut editor = Editor::start(&shell, json!({ "general": { "positionEncodings": ["utf-16", "utf-8"] } }));
    editor.open(&model, &shell.read("m.cem"));
    editor.edit(&model, 2, range(4, 31, 36), "takes");
    let wrong = editor.problems(&model);
    let found: Vec<_> = wrong.iter().map(|(code, place, _)| (code.as_str(), place.clone())).collect();
    if found != [("unknown-name", range(4, 31, 36))] {
        // The text was looked at once before it was changed.
        assert_eq!(editor.problems(&model)[0].1, range(4, 31, 36));
    }
    assert_eq!(editor.end(), Some(0));
}

#[test]
fn what_makes_no_sense_is_refused_and_the_server_goes_on() {
    let shell = files();
    let mut editor = Editor::start(&shell, json!({}));
    assert_eq!(editor.respond("textDocument/sing", json!({}))["error"]["code"], -32601);
    assert_eq!(editor.respond("textDocument/hover", json!({ "position": 3 }))["error"]["code"], -32602);
    editor.tell("textDocument/didOpen", json!({ "textDocument": 1 }));
    editor.tell("textDocument/paint", json!([]));
    // A text that is not open, and one that is in no file.
    assert_eq!(editor.at("textDocument/hover", "file:///no/where.cem", 3, 3), Value::Null);
    let untitled = "untitled:Untitled-1";
    editor.open(untitled, "use \"common.cem\"\noutput y = 1");
    assert_eq!(editor.codes(untitled), ["use"]);
    assert_eq!(editor.end(), Some(0));

    // Gone without a word.
    let mut editor = Editor::start(&shell, json!({}));
    editor.input = None;
    assert_eq!(editor.server.wait().expect("it ends").code(), Some(1));
}
