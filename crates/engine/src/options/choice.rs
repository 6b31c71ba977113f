//! Which backend runs a model, what plays it on many rows, and when a tiered one is compiled, as options say.

/// A way to run a plan. All give the same bits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[non_exhaustive]
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

/// What plays a model on the rows of a [`Batch`](crate::Batch). All give the same bits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum RowPlayer {
    /// The best that the machine and the model allow.
    #[default]
    Best,
    /// Lanes of 512 bits; an error where the machine has none.
    Avx512,
    /// Lanes of 256 bits; an error where the machine has none.
    Avx2,
    /// Lanes of 128 bits, on any machine that has code.
    Lanes128,
    /// Machine code that takes row after row.
    Native,
    /// The interpreter, row after row.
    Interpreter,
}

impl RowPlayer {
    /// Every choice.
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

/// When a model of [`Backend::Tiered`] is compiled, and when its calls take the machine code.
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
    pub(crate) calls: u32,
    pub(crate) by_hand: bool,
    pub(crate) every_tier: bool,
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

    /// Leaves it to [`Executor::advance`](crate::Executor::advance) when calls take what was compiled. Otherwise they do as soon as it is there.
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
