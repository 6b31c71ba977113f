//! Sinks for text formats in which rows are independent. Each batch is encoded on the thread that computed it. This module writes the encoded rows
//! in order, and the text at the start and the end of the file.

use super::failed;
use crate::error::DataError;
use crate::output::Output;
use arrow_array::RecordBatch;
use std::io::Write;
use std::sync::Arc;

/// An encoder of rows as text, such as CSV records or JSON objects. The text of a row does not depend on the rows before it, so any thread can
/// encode.
pub trait Encoder: Send + Sync {
    /// Encodes `rows` as the bytes that a file of the format has for them.
    fn encode(&self, rows: &RecordBatch) -> Vec<u8>;
}

/// The text at the start and the end of a file of results, around its rows.
#[derive(Clone, Copy, Default, Debug)]
pub struct Frame {
    /// The byte that replaces the first byte of the file's first row; `None` if no byte is replaced.
    pub first: Option<u8>,
    /// The text that is written after the rows. In a file without rows, `end_of_none` is written instead.
    pub end: &'static [u8],
    /// The text of a file without rows, after its header.
    pub end_of_none: &'static [u8],
}

/// A sink that writes rows, encoded by other threads, in order.
pub struct Lines {
    output: Output,
    encoder: Arc<dyn Encoder>,
    frame: Frame,
    is_empty: bool,
}

impl Lines {
    /// Begins a file of encoded rows with its header.
    pub(super) fn open(
        mut output: Output,
        header: &[u8],
        encoder: Arc<dyn Encoder>,
        frame: Frame,
    ) -> Result<Self, DataError> {
        output.write_all(header).map_err(failed)?;
        Ok(Lines { output, encoder, frame, is_empty: true })
    }

    /// The encoder that must encode the rows for this sink.
    pub fn encoder(&self) -> Arc<dyn Encoder> {
        self.encoder.clone()
    }

    /// Writes `rows`, which the sink's encoder encoded.
    ///
    /// # Errors
    /// If the rows cannot be written.
    pub fn write(&mut self, mut rows: &[u8]) -> Result<(), DataError> {
        if let (true, Some(first), [_, others @ ..]) = (self.is_empty, self.frame.first, rows) {
            self.output.write_all(&[first]).map_err(failed)?;
            (self.is_empty, rows) = (false, others);
        }
        self.is_empty &= rows.is_empty();
        self.output.write_all(rows).map_err(failed)
    }

    /// Writes the text at the end of the file, and returns the output.
    pub(super) fn finish(mut self) -> Result<Output, DataError> {
        let end = if self.is_empty { self.frame.end_of_none } else { self.frame.end };
        self.output.write_all(end).map_err(failed)?;
        Ok(self.output)
    }
}
