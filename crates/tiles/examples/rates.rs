//! Measures products of tiled tensors relative to other programs in the same run. A dense product is compared with one
//! product of whole matrices by the same library on as many threads, a sparse product with its products of tiles alone.
//! Each program runs several times, in turn with the others, and its shortest processor time counts. So the result does
//! not show how well several threads are used. `cargo run --release -p cembra-tiles --example rates [dense N | sparse N
//! SHARE | tasks]`. `alone N TILE SHARE THREADS TURNS` is for `benches/python/tiles.py`: it prints the number of
//! products of tiles in one sparse product, and its shortest time in seconds of the clock.

#![expect(clippy::print_stdout, reason = "a program that prints what it measures")]

use cembra_engine::LibraryProduct;
use cembra_tensor::{MatrixLayout, MatrixProduct, Multiplication};
use cembra_tiles::{Evaluator, MOST_TILES, Options, Screening, Shape, Tiled, Tiling, Tiling1};
use cembra_value::Error;
use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

const TURNS: usize = 7;

/// The processor time of all threads of the process so far, in seconds; on systems other than Linux, the time of the
/// clock since `since`. If other programs run at the same time, ratios of processor times are still right, and ratios
/// of clock times are not.
fn processor_seconds(since: Instant) -> f64 {
    let Ok(threads) = std::fs::read_dir("/proc/self/task") else { return since.elapsed().as_secs_f64() };
    let nanoseconds = |path: std::path::PathBuf| -> Option<f64> {
        std::fs::read_to_string(path.join("schedstat")).ok()?.split(' ').next()?.parse().ok()
    };
    threads.filter_map(|thread| nanoseconds(thread.ok()?.path())).sum::<f64>() / 1e9
}

fn seconds<R>(run: impl FnOnce() -> R) -> f64 {
    let start = Instant::now();
    let before = processor_seconds(start);
    black_box(run());
    processor_seconds(start) - before
}

/// Runs the programs in turn, several times, and returns the shortest time of each in seconds.
fn best(programs: &mut [Box<dyn FnMut() + '_>]) -> Vec<f64> {
    let mut found = vec![f64::INFINITY; programs.len()];
    for _ in 0..TURNS {
        for (found, program) in found.iter_mut().zip(&mut *programs) {
            *found = found.min(seconds(program));
        }
    }
    found
}

fn matrix(rows: usize, columns: usize, offset: usize, row_stride: usize) -> MatrixLayout {
    MatrixLayout { offset, rows, columns, row_stride: row_stride.cast_signed(), column_stride: 1 }
}

/// Multiplies two square matrices by the library. The rows of the result are distributed over the threads.
fn whole(n: usize, threads: usize, a: &[f64], b: &[f64], c: &mut [f64]) {
    let rows = n.div_ceil(threads);
    let part = |(c, a): (&mut [f64], &[f64])| {
        let rows = c.len() / n;
        let (to, left, right) = (matrix(rows, n, 0, n), matrix(rows, n, 0, n), matrix(n, n, 0, n));
        LibraryProduct.multiply_f64(Multiplication::new((c, to), (a, left), (b, right), false).expect("it fits"));
    };
    if threads == 1 {
        part((c, a));
        return;
    }
    rayon::scope(|scope| {
        for pair in c.chunks_mut(rows * n).zip(a.chunks(rows * n)) {
            scope.spawn(move |_| part(pair));
        }
    });
}

fn square(n: usize, tile: usize, share: f64, seed: u64) -> Result<Tiled, Error> {
    let axis = Tiling1::blocked(n as u64, tile as u64)?;
    let tiling = Tiling::new([&axis, &axis])?;
    let mut rng = fastrand::Rng::with_seed(seed);
    let present: Vec<(u64, f64)> =
        (0..tiling.tiles()).filter(|_| rng.f64() < share).map(|tile| (tile, f64::INFINITY)).collect();
    let shape = Shape::of_norms(&tiling, present, &Screening { threshold: 0.0, most_tiles: MOST_TILES })?;
    Tiled::random::<f64>(&shape, seed)
}

fn evaluator(threads: usize) -> Evaluator {
    Evaluator::new(Options::default().threshold(0.0)).threads(threads).matrices(Arc::new(LibraryProduct))
}

fn dense(n: usize) -> Result<(), Error> {
    let tiles = [32, 64, 128, 256, 512];
    let operands = tiles.iter().map(|tile| Ok((square(n, *tile, 1.0, 1)?, square(n, *tile, 1.0, 2)?)));
    let operands = operands.collect::<Result<Vec<_>, Error>>()?;
    let a = operands[0].0.to_tensor()?.to_vec::<f64>()?;
    let b = operands[0].1.to_tensor()?.to_vec::<f64>()?;
    println!("dense, n = {n}: times the rate of the library, and of tiles of 512");
    for threads in [1, 2] {
        let run = evaluator(threads);
        let mut c = vec![0.0; n * n];
        let (a, b) = (&a, &b);
        let mut programs: Vec<Box<dyn FnMut() + '_>> = vec![Box::new(move || whole(n, threads, a, b, &mut c))];
        for (a, b) in &operands {
            let run = &run;
            programs.push(Box::new(move || drop(run.product("ij,jk->ik", a, b).expect("it fits"))));
        }
        let found = best(&mut programs);
        let gigaflops = 2.0 * (n as f64).powi(3) / found[0] / 1e9;
        print!("  {threads} threads: library {gigaflops:.0} GF/s;");
        for (tile, seconds) in tiles.iter().zip(&found[1..]) {
            print!(" {tile}: {:.2} ({:.2})", found[0] / seconds, found[tiles.len()] / seconds);
        }
        println!();
    }
    Ok(())
}

/// Multiplies two tiles `count` times, so that they are in the cache.
fn warm(tile: usize, count: usize) -> impl FnMut() {
    let (a, b, mut c) = (vec![0.5; tile * tile], vec![0.25; tile * tile], vec![0.0; tile * tile]);
    let layout = matrix(tile, tile, 0, tile);
    move || {
        for _ in 0..count {
            let product = Multiplication::new((&mut c, layout), (&a, layout), (&b, layout), true).expect("it fits");
            LibraryProduct.multiply_f64(product);
        }
    }
}

/// A program that computes `a = b + 2 c` for arrays larger than any cache, and the number of bytes of the three arrays.
fn triad() -> (impl FnMut(), f64) {
    const COUNT: usize = 1 << 23;
    let (mut a, b, c) = (vec![0.0; COUNT], vec![1.0; COUNT], vec![2.0; COUNT]);
    let once = move || {
        a.iter_mut().zip(b.iter().zip(&c)).for_each(|(a, (b, c))| *a = b + 2.0 * c);
        black_box(&a);
    };
    (once, (3 * 8 * COUNT) as f64)
}

/// Measures sparse products for several tile sizes. For each size, the product, its plan and the programs that it is
/// compared with run in turn, because the speed of a shared machine changes within a minute.
fn sparse(n: usize, share: f64) -> Result<(), Error> {
    println!(
        "{share} of tiles, n = {n}: (products times a warm product of tiles + bytes once at the rate of a triad) over the time"
    );
    for tile in [32, 64, 128] {
        let (a, b) = (square(n, tile, share, 1)?, square(n, tile, share, 2)?);
        for threads in [1, 2] {
            let run = evaluator(threads);
            let plan = run.plan("ij,jk->ik", &a, &b, None)?;
            let products = plan.product_count() as f64;
            // Processor seconds are counted in steps of milliseconds.
            let warm_count = (300_000_000 / tile.pow(3)).max(1);
            let plans = (2e6 / products).max(1.0) as usize;
            let (mut triad, triad_bytes) = triad();
            let mut programs: Vec<Box<dyn FnMut() + '_>> = vec![
                Box::new(|| (0..4).for_each(|_| triad())),
                Box::new(warm(tile, warm_count)),
                Box::new(|| (0..plans).for_each(|_| drop(black_box(run.plan("ij,jk->ik", &a, &b, None))))),
                Box::new(|| drop(run.product("ij,jk->ik", &a, &b).expect("it fits"))),
            ];
            let [triad, warm, planned, whole] = best(&mut programs)[..] else { continue };
            let (rate, warm, planned) = (4.0 * triad_bytes / triad, warm / warm_count as f64, planned / plans as f64);
            let bytes = (a.memory_bytes() + b.memory_bytes()) as f64 + 8.0 * plan.shape().present_elements();
            let ideal = products * warm + bytes / rate;
            println!(
                "  {threads} threads, tiles of {tile}: {:.2} ({:.2} without the plan, of {:.1} ns a product); a warm product takes {:.2} us, one takes {:.2}; {:.1} GB/s",
                ideal / whole,
                ideal / (whole - planned),
                1e9 * planned / products,
                1e6 * warm,
                1e6 * whole / products,
                rate / 1e9,
            );
        }
    }
    Ok(())
}

/// Measures one sparse product, its plan included.
fn alone(n: usize, tile: usize, share: f64, threads: usize, turns: usize) -> Result<(), Error> {
    let (a, b) = (square(n, tile, share, 1)?, square(n, tile, share, 2)?);
    let run = evaluator(threads);
    let products = run.plan("ij,jk->ik", &a, &b, None)?.product_count();
    let mut least = f64::INFINITY;
    for _ in 0..turns {
        let start = Instant::now();
        black_box(run.product("ij,jk->ik", &a, &b)?);
        least = least.min(start.elapsed().as_secs_f64());
    }
    println!("{products} {least:.6}");
    Ok(())
}

/// Measures the overhead of a task: tiles of one element with one task per tile, compared with the same tiles in large
/// tasks.
fn tasks() -> Result<(), Error> {
    let axis = Tiling1::blocked(100_000, 1)?;
    let tiled = Tiled::random::<f64>(&Shape::dense(&Tiling::new([axis])?, MOST_TILES)?, 1)?;
    for threads in [1, 2] {
        let run = |block_bytes: usize| {
            let run = Evaluator::new(Options::default().block_bytes(block_bytes)).threads(threads);
            let tiled = &tiled;
            move || drop(run.scale(tiled, 2.0))
        };
        let found = best(&mut [Box::new(run(8)), Box::new(run(1 << 18))]);
        println!("a task takes {:.2} us beside its work on {threads} threads", 1e6 * (found[0] - found[1]) / 1e5);
    }
    Ok(())
}

fn main() -> Result<(), Error> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize| arguments.get(at).and_then(|argument| argument.parse::<f64>().ok());
    match arguments.first().map(String::as_str) {
        Some("dense") => dense(number(1).unwrap_or(2048.0) as usize),
        Some("sparse") => sparse(number(1).unwrap_or(4096.0) as usize, number(2).unwrap_or(0.1)),
        Some("tasks") => tasks(),
        Some("alone") => {
            let [n, tile, share, threads, turns] = [1, 2, 3, 4, 5].map(|at| number(at).unwrap_or(1.0));
            alone(n as usize, tile as usize, share, threads as usize, turns as usize)
        }
        _ => dense(2048).and_then(|()| sparse(4096, 0.1)).and_then(|()| tasks()),
    }
}
