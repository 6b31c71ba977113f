//! Tests features that models with tensors share with other models: evaluation on values, options, tests in the text,
//! explanations, model sets.

use super::executor::SCALED;
use super::{compiled, counted, f64s, inputs_of, run, tensors, try_compiled};
use cembra::errors::Code;
use cembra::explain::{Stage, WorkSummary};
use cembra::json::JsonRow;
use cembra::tensor::{CompileGraph, Reduction, TensorGraph, same_bits};
use cembra::testing::{Mismatch, TestFailure};
use cembra::{
    Backend, Cancellation, Executor, Field, Model, ModelSet, Options, Pool, QType, RunOptions, Scalar, ScalarValue,
    Tensor, Value,
};
use cembra_engine::LoadedRows;

#[test]
fn threads_take_sessions_from_a_pool() {
    let pool = Pool::new(compiled(SCALED).session());
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let pool = &pool;
            scope.spawn(move || {
                for extent in 1..20 {
                    let inputs = [counted(&[2, extent], thread), counted(&[extent], 1), Tensor::scalar(1.0)];
                    let x = inputs[0].to_vec::<f64>().expect("floats");
                    let sums = pool.with(|session| session.run_tensors(&inputs).map(|made| made[1].clone()));
                    let expected = x.chunks(extent).map(|row| row.iter().sum()).collect::<Vec<f64>>();
                    assert_eq!(sums.expect("sums").to_vec::<f64>().expect("floats"), expected);
                }
            });
        }
    });
    assert!((1..=4).contains(&pool.idle()), "{}", pool.idle());
}

/// A later run of the session does not change an output of an earlier run that the caller still has.
#[test]
fn outputs_that_somebody_keeps_are_not_written_over() {
    let executor = compiled("input x: tensor[f64, 1], by: f64; output y = x * by; output sum = tensor.sum(x)");
    let mut session = executor.session();
    let mut kept: Vec<Value> = Vec::new();
    let mut views: Vec<Tensor> = Vec::new();
    let mut list = Vec::new();
    for at in 1..=4 {
        let x = f64s(&[3], &[1.0, 2.0, f64::from(at)]);
        let values = [Value::from(x.clone()), Value::from(10.0)];
        kept.extend(session.evaluate(&values).expect("values"));
        let made = session.run_tensors(&[x.clone(), Tensor::scalar(-1.0)]).expect("outputs");
        views.push(made[0].clone());
        // The list has the values of the run before, which are not used any more.
        session.evaluate_into(&values, &mut list).expect("values");
        let sum = list[1].as_scalar().cloned();
        assert_eq!(sum, Some(ScalarValue::Float64(3.0 + f64::from(at))));
    }
    for (at, values) in (1..=4).map(f64::from).zip(kept.chunks(2)) {
        let y = values[0].as_tensor().expect("a tensor").to_vec::<f64>().expect("floats");
        assert_eq!((y, &values[1]), (vec![10.0, 20.0, 10.0 * at], &Value::from(3.0 + at)));
        assert_eq!(views[at as usize - 1].to_vec::<f64>().expect("floats"), [-1.0, -2.0, -at]);
    }
}

#[test]
fn side_outputs_are_told_to_listeners() {
    let mut session = compiled("input x: tensor[f64, 1]; output y = x + 1.0; output sum = tensor.sum(x)").session();
    let mut told = Vec::new();
    let main =
        session.listen(&[f64s(&[2], &[1.0, 2.0]).into()], &mut |name, value| told.push((name.to_owned(), value)));
    assert_eq!(main.expect("a value").as_tensor().expect("a tensor").to_vec::<f64>().expect("floats"), [2.0, 3.0]);
    assert_eq!(told, [("sum".to_owned(), Value::from(3.0))]);
}

#[test]
fn only_the_outputs_that_are_asked_for_are_computed() {
    let text = "input x: tensor[f64, 2], i: tensor[i64, 1], s: f64, by: f64? = 0.5
        output quotients = 10 // i
        output sums = tensor.sum(x, 1) * by
        output number = s * 2.0";
    let model = Model::parse(text).expect("a model");
    let of = |names: &[&str]| model.compile(&Options::default().outputs(names.iter().copied())).expect("an executor");
    let names = |executor: &Executor| -> Vec<Vec<String>> {
        [executor.inputs(), executor.outputs()]
            .map(|fields| fields.iter().map(|field| field.name.to_string()).collect())
            .to_vec()
    };
    // Division by zero, by which no other output fails.
    let given = tensors([
        ("x", f64s(&[2, 2], &[1.0, 2.0, 3.0, 5.0])),
        ("i", Tensor::new(&[1], vec![0_i64]).expect("a tensor")),
        ("s", Tensor::scalar(7.0)),
    ]);
    assert!(run(&of(&["sums", "quotients"]), &given).is_err());
    let sums = of(&["sums"]);
    assert_eq!(names(&sums), [vec!["x", "by"], vec!["sums"]]);
    assert_eq!(run(&sums, &given).expect("sums")[0].to_vec::<f64>().expect("floats"), [1.5, 4.0]);
    let both = of(&["number", "sums"]);
    assert_eq!(names(&both), [vec!["x", "s", "by"], vec!["number", "sums"]]);
    let made = run(&both, &given).expect("outputs");
    assert_eq!((made[0].get::<f64>(&[]).ok(), made[1].extents()), (Some(14.0), &[2][..]));
    // The signature says the same, and so does what needs no tensor at all.
    let signature = model.signature(&Options::default().outputs(["number"])).expect("a signature");
    let number = of(&["number"]);
    assert_eq!((&*signature.inputs, &*signature.outputs), (number.inputs(), number.outputs()));
    assert_eq!(number.session().evaluate(&[7.0.into()]).expect("a number"), [Value::from(14.0)]);
    let error = model.compile(&Options::default().outputs(["sum"])).expect_err("no such output");
    assert_eq!((error.code(), error.to_string().contains("did you mean `sums`?")), ("binding", true), "{error}");
    // What is wrong with an output that is not asked for is not said.
    let text = "input x: tensor[f64, 2], t: text\noutput y = x\noutput z(\"i\") = x(\"i,j\")\noutput w = t";
    let model = Model::parse(text).expect("a model");
    assert!(model.compile(&Options::default().outputs(["y"])).is_ok());
    assert_eq!(model.compile(&Options::default().outputs(["z"])).expect_err("labels").code(), "labels");
    // A text is computed apart.
    let text = model.compile(&Options::default().outputs(["w"])).expect("an executor");
    assert_eq!(text.session().evaluate(&[Value::from("so")]).expect("a text"), [Value::from("so")]);
}

#[test]
fn inputs_with_defaults_are_left_out() {
    let text = "input x: tensor[f64, 1], by: f64? = 2, of: i32? = 3; output y = x * by + of; output by_by = tensor.grad(tensor.sum(x * by), by)";
    let model = Model::parse(text).expect("a model");
    // Neither the name of an input without a default nor that of no input says anything.
    let options = Options::default().without_input("by").without_input("x").without_input("nothing");
    let executor = model.compile(&options).expect("an executor");
    let declared: Vec<String> = executor.inputs().iter().map(Field::declaration).collect();
    assert_eq!(declared, ["tensor[f64, 1]", "i32? = 3"]);
    assert_eq!(*model.signature(&options).expect("a signature").inputs, *executor.inputs());
    let x = f64s(&[2], &[1.0, 10.0]);
    let mut session = executor.session();
    for (of, expected) in [(Value::Missing(Scalar::Int32), [5.0, 23.0]), (Some(-1).into(), [1.0, 19.0])] {
        let made = session.evaluate(&[x.clone().into(), of]).expect("values");
        assert_eq!(made[0].as_tensor().expect("a tensor").to_vec::<f64>().expect("floats"), expected);
        assert_eq!(made[1], Value::from(11.0));
    }
    let inputs = [x, Tensor::scalar(0)];
    let made = session.run_tensors(&inputs).expect("outputs");
    let reference = executor.run_reference(&inputs).expect("outputs");
    assert!(made.iter().zip(&reference).all(|(made, reference)| same_bits(made, reference)), "{made:?}");
    assert_eq!(made[0].to_vec::<f64>().expect("floats"), [2.0, 20.0]);
    assert_eq!(executor.reader(0, &inputs).and_then(|reader| reader.get::<f64>(&[1])).expect("an element"), 20.0);
    let all = model.compile(&options.without_input("of")).expect("an executor");
    assert_eq!(all.inputs().len(), 1);
}

#[test]
fn the_caller_says_the_types_of_inputs_that_have_none() {
    let text = "output y = tensor.sum(x * w, 1); output scaled = w * by";
    let model = Model::parse(text).expect("a model");
    let options = Options::default()
        .input_type("x", QType::Tensor(Scalar::Float64, 2))
        .input_type("w", QType::Tensor(Scalar::Float64, 1));
    let error = model.compile(&options).expect_err("no type");
    assert_eq!(
        (error.code(), &*error.to_string()),
        ("missing-input-type", "input `by` has no type; declare the type, as in `input by: tensor[f64, 2]`")
    );
    let options = options.input_type("by", QType::FLOAT64);
    let executor = model.compile(&options).expect("an executor");
    let given = tensors([
        ("x", f64s(&[2, 2], &[1.0, 2.0, 3.0, 4.0])),
        ("w", f64s(&[2], &[10.0, 1.0])),
        ("by", Tensor::scalar(0.5)),
    ]);
    let made = run(&executor, &given).expect("outputs");
    assert_eq!(made[0].to_vec::<f64>().expect("floats"), [12.0, 34.0]);
    assert_eq!(made[1].to_vec::<f64>().expect("floats"), [5.0, 0.5]);
    let types = model.node_types(&options);
    let last = model.program().outputs[1].node.index();
    assert_eq!(types[last], Some(QType::Tensor(Scalar::Float64, 1)));
    assert!(model.check(&options).0.is_ok());
    // With one axis less the sum is of none.
    let wrong = options.input_type("x", QType::Tensor(Scalar::Float64, 1));
    for error in [model.compile(&wrong).expect_err("no axis"), model.signature(&wrong).expect_err("no axis")] {
        assert_eq!((error.code(), error.span().map(|span| span.text(text))), ("shape", Some("1")));
    }
    // A type that the text declares is not another one because the caller says so.
    let declared = Model::parse("input x: tensor[f64, 1]; output y = x").expect("a model");
    let other = Options::default().input_type("x", QType::Tensor(Scalar::Float64, 2));
    let error = declared.compile(&other).expect_err("another type");
    let message = "input `x` is declared tensor[f64, 1], but is given as tensor[f64, 2]";
    assert_eq!((error.code(), &*error.to_string()), ("input-type", message));
    assert_eq!(declared.signature(&other).expect_err("another type").code(), "input-type");
    // An input with a default may be one that is always given.
    let model = Model::parse("input x: tensor[f64, 1], by: f64? = 2; output y = x * by").expect("a model");
    let always = model.compile(&Options::default().input_type("by", QType::FLOAT64)).expect("an executor");
    assert_eq!(always.inputs()[1].declaration(), "f64");
    let x = Value::from(f64s(&[1], &[3.0]));
    let made = always.session().evaluate(&[x.clone(), Value::from(5.0)]).expect("values");
    assert_eq!(made[0].as_tensor().expect("a tensor").to_vec::<f64>().expect("floats"), [15.0]);
    assert_eq!(always.session().evaluate(&[x, Value::Missing(Scalar::Float64)]).expect_err("missing").code(), "values");
    for by in [QType::INT32, QType::Optional(Scalar::Float32)] {
        let error = model.compile(&Options::default().input_type("by", by)).expect_err("another type");
        assert_eq!(error.code(), "input-type");
    }
}

#[test]
fn tests_in_the_text_of_a_model_are_run() {
    let text = "
        input x: tensor[f64, 1], s: f64, by: f64? = 2
        let weights = [f64?]{1, 2, 3}
        output y = x * by
        output total = tensor.sum(weights * s) * by
        output quotient = 6 // cast(s, i32)
        test \"totals\" { s = 0.5, by = 1 } => { total = 3.0 }
        test \"defaults\" { s = 2 } => { total = 24, quotient = 3 }
        test \"wrong\" { s = 1 } => { total = 24 }
        test \"a tensor\" { x = [1.0, 2.0] } => { y = 24 }";
    let model = Model::parse(text).expect("a model");
    let report = model.run_tests(&Options::default());
    assert_eq!(report.cases, 4);
    let [wrong, tensor] = &*report.failures else { panic!("{:?}", report.failures) };
    let [Mismatch::Output { name, expected, found }] = &*wrong.mismatches else { panic!("{wrong:?}") };
    assert_eq!((&**name, &**expected, &**found), ("total", "24.0", "12.0"));
    // A tensor is no literal.
    let [Mismatch::Unfit(problem)] = &*tensor.mismatches else { panic!("{tensor:?}") };
    assert_eq!(problem.message(), "input `x` is tensor[f64, 1], and the test gives it `[1.0, 2.0]`");
    // A test that expects an error has all outputs, and needs values for all of their inputs.
    let text = "
        input x: tensor[f64, 1], n: i32
        output quotients = tensor.sum(6 // (n * [i32?]{1, 2}))
        test \"division\" { n = 1 } => { quotients = 9 }
        test \"division by zero\" { n = 0 } => error \"div-by-zero\"
        test \"no error\" { n = 3 } => error \"div-by-zero\"";
    let report = Model::parse(text).expect("a model").run_tests(&Options::default());
    let [failure] = &*report.failures else { panic!("{:?}", report.failures) };
    assert!(matches!(&*failure.mismatches, [Mismatch::Error { expected: Some(_), found: None }]), "{failure:?}");
    // A run that is cancelled is no failure of the model.
    let token = Cancellation::new();
    token.cancel();
    let report = model.run_tests_with(&Options::default(), &RunOptions::new().cancellation(token));
    assert_eq!(report.failures.len(), 4);
    let ended = |failure: &TestFailure| match &*failure.mismatches {
        [Mismatch::Error { expected: None, found: Some(error) }] => error.code() == "cancelled",
        _ => false,
    };
    assert!(report.failures.iter().all(ended), "{:?}", report.failures);
}

#[test]
fn stages_show_the_steps_over_tensors() {
    let model = Model::parse(SCALED).expect("a model");
    let options = Options::default();
    let executor = model.compile(&options).expect("an executor");
    let listing = model.explain(&options, Stage::Tensors).expect("a listing");
    let plan = executor.prepare_for(&[&[64, 64], &[64], &[]]).expect("a plan");
    assert_eq!(listing, plan.to_string());
    assert!(listing.contains("[64, 64]"), "{listing}");
    assert_eq!(model.explain(&options, Stage::Expr).expect("a text"), cembra::explain::print(model.program()));
    for stage in Stage::ALL {
        let applies = matches!(stage, Stage::Expr | Stage::Tensors);
        if !applies {
            let answer = model.explain(&options, stage).expect("a sentence");
            assert_eq!(answer, "The model has tensors: `tensors` shows its steps.\n", "{stage:?}");
        }
    }
    let scalars = Model::parse("input x: f64; output y = x + 1.0").expect("a model");
    assert_eq!(
        scalars.explain(&options, Stage::Tensors).expect("a sentence"),
        "The model has no arrays and no tensors: `plan` shows its steps.\n"
    );
    let arrays = Model::parse("input x: [f64]; output y = x + 1.0").expect("a model");
    assert_eq!(
        arrays.explain(&options, Stage::Tensors).expect("a sentence"),
        "The model has arrays: `arrays` shows its steps, and the plans for their elements.\n"
    );
    // One output alone has fewer steps.
    let sums = model.explain(&options.clone().outputs(["sums"]), Stage::Tensors).expect("a listing");
    assert!(sums.lines().count() < listing.lines().count(), "{sums}");
    let error = Model::parse("input x: tensor[f64, 2]; output y(\"i\") = x(\"i,j\")").expect("a text");
    assert_eq!(error.explain(&options, Stage::Tensors).expect_err("labels").code(), "labels");
    assert_eq!(model.machine(&options).expect_err("no code of its own").code(), "tensors");
}

#[test]
fn summaries_count_the_steps_over_tensors() {
    let options = Options::default().backend(Backend::Native);
    let model = Model::parse(SCALED).expect("a model");
    let summary = model.summary(&options).expect("a summary");
    assert!(summary.stages().eq([Stage::Expr, Stage::Tensors]));
    let steps = model.compile(&options).expect("an executor").prepare_for(&[&[64, 64], &[64], &[]]).expect("a plan");
    let WorkSummary::Tensors { steps: Some(counted) } = summary.work else { panic!("{:?}", summary.work) };
    assert_eq!(counted, steps.counters().steps);
    assert_eq!((summary.backend, summary.fallback), (Backend::Native, None));
    assert_eq!(summary.signature.outputs[0].qtype, QType::Tensor(Scalar::Float64, 2));
    assert!(summary.written_nodes > 6 && summary.changed_by.is_empty(), "{}", summary.written_nodes);
    let summary = model.summary(&Options::default().backend(Backend::Interpreter)).expect("a summary");
    assert_eq!((summary.backend, summary.tier_name()), (Backend::Interpreter, None));
    // Nothing is known of steps where no axes of 64 indices fit.
    let reshaped = Model::parse("input x: tensor[f64, 1]; output y = tensor.reshape(x, (3, -1))").expect("a model");
    let summary = reshaped.summary(&options).expect("a summary");
    assert!(matches!(summary.work, WorkSummary::Tensors { steps: None }), "{:?}", summary.work);
}

#[test]
fn every_backend_evaluates_them() {
    let text = "input a: tensor[f64, 2], x: tensor[f64, 1]; output y(\"i\") = a(\"i,j\") * x(\"j\"); output e = exp(x)";
    let model = Model::parse(text).expect("a model");
    let given = tensors([("a", counted(&[70, 90], 1)), ("x", counted(&[90], 4))]);
    let expected = run(&compiled(text), &given).expect("outputs");
    for backend in [Backend::Interpreter, Backend::Native, Backend::Auto, Backend::Tiered] {
        let options = Options::default().backend(backend);
        for options in [options.clone(), options.reference_order(true)] {
            let executor = model.compile(&options).expect("an executor");
            let mut session = executor.session();
            for _ in 0..2 {
                let made = session.run_tensors(&inputs_of(&executor, &given)).expect("outputs");
                assert!(made.iter().zip(&expected).all(|(made, expected)| same_bits(made, expected)), "{backend:?}");
                executor.finish_tiers();
            }
            assert!(executor.tiers_are_finished());
            let is_interpreted = backend == Backend::Interpreter;
            assert_eq!(executor.backend() == Backend::Interpreter, is_interpreted, "{backend:?}");
            assert_eq!(executor.tier().is_none(), is_interpreted, "{backend:?}");
            assert!(executor.fallback().is_none(), "{backend:?}");
        }
    }
}

#[test]
fn graphs_are_compiled_as_models_are() {
    let mut g = TensorGraph::standard();
    let x = g.leaf("x", Scalar::Float64, &[3]).expect("a leaf");
    let by = g.leaf("by", Scalar::Float64, &[]).expect("a leaf");
    let unused = g.leaf("unused", Scalar::Int32, &[2]).expect("a leaf");
    let product = g.apply("math.multiply", &[x, by]).expect("a node");
    let sum = g.reduce(Reduction::Sum, product, &[0]).expect("a node");
    let executor = g.compile(&[product, sum, unused, x], &Options::default()).expect("an executor");
    let named = |fields: &[Field]| -> Vec<String> {
        fields.iter().map(|field| format!("{}: {}", field.name, field.qtype)).collect()
    };
    assert_eq!(named(executor.inputs()), ["x: tensor[f64, 1]", "by: f64", "unused: tensor[i32, 1]"]);
    assert_eq!(named(executor.outputs()), ["0: tensor[f64, 1]", "1: f64", "2: tensor[i32, 1]", "3: tensor[f64, 1]"]);
    let pair = Tensor::new(&[2], vec![4, 5]).expect("a tensor");
    let values = [f64s(&[3], &[1.0, 2.0, 3.0]).into(), 2.0.into(), Value::from(pair.clone())];
    let made = executor.session().evaluate(&values).expect("values");
    let tensor = |at: usize| made[at].as_tensor().expect("a tensor");
    assert_eq!(tensor(0).to_vec::<f64>().expect("floats"), [2.0, 4.0, 6.0]);
    assert_eq!(made[1], Value::from(12.0));
    assert!(same_bits(tensor(2), &pair));
    assert_eq!(tensor(3).to_vec::<f64>().expect("floats"), [1.0, 2.0, 3.0]);
    // Extents are those of the leaves.
    let wrong = [f64s(&[2], &[1.0, 2.0]), Tensor::scalar(1.0), pair];
    assert_eq!(executor.session().run_tensors(&wrong).expect_err("2 for 3").code(), "shape");
    assert_eq!(executor.prepare_for(&[&[2], &[], &[2]]).expect_err("2 for 3").code(), "shape");
    assert_eq!(executor.prepare_for(&[&[3], &[]]).expect_err("two").code(), "shape");
    assert_eq!(executor.batch().expect_err("no rows").code(), "tensors");
    assert_eq!(LoadedRows::of(&executor, &[values.to_vec()]).expect_err("no frames").code(), "tensors");
    // The graph may be changed or dropped behind it.
    drop(g);
    assert!(executor.session().evaluate(&values).is_ok());
}

#[test]
fn sets_of_models_have_models_with_tensors() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text);
    write("layers.cem", "fn layer(x, w: tensor[f64, 2]) = tensor.relu(x(\"i\") * w(\"i,j\"))")?;
    write("net.cem", "use \"layers.cem\"\ninput x: tensor[f64, 1], w: tensor[f64, 2]\noutput y(\"j\") = layer(x, w)")?;
    write("rate.cem", "input x: f64; x * 2.0")?;
    let set = ModelSet::load_with(folder.path(), |_, model| model.compile(&Options::default()))?;
    let problems: Vec<String> = set.reload()?.failed.iter().map(ToString::to_string).collect();
    assert_eq!((set.names(), problems), (vec!["net".to_owned(), "rate".to_owned()], Vec::new()));
    let given = tensors([("x", f64s(&[2], &[1.0, 2.0])), ("w", f64s(&[2, 2], &[3.0, -1.0, 1.0, 0.0]))]);
    let answer = || -> Result<Vec<f64>, Box<dyn std::error::Error>> {
        let net = set.get("net").ok_or("there is a net")?;
        Ok(run(&net, &given)?[0].to_vec::<f64>()?)
    };
    assert_eq!(answer()?, [5.0, 0.0]);
    write("layers.cem", "fn layer(x, w: tensor[f64, 2]) = x(\"i\") * w(\"i,j\")")?;
    assert_eq!(set.reload()?.replaced, ["net"]);
    assert_eq!(answer()?, [5.0, -1.0]);
    // Labels that do not fit leave the model that was in the set.
    write("layers.cem", "fn layer(x, w: tensor[f64, 2]) = x(\"i\") * w(\"k,j\")")?;
    let reload = set.reload()?;
    assert_eq!((reload.failed.len(), reload.failed[0].name(), reload.failed[0].error().code()), (1, "net", "labels"));
    assert!(reload.failed[0].to_string().contains("layers.cem:1:"), "{}", reload.failed[0]);
    assert_eq!(answer()?, [5.0, -1.0]);
    Ok(())
}

#[test]
fn rows_of_json_are_values() -> Result<(), Box<dyn std::error::Error>> {
    let executor =
        compiled("input x: tensor[f64, 2], by: i32; output y = tensor.transpose(x) * by; output sum = tensor.sum(x)");
    let row = JsonRow::parse("{\"by\": 2, \"x\": [[1, 2.5], [3, -1e3], [0, \"Infinity\"]]}")?;
    let mut values = Vec::new();
    for field in executor.inputs() {
        let text = row.get(&field.name).ok_or("the row has all inputs")?;
        values.push(text.value(&field.qtype).map_err(|misfit| misfit.found.as_str().to_owned())?);
    }
    let made = executor.session().evaluate(&values)?;
    let expected = f64s(&[2, 3], &[2.0, 6.0, 0.0, 5.0, -2000.0, f64::INFINITY]);
    assert!(same_bits(made[0].as_tensor().ok_or("a tensor")?, &expected), "{}", made[0]);
    assert_eq!(made[1], Value::from(f64::INFINITY));
    Ok(())
}

#[test]
fn warnings_are_those_of_models_with_tensors_whoever_says_the_types() {
    let text = "let t = x * 2.0; output y = x + 1.0";
    let model = Model::parse(text).expect("a model");
    let options = Options::default().input_type("x", QType::Tensor(Scalar::Float64, 1));
    let codes = |options: &Options| model.warnings(options).as_slice().iter().map(|one| one.code()).collect::<Vec<_>>();
    assert_eq!(codes(&options), [Code::UnusedLet]);
    assert!(codes(&options.allow(Code::UnusedLet)).is_empty());
    assert!(try_compiled(text).is_err());
}
