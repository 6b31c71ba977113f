//! Tests of the page's data: the links between stages, the answers to a visitor, and foreign texts.

use crate::{Action, Terms, file_document, respond, server_document};
use cembra::program::{Folder, Sources};
use cembra::{Cancellation, Limits, Options};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::Duration;

/// The answer to a request about a text, with the status of a refusal.
fn ask(action: Action, request: &Value) -> Result<Value, (u16, String)> {
    let (limits, cancellation) = (Limits::default(), Cancellation::new());
    let terms =
        Terms { limits: &limits, time_limit: Duration::from_secs(5), cancellation: &cancellation, folder: None };
    respond(action, request.to_string().as_bytes(), &terms)
        .map(|answer| serde_json::from_slice(&answer).expect("JSON"))
        .map_err(|refusal| (refusal.status, refusal.detail))
}

fn explained(text: &str) -> Value {
    ask(Action::Explain, &json!({ "text": text })).expect("an answer")
}

fn array(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

/// The lines of the stage `name` that come from the node with the text `written`.
fn lines_of<'d>(data: &'d Value, name: &str, written: &str) -> Vec<&'d str> {
    let text = data["text"].as_str().expect("a text");
    let at = text.find(written).expect("it is in the text");
    let span = json!([at, at + written.len()]);
    let nodes: BTreeSet<u64> = array(&data["nodes"])
        .iter()
        .filter(|node| array(&node["spans"]).contains(&span))
        .filter_map(|node| node["id"].as_u64())
        .collect();
    assert!(!nodes.is_empty(), "no node is at {written}");
    let stage = array(&data["stages"]).iter().find(|stage| stage["name"] == name);
    let stage = stage.unwrap_or_else(|| panic!("there is no stage {name}"));
    let is_of = |line: &&Value| array(&line["n"]).iter().filter_map(Value::as_u64).any(|node| nodes.contains(&node));
    array(&stage["lines"]).iter().filter(is_of).filter_map(|line| line["t"].as_str()).collect()
}

#[test]
fn an_operator_is_in_each_stage_of_a_model_of_scalars() {
    let data = explained("input x, y: f64\nlet p = x * y\noutput z = if p > 1.0 then p // y else 0.5");
    for (operator, plan, tape, code) in
        [("x * y", "math.multiply", "Mul", "fmul"), ("p > 1.0", "core.greater", "Gt", "fcmp gt")]
    {
        let own = |stage| lines_of(&data, stage, operator);
        assert!(!own("passes: types").is_empty(), "{operator}");
        assert!(own("prepared").iter().all(|line| line.contains(" = ")), "{operator}");
        assert_eq!(own("plan").iter().filter(|line| line.contains(plan)).count(), 1, "{operator}: {:?}", own("plan"));
        assert!(own("clif").iter().any(|line| line.contains(code)), "{operator}: {:?}", own("clif"));
        assert!(own("lanes").iter().any(|line| line.contains(tape)), "{operator}: {:?}", own("lanes"));
    }
    if cfg!(target_arch = "x86_64") {
        assert!(lines_of(&data, "asm", "x * y").iter().any(|line| line.contains("mulsd")));
    }
    // The conditional is its jumps.
    let conditional = "if p > 1.0 then p // y else 0.5";
    assert!(lines_of(&data, "plan", conditional).iter().any(|line| line.starts_with("jump_if_not<")));
    let frame = &data["frame"];
    let slots = array(&frame["slots"]);
    assert_eq!(slots.iter().filter(|slot| slot["n"] == json!([])).count(), 4, "two inputs, two literals");
    let product = slots.iter().find(|slot| slot["what"] == "math.multiply").expect("a slot");
    assert!(product["from"].as_u64() < product["to"].as_u64() && product["bytes"] == 8);
    assert!(slots.iter().all(|slot| slot["to"].as_u64() <= frame["steps"].as_u64()));
}

/// Steps beyond the tenth show whether a step's number is read as it is written.
#[test]
fn steps_of_longer_plans_are_linked() {
    let sums: String = (1..30).map(|at| format!("let s{at} = exp(s{} + {at}.5)\n", at - 1)).collect();
    let data = explained(&format!("input s0: f64\n{sums}output y = s29 * s28"));
    for at in [9, 10, 11, 17, 26] {
        let sum = format!("s{} + {at}.5", at - 1);
        let own = lines_of(&data, "clif", &sum);
        assert!(own.iter().filter(|line| line.contains("fadd")).count() == 1, "{sum}: {own:?}");
        let own = lines_of(&data, "lanes", &sum);
        assert!(own.iter().filter(|line| line.contains("Add")).count() == 1, "{sum}: {own:?}");
    }
}

#[test]
fn arrays_and_tensors_are_linked() {
    let arrays = explained("input xs: [f64]\noutput s = sum(xs * 2.0)\noutput m = max(xs)");
    for stage in ["arrays", "lanes", "prepared"] {
        assert!(!lines_of(&arrays, stage, "xs * 2.0").is_empty(), "{stage}");
        assert!(lines_of(&arrays, stage, "max(xs)").iter().any(|line| line.contains("math.max")), "{stage}");
    }
    let tensors = explained("input a, b: tensor[f64, 2]\nc(\"i,k\") = a(\"i,j\") * b(\"j,k\")\noutput d = exp(c) + a");
    assert_eq!(array(&tensors["diagnostics"]), &[] as &[Value], "{tensors}");
    assert!(lines_of(&tensors, "tensors", "exp(c)").iter().any(|line| line.contains("exp")), "{tensors}");
    let tiled = explained(
        "tile i, j, k = 50\ninput a: tiled[f64, \"i,j\"]\nb(\"i,j\") = 2.0 * a(\"i,k\") * a(\"k,j\") - a(\"i,j\")",
    );
    let rows = array(&tiled["work"]["rows"]);
    assert!(rows.iter().any(|row| row["cells"][0] == "product" && row["n"] != json!([])), "{tiled}");
}

#[test]
fn rows_and_plots_are_evaluated_and_say_what_fails() {
    let text = "input n: i64\ninput name: text?\noutput y = 12 // n\noutput who = name ?? \"nobody\"";
    let rows = json!([["5", "Ann"], ["0", null], ["x", null], [null, null], ["-5", "\"a b\""]]);
    let found = ask(Action::Rows, &json!({ "text": text, "rows": rows })).expect("rows");
    assert_eq!((&found["inputs"], &found["outputs"]), (&json!(["n", "name"]), &json!(["y", "who"])));
    let outs: Vec<&Value> = array(&found["rows"]).iter().map(|row| &row["out"]).collect();
    assert_eq!(outs, [&json!(["2", "Ann"]), &json!([]), &json!([]), &json!([]), &json!(["-3", "a b"])]);
    let errors: Vec<Option<&str>> = array(&found["rows"]).iter().map(|row| row["error"].as_str()).collect();
    assert_eq!(errors[1], Some("math.floor_divide: division by zero"));
    assert_eq!(errors[2], Some("input `n` is i64, found `x`"));
    assert_eq!(errors[3], Some("input `n` is i64 and must not be missing"));

    let plot = json!({ "text": text, "input": "n", "output": "y", "row": ["6", null] });
    let plot = ask(Action::Plot, &plot).expect("a plot");
    let points = array(&plot["points"]);
    assert_eq!((&points[0], &points[12]), (&json!([0.0, null]), &json!([12.0, 1.0])), "a gap where a row fails");
    let (status, detail) =
        ask(Action::Plot, &json!({ "text": text, "input": "name", "output": "y" })).expect_err("a text");
    assert_eq!((status, &*detail), (400, "input `n` is i64 and must not be missing"));
    let (status, _) =
        ask(Action::Rows, &json!({ "text": "input x: f64; x +", "rows": [] })).expect_err("a broken text");
    assert_eq!(status, 422);
    assert_eq!(ask(Action::Rows, &json!({ "rows": 1 })).expect_err("no request").0, 400);
}

#[test]
fn problems_are_at_their_places_and_tests_tell_their_branches() {
    let broken = explained("# 😀\ninput x: f64\noutput y = x + nothing_of_this");
    let problem = &array(&broken["diagnostics"])[0];
    let from = "# 😀\ninput x: f64\noutput y = x + ".encode_utf16().count();
    assert_eq!((problem["from"].as_u64(), &problem["severity"]), (Some(from as u64), &json!("error")));
    assert_eq!((array(&broken["stages"]).len(), &broken["rows"]), (0, &Value::Null));

    let tested = explained(
        "input x: f64\noutput y = if x > 0.0 then 1.0 else 2.0\ntest \"up\" { x = 1.5 } => { y = 1.0 }\ntest \"down\" { x = 3 } => { y = 2.0 }",
    );
    let tests = array(&tested["tests"]);
    assert_eq!(tests.iter().map(|test| &test["passed"]).collect::<Vec<_>>(), [&json!(true), &json!(false)]);
    assert_eq!(tests[1]["message"], "`y` must be 2.0, but is 1.0");
    let untaken = array(&tested["coverage"]).iter().find(|branch| branch["taken"] == false).expect("a branch");
    assert_eq!(untaken["message"], "the `else` branch is never taken");
    assert_eq!(tested["rows"]["rows"][0]["in"], json!(["1.5"]), "a sample row is that of a test");
}

#[test]
fn the_editor_is_answered_by_the_language_server() {
    let lsp = |text: &str, method: &str, params: Value| {
        ask(Action::Lsp, &json!({ "text": text, "method": method, "params": params }))
    };
    let at = |line: u32, character: u32| json!({ "position": { "line": line, "character": character } });
    let found = lsp("input x: f64\noutput y = math.ex", "textDocument/completion", at(1, 18)).expect("completions");
    let labels = array(&found["result"]["items"]).iter().filter_map(|item| item["label"].as_str());
    assert!(labels.into_iter().any(|label| label.contains("exp")), "{found}");
    let hover = lsp("input x: f64\noutput y = x", "textDocument/hover", at(1, 11)).expect("a hover");
    assert!(hover["result"]["contents"]["value"].as_str().is_some_and(|text| text.contains("input x: f64")));
    let edits = lsp("input x:f64\noutput y=x", "textDocument/formatting", json!({})).expect("edits");
    assert!(!array(&edits["result"]).is_empty());
    assert_eq!(lsp("x", "workspace/executeCommand", json!({})).expect_err("another method").0, 400);
    // A text of the page reads no file of the server, neither here nor in a stage.
    for text in ["use \"etc/passwd\"\noutput x = 1", "table t: text -> text = \"/etc/passwd\"\noutput x = 1"] {
        let problems = explained(text);
        assert!(problems["diagnostics"].to_string().contains("no folder is served"), "{problems}");
        let hover = lsp(text, "textDocument/hover", at(0, 10)).expect("an answer").to_string();
        assert!(!hover.contains("root:"), "{hover}");
    }
}

#[test]
fn foreign_texts_end_no_script_and_folders_are_not_shown() {
    let text = "# </script><script>alert(1)</script> <!-- {{script}}\ninput x: f64\noutput y = x";
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("rate.cem"), "let rate = 2.0").expect("a file");
    let limits = Limits::default();
    let text = format!("use \"rate.cem\"\n{text} * rate");
    let sources = Sources::gather("price.cem", text, &limits, &Folder::new(folder.path(), limits.source_bytes));
    let page = file_document(&sources, Some(folder.path()), &Options::default(), &limits);
    assert!(page.html.contains("\\u003c/script>\\u003cscript>alert(1)"));
    assert!(!page.html.contains("<script>alert") && !page.html.contains("<!-- {{"));
    assert!(!page.html.contains(&folder.path().display().to_string()), "the page shows a folder of this machine");
    assert!(page.html.contains("{{script}}"), "a mark in the data is only text");
    assert!(page.html.contains(&page.policy), "a file states its policy itself");
    assert!(page.policy.starts_with("default-src 'none'"));
    assert!(server_document("secret").html.contains("\"token\":\"secret\""));
    assert!(page.html.contains("\"server\":null"));
}

#[test]
fn machine_code_of_large_plans_is_left_out_in_words() {
    let terms: Vec<String> = (0..2_100).map(|n| format!("exp(x + {n}.5)")).collect();
    let data = explained(&format!("input x: f64\noutput y = {}", terms.join(" + ")));
    let stage = array(&data["stages"]).iter().find(|stage| stage["name"] == "asm").expect("the stage");
    assert!(stage["note"].as_str().is_some_and(|note| note.contains("at most 2000")), "{}", stage["note"]);
    assert_eq!(array(&stage["lines"]).len(), 0);
}

/// The language server of the page has the limits of the visitor, finds the files of a folder that is given by a relative path, and does not show where
/// the folder is.
#[test]
fn the_language_server_keeps_to_the_terms() {
    let here = std::env::current_dir().expect("a folder");
    let folder = tempfile::tempdir_in(&here).expect("a folder");
    std::fs::write(folder.path().join("rate.cem"), "let rate = 2.0").expect("a file");
    let relative = folder.path().strip_prefix(&here).expect("it is inside");
    let hover = |limits: &Limits| {
        let cancellation = Cancellation::new();
        let time_limit = Duration::from_secs(5);
        let terms = Terms { limits, time_limit, cancellation: &cancellation, folder: Some(relative) };
        let at = |character: u32| json!({ "position": { "line": 0, "character": character } });
        let text = "use \"rate.cem\"\ninput x: f64\noutput y = x * rate";
        let request = |params| json!({ "text": text, "method": "textDocument/hover", "params": params }).to_string();
        let answer = |params| respond(Action::Lsp, request(params).as_bytes(), &terms).expect("an answer");
        let rate = json!({ "position": { "line": 2, "character": 16 } });
        [answer(at(6)), answer(rate)].map(|answer| String::from_utf8(answer).expect("JSON"))
    };
    let [file, rate] = hover(&Limits::default());
    assert!(file.contains("the file `rate.cem`"), "{file}");
    assert!(rate.contains("let rate: f64"), "{rate}");
    assert!(!file.contains(&here.display().to_string()), "{file}");
    let [_, beyond] = hover(&Limits::default().source_bytes(20));
    assert!(!beyond.contains("let rate"), "a text beyond the limit is not read: {beyond}");
}
