//! HTTP responses: their headers and bodies. The contents are made in other modules.

use crate::problem::{self, Problem};
use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use hyper::header::{
    ALLOW, CACHE_CONTROL, CONNECTION, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue,
    REFERRER_POLICY, RETRY_AFTER, WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS,
};
use hyper::{Response, StatusCode};
use std::pin::Pin;
use std::task::{Context, Poll};

/// The error of a response body whose rest cannot be made. The connection is closed before the body's end, so that the client
/// notices the error.
#[derive(Debug)]
pub(crate) struct CutShort;

impl std::fmt::Display for CutShort {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the answer ends early")
    }
}

impl std::error::Error for CutShort {}

/// A source of a response body that is sent in parts.
pub(crate) trait Parts: Send {
    /// The next part; `None` after the last.
    fn poll_part(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, CutShort>>>;
}

/// The body of a response.
pub(crate) enum AnswerBody {
    /// The body has these bytes; `None` once they are taken.
    Whole(Option<Bytes>),
    /// The body is made while it is sent.
    Stream(Box<dyn Parts>),
}

impl Body for AnswerBody {
    type Data = Bytes;
    type Error = CutShort;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, CutShort>>> {
        match self.get_mut() {
            AnswerBody::Whole(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            AnswerBody::Stream(parts) => parts.poll_part(cx).map(|part| part.map(|part| part.map(Frame::data))),
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, AnswerBody::Whole(None))
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            AnswerBody::Whole(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64)),
            AnswerBody::Stream(_) => SizeHint::default(),
        }
    }
}

/// A response of the server.
pub(crate) type Answer = Response<AnswerBody>;

const COOP: HeaderName = HeaderName::from_static("cross-origin-opener-policy");
const CORP: HeaderName = HeaderName::from_static("cross-origin-resource-policy");

/// The policy of every response but the page: nothing in it may be shown or run as a document.
const NOTHING: HeaderValue = HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'");

/// Makes a response with the headers that every response has.
pub(crate) fn answer(status: StatusCode, media_type: HeaderValue, body: AnswerBody) -> Answer {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let mut headers = HeaderMap::with_capacity(12);
    headers.insert(CONTENT_TYPE, media_type);
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.insert(CONTENT_SECURITY_POLICY, NOTHING);
    headers.insert(COOP, HeaderValue::from_static("same-origin"));
    headers.insert(CORP, HeaderValue::from_static("same-origin"));
    *response.headers_mut() = headers;
    response
}

/// Makes a response with status 200 and the complete body `body`.
pub(crate) fn whole(media_type: &'static str, body: impl Into<Bytes>) -> Answer {
    answer(StatusCode::OK, HeaderValue::from_static(media_type), AnswerBody::Whole(Some(body.into())))
}

/// Makes a response with `value` as JSON.
pub(crate) fn json(value: &serde_json::Value) -> Answer {
    whole("application/json", value.to_string())
}

/// Makes the response that reports `problem` to the client.
pub(crate) fn refusal(problem: &Problem) -> Answer {
    let media_type = HeaderValue::from_static(problem::MEDIA_TYPE);
    let mut response = answer(problem.status, media_type, AnswerBody::Whole(Some(problem.body())));
    let headers = response.headers_mut();
    if let Some(seconds) = problem.retry_after {
        headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    if let Some(allow) = problem.allow {
        headers.insert(ALLOW, HeaderValue::from_static(allow));
    }
    if problem.status == StatusCode::UNAUTHORIZED {
        headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    if problem.closes {
        close(&mut response);
    }
    response
}

/// Adds the header that closes the connection after this response.
pub(crate) fn close(response: &mut Answer) {
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
}
