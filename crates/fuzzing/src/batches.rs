//! Players of rows as subjects: a model is run as a batch, on columns whose layouts are drawn anew each time, and on as many copies
//! of the rows as fill some words of bits.

use crate::config::pick;
use crate::layout::{Laid, Lists, Shape};
use crate::subject::{Answer, Failure, Row, Subject};
use crate::values::fresh;
use cembra::{Batch, InputColumn, Model, OnError, Options, RowFailure, RowPlayer};
use cembra_value::Value;

/// Rows are copied to fill strips; each copy must be answered alike.
impl Subject for RowPlayer {
    fn name(&self) -> &str {
        (*self).name()
    }

    fn run(&self, model: &Model, options: &Options, rows: &[Row]) -> Result<Vec<Answer>, Failure> {
        let batch = model.batch(&options.clone().row_player(*self))?;
        let nodes = model.program().graph.len() as u64;
        let mut random = fastrand::Rng::with_seed(nodes << 20 | rows.len() as u64);
        let copies = *pick(&mut random, &[1, 1, 64, 65, 70, 130, 400]);
        let all: Vec<&Row> = rows.iter().cycle().take(rows.len().max(copies * usize::from(!rows.is_empty()))).collect();
        let answers = answers(&batch, &all, &mut random)?;
        // If two copies of a row are answered differently, the later one is shown.
        let answer = |row: usize| {
            let mut copies = answers.iter().skip(row).step_by(rows.len()).cloned();
            let first = copies.next();
            let differs = |other: &Answer| first.as_ref().is_none_or(|first| !crate::subject::same(first, other));
            copies.find(differs).or_else(|| first.clone())
        };
        Ok((0..rows.len()).filter_map(answer).collect())
    }
}

fn answers(batch: &Batch, rows: &[&Row], random: &mut fastrand::Rng) -> Result<Vec<Answer>, Failure> {
    let value = |name: &str, row: &Row| row.get(name).map_or(Value::Nothing, fresh);
    let inputs = batch.inputs();
    let laid: Vec<Laid> = inputs
        .iter()
        .map(|input| {
            let values = rows.iter().map(|row| value(&input.name, row)).collect();
            Laid::of(values, &input.qtype, Shape::random(random), random)
        })
        .collect();
    let lists: Vec<Lists<'_>> = laid.iter().map(Laid::lists).collect();
    let all = || inputs.iter().zip(laid.iter().zip(&lists));
    let dictionaries: Vec<Option<InputColumn<'_>>> =
        all().map(|(input, (laid, lists))| laid.dictionary(&input.qtype, lists)).collect();
    let columns: Vec<InputColumn<'_>> = all()
        .zip(&dictionaries)
        .map(|((input, (laid, lists)), dictionary)| laid.column(&input.qtype, lists, dictionary.as_ref()))
        .collect();
    let run = batch.start().rows(rows.len()).threads(random.usize(1..4)).on_error(OnError::Missing);
    let made = run.keep_failures(usize::MAX).run(&columns)?;
    let mut failures = made.failures.into_iter().peekable();
    let answer = |row: usize| match failures.next_if(|failure| failure.row == row) {
        Some(RowFailure { error, .. }) => Err(error.into()),
        None => Ok(made
            .columns
            .iter()
            .zip(batch.outputs())
            .map(|(column, output)| {
                let value = column.value(row).unwrap_or(Value::Nothing);
                // Other rows that fail make the column optional.
                match value {
                    Value::Present(value) if !output.qtype.is_optional() => Value::Scalar(value),
                    value => value,
                }
            })
            .collect()),
    };
    Ok((0..rows.len()).map(answer).collect())
}
