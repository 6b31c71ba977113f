//! Tests user operators in models, with both backends: plain and optional closures, functions that fail or panic,
//! overloads, a closure with a rule for machine code, and functions that are compiled from a literal.

use cembra::operators::{Cell, Fallible, Reason, Registry, UserOperator};
use cembra::{Backend, Date, Duration, Limits, Mask, Model, Options, Scalar, Text, Timestamp, Value};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI32, Ordering};

fn registry() -> &'static Registry {
    static REGISTRY: OnceLock<&'static Registry> = OnceLock::new();
    REGISTRY.get_or_init(|| {
        let offset = 0.5;
        let operators = [
            UserOperator::new("my.shift").function(move |x: f64| x + offset),
            UserOperator::new("my.first").params(&["a", "b"]).function(|a: Option<i32>, b: Option<i32>| a.or(b)),
            UserOperator::new("my.root")
                .fallible(|x: f64| if x < 0.0 { Err("a negative number") } else { Ok(x.sqrt()) }),
            UserOperator::new("my.rate").fallible(|name: &str| match name {
                "CHF" => Ok(0.5),
                "" => Err(Reason::new("no-name", "the name is empty")),
                other => Err(Reason::new("no-rate", format_args!("no rate for {other}"))),
            }),
            UserOperator::new("my.number").fallible(|text: &str| text.parse::<i64>()),
            UserOperator::new("my.told").fallible(|x: i64| if x < 0 { Err(format!("{x} is negative")) } else { Ok(x) }),
            UserOperator::new("my.is_holiday").function(|day: Date| day.0 % 7 == 0),
            UserOperator::new("my.workday").function(|day: Date, by: Option<i64>| Date(day.0 + by.unwrap_or(1) as i32)),
            UserOperator::new("my.opens")
                .function(|at: Timestamp, open: Option<Duration>| open.map(|open| Timestamp(at.0 + open.0))),
            UserOperator::new("my.half_of").function(|length: Duration| Duration(length.0 / 2)),
            UserOperator::new("my.panics").function(|x: i32| if x == 0 { panic!("zero") } else { x }),
            UserOperator::new("my.throws").function(|x: i32| if x == 0 { std::panic::panic_any(Bomb) } else { x }),
            UserOperator::new("my.size").function(|x: i64| x * 10).function(|x: f64| x * 100.0),
            // Every type that fits a register, more arguments than there are registers for them, and each in its place.
            UserOperator::new("my.all").function(|a: bool, b: i32, c: i64, d: f32, e: f64, f: u64| {
                f64::from(u8::from(a))
                    + f64::from(b) * 10.0
                    + c as f64 * 1e3
                    + f64::from(d) * 1e5
                    + e * 1e7
                    + f as f64 * 1e9
            }),
            UserOperator::new("my.places").function(
                |a: Option<bool>, b: Option<i32>, c: Option<f32>, d: Option<()>, e: Option<f64>, f: Option<i64>| {
                    [a.is_some(), b.is_some(), c.is_some(), d.is_some(), e.is_some(), f.is_some()]
                        .into_iter()
                        .fold(0_i32, |bits, there| bits * 10 + i32::from(there))
                },
            ),
            UserOperator::new("my.not").function(|x: bool| !x),
            UserOperator::new("my.half").function(|x: f32| x / 2.0),
            UserOperator::new("my.next").function(|x: i64| x.wrapping_add(1)),
            UserOperator::new("my.positive").function(|x: i32| (x > 0).then_some(())),
            UserOperator::new("my.even").function(|x: Option<i32>| x.filter(|x| x % 2 == 0)),
            UserOperator::new("my.initial").function(|x: Text<'_>| x.as_str().len() as i32),
            UserOperator::new("my.curve").params(&["points", "x"]).compiled(curve),
            UserOperator::new("my.count").compiled(|_: &str| {
                let alive = Alive::new();
                Ok::<_, String>(move |x: i32| alive.plus(x))
            }),
            UserOperator::new("my.double").with_rule(
                |x: f64| x + x,
                |tape, args| {
                    let x = args[0].val(tape);
                    Cell::num(tape.bin(cembra::operators::Bin::Add, x, x))
                },
            ),
        ];
        let mut registry = Registry::standard().clone();
        for operator in operators {
            registry.register(operator).expect("a new name");
        }
        registry.leak()
    })
}

/// Returns a function that interpolates linearly between the points in the text `points`, such as `0:1 2:5`. The
/// function fails outside of the points.
fn curve(points: &str) -> Result<Fallible<impl Fn(f64) -> Result<f64, &'static str> + use<>>, String> {
    let number = |text: &str| text.parse::<f64>().map_err(|_| format!("`{text}` is no number"));
    let point = |text: &str| {
        let (x, y) = text.split_once(':').ok_or_else(|| format!("`{text}` is no point"))?;
        Ok((number(x)?, number(y)?))
    };
    let points: Vec<(f64, f64)> = points.split(' ').map(point).collect::<Result<_, String>>()?;
    Ok(Fallible(move |x: f64| {
        let after = points.partition_point(|point| point.0 <= x);
        match (after.checked_sub(1).map(|before| points[before]), points.get(after)) {
            (Some((x0, y0)), Some((x1, y1))) => Ok(y0 + (x - x0) / (x1 - x0) * (y1 - y0)),
            _ => Err("outside of the curve"),
        }
    }))
}

/// A panic payload that panics again when it is dropped.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("and again");
    }
}

static ALIVE: AtomicI32 = AtomicI32::new(0);

/// A value that is counted as long as it exists.
struct Alive(i32);

impl Alive {
    fn new() -> Self {
        ALIVE.fetch_add(1, Ordering::Relaxed);
        Alive(100)
    }

    fn plus(&self, x: i32) -> i32 {
        self.0 + x
    }
}

impl Drop for Alive {
    fn drop(&mut self) {
        ALIVE.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Evaluates an expression over `x` with both backends, asserts that they agree, and returns the value, or the error's
/// code and text.
fn run(expression: &str, x: Value) -> Result<Value, (String, String)> {
    let model = Model::parse_with(expression, registry(), &Limits::default()).expect("a model");
    let [interpreted, native] = [Backend::Interpreter, Backend::Native].map(|backend| {
        let options = Options::default().backend(backend).registry(registry()).input_type("x", x.qtype());
        let result = model.compile(&options).expect("it compiles").session().evaluate(std::slice::from_ref(&x));
        result.map(|mut values| values.remove(0)).map_err(|error| (error.code().to_owned(), error.message()))
    });
    assert_eq!(interpreted, native, "{expression}");
    native
}

#[test]
fn closures_are_operators() {
    assert_eq!(run("my.shift(x) * 2", 1.0_f64.into()), Ok(3.0_f64.into()));
    assert_eq!(run("my.shift(x)", None::<f64>.into()), Ok(None::<f64>.into()));
    // An implicit cast, as for any operator.
    assert_eq!(run("my.shift(x)", 2_i32.into()), Ok(2.5_f64.into()));
    assert_eq!(run("my.first(x, 7)", None::<i32>.into()), Ok(Some(7_i32).into()));
    assert_eq!(run("my.first(b = x, a = 3)", Some(5_i32).into()), Ok(Some(3_i32).into()));
    assert_eq!(run("my.size(x)", 2_i32.into()), Ok(20_i64.into()));
    assert_eq!(run("my.size(x)", 2.0_f32.into()), Ok(200.0_f64.into()));
    assert_eq!(run("my.double(x) - 1", 1.5_f64.into()), Ok(2.0_f64.into()));
    assert_eq!(run("my.double(x)", Value::Missing(Scalar::Float64)), Ok(None::<f64>.into()));
}

#[test]
fn failures_and_panics_are_errors_of_the_evaluation() {
    let invalid = |text: &str| Err(("invalid".to_owned(), text.to_owned()));
    assert_eq!(run("my.root(x)", 9.0_f64.into()), Ok(3.0_f64.into()));
    assert_eq!(run("my.root(x)", (-1.0_f64).into()), invalid("my.root: a negative number"));
    assert_eq!(run("where(x > 0, my.root(x), 0.0)", (-1.0_f64).into()), Ok(0.0_f64.into()));
    assert_eq!(run("my.panics(x)", 0_i32.into()), invalid("my.panics: the operator panicked: zero"));
    assert_eq!(run("my.panics(x)", 4_i32.into()), Ok(4_i32.into()));
    assert_eq!(run("my.panics(x)", Some(0_i32).into()), invalid("my.panics: the operator panicked: zero"));
    assert_eq!(
        run("my.throws(x)", 0_i32.into()),
        invalid("my.throws: the operator panicked: a panic without a message")
    );
}

#[test]
fn arguments_and_results_arrive_whatever_their_types() {
    let x = |value: f64| Value::from(value);
    let all = "my.all(x > 0 == present, core.to_int32(x), 3i64, 0.5f32, x, u64)";
    let all = all.replace("x > 0 == present", "core.to_bool(x)").replace("u64", "core.to_uint64(7)");
    assert_eq!(run(&all, x(2.0)), Ok((1.0 + 20.0 + 3e3 + 0.5e5 + 2e7 + 7e9).into()));
    assert_eq!(run(&all, Some(2.0).into()), Ok(Some(1.0 + 20.0 + 3e3 + 0.5e5 + 2e7 + 7e9).into()));
    assert_eq!(run(&all, None::<f64>.into()), Ok(None::<f64>.into()));
    let places = "my.places(missing[bool], x, 1.5f32, x > 3, core.to_float64(x), 9)";
    assert_eq!(run(places, Some(2_i32).into()), Ok(11_011.into()));
    assert_eq!(run(places, Some(4_i32).into()), Ok(11_111.into()));
    assert_eq!(run(places, None::<i32>.into()), Ok(1_001.into()));
    assert_eq!(run(places, 4_i32.into()), Ok(11_111.into()));
    assert_eq!(run("my.not(x)", true.into()), Ok(false.into()));
    assert_eq!(run("my.not(x) == false", Some(true).into()), Ok(Mask(true).into()));
    assert_eq!(run("my.half(x) + 1.0", 3.0_f32.into()), Ok(2.5_f32.into()));
    assert_eq!(run("my.next(x)", i64::MAX.into()), Ok(i64::MIN.into()));
    assert_eq!(run("my.positive(x)", 3_i32.into()), Ok(Mask(true).into()));
    assert_eq!(run("my.positive(x)", (-3_i32).into()), Ok(Mask(false).into()));
    assert_eq!(run("my.even(x)", Some(4_i32).into()), Ok(Some(4_i32).into()));
    assert_eq!(run("my.even(x) ?? -1", Some(5_i32).into()), Ok((-1_i32).into()));
    assert_eq!(run("my.initial(x)", "four".into()), Ok(4_i32.into()));
}

#[test]
fn operators_are_compiled_from_a_literal() {
    assert_eq!(run("my.curve('0:1 2:5 3:0', x)", 1.0_f64.into()), Ok(3.0_f64.into()));
    assert_eq!(
        run("let flat = '0:1 9:1'; my.curve(flat, x) + my.curve(x = x, points = '0:0 9:9')", 2_i32.into()),
        Ok(3.0.into())
    );
    assert_eq!(run("my.curve('0:1 2:5', x)", Some(0.5_f64).into()), Ok(Some(2.0_f64).into()));
    assert_eq!(run("my.curve('0:1 2:5', x)", None::<f64>.into()), Ok(None::<f64>.into()));
    assert_eq!(run("my.curve('0:1 2:5', 1) * x", 2.0_f64.into()), Ok(6.0_f64.into()));
    let outside = Err(("invalid".to_owned(), "my.curve: outside of the curve".to_owned()));
    assert_eq!(run("my.curve('0:1 2:5', x)", 2.0_f64.into()), outside);
    assert_eq!(run("where(x < 2, my.curve('0:1 2:5', x), 0.0)", 2.0_f64.into()), Ok(0.0_f64.into()));

    let refused = |source: &str| {
        let model = Model::parse_with(source, registry(), &Limits::default()).expect("a model");
        let error = model.compile(&Options::default().registry(registry())).expect_err("a literal that cannot be");
        (error.code(), error.message(), error.span().map(|span| span.text(source).to_owned()))
    };
    let (code, text, span) = refused("input x: f64; 1 + my.curve('0:one', x)");
    assert_eq!((code, text.as_str()), ("literal", "my.curve: `one` is no number"));
    assert_eq!(span.as_deref(), Some("my.curve('0:one', x)"));
    let (code, text, _) = refused("input t: text, x: f64; my.curve(t, x)");
    assert_eq!(code, "type-mismatch");
    assert_eq!(
        text,
        "my.curve needs a literal for `points`; write a literal: the operator is compiled from it, together with the model"
    );
}

#[test]
fn what_an_operator_is_compiled_to_lives_as_long_as_the_model() {
    let alive = || ALIVE.load(Ordering::Relaxed);
    for backend in [Backend::Interpreter, Backend::Native] {
        let model =
            Model::parse_with("input x: i32; my.count('', x) + my.count('b', x)", registry(), &Limits::default());
        let options = Options::default().backend(backend).registry(registry());
        let executor = model.and_then(|model| model.compile(&options)).expect("it compiles");
        assert_eq!(alive(), 2, "once a literal");
        let mut session = executor.session();
        drop(executor);
        for x in 0..3_i32 {
            assert_eq!(session.evaluate(&[x.into()]).expect("a value"), [(200 + 2 * x).into()]);
        }
        assert_eq!(alive(), 2, "not once an evaluation");
        drop(session);
        assert_eq!(alive(), 0);
    }
}

#[test]
fn what_cannot_be_registered_is_said() {
    let mut registry = Registry::standard().clone();
    let mut register =
        |operator: UserOperator| registry.register(operator).map(|_| ()).map_err(|error| error.to_string());
    let f = |x: f64| x;
    assert_eq!(
        register(UserOperator::new("math.add").function(f)),
        Err("there is an operator `math.add` already".into())
    );
    assert_eq!(
        register(UserOperator::new("plain").function(f)),
        Err("`plain` is not a name of the form `family.name`".into())
    );
    assert_eq!(
        register(UserOperator::new("my.none")),
        Err("operator `my.none` needs functions with the same number of arguments, all strict or none".into())
    );
    let unlike = UserOperator::new("my.unlike").function(f).function(|x: f64, y: f64| x + y);
    assert_eq!(
        register(unlike),
        Err("operator `my.unlike` needs functions with the same number of arguments, all strict or none".into())
    );
    assert_eq!(register(UserOperator::new("my.own").function(f)), Ok(()));
}

#[test]
fn reasons_are_any_text_with_a_code_of_their_own() {
    let refused = |code: &str, text: &str| Err((code.to_owned(), text.to_owned()));
    assert_eq!(run("my.rate(x)", "CHF".into()), Ok(0.5_f64.into()));
    assert_eq!(run("my.rate(x)", "XYZ".into()), refused("no-rate", "my.rate: no rate for XYZ"));
    assert_eq!(run("my.rate(x)", "".into()), refused("no-name", "my.rate: the name is empty"));
    assert_eq!(run("my.rate(x)", "a\nb".into()), refused("no-rate", "my.rate: no rate for a\\nb"));
    assert_eq!(run("my.number(x)", "7".into()), Ok(7_i64.into()));
    assert_eq!(run("my.number(x)", "seven".into()), refused("invalid", "my.number: invalid digit found in string"));
    assert_eq!(run("my.told(x)", (-3_i64).into()), refused("invalid", "my.told: -3 is negative"));
    // A test of the model may expect such a code.
    let text = "input x: text; output y = my.rate(x); test \"t\" { x = \"Z\" } => error \"no-rate\"";
    let model = Model::parse_with(text, registry(), &Limits::default()).expect("a model");
    let report = model.run_tests(&Options::default());
    assert_eq!((report.cases, report.failures.len()), (1, 0));
    assert!(model.warnings(&Options::default()).as_slice().is_empty());
    // A long one is cut, a lazy one not evaluated.
    let (code, text) = run("my.rate(x)", "long ".repeat(100_000).as_str().into()).unwrap_err();
    assert!(code == "no-rate" && text.len() < 1_100, "{} bytes", text.len());
    assert_eq!(run("if x == \"\" then 0.0 else my.rate(x)", "".into()), Ok(0.0_f64.into()));
    let model = Model::parse_with("input x: text; my.rate(x)", registry(), &Limits::default()).expect("a model");
    let error = model.compile(&Options::default()).unwrap().session().evaluate(&["XYZ".into()]).unwrap_err();
    assert_eq!(error.fault_kind(), Some(cembra::FaultKind::Invalid));
    assert_eq!(error.operator(), Some("my.rate"));
    // Rows of a batch, elements of arrays, and lists of requests say the same.
    let texts: Vec<String> = (0..300).map(|row| if row == 211 { "row 211".into() } else { "CHF".to_owned() }).collect();
    let views: Vec<&str> = texts.iter().map(String::as_str).collect();
    for player in [cembra::explain::RowPlayer::Best, cembra::explain::RowPlayer::Interpreter] {
        let options = Options::default().row_player(player);
        let error =
            model.batch(&options).unwrap().run(&[cembra::columns::InputColumn::texts(&views)]).map(|_| ()).unwrap_err();
        assert_eq!((error.code(), error.row()), ("no-rate", Some(211)));
        assert!(error.message().starts_with("my.rate: no rate for row 211"), "{error}");
    }
    let model = Model::parse_with("input x: [text]; sum(my.rate(x))", registry(), &Limits::default()).expect("a model");
    for (size, at) in [(3, 1), (300, 211)] {
        let texts =
            (0..size).map(|row| Some(cembra::ScalarValue::Text(if row == at { "Z".into() } else { "CHF".into() })));
        let array = cembra::Array::from_scalars(Scalar::Text, texts);
        let mut session = model.compile(&Options::default()).unwrap().session();
        let error = session.evaluate(&[Value::Array(cembra::values::ArrayKind::Dense, array.into())]).unwrap_err();
        assert_eq!((error.code(), error.element()), ("no-rate", Some(at)));
    }
}

#[test]
fn dates_timestamps_and_durations_go_in_and_out_of_operators() {
    let day = Date(20_777);
    assert_eq!(run("my.is_holiday(x)", day.into()), Ok((20_777 % 7 == 0).into()));
    assert_eq!(run("my.workday(x, 3)", day.into()), Ok(Date(20_780).into()));
    assert_eq!(run("my.workday(x, missing[i64]) - x", day.into()), run("(x + 1) - x", day.into()));
    assert_eq!(run("my.is_holiday(x)", None::<Date>.into()), Ok(None::<bool>.into()));
    let at = Timestamp(86_400_000_000);
    assert_eq!(run("my.opens(x, 1h)", at.into()), Ok(Some(Timestamp(at.0 + 3_600_000_000)).into()));
    assert_eq!(run("my.opens(x, missing[duration])", at.into()), Ok(None::<Timestamp>.into()));
    assert_eq!(run("my.half_of(x) + 1s", Duration(10_000_000).into()), Ok(Duration(6_000_000).into()));
    // Reasons take no room of the strings of an evaluation, however many there are.
    let small = Options::default().limits(Limits::default().arena_bytes(64));
    let model = Model::parse_with("input x: i64; my.told(x)", registry(), &Limits::default()).expect("a model");
    let mut session = model.compile(&small).unwrap().session();
    for x in -10_000..0_i64 {
        let error = session.evaluate(&[x.into()]).unwrap_err();
        assert_eq!(error.message(), format!("my.told: {x} is negative"));
    }
    // A declaration in the text says the same types.
    let declared = "extern fn my.is_holiday(date): bool; my.is_holiday(x)";
    assert_eq!(run(declared, day.into()), run("my.is_holiday(x)", day.into()));
}
