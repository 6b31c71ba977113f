//! Which backend runs a plan, and falling back from one to the other in the open.

use crate::metrics::{Event, Watch};
use crate::options::Started;
use crate::spans::StageSpan;
use crate::tiers::Tiered;
use crate::{Error, profiling};
use cembra_interp::Interpreted;
use cembra_native::{CodeCache, Compiled, Tier};
use cembra_plan::{Binding, Function, Plan};
use cembra_value::{Budget, Code, Diagnostic};
use std::time::Instant;

/// A way to run a plan. All give the same bits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Backend {
    /// The interpreter.
    Interpreter,
    /// Machine code; an error where it cannot be had.
    Native,
    /// Machine code where it can be had, else the interpreter; `Executor::fallback` tells why.
    #[default]
    Auto,
    /// The interpreter at once; machine code as soon as threads in the background have compiled it, for the calls that come
    /// then. [`Tiering`](crate::Tiering) says when. Where it cannot be had the interpreter goes on, and `Executor::fallback`
    /// tells why.
    Tiered,
}

impl Backend {
    /// The name used on the command line and in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Backend::Interpreter => "interpreter",
            Backend::Native => "native",
            Backend::Auto => "auto",
            Backend::Tiered => "tiered",
        }
    }
}

/// A plan made runnable, and by what.
#[derive(Debug)]
pub(crate) enum Runnable {
    Interpreted(Interpreted),
    Native(Compiled, Tier),
    Tiered(Box<Tiered>),
}

impl Runnable {
    /// What a call would run now.
    pub(crate) fn function(&self) -> &dyn Function {
        match self {
            Runnable::Interpreted(function) => function,
            Runnable::Native(function, _) => function,
            Runnable::Tiered(tiered) => tiered.function(),
        }
    }

    /// The machine code that a call would run now.
    pub(crate) fn compiled(&self) -> Option<&Compiled> {
        match self {
            Runnable::Interpreted(_) => None,
            Runnable::Native(compiled, _) => Some(compiled),
            Runnable::Tiered(tiered) => tiered.compiled(),
        }
    }

    /// The tier of the machine code that a call would run now.
    pub(crate) fn tier(&self) -> Option<Tier> {
        match self {
            Runnable::Interpreted(_) => None,
            Runnable::Native(_, tier) => Some(*tier),
            Runnable::Tiered(tiered) => tiered.tier(),
        }
    }

    /// Bytes of memory besides itself.
    pub(crate) fn memory_bytes(&self) -> usize {
        match self {
            Runnable::Tiered(tiered) => size_of::<Tiered>() + tiered.memory_bytes(),
            fixed => fixed.function().memory_bytes(),
        }
    }
}

/// Makes a plan runnable; if the second value is there, the interpreter had to stand in.
pub(crate) fn bind(
    options: &Started,
    plan: Plan,
    binding: Binding,
    watch: &Watch,
) -> Result<(Runnable, Option<Diagnostic>), Error> {
    options.budget().check_time()?;
    let interpret = || cembra_interp::bind(&plan, &binding);
    match options.backend {
        Backend::Interpreter => return Ok((Runnable::Interpreted(interpret()), None)),
        Backend::Tiered => {
            let tiered = Tiered::new(interpret(), plan, binding, options);
            return Ok((Runnable::Tiered(Box::new(tiered)), None));
        }
        Backend::Native | Backend::Auto => {}
    }
    match compile(&plan, &binding, options.tier, options.budget(), options.code_cache.as_ref(), watch) {
        Ok(compiled) => Ok((Runnable::Native(compiled, options.tier), None)),
        Err(reason) => {
            options.budget().check_time()?;
            match options.backend {
                Backend::Native => Err(Error::from(reason)),
                _ => Ok((Runnable::Interpreted(interpret()), Some(reason))),
            }
        }
    }
}

/// Compiles a plan to machine code, or takes it from a cache, and tells whoever watches.
pub(crate) fn compile(
    plan: &Plan,
    binding: &Binding,
    tier: Tier,
    budget: &Budget,
    cache: Option<&CodeCache>,
    watch: &Watch,
) -> Result<Compiled, Diagnostic> {
    let (model, steps) = (watch.model(), plan.step_count());
    let span = StageSpan::compile(model, steps, profiling::tier_name(tier));
    let started = Instant::now();
    let compiled = match cache {
        Some(cache) => cache.compile(plan, binding, tier, budget),
        None => cembra_native::compile(plan, binding, tier, budget),
    };
    let compiled = compiled.map_err(|error| refusal(&error))?;
    let (code_bytes, time) = (compiled.pages().size(), started.elapsed());
    span.made("code_bytes", code_bytes);
    profiling::write(model, tier, compiled.pages(), &|reason| watch.record(&Event::ProfileFailed { reason }));
    if compiled.was_cached() {
        watch.record(&Event::CacheHit { tier, steps, code_bytes, time });
    } else {
        if cache.is_some() {
            watch.record(&Event::CacheMiss);
        }
        watch.record(&Event::Compiled { tier, steps, code_bytes, time });
    }
    Ok(compiled)
}

/// Why there is no machine code: a limit, or what the machine or the code generator cannot do.
pub(crate) fn refusal(error: &cembra_native::Error) -> Diagnostic {
    match error.limit() {
        Some(exceeded) => exceeded.clone(),
        None => Diagnostic::new(Code::Native, error.to_string()).hint("use the interpreter, or `Backend::Auto`"),
    }
}
