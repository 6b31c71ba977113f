//! Tests how errors are rendered: with the lines of a model, of the files that it uses, of another text, and without
//! text.

use cembra::errors::{Renderer, Source};
use cembra::operators::Registry;
use cembra::program::{Sources, UsedFile};
use cembra::values::ArrayKind;
use cembra::{Array, Error, Limits, Model, ModelSet, Options, Pool, Scalar, ScalarValue, Value};

fn used(text: &'static str) -> impl Fn(&str, &str) -> std::io::Result<UsedFile> {
    move |name, _| Ok(UsedFile { name: name.to_owned(), text: text.into() })
}

#[test]
fn places_are_of_the_file_that_they_are_in() {
    let limits = Limits::default();
    let sources = Sources::gather("m.cem", "use \"c.cem\"\nhalf(1, true)", &limits, &used("\nfn half(x, y) = x / y"));
    let model = Model::parse_sources(sources, Registry::standard(), &limits).unwrap();
    let error = model.compile(&Options::default()).unwrap_err();
    let shown = error.render(&model);
    assert!(shown.contains(" --> c.cem:2:17\n") && shown.contains("2 | fn half(x, y) = x / y\n"), "{shown}");

    let sources =
        Sources::gather("m.cem", "use \"c.cem\"\ninput x: i64\npart(x)", &limits, &used("fn part(x) = 10 // x"));
    let model = Model::parse_sources(sources, Registry::standard(), &limits).unwrap();
    for options in [Options::default(), Options::default().backend(cembra::Backend::Interpreter)] {
        let mut session = model.compile(&options).unwrap().session();
        let error = session.evaluate(&[Value::from(0_i64)]).unwrap_err();
        assert_eq!(error.message(), "math.floor_divide: division by zero");
        assert_eq!(error.to_string(), "math.floor_divide: division by zero (c.cem:1:14: `10 // x`)");
        assert!(
            error
                .render(&model)
                .starts_with("error[evaluation]: math.floor_divide: division by zero\n --> c.cem:1:14\n")
        );
    }
}

#[test]
fn faults_say_where_in_batches_and_arrays() {
    let model = Model::parse("input x: i64\noutput y = 10 // x").unwrap().named("y.cem");
    let column = [5_i64, 0];
    let error = model.batch(&Options::default()).unwrap().run(&[(&column[..]).into()]).map(|_| ()).unwrap_err();
    assert_eq!(error.to_string(), "math.floor_divide: division by zero, in row 1 (y.cem:2:12: `10 // x`)");
    let model = Model::parse("input x: [i64]\n10 // x").unwrap();
    let mut session = model.compile(&Options::default()).unwrap().session();
    let numbers = Array::from_scalars(Scalar::Int64, [1, 0, 2].map(|number| Some(ScalarValue::Int64(number))));
    let error = session.evaluate(&[Value::Array(ArrayKind::Dense, numbers.into())]).unwrap_err();
    assert_eq!(error.to_string(), "math.floor_divide: division by zero, in element 1 (line 2, column 1: `10 // x`)");
}

#[test]
fn a_model_without_text_shows_none() {
    let text = "input x: f64; x + \"a\"";
    let bytes = Model::parse(text).unwrap().to_binary();
    let model = Model::from_binary(&bytes).unwrap();
    let error = model.compile(&Options::default()).unwrap_err();
    let shown = error.render(&model.clone().named("saved"));
    let message = error.diagnostics()[0].message().to_owned();
    assert!(shown.starts_with(&format!("error[type-mismatch]: {message}\n--> saved\n = help: ")), "{shown}");
    // Whoever has the text can show it all the same.
    assert!(error.render(Source::new("saved", text)).contains(" --> saved:1:15\n"));
}

#[test]
fn what_is_quoted_of_a_text_is_short() {
    let text = format!("input x: i64\n1 // (x\n  - 1) + {}", "1 + ".repeat(100_000) + "1");
    let model = Model::parse(&text).unwrap();
    let mut session = model.compile(&Options::default()).unwrap().session();
    let error = session.evaluate(&[Value::from(1_i64)]).unwrap_err();
    assert_eq!(error.to_string(), "math.floor_divide: division by zero (line 2, column 1: `1 // (x`)");
    assert!(Renderer::styled().errors(&error.diagnostics(), &[], &model).contains('\u{1b}'));
}

#[test]
fn what_is_wrong_in_a_function_shows_the_calls_that_led_there() {
    let text = "fn half(x) = x + \"a\"\nfn twice(x) = half(x) * 2\ninput a: f64\ninput b: i64\n\
                output y = twice(a)\noutput z = half(b)\noutput same = twice(a + 1.0)";
    let model = Model::parse(text).unwrap().named("m.cem");
    let error = model.compile(&Options::default()).unwrap_err();
    // The last call is wrong as the first one is, which is said.
    assert_eq!(
        error.render(&model),
        "\
error[type-mismatch]: strings.join expects strings, found f64
 --> m.cem:1:14
  |
1 | fn half(x) = x + \"a\"
  |              ^^^^---
  |                  |
  |                  this is text
  |
 ::: m.cem:2:15
  |
2 | fn twice(x) = half(x) * 2
  |               ------- in this call of `half`
  |
 ::: m.cem:5:12
  |
5 | output y = twice(a)
  |            -------- in this call of `twice`
  |
  = help: convert the value to a text with `strings.as_text(..)`

error[type-mismatch]: strings.join expects strings, found i64
 --> m.cem:1:14
  |
1 | fn half(x) = x + \"a\"
  |              ^^^^---
  |                  |
  |                  this is text
  |
 ::: m.cem:6:12
  |
6 | output z = half(b)
  |            ------- in this call of `half`
  |
  = help: convert the value to a text with `strings.as_text(..)`"
    );
}

#[test]
fn calls_of_functions_that_are_values_are_shown_too() {
    let text = "fn add(x, y) = x + y\nfn sum(t) = core.reduce_tuple(add, t)\ninput a: f64\noutput y = sum((a, \"b\"))";
    let model = Model::parse(text).unwrap().named("m.cem");
    let error = model.compile(&Options::default()).unwrap_err();
    let found = &error.diagnostics()[0];
    let labels: Vec<_> = found.others().iter().map(|label| (label.span.text(text), &*label.text)).collect();
    let wanted = [("core.reduce_tuple(add, t)", "in this call"), ("sum((a, \"b\"))", "in this call of `sum`")];
    assert_eq!(labels, wanted);
    assert_eq!(error.span().map(|span| span.text(text)), Some("x"));
}

/// The expansion of an operator is built when types are known. An error in it also shows the calls that lead to the
/// operator.
#[test]
fn problems_of_what_operators_stand_for_show_the_calls_too() {
    let say = "fn say(x) = strings.format(\"{x} {y}\", x=x)\nfn twice(x) = (say(x), 1)\n";
    let cases = [
        (format!("{say}input a: f64\noutput y = twice(a)"), "twice(a)"),
        // Of elements of arrays, and in a function that is given to an operator.
        (format!("{say}input a: [f64]\noutput y = twice(a).0"), "twice(a)"),
        (format!("{say}input a: [f64]\noutput y = core.map(fn(x) = twice(x).0, a)"), "twice(x)"),
    ];
    for (text, outer) in cases {
        let error = Model::parse(&text).unwrap().compile(&Options::default()).unwrap_err();
        let diagnostics = error.diagnostics();
        let [found] = &diagnostics[..] else { panic!("{error}") };
        assert_eq!(found.span().map(|span| span.text(&text)), Some("strings.format(\"{x} {y}\", x=x)"), "{text}");
        let labels: Vec<_> = found.others().iter().map(|label| (label.span.text(&text), &*label.text)).collect();
        assert_eq!(labels, [("say(x)", "in this call of `say`"), (outer, "in this call of `twice`")], "{text}");
    }
    // Where nothing is called, nothing is said.
    let error =
        Model::parse("input x: f64; strings.format(\"{y}\", x=x)").unwrap().compile(&Options::default()).unwrap_err();
    assert!(error.diagnostics()[0].others().is_empty(), "{error}");
}

#[test]
fn faults_in_a_function_show_the_calls_too() {
    let text = "fn part(x) = 10 // x\nfn parts(x, y) = part(x) + part(y)\ninput a: i64\ninput b: i64\nparts(a, b)";
    let model = Model::parse(text).unwrap();
    for options in [Options::default(), Options::default().backend(cembra::Backend::Interpreter)] {
        let mut session = model.compile(&options).unwrap().session();
        for (values, place) in [([0_i64, 1], "part(x)"), ([1, 0], "part(y)")] {
            let error = session.evaluate(&values.map(Value::from)).unwrap_err();
            let found = &error.diagnostics()[0];
            let labels: Vec<_> = found.others().iter().map(|label| (label.span.text(text), &*label.text)).collect();
            let wanted = [(place, "in this call of `part`"), ("parts(a, b)", "in this call of `parts`")];
            assert_eq!((error.span().map(|span| span.text(text)), &labels[..]), (Some("10 // x"), &wanted[..]));
        }
    }
}

#[test]
fn a_long_chain_of_calls_is_counted() {
    let mut text = String::from("input a: f64\nfn f_0(x) = x + \"a\"\n");
    for at in 1..20_000 {
        text.push_str(&format!("fn f_{at}(x) = f_{}(x)\n", at - 1));
    }
    text.push_str("output y = f_19999(a)\n");
    let model = Model::parse(&text).unwrap();
    let error = model.compile(&Options::default()).unwrap_err();
    let found = &error.diagnostics()[0];
    let labels: Vec<_> = found.others().iter().map(|label| &*label.text).collect();
    // The first is the text beside `x`.
    assert_eq!(labels.len(), 6, "{labels:?}");
    assert_eq!((labels[1], labels[5]), ("in this call of `f_0`", "in this call of `f_4`, inside of 19995 more"));
}

/// Returns the hints of the first error in the model `text`.
fn hints(text: &str) -> Vec<String> {
    let found = Model::parse(text).and_then(|model| model.compile(&Options::default()));
    found.expect_err(text).diagnostics()[0].hints().to_vec()
}

#[test]
fn hints_say_what_works() {
    let compared = |written: &str| vec![format!("write `{written}`: a comparison gives a mask, not a `bool`")];
    for (text, written) in [
        ("a > 1.0 == true", "(a > 1.0)"),
        ("a > 1.0 != false", "(a > 1.0)"),
        ("a > 1.0 == false", "not (a > 1.0)"),
        ("a > 1.0 != true", "not (a > 1.0)"),
    ] {
        assert_eq!(hints(&format!("input a: f64; {text}")), compared(written));
        let mended = Model::parse(&format!("input a: f64; {written}")).unwrap();
        assert!(mended.compile(&Options::default()).is_ok(), "{written}");
    }
    let [hint] = &hints("input a: f64; (a > 1.0) == true")[..] else { panic!("one hint") };
    assert!(hint.starts_with("leave out `== true` after a comparison"), "{hint}");
    let [hint] = &hints("input a: f64; a == \"b\"")[..] else { panic!("one hint") };
    assert!(
        hint.starts_with("write a number without quotes, or read it from a text with `strings.parse_float64(..)`"),
        "{hint}"
    );
    assert_eq!(hints("input a: f64; output y: f32 = a"), ["declare the type `f64`, or cast the value: `cast(x, f32)`"]);
    // Where a declared type asks for integers, what is told to be written is right for the value as it stands.
    for (inputs, value, wanted, told) in [
        (
            "input k: i64",
            "k ** 2",
            "i64",
            "write `core.to_int64(x)`, which drops the fraction, or declare the type `f64`; ",
        ),
        (
            "input k: i64",
            "3 * k ** 2 + 1",
            "i32",
            "write `core.to_int32(x)`, which drops the fraction, or declare the type `f64`; ",
        ),
        (
            "input k: i64?",
            "k / 2",
            "i64",
            "write `core.to_int64(x) ?? 0`, which drops the fraction, or declare the type `f64?`; ",
        ),
        (
            "input k: [i64]",
            "k ** 2",
            "[i64]",
            "write `core.to_int64(x)`, which drops the fraction, or declare the type `[f64?]`; ",
        ),
        ("", "2.5", "i64", "write `core.to_int64(x)`, which drops the fraction, or declare the type `f64`; "),
    ] {
        let [hint] = &hints(&format!("{inputs}\noutput y: {wanted} = {value}"))[..] else { panic!("one hint") };
        assert!(hint.starts_with(told), "{hint}");
        let written = hint.split('`').nth(1).expect("what to write").replace('x', value);
        let declared = hint.split('`').nth(3).expect("another type");
        for works in
            [format!("{inputs}\noutput y: {wanted} = {written}"), format!("{inputs}\noutput y: {declared} = {value}")]
        {
            assert!(Model::parse(&works).unwrap().compile(&Options::default()).is_ok(), "{works}");
        }
    }
    for works in ["k * k", "k // 2"] {
        assert!(
            Model::parse(&format!("input k: i64; output y: i64 = {works}"))
                .unwrap()
                .compile(&Options::default())
                .is_ok()
        );
    }
    for works in
        ["input a: f32; output y: f64 = a", "input a: f64; output y: bool = a > 1.0", "fn f(x: bool) = x; f(1 > 2)"]
    {
        assert!(Model::parse(works).unwrap().compile(&Options::default()).is_ok(), "{works}");
    }
}

#[test]
fn names_of_types_elsewhere_are_understood() {
    for (written, meant) in [
        ("float", "f64"),
        ("double", "f64"),
        ("number", "f64"),
        ("int", "i64"),
        ("integer", "i64"),
        ("String", "text"),
        ("str?", "text"),
        ("[float]", "f64"),
    ] {
        let found = hints(&format!("input x: {written}; output y = x"));
        assert_eq!(found[0], format!("did you mean `{meant}`?"), "{written}");
        assert!(found[1].starts_with("the types are `unit`, `bool`, `i32`, "), "{}", found[1]);
    }
    assert_eq!(hints("input x: boolean; output y = x"), ["did you mean `bool`?"]);
    assert_eq!(hints("input x: thing; output y = x").len(), 1);
}

#[test]
fn an_error_that_main_returns_shows_its_lines() {
    let read = Model::parse("input x: f64\noutput y = x + a b").map(|_| ()).unwrap_err();
    assert!(format!("{read:?}").contains(" --> model:2:18\n  |\n2 | output y = x + a b\n"), "{read:?}");
    let model = Model::parse("input x: f64\noutput y = x + \"a\"").unwrap().named("sum.cem");
    type Door = fn(&Model, &Options) -> Result<(), Error>;
    let doors: [Door; 6] = [
        |model, options| model.compile(options).map(|_| ()),
        |model, options| model.batch(options).map(|_| ()),
        |model, options| model.signature(options).map(|_| ()),
        |model, options| model.summary(options).map(|_| ()),
        |model, options| model.explain(options, cembra::explain::Stage::Plan).map(|_| ()),
        |model, options| model.executor::<(), f64>(options).map(|_| ()),
    ];
    for (at, door) in doors.iter().enumerate() {
        let error = door(&model, &Options::default()).unwrap_err();
        let shown = format!("{error:?}");
        assert_eq!(shown, error.render(&model), "{at}");
        assert!(shown.contains(" --> sum.cem:2:12\n"), "{shown}");
    }
    let model = Model::parse("input x: i64\noutput y = 10 // x").unwrap().named("y.cem");
    let error = model.compile(&Options::default()).unwrap().session().evaluate(&[Value::from(0_i64)]).unwrap_err();
    assert!(format!("{error:?}").contains(" --> y.cem:2:12\n  |\n2 | output y = 10 // x\n"), "{error:?}");
    // Of values there is no text to show, of a builder's model neither.
    assert_eq!(format!("{:?}", Error::values("no rows")), "error[values]: no rows");
    let built = Model::from_binary(&Model::parse("input x: f64; x + \"a\"").unwrap().to_binary()).unwrap();
    let error = built.compile(&Options::default()).unwrap_err();
    let shown = format!("{error:?}");
    assert!(shown.starts_with("error[type-mismatch]: strings.join ") && !shown.contains('\n'), "{shown}");
}

#[test]
fn what_a_service_keeps_prints_as_a_line() {
    let text = "input secret: f64, other: i64; output y = secret * 2.0 + other";
    let model = Model::parse(text).unwrap().named("rates.cem");
    let executor = model.compile(&Options::default()).unwrap();
    let rest = "name: \"rates.cem\", inputs: 2, outputs: 1 }";
    assert_eq!(format!("{model:?}"), format!("Model {{ {rest}"));
    assert_eq!(format!("{executor:?}"), format!("Executor {{ {rest}"));
    let session = executor.session();
    assert_eq!(format!("{session:?}"), format!("Session {{ {rest}"));
    let pool = Pool::new(session);
    pool.with(|session| session.evaluate(&[Value::from(1.0), Value::from(2_i64)])).unwrap();
    assert_eq!(format!("{pool:?}"), format!("Pool {{ of: Session {{ {rest}, idle: 1, most: 400 }}"));
    assert_eq!(format!("{:?}", model.batch(&Options::default()).unwrap()), "Batch { inputs: 2, outputs: 1 }");
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.cem"), "input x: f64; x *").unwrap();
    std::fs::write(folder.path().join("b.cem"), "input x: f64; x * 2.0").unwrap();
    let set = ModelSet::load(folder.path()).unwrap();
    assert_eq!(format!("{set:?}"), format!("ModelSet {{ folder: {:?}, models: 1 }}", folder.path()));
    let failed = &set.reload().unwrap().failed[0];
    assert_eq!(format!("{failed:?}"), failed.to_string());
    #[cfg(feature = "json")]
    {
        let json = model.json_executor(&Options::default()).unwrap();
        assert_eq!(format!("{json:?}"), format!("JsonExecutor {{ {rest}"));
    }
}

#[test]
fn an_output_of_another_type_is_told_how_to_declare_it() {
    let hint = |text: &str| {
        let error = Model::parse(text).unwrap().executor::<(), f64>(&Options::default()).map(|_| ()).unwrap_err();
        error.diagnostics()[0].hints()[0].clone()
    };
    assert_eq!(hint("output y = 3 // 2"), "declare `output y: f64 = ..`, or set `cast_outputs`");
    assert!(hint("output y = \"a\"").starts_with("declare `output y: f64 = ..`; use `strings.parse_float64(..)`"));
    assert!(hint("output y = true").starts_with("declare `output y: f64 = ..`, whose error shows"));
    assert!(hint("output \"a b\" = 1f32").starts_with("declare `output \"a b\": f64 = ..`, or set"));
    let model = Model::parse("output y = 1.5 * 2.0").unwrap();
    let error = model.executor::<(), i64>(&Options::default()).map(|_| ()).unwrap_err();
    assert_eq!(error.diagnostics()[0].hints(), ["declare `output y: i64 = cast(.., i64)`, or set `cast_outputs`"]);
}
