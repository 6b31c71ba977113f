//! Tests user operators with literal text arguments, or compiled from a literal text, on elements of tensors.

use super::{Tensors, f64s, inputs_of, tensors, values_of};
use cembra::Error;
use cembra::explain::print;
use cembra::operators::{Registry, UserOperator};
use cembra::tensor::{CompileGraph, MapOperand, Reduction, TensorErrorKind, TensorGraph, TensorNodeId, same_bits};
use cembra::{Backend, Executor, Limits, Model, Options, Scalar, ScalarValue, Session, Tensor};
use std::sync::OnceLock;

/// Parses the coefficients of a polynomial, the lowest first.
fn polynomial(text: &str) -> Result<Vec<f64>, String> {
    text.split(' ').map(|number| number.parse().map_err(|_| format!("`{number}` is no number"))).collect()
}

/// Returns the sum of `x` and the length of `text`; fails if `x` is not positive.
fn positive(x: f64, text: &str) -> Result<f64, &'static str> {
    if x > 0.0 { Ok(x + text.len() as f64) } else { Err("not positive") }
}

fn registry() -> &'static Registry {
    static REGISTRY: OnceLock<&'static Registry> = OnceLock::new();
    REGISTRY.get_or_init(|| {
        let of_doubles = |text: &str| {
            let factors = polynomial(text)?;
            Ok::<_, String>(move |x: f64| factors.iter().rev().fold(0.0, |sum, factor| sum * x + factor))
        };
        let of_singles = |text: &str| {
            let factors = polynomial(text)?;
            Ok::<_, String>(move |x: f32| factors.iter().rev().fold(0.0_f32, |sum, factor| sum * x + *factor as f32))
        };
        let of_two = |text: &str| {
            let factor: f64 = text.parse().map_err(|_| "no factor")?;
            Ok::<_, &str>(move |x: f64, count: i64| (x * factor) as i64 + count)
        };
        let operators = [
            UserOperator::new("my.polynomial").params(&["factors", "x"]).compiled(of_singles).compiled(of_doubles),
            UserOperator::new("my.scaled").compiled(of_two),
            UserOperator::new("my.starts").function(|text: &str, x: i64, with: &str| text.starts_with(with) && x > 1),
            UserOperator::new("my.positive").fallible(positive),
            UserOperator::new("my.bytes").function(|text: &str| text.len() as f64),
        ];
        Registry::with_operators(operators).expect("new names")
    })
}

fn parsed(text: &str) -> Result<Model, Error> {
    Model::parse_with(text, registry(), &Limits::default())
}

/// Returns options for both backends, each with the number of threads for runs. With several threads, two elements are
/// enough to use another thread.
fn ways() -> Vec<(Options, usize)> {
    let by = |backend| Options::default().registry(registry()).backend(backend);
    vec![(by(Backend::Interpreter), 1), (by(Backend::Native), 1), (by(Backend::Native).min_parallel_elements(2), 3)]
}

fn session(executor: &Executor, threads: usize) -> Session {
    let mut session = executor.session();
    session.set_threads(threads);
    session
}

/// Evaluates the model `text` and returns the outputs. Asserts that the plan, the reference, an evaluation on values
/// and the printed model give the same, in both backends and on several threads.
fn evaluated(text: &str, given: &Tensors) -> Vec<Tensor> {
    let model = parsed(text).unwrap_or_else(|error| panic!("{text}\n{}", error.render(text)));
    let printed = print(model.program());
    let again = parsed(&printed).unwrap_or_else(|error| panic!("{printed}\n{}", error.render(&*printed)));
    assert_eq!(again.program(), model.program(), "{printed}");
    let mut all = Vec::new();
    for (options, threads) in ways() {
        let compiled =
            |model: &Model| model.compile(&options).unwrap_or_else(|error| panic!("{text}\n{}", error.render(text)));
        let executor = compiled(&model);
        let inputs = inputs_of(&executor, given);
        let mut session = session(&executor, threads);
        let made = session.run_tensors(&inputs).unwrap_or_else(|error| panic!("{text}\n{error}"));
        all.push(made.to_vec());
        let values = session.evaluate(&values_of(&executor, given)).expect("values");
        all.push(values.iter().map(super::tensor_of).collect());
        all.push(compiled(&again).run_reference(&inputs).expect("outputs"));
    }
    // A model that was read with the operators needs no option for them, and one from a file does.
    let executor = model.compile(&Options::default()).expect("an executor");
    all.push(super::run(&executor, given).expect("outputs"));
    let kept = Model::from_binary(&model.to_binary()).expect("a file");
    let executor = kept.compile(&Options::default().registry(registry())).expect("an executor");
    all.push(super::run(&executor, given).expect("outputs"));
    let first = all.swap_remove(0);
    for made in &all {
        assert_eq!(made.len(), first.len());
        for (at, (wanted, found)) in first.iter().zip(made).enumerate() {
            assert!(same_bits(wanted, found), "output {at}: {wanted:?} and {found:?}");
        }
    }
    first
}

fn given() -> Tensors {
    tensors([
        ("x", f64s(&[2, 3], &[1.0, 2.0, 3.0, -1.0, 0.5, 10.0])),
        ("y", f64s(&[2], &[2.0, -1.0])),
        ("single", Tensor::new(&[2], vec![0.1_f32, 3.0]).expect("a tensor")),
        ("count", Tensor::new(&[3], vec![1_i64, 2, 3]).expect("a tensor")),
    ])
}

const INPUTS: &str = "input x: tensor[f64, 2], y: tensor[f64, 1], single: tensor[f32, 1], count: tensor[i64, 1]\n";

#[test]
fn operators_are_compiled_from_texts_beside_tensors() {
    let text = format!(
        "{INPUTS}
        let square = \"0 0 1\"
        output plain = my.polynomial(\"1 2\", x)
        output squares = my.polynomial(x=x + 1.0, factors=square)
        output other = my.polynomial(\"0 0 2\", x + 1.0) - my.polynomial(square, x + 1.0)
        output singles = my.polynomial(\"0.1 1\", single)
        output two = my.scaled(\"1.5\", x, count)
        output flags = my.starts(\"abc\", count, \"ab\") or my.starts(\"abc\", count, \"bc\")
        output total = tensor.sum(my.polynomial(\"0 3\", x), 1)
        output number = my.polynomial(\"1 1\", tensor.sum(x)) + my.polynomial(\"5 1\", 2.0) + my.bytes(\"four\")
        output widened = my.polynomial(\"0 1\", count)
        output labelled(\"j,i\") = my.polynomial(\"0 2\", x(\"i,j\")) * y(\"i\")
        output pair(\"i,j\") = my.scaled(\"2\", x(\"i,j\"), count(\"j\"))"
    );
    let made = evaluated(&text, &given());
    let floats = |at: usize| made[at].to_vec::<f64>().expect("floats");
    assert_eq!(floats(0), [3.0, 5.0, 7.0, -1.0, 2.0, 21.0]);
    assert_eq!(floats(1), [4.0, 9.0, 16.0, 0.0, 2.25, 121.0]);
    assert_eq!(floats(2), floats(1));
    assert_eq!(made[3].to_vec::<f32>().expect("floats"), [0.1_f32 + 0.1, 3.1]);
    assert_eq!(made[4].to_vec::<i64>().expect("integers"), [2, 5, 7, 0, 2, 18]);
    assert_eq!(made[5].to_vec::<bool>().expect("truth values"), [false, true, true]);
    assert_eq!(floats(6), [18.0, 28.5]);
    assert_eq!(floats(7), [16.5 + 7.0 + 4.0]);
    assert_eq!(made[8].to_vec::<f32>().expect("floats"), [1.0, 2.0, 3.0]);
    assert_eq!(floats(9), [4.0, 2.0, 8.0, -1.0, 12.0, -20.0]);
    assert_eq!(made[10].to_vec::<i64>().expect("integers"), [3, 6, 9, -1, 3, 23]);
}

#[test]
fn what_is_wrong_with_a_text_is_told_where_it_stands() {
    for (value, code, message, place) in [
        ("= my.polynomial(\"1 a\", x)", "literal", "my.polynomial: `a` is no number", "my.polynomial(\"1 a\", x)"),
        (
            "(\"i\") = y(\"i\") + my.polynomial(\"\", y(\"i\"))",
            "literal",
            "my.polynomial: `` is no number",
            "(\"i\") = y(\"i\") + my.polynomial(\"\", y(\"i\"))",
        ),
        (
            "= my.polynomial(x, x)",
            "type-mismatch",
            "my.polynomial does not take f64, f64; give a literal text as the first argument: the operator is compiled from it",
            "my.polynomial(x, x)",
        ),
        (
            "= x + \"a\"",
            "type-mismatch",
            "math.add expects a number for `y`, found text; use `strings.parse_float64(..)` or \
             `strings.parse_int64(..)` to read a number from a text",
            "x + \"a\"",
        ),
        (
            "= tensor.sum(\"a\")",
            "type-mismatch",
            "tensors cannot have elements of type text; use elements of type bool, i32, i64, f32 or f64",
            "tensor.sum(\"a\")",
        ),
        (
            "= tensor.grad(tensor.sum(my.polynomial(\"1 1\", y)), y)",
            "derivative",
            "my.polynomial has no derivative; use other operators, or in Rust `TensorGraph::custom_vjp` for a gradient of your own",
            "tensor.grad(tensor.sum(my.polynomial(\"1 1\", y)), y)",
        ),
    ] {
        let text = format!("{INPUTS}output z{value}");
        let error = parsed(&text).and_then(|model| model.compile(&Options::default())).expect_err(value);
        let found = (error.code(), error.to_string(), error.span().map(|span| span.text(&text)));
        assert_eq!(found, (code, message.to_owned(), Some(place)));
    }
    let model = parsed(&format!("{INPUTS}output z = my.positive(x, \"some\")")).expect("a model");
    for (options, threads) in ways() {
        let executor = model.compile(&options).expect("an executor");
        let error =
            session(&executor, threads).run_tensors(&inputs_of(&executor, &given())).expect_err("a negative number");
        let kind = error.tensor_kind();
        assert_eq!((kind, &*error.message()), (Some(TensorErrorKind::Evaluation), "my.positive: not positive"));
        assert!(error.to_string().ends_with("(line 2, column 12: `my.positive(x, \"some\")`)"), "{error}");
        assert!(error.span().is_some());
    }
}

/// Returns a graph with three nodes: a polynomial of the doubled elements, its sums over rows, and another polynomial.
fn graph() -> Result<(TensorGraph, [TensorNodeId; 3]), Error> {
    let mut g = TensorGraph::new(registry());
    let x = g.leaf("x", Scalar::Float64, &[2, 3])?;
    let doubled = g.apply("math.add", &[x, x])?;
    let [text, other] = ["1 0 1", "2 0 1"].map(MapOperand::Text);
    let made = g.apply_with("my.polynomial", &[text, MapOperand::Node(doubled)])?;
    assert_eq!(g.apply_with("my.polynomial", &[text, MapOperand::Node(doubled)])?, made);
    let sums = g.reduce(Reduction::Sum, made, &[1])?;
    let other = g.apply_with("my.polynomial", &[other, MapOperand::Node(doubled)])?;
    assert_ne!(other, made);
    Ok((g, [made, sums, other]))
}

#[test]
fn graphs_take_texts() {
    let (g, [made, sums, other]) = graph().expect("a graph");
    let x = &given()["x"];
    for (options, threads) in ways() {
        let executor = g.compile(&[made, sums, other], &options).expect("an executor");
        let listing = executor.prepare_for(&[&[2, 3]]).expect("a plan").to_string();
        assert!(listing.contains(" my.polynomial(\"1 0 1\", _) (%0)"), "{listing}");
        let mut session = session(&executor, threads);
        let values = session.run_tensors(std::slice::from_ref(x)).expect("values");
        assert_eq!(values[0].to_vec::<f64>().expect("floats"), [5.0, 17.0, 37.0, 5.0, 2.0, 401.0]);
        assert_eq!(values[1].to_vec::<f64>().expect("floats"), [59.0, 408.0]);
        assert_eq!(values[2].to_vec::<f64>().expect("floats"), [6.0, 18.0, 38.0, 6.0, 3.0, 402.0]);
        let one = |output, index: &[usize]| {
            executor.reader(output, std::slice::from_ref(x)).and_then(|reader| reader.value(index)).expect("an element")
        };
        assert_eq!(one(0, &[1, 2]), ScalarValue::Float64(401.0));
        assert_eq!(one(2, &[1, 2]), ScalarValue::Float64(402.0));
        assert_eq!(one(1, &[0]), ScalarValue::Float64(59.0));
    }
}

#[test]
fn graphs_are_compiled_with_their_own_operators() {
    let (g, [_, sums, _]) = graph().expect("a graph");
    let x = [given()["x"].clone()];
    for options in [Options::default(), Options::default().registry(registry())] {
        let executor = g.compile(&[sums], &options).expect("an executor");
        let mut session = executor.session();
        let made = session.run_tensors(&x).expect("sums");
        assert_eq!(made[0].to_vec::<f64>().expect("floats"), [59.0, 408.0]);
        assert!(same_bits(&made[0], &executor.run_reference(&x).expect("sums")[0]));
    }
    let other = Options::default().registry(Registry::standard());
    let error = g.compile(&[sums], &other).expect_err("other operators");
    let message = "the operators of the graph come from another registry than that of the options; give the registry of the graph to `Options`";
    assert_eq!((error.code(), &*error.to_string()), ("unknown-name", message));
}

#[test]
fn texts_that_an_operator_cannot_be_compiled_from_are_refused_by_graphs() {
    let mut g = TensorGraph::new(registry());
    let x = g.leaf("x", Scalar::Float64, &[2]).expect("a leaf");
    let error = g.apply_with("my.polynomial", &[MapOperand::Text("1 b"), MapOperand::Node(x)]).expect_err("no number");
    assert_eq!(
        (error.tensor_kind(), &*error.to_string()),
        (Some(TensorErrorKind::Literal), "my.polynomial: `b` is no number")
    );
    let error = g.apply_with("my.polynomial", &[MapOperand::Node(x), MapOperand::Text("1")]).expect_err("no text");
    assert_eq!(error.tensor_kind(), Some(TensorErrorKind::ElementType));
    assert_eq!(
        error.diagnostics()[0].hints(),
        ["give a literal text as the first argument: the operator is compiled from it"]
    );
}
