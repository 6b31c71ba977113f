//! Tests the examples in the documentation of operators: each has the stated value, in both backends, both if it is
//! folded at compile time and if it is computed at run time.

use cembra::{Backend, Model, Options};
use cembra_ops::Registry;

#[test]
fn every_example_has_its_value() {
    let mut wrong = Vec::new();
    for (_, def) in Registry::standard().iter() {
        for example in def.examples {
            for backend in [Backend::Interpreter, Backend::Native] {
                let folded = Options::default().backend(backend).keep_weak_outputs(true);
                for options in [folded.clone(), folded.without_pass("fold")] {
                    let found = Model::parse(example.text)
                        .and_then(|model| model.compile(&options))
                        .and_then(|executor| executor.session().evaluate(&[]));
                    let found = match found {
                        Ok(outputs) => outputs[0].to_string(),
                        Err(error) => error.to_string(),
                    };
                    if found != example.value {
                        wrong.push(format!("{backend:?} {}: {found}, not {}", example.text, example.value));
                    }
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
