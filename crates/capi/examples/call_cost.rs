//! What a call costs through the C interface, beside the same call in Rust and in the same run: a row of three `f64`, and columns of them. Each number is
//! the least of several turns, taken in alternation.
//!
//! `cargo run --release --manifest-path crates/capi/Cargo.toml --example call_cost`

#![expect(clippy::print_stdout, reason = "a program that prints what it measures")]

use cembra::columns::cembra_session_run_columns;
use cembra::layouts::{Column, ColumnMut, Payload, Value};
use cembra::memory::{Flag, Text};
use cembra::program::cembra_compile;
use cembra::rows::cembra_session_evaluate;
use cembra::session::{Session, cembra_session_new};
use compiler::{InputColumn, Model, Options};
use std::hint::black_box;
use std::mem::MaybeUninit;
use std::time::Instant;

const MODEL: &str = "input a, b, c: f64; output y = a * b + c";
const CALLS: u32 = 200_000;
const ROWS: usize = 100_000;
const TURNS: usize = 15;
const F64: u32 = 7;

/// A session of the C interface.
fn session() -> Option<Box<Session>> {
    let (mut program, mut session) = (MaybeUninit::new(None), MaybeUninit::new(None));
    if let Some(error) = cembra_compile(Text::new(MODEL), None, Some(&mut program)) {
        println!("{error:?}");
        return None;
    }
    // SAFETY: C-MEMORY: the places began as none, and whole handles are written.
    unsafe {
        let program = program.assume_init();
        if cembra_session_new(program.as_deref(), Some(&mut session)).is_some() {
            return None;
        }
        session.assume_init()
    }
}

/// Nanoseconds per call, of `count` calls.
fn timed(count: usize, run: impl FnOnce()) -> f64 {
    let start = Instant::now();
    run();
    start.elapsed().as_nanos() as f64 / count as f64
}

fn number(value: f64) -> Value<'static> {
    Value { kind: F64, present: Flag(1), r#as: Payload { f64: value } }
}

fn column(all: &[f64]) -> Column {
    let (data, presence) = (all.as_ptr().cast(), std::ptr::null());
    Column { kind: F64, presence_form: 0, data, stride: 8, presence, presence_stride: 0, presence_bit: 0 }
}

fn main() -> Result<(), compiler::Error> {
    let model = Model::parse(MODEL)?;
    let mut rust = model.compile(&Options::default())?.session();
    let batch = model.batch(&Options::default())?;
    let Some(mut c) = session() else { return Ok(()) };
    let row = [1.5, 2.5, 3.5];
    let values: Vec<compiler::Value> = row.iter().map(|one| compiler::Value::from(*one)).collect();
    let inputs = row.map(number);
    let columns: Vec<Vec<f64>> = (0..3).map(|at| (0..ROWS).map(|row| (row * 3 + at) as f64).collect()).collect();
    let mut made = vec![0.0; ROWS];
    let mut least = [f64::INFINITY; 5];
    for _ in 0..TURNS {
        let mut outputs = [number(0.0)];
        let mut list = Vec::new();
        let mut failed = false;
        let turn = [
            timed(CALLS as usize, || {
                (0..CALLS).for_each(|_| failed |= black_box(rust.evaluate(black_box(&values))).is_err());
            }),
            timed(CALLS as usize, || {
                (0..CALLS)
                    .for_each(|_| failed |= rust.evaluate_into(black_box(&values), black_box(&mut list)).is_err());
            }),
            timed(CALLS as usize, || {
                for _ in 0..CALLS {
                    let (from, to) = (black_box(inputs.as_ptr()), black_box(outputs.as_mut_ptr()));
                    // SAFETY: C-MEMORY: there are three values and a place.
                    failed |= unsafe { cembra_session_evaluate(Some(&mut c), from, 3, to, 1) }.is_some();
                }
            }),
            timed(ROWS, || {
                let given: Vec<InputColumn<'_>> = columns.iter().map(|all| InputColumn::values(all)).collect();
                failed |= black_box(batch.run(&given)).is_err();
            }),
            timed(ROWS, || {
                let given: Vec<Column> = columns.iter().map(|all| column(all)).collect();
                let Column { kind, presence_form, stride, presence_stride, presence_bit, .. } = column(&[]);
                let (data, presence) = (made.as_mut_ptr().cast(), std::ptr::null_mut());
                let output = [ColumnMut { kind, presence_form, data, stride, presence, presence_stride, presence_bit }];
                // SAFETY: C-MEMORY: all columns have the given row count.
                let done =
                    unsafe { cembra_session_run_columns(Some(&mut c), ROWS, given.as_ptr(), 3, output.as_ptr(), 1) };
                failed |= done.is_some();
            }),
        ];
        assert!(!failed, "a call fails");
        least.iter_mut().zip(turn).for_each(|(least, now)| *least = least.min(now));
    }
    let [evaluate, into, call, run, columns] = least;
    println!(
        "a row of three f64, ns: Session::evaluate {evaluate:.1}, evaluate_into {into:.1}, cembra_session_evaluate {call:.1}"
    );
    println!("{ROWS} rows, ns a row: Batch::run {run:.3}, cembra_session_run_columns {columns:.3}");
    Ok(())
}
