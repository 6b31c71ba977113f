//! Structs inside of structs, lists of them, and dictionaries, as fields of inputs and outputs. A struct with a derive is the field of another by
//! the table of its own fields; nothing of it is read or written in place.

use crate::binding::fields::sealed::Sealed;
use crate::binding::fields::{input_if_given, output_if_given, single};
use crate::binding::shapes::{InputList, InputMap, InputShape, Items, OptionalStruct, OutputList};
use crate::derived::{InputField, ModelScalar, OutputField};
use crate::{FieldType, InputValue, Output, OutputValue};
use cembra_engine::Lookup;
use cembra_runtime::{ArrayKind, Fields, FramePtr, InFrame, Names, Optional, QType, Scalar};
use cembra_value::{Array, ListBuilder, ScalarValue, Value};
use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher, Hash};
use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind};

#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a type of fields, nor of elements of lists",
    label = "not a type of fields",
    note = "write `#[derive(cembra::Input)]` before `{Self}` if it is a struct that a model reads, `#[derive(cembra::Output)]` if a model writes it, and `#[derive(cembra::FieldType)]` before an enum or a struct of one field"
)]
/// A type that is the field of a struct, alone, in an `Option`, or in a list: a struct with a derive, or a [`FieldType`](trait@crate::FieldType).
/// `S` is the entry of the field table: [`InputField`] for structs of inputs, [`OutputField`] for structs of outputs. Only the derives implement it.
///
/// # Safety
/// FIELD-TABLE: what is written and read is of the type that is said.
#[doc(hidden)]
pub unsafe trait Part<S>: Sized {
    /// Its QType.
    fn part_type() -> QType;

    /// True if frames lay the type out as Rust does.
    const IN_PLACE: bool = false;

    /// What values it has, as a message says it, if it has not all of its QType; else nothing.
    const EXPECTED: &'static str = "";

    /// True if converting a value calls code of the user's, which may panic.
    #[must_use]
    fn may_panic() -> bool {
        false
    }

    /// The shape of an input of the type.
    #[must_use]
    fn part_shape() -> InputShape {
        InputShape::Value
    }

    /// A `Vec` of the type as an output.
    #[must_use]
    fn part_list() -> Option<OutputList> {
        None
    }

    /// Writes the value of an input to a slot.
    ///
    /// # Safety
    /// FRAME-SLOT for this type at `offset`; STRING-VIEW: what the value borrows or owns outlives the call.
    unsafe fn write_part(&self, _frame: FramePtr, _offset: u32) {}

    /// The value of an input by itself.
    fn part_value(&self) -> Value {
        Value::Nothing
    }

    /// Adds the value of an input to a list of such.
    fn push_part(&self, list: &mut ListBuilder) {
        list.push(&self.part_value());
    }

    /// The value of an output in a slot; none if it is no value of the type.
    ///
    /// # Safety
    /// FRAME-SLOT for this type at `offset`; STRING-VIEW: its texts are still alive.
    unsafe fn read_part(frame: FramePtr, offset: u32) -> Option<Self> {
        // SAFETY: FRAME-SLOT and STRING-VIEW, promised by the caller.
        Self::of_part(&unsafe { Value::read_from(&Self::part_type(), frame, offset) })
    }

    /// The value of an output by itself; none if it is not of the type.
    fn of_part(_value: &Value) -> Option<Self> {
        None
    }
}

// SAFETY: FIELD-TABLE: as the type that it stands for.
unsafe impl<T: FieldType> Part<InputField> for T {
    fn part_type() -> QType {
        <T::Model as OutputValue>::qtype()
    }
    const IN_PLACE: bool = <T as FieldType>::IN_PLACE && <T::Model as InputValue>::IN_PLACE;
    fn may_panic() -> bool {
        <T as FieldType>::MAY_PANIC
    }
    // SAFETY: FRAME-SLOT and STRING-VIEW, as the trait says.
    unsafe fn write_part(&self, frame: FramePtr, offset: u32) {
        // SAFETY: FRAME-SLOT, promised by the caller; STRING-VIEW: a view of a text is borrowed from this value, not from the view.
        unsafe { self.view().write(frame, offset) }
    }
    fn part_value(&self) -> Value {
        self.view().value()
    }
}

// SAFETY: FIELD-TABLE: as the type that it stands for.
unsafe impl<T: FieldType> Part<OutputField> for T {
    fn part_type() -> QType {
        <T::Model as OutputValue>::qtype()
    }
    const IN_PLACE: bool = <T as FieldType>::IN_PLACE && <T::Model as OutputValue>::IN_PLACE;
    fn may_panic() -> bool {
        <T as FieldType>::MAY_PANIC
    }
    const EXPECTED: &'static str = <T as FieldType>::EXPECTED;
    fn part_list() -> Option<OutputList> {
        Some(OutputList::of::<T>())
    }
    // SAFETY: FRAME-SLOT and STRING-VIEW, as the trait says.
    unsafe fn read_part(frame: FramePtr, offset: u32) -> Option<Self> {
        // SAFETY: FRAME-SLOT and STRING-VIEW, promised by the caller.
        T::of(unsafe { T::Model::read_view(frame, offset) })
    }
    fn of_part(value: &Value) -> Option<Self> {
        match value {
            Value::Scalar(scalar) => T::of(T::Model::scalar_view(scalar)?),
            _ => None,
        }
    }
}

/// The type of a struct with fields of these names and types; that of no value if two have one name.
fn struct_type<'f>(fields: impl Iterator<Item = (&'f str, QType)>) -> QType {
    let (names, types): (Vec<&str>, Vec<QType>) = fields.unzip();
    let named = Names::new(names).ok().and_then(|names| Fields::named(names, types));
    named.map_or(QType::Nothing, QType::Tuple)
}

impl InputField {
    /// True if converting a value of one of these fields calls code of the user's.
    #[doc(hidden)]
    #[must_use]
    pub fn may_panic(fields: &[InputField]) -> bool {
        fields.iter().any(|field| field.may_panic)
    }

    /// The type of the struct that has these fields.
    #[doc(hidden)]
    #[must_use]
    pub fn struct_type(fields: &[InputField]) -> QType {
        struct_type(fields.iter().map(|field| (field.name, field.qtype.clone())))
    }

    /// Writes a struct to a slot of its type.
    ///
    /// # Safety
    /// FIELD-TABLE: `row` points to a struct of these fields. FRAME-SLOT and STRING-VIEW hold as for [`InputValue::write`].
    #[doc(hidden)]
    pub unsafe fn write_struct(fields: &[InputField], row: *const u8, frame: FramePtr, offset: u32) {
        let mut end = 0;
        for field in fields {
            let layout = field.qtype.layout();
            let inside = layout.align_up(end);
            end = inside + layout.size;
            // SAFETY: FIELD-TABLE, promised by the caller; FRAME-SLOT: the field lies in the slot of the struct, one behind the other.
            unsafe { (field.write)(row.add(field.offset), frame, offset + inside) };
        }
    }

    /// A struct, whose type is this, as a value by itself; none if a list in it is `None`.
    ///
    /// # Safety
    /// FIELD-TABLE: `row` points to a struct of these fields.
    #[doc(hidden)]
    #[must_use]
    pub unsafe fn struct_value(fields: &[InputField], qtype: &QType, row: *const u8) -> Value {
        let QType::Tuple(named) = qtype else { return Value::Nothing };
        // SAFETY: FIELD-TABLE, promised by the caller.
        let values = fields.iter().map(|field| match unsafe { (field.value)(row.add(field.offset)) } {
            Value::Nothing => None,
            value => Some(value),
        });
        values.collect::<Option<_>>().map_or(Value::Nothing, |values| Value::Tuple(named.with(values)))
    }

    /// Adds a struct to a list of such.
    ///
    /// # Safety
    /// FIELD-TABLE: `row` points to a struct of these fields.
    #[doc(hidden)]
    pub unsafe fn push_struct(fields: &[InputField], row: *const u8, list: &mut ListBuilder) {
        // SAFETY: FIELD-TABLE, promised by the caller.
        list.push_fields(fields.iter().map(|field| unsafe { (field.value)(row.add(field.offset)) }));
    }
}

impl OutputField {
    /// True if converting a value of one of these fields calls code of the user's.
    #[doc(hidden)]
    #[must_use]
    pub fn may_panic(fields: &[OutputField]) -> bool {
        fields.iter().any(|field| field.may_panic)
    }

    /// The type of the struct that has these fields.
    #[doc(hidden)]
    #[must_use]
    pub fn struct_type(fields: &[OutputField]) -> QType {
        struct_type(fields.iter().map(|field| (field.name, field.qtype.clone())))
    }

    /// The struct that a value is; none if a field has no such value.
    #[doc(hidden)]
    #[must_use]
    pub fn struct_of<T: Output>(fields: &[OutputField], value: &Value) -> Option<T> {
        let Value::Tuple(values) = value else { return None };
        let fit =
            values.len() == fields.len() && fields.iter().zip(values.iter()).all(|(field, value)| (field.fits)(value));
        if !fit {
            return None;
        }
        let mut made = MaybeUninit::<T>::zeroed();
        let place: *mut u8 = made.as_mut_ptr().cast();
        // SAFETY: FIELD-TABLE: these are the fields of T, each of which is given a value that fits, and T is taken from there once.
        unsafe {
            for (field, value) in fields.iter().zip(values.iter()) {
                (field.put)(place.add(field.offset), value, true);
            }
            Some(T::take(made.as_ptr()))
        }
    }
}

impl<T: Part<InputField>> Sealed<InputField> for T {}
impl<T: Part<OutputField>> Sealed<OutputField> for T {}
impl<T: Part<InputField>> Sealed<InputField> for Option<T> {}
impl<T: Part<OutputField>> Sealed<OutputField> for Option<T> {}
impl<T: Part<InputField>> Sealed<InputField> for Vec<T> {}
impl<T: Part<OutputField>> Sealed<OutputField> for Vec<T> {}
impl<T: Part<InputField>> Sealed<InputField> for Vec<Option<T>> {}
impl<T: Part<OutputField>> Sealed<OutputField> for Vec<Option<T>> {}
impl<T: Part<InputField>> Sealed<InputField> for &[T] {}
impl<T: Part<InputField>, const N: usize> Sealed<InputField> for [T; N] {}

impl<T: Part<InputField>> InputValue for T {
    fn may_panic() -> bool {
        <T as Part<InputField>>::may_panic()
    }
    fn qtype() -> QType {
        T::part_type()
    }
    const IN_PLACE: bool = <T as Part<InputField>>::IN_PLACE;
    // SAFETY: FRAME-SLOT and STRING-VIEW, as the trait says.
    unsafe fn write(&self, frame: FramePtr, offset: u32) {
        // SAFETY: FRAME-SLOT and STRING-VIEW, promised by the caller.
        unsafe { self.write_part(frame, offset) }
    }
    fn value(&self) -> Value {
        self.part_value()
    }
    fn shape() -> InputShape {
        T::part_shape()
    }
}

impl<T: Part<OutputField>> OutputValue for T {
    fn may_panic() -> bool {
        <T as Part<OutputField>>::may_panic()
    }
    fn qtype() -> QType {
        T::part_type()
    }
    const IN_PLACE: bool = <T as Part<OutputField>>::IN_PLACE;
    const EXPECTED: &'static str = <T as Part<OutputField>>::EXPECTED;
    // SAFETY: FRAME-SLOT and STRING-VIEW, as the trait says.
    unsafe fn read(frame: FramePtr, offset: u32) -> Option<Self> {
        // SAFETY: FRAME-SLOT and STRING-VIEW, promised by the caller.
        unsafe { T::read_part(frame, offset) }
    }
    fn of_value(value: &Value) -> Option<Self> {
        T::of_part(value)
    }
}

/// The type of a part that may be missing, and where its value lies in that.
fn optional_type<T: Part<S>, S>() -> (QType, u32) {
    let qtype = T::part_type().optional_struct();
    let inside = match qtype.as_optional_struct() {
        Some(_) => qtype.field_offset(1),
        None => qtype.optional_value_offset(),
    };
    (qtype, inside.unwrap_or(0))
}

impl<T: Part<InputField>> InputValue for Option<T> {
    fn may_panic() -> bool {
        <T as Part<InputField>>::may_panic()
    }
    fn qtype() -> QType {
        optional_type::<T, InputField>().0
    }
    // SAFETY: FRAME-SLOT and STRING-VIEW, as the trait says.
    unsafe fn write(&self, frame: FramePtr, offset: u32) {
        // SAFETY: FRAME-SLOT and STRING-VIEW, promised by the caller.
        unsafe { write_optional(self.as_ref(), frame, offset) }
    }
    fn value(&self) -> Value {
        optional_value(self.as_ref())
    }
    fn shape() -> InputShape {
        match T::part_shape() {
            InputShape::Struct(fields) => InputShape::Optional(OptionalStruct::of::<T>(fields)),
            _ => InputShape::Value,
        }
    }
}

/// Writes a part that may be missing, as an optional.
///
/// # Safety
/// FRAME-SLOT for the optional of the part's type at `offset`; STRING-VIEW: what the part borrows or owns outlives the call.
unsafe fn write_optional<T: Part<InputField>>(value: Option<&T>, frame: FramePtr, offset: u32) {
    let (qtype, inside) = optional_type::<T, InputField>();
    // SAFETY: FRAME-SLOT: the presence byte is at the start of an optional, its value at the offset that its type says. STRING-VIEW,
    // promised by the caller.
    unsafe {
        match value {
            Some(value) => {
                frame.write(cembra_runtime::Slot::<u8>::at(offset), 1);
                value.write_part(frame, offset + inside);
            }
            None => {
                let _always = crate::ValueRef::Missing.write_to(&qtype, frame, offset);
            }
        }
    }
}

/// A part that may be missing as a value.
fn optional_value<T: Part<InputField>>(value: Option<&T>) -> Value {
    let qtype = T::part_type();
    match (value.map(Part::part_value), qtype.scalar()) {
        (Some(Value::Scalar(scalar)), _) => Value::Present(scalar),
        (None, Some(scalar)) => Value::Missing(scalar),
        (given, _) => Value::optional_struct(&qtype, given).unwrap_or(Value::Nothing),
    }
}

/// The part that a value may be; none if it is of another type, or no value of the part's.
fn of_optional<T: Part<OutputField>>(value: &Value) -> Option<Option<T>> {
    match value {
        Value::Present(scalar) => T::of_part(&Value::Scalar(scalar.clone())).map(Some),
        Value::Missing(scalar) => (T::part_type().scalar() == Some(*scalar)).then_some(None),
        other => match other.as_optional_struct()? {
            Some(of) => T::of_part(of).map(Some),
            None => other.is_of(&optional_type::<T, OutputField>().0).then_some(None),
        },
    }
}

impl<T: Part<OutputField>> OutputValue for Option<T> {
    fn may_panic() -> bool {
        <T as Part<OutputField>>::may_panic()
    }
    fn qtype() -> QType {
        optional_type::<T, OutputField>().0
    }
    const EXPECTED: &'static str = <T as Part<OutputField>>::EXPECTED;
    // SAFETY: FRAME-SLOT and STRING-VIEW, as the trait says.
    unsafe fn read(frame: FramePtr, offset: u32) -> Option<Self> {
        let inside = optional_type::<T, OutputField>().1;
        // SAFETY: FRAME-SLOT: the presence byte is at the start of an optional, its value at the offset that its type says, and there if
        // that is not 0. STRING-VIEW, promised by the caller.
        unsafe {
            match frame.read(cembra_runtime::Slot::<u8>::at(offset)) {
                0 => Some(None),
                _ => T::read_part(frame, offset + inside).map(Some),
            }
        }
    }
    fn of_value(value: &Value) -> Option<Self> {
        of_optional(value)
    }
}

single!(Option<T>, T: Part<OutputField>);

impl<T: FieldType + Copy, S> Sealed<S> for Optional<T> {}

impl<T: FieldType + Copy> InputValue for Optional<T> {
    fn may_panic() -> bool {
        T::MAY_PANIC
    }
    fn qtype() -> QType {
        <Option<T> as InputValue>::qtype()
    }
    // An `Optional<T>` is a presence in front of a `T`. If `T` lies as its type does, `Optional<T>` lies as the optional of that type.
    const IN_PLACE: bool = <T as InputValue>::IN_PLACE;
    // SAFETY: FRAME-SLOT and STRING-VIEW, as the trait says.
    unsafe fn write(&self, frame: FramePtr, offset: u32) {
        // SAFETY: FRAME-SLOT and STRING-VIEW, promised by the caller.
        unsafe { write_optional(self.as_ref(), frame, offset) }
    }
    fn value(&self) -> Value {
        optional_value(self.as_ref())
    }
}

impl<T: FieldType + Copy> OutputValue for Optional<T> {
    fn may_panic() -> bool {
        T::MAY_PANIC
    }
    fn qtype() -> QType {
        <Option<T> as OutputValue>::qtype()
    }
    const IN_PLACE: bool = <T as OutputValue>::IN_PLACE;
    const EXPECTED: &'static str = <T as FieldType>::EXPECTED;
    // SAFETY: FRAME-SLOT and STRING-VIEW, as the trait says.
    unsafe fn read(frame: FramePtr, offset: u32) -> Option<Self> {
        // SAFETY: FRAME-SLOT and STRING-VIEW, promised by the caller.
        unsafe { Option::<T>::read(frame, offset) }.map(Self::from)
    }
    fn of_value(value: &Value) -> Option<Self> {
        Option::<T>::of_value(value).map(Self::from)
    }
}

single!(Optional<T>, T: FieldType + Copy);

/// The list of parts of this type, optional or not; an array where they are scalars.
fn list_value<I>(
    element: &QType,
    all: impl Iterator<Item = I>,
    value: impl Fn(I) -> Value,
    push: impl Fn(I, &mut ListBuilder),
) -> Value {
    if let QType::Scalar(scalar) | QType::Optional(scalar) = element {
        let scalars = all.map(|one| value(one).as_scalar().cloned());
        return Value::Array(ArrayKind::Dense, Array::from_scalars(*scalar, scalars).into());
    }
    let Some(mut list) = ListBuilder::new(element) else { return Value::Nothing };
    all.for_each(|one| push(one, &mut list));
    list.finish()
}

/// The elements of such a list, each as a value of the type of elements; none if it is another value, or one lacks what the type promises.
fn elements(element: &QType, value: &Value) -> Option<Vec<Value>> {
    let scalar = element.scalar();
    match (value, scalar) {
        (Value::Array(ArrayKind::Dense, array), Some(scalar)) if array.scalar() == scalar => {
            let one = |at| match element.is_optional() {
                true => Some(array.value(at)),
                false => array.get(at).map(Value::Scalar),
            };
            (0..array.len()).map(one).collect()
        }
        (list, None) if list.is_of(&element.list_of()?) => (0..list.list_len()?).map(|at| list.element(at)).collect(),
        _ => None,
    }
}

/// Lists as inputs: of these elements, each of which is made into a value.
macro_rules! list_input {
    ($([$($parameter:tt)*] $ty:ty: $element:expr, $shape:expr, |$one:ident| $value:expr, |$other:ident, $list:ident| $push:expr;)*) => { $(
        impl<$($parameter)*> InputValue for $ty {
            // Its elements may be of a type of the user's.
            fn may_panic() -> bool {
                true
            }
            fn qtype() -> QType {
                ($element).list_of().unwrap_or(QType::Nothing)
            }
            fn value(&self) -> Value {
                list_value(&$element, self.iter(), |$one| $value, |$other, $list| $push)
            }
            fn shape() -> InputShape {
                $shape
            }
        }

        input_if_given!([$($parameter)*] $ty);
    )* };
}

list_input! {
    [T: Part<InputField>] Vec<T>: T::part_type(), list_shape::<Self, T>(), |one| one.part_value(), |one, list| one.push_part(list);
    [T: Part<InputField>] &[T]: T::part_type(), list_shape::<Self, T>(), |one| one.part_value(), |one, list| one.push_part(list);
    [T: Part<InputField>, const N: usize] [T; N]: T::part_type(), list_shape::<Self, T>(), |one| one.part_value(), |one, list| one.push_part(list);
    [T: Part<InputField>] Vec<Option<T>>: T::part_type().optional_struct(), InputShape::Value, |one| optional_value(one.as_ref()), |one, list| list.push(&optional_value(one.as_ref()));
}

/// A list of parts.
fn list_shape<L: Items<Item = T>, T: Part<InputField>>() -> InputShape {
    InputShape::List(InputList::of::<L>(|| InputField::of::<T>("", 0)))
}

/// Lists as outputs.
macro_rules! list_output {
    ($([$($parameter:tt)*] $ty:ty: $element:expr, $written:expr, |$one:ident| $value:expr;)*) => { $(
        impl<$($parameter)*> OutputValue for $ty {
            fn list() -> Option<OutputList> {
                $written
            }
            // Its elements may be of a type of the user's.
            fn may_panic() -> bool {
                true
            }
            fn qtype() -> QType {
                ($element).list_of().unwrap_or(QType::Nothing)
            }
            fn of_value(value: &Value) -> Option<Self> {
                elements(&$element, value)?.iter().map(|$one| $value).collect()
            }
        }

        output_if_given!([$($parameter)*] $ty);

        single!($ty, $($parameter)*);
    )* };
}

list_output! {
    [T: Part<OutputField>] Vec<T>: T::part_type(), T::part_list(), |one| T::of_part(one);
    [T: Part<OutputField>] Vec<Option<T>>: T::part_type().optional_struct(), None, |one| of_optional(one);
}

/// A value of a dictionary that is a field: a type that models have, or an `Option` of one.
trait Entry {
    fn scalar() -> Scalar;
    fn entry(&self) -> Option<ScalarValue>;
    /// Writes the value as an optional.
    ///
    /// # Safety
    /// FRAME-SLOT: room for an optional of the type. STRING-VIEW: the entry outlives every read of a text.
    unsafe fn write_entry(&self, place: FramePtr);
}

impl<T: ModelScalar> Entry for T {
    fn scalar() -> Scalar {
        scalar_of::<T>()
    }
    fn entry(&self) -> Option<ScalarValue> {
        self.view().value().as_scalar().cloned()
    }
    // SAFETY: FRAME-SLOT and STRING-VIEW, as the trait says.
    unsafe fn write_entry(&self, place: FramePtr) {
        let inside = QType::Optional(Self::scalar()).optional_value_offset().unwrap_or(0);
        // SAFETY: FRAME-SLOT and STRING-VIEW, promised by the caller: the presence is first, the value at the offset that the type says.
        unsafe {
            place.write(cembra_runtime::Slot::<u8>::at(0), 1);
            self.view().write(place, inside);
        }
    }
}

impl<T: ModelScalar> Entry for Option<T> {
    fn scalar() -> Scalar {
        scalar_of::<T>()
    }
    fn entry(&self) -> Option<ScalarValue> {
        self.as_ref().and_then(Entry::entry)
    }
    // SAFETY: FRAME-SLOT and STRING-VIEW, as the trait says.
    unsafe fn write_entry(&self, place: FramePtr) {
        // SAFETY: FRAME-SLOT and STRING-VIEW, promised by the caller: the presence is first.
        unsafe {
            match self {
                Some(value) => value.write_entry(place),
                None => place.write(cembra_runtime::Slot::<u8>::at(0), 0),
            }
        }
    }
}

fn scalar_of<T: ModelScalar>() -> Scalar {
    match <T as OutputValue>::qtype().in_frame() {
        InFrame::Scalar(scalar) | InFrame::Optional(scalar) => scalar,
        InFrame::Tuple(_) | InFrame::Nothing => Scalar::Unit,
    }
}

/// Dictionaries as inputs.
macro_rules! map_input {
    ($([$($parameter:tt)*] [$($name:ident),*] $ty:ty, $value:ty, |$map:ident| $entries:expr, $find:ident;)*) => { $(
        impl<$($parameter)*, Side> Sealed<Side> for $ty {}

        impl<$($parameter)*> InputValue for $ty {
            fn qtype() -> QType {
                QType::Dict(scalar_of::<K>(), <$value as Entry>::scalar()).as_input()
            }
            fn value(&self) -> Value {
                let $map = self;
                let entries = $entries.filter_map(|(key, value): (&K, &$value)| Some((key.entry()?, value.entry())));
                Value::map(scalar_of::<K>(), <$value as Entry>::scalar(), entries).unwrap_or(Value::Nothing)
            }
            fn shape() -> InputShape {
                // SAFETY: FIELD-TABLE and COLUMN, as [`InputMap::find`] says.
                unsafe fn find<$($parameter)*>(map: *const (), key: FramePtr, value: FramePtr) -> Lookup {
                    // SAFETY: FIELD-TABLE, promised by the caller: the pointer is to such a dictionary.
                    let map = unsafe { &*map.cast::<$ty>() };
                    // SAFETY: COLUMN, promised by the caller: the key is of this type.
                    let key = unsafe { K::read_view(key, 0) };
                    // SAFETY: COLUMN, promised by the caller: `value` is null or has room for an optional of the values.
                    unsafe { answer(|| K::$find(map, key), value) }
                }
                InputShape::Map(InputMap { find: find::<$($name),*> })
            }
        }
    )* };
}

/// The entries of a map in the order of their keys.
fn sorted<K: Ord, V, H>(map: &HashMap<K, V, H>) -> impl Iterator<Item = (&K, &V)> {
    let mut entries: Vec<(&K, &V)> = map.iter().collect();
    entries.sort_unstable_by_key(|(key, _)| *key);
    entries.into_iter()
}

/// The result of looking a key up. The value of the key is written unless `value` is null. A panic of `find` is a failure.
///
/// # Safety
/// COLUMN: there is room for an optional of the values, or a null.
unsafe fn answer<'m, E: Entry + 'm>(find: impl FnOnce() -> Option<&'m E>, value: FramePtr) -> Lookup {
    match catch_unwind(AssertUnwindSafe(find)) {
        Ok(Some(entry)) => {
            if !value.as_ptr().is_null() {
                // SAFETY: COLUMN, promised by the caller. STRING-VIEW: the dictionary is borrowed for the call.
                unsafe { entry.write_entry(value) };
            }
            Lookup::Found
        }
        Ok(None) => Lookup::Absent,
        Err(_) => Lookup::Failed,
    }
}

map_input! {
    [K: ModelScalar + Ord, V: ModelScalar] [K, V] BTreeMap<K, V>, V, |map| map.iter(), find_in_tree;
    [K: ModelScalar + Ord, V: ModelScalar] [K, V] BTreeMap<K, Option<V>>, Option<V>, |map| map.iter(), find_in_tree;
    [K: ModelScalar + Ord + Hash, V: ModelScalar, H: BuildHasher] [K, V, H] HashMap<K, V, H>, V, |map| sorted(map), find_in_table;
    [K: ModelScalar + Ord + Hash, V: ModelScalar, H: BuildHasher] [K, V, H] HashMap<K, Option<V>, H>, Option<V>, |map| sorted(map), find_in_table;
}
