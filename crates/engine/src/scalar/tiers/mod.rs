//! The tiered backend: the interpreter runs a model from the first call on, threads in the background compile it, and calls run the machine code as
//! soon as it is compiled. All tiers give the same bits.

mod ladder;
mod queue;
mod sync;

use crate::code::machine_code::compile;
use crate::options::choice::Tiering;
use crate::options::compile_options::TimedOptions;
use crate::options::metrics::{Event, EventReporter};
use cembra_interp::Interpreted;
use cembra_native::{CodeCache, Compiled, Tier};
use cembra_plan::{Binding, Function, Plan};
use cembra_value::{Budget, Code, Diagnostic, Limits, words_of_panic};
use ladder::TierList;
use queue::{Job, Queue};
use std::num::NonZero;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, LazyLock};

/// The most steps of a model that is compiled in the optimised tier straight away. That takes some milliseconds in the background, which is too
/// little to be worth a quick tier first.
const SMALL: usize = 500;

/// The tiers in which a model with `steps` steps is compiled, one after the other.
fn route(steps: usize, highest: Tier, every_tier: bool) -> &'static [Tier] {
    match highest {
        Tier::Quick => &[Tier::Quick],
        _ if steps <= SMALL && !every_tier => &[Tier::Optimised],
        _ => &[Tier::Quick, Tier::Optimised],
    }
}

/// The rung of a tier: the position of its function in the ladder of compiled functions, counted from 1.
const fn rung(tier: Tier) -> usize {
    match tier {
        Tier::Quick => 1,
        _ => 2,
    }
}

/// The tier whose function has the position `rung` in the ladder of compiled functions; `None` for 0, the interpreter.
const fn tier_on(rung: usize) -> Option<Tier> {
    match rung {
        0 => None,
        1 => Some(Tier::Quick),
        _ => Some(Tier::Optimised),
    }
}

/// The most models that may wait to be compiled. A model that finds the queue full stays interpreted and asks again later.
const MOST_WAITING: usize = 4096;

/// The fewest further calls after which a model that found the queue full asks again.
const AGAIN: u32 = 1000;

/// The queue and the threads of the process that compile in the background: half as many threads as processors, at least one and at most four.
static QUEUE: LazyLock<Arc<Queue<dyn TieredModel>>> = LazyLock::new(|| {
    let processors = std::thread::available_parallelism().map_or(1, NonZero::get);
    Arc::new(Queue::new(MOST_WAITING, (processors / 2).clamp(1, 4)))
});

/// The interface of a model whose tiers are compiled in the background: its tiers, its metrics, and its reaction if there is no machine code.
pub(crate) trait TieredModel: Send + Sync {
    /// The model's tiers; `None` if its backend is not the tiered one.
    fn tiered(&self) -> Option<&Tiered>;

    /// The metrics to which events of the model are reported.
    fn watch(&self) -> &EventReporter;

    /// Records and reports the reason why the model has no machine code.
    fn fall_back(&self, reason: Diagnostic);
}

/// A plan that the interpreter runs until the plan is compiled in the background, with the compiled code of each tier so far.
#[derive(Debug)]
pub(crate) struct Tiered {
    interpreted: Interpreted,
    ladder: TierList<Compiled>,
    tiering: Tiering,
    highest: Tier,
    /// The plan that is compiled.
    plan: Plan,
    binding: Binding,
    limits: Limits,
    /// The cache that is searched before code is compiled.
    code_cache: Option<CodeCache>,
}

impl Tiered {
    pub(crate) fn new(interpreted: Interpreted, mut plan: Plan, binding: Binding, options: &TimedOptions) -> Self {
        plan.shrink_to_fit();
        let (tiering, highest, limits) = (options.tiering, options.tier, *options.budget().limits());
        let (ladder, code_cache) = (TierList::new(tiering.calls), options.code_cache.clone());
        Tiered { interpreted, ladder, tiering, highest, plan, binding, limits, code_cache }
    }

    /// Returns the function that evaluates the model at present: the compiled code of the highest tier so far, or the
    /// interpreter if there is none.
    #[inline]
    pub(crate) fn function(&self) -> &dyn Function {
        match self.ladder.chosen() {
            Some((_, compiled)) => compiled,
            None => &self.interpreted,
        }
    }

    /// Returns the function that the next call of `model` must run. Counts the call, which may request compiling.
    #[inline]
    pub(crate) fn function_for_call<'t, M: TieredModel + 'static>(&'t self, model: &Arc<M>) -> &'t dyn Function {
        match self.ladder.chosen() {
            Some((_, compiled)) => compiled,
            None => {
                if self.ladder.count_call() {
                    self.request(model);
                }
                &self.interpreted
            }
        }
    }

    /// Returns the machine code that evaluates the model at present; `None` if the interpreter evaluates it.
    pub(crate) fn compiled(&self) -> Option<&Compiled> {
        self.ladder.chosen().map(|(_, compiled)| compiled)
    }

    /// Returns the tier of the machine code that evaluates the model at present; `None` if the interpreter evaluates
    /// it.
    pub(crate) fn tier(&self) -> Option<Tier> {
        self.ladder.chosen().and_then(|(rung, _)| tier_on(rung))
    }

    /// The bytes of memory that the plan and all compiled tiers take, besides this struct itself.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.interpreted.memory_bytes()
            + self.plan.memory_bytes()
            + self.ladder.functions().map(Function::memory_bytes).sum::<usize>()
    }

    /// Requests that `model` be compiled, if that is due before its first call.
    pub(crate) fn begin<M: TieredModel + 'static>(&self, model: &Arc<M>) {
        if self.tiering.calls == 0 {
            self.request(model);
        }
    }

    /// Queues the model for compilation. If the queue is full, the model asks again after further calls.
    #[cold]
    fn request<M: TieredModel + 'static>(&self, model: &Arc<M>) {
        let again = AGAIN.max(self.tiering.calls);
        let waiting: Arc<dyn TieredModel> = model.clone();
        if !self.ladder.request(again, || QUEUE.push(Arc::downgrade(&waiting))) {
            model.watch().record(&Event::QueueFull);
        }
    }

    /// Compiles `model` in all its tiers, and returns when all are compiled. The calling thread compiles, unless another thread has begun; then it
    /// waits.
    pub(crate) fn finish(&self, model: &dyn TieredModel) {
        self.climb(model);
        self.ladder.wait();
    }

    /// Returns true if no further tier of the model will be compiled.
    pub(crate) fn is_finished(&self) -> bool {
        self.ladder.is_finished()
    }

    /// Compiles the model in all its tiers, unless another thread has begun.
    fn climb(&self, model: &dyn TieredModel) {
        if !self.ladder.start() {
            return;
        }
        // Threads that wait must go on, even if compiling panics.
        let finish = FinishGuard(&self.ladder);
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            let budget = Budget::start(self.limits);
            for tier in route(self.plan.step_count(), self.highest, self.tiering.every_tier) {
                let cache = self.code_cache.as_ref();
                let compiled = compile(&self.plan, &self.binding, *tier, &budget, cache, model.watch())?;
                self.ladder.add(rung(*tier), compiled);
                if !self.tiering.by_hand {
                    self.choose_next(model);
                }
            }
            Ok(())
        }));
        let panicked = |words: &str| {
            Diagnostic::new(Code::Native, format!("compiling the model in the background panicked: {words}"))
        };
        if let Err(reason) = outcome.unwrap_or_else(|payload| Err(panicked(&words_of_panic(payload)))) {
            model.fall_back(reason);
        }
        drop(finish);
    }

    /// Lets calls of `model` run the code of the next tier, if it is compiled. Returns the tier that calls run now; `None` for the interpreter.
    pub(crate) fn choose_next(&self, model: &dyn TieredModel) -> Option<Tier> {
        let (rung, is_new) = self.ladder.choose_next();
        let tier = tier_on(rung);
        if let (true, Some(tier)) = (is_new, tier) {
            model.watch().record(&Event::TierSwapped { tier });
        }
        tier
    }
}

/// Records on drop that no further tiers will be compiled, also if compiling panics.
struct FinishGuard<'l>(&'l TierList<Compiled>);

impl Drop for FinishGuard<'_> {
    fn drop(&mut self) {
        self.0.finish();
    }
}

impl Job for dyn TieredModel {
    fn run(&self) {
        if let Some(tiered) = self.tiered() {
            tiered.climb(self);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_models_are_optimised_at_once_and_large_ones_in_two_tiers() {
        assert_eq!(route(SMALL, Tier::Optimised, false), [Tier::Optimised]);
        assert_eq!(route(SMALL + 1, Tier::Optimised, false), [Tier::Quick, Tier::Optimised]);
        assert_eq!(route(1, Tier::Quick, false), [Tier::Quick]);
    }

    #[test]
    fn every_tier_is_climbed_if_asked_for_but_none_above_the_highest() {
        assert_eq!(route(1, Tier::Optimised, true), [Tier::Quick, Tier::Optimised]);
        assert_eq!(route(1, Tier::Quick, true), [Tier::Quick]);
    }

    #[test]
    fn a_rung_is_a_tier() {
        for tier in [Tier::Quick, Tier::Optimised] {
            assert_eq!(tier_on(rung(tier)), Some(tier));
        }
    }
}
