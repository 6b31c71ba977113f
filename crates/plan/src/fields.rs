//! Where the fields of tuples lie, looked up often: the offsets of a tuple are computed once, not again for each field
//! that is taken out of it.

use crate::{Plan, ValueId};
use cembra_runtime::FieldOffset;
use rustc_hash::FxHashMap;

/// The offsets of the fields of the tuples met so far.
#[derive(Default)]
pub(crate) struct FieldOffsets(FxHashMap<ValueId, Box<[FieldOffset]>>);

impl FieldOffsets {
    /// Where the field `index` lies inside of a value. `None` if the value is no tuple or has no such field.
    pub(crate) fn get(&mut self, plan: &Plan, tuple: ValueId, index: u32) -> Option<FieldOffset> {
        let offsets = self.0.entry(tuple).or_insert_with(|| plan.value(tuple).qtype.field_offsets().collect());
        offsets.get(index as usize).copied()
    }
}
