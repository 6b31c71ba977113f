//! Machine code of a plan, compiled or taken from a cache, and what whoever watches is told of it.

use crate::metrics::{Event, Watch};
use crate::profiling;
use crate::spans::StageSpan;
use cembra_native::{CodeCache, Compiled, Tier};
use cembra_plan::{Binding, Plan};
use cembra_value::{Budget, Code, Diagnostic};
use std::time::Instant;

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
