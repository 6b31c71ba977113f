//! Connections of clients: accepted up to a maximum number, served by hyper within the time limits, and ended when the server ends. The responses to
//! requests are made in `routes`.

use crate::answer::AnswerBody;
use crate::problem::Problem;
use crate::routes;
use crate::state::{Stage, State};
use crate::wire::{Flags, HEAD_BYTES, Wire};
use bytes::Bytes;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, StatusCode, body::Incoming};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::time::{sleep, timeout};

/// The most connections, unless the process may have fewer files open.
const MOST_CONNECTIONS: usize = 4096;

/// The files that the process may need besides connections.
const OTHER_FILES: usize = 128;

/// The time in which a client that was refused may go on sending, so that it reads the refusal and not a reset connection.
const LINGER: Duration = Duration::from_millis(500);

/// The most bytes that are read, and ignored, from such a client.
const LINGER_BYTES: usize = 4 << 20;

/// The time that an idle connection stays open once the server ends, for a request that is on its way.
const LAST_REQUEST: Duration = Duration::from_millis(250);

/// Accepts connections until the server ends. Returns after the last connection has ended.
pub(crate) async fn accept(listener: TcpListener, state: Arc<State>) {
    let most = most_connections();
    let places = Arc::new(Semaphore::new(most));
    let mut stage = state.stage.subscribe();
    loop {
        let accepted = tokio::select! {
            biased;
            () = reaches(&mut stage, Stage::Drains) => break,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((socket, _)) => begin(socket, &state, &places),
            Err(error) => {
                // The client is gone already, or too many files are open: the latter passes when connections end.
                tracing::debug!("a connection was not accepted: {error}");
                sleep(Duration::from_millis(20)).await;
            }
        }
    }
    // Connections that the system has accepted may have sent a request.
    {
        let mut waiting = pin!(listener.accept());
        while let Poll::Ready(Ok((socket, _))) = poll_fn(|cx| Poll::Ready(waiting.as_mut().poll(cx))).await {
            begin(socket, &state, &places);
            waiting.set(listener.accept());
        }
    }
    // From here on the system accepts none.
    drop(listener);
    let all = u32::try_from(most).unwrap_or(u32::MAX);
    if timeout(LAST_REQUEST, places.acquire_many(all)).await.is_err() {
        state.stage.send_replace(Stage::Ends);
        let _all_ended = places.acquire_many(all).await;
    }
}

/// Waits until the server is at `wanted` or later.
async fn reaches(stage: &mut watch::Receiver<Stage>, wanted: Stage) {
    // The sender lives as long as the server.
    let _never_fails = stage.wait_for(|stage| *stage >= wanted).await.is_err();
}

/// Serves a connection, or refuses it if there are too many.
fn begin(socket: TcpStream, state: &Arc<State>, places: &Arc<Semaphore>) {
    let Ok(place) = places.clone().try_acquire_owned() else {
        state.metrics.refused_connections.inc();
        let problem = Problem {
            retry_after: Some(1),
            ..Problem::new(StatusCode::SERVICE_UNAVAILABLE, "connections", "too many connections are open")
        };
        // Never waits: the few bytes fit into the memory of a new socket.
        let _gone = socket.try_write(&raw(&problem));
        return;
    };
    let state = state.clone();
    tokio::spawn(async move {
        state.metrics.connections.inc();
        serve(socket, &state).await;
        state.metrics.connections.dec();
        drop(place);
    });
}

async fn serve(socket: TcpStream, state: &Arc<State>) {
    // Answers are small and complete.
    let _gone = socket.set_nodelay(true);
    let arguments = &state.settings.arguments;
    let (wire, flags) = Wire::new(socket, arguments.body_time);
    let service = service_fn(|request: Request<Incoming>| respond(request, state, &flags));
    let mut connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(arguments.header_time)
        .max_buf_size(2 * HEAD_BYTES)
        .max_header_size(HEAD_BYTES)
        .serve_connection(TokioIo::new(wire), service);
    let mut stage = state.stage.subscribe();
    let ended = {
        let mut connection = Pin::new(&mut connection);
        tokio::select! {
            biased;
            ended = connection.as_mut() => ended,
            () = reaches(&mut stage, Stage::Ends) => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
        }
    };
    let parts = connection.into_parts();
    let mut socket = parts.io.into_inner().into_socket();
    if let Err(error) = ended
        && error.is_timeout()
        && !parts.read_buf.is_empty()
    {
        let time = arguments.header_time.as_secs_f64();
        let detail = format!("the head of the request is not complete after {time} s");
        let problem = Problem::new(StatusCode::REQUEST_TIMEOUT, "header-time", detail);
        let _gone = timeout(LINGER, socket.write_all(&raw(&problem))).await;
    }
    linger(socket).await;
}

/// Reads what a client still sends for a short time. Closing a socket with unread bytes resets the connection, and the client may lose the answer.
async fn linger(mut socket: TcpStream) {
    let _gone = socket.shutdown().await;
    let mut bytes = vec![0; 16 << 10];
    let read_on = async {
        let mut read = 0;
        while read < LINGER_BYTES {
            match socket.read(&mut bytes).await {
                Ok(0) | Err(_) => break,
                Ok(some) => read += some,
            }
        }
    };
    let _late = timeout(LINGER, read_on).await;
}

async fn respond(
    request: Request<Incoming>,
    state: &Arc<State>,
    flags: &Arc<Flags>,
) -> Result<hyper::Response<AnswerBody>, Infallible> {
    // The socket looks at no head after a body of chunks.
    let is_chunked = request.headers().contains_key(hyper::header::TRANSFER_ENCODING);
    let mut response = routes::respond(request, state, flags).await;
    if is_chunked || state.ends() {
        crate::answer::close(&mut response);
    }
    Ok(response)
}

/// A response for a connection that hyper does not serve.
fn raw(problem: &Problem) -> Bytes {
    let body = problem.body();
    let (status, reason) = (problem.status.as_u16(), problem.status.canonical_reason().unwrap_or("Error"));
    let retry = problem.retry_after.map(|seconds| format!("retry-after: {seconds}\r\n")).unwrap_or_default();
    let mut bytes = format!(
        "HTTP/1.1 {status} {reason}\r\ncontent-type: {}\r\ncontent-length: {}\r\n{retry}connection: close\r\n\r\n",
        crate::problem::MEDIA_TYPE,
        body.len(),
    )
    .into_bytes();
    bytes.extend_from_slice(&body);
    bytes.into()
}

/// The most connections that the process may have open.
fn most_connections() -> usize {
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let files =
        limits.lines().find_map(|line| line.strip_prefix("Max open files")?.split_whitespace().next()?.parse().ok());
    files.map_or(MOST_CONNECTIONS, |files: usize| MOST_CONNECTIONS.min(files.saturating_sub(OTHER_FILES)).max(16))
}
