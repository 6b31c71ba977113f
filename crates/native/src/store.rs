//! Where machine code goes: one Cranelift JIT module a function, whose memory is a slot of the process's code memory. The
//! module is dropped as soon as the code is published; the pages live on with the function.

use crate::error::{Error, ErrorKind};
use cembra_runtime::{CodeMemory, CodePages};
use cranelift_codegen::ir::Signature;
use cranelift_codegen::isa::OwnedTargetIsa;
use cranelift_jit::{BranchProtection, JITBuilder, JITMemoryKind, JITMemoryProvider, JITModule};
use cranelift_module::{Module, ModuleError, ModuleResult};
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

/// The pages once they are executable.
type Published = Arc<Mutex<Option<Arc<CodePages>>>>;

/// Hands the module one piece of memory and keeps it when the module goes.
struct Provider {
    memory: Option<CodeMemory>,
    is_given: bool,
    published: Published,
}

impl JITMemoryProvider for Provider {
    fn allocate(&mut self, size: usize, align: u64, kind: JITMemoryKind) -> io::Result<*mut u8> {
        // A function without relocations needs one piece of code and no data; pages are aligned beyond any function.
        let fits = !self.is_given && align <= 4096 && matches!(kind, JITMemoryKind::Executable);
        self.is_given = true;
        let memory = self.memory.as_mut().filter(|memory| fits && size <= memory.size());
        memory.map(CodeMemory::as_mut_ptr).ok_or_else(|| io::Error::from(io::ErrorKind::Unsupported))
    }

    unsafe fn free_memory(&mut self) {
        self.memory = None;
    }

    fn finalize(&mut self, _: BranchProtection) -> ModuleResult<()> {
        if let Some(memory) = self.memory.take() {
            let pages = memory.publish().map_err(|e| ModuleError::Allocation { err: io::Error::other(e) })?;
            *self.published.lock().unwrap_or_else(PoisonError::into_inner) = Some(pages);
        }
        Ok(())
    }
}

/// Puts code into executable memory; its first byte is the first byte of the pages.
pub(crate) fn publish(
    isa: &OwnedTargetIsa,
    signature: &Signature,
    alignment: u64,
    code: &[u8],
) -> Result<Arc<CodePages>, Error> {
    let memory = |e: ModuleError| Error::new(ErrorKind::Memory, format!("no memory for machine code: {e}"));
    // Asked for here, not when the module does, so that the reason for a refusal is passed on in its own words.
    let own = CodeMemory::allocate(code.len()).map_err(|e| Error::new(ErrorKind::Memory, e.to_string()))?;
    let published = Published::default();
    let mut builder = JITBuilder::with_isa(isa.clone(), cranelift_module::default_libcall_names());
    builder.memory_provider(Box::new(Provider { memory: Some(own), is_given: false, published: published.clone() }));
    let mut module = JITModule::new(builder);
    let function = module.declare_anonymous_function(signature).map_err(memory)?;
    module.define_function_bytes(function, alignment, code, &[]).map_err(memory)?;
    module.finalize_definitions().map_err(memory)?;
    let pages = published.lock().unwrap_or_else(PoisonError::into_inner).take();
    pages.ok_or_else(|| Error::new(ErrorKind::Memory, "the module published no code"))
}
