//! Operators of the user: Rust functions that models call from text, as they call any other operator.
//!
//! Run it with `cargo run -p example-user-operator`. What it prints is asserted by its test, in both backends.

use cembra::operators::{Bin, Cell, Registry, Un, UserOperator};
use cembra::{Error, Limits, Model, Options, Value};
use std::io::Write;

/// The operators of the language and some of our own. Built once, at start-up: a registry and what it holds live as long as
/// the process.
fn registry() -> Result<&'static Registry, Error> {
    let mut registry = Registry::standard().clone();

    // A closure over plain scalars is strict: where an argument is missing, the result is, and the closure is not called.
    // Its types are read off its signature.
    let threshold = 100.0;
    registry.register(
        UserOperator::new("risk.excess")
            .summary("What is above the threshold.")
            .function(move |amount: f64| if amount > threshold { amount - threshold } else { 0.0 }),
    )?;

    // Several closures are overloads: the first is taken that the arguments can be cast to without a loss.
    registry.register(
        UserOperator::new("risk.digits")
            .function(|x: i64| x.to_string().len() as i64)
            .function(|x: f64| x.log10().ceil()),
    )?;

    // One that takes an `Option` sees every argument as it is, and decides itself what is missing.
    registry.register(
        UserOperator::new("risk.latest")
            .params(&["new", "old"])
            .function(|new: Option<f64>, old: Option<f64>| new.or(old).filter(|x| x.is_finite())),
    )?;

    // One that may fail gives a reason, which becomes an error of the evaluation. Branches that are not chosen do not fail.
    registry.register(UserOperator::new("risk.grade").fallible(|score: i32| match score {
        0..=100 => Ok(score / 20),
        _ => Err("a score is between 0 and 100"),
    }))?;

    // `impure`: equal arguments need not give equal results, so that calls on literals are not evaluated ahead of time.
    registry.register(UserOperator::new("risk.version").impure().function(|major: i32| major * 100 + 7))?;

    // A rule states the same meaning once more, as instructions: machine code calls nothing then. The interpreter runs the
    // closure; that both agree is ours to test. A rule of a strict operator sees values that are there. It runs once, now,
    // and a rule that could break memory is refused.
    registry.register(UserOperator::new("risk.damped").with_rule(
        |x: f64| x / (1.0 + x.abs()),
        |tape, args| {
            let x = args[0].val(tape);
            let one = tape.konst_like(x, 1.0);
            let magnitude = tape.un(Un::Abs, x);
            let divisor = tape.bin(Bin::Add, one, magnitude);
            Cell::num(tape.bin(Bin::Div, x, divisor))
        },
    ))?;

    // A text is there for the time of the call; a `String` that is the result is copied into the memory of the evaluation.
    registry.register(
        UserOperator::new("risk.label")
            .function(|grade: i32, region: &str| format!("{}-{grade}", region.to_uppercase())),
    )?;

    // A panic inside of an operator is an error of the evaluation, not the end of the process.
    registry.register(UserOperator::new("risk.half").function(|x: i32| {
        assert!(x % 2 == 0, "an odd number");
        x / 2
    }))?;
    Ok(registry.leak())
}

/// Models that call them, each with an input `x`.
const MODELS: &[(&str, f64)] = &[
    ("risk.excess(x) * 2", 130.0),
    ("risk.excess(missing[f64])", 0.0),
    ("risk.digits(12345) + risk.digits(x)", 999.0),
    ("risk.latest(missing[f64], x)", 2.5),
    ("risk.latest(new = x, old = 1)", f64::INFINITY),
    ("risk.grade(core.to_int32(x))", 85.0),
    ("risk.grade(core.to_int32(x))", 850.0),
    ("if x <= 100 then risk.grade(core.to_int32(x))", 850.0),
    ("risk.version(3)", 0.0),
    ("risk.damped(x) + risk.damped(missing[f64] ?? 1)", -3.0),
    ("risk.label(risk.grade(core.to_int32(x)), 'eu')", 85.0),
    ("risk.half(core.to_int32(x))", 3.0),
];

/// The value of a model, or its error, as text.
fn answer(source: &str, x: f64, options: &Options, registry: &'static Registry) -> Result<String, Error> {
    // The text is read with the registry, so that the names are known, and compiled with the same one.
    let model = Model::parse_with(&format!("input x: f64; {source}"), registry, &Limits::default())?;
    let executor = model.compile(options)?;
    let inputs: Vec<Value> = executor.inputs().iter().map(|_| Value::from(x)).collect();
    Ok(match executor.session().evaluate(&inputs) {
        Ok(values) => cembra::values::print_value(&values[0]),
        Err(error) => format!("error: {error}"),
    })
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let registry = registry()?;
    // The message that the panic prints is Rust's own; a service has a hook for it. The error comes back all the same.
    std::panic::set_hook(Box::new(|_| {}));
    let options = Options::default().registry(registry);
    let mut out = std::io::stdout().lock();
    for (source, x) in MODELS {
        writeln!(out, "{source}, x = {x}: {}", answer(source, *x, &options, registry)?)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use cembra::Backend;

    #[test]
    fn both_backends_give_what_is_expected() {
        let expected = [
            "60.0f64",
            "missing[f64]",
            "8.0f64",
            "f64?{2.5}",
            "missing[f64]",
            "4",
            "error: risk.grade: a score is between 0 and 100 (line 1, column 15: `risk.grade(core.to_int32(x))`)",
            "missing[i32]",
            "307",
            "-0.25f64",
            r#""EU-4""#,
            "error: risk.half: the operator panicked: an odd number (line 1, column 15: `risk.half(core.to_int32(x))`)",
        ];
        let registry = registry().expect("new names");
        for backend in [Backend::Interpreter, Backend::Native] {
            let options = Options::default().registry(registry).backend(backend);
            let found: Vec<String> =
                MODELS.iter().map(|(source, x)| answer(source, *x, &options, registry).expect("it compiles")).collect();
            assert_eq!(found, expected, "{backend:?}");
        }
    }
}
