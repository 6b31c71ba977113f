//! What the documents say is what the command does.

use super::shell::{Shell, repository};
use std::fs;

/// Set to rewrite what is generated instead of comparing it.
const REWRITE: &str = "CEMBRA_REWRITE";

#[test]
fn the_page_of_operators_is_up_to_date() {
    let path = repository("docs/operators.md");
    let page = Shell::new().stdout(&["ops", "--markdown"]);
    if std::env::var_os(REWRITE).is_some() {
        fs::write(&path, &page).expect("the page is written");
    }
    let found = fs::read_to_string(&path).unwrap_or_default();
    assert!(found == page, "docs/operators.md is out of date: run this test with {REWRITE}=1");
}

#[test]
fn the_quadratic_is_the_text_of_the_guide() {
    let text = fs::read_to_string(repository("docs/examples/quadratic.cem")).expect("the example is there");
    assert_eq!(
        text,
        "\
# quadratic.cem
input a: f32
input b, c: f64
let d = b*b - 4.0*a*c
let s = math.pow(d, 0.5)
output first  = where(d >= 0, (-b + s) / 2.0 / a)      # where without else: missing
output second = where(d >= 0, (-b - s) / 2.0 / a)
"
    );
}

#[test]
fn the_commands_of_the_examples_run() {
    let page = fs::read_to_string(repository("docs/examples/README.md")).expect("the page is there");
    let commands: Vec<&str> = page.lines().filter_map(|line| line.strip_prefix("    cembra ")).collect();
    assert!(commands.len() >= 4, "{commands:?}");
    let shell = Shell::new();
    for command in commands {
        // The commands quote nothing but whole arguments.
        let args: Vec<&str> = command.split(' ').map(|arg| arg.trim_matches('\'')).collect();
        let mut run = shell.command(&args);
        let outcome = run.current_dir(repository("")).output().expect("the binary runs");
        let said = String::from_utf8_lossy(&outcome.stderr).into_owned();
        assert!(outcome.status.success() && said.is_empty() && !outcome.stdout.is_empty(), "{command}: {said}");
    }
}
