//! Requests that are refused before any model sees them, by raw bytes where no client would send them.

use crate::support::{RATIO, Running, until_end};
use std::io::Write;

const ROW: &str = r#"{"x": 7, "y": 2}"#;

fn server(more: &[&str]) -> Running {
    Running::with(&[("ratio.cem", RATIO)], more)
}

/// A request to the model with these headers, which must have the end of the head.
fn request(host: &str, headers: &str, body: &str) -> Vec<u8> {
    format!("POST /v1/models/ratio HTTP/1.1\r\nHost: {host}\r\n{headers}\r\n{body}").into_bytes()
}

/// The statuses of all responses in `text`.
fn statuses(text: &str) -> Vec<&str> {
    text.split("HTTP/1.1 ").skip(1).filter_map(|one| one.get(..3)).collect()
}

#[test]
fn a_foreign_host_or_origin_is_refused() {
    let server = server(&["--host", "models.example", "--no-page"]);
    let (own, length) = (server.host(), ROW.len());
    let port = own.rsplit(':').next().unwrap();
    let status = |host: &str, more: &str| {
        let headers =
            format!("Content-Type: application/json\r\nConnection: close\r\n{more}Content-Length: {length}\r\n");
        let found = server.raw(&request(host, &headers, ROW));
        statuses(&found)[0].to_owned()
    };
    for host in [&own, &format!("localhost:{port}"), &format!("[::1]:{port}"), "models.example", "models.example:443"] {
        assert_eq!(status(host, ""), "200", "{host}");
        assert_eq!(status(host, &format!("Origin: http://{host}\r\n")), "200", "{host}");
        assert_eq!(status(host, "Origin: https://evil.example\r\n"), "403", "{host}");
        assert_eq!(status(host, "Origin: null\r\n"), "403", "{host}");
        assert_eq!(status(host, "Origin: http://localhost:1\r\n"), "403", "{host}");
    }
    for host in ["evil.example", &format!("evil.example:{port}"), "localhost:1", "", "127.0.0.1.evil.example"] {
        assert_eq!(status(host, ""), "421", "{host}");
    }
    assert_eq!(status(&own, &format!("Host: {own}\r\n")), "400");
    assert_eq!(statuses(&server.raw(b"GET /healthz HTTP/1.1\r\n\r\n")), ["400"]);
    let absolute = format!("GET http://evil.example/healthz HTTP/1.1\r\nHost: {own}\r\nConnection: close\r\n\r\n");
    assert_eq!(statuses(&server.raw(absolute.as_bytes())), ["421"]);
    let old = format!("GET /healthz HTTP/1.0\r\nHost: {own}\r\n\r\n");
    assert!(server.raw(old.as_bytes()).contains(" 505 "));
    let second = server.raw(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    assert!(!second.contains(" 200 "), "{second}");
    // No other page may read an answer.
    let reply = server.get("/v1/models");
    assert!(reply.headers.keys().all(|name| !name.as_str().starts_with("access-control")), "{:?}", reply.headers);
    for (name, value) in [
        ("x-content-type-options", "nosniff"),
        ("referrer-policy", "no-referrer"),
        ("cache-control", "no-store"),
        ("cross-origin-resource-policy", "same-origin"),
        ("cross-origin-opener-policy", "same-origin"),
        ("content-security-policy", "default-src 'none'; frame-ancestors 'none'"),
    ] {
        assert_eq!(reply.headers[name], value);
    }
}

#[test]
fn only_bodies_of_known_forms_are_read() {
    let server = server(&[]);
    for wrong in [
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "application/json; charset=utf-16",
        "application/problem+json",
    ] {
        server.post("ratio", wrong, ROW).problem(415, "media-type");
    }
    assert_eq!(server.post("ratio", "application/JSON; charset=UTF-8", ROW).status, 200);
    let (own, length) = (server.host(), ROW.len());
    let without = format!("Connection: close\r\nContent-Length: {length}\r\n");
    assert_eq!(statuses(&server.raw(&request(&own, &without, ROW))), ["415"]);
    let headers = [("content-type", "application/json"), ("content-encoding", "gzip")];
    server.post_with("/v1/models/ratio", &headers, ROW.as_bytes()).problem(415, "media-type");
    let headers = [("content-type", "application/json"), ("content-encoding", "identity")];
    assert_eq!(server.post_with("/v1/models/ratio", &headers, ROW.as_bytes()).status, 200);
    let headers = [("content-type", "application/json"), ("accept", "text/html")];
    server.post_with("/v1/models/ratio", &headers, ROW.as_bytes()).problem(406, "accept");
}

#[test]
fn two_lengths_are_never_accepted() {
    let server = server(&[]);
    let own = server.host();
    let json = "Content-Type: application/json\r\n";
    let smuggled = format!("GET /healthz HTTP/1.1\r\nHost: {own}\r\n\r\n");
    let chunked = format!("{:x}\r\n{ROW}\r\n0\r\n\r\n", ROW.len());
    let cases = [
        // The two lengths, in both orders; what follows would be a request of its own for one of two readers.
        (format!("{json}Content-Length: 6\r\nTransfer-Encoding: chunked\r\n"), format!("0\r\n\r\n{smuggled}")),
        (format!("{json}Transfer-Encoding: chunked\r\nContent-Length: 6\r\n"), format!("0\r\n\r\n{smuggled}")),
        (format!("{json}Content-Length: 16\r\ntransfer-encoding: chunked\r\n"), chunked.clone()),
        (format!("{json}Content-Length: 16\r\nContent-Length: 16\r\n"), ROW.to_owned()),
        (format!("{json}Content-Length: 16\r\nContent-Length: 17\r\n"), ROW.to_owned()),
        (format!("{json}Content-Length: +16\r\n"), ROW.to_owned()),
        (format!("{json}Content-Length: 0x10\r\n"), ROW.to_owned()),
        (format!("{json}Content-Length: 99999999999999999999\r\n"), ROW.to_owned()),
        (format!("{json}Content-Length : 16\r\n"), ROW.to_owned()),
        (format!("{json}Transfer-Encoding: gzip, chunked\r\n"), chunked.clone()),
        (format!("{json}Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"), chunked.clone()),
        (format!("{json}Transfer-Encoding: xchunked\r\n"), chunked.clone()),
        (format!("{json}Transfer-Encoding: identity\r\n"), ROW.to_owned()),
        (format!("{json}Transfer-Encoding : chunked\r\n"), chunked.clone()),
        (format!("{json}X: y\r\n folded\r\nContent-Length: 16\r\n"), ROW.to_owned()),
        (format!("{json}Content-Length: 16\n"), ROW.to_owned()),
        // Bad chunks.
        (format!("{json}Transfer-Encoding: chunked\r\n"), "zz\r\n{}\r\n0\r\n\r\n".to_owned()),
        (format!("{json}Transfer-Encoding: chunked\r\n"), "-1\r\n{}\r\n0\r\n\r\n".to_owned()),
        (format!("{json}Transfer-Encoding: chunked\r\n"), "ffffffffffffffffff\r\n{}\r\n0\r\n\r\n".to_owned()),
        (format!("{json}Transfer-Encoding: chunked\r\n"), format!("2\r\n{ROW}\r\n0\r\n\r\n")),
    ];
    for (headers, body) in cases {
        let found = server.raw(&request(&own, &headers, &body));
        assert_eq!(statuses(&found), ["400"], "{headers:?}: {found}");
    }
    // Sound requests, one after the other; after a body of chunks the connection ends, and what follows is not answered.
    let headers = format!("{json}Transfer-Encoding: chunked\r\n");
    let found = server.raw(&[request(&own, &headers, &chunked), smuggled.clone().into_bytes()].concat());
    assert_eq!(statuses(&found), ["200"], "{found}");
    let headers = format!("{json}Content-Length: {}\r\n", ROW.len());
    let last = format!("GET /healthz HTTP/1.1\r\nHost: {own}\r\nConnection: close\r\n\r\n");
    let found = server.raw(&[request(&own, &headers, ROW), request(&own, &headers, ROW), last.into_bytes()].concat());
    assert_eq!(statuses(&found), ["200", "200", "200"], "{found}");
    // A request in a body is data.
    let headers = format!("{json}Connection: close\r\nContent-Length: {}\r\n", smuggled.len());
    assert_eq!(statuses(&server.raw(&request(&own, &headers, &smuggled))), ["400"]);
}

#[test]
fn huge_heads_are_refused() {
    let server = server(&[]);
    let own = server.host();
    let large = "a".repeat(100_000);
    let found = server.raw(format!("GET /healthz HTTP/1.1\r\nHost: {own}\r\nX: {large}\r\n\r\n").as_bytes());
    assert_eq!(statuses(&found), ["431"]);
    let found = server.raw(format!("GET /{large} HTTP/1.1\r\nHost: {own}\r\n\r\n").as_bytes());
    assert!(["414", "431"].contains(&statuses(&found)[0]), "{found}");
    let many = "X: y\r\n".repeat(1000);
    let found = server.raw(format!("GET /healthz HTTP/1.1\r\nHost: {own}\r\n{many}\r\n").as_bytes());
    assert_eq!(statuses(&found), ["431"]);
    for bytes in ["\0\0\0\0\r\n\r\n", "GET\r\n\r\n", "GET / HTTP/3.0\r\n\r\n", "\x16\x03\x01\x02\x00\x01\x00\r\n\r\n"] {
        let found = server.raw(bytes.as_bytes());
        assert_eq!(statuses(&found), ["400"], "{bytes:?}: {found}");
    }
    assert_eq!(server.get("/healthz").text(), "ok\n");
}

#[test]
fn a_token_is_demanded_where_one_is_given() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("token");
    std::fs::write(&file, "0123456789abcdef\n").unwrap();
    let server = server(&["--token-file", file.to_str().unwrap()]);
    assert_eq!(server.get("/healthz").status, 200);
    let wrong = ["Bearer 0123456789abcdeg", "Bearer", "Bearer ", "Basic 0123456789abcdef", "0123456789abcdef", "x"];
    for path in [
        "/",
        "/v1/models",
        "/v1/models/ratio",
        "/v1/models/none",
        "/metrics",
        "/readyz",
        "/v1/openapi.json",
        "/nothing",
    ] {
        let reply = server.get(path);
        reply.problem(401, "token");
        assert_eq!(reply.headers["www-authenticate"], "Bearer");
        for wrong in wrong {
            server.get_with(path, &[("authorization", wrong)]).problem(401, "token");
        }
    }
    let headers = [("content-type", "application/json"), ("authorization", "bearer 0123456789abcdef")];
    assert_eq!(server.post_with("/v1/models/ratio", &headers, ROW.as_bytes()).status, 200);
}

#[test]
fn the_page_needs_its_own_token() {
    let server = server(&[]);
    let page = server.get("/");
    assert_eq!((page.status, &*page.media_type), (200, "text/html"));
    assert!(page.headers["content-security-policy"].to_str().unwrap().ends_with("; frame-ancestors 'none'"));
    let json = ("content-type", "application/json");
    for path in ["/page/explain", "/page/rows", "/page/plot", "/page/lsp"] {
        server.post_with(path, &[json], b"{}").problem(403, "page-token");
        server.post_with(path, &[json, ("x-cembra-token", "wrong")], b"{}").problem(403, "page-token");
        assert_eq!(server.get(path).status, 405);
    }
    server.get("/page/models").problem(403, "page-token");
    server.get("/page/models/ratio").problem(403, "page-token");
    // The token is in the page, 64 digits.
    let token = page.text().split(|sign: char| !sign.is_ascii_hexdigit()).find(|word| word.len() == 64).unwrap();
    let own = ("x-cembra-token", token);
    assert_eq!(server.get_with("/page/models", &[own]).text(), r#"{"models":[{"name":"ratio"}]}"#);
    assert_eq!(server.get_with("/page/models/ratio", &[own]).json()["text"], RATIO);
    server.get_with("/page/models/none", &[own]).problem(404, "model");
    // The page itself answers, or tells that it cannot yet.
    let reply = server.post_with("/page/explain", &[own, json], br#"{"text": "input x: f64; x"}"#);
    assert!(reply.status == 200 || reply.media_type == "application/problem+json", "{}", reply.text());
    server.post_with("/page/explain", &[own, ("content-type", "text/plain")], b"{}").problem(415, "media-type");
    let large = vec![b' '; (1 << 20) + 1];
    server.post_with("/page/explain", &[own, json], &large).problem(413, "body-limit");
    let off = self::server(&["--no-page"]);
    off.get("/").problem(404, "path");
    off.get_with("/page/models", &[own]).problem(404, "path");
}

#[test]
fn unknown_paths_and_methods_are_told() {
    let server = server(&[]);
    server.get("/nothing").problem(404, "path");
    server.get("/v1/models/none").problem(404, "model");
    server.json("none", ROW).problem(404, "model");
    server.get("/v1/models/%ff").problem(404, "model");
    let own = server.host();
    for (method, path, allow) in [
        ("POST", "/healthz", "GET, HEAD"),
        ("DELETE", "/v1/models/ratio", "GET, HEAD, POST"),
        ("OPTIONS", "/v1/models/ratio", "GET, HEAD, POST"),
        ("TRACE", "/v1/models", "GET, HEAD"),
        ("BREW", "/", "GET, HEAD"),
    ] {
        let bytes = format!("{method} {path} HTTP/1.1\r\nHost: {own}\r\nConnection: close\r\n\r\n");
        let found = server.raw(bytes.as_bytes());
        assert!(found.starts_with("HTTP/1.1 405 ") && found.contains(&format!("allow: {allow}\r\n")), "{found}");
    }
    let head = format!("HEAD /v1/models HTTP/1.1\r\nHost: {own}\r\nConnection: close\r\n\r\n");
    let found = server.raw(head.as_bytes());
    assert!(found.starts_with("HTTP/1.1 200 ") && found.ends_with("\r\n\r\n"), "{found}");
}

#[test]
fn a_connection_stays_open_between_requests() {
    let server = server(&[]);
    let own = server.host();
    let mut socket = server.socket();
    let health = format!("GET /healthz HTTP/1.1\r\nHost: {own}\r\n\r\n");
    let refused = format!("GET /healthz HTTP/1.1\r\nHost: {own}\r\nOrigin: http://evil.example\r\n\r\n");
    for bytes in [&health, &health, &refused] {
        socket.write_all(bytes.as_bytes()).unwrap();
    }
    assert_eq!(statuses(&until_end(&mut socket)), ["200", "200", "403"]);
}
