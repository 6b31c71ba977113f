//! Operators on elements: the derivatives of all of them, held against differences.

use super::{evaluated, f64s, refused, tensors};
use cembra::tensor::{ErrorKind, Evaluator, Graph, NodeId, Reduction, Tensor, same_bits};
use cembra::{Options, Scalar};

fn floats(tensor: &Tensor) -> Vec<f64> {
    tensor.to_vec::<f64>().expect("floats")
}

/// A graph that weighs the elements of what an operator makes of leaves, the leaves that are floats, and the sum.
struct Weighed {
    graph: Graph,
    made: NodeId,
    sum: NodeId,
    floats: Vec<NodeId>,
}

const COUNT: usize = 4;

/// Positive numbers below 1, which all functions have in their domains, and where none of them has a kink.
fn points(leaf: usize) -> [f64; COUNT] {
    [[0.15, 0.4, 0.62, 0.85], [0.31, 0.71, 0.23, 0.93], [0.55, 0.17, 0.81, 0.36], [0.44, 0.29, 0.66, 0.58]][leaf]
}

const WEIGHTS: [f64; COUNT] = [1.0, -2.0, 0.5, 3.0];

fn weighed(apply: impl FnOnce(&mut Graph, &[NodeId]) -> Option<NodeId>, scalars: &[Scalar]) -> Option<Weighed> {
    let mut graph = Graph::standard();
    let leaf = |scalar: &Scalar| graph.leaf("", *scalar, &[COUNT]).expect("a leaf");
    let leaves: Vec<NodeId> = scalars.iter().map(leaf).collect();
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

/// Holds the derivatives of what is weighed, by the reference and by plans, against differences.
fn check(name: &str, mut of: Weighed, scalars: &[Scalar], evaluator: &Evaluator) {
    let gradients = of.graph.gradients(of.sum, &of.floats.clone()).unwrap_or_else(|error| panic!("{name}: {error}"));
    let inputs = given(scalars, None);
    let reference = evaluator.evaluate(&of.graph, &gradients, &inputs).expect("gradients");
    let planned = evaluator.plan(&of.graph, &gradients).and_then(|plan| plan.run(&inputs)).expect("gradients");
    let at = |moved| {
        let made = evaluator.evaluate(&of.graph, &[of.made], &given(scalars, Some(moved))).expect("values");
        floats(&made[0]).iter().zip(WEIGHTS).map(|(made, weight)| made * weight).sum::<f64>()
    };
    let leaves = (0..scalars.len()).filter(|leaf| scalars[*leaf] == Scalar::Float64);
    for ((leaf, reference), planned) in leaves.zip(&reference).zip(&planned) {
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
    let evaluator = Evaluator::new(&Options::default());
    let (mut without, mut count) = (Vec::new(), 0);
    for (op, def) in Graph::standard().registry().iter() {
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
                assert_eq!(error.kind(), ErrorKind::NotDifferentiable);
                without.push(def.name);
                continue;
            }
            check(def.name, of, &scalars, &evaluator);
            count += 1;
        }
    }
    // Their densities are of functions that there are no operators for.
    assert_eq!(without, ["math.t_distribution_inverse_cdf", "math.beta_distribution_inverse_cdf"]);
    assert!(count > 50, "{count}");
}

#[test]
fn derivatives_are_those_of_differences_away_from_ones_too() {
    let evaluator = Evaluator::new(&Options::default());
    // Operands of other signs and sizes than the test above has.
    for (name, scale, shift) in [
        ("math.mod", -7.0, 0.5),
        ("math.mod", 5.0, -2.25),
        ("math.fmod", -7.0, 0.5),
        ("math.fmod", 5.0, -2.25),
        ("math.floordiv", -7.0, 0.5),
        ("math.symlog1p", -7.0, 0.5),
        ("core.presence_or", -7.0, 0.5),
    ] {
        let scalars = [Scalar::Float64; 2];
        let apply = |g: &mut Graph, leaves: &[NodeId]| {
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
        check(name, weighed(apply, &scalars).expect("a graph"), &scalars, &evaluator);
    }
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
    // A remainder whose quotient is rounded to the next whole number has the quotient below.
    let text = "input x: tensor[f64, 1], by: f64; output y = tensor.grad(tensor.sum(fmod(x, by)), by)";
    let given = tensors([("x", f64s(&[1], &[0.3 - f64::EPSILON / 8.0])), ("by", Tensor::scalar(0.1))]);
    assert_eq!(floats(&evaluated(text, &given)[0]), [-2.0]);
    // Nothing else is like it: an operator without a derivative says so.
    let text = "input x: tensor[f64, 1]; output y = tensor.grad(tensor.sum(t_distribution_inverse_cdf(x, 3.0)), x)";
    let (code, message, _) = refused(text);
    assert_eq!((code, message.starts_with("math.t_distribution_inverse_cdf has no derivative")), ("derivative", true));
}
