//! What evaluating an overload does besides giving its value: whether it may stop the evaluation, whether it is a call, and
//! what it costs. One answer for each overload, read off its record and its rule; registries keep them. Whoever decides where
//! something is evaluated, or whether at all, asks here and nowhere else. What to do about the answer is theirs.

use crate::definition::{Lower, OpDef, Overload};
use cembra_tape::Instr;

/// A rule of more instructions than this, constants included, costs what a call costs.
const LONG: usize = 32;

/// The cost of a read of an element of a column, in instructions.
const READ: u32 = 2;

/// What evaluating an overload does besides giving its value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Effects {
    /// True if some arguments make the operator fail.
    pub may_fail: bool,
    /// True if it runs a function of which only its result is known: that of an operator without a rule. It may take any time,
    /// find the memory or the work for strings at an end, or do what a user of the library can see.
    pub is_opaque: bool,
    /// True if it is a call, which costs as much as a dozen instructions at least: of an opaque function, of one of the
    /// runtime, as its rule says, or as many instructions as cost no less.
    pub is_call: bool,
    /// What it costs, as `Tape::cost` counts it; none if that is not known, or if it may stop the evaluation.
    pub cost: Option<u32>,
    /// How many instructions its rule is, its inputs and constants included; 0 without a rule.
    pub rule_length: usize,
}

impl Effects {
    pub(crate) fn of(def: &OpDef, overload: &Overload) -> Effects {
        if overload.lower.is_read() {
            return Effects { may_fail: false, is_opaque: false, is_call: false, cost: Some(READ), rule_length: 1 };
        }
        let tape = overload.tape();
        let called = |instr: &Instr| matches!(instr, Instr::Call(..) | Instr::RareCall { .. });
        Effects {
            may_fail: !def.is_total(),
            is_opaque: matches!(overload.lower, Lower::Kernel | Lower::Memory(_)),
            is_call: tape.as_ref().is_none_or(|tape| tape.instrs().len() > LONG || tape.instrs().iter().any(called)),
            cost: tape.as_ref().and_then(|tape| tape.cost()),
            rule_length: tape.map_or(0, |tape| tape.instrs().len()),
        }
    }

    /// True if it may stop the evaluation, so that it must not be evaluated where nobody asks for its value.
    #[must_use]
    pub const fn may_stop(self) -> bool {
        self.may_fail || self.is_opaque
    }

    /// True if evaluating it needlessly is worth a branch to avoid: it may stop the evaluation, or costs what a call costs.
    #[must_use]
    pub const fn is_worth_skipping(self) -> bool {
        self.may_stop() || self.is_call
    }
}
