//! Tests of dates and timestamps that are numbers in data. Their unit is never guessed: an option must give it.

use crate::shell::{Outcome, Shell};

const DATES: &str = "input d: date; output y = date.year(d); output z = d";
const MOMENTS: &str = "input t: timestamp; output z = t";

fn refused(outcome: &Outcome, place: &str, hint: &str) {
    assert_ne!(outcome.status, Some(0), "{}", outcome.stderr);
    for part in [place, hint] {
        assert!(outcome.stderr.contains(part), "no `{part}` in {}", outcome.stderr);
    }
}

#[test]
fn digits_are_dates_only_by_their_format() {
    let shell = Shell::new()
        .file("d.csv", "d\n19991231\n20260101\n")
        .file("d.jsonl", "{\"d\": \"19991231\"}\n{\"d\": 20260101}\n")
        .file("list.jsonl", "{\"d\": [20260101, \"20260102\", null], \"m\": {\"20260103\": 1}}\n");
    let made = "y,z\n1999,1999-12-31\n2026,2026-01-01\n";
    let format = ["--date-format", "%Y%m%d"];
    for file in ["d.csv", "d.jsonl"] {
        let outcome = shell.run(&["eval", "-e", DATES, file]);
        refused(&outcome, "column `d`: expected date, found", "use `--date-format %Y%m%d` if the digits");
        assert_eq!(shell.stdout(&["eval", "-e", DATES, file, format[0], format[1]]), made, "{file}");
    }
    refused(&shell.run(&["eval", "-e", DATES, "-s", "d=20260101"]), "`-s d=20260101`", "use `--date-format %Y%m%d` if");
    let outcome = shell.run(&["eval", "-e", DATES, "-s", "d=20260101"]);
    refused(&outcome, "the input `d` is date, found i64; write `2026-01-01`", "");
    let outcome = shell.run(&["eval", "-e", "date.year(date\"20260101\")"]);
    refused(&outcome, "error[literal]: `20260101` is not a valid date", "help: write `date\"2026-01-01\"`");
    for (set, made) in [("d=-0044-03-15", "y,z\n-44,-0044-03-15\n"), ("d=+12345-01-01", "y,z\n12345,+12345-01-01\n")] {
        assert_eq!(shell.stdout(&["eval", "-e", DATES, "-s", set]), made);
    }
    let one = "y,z\n2026,2026-01-01\n";
    // `-s` takes the usual form too.
    for d in ["d=20260101", "d=2026-01-01", "d=date\"2026-01-01\""] {
        assert_eq!(shell.stdout(&["eval", "-e", DATES, "-s", d, format[0], format[1]]), one, "{d}");
    }
    let lists = "input d: [date?]; input m: dict[date, f64]
        output a = d; output b = lookup(date\"2026-01-03\", m)";
    let lists = ["eval", "-e", lists, "list.jsonl", "--format", "jsonl"];
    refused(&shell.run(&lists), "column `d.0`: expected date?, found `20260101`", "use `--date-format %Y%m%d` if");
    let read = shell.stdout(&[&lists[..], &format].concat());
    assert_eq!(read, "{\"a\":[\"2026-01-01\",\"2026-01-02\",null],\"b\":1.0}\n");
}

#[test]
fn numbers_are_timestamps_only_by_their_unit() {
    let shell = Shell::new()
        .file("t.csv", "t\n1505154600\n-1\n2026-01-01T00:00:00Z\n")
        .file("t.jsonl", "{\"t\": 1505154600}\n{\"t\": \"-1\"}\n{\"t\": \"2026-01-01T00:00:00Z\"}\n")
        .file("ns.csv", "t\n1772000000000000000\n");
    let made = "z\n2017-09-11T18:30:00Z\n1969-12-31T23:59:59Z\n2026-01-01T00:00:00Z\n";
    for file in ["t.csv", "t.jsonl"] {
        let outcome = shell.run(&["eval", "-e", MOMENTS, file]);
        refused(&outcome, "column `t`: expected timestamp, found `1505154600`", "use `--timestamp-unit s` for seconds");
        assert!(outcome.stderr.contains("`timestamp.from_unix(n, \"s\")`"), "{}", outcome.stderr);
        assert_eq!(shell.stdout(&["eval", "-e", MOMENTS, file, "--timestamp-unit", "s"]), made, "{file}");
    }
    for (unit, t) in
        [("s", "1505154600"), ("ms", "1505154600000"), ("us", "1505154600000000"), ("ns", "1505154600000000999")]
    {
        let set = format!("t={t}");
        let read = shell.stdout(&["eval", "-e", MOMENTS, "-s", &set, "--timestamp-unit", unit]);
        assert_eq!(read, "z\n2017-09-11T18:30:00Z\n", "{unit}");
        refused(&shell.run(&["eval", "-e", MOMENTS, "-s", &set]), "the input `t` is timestamp", "`--timestamp-unit s`");
        let model = format!("input n: i64; timestamp.from_unix(n, \"{unit}\")");
        let read = shell.stdout(&["eval", "-e", &model, "-s", &format!("n={t}")]);
        assert_eq!(read, "result\n2017-09-11T18:30:00Z\n", "{unit}");
    }
    // Nanoseconds read as microseconds would be in the year 58136.
    let outcome = shell.run(&["eval", "-e", MOMENTS, "ns.csv", "--timestamp-unit", "us"]);
    refused(&outcome, "found `1772000000000000000`", "outside of the years 1 to 9999");
    let outcome = shell.run(&["eval", "-e", "input d: duration; d", "-s", "d=90"]);
    refused(&outcome, "the input `d` is duration", "`n * 1s`");
    let outcome = shell.run(&["eval", "-e", "input n: i64; to_timestamp(n)", "-s", "n=1"]);
    refused(&outcome, "core.to_timestamp does not take i64", "`timestamp.from_unix(n, \"s\")`");
}

#[test]
fn integers_of_parquet_and_arrow_are_dates_only_where_that_is_said() {
    let shell = Shell::new().file("r.csv", "d,u,t,n\n20260101,20260102,1505154600000,1\n,20260199,-1,2\n");
    for data in ["r.arrow", "r.parquet"] {
        let types = "d=i32?,u=u64,t=i64,n=i64";
        shell.stdout(&["eval", "-e", "output one = 1", "r.csv", "--keep-all", "--types", types, "-o", data]);
    }
    for data in ["r.arrow", "r.parquet"] {
        let model = "input d: date?; input t: timestamp; output a = d; output b = t";
        let run = ["eval", "-e", model, data];
        let outcome = shell.run(&run);
        refused(
            &outcome,
            "column `d`: expected date?, found a column of Int32",
            "use `--date-format %Y%m%d` if the digits",
        );
        let options = ["--date-format", "%Y%m%d", "--timestamp-unit", "ms"];
        let read = shell.stdout(&[&run[..], &options].concat());
        assert_eq!(read, "a,b\n2026-01-01,2017-09-11T18:30:00Z\n,1969-12-31T23:59:59.999Z\n", "{data}");
        let outcome = shell.run(&[&["eval", "-e", "input u: date; u", data], &options[..2]].concat());
        refused(&outcome, "column `u`: in row 2, expected date, found `20260199`", "as in `--date-format`");
        let outcome = shell.run(&[&["eval", "-e", "input n: duration; n", data], &options[..]].concat());
        refused(&outcome, "column `n`: expected duration, found a column of Int64", "`n * 1s`");
    }
}

#[test]
fn a_table_has_no_numbers_for_dates() {
    let model = "table rates: ranges of date -> f64 = \"rates.csv\"\ninput d: date\noutput rate = lookup(d, rates)\n";
    let shell = Shell::new()
        .file("r.cem", model)
        .file("rates.csv", "from,rate\n20250101,1\n20260101,2\n")
        .file("v.cem", "table t: text -> timestamp = \"v.csv\"\ninput k: text\noutput v = lookup(k, t)\n")
        .file("v.csv", "k,v\na,1505154600\n");
    let outcome = shell.run(&["eval", "r.cem", "-s", "d=2026-02-01"]);
    refused(&outcome, "rates.csv:2", "`20250101` is not a valid date; write it as `2026-01-31`");
    let outcome = shell.run(&["check", "v.cem"]);
    refused(&outcome, "v.csv:2", "`1505154600` is not a valid timestamp; write it as `2026-01-31T10:15:00Z`");
    let shell = shell.file("rates.csv", "from,rate\n-0044-03-15,0\n2025-01-01,1\n2026-01-01,2\n+12345-01-01,3\n");
    for (day, rate) in [("-0044-03-14", "\"\""), ("-0044-03-15", "0"), ("+12344-12-31", "2"), ("+12345-01-01", "3")] {
        let set = format!("d={day}");
        assert_eq!(shell.stdout(&["eval", "r.cem", "-s", &set]), format!("rate\n{rate}\n"), "{day}");
    }
    assert_eq!(shell.stdout(&["eval", "r.cem", "-s", "d=2026-02-01"]), "rate\n2\n");
}
