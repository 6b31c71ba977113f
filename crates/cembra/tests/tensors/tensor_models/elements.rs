//! Tests operators on elements of tensors: operators with a literal operand, and the derivatives of all operators,
//! compared with finite differences.

use super::{counted, evaluated, f64s, refused, tensors, try_compiled};
use cembra::tensor::{CompileGraph, Reduction, TensorErrorKind, TensorGraph, TensorNodeId, same_bits};
use cembra::{Executor, Model, Options, Scalar, ScalarValue, Tensor};

fn floats(tensor: &Tensor) -> Vec<f64> {
    tensor.to_vec::<f64>().expect("floats")
}

fn compiled(graph: &TensorGraph, outputs: &[TensorNodeId]) -> Executor {
    graph.compile(outputs, &Options::default()).expect("an executor")
}

#[test]
fn operators_look_at_literals() {
    let text = "
        input x: tensor[f64, 2], single: tensor[f32, 1], whole: tensor[i32, 1]
        output cents = round(x, 2)
        output named = round(x, digits=2)
        output nearest = round(x)
        output tens = round(single, -1)
        output same = round(whole, 2)
        output turned(\"j,i\") = round(x(\"i,j\"), 1) * x(\"i,j\")
        output halves(\"i\") = round(single(\"i\"))
        output broadcast = round(tensor.broadcast(single, (2, 3)), 0) + 0.5
        output alone = round(1234.5678f64, 2)";
    let given = tensors([
        ("x", f64s(&[2, 3], &[1.234, -2.675, 0.125, 1e300, -0.001, f64::NAN])),
        ("single", Tensor::new(&[3], vec![1250.5_f32, -5.0, 4.5]).expect("a tensor")),
        ("whole", Tensor::new(&[2], vec![7, -1234]).expect("a tensor")),
    ]);
    let made = evaluated(text, &given);
    let cents = f64s(&[2, 3], &[1.23, -2.68, 0.13, 1e300, -0.0, f64::NAN]);
    assert!(same_bits(&made[0], &cents) && same_bits(&made[1], &cents), "{:?}", made[0]);
    assert!(same_bits(&made[2], &f64s(&[2, 3], &[1.0, -3.0, 0.0, 1e300, -0.0, f64::NAN])), "{:?}", made[2]);
    let singles = |at: usize| made[at].to_vec::<f32>().expect("floats");
    assert_eq!((singles(3), made[4].to_vec::<i32>().expect("integers")), (vec![1250.0, -10.0, 0.0], vec![7, -1234]));
    let turned = [1.2 * 1.234, 1e300 * 1e300, -2.7 * -2.675, -0.0 * -0.001, 0.1 * 0.125, f64::NAN];
    assert!(same_bits(&made[5], &f64s(&[3, 2], &turned)), "{:?}", made[5]);
    assert_eq!(singles(6), [1251.0, -5.0, 5.0]);
    assert_eq!(singles(7), [1251.5, -4.5, 5.5, 1251.5, -4.5, 5.5]);
    assert_eq!(floats(&made[8]), [1234.57]);
}

#[test]
fn numbers_beside_labels_are_of_the_types_that_they_have_elsewhere() {
    let text = "input i: tensor[i64, 1], x: tensor[f32, 1]
        output least(\"i\") = max(i(\"i\"), 2)
        output weak(\"i\") = max(x(\"i\"), 0.1)
        output above(\"i\") = i(\"i\") > 9007199254740992";
    let given = tensors([
        ("i", Tensor::new(&[2], vec![1_i64, 9_007_199_254_740_993]).expect("a tensor")),
        ("x", Tensor::new(&[2], vec![0.05_f32, 3.0]).expect("a tensor")),
    ]);
    let made = evaluated(text, &given);
    assert_eq!(made[0].to_vec::<i64>().expect("integers"), [2, 9_007_199_254_740_993]);
    assert_eq!(made[1].to_vec::<f32>().expect("floats"), [0.1, 3.0]);
    assert_eq!(made[2].to_vec::<bool>().expect("truth values"), [false, true]);
}

#[test]
fn literals_that_do_not_fit_are_told_of() {
    for (value, message, place) in [
        (
            "round(x, d)",
            "round expects a literal integer for `digits`; write the number of digits, as in `round(x, 2)`",
            "round(x, d)",
        ),
        (
            "round(x, 1.5)",
            "round expects a literal integer for `digits`; write the number of digits, as in `round(x, 2)`",
            "round(x, 1.5)",
        ),
        ("round(x, 99)", "round expects `digits` from -15 to 15, found 99", "round(x, 99)"),
        (
            "round(i, -2)",
            "round expects a float where `digits` is negative, found an integer; write `round(core.to_float64(x), -2)`",
            "round(i, -2)",
        ),
    ] {
        let text = format!("input x: tensor[f64, 1], i: tensor[i32, 1], d: i32; output y = {value}");
        assert_eq!(refused(&text), ("type-mismatch", message.to_owned(), Some(place)));
    }
}

#[test]
fn graphs_of_rust_have_literals_and_leave_them_out() {
    let mut g = TensorGraph::standard();
    let x = g.leaf("x", Scalar::Float64, &[3]).expect("a leaf");
    let digits = g.constant(Scalar::Int32, 1.0).expect("a constant");
    let rounded = g.apply("round", &[x, digits]).expect("a node");
    let nearest = g.apply("round", &[x]).expect("a node");
    let weighted = g.apply("math.multiply", &[rounded, x]).expect("a node");
    let number = g.constant(Scalar::Float64, 2.345).expect("a constant");
    let folded = g.apply("round", &[number, digits]).expect("a node");
    let sum = g.reduce(Reduction::Sum, weighted, &[0]).expect("a sum");
    let gradient = g.gradients(sum, &[x]).expect("a gradient")[0];
    let recomputed = g.gradients_with(sum, &[x], &[rounded]).expect("one")[0];
    let inputs = [f64s(&[3], &[0.26, -1.15, 7.0])];
    let executor = compiled(&g, &[rounded, nearest, folded, gradient, recomputed]);
    let mut session = executor.session();
    let reference = executor.run_reference(&inputs).expect("outputs");
    for (at, (made, reference)) in session.run_tensors(&inputs).expect("outputs").iter().zip(&reference).enumerate() {
        assert!(same_bits(made, reference), "{made:?}, not {reference:?}");
        if at != 2 {
            let element = executor.reader(at, &inputs).expect("a reader").value(&[1]).expect("an element");
            assert_eq!(element, ScalarValue::Float64(floats(reference)[1]));
        }
    }
    assert_eq!(floats(&reference[0]), [0.3, -1.2, 7.0]);
    assert_eq!((floats(&reference[1]), floats(&reference[2])), (vec![0.0, -1.0, 7.0], vec![2.3]));
    // Of the product only the factor that is not rounded counts.
    assert_eq!((floats(&reference[3]), floats(&reference[4])), (vec![0.3, -1.2, 7.0], vec![0.3, -1.2, 7.0]));
    // It cannot fail, so it is computed where it is read.
    assert_eq!(compiled(&g, &[sum]).prepare_for(&[&[3]]).expect("a plan").counters().steps, 1);
    let refused = g.apply("round", &[x, x]).expect_err("no literal");
    assert_eq!(refused.tensor_kind(), Some(TensorErrorKind::ElementType));
    assert!(refused.to_string().starts_with("round expects a literal integer for `digits`"), "{refused}");
}

/// A graph that applies an operator to leaves and sums the results, each times a weight; with the node of the results,
/// that of the sum, and the leaves that are floats.
struct Weighed {
    graph: TensorGraph,
    made: TensorNodeId,
    sum: TensorNodeId,
    floats: Vec<TensorNodeId>,
}

const COUNT: usize = 4;

/// Returns positive numbers below 1, at which all functions are defined and differentiable.
fn points(leaf: usize) -> [f64; COUNT] {
    [[0.15, 0.4, 0.62, 0.85], [0.31, 0.71, 0.23, 0.93], [0.55, 0.17, 0.81, 0.36], [0.44, 0.29, 0.66, 0.58]][leaf]
}

const WEIGHTS: [f64; COUNT] = [1.0, -2.0, 0.5, 3.0];

fn weighed(
    apply: impl FnOnce(&mut TensorGraph, &[TensorNodeId]) -> Option<TensorNodeId>,
    scalars: &[Scalar],
) -> Option<Weighed> {
    let mut graph = TensorGraph::standard();
    let leaf = |scalar: &Scalar| graph.leaf("", *scalar, &[COUNT]).expect("a leaf");
    let leaves: Vec<TensorNodeId> = scalars.iter().map(leaf).collect();
    let weights = graph.constant_tensor(&f64s(&[COUNT], &WEIGHTS)).expect("a constant");
    let made = apply(&mut graph, &leaves)?;
    if graph.node(made).scalar != Scalar::Float64 || graph.extents(made).len() != 1 {
        return None;
    }
    let product = graph.apply("math.multiply", &[made, weights]).expect("a product");
    let sum = graph.reduce(Reduction::Sum, product, &[0]).expect("a sum");
    let floats = leaves.into_iter().zip(scalars).filter(|(_, scalar)| **scalar == Scalar::Float64);
    Some(Weighed { graph, made, sum, floats: floats.map(|(leaf, _)| leaf).collect() })
}

fn given(scalars: &[Scalar], moved: Option<(usize, usize, f64)>) -> Vec<Tensor> {
    let tensor = |(leaf, scalar): (usize, &Scalar)| {
        let mut points = points(leaf);
        if let Some((_, at, by)) = moved.filter(|(moved, _, _)| *moved == leaf) {
            points[at] += by;
        }
        match scalar {
            Scalar::Boolean => Tensor::new(&[COUNT], vec![true, false, false, true]).expect("a tensor"),
            _ => f64s(&[COUNT], &points),
        }
    };
    scalars.iter().enumerate().map(tensor).collect()
}

/// Compares the derivatives of the weighted sum, by the reference and by plans, with finite differences.
fn check(name: &str, mut of: Weighed, scalars: &[Scalar]) {
    let gradients = of.graph.gradients(of.sum, &of.floats.clone()).unwrap_or_else(|error| panic!("{name}: {error}"));
    let inputs = given(scalars, None);
    let executor = compiled(&of.graph, &gradients);
    let reference = executor.run_reference(&inputs).expect("gradients");
    let mut session = executor.session();
    let planned = session.run_tensors(&inputs).expect("gradients");
    let values = compiled(&of.graph, &[of.made]);
    let at = |moved| {
        let made = values.run_reference(&given(scalars, Some(moved))).expect("values");
        floats(&made[0]).iter().zip(WEIGHTS).map(|(made, weight)| made * weight).sum::<f64>()
    };
    let leaves = (0..scalars.len()).filter(|leaf| scalars[*leaf] == Scalar::Float64);
    for ((leaf, reference), planned) in leaves.zip(&reference).zip(planned) {
        assert!(same_bits(reference, planned), "{name}: {reference:?}, {planned:?}");
        for (element, derivative) in floats(reference).into_iter().enumerate() {
            const STEP: f64 = 1e-6;
            let difference = (at((leaf, element, STEP)) - at((leaf, element, -STEP))) / (2.0 * STEP);
            let scale = 1.0 + difference.abs();
            assert!(
                (difference - derivative).abs() < 1e-7 * scale,
                "{name}, operand {leaf}, element {element}: {derivative}, and differences say {difference}"
            );
        }
    }
}

#[test]
fn every_operator_on_floats_has_a_derivative_or_is_known_to_have_none() {
    let (mut without, mut count) = (Vec::new(), 0);
    for (op, def) in TensorGraph::standard().registry().iter() {
        let forms = (1..=4).flat_map(|arity| {
            let all = vec![Scalar::Float64; arity];
            let mut with_condition = all.clone();
            with_condition[0] = Scalar::Boolean;
            [all, with_condition]
        });
        for scalars in forms.filter(|scalars| scalars.contains(&Scalar::Float64)) {
            let Some(of) = weighed(|g, leaves| g.map(op, leaves).ok(), &scalars) else { continue };
            if def.derivative.is_none() {
                let error = of.graph.clone().gradients(of.sum, &of.floats).expect_err(def.name);
                assert_eq!(error.tensor_kind(), Some(TensorErrorKind::NotDifferentiable));
                without.push(def.name);
                continue;
            }
            check(def.name, of, &scalars);
            count += 1;
        }
    }
    // Their densities are of functions that there are no operators for.
    assert_eq!(without, ["math.t_distribution_inverse_cdf", "math.beta_distribution_inverse_cdf"]);
    assert!(count > 50, "{count}");
}

#[test]
fn derivatives_are_those_of_differences_away_from_ones_too() {
    // Operands of other signs and sizes than the test above has, and operators with literals.
    for (name, scale, shift) in [
        ("math.mod", -7.0, 0.5),
        ("math.mod", 5.0, -2.25),
        ("math.fmod", -7.0, 0.5),
        ("math.fmod", 5.0, -2.25),
        ("math.floordiv", -7.0, 0.5),
        ("math.remainder", -7.0, 0.5),
        ("math.remainder", 5.0, -2.25),
        ("math.floor_divide", -7.0, 0.5),
        ("math.symlog1p", -7.0, 0.5),
        ("core.presence_or", -7.0, 0.5),
    ] {
        let scalars = [Scalar::Float64; 2];
        let apply = |g: &mut TensorGraph, leaves: &[TensorNodeId]| {
            let mut operands = leaves.to_vec();
            for (at, [times, plus]) in [[scale, shift], [shift, scale]].into_iter().enumerate() {
                let [times, plus] =
                    [times, plus].map(|number| g.constant(Scalar::Float64, number).expect("a constant"));
                let product = g.apply("math.multiply", &[leaves[at], times]).expect("a product");
                operands[at] = g.apply("math.add", &[product, plus]).expect("a sum");
            }
            let op = g.registry().find(name).expect("an operator");
            operands.truncate(g.registry().get(op).params.len());
            g.map(op, &operands).ok()
        };
        check(name, weighed(apply, &scalars).expect("a graph"), &scalars);
    }
    let rounded = |g: &mut TensorGraph, leaves: &[TensorNodeId]| {
        let digits = g.constant(Scalar::Int32, 0.0).expect("a constant");
        let rounded = g.apply("round", &[leaves[0], digits]).expect("a node");
        g.apply("math.multiply", &[rounded, leaves[1]]).ok()
    };
    check("round", weighed(rounded, &[Scalar::Float64; 2]).expect("a graph"), &[Scalar::Float64; 2]);
}

#[test]
fn remainders_and_what_is_never_missing_are_differentiated_in_texts() {
    let text = "input x: tensor[f64, 1], s: tensor[f32, 1], by: f64
        output of_x = tensor.grad(tensor.sum(x % by), x)
        output of_by = tensor.grad(tensor.sum(x % by), by)
        output of_fmod = tensor.grad(tensor.sum(fmod(x, by)), by)
        output of_floordiv = tensor.grad(tensor.sum(x * (x // by)), x)
        output of_or = tensor.grad(tensor.sum((x ?? 0.0) * x), x)
        output of_first = tensor.grad(tensor.sum(coalesce(s, x)), s)
        output of_logit = tensor.grad(tensor.sum(logit(s)), s)";
    let given = tensors([
        ("x", f64s(&[4], &[5.5, -5.5, 0.3, 7.25])),
        ("s", Tensor::new(&[4], vec![0.5_f32, 0.25, 0.75, 0.5]).expect("a tensor")),
        ("by", Tensor::scalar(2.0)),
    ]);
    let made = evaluated(text, &given);
    assert_eq!(floats(&made[0]), [1.0; 4]);
    // The quotients, rounded down: 2, -3, 0 and 3; or to zero.
    assert_eq!((floats(&made[1]), floats(&made[2])), (vec![-2.0], vec![-3.0]));
    assert_eq!(floats(&made[3]), [2.0, -3.0, 0.0, 3.0]);
    assert_eq!(floats(&made[4]), [11.0, -11.0, 0.6, 14.5]);
    assert_eq!(made[5].to_vec::<f32>().expect("floats"), [1.0; 4]);
    assert_eq!(made[6].to_vec::<f32>().expect("floats"), [4.0, 16.0 / 3.0, 16.0 / 3.0, 4.0]);
    // A tenth is a little more than that, so it is in 1 nine times, though 1 divided by it is rounded to 10: then `mod` leaves nothing.
    let text = "input x: tensor[f64, 1], by: f64
        output left = fmod(x, by)
        output exact = tensor.grad(tensor.sum(fmod(x, by)), by)
        output remainder = tensor.grad(tensor.sum(x % by), by)
        output rounded = tensor.grad(tensor.sum(mod(x, by)), by)";
    let made = evaluated(text, &tensors([("x", f64s(&[1], &[1.0])), ("by", Tensor::scalar(0.1))]));
    assert!(floats(&made[0])[0] > 0.09);
    assert_eq!([1, 2, 3].map(|at| floats(&made[at])), [vec![-9.0], vec![-9.0], vec![-10.0]]);
    // Nothing else is like it: an operator without a derivative says so.
    let text = "input x: tensor[f64, 1]; output y = tensor.grad(tensor.sum(t_distribution_inverse_cdf(x, 3.0)), x)";
    let (code, message, _) = refused(text);
    assert_eq!((code, message.starts_with("math.t_distribution_inverse_cdf has no derivative")), ("derivative", true));
}

#[test]
fn a_definition_that_nothing_needs_is_read_as_in_a_model_without_tensors() {
    // What nobody uses is a warning, whatever is wrong with its types.
    for (inputs, unused) in
        [("x: f64", "x + \"a\""), ("x: tensor[f64, 1]", "x + \"a\""), ("x: tensor[f64, 1]", "tensor.sum(x, 7)")]
    {
        let model = Model::parse(&format!("input {inputs}; let t = {unused}; output y = x")).expect("a model");
        let (signature, warnings) = model.check(&Options::default());
        assert!(signature.is_ok(), "{unused}");
        let warnings: Vec<&str> = warnings.as_slice().iter().map(|warning| warning.message()).collect();
        assert_eq!(warnings, ["`t` is never used"]);
    }
    assert!(try_compiled("input x: tensor[f64, 1]; let t(\"i\") = x(\"i\"; output y = x").is_err());
    let given = tensors([("x", counted(&[3], 1))]);
    let made = evaluated("input x: tensor[f64, 1]; let t(\"i\") = x(\"i,j\"); output y = x + 1.0", &given);
    assert_eq!(floats(&made[0]), floats(&given["x"]).iter().map(|x| x + 1.0).collect::<Vec<f64>>());
}
