//! Structs, lists and tables that are written and read again, as text and as files; and values of them that somebody puts together.

use cembra::operators::Registry;
use cembra::program::{Sources, UsedFile};
use cembra::values::{ArrayKind, parse_type, parse_value, print_value};
use cembra::{Array, Backend, Limits, Model, Options, QType, Scalar, ScalarValue, Value};
use std::io;

const BOTH: [Backend; 2] = [Backend::Interpreter, Backend::Native];

fn find(name: &str, _: &str) -> io::Result<UsedFile> {
    let text = match name {
        "rates" => "country,year,rate\nCH,2024,1.08\nDE,2024,1.19\n",
        "items" => "sku,name,price\na,Apple,1.5\nb,,2\n",
        "bands" => "from,rate\n0,0.5\n1000,0.25\n",
        _ => return Err(io::ErrorKind::NotFound.into()),
    };
    Ok(UsedFile { name: name.to_owned(), text: text.into() })
}

const MODEL: &str = "
    table rates: (text, i64) -> f64 = \"rates\"
    table items: text -> {price: f64, name: text?} = \"items\"
    table bands: ranges of f64 -> {rate: f64} = \"bands\"
    input c: {country: text, year: i64}?, list: [{sku: text, n: i64}], more: dict[text, f64]
    fn price(s) = lookup(s, items, {price: 0.0, name: missing[text]}).price
    output rate = lookup((c.country, c.year), rates, 1.0)
    output total = sum(map(fn(i) = price(i.sku) * i.n, list))
    output band = lookup(1500, bands).rate
    output seven = lookup(\"a\", more)
    output gone = missing[{x: i32}].x
    output there = has(if c.year > 2024 then {x: 1})
";

fn evaluated(model: &Model, backend: Backend) -> Vec<String> {
    let executor = model.compile(&Options::default().backend(backend)).expect("a model");
    let of = |name: &str, text: &str| {
        let input = executor.inputs().iter().find(|input| &*input.name == name).expect("an input");
        cembra::program::cast_literal(&cembra::program::Literal::parse(text).expect("a literal"), &input.qtype)
            .expect("a value")
    };
    let given = executor.inputs().iter().map(|input| match &*input.name {
        "c" => of("c", "{country: \"DE\", year: 2024}"),
        "list" => of("list", "[{sku: \"a\", n: 2}, {sku: \"b\", n: 1}, {sku: \"z\", n: 9}]"),
        _ => of("more", "dict{\"a\": 7.5}"),
    });
    let given: Vec<Value> = given.collect();
    let made = executor.session().evaluate(&given).expect("values");
    made.iter().map(ToString::to_string).collect()
}

#[test]
fn models_with_them_are_the_same_as_text_and_in_files() {
    let limits = Limits::default();
    let sources = Sources::gather("m", MODEL, &limits, &find);
    let model = Model::parse_sources(sources, Registry::standard(), &limits).expect("a model");
    let text = |model: &Model| cembra::explain::print(model.program());
    let printed = Model::parse(&text(&model)).unwrap_or_else(|error| panic!("{error}\n{}", text(&model)));
    assert_eq!(text(&printed), text(&model));
    let binary = Model::from_binary(&model.to_binary()).expect("a model");
    for backend in BOTH {
        let expected = ["f64?{1.19}", "f64{5}", "f64?{0.25}", "f64?{7.5}", "i32?{NA}", "missing"];
        for model in [&model, &printed, &binary] {
            assert_eq!(evaluated(model, backend), expected);
        }
    }
}

#[test]
fn values_are_written_and_read_again() {
    let point = parse_type("{x: i32, y: {z: text?}?}").expect("a type");
    let made = |x: i32, z: Option<&str>| {
        let inner = parse_type("{z: text?}").expect("a type");
        let text = |text: &str| Value::from(Some(std::sync::Arc::<str>::from(text)));
        let inside = z.map(|z| {
            parse_value("NAMEDTUPLE{z: missing[text]}").map(|value| match value {
                Value::Tuple(fields) => Value::Tuple(fields.with(vec![text(z)])),
                other => other,
            })
        });
        let inside = inside.transpose().expect("a value");
        let y = Value::optional_struct(&inner, inside).expect("a struct");
        let QType::Tuple(fields) = &point else { panic!("{point}") };
        Value::Tuple(fields.with(vec![Value::from(x), y]))
    };
    let optional = Value::optional_struct(&point, Some(made(1, Some("a")))).expect("a struct");
    let missing = Value::optional_struct(&point, None).expect("a struct");
    let list = Value::list(&point, [made(1, None), made(2, Some("b"))]).expect("a list");
    let list_of_optional = Value::list(&point.optional_struct(), [missing.clone(), optional.clone()]).expect("a list");
    for value in [optional, missing, list, list_of_optional, Value::list(&point, []).expect("a list")] {
        let text = print_value(&value);
        let back = parse_value(&text).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!((&back, back.qtype()), (&value, value.qtype()), "{text}");
    }
    for wrong in [
        "STRUCTS{{x: i32}?: NAMEDTUPLE{y: 1}}",
        "STRUCTS{[{x: i32}]: NAMEDTUPLE{x: 1}, 2}",
        "STRUCTS{i32: 1}",
        "STRUCTS{{x: i32}?: NAMEDTUPLE{x: 1}, NAMEDTUPLE{x: 2}}",
    ] {
        assert!(parse_value(wrong).is_err(), "{wrong}");
    }
}

/// Whoever puts a value together says its type, and what the type promises is looked at before anything runs.
#[test]
fn values_that_do_not_keep_what_their_type_promises_are_refused() {
    let model =
        Model::parse("input l: [{p: f64, q: f64?}]; output s = sum(l.p) + sum(l.q ?? 0.0); output n = array.size(l)")
            .expect("a model");
    let list = parse_type("[{p: f64, q: f64?}]").expect("a type");
    let QType::Tuple(fields) = &list else { panic!("{list}") };
    let array = |values: &[Option<f64>]| {
        let scalars = values.iter().map(|value| value.map(ScalarValue::Float64));
        Value::Array(ArrayKind::Dense, Array::from_scalars(Scalar::Float64, scalars).into())
    };
    let of = |p: &[Option<f64>], q: &[Option<f64>]| Value::Tuple(fields.with(vec![array(p), array(q)]));
    for backend in BOTH {
        let mut session = model.compile(&Options::default().backend(backend)).expect("a model").session();
        let made = session.evaluate(&[of(&[Some(1.0), Some(2.0)], &[None, Some(4.0)])]).expect("values");
        assert_eq!(made, [Value::from(7.0), Value::from(2_i64)]);
        for wrong in [
            of(&[Some(1.0), None], &[None, None]),
            of(&[Some(1.0)], &[None, None]),
            of(&[Some(1.0)], &[]),
            Value::from(1.0),
        ] {
            let error = session.evaluate(std::slice::from_ref(&wrong)).expect_err("no list");
            assert_eq!(error.code(), "values", "{wrong:?}");
        }
        // The session goes on.
        assert!(session.evaluate(&[of(&[], &[])]).is_ok());
    }
}

/// Types of lists nest as deep as tuples may, and no deeper.
#[test]
fn lists_and_structs_nest_within_limits() {
    let nested = |depth: usize| format!("{}f64{}", "{x: ".repeat(depth), "}?".repeat(depth));
    let model = |depth: usize| format!("input l: [{}]; output n = array.size(l)", nested(depth));
    for backend in BOTH {
        let parsed = Model::parse(&model(20)).expect("a model");
        assert!(parsed.compile(&Options::default().backend(backend)).is_ok());
    }
    let error = Model::parse(&model(100)).expect_err("too deep");
    assert_eq!(error.code(), "limit");
    let wide = (0..20_000).map(|at| format!("f{at}: f64")).collect::<Vec<_>>().join(", ");
    let model = Model::parse(&format!("input l: [{{{wide}}}]; output n = sum(l.f19999)")).expect("a model");
    assert!(model.compile(&Options::default()).is_ok());
}
