//! Tests the limit on live machine code (code of executors that exist). The limit is for the whole process, so no other
//! test of this program may run at the same time.
#![cfg(target_arch = "x86_64")]

use cembra::native::live_code_bytes;
use cembra::{Backend, Executor, Model, Options, Value};

fn compile(number: i64, backend: Backend) -> Result<Executor, cembra::Error> {
    Model::parse(&format!("input x: i64; x + {number}"))?.compile(&Options::default().backend(backend))
}

fn check(executor: &Executor, number: i64) {
    let found = executor.session().evaluate(&[Value::from(1_i64)]).expect("a value");
    assert_eq!(found, [Value::from(1 + number)]);
}

/// Restores the limit when it is dropped, also if the test fails.
struct Limited(usize);

impl Drop for Limited {
    fn drop(&mut self) {
        cembra::native::set_live_code_limit(self.0);
    }
}

#[test]
fn beyond_the_limit_native_is_an_error_and_auto_interprets() {
    let _alone = crate::alone();
    assert_eq!((live_code_bytes(), cembra::native::live_code_limit()), (0, 1 << 30));
    let first = compile(0, Backend::Native).expect("machine code");
    let each = live_code_bytes();
    assert!(each > 0);
    let _limited = Limited(cembra::native::live_code_limit());
    cembra::native::set_live_code_limit(5 * each);
    let mut held: Vec<Executor> = vec![first];
    held.extend((1..5).map(|number| compile(number, Backend::Native).expect("exactly the limit is allowed")));

    let message = format!("the machine code of all models would exceed {} bytes", 5 * each);
    let error = compile(5, Backend::Native).expect_err("full");
    assert_eq!(error.code(), "native");
    assert!(error.to_string().contains(&message), "{error}");
    let interpreted = compile(5, Backend::Auto).expect("the interpreter stands in");
    assert_eq!(interpreted.backend(), Backend::Interpreter);
    assert!(interpreted.fallback().expect("a reason").message().contains(&message));
    check(&interpreted, 5);

    held.pop();
    assert_eq!(live_code_bytes(), 4 * each);
    let again = compile(6, Backend::Auto).expect("there is room again");
    assert_eq!(again.backend(), Backend::Native);
    check(&again, 6);
    for (number, executor) in held.iter().enumerate() {
        check(executor, number as i64);
    }
}
