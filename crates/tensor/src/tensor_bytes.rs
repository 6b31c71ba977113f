//! How many bytes of tensors an evaluation has at a time, held against how many it may have.

use crate::{TensorErrorKind, check_bytes};
use cembra_runtime::Scalar;
use cembra_value::Error;
use cembra_value::Limit;
use cembra_value::tensor::element_bytes;

/// The bytes of the tensors that an evaluation has made and still has, which have a limit together.
#[derive(Clone, Debug)]
pub struct TensorBytes {
    bytes: u128,
    /// The most that there were at a time.
    peak: u128,
    most: u64,
}

impl TensorBytes {
    /// No bytes, of at most `most`.
    #[must_use]
    pub const fn none(most: u64) -> TensorBytes {
        TensorBytes { bytes: 0, peak: 0, most }
    }

    /// Another tensor.
    ///
    /// # Errors
    /// It is too large, alone or with the others.
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

    /// The most bytes that were taken at a time, which are no more than there may be.
    #[must_use]
    pub fn peak(&self) -> u64 {
        u64::try_from(self.peak).unwrap_or(u64::MAX)
    }

    /// The same had the peak of another one, too.
    pub fn reach(&mut self, other: &TensorBytes) {
        self.peak = self.peak.max(other.peak);
    }

    /// One that was taken is no more.
    pub fn give(&mut self, scalar: Scalar, extents: &[usize]) {
        self.bytes = self.bytes.saturating_sub(element_bytes(scalar, extents).unwrap_or(0));
    }
}
