//! Tests the tiered backend: every tier gives the interpreter's results, whichever thread changes the tier and when. A
//! model that cannot be compiled stays interpreted, and the reason is reported.

use cembra::metrics::{Counters, Event, Metrics};
use cembra::native::{Tier, Tiering};
use cembra::{Backend, Error, Executor, Limits, Model, Optional, Options, Session, Value};
use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Barrier, Mutex};
use std::time::Duration;

/// Returns options with which the tiered backend compiles and changes tiers only when the test requests it.
fn by_hand() -> Options {
    Options::default().backend(Backend::Tiered).tiering(Tiering::default().after_calls(u32::MAX).by_hand(true))
}

/// Returns the text of a model with more steps than one compilation optimises. Each step affects the result.
fn large() -> String {
    let mut text = String::from("input x: f64\nlet s0 = x\n");
    for at in 0..700 {
        let operation = ["sin", "sqrt", "exp", "abs"][at % 4];
        let _ = writeln!(text, "let s{} = math.add({operation}(s{at} / 3.0), {at}.5)", at + 1);
    }
    text + "output y = s700\n"
}

/// Returns models with one input of type f64, with faults, branches, loops, strings and functions.
fn models() -> Vec<Model> {
    let texts = [
        "input x: f64; exp(x) + sin(x) ** 3.0".to_owned(),
        "input x: f64; let n = core.to_int64(x); where(x > 2.0, 100 // (n - 3), n)".to_owned(),
        "input x: f64; strings.join(\"<\", strings.as_text(x), where(x > 1.0, \"!\", \">\"))".to_owned(),
        "input x: f64; seq.reduce(fn(sum, i) = sum * x + core.to_float64(i), seq.range(10i64), 0.0)".to_owned(),
        "input x: f64; output a = x & (x > 0.0); output b = 1.0 / x".to_owned(),
        large(),
    ];
    texts.into_iter().map(|text| Model::parse(&text).unwrap_or_else(|error| panic!("{text}: {error}"))).collect()
}

const ROWS: [f64; 8] = [-1e300, -1.5, -0.0, 0.25, 1.0, 3.0, 3.5, 7e5];

/// Evaluates a row, and returns the results or the fault as text. Results show the sign of a zero, faults their place.
fn answer(session: &mut Session, x: f64) -> String {
    match session.evaluate(&[Value::from(x)]) {
        Ok(values) => values.iter().map(|value| format!("{value:?} ")).collect(),
        Err(error) => fault(&error),
    }
}

fn fault(error: &Error) -> String {
    format!("{} {:?} {:?}", error.code(), error.operator(), error.span())
}

fn answers(executor: &Executor) -> Vec<String> {
    let mut session = executor.session();
    ROWS.iter().map(|x| answer(&mut session, *x)).collect()
}

#[test]
fn every_tier_gives_the_same_bits() {
    let mut rungs = Vec::new();
    for model in models() {
        let expected = answers(&model.compile(&Options::default().backend(Backend::Interpreter)).expect("a model"));
        for highest in [Tier::Quick, Tier::Optimised] {
            let executor = model.compile(&by_hand().tier(highest)).expect("a model");
            let mut session = executor.session();
            executor.finish_tiers();
            assert!(executor.tiers_are_finished() && executor.fallback().is_none(), "{:?}", executor.fallback());
            let mut seen = vec![executor.tier()];
            loop {
                assert_eq!(answers(&executor), expected, "{:?}", executor.tier());
                // A session that was there before sees the change too.
                assert_eq!(answer(&mut session, ROWS[3]), expected[3]);
                let before = executor.tier();
                if executor.advance() == before {
                    break;
                }
                seen.push(executor.tier());
            }
            assert_eq!((executor.tier(), executor.backend()), (Some(highest), Backend::Native));
            rungs.push(seen);
        }
    }
    // Small models are optimised at once, the large one is compiled twice.
    assert_eq!(rungs[1], [None, Some(Tier::Optimised)]);
    assert_eq!(rungs[rungs.len() - 2], [None, Some(Tier::Quick)]);
    assert_eq!(rungs[rungs.len() - 1], [None, Some(Tier::Quick), Some(Tier::Optimised)]);
    let faults = answers(&models()[1].compile(&Options::default()).expect("a model"));
    assert!(faults.iter().any(|answer| answer.starts_with("div-by-zero")), "{faults:?}");
}

#[test]
fn threads_see_the_same_bits_while_tiers_change() {
    for model in models() {
        let expected = answers(&model.compile(&Options::default().backend(Backend::Interpreter)).expect("a model"));
        let executor = model.compile(&by_hand()).expect("a model");
        let barrier = Barrier::new(4);
        let is_done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    let mut session = executor.clone().session();
                    barrier.wait();
                    let mut is_last = false;
                    while !is_last {
                        // One more round after the last change, so that each tier is called.
                        is_last = is_done.load(Ordering::Acquire);
                        for (x, expected) in ROWS.iter().zip(&expected) {
                            assert_eq!(answer(&mut session, *x), *expected);
                        }
                    }
                });
            }
            barrier.wait();
            executor.finish_tiers();
            while executor.advance() != Some(Tier::Optimised) {
                std::thread::yield_now();
            }
            is_done.store(true, Ordering::Release);
        });
    }
}

#[derive(cembra::Input, Clone)]
struct Row {
    x: f64,
    y: Optional<f64>,
}

#[test]
fn structs_are_read_and_written_in_place_by_every_tier() {
    let model = Model::parse("input x: f64; input y: f64?; x * (y ?? exp(x))").unwrap();
    let mut run = model.executor::<Row, f64>(&by_hand()).unwrap();
    let mut clone = run.clone();
    let row = Row { x: 2.0, y: Optional::missing() };
    let interpreted = run.run(&row).unwrap();
    run.executor().finish_tiers();
    assert_eq!((clone.executor().tier(), run.executor().advance()), (None, Some(Tier::Optimised)));
    assert_eq!(clone.executor().tier(), Some(Tier::Optimised));
    assert_eq!(run.run(&row).unwrap().to_bits(), interpreted.to_bits());
    assert_eq!(clone.run(&Row { y: Optional::present(4.0), ..row }).unwrap(), 8.0);
    // The bare function would not change with the tier.
    assert!(run.raw().is_none());
}

/// A metrics receiver that sends each event, as text, to the test.
#[derive(Debug)]
struct Told(Mutex<Sender<String>>);

impl Told {
    fn channel() -> (Arc<Told>, Receiver<String>) {
        let (sender, receiver) = channel();
        (Arc::new(Told(Mutex::new(sender))), receiver)
    }
}

impl Metrics for Told {
    fn record(&self, _model: &str, event: &Event<'_>) {
        let text = match event {
            Event::Compiled { tier, .. } => format!("compiled {tier:?}"),
            Event::TierSwapped { tier } => format!("swapped {tier:?}"),
            other => format!("{other:?}"),
        };
        let _ = self.0.lock().expect("a sender").send(text);
    }
}

/// Returns the next event. The test fails if none arrives within 120 seconds.
fn next(told: &Receiver<String>) -> String {
    told.recv_timeout(Duration::from_secs(120)).expect("something is told")
}

#[test]
fn threads_in_the_background_compile_after_the_calls_asked_for() {
    let (told, events) = Told::channel();
    let tiering = Tiering::default().after_calls(3);
    let options = Options::default().backend(Backend::Tiered).tiering(tiering).metrics(told);
    let model = Model::parse(&large()).unwrap();
    let executor = model.compile(&options).unwrap();
    assert_eq!(next(&events), "ExecutorMade");
    let (mut one, mut two) = (executor.session(), executor.session());
    let first = answer(&mut one, 1.0);
    assert_eq!(answer(&mut two, 1.0), first);
    assert!(events.try_recv().is_err() && executor.tier().is_none());
    assert_eq!(answer(&mut one, 1.0), first);
    for expected in ["compiled Quick", "swapped Quick", "compiled Optimised", "swapped Optimised"] {
        assert_eq!(next(&events), expected);
        assert_eq!(answer(&mut one, 1.0), first);
    }
    executor.finish_tiers();
    assert_eq!(executor.tier(), Some(Tier::Optimised));
    drop((executor, one, two));
    assert_eq!(next(&events), "ExecutorDropped");
    assert!(events.try_recv().is_err(), "it is compiled once");
}

#[test]
fn without_a_threshold_a_model_is_compiled_before_its_first_call() {
    let (told, events) = Told::channel();
    let options = Options::default().backend(Backend::Tiered).tiering(Tiering::default().after_calls(0)).metrics(told);
    let executor = Model::parse("input x: f64; x * 2.0").unwrap().compile(&options).unwrap();
    let told = [next(&events), next(&events), next(&events)];
    assert_eq!(told, ["ExecutorMade", "compiled Optimised", "swapped Optimised"]);
    assert_eq!(executor.tier(), Some(Tier::Optimised));
}

#[test]
fn what_cannot_be_compiled_stays_interpreted_and_says_why() {
    let counters = Arc::new(Counters::default());
    let limits = Limits::default().code_bytes(1);
    let options = Options::default().backend(Backend::Tiered).limits(limits).metrics(counters.clone());
    let executor = Model::parse("input x: f64; x * 2.0 + 1.0").unwrap().compile(&options).unwrap();
    assert!(executor.fallback().is_none(), "nothing was tried yet");
    executor.finish_tiers();
    executor.finish_tiers();
    assert!(executor.fallback().expect("a reason").message().contains("code_bytes"));
    assert_eq!((executor.tier(), executor.advance(), executor.backend()), (None, None, Backend::Interpreter));
    assert_eq!(executor.session().evaluate(&[Value::from(2.0)]).unwrap(), [Value::from(5.0)]);
    let counts = counters.counts();
    assert_eq!((counts.compiles, counts.fallbacks, counts.tier_swaps), (0, 1, 0));
}

/// A metrics receiver that panics in the middle of a compilation.
#[derive(Debug, Default)]
struct Panics {
    fallbacks: AtomicUsize,
}

impl Metrics for Panics {
    fn record(&self, _model: &str, event: &Event<'_>) {
        match event {
            Event::Compiled { .. } => panic!("on purpose"),
            Event::Fallback { reason } => {
                assert!(reason.message().contains("panicked"), "{reason}");
                self.fallbacks.fetch_add(1, Ordering::Relaxed);
            }
            _ => {}
        }
    }
}

#[test]
fn a_panic_while_compiling_is_a_fallback() {
    let panics = Arc::new(Panics::default());
    let tiering = Tiering::default().after_calls(1);
    let options = Options::default().backend(Backend::Tiered).tiering(tiering).metrics(panics.clone());
    let executor = Model::parse("input x: f64; x * 2.0").unwrap().compile(&options).unwrap();
    let mut session = executor.session();
    assert_eq!(session.evaluate(&[Value::from(2.0)]).unwrap(), [Value::from(4.0)]);
    // Whether the thread in the background or this one came first: it is over, and told once.
    executor.finish_tiers();
    assert!(executor.fallback().expect("a reason").message().contains("panicked"));
    assert_eq!(panics.fallbacks.load(Ordering::Relaxed), 1);
    assert_eq!(session.evaluate(&[Value::from(3.0)]).unwrap(), [Value::from(6.0)]);
}

#[test]
fn other_backends_have_no_tiers_to_wait_for() {
    let model = Model::parse("input x: f64; x * 2.0").unwrap();
    for (backend, tier) in [(Backend::Interpreter, None), (Backend::Native, Some(Tier::Quick))] {
        let executor = model.compile(&Options::default().backend(backend).tier(Tier::Quick)).unwrap();
        executor.finish_tiers();
        assert_eq!((executor.tier(), executor.advance(), executor.tiers_are_finished()), (tier, tier, true));
    }
}

#[test]
#[ignore = "runs for a minute: cargo test --release -p cembra --test scalars tiers -- --ignored"]
fn models_come_and_go_on_four_threads() {
    let counters = Arc::new(Counters::default());
    let texts =
        ["input x: f64; exp(x) + sin(x)", "input x: f64; x * 2.0 + 1.0", "input x: f64; where(x > 1.0, 1.0 / x, x)"];
    let models: Vec<Model> =
        texts.iter().map(|text| Model::parse(text).unwrap()).chain([Model::parse(&large()).unwrap()]).collect();
    let interpreter = Options::default().backend(Backend::Interpreter);
    let expected: Vec<_> = models.iter().map(|model| answers(&model.compile(&interpreter).unwrap())).collect();
    std::thread::scope(|scope| {
        for thread in 0..4_u64 {
            let (counters, models, expected) = (counters.clone(), &models, &expected);
            scope.spawn(move || {
                let mut random = fastrand::Rng::with_seed(thread);
                for _ in 0..10_000 {
                    // The large model takes a thousand times longer to compile.
                    let at = if random.u32(..200) == 0 { 3 } else { random.usize(..3) };
                    let tiering = Tiering::default().after_calls(random.u32(..20)).by_hand(random.bool());
                    let options =
                        Options::default().backend(Backend::Tiered).tiering(tiering).metrics(counters.clone());
                    let executor = models[at].compile(&options).unwrap();
                    let mut session = executor.session();
                    for _ in 0..random.u32(..100) {
                        let row = random.usize(..ROWS.len());
                        assert_eq!(answer(&mut session, ROWS[row]), expected[at][row]);
                        if random.u32(..20) == 0 {
                            executor.advance();
                        }
                    }
                    if random.u32(..10) == 0 {
                        executor.finish_tiers();
                        assert!(executor.fallback().is_none());
                    }
                }
            });
        }
    });
    // What still waits in the queue or is being compiled is given back by the threads in the background.
    while counters.counts().live_executors() > 0 {
        std::thread::yield_now();
    }
    let counts = counters.counts();
    assert_eq!((counts.executors_made, counts.fallbacks), (40_000, 0));
    assert!(counts.compiles > 0 && counts.tier_swaps > 0, "{counts:?}");
}
