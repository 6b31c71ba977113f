//! The tiered backend: the interpreter runs a model at once, threads in the background compile it, and calls take the machine
//! code as soon as it is there. Every tier gives the same bits.

mod ladder;
mod queue;
mod sync;

use crate::backend::compile;
use crate::executor::{Executor, Inner};
use crate::metrics::Event;
use crate::options::Started;
use cembra_interp::Interpreted;
use cembra_native::{CodeCache, Compiled, Tier};
use cembra_plan::{Binding, Function, Plan};
use cembra_value::{Budget, Code, Diagnostic, Limits};
use ladder::Ladder;
use queue::{Job, Queue};
use std::num::NonZero;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, LazyLock};

/// The steps up to which a model is optimised straight away. That takes some milliseconds in the background: too little to be
/// worth compiling twice for.
const SMALL: usize = 500;

/// The tiers that a model of so many steps is compiled in, one after the other. This is the whole rule.
fn route(steps: usize, highest: Tier, every_tier: bool) -> &'static [Tier] {
    match highest {
        Tier::Quick => &[Tier::Quick],
        Tier::Optimised if steps <= SMALL && !every_tier => &[Tier::Optimised],
        Tier::Optimised => &[Tier::Quick, Tier::Optimised],
    }
}

/// The rung of a tier's function.
const fn rung(tier: Tier) -> usize {
    match tier {
        Tier::Quick => 1,
        Tier::Optimised => 2,
    }
}

/// The tier on a rung; none on the ground, where the interpreter is.
const fn tier_on(rung: usize) -> Option<Tier> {
    match rung {
        0 => None,
        1 => Some(Tier::Quick),
        _ => Some(Tier::Optimised),
    }
}

/// How many models may wait to be compiled. Those that find the queue full stay interpreted and ask again later.
const MOST_WAITING: usize = 4096;

/// After how many further calls a model asks again that found the queue full.
const AGAIN: u32 = 1000;

/// The threads of the process that compile in the background: half of the processors, between one and four.
static QUEUE: LazyLock<Arc<Queue<Inner>>> = LazyLock::new(|| {
    let processors = std::thread::available_parallelism().map_or(1, NonZero::get);
    Arc::new(Queue::new(MOST_WAITING, (processors / 2).clamp(1, 4)))
});

/// When a model of [`Backend::Tiered`](crate::Backend::Tiered) is compiled, and when its calls take the machine code.
///
/// ```
/// use cembra::{Backend, Model, Options, Tier, Tiering, Value};
///
/// let options = Options::default().backend(Backend::Tiered).tiering(Tiering::default().by_hand(true));
/// let executor = Model::parse("input x: f64; exp(x)")?.compile(&options)?;
/// let mut session = executor.session();
/// let interpreted = session.evaluate(&[Value::from(1.5)])?;
///
/// // Wait for the machine code; then let calls take it, in sessions that there are too.
/// executor.finish_tiers();
/// assert_eq!(executor.tier(), None);
/// assert_eq!(executor.advance(), Some(Tier::Optimised));
/// assert_eq!(session.evaluate(&[Value::from(1.5)])?, interpreted);
/// # Ok::<(), cembra::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tiering {
    calls: u32,
    by_hand: bool,
    every_tier: bool,
}

impl Tiering {
    /// After how many calls a model is compiled if nothing is said. Interpreting so many takes about as long as compiling once,
    /// whatever the size of the model: machine code pays for itself after 800 to 3000 calls in the benchmarks' workloads. So a
    /// model that is called a few times costs no compilation, and any other about twice what it would if its calls were known.
    pub const CALLS: u32 = 1000;

    /// Compiles a model after so many calls, counted over all threads; with 0, as soon as its executor is made.
    #[must_use]
    pub const fn after_calls(mut self, calls: u32) -> Self {
        self.calls = calls;
        self
    }

    /// Leaves it to [`Executor::advance`] when calls take what was compiled. Otherwise they do as soon as it is there.
    #[must_use]
    pub const fn by_hand(mut self, by_hand: bool) -> Self {
        self.by_hand = by_hand;
        self
    }

    /// Compiles a small model in the quick tier first too, as a large one is, and not in the optimised tier straight away: so
    /// that a test of all tiers need not be one of a large model.
    #[must_use]
    pub const fn every_tier(mut self, every_tier: bool) -> Self {
        self.every_tier = every_tier;
        self
    }
}

impl Default for Tiering {
    fn default() -> Self {
        Tiering { calls: Tiering::CALLS, by_hand: false, every_tier: false }
    }
}

/// A plan that is interpreted and being compiled.
#[derive(Debug)]
pub(crate) struct Tiered {
    interpreted: Interpreted,
    ladder: Ladder<Compiled>,
    tiering: Tiering,
    highest: Tier,
    /// What machine code is made of, and within which limits.
    plan: Plan,
    binding: Binding,
    limits: Limits,
    /// Where it is looked for first.
    code_cache: Option<CodeCache>,
}

impl Tiered {
    pub(crate) fn new(interpreted: Interpreted, mut plan: Plan, binding: Binding, options: &Started) -> Self {
        plan.shrink_to_fit();
        let (tiering, highest, limits) = (options.tiering, options.tier, *options.budget().limits());
        let (ladder, code_cache) = (Ladder::new(tiering.calls), options.code_cache.clone());
        Tiered { interpreted, ladder, tiering, highest, plan, binding, limits, code_cache }
    }

    /// The function that calls take now.
    #[inline]
    pub(crate) fn function(&self) -> &dyn Function {
        match self.ladder.chosen() {
            Some((_, compiled)) => compiled,
            None => &self.interpreted,
        }
    }

    /// The function for a call of a model, which is counted.
    #[inline]
    pub(crate) fn function_for_call<'t>(&'t self, model: &Arc<Inner>) -> &'t dyn Function {
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

    /// The machine code that calls take now.
    pub(crate) fn compiled(&self) -> Option<&Compiled> {
        self.ladder.chosen().map(|(_, compiled)| compiled)
    }

    pub(crate) fn tier(&self) -> Option<Tier> {
        self.ladder.chosen().and_then(|(rung, _)| tier_on(rung))
    }

    /// Bytes of memory of all tiers that there are, and of what they are made of, besides itself.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.interpreted.memory_bytes()
            + self.plan.memory_bytes()
            + self.ladder.functions().map(Function::memory_bytes).sum::<usize>()
    }

    /// Asks for the model to be compiled if that is due before its first call.
    pub(crate) fn begin(&self, model: &Arc<Inner>) {
        if self.tiering.calls == 0 {
            self.request(model);
        }
    }

    #[cold]
    fn request(&self, model: &Arc<Inner>) {
        let again = AGAIN.max(self.tiering.calls);
        if !self.ladder.request(again, || QUEUE.push(Arc::downgrade(model))) {
            model.watch.record(&Event::QueueFull);
        }
    }

    /// Compiles the model in its tiers, unless that was begun.
    fn climb(&self, model: &Inner) {
        if !self.ladder.start() {
            return;
        }
        // Whoever waits goes on, whatever happens.
        let finish = Finish(&self.ladder);
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            let budget = Budget::start(self.limits);
            for tier in route(self.plan.step_count(), self.highest, self.tiering.every_tier) {
                let cache = self.code_cache.as_ref();
                let compiled = compile(&self.plan, &self.binding, *tier, &budget, cache, &model.watch)?;
                self.ladder.add(rung(*tier), compiled);
                if !self.tiering.by_hand {
                    self.choose_next(model);
                }
            }
            Ok(())
        }));
        let panicked = || Diagnostic::new(Code::Native, "compiling the model in the background panicked");
        if let Err(reason) = outcome.unwrap_or_else(|_| Err(panicked())) {
            model.fall_back(reason);
        }
        drop(finish);
    }

    fn choose_next(&self, model: &Inner) -> Option<Tier> {
        let (rung, is_new) = self.ladder.choose_next();
        let tier = tier_on(rung);
        if let (true, Some(tier)) = (is_new, tier) {
            model.watch.record(&Event::TierSwapped { tier });
        }
        tier
    }
}

/// Says that there will be no further tiers, also if compiling panics.
struct Finish<'l>(&'l Ladder<Compiled>);

impl Drop for Finish<'_> {
    fn drop(&mut self) {
        self.0.finish();
    }
}

impl Job for Inner {
    fn run(&self) {
        if let Some(tiered) = self.tiered() {
            tiered.climb(self);
        }
    }
}

impl Executor {
    /// The tier of the machine code that calls take now; none if the interpreter runs.
    #[must_use]
    pub fn tier(&self) -> Option<Tier> {
        self.inner().tier()
    }

    /// Compiles a model of `Backend::Tiered` in all its tiers, however often it was called, and returns when that is done: it
    /// compiles in this thread if no other has begun, else waits for that one. Unless calls take new code
    /// [by hand](Tiering::by_hand), they do from now on. If there is no machine code to be had, [`Executor::fallback`] tells
    /// why. Does nothing for other backends. Must not be called by [`Metrics`](crate::Metrics), which would wait for themselves.
    pub fn finish_tiers(&self) {
        if let Some(tiered) = self.inner().tiered() {
            tiered.climb(self.inner());
            tiered.ladder.wait();
        }
    }

    /// Whether every tier that there will be is compiled.
    #[must_use]
    pub fn tiers_are_finished(&self) -> bool {
        self.inner().tiered().is_none_or(|tiered| tiered.ladder.is_finished())
    }

    /// Lets calls take the next tier, if it is compiled, and returns the one they take. Calls that run go on with what they
    /// have. Does nothing for backends other than `Backend::Tiered`.
    pub fn advance(&self) -> Option<Tier> {
        match self.inner().tiered() {
            Some(tiered) => tiered.choose_next(self.inner()),
            None => self.tier(),
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
