//! Tests that dropped models free their memory: after compiling and dropping many models, the process is as large as
//! before. No other test of this program may run at the same time, because its memory would count.
#![cfg(target_os = "linux")]

use crate::resident;
use cembra::{Backend, Model, Options, Value};

/// Compiles, runs and drops a model that is different for each `number`.
fn one(number: i32) {
    let source = format!(
        "input x: f64\ninput n: i32?\ninput name: text\n\
         output y = where(x > {number}, x * {number}.5 + math.exp(x), -x)\n\
         output z = (n ?? {number}) // 7 + {number}\n\
         output t = where(name == \"model {number}\", \"yes {number}\", name)"
    );
    let model = Model::parse(&source).expect("a model");
    let executor = model.compile(&Options::default().backend(Backend::Native)).expect("machine code");
    let mut session = executor.session();
    let found = session.evaluate(&[Value::from(-2.0), Value::from(None::<i32>), Value::from("a")]).expect("values");
    assert_eq!(found, [Value::from(2.0), Value::from(number.div_euclid(7) + number), Value::from("a")]);
}

/// Compiles and drops `models` models, and asserts that the process grows by less than `most` KiB.
fn come_and_go(models: i32, most: usize) {
    let _alone = crate::alone();
    // The first ones fill allocators, tables and the code generator's scratch memory.
    (0..500).for_each(one);
    let before = resident();
    (500..500 + models).for_each(one);
    let growth = resident().saturating_sub(before);
    assert!(growth < most, "grew by {growth} KiB");
}

#[test]
fn five_thousand_models_come_and_go_in_two_megabytes() {
    come_and_go(5_000, 2 << 10);
}

#[test]
#[ignore = "a quarter of a minute alone: run for a release"]
fn twenty_thousand_models_come_and_go_in_five_megabytes() {
    come_and_go(20_000, 5 << 10);
}
