//! How long it takes to find an order for a product of many factors, and to plan it: `cargo run --release --manifest-path benches/Cargo.toml --example orders`.

#![expect(clippy::print_stdout, reason = "it prints what it measures")]

use cembra::tensor::{Labels, TensorGraph};
use cembra::{Options, Scalar};
use cembra_engine::Evaluator;
use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The extents of labels.
const EXTENTS: [usize; 5] = [2, 7, 3, 11, 5];

/// The factors of a product by the labels of each, and what its result has.
type Product = (&'static str, Vec<Vec<u8>>, Vec<u8>);

fn products() -> Vec<Product> {
    let chain = |count: u8| (0..count).map(|at| vec![at, at + 1]).collect::<Vec<_>>();
    let ring = |count: u8| (0..count).map(|at| vec![at, (at + 1) % count]).collect();
    // Each factor has labels in common with those at four distances.
    let knot =
        |count: u8| (0..count).map(|at| [0, 1, 5, 11].map(|distance| (at + distance) % count).to_vec()).collect();
    vec![
        ("chain of 8", chain(8), vec![0, 8]),
        ("chain of 30", chain(30), vec![0, 30]),
        ("ring of 30", ring(30), vec![]),
        ("knot of 30", knot(30), vec![]),
        ("chain of 128", chain(128), vec![0, 128]),
        ("knot of 128", knot(128), vec![]),
        ("chain of 250", chain(250), vec![0, 250]),
        ("1,024 vectors of one label", vec![vec![0]; 1024], vec![]),
    ]
}

/// The shortest of some runs.
fn shortest(mut run: impl FnMut()) -> Duration {
    let begin = Instant::now();
    let mut shortest = Duration::MAX;
    let mut rounds = 0;
    while rounds < 5 || begin.elapsed() < Duration::from_millis(300) {
        let begin = Instant::now();
        run();
        shortest = begin.elapsed().min(shortest);
        rounds += 1;
    }
    shortest
}

fn main() -> Result<(), Box<dyn Error>> {
    println!("| product | order | plan |\n|---|---|---|");
    for (name, factors, output) in products() {
        let mut graph = TensorGraph::standard();
        let mut leaves = Vec::new();
        for own in &factors {
            let extents: Vec<usize> = own.iter().map(|label| EXTENTS[usize::from(*label) % EXTENTS.len()]).collect();
            leaves.push(graph.leaf("", Scalar::Float64, &extents)?);
        }
        let operands = factors.iter().map(|own| own.as_slice().into()).collect();
        let product = graph.contract(Labels { operands, output: output.as_slice().into() }, &leaves)?;
        let order = shortest(|| {
            std::hint::black_box(graph.clone().ordered(product)).ok();
        });
        let evaluator = Arc::new(Evaluator::new(&Options::default()));
        let plan = shortest(|| {
            std::hint::black_box(evaluator.plan(&graph, &[product])).ok();
        });
        println!("| {name} | {:.3} ms | {:.3} ms |", order.as_secs_f64() * 1e3, plan.as_secs_f64() * 1e3);
    }
    Ok(())
}
