//! Tests `LoadedRows`, rows that are converted to frames once: they can be evaluated several times, in both backends,
//! and reject values that do not fit.

use cembra::{Backend, Model, Options, Value};
use cembra_engine::LoadedRows;

#[test]
fn loaded_rows_survive_their_evaluation() {
    let source = "input name: text; input x: i32
                  output y = where(name == \"ann\", 100 // x, with_assertion(x, x < 5, name))";
    let model = Model::parse(source).unwrap();
    for backend in [Backend::Interpreter, Backend::Native] {
        let executor = model.compile(&Options::default().backend(backend)).unwrap();
        let row = |name: &str, x: i32| vec![Value::from(name), Value::from(x)];
        let good = [row("ann", 7), row("bob", 4), row("ann", -1)];
        let mut loaded = LoadedRows::of(&executor, &good).unwrap();
        for _ in 0..3 {
            loaded.evaluate().unwrap();
        }
        // A second evaluation still finds the inputs of the first, texts included.
        let bad = [row("ann", 7), row("eve", 5), row("ann", 0)];
        let mut loaded = LoadedRows::of(&executor, &bad).unwrap();
        for _ in 0..3 {
            let error = loaded.evaluate().unwrap_err();
            assert_eq!((error.code(), error.message().ends_with("assertion failed: eve")), ("assertion", true));
        }
        let unfit = LoadedRows::of(&executor, &[vec![Value::from("ann"), Value::from(7_i64)]]).unwrap_err();
        assert_eq!(unfit.to_string(), "input `x` is i32, found i64");
    }
}
