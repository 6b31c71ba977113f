//! A server for each test, in the process of the test, and a client for it.

use cembra_serve::{Arguments, Server, Settings};
use clap::Parser;
use serde_json::Value;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use ureq::Agent;

/// The longest time that a test waits for something to happen.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A model of rows that fail for `y = 0`.
pub(crate) const RATIO: &str =
    "input x, y: i64\noutput quotient = x // y\noutput label: text = if x > y then \"more\" else \"less\"";

/// A model that takes about 100 ns for each of `n` rounds.
pub(crate) const LONG: &str = "input n: i64
fn f(x: f64): f64 = sin(x) + sin(x + 1.0) + sin(x + 2.0) + sin(x + 3.0) + sin(x + 4.0) + sin(x + 5.0) + sin(x + 6.0)
output sum = seq.reduce(fn(s, i) = s + f(to_float64(i)), seq.range(n), 0.0)";

/// A server and the folder of its models.
pub(crate) struct Running {
    pub(crate) server: Option<Server>,
    pub(crate) folder: TempDir,
    pub(crate) agent: Agent,
    pub(crate) base: String,
}

/// An answer to a request.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) media_type: String,
    pub(crate) headers: ureq::http::HeaderMap,
    pub(crate) body: Vec<u8>,
}

impl Reply {
    pub(crate) fn text(&self) -> &str {
        str::from_utf8(&self.body).unwrap()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {:?}", self.text()))
    }

    /// Asserts that this is a problem with a status and a code, and returns its message.
    pub(crate) fn problem(&self, status: u16, code: &str) -> String {
        let text = String::from_utf8_lossy(&self.body);
        assert_eq!((self.status, &*self.media_type), (status, "application/problem+json"), "{text}");
        let problem = self.json();
        assert_eq!((problem["status"].as_u64(), problem["code"].as_str()), (Some(status.into()), Some(code)), "{text}");
        assert_eq!(problem["type"], format!("urn:cembra:problem:{code}"));
        assert!(problem["title"].as_str().is_some_and(|title| !title.is_empty()));
        let detail = problem["detail"].as_str().unwrap_or_default().to_owned();
        assert!(detail.len() > 8, "{text}");
        detail
    }
}

impl Running {
    /// Starts a server with these models, and waits until they are loaded.
    pub(crate) fn with(models: &[(&str, &str)], more: &[&str]) -> Running {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in models {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        Running::over(folder, more)
    }

    pub(crate) fn over(folder: TempDir, more: &[&str]) -> Running {
        let running = Running::unready(folder, more);
        running.until("the models are loaded", || {
            let headers: &[(&str, &str)] = &[("authorization", "Bearer 0123456789abcdef")];
            (running.get_with("/readyz", headers).status == 200).then_some(())
        });
        running
    }

    /// Starts a server without waiting for its models.
    pub(crate) fn unready(folder: TempDir, more: &[&str]) -> Running {
        let path = folder.path().to_str().unwrap().to_owned();
        let mut all = vec!["cembra-serve", &path, "--listen", "127.0.0.1:0"];
        if !more.contains(&"--threads") {
            all.extend(["--threads", "2"]);
        }
        all.extend(more);
        let arguments = Arguments::try_parse_from(all).unwrap();
        let server = Server::start(Settings::of(arguments).unwrap()).unwrap();
        let base = format!("http://{}", server.address());
        let agent = Agent::config_builder()
            .http_status_as_error(false)
            .timeout_global(Some(PATIENCE))
            .max_redirects(0)
            .build()
            .new_agent();
        Running { server: Some(server), folder, agent, base }
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        // As editors do it, so that no half of a file is ever read.
        let place = self.folder.path().join(name);
        let new = self.folder.path().join(format!(".{name}.new"));
        std::fs::write(&new, text).unwrap();
        std::fs::rename(new, place).unwrap();
    }

    /// Waits until `found` returns a value.
    pub(crate) fn until<T>(&self, what: &str, mut found: impl FnMut() -> Option<T>) -> T {
        let start = Instant::now();
        loop {
            if let Some(found) = found() {
                return found;
            }
            assert!(start.elapsed() < PATIENCE, "waited too long until {what}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    pub(crate) fn get(&self, path: &str) -> Reply {
        self.get_with(path, &[])
    }

    pub(crate) fn get_with(&self, path: &str, headers: &[(&str, &str)]) -> Reply {
        let mut request = self.agent.get(format!("{}{path}", self.base));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        reply(request.call().unwrap())
    }

    /// Sends rows in a form, and asks for the same form.
    pub(crate) fn post(&self, model: &str, media_type: &str, body: impl AsRef<[u8]>) -> Reply {
        self.post_with(&format!("/v1/models/{model}"), &[("content-type", media_type)], body.as_ref())
    }

    pub(crate) fn json(&self, model: &str, body: &str) -> Reply {
        self.post(model, "application/json", body)
    }

    pub(crate) fn post_with(&self, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Reply {
        let mut request = self.agent.post(format!("{}{path}", self.base));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        reply(request.send(body).unwrap())
    }

    /// A connection for bytes that no client would send.
    pub(crate) fn socket(&self) -> TcpStream {
        let socket = TcpStream::connect(self.server.as_ref().unwrap().address()).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        socket.set_write_timeout(Some(PATIENCE)).unwrap();
        socket
    }

    /// Sends bytes, and returns all that comes back until the server closes the connection.
    pub(crate) fn raw(&self, bytes: &[u8]) -> String {
        let mut socket = self.socket();
        socket.write_all(bytes).unwrap();
        until_end(&mut socket)
    }

    /// The name of the server as `Host` has it.
    pub(crate) fn host(&self) -> String {
        self.server.as_ref().unwrap().address().to_string()
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// Reads a socket to its end.
pub(crate) fn until_end(socket: &mut TcpStream) -> String {
    let mut found = Vec::new();
    match socket.read_to_end(&mut found) {
        Ok(_) => {}
        // A reset after the answer is an end, too; a timeout is not.
        Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset, "{error}"),
    }
    String::from_utf8_lossy(&found).into_owned()
}

fn reply(mut response: ureq::http::Response<ureq::Body>) -> Reply {
    let media_type = response.headers().get("content-type").and_then(|value| value.to_str().ok()).unwrap_or_default();
    let media_type = media_type.split(';').next().unwrap_or_default().to_owned();
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    let body = response.body_mut().with_config().limit(1 << 30).read_to_vec().unwrap();
    Reply { status, media_type, headers, body }
}
