//! Texts that are hostile to whoever reads them, and values that are hostile to operators.

use super::{Case, MILLION, Source, lines, quick, slow};

const MANY: usize = 10 << 20;

fn repeated(part: &str, bytes: usize) -> Source {
    Source::Text(part.repeat(bytes / part.len()))
}

/// The letters `a` and `b` in no order.
fn letters(count: usize) -> String {
    let mut bits = 0x9E37_79B9_u32;
    let letter = |_| {
        bits ^= bits << 13;
        bits ^= bits >> 17;
        bits ^= bits << 5;
        if bits & 1 == 0 { 'a' } else { 'b' }
    };
    (0..count).map(letter).collect()
}

pub(super) const CASES: &[Case] = &[
    quick("10 MiB of `(`", "limit nesting", || repeated("(", MANY)),
    quick("10 MiB of `[`", "limit nesting", || repeated("[", MANY)),
    quick("10 MiB of `{`", "syntax", || repeated("{", MANY)),
    quick("10 MiB of `)`", "syntax", || repeated(")", MANY)),
    slow("10 MiB of `-`", "syntax", || repeated("-", MANY)),
    slow("10 MiB of `- `, then 1", "limit nodes", || Source::Text("- ".repeat(MANY / 2) + "1")),
    quick("10 MiB of `not `", "syntax", || repeated("not ", MANY)),
    quick("10 MiB of `f(`", "unknown-name", || repeated("f(", MANY)),
    slow("10 MiB of `x.0`", "limit literal_bytes", || {
        Source::Text(format!("input x: f64; x{}", ".0".repeat(MANY / 2)))
    }),
    quick("10 MiB of `x.a`", "limit name_bytes", || repeated("x.", MANY)),
    quick("10 MiB of blank lines", "no-output", || repeated("\n", MANY)),
    quick("10 MiB of comment", "no-output", || Source::Text(format!("#{}", "a".repeat(MANY)))),
    quick("10 MiB of one name", "limit name_bytes", || repeated("a", MANY)),
    quick("10 MiB of a quoted name", "limit name_bytes", || Source::Text(format!("L[\"{}\"]", "a".repeat(MANY)))),
    quick("10 MiB of a text that is not closed", "literal", || Source::Text(format!("\"{}", "a".repeat(MANY)))),
    quick("10 MiB of escapes", "value", || Source::Text(format!("\"{}\"", "\\n".repeat(MANY / 2)))),
    quick("17 MiB of text", "limit source_bytes", || repeated("1 + ", 17 << 20)),
    quick("10 MiB of wrong statements", "syntax", || repeated("let =\n", MANY)),
    slow("10 MiB of `1 < 1 < 1`", "chained-comparison", || repeated("1 < ", MANY)),
    quick("100,000 unknown operators", "unknown-name", || {
        lines("", 0..MILLION / 10, |n| format!("let a{n} = mistake{n}(1)"), "output y = 1")
    }),
    quick("100,000 operands of wrong types", "type-mismatch", || {
        lines("", 0..MILLION / 10, |n| format!("output a{n} = {n} + \"a\""), "")
    }),
    quick("a million unknown operators in one statement", "unknown-name", || {
        let more: String = (1..MILLION).map(|n| format!(" + no{n}(1)")).collect();
        Source::Text(format!("no0(1){more}"))
    }),
    quick("a hundred unknown fields with names of a kilobyte", "unknown-name", || {
        let name = |n: usize| format!("{:a<1000}", format!("n{n}"));
        let fields = (0..270).map(|n| format!("{}: 1", name(n))).collect::<Vec<_>>().join(", ");
        lines(&format!("let t = {{{fields}}}"), 0..100, |n| format!("output y{n} = t.{}", name(1_000 + n)), "")
    }),
    slow("a hundred unknown fields of a struct of 20,000", "unknown-name", || {
        let name = |n: usize| format!("{:a<30}", format!("n{n}"));
        let fields = (0..20_000).map(|n| format!("{}: 1", name(n))).collect::<Vec<_>>().join(", ");
        lines(&format!("let t = {{{fields}}}"), 0..100, |n| format!("output y{n} = t.{}", name(100_000 + n)), "")
    }),
    quick("a text of 15 MiB, wrong a hundred times", "unknown-name", || {
        let text = format!("let t = \"{}\"\nlet r = {{a: 1}}", "a".repeat(15 << 20));
        lines(&text, 0..100, |n| format!("output y{n} = namedtuple.get_field(r, t) + {n}"), "")
    }),
    slow("a format of 15 MiB, wrong a hundred times", "arguments", || {
        let text = format!("let t = \"{{x:{}}}\"", "9".repeat(15 << 20));
        lines(&text, 0..100, |n| format!("output y{n} = strings.format(t, x={n})"), "")
    }),
    quick("100,000 exports of one name", "name", || {
        lines("input x: i32", 0..MILLION / 10, |n| format!("output y{n} = annotation.export(x + {n}, \"a\")"), "")
    }),
    quick("a type of 250,000 fields, wrong a hundred times", "type-mismatch", || {
        let text = format!("input t: ({})", vec!["f64?"; MILLION / 4].join(", "));
        lines(&text, 0..100, |n| format!("output y{n} = t + {n}"), "")
    }),
    slow("500,000 inputs without types", "missing-input-type", || {
        lines("", 0..MILLION / 2, |n| format!("output y{n} = x{n}"), "")
    }),
    quick("a number of 10 million digits", "literal", || repeated("7", 10_000_000)),
    quick("a fraction of 10 million digits", "value", || Source::Text(format!("1.{}", "7".repeat(10_000_000)))),
    quick("10 million zeros after the decimal point", "value", || {
        Source::Text(format!("1.{}1", "0".repeat(10_000_000)))
    }),
    quick("1e999999999", "literal", || Source::Text("1e999999999".into())),
    quick("1e-999999999", "value", || Source::Text("1e-999999999".into())),
    quick("1e9999.. of 10 million digits", "literal", || Source::Text(format!("1e{}", "9".repeat(10_000_000)))),
    quick("a text of 15 MiB", "value", || Source::Text(format!("\"{}\"", "a".repeat(15 << 20)))),
    quick("a text of 15 MiB, twice", "limit source_bytes", || {
        Source::Text(format!("let a = \"{0}\"\nlet b = \"{0}\"\na", "a".repeat(15 << 20)))
    }),
    quick("(a*)*b on a million characters", "value", || {
        Source::Text(format!("strings.contains_regex(\"{}\", \"(a*)*b\")", "a".repeat(MILLION)))
    }),
    quick("(a|aa|a?)+ on a million characters", "value", || {
        Source::Text(format!("strings.contains_regex(\"{}\", \"^(a|aa|a?)+[ab]{{1,20}}c$\")", "a".repeat(MILLION)))
    }),
    quick("a[ab]{10000}c on a million letters", "invalid", || {
        Source::Text(format!("strings.contains_regex(\"{}\", \"a[ab]{{10000}}c\")", letters(MILLION)))
    }),
    slow("a loop that makes a million patterns", "work-limit", || {
        let pattern = "strings.join(\"\\\\w{5}\", strings.as_text(i))";
        let round = format!("s + where(strings.contains_regex(\"a\", {pattern}), 1i64, 0i64)");
        Source::Text(format!("seq.reduce(fn(s, i) = {round}, seq.range(1000000), 0i64)"))
    }),
    slow("a[ab]{100}c in 10,000 texts", "work-limit", || {
        let text = letters(100_000);
        let round = "s + where(strings.contains_regex(strings.substr(t, i), \"a[ab]{100}c\"), 1i64, 0i64)";
        Source::Text(format!("let t = \"{text}\"\nseq.reduce(fn(s, i) = {round}, seq.range(10000), 0i64)"))
    }),
    quick("a{1000}{1000}", "arguments", || Source::Text("strings.contains_regex(\"a\", \"a{1000}{1000}\")".into())),
    quick("((a{100}){100}){100}", "arguments", || {
        Source::Text("strings.contains_regex(\"a\", \"((a{100}){100}){100}\")".into())
    }),
    quick("a pattern of 60,000 brackets", "arguments", || {
        Source::Text(format!("strings.contains_regex(\"a\", \"{}\")", "(".repeat(60_000)))
    }),
    slow("5,000 patterns", "value", || {
        lines("input x: text", 0..5_000, |n| format!("output y{n} = strings.contains_regex(x, \"\\\\w{n}\")"), "")
    }),
    quick("printf %999999999d", "arguments", || Source::Text("strings.printf(\"%999999999d\", 1)".into())),
    quick("printf %.999999999f", "arguments", || Source::Text("strings.printf(\"%.999999999f\", 1.5)".into())),
    slow("100,000 printfs of %1000d", "arena-limit", || {
        lines("input x: i32", 0..100_000, |n| format!("output y{n} = strings.printf(\"{n}%1000d\", x)"), "")
    }),
    quick("printf with 100,000 fields", "value", || {
        Source::Text(format!("input x: i32\nstrings.printf(\"{}\"{})", "%d".repeat(100_000), ", x".repeat(100_000)))
    }),
    quick("format of width 999999999", "arguments", || Source::Text("strings.format(\"{x:999999999d}\", x=1)".into())),
    quick("format with 100,000 fields", "value", || {
        Source::Text(format!("input y: i32\nstrings.format(\"{}\", x=y)", "{x}".repeat(100_000)))
    }),
    quick("join doubled 60 times", "arena-limit", || {
        lines("input t0: text", 1..61, |n| format!("let t{n} = strings.join(t{0}, t{0})", n - 1), "t60")
    }),
    quick("join of literals doubled 60 times", "arena-limit", || {
        lines("let t0 = \"abc\"", 1..61, |n| format!("let t{n} = strings.join(t{0}, t{0})", n - 1), "t60")
    }),
    quick("replace squares 60 times", "arena-limit", || {
        lines("input t0: text", 1..61, |n| format!("let t{n} = strings.replace(t{0}, \"\", t{0})", n - 1), "t60")
    }),
    quick("join of 10 texts of 10 MiB", "arena-limit", || {
        let source = format!("let a = \"{}\"\nstrings.join(a, a, a, a, a, a, a, a, a, a)", "a".repeat(MANY));
        Source::Text(source)
    }),
    slow("find in 1 MiB of `a`, a thousand times", "value", || {
        let text = format!("let t = \"{}\"\n", "a".repeat(1 << 20));
        lines(&text, 0..1000, |n| format!("output y{n} = strings.find(t, \"{}b{n}\")", "a".repeat(100)), "")
    }),
];
