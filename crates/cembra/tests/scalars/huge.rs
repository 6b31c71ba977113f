//! Tests a model of 80,000 operators, each of which reads the one before: no stage of compilation overflows the small
//! stack of a test's thread. The model is too large for machine code: `Backend::Native` reports this as an error, and
//! `Auto` interprets the model and reports why.

use cembra::native::Tier;
use cembra::program::Builder;
use cembra::{Backend, Model, Options, QType, Value};

const LENGTH: i32 = 80_000;

fn chain(length: i32) -> Model {
    let builder = Builder::new();
    let mut difference = builder.typed_leaf("x", QType::INT64);
    for _ in 0..length {
        difference = difference - 1;
    }
    builder.output("y", difference);
    Model::from_program(builder.build().expect("a program"))
}

#[test]
fn a_long_chain_is_prepared_and_interpreted() {
    let executor = chain(LENGTH).compile(&Options::default().backend(Backend::Interpreter)).unwrap();
    assert_eq!(executor.backend(), Backend::Interpreter);
    assert!(executor.fallback().is_none());
    let mut session = executor.session();
    assert_eq!(session.evaluate(&[Value::from(5_i64)]).unwrap(), [Value::from(5 - i64::from(LENGTH))]);
    // One literal, and temporaries that take turns: the frame does not grow with the chain.
    assert!(executor.frame_bytes() <= 64, "{} bytes", executor.frame_bytes());
}

#[test]
fn a_long_chain_prints_and_reads_back() {
    let model = chain(LENGTH);
    let text = cembra::explain::print(model.program());
    assert!(text.len() > LENGTH as usize * 4);
    let again = Model::parse(&text).unwrap();
    assert_eq!(again.program(), model.program());
}

#[test]
fn native_code_of_a_long_chain_is_cut() {
    for tier in [Tier::Optimised, Tier::Quick] {
        let executor = chain(LENGTH).compile(&Options::default().tier(tier)).unwrap();
        assert_eq!((executor.backend(), executor.fallback().is_none()), (Backend::Native, true));
        assert_eq!(executor.session().evaluate(&[Value::from(0_i64)]).unwrap(), [Value::from(-i64::from(LENGTH))]);
        // Functions that follow one another, not one inside of the other.
        assert!(executor.stack_bytes().is_some_and(|bytes| bytes < 4096), "{:?}", executor.stack_bytes());
    }
}

#[test]
fn what_fits_is_compiled() {
    let executor = chain(2_000).compile(&Options::default()).unwrap();
    assert_eq!((executor.backend(), executor.fallback().is_none()), (Backend::Native, true));
    assert_eq!(executor.session().evaluate(&[Value::from(1_i64)]).unwrap(), [Value::from(-1_999_i64)]);
}
