//! The only file in which the engine compiles plans to machine code, for one row or for many. Its functions also open the tracing span, measure the
//! time, write the profiles and report the event. Other modules choose which code generator compiles many rows.

use crate::code::profiling;
use crate::code::spans::StageSpan;
use crate::options::choice::RowPlayer;
use crate::options::metrics::{Event, EventReporter};
use cembra_native::{CodeCache, Compiled, Tier};
use cembra_plan::{Binding, Plan};
use cembra_runtime::CodePages;
use cembra_value::{Budget, Code, Diagnostic};
use std::time::Instant;

/// Compiles a plan to machine code for one row, or takes the code from `cache`, and reports the event to the metrics.
pub(crate) fn compile(
    plan: &Plan,
    binding: &Binding,
    tier: Tier,
    budget: &Budget,
    cache: Option<&CodeCache>,
    watch: &EventReporter,
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
    profiling::write(model, profiling::tier_name(tier), compiled.pages(), &|reason| {
        watch.record(&Event::ProfileFailed { reason });
    });
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

/// Compiles a plan for many rows with `make`, and reports the event to the metrics. `list` must call the given function with the memory pages of the
/// machine code.
pub(crate) fn compile_rows<F>(
    plan: &Plan,
    player: RowPlayer,
    watch: &EventReporter,
    make: impl FnOnce() -> Result<F, Diagnostic>,
    list: impl FnOnce(&F, &mut dyn FnMut(&CodePages)),
) -> Result<F, Diagnostic> {
    let (model, steps) = (watch.model(), plan.step_count());
    let span = StageSpan::compile(model, steps, player.name());
    let started = Instant::now();
    let made = make()?;
    let (mut code_bytes, time) = (0, started.elapsed());
    list(&made, &mut |pages| {
        code_bytes += pages.size();
        profiling::write(model, player.name(), pages, &|reason| watch.record(&Event::ProfileFailed { reason }));
    });
    span.made("code_bytes", code_bytes);
    watch.record(&Event::CompiledRows { player, steps, code_bytes, time });
    Ok(made)
}

/// Converts an error of the code generator to the reason why there is no machine code: a limit, or something that the machine or the code generator
/// cannot do.
pub fn refusal(error: &cembra_native::Error) -> Diagnostic {
    match error.limit() {
        Some(exceeded) => exceeded.clone(),
        None => {
            Diagnostic::new(Code::Native, error.to_string()).hint("use the backend `interpreter`, or the default one")
        }
    }
}
