//! Input columns of a run, made from Arrow arrays. A struct, a list of structs or a map is split into one array per scalar.

use crate::{Error, Input, struct_arrays};
use arrow_array::ArrayRef;
use cembra::columns::InputColumn;
use cembra::{Field, QType, Value};

/// The values that an input has in all rows of a run.
#[derive(Clone, Debug)]
pub enum Argument<'a> {
    /// The input has an array with a value for each row.
    Array(ArrayRef),
    /// The input has the same value in all rows.
    Value(Value),
    /// The input has this column of cembra, which is passed to the model unchanged.
    Column(InputColumn<'a>),
}

/// Converts the arguments `given` to input columns, and calls `run` with the columns. `given` has one argument for each of `inputs`, in their
/// order.
///
/// # Errors
/// If an array has a type that its input cannot have, if a struct in it is null but not optional, or if a timestamp or duration does not
/// fit into microseconds.
pub fn with_columns<R>(
    inputs: &[Field],
    given: &[Argument<'_>],
    run: impl FnOnce(&[InputColumn<'_>]) -> R,
) -> Result<R, Error> {
    let parts = |(input, given): (&Field, &Argument<'_>)| match (given, &input.qtype) {
        (Argument::Value(_) | Argument::Column(_), _) => Ok(Vec::new()),
        (Argument::Array(array), QType::Tuple(_)) => struct_arrays(array, &input.qtype)
            .ok_or_else(|| Error::Type { name: input.name.to_string(), found: array.data_type().clone() }),
        (Argument::Array(array), qtype) => Ok(vec![(array.clone(), qtype.clone())]),
    };
    let parts: Vec<Vec<(ArrayRef, QType)>> = inputs.iter().zip(given).map(parts).collect::<Result<_, _>>()?;
    let all = inputs.iter().zip(&parts).flat_map(|(input, parts)| parts.iter().map(move |part| (input, part)));
    let arrays = all.map(|(input, (array, qtype))| match input.is_empty_by_default {
        true => Input::with_empty_lists(&input.name, array, qtype),
        false => Input::of(&input.name, array, qtype),
    });
    let arrays: Vec<Input<'_>> = arrays.collect::<Result<_, _>>()?;
    let values: Vec<_> = arrays.iter().map(Input::values).collect();
    let all: Vec<_> = arrays.iter().zip(&values).map(|(array, values)| array.column(values.as_ref())).collect();
    let mut rest = &all[..];
    let mut columns = Vec::with_capacity(given.len());
    for ((input, given), parts) in inputs.iter().zip(given).zip(&parts) {
        let (of_input, behind) = rest.split_at(parts.len());
        rest = behind;
        columns.push(match (given, of_input) {
            (Argument::Value(value), _) => InputColumn::shared(value),
            (Argument::Column(column), _) => *column,
            (Argument::Array(_), [column]) if !matches!(input.qtype, QType::Tuple(_)) => *column,
            (Argument::Array(_), columns) => InputColumn::structs(columns),
        });
    }
    Ok(run(&columns))
}
