//! A model that is compiled for the types of its arguments: the batch that evaluates it, and the types that it returns.

use crate::arguments::argument;
use crate::options::FunctionOptions;
use cembra::errors::{Code, Diagnostic};
use cembra::{Batch, Field, Model, OnError, Options, QType, RunOptions, Scalar};
use cembra_arrow::{Argument, Strings, array_with, data_type_with, with_columns};
use datafusion::arrow::array::{ArrayRef, StructArray};
use datafusion::arrow::datatypes::{DataType, Field as ArrowField, FieldRef, Fields};
use datafusion::logical_expr::ColumnarValue;
use std::sync::Arc;

/// A model that is compiled for the types of its arguments.
#[derive(Debug)]
pub(crate) struct Compiled {
    batch: Batch,
    /// For each input of the batch, the index of its argument; `None` for an input whose default is used.
    arguments: Vec<Option<usize>>,
    /// The columns of the outputs.
    outputs: Fields,
}

impl Compiled {
    /// Compiles the model of the function `name`, whose parameters are the inputs with the names `parameters`. Inputs without a declared type have
    /// the types in `types`, by name.
    ///
    /// # Errors
    /// If the model cannot be compiled with these types, or an output has no type of Arrow.
    pub(crate) fn of(
        name: &str,
        model: &Model,
        parameters: &[Arc<str>],
        types: &[(Arc<str>, QType)],
        options: &FunctionOptions,
    ) -> Result<Compiled, cembra::Error> {
        let base = Options::default().name(name).registry(options.registry).limits(options.limits);
        let options_of_types = types.iter().fold(base, |all, (input, qtype)| all.input_type(input, qtype.clone()));
        let batch = model.batch(&options_of_types)?;
        let argument_of = |input: &Field| parameters.iter().position(|parameter| *parameter == input.name);
        let arguments = batch.inputs().iter().map(argument_of).collect();
        let outputs = batch.outputs().iter().map(|output| field(output, options.on_error)).collect::<Result<_, _>>()?;
        Ok(Compiled { batch, arguments, outputs })
    }

    /// The inputs that the outputs need, each with the index of its argument.
    pub(crate) fn inputs(&self) -> impl Iterator<Item = (&Field, Option<usize>)> {
        self.batch.inputs().iter().zip(self.arguments.iter().copied())
    }

    /// The column that a call returns: the output, or a struct of several outputs.
    pub(crate) fn returned(&self, name: &str) -> FieldRef {
        match &*self.outputs {
            [output] => Arc::new(output.as_ref().clone().with_name(name)),
            _ => Arc::new(ArrowField::new(name, DataType::Struct(self.outputs.clone()), false)),
        }
    }

    /// Evaluates the model for `rows` rows.
    ///
    /// # Errors
    /// If a column does not fit its input, or a row fails and `options` do not make it missing.
    pub(crate) fn run(
        &self,
        given: &[ColumnarValue],
        rows: usize,
        options: &RunOptions,
    ) -> Result<ArrayRef, cembra_arrow::Error> {
        let inputs = self.inputs().map(|(input, at)| match at.and_then(|at| given.get(at)) {
            Some(given) => argument(input, given, rows),
            None => Ok(Argument::Value(input.left_out().unwrap_or(cembra::Value::Nothing))),
        });
        let inputs: Vec<Argument<'_>> = inputs.collect::<Result<_, _>>()?;
        let room = self.batch.output_room(options);
        let options = options.clone().rows(rows);
        let run = with_columns(self.batch.inputs(), &inputs, |columns| self.batch.run_with(&options, columns))??;
        let room = room.beside(&run.columns);
        let arrays = self.outputs.iter().zip(run.columns);
        let arrays = arrays.map(|(output, column)| array_with(output.name(), column, Strings::Views, &room));
        let mut arrays: Vec<ArrayRef> = arrays.collect::<Result<_, _>>()?;
        match arrays.len() {
            1 => Ok(arrays.remove(0)),
            _ => Ok(Arc::new(StructArray::try_new_with_length(self.outputs.clone(), arrays, None, rows)?)),
        }
    }
}

/// The column of an output.
fn field(output: &Field, on_error: OnError) -> Result<ArrowField, cembra::Error> {
    let Some(data_type) = data_type_with(&output.qtype, Strings::Views) else {
        let message = format!("output `{}` is {}, which no column can have", output.name, output.spelled_type());
        return Err(Diagnostic::new(Code::UntypedOutput, message).hint("return scalars, lists or structs").into());
    };
    // A mask is a boolean, false where it is missing.
    let is_optional = output.qtype.is_optional() || output.qtype.as_optional_struct().is_some();
    let is_nullable = (is_optional || on_error != OnError::Fail) && output.qtype.scalar() != Some(Scalar::Unit);
    Ok(ArrowField::new(&*output.name, data_type, is_nullable))
}
