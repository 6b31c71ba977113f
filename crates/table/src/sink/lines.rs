//! Sinks for text formats whose rows are independent. Batches are encoded on the threads that computed them; here their bytes are written
//! in order, inside the frame of the file.

use super::failed;
use crate::error::DataError;
use crate::output::Output;
use arrow_array::RecordBatch;
use std::io::Write;
use std::sync::Arc;

/// An encoder of rows that does not depend on the rows before.
pub trait Encoder: Send + Sync {
    /// Encodes rows as bytes.
    fn encode(&self, rows: &RecordBatch) -> Vec<u8>;
}

/// The text around the rows of a file.
#[derive(Clone, Copy, Default)]
pub(super) struct Frame {
    /// The byte that replaces the first byte of the first row; `None` if there is none.
    pub(super) first: Option<u8>,
    /// The text after the rows; `end_of_none` replaces it in a file without rows.
    pub(super) end: &'static [u8],
    pub(super) end_of_none: &'static [u8],
}

/// A sink that writes encoded rows in order.
pub struct Lines {
    output: Output,
    encoder: Arc<dyn Encoder>,
    frame: Frame,
    is_empty: bool,
}

impl Lines {
    /// Begins a file with its header.
    pub(super) fn open(
        mut output: Output,
        header: &[u8],
        encoder: Arc<dyn Encoder>,
        frame: Frame,
    ) -> Result<Self, DataError> {
        output.write_all(header).map_err(failed)?;
        Ok(Lines { output, encoder, frame, is_empty: true })
    }

    /// The encoder of rows.
    pub fn encoder(&self) -> Arc<dyn Encoder> {
        self.encoder.clone()
    }

    /// Writes encoded rows.
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

    /// Writes the end of the file, and returns the output.
    pub(super) fn finish(mut self) -> Result<Output, DataError> {
        let end = if self.is_empty { self.frame.end_of_none } else { self.frame.end };
        self.output.write_all(end).map_err(failed)?;
        Ok(self.output)
    }
}
