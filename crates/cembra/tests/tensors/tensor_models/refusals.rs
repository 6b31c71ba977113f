//! Tests the errors for models with tensors: models that become too large, and mistakes of users who know other tensor
//! libraries.

use super::{compiled, counted, evaluated, f64s, refused, run, tensors, try_compiled};
use cembra::tensor::TensorErrorKind;
use cembra::{Limits, Model, Options, Tensor};

#[test]
fn a_text_whose_graph_is_too_large_is_refused() {
    // Each gradient of a gradient is several times as large as what it is of: twenty lines would take all memory there is.
    let mut text = "input x: tensor[f64, 2]\nlet t0 = sin(x)\n".to_owned();
    for at in 0..20 {
        text.push_str(&format!("let t{} = tensor.grad(tensor.sum(t{at} * sin(x)), x)\n", at + 1));
    }
    text.push_str("output y = t20");
    let (code, message, place) = refused(&text);
    let nodes = cembra::tensor::MOST_MODEL_NODES;
    assert!(
        message.starts_with(&format!("the graph has more than {nodes} nodes, which is the limit; split the graph")),
        "{message}"
    );
    assert_eq!((code, place.map(|place| place.starts_with("tensor.grad("))), ("limit", Some(true)));
}

const INPUTS: &str = "input x: tensor[f64, 2], v: tensor[f64, 1], s: f64, i: tensor[i32, 1]\n";

/// Returns the error message for a model with the output `output`, and the text at the error's place.
fn said(output: &str) -> (String, String) {
    let text = format!("{INPUTS}output y{output}");
    let error = try_compiled(&text).expect_err(output);
    (error.to_string(), error.span().map_or_else(String::new, |span| span.text(&text).to_owned()))
}

#[test]
fn what_people_mean_is_said() {
    for (output, message, place) in [
        (" = sum(x, 1)", "math.sum takes arrays, not tensors; use `tensor.sum` for tensors", "sum(x, 1)"),
        (
            " = x[0]",
            "array.at takes arrays, not tensors; use `tensor.take(x, 0)` for one index of an axis, `tensor.slice(x, 0, 0, 5)` for several",
            "x[0]",
        ),
        (
            " = (x > 0) & (s > 1)",
            "core.presence_and expects a mask for `mask`, found bool; write `if c then x else y`; truth values are joined by `and` and `or`",
            "(x > 0) & (s > 1)",
        ),
        (
            " = core.reduce_tuple(math.add, (x, x))",
            "core.reduce_tuple uses functions or sequences as values, which models with tensors cannot have; call the function by its name, \
             with one call for each tensor",
            "core.reduce_tuple(math.add, (x, x))",
        ),
        (
            " = core.map_tuple(fn(a) = a + 1.0, (x, x)).0",
            "core.map_tuple uses functions or sequences as values, which models with tensors cannot have; call the function by its name, \
             with one call for each tensor",
            "core.map_tuple(fn(a) = a + 1.0, (x, x))",
        ),
        (
            " = seq.range(3)",
            "output `y` has no type; use `seq.reduce` to make one value of the sequence, or `seq.at` for an element: a sequence is not a value",
            "y",
        ),
        (" = v(s)", "`v` is not a function and cannot be called; write labels as a text: `v(\"i,j\")`", "v"),
        ("(i) = v", "expected `=`, found `(`; write labels as a text: `output c(\"i,j\") = ..`", "("),
        (
            " = x[:, 0]",
            "expected a value, found `:`; use `tensor.slice(x, 0, 2, 5)` for a range of indices on axis 0 of a tensor, `tensor.take(x, 2)` for one index",
            ":",
        ),
        (
            " = cast(x, tensor[f32, 2])",
            "an array must have one index; write the type of the elements: `cast(x, f32)`",
            ",",
        ),
        (
            " = is_close(x, x)",
            "math.is_close gives unit?, which cannot be the elements of a tensor; write `abs(x - y) < 1e-9`",
            "is_close(x, x)",
        ),
        (
            " = has(x)",
            "core.has gives unit, which cannot be the elements of a tensor; write a comparison: a condition on tensors is a truth value",
            "has(x)",
        ),
        (
            " = tensor.grad(tensor.sum(x), (x, v))",
            "a gradient cannot be taken with respect to a tuple; write a gradient for each field: `tensor.grad(y, a)` and `tensor.grad(y, b)`",
            "(x, v)",
        ),
        (" = mean(x)", "math.mean takes arrays, not tensors; use `tensor.mean` for tensors", "mean(x)"),
        (
            " = std(x)",
            "math.std takes arrays, not tensors; write `sqrt(tensor.mean(tensor.square(x - tensor.mean(x))))` for all elements; for one axis, use `tensor.mean(x, 0, keep=true)` inside",
            "std(x)",
        ),
        (
            " = trace(x)",
            "there is no operator `trace`; write `let d(\"i\") = x(\"i,i\")` for the diagonal, and `tensor.sum(d)` for the trace",
            "trace",
        ),
        (
            " = np.linalg.norm(x)",
            "there is no operator `np.linalg.norm`; write `sqrt(tensor.sum(x * x))` for all elements",
            "np.linalg.norm",
        ),
        (
            " = sort(x)",
            "there is no operator `sort`; no operator sorts tensors; in Rust a `TensorOp` of your own can",
            "sort",
        ),
        (
            " = median(x)",
            "math.median takes arrays, not tensors; no operator sorts tensors; in Rust a `TensorOp` of your own can",
            "median(x)",
        ),
        (
            " = quantile(x, 0.5)",
            "math.quantile takes arrays, not tensors; no operator sorts tensors; in Rust a `TensorOp` of your own can",
            "quantile(x, 0.5)",
        ),
        (
            " = math.cum_sum(x, s)",
            "math.cum_sum takes arrays, not tensors; use `tensor.cum_sum` for tensors",
            "math.cum_sum(x, s)",
        ),
        (
            " = array.inverse_mapping(i)",
            "array.inverse_mapping takes arrays, not tensors; use other operators, or in Rust a `TensorOp` of your own: tensors do not have this operator",
            "array.inverse_mapping(i)",
        ),
        (" = argmax(x)", "math.argmax takes arrays, not tensors; use `tensor.argmax` for tensors", "argmax(x)"),
        (" = np.argmax(x)", "there is no operator `np.argmax`; did you mean `tensor.argmax`?", "np.argmax"),
        (" = np.exp(x)", "there is no operator `np.exp`; did you mean `exp`?", "np.exp"),
        (
            " = np.concatenate((x, x))",
            "there is no operator `np.concatenate`; write `tensor.concat((x, y), 0)` to join tensors along an axis",
            "np.concatenate",
        ),
        (
            " = tensor.where(x, v, v)",
            "tensor.where does not take f64, f64, f64; write a truth value as the condition, such as `x > 0.0`",
            "tensor.where(x, v, v)",
        ),
        (
            " = x.var()",
            "a field of a value cannot be called; write `tensor.mean(tensor.square(x - tensor.mean(x)))` for all elements; for one axis, use `tensor.mean(x, 0, keep=true)` inside; write `M.word.name(..)` to call an operator whose first word is also the name of a value",
            "x.var",
        ),
        (
            " = x.argmax(0)",
            "a field of a value cannot be called; write the operator in front of its argument: `tensor.argmax(x)`, not `x.argmax()`; write `M.word.name(..)` to call an operator whose first word is also the name of a value",
            "x.argmax",
        ),
        (
            " = x.exp()",
            "a field of a value cannot be called; write the operator in front of its argument: `exp(x)`, not `x.exp()`; write `M.word.name(..)` to call an operator whose first word is also the name of a value",
            "x.exp",
        ),
        (
            " = x.where(v)",
            "a field of a value cannot be called; write `if c then x else y`; write `M.word.name(..)` to call an operator whose first word is also the name of a value",
            "x.where",
        ),
        (
            " = x.shape",
            "only a tuple has fields, but this value is not a tuple; declare such a number as an input: a model cannot read the extents of a tensor",
            "x",
        ),
        (
            " = tensor.sum(x > 0)",
            "the reduction Sum does not take elements of type bool; cast the elements, or use `tensor.any` or `tensor.all`",
            "tensor.sum(x > 0)",
        ),
        (
            " = tensor.grad(tensor.sum(x), i)",
            "a gradient cannot be taken with respect to elements of type i32, only to floats; give `cast(x, f64)` a name with `let`, \
             use the name, and differentiate by the name",
            "i",
        ),
        (
            " = x.T",
            "only a tuple has fields, but this value is not a tuple; write operators in front of tensors: `tensor.transpose(x)`, `tensor.sum(x)`",
            "x",
        ),
        (
            " = x.sum()",
            "a field of a value cannot be called; write the operator in front of its argument: `tensor.sum(x)`, not `x.sum()`; write `M.word.name(..)` to call an operator whose first word is also the name of a value",
            "x.sum",
        ),
        (
            " = x @ v",
            "`@` is not part of the language; write products of tensors with labels: `let c(\"i,j\") = a(\"i,k\") * b(\"k,j\")`",
            "@",
        ),
        (
            " = tensor.matmul(x, v)",
            "there is no operator `tensor.matmul`; write products of tensors with labels: `let c(\"i,j\") = a(\"i,k\") * b(\"k,j\")`",
            "tensor.matmul",
        ),
        (
            " = x[0, 1]",
            "an array must have one index; use `tensor.slice(x, 0, 2, 5)` for a range of indices on axis 0 of a tensor, `tensor.take(x, 2)` for one index",
            ",",
        ),
        (" = transpose(x)", "there is no operator `transpose`; did you mean `tensor.transpose`?", "transpose"),
        (
            " = tensor.concat((x, v))",
            "a concatenation needs tensors with equally many axes, found 2 and 1; reshape the tensor with fewer axes, as a number to an extent of 1",
            "tensor.concat((x, v))",
        ),
        (
            " = tensor.softmax_cross_entropy(v, v)",
            "two tensors must be matrices, found tensors of 1 and of 1 axes; use two matrices of the same extents",
            "tensor.softmax_cross_entropy(v, v)",
        ),
        (
            " = is_nan(x)",
            "math.is_nan gives unit?, which cannot be the elements of a tensor; write `x != x`, which is true for a NaN",
            "is_nan(x)",
        ),
        (
            " = x in [1.0, 2.0]",
            "core._in gives unit?, which cannot be the elements of a tensor; compare with each value: `x == 1.0 or x == 2.0`",
            "x in [1.0, 2.0]",
        ),
        (
            " = where(v, v, 0)",
            "tensor.where does not take f64, f64, i32; write a truth value as the condition, such as `x > 0.0`",
            "where(v, v, 0)",
        ),
        (
            " = tensor.argmax(x, (0, 1))",
            "this argument must be an integer as a literal; write the number as in `tensor.argmax(x, 0)`: axes, extents and positions cannot be inputs",
            "(0, 1)",
        ),
        (
            " = tensor.broadcast(x, (-1, 2))",
            "an extent of -1; write each extent as a number: no extent is computed from the others",
            "(-1, 2)",
        ),
        (
            "(\"i,j\") = v * x(\"i,j\")",
            "0 labels are given for a tensor of 1 axes; write the labels of its axes after it: `a(\"i,j\")`",
            "v",
        ),
    ] {
        assert_eq!(said(output), (message.to_owned(), place.to_owned()));
    }
    let narrow =
        try_compiled("numbers f32; input i: tensor[i32, 1]; output y(\"i\") = 2.5 * i(\"i\")").expect_err("no float");
    assert_eq!(narrow.to_string(), "2.5 is not a value of type i32; cast the other operand to f32 or f64");
}

#[test]
fn loops_have_no_tensors_and_no_gradients() {
    let message = "tensors and gradients cannot be computed inside loops or other functions that operators call";
    for (rest, place) in [
        (
            "output y = core.while_loop({s: k}, fn(s) = s.s > 0.1, fn(s) = {s: s.s - 0.1 * tensor.grad(s.s * s.s, s.s)})",
            "tensor.grad(s.s * s.s, s.s)",
        ),
        ("output y = seq.reduce(fn(s, n) = s - tensor.grad(s * s, s), seq.range(10), k)", "tensor.grad(s * s, s)"),
        (
            "fn step(w) = w - 0.1 * tensor.grad(tensor.sum(w * w), w)\noutput y = seq.reduce(fn(s, n) = step(s), seq.range(10), x)",
            "tensor.sum(w * w)",
        ),
        ("output y = seq.reduce(fn(s, n) = s + tensor.sum(x * s), seq.range(10), k)", "x * s"),
    ] {
        let text = format!("input x: tensor[f64, 1], k: f64\n{rest}");
        let error = try_compiled(&text).expect_err(rest);
        let problem = &error.diagnostics()[0];
        assert_eq!((problem.message(), error.span().map(|span| span.text(&text))), (message, Some(place)), "{rest}");
        assert!(problem.hints()[0].starts_with("write the rounds below each other, `let w1 = step(w)`"), "{error}");
    }
    // What is told to be written.
    let text = "input w: tensor[f64, 1]
        fn step(w) = w - 0.25 * tensor.grad(tensor.sum(w * w), w)
        let w1 = step(w)
        let w2 = step(w1)
        output y = w2";
    let made = evaluated(text, &tensors([("w", f64s(&[2], &[4.0, -8.0]))]));
    assert_eq!(made[0].to_vec::<f64>().expect("floats"), [1.0, -2.0]);
}

#[test]
fn what_is_told_to_be_written_can_be_written() {
    const KNOWN: &str =
        "input x: tensor[f64, 2], y: tensor[f64, 2], a: tensor[f64, 2], b: tensor[f64, 2], i: tensor[i64, 1]
        let c = x > y
        let d = tensor.sum(x, 1)\n";
    let words = "einsum matmul trace diag norm std var cov cumsum concatenate stack choose count prod amax amin swapaxes flatten \
                 squeeze tile roll gather split astype clip power zeros arange shape inv isnan isinf isfinite allclose";
    let mut written = 0;
    for word in words.split_whitespace() {
        let text = format!("input x: tensor[f64, 2]\noutput y = {word}(x)");
        let error = try_compiled(&text).expect_err(word);
        let problems = error.diagnostics();
        let hint = problems[0].hints().first().unwrap_or_else(|| panic!("{word}: {error}"));
        // What stands between marks is code, but for names alone.
        for code in hint.split('`').skip(1).step_by(2).filter(|code| code.contains(['(', ' '])) {
            let text = match code.strip_prefix("let ").and_then(|rest| rest.find('(').map(|at| &rest[at..])) {
                Some(labelled) => format!("{KNOWN}let made{labelled}; output made_so = made"),
                None => format!("{KNOWN}output made_so = {code}"),
            };
            try_compiled(&text).unwrap_or_else(|error| panic!("{word}\n{}", error.render(&*text)));
            written += 1;
        }
    }
    assert!(written > 30, "{written}");
}

#[test]
fn gradients_by_expressions_that_nothing_uses_are_refused() {
    for (lines, place) in [
        ("output y = tensor.grad(tensor.sum(x), x + 1.0)", "x + 1.0"),
        ("output y = tensor.grad(x=-x, y=tensor.sum(x))", "-x"),
        ("let t = x + 1.0\noutput y = tensor.sum(t)\noutput z = tensor.grad(tensor.sum(x), (x + 1.0))", "(x + 1.0)"),
        // Of what the expression is made of there is none either.
        ("let t = x + 1.0\noutput y = tensor.grad(tensor.sum(t * t), t * 1.0)", "t * 1.0"),
        ("fn g(a) = tensor.grad(tensor.sum(a), a * 2.0)\noutput y = g(x)", "a * 2.0"),
        ("output y = tensor.grad(tensor.sum(x), let t = x + 1.0 in t)", "let t = x + 1.0 in t"),
        ("fn f(a) = (a, a * 2.0)\noutput y = tensor.grad(tensor.sum(x), f(x).1)", "f(x).1"),
        ("output y = tensor.grad(tensor.sum(to_float64(i)), cast(i, f32))", "cast(i, f32)"),
    ] {
        let text = format!("{INPUTS}{lines}");
        let (code, message, at) = refused(&text);
        assert_eq!((code, at), ("derivative", Some(place)), "{message}");
        assert_eq!(
            message,
            "the gradient is taken with respect to an expression that is not part of the differentiated expression; name the expression with `let`, use the name in the differentiated expression, and differentiate by the name"
        );
    }
}

#[test]
fn what_fails_in_a_run_is_said_where_it_stands() {
    let given = tensors([
        ("x", counted(&[2, 3], 0)),
        ("v", f64s(&[3], &[1.0, 2.0, 3.0])),
        ("s", Tensor::scalar(2.0)),
        ("i", Tensor::new(&[2], vec![5, 0]).expect("a tensor")),
    ]);
    for (output, message, place) in [
        ("v + to_float64(tensor.sum(10 // i))", "math.floor_divide: division by zero", Some("10 // i")),
        ("v + to_float64(tensor.sum(10 // i + 7 // i))", "math.floor_divide: division by zero", Some("10 // i")),
        ("v + to_float64(tensor.sum(10 % i + 7 // 1))", "math.remainder: division by zero", Some("10 % i")),
        (
            "tensor.take(v, i)",
            "index 5 is not within an axis of extent 3; count indices from 0: negative indices do not count from the end",
            Some("tensor.take(v, i)"),
        ),
        ("to_int32(v * 1e10)", "core.to_int32: 10000000000.0f64 does not fit into i32", Some("to_int32(v * 1e10)")),
        ("cast(v * 1e10, i32)", "core.to_int32: 10000000000.0f64 does not fit into i32", Some("cast(v * 1e10, i32)")),
        (
            "cast(v * 1e10, i32) + to_int32(v)",
            "core.to_int32: 10000000000.0f64 does not fit into i32",
            Some("cast(v * 1e10, i32)"),
        ),
        (
            "to_int32(v) + cast(v * 1e10, i32)",
            "core.to_int32: 10000000000.0f64 does not fit into i32",
            Some("cast(v * 1e10, i32)"),
        ),
        (
            "tensor.broadcast(v, (100000, 100000, 3))",
            "output `y`: a tensor of extents [100000, 100000, 3] takes 240000000000 bytes; the limit is 4294967296 bytes; make fewer or smaller arrays, or \
             raise the limit `array_bytes`",
            Some("y"),
        ),
    ] {
        let text = format!("{INPUTS}output y = {output}");
        let error = run(&compiled(&text), &given).expect_err(output);
        assert_eq!((&*error.message(), error.span().map(|span| span.text(&text))), (message, place), "{output}");
    }
}

#[test]
fn a_statement_whose_graph_is_too_large_is_refused() {
    // Each sum is another node.
    let addends = vec!["a(\"i\")"; cembra::tensor::MOST_MODEL_NODES + 1].join(" + ");
    let text = format!("input a: tensor[f64, 1]\nb(\"i\") = {addends}");
    let limits = Limits::default().nodes(1 << 20).source_bytes(1 << 24);
    let model = Model::parse_within(&text, &limits).expect("a text");
    let error = model.compile(&Options::default().limits(limits)).expect_err("too large");
    let kind = error.tensor_kind();
    assert_eq!((error.code(), kind), ("limit", Some(TensorErrorKind::Limit)), "{error}");
}

#[test]
fn labelled_definitions_are_not_evaluated_anew_without_end() {
    let mut text = String::from("input a: tensor[f64, 1]\nlet p0 = a(\"i\")\n");
    for at in 1..=16 {
        text += &format!("let p{at} = p{0} + p{0}\n", at - 1);
    }
    // Each is 2^17 parts of its own.
    for at in 0..40 {
        text += &format!("output c{at}(\"i\") = p16 * {at}\n");
    }
    let (code, message, place) = refused(&text);
    assert_eq!(code, "limit", "{message}");
    assert!(
        message.starts_with("labelled expressions have more than 4194304 parts together, which is the limit"),
        "{message}"
    );
    assert!(place.is_some_and(|place| place.contains("p16")), "{place:?}");
}
