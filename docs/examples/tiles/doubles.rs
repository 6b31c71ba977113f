//! Closed-shell coupled cluster with double excitations (CCD) of electrons on a Hubbard ring, on all ranks of a world. Tiles of integrals and
//! amplitudes are absent where momentum is not conserved. The correlation energy is that of PySCF, to 1e-9.
//!
//! Run it with `cargo run -p cembra --features tiles --example doubles --release`. Built with the feature `mpi`, too, it runs on four ranks by
//! `mpirun -n 4 target/release/examples/doubles`. What it prints is asserted by its test, and does not depend on the number of ranks.

use cembra::Error;
use cembra::tiles::{MOST_TILES, Options, Run, Screening, Shape, Tiled, Tiling, Tiling1, World};
use std::collections::{BTreeMap, VecDeque};
use std::io::Write;

/// The sites of the ring, and the electrons on them. Shells of a ring have 2, 6, 10, 14 and so on, so that all are full.
const SITES: i64 = 14;

/// The energy of two electrons on one site. A hop to the next site has an amplitude of -1.
const REPULSION: f64 = 2.0;

/// Elements below it are left out, tile by tile.
const THRESHOLD: f64 = 1e-12;

/// Amplitudes whose error has a smaller norm are the result. The energy is a linear function of them, so its error is not the square of theirs.
const TOLERANCE: f64 = 5e-13;

/// The amplitudes and errors that are kept to extrapolate from.
const KEPT: usize = 6;

/// What `benches/python/doubles.py 14 2` prints, with PySCF 2.14.0.
const OF_PYSCF: f64 = -0.968_321_606_606;

/// The magnitude of the momentum of an orbital, in units of `2 pi / SITES`. Orbitals are the standing waves of the ring: a constant one, then a
/// cosine and a sine of each momentum, and at last one that changes its sign from site to site. All sites are alike, so these are the orbitals of
/// Hartree and Fock.
fn momentum(orbital: i64) -> i64 {
    // Number 0 is the constant one, and a cosine comes before its sine.
    (orbital + 1) / 2
}

/// The value of an orbital at a site.
fn wave(orbital: i64, site: i64) -> f64 {
    let momentum = momentum(orbital);
    let angle = std::f64::consts::TAU * (momentum * site) as f64 / SITES as f64;
    let has_pair = momentum > 0 && 2 * momentum < SITES;
    let norm = if has_pair { 2.0 } else { 1.0 } / SITES as f64;
    norm.sqrt() * if has_pair && orbital % 2 == 0 { angle.sin() } else { angle.cos() }
}

/// The energy of an orbital, but for that of the mean field, which is the same for all and not in differences.
fn level(orbital: i64) -> f64 {
    -2.0 * (std::f64::consts::TAU * momentum(orbital) as f64 / SITES as f64).cos()
}

/// The orbitals from one number on, before another, cut where the momentum changes.
fn shells(from: i64, end: i64) -> Result<Tiling1, Error> {
    Tiling1::new((from..=end).filter(|at| [from, end].contains(at) || momentum(*at) != momentum(at - 1)))
}

/// The repulsion integrals of four orbitals, one of each axis. Electrons repel each other on one site alone, so the order of the orbitals does not
/// matter. A tile is there if some sum of its momenta, each with either sign, is a multiple of `SITES`.
fn integrals(run: &Run, axes: [&Tiling1; 4]) -> Result<Tiled, Error> {
    let sums = |at: &[u64]| {
        axes.iter().zip(at).fold(vec![0], |sums, (axis, tile)| {
            let own = momentum(axis.range(*tile).unwrap_or_default().start);
            sums.iter().flat_map(|sum| [sum + own, sum - own]).collect()
        })
    };
    let norm = |at: &[u64]| Ok(if sums(at).iter().any(|sum| sum % SITES == 0) { f64::INFINITY } else { 0.0 });
    let shape = Shape::from_fn(&Tiling::new(axes)?, &Screening::threshold(THRESHOLD), norm)?;
    run.evaluator().from_fn(&shape, |at| {
        let meet = |site: i64| at.iter().map(|orbital| wave(*orbital, site)).product::<f64>();
        REPULSION * (0..SITES).map(meet).sum::<f64>()
    })
}

/// The next amplitudes and their distance from the amplitudes `t`, by the equations of Hirata and others (2004) without single excitations. In the
/// notation of chemists `v("i,j,a,b")` is `(ia|jb)`, `x("k,i,a,c")` is `(ki|ac)`, and `u` is `2 v` without its exchange.
const EQUATIONS: &str = r#"
    let s("i,j,a,b") = 2.0 * t("i,j,a,b") - t("i,j,b,a")
    let holes("k,i") = u("k,l,c,d") * t("i,l,c,d")
    let particles("a,c") = u("k,l,c,d") * t("k,l,a,d")
    let pairs("k,l,i,j") = oooo("k,l,i,j") + v("k,l,c,d") * t("i,j,c,d")
    let rings("i,k,a,c") = v("i,k,a,c") + 0.5 * u("k,l,c,d") * t("i,l,a,d") - 0.5 * v("k,l,c,d") * t("i,l,d,a")
    let crossed("k,i,a,c") = x("k,i,a,c") - 0.5 * v("k,l,d,c") * t("i,l,d,a")
    let one("i,j,a,b") = rings("i,k,a,c") * s("k,j,c,b") - crossed("k,i,a,c") * t("k,j,c,b") - crossed("k,i,b,c") * t("k,j,a,c")
    let half("i,j,a,b") = one("i,j,a,b") - particles("a,c") * t("i,j,c,b") - holes("k,i") * t("k,j,a,b")
    let ladders("i,j,a,b") = pairs("k,l,i,j") * t("k,l,a,b") + vvvv("a,b,c,d") * t("i,j,c,d")
    let residual("i,j,a,b") = v("i,j,a,b") + ladders("i,j,a,b") + half("i,j,a,b") + half("j,i,b,a")
    output next("i,j,a,b") = residual("i,j,a,b") * inverse("i,j,a,b")
    output error("i,j,a,b") = next("i,j,a,b") - t("i,j,a,b")
"#;

/// The last amplitudes, each with its error, and the products of all errors.
#[derive(Default)]
struct History {
    kept: VecDeque<[Tiled; 2]>,
    products: Vec<Vec<f64>>,
}

impl History {
    /// The combination of the amplitudes whose combined error is the least: the direct inversion of the iterative subspace (DIIS, Pulay 1980).
    fn extrapolated(&mut self, run: &Run, next: Tiled, error: Tiled) -> Result<Tiled, Error> {
        if self.kept.len() == KEPT {
            self.kept.pop_front();
            self.products.remove(0);
            for row in &mut self.products {
                row.remove(0);
            }
        }
        self.kept.push_back([next, error.clone()]);
        let products = self.kept.iter().map(|[_, kept]| run.evaluator().dot(kept, &error));
        let products = products.collect::<Result<Vec<f64>, Error>>()?;
        self.products.iter_mut().zip(&products).for_each(|(row, product)| row.push(*product));
        self.products.push(products);
        // All ranks have the same products, to the bit, so each solves the system by itself. The factors are to have a sum of 1.
        let factors = solved(&self.products);
        let sum: f64 = factors.iter().sum();
        let mut made = self.kept[0][0].masked(&Shape::empty(self.kept[0][0].tiling()))?;
        for ([next, _], factor) in self.kept.iter().zip(&factors) {
            made = run.evaluator().add(&made, &run.evaluator().scale(next, factor / sum)?)?;
        }
        Ok(made)
    }
}

/// The vector that a matrix takes to the vector of ones, by elimination with pivots.
fn solved(matrix: &[Vec<f64>]) -> Vec<f64> {
    let mut rows: Vec<Vec<f64>> = matrix.iter().map(|row| row.iter().copied().chain([1.0]).collect()).collect();
    for at in 0..rows.len() {
        let largest = |a: &usize, b: &usize| rows[*a][at].abs().total_cmp(&rows[*b][at].abs());
        let pivot = (at..rows.len()).max_by(largest).unwrap_or(at);
        rows.swap(at, pivot);
        let own = rows[at].clone();
        for (_, row) in rows.iter_mut().enumerate().filter(|(other, _)| *other != at) {
            let factor = row[at] / own[at];
            row.iter_mut().zip(&own).for_each(|(to, from)| *to -= factor * from);
        }
    }
    rows.iter().enumerate().map(|(at, row)| row[matrix.len()] / row[at]).collect()
}

/// What is found: the correlation energy, the error that is left, the iterations, and the amplitudes.
struct Found {
    energy: f64,
    error: f64,
    iterations: usize,
    amplitudes: Tiled,
}

fn doubles(world: &World) -> Result<Found, Error> {
    let mut run = world.evaluator(Options::default().threshold(THRESHOLD));
    let screening = Screening::threshold(THRESHOLD);
    let (o, v) = (&shells(0, SITES / 2)?, &shells(SITES / 2, SITES)?);
    let oovv = integrals(&run, [o, o, v, v])?;
    let spins = run.statement(r#"u("i,j,a,b") = 2.0 * v("i,j,a,b") - v("i,j,b,a")"#, [("v", &oovv)])?;
    let all = Shape::dense(oovv.tiling(), MOST_TILES)?;
    let of_levels = |at: &[i64]| 1.0 / (level(at[0]) + level(at[1]) - level(at[2]) - level(at[3]));
    let inverse = run.evaluator().from_fn(&all, of_levels)?;
    let (oooo, vvvv) = (integrals(&run, [o; 4])?, integrals(&run, [v; 4])?);
    // The order of orbitals does not matter, so the integrals `x` are the integrals `v`.
    let given = [("v", &oovv), ("x", &oovv), ("u", &spins), ("oooo", &oooo), ("vvvv", &vvvv), ("inverse", &inverse)];
    let mut history = History::default();
    let mut t = oovv.masked(&Shape::empty(oovv.tiling()))?;
    let mut iterations = 0;
    loop {
        iterations += 1;
        let made: BTreeMap<String, Tiled> = run.statements(EQUATIONS, given.into_iter().chain([("t", &t)]))?;
        // Estimates are upper bounds: a tile that is zero but for rounding may have passed.
        let next = run.evaluator().truncate(&made["next"], &screening)?;
        let error = run.evaluator().norm(&made["error"])?;
        if error < TOLERANCE || iterations == 50 {
            let energy = run.evaluator().dot(&spins, &next)?;
            return Ok(Found { energy, error, iterations, amplitudes: next });
        }
        t = history.extrapolated(&run, next, made["error"].clone())?;
    }
}

fn report(world: &World, to: &mut impl Write) -> Result<(), Box<dyn std::error::Error>> {
    let Found { energy, error, iterations, amplitudes } = doubles(world)?;
    writeln!(to, "{SITES} sites, {SITES} electrons")?;
    writeln!(to, "{iterations} iterations, an error below {TOLERANCE:e}: {}", error < TOLERANCE)?;
    writeln!(to, "correlation energy {energy:.12}")?;
    writeln!(to, "off from PySCF by less than 1e-9: {}", (energy - OF_PYSCF).abs() < 1e-9)?;
    writeln!(to, "tiles of the amplitudes: {} of {}", amplitudes.shape().len(), amplitudes.tiling().tiles())?;
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let world = World::from_environment()?;
    report(&world, &mut world.out())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_energy_is_that_of_pyscf() {
        let mut printed = Vec::new();
        report(&World::alone(), &mut printed).expect("a report");
        let expected = "14 sites, 14 electrons\n17 iterations, an error below 5e-13: true\ncorrelation energy -0.968321606606\n\
                        off from PySCF by less than 1e-9: true\ntiles of the amplitudes: 92 of 256\n";
        assert_eq!(String::from_utf8_lossy(&printed), expected);
    }

    #[test]
    fn the_number_of_ranks_changes_no_bit() -> Result<(), Error> {
        let alone = doubles(&World::alone())?;
        for ranks in [1, 2, 4] {
            let results = World::on_threads(ranks, |world| doubles(&world));
            assert_eq!(results.len(), ranks);
            for found in results {
                let found = found?;
                assert_eq!(found.energy.to_bits(), alone.energy.to_bits(), "{ranks} ranks");
                assert_eq!(found.iterations, alone.iterations);
                assert_eq!(found.amplitudes.shape().tiles(), alone.amplitudes.shape().tiles());
            }
        }
        Ok(())
    }
}
