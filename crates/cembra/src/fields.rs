//! Rust structs as inputs and outputs: tables of names, types and offsets. Plain scalars and `Optional<T>` are read and
//! written where they are; types without a guaranteed layout (`Option<T>`, texts) go through slots of the frame.

use cembra_batch::{ColumnMut, InputColumn};
use cembra_runtime::{FramePtr, Optional, Plain, QType, Scalar, Slot, Text, for_each_scalar};
use cembra_value::{ScalarValue, Value};
use std::hint::select_unpredictable;
use std::mem::MaybeUninit;

/// Keeps the traits of values to the types they are implemented for here: what they say of a type is believed.
pub(crate) mod sealed {
    pub trait Sealed {}
}

use sealed::Sealed;

/// A Rust type that an input field may have: see [`Input`] for which they are. Nobody else can implement it.
#[diagnostic::on_unimplemented(
    message = "an input cannot be a `{Self}`",
    label = "not a type of an input",
    note = "inputs may be `bool`, `i32`, `i64`, `u64`, `f32`, `f64`, `Date`, `Timestamp`, `Optional` or `Option` of these, `Mask`, `&str`, `String`, and `Option` of the two; arrays may be `&[T]`, `Vec<T>`, `&[Optional<T>]`, `Vec<Optional<T>>` and `ArrayView`"
)]
pub trait InputValue: Sealed {
    /// Its QType.
    fn qtype() -> QType;

    /// True if frames lay the type out as Rust does, so that it can be read in place.
    const IN_PLACE: bool;

    /// Writes the value to a slot, for types that are not read in place.
    ///
    /// # Safety
    /// FRAME-SLOT for this type at `offset`; STRING-VIEW: what the value borrows or owns outlives the call.
    unsafe fn write(&self, frame: FramePtr, offset: u32);

    /// The value by itself, for models with arrays: their inputs lie in no frame.
    fn value(&self) -> Value;
}

/// A Rust type that an output field may have: see [`Output`] for which they are. Nobody else can implement it.
#[diagnostic::on_unimplemented(
    message = "an output cannot be a `{Self}`",
    label = "not a type of an output",
    note = "outputs may be `bool`, `i32`, `i64`, `u64`, `f32`, `f64`, `Date`, `Timestamp`, `Optional` or `Option` of these, `Mask`, `String` and `Option<String>`; arrays may be `Vec<T>`, `Vec<Optional<T>>` and `Vec<Option<T>>`"
)]
pub trait OutputValue: Sized + Sealed {
    /// Its QType.
    fn qtype() -> QType;

    /// True if frames lay the type out as Rust does, so that it can be written in place.
    const IN_PLACE: bool;

    /// Reads the value from a slot, for types that are not written in place.
    ///
    /// # Safety
    /// FRAME-SLOT for this type at `offset`, written by a call; STRING-VIEW: its texts are still alive.
    unsafe fn read(frame: FramePtr, offset: u32) -> Self;

    /// Reads the value from a slot into this one, whose memory is used again where it can be.
    ///
    /// # Safety
    /// FRAME-SLOT and STRING-VIEW, as for `read`.
    unsafe fn read_into(&mut self, frame: FramePtr, offset: u32) {
        // SAFETY: FRAME-SLOT and STRING-VIEW, promised by the caller.
        *self = unsafe { Self::read(frame, offset) };
    }

    /// Moves the value from where a call put it. What calls write in parts is read in the same parts: reading them at once
    /// waits until the processor has all of them in its cache.
    ///
    /// # Safety
    /// FIELD-TABLE: a value of this type is there, and nobody uses it afterwards.
    #[inline]
    #[must_use]
    unsafe fn take(place: *const Self) -> Self {
        // SAFETY: FIELD-TABLE, promised by the caller.
        unsafe { place.read() }
    }

    /// A value by itself, for models with arrays; none if it is not of the type, or of an array an element is missing that may
    /// not be.
    fn of_value(value: &Value) -> Option<Self>;

    /// True if there is such a value.
    #[must_use]
    fn fits(value: &Value) -> bool {
        Self::of_value(value).is_some()
    }
}

/// A field of an input struct.
#[derive(Clone, Debug)]
pub struct InputField {
    pub(crate) name: &'static str,
    pub(crate) qtype: QType,
    pub(crate) offset: usize,
    pub(crate) in_place: bool,
    /// Writes the value of a field to a slot.
    ///
    /// # Safety
    /// FIELD-TABLE: a pointer to a field of this type; FRAME-SLOT as for [`InputValue::write`].
    pub(crate) write: unsafe fn(*const u8, FramePtr, u32),
    /// The value of a field by itself.
    ///
    /// # Safety
    /// FIELD-TABLE: a pointer to a field of this type.
    pub(crate) value: unsafe fn(*const u8) -> Value,
}

/// A field in the layout of frames, as a strided column finds it: the scalar type, where the value is, and how far from it
/// the presence. Nothing for other types.
fn in_place(qtype: &QType, offset: usize) -> Option<(Scalar, usize, Option<isize>)> {
    let inside = qtype.optional_value_offset().unwrap_or(0) as usize;
    Some((qtype.scalar()?, offset + inside, qtype.is_optional().then(|| -inside.cast_signed())))
}

impl InputField {
    /// The field of type `T` at `offset` bytes from the start of its struct.
    #[must_use]
    pub fn of<T: InputValue>(name: &'static str, offset: usize) -> Self {
        // SAFETY: FIELD-TABLE and FRAME-SLOT, as [`InputField::write`] says.
        unsafe fn write<T: InputValue>(field: *const u8, frame: FramePtr, slot: u32) {
            // SAFETY: FIELD-TABLE: the pointer is to a field of type T; FRAME-SLOT is promised by the caller.
            unsafe { (*field.cast::<T>()).write(frame, slot) }
        }
        // SAFETY: FIELD-TABLE, as [`InputField::value`] says.
        unsafe fn value<T: InputValue>(field: *const u8) -> Value {
            // SAFETY: FIELD-TABLE: the pointer is to a field of type T.
            unsafe { (*field.cast::<T>()).value() }
        }
        InputField { name, qtype: T::qtype(), offset, in_place: T::IN_PLACE, write: write::<T>, value: value::<T> }
    }

    /// The field in all of the structs, whose field it is.
    pub(crate) fn column<'a, T: Input>(&'a self, rows: &'a [T]) -> InputColumn<'a> {
        let (first, stride): (*const u8, _) = (rows.as_ptr().cast(), size_of::<T>().cast_signed());
        match in_place(&self.qtype, self.offset).filter(|_| self.in_place) {
            // SAFETY: FIELD-TABLE: each struct has the field there.
            Some((scalar, offset, presence)) => unsafe {
                InputColumn::strided(scalar, first.wrapping_add(offset), stride, presence, rows.len())
            },
            // SAFETY: FIELD-TABLE: each struct has the field there.
            None => unsafe {
                InputColumn::fields(&self.qtype, first.wrapping_add(self.offset), stride, self.write, rows.len())
            },
        }
    }
}

/// A field of an output struct.
#[derive(Clone, Debug)]
pub struct OutputField {
    pub(crate) name: &'static str,
    pub(crate) qtype: QType,
    pub(crate) offset: usize,
    pub(crate) in_place: bool,
    /// Makes the value of a field that is none yet.
    ///
    /// # Safety
    /// FIELD-TABLE: a pointer to room for a field of this type; FRAME-SLOT and STRING-VIEW as for [`OutputValue::read`].
    pub(crate) read: unsafe fn(*mut u8, FramePtr, u32),
    /// Gives a field another value.
    ///
    /// # Safety
    /// FIELD-TABLE: a pointer to a field of this type; FRAME-SLOT and STRING-VIEW as for [`OutputValue::read`].
    pub(crate) update: unsafe fn(*mut u8, FramePtr, u32),
    /// Whether a field can have a value.
    pub(crate) fits: fn(&Value) -> bool,
    /// Gives a field, or what is none yet if that is said, a value that it can have.
    ///
    /// # Safety
    /// FIELD-TABLE: a pointer to a field of this type, or to room for one.
    pub(crate) put: unsafe fn(*mut u8, &Value, bool),
}

impl OutputField {
    /// The field of type `T` at `offset` bytes from the start of its struct.
    #[must_use]
    pub fn of<T: OutputValue>(name: &'static str, offset: usize) -> Self {
        // SAFETY: FIELD-TABLE and FRAME-SLOT, as [`OutputField::read`] says.
        unsafe fn read<T: OutputValue>(field: *mut u8, frame: FramePtr, slot: u32) {
            // SAFETY: FIELD-TABLE: the pointer is to room for a field of type T; FRAME-SLOT is promised by the caller.
            unsafe { field.cast::<T>().write(T::read(frame, slot)) }
        }
        // SAFETY: FIELD-TABLE and FRAME-SLOT, as [`OutputField::update`] says.
        unsafe fn update<T: OutputValue>(field: *mut u8, frame: FramePtr, slot: u32) {
            // SAFETY: FIELD-TABLE: the pointer is to a field of type T; FRAME-SLOT is promised by the caller.
            unsafe { (*field.cast::<T>()).read_into(frame, slot) }
        }
        // SAFETY: FIELD-TABLE, as [`OutputField::put`] says.
        unsafe fn put<T: OutputValue>(field: *mut u8, value: &Value, is_new: bool) {
            let Some(value) = T::of_value(value) else { return };
            let field = field.cast::<T>();
            // SAFETY: FIELD-TABLE: the pointer is to a field of type T, or to room for one.
            unsafe { if is_new { field.write(value) } else { *field = value } }
        }
        OutputField {
            name,
            qtype: T::qtype(),
            offset,
            in_place: T::IN_PLACE,
            read: read::<T>,
            update: update::<T>,
            fits: T::fits,
            put: put::<T>,
        }
    }

    /// The field in all of the structs.
    ///
    /// # Safety
    /// FIELD-TABLE: it is a field of the structs; nobody else uses it as long as the column lives.
    pub(crate) unsafe fn column<T: Output>(&self, first: *mut T, rows: usize) -> ColumnMut<'_> {
        let (first, stride): (*mut u8, _) = (first.cast(), size_of::<T>().cast_signed());
        match in_place(&self.qtype, self.offset).filter(|_| self.in_place) {
            // SAFETY: FIELD-TABLE, promised by the caller.
            Some((scalar, offset, presence)) => unsafe {
                ColumnMut::strided(scalar, first.wrapping_add(offset), stride, presence, rows)
            },
            // SAFETY: FIELD-TABLE, promised by the caller.
            None => unsafe {
                ColumnMut::fields(&self.qtype, first.wrapping_add(self.offset), stride, self.update, rows)
            },
        }
    }
}

/// A struct that a model reads. Derive it; `()` is the one without fields.
///
/// Fields may be `bool`, `i32`, `i64`, `u64`, `f32`, `f64`, [`Date`](crate::Date), [`Timestamp`](crate::Timestamp), [`Optional`] of these
/// and [`Mask`], which are read in place, and `Option` of these, `String`, `&str` and `Option` of the two, which are moved through the frame.
/// Of models with arrays they may also be `&[T]` and `Vec<T>` of the plain types, of `Optional` of them, and of texts, and
/// [`ArrayView`](crate::ArrayView); such models take a copy of each field.
///
/// # Safety
/// FIELD-TABLE: each entry's type and offset are those of a field of the struct.
pub unsafe trait Input {
    /// The table of fields.
    fn fields() -> Vec<InputField>;
}

/// A struct, or a single value, that a model writes. Derive it for structs; `()` is the one without fields.
///
/// Fields, or the value, may be `bool`, `i32`, `i64`, `u64`, `f32`, `f64`, [`Date`](crate::Date), [`Timestamp`](crate::Timestamp), [`Optional`] of
/// these and [`Mask`], which are written in place, and `Option` of these, `String` and `Option<String>`, which are moved through the frame.
/// Of models with arrays they may also be `Vec` of these but [`Mask`].
///
/// # Safety
/// FIELD-TABLE: each entry's type and offset are those of a field of the struct, and every field has an entry. Types
/// written in place must be valid for any bytes a model writes to them, zeros included.
pub unsafe trait Output: Sized {
    /// The table of fields. A field without a name is the main output.
    fn fields() -> Vec<OutputField>;

    /// Moves the struct from where a call put it, field by field: see [`OutputValue::take`].
    ///
    /// # Safety
    /// FIELD-TABLE: every field has its value, and nobody uses them afterwards.
    #[inline]
    #[must_use]
    unsafe fn take(place: *const Self) -> Self {
        // SAFETY: FIELD-TABLE, promised by the caller.
        unsafe { place.read() }
    }
}

// SAFETY: FIELD-TABLE: no entries.
unsafe impl Input for () {
    fn fields() -> Vec<InputField> {
        Vec::new()
    }
}

// SAFETY: FIELD-TABLE: no fields, no entries.
unsafe impl Output for () {
    fn fields() -> Vec<OutputField> {
        Vec::new()
    }
}

macro_rules! in_place {
    ($($ty:ty as $bits:ty => $scalar:ident;)*) => { $(
        in_place!(@impl $ty, QType::Scalar(Scalar::$scalar), |field| Value::from(*field), |value| match value {
            Value::Scalar(ScalarValue::$scalar(value)) => Some(*value),
            _ => None,
        }, {});
        in_place!(@impl Optional<$ty>, QType::Optional(Scalar::$scalar), |field| Value::from(field.get()),
            |value| Option::<$ty>::of_value(value).map(Self::from), {
            // SAFETY: FIELD-TABLE, as the trait says.
            #[inline]
            unsafe fn take(place: *const Self) -> Self {
                let mut taken = MaybeUninit::<Self>::uninit();
                let from = FramePtr::from_raw(place.cast_mut().cast());
                let to = FramePtr::from_raw(taken.as_mut_ptr().cast());
                // What is behind a missing value need not be a value of the type: its bits are moved. As a number, because memory
                // that is copied as such may be read together with the presence.
                let (presence, value) = (Slot::<u8>::at(0), Slot::<$bits>::at(align_of::<$ty>() as u32));
                // SAFETY: FIELD-TABLE, promised by the caller: the presence byte is first, the value at its alignment. Both
                // are copied, whether the value is looked at or not.
                unsafe {
                    to.write(presence, from.read(presence));
                    to.write(value, from.read(value));
                    taken.assume_init()
                }
            }
        });

        impl Sealed for Option<$ty> {}

        impl InputValue for Option<$ty> {
            fn qtype() -> QType { QType::Optional(Scalar::$scalar) }
            const IN_PLACE: bool = false;
            // SAFETY: FRAME-SLOT, as the trait says.
            unsafe fn write(&self, frame: FramePtr, offset: u32) {
                // SAFETY: FRAME-SLOT, promised by the caller.
                unsafe { frame.write(Slot::at(offset), Optional::<$ty>::from(*self)) }
            }
            fn value(&self) -> Value { Value::from(*self) }
        }

        impl OutputValue for Option<$ty> {
            fn qtype() -> QType { QType::Optional(Scalar::$scalar) }
            const IN_PLACE: bool = false;
            // SAFETY: FRAME-SLOT, as the trait says.
            unsafe fn read(frame: FramePtr, offset: u32) -> Self {
                // SAFETY: FRAME-SLOT, promised by the caller.
                unsafe { frame.read(Slot::<Optional<$ty>>::at(offset)) }.get()
            }
            fn of_value(value: &Value) -> Option<Self> {
                match value {
                    Value::Present(ScalarValue::$scalar(value)) => Some(Some(*value)),
                    Value::Missing(Scalar::$scalar) => Some(None),
                    _ => None,
                }
            }
        }

        single!(Option<$ty>);
    )* };
    (@impl $ty:ty, $qtype:expr, |$field:ident| $value:expr, |$from:ident| $of:expr, { $($take:item)? }) => {
        impl Sealed for $ty {}

        impl InputValue for $ty {
            fn qtype() -> QType { $qtype }
            const IN_PLACE: bool = true;
            // SAFETY: FRAME-SLOT, as the trait says.
            unsafe fn write(&self, frame: FramePtr, offset: u32) {
                // SAFETY: FRAME-SLOT, promised by the caller.
                unsafe { frame.write(Slot::at(offset), *self) }
            }
            fn value(&self) -> Value {
                let $field = self;
                $value
            }
        }

        impl OutputValue for $ty {
            fn qtype() -> QType { $qtype }
            const IN_PLACE: bool = true;
            // SAFETY: FRAME-SLOT, as the trait says.
            unsafe fn read(frame: FramePtr, offset: u32) -> Self {
                // SAFETY: FRAME-SLOT, promised by the caller.
                unsafe { frame.read(Slot::at(offset)) }
            }
            fn of_value($from: &Value) -> Option<Self> {
                $of
            }
            $($take)?
        }

        single!($ty);
    };
}

macro_rules! single {
    ($ty:ty) => {
        // SAFETY: FIELD-TABLE: the value itself, at 0.
        unsafe impl Output for $ty {
            fn fields() -> Vec<OutputField> {
                vec![OutputField::of::<$ty>("", 0)]
            }

            // SAFETY: FIELD-TABLE, as the trait says.
            #[inline]
            unsafe fn take(place: *const Self) -> Self {
                // SAFETY: FIELD-TABLE, promised by the caller.
                unsafe { <$ty as OutputValue>::take(place) }
            }
        }
    };
}

macro_rules! plain_in_place {
    ([] $unit:ident $unit_rows:tt plain { $($(#[$doc:meta])* $plain:ident($rust:ty) $facts:tt)* } $($rest:tt)*) => {
        in_place! { $($rust as <$rust as Plain>::Stored => $plain;)* }
    };
}

for_each_scalar!(plain_in_place []);

macro_rules! text_input {
    ($($ty:ty, $empty:expr, |$text:ident| $view:expr;)*) => { $(
        impl Sealed for $ty {}
        impl Sealed for Option<$ty> {}

        impl InputValue for $ty {
            fn qtype() -> QType { QType::TEXT }
            const IN_PLACE: bool = false;
            // SAFETY: FRAME-SLOT and STRING-VIEW, as the trait says.
            unsafe fn write(&self, frame: FramePtr, offset: u32) {
                let $text = self;
                // SAFETY: FRAME-SLOT, promised by the caller, who also keeps the text alive.
                unsafe { frame.write(Slot::at(offset), Text::new($view)) }
            }
            fn value(&self) -> Value {
                let $text = self;
                let view: &str = $view;
                Value::from(view)
            }
        }

        impl InputValue for Option<$ty> {
            fn qtype() -> QType { QType::Optional(Scalar::Text) }
            const IN_PLACE: bool = false;
            // SAFETY: FRAME-SLOT and STRING-VIEW, as the trait says.
            unsafe fn write(&self, frame: FramePtr, offset: u32) {
                const EMPTY: &$ty = &$empty;
                // Which texts are missing nobody can guess, so no branch is to depend on it.
                let $text = select_unpredictable(self.is_some(), self.as_ref().unwrap_or(EMPTY), EMPTY);
                let view = Optional::present_if(self.is_some(), Text::new($view));
                // SAFETY: FRAME-SLOT, promised by the caller, who also keeps the text alive.
                unsafe { frame.write(Slot::at(offset), view) }
            }
            fn value(&self) -> Value {
                let text = self.as_ref().map(|$text| {
                    let view: &str = $view;
                    ScalarValue::Text(view.into())
                });
                Value::optional(Scalar::Text, text)
            }
        }
    )* };
}

text_input! {
    &str, "", |text| text;
    String, String::new(), |text| text.as_str();
}

impl OutputValue for String {
    fn qtype() -> QType {
        QType::TEXT
    }
    const IN_PLACE: bool = false;
    // SAFETY: FRAME-SLOT and STRING-VIEW, as the trait says.
    unsafe fn read(frame: FramePtr, offset: u32) -> Self {
        // SAFETY: FRAME-SLOT and STRING-VIEW, promised by the caller.
        unsafe { frame.read(Slot::<Text<'_>>::at(offset)).as_str().to_owned() }
    }
    // SAFETY: FRAME-SLOT and STRING-VIEW, as the trait says.
    unsafe fn read_into(&mut self, frame: FramePtr, offset: u32) {
        // SAFETY: FRAME-SLOT and STRING-VIEW, promised by the caller.
        unsafe { frame.read(Slot::<Text<'_>>::at(offset)).as_str() }.clone_into(self);
    }
    fn of_value(value: &Value) -> Option<Self> {
        match value {
            Value::Scalar(ScalarValue::Text(text)) => Some(text.to_string()),
            _ => None,
        }
    }
}

impl OutputValue for Option<String> {
    fn qtype() -> QType {
        QType::Optional(Scalar::Text)
    }
    const IN_PLACE: bool = false;
    // SAFETY: FRAME-SLOT and STRING-VIEW, as the trait says.
    unsafe fn read(frame: FramePtr, offset: u32) -> Self {
        // SAFETY: FRAME-SLOT and STRING-VIEW, promised by the caller.
        unsafe { frame.read(Slot::<Optional<Text<'_>>>::at(offset)).get().map(|text| text.as_str().to_owned()) }
    }
    // SAFETY: FRAME-SLOT and STRING-VIEW, as the trait says.
    unsafe fn read_into(&mut self, frame: FramePtr, offset: u32) {
        // SAFETY: FRAME-SLOT and STRING-VIEW, promised by the caller.
        let view = unsafe { frame.read(Slot::<Optional<Text<'_>>>::at(offset)).get() };
        match (self, view) {
            (Some(text), Some(view)) => view.as_str().clone_into(text),
            (text, view) => *text = view.map(|view| view.as_str().to_owned()),
        }
    }
    fn of_value(value: &Value) -> Option<Self> {
        match value {
            Value::Present(ScalarValue::Text(text)) => Some(Some(text.to_string())),
            Value::Missing(Scalar::Text) => Some(None),
            _ => None,
        }
    }
}

single!(String);
single!(Option<String>);

impl Sealed for Mask {}

/// A mask: true where a condition holds.
impl OutputValue for Mask {
    fn qtype() -> QType {
        QType::MASK
    }
    const IN_PLACE: bool = true;
    // SAFETY: FRAME-SLOT, as the trait says.
    unsafe fn read(frame: FramePtr, offset: u32) -> Self {
        // SAFETY: FRAME-SLOT, promised by the caller.
        Mask(unsafe { frame.read(Slot::at(offset)) })
    }
    fn of_value(value: &Value) -> Option<Self> {
        match value {
            Value::Present(ScalarValue::Unit) => Some(Mask(true)),
            Value::Missing(Scalar::Unit) => Some(Mask(false)),
            _ => None,
        }
    }
}

impl InputValue for Mask {
    fn qtype() -> QType {
        QType::MASK
    }
    const IN_PLACE: bool = true;
    // SAFETY: FRAME-SLOT, as the trait says.
    unsafe fn write(&self, frame: FramePtr, offset: u32) {
        // SAFETY: FRAME-SLOT, promised by the caller.
        unsafe { frame.write(Slot::at(offset), self.0) }
    }
    fn value(&self) -> Value {
        (*self).into()
    }
}

single!(Mask);

/// An `OPTIONAL_UNIT`: a condition that holds or does not.
#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Mask(pub bool);

impl From<Mask> for Value {
    fn from(mask: Mask) -> Self {
        Value::optional(Scalar::Unit, mask.0.then_some(ScalarValue::Unit))
    }
}
