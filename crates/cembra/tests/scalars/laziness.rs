//! Tests which operators are evaluated in branches: a user operator counts its own evaluations, in both backends.

use cembra::explain::Stage;
use cembra::operators::{Registry, UserOperator};
use cembra::{Backend, Limits, Model, Options, ScalarValue, Value};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::OnceLock;

thread_local! {
    static COUNT: Cell<u32> = const { Cell::new(0) };
}

/// Returns the standard operators and `test.slow`, which divides two integers and counts its evaluations.
fn registry() -> &'static Registry {
    static REGISTRY: OnceLock<&'static Registry> = OnceLock::new();
    REGISTRY.get_or_init(|| {
        let mut registry = Registry::standard().clone();
        let slow = UserOperator::new("test.slow").impure().fallible(|i: i32, j: i32| {
            COUNT.set(COUNT.get() + 1);
            i.checked_div(j).ok_or("no quotient")
        });
        registry.register(slow).expect("a new name");
        registry.leak()
    })
}

/// The number of evaluations of `test.slow`, and the outputs by name; `None` for an error.
type Outcome = (u32, Option<BTreeMap<String, i32>>);

/// Evaluates a model, or only its output `only`, and returns the outcome. Asserts that it is the same in both backends,
/// and for machine code in one function or in several.
fn outcome(source: &str, inputs: [i32; 3], only: Option<&str>) -> Outcome {
    let model = Model::parse_with(source, registry(), &Limits::default()).expect("a model");
    // Native code in one function, and in functions of a step or three.
    let subjects = [(Backend::Interpreter, 1), (Backend::Native, 2_000), (Backend::Native, 6), (Backend::Native, 1)];
    let results = subjects.map(|(backend, native_steps)| {
        let limits = Limits::default().native_steps(native_steps);
        let options = Options::default().backend(backend).limits(limits).registry(registry());
        let options = only.iter().fold(options, |options, only| options.outputs([*only]));
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
        COUNT.set(0);
        let result = executor.session().evaluate(&values).ok();
        let number = |value: &Value| match value.as_scalar() {
            Some(ScalarValue::Int32(v)) => *v,
            other => panic!("{other:?}"),
        };
        let names = executor.outputs().iter().map(|field| field.name.to_string());
        (COUNT.get(), result.map(|values| names.zip(values.iter().map(number)).collect()))
    });
    let [interpreted, native @ ..] = results;
    native.iter().for_each(|native| assert_eq!(interpreted, *native, "{source} at {inputs:?}"));
    interpreted
}

const PRELUDE: &str = "input i, j, k: i32\nlet s = test.slow(i, j)\nlet nz = j != 0\nlet u = k > 0\n";

/// Returns the number of evaluations of `test.slow` in an expression, and the result; `None` for an error.
fn run(expression: &str, inputs: [i32; 3]) -> (u32, Option<i32>) {
    let (count, outputs) = outcome(&format!("{PRELUDE}output y = {expression}"), inputs, None);
    (count, outputs.map(|outputs| outputs["y"]))
}

#[test]
fn branches_evaluate_what_they_need_and_once() {
    // Rows: j is zero, or not; u holds, or not.
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
    let fed = "where(nz, s * 3 + 1, i) + where(u, (s * 3 + 1) + 1, k)";
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

#[test]
fn conditions_that_can_fail_are_part_of_a_guard() {
    // `s` is needed under `u` and `t > 1`, or under `k > 50`; `t` can fail and is evaluated only under `u`.
    let model = |more: &str| {
        format!(
            "{PRELUDE}let t = test.slow(k, i)\noutput y = where(u, where(t > 1, s, 3), 4) + where(k > 50, s, 5)\n{more}"
        )
    };
    let both = |inputs| {
        let alone = outcome(&model(""), inputs, None);
        let beside = outcome(&model("output z = where(nz, i, j)"), inputs, Some("y"));
        assert_eq!(alone, beside);
        (alone.0, alone.1.map(|outputs| outputs["y"]))
    };
    // `u` does not hold: nothing is evaluated, though both `s` and `t` would fail.
    assert_eq!(both([0, 0, 0]), (0, Some(9)));
    // `t` is 0: `s` would fail, and is not needed.
    assert_eq!(both([7, 0, 5]), (1, Some(8)));
    // `t` is 5: `s` is evaluated once.
    assert_eq!(both([1, 1, 5]), (2, Some(6)));
    // Both need `s`.
    assert_eq!(both([1, 1, 60]), (2, Some(2)));
    // `t` fails where it is needed.
    assert_eq!(both([0, 1, 5]), (1, None));
    // What the condition is made of moves with it.
    let deep = "where(u, where(test.slow(k, i) * 2 > test.slow(k, j), s, 3), 4) + where(k > 50, s, 5)";
    assert_eq!(run(deep, [0, 0, 0]), (0, Some(9)));
    assert_eq!(run(deep, [7, 1, 5]), (2, Some(8)));
    assert_eq!(run(deep, [2, 3, 5]), (3, Some(5)));
    // A condition that is computed anyway, and one that needs what the guarded value needs too, but cannot fail.
    let known = format!(
        "{PRELUDE}let c = test.slow(k, i) > 1\noutput y = where(u, where(c, 3, s), s)\noutput z = where(c, 1, 0)"
    );
    let outputs = |y, z| Some([("y".to_owned(), y), ("z".to_owned(), z)].into());
    assert_eq!(outcome(&known, [1, 0, 5], None), (1, outputs(3, 1)));
    assert_eq!(outcome(&known, [4, 2, 5], None), (2, outputs(2, 0)));
    let total = "let e = exp(math.float(i)) in let t = test.slow(core.to_int32(math.minimum(e, 5.0f32)), j) in \
                 where(u, where(e > 2.0f32, t, 9), t)";
    assert_eq!(run(total, [0, 0, 1]), (0, Some(9)));
    assert_eq!(run(total, [7, 2, 1]), (1, Some(2)));
    assert_eq!(run(total, [0, 1, -1]), (1, Some(1)));
    // Here the guard is a little wide: the first condition that can fail is used twice.
    let wide = "where(u, where(test.slow(k, i) > 1, s, test.slow(k, i)), 4) + where(k > 50, s, 5)";
    assert_eq!(run(wide, [0, 0, 0]), (0, Some(9)));
    assert_eq!(run(wide, [1, 1, 5]), (2, Some(6)));
}

#[test]
fn what_is_guarded_is_not_guarded_again() {
    // One test for the guard of `t`, one for the branch of `w`; the other conditional is as cheap as a test.
    let model = Model::parse(
        "input a, b: unit?\ninput x, z: i64\nlet t = x // z\noutput y = where(a, t, 0)\noutput w = where(b, t + 1, 0)",
    )
    .unwrap();
    let plan = model.explain(&Options::default().without_pass("select"), Stage::Plan).unwrap();
    assert_eq!(plan.matches("jump_if_not<").count(), 2, "{plan}");
    // A guard that holds another conditional, and one that holds a guard.
    let model = Model::parse(
        "input a, b: unit?\ninput v: i64\nlet t = 5 // v\nlet u = where(b, v, t)\n\
         output y = where(a, u, missing)\noutput w = where(b, t, u)",
    )
    .unwrap();
    let plan = model.explain(&Options::default().without_pass("select"), Stage::Plan).unwrap();
    assert_eq!(plan.matches("jump_if_not<").count(), 3, "{plan}");
}

#[test]
fn a_guard_does_not_need_what_it_guards() {
    // The second condition needs `s` where the first holds: it cannot be part of the guard of `s`.
    let around = "where(where(nz, s, 0) > 2, s, 1)";
    assert_eq!(run(around, [7, 2, 1]), (1, Some(3)));
    assert_eq!(run(around, [2, 2, 1]), (1, Some(1)));
    // Nor can it be part of the guard of what needs `s`: the guard of `s` would depend on itself.
    let shared = "let t = test.slow(s, k) in where(k > 0, where(k > 5, t, 1), where(s > 2, 2, t))";
    assert_eq!(run(shared, [7, 0, 1]), (0, Some(1)));
    assert_eq!(run(shared, [60, 1, 6]), (2, Some(10)));
    assert_eq!(run(shared, [7, 2, -1]), (2, Some(2)));
    assert_eq!(run(shared, [4, 2, -1]), (2, Some(-2)));
    // If it is computed anyway, it is left out, and the guard is a little wide.
    let source = "input i, j, k: i32
        let s = test.slow(i, j)
        let c = where(k > 5, s, 0) > 2
        output y = where(k > 0, where(c, s, 1), 0)
        output z = where(c, 1, 0)";
    let count = |k| outcome(source, [6, 1, k], None).0;
    assert_eq!([-1, 1, 6].map(count), [0, 1, 1]);
}

/// A random model: definitions and outputs. Several branches may use a value, and conditions can fail.
struct Random {
    lets: Vec<(String, Vec<usize>)>,
    outputs: Vec<usize>,
}

impl Random {
    fn new(random: &mut fastrand::Rng) -> Random {
        let mut lets: Vec<(String, Vec<usize>)> = Vec::new();
        for at in 0..random.usize(4..14) {
            let mut used = Vec::new();
            let mut value = |random: &mut fastrand::Rng| {
                if at == 0 || random.u8(..4) == 0 {
                    return ["i", "j", "k"][random.usize(..3)].to_owned();
                }
                let of = at - 1 - random.usize(..at.min(5));
                used.push(of);
                format!("v{of}")
            };
            let (x, y, z) = (value(random), value(random), value(random));
            let number = random.i32(-2..4);
            let text = match random.u8(..8) {
                0 | 1 => format!("test.slow({x}, {y})"),
                2 => format!("{x} + {y}"),
                3 => format!("{x} * {number} - {y}"),
                _ => format!("where({x} > {number}, {y}, {z})"),
            };
            lets.push((text, used));
        }
        let last = lets.len() - 1;
        let outputs = (0..random.usize(1..5)).map(|_| last - random.usize(..=last.min(6))).collect();
        Random { lets, outputs }
    }

    /// Returns the model's text, with definitions and outputs in a random order in which each name is defined before it
    /// is used.
    fn text(&self, random: &mut fastrand::Rng) -> String {
        let mut text = "input i, j, k: i32\n".to_owned();
        let mut left: Vec<usize> = (0..self.lets.len()).collect();
        random.shuffle(&mut left);
        while !left.is_empty() {
            let ready = |at: &usize| self.lets[*at].1.iter().all(|used| !left.contains(used));
            let next = left.iter().position(ready).expect("no value needs itself");
            let at = left.remove(next);
            text += &format!("let v{at} = {}\n", self.lets[at].0);
        }
        let mut outputs: Vec<(usize, usize)> = self.outputs.iter().copied().enumerate().collect();
        random.shuffle(&mut outputs);
        for (at, of) in outputs {
            text += &format!("output y{at} = v{of}\n");
        }
        text
    }
}

#[test]
fn laziness_depends_neither_on_order_nor_on_other_outputs() {
    let mut random = fastrand::Rng::with_seed(5);
    let (mut evaluated, mut saved, mut failed) = (0, 0, 0);
    for _ in 0..80 {
        let model = Random::new(&mut random);
        let texts = [(); 3].map(|()| model.text(&mut random));
        for _ in 0..3 {
            let inputs = [(); 3].map(|()| random.i32(-1..4));
            let all = outcome(&texts[0], inputs, None);
            for text in &texts[1..] {
                let other = outcome(text, inputs, None);
                // Who fails first may differ, and so what was evaluated before.
                assert!(all == other || all.1.is_none() && other.1.is_none(), "{} or\n{text}", texts[0]);
            }
            let Some(values) = all.1 else {
                failed += 1;
                continue;
            };
            evaluated += all.0;
            for (name, value) in &values {
                let (count, alone) = outcome(&texts[0], inputs, Some(name));
                assert_eq!(alone.map(|alone| alone[name]), Some(*value), "{name} alone of\n{}", texts[0]);
                assert!(count <= all.0, "{name} alone of\n{}", texts[0]);
                saved += all.0 - count;
            }
        }
    }
    assert!(evaluated > 100 && saved > 50 && failed > 40, "{evaluated} {saved} {failed}");
}
