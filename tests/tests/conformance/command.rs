//! The `conform` command as CI and people see it: its last line and its exit status.

use cembra_tests::files;
use std::io::Write;
use std::process::Command;

/// Runs `conform` with these arguments; its standard output and exit status.
fn conform(arguments: &[&str]) -> (String, Option<i32>) {
    let output = Command::new(env!("CARGO_BIN_EXE_conform")).args(arguments).output().expect("a run");
    (String::from_utf8(output.stdout).expect("text"), output.status.code())
}

fn file(line: &str) -> tempfile::NamedTempFile {
    let mut file = tempfile::Builder::new().suffix(".jsonl").tempfile().expect("a file");
    writeln!(file, "{line}").expect("a write");
    file
}

#[test]
fn the_last_line_counts_and_the_status_tells() {
    // Signatures, calls and expressions. `.ci/run` has the command read all files.
    let files = ["signatures", "pointwise_math", "exprs"].map(|name| files::own().join(format!("{name}.jsonl.gz")));
    let paths = files.each_ref().map(|file| file.to_str().expect("a path of text"));
    let (text, status) = conform(&[&["--only", "math.is_finite", "--why"][..], &paths].concat());
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.last(), Some(&"443 passed, 0 failed, 0 skipped"), "{text}");
    assert_eq!(status, Some(0));

    let wrong = file(r#"{"op":"math.add","in":[["INT32","1"],["INT32","2"]],"out":["INT32","4"]}"#);
    let path = wrong.path().to_str().expect("a path of text");
    for backend in ["interp", "native", "both"] {
        let (text, status) = conform(&["--backend", backend, path]);
        assert!(text.contains("math.add(INT32 1, INT32 2)\n    expected INT32 4\n    found    INT32 3\n"), "{text}");
        assert!(text.ends_with("\n0 passed, 1 failed, 0 skipped\n"), "{text}");
        assert_eq!(status, Some(1));
    }
}

#[test]
fn data_that_cannot_be_read_have_a_status_of_their_own() {
    let malformed = file(r#"{"op":"math.add"}"#);
    for path in [malformed.path().to_str().expect("a path of text"), "no-such-folder"] {
        assert_eq!(conform(&[path]), (String::new(), Some(2)), "{path}");
    }
    let empty = tempfile::tempdir().expect("a folder");
    assert_eq!(conform(&[empty.path().to_str().expect("a path of text")]).1, Some(2));
}
