//! Results as text whose rows do not know of one another, so that batches are encoded on the threads that computed them; here
//! they are put behind each other, in their order, in the frame of the file.

use super::failed;
use crate::error::DataError;
use crate::output::Output;
use arrow_array::RecordBatch;
use std::io::Write;
use std::sync::Arc;

/// How rows are written, whichever come before them.
pub trait Encoder: Send + Sync {
    /// The bytes of rows.
    fn encode(&self, rows: &RecordBatch) -> Vec<u8>;
}

/// What is around the rows of a file.
#[derive(Clone, Copy, Default)]
pub(super) struct Frame {
    /// What the first byte of the first row is instead.
    pub(super) first: Option<u8>,
    /// What is behind the rows, and what is there where there are none.
    pub(super) end: &'static [u8],
    pub(super) end_of_none: &'static [u8],
}

/// Writes the bytes of rows.
pub struct Lines {
    output: Output,
    encoder: Arc<dyn Encoder>,
    frame: Frame,
    is_empty: bool,
}

impl Lines {
    /// Begins with the header.
    pub(super) fn open(
        mut output: Output,
        header: &[u8],
        encoder: Arc<dyn Encoder>,
        frame: Frame,
    ) -> Result<Self, DataError> {
        output.write_all(header).map_err(failed)?;
        Ok(Lines { output, encoder, frame, is_empty: true })
    }

    /// What makes bytes of rows.
    pub fn encoder(&self) -> Arc<dyn Encoder> {
        self.encoder.clone()
    }

    /// Writes rows that were encoded.
    ///
    /// # Errors
    /// They cannot be written.
    pub fn write(&mut self, mut rows: &[u8]) -> Result<(), DataError> {
        if let (true, Some(first), [_, others @ ..]) = (self.is_empty, self.frame.first, rows) {
            self.output.write_all(&[first]).map_err(failed)?;
            (self.is_empty, rows) = (false, others);
        }
        self.is_empty &= rows.is_empty();
        self.output.write_all(rows).map_err(failed)
    }

    pub(super) fn finish(mut self) -> Result<Output, DataError> {
        let end = if self.is_empty { self.frame.end_of_none } else { self.frame.end };
        self.output.write_all(end).map_err(failed)?;
        Ok(self.output)
    }
}
