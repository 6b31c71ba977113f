//! The models of the folder while it changes: reloading, versions, broken files, and what the server tells about them.

use crate::support::{RATIO, Running};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, Ordering};

fn times(factor: i64) -> String {
    format!("input x: i64\noutput y = x * {factor}\ntest \"two\" {{ x = 2 }} => {{ y = {} }}", 2 * factor)
}

fn y(server: &Running, model: &str) -> Option<i64> {
    let reply = server.json(model, r#"{"x": 10}"#);
    if reply.status == 200 { reply.json()["y"].as_i64() } else { None }
}

fn shown(server: &Running, model: &str) -> Value {
    server.get(&format!("/v1/models/{model}")).json()
}

#[test]
fn a_model_is_shown_with_its_signature() {
    let text = "input x: i64\ninput z: f64? = 1.5\ninput l: [f64]\nlet unused = 1\noutput y = x\noutput s = sum(l) * z";
    let server = Running::with(&[("m.cem", text)], &[]);
    let found = shown(&server, "m");
    assert_eq!(found["name"], "m");
    assert_eq!(found["inputs"][0], json!({"name": "x", "type": "i64"}));
    assert_eq!(found["inputs"][1], json!({"name": "z", "type": "f64?", "default": 1.5}));
    assert_eq!(found["outputs"][0], json!({"name": "y", "type": "i64"}));
    assert_eq!((&found["warnings"][0]["code"], &found["warnings"][0]["line"]), (&json!("unused-let"), &json!(4)));
    let hash = found["hash"].as_str().unwrap();
    assert!(hash.len() == 16 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()));
    assert_eq!((&found["versions"], &found["failed"]), (&json!([hash]), &json!([])));
    assert!(found["loaded"].as_str().unwrap().starts_with("20"), "{found}");
    assert_eq!(shown(&server, &format!("m@{hash}"))["hash"], hash);
}

#[test]
fn a_changed_file_is_taken_and_old_versions_stay() {
    let server = Running::with(&[("m.cem", &times(1))], &[]);
    let mut hashes = vec![shown(&server, "m")["hash"].as_str().unwrap().to_owned()];
    for factor in 2..=5 {
        server.write("m.cem", &times(factor));
        server.until("the new model answers", || (y(&server, "m") == Some(10 * factor)).then_some(()));
        server.until("the version is kept", || {
            let hash = shown(&server, "m")["hash"].as_str().unwrap().to_owned();
            (shown(&server, "m")["versions"][0] == hash).then(|| hashes.push(hash))
        });
    }
    // The last four, by the hash or its first digits.
    for (factor, hash) in (1..=5).zip(&hashes) {
        let expected = (factor > 1).then_some(10 * factor);
        assert_eq!(y(&server, &format!("m@{hash}")), expected, "{factor}");
        assert_eq!(y(&server, &format!("m@{}", &hash[..8])), expected, "{factor}");
    }
    server.json("m@0000", "{}").problem(404, "model");
    server.json("m@0123456789abcdef", "{}").problem(404, "model");
    server.json("other@0123456789abcdef", "{}").problem(404, "model");
    let versions = shown(&server, "m")["versions"].clone();
    assert_eq!(versions, json!([hashes[4], hashes[3], hashes[2], hashes[1]]));
    // A text that comes back has its old hash.
    server.write("m.cem", &times(3));
    server.until("the old text answers", || (y(&server, "m") == Some(30)).then_some(()));
    assert_eq!(shown(&server, "m")["hash"], hashes[2]);
    std::fs::remove_file(server.path().join("m.cem")).unwrap();
    server.until("the model is gone", || (server.json("m", "{}").status == 404).then_some(()));
    server.until("its versions are gone", || {
        (server.json(&format!("m@{}", hashes[4]), "{}").status == 404).then_some(())
    });
    server.until("its labels are gone", || (!server.get("/metrics").text().contains("model=\"m\"")).then_some(()));
}

#[test]
fn a_broken_file_leaves_the_old_model() {
    let server = Running::with(&[("m.cem", &times(1)), ("broken.cem", "output y = 1 +")], &[]);
    let failed = |code: &str| {
        server.until("the problem is shown", || {
            let failed = shown(&server, "m")["failed"].clone();
            (failed[0]["code"] == code).then_some(failed)
        })
    };
    // Never served: the problem is the answer.
    let reply = server.json("broken", "{}");
    assert!(reply.problem(503, "invalid-model").contains("expected"), "{}", reply.text());
    assert_eq!(
        (&reply.json()["diagnostics"][0]["line"], &reply.json()["diagnostics"][0]["file"]),
        (&json!(1), &json!("broken.cem"))
    );
    for (text, code) in [
        ("input x: i64\noutput y = x *", "syntax"),
        ("input x: i64\noutput y = x * \"a\"", "type-mismatch"),
        ("input x: i64\noutput y = x * 7\ntest \"wrong\" { x = 2 } => { y = 15 }", "failed-test"),
        ("input x: i64\nlet z = x", "no-output"),
    ] {
        server.write("m.cem", text);
        let failed = failed(code);
        assert!(failed[0]["diagnostics"][0]["message"].as_str().is_some_and(|message| !message.is_empty()), "{failed}");
        assert_eq!(y(&server, "m"), Some(10), "{code}");
        let list = server.get("/v1/models").json();
        assert_eq!((&list["models"][0]["name"], &list["models"][0]["current"]), (&json!("m"), &json!(false)));
        assert_eq!(list["failed"].as_array().unwrap().len(), 2);
    }
    server.write("m.cem", &times(2));
    server.until("the sound text answers", || (y(&server, "m") == Some(20)).then_some(()));
    server.until("the problem is gone", || (shown(&server, "m")["failed"] == json!([])).then_some(()));
    let metrics = server.get("/metrics");
    assert!(metrics.text().contains("cembra_failed_files 1\n"), "{}", metrics.text());
}

#[test]
fn files_that_are_used_are_watched_too() {
    let model = "use \"part.cem\"\ninput x: i64\noutput y = x * factor";
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("parts")).unwrap();
    std::fs::write(folder.path().join("parts/part.cem"), "let factor = 2").unwrap();
    std::fs::write(folder.path().join("m.cem"), model.replace("part.cem", "parts/part.cem")).unwrap();
    let server = Running::over(folder, &[]);
    assert_eq!(y(&server, "m"), Some(20));
    let before = shown(&server, "m")["hash"].clone();
    std::fs::write(server.path().join("parts/part.cem"), "let factor = 3").unwrap();
    server.until("the new part is used", || (y(&server, "m") == Some(30)).then_some(()));
    assert_ne!(shown(&server, "m")["hash"], before);
    server.write("new.cem", &times(4));
    server.until("the new model answers", || (y(&server, "new") == Some(40)).then_some(()));
}

#[test]
fn no_request_fails_while_models_change() {
    let server = Running::with(&[("m.cem", &times(1))], &[]);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let requests: Vec<_> = (0..3)
            .map(|thread| {
                let (server, done) = (&server, &done);
                scope.spawn(move || {
                    let mut count = 0;
                    while !done.load(Ordering::Relaxed) {
                        let found = if thread == 0 {
                            let reply = server.post("m", "application/x-ndjson", "{\"x\": 10}\n".repeat(100));
                            assert_eq!(reply.status, 200, "{}", reply.text());
                            let lines: Vec<&str> = reply.text().lines().collect();
                            // All rows of a request are of one model.
                            assert!(
                                lines.len() == 100 && lines.iter().all(|line| *line == lines[0]),
                                "{}",
                                reply.text()
                            );
                            serde_json::from_str::<Value>(lines[0]).unwrap()["y"].as_i64()
                        } else {
                            y(server, "m")
                        };
                        assert!(found.is_some_and(|y| y % 10 == 0), "{found:?}");
                        count += 1;
                    }
                    count
                })
            })
            .collect();
        for factor in 2..=8 {
            if factor % 3 == 0 {
                server.write("m.cem", "output y =");
                server.until("the broken text is seen", || {
                    (!shown(&server, "m")["failed"].as_array().unwrap().is_empty()).then_some(())
                });
            }
            server.write("m.cem", &times(factor));
            server.until("the new model answers", || (y(&server, "m") == Some(10 * factor)).then_some(()));
        }
        done.store(true, Ordering::Relaxed);
        assert!(requests.into_iter().all(|thread| thread.join().unwrap() > 0));
    });
}

#[test]
fn metrics_count_and_have_no_label_of_a_client() {
    let server = Running::with(&[("ratio.cem", RATIO)], &[]);
    assert_eq!(server.json("ratio", r#"{"x": 1, "y": 1}"#).status, 200);
    assert_eq!(server.json("ratio", r#"{"x": 1, "y": 0}"#).status, 422);
    assert_eq!(server.json("ratio", r#"[{"x": 1, "y": 0}, {"x": 1, "y": 1}]"#).status, 200);
    for name in ["invented", "ratio@invented", "in%22vented", "../invented"] {
        assert_eq!(server.json(name, "{}").status, 404);
    }
    let own = server.host();
    server.raw(format!("INVENTED /invented HTTP/1.1\r\nHost: {own}\r\nConnection: close\r\n\r\n").as_bytes());
    let reply = server.until("the requests are counted", || {
        let reply = server.get("/metrics");
        reply.text().contains("cembra_requests_total{model=\"ratio\",status=\"200\"} 2\n").then_some(reply)
    });
    assert_eq!(reply.headers["content-type"], "application/openmetrics-text; version=1.0.0; charset=utf-8");
    let text = reply.text();
    for line in [
        "cembra_requests_total{model=\"ratio\",status=\"422\"} 1",
        "cembra_requests_total{model=\"\",status=\"404\"} 5",
        "cembra_errors_total{model=\"ratio\",code=\"div-by-zero\"} 2",
        "cembra_errors_total{model=\"\",code=\"model\"} 4",
        "cembra_rows_total{model=\"ratio\"} 3",
        "cembra_request_seconds_count{model=\"ratio\"} 3",
        "cembra_model_seconds_count{model=\"ratio\"} 3",
        "cembra_models 1",
        "cembra_failed_files 0",
        "# EOF",
    ] {
        assert!(text.lines().any(|one| one == line), "{line} is missing in\n{text}");
    }
    assert!(!text.to_lowercase().contains("invented"), "{text}");
    let bytes = text.lines().find_map(|line| line.strip_prefix("cembra_code_bytes ")).unwrap();
    assert!(bytes.parse::<u64>().unwrap() > 0);
    assert!(text.contains("cembra_compile_seconds{model=\"ratio\"} "));
}

#[test]
fn the_description_names_each_model() {
    let server = Running::with(&[("ratio.cem", RATIO), ("a model.cem", &times(3))], &[]);
    let reply = server.get("/v1/openapi.json");
    assert_eq!(reply.media_type, "application/json");
    let document = reply.json();
    assert_eq!(document["openapi"], "3.1.0");
    let paths = document["paths"].as_object().unwrap();
    for path in [
        "/v1/models/ratio",
        "/v1/models/a%20model",
        "/v1/models",
        "/healthz",
        "/readyz",
        "/metrics",
        "/v1/openapi.json",
    ] {
        assert!(paths.contains_key(path), "{path}");
    }
    assert_eq!(y(&server, "a%20model"), Some(30));
    let schema = &document["paths"]["/v1/models/ratio"]["post"]["requestBody"]["content"]["application/json"]["schema"];
    assert_eq!(schema["anyOf"][0]["required"], json!(["x", "y"]));
    assert_eq!(schema["anyOf"][0]["properties"]["x"]["type"], "integer");
    let responses = &document["paths"]["/v1/models/ratio"]["post"]["responses"];
    for status in ["200", "400", "403", "404", "406", "408", "413", "415", "421", "422", "429", "503"] {
        assert!(responses[status]["content"].is_object(), "{status}");
    }
    // Each reference leads somewhere, and each operation has a name of its own.
    let mut names = std::collections::BTreeSet::new();
    let mut open = vec![&document];
    while let Some(value) = open.pop() {
        if let Some(reference) = value["$ref"].as_str() {
            let target = document.pointer(reference.strip_prefix('#').unwrap());
            assert!(target.is_some(), "{reference}");
        }
        if let Some(name) = value["operationId"].as_str() {
            assert!(names.insert(name.to_owned()), "{name}");
        }
        open.extend(value.as_object().into_iter().flat_map(|object| object.values()));
        open.extend(value.as_array().into_iter().flatten());
    }
}
