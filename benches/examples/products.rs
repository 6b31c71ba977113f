//! How long products of tensors by labels take, beside the library of matrices called for the same numbers of rows, columns and terms.
//! `cargo run --release -p cembra-benches --example products`.

#![expect(clippy::print_stdout, reason = "it prints what it measures")]

use cembra::tensor::{Axes, Element, FaerProduct, Labels, Tensor, contract};
use faer::linalg::matmul::matmul;
use faer::traits::ComplexField;
use faer::{Accum, MatMut, MatRef, Par};
use std::error::Error;
use std::time::{Duration, Instant};

/// A product by labels, all of one extent, and the matrices of the same size: how many products, rows, columns and terms.
type Case = (&'static str, usize, [usize; 4]);

const CASES: &[Case] = &[
    ("ij,jk->ik", 64, [1, 64, 64, 64]),
    ("ij,jk->ik", 512, [1, 512, 512, 512]),
    ("ij,jk->ik", 1024, [1, 1024, 1024, 1024]),
    ("ijk,kl->ijl", 128, [1, 128 * 128, 128, 128]),
    ("ijk,jl->lik", 128, [1, 128 * 128, 128, 128]),
    ("bij,bjk->bik", 128, [128, 128, 128, 128]),
    ("ijk,ikl->jil", 128, [128, 128, 128, 128]),
];

/// The shortest of some runs of each, one after the other.
fn shortest(mut runs: [&mut dyn FnMut(); 2]) -> [Duration; 2] {
    let begin = Instant::now();
    let mut shortest = [Duration::MAX; 2];
    let mut rounds = 0;
    while rounds < 10 || begin.elapsed() < Duration::from_millis(800) {
        for (run, shortest) in runs.iter_mut().zip(&mut shortest) {
            let begin = Instant::now();
            run();
            *shortest = begin.elapsed().min(*shortest);
        }
        rounds += 1;
    }
    shortest
}

fn measure<T: Element + ComplexField>(case: &Case, one: T) -> Result<(), Box<dyn Error>> {
    let (spec, extent, [products, rows, columns, terms]) = *case;
    let (operands, output) = spec.split_once("->").ok_or("no result")?;
    let axes = |text: &str| text.bytes().map(|letter| letter - b'a').collect::<Axes>();
    let labels = Labels { operands: operands.split(',').map(axes).collect(), output: axes(output) };
    let tensor = |own: &Axes| {
        let extents = vec![extent; own.len()];
        let count = extents.iter().product();
        Tensor::new(&extents, vec![one; count])
    };
    let (a, b) = (tensor(&labels.operands[0])?, tensor(&labels.operands[1])?);
    let extents = vec![extent; labels.output.len()];
    let (_, counters) = contract(&labels, [&a, &b], &extents, &FaerProduct)?;
    let mut ours = || {
        std::hint::black_box(contract(&labels, [&a, &b], &extents, &FaerProduct)).ok();
    };
    let (left, right) = (vec![one; products * rows * terms], vec![one; products * terms * columns]);
    let mut limit = || {
        // The result is memory of its own, as ours is.
        let mut to = vec![T::default(); products * rows * columns];
        for product in 0..products {
            let left = &left[product * rows * terms..][..rows * terms];
            let right = &right[product * terms * columns..][..terms * columns];
            let to = &mut to[product * rows * columns..][..rows * columns];
            matmul(
                MatMut::from_row_major_slice_mut(to, rows, columns),
                Accum::Replace,
                MatRef::from_row_major_slice(left, rows, terms),
                MatRef::from_row_major_slice(right, terms, columns),
                one,
                Par::Seq,
            );
        }
        std::hint::black_box(to);
    };
    let [ours, limit] = shortest([&mut ours, &mut limit]);
    let ratio = ours.as_secs_f64() / limit.as_secs_f64();
    println!(
        "{spec:14} {extent:5} {:8} {ours:12.3?} {limit:12.3?} {ratio:6.2}  {} products, {} permutes",
        T::SCALAR.name(),
        counters.gemm_calls,
        counters.permutes
    );
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    for case in CASES {
        measure(case, 1.0_f32)?;
        if case.0 == "ij,jk->ik" {
            measure(case, 1.0_f64)?;
        }
    }
    Ok(())
}
