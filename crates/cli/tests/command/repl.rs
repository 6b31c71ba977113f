//! Tests of `cembra repl` with input that is not a terminal, which is read line by line.

use super::shell::Shell;

fn said(input: &str) -> (Option<i32>, String, String) {
    let outcome = Shell::new().feed(&["repl"], input);
    (outcome.status, outcome.stdout, outcome.stderr)
}

#[test]
fn a_session_remembers() {
    let input = "let d = 3\nfn sq(x) = x * x\nsq(d) + 1\n:set x = 1.5\nsq(x) > 2\n:type sq(x)\nd + 1\n";
    assert_eq!(said(input), (Some(0), "10\npresent\nf64\n4\n".to_owned(), String::new()));
    // What comes after the end is not read.
    assert_eq!(said("1\n:quit\n2\n"), (Some(0), "1\n".to_owned(), String::new()));
    assert_eq!(said(""), (Some(0), String::new(), String::new()));
}

#[test]
fn a_session_says_how_its_numbers_are_computed() {
    let input = "let d = 3\n:type d / 2\nnumbers f32\n:type d / 2\n";
    assert_eq!(said(input).1, "f64\nf32\n");
    let input = "let d = 3\n:type 0.5f32 * 2.5\nnumbers f64\n:type 0.5f32 * 2.5\n1 / 3\nnumbers i32\n:type 1 / 3\n";
    let (status, stdout, stderr) = said(input);
    assert_eq!((status, &*stdout), (Some(1), "f32\nf64\n0.3333333333333333f64\nf64\n"));
    assert!(stderr.contains("write `numbers f64`, `numbers f32`, or leave the statement out"), "{stderr}");
}

#[test]
fn input_goes_on_while_it_must() {
    assert_eq!(said("(1 +\n\t2\n) * 3\n1 +\n2\n"), (Some(0), "9\n3\n".to_owned(), String::new()));
    // An empty line ends what would go on for ever.
    let (status, stdout, stderr) = said("(1 +\n\n7\n");
    assert_eq!((status, &*stdout), (Some(1), "7\n"));
    assert!(stderr.contains("error["), "{stderr}");
    // So does the end.
    let (status, stdout, _) = said("(1");
    assert_eq!((status, &*stdout), (Some(1), ""));
}

#[test]
fn errors_are_shown_as_in_files_and_end_nothing() {
    let (status, stdout, stderr) = said("let a = 0\n100 // a\nsqr(4.0)\nx + 1\n5\n");
    assert_eq!((status, &*stdout), (Some(1), "5\n"));
    let division = "\
error[evaluation]: math.floor_divide: division by zero
 --> <session>:2:1
  |
2 | 100 // a
  | ^^^^^^^^
";
    assert!(stderr.starts_with(division), "{stderr}");
    assert!(stderr.contains("there is no operator `sqr`"), "{stderr}");
    assert!(stderr.contains("input `x` has no value") && stderr.contains("`:set x = 1.5`"), "{stderr}");
}

#[test]
fn a_value_of_another_type_is_shown_where_it_is_given() {
    let (status, stdout, stderr) = said("input age: i32\n:set age = 30.5\n:set age = 30\nage + 1\n");
    assert_eq!((status, &*stdout), (Some(1), "31\n"));
    let refused = "\
error[input-type]: input `age` is i32, but its value is f64
 --> <session>:1:12
  |
1 | :set age = 30.5
  |            ^^^^
  |
  = help: set another value, as in `:set age = 2`
";
    assert_eq!(stderr.trim_end(), refused.trim_end());
}

#[test]
fn problems_are_shown_again() {
    let (status, stdout, stderr) = said(":errors\n100 // 0\nsqr(4.0)\n");
    assert_eq!((status, &*stdout), (Some(1), "there were no errors\n"));
    // What was shown, in its order; of very many only the last.
    let (_, again, shown) = said("100 // 0\nsqr(4.0)\n:errors\n");
    assert_eq!((again.as_str(), &shown), (stderr.as_str(), &stderr));
    let many: String = (0..12).map(|at| format!("x{at}\n")).collect();
    let (_, last, _) = said(&(many + ":errors\n"));
    let names = |text: &str| text.matches("has no value").count();
    assert!(names(&last) == 10 && !last.contains("`x1`") && last.contains("`x11`"), "{last}");
}

#[test]
fn commands_explain_and_measure() {
    let (status, stdout, stderr) = said(":set x = 2.0f32\n:explain x * x expr\n:explain x * x\n:time x * x\n:help\n");
    assert_eq!((status, &*stderr), (Some(0), ""));
    assert!(stdout.starts_with("input x\noutput result = x * x\n"), "{stdout}");
    assert!(stdout.contains("math.multiply") && stdout.contains("\ncompile: "), "{stdout}");
    assert!(stdout.contains(" ns by ") && stdout.contains(":explain EXPR [STAGE]"), "{stdout}");
}
