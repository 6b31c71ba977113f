//! Tests invalid user-defined rewrites, such as one that uses a value outside of its scope: each is an error that names
//! the operator, never a plan that reads uninitialised memory. Rewrites that keep types and scopes work, inside of
//! loops too.

use cembra::operators::{Extension, Id, Rewriter};
use cembra::{Backend, Model, Options, QType, Value};
use std::fmt;
use std::sync::{Arc, Mutex};

type Transform = dyn Fn(&mut Rewriter<'_>, Id) -> Option<Id> + Send + Sync;

/// A user-defined rewrite that calls a closure.
struct Rewrite(Box<Transform>);

impl fmt::Debug for Rewrite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Rewrite")
    }
}

impl Extension for Rewrite {
    fn transform(&self, rewriter: &mut Rewriter<'_>, node: Id) -> Option<Id> {
        (self.0)(rewriter, node)
    }
}

/// Compiles a model with a rewrite in both backends, asserts that they agree, and returns the first output on `inputs`,
/// or the error's code and text.
fn run(
    source: &str,
    inputs: &[Value],
    transform: impl Fn(&mut Rewriter<'_>, Id) -> Option<Id> + Send + Sync + 'static,
) -> Result<Value, (&'static str, String)> {
    let extension: Arc<dyn Extension> = Arc::new(Rewrite(Box::new(transform)));
    let model = Model::parse(source).expect("a model");
    let [interpreted, native] = [Backend::Interpreter, Backend::Native].map(|backend| {
        let options = Options::default().backend(backend).extension(extension.clone());
        let executor = model.compile(&options).map_err(|error| (error.code(), error.to_string()))?;
        Ok(executor.session().evaluate(inputs).expect("a value").remove(0))
    });
    assert_eq!(interpreted, native, "{source}");
    native
}

fn refused(result: Result<Value, (&'static str, String)>, with: &str) {
    let (code, message) = result.expect_err(with);
    assert_eq!(code, "extension", "{message}");
    assert!(message.contains(with), "{message}");
}

/// Returns a rewrite that replaces the literal `from` by `to`.
fn literal(from: Value, to: Value) -> impl Fn(&mut Rewriter<'_>, Id) -> Option<Id> + Send + Sync {
    move |rewriter, node| {
        let found = rewriter.value(node)? == &from;
        found.then(|| rewriter.literal(to.clone()))
    }
}

const TUPLE: &str = "input t: (i64, text, i64); strings.length(t.1)";

fn tuple() -> Value {
    Value::Tuple([Value::from(0x10_i64), Value::from("four"), Value::from(7_i64)].into_iter().collect())
}

#[test]
fn another_field_is_of_another_type() {
    assert_eq!(run(TUPLE, &[tuple()], |_, _| None), Ok(4_i64.into()));
    // A number as a text: it would be read at the address 0x10.
    let field = |index: i64| run(TUPLE, &[tuple()], literal(Value::from(1_i64), Value::from(index)));
    refused(field(0), "core.get_nth: the type is i64 now, but must be text");
    refused(field(3), "core.get_nth: the operator does not accept its operands: the tuple has 3 fields");
    refused(field(-1), "there is no field -1");
    // Of the same type it is another field, no more.
    let same =
        run("input t: (i64, text, i64); t.0 + 1i64", &[tuple()], literal(Value::from(0_i64), Value::from(2_i64)));
    assert_eq!(same, Ok(8_i64.into()));
}

#[test]
fn other_names_are_another_type() {
    let source = "input a: i64, b: f64; {x: a, y: b}";
    let renamed = |rewriter: &mut Rewriter<'_>, node: Id| match rewriter.value(node)?.as_scalar()? {
        cembra::ScalarValue::Text(_) => Some(rewriter.literal(Value::from("x,z"))),
        _ => None,
    };
    refused(run(source, &[1_i64.into(), 2_f64.into()], renamed), "now, but must be");
}

/// A model with a loop whose iterations add to a state, and an operator after the loop.
const LOOP: &str = "input n: i64; seq.reduce(fn(s, i) = s + i * 3i64, seq.range(n), 0i64) + n";

/// Returns a rewrite that remembers the first node for which `take` is true, and replaces nodes for which `put` is true
/// by it.
fn smuggled(
    take: impl Fn(&Rewriter<'_>, Id) -> bool + Send + Sync,
    put: impl Fn(&Rewriter<'_>, Id) -> bool + Send + Sync,
) -> impl Fn(&mut Rewriter<'_>, Id) -> Option<Id> + Send + Sync {
    let kept = Mutex::new(None);
    move |rewriter, node| {
        let mut kept = kept.lock().ok()?;
        if kept.is_none() && take(rewriter, node) {
            *kept = Some(node);
        } else if put(rewriter, node) {
            return *kept;
        }
        None
    }
}

#[test]
fn the_state_of_a_loop_stays_inside() {
    assert_eq!(run(LOOP, &[4_i64.into()], |_, _| None), Ok((18 + 4_i64).into()));
    // What a round computes, in the place of what is added behind the loop.
    let product = |rewriter: &Rewriter<'_>, node: Id| rewriter.matches(node, "math.multiply").is_some();
    let last = |rewriter: &Rewriter<'_>, node: Id| {
        let operands = rewriter.matches(node, "math.add").unwrap_or_default();
        operands.iter().any(|operand| rewriter.input(*operand) == Some("n"))
    };
    refused(run(LOOP, &[4_i64.into()], smuggled(product, last)), "the state of a loop is used outside of the loop");
    // The state of one loop in another, which is as deep.
    let two = "input n: i64
        seq.reduce(fn(s, i) = s + i * 3i64, seq.range(n), 0i64) - seq.reduce(fn(s, i) = s + i // 5i64, seq.range(n), 0i64)";
    let quotient = |rewriter: &Rewriter<'_>, node: Id| rewriter.matches(node, "math.floor_divide").is_some();
    refused(run(two, &[4_i64.into()], smuggled(product, quotient)), "the state of a loop");
    // What is computed before a loop may be used in it, and what is inside may be changed.
    let three = literal(Value::from(3_i64), Value::from(5_i64));
    assert_eq!(run(LOOP, &[4_i64.into()], three), Ok((30 + 4_i64).into()));
    let input = |rewriter: &Rewriter<'_>, node: Id| rewriter.input(node) == Some("n");
    assert_eq!(run(LOOP, &[4_i64.into()], smuggled(input, product)), Ok((16 + 4_i64).into()));
}

#[test]
fn nodes_of_other_compilations_are_not_known() {
    let far = Id::from_index(1 << 30);
    let source = "input x: f64; x * 2 + 1";
    let plain = run(source, &[3_f64.into()], |_, _| None);
    assert_eq!(plain, Ok(7_f64.into()));
    assert_eq!(run(source, &[3_f64.into()], move |_, _| Some(far)), plain);
    let asked = move |rewriter: &mut Rewriter<'_>, node: Id| {
        assert_eq!((rewriter.operator(far), rewriter.operands(far), rewriter.input(far)), (None, &[][..], None));
        assert_eq!((rewriter.value(far), rewriter.qtype(far), rewriter.matches(far, "math.add")), (None, None, None));
        assert!(rewriter.qtype(node).is_some_and(QType::is_data));
        let fault = rewriter.apply("math.add", &[node, far]).expect_err("no such node");
        assert_eq!(fault.message(), "an operand is a node of another compilation");
        None
    };
    assert_eq!(run(source, &[3_f64.into()], asked), plain);
    // A node that another compilation happened to have at a place that this one has too is that node.
    let kept = Arc::new(Mutex::new(Vec::new()));
    let keep = kept.clone();
    let all = move |_: &mut Rewriter<'_>, node: Id| {
        keep.lock().ok()?.push(node);
        None
    };
    assert_eq!(run(source, &[3_f64.into()], all), plain);
    for node in kept.lock().expect("a list").clone() {
        let put: Arc<dyn Extension> = Arc::new(Rewrite(Box::new(move |_, _| Some(node))));
        let model = Model::parse("input t: text, x: f64; strings.length(t)").expect("a model");
        let found = model.compile(&Options::default().extension(put)).map(|_| ());
        assert!(found.is_ok() || found.is_err_and(|error| error.code() == "extension"));
    }
}
