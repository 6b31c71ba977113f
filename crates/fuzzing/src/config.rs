//! The settings of the fuzzer. All random choices follow from `seed` and the number of a program, so each program can be regenerated alone.

use std::time::Duration;

/// The settings of the fuzzer: the kinds and amounts of the programs that it generates. Shares are probabilities from 0 to 1.
#[derive(Clone, PartialEq, Debug)]
pub struct Config {
    /// The number of programs to try; `None` for no limit. With neither `programs` nor `seconds`, the run ends at the first finding.
    pub programs: Option<u64>,
    /// The seconds after which the run stops, even if there are programs left; `None` for no limit.
    pub seconds: Option<u64>,
    /// The share, from 0 to 1, of programs that compute on arrays. Whether a program computes on arrays depends only on `seed`, the program's number
    /// and this share. A program that does not compute on arrays is the same for any share.
    pub arrays: f64,
    /// The share, from 0 to 1, of programs on requests among the programs on arrays. A request is a list of structs, another list, a dictionary and
    /// scalars.
    pub requests: f64,
    /// The seed of all random choices in the run.
    pub seed: u64,
    /// The number of the first program of the run. A program depends only on `seed` and the program's number.
    pub start: u64,
    /// The most operators on a path from an output to an input or literal.
    pub max_depth: u32,
    /// The most operators that are generated per program, before unneeded ones are removed.
    pub max_operators: u32,
    /// The most inputs of a generated program.
    pub max_inputs: u32,
    /// The most outputs of a generated program.
    pub max_outputs: u32,
    /// The number of rows that each program is evaluated on.
    pub rows: u32,
    /// The share, from 0 to 1, of optional values and literals that are missing.
    pub missing: f64,
    /// The share, from 0 to 1, of special numbers and texts: NaN, infinities, zeros of both signs, extremes, empty texts.
    pub special: f64,
    /// The share, from 0 to 1, of operands that are existing nodes, if there is an existing node of the operand's type. The remaining operands are
    /// new inputs and literals.
    pub reuse: f64,
    /// The share, from 0 to 1, of literals among the operands that are not existing nodes.
    pub literals: f64,
    /// The share, from 0 to 1, of operators that are conditionals, in addition to those drawn from the registry.
    pub conditionals: f64,
    /// The share, from 0 to 1, of operators that make tuples or read their fields, in addition to those drawn from the registry.
    pub structure: f64,
    /// The share, from 0 to 1, of operators on functions and sequences, in addition to those drawn from the registry.
    pub functions: f64,
    /// The share, from 0 to 1, of operators on structs, in addition to those drawn from the registry.
    pub structs: f64,
    /// The probability, from 0 to 1, that a drawn operator is used if it can fail. With a low probability, most rows of most programs have a value.
    pub fallible: f64,
    /// The share, from 0 to 1, of programs that are damaged so that most become ill-typed.
    pub ill_typed: f64,
    /// The share, from 0 to 1, of programs whose text is damaged.
    pub garbled: f64,
    /// The share, from 0 to 1, of programs that are also judged under other options: with rewrites that may change a rounding (`--compat`), or
    /// without optimisation passes.
    pub variants: f64,
    /// The share, from 0 to 1, of programs that also run with inputs and outputs in the caller's structs, as in typed executors.
    pub in_place: f64,
    /// The share, from 0 to 1, of programs that run under small limits on strings and loops.
    pub limited: f64,
    /// The share, from 0 to 1, of programs whose native code is split into functions of a few steps each.
    pub cut: f64,
    /// The share, from 0 to 1, of programs that are compiled by the quick tier of native code.
    pub quick: f64,
    /// The share, from 0 to 1, of programs that are also run by a tiered executor, which changes from the interpreter to native code between rows.
    pub tiered: f64,
    /// The share, from 0 to 1, of programs that are also run on all rows as one batch, by every backend of batches.
    pub batched: f64,
    /// The maximum number of programs that the shrinker tries, in order to find a smaller program that breaks the same law.
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
    /// Returns the random number generator for the program with the number `program`.
    pub(crate) fn random(&self, program: u64) -> fastrand::Rng {
        fastrand::Rng::with_seed(self.seeds(program).u64(..))
    }

    /// Returns true if the program with the number `program` computes on arrays.
    pub(crate) fn takes_arrays(&self, program: u64) -> bool {
        let mut seeds = self.seeds(program);
        // The first number is the seed of the program itself.
        let _ = seeds.u64(..);
        chance(&mut seeds, self.arrays)
    }

    fn seeds(&self, program: u64) -> fastrand::Rng {
        // Consecutive numbers must not give similar seeds, so the odd constant spreads them over all 64 bits.
        let mixed = (self.seed.wrapping_mul(0xD6E8_FEB8_6659_FD93)) ^ program.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        fastrand::Rng::with_seed(mixed)
    }

    /// Returns the command that regenerates and judges the program with the number `program`. All settings that the command does not name must be
    /// those of this run.
    pub(crate) fn replay(&self, program: u64) -> String {
        let mut command = format!("cembra fuzz --programs 1 --seed {}", self.seed);
        if self.arrays != Config::default().arrays {
            command += if self.takes_arrays(program) { " --arrays 100" } else { " --arrays 0" };
        }
        format!("{command} --start {program}")
    }

    /// The time limit of the run; `None` without a limit.
    pub(crate) fn time(&self) -> Option<Duration> {
        self.seconds.map(Duration::from_secs)
    }
}

/// Returns true with the probability `share`.
pub(crate) fn chance(random: &mut fastrand::Rng, share: f64) -> bool {
    random.f64() < share
}

/// Returns a random element of a list, which must not be empty.
pub(crate) fn pick<'a, T>(random: &mut fastrand::Rng, from: &'a [T]) -> &'a T {
    &from[random.usize(..from.len())]
}
