//! Tests statements and methods on tensors in models: their results, which version of a name they read after
//! assignments, and which are rejected.

use super::{Tensors, compiled, evaluated, f64s, refused, tensors, try_compiled};
use cembra::explain::print;
use cembra::tensor::TensorErrorKind;
use cembra::{Backend, Model, Options, Tensor};

const INPUTS: &str = "input a: tensor[f64, 2], b: tensor[f64, 2], v: tensor[f64, 1], s: f64\n";

fn given() -> Tensors {
    tensors([
        ("a", f64s(&[2, 2], &[1.0, 2.0, 3.0, 4.0])),
        ("b", f64s(&[2, 2], &[0.0, 1.0, 1.0, 0.0])),
        ("v", f64s(&[2], &[1.0, 10.0])),
        ("s", Tensor::scalar(0.5)),
    ])
}

/// Runs the statements `lines`, and returns the outputs with their names, in order.
fn run(lines: &str) -> Vec<(String, Vec<f64>)> {
    let text = format!("{INPUTS}{lines}");
    let made = evaluated(&text, &given());
    let executor = compiled(&text);
    let names = executor.outputs().iter().map(|field| field.name.to_string());
    names.zip(made).map(|(name, tensor)| (name, tensor.to_vec().expect("floats"))).collect()
}

fn output(name: &str, elements: &[f64]) -> (String, Vec<f64>) {
    (name.to_owned(), elements.to_vec())
}

#[test]
fn lines_that_assign_are_outputs() {
    assert_eq!(run("c(\"i,j\") = a(\"i,k\") * b(\"k,j\")"), [output("c", &[2.0, 1.0, 4.0, 3.0])]);
    // The text is the same model as one with the word.
    let with = |word: &str| Model::parse(&format!("{INPUTS}{word}c(\"i,j\") = a(\"j,i\"); output d = c + 1.0"));
    assert_eq!(with("").expect("a model").program(), with("output ").expect("a model").program());
}

#[test]
fn lines_below_read_the_new_version_of_a_name() {
    let lines = "let before = a + 0.0
        a(\"i,j\") = 2.0 * a(\"i,j\")
        d(\"i,j\") = a(\"j,i\")
        a(\"i,j\") += b(\"i,j\")
        d(\"i,j\") -= a(\"i,j\")
        output sums = tensor.sum(a, 1) + tensor.sum(before, 1)
        output old = L.a";
    // Outputs are in the order in which their names were first assigned.
    let expected = [
        output("a", &[2.0, 5.0, 7.0, 8.0]),
        output("d", &[0.0, 1.0, -3.0, 0.0]),
        output("sums", &[7.0 + 3.0, 15.0 + 7.0]),
        output("old", &[1.0, 2.0, 3.0, 4.0]),
    ];
    assert_eq!(run(lines), expected);
}

#[test]
fn each_sign_changes_element_by_element() {
    for (sign, expected) in [("=", [10.0, 100.0]), ("+=", [11.0, 110.0]), ("-=", [-9.0, -90.0]), ("*=", [10.0, 1000.0])]
    {
        assert_eq!(
            run(&format!("v(\"i\") {sign} v(\"i\") * v(\"j\") * b(\"j,j\") + 10.0 * v(\"i\")")),
            [output("v", &expected)]
        );
        // What a `let` gave is changed, too, and is an output then; the sign may stand on the next line.
        assert_eq!(run(&format!("let t = v * 1.0\nt(\"i\")\n  {sign} 10.0 * v(\"i\")")), [output("t", &expected)]);
    }
    // A factor that only the right side has is summed there, and what is changed is no factor of that product.
    assert_eq!(run("v(\"i\") *= a(\"i,j\") * v(\"j\")"), [output("v", &[21.0, 430.0])]);
    // A number has no labels.
    assert_eq!(
        run("n(\"\") = v(\"i\") * v(\"i\")\nn(\"\") -= 2\ns(\"\") *= n"),
        [output("n", &[99.0]), output("s", &[49.5])]
    );
}

#[test]
fn a_new_version_has_the_type_and_the_extents_of_the_old_one() {
    let text = "input x: tensor[f32, 1], y: tensor[f64, 1], n: tensor[i64, 1]
        x(\"i\") += y(\"i\")
        n(\"i\") = 2 * y(\"i\")";
    let single = |elements: [f32; 2]| Tensor::new(&[2], elements.to_vec()).expect("a tensor");
    let given = |extent: usize| {
        tensors([
            ("x", single([1.0, 2.0])),
            ("y", f64s(&[extent], &[0.5, 0.25, 4.0][..extent])),
            ("n", Tensor::new(&[2], vec![7_i64, 8]).expect("a tensor")),
        ])
    };
    let made = evaluated(text, &given(2));
    assert_eq!(made[0].to_vec::<f32>().expect("f32"), [1.5, 2.25]);
    assert_eq!(made[1].to_vec::<i64>().expect("i64"), [1, 0]);
    let executor = compiled(text);
    let types: Vec<String> = executor.outputs().iter().map(|field| field.qtype.to_string()).collect();
    assert_eq!(types, ["tensor[f32, 1]", "tensor[i64, 1]"]);
    for extent in [1, 3] {
        let error = super::run(&executor, &given(extent)).expect_err("other extents");
        let place = error.span().map(|span| span.text(text));
        let message = format!("the label `i` has {extent} indices in one place and 2 in another");
        let kind = error.tensor_kind();
        assert_eq!((kind, error.to_string(), place), (Some(TensorErrorKind::SizeMismatch), message, Some("x(\"i\")")));
    }
}

#[test]
fn methods_are_numbers_of_all_elements() {
    for (expression, expected) in [
        ("a(\"i,j\").sum()", 10.0),
        ("(a(\"i,j\") * b(\"j,k\")).sum()", 10.0),
        ("a(\"i,j\").product()", 24.0),
        ("(-a(\"i,j\")).min()", -4.0),
        ("(-a(\"i,j\")).max()", -1.0),
        ("(-a(\"i,j\")).absmin()", 1.0),
        ("(-a(\"i,j\")).absmax()", 4.0),
        ("(2 * b(\"i,j\")).norm()", 8.0_f64.sqrt()),
        ("(a(\"i,j\") - b(\"j,i\")).squared_norm()", 1.0 + 1.0 + 4.0 + 16.0),
        ("(a(\"i,k\") * b(\"k,j\")).squared_norm()", 1.0 + 4.0 + 9.0 + 16.0),
        ("a(\"i,j\").trace()", 5.0),
        ("a(\"i,i\").sum()", 5.0),
        // Whole tensors have none.
        ("(a + b).sum()", 12.0),
        ("(a).trace()", 5.0),
        ("(tensor.sum(a, 1)).norm()", 58.0_f64.sqrt()),
    ] {
        assert_eq!(run(&format!("n(\"\") = {expression}")), [output("n", &[expected])], "{expression}");
        // It is a number wherever it stands.
        let lines = format!("fn f(a, b) = {expression}\noutput n = 1.0 + f(a, b)\nw(\"i\") = f(a, b) * v(\"i\")");
        let expected = [output("n", &[1.0 + expected]), output("w", &[expected, 10.0 * expected])];
        assert_eq!(run(&lines), expected, "{expression}");
    }
}

#[test]
fn names_keep_what_they_are_where_there_are_no_methods() {
    let refused = |rest: &str| {
        let text = format!("{INPUTS}{rest}");
        let error = try_compiled(&text).expect_err(rest);
        let place = error.span().map(|span| span.text(&text).to_owned());
        (error.code(), error.diagnostics()[0].message().to_owned(), place.unwrap_or_default())
    };
    for (rest, code, message, place) in [
        ("output n = a.sum()", "syntax", "a field of a value cannot be called", "a.sum"),
        ("output n = a(\"i,j\").size()", "unknown-name", "no expression has a method `size`", "size"),
        ("output n = (a).at()", "unknown-name", "no expression has a method `at`", "at"),
        ("output n = (a).sum(0)", "arguments", "the method `sum` takes no arguments", "0"),
        ("output n = (a).sum", "type-mismatch", "only a tuple has fields, but this value is not a tuple", "a"),
        (
            "output n = v(\"i\").trace()",
            "shape",
            "a trace needs an expression with 2 labels, found 1",
            "v(\"i\").trace()",
        ),
        (
            "output n = (a > 0.0).sum()",
            "type-mismatch",
            "the reduction Sum does not take elements of type bool",
            "(a > 0.0).sum()",
        ),
    ] {
        let (found, said, at) = refused(rest);
        assert_eq!((found, &*at), (code, place), "{rest}: {said}");
        assert!(said.starts_with(message), "{rest}: {said}");
    }
    // Without tensors it is a field that cannot be called, as it was.
    let error = Model::parse("input x: f64; output y = (x).sum()").expect_err("no tensors");
    assert_eq!(error.to_string().split(';').next(), Some("a field of a value cannot be called"));
}

#[test]
fn what_cannot_be_assigned_says_why() {
    for (rest, code, message, place) in [
        ("c(\"i\") += v(\"i\")", "unknown-name", "there is no tensor `c` to be changed", "c"),
        ("fn f(x) = x\nf(\"i\") += v(\"i\")", "name", "`f` is a function; only a tensor can be changed", "f"),
        ("fn f(x) = x\nf(\"i\") = v(\"i\")", "name", "`f` is defined twice", "f"),
        ("output c = v\nc(\"i\") += v(\"i\")", "name", "the output `c` is defined twice", "c"),
        ("output \"c\" = v\nc(\"i\") = v(\"i\")", "name", "the output `c` is defined twice", "c"),
        ("c(\"i\") = v(\"i\")\noutput c = v", "name", "the output `c` is defined twice", "c"),
        ("output d = c\nc(\"i\") = v(\"i\")", "name", "`c` is used before it is defined", "c"),
        ("c(\"i\") = v(\"i\"); v + 1.0", "syntax", "only one expression can stand by itself as the output", "v + 1.0"),
        ("v + 1.0; c(\"i\") = v(\"i\")", "syntax", "an expression by itself must be the last statement", "v + 1.0"),
        ("v(\"i\") + = v(\"i\")", "syntax", "expected a value, found `=`", "="),
        ("v(\"i\") /= v(\"i\")", "syntax", "expected a value, found `=`", "="),
        ("v(\"i\") =", "syntax", "expected a value, found the end of the text", ""),
        ("v(\"i,j\") = a(\"i,j\")", "shape", "2 labels are given for a target with 1 axes", "v(\"i,j\")"),
        ("v(\"i\") += a(\"i,j\")", "labels", "the label `j` is not in the target", "a(\"i,j\")"),
        (
            "v(\"i\") *= a(\"i,j\") * b(\"j,k\")",
            "labels",
            "the label `k` is only in one factor, and not in the target",
            "b(\"j,k\")",
        ),
        (
            "let t = v(\"i\")\nt(\"i\") += v(\"i\")",
            "syntax",
            "this expression has labels, but a tensor without labels is needed here",
            "v(\"i\")",
        ),
    ] {
        let text = format!("{INPUTS}{rest}");
        let (found, said, at) = refused(&text);
        assert_eq!((found, at), (code, Some(place)), "{rest}: {said}");
        assert!(said.starts_with(message), "{rest}: {said}");
        if code == "unknown-name" || said.contains("output `c` is defined") {
            let error = try_compiled(&text).expect_err(rest);
            assert_eq!(error.diagnostics().len(), 1, "{error}");
            assert!(!error.diagnostics()[0].hints().is_empty(), "{error}");
        }
    }
    // Without tensors nothing is assigned so.
    let error = Model::parse("input a: f64\na(\"x\") = 1").expect_err("no tensors");
    assert_eq!((error.code(), error.span().map(|span| span.start)), ("name", Some(13)));
}

#[test]
fn outputs_that_are_called_like_inputs_print_as_texts_that_read_back() {
    let text = "input x: tensor[f64, 1]\nx(\"i\") += 2.0 * x(\"i\")\ny(\"\") = x(\"i\").norm()\n";
    let printed = print(Model::parse(text).expect("a model").program());
    assert_eq!(
        printed,
        "input x: tensor[f64, 1]\nlet t0(\"i\") = 2.0 * x(\"i\")\nlet t1 = x + tensor._assign(x, t0, \"i\")\n\
         output \"x\" = t1\noutput y(\"\") = t1(\"i\").norm()\n"
    );
    assert_eq!(print(Model::parse(&printed).expect("a model").program()), printed);
}

#[test]
fn products_that_are_summed_need_no_memory_for_all_their_labels() {
    // Eighteen labels: a tensor has sixteen axes at most.
    let labels: Vec<String> = (0..18).map(|at| format!("l{at}")).collect();
    let (first, second) = (labels[..9].join(","), labels[9..].join(","));
    let text = format!("input x: tensor[f64, 9]\noutput n = (x(\"{first}\") * x(\"{second}\")).sum()");
    let given = tensors([("x", Tensor::new(&[2; 9], vec![1.0; 512]).expect("a tensor"))]);
    let made = super::run(&compiled(&text), &given).expect("a number");
    assert_eq!(made[0].get::<f64>(&[]).expect("a float"), 512.0 * 512.0);
}

/// An operand that lacks some of the labels is repeated along these labels, in sums as in other expressions.
#[test]
fn addends_are_repeated_along_the_labels_that_they_lack() {
    let text = r#"
        input x: tensor[f64, 1], v: tensor[f64, 2], e: tensor[f64, 1], f: tensor[f32, 1], s: f64
        output plus("i") = x("i") + 1.0
        output minus("i") = 1.0 - x("i") + s
        output logistic("i") = 1.0 / (1.0 + exp(-x("i")))
        output sums("i,j") = e("i") + e("j")
        output quotient("i,j") = v("i,j") / (e("i") + e("j") - x("i") - x("j"))
        output rows("i,j") = v("i,j") - e("j") + s
        output turned("j,i") = v("i,j") - e("j")
        output product("i,j") = (v("i,k") + e("k")) * v("k,j") + x("i")
        output scaled("i") = (x("i") + s) * e("i") + e("k") * x("k")
        output mixed("i,j") = f("i") + e("j")
        output total = (e("i") + x("j")).sum()"#;
    let given = tensors([
        ("x", f64s(&[2], &[0.0, 3.0])),
        ("v", f64s(&[2, 2], &[1.0, 2.0, 3.0, 4.0])),
        ("e", f64s(&[2], &[10.0, 20.0])),
        ("f", Tensor::new(&[2], vec![0.5_f32, 1.5]).expect("a tensor")),
        ("s", Tensor::scalar(0.5)),
    ]);
    let made = evaluated(text, &given);
    let at = |at: usize| made[at].to_vec::<f64>().expect("floats");
    assert_eq!(at(0), [1.0, 4.0]);
    assert_eq!(at(1), [1.5, -1.5]);
    assert_eq!(at(2)[0], 0.5);
    assert_eq!(at(3), [20.0, 30.0, 30.0, 40.0]);
    assert_eq!(at(4), [1.0 / 20.0, 2.0 / 27.0, 3.0 / 27.0, 4.0 / 34.0]);
    assert_eq!(at(5), [-8.5, -17.5, -6.5, -15.5]);
    assert_eq!(at(6), [-9.0, -7.0, -18.0, -16.0]);
    // (v + e) is [[11, 22], [13, 24]].
    assert_eq!(at(7), [77.0, 110.0, 88.0, 125.0]);
    assert_eq!(at(8), [5.0 + 60.0, 70.0 + 60.0]);
    assert_eq!(at(9), [10.5, 20.5, 11.5, 21.5]);
    assert_eq!(made[10].get::<f64>(&[]).expect("a float"), 2.0 * 30.0 + 2.0 * 3.0);
    // A label that only one addend has, and the target does not, is a typo.
    let (code, message, place) = refused("input x: tensor[f64, 1]\ny(\"i\") = x(\"i\") + x(\"j\")");
    assert_eq!((code, place), ("labels", Some("x(\"j\")")));
    assert!(message.starts_with("the label `j` is not in the target"), "{message}");
}

/// In a statement that changes a tensor, an operand that lacks some of the target's labels is repeated along them,
/// because the target's extents are known.
#[test]
fn lines_that_change_a_tensor_repeat_what_lacks_its_labels() {
    for (line, expected) in [
        (r#"a("i,j") += v("j")"#, [2.0, 12.0, 4.0, 14.0]),
        (r#"a("i,j") += v("i")"#, [2.0, 3.0, 13.0, 14.0]),
        (r#"a("j,i") -= v("j")"#, [0.0, 1.0, -7.0, -6.0]),
        (r#"a("i,j") *= v("j")"#, [1.0, 20.0, 3.0, 40.0]),
        (r#"a("i,j") -= 1"#, [0.0, 1.0, 2.0, 3.0]),
        (r#"a("i,j") += s"#, [1.5, 2.5, 3.5, 4.5]),
        (r#"a("i,j") *= 2.0 * s + 1"#, [2.0, 4.0, 6.0, 8.0]),
        (r#"a("i,j") += v("k") * v("k")"#, [102.0, 103.0, 104.0, 105.0]),
        (r#"a("i,j") += (v("j") + s) * v("j")"#, [2.5, 107.0, 4.5, 109.0]),
        // The right side is that of before the line.
        (r#"a("i,j") += a("j,j")"#, [2.0, 6.0, 4.0, 8.0]),
        (r#"a("i,j") = v("j")"#, [1.0, 10.0, 1.0, 10.0]),
        (r#"a("i,j") = v("i") * s"#, [0.5, 0.5, 5.0, 5.0]),
        (r#"a("i,j") = 7"#, [7.0; 4]),
        (r#"a("i,j") = v("i") + v("j")"#, [2.0, 11.0, 11.0, 20.0]),
    ] {
        assert_eq!(run(line), [output("a", &expected)], "{line}");
        let text = format!("{INPUTS}{line}");
        let model = Model::parse(&text).expect("a model");
        let interpreted = Options::default().backend(Backend::Interpreter);
        let executor = model.compile(&interpreted).expect("an executor");
        assert_eq!(
            super::run(&executor, &given()).expect("values")[0].to_vec::<f64>().expect("floats"),
            expected,
            "{line}"
        );
    }
    // The value is of the type of what it changes.
    let text = "input x: tensor[f32, 1], n: tensor[i64, 1], y: f64\nx(\"i\") += y\nn(\"i\") -= 2\nn(\"i\") += y";
    let single = Tensor::new(&[2], vec![1.0_f32, 2.0]).expect("a tensor");
    let whole = Tensor::new(&[2], vec![7_i64, i64::MAX]).expect("a tensor");
    let made = evaluated(text, &tensors([("x", single), ("n", whole), ("y", Tensor::scalar(1.5))]));
    assert_eq!(made[0].to_vec::<f32>().expect("f32"), [2.5, 3.5]);
    assert_eq!(made[1].to_vec::<i64>().expect("i64"), [6, i64::MAX - 1]);
    // A new name has no extents but those of its right side, and a label that is nowhere else is a typo.
    for (line, message, place) in [
        (r#"y("i,j") = v("j")"#, "the label `i` of the target is in no part of the expression", r#"("i,j") = v("j")"#),
        (r#"a("i,j") += v("k")"#, "the label `k` is not in the target", r#"v("k")"#),
        (r#"a("i,i") += v("i")"#, "the target has the label `i` twice", r#"("i,i")"#),
        (r#"a("i,j,k") += v("k")"#, "3 labels are given for a target with 2 axes", r#"a("i,j,k")"#),
        (
            "let t(\"i,j\") = v(\"j\")\noutput y = t + 1.0",
            "the label `i` of the target is in no part of the expression",
            r#"("i,j") = v("j")"#,
        ),
    ] {
        let text = format!("{INPUTS}{line}");
        let (code, said, at) = refused(&text);
        assert!(said.starts_with(message) && (code == "labels" || code == "shape"), "{line}: {code}: {said}");
        assert!(at.is_some_and(|at| at.starts_with(place)), "{line}: {at:?}");
    }
    let text = "input a: tensor[f64, 2], v: tensor[f64, 1]\na(\"i,j\") += v(\"j\")";
    for extent in [1, 3] {
        let given = tensors([("a", f64s(&[2, 2], &[0.0; 4])), ("v", f64s(&[extent], &[1.0, 2.0, 3.0][..extent]))]);
        let error = super::run(&compiled(text), &given).expect_err("other extents");
        assert_eq!(error.tensor_kind(), Some(TensorErrorKind::SizeMismatch));
        assert_eq!(error.to_string(), format!("the label `j` has 2 indices in one place and {extent} in another"));
    }
}

#[test]
fn gradients_of_what_a_line_repeats_are_summed() {
    let text = r#"
        input a: tensor[f64, 2], v: tensor[f64, 1]
        let t = a * 1.0
        t("i,j") += v("j")
        output loss("") = t("i,j") * t("i,j")
        output of_a = tensor.grad(loss, a)
        output of_v = tensor.grad(loss, v)
        let u = a * 1.0
        u("i,j") = v("j")
        output other("") = u("i,j") * u("i,j")
        output none = tensor.grad(other, a)
        output four = tensor.grad(other, v)"#;
    let given = tensors([("a", f64s(&[2, 2], &[1.0, 2.0, 3.0, 4.0])), ("v", f64s(&[2], &[1.0, 10.0]))]);
    let made = evaluated(text, &given);
    let at = |at: usize| made[at].to_vec::<f64>().expect("floats");
    assert_eq!(at(0), [2.0, 12.0, 4.0, 14.0]);
    assert_eq!(at(2), [4.0, 24.0, 8.0, 28.0]);
    assert_eq!(at(3), [12.0, 52.0]);
    assert_eq!(at(4), [1.0, 10.0, 1.0, 10.0]);
    assert_eq!(at(6), [0.0; 4]);
    assert_eq!(at(7), [4.0, 40.0]);
}

#[test]
fn gradients_of_repeated_addends_are_summed() {
    let text = r#"
        input x: tensor[f64, 1], e: tensor[f64, 1], s: f64
        let t("i,j") = (x("i") + e("j") + s) * x("i")
        output loss("") = (t("i,j")).sum()
        output of_x = tensor.grad(loss, x)
        output of_e = tensor.grad(loss, e)
        output of_s = tensor.grad(loss, s)"#;
    let given =
        tensors([("x", f64s(&[2], &[1.0, 3.0])), ("e", f64s(&[3], &[1.0, 2.0, 4.0])), ("s", Tensor::scalar(0.5))]);
    let made = evaluated(text, &given);
    // The sum over i and j of x_i (x_i + e_j + s).
    assert_eq!(made[0].get::<f64>(&[]).expect("a float"), 3.0 * 10.0 + 4.0 * (7.0 + 1.5));
    assert_eq!(made[1].to_vec::<f64>().expect("floats"), [6.0 + 8.5, 18.0 + 8.5]);
    assert_eq!(made[2].to_vec::<f64>().expect("floats"), [4.0; 3]);
    assert_eq!(made[3].get::<f64>(&[]).expect("a float"), 12.0);
}
