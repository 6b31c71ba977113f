//! Evaluates models on Rust structs with short lists, such as fields of type `Vec<Item>`, by a `LoopPlan`: compiled
//! code with a loop over the elements of each list. This module passes the address of each list's elements to the plan
//! and copies the plan's outputs to fields. If a field of the elements has the memory layout of a frame slot, the field
//! is read in place. Other fields are converted into columns that the executor owns.

use crate::Error;
use crate::binding::WholeInput;
use crate::binding::fields::{InputField, OutputField, Strided};
use crate::binding::matched::{FieldLoad, MatchedField, MatchedParts, item_of};
use crate::binding::moved_fields::{MovedField, PlainField};
use crate::binding::shapes::{InputList, InputShape, OutputList};
use cembra_engine::{
    Column, ColumnOrigin, InputPath, Lookup, LoopLeaf, LoopList, LoopMemory, LoopOutput, LoopPlan, LoopRoom, MapView,
};
use cembra_runtime::{Context, FramePtr, QType, Slot};
use std::mem::MaybeUninit;
use std::sync::Arc;

/// The copies that a plan for short lists (a `LoopPlan`) needs: from the fields of a row to the plan's memory, and from
/// this memory to output fields.
pub(crate) struct ListTransfers {
    /// The inputs that are not in lists. They are copied to slots of the frame before each call.
    loads: Box<[FieldLoad]>,
    /// The lists of the row, in the plan's order.
    lists: Box<[RowList]>,
    room: LoopRoom,
    /// The dictionaries of the row: the slot of each, its offset in the row, and its lookup function.
    maps: Box<[(u32, usize, FindKey)]>,
    /// The output fields that may reject a value, for example because they cannot be missing.
    checked: Box<[MovedField]>,
    /// The output fields that are not lists and that can hold every value of their slot.
    outputs: Box<[PlainField]>,
    written: Box<[WrittenList]>,
}

/// A function that looks up a key in a dictionary field, such as `InputMap::find`.
///
/// # Safety
/// FIELD-TABLE and COLUMN (`docs/safety.md`): the arguments must be as `InputMap::find` requires.
type FindKey = unsafe fn(*const (), FramePtr, FramePtr) -> Lookup;

/// A list in a row: the field that has it, and the plan's columns for its items.
struct RowList {
    offset: usize,
    list: InputList,
    /// The slot for the number of items; `None` if the plan does not use it.
    count: Option<u32>,
    /// The columns of the plan with one element per item.
    columns: Vec<RowColumn>,
}

/// A column of the plan, and the fields of a row's list that the column's elements come from.
struct RowColumn {
    /// The index of the plan's column.
    column: usize,
    /// The slot for the column's base address; `None` if the plan does not use it. The slot for the stride is separate.
    base: Option<u32>,
    stride: Option<u32>,
    /// The number of bytes per element, for a column that the executor owns.
    size: usize,
    from: ColumnSource,
}

/// The source of the elements of a plan's column: a field of a list's items, or the plan itself.
enum ColumnSource {
    /// The plan reads the field at `offset` of the items in place, because it has the layout of a slot. Each item
    /// begins `apart` bytes after the previous one.
    InPlace { offset: usize, apart: usize },
    /// Before each call, the field at `offset` of each item is converted and copied to a column that the executor owns.
    Moved { offset: usize, apart: usize, field: Box<InputField> },
    /// Before each call, the field at `offset` of each item is converted and copied to a column that the executor owns.
    /// The field is not optional but the model's element type is, so every element is marked as present. `inside` is
    /// the offset of the value in such an element.
    Lifted { offset: usize, apart: usize, field: Box<InputField>, inside: u32 },
    /// The column has no source in the row, because the plan writes it.
    Written,
}

/// A field of the output struct that is a list, and the plan's columns for its items.
struct WrittenList {
    offset: usize,
    list: OutputList,
    /// The index of the plan's list that has the same number of elements.
    count: usize,
    parts: Box<[WrittenPart]>,
}

/// A field of the items of an output list, and the plan's column that it is copied from.
struct WrittenPart {
    field: OutputField,
    column: usize,
    element: QType,
}

impl ListTransfers {
    /// Connects `plan` with the fields for the model's inputs and outputs. `None` if the plan cannot read an input or
    /// write an output; then each run converts all fields to values and evaluates the model on arrays.
    pub(crate) fn of(
        plan: &LoopPlan,
        inputs: &[WholeInput],
        fields: &[OutputField],
        names: &[Arc<str>],
    ) -> Option<ListTransfers> {
        let input = |path: &InputPath| match inputs.get(path.input)? {
            WholeInput::Field(field) => Some(field),
            WholeInput::Read(..) => None,
        };
        let mut bound = PlanBinding { plan, lists: Vec::new() };
        for list in plan.lists() {
            let LoopList::Items(path) = list else { return None };
            let (offset, field) = input(path)?.inside(&path.fields)?;
            let InputShape::List(list) = field.field.shape else { return None };
            bound.lists.push(RowList { offset, list, count: None, columns: Vec::new() });
        }
        let (mut loads, mut maps) = (Vec::new(), Vec::new());
        for (slot, qtype, leaf) in plan.leaves() {
            match leaf {
                LoopLeaf::Value(path) => {
                    let (offset, field) = input(path)?.inside(&path.fields)?;
                    debug_assert_eq!(field.qtype, *qtype);
                    field.add_loads(offset - field.field.offset, *slot, &mut loads);
                }
                LoopLeaf::Count(list) => bound.lists[*list].count = Some(*slot),
                LoopLeaf::Base(column) => bound.column(*column, &input)?.base = Some(*slot),
                LoopLeaf::Stride(column) => bound.column(*column, &input)?.stride = Some(*slot),
                LoopLeaf::Map(path) => {
                    let (offset, field) = input(path)?.inside(&path.fields)?;
                    let InputShape::Map(map) = field.field.shape else { return None };
                    maps.push((*slot, offset, map.find));
                }
            }
        }
        let (mut checked, mut outputs, mut written) = (Vec::new(), Vec::new(), Vec::new());
        for ((field, name), (qtype, output)) in fields.iter().zip(names).zip(plan.outputs()) {
            match output {
                LoopOutput::Value(at) => {
                    let slot = plan.made()[*at].0;
                    match PlainField::of(field, qtype, slot) {
                        Some(plain) => outputs.push(plain),
                        None => checked.push(MovedField::new(field.clone(), name, qtype, slot)),
                    }
                }
                made => written.push(bound.written(field, qtype, made, &input)?),
            }
        }
        // If the items are not structs, copying them would make an array.
        let has_items = |list: &RowList| matches!((list.list.item)().shape, InputShape::Struct(_));
        let is_moved = |column: &RowColumn| matches!(column.from, ColumnSource::Moved { .. });
        let room = match bound.lists.iter().any(|list| has_items(list) || list.columns.iter().any(is_moved)) {
            true => LoopRoom::Items,
            false => LoopRoom::Arrays,
        };
        Some(ListTransfers {
            room,
            loads: loads.into(),
            lists: bound.lists.into(),
            maps: maps.into(),
            checked: checked.into(),
            outputs: outputs.into(),
            written: written.into(),
        })
    }

    /// Evaluates the plan on the row `from` and writes the outputs to `to`. Returns false, and writes nothing, if the plan cannot evaluate this row
    /// or fails.
    ///
    /// # Errors
    /// If a field cannot hold an output's value, or the run's token was cancelled.
    ///
    /// # Safety
    /// FIELD-TABLE (`docs/safety.md`): `from` must point to a row with the fields that the plan was bound to. `to` must point to a struct of the
    /// output's type, or to room for one if `IS_NEW`.
    pub(crate) unsafe fn run<const IS_NEW: bool>(
        &self,
        (plan, memory, context): (&LoopPlan, &mut LoopMemory, &mut Context),
        array_bytes: u64,
        from: *const u8,
        to: *mut u8,
    ) -> Result<bool, Error> {
        for (RowList { offset, list, .. }, place) in
            self.lists.iter().zip(memory.items.iter_mut().zip(&mut memory.counts))
        {
            // SAFETY: FIELD-TABLE, promised by the caller.
            let (first, count) = unsafe { (list.items)(from.add(*offset)) };
            (*place.0, *place.1) = (first as u64, count);
        }
        context.begin_run();
        // SAFETY: FIELD-TABLE, promised by the caller. COLUMN and STRING-VIEW: all inputs are written, of a row that outlives the call.
        let ran = unsafe {
            match plan.takes(&memory.counts, self.room, array_bytes) && self.write(memory, from) {
                true => plan.call(memory, context),
                false => Ok(false),
            }
        };
        context.end_run();
        if !ran? || !self.written.iter().all(|list| list.is_full(memory)) {
            return Ok(false);
        }
        let frame = memory.frame();
        // SAFETY: FIELD-TABLE, promised by the caller; FRAME-SLOT and COLUMN: the call wrote slots and columns.
        unsafe {
            // The fields that may reject a value come first, so that nothing is written if one does.
            for moved in &self.checked {
                moved.read(to.add(moved.field.offset), frame, IS_NEW)?;
            }
            for field in &self.outputs {
                field.read::<IS_NEW>(to, frame);
            }
            for list in &self.written {
                list.write(to.add(list.offset), memory, IS_NEW);
            }
        }
        memory.trim();
        Ok(true)
    }

    /// Writes the inputs of the plan. Returns false if there is not enough memory.
    ///
    /// # Safety
    /// FIELD-TABLE: `from` must be as `run` requires.
    unsafe fn write(&self, memory: &mut LoopMemory, from: *const u8) -> bool {
        let frame = memory.frame();
        // SAFETY: FIELD-TABLE, promised by the caller; FRAME-SLOT: the slots are the plan's, and of these types.
        unsafe {
            self.loads.iter().for_each(|load| load.load(from, frame));
            for (at, list) in self.lists.iter().enumerate() {
                let (items, count) = (memory.items[at] as *const u8, memory.counts[at]);
                if let Some(slot) = list.count {
                    frame.write(Slot::at(slot), count as u64);
                }
                // The plan reads no element of an empty list, so the address of its columns is irrelevant.
                let columns = if count == 0 { &[] } else { &list.columns[..] };
                if !columns.iter().all(|column| column.write(memory, items, count)) {
                    return false;
                }
            }
            if self.maps.is_empty() {
                return true;
            }
            // Views must not move once their addresses are in use.
            memory.maps.clear();
            memory.maps.reserve(self.maps.len());
            for (slot, offset, find) in &self.maps {
                memory.maps.push(MapView { map: from.add(*offset).cast(), find: *find });
                let view = memory.maps.last().map_or(0, |view| std::ptr::from_ref(view) as u64);
                frame.write(Slot::at(*slot), view);
            }
        }
        true
    }

    /// The bytes of heap memory that this struct owns.
    pub(crate) fn memory_bytes(&self) -> usize {
        size_of_val(&*self.loads)
            + size_of_val(&*self.lists)
            + self.lists.iter().map(|list| size_of_val(&*list.columns)).sum::<usize>()
            + size_of_val(&*self.written)
    }
}

impl RowColumn {
    /// Writes the address and stride of the elements of a list of `count` items. Converts the elements first if they do not have the layout of a
    /// frame. Returns false if there is not enough memory for them.
    ///
    /// # Safety
    /// FIELD-TABLE: `items` is the first of `count` items with the column's field. FRAME-SLOT: the memory belongs to the plan. STRING-VIEW: texts
    /// outlive the call.
    unsafe fn write(&self, memory: &mut LoopMemory, items: *const u8, count: usize) -> bool {
        let RowColumn { column, base, stride, size, from } = self;
        // SAFETY: FIELD-TABLE, FRAME-SLOT and STRING-VIEW, promised by the caller; rooms have place for `count` elements.
        unsafe {
            let (first, apart) = match from {
                ColumnSource::InPlace { offset, apart } => (items.wrapping_add(*offset), *apart),
                _ => {
                    let Some(room) = memory.room(*column, *size, count) else { return false };
                    match from {
                        ColumnSource::Moved { offset, apart, field } => {
                            (field.write_all)(items.wrapping_add(*offset), *apart, count, room);
                        }
                        ColumnSource::Lifted { offset, apart, field, inside } => {
                            for at in 0..count {
                                let place = FramePtr::from_raw(room.add(at * size));
                                place.write(Slot::<u8>::at(0), 1);
                                (field.write)(items.add(at * apart + *offset), place, *inside);
                            }
                        }
                        ColumnSource::Written | ColumnSource::InPlace { .. } => {}
                    }
                    (room.cast_const(), *size)
                }
            };
            memory.places[*column] = (first as u64, apart);
            let frame = memory.frame();
            if let Some(slot) = base {
                frame.write(Slot::at(*slot), first as u64);
            }
            if let Some(slot) = stride {
                frame.write(Slot::at(*slot), apart as u64);
            }
        }
        true
    }
}

/// The lists and columns of the plan that are bound to fields so far.
struct PlanBinding<'p> {
    plan: &'p LoopPlan,
    lists: Vec<RowList>,
}

impl PlanBinding<'_> {
    /// Returns the entry for the plan's column with the index `column`, creating it on the first request. `None` if no
    /// field of the row can be the column's source.
    fn column<'f>(
        &mut self,
        column: usize,
        input: &impl Fn(&InputPath) -> Option<&'f MatchedField>,
    ) -> Option<&mut RowColumn> {
        let Column { element, list, from } = self.plan.columns().get(column)?;
        if let Some(at) = self.lists[*list].columns.iter().position(|known| known.column == column) {
            return self.lists[*list].columns.get_mut(at);
        }
        let from = match from {
            ColumnOrigin::Plan => ColumnSource::Written,
            ColumnOrigin::Points(_) | ColumnOrigin::Groups(_) => return None,
            ColumnOrigin::Input(path) => {
                // The path of a column begins with the path of its list. The rest are fields inside of an item.
                let LoopList::Items(InputPath { fields: way, .. }) = &self.plan.lists()[*list] else { return None };
                let inside = path.fields.strip_prefix(&way[..])?;
                let item = item_of(input(path)?.inside(way)?.1)?;
                let (offset, field) = item.inside(inside)?;
                let apart = self.lists[*list].list.stride;
                let moved = |field: &MatchedField| Box::new(field.field.clone());
                match (&field.parts, field.field.in_place, field.qtype == *element) {
                    (MatchedParts::Whole, true, true) => ColumnSource::InPlace { offset, apart },
                    (MatchedParts::Whole, false, true) => ColumnSource::Moved { offset, apart, field: moved(field) },
                    (MatchedParts::Whole, _, false) if field.qtype.to_optional() == *element => {
                        let inside = element.optional_value_offset().unwrap_or(0);
                        ColumnSource::Lifted { offset, apart, field: moved(field), inside }
                    }
                    _ => return None,
                }
            }
        };
        let columns = &mut self.lists[*list].columns;
        columns.push(RowColumn { column, base: None, stride: None, size: element.layout().size as usize, from });
        columns.last_mut()
    }

    /// Binds an output field that is a list to columns of the plan. `None` if the field's items have other types than
    /// the columns, may reject a value, or have defaults.
    fn written<'f>(
        &mut self,
        field: &OutputField,
        qtype: &QType,
        made: &LoopOutput,
        input: &impl Fn(&InputPath) -> Option<&'f MatchedField>,
    ) -> Option<WrittenList> {
        let list = field.list.filter(|_| field.qtype == *qtype)?;
        let fields = (list.fields)();
        let columns: Vec<usize> = match made {
            LoopOutput::Column(column) => vec![*column],
            LoopOutput::Tuple(parts) => {
                let column = |part: &LoopOutput| if let LoopOutput::Column(at) = part { Some(*at) } else { None };
                parts.iter().map(column).collect::<Option<_>>()?
            }
            LoopOutput::Value(_) => return None,
        };
        if columns.len() != fields.len() || fields.iter().any(|field| !field.expected.is_empty()) {
            return None;
        }
        let mut parts = Vec::with_capacity(fields.len());
        for (column, field) in columns.iter().zip(fields) {
            self.column(*column, input)?;
            let element = self.plan.columns()[*column].element.clone();
            if field.qtype.scalar().is_none() || field.qtype.scalar() != element.scalar() || field.default.is_some() {
                return None;
            }
            parts.push(WrittenPart { field, column: *column, element });
        }
        let count = self.plan.columns()[*columns.first()?].list;
        Some(WrittenList { offset: field.offset, list, count, parts: parts.into() })
    }
}

impl WrittenList {
    /// Returns true if the fields of the items can hold all elements: where a field is not optional, no element may be
    /// missing.
    fn is_full(&self, memory: &LoopMemory) -> bool {
        let count = memory.counts[self.count];
        if count == 0 {
            return true;
        }
        self.parts.iter().filter(|part| part.element.is_optional() && !part.field.qtype.is_optional()).all(|part| {
            let (base, stride) = memory.places[part.column];
            // SAFETY: COLUMN: the column has `count` elements, and an optional begins with its presence.
            (0..count).all(|at| unsafe { *((base as *const u8).add(at * stride)) != 0 })
        })
    }

    /// Writes the list to the field of an output struct: sets its length, and copies the plan's columns to the fields
    /// of its items.
    ///
    /// # Safety
    /// FIELD-TABLE: `field` points to the field, or to room for it if `is_new`. COLUMN: the call wrote the columns. STRING-VIEW: texts are alive.
    unsafe fn write(&self, field: *mut u8, memory: &LoopMemory, is_new: bool) {
        let (count, apart) = (memory.counts[self.count], self.list.stride);
        // SAFETY: FIELD-TABLE, COLUMN and STRING-VIEW, promised by the caller; each item gets all of its fields.
        unsafe {
            let (first, there) = (self.list.room)(field, is_new, count);
            for (from, to, is_new) in [(0, there, false), (there, count, true)] {
                if from == to {
                    continue;
                }
                for part in &self.parts {
                    let (base, stride) = memory.places[part.column];
                    let items = Strided { first: first.add(from * apart + part.field.offset), byte_stride: apart };
                    let elements = Strided { first: (base as *const u8).add(from * stride), byte_stride: stride };
                    part.write(items, elements, to - from, is_new);
                }
            }
            (self.list.fill)(field, count);
        }
    }
}

impl WrittenPart {
    /// Copies `count` elements of a column, from `from` on, to the fields `to` of a list's items.
    ///
    /// # Safety
    /// COLUMN: elements of the type are there, and are present if the field cannot express a missing one. FIELD-TABLE: `to` are such fields, or room
    /// for them if `is_new`. STRING-VIEW: their texts are alive.
    unsafe fn write(&self, to: Strided<*mut u8>, mut from: Strided<*const u8>, count: usize, is_new: bool) {
        // SAFETY: COLUMN, FIELD-TABLE and STRING-VIEW, promised by the caller.
        unsafe {
            match (self.element.is_optional(), self.field.qtype.is_optional()) {
                (false, true) => {
                    let inside = self.field.qtype.optional_value_offset().unwrap_or(0);
                    for at in 0..count {
                        let mut room = MaybeUninit::<[u64; 3]>::uninit();
                        let (place, size) = (FramePtr::from_raw(room.as_mut_ptr().cast()), self.element.layout().size);
                        place.write(Slot::<u8>::at(0), 1);
                        let element = FramePtr::from_raw(from.first.add(at * from.byte_stride).cast_mut());
                        element.copy_to(0, place, inside, size);
                        let to = Strided { first: to.first.add(at * to.byte_stride), ..to };
                        (self.field.read_all)(to, Strided { first: place.as_ptr(), byte_stride: 0 }, 1, is_new);
                    }
                }
                (true, false) => {
                    from.first = from.first.add(self.element.optional_value_offset().unwrap_or(0) as usize);
                    (self.field.read_all)(to, from, count, is_new);
                }
                _ => (self.field.read_all)(to, from, count, is_new),
            }
        }
    }
}
