//! Tests that each type that is inferred from data is printed with the row that decided it.

use super::shell::Shell;

const ROWS: &str = "id,amount,code,day,empty,p.x,p.y
1,5,7,2026-01-01,,1,2
2,6,8,2026-01-02,,1,2

3,2.5,9,2026-01-03,,1,2.5
4,7,A7,2026-01-04,,x,2
5,8,10,n/a,,y,3
";

const OBJECTS: &str = "{\"x\":1,\"y\":1,\"s\":{\"a\":1}}
{\"x\":2,\"s\":{\"a\":2}}
{\"x\":2.5,\"y\":3,\"s\":{\"a\":3,\"b\":\"t\"}}
{\"x\":\"NaN\",\"y\":4,\"s\":{\"a\":1.5}}
{\"x\":5,\"y\":5,\"s\":{\"a\":2}}
";

#[test]
fn check_tells_types_of_csv_with_the_row_that_decided_them() {
    let shell = Shell::new().file("rows.csv", ROWS);
    let model = "input id: i64; output a = id; output b = amount; output c = code; output d = day; output e = empty
        output f = p; output g = k";
    let args = ["check", "-e", model, "rows.csv", "-s", "k=1.5"];
    let inputs = "input id: i64
input amount: f64?  # decided at rows.csv:5
input code: text?  # decided at rows.csv:6
input day: text?  # decided at rows.csv:7
input empty: f64?  # no value in the first rows of rows.csv
input p: {x: text?, y: f64?}  # decided at rows.csv:6
input k: f64
";
    let told = shell.stdout(&args);
    assert!(told.starts_with(inputs) && told.contains("\noutput b: f64?\n"), "{told}");
    // Options about data have the same effect as in a run.
    let day = shell.stdout(&["check", "-e", "output d = day", "rows.csv", "--null", "n/a"]);
    assert_eq!(day, "input day: date?  # decided at rows.csv:2\noutput d: date?\n");
    let json = shell.stdout(&[&args[..], &["--format", "json"]].concat());
    assert!(json.contains("\"type\": \"f64?\",\n      \"from\": \"decided at rows.csv:5\""), "{json}");
    assert_eq!(json.matches("\"from\"").count(), 5, "{json}");
}

#[test]
fn check_tells_types_of_json_and_of_columns_with_types() {
    let shell = Shell::new().file("rows.jsonl", OBJECTS);
    let model = ["-e", "output a = x; output b = y; output c = s"];
    let told = shell.stdout(&[&["check"], &model[..], &["rows.jsonl"]].concat());
    let inputs = "input x: f64  # decided at rows.jsonl:3
input y: i64?  # decided at rows.jsonl:2
input s: {a: f64, b: text?}  # decided at rows.jsonl:4
";
    assert!(told.starts_with(inputs), "{told}");
    shell.stdout(&["eval", "-e", "output \"x\" = x", "rows.jsonl", "-o", "rows.parquet"]);
    let told = shell.stdout(&["check", "-e", "output y = x", "rows.parquet"]);
    assert_eq!(told, "input x: f64  # the type of its column in rows.parquet\noutput y: f64\n");
}

#[test]
fn verbose_tells_types_of_inputs_and_of_columns_that_are_carried() {
    let shell = Shell::new().file("rows.jsonl", OBJECTS).file("rows.csv", ROWS);
    let run = ["eval", "-e", "output z = x", "rows.jsonl", "--keep", "y,s", "--verbose"];
    let noted = shell.run(&[&run[..], &["--format", "jsonl"]].concat()).stderr;
    let types = "note: input x: f64, decided at rows.jsonl:3
note: column y: i64?, decided at rows.jsonl:1
note: column s: {a: f64, b: text?}, decided at rows.jsonl:4
";
    assert!(noted.starts_with(types), "{noted}");
    let run = ["eval", "-e", "input id: i64; output z = id", "rows.csv", "--keep", "amount", "--verbose"];
    let noted = shell.run(&[&run[..], &["--format", "jsonl"]].concat()).stderr;
    assert!(noted.starts_with("note: column amount: f64?, decided at rows.csv:5\n"), "{noted}");
    // A field that is carried from CSV to CSV is a text and has no type.
    assert!(!shell.run(&run).stderr.contains("column amount"));
}

#[test]
fn check_refuses_what_a_run_refuses() {
    let shell = Shell::new().file("rows.csv", ROWS);
    let failed = |args: &[&str], says: &str| {
        let outcome = shell.run(&[&["check", "-e"], args].concat());
        assert_ne!(outcome.status, Some(0), "{args:?}");
        assert!(outcome.stderr.contains(says), "no `{says}` in {}", outcome.stderr);
    };
    failed(&["amount + other", "rows.csv"], "other");
    failed(&["code * 2", "rows.csv"], "types inferred from the data: code: text?");
    failed(&["x", "-s", "x=1"], "leave `-s` out");
    failed(&["x", "--null", "NA"], "leave `--null` out: it applies to CSV, but there is no DATA");
    failed(&["amount", "rows.csv", "--date-format", "%Y"], "leave `--date-format` out");
    failed(&["input t: tensor[f64, 2]; t", "rows.csv"], "leave DATA out");
}
