//! Tests of `cembra eval`: the exact results of the examples, values on the command line, rows from all sources, results to all destinations.

use super::shell::{Shell, example};
use std::fs;
use std::io::{Read, Write};
use std::process::Stdio;

#[test]
fn a_number_is_the_same_from_every_source() {
    let shell = Shell::new()
        .file("rows.csv", "x\n5000\n")
        .file("rows.json", "[{\"x\": 5000}]")
        .file("lists.jsonl", "{\"v\": [5000, 1]}\n{\"v\": [2]}\n{\"v\": []}\n")
        .file("model.cem", "output y = x * 1000000\ntest \"large\" { x = 5000 } => { y = 5000000000 }\n");
    let of = |with: &[&str]| shell.stdout(&[&["eval", "-e", "output y = x * 1000000"], with].concat());
    for with in [&["rows.csv"][..], &["rows.json"], &["-s", "x=5000"]] {
        assert_eq!(of(with), "y\n5000000000\n", "{with:?}");
    }
    shell.stdout(&["test", "model.cem"]);
    // Arrays of any length, of which the first is no pattern for the others.
    let sums = ["eval", "-e", "output y = sum(v * 1000000)", "lists.jsonl"];
    assert_eq!(shell.stdout(&sums), "y\n5001000000\n2000000\n0\n");
    assert_eq!(of(&["-s", "x=[5000, 1]", "--format", "jsonl"]), "{\"y\":[5000000000,1000000]}\n");
}

#[test]
fn a_value_is_read_by_the_declared_type() {
    let shell = Shell::new();
    let model = "input d: date; input s: text?; input n: i64?; output y = d + 1; output t = s; output m = n ?? -1";
    let with = |set: &[&str]| shell.run(&[&["eval", "-e", model], set].concat());
    let set = ["-s", "d=2026-11-20", "-s", "s=Dream", "-s", "n=7"];
    assert_eq!(with(&set).stdout, "y,t,m\n2026-11-21,Dream,7\n");
    // What may be missing is missing if it has no value; what may not has to have one.
    assert_eq!(with(&set[..2]).stdout, "y,t,m\n2026-11-21,,-1\n");
    let none = with(&[]);
    assert!(none.status == Some(1) && none.stderr.contains("input `d` has no value"), "{none}");
    let wrong = with(&["-s", "d=2026-02-30"]);
    assert!(wrong.status == Some(2), "{wrong}");
    assert!(wrong.stderr.contains("`-s d=2026-02-30`: the input `d` is date; write dates as `2026-11-20`"), "{wrong}");
    // Integers from 0 are u64 where that is declared, and keep a type that is written.
    let unsigned = |value: &str| shell.run(&["eval", "-e", "input u: u64; output y = u", "-s", value]);
    for value in ["7", "18446744073709551615"] {
        assert_eq!(unsigned(&format!("u={value}")).stdout, format!("y\n{value}\n"));
    }
    assert!(unsigned("u=-1").stderr.contains("the input `u` is u64, found i64"), "{}", unsigned("u=-1"));
    assert_eq!(shell.stdout(&["eval", "-e", "output y = x * 1000000", "-s", "x=5000i32"]), "y\n705032704\n");
    // Without a declared type it is a literal.
    let bare = shell.run(&["eval", "-e", "x", "-s", "x=Dream"]);
    assert!(bare.status == Some(2) && bare.stderr.contains("write quotes around a text"), "{bare}");
}

#[test]
fn the_quadratic_in_every_form() {
    let shell = Shell::new();
    let (model, rows) = (example("quadratic.cem"), example("quadratic.csv"));
    let run = |more: &[&str]| {
        let args: Vec<&str> = ["eval", &model, &rows, "--limit", "3"].iter().chain(more).copied().collect();
        shell.stdout(&args)
    };
    assert_eq!(run(&[]), "first,second\n2,1\n-1,-1\n,\n");
    assert_eq!(
        run(&["--keep-inputs", "--null", "none", "--backend", "interp"]),
        "a,b,c,first,second\n1,-3,2,2,1\n1,2,1,-1,-1\n1,0,1,none,none\n"
    );
    assert_eq!(
        run(&["--format", "jsonl"]),
        "{\"first\":2.0,\"second\":1.0}\n{\"first\":-1.0,\"second\":-1.0}\n{\"first\":null,\"second\":null}\n"
    );
    assert_eq!(
        run(&["--format", "json", "--only", "second"]),
        "[\n{\"second\":1.0},\n{\"second\":-1.0},\n{\"second\":null}\n]\n"
    );
    assert_eq!(
        run(&["--format", "table"]),
        "\
┌───────┬────────┐
│ first ┆ second │
╞═══════╪════════╡
│     2 ┆      1 │
│    -1 ┆     -1 │
│    NA ┆     NA │
└───────┴────────┘
"
    );
}

#[test]
fn all_of_the_quadratic_in_both_backends() {
    let shell = Shell::new();
    let (model, rows) = (example("quadratic.cem"), example("quadratic.csv"));
    let expected = "first,second\n2,1\n-1,-1\n,\n4,-2\n1,-3\n,\n0.3027756373531245,-3.3027755926496414\n-3,3\n\
                    100000000,7.450580596923828e-9\n-0.5,-0.5\n,\n2,1\n";
    for backend in ["interp", "native", "auto", "tiered"] {
        assert_eq!(shell.stdout(&["eval", &model, &rows, "--backend", backend]), expected, "{backend}");
    }
    // So many rows that machine code may take over in their midst.
    let many: String = (0..5_000).map(|at| format!("{},{},{}\n", 1 + at % 7, at % 31 - 15, at % 13 - 6)).collect();
    let shell = shell.file("many.csv", format!("a,b,c\n{many}"));
    let run = |backend| shell.stdout(&["eval", &model, "many.csv", "--backend", backend]);
    assert_eq!(run("tiered"), run("interp"));
}

#[test]
fn the_penguins() {
    let shell = Shell::new();
    let (model, rows) = (example("penguins.cem"), example("penguins.csv"));
    let run = |more: &[&str]| {
        let args: Vec<&str> = ["eval", &model, &rows, "--null", "NA"].iter().chain(more).copied().collect();
        shell.stdout(&args)
    };
    assert_eq!(
        run(&["--limit", "4", "--format", "table"]),
        "\
┌───────────┬─────────┬────────┬─────────────┬───────┐
│ island    ┆ species ┆ guess  ┆ probability ┆ wrong │
╞═══════════╪═════════╪════════╪═════════════╪═══════╡
│ Torgersen ┆ Adelie  ┆ Adelie ┆       0.997 ┆ NA    │
│ Torgersen ┆ Adelie  ┆ Adelie ┆       0.959 ┆ NA    │
│ Torgersen ┆ Adelie  ┆ Adelie ┆       0.854 ┆ NA    │
│ Torgersen ┆ Adelie  ┆ NA     ┆          NA ┆ NA    │
└───────────┴─────────┴────────┴─────────────┴───────┘
"
    );
    assert_eq!(
        run(&["--limit", "1", "--format", "jsonl"]),
        "{\"island\":\"Torgersen\",\"species\":\"Adelie\",\"guess\":\"Adelie\",\"probability\":0.997,\"wrong\":null}\n"
    );
    let all = run(&[]);
    assert_eq!(all, run(&["--backend", "interp"]));
    let rows: Vec<Vec<&str>> = all.lines().skip(1).map(|line| line.split(',').collect()).collect();
    assert_eq!(rows.len(), 344);
    // The two birds that were never measured are not guessed; all but one of the others are guessed right.
    assert_eq!(rows.iter().filter(|row| row[3] == "NA").count(), 2);
    let wrong: Vec<_> = rows.iter().filter(|row| row[4] == "true").collect();
    assert_eq!(wrong, [&["Dream", "Chinstrap", "Adelie", "0.65", "true"]]);
}

#[test]
fn one_row_from_the_command_line() {
    let shell = Shell::new();
    assert_eq!(shell.stdout(&["eval", "-e", "x * 2 + 1", "-s", "x=20"]), "result\n41\n");
    assert_eq!(shell.stdout(&["eval", "-e", "-x // y", "-s", "x=7", "-s", "y=2"]), "result\n-4\n");
    // Without a declaration the literal's form is the type: an integer, or FLOAT64.
    assert_eq!(shell.stdout(&["eval", "-e", "x", "--keep-inputs", "-s", "x=0.1"]), "x,result\n0.1,0.1\n");
    assert_eq!(shell.stdout(&["eval", "-e", "x / 3", "-s", "x=1"]), "result\n0.3333333333333333\n");
    assert_eq!(shell.stdout(&["eval", "-e", "x / 3", "-s", "x=1.0"]), "result\n0.3333333333333333\n");
    // With one the literal is cast as a model would cast it.
    assert_eq!(shell.stdout(&["eval", "-e", "input x: f64?; x / 3", "-s", "x=1"]), "result\n0.3333333333333333\n");
    assert_eq!(shell.stdout(&["eval", "-e", "x ?? 5", "--types", "x=f32?", "-s", "x=missing"]), "result\n5\n");
    assert_eq!(shell.stdout(&["eval", "-e", "x ?? 5", "-s", "x=missing[i64]"]), "result\n5\n");
    assert_eq!(shell.stdout(&["eval", "-e", "x == \"a b\"", "-s", "x=\"a b\""]), "result\ntrue\n");
    assert_eq!(shell.stdout(&["eval", "-e", "p.1", "-s", "p=(1, (2.5, true))"]), "result.0,result.1\n2.5,true\n");
    // A value for a declared input that no output needs does no harm.
    assert_eq!(shell.stdout(&["eval", "-e", "input x, y: f64; x", "-s", "x=1", "-s", "y=2"]), "result\n1\n");
    assert_eq!(shell.stdout(&["eval", "-e", "1 + 1"]), "result\n2\n");
}

#[test]
fn constants_join_the_data_for_all_rows() {
    let shell = Shell::new().file("rows.csv", "price,rate\n100,0.5\n200,0.5\n").file("none.csv", "price\n");
    let model = "price * rate";
    assert_eq!(shell.stdout(&["eval", "-e", model, "rows.csv"]), "result\n50\n100\n");
    assert_eq!(
        shell.stdout(&["eval", "-e", model, "rows.csv", "-s", "rate=0.1", "--keep-inputs"]),
        "price,rate,result\n100,0.1,10\n200,0.1,20\n"
    );
    // With data there are as many results as rows, even if no column is read.
    assert_eq!(shell.stdout(&["eval", "-e", "rate", "rows.csv", "-s", "rate=1"]), "result\n1\n1\n");
    assert_eq!(shell.stdout(&["eval", "-e", model, "none.csv", "-s", "rate=1"]), "result\n");
}

#[test]
fn only_what_is_asked_for_is_needed() {
    let shell = Shell::new().file("rows.csv", "x\n3\n");
    let model = "output a = x + 1; output b = y * 2; output c = x * x";
    assert_eq!(shell.stdout(&["eval", "-e", model, "rows.csv", "--only", "c,a"]), "c,a\n9,4\n");
    let absent = shell.run(&["eval", "-e", model, "rows.csv"]);
    assert_eq!(absent.status, Some(1));
    assert!(absent.stderr.starts_with("error[absent-column]: no column `y`\n"), "{absent}");
}

#[test]
fn an_input_gives_way_to_an_output_of_its_name() {
    let shell = Shell::new().file("rows.csv", "id,x\n7,1\n");
    let model = "output \"id\" = id; output y = x + 1";
    assert_eq!(shell.stdout(&["eval", "-e", model, "rows.csv", "--keep-inputs"]), "x,id,y\n1,7,2\n");
}

#[test]
fn standard_input_is_a_dash() {
    let shell = Shell::new().file("rows.csv", "x\n4\n");
    let run = |args: &[&str], input: &str| {
        let outcome = shell.feed(args, input);
        assert_eq!((outcome.status, outcome.stderr.as_str()), (Some(0), ""), "{args:?}");
        outcome.stdout
    };
    assert_eq!(run(&["eval", "-e", "x + 1", "-"], "x\n1\n2\n"), "result\n2\n3\n");
    // Data without a name are taken for what they look like.
    assert_eq!(run(&["eval", "-e", "x + 1", "-"], " \n[{\"x\": 1}, {\"x\": 2}]"), "result\n2\n3\n");
    assert_eq!(run(&["eval", "-e", "x + 1", "-"], "{\"x\": 1}\n"), "result\n2\n");
    assert_eq!(run(&["eval", "-e", "x + 1", "-", "--data-format", "tsv"], "y\tx\n8\t1\n"), "result\n2\n");
    assert_eq!(run(&["eval", "-", "rows.csv"], "output y = x * x\n"), "y\n16\n");
    let both = shell.feed(&["eval", "-", "-"], "x\n");
    assert_eq!(both.status, Some(2));
    let fault = shell.feed(&["eval", "-e", "x + 1", "-"], "x\n1\n2\nb\n");
    assert!(fault.stderr.starts_with("error[type-mismatch]"), "{fault}");
}

#[test]
fn a_file_of_results_is_whole_or_not_there() {
    let shell = Shell::new().file("rows.csv", "x\n4\n0\n").file("good.csv", "x\n4\n").file("out.jsonl", "before");
    let model = "input x: i32; output y = 8 // x";
    let fails = shell.run(&["eval", "-e", model, "rows.csv", "--output", "out.jsonl"]);
    assert_eq!((fails.status, shell.read("out.jsonl").as_str()), (Some(1), "before"));
    // The form follows the name of the file.
    assert_eq!(shell.stdout(&["eval", "-e", model, "good.csv", "--output", "out.jsonl"]), "");
    assert_eq!(shell.read("out.jsonl"), "{\"y\":2}\n");
    assert_eq!(shell.stdout(&["eval", "-e", model, "good.csv", "-o", "out.jsonl", "--format", "csv"]), "");
    assert_eq!(shell.read("out.jsonl"), "y\n2\n");
    // The data itself may be the place of the results.
    assert_eq!(shell.stdout(&["eval", "-e", model, "good.csv", "-o", "good.csv", "--keep-inputs"]), "");
    assert_eq!(shell.read("good.csv"), "x,y\n4,2\n");
    let names: Vec<_> = fs::read_dir(shell.path(".")).expect("the folder is there").collect();
    assert_eq!(names.len(), 3, "{names:?}");
}

#[test]
fn rows_before_a_fault_are_told() {
    let shell = Shell::new().file("rows.csv", "x\n4\n0\n2\n");
    let outcome = shell.run(&["eval", "-e", "input x: i32; output y = 8 // x", "rows.csv"]);
    assert_eq!((outcome.status, outcome.stdout.as_str()), (Some(1), "y\n2\n"));
}

#[test]
fn results_come_while_rows_are_still_read() {
    let shell = Shell::new();
    let mut command = shell.command(&["eval", "-e", "input x: i32; output y = x", "-"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the binary runs");
    let mut stdin = child.stdin.take().expect("a pipe");
    let mut stdout = child.stdout.take().expect("a pipe");
    stdin.write_all(b"x\n").expect("written");
    // Far more than the buffers of the command and of both pipes hold: with everything kept until the end this test
    // would never get its first byte.
    let reader = std::thread::spawn(move || {
        let mut first = [0; 4];
        stdout.read_exact(&mut first).expect("results");
        let mut rest = Vec::new();
        stdout.read_to_end(&mut rest).expect("results");
        (first, rest.len())
    });
    let rows = "1234567\n".repeat(1_000);
    for _ in 0..200 {
        stdin.write_all(rows.as_bytes()).expect("the command reads on");
    }
    drop(stdin);
    let (first, rest) = reader.join().expect("the reader ends");
    assert_eq!((&first, rest), (b"y\n12", 200 * 1_000 * 8 - 2));
    assert!(child.wait().expect("it ends").success());
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let shell = Shell::new().file("rows.csv", format!("x\n{}", "1\n".repeat(200_000)));
    let mut command = shell.command(&["eval", "-e", "x + 1", "rows.csv"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary runs");
    let mut first = [0; 6];
    child.stdout.take().expect("a pipe").read_exact(&mut first).expect("a header");
    let outcome = child.wait_with_output().expect("it ends");
    assert_eq!((&first, outcome.status.code(), outcome.stderr), (b"result", Some(0), Vec::new()));
}

#[test]
fn compat_and_verbose() {
    let shell = Shell::new();
    let model = "input x: f64; output y = x + 0.0";
    assert_eq!(shell.stdout(&["eval", "-e", model, "-s", "x=-0.0"]), "y\n0\n");
    let compat = shell.run(&["eval", "-e", model, "-s", "x=-0.0", "--compat", "--verbose"]);
    assert_eq!((compat.status, compat.stdout.as_str()), (Some(0), "y\n-0\n"));
    assert!(
        compat.stderr.starts_with("note: 1 rows in ") && compat.stderr.ends_with(" s by machine code\n"),
        "{compat}"
    );
}

#[test]
fn data_may_leave_out_inputs_with_defaults() {
    let shell = Shell::new()
        .file("m.cem", "input x: f64, age: f64? = 30, who: text? = \"-\"\noutput y = x / age\noutput w = who");
    let shell = shell.file("x.csv", "x\n60\n15\n").file("age.csv", "x,age\n60,20\n15,\n");
    let shell = shell.file("rows.json", "{\"x\":60,\"who\":\"Ann\"}\n{\"x\":15,\"age\":15}\n");
    for backend in ["interp", "native"] {
        let run = |more: &[&str]| {
            let args: Vec<&str> = ["eval", "m.cem", "--backend", backend].iter().chain(more).copied().collect();
            shell.stdout(&args)
        };
        assert_eq!(run(&["x.csv"]), "y,w\n2,-\n0.5,-\n");
        assert_eq!(run(&["age.csv"]), "y,w\n3,-\n0.5,-\n");
        assert_eq!(run(&["age.csv", "-s", "age=1"]), "y,w\n60,-\n15,-\n");
        assert_eq!(run(&["rows.json"]), "y,w\n2,Ann\n1,-\n");
        assert_eq!(run(&["-s", "x=60"]), "y,w\n2,-\n");
        assert_eq!(run(&["-s", "x=60", "-s", "age=missing"]), "y,w\n2,-\n");
        let parquet = shell.stdout(&["eval", "m.cem", "x.csv", "--keep-all", "-o", "x.parquet"]);
        assert_eq!(parquet, "");
        assert_eq!(run(&["x.parquet", "--only", "y"]), "y\n2\n0.5\n");
    }
    assert_eq!(
        shell.stdout(&["check", "m.cem"]),
        "input x: f64\ninput age: f64? = 30.0\ninput who: text? = \"-\"\noutput y: f64\noutput w: text\n"
    );
}

/// Rows with large strings are evaluated in several parts. Results, failures and row numbers must be those of an evaluation in one part.
#[test]
fn batches_end_where_their_strings_are_large() {
    large_strings(&["--threads", "1"]);
    large_strings(&["--threads", "3"]);
}

#[test]
fn batches_of_the_interpreter_end_where_their_strings_are_large() {
    large_strings(&["--backend", "interp"]);
}

fn large_strings(more: &[&str]) {
    let long = "y".repeat(200_000);
    let mut rows = "x,n\n".to_owned();
    for row in 0..300 {
        rows += &format!("{}{row},{}\n", &long[..400 * row], if row % 100 == 75 { 0 } else { 7 });
    }
    let shell = Shell::new().file("rows.csv", &rows);
    let model = "input x: text; input n: i64; output l = strings.length(strings.upper(x + x)); output u = strings.upper(x + x + x + x); output q = 14 // n";
    let outcome = shell
        .run(&[&["eval", "-e", model, "rows.csv", "--on-error", "missing", "--errors", "errors.csv"], more].concat());
    assert_eq!(outcome.status, Some(0), "{more:?}: {}", outcome.stderr);
    let lines: Vec<&str> = outcome.stdout.lines().collect();
    assert_eq!(lines.len(), 301, "{more:?}");
    for row in 0..300 {
        let fields: Vec<&str> = lines[row + 1].split(',').collect();
        let (x, fails) = (400 * row + row.to_string().len(), row % 100 == 75);
        let expected = if fails { [0, 0] } else { [(2 * x).to_string().len(), 4 * x] };
        assert_eq!([fields[0].len(), fields[1].len()], expected, "{more:?} {row}");
        assert_eq!(fields[2], if fails { "" } else { "2" }, "{more:?} {row}");
    }
    let told = shell.read("errors.csv");
    let numbers: Vec<&str> = told.lines().skip(1).filter_map(|line| line.split(',').nth(2)).collect();
    assert_eq!(numbers, ["76", "176", "276"], "{told}");
}
