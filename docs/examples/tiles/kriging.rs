//! Kriging with a tapered covariance: values that were measured at some places of a line are carried to other places. The covariance of two
//! places is cut off at a distance (Furrer, Genton and Nychka 2006), so its matrix is sparse, and its system is solved by conjugate gradients.
//!
//! Run it with `cargo run -p cembra --features tiles --example kriging --release`. What it prints is asserted by its test.

use cembra::Error;
use cembra::tiles::{Options, Screening, Shape, Stop, Tiled, Tiling, Tiling1, World};
use std::io::Write;

/// Covariances of places farther apart are zero.
const TAPER: f64 = 0.05;

/// The covariance of two places: an exponential one, times the taper of Wendland.
fn covariance(a: f64, b: f64) -> f64 {
    let apart = (a - b).abs() / TAPER;
    if apart >= 1.0 { 0.0 } else { (-apart).exp() * (1.0 - apart).powi(4) * (1.0 + 4.0 * apart) }
}

/// The place of one of so many measurements between 0 and 1: not quite evenly, and in ascending order.
fn measured(at: i64, count: i64) -> f64 {
    let within = (at * 7919 % 97) as f64 / 97.0;
    (at as f64 + 0.8 * within) / count as f64
}

/// What was measured there.
fn value(place: f64) -> f64 {
    (12.0 * place).sin() + 0.5 * (31.0 * place).cos()
}

/// The matrix of covariances of places that ascend along rows and columns. A tile is there if some pair of its places is near.
fn covariances(axes: [&Tiling1; 2], places: [&(dyn Fn(i64) -> f64 + Sync); 2], noise: f64) -> Result<Tiled, Error> {
    let ends = |axis: usize, tile: u64| {
        let range = axes[axis].range(tile).unwrap_or_default();
        (places[axis](range.start), places[axis](range.end - 1))
    };
    let norm = |at: &[u64]| {
        let ((low, high), (other_low, other_high)) = (ends(0, at[0]), ends(1, at[1]));
        let apart = (low - other_high).max(other_low - high);
        Ok(if apart < TAPER { 1.0 } else { 0.0 })
    };
    let shape = Shape::from_fn(&Tiling::new(axes)?, &Screening::threshold(1e-12), norm)?;
    Tiled::from_fn(&shape, |at| {
        let own = covariance(places[0](at[0]), places[1](at[1]));
        if at[0] == at[1] { own + noise } else { own }
    })
}

fn report(world: &World, to: &mut impl Write) -> Result<(), Box<dyn std::error::Error>> {
    const COUNT: i64 = 1000;
    const WANTED: i64 = 200;
    let (rows, wanted) = (Tiling1::blocked(COUNT as u64, 64)?, Tiling1::blocked(WANTED as u64, 50)?);
    let place = |at: i64| measured(at, COUNT);
    let between = |at: i64| (at as f64 + 0.5) / WANTED as f64;
    let a = covariances([&rows, &rows], [&place, &place], 1e-4)?;
    let b = Tiled::from_fn(&Shape::dense(&Tiling::new([&rows])?, 1 << 20)?, |at| value(place(at[0])))?;
    let cross = covariances([&wanted, &rows], [&between, &place], 0.0)?;
    let mut run = world.evaluator(Options::default().threshold(1e-14));
    let stop = Stop { tolerance: 1e-8, most_steps: 2000 };
    let weights = run.conjugate_gradients(&a, &b, stop)?;
    let text = r#"z("p") = cross("p,i") * w("i")"#;
    let carried = run.statement(text, [("cross", &cross), ("w", &weights.value)])?;
    // All ranks look at all of it.
    let carried = run.evaluator().gathered(&carried)?;
    let mut worst = 0.0_f64;
    for at in 0..WANTED {
        worst = worst.max((carried.get::<f64>(&[at])? - value(between(at))).abs());
    }
    writeln!(to, "{} of {} tiles", a.shape().len(), a.tiling().tiles())?;
    writeln!(to, "residual below 1e-8: {}", weights.residual < 1e-8)?;
    writeln!(to, "carried to {WANTED} places, off by less than 0.02: {}", worst < 0.02)?;
    let tiles = rows.tiles();
    for row in 0..tiles {
        let has = |column: u64| a.shape().norm(row * tiles + column).is_some();
        writeln!(to, "{}", (0..tiles).map(|column| if has(column) { '#' } else { '.' }).collect::<String>())?;
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let world = World::from_environment()?;
    report(&world, &mut world.out())
}

#[cfg(test)]
mod tests {
    #[test]
    fn values_are_carried_to_places_between() {
        let mut printed = Vec::new();
        super::report(&cembra::tiles::World::alone(), &mut printed).expect("a report");
        let printed = String::from_utf8_lossy(&printed);
        let lines: Vec<&str> = printed.lines().collect();
        assert_eq!(lines[0], "46 of 256 tiles");
        assert_eq!(lines[1], "residual below 1e-8: true");
        assert_eq!(lines[2], "carried to 200 places, off by less than 0.02: true");
        assert_eq!(lines[3], "##..............");
    }
}
