//! Native code of several functions: the same values and faults as the interpreter, wherever a model is cut.

use cembra::native::Tier;
use cembra::{Backend, Error, Limits, Model, Options, Value};

/// Steps in a function, from one to more than there are.
const CUTS: [usize; 7] = [1, 2, 3, 5, 9, 40, 2_000];

/// What a row comes to: values, or the error with its place.
type Outcome = Result<Vec<Value>, (String, Option<(u32, u32)>)>;

fn outcome(result: Result<Vec<Value>, Error>) -> Outcome {
    result.map_err(|error| (error.to_string(), error.span().map(|span| (span.start, span.end))))
}

/// Evaluates the rows by the interpreter and by native code in both tiers, cut in all ways; returns what all agree on.
fn agreed(source: &str, rows: &[&[Value]], limits: Limits) -> Vec<Outcome> {
    let model = Model::parse(source).expect("a model");
    let run = |options: Options| {
        let executor = model.compile(&options).expect("it compiles");
        let mut session = executor.session();
        // Twice: what the rows before left in the frame is not to matter.
        let rows = rows.iter().chain(rows);
        rows.map(|row| outcome(session.evaluate(row))).collect::<Vec<_>>()
    };
    let expected = run(Options::default().backend(Backend::Interpreter).limits(limits));
    for tier in [Tier::Optimised, Tier::Quick] {
        for native_steps in CUTS {
            let limits = limits.native_steps(native_steps);
            let found = run(Options::default().backend(Backend::Native).tier(tier).limits(limits));
            assert_eq!(found, expected, "{source}, {native_steps} steps in a function, {tier:?}");
        }
    }
    expected[..rows.len()].to_vec()
}

fn values<T: Into<Value> + Clone, const N: usize>(row: [T; N]) -> [Value; N] {
    row.map(Into::into)
}

#[test]
fn values_cross_from_function_to_function() {
    // Each is used by the next, by one far away, and at the end.
    let mut source = String::from("input x, y: f64\nlet t0 = x * y\n");
    for n in 1..60 {
        source.push_str(&format!("let t{n} = t{} * {n} - t{} / (y + {n})\n", n - 1, n / 2));
    }
    source.push_str("output a = t59 + t0\noutput b = t30\noutput c = x");
    let rows = [values([0.5, 0.25]), values([-3.0, 7.0])];
    let outcomes = agreed(&source, &[&rows[0], &rows[1]], Limits::default());
    assert!(outcomes.iter().all(|row| row.as_ref().is_ok_and(|values| values.len() == 3)));
    assert_ne!(outcomes[0], outcomes[1]);
}

#[test]
fn texts_tuples_and_optionals_cross() {
    let source = r#"
        input name: text; input x: f64?; input n: i32; input pair: (i64, (text?, bool))
        let who = if n > 0 then name else strings.upper(name)
        let chosen = (if n > 0 then n + 1 else n - 1, (who, if n > 0 then x * 2.0 else x), pair)
        let made = (n, (name, x * 2.0))
        let greeting = strings.join(chosen.1.0, " and ", chosen.2.1.0 ?? "nobody")
        output a = (greeting, chosen.1.1, chosen.0)
        output b = chosen.2
        output c = has(x) and chosen.2.1.1 == true
        output d = made.1.1 ?? -1.0
    "#;
    let model = Model::parse(source).expect("a model");
    let executor = model.compile(&Options::default()).expect("it compiles");
    let row = |n: i32, x: Option<f64>, who: Option<&str>| -> Vec<Value> {
        let inner = Value::Tuple([optional_text(who), Value::from(true)].into());
        let value = |name: &str| match name {
            "name" => Value::from("Ada"),
            "x" => Value::optional(cembra_runtime::Scalar::Float64, x.map(cembra::ScalarValue::Float64)),
            "n" => Value::from(n),
            _ => Value::Tuple([Value::from(7_i64), inner.clone()].into()),
        };
        executor.inputs().iter().map(|field| value(&field.name)).collect()
    };
    let rows = [row(3, Some(1.5), Some("Bob")), row(-3, Some(1.5), None), row(0, None, Some("Eve"))];
    let rows: Vec<&[Value]> = rows.iter().map(Vec::as_slice).collect();
    let outcomes = agreed(source, &rows, Limits::default());
    let first = |at: usize| outcomes[at].as_ref().expect("values")[0].to_string();
    assert_eq!(first(0), "('Ada and Bob', f64?{3}, 4)");
    assert_eq!(first(1), "('ADA and nobody', f64?{1.5}, -4)");
    assert_eq!(first(2), "('ADA and Eve', f64?{NA}, -1)");
}

fn optional_text(text: Option<&str>) -> Value {
    Value::optional(cembra_runtime::Scalar::Text, text.map(|text| cembra::ScalarValue::Text(text.into())))
}

#[test]
fn faults_say_where_from_any_function() {
    let mut source = String::from("input i, j: i32\nlet t0 = i\n");
    for n in 1..40 {
        source.push_str(&format!("let t{n} = if i > {n} then t{} // (j - {n}) else t{} + 1\n", n - 1, n - 1));
    }
    source.push_str("t39");
    for (i, j, place) in [(100, 5, Some("t4 // (j - 5)")), (100, 39, Some("t38 // (j - 39)")), (3, 3, None)] {
        let outcomes = agreed(&source, &[&values([i, j])], Limits::default());
        let found = outcomes[0].as_ref().err().map(|(_, span)| {
            let (start, end) = span.expect("a place");
            &source[start as usize..end as usize]
        });
        assert_eq!(found, place, "{i}, {j}");
    }
}

#[test]
fn loops_go_round_through_functions() {
    let source = "input n: i64\n\
        let inner = fn(k) = seq.reduce(fn(s, i) = s + i * k - (s // (i + 1)), seq.range(k), 0i64)\n\
        output a = seq.reduce(fn(s, k) = if k > 3 then s + inner(k) else s * 2 + k, seq.range(n), 1i64)\n\
        output b = core.while_loop((0i64, n), fn(t) = t.0 < 5, fn(t) = (t.0 + 1, t.1 * 2 - t.0)).1";
    let rows = [0_i64, 1, 4, 9].map(|n| [Value::from(n)]);
    let rows: Vec<&[Value]> = rows.iter().map(<[Value; 1]>::as_slice).collect();
    let outcomes = agreed(source, &rows, Limits::default());
    assert!(outcomes.iter().all(Result::is_ok), "{outcomes:?}");
    // Rounds of all loops are counted together, whatever function they are in; and anew in each evaluation.
    let mut refused = Vec::new();
    for loop_iterations in (0..60).step_by(3) {
        let limits = Limits::default().loop_iterations(loop_iterations);
        let outcomes = agreed(source, &[&[Value::from(9_i64)]], limits);
        refused.push(outcomes[0].as_ref().is_err_and(|(message, _)| message.contains("loop")));
    }
    let enough = refused.iter().position(|refused| !refused).expect("few rounds are enough");
    assert!(enough > 3 && refused[..enough].iter().all(|refused| *refused), "{refused:?}");
}

#[test]
fn a_model_of_a_hundred_thousand_steps_is_native() {
    let mut source = String::from("input x0, x1, x2: f64\nlet t0 = x0\n");
    for n in 1..12_000 {
        let (a, b) = (n % 3, (n + 1) % 3);
        source.push_str(&format!(
            "let t{n} = t{} * 0.5 + where(x{a} < {n}.5, x{b} * 1.{n}, x{a} - t{})\n",
            n - 1,
            n / 2
        ));
    }
    source.push_str("output y = t11999");
    let model = Model::parse(&source).expect("a model");
    let row = values([1.5, -2.0, 7_000.25]);
    let [interpreted, native, quick] =
        [(Backend::Interpreter, Tier::Quick), (Backend::Native, Tier::Optimised), (Backend::Native, Tier::Quick)].map(
            |(backend, tier)| {
                let executor = model.compile(&Options::default().backend(backend).tier(tier)).expect("it compiles");
                executor.session().evaluate(&row).expect("a value")
            },
        );
    assert_eq!(native, interpreted);
    assert_eq!(quick, interpreted);
}

#[test]
fn code_of_what_many_branches_share_is_not_much() {
    let sum = (0..300).map(|n| format!("(c + {n}) * x")).collect::<Vec<_>>().join(" + ");
    let size = |levels: usize| {
        let mut source = format!("input x, z0: f64\nlet c = z0\nlet s = {sum}\n");
        for n in 1..=levels {
            source.push_str(&format!("let z{n} = if x > {n} then s else z{} + 1\n", n - 1));
        }
        let model = Model::parse(&format!("{source}z{levels}")).expect("a model");
        model.machine(&Options::default()).expect("machine code").code.len()
    };
    // The sum is some kilobytes, a level some dozens of bytes.
    let (some, many) = (size(100), size(700));
    assert!(some < 60_000 && many < 120_000, "{some} and {many} bytes");
}

#[test]
fn conditionals_with_one_condition_are_one_branch_in_any_function() {
    // What the next ones use of the first: its result, in either branch and further in; a result that is a literal, an input,
    // a text, missing; results that other functions use, or many branches.
    let source = "input x, y: f64; input i, j: i32; input name: text
        let c = x > y
        let a = where(c, exp(x), y)
        let b = where(c, log(a + 2.0) + a, exp(a * 0.5))
        let d = where(c, where(j > 2, i // j + i, 7), 12 // i)
        let e = where(c, i // (j + 1), where(i > 3, j // i, where(j > 3, d // j, d // 5)))
        let t = where(c, strings.upper(name), 'none')
        let m = where(c, strings.join(t, name), where(i > 0, strings.lower(name), t))
        let o = where(c, i // 2, missing[i32])
        let many = where(i > 0, a * 2.0 + exp(b), where(j > 0, a / 3.0 + exp(b), a + log(b)))
        let again = where(c, exp(many), log(many))
        output sums = (a, b, many, again + a)
        output whole = (d, e, o)
        output texts = (t, m)
        output inside = if j > 1 then where(c, exp(x), y) + where(c, log(x * x + b), a) else where(c, 2.0, exp(y))";
    let source = source.replace('\'', "\"");
    let model = Model::parse(&source).expect("a model");
    let executor = model.compile(&Options::default()).expect("it compiles");
    let row = |x: f64, y: f64, i: i32, j: i32| -> Vec<Value> {
        let value = |name: &str| match name {
            "x" => Value::from(x),
            "y" => Value::from(y),
            "i" => Value::from(i),
            "j" => Value::from(j),
            _ => Value::from("Ada"),
        };
        executor.inputs().iter().map(|field| value(&field.name)).collect()
    };
    let mut rows = Vec::new();
    for (x, y) in [(1.5, 0.5), (0.5, 1.5)] {
        for i in [-3, 0, 2, 9] {
            rows.extend([-1, 0, 2, 5].map(|j| row(x, y, i, j)));
        }
    }
    let rows: Vec<&[Value]> = rows.iter().map(Vec::as_slice).collect();
    let outcomes = agreed(&source, &rows, Limits::default());
    assert!(outcomes.iter().any(Result::is_err) && outcomes.iter().filter(|row| row.is_ok()).count() > 16);
}

#[test]
fn the_first_conditional_that_fails_is_the_one_reported() {
    let source = "input i, j, k: i32
        let c = i > 0
        output z = (where(c, i // j, 1 // k), where(c, 2 // j, i // k), where(c, 3 // k, 4 // j))";
    let cases = [
        ([1, 0, 0], Some("i // j")),
        ([1, 1, 0], Some("3 // k")),
        ([0, 0, 0], Some("1 // k")),
        ([0, 0, 1], Some("4 // j")),
        ([1, 1, 1], None),
    ];
    for (row, place) in cases {
        let outcomes = agreed(source, &[&values(row)], Limits::default());
        let span = outcomes[0].as_ref().err().map(|(_, span)| span.expect("a place"));
        assert_eq!(span.map(|(start, end)| &source[start as usize..end as usize]), place, "{row:?}");
    }
}

#[test]
fn conditionals_with_one_condition_in_loops() {
    let source = "input n, k: i64
        let step = fn(s, i) = where(i > k, s // (i + 1) + i, s * 2) + where(i > k, i // k, s // 3 - i)
        output a = seq.reduce(step, seq.range(n), 1i64)
        output b = core.while_loop((0i64, n), fn(t) = t.0 < 5, fn(t) = (
            where(t.1 > k, t.0 + t.1 // k, t.0) + 1, where(t.1 > k, t.1 // 2, t.1 // 3 + 4))).1";
    let mut rows = Vec::new();
    for n in [0_i64, 1, 7, 30] {
        rows.extend([-2_i64, 0, 3, 50].map(|k| values([n, k])));
    }
    let rows: Vec<&[Value]> = rows.iter().map(<[Value; 2]>::as_slice).collect();
    let outcomes = agreed(source, &rows, Limits::default());
    assert!(outcomes.iter().any(Result::is_err) && outcomes.iter().any(Result::is_ok), "{outcomes:?}");
}

#[test]
fn parts_cross_of_what_nothing_else_needs() {
    // The sum is made and asked for its presence in one line; only the presence is needed elsewhere, and lies in the sum's slot.
    let mut source = String::from("input a, b: f64?\nlet h = core.has(a * b + a)\nlet t0 = a ?? 1.0\n");
    for n in 1..30 {
        source.push_str(&format!("let t{n} = t{} * {n}.5 - t{} / ((b ?? 2.0) + {n})\n", n - 1, n / 2));
    }
    source.push_str("output y = (t29 & h) ?? -1.0\noutput z = h");
    let rows = [values([Some(0.5), Some(0.25)]), values([Some(0.5), None::<f64>]), values([None::<f64>, None])];
    let outcomes = agreed(&source, &[&rows[0], &rows[1], &rows[2]], Limits::default());
    assert_ne!(outcomes[0], outcomes[1]);
    assert_eq!(outcomes[1].as_ref().expect("values")[0], Value::from(-1.0));
}
