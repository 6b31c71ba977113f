//! The host's instruction set with the settings we compile with, built once per process and tier.

use crate::error::{Error, ErrorKind};
use cranelift_codegen::isa::{OwnedTargetIsa, TargetIsa};
use cranelift_codegen::settings::{self, Configurable};
use std::sync::OnceLock;

/// How much goes into machine code. All tiers give the same bits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Tier {
    /// Code at once: registers are given out in one pass, mathematical functions are called.
    Quick,
    /// The fastest code: mathematical functions are part of it.
    #[default]
    Optimised,
}

/// The settings of all tiers: no relocations, little stack at a time, checked in debug builds.
const SETTINGS: &[(&str, &str)] = &[
    ("is_pic", "false"),
    ("use_colocated_libcalls", "false"),
    ("unwind_info", "false"),
    ("preserve_frame_pointers", "true"),
    ("enable_probestack", "true"),
    ("probestack_strategy", "inline"),
    ("enable_verifier", if cfg!(debug_assertions) { "true" } else { "false" }),
];

/// What functions are compiled for: an instruction set and how much is done.
#[derive(Clone)]
pub(crate) struct Target {
    /// For most functions. The rules and tapes leave little to optimise: on straight lines and branches the code generator's
    /// optimisation takes a quarter of the time and gains nothing.
    pub(crate) plain: OwnedTargetIsa,
    /// For functions that gain from it, in the tier that cares.
    pub(crate) thorough: Option<OwnedTargetIsa>,
}

/// This machine, with the settings of a tier.
pub(crate) fn host(tier: Tier) -> Result<Target, Error> {
    static HOSTS: [OnceLock<Result<Target, Error>>; 2] = [OnceLock::new(), OnceLock::new()];
    let target = || match tier {
        Tier::Quick => {
            let plain = build(&[("opt_level", "none"), ("regalloc_algorithm", "single_pass")])?;
            Ok(Target { plain, thorough: None })
        }
        Tier::Optimised => {
            let thorough = Some(build(&[("opt_level", "speed")])?);
            Ok(Target { plain: build(&[("opt_level", "none")])?, thorough })
        }
    };
    HOSTS[tier as usize].get_or_init(target).clone()
}

fn build(more: &[(&str, &str)]) -> Result<OwnedTargetIsa, Error> {
    // Elsewhere, memory that was written needs its instruction cache flushed before it runs.
    if !cfg!(target_arch = "x86_64") {
        return Err(Error::new(ErrorKind::Unsupported, "native code runs on x86-64 only so far"));
    }
    let generator =
        |what: &dyn std::fmt::Display| Error::new(ErrorKind::Unsupported, format!("no native code here: {what}"));
    let mut flags = settings::builder();
    for (name, value) in SETTINGS.iter().chain(more) {
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
