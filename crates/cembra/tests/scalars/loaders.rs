//! Tests loaders in both backends: which inputs they must provide, how they are combined, and the errors for names and
//! values that do not fit.

use cembra::json::Json;
use cembra::loaders::{Accessor, AccessorsLoader, Chain, Fields, Filtered, Loader};
use cembra::{Array, Backend, Error, Model, Options, QType, Scalar, ScalarValue, Value, ValueRef};
use serde_json::json;
use std::borrow::Cow;
use std::sync::Arc;

fn backends() -> [Options; 2] {
    [Backend::Interpreter, Backend::Native].map(|backend| Options::default().backend(backend))
}

#[derive(cembra::Input)]
struct Row {
    x: f64,
    name: Option<String>,
}

/// A loader that records the names of the inputs for which `bind` is called.
struct Bound<'a>(&'a std::cell::RefCell<Vec<String>>);

impl Loader<f64> for Bound<'_> {
    fn knows(&self, _: &str) -> bool {
        true
    }
    fn qtype(&self, _: &str, _: Option<&QType>) -> Option<QType> {
        Some(QType::FLOAT64)
    }
    fn names(&self) -> Vec<String> {
        Vec::new()
    }
    fn bind(&self, name: &str, _: &QType) -> Result<Accessor<f64>, Error> {
        self.0.borrow_mut().push(name.to_owned());
        Ok(Accessor::new(|row: &f64| Ok((*row).into())))
    }
}

#[test]
fn only_what_the_prepared_model_needs_is_bound() {
    let model = Model::parse("output y = if true then a + a * 0.0 else b; output z = (c, d).0").unwrap();
    let names = std::cell::RefCell::default();
    let run = model.executor_from::<f64, f64>(&Bound(&names), &Options::default());
    assert_eq!((run.unwrap().run(&1.5).unwrap(), names.take().join(" ")), (1.5, "a".to_owned()));
    let run = model.executor_from::<f64, f64>(&Bound(&names), &Options::default().outputs(["z"]));
    assert_eq!((run.unwrap().run(&1.5).unwrap(), names.take().join(" ")), (1.5, "a".to_owned()));
    let listener = cembra::loaders::AccessorsListener::new().others(|_: &mut (), _, _| {});
    model.executor_between::<f64, (), _>(&Bound(&names), &listener, &Options::default()).unwrap();
    assert_eq!(names.take().join(" "), "a c");
}

#[test]
fn unknown_names_are_listed_with_those_that_are_known() {
    let model = Model::parse("nam == \"a\" and missing_one > X").unwrap();
    let error = model.executor_from::<Row, cembra::Mask>(&Fields::new(), &Options::default()).unwrap_err();
    assert_eq!(
        (error.code(), error.to_string().as_str()),
        (
            "binding",
            "there is no data for inputs `nam`, `missing_one`, `X`; is `name` meant for `nam`?; is `x` meant for `X`?; \
             the known names are x, name"
        )
    );
    // A declared input is missed only if it is needed in the end.
    let model = Model::parse("input gone: f64; output y = if true then x else gone").unwrap();
    let mut run = model.executor::<Row, f64>(&Options::default()).unwrap();
    assert_eq!(run.run(&Row { x: 2.0, name: None }).unwrap(), 2.0);
    let model = Model::parse("input gone: f64; x + gone").unwrap();
    let error = model.executor::<Row, f64>(&Options::default()).unwrap_err();
    assert_eq!(error.to_string(), "there is no data for input `gone`; the known names are x, name");

    let many: Vec<String> = (0..500).map(|at| format!("unknown{at}")).collect();
    let error = Model::parse(&many.join(" + ")).unwrap().executor::<Row, f64>(&Options::default()).unwrap_err();
    assert!(error.to_string().len() < 300, "{error}");

    // A loader of any name whose type nobody says.
    let error = Model::parse("x + 1").unwrap().executor_from::<_, f64>(&Json, &Options::default()).unwrap_err();
    assert_eq!(error.code(), "missing-input-type");
    let options = Options::default().input_type("x", QType::FLOAT64);
    let mut run = Model::parse("x + 1").unwrap().executor_from::<_, f64>(&Json, &options).unwrap();
    assert_eq!(run.run(&json!({"x": 2})).unwrap(), 3.0);
}

#[test]
fn the_first_of_a_chain_wins_and_filters_hide() {
    let computed = AccessorsLoader::new().with("x2", QType::FLOAT64, |row: &Row| (row.x * row.x).into());
    let shared: Arc<dyn Loader<Row>> = Arc::new(computed);
    let any = AccessorsLoader::new().others_of(QType::FLOAT64, |_: &Row, name| (name.len() as f64).into());
    let hidden = Filtered::new(Fields::<Row>::new(), |name| name == "name");
    let chain = Chain::loaders(vec![Box::new(hidden), Box::new(shared.clone()), Box::new(any)]).unwrap();
    assert_eq!(chain.names(), ["name", "x2"]);
    let model = Model::parse("where(name == \"a\", x2, 0.0) + x").unwrap();
    for options in backends() {
        let mut run = model.executor_from::<Row, f64>(&chain, &options).unwrap();
        let row = Row { x: 3.0, name: Some("a".into()) };
        assert_eq!(run.run(&row).unwrap(), 10.0);
        assert_eq!(run.clone().run(&Row { name: None, ..row }).unwrap(), 1.0);
    }
    let error =
        Chain::loaders::<Row>(vec![Box::new(Fields::<Row>::new()), Box::new(Fields::<Row>::new())]).unwrap_err();
    assert_eq!((error.code(), error.to_string().as_str()), ("binding", "two loaders of a chain both have name, x"));
}

#[test]
fn a_field_under_another_name_must_have_the_type() {
    struct Renamed;
    impl Loader<Row> for Renamed {
        fn knows(&self, _: &str) -> bool {
            true
        }
        fn qtype(&self, _: &str, _: Option<&QType>) -> Option<QType> {
            Some(QType::FLOAT64)
        }
        fn names(&self) -> Vec<String> {
            Vec::new()
        }
        fn bind(&self, name: &str, qtype: &QType) -> Result<Accessor<Row>, Error> {
            Fields::new().bind(if name == "y" { "x" } else { "name" }, qtype)
        }
    }
    let row = Row { x: 4.0, name: None };
    let mut run = Model::parse("y * 2").unwrap().executor_from::<_, f64>(&Renamed, &Options::default()).unwrap();
    assert_eq!(run.run(&row).unwrap(), 8.0);
    let error = Model::parse("z * 2").unwrap().executor_from::<_, f64>(&Renamed, &Options::default()).unwrap_err();
    assert_eq!((error.code(), error.to_string().as_str()), ("binding", "input `z` is f64, but its field is text?"));
}

#[test]
fn values_of_another_type_are_errors_and_leave_the_executor_usable() {
    fn at(at: usize) -> impl for<'r> Fn(&'r Vec<Value>) -> ValueRef<'r> + Send + Sync {
        move |row| row.get(at).map_or(ValueRef::Missing, ValueRef::from)
    }
    let loader = AccessorsLoader::new()
        .with("t", QType::TEXT, at(0))
        .with("n", QType::Optional(Scalar::Int32), at(1))
        .with("pair", QType::tuple([QType::TEXT, QType::INT64]), at(2));
    let model = Model::parse("strings.join(t, \"/\", strings.as_text(n ?? -1), \"/\", pair.0)").unwrap();
    let pair = |text: &str| Value::Tuple([Value::from(text), Value::from(1_i64)].into());
    for options in backends() {
        let mut run = model.executor_from::<_, String>(&loader, &options).unwrap();
        let mut found = |row: Vec<Value>| run.run(&row).map_err(|error| (error.code(), error.to_string()));
        assert_eq!(found(vec!["a".into(), 7.into(), pair("b")]), Ok("a/7/b".to_owned()));
        assert_eq!(found(vec!["a".into(), Value::from(None::<i32>), pair("c")]), Ok("a/-1/c".to_owned()));
        let values = |message: &str| Err(("values", message.to_owned()));
        assert_eq!(found(vec!["a".into(), 7_i64.into(), pair("b")]), values("input `n` is i32?, found i64"));
        assert_eq!(found(vec!["a".into(), 7.into(), 7.into()]), values("input `pair` is (text, i64), found i32"));
        assert_eq!(found(vec!["a".into(), 7.into()]), values("input `pair` is (text, i64), but it is missing"));
        assert_eq!(found(vec!["a".into(), 7.into(), pair("b")]), Ok("a/7/b".to_owned()));
    }
}

#[test]
fn texts_that_an_accessor_makes_live_through_the_call() {
    let loader = AccessorsLoader::new()
        .others_of(QType::TEXT, |row: &i32, name| ValueRef::Text(Cow::Owned(format!("{name}{row}"))));
    let model = Model::parse("strings.join(a, b, c, a)").unwrap();
    for options in backends() {
        let mut run = model.executor_from::<i32, String>(&loader, &options).unwrap();
        for row in 0..100 {
            assert_eq!(run.run(&row).unwrap(), format!("a{row}b{row}c{row}a{row}"));
        }
    }
}

#[test]
fn json_rows_of_every_type() {
    let model = Model::parse(
        "input t: text?; input b: bytes; input n: i64; input u: u64; input f: f32; input flag: bool?; input p: (i32, text?)
         output say = (t, b, n, u, f, flag, p.0 + 1, p.1)",
    )
    .unwrap();
    let row =
        json!({"t": null, "b": "//4=", "n": i64::MIN, "u": u64::MAX, "f": "-Infinity", "p": [4, "x"], "more": {}});
    for options in backends() {
        let mut run = model.executor_between::<_, (), _>(&Json, &Json, &options).unwrap();
        let mut sink = serde_json::Map::new();
        run.listen(&row, &mut sink).unwrap();
        let expected = json!({"say": [null, "//4=", i64::MIN, u64::MAX, "-Infinity", null, 5, "x"]});
        assert_eq!(serde_json::Value::from(sink.clone()), expected);
        let error = run.listen(&json!([1]), &mut sink).unwrap_err();
        assert_eq!(error.to_string(), "a row must be a JSON object, found [1]");
        let mut wrong = row.clone();
        wrong["p"] = json!([4]);
        let error = run.listen(&wrong, &mut sink).unwrap_err();
        assert_eq!(error.to_string(), "input `p` is (i32, text?), found [4]");
    }
}

#[test]
fn values_at_the_end_may_be_left_out_where_inputs_have_defaults() {
    let scalars = "input x: f64? = 0.5, name: text, y: f64? = 10, tail: text? = \"!\"; output sum = x + y; output said = name + tail";
    let arrays = "input x: f64? = 0.5, name: text, y: f64? = 10, tail: text? = \"!\"; input a: [f64]? = missing";
    assert!(Model::parse(arrays).is_err(), "an array has no default");
    let arrays = "input a: [f64], y: f64? = 10; output sum = math.sum(a) + y; output said = strings.as_text(y)";
    let sum_and_text = |made: Vec<Value>| made.iter().map(Value::to_string).collect::<Vec<_>>().join(" ");
    for options in backends() {
        let mut session = Model::parse(scalars).unwrap().compile(&options).unwrap().session();
        let (x, name) = (Value::from(Some(1.0)), Value::from("Ann"));
        let all = [
            x,
            name,
            Value::from(Some(2.0)),
            Value::optional(Scalar::Text, Some(ScalarValue::from(Arc::<str>::from("?")))),
        ];
        assert_eq!(sum_and_text(session.evaluate(&all).unwrap()), "f64{3} 'Ann?'");
        assert_eq!(sum_and_text(session.evaluate(&all[..3]).unwrap()), "f64{3} 'Ann!'");
        assert_eq!(sum_and_text(session.evaluate(&all[..2]).unwrap()), "f64{11} 'Ann!'");
        // The name has no default, and is in the middle.
        let error = session.evaluate(&all[..1]).unwrap_err();
        assert_eq!((error.code(), error.to_string().as_str()), ("values", "the model takes 4 inputs, found 1"));
        assert!(session.evaluate(&[]).is_err());
        let mut told = Vec::new();
        let mut session = Model::parse(arrays).unwrap().compile(&options).unwrap().session();
        let a = Value::from(Array::from_scalars(Scalar::Float64, [1.0, 2.5].map(|of| Some(ScalarValue::Float64(of)))));
        let main =
            session.listen(std::slice::from_ref(&a), &mut |name, value| told.push(format!("{name} {value}"))).unwrap();
        assert_eq!((main.to_string().as_str(), &told[..]), ("f64{13.5}", &["said '10'".to_owned()][..]));
    }
}

#[test]
fn inputs_with_defaults_may_be_absent() {
    let model = Model::parse(
        "input x: f64? = 0.5; input name: text? = \"Ann\", y: f64? = 10\noutput say = name\noutput sum = x + y",
    );
    let model = model.unwrap();
    #[derive(cembra::Output, PartialEq, Debug)]
    struct Said {
        say: String,
        sum: f64,
    }
    let said = |say: &str, sum| Said { say: say.to_owned(), sum };
    for options in backends() {
        // The field `x` is always there, `name` may be missing, and there is no `y`.
        let mut run = model.executor::<Row, Said>(&options).unwrap();
        assert_eq!(run.run(&Row { x: 1.5, name: None }).unwrap(), said("Ann", 11.5));
        assert_eq!(run.run(&Row { x: 2.5, name: Some("Bob".to_owned()) }).unwrap(), said("Bob", 12.5));
        let mut both = [said("", 0.0), said("", 0.0)];
        let rows = [Row { x: 3.0, name: None }, Row { x: 4.0, name: Some("Eve".to_owned()) }];
        run.run_many(&rows, &mut both).unwrap();
        assert_eq!(both, [said("Ann", 13.0), said("Eve", 14.0)]);
        // Keys of objects are absent row by row.
        let mut run = model.executor_from::<_, Said>(&Json, &options).unwrap();
        assert_eq!(run.run(&json!({"y": 1})).unwrap(), said("Ann", 1.5));
        assert_eq!(run.run(&json!({"x": 2, "name": "Bob", "y": null})).unwrap(), said("Bob", 12.0));
        let empty = AccessorsLoader::<()>::new();
        assert_eq!(model.executor_from::<_, Said>(&empty, &options).unwrap().run(&()).unwrap(), said("Ann", 10.5));
    }
    let signature = model.signature(&Options::default()).unwrap();
    let told: Vec<_> = signature.inputs.iter().map(|input| input.declaration()).collect();
    assert_eq!(told, ["f64? = 0.5", "text? = \"Ann\"", "f64? = 10.0"]);
    // A struct whose field is of another type is told of both, as without a default.
    let other = Model::parse("input x: f32? = 1; x").unwrap().executor::<Row, f32>(&Options::default()).unwrap_err();
    assert_eq!(other.to_string().lines().next(), Some("input `x` is declared f32?, but is given as f64"));
}

#[test]
fn named_tuples_go_in_and_out_as_json_objects() {
    let source = "input p: {x: f64, inner: {n: i32?, t: text}}
                  output q = {y: p.x * 2.0, n: p.inner.n, pair: (p.inner.t, true)}
                  output again = p";
    let text = r#"{"p": {"inner": {"t": "é"}, "x": 0.10, "more": [1]}}"#;
    for options in backends() {
        let model = Model::parse(source).unwrap();
        let mut found = serde_json::Map::new();
        let expected = json!({
            "q": {"y": 0.2, "n": null, "pair": ["é", true]},
            "again": {"x": 0.1, "inner": {"n": null, "t": "é"}},
        });
        let mut run = model.executor_between::<_, (), _>(&Json, &Json, &options).unwrap();
        run.listen(&serde_json::from_str(text).unwrap(), &mut found).unwrap();
        assert_eq!(serde_json::Value::from(found.clone()), expected);
        let mut run = model.executor_between::<_, (), _>(&cembra::json::JsonRows, &Json, &options).unwrap();
        found.clear();
        run.listen(&cembra::json::JsonRow::parse(text).unwrap(), &mut found).unwrap();
        assert_eq!(serde_json::Value::from(found.clone()), expected);
        for (bad, message) in [
            (r#"{"p": {"x": 1, "inner": {"n": 1.5, "t": ""}}}"#, "input `p.inner.n` is i32?, found 1.5"),
            (r#"{"p": {"x": 1, "inner": {"n": 1}}}"#, "input `p.inner.t` is text, but it is missing"),
            (r#"{"p": {"x": 1, "inner": ["n", "t"]}}"#, "found [\"n\",\"t\"]"),
        ] {
            let error = run.listen(&cembra::json::JsonRow::parse(bad).unwrap(), &mut found).unwrap_err();
            assert!(error.code() == "values" && error.to_string().ends_with(message), "{error}");
        }
    }
}
