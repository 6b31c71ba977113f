//! Tests of models with several files: the meanings of names, and the errors for files that do not fit together.

use crate::common::{Operators, OperatorsOnNumbers};
use cembra_expr::{Program, Sources, UsedFile, Vocabulary, parse, parse_sources};
use cembra_value::{Error, Limits};
use std::io;
use std::time::Duration;

/// Returns the sources of the model `m`, the first of `files`.
fn gathered(files: &[(&str, &str)], limits: &Limits) -> Sources {
    let find = |name: &str, _: &str| -> io::Result<UsedFile> {
        let found = files.iter().find(|(known, _)| *known == name).ok_or(io::ErrorKind::NotFound)?;
        Ok(UsedFile { name: name.to_owned(), text: found.1.into() })
    };
    Sources::gather("m", files[0].1, limits, &find)
}

fn read(files: &[(&str, &str)]) -> Result<Program, Error> {
    parse_sources(&gathered(files, &Limits::default()), &Operators, &Limits::default())
}

/// Returns the problems of a model, each with its file, the text at its place, and its message.
#[track_caller]
fn problems(files: &[(&str, &str)]) -> Vec<String> {
    let sources = gathered(files, &Limits::default());
    let found = parse_sources(&sources, &Operators, &Limits::default()).expect_err("a problem");
    let problems = found.diagnostics();
    let told = problems.iter().map(|problem| {
        let place = sources.place(problem.span().expect("a place"));
        format!("{} `{}`: {}", place.name, place.span.text(place.text), problem.message())
    });
    told.collect()
}

#[track_caller]
fn same(files: &[(&str, &str)], text: &str) {
    same_with(files, text, &Operators);
}

#[track_caller]
fn same_with(files: &[(&str, &str)], text: &str, vocabulary: &dyn Vocabulary) {
    let limits = Limits::default();
    let alone = parse(text, vocabulary, &limits);
    let made = parse_sources(&gathered(files, &limits), vocabulary, &limits);
    assert_eq!(made.expect("a model"), alone.expect("a model"));
}

#[test]
fn functions_and_constants_are_those_of_the_file() {
    let common = ("common", "let k = 2.5\nfn scaled(x) = x * k\nlet unused = 7");
    same(&[("m", "use \"common\"\ninput x: f64\nscaled(x) + k"), common], "input x: f64; x * 2.5 + 2.5");
    // The last line of a file ends its last statement.
    same(&[("m", "use 'common'; -1"), ("common", "let a = 1")], "-1");
    // It sees nothing of who uses it.
    assert_eq!(
        problems(&[("m", "let k = 1; use \"f\"; f(1)"), ("f", "fn f(x) = x * k")]),
        ["f `k`: `k` is not defined in this file"]
    );
    // Words are words where they stand only.
    same(&[("m", "use \"common\"\nlet use = k\nuse + use"), common], "let use = 2.5; use + use");
}

#[test]
fn a_function_keeps_the_rule_of_the_file_that_defines_it() {
    let narrow = ("narrow", "numbers f32\nfn half(x) = x / 2\nlet k = 0.5");
    let wide = ("wide", "numbers f64\nfn third(x) = x / 3\nlet l = 0.25");
    let used = "use \"narrow\"\nuse \"wide\"\ninput i: i32\noutput a = third(i)\noutput b = half(i)\n";
    for (head, own) in [
        ("", "(0.5, 0.25f64, core._wide(i) / 7.0f64, 0.1)"),
        ("numbers f64\n", "(0.5, 0.25f64, core._wide(i) / 7.0f64, 0.1f64)"),
        ("numbers f32\n", "(0.5, 0.25f64, i / 7, 0.1)"),
    ] {
        same_with(
            &[("m", &format!("{head}{used}output c = (k, l, i / 7, 0.1)")), narrow, wide],
            &format!(
                "numbers f32; input i: i32; output a = core._wide(i) / 3.0f64; output b = i / 2; output c = {own}"
            ),
            &OperatorsOnNumbers,
        );
    }
    let late = "`numbers f64` must stand before all other statements of a file";
    assert_eq!(
        problems(&[("m", "use \"f\"; numbers f64; numbers i32; k"), ("f", "let k = 1; numbers f64")]),
        [
            format!("m `numbers f64`: {late}"),
            "m `numbers i32`: `numbers` must be followed by `f64` or `f32`".to_owned(),
            format!("f `numbers f64`: {late}"),
        ]
    );
}

#[test]
fn a_file_is_read_once_whoever_uses_it() {
    let files = [
        ("m", "use \"a\"\nuse \"b\"\nuse \"base\"\nfa(1) + fb(k)"),
        ("a", "use \"base\"\nfn fa(x) = x + k"),
        ("b", "use \"base\"\nfn fb(x) = x * k"),
        ("base", "let k = 3"),
    ];
    same(&files, "(1 + 3) + 3 * 3");
}

#[test]
fn files_that_do_not_fit_are_told_of_where_they_are() {
    assert_eq!(problems(&[("m", "use \"b\"; 1")]), ["m `\"b\"`: `b` cannot be read: entity not found"]);
    assert_eq!(
        problems(&[("m", "use \"b\"; 1"), ("b", "\n  let x = 1 +\nlet y = 2")]),
        ["b ``: expected a value, found the end of the statement"]
    );
    assert_eq!(
        problems(&[("m", "use \"a\"; 1"), ("a", "use \"b\""), ("b", "use \"c\""), ("c", "use \"a\"")]),
        ["c `\"a\"`: `a`, which uses `b`, which uses `c` uses itself"]
    );
    assert_eq!(problems(&[("m", "use \"a\"; 1"), ("a", "use \"m\"")]), ["a `\"m\"`: `m`, which uses `a` uses itself"]);
    let only = |text| problems(&[("m", "use \"a\"; 1"), ("a", text)]);
    assert_eq!(only("input x: f64"), ["a `input`: a file that another file uses cannot have inputs"]);
    assert_eq!(only("let a = 1; output y = a"), ["a `output`: a file that another file uses cannot have outputs"]);
    assert_eq!(
        only("let a = 1; a + 1"),
        ["a `a`: a file that another file uses cannot have expressions by themselves"]
    );
    let twice = [("m", "let k = 1; use \"a\"; k"), ("a", "let k = 2")];
    assert_eq!(problems(&twice), ["m `\"a\"`: `k` is defined twice"]);
    let late = [("m", "let y = k; use \"a\"; y"), ("a", "let k = 2")];
    assert_eq!(problems(&late), ["m `k`: `k` is used before it is defined"]);
    // A text that nobody looks for files of.
    let alone = parse("use \"a\"; 1", &Operators, &Limits::default()).unwrap_err();
    assert_eq!(alone.diagnostics()[0].message(), "`a` cannot be used: other files are not available here");
}

#[test]
fn files_are_limited_in_number_and_length() {
    let files = [("m", "use \"a\"; use \"b\"; 1"), ("a", "let a = 1"), ("b", "let b = 1")];
    let length = files.iter().map(|(_, text)| text.len() + 1).sum::<usize>() - 1;
    let read = |limits: &Limits| parse_sources(&gathered(&files, limits), &Operators, limits);
    for (set, most) in [
        ((|most| Limits::default().files(most)) as fn(usize) -> Limits, 2),
        (|most| Limits::default().source_bytes(most), length),
    ] {
        assert!(read(&set(most)).is_ok());
        let error = read(&set(most - 1)).unwrap_err();
        assert_eq!(error.diagnostics()[0].code(), cembra_value::Code::Limit, "{error}");
    }
}

/// Many `table` statements may use one file, so the time limit must be checked before each of them.
#[test]
fn the_limit_of_time_ends_tables() {
    let files = [("m", "table t: text -> i32 = 't'; 1"), ("t", "k,v\na,1")];
    for (compile_time, is_read) in [(Duration::ZERO, false), (Duration::from_secs(3600), true)] {
        let limits = Limits::default().compile_time(compile_time);
        let read = parse_sources(&gathered(&files, &limits), &Operators, &limits);
        assert_eq!(read.is_ok(), is_read);
        assert!(read.err().is_none_or(|error| error.to_string().contains("`compile_time`")));
    }
}

#[test]
fn tables_are_those_of_files() {
    let rates = ("rates.csv", "country,vat\nCH,1.08\n\"a \"\"b\"\", c\",0.5\nDE,\n");
    same(
        &[("m", "table rates: text -> f64 = \"rates.csv\"\ninput x: text\nf.get(rates, x)"), rates],
        r#"input x: text; f.get(dict[text, f64]{"CH": 1.08, "a \"b\", c": 0.5, "DE": NA}, x)"#,
    );
    let days = ("days", "k,v\r\n2024-02-29, 7\r\n1970-01-01,-1\r\n");
    same(
        &[("m", "use \"c\"; f.get(t, 1)"), ("c", "let unused = 1; table t: date -> i32 = \"days\""), days],
        "f.get(dict[date, i32]{date\"2024-02-29\": 7, date\"1970-01-01\": -1}, 1)",
    );
    // It is a name elsewhere, and of two tables one file.
    same(
        &[
            ("m", "let table = 1; table a: i32 -> text = 'n'; table b: i32 -> i32 = 'n'; f.g(table, a, b)"),
            ("n", "k,v\n1,2"),
        ],
        "f.g(1, dict[i32, text]{1: \"2\"}, dict[i32, i32]{1: 2})",
    );
    same(
        &[("m", "table t: text -> i32 = \"t\"; f.get(t, 1)"), ("t", "k;v\n1,5;2\n\"a;b\";3\n")],
        "f.get(dict[text, i32]{\"1,5\": 2, \"a;b\": 3}, 1)",
    );
    let wrong = |text: &str| problems(&[("m", "table t: i32 -> f32 = \"t\"; t"), ("t", text)]).remove(0);
    assert_eq!(wrong("k,v\n1,2\nx,3\n"), "t `x,3`: `x` is not a valid i32");
    assert_eq!(wrong("k,v\n1,2\n1,3\n"), "t `1,3`: a dictionary must not have the key 1 twice");
    assert_eq!(wrong("k,v\n1,2\n,3\n"), "t `,3`: a key of a dictionary is missing");
    assert_eq!(wrong("k,v\n1,2,3\n"), "t `1,2,3`: each line of the table must have two fields, found 3");
    assert_eq!(wrong("k\n1\n"), "t `k`: a table must have two columns, found 1");
    let wrong = |text: &str| problems(&[("m", "table t: ranges of f64 -> i32 = \"t\"; t"), ("t", text)]).remove(0);
    let overlap = |line: &str| format!("t `{line}`: range 2 begins before the previous range ends");
    assert_eq!(wrong("a,b\n3,1\n2,1\n"), overlap("2,1"));
    assert_eq!(wrong("a,b\n3,1\n3,1\n"), overlap("3,1"));
    assert_eq!(wrong("a,b,c\n1,3,1\n2,4,1\n"), overlap("2,4,1"));
    assert_eq!(wrong("a,b,c\n1,,1\n2,4,1\n"), overlap("2,4,1"));
    assert_eq!(wrong("a,b,c\n1,2,1\n,4,1\n"), overlap(",4,1"));
    assert_eq!(wrong("a,b,c\n4,4,1\n"), "t `4,4,1`: range 1 must end after its start");
    assert_eq!(wrong("a,b\nnan,1\n"), "t `nan,1`: a bound of range 1 is NaN");
    assert_eq!(wrong("a\n1\n"), "t `a`: a table of ranges must have two or three columns, found 1");
    assert_eq!(wrong("a,b,c\n1,2\n"), "t `1,2`: each line of the table must have three fields, found 2");
    assert_eq!(
        problems(&[("m", "table t: ranges of bool -> i32 = \"t\"; 1"), ("t", "k,v")]),
        ["m `bool`: ranges must be of numbers, dates, timestamps, durations or texts, not of bool"]
    );
    assert_eq!(
        problems(&[("m", "table t: ranges -> i32 = \"t\"; 1"), ("t", "k,v")]),
        ["m `-`: expected `of` and the type of the keys, as in `ranges of f64`, found `-`"]
    );
    let wrong =
        |types: &str, text: &str| problems(&[("m", &format!("table t: {types} = \"t\"; 1")), ("t", text)]).remove(0);
    let of_two = "(text, i64) -> f64";
    assert_eq!(wrong(of_two, "a,b,c\nx,1,2\nx,1,3\n"), "t `x,1,3`: a table must have each key only once");
    assert_eq!(wrong(of_two, "a,b,c\nx,,2\n"), "t `x,,2`: a key of a dictionary is missing");
    assert_eq!(wrong(of_two, "a,b\nx,1\n"), "t `a,b`: a table by keys of 2 parts must have 3 columns, found 2");
    let of_ranges = "(text, ranges of f64) -> f64";
    assert_eq!(wrong(of_ranges, "k,a,b,v\nx,5,6,1\nx,3,1,1\n"), "t `x,3,1,1`: range 2 must end after its start");
    assert_eq!(wrong(of_ranges, "k,a,v\nx,1,1\ny,nan,1\n"), "t `y,nan,1`: a bound of range 2 is NaN");
    assert_eq!(wrong(of_ranges, "k,a,b,v\nx,1,nan,1\n"), "t `x,1,nan,1`: a bound of range 1 is NaN");
    assert_eq!(wrong(of_ranges, "k,a,v\n,1,1\n"), "t `,1,1`: a key of a dictionary is missing");
    assert_eq!(wrong(of_ranges, "k,a,v\nx,1,1\nx,1,2\n"), "t `x,1,2`: a range overlaps another one with the same key");
    assert_eq!(
        wrong(of_ranges, "k,v\n"),
        "t `k,v`: a table by keys of 2 parts with ranges must have 3 or 4 columns, found 2"
    );
    assert_eq!(
        wrong("(text, ranges of f64) -> {v: f64}", "k,a,w\n"),
        "t `k,a,w`: there is no column `v` after those of the keys"
    );
    assert_eq!(wrong("(ranges of f64, text) -> f64", "k,v\n"), "m `text`: only the last part of a key can be ranges");
    assert_eq!(
        wrong("(text, ranges of bool) -> f64", "k,v\n"),
        "m `ranges of bool`: ranges must be of numbers, dates, timestamps, durations or texts, not of bool"
    );
    assert_eq!(
        wrong("(text, ranges f64) -> f64", "k,v\n"),
        "m `f64`: expected `of` and the type of the keys, as in `ranges of f64`, found `f64`"
    );
    let of_structs = "text -> {price: f64, name: text?}";
    assert_eq!(wrong(of_structs, "k,name\n"), "t `k,name`: there is no column `price` after those of the keys");
    assert_eq!(
        wrong(of_structs, "k,name,price,more\n"),
        "t `k,name,price,more`: the column `more` is not a field of {price: f64, name: text?}"
    );
    assert_eq!(
        wrong(of_structs, "k,name,price\na,,\n"),
        "t `a,,`: `price` is missing, but its type is not optional; declare the field as `price: f64?`"
    );
    assert_eq!(
        wrong(of_structs, "k,name,price\na,,1\na,,2\n"),
        "t `a,,2`: a dictionary must not have the key 'a' twice"
    );
    for types in [
        "(text, f64) -> f64",
        "(text, [i64]) -> f64",
        "{a: text} -> f64",
        "text -> {a: [f64]}",
        "text -> {a: f64}?",
        "text -> {}",
    ] {
        assert!(!problems(&[("m", &format!("table t: {types} = \"t\"; 1")), ("t", "k,v")]).is_empty(), "{types}");
    }
    for types in ["bytes -> i32", "i32 -> bytes"] {
        let text = format!("table t: {types} = \"t\"; 1");
        assert_eq!(
            problems(&[("m", &text), ("t", "k,v")]),
            ["m `bytes`: values of type bytes cannot be read from a file"]
        );
    }
    assert_eq!(
        problems(&[("m", "table t: f32 -> i32 = \"t\"; 1"), ("t", "k,v")]),
        ["m `f32`: the keys of a dictionary must be texts, bytes, integers, booleans or dates, not f32"]
    );
    assert_eq!(
        problems(&[("m", "table t: i32 -> i32 = \"none\"; 1")]),
        ["m `\"none\"`: `none` cannot be read: entity not found"]
    );
    assert_eq!(problems(&[("m", "table t: i32 = \"t\"; 1"), ("t", "k,v")]).len(), 1);
}

/// The columns of a table are found by name in one pass. A search per column would take half a minute for 100,000
/// columns.
#[test]
fn the_columns_of_a_table_are_found_at_once() {
    let listed = |item: &dyn Fn(usize) -> String| (0..100_000).map(item).collect::<Vec<_>>().join(",");
    let model = format!("table t: i64 -> {{{}}} = \"t\"; 1", listed(&|at| format!("f{at}: f64")));
    let rows = format!("k,{}\n1,{}\n", listed(&|at| format!(" f{} ", 99_999 - at)), listed(&|_| "1".to_owned()));
    let start = std::time::Instant::now();
    read(&[("m", &model), ("t", &rows)]).expect("a model");
    assert_eq!(problems(&[("m", &model), ("t", &rows.replacen(" f7 ", "g", 1))])[0].matches("`f7`").count(), 1);
    // It only keeps a hang from hanging the tests.
    assert!(start.elapsed().as_secs() < 20);
}
