//! Measures the time of calls through the C interface, and of the same calls in Rust in the same run: a row of three `f64`, columns of three `f64`,
//! and a list of three structs. Each number is the least of several measurements, which alternate between C and Rust.
//!
//! `cargo run --release --manifest-path crates/capi/Cargo.toml --example call_cost`

#![expect(clippy::print_stdout, reason = "a program that prints what it measures")]

use cembra::columns::cembra_session_run_columns;
use cembra::layouts::{Column, ColumnMut, List, Member, Payload, Value};
use cembra::memory::{Flag, Text};
use cembra::program::cembra_compile;
use cembra::rows::cembra_session_evaluate;
use cembra::session::{Session, cembra_session_new};
use compiler::columns::InputColumn;
use compiler::program::cast_literal;
use compiler::{Model, Options};
use std::hint::black_box;
use std::mem::{MaybeUninit, offset_of};
use std::time::Instant;

const MODEL: &str = "input a, b, c: f64; output y = a * b + c";
/// A model on a list of items, and a list of three items as a literal.
const ITEMS: &str = "input items: [{price: f64, count: i64, sku: text}]; output total = sum(items.price * items.count)";
const THREE: &str =
    "[{price: 2.5, count: 4, sku: \"a\"}, {price: 4.0, count: 3, sku: \"b\"}, {price: 0.5, count: 10, sku: \"c\"}]";
const CALLS: u32 = 200_000;
const ROWS: usize = 100_000;
const TURNS: usize = 15;
const I64: u32 = 4;
const F64: u32 = 7;
const TEXT: u32 = 11;
const LITERAL: u32 = 15;
const STRUCT: u32 = 16;
const LIST: u32 = 17;

/// Makes a session of the C interface for the model `text`; `None` if that fails.
fn session(text: &str) -> Option<Box<Session>> {
    let (mut program, mut session) = (MaybeUninit::new(None), MaybeUninit::new(None));
    if let Some(error) = cembra_compile(Text::new(text), None, Some(&mut program)) {
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

/// Returns the nanoseconds per call when `run` makes `count` calls.
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

#[repr(C)]
struct Item {
    price: f64,
    count: i64,
    sku: Text<'static>,
}

/// Measures calls on a list of three structs.
fn lists() -> Result<(), compiler::Error> {
    let item = |price, count, sku| Item { price, count, sku: Text::new(sku) };
    let all = [item(2.5, 4, "a"), item(4.0, 3, "b"), item(0.5, 10, "c")];
    let member = |name, kind, offset| {
        let (members, member_count) = (std::ptr::null(), 0);
        Member { name: Text::new(name), kind, presence_form: 0, offset, presence_offset: 0, members, member_count }
    };
    let members = [
        member("price", F64, offset_of!(Item, price)),
        member("count", I64, offset_of!(Item, count)),
        member("sku", TEXT, offset_of!(Item, sku)),
    ];
    let items =
        Column { kind: STRUCT, data: all.as_ptr().cast(), stride: size_of::<Item>().cast_signed(), ..column(&[]) };
    let list = List { items, len: 3, members: members.as_ptr(), member_count: 3 };
    let given = [
        Value { kind: LITERAL, present: Flag(1), r#as: Payload { text: Text::new(THREE) } },
        Value { kind: LIST, present: Flag(1), r#as: Payload { list: &raw const list } },
    ];
    let mut rust = Model::parse(ITEMS)?.compile(&Options::default())?.session();
    let (Some(mut by_literal), Some(mut by_list)) = (session(ITEMS), session(ITEMS)) else { return Ok(()) };
    let items = compiler::program::Literal::parse(THREE)?;
    let qtype = compiler::values::parse_type("[{price: f64, count: i64, sku: text}]")?;
    let values: Vec<compiler::Value> = cast_literal(&items, &qtype).into_iter().collect();
    let (mut least, mut made, mut failed) = ([f64::INFINITY; 3], Vec::new(), false);
    let calls = CALLS / 20;
    for _ in 0..TURNS {
        let mut output = number(0.0);
        let mut call = |session: &mut Session, given: &Value<'_>| {
            for _ in 0..calls {
                let (from, to) = (black_box(std::ptr::from_ref(given)), black_box(&raw mut output));
                // SAFETY: C-MEMORY: there are a value and a place.
                failed |= unsafe { cembra_session_evaluate(Some(session), from, 1, to, 1) }.is_some();
            }
        };
        let [literal, list] = &given;
        let turn = [
            timed(calls as usize, || call(&mut by_literal, literal)),
            timed(calls as usize, || call(&mut by_list, list)),
            timed(calls as usize, || {
                (0..calls).for_each(|_| _ = rust.evaluate_into(black_box(&values), black_box(&mut made)));
            }),
        ];
        least.iter_mut().zip(turn).for_each(|(least, now)| *least = least.min(now));
    }
    assert!(!failed && made == [compiler::Value::from(27.0)], "a call fails: {made:?}");
    let [literal, list, into] = least;
    let ratio = literal / list;
    println!("a list of three structs, ns: a literal {literal:.0}, structs of C {list:.0}, {ratio:.1} times less");
    println!("the same list, ns: Session::evaluate_into on values that are made {into:.0}");
    Ok(())
}

fn main() -> Result<(), compiler::Error> {
    let model = Model::parse(MODEL)?;
    let mut rust = model.compile(&Options::default())?.session();
    let batch = model.batch(&Options::default())?;
    let Some(mut c) = session(MODEL) else { return Ok(()) };
    lists()?;
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
