//! Tests the ways to run one model on many threads: a clone per thread, a pool, and an executor in thread-local
//! storage.

use cembra::{Backend, Cancellation, Model, ModelExecutor, Options, Pool, Session, Value};
use std::cell::RefCell;
use std::sync::{Barrier, OnceLock, mpsc};

#[derive(cembra::Input)]
struct Row {
    x: i64,
}

fn model() -> Model {
    Model::parse("input x: i64; strings.join(\"<\", strings.as_text(x * x), \">\")").expect("a model")
}

/// Asserts that `run` gives the right results on eight threads with a thousand rows each.
fn check(run: impl Fn(i64) -> String + Sync) {
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let run = &run;
            scope.spawn(move || {
                for x in thread * 1000..(thread + 1) * 1000 {
                    assert_eq!(run(x), format!("<{}>", x * x));
                }
            });
        }
    });
}

#[test]
fn a_clone_for_each_thread() {
    let executor = model().executor::<Row, String>(&Options::default()).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..8_i64 {
            let mut own = executor.clone();
            scope.spawn(move || {
                for x in thread * 1000..(thread + 1) * 1000 {
                    assert_eq!(own.run(&Row { x }).unwrap(), format!("<{}>", x * x));
                }
            });
        }
    });
}

#[test]
fn an_executor_for_each_thread_that_comes() {
    static EXECUTOR: OnceLock<cembra::Executor> = OnceLock::new();
    thread_local! {
        static SESSION: RefCell<Session> =
            RefCell::new(EXECUTOR.get_or_init(|| model().compile(&Options::default()).expect("a model")).session());
    }
    check(|x| {
        let found = SESSION.with_borrow_mut(|session| session.evaluate(&[Value::from(x)])).unwrap();
        match found[0].as_scalar() {
            Some(cembra::ScalarValue::Text(text)) => text.to_string(),
            other => panic!("{other:?}"),
        }
    });
}

#[test]
fn a_pool_lends_and_takes_back() {
    let pool = Pool::new(model().executor::<Row, String>(&Options::default()).unwrap());
    check(|x| pool.with(|run: &mut ModelExecutor<Row, String>| run.run(&Row { x })).unwrap());
    assert!((1..=8).contains(&pool.idle()), "{} idle", pool.idle());
    assert_eq!(Pool::<Session>::MOST, 400);
}

#[test]
fn a_pool_grows_on_demand_and_keeps_what_it_may() {
    let session = model().compile(&Options::default()).unwrap().session();
    let pool = Pool::with_most(session, 2);
    // Five at once: none waits for another.
    let barrier = Barrier::new(5);
    std::thread::scope(|scope| {
        for _ in 0..5 {
            scope.spawn(|| pool.with(|_| barrier.wait()));
        }
    });
    assert_eq!(pool.idle(), 2);
    pool.with(|_| assert_eq!(pool.idle(), 1));
    assert_eq!(pool.idle(), 2);
}

#[test]
fn a_token_does_not_go_back_to_the_pool() {
    let pool = Pool::new(model().compile(&Options::default()).unwrap().session());
    let token = Cancellation::new();
    token.cancel();
    let found = pool.with(|session| {
        session.set_cancellation(Some(token.clone()));
        session.evaluate(&[Value::from(3_i64)])
    });
    assert_eq!(found.unwrap_err().code(), "cancelled");
    let found = pool.with(|session| session.evaluate(&[Value::from(3_i64)]));
    assert_eq!(found.unwrap(), [Value::from("<9>")]);
}

#[test]
fn memory_is_counted() {
    let executor = model().compile(&Options::default()).unwrap();
    let mut session = executor.session();
    let fresh = session.memory_bytes();
    assert!(fresh >= size_of::<Session>() + executor.frame_bytes(), "{fresh}");
    session.evaluate(&[Value::from(3_i64)]).unwrap();
    // Now there is an arena too.
    assert!(session.memory_bytes() >= fresh + 4096, "{}", session.memory_bytes());
    assert!(executor.memory_bytes() > 4096);
    let typed = model().executor::<Row, String>(&Options::default()).unwrap();
    assert!(typed.memory_bytes() >= typed.executor().frame_bytes());
}

/// A destructor of a thread-local value can still evaluate a model with a pattern, and compile a model. The thread's
/// caches of patterns and of the code generator are already destroyed then.
#[test]
fn a_thread_that_ends_can_still_evaluate() {
    struct Last(Option<Session>, mpsc::Sender<Result<Vec<Value>, cembra::Error>>);
    impl Drop for Last {
        fn drop(&mut self) {
            let session = self.0.as_mut().expect("a session");
            let _ = self.1.send(session.evaluate(&[Value::from("cat 7")]));
            let options = Options::default().backend(Backend::Native);
            let compiled = Model::parse("input x: f64; x * 2").and_then(|model| model.compile(&options));
            let _ = self.1.send(compiled.and_then(|executor| executor.session().evaluate(&[Value::from(2.0)])));
        }
    }
    thread_local! {
        static LAST: RefCell<Option<Last>> = const { RefCell::new(None) };
    }
    let matching = Model::parse("input t: text; strings.extract_regex(t, \"([0-9]+)\")").unwrap();
    for backend in [Backend::Interpreter, Backend::Native] {
        let executor = matching.compile(&Options::default().backend(backend)).unwrap();
        let (sender, receiver) = mpsc::channel();
        std::thread::spawn(move || {
            // What a thread made first is dropped last.
            LAST.set(Some(Last(Some(executor.session()), sender)));
            let found = executor.session().evaluate(&[Value::from("dog 8")]).unwrap();
            model().compile(&Options::default().backend(Backend::Native)).unwrap();
            assert_eq!(found, [Value::Present(cembra::ScalarValue::Text("8".into()))]);
        });
        let found = receiver.recv().expect("an answer").expect("a value");
        assert_eq!(found, [Value::Present(cembra::ScalarValue::Text("7".into()))]);
        assert_eq!(receiver.recv().expect("an answer").expect("a value"), [Value::from(4.0)]);
    }
}
