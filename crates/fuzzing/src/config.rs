//! The knobs of fuzzing. Everything random follows from `seed` and the number of a program, so that any program can be
//! made again alone.

use std::time::Duration;

/// What to generate and how much. Shares are probabilities from 0 to 1.
#[derive(Clone, PartialEq, Debug)]
pub struct Config {
    /// How many programs to try. Without a number and without `seconds`, until something is found.
    pub programs: Option<u64>,
    /// Stop after this many seconds, even if there are programs left.
    pub seconds: Option<u64>,
    /// Share of programs that compute on arrays. Which ones depends on `seed` and their numbers only; the others are the same,
    /// whatever this share is.
    pub arrays: f64,
    /// Share, among the programs on arrays, of those on requests: a list of structs, another list, a dictionary and scalars.
    pub requests: f64,
    /// Seeds all choices.
    pub seed: u64,
    /// The number of the first program; a program depends on `seed` and its number only.
    pub start: u64,
    /// Levels of operators on the longest path from an output to a leaf.
    pub max_depth: u32,
    /// Operators per program before those that no output needs are dropped.
    pub max_operators: u32,
    /// Inputs per program.
    pub max_inputs: u32,
    /// Outputs per program.
    pub max_outputs: u32,
    /// Rows each program is evaluated on.
    pub rows: u32,
    /// Share of optional values and literals that are missing.
    pub missing: f64,
    /// Share of numbers and texts that are special: NaN, infinities, zeros of both signs, extremes, empty texts.
    pub special: f64,
    /// Share of operands that are earlier nodes where there is one of the type; the others are new leaves and literals.
    pub reuse: f64,
    /// Share of literals among operands that are not earlier nodes.
    pub literals: f64,
    /// Share of operators that are conditionals, beyond those the registry's order gives.
    pub conditionals: f64,
    /// Share of operators that are tuples or fields of tuples, likewise.
    pub structure: f64,
    /// Share of operators on functions and sequences, likewise.
    pub functions: f64,
    /// Share of operators on structs, likewise.
    pub structs: f64,
    /// Share kept of the operators that can fault. Most rows of most programs should get as far as a value.
    pub fallible: f64,
    /// Share of programs that are damaged so that most are ill-typed.
    pub ill_typed: f64,
    /// Share of programs whose text is damaged.
    pub garbled: f64,
    /// Share of programs that are also compared under other options: compat rewrites, or without passes.
    pub variants: f64,
    /// Share of programs that are also run on structs of the caller, as typed executors run them.
    pub in_place: f64,
    /// Share of programs that are run under small limits on strings and on loops.
    pub limited: f64,
    /// Share of programs whose native code is made of functions of a few steps.
    pub cut: f64,
    /// Share of programs that are compiled by the quick tier.
    pub quick: f64,
    /// Share of programs that are also run by a tiered executor, which changes tiers in the middle of the rows.
    pub tiered: f64,
    /// Share of programs that are also run as batches, by all players of rows.
    pub batched: f64,
    /// How many smaller programs the shrinker may try.
    pub shrink: u32,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            programs: Some(1000),
            seconds: None,
            arrays: 0.2,
            requests: 1.0 / 3.0,
            seed: 1,
            start: 0,
            max_depth: 10,
            max_operators: 60,
            max_inputs: 8,
            max_outputs: 4,
            rows: 8,
            missing: 0.2,
            special: 0.3,
            reuse: 0.9,
            literals: 0.4,
            conditionals: 0.2,
            structure: 0.05,
            functions: 0.06,
            structs: 0.05,
            fallible: 0.5,
            ill_typed: 0.05,
            garbled: 0.03,
            variants: 0.5,
            in_place: 0.3,
            limited: 0.1,
            cut: 0.5,
            quick: 0.3,
            tiered: 0.25,
            batched: 0.4,
            shrink: 4000,
        }
    }
}

impl Config {
    /// The random numbers of one program.
    pub(crate) fn random(&self, program: u64) -> fastrand::Rng {
        fastrand::Rng::with_seed(self.seeds(program).u64(..))
    }

    /// True if a program computes on arrays.
    pub(crate) fn takes_arrays(&self, program: u64) -> bool {
        let mut seeds = self.seeds(program);
        // The first is that of the program.
        let _ = seeds.u64(..);
        chance(&mut seeds, self.arrays)
    }

    fn seeds(&self, program: u64) -> fastrand::Rng {
        // Neighbouring numbers must not give neighbouring seeds: the odd constant spreads them over all 64 bits.
        let mixed = (self.seed.wrapping_mul(0xD6E8_FEB8_6659_FD93)) ^ program.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        fastrand::Rng::with_seed(mixed)
    }

    /// The command that makes and judges a program again, under the same other settings.
    pub(crate) fn replay(&self, program: u64) -> String {
        let mut command = format!("cembra fuzz --programs 1 --seed {}", self.seed);
        if self.arrays != Config::default().arrays {
            command += if self.takes_arrays(program) { " --arrays 100" } else { " --arrays 0" };
        }
        format!("{command} --start {program}")
    }

    pub(crate) fn time(&self) -> Option<Duration> {
        self.seconds.map(Duration::from_secs)
    }
}

/// True with this probability.
pub(crate) fn chance(random: &mut fastrand::Rng, share: f64) -> bool {
    random.f64() < share
}

/// One of a list that is not empty.
pub(crate) fn pick<'a, T>(random: &mut fastrand::Rng, from: &'a [T]) -> &'a T {
    &from[random.usize(..from.len())]
}
