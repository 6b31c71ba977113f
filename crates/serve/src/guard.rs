//! The checks that come before any work: a request must be for this server, must not come from a foreign web page, and must have the token. The
//! limits on bodies, rows and times are enforced where bodies are read and rows are evaluated.

use crate::arguments::{Settings, Token};
use crate::problem::Problem;
use hyper::header::{
    AUTHORIZATION, CONTENT_ENCODING, CONTENT_TYPE, HOST, HeaderMap, HeaderName, ORIGIN, TRANSFER_ENCODING,
};
use hyper::http::request::Parts;
use hyper::{StatusCode, Version};

/// The header in which the server's web page sends its token, to show that the request comes from this page.
pub(crate) const PAGE_TOKEN: HeaderName = HeaderName::from_static("x-cembra-token");

/// The names of the machine itself.
const LOOPBACK: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

/// The checks on requests to one server.
#[derive(Debug)]
pub(crate) struct Guard {
    /// The port that the server listens on.
    port: u16,
    /// The names of `--host` in lower case, each with its port if it has one.
    hosts: Vec<(String, Option<u16>)>,
    token: Option<Token>,
}

impl Guard {
    pub(crate) fn new(settings: &Settings, port: u16) -> Guard {
        let host = |name: &String| {
            let name = name.to_ascii_lowercase();
            match split(&name) {
                Some((own, port)) => (own.to_owned(), port),
                None => (name, None),
            }
        };
        Guard { port, hosts: settings.arguments.hosts.iter().map(host).collect(), token: settings.token.clone() }
    }

    /// Checks a request before its path is handled. `needs_token` is false for a path that clients may request without the token.
    pub(crate) fn check(&self, request: &Parts, needs_token: bool) -> Result<(), Problem> {
        let headers = &request.headers;
        if request.version != Version::HTTP_11 {
            let detail = "this server speaks HTTP/1.1; a proxy before it must use this version, too";
            return Err(Problem::new(StatusCode::HTTP_VERSION_NOT_SUPPORTED, "http-version", detail).closing());
        }
        if headers.contains_key(TRANSFER_ENCODING) && !is_chunked(headers) {
            let detail = "the header `Transfer-Encoding` must be `chunked`, once";
            return Err(Problem::bad("framing", detail).closing());
        }
        let host =
            one(headers, &HOST)?.ok_or_else(|| Problem::bad("host", "the header `Host` is missing").closing())?;
        let target = request.uri.authority().map(hyper::http::uri::Authority::as_str);
        if !self.is_own(host) || target.is_some_and(|target| !target.eq_ignore_ascii_case(host)) {
            let detail = "the header `Host` is not a name of this server; start it with `--host NAME` to allow a name";
            return Err(Problem::new(StatusCode::MISDIRECTED_REQUEST, "host", detail).closing());
        }
        if let Some(origin) = one(headers, &ORIGIN)? {
            let own = origin.split_once("://").filter(|(scheme, _)| matches!(*scheme, "http" | "https"));
            if own.is_none_or(|(_, own)| !own.eq_ignore_ascii_case(host)) {
                let detail = "the request comes from a page of another server, which must not use this one";
                return Err(Problem::new(StatusCode::FORBIDDEN, "origin", detail).closing());
            }
        }
        match &self.token {
            Some(token) if needs_token && !has_token(headers, token) => {
                let detail = "the header `Authorization: Bearer TOKEN` is missing or has another token";
                Err(Problem::new(StatusCode::UNAUTHORIZED, "token", detail))
            }
            _ => Ok(()),
        }
    }

    /// True if `host` is a name of this server.
    fn is_own(&self, host: &str) -> bool {
        let host = host.to_ascii_lowercase();
        let Some((name, port)) = split(&host) else { return false };
        let is_loopback = LOOPBACK.contains(&name) && port.is_none_or(|port| port == self.port);
        is_loopback || self.hosts.iter().any(|(own, only)| own == name && only.is_none_or(|only| port == Some(only)))
    }
}

/// Splits the value of `Host` into the name and the port. `None` if the port is not a number.
fn split(host: &str) -> Option<(&str, Option<u16>)> {
    let after_address = host.rfind(']').map_or(0, |end| end + 1);
    match host[after_address..].find(':') {
        None => Some((host, None)),
        Some(colon) => {
            let (name, port) = host.split_at(after_address + colon);
            let digits = &port[1..];
            let is_port = !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit());
            Some((name, Some(digits.parse().ok().filter(|_| is_port)?)))
        }
    }
}

/// The value of a header that must not occur twice.
fn one<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Result<Option<&'h str>, Problem> {
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else { return Ok(None) };
    match (value.to_str(), values.next()) {
        (Ok(value), None) => Ok(Some(value)),
        _ => Err(Problem::bad("header", format!("the header `{name}` must occur once, as a text")).closing()),
    }
}

fn is_chunked(headers: &HeaderMap) -> bool {
    let mut values = headers.get_all(TRANSFER_ENCODING).iter();
    let is_chunked = values.next().is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"chunked"));
    is_chunked && values.next().is_none()
}

fn has_token(headers: &HeaderMap, token: &Token) -> bool {
    let value = headers.get(AUTHORIZATION).map(hyper::header::HeaderValue::as_bytes).unwrap_or_default();
    let (scheme, given) = value.split_at_checked(7).unwrap_or_default();
    // Both are hashed, so the comparison takes the same time whatever was given.
    scheme.eq_ignore_ascii_case(b"bearer ") & (Token::of(given.trim_ascii()) == *token)
}

/// Checks that a request from the server's web page has the page's token in its headers.
pub(crate) fn check_page(headers: &HeaderMap, token: &Token) -> Result<(), Problem> {
    let given = headers.get(&PAGE_TOKEN).map(hyper::header::HeaderValue::as_bytes).unwrap_or_default();
    if Token::of(given) == *token {
        return Ok(());
    }
    let detail = "the header `x-cembra-token` is missing or old; load the page again";
    Err(Problem::new(StatusCode::FORBIDDEN, "page-token", detail))
}

/// The media type of a request's body in lower case, without parameters.
///
/// # Errors
/// If the header `Content-Type` is absent, or the body is compressed or not in UTF-8.
pub(crate) fn media_type(headers: &HeaderMap) -> Result<String, Problem> {
    let refused = |detail: &str| Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "media-type", detail);
    if let Some(encoding) = one(headers, &CONTENT_ENCODING)?
        && !encoding.eq_ignore_ascii_case("identity")
    {
        return Err(refused("the body must not be compressed: leave the header `Content-Encoding` out"));
    }
    let value = one(headers, &CONTENT_TYPE)?;
    let value = value.ok_or_else(|| refused("name the form of the body, as in `Content-Type: application/json`"))?;
    let mut parts = value.split(';');
    let media_type = parts.next().unwrap_or_default().trim().to_ascii_lowercase();
    for parameter in parts {
        if let Some((name, value)) = parameter.split_once('=')
            && name.trim().eq_ignore_ascii_case("charset")
            && !matches!(value.trim().trim_matches('"').to_ascii_lowercase().as_str(), "utf-8" | "utf8" | "us-ascii")
        {
            return Err(refused("the body must be in UTF-8"));
        }
    }
    Ok(media_type)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_loopback_names_or_those_that_were_given() {
        let hosts = vec![("models.example".to_owned(), None), ("other.example".to_owned(), Some(81))];
        let guard = Guard { port: 8080, hosts, token: None };
        for own in [
            "localhost:8080",
            "LocalHost",
            "127.0.0.1:8080",
            "[::1]:8080",
            "[::1]",
            "models.example",
            "Models.example:443",
            "other.example:81",
        ] {
            assert!(guard.is_own(own), "{own}");
        }
        for foreign in [
            "",
            "localhost:8081",
            "evil.example",
            "localhost.evil.example",
            "127.0.0.1.evil.example:8080",
            "other.example",
            "other.example:80",
            "localhost:",
            "localhost:+8080",
            "localhost:8080x",
            "evil.example:8080@localhost",
            "[::1",
            "127.0.0.2",
            "::1",
        ] {
            assert!(!guard.is_own(foreign), "{foreign}");
        }
    }
}
