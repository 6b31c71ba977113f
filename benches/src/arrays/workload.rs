//! The workloads of arrays as data: models with random inputs of any size, how outputs are compared, and the limits of each. A
//! workload is added here, and to `limit/columns/arrays/`, and nowhere else.

use super::limit::{self, Limit};
use crate::workload::Comparison;
use cembra::values::ArrayKind;
use cembra::{Array, Edge, Scalar, Value};
use fastrand::Rng;

/// Values for the inputs of a model, by name, in order of declaration.
pub type Inputs = Vec<(String, Value)>;

/// A model over arrays.
pub struct ArrayWorkload {
    /// The name in tables, records and file names.
    pub name: &'static str,
    /// The model as text.
    pub source: &'static str,
    /// Random inputs of so many rows.
    draw: fn(&mut Draw) -> Vec<(&'static str, Value)>,
    /// How outputs are compared with the expected ones, and those of the limits with cembra's.
    pub comparison: Comparison,
    /// Bytes of a row that are read or written at least once, but for bits of presence and what there is of groups.
    pub bytes_per_row: f64,
    /// The definition by hand; the first is what ratios refer to.
    pub limits: &'static [Limit],
}

/// The workloads, in the order of reports.
pub const WORKLOADS: [ArrayWorkload; 8] = [
    ArrayWorkload {
        name: "A1",
        source: include_str!("../../workloads/A1.cem"),
        draw: |draw| {
            vec![
                ("x", draw.some(|random| normal(random, 0.0, 1.0))),
                ("y", draw.all(|random| 2.0 * random.f64() - 1.0)),
            ]
        },
        comparison: Comparison::Relative(1e-12),
        bytes_per_row: 16.0,
        limits: &[limit::A1],
    },
    ArrayWorkload {
        name: "A2",
        source: include_str!("../../workloads/A2.cem"),
        draw: |draw| vec![("x", draw.some(|random| normal(random, 10.0, 3.0)))],
        // Scores are below 5. Without AVX-512 the limit adds in another order, and is 6e-13 away.
        comparison: Comparison::Near(2e-12),
        bytes_per_row: 16.0,
        limits: &[limit::A2],
    },
    ArrayWorkload {
        name: "A3",
        source: include_str!("../../workloads/A3.cem"),
        draw: |draw| {
            let (x, w) = (draw.all(|random| normal(random, 1.0, 1.0)), draw.all(Rng::f64));
            vec![("x", x), ("w", w), ("by", draw.mapping(true))]
        },
        comparison: Comparison::Exact,
        bytes_per_row: 24.0,
        limits: &[limit::A3],
    },
    ArrayWorkload {
        name: "A4",
        source: include_str!("../../workloads/A4.cem"),
        draw: |draw| vec![("x", draw.all(|random| normal(random, 0.0, 3.0))), ("by", draw.splits(200))],
        comparison: Comparison::Relative(1e-13),
        bytes_per_row: 16.0,
        limits: &[limit::A4],
    },
    ArrayWorkload {
        name: "A5",
        source: include_str!("../../workloads/A5.cem"),
        draw: |draw| vec![("x", draw.some(|random| normal(random, 0.0, 1.0)))],
        comparison: Comparison::Exact,
        bytes_per_row: 24.0,
        limits: &[limit::A5, limit::A5_ANY_ORDER],
    },
    ArrayWorkload {
        name: "A6",
        source: include_str!("../../workloads/A6.cem"),
        draw: |draw| vec![("x", draw.all(|random| normal(random, 0.0, 3.0))), ("by", draw.splits(200))],
        comparison: Comparison::Exact,
        bytes_per_row: 8.0,
        limits: &[limit::A6],
    },
    ArrayWorkload {
        name: "A7",
        source: include_str!("../../workloads/A7.cem"),
        draw: |draw| vec![("x", draw.singles(2.0)), ("k", Value::from(1.5_f32)), ("c", Value::from(-0.25_f32))],
        comparison: Comparison::Relative(3e-7),
        bytes_per_row: 4.0,
        limits: &[limit::A7],
    },
    ArrayWorkload {
        name: "A8",
        source: include_str!("../../workloads/A8.cem"),
        draw: |draw| vec![("x", draw.all(|random| normal(random, 0.0, 4.0))), ("by", draw.mapping(false))],
        comparison: Comparison::Exact,
        bytes_per_row: 16.0,
        limits: &[limit::A8],
    },
];

/// One request of twenty elements.
pub const REQUEST: ArrayWorkload = ArrayWorkload {
    name: "Q20",
    source: include_str!("../../workloads/Q20.cem"),
    draw: |draw| {
        let amount = |most: f64| move |random: &mut Rng| most * random.f64();
        let optional = [("price", 90.0), ("margin", 0.3), ("clicks", 40.0), ("views", 900.0), ("buys", 5.0)];
        let full = [("rating", 5.0), ("age", 300.0), ("stock", 8.0), ("boost", 1.0), ("distance", 60.0)];
        let mut inputs: Vec<_> = optional.map(|(name, most)| (name, draw.some(amount(most)))).into();
        inputs.extend(full.map(|(name, most)| (name, draw.all(amount(most)))));
        inputs.push(("by", draw.splits(8)));
        inputs
    },
    comparison: Comparison::Relative(1e-13),
    bytes_per_row: 88.0,
    limits: &[limit::Q20],
};

impl ArrayWorkload {
    /// Random inputs of so many rows, the same in every run.
    #[must_use]
    pub fn inputs(&self, rows: usize, seed: u64) -> Inputs {
        let mut draw = Draw { rows, random: Rng::with_seed(0x6172_7261_7900 ^ seed) };
        (self.draw)(&mut draw).into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }
}

/// What inputs are drawn with.
struct Draw {
    rows: usize,
    random: Rng,
}

/// The share of elements that are missing where some are.
const MISSING: f64 = 0.2;
/// The share of elements that are in no group where some are.
const IN_NONE: f64 = 0.01;
/// Elements of a group that elements name, on average.
const MAPPED: usize = 100;

impl Draw {
    /// All elements there.
    fn all(&mut self, element: impl Fn(&mut Rng) -> f64) -> Value {
        self.array(None, element)
    }

    /// A fifth of them missing.
    fn some(&mut self, element: impl Fn(&mut Rng) -> f64) -> Value {
        let presence = self.bits(MISSING);
        self.array(Some(presence), element)
    }

    fn array(&mut self, presence: Option<Vec<u64>>, element: impl Fn(&mut Rng) -> f64) -> Value {
        let write = |all: &mut [f64]| all.iter_mut().for_each(|one| *one = element(&mut self.random));
        dense(Array::of_numbers(Scalar::Float64, self.rows, presence, write))
    }

    fn singles(&mut self, deviation: f64) -> Value {
        let write =
            |all: &mut [f32]| all.iter_mut().for_each(|one| *one = normal(&mut self.random, 0.0, deviation) as f32);
        dense(Array::of_numbers(Scalar::Float32, self.rows, None, write))
    }

    /// A bit for each row, but for a share of them.
    fn bits(&mut self, unset: f64) -> Vec<u64> {
        let mut bits = vec![0; self.rows.div_ceil(64)];
        for row in 0..self.rows {
            bits[row / 64] |= u64::from(self.random.f64() >= unset) << (row % 64);
        }
        bits
    }

    /// Groups that elements name at random; with holes, some are in none, and one group is empty.
    fn mapping(&mut self, has_holes: bool) -> Value {
        let groups = (self.rows / MAPPED).max(2);
        let presence = has_holes.then(|| self.bits(IN_NONE));
        let write = |all: &mut [i64]| {
            for one in all {
                let group = self.random.usize(..groups - usize::from(has_holes));
                // The second is the empty one.
                *one = (group + usize::from(has_holes && group > 0)) as i64;
            }
        };
        let mapping = Array::of_numbers(Scalar::Int64, self.rows, presence, write);
        let edge = mapping.and_then(|mapping| Edge::from_mapping(ArrayKind::Dense, mapping, groups).ok());
        edge.map_or(Value::Nothing, Value::from)
    }

    /// Contiguous groups of 1 to so many elements.
    fn splits(&mut self, most: usize) -> Value {
        let (mut sizes, mut left) = (Vec::new(), self.rows);
        while left > 0 {
            let size = self.random.usize(1..=most).min(left);
            sizes.push(size as i64);
            left -= size;
        }
        Edge::from_sizes(ArrayKind::Dense, sizes).map_or(Value::Nothing, Value::from)
    }
}

fn dense(array: Option<Array>) -> Value {
    array.map_or(Value::Nothing, |array| Value::Array(ArrayKind::Dense, array.into()))
}

/// A number of a normal distribution.
fn normal(random: &mut Rng, mean: f64, deviation: f64) -> f64 {
    let (radius, angle) = ((-2.0 * (1.0 - random.f64()).ln()).sqrt(), std::f64::consts::TAU * random.f64());
    mean + deviation * radius * angle.cos()
}
