//! What branches evaluate, counted: a user operator counts its own evaluations, in both backends.

use cembra::{Backend, Limits, Model, Options, Registry, UserOperator, Value};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

static COUNT: AtomicU32 = AtomicU32::new(0);

/// The standard operators and `test.slow`, which divides and counts.
fn registry() -> &'static Registry {
    static REGISTRY: OnceLock<&'static Registry> = OnceLock::new();
    REGISTRY.get_or_init(|| {
        let mut registry = Registry::standard().clone();
        let slow = UserOperator::new("test.slow").impure().fallible(|i: i32, j: i32| {
            COUNT.fetch_add(1, Ordering::Relaxed);
            i.checked_div(j).ok_or("no quotient")
        });
        registry.register(slow).expect("a new name");
        registry.leak()
    })
}

/// How often `test.slow(i, j)` is evaluated, and the result, `None` for an error.
fn run(expression: &str, inputs: [i32; 3]) -> (u32, Option<i32>) {
    let source = format!("input i, j, k: i32\nlet s = test.slow(i, j)\nlet nz = j != 0\nlet u = k > 0\n{expression}");
    let model = Model::parse_with(&source, registry(), &Limits::default()).expect("a model");
    let results = [Backend::Interpreter, Backend::Native].map(|backend| {
        let options = Options::default().backend(backend).registry(registry());
        let executor = model.compile(&options).expect("it compiles");
        let values: Vec<Value> = executor
            .inputs()
            .iter()
            .map(|field| match &*field.name {
                "i" => inputs[0].into(),
                "j" => inputs[1].into(),
                _ => inputs[2].into(),
            })
            .collect();
        let before = COUNT.load(Ordering::Relaxed);
        let result = executor.session().evaluate(&values);
        let count = COUNT.load(Ordering::Relaxed) - before;
        let value = result.ok().map(|values| match values[0].as_scalar() {
            Some(cembra::ScalarValue::Int32(v)) => *v,
            other => panic!("{other:?}"),
        });
        (count, value)
    });
    assert_eq!(results[0], results[1], "{expression}");
    results[0]
}

#[test]
fn branches_evaluate_what_they_need_and_once() {
    // One test: the counter is shared. Rows: j is zero, or not; u holds, or not.
    let zero = [7, 0, 1];
    let zero_not_u = [7, 0, -1];
    let fine = [7, 2, 1];
    let fine_not_u = [7, 2, -1];

    // Used by one branch only.
    assert_eq!(run("where(nz, s, -1)", zero), (0, Some(-1)));
    assert_eq!(run("where(nz, s + s, k)", fine), (1, Some(6)));
    assert_eq!(run("where(nz, where(u, s, -s), k)", zero), (0, Some(1)));
    assert_eq!(run("where(nz, where(u, s, -s), k)", fine_not_u), (1, Some(-3)));

    // Shared by two conditionals, one inside the other: Arolla evaluates it before both.
    let nested = "where(u, s, where(nz, s, i))";
    assert_eq!(run(nested, zero_not_u), (0, Some(7)));
    assert_eq!(run(nested, zero), (1, None));
    assert_eq!(run(nested, fine_not_u), (1, Some(3)));

    // Shared by two conditionals side by side.
    let beside = "where(nz, s, i) + where(nz, s, k)";
    assert_eq!(run(beside, zero), (0, Some(8)));
    assert_eq!(run(beside, fine), (1, Some(6)));
    let unlike = "where(nz, s, i) + where(u, s, k)";
    assert_eq!(run(unlike, zero_not_u), (0, Some(6)));
    assert_eq!(run(unlike, fine_not_u), (1, Some(2)));

    // What it feeds is guarded with it.
    let fed = "let f = s * 3 + 1\nwhere(nz, f, i) + where(u, f + 1, k)";
    assert_eq!(run(fed, zero_not_u), (0, Some(6)));
    assert_eq!(run(fed, fine), (1, Some(21)));

    // Needed either way: by both branches, or outside.
    assert_eq!(run("where(nz, s, s + 1)", fine), (1, Some(3)));
    assert_eq!(run("where(nz, s, s + 1)", zero), (1, None));
    assert_eq!(run("where(nz, s, i) + s", zero), (1, None));

    // A guard inside of a branch.
    let inner = "where(u, where(nz, s, i) + where(i > 100, s, k), 5)";
    assert_eq!(run(inner, zero), (0, Some(8)));
    assert_eq!(run(inner, zero_not_u), (0, Some(5)));
    assert_eq!(run(inner, fine), (1, Some(4)));
}
