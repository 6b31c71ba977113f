//! Tests of untrusted models and data: the memory and time that they can take, their effects on a terminal, and the files that remain after a signal.
//! The address space of the processes is limited, so that a failing test does not exhaust the machine's memory.

use super::shell::{Outcome, Shell};
use std::fmt::Write as _;

/// Runs the command with an address space of at most `mib` mebibytes. The allocator is limited to one arena, because it would reserve 64 MiB of
/// addresses for each thread.
#[cfg(target_os = "linux")]
fn bounded(shell: &Shell, mib: usize, args: &[&str]) -> Outcome {
    let mut command = std::process::Command::new("sh");
    let script = format!("ulimit -v {}; exec \"$0\" \"$@\"", mib << 10);
    command.args(["-c", &script, env!("CARGO_BIN_EXE_cembra")]).args(args).current_dir(shell.path("."));
    command.env("MALLOC_ARENA_MAX", "1").stdin(std::process::Stdio::null()).output().expect("a shell").into()
}

/// Returns a struct type with `fields` optional fields of the type `of`.
fn wide(fields: usize, of: &str) -> String {
    let fields: Vec<String> = (0..fields).map(|at| format!("f{at}: {of}?")).collect();
    format!("{{{}}}", fields.join(", "))
}

const LIMIT: &str = "array_bytes=16000000";

/// Rows of a few bytes that need much more memory: absent fields, missing structs, elements of lists. To decode a piece of such a file as a whole
/// would take gigabytes.
#[test]
#[cfg(target_os = "linux")]
fn rows_of_few_bytes_take_the_memory_that_they_may() {
    let lists = format!("{{\"l\": [{}]}}\n", ["{}"; 20].join(","));
    let cases = [
        (wide(2_000, "i64"), "l.f7", "{\"l\": {}}\n".to_owned(), 7_000),
        (format!("{}?", wide(1_000, "text")), "has(l)", "{\"l\": null}\n".to_owned(), 14_000),
        (format!("[{}]", wide(500, "i64")), "array.size(l)", lists, 1_000),
    ];
    for (qtype, output, row, rows) in cases {
        let shell = Shell::new().file("m.cem", format!("input l: {qtype}\noutput n = {output}\n"));
        let shell = shell.file("d.jsonl", row.repeat(rows));
        let args = ["eval", "m.cem", "d.jsonl", "--set-limit", LIMIT, "--threads", "2"];
        let found = bounded(&shell, 250, &args);
        assert_eq!((found.status, found.stderr.as_str()), (Some(0), ""), "{output}");
        assert_eq!(found.stdout.lines().count(), rows + 1, "{output}");
    }
}

/// Rows that are skipped still take memory in every column, however short they are in the file. This memory is limited too.
#[test]
#[cfg(target_os = "linux")]
fn rows_that_are_passed_over_take_the_memory_that_they_may() {
    let names: Vec<String> = (0..2_000).map(|at| format!("c{at}")).collect();
    let inputs: String = names.iter().map(|name| format!("input {name}: f64?\n")).collect();
    let sum = names.join(" ?? ");
    let shell = Shell::new().file("m.cem", format!("{inputs}output y = {sum}\n"));
    let shell = shell.file("d.csv", format!("{}\n{}", names.join(","), "a\n".repeat(6_000)));
    let args = ["eval", "m.cem", "d.csv", "--set-limit", LIMIT, "--on-error", "skip", "--threads", "2"];
    let found = bounded(&shell, 250, &args);
    assert_eq!((found.status, found.stdout.as_str()), (Some(0), "y\n"), "{}", found.stderr);
    assert!(found.stderr.contains("6000 of 6000 rows failed"), "{}", found.stderr);
}

/// A single row that needs more memory than the limit of all arrays is an error, before the memory is allocated.
#[test]
#[cfg(target_os = "linux")]
fn a_row_beyond_the_limit_is_an_error() {
    let shell = Shell::new().file("m.cem", format!("input l: [{}]\noutput n = array.size(l)\n", wide(500, "i64")));
    let row = |elements: usize| format!("{{\"l\": [{}]}}\n", vec!["{}"; elements].join(","));
    let shell = shell.file("d.jsonl", row(2) + &row(20_000)).file("few.jsonl", row(2) + &row(2_000) + &row(3));
    let args = |file| ["eval", "m.cem", file, "--set-limit", LIMIT, "--threads", "2"];
    let found = bounded(&shell, 250, &args("d.jsonl"));
    assert_eq!((found.status, found.stdout.as_str()), (Some(1), "n\n2\n"));
    assert!(found.stderr.starts_with("error[limit]: a row exceeds the limit of 16000000 bytes\n"), "{}", found.stderr);
    assert!(found.stderr.contains("--> d.jsonl:2"), "{}", found.stderr);
    // A row that takes more than the share of a thread is read alone.
    let found = bounded(&shell, 250, &args("few.jsonl"));
    assert_eq!((found.status, found.stdout.as_str()), (Some(0), "n\n2\n2000\n3\n"), "{}", found.stderr);
}

/// A time limit ends reading too: of rows with many columns, and of a pipe without further data.
#[test]
#[cfg(target_os = "linux")]
fn a_deadline_ends_reading() {
    let model = format!("input l: {}\noutput n = l.f7\n", wide(20_000, "i64"));
    let shell = Shell::new().file("m.cem", model).file("d.jsonl", "{\"l\": {}}\n".repeat(20_000));
    let args = ["eval", "m.cem", "d.jsonl", "--set-limit", LIMIT, "--time-limit", "0.3", "-o", "n.csv"];
    let found = bounded(&shell, 250, &args);
    assert_eq!(found.status, Some(1));
    assert!(
        found.stderr.contains("error[time-limit]: the evaluation takes longer than the limit of 0.3 s"),
        "{}",
        found.stderr
    );

    // Before the names of the columns are known, and behind them.
    for (format, begin) in [("jsonl", "{\"x\": 1}\n"), ("csv", "y,"), ("csv", "x\n1\n")] {
        let args = ["eval", "-e", "x + 1.0", "-", "--data-format", format, "--time-limit", "0.2"];
        let mut command = shell.command(&args);
        command.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
        let mut child = command.stderr(std::process::Stdio::piped()).spawn().expect("the binary runs");
        let mut pipe = child.stdin.take().expect("a pipe");
        std::io::Write::write_all(&mut pipe, begin.as_bytes()).expect("it is read");
        // The pipe stays open until the command has ended.
        let found: Outcome = child.wait_with_output().expect("it ends").into();
        drop(pipe);
        assert_eq!(found.status, Some(1));
        assert!(found.stderr.contains("error[time-limit]"), "{format} {begin:?}: {}", found.stderr);
    }
}

/// A time limit ends reading an array from a pipe without data.
#[test]
#[cfg(target_os = "linux")]
fn a_deadline_ends_reading_of_tensors() {
    let shell = Shell::new();
    let model = "input x: tensor[f64, 1]; output y = 2.0 * x";
    let mut command = shell.command(&["eval", "-e", model, "-", "--time-limit", "0.2", "-o", "y.npy"]);
    command.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
    let mut child = command.stderr(std::process::Stdio::piped()).spawn().expect("the binary runs");
    let pipe = child.stdin.take().expect("a pipe");
    let found: Outcome = child.wait_with_output().expect("it ends").into();
    drop(pipe);
    assert_eq!(found.status, Some(1));
    assert!(found.stderr.contains("error[time-limit]"), "{}", found.stderr);
}

/// Two outputs that take much memory: a table, in which one wide cell makes the cells of all rows wide, and a Parquet file, whose writer allocates
/// memory per column before there are rows.
#[test]
#[cfg(target_os = "linux")]
fn results_take_the_memory_that_they_may() {
    let rows = format!("a,b\n{},1\n{}", "x".repeat(500_000), "y,2\n".repeat(9_000));
    let outputs: String = (0..20_000).map(|at| format!("output y{at} = x + {at}\n")).collect();
    let shell = Shell::new().file("d.csv", rows).file("x.csv", "x\n1\n2\n");
    let shell = shell.file("m.cem", format!("input x: i64\n{outputs}"));
    let table = ["eval", "-e", "output z = a", "d.csv", "--format", "table", "-o", "z.txt", "--set-limit", LIMIT];
    let found = bounded(&shell, 250, &table);
    assert_eq!((found.status, found.stderr.as_str()), (Some(0), ""));
    let shown = std::fs::read_to_string(shell.path("z.txt")).expect("a table");
    assert_eq!(shown.lines().filter(|line| line.starts_with("│ y")).count(), 9_000);
    let found = bounded(&shell, 250, &["eval", "m.cem", "x.csv", "-o", "y.parquet", "--set-limit", LIMIT]);
    assert_eq!(found.status, Some(1));
    assert!(found.stderr.contains("error[limit]: the writers of 20000 columns of Parquet"), "{}", found.stderr);
    let both = shell.run(&["eval", "-e", "x", "x.csv", "--on-error", "skip", "--errors", "e.csv", "-o", "./e.csv"]);
    assert_eq!(both.status, Some(2));
    assert!(both.stderr.contains("`-o` and `--errors` both name"), "{}", both.stderr);
    assert!(!shell.path("e.csv").exists());
}

/// The lines of a text are located once, not again for each message, so that a report takes time linear in the text.
#[test]
fn reports_of_many_tests_are_linear_in_the_text() {
    let long = "a".repeat(400);
    let mut model = "input x: text\noutput y = x\ntest \"t\" {\n    x => y\n".to_owned();
    for at in 0..8_000 {
        let _never_fails = writeln!(model, "    \"{long}{at}\" => \"b\"");
    }
    let shell = Shell::new().file("m.cem", model + "}\n");
    let began = std::time::Instant::now();
    let found = shell.run(&["test", "m.cem"]);
    assert_eq!(found.status, Some(1));
    assert!(found.stdout.starts_with("m.cem:5: test \"t\" failed\n") && found.stdout.contains("\nm.cem:8004: test"));
    assert!(found.stdout.ends_with("m.cem: 8000 cases, 8000 failed\n"));
    // Minutes, where the lines are found for each of them.
    assert!(began.elapsed().as_secs() < 30, "{:?}", began.elapsed());
}

/// Text from others is printed with escapes, so that it cannot control the terminal: names of tests and files, values in messages, excerpts.
#[test]
fn texts_of_others_are_shown_with_escapes() {
    const HIDDEN: &str = "\u{1b}[31m\u{9b}2J\u{202e}\u{2028}";
    const SHOWN: &str = "\\u{1b}[31m\\u{9b}2J\\u{202e}\\u{2028}";
    let steers = |text: &str| text.chars().any(|c| HIDDEN.contains(c) && !c.is_ascii_graphic());
    let check = |found: &Outcome| {
        let shown = format!("{}{}", found.stdout, found.stderr);
        assert!(!steers(&shown) && shown.contains(SHOWN), "{shown:?}");
    };
    let test = format!("input x: text\noutput y = x\ntest \"ok {HIDDEN}PASS\" {{ x = \"a\" }} => {{ y = \"b\" }}\n");
    let named = format!("name{HIDDEN}.cem");
    let shell = Shell::new().file("m.cem", test).file(&named, format!("output y = x + # {HIDDEN}\n"));
    let asserted = "input x: text; output z = core.with_assertion(x, x == \"q\", strings.join(\"bad \", x))";
    let shell = shell
        .file("a.cem", asserted)
        .file("d.csv", format!("x\n{HIDDEN}\n"))
        .file("e.csv", format!("{HIDDEN},x\n1,2\n"));
    check(&shell.run(&["test", "m.cem"]));
    check(&shell.run(&["check", &named]));
    check(&shell.run(&["test", &named]));
    check(&shell.run(&["explain", &named]));
    check(&shell.run(&["fmt", "--check", &named]));
    check(&shell.run(&["eval", "a.cem", "d.csv"]));
    let found = shell.run(&["eval", "a.cem", "d.csv", "--on-error", "missing"]);
    check(&found);
    check(&shell.run(&["eval", "-e", "y + 1", "e.csv"]));
    check(&shell.run(&["eval", "-e", "x", "d.csv", "--format", "table"]));
    // So are arguments that make no sense, in every command; signs for colours are left out of them.
    for args in [&["eval"][..], &["check"], &["test"], &["fmt"], &[], &["eval", "-e", "1", "--backend"]] {
        let dashes = if args.len() == 1 { "--" } else { "" };
        let found = shell.run(&[args, &[&*format!("{dashes}no{HIDDEN}such")]].concat());
        assert!(found.status == Some(2) && !steers(&found.stderr), "{args:?}: {:?}", found.stderr);
        assert!(found.stderr.contains(&SHOWN["\\u{1b}[31m".len()..]), "{args:?}: {:?}", found.stderr);
    }
    // Programs get the text itself, in the escapes of JSON.
    let found = shell.run(&["check", &named, "--format", "json"]);
    assert!(!steers(&found.stdout) && found.stdout.contains("\\u009b2J\\u202e\\u2028.cem"), "{}", found.stdout);
    // Data are data.
    let found = shell.run(&["eval", "-e", "x", "d.csv"]);
    assert_eq!((found.status, found.stdout), (Some(0), format!("result\n{HIDDEN}\n")));
}

/// Returns false for a signal that the tests, and so the processes that they start, ignore, as in a shell that runs them in the background.
#[cfg(unix)]
fn is_heard((_, number): &(&str, i32)) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let bits = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    bits.is_none_or(|bits| u64::from_str_radix(bits.trim(), 16).expect("bits") >> (number - 1) & 1 == 0)
}

/// A file of results is either complete or does not exist, however the process ends.
#[test]
#[cfg(target_os = "linux")]
fn a_signal_leaves_no_file() {
    use std::io::Write;
    use std::process::{Command, Stdio};
    for signal in [("HUP", 1), ("INT", 2), ("TERM", 15), ("KILL", 9)].into_iter().filter(is_heard).map(|(name, _)| name)
    {
        let shell = Shell::new();
        let args = ["eval", "-e", "x + 1.0", "-", "--types", "x=f64", "--data-format", "jsonl", "-o", "out.csv"];
        let mut command = shell.command(&[&args[..], &["--on-error", "missing", "--errors", "errors.csv"]].concat());
        let mut child = command.stdin(Stdio::piped()).spawn().expect("the binary runs");
        let mut pipe = child.stdin.take().expect("a pipe");
        pipe.write_all(b"{\"x\": 1}\n").expect("it is read");
        // It writes once it has files in its folder open.
        let folder = std::fs::canonicalize(shell.path(".")).expect("a folder");
        let open = format!("/proc/{}/fd", child.id());
        let is_of_folder = |path: std::path::PathBuf| path.starts_with(&folder) && path != folder;
        let is_written = || {
            let files = std::fs::read_dir(&open).expect("it runs");
            files
                .flatten()
                .filter_map(|file| std::fs::read_link(file.path()).ok())
                .filter(|at| is_of_folder(at.clone()))
                .count()
                == 2
        };
        while !is_written() {
            assert_eq!(child.try_wait().expect("a child"), None);
            std::thread::yield_now();
        }
        let sent = Command::new("kill").args(["-s", signal, &child.id().to_string()]).status().expect("a command");
        assert!(sent.success());
        assert_eq!(child.wait().expect("it ends").code(), None, "{signal}");
        drop(pipe);
        let left: Vec<_> =
            std::fs::read_dir(&folder).expect("a folder").flatten().map(|file| file.file_name()).collect();
        assert!(left.is_empty(), "{signal}: {left:?}");
    }
}

/// A temporary file with a name is removed when a signal ends the process. The test starts a process of its own.
#[test]
#[cfg(unix)]
#[expect(clippy::print_stdout, reason = "the process says when its file is there")]
fn a_signal_removes_a_file_with_a_name() {
    use cembra_table::unfinished::PendingFile;
    use std::io::{BufRead, BufReader};
    use std::os::unix::process::ExitStatusExt;
    use std::process::{Command, Stdio};
    const FOLDER: &str = "CEMBRA_TEST_FOLDER";
    if let Some(folder) = std::env::var_os(FOLDER) {
        let _file = PendingFile::named(std::path::Path::new(&folder)).expect("a file");
        println!("it is there");
        let _ = std::io::stdin().read_line(&mut String::new());
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    for (signal, number) in [("HUP", 1), ("INT", 2), ("TERM", 15)].into_iter().filter(is_heard) {
        let mut command = Command::new(std::env::current_exe().expect("this program"));
        command.args(["--exact", "--nocapture", "hostile::a_signal_removes_a_file_with_a_name"]);
        command.env(FOLDER, folder.path()).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("it runs");
        // To wait for a child closes its input, at whose end it would end by itself.
        let pipe = child.stdin.take();
        let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        assert!(lines.any(|line| line.is_ok_and(|line| line.contains("it is there"))));
        assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 1);
        let sent = Command::new("kill").args(["-s", signal, &child.id().to_string()]).status();
        assert!(sent.expect("a command").success());
        assert_eq!(child.wait().expect("it ends").signal(), Some(number));
        drop(pipe);
        assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 0, "{signal}");
    }
}
