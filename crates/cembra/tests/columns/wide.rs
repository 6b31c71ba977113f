//! Tests models with very many outputs on few rows: the time is linear in the number of outputs.

use super::batch::players;
use cembra::columns::{InputColumn, Keys};
use cembra::errors::Code;
use cembra::explain::RowPlayer;
use cembra::{Batch, Limits, Model, Optional, Options, Value};
use std::time::{Duration, Instant};

/// Returns the text of `count` outputs with the expression `output` each.
fn outputs(count: usize, name: &str, output: &str) -> String {
    (0..count).map(|at| format!("output {name}{at} = {output}\n")).collect()
}

/// Compiles the model `text` for many rows, with the backend `player` and the limits `limits`.
fn batch(text: &str, player: RowPlayer, limits: Limits) -> Batch {
    let model = Model::parse(text).expect("a model");
    model.batch(&Options::default().row_player(player).limits(limits)).expect("a batch")
}

/// Returns the processor time of this thread; if the system does not report it, the elapsed time since `began`.
fn spent(began: Instant) -> Duration {
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let nanoseconds = told.and_then(|told| told.split(' ').next()?.parse().ok());
    nanoseconds.map_or_else(|| began.elapsed(), Duration::from_nanos)
}

#[test]
fn many_outputs_have_their_values_in_linear_time() {
    let began = Instant::now();
    for player in players() {
        let count = match player {
            // The code generator takes a hundred times as long.
            RowPlayer::Lanes128 => 1_100,
            RowPlayer::Best => 100_000,
            _ => 10_000,
        };
        let batch = batch(&format!("input x: f64\n{}", outputs(count, "y", "x")), player, Limits::default());
        let before = spent(began);
        let made = batch.run(&[InputColumn::values(&[1.0, -2.0, 3.5])]).expect("columns");
        let took = spent(began) - before;
        assert_eq!(made.len(), count);
        for column in &made {
            assert_eq!(column.values::<f64>(), Some(&[1.0, -2.0, 3.5][..]), "{player:?}");
        }
        let (found, because) = batch.player(&[InputColumn::values(&[1.0])]).expect("a player");
        assert!(player == RowPlayer::Best || found == player, "{found:?} for {player:?}: {because:?}");
        // Ten times what is asked. Time that is quadratic in the outputs is more.
        assert!(took < Duration::from_secs(3), "{player:?}: {took:?}");
    }
}

#[test]
fn many_outputs_of_one_result_have_its_values() {
    // One result on one tape, which is copied to the outputs of others.
    for player in players().filter(|player| *player != RowPlayer::Lanes128) {
        let (numbers, texts) = (outputs(2_000, "y", "x * 2.0"), outputs(2_000, "z", "strings.upper(s)"));
        let batch = batch(&format!("input x: f64?; input s: text\n{numbers}{texts}"), player, Limits::default());
        let values = ["a", "Zürich", ""];
        let texts = InputColumn::texts(&values);
        let x = [Optional::from(1.0), Optional::missing(), 4.0.into(), 5.0.into()];
        let columns = [InputColumn::optionals(&x), InputColumn::dictionary(Keys::I32(&[1, 0, 1, 2]), &texts)];
        let made = batch.run(&columns).expect("columns");
        for (at, column) in made.iter().enumerate() {
            for row in 0..4 {
                let found = column.value(row).expect("a value");
                let expected: Value = match at {
                    0..2_000 => x[row].get().map(|x| x * 2.0).into(),
                    _ => ["ZÜRICH", "A", "ZÜRICH", ""][row].into(),
                };
                assert!(found.same(&expected), "{player:?}, output {at}, row {row}: {found:?}");
            }
        }
    }
}

#[test]
fn a_player_of_many_outputs_is_compiled_within_the_time() {
    let limits = Limits::default().compile_time(Duration::from_millis(200));
    let text = format!("input x: f64\n{}", outputs(20_000, "y", "x"));
    let batch = batch(&text, RowPlayer::Lanes128, limits);
    let (player, because) = batch.player(&[InputColumn::values(&[1.0])]).expect("a player");
    let because = because.expect("a reason");
    assert_eq!((player, because.code()), (RowPlayer::Interpreter, Code::Limit), "{because:?}");
}
