//! Counts the bytes of the tensors that exist at one time during an evaluation, and checks them against a limit.

use crate::{TensorErrorKind, check_bytes};
use cembra_runtime::Scalar;
use cembra_value::Error;
use cembra_value::Limit;
use cembra_value::tensor::element_bytes;

/// The total size in bytes of the tensors that an evaluation has created and not yet dropped, with a limit.
#[derive(Clone, Debug)]
pub struct TensorBytes {
    bytes: u128,
    /// The most bytes that the tensors had at one time so far.
    peak: u128,
    most: u64,
}

impl TensorBytes {
    /// Begins a count at 0 bytes, with a limit of `most` bytes.
    #[must_use]
    pub const fn with_limit(most: u64) -> TensorBytes {
        TensorBytes { bytes: 0, peak: 0, most }
    }

    /// Adds to the counter the bytes of a tensor that is about to be created.
    ///
    /// # Errors
    /// If the tensor exceeds the limit, alone or together with the other tensors.
    pub fn take(&mut self, scalar: Scalar, extents: &[usize]) -> Result<(), Error> {
        check_bytes(scalar, extents, self.most)?;
        self.bytes += element_bytes(scalar, extents).unwrap_or(0);
        if self.bytes <= u128::from(self.most) {
            self.peak = self.peak.max(self.bytes);
            return Ok(());
        }
        let message = format!(
            "with a tensor of {extents:?}, tensors take {} bytes; the limit for an evaluation is {}",
            self.bytes, self.most
        );
        Err(Error::tensors(TensorErrorKind::Limit, message).hint(Limit::ArrayBytes.hint()))
    }

    /// The most bytes that tensors had at one time so far. It does not exceed the limit.
    #[must_use]
    pub fn peak(&self) -> u64 {
        u64::try_from(self.peak).unwrap_or(u64::MAX)
    }

    /// Raises the peak of this count to that of `other`, if the peak of `other` is higher.
    pub fn reach(&mut self, other: &TensorBytes) {
        self.peak = self.peak.max(other.peak);
    }

    /// Subtracts the bytes of a tensor that was dropped.
    pub fn give(&mut self, scalar: Scalar, extents: &[usize]) {
        self.bytes = self.bytes.saturating_sub(element_bytes(scalar, extents).unwrap_or(0));
    }
}
