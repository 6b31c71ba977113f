//! Models that contain arrays, compiled to one plan with loops over elements. Such a plan is used for short lists, on
//! which vectorised loops over arrays are slower. This file has the plan, the memory of its columns, and its runs on
//! values. A caller whose elements are stored elsewhere, such as in Rust structs, writes the plan's inputs itself and
//! calls the plan. A run that fails gives no reason: the caller then evaluates the array program instead, and returns
//! the result or error of that program.

use crate::options::choice::Backend;
use crate::options::compile_options::TimedOptions;
use crate::options::metrics::{Event, EventReporter};
use crate::scalar::frame_model::FrameModel;
use crate::stages::plan;
use crate::stages::sites::operator_name;
use cembra_array::{
    ArrayProgram, Column, ColumnOrigin, InputPath, LoopFailure, LoopLeaf, LoopList, LoopModel, LoopOutput, loops,
};
use cembra_expr::Program;
use cembra_ops::column::{Lookup, MapView};
use cembra_plan::Plan;
use cembra_prepare::{TypedModel, prepare_part};
use cembra_runtime::{Context, FaultKind, Frame, FramePtr, LineKind, Listing, QType, Scalar, Slot};
use cembra_value::{Array, ArrayBuilder, ArrayData, EdgeForm, Error, Limits, RunTerms, Value, ValueRef};
use std::borrow::Cow;
use std::cmp::Ordering;
use std::sync::Arc;

/// The storage of the elements of a run's lists: in arrays, or in structs and texts. The storage decides up to how many elements a plan with loops is
/// used; longer lists are evaluated by vectorised loops over arrays.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LoopRoom {
    /// The elements are in arrays, or become arrays by a copy. Vectorised loops over arrays can begin at once, and are faster from about 64 elements
    /// on.
    Arrays,
    /// The elements are in fields of structs, or in a text. Making arrays from them takes longer than the plan with loops, for any number of
    /// elements.
    Items,
}

impl LoopRoom {
    /// The most elements, in all lists of a run together, for which a plan with loops is used. Lists that must have equal lengths count once.
    pub(crate) const fn most(self) -> usize {
        match self {
            LoopRoom::Arrays => 64,
            LoopRoom::Items => usize::MAX,
        }
    }
}

/// A compiled plan that evaluates a model on short lists, with a loop over the elements of each list.
#[derive(Debug)]
pub struct LoopPlan {
    model: FrameModel,
    /// The inputs of the plan: the slot (offset in the frame), the type and the meaning of each.
    leaves: Box<[(u32, QType, LoopLeaf)]>,
    lists: Box<[LoopList]>,
    /// For each list, the index of the first list that must have the same length.
    spaces: Box<[usize]>,
    columns: Box<[Column]>,
    /// For each column: its list, the bytes of an element, and whether it takes memory even if all inputs are arrays.
    sizes: Box<[(usize, u64, bool)]>,
    /// The bytes of one element from every column together.
    bytes_of_all: u64,
    /// The slot (offset in the frame) and the type of each output of the plan.
    made: Box<[(u32, QType)]>,
    /// The type of each output of the program, and its source: a value or a column of the plan.
    outputs: Box<[(QType, LoopOutput)]>,
}

/// The memory that all runs of a [`LoopPlan`] use: a frame (the plan's scalars), the columns, and the lengths of the
/// lists.
#[derive(Debug)]
pub struct LoopMemory {
    frame: Frame,
    /// The number of elements in each list of the run.
    pub counts: Box<[usize]>,
    /// The address of the first item (such as a Rust struct) of each list, for callers whose lists are not arrays.
    pub items: Box<[u64]>,
    /// The elements of columns that are not stored by the caller.
    columns: Vec<Vec<u64>>,
    /// True if a column may be larger than `MOST_KEPT`.
    is_large: bool,
    /// The address of the first element of each column and the stride in bytes, for callers that read the columns after the call.
    pub places: Box<[(u64, usize)]>,
    /// The dictionaries that are inputs of the run.
    pub maps: Vec<MapView>,
    /// The dictionaries that the inputs of a call contain as values, with the order of their keys.
    values: Vec<ValueMap>,
}

impl LoopMemory {
    /// The frame (memory of scalars) that the plan reads its inputs from and writes its outputs to.
    pub fn frame(&mut self) -> FramePtr {
        self.frame.ptr()
    }

    /// Returns memory for `count` elements of `size` bytes each of the column with index `column`; `None` if the size overflows.
    #[inline]
    pub fn room(&mut self, column: usize, size: usize, count: usize) -> Option<*mut u8> {
        let column = &mut self.columns[column];
        let made = room(column, size, count);
        self.is_large |= column.len() > MOST_KEPT / size_of::<u64>();
        made
    }

    /// The address of the first element of the output column with index `column`.
    #[must_use]
    pub fn written(&self, column: usize) -> *const u8 {
        self.columns[column].as_ptr().cast()
    }

    /// Frees the memory of large columns after a run, so that it is not kept for the next one.
    pub fn trim(&mut self) {
        if !std::mem::take(&mut self.is_large) {
            return;
        }
        for column in self.columns.iter_mut().filter(|column| column.capacity() * size_of::<u64>() > MOST_KEPT) {
            *column = Vec::new();
        }
    }

    /// The bytes of memory that are kept between runs: frame, columns and dictionaries.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let columns: usize = self.columns.iter().map(|column| column.capacity() * size_of::<u64>()).sum();
        let orders: usize = self.values.iter().map(|map| map.order.capacity() * size_of::<u32>()).sum();
        size_of::<LoopMemory>() + self.frame.size() + columns + orders
    }
}

/// The most bytes of a column, or of the order of a dictionary, that are kept for the next run.
const MOST_KEPT: usize = 1 << 20;

#[inline]
fn room(memory: &mut Vec<u64>, size: usize, count: usize) -> Option<*mut u8> {
    let words = count.checked_mul(size)?.div_ceil(size_of::<u64>());
    if memory.len() < words {
        grow(memory, words);
    }
    Some(memory.as_mut_ptr().cast())
}

#[cold]
#[inline(never)]
fn grow(memory: &mut Vec<u64>, words: usize) {
    memory.resize(words, 0);
}

impl LoopPlan {
    /// Makes the plan with loops for a program; the inner `Err` has the reason if the program has no such plan.
    ///
    /// # Errors
    /// If a limit is exceeded.
    pub(crate) fn of(
        program: &Arc<Program>,
        arrays: &ArrayProgram,
        parts: &[TypedModel],
        options: &TimedOptions,
    ) -> Result<Result<LoopPlan, LoopFailure>, Error> {
        let LoopModel { model, leaves, lists, spaces, columns, outputs } = match loops(arrays, parts) {
            Ok(made) => made,
            Err(unlooped) => return Ok(Err(unlooped)),
        };
        let plan = plan_of(model, program, options)?;
        let watch = EventReporter::new(options.metrics.as_ref(), options.name.clone());
        let backend = if options.backend == Backend::Tiered { Backend::Auto } else { options.backend };
        let (model, reason) = FrameModel::new(program, &plan, None, backend, options, &watch)?;
        if let Some(reason) = &reason {
            watch.record(&Event::Fallback { reason });
        }
        let types = arrays.outputs().iter().map(|(_, value)| arrays.qtype(*value).clone());
        let size = |column: &Column| {
            let is_made = matches!(column.from, ColumnOrigin::Plan | ColumnOrigin::Groups(_));
            (column.list, u64::from(column.element.layout().size), is_made)
        };
        let sizes: Box<[_]> = columns.iter().map(size).collect();
        Ok(Ok(LoopPlan {
            model,
            leaves: leaves_of(&plan, &leaves),
            lists: lists.into(),
            spaces: spaces.into(),
            bytes_of_all: sizes.iter().map(|(_, bytes, _)| bytes).sum(),
            sizes,
            columns: columns.into(),
            made: plan.outputs().iter().map(|output| slot_of(&plan, output.value)).collect(),
            outputs: types.zip(outputs).collect(),
        }))
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.model.memory_bytes() + size_of_val(&*self.leaves) + size_of_val(&*self.columns)
    }

    /// The inputs of the plan: the slot (offset in the frame), the type and the meaning of each, such as the address of
    /// a column or the length of a list.
    #[must_use]
    pub fn leaves(&self) -> &[(u32, QType, LoopLeaf)] {
        &self.leaves
    }

    /// The lists that the plan's loops go over.
    #[must_use]
    pub fn lists(&self) -> &[LoopList] {
        &self.lists
    }

    /// The columns that a run of the plan reads or writes; a column is the elements of one array in memory.
    #[must_use]
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// The slot (offset in the frame) and the type of each output of the plan.
    #[must_use]
    pub fn made(&self) -> &[(u32, QType)] {
        &self.made
    }

    /// The type of each output of the program, and its source: a value or a column of the plan.
    #[must_use]
    pub fn outputs(&self) -> &[(QType, LoopOutput)] {
        &self.outputs
    }

    /// Makes the memory that runs of the plan use.
    #[must_use]
    pub fn memory(&self) -> LoopMemory {
        LoopMemory {
            frame: self.model.frame(),
            counts: vec![0; self.lists.len()].into(),
            items: vec![0; self.lists.len()].into(),
            columns: self.columns.iter().map(|_| Vec::new()).collect(),
            is_large: false,
            places: vec![(0, 0); self.columns.len()].into(),
            maps: Vec::new(),
            values: Vec::new(),
        }
    }

    /// Returns true if the plan can be used for lists of the lengths `counts`: the lengths are equal where the model
    /// requires equal lengths, the number of elements is within the limit of `room`, and the columns take at most
    /// `array_bytes` bytes. With `LoopRoom::Items` the bytes of all columns count; otherwise only those of columns that
    /// are not stored in arrays of the caller.
    #[inline]
    #[must_use]
    pub fn takes(&self, counts: &[usize], room: LoopRoom, array_bytes: u64) -> bool {
        let mut total = 0_usize;
        for ((list, first), count) in self.spaces.iter().enumerate().zip(counts) {
            if list == *first {
                total = total.saturating_add(*count);
            } else if counts[*first] != *count {
                return false;
            }
        }
        let are_few = (total as u64).saturating_mul(self.bytes_of_all) <= array_bytes;
        total <= room.most() && (are_few || self.bytes(counts, room) <= array_bytes)
    }

    /// The bytes that the columns take in a run on lists of the lengths `counts`.
    fn bytes(&self, counts: &[usize], room: LoopRoom) -> u64 {
        let taken = self.sizes.iter().filter(|(.., is_written)| *is_written || room == LoopRoom::Items);
        taken.fold(0, |all, (list, size, _)| all.saturating_add((counts[*list] as u64).saturating_mul(*size)))
    }

    /// Runs the plan on one value per input of the program, each of exactly the input's type, and appends the outputs to
    /// `results`. Returns false, and appends nothing, if the plan cannot be used for these values, or fails.
    ///
    /// # Errors
    /// If the run was cancelled, or its deadline or time limit was reached.
    pub(crate) fn run(
        &self,
        (values, room): (&[Value], LoopRoom),
        terms: &RunTerms<'_>,
        limits: &Limits,
        memory: &mut Option<Box<(LoopMemory, Context)>>,
        results: &mut Vec<Value>,
    ) -> Result<bool, Error> {
        let memory = memory.get_or_insert_with(|| (self.memory(), limits.context()).into());
        let (memory, context) = &mut **memory;
        for (list, count) in self.lists.iter().zip(&mut memory.counts) {
            let Some(found) = len(values, list) else { return Ok(false) };
            *count = found;
        }
        let limits = terms.limits.unwrap_or(limits);
        if !self.takes(&memory.counts, room, limits.array_bytes) || !self.write(values, memory) {
            return Ok(false);
        }
        limits.hold_in(context);
        context.set_cancellation(terms.token.cloned());
        // SAFETY: COLUMN and STRING-VIEW: all inputs are written, of values that outlive the call.
        if !unsafe { self.call(memory, context)? } {
            return Ok(false);
        }
        let made = self.outputs.iter().map(|(qtype, output)| self.output(qtype, output, values, memory));
        let Some(made) = made.collect::<Option<Vec<Value>>>() else { return Ok(false) };
        results.extend(made);
        Ok(true)
    }

    /// Writes the inputs of the plan to its frame; returns false if a value does not fit.
    fn write(&self, values: &[Value], memory: &mut LoopMemory) -> bool {
        let LoopMemory { frame, counts, columns, maps, values: kept, .. } = memory;
        let frame = frame.ptr();
        // Views must not move once their addresses are known.
        maps.clear();
        maps.reserve(self.leaves.len());
        kept.resize_with(self.leaves.len(), ValueMap::default);
        for (slot, qtype, leaf) in &self.leaves {
            let word = match leaf {
                LoopLeaf::Value(path) => {
                    let Some(value) = inside(values, path).filter(|value| value.is_of(qtype)) else { return false };
                    // SAFETY: FRAME-SLOT: the slot is of this type. STRING-VIEW: the values outlive the call.
                    unsafe { value.write_to(frame, *slot) };
                    continue;
                }
                LoopLeaf::Base(at) => {
                    let Some(base) = self.base(*at, values, counts, &mut columns[*at]) else { return false };
                    base as u64
                }
                LoopLeaf::Stride(at) => u64::from(self.columns[*at].element.layout().size),
                LoopLeaf::Count(list) => counts[*list] as u64,
                LoopLeaf::Map(path) => {
                    let map = &mut kept[maps.len()];
                    if !inside(values, path).is_some_and(|value| map.hold(value)) {
                        return false;
                    }
                    maps.push(MapView { map: std::ptr::from_ref(map).cast(), find: ValueMap::find });
                    maps.last().map_or(0, |view| std::ptr::from_ref(view) as u64)
                }
            };
            // SAFETY: FRAME-SLOT: the slot is of a type of this width.
            unsafe { frame.write(Slot::at(*slot), word) };
        }
        true
    }

    /// The address of a column's first element, in the array that contains the elements or in `memory`; `None` if the value
    /// does not fit.
    fn base(&self, at: usize, values: &[Value], counts: &[usize], memory: &mut Vec<u64>) -> Option<*mut u8> {
        let Column { element, list, from } = &self.columns[at];
        let (count, size) = (counts[*list], element.layout().size as usize);
        let array = match from {
            ColumnOrigin::Plan => None,
            ColumnOrigin::Input(path) => match inside(values, path)? {
                Value::Array(_, array) if array.len() == count => Some(array),
                _ => return None,
            },
            ColumnOrigin::Points(path) => return Some(split_points(values, path)?.as_ptr().cast_mut().cast()),
            ColumnOrigin::Groups(path) => {
                let groups = room(memory, size, count)?;
                for (group, ends) in (0..).zip(split_points(values, path)?.windows(2)) {
                    memory[ends[0] as usize..ends[1] as usize].fill(group);
                }
                return Some(groups);
            }
        };
        if let (Some(array), QType::Scalar(_)) = (array, element) {
            if array.first_missing().is_some() {
                return None;
            }
            if let ArrayData::Numbers(words) = array.data() {
                return Some(words.as_ptr().cast_mut().cast());
            }
        }
        let base = room(memory, size, count)?;
        let Some(array) = array else { return Some(base) };
        if let (ArrayData::Numbers(words), 16) = (array.data(), size) {
            // An optional of 64 bits is two words; the first byte tells whether it is present.
            let places = memory.as_chunks_mut::<2>().0.chunks_mut(64).zip(words[..count].chunks(64));
            for (at, (places, words)) in places.enumerate() {
                let mut present = array.presence().map_or(u64::MAX, |bits| bits[at]);
                for (place, word) in places.iter_mut().zip(words) {
                    *place = [(present & 1).to_le(), *word];
                    present >>= 1;
                }
            }
            return Some(base);
        }
        for at in 0..array.len() {
            let place = FramePtr::from_raw(base.wrapping_add(at * size));
            // SAFETY: FRAME-SLOT: there is room for as many elements of this type. STRING-VIEW: the array outlives the call.
            if !unsafe { element_of(array, at).write_to(element, place, 0) } {
                return None;
            }
        }
        Some(base)
    }

    /// Calls the plan. The caller must have written all inputs to the frame of `memory`. Returns false if an element fails.
    ///
    /// # Errors
    /// If the run was cancelled, or its deadline or time limit was reached.
    ///
    /// # Safety
    /// COLUMN: each column must have as many elements as its list. Each dictionary whose address is an input must stay in memory until the call ends.
    /// STRING-VIEW: texts must outlive the call.
    #[inline]
    pub unsafe fn call(&self, memory: &mut LoopMemory, context: &mut Context) -> Result<bool, Error> {
        let frame = memory.frame.ptr();
        self.model.begin(context);
        // SAFETY: CALL: the function is of the plan, bound in its frame, which was made from the plan's template. COLUMN, promised by the
        // caller.
        let status = unsafe { self.model.runnable.function().call(frame, frame, frame, context) };
        match self.model.end(status, context) {
            Err(ended) if ended.fault_kind().is_some_and(FaultKind::is_of_token) => Err(ended),
            Err(_) => Ok(false),
            Ok(()) => {
                context.count_evaluation();
                Ok(true)
            }
        }
    }

    /// Reads an output of the program; `None` if the value read does not have the output's type.
    fn output(&self, qtype: &QType, output: &LoopOutput, values: &[Value], memory: &mut LoopMemory) -> Option<Value> {
        // Types nest only as deep as the text that spelled them.
        match (output, qtype) {
            (LoopOutput::Value(at), _) => {
                let (slot, qtype) = &self.made[*at];
                // SAFETY: FRAME-SLOT: the call wrote the output. STRING-VIEW: the memory that its texts view is still alive.
                Some(unsafe { Value::read_from(qtype, memory.frame.ptr(), *slot) })
            }
            (LoopOutput::Tuple(parts), QType::Tuple(fields)) => {
                let parts = parts.iter().zip(fields.iter()).map(|(part, of)| self.output(of, part, values, memory));
                Some(Value::Tuple(fields.with(parts.collect::<Option<Vec<_>>>()?)))
            }
            (LoopOutput::Column(at), QType::Array(kind, scalar)) => {
                let Column { element, list, from } = &self.columns[*at];
                if let ColumnOrigin::Input(path) = from {
                    return inside(values, path).cloned();
                }
                let (count, size) = (memory.counts[*list], element.layout().size as usize);
                let base: *mut u8 = memory.columns[*at].as_mut_ptr().cast();
                let mut made = ArrayBuilder::new(*scalar, count);
                if let Some(ty) = scalar.machine_type() {
                    let inside = element.optional_value_offset();
                    for at in 0..count {
                        let place = FramePtr::from_raw(base.wrapping_add(at * size));
                        // SAFETY: COLUMN: the plan has written this element, which is a number or a flag. FRAME-SLOT: the presence of
                        // an optional is at its start.
                        made.push_bits(unsafe {
                            let is_present = inside.is_none() || place.read(Slot::<u8>::at(0)) != 0;
                            is_present.then(|| place.read_bits(ty, inside.unwrap_or(0)))
                        });
                    }
                    return Some(Value::Array(*kind, made.finish().into()));
                }
                for at in 0..count {
                    let place = FramePtr::from_raw(base.wrapping_add(at * size));
                    // SAFETY: COLUMN: the plan has written this element. STRING-VIEW: the memory that texts view is still
                    // alive.
                    let value = unsafe { ValueRef::read_from(element, place, 0) };
                    match &value {
                        ValueRef::Text(text) => made.push_text(Some(text)),
                        ValueRef::Bytes(bytes) => made.push_bytes(Some(bytes)),
                        other => made.push(other.to_value(&QType::Scalar(*scalar)).as_ref().and_then(Value::as_scalar)),
                    }
                }
                Some(Value::Array(*kind, made.finish().into()))
            }
            _ => None,
        }
    }
}

fn plan_of(model: TypedModel, program: &Program, options: &TimedOptions) -> Result<Plan, Error> {
    plan(&prepare_part(model, program, &options.prepare)?, program, options)
}

/// The text of the plan with loops that evaluates a program on short lists, or the reason why there is no such plan.
pub(crate) fn listing(
    program: &Program,
    arrays: &ArrayProgram,
    parts: &[TypedModel],
    options: &TimedOptions,
) -> Result<Listing, Error> {
    Ok(match loops(arrays, parts) {
        Ok(made) => plan_of(made.model, program, options)?.listing(),
        Err(LoopFailure { origin, why }) => {
            let name = origin.map(|origin| format!(" because of {}", operator_name(&program.graph, origin)));
            let why = format_args!("{NONE}{}: {why}", name.as_deref().unwrap_or_default());
            let mut listing = Listing::new();
            listing.push(LineKind::Note, origin.map(|origin| origin.index() as u32), why);
            listing
        }
    })
}

/// The beginning of a listing that gives the reason why there is no plan.
pub(crate) const NONE: &str = "no plan with loops";

fn slot_of(plan: &Plan, value: cembra_plan::ValueId) -> (u32, QType) {
    let value = plan.value(value);
    (value.slot, value.qtype.clone())
}

/// The inputs of a plan: the slot (offset in the frame), the type and the meaning of each.
fn leaves_of(plan: &Plan, leaves: &[LoopLeaf]) -> Box<[(u32, QType, LoopLeaf)]> {
    let inputs = plan.inputs().iter().map(|input| {
        let (slot, qtype) = slot_of(plan, input.value);
        (slot, qtype, leaves[input.leaf as usize].clone())
    });
    inputs.collect()
}

/// The value at a path; `None` if the path leads to no value.
fn inside<'v>(values: &'v [Value], path: &InputPath) -> Option<&'v Value> {
    let mut value = values.get(path.input)?;
    for field in &path.fields {
        match value {
            Value::Tuple(fields) => value = fields.get(*field as usize)?,
            _ => return None,
        }
    }
    Some(value)
}

/// The number of elements of the list `list` in `values`; `None` if the value is not a list, or is an edge (an
/// assignment of elements to groups) without split points.
fn len(values: &[Value], list: &LoopList) -> Option<usize> {
    match list {
        LoopList::Items(path) => match inside(values, path)? {
            Value::Array(_, array) => Some(array.len()),
            list => list.list_len(),
        },
        LoopList::EdgeElements(path) => split_points(values, path)?.last().map(|last| *last as usize),
        LoopList::EdgeGroups(path) => split_points(values, path)?.len().checked_sub(1),
    }
}

/// The split points of the edge (the assignment of elements to groups) at a path; `None` if the edge has none.
fn split_points<'v>(values: &'v [Value], path: &InputPath) -> Option<&'v [i64]> {
    match inside(values, path)? {
        Value::Edge(edge) => match edge.form() {
            EdgeForm::Splits(points) => Some(points),
            _ => None,
        },
        _ => None,
    }
}

/// The element of an array at an index.
fn element_of(array: &Array, at: usize) -> ValueRef<'_> {
    if !array.is_present(at) {
        return ValueRef::Missing;
    }
    match array.data() {
        ArrayData::Strings(_) if array.scalar() == Scalar::Text => array.text(at).map_or(ValueRef::Missing, text),
        ArrayData::Strings(_) => array.string(at).map_or(ValueRef::Missing, bytes),
        _ => array.get(at).map_or(ValueRef::Missing, |value| ValueRef::from_bits(array.scalar(), value.bits())),
    }
}

const fn text(text: &str) -> ValueRef<'_> {
    ValueRef::Text(Cow::Borrowed(text))
}

const fn bytes(bytes: &[u8]) -> ValueRef<'_> {
    ValueRef::Bytes(Cow::Borrowed(bytes))
}

/// The arrays of the keys and the values of a dictionary; `None` if `map` is not a dictionary.
fn parts(map: &Value) -> Option<[&Array; 2]> {
    let Value::Tuple(fields) = map else { return None };
    match [fields.first()?, fields.get(1)?] {
        [Value::Array(_, keys), Value::Array(_, values)] if keys.len() == values.len() => Some([keys, values]),
        _ => None,
    }
}

/// A dictionary that an input of a call contains as a value, with the order of its keys.
#[derive(Debug)]
struct ValueMap {
    map: *const Value,
    /// The indices of the keys in ascending order of keys; empty if the keys are stored in that order.
    order: Vec<u32>,
}

impl Default for ValueMap {
    fn default() -> Self {
        ValueMap { map: std::ptr::null(), order: Vec::new() }
    }
}

// SAFETY: COLUMN: the value is only read in the call that it was held for.
unsafe impl Send for ValueMap {}

impl ValueMap {
    /// Prepares a dictionary for a call. Returns false if a key is missing or occurs twice; the array program must then
    /// evaluate the call.
    fn hold(&mut self, map: &Value) -> bool {
        self.map = map;
        self.order.clear();
        if self.order.capacity() > MOST_KEPT / size_of::<u32>() {
            self.order = Vec::new();
        }
        let Some([keys, _]) = parts(map) else { return false };
        let is_before = |one: usize, other: usize| compare(keys, one, &Key::of(keys, other)) == Ordering::Less;
        if keys.first_missing().is_some() {
            return false;
        }
        if (1..keys.len()).all(|at| is_before(at - 1, at)) {
            return true;
        }
        let Ok(count) = u32::try_from(keys.len()) else { return false };
        self.order.extend(0..count);
        self.order.sort_unstable_by(|one, other| compare(keys, *one as usize, &Key::of(keys, *other as usize)));
        self.order.windows(2).all(|pair| is_before(pair[0] as usize, pair[1] as usize))
    }

    /// Looks up a key by binary search, and writes its value to `found` unless `found` is null.
    ///
    /// # Safety
    /// COLUMN, as [`MapView::find`] says: `map` must be a `ValueMap` that `hold` has prepared for this call.
    unsafe fn find(map: *const (), key: FramePtr, found: FramePtr) -> Lookup {
        // SAFETY: COLUMN, promised by the caller.
        let ValueMap { map, order } = unsafe { &*map.cast::<ValueMap>() };
        // SAFETY: COLUMN, promised by the caller.
        let Some([keys, values]) = parts(unsafe { &**map }) else { return Lookup::Failed };
        // SAFETY: COLUMN, promised by the caller: the key is of the type of the keys.
        let value = unsafe { ValueRef::read_from(&QType::Scalar(keys.scalar()), key, 0) };
        let key = match &value {
            ValueRef::Text(text) => Key::String(text.as_bytes()),
            ValueRef::Bytes(bytes) => Key::String(bytes),
            _ => match keys.scalar().machine_type() {
                // SAFETY: COLUMN, promised by the caller: the key is of this type.
                Some(ty) => Key::Number(unsafe { key.read_bits(ty, 0) }),
                None => return Lookup::Failed,
            },
        };
        let (mut from, mut to) = (0, keys.len());
        while from < to {
            let middle = from.midpoint(to);
            let at = order.get(middle).map_or(middle, |at| *at as usize);
            match compare(keys, at, &key) {
                Ordering::Less => from = middle + 1,
                Ordering::Greater => to = middle,
                Ordering::Equal => {
                    if !found.as_ptr().is_null() {
                        // SAFETY: COLUMN, promised by the caller: there is room for an optional of the values' type.
                        let written =
                            unsafe { element_of(values, at).write_to(&QType::Optional(values.scalar()), found, 0) };
                        return if written { Lookup::Found } else { Lookup::Failed };
                    }
                    return Lookup::Found;
                }
            }
        }
        Lookup::Absent
    }
}

/// Compares an element with a key of its type.
fn compare(array: &Array, at: usize, key: &Key<'_>) -> Ordering {
    match key {
        Key::String(key) => array.string(at).unwrap_or_default().cmp(key),
        Key::Number(key) => {
            let bits = array.get(at).map_or(0, |value| value.bits());
            match array.scalar().representation() {
                Scalar::Int32 => (bits as i32).cmp(&(*key as i32)),
                Scalar::Int64 => bits.cast_signed().cmp(&key.cast_signed()),
                _ => bits.cmp(key),
            }
        }
    }
}

/// A key to look up in a dictionary.
enum Key<'k> {
    String(&'k [u8]),
    Number(u64),
}

impl<'k> Key<'k> {
    fn of(keys: &'k Array, at: usize) -> Key<'k> {
        match keys.string(at) {
            Some(string) => Key::String(string),
            None => Key::Number(keys.get(at).map_or(0, |value| value.bits())),
        }
    }
}
