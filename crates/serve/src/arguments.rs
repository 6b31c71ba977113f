//! The arguments of `cembra-serve`, and the settings that are made from them. Other modules enforce the limits.

use clap::Parser;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

/// Serves the models of a folder over HTTP: the file `fraud.cem` answers at `/v1/models/fraud`
#[derive(Parser, Clone, Debug)]
#[command(name = "cembra-serve", version)]
pub struct Arguments {
    /// The folder of the models, files with the ending `.cem`
    pub folder: PathBuf,
    /// The address to listen on. An address that is not a loopback address needs `--token-file`
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8080")]
    pub listen: SocketAddr,
    /// A file with the token that each request must carry, as `Authorization: Bearer TOKEN`
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// A name that requests may have in `Host`, besides the loopback names; with a port if it must be that port
    #[arg(long = "host", value_name = "NAME")]
    pub hosts: Vec<String>,
    /// The most bytes of a request's body
    #[arg(long, value_name = "N", default_value_t = 64 << 20)]
    pub body_bytes: u64,
    /// The most rows of a request
    #[arg(long, value_name = "N", default_value_t = 1_000_000)]
    pub rows: u64,
    /// The most seconds that the model may take for a request, over all of its rows
    #[arg(long, value_name = "S", default_value = "10", value_parser = seconds)]
    pub time_limit: Duration,
    /// The most seconds that a client may take for the head of a request; an idle connection is closed after this time
    #[arg(long, value_name = "S", default_value = "10", value_parser = seconds)]
    pub header_time: Duration,
    /// The most seconds that the server waits for a client to send a body, and to take the answer; for each 64 KiB it waits a second longer
    #[arg(long, value_name = "S", default_value = "30", value_parser = seconds)]
    pub body_time: Duration,
    /// The most requests to models at the same time; further ones are refused with 429
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub concurrency: u32,
    /// The number of threads; by default as many as there are processors
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: Option<u16>,
    /// Serves no page at `/`
    #[arg(long)]
    pub no_page: bool,
}

/// Reads a positive number of seconds, such as `2` or `0.5`.
fn seconds(text: &str) -> Result<Duration, String> {
    let read = text.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    let found = read.filter(|time| !time.is_zero() && *time <= Duration::from_secs(86_400));
    found.ok_or_else(|| "must be a number of seconds, more than 0 and at most 86400".to_owned())
}

/// The settings of a server: the checked arguments, and the token.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The arguments that the settings were made from.
    pub arguments: Arguments,
    /// The token that each request must carry; `None` if requests need no token.
    pub token: Option<Token>,
    /// The number of threads.
    pub threads: usize,
}

/// The hash of a token. Two hashes are compared in constant time, so a client cannot learn the token from response times.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(blake3::Hash);

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token")
    }
}

impl Token {
    /// Makes the hash of the token with the text `text`.
    #[must_use]
    pub fn of(text: &[u8]) -> Token {
        Token(blake3::hash(text))
    }
}

impl Settings {
    /// Checks the arguments, and reads the token from its file.
    ///
    /// # Errors
    /// If the address needs a token and there is no `--token-file`, or if the token cannot be read or is too short.
    pub fn of(arguments: Arguments) -> Result<Settings, String> {
        let token = match &arguments.token_file {
            Some(file) => {
                let text = std::fs::read_to_string(file)
                    .map_err(|error| format!("--token-file `{}` cannot be read: {error}", file.display()))?;
                let text = text.trim();
                let is_token = text.len() >= 16 && text.bytes().all(|byte| byte.is_ascii_graphic());
                if !is_token {
                    return Err(format!(
                        "--token-file `{}` must contain a token of at least 16 letters, digits or signs, without spaces; \
                         `openssl rand -hex 32` makes one",
                        file.display()
                    ));
                }
                Some(Token::of(text.as_bytes()))
            }
            None => None,
        };
        if token.is_none() && !is_loopback(arguments.listen.ip()) {
            return Err(format!(
                "--listen {} can be reached from other machines, so requests must carry a token: add `--token-file FILE`",
                arguments.listen
            ));
        }
        let threads = arguments
            .threads
            .map_or_else(|| std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get), usize::from);
        Ok(Settings { arguments, token, threads })
    }
}

fn is_loopback(address: IpAddr) -> bool {
    address.to_canonical().is_loopback()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(more: &[&str]) -> Result<Settings, String> {
        let all = ["cembra-serve", "models"].iter().chain(more);
        Settings::of(Arguments::try_parse_from(all).map_err(|error| error.to_string())?)
    }

    #[test]
    fn an_address_that_others_can_reach_needs_a_token() {
        assert!(settings(&[]).unwrap().token.is_none());
        assert!(settings(&["--listen", "[::1]:80"]).is_ok());
        assert!(settings(&["--listen", "[::ffff:127.0.0.1]:80"]).is_ok());
        let error = settings(&["--listen", "0.0.0.0:8080"]).unwrap_err();
        assert!(error.contains("--token-file FILE"), "{error}");
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("token");
        let listen = |text: &str| {
            std::fs::write(&file, text).unwrap();
            settings(&["--listen", "0.0.0.0:8080", "--token-file", file.to_str().unwrap()])
        };
        assert_eq!(listen("0123456789abcdef\n").unwrap().token, Some(Token::of(b"0123456789abcdef")));
        assert!(listen("short").unwrap_err().contains("at least 16"));
        assert!(listen("0123456789 abcdef").is_err());
    }

    #[test]
    fn times_are_positive_numbers_of_seconds() {
        assert_eq!(settings(&["--time-limit", "0.5"]).unwrap().arguments.time_limit, Duration::from_millis(500));
        for wrong in ["0", "-1", "x", "nan", "1e9"] {
            assert!(settings(&["--time-limit", wrong]).is_err(), "{wrong}");
        }
    }
}
