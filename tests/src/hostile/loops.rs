//! Functions, sequences and loops that ask for too much.

use super::{Case, Source, lines, quick, slow};

pub(super) const CASES: &[Case] = &[
    quick("a loop without end", "iteration-limit", || {
        Source::Text("input x: f64\ncore.while_loop(x, fn(s) = s == s, fn(s) = s + 1)".to_owned())
    }),
    quick("a range of 2^62 numbers", "iteration-limit", || {
        Source::Text("input x: i64\nseq.reduce(math.add, seq.range(4611686018427387904 + x), 0i64)".to_owned())
    }),
    quick("loops nested 10 deep", "iteration-limit", || {
        let inner =
            (0..10).fold("s + i".to_owned(), |inner, _| format!("seq.reduce(fn(s, i) = {inner}, seq.range(1000), s)"));
        Source::Text(format!("input s: i64\n{inner}"))
    }),
    quick("loops nested 100 deep", "limit", || {
        let inner = (0..100)
            .fold("i + x".to_owned(), |inner, _| format!("seq.reduce(fn(s, i) = s + {inner}, seq.range(2), x)"));
        Source::Text(format!("input x, i: i64\n{inner}"))
    }),
    slow("60 local functions, each calling the one before twice", "limit instantiation", || {
        lines(
            "input a: f64\nlet g0 = fn(x) = x * x",
            1..60,
            |n| format!("let g{n} = fn(x) = g{0}(g{0}(x))", n - 1),
            "g59(a)",
        )
    }),
    slow("100,000 local functions, each calling the one before", "limit", || {
        lines(
            "input a: f64\nlet g0 = fn(x) = x * x",
            1..100_000,
            |n| format!("let g{n} = fn(x) = g{}(x)", n - 1),
            "g99999(a)",
        )
    }),
    quick("a function that calls itself through an argument", "limit", || {
        Source::Text("input a: f64\nlet w = fn(f, x) = f(f, x)\nw(w, a)".to_owned())
    }),
    slow("100,000 sequences, each mapped from the one before", "limit", || {
        lines(
            "let s0 = seq.range(3)",
            1..100_000,
            |n| format!("let s{n} = seq.map(fn(x) = x + 1, s{})", n - 1),
            "seq.size(s99999)",
        )
    }),
    quick("a function of 50,000 parameters", "value", || {
        let names = (0..50_000).map(|n| format!("p{n}")).collect::<Vec<_>>().join(", ");
        let ones = vec!["1"; 50_000].join(", ");
        Source::Text(format!("core.apply(fn({names}) = p0 + p49999, {ones})"))
    }),
    slow("a function of 20,000 parameters, called with one", "limit", || {
        let names = (0..20_000).map(|n| format!("p{n}")).collect::<Vec<_>>();
        Source::Text(format!("core.apply(fn({}) = {}, 1)", names.join(", "), names.join(" + ")))
    }),
    quick("a tuple of 50,000 parameters, called with one", "arguments", || {
        let names = (0..50_000).map(|n| format!("p{n}")).collect::<Vec<_>>().join(", ");
        Source::Text(format!("core.apply(fn({names}) = core.make_tuple({names}), 1)"))
    }),
    slow("200 nested functions with one parameter name", "value", || {
        let calls = "core.apply(fn(x) = x + 1, ".repeat(200);
        Source::Text(format!("{}1{}", calls, ")".repeat(200)))
    }),
    slow("a sequence of 20,000 values, one of them read", "value", || {
        let values = vec!["x"; 20_000].join(", ");
        Source::Text(format!("input x: i64\nseq.at(seq.make({values}), x)"))
    }),
    slow("a sequence of 100,000 values, 1,000 of them read", "limit instantiation", || {
        let values = vec!["x"; 100_000].join(", ");
        let asked = (0..1_000).map(|at| format!("seq.at(s, x + {at})")).collect::<Vec<_>>().join(" + ");
        Source::Text(format!("input x: i64\nlet s = seq.make({values})\n{asked}"))
    }),
    slow("a function of 100,000 operands, called 1,000 times", "limit instantiation", || {
        let values = vec!["x"; 100_000].join(", ");
        let calls = (0..1_000).map(|at| format!("f(a + {at})")).collect::<Vec<_>>().join(" + ");
        Source::Text(format!("input a: i64\nlet f = fn(x) = seq.at(seq.make({values}), 0)\n{calls}"))
    }),
    slow("a loop of a million rounds that makes strings", "arena-limit", || {
        Source::Text("input t: text\nseq.reduce(fn(s, i) = strings.join(s, t), seq.range(1000000), t)".to_owned())
    }),
    slow("a loop of a million searches in a million characters", "work-limit", || {
        let round = "s + where(strings.contains(strings.substr(t, i), \"b\"), 1i64, 0i64)";
        Source::Text(format!(
            "let t = \"{}\"\nseq.reduce(fn(s, i) = {round}, seq.range(1000000), 0i64)",
            "a".repeat(1_000_000)
        ))
    }),
    slow("a loop of a million comparisons of a million characters", "work-limit", || {
        let text = "a".repeat(1_000_000);
        let round = "s + where(t == where(i % 2 == 0, u, v), 1i64, 0i64)";
        Source::Text(format!(
            "let t = \"{text}b\"\nlet u = \"{text}c\"\nlet v = \"{text}d\"\nseq.reduce(fn(s, i) = {round}, seq.range(1000000), 0i64)"
        ))
    }),
    slow("a loop of 100 million upper cases of one letter", "iteration-limit", || {
        let round = "s + where(strings.upper(where(i % 2 == 0, \"a\", \"b\")) == \"A\", 1i64, 0i64)";
        Source::Text(format!("seq.reduce(fn(s, i) = {round}, seq.range(100000000), 0i64)"))
    }),
];
