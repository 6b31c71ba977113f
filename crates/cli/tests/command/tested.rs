//! Tests of `cembra test`: its output for models whose tests pass, and for models whose tests fail.

use super::shell::Shell;

const MODEL: &str = "\
input age: f64? = 30
output score = 60.0 / age
output half = 1 // n

test \"adult\" { age = 120 } => { score = 0.5 }
test \"child\" { age = 4 } => { score = 14, half = 1 }
test \"table\" {
    n => half
    1 => 1
    0 => 7
    0 => error \"div-by-zero\"
}
";

#[test]
fn differences_are_shown_with_their_lines() {
    let shell = Shell::new()
        .file("m.cem", MODEL.replace("half = 1 }", "score = 15 }"))
        .file("good.cem", "1\ntest 'one' {} => { result = 1 }");
    let shell = shell.file("none.cem", "output y = 1");
    let found = shell.run(&["test", "m.cem", "good.cem", "none.cem"]);
    assert_eq!((found.status, found.stderr.as_str()), (Some(1), ""));
    assert_eq!(
        found.stdout,
        "\
m.cem:6: test \"child\" failed
- score = 14.0
+ score = 15.0

m.cem:10: test \"table\" failed
- no error
+ error \"div-by-zero\": math.floor_divide: division by zero

m.cem: 5 cases, 2 failed
good.cem: 1 case passed
none.cem: no tests
"
    );
    let found = shell.run(&["test", "good.cem", "none.cem"]);
    assert_eq!((found.status, found.stdout.as_str()), (Some(0), "good.cem: 1 case passed\nnone.cem: no tests\n"));
}

#[test]
fn without_files_those_of_the_folder_are_tested() {
    let shell = Shell::new()
        .file("b.cem", "use \"a.cem\"\ninput x: f64\noutput y = twice(x)\ntest \"t\" { x = 2 } => { y = 4 }\n")
        .file("a.cem", "fn twice(x) = x * 2.0\n");
    assert_eq!(shell.stdout(&["test"]), "b.cem: 1 case passed\n");
    let found = shell.run(&["test", "a.cem"]);
    assert_eq!(found.status, Some(1));
    assert!(found.stderr.starts_with("error[no-output]"), "{}", found.stderr);
    let found = Shell::new().run(&["test"]);
    assert_eq!(found.status, Some(2));
    assert!(found.stderr.contains("there is no `.cem` file in this folder"), "{}", found.stderr);
}

#[test]
fn tests_take_unsigned_integers() {
    let test = "test \"t\" {\n    u => y\n    7 => 7\n    18446744073709551615 => 18446744073709551615\n}\n";
    let shell = Shell::new().file("m.cem", format!("input u: u64\noutput y = u\n{test}"));
    assert_eq!(shell.stdout(&["test", "m.cem"]), "m.cem: 2 cases passed\n");
}

/// An input without a declared type takes the type of the test's value. Warnings use this type too.
#[test]
fn warnings_are_of_the_types_that_tests_give() {
    let text = "numbers f32\noutput y = x / 3\ntest \"t\" { x = 5000000001 } => { y = 1666666667f32 }\n\
                test \"same\" { x = 3 } => { y = 1 }\ntest \"wide\" { x = 3.0 } => { y = 1.0 }\n";
    let shell = Shell::new().file("m.cem", text);
    let found = shell.run(&["test", "m.cem"]);
    assert_eq!((found.status, found.stdout.as_str()), (Some(0), "m.cem: 3 cases passed\n"));
    // Once, although two tests give the type.
    assert_eq!(found.stderr.matches("warning[lost-digits]: an i64 becomes an f32 here").count(), 1, "{found}");
    assert_eq!(shell.run(&["test", "--quiet", "m.cem"]).stderr, "");
}

/// The command must not wait for a pipe in the folder, to which no process writes.
#[test]
#[cfg(target_os = "linux")]
fn only_regular_files_of_the_folder_are_tested() {
    let shell = Shell::new().file("good.cem", "1\ntest 'one' {} => { result = 1 }");
    let pipe = shell.path("pipe.cem");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().expect("a command").success());
    std::fs::create_dir(shell.path("folder.cem")).expect("a folder");
    assert_eq!(shell.stdout(&["test"]), "good.cem: 1 case passed\n");
}

#[test]
fn a_test_that_does_not_fit_is_told() {
    let shell = Shell::new().file("m.cem", "input x: f64; output y = x\ntest \"t\" { z = 2 } => { y = 4 }\n");
    let found = shell.run(&["test", "m.cem"]);
    assert_eq!(found.status, Some(1));
    assert!(found.stdout.starts_with("m.cem:2: test \"t\" failed\n  error["), "{}", found.stdout);
}

#[test]
fn branches_that_no_case_takes_are_told() {
    let model = "\
input n: i32?
input flag: bool
fn sign(x) = if x < 0 then -1 else 1
output part = if n > 0 then (if 100 // (n - 5) > 20 then 1 else 2) else n ?? 7
output both = flag and sign(n) > 0
output other = if flag or n == 3 then sign(n) else sign(2)

test 'positive' { n = 6, flag = true } => { part = 1, both = present }
test 'fails' { n = 5, flag = true } => error 'div-by-zero'
";
    let shell = Shell::new().file("m.cem", model);
    assert_eq!(shell.stdout(&["test"]), "m.cem: 2 cases passed\nbranches: 6 of 14 taken\n");
    let expected = "\
m.cem: 2 cases passed
branches: 6 of 14 taken
m.cem:3:28: the `then` branch is never taken: `-1`
m.cem:4:65: the `else` branch is never taken: `2`
m.cem:4:73: the `else` branch is never taken: `n ?? 7`
m.cem:4:73: the left side of `??` is never taken: `n`
m.cem:4:78: the right side of `??` is never taken: `7`
m.cem:5:15: the left side of `and` always holds: `flag`
m.cem:6:27: the right side of `or` is never reached: `n == 3`
m.cem:6:52: the `else` branch is never taken: `sign(2)`
";
    assert_eq!(shell.stdout(&["test", "--coverage"]), expected);
}

/// The left sides of two `or` in a row begin at the same place in the text.
#[test]
fn sides_that_begin_together_are_told_apart() {
    let model = "\
input a: i32
output y = a > 1 or a > 2 or a > 3
test 'none' { a = 0 } => { y = missing }
";
    let shell = Shell::new().file("m.cem", model);
    let expected = "\
m.cem: 1 case passed
branches: 2 of 4 taken
m.cem:2:12: the left side of `or` never holds: `a > 1 or a > 2`
m.cem:2:12: the left side of `or` never holds: `a > 1`
";
    assert_eq!(shell.stdout(&["test", "--coverage"]), expected);
}

#[test]
fn branches_of_arrays_are_taken_by_elements() {
    let model = "\
input x: [i32?]
output y = if x > 0 then x else 0 - x
output z = x ?? 1
test 'one of each' { x = [1, -1] } => { y = [1, 1], z = [1, -1] }
";
    let shell = Shell::new().file("m.cem", model);
    let expected = "\
m.cem: 1 case passed
branches: 3 of 4 taken
m.cem:3:17: the right side of `??` is never taken: `1`
";
    assert_eq!(shell.stdout(&["test", "--coverage"]), expected);
}

#[test]
fn tests_may_take_only_so_long() {
    let model = "\
input n: i64
output y = seq.reduce(fn(s, i) = s + seq.reduce(fn(t, j) = t + i * j, seq.range(n), 0), seq.range(n), 0)
test 'short' { n = 3 } => { y = 9 }
test 'long' { n = 3000000 } => { y = 0 }
";
    let shell = Shell::new().file("m.cem", model);
    let outcome = shell.run(&["test", "--time-limit", "0.1"]);
    assert_eq!(outcome.status, Some(1), "{}", outcome.stderr);
    assert!(outcome.stdout.contains("the time limit of the evaluation is over"), "{}", outcome.stdout);
}

#[test]
fn a_case_that_fails_may_have_missing_outputs() {
    let shell = Shell::new().file(
        "m.cem",
        "input x: i32\noutput y = 100 // x\noutput z = x + 1\ntest \"t\" {\n    x => y, z\n    0 => missing, missing\n    0 => missing, 1\n    \
         5 => 20, 6\n}\ntest \"error\" { x = 0 } => error \"div-by-zero\"",
    );
    let found = shell.run(&["test", "m.cem"]);
    assert!(found.status == Some(1) && found.stdout.ends_with("m.cem: 4 cases, 2 failed\n"), "{}", found.stdout);
    let found = shell.run(&["test", "m.cem", "--on-error", "missing"]);
    assert!(
        found.stdout.starts_with("m.cem:7: test \"t\" failed\n- no error\n+ error \"div-by-zero\""),
        "{}",
        found.stdout
    );
    assert!(found.status == Some(1) && found.stdout.ends_with("m.cem: 4 cases, 1 failed\n"), "{}", found.stdout);
}
