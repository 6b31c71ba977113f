//! Tests types and values with the maximum nesting depth on a thread with 256 KiB of stack: no function of the library
//! may overflow it.

use cembra::explain::Stage;
use cembra::json::Json;
use cembra::native::Target;
use cembra::program::Builder;
use cembra::values::{parse_type, parse_value, print_type, print_value};
use cembra::{Backend, Model, Options, QType, Value};
use cembra_expr::{read_binary, write_binary};
use serde_json::json;

/// The maximum nesting depth of tuples.
const DEEP: usize = 64;

/// Runs `run` on a thread with 256 KiB of stack, the default of some C libraries on small machines.
fn on_a_small_stack(run: fn()) {
    // A sanitizer makes frames several times as large.
    let is_watched = std::env::var_os("CEMBRA_WATCHED").is_some();
    let bytes = if is_watched { 8 << 20 } else { 256 << 10 };
    let thread = std::thread::Builder::new().stack_size(bytes).spawn(run).expect("a thread");
    thread.join().expect("no overflow and no panic");
}

/// Returns `inner` between `DEEP` times `open` and `DEEP` times `close`.
fn nested(open: &str, inner: &str, close: &str) -> String {
    format!("{}{inner}{}", open.repeat(DEEP), close.repeat(DEEP))
}

/// Prints the name of the stage that begins. If a stage overflows the stack, the process ends, so the last printed name
/// shows which one.
#[expect(clippy::print_stderr, reason = "what is captured is shown if a test fails")]
fn stage(name: &str) {
    eprintln!("{name}");
}

/// Runs all stages of compilation and all kinds of evaluation on `model`, which returns an input and a literal.
fn every_stage(model: &Model, input: &Value, expected: &Value) {
    let limits = cembra::Limits::default();
    stage("print");
    assert!(!cembra::explain::print(model.program()).is_empty());
    stage("wire");
    assert!(read_binary(&write_binary(model.program()), &limits).expect("a file") == *model.program());
    for one in Stage::ALL {
        stage(one.name());
        assert!(!model.explain(&Options::default(), one).expect("a listing").is_empty());
    }
    stage("signature");
    assert_eq!(model.signature(&Options::default()).expect("types").outputs[0].qtype, expected.qtype());
    for backend in [Backend::Interpreter, Backend::Native, Backend::Tiered] {
        stage(backend.name());
        let executor = model.compile(&Options::default().backend(backend)).expect("a model");
        let found = executor.session().evaluate(std::slice::from_ref(input)).expect("a value");
        assert!(found[0] == *expected && found[0].same(expected));
        executor.finish_tiers();
        let found = executor.session().evaluate(std::slice::from_ref(input)).expect("a value");
        assert!(found[0] == *expected);
        stage("misfit");
        assert!(executor.session().evaluate(&[Value::from("no")]).is_err());
    }
    stage("object");
    let object = model.object("deep", &Target::host(), &Options::default()).expect("an object file");
    assert!(object.header().len() + object.rust().len() > 1_000);
    stage("clone");
    let copy = expected.clone();
    assert_eq!(format!("{copy}").is_empty(), format!("{copy:?}").is_empty());
    assert_eq!(print_value(&copy).is_empty(), format!("{:?}", copy.qtype()).is_empty());
}

#[test]
fn tuples() {
    on_a_small_stack(|| {
        stage("text");
        let source = format!("input x: {}\noutput y = x", nested("(", "f64", ",)"));
        let model = Model::parse(&source).expect("a model");
        let value = (0..DEEP).fold(Value::from(1.5), |inner, _| Value::Tuple([inner].into()));
        every_stage(&model, &value, &value);
    });
}

#[test]
fn named_tuples() {
    on_a_small_stack(|| {
        stage("text");
        let source = format!("input x: {}\noutput y = x", nested("{a: ", "i32?", "}"));
        let model = Model::parse(&source).expect("a model");
        let literal = nested("NAMEDTUPLE{a: ", "i32?{7}", "}");
        stage("value");
        let value = parse_value(&literal).expect("a value");
        assert_eq!(print_value(&value).len(), literal.len());
        every_stage(&model, &value, &value);
    });
}

#[test]
fn literals_and_tuples_made_of_inputs() {
    on_a_small_stack(|| {
        for made in [nested("(", "x", ",)"), nested("{a: ", "x", "}"), nested("TUPLE{", "1", "}")] {
            stage("text");
            let taken = if made.starts_with('{') { ".a" } else { ".0" };
            let model = Model::parse(&format!(
                "input x: i32\nlet t = {made}\noutput y = t\noutput z = t{} + x",
                taken.repeat(DEEP)
            ));
            let model = model.expect("a model");
            let executor = model.compile(&Options::default().backend(Backend::Native)).expect("a model");
            let found = executor.session().evaluate(&[Value::from(1)]).expect("a value");
            assert_eq!(found[1], Value::from(2));
            every_stage(&model, &Value::from(1), &found[0]);
        }
    });
}

#[test]
fn types() {
    on_a_small_stack(|| {
        stage("type");
        let text = nested("(", "f64", ",)");
        let qtype = parse_type(&text).expect("a type");
        assert_eq!(print_type(&qtype), text);
        assert!(!format!("{qtype} {qtype:?}").is_empty() && qtype.is_run_time() && qtype.is_data());
        assert_eq!((qtype.layout().size, qtype.clone() == qtype), (8, true));
        stage("builder");
        let b = Builder::new();
        let x = b.typed_leaf("x", qtype.clone());
        b.output("y", b.call("core.equal", &[x, x]));
        let model = Model::from_program(b.build().expect("a program"));
        stage("mismatch");
        let error = model.compile(&Options::default()).expect_err("no operator on tuples");
        assert!(error.to_string().len() < 10_000);
        stage("type of the data");
        let model = Model::parse("output y = x").expect("a model");
        assert!(model.compile(&Options::default().input_type("x", qtype)).is_ok());
    });
}

#[test]
fn loops_and_functions_on_tuples() {
    on_a_small_stack(|| {
        stage("loop");
        let (deep, wider) = (nested("(", "1", ",)"), nested("(", "2i64", ",)"));
        let source = format!("input n: i64\noutput y = seq.reduce(fn(s, i) = {wider}, seq.range(n), {deep})");
        let model = Model::parse(&source).expect("a model");
        let expected = (0..DEEP).fold(Value::from(2_i64), |inner, _| Value::Tuple([inner].into()));
        every_stage(&model, &Value::from(3_i64), &expected);
    });
}

#[test]
fn rows_of_json() {
    on_a_small_stack(|| {
        stage("json rows");
        let source = format!("input x: {}\noutput y = x", nested("(", "f64", ",)"));
        let model = Model::parse(&source).expect("a model");
        let mut run = model.executor_between::<_, (), _>(&Json, &Json, &Options::default()).expect("a model");
        let deep = (0..DEEP).fold(json!(1.5), |inner, _| json!([inner]));
        let mut found = serde_json::Map::new();
        run.listen(&json!({ "x": deep }), &mut found).expect("a value");
        assert_eq!(found["y"], deep);
    });
}

#[test]
fn what_nests_deeper_is_refused() {
    on_a_small_stack(|| {
        let deep = (0..100_000).fold(QType::FLOAT64, |inner, _| QType::tuple([inner]));
        let b = Builder::new();
        let x = b.typed_leaf("x", deep.clone());
        b.output("y", x);
        assert_eq!(b.build().expect_err("too deep").code(), "limit");
        for open in ["(", "{a: ", "TUPLE{", "NAMEDTUPLE{a: "] {
            let error = parse_value(&open.repeat(DEEP + 1)).expect_err("too deep");
            assert!(error.message().contains("`tuple_nesting`"), "{open}: {error}");
        }
        for open in ["(", "{a: "] {
            let error = parse_type(&open.repeat(DEEP + 1)).expect_err("too deep");
            assert!(error.message().contains("`tuple_nesting`"), "{open}: {error}");
        }
        let made = Model::parse(&format!("input x: f64\n{}x{}", "(".repeat(DEEP + 1), ",)".repeat(DEEP + 1)));
        let error = made.expect("a model").compile(&Options::default()).expect_err("too deep");
        assert!(error.to_string().contains("`tuple_nesting`"), "{error}");
        // Dropping it is not what this is about.
        std::mem::forget(deep);
        let value = (0..2 * DEEP).fold(Value::from(1.5), |inner, _| Value::Tuple([inner].into()));
        let b = Builder::new();
        b.output("y", b.literal(value));
        assert_eq!(b.build().expect_err("too deep").code(), "limit");
    });
}
