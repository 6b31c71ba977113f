//! The host's instruction set and the settings we compile with, built once per process.

use crate::error::{Error, ErrorKind};
use cranelift_codegen::isa::{OwnedTargetIsa, TargetIsa};
use cranelift_codegen::settings::{self, Configurable};
use std::sync::OnceLock;

/// The settings: as fast as the code gets, no relocations, checked in debug builds.
const SETTINGS: &[(&str, &str)] = &[
    ("opt_level", "speed"),
    ("is_pic", "false"),
    ("use_colocated_libcalls", "false"),
    ("unwind_info", "false"),
    ("preserve_frame_pointers", "true"),
    ("enable_probestack", "true"),
    ("probestack_strategy", "inline"),
    ("enable_verifier", if cfg!(debug_assertions) { "true" } else { "false" }),
];

/// The instruction set of this machine.
pub(crate) fn host() -> Result<OwnedTargetIsa, Error> {
    static HOST: OnceLock<Result<OwnedTargetIsa, Error>> = OnceLock::new();
    HOST.get_or_init(build).clone()
}

fn build() -> Result<OwnedTargetIsa, Error> {
    // Elsewhere, memory that was written needs its instruction cache flushed before it runs.
    if !cfg!(target_arch = "x86_64") {
        return Err(Error::new(ErrorKind::Unsupported, "native code runs on x86-64 only so far"));
    }
    let generator =
        |what: &dyn std::fmt::Display| Error::new(ErrorKind::Unsupported, format!("no native code here: {what}"));
    let mut flags = settings::builder();
    for (name, value) in SETTINGS {
        flags.set(name, value).map_err(|e| generator(&e))?;
    }
    let builder = cranelift_native::builder().map_err(|e| generator(&e))?;
    builder.finish(settings::Flags::new(flags)).map_err(|e| generator(&e))
}

/// True for an instruction set whose code the code generator can make with vectors of 128 bits.
pub(crate) fn has_vectors(isa: &dyn TargetIsa) -> bool {
    use target_lexicon::Architecture::{Aarch64, X86_64};
    matches!(isa.triple().architecture, X86_64 | Aarch64(_))
}
