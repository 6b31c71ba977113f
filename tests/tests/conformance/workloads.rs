//! The workloads of arrays, A1 to A8: on both backends, fused and not, they give what Arolla gave. Sums are taken in another
//! order than Arolla's, and exponentials are others, within bounds.

use cembra::{Backend, Model, Options, ScalarValue, Value};
use cembra_tests::decode::named_values;
use std::path::Path;

/// How far from Arolla's an output may be: a part of its own size, or at most so much.
#[derive(Clone, Copy)]
struct Bounds {
    relative: f64,
    absolute: f64,
}

const EXACT: Bounds = Bounds { relative: 0.0, absolute: 0.0 };

fn number(value: &ScalarValue) -> Option<f64> {
    match value {
        ScalarValue::Float32(value) => Some(f64::from(*value)),
        ScalarValue::Float64(value) => Some(*value),
        _ => None,
    }
}

fn is_near(found: Option<&ScalarValue>, expected: Option<&ScalarValue>, bounds: Bounds) -> bool {
    match (found, expected) {
        (Some(found), Some(expected)) => {
            found.same(expected)
                || number(found).zip(number(expected)).is_some_and(|(found, expected)| {
                    let error = (found - expected).abs();
                    error <= bounds.relative * expected.abs() || error <= bounds.absolute
                })
        }
        (None, None) => true,
        _ => false,
    }
}

#[test]
fn workloads_of_arrays_give_what_arolla_gave() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../benches/workloads");
    for (name, bounds) in [
        ("A1", Bounds { relative: 1e-12, ..EXACT }),
        ("A2", Bounds { absolute: 1e-12, ..EXACT }),
        ("A3", Bounds { relative: 1e-12, ..EXACT }),
        ("A4", Bounds { relative: 1e-12, ..EXACT }),
        ("A5", EXACT),
        ("A6", EXACT),
        ("A7", Bounds { relative: 3e-7, ..EXACT }),
        ("A8", EXACT),
    ] {
        let text = std::fs::read_to_string(folder.join(format!("{name}.cem"))).expect("a model");
        let inputs = named_values(&folder.join(format!("{name}.in.jsonl.gz"))).expect("inputs");
        let expected = named_values(&folder.join(format!("{name}.out.jsonl.gz"))).expect("outputs");
        let mut answers = Vec::new();
        for backend in [Backend::Interpreter, Backend::Native] {
            let executor = Model::parse(&text).expect("a model").compile(&Options::default().backend(backend));
            let executor = executor.unwrap_or_else(|error| panic!("{name}: {error}"));
            let given = |field: &str| inputs.iter().find(|(known, _)| known == field).expect("an input").1.clone();
            let given: Vec<Value> = executor.inputs().iter().map(|input| given(&input.name)).collect();
            let found = executor.session().evaluate(&given).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!(found.len(), expected.len(), "{name}");
            for ((output, expected), found) in expected.iter().zip(&found) {
                assert_eq!(found.qtype(), expected.qtype(), "{name}.{output}");
                match (found, expected) {
                    (Value::Array(_, found), Value::Array(_, expected)) => {
                        assert_eq!(found.len(), expected.len(), "{name}.{output}");
                        for (at, (found, expected)) in found.iter().zip(expected.iter()).enumerate() {
                            let near = is_near(found.as_ref(), expected.as_ref(), bounds);
                            assert!(near, "{name}.{output}[{at}] is {found:?}, not {expected:?}");
                        }
                    }
                    _ => assert!(
                        is_near(found.as_scalar(), expected.as_scalar(), bounds),
                        "{name}.{output} is {found}, not {expected}"
                    ),
                }
            }
            answers.push(found);
        }
        assert!(answers[0].iter().zip(&answers[1]).all(|(a, b)| a.same(b)), "{name}: the backends differ");
    }
}
