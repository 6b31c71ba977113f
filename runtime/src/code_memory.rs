//! Memory for machine code: pages that are written, then made executable, never both, and unmapped when the last
//! reference to them goes. A piece of code and everything that may call it share the pages through an `Arc`.

use memmap2::{Mmap, MmapMut};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

static LIVE_BYTES: AtomicUsize = AtomicUsize::new(0);

/// Pages could not be had or protected; the operating system's reason is the source.
#[derive(Debug)]
pub struct CodeMemoryError {
    what: &'static str,
    source: std::io::Error,
}

impl std::fmt::Display for CodeMemoryError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "cannot {} memory for machine code: {}", self.what, self.source)
    }
}

impl std::error::Error for CodeMemoryError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.source)
    }
}

/// Pages being written.
#[derive(Debug)]
pub struct CodeMemory {
    pages: MmapMut,
}

impl CodeMemory {
    /// Maps at least `size` writable bytes, page aligned.
    ///
    /// # Errors
    /// The operating system has no such memory.
    pub fn allocate(size: usize) -> Result<CodeMemory, CodeMemoryError> {
        let pages = MmapMut::map_anon(size.max(1)).map_err(|source| CodeMemoryError { what: "map", source })?;
        Ok(CodeMemory { pages })
    }

    /// Where to write.
    pub fn as_mut_ptr(&mut self) -> *mut u8 {
        self.pages.as_mut_ptr()
    }

    /// Makes the pages executable and no longer writable.
    ///
    /// # Errors
    /// The operating system refuses executable memory.
    pub fn publish(self) -> Result<Arc<CodePages>, CodeMemoryError> {
        let pages = self.pages.make_exec().map_err(|source| CodeMemoryError { what: "protect", source })?;
        LIVE_BYTES.fetch_add(pages.len(), Ordering::Relaxed);
        Ok(Arc::new(CodePages { pages }))
    }
}

/// Executable pages. They live as long as any `Arc` of them.
#[derive(Debug)]
pub struct CodePages {
    pages: Mmap,
}

impl CodePages {
    /// The first byte.
    #[must_use]
    pub fn as_ptr(&self) -> *const u8 {
        self.pages.as_ptr()
    }

    /// Size in bytes as asked for.
    #[must_use]
    pub fn size(&self) -> usize {
        self.pages.len()
    }

    /// The bytes of all live code in this process.
    #[must_use]
    pub fn live_bytes() -> usize {
        LIVE_BYTES.load(Ordering::Relaxed)
    }
}

impl Drop for CodePages {
    fn drop(&mut self) {
        LIVE_BYTES.fetch_sub(self.pages.len(), Ordering::Relaxed);
    }
}
