//! Measures plans of products and operations on shapes: nanoseconds per planned product of tiles, and per present tile
//! of a shape, each the shortest of twenty runs. `cargo run --release -p cembra-tiles --example plan [GRID SHARE]`.

#![expect(clippy::print_stdout, reason = "a program that prints what it measures")]

use cembra_runtime::Scalar;
use cembra_tensor::Labels;
use cembra_tiles::{Options, Screening, Shape, SymbolicProduct, Tiling, Tiling1};
use cembra_value::Error;
use std::hint::black_box;
use std::time::Instant;

/// The time in seconds of the fastest of twenty runs.
fn best<R>(mut run: impl FnMut() -> R) -> f64 {
    let time = |run: &mut dyn FnMut() -> R| {
        let start = Instant::now();
        black_box(run());
        start.elapsed().as_secs_f64()
    };
    (0..20).map(|_| time(&mut run)).fold(f64::INFINITY, f64::min)
}

/// Makes the shape of a square grid in which about the fraction `share` of the tiles is present, chosen at random.
fn square(tiles: u64, share: f64, seed: u64) -> Result<Shape, Error> {
    let axis = Tiling1::blocked(tiles * 64, 64)?;
    let mut rng = fastrand::Rng::with_seed(seed);
    let present: Vec<(u64, f64)> =
        (0..tiles * tiles).filter(|_| rng.f64() < share).map(|tile| (tile, 0.5 + seed as f64)).collect();
    Shape::of_norms(&Tiling::new([&axis, &axis])?, present, &Screening::threshold(0.0))
}

fn main() -> Result<(), Error> {
    println!("{:>6} {:>7} {:>10} {:>12} {:>10} {:>10}", "grid", "there", "tiles", "products", "ij,jk->ik", "ji,kj->ik");
    let all = [(100, 1.0), (215, 1.0), (464, 0.1), (1000, 0.1), (1000, 0.03), (2000, 0.01), (4000, 0.004)];
    let given: Vec<f64> = std::env::args().skip(1).filter_map(|argument| argument.parse().ok()).collect();
    let grids = if let [tiles, share] = given[..] { vec![(tiles as u64, share)] } else { all.to_vec() };
    for (tiles, share) in grids {
        let (a, b) = (square(tiles, share, 1)?, square(tiles, share, 2)?);
        let plan = |text: &str| -> Result<(u64, f64), Error> {
            let labels = Labels::parse(text, &[2, 2])?;
            let run = || SymbolicProduct::of(&labels, [&a, &b], None, Scalar::Float64, &Options::default());
            let count = run()?.visited();
            Ok((count, 1e9 * best(run) / count as f64))
        };
        let ((count, straight), (_, turned)) = (plan("ij,jk->ik")?, plan("ji,kj->ik")?);
        println!("{tiles:>6} {share:>7} {:>10} {count:>12} {straight:>10.2} {turned:>10.2}", a.len());
    }
    let (a, b) = (square(1000, 0.1, 1)?, square(1000, 0.1, 2)?);
    let screening = Screening::threshold(1e-10);
    let each = |name: &str, run: &dyn Fn() -> Result<Shape, Error>| {
        println!("{name}: {:.1} ns for each of {} tiles", 1e9 * best(run) / a.len() as f64, a.len());
    };
    each("scaled", &|| a.scaled(2.0, &screening));
    each("added", &|| a.added(&b, &screening));
    each("multiplied", &|| a.multiplied(&b, &screening));
    each("permuted", &|| a.permuted(&[1, 0]));
    Ok(())
}
