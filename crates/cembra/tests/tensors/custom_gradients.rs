//! Tests user-defined gradients, gradients in the library that are defined in the same way, and values that are
//! computed again for gradients. They are compared with finite differences, and with gradients that the library derives
//! itself.

use cembra::Error;
use cembra::tensor::{CompileGraph, Reduction, Tensor, TensorErrorKind, TensorGraph, TensorNodeId, same_bits};
use cembra::{Options, Scalar};
use cembra_engine::Evaluator;
use cembra_tensor::{Operation, Plan, Rewriter};
use std::slice::from_ref;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Returns the evaluator for constants that are folded while a graph is rewritten.
fn evaluator() -> Evaluator {
    Evaluator::new(&Options::default())
}

/// Returns the values of the nodes `outputs` by the reference, and asserts that a plan gives the same bits.
fn values(graph: &TensorGraph, outputs: &[TensorNodeId], inputs: &[Tensor]) -> Vec<Vec<f64>> {
    let executor = graph.compile(outputs, &Options::default().reference_order(true)).expect("a plan");
    let made = executor.run_reference(inputs).expect("values");
    let mut session = executor.session();
    let planned = session.run_tensors(inputs).expect("values");
    assert_eq!((made.len(), planned.len()), (outputs.len(), outputs.len()));
    assert!(made.iter().zip(planned).all(|(a, b)| same_bits(a, b)), "{made:?} is not {planned:?}");
    made.iter().map(|value| value.to_vec().expect("floats")).collect()
}

fn numbers(extents: &[usize], seed: usize) -> Tensor {
    let count = extents.iter().product();
    Tensor::new(extents, (0..count).map(|at| ((at * 37 + seed * 11 + 5) as f64).sin()).collect()).expect("a value")
}

/// Compares the gradients of `number` with respect to the leaves `wrt` with central differences.
fn check_differences(graph: &mut TensorGraph, number: TensorNodeId, wrt: &[TensorNodeId], inputs: &[Tensor]) {
    const STEP: f64 = 1e-5;
    let gradients = graph.gradients(number, wrt).expect("gradients");
    let found = values(graph, &gradients, inputs);
    for (leaf, found) in wrt.iter().zip(found) {
        let at = graph.leaves().iter().position(|known| known.node == *leaf).expect("a leaf");
        for (element, found) in found.iter().enumerate() {
            let moved = |step: f64| -> f64 {
                let mut inputs = inputs.to_vec();
                let mut elements = inputs[at].to_vec::<f64>().expect("a value");
                elements[element] += step;
                inputs[at] = Tensor::new(inputs[at].extents(), elements).expect("a value");
                values(graph, &[number], &inputs)[0][0]
            };
            let difference = (moved(STEP) - moved(-STEP)) / (2.0 * STEP);
            assert!((found - difference).abs() < 1e-8, "{found} is not {difference}, element {element} of leaf {at}");
        }
    }
}

fn cross_entropy() -> (TensorGraph, TensorNodeId, [TensorNodeId; 2], [Tensor; 2]) {
    let mut g = TensorGraph::standard();
    let [z, y] = ["z", "y"].map(|name| g.leaf(name, Scalar::Float64, &[4, 3]).expect("a value"));
    let loss = g.softmax_cross_entropy(z, y).expect("a value");
    // Rows of `y` that do not sum up to 1: weights of rows are given so.
    (g, loss, [z, y], [numbers(&[4, 3], 1), numbers(&[4, 3], 2)])
}

#[test]
fn the_gradient_of_the_cross_entropy_is_that_of_differences() {
    let (mut g, loss, wrt, inputs) = cross_entropy();
    check_differences(&mut g, loss, &wrt, &inputs);
    // What it says of distributions, bit for bit.
    let gradient = g.gradients(loss, &wrt).expect("a value")[0];
    let (p, rows) = (g.softmax(wrt[0], 1).expect("a value"), g.constant(Scalar::Float64, 4.0).expect("a value"));
    let difference = g.apply("math.subtract", &[p, wrt[1]]).expect("a value");
    let expected = g.apply("math.divide", &[difference, rows]).expect("a value");
    let one_hot = (0..12).map(|at| f64::from(u8::from(at % 3 == at / 3 % 3))).collect();
    let inputs = [inputs[0].clone(), Tensor::new(&[4, 3], one_hot).expect("a value")];
    let made = values(&g, &[gradient, expected], &inputs);
    assert_eq!(made[0], made[1]);
}

#[test]
fn tangents_and_second_derivatives_go_through_custom_gradients() {
    let (mut g, loss, wrt, inputs) = cross_entropy();
    check_second_derivatives(&mut g, loss, wrt, &inputs);
}

#[test]
fn tangents_and_second_derivatives_go_through_branches_and_products_of_them() {
    let mut g = TensorGraph::standard();
    let wrt = ["x", "w"].map(|name| g.leaf(name, Scalar::Float64, &[3, 3]).expect("a value"));
    let first = g.einsum("ij,jk->ik", &wrt).expect("a product");
    let hidden = g.apply("tensor.relu", &[first]).expect("a node");
    let second = g.einsum("ij,jk->ik", &[hidden, wrt[1]]).expect("a product");
    let (limit, zero) =
        (g.constant(Scalar::Float64, 0.1).expect("one"), g.constant(Scalar::Float64, 0.0).expect("one"));
    let is_above = g.apply("bool.greater", &[second, limit]).expect("a node");
    let square = g.apply("tensor.square", &[second]).expect("a node");
    let chosen = g.apply("tensor.where", &[is_above, square, zero]).expect("a node");
    let loss = g.reduce(Reduction::Sum, chosen, &[0, 1]).expect("a number");
    let inputs = [numbers(&[3, 3], 1), numbers(&[3, 3], 2)];
    check_differences(&mut g, loss, &wrt, &inputs);
    check_second_derivatives(&mut g, loss, wrt, &inputs);
}

/// Compares forward-mode derivatives of `loss`, and of its gradients, with central differences.
fn check_second_derivatives(g: &mut TensorGraph, loss: TensorNodeId, wrt: [TensorNodeId; 2], inputs: &[Tensor]) {
    let extents = wrt.map(|leaf| g.extents(leaf).to_vec());
    let directions = [0, 1].map(|at| g.leaf("", Scalar::Float64, &extents[at]).expect("a value"));
    let gradients = g.gradients(loss, &wrt).expect("a value");
    let along = g.tangents(&[loss], &wrt, &directions).expect("a value")[0];
    let second = g.tangents(&gradients, &wrt, &directions).expect("a value");
    let along_values = [numbers(&extents[0], 3), numbers(&extents[1], 4)];
    let at = |step: f64| -> Vec<Tensor> {
        let moved = inputs.iter().zip(&along_values).map(|(x, v)| {
            let extents = x.extents();
            let (x, v) = (x.to_vec::<f64>().expect("a value"), v.to_vec::<f64>().expect("a value"));
            Tensor::new(extents, x.iter().zip(&v).map(|(x, v)| x + step * v).collect()).expect("a value")
        });
        moved.chain(along_values.iter().cloned()).collect()
    };
    let outputs = [vec![loss], gradients].concat();
    let (above, below) = (values(g, &outputs, &at(1e-5)), values(g, &outputs, &at(-1e-5)));
    let found = values(g, &[vec![along], second].concat(), &at(0.0));
    for ((above, below), found) in above.iter().zip(&below).zip(&found) {
        for ((above, below), found) in above.iter().zip(below).zip(found) {
            let difference = (above - below) / 2e-5;
            assert!((found - difference).abs() < 1e-8, "{found} is not {difference}");
        }
    }
}

/// Returns the sine and cosine of `x` from one operation with a user-defined gradient, in which each uses the other.
/// `asked` counts the uses of the gradient.
fn sine_and_cosine(g: &mut TensorGraph, x: TensorNodeId, asked: &Arc<AtomicUsize>) -> [TensorNodeId; 2] {
    let asked = asked.clone();
    let made = g.custom_vjp(
        "sine_and_cosine",
        &[x],
        |g, x| {
            let both = vec![g.apply("sin", x)?, g.apply("cos", x)?];
            Ok((both.clone(), both))
        },
        move |g, residuals, cotangents| {
            asked.fetch_add(1, Ordering::Relaxed);
            let of_sine = g.apply("math.multiply", &[cotangents[0], residuals[1]])?;
            let of_cosine = g.apply("math.multiply", &[cotangents[1], residuals[0]])?;
            Ok(vec![Some(g.apply("math.subtract", &[of_sine, of_cosine])?)])
        },
    );
    let made = made.expect("two results");
    [made[0], made[1]]
}

#[test]
fn several_results_ask_for_their_gradient_once() {
    let asked = Arc::new(AtomicUsize::new(0));
    let mut g = TensorGraph::standard();
    let x = g.leaf("x", Scalar::Float64, &[3]).unwrap();
    let [sine, cosine] = sine_and_cosine(&mut g, x, &asked);
    assert_eq!(sine_and_cosine(&mut g, x, &asked), [sine, cosine], "equal functions on equal inputs are one");
    let y = g.leaf("y", Scalar::Float64, &[3]).unwrap();
    assert_ne!(sine_and_cosine(&mut g, y, &asked), [sine, cosine]);
    // What uses one result stands between the two uses of the other.
    let square = g.apply("math.multiply", &[cosine, cosine]).unwrap();
    let sum = g.apply("math.add", &[square, sine]).unwrap();
    let product = g.apply("math.multiply", &[sum, cosine]).unwrap();
    let inputs = [numbers(&[3], 0), numbers(&[3], 1)];
    for (node, results) in [(product, "both"), (square, "the second"), (sine, "the first")] {
        let number = g.reduce(Reduction::Sum, node, &[0]).unwrap();
        asked.store(0, Ordering::Relaxed);
        g.gradients(number, &[x]).unwrap();
        assert_eq!(asked.load(Ordering::Relaxed), 1, "{results}");
        check_differences(&mut g, number, &[x], &inputs);
    }
    // Of what it does not depend on it is not asked.
    let number = g.reduce(Reduction::Sum, product, &[0]).unwrap();
    asked.store(0, Ordering::Relaxed);
    let gradient = g.gradients(number, &[y]).unwrap()[0];
    assert_eq!((asked.load(Ordering::Relaxed), values(&g, &[gradient], &inputs)[0].clone()), (0, vec![0.0; 3]));
}

/// Returns `factor * x` and multiples of it, by an operation with a user-defined gradient. The operation has the same
/// name for all factors, and its gradient uses no values of the forward pass.
fn scaled(g: &mut TensorGraph, x: TensorNodeId, factor: f64, results: usize) -> Vec<TensorNodeId> {
    let times = move |g: &mut TensorGraph, x: TensorNodeId, factor: f64| {
        let factor = g.constant(Scalar::Float64, factor)?;
        g.apply("math.multiply", &[factor, x])
    };
    let forward = |g: &mut TensorGraph, x: &[TensorNodeId]| {
        let made = (0..results).map(|result| times(g, x[0], factor * (result + 1) as f64));
        Ok((made.collect::<Result<Vec<TensorNodeId>, Error>>()?, vec![]))
    };
    let backward = move |g: &mut TensorGraph, _: &[TensorNodeId], given: &[TensorNodeId]| {
        let mut sum = g.constant(Scalar::Float64, 0.0)?;
        for (result, given) in given.iter().enumerate() {
            let part = times(g, *given, factor * (result + 1) as f64)?;
            sum = g.apply("math.add", &[sum, part])?;
        }
        Ok(vec![Some(sum)])
    };
    g.custom_vjp("scaled", &[x], forward, backward).expect("results")
}

#[test]
fn functions_of_one_name_are_asked_each_for_its_own() {
    for results in [1, 2] {
        let mut g = TensorGraph::standard();
        let x = g.leaf("x", Scalar::Float64, &[2]).unwrap();
        let twice = scaled(&mut g, x, 2.0, results);
        let thrice = scaled(&mut g, x, 3.0, results);
        // One that begins as the other does, and has more results.
        let more = scaled(&mut g, x, 2.0, 3 - results);
        let all: Vec<TensorNodeId> = [&twice, &thrice, &more].into_iter().flatten().copied().collect();
        let inputs = [numbers(&[2], 0)];
        let mut sum = all[0];
        for node in &all[1..] {
            sum = g.apply("math.add", &[sum, *node]).unwrap();
        }
        for node in all.into_iter().chain([sum]) {
            let number = g.reduce(Reduction::Sum, node, &[0]).unwrap();
            check_differences(&mut g, number, &[x], &inputs);
        }
    }
}

/// Returns `x` rounded, by an operation whose user-defined gradient is that of `x` without rounding.
fn rounded(g: &mut TensorGraph, x: TensorNodeId) -> TensorNodeId {
    let forward = |g: &mut TensorGraph, x: &[TensorNodeId]| Ok((vec![g.apply("tensor.round", x)?], vec![]));
    g.custom_vjp("straight_through", &[x], forward, |_, _, given| Ok(vec![Some(given[0])])).expect("a result")[0]
}

#[test]
fn rewriting_keeps_what_gradient_holds() {
    let mut g = TensorGraph::standard();
    let x = g.leaf("x", Scalar::Float64, &[2]).unwrap();
    let twice = g.apply("math.add", &[x, x]).unwrap();
    let made = rounded(&mut g, twice);
    let square = g.apply("math.multiply", &[made, made]).unwrap();
    let loss = g.reduce(Reduction::Sum, square, &[0]).unwrap();
    let inputs = [Tensor::new(&[2], vec![0.8, -1.1]).unwrap()];
    let gradient = g.gradients(loss, &[x]).unwrap()[0];
    // 2 and -2, rounded: the gradient is twice the rounded number, twice.
    assert_eq!(values(&g, &[gradient], &inputs)[0], [8.0, -8.0]);
    let mut rewritten = Rewriter::default().rewrite(&g, &[loss], &evaluator().host()).unwrap();
    assert!(rewritten.applied.contains_key("add_self_to_2x"));
    let x = rewritten.graph.leaves()[0].node;
    let gradient = rewritten.graph.gradients(rewritten.outputs[0], &[x]).unwrap()[0];
    assert_eq!(values(&rewritten.graph, &[gradient], &inputs)[0], [8.0, -8.0]);
}

#[test]
fn values_cost_what_they_do_without_a_gradient() {
    let mut g = TensorGraph::standard();
    let x = g.leaf("x", Scalar::Float64, &[100]).unwrap();
    let asked = Arc::new(AtomicUsize::new(0));
    let [sine, _] = sine_and_cosine(&mut g, x, &asked);
    let twice = g.apply("math.add", &[sine, sine]).unwrap();
    let sum = g.reduce(Reduction::Sum, twice, &[0]).unwrap();
    let counters = Plan::of(&g, &[sum]).counters();
    assert_eq!((counters.steps, counters.temporaries), (1, 0));
    let needed = g.needed(&[sum]);
    let cosines = g.nodes().filter(|(id, node)| {
        needed[id.index()]
            && matches!(&node.operation, Operation::Map(op) if g.registry().get(op.id()).name.ends_with("cos"))
    });
    assert_eq!(cosines.count(), 0, "residuals are for gradients alone");
    assert_eq!(values(&g, &[sum], &[numbers(&[100], 0)]).len(), 1);
}

#[test]
fn what_is_wrong_with_a_gradient_names_it() {
    let mut g = TensorGraph::standard();
    let [x, y] = [2, 3].map(|extent| g.leaf("", Scalar::Float64, &[extent]).unwrap());
    let refused = |g: &mut TensorGraph, made: Vec<Option<TensorNodeId>>| {
        let node = g.custom_vjp("mine", &[x], |g, x| Ok((vec![g.apply("sin", x)?], vec![])), {
            move |_, _, _| Ok(made.clone())
        });
        let number = g.reduce(Reduction::Sum, node.unwrap()[0], &[0]).unwrap();
        let error: Error = g.gradients(number, &[x]).unwrap_err();
        (error.tensor_kind().expect("of tensors"), error.to_string())
    };
    let (kind, message) = refused(&mut g.clone(), vec![]);
    assert_eq!(
        (kind, &*message),
        (TensorErrorKind::OperandCount, "the gradient of `mine` has 0 cotangents for 1 inputs")
    );
    let (kind, message) = refused(&mut g.clone(), vec![Some(y)]);
    let expected = "the gradient of `mine` gives input 0 a cotangent f64 of [3], not f64 of [2]";
    assert_eq!((kind, &*message), (TensorErrorKind::SizeMismatch, expected));
    let none = g.custom_vjp("none", &[x], |_, _| Ok((vec![], vec![])), |_, _, _| Ok(vec![])).unwrap_err();
    assert_eq!(none.to_string(), "`none` has no result");
    // A gradient that is not linear in what it is given has no forward mode.
    let clipped = g.custom_vjp(
        "clipped",
        &[x],
        |_, x| Ok((vec![x[0]], vec![])),
        |g, _, given| {
            let most = g.constant(Scalar::Float64, 1.0)?;
            Ok(vec![Some(g.apply("tensor.minimum", &[given[0], most])?)])
        },
    );
    let clipped = clipped.unwrap()[0];
    let tangent = g.tangents(&[clipped], &[x], &[x]).unwrap();
    let executor = g.compile(&tangent, &Options::default()).unwrap();
    let error = executor.run_reference(&[numbers(&[2], 0), numbers(&[3], 0)]).unwrap_err();
    assert_eq!(error.to_string(), "a gradient of a custom operator must be linear in the cotangent");
}

#[test]
fn branches_that_are_not_chosen_have_no_cotangent() {
    let mut g = TensorGraph::standard();
    let x = g.leaf("x", Scalar::Float64, &[3]).unwrap();
    let zero = g.constant(Scalar::Float64, 0.0).unwrap();
    let is_positive = g.apply("bool.greater", &[x, zero]).unwrap();
    let root = g.apply("math.sqrt", &[x]).unwrap();
    let plain = g.apply("tensor.where", &[is_positive, root, zero]).unwrap();
    let safe = g.where_safe(is_positive, |g, x| g.apply("math.sqrt", &[x]), x, 1.0, zero).unwrap();
    let inputs = [Tensor::new(&[3], vec![4.0, 0.0, -1.0]).unwrap()];
    let made = values(&g, &[plain, safe], &inputs);
    assert_eq!((&made[0], &made[1]), (&vec![2.0, 0.0, 0.0], &vec![2.0, 0.0, 0.0]));
    let gradients = [plain, safe].map(|node| {
        let number = g.reduce(Reduction::Sum, node, &[0]).unwrap();
        g.gradients(number, &[x]).unwrap()[0]
    });
    let made = values(&g, &gradients, &inputs);
    assert_eq!([&made[0], &made[1]], [&[0.25, 0.0, 0.0]; 2]);
}

/// Returns the number of nodes with the operator `operator` that the outputs need after rewriting.
fn count(graph: &TensorGraph, outputs: &[TensorNodeId], operator: &str) -> usize {
    let made = Rewriter::default().rewrite(graph, outputs, &evaluator().host()).expect("a graph");
    let needed = made.graph.needed(&made.outputs);
    let operators = made.graph.nodes().filter(|(id, _)| needed[id.index()]).filter_map(|(_, node)| {
        let Operation::Map(op) = &node.operation else { return None };
        Some(graph.registry().get(op.id()).name)
    });
    operators.filter(|name| *name == operator).count()
}

#[test]
fn what_is_named_is_computed_again_for_gradients() {
    let mut g = TensorGraph::standard();
    let [x, w] = [[5, 4], [4, 3]].map(|extents| g.leaf("", Scalar::Float64, &extents).unwrap());
    let product = g.einsum("ij,jk->ik", &[x, w]).unwrap();
    let hidden = g.apply("math.tanh", &[product]).unwrap();
    let power = g.apply("math.exp", &[hidden]).unwrap();
    let loss = g.reduce(Reduction::Sum, power, &[0, 1]).unwrap();
    let kept = g.gradients(loss, &[x, w]).unwrap();
    let inputs = [numbers(&[5, 4], 0), numbers(&[4, 3], 1)];
    let expected = values(&g, &kept, &inputs);
    let all = |gradients: &[TensorNodeId]| [&[loss], gradients].concat();
    assert_eq!((count(&g, &all(&kept), "math.exp"), count(&g, &all(&kept), "math.tanh")), (1, 1));
    for (named, powers, tangents) in
        [(vec![power], 2, 1), (vec![power, hidden], 2, 2), (vec![product, hidden, power], 2, 2), (vec![x, loss], 1, 1)]
    {
        let again = g.gradients_with(loss, &[x, w], &named).unwrap();
        assert_eq!(values(&g, &again, &inputs), expected, "{named:?}");
        let counts = (count(&g, &all(&again), "math.exp"), count(&g, &all(&again), "math.tanh"));
        assert_eq!(counts, (powers, tangents), "{named:?}");
    }
    // Naming what has a gradient of its own names its value.
    let asked = Arc::new(AtomicUsize::new(0));
    let mut g = TensorGraph::standard();
    let x = g.leaf("x", Scalar::Float64, &[3]).unwrap();
    let [sine, _] = sine_and_cosine(&mut g, x, &asked);
    let square = g.apply("math.multiply", &[sine, sine]).unwrap();
    let loss = g.reduce(Reduction::Sum, square, &[0]).unwrap();
    let [kept, again] = [&[][..], &[sine]].map(|residuals| g.gradients_with(loss, &[x], residuals).unwrap()[0]);
    let inputs = [numbers(&[3], 0)];
    assert_eq!(values(&g, &[kept], &inputs), values(&g, &[again], &inputs));
    let counts = [kept, again].map(|gradient| count(&g, &[loss, gradient], "math.trig.sin"));
    assert_eq!(counts, [1, 2]);
    // Residuals of a gradient of a user are computed again, too.
    let (mut g, loss, wrt, inputs) = cross_entropy();
    let kept = g.gradients(loss, &wrt).unwrap();
    let p = g.softmax(wrt[0], 1).unwrap();
    let again = g.gradients_with(loss, &wrt, &[p]).unwrap();
    assert_ne!(kept[0], again[0]);
    assert_eq!(values(&g, &kept, &inputs), values(&g, &again, &inputs));
}

#[test]
fn long_chains_are_computed_again_without_a_stack() {
    let mut g = TensorGraph::standard();
    let x = g.leaf("x", Scalar::Float64, &[2]).unwrap();
    let (mut made, mut named) = (x, Vec::new());
    for _ in 0..10_000 {
        made = g.apply("sin", &[made]).unwrap();
        named.push(made);
    }
    let loss = g.reduce(Reduction::Sum, made, &[0]).unwrap();
    let kept = g.gradients(loss, &[x]).unwrap();
    let again = g.gradients_with(loss, &[x], &named).unwrap();
    let inputs = numbers(&[2], 0);
    let executor = g.compile(&[kept[0], again[0]], &Options::default()).unwrap();
    let made = executor.run_reference(from_ref(&inputs)).unwrap();
    assert!(same_bits(&made[0], &made[1]));
}

#[test]
fn barriers_are_opaque_to_rules_and_not_to_gradients() {
    let mut g = TensorGraph::standard();
    let x = g.leaf("x", Scalar::Float64, &[2]).unwrap();
    let negated = g.apply("neg", &[x]).unwrap();
    let [first, second] = [negated, negated].map(|node| g.barrier(node).unwrap());
    assert_ne!(first, second);
    let back = g.apply("neg", &[first]).unwrap();
    assert_eq!(count(&g, &[back], "math.neg"), 2);
    let loss = g.reduce(Reduction::Sum, back, &[0]).unwrap();
    let gradient = g.gradients(loss, &[x]).unwrap()[0];
    assert_eq!(values(&g, &[gradient, back], &[numbers(&[2], 0)])[0], [1.0, 1.0]);
    // In a graph that was rewritten a new barrier is a new one.
    let mut made = Rewriter::default().rewrite(&g, &[first, second], &evaluator().host()).unwrap();
    let of = made.graph.node(made.outputs[0]).operands[0];
    let third = made.graph.barrier(of).unwrap();
    assert!(!made.outputs.contains(&third));
}
