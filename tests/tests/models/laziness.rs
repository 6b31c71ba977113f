//! What a conditional evaluates and what it does not: the table of the where pass, line by line, in both backends. The
//! witness is `i // j` with `j` 0, which fails if it is evaluated.

use cembra::{Backend, Error, Limits, Model, Options, QType, ScalarValue, Value};
use cembra_runtime::Scalar;

/// The witness, a condition that holds where it is safe, and another that the caller chooses.
const PRELUDE: &str = "input i, j, k: i32\ninput u: unit?\nlet nz = j != 0\nlet q = i // j\n";

/// The bytes for strings where a test does not say how many.
const ARENA: usize = 1 << 20;

/// What comes of it, or the error.
type Outcome = Result<Vec<Value>, Error>;

fn run(expression: &str, j: i32, u: bool, backend: Backend, without: &[&str]) -> Outcome {
    let [outcome] = run_within(expression, j, [u], backend, without, ARENA);
    outcome
}

/// The same for several `u`, with so many bytes for strings. Where native code is cut into functions makes no difference.
fn run_within<const N: usize>(
    expression: &str,
    j: i32,
    us: [bool; N],
    backend: Backend,
    without: &[&str],
    arena: usize,
) -> [Outcome; N] {
    let whole = Limits::default().arena_bytes(arena);
    let said =
        |all: &[Outcome; N]| all.clone().map(|outcome| outcome.map_err(|error| (error.to_string(), error.span())));
    let outcomes = run_with(expression, j, us, backend, without, whole);
    // The interpreter has no functions.
    let cuts: &[usize] = if backend == Backend::Native { &[1, 6] } else { &[] };
    for &native_steps in cuts {
        let cut = run_with(expression, j, us, backend, without, whole.native_steps(native_steps));
        assert_eq!(said(&outcomes), said(&cut), "{expression} in pieces of {native_steps}");
    }
    outcomes
}

fn run_with<const N: usize>(
    expression: &str,
    j: i32,
    us: [bool; N],
    backend: Backend,
    without: &[&str],
    limits: Limits,
) -> [Outcome; N] {
    let options = Options::default().backend(backend).limits(limits);
    let options = without.iter().fold(options, |options, pass| options.without_pass(pass));
    let model = Model::parse(&format!("{PRELUDE}{expression}"));
    let executor = match model.and_then(|model| model.compile(&options)) {
        Ok(executor) => executor,
        Err(error) => return us.map(|_| Err(error.clone())),
    };
    assert_eq!(executor.backend(), backend);
    us.map(|u| {
        let mask = Value::optional(Scalar::Unit, u.then_some(ScalarValue::Unit));
        let values: Vec<Value> = executor
            .inputs()
            .iter()
            .map(|field| match &*field.name {
                "i" => Value::from(7),
                "j" => Value::from(j),
                "k" => Value::from(100),
                _ => mask.clone(),
            })
            .collect();
        executor.session().evaluate(&values)
    })
}

/// Checks one line: what comes of it with `j` 0, none for an error, and with `j` 2; each with `u` present and missing.
fn line(expression: &str, at_zero: [Option<i32>; 2], at_two: [i32; 2]) {
    for backend in [Backend::Interpreter, Backend::Native] {
        for without in [&[][..], &["fold", "optimise"]] {
            let of = |j: i32| run_within(expression, j, [true, false], backend, without, ARENA);
            for (found, expected) in of(0).into_iter().zip(at_zero) {
                match expected {
                    Some(value) => assert_eq!(found.expect(expression), [Value::from(value)], "{expression}"),
                    None => {
                        let error = found.expect_err(expression);
                        assert_eq!((error.code(), error.operator()), ("div-by-zero", Some("math.floor_divide")));
                        let source = format!("{PRELUDE}{expression}");
                        assert_eq!(error.span().map(|span| span.text(&source)), Some("i // j"), "{expression}");
                    }
                }
            }
            let found = of(2).map(|found| found.expect(expression));
            assert_eq!(found, at_two.map(|value| vec![Value::from(value)]), "{expression}");
        }
    }
}

const FAILS: [Option<i32>; 2] = [None; 2];

fn both(value: i32) -> [Option<i32>; 2] {
    [Some(value); 2]
}

#[test]
fn a_branch_of_its_own_is_skipped() {
    line("output y = where(nz, q, -1)", both(-1), [3; 2]);
    line("output y = where(j == 0, -1, q)", both(-1), [3; 2]);
}

#[test]
fn what_the_branch_root_dominates_is_skipped() {
    line("output y = where(nz, q + q, i)", both(7), [6; 2]);
    line("output y = where(nz, (q + k) * (q - k), i)", both(7), [-9991; 2]);
}

#[test]
fn nested_conditionals_are_skipped_with_their_branch() {
    line("output y = where(nz, where(u, q, -q), i)", both(7), [3, -3]);
    line("output y = where(u, where(nz, q, i), k)", [Some(7), Some(100)], [3, 100]);
}

#[test]
fn what_both_branches_share_is_evaluated() {
    line("output y = where(nz, q, q + 1)", FAILS, [3; 2]);
    line("output y = where(nz, q + 2, q + 1)", FAILS, [5; 2]);
    line("output y = where(nz, q, q)", FAILS, [3; 2]);
}

#[test]
fn what_two_conditionals_share_is_evaluated_if_one_needs_it() {
    // Arolla evaluates these in every case.
    line("output y = where(u, q, where(nz, q, i))", [None, Some(7)], [3; 2]);
    line("output y = where(nz, q, i) + where(nz, q, k)", both(107), [6; 2]);
    line("output y = where(nz, where(u, q, i) + where(u, q, k), k)", both(100), [6, 107]);
}

#[test]
fn what_a_branch_and_the_rest_share_is_evaluated() {
    line("output y = where(nz, q, i) + q", FAILS, [6; 2]);
    line("output y = where(q > 0, q, i)", FAILS, [3; 2]);
    line("output y = where(nz, where(q > 0, q, i), i)", both(7), [3; 2]);
}

#[test]
fn only_the_shared_part_is_evaluated() {
    // `q` is used by one branch alone; `i * k` by both.
    line("output y = where(nz, q + i * k, i * k)", both(700), [703; 2]);
    line("output y = where(nz, q * (i - k), i - k)", both(-93), [-279; 2]);
}

#[test]
fn nothing_but_conditionals_skips() {
    line("output y = (i & u) | q", FAILS, [7, 3]);
    line("output y = q & nz ?? -1", FAILS, [3; 2]);
    line("output y = bool.logical_if(bool.not_equal(j, 0) & u, q, -1, 3)", FAILS, [3; 2]);
}

#[test]
fn what_a_rewrite_makes_a_conditional_skips_what_only_one_branch_needs() {
    // Arolla rewrites these too. What something else needs as well is evaluated, as if nothing had been rewritten.
    for backend in [Backend::Interpreter, Backend::Native] {
        for (expression, value) in [
            ("bool.logical_if(bool.not_equal(j, 0), q, -1, -2)", -1),
            ("bool.logical_if(bool.equal(j, 0), -1, q, q)", -1),
            ("(q & nz | i & (not nz)) ?? 0", 7),
        ] {
            let text = format!("output y = {expression}");
            assert_eq!(run(&text, 0, true, backend, &[]).expect(expression), [Value::from(value)]);
            assert_eq!(run(&text, 0, true, backend, &["optimise"]).expect_err(expression).code(), "div-by-zero");
            let text = format!("{text}\noutput z = where(nz, q + 1, 5)");
            assert_eq!(run(&text, 0, true, backend, &[]).expect_err(expression).code(), "div-by-zero");
            assert_eq!(run(&text, 2, true, backend, &[]).expect(expression)[1], Value::from(4));
        }
    }
}

#[test]
fn literals_that_fail_do_so_where_they_are_evaluated() {
    // An operator on literals for every kind of fault. Only strings too long to fold need an arena at run time.
    let long = "x".repeat(1100);
    let failing = [
        ("div-by-zero", "1 // (3 - 3)".to_owned(), "math.floor_divide"),
        ("cast-range", "to_int32(1e20f64)".to_owned(), "core.to_int32"),
        ("missing-value", "get_optional_value(missing[i32])".to_owned(), "core.get_optional_value"),
        ("assertion", "with_assertion(5, 1 > 2, \"no\")".to_owned(), "core.with_assertion"),
        (
            "invalid",
            "to_int32(normal_distribution_inverse_cdf(2f64))".to_owned(),
            "math.normal_distribution_inverse_cdf",
        ),
        ("parse", "strings.parse_int32(\"1x\")".to_owned(), "strings.parse_int32"),
        ("index-range", "to_int32(seq.at(seq.range(2), 2))".to_owned(), "seq.at"),
        ("iteration-limit", "core.while_loop(1, fn(x) = x > 0, fn(x) = 1)".to_owned(), "core.while_loop"),
        ("time-range", "date.year(date.add_years(date\"9999-12-31\", 1))".to_owned(), "date.add_years"),
        ("arena-limit", format!("to_int32(strings.length(strings.upper(\"{long}\")))"), "strings.upper"),
    ];
    let kinds: Vec<&str> = failing.iter().map(|(code, ..)| *code).collect();
    // No token ends a literal, and none is worth so much work, or as large as another.
    let impossible = [cembra::FaultKind::WorkLimit, cembra::FaultKind::SizeMismatch];
    let possible = cembra::FaultKind::ALL.iter().filter(|kind| !kind.is_of_token() && !impossible.contains(kind));
    assert!({ possible }.all(|kind| kinds.contains(&kind.name())), "{kinds:?}");
    for (code, constant, operator) in &failing {
        for (form, needs) in [
            // Each with whether the constant is needed for `u` present, and for `u` missing.
            ("F", [true, true]),
            ("where(u, F, i)", [true, false]),
            ("where(u, i, F)", [false, true]),
            ("where(u, where(nz, F, i), i)", [true, false]),
            ("where(u, i + 1, where(u, F, i)) * 2", [false, false]),
            ("where(u, F, i) + where(u, i, F)", [true, true]),
            ("where(missing, F, i)", [false, false]),
            ("where(present, i, where(u, F, F + 1))", [false, false]),
            ("where(u, (F, i).0, i)", [true, false]),
        ] {
            let expression = format!("output y = {}", form.replace('F', constant));
            for backend in [Backend::Interpreter, Backend::Native] {
                for without in [&[][..], &["fold", "optimise"]] {
                    let found = run_within(&expression, 2, [true, false], backend, without, 1000);
                    for (found, needed) in found.into_iter().zip(needs) {
                        match found {
                            Err(error) if needed => {
                                assert_eq!((error.code(), error.operator()), (*code, Some(*operator)), "{expression}");
                                let source = format!("{PRELUDE}{expression}");
                                let place = error.span().map(|span| span.text(&source)).expect("a place");
                                assert!(constant.contains(place), "{place} in {expression}");
                            }
                            Ok(_) if !needed => {}
                            other => panic!("{expression} without {without:?}, needed {needed}: {other:?}"),
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn a_default_that_cannot_be_needed_is_not_evaluated() {
    // The rule needs the optimiser; Arolla has it too.
    for backend in [Backend::Interpreter, Backend::Native] {
        let text = "output y = i | q";
        assert_eq!(run(text, 0, true, backend, &[]).expect(text), [Value::from(7)]);
        assert_eq!(run(text, 0, true, backend, &["optimise"]).expect_err(text).code(), "div-by-zero");
    }
}

#[test]
fn outputs_are_unconditional() {
    let text = "output y = where(nz, q, -1)\noutput z = q";
    for backend in [Backend::Interpreter, Backend::Native] {
        assert_eq!(run(text, 0, true, backend, &[]).expect_err(text).code(), "div-by-zero");
        assert_eq!(run(text, 2, true, backend, &[]).expect(text), [Value::from(3), Value::from(3)]);
    }
}

#[test]
fn a_failure_is_only_that_of_the_path_taken() {
    // Each leaf of the tree fails in its own way, but for one.
    let text = "input x: i32, f: f64
        output y = if x < 0 then to_int32(f)
            else if x == 0 then 1 // x
            else if x == 1 then with_assertion(x, x > 5, \"too small\")
            else if x == 2 then get_optional_value(missing[i32] & (x > 5))
            else x";
    let model = Model::parse(text).expect(text);
    for backend in [Backend::Interpreter, Backend::Native] {
        let options = Options::default().backend(backend);
        let executor = model.compile(&options).expect("a model");
        let mut session = executor.session();
        let mut outcome = |x: i32, f: f64| match session.evaluate(&[Value::from(x), Value::from(f)]) {
            Ok(values) => values[0].to_string(),
            Err(error) => error.code().to_owned(),
        };
        let found: Vec<String> = [(-1, 2.5), (-1, f64::NAN), (0, f64::NAN), (1, 0.0), (2, 0.0), (3, f64::NAN)]
            .map(|(x, f)| outcome(x, f))
            .into();
        assert_eq!(found, ["2", "cast-range", "div-by-zero", "assertion", "missing-value", "3"], "{}", backend.name());
    }
}

#[test]
fn leaves_that_no_path_needs_any_more_are_no_inputs() {
    let model = Model::parse("input x, y: f64\ninput t: text\noutput z = where(missing[unit], y, x)").expect("a model");
    for backend in [Backend::Interpreter, Backend::Native] {
        let executor = model.compile(&Options::default().backend(backend)).expect("a model");
        let names: Vec<(&str, &QType)> = executor.inputs().iter().map(|f| (&*f.name, &f.qtype)).collect();
        assert_eq!(names, [("x", &QType::FLOAT64)]);
    }
}

#[test]
fn a_path_that_contradicts_itself_needs_nothing() {
    // The outer conditional takes the inner one where the inner one takes the literal: the division is never needed.
    let text = "input x: f64?
        let close = math.is_close(x, math.expm1(x))
        let inner = core.where(close, 1, 1 // 0)
        output y = core.where(close, inner, 2)
        output z = inner | 3";
    let never_needed = text.replace("output z = inner | 3", "");
    let value = Value::optional(Scalar::Float64, Some(ScalarValue::Float64(1.0)));
    for backend in [Backend::Interpreter, Backend::Native] {
        for without in [&[][..], &["optimise"], &["fold", "optimise"]] {
            let options = Options::default().backend(backend);
            let options = without.iter().fold(options, |options, pass| options.without_pass(pass));
            let run = |text: &str| {
                let executor = Model::parse(text).and_then(|model| model.compile(&options)).expect("a model");
                executor.session().evaluate(std::slice::from_ref(&value))
            };
            assert_eq!(run(&never_needed).expect("nothing fails")[0], Value::from(2), "{without:?}");
            assert_eq!(run(text).expect_err("needed by `z`").code(), "div-by-zero");
        }
    }
}

/// A rewrite goes into the branches of `t`, which is still needed as it is by the condition: both ask whether `nz` holds, and the second
/// asks the condition, too, which needs what they share.
#[test]
fn a_conditional_that_is_asked_again_by_its_own_value_stays_lazy() {
    let t = "let t = where(nz, q, 0)\n";
    line(&format!("{t}output y = (if t > 5 then missing[i32] else t) ?? -1"), [Some(0); 2], [3; 2]);
    line(
        &format!("{t}output y = (if u then (if t > 2 then missing[i32] else t) else k) ?? -1"),
        [Some(0), Some(100)],
        [-1, 100],
    );
    line(
        &format!("{t}output y = (if t + k > 5 then (if u then missing[i32] else t) else t) ?? -1"),
        [Some(-1), Some(0)],
        [-1, 3],
    );
}

/// Two uses of `q` ask whether `nz` holds, each under conditions of its own. Neither asks all that the other one asks, so that the guard of `q`
/// has to be wide enough for both.
#[test]
fn a_use_under_other_conditions_is_guarded_by_them() {
    let first = "where(k < 1, where(nz, q, 0), 1)";
    let second = "where(u, where(i > 0, where(nz, q, 5), 2), 3)";
    line(&format!("output y = {first} + {second}"), [Some(6), Some(4)], [4, 4]);
    line(&format!("output y = {second} + {first}"), [Some(6), Some(4)], [4, 4]);
}
