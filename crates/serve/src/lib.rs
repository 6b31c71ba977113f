//! A server of models over HTTP: the models of a folder answer requests with rows as JSON, CSV or Arrow. The guide's chapter on the server says how
//! to use it; `main` starts it, and tests start it in their own process.
//!
//! ```no_run
//! use cembra_serve::{Arguments, Server, Settings};
//! use clap::Parser;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let arguments = Arguments::parse_from(["cembra-serve", "models", "--listen", "127.0.0.1:0"]);
//! let server = Server::start(Settings::of(arguments)?)?;
//! println!("http://{}", server.address());
//! server.shut_down();
//! server.wait();
//! # Ok(())
//! # }
//! ```

mod answer;
mod arguments;
mod connections;
mod guard;
mod metrics;
mod models;
mod openapi;
mod page;
mod problem;
mod record;
mod requests;
mod routes;
mod schema;
mod server;
mod state;
mod wire;
mod work;

pub use arguments::{Arguments, Settings, Token};
pub use server::Server;
