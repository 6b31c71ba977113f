//! The answers of the language server for the page's editor. Each request opens the text in a language server of its own and asks one question, so that
//! the page needs no state here.

use crate::data::HoverView;
use crate::text::Units;
use cembra::Limits;
use cembra::program::Sources;
use cembra_lsp::uri_of;
use lsp_server::{Connection, Message, Notification, Request, Response};
use serde_json::{Value, json};
use std::path::{Path, absolute};

/// The methods that the page may ask for.
const METHODS: [&str; 5] = [
    "textDocument/completion",
    "completionItem/resolve",
    "textDocument/hover",
    "textDocument/formatting",
    "textDocument/signatureHelp",
];

/// The address of the page's text, if it is in no folder. A text without a file cannot use files.
const ADDRESS: &str = "untitled:page.cem";

/// Answers the request `method`, such as a completion, about `text`. `None` if the page may not use this method, or if the language server does not
/// answer. The text is read within `limits`, and may use the files of `folder`.
pub(crate) fn answer(text: &str, folder: Option<&Path>, limits: &Limits, method: &str, params: Value) -> Option<Value> {
    METHODS.contains(&method).then_some(())?;
    let mut answers = ask(text, folder, limits, vec![(method.to_owned(), params)]);
    answers.pop()
}

/// The hover texts of a model whose page has no server, for the byte offsets `places` in the main text.
pub(crate) fn hovers(
    sources: &Sources,
    folder: Option<&Path>,
    limits: &Limits,
    places: &[usize],
    units: &Units,
) -> Vec<HoverView> {
    let text = sources.main();
    let question = |place: &usize| {
        let before = &text[..*place];
        let line = before.matches('\n').count();
        let start = before.rfind('\n').map_or(0, |end| end + 1);
        let character = units.before(*place) - units.before(start);
        ("textDocument/hover".to_owned(), json!({ "position": { "line": line, "character": character } }))
    };
    let answers = ask(text, folder, limits, places.iter().map(question).collect());
    let mut starts = vec![0];
    starts.extend(text.match_indices('\n').map(|(at, _)| units.before(at + 1)));
    let offset =
        |place: &Value| Some(starts.get(place["line"].as_u64()? as usize)? + place["character"].as_u64()? as usize);
    let mut shown: Vec<HoverView> = Vec::new();
    for answer in answers {
        let hover = || {
            let (from, to) = (offset(&answer["range"]["start"])?, offset(&answer["range"]["end"])?);
            Some(HoverView {
                range: crate::text::Range { from, to },
                text: answer["contents"]["value"].as_str()?.to_owned(),
            })
        };
        shown.extend(hover().filter(|hover| shown.iter().all(|known| known.range != hover.range)));
    }
    shown
}

/// An answer with the names of files in `folder`, but without the folder itself: a page is shown to others.
fn without_folder(answer: Value, folder: &Path) -> Value {
    let text = answer.to_string().replace(&format!("{}/", folder.display()), "");
    // A text of JSON stays one if a path in its strings becomes shorter.
    serde_json::from_str(&text).unwrap_or_default()
}

/// Opens `text` in a language server, and returns the answers to `questions` (methods and their parameters, which need not name the text). A question
/// that fails has the answer null; after a failure of the server the remaining answers are left out.
fn ask(text: &str, folder: Option<&Path>, limits: &Limits, questions: Vec<(String, Value)>) -> Vec<Value> {
    let folder = folder.and_then(|folder| absolute(folder).ok());
    let file = folder.as_ref().and_then(|folder| uri_of(&folder.join("page.cem").display().to_string()));
    let address = file.map_or_else(|| ADDRESS.to_owned(), |address| address.as_str().to_owned());
    let (server, client) = Connection::memory();
    std::thread::scope(|scope| {
        // The language server ends when the client's connection is dropped; its error then says only that.
        let _served = scope.spawn(move || cembra_lsp::serve(&server, limits).is_ok());
        let mut answers = Vec::with_capacity(questions.len());
        let exchange = |client: &Connection, answers: &mut Vec<Value>| -> Option<()> {
            let ask = |id: i32, method: &str, params: Value| -> Option<Response> {
                client.sender.send(Request::new(id.into(), method.to_owned(), params).into()).ok()?;
                loop {
                    match client.receiver.recv().ok()? {
                        Message::Response(response) if response.id == id.into() => return Some(response),
                        _ => {}
                    }
                }
            };
            let tell = |method: &str, params: Value| {
                client.sender.send(Notification::new(method.to_owned(), params).into()).ok()
            };
            ask(0, "initialize", json!({ "capabilities": {} }))?;
            tell("initialized", json!({}))?;
            let document = json!({ "uri": address, "languageId": "cem", "version": 1, "text": text });
            tell("textDocument/didOpen", json!({ "textDocument": document }))?;
            for (id, (method, mut params)) in (1..).zip(questions) {
                if method != "completionItem/resolve" {
                    params["textDocument"] = json!({ "uri": address });
                }
                if method == "textDocument/formatting" {
                    params["options"] = json!({ "tabSize": 4, "insertSpaces": true });
                }
                answers.push(ask(id, &method, params)?.response_result.unwrap_or_default());
            }
            Some(())
        };
        let _ended = exchange(&client, &mut answers);
        drop(client);
        match &folder {
            Some(folder) => answers.into_iter().map(|answer| without_folder(answer, folder)).collect(),
            None => answers,
        }
    })
}
