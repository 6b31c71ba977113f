//! Tests that repeated evaluations do not allocate: none for numbers, and for texts only the memory of a new result.
//! Running a model's tests allocates little per test.

use crate::counting;

use cembra::json::Json;
use cembra::loaders::{AccessorsListener, AccessorsLoader};
use cembra::{Backend, Model, ModelExecutor, Optional, Options, QType, Scalar, Value, ValueRef};

/// Returns the number of allocations in ten calls of `call`, after four calls that may allocate reusable memory.
fn warm(mut call: impl FnMut()) -> usize {
    (0..4).for_each(|_| call());
    let before = counting::so_far();
    (0..10).for_each(|_| call());
    counting::so_far() - before
}

fn backends() -> [Options; 2] {
    [Backend::Interpreter, Backend::Native].map(|backend| Options::default().backend(backend))
}

#[derive(cembra::Input)]
struct Row {
    a: f64,
    b: Optional<f64>,
    c: Option<i32>,
}

#[derive(cembra::Output, Default)]
struct Found {
    y: f64,
    z: Option<f64>,
    n: Optional<i32>,
}

const NUMBERS: &str = "input a: f64; input b: f64?; input c: i32?
output y = where(a > 1.0, math.exp(a), a) + (b ?? 0.5)
output z = math.sqrt(b) * 2
output n = c // 3";

const TEXTS: &str = "input name: text; input n: i32
output say = strings.join(strings.upper(name), \" has \", strings.as_text(n), strings.replace(\"....\", \".\", \"abc\"))
output maybe = where(n > 0, strings.printf(\"%s-%d\", name, n))";

#[derive(cembra::Input)]
struct Named<'t> {
    name: &'t str,
    n: i32,
}

#[derive(cembra::Output, Default)]
struct Said {
    say: String,
    maybe: Option<String>,
}

#[test]
fn numbers_allocate_nothing() {
    let _alone = crate::alone();
    let model = Model::parse(NUMBERS).unwrap();
    for options in backends() {
        let rows =
            [Row { a: 2.0, b: Optional::missing(), c: Some(7) }, Row { a: 0.5, b: Optional::present(4.0), c: None }];
        let mut run = model.executor::<Row, Found>(&options).unwrap();
        let mut found = Found::default();
        assert_eq!(warm(|| rows.iter().for_each(|row| run.run_into(row, &mut found).unwrap())), 0);
        assert_eq!((found.y, found.z, found.n), (4.5, Some(4.0), Optional::missing()));
        assert_eq!(warm(|| rows.iter().for_each(|row| found = run.run(row).unwrap())), 0);
        run.set_cancellation(Some(cembra::Cancellation::new()));
        assert_eq!(warm(|| rows.iter().for_each(|row| run.run_into(row, &mut found).unwrap())), 0);

        let mut session = model.compile(&options).unwrap().session();
        let row = [Value::from(0.5), Value::from(Some(4.0)), Value::from(None::<i32>)];
        let mut results = Vec::new();
        assert_eq!(warm(|| session.evaluate_into(&row, &mut results).unwrap()), 0);
        assert_eq!(results, [Value::from(4.5), Value::from(Some(4.0)), Value::from(None::<i32>)]);
    }
}

#[test]
fn loaders_and_listeners_allocate_nothing() {
    let _alone = crate::alone();
    let loader = AccessorsLoader::new().with("name", QType::TEXT, |row: &(String, i32)| row.0.as_str().into()).with(
        "n",
        QType::INT32,
        |row| row.1.into(),
    );
    let listener = AccessorsListener::new().with("maybe", |sink: &mut usize, value| {
        if let ValueRef::Text(text) = value {
            *sink += text.len();
        }
    });
    for options in backends() {
        let model = Model::parse(TEXTS).unwrap();
        let mut run: ModelExecutor<_, String, _> = model.executor_between(&loader, &listener, &options).unwrap();
        let (mut said, mut heard) = (String::new(), 0);
        let row = ("Ann".to_owned(), 12);
        assert_eq!(warm(|| run.listen_into(&row, &mut said, &mut heard).unwrap()), 0);
        assert_eq!((said.as_str(), heard), ("ANN has 12abcabcabcabc", 14 * "Ann-12".len()));

        // Numbers in a JSON row are parsed where they are.
        let options = options.input_type("b", QType::Optional(Scalar::Float64));
        let mut run: ModelExecutor<_, f64> = Model::parse(NUMBERS).unwrap().executor_from(&Json, &options).unwrap();
        let row = serde_json::json!({"a": 0.5, "b": 4.0});
        let mut found = 0.0;
        assert_eq!((warm(|| run.run_into(&row, &mut found).unwrap()), found), (0, 4.5));
    }
}

#[test]
fn texts_are_written_into_the_memory_that_is_there() {
    let _alone = crate::alone();
    let model = Model::parse(TEXTS).unwrap();
    for options in backends() {
        let mut run = model.executor::<Named<'_>, Said>(&options).unwrap();
        let mut said = Said::default();
        let long = "x".repeat(5000);
        let rows = [Named { name: "Ann", n: 12 }, Named { name: &long, n: 7 }, Named { name: "Bob", n: 3 }];
        assert_eq!(warm(|| rows.iter().for_each(|row| run.run_into(row, &mut said).unwrap())), 0);
        assert_eq!((said.say.as_str(), said.maybe.as_deref()), ("BOB has 3abcabcabcabc", Some("Bob-3")));
        let at = said.say.as_ptr();
        run.run_into(&rows[0], &mut said).unwrap();
        assert_eq!((said.say.as_ptr(), said.say.as_str()), (at, "ANN has 12abcabcabcabc"));
        run.run_into(&Named { name: "Eve", n: 0 }, &mut said).unwrap();
        assert_eq!(said.maybe, None);
        // A new result is two texts of its own, and nothing else.
        assert_eq!(warm(|| drop(run.run(&rows[0]).unwrap())), 20);
    }
}

/// For consecutive tests with the same inputs and outputs, the model is compiled once.
#[test]
fn tests_of_the_same_take_little_each() {
    let _alone = crate::alone();
    let allocations = |count: usize| {
        let tests: String = (0..count).map(|n| format!("test \"t{n}\" {{ x = {n} }} => {{ y = 0.25 }}; ")).collect();
        let model = Model::parse(&format!("input x: f64; output y = x / 2 + x * x - x; {tests}")).expect("a model");
        let before = counting::so_far();
        let report = model.run_tests(&Options::default().backend(Backend::Interpreter));
        assert_eq!((report.cases, report.failures.len()), (count, count));
        counting::so_far() - before
    };
    let each = (allocations(300) - allocations(100)) / 200;
    assert!(each < 60, "{each} allocations");
}
