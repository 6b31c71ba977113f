//! Tests dictionary columns: a step that depends only on one dictionary column is computed once per value of the
//! dictionary, and its results are those of the interpreter for each row.

use cembra::columns::{Bitmap, ColumnMut, InputColumn, Keys};
use cembra::explain::RowPlayer;
use cembra::operators::{Registry, UserOperator};
use cembra::{Batch, BatchResult, Error, Limits, Model, OnError, Optional, Options, RunOptions, Text, Value};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The number of calls of the operator `my.counted` so far.
static CALLS: AtomicUsize = AtomicUsize::new(0);

fn registry() -> &'static Registry {
    static REGISTRY: OnceLock<&'static Registry> = OnceLock::new();
    REGISTRY.get_or_init(|| {
        let counted = UserOperator::new("my.counted").function(|x: Text<'_>| {
            CALLS.fetch_add(1, Ordering::Relaxed);
            x.as_str().len() as i64
        });
        let mut registry = Registry::standard().clone();
        registry.register(counted).expect("a new name");
        registry.leak()
    })
}

/// Returns the backends for many rows that this machine supports, the interpreter first.
fn players() -> Vec<RowPlayer> {
    let is_there = |player: &RowPlayer| {
        let options = Options::default().row_player(*player);
        let batch = Model::parse("input x: f64; x + 1.0").and_then(|model| model.batch(&options));
        batch.is_ok_and(|batch| batch.run(&[InputColumn::values(&[1.0])]).is_ok())
    };
    let mut players: Vec<RowPlayer> = RowPlayer::ALL.into_iter().filter(is_there).collect();
    players.sort_by_key(|player| *player != RowPlayer::Interpreter);
    players
}

fn batches(source: &str, limits: Limits) -> Vec<(RowPlayer, Batch)> {
    let model = Model::parse(source).unwrap_or_else(|error| panic!("{source}: {error}"));
    let options = |player| Options::default().limits(limits).row_player(player);
    players().into_iter().map(|player| (player, model.batch(&options(player)).expect("a batch"))).collect()
}

/// The result of a run, for comparisons: the values by column and row, the rows that failed, and their errors; or the
/// error of the run.
enum Outcome {
    Made(Vec<Vec<Value>>, Vec<usize>, Vec<(usize, String)>),
    Failed(Option<usize>, String),
}

impl Outcome {
    /// Returns true if both outcomes are equal, where NaN equals NaN. Comparing printed values would take most of the
    /// time of these tests.
    fn same(&self, other: &Outcome) -> bool {
        match (self, other) {
            (Outcome::Made(a, failed, failures), Outcome::Made(b, other_failed, other_failures)) => {
                let is_same =
                    |(a, b): (&Vec<Value>, &Vec<Value>)| a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.same(b));
                (failed, failures) == (other_failed, other_failures)
                    && a.len() == b.len()
                    && a.iter().zip(b).all(is_same)
            }
            (Outcome::Failed(row, error), Outcome::Failed(other_row, other_error)) => {
                (row, error) == (other_row, other_error)
            }
            _ => false,
        }
    }
}

fn outcome(made: Result<BatchResult, Error>) -> Outcome {
    match made {
        Err(error) => Outcome::Failed(error.row(), error.to_string()),
        Ok(made) => {
            let column = |column: &cembra::columns::OutputColumn| {
                (0..column.rows()).map(|row| column.value(row).expect("a row")).collect()
            };
            let failures = made.failures.iter().map(|failure| (failure.row, failure.error.to_string()));
            Outcome::Made(made.columns.iter().map(column).collect(), made.failed, failures.collect())
        }
    }
}

/// Runs the model `source` with all row players (backends for many rows), with one and three threads and both
/// treatments of failing rows. Asserts that each result is the interpreter's. Returns the number of failing rows.
fn agree(source: &str, columns: &[InputColumn<'_>], limits: Limits) -> usize {
    let batches = batches(source, limits);
    let mut failed = 0;
    for on_error in [OnError::Fail, OnError::Missing] {
        let run = |batch: &Batch, threads| {
            outcome(batch.run_with(&RunOptions::new().threads(threads).on_error(on_error), columns))
        };
        let expected = run(&batches[0].1, 1);
        if let Outcome::Made(_, rows, _) = &expected {
            failed = rows.len();
        }
        for (player, batch) in &batches {
            // Twice: what is known of the first run is forgotten.
            for threads in [1, 1, 3] {
                let found = run(batch, threads);
                assert!(found.same(&expected), "{player:?} on {threads} threads: {source}");
            }
        }
    }
    failed
}

/// Returns `rows` keys of a dictionary with `values` values, in a sequence with a long period.
fn keys(rows: usize, values: usize) -> Vec<i32> {
    (0..rows).map(|row| ((row * 7919 + row / 7 * 13) % values) as i32).collect()
}

const TEXTS: [&str; 9] =
    ["CH", "ch", "Zürich", "", "12", "-7", "a text that is longer than a view", "CH ", "99999999999"];

#[test]
fn results_by_value_are_those_by_row() {
    let sources = [
        "input s: text; input x, y: f64\noutput z = where(s == 'CH', x * 1.5 + y, x - y)",
        "input s: text; input x, y: f64\noutput z = strings.lower(s)\noutput n = math.float(strings.length(s)) * x",
        "input s: text; input x, y: f64\nlet l = strings.lower(s)\noutput a = strings.join(l, '!')\noutput b = where(x > 0.0, strings.upper(l), s)\noutput c = strings.length(l) > 2\noutput d = y",
        "input s: text; input x, y: f64\noutput a = where(x > 0.0, where(y > 0.0, strings.length(strings.upper(s)), 3), strings.length(s))",
        "input s: text; input x, y: f64\noutput a = where(s == 'CH' or s == '12', x, y)\noutput b = where(strings.length(s) > 2, 'long', 'short')\noutput c = x + y",
    ];
    for rows in [0, 1, 63, 64, 65, 1000, 1025, 9_000] {
        let keys = keys(rows, TEXTS.len());
        let wide: Vec<i64> = keys.iter().map(|key| i64::from(*key)).collect();
        let small: Vec<u8> = keys.iter().map(|key| *key as u8).collect();
        let x: Vec<f64> = (0..rows).map(|row| (row % 17) as f64 - 8.0).collect();
        let y: Vec<f64> = (0..rows).map(|row| (row % 5) as f64 - 2.0).collect();
        let values = InputColumn::texts(&TEXTS);
        for source in &sources {
            for keys in [Keys::I32(&keys), Keys::I64(&wide), Keys::U8(&small)] {
                let s = InputColumn::dictionary(keys, &values);
                let columns = [s, InputColumn::values(&x), InputColumn::values(&y)];
                let used = Model::parse(source).unwrap().batch(&Options::default()).unwrap().inputs().len();
                assert_eq!(agree(source, &columns[..used], Limits::default()), 0);
                if rows > 1025 {
                    break;
                }
            }
        }
    }
}

#[test]
fn missing_rows_and_missing_values_are_missing() {
    let rows = 3000;
    let keys: Vec<i32> = keys(rows, TEXTS.len()).iter().map(|key| if *key == 3 { -1 } else { *key }).collect();
    // There is no value of the number -1, and none behind 4; nobody asks for 6.
    let present: Vec<u8> = (0..rows / 8 + 2).map(|at| (at * 89 + 37) as u8).collect();
    let mut there = present.clone();
    (0..rows)
        .filter(|row| keys[*row] < 0 || keys[*row] == 6)
        .for_each(|row| there[(row + 5) / 8] &= !(1 << ((row + 5) % 8)));
    let presence = Bitmap::new(&there, 5, rows).unwrap();
    let values = InputColumn::texts(&TEXTS).present(Bitmap::new(&[0b1110_1111, 0b1], 0, 9).unwrap());
    let s = InputColumn::dictionary(Keys::I32(&keys), &values).present(presence);
    let x: Vec<f64> = (0..rows).map(|row| (row % 17) as f64 - 8.0).collect();
    let columns = [s, InputColumn::values(&x)];
    for source in [
        "input s: text?; input x: f64\noutput a = strings.upper(s)\noutput b = strings.length(s)\noutput c = x",
        "input s: text?; input x: f64\noutput a = s ?? 'none'\noutput b = where(core.has(s), x, 0.0)\noutput c = s == 'CH'",
        "input s: text?; input x: f64\noutput a = strings.length(s ?? 'none') > 3\noutput b = where(x > 0.0, strings.lower(s))\noutput c = s",
        "input s: text?; input x: f64\noutput a = where(strings.length(s) > 3, strings.lower(s), 'none')\noutput b = where(s == 'CH', x)",
    ] {
        assert_eq!(agree(source, &columns, Limits::default()), 0);
    }
}

#[test]
fn values_that_fail_fail_in_the_rows_that_need_them() {
    let rows = 5000;
    // Most numbers are of values that can be parsed.
    let keys: Vec<u8> =
        (0..rows).map(|row| if row % 211 == 97 { (row % 9) as u8 } else { 4 + (row % 2) as u8 }).collect();
    let values = InputColumn::texts(&TEXTS);
    let s = InputColumn::dictionary(Keys::U8(&keys), &values);
    let x: Vec<f64> = (0..rows).map(|row| if keys[row] == 2 { -1.0 } else { 1.0 }).collect();
    let fails = [
        "input s: text; input x: f64\noutput a = math.float(strings.parse_int32(s)) + x",
        "input s: text; input x: f64\noutput a = where(x > 0.0, strings.parse_int32(s), 3)\noutput b = strings.lower(s)",
        "input s: text; input x: f64\noutput a = to_int32(strings.parse_int64(s))\noutput b = x",
        "input s: text; input x: f64\noutput a = 100 // (strings.parse_int64(s) - 12)\noutput b = x",
    ];
    let failed = fails.map(|source| agree(source, &[s, InputColumn::values(&x)], Limits::default()));
    assert!(failed[0] > 5 && failed[1] < failed[0] && failed[1] > 0, "{failed:?}");
    assert!(failed[3] > 1000, "{failed:?}");
    let bytes: [&[u8]; 3] = [b"\xFF", b"fine", b"\xC3\xA9"];
    let keys: Vec<u16> = (0..rows).map(|row| if row == 3210 { 0 } else { 1 + (row % 2) as u16 }).collect();
    let values = InputColumn::bytes(&bytes);
    let column = InputColumn::dictionary(Keys::U16(&keys), &values);
    assert_eq!(agree("input s: bytes; strings.decode(s)", &[column], Limits::default()), 1);
    // Nobody asks for what fails.
    let column = InputColumn::dictionary(Keys::U16(&keys[..3000]), &values);
    assert_eq!(agree("input s: bytes; strings.decode(s)", &[column], Limits::default()), 0);
}

#[test]
fn dictionaries_of_numbers_are_too() {
    let rows = 2500;
    let keys = keys(rows, 50);
    let small: Vec<i8> = keys.iter().map(|key| *key as i8).collect();
    let numbers: Vec<f64> = (0..50).map(|at| f64::from(at) / 8.0 - 3.0).collect();
    let whole: Vec<i32> = (0..50).map(|at| at % 7).collect();
    let flags = [0x5A_u8, 0xC3, 0x99, 0x0F, 0xAA, 0x55, 0x12];
    let dates: Vec<i64> = (0..50).map(|at| at * 1000 - 20_000).collect();
    let [a, b, d] = [InputColumn::values(&numbers), InputColumn::values(&whole), InputColumn::values(&dates)];
    let c = InputColumn::bits(Bitmap::new(&flags, 3, 50).unwrap());
    let y: Vec<f64> = (0..rows).map(|row| row as f64).collect();
    let columns = [
        InputColumn::dictionary(Keys::I32(&keys), &a),
        InputColumn::dictionary(Keys::I8(&small), &b),
        InputColumn::dictionary(Keys::I32(&keys), &c),
        InputColumn::dictionary(Keys::I8(&small), &d),
        InputColumn::values(&y),
    ];
    let inputs = "input a: f64; input b: i32; input c: bool; input d: i64?; input y: f64\n";
    let rest = "output e = d\noutput f = not c\noutput g = y";
    assert_eq!(
        agree(&format!("{inputs}output x = math.exp(a) * y\noutput z = b + 1\n{rest}"), &columns, Limits::default()),
        0
    );
    assert_eq!(
        agree(
            &format!("{inputs}output x = where(c, math.log(a * a + 1.0), y)\noutput z = b > 2\n{rest}"),
            &columns,
            Limits::default()
        ),
        0
    );
    let failed = agree(
        &format!("{inputs}output x = where(c, 5 // b, b)\noutput z = a + y\n{rest}"),
        &columns,
        Limits::default(),
    );
    assert!(failed > 50, "{failed}");
}

#[test]
fn limits_are_a_rows() {
    let long: Vec<String> = (0..40).map(|at| "x".repeat(if at == 13 { 3_000 } else { 600 + at })).collect();
    let values = InputColumn::owned_texts(&long);
    let limits = Limits::default().string_work(4_000).arena_bytes(1_500);
    let other: Vec<String> = (0..3000).map(|row| "y".repeat(if row == 2_000 { 950 } else { 10 })).collect();
    let source = "input a, b: text\noutput u = strings.length(strings.upper(a))\noutput v = strings.upper(b)";
    for (skipped, failing) in [(13, 1), (14, 1 + 75)] {
        let keys: Vec<i32> = (0..3000).map(|row| row % 40).map(|key| if key == skipped { 1 } else { key }).collect();
        let a = InputColumn::dictionary(Keys::I32(&keys), &values);
        assert_eq!(agree(source, &[a, InputColumn::owned_texts(&other)], limits), failing);
    }
}

#[test]
fn only_what_rows_ask_for_is_computed() {
    let values: Vec<String> = (0..1_000_000).map(|at| format!("value {at}")).collect();
    let values = InputColumn::owned_texts(&values);
    let keys: Vec<u32> = (0..16).map(|row| row * 61_234 % 7 * 100_003 + row).collect();
    let x: Vec<f64> = (0..16).map(|row| f64::from(row) - 7.5).collect();
    let model = Model::parse_with(
        "input s: text; input x: f64\noutput n = where(x > 0.0, my.counted(s) * 2, 0)",
        registry(),
        &Limits::default(),
    );
    let top = Model::parse_with("input s: text\noutput n = my.counted(s) * 2", registry(), &Limits::default());
    let columns = [InputColumn::dictionary(Keys::U32(&keys), &values), InputColumn::values(&x)];
    for player in players() {
        let options = Options::default().registry(registry()).row_player(player);
        for (model, inputs, expected) in [(&model, 2, 8), (&top, 1, 16)] {
            let batch = model.as_ref().unwrap().batch(&options).unwrap();
            CALLS.store(0, Ordering::Relaxed);
            let made = batch.run(&columns[..inputs]).unwrap();
            assert_eq!(CALLS.load(Ordering::Relaxed), expected, "{player:?}");
            assert_eq!(made[0].value(15), Some(Value::from(2 * format!("value {}", keys[15]).len() as i64)));
        }
        if matches!(player, RowPlayer::Interpreter | RowPlayer::Native) {
            continue;
        }
        // Five values in many rows, by one thread.
        let keys: Vec<u32> = (0..50_000).map(|row| row % 5 * 199_999).collect();
        CALLS.store(0, Ordering::Relaxed);
        let batch = top.as_ref().unwrap().batch(&options).unwrap();
        batch.run(&[InputColumn::dictionary(Keys::U32(&keys), &values)]).unwrap();
        assert_eq!(CALLS.load(Ordering::Relaxed), 5, "{player:?}");
    }
}

#[test]
fn strings_of_other_rows_outlive_rows_that_fail() {
    // A quotient fails for one value of its dictionary; the texts of all other rows are made by a kernel.
    let text = "input t: text?\ninput n: i64?\noutput same = strings.replace(t, t, t)\noutput q = 12 // n";
    let model = Model::parse(text).expect("a model");
    let texts = ["x", "y", "longer than twelve bytes", ""];
    let numbers: [Optional<i64>; 3] = [0_i64.into(), 3_i64.into(), Optional::missing()];
    let (of_texts, of_numbers) = (InputColumn::texts(&texts), InputColumn::optionals(&numbers));
    for rows in [100, 5000] {
        let keys: Vec<i32> = (0..rows).map(|row| row * 7 % 4).collect();
        let fails = |row: i32| row % 50 == 13;
        let number_keys: Vec<u8> = (0..rows).map(|row| if fails(row) { 0 } else { 1 + (row % 2) as u8 }).collect();
        let inputs = [
            InputColumn::dictionary(Keys::I32(&keys), &of_texts),
            InputColumn::dictionary(Keys::U8(&number_keys), &of_numbers),
        ];
        for player in [RowPlayer::Best, RowPlayer::Lanes128, RowPlayer::Native, RowPlayer::Interpreter] {
            let batch = model.batch(&Options::default().row_player(player)).expect("a batch");
            let made = batch.run_with(&RunOptions::new().on_error(OnError::Missing), &inputs).expect("columns");
            for row in 0..rows {
                let expected = (!fails(row)).then(|| texts[keys[row as usize] as usize]);
                assert_eq!(made.columns[0].text(row as usize), expected, "{player:?}, row {row}");
            }
        }
    }
}

/// The number of rows is so large that vector backends write results with stores that bypass the caches, to memory of
/// any alignment. Results come from a table with one entry per dictionary value. One value occurs in no row, and one
/// result equals the marker for entries that are not computed yet.
#[test]
fn results_of_many_rows_go_where_they_belong() {
    // Two outputs of eight bytes.
    let rows = (1 << 20) + 77;
    let texts: Vec<String> = (0..300).map(|at| format!("value {at}")).collect();
    let values = InputColumn::owned_texts(&texts);
    let keys: Vec<u16> = keys(rows, 299).iter().map(|key| *key as u16).collect();
    let x: Vec<f64> = (0..rows).map(|row| row as f64 * 0.5).collect();
    let counts: Vec<i64> = (0..rows as i64).collect();
    let column = InputColumn::dictionary(Keys::U16(&keys), &values);
    let unknown = 0x7ff4_5a3c_96e1_d287_i64;
    let source = format!(
        "input s: text; input x: f64; input n: i64
         output y = x * lookup(s, {{\"value 7\": 2.5, \"value 8\": -1.0}}, 0.25)
         output z = n + lookup(s, {{\"value 9\": {unknown}, \"value 11\": 5i64}}, 1i64)"
    );
    let y = |key: u16| [2.5, -1.0].get(usize::from(key).wrapping_sub(7)).copied().unwrap_or(0.25);
    let z = |key: u16| match key {
        9 => unknown,
        11 => 5,
        _ => 1,
    };
    let expected: Vec<(u64, i64)> =
        (0..rows).map(|row| ((x[row] * y(keys[row])).to_bits(), counts[row].wrapping_add(z(keys[row])))).collect();
    for (turn, (_, batch)) in batches(&source, Limits::default()).into_iter().skip(1).enumerate() {
        // Each player writes from within a line of the cache; from its beginning and on two threads every other one does.
        for (first, threads) in [(3, 1), [(0, 1), (5, 2)][turn % 2]] {
            let mut floats = vec![0.0_f64; rows + 8];
            let mut integers = vec![0_i64; rows + 8];
            let (to, others) = (&mut floats[first..first + rows], &mut integers[first..first + rows]);
            let columns = [column, InputColumn::values(&x), InputColumn::values(&counts)];
            let outputs = vec![Some(ColumnMut::values(to)), Some(ColumnMut::values(others))];
            batch.run_into(&RunOptions::new().threads(threads), &columns, outputs).expect("it runs");
            let found = floats[first..].iter().zip(&integers[first..]);
            let wrong = found.zip(&expected).position(|((y, z), expected)| (y.to_bits(), *z) != *expected);
            assert_eq!(wrong, None, "the row that is wrong, from {first}");
            let around = (0..first).chain(first + rows..rows + 8);
            assert!({ around }.all(|at| floats[at] == 0.0 && integers[at] == 0));
        }
    }
}
