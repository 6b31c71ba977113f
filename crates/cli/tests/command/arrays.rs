//! Tests of models with arrays on the command line: values, rows of JSON, results in every format, and the messages where arrays are not supported.

use super::shell::Shell;

const MODEL: &str = "input x: [f64?]\ninput k: f64\noutput y = x * k\noutput d = 6.0 // math.sum(x)\n";
const ROWS: &str = "{\"x\": [1, 2.5, null], \"k\": 2, \"id\": 7}\n{\"k\": 1, \"x\": [], \"id\": 8}\n\
                    {\"x\": [1, \"NaN\"], \"k\": 1, \"id\": 9}\n";

fn shell() -> Shell {
    Shell::new().file("m.cem", MODEL).file("rows.jsonl", ROWS)
}

#[test]
fn values_are_elements_in_brackets() {
    let shell = Shell::new();
    let one = |more: &[&str]| {
        let args: Vec<&str> = ["eval", "--format", "jsonl"].iter().chain(more).copied().collect();
        shell.stdout(&args)
    };
    assert_eq!(one(&["-e", "[1, 2] * 2"]), "{\"result\":[2,4]}\n");
    let declared = ["-e", "input x: [f32?]; x * 2.0", "-s"];
    let with = |value: &str| one(&[&declared[..], &[value]].concat());
    assert_eq!(with("x=[1, missing, 0.1]"), "{\"result\":[2.0,null,0.2]}\n");
    assert_eq!(with("x = [ ]"), "{\"result\":[]}\n");
    assert_eq!(with("x=[i32?]{1, NA}"), "{\"result\":[2.0,null]}\n");
    // A weak float is no FLOAT32 on its way into an undeclared array.
    assert_eq!(one(&["-e", "x[1] * 3.0", "-s", "x=[1, 0.1]"]), "{\"result\":0.30000000000000004}\n");
    assert_eq!(one(&["-e", "input b: [text?]; (b, 1)", "-s", "b=[\"a\", missing]"]), "{\"result\":[[\"a\",null],1]}\n");
    assert_eq!(
        one(&["-e", "input by: edge; math.sum([1, 2, 3], into=by)", "-s", "by=edge{0, 2, 3}"]),
        "{\"result\":[3,3]}\n"
    );
    for (args, expected) in [
        (&["x", "x=[]"], "`-s x=[]` has no type; declare the input, as in `input x: [f64?]`"),
        (&["x", "x=[1, \"a\"]"], "`-s x=[1, \"a\"]`: these elements have no common type"),
        (&["input x: [i32]; x", "x=[0.5]"], "`-s x=[0.5]`: the input `x` is [i32?]"),
        (&["input x: i32; x", "x=[5]"], "`-s x=[5]`: the input `x` is i32"),
        (&["input x: [i32]; x", "x=5"], "`-s x=5`: the input `x` is [i32?], found i64"),
        (&["input x: [i32]; x", "x=[5, y]"], "expected a literal, found `y`"),
        (&["input by: edge; array.count([1], into=by)", "by=[1]"], "`edge.from_sizes(sizes)`"),
    ] {
        let outcome = shell.run(&["eval", "-e", args[0], "-s", args[1]]);
        assert_eq!(outcome.status, Some(2), "{outcome}");
        assert!(outcome.stderr.contains(expected), "{outcome}");
    }
}

#[test]
fn rows_of_json_go_through_in_every_form() {
    let shell = shell();
    let run = |more: &[&str]| {
        let args: Vec<&str> =
            ["eval", "m.cem", "rows.jsonl", "--on-error", "missing"].iter().chain(more).copied().collect();
        shell.run(&args).stdout
    };
    let jsonl = "{\"id\":7,\"x\":[1.0,2.5,null],\"k\":2.0,\"y\":[2.0,5.0,null],\"d\":1.0}\n\
                 {\"id\":8,\"x\":[],\"k\":1.0,\"y\":null,\"d\":null}\n\
                 {\"id\":9,\"x\":[1.0,\"NaN\"],\"k\":1.0,\"y\":[1.0,\"NaN\"],\"d\":\"NaN\"}\n";
    let all = ["--keep", "id", "--keep-inputs", "--format"];
    assert_eq!(run(&[&all[..], &["jsonl"]].concat()), jsonl);
    assert_eq!(run(&[&all[..], &["jsonl", "--batch-rows", "1", "--backend", "interp"]].concat()), jsonl);
    assert_eq!(run(&["--format", "csv"]), "y,d\n\"[2.0,5.0,null]\",1\n,\n\"[1.0,\"\"NaN\"\"]\",nan\n");
    assert_eq!(
        run(&["--only", "y", "--format", "table"]),
        "\
┌────────────────┐
│ y              │
╞════════════════╡
│ [2.0,5.0,null] │
│ []             │
│ [1.0,\"NaN\"]    │
└────────────────┘
"
    );
}

#[test]
fn a_row_that_fails_or_is_none_is_told() {
    let shell = shell();
    let outcome = shell.run(&["eval", "m.cem", "rows.jsonl"]);
    assert_eq!((outcome.status, outcome.stdout.as_str()), (Some(1), "y,d\n\"[2.0,5.0,null]\",1\n"), "{outcome}");
    assert!(outcome.stderr.contains("math.floor_divide: division by zero"), "{outcome}");
    assert!(outcome.stderr.contains("in the row at rows.jsonl:2: x = [], k = 1"), "{outcome}");
    let skip = shell.run(&["eval", "m.cem", "rows.jsonl", "--on-error", "skip", "--only", "d"]);
    assert_eq!((skip.status, skip.stdout.as_str()), (Some(0), "d\n1\nnan\n"), "{skip}");
    for (row, expected) in [
        ("{\"k\": 1, \"x\": [1, \"a\"]}", "column `x.1`: expected f64?, found `\"a\"`"),
        ("{\"k\": 1, \"x\": null}", "column `x`: expected [f64?], found `null`"),
        ("{\"k\": 1, \"x\": 3}", "column `x`: expected [f64?], found `3`"),
        ("{\"k\": 1}", "no column `x`"),
    ] {
        let shell = Shell::new().file("m.cem", MODEL).file("rows.jsonl", format!("{{\"k\": 1, \"x\": [6]}}\n{row}\n"));
        let outcome = shell.run(&["eval", "m.cem", "rows.jsonl"]);
        assert_eq!((outcome.status, outcome.stdout.as_str()), (Some(1), "y,d\n[6.0],1\n"), "{outcome}");
        assert!(outcome.stderr.contains(expected) && outcome.stderr.contains("rows.jsonl:2"), "{outcome}");
    }
    let csv = shell.file("rows.csv", "x,k\n[1],2\n");
    let outcome = csv.run(&["eval", "m.cem", "rows.csv"]);
    assert!(
        outcome.stderr.contains("a field of CSV cannot hold an array") && outcome.stderr.contains("JSON"),
        "{outcome}"
    );
    let edge = csv.run(&["eval", "-e", "input by: edge; array.count([1], into=by)", "rows.jsonl"]);
    assert!(edge.stderr.contains("column `by`: data cannot have the type edge"), "{edge}");
    assert!(edge.stderr.contains("`edge.from_sizes(sizes)`"), "{edge}");
}

#[test]
fn other_commands_say_what_they_cannot_do() {
    let shell = shell();
    let outcome = shell.run(&["build", "m.cem", "-o", "m.o"]);
    assert_eq!(outcome.status, Some(1), "{outcome}");
    assert!(outcome.stderr.starts_with("error[arrays]: the model has arrays"), "{outcome}");
    assert_eq!(shell.stdout(&["check", "m.cem"]), "input x: [f64?]\ninput k: f64\noutput y: [f64?]\noutput d: f64\n");
    let all = shell.stdout(&["explain", "m.cem", "--stage", "all"]);
    let stages: Vec<&str> = all.lines().filter(|line| line.starts_with("== ")).collect();
    assert_eq!(stages.len(), 9, "{stages:?}");
    let sentence = "The model has arrays: `arrays` shows its steps, and the plans for their elements.\n";
    for stage in ["plan", "clif", "asm"] {
        assert_eq!(shell.stdout(&["explain", "m.cem", "--stage", stage]), sentence);
    }
    let lanes = shell.stdout(&["explain", "m.cem", "--stage", "lanes"]);
    assert!(
        lanes.starts_with("Over many rows:\n") && lanes.contains("the edge that assigns elements to the rows of `x`"),
        "{lanes}"
    );
    let apart = shell.stdout(&["explain", "-e", "input x: [f64]; x[0]", "--stage", "lanes"]);
    assert_eq!(
        apart,
        "rows are evaluated one by one because of array.at: the operator cannot be computed for the arrays of many rows at once.\n"
    );
    let scalar = shell.stdout(&["explain", "-e", "input x: f64; x", "--stage", "arrays"]);
    assert_eq!(scalar, "The model has no arrays and no tensors: `plan` shows its steps.\n");
}

#[test]
fn lists_are_read_from_files_that_have_them() {
    let shell = shell();
    for ending in ["parquet", "arrow"] {
        let file = format!("a.{ending}");
        let args = ["eval", "m.cem", "rows.jsonl", "--on-error", "missing", "--keep-inputs", "-o", &file];
        assert_eq!(shell.run(&args).status, Some(0));
        let counts = "input x: [f64?]; output n = array.count(x); output s = math.sum(x)";
        assert_eq!(shell.stdout(&["eval", "-e", counts, &file]), "n,s\n2,3.5\n0,0\n2,nan\n", "{ending}");
        // Its type is that of the file.
        assert_eq!(shell.stdout(&["eval", "-e", "array.size(x)", &file]), "result\n3\n0\n2\n", "{ending}");
        let other = shell.run(&["eval", "-e", "input x: [i64?]; math.sum(x)", &file]);
        assert!(other.stderr.contains("column `x.1`: in row 1, expected i64?, found `2.5`"), "{other}");
        let missing = shell.run(&["eval", "-e", "input y: [f64?]; math.sum(y)", &file]);
        let message = "column `y`: in row 2, expected [f64?], found a missing value";
        assert!(missing.stderr.contains(message) && missing.stdout == "result\n7\n", "{missing}");
        let text = shell.run(&["eval", "-e", "input x: [text]; array.size(x)", &file]);
        assert!(text.stderr.contains("column `x`: expected [text?], found a column of"), "{text}");
    }
}

/// Enough rows for a joint evaluation on columns, with one row that fails.
#[test]
fn many_rows_of_lists_give_what_few_do() {
    let rows: String = (0..700)
        .map(|row: i32| {
            let list: Vec<String> =
                (0..row % 5).map(|at| if at == 3 { "null".to_owned() } else { at.to_string() }).collect();
            format!("{{\"x\": [{}], \"k\": {}}}\n", list.join(", "), if row == 650 { 0 } else { row % 7 + 1 })
        })
        .collect();
    let shell = Shell::new().file("rows.jsonl", rows);
    let model =
        "input x: [f64?]; input k: f64; output y = x // k; output s = math.sum(x) * k; output n = array.size(x)";
    for more in [&["--on-error", "missing"][..], &["--on-error", "skip"], &[]] {
        let run = |how: &[&str]| shell.run(&[&["eval", "-e", model, "rows.jsonl"], more, how].concat());
        let (many, few) = (run(&[]), run(&["--batch-rows", "3"]));
        assert_eq!((many.status, &many.stdout), (few.status, &few.stdout));
        assert!(many.stdout.starts_with("y,s,n\n[],0,0\n[0.0],0,1\n\"[0.0,0.0]\",3,2\n"), "{many}");
    }
}

/// With 256 rows or more, the model is evaluated on columns, with fewer rows it is evaluated row by row. Both must give the same lists of masks.
#[test]
fn lists_of_masks_are_the_same_for_any_number_of_rows() {
    let mut shell = Shell::new();
    for rows in [255, 256] {
        let of = |row: usize| if row == 1 { "{\"xs\":[]}\n" } else { "{\"xs\":[0.5,2.0]}\n" };
        shell = shell.file(&format!("{rows}.jsonl"), (0..rows).map(of).collect::<String>());
        let file = format!("{rows}.jsonl");
        let args = ["eval", "-e", "input xs: [f64]; output m = xs > 1.0", &file];
        let of = |row: usize| if row == 1 { "{\"m\":[]}\n" } else { "{\"m\":[null,true]}\n" };
        let expected: String = (0..rows).map(of).collect();
        assert_eq!(shell.stdout(&[&args[..], &["--format", "jsonl"]].concat()), expected, "{rows}");
        for form in ["parquet", "arrow"] {
            let made = format!("{rows}.{form}");
            assert_eq!(shell.stdout(&[&args[..], &["-o", &made]].concat()), "");
            let back = ["eval", "-e", "1", &made, "--keep", "m", "--format", "jsonl"];
            let read = shell.stdout(&back).replace(",\"result\":1}", "}");
            assert_eq!(read, expected, "{made}");
        }
    }
}

#[test]
fn lists_that_the_data_lack_are_empty_by_default() {
    let model = "input a: [f64] = [], items: [{v: f64}] = []\noutput n = array.size(a)\noutput s = sum(items.v)\n";
    let rows =
        "{\"a\": null, \"items\": null}\n{}\n{\"a\": [1], \"items\": [{\"v\": 2.5}]}\n{\"a\": [], \"items\": []}\n";
    let shell = Shell::new().file("m.cem", model).file("rows.jsonl", rows);
    assert_eq!(shell.stdout(&["eval", "m.cem", "rows.jsonl"]), "n,s\n0,0\n0,0\n1,2.5\n0,0\n");
    assert_eq!(shell.stdout(&["eval", "m.cem"]), "n,s\n0,0\n");
    assert_eq!(shell.stdout(&["eval", "m.cem", "-s", "a=[1, 2]"]), "n,s\n2,0\n");
    assert!(shell.stdout(&["check", "m.cem"]).starts_with("input a: [f64] = []\ninput items: [{v: f64}] = []\n"));
    let other = Shell::new().file("rows.jsonl", rows);
    let outcome = other.run(&["eval", "-e", "input a: [f64]; array.size(a)", "rows.jsonl"]);
    assert!(outcome.stderr.contains("or declare the input with the default `= []`"), "{outcome}");
}

#[test]
fn people_see_the_first_elements_of_long_lists_and_files_have_all() {
    let shell = Shell::new();
    let list = |len: usize| format!("[{}]", (1..=len).map(|at| at.to_string()).collect::<Vec<_>>().join(", "));
    let (whole, long) = (list(100), list(101));
    let rows = format!(
        "{{\"a\": {whole}, \"items\": [{{\"v\": 1}}]}}\n{{\"a\": {long}, \"items\": [{}]}}\n",
        ["{\"v\": 2}"; 101].join(", ")
    );
    let shell = shell.file("rows.jsonl", rows);
    let model = "input a: [i64], items: [{v: i64}]\noutput b = a\noutput of = items";
    let table = shell.stdout(&["eval", "-e", model, "rows.jsonl", "--format", "table"]);
    let [first, second] = [3, 4].map(|line| table.lines().nth(line).expect("a row").to_owned());
    assert!(first.contains(&whole.replace(' ', "")) && first.contains("[{\"v\":1}]"), "{first}");
    assert!(second.contains("[1,2,3,4,5,6,7,8,9,10, ... (101 elements)]"), "{second}");
    assert!(second.contains(&format!("[{}, ... (101 elements)]", ["{\"v\":2}"; 10].join(","))), "{second}");
    for form in ["csv", "jsonl"] {
        let made = shell.stdout(&["eval", "-e", model, "rows.jsonl", "--format", form]);
        assert!(made.contains(&long.replace(' ', "")) && !made.contains("elements"), "{made}");
    }
    let session = shell.feed(&["repl"], &format!("{whole}\n{long}\n:set x = {long}\n:set\n"));
    let shown = "[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, ... (101 elements)]";
    let lines: Vec<&str> = session.stdout.lines().collect();
    assert_eq!(
        lines,
        [&*format!("[i32?]{{{}}}", &whole[1..whole.len() - 1]), shown, &*format!("x = {shown}")],
        "{session}"
    );
}

#[test]
fn dictionaries_that_the_data_lack_are_empty_by_default() {
    let model = "input k: text = \"a\", rates: dict[text, f64] = {}\noutput rate = lookup(k, rates, 0.5)\n"
        .replace("text = ", "text? = ");
    let rows = "{\"rates\": null}\n{}\n{\"rates\": {\"a\": 2}}\n";
    let shell = Shell::new().file("m.cem", model).file("rows.jsonl", rows);
    assert_eq!(shell.stdout(&["eval", "m.cem", "rows.jsonl"]), "rate\n0.5\n0.5\n2\n");
    assert_eq!(shell.stdout(&["eval", "m.cem"]), "rate\n0.5\n");
    assert_eq!(shell.stdout(&["eval", "m.cem", "-s", "rates={\"a\": 3}"]), "rate\n3\n");
    assert!(shell.stdout(&["check", "m.cem"]).contains("input rates: dict[text, f64] = {}\n"));
}
