//! Conditionals that are computed whole: with machine code that takes one of two floats in vector registers, the same bits
//! come out as of branches, for every kind of number, whoever else uses what is selected or compared.

use cembra::explain::Stage;
use cembra::{Backend, Model, Options, QType, Scalar, ScalarValue, Value};
use cembra_runtime::RuntimeFn;

/// Numbers of which every pair is tried: both sides of each constant of the models, and what compares unlike numbers.
const NUMBERS: [f64; 12] =
    [f64::NAN, 0.0, -0.0, 0.25, -0.25, 0.5, 2.0, -2.0, f64::INFINITY, f64::NEG_INFINITY, f64::MIN_POSITIVE, -1e-310];

/// Evaluates a model of two inputs in both backends, with conditionals as selections and as branches: always what
/// `expected` says, on bits but for those of a NaN. The machine code must be of the kind that is tested.
fn check(text: &str, expected: fn(f64, f64) -> Vec<Value>) {
    let model = Model::parse(text).expect("a model");
    if cfg!(target_arch = "x86_64") {
        let clif = model.explain(&Options::default(), Stage::Clif).expect("a listing");
        assert!(clif.contains("bitselect"), "nothing is selected in vectors:\n{clif}");
    }
    let pairs: Vec<[f64; 2]> = NUMBERS.iter().flat_map(|x| NUMBERS.map(|y| [*x, y])).collect();
    let mut answers = Vec::new();
    for backend in [Backend::Native, Backend::Interpreter] {
        for options in [Options::default(), Options::default().without_pass("select")] {
            answers.push(evaluate(&model, &options.backend(backend), &pairs));
        }
    }
    for (at, [x, y]) in pairs.into_iter().enumerate() {
        for found in &answers {
            let found: Vec<Value> = found[at].iter().cloned().map(with_one_nan).collect();
            assert_eq!(found, expected(x, y), "for {x} and {y}");
        }
    }
}

fn evaluate(model: &Model, options: &Options, pairs: &[[f64; 2]]) -> Vec<Vec<Value>> {
    let executor = model.compile(options).expect("a model that fits");
    let types: Vec<QType> = executor.inputs().iter().map(|input| input.qtype.clone()).collect();
    let mut session = executor.session();
    let mut answer = |pair: &[f64; 2]| {
        let narrow = |(number, qtype): (&f64, &QType)| match *qtype == QType::FLOAT32 {
            true => Value::from(*number as f32),
            false => Value::from(*number),
        };
        let inputs: Vec<Value> = pair.iter().zip(&types).map(narrow).collect();
        session.evaluate(&inputs).expect("no fault")
    };
    pairs.iter().map(&mut answer).collect()
}

/// The same with the NaN that `f64::NAN` is for every NaN: which of two NaNs a sum in Rust is, and with which sign, is not
/// said: it differs with how the interpreter is compiled.
fn with_one_nan(value: Value) -> Value {
    match value {
        Value::Scalar(ScalarValue::Float64(x)) if x.is_nan() => Value::from(f64::NAN),
        Value::Scalar(ScalarValue::Float32(x)) if x.is_nan() => Value::from(f32::NAN),
        other => other,
    }
}

#[test]
fn nested_rules_with_two_conditions() {
    check(
        "input x, y: f64
         let a = where((x < 0.25) and (y > 0.5), x * 2.5 + y, y * 0.5)
         let b = where((y <= -0.25) or (x >= 2), y - x * 1.5, a)
         let c = where(x == y, x + 0.25, b)
         output z = where(y != 0.25, c, x * -3.0)",
        |x, y| {
            let z = if y == 0.25 {
                x * -3.0
            } else if x == y {
                x + 0.25
            } else if y <= -0.25 || x >= 2.0 {
                y - x * 1.5
            } else if x < 0.25 && y > 0.5 {
                x * 2.5 + y
            } else {
                y * 0.5
            };
            vec![with_one_nan(Value::from(z))]
        },
    );
}

#[test]
fn what_others_use_too() {
    // The arms, a comparison and an inner selection are outputs of their own, a root waits behind a selection, and the
    // logarithm's rare calls lie between what is put into vectors and what uses it.
    check(
        "input x, y: f64
         let low = x < 0.25
         let arm = x * 2.5 + y
         let inner = where(low, arm, -y)
         let slow = math.log1p(abs(inner))
         output first = low
         output second = arm
         output third = inner
         output fourth = slow + where(y < x, where(low, inner - 1, x * 3), where(low, arm * 2, -x))
         output fifth = sqrt(where(low, arm, x))",
        |x, y| {
            let low = x < 0.25;
            let arm = x * 2.5 + y;
            let inner = if low { arm } else { -y };
            // SAFETY: STRING-VIEW: a function of a number.
            let slow = f64::from_bits(unsafe { RuntimeFn::Log1pF64.call_on_bits(&[inner.abs().to_bits()]) });
            let fourth = slow
                + match (y < x, low) {
                    (true, true) => inner - 1.0,
                    (true, false) => x * 3.0,
                    (false, true) => arm * 2.0,
                    (false, false) => -x,
                };
            let fifth = if low { arm } else { x }.sqrt();
            let first = if low { Value::Present(ScalarValue::Unit) } else { Value::Missing(Scalar::Unit) };
            let numbers = [arm, inner, fourth, fifth].map(|number| with_one_nan(Value::from(number)));
            [vec![first], numbers.to_vec()].concat()
        },
    );
}

#[test]
fn narrow_numbers() {
    check(
        "numbers f32
         input x, y: f32
         let a = where((x < 0.25) and (y > 0.5), x * 2.5 + y, abs(y))
         let b = where(y < x, -x - 1.5, a)
         output z = where((x > 0.5) or (y < 0), b, y * 2)",
        |x, y| {
            let (x, y) = (x as f32, y as f32);
            let a = if x < 0.25 && y > 0.5 { x * 2.5 + y } else { y.abs() };
            let b = if y < x { -x - 1.5 } else { a };
            vec![with_one_nan(Value::from(if x > 0.5 || y < 0.0 { b } else { y * 2.0 }))]
        },
    );
}

#[test]
fn numbers_of_two_widths() {
    // Masks of one width do not select numbers of the other.
    check(
        "numbers f32
         input x: f64
         input y: f32
         let a = where(y < 0.5, x * 2.5, x + 0.25)
         let b = where(x < 0.5, y * 2, y - 1)
         let c = where(x < 0.25, where(x < -0.25, x * 3, a), x)
         output first = a
         output second = b
         output third = where((x > -2) and (y > -2), c, -x)",
        |x, y| {
            let y = y as f32;
            let a = if y < 0.5 { x * 2.5 } else { x + 0.25 };
            let b = if x < 0.5 { y * 2.0 } else { y - 1.0 };
            let c = match (x < 0.25, x < -0.25) {
                (true, true) => x * 3.0,
                (true, false) => a,
                (false, _) => x,
            };
            let c = if x > -2.0 && y > -2.0 { c } else { -x };
            vec![Value::from(a), Value::from(b), Value::from(c)].into_iter().map(with_one_nan).collect()
        },
    );
}
