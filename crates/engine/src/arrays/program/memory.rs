//! The memory that one run of an array program leaves to later runs of the same program: the slots of values, the workspaces of fused loops, and the
//! memory of unused arrays. The size of this memory is bounded. A run that finds enough memory here allocates nothing.

use super::runner::Workspace;
use cembra_array::{ArrayProgram, BlockId, Lifetimes, ProgramId, SweepId, ValueId};
use cembra_runtime::UnusedMemoryCounter;
use cembra_value::{Array, ArrayData, Edge, Tensor, Value, Words};
use rustc_hash::FxHashSet;
use smallvec::{SmallVec, smallvec};
use std::sync::Arc;

/// The most spare arrays whose memory is kept between runs.
const MOST_ARRAYS: usize = 64;
/// The most words (of 8 bytes) that spare arrays keep between runs.
const MOST_WORDS: usize = 1 << 25;
/// Spare arrays keep at most the limit on the array bytes of a run, divided by this number.
const PART_OF_LIMIT: u64 = 4;

/// The most bytes of data per group (the state of reductions and scans), and of strips (blocks of elements) that
/// contain large groups, that the workspaces of all fused loops keep between runs.
const MOST_GROUP_BYTES: u64 = 64 << 20;

/// A run counts the bytes in its slots again when the arrays made since the last count exceed the run's limit divided
/// by this number. Until then it estimates.
const LOOKS: u64 = 16;

/// The memory that successive runs of one array program share.
#[derive(Debug, Default)]
pub(crate) struct RunMemory {
    /// The program that the slots and workspaces belong to.
    of: Option<ProgramId>,
    slots: Vec<Slot>,
    /// The workspace of each fused loop (sweep) that was run; `None` for other loops.
    workspaces: Vec<Option<Box<Workspace>>>,
    pub(super) spares: ArrayPool,
    lifetimes: Lifetimes,
    /// The results of the current step, before they are moved to their slots.
    results: Vec<Value>,
    /// The bytes that the workspaces keep, as `Workspace::kept_bytes` counts them; at most `MOST_GROUP_BYTES`.
    group_bytes: u64,
}

/// The state of a slot, which holds a value of the program.
#[derive(Clone, Debug)]
enum Slot {
    /// The slot has no value yet.
    Empty,
    /// The slot has a value that a step computed.
    Made(Value),
    /// The slot's value is the run's input with this index.
    Input(u32),
    /// The slot has a literal of the program, which stays between runs.
    Literal(Value),
}

impl Slot {
    /// Removes the slot's value and returns it, if a step computed it; otherwise the slot stays as it is, and the
    /// result is `None`.
    fn take(&mut self) -> Option<Value> {
        match self {
            Slot::Made(value) => {
                let value = std::mem::replace(value, Value::Nothing);
                *self = Slot::Empty;
                Some(value)
            }
            Slot::Empty | Slot::Input(_) | Slot::Literal(_) => None,
        }
    }
}

/// The values of one run of an array program, in slots.
#[derive(Debug)]
pub(super) struct Slots<'r> {
    slots: &'r mut [Slot],
    inputs: &'r [Value],
}

impl Slots<'_> {
    /// Returns the value in a slot; `None` if it is not computed yet.
    pub(super) fn get(&self, value: ValueId) -> Option<&Value> {
        match &self.slots[value.index()] {
            Slot::Empty => None,
            Slot::Made(value) | Slot::Literal(value) => Some(value),
            Slot::Input(at) => self.inputs.get(*at as usize),
        }
    }

    /// Stores `made`, which a step computed, in the slot `value`.
    pub(super) fn set(&mut self, value: ValueId, made: Value) {
        self.slots[value.index()] = Slot::Made(made);
    }
}

/// The memory of one run of an array program: slots of values, workspaces of fused loops, and spare arrays. They are separate fields, so that they
/// can be borrowed separately.
#[derive(Debug)]
pub(super) struct RunParts<'r> {
    pub(super) slots: Slots<'r>,
    workspaces: &'r mut [Option<Box<Workspace>>],
    pub(super) spares: &'r mut ArrayPool,
    lifetimes: &'r Lifetimes,
    /// The results of the current step, before they are moved to their slots.
    pub(super) results: &'r mut Vec<Value>,
    group_bytes: &'r mut u64,
    /// An estimate of the bytes of arrays and edges (assignments of elements to groups) in the run. An array in several
    /// slots counts several times, until an exact count corrects the estimate.
    made: u64,
    /// The bytes of arrays that were made since the last exact count.
    since: u64,
}

impl RunParts<'_> {
    /// Empties `slot`, which no step reads before it is filled again. Keeps the memory of its value for later arrays.
    pub(super) fn release(&mut self, slot: ValueId) {
        if let Some(value) = self.slots.slots[slot.index()].take() {
            self.made = self.made.saturating_sub(self.spares.add(value));
        }
    }

    /// Empties the slots that no step reads after step number `step` of `block`.
    pub(super) fn release_behind(&mut self, block: BlockId, step: usize) {
        self.lifetimes.ended(block, step).iter().for_each(|slot| self.release(*slot));
    }

    /// Counts the bytes of the new values `made`. Returns false if all arrays of the run together now take more than `most` bytes.
    pub(super) fn count(&mut self, made: &[ValueId], most: u64) -> bool {
        let made = made.iter().filter_map(|slot| self.slots.get(*slot)).map(bytes).fold(0, u64::saturating_add);
        self.made = self.made.saturating_add(made);
        self.since = self.since.saturating_add(made);
        self.made <= most || self.exact_room(most).is_some()
    }

    /// Returns a lower bound for the bytes that further arrays of the run may take, if all its arrays together may take `most` bytes.
    pub(super) fn min_room(&mut self, most: u64) -> u64 {
        // Walking all slots is slow, so it waits until half the limit is used and a sixteenth of it is new.
        if self.made > most / 2 && self.since > most / LOOKS {
            self.look();
        }
        most.saturating_sub(self.made)
    }

    /// Returns the exact number of bytes that further arrays of the run may take; `None` if its arrays already take more than `most` bytes.
    pub(super) fn exact_room(&mut self, most: u64) -> Option<u64> {
        self.look();
        most.checked_sub(self.made)
    }

    fn look(&mut self) {
        (self.made, self.since) = (self.held(), 0);
    }

    /// Takes the workspace (memory and state) that an earlier run of the fused loop `sweep` left; `None` if no run left one.
    pub(super) fn take_workspace(&mut self, sweep: SweepId) -> Option<Box<Workspace>> {
        let workspace = self.workspaces[sweep.index()].take()?;
        *self.group_bytes -= workspace.kept_bytes();
        Some(workspace)
    }

    /// Keeps the workspace (memory and state) of the fused loop `sweep` for later runs, unless all kept workspaces together would exceed their limit.
    pub(super) fn keep_workspace(&mut self, sweep: SweepId, workspace: Box<Workspace>) {
        let kept = self.group_bytes.saturating_add(workspace.kept_bytes());
        if kept > MOST_GROUP_BYTES {
            return;
        }
        *self.group_bytes = kept;
        self.workspaces[sweep.index()] = Some(workspace);
    }

    /// The exact bytes of arrays and edges (assignments of elements to groups) in slots. Each array or edge counts
    /// once; arrays and edges of inputs and literals are not counted.
    fn held(&self) -> u64 {
        let literal = |slot: &'_ Slot| if let Slot::Literal(value) = slot { parts(value) } else { SmallVec::new() };
        let literals = self.slots.slots.iter().flat_map(literal);
        let given = self.slots.inputs.iter().flat_map(parts).chain(literals);
        let mut seen: FxHashSet<usize> = given.map(|(address, _)| address).collect();
        let made = |slot: &'_ Slot| if let Slot::Made(value) = slot { parts(value) } else { SmallVec::new() };
        let all = self.slots.slots.iter().flat_map(made);
        all.filter(|(address, _)| seen.insert(*address)).map(|(_, bytes)| bytes).sum()
    }
}

impl RunMemory {
    /// Prepares the memory for a run of `program` on `inputs`. The arrays that the run makes may take at most `most` bytes.
    pub(super) fn begin<'r>(&'r mut self, program: &ArrayProgram, inputs: &'r [Value], most: u64) -> RunParts<'r> {
        if self.of != Some(program.id()) {
            *self =
                RunMemory { of: Some(program.id()), spares: std::mem::take(&mut self.spares), ..RunMemory::default() };
            self.slots.resize(program.value_count(), Slot::Empty);
            self.workspaces.resize_with(program.sweeps().len(), || None);
            self.lifetimes = Lifetimes::of(program);
            for (slot, value) in program.literals() {
                self.slots[slot.index()] = Slot::Literal(value.clone());
            }
            for (at, input) in program.inputs().iter().enumerate() {
                self.slots[input.value.index()] = Slot::Input(at as u32);
            }
        }
        self.parts(inputs, most)
    }

    fn parts<'r>(&'r mut self, inputs: &'r [Value], most: u64) -> RunParts<'r> {
        self.spares.begin(usize::try_from(most / PART_OF_LIMIT / 8).map_or(MOST_WORDS, |words| words.min(MOST_WORDS)));
        let RunMemory { slots, workspaces, spares, lifetimes, results, group_bytes, .. } = self;
        let slots = Slots { slots, inputs };
        RunParts { slots, workspaces, spares, lifetimes, results, group_bytes, made: 0, since: 0 }
    }

    /// Ends a run: empties the slots. The memory of the arrays in the slots is kept for later runs, unless something else refers to the arrays.
    pub(super) fn end(&mut self) {
        self.slots.iter_mut().filter_map(Slot::take).for_each(|value| _ = self.spares.add(value));
    }

    /// The bytes of memory that are kept for later runs.
    pub(crate) fn memory_bytes(&self) -> usize {
        let kept = (self.spares.words as u64).saturating_mul(size_of::<u64>() as u64).saturating_add(self.group_bytes);
        usize::try_from(kept).unwrap_or(usize::MAX).saturating_add(self.slots.capacity() * size_of::<Slot>())
    }

    /// Takes `value` from a caller that no longer needs it. If it is an array that nothing else refers to, its memory is kept for later runs.
    pub(crate) fn recycle(&mut self, value: Value) {
        self.spares.add(value);
    }
}

/// Drops a reference to an edge (an assignment of elements to groups), and returns the bytes that this frees: 0 while
/// other references are left.
fn bytes_of_edge(edge: Arc<Edge>) -> u64 {
    Arc::into_inner(edge).map_or(0, |edge| edge.memory_bytes() as u64)
}

/// Drops a reference to a tensor, and returns the bytes that this frees: 0 while other references to the tensor, or to
/// its memory, are left.
fn bytes_of_tensor(tensor: Arc<Tensor>) -> u64 {
    let alone = Arc::into_inner(tensor);
    alone.map_or(0, |mut tensor| if tensor.own_data().is_some() { tensor.memory_bytes() as u64 } else { 0 })
}

/// The bytes of the arrays, edges (assignments of elements to groups) and tensors of a value.
fn bytes(value: &Value) -> u64 {
    match value {
        Value::Array(_, array) => array.memory_bytes() as u64,
        Value::Edge(_) | Value::Tensor(_) | Value::Tuple(_) => parts(value).iter().map(|(_, bytes)| bytes).sum(),
        _ => 0,
    }
}

/// The arrays, edges (assignments of elements to groups) and tensors in a value: the address and the bytes of each.
fn parts(value: &Value) -> SmallVec<[(usize, u64); 1]> {
    let mut found = SmallVec::new();
    let mut open: SmallVec<[&Value; 4]> = SmallVec::new();
    open.push(value);
    while let Some(value) = open.pop() {
        match value {
            Value::Array(_, array) => found.push((Arc::as_ptr(array).addr(), array.memory_bytes() as u64)),
            Value::Edge(edge) => found.push((Arc::as_ptr(edge).addr(), edge.memory_bytes() as u64)),
            Value::Tensor(tensor) => {
                found.push((std::ptr::from_ref(tensor.data()).addr(), tensor.memory_bytes() as u64));
            }
            Value::Tuple(fields) => open.extend(fields.iter()),
            _ => {}
        }
    }
    found
}

/// Returns the length of the longest array in `values` that takes no memory: its elements are units (values without
/// data), and none is missing. 0 if there is no such array.
pub(crate) fn most_units(values: &[Value]) -> usize {
    let mut open: SmallVec<[&[Value]; 4]> = smallvec![values];
    let mut most = 0;
    while let Some(values) = open.pop() {
        for value in values {
            match value {
                Value::Array(_, array) if matches!(array.data(), ArrayData::Units) && array.presence().is_none() => {
                    most = most.max(array.len());
                }
                Value::Tuple(fields) => open.push(fields),
                _ => {}
            }
        }
    }
    most
}

/// Spare arrays: arrays without other references, whose memory is used again for new arrays.
#[derive(Debug)]
pub(super) struct ArrayPool {
    arrays: Vec<Spare>,
    words: usize,
    /// The most words that spare arrays may have.
    most_words: usize,
    /// The words of memory that this run requested, from which the next run decides whether to free spare memory.
    asked: usize,
    slack: UnusedMemoryCounter,
}

impl Default for ArrayPool {
    fn default() -> Self {
        ArrayPool { arrays: Vec::new(), words: 0, most_words: MOST_WORDS, asked: 0, slack: UnusedMemoryCounter::new() }
    }
}

#[derive(Debug)]
struct Spare {
    array: Arc<Array>,
    words: (Words, Vec<u64>),
}

/// The memory of a spare array, to be used for a new array.
#[derive(Debug, Default)]
pub(super) struct SpareArray {
    /// The words of the array's values, and the words of its presence bits.
    pub(super) words: (Words, Vec<u64>),
    /// The shared pointer (`Arc`) of the spare array, used again for the new array; `None` if there was no spare array.
    pub(super) array: Option<Arc<Array>>,
}

impl ArrayPool {
    /// Drops a value, and keeps the memory of its arrays for later arrays unless the memory is shared. Returns the bytes that were freed or kept,
    /// including the bytes of edges.
    fn add(&mut self, value: Value) -> u64 {
        let mut rest = Vec::new();
        let mut bytes = self.add_one(value, &mut rest);
        while let Some(value) = rest.pop() {
            bytes = bytes.saturating_add(self.add_one(value, &mut rest));
        }
        bytes
    }

    /// Drops one value as `add` does, but appends the fields of a tuple to `rest`. Returns the bytes that were freed or kept.
    fn add_one(&mut self, value: Value, rest: &mut Vec<Value>) -> u64 {
        match value {
            Value::Array(_, array) => return self.add_array(array),
            Value::Edge(edge) => return bytes_of_edge(edge),
            Value::Tensor(tensor) => return bytes_of_tensor(tensor),
            Value::Tuple(fields) => rest.extend(fields.iter().cloned()),
            _ => {}
        }
        0
    }

    fn add_array(&mut self, mut array: Arc<Array>) -> u64 {
        let Some(alone) = Arc::get_mut(&mut array) else { return 0 };
        let bytes = alone.memory_bytes() as u64;
        // The buffers of strings cannot be reused as words, and would count as 0 bytes.
        if matches!(alone.data(), ArrayData::Strings(_)) {
            return bytes;
        }
        let words = alone.take_words();
        let count = words.0.capacity() + words.1.capacity();
        if self.arrays.len() < MOST_ARRAYS && self.words + count <= self.most_words {
            self.words += count;
            self.arrays.push(Spare { array, words });
        }
        bytes
    }

    /// Begins a run. Frees memory that earlier runs did not need.
    fn begin(&mut self, most_words: usize) {
        if self.slack.is_over(self.asked.saturating_mul(size_of::<u64>()), self.words.saturating_mul(size_of::<u64>()))
        {
            self.arrays.clear();
            self.words = 0;
        }
        (self.asked, self.most_words) = (0, most_words);
    }

    /// Returns spare memory for an array with `data` words of values and `presence` words of presence bits: preferably the memory of a spare array
    /// that is large enough, with the least waste. If there are no spare arrays, the returned memory is empty.
    pub(super) fn take(&mut self, data: usize, presence: usize) -> SpareArray {
        self.asked = self.asked.saturating_add(data).saturating_add(presence);
        let waste = |spare: &Spare| {
            let (of_data, of_presence) = (spare.words.0.capacity(), spare.words.1.capacity());
            let is_short = of_data < data || of_presence < presence;
            (is_short, of_data.abs_diff(data) + of_presence.abs_diff(presence))
        };
        let best = (0..self.arrays.len()).min_by_key(|at| waste(&self.arrays[*at]));
        let Some(best) = best else { return SpareArray::default() };
        let Spare { array, words } = self.arrays.swap_remove(best);
        self.words -= words.0.capacity() + words.1.capacity();
        SpareArray { words, array: Some(array) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cembra_runtime::{ArrayKind, Scalar};
    use cembra_value::ScalarValue;

    fn array(elements: i64) -> Value {
        let all =
            Array::from_scalars(Scalar::Int64, (0..elements).map(|at| (at != 1).then_some(ScalarValue::Int64(at))));
        Value::Array(ArrayKind::Dense, Arc::new(all))
    }

    /// Slots are counted only after a part of the limit was made; freed memory is known without counting.
    #[test]
    fn slots_are_looked_at_seldom() {
        let (large, small) = (array(1000), array(2));
        let (of_large, of_small) = (bytes(&large), bytes(&small));
        let mut memory = RunMemory { slots: vec![Slot::Empty; 4], ..RunMemory::default() };
        let mut run = memory.parts(&[], u64::MAX);
        let slots: Vec<ValueId> = (0..4).map(ValueId).collect();
        let most = 3 * of_large;
        let make = |run: &mut RunParts<'_>, slot: usize, value: Value| {
            run.slots.set(slots[slot], value);
            run.count(&slots[slot..=slot], most)
        };
        // An array in two slots counts once.
        assert!(make(&mut run, 0, large.clone()) && make(&mut run, 1, large));
        assert_eq!(run.min_room(most), most - of_large);
        assert!(make(&mut run, 2, small.clone()) && make(&mut run, 3, small));
        // Too little was made since, so one array counts twice.
        run.made += of_large;
        assert_eq!(run.min_room(most), most - 2 * of_large - 2 * of_small);
        assert_eq!(run.exact_room(most), Some(most - of_large - of_small));
        run.release(slots[3]);
        assert_eq!(run.made, of_large + of_small);
        run.release(slots[2]);
        assert_eq!(run.made, of_large);
        // The array that is too large was found by a count.
        run.made = most;
        assert!(make(&mut run, 2, array(2)) && !make(&mut run, 3, array(40_000)));
    }

    #[test]
    fn no_more_memory_is_kept_than_a_quarter_of_the_limit() {
        let mut memory = RunMemory::default();
        // The capacity of an array depends on the alignment of its memory, so two of one length may differ.
        let arrays = [array(100), array(100)];
        memory.parts(&[], 4 * arrays.iter().map(bytes).max().unwrap_or(0));
        arrays.into_iter().for_each(|array| memory.recycle(array));
        assert_eq!(memory.spares.arrays.len(), 1);
        memory.parts(&[], u64::MAX);
        memory.recycle(array(100));
        assert_eq!(memory.spares.arrays.len(), 2);
    }

    #[test]
    fn strings_without_references_are_not_kept() {
        let mut memory = RunMemory::default();
        for scalar in [ScalarValue::Text("thirteen byte".into()), ScalarValue::Bytes(vec![7; 20].into())] {
            let strings = || Value::from(Array::from_scalars(scalar.scalar(), [Some(scalar.clone()), None]));
            memory.recycle(strings());
            memory.recycle(Value::Tuple([strings(), array(3)].into()));
        }
        assert_eq!(memory.spares.arrays.len(), 2);
        assert!(memory.spares.arrays.iter().all(|spare| spare.array.scalar() == Scalar::Int64));
    }

    #[test]
    fn memory_without_references_is_found_again() {
        let mut memory = RunMemory::default();
        let (small, large) = (array(4), array(1000));
        let kept = large.clone();
        memory.recycle(large);
        memory.recycle(small);
        memory.recycle(Value::from(1.0));
        let found = memory.spares.take(900, 1);
        assert!(
            found.array.is_some() && found.words.0.capacity() < 900,
            "an array that has another reference was taken"
        );
        assert_eq!(kept.to_string().len(), array(1000).to_string().len());
        memory.recycle(kept);
        memory.recycle(array(16));
        assert!(memory.spares.take(900, 1).words.0.capacity() >= 1000);
        assert!((16..1000).contains(&memory.spares.take(9, 1).words.0.capacity()));
        assert!(memory.spares.take(9, 1).array.is_none());
        assert_eq!(memory.spares.words, 0);
    }
}
