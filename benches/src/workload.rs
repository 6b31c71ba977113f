//! The workloads as data: text, expected rows, types of input and output, ranges of random inputs, how answers are
//! compared, and the hand-written limit of each. A workload is added here, and to `limit/limit.rs`, and nowhere else.

use crate::Error;
use crate::row::{Answer, Fields, Row, answer, row};
use cembra::Optional;

/// The signature of compiled code, over a context of any kind: input struct, output struct, frame, context; 0 is success.
///
/// # Safety
/// BARE-CALL: the structs are the workload's; frame and context are those of the function's executor, or scratch memory.
pub type RawFunction<C> =
    unsafe extern "C" fn(input: *const u8, output: *mut u8, frame: *mut u8, context: *mut C) -> i32;

/// How the answers of two subjects are compared.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Comparison {
    /// Same bits, except that one NaN is as good as another.
    Exact,
    /// At most this far apart, relative to the expected value.
    Relative(f64),
    /// At most this far apart, relative to the expected value or to 1.
    Near(f64),
}

impl Comparison {
    /// True if `found` may stand for `expected`. Both are lists of values, nothing where one is missing.
    #[must_use]
    pub fn accepts(self, expected: &[Option<f64>], found: &[Option<f64>]) -> bool {
        expected.len() == found.len()
            && expected.iter().zip(found).all(|pair| match pair {
                (Some(expected), Some(found)) if expected.is_nan() => found.is_nan(),
                (Some(expected), Some(found)) => match self {
                    Comparison::Exact => expected.to_bits() == found.to_bits(),
                    _ if expected == found => true,
                    Comparison::Relative(share) => (expected - found).abs() <= share * expected.abs(),
                    Comparison::Near(share) => (expected - found).abs() <= share * expected.abs().max(1.0),
                },
                (expected, found) => expected.is_none() && found.is_none(),
            })
    }
}

/// A row of inputs and its outputs.
pub type Example<W> = (<W as Workload>::Input, <W as Workload>::Output);

/// A model of one row at a time.
pub trait Workload {
    /// The name in tables, records and file names.
    const NAME: &'static str;
    /// The model as text.
    const SOURCE: &'static str;
    /// Rows of input as CSV.
    const INPUTS: &'static str;
    /// The expected outputs of these rows, in the same order.
    const OUTPUTS: &'static str;
    /// How answers are compared with the expected ones and with the limit's.
    const COMPARISON: Comparison;
    /// The formula by hand, compiled for this processor.
    const LIMIT: RawFunction<u8>;
    /// The same, compiled for the baseline of the architecture.
    const LIMIT_BASELINE: RawFunction<u8> = Self::LIMIT;
    /// Compiled for this processor, with mathematical functions written out instead of the platform's.
    const LIMIT_INLINED: RawFunction<u8> = Self::LIMIT;
    /// One row of inputs.
    type Input: Row + for<'r> cembra::Input<At<'r> = Self::Input>;
    /// One row of outputs.
    type Output: Answer + cembra::Output;

    /// The rows of [`Workload::INPUTS`] with their expected outputs.
    ///
    /// # Errors
    /// The files cannot be read as such rows, or differ in length.
    fn expected() -> Result<Vec<Example<Self>>, Error>
    where
        Self: Sized,
    {
        let inputs = read(Self::INPUTS, Self::Input::parse)?;
        let outputs = read(Self::OUTPUTS, Self::Output::parse)?;
        if inputs.len() != outputs.len() {
            return Err(Error::Lengths { inputs: inputs.len(), outputs: outputs.len() });
        }
        Ok(inputs.into_iter().zip(outputs).collect())
    }

    /// Random rows, the same in every run.
    fn ring(rows: usize) -> Vec<Self::Input> {
        let mut random = fastrand::Rng::with_seed(0x6365_6d62_7261);
        (0..rows).map(|_| Self::Input::random(&mut random)).collect()
    }
}

/// Rows of a CSV text.
pub(crate) fn read<T>(text: &str, parse: impl Fn(&mut Fields<'_>) -> Result<T, Error>) -> Result<Vec<T>, Error> {
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let names = reader.headers()?.clone();
    let mut rows = Vec::new();
    for record in reader.records() {
        rows.push(parse(&mut Fields::new(&names, &record?))?);
    }
    Ok(rows)
}

/// Something done for workloads of different types.
pub trait Visitor {
    /// Does it for one workload.
    ///
    /// # Errors
    /// Whatever stops the whole tour.
    fn visit<W: Workload + 'static>(&mut self) -> Result<(), Error>;
}

/// Defines the workloads, in the order of reports.
macro_rules! workloads {
    ($($name:ident, $limit:ident, $comparison:expr, $input:ident -> $output:ty;)*) => {
        $(
            #[doc = concat!("The workload `", stringify!($name), "`.")]
            pub struct $name;

            impl Workload for $name {
                const NAME: &'static str = stringify!($name);
                const SOURCE: &'static str = include_str!(concat!("../workloads/", stringify!($name), ".cem"));
                const INPUTS: &'static str = include_str!(concat!("../workloads/", stringify!($name), ".in.csv"));
                const OUTPUTS: &'static str = include_str!(concat!("../workloads/", stringify!($name), ".out.csv"));
                const COMPARISON: Comparison = $comparison;
                const LIMIT: RawFunction<u8> = cembra_limit::$limit;
                const LIMIT_BASELINE: RawFunction<u8> = cembra_limit_baseline::$limit;
                const LIMIT_INLINED: RawFunction<u8> = cembra_limit_inlined::$limit;
                type Input = $input;
                type Output = $output;
            }
        )*

        /// Visits the workloads, in the order of reports.
        ///
        /// # Errors
        /// The first error of the visitor.
        pub fn visit_all(visitor: &mut impl Visitor) -> Result<(), Error> {
            $(visitor.visit::<$name>()?;)*
            Ok(())
        }
    };
}

workloads! {
    S1, s1, Comparison::Exact, LinearInput -> f64;
    S2, s2, Comparison::Exact, QuadraticInput -> Roots;
    S3, s3, Comparison::Relative(2e-6), ScoringInput -> f32;
    S4, s4, Comparison::Exact, ProductsInput -> f64;
    S5, s5, Comparison::Exact, RulesInput -> f64;
}

row! {
    /// The input of S1.
    LinearInput { x: f64 = -10.0..10.0, }
}

row! {
    /// The input of S2.
    QuadraticInput { a: f32 = 0.5..2.0, b: f64 = -4.0..4.0, c: f64 = -1.0..2.0, }
}

answer! {
    /// The output of S2.
    Roots { first: Optional<f64>, second: Optional<f64>, }
}

row! {
    /// The input of S3.
    ScoringInput {
        x0: Optional<f32> = -2.0..6.0,
        x1: Optional<f32> = -2.0..6.0,
        x2: Optional<f32> = -2.0..6.0,
        x3: Optional<f32> = -2.0..6.0,
        x4: Optional<f32> = -2.0..6.0,
        x5: Optional<f32> = -2.0..6.0,
        x6: Optional<f32> = -2.0..6.0,
        x7: Optional<f32> = -2.0..6.0,
        x8: Optional<f32> = -2.0..6.0,
        x9: Optional<f32> = -2.0..6.0,
    }
}

row! {
    /// The input of S4.
    ProductsInput {
        x0: f64 = -1.0..1.0,
        x1: f64 = -1.0..1.0,
        x2: f64 = -1.0..1.0,
        x3: f64 = -1.0..1.0,
        x4: f64 = -1.0..1.0,
        x5: f64 = -1.0..1.0,
        x6: f64 = -1.0..1.0,
        x7: f64 = -1.0..1.0,
        x8: f64 = -1.0..1.0,
        x9: f64 = -1.0..1.0,
        x10: f64 = -1.0..1.0,
        x11: f64 = -1.0..1.0,
        x12: f64 = -1.0..1.0,
        x13: f64 = -1.0..1.0,
        x14: f64 = -1.0..1.0,
        x15: f64 = -1.0..1.0,
        x16: f64 = -1.0..1.0,
        x17: f64 = -1.0..1.0,
        x18: f64 = -1.0..1.0,
        x19: f64 = -1.0..1.0,
        x20: f64 = -1.0..1.0,
        x21: f64 = -1.0..1.0,
        x22: f64 = -1.0..1.0,
        x23: f64 = -1.0..1.0,
        x24: f64 = -1.0..1.0,
        x25: f64 = -1.0..1.0,
        x26: f64 = -1.0..1.0,
        x27: f64 = -1.0..1.0,
        x28: f64 = -1.0..1.0,
        x29: f64 = -1.0..1.0,
        x30: f64 = -1.0..1.0,
        x31: f64 = -1.0..1.0,
    }
}

row! {
    /// The input of S5.
    RulesInput {
        x0: f64 = 0.0..1.0,
        x1: f64 = 0.0..1.0,
        x2: f64 = 0.0..1.0,
        x3: f64 = 0.0..1.0,
        x4: f64 = 0.0..1.0,
        x5: f64 = 0.0..1.0,
    }
}
