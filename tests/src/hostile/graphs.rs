//! Models that are short in text and large in what they mean, and models that are merely very large.

use super::{Case, MILLION, Source, lines, quick, slow};
use cembra::Backend;

const fn native(name: &'static str, outcome: &'static str, source: fn() -> Source) -> Case {
    Case { backend: Backend::Native, ..quick(name, outcome, source) }
}

const fn slow_native(name: &'static str, outcome: &'static str, source: fn() -> Source) -> Case {
    Case { backend: Backend::Native, ..slow(name, outcome, source) }
}

/// What `part` makes of each number, joined.
fn joined(numbers: std::ops::Range<usize>, between: &str, part: impl Fn(usize) -> String) -> String {
    let mut text = String::new();
    for number in numbers {
        let between = if text.is_empty() { "" } else { between };
        text.extend([between, &part(number)]);
    }
    text
}

/// Operators that can fail, each used in all of many branches: where they are evaluated is worth deciding.
fn shared(levels: usize, nodes: usize) -> Source {
    let mut text = String::from("input x, c: i32\n");
    for node in 0..nodes {
        text.push_str(&format!("let s{node} = (c + {node}) // x\n"));
    }
    let sum = joined(0..nodes, " + ", |node| format!("s{node}"));
    text.push_str("let z0 = c\n");
    for level in 1..=levels {
        text.push_str(&format!("let z{level} = if x > {level} then {sum} else z{} + 1\n", level - 1));
    }
    text.push_str(&format!("z{levels}"));
    Source::Text(text)
}

/// Literals that share all their bits under a multiplicative hash without a seed.
fn colliding(count: u64) -> Source {
    const FACTOR: u64 = 0xf135_7aea_2e62_a9c5;
    let mut text = String::new();
    for number in 0..count {
        let other = number.wrapping_mul(FACTOR).wrapping_neg();
        text.push_str(&format!("output y{number} = ({}i64, {}i64)\n", number.cast_signed(), other.cast_signed()));
    }
    Source::Text(text)
}

pub(super) const CASES: &[Case] = &[
    quick("a sum doubled 1,000 times", "value", || {
        lines("input a0: f64", 1..1_001, |n| format!("let a{n} = a{0} + a{0}", n - 1), "a1000")
    }),
    slow("60 functions, each the one before applied twice", "limit nodes", || {
        lines("fn f0(x) = x * x + 1", 1..61, |n| format!("fn f{n}(x) = f{0}(f{0}(x))", n - 1), "f60(a)")
    }),
    slow("60 functions, each with two calls of the one before", "limit nodes", || {
        lines(
            "fn f0(x, y) = x * y + 1",
            1..61,
            |n| format!("fn f{n}(x, y) = f{0}(x, y + {n}) + f{0}(y, x)", n - 1),
            "f60(a, b)",
        )
    }),
    slow("10,000 calls of a function of 10,000 operators", "limit instantiation", || {
        let body = joined(0..10_000, " + ", |n| format!("x * {n}"));
        lines(&format!("fn f(x) = {body}"), 0..10_000, |n| format!("let a{n} = f({n})"), "a1")
    }),
    quick("tuples of inputs doubled 60 times", "limit tuple_fields", || {
        lines("input t0: f64", 1..61, |n| format!("let t{n} = (t{0}, t{0})", n - 1), "t60")
    }),
    quick("tuples of literals doubled 60 times", "limit tuple_fields", || {
        lines("let t0 = 1", 1..61, |n| format!("let t{n} = (t{0}, t{0})", n - 1), "t60")
    }),
    slow("tuples doubled 18 times", "value", || {
        lines("input t0: f64", 1..19, |n| format!("let t{n} = (t{0}, t{0})", n - 1), "t18")
    }),
    slow("tuples of literals doubled 18 times", "value", || {
        lines("let t0 = 1", 1..19, |n| format!("let t{n} = (t{0}, t{0})", n - 1), "t18")
    }),
    quick("100,000 nested tuples", "limit tuple_nesting", || {
        lines("input t0: f64", 1..100_001, |n| format!("let t{n} = (t{},)", n - 1), "t100000")
    }),
    quick("wrong operators on large tuples", "type-mismatch", || {
        let source = "input t0: f64\n".to_owned() + &joined(1..16, "\n", |n| format!("let t{n} = (t{0}, t{0})", n - 1));
        lines(&source, 0..1_000, |n| format!("output y{n} = t15 + {n} + t14"), "")
    }),
    slow("a tuple of 250,000 fields, each read", "value", || {
        let fields = joined(0..MILLION / 4, ", ", |n| format!("x + {n}"));
        let taken = joined(0..MILLION / 4, " + ", |n| format!("t.{n}"));
        Source::Text(format!("input x: i32\nlet t = ({fields})\n{taken}"))
    }),
    quick("a tuple of a million inputs, as output", "value", || {
        Source::Text(format!("input x: f64\n({}x)", "x, ".repeat(MILLION - 1)))
    }),
    slow("an input of 200,000 fields, each read", "value", || {
        let taken = joined(0..200_000, " + ", |n| format!("t.{n}"));
        Source::Text(format!("input t: ({})\n{taken}", joined(0..200_000, ", ", |_| "f64".into())))
    }),
    slow("a tuple of a million literals", "value", || {
        Source::Text(format!("({})", joined(0..MILLION, ", ", |n| n.to_string())))
    }),
    slow("a chain of a million sums", "value", || Source::Text(format!("input x: f64\nx{}", " + x".repeat(MILLION)))),
    slow("500,000 definitions, each from the one before", "value", || {
        let last = format!("a{}", MILLION / 2);
        lines("input a0: f64", 1..MILLION / 2 + 1, |n| format!("let a{n} = a{} + 1", n - 1), &last)
    }),
    slow("a sum of a million products", "value", || {
        Source::Text(format!("input x: f64\n{}", joined(0..MILLION, " + ", |n| format!("x*{n}"))))
    }),
    slow("a chain of a million literals", "value", || Source::Text(joined(0..MILLION, " + ", |n| format!("{n}i64")))),
    slow("a million nested powers", "value", || Source::Text(format!("input x: f64\nx{}", " ** x".repeat(MILLION)))),
    slow("a chain of 500,000 `else if`", "value", || {
        let chain = joined(0..MILLION / 2, " else ", |n| format!("if x > {n} then {n}"));
        Source::Text(format!("input x: i32\n{chain} else 0"))
    }),
    slow("100,000 nested conditionals", "value", || {
        lines(
            "input z0: i32",
            1..100_001,
            |n| format!("let z{n} = where(z0 > {n}, z0 * {n}, z{} + 1)", n - 1),
            "z100000",
        )
    }),
    slow("100,000 nested conditions", "value", || {
        lines(
            "input x: i32\nlet z0 = x > 0",
            1..100_001,
            |n| format!("let z{n} = if z{} then x + {n} > 3 else x * {n} < 5", n - 1),
            "z100000",
        )
    }),
    quick("100 divisions shared by 1,000 nested conditionals", "div-by-zero", || shared(1_000, 100)),
    slow("1,000 divisions shared by 300 nested conditionals", "div-by-zero", || shared(300, 1_000)),
    slow("3 divisions shared by 50,000 nested conditionals", "div-by-zero", || shared(50_000, 3)),
    slow("divisions shared by neighbouring conditionals", "div-by-zero", || {
        lines(
            "input x, z0: i32\nlet s0 = x // z0",
            1..50_001,
            |n| format!("let s{n} = (x + {n}) // z0\nlet z{n} = if x > {n} then s{n} + s{0} else z{0} - s{n}", n - 1),
            "z50000",
        )
    }),
    slow("500,000 outputs", "value", || lines("input x: f64", 0..MILLION / 2, |n| format!("output y{n} = x+{n}"), "")),
    slow("500,000 inputs", "value", || {
        lines("", 0..MILLION / 2, |n| format!("input x{n}: f64"), &joined(0..MILLION / 2, "+", |n| format!("x{n}")))
    }),
    slow("250,000 inputs of texts", "value", || {
        lines("", 0..MILLION / 4, |n| format!("input x{n}: text"), &joined(0..MILLION / 4, "|", |n| format!("x{n}")))
    }),
    slow("250,000 functions", "value", || {
        lines("", 0..MILLION / 4, |n| format!("fn g{n}(x, y) = x * y + {n}"), "g1(1, 2)")
    }),
    slow("a function of 100,000 parameters", "value", || {
        let parameters = joined(0..100_000, ", ", |n| format!("p{n}"));
        let (sum, ones) = (joined(0..100_000, " + ", |n| format!("p{n}")), joined(0..100_000, ", ", |n| n.to_string()));
        Source::Text(format!("fn f({parameters}) = {sum}\nf({ones})"))
    }),
    slow("200,000 literals with one unseeded hash", "value", || colliding(200_000)),
    slow_native("native: 6,000 values alive at once", "value", || {
        let first = format!(
            "input x: f64\nlet a0 = x\n{}",
            joined(1..6_000, "\n", |n| format!("let a{n} = a{} * x + {n}", n - 1))
        );
        Source::Text(format!("{first}\n{}", joined(0..6_000, " + ", |n| format!("a{}", 5_999 - n))))
    }),
    native("native: 4,800 nested conditionals", "value", || {
        lines("input z0: i32", 1..4_801, |n| format!("let z{n} = where(z0 > {n}, z0 * {n}, z{} + 1)", n - 1), "z4800")
    }),
    native("native: 3,000 conditionals with shared operands", "value", || {
        lines(
            "input x, z0: f64",
            1..3_001,
            |n| format!("let z{n} = if z{0} > x then z{0} * x + {n} else z{0} - x", n - 1),
            "z3000",
        )
    }),
    native("native: 15,000 kernels", "value", || {
        lines("input t0: text", 1..15_001, |n| format!("let t{n} = strings.lower(t{})", n - 1), "t15000")
    }),
    quick("sums shared by 2,000 branches", "value", || {
        let sum = joined(0..1_000, " + ", |n| format!("(c + {n}) * x"));
        let first = format!("input x, z0: f64\nlet c = z0\nlet s = {sum}");
        lines(&first, 1..2_001, |n| format!("let z{n} = if x > {n} then s else z{} + 1", n - 1), "z2000")
    }),
    native("native: sums shared by 2,000 branches", "value", || {
        let sum = joined(0..1_000, " + ", |n| format!("(c + {n}) * x"));
        let first = format!("input x, z0: f64\nlet c = z0\nlet s = {sum}");
        lines(&first, 1..2_001, |n| format!("let z{n} = if x > {n} then s else z{} + 1", n - 1), "z2000")
    }),
    slow_native("native: 3,000 divisions alive at once", "div-by-zero", || {
        let divisions = joined(0..3_000, "\n", |n| format!("let s{n} = (c + {n}) // x"));
        let sums = joined(1..3_000, "\n", |n| format!("let r{n} = s{} + r{}", 2_999 - n, n - 1));
        Source::Text(format!("input x, c: i32\n{divisions}\nlet r0 = s2999\n{sums}\nr2999"))
    }),
    native("native: an input of a million fields", "value", || {
        Source::Text(format!("input t: ({}f64)\nt.7", "f64, ".repeat(MILLION - 1)))
    }),
    native("native: an output of 100,000 fields", "limit native_fields", || {
        Source::Text(format!("input x: f64\n({})", joined(0..100_000, ", ", |n| format!("x + {n}"))))
    }),
    slow_native("native: an input of 100,000 fields, each read", "value", || {
        let taken = joined(0..100_000, " + ", |n| format!("t.{n}"));
        Source::Text(format!("input t: ({})\n{taken}", joined(0..100_000, ", ", |_| "f64".into())))
    }),
    slow_native("native: 9,000 exponentials", "value", || {
        lines("input x0: f64", 1..9_001, |n| format!("let x{n} = math.exp(x{}) + {n}", n - 1), "x9000")
    }),
];
