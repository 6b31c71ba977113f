//! Rust structs as inputs and outputs: the traits of field types, and the field tables of structs, which have each
//! field's name, type and offset. Executors read and write rows by these tables. The field types are in `plain_fields`,
//! `text_fields`, `array_fields` and `field_types`.

use crate::Error;
use crate::binding::shapes::{InputShape, OutputList};
use cembra_engine::rows::{ColumnMut, InputColumn, ReadField};
use cembra_runtime::{FramePtr, QType, Scalar};
use cembra_value::{Code, Diagnostic, Value, guarded_values};
use std::marker::PhantomData;

/// Prevents other crates from implementing the traits of field types, because unsafe code trusts the results of their methods.
pub(crate) mod sealed {
    pub trait Sealed<S> {}
}

use sealed::Sealed;

/// The type in a field table for a field that takes any tensor. The model determines the tensor's element type and
/// number of axes.
pub(crate) const ANY_TENSOR: QType = QType::Nothing;

/// A Rust type that an input field may have; [`Input`] lists them. The trait is sealed; user-defined types derive
/// [`FieldType`](trait@crate::FieldType).
#[diagnostic::on_unimplemented(
    message = "an input cannot be a `{Self}`",
    label = "not a type of an input",
    note = "write `#[derive(cembra::Input)]` before a struct of your own, and `#[derive(cembra::FieldType)]` before an enum or a struct of one field",
    note = "inputs may be `bool`, `i32`, `i64`, `u64`, `f32`, `f64`, `Date`, `Timestamp`, `Duration`, `Optional` or `Option` of these, `Mask`, `u32` and smaller integers, `&str`, `String`, `Cow<str>`, types that derive `cembra::FieldType`, and `Option` of them; structs that derive `cembra::Input`, `Option` of them, and lists as `Vec<T>`, `&[T]`, `[T; N]` and `Vec<Option<T>>`; arrays may be `&[T]`, `Vec<T>`, `[T; N]`, `&[Optional<T>]`, `Vec<Optional<T>>` and `ArrayView`; `Option` of lists and arrays; dictionaries `HashMap` and `BTreeMap`",
    note = "a field that the model does not read is left out with `#[cembra(skip)]`"
)]
pub trait InputValue: Sealed<InputField> {
    /// Returns the model type that this Rust type stands for.
    fn qtype() -> QType;

    /// True if this type has the same layout in frames, so that its values are read in place.
    const IN_PLACE: bool = false;

    /// Writes the value to a slot, for types that are not read in place. Types that are not stored in frames write nothing.
    ///
    /// # Safety
    /// FRAME-SLOT (`docs/safety.md`): `frame` must have a slot of this type at `offset`. STRING-VIEW: the memory that the value borrows or owns must
    /// outlive the call.
    unsafe fn write(&self, _frame: FramePtr, _offset: u32) {}

    /// Returns this field's value as a [`Value`], for models with arrays, whose inputs are not stored in a frame.
    fn value(&self) -> Value;

    /// Returns true if converting a value calls user code, which may panic.
    #[must_use]
    fn may_panic() -> bool {
        false
    }

    /// Returns the structure of the type: a single value, a struct or a list.
    #[must_use]
    fn shape() -> InputShape {
        InputShape::Value
    }
}

/// A Rust type that an output field may have; [`Output`] lists them. The trait is sealed; user-defined types derive
/// [`FieldType`](trait@crate::FieldType).
#[diagnostic::on_unimplemented(
    message = "an output cannot be a `{Self}`",
    label = "not a type of an output",
    note = "write `#[derive(cembra::Output)]` before a struct of your own, and `#[derive(cembra::FieldType)]` before an enum or a struct of one field",
    note = "outputs may be `bool`, `i32`, `i64`, `u64`, `f32`, `f64`, `Date`, `Timestamp`, `Duration`, `Optional` or `Option` of these, `Mask`, `u32` and smaller integers, `String`, `Cow<str>`, types that derive `cembra::FieldType`, and `Option` of them; structs that derive `cembra::Output`, `Option` of them, `Vec<T>` and `Vec<Option<T>>`; arrays may be `Vec<T>`, `Vec<Optional<T>>` and `Vec<Option<T>>`; `Option` of lists and arrays",
    note = "a field that the model does not write is left out with `#[cembra(skip)]`"
)]
pub trait OutputValue: Sized + Sealed<OutputField> {
    /// Returns the model type that this Rust type stands for.
    fn qtype() -> QType;

    /// True if this type has the same layout in frames, so that its values are written in place.
    const IN_PLACE: bool = false;

    /// A text for messages that lists the possible values of this type, if not every value of its model type is possible; otherwise empty.
    const EXPECTED: &'static str = "";

    /// Reads the value from a slot, for types that are not written in place. `None` if the bits in the slot are not a valid value of this type. Also
    /// `None` for types that are not stored in frames.
    ///
    /// # Safety
    /// FRAME-SLOT (`docs/safety.md`): a call must have written a value of this type at `offset`. STRING-VIEW: its texts must still be alive.
    unsafe fn read(_frame: FramePtr, _offset: u32) -> Option<Self> {
        None
    }

    /// Replaces this value by the value in a slot, and reuses memory where possible. Returns false, and changes nothing, if the bits in the slot are
    /// not a valid value of this type.
    ///
    /// # Safety
    /// FRAME-SLOT and STRING-VIEW (`docs/safety.md`): the slot must be as [`Self::read`] requires.
    unsafe fn read_into(&mut self, frame: FramePtr, offset: u32) -> bool {
        // SAFETY: FRAME-SLOT and STRING-VIEW, promised by the caller.
        match unsafe { Self::read(frame, offset) } {
            Some(value) => *self = value,
            None => return false,
        }
        true
    }

    /// Moves the value out of the memory that a call wrote it to. A value that a call writes with several stores is
    /// read with as many loads, because a single wider load would stall until all stores have reached the cache.
    ///
    /// # Safety
    /// FIELD-TABLE: `place` points to a value of this type, which is not used afterwards.
    #[inline]
    #[must_use]
    unsafe fn take(place: *const Self) -> Self {
        // SAFETY: FIELD-TABLE, promised by the caller.
        unsafe { place.read() }
    }

    /// Converts a [`Value`] to this Rust type, for models with arrays. `None` if it is of another type, or if an array lacks an element that must be
    /// present.
    fn of_value(value: &Value) -> Option<Self>;

    /// Returns true if converting a value calls user code, which may panic.
    #[must_use]
    fn may_panic() -> bool {
        false
    }

    /// Returns true if [`of_value`](Self::of_value) would convert `value` to this type, that is, if the type can hold it.
    #[must_use]
    fn fits(value: &Value) -> bool {
        Self::of_value(value).is_some()
    }

    /// Returns the description of this type as a list; `None` if this type is not a list whose items can be written one by one.
    #[must_use]
    fn list() -> Option<OutputList> {
        None
    }
}

/// A field of an input struct, as an entry of the struct's field table: its name, its type, its offset, and the functions that read it.
#[derive(Clone, Debug)]
pub struct InputField {
    pub(crate) name: &'static str,
    pub(crate) qtype: QType,
    pub(crate) offset: usize,
    pub(crate) in_place: bool,
    /// True if converting a value of the field calls user code, which may panic.
    pub(crate) may_panic: bool,
    /// The structure of the field's type: a single value, a struct or a list.
    pub(crate) shape: InputShape,
    /// The function that writes this field of several structs to contiguous slots. Its arguments are the address of the field in the first struct,
    /// the distance in bytes to the field in the next struct, the number of structs, and the address of the first slot.
    ///
    /// # Safety
    /// FIELD-TABLE (`docs/safety.md`): each address must be that of a field of this type. FRAME-SLOT: the slots must have room for all values.
    /// STRING-VIEW: the memory that the values borrow or own must outlive the call.
    pub(crate) write_all: unsafe fn(*const u8, usize, usize, *mut u8),
    /// The name of the field's Rust type, if no input can have that type; else `None`. A field with such a type is not read.
    other: Option<&'static str>,
    /// The function that writes the field's value to a slot.
    ///
    /// # Safety
    /// FIELD-TABLE (`docs/safety.md`): the pointer must point to a field of this type. FRAME-SLOT: the slot must be as [`InputValue::write`]
    /// requires.
    pub(crate) write: unsafe fn(*const u8, FramePtr, u32),
    /// The function that returns the field's value as a [`Value`], without a frame.
    ///
    /// # Safety
    /// FIELD-TABLE (`docs/safety.md`): the pointer must point to a field of this type.
    pub(crate) value: unsafe fn(*const u8) -> Value,
}

/// Returns the memory layout by which a strided column reads a scalar field of type `qtype` at `offset`: the scalar
/// type, the offset of the value, and the distance from the value to its presence byte. Offset and distance are in
/// bytes; the distance is `None` if the type is not optional. The result is `None` if the type is not a scalar or an
/// optional scalar.
fn in_place(qtype: &QType, offset: usize) -> Option<(Scalar, usize, Option<isize>)> {
    let inside = qtype.optional_value_offset().unwrap_or(0) as usize;
    Some((qtype.scalar()?, offset + inside, qtype.is_optional().then(|| -inside.cast_signed())))
}

impl InputField {
    /// Returns the field table's entry for a field of type `T` at `offset` bytes from the start of its struct.
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
        // SAFETY: FIELD-TABLE and FRAME-SLOT, as [`InputField::write_all`] says.
        unsafe fn write_all<T: InputValue>(first: *const u8, stride: usize, count: usize, to: *mut u8) {
            let size = T::qtype().layout().size as usize;
            for at in 0..count {
                // SAFETY: FIELD-TABLE and FRAME-SLOT, promised by the caller.
                unsafe {
                    let place = FramePtr::from_raw(to.add(at * size));
                    (*first.add(at * stride).cast::<T>()).write(place, 0);
                }
            }
        }
        let (write, value) = (write::<T>, value::<T>);
        InputField {
            name,
            qtype: T::qtype(),
            offset,
            in_place: T::IN_PLACE,
            may_panic: T::may_panic(),
            shape: T::shape(),
            write_all: write_all::<T>,
            other: None,
            write,
            value,
        }
    }

    /// Returns the entry for a field with a Rust type that no input can have.
    fn of_other(name: &'static str, type_name: &'static str) -> Self {
        // SAFETY: FIELD-TABLE and FRAME-SLOT, as [`InputField::write`] says: nothing is touched.
        unsafe fn write(_: *const u8, _: FramePtr, _: u32) {}
        // SAFETY: FIELD-TABLE and FRAME-SLOT, as [`InputField::write_all`] says: nothing is touched.
        unsafe fn write_all(_: *const u8, _: usize, _: usize, _: *mut u8) {}
        // SAFETY: FIELD-TABLE, as [`InputField::value`] says: nothing is touched.
        unsafe fn value(_: *const u8) -> Value {
            Value::Nothing
        }
        InputField {
            name,
            qtype: QType::Nothing,
            offset: 0,
            in_place: false,
            may_panic: false,
            shape: InputShape::Value,
            write_all,
            other: Some(type_name),
            write,
            value,
        }
    }

    /// Returns this entry, after checking that the model's input `input` can be read from the field.
    ///
    /// # Errors
    /// If no input can have the field's type.
    pub(crate) fn readable(self, input: &str) -> Result<Self, Error> {
        let Some(type_name) = self.other else { return Ok(self) };
        let message = format!("input `{input}` comes from a field of type `{type_name}`, which an input cannot have");
        let diagnostic = Diagnostic::new(Code::Binding, message);
        Err(diagnostic
            .hint("write `#[derive(cembra::Input)]` before the struct, or `#[derive(cembra::FieldType)]` before an enum or a struct of one field")
            .hint("use another type that `cembra::Input` lists, or leave the field out with `#[cembra(skip)]`")
            .into())
    }

    /// Returns the error for a row in which a list is `None`, for example a list of type `Option<Vec<f64>>`. The list
    /// is this field itself, or is inside of this field.
    #[cold]
    pub(crate) fn not_given(&self) -> Error {
        let missing = if self.qtype.as_tuple().is_some() { "a list in it" } else { "it" };
        Error::values(format!("input `{}` is {}, but {missing} is missing", self.name, self.qtype))
    }

    /// Returns the model type of the field; `None` if no input can have the field's type, or if the field takes any tensor.
    pub(crate) fn input_type(&self) -> Option<&QType> {
        (self.other.is_none() && self.qtype != ANY_TENSOR).then_some(&self.qtype)
    }

    /// Returns the values of this field in all structs of `rows`, as a column.
    pub(crate) fn column<'a, T>(&'a self, rows: &'a [T]) -> InputColumn<'a> {
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

/// Selects at compile time how a field of an input struct is described. The derive calls `FieldProbe::<T>::input_field(name, offset)`. If `T` can be
/// an input, this calls the inherent function, which takes precedence over the function of the trait [`OtherField`].
pub struct FieldProbe<T>(PhantomData<fn() -> T>);

impl<T: InputValue> FieldProbe<T> {
    /// Returns the field table's entry for a field whose type can be the type of an input.
    #[must_use]
    pub fn input_field(name: &'static str, offset: usize) -> InputField {
        InputField::of::<T>(name, offset)
    }
}

impl<T> std::fmt::Debug for FieldProbe<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("FieldProbe")
    }
}

/// Provides the field table's entry for a field whose type cannot be the type of an input; see [`FieldProbe`].
pub trait OtherField {
    /// Returns an entry of the field table that gives an error if a model has an input of this name.
    #[must_use]
    fn input_field(name: &'static str, offset: usize) -> InputField;
}

impl<T> OtherField for FieldProbe<T> {
    fn input_field(name: &'static str, _: usize) -> InputField {
        InputField::of_other(name, std::any::type_name::<T>())
    }
}

/// Equidistant addresses in memory: the address `first`, and further ones, each `byte_stride` bytes after the previous one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Strided<P> {
    pub(crate) first: P,
    pub(crate) byte_stride: usize,
}

/// A field of an output struct, as an entry of the struct's field table: its name, its type, its offset, and the functions that write it.
#[derive(Clone, Debug)]
pub struct OutputField {
    pub(crate) name: &'static str,
    pub(crate) qtype: QType,
    pub(crate) offset: usize,
    pub(crate) in_place: bool,
    /// True if converting a value to the field calls user code, which may panic.
    pub(crate) may_panic: bool,
    /// A text that lists the field's possible values, if not every value of the model type is possible: see [`OutputValue::EXPECTED`].
    pub(crate) expected: &'static str,
    /// The function that initialises the field from a slot. It returns false if the bits in the slot are not a valid value of the field's type.
    ///
    /// # Safety
    /// FIELD-TABLE (`docs/safety.md`): the first pointer must point to room for a field of this type. FRAME-SLOT, STRING-VIEW: the slot must be as
    /// [`OutputValue::read`] requires.
    pub(crate) read: unsafe fn(*mut u8, FramePtr, u32) -> bool,
    /// The function that assigns the value in a slot to the field. It returns false if the bits in the slot are not a valid value of the field's
    /// type.
    ///
    /// # Safety
    /// FIELD-TABLE (`docs/safety.md`): the first pointer must point to a field of this type. FRAME-SLOT, STRING-VIEW: the slot must be as
    /// [`OutputValue::read`] requires.
    pub(crate) update: unsafe fn(*mut u8, FramePtr, u32) -> bool,
    /// Assigns a field from a slot, for field types that can hold every value of the slot.
    ///
    /// # Safety
    /// The requirements of `update` must hold.
    update_always: ReadField,
    /// The function that assigns or initialises the field in many structs, from many slots. Its arguments are the addresses of the fields, the
    /// addresses of the slots, the number of structs, and whether the fields are uninitialised. Each slot must hold a valid value of the field's
    /// type.
    ///
    /// # Safety
    /// FIELD-TABLE (`docs/safety.md`): the first addresses must be those of fields of this type, or of room for them. FRAME-SLOT, STRING-VIEW: the
    /// slots must be as [`OutputValue::read`] requires.
    pub(crate) read_all: unsafe fn(Strided<*mut u8>, Strided<*const u8>, usize, bool),
    /// The function that returns true if the field can hold the given value.
    pub(crate) fits: fn(&Value) -> bool,
    /// The function that assigns a value to the field, which must be able to hold it. The last argument tells whether the field is uninitialised.
    ///
    /// # Safety
    /// FIELD-TABLE (`docs/safety.md`): the pointer must point to a field of this type, or to room for one.
    pub(crate) put: unsafe fn(*mut u8, &Value, bool),
    /// The description of the field's type as a list; `None` if it is not a list whose items can be written one by one.
    pub(crate) list: Option<OutputList>,
    /// The default of the field; `None` if the field has no default. The field gets the default if the model has no such output, or if the output is
    /// missing.
    pub(crate) default: Option<FieldDefault>,
}

/// The default value of an output field.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FieldDefault {
    /// A function `fn() -> T` that makes the default, with the field's type `T` erased.
    make: fn(),
    /// Calls the function and assigns its result to a field. The last argument tells whether the field is uninitialised.
    ///
    /// # Safety
    /// FIELD-TABLE: the function of the field's type; a pointer to such a field, or to room for one.
    put: unsafe fn(fn(), *mut u8, bool),
}

impl FieldDefault {
    fn of<T>(make: fn() -> T) -> Self {
        // SAFETY: FIELD-TABLE, as [`FieldDefault::put`] says.
        unsafe fn put<T>(make: fn(), field: *mut u8, is_new: bool) {
            // SAFETY: FIELD-TABLE: the function had this type before its type was erased.
            let make = unsafe { std::mem::transmute::<fn(), fn() -> T>(make) };
            let (value, field) = (make(), field.cast::<T>());
            // SAFETY: FIELD-TABLE: the pointer is to a field of type T, or to room for one.
            unsafe { if is_new { field.write(value) } else { *field = value } }
        }
        // SAFETY: FIELD-TABLE: pointers to functions are alike, and this one is only called with its own type.
        let make = unsafe { std::mem::transmute::<fn() -> T, fn()>(make) };
        FieldDefault { make, put: put::<T> }
    }
}

impl OutputField {
    /// Returns the field table's entry for a field of type `T` at `offset` bytes from the start of its struct.
    #[must_use]
    pub fn of<T: OutputValue>(name: &'static str, offset: usize) -> Self {
        // SAFETY: FIELD-TABLE and FRAME-SLOT, as [`OutputField::read`] says.
        unsafe fn read<T: OutputValue>(field: *mut u8, frame: FramePtr, slot: u32) -> bool {
            // SAFETY: FRAME-SLOT, promised by the caller.
            let Some(value) = (unsafe { T::read(frame, slot) }) else { return false };
            // SAFETY: FIELD-TABLE: the pointer is to room for a field of type T.
            unsafe { field.cast::<T>().write(value) };
            true
        }
        // SAFETY: FIELD-TABLE and FRAME-SLOT, as [`OutputField::update`] says.
        unsafe fn update<T: OutputValue>(field: *mut u8, frame: FramePtr, slot: u32) -> bool {
            // SAFETY: FIELD-TABLE: the pointer is to a field of type T; FRAME-SLOT is promised by the caller.
            unsafe { (*field.cast::<T>()).read_into(frame, slot) }
        }
        // SAFETY: FIELD-TABLE and FRAME-SLOT, as [`OutputField::update_always`] says.
        unsafe fn update_always<T: OutputValue>(field: *mut u8, frame: FramePtr, slot: u32) {
            // SAFETY: FIELD-TABLE and FRAME-SLOT, promised by the caller.
            let _always = unsafe { update::<T>(field, frame, slot) };
        }
        // SAFETY: FIELD-TABLE and FRAME-SLOT, as [`OutputField::read_all`] says.
        unsafe fn read_all<T: OutputValue>(to: Strided<*mut u8>, from: Strided<*const u8>, count: usize, is_new: bool) {
            for at in 0..count {
                let place = FramePtr::from_raw(from.first.cast_mut().wrapping_add(at * from.byte_stride));
                let field = to.first.wrapping_add(at * to.byte_stride);
                // SAFETY: FIELD-TABLE and FRAME-SLOT, promised by the caller.
                let _always = unsafe { if is_new { read::<T>(field, place, 0) } else { update::<T>(field, place, 0) } };
            }
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
            may_panic: T::may_panic(),
            expected: T::EXPECTED,
            read: read::<T>,
            update: update::<T>,
            update_always: update_always::<T>,
            read_all: read_all::<T>,
            fits: T::fits,
            put: put::<T>,
            list: T::list(),
            default: None,
        }
    }

    /// Returns the field table's entry for a field of type `T` at `offset` bytes from the start of its struct, with a default. The default is used if
    /// the model has no such output, or if the output is missing and `T` has no value for a missing output.
    #[must_use]
    pub fn with_default<T: OutputValue>(name: &'static str, offset: usize, default: fn() -> T) -> Self {
        OutputField { default: Some(FieldDefault::of(default)), ..OutputField::of::<T>(name, offset) }
    }

    /// Assigns the field's default to the field at `place`. `is_new` tells whether the field is uninitialised.
    ///
    /// # Errors
    /// If the function that makes the default panics; then the field is unchanged.
    ///
    /// # Safety
    /// FIELD-TABLE (`docs/safety.md`): the field must have a default. `place` must point to the field, or to room for it.
    pub(crate) unsafe fn put_default(&self, place: *mut u8, is_new: bool) -> Result<(), Error> {
        let Some(FieldDefault { make, put }) = self.default else { return Ok(()) };
        guarded_values(
            || format!("field `{}`: its default", self.name),
            || {
                // SAFETY: FIELD-TABLE, promised by the caller; both functions are of the field's type.
                unsafe { put(make, place, is_new) };
                Ok(())
            },
        )
    }

    /// Returns the type to which an output of type `found` must be converted, so that this field can hold it.
    pub(crate) fn wanted(&self, found: &QType) -> QType {
        match self.qtype {
            QType::Scalar(scalar) if self.default.is_some() && found.is_optional() => QType::Optional(scalar),
            ANY_TENSOR if matches!(found, QType::Tensor(..)) => found.clone(),
            _ => self.qtype.clone(),
        }
    }

    /// Returns a column that writes this field in an array of `rows` structs, whose first struct is at `first`.
    ///
    /// # Safety
    /// FIELD-TABLE (`docs/safety.md`): this must be a field of the structs. Nothing else may use the fields as long as the column lives.
    pub(crate) unsafe fn column<T: Output>(&self, first: *mut T, rows: usize) -> ColumnMut<'_> {
        let (first, stride): (*mut u8, _) = (first.cast(), size_of::<T>().cast_signed());
        match in_place(&self.qtype, self.offset).filter(|_| self.in_place) {
            // SAFETY: FIELD-TABLE, promised by the caller.
            Some((scalar, offset, presence)) => unsafe {
                ColumnMut::strided(scalar, first.wrapping_add(offset), stride, presence, rows)
            },
            // SAFETY: FIELD-TABLE, promised by the caller.
            None => unsafe {
                ColumnMut::fields(&self.qtype, first.wrapping_add(self.offset), stride, self.update_always, rows)
            },
        }
    }
}

#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a row that an executor reads",
    label = "not a row",
    note = "write `#[derive(cembra::Input)]` before the struct `{Self}`; an executor of rows that a loader reads is a `ModelExecutor<LoaderRow<{Self}>, ..>`"
)]
/// A struct whose fields are inputs of a model. Derive this trait; `()` is the struct without fields.
///
/// Fields that are read in place: `bool`, `i32`, `i64`, `u64`, `f32`, `f64`, [`Date`](crate::Date), [`Timestamp`](crate::Timestamp),
/// [`Duration`](crate::Duration), [`Optional`](crate::Optional) of these, and [`Mask`](crate::Mask).
///
/// Fields that are converted: `Option` of the types from `bool` to `Duration` above, `u32` (an `i64` in models), `u16`,
/// `i16`, `u8` and `i8` (an `i32`), `&str`, `String`, `Cow<str>`, and `Option` of any of these. User-defined types
/// derive [`FieldType`](trait@crate::FieldType).
///
/// A struct that derives `Input` may be a field of another such struct, alone or in an `Option`. In models, its type is for example `{name: text}`,
/// or `{name: text}?` for an `Option`, with the fields in the struct's order.
///
/// Fields for models with arrays are copied: `&[T]`, `Vec<T>` and `[T; N]` of the plain types, of `Optional` of them, and of texts;
/// [`ArrayView`](crate::columns::ArrayView); lists `[{name: text}]`, as `Vec<T>`, `&[T]`, `[T; N]` or `Vec<Option<T>>` of structs with a derive; and
/// dictionaries, as `HashMap` or `BTreeMap` of the plain types and `String`. A list may be in an `Option`, but a row in which the list is `None` is
/// an error.
///
/// Fields for models with tensors: [`Tensor`](crate::Tensor), which is shared, and with the feature `ndarray` its arrays, which are copied. Fields of
/// other types are refused only when a model asks for them.
///
/// # Safety
/// FIELD-TABLE (`docs/safety.md`): the type and offset of each entry in the field table must be those of a field of `At<'r>`, for every `'r`.
pub unsafe trait Input {
    /// The type of the rows that an executor takes: this struct with `'r` for each of its lifetimes, or the struct itself if it has none. So one
    /// executor takes rows with borrows of any lifetime. A function over rows of any type takes `&I::At<'_>`.
    type At<'r>
    where
        Self: 'r;

    /// Returns the struct's field table.
    fn fields() -> Vec<InputField>;
}

#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a result that an executor writes",
    label = "not a result",
    note = "write `#[derive(cembra::Output)]` before the struct `{Self}`, whose fields are outputs of the model; a type of one value derives `cembra::FieldType`"
)]
/// A struct, or a single value, to which outputs of a model are written. Derive this trait for structs; `()` is the struct without fields.
///
/// Fields that are written in place: `bool`, `i32`, `i64`, `u64`, `f32`, `f64`, [`Date`](crate::Date), [`Timestamp`](crate::Timestamp),
/// [`Duration`](crate::Duration), [`Optional`](crate::Optional) of these, and [`Mask`](crate::Mask). A single value may have the same types as a
/// field.
///
/// Fields that are converted: `Option` of the types from `bool` to `Duration` above, `u32` (an `i64` in models), `u16`,
/// `i16`, `u8` and `i8` (an `i32`), `String`, `Cow<str>`, and `Option` of any of these. User-defined types derive
/// [`FieldType`](trait@crate::FieldType).
///
/// A struct with a derive may be a field of another, alone or in an `Option`, as in [`Input`](trait@crate::Input). For models with arrays, fields may
/// also be `Vec` of all these except [`Mask`](crate::Mask), and of structs and `Option` of structs. For models with tensors, they may be
/// [`Tensor`](crate::Tensor) and, with the feature `ndarray`, its arrays. Mark a field of any other type with `#[cembra(skip)]`.
///
/// # Safety
/// FIELD-TABLE (`docs/safety.md`): the type and offset of each entry in the field table must be those of a field of the struct. Every field must have
/// an entry, or `take` must make it without reading memory. Types written in place must be valid for any bytes that a model writes to them, zeros
/// included.
pub unsafe trait Output: Sized {
    /// Returns the struct's field table. A field without a name is the model's main output.
    fn fields() -> Vec<OutputField>;

    /// Moves the struct out of the memory to which a call wrote the struct, field by field: see [`OutputValue::take`].
    ///
    /// # Safety
    /// FIELD-TABLE: every field has its value, and none is used afterwards.
    #[inline]
    #[must_use]
    unsafe fn take(place: *const Self) -> Self {
        // SAFETY: FIELD-TABLE, promised by the caller.
        unsafe { place.read() }
    }
}

// SAFETY: FIELD-TABLE: no entries.
unsafe impl Input for () {
    type At<'r> = ();

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

/// Implements [`Output`] for a field type, so that a single value of this type receives the main output.
macro_rules! single {
    ($ty:ty $(, $T:ident: $($bound:tt)+)?) => {
        // SAFETY: FIELD-TABLE: the value itself, at 0.
        unsafe impl $(<$T: $($bound)+>)? Output for $ty {
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

pub(crate) use single;

/// Implements the input traits for `Option` of a list. A list cannot be missing in a model, so a row in which it is `None` is an error.
macro_rules! input_if_given {
    ([$($parameter:tt)*] $ty:ty) => {
        impl<$($parameter)*> Sealed<InputField> for Option<$ty> {}

        impl<$($parameter)*> InputValue for Option<$ty> {
            fn qtype() -> QType {
                <$ty as InputValue>::qtype()
            }
            fn value(&self) -> Value {
                self.as_ref().map_or(Value::Nothing, InputValue::value)
            }
            fn may_panic() -> bool {
                <$ty as InputValue>::may_panic()
            }
        }
    };
}

pub(crate) use input_if_given;

/// Implements the output traits for `Option` of a list. The result is `None` only if the model has no such output and the field has a default.
macro_rules! output_if_given {
    ([$($parameter:tt)*] $ty:ty) => {
        impl<$($parameter)*> Sealed<OutputField> for Option<$ty> {}

        impl<$($parameter)*> OutputValue for Option<$ty> {
            fn qtype() -> QType {
                <$ty as OutputValue>::qtype()
            }
            fn of_value(value: &Value) -> Option<Self> {
                <$ty as OutputValue>::of_value(value).map(Some)
            }
            fn may_panic() -> bool {
                <$ty as OutputValue>::may_panic()
            }
        }
    };
}

pub(crate) use output_if_given;
