//! Checks when accumulators and scanners (the states of aggregations and scans over strips, blocks of elements)
//! allocate memory: at the beginning of a run that has more groups than all runs before, and not while strips are added
//! or results are written.

use crate::counting;

use cembra_ops::{Finish, Grouping, Quantity, Scan, Strip, StripData, StripValues, accumulator, scanner};
use cembra_runtime::Scalar;

#[test]
fn strips_are_taken_without_allocating() {
    let values: Vec<f64> = (0..4096).map(f64::from).collect();
    let presence = vec![0x5555_7777_1111_ffff; 64];
    let points: Vec<i64> = (0..=512).map(|point| 8 * point).collect();
    let ids: Vec<i64> = (0..4096).map(|at| at * 7 % 512).collect();
    let strip = |at: usize| Strip {
        data: StripData::Float64(&values[at..at + 1024]),
        presence: Some(&presence[at / 64..]),
        len: 1024,
    };
    let mut results = vec![0.0; 4096];
    for form in 0..3 {
        let grouping = |at: usize| match form {
            0 => Grouping::Whole,
            1 => Grouping::Splits(&points),
            _ => Grouping::Mapping { groups: &ids[at..at + 1024], presence: None },
        };
        let groups = if form == 0 { 1 } else { 512 };
        for gathers in [Quantity::Sum, Quantity::Product, Quantity::Count, Quantity::Missing, Quantity::Min] {
            let mut accumulator = accumulator(gathers, Scalar::Float64).expect("it is gathered of floats");
            for run in 0..2 {
                let before_begin = counting::so_far();
                accumulator.begin(groups, 4096);
                let before = counting::so_far();
                assert!(run == 0 || before == before_begin, "{gathers:?} {form}");
                (0..4096).step_by(1024).for_each(|at| accumulator.feed(&strip(at), at, &grouping(at)));
                accumulator.end();
                if !matches!(gathers, Quantity::Count | Quantity::Missing) {
                    accumulator.result(Finish::Sparse, 0..groups, &mut StripValues::Float64(&mut results), None);
                }
                assert_eq!(counting::so_far(), before, "{gathers:?} {form}");
            }
        }
        for scan in [Scan::CumSum, Scan::CumMax] {
            let mut scanner = scanner(scan, Scalar::Float64).expect("floats are scanned");
            scanner.begin(groups, 4096);
            let before = counting::so_far();
            for at in (0..4096).step_by(1024) {
                scanner.feed(&strip(at), at, &grouping(at), &mut StripValues::Float64(&mut results[at..at + 1024]));
            }
            assert_eq!(counting::so_far(), before, "{scan:?} {form}");
        }
    }
}
