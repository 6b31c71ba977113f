//! What instructions there are: what players ask of the machine that they make code for.

use cranelift_codegen::isa::{CallConv, TargetIsa};
use cranelift_codegen::settings::RegallocAlgorithm;
use target_lexicon::Architecture;

/// True where instructions take the time of compiling, and not what waits in registers: they are given out in one pass.
pub(crate) fn is_quick(isa: &dyn TargetIsa) -> bool {
    isa.flags().regalloc_algorithm() == RegallocAlgorithm::SinglePass
}

/// True for an instruction set whose code the code generator can make with vectors of 128 bits.
pub(crate) fn has_vectors(isa: &dyn TargetIsa) -> bool {
    matches!(isa.triple().architecture, Architecture::X86_64 | Architecture::Aarch64(_))
}

/// True for the instruction set whose floats cannot be selected as they are, and whose comparisons have a preferred order.
pub(crate) fn is_x86_64(isa: &dyn TargetIsa) -> bool {
    isa.triple().architecture == Architecture::X86_64
}

/// True if the machine has calls that leave all registers as they were.
pub(crate) fn can_preserve_registers(isa: &dyn TargetIsa) -> bool {
    is_x86_64(isa) && isa.default_call_conv() == CallConv::SystemV
}
