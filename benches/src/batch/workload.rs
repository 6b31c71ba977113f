//! The workloads of columns: models with rows at random as structs and as columns, expected outputs, and the limit by hand.

use super::columns::{Columns, DOUBLE, Kind, OPTIONAL_DOUBLE, OPTIONAL_SINGLE, SINGLE};
use crate::Error;
use crate::row::{Answer, Fields, Row, answer, row};
use crate::workload::{Comparison, LinearInput, ProductsInput, QuadraticInput, Roots, RulesInput, ScoringInput, read};

/// The signature of the limit: rows, addresses of the input columns, addresses of the output columns.
///
/// # Safety
/// BARE-COLUMNS: the columns are the workload's.
pub type ColumnsFunction = unsafe extern "C" fn(rows: usize, inputs: *const *const u8, outputs: *const *mut u8);

/// The limit of a workload.
#[derive(Clone, Copy)]
pub struct Limits {
    /// Vectors of 512 bits, by hand.
    pub wide: ColumnsFunction,
    /// Vectors of 256 bits, by hand.
    pub narrow: ColumnsFunction,
    /// Plain Rust, as the compiler vectorises it for this processor.
    pub plain: ColumnsFunction,
}

/// A model over columns.
pub trait Batch: 'static {
    /// The name in tables and records.
    const NAME: &'static str;
    /// The model as text.
    const SOURCE: &'static str;
    /// Rows of input as CSV.
    const INPUTS: &'static str;
    /// Their outputs.
    const OUTPUTS: &'static str;
    /// How outputs are compared with the expected ones, and those of the limit with cembra's.
    const COMPARISON: Comparison;
    /// The types of the inputs.
    const INPUT_KINDS: &'static [Kind];
    /// The types of the outputs.
    const OUTPUT_KINDS: &'static [Kind];
    /// The formula by hand.
    const LIMITS: Option<Limits>;
    /// The share of arguments that are special: zeros, infinities, NaN, tiny, huge and negative ones.
    const SPECIAL: f64 = 0.0;
    /// One row of inputs.
    type Input: Row + for<'r> cembra::Input<At<'r> = Self::Input> + Sync;
    /// One row of outputs.
    type Output: Answer + cembra::Output + Send;

    /// Bytes read and written for a row.
    #[must_use]
    fn bytes_per_row() -> f64 {
        Self::INPUT_KINDS.iter().chain(Self::OUTPUT_KINDS).map(|kind| kind.bits() as f64 / 8.0).sum()
    }
}

/// Rows as structs and as columns.
pub struct Rows<W: Batch> {
    /// As structs: all, or those that are repeated.
    pub structs: Vec<W::Input>,
    /// As columns.
    pub columns: Columns,
}

impl<W: Batch> Rows<W> {
    /// The same rows as columns.
    #[must_use]
    pub fn new(structs: Vec<W::Input>) -> Self {
        let mut columns = Columns::new(W::INPUT_KINDS, structs.len());
        let mut values = vec![None; W::INPUT_KINDS.len()];
        for (at, row) in structs.iter().enumerate() {
            row.write_floats(&mut values);
            columns.set_row(at, &values);
        }
        Rows { structs, columns }
    }

    /// Rows at random, the same in every run, with these values among them if the workload has special ones.
    ///
    /// # Errors
    /// None, unless a special value is none of the input's type.
    pub fn random(rows: usize, special_values: &[f64]) -> Result<Self, Error> {
        let mut random = fastrand::Rng::with_seed(0x6261_7463_6800);
        let drawn = (0..rows).map(|_| W::Input::random(&mut random)).collect::<Vec<_>>();
        if W::SPECIAL == 0.0 {
            return Ok(Rows::new(drawn));
        }
        let names = csv::StringRecord::from(W::Input::NAMES.to_vec());
        let mut values = vec![None; W::Input::NAMES.len()];
        let mut special = |row: W::Input| {
            row.write_floats(&mut values);
            let field = |value: &Option<f64>| {
                let chosen = special_values[random.usize(..special_values.len())];
                let value = if random.f64() < W::SPECIAL { Some(chosen) } else { *value };
                value.map_or(String::new(), |value| value.to_string())
            };
            let record = values.iter().map(field).collect::<csv::StringRecord>();
            W::Input::parse(&mut Fields::new(&names, &record))
        };
        drawn.into_iter().map(&mut special).collect::<Result<_, _>>().map(Rows::new)
    }

    /// The workload's file.
    ///
    /// # Errors
    /// The files cannot be read as such rows, or differ in length.
    pub fn expected() -> Result<(Self, Columns), Error> {
        let inputs = read(W::INPUTS, W::Input::parse)?;
        let answers = read(W::OUTPUTS, W::Output::parse)?;
        if inputs.len() != answers.len() {
            return Err(Error::Lengths { inputs: inputs.len(), outputs: answers.len() });
        }
        let mut outputs = Columns::new(W::OUTPUT_KINDS, answers.len());
        for (row, answer) in answers.into_iter().enumerate() {
            outputs.set_row(row, &answer.values());
        }
        Ok((Rows::new(inputs), outputs))
    }

    /// So many rows: these over and over, if there are fewer. Only columns are longer.
    #[must_use]
    pub fn taken(&self, rows: usize) -> Self {
        let structs = self.structs[..rows.min(self.structs.len())].to_vec();
        if rows <= self.structs.len() {
            return Rows::new(structs);
        }
        Rows { structs, columns: self.columns.repeated(rows) }
    }
}

/// What special arguments are where time is measured.
pub const SPECIAL_VALUES: &[f64] = &[0.0, -0.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, -1.5];
/// And where outputs are compared: with subnormal numbers, for which processors take a hundred times as long.
pub const RARE_VALUES: &[f64] =
    &[0.0, -0.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, -1.5, -1.0, 1e-42, 1e-310, 5e-324, 1e30, 3e38, 1e308];

/// Something done for workloads of different types.
pub trait BatchVisitor {
    /// Does it for one workload.
    ///
    /// # Errors
    /// Whatever stops the whole tour.
    fn visit<W: Batch>(&mut self) -> Result<(), Error>;
}

/// The functions of one name in the limit's crates.
macro_rules! limits {
    ($name:ident) => {
        Some(Limits {
            wide: cembra_limit_columns_512::$name,
            narrow: cembra_limit_columns_256::$name,
            plain: cembra_limit_columns_plain::$name,
        })
    };
}

/// Defines workloads: a name, the files' name, and what [`Batch`] asks for.
macro_rules! workloads {
    ($($name:ident $file:literal, $label:literal, $special:expr, $comparison:expr, $limits:expr,
        $input:ident $kinds:expr => $output:ty, $output_kinds:expr;)*) => {$(
        #[doc = concat!("The workload ", $label, ".")]
        pub struct $name;

        impl Batch for $name {
            const NAME: &'static str = $label;
            const SOURCE: &'static str = include_str!(concat!("../../workloads/", $file, ".cem"));
            const INPUTS: &'static str = include_str!(concat!("../../workloads/", $file, ".in.csv"));
            const OUTPUTS: &'static str = include_str!(concat!("../../workloads/", $file, ".out.csv"));
            const COMPARISON: Comparison = $comparison;
            const INPUT_KINDS: &'static [Kind] = &$kinds;
            const OUTPUT_KINDS: &'static [Kind] = &$output_kinds;
            const LIMITS: Option<Limits> = $limits;
            const SPECIAL: f64 = $special;
            type Input = $input;
            type Output = $output;
        }
    )*};
}

/// Bit for bit.
const EXACT: Comparison = Comparison::Exact;
/// What FLOAT32 functions come to.
const NEAR_SINGLE: Comparison = Comparison::Relative(2e-6);
/// What FLOAT64 functions come to.
const NEAR_DOUBLE: Comparison = Comparison::Relative(1e-12);
/// The same where a difference may be nearly nothing.
const NEAR_PRICE: Comparison = Comparison::Near(1e-12);

/// The share of special arguments.
const A_TENTH: f64 = 0.1;

workloads! {
    B1 "B1", "B1", 0.0, EXACT, limits!(b1), MultiplyAddInput [DOUBLE; 3] => f64, [DOUBLE];
    B2 "S2", "B2", 0.0, EXACT, limits!(b2), QuadraticInput [SINGLE, DOUBLE, DOUBLE] => Roots, [OPTIONAL_DOUBLE; 2];
    B3 "S3", "B3", 0.0, NEAR_SINGLE, limits!(b3), ScoringInput [OPTIONAL_SINGLE; 10] => f32, [SINGLE];
    B3Special "S3", "B3-special", A_TENTH, NEAR_SINGLE, limits!(b3), ScoringInput [OPTIONAL_SINGLE; 10] => f32, [SINGLE];
    B4Single "B4f32", "B4f32", 0.0, NEAR_SINGLE, limits!(b4_single), SingleInput [SINGLE] => f32, [SINGLE];
    B4Double "B4f64", "B4f64", 0.0, NEAR_DOUBLE, limits!(b4_double), DoubleInput [DOUBLE] => f64, [DOUBLE];
    B5 "B5", "B5", 0.0, NEAR_PRICE, limits!(b5), OptionInput [DOUBLE; 3] => Price, [DOUBLE];
    B5Special "B5", "B5-special", A_TENTH, NEAR_PRICE, limits!(b5), OptionInput [DOUBLE; 3] => Price, [DOUBLE];
    S1 "S1", "S1", 0.0, EXACT, None, LinearInput [DOUBLE] => f64, [DOUBLE];
    S2 "S2", "S2", 0.0, EXACT, limits!(b2), QuadraticInput [SINGLE, DOUBLE, DOUBLE] => Roots, [OPTIONAL_DOUBLE; 2];
    S3 "S3", "S3", 0.0, NEAR_SINGLE, limits!(b3), ScoringInput [OPTIONAL_SINGLE; 10] => f32, [SINGLE];
    S4 "S4", "S4", 0.0, EXACT, None, ProductsInput [DOUBLE; 32] => f64, [DOUBLE];
    S5 "S5", "S5", 0.0, EXACT, limits!(s5), RulesInput [DOUBLE; 6] => f64, [DOUBLE];
    R1k "R1k", "R1k", 0.0, EXACT, None, RulesInput [DOUBLE; 6] => f64, [DOUBLE];
}

/// Visits the workloads of columns, in the order of reports.
///
/// # Errors
/// The first error of the visitor.
pub fn visit_columns(visitor: &mut impl BatchVisitor) -> Result<(), Error> {
    visitor.visit::<B1>()?;
    visitor.visit::<B2>()?;
    visitor.visit::<B3>()?;
    visitor.visit::<B3Special>()?;
    visitor.visit::<B4Single>()?;
    visitor.visit::<B4Double>()?;
    visitor.visit::<B5>()?;
    visitor.visit::<B5Special>()
}

/// Visits the workloads of structs.
///
/// # Errors
/// The first error of the visitor.
pub fn visit_structs(visitor: &mut impl BatchVisitor) -> Result<(), Error> {
    visitor.visit::<S1>()?;
    visitor.visit::<S2>()?;
    visitor.visit::<S3>()?;
    visitor.visit::<S4>()?;
    visitor.visit::<S5>()?;
    visitor.visit::<R1k>()
}

row! {
    /// The input of B1.
    MultiplyAddInput { a: f64 = 0.0..1.0, b: f64 = 0.0..1.0, c: f64 = 0.0..1.0, }
}

row! {
    /// The input of B4 in FLOAT32.
    SingleInput { x: f32 = -8.0..8.0, }
}

row! {
    /// The input of B4 in FLOAT64.
    DoubleInput { x: f64 = -8.0..8.0, }
}

row! {
    /// The input of B5.
    OptionInput { s: f64 = 50.0..150.0, k: f64 = 50.0..150.0, t: f64 = 0.1..2.0, }
}

answer! {
    /// The output of B5.
    Price { call: f64, }
}
