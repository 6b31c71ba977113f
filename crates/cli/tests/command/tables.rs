//! Tests of `cembra eval` on tables: conversions between the formats of files, columns that are copied to the results, rows that fail, threads.

use super::shell::{Shell, repository, snapshot};
use std::fs;

/// A table with values of all kinds.
const TABLE: &str = "\
id,code,x,flag,day,moment,name
9007199254740993,007,1.5,true,2026-11-20,2026-11-20T10:15:00.5Z,\"a, \"\"b\"\"\"
-1,008,-0.1,false,1969-12-31,1969-12-31T23:59:59Z,é
3,009,,,,,
4,010,1e300,true,0001-01-01,2000-01-01T00:00:00Z,\"two
lines\"
";

#[test]
fn a_table_goes_through_all_forms_and_comes_back() {
    let shell = Shell::new().file("a.csv", TABLE);
    let expected = TABLE.replace("id,code,x,flag,day,moment,name", "id,code,x,flag,day,moment,name,y");
    let tail = ["\"a, \"\"b\"\"\"\n", "é\n", "3,009,,,,,\n", "lines\"\n"];
    let doubled = ["3", "-0.2", "", "2e300"];
    let expected = tail
        .iter()
        .zip(doubled)
        .fold(expected, |text, (tail, y)| text.replace(tail, &format!("{},{y}\n", tail.trim_end_matches('\n'))));
    let mut last = "a.csv".to_owned();
    for (step, ending) in
        ["parquet", "arrow", "jsonl", "parquet", "json", "arrow", "tsv", "csv"].into_iter().enumerate()
    {
        let next = format!("{step}.{ending}");
        let args = ["eval", "-e", "input x: f64?; output y = x * 2", &last, "--keep-all", "-o", &next];
        assert_eq!(shell.stdout(&args), "", "{next}");
        last = next;
    }
    assert_eq!(shell.read(&last), expected);
    // From CSV to CSV nothing is touched.
    let args = ["eval", "-e", "input x: f64?; output y = x * 2", "a.csv", "--keep-all"];
    assert_eq!(shell.stdout(&args), expected);
}

/// Options change the spelling of values in CSV: numbers with a decimal comma, formats of dates and times, a time zone. A local time that the clocks
/// of the zone skip is an error of its row.
#[test]
fn values_of_csv_may_be_spelled_otherwise() {
    let bills = "nr;amount;day;moment;count\n1;1234,50;31.12.2025;31.12.2025 23:30;3\n2;-,5e1;1.2.2026;01.07.2026 12:00;4,0\n3;;;;\n4;1;01.01.2026;29.03.2026 02:30;5\n";
    let shell = Shell::new().file("bills.csv", bills).file("dots.csv", "amount;day\n1.5;2026-01-01\n");
    let spelled = ["--decimal", ",", "--date-format", "%d.%m.%Y", "--timestamp-format", "%d.%m.%Y %H:%M"];
    let model = "output twice = amount * 2; output next = day + 1; output at = moment; output n = count + 1";
    let typed = format!("input amount: f64?; input day: date?; input moment: timestamp?; input count: i32?; {model}");
    let run =
        |model: &str, more: &[&str]| shell.run(&[&["eval", "-e", model, "bills.csv"], &spelled[..], more].concat());
    let outcome = run(&typed, &["--time-zone", "Europe/Zurich", "--on-error", "missing", "--keep", "nr"]);
    let expected = "nr,twice,next,at,n\n1,2469,2026-01-01,2025-12-31T22:30:00Z,4\n2,-10,2026-02-02,2026-07-01T10:00:00Z,5\n3,,,,\n4,,,,\n";
    assert_eq!(outcome.stdout, expected, "{outcome}");
    assert!(outcome.stderr.contains("expected timestamp?, found `29.03.2026 02:30`"), "{outcome}");
    // Types are found by the same forms; without a zone clocks are those of UTC.
    let found = run(model, &["--limit", "1"]);
    assert_eq!(found.stdout, "twice,next,at,n\n2469,2026-01-01,2025-12-31T23:30:00Z,4\n", "{found}");
    // What is spelled as usual is no value then.
    let usual = shell.run(&["eval", "-e", "input amount: f64; amount", "dots.csv", "--decimal", ","]);
    assert!(usual.stderr.contains("with `--decimal ,` a number must not have a point"), "{usual}");
    let usual = shell.run(&["eval", "-e", "input day: date; day", "dots.csv", "--date-format", "%d.%m.%Y"]);
    assert!(usual.stderr.contains("write the date as in `--date-format`"), "{usual}");
    // Each option is advised where it is missing.
    for (input, advised) in [
        ("amount: f64", "`--decimal ,`"),
        ("day: date", "`--date-format %d.%m.%Y`"),
        ("moment: timestamp", "`--timestamp-format '%d.%m.%Y %H:%M'`"),
    ] {
        let (name, _) = input.split_once(':').expect("a type");
        let refused = shell.run(&["eval", "-e", &format!("input {input}; {name}"), "bills.csv"]);
        assert!(refused.stderr.contains(advised), "{refused}");
    }
    let zoned = Shell::new().file("t.csv", "t\n2026-07-01 12:00:00\n2026-07-01 12:00:00+05:30\n");
    let refused = zoned.run(&["eval", "-e", "input t: timestamp; t", "t.csv"]);
    assert!(refused.stderr.contains("use `--time-zone UTC`, or another one"), "{refused}");
    let read = zoned.stdout(&["eval", "-e", "t", "t.csv", "--time-zone", "America/New_York"]);
    assert_eq!(read, "result\n2026-07-01T16:00:00Z\n2026-07-01T06:30:00Z\n");
    // JSON has the same offsets and blanks.
    let rows = Shell::new().file("t.jsonl", "{\"t\": \"2026-07-01 12:00:00+05:30\"}\n");
    let read = rows.stdout(&["eval", "-e", "input t: timestamp; t", "t.jsonl", "--format", "csv"]);
    assert_eq!(read, "result\n2026-07-01T06:30:00Z\n");
    for (option, wrong, said) in [
        ("--date-format", "%d.%m", "the format must have the year"),
        ("--timestamp-format", "%Y %Q", "`%Q`, which is not a part of a timestamp"),
        ("--time-zone", "Europe/Zuerich", "did you mean `Europe/Zurich`?"),
    ] {
        let refused = zoned.run(&["eval", "-e", "t", "t.csv", option, wrong]);
        assert!(refused.stderr.contains(said), "{refused}");
    }
}

#[test]
fn parquet_and_arrow_are_known_by_their_first_bytes_and_read_from_pipes() {
    let shell = Shell::new().file("a.csv", TABLE);
    for ending in ["parquet", "arrow"] {
        let file = format!("a.{ending}");
        let args = ["eval", "-e", "input id: i64; output z = id", "a.csv", "--keep", "x", "-o", &file];
        assert_eq!(shell.stdout(&args), "");
        fs::copy(shell.path(&file), shell.path("unnamed")).expect("copied");
        let expected = "x,big\n1.5,9007199254740994\n-0.1,0\n,4\n1e300,5\n";
        let model = "output big = z + 1i64";
        assert_eq!(shell.stdout(&["eval", "-e", model, "unnamed", "--keep", "x"]), expected, "{ending}");
        let mut command = shell.command(&["eval", "-e", model, "-", "--keep", "x"]);
        command.stdin(fs::File::open(shell.path(&file)).expect("the file is there"));
        let outcome = command.output().expect("the binary runs");
        assert_eq!(String::from_utf8_lossy(&outcome.stdout), expected, "{ending}");
    }
    // Whole numbers of a float column may be integers, others may not.
    let whole = shell.run(&["eval", "-e", "input z: i32?; z", "a.parquet"]);
    assert!(whole.stderr.contains("column `z`: in row 1, expected i32?, found `9007199254740993`"), "{whole}");
    let fraction = shell.run(&["eval", "-e", "input x: i64?; x", "a.parquet"]);
    assert!(fraction.stderr.contains("column `x`: in row 1, expected i64?, found `1.5`"), "{fraction}");
    let missing = shell.run(&["eval", "-e", "input x: f64; x", "a.arrow"]);
    assert!(missing.stderr.contains("in row 3, expected f64, found a missing value"), "{missing}");
    assert_eq!(missing.stdout, "result\n1.5\n-0.1\n");
    let text = shell.run(&["eval", "-e", "input x: text; x", "a.arrow"]);
    assert!(text.stderr.contains("column `x`: expected text, found a column of Float64"), "{text}");
    let absent = shell.run(&["eval", "-e", "zz", "a.parquet"]);
    assert!(
        absent.stderr.contains("no column `zz`; did you mean") || absent.stderr.contains("no column `zz`"),
        "{absent}"
    );
}

#[test]
fn tuples_are_structs_and_come_back() {
    let shell = Shell::new().file("a.csv", "p.x,p.y,q.0,q.1\n1,a,true,2026-11-20\n2,,false,\n");
    let model = "input p: {x: i32, y: text?}; input q: (bool, date?); output \"p\" = p; output \"q\" = q";
    for file in ["a.parquet", "a.arrow"] {
        assert_eq!(shell.stdout(&["eval", "-e", model, "a.csv", "-o", file]), "");
        assert_eq!(shell.stdout(&["eval", "-e", model, file]), shell.read("a.csv"), "{file}");
        assert_eq!(
            shell.stdout(&["eval", "-e", "input p: {y: text?, x: i64?}; p.x + 1i64", file]),
            "result\n2\n3\n",
            "{file}"
        );
    }
}

/// A request as a service receives it: an optional customer, a list of items, a dictionary. It is converted between JSON, Parquet and Arrow.
#[test]
fn structs_lists_and_dictionaries_go_through_files() {
    let orders = "{\"id\":1,\"customer\":{\"name\":\"Ann\",\"age\":40},\"items\":[{\"price\":1.5,\"kind\":\"a\"},{\"price\":2.0,\"kind\":null}],\"rates\":{\"a\":2}}\n\
        {\"id\":2,\"customer\":null,\"items\":[],\"rates\":{}}\n\
        {\"id\":3,\"customer\":{\"name\":\"Bob\",\"age\":null},\"items\":[{\"price\":3.5,\"kind\":\"b\"}],\"rates\":{\"b\":3,\"a\":null}}\n";
    let types = "input customer: {name: text, age: i32?}?, items: [{price: f64, kind: text?}]\n";
    let total = "input rates: dict[text, f64]\nlet each = map(fn(i) = i.price, items)\noutput total = sum(each * (dict.get(rates, items.kind) ?? 1.0))\n";
    let model = format!(
        "{types}{total}output who = customer.name ?? \"nobody\"\noutput c = customer\noutput dear = items[items.price > 1.5]\n"
    );
    let shell = Shell::new().file("orders.jsonl", orders).file("orders.cem", &model);
    let expected = "{\"total\":5.0,\"who\":\"Ann\",\"c\":{\"name\":\"Ann\",\"age\":40},\"dear\":[{\"price\":2.0,\"kind\":null}]}\n\
        {\"total\":0.0,\"who\":\"nobody\",\"c\":null,\"dear\":[]}\n\
        {\"total\":10.5,\"who\":\"Bob\",\"c\":{\"name\":\"Bob\",\"age\":null},\"dear\":[{\"price\":3.5,\"kind\":\"b\"}]}\n";
    for backend in ["native", "interp", "tiered"] {
        let args = ["eval", "orders.cem", "orders.jsonl", "--format", "jsonl", "--backend", backend];
        assert_eq!(shell.stdout(&args), expected, "{backend}");
    }
    let again = "input c: {name: text, age: i32?}?, dear: [{price: f64, kind: text?}]\noutput n = c.age\noutput s = sum(dear.price)\noutput \"c\" = c\noutput \"dear\" = dear\n";
    for file in ["a.parquet", "a.arrow", "a.jsonl"] {
        assert_eq!(shell.stdout(&["eval", "orders.cem", "orders.jsonl", "-o", file]), "", "{file}");
        let found = shell.stdout(&["eval", "-e", again, file, "--format", "jsonl"]);
        let first = "{\"n\":40,\"s\":2.0,\"c\":{\"name\":\"Ann\",\"age\":40},\"dear\":[{\"price\":2.0,\"kind\":null}]}\n\
            {\"n\":null,\"s\":0.0,\"c\":null,\"dear\":[]}\n";
        assert!(found.starts_with(first), "{file}: {found}");
        // Undeclared, they are of the types that the data have.
        let inferred = "output n = L.c.age\noutput who = L.c.name\noutput p = sum(L.dear.price)";
        assert_eq!(
            shell.stdout(&["eval", "-e", inferred, file, "--format", "jsonl"]),
            "{\"n\":40,\"who\":\"Ann\",\"p\":2.0}\n{\"n\":null,\"who\":null,\"p\":0.0}\n{\"n\":null,\"who\":\"Bob\",\"p\":3.5}\n",
            "{file}"
        );
    }
    let csv = shell.stdout(&["eval", "orders.cem", "orders.jsonl"]);
    assert!(
        csv.starts_with(
            "total,who,c.name,c.age,dear\n5,Ann,Ann,40,\"[{\"\"price\"\":2.0,\"\"kind\"\":null}]\"\n0,nobody,,,[]\n"
        ),
        "{csv}"
    );
    // A row without a price is reported; with `--on-error missing` the other rows keep their values.
    let bad = orders.replace("{\"price\":3.5,", "{");
    let shell = shell.file("bad.jsonl", &bad);
    let failed = shell.run(&["eval", "orders.cem", "bad.jsonl", "--on-error", "missing", "--format", "jsonl"]);
    assert!(failed.stderr.contains("bad.jsonl:3"), "{failed}");
    assert!(failed.stdout.starts_with(&expected[..expected.find("{\"total\":10.5").unwrap_or(0)]), "{failed}");
    assert!(failed.stdout.ends_with("{\"total\":null,\"who\":null,\"c\":null,\"dear\":null}\n"), "{failed}");
}

/// Enough rows for an evaluation on columns, and the same rows evaluated one by one. Structs are split into columns, and the nulls of structs with
/// them.
#[test]
fn many_structs_and_lists_go_through_as_columns() {
    let mut random = fastrand::Rng::with_seed(9);
    let mut orders = String::new();
    for row in 0..900 {
        let items: Vec<String> = (0..random.usize(0..5))
            .map(|_| {
                let kind = ["\"a\"", "\"a kind of a longer name\"", "null"][random.usize(..3)];
                format!("{{\"at\":{{\"price\":{}.5,\"count\":{}}},\"kind\":{kind}}}", random.u32(..90), random.u32(..9))
            })
            .collect();
        let customer = ["null", "{\"name\":\"Ann\",\"age\":40}", "{\"name\":\"Bob of a longer name\",\"age\":null}"];
        let customer = customer[random.usize(..3)];
        orders += &format!("{{\"p\":{{\"id\":{row}}},\"customer\":{customer},\"items\":[{}]}}\n", items.join(","));
    }
    let types = "input p: {id: i64}, customer: {name: text, age: i32?}?\n\
        input items: [{at: {price: f64, count: i64}, kind: text?}]\n";
    let carried = format!("{types}output \"p\" = p\noutput \"customer\" = customer\noutput \"items\" = items\n");
    let model = format!(
        "{types}output total = sum(map(fn(i) = i.at.price * i.at.count, items))\n\
         output kinds = items.kind & (items.at.price > 20.0)\n\
         output who = customer.name ?? \"nobody\"\n\
         output old = customer.age > 30 and p.id % 2 == 0\n\
         output each = 100 // p.id + array.count(items.at.count)\n"
    );
    let shell = Shell::new().file("orders.jsonl", &orders).file("orders.cem", &model).file("carried.cem", &carried);
    let args = |file, backend, threads| {
        let tail = ["--backend", backend, "--threads", threads, "--on-error", "missing", "--format", "jsonl"];
        [&["eval", "orders.cem", file][..], &tail].concat()
    };
    let expected = shell.run(&args("orders.jsonl", "interp", "1")).stdout;
    assert_eq!(expected.lines().count(), 900, "{expected}");
    // The first row fails, and no other one.
    assert_eq!(expected.matches("\"total\":null").count(), 1, "{expected}");
    for file in ["orders.jsonl", "a.parquet", "a.arrow"] {
        if file != "orders.jsonl" {
            assert_eq!(shell.stdout(&["eval", "carried.cem", "orders.jsonl", "-o", file]), "", "{file}");
        }
        for threads in ["1", "2"] {
            assert_eq!(shell.run(&args(file, "native", threads)).stdout, expected, "{file}, {threads}");
        }
    }
}

#[test]
fn columns_carried_through_stand_first_and_give_way_to_outputs() {
    let shell = Shell::new().file("rows.csv", "id;x;name\n007;1;a\n008;2.50;\"b;c\"\n");
    let run = |more: &[&str]| {
        let args: Vec<&str> =
            ["eval", "-e", "input x: f64; output y = x * 2", "rows.csv"].iter().chain(more).copied().collect();
        shell.stdout(&args)
    };
    assert_eq!(run(&["--keep", "name,id"]), "name,id,y\na,007,2\nb;c,008,5\n");
    assert_eq!(run(&["--keep-all"]), "id,x,name,y\n007,1,a,2\n008,2.50,b;c,5\n");
    assert_eq!(run(&["--keep", "x", "--keep-inputs"]), "x,y\n1,2\n2.50,5\n");
    assert_eq!(run(&["--keep", "id", "--keep-inputs"]), "id,x,y\n007,1,2\n008,2.5,5\n");
    assert_eq!(run(&["--keep", "id", "--format", "jsonl"]), "{\"id\":\"007\",\"y\":2.0}\n{\"id\":\"008\",\"y\":5.0}\n");
    let outputs = ["eval", "-e", "input x: f64; output id = x; output z = x", "rows.csv", "--keep-all"];
    assert_eq!(shell.stdout(&outputs), "x,name,id,z\n1,a,1,1\n2.50,b;c,2.5,2.5\n");
    let absent = shell.run(&["eval", "-e", "input x: f64; x", "rows.csv", "--keep", "nam"]);
    assert!(absent.stderr.contains("no column `nam`") && absent.stderr.contains("did you mean `name`?"), "{absent}");
    assert_eq!(shell.run(&["eval", "-e", "x", "rows.csv", "--keep", "id,id"]).status, Some(2));
    // In other forms they have types: those of the first rows, or of the command line.
    let late = Shell::new().file("rows.csv", format!("x,n\n{}2,b\n", "1,7\n".repeat(1_000)));
    let typed = |more: &[&str]| {
        let args: Vec<&str> =
            ["eval", "-e", "input x: i32; x", "rows.csv", "--format", "jsonl", "--keep", "n"].to_vec();
        late.run(&args.iter().chain(more).copied().collect::<Vec<_>>())
    };
    let misfit = typed(&[]);
    let said = "column `n`: expected i64?, found `b`\n--> rows.csv:1002\n";
    assert!(misfit.stderr.contains(said) && misfit.stderr.contains("`--types n=text?`"), "{misfit}");
    let text = typed(&["--types", "n=text"]);
    assert!(text.status == Some(0) && text.stdout.ends_with("{\"n\":\"b\",\"result\":2}\n"), "{text}");
    assert_eq!(late.run(&["eval", "-e", "input x: i32; x", "rows.csv", "--types", "n=text"]).status, Some(2));
}

#[test]
fn masks_are_truth_values_in_files() {
    let shell = Shell::new().file("rows.csv", "x\n1\n-1\n\n".replace("\n\n", "\n\"\"\n"));
    for file in ["m.parquet", "m.arrow"] {
        let made = ["eval", "-e", "input x: i32?; output m = x > 0; output b = (x ?? 0) == 1", "rows.csv", "-o", file];
        assert_eq!(shell.stdout(&made), "");
        let back = ["eval", "-e", "input m: unit?; output y = if m then 1 else 2; output \"m\" = m", file];
        assert_eq!(shell.stdout(&back), "y,m\n1,true\n2,\n2,\n", "{file}");
        assert_eq!(shell.stdout(&["eval", "-e", "m", file]), "result\ntrue\n\"\"\n\"\"\n", "{file}");
    }
}

#[test]
fn rows_that_fail_end_the_run_or_are_missing_or_are_left_out() {
    let rows = "id,x\na,4\nb,0\nc,zero\nd\ne,2\n\nf,0\n";
    let shell = Shell::new().file("rows.csv", rows).file("model.cem", "input x: i32; output y = 8 // x");
    let run = |more: &[&str]| {
        let args: Vec<&str> = ["eval", "model.cem", "rows.csv"].iter().chain(more).copied().collect();
        shell.run(&args)
    };
    let fails = run(&["--keep", "id"]);
    assert_eq!((fails.status, fails.stdout.as_str()), (Some(1), "id,y\na,2\n"));
    for threads in ["1", "3"] {
        let missing = run(&["--keep", "id", "--on-error", "missing", "--errors", "errors.csv", "--threads", threads]);
        assert_eq!(
            (missing.status, missing.stdout.as_str()),
            (Some(0), "id,y\na,2\nb,\nc,\nd,\ne,4\nf,\n"),
            "{missing}"
        );
        let note = "note: 4 of 6 rows failed; the first is rows.csv:3: math.floor_divide: division by zero\n";
        assert!(missing.stderr.starts_with("note: 4 of 6 rows failed; the first is rows.csv:3: "), "{missing} {note}");
        let errors = shell.read("errors.csv");
        let lines: Vec<&str> = errors.lines().collect();
        assert_eq!(lines.len(), 5, "{errors}");
        // The columns that are kept stand behind what is wrong.
        assert_eq!(lines[0], "file,line,row,column,code,message,id");
        assert!(
            lines[1].starts_with("rows.csv,3,2,,div-by-zero,") && lines[1].contains("division by zero"),
            "{errors}"
        );
        assert!(lines[1].ends_with(",b") && lines[4].ends_with(",f"), "{errors}");
        assert_eq!(lines[2], "rows.csv,4,3,x,column-type,\"expected i32, found `zero`\",c");
        assert_eq!(lines[3], "rows.csv,5,4,,unreadable,\"expected 2 fields, one for each column, found 1\",d");
        assert!(lines[4].starts_with("rows.csv,8,6,,div-by-zero,"), "{errors}");
        let skipped = run(&["--keep", "id", "--on-error", "skip", "--threads", threads]);
        assert_eq!(skipped.stdout, "id,y\na,2\ne,4\n", "{skipped}");
    }
    // A file is whole or not there.
    fs::remove_file(shell.path("errors.csv")).expect("it was there");
    let last = Shell::new().file("rows.csv", "x\n1\n2\n0\n").file("model.cem", "input x: i32; output y = 8 // x");
    for ending in ["csv", "jsonl", "parquet", "arrow"] {
        let file = format!("out.{ending}");
        let args = ["eval", "model.cem", "rows.csv", "-o", &file];
        assert_eq!(last.run(&args).status, Some(1));
        assert_eq!(fs::read_dir(last.path(".")).expect("the folder").count(), 2, "{ending}");
    }
}

#[test]
fn a_row_that_fails_is_told_whatever_the_form_of_the_data() {
    let shell = Shell::new().file("rows.csv", "id,x\n1,4\n2,0\n");
    let model = "input x: i32; output y = 8 // x";
    let parquet = ["eval", "-e", "input x: i32; output \"x\" = x", "rows.csv", "-o", "rows.parquet"];
    assert_eq!(shell.stdout(&parquet), "");
    snapshot!("fault_in_parquet", shell.run(&["eval", "-e", model, "rows.parquet"]));
    let broken = Shell::new().file("rows.parquet", "x\n1\n").file("rows.arrow", "x\n1\n");
    snapshot!("no_parquet", broken.run(&["eval", "-e", "x", "rows.parquet"]));
    let arrow = broken.run(&["eval", "-e", "x", "rows.arrow"]);
    assert!(arrow.status == Some(1) && arrow.stderr.starts_with("error[unreadable]: not Arrow: "), "{arrow}");
}

#[test]
fn threads_and_batches_change_no_result() {
    let rows: String = (0..9_000).map(|row| format!("{row},{},\"t{row}\n\"\n", f64::from(row) / 7.0)).collect();
    let shell = Shell::new().file("rows.csv", format!("id,x,t\n{rows}"));
    let run = |more: &[&str]| {
        let args: Vec<&str> = ["eval", "-e", "output y = x * 2; output i = id + 1i64", "rows.csv", "--keep", "t"]
            .iter()
            .chain(more)
            .copied()
            .collect();
        shell.stdout(&args)
    };
    let expected = run(&["--threads", "1"]);
    assert_eq!(expected.lines().count(), 18_001);
    assert!(expected.ends_with("\"t8999\n\",2571.1428571428573,9000\n"), "{}", &expected[expected.len() - 60..]);
    for threads in ["2", "5"] {
        for batch_rows in ["1", "4096", "1000000"] {
            assert!(run(&["--threads", threads, "--batch-rows", batch_rows]) == expected, "{threads} {batch_rows}");
        }
    }
    // More threads than there can be are as many as there may be.
    assert!(run(&["--threads", "4611686018427387904"]) == expected);
    // Objects too, which are read and written on the threads that compute, and the frame of an array.
    let form = |shell: &Shell, data: &str, format: &str, threads: &str| {
        let model = "output y = x * 2; output i = id + 1i64";
        shell.stdout(&["eval", "-e", model, data, "--keep-all", "--format", format, "--threads", threads])
    };
    let lines = form(&shell, "rows.csv", "jsonl", "1");
    let last = r#"{"id":8999,"x":1285.5714285714287,"t":"t8999\n","y":2571.1428571428573,"i":9000}"#;
    assert_eq!(lines.lines().last(), Some(last));
    let array = format!("[\n{}\n]\n", lines.trim_end().replace('\n', ",\n"));
    let shell =
        Shell::new().file("rows.jsonl", &lines).file("rows.json", &array).file("rows.csv", format!("id,x,t\n{rows}"));
    for threads in ["1", "2", "5"] {
        for data in ["rows.csv", "rows.jsonl", "rows.json"] {
            assert!(form(&shell, data, "jsonl", threads) == lines, "{data} {threads}");
            assert!(form(&shell, data, "json", threads) == array, "{data} {threads}");
        }
    }
    assert_eq!(run(&["--limit", "7"]).lines().count(), 15);
    assert!(expected.starts_with(&run(&["--limit", "6000", "--batch-rows", "1"])));
    assert_eq!(run(&["--limit", "0"]), "t,y,i\n");
    // With a limit, what comes behind it does not matter.
    let broken = Shell::new().file("rows.csv", "x,y\n1,2\n3\n");
    assert_eq!(broken.stdout(&["eval", "-e", "input x: i32; x", "rows.csv", "--limit", "1"]), "result\n1\n");
}

#[test]
fn the_chapter_of_tables_is_what_happens() {
    let page = fs::read_to_string(repository("docs/tables.md")).expect("the page is there");
    let commands: Vec<&str> = page.lines().filter_map(|line| line.strip_prefix("    cembra ")).collect();
    let shell = Shell::new();
    let mut said = Vec::new();
    for command in commands {
        // The commands quote nothing but whole arguments, and only models.
        let (front, back) = command.split_once(" '").map_or((command, None), |(front, back)| (front, Some(back)));
        let mut args: Vec<String> = front.split(' ').map(str::to_owned).collect();
        if let Some((model, rest)) = back.and_then(|back| back.split_once("' ")) {
            args.push(model.to_owned());
            args.extend(rest.split(' ').map(str::to_owned));
        }
        let examples = |arg: &String| match arg.strip_prefix("docs/") {
            Some(path) => repository("docs").join(path).to_string_lossy().into_owned(),
            None => arg.clone(),
        };
        let args: Vec<String> = args.iter().map(examples).collect();
        said.push(shell.run(&args.iter().map(String::as_str).collect::<Vec<_>>()));
    }
    assert_eq!(said.len(), 2);
    assert_eq!((said[0].status, said[0].stdout.as_str()), (Some(0), ""));
    assert!(said[0].stderr.starts_with("note: 1 of 4 rows failed; the first is "), "{}", said[0]);
    assert!(said[0].stderr.contains("orders.csv:4: ") && said[0].stderr.contains("an order of nothing"), "{}", said[0]);
    assert_eq!(
        said[1].stdout,
        "id,customer,total,days,each,large\n\
         9007199254740993,01234,59.699999999999996,3,19.9,\n\
         9007199254740994,00007,225,,225,true\n\
         9007199254740996,00815; Köln,8.91,6,0.7425,\n"
    );
}

/// An absent column is missing in all rows if its input is optional, as an absent key of JSON is; but it is an error if a column has a similar name.
#[test]
fn an_optional_input_may_have_no_column() {
    let shell = Shell::new().file("a.csv", "x,weigth\n1,5\n2,6\n").file("a.jsonl", "{\"x\":1}\n{\"x\":2}\n");
    let model = "input x: f64; input rate: f64?; output y = x * (rate ?? 10.0)";
    for file in ["a.parquet", "a.arrow"] {
        shell.stdout(&["eval", "-e", "output z = x", "a.csv", "--keep-all", "-o", file]);
    }
    for file in ["a.csv", "a.jsonl", "a.parquet", "a.arrow"] {
        assert_eq!(shell.stdout(&["eval", "-e", model, file]), "y\n10\n20\n", "{file}");
    }
    let typo = "input x: f64; input weight: f64?; output y = x * (weight ?? 10.0)";
    for file in ["a.csv", "a.parquet", "a.arrow"] {
        let refused = shell.run(&["eval", "-e", typo, file]);
        assert_eq!((refused.status, refused.stdout.as_str()), (Some(1), ""), "{file}");
        assert!(refused.stderr.contains("no column `weight`\n"), "{refused}");
        assert!(refused.stderr.contains("did you mean `weigth`?"), "{refused}");
    }
    // A column that is another input's is not meant.
    let both = "input weigth: f64; input weight: f64?; output y = weigth * (weight ?? 10.0)";
    assert_eq!(shell.stdout(&["eval", "-e", both, "a.csv"]), "y\n50\n60\n");
    let needed = shell.run(&["eval", "-e", "input rate: f64; output y = rate", "a.csv"]);
    assert!(needed.stderr.contains("no column `rate`"), "{needed}");
}

/// Integers from files with column types keep their width, and narrow ones wrap around. Integers from other files have 64 bits.
#[test]
fn integers_have_the_width_of_their_file() {
    let shell = Shell::new().file("a.csv", "x\n5000\n").file("a.json", "[{\"x\": 5000}]");
    for file in ["a.parquet", "a.arrow"] {
        shell.stdout(&["eval", "-e", "input x: i32; output \"x\" = x", "a.csv", "-o", file]);
    }
    let product = |of: &[&str]| {
        let outcome = shell.run(&[&["eval", "-e"], of].concat());
        outcome.stdout.lines().last().unwrap_or_default().to_owned()
    };
    for file in ["a.csv", "a.json"] {
        assert_eq!(product(&["x * 1000000", file]), "5000000000", "{file}");
    }
    assert_eq!(product(&["x * 1000000", "-s", "x=5000"]), "5000000000");
    for file in ["a.parquet", "a.arrow"] {
        assert_eq!(product(&["x * 1000000", file]), "705032704", "{file}");
        assert_eq!(product(&["input x: i64; x * 1000000", file]), "5000000000", "{file}");
    }
}

#[test]
fn an_input_of_json_is_kept_in_the_type_of_its_data() {
    // A declared type, and that of the data, differ: the name is read twice.
    let shell = Shell::new()
        .file("x.jsonl", "{\"id\": 7, \"x\": 5}\n{\"x\": null, \"id\": 8}\n{\"id\": 9}\n{\"\\u0069d\": 1, \"x\": 6}\n")
        .file("day.jsonl", "{\"day\": \"2026-11-26\", \"x\": 1}\n{\"x\": 2, \"day\": \"2026-11-27\"}\n");
    let model = "input x: i32?; output y = x ?? 0";
    assert_eq!(
        shell.stdout(&["eval", "-e", model, "x.jsonl", "--keep-all", "--format", "jsonl"]),
        "{\"id\":7,\"x\":5,\"y\":5}\n{\"id\":8,\"x\":null,\"y\":0}\n{\"id\":9,\"x\":null,\"y\":0}\n{\"id\":1,\"x\":6,\"y\":6}\n"
    );
    let model = "input day: date; input x: f64; output next = day + 1; output z = x * 2.0";
    assert_eq!(
        shell.stdout(&["eval", "-e", model, "day.jsonl", "--keep", "x,day", "--format", "jsonl"]),
        "{\"x\":1,\"day\":\"2026-11-26\",\"next\":\"2026-11-27\",\"z\":2.0}\n{\"x\":2,\"day\":\"2026-11-27\",\"next\":\"2026-11-28\",\"z\":4.0}\n"
    );
    let model = "input x: i32; output y = 100 // x";
    let found =
        shell.run(&["eval", "-e", model, "x.jsonl", "--keep-all", "--format", "jsonl", "--on-error", "missing"]);
    assert_eq!(
        found.stdout,
        "{\"id\":7,\"x\":5,\"y\":20}\n{\"id\":8,\"x\":null,\"y\":null}\n{\"id\":9,\"x\":null,\"y\":null}\n{\"id\":1,\"x\":6,\"y\":16}\n"
    );
}

#[test]
fn a_note_says_why_rows_go_one_by_one() {
    let shell = Shell::new().file("x.jsonl", "{\"xs\": [1, 2]}\n{\"xs\": [3]}\n");
    let noted = |model: &str| shell.run(&["eval", "-e", model, "x.jsonl", "--verbose"]).stderr;
    let found = noted("input xs: [i64]; xs[0]");
    assert!(
        found.contains(
            "\nnote: rows are evaluated one by one because of array.at: the operator cannot be computed for the arrays of many rows at once\n"
        ),
        "{found}"
    );
    assert!(!noted("input xs: [i64]; sum(xs)").contains("one by one"));
}

#[test]
fn a_row_that_a_kept_column_does_not_take_has_no_part_in_others() {
    // The type of the kept column is found in the first rows, and holds no fraction.
    let rows: String =
        (0..12_000).map(|at| format!("{{\"x\": {at}{}}}\n", if at == 11_000 { ".5" } else { "" })).collect();
    let shell = Shell::new().file("x.jsonl", rows);
    let model = "input x: f64; output y = x + 1.0";
    let found = shell.run(&["eval", "-e", model, "x.jsonl", "--keep", "x", "--on-error", "missing"]).stdout;
    let lines: Vec<&str> = found.lines().collect();
    assert_eq!((lines.len(), lines[0]), (12_001, "x,y"));
    assert_eq!(lines[11_000..11_004], ["10999,11000", ",", "11001,11002", "11002,11003"]);
    assert_eq!(lines[12_000], "11999,12000");
}
