//! The rules of the optimiser, as one list per subject. The rules for one operator are tried in the order of these lists: rules that make a
//! conditional come before rules that only combine masks.

mod arithmetic;
mod boolean;
mod conditional;
mod presence;
mod structure;

use super::{Rewrite, Site};
use crate::Id;
use crate::pass::Mode::{Compat, Strict};
use cembra_ops::id;

/// The default values of a rule's fields: the rule keeps every bit, and skips no operand that the original evaluates.
/// Every rule sets the other fields.
const RULE: Rewrite = Rewrite { name: "", mode: Strict, skips: false, note: "", op: id::HAS, apply: |_, _| None };

/// The rules of the optimiser, one list per subject.
pub(super) static FAMILIES: &[&[Rewrite]] =
    &[conditional::RULES, presence::RULES, boolean::RULES, arithmetic::RULES, structure::RULES];
