//! Verifies stretches, the ranges of a tape's instructions that a backend may jump over if a mask holds in no lane. A
//! tape must give the same results whether such a stretch is jumped over or run. So after a stretch, its results may be
//! used only under the mask of the stretch.

use crate::{Instr, Mask, Tape};
use std::fmt;

/// The reason why a stretch (the instructions from a `Begin` to its `End`) cannot be jumped over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum SkippableRangeFault {
    /// The `Begin` or `End` at this position has no counterpart.
    Unpaired(usize),
    /// The instruction at this position uses a result of a stretch in lanes where the stretch's mask need not hold.
    Used(usize),
    /// The output with this index is computed in a stretch.
    Output(usize),
    /// The instruction at this position of a stretch may stop the evaluation in lanes where the stretch's mask need not
    /// hold.
    Stops(usize),
}

impl fmt::Display for SkippableRangeFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SkippableRangeFault::Unpaired(at) => write!(f, "the marker v{at} has no other"),
            SkippableRangeFault::Used(at) => write!(f, "v{at} uses what a stretch made outside of its mask"),
            SkippableRangeFault::Output(number) => write!(f, "output {number} is made in a stretch"),
            SkippableRangeFault::Stops(at) => write!(f, "v{at} stops evaluations outside of the mask of its stretch"),
        }
    }
}

impl std::error::Error for SkippableRangeFault {}

impl Tape {
    /// Checks that each stretch, from `Begin` to `End`, may be either jumped over or run. Outside of the stretch, a
    /// result may be used only as an operand of a selection or a conjunction that ignores the result where the
    /// stretch's mask does not hold. Faults inside of the stretch must be restricted to the stretch's mask. Inputs and
    /// constants belong to no stretch.
    ///
    /// # Errors
    /// The first problem that is found.
    pub fn check_stretches(&self) -> Result<(), SkippableRangeFault> {
        let instrs = self.instrs();
        // For each instruction, the marker of the innermost stretch that contains it.
        let mut stretch_of: Vec<Option<usize>> = Vec::with_capacity(instrs.len());
        let mut open: Vec<usize> = Vec::new();
        for (at, instr) in instrs.iter().enumerate() {
            stretch_of.push(if instr.is_shared() { None } else { open.last().copied() });
            match instr {
                Instr::Begin(_) => open.push(at),
                Instr::End => drop(open.pop().ok_or(SkippableRangeFault::Unpaired(at))?),
                _ => {}
            }
        }
        if let Some(at) = open.last() {
            return Err(SkippableRangeFault::Unpaired(*at));
        }
        for (at, instr) in instrs.iter().enumerate() {
            // The stretches that contain the instruction, innermost first.
            let around: Vec<usize> = std::iter::successors(stretch_of[at], |marker| stretch_of[*marker]).collect();
            if let Instr::FaultIf { mask, .. } = instr
                && !around.iter().all(|marker| self.holds_within(*mask, *marker))
            {
                return Err(SkippableRangeFault::Stops(at));
            }
            let mut fault = None;
            instr.for_each_operand(|operand| {
                let left = std::iter::successors(stretch_of[operand], |marker| stretch_of[*marker])
                    .filter(|marker| !around.contains(marker));
                for marker in left {
                    if !self.counts_within(instr, operand, marker) {
                        fault = Some(SkippableRangeFault::Used(at));
                    }
                }
            });
            fault.map_or(Ok(()), Err)?;
        }
        match self.outputs().iter().position(|output| stretch_of[output.index()].is_some()) {
            Some(number) => Err(SkippableRangeFault::Output(number)),
            None => Ok(()),
        }
    }

    /// Returns true if `mask` holds only where the mask of the stretch that begins at `marker` holds: `mask` is the
    /// stretch's mask, or a conjunction of it with other masks.
    fn holds_within(&self, mask: Mask, marker: usize) -> bool {
        let Instr::Begin(wanted) = self.instrs()[marker] else { return false };
        let mut open = vec![mask];
        while let Some(mask) = open.pop() {
            if mask == wanted {
                return true;
            }
            if let Instr::MaskAnd(a, b) = self.instrs()[mask.index()] {
                open.extend([a, b]);
            }
        }
        false
    }

    /// Returns true if the operand at the position `operand` affects the result of `instr` only where the mask of the
    /// stretch that begins at `marker` holds.
    fn counts_within(&self, instr: &Instr, operand: usize, marker: usize) -> bool {
        match instr {
            Instr::Select { mask, on, off, .. } => {
                let except = |mask: Mask| match (&self.instrs()[mask.index()], &self.instrs()[marker]) {
                    (Instr::MaskNot(inner), Instr::Begin(wanted)) => inner == wanted,
                    _ => false,
                };
                mask.index() != operand
                    && (on.index() != operand || self.holds_within(*mask, marker))
                    && (off.index() != operand || except(*mask))
            }
            Instr::MaskAnd(a, b) => {
                let other = if a.index() == operand { *b } else { *a };
                a != b && self.holds_within(other, marker)
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Bin, Cmp, Outcome, Output, Un, Val};
    use cembra_runtime::{FaultKind, MachineType};

    /// Makes a tape with two inputs, a number and a mask, and a stretch that computes a square root and a mask.
    fn tape(build: impl FnOnce(&mut Tape, Mask, Val, Mask)) -> Tape {
        let mut tape = Tape::new();
        let (x, mask) = (tape.input(MachineType::F64), tape.input_mask());
        tape.begin(mask);
        let root = tape.un(Un::Sqrt, x);
        let least = tape.konst(MachineType::F64, 0);
        let positive = tape.cmp(Cmp::Gt, root, least);
        tape.end();
        build(&mut tape, mask, root, positive);
        tape
    }

    #[test]
    fn results_count_only_under_the_mask() {
        let fine = tape(|tape, mask, root, positive| {
            let zero = tape.konst(MachineType::F64, 0);
            let chosen = tape.select(mask, root, zero);
            let both = tape.mand(positive, mask);
            tape.output(Output::Number(chosen));
            tape.output(Output::Mask(both));
            let not = tape.mnot(mask);
            let other = tape.select(not, zero, root);
            tape.output(Output::Number(other));
        });
        assert_eq!(fine.check_stretches(), Ok(()));
        let used = tape(|tape, _, root, _| {
            tape.bin(Bin::Add, root, root);
        });
        assert_eq!(used.check_stretches(), Err(SkippableRangeFault::Used(7)));
        let chooses = tape(|tape, mask, root, positive| {
            let zero = tape.konst(MachineType::F64, 0);
            let under = tape.select(mask, root, zero);
            tape.select(positive, under, zero);
        });
        assert_eq!(chooses.check_stretches(), Err(SkippableRangeFault::Used(8)));
        let swapped = tape(|tape, mask, root, _| {
            let zero = tape.konst(MachineType::F64, 0);
            tape.select(mask, zero, root);
        });
        assert_eq!(swapped.check_stretches(), Err(SkippableRangeFault::Used(7)));
        let wider = tape(|tape, mask, root, _| {
            let (zero, other) = (tape.konst(MachineType::F64, 0), tape.input_mask());
            let either = tape.mor(mask, other);
            tape.select(either, root, zero);
        });
        assert_eq!(
            wider.check_stretches(),
            Err(SkippableRangeFault::Used(9)),
            "the mask may hold where the stretch's does not"
        );
        let stated = tape(|tape, _, root, _| tape.output(Output::Number(root)));
        assert_eq!(stated.check_stretches(), Err(SkippableRangeFault::Output(0)));
    }

    #[test]
    fn faults_and_markers_are_checked() {
        let stops = |restricted: bool| {
            let mut tape = Tape::new();
            let (x, mask) = (tape.input(MachineType::F64), tape.input_mask());
            tape.begin(mask);
            let negative = tape.is_nan(x);
            let active = tape.set_active(restricted.then_some(mask));
            tape.fault_if(negative, FaultKind::Invalid, [None; 2]);
            tape.set_active(active);
            tape.end();
            tape.check_stretches()
        };
        assert_eq!(stops(true), Ok(()));
        assert_eq!(stops(false), Err(SkippableRangeFault::Stops(4)));
        let mut tape = Tape::new();
        tape.end();
        assert_eq!(tape.check_stretches(), Err(SkippableRangeFault::Unpaired(0)));
        let mut tape = Tape::new();
        let mask = tape.input_mask();
        tape.begin(mask);
        assert_eq!(tape.check_stretches(), Err(SkippableRangeFault::Unpaired(1)));
    }

    #[test]
    fn what_a_skipped_stretch_makes_is_poisoned() {
        let built = tape(|tape, mask, root, positive| {
            let zero = tape.konst(MachineType::F64, 0);
            let chosen = tape.select(mask, root, zero);
            let both = tape.mand(mask, positive);
            tape.output(Output::Number(chosen));
            tape.output(Output::Mask(both));
        });
        // SAFETY: STRING-VIEW: there are no strings.
        let run = |x: f64, mask: u64| match unsafe { built.run_on_bits(&[x.to_bits(), mask]) } {
            Outcome::Done(results) => results,
            Outcome::Stopped(..) => panic!("no fault is possible"),
        };
        assert_eq!(f64::from_bits(run(4.0, 1)[3]), 2.0);
        let skipped = run(4.0, 0);
        assert!(f64::from_bits(skipped[3]).to_bits() != 2_f64.to_bits(), "the root of a skipped stretch is not there");
        let outputs: Vec<u64> = built.outputs().iter().map(|output| skipped[output.index()]).collect();
        assert_eq!(outputs, [0, 0]);
    }

    #[test]
    fn a_stretch_is_live_with_what_is_in_it() {
        let live = |uses: bool| {
            let mut built = tape(|tape, mask, root, _| {
                let zero = tape.konst(MachineType::F64, 0);
                let chosen = tape.select(mask, root, zero);
                tape.output(Output::Number(if uses { chosen } else { zero }));
            });
            built.finish();
            built.live().to_vec()
        };
        assert_eq!(live(true), [true, true, true, true, true, false, true, true]);
        assert_eq!(live(false), [false, false, false, false, true, false, false, false]);
    }
}
