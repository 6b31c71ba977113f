//! Tests strings that are computed in batches: their lifetime, how they count for limits, and strips (blocks of rows)
//! whose strings exceed the memory of one call.

use super::batch::{batches, players};
use cembra::columns::InputColumn;
use cembra::{FaultKind, Limits, Model, OnError, Options, RunOptions, ScalarValue, Value};

/// Computed strings, literals and inputs, also in tuples, live as long as the result columns. The rows are evaluated in
/// several strips (blocks of rows).
#[test]
fn strings_outlive_the_rows_that_make_them() {
    let source = "input name: text; output made = strings.upper(name); output lit = 'literal'; output same = name
        output both = core.make_tuple(strings.join(name, '!'), 1, 'in a tuple')";
    let (mut session, batches) = batches(source);
    let names: Vec<String> = (0..3000).map(|row| format!("name number {row}")).collect();
    for batch in &batches {
        let made = batch.run(&[InputColumn::owned_texts(&names)]).unwrap();
        for (row, name) in names.iter().enumerate() {
            let expected = session.evaluate(&[Value::from(name.as_str())]).unwrap();
            let found: Vec<Value> = made.iter().map(|column| column.value(row).unwrap()).collect();
            assert_eq!(found, expected);
        }
    }
}

/// A run ends once its strings take more bytes than `array_bytes`, with every backend; exactly the limit is allowed.
/// Strings of up to 12 bytes are stored in the column itself and do not count.
#[test]
fn strings_of_rows_count_while_they_are_made() {
    let text = "input x: text; output twice = x + x; output short = 'twelve bytes'";
    let rows = 3000;
    let long = "0123456789".repeat(10);
    let texts = vec![long.as_str(); rows];
    let expected = long.repeat(2);
    for (most, fits) in [(200 * rows as u64, true), (200 * rows as u64 - 1, false), (1000, false)] {
        let limits = Limits::default().array_bytes(most);
        for player in players() {
            let options = Options::default().limits(limits).row_player(player);
            let batch = Model::parse(text).unwrap().batch(&options).unwrap();
            for (threads, on_error) in [(1, OnError::Fail), (2, OnError::Missing)] {
                let options = RunOptions::new().threads(threads).on_error(on_error).strip_rows(64);
                let made = batch.run_with(&options, &[InputColumn::texts(&texts)]);
                let made = made.map(|made| made.columns).map_err(|error| {
                    assert_eq!((error.fault_kind(), error.row()), (Some(FaultKind::ArenaLimit), None), "{error}");
                    assert_eq!(
                        error.message(),
                        "the strings, lists and tuples of all rows exceed the limit `array_bytes`"
                    );
                });
                assert_eq!(made.is_ok(), fits, "{most} {player:?} {threads}");
                for row in [0, 63, 64, rows - 1] {
                    let found = made.as_ref().map_or(expected.as_str().into(), |made| made[0].value(row).unwrap());
                    assert_eq!(found, Value::from(expected.as_str()));
                }
            }
        }
    }
    // One string that all rows share is written for each of them.
    let limits = Limits::default().array_bytes(1 << 20);
    let same = Model::parse("input x: text; x").unwrap().batch(&Options::default().limits(limits)).unwrap();
    let shared: Value = "a".repeat(1 << 15).as_str().into();
    let run = |rows: usize| same.run_with(&RunOptions::new().rows(rows), &[InputColumn::shared(&shared)]);
    assert_eq!(run(32).unwrap().columns[0].value(31), Some(shared.clone()));
    assert_eq!(run(33).unwrap_err().fault_kind(), Some(FaultKind::ArenaLimit));
}

/// If the strings of a strip (a block of rows) exceed the memory of one call, its rows are evaluated one by one, with
/// the same results.
#[test]
fn strings_that_have_no_room_together_are_made_one_after_the_other() {
    let text = "input x: text; input n: i64; output long = x + x; output tenth = 10 // n";
    let half = "ab".repeat(1 << 18);
    let rows = 150;
    let texts: Vec<&str> =
        (0..rows).map(|row| if row % 3 == 2 { "short" } else { &half[..half.len() - row] }).collect();
    let numbers: Vec<i64> = (0..rows as i64).map(|row| row - 70).collect();
    for player in players() {
        let batch = Model::parse(text).unwrap().batch(&Options::default().row_player(player)).unwrap();
        let columns = [InputColumn::texts(&texts), InputColumn::values(&numbers)];
        let made = batch.run_with(&RunOptions::new().on_error(OnError::Missing), &columns).unwrap();
        assert_eq!(made.failed, [70], "{player:?}");
        for row in (0..rows).filter(|row| *row != 70) {
            let found = made.columns[0].value(row);
            let Some(ScalarValue::Text(found)) = found.as_ref().and_then(Value::as_scalar) else { panic!("row {row}") };
            assert!(**found == *texts[row].repeat(2), "{player:?} {row}: {} bytes", found.len());
        }
    }
}
