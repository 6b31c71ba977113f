//! Facts about evaluating an overload that optimisations need besides its value: whether it may stop the evaluation,
//! whether it is a call, and its cost. They are derived from the overload's record and lowering rule, and registries
//! store them. All code that decides where or whether something is evaluated must use these facts.

use crate::definition::{Lower, OpDef, Overload};
use cembra_tape::Instr;

/// The most instructions, constants included, in a lowering rule that counts as cheaper than a call.
const LONG: usize = 32;

/// The cost of a read of an element of a column, in instructions.
const READ: u32 = 2;

/// The effects of evaluating an overload other than its value: whether it may stop the evaluation, whether it is a call, and its cost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Effects {
    /// True if the operator of the overload can raise a fault.
    pub may_fail: bool,
    /// True if the overload runs a function of which only the result is known, because it has no lowering rule. The function
    /// may take any time, exhaust the memory or the work for strings, or have effects that a user of the library can see.
    pub is_opaque: bool,
    /// True if evaluating the overload costs as much as a call, which is at least a dozen instructions. The overload calls an opaque function (one
    /// without a lowering rule) or a function of the runtime, or its lowering rule is long.
    pub is_call: bool,
    /// The cost of the overload in the units of `Tape::cost`; `None` if the cost is not known, or if the overload may stop the evaluation.
    pub cost: Option<u32>,
    /// The number of instructions in the overload's lowering rule, inputs and constants included; 0 without a rule.
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

    /// Returns true if the overload may stop the evaluation, so that it must not be evaluated where its value is not needed.
    #[must_use]
    pub const fn may_stop(self) -> bool {
        self.may_fail || self.is_opaque
    }

    /// Returns true if skipping a needless evaluation of the overload is worth a branch: the overload may stop the evaluation, or costs as much as a
    /// call.
    #[must_use]
    pub const fn is_worth_skipping(self) -> bool {
        self.may_stop() || self.is_call
    }
}
