//! Evaluates a model on a stream of record batches. Each batch is evaluated when the consumer requests its results.

use crate::{Error, RunOptions, TableResult, run_as};
use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, Field, Schema, SchemaRef};
use cembra::Batch;
use std::sync::Arc;

/// A stream of the results that a model gives for a stream of tables.
#[derive(Debug)]
pub struct Evaluated<R> {
    reader: R,
    batch: Batch,
    schema: SchemaRef,
}

/// Returns the stream of results that `batch` gives for the tables of `reader`. A table with a row that fails gives an error in place of
/// its results.
///
/// # Errors
/// If no array can have the type of an output.
pub fn evaluated<R: RecordBatchReader>(batch: &Batch, reader: R) -> Result<Evaluated<R>, Error> {
    let field = |output: &cembra::Field| {
        let data_type = crate::data_type(&output.qtype).ok_or_else(|| Error::Output {
            name: output.name.to_string(),
            found: output.qtype.clone(),
            wanted: "array".to_owned(),
        })?;
        let is_nullable = output.qtype.is_optional() && output.qtype.scalar() != Some(cembra::Scalar::Unit);
        Ok(Field::new(&*output.name, data_type, is_nullable))
    };
    let fields: Vec<Field> = batch.outputs().iter().map(field).collect::<Result<_, Error>>()?;
    Ok(Evaluated { reader, batch: batch.clone(), schema: Arc::new(Schema::new(fields)) })
}

impl<R: RecordBatchReader> Iterator for Evaluated<R> {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let table = match self.reader.next()? {
            Ok(table) => table,
            Err(error) => return Some(Err(error)),
        };
        // All batches of the stream have one schema, whatever arrays an evaluation gives.
        let made = run_as(&self.batch, &RunOptions::new(), &table, Some(&self.schema));
        Some(made.map(|TableResult { table, .. }| table).map_err(|error| ArrowError::ExternalError(Box::new(error))))
    }
}

impl<R: RecordBatchReader> RecordBatchReader for Evaluated<R> {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}
