//! Arguments of a function: which types of columns an input accepts, and how a column or constant of a query becomes an input of a model.

use crate::error;
use cembra::doors::OutputRoom;
use cembra::errors::{Code, Diagnostic};
use cembra::{Field, Limits, QType, Scalar, Value};
use cembra_arrow::{Argument, Strings, data_type_with, is_converted, scalar, struct_arrays, to_model_as};
use datafusion::arrow::array::{ArrayRef, new_empty_array};
use datafusion::arrow::datatypes::DataType;
use datafusion::error::DataFusionError;
use datafusion::logical_expr::ColumnarValue;
use datafusion::scalar::ScalarValue;

/// The type to which a query converts an argument of the type `given` for the input `input`: `NULL` without a type, and integers of another width,
/// become the input's type. The conversion of integers is checked, so it never changes a value. Any other argument stays as it is.
pub(crate) fn coerced(input: &Field, given: &DataType) -> DataType {
    let own = || data_type_with(&input.qtype, Strings::Views).unwrap_or_else(|| given.clone());
    let is_narrowed = |own: &DataType| given.is_integer() && own.is_integer() && !fits(input, given);
    match given {
        DataType::Null => own(),
        _ => Some(own()).filter(is_narrowed).unwrap_or_else(|| given.clone()),
    }
}

/// Checks that the input accepts an argument of the type `given`.
///
/// # Errors
/// If it does not; the hint says how to convert the argument.
pub(crate) fn check(function: &str, input: &Field, given: &DataType) -> Result<(), DataFusionError> {
    if fits(input, given) {
        return Ok(());
    }
    let message = format!("{function}: input `{}` is {}, which takes no {given}", input.name, input.spelled_type());
    let hint = match data_type_with(&input.qtype, Strings::Plain) {
        Some(own) => format!("write `arrow_cast(.., '{own}')`"),
        None => "pass a column of another type".to_owned(),
    };
    Err(error::of_use(Diagnostic::new(Code::InputType, message).hint(hint)))
}

/// True if an array of the type `given` can be the input's column.
fn fits(input: &Field, given: &DataType) -> bool {
    let has = |of: Scalar, given: &DataType| scalar(given) == Some(of) || is_converted(given, of);
    match (&input.qtype, given) {
        (QType::Tuple(_), _) => struct_arrays(&new_empty_array(given), &input.qtype).is_some(),
        (
            QType::Array(_, of),
            DataType::List(element) | DataType::LargeList(element) | DataType::FixedSizeList(element, _),
        ) => has(*of, element.data_type()),
        (qtype, _) => match qtype.scalar() {
            // A mask is given as a boolean.
            Some(Scalar::Unit) => *given == DataType::Boolean,
            Some(of) => has(of, given),
            None => false,
        },
    }
}

/// Converts an argument to the model's input. A constant is given once for all rows if the input is a scalar, and repeated for each of `rows` rows if
/// it is a list or a struct.
///
/// # Errors
/// If a constant is not a value of the input's type, or cannot be repeated.
pub(crate) fn argument(
    input: &Field,
    given: &ColumnarValue,
    rows: usize,
) -> Result<Argument<'static>, cembra_arrow::Error> {
    let scalar = match given {
        ColumnarValue::Array(array) => return Ok(Argument::Array(array.clone())),
        ColumnarValue::Scalar(scalar) => scalar,
    };
    match input.qtype.scalar() {
        Some(of) => Ok(Argument::Value(constant(input, of, scalar)?)),
        None => Ok(Argument::Array(repeated(scalar, rows)?)),
    }
}

/// The value of a constant argument for an input with elements of the type `of`.
fn constant(input: &Field, of: Scalar, scalar: &ScalarValue) -> Result<Value, cembra_arrow::Error> {
    let array = to_model_as(repeated(scalar, 1)?, of, &OutputRoom::of(Limits::default().array_bytes))?;
    Ok(match (array.get(0), input.qtype.is_optional()) {
        (Some(value), true) => Value::Present(value),
        (Some(value), false) => Value::Scalar(value),
        (None, _) => Value::Missing(of),
    })
}

fn repeated(scalar: &ScalarValue, rows: usize) -> Result<ArrayRef, cembra_arrow::Error> {
    let failed = |error: DataFusionError| cembra::Error::from(Diagnostic::new(Code::InputType, error.to_string()));
    Ok(scalar.to_array_of_size(rows).map_err(failed)?)
}
