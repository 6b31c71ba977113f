//! Reads a JSON text of inputs in one pass. Its values are stored in slots of a frame, columns of lists, and dictionaries. Every field of an input's
//! type is read, whether the model needs it or not; other keys are skipped. Errors have no message: the caller reads the text again, value by value,
//! to get one.

use super::super::place::{Text as JsonText, ValueStart, one_pass_error};
use super::super::reading::{ScalarInto, ScalarSink};
use super::map::JsonMap;
use crate::ValueRef;
use crate::binding::matched::OptionalSlot;
use cembra_engine::{Column, ColumnOrigin, InputPath, LoopLeaf, LoopList, LoopMemory, LoopPlan};
use cembra_runtime::{FramePtr, Names, QType, Scalar, Slot, Text};
use cembra_value::ScalarValue;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use smallvec::SmallVec;
use std::collections::HashMap;
use std::fmt;

/// The destination of a JSON value that is read: where it is stored, by the type of the input.
#[derive(Debug)]
pub(super) enum Target {
    /// The value is a scalar or an optional scalar.
    Scalar(ScalarTarget),
    /// The value is a struct.
    Struct(ObjectTarget),
    /// The value is an optional struct: its slot, `None` if the model does not need it, and the destinations of its fields.
    Optional(Option<OptionalSlot>, ObjectTarget),
    /// The value is a list: its index in the plan, `None` if the model does not need it, and the destination of an element.
    List(Option<usize>, Box<Target>),
    /// The value is a dictionary: its index among the dictionaries of all inputs.
    Map(usize),
}

/// The destination of a scalar, and the scalar's layout there.
#[derive(Debug)]
pub(super) struct ScalarTarget {
    qtype: QType,
    scalar: Scalar,
    /// The bytes of a value, including its presence.
    size: usize,
    /// The offset of the scalar in the value: after its presence, if it has one.
    inside: u32,
    place: ScalarPlace,
}

impl ScalarTarget {
    fn of(qtype: QType, place: ScalarPlace) -> Option<ScalarTarget> {
        let inside = qtype.optional_value_offset().unwrap_or(0);
        Some(ScalarTarget { scalar: qtype.scalar()?, size: qtype.layout().size as usize, inside, place, qtype })
    }
}

/// The location that a scalar is written to: a slot of the frame, or an element of a column.
#[derive(Clone, Copy, Debug)]
enum ScalarPlace {
    /// The scalar is stored in the frame's slot at this offset.
    Slot(u32),
    /// The scalar is stored as the current element of the column with this index.
    Column(usize),
    /// The scalar is checked but not stored, because the model does not need it.
    Nowhere,
}

/// The destinations of the fields of a JSON object, by name.
#[derive(Debug)]
pub(super) struct ObjectTarget {
    pub(super) names: Names,
    pub(super) targets: Vec<Target>,
}

/// Finds the slots, columns and lists of a compiled plan by their path in the inputs, while targets are made. The time
/// of a search does not depend on the number of inputs.
pub(super) struct Plan<'p> {
    loops: Option<&'p LoopPlan>,
    /// The slots of the values that the plan reads as a whole, by path.
    slots: HashMap<&'p InputPath, u32>,
    /// The columns of list elements, by the path that leads from an input to the elements or to a field of them.
    columns: HashMap<&'p InputPath, usize>,
    lists: HashMap<&'p InputPath, usize>,
    /// The dictionaries that were found in the inputs so far: the path, key type and value type of each.
    pub(super) maps: Vec<(InputPath, Scalar, Scalar)>,
}

impl<'p> Plan<'p> {
    pub(super) fn new(loops: Option<&'p LoopPlan>) -> Plan<'p> {
        let leaves = loops.iter().flat_map(|plan| plan.leaves());
        // A JSON text never provides the edges of groups.
        let columns =
            loops.iter().flat_map(|plan| plan.columns()).enumerate().filter_map(|(at, column)| match column {
                Column { from: ColumnOrigin::Input(path), .. } => Some((path, at)),
                _ => None,
            });
        let lists = loops.iter().flat_map(|plan| plan.lists()).enumerate().filter_map(|(at, list)| match list {
            LoopList::Items(path) => Some((path, at)),
            LoopList::EdgeElements(_) | LoopList::EdgeGroups(_) => None,
        });
        Plan {
            loops,
            slots: leaves
                .filter_map(|(slot, _, leaf)| if let LoopLeaf::Value(path) = leaf { Some((path, *slot)) } else { None })
                .collect(),
            columns: columns.collect(),
            lists: lists.collect(),
            maps: Vec::new(),
        }
    }

    /// Returns the destination of an input, or of a value inside of an input, at `path`. `slot` is the offset of the
    /// value in the frame, if an enclosing value is stored there. `list` is the index of the list that encloses the
    /// value; `None` outside of lists. The result is `None` for types that are not read in one pass.
    pub(super) fn target(
        &mut self,
        qtype: &QType,
        path: &InputPath,
        slot: Option<u32>,
        list: Option<usize>,
    ) -> Option<Target> {
        let slot = slot.or_else(|| self.slots.get(path).copied().filter(|_| list.is_none()));
        // Types nest only as deep as the text that spelled them.
        Some(match qtype {
            QType::Scalar(_) | QType::Optional(_) => {
                let column = list.and_then(|_| self.column(path));
                let (qtype, place) = match (slot, column) {
                    (Some(slot), _) => (qtype.clone(), ScalarPlace::Slot(slot)),
                    (None, Some((column, element))) => (element, ScalarPlace::Column(column)),
                    (None, None) => (qtype.clone(), ScalarPlace::Nowhere),
                };
                Target::Scalar(ScalarTarget::of(qtype, place)?)
            }
            QType::Tuple(_) if let Some(of) = qtype.as_optional_struct() => {
                if list.is_some() {
                    return None;
                }
                let inside = slot.zip(qtype.field_offset(1)).map(|(slot, inside)| slot + inside);
                let inner = InputPath { input: path.input, fields: [&path.fields[..], &[1]].concat() };
                let slot = slot.map(|slot| OptionalSlot::new(slot, qtype));
                Target::Optional(slot, self.object(of, &inner, inside, None)?)
            }
            QType::Tuple(_) if let Some((key, value)) = qtype.as_map() => {
                if list.is_some() {
                    return None;
                }
                self.maps.push((path.clone(), key, value));
                Target::Map(self.maps.len() - 1)
            }
            QType::Tuple(_) | QType::Array(..) if let Some(element) = element_of(qtype) => {
                if list.is_some() {
                    return None;
                }
                self.loops?;
                let number = self.lists.get(path).copied();
                // A list that the plan does not use has no column.
                Target::List(number, self.target(&element, path, None, Some(number.unwrap_or(usize::MAX)))?.into())
            }
            QType::Tuple(_) => Target::Struct(self.object(qtype, path, slot, list)?),
            _ => return None,
        })
    }

    fn object(
        &mut self,
        qtype: &QType,
        path: &InputPath,
        slot: Option<u32>,
        list: Option<usize>,
    ) -> Option<ObjectTarget> {
        let QType::Tuple(fields) = qtype else { return None };
        let mut object = ObjectTarget { names: fields.names()?.clone(), targets: Vec::with_capacity(fields.len()) };
        // The fields of a struct with lists or arrays have no offsets in a frame.
        let mut places = qtype.is_framed().then(|| qtype.field_offsets());
        for (at, of) in fields.iter().enumerate() {
            let inside = places.as_mut().and_then(Iterator::next);
            let path = InputPath { input: path.input, fields: [&path.fields[..], &[at as u32]].concat() };
            object.targets.push(self.target(of, &path, slot.zip(inside).map(|(slot, inside)| slot + inside), list)?);
        }
        Some(object)
    }

    /// Returns the index of the column for a path, and the type of its elements. That type may be optional even if the list's elements are not.
    fn column(&self, path: &InputPath) -> Option<(usize, QType)> {
        let column = *self.columns.get(path)?;
        Some((column, self.loops?.columns()[column].element.clone()))
    }
}

/// Returns the element type of a list or an array.
fn element_of(qtype: &QType) -> Option<QType> {
    match qtype {
        QType::Array(_, scalar) => Some(QType::Optional(*scalar)),
        list => list.element().cloned(),
    }
}

/// The memory into which the values of a JSON text are read.
pub(super) struct Memory<'m, 't> {
    pub(super) frame: FramePtr,
    pub(super) columns: Option<&'m mut LoopMemory>,
    /// For each list, the number of elements that were read so far.
    pub(super) counts: &'m mut [usize],
    pub(super) maps: &'m mut [JsonMap],
    /// The most bytes that a column may have, by the limit `array_bytes`.
    pub(super) array_bytes: u64,
    /// The decoded texts of strings that had escapes.
    pub(super) texts: &'m mut Vec<Box<str>>,
    pub(super) text: JsonText<'t>,
}

impl Memory<'_, '_> {
    /// Returns the address to which a scalar is written, and the offset from there; for a scalar in a list, the address
    /// of the list's element `row`. The address is null for a scalar that is not stored. `None` if there is not enough
    /// memory.
    fn place(&mut self, target: &ScalarTarget, row: usize) -> Option<(FramePtr, u32)> {
        match target.place {
            ScalarPlace::Slot(slot) => Some((self.frame, slot)),
            ScalarPlace::Column(column) => {
                // Elements beyond the limit are rejected before memory is allocated for them.
                let begin = row.checked_mul(target.size)?;
                if (begin + target.size) as u64 > self.array_bytes {
                    return None;
                }
                let room = self.columns.as_mut()?.room(column, target.size, row + 1)?;
                Some((FramePtr::from_raw(room.wrapping_add(begin)), 0))
            }
            ScalarPlace::Nowhere => Some((FramePtr::from_raw(std::ptr::null_mut()), 0)),
        }
    }

    /// Marks an optional struct as present or missing.
    fn put_struct(&self, slot: Option<&OptionalSlot>, is_present: bool) {
        let Some(slot) = slot else { return };
        // SAFETY: FRAME-SLOT: the slot was made for this frame.
        unsafe { if is_present { slot.put_present(self.frame) } else { slot.put_missing(self.frame) } }
    }
}

/// Stores a scalar that is read from JSON at its target. Inside of a list, that is the element `row` of a column.
struct SlotSink<'a, 'm, 't> {
    target: &'a ScalarTarget,
    memory: &'a mut Memory<'m, 't>,
    row: usize,
}

impl SlotSink<'_, '_, '_> {
    /// Writes a scalar with `write`, and marks it as present.
    fn put(self, write: impl FnOnce(FramePtr, u32)) -> Option<()> {
        let (place, offset) = self.memory.place(self.target, self.row)?;
        if !place.as_ptr().is_null() {
            if self.target.qtype.is_optional() {
                // SAFETY: FRAME-SLOT: the presence of an optional is at its start.
                unsafe { place.write(Slot::<u8>::at(offset), 1) };
            }
            write(place, offset + self.target.inside);
        }
        Some(())
    }
}

impl<'t> ScalarSink<'t> for SlotSink<'_, '_, 't> {
    fn missing(self) -> Option<()> {
        self.value(&ValueRef::Missing)
    }

    fn bits(self, bits: u64) -> Option<()> {
        let width = self.target.size - self.target.inside as usize;
        // SAFETY: FRAME-SLOT: the slot, or the element, has a scalar of this width.
        self.put(|place, offset| unsafe {
            match width {
                8 => place.write(Slot::at(offset), bits),
                4 => place.write(Slot::at(offset), bits as u32),
                _ => place.write(Slot::at(offset), bits as u8),
            }
        })
    }

    fn text(self, text: &'t str) -> Option<()> {
        // SAFETY: FRAME-SLOT: the slot, or the element, is a text. STRING-VIEW: the text that is read outlives the call.
        self.put(|place, offset| unsafe { place.write(Slot::at(offset), Text::new(text)) })
    }

    fn passing_text(self, text: &str) -> Option<()> {
        self.memory.texts.push(text.into());
        let kept: &str = self.memory.texts.last()?;
        // SAFETY: STRING-VIEW: the texts in `texts` outlive the call, and do not move.
        let kept: Text<'t> = unsafe { Text::from_raw(kept.as_ptr(), kept.len()) };
        // SAFETY: FRAME-SLOT: the slot, or the element, is a text.
        self.put(|place, offset| unsafe { place.write(Slot::at(offset), kept) })
    }

    fn value(self, value: &ValueRef<'_>) -> Option<()> {
        let (place, offset) = self.memory.place(self.target, self.row)?;
        if place.as_ptr().is_null() {
            let is_missing = matches!(value, ValueRef::Missing);
            let qtype = &self.target.qtype;
            return (if is_missing { qtype.is_optional() } else { value.to_value(qtype).is_some() }).then_some(());
        }
        if matches!(value, ValueRef::Bytes(_)) {
            return None;
        }
        // SAFETY: FRAME-SLOT: the slot, or the element, is of this type. STRING-VIEW: it is not a text.
        unsafe { value.write_to(&self.target.qtype, place, offset) }.then_some(())
    }
}

/// Reads a JSON value and stores it at its target. If the target is inside of a list, the value becomes the element with index `row` of the target's
/// columns.
pub(super) struct TargetSeed<'a, 'm, 't> {
    pub(super) target: &'a Target,
    pub(super) memory: &'a mut Memory<'m, 't>,
    pub(super) at: ValueStart,
    pub(super) row: usize,
}

impl<'de> DeserializeSeed<'de> for TargetSeed<'_, '_, 'de> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        let TargetSeed { target, memory, at, row } = self;
        match target {
            Target::Scalar(target) => {
                let (scalar, is_optional, text) = (target.scalar, target.qtype.is_optional(), memory.text);
                ScalarInto { scalar, is_optional, sink: SlotSink { target, memory, row }, text, at }.deserialize(from)
            }
            Target::Struct(object) => from.deserialize_map(Object { object, memory, row }),
            Target::Optional(slot, object) => {
                from.deserialize_option(OptionalObject { slot: slot.as_ref(), object, memory, row })
            }
            Target::List(list, element) => from.deserialize_seq(List { list: *list, element, memory, at }),
            Target::Map(map) => from.deserialize_map(Entries { map: *map, memory }),
        }
    }
}

/// Stores a missing value for a field that a JSON object lacks. `None` if the field is required.
fn absent(target: &Target, memory: &mut Memory<'_, '_>, row: usize) -> Option<()> {
    match target {
        Target::Scalar(target) if target.qtype.is_optional() => SlotSink { target, memory, row }.missing(),
        Target::Optional(slot, _) => {
            memory.put_struct(slot.as_ref(), false);
            Some(())
        }
        _ => None,
    }
}

/// Reads a JSON object into the destinations of its fields.
pub(super) struct Object<'a, 'm, 't> {
    pub(super) object: &'a ObjectTarget,
    pub(super) memory: &'a mut Memory<'m, 't>,
    pub(super) row: usize,
}

impl<'de> Visitor<'de> for Object<'_, '_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<(), A::Error> {
        let Object { object: ObjectTarget { names, targets }, memory, row } = self;
        // One bit per field, set if it was given.
        let mut given: SmallVec<[u64; 1]> = SmallVec::from_elem(0, names.len().div_ceil(u64::BITS as usize));
        let (mut count, mut next) = (0, 0);
        // A key with escapes is not borrowed, so it is rejected.
        while let Some(key) = fields.next_key::<&'de str>()? {
            // Objects mostly have their keys in the order of the fields.
            let is_next = names.get(next).is_some_and(|name| **name == *key);
            let Some(place) = (if is_next { Some(next) } else { names.position(key) }) else {
                fields.next_value::<IgnoredAny>()?;
                continue;
            };
            next = place + 1;
            let (word, bit) = (place / u64::BITS as usize, 1 << (place % u64::BITS as usize));
            if given[word] & bit != 0 {
                return Err(one_pass_error());
            }
            given[word] |= bit;
            count += 1;
            let at = memory.text.value_after_key(key);
            fields.next_value_seed(TargetSeed { target: &targets[place], memory, at, row })?;
        }
        if count == names.len() {
            return Ok(());
        }
        for (place, target) in targets.iter().enumerate() {
            let is_given = given[place / u64::BITS as usize] >> (place % u64::BITS as usize) & 1 != 0;
            if !is_given {
                absent(target, memory, row).ok_or_else(one_pass_error)?;
            }
        }
        Ok(())
    }
}

/// Reads an optional struct from JSON: null, or an object whose fields are stored at their destinations.
struct OptionalObject<'a, 'm, 't> {
    slot: Option<&'a OptionalSlot>,
    object: &'a ObjectTarget,
    memory: &'a mut Memory<'m, 't>,
    row: usize,
}

impl<'de> Visitor<'de> for OptionalObject<'_, '_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object or null")
    }

    fn visit_none<E: Error>(self) -> Result<(), E> {
        self.memory.put_struct(self.slot, false);
        Ok(())
    }

    fn visit_some<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        let OptionalObject { slot, object, memory, row } = self;
        memory.put_struct(slot, true);
        from.deserialize_map(Object { object, memory, row })
    }
}

/// Reads a list from JSON, and stores the elements in the columns of the list.
struct List<'a, 'm, 't> {
    list: Option<usize>,
    element: &'a Target,
    memory: &'a mut Memory<'m, 't>,
    at: ValueStart,
}

impl<'de> Visitor<'de> for List<'_, '_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut array: A) -> Result<(), A::Error> {
        let List { list, element, memory, at } = self;
        // The start of an element is only needed for floats.
        let is_float = matches!(element, Target::Scalar(of) if of.scalar.is_float());
        let (mut row, mut at) = (0, if is_float { memory.text.first_element(at) } else { None });
        while array.next_element_seed(TargetSeed { target: element, memory, at: at.into(), row })?.is_some() {
            row += 1;
            at = memory.text.after_scalar(at);
        }
        if let Some(list) = list {
            memory.counts[list] = row;
        }
        Ok(())
    }
}

/// Reads the entries of a dictionary from a JSON object, and stores them in a `JsonMap`.
struct Entries<'a, 'm, 't> {
    map: usize,
    memory: &'a mut Memory<'m, 't>,
}

impl<'de> Visitor<'de> for Entries<'_, '_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<(), A::Error> {
        let Entries { map, memory } = self;
        let Memory { maps, texts, text, .. } = memory;
        let map = &mut maps[map];
        map.clear();
        let (key_type, scalar) = map.types();
        while let Some(key) = entries.next_key::<&'de str>()? {
            let own = match key_type {
                Scalar::Text => None,
                other => Some(ScalarValue::spelled_in_data(other, key).ok_or_else(one_pass_error)?.bits()),
            };
            let (text, at) = (*text, text.value_after_key(key));
            let sink = EntrySink { key, own, map, texts };
            entries.next_value_seed(ScalarInto { scalar, is_optional: true, sink, text, at })?;
        }
        map.sort().ok_or_else(one_pass_error)
    }
}

/// Receives the value of one dictionary entry, and adds the entry to the dictionary.
struct EntrySink<'a, 'k> {
    key: &'k str,
    /// The bits of the entry's key; `None` if the key is a text.
    own: Option<u64>,
    map: &'a mut JsonMap,
    texts: &'a mut Vec<Box<str>>,
}

impl<'t> ScalarSink<'t> for EntrySink<'_, 't> {
    fn missing(self) -> Option<()> {
        self.value(&ValueRef::Missing)
    }

    fn bits(self, bits: u64) -> Option<()> {
        self.map.push_bits(self.key, self.own, bits)
    }

    fn text(self, text: &'t str) -> Option<()> {
        self.value(&ValueRef::Text(text.into()))
    }

    fn passing_text(self, text: &str) -> Option<()> {
        self.texts.push(text.into());
        self.map.push(self.key, self.own, &ValueRef::Text(self.texts.last()?.as_ref().into()))
    }

    fn value(self, value: &ValueRef<'_>) -> Option<()> {
        self.map.push(self.key, self.own, value)
    }
}
