//! Options for compiling: the backend that runs a model, the backend that runs it on many rows, and the time at which a tiered model is compiled.

/// The backend that runs a plan. The results of all backends are the same, bit for bit.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[non_exhaustive]
pub enum Backend {
    /// The interpreter runs the plan.
    Interpreter,
    /// Machine code runs the plan; an error if machine code is not available.
    Native,
    /// Machine code runs the plan if it is available, else the interpreter. `Executor::fallback` then has the reason.
    #[default]
    Auto,
    /// The interpreter runs the plan at first, and machine code once threads in the background have compiled it. [`Tiering`](crate::Tiering) says
    /// when. If machine code is not available, the interpreter stays, and `Executor::fallback` has the reason.
    Tiered,
}

impl Backend {
    /// The backend's name, as the command line and reports use it.
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

/// The backend that evaluates the rows of a [`Batch`](crate::Batch). The results of all these backends are the same, bit for bit.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum RowPlayer {
    /// The fastest backend that the machine and the model allow.
    #[default]
    Best,
    /// Machine code for vectors of 512 bits; an error if the machine has none.
    Avx512,
    /// Machine code for vectors of 256 bits; an error if the machine has none.
    Avx2,
    /// Machine code for vectors of 128 bits, on any machine for which there is a code generator.
    Lanes128,
    /// Machine code that evaluates one row after the other.
    Native,
    /// The interpreter, which evaluates one row after the other.
    Interpreter,
}

impl RowPlayer {
    /// The list of all backends for rows.
    pub const ALL: [RowPlayer; 6] = [
        RowPlayer::Best,
        RowPlayer::Avx512,
        RowPlayer::Avx2,
        RowPlayer::Lanes128,
        RowPlayer::Native,
        RowPlayer::Interpreter,
    ];

    /// The name of this backend for rows, as the command line and reports use it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            RowPlayer::Best => "best",
            RowPlayer::Avx512 => "avx512",
            RowPlayer::Avx2 => "avx2",
            RowPlayer::Lanes128 => "128",
            RowPlayer::Native => "scalar",
            RowPlayer::Interpreter => "interpreter",
        }
    }
}

/// The rule that decides when a model of [`Backend::Tiered`] is compiled to machine code, and when its calls begin to run that code.
///
/// ```
/// use cembra::native::{Tier, Tiering};
/// use cembra::{Backend, Model, Options, Value};
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
    /// The number of calls after which a model is compiled; 0 to compile when the executor is made.
    pub(crate) calls: u32,
    pub(crate) by_hand: bool,
    pub(crate) every_tier: bool,
}

impl Tiering {
    /// The default number of calls after which a model is compiled. Interpreting a model 1000 times takes about as long as compiling it once,
    /// whatever its size: in the benchmarks' workloads, machine code pays for itself after 800 to 3000 calls. So a model that is called a few times
    /// costs no compilation, and any other model takes at most about twice the time of the best choice.
    pub const CALLS: u32 = 1000;

    /// Sets the number of calls after which a model is compiled, counted over all threads; with 0, it is compiled as soon as its executor is made.
    #[must_use]
    pub const fn after_calls(mut self, calls: u32) -> Self {
        self.calls = calls;
        self
    }

    /// If `by_hand` is true, calls run compiled code only after [`Executor::advance`](crate::Executor::advance). By default they run it as soon as it
    /// is compiled.
    #[must_use]
    pub const fn by_hand(mut self, by_hand: bool) -> Self {
        self.by_hand = by_hand;
        self
    }

    /// If `every_tier` is true, a small model is compiled in the quick tier first, as a large one is, and not straight away in the optimised tier.
    /// Tests of all tiers then do not need a large model.
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
