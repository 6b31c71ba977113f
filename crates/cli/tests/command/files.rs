//! Tests of several data files, patterns of file names, and malformed lines of JSON.

use super::shell::Shell;

/// Makes a shell with three data files. The second file has another delimiter and another order of columns.
fn three() -> Shell {
    Shell::new()
        .file("a1.csv", "id,x\n1,1.5\n2,2\n")
        .file("a2.csv", "x;id\n3;x3\n4;x4\n")
        .file("b10.csv", "id,x\n6,6\n")
        .file("b2.csv", "id,x\n5,5\n")
        .file("m.cem", "input x: f64\noutput y = x * 2.0\n")
}

#[test]
fn files_are_read_in_the_order_given() {
    let shell = three();
    let args = ["eval", "m.cem", "a2.csv", "a1.csv", "b*.csv", "--keep", "id"];
    // The files of a pattern are sorted by name: b10 before b2.
    let expected = "id,y\nx3,6\nx4,8\n1,3\n2,4\n6,12\n5,10\n";
    assert_eq!(shell.stdout(&args), expected);
    for threads in ["1", "4"] {
        assert_eq!(shell.stdout(&[&args[..], &["--threads", threads]].concat()), expected);
    }
    assert_eq!(shell.stdout(&["eval", "-e", "x * 2", "a1.csv", "a2.csv"]), "result\n3\n4\n6\n8\n");
    assert_eq!(shell.stdout(&["eval", "-e", "x", "a1.csv", "a?.csv", "--limit", "3"]), "result\n1.5\n2\n1.5\n");
    assert_eq!(shell.stdout(&["eval", "-e", "x", "a1.csv", "--output", "y.csv"]), "");
    // Standard input may be one of several files.
    let fed = shell.feed(&["eval", "m.cem", "a1.csv", "-", "b2.csv"], "x\n7\n");
    assert_eq!((fed.status, fed.stdout.as_str()), (Some(0), "y\n3\n4\n14\n10\n"), "{fed}");
    let two = shell.run(&["eval", "m.cem", "-", "a1.csv", "-"]);
    assert!(two.stderr.contains("standard input can be read only once, not twice"), "{two}");
    let model = shell.run(&["eval", "-e", "x", "m.cem", "a1.csv"]);
    assert!(model.stderr.contains("there are two models: `-e EXPR` and the file m.cem"), "{model}");
    let none = shell.run(&["eval", "m.cem", "c*.csv"]);
    assert!(none.stderr.contains("error[io]: no file matches the pattern\n--> c*.csv"), "{none}");
    // The name of an existing file is not a pattern.
    let shell = shell.file("d[1]*.csv", "x\n8\n").file("sub/e.csv", "x\n9\n").file("sub2/e.csv", "x\n10\n");
    assert_eq!(shell.stdout(&["eval", "m.cem", "d[1]*.csv", "s*/e.csv"]), "y\n16\n18\n20\n");
}

#[test]
fn all_forms_are_read_file_after_file() {
    let shell = three();
    for ending in ["parquet", "arrow", "jsonl", "json", "tsv"] {
        for (file, keep) in [("a1", "id,x"), ("a2", "x,id")] {
            let (from, to) = (format!("{file}.csv"), format!("{file}.{ending}"));
            let args = ["eval", "-e", "1", &from, "--keep", keep, "--types", "id=text,x=f64", "-o", &to];
            assert_eq!(shell.stdout(&args), "", "{to}");
        }
        let (one, two) = (format!("a1.{ending}"), format!("a2.{ending}"));
        let args = ["eval", "-e", "output z = x + 1.0f64", &one, &two, "--keep-all", "--format", "csv"];
        let expected = "id,x,result,z\n1,1.5,1,2.5\n2,2,1,3\nx3,3,1,4\nx4,4,1,5\n";
        assert_eq!(shell.stdout(&args), expected, "{ending}");
        let typed = ["eval", "-e", "output z = x", &one, &two, "--keep-all", "--types", "id=text", "-o", "all.jsonl"];
        assert_eq!(shell.stdout(&typed), "", "{ending}");
        assert!(shell.read("all.jsonl").ends_with("{\"id\":\"x4\",\"x\":4.0,\"result\":1,\"z\":4.0}\n"), "{ending}");
    }
    let mixed = shell.run(&["eval", "m.cem", "a1.csv", "a2.parquet"]);
    assert!(
        mixed.stderr.contains("error[unreadable]: the file is Parquet, but `a1.csv` is CSV\n--> a2.parquet"),
        "{mixed}"
    );
}

#[test]
fn problems_name_the_file_and_its_line() {
    let shell = Shell::new()
        .file("a.csv", "id,x\n1,1\n2,0\n")
        .file("b.csv", "id,x\n3,3\n\n4,oops\n5,0\n")
        .file("c.csv", "id,y\n6,6\n")
        .file("d.csv", "id,x,z\n6,6,7\n");
    let model = "input x: i64; output q = 12 // x";
    let args = ["eval", "-e", model, "a.csv", "b.csv", "--keep", "id", "--on-error", "skip", "--errors", "e.csv"];
    let outcome = shell.run(&args);
    assert_eq!(outcome.stdout, "id,q\n1,12\n3,4\n");
    assert!(outcome.stderr.starts_with("note: 3 of 5 rows failed; the first is a.csv:3: "), "{outcome}");
    let errors = shell.read("e.csv");
    let places: Vec<&str> = errors.lines().map(|line| &line[..line.len().min(20)]).collect();
    assert!(places[1].starts_with("a.csv,3,2,,div-by-ze"), "{errors}");
    assert!(places[2].starts_with("b.csv,4,4,x,column-"), "{errors}");
    assert!(places[3].starts_with("b.csv,5,5,,div-by-ze"), "{errors}");
    let refused = shell.run(&["eval", "-e", "input x: i64; x", "a.csv", "b.csv"]);
    assert_eq!(refused.stdout, "result\n1\n0\n3\n");
    assert!(refused.stderr.contains("expected i64, found `oops`\n--> b.csv:4"), "{refused}");
    let fault = shell.run(&["eval", "-e", "input x: i64; 6 // (x - 3)", "a.csv", "b.csv"]);
    assert!(fault.stderr.contains("note: in the row at b.csv:2: x = 3"), "{fault}");
    // Types that are taken from the data are those of the first file.
    let guessed = shell.run(&["eval", "-e", "x", "a.csv", "b.csv"]);
    assert!(
        guessed.stderr.contains("the type was inferred from the first rows: declare `input x: text?`\n"),
        "{guessed}"
    );
    assert!(guessed.stderr.contains("--> b.csv:4"), "{guessed}");
    // A file without the column is an error before there are results, even if the input is optional.
    for model in ["input x: i64; x", "input x: i64?; x"] {
        let absent = shell.run(&["eval", "-e", model, "a.csv", "c.csv"]);
        assert_eq!(absent.stdout, "");
        assert!(absent.stderr.contains("error[absent-column]: no column `x`\n--> c.csv"), "{absent}");
        let absent = shell.run(&["eval", "-e", model, "c.csv", "a.csv"]);
        assert!(absent.stderr.contains("error[absent-column]: no column `x`\n--> c.csv"), "{absent}");
    }
    let more = shell.run(&["eval", "-e", "x", "a.csv", "d.csv", "--keep-all"]);
    assert!(more.stderr.contains("the column `z` is not in `a.csv`, the first file\n--> d.csv"), "{more}");
    assert_eq!(shell.stdout(&["eval", "-e", "x", "a.csv", "d.csv"]), "result\n1\n0\n6\n");
    // Rows of Parquet have a number in their file and no line.
    for (from, to) in [("a.csv", "a.parquet"), ("b.csv", "b.parquet")] {
        let args =
            ["eval", "-e", "output \"x\" = strings.try_parse_int64(x) ?? 0i64", from, "--types", "x=text", "-o", to];
        assert_eq!(shell.stdout(&args), "");
    }
    let model = "input x: i64; 12 // x";
    let outcome =
        shell.run(&["eval", "-e", model, "a.parquet", "b.parquet", "--on-error", "skip", "--errors", "e.csv"]);
    assert_eq!(outcome.stdout, "result\n12\n4\n");
    assert!(outcome.stderr.contains("3 of 5 rows failed; the first is a.parquet, row 2: "), "{outcome}");
    let errors = shell.read("e.csv");
    assert!(
        errors.contains("\na.parquet,,2,,div-by-zero,") && errors.contains("\nb.parquet,,2,,div-by-zero,"),
        "{errors}"
    );
    let whole = shell.run(&["eval", "-e", "input x: i64; 6 // (x - 3)", "a.parquet", "b.parquet"]);
    assert!(whole.stderr.contains("in the row at b.parquet, row 1"), "{whole}");
}

/// A value in a later file is refused if it would lose a part in the type that was inferred from the first file.
#[test]
fn later_files_are_read_as_strictly_as_the_first() {
    let late = |key: &str| format!("{}{{\"a\":2,\"{key}\":3}}\n", "{\"a\":1}\n".repeat(1_000));
    let shell = Shell::new()
        .file("a.jsonl", "{\"a\":-1}\n")
        .file("b.jsonl", late("b"))
        .file("c.jsonl", "{\"a\":18446744073709551615}\n")
        .file("a.csv", "a\n-1\n")
        .file("c.csv", "a\n18446744073709551615\n")
        .file("d.csv", "a\n007\n");
    let told = |files: [&str; 2], more: &[&str]| shell.run(&[&["eval", "-e", "a", files[0], files[1]], more].concat());
    let key = told(["a.jsonl", "b.jsonl"], &["--keep-all"]);
    assert!(key.stderr.contains("the first rows do not have this key, so there is no column for it\n"), "{key}");
    assert!(key.stderr.contains("--> b.jsonl:1001"), "{key}");
    let carried = told(["a.jsonl", "b.jsonl"], &["--keep-all", "--format", "jsonl", "--only", "result"]).stdout;
    assert!(carried.ends_with("{\"a\":1,\"result\":1}\n{\"a\":2,\"b\":3,\"result\":2}\n"), "{carried}");
    // The message does not propose `u64`, which does not hold the negative number of the first file.
    for ending in ["jsonl", "csv"] {
        let (first, second) = (format!("a.{ending}"), format!("c.{ending}"));
        let large = told([&first, &second], &[]);
        let better = if ending == "csv" { "text?" } else { "text" };
        assert!(large.stderr.contains(&format!("declare `input a: {better}`\n")), "{large}");
    }
    let code = told(["a.csv", "d.csv"], &[]);
    assert!(code.stderr.contains("expected i64?, found `007`") && code.stderr.contains("--> d.csv:2"), "{code}");
}

#[test]
fn many_files_are_read() {
    let mut shell = Shell::new();
    for at in 0..40 {
        shell = shell.file(&format!("f/{at:03}.csv"), format!("x\n{at}\n"));
    }
    let args = ["eval", "-e", "x + 1", "f/*.csv", "--threads", "2"];
    let expected: String = (0..40).map(|at| format!("{}\n", at + 1)).collect();
    assert_eq!(shell.stdout(&args), format!("result\n{expected}"));
}

#[test]
fn a_broken_line_of_json_is_one_bad_row() {
    let rows = "{\"id\":1,\"x\":1}\n{\"id\":2,\"x\":\n{\"id\":3,\"x\":3}\noops\n{\"id\":5 \"x\":5}\n{\"id\":6,\"x\":\"6}\n{\"id\":7,\"x\":7}\n";
    let shell = Shell::new().file("r.jsonl", rows).file("first.jsonl", "oops\n{\"x\":2}\n{\"x\":");
    let told =
        |model: &str, more: &[&str]| shell.run(&[&["eval", "-e", model, "r.jsonl", "--format", "csv"], more].concat());
    for model in ["input x: i64; output y = x * 2", "output y = x * 2"] {
        let skipped = told(model, &["--on-error", "skip", "--errors", "e.csv"]);
        assert_eq!((skipped.status, skipped.stdout.as_str()), (Some(0), "y\n2\n6\n14\n"), "{skipped}");
        assert!(
            skipped.stderr.starts_with("note: 4 of 7 rows failed; the first is r.jsonl:2: not JSON: "),
            "{skipped}"
        );
        let errors = shell.read("e.csv");
        let lines: Vec<&str> = errors.lines().skip(1).filter_map(|line| line.strip_prefix("r.jsonl,")).collect();
        assert_eq!(lines.len(), 4, "{errors}");
        for (line, place) in lines.iter().zip(["2,2,", "4,4,", "5,5,", "6,6,"]) {
            assert!(
                line.starts_with(place) && line.contains(",unreadable,") && line.contains("not JSON: "),
                "{errors}"
            );
        }
        let missing = told(model, &["--on-error", "missing"]);
        assert_eq!(missing.stdout, "y\n2\n\"\"\n6\n\"\"\n\"\"\n\"\"\n14\n", "{missing}");
    }
    // Without `--on-error skip`, a broken line ends the run.
    let ended = told("input x: i64; x", &[]);
    assert_eq!((ended.status, ended.stdout.as_str()), (Some(1), "result\n1\n"), "{ended}");
    assert!(ended.stderr.contains("error[unreadable]: "), "{ended}");
    let skipped = shell.run(&["eval", "-e", "x", "first.jsonl", "--on-error", "skip", "--format", "csv"]);
    assert_eq!(skipped.stdout, "result\n2\n", "{skipped}");
    // An element of an array that is broken between its braces is such a row too. A fault between elements ends the run.
    let shell = shell.file("a.json", "[{\"x\":1},{\"x\":},{\"x\":3}]").file("b.json", "[{\"x\":1},oops]");
    let skipped = shell.run(&["eval", "-e", "input x: i64; x", "a.json", "--on-error", "skip", "--format", "csv"]);
    assert_eq!(skipped.stdout, "result\n1\n3\n", "{skipped}");
    let ended = shell.run(&["eval", "-e", "input x: i64; x", "b.json", "--on-error", "skip", "--format", "csv"]);
    assert_eq!((ended.status, ended.stdout.as_str()), (Some(1), "result\n1\n"), "{ended}");
}
