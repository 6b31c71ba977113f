//! Tests that outputs which are not requested are not computed, in both backends: user operators count their own
//! evaluations. Also tests exports, outputs from inside of expressions.

use cembra::loaders::{AccessorsListener, Chain, Fields, Filtered, Listener};
use cembra::operators::{Registry, UserOperator};
use cembra::{Backend, Error, Limits, Model, Options, QType, Scalar, Value, ValueRef};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

static MAIN: AtomicU32 = AtomicU32::new(0);
static SIDE: AtomicU32 = AtomicU32::new(0);
static OTHER: AtomicU32 = AtomicU32::new(0);

fn registry() -> &'static Registry {
    static REGISTRY: OnceLock<&'static Registry> = OnceLock::new();
    REGISTRY.get_or_init(|| {
        let mut registry = Registry::standard().clone();
        for (name, count) in [("test.main", &MAIN), ("test.side", &SIDE), ("test.other", &OTHER)] {
            let counted = UserOperator::new(name).impure().function(move |x: f64| {
                count.fetch_add(1, Ordering::Relaxed);
                x + 1.0
            });
            registry.register(counted).expect("a new name");
        }
        registry.leak()
    })
}

fn model(source: &str) -> Model {
    Model::parse_with(source, registry(), &Limits::default()).expect("a model")
}

fn backends() -> [Options; 2] {
    [Backend::Interpreter, Backend::Native].map(|backend| Options::default().backend(backend).registry(registry()))
}

/// Returns the number of evaluations of each operator since the last call.
fn counts() -> [u32; 3] {
    [&MAIN, &SIDE, &OTHER].map(|count| count.swap(0, Ordering::Relaxed))
}

#[derive(cembra::Input)]
struct Row {
    x: f64,
}

#[derive(cembra::Output)]
struct Two {
    other: f64,
    main: f64,
}

const MODEL: &str = "input x: f64
let shared = x * 2
output main = test.main(shared)
output side = test.side(shared) + 0.5
output other = test.other(x)";

#[test]
fn what_nobody_bound_is_not_computed() {
    // One test: the counters are shared.
    let model = model(MODEL);
    let rows = Fields::<Row>::new();
    for options in backends() {
        counts();
        // The main output alone; a struct of two; chosen by name.
        let mut main = model.executor::<Row, f64>(&options).unwrap();
        assert_eq!((main.run(&Row { x: 1.0 }).unwrap(), counts()), (3.0, [1, 0, 0]));
        let mut two = model.executor::<Row, Two>(&options).unwrap();
        let found = two.run(&Row { x: 1.0 }).unwrap();
        assert_eq!(((found.main, found.other), counts()), ((3.0, 2.0), [1, 0, 1]));
        let mut chosen = model.compile(&options.clone().outputs(["side"])).unwrap().session();
        assert_eq!(chosen.evaluate(&[Value::from(1.0)]).unwrap(), [Value::from(3.5)]);
        assert_eq!(counts(), [0, 1, 0]);

        // A listener to one, beside the main output; to all of them; to none but the one that a struct has not.
        let ignoring = options.clone().ignore_not_listened_named_outputs(true);
        let side =
            AccessorsListener::new().with("side", |heard: &mut Vec<String>, value| heard.push(format!("{value:?}")));
        let mut run = model.executor_between::<_, f64, _>(&rows, &side, &ignoring).unwrap();
        let mut heard = Vec::new();
        assert_eq!(run.listen(&Row { x: 1.0 }, &mut heard).unwrap(), 3.0);
        assert_eq!((heard, counts()), (vec!["Float64(3.5)".to_owned()], [1, 1, 0]));
        let all = AccessorsListener::new().others(|heard: &mut Vec<String>, name, _| heard.push(name.to_owned()));
        let mut run = model.executor_between::<_, (), _>(&rows, &all, &options).unwrap();
        let mut heard = Vec::new();
        run.listen(&Row { x: 1.0 }, &mut heard).unwrap();
        assert_eq!((heard.join(" "), counts()), ("main side other".to_owned(), [1, 1, 1]));
        let mut run = model.executor_between::<_, Two, _>(&rows, &all, &options).unwrap();
        let (mut two, mut heard) = (Two { other: 0.0, main: 0.0 }, Vec::new());
        run.listen_into(&Row { x: 2.0 }, &mut two, &mut heard).unwrap();
        assert_eq!(((two.main, two.other), heard.join(" "), counts()), ((5.0, 3.0), "side".to_owned(), [1, 1, 1]));

        // Exports are outputs like any other.
        let exporting = self::model(
            "input x: f64; annotation.export_value(annotation.export(test.main(x), \"m\") * 2, \"s\", test.side(x))",
        );
        let mut main = exporting.executor::<Row, f64>(&options).unwrap();
        assert_eq!((main.run(&Row { x: 1.0 }).unwrap(), counts()), (4.0, [1, 0, 0]));
        let mut all = exporting.compile(&options).unwrap().session();
        let found = all.evaluate(&[Value::from(1.0)]).unwrap();
        assert_eq!((found, counts()), (vec![Value::from(4.0), Value::from(2.0), Value::from(2.0)], [1, 1, 0]));
    }
}

#[test]
fn outputs_that_nobody_listens_to_are_an_error() {
    let model = model(MODEL);
    let rows = Fields::<Row>::new();
    let listener = AccessorsListener::new().with("sidé", |_: &mut (), _| {}).with("main", |_, _| {});
    let error =
        model.executor_between::<_, (), _>(&rows, &listener, &Options::default().registry(registry())).unwrap_err();
    assert_eq!(
        (error.code(), error.to_string().as_str()),
        (
            "binding",
            "no listener takes the outputs `side`, `other`; is `sidé` meant for `side`?; the known names are sidé, main; \
             set `ignore_not_listened_named_outputs` to leave these outputs out"
        )
    );
}

#[test]
fn listeners_are_combined_as_loaders_are() {
    let heard = |name: &'static str| move |sink: &mut Vec<&str>, _: ValueRef<'_>| sink.push(name);
    let first = AccessorsListener::new().with("main", heard("first main")).with("side", heard("first side"));
    let rest = AccessorsListener::new().others(|sink: &mut Vec<&str>, _, _| sink.push("rest"));
    let chain = Chain::listeners::<Vec<&str>>(vec![Box::new(Filtered::to(&first, ["side"])), Box::new(rest)]).unwrap();
    for options in backends() {
        let model = Model::parse("input x: f64; output main = x; output side = -x; output other = 1").unwrap();
        let mut run = model.executor_between::<_, (), _>(&Fields::<Row>::new(), &chain, &options).unwrap();
        let mut sink = Vec::new();
        run.clone().listen(&Row { x: 0.0 }, &mut sink).unwrap();
        run.listen(&Row { x: 0.0 }, &mut sink).unwrap();
        assert_eq!(sink, ["rest", "first side", "rest", "rest", "first side", "rest"]);
    }
    // One listener of its own: what is listed goes before the others.
    let both =
        AccessorsListener::new().with("side", heard("side")).others(|sink: &mut Vec<&str>, _, _| sink.push("rest"));
    assert_eq!((both.names(), both.knows("other")), (vec!["side".to_owned()], true));
    let model = Model::parse("input x: f64; output main = x; output side = -x; output other = 1").unwrap();
    let mut run = model.executor_between::<_, (), _>(&Fields::<Row>::new(), &both, &Options::default()).unwrap();
    let mut sink = Vec::new();
    run.listen(&Row { x: 0.0 }, &mut sink).unwrap();
    assert_eq!(sink, ["rest", "side", "rest"]);
    let error = Chain::listeners::<Vec<&str>>(vec![Box::new(&first), Box::new(&first)]).unwrap_err();
    assert_eq!(error.to_string(), "two listeners of a chain both have main, side");
}

#[test]
fn side_outputs_are_cast_if_the_options_say_so() {
    let model = Model::parse("input x: f64?; output y = x * 2; output n = 7").unwrap();
    let wide = QType::Optional(Scalar::Float64);
    let listener = AccessorsListener::new().with_type("n", wide.clone(), |sink: &mut Option<Value>, value| {
        *sink = value.to_value(&QType::Optional(Scalar::Float64));
    });
    #[derive(cembra::Input)]
    struct Row {
        x: Option<f64>,
    }
    for options in backends() {
        let refused = model.executor_between::<_, Option<f64>, _>(&Fields::<Row>::new(), &listener, &options);
        assert_eq!(
            refused.unwrap_err().to_string(),
            "output `n` is i32, but the result's type is f64?; declare `output n: f64? = ..`, or set `cast_outputs`"
        );
        let options = options.cast_outputs(true);
        let mut run = model.executor_between::<_, Option<f64>, _>(&Fields::<Row>::new(), &listener, &options).unwrap();
        let mut sink = None;
        assert_eq!(run.listen(&Row { x: None }, &mut sink).unwrap(), None);
        assert_eq!(sink, Some(Value::from(Some(7.0))));
    }
}

#[test]
fn a_setter_may_refuse() {
    struct Strict;
    impl Listener<f64> for Strict {
        fn knows(&self, name: &str) -> bool {
            name == "y"
        }
        fn names(&self) -> Vec<String> {
            vec!["y".into()]
        }
        fn bind(&self, _: &str, _: &QType) -> Result<cembra::loaders::Setter<f64>, Error> {
            Ok(cembra::loaders::Setter::new(|sink: &mut f64, value| match value {
                ValueRef::Float64(y) if y > 0.0 => {
                    *sink = y;
                    Ok(())
                }
                other => Err(Error::values(format!("not wanted: {other:?}"))),
            }))
        }
    }
    let model = Model::parse("input x: f64; output y = x").unwrap();
    for options in backends() {
        let mut run = model.executor_between::<_, (), _>(&Fields::<Row>::new(), &Strict, &options).unwrap();
        let mut sink = 0.0;
        assert_eq!(run.listen(&Row { x: -1.0 }, &mut sink).unwrap_err().to_string(), "not wanted: Float64(-1.0)");
        run.listen(&Row { x: 2.0 }, &mut sink).unwrap();
        assert_eq!(sink, 2.0);
    }
}

#[test]
fn exports_are_found_named_and_told_apart() {
    let source = "input x: f64\nlet h = annotation.export(x / 2, \"half\")\noutput y = where(x > 0.0, h + h, annotation.export_value(x, \"why\", \"neg\"))";
    let model = Model::parse(source).unwrap();
    let signature = model.signature(&Options::default()).unwrap();
    let names: Vec<_> = signature.outputs.iter().map(|field| format!("{}: {}", field.name, field.qtype)).collect();
    assert_eq!(names, ["y: f64", "half: f64", "why: text"]);
    for options in backends() {
        let mut session = model.compile(&options).unwrap().session();
        let found = session.evaluate(&[Value::from(-3.0)]).unwrap();
        assert_eq!(found, [Value::from(-3.0), Value::from(-1.5), Value::from("neg")]);
    }
    // A model with exports survives a file.
    let again = Model::from_binary(&model.to_binary()).unwrap();
    assert_eq!(again.signature(&Options::default()).unwrap(), signature);

    let twice = "input x: f64\nannotation.export(x, \"t\") + annotation.export(x * 2, \"t\")";
    let error = Model::parse(twice).unwrap().compile(&Options::default()).unwrap_err();
    assert_eq!(
        (error.code(), error.to_string().as_str()),
        ("name", "two outputs are named `t`; give one output another name")
    );
    assert_eq!(error.span().map(|span| span.text(twice)), Some("annotation.export(x * 2, \"t\")"));
    let taken = Model::parse("input x: f64\noutput t = annotation.export(x, \"t\") + 1").unwrap();
    assert_eq!(taken.compile(&Options::default()).unwrap_err().code(), "name");
    // The same value twice is one export.
    let same = "input x: f64\nannotation.export(x * 2, \"t\") + annotation.export(x * 2, \"t\")";
    assert_eq!(Model::parse(same).unwrap().signature(&Options::default()).unwrap().outputs.len(), 2);
    let open = Model::parse("input x: f64; input t: text; annotation.export(x, t)").unwrap();
    let error = open.compile(&Options::default()).unwrap_err();
    assert_eq!(error.code(), "type-mismatch");
}
