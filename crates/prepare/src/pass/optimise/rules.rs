//! The rules, by family, each a list of entries. The rules of one operator are tried in the order they have here: what
//! makes a conditional comes before what only combines masks.

mod arithmetic;
mod boolean;
mod conditional;
mod presence;
mod structure;

use super::{Rewrite, Site};
use crate::Id;
use crate::pass::Mode::{Compat, Strict};
use cembra_ops::id;

/// A template for rules that keep every bit and all evaluations.
const RULE: Rewrite = Rewrite { name: "", mode: Strict, skips: false, note: "", op: id::HAS, apply: |_, _| None };

/// Every rule.
pub(super) static FAMILIES: &[&[Rewrite]] =
    &[conditional::RULES, presence::RULES, boolean::RULES, arithmetic::RULES, structure::RULES];
