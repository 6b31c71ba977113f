//! The density matrix of a disordered chain by purification, on tiled matrices: `p = 3 p p - 2 p p p` (McWeeny 1960), until `p p = p`. Sites in
//! pairs of a high and a low one have a gap between their levels, so the density matrix decays, and tiles far from the diagonal are left out.
//!
//! Run it with `cargo run -p cembra --features tiles --example purify --release`. What it prints is asserted by its test. With `SITES TILE
//! THRESHOLD THREADS` it prints what `benches/python/purify.py` holds beside DBCSR: seconds, steps, the part of tiles, the energy, the distance.

use cembra::tiles::{Options, Run, Screening, Shape, Tiled, Tiling, Tiling1, World};
use cembra::{Error, RunOptions};
use std::io::Write;
use std::time::Instant;

/// Elements below it are left out, tile by tile.
const THRESHOLD: f64 = 1e-10;

/// The sites of a chain in clusters of 12 to 28.
fn clusters(sites: i64) -> Result<Tiling1, Error> {
    let ends = (0..).scan(0, |end, at| {
        *end += 12 + at * 7 % 17;
        Some(*end)
    });
    Tiling1::new(std::iter::once(0).chain(ends.take_while(|end| *end < sites)).chain([sites]))
}

/// The matrix of a chain: levels of 2 and -2, disturbed by a seed, and hops that decay.
fn chain(axis: &Tiling1, threshold: f64) -> Result<Tiled, Error> {
    let tiling = Tiling::new([axis, axis])?;
    let hop = |distance: u64| -0.6 * (-(distance as f64) / 0.7).exp();
    let norm = |at: &[u64]| {
        let [rows, columns] = [at[0], at[1]].map(|tile| axis.range(tile).unwrap_or_default());
        let apart = rows.start.max(columns.start) - rows.end.min(columns.end);
        // No element of the tile is nearer to the diagonal.
        Ok(if apart < 0 { f64::INFINITY } else { hop(apart.unsigned_abs() + 1).abs() })
    };
    let shape = Shape::from_fn(&tiling, &Screening::threshold(threshold), norm)?;
    Tiled::from_fn(&shape, |at| {
        let disorder = ((at[0] * 7919) % 104_729) as f64 / 104_729.0 - 0.5;
        let level = if at[0] % 2 == 0 { 2.0 } else { -2.0 };
        if at[0] == at[1] { level + disorder } else { hop(at[0].abs_diff(at[1])) }
    })
}

/// The result of a purification: the number of levels below 0, which is the trace, and their energy; the norm of `p p - p`; the number of steps; and
/// the part of the tiles that is present.
struct Purified {
    trace: f64,
    energy: f64,
    distance: f64,
    steps: usize,
    filled: f64,
}

fn purify(run: &mut Run, h: &Tiled) -> Result<Purified, Error> {
    let screening = run.options().screening(h.scalar_type())?;
    let one = Tiled::from_fn(&h.shape().masked(&diagonal(h)?)?, |at| if at[0] == at[1] { 1.0 } else { 0.0 })?;
    // Levels between -3.5 and 3.5 become numbers between 1 and 0: what is below 0 is above one half.
    let mut p = run.statement(r#"p("i,j") = 0.5 * one("i,j") - h("i,j") / 7.0"#, [("one", &one), ("h", h)])?;
    let mut steps = 0;
    loop {
        let text = r#"
            let q("i,j") = p("i,k") * p("k,j")
            output next("i,j") = 3.0 * q("i,j") - 2.0 * q("i,k") * p("k,j")
            output left("") = (q("i,j") - p("i,j")).norm()
        "#;
        let made = run.statements(text, [("p", &p)])?;
        let distance = made["left"].get::<f64>(&[])?;
        if distance < 1e-6 || steps == 40 {
            let trace = run.number(r#"p("i,j").trace()"#, [("p", &p)])?;
            let energy = run.number(r#"(p("i,j") * h("i,j")).sum()"#, [("p", &p), ("h", h)])?;
            let filled = p.shape().len() as f64 / p.tiling().tiles() as f64;
            return Ok(Purified { trace, energy, distance, steps, filled });
        }
        p = run.evaluator().truncate(&made["next"], &screening)?;
        steps += 1;
    }
}

/// The tiles on the diagonal.
fn diagonal(of: &Tiled) -> Result<Shape, Error> {
    let tiles = of.tiling().axes()[0].tiles();
    let norms = (0..tiles).map(|at| (at * (tiles + 1), f64::INFINITY));
    Shape::of_norms(of.tiling(), norms, &Screening::threshold(0.0))
}

fn report(world: &World, to: &mut impl Write) -> Result<(), Box<dyn std::error::Error>> {
    let mut run = world.evaluator(Options::default().threshold(THRESHOLD));
    let sites = 800;
    let found = purify(&mut run, &chain(&clusters(sites)?, THRESHOLD)?)?;
    writeln!(to, "{sites} sites, {} levels are filled", found.trace.round())?;
    writeln!(to, "trace off by less than 1e-6: {}", (found.trace - found.trace.round()).abs() < 1e-6)?;
    writeln!(to, "p p is p to 1e-6: {}", found.distance < 1e-6)?;
    writeln!(to, "fewer than 20 steps: {}", found.steps < 20)?;
    writeln!(to, "less than half of the tiles: {}", found.filled < 0.5)?;
    Ok(())
}

/// Prints the seconds and the result of a purification in tiles of one size.
fn measured(world: &World, to: &mut impl Write, arguments: &[String]) -> Result<(), Box<dyn std::error::Error>> {
    let [sites, tile, threshold, threads] = arguments else { return Err("SITES TILE THRESHOLD THREADS".into()) };
    let threshold = threshold.parse()?;
    let run = world.evaluator(Options::default().threshold(threshold));
    let mut run = run.run_options(&RunOptions::new().threads(threads.parse()?));
    let h = chain(&Tiling1::blocked(sites.parse()?, tile.parse()?)?, threshold)?;
    let start = Instant::now();
    let Purified { energy, distance, steps, filled, .. } = purify(&mut run, &h)?;
    writeln!(to, "{:.3} {steps} {filled:.4} {energy:.15e} {distance:e}", start.elapsed().as_secs_f64())?;
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let world = World::from_environment()?;
    let to = &mut world.out();
    if arguments.is_empty() { report(&world, to) } else { measured(&world, to, &arguments) }
}

#[cfg(test)]
mod tests {
    #[test]
    fn half_of_the_levels_are_filled() {
        let mut printed = Vec::new();
        super::report(&cembra::tiles::World::alone(), &mut printed).expect("a report");
        let expected = "800 sites, 400 levels are filled\ntrace off by less than 1e-6: true\np p is p to 1e-6: true\n\
                        fewer than 20 steps: true\nless than half of the tiles: true\n";
        assert_eq!(String::from_utf8_lossy(&printed), expected);
    }

    #[test]
    fn ranks_change_no_digit() -> Result<(), cembra::Error> {
        let purified = |world: cembra::tiles::World| {
            let mut run = world.evaluator(super::Options::default().threshold(super::THRESHOLD));
            super::purify(&mut run, &super::chain(&super::clusters(200)?, super::THRESHOLD)?)
        };
        let alone = purified(cembra::tiles::World::alone())?;
        for found in cembra::tiles::World::on_threads(3, purified) {
            let found = found?;
            let [found, expected] = [&found, &alone].map(|of| [of.trace, of.energy, of.distance].map(f64::to_bits));
            assert_eq!(found, expected);
        }
        Ok(())
    }
}
