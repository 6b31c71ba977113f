//! Tests texts and bytes in user operators: as arguments that are borrowed for one call or owned, and as results.

use cembra::operators::{Registry, UserOperator};
use cembra::{Backend, Limits, Model, Options, Scalar, ScalarValue, Value};

fn registry() -> &'static Registry {
    let mut registry = Registry::standard().clone();
    let operators = [
        UserOperator::new("my.bytes").function(|text: &str| text.len() as i64),
        UserOperator::new("my.greet").function(|name: &str, greeting: &str| format!("{greeting}, {name}!")),
        UserOperator::new("my.owned").function(|mut text: String| {
            text.push('.');
            text
        }),
        UserOperator::new("my.kind").function(|text: &str| if text.is_empty() { "empty" } else { "full" }),
        UserOperator::new("my.first").function(|text: Option<&str>, or: Option<String>| {
            text.map(str::to_owned).or(or).map(|text| text.to_uppercase())
        }),
        UserOperator::new("my.parse").fallible(|text: &str| text.parse::<f64>().map_err(|_| "no number")),
        UserOperator::new("my.twice")
            .fallible(|bytes: &[u8]| if bytes.len() > 3 { Err("too long") } else { Ok([bytes, bytes].concat()) }),
        UserOperator::new("my.reversed").function(|mut bytes: Vec<u8>| {
            bytes.reverse();
            bytes
        }),
        UserOperator::new("my.count").function(count),
        UserOperator::new("my.with").function(with_suffix("-x")),
    ];
    for operator in operators {
        registry.register(operator).expect("a new name");
    }
    registry.leak()
}

fn count(text: &str, of: &str) -> i32 {
    text.matches(of).count() as i32
}

/// Returns a closure of an opaque type: the argument types of an operator are found even if only the closure's traits
/// are known.
fn with_suffix(suffix: &'static str) -> impl Fn(&str) -> String + Send + Sync + 'static {
    move |text: &str| format!("{text}{suffix}")
}

/// Evaluates an expression over the text `t` with both backends, asserts that they agree, and returns the value, or the
/// error's message.
fn run(expression: &str, t: Value) -> Result<Value, String> {
    let registry = registry();
    let model = Model::parse_with(expression, registry, &Limits::default()).expect("a model");
    let [interpreted, native] = [Backend::Interpreter, Backend::Native].map(|backend| {
        let options = Options::default().backend(backend).registry(registry).input_type("t", t.qtype());
        let mut session = model.compile(&options).expect("it compiles").session();
        // The second evaluation finds the memory of the first used again.
        let results = [(); 2].map(|()| session.evaluate(std::slice::from_ref(&t)).map(|mut values| values.remove(0)));
        let [first, second] = results.map(|result| result.map_err(|error| error.message()));
        assert_eq!(first, second, "{expression}");
        first
    });
    assert_eq!(interpreted, native, "{expression}");
    native
}

#[test]
fn texts_come_and_go() {
    assert_eq!(run("my.bytes(t)", "äbc".into()), Ok(4_i64.into()));
    assert_eq!(run("my.greet(t, 'Hello')", "Ann".into()), Ok("Hello, Ann!".into()));
    assert_eq!(run("my.greet(my.greet(t, 'Dear'), my.owned(t))", "Ann".into()), Ok("Ann., Dear, Ann!!".into()));
    assert_eq!(run("my.kind(t)", "".into()), Ok("empty".into()));
    assert_eq!(run("my.kind(t) == 'full'", "x".into()), Ok(cembra::Mask(true).into()));
    assert_eq!(run("my.count(t, 'a')", "banana".into()), Ok(3_i32.into()));
    assert_eq!(run("my.with(my.with(t))", "b".into()), Ok("b-x-x".into()));
    assert_eq!(run("my.parse(t) + 1", "2.5".into()), Ok(3.5_f64.into()));
    assert_eq!(run("my.parse(t)", "two".into()), Err("my.parse: no number".into()));
    let bytes = |bytes: &[u8]| Value::Scalar(ScalarValue::Bytes(bytes.into()));
    assert_eq!(run("my.twice(t)", bytes(&[0xFF, 0, 1])), Ok(bytes(&[0xFF, 0, 1, 0xFF, 0, 1])));
    assert_eq!(run("my.twice(t)", bytes(b"long")), Err("my.twice: too long".into()));
    assert_eq!(run("my.reversed(t)", bytes(&[1, 2, 0x80])), Ok(bytes(&[0x80, 2, 1])));
}

#[test]
fn missing_texts_are_not_looked_at() {
    let missing = || Value::Missing(Scalar::Text);
    let present = |text: &str| Value::optional(Scalar::Text, Some(ScalarValue::Text(text.into())));
    assert_eq!(run("my.greet(t, 'Hello')", missing()), Ok(missing()));
    assert_eq!(run("my.first(t, 'other')", missing()), Ok(present("OTHER")));
    assert_eq!(run("my.first(t, missing[text])", missing()), Ok(missing()));
    assert_eq!(run("my.first('mine', t)", missing()), Ok(present("MINE")));
}

#[test]
fn results_count_as_strings_that_an_evaluation_makes() {
    let registry = registry();
    let limits = Limits::default().arena_bytes(100);
    let text = |len: usize| Value::from("x".repeat(len).as_str());
    for backend in [Backend::Interpreter, Backend::Native] {
        let options = Options::default().backend(backend).registry(registry).limits(limits);
        let model = Model::parse_with("input t: text; my.owned(t)", registry, &limits).expect("a model");
        let mut session = model.compile(&options).expect("it compiles").session();
        assert_eq!(session.evaluate(&[text(99)]).expect("fits"), [format!("{}.", "x".repeat(99)).as_str().into()]);
        let error = session.evaluate(&[text(100)]).expect_err("101 bytes");
        assert_eq!(error.code(), "arena-limit");
    }
}
