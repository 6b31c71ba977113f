//! A cache of the offsets of fields in tuples, for the assignment and the verification of slots. All offsets of a tuple
//! are computed at the first lookup, because computing them again for each field would take quadratic time.

use crate::{Plan, ValueId};
use cembra_runtime::FieldOffset;
use rustc_hash::FxHashMap;

/// The field offsets of each tuple that was looked up so far.
#[derive(Default)]
pub(crate) struct FieldOffsets(FxHashMap<ValueId, Box<[FieldOffset]>>);

impl FieldOffsets {
    /// The offset of the field `index` inside of the value `tuple`; `None` if the value is not a tuple or has no such
    /// field.
    pub(crate) fn get(&mut self, plan: &Plan, tuple: ValueId, index: u32) -> Option<FieldOffset> {
        let offsets = self.0.entry(tuple).or_insert_with(|| plan.value(tuple).qtype.field_offsets().collect());
        offsets.get(index as usize).copied()
    }
}
