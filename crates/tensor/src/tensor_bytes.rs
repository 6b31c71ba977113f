//! Counts the bytes of tensors that an evaluation has at a time, and compares them with their limit.

use crate::{TensorErrorKind, check_bytes};
use cembra_runtime::Scalar;
use cembra_value::Error;
use cembra_value::Limit;
use cembra_value::tensor::element_bytes;

/// The bytes of the tensors that an evaluation has made and not yet dropped, with one limit for all.
#[derive(Clone, Debug)]
pub struct TensorBytes {
    bytes: u128,
    /// The most bytes at a time so far.
    peak: u128,
    most: u64,
}

impl TensorBytes {
    /// A count of no bytes, with the limit `most`.
    #[must_use]
    pub const fn none(most: u64) -> TensorBytes {
        TensorBytes { bytes: 0, peak: 0, most }
    }

    /// Counts another tensor.
    ///
    /// # Errors
    /// If it is too large, alone or with the others.
    pub fn take(&mut self, scalar: Scalar, extents: &[usize]) -> Result<(), Error> {
        check_bytes(scalar, extents, self.most)?;
        self.bytes += element_bytes(scalar, extents).unwrap_or(0);
        if self.bytes <= u128::from(self.most) {
            self.peak = self.peak.max(self.bytes);
            return Ok(());
        }
        let message = format!(
            "with a tensor of {extents:?} tensors take {} bytes: an evaluation may have {}",
            self.bytes, self.most
        );
        Err(Error::tensors(TensorErrorKind::Limit, message).hint(Limit::ArrayBytes.hint()))
    }

    /// The most bytes at a time so far, which are within the limit.
    #[must_use]
    pub fn peak(&self) -> u64 {
        u64::try_from(self.peak).unwrap_or(u64::MAX)
    }

    /// Raises the peak to that of `other`, if that is higher.
    pub fn reach(&mut self, other: &TensorBytes) {
        self.peak = self.peak.max(other.peak);
    }

    /// Stops counting a tensor that was dropped.
    pub fn give(&mut self, scalar: Scalar, extents: &[usize]) {
        self.bytes = self.bytes.saturating_sub(element_bytes(scalar, extents).unwrap_or(0));
    }
}
