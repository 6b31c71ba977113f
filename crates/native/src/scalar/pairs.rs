//! Pairs: two FLOAT64 divisions on a tape, or two square roots, that do not need each other's results. A processor computes both in one vector
//! instruction in the time of one. No other instructions take long enough to be worth pairing.

use cembra_runtime::MachineType;
use cembra_tape::{Bin, Instr, Tape, Un};

/// The largest distance between the two instructions of a pair on the tape, plus one.
const FARTHEST: usize = 64;

/// Two instructions of a tape that are emitted as one vector instruction, by their indices on the tape.
pub(super) struct Pair {
    pub(super) first: usize,
    pub(super) second: usize,
    /// The instructions after the first and before the second instruction of the pair that the second one needs, in the
    /// order of the tape.
    pub(super) between: Vec<usize>,
}

/// Finds the pairs among the live instructions of `tape`, in the order of each pair's first instruction. Each
/// instruction is in at most one pair. The operands of a pair are emitted before it, as whole pairs or as single
/// instructions.
pub(super) fn find(tape: &Tape) -> Vec<Pair> {
    let (instrs, live) = (tape.instrs(), tape.live());
    let mut pairs: Vec<Pair> = Vec::new();
    if !instrs.iter().any(|instr| takes_long(tape, instr)) {
        return pairs;
    }
    let mut paired = vec![false; instrs.len()];
    for first in 0..instrs.len() {
        if !live[first] || paired[first] || !takes_long(tape, &instrs[first]) {
            continue;
        }
        let end = instrs.len().min(first + FARTHEST);
        let mut depends = [false; FARTHEST];
        depends[0] = true;
        for at in first + 1..end {
            instrs[at].for_each_operand(|operand| depends[at - first] |= operand >= first && depends[operand - first]);
            let alike = match (&instrs[first], &instrs[at]) {
                (Instr::Un(a, _), Instr::Un(b, _)) => a == b,
                (Instr::Bin(a, ..), Instr::Bin(b, ..)) => a == b,
                _ => false,
            };
            if alike && live[at] && !paired[at] && !depends[at - first] && takes_long(tape, &instrs[at]) {
                let between = needed(instrs, first, at);
                // An instruction that is moved forward cannot be part of another pair.
                between.iter().chain([&at]).for_each(|taken| paired[*taken] = true);
                pairs.push(Pair { first, second: at, between });
                break;
            }
        }
    }
    pairs
}

fn takes_long(tape: &Tape, instr: &Instr) -> bool {
    match instr {
        Instr::Un(Un::Sqrt, a) | Instr::Bin(Bin::Div, a, _) => tape.ty(*a) == MachineType::F64,
        _ => false,
    }
}

/// Returns the instructions between `first` and `second` that `second` needs, in the order of the tape.
fn needed(instrs: &[Instr], first: usize, second: usize) -> Vec<usize> {
    let mut needed = vec![false; second - first + 1];
    needed[second - first] = true;
    for at in (first + 1..=second).rev() {
        if needed[at - first] {
            instrs[at].for_each_operand(|operand| {
                if operand > first {
                    needed[operand - first] = true;
                }
            });
        }
    }
    (first + 1..second).filter(|at| needed[at - first]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use cembra_tape::{Output, Val};

    /// Returns the pairs that are found on a tape with two inputs, whose outputs are the results of `build`.
    fn pairs<const N: usize>(build: impl FnOnce(&mut Tape, Val, Val) -> [Val; N]) -> Vec<(usize, usize, Vec<usize>)> {
        let mut tape = Tape::new();
        let (x, y) = (tape.input(MachineType::F64), tape.input(MachineType::F64));
        for result in build(&mut tape, x, y) {
            tape.output(Output::Number(result));
        }
        tape.finish();
        let found = find(&tape);
        found.into_iter().map(|pair| (pair.first, pair.second, pair.between)).collect()
    }

    #[test]
    fn what_is_played_before_its_time_is_in_no_other_pair() {
        let found = pairs(|tape, x, y| {
            let first = tape.bin(Bin::Div, x, y);
            let root = tape.un(Un::Sqrt, x);
            [first, tape.bin(Bin::Div, root, y), tape.un(Un::Sqrt, y)]
        });
        assert_eq!(found, [(2, 4, vec![3])]);
    }

    #[test]
    fn only_what_does_not_need_the_other_is_paired() {
        let found = pairs(|tape, x, y| {
            let quotient = tape.bin(Bin::Div, x, y);
            let sum = tape.bin(Bin::Add, quotient, y);
            [tape.bin(Bin::Div, sum, x), tape.bin(Bin::Div, y, x)]
        });
        assert_eq!(found, [(2, 5, vec![])]);
        let found = pairs(|tape, x, y| {
            let root = tape.un(Un::Sqrt, x);
            [tape.un(Un::Sqrt, root), tape.bin(Bin::Div, x, y)]
        });
        assert_eq!(found, []);
    }
}
