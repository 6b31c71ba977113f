//! Tests models with tensors in the text language: their results, that plans give the reference's results, that
//! printing and parsing gives the same model, and the errors for labels, types and extents that do not fit.

mod doors;
mod elements;
mod executor;
mod refusals;
mod statements;
mod texts;
mod values;

use cembra::explain::print;
use cembra::tensor::same_bits;
use cembra::{Error, Executor, Field, Model, Options, QType, ScalarValue, Tensor, Value};
use std::collections::BTreeMap;

type Tensors = BTreeMap<String, Tensor>;

fn f64s(extents: &[usize], elements: &[f64]) -> Tensor {
    Tensor::new(extents, elements.to_vec()).expect("a tensor")
}

/// Returns a tensor of small whole numbers, of which sums are exact in every order.
fn counted(extents: &[usize], from: i32) -> Tensor {
    let len = extents.iter().product::<usize>();
    let elements = (0..len as i32).map(|at| f64::from((at * 7 + from) % 11 - 4));
    Tensor::new(extents, elements.collect()).expect("a tensor")
}

fn tensors<const N: usize>(named: [(&str, Tensor); N]) -> Tensors {
    named.into_iter().map(|(name, tensor)| (name.to_owned(), tensor)).collect()
}

/// Compiles the model `text`, or returns its error.
fn try_compiled(text: &str) -> Result<Executor, Error> {
    Model::parse(text)?.compile(&Options::default())
}

fn compiled(text: &str) -> Executor {
    try_compiled(text).unwrap_or_else(|error| panic!("{text}\n{}", error.render(text)))
}

/// Returns the tensors for the inputs of an executor, in their order; the default for an input that `tensors` lacks.
fn inputs_of(executor: &Executor, tensors: &Tensors) -> Vec<Tensor> {
    let input = |field: &Field| match (tensors.get(&*field.name), &field.default) {
        (Some(tensor), _) => tensor.clone(),
        (None, Some(default)) => Tensor::of_value(default).expect("a default of a type of elements"),
        (None, None) => panic!("there is no tensor for `{}`", field.name),
    };
    executor.inputs().iter().map(input).collect()
}

/// Returns the element of a tensor that has no axes.
fn scalar_of(tensor: &Tensor) -> ScalarValue {
    let bits = tensor.data().bits(tensor.layout().offset());
    ScalarValue::from_bits(tensor.scalar_type(), bits).expect("a scalar of a type of elements")
}

/// Returns the inputs of an executor as values: a tensor without axes becomes a scalar, and an optional input that
/// `tensors` lacks is missing.
fn values_of(executor: &Executor, tensors: &Tensors) -> Vec<Value> {
    let value = |field: &Field| match (tensors.get(&*field.name), &field.qtype) {
        (Some(tensor), QType::Tensor(..)) => Value::from(tensor.clone()),
        (Some(tensor), QType::Optional(_)) => Value::Present(scalar_of(tensor)),
        (Some(tensor), _) => Value::Scalar(scalar_of(tensor)),
        (None, QType::Optional(scalar)) => Value::Missing(*scalar),
        (None, _) => panic!("there is no value for `{}`", field.name),
    };
    executor.inputs().iter().map(value).collect()
}

/// Converts a value to a tensor; a scalar becomes a tensor without axes.
fn tensor_of(value: &Value) -> Tensor {
    match value {
        Value::Tensor(tensor) => Tensor::clone(tensor),
        Value::Scalar(scalar) => Tensor::of_value(scalar).expect("a scalar of a type of elements"),
        other => panic!("{other} is no tensor"),
    }
}

/// Returns the outputs for `tensors` in a new session.
fn run(executor: &Executor, tensors: &Tensors) -> Result<Vec<Tensor>, Error> {
    executor.session().run_tensors(&inputs_of(executor, tensors)).map(<[Tensor]>::to_vec)
}

/// Evaluates the model `text` by its plan, and returns the outputs. Asserts that the reference, the printed model and
/// an evaluation on values give the same.
fn evaluated(text: &str, tensors: &Tensors) -> Vec<Tensor> {
    let model = Model::parse(text).unwrap_or_else(|error| panic!("{text}\n{}", error.render(text)));
    let printed = print(model.program());
    let again = Model::parse(&printed).unwrap_or_else(|error| panic!("{printed}\n{}", error.render(&*printed)));
    assert_eq!(again.program(), model.program(), "{printed}");
    let kept = Model::from_binary(&model.to_binary()).expect("a file");
    assert_eq!(kept.program(), model.program(), "{printed}");
    let executor = compiled(text);
    let signature = model.signature(&Options::default()).expect("a signature");
    assert_eq!((&*signature.inputs, &*signature.outputs), (executor.inputs(), executor.outputs()));
    let known = |name: &String| model.program().inputs.iter().any(|input| *input.name == **name);
    assert!(tensors.keys().all(known), "{text}\n{:?}", tensors.keys());

    let inputs = inputs_of(&executor, tensors);
    let made = run(&executor, tensors).unwrap_or_else(|error| panic!("{text}\n{error}"));
    let reference = compiled(&printed).run_reference(&inputs).expect("outputs");
    let values = executor.session().evaluate(&values_of(&executor, tensors)).expect("values");
    assert_eq!([made.len(), reference.len(), values.len()], [executor.outputs().len(); 3]);
    for (((made, reference), value), field) in made.iter().zip(&reference).zip(&values).zip(executor.outputs()) {
        let name = &field.name;
        assert!(same_bits(made, reference), "{text}\n{name}: {made:?}, not {reference:?}");
        assert!(same_bits(&tensor_of(value), made), "{text}\n{name}: {value}, not {made:?}");
        assert_eq!(value.qtype(), field.qtype, "{text}\n{name}");
        let of = (made.scalar_type(), made.extents().len());
        assert_eq!(
            field.qtype.to_string(),
            if of.1 == 0 { of.0.short_name().to_owned() } else { format!("tensor[{}, {}]", of.0.short_name(), of.1) }
        );
    }
    made
}

/// Returns the code, message and place of the error in the model `text`.
fn refused(text: &str) -> (&'static str, String, Option<&str>) {
    let error = try_compiled(text).expect_err(text);
    (error.code(), error.to_string(), error.span().map(|span| span.text(text)))
}

#[test]
fn labels_of_definitions_say_what_is_summed() {
    let text = r#"
        input a: tensor[f64, 2], b: tensor[f64, 2], d: tensor[f64, 2]
        output c("i,j") = 2.0 * a("i,k") * b("k,j") - d("j,i")
        let t("j,i") = c("i,j") / 2
        output e("i") = t("i,j") * a("j,j")
        output dot("") = c("i,j") * c("i,j")"#;
    let given = tensors([
        ("a", f64s(&[2, 2], &[1.0, 2.0, 3.0, 4.0])),
        ("b", f64s(&[2, 3], &[1.0, 0.0, 2.0, 0.0, 1.0, 1.0])),
        ("d", f64s(&[3, 2], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])),
    ]);
    // `a("j,j")` is a diagonal of 2, `t` has 3 rows and 2 columns.
    let made = evaluated(text, &given);
    assert_eq!(made[0].to_vec::<f64>().expect("floats"), [1.0, 1.0, 3.0, 4.0, 4.0, 14.0]);
    assert_eq!(made[1].to_vec::<f64>().expect("floats"), [0.5 + 8.0, 0.5 + 8.0, 1.5 + 28.0]);
    assert_eq!(made[2].get::<f64>(&[]).expect("a float"), 1.0 + 1.0 + 9.0 + 16.0 + 16.0 + 196.0);
}

#[test]
fn whole_tensors_broadcast_and_scalars_are_parameters() {
    let text = "
        input x: tensor[f32, 2], bias: tensor[f32, 1], rate: f32, from: i32
        let shifted = x * rate + bias
        output positive = if shifted > 0.0 and not (bias == 3.0) then shifted else -0.5
        output total = tensor.sum(shifted, 1)
        output all = tensor.mean(shifted)
        output count = from * 2
        output weak = tensor.max(x) * (1.0 / 4.0)
        output turned: tensor[f64, 2] = tensor.transpose(cast(x, f64))";
    let given = tensors([
        ("x", Tensor::new(&[2, 2], vec![1.0_f32, -2.0, 3.0, 4.0]).expect("a tensor")),
        ("bias", Tensor::new(&[2], vec![0.5_f32, 3.0]).expect("a tensor")),
        ("rate", Tensor::scalar(2.0_f32)),
        ("from", Tensor::scalar(21)),
    ]);
    let made = evaluated(text, &given);
    assert_eq!(made[0].to_vec::<f32>().expect("floats"), [2.5, -0.5, 6.5, -0.5]);
    assert_eq!(made[1].to_vec::<f32>().expect("floats"), [1.5, 17.5]);
    assert_eq!(made[2].get::<f32>(&[]).expect("a float"), 4.75);
    assert_eq!(made[3].get::<i32>(&[]).expect("an integer"), 42);
    assert_eq!(made[4].get::<f32>(&[]).expect("a float"), 1.0);
    assert_eq!(made[5].to_vec::<f64>().expect("floats"), [1.0, 3.0, -2.0, 4.0]);
}

/// `logsumexp` of infinities is right, although it subtracts the largest element from each, and the difference of
/// infinities is NaN.
#[test]
fn logsumexp_takes_infinities() {
    let (inf, nan) = (f64::INFINITY, f64::NAN);
    let rows = [[0.0, 0.0], [-inf, -inf], [inf, 1.0], [-inf, 3.0], [inf, -inf], [inf, nan], [1000.0, 1000.0]];
    let x = Tensor::new(&[7, 2], rows.concat()).expect("a tensor");
    let made = evaluated("input x: tensor[f64, 2]\noutput y = tensor.logsumexp(x, 1)", &tensors([("x", x)]));
    let expected = [2_f64.ln(), -inf, inf, 3.0, inf, nan, 1000.0 + 2_f64.ln()];
    let expected = Tensor::new(&[7], expected.to_vec()).expect("a tensor");
    assert!(same_bits(&made[0], &expected), "{:?}", made[0]);
}

/// `logsumexp` converts integers to floats first, as `softmax` does, so that no difference of integers overflows.
#[test]
fn logsumexp_of_integers_is_of_floats() {
    let text = "numbers f32
        input x: tensor[i32, 2], n: tensor[i64, 1]
        output y = tensor.logsumexp(x, 1)
        output z = tensor.logsumexp(n)
        output w = tensor.softmax(x, 1)";
    let x = Tensor::new(&[3, 2], vec![0_i32, 0, 1, -1, i32::MAX, -2_000_000_000]).expect("a tensor");
    let n = Tensor::new(&[2], vec![5_i64, 5]).expect("a tensor");
    let made = evaluated(text, &tensors([("x", x), ("n", n)]));
    let found = made[0].to_vec::<f32>().expect("f32, as of softmax");
    let expected = [2_f32.ln(), (1_f32.exp() + (-1_f32).exp()).ln(), 2_147_483_648.0];
    assert!(
        found.iter().zip(expected).all(|(found, expected)| (found - expected).abs() <= 1e-6 * expected),
        "{found:?}"
    );
    assert!((made[1].to_vec::<f32>().expect("f32")[0] - (5.0 + 2_f32.ln())).abs() < 1e-6);
    assert!(made[2].to_vec::<f32>().is_ok());
}

/// Functions of floats, and branches with a float, convert integers to f64. The numbers 16777217 and 0.1 show a
/// conversion to f32, which does not have enough digits for them.
#[test]
fn functions_of_floats_and_branches_make_f64_of_integers() {
    let text = "input n: tensor[i64, 1], x: tensor[f32, 1]
        output mean = tensor.mean(n)
        output norm = n(\"i\").norm()
        output weights = tensor.softmax(n, 0)
        output logarithms = tensor.log_softmax(n, 0)
        output layer = tensor.layer_norm(n, 0, 0.0)
        output chosen = tensor.where(n > 16777217, n, x)
        output behind = tensor.concat((n, x), 0)";
    let n = Tensor::new(&[2], vec![16_777_217_i64, 16_777_218]).expect("a tensor");
    let x = Tensor::new(&[2], vec![0.5_f32, 0.1]).expect("a tensor");
    let e = 1.0_f64.exp();
    let expected = [
        vec![16_777_217.5],
        vec![(16_777_217.0_f64 * 16_777_217.0 + 16_777_218.0 * 16_777_218.0).sqrt()],
        vec![1.0 / (1.0 + e), e / (1.0 + e)],
        vec![-(1.0 + e).ln(), 1.0 - (1.0 + e).ln()],
        vec![-1.0, 1.0],
        vec![0.5, 16_777_218.0],
        vec![16_777_217.0, 16_777_218.0, 0.5, f64::from(0.1_f32)],
    ];
    for head in ["", "numbers f64\n"] {
        let made = evaluated(&format!("{head}{text}"), &tensors([("n", n.clone()), ("x", x.clone())]));
        for (made, expected) in made.iter().zip(&expected) {
            let made = made.to_vec::<f64>().expect("f64");
            assert!(
                made.iter().zip(expected).all(|(a, b)| (a - b).abs() <= 1e-15 * b.abs().max(1.0)),
                "{made:?} {expected:?}"
            );
        }
    }
}

#[test]
fn every_function_of_whole_tensors_has_a_form() {
    let text = "
        input x: tensor[f64, 3], i: tensor[i64, 1], flags: tensor[bool, 1]
        output sum = tensor.sum(x, (0, -1))
        output kept = tensor.sum(x, 1, keep=true)
        output product = tensor.product(x, 2)
        output largest = tensor.max(x, (1, 2))
        output smallest = tensor.min(x)
        output some = tensor.any(flags)
        output each = tensor.all(flags, 0)
        output mean = tensor.mean(x, 0, true)
        output softmax = tensor.softmax(x)
        output log_softmax = tensor.log_softmax(x, 0)
        output logsumexp = tensor.logsumexp(x, -2)
        output norm = tensor.layer_norm(x)
        output turned = tensor.transpose(x, (2, 0, 1))
        output flat = tensor.reshape(x, (4, 3))
        output wide = tensor.broadcast(tensor.sum(x, 0), (5, 2, 3))
        output sliced = tensor.slice(x, -1, -2, 100)
        output every_other = tensor.slice(x, 2, 0, 3, 2)
        output taken = tensor.take(x, i, 2)
        output joined = tensor.concat((x, kept), 1)
        let flat_sum = tensor.sum(flat * flat)
        output gradient = tensor.grad(flat_sum, x)
        output loss = tensor.softmax_cross_entropy(flat, flat)";
    let given = tensors([
        ("x", counted(&[2, 2, 3], 3)),
        ("i", Tensor::new(&[2], vec![2_i64, 0]).expect("a tensor")),
        ("flags", Tensor::new(&[2], vec![true, false]).expect("a tensor")),
    ]);
    let made = evaluated(text, &given);
    let extents: Vec<&[usize]> = made.iter().map(Tensor::extents).collect();
    let expected: [&[usize]; 21] = [
        &[2],
        &[2, 1, 3],
        &[2, 2],
        &[2],
        &[],
        &[],
        &[],
        &[1, 2, 3],
        &[2, 2, 3],
        &[2, 2, 3],
        &[2, 3],
        &[2, 2, 3],
        &[3, 2, 2],
        &[4, 3],
        &[5, 2, 3],
        &[2, 2, 2],
        &[2, 2, 2],
        &[2, 2, 2],
        &[2, 3, 3],
        &[2, 2, 3],
        &[],
    ];
    assert_eq!(extents, expected);
    let x = given["x"].to_vec::<f64>().expect("floats");
    assert_eq!(made[0].to_vec::<f64>().expect("floats")[0], x[0] + x[1] + x[2] + x[6] + x[7] + x[8]);
    assert!(made[5].get::<bool>(&[]).expect("a truth value") && !made[6].get::<bool>(&[]).expect("a truth value"));
    assert_eq!(made[15].to_vec::<f64>().expect("floats")[..2], x[1..3]);
    assert_eq!(made[16].to_vec::<f64>().expect("floats")[..2], [x[0], x[2]]);
    assert_eq!(made[17].to_vec::<f64>().expect("floats")[..2], [x[2], x[0]]);
    let doubled: Vec<f64> = x.iter().map(|x| 2.0 * x).collect();
    assert_eq!(made[19].to_vec::<f64>().expect("floats"), doubled);
}

#[test]
fn what_does_not_fit_is_said_where_it_stands() {
    let of = |rest: &str| format!("input a: tensor[f64, 2], b: tensor[f64, 2], v: tensor[f64, 1], s: f64\n{rest}");
    for (rest, code, message, place) in [
        (
            "output c(\"i,j\") = a(\"i,k\") * b(\"k,l\")",
            "labels",
            "the label `l` is only in one factor, and not in the target",
            "b(\"k,l\")",
        ),
        ("output c(\"i\") = a(\"i,j\")", "labels", "the label `j` is not in the target", "a(\"i,j\")"),
        (
            "output c(\"i,q\") = a(\"i,j\") * v(\"j\")",
            "labels",
            "the label `q` of the target is in no part of the expression",
            "(\"i,q\") = a(\"i,j\") * v(\"j\")",
        ),
        ("output c(\"i,i\") = a(\"i,i\")", "labels", "the target has the label `i` twice", "(\"i,i\") = a(\"i,i\")"),
        (
            "output c(\"i\") = v(\"i\") + a(\"i,j\") * s",
            "labels",
            "the label `j` is only in one factor, and not in the target",
            "a(\"i,j\")",
        ),
        ("output c(\"i,j\") = a(\"i,j\") + a(\"j,k\")", "labels", "the label `k` is not in the target", "a(\"j,k\")"),
        ("output c(\"i\") = v(\"1i\")", "labels", "`1i` is not a label", "v(\"1i\")"),
        ("output c(\"i\") = v(\"i,j\") * v(\"j\")", "shape", "2 labels are given for a tensor of 1 axes", "v(\"i,j\")"),
        ("output c(\"i\") = v(\"i\") * a", "shape", "0 labels are given for a tensor of 2 axes", "a"),
        ("output c = a(\"i,j\")", "labels", "this output is computed with labels, so the output must have labels", "c"),
        (
            "let t = v(\"i\")\noutput c = tensor.sum(t)",
            "syntax",
            "this expression has labels, but a tensor without labels is needed here",
            "v(\"i\")",
        ),
        ("output c = tensor.sum(a, 2)", "shape", "there is no axis 2: the tensor has 2 axes", "2"),
        ("output c = tensor.sum(a, (0, 0))", "shape", "axis 0 is given twice", "tensor.sum(a, (0, 0))"),
        (
            "output c = tensor.sum(a, s)",
            "syntax",
            "this argument must be an integer, or a tuple of integers as a literal",
            "s",
        ),
        (
            "output c = tensor.any(a)",
            "type-mismatch",
            "the reduction Any does not take elements of type f64",
            "tensor.any(a)",
        ),
        (
            "output c: tensor[f64, 1] = a",
            "shape",
            "a value of type tensor[f64, 2] is declared to be of type tensor[f64, 1]",
            "tensor[f64, 1] = a",
        ),
        (
            "output c: tensor[f32, 2] = a",
            "type-mismatch",
            "a value of type tensor[f64, 2] is declared to be of type tensor[f32, 2]",
            "tensor[f32, 2] = a",
        ),
        ("output c = a & (s > 1.0)", "type-mismatch", "core.presence_and", "a & (s > 1.0)"),
        (
            "output c = tensor.grad(a, v)",
            "derivative",
            "the gradient must be of one float, found a tensor of 2 axes with elements of type f64",
            "tensor.grad(a, v)",
        ),
        ("output c = (a, b)", "type-mismatch", "this value is a tuple, but a tensor is needed here", "(a, b)"),
        ("output c = summ(a)", "unknown-name", "there is no operator `summ`", "summ"),
    ] {
        let text = of(rest);
        let (found, said, at) = refused(&text);
        assert_eq!((found, at), (code, Some(place)), "{rest}: {said}");
        assert!(said.starts_with(message), "{rest}: {said}");
    }
    assert_eq!(refused("input a: tensor[f64, 2], t: text; output c = a * t").0, "type-mismatch");
    // An input that no output needs may be of any type, or of none.
    let made = evaluated("input a: tensor[f64, 1], t: text, n; output c = a", &tensors([("a", counted(&[2], 1))]));
    assert!(same_bits(&made[0], &counted(&[2], 1)));
    assert_eq!(refused("input a: tensor[f64, 2], t; output c = a * t").0, "missing-input-type");
}

#[test]
fn tensors_and_rows_are_told_apart() {
    let model = Model::parse("input x: f64, a: tensor[f64, 2]; output c = a * x").expect("a model");
    let executor = model.compile(&Options::default()).expect("an executor");
    let error = model.batch(&Options::default()).expect_err("no rows");
    assert_eq!((error.code(), error.span().map(|span| span.start)), ("tensors", Some(14)), "{error}");
    let of_executor = executor.batch().expect_err("no rows");
    assert_eq!((of_executor.code(), of_executor.to_string()), ("tensors", error.to_string()));
    let rows = compiled("input x: f64; output y = x + 1.0");
    let x = [Tensor::scalar(1.0)];
    for error in [
        rows.session().run_tensors(&x).expect_err("no tensors"),
        rows.session().run_over(&mut x.to_vec(), 0).expect_err("no tensors"),
        rows.run_reference(&x).expect_err("no tensors"),
        rows.reader(0, &x).expect_err("no tensors"),
        rows.prepare_for(&[&[]]).expect_err("no tensors"),
    ] {
        let message = "the model has values that are neither tensors nor numbers; in Rust, call `Session::evaluate`, which takes all values";
        assert_eq!((error.code(), &*error.to_string()), ("tensors", message));
    }
    assert_eq!((rows.plan_counters().misses, rows.kernel_counters().misses), (0, 0));
    assert_eq!(refused("input x: f64; output y = tensor.sum(x)").0, "tensors");
}

#[test]
fn labels_are_read_only_where_there_are_tensors() {
    // `f` is a function: in a text without tensors nothing is labelled.
    let text = "let f = fn(x) = x + \"!\"\noutput y = f(\"i,j\")";
    assert_eq!(compiled(text).session().evaluate(&[]).expect("a text")[0].to_string(), "'i,j!'");
    // `tensor` is a name like any other.
    let text = "input tensor: f64; let t = tensor * 2.0; output y = t";
    assert_eq!(print(Model::parse(text).expect("a model").program()), "input tensor: f64\noutput y = tensor * 2.0\n");
    let made = evaluated(
        "input tensor: tensor[f64, 1]; output y(\"\") = tensor(\"i\") * tensor(\"i\")\noutput z = M.tensor.sum(tensor)",
        &tensors([("tensor", f64s(&[2], &[3.0, 4.0]))]),
    );
    assert_eq!(made[0].get::<f64>(&[]).expect("a float"), 25.0);
}

#[test]
fn functions_take_tensors_with_and_without_labels() {
    let text = r#"
        fn times(m: tensor[f64, 2], x) = m("i,j") * x("j")
        fn centred(x) = x - tensor.mean(x)
        fn ends(x) = (tensor.min(x), tensor.max(x))
        input a: tensor[f64, 2], v: tensor[f64, 1]
        let first("i") = times(a, v)
        output y("i") = times(a, first) + first("i")
        output z = centred(first)
        output reach = ends(v).1 - ends(v).0"#;
    let made =
        evaluated(text, &tensors([("a", f64s(&[2, 2], &[1.0, 2.0, 3.0, 4.0])), ("v", f64s(&[2], &[1.0, -1.0]))]));
    assert_eq!(made[0].to_vec::<f64>().expect("floats"), [-4.0, -8.0]);
    assert_eq!(made[1].to_vec::<f64>().expect("floats"), [0.0, 0.0]);
    assert_eq!(made[2].get::<f64>(&[]).expect("a float"), 2.0);
}

#[test]
fn operators_on_labelled_elements_stand_beside_each_other_by_labels() {
    let text = r#"
        input z: tensor[f64, 2], t: f64
        output m("i") = tensor.max(z, 1)("i")"#;
    assert_eq!(Model::parse(text).expect_err("no name").code(), "syntax");
    let text = r#"
        input z: tensor[f64, 2], t: f64
        let largest = tensor.max(z, 1)
        let e("i,j") = exp((z("i,j") - max(z("i,j"), largest("i"))) / t)
        let sum = tensor.sum(e, 1)
        output p("j,i") = e("i,j") / sum("i")
        output clipped("i,j") = where(z("i,j") > 1.0, 1.0, z("i,j"))"#;
    let made = evaluated(text, &tensors([("z", f64s(&[2, 2], &[1.0, 1.0, 3.0, 3.0])), ("t", Tensor::scalar(2.0))]));
    assert_eq!(made[0].to_vec::<f64>().expect("floats"), [0.5; 4]);
    assert_eq!(made[1].to_vec::<f64>().expect("floats"), [1.0; 4]);
}

#[test]
fn long_chains_of_whole_tensors_do_not_recurse() {
    let mut text = "input x: tensor[f64, 1]\nlet t0 = x\n".to_owned();
    for at in 0..50_000 {
        text.push_str(&format!("let t{} = (t{at} + x) * 0.5\n", at + 1));
    }
    text.push_str("output y = t50000\noutput z(\"i\") = t50000(\"i\")");
    let limits = cembra::Limits::default().nodes(1 << 20).source_bytes(1 << 24);
    let evaluate = move || {
        let options = Options::default().limits(limits);
        let model = Model::parse_within(&text, &limits).expect("a model");
        assert!(model.program().graph.len() > 100_000);
        let executor = model.compile(&options).expect("an executor");
        let x = [f64s(&[3], &[1.5, -2.0, 0.0])];
        let mut session = executor.session();
        let made = session.run_tensors(&x).expect("outputs");
        assert!(made.iter().all(|made| same_bits(made, &x[0])), "{made:?}");
    };
    // A sanitizer makes frames several times as large.
    let bytes = if std::env::var_os("CEMBRA_WATCHED").is_some() { 8 << 20 } else { 256 << 10 };
    let small = std::thread::Builder::new().stack_size(bytes).spawn(evaluate).expect("a thread");
    assert!(small.join().is_ok());
}

#[test]
fn a_labelled_expression_that_unfolds_without_end_is_refused() {
    let mut text = "input x: tensor[f64, 1]\nlet t0 = x(\"i\")\n".to_owned();
    for at in 0..60 {
        text.push_str(&format!("let t{} = t{at} + t{at}\n", at + 1));
    }
    text.push_str("output y(\"i\") = t60");
    assert_eq!(refused(&text).0, "limit");
}

#[test]
fn texts_are_printed_with_labels_where_they_can_be() {
    let printed = |text: &str| {
        compiled(text);
        print(Model::parse(text).expect("a model").program())
    };
    let text = "input a: tensor[f64, 2]\nlet t0(\"i,j\"): tensor[f64, 2] = a(\"j,i\") * 2.0\n\
                output c(\"i,k\") = t0(\"i,j\") * a(\"j,k\")\noutput d(\"k\"): tensor[f64, 1] = t0(\"k,k\")\noutput e = t0\n";
    assert_eq!(printed(text), text);
    // What is used with labels gets a name, and so does what has some.
    assert_eq!(
        printed("input a: tensor[f64, 2]; let t = a + 1.0; let u(\"i\") = t(\"i,i\"); output c = tensor.sum(u)"),
        "input a: tensor[f64, 2]\nlet t0 = a + 1.0\nlet t1(\"i\") = t0(\"i,i\")\noutput c = tensor.sum(t1, UNSPECIFIED{}, false)\n"
    );
    // An expression without its text has no names.
    let model = Model::parse("input a: tensor[f64, 2]; output c(\"j,i\") = a(\"i,j\")").expect("a model");
    let node = model.program().outputs[0].node;
    let expected = "tensor._bind(tensor._at(a, \"i,j\"), \"j,i\")";
    assert_eq!(cembra::program::print_expression(&model.program().graph, node), expected);
}

#[test]
fn an_output_that_nobody_has_memory_for_is_refused() {
    let text = "input x: tensor[f64, 1]; output y = tensor.broadcast(x, (1000000000000, 2))";
    let executor = compiled(text);
    let error = run(&executor, &tensors([("x", f64s(&[2], &[1.0, 2.0]))])).expect_err("too large");
    assert_eq!(
        error.to_string(),
        "output `y`: a tensor of extents [1000000000000, 2] takes 16000000000000 bytes; the limit is 4294967296 bytes; make fewer or smaller arrays, or raise \
         the limit `array_bytes`"
    );
    assert_eq!(error.code(), "limit");
    let wrong = [f64s(&[3], &[1.0, 2.0, 3.0])];
    let error = executor.session().run_tensors(&wrong).expect_err("other extents");
    assert_eq!(error.span().map(|span| span.text(text)), Some("tensor.broadcast(x, (1000000000000, 2))"));
    assert_eq!(executor.run_reference(&wrong).expect_err("other extents").span(), error.span());
    let executor = compiled("input x: tensor[f64, 1]; output y = x");
    for (tensor, message, as_value) in [
        (
            f64s(&[1, 1], &[1.0]),
            "input `x` is tensor[f64, 1], but the given tensor has elements of type f64 and the extents [1, 1]",
            "input `x` is tensor[f64, 1], found tensor[f64, 2]",
        ),
        (
            Tensor::new(&[1], vec![1]).expect("a tensor"),
            "input `x` is tensor[f64, 1], but the given tensor has elements of type i32 and the extents [1]",
            "input `x` is tensor[f64, 1], found tensor[i32, 1]",
        ),
    ] {
        let error = run(&executor, &tensors([("x", tensor.clone())])).expect_err("another type");
        assert_eq!(error.to_string(), message);
        let error = executor.session().evaluate(&[tensor.into()]).expect_err("another type");
        assert_eq!((error.code(), &*error.to_string()), ("values", as_value));
    }
    let error = executor.session().run_tensors(&[]).expect_err("no tensor");
    assert_eq!(error.to_string(), "0 tensors for 1 inputs");
    let error = executor.session().evaluate(&[]).expect_err("no tensor");
    assert_eq!(error.to_string(), "the model takes 1 inputs, found 0");
}
