//! Tests of strict lowering rules in a branch: a rule that is recorded for the rows of a branch may only fail where the
//! branch is taken and all arguments are present.

use cembra_ops::{Overload, Registry, record};
use cembra_runtime::{MachineType, Scalar};
use cembra_tape::{Cell, Datum, Outcome, Presence, Tape};

/// Returns true if a division by zero in a branch stops the evaluation. The dividend is optional; `is_present` and
/// `is_taken` tell whether it is present and whether the branch is taken.
fn stops(is_present: bool, is_taken: bool) -> bool {
    let registry = Registry::standard();
    let def = registry.get(registry.find("math.floordiv").expect("an operator"));
    let is_long = |overload: &&Overload| overload.ret.scalar == Scalar::Int64;
    let overload = def.overloads().iter().find(is_long).expect("an overload");
    let mut tape = Tape::new();
    let (branch, present) = (tape.input_mask(), tape.input_mask());
    let [x, y] = [(); 2].map(|()| Datum::Num(tape.input(MachineType::I64)));
    tape.set_active(Some(branch));
    let args = [Cell { presence: Presence::When(present), datum: x }, Cell::present(y)];
    record(&mut tape, def.presence, overload, &args);
    assert_eq!(tape.active(), Some(branch), "what was in force is again");
    // SAFETY: STRING-VIEW: there are no strings.
    let outcome = unsafe { tape.run_on_bits(&[u64::from(is_taken), u64::from(is_present), 7, 0]) };
    matches!(outcome, Outcome::Stopped(..))
}

#[test]
fn a_lifted_rule_fails_only_where_its_branch_is_taken() {
    assert!(stops(true, true));
    assert!(!stops(true, false), "the mask around it was dropped");
    assert!(!stops(false, true));
}
