//! The instruction sets and settings that code is compiled for. The settings for the host are built once per process and tier (effort of
//! compilation). Object files can have other targets.

use crate::error::{Error, ErrorKind};
use cranelift_codegen::isa::{self, LookupError, OwnedTargetIsa};
use cranelift_codegen::settings::{self, Configurable};
use std::str::FromStr;
use std::sync::OnceLock;
use target_lexicon::{PointerWidth, Triple};

/// The target of an object file: a platform, and the instruction set extensions that code may use.
///
/// The default is this machine's platform with the baseline of its architecture, so the object file runs on every machine
/// of that platform. Extensions change no bit of a result.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Target {
    triple: Option<String>,
    features: Vec<String>,
    native: bool,
}

impl Target {
    /// Returns this machine's platform, with the baseline of its architecture.
    #[must_use]
    pub fn host() -> Self {
        Target::default()
    }

    /// Returns the target of a platform triple, such as `aarch64-unknown-linux-gnu`, with the baseline of its architecture.
    #[must_use]
    pub fn triple(triple: impl Into<String>) -> Self {
        Target { triple: Some(triple.into()), ..Target::default() }
    }

    /// Allows the code to use an instruction set extension or an architecture level, by the code generator's name: `has_fma`, `x86-64-v3`, `has_lse`.
    #[must_use]
    pub fn feature(mut self, name: impl Into<String>) -> Self {
        self.features.push(name.into());
        self
    }

    /// Allows the code to use every instruction set extension of this machine. The object file then needs a machine that has all of them.
    #[must_use]
    pub fn native_features(mut self) -> Self {
        self.native = true;
        self
    }
}

/// The effort that is spent on generating machine code. Code of each tier computes the same bits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[non_exhaustive]
pub enum Tier {
    /// Compiles fast: registers are allocated in one pass, and mathematical functions are called.
    Quick,
    /// Makes fast code: mathematical functions are inlined.
    #[default]
    Optimised,
}

/// The settings of all tiers: no relocations, stack probes inline, verification in debug builds.
const SETTINGS: &[(&str, &str)] = &[
    ("is_pic", "false"),
    ("use_colocated_libcalls", "false"),
    ("unwind_info", "false"),
    ("preserve_frame_pointers", "true"),
    ("enable_probestack", "true"),
    ("probestack_strategy", "inline"),
    ("enable_verifier", if cfg!(debug_assertions) { "true" } else { "false" }),
];

/// The code generator's settings for a machine and a tier.
#[derive(Clone)]
pub(crate) struct Codegen {
    /// The settings for most functions, without the code generator's optimisation. For functions of only straight-line code and branches,
    /// optimisation would take a quarter of the compile time and gain nothing.
    pub(crate) fast: OwnedTargetIsa,
    /// The settings for functions that gain from the code generator's optimisation; `None` in the tier `Quick`.
    pub(crate) optimising: Option<OwnedTargetIsa>,
}

/// Returns the code generator's settings for this machine and the tier `tier`.
pub(crate) fn host(tier: Tier) -> Result<Codegen, Error> {
    static HOSTS: [OnceLock<Result<Codegen, Error>>; 2] = [OnceLock::new(), OnceLock::new()];
    let codegen = || {
        // Other processors would need an instruction cache flush before new code runs.
        if !cfg!(target_arch = "x86_64") {
            return Err(Error::new(ErrorKind::Unsupported, "native code is supported on x86-64 only"));
        }
        finish(&cranelift_native::builder().map_err(|e| no_code("here", &e))?, tier)
    };
    HOSTS[tier as usize].get_or_init(codegen).clone()
}

/// Returns the code generator's settings for an object file's target and the tier `tier`.
pub(crate) fn of(target: &Target, tier: Tier) -> Result<Codegen, Error> {
    let name = target.triple.as_deref().unwrap_or("this machine");
    let for_name = format!("for {name}");
    let triple = match &target.triple {
        Some(text) => Triple::from_str(text).map_err(|e| no_code(&for_name, &e))?,
        None => Triple::host(),
    };
    if triple.pointer_width() != Ok(PointerWidth::U64) {
        return Err(no_code(&for_name, &"pointers must have 64 bits"));
    }
    let foreign = triple.architecture != Triple::host().architecture;
    let mut builder = isa::lookup(triple).map_err(|e| match e {
        LookupError::SupportDisabled => {
            no_code(&for_name, &"build cembra with the feature `cross-targets` to compile for other machines")
        }
        LookupError::Unsupported => no_code(&for_name, &"the code generator does not know the machine"),
    })?;
    if target.native {
        if foreign {
            return Err(no_code(&for_name, &"`native` means this machine, which has another architecture"));
        }
        cranelift_native::infer_native_flags(&mut builder).map_err(|e| no_code(&for_name, &e))?;
    }
    for feature in &target.features {
        builder.enable(feature).map_err(|e| no_code(&for_name, &format!("`{feature}`: {e}")))?;
    }
    finish(&builder, tier)
}

fn no_code(place: &str, what: &dyn std::fmt::Display) -> Error {
    Error::new(ErrorKind::Unsupported, format!("no native code {place}: {what}"))
}

fn finish(builder: &isa::Builder, tier: Tier) -> Result<Codegen, Error> {
    let with = |more: &[(&str, &str)]| {
        let mut flags = settings::builder();
        for (name, value) in SETTINGS.iter().chain(more) {
            flags.set(name, value).map_err(|e| no_code("here", &e))?;
        }
        builder.finish(settings::Flags::new(flags)).map_err(|e| no_code("here", &e))
    };
    Ok(match tier {
        Tier::Quick => {
            Codegen { fast: with(&[("opt_level", "none"), ("regalloc_algorithm", "single_pass")])?, optimising: None }
        }
        Tier::Optimised => {
            Codegen { fast: with(&[("opt_level", "none")])?, optimising: Some(with(&[("opt_level", "speed")])?) }
        }
    })
}
