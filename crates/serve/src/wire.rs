//! The socket of a connection, as hyper reads and writes it. The socket recognizes heads of requests that programs read differently (request
//! smuggling), and ends a connection whose client takes too long to receive an answer. Requests are parsed by hyper.
//!
//! If a request has both `Transfer-Encoding` and `Content-Length`, hyper uses `Transfer-Encoding` and removes `Content-Length`. So such a request
//! must be recognized here.

use memchr::memchr;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep_until};

/// The most bytes of a request's head. Heads are checked up to this length, and hyper refuses longer heads.
pub(crate) const HEAD_BYTES: usize = 32 << 10;

/// The flags that the socket of a connection sets for the connection's requests.
#[derive(Debug, Default)]
pub(crate) struct Flags {
    /// True if a head was read that other programs may read differently.
    is_ambiguous: AtomicBool,
    /// True while bytes of an answer wait for the client.
    is_writing: AtomicBool,
}

impl Flags {
    pub(crate) fn are_ambiguous(&self) -> bool {
        self.is_ambiguous.load(Ordering::Relaxed)
    }

    /// Returns true while bytes that were written to the socket wait until the client's system receives them.
    pub(crate) fn are_writing(&self) -> bool {
        self.is_writing.load(Ordering::Relaxed)
    }
}

/// The socket of a connection, which checks requests.
pub(crate) struct Wire<S> {
    socket: S,
    heads: Heads,
    flags: Arc<Flags>,
    /// The most time that one answer, or one part of a stream, may wait for the client.
    write_time: Duration,
    /// The moment at which the write that waits is given up; `None` if none waits.
    late: Option<Pin<Box<Sleep>>>,
}

impl<S> Wire<S> {
    pub(crate) fn new(socket: S, write_time: Duration) -> (Wire<S>, Arc<Flags>) {
        let flags = Arc::new(Flags::default());
        (Wire { socket, heads: Heads::default(), flags: flags.clone(), write_time, late: None }, flags)
    }

    pub(crate) fn into_socket(self) -> S {
        self.socket
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Wire<S> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = into.filled().len();
        ready!(Pin::new(&mut this.socket).poll_read(cx, into))?;
        if !this.heads.are_clear(&into.filled()[before..]) {
            this.flags.is_ambiguous.store(true, Ordering::Relaxed);
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> Wire<S> {
    /// Lets a write wait for the client until its time is over.
    fn waits<T>(&mut self, cx: &mut Context<'_>, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if written.is_pending() {
            self.flags.is_writing.store(true, Ordering::Relaxed);
            let time = self.write_time;
            let late = self.late.get_or_insert_with(|| Box::pin(sleep_until(Instant::now() + time)));
            if late.as_mut().poll(cx).is_ready() {
                return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
            }
        }
        written
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Wire<S> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.socket).poll_write(cx, bytes);
        this.waits(cx, written)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.socket).poll_write_vectored(cx, bytes);
        this.waits(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    /// hyper flushes when it has written all that it has. Until then the time goes on, however little the client takes at a time.
    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        ready!(Pin::new(&mut this.socket).poll_flush(cx))?;
        if this.late.take().is_some() {
            this.flags.is_writing.store(false, Ordering::Relaxed);
        }
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().socket).poll_shutdown(cx)
    }
}

/// The heads of the requests in the bytes of a connection.
#[derive(Debug, Default)]
struct Heads {
    state: HeadState,
    head: Vec<u8>,
}

#[derive(Debug, Default)]
enum HeadState {
    /// The bytes of a head, in `head` so far.
    #[default]
    Head,
    /// This many bytes of a body.
    Body(u64),
    /// A body of chunks, after which the server closes the connection; or a head that is refused.
    Rest,
}

impl Heads {
    /// Looks at the next bytes. Returns false if a head ends in them that programs may read differently.
    fn are_clear(&mut self, mut bytes: &[u8]) -> bool {
        while !bytes.is_empty() {
            match &mut self.state {
                HeadState::Rest => return true,
                HeadState::Body(left) => {
                    let skipped = bytes.len().min(usize::try_from(*left).unwrap_or(usize::MAX));
                    bytes = &bytes[skipped..];
                    *left -= skipped as u64;
                    if *left == 0 {
                        self.state = HeadState::Head;
                    }
                }
                HeadState::Head => {
                    // Line by line, as a head nearly always comes at once.
                    let end = memchr(b'\n', bytes).map_or(bytes.len(), |end| end + 1);
                    let (line, rest) = bytes.split_at(end);
                    bytes = rest;
                    let starts_line = self.head.last().is_none_or(|last| *last == b'\n');
                    let is_end = (starts_line && matches!(line, b"\r\n" | b"\n"))
                        || (line == b"\n" && matches!(self.head.as_slice(), [.., b'\n', b'\r'] | [b'\r']));
                    self.head.extend_from_slice(line);
                    if self.head.len() > HEAD_BYTES {
                        // hyper refuses the head.
                        self.state = HeadState::Rest;
                    } else if is_end && self.head.iter().all(|byte| matches!(byte, b'\r' | b'\n')) {
                        // Empty lines before a request.
                        self.head.clear();
                    } else if is_end {
                        let framing = framing(&self.head);
                        self.head.clear();
                        match framing {
                            Some(Framing::Length(0)) => {}
                            Some(Framing::Length(length)) => self.state = HeadState::Body(length),
                            Some(Framing::Chunks) => self.state = HeadState::Rest,
                            None => {
                                self.state = HeadState::Rest;
                                return false;
                            }
                        }
                    }
                }
            }
        }
        true
    }
}

/// The way in which a head tells the end of the body.
enum Framing {
    Length(u64),
    Chunks,
}

/// Returns the way in which a head tells the end of the body; `None` if programs may read the head differently: if it has lengths of both kinds or a
/// length twice, or if a line does not end with CR and LF.
fn framing(head: &[u8]) -> Option<Framing> {
    let (mut length, mut is_chunked) = (None, false);
    for line in head.split_inclusive(|byte| *byte == b'\n') {
        let line = line.strip_suffix(b"\r\n")?;
        if memchr(b'\r', line).is_some() {
            return None;
        }
        let Some(colon) = memchr(b':', line) else { continue };
        let (name, value) = (line[..colon].trim_ascii(), line[colon + 1..].trim_ascii());
        if name.eq_ignore_ascii_case(b"content-length") {
            let digits = str::from_utf8(value).ok().filter(|value| value.bytes().all(|byte| byte.is_ascii_digit()))?;
            if length.replace(digits.parse().ok()?).is_some() {
                return None;
            }
        } else if name.eq_ignore_ascii_case(b"transfer-encoding") {
            is_chunked = true;
        }
    }
    match (length, is_chunked) {
        (Some(_), true) => None,
        (length, false) => Some(Framing::Length(length.unwrap_or(0))),
        (None, true) => Some(Framing::Chunks),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// True if no head in `bytes` is ambiguous, given at once and byte by byte.
    fn are_clear(bytes: &str) -> bool {
        let mut heads = Heads::default();
        let at_once = Heads::default().are_clear(bytes.as_bytes());
        let ambiguous = bytes.as_bytes().chunks(1).filter(|byte| !heads.are_clear(byte)).count();
        let one_by_one = ambiguous == 0;
        assert_eq!(at_once, one_by_one, "{bytes:?}");
        at_once
    }

    #[test]
    fn heads_that_are_read_in_two_ways_are_found() {
        for clear in [
            "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
            "\r\n\r\nPOST / HTTP/1.1\r\nContent-Length: 3\r\n\r\nabcGET / HTTP/1.1\r\n\r\n",
            // What looks like a head is a body.
            "POST / HTTP/1.1\r\nContent-Length: 60\r\n\r\nPOST / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: x\r\n\r\n",
            "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            "POST / HTTP/1.1\r\nX-Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        ] {
            assert!(are_clear(clear), "{clear:?}");
        }
        for ambiguous in [
            "POST / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
            "POST / HTTP/1.1\r\ntransfer-ENCODING: chunked\r\ncontent-LENGTH: 1\r\n\r\n",
            "POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n",
            "POST / HTTP/1.1\r\nContent-Length: +1\r\n\r\n",
            "POST / HTTP/1.1\r\nContent-Length: 1, 1\r\n\r\n",
            "POST / HTTP/1.1\r\nContent-Length : 1\r\nTransfer-Encoding: chunked\r\n\r\n",
            "GET / HTTP/1.1\nHost: a\n\n",
            "GET / HTTP/1.1\r\nHost: a\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\rb\r\n\r\n",
            "POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\nabcPOST / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        ] {
            assert!(!are_clear(ambiguous), "{ambiguous:?}");
        }
    }
}
