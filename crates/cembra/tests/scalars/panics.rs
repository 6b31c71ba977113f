//! Tests panics in user code that the library calls: each becomes an error that names the function, and the session,
//! the executor and the pool can be used again.

use cembra::loaders::{Accessor, AccessorsListener, AccessorsLoader, Listener, Loader, LoaderRow, Setter};
use cembra::operators::{Registry, UserOperator};
use cembra::program::{Sources, UsedFile, read_text};
use cembra::{Backend, Error, FieldType, Limits, Model, ModelExecutor, Options, Pool, QType, Value, ValueRef};
use std::io::{self, Read};
use std::panic::panic_any;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The number of dropped payloads.
static DROPPED: AtomicUsize = AtomicUsize::new(0);

/// A panic payload whose destructor panics too.
struct Payload;

impl Drop for Payload {
    fn drop(&mut self) {
        DROPPED.fetch_add(1, Ordering::Relaxed);
        panic!("in a drop");
    }
}

/// Returns `x`, but panics with a message for 13, and for 14 with a payload whose destructor panics again.
fn checked(x: f64) -> f64 {
    if x == 13.0 {
        panic!("unlucky {x}");
    }
    if x == 14.0 {
        panic_any(Payload);
    }
    x
}

fn registry() -> &'static Registry {
    static REGISTRY: OnceLock<&'static Registry> = OnceLock::new();
    REGISTRY.get_or_init(|| {
        let mut registry = Registry::standard().clone();
        registry.register(UserOperator::new("test.checked").function(checked)).expect("a new name");
        registry.leak()
    })
}

fn backends() -> [Options; 2] {
    [Backend::Interpreter, Backend::Native].map(|backend| Options::default().backend(backend).registry(registry()))
}

fn says<T>(made: Result<T, Error>) -> (&'static str, String) {
    let error = made.err().expect("a panic");
    (error.code(), error.message())
}

fn values(message: &str) -> (&'static str, String) {
    ("values", message.to_owned())
}

/// A model that creates a text in the evaluation's memory before it reads the input that panics, and another text after
/// it.
const TEXT: &str =
    "input name: text; input x: f64; output t = strings.upper(name) + strings.as_text(x); output z = x + 1.0";

#[test]
fn a_panicking_loader_is_an_error_and_the_next_row_is_right() {
    let loader =
        AccessorsLoader::new()
            .with("name", QType::TEXT, |_: &f64| "row".into())
            .with("x", QType::FLOAT64, |x| checked(*x).into());
    let model = Model::parse(TEXT).unwrap();
    for options in backends() {
        let executor: ModelExecutor<LoaderRow<f64>, String> = model.executor_from(&loader, &options).unwrap();
        let pool = Pool::new(executor);
        for x in 0..40 {
            let made = pool.with(|executor| executor.run(&f64::from(x % 20)));
            match x % 20 {
                13 => assert_eq!(says(made), values("input `x`: its loader panicked: unlucky 13")),
                14 => assert_eq!(says(made), values("input `x`: its loader panicked: a panic without a message")),
                x => assert_eq!(made.unwrap(), format!("ROW{x}")),
            }
        }
        assert_eq!(pool.idle(), 1);
    }
    assert!(DROPPED.load(Ordering::Relaxed) >= 4);
}

#[test]
fn a_panicking_listener_is_an_error_and_the_next_row_is_right() {
    let loader =
        AccessorsLoader::new()
            .with("name", QType::TEXT, |_: &f64| "row".into())
            .with("x", QType::FLOAT64, |x| (*x).into());
    let listener = AccessorsListener::new().with("z", |heard: &mut Vec<f64>, value| {
        if let ValueRef::Float64(z) = value {
            heard.push(checked(z));
        }
    });
    let model = Model::parse(TEXT).unwrap();
    for options in backends() {
        let mut executor = model.executor_between::<_, String, _>(&loader, &listener, &options).unwrap();
        let mut heard = Vec::new();
        for _ in 0..2 {
            assert_eq!(
                says(executor.listen(&12.0, &mut heard)),
                values("output `z`: its listener panicked: unlucky 13")
            );
            assert!(executor.listen(&13.0, &mut heard).is_err());
            assert_eq!(executor.listen(&1.5, &mut heard).unwrap(), "ROW1.5");
        }
        assert_eq!(heard, [2.5, 2.5]);
        let mut session = model.compile(&options).unwrap().session();
        let mut told = |_: &str, value: Value| {
            checked(if value == Value::from(13.0) { 13.0 } else { 0.0 });
        };
        let row = |x: f64| [Value::from("a"), Value::from(x)];
        assert_eq!(
            says(session.listen(&row(12.0), &mut told)),
            values("output `z`: its listener panicked: unlucky 13")
        );
        assert_eq!(session.listen(&row(1.5), &mut told).unwrap(), Value::from("A1.5"));
    }
    // Models with arrays tell likewise.
    let model = Model::parse("input x: [f64]; output s = math.sum(x); output z = array.size(x)").unwrap();
    let mut session = model.compile(&Options::default()).unwrap().session();
    let array = [cembra::values::parse_value("[f64?]{1.5, 2.5}").unwrap()];
    let refused = session.listen(&array, &mut |_, _| panic!("no"));
    assert_eq!(says(refused), values("output `z`: its listener panicked: no"));
    let expected = session.evaluate(&array).unwrap();
    assert_eq!(session.listen(&array, &mut |_, _| {}).unwrap(), expected[0]);
}

#[test]
fn a_panicking_operator_is_a_fault_and_the_next_row_is_right() {
    let text = "input name: text; input x: f64; strings.upper(name) + strings.as_text(test.checked(x))";
    let model = Model::parse_with(text, registry(), &Limits::default()).unwrap();
    for options in backends() {
        let pool = Pool::new(model.compile(&options).unwrap().session());
        for x in [1.5, 13.0, 14.0, 1.5, 13.0, 1.5] {
            let made = pool.with(|session| session.evaluate(&[Value::from("a"), Value::from(x)]));
            match x {
                1.5 => assert_eq!(made.unwrap(), [Value::from("A1.5")]),
                13.0 => {
                    assert_eq!(says(made), ("invalid", "test.checked: the operator panicked: unlucky 13".to_owned()));
                }
                _ => {
                    let words = "test.checked: the operator panicked: a panic without a message";
                    assert_eq!(says(made), ("invalid", words.to_owned()));
                }
            }
        }
        assert_eq!(pool.idle(), 1);
    }
}

/// User code that panics in the function with the given name.
struct At(&'static str);

impl At {
    fn may(&self, name: &str) {
        assert!(self.0 != name, "in {name}");
    }
}

impl Loader<()> for At {
    fn knows(&self, _: &str) -> bool {
        self.may("knows");
        self.0 != "names"
    }
    fn qtype(&self, _: &str, _: Option<&QType>) -> Option<QType> {
        self.may("qtype");
        Some(QType::FLOAT64)
    }
    fn names(&self) -> Vec<String> {
        self.may("names");
        Vec::new()
    }
    fn bind(&self, _: &str, _: &QType) -> Result<Accessor<()>, Error> {
        self.may("bind");
        Ok(Accessor::new(|_: &()| Ok(2.0.into())))
    }
}

impl Listener<()> for At {
    fn knows(&self, _: &str) -> bool {
        Loader::knows(self, "")
    }
    fn qtype(&self, _: &str, given: &QType) -> QType {
        self.may("qtype");
        given.clone()
    }
    fn names(&self) -> Vec<String> {
        Loader::names(self)
    }
    fn bind(&self, _: &str, _: &QType) -> Result<Setter<()>, Error> {
        self.may("bind");
        Ok(Setter::new(|_, _| Ok(())))
    }
}

#[test]
fn loaders_and_listeners_may_panic_while_they_are_bound() {
    let model = Model::parse("output y = x + 1.0; output z = x").unwrap();
    let options = Options::default();
    let good = At("");
    for (name, input, output) in [
        ("knows", "input `x`: its loader", "output `z`: its listener"),
        ("qtype", "input `x`: its loader", "output `z`: its listener"),
        ("names", "the loader", "the listener"),
        ("bind", "input `x`: its loader", "output `z`: its listener"),
    ] {
        let bad = At(name);
        let made = model.executor_from::<(), f64>(&bad, &options);
        assert_eq!(says(made), values(&format!("{input} panicked: in {name}")));
        let made = model.executor_between::<(), f64, ()>(&good, &bad, &options);
        assert_eq!(says(made), values(&format!("{output} panicked: in {name}")));
        assert_eq!(model.executor_from::<(), f64>(&good, &options).unwrap().run(&()).unwrap(), 3.0);
    }
}

/// A field type whose conversions panic for 13.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Lucky(f64);

// SAFETY: FIELD-TABLE: it is always converted.
unsafe impl FieldType for Lucky {
    type Model = f64;
    const IN_PLACE: bool = false;
    const EXPECTED: &'static str = "";
    fn view(&self) -> f64 {
        checked(self.0)
    }
    fn of(view: f64) -> Option<Self> {
        Some(Lucky(checked(view)))
    }
}

#[derive(cembra::Input)]
struct LuckyRow {
    name: String,
    x: Lucky,
}

#[derive(cembra::Output, PartialEq, Debug)]
struct LuckyOut {
    t: String,
    z: Lucky,
    #[cembra(default = unlucky())]
    other: String,
}

fn unlucky() -> String {
    static CALLS: AtomicUsize = AtomicUsize::new(0);
    assert!(!CALLS.fetch_add(1, Ordering::Relaxed).is_multiple_of(3), "no default");
    "other".to_owned()
}

#[test]
fn conversions_and_defaults_of_fields_may_panic() {
    let model = Model::parse(TEXT).unwrap();
    let row = |x: f64| LuckyRow { name: "row".to_owned(), x: Lucky(x) };
    let conversion = || values("the conversion of a field panicked: unlucky 13");
    for options in backends() {
        let model = Model::parse("input x: f64; x + 1.0").unwrap();
        let mut executor = model.executor::<LuckyRow, Lucky>(&options).unwrap();
        for x in [13.0, 12.0] {
            assert_eq!(says(executor.run(&row(x))), conversion());
            assert_eq!(says(executor.run_many(&[row(1.0), row(x)], &mut [Lucky(0.0); 2])), conversion());
            assert_eq!(executor.run(&row(1.0)).unwrap(), Lucky(2.0));
        }
    }
    let mut executor = model.executor::<LuckyRow, LuckyOut>(&Options::default()).unwrap();
    for round in 0..6 {
        let made = executor.run(&row(1.0));
        match round % 3 {
            0 => assert_eq!(says(made), values("field `other`: its default panicked: no default")),
            _ => assert_eq!(made.unwrap().t, "ROW1"),
        }
    }
}

/// A reader that panics.
struct Broken;

impl Read for Broken {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        panic!("no disk")
    }
}

#[test]
fn readers_and_resolvers_may_panic() {
    assert_eq!(read_text(Broken, 100).unwrap_err().to_string(), "the reader panicked: no disk");
    let files = |name: &str, _: &str| match name {
        "bad.cem" => panic!("no folder"),
        _ => Ok(UsedFile { name: name.to_owned(), text: "let vat = 0.5".into() }),
    };
    let text = "use \"tax.cem\"\nuse \"bad.cem\"\nvat";
    let sources = Sources::gather("m.cem", text, &Limits::default(), &files);
    let error = Model::parse_sources(sources, registry(), &Limits::default()).unwrap_err();
    assert_eq!(
        (error.code(), error.message().as_str()),
        ("use", "`bad.cem` cannot be read: its resolver panicked: no folder")
    );
    assert_eq!(error.span().unwrap().text(text), "\"bad.cem\"");
}

#[cfg(feature = "json")]
#[test]
fn the_serialisation_of_a_row_may_panic() {
    struct Row(f64);
    impl serde::Serialize for Row {
        fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            std::collections::BTreeMap::from([("x", checked(self.0))]).serialize(serializer)
        }
    }
    let model = Model::parse("input x: f64; x + 1.0").unwrap();
    let mut executor = model.executor_for_rows::<f64>(&Options::default()).unwrap();
    for _ in 0..2 {
        assert_eq!(says(executor.run(&Row(13.0))), values("the `Serialize` of the row panicked: unlucky 13"));
        assert_eq!(executor.run(&Row(1.0)).unwrap(), 2.0);
    }
}
