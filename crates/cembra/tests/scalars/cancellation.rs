//! Tests that cancelled evaluations end in both backends, before they begin or in the middle, and that the session can
//! be used again.

use cembra::columns::InputColumn;
use cembra::operators::{Registry, UserOperator};
use cembra::testing::Mismatch;
use cembra::{Backend, Cancellation, FaultKind, Limits, Model, OnError, Options, RunOptions, Value};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

static EVALUATED: AtomicU32 = AtomicU32::new(0);

/// The token that the operator `test.cancel` cancels.
static TOKEN: Mutex<Option<Cancellation>> = Mutex::new(None);

fn registry() -> &'static Registry {
    static REGISTRY: OnceLock<&'static Registry> = OnceLock::new();
    REGISTRY.get_or_init(|| {
        let mut registry = Registry::standard().clone();
        let cancel = UserOperator::new("test.cancel").impure().function(|x: f64| {
            TOKEN.lock().expect("nobody panics").as_ref().inspect(|token| token.cancel());
            x
        });
        let count = UserOperator::new("test.count").impure().function(|x: f64| {
            EVALUATED.fetch_add(1, Ordering::Relaxed);
            x + 1.0
        });
        registry.register(cancel).expect("a new name");
        registry.register(count).expect("a new name");
        registry.leak()
    })
}

fn backends() -> [Options; 2] {
    [Backend::Interpreter, Backend::Native].map(|backend| Options::default().backend(backend).registry(registry()))
}

#[derive(cembra::Input)]
struct Row {
    x: f64,
}

#[test]
fn a_cancelled_token_lets_nothing_begin() {
    let model = Model::parse("input x: f64; 1.0 / x").unwrap();
    for options in backends() {
        let token = Cancellation::new();
        let mut run = model.executor::<Row, f64>(&options).unwrap();
        run.set_cancellation(Some(token.clone()));
        assert_eq!(run.run(&Row { x: 4.0 }).unwrap(), 0.25);
        token.cancel();
        let mut out = 7.0;
        let error = run.run_into(&Row { x: 2.0 }, &mut out).unwrap_err();
        assert_eq!((error.code(), error.fault_kind(), out), ("cancelled", Some(FaultKind::Cancelled), 7.0));
        assert_eq!(
            (error.operator(), error.span(), error.to_string().as_str()),
            (None, None, "the evaluation was cancelled")
        );
        // It stays cancelled until the token is taken away; a clone has none.
        assert!(run.run(&Row { x: 2.0 }).is_err());
        assert_eq!(run.clone().run(&Row { x: 2.0 }).unwrap(), 0.5);
        run.set_cancellation(None);
        assert_eq!(run.run(&Row { x: 2.0 }).unwrap(), 0.5);
    }
}

#[test]
fn an_evaluation_is_cancelled_in_the_middle() {
    // The operator that cancels, then two thousand that count, each needing the one before.
    let mut source = "input x: f64\nlet v0 = test.cancel(x)\n".to_owned();
    for at in 1..=2000 {
        source += &format!("let v{at} = test.count(v{} * 0.5)\n", at - 1);
    }
    source += "output y = v2000\noutput said = strings.join(\"y is \", strings.as_text(y))";
    let model = Model::parse_with(&source, registry(), &Limits::default()).unwrap();
    for options in backends() {
        let mut session = model.compile(&options).unwrap().session();
        let mut evaluate = |token: Option<Cancellation>| {
            *TOKEN.lock().unwrap() = token.clone();
            session.set_cancellation(token);
            EVALUATED.store(0, Ordering::Relaxed);
            let found = session.evaluate(&[Value::from(2.0)]);
            (found.map_err(|error| error.fault_kind()), EVALUATED.load(Ordering::Relaxed))
        };
        let whole = Ok(vec![Value::from(2.0), Value::from("y is 2")]);
        assert_eq!(evaluate(None), (whole.clone(), 2000));
        let (found, count) = evaluate(Some(Cancellation::new()));
        assert_eq!(found, Err(Some(FaultKind::Cancelled)));
        // The interpreter looks every 256 steps, machine code before it calls an operator.
        assert!(count < 300, "{count} evaluated");
        // Without a token, or with one that is not cancelled, all is as before.
        *TOKEN.lock().unwrap() = None;
        assert_eq!(evaluate(None), (whole, 2000));
    }
}

/// A run ends at its deadline with the fault `deadline`, in whatever step it is. A token that was set together with the
/// deadline is not cancelled.
#[test]
fn runs_end_at_their_deadline() {
    // A loop that ignores the deadline ends with `iteration-limit`, so the test fails and does not hang.
    let limits = Limits::default().loop_iterations(1 << 28);
    let endless = "input n: i64; seq.reduce(fn(s, i) = s + i * i, seq.range(n), 0)";
    let arrays =
        "input x: [i64]; seq.reduce(fn(s, i) = s + math.sum(x), seq.range(array.size(x) * 1_000_000_000_000), 0)";
    let n = Value::from(1_i64 << 50);
    let x = cembra::values::parse_value("[i64?]{1, 2, 3}").expect("an array");
    let is_deadline =
        |error: &cembra::Error| (error.fault_kind(), error.code()) == (Some(FaultKind::Deadline), "deadline");
    for backend in [Backend::Interpreter, Backend::Native] {
        let options = Options::default().backend(backend).limits(limits);
        let token = Cancellation::new();
        let soon = || RunOptions::new().cancellation(token.clone()).time_limit(Duration::from_millis(20));
        for (text, value) in [(endless, &n), (arrays, &x)] {
            let model = Model::parse(text).expect("a model");
            let mut session = model.compile(&options).expect("an executor").session();
            session.set_run_options(&soon());
            let error = session.evaluate(std::slice::from_ref(value)).unwrap_err();
            assert!(is_deadline(&error), "{text}: {error}");
            assert_eq!(error.to_string(), "the time limit of the evaluation is over");
            // The next run ends alike; other limits are the model's again.
            assert!(is_deadline(&session.evaluate(std::slice::from_ref(value)).unwrap_err()));
            session.set_run_options(&RunOptions::new().limits(Limits::default().loop_iterations(10)));
            let error = session.evaluate(std::slice::from_ref(value)).unwrap_err();
            assert_eq!(error.code(), "iteration-limit");
        }
        let batch = Model::parse(endless).unwrap().batch(&options).expect("a batch");
        let run =
            |on_error| batch.run_with(&soon().clone().on_error(on_error), &[InputColumn::values(&[1_i64, 1 << 50])]);
        for on_error in [OnError::Fail, OnError::Missing] {
            assert!(is_deadline(&run(on_error).unwrap_err()));
        }
        let mut typed = Model::parse("input x: f64; x + 1.0").unwrap().executor::<Row, f64>(&options).unwrap();
        typed.set_run_options(&RunOptions::new().deadline(Instant::now()));
        assert!(is_deadline(&typed.run(&Row { x: 1.0 }).unwrap_err()));
        typed.set_run_options(&RunOptions::new());
        assert_eq!(typed.run(&Row { x: 1.0 }).unwrap(), 2.0);
        // The columns of many rows are under the same terms.
        let sum = "input x: f64; seq.reduce(fn(s, i) = s + 1.0, seq.range(core.cast(x, i64)), 0.0)";
        let mut many = Model::parse(sum).unwrap().executor::<Row, f64>(&options).unwrap();
        let (rows, mut sums) = ([3.0, 100.0].map(|x| Row { x }), [0.0; 2]);
        many.set_run_options(&RunOptions::new().limits(limits.loop_iterations(10)));
        assert_eq!(many.run_many(&rows, &mut sums).unwrap_err().code(), "iteration-limit");
        let ended = Cancellation::new();
        ended.cancel();
        many.set_run_options(&RunOptions::new().cancellation(ended));
        assert_eq!(many.run_many(&rows, &mut sums).unwrap_err().code(), "cancelled");
        many.set_run_options(&RunOptions::new().deadline(Instant::now()).rows(7).on_error(OnError::Missing));
        assert!(is_deadline(&many.run_many(&rows, &mut sums).unwrap_err()));
        many.set_run_options(&RunOptions::new());
        many.run_many(&rows, &mut sums).unwrap();
        assert_eq!(sums, [3.0, 100.0]);
        let tested = format!(
            "{endless}\ntest 'long' {{ n = 1125899906842624 }} => {{ result = 5 }}\ntest 'later' {{ n = 1 }} => {{ result = 0 }}\n"
        );
        let report = Model::parse(&tested).unwrap().run_tests_with(&options, &soon());
        let ends = report.failures.iter().flat_map(|failure| &failure.mismatches);
        let ends: Vec<bool> =
            ends.map(|one| matches!(one, Mismatch::Error { found: Some(e), .. } if is_deadline(e))).collect();
        assert_eq!((report.cases, ends), (2, vec![true, true]));
        // That the time is over is not what the model is to do.
        let expected = format!("{endless}\ntest 'long' {{ n = 1125899906842624 }} => error 'deadline'\n");
        let report = Model::parse(&expected).unwrap().run_tests_with(&options, &soon());
        let [Mismatch::Error { expected: Some(_), found: Some(error) }] = &*report.failures[0].mismatches else {
            panic!("{report:?}")
        };
        assert!(is_deadline(error), "{error}");
        assert!(!token.is_cancelled());
    }
}
