//! Where machine code goes: one Cranelift JIT module a function, whose memory is ours. The module is dropped as soon as
//! the code is published; the pages live on with the function.

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
    published: Published,
}

impl JITMemoryProvider for Provider {
    fn allocate(&mut self, size: usize, align: u64, kind: JITMemoryKind) -> io::Result<*mut u8> {
        // A function without relocations needs one piece of code and no data; pages are aligned beyond any function.
        if self.memory.is_some() || align > 4096 || !matches!(kind, JITMemoryKind::Executable) {
            return Err(io::Error::from(io::ErrorKind::Unsupported));
        }
        let memory = self.memory.insert(CodeMemory::allocate(size).map_err(io::Error::other)?);
        Ok(memory.as_mut_ptr())
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
    let published = Published::default();
    let mut builder = JITBuilder::with_isa(isa.clone(), cranelift_module::default_libcall_names());
    builder.memory_provider(Box::new(Provider { memory: None, published: published.clone() }));
    let mut module = JITModule::new(builder);
    let function = module.declare_anonymous_function(signature).map_err(memory)?;
    module.define_function_bytes(function, alignment, code, &[]).map_err(memory)?;
    module.finalize_definitions().map_err(memory)?;
    let pages = published.lock().unwrap_or_else(PoisonError::into_inner).take();
    pages.ok_or_else(|| Error::new(ErrorKind::Memory, "the module published no code"))
}
