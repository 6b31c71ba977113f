//! A contraction whose right operand would not fit in memory: `r(i,j,a,b) = t(i,j,c,d) v(c,d,a,b)`, the "ladder" term of coupled cluster, on
//! orbitals that stand in a line. `v` is lazy: a tile of it is made when a product needs it, and dropped after. Which tiles exist follows from
//! norms alone, so nothing is made that would be left out.
//!
//! Run it with `cargo run -p cembra --features tiles --example ladder --release -- 40 120`. What it prints is asserted by its test.

use cembra::tensor::Tensor;
use cembra::tiles::{
    Journal, MOST_TILES, Options, Ranges, Screening, Shape, StepKind, TilePlace, Tiled, Tiling, Tiling1, World,
};
use cembra::{Error, Limits, RunOptions, Scalar};
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Tiles whose elements are smaller are left out.
const THRESHOLD: f64 = 1e-6;

/// So far an orbital reaches, where the whole line has a length of 1.
const REACH: f64 = 0.04;

/// How much two orbitals have to do with each other, each being at a place of the line.
fn overlap(a: f64, b: f64) -> f64 {
    (-(a - b).abs() / REACH).exp()
}

/// How near two tiles of axes are to each other: the largest overlap of an orbital of one and an orbital of the other.
fn nearest(axes: [(&Tiling1, u64); 2]) -> f64 {
    let [(low, high), (other_low, other_high)] = axes.map(|(axis, tile)| {
        let range = axis.range(tile).unwrap_or_default();
        let place = |at: i64| at as f64 / axis.extent() as f64;
        (place(range.start), place(range.end - 1))
    });
    overlap(0.0, (low - other_high).max(other_low - high).max(0.0))
}

/// The element of `v` at an index: orbitals c and a share one electron, d and b the other, and the electrons repel each other.
fn coulomb(at: [i64; 4], orbitals: f64) -> f64 {
    let [c, d, a, b] = at.map(|at| at as f64 / orbitals);
    let apart = (c + a - d - b) / 2.0;
    overlap(c, a) * overlap(d, b) / (1.0 + 10.0 * apart.abs())
}

/// Fills a tensor by a function of the index.
fn tile(ranges: &Ranges, element: impl Fn([i64; 4]) -> f64) -> Result<Tensor, Error> {
    let [c, d, a, b] = [0, 1, 2, 3].map(|axis| ranges[axis].clone());
    let extents: Vec<usize> = ranges.iter().map(|range| range.end.abs_diff(range.start) as usize).collect();
    let mut elements = Vec::with_capacity(extents.iter().product());
    for c in c {
        for d in d.clone() {
            for a in a.clone() {
                elements.extend(b.clone().map(|b| element([c, d, a, b])));
            }
        }
    }
    Tensor::new(&extents, elements)
}

/// What is known of a run.
struct Found {
    energy: f64,
    tiles_made: u64,
    tiles_of_v: usize,
    dense_tiles_of_v: u64,
    products: u64,
    dense_products: f64,
    result_bytes: usize,
    pattern: String,
}

fn ladder(world: &World, occupied: u64, virtuals: u64, threads: usize) -> Result<Found, Error> {
    let occupied = Tiling1::blocked(occupied, 8)?;
    // Clusters of two sizes.
    let boundaries = (0_i64..).map(|at| at / 2 * 22 + at % 2 * 9).take_while(|at| *at < virtuals as i64);
    let virtuals = Tiling1::new(boundaries.chain([virtuals as i64]))?;
    let screening = Screening::threshold(THRESHOLD);
    let of_t = Tiling::new([&occupied, &occupied, &virtuals, &virtuals])?;
    let (o, u) = (occupied.extent() as f64, virtuals.extent() as f64);
    let shape = Shape::from_fn(&of_t, &screening, |at| {
        Ok(nearest([(&occupied, at[0]), (&virtuals, at[2])]) * nearest([(&occupied, at[1]), (&virtuals, at[3])]))
    })?;
    let t = Tiled::from_fn(&shape, |at| {
        let [i, j, c, d] = [at[0] as f64 / o, at[1] as f64 / o, at[2] as f64 / u, at[3] as f64 / u];
        overlap(i, c) * overlap(j, d) / (2.0 + (i - j).abs())
    })?;
    let of_v = Tiling::new([&virtuals; 4])?;
    let shape = Shape::from_fn(&of_v, &screening, |at| {
        Ok(nearest([(&virtuals, at[0]), (&virtuals, at[2])]) * nearest([(&virtuals, at[1]), (&virtuals, at[3])]))
    })?;
    let (tiles_of_v, dense_tiles_of_v) = (shape.len(), of_v.tiles());
    let made = Arc::new(AtomicU64::new(0));
    let counted = made.clone();
    let v = Tiled::lazy(&shape, Scalar::Float64, move |place: &TilePlace| {
        counted.fetch_add(1, Ordering::Relaxed);
        tile(&place.ranges, |at| coulomb(at, u))
    })?;
    let journal = Journal::default();
    let limits = Limits::default().array_bytes(512 << 20);
    let terms = RunOptions::new().threads(threads).limits(limits);
    let options = Options::default().threshold(THRESHOLD).most_tiles(MOST_TILES);
    let mut run = world.evaluator(options).run_options(&terms).journal(journal.clone());
    let r = run.statement(r#"r("i,j,a,b") = t("i,j,c,d") * v("c,d,a,b")"#, [("t", &t), ("v", &v)])?;
    let of_product = journal.steps().into_iter().find_map(|step| match step.work {
        StepKind::Product { products, of, .. } => Some((products, of, step.bytes)),
        _ => None,
    });
    let (products, dense_products, result_bytes) = of_product.unwrap_or_default();
    let energy = run.number(r#"(t("i,j,a,b") * r("i,j,a,b")).sum()"#, [("t", &t), ("r", &r)])?;
    // Which pairs of occupied and virtual orbitals the result has, for the first pair of the other electron.
    let tiling = r.tiling();
    let mut pattern = String::new();
    for i in 0..occupied.tiles() {
        let has = |a: u64| tiling.number_of(&[i, 0, a, 0]).is_some_and(|tile| r.shape().norm(tile).is_some());
        pattern.extend((0..virtuals.tiles()).map(|a| if has(a) { '#' } else { '.' }));
        pattern.push('\n');
    }
    Ok(Found {
        energy,
        tiles_made: made.load(Ordering::Relaxed),
        tiles_of_v,
        dense_tiles_of_v,
        products,
        dense_products,
        result_bytes,
        pattern,
    })
}

fn report(world: &World, to: &mut impl Write, occupied: u64, virtuals: u64) -> Result<(), Box<dyn std::error::Error>> {
    let found = ladder(world, occupied, virtuals, 2)?;
    writeln!(to, "energy {:.12}", found.energy)?;
    writeln!(to, "tiles of v: {} of {}, made {} times", found.tiles_of_v, found.dense_tiles_of_v, found.tiles_made)?;
    writeln!(to, "products: {} of {}", found.products, found.dense_products)?;
    writeln!(to, "bytes of r: {}", found.result_bytes)?;
    write!(to, "{}", found.pattern)?;
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut sizes = std::env::args().skip(1).map(|size| size.parse());
    let occupied = sizes.next().transpose()?.unwrap_or(16);
    let virtuals = sizes.next().transpose()?.unwrap_or(66);
    let world = World::from_environment()?;
    report(&world, &mut world.out(), occupied, virtuals)
}

#[cfg(test)]
mod tests {
    #[test]
    fn threads_change_no_digit_and_what_is_left_out_is_small() -> Result<(), cembra::Error> {
        let alone = cembra::tiles::World::alone();
        let [one, two] = [super::ladder(&alone, 8, 31, 1)?, super::ladder(&alone, 8, 31, 2)?];
        assert_eq!(one.energy.to_bits(), two.energy.to_bits());
        let mut made = 0;
        for found in cembra::tiles::World::on_threads(4, |world| super::ladder(&world, 8, 31, 1)) {
            let found = found?;
            assert_eq!((found.energy.to_bits(), found.products), (one.energy.to_bits(), one.products));
            made += found.tiles_made;
        }
        // Each rank makes the tiles of `v` that its part of the result needs: on a grid of 2 by 2 a tile is needed by two at most.
        assert!(made <= 2 * one.tiles_made, "{made} and {}", one.tiles_made);
        assert!(one.products < one.dense_products as u64 && one.tiles_of_v < one.dense_tiles_of_v as usize);
        // The sum over all elements, term by term.
        let (o, u) = (8, 31);
        let t = |i: i64, j: i64, c: i64, d: i64| {
            let [i, j, c, d] = [i as f64 / 8.0, j as f64 / 8.0, c as f64 / 31.0, d as f64 / 31.0];
            super::overlap(i, c) * super::overlap(j, d) / (2.0 + (i - j).abs())
        };
        let pairs = |n: i64| (0..n).flat_map(move |a| (0..n).map(move |b| (a, b)));
        let v: Vec<f64> =
            pairs(u).flat_map(|(c, d)| pairs(u).map(move |(a, b)| super::coulomb([c, d, a, b], 31.0))).collect();
        let mut energy = 0.0;
        for (i, j) in pairs(o) {
            let own: Vec<f64> = pairs(u).map(|(c, d)| t(i, j, c, d)).collect();
            let dot = |row: &[f64]| row.iter().zip(&own).map(|(v, t)| v * t).sum::<f64>();
            energy += v.chunks(own.len()).zip(&own).map(|(row, t)| t * dot(row)).sum::<f64>();
        }
        assert!((energy - one.energy).abs() < 1e-4 * energy, "{energy} and {}", one.energy);
        Ok(())
    }
}
