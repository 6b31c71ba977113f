//! Subjects (implementations that the fuzzer compares) that run a model on all rows as one batch, one subject for each backend of batches. The
//! columns have random layouts, and the rows are repeated so that they fill several bitmap words.

use crate::config::pick;
use crate::layout::{ColumnMemory, Layout, Lists, Shape};
use crate::subject::{Answer, Failure, Row, Subject};
use crate::values::fresh;
use cembra::columns::InputColumn;
use cembra::explain::RowPlayer;
use cembra::{Batch, Model, OnError, Options, RowFailure, RunOptions};
use cembra_array::{StructColumn, struct_columns};
use cembra_runtime::{QType, Scalar};
use cembra_value::{Promise, Value};

/// Runs a model on all rows as one batch. The rows are often copied, so that they fill several strips (blocks of rows that are evaluated at once).
/// All copies of a row must have the same answer.
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
        // If two copies of a row have different answers, the later one is shown.
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
    let takes_parts = batch.takes_structs() && random.bool();
    let mut pieces = Vec::new();
    let mut ends = Vec::with_capacity(inputs.len());
    for input in inputs {
        let values: Vec<Value> = rows.iter().map(|row| value(&input.name, row)).collect();
        match struct_columns(&input.qtype).filter(|_| takes_parts && input.promise == Promise::Nothing) {
            Some(columns) => pieces.extend(taken_apart(&values, &columns, random)),
            None => {
                let laid = ColumnMemory::of(values, &input.qtype, Shape::random(random), random);
                pieces.push(ColumnPart { qtype: input.qtype.clone(), points: None, laid });
            }
        }
        ends.push(pieces.len());
    }
    let lists: Vec<Lists<'_>> = pieces.iter().map(|piece| piece.laid.lists()).collect();
    let all = || pieces.iter().zip(&lists);
    let dictionaries: Vec<Option<InputColumn<'_>>> =
        all().map(|(piece, lists)| piece.laid.dictionary(&piece.qtype, lists)).collect();
    let values: Vec<InputColumn<'_>> = all()
        .zip(&dictionaries)
        .map(|((piece, lists), dictionary)| piece.laid.column(&piece.qtype, lists, dictionary.as_ref()))
        .collect();
    let parts: Vec<InputColumn<'_>> = pieces
        .iter()
        .zip(&values)
        .map(|(piece, values)| piece.points.as_ref().map_or(*values, |points| InputColumn::lists(&points[..], values)))
        .collect();
    let mut start = 0;
    let columns = inputs.iter().zip(ends).map(|(input, end)| {
        let parts = parts.get(std::mem::replace(&mut start, end)..end).unwrap_or_default();
        match parts {
            [whole] if !takes_parts || struct_columns(&input.qtype).is_none() => *whole,
            [part] if !matches!(input.qtype, QType::Tuple(_)) => *part,
            parts => InputColumn::structs(parts),
        }
    });
    let columns: Vec<InputColumn<'_>> = columns.collect();
    let options = RunOptions::new().rows(rows.len()).threads(random.usize(1..4)).on_error(OnError::Missing);
    let made = batch.run_with(&options.keep_failures(usize::MAX), &columns)?;
    let mut failures = made.failures.into_iter().peekable();
    let answer = |row: usize| match failures.next_if(|failure| failure.row == row) {
        Some(RowFailure { error, .. }) => Err(error.into()),
        None => Ok(made
            .columns
            .iter()
            .zip(batch.outputs())
            .map(|(column, output)| {
                let value = column.value(row).unwrap_or(Value::Nothing);
                // If another row fails, the output column becomes optional.
                match value {
                    Value::Present(value) if !output.qtype.is_optional() => Value::Scalar(value),
                    value => value,
                }
            })
            .collect()),
    };
    Ok((0..rows.len()).map(answer).collect())
}

/// A column, or the elements of a column of lists.
struct ColumnPart {
    qtype: QType,
    /// The split points of the rows' lists; `None` if the column has no lists.
    points: Option<Vec<i64>>,
    laid: ColumnMemory,
}

/// Returns the columns for the parts of structs, lists and arrays.
fn taken_apart(values: &[Value], columns: &[StructColumn], random: &mut fastrand::Rng) -> Vec<ColumnPart> {
    let members: Vec<Vec<&Value>> = values.iter().map(members).collect();
    let piece = |(at, column): (usize, &StructColumn)| {
        let of_rows = members.iter().map(|members| members.get(at).copied());
        if let QType::Array(_, scalar) = column.qtype {
            let (mut points, mut elements) = (vec![0], Vec::new());
            for array in of_rows {
                if let Some(Value::Array(_, array)) = array {
                    elements.extend((0..array.len()).map(|at| array.value(at)));
                }
                points.push(elements.len() as i64);
            }
            let qtype = QType::Optional(scalar);
            let shape = Shape { layout: *pick(random, &Layout::ALL[..3]), ..Shape::random(random) };
            return ColumnPart { laid: ColumnMemory::of(elements, &qtype, shape, random), points: Some(points), qtype };
        }
        let is_there = |row: usize| {
            column
                .presence_column
                .and_then(|mask| members.get(row)?.get(mask).copied())
                .is_none_or(|mask| *mask != Value::Missing(Scalar::Unit))
        };
        let value = |(row, value): (usize, Option<&Value>)| match value {
            Some(Value::Scalar(value)) if column.qtype.is_optional() => {
                Value::optional(value.scalar(), is_there(row).then(|| value.clone()))
            }
            value => value.cloned().unwrap_or(Value::Nothing),
        };
        let values = of_rows.enumerate().map(value).collect();
        let laid = ColumnMemory::of(values, &column.qtype, Shape::random(random), random);
        ColumnPart { qtype: column.qtype.clone(), points: None, laid }
    };
    columns.iter().enumerate().map(piece).collect()
}

/// Returns the scalars, optionals and arrays of a value, in the order of its type.
fn members(value: &Value) -> Vec<&Value> {
    // Types nest only as deep as the text that spelled them.
    match value {
        Value::Tuple(members) => members.iter().flat_map(self::members).collect(),
        value => vec![value],
    }
}
