//! Tests of edge cases in files: quotes, line ends and byte order marks in the tables of models, rows that cannot be read, and all spellings of
//! times.

use super::shell::Shell;

const TABLE: &str = "table t: text -> f64 = \"t.csv\"\ninput k: text\noutput v = lookup(k, t)\n";

#[test]
fn tables_are_read_as_strictly_as_data() {
    let broken = |table: &str| {
        let outcome = Shell::new().file("t.cem", TABLE).file("t.csv", table).run(&["check", "t.cem"]);
        assert_eq!(outcome.status, Some(1), "{outcome}");
        outcome.stderr.lines().take(4).map(|line| line.trim_start().to_owned()).collect::<Vec<_>>()
    };
    // Excel ends lines with CRLF; the message must still name the line with the error.
    assert_eq!(
        broken("k,v\r\na,1\r\n\r\nb,x\r\n"),
        ["error[literal]: `x` is not a valid f64", "--> t.csv:4:1", "|", "4 | b,x"]
    );
    assert_eq!(
        broken("k,v\r\na,1\r\n\"b,2\r\nc,3\r\n"),
        ["error[literal]: a quote is opened and never closed", "--> t.csv:3:1", "|", "3 | \"b,2"]
    );
    assert_eq!(
        broken("k,v\na,1\nb,\"2\"5\nc,3\n"),
        [
            "error[literal]: a field in quotes has more text after its closing quote: `\"2\"5`",
            "--> t.csv:3:3",
            "|",
            "3 | b,\"2\"5"
        ]
    );
    let utf16: Vec<u8> = "\u{feff}k,v\na,1\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    for bytes in [&utf16, &utf16[2..]] {
        let outcome = Shell::new().file("t.cem", TABLE).file("t.csv", bytes).run(&["check", "t.cem"]);
        let told = "error[use]: `t.csv` cannot be read: UTF-16 text, not UTF-8; save the file as UTF-8, line 1\n";
        assert!(outcome.stderr.starts_with(told), "{outcome}");
    }
    // A quote may follow the byte order mark.
    let marked = Shell::new().file("t.cem", TABLE).file("t.csv", "\u{feff}\"k\",v\r\n\"a \"\"b\"\"\",1.5\r\n");
    assert_eq!(marked.stdout(&["eval", "t.cem", "-s", "k=\"a \\\"b\\\"\""]), "v\n1.5\n");
}

/// A row of JSON that failed keeps the values that can be read, in the results and in the list of failed rows, as a row of CSV does.
#[test]
fn rows_of_json_that_fail_keep_their_columns() {
    let shell = Shell::new().file("k.jsonl", "{\"id\":1,\"x\":1}\n{\"id\":2,\"x\":\"a\"}\n{\"id\":3,\"x\":01}\n");
    let args = ["eval", "-e", "input x: i64; x", "k.jsonl", "--keep", "id"];
    let outcome = shell.run(&[&args[..], &["--on-error", "missing", "--errors", "e.csv"]].concat());
    assert_eq!(outcome.stdout, "id,result\n1,1\n2,\n,\n", "{outcome}");
    assert_eq!(
        shell.read("e.csv"),
        "file,line,row,column,code,message,id\n\
         k.jsonl,2,2,x,column-type,\"expected i64, found `\"\"a\"\"`\",2\n\
         k.jsonl,3,3,,unreadable,not JSON: invalid number,\n"
    );
    // `-` is standard error.
    let outcome = shell.run(&[&args[..], &["--on-error", "skip", "--errors", "-"]].concat());
    assert_eq!(outcome.stdout, "id,result\n1,1\n", "{outcome}");
    assert!(outcome.stderr.starts_with(&shell.read("e.csv")), "{outcome}");
}

/// Few errors of rows are in memory at once, but all errors are written, in the order of the rows.
#[test]
fn many_rows_that_fail_are_all_told() {
    let rows = 20_000;
    let csv: String =
        (0..rows).map(|row| if row % 5 == 0 { format!("{row},1\n") } else { format!("{row},a\n") }).collect();
    let json: String = csv
        .lines()
        .map(|line| line.split_once(',').expect("two fields"))
        .map(|(id, x)| format!("{{\"id\":{id},\"x\":{}}}\n", if x == "a" { "\"a\"" } else { x }))
        .collect();
    let shell = Shell::new().file("r.csv", format!("id,x\n{csv}")).file("r.jsonl", json);
    let good: String = (0..rows).step_by(5).map(|row| format!("{row},1\n")).collect();
    let bad: Vec<String> = (0..rows).filter(|row| row % 5 != 0).map(|row| row.to_string()).collect();
    for data in ["r.csv", "r.jsonl"] {
        let args = ["eval", "-e", "input x: i64; x", data, "--keep", "id", "--on-error", "skip", "--errors", "e.csv"];
        let outcome = shell.run(&args);
        assert!(outcome.stdout == format!("id,result\n{good}"), "{}", outcome.stderr);
        assert!(outcome.stderr.starts_with("note: 16000 of 20000 rows failed;"), "{}", outcome.stderr);
        let errors = shell.read("e.csv");
        let told: Vec<&str> = errors.lines().skip(1).filter_map(|line| Some(line.rsplit_once(',')?.1)).collect();
        assert!(told == bad, "{data}");
    }
}

/// Digits after the microseconds are dropped, so that times are rounded down, also before 1970. In a literal of a model such digits are an error.
#[test]
fn times_are_the_same_in_every_form() {
    let spelled = [
        ("2026-01-01T00:00:00.123456789Z", "2026-01-01T00:00:00.123456Z"),
        ("1969-12-31T23:59:59.9999999Z", "1969-12-31T23:59:59.999999Z"),
        ("2026-01-01 01:00:00.000000999+01:00", "2026-01-01T00:00:00Z"),
        ("2026-01-01T00:00:00.5-0430", "2026-01-01T04:30:00.5Z"),
    ];
    let csv: String = spelled.iter().map(|(text, _)| format!("{text}\n")).collect();
    let json: String = spelled.iter().map(|(text, _)| format!("{{\"t\":\"{text}\"}}\n")).collect();
    let table: String = spelled.iter().enumerate().map(|(at, (text, _))| format!("{at},{text}\n")).collect();
    let shell = Shell::new()
        .file("t.csv", format!("t\n{csv}"))
        .file("t.jsonl", json)
        .file("b.csv", format!("k,v\n{table}"))
        .file("b.cem", "table b: i64 -> timestamp = \"b.csv\"\ninput k: i64\noutput o = lookup(k, b)\n")
        .file("k.csv", "k\n0\n1\n2\n3\n");
    let expected: String = spelled.iter().map(|(_, shown)| format!("{shown}\n")).collect();
    let expected = format!("o\n{expected}");
    for data in ["t.csv", "t.jsonl"] {
        assert_eq!(shell.stdout(&["eval", "-e", "input t: timestamp; output o = t", data]), expected, "{data}");
    }
    assert_eq!(shell.stdout(&["eval", "-e", "output o = t", "t.csv"]), expected);
    let parsed = "input t: text; output o = strings.parse_timestamp(t)";
    for data in ["t.csv", "t.jsonl"] {
        assert_eq!(shell.stdout(&["eval", "-e", parsed, data]), expected, "{data}");
    }
    assert_eq!(shell.stdout(&["eval", "b.cem", "k.csv"]), expected);
    for (text, shown) in spelled {
        let set = format!("t={text}");
        assert_eq!(shell.stdout(&["eval", "-e", "input t: timestamp; t", "-s", &set]), format!("result\n{shown}\n"));
    }
    let literal = |text: &str| shell.run(&["eval", "-e", &format!("timestamp\"{text}\"")]);
    assert_eq!(literal("2026-01-01T00:00:00.25+01:00").stdout, "result\n2025-12-31T23:00:00.25Z\n");
    let refused = literal("2026-01-01T00:00:00.1234567Z");
    assert_eq!((refused.status, refused.stdout.as_str()), (Some(1), ""), "{refused}");
    let hint = "write at most six digits of a fraction: a timestamp has microseconds";
    assert!(
        refused.stderr.contains("`2026-01-01T00:00:00.1234567Z` is not a valid timestamp")
            && refused.stderr.contains(hint)
    );
}

#[test]
fn clocks_of_twelve_hours_and_nine_digits_are_read() {
    let shell = Shell::new().file("t.csv", "t\n01/02/2026 12:05:00.123456789 AM\n01/02/2026 03:05:00.5 pm\n");
    let args = ["eval", "-e", "input t: timestamp; output o = t", "t.csv", "--timestamp-format"];
    let read = shell.stdout(&[&args[..], &["%m/%d/%Y %I:%M:%S.%f %p"]].concat());
    assert_eq!(read, "o\n2026-01-02T00:05:00.123456Z\n2026-01-02T15:05:00.5Z\n");
    // `%p` is refused beside `%H`, which tells the half of the day already.
    let wrong = shell.run(&[&args[..], &["%m/%d/%Y %H:%M:%S.%f %p"]].concat());
    assert!(wrong.stderr.contains("the format has `%p`, but no hour from 1 to 12; write `%I` for the hour"), "{wrong}");
    let written = "strings.format_timestamp(timestamp\"2026-01-02T15:05:00Z\", \"%I:%M %p\")";
    assert_eq!(shell.stdout(&["eval", "-e", written]), "result\n03:05 PM\n");
}

/// The time zone of `--time-zone` applies to JSON at any depth. Columns that are only copied to the results stay unchanged.
#[test]
fn a_time_zone_is_that_of_all_timestamps_that_say_none() {
    let rows = "{\"t\":\"2026-07-01T12:15:00\",\"s\":{\"u\":\"2026-01-01 00:00:00.5\",\"n\":\"a \\\"b\\\"\"},\"l\":[\"2026-07-01T12:15:00Z\",\"2026-07-01T12:15:00\",null]}\n";
    let shell = Shell::new().file("t.jsonl", rows).file("u.jsonl", "{\"t\":\"2026-03-29T02:30:00\"}\n");
    let model = "input t: timestamp; input s: {u: timestamp, n: text}; input l: [timestamp?]; output a = t; output b = s; output c = l";
    let args = ["eval", "-e", model, "t.jsonl", "--format", "jsonl", "--keep", "t"];
    let found = shell.stdout(&[&args[..], &["--time-zone", "Europe/Zurich"]].concat());
    assert_eq!(
        found,
        "{\"t\":\"2026-07-01T12:15:00\",\"a\":\"2026-07-01T10:15:00Z\",\"b\":{\"u\":\"2025-12-31T23:00:00.5Z\",\"n\":\"a \\\"b\\\"\"},\"c\":[\"2026-07-01T12:15:00Z\",\"2026-07-01T10:15:00Z\",null]}\n"
    );
    let outcome = shell.run(&args);
    assert!(
        outcome.stderr.contains("use `--time-zone UTC`, or another one: this timestamp has no time zone"),
        "{outcome}"
    );
    let skipped = shell.run(&["eval", "-e", "input t: timestamp; t", "u.jsonl", "--time-zone", "Europe/Zurich"]);
    let told = "expected timestamp, found `\"2026-03-29T02:30:00\"`, which does not exist in Europe/Zurich, because clocks are put forward then";
    assert!(skipped.stderr.contains(told), "{skipped}");
}

/// The list of failed rows has no hints, so the message of a local time that clocks skip gives the reason.
#[test]
fn why_a_time_does_not_exist_is_told() {
    let shell = Shell::new()
        .file("t.csv", "t\n2026-03-29 02:30:00\n")
        .file("f.csv", "t\n29.03.2026 02:30\n")
        .file("z.csv", "z\nEurope/Zurich\neurope/zurich\n");
    let zone = ["--time-zone", "Europe/Zurich", "--on-error", "missing", "--errors", "e.csv"];
    let eval = ["eval", "-e", "input t: timestamp; t"];
    for (more, text) in [
        (&["t.csv"][..], "2026-03-29 02:30:00"),
        (&["f.csv", "--timestamp-format", "%d.%m.%Y %H:%M"], "29.03.2026 02:30"),
    ] {
        let data = more[0];
        assert_eq!(shell.run(&[&eval[..], more, &zone].concat()).stdout, "result\n\"\"\n");
        let reason = "which does not exist in Europe/Zurich, because clocks are put forward then";
        assert_eq!(
            shell.read("e.csv"),
            format!(
                "file,line,row,column,code,message\n{data},2,1,t,column-type,\"expected timestamp, found `{text}`, {reason}\"\n"
            )
        );
    }
    // On the command line too, for an input of rows and for one beside tensors.
    let beside = "input t: timestamp; input a: tensor[f64, 1]; output b = a; output u = t";
    for model in ["input t: timestamp; t", beside] {
        let args = ["eval", "-e", model, "-s", "t=2026-03-29 02:30:00", "--time-zone", "Europe/Zurich"];
        let outcome = shell.run(&args);
        let said = "; this is a time which does not exist in Europe/Zurich, because clocks are put forward then";
        assert!(outcome.status == Some(2) && outcome.stderr.contains(said), "{outcome}");
    }
    let model = "input z: text; output t = timestamp.local(timestamp\"2026-01-01T00:00:00Z\", z)";
    let args = ["eval", "-e", model, "z.csv", "--on-error", "missing", "--errors", "e.csv"];
    assert_eq!(shell.run(&args).stdout, "t\n2026-01-01T01:00:00Z\n\"\"\n");
    assert!(shell.read("e.csv").contains("there is no time zone `europe/zurich`"), "{}", shell.read("e.csv"));
}

#[test]
fn failed_rows_replace_no_file_of_the_data() {
    let shell = Shell::new().file("d.csv", "x\n1\na\n").file("sub/e.csv", "x\n2\n");
    for errors in ["d.csv", "./d.csv", "sub/../sub/e.csv"] {
        let args = ["eval", "-e", "input x: i64; x", "d.csv", "sub/e.csv", "--on-error", "skip", "--errors", errors];
        let outcome = shell.run(&args);
        assert!(outcome.status == Some(2) && outcome.stderr.contains("would replace a file of the data"), "{outcome}");
    }
    assert_eq!((shell.read("d.csv"), shell.read("sub/e.csv")), ("x\n1\na\n".to_owned(), "x\n2\n".to_owned()));
}

#[test]
fn objects_that_are_carried_to_json_get_no_keys() {
    let rows = "{\"d\":{\"2026-01-01\":1},\"l\":[{\"a\":1},{\"b\":2}]}\n{\"d\":{\"2026-01-02\":null},\"l\":[]}\n";
    let shell = Shell::new().file("d.jsonl", rows);
    let args = ["eval", "-e", "output y = 1", "d.jsonl", "--keep-all", "--format", "jsonl"];
    assert_eq!(shell.stdout(&args), rows.replace("}\n", ",\"y\":1}\n"));
}

#[test]
fn texts_within_structs_and_lists_take_ids_of_any_size() {
    let rows =
        "{\"n\":[{\"id\":1234567890123456789012},{\"id\":\"a\"}],\"l\":[7],\"d\":{\"k\":18446744073709551616}}\n";
    let shell = Shell::new().file("d.jsonl", rows);
    let model = "input n: [{id: text}]; input l: [text]; input d: dict[text, text]\n\
        output ids = n.id; output m = l; output v = lookup(\"k\", d)";
    let args = |model| ["eval", "-e", model, "d.jsonl", "--format", "jsonl"];
    let expected = "{\"ids\":[\"1234567890123456789012\",\"a\"],\"m\":[\"7\"],\"v\":\"18446744073709551616\"}\n";
    assert_eq!(shell.stdout(&args(model)), expected);
    // What is inferred to be a text does not.
    let shell = Shell::new().file("d.jsonl", "{\"s\":{\"t\":\"a\"}}\n".repeat(1_000) + "{\"s\":{\"t\":5}}\n");
    let outcome = shell.run(&args("output y = L.s.t"));
    assert!(outcome.stderr.contains("column `s.t`: expected text, found `5`"), "{outcome}");
}

#[test]
fn times_that_clocks_skip_are_told_among_the_first_rows_too() {
    let shell = Shell::new().file("t.csv", "t\n2026-01-02T03:04:05\n2026-03-29T02:30:00\n");
    let args = ["eval", "-e", "output y = t", "t.csv", "--time-zone", "Europe/Zurich", "--on-error", "skip"];
    let outcome = shell.run(&args);
    assert_eq!((outcome.status, outcome.stdout.as_str()), (Some(0), "y\n2026-01-02T02:04:05Z\n"), "{outcome}");
    assert!(outcome.stderr.contains("which does not exist in Europe/Zurich"), "{outcome}");
}

#[test]
fn failed_rows_are_listed_only_where_the_run_goes_on() {
    let shell = Shell::new().file("d.csv", "x\n1\n");
    let outcome = shell.run(&["eval", "-e", "x", "d.csv", "--errors", "e.csv"]);
    assert!(outcome.status == Some(2) && outcome.stderr.contains("add `--on-error skip` or"), "{outcome}");
}

#[test]
fn columns_have_one_type() {
    let shell = Shell::new().file("d.csv", "x\n1\n");
    for types in [&["--types", "x=i64,x=f64"][..], &["--types", "x=i64", "--types", "x=i64"]] {
        let outcome = shell.run(&[&["eval", "-e", "x", "d.csv"], types].concat());
        assert!(
            outcome.status == Some(2) && outcome.stderr.contains("leave one type of `x` out: `--types` gives two"),
            "{outcome}"
        );
    }
}

#[test]
fn types_of_columns_that_are_carried_hold() {
    let shell = Shell::new().file("d.csv", "x,k\n1.50,02\n");
    let with = |types| ["eval", "-e", "output y = L.x * 2.0", "d.csv", "--keep-all", "--types", types];
    assert_eq!(shell.stdout(&with("k=i64")), "x,k,y\n1.50,2,3\n");
    assert_eq!(shell.stdout(&with("x=f64")), "x,k,y\n1.50,02,3\n", "the type of an input");
    let outcome = shell.run(&with("k=date"));
    assert!(outcome.status == Some(1) && outcome.stderr.contains("column `k`: expected date, found `02`"), "{outcome}");
    // A file of Parquet has its own.
    shell.stdout(&[&with("k=i64")[..], &["-o", "d.parquet"]].concat());
    let with = |types| ["eval", "-e", "output y = 1", "d.parquet", "--keep-all", "--types", types];
    assert_eq!(shell.stdout(&with("k=i64")), "x,k,y\n1.5,2,1\n");
    let outcome = shell.run(&with("k=text"));
    let (said, help) = ("column `k`: expected text, found i64", "leave `k` out of `--types`");
    assert!(outcome.stderr.contains(said) && outcome.stderr.contains(help), "{outcome}");
}

#[test]
fn marks_of_missing_values_may_be_negative() {
    let shell = Shell::new().file("d.csv", "x\n-999\n1\n");
    assert_eq!(shell.stdout(&["eval", "-e", "x + 1", "d.csv", "--null", "-999"]), "result\n-999\n2\n");
}

#[test]
fn digits_are_no_dates_without_a_declaration() {
    let shell = Shell::new().file("d.csv", "d,e\n11022026,01022026\n");
    let declared = shell.stdout(&[
        "eval",
        "-e",
        "input d, e: date; output a = d; output b = e",
        "d.csv",
        "--date-format",
        "%d%m%Y",
    ]);
    assert_eq!(declared, "a,b\n2026-02-11,2026-02-01\n");
    let outcome = shell.run(&["eval", "-e", "output a = d; output b = e", "d.csv", "--date-format", "%d%m%Y"]);
    assert!(
        outcome.status == Some(2) && outcome.stderr.contains("or declare an input, as in `input e: date?`"),
        "{outcome}"
    );
}

#[test]
fn columns_without_a_name_go_through() {
    let shell = Shell::new().file("index.csv", ",a,b\n0,1,2\n1,3,4\n").file("empty.csv", "id,,\n1,2,3\n");
    assert_eq!(
        shell.stdout(&["eval", "-e", "output s = a + b", "index.csv", "--keep-all"]),
        ",a,b,s\n0,1,2,3\n1,3,4,7\n"
    );
    assert_eq!(shell.stdout(&["eval", "-e", "output s = L[\"\"]", "index.csv"]), "s\n0\n1\n");
    assert_eq!(shell.stdout(&["eval", "-e", "output y = id", "empty.csv", "--keep-all"]), "id,,,y\n1,2,3,1\n");
}

/// Makes a shell with a thousand rows, from which types are inferred, and a later row that does not fit these types.
fn late() -> Shell {
    let first = "{\"id\":1,\"x\":1,\"s\":{\"a\":1}}\n".repeat(1_000);
    let last =
        "{\"id\": 1234567890123456789012, \"x\": 2, \"s\": {\"a\": 2, \"b\": \"t\"}, \"late\": [1, {\"k\": 2.50}]}\n";
    Shell::new().file("late.jsonl", format!("{first}{last}{{\"id\":2,\"x\":3,\"s\":null}}\n"))
}

#[test]
fn json_is_carried_to_json_as_it_comes() {
    let shell = late();
    let ends = |args: &[&str], last: &str| {
        let model = ["eval", "-e", "input x: i64; output y = x * 2", "late.jsonl"];
        for backend in ["native", "interp"] {
            let made = shell.stdout(&[&model[..], args, &["--backend", backend, "--format", "jsonl"]].concat());
            assert_eq!(made.lines().count(), 1_002);
            assert!(made.ends_with(last), "{args:?}: {}", made.lines().rev().take(3).collect::<String>());
        }
    };
    let large = "\"id\":1234567890123456789012";
    ends(
        &["--keep-all"],
        &format!(
            "{{\"id\":1,\"x\":1,\"s\":{{\"a\":1}},\"y\":2}}\n\
             {{{large},\"x\":2,\"s\":{{\"a\":2,\"b\":\"t\"}},\"late\":[1,{{\"k\":2.50}}],\"y\":4}}\n\
             {{\"id\":2,\"x\":3,\"s\":null,\"y\":6}}\n"
        ),
    );
    ends(
        &["--keep", "s,id"],
        &format!("{{\"s\":{{\"a\":2,\"b\":\"t\"}},{large},\"y\":4}}\n{{\"s\":null,\"id\":2,\"y\":6}}\n"),
    );
    // An output replaces a column of the same name.
    let model = "input x: i64; output s = x; output late = x + 1";
    let made = shell.stdout(&["eval", "-e", model, "late.jsonl", "--keep-all", "--format", "jsonl"]);
    let last = format!("{{{large},\"x\":2,\"s\":2,\"late\":3}}\n{{\"id\":2,\"x\":3,\"s\":3,\"late\":4}}\n");
    assert!(made.ends_with(&last), "{}", made.lines().rev().take(2).collect::<String>());
    // A declared struct drops the fields that are not declared; the column that is carried through keeps them.
    let model = "input s: {a: i64}?; output a = s.a";
    let made = shell.stdout(&["eval", "-e", model, "late.jsonl", "--keep", "s", "--format", "jsonl"]);
    assert!(made.ends_with("{\"s\":{\"a\":2,\"b\":\"t\"},\"a\":2}\n{\"s\":null,\"a\":null}\n"), "{made}");
}

#[test]
fn json_that_no_type_holds_is_carried() {
    let rows =
        "[{\"id\": 12345678901234567890123, \"x\": 1, \"v\": [1, \"a\"]},\n {\"id\": 7, \"x\": \"no\", \"v\": 2.50}]";
    let shell = Shell::new().file("r.json", rows);
    let run = ["eval", "-e", "input x: i64; x", "r.json", "--on-error", "missing", "--errors", "e.csv"];
    let outcome = shell.run(&[&run[..], &["--keep", "v,id", "--format", "json"]].concat());
    let made =
        "[\n{\"v\":[1,\"a\"],\"id\":12345678901234567890123,\"result\":1},\n{\"v\":2.50,\"id\":7,\"result\":null}\n]\n";
    assert_eq!(outcome.stdout, made, "{outcome}");
    assert!(shell.read("e.csv").starts_with("file,line,row,column,code,message,v,id\nr.json,2,2,x,"), "{outcome}");
}

#[test]
fn json_that_is_carried_to_other_forms_loses_nothing() {
    let shell = late()
        .file(
            "ids.jsonl",
            "{\"id\":1234567890123456789012,\"n\":18446744073709551615}\n{\"id\":7,\"n\":0}\n{\"id\":null}\n",
        )
        .file("neg.jsonl", "{\"n\":-1}\n{\"n\":18446744073709551615}\n");
    let csv = shell.stdout(&["eval", "-e", "output y = 1", "ids.jsonl", "--keep", "id,n"]);
    assert_eq!(csv, "id,n,y\n1234567890123456789012,18446744073709551615,1\n7,0,1\n,,1\n");
    assert_eq!(
        shell.stdout(&["eval", "-e", "1", "neg.jsonl", "--keep", "n"]),
        "n,result\n-1,1\n18446744073709551615,1\n"
    );
    let noted = shell.run(&["eval", "-e", "1", "ids.jsonl", "--keep", "id,n", "--verbose"]).stderr;
    let types = "note: column id: text?, decided at ids.jsonl:1\nnote: column n: u64?, decided at ids.jsonl:1\n";
    assert!(noted.starts_with(types), "{noted}");
    for (keep, says) in [
        (&["--keep-all"][..], "column `late`: the first rows do not have this key"),
        (&["--keep", "id"], "`--types id=text?`"),
        (&["--keep", "s"], "`--types 's={a: i64, b: text?}'`"),
    ] {
        let outcome = shell.run(&[&["eval", "-e", "output y = 1", "late.jsonl"], keep].concat());
        assert_eq!(outcome.status, Some(1), "{outcome}");
        assert!(outcome.stderr.contains(says) && outcome.stderr.contains("late.jsonl:1001"), "{outcome}");
    }
    // A column that is also an input with a declared type must lose nothing either.
    let model = "input s: {a: i64}?; output a = s.a";
    let outcome = shell.run(&["eval", "-e", model, "late.jsonl", "--keep", "s"]);
    assert!(outcome.stderr.contains("late.jsonl:1001"), "{outcome}");
    assert!(shell.stdout(&["eval", "-e", model, "late.jsonl"]).ends_with("\n2\n\"\"\n"));
}
