//! Tests loops in both backends: the number of evaluations of an operator inside a loop, the limit on iterations, and
//! the limits that keep functions from producing too large results.

use cembra::operators::{Registry, UserOperator};
use cembra::{Backend, Cancellation, Limits, Model, Options, Value};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock};

static COUNT: AtomicU32 = AtomicU32::new(0);

/// Returns the standard operators and two operators that square a number and count their evaluations: `test.count`
/// fails for 13; `test.total` is declared infallible, but panics for 13.
fn registry() -> &'static Registry {
    static REGISTRY: OnceLock<&'static Registry> = OnceLock::new();
    REGISTRY.get_or_init(|| {
        let mut registry = Registry::standard().clone();
        let count = UserOperator::new("test.count").impure().fallible(|i: i64| {
            COUNT.fetch_add(1, Ordering::Relaxed);
            if i == 13 { Err("unlucky") } else { Ok(i * i) }
        });
        let total = UserOperator::new("test.total").impure().function(|i: i64| {
            COUNT.fetch_add(1, Ordering::Relaxed);
            assert_ne!(i, 13, "unlucky");
            i * i
        });
        registry.register(count).expect("a new name");
        registry.register(total).expect("a new name");
        registry.leak()
    })
}

/// Returns the number of evaluations of `test.count` in an expression of `n` and `k`, and the result; `None` for an
/// error.
fn run(expression: &str, n: i64, k: i64) -> (u32, Option<Value>) {
    let source = format!("input n, k: i64\n{expression}");
    let model = Model::parse_with(&source, registry(), &Limits::default()).expect("a model");
    let subjects = [(Backend::Interpreter, 1), (Backend::Native, 2_000), (Backend::Native, 6), (Backend::Native, 1)];
    let results = subjects.map(|(backend, native_steps)| {
        let limits = Limits::default().native_steps(native_steps);
        let options = Options::default().backend(backend).limits(limits).registry(registry());
        let executor = model.compile(&options).expect("it compiles");
        let values: Vec<Value> =
            executor.inputs().iter().map(|field| Value::from(if &*field.name == "n" { n } else { k })).collect();
        let before = COUNT.load(Ordering::Relaxed);
        let result = executor.session().evaluate(&values);
        (COUNT.load(Ordering::Relaxed) - before, result.ok().map(|values| values[0].clone()))
    });
    results.iter().for_each(|result| assert_eq!(results[0], *result, "{expression}"));
    results[0].clone()
}

#[test]
fn what_does_not_change_is_evaluated_once_and_only_if_needed() {
    let int = |value: i64| Some(Value::from(value));
    // In each round.
    let each = "seq.reduce(fn(s, i) = s + test.count(i), seq.range(n), 0i64)";
    assert_eq!(run(each, 4, 0), (4, int(14)));
    assert_eq!(run(each, 0, 0), (0, int(0)));
    // Once, before the rounds; not at all without rounds, though it would fail.
    let once = "seq.reduce(fn(s, i) = s + test.count(k), seq.range(n), 0i64)";
    assert_eq!(run(once, 4, 2), (1, int(16)));
    assert_eq!(run(once, 0, 13), (0, int(0)));
    assert_eq!(run(once, 1, 13), (1, None));
    // An inner loop is like a branch, for it may have no rounds: once for each time it runs, and never if it does not.
    let inner = "let c = test.count(k)\nseq.reduce(fn(s, i) = s + seq.reduce(fn(t, j) = t + c, seq.range(i), 0i64), seq.range(n), 0i64)";
    assert_eq!(run(inner, 4, 2), (3, int(24)));
    assert_eq!(run(inner, 0, 13), (0, int(0)));
    // What only a branch needs stays in it: it is never evaluated where the branch is not taken.
    let branch = "seq.reduce(fn(s, i) = s + where(i > 2, test.count(k), 1i64), seq.range(n), 0i64)";
    assert_eq!(run(branch, 3, 13), (0, int(3)));
    assert_eq!(run(branch, 4, 2), (1, int(7)));
    // So does what cannot fail by its record: nobody knows what a function of the user does or takes. Where no round takes the
    // branch it is not evaluated, else once for each that does.
    let opaque = "seq.reduce(fn(s, i) = s + where(i > 2, test.total(k), 1i64), seq.range(n), 0i64)";
    assert_eq!(run(opaque, 3, 13), (0, int(3)));
    assert_eq!(run(opaque, 3, 2), (0, int(3)));
    assert_eq!(run(opaque, 4, 2), (1, int(7)));
    assert_eq!(run(opaque, 6, 2), (3, int(15)));
    assert_eq!(run(opaque, 6, 13), (1, None));
    // What every round evaluates leaves the loop, whatever it does.
    let always = "seq.reduce(fn(s, i) = s + where(i > 2, i, 1i64) * test.total(k), seq.range(n), 0i64)";
    assert_eq!(run(always, 6, 2), (1, int(60)));
    assert_eq!(run(always, 0, 13), (0, int(0)));
    // A loop in a branch that is not taken does not run; one that two branches share runs once.
    let skipped = "where(k > 0, seq.reduce(fn(s, i) = s + test.count(i), seq.range(n), 0i64), 5i64)";
    assert_eq!(run(skipped, 4, 0), (0, int(5)));
    let shared = "let r = seq.reduce(fn(s, i) = s + test.count(i), seq.range(n), 0i64)\nwhere(k > 0, r, 1i64) * where(k > 1, r, 2i64)";
    assert_eq!(run(shared, 4, 0), (0, int(2)));
    assert_eq!(run(shared, 4, 1), (4, int(28)));
    assert_eq!(run(shared, 4, 2), (4, int(196)));
    // What branches inside and outside of a loop share is evaluated once, before the loop, and only if one of them is taken
    // and, for the one inside, there is a round.
    let through = "let c = test.count(k)\nseq.reduce(fn(s, i) = s + where(k > 12, i, c), seq.range(n), 0i64) + where(n < 1 or n > 5, 5i64, c)";
    assert_eq!(run(through, 6, 13), (0, int(20)));
    assert_eq!(run(through, 0, 2), (0, int(5)));
    assert_eq!(run(through, 6, 2), (1, int(29)));
    assert_eq!(run(through, 3, 2), (1, int(16)));
    assert_eq!(run(through, 3, 13), (1, None));
    // A choice that each round makes for itself is not known before the loop: one round is enough to evaluate it.
    let chosen = "let c = test.count(k)\nseq.reduce(fn(s, i) = s + where(i > 8, c, i), seq.range(n), 0i64) + where(n < 9, 5i64, c)";
    assert_eq!(run(chosen, 0, 13), (0, int(5)));
    assert_eq!(run(chosen, 3, 2), (1, int(8)));
    // A loop that does not depend on the loop around it runs once.
    let nested =
        "seq.reduce(fn(s, i) = s + seq.reduce(fn(t, j) = t + test.count(j), seq.range(3), 0i64), seq.range(n), 0i64)";
    assert_eq!(run(nested, 5, 0), (3, int(25)));
    assert_eq!(run(nested, 0, 0), (0, int(0)));
    // Only the element that is asked for.
    let element = "seq.at(seq.map(fn(i) = test.count(i), seq.range(n)), k)";
    assert_eq!(run(element, 20, 3), (1, int(9)));
    assert_eq!(run(element, 20, 13), (1, None));
}

#[test]
fn a_loop_without_end_ends() {
    for backend in [Backend::Interpreter, Backend::Native] {
        let model =
            Model::parse("input x: i64; core.while_loop(x, fn(s) = s >= 0, fn(s) = s ^ 1)".replace('^', "*").as_str());
        let executor = model.and_then(|model| model.compile(&Options::default().backend(backend))).expect("a model");
        let error = executor.session().evaluate(&[Value::from(1_i64)]).expect_err("no end");
        assert_eq!((error.code(), error.operator()), ("iteration-limit", Some("core.while_loop")), "{error}");
        assert!(error.to_string().contains("`loop_iterations`"), "{error}");
    }
}

#[test]
fn functions_cannot_make_too_much() {
    // Each function calls the one before twice: 2 to the 40 calls.
    let mut doubling = String::from("input x: i64\nlet g0 = fn(v) = v + x\n");
    for at in 1..40 {
        doubling += &format!("let g{at} = fn(v) = g{0}(g{0}(v))\n", at - 1);
    }
    let mut chain = String::from("input x: i64\nlet g0 = fn(v) = v + x\n");
    for at in 1..1000 {
        chain += &format!("let g{at} = fn(v) = g{}(v)\n", at - 1);
    }
    let nested =
        (0..100).fold("0i64".to_owned(), |inner, _| format!("seq.reduce(fn(s, i) = s + i + {inner}, seq.range(2), x)"));
    for (source, says) in [
        (format!("{doubling}g39(1i64)"), "`instantiation`"),
        (format!("{chain}g999(1i64)"), "more than 64 levels deep"),
        (format!("input x: i64\n{nested}"), "deep"),
    ] {
        let error = Model::parse(&source).and_then(|model| model.compile(&Options::default())).expect_err(says);
        assert_eq!(error.code(), "limit", "{error}");
        assert!(error.to_string().contains(says), "{error}");
    }
}

#[test]
fn a_loop_can_be_cancelled() {
    // The operator cancels the evaluation that it is part of, in the third round of many.
    static TOKEN: Mutex<Option<Cancellation>> = Mutex::new(None);
    let mut registry = Registry::standard().clone();
    let stop = UserOperator::new("test.stop").impure().function(|i: i64| {
        if i == 2 {
            TOKEN.lock().expect("not poisoned").as_ref().expect("a token").cancel();
        }
        i
    });
    registry.register(stop).expect("a new name");
    let registry = registry.leak();
    let source = "input n: i64\nseq.reduce(fn(s, i) = s + test.stop(i), seq.range(n), 0i64)";
    let model = Model::parse_with(source, registry, &Limits::default()).expect("a model");
    for backend in [Backend::Interpreter, Backend::Native] {
        let options = Options::default().backend(backend).registry(registry);
        let mut session = model.compile(&options).expect("it compiles").session();
        let token = Cancellation::new();
        *TOKEN.lock().expect("not poisoned") = Some(token.clone());
        session.set_cancellation(Some(token));
        let error = session.evaluate(&[Value::from(1_000_000_000_i64)]).expect_err("cancelled");
        assert_eq!(error.code(), "cancelled", "{error}");
    }
}
