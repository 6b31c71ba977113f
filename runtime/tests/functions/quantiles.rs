//! Compares quantiles with a table of exact values, for all combinations of some probabilities and parameters that are
//! far apart, and for random ones. The bounds are those that `cembra_runtime::quantile` states.

use cembra_runtime::quantile;

/// The largest error that the library allows, in units of the last place.
const MOST: f64 = 4.0;

/// The most values, in percent, that may differ from the exact value rounded.
const MOST_MISSES: [(&str, f64); 3] = [("normal", 25.0), ("t", 1.0), ("beta", 2.0)];

fn quantile(name: &str, arguments: &[f64]) -> Option<f64> {
    match (name, arguments) {
        ("normal", [p]) => quantile::normal(*p),
        ("t", [p, degrees]) => quantile::student_t(*p, *degrees),
        ("beta", [p, a, b]) => quantile::beta(*p, *a, *b),
        _ => None,
    }
}

#[test]
fn quantiles_are_those_of_the_table() {
    let table = include_str!("../data/quantiles.csv");
    for (name, most_misses) in MOST_MISSES {
        let (mut points, mut misses, mut worst, mut bad) = (0, 0, (0.0, ""), Vec::new());
        for line in table.lines().filter(|line| line.split(',').next() == Some(name)) {
            let numbers: Vec<f64> = line.split(',').skip(1).map(|field| field.parse().expect("a number")).collect();
            let (arguments, expected) = numbers.split_at(numbers.len() - 2);
            let (nearest, rest) = (expected[0], expected[1]);
            let found = quantile(name, arguments).expect("arguments in bounds");
            let unit = f64::from_bits(nearest.abs().to_bits() + 1) - nearest.abs();
            let off = ((found - nearest - rest) / unit).abs();
            points += 1;
            misses += u32::from(found != nearest);
            if off > worst.0 || off.is_nan() {
                worst = (off, line);
            }
            // A NaN is not within bounds.
            if !matches!(off.partial_cmp(&MOST), Some(std::cmp::Ordering::Less)) {
                bad.push(format!("{line}: {found:e}, {off:.1} units off"));
            }
        }
        let share = 100.0 * f64::from(misses) / f64::from(points);
        let summary = format!("{name}: {misses} of {points} not the nearest, most off {:.3} at {}", worst.0, worst.1);
        assert!(bad.is_empty(), "{summary}; {} beyond {MOST}:\n{}", bad.len(), bad.join("\n"));
        assert!(share <= most_misses && points > 0, "{summary}");
    }
}
