//! `versus user`: what an operator of the user costs beside a built-in operator that calls the same function. Nothing
//! here is computed in instructions: every subject calls one Rust function, and what differs is how.

use crate::measure::Effort;
use crate::record::Record;
use crate::row::row;
use crate::scalar;
use crate::subject::{self, Bare, Family, LIMIT, Scratch, Subject};
use crate::workload::{Comparison, RawFunction, Workload};
use crate::{Error, agreement};
use cembra::operators::{Cell, Registry, UserOperator};
use cembra::{Limits, Model, Optional, Options};
use cembra_runtime::{RuntimeFn, math, quantile};

/// The built-in operator.
pub const BUILT_IN: &str = "built-in";
/// An operator of the user: a closure.
pub const CLOSURE: &str = "closure";
/// An operator of the user that sees optionals itself.
pub const OPTIONAL_CLOSURE: &str = "optional-closure";
/// An operator of the user that may fail.
pub const FALLIBLE: &str = "fallible";
/// An operator of the user with a rule on the tape.
pub const RULE: &str = "rule";

/// Measures the workloads of this command.
///
/// # Errors
/// A model does not compile, or a subject gives another answer than the others.
pub fn run(effort: Effort) -> Result<Vec<Record>, Error> {
    let registry = registry()?;
    let mut records = visit::<U1>(effort, registry)?;
    records.extend(visit::<U2>(effort, registry)?);
    records.extend(visit::<U3>(effort, registry)?);
    Ok(records)
}

fn visit<W: Called>(effort: Effort, registry: &'static Registry) -> Result<Vec<Record>, Error> {
    let rows = W::ring(scalar::RING);
    let mut subjects = subjects::<W>(registry)?;
    agreement::check(&mut subjects, &rows)?;
    scalar::measure(&mut subjects, &rows, effort)
}

/// A workload that is one call.
trait Called: Workload + 'static {
    /// The function that everybody calls.
    const FUNCTION: Function;
    /// The operators that call it: name of the subject, and model.
    const MODELS: &'static [(&'static str, &'static str)];
}

/// A function of two numbers, or of one that may refuse it.
#[derive(Clone, Copy)]
union Function {
    two: fn(f64, f64) -> f64,
    one: fn(f64) -> Option<f64>,
}

/// The limit reaches the function as compiled code does: through a pointer in memory that it is given.
impl Scratch<u8> for Box<Function> {
    fn scratch(&mut self) -> (*mut u8, *mut u8) {
        (std::ptr::from_mut::<Function>(&mut **self).cast(), std::ptr::null_mut())
    }
}

fn subjects<W: Called>(registry: &'static Registry) -> Result<Vec<Box<dyn Subject<W>>>, Error> {
    let limit = Bare::new(LIMIT, Family::Limit, W::LIMIT, Box::new(W::FUNCTION));
    let mut subjects: Vec<Box<dyn Subject<W>>> = vec![Box::new(limit)];
    for (name, source) in W::MODELS {
        let options = Options::default().backend(cembra::Backend::Native).registry(registry);
        let executor = Model::parse_with(source, registry, &Limits::default())
            .and_then(|model| model.executor(&options))
            .map_err(subject::model_error::<W>)?;
        subjects.push(Box::new(subject::native::<W>(name, executor)?));
    }
    Ok(subjects)
}

fn registry() -> Result<&'static Registry, Error> {
    let operators = [
        UserOperator::new("user.fmod").function(math::fmod_f64),
        UserOperator::new("user.fmod_optional").function(|x: Option<f64>, y: Option<f64>| Some(math::fmod_f64(x?, y?))),
        UserOperator::new("user.fmod_fallible").fallible(|x, y| Ok::<f64, &'static str>(math::fmod_f64(x, y))),
        UserOperator::new("user.fmod_rule").with_rule(math::fmod_f64, |tape, args| {
            let (x, y) = (args[0].val(tape), args[1].val(tape));
            Cell::num(tape.call(RuntimeFn::FmodF64, &[x, y]))
        }),
        UserOperator::new("user.quantile").fallible(|x: f64| quantile::normal(x).ok_or("not a probability")),
    ];
    let mut registry = Registry::standard().clone();
    for operator in operators {
        registry.register(operator)?;
    }
    Ok(registry.leak())
}

/// A call of a total function: the remainder of a division.
struct U1;

impl Workload for U1 {
    const NAME: &'static str = "U1";
    const SOURCE: &'static str = "input a, b: f64; output y = fmod(a, b)";
    const INPUTS: &'static str = "a,b\n7,2\n-7.5,2\n";
    const OUTPUTS: &'static str = "y\n1\n-1.5\n";
    const COMPARISON: Comparison = Comparison::Exact;
    const LIMIT: RawFunction<u8> = remainder;
    type Input = RemainderInput;
    type Output = f64;
}

impl Called for U1 {
    const FUNCTION: Function = Function { two: math::fmod_f64 };
    const MODELS: &'static [(&'static str, &'static str)] = &[
        (BUILT_IN, Self::SOURCE),
        (CLOSURE, "input a, b: f64; output y = user.fmod(a, b)"),
        (FALLIBLE, "input a, b: f64; output y = user.fmod_fallible(a, b)"),
        (RULE, "input a, b: f64; output y = user.fmod_rule(a, b)"),
    ];
}

row! {
    /// The input of U1.
    RemainderInput { a: f64 = -10.0..10.0, b: f64 = 0.5..2.0, }
}

// SAFETY: BARE-CALL, as [`RawFunction`] says.
unsafe extern "C" fn remainder(input: *const u8, output: *mut u8, function: *mut u8, _: *mut u8) -> i32 {
    // SAFETY: BARE-CALL: the caller gives U1's structs, and the workload's function as the scratch.
    unsafe {
        let (row, function) = (&*input.cast::<RemainderInput>(), (*function.cast::<Function>()).two);
        output.cast::<f64>().write(function(row.a, row.b));
    }
    0
}

/// The same on optionals.
struct U2;

impl Workload for U2 {
    const NAME: &'static str = "U2";
    const SOURCE: &'static str = "input a, b: f64?; output y = fmod(a, b)";
    const INPUTS: &'static str = "a,b\n7,2\n-7.5,2\n7,\n";
    const OUTPUTS: &'static str = "y\n1\n-1.5\n\"\"\n";
    const COMPARISON: Comparison = Comparison::Exact;
    const LIMIT: RawFunction<u8> = optional_remainder;
    type Input = OptionalRemainderInput;
    type Output = Optional<f64>;
}

impl Called for U2 {
    const FUNCTION: Function = Function { two: math::fmod_f64 };
    const MODELS: &'static [(&'static str, &'static str)] = &[
        (BUILT_IN, Self::SOURCE),
        (CLOSURE, "input a, b: f64?; output y = user.fmod(a, b)"),
        (OPTIONAL_CLOSURE, "input a, b: f64?; output y = user.fmod_optional(a, b)"),
        (FALLIBLE, "input a, b: f64?; output y = user.fmod_fallible(a, b)"),
        (RULE, "input a, b: f64?; output y = user.fmod_rule(a, b)"),
    ];
}

row! {
    /// The input of U2.
    OptionalRemainderInput { a: Optional<f64> = -10.0..10.0, b: Optional<f64> = 0.5..2.0, }
}

// SAFETY: BARE-CALL, as [`RawFunction`] says.
unsafe extern "C" fn optional_remainder(input: *const u8, output: *mut u8, function: *mut u8, _: *mut u8) -> i32 {
    // SAFETY: BARE-CALL: the caller gives U2's structs, and the workload's function as the scratch.
    unsafe {
        let (row, function) = (&*input.cast::<OptionalRemainderInput>(), (*function.cast::<Function>()).two);
        let answer = match (row.a.get(), row.b.get()) {
            (Some(a), Some(b)) => Optional::present(function(a, b)),
            _ => Optional::missing(),
        };
        output.cast::<Optional<f64>>().write(answer);
    }
    0
}

/// A call of a function that may refuse its argument, which the built-in operator leaves to its kernel.
struct U3;

impl Workload for U3 {
    const NAME: &'static str = "U3";
    const SOURCE: &'static str = "input a: f64; output y = normal_distribution_inverse_cdf(a)";
    const INPUTS: &'static str = "a\n0.5\n";
    const OUTPUTS: &'static str = "y\n0\n";
    const COMPARISON: Comparison = Comparison::Exact;
    const LIMIT: RawFunction<u8> = normal_quantile;
    type Input = QuantileInput;
    type Output = f64;
}

impl Called for U3 {
    const FUNCTION: Function = Function { one: quantile::normal };
    const MODELS: &'static [(&'static str, &'static str)] =
        &[(BUILT_IN, Self::SOURCE), (FALLIBLE, "input a: f64; output y = user.quantile(a)")];
}

row! {
    /// The input of U3.
    QuantileInput { a: f64 = 0.0..1.0, }
}

// SAFETY: BARE-CALL, as [`RawFunction`] says.
unsafe extern "C" fn normal_quantile(input: *const u8, output: *mut u8, function: *mut u8, _: *mut u8) -> i32 {
    // SAFETY: BARE-CALL: the caller gives U3's structs, and the workload's function as the scratch.
    unsafe {
        let (row, function) = (&*input.cast::<QuantileInput>(), (*function.cast::<Function>()).one);
        match function(row.a) {
            Some(answer) => output.cast::<f64>().write(answer),
            None => return 1,
        }
    }
    0
}
