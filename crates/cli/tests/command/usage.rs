//! Tests of invalid command lines: their exit status is 2, and the message says what is wrong.

use super::shell::{Shell, snapshot};

fn refuse(name: &str, args: &[&str]) {
    let outcome = Shell::new().run(args);
    assert_eq!((outcome.status, outcome.stdout.as_str()), (Some(2), ""), "{args:?}");
    snapshot!(name, outcome);
}

#[test]
fn options_and_commands() {
    refuse("unknown_option", &["eval", "-e", "1", "--formt", "json"]);
    refuse("unknown_option_value", &["eval", "-e", "1", "--backend", "fast"]);
    refuse("no_model", &["eval"]);
    refuse("two_models", &["check", "-e", "1", "model.cem"]);
    refuse("fuzz_without_an_end", &["fuzz"]);
    refuse("stage_after_the_last_pass", &["explain", "-e", "1", "--stage", "plan", "--stop-after", "types"]);
    refuse("unknown_limit", &["eval", "-e", "1", "--set-limit", "nodes=5", "--set-limit", "node=5"]);
    refuse("limit_that_is_no_number", &["explain", "-e", "1", "--set-limit", "nodes=-5"]);
    refuse("limit_without_a_value", &["check", "-e", "1", "--set-limit", "nodes"]);
    refuse("unknown_operator_name", &["ops", "math.sqtr"]);
}

#[test]
fn values_and_types_of_inputs() {
    refuse("value_that_is_no_literal", &["eval", "-e", "x", "-s", "x=Dream"]);
    refuse("value_without_a_name", &["eval", "-e", "x", "-s", "1.5"]);
    refuse("value_for_an_unknown_input", &["eval", "-e", "price * 2", "-s", "prices=1"]);
    refuse("value_of_another_type", &["eval", "-e", "input n: i32; n + 1", "-s", "n=1.5"]);
    refuse("missing_without_a_type", &["eval", "-e", "x ?? 1", "-s", "x=missing"]);
    refuse("missing_for_a_plain_constant", &["eval", "-e", "input n: i32; n + 1", "-s", "n=missing"]);
    refuse("value_given_twice", &["eval", "-e", "x", "-s", "x=1", "-s", "x=2"]);
    refuse("unknown_type_option", &["check", "-e", "x", "--types", "x=float32"]);
    refuse("type_of_an_unknown_input", &["check", "-e", "x", "--types", "xs=f32"]);
    refuse("unknown_output", &["eval", "-e", "output first = 1", "--only", "fist"]);
}

#[test]
fn the_command_alone_shows_its_help() {
    let outcome = Shell::new().run(&[]);
    assert_eq!(outcome.status, Some(2));
    assert!(outcome.stderr.contains("Usage: cembra <COMMAND>"), "{outcome}");
    let help = Shell::new().stdout(&["--help"]);
    for command in ["eval", "check", "explain", "build", "ops", "fuzz", "bench", "test", "fmt", "completions"] {
        assert!(help.contains(&format!("\n  {command} ")), "{command}");
    }
}

/// The server is a program of its own: it gets all arguments, and without it the command says how to get it.
#[cfg(unix)]
#[test]
fn the_server_is_another_program() {
    use std::os::unix::fs::PermissionsExt;

    let shell = Shell::new().file("bin/cembra-serve", "#!/bin/sh\necho \"$@\"\nexit 7\n");
    let bin = shell.path("bin");
    let started = |path: &std::path::Path| {
        let output = shell.command(&["serve", "models", "--listen", "127.0.0.1:0"]).env("PATH", path).output();
        output.expect("the command runs")
    };
    let absent = started(&shell.path("nowhere"));
    let told = String::from_utf8_lossy(&absent.stderr).into_owned();
    assert!(told.starts_with("error[io]: cannot start the program `cembra-serve`"), "{told}");
    assert!(told.contains("help: install it with `cargo install --path crates/serve`"), "{told}");
    let program = bin.join("cembra-serve");
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).expect("it is ours");
    let path = std::env::join_paths([bin, "/bin".into(), "/usr/bin".into()]).expect("paths");
    let served = started(std::path::Path::new(&path));
    assert_eq!(String::from_utf8_lossy(&served.stdout), "models --listen 127.0.0.1:0\n");
    assert_eq!(served.status.code(), Some(7), "its exit status is that of the server");
}
