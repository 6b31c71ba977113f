//! Tests models in tiles with values other than tensors: optional values, texts, arrays. Each model has the results of
//! its dense variant, the same text without `tile`; or its error names the line that prevents evaluation in tiles.

use cembra::tensor::Tensor;
use cembra::tiles::{
    Journal, Operand, Options, Screening, Step, StepKind, TensorInformation, TileExecutor, Tiled, TiledSession,
    TiledValue, Tiling, Tiling1, World,
};
use cembra::values::ArrayKind;
use cembra::{Array, Backend, Date, Error, Executor, Limits, Model, RunOptions, Scalar, ScalarValue, Value};
use std::collections::BTreeMap;

/// Returns a tensor of small whole numbers, of which sums and products are exact in any order.
fn tensor(extents: &[usize]) -> Tensor {
    let count: usize = extents.iter().product();
    Tensor::new(extents, (0..count).map(|at| (at * 7 % 11) as f64 - 3.0).collect()).expect("a tensor")
}

fn array(elements: &[f64]) -> Value {
    let elements = elements.iter().map(|element| Some(ScalarValue::Float64(*element)));
    Value::Array(ArrayKind::Dense, Array::from_scalars(Scalar::Float64, elements).into())
}

/// Returns values for all inputs that the models of this file may use. `n`, `few` and `p` are missing unless
/// `are_present`.
fn inputs(are_present: bool) -> BTreeMap<&'static str, Value> {
    let f32s = Tensor::new(&[9, 9], (0_u8..81).map(|at| f32::from(at % 7) - 2.0).collect()).expect("a tensor");
    BTreeMap::from([
        ("a", tensor(&[9, 9]).into()),
        ("f", f32s.into()),
        ("v", tensor(&[9]).into()),
        ("n", Value::from(are_present.then_some(1.5))),
        ("few", Value::from(are_present.then_some(2.0_f32))),
        ("p", Value::from(are_present.then_some(4.0))),
        ("s", Value::from(if are_present { "double" } else { "other" })),
        ("k", Value::from(3.0)),
        ("m", Value::from(3_i64)),
        ("flag", Value::from(are_present)),
        ("d", Value::Scalar(ScalarValue::Date(Date::of(2024, 2, 29).expect("a date")))),
        ("xs", array(&[1.0, 2.5, 4.0])),
    ])
}

const HEAD: &str = "tile i, j, k = 4
input a: tiled[f64, \"i,j\"], f: tiled[f32, \"i,j\"], v: tiled[f64, \"q\"]
input n: f64?, few: f32?, p: f64? = 2.0, s: text, k: f64, m: i64, flag: bool, d: date, xs: [f64]
";

fn compiled(text: &str, backend: Backend) -> Result<Executor, Error> {
    Model::parse(text)?.compile(&cembra::Options::default().backend(backend))
}

/// Evaluates the model `text` on dense tensors.
fn dense(text: &str, inputs: &BTreeMap<&str, Value>, backend: Backend) -> Result<Vec<Value>, Error> {
    let executor = compiled(text, backend)?;
    let row: Vec<Value> = executor.inputs().iter().map(|field| inputs[&*field.name].clone()).collect();
    executor.session().evaluate(&row)
}

/// Evaluates a model in tiles on the ranks of `world`, and returns its outputs, with tensors collected from all ranks.
fn in_tiles(executor: &Executor, inputs: &BTreeMap<&str, Value>, world: &World) -> Result<Vec<Value>, Error> {
    let open = session(executor, world)?;
    let mut made = open.evaluate(inputs.iter().map(|(name, value)| (*name, Operand::Value(value))))?;
    let mut values = Vec::new();
    for field in executor.outputs() {
        values.push(match made.remove(&*field.name).expect("an output") {
            TiledValue::Tiled(tiled) => TiledValue::Tiled(open.evaluator().gathered(&tiled)?).to_value()?,
            TiledValue::Value(value) => value,
        });
    }
    Ok(values)
}

/// Returns a session in tiles with the default options.
fn session(executor: &Executor, world: &World) -> Result<TiledSession, Error> {
    executor.tiled(world, Options::default())
}

/// Returns the dense variant of a model's text: without `tile` lines and tiled types.
fn without_tiles(text: &str) -> String {
    let lines = text.lines().filter(|line| !line.trim_start().starts_with("tile "));
    let text: String = lines.flat_map(|line| [line, "\n"]).collect();
    [("f64", "i,j", 2), ("f32", "i,j", 2), ("f64", "q", 1)].into_iter().fold(text, |text, (scalar, labels, rank)| {
        text.replace(&format!("tiled[{scalar}, \"{labels}\"]"), &format!("tensor[{scalar}, {rank}]"))
    })
}

/// Models that are evaluated in tiles, and must have the results of their dense variants.
const IN_TILES: [&str; 45] = [
    // Optional values, missing and present.
    "output y = a * (n ?? 1.0)",
    "output y(\"i,j\") = (n ?? 2.0) * a(\"i,k\") * a(\"k,j\")\noutput z = n ?? 3.0",
    "output z = n ?? tensor.sum(a)",
    "output z = n * tensor.sum(a) + 1.0",
    "output y = a * p\noutput z = p + k",
    "output y = f * (few ?? 1.0)\noutput z = few * tensor.max(f)",
    "output y = if n > 1.0 then a else a * 2.0",
    "output y = a + k\noutput some = has(n)\noutput both = n + k",
    "let by = n ?? tensor.max(a)\noutput y = a * by",
    "output z = (n ?? 1.0) * a(\"i,i\").sum()",
    // Texts.
    "output y = if s == \"double\" then a * 2.0 else a",
    "let by = if s == \"double\" then 2.0 else 0.5\noutput y = by * a",
    "output y(\"i,j\") = a(\"i,k\") * a(\"k,j\") * (lookup(s, {\"double\": 2.0}) ?? 1.0)",
    "output y = a\noutput t = strings.join(s, \"!\")",
    "output y = a * strings.length(s)",
    "output t = strings.as_text(tensor.sum(a))\noutput y = tensor.sum(a)",
    "output size = if tensor.sum(a) > 10.0 then \"large\" else \"small\"",
    "output t = strings.join(s, if tensor.max(a) > k then \": over\" else \": under\")\noutput y = exp(a) - 1.0",
    "let chosen = if s == \"double\" then a * 2.0 else a * a\noutput y = exp(chosen)\noutput z = tensor.sum(chosen)",
    "output z = if s == \"none\" then k // 0.0 else tensor.sum(a)",
    "output c = if s == \"double\" then tensor.sum(a) else tensor.max(exp(a) * a)",
    // Arrays.
    "let by = sum([1.0, 2.0, 3.5])\noutput y = a / by",
    "output y = a * sum(xs) + count(xs)",
    "output rows = array.of_tensor(tensor.sum(a, 1))",
    "output share = array.of_tensor(tensor.sum(a, 1)) / tensor.sum(a)\noutput y = a + 1.0",
    "output y = v * [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0]",
    "output y(\"q\") = v(\"q\") + tensor.sum(tensor.of_array(xs))",
    "let w = tensor.of_array(xs)\noutput outer(\"i,j,u\") = a(\"i,j\") * w(\"u\")",
    "output of = array.of_tensor(v) * n",
    "output none = sum(array.of_tensor(tensor.sum(a, 0))) - tensor.sum(a)",
    // Numbers and truth values that tiles do not have.
    "output y = a * m",
    "output y = a + 1.0\noutput z = m + 1",
    "output y = if flag then a else -a",
    "output y = a\noutput not_it = not flag",
    "output above = tensor.sum(a) > 10.0\noutput below: bool = tensor.sum(a) < k",
    "output within = tensor.max(a) < 100.0 and tensor.min(a) > -100.0",
    "output class = if tensor.sum(a) > 10.0 then 1 else 2",
    "output y = a * date.year(d)\noutput next = date.year(d) + m",
    "output four = 4\noutput y = a * 4",
    // Tensors that depend on tensors by way of other values.
    "output y = a * strings.length(strings.as_text(tensor.sum(a)))",
    "let b(\"i,j\") = a(\"i,k\") * a(\"k,j\")\noutput y = b * strings.length(strings.as_text(tensor.sum(b)))",
    "let b(\"i,j\") = a(\"i,k\") * a(\"k,j\")\nlet by = n ?? tensor.sum(b)\noutput y(\"i,j\") = by * b(\"i,k\") * a(\"k,j\")\n\
     output t = strings.as_text(tensor.sum(b))",
    // Derivatives.
    "output g = tensor.grad(tensor.sum(a * a) * (n ?? 1.0), a)",
    "output g = tensor.grad(tensor.sum(if s == \"double\" then a * a else a), a)",
    // What is printed beside tensors.
    "output y = tensor.slice(a, 0, 4, 8)\noutput pair = (s, n ?? 0.0)",
];

/// Panics with all errors in `wrong`, if there are any.
fn none_wrong(wrong: impl Iterator<Item = Result<(), String>>) {
    let wrong: Vec<String> = wrong.filter_map(Result::err).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Compares the results of a model in tiles with those of its dense variant. The error describes the difference.
fn compared(rest: &str, backend: Backend) -> Result<(), String> {
    let text = format!("{HEAD}{rest}");
    let failed = |error: Error| format!("{rest}: {}", error.render(&*text));
    let (executor, whole) =
        (compiled(&text, backend).map_err(failed)?, compiled(&without_tiles(&text), backend).map_err(failed)?);
    if !executor.is_tiled() || executor.cuts().count() != 3 {
        return Err(format!("{rest}: not in tiles"));
    }
    let types = |executor: &Executor| -> Vec<_> {
        executor.outputs().iter().map(|field| (field.name.clone(), field.qtype.clone())).collect()
    };
    if types(&executor) != types(&whole) {
        return Err(format!("{rest}: {:?}, and {:?} are right", types(&executor), types(&whole)));
    }
    for are_present in [false, true] {
        let inputs = inputs(are_present);
        let wanted = dense(&without_tiles(&text), &inputs, backend).map_err(failed)?;
        // The door of dense tensors reads the text with its tiles, too.
        for made in [dense(&text, &inputs, backend), in_tiles(&executor, &inputs, &World::alone())] {
            let made = made.map_err(failed)?;
            if made != wanted {
                return Err(format!("{rest}: {made:?}, and {wanted:?} is right"));
            }
        }
    }
    Ok(())
}

#[test]
fn values_beside_tiles_are_those_of_the_dense_run() {
    for backend in [Backend::Native, Backend::Interpreter] {
        none_wrong(IN_TILES.iter().map(|rest| compared(rest, backend)));
    }
}

/// Models that cannot be evaluated in tiles, each with the text at the error's place.
const REFUSED: [(&str, &str); 13] = [
    ("output y = tensor.sum(tensor.take(a, [1, 2])) * (n ?? 1.0)", "[1, 2]"),
    ("output y = tensor.take(a, m)\noutput t = s", "tensor.take(a, m)"),
    ("let both = tensor.concat((a, a), 0)\noutput y = both * (n ?? 1.0)", "tensor.concat((a, a), 0)"),
    ("output y = a > 0.0\noutput t = s", "a > 0.0"),
    ("output y = tensor.sum(if a > 0.0 then 1 else 0) + m", "if a > 0.0 then 1 else 0"),
    ("output t = if tensor.all(a > 0.0) then s else \"\"", "a > 0.0"),
    (
        "output y = a * [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0]",
        "a * [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0]",
    ),
    ("output y = v * [1, 2, 3, 4, 5, 6, 7, 8, 9]\noutput t = s", "[1, 2, 3, 4, 5, 6, 7, 8, 9]"),
    ("output y = tensor.slice(a, 0, 0, 8, 2) * sum(xs)", "tensor.slice(a, 0, 0, 8, 2)"),
    ("output y = tensor.reshape(a, -1)\noutput t = s", "tensor.reshape(a, -1)"),
    ("output rows = array.of_tensor(tensor.argmax(a, 1))", "tensor.argmax(a, 1)"),
    ("output y(\"p,q\") = a(\"p,q\") * (n ?? 1.0)", "a(\"p,q\")"),
    ("output y = a + n", "n"),
];

#[test]
fn what_has_no_place_in_tiles_is_refused_where_it_stands() {
    none_wrong(REFUSED.iter().map(|(rest, place)| {
        let text = format!("{HEAD}{rest}");
        let made = compiled(&text, Backend::Native);
        let error = match made.and_then(|executor| in_tiles(&executor, &inputs(true), &World::alone())) {
            Ok(made) => return Err(format!("{rest}: {made:?}")),
            Err(error) => error,
        };
        let found = error.span().map(|span| span.text(&text));
        let is_right = found == Some(*place) && error.tensor_kind().is_some();
        if is_right { Ok(()) } else { Err(format!("{rest}: {error} at {found:?}")) }
    }));
}

#[test]
fn ranks_evaluate_by_themselves_what_stands_beside_tiles() {
    let inputs = inputs(true);
    none_wrong(IN_TILES.iter().flat_map(|rest| {
        let executor = compiled(&format!("{HEAD}{rest}"), Backend::Native).expect(rest);
        let alone = in_tiles(&executor, &inputs, &World::alone()).expect(rest);
        let on = |ranks: usize| {
            let made = World::on_threads(ranks, |world| in_tiles(&executor, &inputs, &world));
            match made.into_iter().find(|made| made.as_ref().ok() != Some(&alone)) {
                Some(made) => Err(format!("{rest} on {ranks} ranks: {made:?}, and {alone:?} is right")),
                None => Ok(()),
            }
        };
        [1, 2, 4].map(on)
    }));
}

/// An error of the values besides tensors is the same on all ranks as in one process, and the next evaluation works.
#[test]
fn ranks_that_fail_beside_tiles_fail_together() {
    let text = format!(
        "{HEAD}output y = a * strings.parse_float64(s)\noutput t = strings.as_text(tensor.sum(a))\noutput z = n ?? k"
    );
    let executor = compiled(&text, Backend::Native).expect("a model");
    let good = || {
        let mut inputs = inputs(true);
        inputs.insert("s", Value::from("2.5"));
        inputs
    };
    let wanted = in_tiles(&executor, &good(), &World::alone()).expect("values");
    let changes: [(&str, Value, &str); 4] = [
        // The part before fails, on all ranks or on one.
        ("s", Value::from("two"), "two"),
        // Its values differ.
        ("s", Value::from("2"), "ranks disagree on the value of `s`"),
        ("n", Value::from(Some(7.5)), "ranks disagree on the value of `n`"),
        // A value of another type.
        ("n", Value::from("x"), "`n`"),
    ];
    for (name, value, said) in changes {
        for wrong in [None, Some(0), Some(2)] {
            let made = World::on_threads(3, |world| {
                let mut inputs = good();
                if wrong.is_none_or(|wrong| wrong == world.rank()) {
                    inputs.insert(name, value.clone());
                }
                let first = in_tiles(&executor, &inputs, &world).map_err(|error| error.to_string());
                Ok((first, in_tiles(&executor, &good(), &world)?))
            });
            let made: Vec<_> = made.into_iter().map(|made| made.expect("no error of the link")).collect();
            for (first, again) in &made {
                assert_eq!(again, &wanted, "{name}");
                match first {
                    // Ranks that are given the same value have it.
                    Ok(_) => assert!(wrong.is_none() && said.starts_with("ranks"), "{name} = {value}"),
                    Err(error) => {
                        assert_eq!(Err(error.clone()), made[0].0, "{name} = {value}");
                        assert!(error.contains(said), "{name} = {value}: {error}");
                    }
                }
            }
        }
    }
}

#[test]
fn outputs_of_other_types_are_asked_for_by_evaluate() {
    let text = format!("{HEAD}output y = a * (n ?? 1.0)\noutput z = n ?? 3.0\noutput t = s");
    let executor = compiled(&text, Backend::Native).expect("a model");
    let open = session(&executor, &World::alone()).expect("a session");
    let inputs = inputs(true);
    let given = || inputs.iter().map(|(name, value)| (*name, Operand::Value(value)));
    let error = open.run(given()).expect_err("a text");
    assert!(error.to_string().contains("output `t` is text, which cannot become a tensor"), "{error}");
    assert!(error.to_string().contains("TiledSession::evaluate"), "{error}");
    let text = text.replace("output t = s", "");
    let executor = compiled(&text, Backend::Native).expect("a model");
    let open = session(&executor, &World::alone()).expect("a session");
    let made = open.run(given()).expect("tensors");
    assert_eq!(made["z"].get::<f64>(&[]).expect("a number"), 1.5);
    // Optional values and those with a default may be left out, and numbers may be given in any form.
    let a = tensor(&[9, 9]);
    let made = open.run([("a", Operand::Dense(&a))]).expect("tensors");
    assert_eq!(made["z"].get::<f64>(&[]).expect("a number"), 3.0);
    let number = Tensor::scalar(7.0);
    let made = open.run([("a", Operand::Dense(&a)), ("n", Operand::Dense(&number))]).expect("tensors");
    assert_eq!(made["z"].get::<f64>(&[]).expect("a number"), 7.0);
    let error = open.run([("n", Operand::Dense(&number))]).expect_err("no tensor");
    assert!(error.to_string().starts_with("no tensor is given for `a`"), "{error}");
    let text = format!("{HEAD}output y = a * strings.length(s)");
    let executor = compiled(&text, Backend::Native).expect("a model");
    let open = session(&executor, &World::alone()).expect("a session");
    let error = open.run([("a", Operand::Dense(&a))]).expect_err("no text");
    assert!(error.to_string().starts_with("no value is given for `s`"), "{error}");
    // The inputs that threads share are tensors; other values are given beside them.
    let cut = open.cut_inputs(given()).expect("tiles");
    assert_eq!(cut.keys().collect::<Vec<_>>(), ["a"]);
}

#[test]
fn what_stands_beside_tiles_ends_with_the_run() {
    let text =
        format!("{HEAD}let by = seq.reduce(fn(s, i) = s + i * i, seq.range(m), 0)\noutput y = a * to_float64(by)");
    let options = cembra::Options::default().limits(Limits::default().loop_iterations(u64::MAX));
    let executor = Model::parse(&text).and_then(|model| model.compile(&options)).expect("a model");
    let mut inputs = inputs(true);
    inputs.insert("m", Value::from(1_i64 << 45));
    let given = || inputs.iter().map(|(name, value)| (*name, Operand::Value(value)));
    let limit = RunOptions::new().time_limit(std::time::Duration::from_millis(20));
    let open = session(&executor, &World::alone()).expect("a session").run_options(&limit);
    assert_eq!(open.evaluate(given()).expect_err("no end").code(), "deadline");
    let few = RunOptions::new().limits(Limits::default().loop_iterations(1000));
    let open = session(&executor, &World::alone()).expect("a session").run_options(&few);
    assert_eq!(open.evaluate(given()).expect_err("no end").code(), "iteration-limit");
}

/// A plan knows the values that are computed before the tensors, but not those that depend on tensors.
#[test]
fn plans_are_those_of_the_tensors() {
    let compiled = |rest: &str| compiled(&format!("{HEAD}{rest}"), Backend::Native).expect(rest);
    let executor =
        compiled("output y(\"i,j\") = (n ?? 1.0) * a(\"i,k\") * a(\"k,j\")\noutput t = strings.as_text(tensor.sum(a))");
    let journal = Journal::default();
    let inputs = inputs(true);
    let run = World::alone().evaluator(Options::default().threshold(0.0)).journal(journal.clone());
    let open = run.tiled(&executor);
    open.evaluate(inputs.iter().map(|(name, value)| (*name, Operand::Value(value)))).expect("values");
    let nine = [9, 9];
    let n = Value::from(Some(1.5));
    let plan = open.plan([("a", TensorInformation::Extents(&nine)), ("n", Operand::Value(&n).into())]).expect("steps");
    let products = |steps: &[Step]| -> Vec<StepKind> { steps.iter().map(|step| step.work).collect() };
    assert_eq!(products(&plan), products(&journal.steps()));
    // What is left out is missing.
    assert_eq!(products(&open.plan([("a", TensorInformation::Extents(&nine))]).expect("steps")), products(&plan));
    for (rest, said, place) in [
        ("output y = a * (n ?? k)", "the steps depend on the value of `k`, which is not known", None),
        (
            "output y = a * strings.length(strings.as_text(tensor.sum(a)))",
            "tensors depend on this value",
            Some("tensor.sum(a)"),
        ),
    ] {
        let executor = compiled(rest);
        let open = session(&executor, &World::alone()).expect("a session");
        let error = open
            .plan([("a", TensorInformation::Extents(&nine)), ("k", TensorInformation::Extents(&[]))])
            .expect_err(rest);
        assert!(error.to_string().contains(said), "{rest}: {error}");
        assert_eq!(error.span().map(|span| span.text(&format!("{HEAD}{rest}")).to_owned()).as_deref(), place, "{rest}");
    }
}

/// Statements on tiled tensors may use texts and arrays too.
#[test]
fn statements_have_texts_and_arrays() {
    let a = tensor(&[9, 9]);
    let axis = Tiling1::blocked(9, 4).expect("tiles");
    let tiling = Tiling::new([&axis, &axis]).expect("tiles");
    let all = Screening::threshold(0.0);
    let tiled = Tiled::from_tensor(&a, &tiling, &all).expect("tiles");
    let mut run = World::alone().evaluator(Options::default());
    let made = run.statement("a * strings.length('abc') / sum([1.0, 2.0])", [("a", &tiled)]).expect("a tensor");
    assert_eq!(made.to_tensor().expect("memory"), a);
    let error = run.statement("strings.as_text(tensor.sum(a))", [("a", &tiled)]).expect_err("a text");
    assert!(error.to_string().contains("a value of type text is given where a tensor is needed"), "{error}");
}
