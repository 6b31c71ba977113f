//! Tests time limits, which hold for each run: a session with a time limit may run any number of times, and a run that
//! takes too long does not affect the next.

use cembra::columns::InputColumn;
use cembra::json::{JsonExecutor, SerializeExecutor};
use cembra::testing::Mismatch;
use cembra::{
    Backend, Cancellation, FaultKind, Limits, Model, ModelExecutor, Options, Pool, RunOptions, Session, Tensor, Value,
};
use std::time::Duration;

/// A model that runs practically forever if `n` is large, and ends at once if it is small.
const LOOP: &str = "input n: i64; seq.reduce(fn(s, i) = s + i * i, seq.range(n), 0)";
/// A model on arrays that runs practically forever if `n` is large.
const ARRAYS: &str = "input x: [i64], n: i64; math.sum(x * seq.reduce(fn(s, i) = s + math.sum(x), seq.range(n), 0))";
/// A model with tensors that runs practically forever if `n` is large: the loop over numbers is evaluated before the
/// tensors.
const MIXED: &str = "input x: tensor[f64, 1], n: i64
    let from = n * 2
    output y = x * core.cast(seq.reduce(fn(s, i) = s + i * i, seq.range(from), 0i64), f64)";
/// A number of loop iterations that takes hours.
const LONG: i64 = 1 << 50;
const HOUR: Duration = Duration::from_secs(3600);

#[derive(cembra::Input)]
struct Row {
    n: i64,
}

#[derive(cembra::Input)]
struct Elements {
    x: Vec<i64>,
    n: i64,
}

fn options() -> [Options; 3] {
    let limits = Limits::default().loop_iterations(u64::MAX);
    [Backend::Interpreter, Backend::Native, Backend::Tiered]
        .map(|backend| Options::default().backend(backend).limits(limits))
}

/// Returns options with a time limit of 50 ms, for runs that must end by it.
fn soon() -> RunOptions {
    RunOptions::new().time_limit(Duration::from_millis(50))
}

fn is_deadline<T: std::fmt::Debug>(made: Result<T, cembra::Error>) -> bool {
    made.is_err_and(|error| (error.fault_kind(), error.code()) == (Some(FaultKind::Deadline), "deadline"))
}

fn compiled(text: &str, options: &Options) -> Session {
    Model::parse(text).and_then(|model| model.compile(options)).expect("an executor").session()
}

/// Returns sessions, each with inputs for which it runs for hours, and inputs for which it ends at once.
fn sessions(options: &Options) -> Vec<(Session, Vec<Value>, Vec<Value>)> {
    let session = |text: &str| compiled(text, options);
    let x = cembra::values::parse_value("[i64?]{1, 2, 3}").expect("an array");
    let tensor = Value::from(Tensor::new(&[2], vec![1.0, 2.0]).expect("a tensor"));
    let n = [LONG, 3].map(Value::from);
    vec![
        (session(LOOP), vec![n[0].clone()], vec![n[1].clone()]),
        (session(ARRAYS), vec![x.clone(), n[0].clone()], vec![x, n[1].clone()]),
        (session(MIXED), vec![tensor.clone(), n[0].clone()], vec![tensor, n[1].clone()]),
    ]
}

#[test]
fn a_session_runs_again_and_again_within_one_limit() {
    for options in options() {
        for (mut session, _, short) in sessions(&options) {
            let expected = session.evaluate(&short).unwrap();
            session.set_run_options(&RunOptions::new().time_limit(HOUR));
            for _ in 0..1000 {
                assert_eq!(session.evaluate(&short).unwrap(), expected);
            }
            // There is no moment that is so far away.
            session.set_run_options(&RunOptions::new().time_limit(Duration::MAX));
            assert_eq!(session.evaluate(&short).unwrap(), expected);
            // Without time no run begins; then others have time again.
            session.set_run_options(&RunOptions::new().time_limit(Duration::ZERO));
            assert!(is_deadline(session.evaluate(&short)) && is_deadline(session.evaluate(&short)));
            session.set_run_options(&RunOptions::new());
            assert_eq!(session.evaluate(&short).unwrap(), expected);
        }
    }
}

#[test]
fn a_run_after_one_that_was_late_has_the_whole_limit() {
    for options in options() {
        for (mut session, long, short) in sessions(&options) {
            let expected = session.evaluate(&short).unwrap();
            session.set_run_options(&soon());
            // On a busy machine a short run may be late by itself, but not in each of these rounds.
            let is_whole = (0..50).any(|_| {
                assert!(is_deadline(session.evaluate(&long)));
                let mut heard = Vec::new();
                let mut runs: Vec<_> = (0..10).map(|_| session.evaluate(&short)).collect();
                // Values that do not fit are no run.
                assert_eq!(session.evaluate(&[]).unwrap_err().code(), "values");
                let made = session.listen(&short, &mut |name, _| heard.push(name.to_owned()));
                runs.push(made.map(|made| vec![made]));
                if runs.iter().any(|made| made.as_ref().is_err_and(|error| error.code() == "deadline")) {
                    return false;
                }
                assert_eq!(heard.len(), 0);
                runs.into_iter().for_each(|made| assert_eq!(made.unwrap()[0], expected[0]));
                true
            });
            assert!(is_whole);
            // A clone has no limit, and a deadline stays a moment.
            assert_eq!(session.clone().evaluate(&short).unwrap(), expected);
            let deadline = std::time::Instant::now() + Duration::from_millis(20);
            session.set_run_options(&RunOptions::new().deadline(deadline).time_limit(HOUR));
            assert!(is_deadline(session.evaluate(&long)));
            assert!(is_deadline(session.evaluate(&short)));
        }
    }
}

#[test]
fn executors_of_structs_have_their_limit_in_each_run() {
    for options in options() {
        let mut run = Model::parse(LOOP).unwrap().executor::<Row, i64>(&options).unwrap();
        run.set_run_options(&soon());
        let (long, short) = (Row { n: LONG }, Row { n: 3 });
        let rows = || [3, 4, 5].map(|n| Row { n });
        let mut sums = [0; 3];
        for _ in 0..2 {
            assert!(is_deadline(run.run(&long)));
            (0..10).for_each(|_| assert_eq!(run.run(&short).unwrap(), 5));
            // Many rows are one run.
            assert!(is_deadline(run.run_many(&[Row { n: 3 }, Row { n: LONG }, Row { n: 3 }], &mut sums)));
            run.run_many(&rows(), &mut sums).unwrap();
            assert_eq!(sums, [5, 14, 30]);
        }
        let mut run = Model::parse(ARRAYS).unwrap().executor::<Elements, i64>(&options).unwrap();
        run.set_run_options(&soon());
        let row = |n: i64| Elements { x: vec![1, 2], n };
        for _ in 0..2 {
            assert!(is_deadline(run.run(&row(LONG))));
            assert_eq!(run.run(&row(3)).unwrap(), 27);
            // These rows are evaluated one by one, within one limit.
            let mut sums = [0; 2];
            assert!(is_deadline(run.run_many(&[row(3), row(LONG)], &mut sums)));
            run.run_many(&[row(3), row(1)], &mut sums).unwrap();
            assert_eq!(sums, [27, 9]);
        }
    }
}

#[test]
fn the_options_of_batches_and_tests_are_used_again() {
    for options in options() {
        let batch = Model::parse(LOOP).unwrap().batch(&options).unwrap();
        let tested = format!("{LOOP}\ntest 'long' {{ n = {LONG} }} => {{ result = 5 }}\n");
        let tested = Model::parse(&tested).unwrap();
        let short = Model::parse(&format!("{LOOP}\ntest 'short' {{ n = 3 }} => {{ result = 5 }}\n")).unwrap();
        let limit = soon();
        for _ in 0..2 {
            assert!(is_deadline(batch.run_with(&limit, &[InputColumn::values(&[3, LONG])])));
            let made = batch.run_with(&limit, &[InputColumn::values(&[3_i64, 4])]).unwrap();
            assert_eq!(made.columns[0].values::<i64>().unwrap(), [5, 14]);
            let report = tested.run_tests_with(&options, &limit);
            let [Mismatch::Error { found: Some(error), .. }] = &*report.failures[0].mismatches else {
                panic!("{report:?}")
            };
            assert!(is_deadline(Err::<(), _>(error.clone())));
            assert!(short.run_tests_with(&options, &RunOptions::new().time_limit(HOUR)).failures.is_empty());
        }
    }
}

#[test]
fn sessions_of_a_pool_have_limits_of_their_own() {
    for options in options() {
        let pool = Pool::new(compiled(LOOP, &options));
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let pool = &pool;
                scope.spawn(move || {
                    for at in 0..20 {
                        let (made, again) = pool.with(|session| {
                            session.set_run_options(&soon());
                            let n = if (at + thread) % 5 == 0 { LONG } else { 3 };
                            (session.evaluate(&[Value::from(n)]), session.evaluate(&[Value::from(4_i64)]))
                        });
                        assert_eq!(again.unwrap(), [Value::from(14_i64)]);
                        match (at + thread) % 5 {
                            0 => assert!(is_deadline(made)),
                            _ => assert_eq!(made.unwrap(), [Value::from(5_i64)]),
                        }
                    }
                });
            }
        });
        // A session that comes back has no limit any more.
        assert_eq!(pool.with(|session| session.evaluate(&[Value::from(100_000_i64)])).unwrap().len(), 1);
    }
}

#[test]
fn a_token_beside_a_time_limit_ends_runs_for_good() {
    for options in options() {
        for (mut session, long, short) in sessions(&options) {
            let token = Cancellation::new();
            session.set_run_options(&soon().cancellation(token.clone()));
            assert!(is_deadline(session.evaluate(&long)));
            assert!(!token.is_cancelled() && session.evaluate(&short).is_ok());
            token.cancel();
            for _ in 0..2 {
                assert_eq!(session.evaluate(&short).unwrap_err().code(), "cancelled");
            }
            // In the midst of a run, too.
            let token = Cancellation::new();
            session.set_run_options(&RunOptions::new().time_limit(HOUR).cancellation(token.clone()));
            assert!(session.evaluate(&short).is_ok());
            let canceller = std::thread::spawn(move || token.cancel());
            assert_eq!(session.evaluate(&long).unwrap_err().code(), "cancelled");
            canceller.join().expect("a thread");
            // Taking the token away leaves the limit.
            session.set_cancellation(None);
            assert!(session.evaluate(&short).is_ok());
        }
    }
}

/// Setting a token keeps the other run options, for each kind of executor. `run` runs an executor for a long or a short
/// time.
#[test]
fn a_token_leaves_the_other_options_of_runs() {
    fn check<T>(
        executor: &mut T,
        set_options: fn(&mut T, &RunOptions),
        set_token: fn(&mut T, Option<Cancellation>),
        run: impl Fn(&mut T, i64) -> Result<i64, cembra::Error>,
    ) {
        let token = Cancellation::new();
        set_options(executor, &soon());
        set_token(executor, Some(token.clone()));
        assert!(is_deadline(run(executor, LONG)));
        assert_eq!(run(executor, 3).unwrap(), 5);
        token.cancel();
        assert_eq!(run(executor, 3).unwrap_err().code(), "cancelled");
        set_token(executor, None);
        assert_eq!(run(executor, 3).unwrap(), 5);
        assert!(is_deadline(run(executor, LONG)));
        // The same of a moment, and of limits.
        set_options(executor, &RunOptions::new().deadline(std::time::Instant::now()));
        set_token(executor, Some(Cancellation::new()));
        assert!(is_deadline(run(executor, 3)));
        set_token(executor, None);
        assert!(is_deadline(run(executor, 3)));
        set_options(executor, &RunOptions::new().limits(Limits::default().loop_iterations(10)));
        set_token(executor, Some(Cancellation::new()));
        assert_eq!(run(executor, 20).unwrap_err().code(), "iteration-limit");
        // Options take the place of all that was said before.
        set_token(executor, Some(token));
        set_options(executor, &RunOptions::new());
        assert_eq!(run(executor, 20).unwrap(), 2470);
    }
    for options in options() {
        let model = Model::parse(LOOP).unwrap();
        let number = |values: &[Value]| match values {
            [Value::Scalar(cembra::ScalarValue::Int64(n))] => *n,
            _ => panic!("{values:?}"),
        };
        check(
            &mut model.compile(&options).unwrap().session(),
            Session::set_run_options,
            Session::set_cancellation,
            |session, n| session.evaluate(&[Value::from(n)]).map(|made| number(&made)),
        );
        check(
            &mut model.executor::<Row, i64>(&options).unwrap(),
            ModelExecutor::set_run_options,
            ModelExecutor::set_cancellation,
            |executor, n| executor.run(&Row { n }),
        );
        check(
            &mut model.executor_for_rows::<i64>(&options).unwrap(),
            SerializeExecutor::set_run_options,
            SerializeExecutor::set_cancellation,
            |executor, n| executor.run(&serde_json::json!({ "n": n })),
        );
        check(
            &mut model.json_executor(&options).unwrap(),
            JsonExecutor::set_run_options,
            JsonExecutor::set_cancellation,
            |executor, n| {
                let made = executor.run(&format!("{{\"n\": {n}}}"))?;
                Ok(serde_json::from_str::<serde_json::Value>(&made).unwrap()["result"].as_i64().unwrap())
            },
        );
    }
}

/// Operators on texts that take long per byte check the time limit after each MiB. After any other operator on a long
/// text, it is checked too.
#[test]
fn a_time_limit_ends_work_on_a_long_text() {
    let text = "\u{436}a \u{42f}b ".repeat(2_000_000);
    let slow = [
        "strings.length(strings.upper(s))",
        "strings.length(strings.lower(s + \"\u{3a3}\"))",
        "strings.length(strings.replace(s, \"a\", \"bb\"))",
        "strings.length(strings.replace(s, \"\", \"-\"))",
        "strings.length(strings.as_text(strings.encode(s)))",
        "strings.length(strings.strip(s, \"\u{436}\u{42f}ab \"))",
    ];
    let quick = ["strings.find(s, \"zzz\")", "strings.count(s, \"zzz\")", "strings.contains(s, \"zzz\")"];
    for source in slow.into_iter().chain(quick) {
        let model = Model::parse(&format!("input s: text; {source}")).expect("a model");
        let mut session = model.compile(&Options::default()).expect("it compiles").session();
        let row = [Value::from(text.as_str())];
        let mut timed = |limit: Option<Duration>| {
            session.set_run_options(&limit.map_or_else(RunOptions::new, |limit| RunOptions::new().time_limit(limit)));
            let begun = std::time::Instant::now();
            let made = session.evaluate(&row).map(drop);
            (made, begun.elapsed())
        };
        let (made, whole) = timed(None);
        made.expect("a result");
        // The clock ticks every millisecond.
        if whole < Duration::from_millis(20) {
            continue;
        }
        // It may end late on a busy machine, but not each time.
        let late = (0..5).map(|_| {
            let (made, taken) = timed(Some(whole / 8));
            (made.map_err(|error| error.code()), taken)
        });
        let ended: Vec<_> = late.collect();
        assert!(ended.iter().any(|(made, _)| *made == Err("deadline")), "{source}: {ended:?} of {whole:?}");
        if slow.contains(&source) {
            assert!(ended.iter().any(|(_, taken)| *taken < whole * 3 / 4), "{source}: {ended:?} of {whole:?}");
        }
        timed(None).0.expect("a result");
    }
}
