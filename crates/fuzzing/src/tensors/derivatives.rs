//! Checks derivatives of random smooth graphs: gradients, tangents and central differences along one direction must agree. Values are moderate, so
//! that central differences are accurate. If central differences with two step sizes disagree, the graph is skipped.

use super::Finding;
use super::graphs::{Case, Growth, NodeResult};
use super::judge::{Judge, shown};
use crate::config::pick;
use cembra::Error;
use cembra::Scalar;
use cembra::tensor::{Reduction, Tensor, TensorGraph, TensorNodeId, same_bits};
use fastrand::Rng;

/// Differentiates a random graph and checks the derivatives. Returns the broken law, if there is one. If central differences with two step sizes
/// disagree, the graph's function is too steep to check; the report counts the graph as rough.
pub(super) fn check(random: &mut Rng, judge: &mut Judge) -> Result<Option<Finding>, Error> {
    let count = random.usize(1..=3);
    let mut growth = Growth::of_floats(random, count)?;
    let leaves: Vec<TensorNodeId> = growth.pool.clone();
    for _ in 0..growth.random.u32(2..=7) {
        let Ok(made) = node(&mut growth) else { continue };
        // Sums of many terms are mapped back to a range where functions are moderate.
        let made = if growth.random.bool() { made } else { growth.graph.apply("tanh", &[made])? };
        growth.add(made);
    }
    let last = growth.pool[growth.pool.len() - 1];
    let number = scalar(&mut growth, last)?;
    // The result depends on every leaf.
    let mut sum = number;
    for leaf in &leaves {
        let wave = growth.graph.apply("sin", &[*leaf])?;
        let effect = scalar(&mut growth, wave)?;
        sum = growth.graph.apply("math.add", &[sum, effect])?;
    }
    let Growth { random, mut graph, mut inputs, pool, .. } = growth;
    let gradients = graph.gradients(sum, &leaves)?;
    let named: Vec<TensorNodeId> = pool.into_iter().filter(|_| random.bool()).collect();
    let again = graph.gradients_with(sum, &leaves, &named)?;
    let [kept, again] = [&gradients, &again].map(|nodes| judge.native.evaluate(&graph, nodes, &inputs));
    let is_same = kept.and_then(|kept| Ok(kept.iter().zip(&again?).all(|(a, b)| same_bits(a, b))))?;
    if !is_same {
        let case = Case { graph, inputs, outputs: gradients };
        let what = format!("computing {named:?} again changes a gradient");
        return Ok(Some(shown(&case, &what, |_| false)));
    }
    // Direction leaves follow the others: one per leaf that the graph is differentiated by.
    let (mut directions, mut along) = (Vec::new(), Vec::new());
    for leaf in &leaves {
        let extents = graph.extents(*leaf).to_vec();
        directions.push(graph.leaf("", Scalar::Float64, &extents)?);
        let count = extents.iter().product();
        along.push(Tensor::new(&extents, (0..count).map(|_| random.f64() * 2.0 - 1.0).collect())?);
    }
    let tangent = graph.tangents(&[sum], &leaves, &directions)?[0];
    let mut product = None;
    let mut size = graph.constant(Scalar::Float64, 0.0)?;
    for (gradient, direction) in gradients.iter().zip(&directions) {
        let terms = graph.apply("math.multiply", &[*gradient, *direction])?;
        let total = total(&mut graph, terms)?;
        let sizes = graph.apply("math.abs", &[terms])?;
        let sizes = self::total(&mut graph, sizes)?;
        size = graph.apply("math.add", &[size, sizes])?;
        product = Some(match product {
            Some(before) => graph.apply("math.add", &[before, total])?,
            None => total,
        });
    }
    let product = product.unwrap_or(sum);
    let plain = inputs.clone();
    inputs.extend(along.iter().cloned());
    let case = Case { graph, inputs, outputs: [vec![product, tangent], gradients].concat() };
    if let Some(finding) = judge.judge(&case) {
        return Ok(Some(finding));
    }
    let numbers = judge.native.evaluate(&case.graph, &[sum, product, tangent, size], &case.inputs)?;
    let numbers: Vec<f64> = numbers.iter().map(|number| number.get::<f64>(&[])).collect::<Result<_, Error>>()?;
    let [value, product, tangent, size] = numbers[..] else { return Ok(None) };
    let scale = 1.0 + value.abs() + size;
    if !scale.is_finite() || scale > 1e6 {
        judge.report.rough += 1;
        return Ok(None);
    }
    let wrong = |what: String| Ok(Some(shown(&case, &what, |node| node == sum)));
    if (product - tangent).abs() > 1e-10 * scale || (product - tangent).is_nan() {
        return wrong(format!("the gradient says {product}, the tangent {tangent}"));
    }
    let at = |step: f64| -> Result<f64, Error> {
        let mut moved = Vec::with_capacity(case.inputs.len());
        let mut along = along.iter();
        for (at, input) in plain.iter().enumerate() {
            let is_leaf = case.graph.leaves().get(at).is_some_and(|leaf| leaves.contains(&leaf.node));
            // Each leaf that the graph is differentiated by has one direction, in the order of these leaves.
            moved.push(match is_leaf.then(|| along.next()).flatten() {
                Some(direction) => {
                    let (x, v) = (input.to_vec::<f64>()?, direction.to_vec::<f64>()?);
                    let x = x.iter().zip(v).map(|(x, v)| x + step * v).collect();
                    Tensor::new(input.extents(), x)?
                }
                None => input.clone(),
            });
        }
        moved.extend(case.inputs[plain.len()..].iter().cloned());
        judge.native.evaluate(&case.graph, &[sum], &moved)?[0].get::<f64>(&[])
    };
    let difference = |step: f64| -> Result<f64, Error> { Ok((at(step)? - at(-step)?) / (2.0 * step)) };
    let (wide, near) = (difference(2e-5)?, difference(1e-5)?);
    if (wide - near).abs() > 1e-7 * scale || (wide - near).is_nan() {
        judge.report.rough += 1;
        return Ok(None);
    }
    if (product - near).abs() > 1e-6 * scale {
        return wrong(format!("the gradient says {product}, differences {near}"));
    }
    judge.report.derivatives += 1;
    Ok(None)
}

/// Returns the sum of all elements.
fn total(graph: &mut TensorGraph, x: TensorNodeId) -> NodeResult {
    let axes: Vec<usize> = (0..graph.extents(x).len()).collect();
    graph.reduce(Reduction::Sum, x, &axes)
}

/// Returns a number computed from all elements: their sum or their mean.
fn scalar(growth: &mut Growth<'_>, x: TensorNodeId) -> NodeResult {
    let axes: Vec<usize> = (0..growth.graph.extents(x).len()).collect();
    if growth.random.bool() { growth.graph.mean(x, &axes) } else { total(&mut growth.graph, x) }
}

/// Adds a node with a smooth operation.
fn node(growth: &mut Growth<'_>) -> NodeResult {
    const ONE: &[&str] = &[
        "sin",
        "cos",
        "tanh",
        "exp",
        "neg",
        "tensor.square",
        "expm1",
        "erf",
        "erfc",
        "normal_distribution_cdf",
        "atan",
        "log_sigmoid",
        "math.sigmoid",
        "symlog1p",
    ];
    const TWO: &[&str] = &["math.add", "math.subtract", "math.multiply", "math.multiply"];
    let x = growth.any();
    match growth.random.u32(..12) {
        0 | 1 => growth.graph.apply(pick::<&str>(growth.random, ONE), &[x]),
        2 | 3 => {
            let y = growth.any();
            growth.graph.apply(pick::<&str>(growth.random, TWO), &[x, y])
        }
        // Functions that need a positive number get 2 plus a square.
        4 | 5 => {
            let two = growth.graph.constant(Scalar::Float64, 2.0)?;
            let square = growth.graph.apply("tensor.square", &[x])?;
            let positive = growth.graph.apply("math.add", &[square, two])?;
            let y = growth.any();
            match growth.random.u32(..6) {
                0 => growth.graph.apply("math.sqrt", &[positive]),
                1 => growth.graph.apply("log", &[positive]),
                2 => growth.graph.apply("tensor.recip", &[positive]),
                3 => growth.graph.apply("log1p", &[positive]),
                4 => growth.graph.apply("math.pow", &[positive, y]),
                _ => growth.graph.apply("math.divide", &[y, positive]),
            }
        }
        6 | 7 => growth.view(x),
        8 => {
            let axes = growth.axes(growth.graph.extents(x).len());
            let how = if growth.random.u32(..3) == 0 { Reduction::Product } else { Reduction::Sum };
            growth.graph.reduce(how, x, &axes)
        }
        9 | 10 => growth.product(),
        _ => growth.composite(),
    }
}
