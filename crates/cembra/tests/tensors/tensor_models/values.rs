//! Tests values other than tensors in models with tensors: arrays, numbers of indices, and tuples.

use super::{compiled, counted, evaluated, f64s, inputs_of, refused, run, tensors, values_of};
use cembra::tensor::TensorErrorKind;
use cembra::{Field, Model, Options, Scalar, Tensor, Value};

#[test]
fn arrays_in_a_text_are_tensors_of_one_axis() {
    let text = r#"
        input x: tensor[f64, 2], flags: tensor[bool, 1], n: tensor[i32, 1]
        let weights = [f64?]{0.5, -2, 10}
        output y("i") = x("i,j") * weights("j")
        output shifted = x + [f32?]{1, 2, 3}
        output square = tensor.reshape([i64?]{1, 2, 3, 4}, (2, 2)) * 2
        output both = flags and [bool?]{true, true}
        output joined = tensor.concat((weights, tensor.sum(x, 0)))
        output empty = tensor.sum([f64?]{})
        output taken = tensor.take(weights, n)
        let loss = tensor.sum(x * weights)
        output slope = tensor.grad(loss, x)
        output same = weights"#;
    let given = tensors([
        ("x", f64s(&[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])),
        ("flags", Tensor::new(&[2], vec![false, true]).expect("a tensor")),
        ("n", Tensor::new(&[2], vec![2, 0]).expect("a tensor")),
    ]);
    let made = evaluated(text, &given);
    let f64s = |at: usize| made[at].to_vec::<f64>().expect("floats");
    assert_eq!(f64s(0), [0.5 - 4.0 + 30.0, 2.0 - 10.0 + 60.0]);
    assert_eq!(f64s(1), [2.0, 4.0, 6.0, 5.0, 7.0, 9.0]);
    assert_eq!(made[2].to_vec::<i64>().expect("integers"), [2, 4, 6, 8]);
    assert_eq!(made[2].extents(), [2, 2]);
    assert_eq!(made[3].to_vec::<bool>().expect("truth values"), [false, true]);
    assert_eq!(f64s(4), [0.5, -2.0, 10.0, 5.0, 7.0, 9.0]);
    assert_eq!(f64s(5), [0.0]);
    assert_eq!(f64s(6), [10.0, 0.5]);
    assert_eq!(f64s(7), [0.5, -2.0, 10.0, 0.5, -2.0, 10.0]);
    assert_eq!(f64s(8), [0.5, -2.0, 10.0]);
    let of = |array: &str| format!("input x: tensor[f64, 1]; output y = x + {array}");
    let missing = of("[f64?]{1, NA}");
    assert_eq!(
        refused(&missing),
        ("type-mismatch", "element 1 of this array is missing; write a number in its place, such as `nan`: the elements of a tensor cannot be missing".to_owned(), Some("[f64?]{1, NA}"))
    );
    let (code, message, _) = refused(&of("[text?]{'a'}"));
    assert_eq!(
        (code, &*message),
        (
            "type-mismatch",
            "an array of elements of type text cannot become a tensor; use elements of type bool, i32, i64, f32 or f64"
        )
    );
    // It has as many elements as it has, whatever the tensors are.
    let executor = compiled(&of("[f64?]{1, 2}"));
    let error = run(&executor, &tensors([("x", counted(&[3], 1))])).expect_err("3 and 2");
    assert_eq!(error.to_string(), "tensors of [3] and [2] do not broadcast");
    // A constant is no step and no temporary.
    let counters = executor.prepare_for(&[&[2]]).expect("a plan").counters();
    assert_eq!((counters.steps, counters.temporaries), (1, 0));
}

#[test]
fn the_first_largest_element_is_found() {
    let text = "
        input x: tensor[f64, 2], n: tensor[i32, 1], t: tensor[f32, 3]
        output largest = tensor.argmax(x)
        output smallest = tensor.argmin(x, 1)
        output by_column = tensor.argmax(x, 0)
        output of_integers = tensor.argmin(n)
        output inner = tensor.argmax(t, -2)
        output best = tensor.take(n, tensor.argmax(x))";
    let nan = f64::NAN;
    let rows = [
        [1.0, 3.0, 3.0, 2.0],
        [nan, 9.0, nan, -9.0],
        [5.0, 7.0, nan, f64::NEG_INFINITY],
        [-0.0, 0.0, -0.0, 0.0],
        [f64::NEG_INFINITY; 4],
    ];
    let given = tensors([
        ("x", f64s(&[5, 4], rows.as_flattened())),
        ("n", Tensor::new(&[4], vec![7, -3, i32::MIN, i32::MIN]).expect("a tensor")),
        (
            "t",
            Tensor::new(&[2, 3, 2], vec![1.0_f32, 2.0, 3.0, 0.0, 3.0, 2.0, -1.0, -1.0, -2.0, 5.0, 0.0, 6.0])
                .expect("a tensor"),
        ),
    ]);
    let made = evaluated(text, &given);
    let i64s = |at: usize| made[at].to_vec::<i64>().expect("integers");
    assert_eq!(i64s(0), [1, 0, 2, 0, 0]);
    assert_eq!(i64s(1), [0, 0, 2, 0, 0]);
    assert_eq!(i64s(2), [1, 1, 1, 0]);
    assert_eq!(i64s(3), [2]);
    assert_eq!((i64s(4), made[4].extents()), (vec![1, 0, 2, 2], &[2, 2][..]));
    assert_eq!(made[5].to_vec::<i32>().expect("integers"), [-3, 7, i32::MIN, 7, 7]);
    for (text, code) in [
        ("input x: tensor[bool, 1]; output y = tensor.argmax(x)", "type-mismatch"),
        ("input x: tensor[f64, 1]; output y = tensor.argmax(x, 1)", "shape"),
        ("input x: f64, y: tensor[f64, 1]; output z = tensor.argmax(x)", "shape"),
    ] {
        assert_eq!(refused(text).0, code, "{text}");
    }
    let executor = compiled("input x: tensor[f64, 2]; output y = tensor.argmax(x)");
    let error = run(&executor, &tensors([("x", f64s(&[3, 0], &[]))])).expect_err("of nothing");
    assert_eq!(error.tensor_kind(), Some(TensorErrorKind::EmptyReduction));
    // Rows are looked at one after the other: what lies between is no temporary, but for the numbers of the indices.
    let counters = executor.prepare_for(&[&[100, 10]]).expect("a plan").counters();
    assert_eq!((counters.steps, counters.temporaries, counters.temp_bytes), (2, 1, 80));
}

#[test]
fn running_sums_go_along_an_axis() {
    let text = "
        input x: tensor[f64, 2], n: tensor[i32, 1], t: tensor[f32, 1], w: tensor[f64, 2]
        output rows = tensor.cum_sum(x)
        output columns = tensor.cum_sum(x, 0)
        output of_integers = tensor.cum_sum(n, axis=-1)
        output of_f32 = tensor.cum_sum(t)
        output slope = tensor.grad(tensor.sum(tensor.cum_sum(x, 1) * w), x)";
    let (nan, infinity) = (f64::NAN, f64::INFINITY);
    let numbers: Vec<i32> = (1..=70).map(|n| if n == 3 { i32::MAX } else { n }).collect();
    let given = tensors([
        ("x", f64s(&[2, 5], &[1.0, 2.0, 3.0, 4.0, 5.0, -0.0, infinity, 1.0, nan, 0.5])),
        ("n", Tensor::new(&[70], numbers.clone()).expect("a tensor")),
        ("t", Tensor::new(&[4], vec![16_777_216.0_f32, 1.0, 1.0, -16_777_216.0]).expect("a tensor")),
        ("w", f64s(&[2, 5], &[1.0, 10.0, 100.0, 1000.0, 10000.0, 0.0, 0.0, 1.0, 0.0, 2.0])),
    ]);
    let made = evaluated(text, &given);
    let floats = |at: usize| made[at].to_vec::<f64>().expect("floats");
    let rows = floats(0);
    assert_eq!(rows[..5], [1.0, 3.0, 6.0, 10.0, 15.0]);
    assert_eq!((rows[5].to_bits(), rows[6], rows[7]), ((-0.0_f64).to_bits(), infinity, infinity));
    assert!(rows[8].is_nan() && rows[9].is_nan());
    let columns = floats(1);
    assert_eq!(
        (&columns[..5], columns[5], columns[6], columns[7], columns[9]),
        (&[1.0, 2.0, 3.0, 4.0, 5.0][..], 1.0, infinity, 4.0, 5.5)
    );
    let sums: Vec<i32> = numbers
        .iter()
        .scan(0_i32, |sum, n| {
            *sum = sum.wrapping_add(*n);
            Some(*sum)
        })
        .collect();
    assert_eq!(made[2].to_vec::<i32>().expect("integers"), sums);
    // Sums of f32 are kept in f64.
    assert_eq!(made[3].to_vec::<f32>().expect("floats"), [16_777_216.0, 16_777_216.0, 16_777_218.0, 2.0]);
    // An element changes all sums from its own on.
    assert_eq!(floats(4), [11111.0, 11110.0, 11100.0, 11000.0, 10000.0, 3.0, 3.0, 3.0, 2.0, 2.0]);
    let empty =
        evaluated("input x: tensor[f64, 2]; output y = tensor.cum_sum(x)", &tensors([("x", f64s(&[3, 0], &[]))]));
    assert_eq!(empty[0].extents(), [3, 0]);
    for (text, code) in [
        ("input x: tensor[bool, 1]; output y = tensor.cum_sum(x)", "type-mismatch"),
        ("input x: tensor[f64, 1]; output y = tensor.cum_sum(x, 1)", "shape"),
    ] {
        assert_eq!(refused(text).0, code, "{text}");
    }
}

#[test]
fn fields_of_tuples_are_what_was_put_into_them() {
    let text = r#"
        input x: tensor[f64, 1], y: tensor[f64, 2], i: i32
        fn ends(x) = {least: tensor.min(x), most: tensor.max(x)}
        let pair = (x, {whole: y, more: (i, 2.5)})
        output a = pair.0 * pair.1.more.1
        output b = tensor.sum(pair.1.whole, 0) + pair.1.more.0
        output c = ends(x).most - ends(x).least
        let parts = (x, x + 1.0)
        output d = tensor.concat(parts)
        let w = pair.1.whole
        output e("j,i") = w("i,j")"#;
    let given =
        tensors([("x", f64s(&[2], &[1.0, 4.0])), ("y", f64s(&[1, 2], &[10.0, 20.0])), ("i", Tensor::scalar(3))]);
    let made = evaluated(text, &given);
    let f64s = |at: usize| made[at].to_vec::<f64>().expect("floats");
    assert_eq!((f64s(0), f64s(1), f64s(2)), (vec![2.5, 10.0], vec![13.0, 23.0], vec![3.0]));
    assert_eq!((f64s(3), f64s(4)), (vec![1.0, 4.0, 2.0, 5.0], vec![10.0, 20.0]));
    let tuple = "this value is a tuple, but a tensor is needed here; use a field of the tuple: `t.0`, or `t.x` if its fields have names";
    for (value, code, message, place) in [
        ("(x, 1.0)", "type-mismatch", tuple, "(x, 1.0)"),
        ("(x, 1.0).2", "arguments", "the tuple has 2 fields, so there is no field 2", "(x, 1.0).2"),
        ("{a: x}.b", "arguments", "the tuple has no field `b`", "{a: x}.b"),
        (
            "x.a",
            "type-mismatch",
            "only a tuple has fields, but this value is not a tuple; write operators in front of tensors: `tensor.transpose(x)`, `tensor.sum(x)`",
            "x",
        ),
    ] {
        let text = format!("input x: tensor[f64, 1]; output y = {value}");
        assert_eq!(refused(&text), (code, message.to_owned(), Some(place)));
    }
}

#[test]
fn one_extent_is_found_from_the_others() {
    let text = "input x: tensor[f64, 2]
        output flat = tensor.reshape(x, -1)
        output rows = tensor.reshape(x, (-1, 2))
        output middle = tensor.reshape(x, (3, -1, 1))
        output wide = tensor.reshape(x, (1, 2, -1)) + 0.5";
    let given = tensors([("x", counted(&[2, 3], 2))]);
    let made = evaluated(text, &given);
    let extents: Vec<&[usize]> = made.iter().map(Tensor::extents).collect();
    assert_eq!(extents, [&[6][..], &[3, 2], &[3, 2, 1], &[1, 2, 3]]);
    for made in &made[..3] {
        assert_eq!(made.to_vec::<f64>().expect("floats"), given["x"].to_vec::<f64>().expect("floats"));
    }
    let none = evaluated(
        "input x: tensor[f64, 2]; output y = tensor.reshape(x, (-1, 5))",
        &tensors([("x", counted(&[0, 3], 2))]),
    );
    assert_eq!(none[0].extents(), [0, 5]);
    for extents in ["(4, -1)", "(-1, 0)", "(-1, 7)"] {
        let text = format!("input x: tensor[f64, 2]; output y = tensor.reshape(x, {extents})");
        let error = run(&compiled(&text), &given).expect_err(extents);
        assert!(error.to_string().starts_with("a tensor of extents [2, 3] cannot be reshaped to"), "{error}");
    }
    for (value, message) in [
        (
            "tensor.reshape(x, (-1, -1))",
            "an extent of -1; write -1 for only one extent, which is then computed from the others",
        ),
        (
            "tensor.reshape(x, (-2, 3))",
            "an extent of -2; write -1 for only one extent, which is then computed from the others",
        ),
        (
            "tensor.broadcast(x, (-1, 3))",
            "an extent of -1; write each extent as a number: no extent is computed from the others",
        ),
    ] {
        let (code, said, _) = refused(&format!("input x: tensor[f64, 2]; output y = {value}"));
        assert_eq!((code, &*said), ("shape", message));
    }
}

#[test]
fn scalars_that_are_not_given_have_their_defaults() {
    let text = "input x: tensor[f64, 1], by: f64? = 2, from: i32? = -3, single: f32? = 0.1, is_up: bool? = true
        output y = if is_up then x * by + from else x
        output z(\"i\") = by * x(\"i\")
        output w = single
        output slope = tensor.grad(tensor.sum(x * by), by)";
    let x = f64s(&[2], &[1.0, 10.0]);
    let made = evaluated(text, &tensors([("x", x.clone())]));
    let floats = |at: usize| made[at].to_vec::<f64>().expect("floats");
    assert_eq!((floats(0), floats(1), floats(3)), (vec![-1.0, 17.0], vec![2.0, 20.0], vec![11.0]));
    assert_eq!(made[2].get::<f32>(&[]).expect("a float"), 0.1);
    let made =
        evaluated(text, &tensors([("x", x.clone()), ("by", Tensor::scalar(0.5)), ("is_up", Tensor::scalar(true))]));
    assert_eq!(made[0].to_vec::<f64>().expect("floats"), [-2.5, 2.0]);
    let made = evaluated(text, &tensors([("x", x.clone()), ("is_up", Tensor::scalar(false))]));
    assert_eq!(made[0].to_vec::<f64>().expect("floats"), [1.0, 10.0]);
    // Tensors by position are all given, and each is of its type.
    let executor = compiled(text);
    let declared: Vec<String> = executor.inputs().iter().map(Field::declaration).collect();
    assert_eq!(declared, ["tensor[f64, 1]", "f64? = 2.0", "i32? = -3", "f32? = 0.1", "bool? = true"]);
    let mut session = executor.session();
    let error = session.run_tensors(std::slice::from_ref(&x)).expect_err("by position");
    assert_eq!(error.to_string(), "1 tensors for 5 inputs");
    // Values are not: those at the end have their defaults.
    let made = session.evaluate(&[x.clone().into(), Value::from(Some(0.5))]).expect("values");
    assert_eq!(made[0].as_tensor().expect("a tensor").to_vec::<f64>().expect("floats"), [-2.5, 2.0]);
    let wrong = inputs_of(&executor, &tensors([("x", x.clone()), ("by", Tensor::scalar(1))]));
    let error = session.run_tensors(&wrong).expect_err("another type");
    assert_eq!(
        error.to_string(),
        "input `by` is f64? = 2.0, but the given tensor has elements of type i32 and the extents []"
    );
    // Values are of exactly the input's type, which is one that may be missing.
    let values = values_of(&executor, &tensors([("x", x.clone())]));
    assert_eq!(values[1], Value::Missing(Scalar::Float64));
    for (by, found) in [
        (Value::from(0.5), "f64"),
        (Value::Missing(Scalar::Float32), "f32?"),
        (Value::from(Some(1)), "i32?"),
        (Value::from(x), "tensor[f64, 1]"),
    ] {
        let mut values = values.clone();
        values[1] = by;
        let error = session.evaluate(&values).expect_err("another type");
        let message = format!("input `by` is f64?, found {found}");
        assert_eq!((error.code(), error.to_string()), ("values", message));
    }
    for (inputs, code, message) in [
        (
            "s: f64 = 3.0",
            "input-type",
            "only an optional input can have a default; write `f64?`: with a default the input is never missing in the model",
        ),
        (
            "s: tensor[f64, 1] = 3.0",
            "input-type",
            "only an optional input can have a default; leave the default out: a tensor must always be given",
        ),
        (
            "s: tensor[f64?, 1]",
            "syntax",
            "the elements of a tensor cannot be missing; write `tensor[f64, ..]`; use a NaN for a missing number",
        ),
        (
            "s: tensor[float64, 1]",
            "syntax",
            "expected the type of a tensor's elements, found `float64`; use bool, i32, i64, f32 or f64 for the elements of a tensor",
        ),
        (
            "s: tensor[i32?, 1]",
            "syntax",
            "the elements of a tensor cannot be missing; write `tensor[i32, ..]`; use a second tensor of `bool` to mark missing values",
        ),
    ] {
        let (found, said, _) = refused(&format!("input x: tensor[f64, 1], {inputs}; output y = x; output z = s"));
        assert_eq!((found, &*said), (code, message));
    }
    // A value that may be missing stays apart from tensors.
    for input in ["s: f64?", "s: bool?"] {
        let (found, said, _) =
            refused(&format!("input x: tensor[f64, 1], {input}; output z = if x > 0.0 then x else s"));
        let qtype = input.trim_start_matches("s: ");
        let message = format!(
            "{qtype} cannot be used with a tensor, whose elements are never missing; write a default for a missing value: `x ?? 0.0`"
        );
        assert_eq!((found, said), ("type-mismatch", message));
    }
}

#[test]
fn extremes_of_the_language_have_derivatives() {
    let text = "input x: tensor[f64, 1], single: tensor[f32, 1], lo: f64, hi: f64
        output max_x = tensor.grad(tensor.sum(2.0 * max(x, 0.5)), x)
        output min_x = tensor.grad(tensor.sum(2.0 * min(0.5, x)), x)
        let clamped = clamp(x, lo, hi)
        output within = tensor.grad(tensor.sum(clamped), x)
        output at_lo = tensor.grad(tensor.sum(clamped), lo)
        output at_hi = tensor.grad(tensor.sum(clamped), hi)
        output of_single = tensor.grad(tensor.sum(clamp(single, lo, hi) * x), single)";
    let elements = [0.1, 0.25, 0.5, 0.75, 1.0];
    let given = tensors([
        ("x", f64s(&[5], &elements)),
        ("single", Tensor::new(&[5], elements.map(|x| x as f32).to_vec()).expect("a tensor")),
        ("lo", Tensor::scalar(0.25)),
        ("hi", Tensor::scalar(0.75)),
    ]);
    let made = evaluated(text, &given);
    let f64s: Vec<Vec<f64>> = made[..5].iter().map(|made| made.to_vec().expect("floats")).collect();
    assert_eq!(f64s[0], [0.0, 0.0, 1.0, 2.0, 2.0]);
    assert_eq!(f64s[1], [2.0, 2.0, 1.0, 0.0, 0.0]);
    assert_eq!(f64s[2], [0.0, 0.5, 1.0, 0.5, 0.0]);
    assert_eq!([&f64s[3][..], &f64s[4]], [[1.5], [1.5]]);
    assert_eq!(made[5].to_vec::<f32>().expect("floats"), [0.0, 0.125, 0.5, 0.375, 0.0]);
}

#[test]
fn derivatives_of_products_are_products_of_the_others() {
    // With two zeros nothing is left of the first derivative, but of the second.
    let text = "input x: tensor[f64, 1], w: tensor[f64, 1]
        let g = tensor.grad(tensor.product(x), x)
        output first = g
        output second = tensor.grad(tensor.sum(g * w), x)";
    let given = tensors([("x", f64s(&[4], &[2.0, 0.0, 3.0, 0.0])), ("w", f64s(&[4], &[1.0, 10.0, 100.0, 1000.0]))]);
    let made = evaluated(text, &given);
    assert_eq!(made[0].to_vec::<f64>().expect("floats"), [0.0; 4]);
    assert_eq!(made[1].to_vec::<f64>().expect("floats"), [0.0, 6000.0, 0.0, 60.0]);
    for extents in [[2, 3, 5], [1, 4, 1], [3, 1, 2], [0, 2, 3], [2, 0, 1]] {
        for axes in [&[0, 2][..], &[1], &[2], &[0, 1, 2]] {
            let literal: Vec<String> = axes.iter().map(ToString::to_string).collect();
            let text = format!(
                "input x: tensor[f64, 3]; output g = tensor.grad(tensor.sum(tensor.product(x, ({},))), x)",
                literal.join(", ")
            );
            let x = counted(&extents, 1);
            let made = evaluated(&text, &tensors([("x", x.clone())]));
            let places: Vec<Vec<usize>> = (0..extents.iter().product())
                .map(|at: usize| vec![at / (extents[1] * extents[2]), at / extents[2] % extents[1], at % extents[2]])
                .collect();
            let is_with =
                |own: &[usize], other: &[usize]| (0..3).all(|axis| axes.contains(&axis) || own[axis] == other[axis]);
            let expected = places.iter().map(|own| {
                let others = places.iter().filter(|other| *other != own && is_with(own, other));
                others.map(|other| x.get::<f64>(other).expect("an element")).product()
            });
            let expected: Vec<f64> = expected.collect();
            assert_eq!(made[0].extents(), extents);
            assert_eq!(made[0].to_vec::<f64>().expect("floats"), expected, "{extents:?} over {axes:?}");
        }
    }
}

#[test]
fn powers_have_slopes_at_zero() {
    let text = "input x: tensor[f64, 1], p: f64
        output by_x = tensor.grad(tensor.sum(x ** p), x)
        output by_p = tensor.grad(tensor.sum(x ** p), p)
        output squared = tensor.grad(tensor.sum(x ** 2.0), x)";
    let found = |p: f64| -> Vec<Vec<f64>> {
        let given = tensors([("x", f64s(&[3], &[0.0, 1.0, 2.0])), ("p", f64s(&[], &[p]))]);
        evaluated(text, &given).iter().map(|made| made.to_vec::<f64>().expect("floats")).collect()
    };
    let ln_2 = std::f64::consts::LN_2;
    assert_eq!(found(2.0), [vec![0.0, 2.0, 4.0], vec![4.0 * ln_2], vec![0.0, 2.0, 4.0]]);
    assert_eq!(found(0.0)[..2], [vec![0.0, 0.0, 0.0], vec![ln_2]]);
    assert_eq!(found(1.0)[..2], [vec![1.0, 1.0, 1.0], vec![2.0 * ln_2]]);
    // There the slope is infinite.
    assert_eq!(found(0.5)[0][0], f64::INFINITY);
    let far = tensors([("x", f64s(&[2], &[f64::INFINITY, f64::NEG_INFINITY])), ("p", f64s(&[], &[0.0]))]);
    assert_eq!(evaluated(text, &far)[0].to_vec::<f64>().expect("floats"), [0.0, 0.0]);
}

#[test]
fn numbers_of_a_product_are_in_its_elements_type() {
    let text = r#"input a: tensor[f32, 1], b: tensor[f64, 1]
        output large("i") = a("i") * 1e20 / 1e20 * 1e20 / 1e20
        output larger("i") = b("i") * 1e200 / 1e200 * 1e200 / 1e200
        output small("i") = 1e-30 * a("i") * 1e-30 * -1e30 * 1e30
        output usual("i") = 3.0 * a("i") * 0.1 / 7.0 / 0.3
        output nothing("i") = 0.0 * a("i") * 1e30 / 2.0
        output wide("i") = a("i") / 7"#;
    let given =
        tensors([("a", Tensor::new(&[2], vec![1.0_f32, -3.0]).expect("a tensor")), ("b", f64s(&[2], &[1.0, -3.0]))]);
    let made = evaluated(text, &given);
    let singles = |at: usize| made[at].to_vec::<f32>().expect("floats");
    assert_eq!(singles(0), [1.0, -3.0]);
    assert_eq!(made[1].to_vec::<f64>().expect("floats"), [1.0, -3.0]);
    // As it is written: 1e-60 is 0 in this type.
    assert_eq!(singles(2).iter().map(|small| small.to_bits()).collect::<Vec<u32>>(), [1 << 31, 0]);
    assert_eq!(singles(3)[0], (3.0_f32 * 0.1) / (7.0_f32 * 0.3));
    assert_eq!(singles(4), [0.0, -0.0]);
    // Integers are f64, as beside a number.
    assert_eq!(made[5].to_vec::<f64>().expect("floats"), [1.0 / 7.0, -3.0 / 7.0]);
}

#[test]
fn gradients_by_expressions_are_by_what_is_used() {
    let text = "
        input x: tensor[f64, 1], w: tensor[f64, 1], unused: tensor[f64, 1], t: f64
        fn loss(a) = tensor.sum(a * a * w)
        fn by_twice(a) = tensor.grad(loss(a * 2.0), a * 2.0)
        fn by_name(a) = tensor.grad(tensor.sum(x), a)
        let named = x * 5.0
        let pair = (w + 1.0, named)
        let of_both = {first: x + 3.0, second: w + 1.0}
        output used = tensor.grad(loss(x + 1.0), x + 1.0)
        output swapped = tensor.grad(x=(x + 1.0), y=loss(x + 1.0))
        output inside = by_twice(x)
        output by_input = tensor.grad(loss(x), unused)
        output by_let = tensor.grad(loss(x), named)
        output by_field = tensor.grad(loss(x), pair.1)
        output by_named_field = tensor.grad(loss(x + 3.0), of_both.first)
        output by_parameter = by_name(x - 7.0)
        output by_local = let l = x / 2.0 in tensor.grad(loss(x), (l))
        output by_scalar = tensor.grad(loss(x * (t + 1.0)), t + 1.0)";
    let given = tensors([
        ("x", f64s(&[2], &[1.0, 2.0])),
        ("w", f64s(&[2], &[10.0, 1.0])),
        ("unused", f64s(&[3], &[1.0, 2.0, 3.0])),
        ("t", Tensor::scalar(1.0)),
    ]);
    let made = evaluated(text, &given);
    let f64s = |at: usize| made[at].to_vec::<f64>().expect("floats");
    assert_eq!((f64s(0), f64s(1)), (vec![40.0, 6.0], vec![40.0, 6.0]));
    assert_eq!(f64s(2), [40.0, 8.0]);
    assert_eq!(f64s(3), [0.0, 0.0, 0.0]);
    assert_eq!((f64s(4), f64s(5)), (vec![0.0, 0.0], vec![0.0, 0.0]));
    assert_eq!(f64s(6), [80.0, 10.0]);
    assert_eq!((f64s(7), f64s(8)), (vec![0.0, 0.0], vec![0.0, 0.0]));
    // Of 10 * (1 * s)^2 + (2 * s)^2 at 2.
    assert_eq!(f64s(9), [20.0 * 2.0 + 8.0 * 2.0]);
}

/// One pass over the graph derives all gradients of one number. With one pass per gradient, 2,000 gradients once
/// took two seconds.
#[test]
fn many_gradients_of_one_number_take_one_pass() {
    const COUNT: usize = 3_000;
    let names: Vec<String> = (0..COUNT).map(|at| format!("x{at}")).collect();
    let mut text = format!("input {}: tensor[f64, 1]\n", names.join(": tensor[f64, 1], "));
    text += &format!("let s = tensor.sum({})\n", names.join(" * "));
    names.iter().for_each(|name| text += &format!("output g{name} = tensor.grad(s, {name})\n"));
    let limits = cembra::Limits::default().compile_time(std::time::Duration::from_millis(1500));
    let executor = Model::parse(&text).expect("a model").compile(&Options::default().limits(limits));
    let executor = executor.expect("within a tenth of the time");
    let given = |at: usize| f64s(&[1], &[if at == 7 { 3.0 } else { 1.0 }]);
    let made = run(&executor, &names.iter().enumerate().map(|(at, name)| (name.clone(), given(at))).collect());
    for (at, made) in made.expect("gradients").iter().enumerate() {
        assert_eq!(made.to_vec::<f64>().expect("floats"), [if at == 7 { 1.0 } else { 3.0 }], "{at}");
    }
}

#[test]
fn gradients_of_several_numbers_in_turns_are_those_of_each() {
    let text = "
        input x: tensor[f64, 1], w: tensor[f64, 1]
        let a = tensor.sum(x * x * w)
        let b = tensor.sum(x * w)
        output ax = tensor.grad(a, x)
        output bx = tensor.grad(b, x)
        output aw = tensor.grad(a, w)
        output bw = tensor.grad(b, w)
        output of_gradient = tensor.grad(tensor.sum(tensor.grad(a, x)), w)
        output again = tensor.grad(a, x)";
    let given = tensors([("x", f64s(&[2], &[2.0, 3.0])), ("w", f64s(&[2], &[5.0, 7.0]))]);
    let made: Vec<_> = evaluated(text, &given).iter().map(|made| made.to_vec::<f64>().expect("floats")).collect();
    assert_eq!(made[..3], [[20.0, 42.0], [5.0, 7.0], [4.0, 9.0]]);
    assert_eq!(made[3..], [[2.0, 3.0], [4.0, 6.0], [20.0, 42.0]]);
    let (code, message, span) = refused(
        "input x: tensor[f64, 1]; let s = tensor.sum(math.t_distribution_inverse_cdf(x, x) + x)
         output a = tensor.grad(s, x); output b = tensor.grad(s, x) + 1.0",
    );
    assert_eq!((code, span), ("derivative", Some("tensor.grad(s, x)")), "{message}");
}

#[test]
fn integers_of_a_file_of_wide_numbers_are_computed_in_f64() {
    let text = r#"
        numbers f64
        input a: tensor[i32, 1], b: tensor[f32, 1], c: tensor[i32, 2], n: i32
        let s("i") = a("i") / 2
        output halves = s
        output sums = a + b
        output more = a * n + 1
        output roots = sqrt(a)
        output share = tensor.sum(a) / 3
        output third = n / 3
        output rest("i") = a("i") * a("i") - b("i") * 2
        output along("i") = (c("i,j") * a("j")) / n
        output chosen = if a > 3 then a else 0.5
        output whole("i") = c("i,j") * a("j")
        output square = (a("i") * a("i")).sum() / 2
        output reached: f64 = (n * n) / 7"#;
    let given = tensors([
        ("a", Tensor::new(&[3], vec![1, 2, 16_777_217]).expect("a tensor")),
        ("b", Tensor::new(&[3], vec![0.5_f32, 0.25, 0.125]).expect("a tensor")),
        ("c", Tensor::new(&[2, 3], vec![1, 0, 0, 0, 1, 1]).expect("a tensor")),
        ("n", Tensor::new(&[], vec![16_777_217]).expect("a tensor")),
    ]);
    let made = evaluated(text, &given);
    let f64s = |at: usize| made[at].to_vec::<f64>().expect("floats");
    let n = 16_777_217.0_f64;
    assert_eq!(f64s(0), [0.5, 1.0, n / 2.0]);
    assert_eq!(f64s(1), [1.5, 2.25, n + 0.125]);
    // Among integers it stays one, and wraps.
    let wrapped = 16_777_217_i32.wrapping_mul(16_777_217).wrapping_add(1);
    assert_eq!(made[2].to_vec::<i32>().expect("integers"), [16_777_218, 33_554_435, wrapped]);
    assert_eq!(f64s(3), [1.0, 2.0_f64.sqrt(), n.sqrt()]);
    assert_eq!(f64s(4), [(n + 3.0) / 3.0]);
    assert_eq!(f64s(5), [n / 3.0]);
    let square = f64::from(16_777_217_i32.wrapping_mul(16_777_217));
    assert_eq!(f64s(6), [0.0, 3.5, square - 0.25]);
    assert_eq!(f64s(7), [1.0 / n, (n + 2.0) / n]);
    assert_eq!(f64s(8), [0.5, 0.5, n]);
    assert_eq!(made[9].to_vec::<i32>().expect("integers"), [1, 16_777_219]);
    assert_eq!(f64s(10), [f64::from(16_777_217_i32.wrapping_mul(16_777_217).wrapping_add(5)) / 2.0]);
    assert_eq!(f64s(11), [n * n / 7.0]);
}
