//! Places finished machine code in the process's executable memory.

use crate::error::{Error, ErrorKind};
use cembra_runtime::{CodeMemory, CodePages};
use std::sync::Arc;

/// Copies code to executable memory. The first byte of the code is the first byte of the pages.
pub(crate) fn publish(code: &[u8]) -> Result<Arc<CodePages>, Error> {
    let failed = |e: cembra_runtime::CodeMemoryError| Error::new(ErrorKind::Memory, e.to_string());
    let mut memory = CodeMemory::allocate(code.len()).map_err(failed)?;
    memory.write(code);
    memory.publish().map_err(failed)
}
