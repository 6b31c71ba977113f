//! Tests inputs that a model requests from a loader during an evaluation: which accessors each backend calls, in which
//! order and how often.

use cembra::loaders::{Accessor, Chain, Fields, Loader, LoaderRow};
use cembra::{Backend, Error, Limits, Model, ModelExecutor, Options, QType, Scalar, Value, ValueRef};
use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::BTreeMap;

/// A row of values by name, which records the names of the values that were read.
#[derive(Default)]
struct Row {
    values: BTreeMap<&'static str, Value>,
    asked: RefCell<Vec<String>>,
}

impl Row {
    fn of(values: impl IntoIterator<Item = (&'static str, Value)>) -> Row {
        Row { values: values.into_iter().collect(), asked: RefCell::default() }
    }

    /// Returns the names of the values that were read since the last call, in order.
    fn asked(&self) -> String {
        self.asked.take().join(" ")
    }
}

/// A loader for the values of a [`Row`]. Reading the text `panic` panics, and reading `refuse` is an error of the
/// accessor.
struct Rows;

impl Loader<Row> for Rows {
    fn knows(&self, _: &str) -> bool {
        true
    }
    fn qtype(&self, _: &str, declared: Option<&QType>) -> Option<QType> {
        declared.cloned()
    }
    fn names(&self) -> Vec<String> {
        Vec::new()
    }
    fn bind(&self, name: &str, _: &QType) -> Result<Accessor<Row>, Error> {
        let name = name.to_owned();
        Ok(Accessor::new(move |row: &Row| {
            row.asked.borrow_mut().push(name.clone());
            match row.values.get(&*name) {
                Some(value) if *value == Value::from("panic") => panic!("no {name}"),
                Some(value) if *value == Value::from("refuse") => Err(Error::values(format!("{name} is refused"))),
                Some(value) if *value == Value::from("made") => Ok(ValueRef::Text(Cow::Owned(format!("made {name}")))),
                Some(value) => Ok(value.into()),
                None => Ok(ValueRef::Missing),
            }
        }))
    }
}

/// Compiles the model `text` in all ways: for the interpreter, as machine code in one function and in several, and with
/// tiers before and after they are compiled.
fn executors(text: &str) -> Vec<ModelExecutor<LoaderRow<Row>, Option<f64>>> {
    let model = Model::parse(text).expect("a model");
    let made = |backend, native_steps| {
        let limits = Limits::default().native_steps(native_steps);
        let options = Options::default().backend(backend).limits(limits).cast_outputs(true);
        model.executor_from(&Rows, &options).unwrap_or_else(|error| panic!("{text}: {error}"))
    };
    let all = vec![
        made(Backend::Interpreter, 1),
        made(Backend::Native, 2_000),
        made(Backend::Native, 6),
        made(Backend::Native, 1),
        made(Backend::Tiered, 2_000),
        made(Backend::Tiered, 2_000),
    ];
    if let Some(tiered) = all.last() {
        tiered.executor().finish_tiers();
    }
    all
}

type Outcome = (Result<Option<f64>, (&'static str, String)>, String);

/// Evaluates a row, and returns the result and the names of the values that were read. Asserts that both are the same
/// for all executors, in a second run, and in a clone.
fn outcome(text: &str, row: &Row) -> Outcome {
    let mut all = executors(text).into_iter().flat_map(|mut executor| {
        let run = |executor: &mut ModelExecutor<LoaderRow<Row>, Option<f64>>| {
            let made = executor.run(row).map_err(|error| (error.code(), error.message()));
            (made, row.asked())
        };
        [run(&mut executor), run(&mut executor), run(&mut executor.clone())]
    });
    let first = all.next().expect("an executor");
    all.for_each(|other| assert_eq!(other, first, "{text}"));
    first
}

fn number(value: f64) -> Value {
    Value::from(value)
}

fn asked(text: &str, values: &[(&'static str, f64)]) -> (Option<f64>, String) {
    let row = Row::of(values.iter().map(|(name, value)| (*name, number(*value))));
    let (made, asked) = outcome(text, &row);
    (made.unwrap_or_else(|error| panic!("{text}: {error:?}")), asked)
}

fn is(value: f64, asked: &str) -> (Option<f64>, String) {
    (Some(value), asked.to_owned())
}

#[test]
fn branches_ask_for_what_they_need() {
    let text = "input c, x, y: f64; if c > 0.0 then x else y";
    assert_eq!(asked(text, &[("c", 1.0), ("x", 2.0), ("y", 3.0)]), is(2.0, "c x"));
    assert_eq!(asked(text, &[("c", -1.0), ("x", 2.0), ("y", 3.0)]), is(3.0, "c y"));
    // What is cheap and cannot fail is no selection if it needs an input.
    let text = "input c, x, y: f64; if c > 0.0 then x * 2.0 + 1.0 else c - y";
    assert_eq!(asked(text, &[("c", 1.0), ("x", 2.0), ("y", 3.0)]), is(5.0, "c x"));
    assert_eq!(asked(text, &[("c", -1.0), ("x", 2.0), ("y", 3.0)]), is(-4.0, "c y"));
    // Conditions inside of branches.
    let text = "input a, b, c, x, y, z: f64
                if a > 0.0 then (if b > 0.0 then x else y) else (if c > 0.0 then y else z)";
    let row = |a, b, c| [("a", a), ("b", b), ("c", c), ("x", 1.0), ("y", 2.0), ("z", 3.0)];
    assert_eq!(asked(text, &row(1.0, 1.0, 1.0)), is(1.0, "a b x"));
    assert_eq!(asked(text, &row(1.0, -1.0, 1.0)), is(2.0, "a b y"));
    assert_eq!(asked(text, &row(-1.0, 1.0, 1.0)), is(2.0, "a c y"));
    assert_eq!(asked(text, &row(-1.0, 1.0, -1.0)), is(3.0, "a c z"));
    // A value or none.
    let text = "input c, x: f64; where(c > 0.0, x)";
    assert_eq!(asked(text, &[("c", 1.0), ("x", 2.0)]), is(2.0, "c x"));
    assert_eq!(asked(text, &[("c", -1.0), ("x", 2.0)]), (None, "c".to_owned()));
}

#[test]
fn inputs_that_every_evaluation_needs_come_first() {
    let text = "input last, c, x, first: f64; (if c > 0.0 then x else 0.0) + first + last";
    let row = |c| [("last", 1.0), ("c", c), ("x", 10.0), ("first", 100.0)];
    assert_eq!(asked(text, &row(1.0)), is(111.0, "last c first x"));
    assert_eq!(asked(text, &row(-1.0)), is(101.0, "last c first"));
    // One that a branch and the rest of the model need is asked for once.
    let text = "input c, x: f64; (if c > 0.0 then x else 0.0) + x";
    assert_eq!(asked(text, &[("c", 1.0), ("x", 2.0)]), is(4.0, "c x"));
    assert_eq!(asked(text, &[("c", -1.0), ("x", 2.0)]), is(2.0, "c x"));
}

#[test]
fn what_branches_share_is_asked_for_once_and_only_if_one_needs_it() {
    let text = "input a, b, x: f64; (if a > 0.0 then x else 0.0) + (if b > 0.0 then x * 2.0 else 0.0)";
    let row = |a, b| [("a", a), ("b", b), ("x", 5.0)];
    assert_eq!(asked(text, &row(1.0, 1.0)), is(15.0, "a b x"));
    assert_eq!(asked(text, &row(1.0, -1.0)), is(5.0, "a b x"));
    assert_eq!(asked(text, &row(-1.0, 1.0)), is(10.0, "a b x"));
    assert_eq!(asked(text, &row(-1.0, -1.0)), is(0.0, "a b"));
    // So is what is made of it.
    let text = "input a, b, x, y: f64
                let s = x + y
                (if a > 0.0 then s * 2.0 else 0.0) + (if b > 0.0 then s else 1.0) + (if a > 1.0 then y else 0.0)";
    let row = |a, b| [("a", a), ("b", b), ("x", 5.0), ("y", 7.0)];
    assert_eq!(asked(text, &row(-1.0, -1.0)), is(1.0, "a b"));
    assert_eq!(asked(text, &row(-1.0, 1.0)), is(12.0, "a b x y"));
    assert_eq!(asked(text, &row(2.0, 1.0)), is(43.0, "a b x y"));
    // A condition that is an input of its own, in two branches.
    let text = "input a, b, x: f64, n: unit?
                let s = log(x)
                (if a > 0.0 then (if n then s else 1.0) else 2.0) + (if b > 0.0 then (if n then 3.0 else s) else 4.0)";
    let row = |a, b, n: bool| {
        let mask = Value::optional(Scalar::Unit, n.then_some(cembra::ScalarValue::Unit));
        Row::of([("a", number(a)), ("b", number(b)), ("x", number(1.0)), ("n", mask)])
    };
    let made = |row: &Row| {
        let (made, asked) = outcome(text, row);
        (made.expect("a value"), asked)
    };
    assert_eq!(made(&row(-1.0, -1.0, true)), is(6.0, "a b"));
    assert_eq!(made(&row(-1.0, 1.0, true)), is(5.0, "a b n"));
    assert_eq!(made(&row(1.0, -1.0, false)), is(5.0, "a b n"));
    assert_eq!(made(&row(1.0, -1.0, true)), is(4.0, "a b n x"));
    assert_eq!(made(&row(1.0, 1.0, true)), is(3.0, "a b n x"));
}

/// A value that several branches use is computed only if one of them is taken (under a guard), if it needs more than a
/// few operators.
#[test]
fn what_is_made_of_inputs_is_made_where_it_is_needed() {
    let text = "input a, b, c, x, y: f64
                let v = if c > 0.0 then x else y
                (if a > 0.0 then v * 2.0 else 0.0) + (if b > 0.0 then v else 1.0)";
    let row = |a, b, c| [("a", a), ("b", b), ("c", c), ("x", 5.0), ("y", 7.0)];
    assert_eq!(asked(text, &row(-1.0, -1.0, 1.0)), is(1.0, "a b"));
    assert_eq!(asked(text, &row(1.0, -1.0, 1.0)), is(11.0, "a b c x"));
    assert_eq!(asked(text, &row(-1.0, 1.0, -1.0)), is(7.0, "a b c y"));
    assert_eq!(asked(text, &row(1.0, 1.0, -1.0)), is(21.0, "a b c y"));
    let long = (0..40).fold("x".to_owned(), |sum, at| format!("({sum} + y * {at}.0)"));
    let text = format!(
        "input a, b, x, y: f64
         let v = {long}
         (if a > 0.0 then v * 2.0 else 0.0) + (if b > 0.0 then v else 1.0)"
    );
    let row = |a, b| [("a", a), ("b", b), ("x", 5.0), ("y", 1.0)];
    assert_eq!(asked(&text, &row(-1.0, -1.0)), is(1.0, "a b"));
    assert_eq!(asked(&text, &row(1.0, 1.0)), is(2355.0, "a b x y"));
}

/// An input that many branches use is read only if one of them is taken, also if there are more than the 16 paths that
/// a guard may have.
#[test]
fn many_branches_share_an_input() {
    for count in [3, 20, 80] {
        let rules = (0..count).map(|at| format!(" + (if c == {at}.0 then x * {at}.0 + y else 0.0)"));
        let text = format!("input c, x, y: f64; 0.5{}", rules.collect::<String>());
        assert_eq!(asked(&text, &[("c", -1.0), ("x", 2.0), ("y", 3.0)]), is(0.5, "c"));
        assert_eq!(asked(&text, &[("c", 2.0), ("x", 2.0), ("y", 3.0)]), is(7.5, "c x y"));
        // So is what takes little to make of inputs.
        let rules = (0..count).map(|at| format!(" + (if c == {at}.0 then s * {at}.0 else 0.0)"));
        let text = format!("input c, x, y: f64; let s = x * 2.0 - y; 0.5{}", rules.collect::<String>());
        assert_eq!(asked(&text, &[("c", -1.0), ("x", 2.0), ("y", 3.0)]), is(0.5, "c"));
        assert_eq!(asked(&text, &[("c", 2.0), ("x", 2.0), ("y", 3.0)]), is(2.5, "c x y"));
        // The same as a chain, in which a branch lies inside of all before.
        let rules = (0..count).map(|at| format!("if c == {at}.0 then x * {at}.0 else "));
        let text = format!("input a, c, x, y: f64; if a > 0.0 then ({}y) else 0.0", rules.collect::<String>());
        let row = |a, c| [("a", a), ("c", c), ("x", 2.0), ("y", 3.0)];
        assert_eq!(asked(&text, &row(-1.0, 1.0)), is(0.0, "a"));
        assert_eq!(asked(&text, &row(1.0, 1.0)), is(2.0, "a c x"));
        assert_eq!(asked(&text, &row(1.0, -1.0)), is(3.0, "a c y"));
    }
}

#[test]
fn loops_ask_once_and_only_if_there_is_a_round() {
    let text = "input n: i64, x: f64; seq.reduce(math.add, seq.map(fn(i) = i * x, seq.range(n)), 0.5)";
    let row = |n: i64| Row::of([("n", Value::from(n)), ("x", number(2.0))]);
    let made = |text: &str, row: &Row| {
        let (made, asked) = outcome(text, row);
        (made.expect("a value"), asked)
    };
    assert_eq!(made(text, &row(0)), is(0.5, "n"));
    assert_eq!(made(text, &row(4)), is(12.5, "n x"));
    // Only a branch inside of the loop needs it: the first round that takes the branch asks.
    let text =
        "input n: i64, x: f64; seq.reduce(math.add, seq.map(fn(i) = if i > 2 then x else 1.0, seq.range(n)), 0.5)";
    assert_eq!(made(text, &row(3)), is(3.5, "n"));
    assert_eq!(made(text, &row(10)), is(17.5, "n x"));
}

#[test]
fn fields_of_structs_are_asked_for_by_one_call() {
    let text = "input c: f64, p: {x: f64, inner: {n: f64?, t: text}}, o: {x: f64}?
                if c > 2.0 then p.x + (p.inner.n ?? 0.5)
                else if c > 1.0 then (if p.inner.t == \"a\" then 1.0 else p.x)
                else if c > 0.0 then o.x ?? -1.0
                else 0.0";
    let row = |c: f64, text: &'static str, o: &'static str| {
        let p = cembra::values::parse_value(&format!("{{x: 4.0f64, inner: {{n: missing[f64], t: \"{text}\"}}}}"));
        let mut row = Row::of([("c", number(c)), ("p", p.expect("a struct"))]);
        if !o.is_empty() {
            row.values.insert("o", cembra::values::parse_value(o).expect("a struct"));
        }
        row
    };
    let made = |row: &Row| {
        let (made, asked) = outcome(text, row);
        (made.expect("a value"), asked)
    };
    assert_eq!(made(&row(0.0, "a", "")), is(0.0, "c"));
    assert_eq!(made(&row(3.0, "a", "")), is(4.5, "c p"));
    assert_eq!(made(&row(2.0, "a", "")), is(1.0, "c p"));
    assert_eq!(made(&row(2.0, "b", "")), is(4.0, "c p"));
    assert_eq!(made(&row(1.0, "b", "")), is(-1.0, "c o"));
    // One field is always needed.
    let text = "input c: f64, p: {x: f64, y: f64, z: f64}; p.x + (if c > 0.0 then p.y else 0.0)";
    let row = |c: f64| {
        let p = cembra::values::parse_value("{x: 1.0f64, y: 2.0f64, z: 3.0f64}").expect("a struct");
        Row::of([("c", number(c)), ("p", p)])
    };
    let (made, asked) = outcome(text, &row(1.0));
    assert_eq!((made.expect("a value"), asked), is(3.0, "c p"));
    let (made, asked) = outcome(text, &row(-1.0));
    assert_eq!((made.expect("a value"), asked), is(1.0, "c p"));
}

#[test]
fn errors_are_those_of_inputs_that_are_needed() {
    let text = "input c, x, y: f64; if c > 0.0 then x * 2.0 else y";
    let values = |c: f64, x: Value| Row::of([("c", number(c)), ("x", x), ("y", number(3.0))]);
    let fails = |message: &str| (Err(("values", message.to_owned())), "c x".to_owned());
    for (x, message) in [
        (Value::from("refuse"), "x is refused"),
        (Value::from("panic"), "input `x`: its loader panicked: no x"),
        (Value::from(7), "input `x` is f64, found i32"),
        (Value::from(None::<f64>), "input `x` is f64, but it is missing"),
    ] {
        assert_eq!(outcome(text, &values(1.0, x.clone())), fails(message));
        assert_eq!(outcome(text, &values(-1.0, x)), (Ok(Some(3.0)), "c y".to_owned()));
    }
    // The executor is as new afterwards.
    for mut executor in executors(text) {
        for _ in 0..3 {
            assert!(executor.run(&values(1.0, "panic".into())).is_err());
            assert_eq!(executor.run(&values(1.0, number(4.0))).expect("a value"), Some(8.0));
            assert!(executor.run(&values(1.0, "refuse".into())).is_err());
            assert_eq!(executor.run(&values(-1.0, "panic".into())).expect("a value"), Some(3.0));
        }
    }
}

#[test]
fn a_fault_ends_the_questions_and_the_next_run_asks_anew() {
    let text = "input c: f64, i, j: i64, x: f64
                let q = i // j
                if c > 0.0 then (if q > 1 then x else 1.0) else 0.0";
    let row = |c: f64, j: i64| {
        Row::of([("c", number(c)), ("i", Value::from(6_i64)), ("j", Value::from(j)), ("x", number(2.5))])
    };
    assert_eq!(outcome(text, &row(-1.0, 0)), (Ok(Some(0.0)), "c".to_owned()));
    let (made, asked) = outcome(text, &row(1.0, 0));
    assert_eq!((made.expect_err("a fault").0, &*asked), ("div-by-zero", "c i j"));
    for mut executor in executors(text) {
        for (j, found, names) in
            [(0, None, "c i j"), (2, Some(2.5), "c i j x"), (6, Some(1.0), "c i j"), (0, None, "c i j")]
        {
            let row = row(1.0, j);
            assert_eq!((executor.run(&row).ok().flatten(), &*row.asked()), (found, names));
        }
    }
}

#[test]
fn texts_live_as_long_as_the_evaluation() {
    let text = "input c: f64, s, t: text, b: bytes
                output y: f64 = if c > 0.0 then (if strings.join(s, \"/\", t, \"/\", s) == \"made s/of the row/made s\" then 1.0 else 2.0)
                                else (if b == b\"x\\xff\" then 3.0 else 4.0)";
    let row = |c: f64| {
        let bytes = Value::Scalar(cembra::ScalarValue::Bytes((&b"x\xff"[..]).into()));
        Row::of([("c", number(c)), ("s", "made".into()), ("t", "of the row".into()), ("b", bytes)])
    };
    for _ in 0..3 {
        assert_eq!(outcome(text, &row(1.0)), (Ok(Some(1.0)), "c s t".to_owned()));
        assert_eq!(outcome(text, &row(0.0)), (Ok(Some(3.0)), "c b".to_owned()));
    }
}

#[test]
fn every_type_is_asked_for() {
    let types = ["bool", "i32", "i64", "u64", "f32", "f64", "date", "timestamp", "text", "bytes"];
    let values = [
        "true",
        "7i32",
        "7i64",
        "7u64",
        "0.5f32",
        "0.25",
        "date\"2026-11-20\"",
        "timestamp\"2026-11-20T10:15:00Z\"",
        "\"text\"",
        "b\"\\xff\"",
    ];
    for (ty, value) in types.into_iter().zip(values) {
        let value = cembra::values::parse_value(value).unwrap_or_else(|error| panic!("{ty}: {error}"));
        let optional = value.as_scalar().map(|scalar| Value::optional(scalar.scalar(), Some(scalar.clone())));
        let text = format!(
            "input c: f64, x, same: {ty}, o, also: {ty}?
             if c > 0.0 then (if x == same and o == also and o == x then 1.0 else 2.0) else 3.0"
        );
        let optional = optional.expect("a scalar");
        let row = |c: f64| {
            let o = optional.clone();
            Row::of([("c", number(c)), ("x", value.clone()), ("same", value.clone()), ("o", o.clone()), ("also", o)])
        };
        let (made, asked) = outcome(&text, &row(1.0));
        assert_eq!(made.expect("a value"), Some(1.0), "{ty}");
        assert!(asked.starts_with("c ") && asked.split(' ').count() == 5, "{ty}: {asked}");
        assert_eq!(outcome(&text, &row(-1.0)), (Ok(Some(3.0)), "c".to_owned()));
        let mut missing = row(1.0);
        missing.values.remove("o");
        assert_eq!(outcome(&text, &missing).0, Ok(Some(2.0)), "{ty}");
    }
}

#[test]
fn fields_in_memory_are_beside_what_is_asked_for() {
    #[derive(cembra::Input)]
    struct Order {
        amount: f64,
        #[cembra(skip)]
        row: Row,
    }
    struct Inside;
    impl Loader<Order> for Inside {
        fn knows(&self, name: &str) -> bool {
            name == "rate"
        }
        fn qtype(&self, _: &str, _: Option<&QType>) -> Option<QType> {
            Some(QType::FLOAT64)
        }
        fn names(&self) -> Vec<String> {
            vec!["rate".to_owned()]
        }
        fn bind(&self, _: &str, _: &QType) -> Result<Accessor<Order>, Error> {
            Ok(Accessor::new(|order: &Order| {
                order.row.asked.borrow_mut().push("rate".to_owned());
                Ok(0.5.into())
            }))
        }
    }
    let chain = Chain::loaders::<Order>(vec![Box::new(Fields::<Order>::new()), Box::new(Inside)]).expect("a chain");
    let model = Model::parse("if amount > 100.0 then amount * rate else amount").expect("a model");
    for backend in [Backend::Interpreter, Backend::Native] {
        let mut run =
            model.executor_from::<Order, f64>(&chain, &Options::default().backend(backend)).expect("an executor");
        let names: Vec<&str> = run.executor().inputs().iter().map(|input| &*input.name).collect();
        assert_eq!(names, ["amount", "rate"]);
        let mut order = Order { amount: 50.0, row: Row::default() };
        assert_eq!((run.run(&order).expect("a value"), &*order.row.asked()), (50.0, ""));
        order.amount = 200.0;
        assert_eq!((run.run(&order).expect("a value"), &*order.row.asked()), (100.0, "rate"));
        let mut many = [0.0];
        run.run_many(std::slice::from_ref(&order), &mut many).expect("a value");
        assert_eq!(many, [100.0]);
    }
}
