//! How long plans of tensors take on one thread and on two: `cargo run --release --manifest-path benches/Cargo.toml --example threads`. The shortest of many
//! runs, so that what else the machine does counts little.

#![expect(clippy::print_stdout, reason = "it prints what it measures")]

use cembra::tensor::{CompileGraph, Reduction, Slice, TensorGraph, TensorNodeId, same_bits};
use cembra::{Options, Scalar, Tensor};
use std::error::Error;
use std::time::{Duration, Instant};

/// How long each case is run on each number of threads.
const TIME: Duration = Duration::from_millis(1500);

/// The elements of what is summed and mapped.
const MANY: usize = 10_000_000;

/// What is measured: a graph, its outputs and inputs, and whether the first output is written over the first input.
struct Case {
    name: &'static str,
    graph: TensorGraph,
    outputs: Vec<TensorNodeId>,
    inputs: Vec<Tensor>,
    is_in_place: bool,
}

fn numbers(scalar: Scalar, extents: &[usize]) -> Result<Tensor, cembra::Error> {
    let number = |at: usize| (at * 7919 % 1009) as f64 / 1009.0 - 0.5;
    let all = 0..extents.iter().product();
    match scalar {
        Scalar::Float32 => Tensor::new(extents, all.map(|at| number(at) as f32).collect()),
        _ => Tensor::new(extents, all.map(number).collect()),
    }
}

fn product(name: &'static str, scalar: Scalar, labels: &str, extents: [&[usize]; 2]) -> Result<Case, Box<dyn Error>> {
    let mut graph = TensorGraph::standard();
    let factors = [graph.leaf("a", scalar, extents[0])?, graph.leaf("b", scalar, extents[1])?];
    let outputs = vec![graph.einsum(labels, &factors)?];
    let inputs = vec![numbers(scalar, extents[0])?, numbers(scalar, extents[1])?];
    Ok(Case { name, graph, outputs, inputs, is_in_place: false })
}

/// Something of one tensor of so many elements.
fn elementwise(
    name: &'static str,
    scalar: Scalar,
    is_in_place: bool,
    make: impl FnOnce(&mut TensorGraph, TensorNodeId) -> Result<Vec<TensorNodeId>, cembra::Error>,
) -> Result<Case, Box<dyn Error>> {
    let mut graph = TensorGraph::standard();
    let x = graph.leaf("x", scalar, &[MANY])?;
    let outputs = make(&mut graph, x)?;
    Ok(Case { name, graph, outputs, inputs: vec![numbers(scalar, &[MANY])?], is_in_place })
}

/// The product of a vector that is read from its end, and another one.
fn reversed(name: &'static str, scalar: Scalar) -> Result<Case, Box<dyn Error>> {
    let mut graph = TensorGraph::standard();
    let [a, b] = [graph.leaf("a", scalar, &[MANY])?, graph.leaf("b", scalar, &[MANY])?];
    let backwards = graph.slice(a, &[Slice { start: MANY - 1, step: -1, count: MANY }])?;
    let outputs = vec![graph.einsum("i,i->", &[backwards, b])?];
    Ok(Case {
        name,
        graph,
        outputs,
        inputs: vec![numbers(scalar, &[MANY])?, numbers(scalar, &[MANY])?],
        is_in_place: false,
    })
}

/// The sum of all elements of a matrix that lies the other way round.
fn transposed(name: &'static str, scalar: Scalar) -> Result<Case, Box<dyn Error>> {
    let mut graph = TensorGraph::standard();
    let x = graph.leaf("x", scalar, &[3000, 3000])?;
    let turned = graph.transpose(x, &[1, 0])?;
    let outputs = vec![graph.reduce(Reduction::Sum, turned, &[0, 1])?];
    Ok(Case { name, graph, outputs, inputs: vec![numbers(scalar, &[3000, 3000])?], is_in_place: false })
}

fn cases() -> Result<Vec<Case>, Box<dyn Error>> {
    use Scalar::{Float32, Float64};
    let square = |name, scalar, extent: usize| product(name, scalar, "ij,jk->ik", [&[extent; 2], &[extent; 2]]);
    let cubes = |name, right: &[usize]| product(name, Float32, name, [&[128; 3], right]);
    let double = |graph: &mut TensorGraph, x: TensorNodeId| {
        let (two, one) = (graph.constant(Float32, 2.0)?, graph.constant(Float32, 1.0)?);
        let twice = graph.apply("math.multiply", &[x, two])?;
        Ok(vec![graph.apply("math.add", &[twice, one])?])
    };
    Ok(vec![
        square("product 64 f32", Float32, 64)?,
        square("product 64 f64", Float64, 64)?,
        square("product 512 f32", Float32, 512)?,
        square("product 512 f64", Float64, 512)?,
        square("product 1024 f32", Float32, 1024)?,
        square("product 1024 f64", Float64, 1024)?,
        cubes("ijk,kl->ijl", &[128; 2])?,
        cubes("ijk,jl->lik", &[128; 2])?,
        cubes("bij,bjk->bik", &[128; 3])?,
        cubes("ijk,ikl->jil", &[128; 3])?,
        product("ij,j->i f64", Float64, "ij,j->i", [&[3000, 3000], &[3000]])?,
        product("ij,j->i f32", Float32, "ij,j->i", [&[3000, 3000], &[3000]])?,
        product("ij,i->j f64", Float64, "ij,i->j", [&[300, 30_000], &[300]])?,
        product("ij,i->j f32", Float32, "ij,i->j", [&[300, 30_000], &[300]])?,
        product("ij,ij->ij f32", Float32, "ij,ij->ij", [&[3000, 3000], &[3000, 3000]])?,
        product("ij,ji->ij f32", Float32, "ij,ji->ij", [&[3000, 3000], &[3000, 3000]])?,
        product("ij,ij-> f32", Float32, "ij,ij->", [&[3000, 3000], &[3000, 3000]])?,
        product("ij,ji-> f32", Float32, "ij,ji->", [&[3000, 3000], &[3000, 3000]])?,
        product("ij,ij->i f32", Float32, "ij,ij->i", [&[3000, 3000], &[3000, 3000]])?,
        product("ij,ji->i f32", Float32, "ij,ji->i", [&[3000, 3000], &[3000, 3000]])?,
        product("i,i-> f32", Float32, "i,i->", [&[MANY], &[MANY]])?,
        reversed("i,i-> reversed f32", Float32)?,
        transposed("sum transposed f32", Float32)?,
        transposed("sum transposed f64", Float64)?,
        elementwise("sum f32", Float32, false, |graph, x| Ok(vec![graph.reduce(Reduction::Sum, x, &[0])?]))?,
        elementwise("largest f64", Float64, false, |graph, x| Ok(vec![graph.reduce(Reduction::Max, x, &[0])?]))?,
        elementwise("sum of squares f64", Float64, false, |graph, x| {
            let square = graph.apply("math.multiply", &[x, x])?;
            Ok(vec![graph.reduce(Reduction::Sum, square, &[0])?])
        })?,
        elementwise("sum and sum of squares f32", Float32, false, |graph, x| {
            let square = graph.apply("math.multiply", &[x, x])?;
            Ok(vec![graph.reduce(Reduction::Sum, x, &[0])?, graph.reduce(Reduction::Sum, square, &[0])?])
        })?,
        elementwise("x * 2 + 1 f32", Float32, false, double)?,
        elementwise("x * 2 + 1 in place f32", Float32, true, double)?,
    ])
}

/// The shortest of some runs.
fn shortest(mut run: impl FnMut() -> Result<(), Box<dyn Error>>) -> Result<f64, Box<dyn Error>> {
    let begin = Instant::now();
    let mut shortest = Duration::MAX;
    while begin.elapsed() < TIME {
        let begin = Instant::now();
        run()?;
        shortest = shortest.min(begin.elapsed());
    }
    Ok(shortest.as_secs_f64() * 1e6)
}

fn main() -> Result<(), Box<dyn Error>> {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    println!("{:<30} {:>12} {:>12}", "microseconds", "1 thread", "2 threads");
    for case in cases()? {
        let Case { name, graph, outputs, inputs, is_in_place } = &case;
        if !wanted.is_empty() && !wanted.iter().any(|wanted| name.contains(&**wanted)) {
            continue;
        }
        let mut times = Vec::new();
        let mut made: Vec<Vec<Tensor>> = Vec::new();
        for threads in [1, 2] {
            let mut session = graph.compile(outputs, &Options::default())?.session();
            session.set_threads(threads);
            times.push(if *is_in_place {
                let mut inputs: Vec<Tensor> = vec![numbers(Scalar::Float32, &[MANY])?];
                shortest(|| session.run_over(&mut inputs, 0).map(|_| ()).map_err(Box::from))?
            } else {
                made.push(session.run_tensors(inputs)?.to_vec());
                shortest(|| session.run_tensors(inputs).map(|_| ()).map_err(Box::from))?
            });
        }
        let is_same = made.windows(2).all(|pair| pair[0].iter().zip(&pair[1]).all(|(a, b)| same_bits(a, b)));
        println!("{name:<30} {:>12.1} {:>12.1} {}", times[0], times[1], if is_same { "" } else { "OTHER BITS" });
    }
    Ok(())
}
