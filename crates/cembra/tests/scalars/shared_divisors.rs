//! Tests divisions by a value that all rows share, or that is computed from one, and by literals. They may be compiled
//! as multiplications, but every row player (backend) must give the bits of the division.

use cembra::columns::InputColumn;
use cembra::explain::RowPlayer;
use cembra::{Model, Options, Value};

const SOURCE: &str = "input x: f64; input s: f64; input y: f32; input t: f32
    output by = x / s
    output computed = (x - s) / (s * 3.0 + 1.0)
    output literal = x / 3.0
    output negative = x / -0.7
    output twice = x / s / s + x / 7.0
    output single = y / t
    output third = y / 3.0f32";

/// Returns numbers of all magnitudes, with zeros, infinities and NaN.
fn dividends(rows: usize) -> Vec<f64> {
    let special = [0.0, -0.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, 5e-324, -3e-310, f64::MAX, 1e-300];
    let number = |row: usize| {
        let mantissa = ((row * 7_919 + 13) % 1_009) as f64 / 64.0 - 7.0;
        match row % 37 {
            // Whole strips are without any, and whole vectors.
            0 if row % 4_096 > 2_048 => special[row / 37 % special.len()],
            1 => mantissa * ((row % 600) as f64 - 300.0).exp2(),
            _ => mantissa,
        }
    };
    (0..rows).map(number).collect()
}

/// Returns true if both numbers have the same bits, or both are NaN.
fn same(a: f64, b: f64) -> bool {
    a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan()
}

#[test]
fn quotients_by_shared_numbers_are_divisions() {
    let model = Model::parse(SOURCE).expect("a model");
    let rows = 10_001;
    let x = dividends(rows);
    let y: Vec<f32> = x.iter().map(|x| *x as f32).collect();
    let mut played = 0;
    for player in RowPlayer::ALL {
        let batch = model.batch(&Options::default().row_player(player)).expect("a batch");
        for s in [3.0, 0.1, 1e10, 1.0, -1.7, 0.0, -0.0, f64::INFINITY, f64::NAN, 1e-310, 1e-200, 1e300, f64::MAX] {
            let t = s as f32;
            let (shared, single) = (Value::from(s), Value::from(t));
            let columns = [
                InputColumn::values(&x),
                InputColumn::shared(&shared),
                InputColumn::values(&y),
                InputColumn::shared(&single),
            ];
            // This machine may not have the player.
            let Ok(made) = batch.run(&columns) else { continue };
            played += 1;
            let doubles: [fn(f64, f64) -> f64; 5] = [
                |x, s| x / s,
                |x, s| (x - s) / (s * 3.0 + 1.0),
                |x, _| x / 3.0,
                |x, _| x / -0.7,
                |x, s| x / s / s + x / 7.0,
            ];
            for (number, expected) in doubles.into_iter().enumerate() {
                let found = made[number].values::<f64>().expect("numbers");
                for (found, x) in found.iter().zip(&x) {
                    let expected = expected(*x, s);
                    assert!(
                        same(*found, expected),
                        "{player:?}: {number} of {x:e} by {s:e}: {found:e}, not {expected:e}"
                    );
                }
            }
            let singles: [fn(f32, f32) -> f32; 2] = [|y, t| y / t, |y, _| y / 3.0];
            for (number, expected) in singles.into_iter().enumerate() {
                let found = made[doubles.len() + number].values::<f32>().expect("numbers");
                for (found, y) in found.iter().zip(&y) {
                    let expected = expected(*y, t);
                    assert!(
                        same((*found).into(), expected.into()),
                        "{player:?}: {number} of {y:e} by {t:e}: {found:e}, not {expected:e}"
                    );
                }
            }
        }
    }
    assert!(played >= 3 * 13, "the interpreter, native rows and lanes are everywhere");
}
