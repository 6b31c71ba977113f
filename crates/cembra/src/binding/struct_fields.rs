//! Struct fields that are structs, lists of structs, or dictionaries, in inputs and outputs. A struct with a derive may
//! be a field of another struct: the field table of the inner struct then describes its fields. Such fields are always
//! copied, never read or written in place.

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
/// A type that a struct's field may have, alone, in an `Option`, or as the item of a list: a struct with a derive, or a
/// [`FieldType`](trait@crate::FieldType). `S` is the entry of the field table: [`InputField`] for input structs, [`OutputField`] for output structs.
/// Only the derives implement this trait.
///
/// # Safety
/// FIELD-TABLE (`docs/safety.md`): the methods must write and read values of the type that `part_type` returns.
#[doc(hidden)]
pub unsafe trait Part<S>: Sized {
    /// Returns the model type that this Rust type stands for.
    fn part_type() -> QType;

    /// True if this type has the same layout in frames.
    const IN_PLACE: bool = false;

    /// A text for messages that lists the possible values of this type, if not every value of its model type is possible; otherwise empty.
    const EXPECTED: &'static str = "";

    /// Returns true if converting a value calls user code, which may panic.
    #[must_use]
    fn may_panic() -> bool {
        false
    }

    /// Returns the structure of this type as the type of an input field.
    #[must_use]
    fn part_shape() -> InputShape {
        InputShape::Value
    }

    /// Returns the description of a `Vec` of this type as an output field; `None` if its items cannot be written one by one.
    #[must_use]
    fn part_list() -> Option<OutputList> {
        None
    }

    /// Writes the value of an input to a slot.
    ///
    /// # Safety
    /// FRAME-SLOT (`docs/safety.md`): `frame` must have a slot of this type at `offset`. STRING-VIEW: the memory that the value borrows or owns must
    /// outlive the call.
    unsafe fn write_part(&self, _frame: FramePtr, _offset: u32) {}

    /// Returns an input's value as a [`Value`], without a frame.
    fn part_value(&self) -> Value {
        Value::Nothing
    }

    /// Appends an input's value to `list`, a list that is being built.
    fn push_part(&self, list: &mut ListBuilder) {
        list.push(&self.part_value());
    }

    /// Reads the value of an output from a slot; `None` if the bits in the slot are not a valid value of this type.
    ///
    /// # Safety
    /// FRAME-SLOT (`docs/safety.md`): `frame` must have a value of this type at `offset`. STRING-VIEW: its texts must still be alive.
    unsafe fn read_part(frame: FramePtr, offset: u32) -> Option<Self> {
        // SAFETY: FRAME-SLOT and STRING-VIEW, promised by the caller.
        Self::of_part(&unsafe { Value::read_from(&Self::part_type(), frame, offset) })
    }

    /// Converts an output's [`Value`] to this type; `None` if it has another type.
    fn of_part(_value: &Value) -> Option<Self> {
        None
    }
}

// SAFETY: FIELD-TABLE: the methods use the type that `T` stands for.
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

// SAFETY: FIELD-TABLE: the methods use the type that `T` stands for.
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

/// Returns the type of a struct with fields of these names and types; `Nothing` if two names are equal.
fn struct_type<'f>(fields: impl Iterator<Item = (&'f str, QType)>) -> QType {
    let (names, types): (Vec<&str>, Vec<QType>) = fields.unzip();
    let named = Names::new(names).ok().and_then(|names| Fields::named(names, types));
    named.map_or(QType::Nothing, QType::Tuple)
}

impl InputField {
    /// Returns true if converting one of the fields `fields` calls user code, which may panic.
    #[doc(hidden)]
    #[must_use]
    pub fn may_panic(fields: &[InputField]) -> bool {
        fields.iter().any(|field| field.may_panic)
    }

    /// Returns the model type of a struct with the fields `fields`.
    #[doc(hidden)]
    #[must_use]
    pub fn struct_type(fields: &[InputField]) -> QType {
        struct_type(fields.iter().map(|field| (field.name, field.qtype.clone())))
    }

    /// Writes the struct at `row`, which has the fields `fields`, to the slot at `offset`.
    ///
    /// # Safety
    /// FIELD-TABLE (`docs/safety.md`): `row` must point to a struct with these fields. FRAME-SLOT and STRING-VIEW: the slot must be as
    /// [`InputValue::write`] requires.
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

    /// Returns the struct at `row` as a value of type `qtype`; `Nothing` if a list in it is `None`.
    ///
    /// # Safety
    /// FIELD-TABLE (`docs/safety.md`): `row` must point to a struct with these fields.
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

    /// Appends the struct at `row` to `list`, a list of structs that is being built.
    ///
    /// # Safety
    /// FIELD-TABLE (`docs/safety.md`): `row` must point to a struct with these fields.
    #[doc(hidden)]
    pub unsafe fn push_struct(fields: &[InputField], row: *const u8, list: &mut ListBuilder) {
        // SAFETY: FIELD-TABLE, promised by the caller.
        list.push_fields(fields.iter().map(|field| unsafe { (field.value)(row.add(field.offset)) }));
    }
}

impl OutputField {
    /// Returns true if converting one of the fields `fields` calls user code, which may panic.
    #[doc(hidden)]
    #[must_use]
    pub fn may_panic(fields: &[OutputField]) -> bool {
        fields.iter().any(|field| field.may_panic)
    }

    /// Returns the model type of a struct with the fields `fields`.
    #[doc(hidden)]
    #[must_use]
    pub fn struct_type(fields: &[OutputField]) -> QType {
        struct_type(fields.iter().map(|field| (field.name, field.qtype.clone())))
    }

    /// Converts `value` to a struct with the fields `fields`; `None` if a field cannot hold the member of `value` that
    /// has the same position.
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

/// Returns the type of an optional `T`, and the offset of the value in it.
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

/// Writes an optional value to a slot.
///
/// # Safety
/// FRAME-SLOT for the optional of the type at `offset`; STRING-VIEW: the memory that the value borrows or owns outlives the call.
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

/// Returns an input's optional value as a [`Value`]; missing for `None`.
fn optional_value<T: Part<InputField>>(value: Option<&T>) -> Value {
    let qtype = T::part_type();
    match (value.map(Part::part_value), qtype.scalar()) {
        (Some(Value::Scalar(scalar)), _) => Value::Present(scalar),
        (None, Some(scalar)) => Value::Missing(scalar),
        (given, _) => Value::optional_struct(&qtype, given).unwrap_or(Value::Nothing),
    }
}

/// Converts an optional value; `None` if it is not an optional of `T`, or `T` cannot hold it.
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
    // An `Optional<T>` is a presence in front of a `T`. If `T` has the layout of its model type, `Optional<T>` has the layout of that type's
    // optional.
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

/// Returns the value of a list whose items are `all`. The value is an array if the element type is a scalar or an
/// optional scalar.
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

/// Returns the elements of a list or array as values of the type `element`. `None` if it has other elements, or one is missing that must be present.
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

/// Implements [`InputValue`] for list types, such as `Vec`, whose elements are converted one by one.
macro_rules! list_input {
    ($([$($parameter:tt)*] $ty:ty: $element:expr, $shape:expr, |$one:ident| $value:expr, |$other:ident, $list:ident| $push:expr;)*) => { $(
        impl<$($parameter)*> InputValue for $ty {
            // The elements may have a user-defined type.
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

/// Returns the description of the list type `L`, with a field table entry for its items.
fn list_shape<L: Items<Item = T>, T: Part<InputField>>() -> InputShape {
    InputShape::List(InputList::of::<L>(|| InputField::of::<T>("", 0)))
}

/// Implements [`OutputValue`] for list types, such as `Vec`, whose elements are converted one by one.
macro_rules! list_output {
    ($([$($parameter:tt)*] $ty:ty: $element:expr, $written:expr, |$one:ident| $value:expr;)*) => { $(
        impl<$($parameter)*> OutputValue for $ty {
            fn list() -> Option<OutputList> {
                $written
            }
            // The elements may have a user-defined type.
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

/// A value in a dictionary field: a type that models have, or an `Option` of one.
trait Entry {
    fn scalar() -> Scalar;
    fn entry(&self) -> Option<ScalarValue>;
    /// Writes the value of a dictionary entry to `place`, as an optional.
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

/// Implements [`InputValue`] for map types, which are dictionaries in a model.
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

/// Returns the entries of a map, sorted by key.
fn sorted<K: Ord, V, H>(map: &HashMap<K, V, H>) -> impl Iterator<Item = (&K, &V)> {
    let mut entries: Vec<(&K, &V)> = map.iter().collect();
    entries.sort_unstable_by_key(|(key, _)| *key);
    entries.into_iter()
}

/// Looks a key up with `find` and returns the result. Writes the key's value to `value` unless that is null. A panic of `find` becomes a failure.
///
/// # Safety
/// COLUMN: `value` is null or has room for an optional of the values.
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
