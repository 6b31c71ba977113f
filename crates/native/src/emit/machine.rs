//! Properties of the target machine on which code generation depends.

use cranelift_codegen::isa::{CallConv, TargetIsa};
use cranelift_codegen::settings::RegallocAlgorithm;
use target_lexicon::Architecture;

/// Returns true in the tier `Quick`, where registers are allocated in one pass. In this tier, the number of
/// instructions determines the compile time, not the number of values that are live in registers.
pub(crate) fn is_quick(isa: &dyn TargetIsa) -> bool {
    isa.flags().regalloc_algorithm() == RegallocAlgorithm::SinglePass
}

/// Returns true if the code generator supports 128-bit vectors for this architecture.
pub(crate) fn has_vectors(isa: &dyn TargetIsa) -> bool {
    matches!(isa.triple().architecture, Architecture::X86_64 | Architecture::Aarch64(_))
}

/// Returns true if the target is x86-64, which has no instruction that selects one of two floats, and prefers a certain
/// order of the operands of comparisons.
pub(crate) fn is_x86_64(isa: &dyn TargetIsa) -> bool {
    isa.triple().architecture == Architecture::X86_64
}

/// Returns true if the target has a calling convention in which the callee preserves all registers.
pub(crate) fn can_preserve_registers(isa: &dyn TargetIsa) -> bool {
    is_x86_64(isa) && isa.default_call_conv() == CallConv::SystemV
}
