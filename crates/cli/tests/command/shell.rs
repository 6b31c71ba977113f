//! Helpers that run the binary in a temporary folder, with files, arguments and standard input, and return its output.

use std::fmt;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

/// A temporary folder in which a test runs the command.
pub(crate) struct Shell {
    folder: TempDir,
}

/// The outcome of a run: the exit status and the output.
#[derive(PartialEq, Debug)]
pub(crate) struct Outcome {
    /// The exit status; `None` if a signal ended the process.
    pub(crate) status: Option<i32>,
    /// The text that the command wrote to standard output.
    pub(crate) stdout: String,
    /// The text that the command wrote to standard error.
    pub(crate) stderr: String,
}

impl From<Output> for Outcome {
    fn from(output: Output) -> Self {
        Outcome {
            status: output.status.code(),
            stdout: String::from_utf8(output.stdout).expect("standard output is UTF-8"),
            stderr: String::from_utf8(output.stderr).expect("standard error is UTF-8"),
        }
    }
}

impl fmt::Display for Outcome {
    /// Formats the outcome for snapshots.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "exit status: {}", self.status.map_or("none".to_owned(), |status| status.to_string()))?;
        for (name, text) in [("standard output", &self.stdout), ("standard error", &self.stderr)] {
            if !text.is_empty() {
                writeln!(f, "--- {name}\n{}", text.trim_end())?;
            }
        }
        Ok(())
    }
}

impl Shell {
    /// Makes an empty temporary folder.
    pub(crate) fn new() -> Self {
        Shell { folder: tempfile::tempdir().expect("a folder") }
    }

    /// Adds a file, which may be in a folder.
    pub(crate) fn file(self, name: &str, content: impl AsRef<[u8]>) -> Self {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("the folder is made");
        fs::write(path, content).expect("the file is written");
        self
    }

    /// Returns the path of a file in the folder.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Returns the text of a file in the folder.
    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).expect("the file is there")
    }

    /// Returns the command with the arguments `args`, which is not started yet.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cembra"));
        command.args(args).current_dir(self.folder.path()).stdin(Stdio::null()).env_remove("NO_COLOR");
        command
    }

    /// Runs the command with the arguments `args` and without input.
    pub(crate) fn run(&self, args: &[&str]) -> Outcome {
        self.command(args).output().expect("the binary runs").into()
    }

    /// Runs the command with `input` as its standard input.
    pub(crate) fn feed(&self, args: &[&str], input: &str) -> Outcome {
        let mut command = self.command(args);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the binary runs");
        // The inputs of these tests fit into a pipe. A command may end without reading all of it.
        let _ = child.stdin.take().expect("a pipe").write_all(input.as_bytes());
        child.wait_with_output().expect("the binary ends").into()
    }

    /// Runs the command, which must succeed without writing to standard error, and returns its standard output.
    pub(crate) fn stdout(&self, args: &[&str]) -> String {
        let outcome = self.run(args);
        assert_eq!((outcome.status, outcome.stderr.as_str()), (Some(0), ""), "{args:?}");
        outcome.stdout
    }
}

/// Returns the path of a file in the repository.
pub(crate) fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

/// Returns the path of a file in `docs/examples`, as an argument.
pub(crate) fn example(name: &str) -> String {
    repository("docs/examples").join(name).to_str().expect("the path is UTF-8").to_owned()
}

/// Compares the outcome of a run with a stored snapshot.
macro_rules! snapshot {
    ($name:expr, $outcome:expr) => {
        insta::with_settings!({ omit_expression => true, prepend_module_to_snapshot => false }, {
            insta::assert_snapshot!($name, $outcome);
        })
    };
}
pub(crate) use snapshot;
