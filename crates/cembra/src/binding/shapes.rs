//! Descriptions of field types that are more than a single value: structs, lists and dictionaries. With the description
//! of a type, an executor matches fields with the model by name, and finds the addresses of the values that the model
//! reads. Derives and field types provide the descriptions; this module reads no values.

use crate::Output;
use crate::derived::{InputField, OutputField};
use cembra_engine::Lookup;
use cembra_runtime::FramePtr;
use std::mem::MaybeUninit;

/// The structure of an input field's type: a single value, a struct, a list or a dictionary.
#[derive(Clone, Copy, Debug, Default)]
pub enum InputShape {
    /// The type is a single value, which is written as a whole.
    #[default]
    Value,
    /// The type is a struct. The function returns its fields.
    Struct(fn() -> Vec<InputField>),
    /// The type is a struct in an `Option`. The payload finds the struct, and returns its fields.
    Optional(OptionalStruct),
    /// The type is a list, such as `Vec<T>`. The payload finds the list's items, and describes an item.
    List(InputList),
    /// The type is a dictionary, such as `HashMap<String, f64>`. The payload looks up a key.
    Map(InputMap),
}

impl InputShape {
    /// Returns true if the type is a struct, a struct in an `Option`, or a list of structs.
    pub(crate) fn has_structs(self) -> bool {
        match self {
            InputShape::Struct(_) | InputShape::Optional(_) => true,
            InputShape::List(list) => matches!((list.item)().shape, InputShape::Struct(_)),
            InputShape::Value | InputShape::Map(_) => false,
        }
    }
}

/// The description of an input type that is a struct in an `Option`.
#[derive(Clone, Copy, Debug)]
pub struct OptionalStruct {
    /// The function that returns the address of the struct in the `Option`; null for `None`.
    ///
    /// # Safety
    /// FIELD-TABLE (`docs/safety.md`): the argument must point to a field of this type.
    pub(crate) get: unsafe fn(*const u8) -> *const u8,
    /// The function that returns the fields of the struct in the `Option`.
    pub(crate) fields: fn() -> Vec<InputField>,
}

impl OptionalStruct {
    /// Returns the description of `Option<T>` for a struct `T` with the fields `fields`.
    #[must_use]
    pub fn of<T>(fields: fn() -> Vec<InputField>) -> Self {
        // SAFETY: FIELD-TABLE, as [`OptionalStruct::get`] says.
        unsafe fn get<T>(field: *const u8) -> *const u8 {
            // SAFETY: FIELD-TABLE: the pointer is to an `Option` of T.
            let field = unsafe { &*field.cast::<Option<T>>() };
            field.as_ref().map_or(std::ptr::null(), |of| std::ptr::from_ref(of).cast())
        }
        OptionalStruct { get: get::<T>, fields }
    }
}

/// The description of an input type that is a list with contiguous items.
#[derive(Clone, Copy, Debug)]
pub struct InputList {
    /// The function that returns the address of the list's first item, and the number of items.
    ///
    /// # Safety
    /// FIELD-TABLE (`docs/safety.md`): the argument must point to a field of this type.
    pub(crate) items: unsafe fn(*const u8) -> (*const u8, usize),
    /// The distance in bytes from one item of the list to the next.
    pub(crate) stride: usize,
    /// The function that returns the description of an item of the list, as a field at offset 0.
    pub(crate) item: fn() -> InputField,
}

/// A list type whose items are contiguous in memory, such as `Vec` and slices.
pub(crate) trait Items {
    type Item;
    fn items(&self) -> &[Self::Item];
}

impl<T> Items for Vec<T> {
    type Item = T;
    fn items(&self) -> &[T] {
        self
    }
}

impl<T> Items for &[T] {
    type Item = T;
    fn items(&self) -> &[T] {
        self
    }
}

impl<T, const N: usize> Items for [T; N] {
    type Item = T;
    fn items(&self) -> &[T] {
        self
    }
}

impl InputList {
    /// Returns the description of the list type `L`. `item` returns the description of an item.
    pub(crate) fn of<L: Items>(item: fn() -> InputField) -> Self {
        // SAFETY: FIELD-TABLE, as [`InputList::items`] says.
        unsafe fn items<L: Items>(field: *const u8) -> (*const u8, usize) {
            // SAFETY: FIELD-TABLE: the pointer is to a list of this type.
            let items = unsafe { &*field.cast::<L>() }.items();
            (items.as_ptr().cast(), items.len())
        }
        InputList { items: items::<L>, stride: size_of::<L::Item>(), item }
    }
}

/// The description of an input type that is a dictionary, in which a model looks up keys.
#[derive(Clone, Copy, Debug)]
pub struct InputMap {
    /// The function that looks up a key in the dictionary. It is called like `MapView::find` of the engine, with a pointer to a field of this type.
    ///
    /// # Safety
    /// FIELD-TABLE (`docs/safety.md`): the first argument must point to a field of this type. COLUMN: the key, and the room for the value, must have
    /// the types of the dictionary.
    pub(crate) find: unsafe fn(*const (), FramePtr, FramePtr) -> Lookup,
}

/// The description of an output field that is a list, whose items are written field by field.
#[derive(Clone, Copy, Debug)]
pub struct OutputList {
    /// The function that prepares the list for `count` items. It drops the items beyond `count`, reserves zeroed memory for the items that are
    /// lacking, and returns the address of the first item and the number of existing items. The arguments are the field, whether the field itself is
    /// uninitialised, and `count`.
    ///
    /// # Safety
    /// FIELD-TABLE (`docs/safety.md`): the first argument must point to a field of this type, or to room for one if the second argument is true.
    pub(crate) room: unsafe fn(*mut u8, bool, usize) -> (*mut u8, usize),
    /// The function that sets the list's length to `count`, once the lacking items were written. Its arguments are the field and `count`.
    ///
    /// # Safety
    /// FIELD-TABLE (`docs/safety.md`): the first argument must point to a field of this type, and `room` must have been called with `count`. Every
    /// field of each new item must have been written.
    pub(crate) fill: unsafe fn(*mut u8, usize),
    /// The distance in bytes from one item of the list to the next.
    pub(crate) stride: usize,
    /// The function that returns the fields of an item of the list; a single field without a name if the item is not a struct.
    pub(crate) fields: fn() -> Vec<OutputField>,
}

impl OutputList {
    /// Returns the description of an output field of the type `Vec<T>`.
    #[must_use]
    pub fn of<T: Output>() -> Self {
        // SAFETY: FIELD-TABLE, as [`OutputList::room`] says.
        unsafe fn room<T: Output>(field: *mut u8, is_new: bool, count: usize) -> (*mut u8, usize) {
            let field = field.cast::<Vec<T>>();
            if is_new {
                // SAFETY: FIELD-TABLE: there is room for a list.
                unsafe { field.write(Vec::new()) };
            }
            // SAFETY: FIELD-TABLE: a list is there.
            let list = unsafe { &mut *field };
            list.truncate(count);
            list.reserve_exact(count - list.len());
            let more = count - list.len();
            list.spare_capacity_mut()[..more].fill_with(MaybeUninit::zeroed);
            (list.as_mut_ptr().cast(), list.len())
        }
        // SAFETY: FIELD-TABLE, as [`OutputList::fill`] says.
        unsafe fn fill<T: Output>(field: *mut u8, count: usize) {
            // SAFETY: FIELD-TABLE: a list is there.
            let list = unsafe { &mut *field.cast::<Vec<T>>() };
            let more = count - list.len();
            for place in &mut list.spare_capacity_mut()[..more] {
                // SAFETY: FIELD-TABLE: every field was written, as the caller promises.
                let item = unsafe { T::take(place.as_ptr()) };
                place.write(item);
            }
            // SAFETY: FIELD-TABLE: items up to here are written.
            unsafe { list.set_len(count) };
        }
        OutputList { room: room::<T>, fill: fill::<T>, stride: size_of::<T>(), fields: T::fields }
    }
}
