//! Where the values of a JSON text go: slots of a frame, columns of lists, dictionaries. A text is read in one pass; every field of an
//! input's type is read, whether the model needs it or not, and what is no field is skipped. The error does not say what is wrong: the
//! caller reads the text again, value by value, for the message.

use super::super::place::{Text, ValueStart, unfit};
use super::super::{of_boolean, of_number, of_text};
use super::map::JsonMap;
use crate::ValueRef;
use cembra_engine::{InputPath, LoopLeaf, LoopMemory, LoopPlan};
use cembra_runtime::{FramePtr, QType, Scalar};
use cembra_value::ScalarValue;
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use smallvec::SmallVec;
use std::borrow::Cow;
use std::fmt;

/// What a value is read into.
#[derive(Debug)]
pub(super) enum Target {
    /// A scalar, or one that may be missing.
    Scalar(QType, ScalarPlace),
    /// A struct.
    Struct(ObjectTarget),
    /// A struct that may be missing: its type, its slot if the model needs it, and its fields.
    Optional(QType, Option<u32>, ObjectTarget),
    /// A list, by its number among the plan's if the model needs it, and what an element is read into.
    List(Option<usize>, Box<Target>),
    /// A dictionary, by its number.
    Map(usize),
}

/// Where a scalar goes.
#[derive(Clone, Copy, Debug)]
pub(super) enum ScalarPlace {
    /// To a slot of the frame.
    Slot(u32),
    /// To an element of a column, of so many bytes.
    Column { column: usize, size: usize },
    /// Nowhere: the model does not need it.
    Nowhere,
}

/// What the fields of an object are read into, by their names.
#[derive(Debug, Default)]
pub(super) struct ObjectTarget {
    pub(super) names: Vec<Box<str>>,
    pub(super) targets: Vec<Target>,
}

/// What is known where targets are made.
pub(super) struct Plan<'p> {
    pub(super) loops: Option<&'p LoopPlan>,
    /// The dictionaries that were met: where each is, and its types.
    pub(super) maps: Vec<(InputPath, Scalar, Scalar)>,
}

impl Plan<'_> {
    /// The slot of a value of an input, if the plan reads it as a whole.
    fn slot(&self, path: &InputPath) -> Option<u32> {
        let leaves = self.loops?.leaves();
        let found = leaves.iter().find(|(.., leaf)| matches!(leaf, LoopLeaf::Value(of) if of == path))?;
        Some(found.0)
    }

    /// The target of an input, or of a part of one. `slot` is where it lies if something around it lies in a frame; `list` is said inside of a
    /// list. `None` for types that are not read here.
    pub(super) fn target(
        &mut self,
        qtype: &QType,
        path: &InputPath,
        slot: Option<u32>,
        list: Option<usize>,
    ) -> Option<Target> {
        let slot = slot.or_else(|| self.slot(path).filter(|_| list.is_none()));
        // Types nest only as deep as the text that spelled them.
        Some(match qtype {
            QType::Scalar(_) | QType::Optional(_) => {
                let column = list.and_then(|_| self.column(path));
                match (slot, column) {
                    (Some(slot), _) => Target::Scalar(qtype.clone(), ScalarPlace::Slot(slot)),
                    (None, Some((column, element))) => {
                        let size = element.layout().size as usize;
                        Target::Scalar(element, ScalarPlace::Column { column, size })
                    }
                    (None, None) => Target::Scalar(qtype.clone(), ScalarPlace::Nowhere),
                }
            }
            QType::Tuple(_) if let Some(of) = qtype.as_optional_struct() => {
                if list.is_some() {
                    return None;
                }
                let inside = slot.zip(qtype.field_offset(1)).map(|(slot, inside)| slot + inside);
                let inner = InputPath { input: path.input, fields: [&path.fields[..], &[1]].concat() };
                Target::Optional(qtype.clone(), slot, self.object(of, &inner, inside, None)?)
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
                let lists = self.loops?.lists();
                let number = lists.iter().position(|known| known == path);
                // Of a list that the plan does not ask for there is no column.
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
        fields.names()?;
        let mut object = ObjectTarget::default();
        // The fields of a struct with lists or arrays have no offsets in a frame.
        let mut places = qtype.is_framed().then(|| qtype.field_offsets());
        for (at, of) in fields.iter().enumerate() {
            let inside = places.as_mut().and_then(Iterator::next);
            let path = InputPath { input: path.input, fields: [&path.fields[..], &[at as u32]].concat() };
            object.names.push(fields.label(at).into());
            object.targets.push(self.target(of, &path, slot.zip(inside).map(|(slot, inside)| slot + inside), list)?);
        }
        Some(object)
    }

    /// The number of a column, and the type of its elements, which may be optional where those of a list are not.
    fn column(&self, path: &InputPath) -> Option<(usize, QType)> {
        let mut columns = self.loops?.columns().iter().enumerate();
        let (column, of) = columns.find(|(_, column)| column.from.as_ref() == Some(path))?;
        Some((column, of.element.clone()))
    }
}

/// The type of an element of a list or an array.
fn element_of(qtype: &QType) -> Option<QType> {
    match qtype {
        QType::Array(_, scalar) => Some(QType::Optional(*scalar)),
        list => list.element().cloned(),
    }
}

/// The memory that a text is read into.
pub(super) struct Memory<'m, 't> {
    pub(super) frame: FramePtr,
    pub(super) columns: Option<&'m mut LoopMemory>,
    /// The number of elements of each list so far.
    pub(super) counts: &'m mut [usize],
    pub(super) maps: &'m mut [JsonMap],
    /// The most bytes of a column.
    pub(super) array_bytes: u64,
    /// Texts with escapes, which lie nowhere else.
    pub(super) texts: &'m mut Vec<Box<str>>,
    pub(super) text: Text<'t>,
}

impl Memory<'_, '_> {
    /// Puts a scalar to its place; `None` if it is no value of the type.
    pub(super) fn put(&mut self, qtype: &QType, place: ScalarPlace, row: usize, value: ValueRef<'_>) -> Option<()> {
        let value = match value {
            ValueRef::Text(Cow::Owned(text)) => {
                self.texts.push(text.into());
                ValueRef::Text(Cow::Borrowed(self.texts.last()?))
            }
            ValueRef::Bytes(_) => return None,
            other => other,
        };
        let (to, offset) = match place {
            ScalarPlace::Slot(slot) => (self.frame, slot),
            ScalarPlace::Column { column, size } => {
                // What is more is refused, or read elsewhere, before there is memory for it.
                if ((row + 1) as u64).saturating_mul(size as u64) > self.array_bytes {
                    return None;
                }
                let room = self.columns.as_mut()?.room(column, size, row + 1)?;
                (FramePtr::from_raw(room.wrapping_add(row * size)), 0)
            }
            ScalarPlace::Nowhere => {
                let is_missing = matches!(value, ValueRef::Missing);
                return (if is_missing { qtype.is_optional() } else { value.to_value(qtype).is_some() }).then_some(());
            }
        };
        // SAFETY: FRAME-SLOT: the slot, or the element, is of this type. STRING-VIEW: the text that is read outlives the call, and so do the
        // texts that are kept, which do not move.
        unsafe { value.write_to(qtype, to, offset) }.then_some(())
    }
}

/// A value of a text, and what it is read into: in lists, the element of this number.
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
            Target::Scalar(qtype, place) => {
                let Some(scalar) = qtype.scalar() else { return Err(unfit()) };
                let value = ScalarValueOf { scalar, is_optional: qtype.is_optional(), text: memory.text, at };
                let value = value.read(from)?;
                memory.put(qtype, *place, row, value).ok_or_else(unfit)
            }
            Target::Struct(object) => from.deserialize_map(Object { object, memory, row }),
            Target::Optional(qtype, slot, object) => {
                from.deserialize_option(OptionalObject { qtype, slot: *slot, object, memory, row })
            }
            Target::List(list, element) => from.deserialize_seq(List { list: *list, element, memory, at }),
            Target::Map(map) => from.deserialize_map(Entries { map: *map, memory }),
        }
    }
}

/// Puts what there is of a field that an object does not have.
fn absent(target: &Target, memory: &mut Memory<'_, '_>, row: usize) -> Option<()> {
    match target {
        Target::Scalar(qtype @ QType::Optional(_), place) => memory.put(qtype, *place, row, ValueRef::Missing),
        Target::Optional(qtype, slot, _) => {
            let Some(slot) = slot else { return Some(()) };
            memory.put(qtype, ScalarPlace::Slot(*slot), row, ValueRef::Missing)
        }
        _ => None,
    }
}

/// A scalar that is wanted.
struct ScalarValueOf<'t> {
    scalar: Scalar,
    is_optional: bool,
    text: Text<'t>,
    at: ValueStart,
}

impl<'de> ScalarValueOf<'de> {
    fn read<D: Deserializer<'de>>(self, from: D) -> Result<ValueRef<'de>, D::Error> {
        match self.scalar {
            _ if self.is_optional => from.deserialize_option(self),
            Scalar::Boolean => from.deserialize_bool(self),
            Scalar::Int32 | Scalar::Int64 => from.deserialize_i64(self),
            Scalar::UInt64 => from.deserialize_u64(self),
            Scalar::Text => from.deserialize_str(self),
            // A number need not be decoded twice.
            scalar if scalar.is_float() => {
                let digits = self.text.digits(self.at);
                if digits.is_empty() {
                    return from.deserialize_any(self);
                }
                IgnoredAny::deserialize(from)?;
                of_number(scalar, digits).ok_or_else(unfit)
            }
            _ => from.deserialize_any(self),
        }
    }
}

impl<'de> Visitor<'de> for ScalarValueOf<'de> {
    type Value = ValueRef<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.scalar)
    }

    fn visit_some<D: Deserializer<'de>>(self, from: D) -> Result<ValueRef<'de>, D::Error> {
        ScalarValueOf { is_optional: false, ..self }.read(from)
    }

    fn visit_none<E: Error>(self) -> Result<ValueRef<'de>, E> {
        Ok(ValueRef::Missing)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<ValueRef<'de>, E> {
        of_boolean(self.scalar, value).ok_or_else(unfit)
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<ValueRef<'de>, E> {
        match self.scalar {
            Scalar::Int32 => i32::try_from(value).map(ValueRef::Int32).map_err(|_| unfit()),
            Scalar::Int64 => Ok(ValueRef::Int64(value)),
            _ => Err(unfit()),
        }
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<ValueRef<'de>, E> {
        match self.scalar {
            Scalar::UInt64 => Ok(ValueRef::UInt64(value)),
            _ => self.visit_i64(i64::try_from(value).map_err(|_| unfit())?),
        }
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<ValueRef<'de>, E> {
        of_text(self.scalar, Cow::Borrowed(text)).ok_or_else(unfit)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<ValueRef<'de>, E> {
        of_text(self.scalar, Cow::Owned(text.to_owned())).ok_or_else(unfit)
    }
}

/// A struct.
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
        // A bit for each field that was given.
        let mut given: SmallVec<[u64; 2]> = SmallVec::from_elem(0, names.len().div_ceil(u64::BITS as usize));
        let (mut count, mut next) = (0, 0);
        // A key that has escapes is not borrowed, and refused.
        while let Some(key) = fields.next_key::<&'de str>()? {
            // Objects mostly have their keys in the order of the fields.
            let is_next = names.get(next).is_some_and(|name| **name == *key);
            let Some(place) = (if is_next { Some(next) } else { names.iter().position(|name| **name == *key) }) else {
                fields.next_value::<IgnoredAny>()?;
                continue;
            };
            next = place + 1;
            let (word, bit) = (place / u64::BITS as usize, 1 << (place % u64::BITS as usize));
            if given[word] & bit != 0 {
                return Err(unfit());
            }
            given[word] |= bit;
            count += 1;
            let at = memory.text.behind(key);
            fields.next_value_seed(TargetSeed { target: &targets[place], memory, at, row })?;
        }
        if count == names.len() {
            return Ok(());
        }
        for (place, target) in targets.iter().enumerate() {
            let is_given = given[place / u64::BITS as usize] >> (place % u64::BITS as usize) & 1 != 0;
            if !is_given {
                absent(target, memory, row).ok_or_else(unfit)?;
            }
        }
        Ok(())
    }
}

/// A struct that may be missing.
struct OptionalObject<'a, 'm, 't> {
    qtype: &'a QType,
    slot: Option<u32>,
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
        let OptionalObject { qtype, slot, memory, row, .. } = self;
        let Some(slot) = slot else { return Ok(()) };
        memory.put(qtype, ScalarPlace::Slot(slot), row, ValueRef::Missing).ok_or_else(unfit)
    }

    fn visit_some<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        let OptionalObject { slot, object, memory, row, .. } = self;
        if let Some(slot) = slot {
            memory.put(&QType::MASK, ScalarPlace::Slot(slot), row, ValueRef::Unit).ok_or_else(unfit)?;
        }
        from.deserialize_map(Object { object, memory, row })
    }
}

/// A list.
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
        // Where an element begins is asked for floats alone.
        let is_float = matches!(element, Target::Scalar(of, _) if of.scalar().is_some_and(Scalar::is_float));
        let (mut row, mut at) = (0, if is_float { memory.text.inside(at) } else { None });
        while array.next_element_seed(TargetSeed { target: element, memory, at: at.into(), row })?.is_some() {
            row += 1;
            at = memory.text.behind_scalar(at);
        }
        if let Some(list) = list {
            memory.counts[list] = row;
        }
        Ok(())
    }
}

/// The entries of a dictionary.
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
        memory.maps[map].clear();
        let (key_type, value_type) = memory.maps[map].types();
        while let Some(key) = entries.next_key::<&'de str>()? {
            let own = match key_type {
                Scalar::Text => None,
                other => Some(ScalarValue::spelled_in_data(other, key).ok_or_else(unfit)?.bits()),
            };
            let wanted =
                ScalarValueOf { scalar: value_type, is_optional: true, text: memory.text, at: memory.text.behind(key) };
            let value = entries.next_value_seed(wanted)?;
            let value = match value {
                ValueRef::Text(Cow::Owned(text)) => {
                    memory.texts.push(text.into());
                    ValueRef::Text(Cow::Borrowed(memory.texts.last().map_or("", |text| text)))
                }
                other => other,
            };
            memory.maps[map].push(key, own, &value).ok_or_else(unfit)?;
        }
        memory.maps[map].sort().ok_or_else(unfit)
    }
}

impl<'de> DeserializeSeed<'de> for ScalarValueOf<'de> {
    type Value = ValueRef<'de>;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<ValueRef<'de>, D::Error> {
        self.read(from)
    }
}
