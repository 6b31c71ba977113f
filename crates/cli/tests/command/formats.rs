//! Tests of the documented rules for reading and writing data, as far as a user of the command sees them.

use super::shell::Shell;

/// Runs a model whose output is its input of the type `qtype` on the data `content`, and returns the results.
fn pass(qtype: &str, file: &str, content: &str, more: &[&str]) -> String {
    let shell = Shell::new().file(file, content);
    let model = format!("input x: {qtype}; output y = x");
    let args: Vec<&str> = ["eval", "-e", &model, file].iter().chain(more).copied().collect();
    shell.stdout(&args)
}

#[test]
fn csv_in_csv_out() {
    assert_eq!(
        pass("f64?", "r.csv", "x\n1.50\n\"\"\nnan\n-inf\n1e400\n-0.0\n", &[]),
        "y\n1.5\n\"\"\nnan\n-inf\ninf\n-0\n"
    );
    assert_eq!(pass("f32", "r.csv", "x\n0.1\n16777217\n", &[]), "y\n0.1\n16777216\n");
    assert_eq!(pass("i64", "r.csv", "x\n9223372036854775807\n", &[]), "y\n9223372036854775807\n");
    assert_eq!(pass("bool?", "r.csv", "x,z\ntrue,\nfalse,\n,\n", &[]), "y\ntrue\nfalse\n\"\"\n");
    assert_eq!(pass("unit?", "r.csv", "x,z\npresent,\n,\n", &[]), "y\ntrue\n\"\"\n");
    assert_eq!(pass("text?", "r.csv", "x,z\n\"a,\"\"b\"\"\",\n,\n", &[]), "y\n\"a,\"\"b\"\"\"\n\"\"\n");
    assert_eq!(pass("(f64, i32?)", "r.csv", "x.0,x.1\n1,2\n3,\n", &[]), "y.0,y.1\n1,2\n3,\n");
}

#[test]
fn a_mask_goes_through_all_forms() {
    let negate = ["eval", "-e", "input x: unit?; output \"x\" = not x", "--format"];
    let through = |file: &str, rows: &str, to: &str| {
        let shell = Shell::new().file(file, rows);
        shell.stdout(&[&negate[..], &[to, file]].concat())
    };
    let (csv, json) = ("x\ntrue\n\"\"\n", "{\"x\":true}\n{\"x\":null}\n");
    let (no_csv, no_json) = ("x\n\"\"\ntrue\n", "{\"x\":null}\n{\"x\":true}\n");
    // Twice negated, it is what it was, whichever form is in between.
    assert_eq!(through("r.csv", csv, "csv"), no_csv);
    assert_eq!(through("r.csv", no_csv, "jsonl"), json);
    assert_eq!(through("r.jsonl", json, "csv"), no_csv);
    assert_eq!(through("r.jsonl", no_json, "jsonl"), json);
    assert_eq!(through("r.tsv", "x\nTRUE\nFalse\n", "jsonl"), no_json);
    // All that stands for a mask stands for it everywhere.
    for (word, holds) in [("true", true), ("present", true), ("false", false), ("missing", false)] {
        let (csv, json) = if holds { (no_csv, no_json) } else { ("x\ntrue\n", "{\"x\":true}\n") };
        let (csv, json) = (csv.split_inclusive("\n").take(2), json.split_inclusive("\n").take(1));
        let (csv, json) = (csv.collect::<String>(), json.collect::<String>());
        assert_eq!(through("r.csv", &format!("x\n{word}\n"), "csv"), csv, "{word}");
        let value = if word.len() < 6 { word.to_owned() } else { format!("\"{word}\"") };
        assert_eq!(through("r.json", &format!("[{{\"x\": {value}}}]"), "jsonl"), json, "{word}");
        let constant = format!("x={word}");
        assert_eq!(Shell::new().stdout(&[&negate[..], &["jsonl", "-s", &constant]].concat()), json, "{word}");
    }
    // Who does not know that it is a mask has truth values that hold where the mask does.
    let undeclared = |file: &str, rows: &str| {
        let shell = Shell::new().file(file, rows);
        shell.stdout(&["eval", "-e", "output y = if x then 1 else 0", file])
    };
    assert_eq!(undeclared("r.csv", csv), "y\n1\n0\n");
    assert_eq!(undeclared("r.jsonl", json), "y\n1\n0\n");
    // What is always there is not missing.
    for (file, rows) in [("r.csv", "x\nfalse\n"), ("r.json", "[{\"x\": false}]")] {
        let outcome = Shell::new().file(file, rows).run(&["eval", "-e", "input x: unit; x", file]);
        assert!(outcome.stderr.contains("column `x`: expected "), "{outcome}");
    }
}

#[test]
fn shapes_are_no_data() {
    let shell = Shell::new().file("r.csv", "s,x\n1,2\n").file("r.json", "[{\"s\": 1, \"x\": 2}]");
    let told = |args: &[&str]| {
        let outcome = shell.run(args);
        assert_eq!((outcome.status, outcome.stdout.as_str()), (Some(1), ""), "{outcome}");
        outcome.stderr.lines().next().unwrap_or_default().to_owned()
    };
    for format in ["csv", "json", "jsonl", "table"] {
        let found = told(&["eval", "-e", "output y = (1, shape_of(x))", "-s", "x=2", "--format", format]);
        assert_eq!(found, "error[column-type]: column `y`: data cannot have the type (i32, SCALAR_SHAPE)");
    }
    for rows in ["r.csv", "r.json"] {
        let found = told(&["eval", "-e", "input s: SCALAR_SHAPE; const_with_shape(s, x)", rows]);
        assert_eq!(found, "error[column-type]: column `s`: data cannot have the type SCALAR_SHAPE");
    }
    // As a value of its own it goes in.
    let model = "input s: OPTIONAL_SCALAR_SHAPE; const_with_shape(s, 7)";
    assert_eq!(shell.stdout(&["eval", "-e", model, "-s", "s=OPTIONAL_SCALAR_SHAPE{}"]), "result\n7\n");
}

#[test]
fn a_null_string_makes_room_for_empty_texts() {
    // Empty fields are missing too; in quotes they are texts.
    assert_eq!(pass("text?", "r.csv", "x,z\nNA,\n,\n\"\",\nnone,\n", &["--null", "NA"]), "y\nNA\nNA\n\"\"\nnone\n");
    assert_eq!(
        pass("text?", "r.csv", "x,z\nNA,\n-,\n\"\",\n", &["--null", "NA", "--null", "-", "--format", "jsonl"]),
        "{\"y\":null}\n{\"y\":null}\n{\"y\":\"\"}\n"
    );
    // Results have it even if the data are JSON, which knows `null` by itself.
    assert_eq!(pass("f64?", "r.jsonl", "{\"x\": null}\n", &["--null", "NA"]), "y\nNA\n");
}

#[test]
fn json_in_json_out() {
    let json = ["--format", "jsonl"];
    let floats = "{\"x\": 1.5}\n{}\n{\"x\": \"NaN\"}\n{\"x\": \"-Infinity\"}\n{\"x\": 3}\n";
    assert_eq!(
        pass("f64?", "r.jsonl", floats, &json),
        "{\"y\":1.5}\n{\"y\":null}\n{\"y\":\"NaN\"}\n{\"y\":\"-Infinity\"}\n{\"y\":3.0}\n"
    );
    assert_eq!(pass("i64", "r.json", "[{\"x\": 9223372036854775807}]", &json), "{\"y\":9223372036854775807}\n");
    assert_eq!(pass("unit?", "r.json", "[{\"x\": true}, {}]", &json), "{\"y\":true}\n{\"y\":null}\n");
    assert_eq!(pass("(f64, text?)", "r.json", "[{\"x\": [1, null]}]", &json), "{\"y\":[1.0,null]}\n");
    assert_eq!(pass("text", "r.ndjson", "{\"x\": \"\\u00e9\\n\"}", &json), "{\"y\":\"é\\n\"}\n");
    assert_eq!(pass("f64", "r.json", "[]", &["--format", "json"]), "[]\n");
}

#[test]
fn unsigned_integers_are_exact_and_bytes_are_base64() {
    let json = ["--format", "jsonl"];
    let (most, odd) = ("18446744073709551615", "9007199254740993");
    assert_eq!(pass("u64", "r.csv", &format!("x\n{most}\n{odd}\n0\n"), &[]), format!("y\n{most}\n{odd}\n0\n"));
    let rows = format!("{{\"x\": {most}}}\n{{}}\n{{\"x\": {odd}}}\n");
    let expected = format!("{{\"y\":{most}}}\n{{\"y\":null}}\n{{\"y\":{odd}}}\n");
    assert_eq!(pass("u64?", "r.jsonl", &rows, &json), expected);
    assert_eq!(pass("bytes?", "r.csv", "x,z\n//4=,\n,\nAA==,\n", &[]), "y\n//4=\n\"\"\nAA==\n");
    assert_eq!(
        pass("bytes?", "r.jsonl", "{\"x\": \"//4=\"}\n{\"x\": \"\"}\n{}\n", &json),
        "{\"y\":\"//4=\"}\n{\"y\":\"\"}\n{\"y\":null}\n"
    );
    // The bytes themselves, not their spelling, are what the model sees.
    let shell = Shell::new().file("r.csv", "b,n\n/w==,18446744073709551615\n/g==,7\n");
    let model = "output same = b == b\"\\xff\"; output seven = n == 7u64";
    assert_eq!(shell.stdout(&["eval", "-e", model, "r.csv", "--types", "b=bytes,n=u64"]), "same,seven\ntrue,\n,true\n");
    let constants = ["eval", "-e", "output x = n; output y = b", "-s", "n=7u64", "-s", "b=b\"\\xff\""];
    assert_eq!(shell.stdout(&constants), "x,y\n7,/w==\n");
}

#[test]
fn what_is_no_u64_and_no_base64_is_said() {
    let told = |qtype: &str, file: &str, content: &str| {
        let shell = Shell::new().file(file, content);
        let outcome = shell.run(&["eval", "-e", &format!("input x: {qtype}; x"), file]);
        assert_eq!(outcome.status, Some(1));
        outcome.stderr
    };
    let csv = told("u64", "r.csv", "x\n18446744073709551616\n");
    assert!(csv.contains("column `x`: expected u64, found `18446744073709551616`"), "{csv}");
    let json = told("u64", "r.jsonl", "{\"x\": -1}\n");
    assert!(json.contains("column `x`: expected u64, found `-1`"), "{json}");
    let csv = told("bytes", "r.csv", "x\nlight!\n");
    assert!(csv.contains("expected bytes, found `light!`") && csv.contains("base64, padded with `=`"), "{csv}");
    let json = told("bytes", "r.jsonl", "{\"x\": \"//4\"}\n");
    assert!(json.contains("expected bytes, found `\"//4\"`") && json.contains("base64, padded with `=`"), "{json}");
}

#[test]
fn dates_and_timestamps_go_through_csv_and_json() {
    let json = ["--format", "jsonl"];
    let days = "2026-11-20\n0001-01-01\n";
    assert_eq!(pass("date", "r.csv", &format!("x\n{days}"), &[]), format!("y\n{days}"));
    assert_eq!(pass("date?", "r.csv", "x,z\n,\n1970-01-01,\n", &[]), "y\n\"\"\n1970-01-01\n");
    let moments = "2026-11-20T10:15:00.5Z\n1969-12-31T23:59:59Z\n";
    assert_eq!(pass("timestamp", "r.csv", &format!("x\n{moments}"), &[]), format!("y\n{moments}"));
    let far = "+12345-01-01\n-0044-03-15\n+0000-12-31\n+5881580-07-11\n-5877641-06-23\n";
    assert_eq!(pass("date", "r.csv", &format!("x\n{far}"), &[]), format!("y\n{far}"));
    let quoted: String = far.lines().map(|day| format!("{{\"y\":\"{day}\"}}\n")).collect();
    assert_eq!(pass("date", "r.jsonl", &quoted.replace('y', "x"), &json), quoted);
    let far = "-290308-12-21T19:59:05.224192Z\n+294247-01-10T04:00:54.775807Z\n+0000-12-31T00:00:00Z\n";
    let given = far.replace("31T00", "31 01").replace("00:00Z", "00:00+01:00");
    assert_eq!(pass("timestamp", "r.csv", &format!("x\n{given}"), &[]), format!("y\n{far}"));
    // Only dates with years of four digits decide a type.
    assert_eq!(pass("text", "r.csv", "x\n+2026-01-01\n", &[]), "y\n+2026-01-01\n");
    let untyped = Shell::new().file("r.csv", "x\n+12345-01-01\n");
    assert_eq!(untyped.stdout(&["eval", "-e", "strings.upper(x)", "r.csv"]), "result\n+12345-01-01\n");
    assert_eq!(
        pass("(date?, timestamp)", "r.jsonl", "{\"x\": [null, \"1970-01-01T00:00:00.000001Z\"]}\n", &json),
        "{\"y\":[null,\"1970-01-01T00:00:00.000001Z\"]}\n"
    );
    // Years outside of 1 to 9999 have a sign.
    let far = "output y = date\"9999-12-31\" + 1; output z = timestamp\"9999-12-31T23:59:59Z\" + 1s";
    let shell = Shell::new();
    assert_eq!(shell.stdout(&["eval", "-e", far]), "y,z\n+10000-01-01,+10000-01-01T00:00:00Z\n");
    assert_eq!(
        shell.stdout(&["eval", "-e", far, "--backend", "interp", "--format", "jsonl"]),
        "{\"y\":\"+10000-01-01\",\"z\":\"+10000-01-01T00:00:00Z\"}\n"
    );
    let shell = Shell::new()
        .file("visits.csv", "name,born,seen\nAnn,1990-02-28,2026-11-20T23:30:00Z\nBob,2000-02-29,\n")
        .file("wrong.csv", "born\n1990-02-30\n")
        .file("wrong.jsonl", "{\"born\": 7}\n");
    let model = "input born: date; input seen: timestamp?
        output year = date.year(born); output days = to_date(seen) - born; output next = born + 366; output \"name\" = name";
    assert_eq!(
        shell.stdout(&["eval", "-e", model, "visits.csv"]),
        "year,days,next,name\n1990,13414,1991-03-01,Ann\n2000,,2001-03-01,Bob\n"
    );
    let typed = ["eval", "-e", "date.weekday(born)", "visits.csv", "--types", "born=date"];
    assert_eq!(shell.stdout(&typed), "result\n3\n2\n");
    assert_eq!(shell.stdout(&["eval", "-e", "d - 1", "-s", "d=date\"2024-03-01\""]), "result\n2024-02-29\n");
    for (file, found) in [("wrong.csv", "`1990-02-30`"), ("wrong.jsonl", "`7`")] {
        let outcome = shell.run(&["eval", "-e", "input born: date; born", file]);
        assert_eq!(outcome.status, Some(1));
        assert!(outcome.stderr.contains(&format!("expected date, found {found}")), "{}", outcome.stderr);
    }
}

#[test]
fn undeclared_inputs_take_their_types_from_the_data() {
    let shell = Shell::new()
        .file("r.csv", "n,b,t\n1,true,x\n2,,\n")
        .file("r.jsonl", "{\"n\": 7, \"f\": 7.0}\n{\"n\": 8, \"f\": 7e0}\n");
    // Whole numbers are integers.
    assert_eq!(shell.stdout(&["eval", "-e", "n // 3", "r.csv"]), "result\n0\n0\n");
    assert_eq!(shell.stdout(&["eval", "-e", "n / 3.0f64", "r.csv", "--limit", "1"]), "result\n0.3333333333333333\n");
    assert_eq!(shell.stdout(&["eval", "-e", "n / 3", "r.jsonl", "--limit", "1"]), "result\n2.3333333333333335\n");
    assert_eq!(
        shell.stdout(&["eval", "-e", "n // 2", "r.jsonl", "--format", "jsonl", "--limit", "1"]),
        "{\"result\":3}\n"
    );
    assert_eq!(
        shell.stdout(&["eval", "-e", "f", "r.jsonl", "--format", "jsonl", "--limit", "1"]),
        "{\"result\":7.0}\n"
    );
    let model = "output u = has(b); output v = (not b) ?? false; output w = t ?? \"none\"";
    assert_eq!(shell.stdout(&["eval", "-e", model, "r.csv"]), "u,v,w\ntrue,false,x\n,false,none\n");
    // The command line may say better.
    assert_eq!(
        shell.stdout(&["eval", "-e", "n / 3", "r.csv", "--types", "n=f32", "--limit", "1"]),
        "result\n0.3333333333333333\n"
    );
}

#[test]
fn what_is_written_is_read_back_the_same() {
    let values = "x,t\n0.1,a b\n1e-310,\"q\"\"\n\"\nnan,é\n-0.0,1\n5e300,\n";
    let shell = Shell::new().file("a.csv", values);
    let model = "input x: f64?; input t: text?; output \"x\" = x; output \"t\" = t";
    let mut last = "a.csv".to_owned();
    for (index, ending) in ["jsonl", "csv", "json", "tsv", "csv"].into_iter().enumerate() {
        let next = format!("{index}.{ending}");
        assert_eq!(shell.stdout(&["eval", "-e", model, &last, "--output", &next]), "");
        last = next;
    }
    assert_eq!(shell.read("1.csv"), shell.read(&last));
    assert_eq!(shell.read(&last), "x,t\n0.1,a b\n1e-310,\"q\"\"\n\"\nnan,é\n-0,1\n5e300,\n");
}
