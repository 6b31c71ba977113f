//! Tests of `cembra fmt`: the text that it writes, the files that it lists, and the texts that it refuses.

use super::shell::Shell;

const UGLY: &str = "input a:f64 # kg\nuse 'none.cem';output y=unknown( a )+b*2 # two";
const GOOD: &str = "input a: f64  # kg\nuse 'none.cem'\noutput y = unknown(a) + b * 2  # two\n";

#[test]
fn standard_input_is_written_to_standard_output() {
    let shell = Shell::new();
    for args in [&["fmt"][..], &["fmt", "-"]] {
        for (input, expected) in [(UGLY, GOOD), (GOOD, GOOD), ("", ""), ("\u{feff}1\r\n", "1\n")] {
            let found = shell.feed(args, input);
            assert_eq!((found.status, &*found.stdout, &*found.stderr), (Some(0), expected, ""));
        }
    }
    let found = shell.feed(&["fmt", "--check"], UGLY);
    assert_eq!((found.status, &*found.stdout, &*found.stderr), (Some(1), "<stdin>\n", ""));
    let found = shell.feed(&["fmt", "--check"], GOOD);
    assert_eq!((found.status, &*found.stdout, &*found.stderr), (Some(0), "", ""));
}

#[test]
fn files_are_rewritten_only_if_they_change() {
    let shell =
        Shell::new().file("ugly.cem", UGLY).file("good.cem", GOOD).file("marked.cem", format!("\u{feff}{GOOD}"));
    let check = shell.run(&["fmt", "--check", "ugly.cem", "good.cem", "marked.cem"]);
    assert_eq!((check.status, &*check.stdout, &*check.stderr), (Some(1), "ugly.cem\nmarked.cem\n", ""));
    assert_eq!(shell.read("ugly.cem"), UGLY);
    // A file that is not written need not be writable.
    let mut permissions = std::fs::metadata(shell.path("good.cem")).expect("a file").permissions();
    let before = std::fs::metadata(shell.path("good.cem")).and_then(|file| file.modified()).expect("a time");
    permissions.set_readonly(true);
    std::fs::set_permissions(shell.path("good.cem"), permissions.clone()).expect("a file");
    assert_eq!(shell.stdout(&["fmt", "ugly.cem", "good.cem", "marked.cem"]), "");
    assert_eq!([shell.read("ugly.cem"), shell.read("good.cem"), shell.read("marked.cem")], [GOOD; 3]);
    let after = std::fs::metadata(shell.path("good.cem")).expect("a file");
    assert_eq!((after.modified().expect("a time"), after.permissions()), (before, permissions));
    assert_eq!(shell.stdout(&["fmt", "--check", "ugly.cem", "good.cem", "marked.cem"]), "");
}

#[test]
fn what_cannot_be_read_stays_as_it_is() {
    let shell =
        Shell::new().file("wrong.cem", "output y=(a\noutput z = 3").file("ugly.cem", UGLY).file("bytes.cem", b"\xff");
    let found = shell.run(&["fmt", "wrong.cem", "none.cem", "bytes.cem", "ugly.cem"]);
    assert_eq!((found.status, &*found.stdout), (Some(1), ""));
    for part in ["this bracket is never closed", "wrong.cem:1:10", "cannot open the model", "none.cem", "bytes.cem"] {
        assert!(found.stderr.contains(part), "{part}: {}", found.stderr);
    }
    assert!(!found.stderr.contains("-e EXPR"), "{}", found.stderr);
    assert_eq!([shell.read("wrong.cem"), shell.read("ugly.cem")], ["output y=(a\noutput z = 3", GOOD]);
    let found = shell.run(&["fmt", "-", "ugly.cem"]);
    assert_eq!(found.status, Some(2));
    assert!(found.stderr.contains("standard input cannot be formatted together with files"), "{}", found.stderr);
}
