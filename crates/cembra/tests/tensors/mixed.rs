//! Tests models with tensors and other values: texts, optional values, masks, arrays and dictionaries, which tensors
//! depend on or which depend on tensors. The types of the operands decide the meaning of an operator.

use cembra::values::ArrayKind;
use cembra::{
    Array, Backend, Cancellation, Limits, Mask, Model, Options, RunOptions, Scalar, ScalarValue, Tensor, Value,
};
use std::time::Duration;

fn floats(extents: &[usize], elements: &[f64]) -> Value {
    Value::from(Tensor::new(extents, elements.to_vec()).expect("a tensor"))
}

fn array(elements: &[Option<f64>]) -> Value {
    let elements = elements.iter().map(|element| element.map(ScalarValue::Float64));
    Value::Array(ArrayKind::Dense, Array::from_scalars(Scalar::Float64, elements).into())
}

/// Evaluates the model `text` on inputs that are given by name, asserts that both backends agree, and returns the
/// outputs.
fn evaluated(text: &str, inputs: &[(&str, Value)]) -> Vec<Value> {
    let mut all = Vec::new();
    for backend in [Backend::Native, Backend::Interpreter] {
        let model = Model::parse(text).unwrap_or_else(|error| panic!("{text}\n{}", error.render(text)));
        let options = Options::default().backend(backend);
        let executor = model.compile(&options).unwrap_or_else(|error| panic!("{text}\n{}", error.render(text)));
        let signature = model.signature(&options).expect("a signature");
        assert_eq!((executor.inputs(), executor.outputs()), (&*signature.inputs, &*signature.outputs), "{text}");
        let value = |name: &str| inputs.iter().find(|(known, _)| *known == name).map(|(_, value)| value.clone());
        let row: Option<Vec<Value>> = executor.inputs().iter().map(|input| value(&input.name)).collect();
        let row = row.unwrap_or_else(|| panic!("{text}: {:?}", executor.inputs()));
        let mut session = executor.session();
        let made = session.evaluate(&row).unwrap_or_else(|error| panic!("{text}\n{error}"));
        // The second run has the memory of the first.
        assert_eq!(session.evaluate(&row).expect("outputs"), made);
        for (value, output) in made.iter().zip(executor.outputs()) {
            assert!(value.is_of(&output.qtype), "{text}\n{}: {} is {value}", output.name, output.qtype);
        }
        all.push(made);
    }
    assert_eq!(all[0], all[1], "{text}");
    all.remove(0)
}

/// Returns the code, message and place of the error in the model `text`.
fn refused(text: &str) -> (&'static str, String, Option<&str>) {
    let error = Model::parse(text).and_then(|model| model.compile(&Options::default())).expect_err(text);
    (error.code(), error.to_string(), error.span().map(|span| span.text(text)))
}

#[test]
fn texts_and_optional_values_become_numbers_that_tensors_take() {
    let text = "
        input x: tensor[f64, 1], name: text, bonus: f64?
        let factor = lookup(name, {\"ada\": 3.0, \"eve\": 4.0}) ?? 1.0
        output scaled = x * factor + (bonus ?? 0.5)
        output label = strings.upper(name)
        output both = (name, bonus ?? 0.0)";
    let inputs = |name: &str, bonus: Option<f64>| {
        [("x", floats(&[2], &[1.0, 2.0])), ("name", Value::from(name)), ("bonus", Value::from(bonus))]
    };
    let made = evaluated(text, &inputs("ada", Some(10.0)));
    assert_eq!((&made[0], &made[1]), (&floats(&[2], &[13.0, 16.0]), &Value::from("ADA")));
    assert_eq!(made[2].to_string(), "('ada', f64{10})");
    let made = evaluated(text, &inputs("bob", None));
    assert_eq!((&made[0], &made[1]), (&floats(&[2], &[1.5, 2.5]), &Value::from("BOB")));
}

#[test]
fn numbers_of_tensors_become_texts_optional_values_and_masks() {
    let text = "
        input x: tensor[f64, 1], limit: f64?
        let total = tensor.sum(x)
        output word = if total > 10.0 then 'large' else 'small'
        output below = total < limit
        output big = total > 10.0
        output flag: bool = total > 10.0
        output some = total & (total > 10.0)
        output scaled = if total > 10.0 then x / total else x
        output each = x > 1.0";
    let of = |x: &[f64], limit: Option<f64>| evaluated(text, &[("x", floats(&[2], x)), ("limit", Value::from(limit))]);
    let made = of(&[4.0, 12.0], Some(20.0));
    let expected = [
        Value::from("large"),
        Mask(true).into(),
        Mask(true).into(),
        Value::from(true),
        Value::from(Some(16.0)),
        floats(&[2], &[0.25, 0.75]),
        Value::from(Tensor::new(&[2], vec![true, true]).expect("a tensor")),
    ];
    assert_eq!(made, expected);
    let made = of(&[4.0, 1.0], None);
    let expected = [
        Value::from("small"),
        Mask(false).into(),
        Mask(false).into(),
        Value::from(false),
        Value::from(None::<f64>),
        floats(&[2], &[4.0, 1.0]),
        Value::from(Tensor::new(&[2], vec![true, false]).expect("a tensor")),
    ];
    assert_eq!(made, expected);
}

#[test]
fn masks_are_conditions_of_tensors() {
    let text = "
        input x: tensor[f64, 1], scale: f64, on: unit?
        let positive = scale > 0.0 and not (scale > 5.0)
        output chosen = if positive then x else -x
        output kept = if on and positive then x * scale else x * 0.0
        output is_positive = positive";
    let of = |scale: f64, on: bool| {
        evaluated(text, &[("x", floats(&[2], &[1.0, -2.0])), ("scale", Value::from(scale)), ("on", Mask(on).into())])
    };
    assert_eq!(of(2.0, true), [floats(&[2], &[1.0, -2.0]), floats(&[2], &[2.0, -4.0]), Mask(true).into()]);
    assert_eq!(of(7.0, true), [floats(&[2], &[-1.0, 2.0]), floats(&[2], &[0.0, -0.0]), Mask(false).into()]);
    assert_eq!(of(2.0, false)[1], floats(&[2], &[0.0, -0.0]));
}

/// A mask that does not depend on tensors stays a mask in an expression with numbers computed from tensors, and becomes
/// a boolean in an expression with tensors.
#[test]
fn masks_from_apart_stay_masks() {
    let text = "input x: tensor[f64, 1], name: text
        let on = name == 'ada'
        output chosen = if on then x else -x
        output both = on and tensor.any(x > 1.0)
        output neither = not (on or tensor.any(x > 1.0))
        output word = if on and tensor.any(x > 1.0) then 'yes' else 'no'";
    let of = |x: f64, name: &str| evaluated(text, &[("x", floats(&[1], &[x])), ("name", Value::from(name))]);
    let masks = |both, neither| [Mask(both).into(), Mask(neither).into()];
    let expected = |x: f64, [both, neither]: [Value; 2], word: &str| [floats(&[1], &[x]), both, neither, word.into()];
    assert_eq!(of(2.0, "ada"), expected(2.0, masks(true, false), "yes"));
    assert_eq!(of(0.5, "bob"), expected(-0.5, masks(false, true), "no"));
}

/// Tokens, time limits and other limits of a run hold for each part of a model (the values before tensors, the tensors,
/// the values after them).
#[test]
fn runs_of_every_part_end_as_their_options_say() {
    let text = "input x: tensor[f64, 1], name: text
        output y = x * strings.length(name)
        output z = strings.as_text(tensor.sum(y))";
    let executor = Model::parse(text).and_then(|model| model.compile(&Options::default())).expect("a model");
    let row = [floats(&[100], &[1.0; 100]), Value::from("ab")];
    let mut session = executor.session();
    assert_eq!(session.evaluate(&row).expect("outputs")[1], Value::from("200"));
    let token = Cancellation::new();
    session.set_cancellation(Some(token.clone()));
    assert!(session.evaluate(&row).is_ok());
    token.cancel();
    assert_eq!(session.evaluate(&row).expect_err("cancelled").code(), "cancelled");
    session.set_run_options(&RunOptions::new().time_limit(Duration::ZERO));
    assert_eq!(session.evaluate(&row).expect_err("no time").code(), "deadline");
    session.set_run_options(&RunOptions::new().limits(Limits::default().array_bytes(799)));
    assert_eq!(session.evaluate(&row).expect_err("a limit").code(), "limit");
    session.set_run_options(&RunOptions::new().threads(2));
    assert!(session.evaluate(&row).is_ok());
}

/// Loops over numbers that run before or after the tensors check the deadline.
#[test]
fn deadlines_end_loops_beside_tensors() {
    // This many rounds take much longer than the 20 ms of a run. A loop that ignores the deadline ends with `iteration-limit`.
    let limits = Limits::default().loop_iterations(1 << 28);
    let sum = "seq.reduce(fn(s, i) = s + i * i, seq.range(from), 0i64)";
    for text in [
        format!("input x: tensor[f64, 1], n: i64; let from = n * 2; output y = x * core.cast({sum}, f64)"),
        format!("input x: tensor[f64, 1], n: i64; let from = n * core.cast(tensor.sum(x), i64); output z = {sum}"),
    ] {
        let model = Model::parse(&text).expect("a model");
        let mut session = model.compile(&Options::default().limits(limits)).expect("an executor").session();
        let row = |n: i64| [floats(&[2], &[1.0, 1.0]), Value::from(n)];
        assert!(session.evaluate(&row(10)).is_ok(), "{text}");
        session.set_run_options(&RunOptions::new().time_limit(Duration::from_millis(20)));
        assert_eq!(session.evaluate(&row(1 << 40)).expect_err("no time").code(), "deadline", "{text}");
    }
}

#[test]
fn arrays_become_tensors_and_tensors_arrays() {
    let text = "
        input prices: [f64?], w: tensor[f64, 2]
        let filled = prices ?? 1.0
        let x = tensor.of_array(filled)
        output y(\"i\") = w(\"i,j\") * x(\"j\")
        output back = array.of_tensor(y) * 2.0
        output largest = math.max(array.of_tensor(y))
        output count = array.count(prices)
        output table(\"i,j\") = x(\"i\") * x(\"j\")";
    let inputs = [("prices", array(&[Some(2.0), None, Some(3.0)])), ("w", floats(&[2, 3], &[1., 0., 0., 1., 1., 1.]))];
    let made = evaluated(text, &inputs);
    assert_eq!(made[0], floats(&[2], &[2.0, 6.0]));
    assert_eq!(made[1], array(&[Some(4.0), Some(12.0)]));
    assert_eq!(made[2], Value::from(Some(6.0)));
    assert_eq!(made[3], Value::from(2_i64));
    assert_eq!(made[4], floats(&[3, 3], &[4., 2., 6., 2., 1., 3., 6., 3., 9.]));
}

#[test]
fn a_model_of_arrays_may_compute_with_tensors() {
    let text = "input a: [f64?]; let x = tensor.of_array(a); output norm = sqrt(tensor.sum(x * x))";
    assert_eq!(evaluated(text, &[("a", array(&[Some(3.0), Some(4.0)]))]), [Value::from(5.0)]);
    // The first missing element is an error, at the array.
    let executor = Model::parse(text).and_then(|model| model.compile(&Options::default())).expect("a model");
    let error = executor.session().evaluate(&[array(&[Some(3.0), None])]).expect_err("a missing element");
    assert!(error.to_string().starts_with("element 1 of this array is missing; "), "{error}");
    assert_eq!(error.span().map(|span| span.text(text)), Some("a"));
    let empty = executor.session().evaluate(&[array(&[])]).expect("a number");
    assert_eq!(empty, [Value::from(0.0)]);
}

#[test]
fn faults_are_at_the_operator_in_every_part() {
    let text = "input x: tensor[i32, 1], n: i32, name: text
        let before = 100 // n + strings.length(name)
        output y = x // before
        output z = strings.as_text(7 // tensor.sum(y))";
    let executor = Model::parse(text).and_then(|model| model.compile(&Options::default())).expect("a model");
    let fails = |x: &[i32], n: i32, name: &str| {
        let x = Value::from(Tensor::new(&[x.len()], x.to_vec()).expect("a tensor"));
        let row = executor.inputs().iter().map(|input| match &*input.name {
            "x" => x.clone(),
            "n" => Value::from(n),
            _ => Value::from(name),
        });
        let error = executor.session().evaluate(&row.collect::<Vec<_>>()).expect_err("a fault");
        assert_eq!((error.code(), error.operator()), ("div-by-zero", Some("math.floor_divide")));
        error.span().map(|span| span.text(text).to_owned())
    };
    assert_eq!(fails(&[1, 2], 0, "a"), Some("100 // n".to_owned()));
    assert_eq!(fails(&[0, 0], 100, "").as_deref(), Some("7 // tensor.sum(y)"));
    assert_eq!(fails(&[1, 2], -100, "a").as_deref(), Some("x // before"));
}

#[test]
fn what_does_not_become_a_tensor_is_said_where_it_meets_one() {
    let text = |rest: &str| format!("input x: tensor[f64, 1], s: f64?, t: text, a: [f64]\n{rest}");
    for (rest, code, message, place) in [
        (
            "output y = x * s",
            "type-mismatch",
            "f64? cannot be used with a tensor, whose elements are never missing",
            "s",
        ),
        ("output y = x * t", "type-mismatch", "text cannot be used with a tensor", "t"),
        ("output y = x * a", "type-mismatch", "[f64?] cannot be used with a tensor", "a"),
        ("output y = x * tensor.of_array([t])", "type-mismatch", "tensor.of_array takes an array of", "[t]"),
        (
            "output y = array.of_tensor(tensor.sum(x))",
            "shape",
            "array.of_tensor takes a tensor with one axis, found 0 axes",
            "array.of_tensor(tensor.sum(x))",
        ),
        (
            "output y = strings.length(tensor.sum(x))",
            "type-mismatch",
            "strings.length does not take f64",
            "strings.length(tensor.sum(x))",
        ),
        ("output y = x * strings.length(s)", "type-mismatch", "strings.length does not take f64?", "strings.length(s)"),
        (
            "let n = tensor.sum(x); output y = x * strings.as_text(n)",
            "type-mismatch",
            "text cannot be used with a tensor",
            "strings.as_text(n)",
        ),
        (
            "let y = array.present_values(array.of_tensor(x)); output z = x * y",
            "type-mismatch",
            "[f64?] cannot be used with a tensor",
            "array.present_values(array.of_tensor(x))",
        ),
        (
            "let n = strings.length(strings.as_text(tensor.sum(x))); output y = tensor.grad(tensor.sum(x * n), x)",
            "type-mismatch",
            "there is no gradient of this value: it is computed from tensors through values",
            "tensor.grad(tensor.sum(x * n), x)",
        ),
    ] {
        let text = text(rest);
        let (found, said, at) = refused(&text);
        assert!(said.contains(message), "{rest}: {said}");
        assert_eq!((found, at), (code, Some(place)), "{rest}: {said}");
    }
}

/// Values computed from tensors may be used in tensors again: the length of a text that shows a sum, an array that is
/// computed from a tensor, a table row that is found by an element.
#[test]
fn what_is_made_of_tensors_becomes_tensors_again() {
    let text = "
        input x: tensor[f64, 1], name: text, scale: f64
        let n = strings.length(strings.as_text(tensor.sum(x)) + name)
        output scaled = x * n + scale
        let upwards = tensor.of_array(math.cum_sum(array.of_tensor(scaled), over=edge.from_sizes([2])) ?? 0.0)
        output both(\"i,j\") = upwards(\"i\") * x(\"j\") * scale
        output total = tensor.sum(upwards)
        output word = strings.as_text(tensor.max(both)) + name
        output back = array.of_tensor(upwards) + 1.0
        output pair = (word, total)
        output plain = strings.upper(name)";
    let made = evaluated(text, &[("x", floats(&[2], &[1.5, 2.0])), ("name", "ab".into()), ("scale", 10.0.into())]);
    // The text is `3.5ab`; scaled are 17.5 and 20, summed from the left 17.5 and 37.5.
    let expected = [
        floats(&[2], &[17.5, 20.0]),
        floats(&[2, 2], &[262.5, 350.0, 562.5, 750.0]),
        Value::from(55.0),
        Value::from("750ab"),
        array(&[Some(18.5), Some(38.5)]),
    ];
    assert_eq!(made[..5], expected);
    assert_eq!((made[5].to_string().as_str(), &made[6]), ("('750ab', f64{55})", &Value::from("AB")));
}

/// A tensor from an array of float literals has the type `f64`. A single float literal takes the type of the other
/// operand; a tensor does not.
#[test]
fn arrays_of_plain_floats_are_tensors() {
    let text = "
        input t: tensor[f32, 1], x: f64?
        output sum = tensor.sum(tensor.of_array([0.1, 0.2]))
        output shifted = t + tensor.of_array([0.1, 0.2])
        output filled = tensor.of_array([0.1, x ?? 0.5])";
    let small = Value::from(Tensor::new(&[2], vec![1.0_f32, 2.0]).expect("fits"));
    let made = evaluated(text, &[("t", small), ("x", Value::from(None::<f64>))]);
    assert_eq!(made, [Value::from(0.1 + 0.2), floats(&[2], &[1.1, 2.2]), floats(&[2], &[0.1, 0.5])]);
    let text = "input t: tensor[f32, 1]; let a: tensor[f32, 1] = tensor.of_array([0.1, 0.2]); output y = t + a";
    assert_eq!(refused(text).0, "type-mismatch");
    // An array that is known only when it runs, of which every element is a plain float.
    let text = "input c: bool; output t = tensor.of_array(where(c == true, [0.25], [0.5]))";
    assert_eq!(evaluated(text, &[("c", true.into())]), [floats(&[1], &[0.25])]);
}

#[test]
fn tensors_without_axes_are_numbers_elsewhere() {
    let text = "input s: tensor[f64, 0]; output t = strings.as_text(s); output u = s * strings.length(t)";
    assert_eq!(evaluated(text, &[("s", floats(&[], &[2.5]))]), [Value::from("2.5"), Value::from(7.5)]);
}

/// A condition that depends on tensors still decides which of its branches is computed.
#[test]
fn branches_of_what_is_known_later_are_computed_if_they_are_chosen() {
    let text = "
        input x: tensor[i32, 1], w: tensor[f64, 1], k: i32
        let n = tensor.sum(x)
        let is_long = strings.length(strings.as_text(n)) > 2
        output halves = if is_long then x // k else x
        output word = if n != 0 then strings.as_text(100 // n) else 'none'
        output slope = if is_long then tensor.grad(tensor.sum(w * w), w) else w";
    let ints = |elements: &[i32]| Value::from(Tensor::new(&[elements.len()], elements.to_vec()).expect("a tensor"));
    let of = |x: &[i32], k: i32| evaluated(text, &[("x", ints(x)), ("w", floats(&[1], &[3.0])), ("k", k.into())]);
    assert_eq!(of(&[90, 10], 10), [ints(&[9, 1]), Value::from("1"), floats(&[1], &[6.0])]);
    // Neither a division by zero nor one of a hundred by it is asked for.
    assert_eq!(of(&[3, -3], 0), [ints(&[3, -3]), Value::from("none"), floats(&[1], &[3.0])]);
    let executor = Model::parse(text).and_then(|model| model.compile(&Options::default())).expect("a model");
    let error = executor.session().evaluate(&[ints(&[90, 10]), floats(&[1], &[3.0]), 0.into()]);
    let error = error.expect_err("a division by zero");
    assert_eq!((error.code(), error.span().map(|span| span.text(text))), ("div-by-zero", Some("x // k")));
}

/// A model may alternate between tensors and other values at most 16 times, because the compiler goes through the whole
/// program for each alternation.
#[test]
fn turns_between_tensors_and_other_values_are_limited() {
    let turns = |count: usize| {
        let mut text = "input x: tensor[f64, 1]\nlet t0 = x\n".to_owned();
        for at in 0..count {
            let n = format!("strings.length(strings.as_text(tensor.sum(t{at})))");
            text += &format!("let t{} = t{at} * 0.0 + {n}\n", at + 1);
        }
        text + &format!("output y = t{count}")
    };
    assert_eq!(evaluated(&turns(16), &[("x", floats(&[2], &[1.25, 1.0]))]), [floats(&[2], &[1.0, 1.0])]);
    let text = turns(17);
    let (code, message, place) = refused(&text);
    assert_eq!((code, place), ("limit", Some("y")));
    assert!(message.contains("more than 16 times"), "{message}");
}

/// In model files of versions 1 and 2, comparisons in models with tensors give booleans, not masks, as when these files
/// were written.
#[test]
fn older_files_keep_their_truth_values() {
    let text = "input x: tensor[f64, 1], s: f64
        output big = tensor.sum(x) > 10.0
        output each = x > s and x < 9.0
        output neither = not (s > 1.0 or tensor.sum(x) != 4.0)
        output chosen = if s >= 1.0 then x else -x";
    let model = Model::parse(text).expect("a model");
    let mut bytes = model.to_binary();
    // The version is a field of its own, behind the name of the format.
    let at = bytes.windows(2).position(|field| field == [0x10, 3]).expect("the version");
    let mut of_version = |version| {
        bytes[at + 1] = version;
        Model::from_binary(&bytes).expect("an older file")
    };
    let older = [of_version(1), of_version(2)];
    let row = [floats(&[2], &[1.0, 8.0]), Value::from(2.0)];
    let types = |model: &Model| {
        let executor = model.compile(&Options::default()).expect("an executor");
        let types: Vec<String> = executor.outputs().iter().map(|output| output.qtype.to_string()).collect();
        (types, executor.session().evaluate(&row).expect("outputs"))
    };
    let each = Value::from(Tensor::new(&[2], vec![false, true]).expect("a tensor"));
    let now = [Mask(false).into(), each.clone(), Mask(false).into(), row[0].clone()];
    assert_eq!(
        types(&model),
        (["unit?", "tensor[bool, 1]", "unit?", "tensor[f64, 1]"].map(str::to_owned).to_vec(), now.to_vec())
    );
    let before = [Value::from(false), each, Value::from(false), row[0].clone()];
    for older in older {
        let wanted = ["bool", "tensor[bool, 1]", "bool", "tensor[f64, 1]"].map(str::to_owned).to_vec();
        assert_eq!(types(&older), (wanted, before.to_vec()));
        // It is written in the newest version, with its meaning.
        let again = Model::from_binary(&older.to_binary()).expect("a file");
        assert_eq!(again.program(), older.program());
    }
}

/// Sorting the values of a model into parts takes time linear in its nodes. The nested tuples of this test have 2^40
/// elements if every use is followed separately.
#[test]
fn sorting_takes_time_as_there_are_nodes() {
    let mut text = "input x: tensor[f64, 1], t: text\nlet t0 = (x, t)\n".to_owned();
    for at in 1..40 {
        text += &format!("let t{at} = (t{}, t{})\n", at - 1, at - 1);
    }
    text += "output y = t39";
    text += &".0".repeat(40);
    assert_eq!(evaluated(&text, &[("x", floats(&[1], &[2.0])), ("t", Value::from("a"))]), [floats(&[1], &[2.0])]);
    let mut text = String::new();
    for at in 0..300 {
        text += &format!("input x{at}: tensor[f64, 1], t{at}: text\n");
    }
    text += "output y = x299 * strings.length(t299); output z = strings.as_text(tensor.sum(x298)); output w = x0";
    let given = [
        ("x299", floats(&[1], &[2.0])),
        ("t299", Value::from("abc")),
        ("x298", floats(&[2], &[1.0, 0.5])),
        ("x0", floats(&[1], &[7.0])),
    ];
    let made = evaluated(&text, &given);
    assert_eq!(made, [floats(&[1], &[6.0]), Value::from("1.5"), floats(&[1], &[7.0])]);
}

#[test]
fn literals_that_no_tensor_has_are_outputs_as_in_any_model() {
    let text = "input x: tensor[f64, 1]
        let label = \"abc\"
        output z = x * 2.0
        output a = label
        output b = i64?{7}
        output c = missing[f64]
        output d = 90s
        output e = present
        output f = 7";
    let made = evaluated(text, &[("x", floats(&[2], &[1.0, 2.0]))]);
    assert_eq!(made[0], floats(&[2], &[2.0, 4.0]));
    assert_eq!(made[1], Value::text("abc"));
    assert_eq!(made[2], Value::Present(ScalarValue::Int64(7)));
    assert_eq!(made[3], Value::Missing(Scalar::Float64));
    assert_eq!(made[4], Value::from(cembra::Duration(90_000_000)));
    assert_eq!(made[5], Value::Present(ScalarValue::Unit));
    assert_eq!(made[6].as_scalar(), Some(&ScalarValue::Int32(7)));
}
