//! Tests options for typed results: casts, required presence, and results that are written to the caller's memory.

use cembra::{Backend, Model, Optional, Options};

#[derive(cembra::Input)]
struct Row {
    x: Optional<f64>,
}

#[derive(cembra::Output, Debug, PartialEq)]
struct Narrow {
    y: f32,
    n: i64,
}

const MODEL: &str = "input x: f64?\noutput y = x * 2\noutput n = 7";

fn backends() -> [Options; 2] {
    [Backend::Interpreter, Backend::Native].map(|backend| Options::default().backend(backend))
}

#[test]
fn casts_and_presence_are_asked_for() {
    let model = Model::parse(MODEL).unwrap();
    for options in backends() {
        let error = model.executor::<Row, Narrow>(&options).unwrap_err();
        assert_eq!(
            error.to_string(),
            "output `y` is f64?, but the result's type is f32; declare `output y: f32 = cast(.., f32)`, or set `cast_outputs`"
        );
        assert_eq!(
            model.executor::<Row, Narrow>(&options.clone().require_present(true)).unwrap_err().code(),
            "binding"
        );
        let mut run = model.executor::<Row, Narrow>(&options.require_present(true).cast_outputs(true)).unwrap();
        let mut out = Narrow { y: 0.0, n: 0 };
        run.run_into(&Row { x: 0.75.into() }, &mut out).unwrap();
        assert_eq!(out, Narrow { y: 1.5, n: 7 });
        let error = run.run_into(&Row { x: Optional::missing() }, &mut out).unwrap_err();
        assert_eq!((error.code(), &out), ("missing-value", &Narrow { y: 1.5, n: 7 }));
    }
}

#[test]
fn a_plain_value_is_cast_to_an_optional() {
    let model = Model::parse("input x: f64?\nx ?? 1").unwrap();
    for options in backends() {
        assert!(model.executor::<Row, Optional<f32>>(&options).is_err());
        let mut run = model.executor::<Row, Optional<f32>>(&options.cast_outputs(true)).unwrap();
        assert_eq!(run.run(&Row { x: Optional::missing() }).unwrap(), Optional::present(1.0));
    }
}
