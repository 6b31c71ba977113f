//! Tests of messages that propose an option, such as `--delimiter`, for numbers with thousands separators, marks of missing values, and delimiters.

use super::shell::Shell;

/// Runs the command, which must fail with status 1, and returns its message.
fn failed(shell: &Shell, args: &[&str]) -> String {
    let outcome = shell.run(args);
    assert_eq!(outcome.status, Some(1), "{outcome}");
    outcome.stderr
}

#[test]
fn thousands_get_advice_of_their_own() {
    let shell = Shell::new()
        .file("us.csv", "id,amount\n1,\"2,590\"\n2,\"7,770.25\"\n")
        .file("large.csv", "amount\n\"1,234,567\"\n")
        .file("de.csv", "id;amount\n1;1.355,90\n2;12,50\n")
        .file("ch.csv", "amount\n1'234.50\n")
        .file("fraction.csv", "amount\n2.590\n");
    let parsed = "strings.parse_float64(strings.replace(amount, \",\", \"\"))";
    let message = failed(&shell, &["eval", "-e", "input amount: f64; amount", "us.csv"]);
    let advice = format!(
        "help: `input amount: text`, and `{parsed}` for its number, if the comma is between thousands; `--decimal ,` if it is before the fraction"
    );
    assert!(message.contains(&advice), "{message}");
    let message = failed(&shell, &["eval", "-e", "input amount: i64; amount", "large.csv"]);
    let advice = format!(
        "help: `input amount: text`, and `{parsed}` for its number: numbers must not have separators between thousands"
    );
    assert!(message.contains(&advice), "{message}");
    // A model that follows the advice works.
    let model = format!("input amount: text; {parsed}");
    assert_eq!(shell.stdout(&["eval", "-e", &model, "us.csv"]), "result\n2590\n7770.25\n");
    let german = "strings.parse_float64(strings.replace(strings.replace(amount, \".\", \"\"), \",\", \".\"))";
    for more in [&[][..], &["--decimal", ","]] {
        let message = failed(&shell, &[&["eval", "-e", "input amount: f64; amount", "de.csv"], more].concat());
        assert!(message.contains(german), "{message}");
    }
    let message = failed(&shell, &["eval", "-e", "input amount: f64; amount", "ch.csv"]);
    assert!(message.contains("strings.parse_float64(strings.replace(amount, \"'\", \"\"))"), "{message}");
    // Without an option, a point begins the fraction.
    let message = failed(&shell, &["eval", "-e", "input amount: i64; amount", "fraction.csv"]);
    assert!(message.contains("expected i64, found `2.590`") && !message.contains("strings.replace"), "{message}");
    // Without a declaration the column is a text.
    assert_eq!(shell.stdout(&["eval", "-e", "amount", "us.csv"]), "result\n\"2,590\"\n\"7,770.25\"\n");
    let message = failed(&shell, &["eval", "-e", "amount * 2", "us.csv"]);
    assert!(message.contains(&format!("note: `input amount: text`, and `{parsed}`")), "{message}");
    assert!(message.contains("; `amount` is a text because of us.csv:2"), "{message}");
}

/// Both sides of `and` and `or` are evaluated, even if the left side is written as a guard for the right side. The message of a fault on the right
/// side says so.
#[test]
fn a_guard_that_guards_nothing_is_told() {
    let shell = Shell::new().file("ab.csv", "a,b\n10,0\n10,2\n7,7\n");
    let of = |model: &str| format!("input a, b: i64; output big: bool = {model}");
    let message = failed(&shell, &["eval", "-e", &of("b != 0 and a // b > 1"), "ab.csv"]);
    let advised = "if b != 0 then a // b > 1";
    let note = format!(
        "= note: write `{advised}`, which evaluates the right side only if the left is true: `and` evaluates both\n"
    );
    assert!(message.contains("division by zero") && message.contains(&note), "{message}");
    assert_eq!(shell.stdout(&["eval", "-e", &of(advised), "ab.csv"]), "big\nfalse\ntrue\nfalse\n");
    let message = failed(&shell, &["eval", "-e", &of("b == 0 or a // b > 1"), "ab.csv"]);
    let note = "write `if .. then .. else ..`, which evaluates only the chosen side: `or` evaluates both";
    assert!(message.contains(note), "{message}");
    let message = failed(&shell, &["eval", "-e", &of("a // b > 1 and b != 0"), "ab.csv"]);
    assert!(!message.contains("evaluates"), "{message}");
}

#[test]
fn advice_for_a_number_names_its_input_as_a_model_does() {
    let shell = Shell::new().file("p.csv", "p.x,p.y\n\"1,234.5\",2\n").file("odd.csv", "net amount\n\"1,234.5\"\n");
    let message = failed(&shell, &["eval", "-e", "input p: {x: f64, y: f64}; p.x", "p.csv"]);
    let parsed = "strings.parse_float64(strings.replace(p.x, \",\", \"\"))";
    let advice = format!("`text` for `p.x` in the type of `input p`, and `{parsed}` for its number");
    assert!(message.contains(&advice), "{message}");
    let model = format!("input p: {{x: text, y: f64}}; {parsed}");
    assert_eq!(shell.stdout(&["eval", "-e", &model, "p.csv"]), "result\n1234.5\n");
    let parsed = "strings.parse_float64(strings.replace(L[\"net amount\"], \",\", \"\"))";
    let advice = format!("`input \"net amount\": text`, and `{parsed}` for its number");
    for model in ["input \"net amount\": f64; L[\"net amount\"]", "L[\"net amount\"] * 2.0"] {
        let message = failed(&shell, &["eval", "-e", model, "odd.csv"]);
        assert!(message.contains(&advice), "{message}");
    }
    let model = format!("input \"net amount\": text; {parsed}");
    assert_eq!(shell.stdout(&["eval", "-e", &model, "odd.csv"]), "result\n1234.5\n");
}

#[test]
fn marks_of_missing_values_are_told_declared_or_not() {
    let shell = Shell::new()
        .file("na.csv", "id,n,d,s\n1,NA,2026-01-02,x\n2,5,n/a,NA\n3,NA,2026-01-03,y\n")
        .file("two.csv", "n,m\n-,1\nNA,2\n3,a\n");
    for model in ["output x = n + 1", "input n: i64?; output x = n + 1", "input n: i64; output x = n + 1"] {
        let message = failed(&shell, &["eval", "-e", model, "na.csv"]);
        assert!(message.contains("use `--null NA` if `NA` stands for a missing value"), "{model}: {message}");
    }
    let message = failed(&shell, &["eval", "-e", "n + 1", "na.csv"]);
    assert!(
        message.contains("note: use `--null NA` if `NA` stands for a missing value; `n` is a text because of na.csv:2"),
        "{message}"
    );
    let message = failed(&shell, &["eval", "-e", "date.year(d)", "na.csv"]);
    assert!(
        message.contains("use `--null n/a` if `n/a` stands for a missing value; `d` is a text because of na.csv:3"),
        "{message}"
    );
    // In a column of texts, a mark is a text like any other.
    let message = failed(&shell, &["eval", "-e", "s + 1", "na.csv"]);
    assert!(!message.contains("--null"), "{message}");
    assert_eq!(shell.stdout(&["eval", "-e", "n + 1", "na.csv", "--null", "NA"]), "result\nNA\n6\nNA\n");
    // The value is another mark than the one that `--null` gives already.
    let message = failed(&shell, &["eval", "-e", "input n: i64?; n", "two.csv", "--null", "NA"]);
    assert!(message.contains("use `--null -` if `-` stands for a missing value"), "{message}");
    assert_eq!(shell.stdout(&["eval", "-e", "n", "two.csv", "--null", "NA", "--null", "-"]), "result\nNA\nNA\n3\n");
}

#[test]
fn a_delimiter_is_advised_where_the_header_has_another() {
    let shell = Shell::new()
        .file("pipe.csv", "id|n\n1|2\n3|4\n")
        .file("comma.csv", "id,n\n1,2\n")
        .file("caret.csv", "id^n\n1^2\n")
        .file("name.csv", "first|second,n\n1,2\n");
    for model in ["n * 2", "input n: i64; n * 2", "input n: i64?; n * 2", "input n: i64? = 7; n * 2"] {
        let message = failed(&shell, &["eval", "-e", model, "pipe.csv"]);
        assert!(message.contains("error[absent-column]: no column `n`\n"), "{message}");
        assert!(
            message.contains("= help: `--delimiter '|'` if the fields are separated by this character"),
            "{model}: {message}"
        );
    }
    assert_eq!(shell.stdout(&["eval", "-e", "n * 2", "pipe.csv", "--delimiter", "|"]), "result\n4\n8\n");
    let message = failed(&shell, &["eval", "-e", "n", "comma.csv", "--delimiter", ";"]);
    assert!(message.contains("`--delimiter ','` if"), "{message}");
    let message = failed(&shell, &["eval", "-e", "1", "caret.csv", "--keep", "n"]);
    assert!(message.contains("`--delimiter '^'` if"), "{message}");
    // The name of a column may contain a delimiter.
    assert_eq!(shell.stdout(&["eval", "-e", "L[\"first|second\"]", "name.csv"]), "result\n1\n");
    assert_eq!(shell.stdout(&["eval", "-e", "input z: i64? = 7; z", "name.csv"]), "result\n7\n");
}
