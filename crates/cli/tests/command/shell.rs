//! Runs the binary: files in a folder made for one test, arguments, standard input, and what came of it.

use std::fmt;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

/// A folder to run the command in.
pub(crate) struct Shell {
    folder: TempDir,
}

/// What a run gave.
#[derive(PartialEq, Debug)]
pub(crate) struct Outcome {
    /// The exit status.
    pub(crate) status: Option<i32>,
    /// Standard output.
    pub(crate) stdout: String,
    /// Standard error.
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
    /// For snapshots.
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
    /// An empty folder.
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

    /// Where a file of the folder is.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The text of a file of the folder.
    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).expect("the file is there")
    }

    /// The command with these arguments, not yet started.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cembra"));
        command.args(args).current_dir(self.folder.path()).stdin(Stdio::null()).env_remove("NO_COLOR");
        command
    }

    /// Runs the command.
    pub(crate) fn run(&self, args: &[&str]) -> Outcome {
        self.command(args).output().expect("the binary runs").into()
    }

    /// Runs the command with something to read from standard input.
    pub(crate) fn feed(&self, args: &[&str], input: &str) -> Outcome {
        let mut command = self.command(args);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the binary runs");
        // The inputs of these tests fit into a pipe. A command may end without reading all of it.
        let _ = child.stdin.take().expect("a pipe").write_all(input.as_bytes());
        child.wait_with_output().expect("the binary ends").into()
    }

    /// Runs the command, which must succeed silently; its standard output.
    pub(crate) fn stdout(&self, args: &[&str]) -> String {
        let outcome = self.run(args);
        assert_eq!((outcome.status, outcome.stderr.as_str()), (Some(0), ""), "{args:?}");
        outcome.stdout
    }
}

/// A file of the repository.
pub(crate) fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

/// A file of `docs/examples`.
pub(crate) fn example(name: &str) -> String {
    repository("docs/examples").join(name).to_str().expect("the path is UTF-8").to_owned()
}

/// Fixes a snapshot of a run.
macro_rules! snapshot {
    ($name:expr, $outcome:expr) => {
        insta::with_settings!({ omit_expression => true, prepend_module_to_snapshot => false }, {
            insta::assert_snapshot!($name, $outcome);
        })
    };
}
pub(crate) use snapshot;
