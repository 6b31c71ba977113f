//! The server as its clients see it. Each test starts a server of its own, in this process, over a folder of its own.

#![expect(clippy::unwrap_used, reason = "a test fails by it, also in functions that tests share")]

mod forms;
mod guard;
mod hostile;
mod limits;
mod models;
mod shutdown;
mod support;
