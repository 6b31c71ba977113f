//! Options: the backend that runs a model, the player that runs it on many rows, and the time at which a tiered model is compiled.

/// A way to run a plan. All backends give the same bits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[non_exhaustive]
pub enum Backend {
    /// The interpreter.
    Interpreter,
    /// Machine code; an error if it is not available.
    Native,
    /// Machine code if it is available, else the interpreter. `Executor::fallback` has the reason for the interpreter.
    #[default]
    Auto,
    /// The interpreter at first, and machine code once threads in the background have compiled it. [`Tiering`](crate::Tiering) says when. If
    /// machine code is not available, the interpreter stays, and `Executor::fallback` has the reason.
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

/// The code that evaluates the rows of a [`Batch`](crate::Batch). All players give the same bits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum RowPlayer {
    /// The best player that the machine and the model allow.
    #[default]
    Best,
    /// Vectors of 512 bits; an error if the machine has none.
    Avx512,
    /// Vectors of 256 bits; an error if the machine has none.
    Avx2,
    /// Vectors of 128 bits, on any machine for which there is a code generator.
    Lanes128,
    /// Machine code that takes one row after the other.
    Native,
    /// The interpreter, one row after the other.
    Interpreter,
}

impl RowPlayer {
    /// The list of all players.
    pub const ALL: [RowPlayer; 6] = [
        RowPlayer::Best,
        RowPlayer::Avx512,
        RowPlayer::Avx2,
        RowPlayer::Lanes128,
        RowPlayer::Native,
        RowPlayer::Interpreter,
    ];

    /// The name used on the command line and in reports.
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

/// The time at which a model of [`Backend::Tiered`] is compiled, and at which its calls take the machine code.
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
    /// The number of calls before compilation; 0 to compile when the executor is made.
    pub(crate) calls: u32,
    pub(crate) by_hand: bool,
    pub(crate) every_tier: bool,
}

impl Tiering {
    /// The default number of calls after which a model is compiled. Interpreting a model 1000 times takes about as long as compiling it once,
    /// whatever its size: in the benchmarks' workloads, machine code pays for itself after 800 to 3000 calls. So a model that is called a few times
    /// costs no compilation, and any other at most about twice the time of the best choice.
    pub const CALLS: u32 = 1000;

    /// Compiles a model after `calls` calls, counted over all threads; with 0, as soon as its executor is made.
    #[must_use]
    pub const fn after_calls(mut self, calls: u32) -> Self {
        self.calls = calls;
        self
    }

    /// If true, calls take compiled code only after [`Executor::advance`](crate::Executor::advance). By default they take it as soon as it is
    /// there.
    #[must_use]
    pub const fn by_hand(mut self, by_hand: bool) -> Self {
        self.by_hand = by_hand;
        self
    }

    /// If true, a small model is compiled in the quick tier first, as a large one is, and not straight away in the optimised tier. Tests of all
    /// tiers then do not need a large model.
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
