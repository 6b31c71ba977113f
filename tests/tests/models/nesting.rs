//! Deep and wide models in the backends: what planning takes, the interpreter runs and native code takes up to its limit;
//! both on a small stack, with the same answers.

use cembra::native::Tier;
use cembra::program::{Builder, Expr};
use cembra::{Backend, Limits, Model, Options, QType, Value};
use cembra_runtime::RuntimeFn;

/// Evaluates on a stack of 2 MB a model of one output over `x` and `y`, in each backend, for each row.
fn evaluate(
    body: impl for<'b> Fn(Expr<'b>, Expr<'b>) -> Expr<'b> + Send + 'static,
    backends: &'static [Backend],
    rows: &'static [(i32, i32, i32)],
) {
    let run = move || {
        let b = Builder::new();
        let (x, y) = (b.typed_leaf("x", QType::INT32), b.typed_leaf("y", QType::INT32));
        let z = body(x, y);
        b.output("z", z);
        let model = Model::from_program(b.build().expect("a program"));
        for backend in backends {
            let executor = model.compile(&Options::default().backend(*backend)).expect("a model that fits");
            assert_eq!(executor.backend(), *backend);
            let mut session = executor.session();
            for (x, y, z) in rows {
                let found = session.evaluate(&[Value::from(*x), Value::from(*y)]).expect("no fault");
                assert_eq!(found, [Value::from(*z)], "{} for {x}, {y}", backend.name());
            }
        }
    };
    let thread = std::thread::Builder::new().stack_size(2 << 20).spawn(run).expect("a thread");
    thread.join().expect("no overflow and no panic");
}

const BOTH: &[Backend] = &[Backend::Interpreter, Backend::Native];

/// `x > k` selects level `k` from the outside in, counted down from `depth`.
fn levels<'b>(depth: i32, x: Expr<'b>, y: Expr<'b>) -> Expr<'b> {
    (0..depth).fold(y * 7, |z, k| Expr::where_(x.gt(k), x + k, z))
}

#[test]
fn a_hundred_thousand_levels_are_interpreted() {
    let rows = &[(100_000, 0, 199_999), (1, 0, 1), (0, 6, 42), (-5, 6, 42), (50_000, 0, 99_999)];
    evaluate(|x, y| levels(100_000, x, y), &[Backend::Interpreter], rows);
}

#[test]
fn thousands_of_levels_are_compiled() {
    let rows = &[(3_000, 0, 5_999), (1, 0, 1), (0, 6, 42), (1_500, 0, 2_999)];
    evaluate(|x, y| levels(3_000, x, y), BOTH, rows);
}

#[test]
fn levels_in_first_branches_are_compiled() {
    evaluate(
        |x, y| (0..3_000).fold(y * 7, |z, k| Expr::where_(x.gt(k), z, x - k)),
        BOTH,
        &[(5_000, 6, 42), (3_000, 6, 42), (2_999, 6, 0), (0, 6, -2_999)],
    );
}

#[test]
fn levels_in_conditions_are_compiled() {
    evaluate(
        |x, y| {
            let z = (0..3_000).fold(y.gt(0), |z, k| Expr::where_(z, x.gt(k), x.lt(-k)));
            Expr::where_(z, x, y)
        },
        BOTH,
        &[(5_000, 1, 5_000), (-5_000, 0, 0), (5, 1, 1)],
    );
}

#[test]
fn many_conditionals_side_by_side_are_compiled() {
    evaluate(
        |x, y| (1..600).fold(y, |z, k| z + Expr::where_(x.gt(k), x.floordiv(k) - x.floordiv(k) + 1, y - y)),
        BOTH,
        &[(5_000, 0, 599), (100, 0, 99), (0, 7, 7)],
    );
}

#[test]
fn native_code_refuses_what_needs_too_much_stack_and_auto_interprets_it() {
    let b = Builder::new();
    let (x, y) = (b.typed_leaf("x", QType::INT32), b.typed_leaf("y", QType::INT32));
    b.output("z", levels(6_000, x, y));
    let model = Model::from_program(b.build().expect("a program"));
    // Each level is a function of its own, inside of the one before.
    let limits = Limits::default().native_steps(1);
    // The quick tier tells it sooner than the other one.
    let quick = Options::default().backend(Backend::Native).tier(Tier::Quick).limits(limits);
    let error = model.compile(&quick).expect_err("too deep");
    assert_eq!(error.code(), "native");
    assert!(error.to_string().contains("bytes of stack") && error.to_string().contains("interpreter"), "{error}");
    let executor = model.compile(&Options::default().limits(limits)).expect("a model");
    assert_eq!((executor.backend(), executor.stack_bytes()), (Backend::Interpreter, None));
    assert!(executor.fallback().is_some_and(|why| why.to_string().contains("262144")));
    assert_eq!(executor.session().evaluate(&[Value::from(7), Value::from(0)]).expect("a value"), [Value::from(13)]);
    // With hundreds of levels in each function there is enough for more of them.
    let executor = model.compile(&Options::default().backend(Backend::Native)).expect("machine code");
    assert!(executor.stack_bytes().is_some_and(|bytes| bytes > 1_000), "{:?}", executor.stack_bytes());
    assert_eq!(executor.session().evaluate(&[Value::from(7), Value::from(0)]).expect("a value"), [Value::from(13)]);
}

#[test]
fn many_inputs_and_outputs() {
    const MANY: usize = 20_000;
    let b = Builder::new();
    let mut sum = b.literal(0);
    for at in 0..MANY {
        let leaf = b.typed_leaf(&format!("input{at}"), QType::INT32);
        sum = sum + leaf;
        if at % 2 == 0 {
            b.output(&format!("output{at}"), sum);
        }
    }
    let model = Model::from_program(b.build().expect("a program"));
    let executor = model.compile(&Options::default().backend(Backend::Interpreter)).expect("a model");
    assert_eq!((executor.inputs().len(), executor.outputs().len()), (MANY - 1, MANY / 2));
    let ones = vec![Value::from(1); MANY - 1];
    let found = executor.session().evaluate(&ones).expect("values");
    assert_eq!(found.last(), Some(&Value::from(MANY as i32 - 1)));
}

/// More inputs than registers, in lines, in branches, as results and among selections.
#[test]
fn crowded_lines_are_compiled() {
    const INPUTS: usize = 20;
    let name = |at: usize| format!("x{}", at % INPUTS);
    let sum = |from: usize, factor: &str| {
        let terms = (from..from + INPUTS).map(|at| format!("{} * {factor} * {}", name(at), name(at + 3)));
        terms.collect::<Vec<_>>().join(" + ")
    };
    let names: Vec<String> = (0..INPUTS).map(name).collect();
    let text = format!(
        "input {}: f64
         output all = {}
         output chosen = where(x3 > x4, math.exp({}), where(x5 < 2.5, x6, x7 - {}))
         output same = x19
         output cheap = where(x0 < 0.5, where(x1 < 0.5, x2, x3), where(x4 < 0.5, x5, x6))",
        names.join(", "),
        sum(0, "1.5"),
        sum(7, "0.001"),
        sum(2, "x1"),
    );
    let model = Model::parse(&text).expect("a model");
    for seed in 0..4_usize {
        let x: Vec<f64> = (0..INPUTS).map(|at| ((at * 7 + seed * 5) % 11) as f64 / 4.0).collect();
        let sum = |from: usize, factor: f64| {
            let term = |at: usize| x[at % INPUTS] * factor * x[(at + 3) % INPUTS];
            (from + 1..from + INPUTS).fold(term(from), |sum, at| sum + term(at))
        };
        let chosen = match (x[3] > x[4], x[5] < 2.5) {
            // SAFETY: STRING-VIEW: a function of a number.
            (true, _) => f64::from_bits(unsafe { RuntimeFn::ExpF64.call_on_bits(&[sum(7, 0.001).to_bits()]) }),
            (false, true) => x[6],
            (false, false) => x[7] - sum(2, x[1]),
        };
        let cheap = match (x[0] < 0.5, x[1] < 0.5, x[4] < 0.5) {
            (true, on, _) => x[if on { 2 } else { 3 }],
            (false, _, on) => x[if on { 5 } else { 6 }],
        };
        let expected = [sum(0, 1.5), chosen, x[19], cheap].map(Value::from);
        let inputs: Vec<Value> = x.iter().copied().map(Value::from).collect();
        for backend in BOTH {
            let executor = model.compile(&Options::default().backend(*backend)).expect("a model that fits");
            assert_eq!(executor.session().evaluate(&inputs).expect("no fault"), expected, "{}", backend.name());
        }
    }
}
