//! Memory for machine code. The code of all models is in pages of shared regions. Pages are first written, then made executable; they
//! are never both writable and executable. They are freed when the last `Arc` of them is dropped, so code and everything that may call
//! it share the pages through an `Arc`.

mod pool;
mod reserve;
mod slots;

use pool::{Pool, Slot};
use std::sync::Arc;

/// The error if pages cannot be allocated or protected: the limit for the machine code of all live models is exceeded, or the operating system
/// refuses. If the system refuses, its own error is the source of this error.
#[derive(Debug)]
pub struct CodeMemoryError {
    reason: Reason,
}

/// The reason for a [`CodeMemoryError`].
#[derive(Debug)]
enum Reason {
    /// The code would exceed the limit for the code of all live models; the field is that limit, in bytes.
    Limit(usize),
    /// The operating system refused an action; the fields are the action and the system's error.
    System(&'static str, std::io::Error),
}

impl CodeMemoryError {
    fn system(what: &'static str) -> impl FnOnce(std::io::Error) -> CodeMemoryError {
        move |source| CodeMemoryError { reason: Reason::System(what, source) }
    }
}

impl std::fmt::Display for CodeMemoryError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.reason {
            Reason::Limit(most) => write!(f, "the machine code of all models would exceed {most} bytes"),
            Reason::System(what, source) => write!(f, "cannot {what} memory for machine code: {source}"),
        }
    }
}

impl std::error::Error for CodeMemoryError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.reason {
            Reason::Limit(_) => None,
            Reason::System(_, source) => Some(source),
        }
    }
}

/// Pages for machine code that are still writable. They are freed if they are dropped before `publish` makes them executable.
#[derive(Debug)]
pub struct CodeMemory {
    slot: Slot,
}

impl CodeMemory {
    /// Allocates at least `size` writable bytes, page aligned.
    ///
    /// # Errors
    /// If all live code together would exceed [`live_code_limit`], or the operating system refuses the memory.
    pub fn allocate(size: usize) -> Result<CodeMemory, CodeMemoryError> {
        let mut slot = Pool::global().take(size)?;
        slot.make_writable().map_err(CodeMemoryError::system("write to"))?;
        Ok(CodeMemory { slot })
    }

    /// The address of the pages' first writable byte.
    pub fn as_mut_ptr(&mut self) -> *mut u8 {
        self.slot.start()
    }

    /// Writes `bytes` to the start of the pages. Bytes beyond the size of the pages are dropped.
    pub fn write(&mut self, bytes: &[u8]) {
        let length = bytes.len().min(self.size());
        // SAFETY: CODE-SLOT: the pages are writable, this owner's alone, and of at least that length.
        unsafe { self.as_mut_ptr().copy_from_nonoverlapping(bytes.as_ptr(), length) };
    }

    /// The size of the writable pages in bytes, a multiple of the page size.
    #[must_use]
    pub fn size(&self) -> usize {
        self.slot.size()
    }

    /// Makes the pages executable and no longer writable.
    ///
    /// # Errors
    /// If the operating system refuses executable memory.
    pub fn publish(mut self) -> Result<Arc<CodePages>, CodeMemoryError> {
        self.slot.make_executable().map_err(CodeMemoryError::system("protect"))?;
        Ok(Arc::new(CodePages { slot: self.slot }))
    }
}

/// Executable pages with machine code. They live as long as any `Arc` of them.
#[derive(Debug)]
pub struct CodePages {
    slot: Slot,
}

impl CodePages {
    /// The address of the pages' first byte.
    #[must_use]
    #[inline]
    pub fn as_ptr(&self) -> *const u8 {
        self.slot.start()
    }

    /// The size of the pages in bytes, a multiple of the page size.
    #[must_use]
    pub fn size(&self) -> usize {
        self.slot.size()
    }

    /// The contents of the pages: the code, and the bytes that fill the rest of the last page.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: CODE-SLOT: published pages are readable, nothing writes to them, and they live as long as self.
        unsafe { std::slice::from_raw_parts(self.as_ptr(), self.size()) }
    }
}

/// The bytes that the machine code of all live models takes in this process, in whole pages.
#[must_use]
pub fn live_code_bytes() -> usize {
    Pool::global().live()
}

/// The most bytes that the machine code of all live models may take in this process; 1 GiB by default.
#[must_use]
pub fn live_code_limit() -> usize {
    Pool::global().limit()
}

/// Sets the most bytes that the machine code of all live models may take in this process. Code that exists already stays, even if it
/// exceeds the new limit.
pub fn set_live_code_limit(bytes: usize) {
    Pool::global().set_limit(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "Miri cannot map pages")]
    fn what_was_written_is_there_and_neighbours_are_untouched() {
        let publish = |byte: u8, size: usize| {
            let mut memory = CodeMemory::allocate(size).expect("pages");
            assert!(memory.size() >= size);
            // SAFETY: CODE-SLOT: the pages are this test's, writable, and of that size.
            unsafe { memory.as_mut_ptr().write_bytes(byte, size) };
            memory.publish().expect("executable pages")
        };
        let holds = |pages: &CodePages, byte: u8, size: usize| pages.bytes()[..size].iter().all(|&found| found == byte);
        let (first, second, third) = (publish(1, 100), publish(2, 5000), publish(3, 4096));
        drop(second);
        let again = publish(4, 8192);
        assert!(holds(&first, 1, 100) && holds(&third, 3, 4096) && holds(&again, 4, 8192));
        assert!(live_code_bytes() >= first.size() + third.size() + again.size());
    }
}
