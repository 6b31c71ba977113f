//! Tests of options without an effect, unknown extensions of output files, and the decimal comma in results.

use super::shell::{Outcome, Shell};

/// Checks that a command line is refused with a message that contains `said`.
fn refused(outcome: &Outcome, said: &str) {
    assert_eq!((outcome.status, outcome.stdout.as_str()), (Some(2), ""), "{outcome}");
    assert!(outcome.stderr.contains(said), "{said}: {outcome}");
}

/// Makes a shell with files of all data formats that have the same two rows.
fn forms() -> Shell {
    let shell = Shell::new().file("r.csv", "n,t,d,x\n1,a,2026-01-02,1.5\n2,b,2026-01-03,\n");
    for form in ["r.jsonl", "r.parquet", "r.arrow"] {
        let args = ["eval", "-e", "output \"n\" = n", "r.csv", "--keep", "t,d,x", "-o", form];
        assert_eq!(shell.stdout(&args), "");
    }
    shell
}

#[test]
fn options_about_csv_are_refused_for_other_data() {
    let shell = forms();
    for (file, form) in [("r.jsonl", "JSON"), ("r.parquet", "Parquet"), ("r.arrow", "Arrow")] {
        for options in [["--decimal", ","], ["--decimal", "."], ["--delimiter", ";"]] {
            let outcome = shell.run(&[&["eval", "-e", "n", file], &options[..]].concat());
            refused(&outcome, &format!("leave `{}` out: it applies to CSV, but DATA is {form}", options[0]));
        }
        // `--null` is also written for missing values in results.
        let null = shell.stdout(&["eval", "-e", "input x: f64?; x", file, "--null", "NA"]);
        assert_eq!(null, "result\n1.5\nNA\n");
        let null = shell.run(&["eval", "-e", "input x: f64?; x", file, "--null", "NA", "--format", "jsonl"]);
        refused(&null, &format!("leave `--null` out: it applies to CSV, but DATA is {form}"));
    }
    for (options, about) in [
        (["--decimal", ","], "CSV"),
        (["--null", "NA"], "CSV"),
        (["--data-format", "csv"], "data"),
        (["--batch-rows", "7"], "data"),
        (["--time-zone", "UTC"], "CSV, JSON and `-s`"),
        (["--timestamp-unit", "s"], "data"),
        (["--date-format", "%d.%m.%Y"], "data"),
    ] {
        let outcome = shell.run(&[&["eval", "-e", "1", "--format", "json"], &options[..]].concat());
        refused(&outcome, &format!("leave `{}` out: it applies to {about}, but there is no DATA", options[0]));
    }
    let outcome = shell.run(&["bench", "-e", "n", "r.parquet", "--decimal", ","]);
    refused(&outcome, "leave `--decimal` out: it applies to CSV, but DATA is Parquet");
    let outcome = shell.run(&["eval", "-e", "n", "--keep", "t", "-s", "n=1"]);
    refused(&outcome, "leave `--keep` out: it applies to columns of DATA, but there is no DATA");
}

/// An option about dates needs a column that is read as values: that of an input, or one that is copied to the results as values.
#[test]
fn options_about_dates_need_one_among_what_is_read() {
    let shell = forms().file("german.csv", "d;t\n02.01.2026;1.2.2026 12:00\n");
    let (date, moment) = (["--date-format", "%d.%m.%Y"], ["--timestamp-format", "%d.%m.%Y %H:%M"]);
    let run = |model: &str, file: &str, more: &[&str]| shell.run(&[&["eval", "-e", model, file], more].concat());
    for file in ["r.csv", "r.jsonl", "r.parquet"] {
        let outcome = run("n", file, &date);
        refused(&outcome, "leave `--date-format` out: it applies to values of the type date, but none is read");
    }
    let zone = ["--time-zone", "Europe/Zurich"];
    refused(
        &run("n", "r.csv", &zone),
        "leave `--time-zone` out: it applies to values of the type timestamp, but none is read",
    );
    refused(&run("t", "r.jsonl", &zone), "none is read; or declare an input, as in `input t: timestamp?`");
    refused(
        &run("n", "r.parquet", &zone),
        "leave `--time-zone` out: it applies to CSV, JSON and `-s`, but DATA is Parquet",
    );
    for file in ["r.csv", "r.jsonl", "r.parquet"] {
        for option in [&moment, &["--timestamp-unit", "s"]] {
            let said =
                format!("leave `{}` out: it applies to values of the type timestamp, but none is read", option[0]);
            refused(&run("n", file, option), &said);
        }
    }
    // The time zone also holds for values of `-s`.
    let moment_of_row = "input t: timestamp; input n: i64; output u = t";
    let given = [&["-s", "t=2026-07-01T12:15:00", "--limit", "1"][..], &zone].concat();
    assert_eq!(run(moment_of_row, "r.parquet", &given).stdout, "u\n2026-07-01T10:15:00Z\n");
    // The option has an effect if the date is declared, taken from the data, in a tuple, carried through as a value, or absent and optional.
    assert_eq!(run("input d: date; d", "german.csv", &date).stdout, "result\n2026-01-02\n");
    assert_eq!(run("d", "german.csv", &date).stdout, "result\n2026-01-02\n");
    assert_eq!(run("t", "german.csv", &[&moment[..], &zone].concat()).stdout, "result\n2026-02-01T11:00:00Z\n");
    let kept = run("1", "german.csv", &["--date-format", "%d.%m.%Y", "--keep", "d", "--format", "jsonl"]);
    assert_eq!(kept.stdout, "{\"d\":\"2026-01-02\",\"result\":1}\n");
    assert_eq!(
        run("input born: date?; born ?? date\"2026-01-05\"", "german.csv", &date).stdout,
        "result\n2026-01-05\n"
    );
    let parts = Shell::new().file("p.csv", "p.d;p.n\n02.01.2026;1\n");
    assert_eq!(
        parts.stdout(&[&["eval", "-e", "input p: {d: date, n: i64}; p.d", "p.csv"], &date[..]].concat()),
        "result\n2026-01-02\n"
    );
    // Parquet and Arrow store the type of dates, so the option has no effect on such a column.
    for file in ["r.parquet", "r.arrow"] {
        let said = "leave `--date-format` out: it applies to texts and whole numbers, but the column of `d` has the type date already";
        refused(&run("d", file, &date), said);
        let given = [&["-s", "e=31.01.2026", "--limit", "1"][..], &date].concat();
        let read = run("input d, e: date; output y = d; output z = e", file, &given).stdout;
        assert_eq!(read, "y,z\n2026-01-02,2026-01-31\n", "{file}");
    }
    // If no field has the format, the column is a text.
    refused(&run("d", "german.csv", &["--date-format", "%Y/%m/%d"]), "or declare an input, as in `input d: date?`");
}

#[test]
fn options_of_tiles_are_refused_without_tiles() {
    let shell = forms();
    for options in
        [&["--threshold", "1e-3"][..], &["--most-bytes", "1G"], &["--ranks", "3"], &["--any-processor"], &["--resume"]]
    {
        let outcome = shell.run(&[&["eval", "-e", "n", "r.csv"], options].concat());
        refused(
            &outcome,
            &format!("leave `{}` out: it applies to tiles, but the model does not cut tensors into tiles", options[0]),
        );
    }
    for options in [&["--decimal", ","][..], &["--null", "NA"], &["--on-error", "skip"], &["--output-decimal", ","]] {
        let outcome = shell.run(&[&["eval", "-e", "input x: tensor[f64, 1]; x"], options].concat());
        refused(
            &outcome,
            &format!("leave `{}` out: it applies to rows, but a model with tensors has no rows", options[0]),
        );
    }
    let model = "input k: f64; input x: tensor[f64, 1]; output y = x * k";
    let outcome = shell.run(&["eval", "-e", model, "-s", "k=1", "--date-format", "%Y%m%d"]);
    refused(&outcome, "leave `--date-format` out: it applies to values of the type date, but none is read");
}

#[test]
fn the_name_of_the_results_says_their_form_or_is_refused() {
    let shell = forms();
    let to = |name: &str, more: &[&str]| shell.run(&[&["eval", "-e", "n", "r.csv", "-o", name], more].concat());
    for name in ["y.npz", "y.npy", "y.tiles", "y.xlsx", "y.txt", "y.CSVV", "y.csv.gz", "y.jsonl.zst", "y.arrows"] {
        let outcome = to(name, &[]);
        let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending).to_lowercase();
        refused(&outcome, &format!("`-o {name}`: `.{ending}` is not a format of rows; the formats are `.csv`, `.tsv`"));
        assert!(!shell.path(name).exists());
    }
    assert!(
        to("y.csv.gz", &[]).stderr.contains("leave the last extension of the name out: results cannot be compressed")
    );
    for (name, expected) in
        [("y", "result\n1\n2\n"), ("y.CSV", "result\n1\n2\n"), ("y.ndjson", "{\"result\":1}\n{\"result\":2}\n")]
    {
        assert_eq!(to(name, &[]).status, Some(0));
        assert_eq!(shell.read(name), expected, "{name}");
    }
    assert_eq!(to("y.txt", &["--format", "csv"]).status, Some(0));
    assert_eq!(shell.read("y.txt"), "result\n1\n2\n");
    assert_eq!(to("-", &[]).stdout, "result\n1\n2\n");
    assert!(!shell.path("-").exists());
    #[cfg(unix)]
    assert_eq!(to("/dev/stdout", &[]).stdout, "result\n1\n2\n");
    refused(
        &shell.run(&["eval", "-e", "n", "r.csv", "--errors", "e.jsonl"]),
        "the name must end in `.csv`, because failed rows are written as CSV",
    );

    let tensor = "input x: f64; input h: tensor[f64, 1]; output y = h * x";
    for name in ["y.parquet", "y.csv", "y.tiles", "y.txt"] {
        let outcome = shell.run(&["eval", "-e", tensor, "--input", "h=none.npy", "-s", "x=1", "-o", name]);
        refused(&outcome, "is not a format of tensors; the formats are `.npy`, `.npz` or `.json`");
    }
}

#[test]
fn results_have_a_decimal_comma_where_that_is_asked_for() {
    let shell = Shell::new()
        .file("in.csv", "id;betrag;am\n007;1234,50;2026-01-02T00:00:00.5Z\n008;-0,5;\n")
        .file("dots.csv", "id,x,note\n007,1.50,\"a;b.c\"\n008,-3,\n");
    let model = "input betrag: f64; output brutto = betrag * 2; output n = 1; output z = 1e-9";
    let args = ["eval", "-e", model, "in.csv", "--decimal", ",", "--output-decimal", ",", "--keep-all"];
    let expected = "id;betrag;am;brutto;n;z\n007;1234,50;2026-01-02T00:00:00.5Z;2469;1;1e-9\n008;-0,5;;-1;1;1e-9\n";
    assert_eq!(shell.stdout(&args), expected);
    // Fields that are carried through are read as numbers if results have another decimal character than the data.
    let model = "output half = x / 4.0f64";
    let args = ["eval", "-e", model, "dots.csv", "--output-decimal", ",", "--keep-all", "--null", "NA"];
    assert_eq!(shell.stdout(&args), "id;x;note;half\n007;1,5;\"a;b.c\";0,375\n008;-3;NA;-0,75\n");
    let args = ["eval", "-e", model, "dots.csv", "--output-decimal", ",", "-o", "y.tsv"];
    assert_eq!(shell.stdout(&args), "");
    assert_eq!(shell.read("y.tsv"), "half\n0,375\n-0,75\n");
    // The results are read back.
    shell.stdout(&["eval", "-e", model, "dots.csv", "--output-decimal", ",", "-o", "y.csv"]);
    assert_eq!(shell.stdout(&["eval", "-e", "half * 2.0f64", "y.csv", "--decimal", ","]), "result\n0.75\n-1.5\n");
    let back =
        shell.stdout(&["eval", "-e", "1", "in.csv", "--decimal", ",", "--output-decimal", ".", "--keep", "betrag"]);
    assert_eq!(back, "betrag,result\n1234.5,1\n-0.5,1\n");
    let json = shell.run(&["eval", "-e", "x", "dots.csv", "--output-decimal", ",", "--format", "json"]);
    refused(&json, "leave `--output-decimal` out: it applies to CSV and tables, but the results are JSON");
    let stored = Shell::new().file("a.csv", "x\n1.25\n");
    stored.stdout(&["eval", "-e", "output y = x", "a.csv", "-o", "a.parquet"]);
    let args = ["eval", "-e", "1", "a.parquet", "--output-decimal", ",", "--keep", "y"];
    assert_eq!(stored.stdout(&args), "y;result\n1,25;1\n");
}

#[test]
fn names_with_commas_are_quoted_as_in_csv() {
    let shell = Shell::new()
        .file("r.csv", "x,\"net, CHF\",\"a \"\"b\"\"\"\n1,2,3\n")
        .file("s.jsonl", "{\"x\":1,\"s\":{\"a\":1,\"b\":2}}\n");
    let model = ["eval", "-e", "output y = 1; output \"p, q\" = x + 1", "r.csv"];
    let run = |more: &[&str]| shell.run(&[&model[..], more].concat());
    for (keep, header) in [
        ("\"net, CHF\"", "\"net, CHF\""),
        ("\"net, CHF\",x", "\"net, CHF\",x"),
        ("a \"b\"", "\"a \"\"b\"\"\""),
        ("\"a \"\"b\"\"\",\"net, CHF\"", "\"a \"\"b\"\"\",\"net, CHF\""),
    ] {
        let outcome = run(&["--keep", keep, "--only", "y"]);
        assert!(outcome.stdout.starts_with(&format!("{header},y\n")), "{keep}: {outcome}");
    }
    // The option may be given several times, and `--only` is read likewise.
    let outcome = run(&["--keep", "x", "--keep", "\"net, CHF\"", "--only", "\"p, q\",y"]);
    assert_eq!(outcome.stdout, "x,\"net, CHF\",\"p, q\",y\n1,2,2,1\n", "{outcome}");
    refused(&run(&["--keep", "\"net, CHF"]), "the quotes around a name are never closed");
    refused(&run(&["--keep", "\"net\" CHF"]), "expected `,` after the quotes of a name");
    refused(&run(&["--keep", "x,\"x\""]), "`--keep` names `x` twice");
    // Types have commas in brackets of any kind, and in quotes.
    let typed = ["eval", "-e", "output y = L.s.a", "s.jsonl", "--format", "jsonl"];
    let read = shell.stdout(&[&typed[..], &["--types", "s={a: f64, b: i64?}"]].concat());
    assert_eq!(read, "{\"y\":1.0}\n");
    let types = "x=i64, \"net, CHF\"=f64,s=[{a: i64, c: (i64, text)}],t=({a: i64?, \"b}\": f64}, [i64])";
    let told = shell.stdout(&[
        "check",
        "-e",
        "output a = L[\"net, CHF\"]; output b = x; output c = s; output d = t",
        "--types",
        types,
    ]);
    assert!(told.contains("output a: f64\n") && told.contains("output c: [{a: i64, c: (i64, text)}]\n"), "{told}");
    let kept = shell.stdout(&[
        "eval",
        "-e",
        "x",
        "r.csv",
        "--keep",
        "\"net, CHF\"",
        "--types",
        "\"net, CHF\"=f64",
        "--format",
        "jsonl",
    ]);
    assert_eq!(kept, "{\"net, CHF\":2.0,\"result\":1}\n");
    refused(&shell.run(&["check", "-e", "x", "--types", "x,y=f64"]), "expected a name and a type, as in `x=f32`");
}

/// Results are a table on a terminal and CSV elsewhere, so options about missing values and numbers in CSV apply to tables too.
#[test]
fn options_about_csv_results_hold_for_tables() {
    let shell = Shell::new().file("r.jsonl", "{\"x\":1.5}\n{\"x\":null}\n");
    let args = ["eval", "-e", "input x: f64?; x", "r.jsonl", "--format", "table"];
    let shown = shell.stdout(&[&args[..], &["--null", "none", "--output-decimal", ","]].concat());
    assert!(shown.contains("none") && shown.contains("1,5") && !shown.contains("NA"), "{shown}");
    let shown = shell.stdout(&args);
    assert!(shown.contains("NA") && shown.contains("1.5"), "{shown}");
}

#[test]
fn a_dash_is_another_place_than_a_file_of_this_name() {
    let shell = Shell::new().file("r.csv", "x\n1\na\n");
    let args = ["eval", "-e", "input x: i64; x", "r.csv", "--on-error", "skip", "--format", "csv"];
    let outcome = shell.run(&[&args[..], &["-o", "./-", "--errors", "-"]].concat());
    assert!(outcome.status == Some(0) && outcome.stderr.contains("r.csv,3,2,x"), "{outcome}");
    assert_eq!(shell.read("-"), "result\n1\n");
    let outcome = shell.run(&[&args[..], &["-o", "./-", "--errors", "./-"]].concat());
    refused(&outcome, "`-o` and `--errors` both name `./-`");
}
