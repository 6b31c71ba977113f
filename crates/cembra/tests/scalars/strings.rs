//! Tests strings from inputs to results in both backends: computed strings live long enough, and faults describe the
//! cause.

use cembra::{Backend, Limits, Model, Options, Value};
use std::sync::Arc;

fn optional(text: Option<&str>) -> Value {
    Value::from(text.map(Arc::<str>::from))
}

fn bytes(bytes: &[u8]) -> Value {
    Value::from(Arc::<[u8]>::from(bytes))
}

fn each(source: &str, run: impl Fn(&mut cembra::Session)) {
    let model = Model::parse(source).expect("a model");
    for backend in [Backend::Interpreter, Backend::Native] {
        let executor = model.compile(&Options::default().backend(backend)).expect("an executor");
        assert_eq!(executor.backend(), backend);
        run(&mut executor.session());
    }
}

#[test]
fn made_strings_are_passed_on_and_taken_back() {
    let source = "
        input name: text?
        input n: i32
        input raw: bytes
        let greeting = strings.join(upper(strip(name ?? \"nobody\")), \"!\")
        output long = where(n > 2, strings.join(greeting, greeting, strings.decode(raw)), greeting)
        output at = strings.find(greeting, \"\u{c9}\") ?? -1i64
        output form = strings.format(\"{name:v}|{n:04d}\", name=name, n=n)";
    each(source, |session| {
        for round in 0..100 {
            let name = format!(" h\u{e9}{} ", "x".repeat(round * 50));
            let n = round as i32;
            let inputs = [optional(Some(&name)), Value::from(n), bytes(b"ok")];
            let found = session.evaluate(&inputs).expect("strings");
            let greeting = format!("H\u{c9}{}!", "X".repeat(round * 50));
            let long = if n > 2 { format!("{greeting}{greeting}ok") } else { greeting };
            let form = optional(Some(&format!("{name}|{n:04}")));
            assert_eq!(found, [Value::from(long.as_str()), Value::from(1_i64), form], "{round}");
        }
        let inputs = [optional(None), Value::from(0), bytes(b"\xff")];
        // The bytes are not decoded where the branch is not taken.
        let found = session.evaluate(&inputs).expect("strings");
        assert_eq!(found, [Value::from("NOBODY!"), Value::from(-1_i64), optional(None)]);
        let inputs = [inputs[0].clone(), Value::from(3), inputs[2].clone()];
        let error = session.evaluate(&inputs).expect_err("no UTF-8");
        assert_eq!((error.code(), error.operator()), ("invalid", Some("strings.decode")));
    });
}

#[test]
fn faults_quote_what_could_not_be_read() {
    each("input t: text\noutput n = parse_int32(strings.join(t, \"0\"))", |session| {
        assert_eq!(session.evaluate(&[Value::from("4")]).expect("a number"), [Value::from(40)]);
        let error = session.evaluate(&[Value::from("4.")]).expect_err("no integer");
        assert_eq!((error.code(), error.operator()), ("parse", Some("strings.parse_int32")));
        assert!(error.to_string().contains("4.0"), "{error}");
    });
    each("input t, p: text\noutput n = contains_regex(t, p)", |session| {
        let error = session.evaluate(&[Value::from("a"), Value::from("a(b")]).expect_err("no pattern");
        assert_eq!(error.code(), "invalid");
        assert!(error.to_string().contains("unclosed group"), "{error}");
    });
    each("input b: bytes\noutput t = strings.decode(b)", |session| {
        let error = session.evaluate(&[bytes(b"invalid:\xe1\x80 ")]).expect_err("half a character");
        assert!(error.to_string().contains("not UTF-8 at position 8"), "{error}");
    });
}

#[test]
fn strings_that_do_not_fit_the_arena_are_a_fault() {
    let doubled = (0..40).map(|at| format!("let s{} = strings.join(s{at}, s{at})\n", at + 1)).collect::<String>();
    each(&format!("input s0: text\n{doubled}output n = strings.length(s40)"), |session| {
        let error = session.evaluate(&[Value::from("ab")]).expect_err("2 TiB");
        assert_eq!((error.code(), error.operator()), ("arena-limit", Some("strings.join")));
        assert_eq!(session.evaluate(&[Value::from("")]).expect("nothing"), [Value::from(0_i64)]);
    });
    // Literals are not folded into what a host cannot hold.
    each(&format!("let s0 = \"ab\"\n{doubled}output n = strings.length(s40)"), |session| {
        assert_eq!(session.evaluate(&[]).expect_err("2 TiB").code(), "arena-limit");
    });
}

/// When the limit on string work is used up, machine code still finishes a comparison of strings, but does not write
/// its outputs.
#[test]
fn a_comparison_that_is_too_much_work_leaves_the_output_alone() {
    #[derive(cembra::Input)]
    struct Row {
        x: i64,
    }
    let source = "input x: i64; where(strings.printf(\"%300d\", x) < strings.printf(\"%301d\", x), 1.0f64, 2.0f64)";
    let model = Model::parse(source).expect("a model");
    for backend in [Backend::Interpreter, Backend::Native] {
        let run = |string_work| {
            let limits = Limits::default().string_work(string_work);
            let options = Options::default().backend(backend).limits(limits);
            let mut run = model.executor::<Row, f64>(&options).expect("an executor");
            let mut out = 7.0;
            let code = run.run_into(&Row { x: 5 }, &mut out).map_err(|error| error.code());
            (code, out)
        };
        // The comparison comes last and is 300 units: a little less than enough is not enough for it alone.
        let enough = (1..20).map(|hundreds| 100 * hundreds).find(|work| run(*work).0.is_ok()).expect("enough");
        assert_eq!(run(enough), (Ok(()), 2.0));
        assert_eq!(run(enough - 100), (Err("work-limit"), 7.0));
    }
}

#[test]
fn widths_and_precisions_count_characters() {
    let source = "input s: text, b: bytes, n: i32
        output wide = strings.printf(\"[%-4s|%4s]\", s, s)
        output cut = printf(\"%.2s\", s)
        output both = printf(\"[%5.1s]\", s)
        output given = printf(\"[%*.*s]\", n, 1, s)
        output of_bytes = printf(b\"[%-4s|%.1s]\", b, b)";
    each(source, |session| {
        for (s, wide, cut, both, given) in [
            ("\u{fc}", "[\u{fc}   |   \u{fc}]", "\u{fc}", "[    \u{fc}]", "[  \u{fc}]"),
            (
                "\u{5317}\u{4eac}\u{5e02}",
                "[\u{5317}\u{4eac}\u{5e02} | \u{5317}\u{4eac}\u{5e02}]",
                "\u{5317}\u{4eac}",
                "[    \u{5317}]",
                "[  \u{5317}]",
            ),
            ("ab\u{1f600}cd", "[ab\u{1f600}cd|ab\u{1f600}cd]", "ab", "[    a]", "[  a]"),
            ("", "[    |    ]", "", "[     ]", "[   ]"),
        ] {
            let found = session.evaluate(&[Value::from(s), bytes(b"\xc3\xbc"), Value::from(3)]).expect("texts");
            let expected = [wide, cut, both, given].map(Value::from);
            assert_eq!(found[..4], expected, "{s}");
            assert_eq!(found[4], bytes(b"[\xc3\xbc  |\xc3]"));
        }
    });
}

#[test]
fn literal_patterns_and_formats_are_checked_with_the_model() {
    for (source, place, says) in [
        (
            "input s: text?; contains_regex(s, \"(a\")",
            "\"(a\"",
            "the pattern is not a regular expression: unclosed group",
        ),
        (
            "input s: text; let p = \"a**\"; contains_regex(s, p)",
            "contains_regex(s, p)",
            "a repetition of the pattern directly follows another one",
        ),
        ("input s: text; extract_regex(s, \"a\")", "\"a\"", "the pattern needs exactly one capturing group"),
        (
            "input s: text; strings.replace_all_regex(s, \"[z-a]\", \"\")",
            "\"[z-a]\"",
            "the pattern has a class with a range whose start is above its end",
        ),
        (
            "input s: [text]; contains_regex(s, \"(a\")",
            "\"(a\"",
            "the pattern is not a regular expression: unclosed group",
        ),
        (
            "input s: [text]; array.count(core.get_first(strings.findall_regex(s, \"a)\")))",
            "\"a)\"",
            "the pattern is not a regular expression: unopened group",
        ),
        (
            "input s: text; fn f(x, p) = contains_regex(x, p); f(s, \"\\\\h\")",
            "contains_regex(x, p)",
            "the pattern has an escape sequence that RE2 does not know",
        ),
        (
            "input s: text; if s == \"x\" then present else contains_regex(s, \"(\")",
            "\"(\"",
            "the pattern is not a regular expression: unclosed group",
        ),
        ("input n: f64; printf(\"%q\", n)", "\"%q\"", "the format has a field that is malformed"),
        (
            "input n: f64?; printf(\"%d\", n)",
            "\"%d\"",
            "a field of the format does not fit its argument: `d` is for integers, `f` for numbers, `s` for strings",
        ),
        (
            "input n: [i64]; printf(\"%s\", n)",
            "\"%s\"",
            "a field of the format does not fit its argument: `d` is for integers, `f` for numbers, `s` for strings",
        ),
        ("input n: i32; printf(\"%d %d\", n)", "\"%d %d\"", "the format has more fields than there are arguments"),
        ("input n: f64; printf(\"%*f\", n, n)", "\"%*f\"", "a width or a precision of the format must be an integer"),
        (
            "input s: bytes?; printf(b\"%d\", s)",
            "b\"%d\"",
            "a field of the format does not fit its argument: `d` is for integers, `f` for numbers, `s` for strings",
        ),
        (
            "input n: f64; strings.format(\"{n:d}\", n=n)",
            "\"{n:d}\"",
            "a field of the format does not fit its argument: `d` is for integers, `f` for numbers, `s` for strings",
        ),
        (
            "input s: text; strings.format(\"{s:.2f}\", s=s)",
            "\"{s:.2f}\"",
            "a field of the format is for a number, but its argument is not a number",
        ),
    ] {
        let model = Model::parse(source).expect("a model");
        for error in [
            model.signature(&Options::default()).expect_err(source),
            model.compile(&Options::default()).expect_err(source),
        ] {
            assert_eq!((error.code(), &*error.message()), ("arguments", says), "{source}");
            assert_eq!(error.span().map(|span| span.text(source)), Some(place), "{source}");
        }
    }
    // What is known only with the rows fails there.
    each("input s, p: text?, f: text; output a = contains_regex(s, p); output b = printf(f, 1.5)", |session| {
        let mut error = |p, f: &str| {
            session.evaluate(&[optional(Some("a")), optional(p), Value::from(f)]).map_err(|error| error.code())
        };
        assert_eq!(error(Some("("), "%f"), Err("invalid"));
        assert_eq!(error(Some("a"), "%d"), Err("invalid"));
        assert_eq!(error(None, "%.1f"), Ok(vec![Value::Missing(cembra::Scalar::Unit), Value::from("1.5")]));
    });
    each(
        "input s: text; contains_regex(s, \"^(?:a|b)+$\") and printf(\"%5.1f|%v|%lc\", 2, true, 65) == \"  2.0|true|A\"",
        |session| {
            let found = session.evaluate(&[Value::from("abba")]).expect("a mask");
            assert_eq!(found, [Value::Present(cembra::ScalarValue::Unit)]);
        },
    );
}
